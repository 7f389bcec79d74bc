//! Ids with spans of many texts, without the pieces and maps that `Aligned` holds.
//!
//! With most models a text is encoded as it is, perhaps after a dummy prefix. Then its spans follow from its ids (see
//! `walk`). All other texts are aligned like single ones, by `Engine::tokens`, and their spans translated by the map of
//! their normalization.

use crate::encode::encoder::Scratch;
use crate::encode::engine::{Engine, Input};
use crate::encode::tokens::walk;
use crate::error::Halt;
use crate::memory::Grow;
use crate::merge::Dropout;
use crate::text::utf8;
use crate::watch::Check;

/// Whether to go on is checked once in this many tokens.
const CHECK_TOKENS: usize = 1 << 14;

/// What to align in many texts.
#[derive(Clone, Copy, Default)]
pub struct AlignOptions {
    /// Whether spans count characters, or bytes; if not given, characters of a text that is known to be UTF-8.
    pub characters: Option<bool>,
    /// Skip merges at random. The seed is that of the first text; each later text has the next number.
    pub dropout: Option<Dropout>,
}

/// Ids and spans of some texts, one after the other.
#[derive(Default)]
pub struct AlignedTexts {
    /// The ids.
    pub ids: Vec<u32>,
    /// How many each text has.
    pub lengths: Vec<usize>,
    /// The begin and end of the span that each came from, in its text.
    pub spans: Vec<[i64; 2]>,
    /// For each token of the UNKNOWN piece its index in `ids`, and the text that is unknown.
    pub unknown: Vec<(usize, Vec<u8>)>,
}

impl Engine {
    /// Append ids and spans of the text with this index.
    pub(crate) fn align_to(
        &self,
        (text, valid): Input,
        index: usize,
        options: AlignOptions,
        check: Check,
        scratch: &mut Scratch,
        out: &mut AlignedTexts,
    ) -> Result<(), Halt> {
        let characters = options.characters.unwrap_or(valid);
        let plain = self.vocab.plain_spans && self.is_plain(text, valid);
        if options.dropout.is_none() && plain && memchr::memmem::find(text, utf8::SPACE).is_none() {
            scratch.ids.clear();
            // (It has been checked that it is UTF-8.)
            self.encode(text, true, check, scratch)?;
            if self.plain_spans(text, characters, &scratch.ids, check, &mut out.spans)? {
                out.ids.grow(scratch.ids.len())?;
                out.ids.extend_from_slice(&scratch.ids);
                return Ok(());
            }
        }
        let dropout =
            options.dropout.map(|dropout| Dropout { seed: dropout.seed.wrapping_add(index as u64), ..dropout });
        let aligned = self.tokens(text, dropout, check)?;
        out.ids.grow(aligned.tokens.len())?;
        out.spans.grow(aligned.tokens.len())?;
        let mut positions = Positions { text, at: 0, count: 0 };
        let mut position = |at: usize| if characters { positions.of(at) } else { at } as i64;
        for tokens in aligned.tokens.chunks(CHECK_TOKENS) {
            check()?;
            for token in tokens {
                if Some(token.id) == self.vocab.unk {
                    let mut piece = Vec::new();
                    self.piece_of(token, &aligned, &mut piece)?;
                    out.unknown.grow(1)?;
                    out.unknown.push((out.ids.len(), piece));
                }
                out.ids.push(token.id);
                out.spans.push([position(aligned.origins[token.begin]), position(aligned.origins[token.end])]);
            }
        }
        Ok(())
    }

    /// Append the spans of ids in a text that was encoded as it is, and holds no U+2581. If some of it is unknown, do
    /// nothing and return false.
    fn plain_spans(
        &self,
        text: &[u8],
        characters: bool,
        ids: &[u32],
        check: Check,
        spans: &mut Vec<[i64; 2]>,
    ) -> Result<bool, Halt> {
        let prefix = usize::from(self.normalizer.options.add_dummy_prefix);
        let before = spans.len();
        spans.grow(ids.len())?;
        let mut begin = 0;
        // What was encoded is the dummy prefix, a byte and a character that the text does not have, and the text.
        let byte_at = |at: usize| if at < prefix { b' ' } else { text[at - prefix] };
        let done = walk(&self.vocab, ids, byte_at, check, |place| {
            let end = if characters { place.characters } else { place.bytes };
            let end = end.saturating_sub(prefix) as i64;
            spans.push([begin, end]);
            begin = end;
        })?;
        if !done {
            spans.truncate(before);
        }
        debug_assert!(!done || spans.len() == before + ids.len());
        Ok(done)
    }
}

/// Translates places in bytes to places in characters; asked from left to right.
struct Positions<'a> {
    text: &'a [u8],
    /// A place where a character begins, and how many begin before it.
    at: usize,
    count: usize,
}

impl Positions<'_> {
    /// How many characters end at or before `place`. A byte that belongs to no character counts as one.
    fn of(&mut self, place: usize) -> usize {
        debug_assert!(self.at <= place);
        while self.at < place {
            let next = self.at + utf8::valid_length(self.text, self.at).max(1);
            if next > place {
                break;
            }
            (self.at, self.count) = (next, self.count + 1);
        }
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_of_characters() {
        let all = |text: &[u8]| {
            let mut positions = Positions { text, at: 0, count: 0 };
            (0..=text.len()).map(|at| positions.of(at)).collect::<Vec<_>>()
        };
        assert_eq!(all("a\u{2581}b".as_bytes()), [0, 1, 1, 1, 2, 3]);
        assert_eq!(all(b"\xff\xe2"), [0, 1, 2]);
    }
}
