//! The queue that decides which pair is merged next.

use std::cmp::Ordering;

use crate::error::Halt;
use crate::memory::Grow;
use crate::train::pairs::{PairNumber, SymbolNumber, SymbolTexts};

/// A tracked pair: it can become a piece, and its places in the text are known.
#[derive(Clone, Copy, Debug)]
pub struct TrackedPair {
    /// Its first symbol.
    pub left: SymbolNumber,
    /// Its second symbol.
    pub right: SymbolNumber,
    /// How often it occurs in the text now.
    pub frequency: u64,
}

/// A pair in the queue. The best has the highest frequency; among several, the fewest characters; then the smallest
/// text.
#[derive(Clone, Copy, Debug)]
pub struct QueuedPair {
    /// How often it occurred in the text when this entry was made.
    pub frequency: u64,
    /// Its length and the first bytes of its text, which decide nearly all comparisons. (With 6 bytes instead of 14,
    /// a tenth of the time of training went into comparing texts.)
    rank: u128,
    /// Its number.
    pub number: PairNumber,
}

impl QueuedPair {
    /// Pair `number`, of `length` characters.
    pub fn new(number: PairNumber, pair: &TrackedPair, length: u16, texts: &SymbolTexts) -> QueuedPair {
        const LENGTH: usize = 2;
        let mut bytes = [0; 16];
        bytes[..LENGTH].copy_from_slice(&length.to_be_bytes());
        let text = texts.get(pair.left).iter().chain(texts.get(pair.right));
        bytes[LENGTH..].iter_mut().zip(text).for_each(|(place, &byte)| *place = byte);
        QueuedPair { frequency: pair.frequency, rank: u128::from_be_bytes(bytes), number }
    }
}

/// A heap with the best pair on top. While a pair is in it, its frequency can only fall. So when a pair reaches the
/// top, the frequency it had is compared with the true one, and if that is lower, the pair is put back. (The heap of
/// the standard library cannot be used, because comparing two pairs needs the texts of symbols.)
#[derive(Default)]
pub struct PairQueue {
    /// No pair is better than the one at half its index.
    heap: Vec<QueuedPair>,
}

impl PairQueue {
    /// Whether `a` is better than `b`.
    #[inline]
    fn before(a: &QueuedPair, b: &QueuedPair, pairs: &[TrackedPair], texts: &SymbolTexts) -> bool {
        match (b.frequency, a.rank).cmp(&(a.frequency, b.rank)) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => {
                let (a, b) = (&pairs[a.number as usize], &pairs[b.number as usize]);
                // Two pairs have the same text only if their frequency is 0 (see "There are no ties" in the reference),
                // and then it does not matter which of them comes first.
                texts.compare((a.left, a.right), (b.left, b.right)) == Ordering::Less
            }
        }
    }

    /// Add a pair.
    pub fn push(&mut self, pair: QueuedPair, pairs: &[TrackedPair], texts: &SymbolTexts) -> Result<(), Halt> {
        self.heap.grow(1)?;
        let mut at = self.heap.len();
        self.heap.push(pair);
        while at > 0 {
            let parent = (at - 1) / 2;
            if !Self::before(&pair, &self.heap[parent], pairs, texts) {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = pair;
        Ok(())
    }

    /// The best pair, if its frequency is still the true one.
    pub fn peek(&self) -> Option<QueuedPair> {
        self.heap.first().copied()
    }

    /// Remove the best pair.
    pub fn pop(&mut self, pairs: &[TrackedPair], texts: &SymbolTexts) {
        if let Some(last) = self.heap.pop() {
            if !self.heap.is_empty() {
                self.sink(last, pairs, texts);
            }
        }
    }

    /// Give the best pair its true frequency.
    pub fn update(&mut self, frequency: u64, pairs: &[TrackedPair], texts: &SymbolTexts) {
        if let Some(best) = self.heap.first() {
            self.sink(QueuedPair { frequency, ..*best }, pairs, texts);
        }
    }

    /// Replace the best pair by another.
    fn sink(&mut self, pair: QueuedPair, pairs: &[TrackedPair], texts: &SymbolTexts) {
        let mut at = 0;
        loop {
            let mut child = 2 * at + 1;
            if child >= self.heap.len() {
                break;
            }
            if child + 1 < self.heap.len() && Self::before(&self.heap[child + 1], &self.heap[child], pairs, texts) {
                child += 1;
            }
            if !Self::before(&self.heap[child], &pair, pairs, texts) {
                break;
            }
            self.heap[at] = self.heap[child];
            at = child;
        }
        self.heap[at] = pair;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_gives_the_most_frequent_then_the_shortest_then_the_smallest() {
        let mut texts = SymbolTexts::default();
        for text in ["", "b", "a", "c", "ab", "this is quite long", "a\u{2581}"] {
            texts.push(text.as_bytes());
        }
        let pair = |left, right, frequency| TrackedPair { left, right, frequency };
        // Texts: ba, ab, aab, two that differ only at the end, one that is more frequent.
        let pairs = [pair(1, 2, 3), pair(2, 1, 3), pair(2, 4, 3), pair(5, 1, 3), pair(5, 2, 3), pair(3, 3, 4)];
        let lengths = [2, 2, 3, 19, 19, 2];
        let mut queue = PairQueue::default();
        for (number, (pair, length)) in (0..).zip(pairs.iter().zip(lengths)) {
            queue.push(QueuedPair::new(number, pair, length, &texts), &pairs, &texts).unwrap();
        }
        let mut order = Vec::new();
        while let Some(best) = queue.peek() {
            order.push(best.number);
            queue.pop(&pairs, &texts);
        }
        assert_eq!(order, [5, 1, 0, 2, 4, 3]);
    }
}
