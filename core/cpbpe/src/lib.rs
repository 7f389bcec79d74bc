//! The hot loops of cpbpe: SentencePiece BPE, exactly, as fast as we know how.
//!
//! `cpbpe/reference/` is the specification and explains the algorithm; this crate does the same work. Its rooms, in an
//! order in which each uses only those above it:
//!
//! | room      | holds                                                                                  |
//! | --------- | -------------------------------------------------------------------------------------- |
//! | `text/`   | characters, charsmaps, normalizing, compact text, finders of keys; no model            |
//! | `vocab/`  | a model: read from a file, checked, pieces by id and by text                           |
//! | `cut/`    | where a text can be cut because nothing can merge there                                |
//! | `merge/`  | a chunk -> symbols, and which merges dropout leaves out                                |
//! | `cache/`  | remembers what chunks became                                                           |
//! | `decode`  | ids -> text; `decode_spans` says where in it each is                                   |
//! | `encode/` | text -> ids, tokens, counts; `Engine`: one model, and all that can be asked of it      |
//! | `split/`  | the patterns of byte-level BPE: where they split a text                               |
//! | `train/`  | a corpus -> merges; of the rooms it uses only `text/`                                  |
//!
//! Beside them are `error` (what can go wrong), `lazy` (values made when first needed), `lines` (ids as lines of text,
//! and back), `machine` (steps for which some machines have instructions of their own), `memory` (large buffers, for
//! which there may not be enough memory), `message` (tokens as protobuf), `prefetch`, and `watch` (long work, with
//! progress and an end on request).
//!
//! In most of the crate text is *compact*: a space stands for U+2581, which shortens the commonest character from three
//! bytes to one and lets most input be used as it is. See `text/compact.rs`.
//!
//! All `unsafe` code of this crate, and what it gains: how many times as fast it is as the safe form, on English, 30
//! languages and source code (two binaries in turn on an AMD EPYC).
//!
//! * `cache/chunk_cache.rs`: lines without a check of bounds, results copied four ids at a time: 1.3, 1.3 and 1.4. The
//!   caller must make room for the ids, so `append_cached` and `append_singles` in `encode/output.rs`, `cache/source.rs`
//!   and their calls in `encode/encoder.rs` and `encode/split.rs` are unsafe, too.
//! * `prefetch.rs`: asking for memory ahead of time: 1.4, 1.5 and 1.3.
//! * `machine.rs`: two bytes read as one number (so does `text/places.rs`): 1.06, 1.1 and 1.1; and instructions that not
//!   every machine has, called by `encode/encoder.rs` where it has: 1.3, 1.1 and 1.2 (on an Intel Xeon). More of them in
//!   `machine/entries.rs`, in `text/normalize/blocks.rs`, and in `split/block.rs`, called by `split/scanner.rs`, for the
//!   splitting alone: 3.4, 2.5 and 3.6.
//! * `decode.rs`: texts copied 16 bytes at a time: 3.0, 2.9 and 2.5.
//! * `memory.rs`: an allocator, which cannot be written in safe code, and `zeros`, which gets memory that the system
//!   has filled with zeros already.
//!
//! Three tests use it as well: `cache/chunk_cache/tests.rs`, `encode/join.rs`, `tests/gathering.rs`. `core/python` has more:
//! see its `lib.rs`.
//!
//! `tests/random.rs`, `tests/cutting.rs` and the unit tests walk through all of it with debug assertions on.

mod cache;
mod cut;
mod decode;
mod decode_spans;
mod encode;
mod error;
mod lazy;
mod lines;
mod machine;
pub mod memory;
mod merge;
mod message;
mod prefetch;
mod split;
mod text;
pub mod train;
mod vocab;
pub mod watch;

pub use decode::{DecodedTexts, NO_ID};
pub use decode_spans::DecodedSpans;
pub use encode::{
    join, AlignOptions, AlignedTexts, Consumer, EncodedTexts, Ends, Engine, GatheredTexts, Place, Scratch, Slices,
    Texts, Token,
};
pub use error::{Error, Halt};
pub use lines::{decimal, read_ids, LineWriter, ReadIds};
#[doc(hidden)]
pub use machine::use_vectors;
pub use merge::Dropout;
pub use split::{Batch, Chunks, Splitter};
pub use text::finder::Finder;
pub use text::forms::Form;
pub use text::lines::Lines;
pub use text::normalizer_options::NormalizerOptions;
pub use text::utf8::repair_into;
pub use vocab::{ByteLevelOptions, Columns};
