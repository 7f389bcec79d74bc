//! Text without a model: characters, rules, keys.

pub mod charsmap;
pub mod finder;
pub mod forms;
pub mod keys;
pub mod normalize;
pub mod places;
pub mod utf8;

use crate::error::Halt;
use crate::memory::Grow;
use crate::text::utf8::is_continuation;

// Where each byte of a normalized text came from.

/// Receives the map from normalized text back to the input; `()` keeps nothing.
pub trait Origins {
    /// Whether anything is kept.
    const KEEPS: bool;
    /// Record that the next `count` bytes came from `origin`.
    fn add(&mut self, count: usize, origin: usize) -> Result<(), Halt>;
    /// Record that the next bytes are whole characters, each of which came from a place of its own, the first from
    /// `at`. `run` is their text in the input; each of its spaces takes `space` bytes in the normalized text.
    fn add_run(&mut self, run: &[u8], at: usize, space: usize) -> Result<(), Halt>;
    /// Forget all entries after the first `length`. Returns the first forgotten one.
    fn truncate(&mut self, length: usize) -> usize;
}

impl Origins for () {
    const KEEPS: bool = false;
    #[inline]
    fn add(&mut self, _: usize, _: usize) -> Result<(), Halt> {
        Ok(())
    }
    #[inline]
    fn add_run(&mut self, _: &[u8], _: usize, _: usize) -> Result<(), Halt> {
        Ok(())
    }
    #[inline]
    fn truncate(&mut self, _: usize) -> usize {
        0
    }
}

impl Origins for Vec<usize> {
    const KEEPS: bool = true;
    #[inline]
    fn add(&mut self, count: usize, origin: usize) -> Result<(), Halt> {
        self.grow(count)?;
        self.resize(self.len() + count, origin);
        Ok(())
    }
    fn add_run(&mut self, run: &[u8], at: usize, space: usize) -> Result<(), Halt> {
        let mut character = at;
        let mut origin = |(at, &byte): (usize, &u8)| {
            character = if is_continuation(byte) { character } else { at };
            character
        };
        if space == 1 {
            self.grow(run.len())?;
            self.extend((at..).zip(run).map(origin));
            return Ok(());
        }
        self.grow(run.len() * space)?;
        for (at, byte) in (at..).zip(run) {
            let count = if *byte == b' ' { space } else { 1 };
            self.extend(std::iter::repeat_n(origin((at, byte)), count));
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
