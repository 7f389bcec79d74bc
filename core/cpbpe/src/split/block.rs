//! The classes of the characters in 64 bytes, as bits: bit i is character i, not byte i.
//!
//! There is one implementation for every machine, and two with vector instructions.

use regex_syntax::hir::{Class, HirKind};

use crate::error::Error;
use crate::machine::{Machine, Plain, BLOCK, MORE};
use crate::memory::zeros;
use crate::text::utf8::decode;

/// 64 bytes, at the beginning of a character, and the bytes after them: the last character may end there, and a
/// contraction.
pub type Bytes = [u8; BLOCK + MORE];

/// A machine that can read blocks.
pub trait Read: Machine {
    /// The characters of a block as this machine reads them.
    type Block: Block;
    /// Read the characters of a block.
    fn read(self, classes: &Classes, bytes: &Bytes) -> Self::Block;
}

/// The characters of a block.
pub trait Block {
    /// How many characters there are.
    fn count(&self) -> usize;
    /// The characters that have any of these flags.
    fn any(&self, flags: Flags) -> u64;
    /// The byte in which a character begins.
    fn place(&self, character: usize) -> usize;
    /// How many characters begin before a byte.
    fn before(&self, byte: usize) -> usize;
    /// Append the places of these characters, plus `base`; there must be room for `BLOCK` numbers. Returns how many.
    fn append(&self, characters: u64, base: u32, to: &mut [u32]) -> usize;
}

/// The highest bit of each of eight bytes.
const HIGHEST: u64 = 0x8080_8080_8080_8080;

/// The characters of a block, on any machine.
pub struct PlainBlock {
    /// The class of each character, followed by zeros.
    flags: [Flags; BLOCK],
    /// The byte in which each begins.
    places: [u8; BLOCK],
    count: usize,
}

impl Read for Plain {
    type Block = PlainBlock;

    #[inline(always)]
    fn read(self, classes: &Classes, bytes: &Bytes) -> PlainBlock {
        let mut flags = [0; BLOCK];
        let mut places = [0; BLOCK];
        if bytes[..BLOCK].is_ascii() {
            for (flags, &byte) in flags.iter_mut().zip(bytes) {
                *flags = classes.ascii[usize::from(byte) & 127];
            }
            for (i, place) in places.iter_mut().enumerate() {
                *place = i as u8;
            }
            return PlainBlock { flags, places, count: BLOCK };
        }
        self.others(classes, bytes)
    }
}

impl Plain {
    /// Read a block that is not all ASCII.
    #[inline(always)]
    fn others(self, classes: &Classes, bytes: &Bytes) -> PlainBlock {
        let (mut flags, mut places) = ([0; BLOCK], [0; BLOCK]);
        let (mut at, mut count) = (0, 0);
        while at < BLOCK {
            let (code, length) = decode(bytes, at);
            flags[count] = classes.of(code);
            places[count] = at as u8;
            count += 1;
            at += length;
        }
        PlainBlock { flags, places, count }
    }
}

impl Block for PlainBlock {
    #[inline(always)]
    fn count(&self) -> usize {
        self.count
    }

