//! Merges a whole text at once, user-defined pieces included.
//!
//! An UNUSED piece merges like others, so that it can become part of longer pieces. In the end it is split again, into
//! the pair that was last seen to form it (`chunk.rs` proves that there is only one, except with dropout). The depth of splitting is bounded, because otherwise a
//! crafted model could exhaust the stack.

use std::collections::HashMap;

use crate::error::Halt;
use crate::memory::Grow;
use crate::merge::long;
use crate::merge::lookup::{Lookup, Sink};
use crate::vocab::{piece_type, NONE};
use crate::watch::Check;

/// Whether to go on is checked once in this many symbols.
const CHECK_SYMBOLS: usize = 1 << 14;

/// sentencepiece splits UNUSED pieces to this depth.
const MAX_SPLIT_DEPTH: u32 = 100;

/// Give the symbols of a text to `sink`. `key(at)` is the length of a user-defined piece at `at`, or 0: these are
/// frozen. `keep` is asked before each merge, see `long::merge`.
pub fn merge_whole<L: Lookup, S: Sink>(
    lookup: &L,
    text: &[u8],
    key: impl FnMut(usize) -> usize,
    keep: impl Fn(usize, usize, usize) -> bool,
    check: Check,
    sink: &mut S,
) -> Result<(), Halt> {
    let mut splits: HashMap<u32, (usize, usize)> = HashMap::new();
    let vocab = lookup.vocab();
    let mut symbols = Vec::new();
    let seen = |id: u32, begin: usize, middle: usize| {
        if vocab.kind(id) == piece_type::UNUSED {
            splits.try_reserve(1).map_err(|_| Halt::OutOfMemory)?;
            splits.insert(id, (begin, middle));
        }
        Ok(())
    };
    let visit = |begin: usize, end: usize| {
        symbols.grow(1)?;
        symbols.push((begin, end));
        Ok(())
    };
    long::merge(lookup, text, key, seen, keep, check, visit)?;
    for some in symbols.chunks(CHECK_SYMBOLS) {
        check()?;
        for &(begin, end) in some {
            sink.make_room(end - begin)?;
            split(lookup, text, &splits, begin, end, 0, sink);
        }
    }
    Ok(())
}

fn split<L: Lookup, S: Sink>(
    lookup: &L,
    text: &[u8],
    splits: &HashMap<u32, (usize, usize)>,
    begin: usize,
    end: usize,
    depth: u32,
    sink: &mut S,
) {
    let symbol = &text[begin..end];
    if depth > MAX_SPLIT_DEPTH {
        sink.symbol(lookup.any(symbol).unwrap_or(NONE), begin, end);
        return;
    }
    let mergeable = lookup.mergeable(symbol);
    if let Some(&(first, middle)) = mergeable.and_then(|id| splits.get(&id)) {
        let middle = begin + (middle - first);
        split(lookup, text, splits, begin, middle, depth + 1, sink);
        split(lookup, text, splits, middle, end, depth + 1, sink);
        return;
    }
    let id = mergeable.filter(|&id| lookup.vocab().kind(id) != piece_type::UNUSED);
    sink.symbol(id.unwrap_or(NONE), begin, end);
}
