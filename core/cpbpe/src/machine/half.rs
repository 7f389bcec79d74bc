//! The steps with AVX2, 32 bytes at once, and with NEON, 16 bytes at once. Only the instructions differ.

use super::*;

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::*;

    /// A block.
    pub type Parts = [__m256i; 2];

    impl Half {
        // (Both halves are written out, because a closure that is passed to `array::map` is not compiled for this
        // machine.)

        /// Read 64 bytes.
        #[inline(always)]
        pub fn load(self, bytes: &[u8; BLOCK]) -> Parts {
            let (low, high) = bytes.split_at(BLOCK / 2);
            // SAFETY: both can be read, and the machine has the instruction because there is a `Half`. (The same holds
            // below.)
            unsafe { [_mm256_loadu_si256(low.as_ptr().cast()), _mm256_loadu_si256(high.as_ptr().cast())] }
        }

        /// The highest bits of 64 bytes.
        #[inline(always)]
        pub fn highest(self, [low, high]: Parts) -> u64 {
            // SAFETY: see `load`.
            let (low, high) = unsafe { (_mm256_movemask_epi8(low) as u32, _mm256_movemask_epi8(high) as u32) };
            u64::from(low) | u64::from(high) << (BLOCK / 2)
        }

        /// The code points of eight characters, given the first four bytes of each. All characters of four bytes get the
        /// same number. Whatever the bytes are, the numbers are below `CHARACTERS`.
        #[inline(always)]
        fn code_points(self, bytes: __m256i) -> __m256i {
            // SAFETY: see `load`.
            unsafe {
                // 1. The bits of the first two bytes, side by side, and those of the third one.
                let part = _mm256_and_si256(bytes, _mm256_set1_epi32(0x003F_3F1F));
                let parts = _mm256_maddubs_epi16(part, _mm256_set1_epi32(0x0001_0140));
                // 2. The code point, if the character has one byte, two, three, or four.
                let one = _mm256_and_si256(bytes, _mm256_set1_epi32(0x7F));
                let two = _mm256_and_si256(parts, _mm256_set1_epi32(0xFFFF));
                let three = _mm256_madd_epi16(parts, _mm256_set1_epi32(0x0001_0040));
                let four = _mm256_set1_epi32((CHARACTERS - 1) as i32);
                // 3. How many it has.
                let mut code = one;
                for (bits, longer) in [(0x80, two), (0xA0, three), (0xB0, four)] {
                    let bits = _mm256_set1_epi32(bits);
                    let is_longer = _mm256_cmpeq_epi32(_mm256_and_si256(bytes, bits), bits);
                    code = _mm256_blendv_epi8(code, longer, is_longer);
                }
                code
            }
        }

        /// Which of 64 bytes are at least 0xE0, as bits.
        #[inline(always)]
        pub fn begin_long(self, parts: Parts) -> u64 {
            let [low, high] = parts;
            // Read as signed numbers, these bytes are those from -32 to -1, and ASCII is not negative.
            // SAFETY: see `load`.
            let above = unsafe {
                let number = _mm256_set1_epi8(0xDFu8 as i8);
                self.highest([_mm256_cmpgt_epi8(low, number), _mm256_cmpgt_epi8(high, number)])
            };
            self.highest(parts) & above
        }

        /// Which of 64 bytes have any of these bits, as bits.
        #[inline(always)]
        pub fn have(self, [low, high]: Parts, bits: u8) -> u64 {
            // SAFETY: see `load`.
            unsafe {
                let (bits, zero) = (_mm256_set1_epi8(bits as i8), _mm256_setzero_si256());
                let (low, high) = (_mm256_and_si256(low, bits), _mm256_and_si256(high, bits));
                !self.highest([_mm256_cmpeq_epi8(low, zero), _mm256_cmpeq_epi8(high, zero)])
            }
        }

        /// The bytes that a table has at 64 places, all of which are below 128.
        #[inline(always)]
        pub fn in_table(self, table: &[u8; 2 * BLOCK], [low, high]: Parts) -> Parts {
            // SAFETY: 16 bytes at a time are read; see `load`.
            unsafe {
                let mut found = [_mm256_setzero_si256(); 2];
                for (part, table) in (0u8..).zip(table.chunks_exact(16)) {
                    // A place that is not in this part of the table gets an index whose highest bit is set, which means 0.
                    let table = _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast()));
                    let (first, top) = (_mm256_set1_epi8((part << 4) as i8), _mm256_set1_epi8(0x70));
                    let (low, high) = (_mm256_xor_si256(low, first), _mm256_xor_si256(high, first));
                    let (low, high) = (_mm256_adds_epu8(low, top), _mm256_adds_epu8(high, top));
                    found[0] = _mm256_or_si256(found[0], _mm256_shuffle_epi8(table, low));
                    found[1] = _mm256_or_si256(found[1], _mm256_shuffle_epi8(table, high));
                }
                found
            }
        }
    }

    impl Masks for Half {
        #[inline(always)]
        fn kinds(self, block: &[u8; BLOCK]) -> [u64; 2] {
            let [low, high] = self.load(block);
            // (Read as signed numbers, the bytes that continue a character are the lowest ones.)
            // SAFETY: see `load`.
            let starts = unsafe {
                let number = _mm256_set1_epi8(0xBFu8 as i8);
                [_mm256_cmpgt_epi8(low, number), _mm256_cmpgt_epi8(high, number)]
            };
            [self.highest([low, high]), self.highest(starts)]
        }

        #[inline(always)]
        fn keep(self, mut bits: u64, numbers: &mut [u32; BLOCK]) {
            let mut to = 0;
            while bits != 0 {
                numbers[to] = numbers[bits.trailing_zeros() as usize];
                bits &= bits - 1;
                to += 1;
            }
        }

        #[inline(always)]
        fn entries<const N: usize>(
            self,
            characters: CharacterTable,
            text: &[u8; BLOCK + MORE],
            mut starts: u64,
            flags: [u32; N],
            to: &mut [u32; BLOCK],
        ) -> [u64; N] {
            let mut found = [0; N];
            let groups = starts.count_ones().div_ceil(8) as usize;
            for (group, to) in to.chunks_exact_mut(8).enumerate().take(groups) {
                // SAFETY: the places are those of characters, or 64, so four bytes of `text` can be read there. The
                // table has an entry for each number that `code_points` returns, and `to` has room for eight ids; see
                // `load`.
                unsafe {
                    let mut next = || {
                        let place = starts.trailing_zeros() as usize;
                        starts &= starts.wrapping_sub(1);
                        text.as_ptr().add(place).cast::<i32>().read_unaligned()
                    };
                    let [a, b, c, d, e, f, g, h] = [next(), next(), next(), next(), next(), next(), next(), next()];
                    let codes = self.code_points(_mm256_setr_epi32(a, b, c, d, e, f, g, h));
                    let mut places = [0u32; 8];
                    _mm256_storeu_si256(places.as_mut_ptr().cast(), codes);
                    let [a, b, c, d, e, f, g, h] = places;
                    let at = |place: u32| *characters.entries.get_unchecked(place as usize) as i32;
                    let entries = _mm256_setr_epi32(at(a), at(b), at(c), at(d), at(e), at(f), at(g), at(h));
                    let none = _mm256_cmpeq_epi32(entries, _mm256_setzero_si256());
                    let default = _mm256_and_si256(none, _mm256_set1_epi32(characters.default as i32));
                    let entries = _mm256_or_si256(entries, default);
                    let ids = _mm256_and_si256(entries, _mm256_set1_epi32(characters.id_bits as i32));
                    _mm256_storeu_si256(to.as_mut_ptr().cast(), ids);
                    for (found, flag) in found.iter_mut().zip(flags) {
                        // The flag becomes the highest bit of each number.
                        let left = _mm_cvtsi32_si128(flag.leading_zeros() as i32);
                        let have = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_sll_epi32(entries, left)));
                        *found |= u64::from(have as u8) << (8 * group);
                    }
                }
            }
            found
        }
    }
}
#[cfg(target_arch = "x86_64")]
pub use avx2::Parts;

