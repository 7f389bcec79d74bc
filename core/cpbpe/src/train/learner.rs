//! Merging: the part that all kinds of models share, whatever the pairs are and whichever of them is the best.
//!
//! **Few pairs are tracked.** A pair is most frequent at the start or, if a merge makes one of its symbols, right after
//! that merge: from then on, other merges can only take places away from it. So a pair that is rarer than a threshold
//! at that moment cannot be the best one as long as the best is at least as frequent as the threshold. Until then it
//! needs neither a list of places nor an entry in the queue. When the best pair falls below the threshold, all pairs of
//! the text are counted again, and tracked from a lower threshold. A good first guess makes this rare; a bad one only
//! takes more time.

use std::collections::HashSet;

use crate::error::Error;
use crate::memory::zeros;
use crate::train::changes::{Merge, MergeChanges, NewPair, NewPairs};
use crate::train::occurrences::{PairCounts, WeightBounds};
use crate::train::pairs::PairNumber;
use crate::train::queue::TrackedPair;
use crate::train::text::TextPart;
use crate::train::threads::in_threads;
use crate::train::tracked::{Ranking, Tracked};
use crate::train::values::{Merges, Tuning};
use crate::watch::{LearnPhase, Monitor};

/// A merge at more places than this in one part is divided among several threads. (Starting a thread takes as long as a
/// thousand places. A quarter of all places are in merges with more places than this.)
const PARALLEL: usize = 1 << 12;

/// The memory of pairs is prefetched this many steps before they are looked up.
const AHEAD: usize = 8;

/// The state of merging.
pub struct Learner<'a, R> {
    /// How many pieces the model should have.
    vocab_size: usize,
    /// Pairs that are rarer than this are never merged; at least 1.
    least: u64,
    /// The tuning.
    tuning: &'a Tuning,
    /// The text; there is at least one part.
    parts: Vec<TextPart>,
    /// The symbols, and the pairs that can be merged next.
    tracked: Tracked<R>,
    /// An estimate, based on words, of how frequent the last merge will be.
    last_frequency: u64,
    /// The changes of the last merge in all parts together, if there are several parts.
    changes: MergeChanges,
    /// The pairs of the last new symbol that are tracked from now on.
    new_pairs: NewPairs,
    /// Reports progress, and says whether to go on.
    monitor: &'a Monitor,
}

