//! From a text of long characters to words. In contrast to `cut/words.rs`, the singles are characters of any length.
//!
//! Most cuts follow from what is known about each of two characters by itself (`vocab/characters.rs`). For the others,
//! the pair is looked up. The second half of this file does the same with vector instructions.

use crate::cut::words::{character_before, four_at, is_space, number, Cutter, Words, BATCH, MAX_WORDS};
use crate::machine::{Machine, Plain, BLOCK};
use crate::vocab::characters::{code_point, is_looked_up, AFTER, BEFORE, ID, ONE, UNKNOWN};

/// A batch with this many bytes that are not ASCII is cut by characters.
const MANY: u32 = BATCH as u32 / 4;
/// How many ids of characters may be written: those of a batch, and what is written after the last one.
pub(super) const ROOM: usize = BATCH + BLOCK;

/// The singles of a batch that was cut by characters.
pub struct CharacterSingles {
    /// The ids of its characters, as if all were singles. The first is that of the last character before the batch. (Of
    /// several neighbouring UNKNOWN characters only the first is here.)
    pub ids: [u32; ROOM + 1],
    /// The index in `ids` of the first character of each word.
    pub(super) begins: [u8; MAX_WORDS],
    /// The index in `ids` of the character after each word, less 1, so that it fits into a byte.
    pub(super) ends: [u8; MAX_WORDS],
    /// Whether the batch begins inside a word.
    opened: bool,
    /// Where in `ids` the singles after the last word end.
    end: usize,
}

impl Default for CharacterSingles {
    fn default() -> CharacterSingles {
        let none = [0; MAX_WORDS];
        CharacterSingles { ids: [0; ROOM + 1], begins: none, ends: none, opened: false, end: 0 }
    }
}

impl Words {
    /// Where in `ids` the singles before a word, or after the last one, begin and end.
    #[inline(always)]
    pub fn character_singles(&self, i: usize) -> (usize, usize) {
        let CharacterSingles { begins, ends, opened, end, .. } = &self.characters;
        // (`ids[0]`, the character before the batch, is one of the singles if they begin before the batch.)
        let from = if i == 0 { usize::from(self.singles_begin >= self.first) } else { usize::from(ends[i - 1]) + 1 };
        let to = match i {
            _ if i == self.count => *end,
            0 if *opened => from,
            _ => usize::from(begins[i]),
        };
        (from, to.max(from))
    }
}

