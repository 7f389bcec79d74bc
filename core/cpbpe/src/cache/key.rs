//! The key by which the cache looks up a chunk.
//!
//! A chunk of up to 15 bytes is its own key: two halves of 64 bits, with its length in the top byte of the first one;
//! up to seven bytes need no second half. The key of a longer one is its hash, with `LONG` as its length. A bit above the
//! length tells parts of chunks from chunks, where that matters.

/// The longest chunk that is remembered.
pub const MAX_LONG: usize = 128;
/// The longest chunk that is its own key.
pub const MAX_CHUNK: usize = 15;
/// The length of a chunk that is not its own key.
pub const LONG: u64 = 16;
/// The length of one that is not remembered at all.
pub const TOO_LONG: u64 = 17;
/// The bit of a part of a byte-level chunk: a chunk that is a piece may be taken whole, and a part with the same text not.
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
    /// The singles before it. They are here, because there is room.
    pub singles: Singles,
}

/// Where some bytes of a batch are, and in the upper half how many. See `cut/words.rs`.
#[derive(Clone, Copy, Default)]
pub struct Singles(pub u32);

impl Singles {
    /// So many, from there.
    #[inline(always)]
    pub fn new(at: usize, count: usize) -> Singles {
        Singles(at as u32 | (count as u32) << 16)
    }

    /// Where they begin.
    #[inline(always)]
    pub fn at(self) -> usize {
        (self.0 & 0xFFFF) as usize
    }

    /// How many they are.
    #[inline(always)]
    pub fn count(self) -> usize {
        (self.0 >> 16) as usize
    }
}

/// For each length the bits of text in the two halves of a key.
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

/// Mixes two numbers into one, each of whose bits depends on all bits of both.
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

    /// The halves of the key of the first `length` of these bytes, at most `MAX_CHUNK`. (A pair of numbers stays in registers, if it is one of two cases. A key was written
    /// to the stack in parts and read as a whole, and the processor waits for that: this took a third of the time.)
    #[inline(always)]
    pub fn short(bytes: &[u8; 16], length: usize) -> (u64, u64) {
        let half = |from: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[from + i]));
        let masks = MASKS[length & 15];
        (half(0) & masks[0] | (length as u64) << 56, half(PER_HALF) & masks[1])
    }

    /// The halves of the key of a longer chunk. One of more than `MAX_LONG` bytes must not be remembered, and its key is
    /// in no cache.
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

    /// The key with these halves; `part`: of a part of a chunk.
    #[inline(always)]
    pub fn of_part([low, high]: [u64; 2], part: bool) -> Key {
        Key::of_halves([low | if part { PART } else { 0 }, high])
    }

    /// Whether it is that of a part of a chunk.
    pub fn is_part(self) -> bool {
        self.halves[0] & PART != 0
    }

    /// The length of the chunk, or `LONG`.
    #[inline(always)]
    pub fn length(self) -> u64 {
        self.halves[0] >> 56 & LENGTH
    }

    /// The hash for its other line.
    pub fn other(self) -> u32 {
        self.hash.rotate_left(15)
    }
}
