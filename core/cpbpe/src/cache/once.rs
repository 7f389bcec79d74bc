//! Chunks that were seen once. Some kinds of chunks are remembered when they come for the second time: characters, and
//! long chunks of byte-level vocabularies. There are texts in which every one is another, and the memory for them took
//! more time than all the rest.
//!
//! This is a Bloom filter: every chunk has `BITS` bits, all in the same word. If those of other chunks happen to be the
//! same, it counts as seen, and is remembered a little early; that is all. When there are too many it begins anew.
//! (A table with a place for each of 16,384 hashes, in which the last chunk drops the one before, took as much memory.
//! Where the same few thousand long words came again and again, many dropped each other each time and were never
//! remembered: on Hindi, Thai and Arabic with o200k_base, merging them took a third of the time.)

use crate::cache::key::Key;

/// How many words of 64 bits there are, as a power of 2: 64 KiB.
const WORDS: u32 = 13;
/// How many bits of a word a chunk has, at most.
const BITS: u32 = 3;
/// After this many chunks, an eighth of the number of bits, it begins anew: one in a dozen that is new would count as seen.
const MANY: u32 = 1 << 16;

/// See the top of this file.
#[derive(Default)]
pub struct Once {
    words: Vec<u64>,
    /// How many chunks are in it.
    count: u32,
}

impl Once {
    /// Whether a chunk comes for the first time, as far as is known.
    pub fn is_new(&mut self, key: Key) -> bool {
        if self.count == MANY || self.words.is_empty() {
            self.words.clear();
            self.words.resize(1 << WORDS, 0);
            self.count = 0;
        }
        let bits = (0..BITS).fold(0, |bits, i| bits | 1 << (key.hash >> (6 * i) & 63));
        let word = &mut self.words[(key.hash >> (u32::BITS - WORDS)) as usize];
        let is_new = *word & bits != bits;
        *word |= bits;
        self.count += u32::from(is_new);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_time_is_known_and_nearly_every_first_time_too() {
        let (mut once, mut early) = (Once::default(), 0);
        let key = |i: u32| Key::of(format!("a chunk of many bytes, {i}").as_bytes());
        for i in 0..MANY {
            early += u32::from(!once.is_new(key(i)));
            assert!(!once.is_new(key(i)) || once.count == 1, "{i}");
        }
        assert!(early < MANY / 20, "{early}");
        // Texts with ever new chunks do not fill it for good.
        let news = (MANY..9 * MANY).filter(|&i| once.is_new(key(i))).count() as u32;
        assert!(news > 8 * MANY / 10 * 9, "{news}");
    }

    #[test]
    fn thousands_of_chunks_in_turn_are_remembered() {
        let mut once = Once::default();
        let keys: Vec<Key> = (0..20_000u32).map(|i| Key::of(format!("one that comes again: {i}").as_bytes())).collect();
        keys.iter().for_each(|&key| _ = once.is_new(key));
        assert!(!keys.iter().any(|&key| once.is_new(key)));
    }
}
