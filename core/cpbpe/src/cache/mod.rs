//! Remembers the ids of chunks.

pub mod chunk_cache;
pub mod key;
pub mod once;
pub mod packed_ids;
pub mod source;

pub use chunk_cache::{BatchLookup, Cache, Found, BATCH};
pub use key::{Key, MAX_CHUNK};
pub use packed_ids::PackedIds;
pub use source::{Bytes, Ids, Source, STEP};

/// How many ids may be written after the last one.
pub const SPARE: usize = packed_ids::ROOM + STEP;
