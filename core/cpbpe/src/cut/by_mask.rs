//! From text of long characters to words, block by block; see `cut/by_character.rs`.
//!
//! Everything is as in `cut/words.rs`, but bit i stands for the character i of the block, not for its byte i. All that is
//! known about a block stays in registers. (To write down the characters of a batch first, and then to read them 64 at a
//! time, took twice as long: most of it was waiting for what had just been written.)

use crate::cut::by_character::{Found, ROOM};
use crate::cut::chunks::{four_at, number};
use crate::cut::words::{Cutter, Words, BATCH};
use crate::machine::{Machine, Vector, BLOCK};
use crate::vocab::characters::{AFTER, BEFORE, ID, ONE, UNKNOWN};

/// What is asked about characters.
const FLAGS: [u32; 4] = [BEFORE, AFTER, ONE, UNKNOWN];

impl Cutter<'_> {
    /// Find the words of the next batch; `None` if it contains U+2581, so the text is not compact.
    #[inline(always)]
    pub(super) fn next_by_mask(&mut self, words: &mut Words) -> Option<()> {
        let (first, padded) = (self.base, self.padded);
        let singles = &mut words.characters;
        // 1. What is known about the last character before the batch?
        let (first_last, last_entry) = self.last_character()?;
        let mut last = first_last;
        singles.ids[0] = last_entry & ID;
        let mut before = Before::new(last_entry, self.open.is_some(), first > 0 && padded[first - 1] >= 0x80);
        let (mut begun, mut ended, mut kept) = (usize::from(self.open.is_some()), 0, 0);
        let mut first_begins = false;
        let stop = (first + BATCH).min(self.length + 1);
        while self.base < stop {
            // 2. The characters of the next block, and what is known about each.
            let base = self.base;
            let text = padded[base..].first_chunk()?;
            let block = text.first_chunk::<BLOCK>()?;
            let left = self.length - base;
            let is_end = left < BLOCK;
            let [others, mut starts] = Vector::kinds(block);
            if is_end {
                starts &= (1 << left) - 1;
            }
            let cuts = Vector::cuts(self.joinable, block, if base == 0 { 0 } else { padded[base - 1] });
            let ids = singles.ids[1 + kept..].first_chunk_mut()?;
            let flags = Vector::entries(&self.joinable.characters, text, starts, FLAGS, ids);
            let [cuts, long] = [cuts, others].map(|bits| Vector::extract(bits, starts));
            let block = Block { count: starts.count_ones(), flags, cuts, long, is_end };
            // 3. Which of them begin and end words?
            let joined = |pairs| self.joined(pairs, starts, last);
            let Group { begins, ends, keep } = before.next(&block, joined)?;
            // 4. Write the places of these. Bit i of the begins stands for the character before the character i.
            let from = base - first;
            words.begins[begun] = (last + 1).wrapping_sub(first) as u8;
            let at = begun + (begins & 1) as usize;
            let to = words.begins[at..].first_chunk_mut()?;
            Vector::places(Vector::deposit(begins >> 1, starts), (from + 1) as u8, to);
            let starts_and_end = starts | u64::from(is_end).wrapping_shl(left as u32);
            Vector::places(Vector::deposit(ends, starts_and_end), from as u8, words.ends[ended..].first_chunk_mut()?);
            Vector::places(Vector::extract(begins, keep), kept as u8, singles.begins[begun..].first_chunk_mut()?);
            Vector::places(Vector::extract(ends, keep), kept as u8, singles.ends[ended..].first_chunk_mut()?);
            first_begins |= base == first && begins & 1 != 0;
            begun += begins.count_ones() as usize;
            ended += ends.count_ones() as usize;
            // 5. Of UNKNOWN characters side by side, only the first counts.
            let inside = block.inside();
            if keep & inside == inside {
                kept += block.count as usize;
            } else {
                Vector::keep(keep & inside, ids);
                kept += (keep & inside).count_ones() as usize;
            }
            if starts != 0 {
                last = base + starts.ilog2() as usize;
            }
            self.base += BLOCK;
        }
        // (The first character of all is before the batch.)
        let before_batch = if first_begins { first_last } else { first + usize::from(words.begins[0]).max(1) - 1 };
        let start = self.open.unwrap_or(before_batch);
        let end = kept + usize::from(self.base > self.length);
        self.finish(words, Found { begun, ended, start, end, last });
        Some(())
    }

    /// Of the characters of a block whose bits are set, those that some piece has after the character before them.
    /// `starts`: where the characters begin. `last`: where the one before the block does.
    #[inline(always)]
    fn joined(&self, pairs: u64, starts: u64, last: usize) -> Option<u64> {
        let place = |i: u32| self.base + Vector::deposit(1 << i, starts).trailing_zeros() as usize;
        let (mut rest, mut joined) = (pairs, pairs);
        while rest != 0 {
            let i = rest.trailing_zeros();
            rest &= rest - 1;
            let left = if i == 0 { last } else { place(i - 1) };
            let [left, right] = [left, place(i)].map(|at| four_at(self.padded, at));
            let pair = self.joinable.pair(number(left?), number(right?));
            joined ^= u64::from(!pair) << i;
        }
        Some(joined)
    }
}

