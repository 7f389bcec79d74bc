//! The hot loops of cpbpe: SentencePiece BPE, exactly, as fast as we know how.
//!
//! `cpbpe/reference.py` is the specification and explains the algorithm; this crate does the same work.
//! Read it in this order, which is also the order in which text flows:
//!
//! | file           | does                                                                        |
//! | -------------- | --------------------------------------------------------------------------- |
//! | `model.rs`     | reads the protobuf wire format of a model file into columns                 |
//! | `table.rs`     | the pieces: text, type, rank, look-up by text                               |
//! | `words.rs`     | finds user-defined pieces in text                                           |
//! | `vocab.rs`     | columns -> `Vocab`: the pieces, and which characters may join               |
//! | `charsmap.rs`  | walks a compiled rule set                                                   |
//! | `normalize.rs` | text -> normalized bytes, with a map back                                   |
//! | `chunk.rs`     | cuts text where nothing can merge                                           |
//! | `merge.rs`     | merges one chunk                                                            |
//! | `long.rs`      | merges one that is long                                                     |
//! | `lazy.rs`      | what is made when it is first needed                                        |
//! | `key.rs`       | what a chunk is looked up by                                                |
//! | `found.rs`     | what it became, in one word                                                 |
//! | `cache.rs`     | remembers chunks                                                            |
//! | `dropout.rs`   | chances for merges to be left out                                           |
//! | `encode.rs`    | text -> ids                                                                 |
//! | `tokens.rs`    | text -> ids with spans                                                      |
//! | `decode.rs`    | ids -> text                                                                 |
//! | `engine.rs`    | one model with its spare caches; threads                                    |
//! | `settled.rs`   | how much of a text more text cannot change                                  |
//! | `matcher.rs`   | finds special tokens in text                                                |
//! | `watch.rs`     | long work in a thread, with progress and an end on request                  |
//! | `train/`       | from a corpus to the merges: a crate map of its own                         |
//! | `python*.rs`   | the only files that know Python                                             |
//!
//! Inside the crate, text is *compact*: a space stands for U+2581, which shortens the commonest
//! character from three bytes to one and lets most input be used as it is. See `vocab::swap`.
//!
//! What is `unsafe`, and what it buys (the speed without it, on English, 30 languages and source code; two
//! binaries in turn on an AMD EPYC):
//!
//! * `cache.rs`: lines without a check of bounds, results copied four ids at a time: 1.3, 1.3 and 1.4 times as fast.
//! * `prefetch.rs`: asking for memory ahead of time: 1.4, 1.5 and 1.3 times.
//! * `chunk.rs`: two bytes read as one number: 1.06, 1.1 and 1.1 times.
//! * `decode.rs`: texts copied 16 bytes at a time: 3.0, 2.9 and 2.5 times.
//! * `python*.rs`: the interpreter's own functions, for what the safe interface checks once more for each id.
//!
//! `tests/random.rs` and the unit tests walk through all of it with debug assertions on.

pub mod align_batch;
pub mod batch;
pub mod cache;
pub mod charsmap;
pub mod chunk;
pub mod decode;
pub mod dropout;
pub mod encode;
pub mod engine;
pub mod error;
pub mod found;
pub mod join;
pub mod key;
pub mod lazy;
pub mod long;
pub mod long_text;
pub mod matcher;
pub mod merge;
pub mod model;
pub mod normalize;
pub mod output;
pub mod prefetch;
pub mod settled;
pub mod table;
pub mod tokens;
pub mod train;
pub mod utf8;
pub mod vocab;
pub mod watch;
pub mod words;
