//! Which characters merging can join, and so between which ones a text can be cut.

use crate::machine::has_vectors;
use crate::memory::boxed;
use crate::text::utf8::{self, character};
use crate::vocab::characters::Characters;
use crate::vocab::classes::Classes;
use crate::vocab::piece_type::USER_DEFINED;
use crate::vocab::pieces::Pieces;
use crate::vocab::singles::Singles;
use crate::vocab::unkeyed::Unkeyed;

/// The bit of two characters side by side.
#[inline]
pub(super) fn pair_bit(left: u32, right: u32) -> usize {
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
    /// The first table for ASCII characters, in another form.
    pub classes: Classes,
    /// Whether the machine has the instructions for that form.
    pub vector: bool,
    /// The tables without user-defined pieces, if there are any.
    pub unkeyed: Option<Unkeyed>,
    /// What becomes of a byte that is cut off on both sides.
    pub singles: Singles,
    /// What is known about each character.
    pub characters: Characters,
}

impl Joinable {
    /// The tables for the mergeable pieces, all of which are UTF-8.
    pub fn new(pieces: &Pieces, singles: Singles, characters: Characters) -> Joinable {
        let mut joinable = Joinable {
            bytes: boxed(1),
            pairs: boxed(0),
            classes: Classes { tables: boxed([[0; 128]; 2]) },
            vector: has_vectors() && pieces.len() < 1 << 24,
            unkeyed: None,
            singles,
            characters,
        };
        for first in 0x80..0xC0usize {
            for last in 0..256usize {
                joinable.bytes[last | first << 8] = 0; // inside a character
            }
        }
        // In how many pieces each ASCII character is.
        let mut weights = [1u32; 128];
        let is_key = |id: &u32| pieces.kind(*id) == USER_DEFINED;
        let (keys, others): (Vec<u32>, Vec<u32>) =
            (0..pieces.len() as u32).filter(|&id| pieces.mergeable(id)).partition(is_key);
        others.into_iter().for_each(|id| joinable.add_piece(pieces.text(id), &mut weights));
        if !keys.is_empty() {
            joinable.unkeyed = Some(Unkeyed { bytes: joinable.bytes.clone(), pairs: joinable.pairs.clone() });
            keys.into_iter().for_each(|id| joinable.add_piece(pieces.text(id), &mut weights));
        }
        joinable.characters.join_ascii(&joinable.bytes);
        joinable.classes = Classes::new(&joinable.bytes, &weights);
        joinable
    }

    /// Mark the neighbours in a piece, and count its characters.
    fn add_piece(&mut self, text: &[u8], weights: &mut [u32; 128]) {
        let mut at = 0;
        let mut before: &[u8] = b"";
        while at < text.len() {
            let next = at + utf8::length_by_first(text[at]);
            self.add(before, &text[at..next]);
            if let Some(weight) = weights.get_mut(usize::from(text[at])) {
                *weight = weight.saturating_add(1);
            }
            before = &text[at..next];
            at = next;
        }
    }

    /// Mark the characters `left` and `right` as joinable.
    fn add(&mut self, left: &[u8], right: &[u8]) {
        let (Some(&last), Some(&first)) = (left.last(), right.first()) else { return };
        let bit = pair_bit(character(left), character(right));
        self.pairs[bit >> 6] |= 1 << (bit & 63);
        self.bytes[usize::from(last) | usize::from(first) << 8] = 0;
        if (last | first) >= 0x80 {
            self.characters.join(left, right);
        }
    }

    /// Whether some piece may contain `left` and `right` side by side.
    #[inline]
    pub fn pair(&self, left: u32, right: u32) -> bool {
        let bit = pair_bit(left, right);
        self.pairs[bit >> 6] >> (bit & 63) & 1 != 0
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
        let joinable = Joinable::new(
            &pieces,
            Singles { ids: Box::new([0; 256]), planes: Box::new([[0; 128]; 3]), odd: None },
            Characters::all(0).unwrap(),
        );
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
