//! Remembers what chunks became, so that most text is encoded by looking up, not by merging.
//!
//! The memory is lines of 64 bytes, as the machine's caches are, and a line is eight words:
//!
//! ```text
//! wide place:  key | key | result     wide place:  key | key | result     narrow place:  key | result
//! ```
//!
//! The text of a long chunk is not in its key (see `key.rs`), and kept aside to be compared. A result holds up to three
//! ids, or four of a vocabulary of at most 32,768 pieces; more, or larger ones, are kept aside, too.
//!
//! Every chunk has two lines that it may be in, its home and another one. It stays where there was a place when it was
//! new. When there is none, it pushes out another one, which tries its other line, and so on; the last one, after
//! a few moves, is forgotten.
//!
//! Every call that encodes has a cache of its own while it runs (see `engine.rs`): no locks, and nothing to
//! share between threads.

use crate::key::{Key, LONG, PER_WORD, TOO_LONG};
use crate::prefetch::prefetch;

/// How many lines there are: at first 256 KiB, at last 7 MiB. Only those that are used take memory.
const SIZES: [u32; 5] = [1 << 12, 1 << 14, 1 << 16, 3 << 15, 14 << 13];
/// The words of a line.
const LINE: usize = 8;
/// Where the wide places begin, and the narrow one.
const WIDE: [usize; 2] = [0, 3];
const NARROW: usize = 6;
/// How often something may give way to something else.
const MAX_MOVES: usize = 8;
/// The longest chunk that is remembered.
pub const MAX_LONG: usize = 128;
/// What is kept aside takes no more than so many ids, or the cache starts anew.
const MAX_SPILLED: usize = 1 << 19;
/// Longer chunks that take more bytes than this make the cache start anew.
const MAX_TEXTS: usize = 1 << 20;

/// Where the number of ids is in a result.
const COUNT: u32 = 60;
/// This number means that the ids are kept aside.
const SPILLED: u64 = 7;
/// This means that the chunk must be compared: where its text is, and the ids, is kept aside.
const COMPARE: u64 = 8;
/// The bits of an id in a result, for small vocabularies and for others.
const SMALL_IDS: u32 = 15;
const IDS: u32 = 20;
/// Ids that are copied at once.
pub const SPARE: usize = 4;

/// The memory of one running call.
pub struct Cache {
    words: Vec<u64>,
    /// Where the first line begins in `words`.
    first: usize,
    /// How many lines there are.
    lines: u32,
    /// How many entries there are.
    used: usize,
    /// The bits of an id in a result.
    id_bits: u32,
    /// For each result kept aside, how many ids, and these.
    spilled: Vec<u32>,
    /// The texts of longer chunks.
    texts: Vec<u8>,
}

/// What was found of a chunk.
#[derive(Clone, Copy)]
pub struct Found(u64);

impl Found {
    /// How many ids there are, if they are all in this word, where each has so many bits.
    #[inline(always)]
    fn few(self, id_bits: u32) -> Option<usize> {
        let count = self.0 >> COUNT;
        if count <= per_result(id_bits) as u64 {
            Some(count as usize)
        } else {
            None
        }
    }

    /// The ids of this word, all to be copied, of which `few` count.
    #[inline(always)]
    fn ids(self, id_bits: u32) -> [u32; SPARE] {
        let id = |i: u32| (self.0 >> (id_bits * i) & ((1 << id_bits) - 1)) as u32;
        [id(0), id(1), id(2), if per_result(id_bits) > 3 { id(3) } else { 0 }]
    }
}

/// How many ids of so many bits a result has room for.
const fn per_result(id_bits: u32) -> usize {
    (COUNT / id_bits) as usize
}

/// Two words of key, one of result.
type Entry = [u64; 3];

impl Cache {
    /// An empty cache for a vocabulary of so many pieces.
    pub fn new(pieces: usize) -> Cache {
        let mut cache = Cache {
            words: Vec::new(),
            first: 0,
            lines: 0,
            used: 0,
            id_bits: if pieces <= 1 << SMALL_IDS { SMALL_IDS } else { IDS },
            spilled: Vec::new(),
            texts: Vec::new(),
        };
        cache.allocate(SIZES[0]);
        cache
    }

    /// Take new, empty memory. Zeros that nobody writes take none.
    fn allocate(&mut self, lines: u32) {
        self.words = vec![0; lines as usize * LINE + LINE - 1];
        // So that a line of ours is a line of the machine. (If it cannot be found out, it is only slower.)
        self.first = self.words.as_ptr().align_offset(LINE * 8).min(LINE - 1);
        self.lines = lines;
        self.used = 0;
    }

