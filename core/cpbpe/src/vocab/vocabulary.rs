//! The vocabulary of one model, ready for merging: look-up by text, ranks, and which characters can be joined.

use std::sync::Arc;

use crate::error::{Error, Halt};
use crate::lazy::{Lazy, Made};
use crate::memory::{collected, filled, with_room};
use crate::text::keys::Keys;
use crate::text::utf8;
use crate::text::utf8::swap_spaces;
use crate::vocab::byte_level::ByteLevel;
use crate::vocab::characters::{Characters, SingleBytes};
use crate::vocab::columns::Columns;
use crate::vocab::joinable::Joinable;
use crate::vocab::pieces::{has_byte, piece_type, window, Pieces, NONE, WINDOW};
use crate::watch::NO_CHECK;

/// sentencepiece refuses pieces with this many bytes or more.
const MAX_PIECE: usize = 8000;

/// A checked model.
pub struct Vocab {
    /// The pieces, with their texts swapped (see `text/utf8.rs`).
    pub pieces: Pieces,
    /// The text that the UNKNOWN piece is decoded to.
    pub unk_surface: Vec<u8>,
    /// The piece of each byte, if `byte_fallback`.
    pub byte_ids: Option<Box<[u32; 256]>>,
    /// The UNKNOWN piece.
    pub unk: Option<u32>,
    /// The UNKNOWN piece, if unknown symbols become it. Neighbouring unknown symbols are then one token, even across a
    /// cut.
    pub fused_unknown: Option<u32>,
    /// How many ids one byte of compact text can become, at most.
    pub ids_per_byte: usize,
    /// The ids to report for unk, bos, eos and pad.
    pub specials: [Option<u32>; 4],
    /// How many bytes a symbol takes before anything is merged, by the upper half of its first byte.
    symbol_lengths: [u8; 16],
    /// What a byte-level model has; `None` if symbols begin as characters.
    pub byte_level: Option<ByteLevel>,
    /// Which characters can be joined. `None` if a mergeable piece is not UTF-8, because text cannot be cut then, and
    /// for byte-level models, which have cuts of their own.
    pub joinable: Option<Joinable>,
    /// Whether there are UNUSED pieces. They merge like others, and are split again in the end.
    pub splits_unused: bool,
    /// Whether every mergeable piece is UTF-8. If not, user-defined pieces may break up characters, and text cannot be
    /// made compact.
    pub utf8: bool,
    /// Whether every piece is UTF-8, mergeable or not.
    pub all_utf8: bool,
    /// Whether U+2581 and the space are swapped in pieces and in text.
    pub swapped: bool,
    /// See `orders`.
    orders: Lazy<(Vec<u32>, usize)>,
    /// See `lengths`.
    lengths: Lazy<Vec<PieceLength>>,
    /// The USER_DEFINED pieces, with the texts that they have in the input.
    pub user_defined: Arc<Keys>,
    /// The same, with U+2581 and the space swapped.
    pub user_defined_compact: Arc<Keys>,
    /// Whether the spans of a text follow from its ids if no rules apply to it; see `follow_from_ids`.
    pub plain_spans: bool,
}

