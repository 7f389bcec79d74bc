//! Merges one chunk: its characters become symbols, until no two neighbours form a piece.
//!
//! Symbols are slices of the chunk, so the text of a pair is a slice, too, and one look-up in the vocabulary tells
//! whether it is a piece. There are two ways to find the best pair: short chunks are searched again and again, which is
//! quadratic, but faster than a queue for up to `short::MAX` bytes; long ones have a queue of pairs.

mod chunk;
pub mod dropout;
mod long;
mod lookup;
mod short;
mod whole;

pub use chunk::merge_chunk;
pub use dropout::Dropout;
pub use lookup::{RawLookup, Sink};
pub use whole::merge_whole;
