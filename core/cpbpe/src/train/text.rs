//! One part of the text during merging: its symbols, and where each tracked pair is.
//!
//! All words are in one array, with NO_SYMBOL before and after each. A symbol of n characters takes n places: the
//! first and the last of them hold it, and those between have no meaning. So both neighbours of a symbol are found
//! without links, and a merge writes three places, mostly in one cache line. It follows that:
//! * The symbol that ends before place p is `text[p - 1]`; the one that begins after a symbol at p is at `p + length`.
//! * Once a symbol that began at some place has been merged, that place never holds the same symbol again. If the
//!   symbol was the left half of the merge, the place holds the new symbol. If it was the right half, the place holds
//!   NO_SYMBOL or, if it is the last one, the new symbol. So a list of places may keep places that no longer have the
//!   pair, because the text shows which ones these are.

use crate::error::{Error, Halt};
use crate::memory::prefetch;
use crate::memory::{with_room, Grow};
use crate::train::changes::{Merge, MergeChanges, NewPairs};
use crate::train::occurrences::{Occurrences, PairCounts, WeightBounds};
use crate::train::pairs::{PairMap, PairNumber, SymbolNumber, NO_SYMBOL, UNTRACKED};
use crate::train::runs::Runs;
use crate::train::threads::CHECK_INTERVAL;
use crate::watch::Monitor;

/// The text is prefetched this many places before it is changed, so that the processor does not have to wait for
/// memory. (Prefetching 32 places and then working on all of them made learning take 1.1 times as long.)
const AHEAD: usize = 32;

/// One part of the text.
#[derive(Default)]
pub struct TextPart {
    /// The symbol at each place, as explained above.
    text: Vec<SymbolNumber>,
    /// The counts of its words.
    runs: Runs,
    /// The length of each symbol, in characters.
    lengths: Vec<u32>,
    /// For each tracked pair, the places where it is or was, in ascending order.
    places: Vec<Vec<u32>>,
    /// The changes of the last merge.
    pub changes: MergeChanges,
    /// Where the last merge put its symbol.
    merged: Vec<u32>,
    /// By the symbol before, the number of its pair with the last new symbol; UNTRACKED except during `track_new`.
    numbers_before: Vec<PairNumber>,
    /// The same by the symbol after.
    numbers_after: Vec<PairNumber>,
}

impl TextPart {
    /// An empty part. The symbols from 1 to `characters` have one character each.
    pub fn new(characters: usize) -> TextPart {
        let mut part = TextPart { text: vec![NO_SYMBOL], ..TextPart::default() };
        part.add_symbol(0);
        for _ in 0..characters {
            part.add_symbol(1);
        }
        part
    }

    /// Append a word. Words must be appended in the order of their counts. Fails if the part is full.
    pub fn push(&mut self, word: &[SymbolNumber], count: u64) -> Result<(), Error> {
        if u32::try_from(self.text.len() + word.len() + 1).is_err() {
            return Err(Error::TextTooLong);
        }
        self.text.grow(word.len() + 1)?;
        self.runs.push(self.text.len() as u32, count);
        self.text.extend_from_slice(word);
        self.text.push(NO_SYMBOL);
        Ok(())
    }

    /// How many places it has.
    pub fn size(&self) -> usize {
        self.text.len()
    }

    /// How many places are listed for a pair.
    pub fn listed(&self, number: PairNumber) -> usize {
        self.places[number as usize].len()
    }

    /// Upper bounds of the weights of all pairs, for hashes of this many bits (1 to 63).
    pub fn weight_bounds(&self, bits: u32, monitor: &Monitor) -> Result<WeightBounds, Error> {
        let mut bounds = WeightBounds::new(bits)?;
        self.each_pair(monitor, |left, right, _, weight| {
            bounds.add(left, right, weight);
            Ok(())
        })?;
        Ok(bounds)
    }

    /// The first place that still has the pair `number`, among the places of its list from index `from` on. `from`
    /// becomes the index of that place: no place before it will ever have the pair again.
    pub fn first_place(&self, number: PairNumber, pair: [SymbolNumber; 2], from: &mut u32) -> Option<u32> {
        let [left, right] = pair;
        let length = self.lengths[left as usize] as usize;
        let places = &self.places[number as usize][*from as usize..];
        let has = |&place: &u32| self.text[place as usize] == left && self.text[place as usize + length] == right;
        let at = places.iter().position(has)?;
        *from += at as u32;
        Some(places[at])
    }

    /// Count all pairs. If bounds are given, leave out pairs that cannot reach a threshold.
    pub fn count_pairs(&self, bounds: Option<(&WeightBounds, u64)>, monitor: &Monitor) -> Result<PairCounts, Error> {
        let mut counts = PairCounts::none()?;
        self.each_pair(monitor, |left, right, _, weight| {
            if bounds.is_none_or(|(bounds, threshold)| bounds.may_reach(left, right, threshold)) {
                counts.add(left, right, Occurrences::once(weight))?;
            }
            Ok(())
        })?;
        Ok(counts)
    }

