//! Which characters are joined by pieces that are not user-defined. See `cut/keys.rs`.

use crate::text::utf8::{self, character};
use crate::vocab::joinable::pair_bit;

/// Characters from here on (three bytes and more) are looked up in pairs; for shorter ones, bytes alone find enough
/// cuts.
const LONG_CHARACTER: u8 = 0xE0;

/// The two tables of `Joinable`, for these pieces only.
pub struct Unkeyed {
    /// For the bytes `x y`, at `x | y << 8`: 0 join, 1 cut.
    pub bytes: Box<[u8; 1 << 16]>,
    /// A bit for each pair of characters.
    pub pairs: Box<[u64; 1 << 11]>,
}

impl Unkeyed {
    /// Whether none of these pieces can contain the character at `last` and the next one, at `at`, side by side.
    #[inline]
    pub fn is_cut(&self, text: &[u8], last: usize, at: usize) -> bool {
        if self.bytes[usize::from(text[at - 1]) | usize::from(text[at]) << 8] == 1 {
            return true;
        }
        if text[last] < LONG_CHARACTER && text[at] < LONG_CHARACTER {
            return false;
        }
        let next = &text[at..at + utf8::length_at(text, at)];
        let bit = pair_bit(character(&text[last..at]), character(next));
        self.pairs[bit >> 6] >> (bit & 63) & 1 == 0
    }
}
