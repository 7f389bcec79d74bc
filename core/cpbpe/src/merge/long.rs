//! Merges long chunks. Pairs wait in a queue, from which the pair with the lowest rank is merged next, the leftmost if
//! several have it. Up to some thousand bytes (see `SMALL`) the queue is a heap. In a heap of millions of pairs, every
//! step would jump to another place in memory. So for longer chunks there is a list of pairs for each rank. Its pairs
//! are merged from left to right, so memory is read in one direction. (For this, ranks are numbered without gaps: see
//! `Vocab::orders`. Such a number is the *order* of a piece, and of a pair that forms it.)

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::error::Halt;
use crate::memory::{filled, prefetch, push_to, with_room, Grow};
use crate::merge::{Lookup, Sink};
use crate::vocab::{piece_type, Vocab, NONE};
use crate::watch::{Check, Checks};

/// Chunks of up to this many bytes use a heap; longer ones do if there are many lists: see `LISTS_PER_BYTE`.
const SMALL: usize = 1 << 12;
/// Making this many empty lists (there are about as many lists as pieces) takes as long as merging a byte.
const LISTS_PER_BYTE: usize = 8;

/// The memory of a pair is prefetched this many pairs before its turn.
const AHEAD: usize = 12;
/// Whether to go on is checked once in this many steps, each of which takes up to ten microseconds.
const CHECK_STEPS: usize = 1 << 12;

/// A symbol, found by the place where it begins. There is an entry for every byte, and one for the end.
#[derive(Clone, Copy)]
struct Symbol {
    /// The order of the piece that it forms with the next symbol; `NONE` if there is no such piece.
    order: u32,
    /// How many bytes it has, and the bit `FROZEN` if it never merges. It has no more bytes than a piece, so less than
    /// 8,000.
    size: u16,
    /// How many bytes the symbol before it has.
    before: u16,
}

const FROZEN: u16 = 1 << 15;

struct Symbols(Vec<Symbol>);

impl Symbols {
    fn new(vocab: &Vocab, text: &[u8], mut key: impl FnMut(usize) -> usize, check: Check) -> Result<Symbols, Halt> {
        let mut symbols = filled(Symbol { order: NONE, size: 0, before: 0 }, text.len() + 1, check)?;
        let (mut at, mut checks) = (0, Checks::new(check, CHECK_STEPS));
        while at < text.len() {
            checks.at(at)?;
            let length = key(at);
            let (length, frozen) = if length > 0 { (length, FROZEN) } else { (vocab.symbol_length(text, at), 0) };
            symbols[at].size = length as u16 | frozen;
            at += length;
            symbols[at].before = length as u16;
        }
        Ok(Symbols(symbols))
    }

    #[inline]
    fn end(&self, at: usize) -> usize {
        at + usize::from(self.0[at].size & !FROZEN)
    }
}

/// Pairs with their order. The lowest order comes first, and the leftmost pair if several have it.
trait Queue {
    fn push(&mut self, order: u32, at: usize) -> Result<(), Halt>;
    fn pop(&mut self) -> Option<(u32, usize)>;

    /// A pair whose turn will come soon, if one is known.
    fn ahead(&self) -> Option<usize>;
}

/// A queue for chunks of less than 4 GiB.
struct HeapQueue(BinaryHeap<Reverse<u64>>);

impl Queue for HeapQueue {
    fn push(&mut self, order: u32, at: usize) -> Result<(), Halt> {
        push_to(&mut self.0, Reverse(u64::from(order) << 32 | at as u64))
    }

    fn pop(&mut self) -> Option<(u32, usize)> {
        self.0.pop().map(|Reverse(pair)| ((pair >> 32) as u32, pair as u32 as usize))
    }

    fn ahead(&self) -> Option<usize> {
        None
    }
}

/// A list of pairs for each order.
struct ListQueue<P> {
    lists: Vec<Vec<P>>,
    /// The orders whose list is not empty.
    waiting: BinaryHeap<Reverse<u32>>,
    /// The order of the list that is being worked on.
    order: u32,
    /// This list.
    list: Vec<P>,
    /// The index of the next pair in this list.
    next: usize,
    /// Pairs that were formed in the meantime and must come before the rest of that list. Trained vocabularies have
    /// hardly any, so a heap is fast enough.
    urgent: BinaryHeap<Reverse<(u32, P)>>,
}

