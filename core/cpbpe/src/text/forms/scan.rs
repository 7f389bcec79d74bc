//! Where a text may change: the first character that is not stable.
//!
//! A character is looked up only if it has to be. Blocks of bytes are compared with what is common and stable, all bytes
//! of a block together, without a branch: that is five to ten times as fast. What is common depends on the script, and a
//! text seldom changes its script, so the comparison that was right last is tried first.

use crate::text::forms::{tables, Form, Properties};
use crate::text::utf8::character_at;

/// This many bytes are compared together.
const BLOCK: usize = 32;
/// What a block is compared with reaches beyond its end by this many bytes.
const AHEAD: usize = 2;
/// A block and what comes after it.
type Block = [u8; BLOCK + AHEAD];
/// After a block that may change, this many bytes are looked up. It becomes twice as many each time, up to `MOST`: in some
/// scripts all blocks are such.
const LOOKED_UP: usize = 2 * BLOCK;
const MOST: usize = 1 << 10;

/// The comparisons for NFC.
const SCRIPTS: [fn(&Block) -> bool; 3] = [
    |block| is_stable(block, changes_in_east_asia),
    |block| is_stable(block, changes_in_europe),
    |block| is_stable(block, changes_in_arabic),
];

impl Form {
    /// The next place from `at` on, before which no character changes; the end if there is none.
    ///
    /// There is a character that is not stable. A mark after a stable character, and before another, is passed if only
    /// its place among marks could change. (The text is UTF-8, and comes as bytes, because to check it again would take
    /// longer than this.)
    pub(super) fn next_change(self, text: &[u8], mut at: usize) -> usize {
        // A character of two bytes is stable if the first of them is lower than this. (And bytes inside of characters are
        // only looked at if the first byte is lower: then they are lower, too, or the characters before have been passed.)
        let first = match self {
            Form::Nfc => 0xCC,
            Form::Nfd => 0xC3,
            Form::Nfkc | Form::Nfkd => 0xC2,
        };
        let changes = &tables::CHANGES[self as usize];
        let (mut script, mut looked_up) = (0, LOOKED_UP);
        let mut mark = None; // where the mark before `at` is
        loop {
            // 1. Blocks in which nothing changes.
            while let Some(block) = text[at..].first_chunk() {
                if !is_low(block, first) {
                    if self != Form::Nfc {
                        break;
                    }
                    if !SCRIPTS[script](block) {
                        let Some(other) = SCRIPTS.iter().position(|is_stable| is_stable(block)) else { break };
                        script = other;
                    }
                }
                (at, mark, looked_up) = (at + BLOCK, None, LOOKED_UP);
            }
            // 2. The characters of the next ones, or the last.
            let end = text.len().min(at + looked_up);
            looked_up = MOST.min(2 * looked_up);
            while at < end {
                if text[at] < first {
                    (at, mark) = (at + 1, None);
                    continue;
                }
                let Some((length, block, last)) = place(&text[at..]) else { return text.len() };
                let block = tables::INDEX.get(block).map_or(0, |&block| changes[usize::from(block)]);
                if block & 1 << (last & 0x3F) == 0 {
                    mark = None;
                } else if mark.is_some() || !character_at(text, at).is_some_and(|mark| self.only_moves(mark)) {
                    return mark.unwrap_or(at);
                } else {
                    mark = Some(at);
                }
                at += length;
            }
            if at >= text.len() {
                return text.len();
            }
        }
    }

    /// Whether a character changes at most its place among other marks.
    fn only_moves(self, mark: char) -> bool {
        Properties::of(mark).only_moves(self)
    }
}

/// The length of the character of several bytes at the beginning of a text, its block in the tables, and its last byte.
#[inline(always)]
fn place(text: &[u8]) -> Option<(usize, usize, u8)> {
    match *text {
        [one @ ..0xE0, two, ..] => Some((2, usize::from(one & 0x1F), two)),
        [one @ ..0xF0, two, three, ..] => Some((3, usize::from(one & 0xF) << 6 | usize::from(two & 0x3F), three)),
        [one, two, three, four, ..] => {
            let high = usize::from(one & 7) << 6 | usize::from(two & 0x3F);
            Some((4, high << 6 | usize::from(three & 0x3F), four))
        }
        _ => None,
    }
}

