//! Cuts text where nothing can merge.
//!
//! A merge joins two neighbouring symbols into a piece, so a cut between the characters a and b is safe if no piece
//! contains a directly followed by b. `Joinable::bytes` answers this for bytes: if no piece contains a character that
//! ends in the byte x before one that begins with the byte y, then no place between x and y in valid UTF-8 lies
//! inside a piece. Where bytes are too coarse (all Chinese characters begin with a few of them), `Joinable::pair`
//! answers it for the two characters. Missing a possible cut is only slower, never wrong.

use crate::machine::{Machine, BLOCK};
use crate::text::utf8::{self, character};
use crate::vocab::characters::{ONE, UNKNOWN};
use crate::vocab::Joinable;

/// Whether bytes alone allow a cut before `text[at]`.
#[inline]
pub fn is_cut(joinable: &Joinable, text: &[u8], at: usize) -> bool {
    at == 0 || joinable.bytes[usize::from(text[at - 1]) | usize::from(text[at]) << 8] == 1
}

/// The cuts before the bytes of a block, as bits. `text` is valid UTF-8 around the block. `None` if it should be
/// `compact` but contains a U+2581.
#[inline(always)]
pub fn cuts<M: Machine>(
    joinable: &Joinable,
    text: &[u8],
    base: usize,
    block: &[u8; BLOCK],
    compact: bool,
) -> Option<u64> {
    // The byte before the first one; at the beginning of the text, any byte.
    let before = if base == 0 { block[0] } else { text[base - 1] };
    let mut mask = M::cuts(joinable, block, before);
    if !M::is_ascii(block) {
        mask |= around_long_characters::<M>(joinable, text, base, block, mask, compact)?;
    }
    Some(mask)
}

/// The cuts next to characters of several bytes, for which bytes are too coarse.
#[inline(always)]
fn around_long_characters<M: Machine>(
    joinable: &Joinable,
    text: &[u8],
    base: usize,
    block: &[u8; BLOCK],
    cuts: u64,
    compact: bool,
) -> Option<u64> {
    let mut long = M::long(block);
    let mut more = 0;
    // The last long character, and where it ends.
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
        // The cut after it, if a character follows in this block that does not look for itself.
        let after = end - base;
        if after < BLOCK && cuts >> after & 1 == 0 && long >> after & 1 == 0 {
            let next = four_at(text, end).map_or(0, number);
            more |= u64::from(!joinable.pair(here, next)) << after;
        }
    }
    Some(more)
}

const SPACE: u32 = character(utf8::SPACE);

/// Whether an entry is that of U+2581, if text with it is not compact.
#[inline(always)]
pub fn is_space(entry: u32) -> bool {
    entry & (ONE | UNKNOWN) == UNKNOWN
}

/// The bytes of a character, as `character` has it, from four bytes.
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
