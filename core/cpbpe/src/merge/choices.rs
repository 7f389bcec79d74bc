//! Merges short chunks when merges are skipped at random.
//!
//! In a chunk of a few characters, only few pairs can ever form a piece. These are found once, and remembered for the
//! next time that the chunk occurs, perhaps with other random decisions. From then on nothing has to be looked up in
//! the vocabulary: merging the chunk means going through its choices. (Texts are sampled 2.2 times as fast as by the
//! method of `short.rs` with alpha = 0.1, and 1.9 times as fast with 0.5. Caching the ids of chunks in which nothing is
//! skipped would gain less with the first alpha, and nothing with the second.)
//!
//! A choice is a part of the chunk that is a piece, and can become a symbol. Its turn comes when two symbols make it
//! up. Then it is merged or skipped, and in both cases it will have no other turn: as long as both of its ends are ends
//! of symbols, the two symbols in it stay what they are, and once one of its ends is inside a symbol, it stays inside
//! one. So one bit says whether a choice is still open. Going through the open choices in the order of their ranks, and
//! from left to right for equal ranks, gives the same result as a queue of pairs. (Two choices that begin at the same
//! place never have their turns at the same moment.)

use crate::error::Halt;
use crate::memory::{filled, prefetch, with_room, Grow};
use crate::merge::Sink;
use crate::vocab::pieces::window;
use crate::vocab::{Vocab, NONE};
use crate::watch::NO_CHECK;

/// Chunks of up to this many bytes are remembered.
pub const MAX: usize = 15;
/// The key of a chunk has its length in the last byte.
const _: () = assert!(MAX < size_of::<u128>());
/// The most choices that a chunk may have.
const MAX_CHOICES: usize = u64::BITS as usize;
/// How many slots there are at first, and at most. The table grows when half of its slots are taken; when the largest
/// one is half full, all chunks are forgotten. (4 MB of text have 50,000 chunks and more. When only 8,000 were
/// remembered, English was sampled at 0.6 of the speed, and 25 languages at half of it. At most, all this takes 24 MB.)
const SLOTS: [usize; 2] = [1 << 10, 1 << 18];

/// A part of a chunk that is a piece: its id, and how many characters are before its begin and its end. (It is packed
/// into four bytes, because choices take most of the memory.)
#[derive(Clone, Copy)]
struct Choice(u32);

/// The numbers of characters have four bits each.
const _: () = assert!(MAX < 16);
/// Pieces with this id or a higher one are never choices.
const MAX_ID: u32 = 1 << 24;

impl Choice {
    fn new(id: u32, begin: usize, end: usize) -> Choice {
        debug_assert!(id < MAX_ID && begin < end && end <= MAX);
        Choice(id << 8 | (begin << 4 | end) as u32)
    }

    fn id(self) -> u32 {
        self.0 >> 8
    }

    /// How many characters are before its begin, and before its end.
    #[inline]
    fn ends(self) -> [u32; 2] {
        [self.0 >> 4 & 15, self.0 & 15]
    }
}

/// A chunk that is remembered.
#[derive(Clone, Copy)]
struct Chunk {
    /// Its text and its length; 0 if the slot is empty.
    key: u128,
    /// Where its choices begin (the lowest rank comes first), and how many there are.
    choices: u32,
    choice_count: u8,
    /// Where the ids of its characters begin, and how many there are.
    ids: u32,
    count: u8,
}

/// The choices of some chunks. It takes no memory until it is first used.
#[derive(Default)]
pub struct Choices {
    slots: Vec<Chunk>,
    /// How many slots are taken.
    taken: usize,
    choices: Vec<Choice>,
    ids: Vec<u32>,
}

/// A text of up to `MAX` bytes and its length, as one number.
#[inline]
fn key_of(text: &[u8]) -> u128 {
    window(text) | (text.len() as u128) << (8 * MAX)
}

/// Where to look for a key first. Only as many bits count as the number of slots needs.
#[inline]
fn slot_of(key: u128) -> usize {
    let (low, high) = (key as u64, (key >> 64) as u64);
    let mixed = (low ^ high.rotate_left(23)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 32) as usize
}

impl Choices {
    /// Prefetch the memory of a chunk.
    #[inline]
    pub fn prefetch(&self, text: &[u8]) {
        let slots = self.slots.len();
        if text.len() <= MAX && slots > 0 {
            prefetch(self.slots.as_ptr().wrapping_add(slot_of(key_of(text)) & (slots - 1)));
        }
    }