impl Cutter<'_> {
    /// Whether the next batch should be cut by characters: because it has many long ones, or because it has bytes that
    /// do not become exactly one id.
    #[inline(always)]
    pub(super) fn is_by_character(&self, machine: impl Machine) -> bool {
        let (mut others, mut marked) = (0, 0);
        // (One by one, a known character takes as long as a single as it does as a chunk from the cache; an UNKNOWN one
        // takes less.)
        let is_by_mask = machine.vector().is_some() || machine.avx2().is_some();
        let long_pays = is_by_mask || self.vocab.fused_unknown.is_some();
        for at in (self.base..(self.base + BATCH).min(self.length)).step_by(BLOCK) {
            let Some(block) = self.padded[at..].first_chunk() else { break };
            if long_pays {
                others += machine.count_others(block);
            }
            if let Some(looked_up) = &self.joinable.singles.looked_up {
                let left = self.length - at;
                let inside = if left < BLOCK { (1 << left) - 1 } else { u64::MAX };
                marked |= machine.marked(looked_up, block) & inside;
            }
        }
        marked != 0 || others >= MANY
    }

    /// Find the words of the next batch; `None` if it contains U+2581, so the text is not compact.
    #[inline(always)]
    pub(super) fn next_by_character(&mut self, machine: impl Machine, words: &mut Words) -> Option<()> {
        words.first = self.base;
        #[cfg(target_arch = "x86_64")]
        if let Some(vector) = machine.vector() {
            return self.next_by_mask(vector, words);
        } else if let Some(half) = machine.avx2() {
            return self.next_by_mask(half, words);
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = machine;
        self.next_one_by_one(words)
    }

    /// The same, on any machine.
    #[inline(never)]
    fn next_one_by_one(&mut self, words: &mut Words) -> Option<()> {
        let (first, padded, joinable) = (self.base, self.padded, self.joinable);
        let singles = &mut words.characters;
        // 1. Find out what is known about the character before the batch, and whether there is a cut before it.
        let (mut last, mut last_entry) = self.last_character()?;
        let first_character = last;
        // (Nothing can be joined with what is before the text.)
        let mut last_code = if first == 0 { u32::MAX } else { code_point(four_at(padded, last)?) };
        let mut was_cut = self.open.is_none();
        let mut was_unknown = was_cut && last_entry & UNKNOWN != 0;
        singles.ids[0] = last_entry & ID;
        // 2. Go from character to character. If a word begins or ends there, the places of both are written, because
        //    which of them it is cannot be predicted, but only what happens is counted.
        let (mut begun, mut ended, mut kept) = (usize::from(!was_cut), 0, 0);
        let mut first_begins = false;
        let Places { places, count } = self.places()?;
        let is_end = self.base > self.length;
        for (i, &place) in places[..count + usize::from(is_end)].iter().enumerate() {
            let at = first + usize::from(place);
            let (mut entry, mut code, mut joined) = (ONE, 0, false);
            if i < count {
                code = code_point(four_at(padded, at)?);
                entry = joinable.characters.entry(code);
                let may_be = last_entry & BEFORE != 0 && entry & AFTER != 0;
                if (last_code | code) < 0x80 {
                    joined = joinable.bytes[(last_code | code << 8) as usize] == 0;
                } else if may_be {
                    joined = joinable.pair(number(four_at(padded, last)?), number(four_at(padded, at)?));
                }
                if is_space(entry) {
                    return None;
                }
            }
            let looked_up = is_looked_up(last_entry);
            let begins = was_cut & (joined | looked_up);
            let ends = !joined & (!was_cut | looked_up);
            if begins | ends {
                first_begins |= i == 0 && begins;
                words.begins[begun] = (last + 1).wrapping_sub(first) as u8;
                singles.begins[begun] = kept as u8;
                words.ends[ended] = place;
                singles.ends[ended] = kept as u8;
                begun += usize::from(begins);
                ended += usize::from(ends);
            }
            singles.ids[1 + kept] = entry & ID;
            // (Of several neighbouring UNKNOWN characters, only the first counts.)
            let unknown = entry & UNKNOWN != 0 && !joined && !is_looked_up(entry);
            kept += usize::from(i < count && !(unknown & was_unknown));
            (last, last_entry, last_code, was_cut, was_unknown) = (at, entry, code, !joined, unknown);
        }
        // (`begins` counts from the batch. It has no place for a word that begins with the character before the batch.)
        let before = if first_begins { first_character } else { first + usize::from(words.begins[0]).max(1) - 1 };
        let start = self.open.unwrap_or(before);
        self.finish(words, Borders { begun, ended, start, end: kept + usize::from(is_end), last });
        Some(())
    }

    /// Go to the next batch, and find where its characters are.
    #[inline(always)]
    fn places(&mut self) -> Option<Places> {
        let first = self.base;
        let mut found = Places { places: [0; ROOM], count: 0 };
        let stop = (first + BATCH).min(self.length + 1);
        while self.base < stop {
            let block = self.padded[self.base..].first_chunk::<BLOCK>()?;
            let left = self.length - self.base;
            let mut starts = Plain.starts(block);
            if left < BLOCK {
                starts &= (1 << left) - 1;
            }
            let from = self.base - first;
            Plain.places(starts, from as u8, found.places[found.count..].first_chunk_mut()?);
            found.count += starts.count_ones() as usize;
            self.base += BLOCK;
        }
        if self.base > self.length {
            found.places[found.count] = (self.length - first) as u8;
        }
        Some(found)
    }

    /// Where the last character before the batch begins, and its entry.
    #[inline(always)]
    pub(super) fn last_character(&self) -> Option<(usize, u32)> {
        if self.base == 0 {
            return Some((0, ONE));
        }
        let last = character_before(self.padded, self.base);
        Some((last, self.joinable.characters.entry(code_point(four_at(self.padded, last)?))))
    }

    /// Complete the words: the first may have begun before the batch, the last may go on after it, and the last
    /// character may begin one.
    #[inline(always)]
    pub(super) fn finish(&mut self, words: &mut Words, found: Borders) {
        let Borders { begun, ended, start, end, last } = found;
        let opened = self.open.is_some();
        words.count = ended;
        words.start = start;
        words.characters.opened = opened;
        words.characters.end = end;
        if begun > ended {
            // (A word that goes on through the whole batch leaves no singles.)
            let goes_on = opened && ended == 0;
            words.characters.end = if goes_on { 0 } else { usize::from(words.characters.begins[ended]) };
            self.open = Some(words.begin(ended));
        } else {
            self.open = None;
        }
        self.cut = self.open.is_none();
        words.singles_end = self.open.unwrap_or(if self.base > self.length { self.length } else { last });
    }
}

