//! Finds words in text: user-defined pieces when encoding, and symbols when training.

/// A sorted list of words: finds the longest at a place by narrowing a range, byte by byte.
pub struct Words {
    words: Vec<Vec<u8>>,
    /// For each first byte the range of words.
    ranges: Vec<(u32, u32)>,
}

/// As many matches as sentencepiece has room for, shortest first.
const MAX_WORD_MATCHES: usize = 64;

impl Words {
    /// Sort the words, none of which is empty.
    pub fn new(mut words: Vec<Vec<u8>>) -> Words {
        words.sort_unstable();
        words.dedup();
        let mut ranges = vec![(0, 0); 256];
        for (first, range) in ranges.iter_mut().enumerate() {
            let begin = words.partition_point(|word| usize::from(word[0]) < first);
            let end = words.partition_point(|word| usize::from(word[0]) <= first);
            *range = (begin as u32, end as u32);
        }
        Words { words, ranges }
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// How many bytes the longest has, 0 if there are none.
    pub fn longest_word(&self) -> usize {
        self.words.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Whether a word begins with this byte.
    #[inline]
    pub fn begins(&self, byte: u8) -> bool {
        let (begin, end) = self.ranges[usize::from(byte)];
        begin < end
    }

    /// The length of the longest word at `at`, 0 if none is there.
    #[inline]
    pub fn longest(&self, text: &[u8], at: usize) -> usize {
        let (begin, end) = self.ranges[usize::from(text[at])];
        if begin == end {
            0
        } else {
            self.narrow(&text[at..], begin as usize, end as usize)
        }
    }

    fn narrow(&self, text: &[u8], mut begin: usize, mut end: usize) -> usize {
        let mut longest = 0;
        let mut matches = 0;
        for depth in 1..=text.len() {
            // All words in begin..end start with text[..depth]; the shortest of them comes first.
            if self.words[begin].len() == depth {
                longest = depth;
                matches += 1;
                begin += 1;
                if matches == MAX_WORD_MATCHES {
                    break;
                }
            }
            let Some(&next) = text.get(depth) else { break };
            let range = &self.words[begin..end];
            let low = range.partition_point(|word| word[depth] < next);
            let high = range.partition_point(|word| word[depth] <= next);
            (begin, end) = (begin + low, begin + high);
            if begin == end {
                break;
            }
        }
        longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_word_wins() {
        let words = Words::new([&b"ab"[..], b"abcd", b"x", b"a\xff"].map(<[u8]>::to_vec).to_vec());
        let text = b"abcabcdab";
        assert_eq!([0, 1, 3, 7].map(|at| words.longest(text, at)), [2, 0, 4, 2]);
        assert_eq!(words.longest(b"a", 0), 0);
    }

    #[test]
    fn no_more_than_64_matches() {
        let words = Words::new((1..=90).map(|length| vec![b'='; length]).collect());
        assert_eq!(words.longest(&[b'='; 200], 0), 64);
        assert_eq!(words.longest(&[b'='; 10], 0), 10);
    }
}
