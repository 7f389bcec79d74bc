//! The pieces of a vocabulary: text, type and rank of each, and look-up by text.
//!
//! Merging looks up texts all the time, and most of them are not pieces. So texts of up to 16 bytes are handled as one
//! number of 128 bits, without a branch on the length. A slot of the table holds a part of the hash, so a text that is
//! not a piece is rarely compared with one. Most pieces that are made during merging are short, and all that merging asks
//! about such a piece, its text included, is in one line of the machine's caches. For two ASCII characters, a table has
//! all answers.

use std::hash::{BuildHasher, RandomState};

use self::piece_type::is_mergeable;
use crate::error::Error;
use crate::memory::prefetch;

pub mod piece_type {
    //! The types of pieces, by their numbers in a model file.

    /// Learned from text.
    pub const NORMAL: u8 = 1;
    /// Stands for anything that the vocabulary does not contain.
    pub const UNKNOWN: u8 = 2;
    /// A marker to which no text is encoded.
    pub const CONTROL: u8 = 3;
    /// Always one symbol, never merged or split.
    pub const USER_DEFINED: u8 = 4;
    /// Merges like others, but is split again afterwards.
    pub const UNUSED: u8 = 5;
    /// One byte of an unknown character.
    pub const BYTE: u8 = 6;

    /// Whether merging may make pieces of this type.
    #[inline]
    pub fn is_mergeable(kind: u8) -> bool {
        matches!(kind, NORMAL | USER_DEFINED | UNUSED)
    }
}

/// No piece has this id.
pub const NONE: u32 = u32::MAX;

/// The longest text that is looked up as one number.
pub const WINDOW: usize = 16;

/// While a vocabulary is made, the memory of the piece this many places ahead is prefetched.
const AHEAD: usize = 16;

/// From this length on, texts are hashed in four lanes.
const LONG: usize = 4 * WINDOW;

/// 32 bytes of slots, which are in one line of the machine's caches, or in two. (Aligning them gave nothing.)
type Slots = [u32; 8];

/// What is known about a piece. Its text ends where that of the next one begins.
struct PieceInfo {
    /// See `head`. The highest bit says whether merging may make the piece.
    head: u64,
    /// Where its text begins.
    begin: u32,
    /// See `Pieces::rank`.
    rank: u32,
}

/// How many bytes of a text its head contains.
const HEAD: usize = 7;
const MERGEABLE: u64 = 1 << 63;

/// The first bytes of a text and, in the bits above them, its length, if that is no more than `WINDOW`.
#[inline(always)]
fn head(value: u128, length: usize) -> u64 {
    value as u64 & ((1 << (8 * HEAD)) - 1) | (length as u64) << (8 * HEAD)
}

/// The pieces of a vocabulary, by id and by text.
pub struct Pieces {
    /// The texts of all pieces, one after the other, followed by `WINDOW` bytes.
    blob: Vec<u8>,
    /// Where the text of the last piece ends.
    text_end: usize,
    infos: Vec<PieceInfo>,
    /// The type of each piece.
    kinds: Vec<u8>,
    /// A hash table with open addressing, eight slots at a time. The low `id_bits` of a slot are the id plus one; above
    /// them is as much of the hash as there is room for.
    slots: Vec<Slots>,
    id_bits: u32,
    seed: u64,
    /// How many bytes the longest piece has, of those that can be found.
    longest: usize,
    /// For the ASCII characters `x y`, at `x | y << 7`, the mergeable piece with this text.
    ascii: Box<[u32]>,
}

/// A text that is about to be looked up.
#[derive(Clone, Copy, Default)]
pub struct Probe {
    value: u128,
    hash: u64,
    length: usize,
}

/// The bits of a window that count, for each length.
const MASKS: [u128; WINDOW + 1] = {
    let mut masks = [u128::MAX; WINDOW + 1];
    let mut length = 0;
    while length < WINDOW {
        masks[length] = (1 << (8 * length)) - 1;
        length += 1;
    }
    masks
};