    /// Give the symbols of a chunk to `sink`. `keep` decides whether two symbols are merged, given how many characters
    /// are before their begin, middle and end. If the chunk has too many choices, do nothing and return false.
    #[inline]
    pub fn merge<S: Sink>(
        &mut self,
        vocab: &Vocab,
        text: &[u8],
        keep: impl Fn(usize, usize, usize) -> bool,
        sink: &mut S,
    ) -> Result<bool, Halt> {
        let Some(chunk) = self.chunk(vocab, text)? else { return Ok(false) };
        let count = usize::from(chunk.count);
        let choices = &self.choices[chunk.choices as usize..][..usize::from(chunk.choice_count)];
        let mut ids = [NONE; MAX + 1];
        ids[..count].copy_from_slice(&self.ids[chunk.ids as usize..][..count]);
        // 1. Again and again, take the first choice whose turn has come.
        // (Bit `i` of the places is set if a symbol begins or ends after `i` characters.)
        let mut places = (1u32 << (count + 1)) - 1;
        let mut open = u64::MAX.checked_shr(64 - choices.len() as u32).unwrap_or(0);
        let mut left = open;
        while left != 0 {
            let number = left.trailing_zeros();
            left &= left - 1;
            let choice = choices[number as usize];
            let [begin, end] = choice.ends();
            let ends = 1 << begin | 1 << end;
            let middle = places & ((1 << end) - (2 << begin));
            if places & ends != ends {
                open &= !(1 << number);
            } else if middle.is_power_of_two() {
                open &= !(1 << number);
                if keep(begin as usize, middle.trailing_zeros() as usize, end as usize) {
                    places &= !middle;
                    ids[begin as usize] = choice.id();
                    left = open; // now an earlier choice may have its turn
                }
            }
        }
        // 2. Return what is left, from left to right.
        sink.make_room(text.len())?;
        let mut at = 0;
        let mut begin = 0;
        places &= !1;
        while places != 0 {
            let end = places.trailing_zeros() as usize;
            places &= places - 1;
            let ascii = count == text.len();
            let after = |stop| stop + vocab.symbol_length(text, stop);
            let stop = if ascii { end } else { (begin..end).fold(at, |stop, _| after(stop)) };
            sink.symbol(ids[begin], at, stop);
            (begin, at) = (end, stop);
        }
        Ok(true)
    }

    /// Return a chunk with its choices, unless it has too many.
    #[inline]
    fn chunk(&mut self, vocab: &Vocab, text: &[u8]) -> Result<Option<Chunk>, Halt> {
        let key = key_of(text);
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = slot_of(key) & mask;
        while let Some(chunk) = self.slots.get(at) {
            if chunk.key == key {
                return Ok(Some(*chunk));
            }
            if chunk.key == 0 {
                break;
            }
            at = (at + 1) & mask;
        }
        self.add(vocab, text, key)
    }

    /// Make room for another chunk: add slots or, if there are already as many as are allowed, forget all
    /// chunks.
    fn make_room(&mut self) -> Result<(), Halt> {
        if 2 * self.taken < self.slots.len() {
            return Ok(());
        }
        const EMPTY: Chunk = Chunk { key: 0, choices: 0, choice_count: 0, ids: 0, count: 0 };
        let count = (4 * self.slots.len()).clamp(SLOTS[0], SLOTS[1]);
        let old = if count > self.slots.len() {
            std::mem::replace(&mut self.slots, filled(EMPTY, count, NO_CHECK)?)
        } else {
            self.slots.fill(EMPTY);
            self.choices.clear();
            self.ids.clear();
            self.taken = 0;
            Vec::new()
        };
        old.into_iter().filter(|chunk| chunk.key != 0).for_each(|chunk| self.put(chunk));
        Ok(())
    }

    /// Put a chunk into the first free slot for it.
    fn put(&mut self, chunk: Chunk) {
        let mask = self.slots.len() - 1;
        let mut at = slot_of(chunk.key) & mask;
        while self.slots[at].key != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = chunk;
    }

    /// Find the choices of a new chunk.
    #[cold]
    fn add(&mut self, vocab: &Vocab, text: &[u8], key: u128) -> Result<Option<Chunk>, Halt> {
        // 1. Make room.
        self.make_room()?;
        self.choices.grow(MAX_CHOICES)?;
        self.ids.grow(MAX)?;
        // 2. The characters.
        let first = self.ids.len();
        let mut places = [0; MAX + 1];
        let mut count = 0;
        while places[count] < text.len() {
            let end = places[count] + vocab.symbol_length(text, places[count]);
            self.ids.push(vocab.find_mergeable(&text[places[count]..end]).unwrap_or(NONE));
            count += 1;
            places[count] = end;
        }
        // 3. Find the choices: pieces that two possible symbols make up, shorter ones first. (The bits of `ends[i]` are
        //    the ends of possible symbols that begin at `i`, and those of `begins[i]` are the begins of possible
        //    symbols that end at `i`.)
        let mut ends = [0u16; MAX + 1];
        let mut begins = [0u16; MAX + 1];
        for i in 0..count {
            (ends[i], begins[i + 1]) = (1 << (i + 1), 1 << i);
        }
        let mut found = with_room(MAX_CHOICES)?;
        for length in 2..=count {
            for begin in 0..=count - length {
                let end = begin + length;
                if ends[begin] & begins[end] == 0 {
                    continue;
                }
                let Some(id) = vocab.find_mergeable(&text[places[begin]..places[end]]) else { continue };
                if found.len() == MAX_CHOICES || id >= MAX_ID {
                    self.ids.truncate(first);
                    return Ok(None);
                }
                ends[begin] |= 1 << end;
                begins[end] |= 1 << begin;
                found.push((vocab.pieces.rank(id), begin, Choice::new(id, begin, end)));
            }
        }
        found.sort_unstable_by_key(|&(rank, begin, _)| (rank, begin));
        // 4. Remember all this.
        let chunk = Chunk {
            key,
            choices: self.choices.len() as u32,
            choice_count: found.len() as u8,
            ids: first as u32,
            count: count as u8,
        };
        self.choices.extend(found.into_iter().map(|(_, _, choice)| choice));
        self.put(chunk);
        self.taken += 1;
        Ok(Some(chunk))
    }
}
