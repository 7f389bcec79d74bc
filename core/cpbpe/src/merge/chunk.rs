//! Merges a chunk of a vocabulary without UNUSED pieces, the short way or the long way.

use crate::merge::lookup::{Lookup, Sink};
use crate::merge::{long, short};
use crate::text::utf8;
use crate::vocab::{Vocab, NONE};

/// Give the symbols of a chunk to `sink`.
pub fn merge_chunk<S: Sink>(vocab: &Vocab, text: &[u8], sink: &mut S) {
    if text.first().is_some_and(|&first| utf8::length_by_first(first) >= text.len()) {
        sink.symbol(vocab.find_mergeable(text).unwrap_or(NONE), 0, text.len()); // one character
    } else if text.len() <= short::MAX {
        short::merge(vocab, text, sink);
    } else {
        let visit = |begin: usize, end: usize| {
            let id = (&vocab).mergeable(&text[begin..end]).unwrap_or(NONE);
            sink.symbol(id, begin, end);
        };
        long::merge(&vocab, text, |_| 0, |_, _, _| {}, |_, _, _| true, visit);
    }
}
