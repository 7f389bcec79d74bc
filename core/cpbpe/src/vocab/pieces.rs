//! The pieces of a vocabulary: text, type and rank of each, and look-up by text.
//!
//! Merging looks up texts all the time, and mostly in vain. So texts of up to 16 bytes are handled as one number of
//! 128 bits, without a branch for the length, and a slot of the table holds part of the hash, so that a text that is
//! not a piece is rarely compared with one. For two ASCII characters there is a table of all answers.

use std::hash::{BuildHasher, RandomState};

use crate::error::Error;
use crate::prefetch::prefetch;
use crate::vocab::piece_type::is_mergeable;

/// No piece has this id.
pub const NONE: u32 = u32::MAX;

/// The longest text that is looked up as one number.
pub const WINDOW: usize = 16;

/// Texts of this many bytes are hashed in four lanes.
const LONG: usize = 4 * WINDOW;

/// 32 bytes, so that they are in one line of the machine's caches.
type Slots = [u32; 8];

/// What is known about a piece.
struct PieceInfo {
    /// Where its text begins.
    begin: u32,
    /// See `Pieces::rank`.
    rank: u32,
    length: u16,
    kind: u8,
}

/// The pieces of a vocabulary, by id and by text.
pub struct Pieces {
    /// The texts of all pieces, one after the other, and `WINDOW` bytes.
    blob: Vec<u8>,
    infos: Vec<PieceInfo>,
    /// Open addressing, eight slots at a time. The low `id_bits` of a slot are the id plus one; above them is as much
    /// of the hash as there is room for.
    slots: Vec<Slots>,
    id_bits: u32,
    seed: u64,
    /// How many bytes the longest piece has that can be found.
    longest: usize,
    /// For the ASCII characters `x y`, at `x | y << 7`, the mergeable piece.
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
    /// No pieces yet, with room for `count` of them with this many bytes. The seed is random, so that nobody can make
    /// a model whose pieces collide.
    pub fn new(count: usize, bytes: usize) -> Pieces {
        let slots = (count * 2 / 8).next_power_of_two();
        Pieces {
            blob: Vec::with_capacity(bytes + WINDOW),
            infos: Vec::with_capacity(count),
            slots: vec![[0; 8]; slots],
            id_bits: usize::BITS - count.leading_zeros(),
            seed: RandomState::new().hash_one(count),
            longest: 0,
            ascii: vec![NONE; 1 << 14].into_boxed_slice(),
        }
    }

    /// Add the next piece, and make it `findable` or not.
    pub fn push(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>),
        kind: u8,
        score: f32,
        findable: bool,
    ) -> Result<(), Error> {
        let begin = self.blob.len();
        write(&mut self.blob);
        let length = self.blob.len() - begin;
        let key = score.to_bits();
        // The order of floats by sign and magnitude, reversed: the highest score gets the lowest rank.
        let rank = if key >> 31 == 0 { !(key | 1 << 31) } else { key };
        let (Ok(begin_32), Ok(length)) = (u32::try_from(begin), u16::try_from(length)) else {
            return Err(Error::InvalidModel("its pieces are too long"));
        };
        let info = PieceInfo { begin: begin_32, rank, length, kind };
        self.infos.push(info);
        self.longest = self.longest.max(if findable { usize::from(length) } else { 0 });
        if findable && !self.insert(begin) {
            return Err(Error::InvalidModel("two pieces have the same text"));
        }
        Ok(())
    }

    /// Make the last piece findable; false if another piece has the same text.
    fn insert(&mut self, begin: usize) -> bool {
        let id = self.infos.len() as u32 - 1;
        let text = &self.blob[begin..];
        let hash = self.hash(text);
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            for k in 0..8 {
                let slot = self.slots[at][k];
                if slot == 0 {
                    self.slots[at][k] = self.mark(hash) | (id + 1);
                    if let (&[x @ ..0x80, y @ ..0x80], true) = (text, self.mergeable(id)) {
                        self.ascii[usize::from(x) | usize::from(y) << 7] = id;
                    }
                    return true;
                }
                if self.holds(slot, hash).is_some_and(|other| self.text(other) == text) {
                    return false;
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// Declare that all pieces have been added.
    pub fn finish(&mut self) {
        self.blob.extend_from_slice(&[0; WINDOW]);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.infos.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.infos.is_empty()
    }

    /// The text of a piece.
    #[inline]
    pub fn text(&self, id: u32) -> &[u8] {
        let info = &self.infos[id as usize];
        &self.blob[info.begin as usize..][..usize::from(info.length)]
    }

    /// The type of a piece.
    #[inline]
    pub fn kind(&self, id: u32) -> u8 {
        self.infos[id as usize].kind
    }

    /// Whether merging may make this piece.
    #[inline]
    pub fn mergeable(&self, id: u32) -> bool {
        is_mergeable(self.kind(id))
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
            // Four windows at a time, which do not wait for each other: where merging makes pieces of thousands of
            // bytes, one byte more each time, this is most of the work.
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

    /// The piece in a slot, if it can have this hash.
    #[inline(always)]
    fn holds(&self, slot: u32, hash: u64) -> Option<u32> {
        let id = slot & ((1 << self.id_bits) - 1);
        if slot - id == self.mark(hash) {
            Some(id - 1)
        } else {
            None
        }
    }

    /// Try the pieces that can have this hash.
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
            return None; // without a hash of all of it
        }
        self.search(self.hash(text), |id| self.text(id) == text)
    }

    /// Prepare to look up the first `length` bytes of a window: prefetch the memory that it takes.
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
        let id = self.search(probe.hash, |id| {
            let info = &self.infos[id as usize];
            let text = self.blob[info.begin as usize..].first_chunk();
            // (A longer text that ends in zeros differs in its length.)
            usize::from(info.length) == probe.length
                && text.is_some_and(|text| u128::from_le_bytes(*text) & MASKS[probe.length] == probe.value)
        });
        id.filter(|&id| self.mergeable(id)).unwrap_or(NONE)
    }

    /// The mergeable piece of two ASCII characters, or `NONE`.
    #[inline(always)]
    pub fn find_ascii(&self, x: u8, y: u8) -> u32 {
        self.ascii[usize::from(x & 0x7F) | usize::from(y & 0x7F) << 7]
    }
}

/// Up to 16 bytes as one number.
fn window(text: &[u8]) -> u128 {
    let mut bytes = [0; WINDOW];
    bytes[..text.len()].copy_from_slice(text);
    u128::from_le_bytes(bytes)
}
