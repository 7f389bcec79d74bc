//! Where user-defined pieces may begin.

use crate::text::finder::Keys;

/// Where a text has two bytes that some user-defined piece begins with, it is asked whether it has the first four of
/// one. (With 16,000 words as user-defined pieces, half of all places have the former, and an eighth the latter.)
const LONG: usize = 4;
/// The bits of a filter, as a power of two: 16 KiB.
const BITS: u32 = 17;

/// What user-defined pieces begin with, as `cut/keys.rs` needs it.
pub struct KeyStarts {
    /// A bit for the bytes `x y`, at `x | y << 8`: whether one may begin with them, or consists of `x` alone.
    pairs: Box<[u64; 1 << 10]>,
    /// The same for pieces of less than `LONG` bytes.
    short_pairs: Box<[u64; 1 << 10]>,
    /// A bit for the first `LONG` bytes of the others, by their hash.
    long: Box<[u64; 1 << (BITS - 6)]>,
}

#[inline]
fn bit(table: &[u64; 1 << 10], first: u8, second: u8) -> bool {
    table[usize::from(second) << 2 | usize::from(first) >> 6] >> (first & 63) & 1 != 0
}

fn hash(bytes: [u8; LONG]) -> usize {
    (u32::from_le_bytes(bytes).wrapping_mul(0x9E37_79B1) >> (32 - BITS)) as usize
}

impl KeyStarts {
    /// `None` if there are no user-defined pieces.
    pub fn new(user_defined: &Keys) -> Option<KeyStarts> {
        if user_defined.is_empty() {
            return None;
        }
        let mut starts = KeyStarts {
            pairs: Box::new([0; 1 << 10]),
            short_pairs: Box::new([0; 1 << 10]),
            long: Box::new([0; 1 << (BITS - 6)]),
        };
        user_defined.each(|key| starts.add(key));
        Some(starts)
    }

    fn add(&mut self, key: &[u8]) {
        let (&first, seconds) = match key {
            [] => return,
            [first] => (first, 0..=u8::MAX),
            [first, second, ..] => (first, *second..=*second),
        };
        let long = key.first_chunk().copied().map(hash);
        for second in seconds {
            let (place, bit) = (usize::from(second) << 2 | usize::from(first) >> 6, 1 << (first & 63));
            self.pairs[place] |= bit;
            self.short_pairs[place] |= if long.is_none() { bit } else { 0 };
        }
        if let Some(long) = long {
            self.long[long >> 6] |= 1 << (long & 63);
        }
    }

    /// Whether one may begin at `at`.
    #[inline]
    pub fn may_begin(&self, text: &[u8], at: usize) -> bool {
        let [first, second, ..] = text[at..] else { return true };
        bit(&self.pairs, first, second)
            && (bit(&self.short_pairs, first, second)
                || text[at..].first_chunk().is_some_and(|&bytes| {
                    let long = hash(bytes);
                    self.long[long >> 6] >> (long & 63) & 1 != 0
                }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_is_passed_over() {
        let mut state = 3u64;
        let mut chance = |limit: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % limit
        };
        for round in 0..50 {
            let key = |chance: &mut dyn FnMut(usize) -> usize| {
                (0..1 + chance([1, 2, 3, 4, 5, 20][round % 6])).map(|_| chance(256) as u8).collect::<Vec<u8>>()
            };
            let keys: Vec<Vec<u8>> = (0..1 + chance(200)).map(|_| key(&mut chance)).collect();
            let starts = KeyStarts::new(&Keys::new(&keys).unwrap()).unwrap();
            for key in &keys {
                for more in [&b""[..], b"a", b"\xff\xff\xff"] {
                    assert!(starts.may_begin(&[key, more].concat(), 0));
                }
            }
        }
    }

    #[test]
    fn the_first_four_bytes_count() {
        let starts = KeyStarts::new(&Keys::new(&[b"abcde".to_vec(), b"xyz".to_vec()]).unwrap()).unwrap();
        let may_begin = |text: &[u8]| starts.may_begin(text, 0);
        assert!(may_begin(b"abcd") && may_begin(b"xy__") && may_begin(b"a"));
        assert!(!may_begin(b"ab__") && !may_begin(b"abc_") && !may_begin(b"abc") && !may_begin(b"xz__"));
    }
}
