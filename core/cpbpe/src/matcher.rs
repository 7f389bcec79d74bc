//! Finds words, the longest at each place, from left to right: special tokens, of which there may be thousands.
//!
//! An automaton looks at every byte, which takes a good part of the time that encoding takes, or more. Where the words
//! begin with few different bytes it looks for these first, and fast. Where they begin with more, `Beginnings` passes
//! over places where no word begins, and the automaton is only asked about the others. A text that has too many of those
//! (it may be made so) is left to the automaton alone, which is linear for every text.

use aho_corasick::{AhoCorasick, Anchored, Input, MatchKind, StartKind};

use crate::error::Error;

/// Up to so many first bytes are found faster by the automaton's own search for them.
const FEW: usize = 3;
/// Words longer than this are not looked for by the automaton's own search.
const LONG: usize = 64;
/// For every byte passed over, so many may be looked at in vain.
const PATIENCE: usize = 4;
/// And so many at any rate.
const FREE: usize = 1 << 12;
/// As many bytes of a word's beginning are looked at.
const WIDTH: usize = 8;
/// The bits of a filter, as a power of two: 32 KiB.
const BITS: u32 = 18;
const FILTER: usize = 1 << (BITS - 6);
/// Bytes that are looked at together.
const BLOCK: usize = 32;

/// Some words, ready to be found.
pub struct Matcher {
    automaton: AhoCorasick,
    beginnings: Option<Beginnings>,
    /// How many bytes the longest word has.
    longest: usize,
}

/// One word in a text.
pub struct Found {
    /// Which word.
    pub word: usize,
    /// Where it begins.
    pub begin: usize,
    /// Where it ends.
    pub end: usize,
}

/// What words begin with. A filter looks at no more bytes than its shortest word has, so the short words may have one of
/// their own.
struct Beginnings(Vec<Filter>);

struct Filter {
    /// 1 for each first byte.
    firsts: [u8; 256],
    /// The bits that count of eight bytes.
    mask: u64,
    /// A Bloom filter of these.
    filter: Box<[u64; FILTER]>,
}

impl Filter {
    fn new(words: &[&[u8]]) -> Option<Filter> {
        let width = words.iter().map(|word| word.len()).min()?.min(WIDTH);
        let mut made = Filter { firsts: [0; 256], mask: u64::MAX >> (64 - 8 * width), filter: Box::new([0; FILTER]) };
        for word in words {
            made.firsts[usize::from(word[0])] = 1;
            for bit in Self::bits(number(word) & made.mask) {
                made.filter[bit >> 6] |= 1 << (bit & 63);
            }
        }
        Some(made)
    }

    #[inline(always)]
    fn bits(number: u64) -> [usize; 2] {
        let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let bits = mixed ^ mixed >> 32;
        [bits >> (64 - BITS), bits >> (64 - 2 * BITS)].map(|bit| bit as usize & ((1 << BITS) - 1))
    }

    /// 1 if a word may begin with these eight bytes.
    #[inline(always)]
    fn may_begin(&self, number: u64) -> u64 {
        let [one, other] = Self::bits(number & self.mask);
        (self.filter[one >> 6] >> (one & 63)) & (self.filter[other >> 6] >> (other & 63)) & 1
    }

    /// The places in a block where a word may begin, as bits.
    #[inline]
    fn places(&self, block: &[u8; BLOCK + WIDTH]) -> u64 {
        let mut places = 0;
        // Without a branch for each byte.
        if block[..BLOCK].iter().fold(0, |any, &byte| any | self.firsts[usize::from(byte)]) > 0 {
            let mut firsts = block[..BLOCK]
                .iter()
                .rev()
                .fold(0u64, |all, &byte| all << 1 | u64::from(self.firsts[usize::from(byte)]));
            while firsts != 0 {
                let i = firsts.trailing_zeros() as usize;
                let number = block[i..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
                places |= self.may_begin(number) << i;
                firsts &= firsts - 1;
            }
        }
        places
    }
}

/// The first eight bytes, with zeros for those behind the end.
fn number(text: &[u8]) -> u64 {
    match text.first_chunk() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => text.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)),
    }
}

impl Beginnings {
    /// `None` if the first bytes are so few that the automaton finds them faster, if it may look for them.
    fn new(words: &[&[u8]], prefilter: bool) -> Option<Beginnings> {
        let few = |words: &[&[u8]]| {
            let mut firsts: Vec<u8> = words.iter().map(|word| word[0]).collect();
            firsts.sort_unstable();
            firsts.dedup();
            firsts.len() <= FEW
        };
        if words.is_empty() || (prefilter && few(words)) {
            return None;
        }
        let (long, short): (Vec<&[u8]>, Vec<&[u8]>) = words.iter().partition(|word| word.len() >= WIDTH);
        // A filter whose words have few first bytes passes over most blocks, and costs next to nothing.
        let groups = if few(&short) { vec![&long[..], &short] } else { vec![words] };
        Some(Beginnings(groups.into_iter().filter_map(Filter::new).collect()))
    }

