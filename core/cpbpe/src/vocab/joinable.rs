//! Which characters merging can join, and so between which ones a text can be cut.

use crate::text::utf8::{self, character};
use crate::vocab::pieces::Pieces;

/// The bit of two characters side by side.
#[inline]
fn pair_bit(left: u32, right: u32) -> usize {
    let mixed = (u64::from(left) << 32 | u64::from(right)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 47) as usize
}

/// Which characters some piece contains side by side, as two tables; see `cut/chunks.rs`.
pub struct Joinable {
    /// For the bytes `x y`, at `x | y << 8`: 0 join, 1 cut.
    pub bytes: Box<[u8; 1 << 16]>,
    /// A bit for each pair of characters that some piece contains side by side, by its hash. If two pairs have the
    /// same hash, one may count as joinable by mistake. Then a possible cut is missed, and the result is the same.
    pairs: Box<[u64; 1 << 11]>,
}

impl Joinable {
    /// The tables for the mergeable pieces, all of which are UTF-8.
    pub fn new(pieces: &Pieces) -> Joinable {
        let mut joinable = Joinable { bytes: boxed(1), pairs: boxed(0) };
        for id in (0..pieces.len() as u32).filter(|&id| pieces.mergeable(id)) {
            let text = pieces.text(id);
            let Some(&first) = text.first() else { continue };
            let mut at = utf8::length_by_first(first);
            let mut before = character(&text[..at]);
            while let Some(&first) = text.get(at) {
                let next = at + utf8::length_by_first(first);
                let last = text[at - 1];
                let cell = &mut joinable.bytes[usize::from(last) | usize::from(first) << 8];
                let this = character(&text[at..next]);
                // If both are ASCII, they are all that shares this cell. So if it is set, so is their bit: pieces hold
                // few such pairs, but these again and again. (It makes this twice as fast.)
                if *cell != 0 || last >= 0x80 || first >= 0x80 {
                    *cell = 0;
                    let bit = pair_bit(before, this);
                    joinable.pairs[bit >> 6] |= 1 << (bit & 63);
                }
                (at, before) = (next, this);
            }
        }
        for first in 0x80..0xC0usize {
            for last in 0..256usize {
                joinable.bytes[last | first << 8] = 0; // inside a character
            }
        }
        joinable
    }

    /// Whether some piece may contain `left` and `right` side by side.
    #[inline]
    pub fn pair(&self, left: u32, right: u32) -> bool {
        let bit = pair_bit(left, right);
        self.pairs[bit >> 6] >> (bit & 63) & 1 != 0
    }
}

/// A large array of one value.
pub fn boxed<T: Copy, const N: usize>(value: T) -> Box<[T; N]> {
    // `Box::new` of a large array would build it on the stack first.
    match vec![value; N].into_boxed_slice().try_into() {
        Ok(array) => array,
        Err(_) => unreachable!("the vector was made with N elements"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::piece_type::NORMAL;

    #[test]
    fn every_pair_of_characters_in_a_piece_is_joinable() {
        let texts = ["ab", "aba", "éa", "aé", "日本", "本a日", "a日", "xy", "xyxy", "\u{1f999}b", "b\u{1f999}", "q"];
        let mut pieces = Pieces::new(texts.len(), 100);
        for text in texts {
            pieces.push(|blob| blob.extend_from_slice(text.as_bytes()), NORMAL, 0.0).unwrap();
        }
        pieces.finish(|_| false).unwrap();
        let joinable = Joinable::new(&pieces);
        let code = |c: char| character(c.encode_utf8(&mut [0; 4]).as_bytes());
        let inside: Vec<(char, char)> = texts.iter().flat_map(|text| text.chars().zip(text.chars().skip(1))).collect();
        for &(left, right) in &inside {
            let (last, first) = (left.to_string().into_bytes(), right.to_string().into_bytes());
            assert!(joinable.pair(code(left), code(right)), "{left}{right}");
            assert_eq!(joinable.bytes[usize::from(*last.last().unwrap()) | usize::from(first[0]) << 8], 0);
        }
        for pair in [('b', 'b'), ('y', 'a'), ('日', '日'), ('a', '本'), ('q', 'a')] {
            assert!(!inside.contains(&pair) && !joinable.pair(code(pair.0), code(pair.1)), "{pair:?}");
        }
        assert_eq!(joinable.bytes[usize::from(b'b') | usize::from(b'b') << 8], 1);
    }
}
