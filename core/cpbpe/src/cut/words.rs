//! From the cuts in a batch of bytes to its words: chunks of several bytes, between which there are only single bytes.
//!
//! A third of the chunks of ordinary text, and three quarters of those of source code, are single bytes, whose ids come
//! from a table (`vocab/characters.rs`). They are never looked at one by one here. If bit i of `mask` is set where
//! there is a cut before byte i, and bit i of `before` where there is one before byte i - 1, then words end at the bits
//! of `mask & !before` and begin one byte before the bits of `before & !mask`. Everything between an end and the next
//! begin is singles.

use crate::cache::{self, Homes, Key, Singles};
use crate::cut::by_character::CharacterSingles;
use crate::cut::WordBatch;
use crate::machine::{Machine, BLOCK};
use crate::text::utf8::{self, character};
use crate::vocab::characters::{ONE, UNKNOWN};
use crate::vocab::{Joinable, Vocab};

/// The words that end in this many bytes are looked up together. This is enough for memory to arrive in the meantime,
/// and few enough for everything to stay in the processor's first cache.
pub const BATCH: usize = 256;
/// The most words of a batch (some single bytes count as words), and what may be written after the last one.
pub const MAX_WORDS: usize = BATCH + BLOCK + 1;

/// The index in `Words::ids` of the id of the batch's first byte; that of the byte before it is in front. It is 16
/// because 16 ids are one line of the processor's caches, so that no write of a block's ids touches more lines than it
/// must.
pub const FIRST: usize = 16;

/// The places of the words that end in a batch, and the singles between them. (Aligned, because otherwise it is chance
/// how many lines of the processor's caches a write touches: that made short texts up to a tenth slower.)
#[repr(C, align(64))]
pub struct Words {
    /// The ids of all bytes, as if they were singles, from `FIRST` on; before these, that of the last byte before the
    /// batch. (Only with vector instructions, and if the batch was not cut by characters.)
    pub ids: [u32; FIRST + BATCH + 2 * BLOCK],
    /// Where each word begins, plus 1, and where it ends, counted from `first`. (The first word may begin before the
    /// batch.)
    pub(super) begins: [u8; MAX_WORDS],
    /// See `begins`.
    pub(super) ends: [u8; MAX_WORDS],
    /// How many there are.
    pub count: usize,
    /// Where the batch begins in the text.
    pub first: usize,
    /// Where the first word begins in the text.
    pub(super) start: usize,
    /// Where the singles before the first word begin: where those of the batch before end.
    pub singles_begin: usize,
    /// Where the singles after the last word end.
    pub singles_end: usize,
    /// Whether the batch was cut by characters. Then its singles are in `characters`; otherwise they are bytes.
    pub by_character: bool,
    /// The singles of a batch that was cut by characters.
    pub characters: CharacterSingles,
}

impl Default for Words {
    fn default() -> Words {
        Words {
            ids: [0; FIRST + BATCH + 2 * BLOCK],
            begins: [0; MAX_WORDS],
            ends: [0; MAX_WORDS],
            count: 0,
            first: 0,
            start: 0,
            singles_begin: 0,
            singles_end: 0,
            by_character: false,
            characters: CharacterSingles::default(),
        }
    }
}

impl Words {
    /// Where the words begin and end, and the singles before each (not those before the first).
    #[inline(always)]
    fn places<const BY_CHARACTER: bool>(&self) -> impl Iterator<Item = (usize, usize, Singles)> + '_ {
        // Where the next word begins and its singles, both known once the word before it is done.
        let mut next = (self.start, Singles::default());
        let CharacterSingles { begins, ends, .. } = &self.characters;
        let (begins, ends) = if BY_CHARACTER { (begins, ends) } else { (&self.begins, &self.ends) };
        self.ends[..self.count].iter().zip(&self.begins[1..]).enumerate().map(move |(i, (&end, &begin))| {
            let (from, to) = (u32::from(ends[i]), u32::from(begins[i + 1]));
            // (`begin` is one more than the place. After the last word it has no meaning, and nobody reads the result.)
            let singles = Singles(from | to.wrapping_sub(1).wrapping_sub(from) << 16);
            let begin_of_next = (self.first + usize::from(begin)).wrapping_sub(1);
            let (begin, singles) = std::mem::replace(&mut next, (begin_of_next, singles));
            (begin, self.first + usize::from(end), singles)
        })
    }

    /// Where a word begins.
    #[inline(always)]
    pub fn begin(&self, i: usize) -> usize {
        if i == 0 {
            self.start
        } else {
            self.first + usize::from(self.begins[i]) - 1
        }
    }

    /// Where a word ends.
    #[inline(always)]
    pub fn end(&self, i: usize) -> usize {
        self.first + usize::from(self.ends[i])
    }
}

