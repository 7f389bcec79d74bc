//! The key by which the cache looks up a chunk.
//!
//! A chunk of up to 15 bytes is its own key: two halves of 64 bits, with the length in the top byte of the first half.
//! (A chunk of up to seven bytes leaves the second half empty.) The key of a longer chunk is its hash, with `LONG` as
//! its length. A bit above the length tells a part of a chunk from a whole chunk, where that matters.

/// The longest chunk that is remembered.
pub const MAX_LONG: usize = 128;
/// The longest chunk that is its own key.
pub const MAX_CHUNK: usize = 15;
/// The length of a chunk that is not its own key.
pub const LONG: u64 = 16;
/// The length of a chunk that is too long to be remembered.
pub const TOO_LONG: u64 = 17;
/// Set in the key of a part of a byte-level chunk. A whole chunk that is a piece may be taken as it is, but a part with
/// the same text may not, so the two need different keys.
const PART: u64 = 1 << 63;
/// The bits of the length.
const LENGTH: u64 = 31;
/// Bytes of text in the first half of a key.
pub const PER_HALF: usize = 7;

/// A chunk, ready to be looked up.
#[derive(Clone, Copy, Default)]
pub struct Key {
    /// See the top of this file.
    pub halves: [u64; 2],
    /// Which line of the cache is its home.
    pub hash: u32,
    /// The singles before the chunk. They are stored here because the struct has room for them.
    pub singles: Singles,
}

/// A run of singles in a batch: the lower half says where it begins, the upper half how many singles it has. See
/// `cut/words.rs`.
#[derive(Clone, Copy, Default)]
pub struct Singles(pub u32);

impl Singles {
    /// This many singles, the first of them at this place.
    #[inline(always)]
    pub fn new(at: usize, count: usize) -> Singles {
        Singles(at as u32 | (count as u32) << 16)
    }

    /// Where they begin.
    #[inline(always)]
    pub fn at(self) -> usize {
        (self.0 & 0xFFFF) as usize
    }

    /// How many there are.
    #[inline(always)]
    pub fn count(self) -> usize {
        (self.0 >> 16) as usize
    }
}

/// For each length, the bits of text in the two halves of a key.
const MASKS: [[u64; 2]; 16] = {
    let mut masks = [[0; 2]; 16];
    let mut length = 0;
    while length <= MAX_CHUNK {
        let low = if length < PER_HALF { length } else { PER_HALF };
        masks[length] =
            [(1 << (8 * low)) - 1, if length == MAX_CHUNK { u64::MAX } else { (1 << (8 * (length - low))) - 1 }];
        length += 1;
    }
    masks
};

/// Mix two numbers into one whose every bit depends on all bits of both.
#[inline(always)]
fn fold(low: u64, high: u64) -> u64 {
    let product = u128::from(low ^ 0x9E37_79B9_7F4A_7C15) * u128::from(high ^ 0xC2B2_AE3D_27D4_EB4F);
    product as u64 ^ (product >> 64) as u64
}

impl Key {
    /// The key with these halves.
    #[inline(always)]
    pub fn of_halves(halves: [u64; 2]) -> Key {
        Key { halves, hash: fold(halves[0], halves[1]) as u32, singles: Singles(0) }
    }

