//! How often pairs occur in the text: counted exactly, or bounded from above.

use crate::error::Halt;
use crate::memory::zeros;
use crate::train::pairs::{PairMap, SymbolNumber};

/// How often something occurs in the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occurrences {
    /// With every repetition of the words that contain it.
    pub weight: u64,
    /// With each different word counted once: the number of its places in the array that holds the text.
    pub places: u32,
}

impl Occurrences {
    /// The occurrences for one place, in a word with this count.
    #[inline]
    pub fn once(weight: u64) -> Occurrences {
        Occurrences { weight, places: 1 }
    }

    /// Add other occurrences.
    #[inline]
    pub fn add(&mut self, other: Occurrences) {
        self.weight += other.weight;
        self.places += other.places;
    }
}

/// How often each pair occurs in the text.
pub type PairCounts = PairMap<Occurrences>;

impl PairCounts {
    /// No pairs yet.
    pub fn none() -> Result<PairCounts, Halt> {
        PairMap::new(Occurrences::default())
    }

    /// Count a pair.
    #[inline]
    pub fn add(&mut self, left: SymbolNumber, right: SymbolNumber, occurrences: Occurrences) -> Result<(), Halt> {
        self.get_or_insert(left, right)?.add(occurrences);
        Ok(())
    }

    /// Add the counts of another part of the text.
    pub fn absorb(&mut self, other: &PairCounts) -> Result<(), Halt> {
        other.iter().try_for_each(|(left, right, occurrences)| self.add(left, right, occurrences))
    }
}

/// Upper bounds of the weights of pairs: the total weight of all pairs with the same hash. Late in training, most pairs
/// occur only once or twice. The bounds separate these from the pairs worth counting, and take a fraction of the
/// memory.
pub struct WeightBounds {
    /// By hash; u32::MAX also stands for any larger weight.
    sums: Vec<u32>,
}

impl WeightBounds {
    /// Bounds for hashes of this many bits (1 to 63).
    pub fn new(bits: u32) -> Result<WeightBounds, Halt> {
        Ok(WeightBounds { sums: zeros(1 << bits)? })
    }

    /// Add to the weight of a pair.
    #[inline]
    pub fn add(&mut self, left: SymbolNumber, right: SymbolNumber, weight: u64) {
        let bucket = self.bucket(left, right);
        self.sums[bucket] = self.sums[bucket].saturating_add(weight.try_into().unwrap_or(u32::MAX));
    }

    /// Whether a pair may weigh this much.
    #[inline]
    pub fn may_reach(&self, left: SymbolNumber, right: SymbolNumber, weight: u64) -> bool {
        let sum = self.sums[self.bucket(left, right)];
        sum == u32::MAX || u64::from(sum) >= weight
    }

    /// Add the bounds of another part of the text, whose hashes must have the same number of bits.
    pub fn absorb(&mut self, other: &WeightBounds) {
        for (sum, more) in self.sums.iter_mut().zip(&other.sums) {
            *sum = sum.saturating_add(*more);
        }
    }

    #[inline]
    fn bucket(&self, left: SymbolNumber, right: SymbolNumber) -> usize {
        let pair = u64::from(left) << 32 | u64::from(right);
        let shift = 64 - self.sums.len().trailing_zeros();
        (pair.wrapping_mul(0xD6E8_FEB8_6659_FD93) >> shift) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_never_too_low() {
        let mut bounds = WeightBounds::new(3).unwrap();
        let mut counts = PairCounts::none().unwrap();
        for left in 1..40u32 {
            for right in (1..600).step_by(37) {
                let weight = u64::from(left * right);
                bounds.add(left, right, weight);
                counts.add(left, right, Occurrences::once(weight)).unwrap();
            }
        }
        bounds.add(1, 1, u64::MAX);
        assert_eq!(counts.iter().count(), 39 * 17);
        assert!(counts.iter().all(|(left, right, occurrences)| occurrences.weight == u64::from(left * right)));
        assert!(counts.iter().all(|(left, right, occurrences)| bounds.may_reach(left, right, occurrences.weight)));
        assert!(bounds.may_reach(1, 1, u64::MAX));
        let mut half = WeightBounds::new(20).unwrap();
        half.add(3, 4, 5);
        assert!(half.may_reach(3, 4, 5) && !half.may_reach(3, 4, 6) && !half.may_reach(4, 3, 1));
        let other = WeightBounds { sums: half.sums.clone() };
        half.absorb(&other);
        assert!(half.may_reach(3, 4, 10) && !half.may_reach(3, 4, 11));
    }
}