    /// Forget which pairs were tracked, and track those that have a number. The number is an index into `rooms`, which
    /// says for about how many places each list needs room.
    pub fn track_all(&mut self, numbers: &PairMap<PairNumber>, rooms: &[u32], monitor: &Monitor) -> Result<(), Error> {
        let mut places: Vec<Vec<u32>> = with_room(rooms.len())?;
        for &room in rooms {
            places.push(with_room(room as usize)?);
        }
        self.each_pair(monitor, |left, right, place, _| {
            let number = numbers.get(left, right);
            if number != UNTRACKED {
                let places = &mut places[number as usize];
                places.try_push(place)?;
            }
            Ok(())
        })?;
        self.places = places;
        Ok(())
    }

    /// Prefetch the text at these places.
    #[inline]
    fn fetch(&self, places: &[u32]) {
        places.iter().for_each(|&place| prefetch(self.text.as_ptr().wrapping_add(place as usize)));
    }

    /// Prefetch the text at the first places of a pair that will probably be merged next.
    #[inline]
    pub fn fetch_first(&self, number: PairNumber) {
        if let Some(places) = self.places.get(number as usize) {
            self.fetch(&places[..places.len().min(AHEAD)]);
        }
    }

    /// Replace a tracked pair everywhere, from left to right, and record in `changes` what changed.
    pub fn merge(&mut self, merge: Merge, monitor: &Monitor) -> Result<(), Error> {
        let Merge { number, left, right, new } = merge;
        let left_length = self.lengths[left as usize];
        let right_length = self.lengths[right as usize];
        debug_assert_eq!(new as usize, self.lengths.len());
        self.add_symbol(left_length + right_length);
        self.changes.clear();
        let mut places = std::mem::take(&mut self.places[number as usize]);
        let mut kept = 0;
        let mut run = 0;
        self.fetch(&places[..places.len().min(AHEAD)]);
        for at in 0..places.len() {
            if at % CHECK_INTERVAL == 0 {
                monitor.check()?;
            }
            // 1. Prefetch a later place.
            if let Some(later) = places.get(at + AHEAD..at + AHEAD + 1) {
                self.fetch(later);
            }
            // 2. Check that the pair is still here. Another pair may have been merged here, or this pair overlaps
            //    itself, as in aaa.
            let place = places[at];
            let begin = place as usize;
            let middle = begin + left_length as usize;
            let end = middle + right_length as usize;
            if self.text[begin] != left || self.text[middle] != right {
                continue;
            }
            // 3. Record what changes for its neighbours.
            let (before, after) = (self.text[begin - 1], self.text[end]);
            run = self.runs.find(run, place);
            let occurrence = Occurrences::once(self.runs.count(run));
            self.changes.merged.add(occurrence);
            if before == new {
                self.changes.new_beside_new.add(occurrence);
            } else if before != NO_SYMBOL {
                self.changes.before.add(before, occurrence);
            }
            if after != NO_SYMBOL {
                self.changes.after.add(after, occurrence);
            }
            // 4. Replace it.
            self.text[middle] = NO_SYMBOL;
            self.text[begin] = new;
            self.text[end - 1] = new;
            places[kept] = place;
            kept += 1;
        }
        places.truncate(kept);
        self.merged = places;
        Ok(())
    }

    /// Track new pairs that contain the symbol made by the last merge: list their places.
    pub fn track_new(&mut self, merge: Merge, pairs: &NewPairs, monitor: &Monitor) -> Result<(), Error> {
        let merged = std::mem::take(&mut self.merged);
        let Some(last) = pairs.last() else { return Ok(()) };
        // 1. Make a list of the right size for each pair, and record by neighbour which pair it is.
        self.places.grow((last as usize + 1).saturating_sub(self.places.len()))?;
        self.places.resize_with(last as usize + 1, Vec::new);
        for pair in &pairs.before {
            self.numbers_before[pair.neighbour as usize] = pair.number;
            let places = self.changes.before.get(pair.neighbour).places;
            self.places[pair.number as usize] = with_room(places as usize)?;
        }
        let new_beside_new = self.changes.new_beside_new.places;
        for pair in &pairs.after {
            self.numbers_after[pair.neighbour as usize] = pair.number;
            let moments = if pair.neighbour == merge.left { new_beside_new } else { 0 };
            let places = self.changes.after.get(pair.neighbour).places - moments;
            self.places[pair.number as usize] = with_room(places as usize)?;
        }
        if let Some(number) = pairs.with_itself {
            self.numbers_before[merge.new as usize] = number;
            self.places[number as usize] = with_room(new_beside_new as usize)?;
        }
        // 2. Go through the places of the new symbol, and look at the neighbours.
        let length = self.lengths[merge.new as usize];
        for (at, &place) in merged.iter().enumerate() {
            if at % CHECK_INTERVAL == 0 {
                monitor.check()?;
            }
            if let Some(later) = merged.get(at + AHEAD..at + AHEAD + 1) {
                self.fetch(later);
            }
            let before = self.text[place as usize - 1];
            let number = self.numbers_before[before as usize];
            if number != UNTRACKED {
                self.places[number as usize].push(place - self.lengths[before as usize]);
            }
            let after = self.text[place as usize + length as usize];
            let number = self.numbers_after[after as usize];
            if number != UNTRACKED {
                self.places[number as usize].push(place);
            }
        }
        // 3. Forget the numbers.
        for pair in &pairs.before {
            self.numbers_before[pair.neighbour as usize] = UNTRACKED;
        }
        for pair in &pairs.after {
            self.numbers_after[pair.neighbour as usize] = UNTRACKED;
        }
        self.numbers_before[merge.new as usize] = UNTRACKED;
        Ok(())
    }

