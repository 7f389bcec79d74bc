//! Finds keys from left to right, the longest at each place: special tokens, perhaps thousands of them.
//!
//! An automaton reads every byte, which can take as long as encoding. If the keys begin with only a few different
//! bytes, the automaton searches for these bytes first, which is fast. If they begin with more, `Beginnings` skips
//! places where no key begins, and the automaton is only asked about the others. If a text has too many of these
//! (perhaps on purpose), only the automaton is used, which takes linear time for every text.
//!
//! The time is linear in what the automaton reads. After a key it starts again where the key ends, so it may read again
//! those bytes in which it looked for a longer key. With long keys these are many, so long keys are found by a walk
//! with `Keys`.

use aho_corasick::{AhoCorasick, Anchored, Input, MatchKind, StartKind};

use crate::error::{Error, Halt};
use crate::memory::{probe, Grow};
use crate::text::keys::Keys;
use crate::watch::{Check, Checks};

/// Whether to go on is checked once in this many matches, or bytes.
const CHECK_MATCHES: usize = 1 << 12;
const CHECK_BYTES: usize = 1 << 16;

/// The automaton does not search for keys longer than this.
const LONG: usize = 64;
/// About how many bytes the automaton takes for each byte of its keys, if no keys begin alike.
const STATE: usize = 100;
/// For every byte that was skipped, this many may be read without finding a key.
const IN_VAIN_PER_BYTE: usize = 4;
/// This many bytes may be read in any case.
const IN_VAIN_AT_LEAST: usize = 1 << 12;

/// Some keys, ready to be searched for.
pub struct Finder(Method);

/// The methods of searching.
enum Method {
    /// Keys of up to `LONG` bytes.
    Short(Automaton),
    /// Keys, some of which are longer.
    Long(Keys, Beginnings),
}

struct Automaton {
    automaton: AhoCorasick,
    beginnings: Option<Beginnings>,
    /// How many bytes the longest key has.
    longest: usize,
}

/// A key in a text.
pub struct Match {
    /// The number of the key.
    pub key: usize,
    /// Where it begins.
    pub begin: usize,
    /// Where it ends.
    pub end: usize,
}

impl Finder {
    /// Fails if a key is empty, or if there are too many keys.
    ///
    /// ```
    /// let finder = cpbpe::Finder::new(&[b"<s>", b"<s><s>"])?;
    /// let matches = finder.find_all(b"a<s><s>b<s>", cpbpe::watch::NO_CHECK)?;
    /// assert_eq!(matches.iter().map(|one| (one.key, one.begin)).collect::<Vec<_>>(), [(1, 1), (0, 8)]);
    /// # Ok::<(), cpbpe::Error>(())
    /// ```
    pub fn new(keys: &[&[u8]]) -> Result<Finder, Error> {
        if keys.iter().any(|key| key.is_empty()) || u32::try_from(keys.len()).is_err() {
            return Err(Error::InvalidKeys);
        }
        let longest = keys.iter().map(|key| key.len()).max().unwrap_or(0);
        if longest > LONG {
            if let Some(beginnings) = Beginnings::new(keys, false) {
                return Ok(Finder(Method::Long(Keys::unlimited(keys)?, beginnings)));
            }
        }
        // (`Beginnings` lists the keys, too.)
        probe(STATE * keys.iter().map(|key| key.len()).sum::<usize>() + size_of_val(keys) * 2)?;
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .start_kind(StartKind::Both)
            .build(keys)
            .map_err(|_| Error::InvalidKeys)?;
        Ok(Finder(Method::Short(Automaton { automaton, beginnings: Beginnings::new(keys, true), longest })))
    }

    /// All keys of a text.
    pub fn find_all(&self, text: &[u8], check: Check) -> Result<Vec<Match>, Halt> {
        let mut matches = Vec::new();
        let mut at = 0;
        let mut add = |one: Match| {
            matches.try_push(one)?;
            if matches.len() % CHECK_MATCHES == 0 {
                check()?;
            }
            Ok::<_, Halt>(())
        };
        match &self.0 {
            Method::Short(automaton) => {
                while let Some(one) = automaton.find(text, at) {
                    at = one.end;
                    add(one)?;
                }
            }
            Method::Long(keys, beginnings) => {
                let mut walk = keys.walk(text);
                let mut checks = Checks::new(check, CHECK_BYTES);
                while let Some(begin) = beginnings.next(text, at) {
                    let length = walk.longest(begin);
                    at = begin + length.max(1);
                    if length > 0 {
                        add(Match { key: walk.key(begin, length), begin, end: at })?;
                    }
                    checks.at(at)?;
                }
            }
        }
        Ok(matches)
    }
}

