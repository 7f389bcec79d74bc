//! The steps of encoding for which some machines have instructions of their own.
//!
//! `Plain` works on every machine. `Vector` is for x86-64 with AVX-512 (VBMI and VBMI2), and handles the 64 bytes of a
//! block, or of a line of the cache, at once. `Half` is for x86-64 with AVX2, which handles 32 bytes at once, and for ARM
//! with NEON, which handles 16, where that takes less time. All work on plain tables and know nothing of models.

use std::sync::atomic::{AtomicU8, Ordering};

/// How many bytes are cut together.
pub const BLOCK: usize = 64;
/// How many bytes after a block are read, because the last character of the block may end there.
pub const MORE: usize = 16;
/// How many chunks `Machine::words` is given.
pub const CHUNKS: usize = 16;
/// The cells of a line of the cache; see `cache/mod.rs`.
pub const LINE: usize = 8;
/// How many numbers a `CharacterTable` has: one for each code point of up to three bytes, and one for all others.
pub const CHARACTERS: usize = (1 << 16) + 1;

/// A byte for each pair of bytes `x y`, at `x | y << 8`.
pub type PairTable = [u8; 1 << 16];
/// Classes of ASCII characters, as bits, for the left and for the right character of a pair; see `Classes` in
/// `vocab/joinable.rs`.
pub type ClassTables = [[[u8; 2 * BLOCK]; 2]; 4];
/// A number for each ASCII character: one table for each of its three lower bytes.
pub type Planes = [[u8; 2 * BLOCK]; 3];

/// Numbers for characters, by code point. All characters of four bytes share the last one.
#[derive(Clone, Copy)]
pub struct CharacterTable<'a> {
    /// The numbers.
    pub entries: &'a [u32; CHARACTERS],
    /// The number that an entry of 0 stands for.
    pub default: u32,
    /// The bits of a number that hold an id.
    pub id_bits: u32,
}

/// The instructions of a machine that are used. Each of these includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Instructions {
    /// Those that every machine of this kind has.
    Plain,
    /// On x86-64 AVX2, BMI1, BMI2, POPCNT and LZCNT; on ARM NEON.
    Half,
    /// AVX-512 with VBMI and VBMI2.
    Vector,
}

impl Instructions {
    /// All of them.
    pub const ALL: [Instructions; 3] = [Instructions::Plain, Instructions::Half, Instructions::Vector];
}

/// The most that a model may use if it is loaded from now on, as a number; `UNKNOWN` until somebody asks.
static MOST: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = u8::MAX;

/// Choose the most that models use if they are loaded from now on; it is used as far as the machine has it. This is for
/// tests, which compare the implementations. (Everybody else sets the variable `CPBPE_MACHINE`: plain, avx2, neon or
/// avx512. `cpbpe/engine/choice.py` refuses other values.)
pub fn use_at_most(instructions: Instructions) {
    MOST.store(instructions as u8, Ordering::Relaxed);
}

/// Whether these instructions may be used.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn may_use(instructions: Instructions) -> bool {
    if MOST.load(Ordering::Relaxed) == UNKNOWN {
        use_at_most(match std::env::var("CPBPE_MACHINE").as_deref() {
            Ok("plain") => Instructions::Plain,
            Ok("avx2" | "neon") => Instructions::Half,
            _ => Instructions::Vector,
        });
    }
    instructions as u8 <= MOST.load(Ordering::Relaxed)
}

/// An x86-64 machine with AVX-512. A `Vector` is proof that the machine has these instructions, because only `detect`
/// makes one.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub struct Vector(());

/// An x86-64 machine with AVX2, and with instructions that count and find bits, or an ARM machine with NEON. A `Half` is
/// proof of that, too.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[derive(Clone, Copy)]
pub struct Half(());

/// No other machine has these instructions, so there is no value of this type.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy)]
pub enum Vector {}

/// No other machine has these instructions, so there is no value of this type.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[derive(Clone, Copy)]
pub enum Half {}

