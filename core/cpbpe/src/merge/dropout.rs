//! Chances for BPE-dropout, the same as in `cpbpe/reference/dropout.py`, which explains them.

/// Which merges are skipped.
#[derive(Clone, Copy, Debug)]
pub struct Dropout {
    /// The chance that a merge is skipped.
    pub alpha: f64,
    /// The seed that decides which.
    pub seed: u64,
}

/// A number whose bits all depend on all bits of another one (SplitMix64).
#[inline]
pub fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

/// Decides about the merges of one text.
pub struct Chances {
    /// The seed, mixed.
    seed: u64,
    /// Merges with a number below this one, of 53 bits, are skipped.
    limit: u64,
}

impl Chances {
    /// For a text that is sampled in this way.
    pub fn new(Dropout { alpha, seed }: Dropout) -> Chances {
        // The reference compares number / 2^53 with alpha. Both quotient and product by 2^53 are exact, and a whole
        // number is below another one if it is below that one rounded up.
        Chances { seed: mixed(seed), limit: (alpha * (1u64 << 53) as f64).ceil() as u64 }
    }

    /// Whether two symbols merge; given how many symbols of the text are before their begin, middle and end.
    #[inline]
    pub fn keep(&self, [begin, middle, end]: [u64; 3]) -> bool {
        mixed(mixed(mixed(self.seed ^ begin) ^ middle) ^ end) >> 11 >= self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_are_spread() {
        for alpha in [0.0, 0.1, 0.5, 1.0] {
            let chances = Chances::new(Dropout { alpha, seed: 7 });
            let kept = (0..10_000).filter(|&i| chances.keep([i, i + 1, i + 2])).count();
            assert!((kept as f64 / 10_000.0 - (1.0 - alpha)).abs() < 0.02);
        }
        assert!((0..10_000).all(|i| Chances::new(Dropout { alpha: 1e-300, seed: i }).keep([0, 1, 2])));
    }
}