/// Where the characters of a batch are.
struct Places {
    /// Their places, counted from where the batch begins, and the end of the text.
    places: [u8; ROOM],
    /// How many there are.
    count: usize,
}

/// What was found while a batch was cut.
pub(super) struct Borders {
    /// How many words have begun, including one that was open before.
    pub begun: usize,
    /// How many words have ended.
    pub ended: usize,
    /// Where the first word began.
    pub start: usize,
    /// Where in `ids` the singles end, if no word is open.
    pub end: usize,
    /// Where the last character begins.
    pub last: usize,
}

#[cfg(target_arch = "x86_64")]
mod by_mask {
    //! From a text of long characters to words, block by block; see `cut/by_character.rs`.
    //!
    //! Everything is done as in `cut/words.rs`, but bit i stands for character i of the block, not for byte i. All that
    //! is known about a block stays in registers. (Writing down the characters of a batch first and then reading them
    //! 64 at a time took twice as long: most of that was waiting for what had just been written.)

    use super::*;
    use crate::machine::Masks;

    /// What is looked up about each character.
    const FLAGS: [u32; 4] = [BEFORE, AFTER, ONE, UNKNOWN];

    impl Cutter<'_> {
        /// Find the words of the next batch; `None` if it contains U+2581, so the text is not compact.
        #[inline(always)]
        pub(super) fn next_by_mask(&mut self, machine: impl Masks, words: &mut Words) -> Option<()> {
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
                let [others, mut starts] = machine.kinds(block);
                if is_end {
                    starts &= (1 << left) - 1;
                }
                // (Without two ASCII characters side by side, `joined` finds these cuts faster than the table of bytes.)
                let byte_before = if base == 0 { 0 } else { padded[base - 1] };
                let ascii = !others & starts;
                let cuts = if ascii & (ascii << 1 | u64::from(byte_before < 0x80)) == 0 {
                    0
                } else {
                    machine.cuts(&self.joinable.bytes, &self.joinable.classes.tables, block, byte_before)
                };
                let ids = singles.ids[1 + kept..].first_chunk_mut()?;
                let flags = machine.entries(self.joinable.characters.table(), text, starts, FLAGS, ids);
                let [cuts, long] = [cuts, others].map(|bits| machine.extract(bits, starts));
                let block = Block { count: starts.count_ones(), flags, cuts, long, is_end };
                // 3. Which of them begin and end words?
                let joined = |pairs| self.joined(machine, pairs, starts, last);
                let Group { begins, ends, keep } = before.next(&block, joined)?;
                // 4. Write these places. Bit i of the begins stands for the character before character i.
                let from = base - first;
                words.begins[begun] = (last + 1).wrapping_sub(first) as u8;
                let at = begun + (begins & 1) as usize;
                let to = words.begins[at..].first_chunk_mut()?;
                machine.places(machine.deposit(begins >> 1, starts), (from + 1) as u8, to);
                let starts_and_end = starts | u64::from(is_end).wrapping_shl(left as u32);
                machine.places(
                    machine.deposit(ends, starts_and_end),
                    from as u8,
                    words.ends[ended..].first_chunk_mut()?,
                );
                machine.places(machine.extract(begins, keep), kept as u8, singles.begins[begun..].first_chunk_mut()?);
                machine.places(machine.extract(ends, keep), kept as u8, singles.ends[ended..].first_chunk_mut()?);
                first_begins |= base == first && begins & 1 != 0;
                begun += begins.count_ones() as usize;
                ended += ends.count_ones() as usize;
                // 5. Of several neighbouring UNKNOWN characters, only the first counts.
                let inside = block.inside();
                if keep & inside == inside {
                    kept += block.count as usize;
                } else {
                    machine.keep(keep & inside, ids);
                    kept += (keep & inside).count_ones() as usize;
                }
                if starts != 0 {
                    last = base + starts.ilog2() as usize;
                }
                self.base += BLOCK;
            }
            let before_batch = if first_begins { first_last } else { first + usize::from(words.begins[0]).max(1) - 1 };
            let start = self.open.unwrap_or(before_batch);
            let end = kept + usize::from(self.base > self.length);
            self.finish(words, Borders { begun, ended, start, end, last });
            Some(())
        }

        /// Which of the characters with a set bit directly follow the character before them in some piece. `starts`:
        /// where the characters begin. `last`: where the last character before the block begins.
        #[inline(always)]
        fn joined(&self, machine: impl Masks, pairs: u64, starts: u64, last: usize) -> Option<u64> {
            let place = |i: u32| self.base + machine.deposit(1 << i, starts).trailing_zeros() as usize;
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
        /// What is known about them, by `FLAGS`. (Only the bits of characters count, here and below.)
        flags: [u64; 4],
        /// The cuts before its characters, as far as bytes alone tell them.
        cuts: u64,
        /// Which characters are not ASCII.
        long: u64,
        /// Whether the text ends in the block.
        is_end: bool,
    }

    impl Block {
        /// One bit for each of its characters.
        #[inline(always)]
        fn inside(&self) -> u64 {
            (1u64.wrapping_shl(self.count)).wrapping_sub(1) | u64::from(self.count < 64).wrapping_sub(1)
        }
    }

    /// What is known about the character before a block.
    struct Before {
        /// Whether this character is followed by another one in some piece.
        joins: bool,
        looked_up: bool,
        unknown: bool,
        /// Whether there is a cut before it.
        cut: bool,
        /// Whether it is not ASCII.
        long: bool,
    }

    /// Which characters of a block begin words (each by the bit of the character after it), which follow the end of a
    /// word, and which have ids that count.
    struct Group {
        begins: u64,
        ends: u64,
        keep: u64,
    }

    impl Before {
        /// The state before a batch. `open`: the character belongs to a word that has begun.
        fn new(entry: u32, open: bool, long: bool) -> Before {
            let [joins, _, one, unknown] = FLAGS.map(|flag| entry & flag != 0);
            Before { joins, looked_up: !one, unknown: unknown && !open, cut: !open, long }
        }

        /// Process a block. `joined` says which of the given characters are joined with the one before them.
        #[inline(always)]
        fn next(&mut self, block: &Block, joined: impl Fn(u64) -> Option<u64>) -> Option<Group> {
            let inside = block.inside();
            let [before, after, one, unknown] = block.flags.map(|bits| bits & inside);
            let looked_up = !one & inside;
            if looked_up & unknown != 0 {
                return None; // U+2581
            }
            // 1. Which characters are joined with the one before? (For two characters of one byte, their bytes
            //    suffice.)
            let long = block.long;
            let may_be = after & (before << 1 | u64::from(self.joins)) & !block.cuts;
            let pairs = may_be & (long | long << 1 | u64::from(self.long));
            let joined = if pairs == 0 { 0 } else { joined(pairs)? };
            let mask = !(may_be & !pairs | joined);
            // 2. An UNKNOWN character is a chunk of its own if there are cuts on both sides. For the last one of the
            //    block, the second cut may not be known yet; then the character is looked up.
            let last = inside & !(inside >> 1);
            let undecided = last & unknown & before;
            let looked_up = looked_up | undecided;
            let unknown = unknown & !undecided & mask & (mask >> 1 | last);
            // 3. Begins and ends follow as in `cut/words.rs`. (Nothing begins at the end of the text.)
            let cut_before = mask << 1 | u64::from(self.cut);
            let looked_up_singles = mask & cut_before & (looked_up << 1 | u64::from(self.looked_up));
            let valid = if block.is_end { inside << 1 | 1 } else { inside };
            let begins = (cut_before & !mask | looked_up_singles) & valid;
            let ends = (mask & !cut_before | looked_up_singles) & valid;
            // 4. Of several neighbouring UNKNOWN characters, only the first counts.
            let keep = !(unknown & (unknown << 1 | u64::from(self.unknown)));
            let top = |bits: u64| bits >> (block.count.max(1) - 1) & 1 != 0;
            let [joins, looked_up, unknown] = [before, looked_up, unknown].map(top);
            *self = Before { joins, looked_up, unknown, cut: top(mask), long: top(long) };
            Some(Group { begins, ends, keep })
        }
    }
}