impl Vector {
    /// `None` if this machine does not have the instructions, or should not use them.
    pub fn detect() -> Option<Vector> {
        #[cfg(target_arch = "x86_64")]
        if may_use(Instructions::Vector)
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("avx512vbmi2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("lzcnt")
        {
            return Some(Vector(()));
        }
        None
    }
}

impl Half {
    /// `None` if this machine does not have the instructions, or should not use them.
    pub fn detect() -> Option<Half> {
        #[cfg(target_arch = "x86_64")]
        if may_use(Instructions::Half)
            && is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("lzcnt")
        {
            return Some(Half(()));
        }
        // (All systems that Rust knows for this processor have NEON. The masks are made for little-endian ones.)
        #[cfg(target_arch = "aarch64")]
        if may_use(Instructions::Half) && cfg!(all(target_feature = "neon", target_endian = "little")) {
            return Some(Half(()));
        }
        None
    }
}

/// The best implementation for this machine.
#[derive(Clone, Copy)]
pub enum Best {
    Plain,
    Half(Half),
    Vector(Vector),
}

impl Best {
    /// Ask the machine. Without `vectors`, at most `Half` is chosen: `Vector` takes ids to have three bytes (`Planes`,
    /// `CharacterTable`), which those of a vocabulary with 2^24 pieces or more do not.
    pub fn detect(vectors: bool) -> Best {
        if let Some(vector) = Vector::detect().filter(|_| vectors) {
            return Best::Vector(vector);
        }
        Half::detect().map_or(Best::Plain, Best::Half)
    }
}

/// The steps that this file is about. They are written here as any machine can do them; an implementation overrides
/// those that it does faster.
pub trait Machine: Copy {
    /// The vector instructions, if this implementation uses them.
    #[inline(always)]
    fn vector(self) -> Option<Vector> {
        None
    }

    /// AVX2 and what comes with it, if this implementation uses that. (NEON cannot move bits next to each other.)
    #[inline(always)]
    fn avx2(self) -> Option<Half> {
        None
    }

    /// The cuts before the bytes of a block, as bits, as far as bytes alone can tell: those for which `pairs` has 1 for
    /// the byte and the one before it. `before` is the byte before the block. (An implementation that uses `classes`,
    /// which is less precise, may miss some of these cuts, but finds no others.)
    #[inline(always)]
    fn cuts(self, pairs: &PairTable, _classes: &ClassTables, block: &[u8; BLOCK], before: u8) -> u64 {
        let mut mask = u64::from(pairs[usize::from(u16::from_le_bytes([before, block[0]]))]);
        // There are no branches, and no step waits for the one before it, so this takes little more than half a cycle
        // per byte.
        for begin in (0..BLOCK).step_by(16) {
            let mut bits = 0u64;
            for i in (begin..begin + 16).rev() {
                if i + 1 < BLOCK {
                    // SAFETY: both bytes are in the block. (If the two bytes are indexed, the compiler does not combine
                    // them into one load.)
                    let pair = unsafe { block.as_ptr().add(i).cast::<u16>().read_unaligned() };
                    bits = bits * 2 + u64::from(pairs[usize::from(u16::from_le(pair))]);
                }
            }
            mask |= bits << begin << 1;
        }
        mask
    }

    /// Which bytes of a block begin a character for which `cuts` is too coarse, as bits. (That depends on how `cuts` is
    /// implemented: here these are the characters of three bytes and more; for a `Vector`, all that are not ASCII.)
    #[inline(always)]
    fn long(self, block: &[u8; BLOCK]) -> u64 {
        // Characters of three bytes and more begin with a byte whose three highest bits are set.
        collect_highest(block, |number| number & number << 1 & number << 2)
    }

    /// How many bytes of a block are not ASCII.
    #[inline(always)]
    fn count_others(self, block: &[u8; BLOCK]) -> u32 {
        let number = |part: &[u8]| u64::from_le_bytes(part.try_into().unwrap_or_default());
        block.chunks_exact(8).map(|part| (number(part) & HIGHEST).count_ones()).sum()
    }

    /// Which bytes of a block have a 1 in a table, as bits. The table has 0 for all bytes that are not ASCII.
    #[inline(always)]
    fn marked(self, table: &[u8; 256], block: &[u8; BLOCK]) -> u64 {
        block.iter().rev().fold(0, |bits, &byte| bits << 1 | u64::from(table[usize::from(byte)]))
    }

    /// Whether a block is ASCII.
    #[inline(always)]
    fn is_ascii(self, block: &[u8; BLOCK]) -> bool {
        block.is_ascii()
    }