    /// Where in `words` the line of a hash begins.
    #[inline(always)]
    fn place_of(&self, hash: u32) -> usize {
        self.first + place_in(hash, self.lines)
    }

    #[inline(always)]
    fn line(&self, hash: u32) -> &[u64; LINE] {
        let at = self.place_of(hash);
        debug_assert!(at + LINE <= self.words.len());
        // SAFETY: `allocate` made room for so many lines behind `first`.
        unsafe { &*self.words.as_ptr().add(at).cast() }
    }

    /// Ask for the memory of a key ahead of time.
    #[inline(always)]
    pub fn prefetch(&self, key: Key) {
        prefetch(self.line(key.hash));
    }

    /// What the chunk became, if it is remembered.
    pub fn get(&self, key: Key) -> Option<Found> {
        look(self.line(key.hash), key).or_else(|| self.get_other(key))
    }

    /// What the chunk became, if it is found in its other line.
    #[cold]
    #[inline(never)]
    fn get_other(&self, key: Key) -> Option<Found> {
        let home = self.line(key.hash);
        if home[WIDE[0]] == 0 || home[WIDE[1]] == 0 {
            return None; // it would have found a place here
        }
        look(self.line(key.other()), key)
    }

    /// Append the ids of chunks to `out`, up to the first that is not remembered, or may be another one with the same
    /// hash; how many chunks that were.
    ///
    /// # Safety
    /// `out` must have room for all their ids and `SPARE` more.
    pub unsafe fn get_many(&self, keys: &[Key], out: &mut Vec<u32>) -> usize {
        // SAFETY: as the caller says.
        unsafe {
            if self.id_bits == SMALL_IDS {
                self.get_many_of::<SMALL_IDS>(keys, out)
            } else {
                self.get_many_of::<IDS>(keys, out)
            }
        }
    }

    /// `get_many` with the bits of an id known beforehand.
    ///
    /// # Safety
    /// As there.
    #[inline(never)]
    unsafe fn get_many_of<const BITS: u32>(&self, keys: &[Key], out: &mut Vec<u32>) -> usize {
        // In locals, so that nothing is loaded again because of what is stored.
        let (words, lines) = (self.words.as_ptr().wrapping_add(self.first), self.lines);
        let start = out.as_mut_ptr().wrapping_add(out.len());
        let mut end = start;
        let mut done = 0;
        for &key in keys {
            // SAFETY: as in `line`.
            let line = unsafe { &*words.add(place_in(key.hash, lines)).cast() };
            let Some(found) = look(line, key).or_else(|| self.get_other(key)) else { break };
            let written = (end as usize - start as usize) / size_of::<u32>();
            debug_assert!(
                found.few(BITS).or(self.aside(found).map(<[u32]>::len)).unwrap_or(0) + SPARE
                    <= out.capacity() - out.len() - written
            );
            if let Some(count) = found.few(BITS) {
                // SAFETY: there is room. Copying all, however many count, takes one step instead of a call.
                unsafe { end.cast::<[u32; SPARE]>().write_unaligned(found.ids(BITS)) };
                end = end.wrapping_add(count);
            } else if let Some(ids) = self.aside(found) {
                // SAFETY: there is room.
                unsafe { std::ptr::copy_nonoverlapping(ids.as_ptr(), end, ids.len()) };
                end = end.wrapping_add(ids.len());
            } else {
                break;
            }
            done += 1;
        }
        let count = (end as usize - start as usize) / size_of::<u32>();
        // SAFETY: so many have been written.
        unsafe { out.set_len(out.len() + count) };
        done
    }

    /// Ids kept aside, unless the chunk must be compared first.
    #[inline]
    fn aside(&self, found: Found) -> Option<&[u32]> {
        let begin = found.0 as u32 as usize + 1;
        if found.0 >> COUNT == SPILLED {
            self.spilled.get(begin..begin + self.spilled[begin - 1] as usize)
        } else {
            None
        }
    }

