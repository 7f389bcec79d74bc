//! The hot loops of cpbpe: SentencePiece BPE, exactly, as fast as we know how.
//!
//! `cpbpe/reference/` is the specification and explains the algorithm; this crate does the same work. These are its rooms.
//! Each uses only itself and those above it (`tests/test_house.py` checks this):
//!
//! | room      | holds                                                                                            |
//! | --------- | ------------------------------------------------------------------------------------------------ |
//! | `error`, `memory`, `lazy`, `watch` | what can go wrong; buffers for which there may not be enough memory; values that are made when they are first needed; progress and Ctrl-C for long work |
//! | `machine` | steps for which some machines have instructions of their own                                     |
//! | `text`    | characters, charsmaps, normalizing, compact text, finders of keys; no model                      |
//! | `split`   | the patterns of byte-level BPE: where they split a text                                          |
//! | `vocab`   | a model: read from a file, checked, its pieces by id and by text                                 |
//! | `cache`   | remembers the ids of chunks                                                                      |
//! | `cut`     | where a text can be cut because nothing can merge there                                          |
//! | `merge`   | a chunk -> symbols, and which merges dropout skips                                               |
//! | `decode`  | ids -> text, and the part of the text that each id stands for                                    |
//! | `encode`  | text -> ids, tokens, counts; `Engine`: one model, and everything that can be asked of it         |
//! | `lines`   | ids as lines of text, and back                                                                   |
//! | `train`   | a corpus -> merges                                                                               |
//!
//! In most of the crate text is *compact*: a space stands for U+2581, which shortens the commonest character from three
//! bytes to one and lets most input be used as it is. See `text/utf8.rs`.
//!
//! All `unsafe` code of this crate, and what it gains: how many times as fast the code is as its safe form, on English,
//! 30 languages and source code. (Two binaries ran in turn on an AMD EPYC.)
//!
//! * `cache/mod.rs`: reading lines without bounds checks, and copying results four ids at a time: 1.3, 1.3 and 1.4. The
//!   caller must make room for the ids, so `append_cached` and `append_singles` in `encode/output.rs`, `cache/entry.rs`
//!   and their calls in `encode/encoder.rs` are unsafe, too.
//! * `memory.rs`: prefetching memory: 1.4, 1.5 and 1.3.
//! * `machine.rs`: reading two bytes as one number (`text/places.rs` does so, too): 1.06, 1.1 and 1.1. Also
//!   instructions that not every machine has, called by `encode/encoder.rs` on machines that have them: 1.3, 1.1 and
//!   1.2 (on an Intel Xeon). There are more of these in `text/normalize.rs`, and in `split/block.rs`, called by
//!   `split/scanner.rs`; for the splitting alone they gain 3.4, 2.5 and 3.6. They need a `Vector`, which exists only
//!   after the machine was found to have them.
//! * `decode.rs`: copying texts 16 bytes at a time: 3.0, 2.9 and 2.5.
//! * `memory.rs`: an allocator, which cannot be written in safe code, and `zeros`, which gets memory that the system
//!   has already filled with zeros.
//!
//! Three tests use `unsafe` as well: `cache/tests.rs`, `encode/gather.rs`, `tests/gathering.rs`. `core/python` has more
//! of it: see its `lib.rs`.
//!
//! `tests/random.rs`, `tests/cutting.rs` and the unit tests run all of it with debug assertions on; so do the targets of
//! `core/fuzz`, also with AddressSanitizer.

mod cache;
mod cut;
mod decode;
mod encode;
mod error;
mod lazy;
mod lines;
mod machine;
pub mod memory;
mod merge;
mod split;
mod text;
pub mod train;
mod vocab;
pub mod watch;

pub use decode::{DecodedSpans, DecodedTexts, NO_ID};
pub use encode::{
    join, AlignOptions, Consumer, EncodedTexts, Ends, Engine, GatheredTexts, Lines, Place, Scratch, Slices, Texts,
    Token, Wanted,
};
pub use error::{Error, Halt};
pub use lines::{decimal, read_ids, LineWriter, ReadIds};
#[doc(hidden)]
pub use machine::use_vectors;
pub use merge::Dropout;
pub use split::{Batch, Chunks, Splitter};
pub use text::finder::Finder;
pub use text::forms::Form;
pub use text::normalize::NormalizerOptions;
pub use text::utf8::repair_into;
pub use vocab::{ByteLevelOptions, Columns};
