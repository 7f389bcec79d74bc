//! Remembers what chunks became, so that most text is encoded by looking up, not by merging.
//!
//! The memory is lines of 64 bytes, as the machine's caches are, and a line is eight words:
//!
//! ```text
//! wide place:  key | key | result     wide place:  key | key | result     narrow place:  key | result
//! ```
//!
//! The text of a long chunk is not in its key (see `key.rs`), and kept aside to be compared. A result (see `found.rs`)
//! holds up to three ids, or four of a small vocabulary; more, or larger ones, are kept aside, too.
//!
//! Every chunk has two lines that it may be in, its home and another one. It stays where there was a place when it was
//! new. When there is none, it pushes out another one, which tries its other line, and so on; the last one, after
//! a few moves, is forgotten.
//!
//! Memory is far away, so nothing is waited for: whoever has many chunks asks for their homes (`prefetch`), does
//! something else, looks there (`find`, which asks for what is elsewhere), does something else, and looks there
//! (`find_rest`).
//!
//! Every call that encodes has a cache of its own while it runs (see `engine.rs`): no locks, and nothing to
//! share between threads.

use crate::found::{Found, Rare, ROOM, SMALL_VOCABULARY};
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

/// The most chunks that are looked up together: those of a batch of bytes (see `encode.rs`), and some places more.
pub const BATCH: usize = 264;

/// The memory of one running call.
pub struct Cache {
    words: Vec<u64>,
    /// Where the first line begins in `words`.
    first: usize,
    /// How many lines there are.
    lines: u32,
    /// How many entries there are.
    used: usize,
    /// Whether all ids are small.
    small_ids: bool,
    /// For each result kept aside, how many ids, and these.
    spilled: Vec<u32>,
    /// The texts of longer chunks.
    texts: Vec<u8>,
    /// How often all of it has been forgotten.
    pub era: u32,
}

/// What was found of many chunks.
pub struct Finding {
    /// Of each of them.
    pub found: [Found; BATCH],
    /// Those that something is still to be done for, and how many they are.
    rest: [u16; BATCH],
    rest_count: usize,
}

impl Default for Finding {
    fn default() -> Finding {
        Finding { found: [Found::ABSENT; BATCH], rest: [0; BATCH], rest_count: 0 }
    }
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
            small_ids: pieces <= SMALL_VOCABULARY,
            spilled: Vec::new(),
            texts: Vec::new(),
            era: 0,
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
    pub fn get(&self, key: Key) -> Found {
        let home = self.line(key.hash);
        match look(home, key) {
            Found::ABSENT if is_full(home) => look(self.line(key.other()), key),
            found => found,
        }
    }

    /// Look at the homes of chunks, at most `BATCH`, and ask for the memory of what is not found there.
    #[inline(never)]
    pub fn find(&self, keys: &[Key], finding: &mut Finding) {
        let Finding { found, rest, rest_count } = finding;
        let mut rare_count = 0;
        for (i, (&key, found)) in keys.iter().zip(found.iter_mut()).enumerate() {
            *found = look(self.line(key.hash), key);
            if let Some(rare) = rest.get_mut(rare_count) {
                *rare = i as u16;
            }
            rare_count += usize::from(!found.is_ids());
        }
        *rest_count = 0;
        for j in 0..rare_count.min(BATCH) {
            let i = rest[j];
            let key = keys[usize::from(i)];
            match found[usize::from(i)].rare() {
                Rare::Absent if is_full(self.line(key.hash)) => prefetch(self.line(key.other())),
                Rare::Absent => continue,
                Rare::Aside(place) | Rare::Compare(place) => self.spilled.get(place).into_iter().for_each(prefetch),
            }
            rest[*rest_count] = i;
            *rest_count += 1;
        }
    }

    /// Look at the other lines of the same chunks.
    pub fn find_rest(&self, keys: &[Key], finding: &mut Finding) {
        for &i in &finding.rest[..finding.rest_count] {
            let found = &mut finding.found[usize::from(i)];
            match found.rare() {
                Rare::Absent => {
                    let key = keys[usize::from(i)];
                    *found = look(self.line(key.other()), key);
                }
                Rare::Compare(place) => self.texts.get(self.spilled[place] as usize).into_iter().for_each(prefetch),
                Rare::Aside(_) => {}
            }
        }
    }

    /// Append the ids of chunks to `out`, up to the first that is absent or to be compared; how many chunks that were.
    ///
    /// # Safety
    /// `out` must have room for all their ids and `ROOM` more.
    pub unsafe fn append_many(&self, found: &[Found], out: &mut Vec<u32>) -> usize {
        // SAFETY: as the caller says.
        unsafe {
            if self.small_ids {
                self.append_many_of::<true>(found, out)
            } else {
                self.append_many_of::<false>(found, out)
            }
        }
    }

    /// Count the ids of chunks, up to the first that is absent or to be compared; how many chunks that were, and
    /// how many ids.
    #[inline(never)]
    pub fn count_many(&self, found: &[Found]) -> (usize, usize) {
        let mut ids = 0;
        for (done, &found) in found.iter().enumerate() {
            if found.is_ids() {
                ids += found.count();
            } else if let Rare::Aside(place) = found.rare() {
                ids += self.spilled[place] as usize;
            } else {
                return (done, ids);
            }
        }
        (found.len(), ids)
    }

