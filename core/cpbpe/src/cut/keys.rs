//! Cuts text at both ends of user-defined pieces.
//!
//! A user-defined piece is one symbol, which never merges with its neighbours. So there are safe cuts on both sides of
//! it, and it is a chunk by itself, which the cache remembers like any other. That is exact because a chunk's text
//! tells whether it is a user-defined piece: the text between two of them contains none, or it would have been found.
//! (Encoding the text between two of them like a text of its own took 90 ns for each.)

use crate::machine::BLOCK;
use crate::text::finder::Walk;
use crate::vocab::{KeyStarts, Vocab};

/// Finds user-defined pieces in a text, block by block.
pub struct KeyCuts<'a> {
    starts: &'a KeyStarts,
    walk: Walk<'a>,
    /// Where the last one ends.
    end: usize,
}

impl<'a> KeyCuts<'a> {
    /// `None` if the vocabulary has none. The text is compact and UTF-8.
    #[inline]
    pub fn new(vocab: &'a Vocab, text: &'a [u8]) -> Option<KeyCuts<'a>> {
        let starts = vocab.key_starts.as_ref()?;
        Some(KeyCuts { starts, walk: vocab.user_defined_compact.walk(text), end: 0 })
    }

    /// Add cuts to those of the block at `base`, which is followed by the byte `next`. `length`: how many bytes of the
    /// block are text. Blocks must come in order, without gaps.
    #[inline]
    pub fn add(&mut self, mut cuts: u64, base: usize, block: &[u8; BLOCK], next: u8, length: usize) -> u64 {
        // 1. Where may one begin?
        let mut places = self.places(block, next);
        if length < BLOCK {
            places &= (1 << length) - 1;
        }
        // 2. Not inside the last one found, which may be long.
        if self.end >= base {
            let covered = self.end - base;
            if covered >= BLOCK {
                return cuts;
            }
            cuts |= 1 << covered;
            places &= u64::MAX << covered;
        }
        // 3. (Pieces are valid UTF-8, so none begins in the middle of a character.)
        while places != 0 {
            let i = places.trailing_zeros() as usize;
            places &= places - 1;
            let length = self.walk.longest(base + i);
            if length > 0 {
                cuts |= 1 << i;
                self.end = base + i + length;
                if i + length >= BLOCK {
                    break;
                }
                cuts |= 1 << (i + length);
                places &= u64::MAX << (i + length);
            }
        }
        cuts
    }

    /// The places in a block where one may begin, as bits.
    #[inline]
    fn places(&self, block: &[u8; BLOCK], next: u8) -> u64 {
        let table = &self.starts.pairs;
        let last = usize::from(u16::from_le_bytes([block[BLOCK - 1], next]));
        let mut places = u64::from(table[last]) << (BLOCK - 1);
        for begin in (0..BLOCK).step_by(16) {
            let mut bits = 0u64;
            for i in (begin..begin + 16).rev() {
                if i + 1 < BLOCK {
                    // SAFETY: both bytes are in the block. (As in `chunks::cuts`.)
                    let pair = unsafe { block.as_ptr().add(i).cast::<u16>().read_unaligned() };
                    bits |= u64::from(table[usize::from(u16::from_le(pair))]) << (i - begin);
                }
            }
            places |= bits << begin;
        }
        places
    }
}
