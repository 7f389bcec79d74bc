//! From text of long characters to words: here the singles are characters, of any length.
//!
//! Most cuts follow from what is known about two characters alone (`vocab/characters.rs`); the pair is looked up for the
//! others. `cut/by_mask.rs` does the same with vector instructions.

use crate::cut::chunks::{character_before, four_at, is_space, number};
use crate::cut::words::{Cutter, Words, BATCH, MAX_WORDS};
use crate::machine::{Machine, Plain, BLOCK};
use crate::vocab::characters::{code_point, is_odd, AFTER, BEFORE, ID, ONE, UNKNOWN};

/// A batch with this many bytes that are not ASCII is cut by characters.
const MANY: u32 = BATCH as u32 / 4;
/// How many characters may be written.
pub(super) const ROOM: usize = BATCH + BLOCK;

/// The singles of a batch that was cut by characters.
pub struct CharacterSingles {
    /// The ids of its characters, as if they were singles, after that of the last one before the batch. (Of UNKNOWN
    /// characters side by side only the first is here.)
    pub ids: [u32; ROOM + 1],
    /// The places in `ids` where words begin, and those, minus 1, where they end.
    pub(super) begins: [u8; MAX_WORDS],
    /// See `begins`.
    pub(super) ends: [u8; MAX_WORDS],
    /// Whether a word was open where the batch begins.
    opened: bool,
    /// The place in `ids` where the singles after the last word end.
    end: usize,
}

impl CharacterSingles {
    pub fn new() -> CharacterSingles {
        let none = [0; MAX_WORDS];
        CharacterSingles { ids: [0; ROOM + 1], begins: none, ends: none, opened: false, end: 0 }
    }
}

impl Words {
    /// The places in `ids` of the singles before a word, or after the last one. `done`: up to where in the text ids
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

    /// Whether the first single after the word before a word is a character with this id.
    #[inline(always)]
    pub fn is_after(&self, i: usize, id: Option<u32>) -> bool {
        let (from, to) = if self.by_character { self.character_singles(i, 0) } else { (0, 0) };
        from < to && Some(self.characters.ids[from]) == id
    }
}

impl Cutter<'_> {
    /// Whether the next batch should be cut by characters: because many are long, or because some are bytes that are not
    /// one id.
    #[inline(always)]
    pub(super) fn is_by_character<M: Machine>(&self) -> bool {
        let (mut others, mut marked) = (0, 0);
        // (One by one, a known character takes as long as a chunk in the cache; an UNKNOWN one takes less.)
        let long_pays = M::MASKS || self.vocab.fused.is_some();
        for at in (self.base..(self.base + BATCH).min(self.length)).step_by(BLOCK) {
            let Some(block) = self.padded[at..].first_chunk() else { break };
            if long_pays {
                others += M::count_others(block);
            }
            if let Some(odd) = &self.joinable.singles.odd {
                let left = self.length - at;
                let inside = if left < BLOCK { (1 << left) - 1 } else { u64::MAX };
                marked |= M::marked(odd, block) & inside;
            }
        }
        marked != 0 || others >= MANY
    }

    /// Find the words of the next batch; `None` if it contains U+2581, so the text is not compact.
    #[inline(always)]
    pub(super) fn next_by_character<M: Machine>(&mut self, words: &mut Words) -> Option<()> {
        words.first = self.base;
        #[cfg(target_arch = "x86_64")]
        if M::MASKS {
            return self.next_by_mask(words);
        }
        self.next_one_by_one(words)
    }

    /// The same without vector instructions.
    #[inline(never)]
    fn next_one_by_one(&mut self, words: &mut Words) -> Option<()> {
        let (first, padded, joinable) = (self.base, self.padded, self.joinable);
        let singles = &mut words.characters;
        // 1. What is known about the character before the batch, and whether there is a cut before it.
        let (mut last, mut last_entry) = self.last_character()?;
        let first_character = last;
        // (In front of the text is nothing to be joined with.)
        let mut last_code = if first == 0 { u32::MAX } else { code_point(four_at(padded, last)?) };
        let mut was_cut = self.open.is_none();
        let mut was_unknown = was_cut && last_entry & UNKNOWN != 0;
        singles.ids[0] = last_entry & ID;
        // 2. Go from character to character. Where words begin and end is unpredictable, so it is always written, and
        //    counted if it is so.
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
            let odd = is_odd(last_entry);
            let begins = was_cut & (joined | odd);
            let ends = !joined & (!was_cut | odd);
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
            // (Of UNKNOWN characters side by side, only the first counts.)
            let unknown = entry & UNKNOWN != 0 && !joined && !is_odd(entry);
            kept += usize::from(i < count && !(unknown & was_unknown));
            (last, last_entry, last_code, was_cut, was_unknown) = (at, entry, code, !joined, unknown);
        }
        let before = if first_begins { first_character } else { first + usize::from(words.begins[0]).max(1) - 1 };
        let start = self.open.unwrap_or(before);
        self.finish(words, Found { begun, ended, start, end: kept + usize::from(is_end), last });
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
            let mut starts = Plain::starts(block);
            if left < BLOCK {
                starts &= (1 << left) - 1;
            }
            let from = self.base - first;
            Plain::places(starts, from as u8, found.places[found.count..].first_chunk_mut()?);
            found.count += starts.count_ones() as usize;
            self.base += BLOCK;
        }
        if self.base > self.length {
            found.places[found.count] = (self.length - first) as u8;
        }
        Some(found)
    }

    /// The last character before the batch: where it begins, and its entry.
    #[inline(always)]
    pub(super) fn last_character(&self) -> Option<(usize, u32)> {
        if self.base == 0 {
            return Some((0, ONE));
        }
        let last = character_before(self.padded, self.base);
        Some((last, self.joinable.characters.entry(code_point(four_at(self.padded, last)?))))
    }

    /// The first word of a batch may have begun earlier, and the last may go on. The last character may begin one.
    #[inline(always)]
    pub(super) fn finish(&mut self, words: &mut Words, found: Found) {
        let Found { begun, ended, start, end, last } = found;
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
    /// How many they are.
    count: usize,
}

/// What was found in a batch.
pub(super) struct Found {
    /// How many words were begun, with the one that was open.
    pub begun: usize,
    /// How many words were ended.
    pub ended: usize,
    /// Where the first one began.
    pub start: usize,
    /// The place in `ids` where the singles end, if no word is open.
    pub end: usize,
    /// Where the last character begins.
    pub last: usize,
}
