//! Merges a chunk of a vocabulary without UNUSED pieces, the short way or the long way.

use crate::error::Halt;
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
        short::merge(vocab, text, sink)
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
