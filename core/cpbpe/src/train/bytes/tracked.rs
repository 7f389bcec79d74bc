//! The pairs of a byte-level text that are tracked during merging, and which of them is the best, by either rule of ties.

use std::cmp::Reverse;
use std::collections::binary_heap::{BinaryHeap, PeekMut};
use std::collections::HashSet;

use crate::error::Halt;
use crate::memory::Grow;
use crate::train::bytes::values::{ByteLearnSpec, Ties};
use crate::train::learner::Pairs;
use crate::train::occurrences::PairCounts;
use crate::train::pairs::{PairMap, PairNumber, SymbolNumber, SymbolTexts, UNTRACKED};
use crate::train::queue::TrackedPair;
use crate::train::text::TextPart;

/// A pair in the queue: its frequency when the entry was made, its rank among pairs that are equally frequent, its number.
type Entry = (u64, Reverse<u64>, PairNumber);

/// The rank of a pair whose first place has not been looked up. No place is 0, and no other rank is smaller.
const UNKNOWN: u64 = 0;

/// All symbols, and the pairs of them that are tracked.
pub struct BytePairs {
    ties: Ties,
    /// The most bytes that a piece of more than two can have.
    max_length: u32,
    /// Texts that are never pieces.
    forbidden: HashSet<Vec<u8>>,
    /// The text of every symbol.
    texts: SymbolTexts,
    /// Its length.
    lengths: Vec<u32>,
    /// By number, all pairs that were tracked since the last restart, including merged ones.
    pairs: Vec<TrackedPair>,
    /// For each, how many of its listed places no longer have it. Only `Ties::First` needs this.
    looked: Vec<u32>,
    /// The numbers of the pairs.
    numbers: PairMap<PairNumber>,
    /// The pairs that can be merged and are at least as frequent as `cutoff`; some may have become rarer since.
    ///
    /// A pair only becomes rarer, and its first place only moves on. So an entry that is out of date stands too far in
    /// front; when it reaches the top, it is corrected, and nothing has to be searched for.
    queue: BinaryHeap<Entry>,
    /// The other pairs, in no order. `TrackedPairs` in `train/tracked.rs` says why.
    waiting: Vec<PairNumber>,
    /// See `waiting`.
    cutoff: u64,
    /// Rarer pairs are not tracked; at least 1.
    threshold: u64,
}

impl BytePairs {
    /// No pairs yet, of symbols that are bytes.
    pub fn new(spec: &ByteLearnSpec) -> BytePairs {
        let mut texts = SymbolTexts::default();
        texts.push(b""); // NO_SYMBOL
        spec.byte_order.iter().for_each(|&byte| texts.push(&[byte]));
        let mut lengths = vec![1; 257];
        lengths[0] = 0;
        BytePairs {
            ties: spec.ties,
            max_length: if spec.max_length == 0 { u32::MAX } else { spec.max_length.max(2) },
            forbidden: spec.forbidden.iter().cloned().collect(),
            texts,
            lengths,
            pairs: Vec::new(),
            looked: Vec::new(),
            numbers: PairMap::new(UNTRACKED),
            queue: BinaryHeap::new(),
            waiting: Vec::new(),
            cutoff: u64::MAX,
            threshold: 1,
        }
    }

    /// The text of a pair; `None` if it is never a piece.
    pub fn piece(&self, number: PairNumber) -> Option<Vec<u8>> {
        let TrackedPair { left, right, .. } = self.get(number);
        let piece = [self.texts.get(left), self.texts.get(right)].concat();
        (!self.forbidden.contains(&piece)).then_some(piece)
    }

    /// Take out the best pair, if there is one that reaches the threshold. With `Ties::First`, all text is in one part.
    pub fn pop_best(&mut self, parts: &[TextPart]) -> Result<Option<PairNumber>, Halt> {
        loop {
            while let Some(mut top) = self.queue.peek_mut() {
                let (frequency, Reverse(rank), number) = *top;
                let pair = self.pairs[number as usize];
                if pair.frequency < self.cutoff {
                    PeekMut::pop(top);
                    self.waiting.grow(1)?;
                    self.waiting.push(number);
                    continue;
                }
                let true_rank = match self.ties {
                    Ties::Ids => rank,
                    Ties::First => {
                        let looked = &mut self.looked[number as usize];
                        let place = parts[0].first_place(number, [pair.left, pair.right], looked);
                        place.map_or(u64::MAX, u64::from)
                    }
                };
                if (frequency, rank) == (pair.frequency, true_rank) {
                    PeekMut::pop(top);
                    return Ok(Some(number));
                }
                *top = (pair.frequency, Reverse(true_rank), number);
            }
            if !self.lower_cutoff()? {
                return Ok(None);
            }
        }
    }

