//! Merges long chunks. The pairs wait in a queue, the one to be merged next in front: the lowest rank, then the
//! leftmost. Up to `SMALL` bytes it is a heap. In a heap of millions of pairs every step is somewhere else in
//! memory; so for longer chunks there is a list for each rank. Within a list the pairs are merged from left to right,
//! and memory is walked in one direction.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::merge::Lookup;
use crate::prefetch::prefetch;
use crate::utf8;
use crate::vocab::NONE;

/// The longest chunk for a heap.
const SMALL: usize = 1 << 12;
/// There are about as many lists as pieces, and to make so many of them costs no more than to merge a byte.
const LISTS_PER_BYTE: usize = 8;

/// So many pairs before one is merged its memory is asked for.
const AHEAD: usize = 12;

/// A symbol is known by where it begins; there is one of these for every byte, and one for the end.
#[derive(Clone, Copy)]
struct Symbol {
    /// The order of what it makes with the next one, `NONE` if that is no piece.
    order: u32,
    /// How many bytes it has, and `FROZEN` if it takes no part in merging. Not more than a piece has, three times
    /// 8,000 if all are spaces.
    size: u16,
    /// How many bytes the one before it has.
    before: u16,
}

const FROZEN: u16 = 1 << 15;

struct Symbols(Vec<Symbol>);

impl Symbols {
    fn new(text: &[u8], word: impl Fn(usize) -> usize) -> Symbols {
        let mut symbols = vec![Symbol { order: NONE, size: 0, before: 0 }; text.len() + 1];
        let mut at = 0;
        while at < text.len() {
            let length = word(at);
            let (length, frozen) = if length > 0 { (length, FROZEN) } else { (utf8::length_at(text, at), 0) };
            symbols[at].size = length as u16 | frozen;
            at += length;
            symbols[at].before = length as u16;
        }
        Symbols(symbols)
    }

    #[inline]
    fn end(&self, at: usize) -> usize {
        at + usize::from(self.0[at].size & !FROZEN)
    }
}

/// Pairs with their order, first come those of the lowest order, then those further left.
trait Queue {
    fn push(&mut self, order: u32, at: usize);
    fn pop(&mut self) -> Option<(u32, usize)>;

    /// Some pair that will come soon, if it is known.
    fn ahead(&self) -> Option<usize>;
}

/// For chunks of less than 4 GiB.
struct Heap(BinaryHeap<Reverse<u64>>);

impl Queue for Heap {
    fn push(&mut self, order: u32, at: usize) {
        self.0.push(Reverse(u64::from(order) << 32 | at as u64));
    }

    fn pop(&mut self) -> Option<(u32, usize)> {
        self.0.pop().map(|Reverse(pair)| ((pair >> 32) as u32, pair as u32 as usize))
    }

    fn ahead(&self) -> Option<usize> {
        None
    }
}

/// A list of pairs for each order.
struct Lists<P> {
    lists: Vec<Vec<P>>,
    /// The orders whose list is not empty.
    waiting: BinaryHeap<Reverse<u32>>,
    /// The order of the list that is being worked on, this list, and how far we are.
    order: u32,
    list: Vec<P>,
    next: usize,
    /// What came to be meanwhile and must come before the rest of it: in the vocabularies that are trained
    /// next to nothing, so a heap it is.
    urgent: BinaryHeap<Reverse<(u32, P)>>,
}

impl<P> Lists<P> {
    fn new(orders: usize) -> Lists<P>
    where
        P: Ord,
    {
        Lists {
            lists: (0..orders).map(|_| Vec::new()).collect(),
            waiting: BinaryHeap::new(),
            order: 0,
            list: Vec::new(),
            next: 0,
            urgent: BinaryHeap::new(),
        }
    }
}

impl<P: Copy + Ord + TryFrom<usize> + TryInto<usize>> Queue for Lists<P> {
    fn push(&mut self, order: u32, at: usize) {
        let Ok(at) = P::try_from(at) else { return };
        let busy = self.next < self.list.len() || !self.urgent.is_empty();
        if busy && order <= self.order {
            self.urgent.push(Reverse((order, at)));
            return;
        }
        let list = &mut self.lists[order as usize];
        if list.is_empty() {
            self.waiting.push(Reverse(order));
        }
        list.push(at);
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

/// Merge `text`; `word(at)` is the length of a frozen symbol at `at`, or 0. `seen` is told of every pair that makes a
/// piece: its id, begin and middle; `visit` of all symbols in the end, from left to right. `keep` says of a pair whose
/// turn has come, by its begin, middle and end, whether it is merged, or left out for good.
pub fn merge<L: Lookup>(
    lookup: &L,
    text: &[u8],
    word: impl Fn(usize) -> usize,
    seen: impl FnMut(u32, usize, usize),
    keep: impl Fn(usize, usize, usize) -> bool,
    mut visit: impl FnMut(usize, usize),
) {
    let mut symbols = Symbols::new(text, word);
    let orders = lookup.vocab().orders();
    let (orders, lists) = (&orders.0, orders.1);
    if text.len() <= SMALL.max(lists / LISTS_PER_BYTE) && u32::try_from(text.len()).is_ok() {
        run(lookup, text, orders, &mut symbols, seen, keep, Heap(BinaryHeap::new()));
    } else if u32::try_from(text.len()).is_ok() {
        run(lookup, text, orders, &mut symbols, seen, keep, Lists::<u32>::new(lists));
    } else {
        run(lookup, text, orders, &mut symbols, seen, keep, Lists::<usize>::new(lists));
    }
    let mut at = 0;
    while at < text.len() {
        let end = symbols.end(at);
        visit(at, end);
        at = end;
    }
}

fn run<L: Lookup, Q: Queue>(
    lookup: &L,
    text: &[u8],
    orders: &[u32],
    symbols: &mut Symbols,
    mut seen: impl FnMut(u32, usize, usize),
    keep: impl Fn(usize, usize, usize) -> bool,
    mut queue: Q,
) {
    // Look at what the symbol at `at` makes with the next one.
    let mut consider = |symbols: &mut Symbols, queue: &mut Q, at: usize| {
        symbols.0[at].order = NONE;
        let middle = symbols.end(at);
        if middle == text.len() || (symbols.0[at].size | symbols.0[middle].size) & FROZEN != 0 {
            return;
        }
        if let Some(id) = lookup.mergeable(&text[at..symbols.end(middle)]) {
            seen(id, at, middle);
            symbols.0[at].order = orders[id as usize];
            queue.push(orders[id as usize], at);
        }
    };
    let mut at = 0;
    while at < text.len() {
        consider(symbols, &mut queue, at);
        at = symbols.end(at);
    }
    while let Some((order, at)) = queue.pop() {
        if let Some(symbol) = queue.ahead().and_then(|at| symbols.0.get(at)) {
            prefetch(symbol);
        }
        // Stale: gone, or what it makes with its neighbour is something else by now.
        if symbols.0[at].order != order {
            continue;
        }
        let middle = symbols.end(at);
        let end = symbols.end(middle);
        if !keep(at, middle, end) {
            symbols.0[at].order = NONE;
            continue;
        }
        symbols.0[middle].order = NONE;
        symbols.0[at].size = (end - at) as u16;
        symbols.0[end].before = (end - at) as u16;
        if at > 0 {
            consider(symbols, &mut queue, at - usize::from(symbols.0[at].before));
        }
        consider(symbols, &mut queue, at);
    }
}
