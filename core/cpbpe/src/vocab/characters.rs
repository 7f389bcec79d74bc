//! What is known about each character, by its code point: its id, and whether merging ever joins it with another one.
//!
//! In languages whose words are rare in a model, nearly all chunks are single characters: 90 % of those of Chinese,
//! Japanese, Korean, Thai, Hindi and Arabic in Llama's pieces, where no more than 250 characters are ever joined. One
//! number says that such a character can be cut off on both sides, and what it becomes. So no pair of characters has to
//! be looked up, and no key is needed.

use crate::error::Halt;
use crate::machine::{CharacterTable, Planes, CHARACTERS};
use crate::memory::zeros;
use crate::text::utf8;
use crate::vocab::piece_type;
use crate::vocab::vocabulary::Vocab;

/// The bits of an entry that hold the character's id.
pub const ID: u32 = UNKNOWN - 1;
/// A chunk of this character alone is always the UNKNOWN piece; neighbouring ones are one. An entry that is UNKNOWN but
/// not `ONE` is that of U+2581, if text with U+2581 is not compact.
pub const UNKNOWN: u32 = 1 << 28;
/// A chunk of this character alone is always one id. Other characters are looked up as longer chunks are.
pub const ONE: u32 = 1 << 29;
/// In some piece, this character comes after another one.
pub const AFTER: u32 = 1 << 30;
/// In some piece, this character comes before another one.
pub const BEFORE: u32 = 1 << 31;

/// The entry of a character that is a piece, but to which none of the above applies.
const LOOKED_UP: u32 = 1;
/// Characters from here on share one entry.
const LAST: u32 = CHARACTERS as u32 - 1;

/// An entry for each character.
pub struct Characters {
    /// By code point; 0 for characters that are in no piece. (Zeros that are never written take no memory.)
    entries: Box<[u32; CHARACTERS]>,
    /// The entry for which 0 stands.
    default: u32,
}

/// Whether a character may have to be looked up where it is a chunk by itself. An UNKNOWN character would become one
/// with its neighbours; but if it may be joined with the next one, that is not known before the next one has been read.
#[inline(always)]
pub fn is_looked_up(entry: u32) -> bool {
    entry & ONE == 0 || entry & (UNKNOWN | BEFORE) == UNKNOWN | BEFORE
}

/// The code point of the character with which these bytes begin. (There are no branches, because its length is
/// unpredictable.)
#[inline(always)]
pub fn code_point(bytes: [u8; 4]) -> u32 {
    /// By the first byte: where the bits of the code point begin among those of all four bytes, and how many there are.
    const BITS: [(u8, u8); 16] = {
        let mut bits = [(18, 7); 16];
        (bits[12], bits[13], bits[14], bits[15]) = ((12, 11), (12, 11), (6, 16), (0, 21));
        bits
    };
    let x = u32::from_be_bytes(bytes);
    let all = x >> 6 & 0x1FC_0000 | x >> 4 & 0x3_F000 | x >> 2 & 0xFC0 | x & 0x3F;
    let (shift, count) = BITS[usize::from(bytes[0] >> 4)];
    all >> shift & ((1 << count) - 1)
}

/// The bytes of a character, followed by zeros.
fn first_four(text: &[u8]) -> [u8; 4] {
    std::array::from_fn(|i| text.get(i).copied().unwrap_or(0))
}

impl Characters {
    /// The table of a vocabulary, in which no character is joined yet.
    pub fn new(vocab: &Vocab, singles: &SingleBytes) -> Result<Characters, Halt> {
        // 1. A character that is in no piece becomes bytes, or the UNKNOWN piece.
        let default = vocab.fused_unknown.filter(|&id| id <= ID).map_or(0, |id| id | ONE | UNKNOWN);
        let mut characters = Characters::all(default)?;
        // 2. Set the entries of characters of one byte.
        for byte in 0..0x80u8 {
            let looked_up = singles.looked_up.as_ref().is_some_and(|looked_up| looked_up[usize::from(byte)] != 0);
            let id = singles.ids[usize::from(byte)];
            if !looked_up && id <= ID {
                *characters.entry_mut(u32::from(byte)) = id | ONE;
            } else if vocab.find_mergeable(&[byte]).is_some() {
                *characters.entry_mut(u32::from(byte)) = LOOKED_UP;
            }
        }
        // 3. Set the entries of longer characters that are pieces.
        let short = |id: &u32| (2..5).contains(&vocab.pieces.text(*id).len());
        for id in (0..vocab.len() as u32).filter(short) {
            let text = vocab.pieces.text(id);
            let one = text[0] >= 0xC0 && utf8::length_by_first(text[0]) == text.len();
            if one && vocab.find_mergeable(text) == Some(id) {
                let usual = vocab.kind(id) != piece_type::UNUSED && Some(id) != vocab.unk && id <= ID;
                characters.set(text, if usual { id | ONE } else { LOOKED_UP });
            }
        }
        if vocab.swapped {
            characters.set(utf8::SPACE, UNKNOWN);
        }
        Ok(characters)
    }

