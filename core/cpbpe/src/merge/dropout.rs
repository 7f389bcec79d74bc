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
pub fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

/// The number from 0 to 1 (excluded) that decides about one merge.
pub fn chance(mixed_seed: u64, left: u64, right: u64, end: u64) -> f64 {
    let bits = mixed(mixed(mixed(mixed_seed ^ left) ^ right) ^ end);
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_are_spread() {
        let seed = mixed(7);
        let sum: f64 = (0..10_000).map(|i| chance(seed, i, i + 1, i + 2)).sum();
        assert!((sum / 10_000.0 - 0.5).abs() < 0.02);
    }
}
