//! Counts words: a hash table whose words are stored one after another in one buffer. Words are compact here (a space
//! stands for U+2581); `sort.rs` makes a sorted list of them.

use crate::error::Halt;
use crate::memory::prefetch;
use crate::memory::{boxed, zeros, Grow};
use crate::train::recent::{load, number, Recent, RecentWord, WordHash, BATCH, SHORT, WAITING};

/// A slot is 0 if it is empty. Otherwise its lower bits are the place of a record, plus one, and the bits above them
/// are bits of the hash, so that few other words have to be compared.
const PLACE_BITS: u32 = 36;
const PLACE: u64 = (1 << PLACE_BITS) - 1;
/// Up to this many slots, a slot has enough bits of the hash to know the word's place in a table twice as large.
const KNOWN_SLOTS: usize = 1 << (63 - PLACE_BITS);
/// How many bytes the count takes, which comes first in a record.
const COUNT: usize = 8;
/// Stands in the byte for the length if the length takes the next eight bytes.
const LONG: u8 = u8::MAX;

/// `WordTable::add_at` reads at most this many bytes after the end of a word, and ignores them.
pub const PADDING: usize = SHORT;
/// The small memory in front of a table holds 2 ** this many words.
const RECENT_BITS: u32 = 13;

/// The most words that a table of this many slots should hold: three quarters.
fn capacity(slots: usize) -> usize {
    slots / 4 * 3
}

/// Words with their counts. A record in `blob` is a count, a length and the word; a slot points to it. So a word takes
/// about 20 bytes more than its text, and looking up a known word costs two cache misses. But most words of a text are
/// the same few. These are counted in `recent`, which takes a quarter of a megabyte and so stays in a near cache. Words
/// that are pushed out of it are collected in `waiting`, until there are enough of them to be added to their records
/// together.
pub struct WordTable {
    /// Where the record of each word is, by its hash; see PLACE_BITS.
    slots: Vec<u64>,
    /// Records, and PADDING bytes.
    blob: Vec<u8>,
    /// How many records there are.
    words: usize,
    /// The small memory.
    recent: Recent,
    /// Words that were pushed out of it.
    waiting: Vec<RecentWord>,
    /// The counts of words of one byte, by that byte.
    bytes: Box<[u64; 256]>,
    /// The hash function.
    hash: WordHash,
    /// Whether there was no memory for a word. In that case the table is empty, and stays so. (This is a flag instead
    /// of a result, because `add_at` is called for every word of a text, and hardly ever needs memory.)
    failed: bool,
}

impl Default for WordTable {
    fn default() -> WordTable {
        let (recent, hash, waiting) = (Recent::new(RECENT_BITS), WordHash::default(), Vec::with_capacity(WAITING));
        WordTable {
            slots: vec![0; 1 << 10],
            blob: vec![0; PADDING],
            words: 0,
            recent,
            waiting,
            bytes: boxed(0),
            hash,
            failed: false,
        }
    }
}

/// Where a word with this hash is looked for first, in a table of this many slots. The number is a power of 2 above 1.
#[inline]
fn first_slot(hash: u64, slots: usize) -> usize {
    (hash >> (64 - slots.trailing_zeros())) as usize
}

/// The word and the count of the record at `at`, and where the next begins.
#[inline]
fn record(blob: &[u8], at: usize) -> (&[u8], u64, usize) {
    let count = number(&blob[at..at + COUNT]);
    let mut begin = at + COUNT + 1;
    let mut length = usize::from(blob[begin - 1]);
    if length == usize::from(LONG) {
        length = number(&blob[begin..begin + 8]) as usize;
        begin += 8;
    }
    (&blob[begin..begin + length], count, begin + length)
}

impl WordTable {
    /// Count the word `text[begin..end]` `count` more times. At least PADDING bytes must follow it. A count that would
    /// exceed 64 bits stays at the maximum.
    #[inline]
    pub fn add_at(&mut self, text: &[u8], begin: usize, end: usize, count: u64) {
        let length = end - begin;
        if length == 1 {
            let total = &mut self.bytes[usize::from(text[begin])];
            *total = total.saturating_add(count);
            return;
        }
        if length > SHORT {
            self.add_long(&text[begin..end], count);
            return;
        }
        let bytes = load(text, begin, length);
        let word = RecentWord { bytes, length: length as u64, count };
        let hash = self.hash.short(bytes, length as u64);
        if self.recent.add(hash, word) {
            self.recent.count_added(&mut self.waiting);
            if self.waiting.len() >= BATCH {
                self.add_waiting();
            }
        }
    }

