//! Text -> tokens: ids with the parts of the text that they stand for.

use crate::cut::chunks;
use crate::encode::id_sink::IdSink;
use crate::encode::segment::{segment_whole, user_defined, Way};
use crate::merge::dropout::{self, Dropout};
use crate::merge::{merge_chunk, Sink};
use crate::text::compact::swap_spaces;
use crate::text::utf8;
use crate::vocab::{piece_type, Vocab, NONE};

/// One token with its span.
pub struct Token {
    /// Its id.
    pub id: u32,
    /// The part of the segmented text it stands for; empty for all but the last byte of a character.
    pub begin: usize,
    /// See `begin`.
    pub end: usize,
}

/// Makes tokens of symbols.
struct TokenSink<'a> {
    vocab: &'a Vocab,
    text: &'a [u8],
    compact: bool,
    /// Where the chunk begins in the text.
    offset: usize,
    out: Vec<Token>,
}

impl Sink for TokenSink<'_> {
    fn symbol(&mut self, id: u32, begin: usize, end: usize) {
        let (begin, end) = (begin + self.offset, end + self.offset);
        if id != NONE && Some(id) != self.vocab.unk {
            self.out.push(Token { id, begin, end });
            return;
        }
        if self.vocab.byte_ids.is_some() {
            let mut ids = Vec::new();
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
pub fn tokens(vocab: &Vocab, text: &[u8], way: Way) -> Vec<Token> {
    let mut sink = TokenSink { vocab, text, compact: true, offset: 0, out: Vec::new() };
    let (joinable, keys) = match way {
        Way::Chunks(joinable) => (joinable, None),
        Way::ChunksBetweenKeys(joinable, keys) => (joinable, Some(keys)),
        Way::Whole { compact } => {
            sink.compact = compact;
            segment_whole(vocab, text, compact, |_, _, _| true, &mut sink);
            return sink.out;
        }
    };
    let merge_part = |sink: &mut TokenSink, begin: usize, end: usize| {
        sink.offset = begin;
        merge_chunk(vocab, &text[begin..end], sink);
    };
    let (mut at, mut done) = (0, 0);
    while at < text.len() {
        let length = keys.map_or(0, |keys| keys.longest(text, at));
        if length > 0 {
            merge_part(&mut sink, done, at);
            sink.out.extend(vocab.find(&text[at..at + length]).map(|id| Token { id, begin: at, end: at + length }));
            at += length;
            done = at;
            continue;
        }
        if at > done && chunks::is_cut(joinable, text, at) {
            merge_part(&mut sink, done, at);
            done = at;
        }
        at += 1;
    }
    merge_part(&mut sink, done, text.len());
    sink.out
}

/// Where the ids of a compact text stand in it: every piece is there as it is, and a character without a piece has an id
/// for each of its bytes. `None` if some of it is unknown, because how much cannot be told.
pub fn spans(vocab: &Vocab, text: &[u8], ids: &[u32]) -> Option<Vec<Token>> {
    let mut tokens = Vec::with_capacity(ids.len());
    let mut at = 0;
    while let Some(&id) = ids.get(tokens.len()) {
        if Some(id) == vocab.unk {
            return None;
        }
        if vocab.kind(id) != piece_type::BYTE {
            let end = at + vocab.pieces.text(id).len();
            tokens.push(Token { id, begin: at, end });
            at = end;
            continue;
        }
        let length = utf8::length_at(text, at);
        let count = if text[at] == b' ' && vocab.swapped { utf8::SPACE.len() } else { length };
        for &id in &ids[tokens.len()..][..count] {
            tokens.push(Token { id, begin: at, end: at });
        }
        at += length;
        if let Some(last) = tokens.last_mut() {
            last.end = at;
        }
    }
    debug_assert_eq!(at, text.len());
    Some(tokens)
}

/// The tokens of a segmented text when merges are left out by chance.
pub fn sample(vocab: &Vocab, text: &[u8], compact: bool, Dropout { alpha, seed }: Dropout) -> Vec<Token> {
    // Chances depend on how many symbols there were before, not on bytes, of which compact text has fewer.
    let keys = user_defined(vocab, compact);
    let mut places = vec![0u64; text.len() + 1];
    let (mut at, mut count) = (0, 0);
    while at < text.len() {
        places[at] = count;
        at += match keys.longest(text, at) {
            0 => utf8::length_at(text, at),
            length => length,
        };
        count += 1;
    }
    places[text.len()] = count;
    let seed = dropout::mixed(seed);
    let keep = |begin: usize, middle: usize, end: usize| {
        dropout::chance(seed, places[begin], places[middle], places[end]) >= alpha
    };
    let mut sink = TokenSink { vocab, text, compact, offset: 0, out: Vec::new() };
    segment_whole(vocab, text, compact, keep, &mut sink);
    sink.out
}

/// The text that a token stands for, as it is in the model file; for an unknown one, what is unknown.
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
