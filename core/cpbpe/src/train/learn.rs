//! Words -> characters and merges. `learn` in the reference explains what is learned; this file does it fast.
//!
//! **Few pairs are tracked.** A pair is most frequent at the start or, if a merge makes one of its symbols, right
//! after that merge: from then on other merges can only take places away from it. So a pair that is rarer than a
//! threshold at that moment cannot be the best one as long as the best is at least as frequent as the threshold, and
//! needs neither a list of places nor an entry in the queue until then. When the best falls below the threshold, all
//! pairs of the text are counted again, and tracked from a lower threshold. A good first guess makes this rare; a bad
//! one only costs time.
//!
//! **Pairs that are no longer in the text** come last (see "Nothing is forgotten" in the reference). To know them,
//! every pair must have been tracked from the start. For small texts this is done at once. For others it is rarely
//! needed; if it is, everything starts again.

use std::collections::HashSet;

use crate::error::Error;
use crate::train::changes::{Merge, MergeChanges, NewPair, NewPairs};
use crate::train::characters::{accept_characters, count_characters};
use crate::train::layout::{by_count, lay_out};
use crate::train::occurrences::{PairCounts, WeightBounds};
use crate::train::pairs::PairNumber;
use crate::train::queue::TrackedPair;
use crate::train::text::TextPart;
use crate::train::threads::in_threads;
use crate::train::tracked::TrackedPairs;
use crate::train::values::{LearnSpec, Learned, Merges, Tuning};
use crate::train::words::WordsRef;
use crate::watch::{LearnPhase, Monitor};

/// A merge at more places than this in one part is done by several threads. (Starting a thread takes as long as a
/// thousand places. A quarter of all places are in merges with more than this many.)
const PARALLEL: usize = 1 << 12;

/// Learn merges from words.
///
/// ```
/// use cpbpe::train::{learn, LearnSpec, PieceLimits, Tuning, Words, WordsRef};
/// use cpbpe::watch::Monitor;
///
/// let mut words = Words::default();
/// for word in ["▁low", "▁lower", "▁lowest", "▁newer", "▁newest"] {
///     words.push(word.as_bytes(), 1)?;
/// }
/// let limits = PieceLimits {
///     max_sentencepiece_length: 16,
///     split_by_unicode_script: true,
///     split_by_number: true,
///     split_digits: false,
///     split_by_whitespace: true,
///     treat_whitespace_as_suffix: false,
///     allow_whitespace_only_pieces: false,
/// };
/// let spec = LearnSpec {
///     vocab_size: 17,
///     meta_pieces: 3,
///     limits,
///     character_coverage: 1.0,
///     required_chars: Vec::new(),
///     auto_character_coverage: false,
/// };
/// let words = WordsRef::new(&words.blob, &words.ends, &words.counts)?;
/// let learned = learn(&words, &spec, &Tuning::DEFAULT, 1, &Monitor::default())?;
/// let characters: String = learned.characters.accepted.iter().map(|(c, _)| c).collect();
/// assert_eq!(characters, "ew▁lonrst");
/// let pieces = ["we", "lo", "▁lo", "ne", "st"].map(|piece| piece.as_bytes().to_vec());
/// assert_eq!(learned.merges.pieces, pieces);
/// assert_eq!(learned.merges.frequencies, [4, 3, 3, 2, 2]);
/// # Ok::<(), cpbpe::Error>(())
/// ```
pub fn learn(
    words: &WordsRef,
    spec: &LearnSpec,
    tuning: &Tuning,
    threads: usize,
    monitor: &Monitor,
) -> Result<Learned, Error> {
    // 1. Accept characters.
    monitor.enter(LearnPhase::Characters, words.len());
    let characters = accept_characters(&count_characters(words, monitor)?, spec);
    let mut learned = Learned { characters, merges: Merges::default() };
    learned.merges.symbols.push(learned.characters.total);
    let accepted = &learned.characters.accepted[..];

    // 2. Calculate how many merges are wanted.
    let taken = if spec.auto_character_coverage { 0 } else { accepted.len() };
    let limit = spec.vocab_size.saturating_sub(spec.meta_pieces).saturating_sub(taken);
    if limit == 0 {
        return Ok(learned);
    }

    // 3. Write the text as symbols. With little text, merges are small, and several parts would cost a fifth more.
    monitor.enter(LearnPhase::Pairs, words.len());
    if words.len() > u32::MAX as usize {
        return Err(Error::TextTooLong);
    }
    let parts = if words.len() < tuning.parts_from { 1 } else { threads.max(1) };
    let order = by_count(words)?;
    // Frequent words become pieces, so the last merge is about as frequent as the word of that rank.
    let last_frequency = order.get(limit / 4 * 3).map_or(0, |&at| words.count(at as usize) / 4 * 5);
    let mut track_every_pair = false;
    loop {
        let parts = lay_out(words, &order, accepted, parts, monitor)?;
        track_every_pair |= parts.iter().map(TextPart::size).sum::<usize>() < tuning.small;

        // 4. Merge.
        let tracked = TrackedPairs::new(spec.limits, accepted)?;
        let mut learner = Learner::new(spec, tuning, parts, tracked, last_frequency, monitor);
        if learner.merge_all(limit, track_every_pair, &mut learned.merges)? {
            return Ok(learned);
        }

        // 5. Pairs are needed that are no longer in the text. Start again, and track every pair.
        track_every_pair = true;
        learned.merges.pieces.clear();
        learned.merges.frequencies.clear();
        learned.merges.symbols.truncate(1);
    }
}

