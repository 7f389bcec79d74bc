//! Ids with spans.
//!
//! Spans follow from ids (see `walk`), and the cache makes finding ids fast. With most models a text is encoded as it
//! is, except for a dummy prefix; with others, the map of its normalization translates the spans. Only for a text with
//! unknown parts, or one that cannot be cut, is each token kept with its span.

use std::mem::take;

use crate::encode::encoder::Scratch;
use crate::encode::engine::{Engine, Input};
use crate::encode::output::IdSink;
use crate::encode::segment::{encode_normalized, piece_of, segment, tokens, walk, Place, Segmentation};
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
    /// Whether spans count characters, or bytes. If `None`, they count characters in a text that is known to be UTF-8,
    /// and bytes in others.
    pub characters: Option<bool>,
    /// Skip merges at random. The first text gets this seed, and each later text the next number.
    pub dropout: Option<Dropout>,
}

/// The ids of some texts, one after the other, and their spans, if they are wanted.
#[derive(Default)]
pub struct EncodedTexts {
    /// The ids.
    pub ids: Vec<u32>,
    /// How many ids each text has.
    pub lengths: Vec<usize>,
    /// For each id, where the span that it came from begins and ends in its text.
    pub spans: Vec<[i64; 2]>,
    /// For each token of the UNKNOWN piece, its index in `ids`, and the unknown text.
    pub unknown: Vec<(usize, Vec<u8>)>,
}

impl Engine {
    /// Ids and spans of one text.
    pub fn align(&self, input: Input, options: AlignOptions, check: Check) -> Result<EncodedTexts, Halt> {
        let mut aligned = EncodedTexts::default();
        self.with_scratch(|scratch| self.align_to(input, 0, options, check, scratch, &mut aligned))??;
        Ok(aligned)
    }

    /// Append ids and spans of the text with this index.
    pub(crate) fn align_to(
        &self,
        (text, valid): Input,
        index: usize,
        options: AlignOptions,
        check: Check,
        scratch: &mut Scratch,
        out: &mut EncodedTexts,
    ) -> Result<(), Halt> {
        let characters = options.characters.unwrap_or(valid);
        let dropout =
            options.dropout.map(|dropout| Dropout { seed: dropout.seed.wrapping_add(index as u64), ..dropout });
        // 1. A text that is encoded as it is: its spans follow from its ids. (A text with U+2581 is not: U+2581 is
        //    shorter in the compact form, which is what is encoded.)
        let holds_space = || self.vocab.byte_level.is_none() && memchr::memmem::find(text, utf8::SPACE).is_some();
        if self.vocab.plain_spans && self.is_plain(text, valid) && !holds_space() {
            scratch.ids.clear();
            // (This text is UTF-8; that has been checked.)
            match dropout {
                None => self.encode(text, true, check, scratch)?,
                Some(dropout) => self.sample((text, true), dropout, check, scratch)?,
            }
            if self.plain_spans(text, characters, &scratch.ids, check, &mut out.spans)? {
                out.ids.try_extend(&scratch.ids)?;
                return Ok(());
            }
        }
        // 2. Other texts that can be cut: their spans in the normalized text follow from the ids, and its map leads
        //    back to the text.
        let characters = characters && !text.is_ascii();
        let mut positions = Positions::new(text, valid);
        let mut position = |at: usize| if characters { positions.of(at) } else { at };
        let Scratch { buffers, ids } = scratch;
        let (mut normalized, mut origins) = (take(&mut buffers.normalized), take(&mut buffers.origins));
        normalized.clear();
        origins.clear();
        let segmentation = self.normalized((text, valid), check, &mut normalized, &mut origins)?;
        let mut done = false;
        if let Segmentation::Chunks(_) | Segmentation::Split(_) = segmentation {
            ids.clear();
            match dropout {
                None => encode_normalized(&self.vocab, segmentation, &normalized, check, buffers, ids)?,
                Some(_) => {
                    let mut sink = IdSink { vocab: &self.vocab, text: &normalized, compact: true, out: ids };
                    segment(&self.vocab, &normalized, segmentation, dropout, &mut buffers.choices, check, &mut sink)?;
                }
            }
            let first = position(origins[0]);
            let place_of = |place: Place| position(origins[place.bytes]);
            done = self.walk_spans(ids, first, |at| normalized[at], place_of, check, &mut out.spans)?;
        }
        if done {
            out.ids.try_extend(ids)?;
            (buffers.normalized, buffers.origins) = (normalized, origins);
            return Ok(());
        }
        // 3. All others, and those with unknown parts: keep each token with its span.
        let tokens = tokens(&self.vocab, &normalized, segmentation, dropout, &mut buffers.choices, check)?;
        out.ids.grow(tokens.len())?;
        out.spans.grow(tokens.len())?;
        let mut positions = Positions::new(text, valid);
        let mut position = |at: usize| if characters { positions.of(at) } else { at } as i64;
        for some in tokens.chunks(CHECK_TOKENS) {
            check()?;
            for token in some {
                if Some(token.id) == self.vocab.unk {
                    let mut piece = Vec::new();
                    piece_of(&self.vocab, token, &normalized, segmentation.is_compact(), &mut piece)?;
                    out.unknown.try_push((out.ids.len(), piece))?;
                }
                out.ids.push(token.id);
                out.spans.push([position(origins[token.begin]), position(origins[token.end])]);
            }
        }
        (buffers.normalized, buffers.origins) = (normalized, origins);
        Ok(())
    }

