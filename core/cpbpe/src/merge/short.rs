//! Merges short chunks, on the stack: the symbols are a linked list in arrays, and the best pair is searched for again
//! after every merge.

use crate::error::Halt;
use crate::merge::Sink;
use crate::vocab::pieces::{Probe, WINDOW};
use crate::vocab::{Vocab, NONE};

/// Chunks of up to this many bytes are short. They have at most as many symbols.
pub const MAX: usize = 32;
/// The order of a symbol that forms no piece with the next one.
const NEVER: u64 = u64::MAX;

/// The symbols of a chunk. Symbol `i` begins with the `i`-th character. A symbol that is absorbed by the one before it
/// no longer exists, and the others keep their numbers.
struct Symbols {
    /// How many characters there are.
    count: usize,
    /// Where each symbol begins and ends in the chunk.
    begins: [u8; MAX + 1],
    ends: [u8; MAX],
    /// The symbols to the left and to the right of each.
    before: [u8; MAX + 1],
    after: [u8; MAX],
}

impl Symbols {
    /// The symbols of a chunk in which every byte is a symbol.
    const BYTES: Symbols = {
        let mut symbols =
            Symbols { count: MAX, begins: [0; MAX + 1], ends: [0; MAX], before: [0; MAX + 1], after: [0; MAX] };
        let mut i = 0;
        while i < MAX {
            symbols.begins[i] = i as u8;
            (symbols.ends[i], symbols.after[i], symbols.before[i + 1]) = (i as u8 + 1, i as u8 + 1, i as u8);
            i += 1;
        }
        symbols
    };

    /// The symbols of a text before anything is merged: its characters, or its bytes.
    #[inline(always)]
    fn new(vocab: &Vocab, text: &[u8], is_ascii: bool) -> Symbols {
        if is_ascii {
            return Symbols { count: text.len(), ..Symbols::BYTES };
        }
        let mut symbols =
            Symbols { count: 0, begins: [0; MAX + 1], ends: [0; MAX], before: [0; MAX + 1], after: [0; MAX] };
        let mut count = 0;
        let mut at = 0;
        while at < text.len() {
            symbols.begins[count] = at as u8;
            at += vocab.symbol_length(text, at);
            symbols.ends[count] = at as u8;
            symbols.after[count] = count as u8 + 1;
            count += 1;
            symbols.before[count] = count as u8 - 1;
        }
        symbols.count = count;
        symbols
    }

    /// Join symbol `i` and the next one. Returns the symbol that no longer exists, and the one after it.
    #[inline(always)]
    fn join(&mut self, i: usize) -> (usize, usize) {
        let gone = usize::from(self.after[i]);
        let next = usize::from(self.after[gone]);
        self.ends[i] = self.ends[gone];
        self.after[i] = next as u8;
        self.before[next] = i as u8;
        (gone, next)
    }
}

/// The lowest of some numbers, found four at a time so that no step waits for the one before it.
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

/// Give the symbols of a chunk to `sink`. `keep` decides whether a pair whose turn has come is merged or skipped
/// permanently, given how many characters are before its begin, middle and end.
#[inline(always)]
pub fn merge<S: Sink>(
    vocab: &Vocab,
    text: &[u8],
    keep: impl Fn(usize, usize, usize) -> bool,
    sink: &mut S,
) -> Result<(), Halt> {
    sink.make_room(text.len())?;
    let pieces = &vocab.pieces;
    // A piece is looked up in two steps: `probe` prefetches the memory of the answer, and `find` reads it. The chunk is
    // padded, because the window of a probe may reach beyond its end.
    let mut padded = [0; MAX + WINDOW];
    padded[..text.len()].copy_from_slice(text);
    let probe = |begin: u8, end: u8| match padded[usize::from(begin)..].first_chunk() {
        Some(window) if end - begin <= WINDOW as u8 => Some(pieces.probe(window, usize::from(end - begin))),
        _ => None,
    };
    let find = |probe: Option<Probe>, begin: u8, end: u8| match probe {
        Some(probe) => pieces.find_probe(probe),
        None => vocab.find_mergeable(&text[usize::from(begin)..usize::from(end)]).unwrap_or(NONE),
    };

    // 1. Every character or byte is a symbol. (`ids` are those of merged symbols; characters are looked up in step 4.)
    let is_ascii = text.is_ascii();
    let mut symbols = Symbols::new(vocab, text, is_ascii);
    let count = symbols.count;
    let mut ids = [NONE; MAX];

    // 2. For each symbol, look up the piece that it forms with the next one.
    let mut joined = [NONE; MAX];
    if is_ascii {
        for (joined, pair) in joined.iter_mut().zip(text.windows(2)) {
            *joined = pieces.find_ascii(pair[0], pair[1]);
        }
    } else {
        // Prefetch all of the memory first, and read it afterwards.
        for i in 0..count.saturating_sub(1) {
            let _ = probe(symbols.begins[i], symbols.ends[i + 1]);
        }
        for (i, joined) in joined.iter_mut().enumerate().take(count.saturating_sub(1)) {
            let (begin, end) = (symbols.begins[i], symbols.ends[i + 1]);
            *joined = find(probe(begin, end), begin, end);
        }
    }
    // The rank of that piece and the symbol, as one number: the lowest rank wins, and the leftmost symbol if several
    // have it.
    let order_of = |i: usize, id: u32| if id == NONE { NEVER } else { u64::from(pieces.rank(id)) << 8 | i as u64 };
    let mut order = [NEVER; MAX];
    for i in 0..count {
        order[i] = order_of(i, joined[i]);
    }

    // 3. Merge the best pair until there is none.
    loop {
        // (A loop whose length is known is faster, even if it looks at more places than there are symbols.)
        let mut best = lowest(&order[..MAX / 2]);
        if count > MAX / 2 {
            best = best.min(lowest(&order[MAX / 2..]));
        }
        if best == NEVER {
            break;
        }
        let i = (best & 0xFF) as usize;
        let middle = usize::from(symbols.after[i]);
        if !keep(i, middle, usize::from(symbols.after[middle])) {
            order[i] = NEVER;
            continue;
        }
        ids[i] = joined[i];
        let (gone, next) = symbols.join(i);
        order[gone] = NEVER;
        order[i] = NEVER;
        // The new symbol forms new pairs with its neighbours. Memory for the left one is prefetched while the right one
        // is looked up.
        let (begin, end) = (symbols.begins[i], symbols.ends[i]);
        let left = usize::from(symbols.before[i]);
        let left_begin = symbols.begins[left];
        let left_probe = if i > 0 { probe(left_begin, end) } else { None };
        if next < count {
            let next_end = symbols.ends[next];
            joined[i] = find(probe(begin, next_end), begin, next_end);
            order[i] = order_of(i, joined[i]);
        }
        if i > 0 {
            joined[left] = find(left_probe, left_begin, end);
            order[left] = order_of(left, joined[left]);
        }
    }

    // 4. Return what is left, from left to right.
    let mut i = 0;
    while i < count {
        let (begin, end) = (symbols.begins[i], symbols.ends[i]);
        let id = match ids[i] {
            NONE => find(probe(begin, end), begin, end),
            id => id,
        };
        sink.symbol(id, usize::from(begin), usize::from(end));
        i = usize::from(symbols.after[i]);
    }
    Ok(())
}