    /// The halves of the key of the first `length` of these bytes, at most `MAX_CHUNK`. (They are returned as a pair of
    /// numbers, which stays in registers even if it comes from one of two branches. A `Key` was written to the stack in
    /// parts and read back as a whole, which the processor has to wait for; that took a third of the time.)
    #[inline(always)]
    pub fn short(bytes: &[u8; 16], length: usize) -> (u64, u64) {
        let half = |from: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[from + i]));
        let masks = MASKS[length & 15];
        (half(0) & masks[0] | (length as u64) << 56, half(PER_HALF) & masks[1])
    }

    /// The halves of the key of a longer chunk. A chunk of more than `MAX_LONG` bytes must not be remembered, and no
    /// cache contains its key.
    #[inline(never)]
    pub fn long(chunk: &[u8]) -> (u64, u64) {
        if chunk.len() > MAX_LONG {
            return (TOO_LONG << 56, 0);
        }
        let mut state = [chunk.len() as u64, 0];
        let mut add = |block: &[u8; 16]| {
            let value = u128::from_le_bytes(*block);
            state = [
                fold(state[0] ^ value as u64, (value >> 64) as u64),
                state[1].rotate_left(23) ^ fold(value as u64, state[1]) ^ (value >> 64) as u64,
            ];
        };
        let mut rest = chunk;
        while let Some((block, more)) = rest.split_first_chunk::<16>() {
            add(block);
            rest = more;
        }
        if let Some(block) = chunk.last_chunk::<16>() {
            add(block);
        }
        (state[0] >> 8 | LONG << 56, state[1])
    }

    /// The halves of the key of a chunk in a text, after which at least 16 more bytes can be read.
    #[inline(always)]
    pub fn halves(text: &[u8], begin: usize, end: usize) -> [u64; 2] {
        let (low, high) = match text[begin..].first_chunk() {
            Some(bytes) if end - begin <= MAX_CHUNK => Key::short(bytes, end - begin),
            _ => Key::long(&text[begin..end]),
        };
        [low, high]
    }

    /// The key of a chunk.
    pub fn of(chunk: &[u8]) -> Key {
        let mut bytes = [0; 16];
        let (low, high) = match bytes.get_mut(..chunk.len()) {
            Some(begin) if chunk.len() <= MAX_CHUNK => {
                begin.copy_from_slice(chunk);
                Key::short(&bytes, chunk.len())
            }
            _ => Key::long(chunk),
        };
        Key::of_halves([low, high])
    }

    /// The key with these halves. `part`: whether it is for a part of a chunk.
    #[inline(always)]
    pub fn of_part([low, high]: [u64; 2], part: bool) -> Key {
        Key::of_halves([low | if part { PART } else { 0 }, high])
    }

    /// Whether this is the key of a part of a chunk.
    pub fn is_part(self) -> bool {
        self.halves[0] & PART != 0
    }

    /// The length of the chunk, or `LONG`.
    #[inline(always)]
    pub fn length(self) -> u64 {
        self.halves[0] >> 56 & LENGTH
    }

    /// The hash that leads to the other line of the chunk.
    pub fn other(self) -> u32 {
        self.hash.rotate_left(15)
    }
}

// --- Results -------------------------------------------------------------------------------------
//
// The result for a chunk, in one cell of the cache: up to four ids, or the place outside the table where more of them
// are kept ("aside").
//
// The ids are laid out so that two operations turn them into the four numbers of a result:
//
// ```text
// bit   63 62    61 .......... 32   31 30   29 ........... 0
//       count-1  the second ids     kind    the first ids          ids of 15 bits: 1st and 3rd, 2nd and 4th
//                                           where they are kept    when there are more, or larger ones
// ```
//
// Ids of 20 bits use the same places; a third one is split between the two halves. There is no fourth.

/// How many bits an id takes in a small vocabulary, and in larger ones.
const SMALL: u32 = 15;
const LARGE: u32 = 20;
/// The most pieces of a small vocabulary.
pub const SMALL_VOCABULARY: usize = 1 << SMALL;
/// How many ids a cell has room for, and how many numbers `PackedIds::ids` returns.
pub const ROOM: usize = 4;
/// The lowest bit of each half of a cell.
const BOTH: u64 = 1 << 32 | 1;
/// How many bits of a half can hold ids.
const HALF: u32 = 30;
const KIND: u64 = 3 << HALF;
const ASIDE: u64 = 1 << HALF;
const COMPARE: u64 = 2 << HALF;
const COUNT: u32 = 62;

/// A cell as described above.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PackedIds(pub u64);