/// Whether all bytes of a block are lower than `first`.
#[inline(always)]
fn is_low(block: &Block, first: u8) -> bool {
    !block[..BLOCK].iter().fold(false, |any, &byte| any | (byte >= first))
}

/// Whether no character that begins in a block may change. `changes` gets the first three bytes of a character, or its two
/// bytes and one more, and must say no of bytes within a character. (It has `|` and `&`, because `||` and `&&` would be
/// branches. A test looks at each character.)
#[inline(always)]
fn is_stable(block: &Block, changes: impl Fn(u8, u8, u8) -> bool) -> bool {
    let mut any = false;
    for at in 0..BLOCK {
        any |= changes(block[at], block[at + 1], block[at + 2]);
    }
    !any
}

/// Chinese, Japanese, Korean, Latin, quotation marks and dashes, and most emoji are told apart.
#[inline(always)]
fn changes_in_east_asia(one: u8, two: u8, three: u8) -> bool {
    let alphabets = one.wrapping_sub(0xCC) < 0x16;
    let marks = (one == 0xE3) & ((two == 0x80) & (three >= 0xAA) | (two == 0x82) & (three.wrapping_sub(0x99) < 2));
    let others = (one == 0xEA) & (two < 0xB0);
    let variants = (one == 0xEF) & ((two < 0xAE) | (two == 0xB8) & (three >= 0xA0));
    let four = (one == 0xF0) & (two != 0x9F);
    alphabets | is_other_sign(one, two, three) | marks | others | variants | four
}

/// Latin (Vietnamese, too), Greek, Cyrillic, Armenian.
#[inline(always)]
fn changes_in_europe(one: u8, two: u8, three: u8) -> bool {
    let accents = one & 0xFE == 0xCC;
    let some = (one == 0xCE) & (two == 0x87) | (one == 0xD2) & (two < 0x88) | (one == 0xD6) & (two > 0x90);
    let others = (one >= 0xD7) & (one != 0xE2) & !((one == 0xE1) & (two & 0xFE == 0xBA));
    accents | some | others | is_other_sign(one, two, three)
}

/// Arabic, Persian, Hebrew.
#[inline(always)]
fn changes_in_arabic(one: u8, two: u8, three: u8) -> bool {
    let others = (one.wrapping_sub(0xCC) < 0x0B) | (one >= 0xDC) & (one != 0xE2);
    let hebrew = (one == 0xD7) & (two < 0x88);
    let arabic = (one == 0xD8) & (two.wrapping_sub(0x90) < 0x0B)
        | (one == 0xD9) & ((two.wrapping_sub(0x8B) < 0x15) | (two == 0xB0))
        | (one == 0xDB) & (two.wrapping_sub(0x96) < 0x18);
    others | hebrew | arabic | is_other_sign(one, two, three)
}

/// What begins with 0xE2, but for the usual dashes and quotation marks.
#[inline(always)]
fn is_other_sign(one: u8, two: u8, three: u8) -> bool {
    (one == 0xE2) & ((two != 0x80) | (three < 0x82))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_miss_no_character() {
        let mut stable = [0; SCRIPTS.len()];
        for character in '\0'..=char::MAX {
            let mut bytes = [0; 4];
            let bytes = character.encode_utf8(&mut bytes).as_bytes();
            for (number, is_stable) in SCRIPTS.iter().enumerate() {
                // In each place, also where the block ends within the character.
                let found = [0, BLOCK - bytes.len(), BLOCK - 1].map(|at| {
                    let mut block = [b'a'; BLOCK + AHEAD];
                    let length = bytes.len().min(block.len() - at);
                    block[at..at + length].copy_from_slice(&bytes[..length]);
                    is_stable(&block)
                });
                assert!(found == [found[0]; 3], "{character:?}");
                assert!(!found[0] || Properties::of(character).changes & Form::Nfc.bit() == 0, "{character:?}");
                stable[number] += usize::from(found[0]);
            }
        }
        assert!(stable.iter().all(|&stable| stable > 1000), "{stable:?}");
    }
}