    /// Write the numbers of the bits that are set, plus `offset`. What is written after them has no meaning.
    #[inline(always)]
    fn places(self, mut bits: u64, offset: u8, to: &mut [u8; BLOCK]) {
        // Always write eight numbers at a time: a few that are not needed cost less than a loop whose end the processor
        // cannot predict.
        for eight in to.chunks_exact_mut(8) {
            if bits == 0 {
                break;
            }
            for place in eight {
                *place = offset.wrapping_add(bits.trailing_zeros() as u8);
                bits &= bits.wrapping_sub(1);
            }
        }
    }

    /// The result that a line of the cache has for a key, if it has one.
    #[inline(always)]
    fn look(self, line: &[u64; LINE], [a, b]: [u64; 2]) -> Option<u64> {
        // A line has two wide places, for both halves of a key and a result, and then a narrow one, for one half and a
        // result. There are no branches, because it is unpredictable where in the line the key is.
        let not_first = usize::from((line[0] ^ a) | (line[1] ^ b) != 0);
        let not_second = usize::from((line[3] ^ a) | (line[4] ^ b) != 0);
        let not_narrow = usize::from(line[6] != a);
        let case = not_narrow << 2 | not_second << 1 | not_first;
        // Where the result is, for each case.
        const AT: [u8; 8] = [7, 7, 7, 7, 2, 5, 2, 0];
        (case != 7).then(|| line[usize::from(AT[case]) & (LINE - 1)])
    }

    /// Write where words, which are chunks of several bytes, begin and end, counted from `base`. The chunks end at
    /// `ends`; each begins where the one before it ends, the first at `from`. The first chunk of more than `longest`
    /// bytes, and those after it, are left out. Return how many chunks come before that one, and how many of these are
    /// words. What is written after the words has no meaning.
    #[inline(always)]
    fn words(
        self,
        ends: &[u32; CHUNKS],
        from: u32,
        base: u32,
        longest: u32,
        to: [&mut [u32; CHUNKS]; 2],
    ) -> [usize; 2] {
        let (mut from, mut count) = (from, 0);
        for (taken, &end) in ends.iter().enumerate() {
            if end - from > longest {
                return [taken, count];
            }
            (to[0][count & (CHUNKS - 1)], to[1][count & (CHUNKS - 1)]) = (from - base, end - base);
            count += usize::from(end - from > 1);
            from = end;
        }
        [CHUNKS, count]
    }
}

/// A machine that handles the characters of a block as bits.
#[cfg(target_arch = "x86_64")]
pub trait Masks: Machine {
    /// Which bytes of a block are not ASCII, and which begin a character, as bits.
    fn kinds(self, block: &[u8; BLOCK]) -> [u64; 2];

    /// Move the numbers for which a bit is set to the front.
    fn keep(self, bits: u64, numbers: &mut [u32; BLOCK]);

    /// The bits at the places that are set in `places`, moved next to each other.
    #[inline(always)]
    fn extract(self, bits: u64, places: u64) -> u64 {
        // SAFETY: the machine has the instruction, because those that are `Masks` have BMI2. (The same holds below.)
        unsafe { std::arch::x86_64::_pext_u64(bits, places) }
    }

    /// The reverse of `extract`: the lowest bits, spread over the places that are set in `places`.
    #[inline(always)]
    fn deposit(self, bits: u64, places: u64) -> u64 {
        // SAFETY: see `extract`.
        unsafe { std::arch::x86_64::_pdep_u64(bits, places) }
    }