    /// `append_many` with the size of ids known beforehand.
    ///
    /// # Safety
    /// As there.
    #[inline(never)]
    unsafe fn append_many_of<const SMALL_IDS: bool>(&self, found: &[Found], out: &mut Vec<u32>) -> usize {
        // In locals, so that nothing is loaded again because of what is stored.
        let start = out.as_mut_ptr().wrapping_add(out.len());
        let mut end = start;
        let mut done = 0;
        for &found in found {
            let written = (end as usize - start as usize) / size_of::<u32>();
            let room = out.capacity() - out.len() - written;
            if found.is_ids() {
                debug_assert!(found.count() + ROOM <= room);
                // SAFETY: there is room. Copying all, however many count, takes one step instead of a call.
                unsafe { end.cast::<[u32; ROOM]>().write_unaligned(found.ids::<SMALL_IDS>()) };
                end = end.wrapping_add(found.count());
            } else if let Rare::Aside(place) = found.rare() {
                let ids = self.aside(place);
                debug_assert!(ids.len() + ROOM <= room);
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

    /// The ids kept aside there.
    #[inline]
    fn aside(&self, place: usize) -> &[u32] {
        &self.spilled[place + 1..][..self.spilled[place] as usize]
    }

    /// Append what was found to `out`; false if it was nothing, or another chunk with the same hash.
    #[inline]
    pub fn append(&self, found: Found, chunk: &[u8], out: &mut Vec<u32>) -> bool {
        if found.is_ids() {
            let ids = if self.small_ids { found.ids::<true>() } else { found.ids::<false>() };
            out.extend_from_slice(&ids[..found.count()]);
            return true;
        }
        match found.rare() {
            Rare::Aside(place) => out.extend_from_slice(self.aside(place)),
            Rare::Compare(place) => {
                let (begin, length) = (self.spilled[place] as usize, self.spilled[place + 1] as usize);
                if self.texts.get(begin..begin + length) != Some(chunk) {
                    return false;
                }
                out.extend_from_slice(self.aside(place + 2));
            }
            Rare::Absent => return false,
        }
        true
    }

    /// Remember what a chunk became.
    pub fn put(&mut self, key: Key, chunk: &[u8], ids: &[u32]) {
        if key.length() == TOO_LONG {
            return;
        }
        if self.spilled.len() + ids.len() >= MAX_SPILLED || self.texts.len() + chunk.len() > MAX_TEXTS {
            self.clear();
        }
        let aside = self.spilled.len();
        let few = if key.length() == LONG { None } else { Found::of_ids(ids, self.small_ids) };
        let result = few.unwrap_or_else(|| {
            if key.length() == LONG {
                self.spilled.extend_from_slice(&[self.texts.len() as u32, chunk.len() as u32]);
                self.texts.extend_from_slice(chunk);
            }
            self.spilled.push(ids.len() as u32);
            self.spilled.extend_from_slice(ids);
            Found::aside(aside, key.length() == LONG)
        });
        self.place([key.words[0], key.words[1], result.0]);
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
        self.era += 1;
    }
}

/// The line of a hash, for so many lines, counted in words.
#[inline(always)]
fn place_in(hash: u32, lines: u32) -> usize {
    ((u64::from(hash) * u64::from(lines)) >> 32) as usize * LINE
}

/// Whether a line had no place for something new of any length.
#[inline(always)]
fn is_full(line: &[u64; LINE]) -> bool {
    WIDE.into_iter().all(|at| line[at] != 0)
}

/// Find a key in a line. Without branches, because which of the places it is in cannot be foreseen.
#[inline(always)]
fn look(line: &[u64; LINE], key: Key) -> Found {
    let [a, b] = key.words;
    let not_first = usize::from((line[0] ^ a) | (line[1] ^ b) != 0);
    let not_second = usize::from((line[3] ^ a) | (line[4] ^ b) != 0);
    let not_narrow = usize::from(line[6] != a);
    let case = not_narrow << 2 | not_second << 1 | not_first;
    // Where the result is, in each case.
    const AT: [u8; 8] = [7, 7, 7, 7, 2, 5, 2, 0];
    if case == 7 {
        Found::ABSENT
    } else {
        Found(line[usize::from(AT[case]) & (LINE - 1)])
    }
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
        let found = cache.get(key(chunk));
        let same = cache.append(found, chunk, &mut out);
        let mut finding = Finding::default();
        cache.find(&[key(chunk)], &mut finding);
        cache.find_rest(&[key(chunk)], &mut finding);
        assert!(finding.found[0] == found);
        let mut many = Vec::with_capacity(out.len() + ROOM);
        // SAFETY: there is room for the ids, whose number is known by now.
        if unsafe { cache.append_many(&finding.found[..1], &mut many) } == 1 {
            assert_eq!(out, many);
        } else {
            assert!(chunk.len() > MAX_CHUNK || !same);
        }
        same.then_some(out)
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
        for pieces in [SMALL_VOCABULARY, 1 << 20] {
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
        assert!(cache.get(Key::too_long()) == Found::ABSENT);
    }

    #[test]
    fn the_same_hash_is_not_enough() {
        let mut cache = Cache::new(32_000);
        let (one, other) = ([b'x'; 40], [b'y'; 40]);
        cache.put(key(&one), &one, &[1]);
        let found = cache.get(key(&one));
        assert!(found != Found::ABSENT && !cache.append(found, &other, &mut Vec::new()));
    }
}
