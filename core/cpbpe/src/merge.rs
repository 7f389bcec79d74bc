//! Merges one chunk: its characters become the symbols that no piece joins any more.
//!
//! Symbols are slices of the chunk, so the text of a pair is a slice, too, and one look-up in the vocabulary
//! tells whether it is a piece. Short chunks are searched for their best pair again and again; that is
//! quadratic, and faster than a queue up to `SHORT` bytes. For longer ones see `long.rs`.

use std::collections::HashMap;

use crate::long;
use crate::model;
use crate::table::{Probe, WINDOW};
use crate::utf8;
use crate::vocab::{Vocab, MAX_PIECE, NONE};

/// Chunks of up to this many bytes are searched, not sorted.
const SHORT: usize = 32;
/// sentencepiece splits UNUSED pieces to this depth.
const MAX_SPLIT_DEPTH: u32 = 100;

/// Receives the symbols of a chunk from left to right; an unknown one has the id `NONE`.
pub trait Sink {
    /// The symbol `begin..end` of the chunk.
    fn symbol(&mut self, id: u32, begin: usize, end: usize);
}

/// How the pieces of a vocabulary are found in a chunk.
pub trait Lookup {
    /// The mergeable piece with this text.
    fn mergeable(&self, text: &[u8]) -> Option<u32>;
    /// The piece with this text, of any type.
    fn any(&self, text: &[u8]) -> Option<u32>;
    /// The vocabulary itself.
    fn vocab(&self) -> &Vocab;
}

impl Lookup for &Vocab {
    #[inline]
    fn mergeable(&self, text: &[u8]) -> Option<u32> {
        self.find_mergeable(text)
    }
    #[inline]
    fn any(&self, text: &[u8]) -> Option<u32> {
        self.find(text)
    }
    #[inline]
    fn vocab(&self) -> &Vocab {
        self
    }
}

/// Looks up text as it is in the model file: for normalized text that is not UTF-8 and cannot be compact.
pub struct Raw<'a>(pub &'a Vocab);

impl Lookup for Raw<'_> {
    fn mergeable(&self, text: &[u8]) -> Option<u32> {
        self.any(text).filter(|&id| self.0.pieces.mergeable(id))
    }
    fn any(&self, text: &[u8]) -> Option<u32> {
        if text.len() >= MAX_PIECE {
            None
        } else {
            self.0.id_of(text)
        }
    }
    fn vocab(&self) -> &Vocab {
        self.0
    }
}

/// What is to be given out for a symbol that no UNUSED splitting concerns.
#[inline]
fn final_id<L: Lookup>(lookup: &L, text: &[u8]) -> u32 {
    match lookup.mergeable(text) {
        Some(id) if lookup.vocab().kind(id) != model::UNUSED => id,
        _ => NONE,
    }
}

/// Merge a chunk of a vocabulary without UNUSED pieces.
pub fn merge<S: Sink>(vocab: &Vocab, text: &[u8], sink: &mut S) {
    if text.len() <= SHORT {
        merge_short(vocab, text, sink);
    } else {
        let visit = |begin: usize, end: usize| sink.symbol(final_id(&vocab, &text[begin..end]), begin, end);
        long::merge(&vocab, text, |_| 0, |_, _, _| {}, |_, _, _| true, visit);
    }
}

/// The lowest of some numbers, four at a time, so that no step waits for the one before it.
#[inline(always)]
fn lowest(numbers: &[u64]) -> u64 {
    let mut lowest = [u64::MAX; 4];
    for four in numbers.chunks_exact(4) {
        for (lowest, &number) in lowest.iter_mut().zip(four) {
            *lowest = number.min(*lowest);
        }
    }
    let [a, b, c, d] = lowest;
    a.min(b).min(c.min(d))
}

