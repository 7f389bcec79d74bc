//! What a byte-level vocabulary has besides its pieces.
//!
//! Its symbols begin as single bytes, not as characters, and a pattern says where a text is cut. All else is the same:
//! the pair whose joined text has the lowest rank merges first, and the leftmost of equals.

use crate::error::Error;
use crate::machine::has_vectors;
use crate::split::Splitter;
use crate::vocab::byte_cuts::ByteCuts;
use crate::vocab::pieces::Pieces;

/// What a model file says about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByteLevelOptions {
    /// The regular expression whose matches are the chunks; empty if a text is one chunk.
    pub pattern: String,
    /// Other regular expressions, each of which cuts the chunks of the one before.
    pub then: Vec<String>,
    /// The name of the pattern, for people.
    pub name: String,
    /// Whether a chunk that is a piece is taken whole, even if no merges lead to it.
    pub whole: bool,
}

/// The same, ready for use.
pub struct ByteLevel {
    /// The options as they were given.
    pub options: ByteLevelOptions,
    /// Cuts text into chunks; `None` if a text is one.
    pub splitter: Option<Splitter>,
    /// The piece of each byte; that of a byte that no UTF-8 has may be missing, and is never looked up.
    pub ids: Box<[u32; 256]>,
    /// Where long chunks are cut.
    pub cuts: ByteCuts,
    /// Whether the machine has vector instructions.
    pub vector: bool,
}

impl ByteLevel {
    /// For the pieces of a model, which must have every byte of UTF-8.
    pub fn new(options: ByteLevelOptions, pieces: &Pieces) -> Result<ByteLevel, Error> {
        let mut ids = Box::new([0; 256]);
        for byte in 0..=u8::MAX {
            match pieces.find(&[byte]).filter(|&id| pieces.mergeable(id)) {
                Some(id) => ids[usize::from(byte)] = id,
                None if matches!(byte, 0xC0 | 0xC1 | 0xF5..) => ids[usize::from(byte)] = u32::MAX,
                None => return Err(Error::InvalidModel("a byte is not a piece of this byte-level model")),
            }
        }
        let splitter =
            if options.pattern.is_empty() { None } else { Some(Splitter::of_all(&options.pattern, &options.then)?) };
        let cuts = ByteCuts::new(pieces).map_err(|_| Error::OutOfMemory)?;
        Ok(ByteLevel { options, splitter, ids, cuts, vector: has_vectors() })
    }
}
