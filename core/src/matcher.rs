//! Finds words, the longest at each place, from left to right: special tokens, of which there may be thousands.
//!
//! An automaton looks at every byte, which takes a good part of the time that encoding takes. So where the words begin
//! with more than a few bytes, what cannot hold a word is passed over first, in steps of up to a word's length:
//! `Steps` knows for each two bytes how far the end of the shortest word may be away.

use aho_corasick::{AhoCorasick, Input, MatchKind};

/// Up to so many first bytes are found faster by the automaton's own search for them.
const FEW: usize = 3;
/// So much of a text the automaton looks at before steps are tried again; a word may reach beyond it.
const WINDOW: usize = 256;

/// Some words, ready to be found.
pub struct Matcher {
    automaton: AhoCorasick,
    steps: Option<Steps>,
    /// How many bytes the automaton looks at behind a place that steps have found.
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

/// How far to go on. Of every word only the first `length` bytes count, which is as long as the shortest word is.
struct Steps {
    length: usize,
    /// For each two bytes how many bytes later the first `length` bytes of a word can end at the earliest.
    table: Box<[u8]>,
}

impl Steps {
    fn new(words: &[&[u8]]) -> Option<Steps> {
        let length = words.iter().map(|word| word.len()).min()?.min(usize::from(u8::MAX));
        if length < 3 {
            return None; // no step would be longer than two bytes
        }
        let mut table = vec![(length - 1) as u8; 1 << 16].into_boxed_slice();
        for word in words {
            for end in 2..=length {
                let step = &mut table[Self::index(word, end)];
                *step = (*step).min((length - end) as u8);
            }
        }
        Some(Steps { length, table })
    }

    #[inline]
    fn index(text: &[u8], end: usize) -> usize {
        usize::from(text[end - 2]) | usize::from(text[end - 1]) << 8
    }

    /// The first place from `at` on where a word may begin.
    #[inline]
    fn next(&self, text: &[u8], at: usize) -> Option<usize> {
        let mut end = at + self.length;
        while end <= text.len() {
            match self.table[Self::index(text, end)] {
                0 => return Some(end - self.length),
                step => end += usize::from(step),
            }
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
        let mut firsts = [false; 256];
        for word in words {
            firsts[usize::from(word[0])] = true;
        }
        let few = firsts.iter().filter(|&&first| first).count() <= FEW;
        let longest = words.iter().map(|word| word.len()).max().unwrap_or(0);
        let steps = if few { None } else { Steps::new(words) };
        Some(Matcher { automaton, steps, window: WINDOW.max(4 * longest) })
    }

    /// The first word from `at` on.
    pub fn find(&self, text: &[u8], mut at: usize) -> Option<Found> {
        let Some(steps) = &self.steps else { return self.search(text, at, text.len()) };
        loop {
            at = steps.next(text, at)?;
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
    fn steps_pass_over_no_word() {
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
