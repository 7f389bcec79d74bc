//! Which pair of a byte-level text is the best, for both kinds of ties. (`train/tracked.rs` tracks the pairs.)

use std::cmp::Reverse;
use std::collections::binary_heap::{BinaryHeap, PeekMut};
use std::collections::HashSet;

use crate::error::Halt;
use crate::memory::{push_to, Grow};
use crate::train::pairs::{PairNumber, SymbolNumber, SymbolTexts};
use crate::train::queue::TrackedPair;
use crate::train::text::TextPart;
use crate::train::tracked::{Ranking, Tracked};
use crate::train::values::{ByteLearnSpec, Ties};

/// A pair in the queue: its frequency when the entry was made, its rank among equally frequent pairs, and its number.
type Entry = (u64, Reverse<u64>, PairNumber);

/// The rank of a pair whose first place has not been looked up yet. All places are greater, so the entry comes before
/// all equally frequent ones, and `pop` looks the place up when it reaches the top.
const UNKNOWN: u64 = 0;

/// The ranking of the pairs of byte-level models.
pub struct ByteRanking {
    ties: Ties,
    /// The most bytes that a piece may have. Pieces of two bytes are always allowed.
    max_length: u32,
    /// Texts that are never pieces.
    forbidden: HashSet<Vec<u8>>,
    /// The length of each symbol.
    lengths: Vec<u32>,
    /// For each pair, by its number: before which index of its list of places none has the pair any more. Only
    /// `Ties::First` needs this.
    first_live: Vec<u32>,
    /// The queue.
    ///
    /// A pair can only become rarer, and its first place can only move towards the end. So an entry that is out of date
    /// is too near to the top. When it gets there it is corrected, and nothing has to be searched for.
    queue: BinaryHeap<Entry>,
}

/// All symbols of a byte-level model, and the pairs of them that are tracked.
pub type BytePairs = Tracked<ByteRanking>;

impl BytePairs {
    /// No pairs yet, of symbols with these texts: the single bytes, or the pieces of an older model.
    pub fn new(spec: &ByteLearnSpec, symbols: &[Vec<u8>]) -> Result<BytePairs, Halt> {
        let mut lengths = vec![0]; // NO_SYMBOL
        lengths.extend(symbols.iter().map(|text| text.len() as u32));
        let ranking = ByteRanking {
            ties: spec.ties,
            max_length: if spec.max_length == 0 { u32::MAX } else { spec.max_length.max(2) },
            forbidden: spec.forbidden.iter().cloned().collect(),
            lengths,
            first_live: Vec::new(),
            queue: BinaryHeap::new(),
        };
        Tracked::of(ranking, std::iter::once(&[][..]).chain(symbols.iter().map(Vec::as_slice)))
    }
}

impl Ranking for ByteRanking {
    fn add_symbol(&mut self, left: SymbolNumber, right: SymbolNumber) {
        self.lengths.push(self.lengths[left as usize] + self.lengths[right as usize]);
    }

    #[inline]
    fn joins(&self, left: SymbolNumber, right: SymbolNumber) -> bool {
        self.lengths[left as usize] + self.lengths[right as usize] <= self.max_length
    }

    fn clear(&mut self) {
        self.first_live.clear();
        self.queue.clear();
    }

    fn push(&mut self, number: PairNumber, pairs: &[TrackedPair], _: &SymbolTexts) -> Result<(), Halt> {
        let TrackedPair { left, right, frequency } = pairs[number as usize];
        let rank = match self.ties {
            Ties::Ids => u64::from(left) << 32 | u64::from(right),
            Ties::First => UNKNOWN,
        };
        push_to(&mut self.queue, (frequency, Reverse(rank), number))?;
        if self.ties == Ties::First && self.first_live.len() < pairs.len() {
            self.first_live.grow(pairs.len() - self.first_live.len())?;
            self.first_live.resize(pairs.len(), 0);
        }
        Ok(())
    }

    /// With `Ties::First`, all text is in one part.
    fn pop(&mut self, pairs: &[TrackedPair], _: &SymbolTexts, cutoff: u64, parts: &[TextPart]) -> Option<PairNumber> {
        while let Some(mut top) = self.queue.peek_mut() {
            let (frequency, Reverse(rank), number) = *top;
            let pair = pairs[number as usize];
            if pair.frequency < cutoff {
                PeekMut::pop(top);
                return Some(number);
            }
            let true_rank = match self.ties {
                Ties::Ids => rank,
                Ties::First => {
                    let first_live = &mut self.first_live[number as usize];
                    let place = parts[0].first_place(number, [pair.left, pair.right], first_live);
                    place.map_or(u64::MAX, u64::from)
                }
            };
            if (frequency, rank) == (pair.frequency, true_rank) {
                PeekMut::pop(top);
                return Some(number);
            }
            *top = (pair.frequency, Reverse(true_rank), number);
        }
        None
    }

    fn likely_next(&self) -> Option<PairNumber> {
        self.queue.peek().map(|&(_, _, number)| number)
    }

    fn allows(&self, text: &[u8]) -> bool {
        !self.forbidden.contains(text)
    }
}
