//! The vocabulary of one model, ready for merging: look-up by text, ranks, and which characters may join.

use crate::error::Error;
use crate::lazy::{Lazy, Made};
use crate::model::{self, Columns};
use crate::table::Pieces;
use crate::utf8;
use crate::words::Words;

/// No piece has this id.
pub const NONE: u32 = u32::MAX;
/// sentencepiece refuses pieces of this many bytes and more.
pub const MAX_PIECE: usize = 8000;

/// Two characters side by side, as one number.
#[inline]
fn pair_bit(left: u32, right: u32) -> usize {
    let mixed = (u64::from(left) << 32 | u64::from(right)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 47) as usize
}

/// The bytes of one character as a number; of more than four, the first four.
pub const fn character(bytes: &[u8]) -> u32 {
    let (mut value, mut i) = (0, 0);
    while i < bytes.len() && i < 4 {
        value |= (bytes[i] as u32) << (8 * i);
        i += 1;
    }
    value
}

/// What may join, as two tables; see `chunk.rs`.
pub struct Joinable {
    /// For the bytes `x y`, at `x | y << 8`: 0 join, 1 cut.
    pub bytes: Box<[u8; 1 << 16]>,
    /// A bit for each pair of characters that some piece holds side by side, at its hash. A wrong one
    /// of two pairs with the same hash only joins what could be cut, which is exact, too.
    pairs: Box<[u64; 1 << 11]>,
}

impl Joinable {
    fn new() -> Joinable {
        Joinable { bytes: boxed(1), pairs: boxed(0) }
    }

    /// Mark the characters `left` and `right` as joinable.
    fn add(&mut self, left: &[u8], right: &[u8]) {
        let (Some(&last), Some(&first)) = (left.last(), right.first()) else { return };
        let bit = pair_bit(character(left), character(right));
        self.pairs[bit >> 6] |= 1 << (bit & 63);
        self.bytes[usize::from(last) | usize::from(first) << 8] = 0;
    }

    /// Whether some piece may hold `left` and `right` side by side.
    #[inline]
    pub fn pair(&self, left: u32, right: u32) -> bool {
        let bit = pair_bit(left, right);
        self.pairs[bit >> 6] >> (bit & 63) & 1 != 0
    }
}

fn boxed<T: Copy, const N: usize>(value: T) -> Box<[T; N]> {
    // A Box of a large array would be built on the stack first.
    match vec![value; N].into_boxed_slice().try_into() {
        Ok(array) => array,
        Err(_) => unreachable!("the vector was made with N elements"),
    }
}

/// A checked model.
pub struct Vocab {
    /// The pieces, with their texts swapped (see `swap`).
    pub pieces: Pieces,
    /// What the UNKNOWN piece is decoded to.
    pub unk_surface: Vec<u8>,
    /// The piece of each byte, if `byte_fallback`.
    pub byte_ids: Option<Box<[u32; 256]>>,
    /// The piece of type UNKNOWN.
    pub unk: Option<u32>,
    /// The ids to report for unk, bos, eos and pad.
    pub specials: [Option<u32>; 4],
    /// Which characters may join; `None` if cutting could change a result.
    pub joinable: Option<Joinable>,
    /// Whether there are UNUSED pieces.
    pub has_unused: bool,
    /// Whether every mergeable piece is UTF-8. If not, user-defined pieces may break characters, and text cannot be
    /// made compact.
    pub utf8: bool,
    /// Whether pieces and text have U+2581 and space swapped.
    pub swapped: bool,
    /// See `orders`.
    orders: Lazy<(Vec<u32>, usize)>,
    /// The USER_DEFINED pieces in the text they have in input, and swapped.
    pub user_defined: Words,
    /// The same, swapped.
    pub user_defined_compact: Words,
}

