//! The longest key at a place: user-defined pieces when encoding, and symbols when training.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Halt};
use crate::lazy::Lazy;
use crate::memory::probe;
use crate::text::finder::backwards::Backwards;
use crate::text::finder::trie::Trie;

/// sentencepiece has room for this many matches, shortest first.
const MAX_MATCHES: usize = 64;
/// For every byte of the text, this many may be read without finding a key.
const PATIENCE: usize = 16;
/// And this many in any case.
const FREE: usize = 1 << 10;
/// How many places `Backwards` is asked about at a time.
const WINDOW: usize = 1 << 16;

/// Some keys: a tree, and an automaton for texts that make the tree slow.
pub struct Keys {
    trie: Trie,
    /// How many bytes the longest key has.
    longest_key: usize,
    /// How many bytes all keys have together.
    bytes: usize,
    /// How many bytes of texts were read without finding a key, beyond what `PATIENCE` allows.
    in_vain: AtomicUsize,
    /// Built once these bytes have cost as much time as building it takes.
    backwards: Lazy<Option<Backwards>>,
}

impl Keys {
    /// No key is empty. Keys that begin with too many other keys are not found: sentencepiece does not find them
    /// either.
    pub fn new(keys: &[Vec<u8>]) -> Result<Keys, Error> {
        Keys::with_limit(keys.iter().map(Vec::as_slice), MAX_MATCHES)
    }

    /// The same without a limit. The number of a key is its place among those that are given.
    pub fn unlimited(keys: &[&[u8]]) -> Result<Keys, Error> {
        Keys::with_limit(keys.iter().copied(), usize::MAX)
    }

    fn with_limit<'a>(keys: impl Iterator<Item = &'a [u8]>, limit: usize) -> Result<Keys, Error> {
        let mut sorted: Vec<(&[u8], u32)> = keys.zip(0..).collect();
        sorted.sort_unstable();
        sorted.dedup_by_key(|(key, _)| *key);
        Ok(Keys {
            trie: Trie::new(&sorted, limit).ok_or(Error::InvalidKeys)?,
            longest_key: sorted.iter().map(|(key, _)| key.len()).max().unwrap_or(0),
            bytes: sorted.iter().map(|(key, _)| key.len()).sum(),
            in_vain: AtomicUsize::new(0),
            backwards: Lazy::default(),
        })
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.longest_key == 0
    }

    /// How many bytes the longest has, 0 if there are none.
    pub fn longest_key(&self) -> usize {
        self.longest_key
    }

    /// Whether a key begins with this byte.
    #[inline]
    pub fn begins(&self, byte: u8) -> bool {
        self.trie.begins(byte)
    }

    /// Hand out all keys that can be found.
    pub fn each(&self, mut take: impl FnMut(&[u8])) {
        let (blob, ends) = self.trie.keys();
        let mut begin = 0;
        for end in ends {
            take(&blob[begin..end]);
            begin = end;
        }
    }

    /// For each first byte of keys, the bytes that may follow it.
    pub fn first_pairs(&self) -> impl Iterator<Item = (u8, u8)> + '_ {
        let firsts = (0..=u8::MAX).filter(|&first| self.begins(first));
        firsts.flat_map(|first| self.trie.second_bytes(first).into_iter().map(move |second| (first, second)))
    }

    /// Walk through a text.
    #[inline]
    pub fn walk<'a>(&'a self, text: &'a [u8]) -> Walk<'a> {
        Walk { keys: self, text, begin: 0, in_vain: 0, window: 0..0, lengths: Vec::new() }
    }

    /// Add this many bytes that were read without finding a key. Returns the automaton once it is worth building.
    fn tired(&self, in_vain: usize) -> Option<impl std::ops::Deref<Target = Option<Backwards>> + '_> {
        // (Two threads may count at once: an inexact count does no harm.)
        let before = self.in_vain.fetch_add(in_vain, Ordering::Relaxed);
        let enough = before.saturating_add(in_vain) > self.bytes;
        enough.then(|| {
            // If there is no memory for it, texts only take longer.
            let make = || {
                probe(Backwards::memory(self.bytes))?;
                let (blob, ends) = self.trie.keys();
                Ok::<_, Halt>(Backwards::new(blob, &ends))
            };
            self.backwards.get_or_make(make).ok()
        })?
    }
}

/// A walk through a text, from left to right, that asks for the longest key at some places.
///
/// At each place the walk goes down the tree of keys as long as the text continues like some key. In most texts that is
/// a few bytes. Where it is many bytes again and again, `Backwards` is asked instead, which takes the same time for
/// every text. So no byte is read more than about `PATIENCE` times.
pub struct Walk<'a> {
    keys: &'a Keys,
    text: &'a [u8],
    /// The place from which bytes that are read without finding a key are counted,
    begin: usize,
    /// and how many there were.
    in_vain: usize,
    /// Places where the length of the longest key is known,
    window: Range<usize>,
    /// and these lengths.
    lengths: Vec<u32>,
}

