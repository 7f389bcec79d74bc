//! A part of the text while it is merged: its symbols, and where each pair stands.
//!
//! All words lie in one array, a wall (0) before and behind each. A symbol of n characters takes n places: the
//! first and the last of them hold it, those between mean nothing. So both neighbours of a symbol are found
//! without links, and a merge writes three places that are mostly in one cache line. What follows from that:
//! * the symbol that ends before place p is `text[p - 1]`; the one that begins behind a symbol at p is at
//!   `p + length`.
//! * A place where a symbol began and no symbol begins any more never holds that symbol again: if it became the
//!   left half of a merge, it holds the new one; if the right half, a wall or, at the end of it, the new one.
//!   So lists of places may keep places that are no longer true; a look at the text tells.
//!
//! Words with equal counts lie side by side, so the count of a place is found by a search in `runs`, which is short,
//! and, as lists of places ascend, mostly not even that.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::train::pairs::{key, Map, NONE};
use crate::train::weights::{Amount, Bounds, PairCounts, DENSE};

/// Between words, and in the place of every character that no piece will hold.
pub const WALL: u32 = 0;
/// So many places are worked on before looking whether to stop.
const STRIDE: usize = 1 << 16;

/// So many places are fetched before they are worked on. A divisor of STRIDE.
const AHEAD: usize = 32;

/// The work was to be stopped.
#[derive(Debug)]
pub struct Stopped;

/// Check a flag.
pub fn check(stop: &AtomicBool) -> Result<(), Stopped> {
    if stop.load(Ordering::Relaxed) {
        Err(Stopped)
    } else {
        Ok(())
    }
}

/// Amounts by symbol: an array, and a list of the symbols that have any.
#[derive(Default)]
pub struct Neighbours {
    amounts: Vec<Amount>,
    /// Those that have an amount.
    pub seen: Vec<u32>,
}

impl Neighbours {
    #[inline]
    fn add(&mut self, symbol: u32, weight: u64) {
        let amount = &mut self.amounts[symbol as usize];
        if amount.places == 0 {
            self.seen.push(symbol);
        }
        amount.weight += weight;
        amount.places += 1;
    }

    /// The amount of a symbol.
    #[inline]
    pub fn get(&self, symbol: u32) -> Amount {
        self.amounts[symbol as usize]
    }

    /// Add the amounts of another part.
    pub fn absorb(&mut self, other: &Neighbours) {
        for &symbol in &other.seen {
            let amount = &mut self.amounts[symbol as usize];
            if amount.places == 0 {
                self.seen.push(symbol);
            }
            amount.add(other.amounts[symbol as usize]);
        }
    }

    /// Forget all.
    pub fn clear(&mut self) {
        for symbol in self.seen.drain(..) {
            self.amounts[symbol as usize] = Amount::default();
        }
    }

    /// Room for one symbol more.
    pub fn grow(&mut self) {
        self.amounts.push(Amount::default());
    }
}

/// What one merge of `left` and `right` to `new` changed.
#[derive(Default)]
pub struct Changes {
    /// By the symbol before: there (it, left) became (it, new).
    pub before: Neighbours,
    /// By the symbol behind: there (right, it) became (new, it).
    pub behind: Neighbours,
    /// `new` beside `new`; the second half of the pairs (new, left) in `behind`, which were there for a moment only.
    pub twins: Amount,
    /// Replacements.
    pub merged: Amount,
}

impl Changes {
    /// Add those of another part.
    pub fn absorb(&mut self, other: &Changes) {
        self.before.absorb(&other.before);
        self.behind.absorb(&other.behind);
        self.twins.add(other.twins);
        self.merged.add(other.merged);
    }

    /// Forget all.
    pub fn clear(&mut self) {
        self.before.clear();
        self.behind.clear();
        self.twins = Amount::default();
        self.merged = Amount::default();
    }

    /// Room for one symbol more.
    pub fn grow(&mut self) {
        self.before.grow();
        self.behind.grow();
    }
}

/// A merge: which pair, and what it becomes.
#[derive(Clone, Copy, Debug)]
pub struct Merge {
    /// Its number among the pairs that are watched.
    pub pair: u32,
    /// Its first half.
    pub left: u32,
    /// Its second half.
    pub right: u32,
    /// The symbol that takes their place.
    pub new: u32,
}

/// A pair with the last new symbol that comes to be watched.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// The neighbour of the new symbol.
    pub neighbour: u32,
    /// The number of the pair.
    pub pair: u32,
}