/// Exchange U+2581 and the space in a text. It undoes itself, and it is how compact text is defined:
/// a normalized text (which holds no space, each having become U+2581) shrinks, a piece keeps its identity.
pub fn swap(text: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while at < text.len() {
        if text[at] == b' ' {
            out.extend_from_slice(utf8::SPACE);
            at += 1;
        } else if text[at..].starts_with(utf8::SPACE) {
            out.push(b' ');
            at += utf8::SPACE.len();
        } else {
            out.push(text[at]);
            at += 1;
        }
    }
}

impl Vocab {
    /// Check a model as sentencepiece does. `swapped`: the normalizer writes spaces as U+2581.
    pub fn new(columns: Columns, swapped: bool) -> Result<Vocab, Error> {
        let invalid = |reason| Err(Error::InvalidModel(reason));
        let count = columns.ends.len();
        let byte_fallback = columns.byte_fallback;
        let mut pieces = Pieces::new(count, columns.blob.len());
        let mut byte_ids = [NONE; 256];
        let mut unk = None;
        let mut user_defined = Vec::new();
        let mut user_defined_compact = Vec::new();
        let mut has_unused = false;
        for id in 0..count {
            let piece = columns.piece(id);
            if piece.is_empty() {
                return invalid("a piece is empty");
            }
            if piece.len() >= MAX_PIECE {
                return invalid("a piece has 8000 bytes or more");
            }
            let nul = piece == b"\0";
            let kind = if nul && byte_fallback { model::UNUSED } else { columns.types[id] };
            if !(nul && kind == model::UNUSED) && memchr::memchr(0, piece).is_some() {
                return invalid("a piece contains a NUL character");
            }
            match kind {
                model::UNKNOWN if unk.replace(id as u32).is_some() => {
                    return invalid("two pieces have the type UNKNOWN")
                }
                model::BYTE => match byte_of(piece) {
                    Some(byte) => byte_ids[usize::from(byte)] = id as u32,
                    None => return invalid("a piece of the type BYTE is not one of <0x00> to <0xFF>"),
                },
                model::UNUSED if !nul => has_unused = true,
                _ => {}
            }
            let write = |blob: &mut Vec<u8>| if swapped { swap(piece, blob) } else { blob.extend_from_slice(piece) };
            if kind == model::USER_DEFINED {
                user_defined.push(piece.to_vec());
                let mut compact = Vec::new();
                write(&mut compact);
                user_defined_compact.push(compact);
            }
            pieces.push(write, kind, columns.scores[id], !nul)?;
        }
        pieces.finish();
        if !byte_fallback && byte_ids.iter().any(|&id| id != NONE) {
            return invalid("a piece has the type BYTE, but byte_fallback is off");
        }
        if byte_fallback && byte_ids.contains(&NONE) {
            return invalid("byte_fallback is on, but BYTE pieces are missing");
        }
        if unk.is_none() && !byte_fallback {
            return invalid("no piece has the type UNKNOWN, and byte_fallback is off");
        }
        let mut vocab = Vocab {
            pieces,
            unk_surface: columns.unk_surface,
            byte_ids: byte_fallback.then(|| Box::new(byte_ids)),
            unk,
            specials: [None; 4],
            joinable: None,
            has_unused,
            utf8: true,
            swapped,
            orders: Lazy::default(),
            user_defined: Words::new(user_defined),
            user_defined_compact: Words::new(user_defined_compact),
        };
        vocab.specials = vocab.find_specials(&columns.special_pieces);
        vocab.utf8 = (0..count as u32)
            .filter(|&id| vocab.pieces.mergeable(id))
            .all(|id| std::str::from_utf8(vocab.pieces.text(id)).is_ok());
        vocab.joinable = vocab.find_joinable();
        Ok(vocab)
    }

    fn find_specials(&self, names: &[Vec<u8>; 4]) -> [Option<u32>; 4] {
        let kinds = [model::UNKNOWN, model::CONTROL, model::CONTROL, model::CONTROL];
        let mut found = [None; 4];
        for ((found, name), kind) in found.iter_mut().zip(names).zip(kinds) {
            // When no piece has the name, sentencepiece's look-up answers with the UNKNOWN piece.
            let id = self.id_of(name).or(self.unk);
            *found = id.filter(|&id| self.kind(id) == kind);
        }
        found
    }

