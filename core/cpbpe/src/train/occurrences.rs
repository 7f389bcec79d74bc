//! How often pairs stand in the text: counted one by one, or bounded from above.

use crate::train::pairs::{key, Map};

/// How often something stands in the text: repetitions of words included, and not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// With every repetition.
    pub weight: u64,
    /// Places in the array.
    pub places: u32,
}

impl Amount {
    /// Add another.
    #[inline]
    pub fn add(&mut self, other: Amount) {
        self.weight += other.weight;
        self.places += other.places;
    }
}

/// The first so many symbols have their pairs counted in a table without keys. They are the most frequent characters.
pub const DENSE: u32 = 1 << 8;

/// How often each pair stands in the text.
pub struct PairCounts {
    dense: Vec<Amount>,
    sparse: Map<Amount>,
}

impl Default for PairCounts {
    fn default() -> PairCounts {
        PairCounts { dense: vec![Amount::default(); (DENSE * DENSE) as usize], sparse: Map::default() }
    }
}

impl PairCounts {
    /// Count a pair.
    #[inline]
    pub fn add(&mut self, left: u32, right: u32, amount: Amount) {
        if left < DENSE && right < DENSE {
            self.dense[(left * DENSE + right) as usize].add(amount);
        } else {
            self.sparse.entry(key(left, right), Amount::default()).add(amount);
        }
    }

    /// All pairs: halves and amount.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32, Amount)> + '_ {
        let dense = (0..).zip(&self.dense).map(|(at, &amount)| (at / DENSE, at % DENSE, amount));
        let sparse = self.sparse.iter().map(|(key, amount)| ((key >> 32) as u32, key as u32, amount));
        dense.filter(|(_, _, amount)| amount.places > 0).chain(sparse)
    }

    /// Add those of another part.
    pub fn absorb(&mut self, other: &PairCounts) {
        for (left, right, amount) in other.iter() {
            self.add(left, right, amount);
        }
    }
}

/// Upper bounds of the weights of pairs: what all pairs of one hash weigh together. Late in training, most pairs of
/// the text stand there once or twice; this tells them from those worth counting, in a fraction of the memory.
pub struct Bounds {
    sums: Vec<u32>,
}

impl Bounds {
    /// By hashes of so many bits (1 to 63).
    pub fn new(bits: u32) -> Bounds {
        Bounds { sums: vec![0; 1 << bits] }
    }

    /// A pair weighs so much more.
    #[inline]
    pub fn add(&mut self, left: u32, right: u32, weight: u64) {
        let bucket = self.bucket(left, right);
        self.sums[bucket] = self.sums[bucket].saturating_add(weight.try_into().unwrap_or(u32::MAX));
    }

    #[inline]
    fn bucket(&self, left: u32, right: u32) -> usize {
        let shift = 64 - self.sums.len().trailing_zeros();
        (key(left, right).wrapping_mul(0xD6E8_FEB8_6659_FD93) >> shift) as usize
    }

    /// Whether a pair may weigh so much.
    #[inline]
    pub fn reaches(&self, left: u32, right: u32, weight: u64) -> bool {
        let sum = self.sums[self.bucket(left, right)];
        sum == u32::MAX || u64::from(sum) >= weight
    }

    /// Add those of another part, which must have as many.
    pub fn absorb(&mut self, other: &Bounds) {
        for (sum, more) in self.sums.iter_mut().zip(&other.sums) {
            *sum = sum.saturating_add(*more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_never_too_low() {
        let mut bounds = Bounds::new(3);
        let mut counts = PairCounts::default();
        for left in 1..40u32 {
            for right in (1..600).step_by(37) {
                let weight = u64::from(left * right);
                bounds.add(left, right, weight);
                counts.add(left, right, Amount { weight, places: 1 });
            }
        }
        bounds.add(1, 1, u64::MAX);
        assert_eq!(counts.iter().count(), 39 * 17);
        assert!(counts.iter().all(|(left, right, amount)| amount.weight == u64::from(left * right)));
        assert!(counts.iter().all(|(left, right, amount)| bounds.reaches(left, right, amount.weight)));
        assert!(bounds.reaches(1, 1, u64::MAX));
        let mut half = Bounds::new(20);
        half.add(3, 4, 5);
        assert!(half.reaches(3, 4, 5) && !half.reaches(3, 4, 6) && !half.reaches(4, 3, 1));
        let other = Bounds { sums: half.sums.clone() };
        half.absorb(&other);
        assert!(half.reaches(3, 4, 10) && !half.reaches(3, 4, 11));
    }
}
