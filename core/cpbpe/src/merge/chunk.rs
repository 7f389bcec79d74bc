//! Merges a chunk, the short way or the long way, and splits UNUSED pieces again.
//!
//! sentencepiece splits an UNUSED piece into the pair that was last seen to form it, anywhere in the text. But a piece
//! has only one such pair, so a chunk can be merged by itself, and the piece by itself, too:
//!
//! A pair that forms the piece is seen when the text of the piece consists of two symbols. Until then no merge has
//! crossed either end of this text: it would have made a symbol that reaches beyond it, and symbols only grow. So all
//! merges inside were those that the text has by itself, in the same order, because whether two neighbours form a
//! piece, and which rank it has, depends on their texts only, and of two pairs inside it the better one, or the left
//! one, is merged first in any text. Each merge leaves one symbol less, so by itself the text consists of two symbols
//! once only. (Merges that dropout skips depend on their places. Such texts are not cut.)

use crate::error::Halt;
use crate::memory::with_room;
use crate::merge::choices::{self, Choices};
use crate::merge::dropout::Chances;
use crate::merge::lookup::{Lookup, Sink};
use crate::merge::{long, merge_whole, short};
use crate::vocab::{piece_type, Vocab, NONE};
use crate::watch::{Check, NO_CHECK};

/// Give the symbols of a chunk to `sink`.
pub fn merge_chunk<S: Sink>(vocab: &Vocab, text: &[u8], check: Check, sink: &mut S) -> Result<(), Halt> {
    if vocab.splits_unused {
        let mut sink = UnusedSplitter { vocab, text, sink, outcome: Ok(()) };
        merge(vocab, text, check, &mut sink)?;
        return sink.outcome;
    }
    merge(vocab, text, check, sink)
}

fn merge<S: Sink>(vocab: &Vocab, text: &[u8], check: Check, sink: &mut S) -> Result<(), Halt> {
    if !text.is_empty() && vocab.symbol_length(text, 0) == text.len() {
        sink.make_room(text.len())?;
        sink.symbol(vocab.find_mergeable(text).unwrap_or(NONE), 0, text.len()); // one symbol
        Ok(())
    } else if text.len() <= short::MAX {
        short::merge(vocab, text, |_, _, _| true, sink)
    } else {
        let visit = |begin: usize, end: usize| {
            sink.make_room(end - begin)?;
            let id = (&vocab).mergeable(&text[begin..end]).unwrap_or(NONE);
            sink.symbol(id, begin, end);
            Ok(())
        };
        long::merge(&vocab, text, |_| 0, |_, _, _| Ok(()), |_, _, _| true, check, visit)
    }
}

/// Splits UNUSED pieces on their way to another sink.
struct UnusedSplitter<'a, S> {
    vocab: &'a Vocab,
    text: &'a [u8],
    sink: &'a mut S,
    /// Whether there was enough memory.
    outcome: Result<(), Halt>,
}

impl<S: Sink> Sink for UnusedSplitter<'_, S> {
    fn make_room(&mut self, bytes: usize) -> Result<(), Halt> {
        self.sink.make_room(bytes)
    }

    fn symbol(&mut self, id: u32, begin: usize, end: usize) {
        if id == NONE || self.vocab.kind(id) != piece_type::UNUSED {
            return self.sink.symbol(id, begin, end);
        }
        let mut parts = Moved { sink: &mut *self.sink, by: begin };
        let piece = &self.text[begin..end];
        // (A piece has less than 8,000 bytes, so there is no need to check whether to go on.)
        let outcome = merge_whole(&self.vocab, piece, |_| 0, |_, _, _| true, NO_CHECK, &mut parts);
        self.outcome = std::mem::replace(&mut self.outcome, Ok(())).and(outcome);
    }
}

/// Hands symbols on to a sink of a text in which they begin later.
struct Moved<'a, S> {
    sink: &'a mut S,
    by: usize,
}

impl<S: Sink> Sink for Moved<'_, S> {
    fn make_room(&mut self, bytes: usize) -> Result<(), Halt> {
        self.sink.make_room(bytes)
    }

    fn symbol(&mut self, id: u32, begin: usize, end: usize) {
        self.sink.symbol(id, begin + self.by, end + self.by);
    }
}

/// The same when merges are skipped at random. `before` symbols of the whole text are before the chunk.
pub fn sample_chunk<S: Sink>(
    vocab: &Vocab,
    text: &[u8],
    before: u64,
    chances: &Chances,
    choices: &mut Choices,
    check: Check,
    sink: &mut S,
) -> Result<(), Halt> {
    if text.len() <= short::MAX {
        let keep = |begin, middle, end| chances.keep([begin, middle, end].map(|number| before + number as u64));
        if text.len() <= choices::MAX && choices.merge(vocab, text, keep, sink)? {
            return Ok(());
        }
        return short::merge(vocab, text, keep, sink);
    }
    // Chances depend on numbers of symbols; here symbols are found by where they begin.
    let mut numbers = with_room(text.len() + 1)?;
    let mut number = before;
    for &byte in text {
        number += u64::from(vocab.byte_level.is_some() || byte & 0xC0 != 0x80);
        numbers.push(number.wrapping_sub(1));
    }
    numbers.push(number);
    let keep = |begin: usize, middle: usize, end: usize| chances.keep([begin, middle, end].map(|at| numbers[at]));
    let visit = |begin: usize, end: usize| {
        sink.make_room(end - begin)?;
        let id = (&vocab).mergeable(&text[begin..end]).unwrap_or(NONE);
        sink.symbol(id, begin, end);
        Ok(())
    };
    long::merge(&vocab, text, |_| 0, |_, _, _| Ok(()), keep, check, visit)
}