    /// Add the waiting words to their records.
    fn add_waiting(&mut self) {
        let mut places = [0; WAITING];
        // These two loops do not wait for what they read, so the processor runs ahead and fetches many words at once.
        // The third loop looks them up again, once they are in the cache.
        for (place, word) in places.iter_mut().zip(&self.waiting) {
            let slot = self.slots[first_slot(self.hash.short(word.bytes, word.length), self.slots.len())];
            *place = (slot & PLACE).saturating_sub(1) as usize;
        }
        let touched = places.iter().fold(0, |touched, &place| touched ^ self.blob[place]);
        std::hint::black_box(touched);
        // (If there is no memory for a word, the table fails, and no words wait any more.)
        let mut at = 0;
        while let Some(&word) = self.waiting.get(at) {
            self.add_short(word);
            at += 1;
        }
        self.waiting.clear();
    }

    /// Count a word.
    pub fn add(&mut self, word: &[u8], count: u64) {
        if word.len() > SHORT {
            self.add_long(word, count);
        } else {
            let mut padded = [0; SHORT + PADDING];
            padded[..word.len()].copy_from_slice(word);
            self.add_at(&padded, 0, word.len(), count);
        }
    }

    #[inline]
    fn increase(&mut self, place: usize, count: u64) {
        let bytes = &mut self.blob[place..place + COUNT];
        bytes.copy_from_slice(&number(bytes).saturating_add(count).to_le_bytes());
    }

