//! The hot loops of cpbpe: BPE as SentencePiece and byte-level models do it, exactly, and as fast as we know how.
//!
//! `cpbpe/reference/` is the specification and explains the algorithm; this crate does the same work. These are its rooms.
//! Each uses only itself and those above it (`tests/test_house.py` checks this):
//!
//! | room      | holds                                                                                            |
//! | --------- | ------------------------------------------------------------------------------------------------ |
//! | `error`, `memory`, `lazy`, `watch` | what can go wrong; buffers for which there may not be enough memory; values that are made when they are first needed; progress and Ctrl-C for long work |
//! | `machine` | inner loops that use AVX2, AVX-512 or NEON where the processor has it                            |
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
//! `docs/unsafe.md` lists all `unsafe` code, why it is right, and what it gains.
//!
//! The unit tests and those in `tests/` (above all `tests/random.rs`) run all `unsafe` code with debug assertions; the
//! targets of `core/fuzz` do so under AddressSanitizer, too.

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
    join, AlignOptions, Consumer, EncodedTexts, Ends, Engine, GatheredTexts, Lines, Scratch, Slices, Target, Texts,
    Token, Wanted,
};
pub use error::{Error, Halt};
pub use lines::{decimal, read_ids, LineWriter, ReadIds};
#[doc(hidden)]
pub use machine::{use_at_most, Instructions};
pub use merge::Dropout;
pub use split::{Batch, Chunks, Splitter};
pub use text::finder::Finder;
pub use text::forms::Form;
pub use text::normalize::NormalizerOptions;
pub use text::utf8::repair_into;
pub use vocab::{ByteLevelOptions, Columns};
