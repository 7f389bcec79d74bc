//! What a single byte becomes that no cut leaves together with another one.
//!
//! In source code three quarters of all chunks are such bytes, in ordinary text a third. Their ids come from this table
//! of one KiB, without a key and without the cache.

use crate::vocab::piece_type;
use crate::vocab::vocabulary::Vocab;

/// The results for chunks of one byte. (A character of several bytes is never cut, so they are ASCII.)
pub struct Singles {
    /// The id of each byte that becomes exactly one id, whatever is around it.
    pub ids: Box<[u32; 256]>,
    /// The three lower bytes of these ids, for vector instructions.
    pub planes: Box<[[u8; 128]; 3]>,
    /// For the others, if there are any: 1. They are a space that becomes the three bytes of U+2581, UNUSED pieces, and,
    /// if unknown symbols side by side are one, characters that are unknown.
    pub odd: Option<Box<[u8; 256]>>,
}

impl Singles {
    /// The table of a vocabulary.
    pub fn new(vocab: &Vocab) -> Singles {
        let (mut ids, mut odd) = (Box::new([0; 256]), Box::new([0; 256]));
        for byte in 0..0x80u8 {
            let piece = vocab.find_mergeable(&[byte]).filter(|&id| Some(id) != vocab.unk);
            let fallback = || match &vocab.byte_ids {
                Some(byte_ids) if byte != b' ' || !vocab.swapped => Some(byte_ids[usize::from(byte)]),
                _ => None,
            };
            match piece.or_else(fallback) {
                Some(id) if vocab.kind(id) != piece_type::UNUSED => ids[usize::from(byte)] = id,
                _ => odd[usize::from(byte)] = 1,
            }
        }
        let any = odd.contains(&1);
        let planes = Box::new([0, 8, 16].map(|shift| std::array::from_fn(|byte| (ids[byte] >> shift) as u8)));
        Singles { ids, planes, odd: any.then_some(odd) }
    }
}
