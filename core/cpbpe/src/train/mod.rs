//! Training: from a corpus to the characters and merges of a vocabulary.
//!
//! The reference, `cpbpe/reference/training.py`, is the specification and explains the algorithm; this module does
//! the same work. Values have the same names there, and `training_values.py` next to it explains their fields. Read
//! the files in this order, which is that of the data, and in which they use each other:
//!
//! | file            | does                                                                       |
//! | --------------- | -------------------------------------------------------------------------- |
//! | `scripts.rs`    | the scripts of Unicode 9.0                                                 |
//! | `limits.rs`     | which strings can become pieces, and where text can be cut                 |
//! | `values.rs`     | the options and results of training                                        |
//! | `threads.rs`    | threads for one call                                                       |
//! | `tallies.rs`    | how many sentences were read and skipped                                   |
//! | `words.rs`      | a sorted list of words with counts, in columns                             |
//! | `recent.rs`     | a small memory of words seen recently                                      |
//! | `word_table.rs` | a hash table that counts words                                             |
//! | `sort.rs`       | tables -> sorted words                                                     |
//! | `ascii.rs`      | where a short text of ASCII is cut                                         |
//! | `groups.rs`     | a sentence -> groups: spaces and what follows them, counted before cutting |
//! | `cutter.rs`     | a sentence -> words in a table                                             |
//! | `lines.rs`      | lines -> groups, in place                                                  |
//! | `counter.rs`    | a corpus -> words, on several threads                                      |
//! | `characters.rs` | words -> accepted characters                                               |
//! | `pairs.rs`      | symbols and pairs of them                                                  |
//! | `occurrences.rs`| how often pairs occur in the text                                          |
//! | `queue.rs`      | which pair is merged next                                                  |
//! | `tracked.rs`    | the pairs whose frequencies are kept up to date                            |
//! | `changes.rs`    | what one merge changes                                                     |
//! | `runs.rs`       | the counts of words, by place in the text                                  |
//! | `text.rs`       | one part of the text during merging                                        |
//! | `layout.rs`     | words -> text                                                              |
//! | `learner.rs`    | the loop of merging                                                        |
//! | `learn.rs`      | words -> characters and merges                                             |
//! | `bytes/`        | the same for byte-level BPE                                                |

mod ascii;
pub mod bytes;
mod changes;
mod characters;
mod counter;
mod cutter;
mod groups;
mod layout;
mod learn;
mod learner;
mod limits;
mod lines;
mod occurrences;
mod pairs;
mod queue;
mod recent;
mod runs;
mod scripts;
mod sort;
mod tallies;
mod text;
mod threads;
mod tracked;
mod values;
mod word_table;
mod words;

pub use counter::Counter;
pub use learn::learn;
pub use limits::{PieceLimits, PieceProfile};
pub use tallies::{SkipReason, Skipped, Tallies};
pub use values::{Begun, ByteLearnSpec, Characters, CountSpec, LearnSpec, Learned, Merges, Ties, Tuning};
pub use words::{merge_words, Words, WordsRef};
