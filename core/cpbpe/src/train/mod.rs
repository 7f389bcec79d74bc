//! Training: from a corpus to the characters and merges of a vocabulary.
//!
//! `cpbpe/reference_train.py` is the specification and explains the algorithm; this module does the same work, in the
//! order in which the corpus flows:
//!
//! | file           | does                                                                        |
//! | -------------- | --------------------------------------------------------------------------- |
//! | `scripts.rs`   | the scripts of Unicode 9.0                                                  |
//! | `piece.rs`     | what may be a piece, and where words may be cut                             |
//! | `corpus.rs`    | text -> words                                                               |
//! | `tallies.rs`   | what was seen and what was skipped                                          |
//! | `count.rs`     | a table of words with counts                                                |
//! | `columns.rs`   | words sorted, in columns                                                    |
//! | `characters.rs`| which characters are accepted                                               |
//! | `pairs.rs`     | pairs of symbols, and which is merged next                                  |
//! | `weights.rs`   | how often pairs stand in the text                                           |
//! | `part.rs`      | the text while it is merged                                                 |
//! | `learn.rs`     | words -> characters and merges                                              |

pub mod characters;
pub mod columns;
pub mod corpus;
pub mod count;
pub mod learn;
pub mod pairs;
pub mod part;
pub mod piece;
pub mod scripts;
pub mod tallies;
pub mod weights;
