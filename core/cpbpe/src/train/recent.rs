//! A small memory of short words that were seen recently, each with its count since it entered. Most of a text consists
//! of the same few words, and this memory stays in a near cache. A word that is pushed out by another one is handed
//! back.

use std::hash::{BuildHasher, RandomState};

use crate::memory::{prefetch, with_room};

/// Words of up to this many bytes are handled as one number.
pub const SHORT: usize = 16;

/// A short word with a count.
#[derive(Clone, Copy, Default)]
pub struct RecentWord {
    /// Its bytes, padded with zeros.
    pub bytes: [u64; 2],
    /// Its length; 0 if there is no word.
    pub length: u64,
    /// How often it was seen.
    pub count: u64,
}

impl RecentWord {
    /// Its bytes, padded with zeros.
    #[inline]
    pub fn padded(&self) -> [u8; SHORT] {
        let mut bytes = [0; SHORT];
        bytes[..8].copy_from_slice(&self.bytes[0].to_le_bytes());
        bytes[8..].copy_from_slice(&self.bytes[1].to_le_bytes());
        bytes
    }
}

/// A hash of words. Its seed is random, so that nobody can make a corpus whose words collide.
#[derive(Clone, Copy)]
pub struct WordHash {
    seed: u64,
}

impl Default for WordHash {
    fn default() -> WordHash {
        WordHash { seed: RandomState::new().hash_one(0) | 1 }
    }
}

impl WordHash {
    /// The hash of a word of up to SHORT bytes.
    #[inline]
    pub fn short(self, bytes: [u64; 2], length: u64) -> u64 {
        const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
        mix(bytes[0] ^ self.seed, (bytes[1] ^ ODD).wrapping_add(length) ^ self.seed.rotate_left(32))
    }

    /// The hash of any word.
    pub fn of(self, word: &[u8]) -> u64 {
        let length = word.len();
        if length <= SHORT {
            let mut bytes = [0; SHORT];
            bytes[..length].copy_from_slice(word);
            return self.short(load(&bytes, 0, length), length as u64);
        }
        let mut state = self.seed ^ length as u64;
        let last = length - SHORT;
        for at in (0..last).step_by(SHORT).chain([last]) {
            let bytes = load(word, at, SHORT);
            state = mix(state ^ bytes[0], self.seed ^ bytes[1] ^ 0xD6E8_FEB8_6659_FD93) ^ state.rotate_left(23);
        }
        mix(state, 0x9E37_79B9_7F4A_7C15)
    }
}

/// This many words are collected before they are looked up together. By then their places are in a near cache.
pub const BATCH: usize = 32;
/// The most words that wait after they were pushed out.
pub const WAITING: usize = 2 * BATCH;

/// The words seen recently, by hash.
pub struct Recent {
    /// The memory has room for 2 ** this many words.
    bits: u32,
    /// Empty until the first word is counted.
    words: Vec<RecentWord>,
    /// Words that were added and not looked up yet, with their places.
    coming: Vec<(usize, RecentWord)>,
}

impl Recent {
    /// A memory of 2 ** `bits` words.
    pub fn new(bits: u32) -> Recent {
        Recent { bits, words: Vec::new(), coming: Vec::with_capacity(BATCH) }
    }

    /// Add a word, to be counted by `count_added`. Returns whether it is time to call that.
    #[inline]
    pub fn add(&mut self, hash: u64, word: RecentWord) -> bool {
        let place = (hash >> (64 - self.bits)) as usize;
        prefetch(self.words.as_ptr().wrapping_add(place));
        self.coming.push((place, word));
        self.coming.len() == BATCH
    }

    /// Count the words that were added. Appends the words that they push out, at most BATCH, to `pushed_out`.
    #[inline]
    pub fn count_added(&mut self, pushed_out: &mut Vec<RecentWord>) {
        if self.words.is_empty() {
            // Without memory for it, each word is pushed out at once. (There is room for what `take` puts in front.)
            let size = 1 << self.bits;
            let Ok(words) = with_room(size + WAITING) else {
                pushed_out.extend(self.coming.drain(..).map(|(_, word)| word));
                return;
            };
            self.words = words;
            self.words.resize(size, RecentWord::default());
        }
        for (place, word) in self.coming.drain(..) {
            let recent = &mut self.words[place];
            if recent.bytes == word.bytes && recent.length == word.length {
                recent.count = recent.count.saturating_add(word.count);
                continue;
            }
            let old = std::mem::replace(recent, word);
            if old.length > 0 {
                pushed_out.push(old);
            }
        }
    }

    /// Empty the memory, and append its words to a list of those that were pushed out, at most WAITING.
    pub fn take(&mut self, all: &mut Vec<RecentWord>) {
        self.count_added(all);
        // (The memory itself becomes the list: there may be none for another one.)
        let mut words = std::mem::take(&mut self.words);
        if words.is_empty() {
            return;
        }
        words.retain(|word| word.length > 0);
        let before = all.len();
        words.append(all);
        words.rotate_right(before);
        *all = words;
    }
}

/// Eight bytes as a number.
#[inline]
pub fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// The first `length` bytes at `at`, at most 16, as two numbers. 16 bytes must be there, even if the word is shorter:
/// one load and a mask need no branch on the length, and lengths are hard to predict.
#[inline]
pub fn load(bytes: &[u8], at: usize, length: usize) -> [u64; 2] {
    let block = &bytes[at..at + SHORT];
    masked([number(&block[..8]), number(&block[8..])], length)
}

/// The first `length` of 16 bytes, with zeros in place of the others.
#[inline]
pub fn masked(bytes: [u64; 2], length: usize) -> [u64; 2] {
    const MASKS: [[u64; 2]; SHORT + 1] = {
        let mut masks = [[0; 2]; SHORT + 1];
        let mut length = 1;
        while length <= SHORT {
            masks[length] = masks[length - 1];
            masks[length][(length - 1) / 8] |= 0xFF << ((length - 1) % 8 * 8);
            length += 1;
        }
        masks
    };
    let mask = MASKS[length];
    [bytes[0] & mask[0], bytes[1] & mask[1]]
}

#[inline]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}
