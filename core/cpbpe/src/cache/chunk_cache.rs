//! Remembers what chunks became, so that most text is encoded by looking up, not by merging.
//!
//! The memory is lines of 64 bytes, as the machine's caches are, and a line is eight cells of 64 bits:
//!
//! ```text
//! wide place:  key | key | result     wide place:  key | key | result     narrow place:  key | result
//! ```
//!
//! The text of a long chunk is not in its key (see `key.rs`), and is kept aside to be compared. A result (see
//! `packed_ids.rs`) holds up to three ids, or four of a small vocabulary; more, or larger ones, are kept aside, too.
//!
//! Every chunk has two lines that it may be in, its home and another one. A new entry takes a free place in one of them.
//! When there is none, it replaces another entry, which moves to its own other line, and so on; after a few moves the last
//! one is dropped.
//!
//! Memory is slow, so callers with many chunks do not wait for it: they ask for the homes (`prefetch`), do something else,
//! look there (`find`, which asks for the other lines it needs), do something else, and look at those (`find_rest`).
//!
//! Every call that encodes has a cache of its own while it runs (see `encode/engine.rs`): no locks, and nothing is
//! shared between threads.

use crate::cache::key::{Key, LONG, PER_HALF, TOO_LONG};
use crate::cache::once::Once;
use crate::cache::packed_ids::{NotPacked, PackedIds, ROOM, SMALL_VOCABULARY};
use crate::prefetch::prefetch;

/// How many lines there are: at first 256 KiB, at last 7 MiB. Only those that are used take memory.
const SIZES: [u32; 5] = [1 << 12, 1 << 14, 1 << 16, 3 << 15, 14 << 13];
/// The cells of a line.
const LINE: usize = 8;
/// Where the wide places begin, and the narrow one.
const WIDE: [usize; 2] = [0, 3];
const NARROW: usize = 6;
/// How many entries may be moved to make room for a new one.
const MAX_MOVES: usize = 8;
/// The longest chunk that is remembered.
pub const MAX_LONG: usize = 128;
/// When more ids than this are kept aside, the cache is emptied.
const MAX_SPILLED: usize = 1 << 19;
/// The same, when the texts of long chunks take more bytes than this.
const MAX_TEXTS: usize = 1 << 20;

/// The most chunks that are looked up together: those of a batch of bytes (see `encode/encoder.rs`), and some places more.
pub const BATCH: usize = 264;

/// The memory of one running call.
pub struct Cache {
    cells: Vec<u64>,
    /// Where the first line begins in `cells`.
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
    /// Characters that were seen once.
    pub once: Once,
    /// How often the cache has been emptied.
    pub era: u32,
}

/// The entries of many chunks.
pub struct BatchLookup {
    /// What is known of each.
    pub entries: [PackedIds; BATCH],
    /// The numbers of the chunks that are not done yet.
    rest: [u16; BATCH],
    /// How many these are.
    rest_count: usize,
}

impl Default for BatchLookup {
    fn default() -> BatchLookup {
        BatchLookup { entries: [PackedIds::ABSENT; BATCH], rest: [0; BATCH], rest_count: 0 }
    }
}

/// A line's entry: the two halves of a key, and the result.
type Entry = [u64; 3];

impl Cache {
    /// An empty cache for a vocabulary of this many pieces.
    pub fn new(pieces: usize) -> Cache {
        let mut cache = Cache {
            cells: Vec::new(),
            first: 0,
            lines: 0,
            used: 0,
            small_ids: pieces <= SMALL_VOCABULARY,
            spilled: Vec::new(),
            texts: Vec::new(),
            once: Once::default(),
            era: 0,
        };
        cache.allocate(SIZES[0]);
        cache
    }

    /// Take new, empty memory. Zeros that nobody writes take none.
    fn allocate(&mut self, lines: u32) {
        self.cells = vec![0; lines as usize * LINE + LINE - 1];
        // So that our lines match the lines of the machine's caches. (Where that is impossible, it is only slower.)
        self.first = self.cells.as_ptr().align_offset(LINE * 8).min(LINE - 1);
        self.lines = lines;
        self.used = 0;
    }

