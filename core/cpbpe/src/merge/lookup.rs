//! What merging needs from its callers: pieces by their texts, and a receiver of the symbols.

use crate::error::Halt;
use crate::vocab::Vocab;

/// Receives the symbols of a chunk from left to right; an unknown one has the id `NONE`.
pub trait Sink {
    /// Make room for the results of symbols of this many bytes. Called before `symbol`.
    fn make_room(&mut self, bytes: usize) -> Result<(), Halt>;
    /// The symbol `begin..end` of the chunk.
    fn symbol(&mut self, id: u32, begin: usize, end: usize);
}

/// How the texts of symbols are looked up in a vocabulary.
pub trait Lookup {
    /// The mergeable piece with this text.
    fn mergeable(&self, text: &[u8]) -> Option<u32>;
    /// The piece with this text, of any type.
    fn any(&self, text: &[u8]) -> Option<u32>;
    /// The vocabulary itself.
    fn vocab(&self) -> &Vocab;
}

impl Lookup for &Vocab {
    #[inline]
    fn mergeable(&self, text: &[u8]) -> Option<u32> {
        self.find_mergeable(text)
    }
    #[inline]
    fn any(&self, text: &[u8]) -> Option<u32> {
        self.find(text)
    }
    #[inline]
    fn vocab(&self) -> &Vocab {
        self
    }
}

/// Looks up text as it is in the model file: for normalized text that is not UTF-8 and cannot be compact.
pub struct RawLookup<'a>(pub &'a Vocab);

impl Lookup for RawLookup<'_> {
    fn mergeable(&self, text: &[u8]) -> Option<u32> {
        self.any(text).filter(|&id| self.0.pieces.mergeable(id))
    }
    fn any(&self, text: &[u8]) -> Option<u32> {
        self.0.id_of(text)
    }
    fn vocab(&self) -> &Vocab {
        self.0
    }
}