/// The meaning of a cell that holds no ids.
pub enum NotPacked {
    /// The ids are kept aside at this place.
    Aside(usize),
    /// The chunk may be another one with the same hash. The text to compare, and the ids, are kept aside at this place.
    Compare(usize),
    /// The chunk is not in the cache.
    Absent,
}

impl PackedIds {
    /// The chunk is not in the cache.
    pub const ABSENT: PackedIds = PackedIds(u64::MAX);

    /// The cell for these ids, if they fit.
    pub fn of_ids(ids: &[u32], small: bool) -> Option<PackedIds> {
        let (bits, room) = if small { (SMALL, ROOM) } else { (LARGE, ROOM - 1) };
        if ids.is_empty() || ids.len() > room || ids.iter().any(|&id| id >> bits != 0) {
            return None;
        }
        let id = |i: usize| u64::from(ids.get(i).copied().unwrap_or(0));
        let rest = if small {
            (id(2) | id(3) << 32) << SMALL
        } else {
            let low = HALF - LARGE;
            (id(2) & ((1 << low) - 1) | (id(2) >> low) << 32) << LARGE
        };
        Some(PackedIds((ids.len() as u64 - 1) << COUNT | id(0) | id(1) << 32 | rest))
    }

    /// The cell for a result that is kept aside at `place`, a number of at most 30 bits. `compare`: whether the text
    /// has to be compared.
    pub fn aside(place: usize, compare: bool) -> PackedIds {
        PackedIds(place as u64 | if compare { COMPARE } else { ASIDE })
    }

    /// Whether the ids are in this cell.
    #[inline(always)]
    pub fn is_ids(self) -> bool {
        self.0 & KIND == 0
    }

    /// What the cell means if it holds no ids.
    pub fn not_packed(self) -> NotPacked {
        let place = (self.0 & (ASIDE - 1)) as usize;
        match self.0 & KIND {
            ASIDE => NotPacked::Aside(place),
            COMPARE => NotPacked::Compare(place),
            _ => NotPacked::Absent,
        }
    }

    /// How many ids there are.
    #[inline(always)]
    pub fn count(self) -> usize {
        (self.0 >> COUNT) as usize + 1
    }

    /// The ids, followed by meaningless numbers.
    #[inline(always)]
    pub fn ids<const SMALL_IDS: bool>(self) -> [u32; ROOM] {
        let bits = if SMALL_IDS { SMALL } else { LARGE };
        let mask = ((1 << bits) - 1) * BOTH;
        let first = self.0 & mask;
        if SMALL_IDS {
            let second = self.0 >> bits & mask;
            [first as u32, (first >> 32) as u32, second as u32, (second >> 32) as u32]
        } else {
            let low = HALF - LARGE;
            let mask = ((1 << low) - 1) * BOTH;
            let rest = self.0 >> LARGE & mask;
            [first as u32, (first >> 32) as u32, (rest | rest >> (32 - low)) as u32, 0]
        }
    }
}

// --- Singles -------------------------------------------------------------------------------------
//
// The ids of singles, which are written between those of words, and where they come from.

/// The singles of a batch.
pub trait Source: Copy {
    /// Write the ids of the singles before a word. Returns where they end.
    ///
    /// # Safety
    /// The singles, and `STEP` more, must be in the source. There must be room for their ids, and for `STEP` more.
    unsafe fn write(self, singles: Singles, end: *mut u32) -> *mut u32;
    /// The id of the last of these singles, if it may be one that fuses with an equal neighbour.
    fn last(self, singles: Singles) -> Option<u32>;
}

/// How many singles are written at once, and so the most that are written beyond the end.
pub const STEP: usize = 32;
/// How many ids of bytes are written before their number is looked at. This is enough for most words.
pub const FEW: usize = 8;
/// The same for characters. More of them lie between two words, so this is 1.01 to 1.04 times as fast as eight.
pub const SOME: usize = STEP;