    /// The first place from `at` on where a word may begin.
    fn next(&self, text: &[u8], at: usize) -> Option<usize> {
        let mut base = at;
        while let Some(block) = text[base..].first_chunk() {
            let places = self.0.iter().fold(0, |places, filter| places | filter.places(block));
            if places != 0 {
                return Some(base + places.trailing_zeros() as usize);
            }
            base += BLOCK;
        }
        let may_begin = |&at: &usize| self.0.iter().any(|filter| filter.may_begin(number(&text[at..])) != 0);
        (base..text.len()).find(may_begin)
    }
}

impl Matcher {
    /// No word may be empty, and there is a limit to how many there can be.
    pub fn new(words: &[&[u8]]) -> Result<Matcher, Error> {
        if words.iter().any(|word| word.is_empty()) {
            return Err(Error::InvalidKeys);
        }
        let longest = words.iter().map(|word| word.len()).max().unwrap_or(0);
        // The automaton's own search may compare a whole word at every place.
        let prefilter = longest <= LONG;
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .start_kind(StartKind::Both)
            .prefilter(prefilter)
            .build(words)
            .map_err(|_| Error::InvalidKeys)?;
        Ok(Matcher { automaton, beginnings: Beginnings::new(words, prefilter), longest })
    }

    /// All words of a text.
    pub fn find_all(&self, text: &[u8]) -> Vec<Found> {
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(one) = self.find(text, at) {
            at = one.end;
            found.push(one);
        }
        found
    }

    /// The first word from `at` on.
    pub fn find(&self, text: &[u8], at: usize) -> Option<Found> {
        let Some(beginnings) = &self.beginnings else { return self.search(text, at, Anchored::No) };
        let mut place = at;
        let mut in_vain = 0;
        loop {
            place = beginnings.next(text, place)?;
            if in_vain > FREE + PATIENCE * (place - at) {
                return self.search(text, place, Anchored::No);
            }
            if let Some(found) = self.search(text, place, Anchored::Yes) {
                return Some(found);
            }
            in_vain += self.longest;
            place += 1;
        }
    }

    /// The first word from `at` on, or the one that begins there.
    fn search(&self, text: &[u8], at: usize, anchored: Anchored) -> Option<Found> {
        let found = self.automaton.find(Input::new(text).range(at..).anchored(anchored))?;
        Some(Found { word: found.pattern().as_usize(), begin: found.start(), end: found.end() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(words: &[&[u8]], text: &[u8]) -> Vec<(usize, usize, usize)> {
        let matcher = Matcher::new(words).unwrap();
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(one) = matcher.find(text, at) {
            found.push((one.word, one.begin, one.end));
            at = one.end;
        }
        found
    }

    /// The same, word by word.
    fn slow(words: &[&[u8]], text: &[u8]) -> Vec<(usize, usize, usize)> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let here = (0..words.len()).filter(|&i| text[at..].starts_with(words[i])).max_by_key(|&i| words[i].len());
            match here {
                Some(i) => {
                    found.push((i, at, at + words[i].len()));
                    at += words[i].len();
                }
                None => at += 1,
            }
        }
        found
    }

    #[test]
    fn the_longest_word_at_the_leftmost_place() {
        let few: [&[u8]; 4] = [b"<s>", b"<s><s>", b"[X]", b"<"];
        assert_eq!(all(&few, b"a<s><s><s>b<[X]"), [(1, 1, 7), (0, 7, 10), (3, 11, 12), (2, 12, 15)]);
        assert!(Matcher::new(&[b""]).is_err());
        assert!(all(&[], b"a").is_empty());
    }

    #[test]
    fn no_word_is_passed_over() {
        // Many first bytes, words that begin and end like others, a long one.
        let long = [b'a'; 300];
        let words: Vec<&[u8]> = vec![b"abc", b"bcd", b"cabca", b"dddd", b"eab", b"abcabcabc", b"fff", &long];
        let mut seed = 1u64;
        for round in 0..300 {
            let mut text = Vec::new();
            for _ in 0..round % 700 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let choice = (seed >> 33) as usize;
                match choice % 9 {
                    0 => text.extend_from_slice(words[choice / 9 % words.len()]),
                    1 => text.extend_from_slice(&long[..choice / 9 % 300]),
                    other => text.push(b"abcdefx"[other - 2]),
                }
            }
            assert_eq!(all(&words, &text), slow(&words, &text));
        }
    }
}
