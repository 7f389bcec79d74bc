//! A model as plain columns: every way of reading a model returns them, and a vocabulary is made from them.

use std::ops::Range;

use crate::error::Error;
use crate::text::normalizer_options::NormalizerOptions;
use crate::vocab::byte_level::ByteLevelOptions;
use crate::vocab::piece_type::{BYTE, NORMAL};

/// A model as columns, not checked yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    /// The texts of all pieces, one after another.
    pub blob: Vec<u8>,
    /// Where each piece ends in `blob`.
    pub ends: Vec<u32>,
    /// The score of each piece.
    pub scores: Vec<f32>,
    /// The type of each piece, by its number in the file.
    pub types: Vec<u8>,
    /// Whether unknown characters become BYTE pieces.
    pub byte_fallback: bool,
    /// The text that the UNKNOWN piece is decoded to.
    pub unk_surface: Vec<u8>,
    /// The names of unk, bos, eos and pad.
    pub special_pieces: [Vec<u8>; 4],
    /// The normalizer, applied before encoding.
    pub normalizer: NormalizerOptions,
    /// The denormalizer, applied after decoding.
    pub denormalizer: Option<NormalizerOptions>,
    /// What a byte-level model says about itself; `None` if symbols begin as characters.
    pub byte_level: Option<ByteLevelOptions>,
    /// Special tokens that were added to the model, and their ids.
    pub added: Vec<(Vec<u8>, u32)>,
}

impl Columns {
    /// Refuse columns that do not fit together.
    pub fn check(&self) -> Result<(), Error> {
        let count = self.ends.len();
        let fits = self.scores.len() == count
            && self.types.len() == count
            && self.ends.is_sorted()
            && self.ends.last().map_or(0, |&end| end as usize) == self.blob.len()
            && self.types.iter().all(|kind| (NORMAL..=BYTE).contains(kind));
        if fits {
            Ok(())
        } else {
            Err(Error::InvalidModel("its columns do not fit together"))
        }
    }

    /// Where piece `id` is in `blob`.
    #[inline]
    pub fn range(&self, id: usize) -> Range<usize> {
        let begin = if id == 0 { 0 } else { self.ends[id - 1] as usize };
        begin..self.ends[id] as usize
    }

    /// The text of piece `id`.
    #[inline]
    pub fn piece(&self, id: usize) -> &[u8] {
        &self.blob[self.range(id)]
    }
}
