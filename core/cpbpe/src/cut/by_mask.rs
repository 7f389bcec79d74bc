//! From text of long characters to words, 64 characters at a time; see `cut/by_character.rs`.
//!
//! Everything is as in `cut/words.rs`, but bit i stands for the character i, not for the byte i.

use crate::cut::by_character::{Found, ROOM};
use crate::cut::chunks::{four_at, number};
use crate::cut::words::{Cutter, Words, BATCH};
use crate::machine::{Machine, Vector, BLOCK};
use crate::vocab::characters::{AFTER, BEFORE, ONE, UNKNOWN};

/// How many places of characters may be written.
const PLACES: usize = ROOM + BLOCK;
/// Groups of 64 characters, and what may be written after the last.
const GROUPS: usize = ROOM / BLOCK + 1;
/// What is asked about characters.
const FLAGS: [u32; 4] = [BEFORE, AFTER, ONE, UNKNOWN];

impl Cutter<'_> {
    /// Find the words of the next batch; `None` if it contains U+2581, so the text is not compact.
    #[inline(always)]
    pub(super) fn next_by_mask(&mut self, words: &mut Words) -> Option<()> {
        let first = self.base;
        // 1. What is known about the last character before the batch, and about those in it?
        let (last, last_entry) = self.last_character()?;
        let batch = self.read(&mut words.characters.entries)?;
        let singles = &mut words.characters;
        singles.entries[0] = last_entry;
        let is_end = self.base > self.length;
        // 2. Group by group: which characters begin and end words?
        let mut before = Before::new(last_entry, self.open.is_some(), first > 0 && self.padded[first - 1] >= 0x80);
        let (mut begun, mut ended, mut kept) = (usize::from(self.open.is_some()), 0, 0);
        let mut first_begins = false;
        for group in 0..(batch.count + usize::from(is_end)).div_ceil(BLOCK) {
            let base = group * BLOCK;
            let flags = Vector::collect(singles.entries[1 + base..].first_chunk()?, FLAGS);
            let joined = |pairs| self.joined(&batch, group, last, first, pairs);
            let Group { begins, ends, keep } = before.next(&batch, group, flags, is_end, joined)?;
            Vector::select(begins, batch.after[base..].first_chunk()?, words.begins[begun..].first_chunk_mut()?);
            Vector::select(ends, batch.places[1 + base..].first_chunk()?, words.ends[ended..].first_chunk_mut()?);
            Vector::places(Vector::extract(begins, keep), kept as u8, singles.begins[begun..].first_chunk_mut()?);
            Vector::places(Vector::extract(ends, keep), kept as u8, singles.ends[ended..].first_chunk_mut()?);
            first_begins |= group == 0 && begins & 1 != 0;
            begun += begins.count_ones() as usize;
            ended += ends.count_ones() as usize;
            kept += keep_some(&mut singles.entries[1..], base, batch.count, keep, kept);
        }
        // (The first character of all is before the batch.)
        let before_batch = if first_begins { last } else { first + usize::from(words.begins[0]).max(1) - 1 };
        let start = self.open.unwrap_or(before_batch);
        let end = kept + usize::from(is_end);
        let last = first + usize::from(batch.places[batch.count]);
        self.finish(words, Found { begun, ended, start, end, last });
        Some(())
    }

    /// Read the characters of the next batch, and write what is known about each.
    #[inline(always)]
    fn read(&mut self, entries: &mut [u32; ROOM + 1]) -> Option<Characters> {
        let (first, padded) = (self.base, self.padded);
        let mut batch = Characters::new();
        let stop = (first + BATCH).min(self.length + 1);
        while self.base < stop {
            let block = padded[self.base..].first_chunk::<BLOCK>()?;
            let left = self.length - self.base;
            let [others, mut starts] = Vector::kinds(block);
            if left < BLOCK {
                starts &= (1 << left) - 1;
            }
            let mask = Vector::cuts(self.joinable, block, if self.base == 0 { 0 } else { padded[self.base - 1] });
            let count = batch.count;
            Vector::places(starts, (self.base - first) as u8, batch.places[1 + count..].first_chunk_mut()?);
            let text = padded[self.base..].first_chunk()?;
            Vector::entries(&self.joinable.characters, text, starts, entries[1 + count..].first_chunk_mut()?);
            put(&mut batch.cuts, count, Vector::extract(mask, starts));
            put(&mut batch.long, count, Vector::extract(others, starts));
            batch.count += starts.count_ones() as usize;
            self.base += BLOCK;
        }
        if self.base > self.length {
            batch.places[1 + batch.count] = (self.length - first) as u8;
        }
        for (after, place) in batch.after.iter_mut().zip(batch.places) {
            *after = place.wrapping_add(1);
        }
        Some(batch)
    }

    /// Of the characters of a group whose bits are set, those that some piece has after the character before them.
    #[inline(always)]
    fn joined(&self, batch: &Characters, group: usize, last: usize, first: usize, pairs: u64) -> Option<u64> {
        let (mut rest, mut joined) = (pairs, pairs);
        while rest != 0 {
            let i = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let at = group * BLOCK + i;
            let left = if at == 0 { last } else { first + usize::from(batch.places[at]) };
            let right = first + usize::from(batch.places[at + 1]);
            let pair = self.joinable.pair(number(four_at(self.padded, left)?), number(four_at(self.padded, right)?));
            joined ^= u64::from(!pair) << i;
        }
        Some(joined)
    }
}

