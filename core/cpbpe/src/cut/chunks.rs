//! Cuts text where nothing can merge.
//!
//! A merge joins two neighbouring symbols into a piece, so a cut between the characters a and b is safe if no piece
//! contains a directly followed by b. `Joinable::bytes` answers this for bytes: if no piece contains a character that
//! ends in the byte x before one that begins with the byte y, then no place between x and y in valid UTF-8 lies
//! inside a piece. Where bytes are too coarse (all Chinese characters begin with a few of them), `Joinable::pair`
//! answers it for the two characters. Missing a possible cut is only slower, never wrong.

use crate::machine::{Machine, BLOCK};
use crate::text::utf8;
use crate::vocab::characters::{AFTER, BEFORE, ONE, UNKNOWN};
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
    let [others, starts] = M::kinds(block);
    let mut long = others & starts;
    let mut more = 0;
    // The last long character, where it ends, and its entry.
    let (mut last, mut last_end, mut last_entry) = (0, usize::MAX, 0);
    while long != 0 {
        let i = long.trailing_zeros() as usize;
        long &= long - 1;
        let at = base + i;
        let end = at + utf8::length_by_first(block[i]);
        let Some(bytes) = four_at(text, at) else { break }; // after the end
        let (here, entry) = (number(bytes), joinable.characters.entry(M::code_point(bytes)));
        if compact && is_space(entry) {
            return None;
        }
        if cuts >> i & 1 == 0 && at > 0 {
            if last_end != at {
                let begin = character_before(text, at);
                let bytes = four_at(text, begin)?;
                (last, last_entry) = (number(bytes), joinable.characters.entry(M::code_point(bytes)));
            }
            let joined = entry & AFTER != 0 && last_entry & BEFORE != 0 && joinable.pair(last, here);
            more |= u64::from(!joined) << i;
        }
        (last, last_end, last_entry) = (here, end, entry);
        // The cut after it, if a character of one byte follows that is in this block. (Others look for themselves.)
        let after = end - base;
        if after < BLOCK && cuts >> after & 1 == 0 && block[after] < 0x80 {
            let joined = entry & BEFORE != 0 && joinable.pair(here, u32::from(block[after]));
            more |= u64::from(!joined) << after;
        }
    }
    Some(more)
}

/// Whether an entry is that of U+2581, if text with it is not compact.
#[inline(always)]
fn is_space(entry: u32) -> bool {
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
