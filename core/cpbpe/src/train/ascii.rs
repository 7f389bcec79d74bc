//! Where a short text of ASCII characters is cut. `Cutter::cut` looks at one character after the other and looks up its
//! class; here, a table of all pairs of bytes gives the answer for 16 bytes without a branch.

use crate::memory::boxed;
use crate::train::limits::{CharClasses, PieceLimits};
use crate::train::recent::SHORT;

/// Two bytes between which the text is cut.
const CUT: u8 = 1;
/// Two bytes of which the second has to be looked at more closely: it is part of a longer character, or may begin a
/// symbol (see `cutter.rs`).
const UNKNOWN: u8 = 2;

/// The table for given limits and symbols.
pub struct AsciiCuts {
    /// For the bytes `x y`, at `x | y << 8`.
    pairs: Box<[u8; 1 << 16]>,
}

impl AsciiCuts {
    /// `is_known`: whether a byte is a character by itself, and no symbol begins with it.
    pub fn new(limits: &PieceLimits, classes: &CharClasses, is_known: impl Fn(u8) -> bool) -> AsciiCuts {
        let mut pairs = boxed(UNKNOWN);
        for right in (0..0x80).filter(|&byte| is_known(byte)) {
            for left in 0..0x80 {
                let cuts = limits.cuts(classes.of(char::from(left)), classes.of(char::from(right)));
                pairs[usize::from(u16::from_le_bytes([left, right]))] = if cuts { CUT } else { 0 };
            }
        }
        AsciiCuts { pairs }
    }

    /// Where words end in the first `length` bytes of a text, at most 16, as bits; `None` if one of these bytes is not
    /// known. 16 bytes must be there, and those after `length` must be zeros.
    #[inline]
    pub fn ends(&self, text: &[u8], length: usize) -> Option<u32> {
        let (mut cuts, mut all, mut before) = (0, 0, 0);
        for (at, &byte) in text[..SHORT].iter().enumerate() {
            let pair = self.pairs[usize::from(u16::from_le_bytes([before, byte]))];
            cuts |= u32::from(pair & CUT) << at;
            all |= pair;
            before = byte;
        }
        // (What comes before the first byte does not count.)
        let inside = (1 << length) - 2;
        (all & UNKNOWN == 0).then_some(cuts & inside | 1 << length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_end_where_limits_cut() {
        let mut state = 1u64;
        let mut chance = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for round in 0..64 {
            let limits = PieceLimits {
                max_sentencepiece_length: 16,
                split_by_unicode_script: round & 1 != 0,
                split_by_number: round & 2 != 0,
                split_digits: round & 4 != 0,
                split_by_whitespace: round & 8 != 0,
                treat_whitespace_as_suffix: round & 16 != 0,
                allow_whitespace_only_pieces: round & 32 != 0,
            };
            let classes = limits.char_classes().unwrap();
            let ascii = AsciiCuts::new(&limits, &classes, |byte| byte.is_ascii() && byte != b'<');
            for length in (1..=SHORT).cycle().take(200) {
                let mut text = [0; SHORT];
                text[..length].fill_with(|| b"ab  19.-\0\t<\xC3"[chance(if length % 2 == 0 { 10 } else { 12 })]);
                let class = |at: usize| classes.of(char::from(text[at]));
                let is_end = |at: &usize| *at == length || limits.cuts(class(at - 1), class(*at));
                let ends = (1..=length).filter(is_end).fold(0, |ends, at| ends | 1 << at);
                let is_known = text.iter().all(|&byte| byte.is_ascii() && byte != b'<');
                assert_eq!(ascii.ends(&text, length), is_known.then_some(ends), "{limits:?} {text:?}");
            }
        }
    }
}
