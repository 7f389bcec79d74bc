//! Remembers the ids of chunks, so that most text is encoded by looking up chunks, not by merging.
//!
//! The memory consists of lines of 64 bytes, like the machine's caches, and a line has eight cells of 64 bits:
//!
//! ```text
//! wide place:  key | key | result     wide place:  key | key | result     narrow place:  key | result
//! ```
//!
//! The text of a long chunk is not in its key (see `entry.rs`); it is kept aside, for comparison. A result holds up to
//! three ids, or four in a small vocabulary. If there are more ids, or larger ones, they are kept aside, too.
//!
//! Every chunk can be in two lines, its home and another one. A new entry takes a free place in one of them. If there
//! is none, it replaces another entry, which moves to its own other line, and so on; after a few moves the last one
//! is dropped.
//!
//! Memory is slow, so callers with many chunks do not wait for it. They ask for the home lines (`prefetch`), do
//! something else, read them (`find`, which asks for those other lines that it needs), do something else, and read
//! these (`find_rest`).
//!
//! Every call that encodes has a cache of its own while it runs (see `encode/engine.rs`): no locks, and nothing is
//! shared between threads.

mod entry;
#[cfg(test)]
mod tests;

pub use entry::{Bytes, Ids, Key, PackedIds, Singles, Source, FEW, MAX_CHUNK, ROOM, SOME, STEP};

use crate::cache::entry::{NotPacked, LONG, PER_HALF, SMALL_VOCABULARY, TOO_LONG};
use crate::error::Halt;
use crate::machine::{Machine, Plain, LINE};
use crate::memory::{prefetch, zeros, Grow};

/// How many lines there are: 256 KiB of them at first, 16 MiB at most. Only those that are used take memory. (6 and 7
/// MiB are there because texts in some thirty languages need just that.)
const SIZES: [u32; 6] = [1 << 12, 1 << 14, 1 << 16, 3 << 15, 14 << 13, 1 << 18];
/// Where in a line the wide places begin, and where the narrow one does.
const WIDE: [usize; 2] = [0, 3];
const NARROW: usize = 6;
/// How many entries may be moved to make room for a new one.
const MAX_MOVES: usize = 8;
/// If more ids than this are kept aside, the cache is emptied.
const MAX_SPILLED: usize = 1 << 19;
/// If the texts of long chunks take more bytes than this, the cache is emptied.
const MAX_TEXTS: usize = 1 << 20;
/// For byte-level vocabularies, whose rare words have more ids, both limits are this many times as high. (Without this,
/// 8 MB of base64, or of 25 languages, emptied the cache again and again, and took up to four times as long.)
const MORE: usize = 4;

/// The most chunks that are looked up together: the words of a batch of bytes (see `cut/words.rs`), and a few more.
pub const BATCH: usize = 264;

/// How many ids may be written after the last one.
pub const SPARE: usize = ROOM + STEP;

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
    /// The ids that are kept aside: for each result, how many ids it has, and then the ids.
    spilled: Vec<u32>,
    /// The texts of longer chunks.
    texts: Vec<u8>,
    /// `MORE` for byte-level vocabularies, otherwise 1.
    more: usize,
    /// Characters and long chunks that were seen once.
    pub once: Once,
    /// How often the cache has been emptied.
    pub era: u32,
}

/// Where the lines of a cache are: what `prefetch` needs.
#[derive(Clone, Copy)]
pub struct Homes<'a> {
    cells: &'a [u64],
    lines: u32,
}

impl Homes<'_> {
    /// Ask for the memory of a home ahead of time.
    #[inline(always)]
    pub fn prefetch(self, hash: u32) {
        prefetch(self.cells.as_ptr().wrapping_add(place_in(hash, self.lines)));
    }
}

/// The entries of many chunks.
pub struct BatchLookup {
    /// What is known about each chunk.
    pub entries: [PackedIds; BATCH],
    /// The numbers of the chunks that `find_rest` has to look at.
    rest: [u16; BATCH],
    /// How many of them there are.
    rest_count: usize,
}