impl Automaton {
    /// The first key from `at` on.
    fn find(&self, text: &[u8], at: usize) -> Option<Match> {
        let Some(beginnings) = &self.beginnings else { return self.search(text, at, Anchored::No) };
        let mut place = at;
        let mut in_vain = 0;
        loop {
            place = beginnings.next(text, place)?;
            if in_vain > IN_VAIN_AT_LEAST + IN_VAIN_PER_BYTE * (place - at) {
                return self.search(text, place, Anchored::No);
            }
            if let Some(matched) = self.search(text, place, Anchored::Yes) {
                return Some(matched);
            }
            in_vain += self.longest;
            place += 1;
        }
    }

    /// The first key from `at` on or, if `anchored`, the one that begins there.
    fn search(&self, text: &[u8], at: usize, anchored: Anchored) -> Option<Match> {
        let matched = self.automaton.find(Input::new(text).range(at..).anchored(anchored))?;
        Some(Match { key: matched.pattern().as_usize(), begin: matched.start(), end: matched.end() })
    }
}

// --- Skipping ------------------------------------------------------------------------------------
//
// Skips places of a text where no key can begin.

/// Up to this many different first bytes are found faster by the automaton's own search for them.
const FEW: usize = 3;
/// How many bytes of a key's beginning are looked at.
const WIDTH: usize = 8;
/// How many bits a filter has, as a power of two: 32 KiB.
const BITS: u32 = 18;
const FILTER: usize = 1 << (BITS - 6);
/// How many places are looked at together.
const BLOCK: usize = 32;

/// Skips places where no key begins. A filter reads no more bytes than its shortest key has, so short keys may get a
/// filter of their own.
pub struct Beginnings(Vec<Filter>);

struct Filter {
    /// 1 for each byte with which a key begins.
    firsts: [u8; 256],
    /// Which bits of eight bytes count.
    mask: u64,
    /// A Bloom filter of the beginnings of all keys.
    filter: Box<[u64; FILTER]>,
}

impl Filter {
    fn new(keys: &[&[u8]]) -> Option<Filter> {
        let width = keys.iter().map(|key| key.len()).min()?.min(WIDTH);
        let mut filter = Filter { firsts: [0; 256], mask: u64::MAX >> (64 - 8 * width), filter: Box::new([0; FILTER]) };
        for key in keys {
            filter.firsts[usize::from(key[0])] = 1;
            for bit in Self::bits(number(key) & filter.mask) {
                filter.filter[bit >> 6] |= 1 << (bit & 63);
            }
        }
        Some(filter)
    }

    #[inline(always)]
    fn bits(number: u64) -> [usize; 2] {
        let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let bits = mixed ^ mixed >> 32;
        [bits >> (64 - BITS), bits >> (64 - 2 * BITS)].map(|bit| bit as usize & ((1 << BITS) - 1))
    }

    /// 1 if a key may begin with these eight bytes.
    #[inline(always)]
    fn may_begin(&self, number: u64) -> u64 {
        let [one, other] = Self::bits(number & self.mask);
        (self.filter[one >> 6] >> (one & 63)) & (self.filter[other >> 6] >> (other & 63)) & 1
    }

    /// The places in a block where a key may begin, as bits.
    #[inline]
    fn places(&self, block: &[u8; BLOCK + WIDTH]) -> u64 {
        let mut places = 0;
        // This needs no branch for each byte.
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

/// The first eight bytes, with zeros for those after the end.
fn number(text: &[u8]) -> u64 {
    match text.first_chunk() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => text.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)),
    }
}

