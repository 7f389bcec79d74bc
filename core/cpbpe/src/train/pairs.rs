//! Data by symbol and by pair of symbols: the text of each symbol, and tables for looking up pairs.

use std::cmp::Ordering;

use crate::error::Halt;
use crate::memory::filled;
use crate::memory::prefetch;
use crate::watch::NO_CHECK;

/// The number of a symbol. Numbers from 1 on are the accepted characters, in their order; after them come the symbols
/// that merges make.
pub type SymbolNumber = u32;
/// Marks places without a symbol: between words, and in place of each character that was not accepted. It never merges.
pub const NO_SYMBOL: SymbolNumber = 0;

/// The number of a tracked pair.
pub type PairNumber = u32;
/// The number of a pair that is not tracked.
pub const UNTRACKED: PairNumber = u32::MAX;

/// The texts of all symbols.
#[derive(Default)]
pub struct SymbolTexts {
    /// One after another.
    blob: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl SymbolTexts {
    /// Append a symbol.
    pub fn push(&mut self, text: &[u8]) {
        self.blob.extend_from_slice(text);
        self.ends.push(self.blob.len());
    }

    /// Append a symbol made of two.
    pub fn push_pair(&mut self, left: SymbolNumber, right: SymbolNumber) {
        for symbol in [left, right] {
            let end = self.ends[symbol as usize];
            let begin = end - self.get(symbol).len();
            self.blob.extend_from_within(begin..end);
        }
        self.ends.push(self.blob.len());
    }

    /// How many symbols there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The text of a symbol.
    #[inline]
    pub fn get(&self, symbol: SymbolNumber) -> &[u8] {
        let at = symbol as usize;
        let begin = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.blob[begin..self.ends[at]]
    }

    /// How the texts of two pairs compare.
    pub fn compare(&self, a: (SymbolNumber, SymbolNumber), b: (SymbolNumber, SymbolNumber)) -> Ordering {
        let text = |pair: (SymbolNumber, SymbolNumber)| self.get(pair.0).iter().chain(self.get(pair.1));
        text(a).cmp(text(b))
    }
}

/// Pairs of two symbols below this one are looked up by index, not by hash. They are the most frequent characters.
const DENSE: SymbolNumber = 1 << 8;

/// A table with a value for each pair. Entries are never removed.
#[derive(Clone)]
pub struct PairMap<V> {
    /// The value of a pair that is not in the table.
    absent: V,
    /// The values of pairs of two frequent characters.
    dense: Vec<V>,
    /// A hash table of the others, with open addressing: both symbols as one number, and the value. In an empty slot
    /// the number is 0, which no pair has, because no symbol is 0.
    slots: Vec<(u64, V)>,
    /// How many slots are used.
    taken: usize,
}

impl<V: Copy + PartialEq> PairMap<V> {
    /// An empty table. `absent` is the value of pairs that are not in it.
    pub fn new(absent: V) -> Result<PairMap<V>, Halt> {
        let dense = filled(absent, (DENSE * DENSE) as usize, NO_CHECK)?;
        Ok(PairMap { absent, dense, slots: filled((0, absent), 1 << 8, NO_CHECK)?, taken: 0 })
    }

    /// The value of a pair.
    #[inline]
    pub fn get(&self, left: SymbolNumber, right: SymbolNumber) -> V {
        match dense_index(left, right) {
            Some(at) => self.dense[at],
            None => self.slots[self.slot(packed(left, right))].1,
        }
    }

    /// Prefetch the place where a pair is, or would be.
    #[inline]
    pub fn fetch(&self, left: SymbolNumber, right: SymbolNumber) {
        prefetch(self.slots.as_ptr().wrapping_add(self.first_slot(packed(left, right))));
    }

    /// The value of a pair, to be changed. The pair is added to the table if it was not in it.
    #[inline]
    pub fn get_or_insert(&mut self, left: SymbolNumber, right: SymbolNumber) -> Result<&mut V, Halt> {
        if let Some(at) = dense_index(left, right) {
            return Ok(&mut self.dense[at]);
        }
        let pair = packed(left, right);
        let mut at = self.slot(pair);
        if self.slots[at].0 == 0 {
            if self.taken >= self.slots.len() / 2 {
                self.grow()?;
                at = self.slot(pair);
            }
            self.slots[at].0 = pair;
            self.taken += 1;
        }
        Ok(&mut self.slots[at].1)
    }

    /// All pairs with their values.
    pub fn iter(&self) -> impl Iterator<Item = (SymbolNumber, SymbolNumber, V)> + '_ {
        let dense = (0..).zip(&self.dense).map(|(at, &value)| (at / DENSE, at % DENSE, value));
        let hashed =
            self.slots.iter().map(|&(pair, value)| ((pair >> 32) as SymbolNumber, pair as SymbolNumber, value));
        dense.chain(hashed).filter(|(_, _, value)| *value != self.absent)
    }

    /// The slot at which a pair is looked for first.
    #[inline]
    fn first_slot(&self, pair: u64) -> usize {
        // Symbols are small numbers that this code assigns itself, so nobody can choose them to collide.
        let hash = pair.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (hash ^ hash >> 32) as usize & (self.slots.len() - 1)
    }

    #[inline]
    fn slot(&self, pair: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = self.first_slot(pair);
        while self.slots[at].0 != pair && self.slots[at].0 != 0 {
            at = (at + 1) & mask;
        }
        at
    }

    #[cold]
    fn grow(&mut self) -> Result<(), Halt> {
        let double = filled((0, self.absent), self.slots.len() * 2, NO_CHECK)?;
        for (pair, value) in std::mem::replace(&mut self.slots, double) {
            if pair != 0 {
                let at = self.slot(pair);
                self.slots[at] = (pair, value);
            }
        }
        Ok(())
    }
}

/// The index of a pair of two frequent characters.
#[inline]
fn dense_index(left: SymbolNumber, right: SymbolNumber) -> Option<usize> {
    (left < DENSE && right < DENSE).then_some((left * DENSE + right) as usize)
}

/// Both symbols as one number.
#[inline]
fn packed(left: SymbolNumber, right: SymbolNumber) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_returns_what_was_put_in() {
        let mut map: PairMap<u32> = PairMap::new(UNTRACKED).unwrap();
        for left in (1..1000).step_by(5) {
            for right in 200..300 {
                *map.get_or_insert(left, right).unwrap() = left * 1000 + right;
            }
        }
        let all = || (1..1000).step_by(5).flat_map(|left| (200..300).map(move |right| (left, right)));
        assert!(all().all(|(left, right)| map.get(left, right) == left * 1000 + right));
        assert_eq!([map.get(2, 200), map.get(200, 1), map.get(1000, 5)], [UNTRACKED; 3]);
        assert_eq!(map.iter().count(), all().count());
        assert!(map.iter().all(|(left, right, value)| value == left * 1000 + right));
    }
}