impl Pieces {
    /// No pieces yet, with room for `count` pieces of this many bytes in total. The seed is random, so that nobody can
    /// make a model whose pieces collide.
    pub fn new(count: usize, bytes: usize) -> Pieces {
        let slots = (count * 2 / 8).next_power_of_two();
        Pieces {
            blob: Vec::with_capacity(bytes + WINDOW),
            text_end: 0,
            infos: Vec::with_capacity(count),
            kinds: Vec::with_capacity(count),
            slots: vec![[0; 8]; slots],
            id_bits: usize::BITS - count.leading_zeros(),
            seed: RandomState::new().hash_one(count),
            longest: 0,
            ascii: vec![NONE; 1 << 14].into_boxed_slice(),
        }
    }

    /// Add the next piece.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>), kind: u8, score: f32) -> Result<(), Error> {
        let begin = self.blob.len();
        write(&mut self.blob);
        self.text_end = self.blob.len();
        let length = self.text_end - begin;
        let key = score.to_bits();
        // The order of floats is that of sign and magnitude. It is reversed, so the highest score gets the lowest rank.
        let rank = if key >> 31 == 0 { !(key | 1 << 31) } else { key };
        let (Ok(begin), Ok(_)) = (u32::try_from(begin), u16::try_from(length)) else {
            return Err(Error::InvalidModel("its pieces are too long"));
        };
        let mergeable = if is_mergeable(kind) { MERGEABLE } else { 0 };
        self.infos.push(PieceInfo { head: mergeable, begin, rank }); // `finish` completes the head
        self.kinds.push(kind);
        Ok(())
    }

    /// Declare that all pieces have been added, and make them findable, except those that `hidden` accepts. Fails if
    /// two of the findable pieces have the same text.
    pub fn finish(&mut self, hidden: impl Fn(&[u8]) -> bool) -> Result<(), Error> {
        self.blob.extend_from_slice(&[0; WINDOW]);
        // In the table, neighbouring pieces are far apart. So the place of a piece is prefetched some pieces ahead.
        let mask = self.slots.len() - 1;
        let mut hashes = [0; AHEAD];
        for id in 0..self.infos.len() + AHEAD {
            if id >= AHEAD {
                let (id, hash) = ((id - AHEAD) as u32, hashes[id % AHEAD]);
                let text = self.text(id);
                if !hidden(text) {
                    self.longest = self.longest.max(text.len());
                    if !self.insert(id, hash) {
                        return Err(Error::InvalidModel("two pieces have the same text"));
                    }
                }
            }
            if id < self.infos.len() {
                let hash = self.hash_ahead(id as u32);
                prefetch(&self.slots[hash as usize & mask]);
                hashes[id % AHEAD] = hash;
            }
        }
        Ok(())
    }

    /// The hash of a piece, when there are WINDOW bytes after the last piece. Also writes the head of the piece.
    #[inline]
    fn hash_ahead(&mut self, id: u32) -> u64 {
        let (begin, length) = self.place(id);
        match self.blob[begin..].first_chunk() {
            Some(window) if length <= WINDOW => {
                let value = u128::from_le_bytes(*window) & MASKS[length];
                self.infos[id as usize].head |= head(value, length);
                self.hash_words(value)
            }
            _ => {
                self.infos[id as usize].head |= !MERGEABLE; // the head of no text
                self.hash(self.text(id))
            }
        }
    }

    /// Make a piece findable. Returns false if another piece has the same text.
    fn insert(&mut self, id: u32, hash: u64) -> bool {
        let text = self.text(id);
        let mask = self.slots.len() - 1;
        let (mark, tag) = (self.mark(hash), !((1 << self.id_bits) - 1));
        let mut at = hash as usize & mask;
        loop {
            // Without a branch for each slot: slots are used one after the other, up to the first that is free.
            let (mut hits, mut used) = (0u32, 0);
            for (k, &slot) in self.slots[at].iter().enumerate() {
                hits |= u32::from(slot != 0 && slot & tag == mark) << k;
                used += usize::from(slot != 0);
            }
            while hits != 0 {
                let slot = self.slots[at][hits.trailing_zeros() as usize];
                hits &= hits - 1;
                if self.text((slot & !tag) - 1) == text {
                    return false;
                }
            }
            if used < 8 {
                if let (&[x @ ..0x80, y @ ..0x80], true) = (text, self.mergeable(id)) {
                    self.ascii[usize::from(x) | usize::from(y) << 7] = id;
                }
                self.slots[at][used] = mark | (id + 1);
                return true;
            }
            at = (at + 1) & mask;
        }
    }

    /// Whether every piece is UTF-8.
    pub fn are_utf8(&self) -> bool {
        // All texts together are UTF-8 if each of them is. Conversely, each is UTF-8 if all together are, and if each
        // begins where a character begins. Checking that takes a third of the time.
        let begins_character =
            |info: &PieceInfo| self.blob.get(info.begin as usize).is_none_or(|byte| byte & 0xC0 != 0x80);
        std::str::from_utf8(&self.blob).is_ok() && self.infos.iter().all(begins_character)
    }

    /// Whether every mergeable piece is UTF-8.
    pub fn mergeable_are_utf8(&self) -> bool {
        (0..self.len() as u32).filter(|&id| self.mergeable(id)).all(|id| std::str::from_utf8(self.text(id)).is_ok())
    }

    /// How many pieces there are.
    pub fn len(&self) -> usize {
        self.infos.len()
    }

    /// The text of a piece.
    #[inline]
    pub fn text(&self, id: u32) -> &[u8] {
        let (begin, length) = self.place(id);
        &self.blob[begin..][..length]
    }

    /// Where the text of a piece begins, and how long it is.
    #[inline(always)]
    fn place(&self, id: u32) -> (usize, usize) {
        let begin = self.infos[id as usize].begin as usize;
        let end = self.infos.get(id as usize + 1).map_or(self.text_end, |next| next.begin as usize);
        (begin, end - begin)
    }

    /// The type of a piece.
    #[inline]
    pub fn kind(&self, id: u32) -> u8 {
        self.kinds[id as usize]
    }

    /// Whether merging may make this piece.
    #[inline]
    pub fn mergeable(&self, id: u32) -> bool {
        self.infos[id as usize].head & MERGEABLE != 0
    }

    /// The rank of a mergeable piece: the lowest rank merges first.
    #[inline]
    pub fn rank(&self, id: u32) -> u32 {
        self.infos[id as usize].rank
    }

    /// The score of a piece.
    pub fn score(&self, id: u32) -> f32 {
        let rank = self.rank(id);
        f32::from_bits(if rank >> 31 == 0 { !rank & !(1 << 31) } else { rank })
    }

    #[inline(always)]
    fn hash_words(&self, value: u128) -> u64 {
        let (low, high) = (value as u64 ^ self.seed, (value >> 64) as u64 ^ self.seed.rotate_left(32));
        let mixed = u128::from(low ^ 0x9E37_79B9_7F4A_7C15) * u128::from(high | 1);
        let folded = mixed as u64 ^ (mixed >> 64) as u64 ^ low.rotate_left(29) ^ high;
        folded.wrapping_mul(0xD6E8_FEB8_6659_FD93)
    }

    fn hash(&self, text: &[u8]) -> u64 {
        if text.len() <= WINDOW {
            return self.hash_words(window(text));
        }
        let mut state = text.len() as u64;
        let mut rest = text;
        if text.len() >= LONG {
            // Four windows at a time, which do not wait for each other. Where merging makes pieces of thousands of
            // bytes, one byte longer each time, this is most of the work.
            let mut lanes = [state; 4];
            while let Some((block, more)) = rest.split_first_chunk::<LONG>() {
                for (lane, part) in lanes.iter_mut().zip(block.chunks_exact(WINDOW)) {
                    let value = window(part);
                    let (low, high) = (value as u64 ^ self.seed, (value >> 64) as u64 ^ self.seed.rotate_left(32));
                    let mixed = u128::from(low ^ *lane) * u128::from(high);
                    *lane = (mixed as u64 ^ (mixed >> 64) as u64).wrapping_add(lane.rotate_left(29));
                }
                rest = more;
            }
            for lane in lanes {
                state = self.hash_words(u128::from(state) << 64 | u128::from(lane));
            }
        }
        for part in rest.chunks(WINDOW) {
            state = self.hash_words(window(part) ^ u128::from(state)).rotate_left(25);
        }
        self.hash_words(u128::from(state))
    }

    /// The part of the hash that is in a slot.
    #[inline(always)]
    fn mark(&self, hash: u64) -> u32 {
        (hash >> 32) as u32 >> self.id_bits << self.id_bits
    }

    /// Compare with the pieces that can have this hash.
    #[inline(always)]
    fn search(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        let mark = self.mark(hash);
        let tag = !((1 << self.id_bits) - 1);
        loop {
            let slots = &self.slots[at & mask];
            let mut hits = 0;
            for (k, slot) in slots.iter().enumerate() {
                hits |= u32::from(slot & tag == mark) << k;
            }
            while hits != 0 {
                let slot = slots[hits.trailing_zeros() as usize];
                hits &= hits - 1;
                if slot != 0 && is_it((slot & !tag) - 1) {
                    return Some((slot & !tag) - 1);
                }
            }
            if slots[7] == 0 {
                return None;
            }
            at += 1;
        }
    }

    /// The id of the piece with this text, of any type.
    pub fn find(&self, text: &[u8]) -> Option<u32> {
        if text.len() > self.longest {
            return None; // without hashing all of it
        }
        if text.len() <= WINDOW {
            return self.find_window(window(text), text.len()); // without a call that compares bytes
        }
        self.search(self.hash(text), |id| self.text(id) == text)
    }

    /// The id of the piece, of any type, with a text of up to `WINDOW` bytes, which is given as a number; see `window`.
    #[inline]
    pub fn find_window(&self, value: u128, length: usize) -> Option<u32> {
        self.search(self.hash_words(value), |id| self.is_window(id, value, length))
    }

    /// Whether a piece has this text of up to `WINDOW` bytes.
    #[inline(always)]
    fn is_window(&self, id: u32, value: u128, length: usize) -> bool {
        let info = &self.infos[id as usize];
        // (If a longer text ends in zeros, its length is different.)
        if info.head & !MERGEABLE != head(value, length) {
            return false;
        }
        let text = || self.blob[info.begin as usize..].first_chunk();
        length <= HEAD || text().is_some_and(|text| u128::from_le_bytes(*text) & MASKS[length] == value)
    }

    /// Prepare to look up the first `length` bytes of a window, by prefetching the memory that this needs.
    #[inline(always)]
    pub fn probe(&self, window: &[u8; WINDOW], length: usize) -> Probe {
        let value = u128::from_le_bytes(*window) & MASKS[length];
        let hash = self.hash_words(value);
        prefetch(&self.slots[hash as usize & (self.slots.len() - 1)]);
        Probe { value, hash, length }
    }

    /// The mergeable piece with the text of a probe, or `NONE`.
    #[inline(always)]
    pub fn find_probe(&self, probe: Probe) -> u32 {
        let id = self.search(probe.hash, |id| self.is_window(id, probe.value, probe.length));
        id.filter(|&id| self.mergeable(id)).unwrap_or(NONE)
    }

    /// The mergeable piece of two ASCII characters, or `NONE`.
    #[inline(always)]
    pub fn find_ascii(&self, x: u8, y: u8) -> u32 {
        self.ascii[usize::from(x & 0x7F) | usize::from(y & 0x7F) << 7]
    }
}