impl<P> ListQueue<P> {
    fn new(orders: usize) -> Result<ListQueue<P>, Halt>
    where
        P: Ord,
    {
        let mut lists = with_room(orders)?;
        lists.resize_with(orders, Vec::new);
        Ok(ListQueue {
            lists,
            waiting: BinaryHeap::new(),
            order: 0,
            list: Vec::new(),
            next: 0,
            urgent: BinaryHeap::new(),
        })
    }
}

impl<P: Copy + Ord + TryFrom<usize> + TryInto<usize>> Queue for ListQueue<P> {
    fn push(&mut self, order: u32, at: usize) -> Result<(), Halt> {
        // (This never fails, because `merge` chooses a type that has room for every place.)
        let Ok(at) = P::try_from(at) else { return Ok(()) };
        let busy = self.next < self.list.len() || !self.urgent.is_empty();
        if busy && order <= self.order {
            return push_to(&mut self.urgent, Reverse((order, at)));
        }
        let list = &mut self.lists[order as usize];
        if list.is_empty() {
            push_to(&mut self.waiting, Reverse(order))?;
        }
        list.try_push(at)
    }

    fn pop(&mut self) -> Option<(u32, usize)> {
        loop {
            let next = self.list.get(self.next).map(|&at| (self.order, at));
            if let Some(&Reverse(urgent)) = self.urgent.peek() {
                if next.is_none_or(|next| urgent < next) {
                    self.urgent.pop();
                    return Some((urgent.0, urgent.1.try_into().ok()?));
                }
            }
            if let Some((order, at)) = next {
                self.next += 1;
                return Some((order, at.try_into().ok()?));
            }
            let Reverse(order) = self.waiting.pop()?;
            self.order = order;
            self.next = 0;
            self.list = std::mem::take(&mut self.lists[order as usize]);
            if !self.list.is_sorted() {
                self.list.sort();
            }
        }
    }

    fn ahead(&self) -> Option<usize> {
        self.list.get(self.next + AHEAD).and_then(|&at| at.try_into().ok())
    }
}

/// Merge `text`. `key(at)` is the length of a user-defined piece at `at`, which is frozen, or 0. `seen` is called for
/// every pair that forms a piece, with the id of the piece and the begin and middle of the pair. `keep` decides whether
/// a pair whose turn has come is merged or is skipped permanently, given its begin, middle and end. In the end, `visit`
/// gets all symbols from left to right.
pub fn merge(
    lookup: Lookup,
    text: &[u8],
    key: impl FnMut(usize) -> usize,
    seen: impl FnMut(u32, usize, usize) -> Result<(), Halt>,
    keep: impl Fn(usize, usize, usize) -> bool,
    check: Check,
    mut visit: impl FnMut(usize, usize) -> Result<(), Halt>,
) -> Result<(), Halt> {
    let mut symbols = Symbols::new(lookup.vocab, text, key, check)?;
    let orders = lookup.vocab.orders()?;
    let (orders, lists) = (&orders.0, orders.1);
    if text.len() <= SMALL.max(lists / LISTS_PER_BYTE) && u32::try_from(text.len()).is_ok() {
        run(lookup, text, orders, &mut symbols, seen, keep, check, HeapQueue(BinaryHeap::new()))?;
    } else if u32::try_from(text.len()).is_ok() {
        run(lookup, text, orders, &mut symbols, seen, keep, check, ListQueue::<u32>::new(lists)?)?;
    } else {
        run(lookup, text, orders, &mut symbols, seen, keep, check, ListQueue::<usize>::new(lists)?)?;
    }
    let (mut at, mut checks) = (0, Checks::new(check, CHECK_STEPS));
    while at < text.len() {
        checks.at(at)?;
        let end = symbols.end(at);
        visit(at, end)?;
        at = end;
    }
    Ok(())
}

