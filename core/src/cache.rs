//! Remembers what chunks became, so that most text is encoded by looking up, not by merging.
//!
//! A chunk of up to 16 bytes is two words. They are hashed to one of 2^BITS sets of two entries, which fill
//! one cache line; a new chunk takes the first place of its set and pushes the first one to the second. So a
//! look-up touches one line of memory, which is fetched ahead of time, and the size is bounded. A longer chunk is
//! found by its hash, and its bytes are kept aside to be compared.
//!
//! Every call that encodes has a cache of its own while it runs (see `engine.rs`): no locks, and nothing to
//! share between threads.

use std::alloc::{alloc_zeroed, handle_alloc_error, Layout};

use crate::vocab::NONE;

/// The number of sets. 2^17 sets of 64 bytes are 8 MiB, of which only what is used takes memory.
const BITS: u32 = 17;
/// The longest chunk that is its own key.
pub const MAX_CHUNK: usize = 16;
/// The longest chunk that is remembered.
pub const MAX_LONG: usize = 128;
/// Longer chunks that take more bytes than this make the cache start anew.
const MAX_TEXTS: usize = 1 << 20;
/// Ids that an entry has room for.
const INLINE: usize = 3;
/// Results of more ids than that are kept aside; when these are so many, the cache starts anew.
const MAX_SPILLED: usize = 1 << 21;

/// One remembered chunk.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct Entry {
    /// The chunk, padded with zeros; of a long one the hash, and where it is in `texts`.
    key: [u64; 2],
    /// Its ids, or where they are in `spilled` and how many.
    ids: [u32; INLINE],
    /// The chunk's length; 0 for an empty entry.
    length: u16,
    /// How many ids, or `SPILLED`.
    count: u16,
}

const SPILLED: u16 = u16::MAX;
const EMPTY: Entry = Entry { key: [0; 2], ids: [0; INLINE], length: 0, count: 0 };

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Set([Entry; 2]);

/// What a look-up found.
pub enum Found<'a> {
    /// Up to three ids, all to be copied, of which so many count.
    Inline([u32; INLINE], usize),
    /// More.
    Spilled(&'a [u32]),
}

/// The memory of one running call.
pub struct Cache {
    sets: Box<[Set; 1 << BITS]>,
    spilled: Vec<u32>,
    texts: Vec<u8>,
}

const SET_MASK: u32 = (1 << BITS) - 1;

/// Two words to one, with every bit bearing on every bit.
#[inline(always)]
fn fold(low: u64, high: u64) -> u64 {
    let product = u128::from(low ^ 0x9E37_79B9_7F4A_7C15) * u128::from(high ^ 0xC2B2_AE3D_27D4_EB4F);
    product as u64 ^ (product >> 64) as u64
}

/// A chunk of up to 16 bytes, and where its set is.
#[derive(Clone, Copy, Default)]
pub struct Key {
    words: [u64; 2],
    length: u16,
    set: u32,
}

impl Key {
    /// The key of `words`, of which `length` bytes count; the rest must be zero.
    #[inline(always)]
    pub fn new(words: [u64; 2], length: usize) -> Key {
        Key { words, length: length as u16, set: fold(words[0], words[1]) as u32 & SET_MASK }
    }

    /// The key of a chunk of more than 16 bytes: its hash stands for its words, and `get` compares the bytes.
    #[inline]
    pub fn long(chunk: &[u8]) -> Key {
        let mut hash = chunk.len() as u64;
        for block in chunk.chunks(MAX_CHUNK) {
            let key = Key::of(block);
            hash = fold(key.words[0] ^ hash, key.words[1]);
        }
        Key { words: [hash, 0], length: chunk.len() as u16, set: (hash >> 32) as u32 & SET_MASK }
    }

    /// The key of a slice of up to 16 bytes.
    pub fn of(chunk: &[u8]) -> Key {
        let mut bytes = [0; MAX_CHUNK];
        bytes[..chunk.len()].copy_from_slice(chunk);
        let value = u128::from_le_bytes(bytes);
        Key::new([value as u64, (value >> 64) as u64], chunk.len())
    }
}

impl Cache {
    /// An empty cache. The memory is zero and untouched, so it costs nothing until it is used.
    pub fn new() -> Cache {
        let layout = Layout::new::<[Set; 1 << BITS]>();
        // SAFETY: the layout is not empty, and every field of a Set may be zero: that is an empty entry. Asking
        // the allocator for zeros, and not writing them, leaves 8 MiB untouched, of which short texts
        // need next to nothing.
        let sets = unsafe {
            let memory = alloc_zeroed(layout);
            if memory.is_null() {
                handle_alloc_error(layout);
            }
            Box::from_raw(memory.cast())
        };
        Cache { sets, spilled: Vec::new(), texts: Vec::new() }
    }

