//! The pairs that are tracked during merging, each with its frequency, and which of them is the best.
//!
//! `Tracked` is the part that all kinds of models share. A `Ranking` is the part that differs: `PieceRanking` here is
//! that of the SentencePiece family, and `bytes/tracked.rs` has that of byte-level models.

use crate::error::Halt;
use crate::memory::Grow;
use crate::train::limits::{PieceLimits, PieceProfile, ALWAYS_ALONE};
use crate::train::occurrences::PairCounts;
use crate::train::pairs::{PairMap, PairNumber, SymbolNumber, SymbolTexts, UNTRACKED};
use crate::train::queue::{PairQueue, QueuedPair, TrackedPair};
use crate::train::text::TextPart;

/// Which pairs can become pieces, and which of them is the best.
pub trait Ranking {
    /// Add a new symbol made of two.
    fn add_symbol(&mut self, left: SymbolNumber, right: SymbolNumber);
    /// Whether a pair can become a piece.
    fn joins(&self, left: SymbolNumber, right: SymbolNumber) -> bool;
    /// Empty the queue, and forget all pairs.
    fn clear(&mut self);
    /// Put a pair into the queue.
    fn push(&mut self, number: PairNumber, pairs: &[TrackedPair], texts: &SymbolTexts) -> Result<(), Halt>;
    /// Take out the best pair, or a pair that has become rarer than `cutoff` and came before the best one in the queue.
    fn pop(
        &mut self,
        pairs: &[TrackedPair],
        texts: &SymbolTexts,
        cutoff: u64,
        parts: &[TextPart],
    ) -> Option<PairNumber>;
    /// The pair that will be the best next, unless it has become rarer, or a new pair is better.
    fn likely_next(&self) -> Option<PairNumber>;
    /// Whether a text may become a piece.
    fn allows(&self, text: &[u8]) -> bool;
}

/// All symbols, and the pairs of them that are tracked.
pub struct Tracked<R> {
    /// Decides which pairs can be merged, and has a queue of the pairs that were at least as frequent as `cutoff`. Some
    /// may have become rarer since.
    pub ranking: R,
    /// The text of every symbol.
    texts: SymbolTexts,
    /// By number, all pairs that have been tracked since the last restart, including merged ones.
    pairs: Vec<TrackedPair>,
    /// The numbers of the pairs.
    numbers: PairMap<PairNumber>,
    /// The pairs that can be merged and are not in the queue, in no particular order.
    ///
    /// All of these are rarer than `cutoff`, because pairs only become rarer. So as long as the best pair of the queue
    /// reaches the cutoff, it is the best of all. If none does, the cutoff is lowered, and the pairs that reach it
    /// enter the queue. Most pairs become rarer before their turn comes, many of them rarer than the threshold. A queue
    /// of all pairs took megabytes, and its entries had to be moved down again and again. (With this list, the
    /// instructions for the queue fell from 165 to 114 million for 10 MB of text, and most of the queue stays in a near
    /// cache.)
    waiting: Vec<PairNumber>,
    /// See `waiting`.
    cutoff: u64,
    /// Rarer pairs are not tracked. If this is 0, even pairs that no longer occur are tracked.
    threshold: u64,
}

impl<R: Ranking> Tracked<R> {
    /// No pairs yet, for symbols with these texts. The first text is that of NO_SYMBOL.
    pub fn of(ranking: R, symbols: impl Iterator<Item = impl AsRef<[u8]>>) -> Result<Tracked<R>, Halt> {
        let mut texts = SymbolTexts::default();
        symbols.for_each(|text| texts.push(text.as_ref()));
        Ok(Tracked {
            ranking,
            texts,
            pairs: Vec::new(),
            numbers: PairMap::new(UNTRACKED)?,
            waiting: Vec::new(),
            cutoff: u64::MAX,
            threshold: 0,
        })
    }

    /// The texts of both symbols of a pair, joined.
    pub fn text(&self, number: PairNumber) -> Vec<u8> {
        let TrackedPair { left, right, .. } = self.get(number);
        [self.texts.get(left), self.texts.get(right)].concat()
    }

    /// Take out the best pair, if there is one that reaches the threshold.
    pub fn pop_best(&mut self, parts: &[TextPart]) -> Result<Option<PairNumber>, Halt> {
        loop {
            while let Some(number) = self.ranking.pop(&self.pairs, &self.texts, self.cutoff, parts) {
                if self.pairs[number as usize].frequency >= self.cutoff {
                    return Ok(Some(number));
                }
                self.wait(number)?;
            }
            if !self.lower_cutoff()? {
                return Ok(None);
            }
        }
    }