    #[inline(always)]
    fn any(&self, flags: Flags) -> u64 {
        let all = u64::from_le_bytes([flags; 8]);
        let mut mask = 0;
        for (i, part) in self.flags.chunks_exact(8).enumerate() {
            let bits = u64::from_le_bytes(part.try_into().unwrap_or_default()) & all;
            // Find the highest bit of each byte that is not 0. The product collects these bits in its own highest byte.
            let set = (((bits & !HIGHEST) + !HIGHEST) | bits) & HIGHEST;
            mask |= ((set >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * i);
        }
        mask
    }

    #[inline(always)]
    fn place(&self, character: usize) -> usize {
        usize::from(self.places[character])
    }

    #[inline(always)]
    fn before(&self, byte: usize) -> usize {
        self.places[..self.count].iter().take_while(|&&place| usize::from(place) < byte).count()
    }

    #[inline(always)]
    fn append(&self, mut characters: u64, base: u32, to: &mut [u32]) -> usize {
        let count = characters.count_ones() as usize;
        for end in &mut to[..count] {
            *end = base + u32::from(self.places[characters.trailing_zeros() as usize]);
            characters &= characters - 1;
        }
        count
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod half {
    use super::*;
    use crate::machine::half::Parts;
    use crate::machine::Half;

    /// The characters of a block, with AVX2 or NEON. (Making one takes a `Half`, so the machine has it.)
    pub struct HalfBlock {
        half: Half,
        /// The class of each character, followed by zeros.
        flags: Parts,
        /// The characters, unless all are ASCII.
        others: Option<PlainBlock>,
    }

    impl Read for Half {
        type Block = HalfBlock;

        #[inline(always)]
        fn read(self, classes: &Classes, bytes: &Bytes) -> HalfBlock {
            let Some(block) = bytes.first_chunk() else { unreachable!("`bytes` is longer than a block") };
            let parts = self.load(block);
            if self.highest(parts) == 0 {
                return HalfBlock { half: self, flags: self.in_table(&classes.ascii, parts), others: None };
            }
            let others = Plain.others(classes, bytes);
            HalfBlock { half: self, flags: self.load(&others.flags), others: Some(others) }
        }
    }

    impl Block for HalfBlock {
        #[inline(always)]
        fn count(&self) -> usize {
            self.others.as_ref().map_or(BLOCK, |others| others.count)
        }

        #[inline(always)]
        fn any(&self, flags: Flags) -> u64 {
            self.half.have(self.flags, flags)
        }

        #[inline(always)]
        fn place(&self, character: usize) -> usize {
            match &self.others {
                Some(others) => others.place(character),
                None => character,
            }
        }

        #[inline(always)]
        fn before(&self, byte: usize) -> usize {
            match &self.others {
                Some(others) => others.before(byte),
                None => byte,
            }
        }

        #[inline(always)]
        fn append(&self, mut characters: u64, base: u32, to: &mut [u32]) -> usize {
            if let Some(others) = &self.others {
                return others.append(characters, base, to);
            }
            let count = characters.count_ones() as usize;
            // (As in `Machine::places`, a few more are written than needed.)
            for four in to[..BLOCK].chunks_exact_mut(4) {
                if characters == 0 {
                    break;
                }
                for end in four {
                    *end = base.wrapping_add(characters.trailing_zeros());
                    characters &= characters.wrapping_sub(1);
                }
            }
            count
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod vector {
    use super::*;
    use crate::machine::vector::{FOUR_TIMES, NUMBERS};
    use crate::machine::Vector;
    use std::arch::x86_64::*;

    /// The characters of a block, with vector instructions. (Making one takes a `Vector`, so the machine has them.)
    pub struct VectorBlock {
        flags: __m512i,
        places: __m512i,
        count: usize,
    }

    impl VectorBlock {
        /// Read a block that is not all ASCII.
        #[inline(always)]
        fn others(vector: Vector, classes: &Classes, bytes: &Bytes, block: __m512i) -> VectorBlock {
            let table = classes.table().as_ptr();
            // SAFETY: `bytes` has 16 bytes after the block. A code has 21 bits at most, and the table has an entry for each, with
            // three more bytes after the last one. See `load`.
            unsafe {
                // (Read as signed numbers, the bytes that continue a character are the lowest ones. A block begins
                // where a character does.)
                let starts = _mm512_cmpge_epi8_mask(block, _mm512_set1_epi8(0xC0u8 as i8)) | 1;
                let count = starts.count_ones() as usize;
                let places = _mm512_maskz_compress_epi8(starts, vector.load(&NUMBERS));
                let more = _mm512_zextsi128_si512(_mm_loadu_si128(bytes[BLOCK..].as_ptr().cast()));
                let shifted = |x, by: i32| _mm512_srlv_epi32(x, _mm512_set1_epi32(by));
                let bits = |x, mask: i32| _mm512_and_si512(x, _mm512_set1_epi32(mask));
                let or = |x, y| _mm512_or_si512(x, y);
                let mut all = [0u8; BLOCK];
                for (part, to) in all.chunks_exact_mut(16).enumerate() {
                    if part * 16 >= count {
                        break;
                    }
                    // 1. The first four bytes of each character, the first one as the highest.
                    let same = _mm512_permutexvar_epi8(vector.load(&FOUR_TIMES[part]), places);
                    let four = _mm512_add_epi8(same, _mm512_set1_epi32(0x0001_0203));
                    let x = _mm512_permutex2var_epi8(block, four, more);
                    // 2. Their code points: of four bytes, of three, of two, and of one.
                    let low = or(bits(shifted(x, 2), 0xFC0), bits(x, 0x3F));
                    let long = or(or(bits(shifted(x, 6), 0x1C_0000), bits(shifted(x, 4), 0x3_F000)), low);
                    let three = or(bits(shifted(x, 12), 0xF000), bits(shifted(x, 10), 0xFC0));
                    let three = or(three, bits(shifted(x, 8), 0x3F));
                    let two = or(bits(shifted(x, 18), 0x7C0), bits(shifted(x, 16), 0x3F));
                    let below = |from: u32| _mm512_cmplt_epu32_mask(x, _mm512_set1_epi32(from as i32));
                    let code = _mm512_mask_mov_epi32(long, below(0xF000_0000), three);
                    let code = _mm512_mask_mov_epi32(code, below(0xE000_0000), two);
                    let code = _mm512_mask_mov_epi32(code, below(0x8000_0000), shifted(x, 24));
                    let left = (count - part * 16).min(16);
                    let code = _mm512_maskz_mov_epi32((0xFFFFu32 >> (16 - left)) as u16, code);
                    // 3. Their classes.
                    let flags = _mm512_i32gather_epi32::<1>(code, table.cast());
                    _mm_storeu_si128(to.as_mut_ptr().cast(), _mm512_cvtepi32_epi8(flags));
                }
                let valid = u64::MAX >> (BLOCK - count);
                VectorBlock { flags: _mm512_maskz_mov_epi8(valid, vector.load(&all)), places, count }
            }
        }
    }

    impl Read for Vector {
        type Block = VectorBlock;

        #[inline(always)]
        fn read(self, classes: &Classes, bytes: &Bytes) -> VectorBlock {
            // SAFETY: `bytes` is longer than a block; see `load`.
            let block = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
            // SAFETY: see `load`.
            if unsafe { _mm512_movepi8_mask(block) } == 0 {
                let (flags, places) = (self.in_table(&classes.ascii, block), self.load(&NUMBERS));
                return VectorBlock { flags, places, count: BLOCK };
            }
            VectorBlock::others(self, classes, bytes, block)
        }
    }

    impl Block for VectorBlock {
        #[inline(always)]
        fn count(&self) -> usize {
            self.count
        }

        #[inline(always)]
        fn any(&self, flags: Flags) -> u64 {
            // SAFETY: see `load`.
            unsafe { _mm512_test_epi8_mask(self.flags, _mm512_set1_epi8(flags as i8)) }
        }

        #[inline(always)]
        fn place(&self, character: usize) -> usize {
            if self.count == BLOCK {
                return character;
            }
            let mut places = [0u8; BLOCK];
            // SAFETY: there is room for 64 bytes; see `load`.
            unsafe { _mm512_storeu_si512(places.as_mut_ptr().cast(), self.places) };
            usize::from(places[character])
        }

        #[inline(always)]
        fn before(&self, byte: usize) -> usize {
            if self.count == BLOCK {
                return byte;
            }
            // SAFETY: see `load`.
            let before = unsafe { _mm512_cmplt_epu8_mask(self.places, _mm512_set1_epi8(byte as i8)) };
            (before & u64::MAX >> (BLOCK - self.count)).count_ones() as usize
        }

        #[inline(always)]
        fn append(&self, characters: u64, base: u32, to: &mut [u32]) -> usize {
            let count = characters.count_ones() as usize;
            let to: &mut [u32] = &mut to[..BLOCK];
            // SAFETY: there is room for 64 numbers; see `load`.
            unsafe {
                let places = _mm512_maskz_compress_epi8(characters, self.places);
                let base = _mm512_set1_epi32(base as i32);
                let wide = |part| _mm512_add_epi32(_mm512_cvtepu8_epi32(part), base);
                let to = to.as_mut_ptr();
                _mm512_storeu_si512(to.cast(), wide(_mm512_castsi512_si128(places)));
                if count > 16 {
                    _mm512_storeu_si512(to.add(16).cast(), wide(_mm512_extracti32x4_epi32::<1>(places)));
                    if count > 32 {
                        _mm512_storeu_si512(to.add(32).cast(), wide(_mm512_extracti32x4_epi32::<2>(places)));
                        _mm512_storeu_si512(to.add(48).cast(), wide(_mm512_extracti32x4_epi32::<3>(places)));
                    }
                }
            }
            count
        }
    }
}

// --- Classes of characters -----------------------------------------------------------------------
//
// The classes of characters that the patterns distinguish.
//
// They are taken from `regex-syntax`, which compiles tiktoken's own patterns, whenever a splitter is made (that takes a
// fifth of a millisecond). So they always have the Unicode version of that crate, and no table can be out of date.

/// The class of a character: some of these bits, or none for signs and everything else without a class.
pub type Flags = u8;

/// `\p{Lu}` and `\p{Lt}`.
pub const UPPER: Flags = 1;
/// `\p{Ll}`.
pub const LOWER: Flags = 1 << 1;
/// `\p{Lm}` and `\p{Lo}`.
pub const CASELESS: Flags = 1 << 2;
/// `\p{M}`, which are not letters.
pub const MARK: Flags = 1 << 3;
/// `\p{N}`.
pub const NUMBER: Flags = 1 << 4;
/// `\s`, except `\r` and `\n`.
pub const BLANK: Flags = 1 << 5;
/// `\r` and `\n`. Together with `SPECIAL`: the slash, a sign that some patterns treat like them after other signs.
pub const NEWLINE: Flags = 1 << 6;
/// Together with `BLANK`: the space. Together with `NEWLINE`: the slash. Alone: the apostrophe.
pub const SPECIAL: Flags = 1 << 7;

/// `\p{L}`.
pub const LETTER: Flags = UPPER | LOWER | CASELESS;

/// The names of the classes in `regex-syntax`. Each character is in at most one of them.
const NAMES: [(&str, Flags); 6] = [
    (r"[\p{Lu}\p{Lt}]", UPPER),
    (r"\p{Ll}", LOWER),
    (r"[\p{Lm}\p{Lo}]", CASELESS),
    (r"\p{M}", MARK),
    (r"\p{N}", NUMBER),
    (r"\s", BLANK),
];

/// How many code points four bytes could encode. With a table of this size, no bytes lead out of it, whatever they are.
const ALL: usize = 1 << 21;

/// The class of each character.
pub struct Classes {
    /// By code point, followed by three more bytes that can be read. (The table is flat because one look-up is faster
    /// than two, by 15 % of the time for text in other languages than English. Parts that nobody writes or reads take
    /// no memory; 200 KB are left.)
    flags: Vec<Flags>,
    /// The same for ASCII.
    pub ascii: [Flags; 128],
}

impl Classes {
    pub fn new() -> Result<Classes, Error> {
        let mut all = zeros::<Flags>(ALL + 3)?;
        for (name, flag) in NAMES {
            for (first, last) in ranges(name)? {
                all[first as usize..=last as usize].fill(flag);
            }
        }
        for (character, flags) in
            [('\r', NEWLINE), ('\n', NEWLINE), (' ', BLANK | SPECIAL), ('\'', SPECIAL), ('/', NEWLINE | SPECIAL)]
        {
            all[character as usize] = flags;
        }
        let mut ascii = [0; 128];
        ascii.copy_from_slice(&all[..128]);
        Ok(Classes { flags: all, ascii })
    }

    /// The class of a code point.
    #[inline(always)]
    pub fn of(&self, code: u32) -> Flags {
        self.flags[code as usize]
    }

    /// The classes of all code points, for instructions that look up many at once.
    pub fn table(&self) -> &[Flags] {
        &self.flags
    }
}

/// The ranges of code points of a class.
fn ranges(name: &str) -> Result<Vec<(char, char)>, Error> {
    let invalid = || Error::InvalidPattern(format!("the class {name} is unknown").into());
    let parsed = regex_syntax::parse(name).map_err(|_| invalid())?;
    match parsed.kind() {
        HirKind::Class(Class::Unicode(class)) => {
            Ok(class.ranges().iter().map(|range| (range.start(), range.end())).collect())
        }
        _ => Err(invalid()),
    }
}