#[allow(clippy::too_many_arguments)]
fn run<Q: Queue>(
    lookup: Lookup,
    text: &[u8],
    orders: &[u32],
    symbols: &mut Symbols,
    mut seen: impl FnMut(u32, usize, usize) -> Result<(), Halt>,
    keep: impl Fn(usize, usize, usize) -> bool,
    check: Check,
    mut queue: Q,
) -> Result<(), Halt> {
    // Look up the piece that the symbol at `at` forms with the next one.
    let mut consider = |symbols: &mut Symbols, queue: &mut Q, at: usize| {
        symbols.0[at].order = NONE;
        let middle = symbols.end(at);
        if middle == text.len() || (symbols.0[at].size | symbols.0[middle].size) & FROZEN != 0 {
            return Ok(());
        }
        if let Some(id) = lookup.mergeable(&text[at..symbols.end(middle)]) {
            seen(id, at, middle)?;
            symbols.0[at].order = orders[id as usize];
            queue.push(orders[id as usize], at)?;
        }
        Ok(())
    };
    // 1. Consider all pairs of characters.
    let (mut at, mut checks) = (0, Checks::new(check, CHECK_STEPS));
    while at < text.len() {
        checks.at(at)?;
        consider(symbols, &mut queue, at)?;
        at = symbols.end(at);
    }
    // 2. Take the best pair, again and again.
    let (mut steps, mut checks) = (0, Checks::new(check, CHECK_STEPS));
    while let Some((order, at)) = queue.pop() {
        steps += 1;
        checks.at(steps)?;
        if let Some(symbol) = queue.ahead().and_then(|at| symbols.0.get(at)) {
            prefetch(symbol);
        }
        // Out of date: the symbol is gone, or now forms another piece with its neighbour.
        if symbols.0[at].order != order {
            continue;
        }
        let middle = symbols.end(at);
        let end = symbols.end(middle);
        if !keep(at, middle, end) {
            symbols.0[at].order = NONE;
            continue;
        }
        // 3. Its two symbols become one, which forms new pairs with its neighbours.
        symbols.0[middle].order = NONE;
        symbols.0[at].size = (end - at) as u16;
        symbols.0[end].before = (end - at) as u16;
        if at > 0 {
            consider(symbols, &mut queue, at - usize::from(symbols.0[at].before))?;
        }
        consider(symbols, &mut queue, at)?;
    }
    Ok(())
}

// --- Whole texts, user-defined pieces included ---------------------------------------------------
//
// An UNUSED piece merges like others, so that it can become part of longer pieces. In the end it is split again, into
// the pair that was last seen to form it (`mod.rs` proves that there is only one, except with dropout). Pieces are
// split to a limited depth, because otherwise a crafted model could exhaust the stack.

/// sentencepiece splits UNUSED pieces up to this depth.
const MAX_SPLIT_DEPTH: u32 = 100;

/// Give the symbols of a text to `sink`. `key(at)` is the length of a user-defined piece at `at`, which is frozen, or
/// 0. `keep` is asked before each merge, see `long::merge`.
pub fn merge_whole<S: Sink>(
    lookup: Lookup,
    text: &[u8],
    key: impl FnMut(usize) -> usize,
    keep: impl Fn(usize, usize, usize) -> bool,
    check: Check,
    sink: &mut S,
) -> Result<(), Halt> {
    let mut splits: HashMap<u32, (usize, usize)> = HashMap::new();
    let vocab = lookup.vocab;
    let mut symbols = Vec::new();
    let seen = |id: u32, begin: usize, middle: usize| {
        if vocab.kind(id) == piece_type::UNUSED {
            splits.try_reserve(1).map_err(|_| Halt::OutOfMemory)?;
            splits.insert(id, (begin, middle));
        }
        Ok(())
    };
    let visit = |begin: usize, end: usize| symbols.try_push((begin, end));
    merge(lookup, text, key, seen, keep, check, visit)?;
    let mut checks = Checks::new(check, CHECK_STEPS);
    for (begin, end) in symbols {
        checks.at(begin)?;
        sink.make_room(end - begin)?;
        split(lookup, text, &splits, begin, end, 0, sink);
    }
    Ok(())
}

fn split<S: Sink>(
    lookup: Lookup,
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
    let id = mergeable.filter(|&id| lookup.vocab.kind(id) != piece_type::UNUSED);
    sink.symbol(id.unwrap_or(NONE), begin, end);
}