    /// The same entry for all characters.
    pub fn all(default: u32) -> Result<Characters, Halt> {
        let entries = zeros(CHARACTERS)?.into_boxed_slice().try_into().map_err(|_| Halt::OutOfMemory)?;
        Ok(Characters { entries, default })
    }

    /// Set the entry of a character.
    fn set(&mut self, text: &[u8], entry: u32) {
        let code = code_point(first_four(text));
        *self.entry_mut(code) = if code < LAST { entry } else { LOOKED_UP };
    }

    /// Record what the table of bytes says about characters of one byte. The table has, for the bytes `x y` at `x | y
    /// << 8`, 0 if in some piece a character that ends in x comes before one that begins with y.
    pub fn join_ascii(&mut self, cuts: &[u8; 1 << 16]) {
        for byte in 0..0x80usize {
            // (Bytes that continue a character count as joined with any byte.)
            let mut firsts = (0..256).filter(|first| !(0x80..0xC0).contains(first));
            if firsts.any(|first| cuts[byte | first << 8] == 0) {
                self.mark(byte as u32, BEFORE);
            }
            if cuts[byte << 8..][..256].contains(&0) {
                self.mark(byte as u32, AFTER);
            }
        }
    }

    /// Record that some piece contains these two characters side by side.
    pub fn join(&mut self, left: &[u8], right: &[u8]) {
        self.mark(code_point(first_four(left)), BEFORE);
        self.mark(code_point(first_four(right)), AFTER);
    }

    /// Record one of these flags for a character, which may not be a piece itself.
    fn mark(&mut self, code: u32, flag: u32) {
        let default = self.default;
        let entry = self.entry_mut(code);
        *entry = if *entry == 0 { default } else { *entry } | flag;
    }

    /// The entry of a character.
    #[inline(always)]
    pub fn entry(&self, code: u32) -> u32 {
        match self.entries[code.min(LAST) as usize] {
            0 => self.default,
            entry => entry,
        }
    }

    /// All entries.
    #[inline(always)]
    pub fn table(&self) -> CharacterTable<'_> {
        CharacterTable { entries: &self.entries, default: self.default, id_bits: ID }
    }

    /// The entry of a character.
    fn entry_mut(&mut self, code: u32) -> &mut u32 {
        &mut self.entries[code.min(LAST) as usize]
    }
}

// --- Single bytes --------------------------------------------------------------------------------
//
// What a single byte becomes if there is a cut on both sides of it.
//
// Three quarters of all chunks of source code are such bytes, and a third of those of ordinary text. Their ids come
// from this table of one KiB, without a key and without the cache.

/// The results for chunks of one byte. (A character of several bytes is never cut, so they are ASCII.)
pub struct SingleBytes {
    /// The ids of bytes that become exactly one id, whatever is around them.
    pub ids: Box<[u32; 256]>,
    /// The three lower bytes of these ids, for vector instructions.
    pub planes: Box<Planes>,
    /// 1 for each of the other bytes, if there are any: a space that becomes the three bytes of U+2581; UNUSED pieces;
    /// and, if neighbouring unknown symbols are one, unknown characters.
    pub looked_up: Option<Box<[u8; 256]>>,
}

impl SingleBytes {
    /// The table of a vocabulary.
    pub fn new(vocab: &Vocab) -> SingleBytes {
        let (mut ids, mut looked_up) = (Box::new([0; 256]), Box::new([0; 256]));
        for byte in 0..0x80u8 {
            let piece = vocab.find_mergeable(&[byte]).filter(|&id| Some(id) != vocab.unk);
            let fallback = || match &vocab.byte_ids {
                Some(byte_ids) if byte != b' ' || !vocab.swapped => Some(byte_ids[usize::from(byte)]),
                _ => None,
            };
            match piece.or_else(fallback) {
                Some(id) if vocab.kind(id) != piece_type::UNUSED => ids[usize::from(byte)] = id,
                _ => looked_up[usize::from(byte)] = 1,
            }
        }
        let any = looked_up.contains(&1);
        let planes = Box::new([0, 8, 16].map(|shift| std::array::from_fn(|byte| (ids[byte] >> shift) as u8)));
        SingleBytes { ids, planes, looked_up: any.then_some(looked_up) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_points_of_all_characters() {
        for character in '\0'..=char::MAX {
            let mut bytes = [0xFF; 4]; // what comes after a character must not matter
            character.encode_utf8(&mut bytes);
            assert_eq!(code_point(bytes), u32::from(character));
        }
    }
}