    /// Where in `cells` the line of a hash begins.
    #[inline(always)]
    fn place_of(&self, hash: u32) -> usize {
        self.first + place_in(hash, self.lines)
    }

    #[inline(always)]
    fn line(&self, hash: u32) -> &[u64; LINE] {
        let at = self.place_of(hash);
        debug_assert!(at + LINE <= self.cells.len());
        // SAFETY: `allocate` made room for `lines` lines after `first`.
        unsafe { &*self.cells.as_ptr().add(at).cast() }
    }

    /// Ask for the memory of a key's home ahead of time.
    #[inline(always)]
    pub fn prefetch(&self, key: Key) {
        prefetch(self.line(key.hash));
    }

    /// What the chunk became, if it is remembered.
    pub fn get(&self, key: Key) -> PackedIds {
        let home = self.line(key.hash);
        match look(home, key) {
            PackedIds::ABSENT if is_full(home) => look(self.line(key.other()), key),
            entry => entry,
        }
    }

    /// Look at the homes of chunks, at most `BATCH`, and ask for the memory of what is not there.
    #[inline(never)]
    pub fn find(&self, keys: &[Key], lookup: &mut BatchLookup) {
        let BatchLookup { entries, rest, rest_count } = lookup;
        // 1. Look at all homes, and note which entries hold no ids. (Without a branch: where they are is unpredictable.)
        let mut without_ids = 0;
        for (i, (&key, entry)) in keys.iter().zip(entries.iter_mut()).enumerate() {
            *entry = look(self.line(key.hash), key);
            if let Some(number) = rest.get_mut(without_ids) {
                *number = i as u16;
            }
            without_ids += usize::from(!entry.is_ids());
        }
        // 2. Of these, keep those that are worth another look, and ask for the memory that it takes.
        *rest_count = 0;
        for j in 0..without_ids.min(BATCH) {
            let i = rest[j];
            let key = keys[usize::from(i)];
            match entries[usize::from(i)].not_packed() {
                NotPacked::Absent if is_full(self.line(key.hash)) => prefetch(self.line(key.other())),
                NotPacked::Absent => continue,
                NotPacked::Aside(place) | NotPacked::Compare(place) => {
                    self.spilled.get(place).into_iter().for_each(prefetch)
                }
            }
            rest[*rest_count] = i;
            *rest_count += 1;
        }
    }

    /// Look at the other lines of the same chunks.
    pub fn find_rest(&self, keys: &[Key], lookup: &mut BatchLookup) {
        for &i in &lookup.rest[..lookup.rest_count] {
            let entry = &mut lookup.entries[usize::from(i)];
            match entry.not_packed() {
                NotPacked::Absent => {
                    let key = keys[usize::from(i)];
                    *entry = look(self.line(key.other()), key);
                }
                NotPacked::Compare(place) => {
                    self.texts.get(self.spilled[place] as usize).into_iter().for_each(prefetch)
                }
                NotPacked::Aside(_) => {}
            }
        }
    }

    /// Append the ids of chunks to `out`, up to the first that is absent or to be compared; how many chunks that were.
    ///
    /// # Safety
    /// `out` must have room for all their ids and `ROOM` more.
    pub unsafe fn append_many(&self, entries: &[PackedIds], out: &mut Vec<u32>) -> usize {
        // SAFETY: as the caller says.
        unsafe {
            if self.small_ids {
                self.append_many_of::<true>(entries, out)
            } else {
                self.append_many_of::<false>(entries, out)
            }
        }
    }

    /// Count the ids of chunks, up to the first that is absent or to be compared; how many chunks that were, and
    /// how many ids.
    #[inline(never)]
    pub fn count_many(&self, entries: &[PackedIds]) -> (usize, usize) {
        let mut ids = 0;
        for (done, &entry) in entries.iter().enumerate() {
            if entry.is_ids() {
                ids += entry.count();
            } else if let NotPacked::Aside(place) = entry.not_packed() {
                ids += self.spilled[place] as usize;
            } else {
                return (done, ids);
            }
        }
        (entries.len(), ids)
    }

