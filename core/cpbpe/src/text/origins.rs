//! Where each byte of a normalized text came from.

use std::ops::Range;

use crate::error::Halt;
use crate::memory::Grow;

/// Receives the map from normalized text back to the input; `()` keeps nothing.
pub trait Origins {
    /// The next `count` bytes came from `origin`.
    fn add(&mut self, count: usize, origin: usize) -> Result<(), Halt>;
    /// The next bytes are those of whole characters of `text`, each of which came from its own place. A space takes
    /// `space` bytes.
    fn add_run(&mut self, text: &[u8], run: Range<usize>, space: usize) -> Result<(), Halt>;
    /// Forget all but the first `length`. Returns where the first forgotten one came from.
    fn truncate(&mut self, length: usize) -> usize;
}

impl Origins for () {
    #[inline]
    fn add(&mut self, _: usize, _: usize) -> Result<(), Halt> {
        Ok(())
    }
    #[inline]
    fn add_run(&mut self, _: &[u8], _: Range<usize>, _: usize) -> Result<(), Halt> {
        Ok(())
    }
    #[inline]
    fn truncate(&mut self, _: usize) -> usize {
        0
    }
}

impl Origins for Vec<usize> {
    #[inline]
    fn add(&mut self, count: usize, origin: usize) -> Result<(), Halt> {
        self.grow(count)?;
        self.resize(self.len() + count, origin);
        Ok(())
    }
    fn add_run(&mut self, text: &[u8], run: Range<usize>, space: usize) -> Result<(), Halt> {
        let mut character = run.start;
        let bytes = &text[run.clone()];
        if space == 1 {
            self.grow(bytes.len())?;
            self.extend(run.zip(bytes).map(|(at, &byte)| {
                character = if byte & 0xC0 == 0x80 { character } else { at };
                character
            }));
            return Ok(());
        }
        self.grow(bytes.len() + memchr::memchr_iter(b' ', bytes).count() * (space - 1))?;
        for (at, &byte) in run.zip(bytes) {
            character = if byte & 0xC0 == 0x80 { character } else { at };
            let count = if byte == b' ' { space } else { 1 };
            self.extend(std::iter::repeat_n(character, count));
        }
        Ok(())
    }
    #[inline]
    fn truncate(&mut self, length: usize) -> usize {
        let origin = self[length];
        self.truncate(length);
        origin
    }
}
