//! From the cuts in a batch of bytes to its words: chunks of several bytes, between which there are only single bytes.
//!
//! A third of the chunks of ordinary text, and three quarters of those of source code, are single bytes, whose ids come
//! from a table (`vocab/singles.rs`). They are never looked at one by one here: if bit i of `mask` is a cut before the
//! byte i, and bit i of `before` one before the byte in front of it, then a word ends at the bits `mask & !before` and
//! begins one byte before the bits `before & !mask`, and all between an end and the next begin is singles.

use crate::cache::key::Singles;
use crate::cut::chunks;
use crate::machine::{Machine, BLOCK};
use crate::vocab::{Joinable, Vocab};

/// The words that end in this many bytes are looked up together: enough for memory to arrive meanwhile, and few enough
/// to stay in the processor's first cache.
pub const BATCH: usize = 256;
/// The most words of a batch (there are singles that count as words), and what may be written after the last one.
pub const MAX_WORDS: usize = BATCH + BLOCK + 1;

/// The places of the words that end in a batch.
pub struct Words {
    /// Where each begins and ends, counted from `first`, the begin plus 1. (The first may begin before the batch.)
    begins: [u8; MAX_WORDS],
    /// See `begins`.
    ends: [u8; MAX_WORDS],
    /// How many there are.
    pub count: usize,
    /// Where the batch begins in the text.
    pub first: usize,
    /// Where the first word begins.
    start: usize,
    /// Where the singles after the last word end.
    pub singles_end: usize,
}

impl Words {
    pub fn new() -> Words {
        Words { begins: [0; MAX_WORDS], ends: [0; MAX_WORDS], count: 0, first: 0, start: 0, singles_end: 0 }
    }

    /// Become the words of a batch before the text.
    #[inline(always)]
    pub fn clear(&mut self) {
        (self.count, self.first, self.singles_end) = (0, 0, 0);
    }

    /// Where the words begin and end, and the singles before each (none before the first).
    #[inline(always)]
    pub fn places(&self) -> impl Iterator<Item = (usize, usize, Singles)> + '_ {
        // What is known about a word when the one before it is done.
        let mut next = (self.start, Singles::default());
        self.ends[..self.count].iter().zip(&self.begins[1..]).map(move |(&end, &begin)| {
            let (end, begin) = (u32::from(end), u32::from(begin));
            let begin_of_next = (self.first + begin as usize).wrapping_sub(1);
            let singles = Singles(end | begin.wrapping_sub(1).wrapping_sub(end) << 16);
            let (begin, singles) = std::mem::replace(&mut next, (begin_of_next, singles));
            (begin, self.first + end as usize, singles)
        })
    }

    /// Where a word begins.
    #[inline(always)]
    pub fn begin(&self, i: usize) -> usize {
        if i == 0 {
            self.start
        } else {
            self.first + usize::from(self.begins[i]) - 1
        }
    }

    /// Where a word ends.
    #[inline(always)]
    pub fn end(&self, i: usize) -> usize {
        self.first + usize::from(self.ends[i])
    }
}

/// Cuts a text into words, batch by batch.
pub struct Cutter<'a> {
    vocab: &'a Vocab,
    joinable: &'a Joinable,
    /// The text, and at least `PAD` bytes after it.
    padded: &'a [u8],
    length: usize,
    /// Where the next batch begins.
    pub base: usize,
    /// Whether there is a cut before the last byte of the last batch.
    cut: bool,
    /// Whether that byte is a single that counts as a word.
    odd: bool,
    /// Where the word begins that was not ended by the last batch.
    open: Option<usize>,
}

impl<'a> Cutter<'a> {
    #[inline(always)]
    pub fn new(vocab: &'a Vocab, joinable: &'a Joinable, padded: &'a [u8], length: usize) -> Cutter<'a> {
        // As if there were a cut before the byte before the text, so that no word ends or begins there.
        Cutter { vocab, joinable, padded, length, base: 0, cut: true, odd: false, open: None }
    }

    /// Whether there is another batch: the end of the text is a cut and must be in one.
    #[inline(always)]
    pub fn is_done(&self) -> bool {
        self.base > self.length
    }

    /// Find the words of the next batch; `None` if it contains U+2581, so the text is not compact.
    #[inline(always)]
    pub fn next<M: Machine>(&mut self, words: &mut Words) -> Option<()> {
        let first = self.base;
        words.first = first;
        // How many words were begun and ended.
        let (mut begun, mut ended) = (usize::from(self.open.is_some()), 0);
        let stop = (first + BATCH).min(self.length + 1);
        while self.base < stop {
            let block = self.padded[self.base..].first_chunk::<BLOCK>()?;
            let left = self.length - self.base;
            let mut mask = self.mask::<M>(block, left)?;
            if left < BLOCK {
                mask = mask & ((1 << left) - 1) | 1 << left;
            }
            // 1. Which bits are begins and ends of words; see the top of this file.
            let before = mask << 1 | u64::from(self.cut);
            let mut begins = before & !mask;
            let mut ends = mask & !before;
            if let Some(table) = &self.joinable.singles.odd {
                let odd = block.iter().rev().fold(0, |bits, &byte| bits << 1 | u64::from(table[usize::from(byte)]));
                let singles = mask & before & (odd << 1 | u64::from(self.odd));
                (begins, ends) = (begins | singles, ends | singles);
                self.odd = odd >> (BLOCK - 1) != 0;
            }
            if left < BLOCK {
                begins &= (1u64 << left << 1).wrapping_sub(1); // nothing begins at the end
            }
            self.cut = mask >> (BLOCK - 1) != 0;
            // 2. Write them.
            let after = [begun + begins.count_ones() as usize, ended + ends.count_ones() as usize];
            let offset = (self.base - first) as u8;
            M::places(begins, offset, words.begins[begun..].first_chunk_mut()?);
            M::places(ends, offset, words.ends[ended..].first_chunk_mut()?);
            [begun, ended] = after;
            self.base += BLOCK;
        }
        // 3. The first word may have begun earlier, and the last may go on.
        words.count = ended;
        let place = |i: usize| first + usize::from(words.begins[i]) - 1;
        words.start = match self.open {
            Some(open) => open,
            None if begun > 0 => place(0),
            None => first,
        };
        if begun > ended {
            if ended > 0 || self.open.is_none() {
                self.open = Some(place(ended));
            }
        } else {
            self.open = None;
        }
        words.singles_end = self.open.unwrap_or(if self.base > self.length { self.length } else { self.base - 1 });
        Some(())
    }

    /// The cuts before the bytes of the block at `base`, as bits.
    #[inline(always)]
    fn mask<M: Machine>(&mut self, block: &[u8; BLOCK], left: usize) -> Option<u64> {
        let (base, padded) = (self.base, self.padded);
        if left == 0 {
            return Some(1);
        }
        let mut mask = chunks::cuts::<M>(self.joinable, &padded[..self.length + 4], base, block, self.vocab.swapped)?;
        if base == 0 {
            mask |= 1;
        }
        Some(mask)
    }
}