/// The state of merging.
struct Learner<'a> {
    /// The options.
    spec: &'a LearnSpec,
    /// The tuning.
    tuning: &'a Tuning,
    /// The text; there is at least one part.
    parts: Vec<TextPart>,
    /// The symbols, and the pairs that can be merged next.
    tracked: TrackedPairs,
    /// A guess, based on words, of how frequent the last merge will be.
    last_frequency: u64,
    /// The changes of the last merge in all parts together, if there are several.
    changes: MergeChanges,
    /// The pairs of the last new symbol that are tracked from now on.
    new_pairs: NewPairs,
    /// Reports progress, and says whether to go on.
    monitor: &'a Monitor,
}

impl<'a> Learner<'a> {
    fn new(
        spec: &'a LearnSpec,
        tuning: &'a Tuning,
        parts: Vec<TextPart>,
        tracked: TrackedPairs,
        last_frequency: u64,
        monitor: &'a Monitor,
    ) -> Learner<'a> {
        let mut changes = MergeChanges::default();
        (0..tracked.symbols()).for_each(|_| changes.add_symbol());
        let new_pairs = NewPairs::default();
        Learner { spec, tuning, parts, tracked, last_frequency, changes, new_pairs, monitor }
    }

    /// Merge until there are `limit` merges or no pair is left. Returns false if pairs must follow that are no longer
    /// in the text, but not all of them were tracked.
    fn merge_all(&mut self, limit: usize, track_every_pair: bool, merges: &mut Merges) -> Result<bool, Error> {
        // 1. Count all pairs, and track those that are frequent enough.
        self.count_and_track(if track_every_pair { Some(0) } else { None })?;
        self.monitor.enter(LearnPhase::Merges, limit);
        let mut known_pieces: HashSet<Vec<u8>> = HashSet::new();
        while merges.pieces.len() < limit {
            self.monitor.advance(merges.pieces.len())?;
            // 2. Take the best pair. If all tracked pairs have become too rare, track more pairs first.
            let Some(number) = self.tracked.pop_best()? else {
                if self.tracked.threshold() <= 1 {
                    return Ok(track_every_pair);
                }
                self.count_and_track(Some(self.next_threshold(merges.pieces.len(), limit)))?;
                continue;
            };
            let TrackedPair { frequency, .. } = self.tracked.get(number);
            let piece = self.tracked.piece(number);
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

        // 2. Replace it in the text. (All parts are alike, so the first one tells how much there is to do.)
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
        for (neighbour, occurrences) in changes.before.iter() {
            self.tracked.lower(neighbour, left, occurrences.weight);
            if let Some(number) = self.tracked.track(neighbour, new, occurrences.weight)? {
                self.new_pairs.before.push(NewPair { neighbour, number });
            }
        }
        // 5. After each place, (right, neighbour) has disappeared, and (new, neighbour) has appeared; if the neighbour
        //    was then merged itself, (new, new) has replaced that.
        for (neighbour, occurrences) in changes.after.iter() {
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

    /// Count all pairs again, and track those that reach the given threshold, or else a guessed one.
    fn count_and_track(&mut self, threshold: Option<u64>) -> Result<(), Error> {
        let monitor = self.monitor;
        // 1. If a threshold is given, most pairs are too rare for it. Upper bounds show which; these are not counted.
        let bounds = match threshold {
            Some(threshold) if threshold > 1 => Some((self.weight_bounds()?, threshold)),
            _ => None,
        };
        let bounds = bounds.as_ref().map(|(bounds, threshold)| (bounds, *threshold));
        // 2. Count.
        let mut counted = in_threads(&self.parts, |part| part.count_pairs(bounds, monitor)).into_iter();
        let mut counts = counted.next().transpose()?.unwrap_or_default();
        for other in counted {
            counts.absorb(&other?)?;
        }
        // 3. Track.
        let threshold = threshold.unwrap_or_else(|| self.first_threshold(&counts));
        self.tracked.restart(&counts, threshold)?;
        drop(counts);
        let (numbers, count) = (self.tracked.numbers(), self.tracked.count());
        in_threads(&mut self.parts, |part| part.track_all(numbers, count, monitor)).into_iter().collect()
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

    /// A guess of how frequent the last merge will be. A guess that is too low costs less than one that is too high.
    /// If words say nothing about it, frequencies still fall roughly like 1 / rank.
    fn first_threshold(&self, counts: &PairCounts) -> u64 {
        let total: u64 = counts.iter().map(|(_, _, occurrences)| occurrences.weight).sum();
        let pieces = self.spec.vocab_size as u64;
        (total / pieces.max(1) / self.tuning.guess.max(1)).max(self.last_frequency).max(1)
    }

    /// A lower threshold, after the last one was reached with only this many of `limit` merges.
    fn next_threshold(&self, merges: usize, limit: usize) -> u64 {
        let threshold = self.tracked.threshold();
        let lower = threshold as f64 * (merges as f64 / limit as f64).powf(1.5) / 2.0;
        (lower as u64).clamp(1, threshold - 1)
    }
}

/// Do something with each part, on threads if there are enough places to work on.
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