impl Vocab {
    /// Check a model as sentencepiece does. `swapped`: whether the normalizer writes spaces as U+2581.
    pub fn new(columns: Columns, swapped: bool) -> Result<Vocab, Error> {
        let invalid = |reason| Err(Error::InvalidModel(reason));
        let count = columns.ends.len();
        let byte_fallback = columns.byte_fallback;
        let byte_level = columns.byte_level.is_some();
        let mut pieces = Pieces::new(count, columns.blob.len());
        let mut byte_ids = [NONE; 256];
        let mut unk = None;
        let mut user_defined = Vec::new();
        let mut user_defined_compact = Vec::new();
        let mut splits_unused = false;
        let any_nul = !byte_level && memchr::memchr(0, &columns.blob).is_some();
        for id in 0..count {
            // 1. Check each piece by itself. A single NUL must be UNUSED, and is in no table, but in a byte-level model
            //    it is a piece like any other.
            let piece = columns.piece(id);
            if piece.is_empty() {
                return invalid("a piece is empty");
            }
            if piece.len() >= MAX_PIECE {
                return invalid("a piece has 8000 bytes or more");
            }
            let nul = any_nul && piece == b"\0";
            let kind = columns.types[id];
            if any_nul && !(nul && kind == piece_type::UNUSED) && memchr::memchr(0, piece).is_some() {
                return invalid("a piece contains a NUL character");
            }
            // 2. Check what is special about its type.
            match kind {
                piece_type::NORMAL | piece_type::CONTROL => {}
                _ if byte_level => return invalid("a piece of a byte-level model is neither NORMAL nor CONTROL"),
                piece_type::UNKNOWN if unk.replace(id as u32).is_some() => {
                    return invalid("two pieces have the type UNKNOWN")
                }
                piece_type::BYTE => match byte_of(piece) {
                    Some(byte) => byte_ids[usize::from(byte)] = id as u32,
                    None => return invalid("a piece of the type BYTE is not one of <0x00> to <0xFF>"),
                },
                piece_type::UNUSED if !nul => splits_unused = true,
                _ => {}
            }
            // 3. Put its text into the table of pieces, swapped if the normalizer writes spaces as U+2581.
            let write =
                |blob: &mut Vec<u8>| if swapped { swap_spaces(piece, blob) } else { blob.extend_from_slice(piece) };
            if kind == piece_type::USER_DEFINED {
                user_defined.push(piece.to_vec());
                let mut compact = Vec::new();
                write(&mut compact);
                user_defined_compact.push(compact);
            }
            pieces.push(write, kind, columns.scores[id])?;
        }
        pieces.finish(|piece| !byte_level && piece == b"\0")?;
        // 4. Check all pieces together.
        if !byte_fallback && byte_ids.iter().any(|&id| id != NONE) {
            return invalid("a piece has the type BYTE, but byte_fallback is off");
        }
        if byte_fallback && byte_ids.contains(&NONE) {
            return invalid("byte_fallback is on, but BYTE pieces are missing");
        }
        if byte_level && (byte_fallback || swapped) {
            return invalid("a byte-level model has byte_fallback, or writes spaces as U+2581");
        }
        if unk.is_none() && !byte_fallback && !byte_level {
            return invalid("no piece has the type UNKNOWN, and byte_fallback is off");
        }
        // 5. Derive the rest from the pieces.
        let raw_keys = Arc::new(Keys::new(&user_defined)?);
        let same = user_defined == user_defined_compact;
        let compact_keys = if same { raw_keys.clone() } else { Arc::new(Keys::new(&user_defined_compact)?) };
        let byte_level = columns.byte_level.map(|options| ByteLevel::new(options, &pieces)).transpose()?;
        let mut vocab = Vocab {
            pieces,
            symbol_lengths: if byte_level.is_some() { [1; 16] } else { utf8::LENGTHS },
            byte_level,
            unk_surface: columns.unk_surface,
            byte_ids: byte_fallback.then(|| Box::new(byte_ids)),
            unk,
            fused_unknown: if byte_fallback { None } else { unk },
            ids_per_byte: 1,
            specials: [None; 4],
            joinable: None,
            splits_unused,
            utf8: true,
            all_utf8: true,
            swapped,
            orders: Lazy::default(),
            lengths: Lazy::default(),
            plain_spans: follow_from_ids(&user_defined),
            user_defined: raw_keys,
            user_defined_compact: compact_keys,
        };
        let space = vocab.find_mergeable(b" ").filter(|&id| vocab.kind(id) != piece_type::UNUSED);
        if byte_fallback && space.is_none() {
            vocab.ids_per_byte = 3; // a space that is not a piece, or UNUSED, becomes the three bytes of U+2581
        }
        vocab.specials = vocab.find_specials(&columns.special_pieces);
        vocab.all_utf8 = vocab.pieces.are_utf8();
        vocab.utf8 = vocab.all_utf8 || vocab.pieces.mergeable_are_utf8();
        if vocab.utf8 && vocab.byte_level.is_none() {
            let singles = SingleBytes::new(&vocab);
            let characters = Characters::new(&vocab, &singles)?;
            vocab.joinable = Some(Joinable::new(&vocab.pieces, &vocab.user_defined_compact, singles, characters));
        }
        Ok(vocab)
    }

    fn find_specials(&self, names: &[Vec<u8>; 4]) -> [Option<u32>; 4] {
        let kinds = [piece_type::UNKNOWN, piece_type::CONTROL, piece_type::CONTROL, piece_type::CONTROL];
        let mut ids = [None; 4];
        for ((id, name), kind) in ids.iter_mut().zip(names).zip(kinds) {
            // If no piece has this name, sentencepiece's look-up returns the UNKNOWN piece.
            let named = self.id_of(name).or(self.unk);
            *id = named.filter(|&id| self.kind(id) == kind);
        }
        ids
    }

    /// The USER_DEFINED pieces, spelled as in a text that is compact or not.
    pub fn user_defined_in(&self, compact: bool) -> &Keys {
        if compact {
            &self.user_defined_compact
        } else {
            &self.user_defined
        }
    }

    /// How many pieces there are.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// The type of a piece.
    #[inline]
    pub fn kind(&self, id: u32) -> u8 {
        self.pieces.kind(id)
    }