/// Up to 16 bytes as one number. It reads the first and the last bytes, which may overlap and then give the same bits
/// twice. (Copying them to a buffer would need a call, and would have to wait for what was just written.)
#[inline]
pub fn window(text: &[u8]) -> u128 {
    let length = text.len();
    debug_assert!(length <= WINDOW);
    if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        return u128::from(u64::from_le_bytes(*first)) | u128::from(u64::from_le_bytes(*last)) << (8 * (length - 8));
    }
    if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        return u128::from(u32::from_le_bytes(*first)) | u128::from(u32::from_le_bytes(*last)) << (8 * (length - 4));
    }
    text.iter().rev().fold(0, |value, &byte| value << 8 | u128::from(byte))
}

/// Whether a window contains this byte, which is not 0.
#[inline]
pub fn has_byte(value: u128, byte: u8) -> bool {
    const ONES: u128 = u128::MAX / 255;
    let zeros = value ^ (ONES * u128::from(byte));
    zeros.wrapping_sub(ONES) & !zeros & ONES << 7 != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::pieces::piece_type::{CONTROL, NORMAL};

    #[test]
    fn windows_are_their_bytes() {
        for length in 0..=WINDOW {
            let text: Vec<u8> = (0..length).map(|i| (i * 37 + length * 11 + 1) as u8).collect();
            let mut bytes = [0; WINDOW];
            bytes[..length].copy_from_slice(&text);
            assert_eq!(window(&text), u128::from_le_bytes(bytes));
            for byte in 1..=255 {
                assert_eq!(has_byte(window(&text), byte), text.contains(&byte), "{text:?} {byte}");
            }
        }
    }

    /// Pieces of one type each.
    fn pieces(texts: &[(&[u8], u8)]) -> Result<Pieces, Error> {
        let mut pieces = Pieces::new(texts.len(), 0);
        for (text, kind) in texts {
            pieces.push(|blob| blob.extend_from_slice(text), *kind, -1.5)?;
        }
        pieces.finish(|text| text == b"\0").map(|()| pieces)
    }

    #[test]
    fn every_piece_is_found_and_none_is_there_twice() {
        // All lengths around those that are handled in different ways, and so many pieces that slots overflow into the
        // next ones.
        let mut texts: Vec<Vec<u8>> = (1..200).map(|length| vec![b'a'; length]).collect();
        texts.extend((0..3000).map(|number| format!("piece {number}").into_bytes()));
        texts.push(b"\0".to_vec());
        let rows: Vec<(&[u8], u8)> = texts.iter().map(|text| (&text[..], NORMAL)).collect();
        for count in [1, 2, 3, 15, 16, 17, rows.len()] {
            let pieces = pieces(&rows[..count]).unwrap();
            for (id, (text, _)) in (0..).zip(&rows[..count]) {
                assert_eq!(pieces.find(text), Some(id).filter(|_| text != b"\0"), "{text:?}");
            }
            assert_eq!((pieces.find(b"b"), pieces.find(b"piece 3000")), (None, None));
            assert_eq!(pieces.score(0), -1.5);
        }
        for again in [0, 14, 15, 16, 17, 198, 2000] {
            let twice = [&rows[..], &rows[again..=again]].concat();
            assert!(pieces(&twice).is_err(), "{again}");
        }
    }

    /// (The hash of another text is nearly always another one, too, so looking texts up would hardly ever show this.)
    #[test]
    fn a_text_that_differs_in_one_byte_is_not_the_piece() {
        let texts: Vec<Vec<u8>> =
            (1..=WINDOW + 2).map(|length| (0..length).map(|i| b'a' + i as u8).collect()).collect();
        let rows: Vec<(&[u8], u8)> =
            (0..).zip(&texts).map(|(i, text)| (&text[..], if i % 3 == 0 { CONTROL } else { NORMAL })).collect();
        let pieces = pieces(&rows).unwrap();
        for (id, (text, kind)) in (0..).zip(rows) {
            assert_eq!((pieces.text(id), pieces.kind(id), pieces.mergeable(id)), (text, kind, kind == NORMAL));
            let is_it = |text: &[u8]| pieces.is_window(id, window(text), text.len());
            if text.len() > WINDOW {
                assert!(!is_it(&text[..WINDOW]));
                continue;
            }
            assert!(is_it(text) && !is_it(&text[1..]) && !is_it(&text[..text.len() - 1]));
            for i in 0..text.len() {
                let mut other = text.to_vec();
                other[i] ^= 1;
                assert!(!is_it(&other), "{other:?}");
            }
            let longer = [text, b"\0"].concat();
            assert!(longer.len() > WINDOW || !is_it(&longer));
        }
    }

    #[test]
    fn all_pieces_are_utf8_or_not() {
        let half = [&b"a\xC3"[..], &b"\xA9b"[..]]; // together they are UTF-8
        let of = |rows: [(&[u8], u8); 2]| {
            let pieces = pieces(&rows).unwrap();
            (pieces.are_utf8(), pieces.mergeable_are_utf8())
        };
        let halves = |kinds: [u8; 2]| of([(half[0], kinds[0]), (half[1], kinds[1])]);
        assert_eq!(halves([NORMAL, NORMAL]), (false, false));
        assert_eq!(halves([CONTROL, NORMAL]), (false, false));
        assert_eq!(halves([NORMAL, CONTROL]), (false, false));
        assert_eq!(halves([CONTROL, CONTROL]), (false, true));
        assert_eq!(of([("é".as_bytes(), NORMAL), ("a".as_bytes(), NORMAL)]), (true, true));
        assert_eq!(of([("é".as_bytes(), NORMAL), (b"\xFF", CONTROL)]), (false, true));
        assert_eq!(of([("é".as_bytes(), NORMAL), (b"\xE2\x82", NORMAL)]), (false, false));
    }
}