    /// Write the ids of the characters of a block, which begin at the places that are set in `starts`. What is written
    /// after them has no meaning. Return, for each of `flags`, which characters have it in their entry, as bits. Bits
    /// after the last character have no meaning.
    fn entries<const N: usize>(
        self,
        characters: CharacterTable,
        text: &[u8; BLOCK + MORE],
        starts: u64,
        flags: [u32; N],
        to: &mut [u32; BLOCK],
    ) -> [u64; N];
}

/// The highest bit of each of eight bytes.
const HIGHEST: u64 = 0x8080_8080_8080_8080;

/// The implementation for any machine.
#[derive(Clone, Copy)]
pub struct Plain;

impl Plain {
    /// The bytes of a block that begin a character, as bits.
    #[inline(always)]
    pub fn starts(self, block: &[u8; BLOCK]) -> u64 {
        // A byte that continues a character begins with the bits 10.
        collect_highest(block, |number| !number | number << 1)
    }
}

/// The highest bit of each byte of a block, as bits, after `change` was applied to the block, eight bytes at a time.
#[inline(always)]
fn collect_highest(block: &[u8; BLOCK], change: impl Fn(u64) -> u64) -> u64 {
    let mut mask = 0;
    for (i, part) in block.chunks_exact(8).enumerate() {
        let number = change(u64::from_le_bytes(part.try_into().unwrap_or_default()));
        // The product collects the highest bits of all bytes in its own highest byte.
        mask |= (((number & HIGHEST) >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * i);
    }
    mask
}

impl Machine for Plain {}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub mod half;

#[cfg(target_arch = "x86_64")]
pub mod vector {
    use std::arch::x86_64::*;

    use super::*;

    /// The numbers from 0 to 63.
    pub const NUMBERS: [u8; BLOCK] = {
        let mut numbers = [0; BLOCK];
        let mut i = 0;
        while i < BLOCK {
            numbers[i] = i as u8;
            i += 1;
        }
        numbers
    };

    /// The numbers from 0 to 63, each four times, divided into four parts.
    pub const FOUR_TIMES: [[u8; BLOCK]; 4] = {
        let mut parts = [[0; BLOCK]; 4];
        let mut i = 0;
        while i < 4 * BLOCK {
            parts[i / BLOCK][i % BLOCK] = (i / 4) as u8;
            i += 1;
        }
        parts
    };

    impl Vector {
        /// Read 64 bytes.
        #[inline(always)]
        pub fn load(self, bytes: &[u8; BLOCK]) -> __m512i {
            // SAFETY: they can be read, and the machine has the instruction because there is a `Vector`. (The same
            // holds below.)
            unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
        }

        /// The bytes that a table has at 64 places. Only the seven lower bits of each place count.
        #[inline(always)]
        pub fn in_table(self, table: &[u8; 2 * BLOCK], places: __m512i) -> __m512i {
            let (low, high) = table.split_at(BLOCK);
            // SAFETY: both halves can be read; see `load`.
            unsafe {
                let (low, high) = (_mm512_loadu_si512(low.as_ptr().cast()), _mm512_loadu_si512(high.as_ptr().cast()));
                _mm512_permutex2var_epi8(low, places, high)
            }
        }

        /// Write the ids of the bytes of a block, if all of them are ASCII.
        #[inline(always)]
        pub fn ids(self, planes: &Planes, block: &[u8; BLOCK], to: &mut [u32; BLOCK]) {
            // SAFETY: 16 ids at a time are written to the places of 64; see `load`.
            unsafe {
                let bytes = self.load(block);
                let [a, b, c] = planes;
                let (a, b, c) = (self.in_table(a, bytes), self.in_table(b, bytes), self.in_table(c, bytes));
                let zero = _mm512_setzero_si512();
                // The registers consist of quarters of 16 bytes, and unpacking works within each quarter.
                let (low, high) = (_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b));
                let (low2, high2) = (_mm512_unpacklo_epi8(c, zero), _mm512_unpackhi_epi8(c, zero));
                let x = [
                    _mm512_unpacklo_epi16(low, low2),
                    _mm512_unpackhi_epi16(low, low2),
                    _mm512_unpacklo_epi16(high, high2),
                    _mm512_unpackhi_epi16(high, high2),
                ];
                // The quarters of x[i] are the ids 4 i to 4 i + 3 of each quarter of the block. Bring them into order.
                let p = _mm512_shuffle_i32x4::<0x44>(x[0], x[1]);
                let q = _mm512_shuffle_i32x4::<0xEE>(x[0], x[1]);
                let r = _mm512_shuffle_i32x4::<0x44>(x[2], x[3]);
                let s = _mm512_shuffle_i32x4::<0xEE>(x[2], x[3]);
                let to = to.as_mut_ptr();
                _mm512_storeu_si512(to.cast(), _mm512_shuffle_i32x4::<0x88>(p, r));
                _mm512_storeu_si512(to.add(16).cast(), _mm512_shuffle_i32x4::<0xDD>(p, r));
                _mm512_storeu_si512(to.add(32).cast(), _mm512_shuffle_i32x4::<0x88>(q, s));
                _mm512_storeu_si512(to.add(48).cast(), _mm512_shuffle_i32x4::<0xDD>(q, s));
            }
        }
    }

    /// The places of the highest bytes of 16 numbers, and of 16 more that follow them.
    const HIGHEST: [u8; BLOCK] = {
        let mut places = [0; BLOCK];
        let mut i = 0;
        while i < BLOCK {
            places[i] = (4 * i + 3) as u8;
            i += 1;
        }
        places
    };

    /// The numbers that a table has at the first `count` of 16 places. The numbers after them have no meaning.
    ///
    /// There is an instruction for this, but on some machines it waits for one number after the other. If the numbers
    /// are read one by one, the machine can go on with whatever comes next in the meantime. This is 1.08 to 1.10 times
    /// as fast for Chinese and Japanese.
    ///
    /// # Safety
    /// All 16 places must be in the table.
    #[inline(always)]
    unsafe fn gathered(_: Vector, table: &[u32; CHARACTERS], places: __m512i, count: usize) -> __m512i {
        // SAFETY: as the caller says; see `load`.
        unsafe {
            let at = |place: u32| *table.get_unchecked(place as usize) as i32;
            let four = |places: __m128i| {
                let (low, high) = (_mm_cvtsi128_si64(places) as u64, _mm_extract_epi64::<1>(places) as u64);
                _mm_setr_epi32(at(low as u32), at((low >> 32) as u32), at(high as u32), at((high >> 32) as u32))
            };
            let mut found = _mm512_zextsi128_si512(four(_mm512_castsi512_si128(places)));
            if count > 4 {
                found = _mm512_inserti32x4::<1>(found, four(_mm512_extracti32x4_epi32::<1>(places)));
            }
            if count > 8 {
                found = _mm512_inserti32x4::<2>(found, four(_mm512_extracti32x4_epi32::<2>(places)));
                found = _mm512_inserti32x4::<3>(found, four(_mm512_extracti32x4_epi32::<3>(places)));
            }
            found
        }
    }

    /// The code points of 16 characters, given the first four bytes of each. All characters of four bytes get the same
    /// number. Whatever the bytes are, the numbers are below `CHARACTERS`.
    #[inline(always)]
    fn code_points(_: Vector, bytes: __m512i) -> __m512i {
        // SAFETY: see `load`.
        unsafe {
            let all = |bits: i32| _mm512_set1_epi32(bits);
            // 1. Which of them are longer than one byte, than two, and than three?
            let two = _mm512_test_epi32_mask(bytes, all(0x80));
            let three = _mm512_mask_test_epi32_mask(two, bytes, all(0x20));
            let four = _mm512_mask_test_epi32_mask(three, bytes, all(0x10));
            // 2. The bits of the first two bytes, side by side, and those of the third one.
            let parts = _mm512_maddubs_epi16(_mm512_and_si512(bytes, all(0x003F_3F1F)), all(0x0001_0140));
            // 3. The code points.
            let code = _mm512_and_si512(bytes, all(0x7F));
            let code = _mm512_mask_and_epi32(code, two, parts, all(0xFFFF));
            let code = _mm512_mask_madd_epi16(code, three, parts, all(0x0001_0040));
            _mm512_mask_mov_epi32(code, four, all((CHARACTERS - 1) as i32))
        }
    }

    /// A block of text, and what is known about its characters. (A closure in its place took four times as long: one
    /// that is called twice is not inlined, and does not know the machine's instructions.)
    struct Block<'a> {
        vector: Vector,
        characters: CharacterTable<'a>,
        /// Its bytes, and those that follow it.
        bytes: [__m512i; 2],
        /// Where its characters begin.
        places: __m512i,
        /// How many characters there are.
        count: usize,
    }

