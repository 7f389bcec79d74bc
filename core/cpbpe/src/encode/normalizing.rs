//! The normalized form of texts, for those who ask for it.

use crate::encode::engine::{Engine, Input};
use crate::error::Halt;
use crate::memory::Grow;
use crate::text::normalize::{Source, Spaces};
use crate::text::origins::Origins;
use crate::text::utf8::REPLACEMENT;
use crate::watch::Check;

/// Whether to go on is checked once in this many bytes.
const CHECK_BYTES: usize = 1 << 16;

impl Engine {
    /// `ByteNormalizer` of `cpbpe/reference/byte_engine.py`, for a byte-level model: text stays as it is, but for a space
    /// in front, U+FFFD for each byte that belongs to no character, and the Unicode normal form of the model.
    pub(crate) fn normalize_bytes<O: Origins>(
        &self,
        (text, valid): Input,
        check: Check,
        normalized: &mut Vec<u8>,
        origins: &mut O,
    ) -> Result<(), Halt> {
        normalized.grow(text.len() + 1)?;
        if self.normalizer.prefixes_bytes(text) {
            normalized.push(b' ');
            origins.add(1, 0)?;
        }
        match self.normalizer.options.unicode_form {
            None => repair_bytes(text, check, normalized, origins)?,
            Some(form) if valid || std::str::from_utf8(text).is_ok() => {
                form.normalize(text, |at| at, check, normalized, origins)?;
            }
            Some(form) => {
                let (mut repaired, mut places) = (Vec::new(), Vec::new());
                repair_bytes(text, check, &mut repaired, &mut places)?;
                form.normalize(&repaired, |at| places[at], check, normalized, origins)?;
            }
        }
        origins.add(1, text.len())
    }

    /// The normalized text, and for each of its bytes and for its end, the place that it came from.
    pub fn origins(&self, text: &[u8], check: Check) -> Result<(Vec<u8>, Vec<usize>), Halt> {
        let (mut normalized, mut origins) = (Vec::new(), Vec::new());
        if self.vocab.byte_level.is_some() {
            self.normalize_bytes((text, false), check, &mut normalized, &mut origins)?;
        } else {
            let source = Source { text, valid: false, keep_invalid: false };
            self.normalizer.normalize(source, Spaces::AsInModel, check, &mut normalized, &mut origins)?;
        }
        Ok((normalized, origins))
    }

    /// The normalized text. `valid` says that the given one is known to be UTF-8.
    pub fn normalize(&self, (text, valid): Input, check: Check) -> Result<Vec<u8>, Halt> {
        let mut normalized = Vec::new();
        if self.vocab.byte_level.is_some() {
            self.normalize_bytes((text, valid), check, &mut normalized, &mut ())?;
        } else if self.is_plain(text, valid) {
            self.normalizer.escape(text, check, &mut normalized)?;
        } else {
            let source = Source { text, valid, keep_invalid: false };
            self.normalizer.normalize(source, Spaces::AsInModel, check, &mut normalized, &mut ())?;
        }
        Ok(normalized)
    }

    /// The same with a space for each U+2581; `None` if these are not to be told apart.
    pub fn normalize_compact(&self, text: &[u8], check: Check) -> Result<Option<Vec<u8>>, Halt> {
        if !self.direct || !self.vocab.swapped {
            return Ok(None);
        }
        let mut compact = Vec::new();
        if text.is_empty() {
        } else if self.is_plain(text, true) {
            self.compact(text, &mut compact)?;
        } else {
            let source = Source { text, valid: true, keep_invalid: false };
            self.normalizer.normalize(source, Spaces::Compact, check, &mut compact, &mut ())?;
        }
        Ok(Some(compact))
    }
}

/// Append a text with U+FFFD for each byte that belongs to no character. Each byte came from its own place.
fn repair_bytes<O: Origins>(text: &[u8], check: Check, out: &mut Vec<u8>, origins: &mut O) -> Result<(), Halt> {
    let mut at = 0;
    for part in text.utf8_chunks() {
        let (valid, invalid) = (part.valid().as_bytes(), part.invalid());
        out.grow(valid.len() + invalid.len() * REPLACEMENT.len())?;
        for some in valid.chunks(CHECK_BYTES) {
            check()?;
            out.extend_from_slice(some);
            for place in at..at + some.len() {
                origins.add(1, place)?;
            }
            at += some.len();
        }
        for _ in invalid {
            out.extend_from_slice(REPLACEMENT);
            origins.add(REPLACEMENT.len(), at)?;
            at += 1;
        }
    }
    Ok(())
}