    /// Append what was found to `out`; false if it was another chunk with the same hash.
    #[inline]
    pub fn append(&self, found: Found, chunk: &[u8], out: &mut Vec<u32>) -> bool {
        if let Some(count) = found.few(self.id_bits) {
            out.extend_from_slice(&found.ids(self.id_bits)[..count]);
            return true;
        }
        if let Some(ids) = self.aside(found) {
            out.extend_from_slice(ids);
            return true;
        }
        let aside = &self.spilled[found.0 as u32 as usize..];
        let (begin, length) = (aside[0] as usize, aside[1] as usize);
        let same = self.texts.get(begin..begin + length) == Some(chunk);
        if same {
            out.extend_from_slice(&aside[3..3 + aside[2] as usize]);
        }
        same
    }

    /// Remember what a chunk became.
    pub fn put(&mut self, key: Key, chunk: &[u8], ids: &[u32]) {
        if key.length() == TOO_LONG {
            return;
        }
        if self.spilled.len() + ids.len() >= MAX_SPILLED || self.texts.len() + chunk.len() > MAX_TEXTS {
            self.clear();
        }
        let aside = self.spilled.len() as u64;
        let result = if key.length() == LONG {
            self.spilled.extend_from_slice(&[self.texts.len() as u32, chunk.len() as u32, ids.len() as u32]);
            self.spilled.extend_from_slice(ids);
            self.texts.extend_from_slice(chunk);
            COMPARE << COUNT | aside
        } else if ids.len() <= per_result(self.id_bits) && ids.iter().all(|&id| id >> self.id_bits == 0) {
            let joined = ids.iter().rev().fold(0, |result, &id| result << self.id_bits | u64::from(id));
            (ids.len() as u64) << COUNT | joined
        } else {
            self.spilled.push(ids.len() as u32);
            self.spilled.extend_from_slice(ids);
            SPILLED << COUNT | aside
        };
        self.place([key.words[0], key.words[1], result]);
        if self.used > self.lines as usize {
            if let Some(&lines) = SIZES.iter().find(|&&lines| lines > self.lines) {
                self.grow(lines);
            }
        }
    }

    /// Put an entry where there is a place, in its home or in its other line.
    fn settle(&mut self, hash: u32, entry: &Entry) -> bool {
        let line = self.line_mut(hash);
        if line[NARROW] == 0 && entry[0] >> 56 <= PER_WORD as u64 {
            line[NARROW..].copy_from_slice(&[entry[0], entry[2]]);
        } else if let Some(at) = WIDE.into_iter().find(|&at| line[at] == 0) {
            line[at..at + 3].copy_from_slice(entry);
        } else {
            return false;
        }
        self.used += 1;
        true
    }

    /// Put an entry somewhere, if something else has to give way for it.
    fn place(&mut self, mut entry: Entry) {
        for turn in 0..MAX_MOVES {
            let key = Key::of_words([entry[0], entry[1]]);
            if self.settle(key.hash, &entry) || self.settle(key.other(), &entry) {
                return;
            }
            let line = self.line_mut(key.other());
            let place = &mut line[WIDE[turn % 2]..][..3];
            place.swap_with_slice(&mut entry);
        }
    }

    fn line_mut(&mut self, hash: u32) -> &mut [u64] {
        let at = self.place_of(hash);
        &mut self.words[at..at + LINE]
    }

    /// More memory, with everything that is remembered.
    fn grow(&mut self, lines: u32) {
        let (words, first) = (std::mem::take(&mut self.words), self.first);
        self.allocate(lines);
        for line in words[first..].chunks_exact(LINE) {
            let narrow = [line[NARROW], 0, line[NARROW + 1]];
            for entry in [[line[0], line[1], line[2]], [line[3], line[4], line[5]], narrow] {
                if entry[0] != 0 {
                    self.place(entry);
                }
            }
        }
    }

    fn clear(&mut self) {
        self.words.fill(0);
        self.used = 0;
        self.spilled.clear();
        self.texts.clear();
    }
}

/// The line of a hash, for so many lines, counted in words.
#[inline(always)]
fn place_in(hash: u32, lines: u32) -> usize {
    ((u64::from(hash) * u64::from(lines)) >> 32) as usize * LINE
}

