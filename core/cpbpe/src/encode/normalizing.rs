//! The normalized form of texts, for those who ask for it.

use crate::encode::engine::{Engine, Input};
use crate::error::Halt;
use crate::text::normalize::{Source, Spaces};
use crate::text::origins::ByteOrigins;
use crate::watch::Check;

impl Engine {
    /// The normalized text, and for each of its bytes and for its end, the place that it came from.
    pub fn origins(&self, text: &[u8], check: Check) -> Result<(Vec<u8>, Vec<usize>), Halt> {
        let (mut normalized, mut origins) = (Vec::new(), Vec::new());
        let source = Source { text, valid: false, keep_invalid: false };
        let (normalizer, spaces) = (&self.normalizer, Spaces::AsInModel);
        match &self.vocab.byte_level {
            Some(_) => normalizer.normalize(source, spaces, check, &mut normalized, &mut ByteOrigins(&mut origins))?,
            None => normalizer.normalize(source, spaces, check, &mut normalized, &mut origins)?,
        }
        Ok((normalized, origins))
    }

    /// The normalized text. `valid` says that the given one is known to be UTF-8.
    pub fn normalize(&self, (text, valid): Input, check: Check) -> Result<Vec<u8>, Halt> {
        let mut normalized = Vec::new();
        if self.vocab.byte_level.is_none() && self.is_plain(text, valid) {
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
