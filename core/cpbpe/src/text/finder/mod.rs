//! Finding keys in text, the longest at each place. There are two finders, for two kinds of questions:
//!
//! * `Keys` tells the longest key *at one place*, for callers that walk through the text anyway: the normalizer, and
//!   segmenting, for user-defined pieces; training, for its symbols. It has sentencepiece's limit of 64 matches.
//! * `Finder` finds all keys *of a text*, without a limit, in lists of thousands: special tokens. It skips most of
//!   the text without looking at each place. (With a `Finder` for user-defined pieces the text would be searched a
//!   second time, and its answers would differ from sentencepiece's where that limit matters.)
//!
//! | file           | holds                                                                       |
//! | -------------- | --------------------------------------------------------------------------- |
//! | `keys.rs`      | `Keys`, and walks through a text                                            |
//! | `trie.rs`      | the keys as a tree: the longest at a place                                  |
//! | `backwards.rs` | an automaton: the longest at every place, for texts that are bad for the tree |
//! | `search.rs`    | `Finder`                                                                    |
//! | `filter.rs`    | skips places where no key of a `Finder` can begin                           |

mod backwards;
mod filter;
mod keys;
mod search;
mod trie;

pub use keys::{Keys, Walk};
pub use search::Finder;
