//! Cuts text into chunks by a pattern.

use crate::error::{Error, Halt};

/// Cuts text.
pub struct Splitter {
    all: bool,
}

impl Splitter {
    /// For a pattern; empty: a text is one chunk.
    pub fn of(pattern: &str) -> Result<Splitter, Error> {
        Ok(Splitter { all: pattern.is_empty() })
    }

    /// Append the ends of chunks to `ends`.
    pub fn ends(&self, text: &[u8], from: usize, limit: usize, ends: &mut Vec<usize>) -> Result<(), Halt> {
        let mut begin = from;
        while begin < text.len() && begin - from < limit {
            let end = if self.all {
                text.len()
            } else {
                memchr::memchr(b' ', &text[begin + 1..]).map_or(text.len(), |at| begin + 1 + at)
            };
            ends.push(end);
            begin = end;
        }
        Ok(())
    }

    /// Whether a chunk begins there, whatever is before and after the characters next to it.
    pub fn is_cut(&self, text: &[u8], at: usize) -> bool {
        !self.all && at > 0 && at < text.len() && text[at] == b' '
    }
}