    /// The ranks of all mergeable pieces, renumbered without gaps, and how many ranks there are.
    pub fn orders(&self) -> Result<Made<'_, (Vec<u32>, usize)>, Halt> {
        self.orders.get_or_make(|| {
            // (In most vocabularies they are in order already, and sorting has nothing to do.)
            let mut ranks = with_room(self.len())?;
            let ids = (0..self.len() as u32).filter(|&id| self.pieces.mergeable(id));
            ranks.extend(ids.map(|id| (self.pieces.rank(id), id)));
            ranks.sort_unstable();
            let mut orders = filled(0, self.len(), NO_CHECK)?;
            let mut count = 0;
            for same in ranks.chunk_by(|(rank, _), (next, _)| rank == next) {
                same.iter().for_each(|&(_, id)| orders[id as usize] = count);
                count += 1;
            }
            Ok((orders, count as usize))
        })
    }

    /// How long each piece is.
    pub fn lengths(&self) -> Result<Made<'_, Vec<PieceLength>>, Halt> {
        let length = |id| {
            if matches!(self.kind(id), piece_type::BYTE | piece_type::UNKNOWN) {
                return PieceLength { bytes: 0, characters: 0 };
            }
            let text = self.pieces.text(id); // (if it is not UTF-8, nobody asks for its characters)
            PieceLength { bytes: text.len() as u16, characters: utf8::count(text) as u16 }
        };
        self.lengths.get_or_make(|| collected((0..self.len() as u32).map(length)))
    }

    /// How many bytes the symbol at `at` of a text has before anything is merged.
    #[inline(always)]
    pub fn symbol_length(&self, text: &[u8], at: usize) -> usize {
        usize::from(self.symbol_lengths[usize::from(text[at] >> 4)]).min(text.len() - at)
    }

    /// The id of the piece with this (swapped) text, of any type.
    #[inline]
    pub fn find(&self, text: &[u8]) -> Option<u32> {
        self.pieces.find(text)
    }

    /// The id of the mergeable piece with this (swapped) text.
    #[inline]
    pub fn find_mergeable(&self, text: &[u8]) -> Option<u32> {
        if let [x @ ..0x80, y @ ..0x80] = *text {
            return Some(self.pieces.find_ascii(x, y)).filter(|&id| id != NONE);
        }
        self.find(text).filter(|&id| self.pieces.mergeable(id))
    }

    /// The id of a piece, given its text in the model file.
    pub fn id_of(&self, text: &[u8]) -> Option<u32> {
        if !self.swapped {
            return self.find(text);
        }
        if text.len() >= MAX_PIECE {
            return None;
        }
        // Most pieces are short, and have a space at the beginning or nowhere. They are found without allocating
        // memory, in a third of the time.
        let (begin, rest) = text.strip_prefix(utf8::SPACE).map_or((0, text), |rest| (1, rest));
        if rest.len() < WINDOW {
            let value = window(rest);
            if !has_byte(value, b' ') && !has_byte(value, utf8::SPACE[0]) {
                let value = if begin == 1 { value << 8 | u128::from(b' ') } else { value };
                return self.pieces.find_window(value, begin + rest.len());
            }
        }
        let mut swapped = Vec::with_capacity(text.len());
        swap_spaces(text, &mut swapped);
        self.find(&swapped)
    }

    /// The text of a piece in the model file.
    pub fn text_of(&self, id: u32, out: &mut Vec<u8>) {
        let piece = self.pieces.text(id);
        if self.swapped {
            swap_spaces(piece, out);
        } else {
            out.extend_from_slice(piece);
        }
    }
}

/// Whether user-defined pieces are the same in a text and in its normalized form, in which spaces have become U+2581.
/// If so, each character of a text to which no rules apply has a position of its own.
///
/// Normalizing copies such a piece as a whole, so all of it came from the position where it begins. That does not
/// matter if the piece also becomes a token. It does not become one if it contains a space (which becomes U+2581), or
/// if another piece, which begins with a space before it, takes a part of it. (Nobody asks this about texts with U+2581,
/// see `align.rs`. So no text contains a piece with U+2581; only normalized ones do.)
fn follow_from_ids(user_defined: &[Vec<u8>]) -> bool {
    let spaces = |piece: &[u8]| piece.len() / 3 * 3 == piece.len() && piece.chunks(3).all(|three| three == utf8::SPACE);
    let holds_space = |piece: &[u8]| memchr::memmem::find(piece, utf8::SPACE).is_some();
    let in_text = || user_defined.iter().filter(|piece| !holds_space(piece));
    in_text().all(|piece| !piece.contains(&b' '))
        && (in_text().next().is_none() || user_defined.iter().all(|piece| !holds_space(piece) || spaces(piece)))
}

/// The byte for which a piece such as `<0x41>` stands.
pub fn byte_of(piece: &[u8]) -> Option<u8> {
    let digits = piece.strip_prefix(b"<0x")?.strip_suffix(b">")?;
    let digits = std::str::from_utf8(digits).ok()?;
    if digits.len() != 2 || digits.bytes().any(|digit| digit.is_ascii_lowercase() || digit == b'+') {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}

/// The length of a piece in compact text, which is all that spans need to know about it.
#[derive(Clone, Copy)]
pub struct PieceLength {
    /// In bytes. 0 if its tokens may have other texts than the piece itself: BYTE and UNKNOWN pieces.
    pub bytes: u16,
    /// In characters. 0 for the same pieces.
    pub characters: u16,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_pieces() {
        assert_eq!(byte_of(b"<0x41>"), Some(0x41));
        for wrong in ["<0x4>", "<0xff>", "<0x041>", "0x41", "<0x+4>", "<0xG0>", "<0x41"] {
            assert_eq!(byte_of(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