impl Default for BatchLookup {
    fn default() -> BatchLookup {
        BatchLookup { entries: [PackedIds::ABSENT; BATCH], rest: [0; BATCH], rest_count: 0 }
    }
}

/// Words of a text whose entries have been read, and the singles before each of them.
#[derive(Clone, Copy)]
pub struct KnownWords<'a, S> {
    /// The keys of the words, which also say where the singles before each word are, and how many.
    pub keys: &'a [Key],
    /// The entries of the words.
    pub entries: &'a [PackedIds],
    /// Where the ids of the singles come from.
    pub source: S,
}

/// A line's entry: the two halves of a key, and the result.
type Entry = [u64; 3];

impl Cache {
    /// An empty cache for a vocabulary of this many pieces.
    pub fn new(pieces: usize) -> Result<Cache, Halt> {
        let mut cache = Cache {
            cells: Vec::new(),
            first: 0,
            lines: 0,
            used: 0,
            small_ids: pieces <= SMALL_VOCABULARY,
            spilled: Vec::new(),
            texts: Vec::new(),
            more: 1,
            once: Once::default(),
            era: 0,
        };
        cache.allocate(SIZES[0]).map(|_| cache)
    }

    /// Keep more ids and texts, as byte-level vocabularies need it: see `MORE`.
    pub fn keep_more(&mut self) {
        self.more = MORE;
    }

    /// Allocate new, empty lines, and return the memory that was used before. Zeros that are never written take no
    /// memory.
    fn allocate(&mut self, lines: u32) -> Result<Vec<u64>, Halt> {
        let old = std::mem::replace(&mut self.cells, zeros(lines as usize * LINE + LINE - 1)?);
        // Align our lines with the lines of the machine's caches. (If that is impossible, everything still works, but
        // slower.)
        self.first = self.cells.as_ptr().align_offset(LINE * 8).min(LINE - 1);
        self.lines = lines;
        self.used = 0;
        Ok(old)
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

    /// What is needed to prefetch lines. (It is a copy, so that it stays in registers: no store can have changed it.)
    #[inline(always)]
    pub fn homes(&self) -> Homes<'_> {
        Homes { cells: &self.cells[self.first..], lines: self.lines }
    }

    /// The entry of a chunk, `ABSENT` if its ids are not remembered.
    pub fn get(&self, key: Key) -> PackedIds {
        let home = self.line(key.hash);
        match look(Plain, home, key) {
            PackedIds::ABSENT if is_full(home) => look(Plain, self.line(key.other()), key),
            entry => entry,
        }
    }

    /// Read the home lines of at most `BATCH` chunks, and ask for the memory of whatever is not in them.
    #[inline(always)]
    pub fn find(&self, machine: impl Machine, keys: &[Key], lookup: &mut BatchLookup) {
        let BatchLookup { entries, rest, rest_count } = lookup;
        // 1. Read all home lines, and note which entries hold no ids. (Without a branch, because it would be
        //    unpredictable.)
        let mut without_ids = 0;
        for (i, (&key, entry)) in keys.iter().zip(entries.iter_mut()).enumerate() {
            let found = look(machine, self.line(key.hash), key);
            *entry = found;
            if let Some(number) = rest.get_mut(without_ids) {
                *number = i as u16;
            }
            without_ids += usize::from(!found.is_ids());
        }
        // 2. Keep those of them that are worth a second look, and ask for the memory that it takes.
        *rest_count = 0;
        for j in 0..without_ids.min(BATCH) {
            let i = rest[j];
            let key = keys[usize::from(i)];
            match entries[usize::from(i)].not_packed() {
                NotPacked::Absent if is_full(self.line(key.hash)) => prefetch(self.line(key.other()).as_ptr()),
                NotPacked::Absent => continue,
                NotPacked::Aside(place) | NotPacked::Compare(place) => {
                    self.spilled.get(place).into_iter().for_each(|ids| prefetch(ids))
                }
            }
            rest[*rest_count] = i;
            *rest_count += 1;
        }
    }