    /// Put a pair into the queue, or among those that wait.
    #[inline]
    fn enqueue(&mut self, number: PairNumber) -> Result<(), Halt> {
        let TrackedPair { left, right, frequency } = self.pairs[number as usize];
        if frequency < self.cutoff {
            self.waiting.grow(1)?;
            self.waiting.push(number);
            return Ok(());
        }
        let rank = match self.ties {
            Ties::Ids => u64::from(left) << 32 | u64::from(right),
            Ties::First => UNKNOWN,
        };
        self.queue.try_reserve(1).map_err(|_| Halt::OutOfMemory)?;
        self.queue.push((frequency, Reverse(rank), number));
        Ok(())
    }

    /// Lower the cutoff, so that the best of the waiting pairs enters the queue, and those that are at least half as
    /// frequent. False if none reaches the threshold.
    fn lower_cutoff(&mut self) -> Result<bool, Halt> {
        let frequencies = self.waiting.iter().map(|&number| self.pairs[number as usize].frequency);
        let highest = frequencies.max().filter(|&highest| highest >= self.threshold);
        let Some(highest) = highest else { return Ok(false) };
        self.cutoff = self.threshold.max(highest - highest / 2);
        let mut enqueued = Ok(());
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.retain(|&number| {
            let frequency = self.pairs[number as usize].frequency;
            if frequency >= self.cutoff && enqueued.is_ok() {
                enqueued = self.enqueue(number);
            }
            // (What is rarer than the threshold is not tracked any more.)
            frequency < self.cutoff && frequency >= self.threshold
        });
        self.waiting = waiting;
        enqueued.map(|()| true)
    }
}

impl Pairs for BytePairs {
    fn restart(&mut self, counts: &PairCounts, threshold: u64) -> Result<(), Halt> {
        self.threshold = threshold.max(1);
        self.pairs.clear();
        self.looked.clear();
        self.numbers = PairMap::new(UNTRACKED);
        self.queue.clear();
        self.waiting.clear();
        self.cutoff = u64::MAX;
        for (left, right, occurrences) in counts.iter() {
            self.track(left, right, occurrences.weight)?;
        }
        Ok(())
    }

    fn threshold(&self) -> u64 {
        self.threshold
    }

    fn symbols(&self) -> usize {
        self.lengths.len()
    }

    fn count(&self) -> usize {
        self.pairs.len()
    }

    fn numbers(&self) -> &PairMap<PairNumber> {
        &self.numbers
    }

    fn get(&self, number: PairNumber) -> TrackedPair {
        self.pairs[number as usize]
    }

    #[inline]
    fn track(&mut self, left: SymbolNumber, right: SymbolNumber, frequency: u64) -> Result<Option<PairNumber>, Halt> {
        let length = self.lengths[left as usize] + self.lengths[right as usize];
        if frequency < self.threshold || length > self.max_length {
            return Ok(None);
        }
        let number = self.pairs.len() as PairNumber;
        self.pairs.grow(1)?;
        self.pairs.push(TrackedPair { left, right, frequency });
        if self.ties == Ties::First {
            self.looked.grow(1)?;
            self.looked.push(0);
        }
        *self.numbers.get_or_insert(left, right)? = number;
        self.enqueue(number)?;
        Ok(Some(number))
    }

    #[inline]
    fn lower(&mut self, left: SymbolNumber, right: SymbolNumber, weight: u64) {
        let number = self.numbers.get(left, right);
        if number != UNTRACKED {
            let frequency = &mut self.pairs[number as usize].frequency;
            // (As in `TrackedPairs`: the pair that was just merged may lose more than it has.)
            *frequency = frequency.wrapping_sub(weight);
        }
    }

    fn add_symbol(&mut self, left: SymbolNumber, right: SymbolNumber) -> SymbolNumber {
        let new = self.lengths.len() as SymbolNumber;
        self.texts.push_pair(left, right);
        self.lengths.push(self.lengths[left as usize] + self.lengths[right as usize]);
        new
    }
}