impl Walk<'_> {
    /// The length of the longest key at `at`, 0 if none is there. No place comes before one that was asked about
    /// earlier.
    #[inline]
    pub fn longest(&mut self, at: usize) -> usize {
        if self.keys.trie.begins(self.text[at]) {
            self.look(at)
        } else {
            0
        }
    }

    fn look(&mut self, at: usize) -> usize {
        if at < self.window.end {
            return self.lengths[at - self.window.start] as usize;
        }
        let found = self.keys.trie.longest(&self.text[at..]);
        self.in_vain += found.looked - found.length;
        if self.in_vain > FREE + PATIENCE * (at - self.begin) {
            self.look_backwards(at);
        }
        found.length
    }

    /// Find the longest keys at the places from `at` on.
    #[cold]
    fn look_backwards(&mut self, at: usize) {
        if let Some(made) = self.keys.tired(self.in_vain) {
            if let Some(backwards) = made.as_ref() {
                let longest = self.keys.longest_key;
                let count = WINDOW.max(longest).min(self.text.len() - at);
                let end = (at + count + longest).min(self.text.len());
                backwards.longest(&self.text[at..end], count, &mut self.lengths);
                self.window = at..at + count;
            }
        }
        (self.begin, self.in_vain) = (self.window.end.max(at), 0);
    }

    /// The number of the key of this length at `at`, where it was found.
    pub fn key(&self, at: usize, length: usize) -> usize {
        self.keys.trie.longest(&self.text[at..at + length]).key as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn longest(keys: &Keys, text: &[u8], at: usize) -> usize {
        keys.walk(text).longest(at)
    }

    #[test]
    fn the_longest_key_wins() {
        let keys = Keys::new(&[&b"ab"[..], b"abcd", b"x", b"a\xff"].map(<[u8]>::to_vec)).unwrap();
        let text = b"abcabcdab";
        assert_eq!([0, 1, 3, 7].map(|at| longest(&keys, text, at)), [2, 0, 4, 2]);
        assert_eq!(longest(&keys, b"a", 0), 0);
    }

    #[test]
    fn no_more_than_64_matches() {
        let keys = Keys::new(&(1..=90).map(|length| vec![b'='; length]).collect::<Vec<_>>()).unwrap();
        assert_eq!(longest(&keys, &[b'='; 200], 0), 64);
        assert_eq!(longest(&keys, &[b'='; 10], 0), 10);
    }

    /// Numbers that look random.
    fn chance(state: &mut u64, limit: usize) -> usize {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) as usize % limit
    }

    /// The longest of the first `limit` matches, shortest first.
    fn naive(keys: &[Vec<u8>], text: &[u8], limit: usize) -> usize {
        let mut lengths: Vec<usize> = keys.iter().filter(|key| text.starts_with(key)).map(Vec::len).collect();
        lengths.sort_unstable();
        lengths.dedup();
        lengths.truncate(limit);
        lengths.last().copied().unwrap_or(0)
    }

    #[test]
    fn every_way_finds_what_trying_all_keys_finds() {
        let mut state = 7;
        for round in 0..60 {
            // 1. Keys of few letters that begin like others, or like all others; some with more than 64 beginnings.
            let letters = [1, 2, 3, 200][round % 4];
            let letter = |state: &mut u64| b'a'.wrapping_add(chance(state, letters) as u8);
            let mut keys: Vec<Vec<u8>> = Vec::new();
            for _ in 0..[2, 5, 30, 90][chance(&mut state, 4)] {
                let mut key = match keys.len() {
                    0 => Vec::new(),
                    some => keys[chance(&mut state, some)].clone(),
                };
                for _ in 0..1 + chance(&mut state, [2, 12, 40][round % 3]) {
                    key.push(letter(&mut state));
                }
                keys.push(key);
            }
            if round % 10 == 0 {
                keys.extend((1..90).map(|length| vec![b'a'; length]));
            }
            // 2. A text of keys, beginnings of keys, and letters.
            let mut text = Vec::new();
            while text.len() < 300 {
                let key = &keys[chance(&mut state, keys.len())];
                text.extend_from_slice(&key[..1 + chance(&mut state, key.len())]);
                text.push(letter(&mut state));
            }
            // 3. Place by place, by the automaton, and by a walk that changes from one to the other.
            let references: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            for (made, limit) in [(Keys::new(&keys), MAX_MATCHES), (Keys::unlimited(&references), usize::MAX)] {
                let made = made.unwrap();
                let (blob, ends) = made.trie.keys();
                let backwards = Backwards::new(blob, &ends).unwrap();
                let mut lengths = Vec::new();
                backwards.longest(&text, text.len(), &mut lengths);
                let mut walk = made.walk(&text);
                let mut other = made.walk(&text);
                made.in_vain.store(made.bytes + 1, Ordering::Relaxed);
                for at in 0..text.len() {
                    let expected = naive(&keys, &text[at..], limit);
                    assert_eq!(made.trie.longest(&text[at..]).length, expected);
                    assert_eq!(lengths[at] as usize, expected);
                    assert_eq!(walk.longest(at), expected);
                    if expected > 0 {
                        assert_eq!(keys[walk.key(at, expected)], text[at..at + expected]);
                    }
                    if at % 50 == 0 {
                        other.look_backwards(at);
                        other.window.end = (at + 20).min(text.len());
                        other.begin = other.window.end;
                    }
                    assert_eq!(other.longest(at), expected);
                    let pair = text.get(at..at + 2).is_some_and(|pair| {
                        made.first_pairs().any(|(first, second)| [first, second] == [pair[0], pair[1]])
                    });
                    assert!(pair || at + 1 == text.len() || expected == 0);
                }
            }
        }
    }

    #[test]
    fn no_text_takes_much_longer_than_others() {
        let keys: Vec<Vec<u8>> = (0..500)
            .map(|number| {
                let mut key = vec![b'a'; 16 * number + 15];
                key.push(b'b');
                key
            })
            .collect();
        let keys = Keys::new(&keys).unwrap();
        let text = vec![b'a'; 200_000];
        let begin = std::time::Instant::now();
        let mut walk = keys.walk(&text);
        assert_eq!((0..text.len()).map(|at| walk.longest(at)).sum::<usize>(), 0);
        // Place by place it takes 200,000 * 8,000 steps.
        assert!(begin.elapsed().as_secs_f64() < 8.0, "{:?}", begin.elapsed());
        drop(walk);
        assert!(keys.backwards.get_or_make(|| Err(())).is_ok_and(|made| made.is_some()));
    }
}
