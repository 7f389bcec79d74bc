//! Normalizing 64 bytes at once, on machines with vector instructions.
//!
//! What happens most often is that one ASCII character becomes another (line ends become spaces, capitals small letters)
//! and that spaces after a space go. Here this needs no look at any of them: a table says what becomes of each, and one
//! instruction moves those that stay next to each other. Only characters of several bytes are looked up one by one, and
//! those ASCII characters with which something may begin.
//!
//! Where that is, it is rewritten as in `Rewriting::rewrite`, and the next block begins after it. What is left of the
//! text after the last whole block is for `rewrite`, too.

use std::arch::x86_64::*;

use super::Rewriting;
use crate::error::Halt;
use crate::machine::vector::{in_table, load};
use crate::machine::Vector;
use crate::memory::Grow;
use crate::text::origins::Origins;
use crate::text::places::{Rewritten, BEGINS, BLOCK};

impl<O: Origins> Rewriting<'_, O> {
    /// Rewrite blocks before `end`, as many as there are. The text is valid up to there, and `settle` has been called; so
    /// it is afterwards.
    #[inline]
    pub(super) fn rewrite_blocks(&mut self, end: usize) -> Result<(), Halt> {
        match self.places.rewritten() {
            // SAFETY: there is a table only if the machine has the instructions.
            Some(table) if !O::KEEPS && self.space.len() == 1 => unsafe { self.rewrite_vector(table, end) },
            _ => Ok(()),
        }
    }

    /// The same with this table.
    ///
    /// # Safety
    /// The machine must have the instructions: see `has_vectors`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt,lzcnt")]
    unsafe fn rewrite_vector(&mut self, table: &Rewritten, end: usize) -> Result<(), Halt> {
        let text = self.source.text;
        let squeezed = if self.normalizer.options.remove_extra_whitespaces { u64::MAX } else { 0 };
        while let Some(block) = text.get(self.at..end).and_then(|rest| rest.first_chunk::<{ BLOCK + 1 }>()) {
            let Some((block, _)) = block.split_first_chunk() else { break };
            // 1. What becomes of the bytes, and where characters begin. The last one waits for the next block, because a
            //    rule that is found by its second character may begin with it.
            let [others, starts] = Vector::kinds(block);
            let last = (starts | 1).ilog2();
            let bytes = load(block);
            let ascii = in_table(table, bytes);
            let begins = _mm512_movepi8_mask(ascii) & !others;
            let ascii = _mm512_and_si512(ascii, _mm512_set1_epi8(!BEGINS as i8));
            let bytes = _mm512_mask_mov_epi8(ascii, others, bytes);
            // 2. The first place where anything else happens.
            let mut waiting = (begins | starts & others) & u64::MAX >> (BLOCK as u32 - 1 - last);
            let (mut stop, mut place) = (self.at + last as usize, None);
            while waiting != 0 {
                let at = self.at + waiting.trailing_zeros() as usize;
                waiting &= waiting - 1;
                if !self.places.is_place(text[at], text[at + 1]) {
                    continue;
                }
                if let Some(begin) = self.places.confirm(text, at, self.at) {
                    (stop, place) = (begin, Some(at));
                    break;
                }
            }
            // 3. The bytes before it, without spaces that follow a space.
            let length = stop - self.at; // less than a block
            let spaces = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(b' ' as i8));
            let dropped = spaces & (spaces << 1 | u64::from(self.drop_spaces)) & squeezed;
            let kept = !dropped & ((1 << length) - 1);
            self.out.grow(BLOCK)?;
            let before = self.out.len();
            // SAFETY: there is room for a block, of which the first bytes are those that stay.
            unsafe {
                let to = self.out.as_mut_ptr().add(before);
                _mm512_storeu_si512(to.cast(), _mm512_maskz_compress_epi8(kept, bytes));
                self.out.set_len(before + kept.count_ones() as usize);
            }
            if length > 0 {
                self.drop_spaces = spaces & squeezed & 1 << (length - 1) != 0;
            }
            self.at = stop;
            // 4. The place.
            if let Some(place) = place {
                while self.at <= place {
                    self.step()?;
                }
                self.settle(end)?;
            }
            self.check()?;
        }
        self.settle(end)
    }
}
