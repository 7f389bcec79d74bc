//! Pairs of symbols: a table to find them by, and the queue that says which is merged next.

use std::cmp::Ordering;

/// No pair has this number.
pub const NONE: u32 = u32::MAX;

/// Two symbols as one number. Never 0, because no symbol of a pair is.
#[inline]
pub fn key(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

/// A hash table by pair: open addressing, nothing is ever removed.
#[derive(Clone)]
pub struct Map<V> {
    /// Key and value; a key of 0 is an empty slot.
    slots: Vec<(u64, V)>,
    len: usize,
}

impl<V: Copy + Default> Default for Map<V> {
    fn default() -> Map<V> {
        Map { slots: vec![(0, V::default()); 1 << 8], len: 0 }
    }
}

impl<V: Copy + Default> Map<V> {
    #[inline]
    fn slot(&self, key: u64) -> usize {
        let mask = self.slots.len() - 1;
        // Symbols are small numbers that we hand out ourselves, so nobody can choose them to collide.
        let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut at = (hash ^ hash >> 32) as usize & mask;
        while self.slots[at].0 != key && self.slots[at].0 != 0 {
            at = (at + 1) & mask;
        }
        at
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: u64) -> Option<V> {
        let (found, value) = self.slots[self.slot(key)];
        (found != 0).then_some(value)
    }

    /// The value of a key, which is `new` if there was none.
    #[inline]
    pub fn entry(&mut self, key: u64, new: V) -> &mut V {
        let mut at = self.slot(key);
        if self.slots[at].0 == 0 {
            if self.len >= self.slots.len() / 2 {
                self.grow();
                at = self.slot(key);
            }
            self.slots[at] = (key, new);
            self.len += 1;
        }
        &mut self.slots[at].1
    }

    #[cold]
    fn grow(&mut self) {
        let double = vec![(0, V::default()); self.slots.len() * 2];
        for (key, value) in std::mem::replace(&mut self.slots, double) {
            if key != 0 {
                let at = self.slot(key);
                self.slots[at] = (key, value);
            }
        }
    }

    /// All keys and values.
    pub fn iter(&self) -> impl Iterator<Item = (u64, V)> + '_ {
        self.slots.iter().copied().filter(|(key, _)| *key != 0)
    }
}

/// The texts of all symbols.
#[derive(Default)]
pub struct Texts {
    blob: Vec<u8>,
    ends: Vec<usize>,
}

impl Texts {
    /// Append a symbol.
    pub fn push(&mut self, text: &[u8]) {
        self.blob.extend_from_slice(text);
        self.ends.push(self.blob.len());
    }

    /// Append a symbol made of two.
    pub fn push_pair(&mut self, left: u32, right: u32) {
        for symbol in [left, right] {
            let end = self.ends[symbol as usize];
            let begin = end - self.get(symbol).len();
            self.blob.extend_from_within(begin..end);
        }
        self.ends.push(self.blob.len());
    }

    /// The text of a symbol.
    #[inline]
    pub fn get(&self, symbol: u32) -> &[u8] {
        let at = symbol as usize;
        let begin = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.blob[begin..self.ends[at]]
    }

    fn compare(&self, a: (u32, u32), b: (u32, u32)) -> Ordering {
        let text = |pair: (u32, u32)| self.get(pair.0).iter().chain(self.get(pair.1));
        text(a).cmp(text(b))
    }
}

/// A pair in the queue. The best has the highest frequency; then the shortest, then the smallest text.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// How often it stood in the text when this was written.
    pub frequency: u64,
    /// Its length and the first bytes of its text, which decide nearly all comparisons. (With 6 bytes instead of 14, a
    /// tenth of the time of training went into comparing texts.)
    rank: u128,
    /// Its number.
    pub pair: u32,
}

/// A pair that is watched.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// Its first half.
    pub left: u32,
    /// Its second half.
    pub right: u32,
    /// How often it stands in the text.
    pub frequency: u64,
}

impl Entry {
    /// The entry of a pair of `length` characters.
    pub fn new(number: u32, pair: &Pair, length: u16, texts: &Texts) -> Entry {
        const LENGTH: usize = 2;
        let mut bytes = [0; 16];
        bytes[..LENGTH].copy_from_slice(&length.to_be_bytes());
        let text = texts.get(pair.left).iter().chain(texts.get(pair.right));
        bytes[LENGTH..].iter_mut().zip(text).for_each(|(place, &byte)| *place = byte);
        let rank = u128::from_be_bytes(bytes);
        Entry { frequency: pair.frequency, rank, pair: number }
    }
}