/// One part of the text.
#[derive(Default)]
pub struct Part {
    text: Vec<u32>,
    /// Where the words of each count begin, and the count.
    runs: Vec<(u32, u64)>,
    /// The length of each symbol.
    lengths: Vec<u16>,
    /// For each pair that is watched, where it stands or stood, ascending.
    places: Vec<Vec<u32>>,
    /// What the last merge changed.
    pub changes: Changes,
    /// Where the last merge put its symbol.
    merged: Vec<u32>,
    /// By neighbour the number of the pair with the last new symbol, if that is watched.
    pairs_before: Vec<u32>,
    pairs_behind: Vec<u32>,
}

impl Part {
    /// An empty part in which every symbol of the alphabet has one character.
    pub fn new(symbols: usize) -> Part {
        let mut part = Part { text: vec![WALL], ..Part::default() };
        part.grow(WALL, 0);
        for symbol in 1..=symbols {
            part.grow(symbol as u32, 1);
        }
        part
    }

    /// Append a word. Words come in the order of their counts. `None` if the part is full.
    pub fn push(&mut self, word: &[u32], count: u64) -> Option<()> {
        let begin = u32::try_from(self.text.len()).ok()?;
        u32::try_from(self.text.len() + word.len() + 1).ok()?;
        if self.runs.last().is_none_or(|run| run.1 != count) {
            self.runs.push((begin, count));
        }
        self.text.extend_from_slice(word);
        self.text.push(WALL);
        Some(())
    }

    /// How many places it has.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether it holds no word.
    pub fn is_empty(&self) -> bool {
        self.text.len() <= 1
    }

    fn grow(&mut self, symbol: u32, length: u16) {
        debug_assert_eq!(symbol as usize, self.lengths.len());
        self.lengths.push(length);
        self.changes.grow();
        self.pairs_before.push(NONE);
        self.pairs_behind.push(NONE);
    }

    /// Which run holds `place`, given one that does not begin later.
    #[inline]
    fn run(&self, from: usize, place: u32) -> usize {
        match self.runs.get(from + 1) {
            Some(next) if next.0 <= place => self.run_after(from + 1, place),
            _ => from,
        }
    }

    fn run_after(&self, from: usize, place: u32) -> usize {
        let mut step = 1;
        while self.runs.get(from + step).is_some_and(|run| run.0 <= place) {
            step *= 2;
        }
        let low = from + step / 2;
        let high = self.runs.len().min(from + step);
        low + self.runs[low..high].partition_point(|run| run.0 <= place) - 1
    }

    /// Call `found(left, right, place, weight)` for each two neighbours.
    fn each_pair(&self, stop: &AtomicBool, mut found: impl FnMut(u32, u32, u32, u64)) -> Result<(), Stopped> {
        let mut at = 1;
        let mut run = 0;
        let mut next_check = 0;
        while at < self.text.len() {
            if at >= next_check {
                check(stop)?;
                next_check = at + STRIDE;
            }
            let mut left = self.text[at];
            if left == WALL {
                at += 1;
                continue;
            }
            run = self.run(run, at as u32);
            let weight = self.runs[run].1;
            loop {
                let next = at + usize::from(self.lengths[left as usize]);
                let right = self.text[next];
                if right == WALL {
                    at = next + 1;
                    break;
                }
                found(left, right, at as u32, weight);
                (at, left) = (next, right);
            }
        }
        Ok(())
    }

    /// Upper bounds of what pairs weigh, by hashes of so many bits (1 to 63).
    pub fn bounds(&self, bits: u32, stop: &AtomicBool) -> Result<Bounds, Stopped> {
        let mut bounds = Bounds::new(bits);
        self.each_pair(stop, |left, right, _, weight| {
            bounds.add(left, right, weight);
        })?;
        Ok(bounds)
    }

    /// Count all pairs; with bounds, none that cannot reach a threshold.
    pub fn count_pairs(&self, bounds: Option<(&Bounds, u64)>, stop: &AtomicBool) -> Result<PairCounts, Stopped> {
        let mut counts = PairCounts::default();
        self.each_pair(stop, |left, right, _, weight| {
            if bounds.is_none_or(|(bounds, threshold)| bounds.reaches(left, right, threshold)) {
                counts.add(left, right, Amount { weight, places: 1 });
            }
        })?;
        Ok(counts)
    }