    impl Block<'_> {
        /// Write the ids of a quarter of the characters to their places, and return their entries.
        #[inline(always)]
        fn sixteen<const PART: usize>(&self, to: &mut [u32; BLOCK]) -> __m512i {
            const { assert!(PART < BLOCK / 16) };
            let (vector, CharacterTable { entries, default, id_bits }) = (self.vector, self.characters);
            // SAFETY: the table has an entry for each number that `code_points` returns, and each quarter of `to` has
            // room for 16 ids; see `load`.
            unsafe {
                let first = _mm512_permutexvar_epi8(vector.load(&FOUR_TIMES[PART]), self.places);
                let four = _mm512_add_epi8(first, _mm512_set1_epi32(0x0302_0100));
                let code = code_points(vector, _mm512_permutex2var_epi8(self.bytes[0], four, self.bytes[1]));
                let entries = gathered(vector, entries, code, self.count.saturating_sub(PART * 16));
                let none = _mm512_testn_epi32_mask(entries, entries);
                let entries = _mm512_mask_mov_epi32(entries, none, _mm512_set1_epi32(default as i32));
                let ids = _mm512_and_si512(entries, _mm512_set1_epi32(id_bits as i32));
                _mm512_storeu_si512(to.as_mut_ptr().add(PART * 16).cast(), ids);
                entries
            }
        }

