//! A model as a value: read from a file, checked, and made ready for merging.

pub mod byte_cuts;
pub mod byte_level;
pub mod characters;
pub mod classes;
pub mod columns;
pub mod file;
pub mod joinable;
pub mod lengths;
pub mod piece_type;
pub mod pieces;
pub mod singles;
pub mod starts;
pub mod unkeyed;
pub mod vocabulary;

pub use byte_level::{ByteLevel, ByteLevelOptions};
pub use columns::Columns;
pub use joinable::Joinable;
pub use pieces::NONE;
pub use starts::KeyStarts;
pub use unkeyed::Unkeyed;
pub use vocabulary::Vocab;