/// The characters of a block.
struct Block {
    /// How many there are.
    count: u32,
    /// What is known about them; see `FLAGS`. (As in what follows, only the bits of characters count.)
    flags: [u64; 4],
    /// The cuts before characters that bytes allow.
    cuts: u64,
    /// Which characters are not ASCII.
    long: u64,
    /// Whether the text ends in the block.
    is_end: bool,
}

impl Block {
    /// The bits of its characters.
    #[inline(always)]
    fn inside(&self) -> u64 {
        (1u64.wrapping_shl(self.count)).wrapping_sub(1) | u64::from(self.count < 64).wrapping_sub(1)
    }
}

/// What is known about the character before a block.
struct Before {
    /// Whether some piece has another character after it.
    joins: bool,
    odd: bool,
    unknown: bool,
    /// Whether there is a cut before it.
    cut: bool,
    /// Whether it is not ASCII.
    long: bool,
}

/// Which characters of a block begin words (by the character after), which follow on words, and which count.
struct Group {
    begins: u64,
    ends: u64,
    keep: u64,
}

impl Before {
    /// Before a batch. `open`: it is in a word that has begun.
    fn new(entry: u32, open: bool, long: bool) -> Before {
        let [joins, _, one, unknown] = FLAGS.map(|flag| entry & flag != 0);
        Before { joins, odd: !one, unknown: unknown && !open, cut: !open, long }
    }

    /// Take a block. `joined`: of some characters, which are joined with the one before.
    #[inline(always)]
    fn next(&mut self, block: &Block, joined: impl Fn(u64) -> Option<u64>) -> Option<Group> {
        let inside = block.inside();
        let [before, after, one, unknown] = block.flags.map(|bits| bits & inside);
        let odd = !one & inside;
        if odd & unknown != 0 {
            return None; // U+2581
        }
        // 1. Which are joined with the one before? (Bytes are enough for two characters of one byte.)
        let long = block.long;
        let may_be = after & (before << 1 | u64::from(self.joins)) & !block.cuts;
        let pairs = may_be & (long | long << 1 | u64::from(self.long));
        let joined = if pairs == 0 { 0 } else { joined(pairs)? };
        let mask = !(may_be & !pairs | joined);
        // 2. An UNKNOWN character is by itself if there are cuts on both sides. For the last one of the block it may not be
        //    known yet, and then it is looked up.
        let last = inside & !(inside >> 1);
        let undecided = last & unknown & before;
        let odd = odd | undecided;
        let unknown = unknown & !undecided & mask & (mask >> 1 | last);
        // 3. As in `cut/words.rs`. (Nothing begins at the end.)
        let cut_before = mask << 1 | u64::from(self.cut);
        let odd_singles = mask & cut_before & (odd << 1 | u64::from(self.odd));
        let valid = if block.is_end { inside << 1 | 1 } else { inside };
        let begins = (cut_before & !mask | odd_singles) & valid;
        let ends = (mask & !cut_before | odd_singles) & valid;
        // 4. Of UNKNOWN characters side by side, only the first counts.
        let keep = !(unknown & (unknown << 1 | u64::from(self.unknown)));
        let top = |bits: u64| bits >> (block.count.max(1) - 1) & 1 != 0;
        let [joins, odd, unknown] = [before, odd, unknown].map(top);
        *self = Before { joins, odd, unknown, cut: top(mask), long: top(long) };
        Some(Group { begins, ends, keep })
    }
}

/// The ids of a batch have room for those of any four blocks, and what may be written after the last one.
const _: () = assert!(ROOM >= BATCH + BLOCK);