    /// The place of the record with this hash that `is_same` accepts, or the empty slot that should point to it.
    #[inline]
    fn find(&self, hash: u64, is_same: impl Fn(usize) -> bool) -> Result<usize, usize> {
        let mask = self.slots.len() - 1;
        let mut at = first_slot(hash, self.slots.len());
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return Err(at);
            }
            let place = (slot & PLACE) as usize - 1;
            if (slot ^ hash) & !PLACE == 0 && is_same(place) {
                return Ok(place);
            }
            at = (at + 1) & mask;
        }
    }

    fn add_short(&mut self, word: RecentWord) {
        let hash = self.hash.short(word.bytes, word.length);
        let length = word.length as usize;
        let is_same = |place: usize| {
            let begin = place + COUNT + 1;
            usize::from(self.blob[begin - 1]) == length && load(&self.blob, begin, length) == word.bytes
        };
        match self.find(hash, is_same) {
            Ok(place) => self.increase(place, word.count),
            Err(slot) => {
                self.push(slot, hash, &word.padded()[..length], word.count);
            }
        }
    }

    fn add_long(&mut self, word: &[u8], count: u64) {
        let hash = self.hash.of(word);
        match self.find(hash, |place| record(&self.blob, place).0 == word) {
            Ok(place) => self.increase(place, count),
            Err(slot) => self.push(slot, hash, word, count),
        }
    }

    /// Fails if there was no memory for a word.
    pub fn check(&self) -> Result<(), Halt> {
        if self.failed {
            Err(Halt::OutOfMemory)
        } else {
            Ok(())
        }
    }

    /// Release all memory.
    fn fail(&mut self) {
        *self = WordTable { failed: true, ..WordTable::default() };
    }

    /// Append a record, and point a slot to it.
    #[cold]
    fn push(&mut self, slot: usize, hash: u64, word: &[u8], count: u64) {
        if self.failed {
            return;
        }
        if self.blob.grow(COUNT + 9 + word.len() + PADDING).is_err() {
            return self.fail();
        }
        let place = self.blob.len() - PADDING;
        if place as u64 >= PLACE {
            return self.fail();
        }
        self.blob.truncate(place);
        self.slots[slot] = hash & !PLACE | (place as u64 + 1);
        self.blob.extend_from_slice(&count.to_le_bytes());
        match u8::try_from(word.len()) {
            Ok(length) if length < LONG => self.blob.push(length),
            _ => {
                self.blob.push(LONG);
                self.blob.extend_from_slice(&(word.len() as u64).to_le_bytes());
            }
        }
        self.blob.extend_from_slice(word);
        self.blob.extend_from_slice(&[0; PADDING]);
        self.words += 1;
        if self.words > capacity(self.slots.len()) {
            self.grow();
        }
    }

    /// Double the number of slots.
    ///
    /// The first slot of a word is given by the highest bits of its hash, and slots hold these bits. So no word has to
    /// be hashed again. And because words stay in nearly the same order, memory is read and written from one end to the
    /// other. (When the lowest bits gave the slot, this took a twentieth of the time of counting.)
    #[cold]
    fn grow(&mut self) {
        let slots = self.slots.len() * 2;
        let Ok(mut new) = zeros(slots) else { return self.fail() };
        let mut insert = |slot: u64, hash: u64| {
            let mut at = first_slot(hash, slots);
            while new[at] != 0 {
                at = (at + 1) & (slots - 1);
            }
            new[at] = slot;
        };
        if self.slots.len() <= KNOWN_SLOTS {
            self.slots.iter().filter(|&&slot| slot != 0).for_each(|&slot| insert(slot, slot));
        } else {
            for (place, word, _) in self.records() {
                let hash = self.hash.of(word);
                insert(hash & !PLACE | (place as u64 + 1), hash);
            }
        }
        self.slots = new;
    }

    /// Add the words of the small memory to their records.
    fn flush(&mut self) {
        self.recent.take(&mut self.waiting);
        let one_byte = (0..).zip(*std::mem::replace(&mut self.bytes, boxed(0)));
        self.waiting.extend(one_byte.filter(|(_, count)| *count > 0).map(|(byte, count)| RecentWord {
            bytes: [byte, 0],
            length: 1,
            count,
        }));
        for word in std::mem::take(&mut self.waiting) {
            self.add_short(word);
        }
    }

    /// Complete the records. From then on they are only read.
    pub fn close(&mut self) {
        self.flush();
        self.slots = Vec::new();
    }

    /// The word and the count of the record at a place.
    #[inline]
    pub fn get(&self, place: usize) -> (&[u8], u64) {
        let (word, count, _) = record(&self.blob, place);
        (word, count)
    }

    /// Prefetch the record of the word at a place.
    #[inline]
    pub fn prefetch(&self, place: usize) {
        prefetch(self.blob.as_ptr().wrapping_add(place));
    }

    /// All records: the place, the word and the count of each.
    pub fn records(&self) -> impl Iterator<Item = (usize, &[u8], u64)> {
        let mut place = 0;
        std::iter::from_fn(move || {
            if place + PADDING == self.blob.len() {
                return None;
            }
            let (word, count, next) = record(&self.blob, place);
            Some((std::mem::replace(&mut place, next), word, count))
        })
    }

    /// How many words there are.
    pub fn distinct(&mut self) -> usize {
        self.flush();
        self.words
    }

    /// About how many bytes the table takes.
    pub fn memory(&self) -> usize {
        self.slots.len() * 8 + self.blob.len()
    }

    /// Add all words of another table.
    pub fn absorb(&mut self, mut other: WordTable) {
        other.flush();
        for (_, word, count) in other.records() {
            self.add(word, count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Pseudorandom numbers.
    fn chance(state: &mut u64) -> usize {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) as usize
    }

    #[test]
    fn counts_as_a_map_does() {
        let mut state = 1;
        let mut table = WordTable::default();
        let mut map: HashMap<Vec<u8>, u64> = HashMap::new();
        for _ in 0..100_000 {
            // Few different letters, so that words repeat; and all kinds of lengths, including those around the limits.
            let length = [1, 2, 3, 8, 15, 16, 17, 33, 254, 255, 256][chance(&mut state) % 11];
            let word: Vec<u8> =
                (0..length).map(|at| if at < 4 { b'a' + (chance(&mut state) % 12) as u8 } else { b'z' }).collect();
            let count = 1 + chance(&mut state) as u64 % 3;
            table.add(&word, count);
            *map.entry(word).or_default() += count;
        }
        assert_eq!(table.distinct(), map.len());
        let mut other = WordTable::default();
        other.add(b"a", 5);
        other.add(b"new", 1);
        *map.entry(b"a".to_vec()).or_default() += 5;
        map.insert(b"new".to_vec(), 1);
        table.absorb(other);
        table.close();
        let records: HashMap<Vec<u8>, u64> = table.records().map(|(_, word, count)| (word.to_vec(), count)).collect();
        assert_eq!(records, map);
    }

    #[test]
    fn the_bytes_after_a_word_do_not_count() {
        let mut table = WordTable::default();
        let text = b"abcabcabd................";
        table.add_at(text, 0, 3, 1);
        table.add_at(text, 3, 6, 1);
        table.add_at(text, 6, 9, 1);
        assert_eq!(table.distinct(), 2);
    }

    #[test]
    fn counts_stay_at_their_maximum() {
        let mut table = WordTable::default();
        for word in [&b"short"[..], b"longer than sixteen bytes"] {
            table.add(word, u64::MAX);
            table.add(word, 7);
        }
        table.close();
        assert!(table.records().all(|(_, _, count)| count == u64::MAX));
    }
}
