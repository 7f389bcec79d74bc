//! The steps of encoding for which some machines have instructions of their own.
//!
//! `Plain` is for every machine. `Vector` is for x86-64 with AVX-512 (VBMI and VBMI2), and handles the 64 bytes of a
//! block, or of a line of the cache, at once.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::vocab::characters::SingleBytes;
use crate::vocab::Joinable;

/// How many bytes are cut together.
pub const BLOCK: usize = 64;
/// How many chunks `Machine::words` is given.
pub const CHUNKS: usize = 16;
/// The cells of a line of the cache; see `cache/mod.rs`.
pub const LINE: usize = 8;

/// Whether models that are loaded from now on use `Plain` everywhere.
static PLAIN: AtomicBool = AtomicBool::new(false);

/// Choose `Plain` for models that are loaded from now on, or let the machine decide. For tests, which compare the two.
pub fn use_vectors(yes: bool) {
    PLAIN.store(!yes, Ordering::Relaxed);
}

/// Whether this machine has the instructions of `Vector`.
pub fn has_vectors() -> bool {
    #[cfg(target_arch = "x86_64")]
    let has = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("lzcnt");
    #[cfg(not(target_arch = "x86_64"))]
    let has = false;
    has && !PLAIN.load(Ordering::Relaxed)
}

/// A way to do these steps.
pub trait Machine {
    /// The cuts that bytes alone allow before the bytes of a block, as bits. `before`: the byte before the block. (None
    /// is allowed that is not safe, but some may be missed.)
    fn cuts(joinable: &Joinable, block: &[u8; BLOCK], before: u8) -> u64;
    /// Whether there are vector instructions; see `cut/by_character.rs`.
    const MASKS: bool;
    /// The bytes of a block that begin a character for which `cuts` is too coarse, as bits.
    fn long(block: &[u8; BLOCK]) -> u64;
    /// How many bytes of a block are not ASCII.
    fn count_others(block: &[u8; BLOCK]) -> u32;
    /// The bytes of a block for which a table has 1, as bits. It has 0 for all that are not ASCII.
    fn marked(table: &[u8; 256], block: &[u8; BLOCK]) -> u64;
    /// Write the ids of the bytes of a block, if they are ASCII.
    fn ids(singles: &SingleBytes, block: &[u8; BLOCK], to: &mut [u32; BLOCK]);
    /// Whether a block is ASCII.
    fn is_ascii(block: &[u8; BLOCK]) -> bool;
    /// Write the numbers of bits that are set, plus `offset`, and then anything.
    fn places(bits: u64, offset: u8, to: &mut [u8; BLOCK]);
    /// The result for a key in a line of the cache.
    fn look(line: &[u64; LINE], key: [u64; 2]) -> Option<u64>;
    /// Of chunks that end at these places, and begin where the one before ends (the first one at `from`), write where those
    /// of several bytes begin and end, less `base`, and then anything. A chunk of more than `longest` bytes ends this.
    /// Returns how many chunks were taken, and how many of them were written.
    fn words(ends: &[u32; CHUNKS], from: u32, base: u32, longest: u32, to: [&mut [u32; CHUNKS]; 2]) -> [usize; 2];
}

/// The highest bits of eight bytes.
const HIGHEST: u64 = 0x8080_8080_8080_8080;

/// Any machine.
pub struct Plain;

impl Plain {
    /// The bytes of a block that begin a character, as bits.
    #[inline(always)]
    pub fn starts(block: &[u8; BLOCK]) -> u64 {
        collect_highest(block, |number| !number | number << 1)
    }
}

/// The highest bits of all bytes of a block, after a change to eight of them.
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

impl Machine for Plain {
    const MASKS: bool = false;

    #[inline(always)]
    fn cuts(joinable: &Joinable, block: &[u8; BLOCK], before: u8) -> u64 {
        let table = &joinable.bytes;
        let mut mask = u64::from(table[usize::from(u16::from_le_bytes([before, block[0]]))]);
        // No branches, and no step waits for the one before it: a little more than half a cycle per byte.
        for begin in (0..BLOCK).step_by(16) {
            let mut bits = 0u64;
            for i in (begin..begin + 16).rev() {
                if i + 1 < BLOCK {
                    // SAFETY: both bytes are in the block. (The compiler does not make one load of two bytes that are
                    // indexed.)
                    let pair = unsafe { block.as_ptr().add(i).cast::<u16>().read_unaligned() };
                    bits = bits * 2 + u64::from(table[usize::from(u16::from_le(pair))]);
                }
            }
            mask |= bits << begin << 1;
        }
        mask
    }

    #[inline(always)]
    fn long(block: &[u8; BLOCK]) -> u64 {
        // Characters of three bytes and more begin with a byte whose three highest bits are set.
        collect_highest(block, |number| number & number << 1 & number << 2)
    }

    #[inline(always)]
    fn count_others(block: &[u8; BLOCK]) -> u32 {
        let number = |part: &[u8]| u64::from_le_bytes(part.try_into().unwrap_or_default());
        block.chunks_exact(8).map(|part| (number(part) & HIGHEST).count_ones()).sum()
    }

