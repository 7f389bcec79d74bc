//! Merges a chunk of a vocabulary without UNUSED pieces, the short way or the long way, with or without dropout.

use crate::error::Halt;
use crate::memory::with_room;
use crate::merge::choices::{self, Choices};
use crate::merge::dropout::Chances;
use crate::merge::lookup::{Lookup, Sink};
use crate::merge::{long, short};
use crate::text::utf8;
use crate::vocab::{Vocab, NONE};
use crate::watch::Check;

/// Give the symbols of a chunk to `sink`.
pub fn merge_chunk<S: Sink>(vocab: &Vocab, text: &[u8], check: Check, sink: &mut S) -> Result<(), Halt> {
    if text.first().is_some_and(|&first| utf8::length_by_first(first) >= text.len()) {
        sink.make_room(text.len())?;
        sink.symbol(vocab.find_mergeable(text).unwrap_or(NONE), 0, text.len()); // one character
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
        number += u64::from(byte & 0xC0 != 0x80);
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
