//! The pairs that are tracked during merging, each with its frequency, and which of them is the best.

use crate::error::Halt;
use crate::memory::Grow;
use crate::train::limits::{PieceLimits, PieceProfile, ALWAYS_ALONE};
use crate::train::occurrences::PairCounts;
use crate::train::pairs::{PairMap, PairNumber, SymbolNumber, SymbolTexts, UNTRACKED};
use crate::train::queue::{PairQueue, QueuedPair, TrackedPair};

/// All symbols, and the pairs of them that are tracked.
pub struct TrackedPairs {
    /// Which strings can become pieces.
    limits: PieceLimits,
    /// The text of every symbol.
    texts: SymbolTexts,
    /// The profile of every symbol, which decides what it can be joined with.
    profiles: Vec<PieceProfile>,
    /// By number, all pairs that were tracked since the last restart, including merged ones.
    pairs: Vec<TrackedPair>,
    /// The numbers of the pairs.
    numbers: PairMap<PairNumber>,
    /// The pairs that can be merged.
    queue: PairQueue,
    /// Rarer pairs are not tracked. If it is 0, even pairs that no longer occur are tracked.
    threshold: u64,
}

impl TrackedPairs {
    /// No pairs yet, of symbols that have one character each.
    pub fn new(limits: PieceLimits, accepted: &[(char, u64)]) -> Result<TrackedPairs, Halt> {
        let classes = limits.char_classes()?;
        let mut texts = SymbolTexts::default();
        texts.push(b""); // NO_SYMBOL
        let mut profiles = vec![PieceProfile::of_character(ALWAYS_ALONE)];
        for (c, _) in accepted {
            texts.push(c.encode_utf8(&mut [0; 4]).as_bytes());
            // Limits are about compact text.
            let compact = if *c == '\u{2581}' { ' ' } else { *c };
            profiles.push(PieceProfile::of_character(classes.of(compact)));
        }
        Ok(TrackedPairs {
            limits,
            texts,
            profiles,
            pairs: Vec::new(),
            numbers: PairMap::new(UNTRACKED),
            queue: PairQueue::default(),
            threshold: 0,
        })
    }

    /// Forget all pairs, and track those that reach a threshold.
    pub fn restart(&mut self, counts: &PairCounts, threshold: u64) -> Result<(), Halt> {
        self.threshold = threshold;
        self.pairs.clear();
        self.numbers = PairMap::new(UNTRACKED);
        self.queue = PairQueue::default();
        for (left, right, occurrences) in counts.iter() {
            self.track(left, right, occurrences.weight)?;
        }
        Ok(())
    }

    /// Rarer pairs are not tracked.
    pub fn threshold(&self) -> u64 {
        self.threshold
    }

    /// How many symbols there are, including NO_SYMBOL.
    pub fn symbols(&self) -> usize {
        self.profiles.len()
    }

    /// How many pairs were tracked since the last restart.
    pub fn count(&self) -> usize {
        self.pairs.len()
    }

    /// The numbers of all pairs.
    pub fn numbers(&self) -> &PairMap<PairNumber> {
        &self.numbers
    }

    /// A pair.
    pub fn get(&self, number: PairNumber) -> TrackedPair {
        self.pairs[number as usize]
    }

    /// The texts of both its symbols.
    pub fn piece(&self, number: PairNumber) -> Vec<u8> {
        let TrackedPair { left, right, .. } = self.get(number);
        [self.texts.get(left), self.texts.get(right)].concat()
    }

    /// Track a new pair if it reaches the threshold and can become a piece.
    #[inline]
    pub fn track(
        &mut self,
        left: SymbolNumber,
        right: SymbolNumber,
        frequency: u64,
    ) -> Result<Option<PairNumber>, Halt> {
        if frequency < self.threshold {
            return Ok(None);
        }
        let (left_profile, right_profile) = (&self.profiles[left as usize], &self.profiles[right as usize]);
        let Some(profile) = self.limits.join(left_profile, right_profile) else { return Ok(None) };
        let number = self.pairs.len() as PairNumber;
        let pair = TrackedPair { left, right, frequency };
        self.pairs.grow(1)?;
        self.pairs.push(pair);
        *self.numbers.get_or_insert(left, right)? = number;
        self.queue.push(QueuedPair::new(number, &pair, profile.length, &self.texts), &self.pairs, &self.texts)?;
        Ok(Some(number))
    }

    /// Record that a pair has become rarer.
    #[inline]
    pub fn lower(&mut self, left: SymbolNumber, right: SymbolNumber, weight: u64) {
        let number = self.numbers.get(left, right);
        if number != UNTRACKED {
            let frequency = &mut self.pairs[number as usize].frequency;
            // The pair that was just merged may lose more than it has, because its overlaps with itself were replaced
            // before. Its frequency is not used any more.
            *frequency = frequency.wrapping_sub(weight);
        }
    }

    /// Take the best pair out of the queue, if there is one that reaches the threshold.
    pub fn pop_best(&mut self) -> Option<PairNumber> {
        while let Some(best) = self.queue.peek() {
            let frequency = self.pairs[best.number as usize].frequency;
            if frequency == best.frequency {
                if frequency < self.threshold {
                    return None;
                }
                self.queue.pop(&self.pairs, &self.texts);
                return Some(best.number);
            }
            // It has become rarer since it was added.
            if frequency < self.threshold {
                self.queue.pop(&self.pairs, &self.texts);
            } else {
                self.queue.update(frequency, &self.pairs, &self.texts);
            }
        }
        None
    }

    /// Add a new symbol made of two.
    pub fn add_symbol(&mut self, left: SymbolNumber, right: SymbolNumber) -> SymbolNumber {
        let new = self.profiles.len() as SymbolNumber;
        self.texts.push_pair(left, right);
        self.profiles.push(self.profiles[left as usize].then(&self.profiles[right as usize]));
        new
    }
}