        /// Write the ids of a quarter and of the next one. Return the highest bytes of their entries; what comes after
        /// them has no meaning.
        #[inline(always)]
        fn highest<const PART: usize, const NEXT: usize>(&self, to: &mut [u32; BLOCK]) -> __m512i {
            let (low, high) = (self.sixteen::<PART>(to), self.sixteen::<NEXT>(to));
            // SAFETY: see `load`.
            unsafe { _mm512_permutex2var_epi8(low, self.vector.load(&HIGHEST), high) }
        }
    }

    impl Masks for Vector {
        #[inline(always)]
        fn kinds(self, block: &[u8; BLOCK]) -> [u64; 2] {
            // SAFETY: see `load`.
            unsafe {
                let bytes = self.load(block);
                // (Read as signed numbers, the bytes that continue a character are the lowest ones.)
                [_mm512_movepi8_mask(bytes), _mm512_cmpge_epi8_mask(bytes, _mm512_set1_epi8(0xC0u8 as i8))]
            }
        }

        #[inline(always)]
        fn keep(self, bits: u64, numbers: &mut [u32; BLOCK]) {
            let mut to = 0;
            for part in 0..BLOCK / 16 {
                let bits = (bits >> (16 * part)) as u16;
                // SAFETY: 16 numbers are read, and each is written to its own place or one before it; see `load`.
                unsafe {
                    let numbers = numbers.as_mut_ptr();
                    let some = _mm512_loadu_si512(numbers.add(16 * part).cast());
                    _mm512_storeu_si512(numbers.add(to).cast(), _mm512_maskz_compress_epi32(bits, some));
                }
                to += bits.count_ones() as usize;
            }
        }

        #[inline(always)]
        fn entries<const N: usize>(
            self,
            characters: CharacterTable,
            text: &[u8; BLOCK + MORE],
            starts: u64,
            flags: [u32; N],
            to: &mut [u32; BLOCK],
        ) -> [u64; N] {
            let mut found = [0; N];
            // SAFETY: `text` is as long as what is read; see `load`.
            unsafe {
                let (bytes, more) = text.split_at(BLOCK);
                let bytes = _mm512_loadu_si512(bytes.as_ptr().cast());
                let more = _mm512_zextsi128_si512(_mm_loadu_si128(more.as_ptr().cast()));
                let places = _mm512_maskz_compress_epi8(starts, self.load(&NUMBERS));
                let count = starts.count_ones() as usize;
                let block = Block { vector: self, characters, bytes: [bytes, more], places, count };
                // The bits that are not the id are in the highest byte of each entry. These bytes are put side by side,
                // so that all characters are tested at once.
                let mut highest = block.highest::<0, 1>(to);
                if count > BLOCK / 2 {
                    highest = _mm512_inserti64x4::<1>(highest, _mm512_castsi512_si256(block.highest::<2, 3>(to)));
                }
                for (found, flag) in found.iter_mut().zip(flags) {
                    debug_assert_eq!(flag & 0xFF_FFFF, 0);
                    *found = _mm512_test_epi8_mask(highest, _mm512_set1_epi8((flag >> 24) as i8));
                }
            }
            found
        }
    }

    impl Machine for Vector {
        #[inline(always)]
        fn vector(self) -> Option<Vector> {
            Some(self)
        }

        #[inline(always)]
        fn long(self, block: &[u8; BLOCK]) -> u64 {
            let [others, starts] = self.kinds(block);
            others & starts
        }

        #[inline(always)]
        fn count_others(self, block: &[u8; BLOCK]) -> u32 {
            self.kinds(block)[0].count_ones()
        }

        #[inline(always)]
        fn cuts(self, _: &PairTable, classes: &ClassTables, block: &[u8; BLOCK], before: u8) -> u64 {
            // SAFETY: see `load`.
            unsafe {
                let right = self.load(block);
                let ascii = !_mm512_movepi8_mask(right);
                let ascii = ascii & (ascii << 1 | u64::from(before < 0x80));
                let shifted = _mm512_permutexvar_epi8(_mm512_sub_epi8(self.load(&NUMBERS), _mm512_set1_epi8(1)), right);
                let left = _mm512_mask_mov_epi8(shifted, 1, _mm512_set1_epi8(before as i8));
                let mut common = _mm512_setzero_si512();
                for tables in classes {
                    let (lefts, rights) = (self.in_table(&tables[0], left), self.in_table(&tables[1], right));
                    common = _mm512_or_si512(common, _mm512_and_si512(lefts, rights));
                }
                // (These tables know only ASCII.)
                _mm512_mask_testn_epi8_mask(ascii, common, common)
            }
        }

        #[inline(always)]
        fn marked(self, table: &[u8; 256], block: &[u8; BLOCK]) -> u64 {
            let (low, high) = (table[..BLOCK].first_chunk(), table[BLOCK..].first_chunk());
            let (Some(low), Some(high)) = (low, high) else { return Plain.marked(table, block) };
            // SAFETY: see `load`.
            unsafe {
                let block = self.load(block);
                let marked = _mm512_permutex2var_epi8(self.load(low), block, self.load(high));
                _mm512_mask_test_epi8_mask(!_mm512_movepi8_mask(block), marked, marked)
            }
        }

        #[inline(always)]
        fn is_ascii(self, block: &[u8; BLOCK]) -> bool {
            // SAFETY: see `load`.
            unsafe { _mm512_movepi8_mask(self.load(block)) == 0 }
        }

        #[inline(always)]
        fn places(self, bits: u64, offset: u8, to: &mut [u8; BLOCK]) {
            // SAFETY: see `load`.
            unsafe {
                let all = _mm512_add_epi8(self.load(&NUMBERS), _mm512_set1_epi8(offset as i8));
                _mm512_storeu_si512(to.as_mut_ptr().cast(), _mm512_maskz_compress_epi8(bits, all));
            }
        }

        #[inline(always)]
        fn look(self, line: &[u64; LINE], [a, b]: [u64; 2]) -> Option<u64> {
            // SAFETY: see `load`.
            let equal = unsafe {
                let keys = _mm512_mask_set1_epi64(_mm512_set1_epi64(a as i64), 0b1_0010, b as i64);
                _mm512_cmpeq_epi64_mask(_mm512_loadu_si512(line.as_ptr().cast()), keys)
            };
            // In a wide place, both halves of the key come before the result; in the narrow place, one half does.
            let results = (equal & equal >> 1 & 0b1001) << 2 | (equal & 0b100_0000) << 1;
            (results != 0).then(|| line[results.trailing_zeros() as usize & (LINE - 1)])
        }

        #[inline(always)]
        fn words(
            self,
            ends: &[u32; CHUNKS],
            from: u32,
            base: u32,
            longest: u32,
            to: [&mut [u32; CHUNKS]; 2],
        ) -> [usize; 2] {
            // SAFETY: 16 numbers are read and written; see `load`.
            unsafe {
                let ends = _mm512_loadu_si512(ends.as_ptr().cast());
                let begins = _mm512_alignr_epi32::<15>(ends, _mm512_set1_epi32(from as i32));
                let sizes = _mm512_sub_epi32(ends, begins);
                let above = |size: u32| u32::from(_mm512_cmpgt_epu32_mask(sizes, _mm512_set1_epi32(size as i32)));
                let taken = (above(longest) | 1 << CHUNKS).trailing_zeros();
                let words = (above(1) & ((1 << taken) - 1)) as u16;
                let base = _mm512_set1_epi32(base as i32);
                for (to, places) in to.into_iter().zip([begins, ends]) {
                    let places = _mm512_maskz_compress_epi32(words, _mm512_sub_epi32(places, base));
                    _mm512_storeu_si512(to.as_mut_ptr().cast(), places);
                }
                [taken as usize, words.count_ones() as usize]
            }
        }
    }
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests;
