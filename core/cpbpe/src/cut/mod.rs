//! Where a text can be cut: during encoding, and when more of it is still to come.

pub mod by_character;
pub mod by_pattern;
pub mod keys;
pub mod last_cut;
pub mod words;

use crate::cache::{self, Homes, Key, Singles};

/// The words of a batch: chunks of several bytes that are looked up together. Between them are the singles, chunks of
/// one byte or character, whose ids come from a table. A key is that of the cache, whose lines `homes` finds.
pub trait WordBatch: Default {
    /// How many words there are.
    fn count(&self) -> usize;
    /// Make the keys of the words, with the singles before each, and prefetch the lines of the cache that they lead to.
    fn make_keys(&self, text: &[u8], keys: &mut [Key; cache::BATCH], homes: Homes);
    /// A word.
    fn word<'a>(&'a self, text: &'a [u8], i: usize) -> &'a [u8];
    /// The singles before a word that the cache did not have (the others have theirs in their keys, see `make_keys`),
    /// or those after the last word.
    fn singles(&self, i: usize) -> Singles;
    /// Whether there are singles before a word, the first of which is a character with this id. (It is that of the
    /// UNKNOWN piece: if the word before ends with it, too, both become one.)
    fn singles_begin_with(&self, i: usize, id: Option<u32>) -> bool;
}