    /// Set the length of the next symbol.
    fn add_symbol(&mut self, length: u32) {
        self.lengths.push(length);
        self.changes.add_symbol();
        self.numbers_before.push(UNTRACKED);
        self.numbers_after.push(UNTRACKED);
    }

    /// Call `see(left, right, place, weight)` for each pair of neighbours, from left to right.
    fn each_pair(
        &self,
        monitor: &Monitor,
        mut see: impl FnMut(SymbolNumber, SymbolNumber, u32, u64) -> Result<(), Halt>,
    ) -> Result<(), Error> {
        let mut at = 1;
        let mut run = 0;
        let mut next_check = 0;
        while at < self.text.len() {
            if at >= next_check {
                monitor.check()?;
                next_check = at + CHECK_INTERVAL;
            }
            let mut left = self.text[at];
            if left == NO_SYMBOL {
                at += 1;
                continue;
            }
            // Go through one word, to its end.
            run = self.runs.find(run, at as u32);
            let weight = self.runs.count(run);
            loop {
                let next = at + self.lengths[left as usize] as usize;
                let right = self.text[next];
                if right == NO_SYMBOL {
                    at = next + 1;
                    break;
                }
                see(left, right, at as u32, weight)?;
                (at, left) = (next, right);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::changes::NewPair;

    const A: u32 = 1;
    const B: u32 = 2;
    const NEW: u32 = 3;

    /// Merge the pair 0, `left` and `right`, in one word.
    fn merged(word: &[u32], left: u32, right: u32) -> TextPart {
        let monitor = Monitor::default();
        let mut part = TextPart::new(2);
        part.push(&[B, B], 9).unwrap();
        part.push(word, 5).unwrap();
        let mut numbers = PairMap::new(UNTRACKED).unwrap();
        *numbers.get_or_insert(left, right).unwrap() = 0;
        part.track_all(&numbers, &[1], &monitor).unwrap();
        part.merge(Merge { number: 0, left, right, new: NEW }, &monitor).unwrap();
        part
    }

    /// The pairs of the text with their weights.
    fn pairs(part: &TextPart) -> Vec<(u32, u32, u64)> {
        let counts = part.count_pairs(None, &Monitor::default()).unwrap();
        let mut pairs: Vec<_> =
            counts.iter().map(|(left, right, occurrences)| (left, right, occurrences.weight)).collect();
        pairs.sort_unstable();
        pairs
    }

    #[test]
    fn replaces_from_left_to_right() {
        // aaaaab -> (aa)(aa)ab
        let part = merged(&[A, A, A, A, A, B], A, A);
        assert_eq!(pairs(&part), [(A, B, 5), (B, B, 9), (NEW, A, 5), (NEW, NEW, 5)]);
        assert_eq!(part.changes.merged, Occurrences { weight: 10, places: 2 });
        assert_eq!(part.changes.new_beside_new, Occurrences::once(5));
        // Both symbols were followed by an a; the first one only for a moment.
        assert_eq!(part.changes.after.get(A), Occurrences { weight: 10, places: 2 });
        assert_eq!(part.changes.before.iter().count(), 0);
    }

    #[test]
    fn notes_the_neighbours() {
        // babb -> b(ab)b
        let part = merged(&[B, A, B, B], A, B);
        assert_eq!(pairs(&part), [(B, B, 9), (B, NEW, 5), (NEW, B, 5)]);
        assert_eq!(part.changes.before.get(B), Occurrences::once(5));
        assert_eq!(part.changes.after.get(B), Occurrences::once(5));
    }

    #[test]
    fn lists_the_places_of_new_pairs() {
        let monitor = Monitor::default();
        let mut part = merged(&[B, A, B, A, B, B], A, B);
        let merge = Merge { number: 0, left: A, right: B, new: NEW };
        let before = vec![NewPair { neighbour: B, number: 1 }];
        let after = vec![NewPair { neighbour: B, number: 2 }];
        part.track_new(merge, &NewPairs { before, after, with_itself: Some(3) }, &monitor).unwrap();
        assert_eq!([1, 2, 3].map(|pair| part.places[pair].len()), [1, 1, 1]);
        // b(ab)(ab)b: the two new symbols become one, so (new, b) is no longer at the only place of its list.
        part.merge(Merge { number: 3, left: NEW, right: NEW, new: 4 }, &monitor).unwrap();
        assert_eq!(pairs(&part), [(B, B, 9), (B, 4, 5), (4, B, 5)]);
        part.merge(Merge { number: 2, left: NEW, right: B, new: 5 }, &monitor).unwrap();
        assert_eq!(part.changes.merged, Occurrences::default());
    }
}