/// The characters of a batch.
struct Characters {
    /// How many there are.
    count: usize,
    /// Where each is, counted from where the batch begins, after a place for the last one before the batch; and the end
    /// of the text.
    places: [u8; PLACES],
    /// The same, plus 1.
    after: [u8; PLACES],
    /// The cuts before characters that bytes allow.
    cuts: [u64; GROUPS],
    /// Which characters are not ASCII.
    long: [u64; GROUPS],
}

impl Characters {
    fn new() -> Characters {
        Characters { count: 0, places: [0; PLACES], after: [0; PLACES], cuts: [0; GROUPS], long: [0; GROUPS] }
    }
}

/// Write bits behind others.
#[inline(always)]
fn put(all: &mut [u64; GROUPS], at: usize, bits: u64) {
    let (group, shift) = (at / BLOCK, at % BLOCK);
    all[group] |= bits << shift;
    all[group + 1] |= bits >> 1 >> (BLOCK - 1 - shift);
}

/// Move those of the entries of a group whose bits are set to `kept`, behind those of the groups before it. Returns how
/// many.
#[inline(always)]
fn keep_some(entries: &mut [u32], base: usize, count: usize, keep: u64, kept: usize) -> usize {
    let all = (count - base).min(BLOCK);
    if kept == base && keep == u64::MAX {
        return all;
    }
    let mut to = kept;
    for i in 0..all {
        entries[to] = entries[base + i];
        to += (keep >> i & 1) as usize;
    }
    to - kept
}

/// What is known about the character before a group.
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

/// Which characters of a group begin words (by the character after), which follow on words, and which count.
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

    /// Take a group. `joined`: of some characters, which are joined with the one before.
    #[inline(always)]
    fn next(
        &mut self,
        batch: &Characters,
        group: usize,
        flags: [u64; 4],
        is_end: bool,
        joined: impl Fn(u64) -> Option<u64>,
    ) -> Option<Group> {
        let left = batch.count - group * BLOCK;
        let inside = if left < BLOCK { (1 << left) - 1 } else { u64::MAX };
        let [before, after, one, unknown] = flags.map(|bits| bits & inside);
        let odd = !one & inside;
        if odd & unknown != 0 {
            return None; // U+2581
        }
        // 1. Which are joined with the one before? (Bytes are enough for two characters of one byte.)
        let long = batch.long[group];
        let may_be = after & (before << 1 | u64::from(self.joins)) & !batch.cuts[group];
        let pairs = may_be & (long | long << 1 | u64::from(self.long));
        let mask = !(may_be & !pairs | joined(pairs)?);
        // 2. As in `cut/words.rs`. (Nothing begins at the end.)
        let cut_before = mask << 1 | u64::from(self.cut);
        let odd_singles = mask & cut_before & (odd << 1 | u64::from(self.odd));
        let valid = if is_end && left < BLOCK { inside << 1 | 1 } else { inside };
        let begins = (cut_before & !mask | odd_singles) & valid;
        let ends = (mask & !cut_before | odd_singles) & valid;
        // 3. Of UNKNOWN characters side by side, only the first counts.
        let keep = !(unknown & (unknown << 1 | u64::from(self.unknown)));
        let top = |bits: u64| bits >> (left.clamp(1, BLOCK) - 1) & 1 != 0;
        let [joins, odd, unknown] = [before, odd, unknown].map(top);
        *self = Before { joins, odd, unknown, cut: top(mask), long: top(long) };
        Some(Group { begins, ends, keep })
    }
}
