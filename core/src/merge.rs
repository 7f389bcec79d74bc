//! Merges one chunk: its characters become the symbols that no piece joins any more.
//!
//! Symbols are slices of the chunk, so the text of a pair is a slice, too, and one look-up in the vocabulary
//! tells whether it is a piece. Short chunks are searched for their best pair again and again; that is
//! quadratic, and faster than a heap up to `SHORT` characters. Longer ones use a heap.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::model;
use crate::utf8;
use crate::vocab::{Vocab, NONE};

/// Chunks of up to this many characters are searched, not sorted.
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
        self.any(text).filter(|&id| self.0.mergeable(id))
    }
    fn any(&self, text: &[u8]) -> Option<u32> {
        if text.len() >= 8000 {
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
pub fn merge<L: Lookup, S: Sink>(lookup: &L, text: &[u8], sink: &mut S) {
    // One byte more than a character has: the count is an upper bound, good enough to choose.
    if text.len() <= SHORT {
        merge_short(lookup, text, sink);
    } else {
        let mut long = Long::new(text, |_| 0);
        long.run(lookup, text, |_, _, _| {});
        long.for_each(|begin, end| sink.symbol(final_id(lookup, &text[begin..end]), begin, end));
    }
}

fn merge_short<L: Lookup, S: Sink>(lookup: &L, text: &[u8], sink: &mut S) {
    const NEVER: u64 = u64::MAX;
    // Symbol i is bounds[i]..bounds[i + 1]; joined[i] is the rank and the id of it and the next one.
    let mut bounds = [0u8; SHORT + 1];
    let mut joined = [NEVER; SHORT + 1];
    let mut ids = [NONE; SHORT + 1]; // of merged symbols; a single character is looked up at the end
    let mut count = 0;
    let mut at = 0;
    while at < text.len() {
        at += utf8::length_at(text, at);
        count += 1;
        bounds[count] = at as u8;
    }
    let vocab = lookup.vocab();
    let pair = |begin: u8, end: u8| match lookup.mergeable(&text[usize::from(begin)..usize::from(end)]) {
        Some(id) => u64::from(vocab.rank(id)) << 32 | u64::from(id),
        None => NEVER,
    };
    for i in 0..count.saturating_sub(1) {
        joined[i] = pair(bounds[i], bounds[i + 2]);
    }
    while count > 1 {
        // The lowest rank wins; the leftmost of equals, because only a lower rank replaces the best.
        let mut best = 0;
        for i in 1..count - 1 {
            if joined[i] >> 32 < joined[best] >> 32 {
                best = i;
            }
        }
        if joined[best] == NEVER {
            break;
        }
        ids[best] = joined[best] as u32;
        bounds.copy_within(best + 2..=count, best + 1);
        ids.copy_within(best + 2..count, best + 1);
        joined.copy_within(best + 1..count, best);
        count -= 1;
        joined[count - 1] = NEVER;
        if best + 1 < count {
            joined[best] = pair(bounds[best], bounds[best + 2]);
        }
        if best > 0 {
            joined[best - 1] = pair(bounds[best - 1], bounds[best + 1]);
        }
    }
    for i in 0..count {
        let (begin, end) = (usize::from(bounds[i]), usize::from(bounds[i + 1]));
        let id = if ids[i] == NONE { final_id(lookup, &text[begin..end]) } else { ids[i] };
        sink.symbol(id, begin, end);
    }
}

/// A chunk of any length as a linked list of symbols, with a heap of the pairs that may merge.
struct Long {
    /// Where each symbol begins; one more for the end.
    begins: Vec<usize>,
    /// The next symbol that is still there. A symbol swallowed by its left neighbour has `GONE`.
    after: Vec<u32>,
    /// The previous one.
    before: Vec<u32>,
    /// Whether a symbol is frozen.
    frozen: Vec<bool>,
}

const GONE: u32 = u32::MAX;

impl Long {
    /// Cut `text` into symbols; `word(at)` is the length of a frozen one at `at`, or 0.
    fn new(text: &[u8], word: impl Fn(usize) -> usize) -> Long {
        let mut begins = Vec::with_capacity(text.len() + 1);
        let mut frozen = Vec::with_capacity(text.len());
        let mut at = 0;
        while at < text.len() {
            begins.push(at);
            let length = word(at);
            frozen.push(length > 0);
            at += if length > 0 { length } else { utf8::length_at(text, at) };
        }
        begins.push(text.len());
        let count = begins.len() as u32 - 1;
        Long { begins, after: (1..=count).collect(), before: (0..count).map(|i| i.wrapping_sub(1)).collect(), frozen }
    }

    fn end_of(&self, symbol: u32) -> usize {
        self.begins[self.after[symbol as usize] as usize]
    }

    /// Merge until no pair is left. `seen` is told of every pair that makes a piece: its id, begin and middle.
    fn run<L: Lookup>(&mut self, lookup: &L, text: &[u8], mut seen: impl FnMut(u32, usize, usize)) {
        let count = self.after.len() as u32;
        if count < 2 {
            return;
        }
        // Ordered by rank, then position; the end of the pair tells whether it is still what it was.
        type Pair = Reverse<(u64, usize)>;
        let mut consider = |list: &Long, left: u32| -> Option<Pair> {
            let right = list.after[left as usize];
            if right == count || list.frozen[left as usize] || list.frozen[right as usize] {
                return None;
            }
            let (begin, end) = (list.begins[left as usize], list.end_of(right));
            let id = lookup.mergeable(&text[begin..end])?;
            seen(id, begin, list.begins[right as usize]);
            Some(Reverse((u64::from(lookup.vocab().rank(id)) << 32 | u64::from(left), end)))
        };
        let mut heap: BinaryHeap<Pair> = (0..count - 1).filter_map(|left| consider(self, left)).collect();
        while let Some(Reverse((key, end))) = heap.pop() {
            let left = key as u32;
            let right = self.after[left as usize];
            // Stale: the left symbol is gone, or is the last, or what the two make ends elsewhere by now. (If
            // the left one had grown, and the right one with it, the pair would end further on.)
            if right == GONE || right == count || self.end_of(right) != end {
                continue;
            }
            let next = self.after[right as usize];
            self.after[left as usize] = next;
            self.after[right as usize] = GONE;
            if next < count {
                self.before[next as usize] = left;
            }
            let before = self.before[left as usize];
            if before != GONE {
                heap.extend(consider(self, before));
            }
            heap.extend(consider(self, left));
        }
    }

    fn for_each(&self, mut visit: impl FnMut(usize, usize)) {
        let mut symbol = 0;
        while (symbol as usize) < self.after.len() {
            visit(self.begins[symbol as usize], self.end_of(symbol));
            symbol = self.after[symbol as usize];
        }
    }
}

/// Merge a whole text at once: with frozen words, and with UNUSED pieces, which are split again the way they were
/// last seen in it. The depth of splitting is bounded, for the sake of crafted models.
pub fn merge_whole<L: Lookup, S: Sink>(lookup: &L, text: &[u8], word: impl Fn(usize) -> usize, sink: &mut S) {
    let mut splits: HashMap<u32, (usize, usize)> = HashMap::new();
    let vocab = lookup.vocab();
    let mut long = Long::new(text, word);
    long.run(lookup, text, |id, begin, middle| {
        if vocab.kind(id) == model::UNUSED {
            splits.insert(id, (begin, middle));
        }
    });
    long.for_each(|begin, end| split(lookup, text, &splits, begin, end, 0, sink));
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