/// Singles that are bytes of a text.
#[derive(Clone, Copy)]
pub struct Bytes<'a> {
    /// The text, from where the batch begins.
    pub text: &'a [u8],
    /// The id of each byte.
    pub ids: &'a [u32; 256],
}

impl Source for Bytes<'_> {
    #[inline(always)]
    unsafe fn write(self, singles: Singles, end: *mut u32) -> *mut u32 {
        let (at, count) = (singles.at(), singles.count());
        let mut i = 0;
        // Most words have no single before them, a quarter have one. Always writing two takes fewer steps than finding
        // out.
        loop {
            debug_assert!(at + i + 2 <= self.text.len());
            // SAFETY: as the caller says.
            unsafe {
                let [a, b] = self.text.as_ptr().add(at + i).cast::<[u8; 2]>().read();
                let ids = [self.ids[usize::from(a)], self.ids[usize::from(b)]];
                end.wrapping_add(i).cast::<[u32; 2]>().write_unaligned(ids);
            }
            i += 2;
            if i >= count {
                return end.wrapping_add(count);
            }
        }
    }

    fn last(self, _: Singles) -> Option<u32> {
        None
    }
}

/// Singles whose ids are known already: those of characters or, with vector instructions, those of bytes, because the
/// ids of all bytes of a batch are then made together. (This is 1.04 to 1.09 times as fast as `Bytes`, and 1.2 times
/// for hexadecimal numbers.) The first `FIRST` are written before their number is looked at.
#[derive(Clone, Copy)]
pub struct Ids<'a, const FIRST: usize>(pub &'a [u32]);

impl<const FIRST: usize> Source for Ids<'_, FIRST> {
    #[inline(always)]
    unsafe fn write(self, singles: Singles, end: *mut u32) -> *mut u32 {
        const { assert!(FIRST <= STEP) };
        let (at, count) = (singles.at(), singles.count());
        debug_assert!(at + count + STEP <= self.0.len());
        let (from, end_of_all) = (self.0.as_ptr().wrapping_add(at), end.wrapping_add(count));
        // SAFETY: as the caller says.
        unsafe {
            end.cast::<[u32; FIRST]>().write_unaligned(from.cast::<[u32; FIRST]>().read_unaligned());
            let mut i = FIRST;
            while i < count {
                let ids = from.add(i).cast::<[u32; STEP]>().read_unaligned();
                end.add(i).cast::<[u32; STEP]>().write_unaligned(ids);
                i += STEP;
            }
        }
        end_of_all
    }

    fn last(self, singles: Singles) -> Option<u32> {
        self.0[singles.at()..][..singles.count()].last().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back() {
        for small in [true, false] {
            let bits = if small { SMALL } else { LARGE };
            for i in 0..100_000u64 {
                let mix = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                let ids: Vec<u32> =
                    (0..i % 6).map(|k| (mix.rotate_left(13 * k as u32) as u32) >> (32 - bits)).collect();
                let Some(packed) = PackedIds::of_ids(&ids, small) else {
                    assert!(ids.is_empty() || ids.len() > if small { 4 } else { 3 });
                    continue;
                };
                assert!(packed.is_ids() && packed.count() == ids.len());
                let all = if small { packed.ids::<true>() } else { packed.ids::<false>() };
                assert_eq!(all[..ids.len()], ids);
            }
            assert!(PackedIds::of_ids(&[1 << bits], small).is_none());
            assert!(PackedIds::of_ids(&[(1 << bits) - 1; 3], small).is_some_and(PackedIds::is_ids));
        }
    }

    #[test]
    fn cells_without_ids_are_told_apart() {
        assert!(!PackedIds::ABSENT.is_ids() && matches!(PackedIds::ABSENT.not_packed(), NotPacked::Absent));
        assert!(matches!(PackedIds::aside(0, false).not_packed(), NotPacked::Aside(0)));
        assert!(matches!(PackedIds::aside((1 << 30) - 1, true).not_packed(), NotPacked::Compare(0x3FFF_FFFF)));
    }
}