    /// `append_many` with the size of ids known beforehand.
    ///
    /// # Safety
    /// As there.
    #[inline(never)]
    unsafe fn append_many_of<const SMALL_IDS: bool>(&self, entries: &[PackedIds], out: &mut Vec<u32>) -> usize {
        // In locals, so that nothing is loaded again because of what is stored.
        let start = out.as_mut_ptr().wrapping_add(out.len());
        let mut end = start;
        let mut done = 0;
        for &entry in entries {
            let written = (end as usize - start as usize) / size_of::<u32>();
            let room = out.capacity() - out.len() - written;
            if entry.is_ids() {
                debug_assert!(entry.count() + ROOM <= room);
                // SAFETY: there is room. Copying all, however many count, takes one step instead of a call.
                unsafe { end.cast::<[u32; ROOM]>().write_unaligned(entry.ids::<SMALL_IDS>()) };
                end = end.wrapping_add(entry.count());
            } else if let NotPacked::Aside(place) = entry.not_packed() {
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
        // SAFETY: this many have been written.
        unsafe { out.set_len(out.len() + count) };
        done
    }

    /// The ids kept aside there.
    #[inline]
    fn aside(&self, place: usize) -> &[u32] {
        &self.spilled[place + 1..][..self.spilled[place] as usize]
    }

    /// Append the ids of an entry to `out`; false if there is none, or it is that of another chunk with the same hash.
    #[inline]
    pub fn append(&self, entry: PackedIds, chunk: &[u8], out: &mut Vec<u32>) -> bool {
        if entry.is_ids() {
            let ids = if self.small_ids { entry.ids::<true>() } else { entry.ids::<false>() };
            out.extend_from_slice(&ids[..entry.count()]);
            return true;
        }
        match entry.not_packed() {
            NotPacked::Aside(place) => out.extend_from_slice(self.aside(place)),
            NotPacked::Compare(place) => {
                let (begin, length) = (self.spilled[place] as usize, self.spilled[place + 1] as usize);
                if self.texts.get(begin..begin + length) != Some(chunk) {
                    return false;
                }
                out.extend_from_slice(self.aside(place + 2));
            }
            NotPacked::Absent => return false,
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
        let few = if key.length() == LONG { None } else { PackedIds::of_ids(ids, self.small_ids) };
        let result = few.unwrap_or_else(|| {
            if key.length() == LONG {
                self.spilled.extend_from_slice(&[self.texts.len() as u32, chunk.len() as u32]);
                self.texts.extend_from_slice(chunk);
            }
            self.spilled.push(ids.len() as u32);
            self.spilled.extend_from_slice(ids);
            PackedIds::aside(aside, key.length() == LONG)
        });
        self.insert([key.halves[0], key.halves[1], result.0]);
        if self.used > self.lines as usize {
            if let Some(&lines) = SIZES.iter().find(|&&lines| lines > self.lines) {
                self.grow(lines);
            }
        }
    }

    /// Put an entry into a line, if there is a place.
    fn put_in_place(&mut self, hash: u32, entry: &Entry) -> bool {
        let line = self.line_mut(hash);
        if line[NARROW] == 0 && entry[0] >> 56 <= PER_HALF as u64 {
            line[NARROW..].copy_from_slice(&[entry[0], entry[2]]);
        } else if let Some(at) = WIDE.into_iter().find(|&at| line[at] == 0) {
            line[at..at + 3].copy_from_slice(entry);
        } else {
            return false;
        }
        self.used += 1;
        true
    }

    /// Put an entry somewhere, even if other entries must be moved for it.
    fn insert(&mut self, mut entry: Entry) {
        for turn in 0..MAX_MOVES {
            let key = Key::of_halves([entry[0], entry[1]]);
            if self.put_in_place(key.hash, &entry) || self.put_in_place(key.other(), &entry) {
                return;
            }
            let line = self.line_mut(key.other());
            let place = &mut line[WIDE[turn % 2]..][..3];
            place.swap_with_slice(&mut entry);
        }
    }

    fn line_mut(&mut self, hash: u32) -> &mut [u64] {
        let at = self.place_of(hash);
        &mut self.cells[at..at + LINE]
    }

    /// More memory, with everything that is remembered.
    fn grow(&mut self, lines: u32) {
        let (cells, first) = (std::mem::take(&mut self.cells), self.first);
        self.allocate(lines);
        for line in cells[first..].chunks_exact(LINE) {
            let narrow = [line[NARROW], 0, line[NARROW + 1]];
            for entry in [[line[0], line[1], line[2]], [line[3], line[4], line[5]], narrow] {
                if entry[0] != 0 {
                    self.insert(entry);
                }
            }
        }
    }

    fn clear(&mut self) {
        self.cells.fill(0);
        self.used = 0;
        self.spilled.clear();
        self.texts.clear();
        self.era += 1;
    }
}

/// Where the line of a hash begins, counted in cells, if there are this many lines.
#[inline(always)]
fn place_in(hash: u32, lines: u32) -> usize {
    ((u64::from(hash) * u64::from(lines)) >> 32) as usize * LINE
}

/// Whether a line had no place for something new of any length.
#[inline(always)]
fn is_full(line: &[u64; LINE]) -> bool {
    WIDE.into_iter().all(|at| line[at] != 0)
}

/// Find a key in a line. Without branches, because its place in the line is unpredictable.
#[inline(always)]
fn look(line: &[u64; LINE], key: Key) -> PackedIds {
    let [a, b] = key.halves;
    let not_first = usize::from((line[0] ^ a) | (line[1] ^ b) != 0);
    let not_second = usize::from((line[3] ^ a) | (line[4] ^ b) != 0);
    let not_narrow = usize::from(line[6] != a);
    let case = not_narrow << 2 | not_second << 1 | not_first;
    // Where the result is, in each case.
    const AT: [u8; 8] = [7, 7, 7, 7, 2, 5, 2, 0];
    if case == 7 {
        PackedIds::ABSENT
    } else {
        PackedIds(line[usize::from(AT[case]) & (LINE - 1)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::key::MAX_CHUNK;

    fn key(chunk: &[u8]) -> Key {
        if chunk.len() > MAX_CHUNK {
            return Key::long(chunk);
        }
        let mut bytes = [0xAA; 16]; // what lies after a chunk must not matter
        bytes[..chunk.len()].copy_from_slice(chunk);
        Key::new(&bytes, chunk.len())
    }

    fn get(cache: &Cache, chunk: &[u8]) -> Option<Vec<u32>> {
        let mut out = Vec::new();
        let entry = cache.get(key(chunk));
        let same = cache.append(entry, chunk, &mut out);
        let mut lookup = BatchLookup::default();
        cache.find(&[key(chunk)], &mut lookup);
        cache.find_rest(&[key(chunk)], &mut lookup);
        assert!(lookup.entries[0] == entry);
        let mut many = Vec::with_capacity(out.len() + ROOM);
        // SAFETY: there is room for the ids, whose number is known by now.
        if unsafe { cache.append_many(&lookup.entries[..1], &mut many) } == 1 {
            assert_eq!(out, many);
        } else {
            assert!(chunk.len() > MAX_CHUNK || !same);
        }
        same.then_some(out)
    }

    /// A chunk of any length and the ids that are remembered for it, of any number.
    fn example(i: u32) -> (Vec<u8>, Vec<u32>) {
        let length = if i % 5 == 0 { 16 + i % 113 } else { 1 + i % 15 };
        // Many have the first half of their key in common.
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
            assert!(chunk.len() < 4 || get(&cache, &chunk).is_none_or(|kept| kept == ids));
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
        assert!(cache.get(Key::too_long()) == PackedIds::ABSENT);
    }

    #[test]
    fn the_same_hash_is_not_enough() {
        let mut cache = Cache::new(32_000);
        let (one, other) = ([b'x'; 40], [b'y'; 40]);
        cache.put(key(&one), &one, &[1]);
        let entry = cache.get(key(&one));
        assert!(entry != PackedIds::ABSENT && !cache.append(entry, &other, &mut Vec::new()));
    }
}