fn merge_short<S: Sink>(vocab: &Vocab, text: &[u8], sink: &mut S) {
    const NEVER: u64 = u64::MAX;
    let pieces = &vocab.pieces;
    // So that a window may reach beyond the text.
    let mut padded = [0; SHORT + WINDOW];
    padded[..text.len()].copy_from_slice(text);
    // Symbol i begins with the i-th character.
    let mut begins = [0u8; SHORT + 1];
    let mut ends = [0u8; SHORT];
    let (mut before, mut after) = ([0u8; SHORT + 1], [0u8; SHORT]);
    let mut ids = [NONE; SHORT]; // of merged symbols; a single character is looked up at the end
    let mut count = 0;
    let mut at = 0;
    while at < text.len() {
        begins[count] = at as u8;
        at += utf8::length_at(text, at);
        ends[count] = at as u8;
        after[count] = count as u8 + 1;
        count += 1;
        before[count] = count as u8 - 1;
    }
    // For each symbol the piece that it makes with the next one, and the rank and the symbol in one number: the lowest
    // rank wins, and the leftmost symbol of equals.
    let mut joined = [NONE; SHORT];
    let mut order = [NEVER; SHORT];
    let order_of = |i: usize, id: u32| if id == NONE { NEVER } else { u64::from(pieces.rank(id)) << 8 | i as u64 };
    let probe = |begin: u8, end: u8| match padded[usize::from(begin)..].first_chunk() {
        Some(window) if end - begin <= WINDOW as u8 => Some(pieces.probe(window, usize::from(end - begin))),
        _ => None,
    };
    let find = |probe: Option<Probe>, begin: u8, end: u8| match probe {
        Some(probe) => pieces.find_probe(probe),
        None => vocab.find_mergeable(&text[usize::from(begin)..usize::from(end)]).unwrap_or(NONE),
    };
    if text.is_ascii() {
        for i in 0..count.saturating_sub(1) {
            joined[i] = pieces.find_ascii(text[i], text[i + 1]);
        }
    } else {
        // First ask for all of the memory, then look at it.
        for i in 0..count.saturating_sub(1) {
            let _ = probe(begins[i], ends[i + 1]);
        }
        for i in 0..count.saturating_sub(1) {
            joined[i] = find(probe(begins[i], ends[i + 1]), begins[i], ends[i + 1]);
        }
    }
    for i in 0..count {
        order[i] = order_of(i, joined[i]);
    }
    loop {
        // Loops whose end can be foreseen are faster, if they go on a bit longer.
        let mut best = lowest(&order[..SHORT / 2]);
        if count > SHORT / 2 {
            best = best.min(lowest(&order[SHORT / 2..]));
        }
        if best == NEVER {
            break;
        }
        let i = (best & 0xFF) as usize;
        let gone = usize::from(after[i]);
        let next = usize::from(after[gone]);
        ids[i] = joined[i];
        ends[i] = ends[gone];
        after[i] = next as u8;
        before[next] = i as u8;
        order[gone] = NEVER;
        order[i] = NEVER;
        let left = usize::from(before[i]);
        let on_the_left = if i > 0 { probe(begins[left], ends[i]) } else { None };
        if next < count {
            joined[i] = find(probe(begins[i], ends[next]), begins[i], ends[next]);
            order[i] = order_of(i, joined[i]);
        }
        if i > 0 {
            joined[left] = find(on_the_left, begins[left], ends[i]);
            order[left] = order_of(left, joined[left]);
        }
    }
    let mut i = 0;
    while i < count {
        let (begin, end) = (usize::from(begins[i]), usize::from(ends[i]));
        let id = match ids[i] {
            NONE => find(probe(begins[i], ends[i]), begins[i], ends[i]),
            id => id,
        };
        sink.symbol(id, begin, end);
        i = usize::from(after[i]);
    }
}

/// Merge a whole text at once: with frozen words, and with UNUSED pieces, which are split again the way they were
/// last seen in it. The depth of splitting is bounded, for the sake of crafted models. `keep` is asked before a merge, see
/// `long::merge`.
pub fn merge_whole<L: Lookup, S: Sink>(
    lookup: &L,
    text: &[u8],
    word: impl Fn(usize) -> usize,
    keep: impl Fn(usize, usize, usize) -> bool,
    sink: &mut S,
) {
    let mut splits: HashMap<u32, (usize, usize)> = HashMap::new();
    let vocab = lookup.vocab();
    let mut symbols = Vec::new();
    let seen = |id: u32, begin: usize, middle: usize| {
        if vocab.kind(id) == model::UNUSED {
            splits.insert(id, (begin, middle));
        }
    };
    long::merge(lookup, text, word, seen, keep, |begin, end| symbols.push((begin, end)));
    for (begin, end) in symbols {
        split(lookup, text, &splits, begin, end, 0, sink);
    }
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
    let id = mergeable.filter(|&id| lookup.vocab().kind(id) != model::UNUSED);
    sink.symbol(id.unwrap_or(NONE), begin, end);
}