    /// Forget which pairs were watched, and watch those in `pairs`.
    pub fn watch_all(&mut self, pairs: &Map<u32>, count: usize, stop: &AtomicBool) -> Result<(), Stopped> {
        let mut dense = vec![NONE; (DENSE * DENSE) as usize];
        for (key, pair) in pairs.iter() {
            let (left, right) = ((key >> 32) as u32, key as u32);
            if left < DENSE && right < DENSE {
                dense[(left * DENSE + right) as usize] = pair;
            }
        }
        let mut places = vec![Vec::new(); count];
        self.each_pair(stop, |left, right, place, _| {
            let pair = if left < DENSE && right < DENSE {
                dense[(left * DENSE + right) as usize]
            } else {
                pairs.get(key(left, right)).unwrap_or(NONE)
            };
            if pair != NONE {
                places[pair as usize].push(place);
            }
        })?;
        self.places = places;
        Ok(())
    }

    /// How many places are listed for a pair.
    pub fn listed(&self, pair: u32) -> usize {
        self.places[pair as usize].len()
    }

    /// Replace a pair everywhere, from left to right. `changes` then tells what changed.
    pub fn merge(&mut self, merge: Merge, stop: &AtomicBool) -> Result<(), Stopped> {
        let Merge { pair, left, right, new } = merge;
        let left_length = self.lengths[left as usize];
        let right_length = self.lengths[right as usize];
        self.grow(new, left_length + right_length);
        self.changes.clear();
        let mut places = std::mem::take(&mut self.places[pair as usize]);
        let mut kept = 0;
        let mut run = 0;
        for from in (0..places.len()).step_by(AHEAD) {
            if from % STRIDE == 0 {
                check(stop)?;
            }
            let block = from..places.len().min(from + AHEAD);
            // Nothing is decided in this loop, so the processor runs ahead and fetches many lines at once.
            let touched = places[block.clone()].iter().fold(0, |touched, &place| touched ^ self.text[place as usize]);
            std::hint::black_box(touched);
            for at in block {
                let place = places[at];
                let begin = place as usize;
                let middle = begin + usize::from(left_length);
                let end = middle + usize::from(right_length);
                if self.text[begin] != left || self.text[middle] != right {
                    continue;
                }
                let before = self.text[begin - 1];
                let behind = self.text[end];
                run = self.run(run, place);
                let weight = self.runs[run].1;
                self.changes.merged.add(Amount { weight, places: 1 });
                if before == new {
                    self.changes.twins.add(Amount { weight, places: 1 });
                } else if before != WALL {
                    self.changes.before.add(before, weight);
                }
                if behind != WALL {
                    self.changes.behind.add(behind, weight);
                }
                self.text[middle] = WALL;
                self.text[begin] = new;
                self.text[end - 1] = new;
                places[kept] = place;
                kept += 1;
            }
        }
        places.truncate(kept);
        self.merged = places;
        Ok(())
    }