    /// Ask for the memory of a key ahead of time.
    #[inline(always)]
    pub fn prefetch(&self, key: Key) {
        #[cfg(target_arch = "x86_64")]
        if let Some(set) = self.sets.get(key.set as usize) {
            // SAFETY: a prefetch reads nothing that the program can see, and the address is that of a set.
            unsafe {
                std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(std::ptr::from_ref(set).cast());
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = key;
    }

    /// What the chunk became, if it is remembered.
    #[inline(always)]
    pub fn get(&self, key: Key) -> Option<Found<'_>> {
        let set = &self.sets[(key.set & SET_MASK) as usize].0;
        let entry = if set[0].key == key.words && set[0].length == key.length {
            &set[0]
        } else if set[1].key == key.words && set[1].length == key.length {
            &set[1]
        } else {
            return None;
        };
        self.found(entry)
    }

    /// The same for a key of `Key::long`.
    pub fn get_long(&self, key: Key, chunk: &[u8]) -> Option<Found<'_>> {
        let set = &self.sets[(key.set & SET_MASK) as usize].0;
        let entry = set.iter().find(|entry| {
            let begin = entry.key[1] as usize;
            entry.key[0] == key.words[0]
                && entry.length == key.length
                && self.texts.get(begin..begin + chunk.len()) == Some(chunk)
        })?;
        self.found(entry)
    }

    #[inline(always)]
    fn found(&self, entry: &Entry) -> Option<Found<'_>> {
        if entry.count <= INLINE as u16 {
            return Some(Found::Inline(entry.ids, usize::from(entry.count)));
        }
        let begin = entry.ids[0] as usize;
        Some(Found::Spilled(self.spilled.get(begin..begin + entry.ids[1] as usize)?))
    }

    /// Remember what a long chunk became, whose key is of `Key::long`.
    pub fn put_long(&mut self, mut key: Key, chunk: &[u8], ids: &[u32]) {
        if self.texts.len() + chunk.len() > MAX_TEXTS {
            self.clear();
        }
        key.words[1] = self.texts.len() as u64;
        self.texts.extend_from_slice(chunk);
        self.put(key, ids);
    }

    /// Remember what a chunk became.
    pub fn put(&mut self, key: Key, ids: &[u32]) {
        let mut entry = Entry { key: key.words, ids: [NONE; INLINE], length: key.length, count: ids.len() as u16 };
        if ids.len() <= INLINE {
            entry.ids[..ids.len()].copy_from_slice(ids);
        } else {
            if self.spilled.len() + ids.len() > MAX_SPILLED {
                self.clear();
                if usize::from(key.length) > MAX_CHUNK {
                    return; // its bytes were forgotten, too
                }
            }
            entry.count = SPILLED;
            entry.ids[0] = self.spilled.len() as u32;
            entry.ids[1] = ids.len() as u32;
            self.spilled.extend_from_slice(ids);
        }
        let set = &mut self.sets[(key.set & SET_MASK) as usize].0;
        set[1] = set[0];
        set[0] = entry;
    }

    fn clear(&mut self) {
        self.sets.fill(Set([EMPTY; 2]));
        self.spilled.clear();
        self.texts.clear();
    }
}

impl Default for Cache {
    fn default() -> Self {
        Cache::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(cache: &Cache, chunk: &[u8]) -> Option<Vec<u32>> {
        cache.get(Key::of(chunk)).map(|found| match found {
            Found::Inline(ids, count) => ids[..count].to_vec(),
            Found::Spilled(ids) => ids.to_vec(),
        })
    }

    #[test]
    fn remembers_and_forgets_but_never_lies() {
        let mut cache = Cache::new();
        assert_eq!(get(&cache, b""), Some(vec![])); // an empty entry is the result of an empty chunk
        for i in 0..400_000u32 {
            let chunk = i.to_le_bytes();
            let ids: Vec<u32> = (0..i % 7).map(|k| k + i).collect();
            cache.put(Key::of(&chunk), &ids);
            assert_eq!(get(&cache, &chunk), Some(ids));
            if let Some(ids) = get(&cache, &(i / 2).to_le_bytes()) {
                assert!(ids.iter().all(|&id| id >= i / 2 && id < i / 2 + 7));
            }
            assert!(cache.spilled.len() <= MAX_SPILLED);
        }
    }

    #[test]
    fn long_chunks_are_compared() {
        let mut cache = Cache::new();
        for round in 0..40_000u32 {
            let chunk: Vec<u8> = (0..17 + round % 100).map(|i| (i * 7 + round) as u8).collect();
            let key = Key::long(&chunk);
            cache.put_long(key, &chunk, &[round; 5]);
            if let Some(Found::Spilled(ids)) = cache.get_long(key, &chunk) {
                assert_eq!(ids, [round; 5]);
            }
            let other = vec![0; chunk.len()];
            assert!(cache.get_long(key, &other).is_none());
            assert!(cache.texts.len() <= MAX_TEXTS);
        }
    }

    #[test]
    fn zeros_at_the_end_count() {
        let mut cache = Cache::new();
        cache.put(Key::of(b"a"), &[1]);
        cache.put(Key::of(b"a\0"), &[2]);
        assert_eq!(
            (get(&cache, b"a"), get(&cache, b"a\0"), get(&cache, b"a\0\0")),
            (Some(vec![1]), Some(vec![2]), None)
        );
    }
}