impl<'a, R: Ranking> Learner<'a, R> {
    /// A learner that has not merged anything. `last_frequency`: an estimate of how frequent the last merge will be.
    pub fn new(
        (vocab_size, least): (usize, u64),
        tuning: &'a Tuning,
        parts: Vec<TextPart>,
        tracked: Tracked<R>,
        last_frequency: u64,
        monitor: &'a Monitor,
    ) -> Learner<'a, R> {
        let mut changes = MergeChanges::default();
        (0..tracked.symbols()).for_each(|_| changes.add_symbol());
        let new_pairs = NewPairs::default();
        Learner { vocab_size, least, tuning, parts, tracked, last_frequency, changes, new_pairs, monitor }
    }

    /// Merge until there are `limit` merges or no pair is left. `threshold` says which pairs are tracked at first, as in
    /// `count_and_track`. Returns false if the next pairs are no longer in the text and not all of them were tracked.
    pub fn merge_all(&mut self, limit: usize, threshold: Option<u64>, merges: &mut Merges) -> Result<bool, Error> {
        // 1. Count all pairs, and track those that are frequent enough.
        self.count_and_track(threshold)?;
        self.monitor.enter(LearnPhase::Merges, limit);
        let mut known_pieces: HashSet<Vec<u8>> = HashSet::new();
        while merges.pieces.len() < limit {
            self.monitor.advance(merges.pieces.len())?;
            // 2. Take the best pair. If all tracked pairs have become too rare, track more pairs first.
            let Some(number) = self.tracked.pop_best(&self.parts)? else {
                if self.tracked.threshold() <= self.least {
                    return Ok(threshold == Some(0));
                }
                self.count_and_track(Some(self.next_threshold(merges.pieces.len(), limit)))?;
                continue;
            };
            // (The text of the next pair is fetched while this one is merged.)
            if let Some(next) = self.tracked.ranking.likely_next() {
                self.parts.iter().for_each(|part| part.fetch_first(next));
            }
            let TrackedPair { left, right, frequency } = self.tracked.get(number);
            let piece = self.tracked.text(number);
            if !self.tracked.ranking.allows(&piece) {
                continue;
            }
            let mut symbols = merges.symbols.last().copied().unwrap_or(0);
            if frequency > 0 {
                // 3. Merge it. Its text is not a piece yet (see "There are no ties" in the reference).
                symbols -= self.merge(number)?;
            } else {
                // 4. It is no longer in the text, so there is nothing to merge. Only such a pair can have the text of a
                //    piece that already exists.
                if known_pieces.is_empty() {
                    known_pieces.extend(merges.pieces.iter().cloned());
                }
                if !known_pieces.insert(piece.clone()) {
                    continue;
                }
            }
            merges.pairs.push([left - 1, right - 1]);
            merges.pieces.push(piece);
            merges.frequencies.push(frequency);
            merges.symbols.push(symbols);
        }
        Ok(true)
    }

    /// Merge a pair everywhere. Returns by how many symbols this shortens the text.
    fn merge(&mut self, number: PairNumber) -> Result<u64, Error> {
        let monitor = self.monitor;
        // 1. Make a symbol for it.
        let TrackedPair { left, right, .. } = self.tracked.get(number);
        let new = self.tracked.add_symbol(left, right);
        let merge = Merge { number, left, right, new };
        self.changes.add_symbol();
        self.new_pairs.clear();

        // 2. Replace it in the text. (All parts are alike, so the first one tells how much work there is.)
        let places = self.parts[0].listed(number);
        in_parts(&mut self.parts, places, |part| part.merge(merge, monitor))?;

        // 3. Add up the changes in all parts.
        let changes = if let [only] = &self.parts[..] {
            &only.changes
        } else {
            self.changes.clear();
            self.parts.iter().for_each(|part| self.changes.absorb(&part.changes));
            &self.changes
        };
        let merged = changes.merged;

        // 4. Before each place, a pair (neighbour, left) has disappeared, and a pair (neighbour, new) has appeared.
        for (step, (neighbour, occurrences)) in changes.before.iter().enumerate() {
            if let Some(later) = changes.before.symbol(step + AHEAD) {
                self.tracked.numbers().fetch(later, left);
                self.tracked.numbers().fetch(later, new);
            }
            self.tracked.lower(neighbour, left, occurrences.weight);
            if let Some(number) = self.tracked.track(neighbour, new, occurrences.weight)? {
                self.new_pairs.before.push(NewPair { neighbour, number });
            }
        }
        // 5. After each place, (right, neighbour) has disappeared, and (new, neighbour) has appeared; if the neighbour
        //    was then merged itself, (new, new) has replaced that.
        for (step, (neighbour, occurrences)) in changes.after.iter().enumerate() {
            if let Some(later) = changes.after.symbol(step + AHEAD) {
                self.tracked.numbers().fetch(right, later);
                self.tracked.numbers().fetch(new, later);
            }
            self.tracked.lower(right, neighbour, occurrences.weight);
            let moments = if neighbour == left { changes.new_beside_new.weight } else { 0 };
            if let Some(number) = self.tracked.track(new, neighbour, occurrences.weight - moments)? {
                self.new_pairs.after.push(NewPair { neighbour, number });
            }
        }
        if changes.new_beside_new.places > 0 {
            self.new_pairs.with_itself = self.tracked.track(new, new, changes.new_beside_new.weight)?;
        }

        // 6. Record where the new pairs are.
        let new_pairs = &self.new_pairs;
        in_parts(&mut self.parts, merged.places as usize, |part| part.track_new(merge, new_pairs, monitor))?;
        Ok(merged.weight)
    }

    /// Count all pairs again, and track those that reach the given threshold or, if none is given, an estimated one.
    fn count_and_track(&mut self, threshold: Option<u64>) -> Result<(), Error> {
        let monitor = self.monitor;
        // 1. If a threshold is given, most pairs are too rare for it. Upper bounds show which ones, and these are not
        //    counted.
        let bounds = match threshold {
            Some(threshold) if threshold > 1 => Some((self.weight_bounds()?, threshold)),
            _ => None,
        };
        let bounds = bounds.as_ref().map(|(bounds, threshold)| (bounds, *threshold));
        // 2. Count.
        let mut counted = in_threads(&self.parts, |part| part.count_pairs(bounds, monitor)).into_iter();
        let mut counts = match counted.next() {
            Some(counts) => counts?,
            None => PairCounts::none()?,
        };
        for other in counted {
            counts.absorb(&other?)?;
        }
        // 3. Track.
        let threshold = threshold.unwrap_or_else(|| self.first_threshold(&counts));
        self.tracked.restart(&counts, threshold)?;
        let numbers = self.tracked.numbers();
        // (All parts are alike. With a sixteenth more than an equal share, nearly all lists of places have enough
        // room.)
        let parts = self.parts.len() as u32;
        let more = if parts == 1 { 0 } else { 16 };
        let mut rooms = zeros(self.tracked.count())?;
        for (left, right, occurrences) in counts.iter() {
            if let Some(room) = rooms.get_mut(numbers.get(left, right) as usize) {
                let places = occurrences.places.div_ceil(parts);
                *room = places + places.checked_div(more).unwrap_or(0);
            }
        }
        drop(counts);
        in_threads(&mut self.parts, |part| part.track_all(numbers, &rooms, monitor)).into_iter().collect()
    }

    /// Upper bounds of the weights of all pairs.
    fn weight_bounds(&self) -> Result<WeightBounds, Error> {
        let places: usize = self.parts.iter().map(TextPart::size).sum();
        let bits = places.ilog2().clamp(10, 24);
        let mut bounded = in_threads(&self.parts, |part| part.weight_bounds(bits, self.monitor)).into_iter();
        let mut bounds = bounded.next().unwrap_or_else(|| Ok(WeightBounds::new(bits)?))?;
        for other in bounded {
            bounds.absorb(&other?);
        }
        Ok(bounds)
    }

    /// An estimate of how frequent the last merge will be. An estimate that is too low costs less time than one that is
    /// too high. If the words do not help, frequencies still fall roughly like 1 / rank.
    fn first_threshold(&self, counts: &PairCounts) -> u64 {
        let total: u64 = counts.iter().map(|(_, _, occurrences)| occurrences.weight).sum();
        let pieces = self.vocab_size as u64;
        (total / pieces.max(1) / self.tuning.guess.max(1)).max(self.last_frequency).max(self.least)
    }

    /// A lower threshold, if only this many of `limit` merges were made before the last one was reached.
    fn next_threshold(&self, merges: usize, limit: usize) -> u64 {
        let threshold = self.tracked.threshold();
        let lower = threshold as f64 * (merges as f64 / limit as f64).powf(1.5) / 2.0;
        (lower as u64).clamp(self.least, self.least.max(threshold - 1))
    }
}

/// Do some work on each part. If there are enough places to work on, threads are used.
fn in_parts<F>(parts: &mut [TextPart], places: usize, work: F) -> Result<(), Error>
where
    F: Fn(&mut TextPart) -> Result<(), Error> + Sync,
{
    if parts.len() > 1 && places > PARALLEL {
        in_threads(parts, work).into_iter().collect()
    } else {
        parts.iter_mut().try_for_each(work)
    }
}