impl WordBatch for Words {
    #[inline(always)]
    fn count(&self) -> usize {
        self.count
    }

    #[inline(always)]
    fn make_keys(&self, text: &[u8], keys: &mut [Key; cache::BATCH], homes: Homes) {
        if self.by_character {
            make_keys_from(self.places::<true>(), text, keys, homes);
        } else {
            make_keys_from(self.places::<false>(), text, keys, homes);
        }
    }

    fn word<'a>(&'a self, text: &'a [u8], i: usize) -> &'a [u8] {
        &text[self.begin(i)..self.end(i)]
    }

    /// (Those before the first word are not given here: `WordSource::append` has appended them.)
    #[inline(always)]
    fn singles(&self, i: usize) -> Singles {
        if i == 0 {
            return Singles::default();
        }
        if self.by_character {
            let (from, to) = self.character_singles(i);
            return Singles::new(from - 1, to - from);
        }
        let to = if i < self.count { self.begin(i) } else { self.singles_end };
        Singles::new(usize::from(self.ends[i - 1]), to - self.end(i - 1))
    }

    #[inline(always)]
    fn singles_begin_with(&self, i: usize, id: Option<u32>) -> bool {
        let (from, to) = if self.by_character { self.character_singles(i) } else { (0, 0) };
        from < to && Some(self.characters.ids[from]) == id
    }
}

/// See `make_keys`. (Not a closure: one that is called twice is not inlined.)
#[inline(always)]
fn make_keys_from(
    places: impl Iterator<Item = (usize, usize, Singles)>,
    text: &[u8],
    keys: &mut [Key; cache::BATCH],
    homes: Homes,
) {
    for (key, (begin, end, singles)) in keys.iter_mut().zip(places) {
        *key = Key { singles, ..Key::of_halves(Key::halves(text, begin, end)) };
        homes.prefetch(key.hash);
    }
}

/// Cuts a text into words, batch by batch.
pub struct Cutter<'a> {
    pub(super) vocab: &'a Vocab,
    pub joinable: &'a Joinable,
    /// The text, and at least `PAD` bytes after it.
    pub(super) padded: &'a [u8],
    pub length: usize,
    /// Where the next batch begins.
    pub(super) base: usize,
    /// Where the singles of the batch before end.
    done: usize,
    /// Whether there is a cut before the last byte of the batch before.
    pub(super) cut: bool,
    /// Where the word begins that has not ended yet.
    pub(super) open: Option<usize>,
    /// Whether the text is compact, as far as it has been read.
    pub is_compact: bool,
}