/// A heap, the best pair on top. Frequencies only sink after a pair was put in; whoever takes the best one compares
/// its frequency with the true one and puts it back if that has sunk.
#[derive(Default)]
pub struct Queue {
    entries: Vec<Entry>,
}

impl Queue {
    #[inline]
    fn before(a: &Entry, b: &Entry, pairs: &[Pair], texts: &Texts) -> bool {
        match (b.frequency, a.rank).cmp(&(a.frequency, b.rank)) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => {
                let (a, b) = (&pairs[a.pair as usize], &pairs[b.pair as usize]);
                // Two pairs with one text come only with the frequency 0 (see `learn` in `cpbpe/reference_train.py`),
                // and then it does not matter which is first.
                texts.compare((a.left, a.right), (b.left, b.right)) == Ordering::Less
            }
        }
    }

    /// Put a pair in.
    pub fn push(&mut self, entry: Entry, pairs: &[Pair], texts: &Texts) {
        let mut at = self.entries.len();
        self.entries.push(entry);
        while at > 0 {
            let parent = (at - 1) / 2;
            if !Self::before(&entry, &self.entries[parent], pairs, texts) {
                break;
            }
            self.entries[at] = self.entries[parent];
            at = parent;
        }
        self.entries[at] = entry;
    }

    /// The best, if its frequency is still true.
    pub fn peek(&self) -> Option<Entry> {
        self.entries.first().copied()
    }

    /// Take the best out.
    pub fn pop(&mut self, pairs: &[Pair], texts: &Texts) {
        if let Some(last) = self.entries.pop() {
            if !self.entries.is_empty() {
                self.sink(last, pairs, texts);
            }
        }
    }

    /// Give the best its true frequency.
    pub fn update(&mut self, frequency: u64, pairs: &[Pair], texts: &Texts) {
        if let Some(best) = self.entries.first() {
            self.sink(Entry { frequency, ..*best }, pairs, texts);
        }
    }

    /// Put an entry in the place of the best.
    fn sink(&mut self, entry: Entry, pairs: &[Pair], texts: &Texts) {
        let mut at = 0;
        loop {
            let mut child = 2 * at + 1;
            if child >= self.entries.len() {
                break;
            }
            if child + 1 < self.entries.len()
                && Self::before(&self.entries[child + 1], &self.entries[child], pairs, texts)
            {
                child += 1;
            }
            if !Self::before(&self.entries[child], &entry, pairs, texts) {
                break;
            }
            self.entries[at] = self.entries[child];
            at = child;
        }
        self.entries[at] = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_gives_the_most_frequent_then_the_shortest_then_the_smallest() {
        let mut texts = Texts::default();
        for text in ["", "b", "a", "c", "ab", "this is quite long", "a\u{2581}"] {
            texts.push(text.as_bytes());
        }
        let pair = |left, right, frequency| Pair { left, right, frequency };
        // Texts: ba, ab, aab, two that differ at the end only, one more frequent.
        let pairs = [pair(1, 2, 3), pair(2, 1, 3), pair(2, 4, 3), pair(5, 1, 3), pair(5, 2, 3), pair(3, 3, 4)];
        let lengths = [2, 2, 3, 19, 19, 2];
        let mut queue = Queue::default();
        for (number, (pair, length)) in (0..).zip(pairs.iter().zip(lengths)) {
            queue.push(Entry::new(number, pair, length, &texts), &pairs, &texts);
        }
        let mut order = Vec::new();
        while let Some(entry) = queue.peek() {
            order.push(entry.pair);
            queue.pop(&pairs, &texts);
        }
        assert_eq!(order, [5, 1, 0, 2, 4, 3]);
    }

    #[test]
    fn the_map_finds_what_it_was_given() {
        let mut map: Map<u32> = Map::default();
        for left in 1..200 {
            for right in 1..50 {
                *map.entry(key(left, right), 0) = left * 1000 + right;
            }
        }
        assert!((1..200).all(|left| (1..50).all(|right| map.get(key(left, right)) == Some(left * 1000 + right))));
        assert_eq!((map.get(key(200, 1)), map.get(key(1, 200))), (None, None));
        assert_eq!(map.iter().count(), 199 * 49);
    }
}
