//! Text -> groups: spaces, and what follows them up to the next space. If text is cut before every such group, whatever
//! it contains, the words in a group do not depend on the text around it. So groups that come again and again are
//! counted as they are, and cut into words only when another group replaces them in the small memory. (With this and
//! the shortcuts of `cutter.rs`, counting took 4 % fewer instructions for 4 MB of 25 languages, 18 % fewer for English
//! and 20 % fewer for source code.)

use crate::train::limits::PieceLimits;
use crate::train::recent::{load, masked, number, Recent, RecentWord, WordHash, BATCH, SHORT};

/// The small memory holds 2 ** this many groups. They take two megabytes, which fit into the second nearest cache of
/// most machines. (Half as many groups took 1.04 to 1.09 times as long, twice as many the same time.)
const RECENT_BITS: u32 = 16;

/// Whether text is cut before every group, with these limits and these symbols (compact). A symbol must not contain the
/// end of a group.
pub fn are_cut_apart<'a>(limits: &PieceLimits, mut symbols: impl Iterator<Item = &'a [u8]>) -> bool {
    let crosses = |symbol: &[u8]| group_end(symbol, 0) < symbol.len();
    limits.split_by_whitespace && !limits.treat_whitespace_as_suffix && !symbols.any(crosses)
}

/// Where the group ends that begins at `at`.
fn group_end(text: &[u8], at: usize) -> usize {
    let spaces = text[at..].iter().take_while(|&&byte| byte == b' ').count();
    let begin = at + spaces;
    memchr::memchr(b' ', &text[begin..]).map_or(text.len(), |length| begin + length)
}

/// Counts short groups.
pub struct Groups {
    /// The small memory.
    recent: Recent,
    /// The hash function.
    hash: WordHash,
    /// Groups that other groups replaced in it, and that must be cut.
    pub pushed_out: Vec<RecentWord>,
}

impl Default for Groups {
    fn default() -> Groups {
        let (recent, hash) = (Recent::new(RECENT_BITS), WordHash::default());
        Groups { recent, hash, pushed_out: Vec::with_capacity(BATCH) }
    }
}

/// The result for a group, with the place where it ends.
pub enum Group {
    /// It was counted.
    Counted(usize),
    /// It was counted, and now the groups that were pushed out must be cut.
    PushedOut(usize),
    /// It is too long to be counted here.
    Long(usize),
}

impl Groups {
    /// Count the group that begins at `at` in `text[..end]`. A space and 15 more bytes must follow the text.
    #[inline]
    pub fn add_at(&mut self, text: &[u8], at: usize, end: usize, count: u64) -> Group {
        let block = &text[at..at + SHORT];
        let bytes = [number(&block[..8]), number(&block[8..])];
        let length = first_group(bytes).min(end - at);
        if length > SHORT {
            return Group::Long(group_end(&text[..end], at));
        }
        if self.add(masked(bytes, length), length, count) {
            return Group::PushedOut(at + length);
        }
        Group::Counted(at + length)
    }

    /// The first bytes of a group, at most 16, with the bits of `change` inverted in the first of them. 16 bytes must be
    /// there.
    #[inline]
    pub fn bytes_at(text: &[u8], at: usize, length: usize, change: u64) -> [u64; 2] {
        let [low, high] = load(text, at, length);
        [low ^ change, high]
    }

    /// Count a short group. Returns whether the groups that were pushed out must be cut now.
    #[inline]
    pub fn add(&mut self, bytes: [u64; 2], length: usize, count: u64) -> bool {
        let word = RecentWord { bytes, length: length as u64, count };
        let is_time = self.recent.add(self.hash.short(word.bytes, word.length), word);
        if is_time {
            self.recent.count_added(&mut self.pushed_out);
        }
        is_time
    }

    /// Push out all groups.
    pub fn close(&mut self) {
        self.recent.take(&mut self.pushed_out);
    }
}

/// The length of the first group in 16 bytes; more than 16 if it does not end in them.
#[inline]
fn first_group(bytes: [u64; 2]) -> usize {
    let spaces = spaces(bytes);
    let begin = (!spaces).trailing_zeros();
    (spaces & u32::MAX << begin | 1 << (SHORT + 1)).trailing_zeros() as usize
}

/// Which of 16 bytes are spaces, one bit each.
#[inline]
fn spaces(bytes: [u64; 2]) -> u32 {
    equal_bytes(bytes[0], b' ') | equal_bytes(bytes[1], b' ') << 8
}

/// Which of 8 bytes are equal to this one (an ASCII character), one bit each.
#[inline]
pub fn equal_bytes(bytes: u64, byte: u8) -> u32 {
    const EACH: u64 = u64::MAX / 0xFF;
    const LOW: u64 = 0x7F * EACH;
    let differs = bytes ^ (u64::from(byte) * EACH);
    // The highest bit of every byte that is equal. (No byte of the sum carries into the next one.)
    let equal = !(((differs & LOW) + LOW) | differs | LOW);
    // Each of these bits moves into the highest byte, the nth to its nth bit.
    ((equal >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All texts of 16 bytes that have spaces where a number has set bits.
    #[test]
    fn groups_end_where_a_space_follows_something_else() {
        for spaces in 0..1u32 << SHORT {
            let byte = |at: usize| if spaces >> at & 1 == 1 { b' ' } else { [b'a', 0, 0x80, 0xA0, 0xFF][at % 5] };
            let text: Vec<u8> = (0..SHORT).map(byte).collect();
            let end = group_end(&text, 0);
            let expected = if end == SHORT { SHORT + 1 } else { end };
            assert_eq!(first_group([number(&text[..8]), number(&text[8..])]), expected, "{spaces:b}");
        }
    }

    #[test]
    fn only_limits_and_symbols_that_respect_groups_will_do() {
        let limits = PieceLimits {
            max_sentencepiece_length: 16,
            split_by_unicode_script: true,
            split_by_number: true,
            split_digits: false,
            split_by_whitespace: true,
            treat_whitespace_as_suffix: false,
            allow_whitespace_only_pieces: true,
        };
        let symbols = |symbols: &[&'static str]| symbols.iter().map(|symbol| symbol.as_bytes()).collect::<Vec<_>>();
        assert!(are_cut_apart(&limits, symbols(&["<s>", " a", "  "]).into_iter()));
        for crossing in ["a b", "a ", " a "] {
            assert!(!are_cut_apart(&limits, symbols(&["<s>", crossing]).into_iter()), "{crossing}");
        }
        assert!(!are_cut_apart(&PieceLimits { split_by_whitespace: false, ..limits }, symbols(&[]).into_iter()));
        assert!(!are_cut_apart(&PieceLimits { treat_whitespace_as_suffix: true, ..limits }, symbols(&[]).into_iter()));
    }

    /// Every class before a space: this is what `are_cut_apart` relies on.
    #[test]
    fn a_space_is_cut_off_whatever_comes_before_it() {
        for bits in 0..16u32 {
            let limits = PieceLimits {
                max_sentencepiece_length: 16,
                split_by_unicode_script: bits & 1 != 0,
                split_by_number: bits & 2 != 0,
                split_digits: bits & 4 != 0,
                split_by_whitespace: true,
                treat_whitespace_as_suffix: false,
                allow_whitespace_only_pieces: bits & 8 != 0,
            };
            let classes = limits.char_classes().unwrap();
            let space = classes.of(' ');
            assert!((0..=u8::MAX).filter(|&class| class != space).all(|class| limits.cuts(class, space)));
        }
    }
}