    #[inline(always)]
    fn marked(table: &[u8; 256], block: &[u8; BLOCK]) -> u64 {
        block.iter().rev().fold(0, |bits, &byte| bits << 1 | u64::from(table[usize::from(byte)]))
    }

    #[inline(always)]
    fn ids(singles: &SingleBytes, block: &[u8; BLOCK], to: &mut [u32; BLOCK]) {
        for (id, &byte) in to.iter_mut().zip(block) {
            *id = singles.ids[usize::from(byte)];
        }
    }

    #[inline(always)]
    fn is_ascii(block: &[u8; BLOCK]) -> bool {
        block.is_ascii()
    }

    #[inline(always)]
    fn places(mut bits: u64, offset: u8, to: &mut [u8; BLOCK]) {
        // Eight at a time, even if some are unneeded: cheaper than a loop whose end the processor cannot predict.
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

    #[inline(always)]
    fn look(line: &[u64; LINE], [a, b]: [u64; 2]) -> Option<u64> {
        // Without branches, because its place in the line is unpredictable.
        let not_first = usize::from((line[0] ^ a) | (line[1] ^ b) != 0);
        let not_second = usize::from((line[3] ^ a) | (line[4] ^ b) != 0);
        let not_narrow = usize::from(line[6] != a);
        let case = not_narrow << 2 | not_second << 1 | not_first;
        // Where the result is, in each case.
        const AT: [u8; 8] = [7, 7, 7, 7, 2, 5, 2, 0];
        (case != 7).then(|| line[usize::from(AT[case]) & (LINE - 1)])
    }

    #[inline(always)]
    fn words(ends: &[u32; CHUNKS], from: u32, base: u32, longest: u32, to: [&mut [u32; CHUNKS]; 2]) -> [usize; 2] {
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

#[cfg(target_arch = "x86_64")]
mod entries;
#[cfg(target_arch = "x86_64")]
pub use vector::Vector;

#[cfg(target_arch = "x86_64")]
pub mod vector {
    use super::*;
    use std::arch::x86_64::*;

    /// x86-64 with AVX-512. See `has_vectors`.
    pub struct Vector;

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

    /// The numbers from 0 to 63, each four times, in four parts.
    pub const FOUR_TIMES: [[u8; BLOCK]; 4] = {
        let mut parts = [[0; BLOCK]; 4];
        let mut i = 0;
        while i < 4 * BLOCK {
            parts[i / BLOCK][i % BLOCK] = (i / 4) as u8;
            i += 1;
        }
        parts
    };

    /// Read 64 bytes.
    #[inline(always)]
    pub fn load(bytes: &[u8; BLOCK]) -> __m512i {
        // SAFETY: they can be read, and whoever uses `Vector` has asked `has_vectors`. (So it is below.)
        unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
    }

    /// The bytes of a table at 64 places; seven bits of each count.
    #[inline(always)]
    pub fn in_table(table: &[u8; 2 * BLOCK], places: __m512i) -> __m512i {
        let (low, high) = table.split_at(BLOCK);
        // SAFETY: both halves can be read; see `load`.
        unsafe {
            let (low, high) = (_mm512_loadu_si512(low.as_ptr().cast()), _mm512_loadu_si512(high.as_ptr().cast()));
            _mm512_permutex2var_epi8(low, places, high)
        }
    }

    impl Vector {
        /// The bytes of a block that are not ASCII, as bits, and those that begin a character.
        #[inline(always)]
        pub fn kinds(block: &[u8; BLOCK]) -> [u64; 2] {
            // SAFETY: see `load`.
            unsafe {
                let bytes = load(block);
                // (As signed numbers, the bytes that continue a character are the lowest ones.)
                [_mm512_movepi8_mask(bytes), _mm512_cmpge_epi8_mask(bytes, _mm512_set1_epi8(0xC0u8 as i8))]
            }
        }

        /// Move those of some numbers whose bits are set to the front.
        #[inline(always)]
        pub fn keep(bits: u64, numbers: &mut [u32; BLOCK]) {
            let mut to = 0;
            for part in 0..BLOCK / 16 {
                let bits = (bits >> (16 * part)) as u16;
                // SAFETY: 16 numbers are read, and written to where they were or before; see `load`.
                unsafe {
                    let numbers = numbers.as_mut_ptr();
                    let some = _mm512_loadu_si512(numbers.add(16 * part).cast());
                    _mm512_storeu_si512(numbers.add(to).cast(), _mm512_maskz_compress_epi32(bits, some));
                }
                to += bits.count_ones() as usize;
            }
        }

        /// The bits whose places are set in `places`, side by side.
        #[inline(always)]
        pub fn extract(bits: u64, places: u64) -> u64 {
            // SAFETY: see `load`.
            unsafe { _pext_u64(bits, places) }
        }

        /// The reverse of `extract`: the lowest bits, one at each place that is set in `places`.
        #[inline(always)]
        pub fn deposit(bits: u64, places: u64) -> u64 {
            // SAFETY: see `load`.
            unsafe { _pdep_u64(bits, places) }
        }
    }

    impl Machine for Vector {
        const MASKS: bool = true;

        #[inline(always)]
        fn long(block: &[u8; BLOCK]) -> u64 {
            let [others, starts] = Self::kinds(block);
            others & starts
        }

        #[inline(always)]
        fn count_others(block: &[u8; BLOCK]) -> u32 {
            Self::kinds(block)[0].count_ones()
        }

        #[inline(always)]
        fn cuts(joinable: &Joinable, block: &[u8; BLOCK], before: u8) -> u64 {
            // SAFETY: see `load`.
            unsafe {
                let right = load(block);
                let ascii = !_mm512_movepi8_mask(right);
                let ascii = ascii & (ascii << 1 | u64::from(before < 0x80));
                let shifted = _mm512_permutexvar_epi8(_mm512_sub_epi8(load(&NUMBERS), _mm512_set1_epi8(1)), right);
                let left = _mm512_mask_mov_epi8(shifted, 1, _mm512_set1_epi8(before as i8));
                let mut common = _mm512_setzero_si512();
                for tables in joinable.classes.tables.iter() {
                    let [lefts, rights] = [0, 1].map(|side| {
                        let (low, high) = tables[side].split_at(BLOCK);
                        let characters = if side == 0 { left } else { right };
                        // (Seven bits of each character select a byte from the two parts.)
                        let low = _mm512_loadu_si512(low.as_ptr().cast());
                        let high = _mm512_loadu_si512(high.as_ptr().cast());
                        _mm512_permutex2var_epi8(low, characters, high)
                    });
                    common = _mm512_or_si512(common, _mm512_and_si512(lefts, rights));
                }
                // (Only ASCII is in these tables.)
                _mm512_mask_testn_epi8_mask(ascii, common, common)
            }
        }

        #[inline(always)]
        fn marked(table: &[u8; 256], block: &[u8; BLOCK]) -> u64 {
            let (low, high) = (table[..BLOCK].first_chunk(), table[BLOCK..].first_chunk());
            let (Some(low), Some(high)) = (low, high) else { return Plain::marked(table, block) };
            // SAFETY: see `load`.
            unsafe {
                let block = load(block);
                let marked = _mm512_permutex2var_epi8(load(low), block, load(high));
                _mm512_mask_test_epi8_mask(!_mm512_movepi8_mask(block), marked, marked)
            }
        }

        #[inline(always)]
        fn ids(singles: &SingleBytes, block: &[u8; BLOCK], to: &mut [u32; BLOCK]) {
            // SAFETY: 16 ids at a time are written to the places of 64; see `load`.
            unsafe {
                let bytes = load(block);
                let [a, b, c] = &*singles.planes;
                let (a, b, c) = (in_table(a, bytes), in_table(b, bytes), in_table(c, bytes));
                let zero = _mm512_setzero_si512();
                // The registers have quarters of 16 bytes, and unpacking works within each.
                let (low, high) = (_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b));
                let (low2, high2) = (_mm512_unpacklo_epi8(c, zero), _mm512_unpackhi_epi8(c, zero));
                let x = [
                    _mm512_unpacklo_epi16(low, low2),
                    _mm512_unpackhi_epi16(low, low2),
                    _mm512_unpacklo_epi16(high, high2),
                    _mm512_unpackhi_epi16(high, high2),
                ];
                // The quarters of x[i] are the ids 4 i to 4 i + 3 of each quarter of the block. Sort them.
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

        #[inline(always)]
        fn is_ascii(block: &[u8; BLOCK]) -> bool {
            // SAFETY: see `load`.
            unsafe { _mm512_movepi8_mask(load(block)) == 0 }
        }

        #[inline(always)]
        fn places(bits: u64, offset: u8, to: &mut [u8; BLOCK]) {
            // SAFETY: see `load`.
            unsafe {
                let all = _mm512_add_epi8(load(&NUMBERS), _mm512_set1_epi8(offset as i8));
                _mm512_storeu_si512(to.as_mut_ptr().cast(), _mm512_maskz_compress_epi8(bits, all));
            }
        }

        #[inline(always)]
        fn look(line: &[u64; LINE], [a, b]: [u64; 2]) -> Option<u64> {
            // SAFETY: see `load`.
            let equal = unsafe {
                let keys = _mm512_mask_set1_epi64(_mm512_set1_epi64(a as i64), 0b1_0010, b as i64);
                _mm512_cmpeq_epi64_mask(_mm512_loadu_si512(line.as_ptr().cast()), keys)
            };
            // A wide place has both halves of the key in front of the result, the narrow one has one half.
            let results = (equal & equal >> 1 & 0b1001) << 2 | (equal & 0b100_0000) << 1;
            (results != 0).then(|| line[results.trailing_zeros() as usize & (LINE - 1)])
        }

        #[inline(always)]
        fn words(ends: &[u32; CHUNKS], from: u32, base: u32, longest: u32, to: [&mut [u32; CHUNKS]; 2]) -> [usize; 2] {
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

#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
