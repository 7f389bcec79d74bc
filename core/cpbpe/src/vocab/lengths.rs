//! The lengths of pieces, which is all that spans need to know about them.

use crate::error::Halt;
use crate::memory::collected;
use crate::text::utf8;
use crate::vocab::piece_type;
use crate::vocab::pieces::Pieces;

/// The length of each piece in compact text.
pub struct PieceLengths(Vec<PieceLength>);

/// The length of one piece.
#[derive(Clone, Copy)]
pub struct PieceLength {
    /// In bytes; 0 if its tokens have other texts than the piece itself: BYTE and UNKNOWN pieces.
    pub bytes: u16,
    /// In characters; 0 likewise.
    pub characters: u16,
}

impl PieceLengths {
    /// Measure pieces. Those that can be merged are UTF-8.
    pub fn new(pieces: &Pieces) -> Result<PieceLengths, Halt> {
        let length = |id| {
            if matches!(pieces.kind(id), piece_type::BYTE | piece_type::UNKNOWN) {
                return PieceLength { bytes: 0, characters: 0 };
            }
            let text = pieces.text(id);
            PieceLength { bytes: text.len() as u16, characters: utf8::count(text) as u16 }
        };
        Ok(PieceLengths(collected((0..pieces.len() as u32).map(length))?))
    }

    /// The length of a piece.
    #[inline]
    pub fn of(&self, id: u32) -> PieceLength {
        self.0[id as usize]
    }
}
