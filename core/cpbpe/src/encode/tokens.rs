//! Text -> tokens: ids with their spans of the text.

use crate::cut::chunks;
use crate::encode::id_sink::IdSink;
use crate::encode::sample::sample;
use crate::encode::segment::{segment_whole, Way};
use crate::encode::split::{each_chunk, segment_chunk};
use crate::error::Halt;
use crate::memory::{with_room, Grow};
use crate::merge::{merge_chunk, Choices, Dropout, Sink};
use crate::text::compact::swap_spaces;
use crate::text::utf8;
use crate::vocab::{piece_type, Vocab, NONE};
use crate::watch::Check;

/// Whether to go on is checked once in this many steps.
const CHECK_STEPS: usize = 1 << 14;

/// One token with its span in the segmented text.
pub struct Token {
    /// Its id.
    pub id: u32,
    /// Where its part of the text begins. The part is empty for all but the last byte of a character.
    pub begin: usize,
    /// Where it ends.
    pub end: usize,
}

/// Turns symbols into tokens.
struct TokenSink<'a> {
    vocab: &'a Vocab,
    text: &'a [u8],
    compact: bool,
    /// Where the chunk begins in the text.
    offset: usize,
    out: Vec<Token>,
}

impl Sink for TokenSink<'_> {
    fn make_room(&mut self, bytes: usize) -> Result<(), Halt> {
        self.out.grow(bytes.saturating_mul(self.vocab.ids_per_byte))
    }

    fn symbol(&mut self, id: u32, begin: usize, end: usize) {
        let (begin, end) = (begin + self.offset, end + self.offset);
        if id != NONE && Some(id) != self.vocab.unk {
            self.out.push(Token { id, begin, end });
            return;
        }
        if self.vocab.byte_ids.is_some() {
            let mut ids = Vec::new(); // a few: the symbol is one character
            IdSink { vocab: self.vocab, text: self.text, compact: self.compact, out: &mut ids }
                .symbol(NONE, begin, end);
            self.out.extend(ids.into_iter().map(|id| Token { id, begin, end: begin }));
            if let Some(last) = self.out.last_mut() {
                last.end = end;
            }
        } else if let Some(unk) = self.vocab.unk {
            match self.out.last_mut() {
                Some(last) if last.id == unk => last.end = end,
                _ => self.out.push(Token { id: unk, begin, end }),
            }
        }
    }
}

/// The tokens of a segmented text, merged chunk by chunk, without the cache.
pub fn tokens(vocab: &Vocab, text: &[u8], way: Way, check: Check) -> Result<Vec<Token>, Halt> {
    let mut sink = TokenSink { vocab, text, compact: true, offset: 0, out: Vec::new() };
    let joinable = match way {
        Way::Chunks(joinable) => joinable,
        Way::Split(byte_level) => {
            each_chunk(byte_level, text, check, |begin, end| {
                sink.offset = begin;
                segment_chunk(vocab, byte_level, &text[begin..end], check, &mut sink)
            })?;
            return Ok(sink.out);
        }
        Way::Whole { compact } => {
            sink.compact = compact;
            segment_whole(vocab, text, compact, |_, _, _| true, check, &mut sink)?;
            return Ok(sink.out);
        }
    };
    let merge_part = |sink: &mut TokenSink, begin: usize, end: usize| {
        sink.offset = begin;
        merge_chunk(vocab, &text[begin..end], check, sink)
    };
    let mut keys = vocab.user_defined_compact.walk(text);
    let (mut at, mut done) = (0, 0);
    let mut next_check = CHECK_STEPS;
    while at < text.len() {
        if at >= next_check {
            check()?;
            next_check = at + CHECK_STEPS;
        }
        let length = keys.longest(at);
        if length > 0 {
            merge_part(&mut sink, done, at)?;
            sink.out.grow(1)?;
            sink.out.extend(vocab.find(&text[at..at + length]).map(|id| Token { id, begin: at, end: at + length }));
            at += length;
            done = at;
            continue;
        }
        if at > done && chunks::is_cut(joinable, text, at) {
            merge_part(&mut sink, done, at)?;
            done = at;
        }
        at += 1;
    }
    merge_part(&mut sink, done, text.len())?;
    Ok(sink.out)
}

/// A place in a text, counted in bytes and in characters.
#[derive(Clone, Copy)]
pub struct Place {
    /// How many bytes are before it.
    pub bytes: usize,
    /// How many characters are before it.
    pub characters: usize,
}

/// Walk through a compact text by its ids, and report where each token ends, which is where the next one begins. Every
/// piece occurs unchanged in the text. A character without a piece has an id for each of its bytes; all but the last
/// have an empty span. `byte_at` reads a byte of the text. False if a part of the text is unknown, because an id does
/// not tell its length.
#[inline]
pub fn walk(
    vocab: &Vocab,
    ids: &[u32],
    byte_at: impl Fn(usize) -> u8,
    check: Check,
    mut end: impl FnMut(Place),
) -> Result<bool, Halt> {
    let lengths = &*vocab.lengths()?;
    let mut place = Place { bytes: 0, characters: 0 };
    let mut i = 0;
    while i < ids.len() {
        if i > 0 {
            check()?;
        }
        let stop = ids.len().min(i + CHECK_STEPS);
        while i < stop {
            let id = ids[i];
            let length = lengths.of(id);
            if length.bytes > 0 {
                place.bytes += usize::from(length.bytes);
                place.characters += usize::from(length.characters);
                end(place);
                i += 1;
                continue;
            }
            if Some(id) == vocab.unk {
                return Ok(false);
            }
            let first = byte_at(place.bytes);
            let bytes = utf8::length_by_first(first);
            let tokens = if first == b' ' && vocab.swapped { utf8::SPACE.len() } else { bytes };
            for _ in 1..tokens {
                end(place);
            }
            place.bytes += bytes;
            place.characters += 1;
            end(place);
            i += tokens;
        }
    }
    Ok(true)
}

/// The tokens of a compact text that has these ids. `None` if some of it is unknown, see `walk`.
pub fn tokens_of(vocab: &Vocab, text: &[u8], ids: &[u32], check: Check) -> Result<Option<Vec<Token>>, Halt> {
    let mut tokens = with_room(ids.len())?;
    let mut begin = 0;
    let done = walk(
        vocab,
        ids,
        |at| text[at],
        check,
        |end| {
            tokens.push(Token { id: ids[tokens.len()], begin, end: end.bytes });
            begin = end.bytes;
        },
    )?;
    debug_assert!(!done || begin == text.len());
    Ok(done.then_some(tokens))
}

/// The tokens of a segmented text when merges are skipped at random.
pub fn sampled(
    vocab: &Vocab,
    text: &[u8],
    way: Way,
    dropout: Dropout,
    choices: &mut Choices,
    check: Check,
) -> Result<Vec<Token>, Halt> {
    let mut sink = TokenSink { vocab, text, compact: way.is_compact(), offset: 0, out: Vec::new() };
    sample(vocab, text, way, dropout, choices, check, &mut sink)?;
    Ok(sink.out)
}

/// The text of a token, as it is in the model file; for an unknown one, the unknown text.
pub fn piece_of(vocab: &Vocab, token: &Token, text: &[u8], compact: bool, out: &mut Vec<u8>) {
    if Some(token.id) == vocab.unk || vocab.kind(token.id) != piece_type::BYTE {
        let part = &text[token.begin..token.end];
        if compact && vocab.swapped {
            swap_spaces(part, out);
        } else {
            out.extend_from_slice(part);
        }
    } else {
        vocab.text_of(token.id, out);
    }
}