    /// Read the other lines of the same chunks.
    pub fn find_rest(&self, keys: &[Key], lookup: &mut BatchLookup) {
        for &i in &lookup.rest[..lookup.rest_count] {
            let entry = &mut lookup.entries[usize::from(i)];
            match entry.not_packed() {
                NotPacked::Absent => {
                    let key = keys[usize::from(i)];
                    *entry = look(Plain, self.line(key.other()), key);
                }
                NotPacked::Compare(place) => {
                    self.texts.get(self.spilled[place] as usize).into_iter().for_each(|text| prefetch(text))
                }
                NotPacked::Aside(_) => {}
            }
        }
    }

    /// Append to `out` the ids of words, and before those of each word the ids of its singles. Stop at the first word
    /// that is absent or has to be compared. Returns how many words were appended.
    ///
    /// # Safety
    /// `out` must have room for all their ids and `ROOM + STEP` more. All singles, and `STEP` more, must be in the source.
    #[inline(always)]
    pub unsafe fn append_many<S: Source>(&self, found: KnownWords<S>, out: &mut Vec<u32>) -> usize {
        // SAFETY: as the caller says.
        unsafe {
            if self.small_ids {
                self.append_many_of::<true, S>(found, out)
            } else {
                self.append_many_of::<false, S>(found, out)
            }
        }
    }

    /// Count the same ids instead of appending them. Returns how many words, and how many ids, were counted.
    #[inline(never)]
    pub fn count_many<S>(&self, found: KnownWords<S>) -> (usize, usize) {
        let mut ids = 0;
        for (done, (key, &entry)) in found.keys.iter().zip(found.entries).enumerate() {
            ids += if entry.is_ids() {
                entry.count()
            } else if let NotPacked::Aside(place) = entry.not_packed() {
                self.spilled[place] as usize
            } else {
                return (done, ids);
            };
            ids += key.singles.count();
        }
        (found.keys.len(), ids)
    }