/// Find a key in a line. Without branches, because which of the places it is in cannot be foreseen.
#[inline(always)]
fn look(line: &[u64; LINE], key: Key) -> Option<Found> {
    let [a, b] = key.words;
    let not_first = usize::from((line[0] ^ a) | (line[1] ^ b) != 0);
    let not_second = usize::from((line[3] ^ a) | (line[4] ^ b) != 0);
    let not_narrow = usize::from(line[6] != a);
    let case = not_narrow << 2 | not_second << 1 | not_first;
    if case == 7 {
        return None;
    }
    // Where the result is, in each case.
    const AT: [u8; 8] = [7, 7, 7, 7, 2, 5, 2, 0];
    Some(Found(line[usize::from(AT[case]) & (LINE - 1)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::MAX_CHUNK;

    fn key(chunk: &[u8]) -> Key {
        if chunk.len() > MAX_CHUNK {
            return Key::long(chunk);
        }
        let mut bytes = [0xAA; 16]; // what lies behind a chunk must not matter
        bytes[..chunk.len()].copy_from_slice(chunk);
        Key::new(&bytes, chunk.len())
    }

    fn get(cache: &Cache, chunk: &[u8]) -> Option<Vec<u32>> {
        let mut out = Vec::new();
        cache.get(key(chunk)).filter(|&found| cache.append(found, chunk, &mut out))?;
        let mut many = Vec::with_capacity(out.len() + SPARE);
        // SAFETY: there is room for the ids, whose number is known by now.
        if unsafe { cache.get_many(&[key(chunk)], &mut many) } == 1 {
            assert_eq!(out, many);
        } else {
            assert!(chunk.len() > MAX_CHUNK);
        }
        Some(out)
    }

    /// A chunk of any length and the ids that are remembered for it, of any number.
    fn example(i: u32) -> (Vec<u8>, Vec<u32>) {
        let length = if i % 5 == 0 { 16 + i % 113 } else { 1 + i % 15 };
        // Many have the first word of their key in common.
        let front = if i % 5 == 1 && length > 10 { &b"letters"[..] } else { b"" };
        let chunk = front.iter().copied().chain(i.to_le_bytes().into_iter().cycle()).take(length as usize).collect();
        (chunk, (0..i % 9).map(|k| k + (i << (i % 3 * 6))).collect())
    }

    #[test]
    fn remembers_and_forgets_but_never_lies() {
        for pieces in [1 << SMALL_IDS, 1 << IDS] {
            never_lies(Cache::new(pieces), pieces as u32);
        }
    }

    fn never_lies(mut cache: Cache, pieces: u32) {
        // Some are larger than any id of the vocabulary can be, and kept all the same.
        let example = |i| {
            let (chunk, ids) = example(i);
            (chunk, ids.into_iter().map(|id| id % (2 * pieces)).collect::<Vec<_>>())
        };
        for i in 0..300_000u32 {
            let (chunk, ids) = example(i);
            if chunk.len() >= 4 {
                cache.put(key(&chunk), &chunk, &ids);
                assert_eq!(get(&cache, &chunk), Some(ids));
            }
            let (chunk, ids) = example(i / 2);
            assert!(chunk.len() < 4 || get(&cache, &chunk).is_none_or(|found| found == ids));
            assert!(cache.spilled.len() < MAX_SPILLED + 9 && cache.texts.len() <= MAX_TEXTS);
        }
    }

    #[test]
    fn little_is_forgotten() {
        let mut cache = Cache::new(32_000);
        let chunk = |i: u32| (u64::from(i) << 8 | 0x61).to_le_bytes();
        // Four fifths of the wide places.
        let all = SIZES[SIZES.len() - 1] * 8 / 5;
        for i in 0..all {
            cache.put(key(&chunk(i)), &chunk(i), &[i]);
        }
        let kept = (0..all).filter(|&i| get(&cache, &chunk(i)) == Some(vec![i])).count();
        assert!(kept as f64 > f64::from(all) * 0.975, "{kept} of {all}");
    }

    #[test]
    fn zeros_at_the_end_count() {
        let mut cache = Cache::new(32_000);
        cache.put(key(b"a"), b"a", &[1]);
        cache.put(key(b"a\0"), b"a\0", &[2]);
        assert_eq!(
            (get(&cache, b"a"), get(&cache, b"a\0"), get(&cache, b"a\0\0")),
            (Some(vec![1]), Some(vec![2]), None)
        );
    }

    #[test]
    fn too_long_is_not_remembered() {
        let mut cache = Cache::new(32_000);
        cache.put(Key::too_long(), &[b'x'; 200], &[1]);
        assert!(cache.get(Key::too_long()).is_none());
    }

    #[test]
    fn the_same_hash_is_not_enough() {
        let mut cache = Cache::new(32_000);
        let (one, other) = ([b'x'; 40], [b'y'; 40]);
        cache.put(key(&one), &one, &[1]);
        let found = cache.get(key(&one));
        assert!(found.is_some_and(|found| !cache.append(found, &other, &mut Vec::new())));
    }
}
