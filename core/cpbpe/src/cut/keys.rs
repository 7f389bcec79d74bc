//! Splits a chunk at the user-defined pieces in it.
//!
//! The search goes from left to right, and finds the longest user-defined piece at each place. None of them contains
//! two characters between which the text is cut (see `words.rs`), so the search never steps over a cut, and begins anew
//! at each. Therefore what it finds in a chunk depends on the chunk alone: a chunk is remembered together with its
//! user-defined pieces, and only new chunks are searched. (Searching the whole text made encoding three times as slow
//! with 100 pieces, and five times with 8,000.)
//!
//! A chunk that is new can be cut at more places:
//!
//! * At both ends of a user-defined piece, which is one symbol that never merges with its neighbours.
//! * Between two characters that only user-defined pieces join. Merging never makes a user-defined piece: if it did,
//!   its text would stand where the search found nothing. But the search was at the place where this text begins, and
//!   would have found it, a longer one, or, if it begins with too many others (see `Keys::new`), a shorter one.
//!
//! For the same reasons, a part of a chunk gives the same symbols by itself as in the chunk, and can be remembered like
//! a chunk.

use crate::error::Halt;
use crate::text::keys::Walk;
use crate::text::utf8;
use crate::vocab::joinable::Unkeyed;
use crate::watch::{Check, Checks};

/// Whether to go on is checked once in this many bytes.
const CHECK_BYTES: usize = 1 << 14;

/// A part of a chunk.
#[derive(Debug, PartialEq)]
pub struct Part {
    /// Where the part begins.
    pub begin: usize,
    /// Where it ends.
    pub end: usize,
    /// Whether it is a user-defined piece.
    pub is_key: bool,
}

/// The parts of a chunk, from left to right.
pub struct Parts<'a> {
    unkeyed: &'a Unkeyed,
    walk: Walk<'a>,
    text: &'a [u8],
    /// Where the next part begins.
    at: usize,
    /// The length of the user-defined piece there, 0 if there is none.
    key: usize,
    checks: Checks<'a>,
}

impl<'a> Parts<'a> {
    /// `walk` walks through the text, which is compact and UTF-8.
    pub fn new(unkeyed: &'a Unkeyed, walk: Walk<'a>, text: &'a [u8], check: Check<'a>) -> Parts<'a> {
        let mut parts = Parts { unkeyed, walk, text, at: 0, key: 0, checks: Checks::new(check, CHECK_BYTES) };
        parts.key = parts.key_at(0);
        parts
    }

    /// The length of the user-defined piece at a place.
    #[inline]
    fn key_at(&mut self, at: usize) -> usize {
        if at < self.text.len() && self.unkeyed.starts.may_begin(self.text, at) {
            self.walk.longest(at)
        } else {
            0
        }
    }
}

impl Iterator for Parts<'_> {
    type Item = Result<Part, Halt>;

    fn next(&mut self) -> Option<Result<Part, Halt>> {
        let (begin, text) = (self.at, self.text);
        if begin == text.len() {
            return None;
        }
        let is_key = self.key > 0;
        if is_key {
            self.at += self.key;
            self.key = self.key_at(self.at);
            return Some(self.checks.at(self.at).map(|()| Part { begin, end: self.at, is_key }));
        }
        loop {
            if let Err(halt) = self.checks.at(self.at) {
                return Some(Err(halt));
            }
            let last = self.at;
            self.at += utf8::length_at(text, last);
            self.key = self.key_at(self.at);
            if self.at == text.len() || self.key > 0 || self.unkeyed.is_cut(text, last, self.at) {
                return Some(Ok(Part { begin, end: self.at, is_key }));
            }
        }
    }
}
