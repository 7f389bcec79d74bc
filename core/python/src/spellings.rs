//! From pieces as Python's str to their ids.
//!
//! A str knows its hash once somebody has asked for it, and many pieces are the very object that encoding gave. To write
//! each in UTF-8 and look that up in the vocabulary made decoding of pieces take nearly twice as long, whether their str
//! were new or not. (And Python keeps the UTF-8 form of a str that is not ASCII, in memory of its own.)

use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyAny;

use cpbpe::memory::collected;

use crate::errors::halted;
use crate::values::Objects;

/// The pieces that were looked up so far, by the hash of their str. (The table is changed while the interpreter is
/// attached, so by one thread at a time.)
pub struct Spellings {
    /// Open addressing, at most half full. The low `id_bits` of a slot are the id plus one; above them is as much of the
    /// hash as there is room for.
    slots: Box<[AtomicU32]>,
    id_bits: u32,
}

impl Spellings {
    /// A table for so many pieces.
    pub fn new(count: usize) -> PyResult<Spellings> {
        let none = (0..(count * 2).next_power_of_two()).map(|_| AtomicU32::new(0));
        let slots = collected(none).map_err(halted)?.into_boxed_slice();
        Ok(Spellings { slots, id_bits: usize::BITS - count.leading_zeros() })
    }

    /// The id of a piece, an exact str with this hash, if it was added. `strings` has those that were.
    #[inline]
    pub fn find(&self, strings: &Objects, hash: isize, piece: &Bound<'_, PyAny>) -> Option<u32> {
        let ids = (1 << self.id_bits) - 1;
        let mark = self.mark(hash);
        let mut at = hash as usize;
        loop {
            let slot = self.slots[at & (self.slots.len() - 1)].load(Ordering::Relaxed);
            if slot == 0 {
                return None;
            }
            if slot & !ids == mark && strings.is_str((slot & ids) - 1, piece) {
                return Some((slot & ids) - 1);
            }
            at += 1;
        }
    }

    /// Add a piece that is not there, whose str has this hash.
    pub fn add(&self, hash: isize, id: u32) {
        let mut at = hash as usize;
        loop {
            let slot = &self.slots[at & (self.slots.len() - 1)];
            if slot.load(Ordering::Relaxed) == 0 {
                return slot.store(self.mark(hash) | (id + 1), Ordering::Relaxed);
            }
            at += 1;
        }
    }

    /// The part of the hash that is in a slot.
    #[inline]
    fn mark(&self, hash: isize) -> u32 {
        (hash as u64 >> 32) as u32 >> self.id_bits << self.id_bits
    }
}