impl<'a> Cutter<'a> {
    #[inline(always)]
    pub fn new(vocab: &'a Vocab, joinable: &'a Joinable, padded: &'a [u8], length: usize) -> Cutter<'a> {
        // As if there were a cut before the byte in front of the text, so that no word ends or begins there.
        Cutter { vocab, joinable, padded, length, base: 0, done: 0, cut: true, open: None, is_compact: true }
    }

    /// Find the words of the next batch. False if there is none, or if it contains U+2581, so the text is not compact.
    /// (The end of the text is a cut, and has to be in a batch like all others.)
    #[inline(always)]
    pub fn next(&mut self, machine: impl Machine, words: &mut Words) -> bool {
        if self.base > self.length {
            return false;
        }
        words.singles_begin = self.done;
        words.by_character = self.is_by_character(machine);
        let found = if words.by_character {
            self.next_by_character(machine, words)
        } else {
            self.next_by_bytes(machine, words)
        };
        self.is_compact = found.is_some();
        self.done = words.singles_end;
        self.is_compact
    }

    /// `None` if the batch contains U+2581, here and below.
    #[inline(always)]
    fn next_by_bytes(&mut self, machine: impl Machine, words: &mut Words) -> Option<()> {
        // A character of several bytes is never a single here, nor is a byte that does not become exactly one id.
        let looked_up =
            |byte| self.joinable.singles.looked_up.as_ref().is_some_and(|looked_up| looked_up[usize::from(byte)] != 0);
        // If no word is open, the last character before the batch may still be one (see the end of this function).
        let last = if self.base > 0 { self.padded[self.base - 1] } else { 0 };
        if self.open.is_none() && self.base > 0 && (last >= 0x80 || looked_up(last)) {
            self.open = Some(character_before(self.padded, self.base));
            self.cut = false;
        }
        let first = self.base;
        words.first = first;
        if machine.vector().is_some() {
            words.ids[FIRST - 1] = self.joinable.singles.ids[usize::from(last)];
        }
        // How many words have begun, and how many have ended.
        let (mut begun, mut ended) = (usize::from(self.open.is_some()), 0);
        let stop = (first + BATCH).min(self.length + 1);
        while self.base < stop {
            let block = self.padded[self.base..].first_chunk::<BLOCK>()?;
            let left = self.length - self.base;
            let mut mask = self.mask(machine, block, left)?;
            if left < BLOCK {
                mask = mask & ((1 << left) - 1) | 1 << left;
            }
            #[cfg(target_arch = "x86_64")]
            if let Some(vector) = machine.vector() {
                let ids = words.ids[FIRST + self.base - first..].first_chunk_mut()?;
                vector.ids(&self.joinable.singles.planes, block, ids);
            }
            // 1. Which bits are begins and ends of words; see the top of this file.
            let before = mask << 1 | u64::from(self.cut);
            let mut begins = before & !mask;
            let ends = mask & !before;
            if left < BLOCK {
                begins &= (1u64 << left << 1).wrapping_sub(1); // nothing begins at the end
            }
            self.cut = mask >> (BLOCK - 1) != 0;
            // 2. Write them.
            let after = [begun + begins.count_ones() as usize, ended + ends.count_ones() as usize];
            let offset = (self.base - first) as u8;
            machine.places(begins, offset, words.begins[begun..].first_chunk_mut()?);
            machine.places(ends, offset, words.ends[ended..].first_chunk_mut()?);
            [begun, ended] = after;
            self.base += BLOCK;
        }
        // 3. The first word may have begun in an earlier batch, and the last one may go on.
        words.count = ended;
        let place = |i: usize| first + usize::from(words.begins[i]) - 1;
        words.start = match self.open {
            Some(open) => open,
            None if begun > 0 => place(0),
            None => first,
        };
        if begun > ended {
            if ended > 0 || self.open.is_none() {
                self.open = Some(place(ended));
            }
        } else {
            self.open = None;
        }
        // (Whether the last byte is a single depends on the first cut of the next batch.)
        words.singles_end = self.open.unwrap_or(if self.base > self.length { self.length } else { self.base - 1 });
        Some(())
    }

    /// The cuts before the bytes of the block at `base`, as bits.
    #[inline(always)]
    fn mask(&mut self, machine: impl Machine, block: &[u8; BLOCK], left: usize) -> Option<u64> {
        let (base, padded) = (self.base, self.padded);
        if left == 0 {
            return Some(1);
        }
        let mut mask = cuts(machine, self.joinable, &padded[..self.length + 4], base, block, self.vocab.swapped)?;
        if base == 0 {
            mask |= 1;
        }
        Some(mask)
    }
}

// --- Cuts in a block -----------------------------------------------------------------------------
//
// Cuts text where nothing can merge.
//
// A merge joins two neighbouring symbols into a piece, so a cut between the characters a and b is safe if no piece
// contains a directly followed by b. `Joinable::bytes` answers this for bytes: if no piece contains a character that
// ends in the byte x before one that begins with the byte y, then no place between x and y in valid UTF-8 lies inside a
// piece. Where bytes are too coarse (all Chinese characters begin with a few of them), `Joinable::pair` answers it for
// the two characters. A cut that is missed costs only time; the result stays the same.

/// Whether bytes alone allow a cut before `text[at]`.
#[inline]
pub fn is_cut(joinable: &Joinable, text: &[u8], at: usize) -> bool {
    at == 0 || joinable.bytes[usize::from(text[at - 1]) | usize::from(text[at]) << 8] == 1
}

/// The cuts before the bytes of a block, as bits. `text` is valid UTF-8 around the block. `None` if it should be
/// `compact` but contains a U+2581.
#[inline(always)]
pub fn cuts(
    machine: impl Machine,
    joinable: &Joinable,
    text: &[u8],
    base: usize,
    block: &[u8; BLOCK],
    compact: bool,
) -> Option<u64> {
    // The byte before the first one; at the beginning of the text, any byte.
    let before = if base == 0 { block[0] } else { text[base - 1] };
    let mut mask = machine.cuts(&joinable.bytes, &joinable.classes.tables, block, before);
    if !machine.is_ascii(block) {
        mask |= around_long_characters(machine, joinable, text, base, block, mask, compact)?;
    }
    Some(mask)
}

/// The cuts next to characters of several bytes, for which looking at bytes is too coarse.
#[inline(always)]
fn around_long_characters(
    machine: impl Machine,
    joinable: &Joinable,
    text: &[u8],
    base: usize,
    block: &[u8; BLOCK],
    cuts: u64,
    compact: bool,
) -> Option<u64> {
    let mut long = machine.long(block);
    let mut more = 0;
    // The last long character, and the place where it ends.
    let (mut last, mut last_end) = (0, usize::MAX);
    while long != 0 {
        let i = long.trailing_zeros() as usize;
        long &= long - 1;
        let at = base + i;
        let end = at + utf8::length_by_first(block[i]);
        let Some(here) = four_at(text, at).map(number) else { break }; // after the end
        if compact && here == SPACE {
            return None;
        }
        if cuts >> i & 1 == 0 && at > 0 {
            if last_end != at {
                last = number(four_at(text, character_before(text, at))?);
            }
            more |= u64::from(!joinable.pair(last, here)) << i;
        }
        (last, last_end) = (here, end);
        // The cut after it, if the next character is in this block and is not a long one, which would look for the cut
        // itself.
        let after = end - base;
        if after < BLOCK && cuts >> after & 1 == 0 && long >> after & 1 == 0 {
            let next = four_at(text, end).map_or(0, number);
            more |= u64::from(!joinable.pair(here, next)) << after;
        }
    }
    Some(more)
}

const SPACE: u32 = character(utf8::SPACE);

/// Whether an entry (see `vocab/characters.rs`) is that of U+2581, if text with U+2581 is not compact.
#[inline(always)]
pub fn is_space(entry: u32) -> bool {
    entry & (ONE | UNKNOWN) == UNKNOWN
}

/// The first character of these four bytes, as the number that `character` makes of it.
#[inline(always)]
pub fn number(bytes: [u8; 4]) -> u32 {
    const MASKS: [u32; 5] = [0, 0xFF, 0xFFFF, 0xFF_FFFF, u32::MAX];
    u32::from_le_bytes(bytes) & MASKS[utf8::length_by_first(bytes[0])]
}

/// The four bytes from `at`. They can be read there: see `PAD` in `encode/encoder.rs`.
#[inline(always)]
pub fn four_at(text: &[u8], at: usize) -> Option<[u8; 4]> {
    text.get(at..)?.first_chunk().copied()
}

/// Where the character begins that ends before `at`.
#[inline(always)]
pub fn character_before(text: &[u8], at: usize) -> usize {
    let mut begin = at - 1;
    while begin > 0 && utf8::is_continuation(text[begin]) {
        begin -= 1;
    }
    begin
}