    fn wait(&mut self, number: PairNumber) -> Result<(), Halt> {
        self.waiting.try_push(number)
    }

    /// Lower the cutoff, so that the best of the waiting pairs enters the queue, and with it those that are at least
    /// half as frequent. Returns false if none reaches the threshold. (The cutoff is at least halved each time, so this
    /// happens at most 63 times.)
    fn lower_cutoff(&mut self) -> Result<bool, Halt> {
        let waiting = self.waiting.iter();
        let highest = waiting.map(|&number| self.pairs[number as usize].frequency).max();
        let Some(highest) = highest.filter(|&highest| highest >= self.threshold) else { return Ok(false) };
        self.cutoff = self.threshold.max(highest - highest / 2);
        let mut waiting = std::mem::take(&mut self.waiting);
        let mut pushed = Ok(());
        waiting.retain(|&number| {
            let frequency = self.pairs[number as usize].frequency;
            if frequency >= self.cutoff && pushed.is_ok() {
                pushed = self.ranking.push(number, &self.pairs, &self.texts);
            }
            // (A pair that has become rarer than the threshold is not tracked any more.)
            frequency < self.cutoff && frequency >= self.threshold
        });
        self.waiting = waiting;
        pushed.map(|()| true)
    }
    /// Forget all pairs, and track those that reach a threshold.
    pub fn restart(&mut self, counts: &PairCounts, threshold: u64) -> Result<(), Halt> {
        self.threshold = threshold;
        self.pairs.clear();
        self.numbers = PairMap::new(UNTRACKED)?;
        self.ranking.clear();
        self.waiting.clear();
        self.cutoff = u64::MAX;
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
        self.texts.len()
    }

    /// How many pairs were tracked since the last restart.
    pub fn count(&self) -> usize {
        self.pairs.len()
    }

    /// The numbers of all tracked pairs.
    pub fn numbers(&self) -> &PairMap<PairNumber> {
        &self.numbers
    }

    /// A pair.
    pub fn get(&self, number: PairNumber) -> TrackedPair {
        self.pairs[number as usize]
    }

    /// Track a new pair if it reaches the threshold and can become a piece.
    #[inline]
    pub fn track(
        &mut self,
        left: SymbolNumber,
        right: SymbolNumber,
        frequency: u64,
    ) -> Result<Option<PairNumber>, Halt> {
        if frequency < self.threshold || !self.ranking.joins(left, right) {
            return Ok(None);
        }
        let number = self.pairs.len() as PairNumber;
        self.pairs.try_push(TrackedPair { left, right, frequency })?;
        *self.numbers.get_or_insert(left, right)? = number;
        if frequency >= self.cutoff {
            self.ranking.push(number, &self.pairs, &self.texts)?;
        } else {
            self.wait(number)?;
        }
        Ok(Some(number))
    }

    /// Record that a pair has become rarer.
    #[inline]
    pub fn lower(&mut self, left: SymbolNumber, right: SymbolNumber, weight: u64) {
        let number = self.numbers.get(left, right);
        if number != UNTRACKED {
            let frequency = &mut self.pairs[number as usize].frequency;
            // The pair that was just merged may lose more than it has, because places where it overlaps itself were
            // replaced before. Its frequency is not used any more.
            *frequency = frequency.wrapping_sub(weight);
        }
    }

    /// Add a new symbol made of two.
    pub fn add_symbol(&mut self, left: SymbolNumber, right: SymbolNumber) -> SymbolNumber {
        let new = self.symbols() as SymbolNumber;
        self.texts.push_pair(left, right);
        self.ranking.add_symbol(left, right);
        new
    }
}

/// The ranking of the SentencePiece family.
pub struct PieceRanking {
    /// Which strings can become pieces.
    limits: PieceLimits,
    /// The profile of every symbol, which decides what it can be joined with.
    profiles: Vec<PieceProfile>,
    /// The queue.
    queue: PairQueue,
}

/// All symbols of a model of the SentencePiece family, and the pairs of them that are tracked.
pub type TrackedPairs = Tracked<PieceRanking>;

impl TrackedPairs {
    /// No pairs yet, of symbols with these texts: characters, or pieces that these limits allow.
    pub fn new(limits: PieceLimits, symbols: &[Vec<u8>]) -> Result<TrackedPairs, Halt> {
        let classes = limits.char_classes()?;
        let mut profiles = vec![PieceProfile::of_character(ALWAYS_ALONE)]; // NO_SYMBOL
        for text in symbols {
            // The limits are for compact text.
            let compact = String::from_utf8_lossy(text).replace('\u{2581}', " ");
            let each = compact.chars().map(|c| PieceProfile::of_character(classes.of(c)));
            profiles.push(each.reduce(|left, right| left.then(&right)).unwrap_or(profiles[0]));
        }
        let ranking = PieceRanking { limits, profiles, queue: PairQueue::default() };
        Tracked::of(ranking, std::iter::once(&[][..]).chain(symbols.iter().map(Vec::as_slice)))
    }
}

