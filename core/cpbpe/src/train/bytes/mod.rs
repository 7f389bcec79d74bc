//! Training of byte-level BPE: a pattern splits the texts, chunks are counted as words, and bytes are merged.
//!
//! The reference, `cpbpe/reference/byte_level/training.py`, explains what is learned. The text, its places and the
//! merge loop are those of the other family (`text.rs`, `learner.rs`). These files contain what is different:
//!
//! | file         | does                                                          |
//! | ------------ | ------------------------------------------------------------- |
//! | `ordered.rs` | words with the place where each was first seen                |
//! | `portions.rs`| texts -> portions for threads, cut where the pattern allows it |
//! | `counter.rs` | a corpus -> words                                             |
//! | `tracked.rs` | which pair is the best, for both kinds of ties                |
//! | `learn.rs`   | words -> merges                                               |

mod counter;
mod learn;
mod ordered;
mod portions;
mod tracked;

pub use counter::ByteCounter;
pub use learn::learn_bytes;