    fn find_joinable(&self) -> Option<Joinable> {
        if self.has_unused || !self.utf8 {
            return None; // an UNUSED piece is split as it was last seen in the whole text
        }
        let mut joinable = Joinable::new();
        for id in 0..self.len() as u32 {
            if !self.pieces.mergeable(id) {
                continue;
            }
            let text = self.pieces.text(id);
            let mut at = 0;
            let mut before: &[u8] = b"";
            while at < text.len() {
                let next = at + utf8::length_by_first(text[at]);
                joinable.add(before, &text[at..next]);
                before = &text[at..next];
                at = next;
            }
        }
        for first in 0x80..0xC0usize {
            for last in 0..256usize {
                joinable.bytes[last | first << 8] = 0; // inside a character
            }
        }
        Some(joinable)
    }

    /// How many pieces there are.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Never true: a model has pieces.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The type of a piece.
    #[inline]
    pub fn kind(&self, id: u32) -> u8 {
        self.pieces.kind(id)
    }

    /// For each mergeable piece its rank, but counted without gaps; and how many ranks there are.
    pub fn orders(&self) -> Made<'_, (Vec<u32>, usize)> {
        self.orders.get_or_make(|| {
            let ids = 0..self.len() as u32;
            let mut ranks: Vec<u32> =
                ids.clone().filter(|&id| self.pieces.mergeable(id)).map(|id| self.pieces.rank(id)).collect();
            ranks.sort_unstable();
            ranks.dedup();
            let order = |id| ranks.partition_point(|&rank| rank < self.pieces.rank(id)) as u32;
            (ids.map(order).collect(), ranks.len())
        })
    }

    /// The id of the piece with this (swapped) text, of any type.
    #[inline]
    pub fn find(&self, text: &[u8]) -> Option<u32> {
        self.pieces.find(text)
    }

    /// The id of the piece that merging may make with this (swapped) text.
    #[inline]
    pub fn find_mergeable(&self, text: &[u8]) -> Option<u32> {
        self.find(text).filter(|&id| self.pieces.mergeable(id))
    }

    /// The id of a piece, by its text in the model file.
    pub fn id_of(&self, text: &[u8]) -> Option<u32> {
        if !self.swapped {
            return self.find(text);
        }
        let mut swapped = Vec::with_capacity(text.len());
        swap(text, &mut swapped);
        self.find(&swapped)
    }

    /// The text of a piece in the model file.
    pub fn text_of(&self, id: u32, out: &mut Vec<u8>) {
        let piece = self.pieces.text(id);
        if self.swapped {
            swap(piece, out);
        } else {
            out.extend_from_slice(piece);
        }
    }
}

/// The byte of a piece `<0x41>`.
pub fn byte_of(piece: &[u8]) -> Option<u8> {
    let digits = piece.strip_prefix(b"<0x")?.strip_suffix(b">")?;
    let digits = std::str::from_utf8(digits).ok()?;
    if digits.len() != 2 || digits.bytes().any(|digit| digit.is_ascii_lowercase() || digit == b'+') {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swapping_undoes_itself() {
        let text = "a b\u{2581}\u{2582} ".as_bytes();
        let (mut once, mut twice) = (Vec::new(), Vec::new());
        swap(text, &mut once);
        swap(&once, &mut twice);
        assert_eq!(once, "a\u{2581}b \u{2582}\u{2581}".as_bytes());
        assert_eq!(twice, text);
    }

    #[test]
    fn bytes_of_pieces() {
        assert_eq!(byte_of(b"<0x41>"), Some(0x41));
        for wrong in ["<0x4>", "<0xff>", "<0x041>", "0x41", "<0x+4>", "<0xG0>", "<0x41"] {
            assert_eq!(byte_of(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