    /// Watch pairs of the last new symbol: with what stands before it, behind it, and with itself.
    pub fn watch(
        &mut self,
        merge: Merge,
        before: &[Watch],
        behind: &[Watch],
        twins: Option<u32>,
        stop: &AtomicBool,
    ) -> Result<(), Stopped> {
        let count = before.iter().chain(behind).map(|watch| watch.pair).chain(twins).max();
        let Some(count) = count else {
            self.merged = Vec::new();
            return Ok(());
        };
        self.places.resize_with(count as usize + 1, Vec::new);
        for watch in before {
            self.pairs_before[watch.neighbour as usize] = watch.pair;
            let places = self.changes.before.get(watch.neighbour).places;
            self.places[watch.pair as usize].reserve_exact(places as usize);
        }
        for watch in behind {
            self.pairs_behind[watch.neighbour as usize] = watch.pair;
            let moments = if watch.neighbour == merge.left { self.changes.twins.places } else { 0 };
            let places = self.changes.behind.get(watch.neighbour).places - moments;
            self.places[watch.pair as usize].reserve_exact(places as usize);
        }
        if let Some(pair) = twins {
            self.places[pair as usize].reserve_exact(self.changes.twins.places as usize);
            self.pairs_before[merge.new as usize] = pair;
        }
        let length = self.lengths[merge.new as usize];
        for (at, &place) in self.merged.iter().enumerate() {
            if at % STRIDE == 0 {
                check(stop)?;
            }
            let neighbour = self.text[place as usize - 1];
            let pair = self.pairs_before[neighbour as usize];
            if pair != NONE {
                self.places[pair as usize].push(place - u32::from(self.lengths[neighbour as usize]));
            }
            let neighbour = self.text[place as usize + usize::from(length)];
            let pair = self.pairs_behind[neighbour as usize];
            if pair != NONE {
                self.places[pair as usize].push(place);
            }
        }
        for watch in before {
            self.pairs_before[watch.neighbour as usize] = NONE;
        }
        for watch in behind {
            self.pairs_behind[watch.neighbour as usize] = NONE;
        }
        self.pairs_before[merge.new as usize] = NONE;
        self.merged = Vec::new();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: u32 = 1;
    const B: u32 = 2;
    const NEW: u32 = 3;

    /// Merge the pair 0, `left` and `right`, in one word.
    fn merged(word: &[u32], left: u32, right: u32) -> Part {
        let stop = AtomicBool::new(false);
        let mut part = Part::new(2);
        part.push(&[B, B], 9).unwrap();
        part.push(word, 5).unwrap();
        let mut pairs: Map<u32> = Map::default();
        *pairs.entry(key(left, right), 0) = 0;
        part.watch_all(&pairs, 1, &stop).unwrap();
        part.merge(Merge { pair: 0, left, right, new: NEW }, &stop).unwrap();
        part
    }

    /// The pairs of the text with their weights.
    fn pairs(part: &Part) -> Vec<(u32, u32, u64)> {
        let counts = part.count_pairs(None, &AtomicBool::new(false)).unwrap();
        let mut pairs: Vec<_> = counts.iter().map(|(left, right, amount)| (left, right, amount.weight)).collect();
        pairs.sort_unstable();
        pairs
    }

    #[test]
    fn replaces_from_left_to_right() {
        // aaaaab -> (aa)(aa)ab
        let part = merged(&[A, A, A, A, A, B], A, A);
        assert_eq!(pairs(&part), [(A, B, 5), (B, B, 9), (NEW, A, 5), (NEW, NEW, 5)]);
        assert_eq!(part.changes.merged, Amount { weight: 10, places: 2 });
        assert_eq!(part.changes.twins, Amount { weight: 5, places: 1 });
        // Behind both there was an a; behind the first for a moment only.
        assert_eq!(part.changes.behind.get(A), Amount { weight: 10, places: 2 });
        assert_eq!(part.changes.before.seen, [0u32; 0]);
    }

    #[test]
    fn tells_what_stood_around() {
        // babb -> b(ab)b
        let part = merged(&[B, A, B, B], A, B);
        assert_eq!(pairs(&part), [(B, B, 9), (B, NEW, 5), (NEW, B, 5)]);
        assert_eq!(part.changes.before.get(B), Amount { weight: 5, places: 1 });
        assert_eq!(part.changes.behind.get(B), Amount { weight: 5, places: 1 });
    }

    #[test]
    fn lists_the_places_of_new_pairs() {
        let stop = AtomicBool::new(false);
        let mut part = merged(&[B, A, B, A, B, B], A, B);
        let merge = Merge { pair: 0, left: A, right: B, new: NEW };
        let (before, behind) = ([Watch { neighbour: B, pair: 1 }], [Watch { neighbour: B, pair: 2 }]);
        part.watch(merge, &before, &behind, Some(3), &stop).unwrap();
        assert_eq!([1, 2, 3].map(|pair| part.places[pair].len()), [1, 1, 1]);
        // b(ab)(ab)b: the twins become one; of the list of the pair behind, the only place is no longer true.
        part.merge(Merge { pair: 3, left: NEW, right: NEW, new: 4 }, &stop).unwrap();
        assert_eq!(pairs(&part), [(B, B, 9), (B, 4, 5), (4, B, 5)]);
        part.merge(Merge { pair: 2, left: NEW, right: B, new: 5 }, &stop).unwrap();
        assert_eq!(part.changes.merged, Amount::default());
    }

    #[test]
    fn finds_the_count_of_any_place() {
        let mut part = Part::new(2);
        for count in (1..100).rev() {
            for _ in 0..count % 3 + 1 {
                part.push(&[A, B, A][..2 + count % 2], count as u64).unwrap();
            }
        }
        for from in 0..part.runs.len() {
            for place in part.runs[from].0..part.text.len() as u32 {
                let expected = part.runs.iter().rposition(|run| run.0 <= place).unwrap();
                assert_eq!(part.run(from, place), expected);
            }
        }
    }
}