impl Beginnings {
    /// `None` if there are no keys, or if they begin with only a few different bytes and there is an automaton that
    /// finds these faster by itself (`prefilter`).
    pub fn new(keys: &[&[u8]], prefilter: bool) -> Option<Beginnings> {
        let few = |keys: &[&[u8]]| {
            let mut firsts: Vec<u8> = keys.iter().map(|key| key[0]).collect();
            firsts.sort_unstable();
            firsts.dedup();
            firsts.len() <= FEW
        };
        if keys.is_empty() || (prefilter && few(keys)) {
            return None;
        }
        let (long, short): (Vec<&[u8]>, Vec<&[u8]>) = keys.iter().partition(|key| key.len() >= WIDTH);
        // A filter whose keys have few different first bytes skips most blocks, and costs next to nothing.
        let groups = if few(&short) { vec![&long[..], &short] } else { vec![keys] };
        Some(Beginnings(groups.into_iter().filter_map(Filter::new).collect()))
    }

    /// The first place from `at` on where a key may begin.
    pub fn next(&self, text: &[u8], at: usize) -> Option<usize> {
        let may_begin = |&at: &usize| self.0.iter().any(|filter| filter.may_begin(number(&text[at..])) != 0);
        // (Where many places have to be looked at, the next place often is one of them.)
        if at < text.len() && may_begin(&at) {
            return Some(at);
        }
        let mut base = at;
        while let Some(block) = text[base..].first_chunk() {
            let places = self.0.iter().fold(0, |places, filter| places | filter.places(block));
            if places != 0 {
                return Some(base + places.trailing_zeros() as usize);
            }
            base += BLOCK;
        }
        (base..text.len()).find(may_begin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::NO_CHECK;

    fn all(keys: &[&[u8]], text: &[u8]) -> Vec<(usize, usize, usize)> {
        let matches = Finder::new(keys).unwrap().find_all(text, NO_CHECK).unwrap();
        matches.into_iter().map(|one| (one.key, one.begin, one.end)).collect()
    }

    /// The same, found key by key.
    fn slow(keys: &[&[u8]], text: &[u8]) -> Vec<(usize, usize, usize)> {
        let mut matches = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let here = (0..keys.len()).filter(|&i| text[at..].starts_with(keys[i])).max_by_key(|&i| keys[i].len());
            match here {
                Some(i) => {
                    matches.push((i, at, at + keys[i].len()));
                    at += keys[i].len();
                }
                None => at += 1,
            }
        }
        matches
    }

    #[test]
    fn the_longest_key_at_the_leftmost_place() {
        let few: [&[u8]; 4] = [b"<s>", b"<s><s>", b"[X]", b"<"];
        assert_eq!(all(&few, b"a<s><s><s>b<[X]"), [(1, 1, 7), (0, 7, 10), (3, 11, 12), (2, 12, 15)]);
        assert!(Finder::new(&[b""]).is_err());
        assert!(all(&[], b"a").is_empty());
    }

    #[test]
    fn no_key_is_passed_over() {
        // Many different first bytes, keys that begin and end like others, and a long one.
        let long = [b'a'; 300];
        let keys: Vec<&[u8]> = vec![b"abc", b"bcd", b"cabca", b"dddd", b"eab", b"abcabcabc", b"fff", &long];
        let mut seed = 1u64;
        for round in 0..600 {
            // With the long one and without.
            let keys = &keys[..keys.len() - round % 2];
            let mut text = Vec::new();
            for _ in 0..round % 700 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let choice = (seed >> 33) as usize;
                match choice % 9 {
                    0 => text.extend_from_slice(keys[choice / 9 % keys.len()]),
                    1 => text.extend_from_slice(&long[..choice / 9 % 300]),
                    other => text.push(b"abcdefx"[other - 2]),
                }
            }
            assert_eq!(all(keys, &text), slow(keys, &text));
        }
    }

    #[test]
    fn after_a_key_nothing_is_read_again_and_again() {
        let keys: Vec<Vec<u8>> =
            (0..200).map(|number| [vec![b'a'; 40 * number + 1], vec![b'b'; number.min(1)]].concat()).collect();
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let text = vec![b'a'; 200_000];
        let begin = std::time::Instant::now();
        assert_eq!(Finder::new(&keys).unwrap().find_all(&text, NO_CHECK).unwrap().len(), text.len());
        // After each of 200,000 keys, an automaton would read 8,000 bytes more.
        assert!(begin.elapsed().as_secs_f64() < 8.0, "{:?}", begin.elapsed());
    }
}
