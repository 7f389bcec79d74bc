//! Finds words, the longest at each place, from left to right: special tokens, of which there may be thousands.
//!
//! An automaton looks at every byte, which takes a good part of the time that encoding takes. Where the words begin with
//! few different bytes it looks for these first, and fast; where they begin with more, `Beginnings` does. What they
//! find nothing in is passed over.

use aho_corasick::{AhoCorasick, Input, MatchKind};

/// Up to so many first bytes are found faster by the automaton's own search for them.
const FEW: usize = 3;
/// So much of a text the automaton looks at before `Beginnings` is asked again; a word may reach beyond it.
const WINDOW: usize = 256;
/// Bytes that are looked at together.
const BLOCK: usize = 32;

/// Some words, ready to be found.
pub struct Matcher {
    automaton: AhoCorasick,
    beginnings: Option<Beginnings>,
    /// How many bytes the automaton looks at behind a place where a word may begin.
    window: usize,
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

/// The bytes that words begin with.
struct Beginnings {
    /// 1 for each first byte.
    firsts: [u8; 256],
    /// 1 for each first two bytes, and for all that follow a word of one byte.
    pairs: Box<[u8]>,
}

impl Beginnings {
    /// `None` if the first bytes are so few that the automaton finds them faster.
    fn new(words: &[&[u8]]) -> Option<Beginnings> {
        let mut firsts = [0; 256];
        let mut pairs = vec![0; 1 << 16].into_boxed_slice();
        for word in words {
            firsts[usize::from(word[0])] = 1;
            match word.get(1) {
                Some(&second) => pairs[Self::pair(word[0], second)] = 1,
                None => (0..=255).for_each(|second| pairs[Self::pair(word[0], second)] = 1),
            }
        }
        let count = firsts.iter().filter(|&&first| first > 0).count();
        (count > FEW).then_some(Beginnings { firsts, pairs })
    }

    #[inline]
    fn pair(first: u8, second: u8) -> usize {
        usize::from(first) | usize::from(second) << 8
    }

    /// The first place from `at` on where a word may begin.
    fn next(&self, text: &[u8], at: usize) -> Option<usize> {
        let may_begin = |i: usize| {
            self.firsts[usize::from(text[i])] > 0
                && text.get(i + 1).is_none_or(|&second| self.pairs[Self::pair(text[i], second)] > 0)
        };
        let mut base = at;
        for block in text.get(at..)?.chunks(BLOCK) {
            // Without a branch for each byte.
            if block.iter().fold(0, |any, &byte| any | self.firsts[usize::from(byte)]) > 0 {
                if let Some(found) = (base..base + block.len()).find(|&i| may_begin(i)) {
                    return Some(found);
                }
            }
            base += block.len();
        }
        None
    }
}

impl Matcher {
    /// `None` if the words are too many for an automaton, or one is empty.
    pub fn new(words: &[&[u8]]) -> Option<Matcher> {
        if words.iter().any(|word| word.is_empty()) {
            return None;
        }
        let automaton = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(words).ok()?;
        let longest = words.iter().map(|word| word.len()).max().unwrap_or(0);
        Some(Matcher { automaton, beginnings: Beginnings::new(words), window: WINDOW.max(4 * longest) })
    }

    /// The first word from `at` on.
    pub fn find(&self, text: &[u8], mut at: usize) -> Option<Found> {
        let Some(beginnings) = &self.beginnings else { return self.search(text, at, text.len()) };
        loop {
            at = beginnings.next(text, at)?;
            let end = (at + self.window).min(text.len());
            match self.search(text, at, end) {
                // What begins in the last quarter may be the beginning of a longer word.
                Some(found) if end == text.len() || found.begin < at + self.window / 4 * 3 => return Some(found),
                _ if end == text.len() => return None,
                _ => at += self.window / 4 * 3,
            }
        }
    }

    fn search(&self, text: &[u8], at: usize, end: usize) -> Option<Found> {
        let found = self.automaton.find(Input::new(text).range(at..end))?;
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
        assert!(Matcher::new(&[b""]).is_none());
        assert!(all(&[], b"a").is_empty());
    }

    #[test]
    fn no_word_is_passed_over() {
        // Many first bytes, words that begin and end like others, one that is longer than the window's quarter.
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