    /// The normalized text of a UTF-8 text, and for each of its characters and for its end, the character that it came
    /// from. (As in sentencepiece, a character came from where its last byte did.)
    pub fn character_origins(&self, text: &[u8], check: Check) -> Result<(Vec<u8>, Vec<usize>), Halt> {
        let (normalized, mut origins) = self.origins(text, check)?;
        // 1. Keep the place of the last byte of each character, and of the end.
        if !normalized.is_ascii() {
            let mut kept = 0;
            for begin in (0..origins.len()).step_by(CHECK_TOKENS) {
                check()?;
                for at in begin..origins.len().min(begin + CHECK_TOKENS) {
                    origins[kept] = origins[at];
                    kept += usize::from(normalized.get(at + 1).is_none_or(|&byte| byte & 0xC0 != 0x80));
                }
            }
            origins.truncate(kept);
        }
        // 2. Count characters instead of bytes.
        if !text.is_ascii() {
            let mut positions = Positions::new(text, true);
            for part in origins.chunks_mut(CHECK_TOKENS) {
                check()?;
                part.iter_mut().for_each(|origin| *origin = positions.of(*origin));
            }
        }
        Ok((normalized, origins))
    }

    /// Append the spans of ids in a text that was encoded as it is and holds no U+2581. If a part of it is unknown, do
    /// nothing and return false.
    fn plain_spans(
        &self,
        text: &[u8],
        characters: bool,
        ids: &[u32],
        check: Check,
        spans: &mut Vec<[i64; 2]>,
    ) -> Result<bool, Halt> {
        let prefix = usize::from(self.normalizer.prefixes(text));
        // What was encoded is the text after its dummy prefix, one byte and one character that the text itself does not
        // have.
        let byte_at = |at: usize| if at < prefix { b' ' } else { text[at - prefix] };
        if self.vocab.byte_level.is_some() {
            // Pieces may begin and end within a character, so characters cannot be counted piece by piece.
            let mut positions = Positions::new(text, true);
            let mut place_of = |at: usize| if characters { positions.of(at) } else { at };
            let place_of = |place: Place| place_of(place.bytes.saturating_sub(prefix));
            return self.walk_spans(ids, 0, byte_at, place_of, check, spans);
        }
        let place_of = |place: Place| if characters { place.characters } else { place.bytes }.saturating_sub(prefix);
        self.walk_spans(ids, 0, byte_at, place_of, check, spans)
    }

    /// Append the spans of ids in a compact text. `place_of` translates each place, and `first` is what it gives for
    /// the beginning.
    #[inline(always)]
    fn walk_spans(
        &self,
        ids: &[u32],
        first: usize,
        byte_at: impl Fn(usize) -> u8,
        mut place_of: impl FnMut(Place) -> usize,
        check: Check,
        spans: &mut Vec<[i64; 2]>,
    ) -> Result<bool, Halt> {
        let before = spans.len();
        spans.grow(ids.len())?;
        let mut begin = first as i64;
        let done = walk(&self.vocab, ids, byte_at, check, |place| {
            let end = place_of(place) as i64;
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

/// Translates places in bytes to places in characters. Places must be asked for from left to right.
struct Positions<'a> {
    text: &'a [u8],
    /// Whether the text is known to be UTF-8.
    valid: bool,
    /// A place where a character begins (in a text known to be UTF-8, any place), and how many characters begin before
    /// it.
    at: usize,
    count: usize,
}

impl<'a> Positions<'a> {
    /// For a text that may be known to be UTF-8.
    fn new(text: &'a [u8], valid: bool) -> Positions<'a> {
        Positions { text, valid, at: 0, count: 0 }
    }

    /// How many characters end at or before `place`. A byte that belongs to no character counts as one.
    #[inline]
    fn of(&mut self, place: usize) -> usize {
        debug_assert!(self.at <= place);
        if self.valid {
            self.count += match self.text[self.at..].first_chunk() {
                Some(bytes) if place - self.at <= bytes.len() => utf8::count_first(*bytes, place - self.at),
                _ => utf8::count(&self.text[self.at..place]),
            };
            self.at = place;
            let inside = self.text.get(place).is_some_and(|&byte| byte & 0xC0 == 0x80);
            return self.count - usize::from(inside);
        }
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
        let all = |text: &[u8], valid: bool| {
            let mut positions = Positions::new(text, valid);
            (0..=text.len()).map(|at| positions.of(at)).collect::<Vec<_>>()
        };
        for valid in [false, true] {
            assert_eq!(all("a\u{2581}b".as_bytes(), valid), [0, 1, 1, 1, 2, 3]);
        }
        assert_eq!(all(b"\xff\xe2", false), [0, 1, 2]);
    }
}
