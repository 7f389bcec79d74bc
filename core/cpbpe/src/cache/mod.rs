//! Remembers the ids of chunks.

pub mod chunk_cache;
pub mod key;
pub mod once;
pub mod packed_ids;
pub mod source;

pub use chunk_cache::{BatchLookup, Cache, Found, BATCH};
pub use key::{Key, MAX_CHUNK};
pub use packed_ids::PackedIds;
pub use source::{Bytes, Entries, Ids, Source};