#[cfg(target_arch = "aarch64")]
mod neon {
    use std::arch::aarch64::*;

    use super::*;

    /// A block.
    pub type Parts = [uint8x16_t; 4];

    /// The bit of each of 16 bytes, in the byte of the mask that it belongs to.
    const BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];

    impl Half {
        /// Read 64 bytes.
        #[inline(always)]
        pub fn load(self, bytes: &[u8; BLOCK]) -> Parts {
            let from = bytes.as_ptr();
            // SAFETY: all four can be read, and the machine has the instruction because there is a `Half`. (The same
            // holds below.)
            unsafe { [vld1q_u8(from), vld1q_u8(from.add(16)), vld1q_u8(from.add(32)), vld1q_u8(from.add(48))] }
        }

        /// Which of 64 bytes are 0xFF, as bits; all others are 0.
        #[inline(always)]
        fn mask(self, [a, b, c, d]: Parts) -> u64 {
            // Each byte keeps the bit of its place. The sum of eight neighbours is then a byte of the mask: neighbours
            // are added three times.
            // SAFETY: 16 bytes are read; see `load`.
            unsafe {
                let bits = vld1q_u8(BITS.as_ptr());
                let low = vpaddq_u8(vandq_u8(a, bits), vandq_u8(b, bits));
                let high = vpaddq_u8(vandq_u8(c, bits), vandq_u8(d, bits));
                let sums = vpaddq_u8(low, high);
                vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)))
            }
        }

        /// Which of 64 bytes are at least as large as a number, as bits.
        #[inline(always)]
        fn at_least(self, [a, b, c, d]: Parts, number: u8) -> u64 {
            // SAFETY: see `load`.
            let parts = unsafe {
                let number = vdupq_n_u8(number);
                [vcgeq_u8(a, number), vcgeq_u8(b, number), vcgeq_u8(c, number), vcgeq_u8(d, number)]
            };
            self.mask(parts)
        }

        /// The highest bits of 64 bytes.
        #[inline(always)]
        pub fn highest(self, parts: Parts) -> u64 {
            self.at_least(parts, 0x80)
        }

        /// Which of 64 bytes are at least 0xE0, as bits.
        #[inline(always)]
        pub fn begin_long(self, parts: Parts) -> u64 {
            self.at_least(parts, 0xE0)
        }

        /// Which of 64 bytes have any of these bits, as bits.
        #[inline(always)]
        pub fn have(self, [a, b, c, d]: Parts, bits: u8) -> u64 {
            // SAFETY: see `load`.
            let parts = unsafe {
                let bits = vdupq_n_u8(bits);
                [vtstq_u8(a, bits), vtstq_u8(b, bits), vtstq_u8(c, bits), vtstq_u8(d, bits)]
            };
            self.mask(parts)
        }

        /// The bytes that a table has at 64 places, all of which are below 128.
        #[inline(always)]
        pub fn in_table(self, table: &[u8; 2 * BLOCK], parts: Parts) -> Parts {
            // SAFETY: 64 bytes at a time are read; see `load`.
            unsafe {
                let (low, high) = (vld1q_u8_x4(table.as_ptr()), vld1q_u8_x4(table.as_ptr().add(BLOCK)));
                let mut found = parts;
                for part in &mut found {
                    // (A place that is not in a half of the table gives 0, and so do those before it, counted from 64.)
                    let after = vsubq_u8(*part, vdupq_n_u8(BLOCK as u8));
                    *part = vorrq_u8(vqtbl4q_u8(low, *part), vqtbl4q_u8(high, after));
                }
                found
            }
        }
    }
}
#[cfg(target_arch = "aarch64")]
pub use neon::Parts;

impl Machine for Half {
    #[inline(always)]
    fn avx2(self) -> Option<Half> {
        cfg!(target_arch = "x86_64").then_some(self)
    }

    #[inline(always)]
    fn long(self, block: &[u8; BLOCK]) -> u64 {
        self.begin_long(self.load(block))
    }

    #[inline(always)]
    fn count_others(self, block: &[u8; BLOCK]) -> u32 {
        self.highest(self.load(block)).count_ones()
    }

    #[inline(always)]
    fn is_ascii(self, block: &[u8; BLOCK]) -> bool {
        self.highest(self.load(block)) == 0
    }
}
