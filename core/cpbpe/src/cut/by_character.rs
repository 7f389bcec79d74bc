//! From text of long characters to words: here the singles are characters, of any length.
//!
//! Everything is as in `cut/words.rs`, but bit i stands for the character i, not for the byte i. Most cuts follow from
//! what is known about the two characters alone (`vocab/characters.rs`); the pair is looked up for the others.

use crate::cut::chunks::{self, four_at, number};
use crate::cut::words::{Cutter, Words, BATCH, MAX_WORDS};
use crate::machine::{Machine, BLOCK};
use crate::vocab::characters::{AFTER, BEFORE, ONE, UNKNOWN};

/// A batch with this many bytes that are not ASCII is cut by characters.
const MANY: u32 = BATCH as u32 / 4;
/// How many characters may be written.
const ROOM: usize = BATCH + BLOCK;
/// The same for their places.
const PLACES: usize = ROOM + BLOCK;
/// Groups of 64 characters, and what may be written after the last.
const GROUPS: usize = ROOM / BLOCK + 1;
/// What is asked about characters.
const FLAGS: [u32; 4] = [BEFORE, AFTER, ONE, UNKNOWN];

/// The singles of a batch that was cut by characters.
pub struct CharacterSingles {
    /// The entries of its characters, after that of the last one before the batch. (Of UNKNOWN characters side by side
    /// only the first is here.)
    pub entries: [u32; ROOM + 1],
    /// The places in `entries` where words begin, and those, minus 1, where they end.
    pub(super) begins: [u8; MAX_WORDS],
    /// See `begins`.
    pub(super) ends: [u8; MAX_WORDS],
    /// Whether the first word began before the last character before the batch.
    opened: bool,
    /// The place in `entries` where the singles after the last word end.
    end: usize,
}

impl CharacterSingles {
    pub fn new() -> CharacterSingles {
        let none = [0; MAX_WORDS];
        CharacterSingles { entries: [0; ROOM + 1], begins: none, ends: none, opened: false, end: 0 }
    }
}

impl Words {
    /// The places in `entries` of the singles before a word, or after the last one. `done`: up to where in the text ids
    /// have been appended, before the first word.
    #[inline(always)]
    pub fn character_singles(&self, i: usize, done: usize) -> (usize, usize) {
        let CharacterSingles { begins, ends, opened, end, .. } = &self.characters;
        let from = if i == 0 { usize::from(done >= self.first) } else { usize::from(ends[i - 1]) + 1 };
        let to = match i {
            _ if i == self.count => *end,
            0 if *opened => from,
            _ => usize::from(begins[i]),
        };
        (from, to.max(from))
    }

    /// Whether an UNKNOWN character is the first single after the word before a word.
    #[inline(always)]
    pub fn is_unknown_after(&self, i: usize) -> bool {
        let (from, to) = if self.by_character { self.character_singles(i, 0) } else { (0, 0) };
        from < to && self.characters.entries[from] & UNKNOWN != 0
    }
}