    /// `append_many` with the size of ids known at compile time.
    ///
    /// # Safety
    /// The same as for `append_many`.
    #[inline(never)]
    unsafe fn append_many_of<const SMALL_IDS: bool, S: Source>(
        &self,
        found: KnownWords<S>,
        out: &mut Vec<u32>,
    ) -> usize {
        let KnownWords { keys, entries, source } = found;
        // Local variables, so that nothing has to be loaded again after a store.
        let start = out.as_mut_ptr().wrapping_add(out.len());
        let mut end = start;
        let mut done = 0;
        let room = |end: *mut u32| out.capacity() - out.len() - (end as usize - start as usize) / size_of::<u32>();
        for (key, &entry) in keys.iter().zip(entries) {
            if entry.is_ids() {
                debug_assert!(key.singles.count() + entry.count() + ROOM + STEP <= room(end));
                // SAFETY: there is room. Always copying all ids of the cell, even those that do not count, takes one
                // step instead of a call.
                unsafe {
                    end = source.write(key.singles, end);
                    end.cast::<[u32; ROOM]>().write_unaligned(entry.ids::<SMALL_IDS>());
                }
                end = end.wrapping_add(entry.count());
            } else if let NotPacked::Aside(place) = entry.not_packed() {
                let ids = self.aside(place);
                debug_assert!(key.singles.count() + ids.len() + ROOM + STEP <= room(end));
                // SAFETY: there is room.
                unsafe {
                    end = source.write(key.singles, end);
                    std::ptr::copy_nonoverlapping(ids.as_ptr(), end, ids.len());
                }
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

    /// The ids that are kept aside at this place.
    #[inline]
    fn aside(&self, place: usize) -> &[u32] {
        &self.spilled[place + 1..][..self.spilled[place] as usize]
    }

    /// Append the ids of an entry to `out`; false if there is none, or if it belongs to another chunk with the same
    /// hash.
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

    /// Remember the ids of a chunk, if there is memory for it. `fused`: the id of the UNKNOWN piece, if neighbouring
    /// UNKNOWN pieces become one. An entry that begins or ends with this id is marked as one to be compared, which
    /// makes `append_many` stop there.
    pub fn put(&mut self, key: Key, chunk: &[u8], ids: &[u32], fused: Option<u32>) {
        if key.length() == TOO_LONG {
            return;
        }
        let [ids_kept, bytes_kept] = [self.spilled.len() + ids.len(), self.texts.len() + chunk.len()];
        if ids_kept >= MAX_SPILLED * self.more || bytes_kept > MAX_TEXTS * self.more {
            self.clear();
        }
        if self.spilled.grow(ids.len() + 3).is_err() || self.texts.grow(chunk.len()).is_err() {
            return;
        }
        let aside = self.spilled.len();
        let fuses = fused.is_some() && (ids.first() == fused.as_ref() || ids.last() == fused.as_ref());
        let compare = fuses || key.length() == LONG;
        let few = if compare { None } else { PackedIds::of_ids(ids, self.small_ids) };
        let result = few.unwrap_or_else(|| {
            if compare {
                self.spilled.extend_from_slice(&[self.texts.len() as u32, chunk.len() as u32]);
                self.texts.extend_from_slice(chunk);
            }
            self.spilled.push(ids.len() as u32);
            self.spilled.extend_from_slice(ids);
            PackedIds::aside(aside, compare)
        });
        self.insert([key.halves[0], key.halves[1], result.0]);
        if self.used > self.lines as usize {
            self.grow();
        }
    }

    /// Put an entry into a free place of a line, if there is one.
    fn put_in_place(&mut self, key: Key, hash: u32, entry: &Entry) -> bool {
        let line = self.line_mut(hash);
        if line[NARROW] == 0 && key.length() <= PER_HALF as u64 {
            line[NARROW..].copy_from_slice(&[entry[0], entry[2]]);
        } else if let Some(at) = WIDE.into_iter().find(|&at| line[at] == 0) {
            line[at..at + 3].copy_from_slice(entry);
        } else {
            return false;
        }
        self.used += 1;
        true
    }

    /// Put an entry somewhere, even if other entries have to move for it.
    fn insert(&mut self, mut entry: Entry) {
        for turn in 0..MAX_MOVES {
            let key = Key::of_halves([entry[0], entry[1]]);
            if self.put_in_place(key, key.hash, &entry) || self.put_in_place(key, key.other(), &entry) {
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

    /// Take more memory, if there is any, and keep everything that is remembered.
    fn grow(&mut self) {
        let first = self.first;
        let Some(&lines) = SIZES.iter().find(|&&lines| lines > self.lines) else { return };
        let Ok(cells) = self.allocate(lines) else { return };
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

/// Whether both wide places of a line are taken.
#[inline(always)]
fn is_full(line: &[u64; LINE]) -> bool {
    WIDE.into_iter().all(|at| line[at] != 0)
}

/// Find a key in a line.
#[inline(always)]
fn look(machine: impl Machine, line: &[u64; LINE], key: Key) -> PackedIds {
    machine.look(line, key.halves).map_or(PackedIds::ABSENT, PackedIds)
}

// --- Chunks that were seen once ------------------------------------------------------------------
//
// Some kinds of chunks are remembered only when they occur for the second time: characters, and long chunks of
// byte-level vocabularies. In some texts nearly every such chunk is new, and the memory for them took more time than
// everything else.
//
// This is a Bloom filter: every chunk has `BITS` bits, all in the same word. If other chunks happen to have set them,
// the chunk counts as seen, and is remembered a little early; that does no harm. When the filter holds too many chunks,
// it is emptied. (A table with a place for each of 16,384 hashes, in which a chunk overwrote the one before, took as
// much memory. Where the same few thousand long words came again and again, many of them overwrote each other each time
// and were never remembered: on Hindi, Thai and Arabic with o200k_base, merging them took a third of the time.)

/// How many words of 64 bits there are, as a power of 2: 64 KiB.
const WORDS: u32 = 13;
/// How many bits a chunk sets in its word, at most.
const BITS: u32 = 3;
/// After this many chunks, an eighth of the number of bits, the filter is emptied: by then one new chunk in 26 would
/// count as seen.
const MANY: u32 = 1 << 16;

/// The filter described above.
#[derive(Default)]
pub struct Once {
    words: Vec<u64>,
    /// How many chunks are in it.
    count: u32,
}

impl Once {
    /// Whether a chunk occurs for the first time, as far as the filter knows.
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
