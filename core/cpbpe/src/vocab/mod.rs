//! A model as a value: read from a file, checked, and made ready for merging.

pub mod byte_level;
pub mod characters;
pub mod columns;
pub mod joinable;
pub mod pieces;
pub mod vocabulary;

pub use byte_level::{ByteLevel, ByteLevelOptions};
pub use columns::Columns;
pub use joinable::Joinable;
pub use pieces::{piece_type, NONE};
pub use vocabulary::Vocab;
