//! Cuts text where nothing can merge.
//!
//! A merge joins two neighbouring symbols into a piece, so a cut between the characters a and b is safe if no piece
//! contains a directly followed by b. `Joinable::bytes` answers this for bytes: if no piece contains a character that
//! ends in the byte x before one that begins with the byte y, then no place between x and y in valid UTF-8 lies
//! inside a piece. Where bytes are too coarse (all Chinese characters begin with a few of them), `Joinable::pair`
//! answers it for the two characters. Missing a possible cut is only slower, never wrong.

use crate::machine::{Machine, BLOCK};
use crate::text::utf8::{self, character};
use crate::vocab::Joinable;

/// Characters from here on (three bytes and more) are looked up in pairs; for shorter ones, bytes alone find enough
/// cuts.
const LONG_CHARACTER: u8 = 0xE0;

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
        mask |= long_characters(joinable, text, base, block, mask, compact)?;
    }
    Some(mask)
}

/// The cuts next to long characters, for which `bytes` is too coarse.
fn long_characters(
    joinable: &Joinable,
    text: &[u8],
    base: usize,
    block: &[u8; BLOCK],
    cuts: u64,
    compact: bool,
) -> Option<u64> {
    let mut long = long_firsts(block);
    let mut more = 0;
    // The last long character, and where it ends.
    let (mut last, mut last_end) = (0, usize::MAX);
    while long != 0 {
        let i = long.trailing_zeros() as usize;
        long &= long - 1;
        let at = base + i;
        let end = at + utf8::length_by_first(block[i]);
        let Some(here) = character_at(text, at) else { continue };
        if compact && here == SPACE {
            return None;
        }
        if cuts >> i & 1 == 0 && at > 0 {
            let before = if last_end == at { last } else { character_before(text, at) };
            more |= u64::from(!joinable.pair(before, here)) << i;
        }
        (last, last_end) = (here, end);
        // The cut after it, if a short character follows that begins in this block. (Long ones look for themselves.)
        let after = end - base;
        if after < BLOCK && cuts >> after & 1 == 0 && block[after] < LONG_CHARACTER {
            let next = character_at(text, end).unwrap_or(0);
            more |= u64::from(!joinable.pair(here, next)) << after;
        }
    }
    Some(more)
}

/// Which bytes begin a long character, as bits, eight bytes at a time: those whose three highest bits are set.
#[inline(always)]
fn long_firsts(block: &[u8; BLOCK]) -> u64 {
    let mut mask = 0;
    for (i, part) in block.chunks_exact(8).enumerate() {
        let number = u64::from_le_bytes(part.try_into().unwrap_or_default());
        let highest = number & number << 1 & number << 2 & 0x8080_8080_8080_8080;
        // The product collects the highest bits of all bytes in its own highest byte.
        mask |= ((highest >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * i);
    }
    mask
}

const SPACE: u32 = character(utf8::SPACE);

/// The character that begins at `at`, as `character` has it. Four bytes can be read there: see `PAD` in
/// `encode/encoder.rs`.
#[inline(always)]
fn character_at(text: &[u8], at: usize) -> Option<u32> {
    const MASKS: [u32; 5] = [0, 0xFF, 0xFFFF, 0xFF_FFFF, u32::MAX];
    let bytes = text.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes) & MASKS[utf8::length_by_first(bytes[0])])
}

fn character_before(text: &[u8], at: usize) -> u32 {
    let mut begin = at - 1;
    while begin > 0 && text[begin] & 0xC0 == 0x80 {
        begin -= 1;
    }
    character(&text[begin..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_characters_are_found() {
        for i in 0..BLOCK * 256 {
            let mut block = [(i * 7) as u8 & 0x9F; BLOCK];
            block[i % BLOCK] = (i / BLOCK) as u8;
            let expected = block.iter().rev().fold(0, |mask, &byte| mask << 1 | u64::from(byte >= LONG_CHARACTER));
            assert_eq!(long_firsts(&block), expected);
        }
    }
}