impl Ranking for PieceRanking {
    fn add_symbol(&mut self, left: SymbolNumber, right: SymbolNumber) {
        self.profiles.push(self.profiles[left as usize].then(&self.profiles[right as usize]));
    }

    #[inline]
    fn joins(&self, left: SymbolNumber, right: SymbolNumber) -> bool {
        self.limits.join(&self.profiles[left as usize], &self.profiles[right as usize]).is_some()
    }

    fn clear(&mut self) {
        self.queue = PairQueue::default();
    }

    fn push(&mut self, number: PairNumber, pairs: &[TrackedPair], texts: &SymbolTexts) -> Result<(), Halt> {
        let pair = pairs[number as usize];
        let length = self.profiles[pair.left as usize].then(&self.profiles[pair.right as usize]).length;
        self.queue.push(QueuedPair::new(number, &pair, length, texts), pairs, texts)
    }

    fn pop(&mut self, pairs: &[TrackedPair], texts: &SymbolTexts, cutoff: u64, _: &[TextPart]) -> Option<PairNumber> {
        while let Some(best) = self.queue.peek() {
            let frequency = pairs[best.number as usize].frequency;
            if frequency == best.frequency || frequency < cutoff {
                self.queue.pop(pairs, texts);
                return Some(best.number);
            }
            // It has become rarer since it was added.
            self.queue.update(frequency, pairs, texts);
        }
        None
    }

    fn likely_next(&self) -> Option<PairNumber> {
        self.queue.peek().map(|pair| pair.number)
    }

    fn allows(&self, _: &[u8]) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pseudorandom number below `below`.
    fn chance(state: &mut u64, below: u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % below
    }

    #[test]
    fn the_best_of_all_pairs_is_taken_whatever_became_rarer() {
        let limits = PieceLimits {
            max_sentencepiece_length: 16,
            split_by_unicode_script: false,
            split_by_number: false,
            split_digits: false,
            split_by_whitespace: true,
            treat_whitespace_as_suffix: false,
            allow_whitespace_only_pieces: false,
        };
        let accepted: Vec<Vec<u8>> = (b'a'..=b'z').map(|c| vec![c]).collect();
        for (seed, threshold) in (0..60).zip([0, 1, 2, 7, 50].into_iter().cycle()) {
            let mut state = seed;
            let mut tracked = TrackedPairs::new(limits, &accepted).unwrap();
            tracked.restart(&PairCounts::none().unwrap(), threshold).unwrap();
            let mut left: Vec<PairNumber> = Vec::new();
            let highest = [3, 100, 1 << 40][seed as usize % 3];
            for first in 1..=26 {
                for second in 1..=26 {
                    // 1. Track a pair, as merging does. It is often as frequent as others.
                    let frequency = chance(&mut state, highest) >> chance(&mut state, 20);
                    left.extend(tracked.track(first, second, frequency).unwrap());
                    // 2. Make some pairs rarer.
                    for _ in 0..chance(&mut state, 4) {
                        let Some(&number) = left.get(chance(&mut state, 700) as usize) else { continue };
                        let pair = tracked.get(number);
                        tracked.lower(pair.left, pair.right, chance(&mut state, pair.frequency + 1));
                    }
                    // 3. The best pair is the one that a plain search finds. If none reaches the threshold, all pairs
                    //    are tracked again.
                    if chance(&mut state, 3) == 0 {
                        let order = |&&number: &&PairNumber| {
                            (tracked.get(number).frequency, std::cmp::Reverse(tracked.text(number)))
                        };
                        let best = left.iter().max_by_key(order).copied();
                        let best = best.filter(|&number| tracked.get(number).frequency >= threshold);
                        assert_eq!(tracked.pop_best(&[]).unwrap(), best, "{seed}");
                        left.retain(|&number| Some(number) != best);
                    }
                }
            }
            while let Some(number) = tracked.pop_best(&[]).unwrap() {
                left.retain(|&other| other != number);
                let frequency = tracked.get(number).frequency;
                assert!(left.iter().all(|&other| tracked.get(other).frequency <= frequency));
            }
            assert!(left.iter().all(|&number| tracked.get(number).frequency < threshold));
        }
    }
}
