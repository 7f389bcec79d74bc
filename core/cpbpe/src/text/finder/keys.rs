//! The longest key at a place: user-defined pieces when encoding, and symbols when training.

/// A sorted list of keys. To find the longest at a place, a range of the list is narrowed byte by byte.
pub struct Keys {
    keys: Vec<Vec<u8>>,
    /// For each first byte the range of keys.
    ranges: Vec<(u32, u32)>,
}

/// sentencepiece has room for this many matches, shortest first.
const MAX_MATCHES: usize = 64;

impl Keys {
    /// Sort the keys, none of which is empty.
    pub fn new(mut keys: Vec<Vec<u8>>) -> Keys {
        keys.sort_unstable();
        keys.dedup();
        let mut ranges = vec![(0, 0); 256];
        for (first, range) in ranges.iter_mut().enumerate() {
            let begin = keys.partition_point(|key| usize::from(key[0]) < first);
            let end = keys.partition_point(|key| usize::from(key[0]) <= first);
            *range = (begin as u32, end as u32);
        }
        Keys { keys, ranges }
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// How many bytes the longest has, 0 if there are none.
    pub fn longest_key(&self) -> usize {
        self.keys.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Whether a key begins with this byte.
    #[inline]
    pub fn begins(&self, byte: u8) -> bool {
        let (begin, end) = self.ranges[usize::from(byte)];
        begin < end
    }

    /// The length of the longest key at `at`, 0 if none is there.
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
            // All keys in begin..end start with text[..depth]; the shortest of them comes first.
            if self.keys[begin].len() == depth {
                longest = depth;
                matches += 1;
                begin += 1;
                if matches == MAX_MATCHES {
                    break;
                }
            }
            let Some(&next) = text.get(depth) else { break };
            let range = &self.keys[begin..end];
            let low = range.partition_point(|key| key[depth] < next);
            let high = range.partition_point(|key| key[depth] <= next);
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
    fn the_longest_key_wins() {
        let keys = Keys::new([&b"ab"[..], b"abcd", b"x", b"a\xff"].map(<[u8]>::to_vec).to_vec());
        let text = b"abcabcdab";
        assert_eq!([0, 1, 3, 7].map(|at| keys.longest(text, at)), [2, 0, 4, 2]);
        assert_eq!(keys.longest(b"a", 0), 0);
    }

    #[test]
    fn no_more_than_64_matches() {
        let keys = Keys::new((1..=90).map(|length| vec![b'='; length]).collect());
        assert_eq!(keys.longest(&[b'='; 200], 0), 64);
        assert_eq!(keys.longest(&[b'='; 10], 0), 10);
    }
}