impl Cutter<'_> {
    /// Whether the next batch should be cut by characters: because many are long, or because some are bytes that are not
    /// one id.
    #[inline(always)]
    pub(super) fn is_by_character<M: Machine>(&self) -> bool {
        let (mut others, mut marked) = (0, 0);
        for at in (self.base..(self.base + BATCH).min(self.length)).step_by(BLOCK) {
            let Some(block) = self.padded[at..].first_chunk() else { break };
            others += M::kinds(block)[0].count_ones();
            if let Some(odd) = &self.joinable.singles.odd {
                let left = self.length - at;
                let inside = if left < BLOCK { (1 << left) - 1 } else { u64::MAX };
                marked |= M::marked(odd, block) & inside;
            }
        }
        others >= MANY || marked != 0
    }

    /// Find the words of the next batch; `None` if it contains U+2581, so the text is not compact.
    #[inline(always)]
    pub(super) fn next_by_character<M: Machine>(&mut self, words: &mut Words) -> Option<()> {
        let (first, padded) = (self.base, self.padded);
        words.first = first;
        let batch = self.read::<M>(&mut words.characters.entries)?;
        let is_end = self.base > self.length;
        // 1. What is known about the last character before the batch?
        let last = if first == 0 { 0 } else { chunks::character_before(padded, first) };
        let singles = &mut words.characters;
        let before_batch = M::code_point(four_at(padded, last)?);
        singles.entries[0] = if first == 0 { ONE } else { self.joinable.characters.entry(before_batch) };
        // 2. Group by group: which characters begin and end words?
        let opened = self.open;
        let mut before = Before::new(singles.entries[0], opened.is_some(), first > 0 && padded[first - 1] >= 0x80);
        let mut first_begins = false;
        let (mut begun, mut ended, mut kept) = (usize::from(opened.is_some()), 0, 0);
        for group in 0..(batch.count + usize::from(is_end)).div_ceil(BLOCK) {
            let base = group * BLOCK;
            let flags = M::collect(singles.entries[1 + base..].first_chunk()?, FLAGS);
            let joined = |pairs| self.joined(&batch, group, last, first, pairs);
            let Group { begins, ends, keep } = before.next(&batch, group, flags, is_end, joined)?;
            M::select(begins, batch.after[base..].first_chunk()?, words.begins[begun..].first_chunk_mut()?);
            M::select(ends, batch.places[1 + base..].first_chunk()?, words.ends[ended..].first_chunk_mut()?);
            M::places(M::extract(begins, keep), kept as u8, singles.begins[begun..].first_chunk_mut()?);
            M::places(M::extract(ends, keep), kept as u8, singles.ends[ended..].first_chunk_mut()?);
            first_begins |= group == 0 && begins & 1 != 0;
            begun += begins.count_ones() as usize;
            ended += ends.count_ones() as usize;
            kept += keep_some(&mut singles.entries[1..], base, batch.count, keep, kept);
        }
        // 3. The first word may have begun earlier, and the last may go on. The last character may begin one.
        words.count = ended;
        words.start = match opened {
            Some(open) => open,
            None if first_begins => last,
            None => first + usize::from(words.begins[0]).max(1) - 1,
        };
        singles.opened = opened.is_some();
        if begun > ended {
            if ended > 0 || opened.is_none() {
                self.open = Some(words.begin(ended));
            }
            words.characters.end =
                if ended > 0 || opened.is_none() { usize::from(words.characters.begins[ended]) } else { 0 };
        } else {
            self.open = None;
            words.characters.end = kept + usize::from(is_end || before.dropped);
        }
        self.cut = self.open.is_none();
        let rest = if is_end { self.length } else { first + usize::from(batch.places[batch.count]) };
        words.singles_end = self.open.unwrap_or(rest);
        Some(())
    }

    /// Read the characters of the next batch, and write what is known about each.
    #[inline(always)]
    fn read<M: Machine>(&mut self, entries: &mut [u32; ROOM + 1]) -> Option<Characters> {
        let (first, padded) = (self.base, self.padded);
        let mut batch = Characters::new();
        let stop = (first + BATCH).min(self.length + 1);
        while self.base < stop {
            let block = padded[self.base..].first_chunk::<BLOCK>()?;
            let left = self.length - self.base;
            let [others, mut starts] = M::kinds(block);
            if left < BLOCK {
                starts &= (1 << left) - 1;
            }
            let mut mask = M::cuts(self.joinable, block, if self.base == 0 { 0 } else { padded[self.base - 1] });
            if let Some(keys) = &mut self.keys {
                mask = keys.add(mask, self.base, block, padded[self.base + BLOCK], left);
            }
            let count = batch.count;
            M::places(starts, (self.base - first) as u8, batch.places[1 + count..].first_chunk_mut()?);
            let text = padded[self.base..].first_chunk()?;
            M::entries(&self.joinable.characters, text, starts, entries[1 + count..].first_chunk_mut()?);
            put(&mut batch.cuts, count, M::extract(mask, starts));
            put(&mut batch.long, count, M::extract(others, starts));
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
    /// Whether it does not count, because it is UNKNOWN after another one.
    dropped: bool,
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
        Before { joins, odd: !one, unknown: unknown && !open, dropped: false, cut: !open, long }
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
        let [joins, odd, unknown, dropped] = [before, odd, unknown, !keep].map(top);
        *self = Before { joins, odd, unknown, dropped, cut: top(mask), long: top(long) };
        Some(Group { begins, ends, keep })
    }
}
