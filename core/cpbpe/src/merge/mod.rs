//! Merges one chunk: its characters become symbols, until no two neighbours form a piece.
//!
//! Symbols are slices of the chunk, so the text of a pair is a slice, too, and one look-up in the vocabulary tells
//! whether it is a piece. There are two ways to find the best pair: short chunks are searched again and again, which is
//! quadratic, but faster than a queue for up to `short::MAX` bytes; long ones have a queue of pairs. With dropout there is
//! a third way for chunks of up to `choices::MAX` bytes.

mod choices;
mod chunk;
pub mod dropout;
mod long;
mod lookup;
mod short;
mod whole;

pub use choices::Choices;
pub use chunk::{merge_chunk, sample_chunk};
pub use dropout::{Chances, Dropout};
pub use lookup::{RawLookup, Sink};
pub use whole::merge_whole;
