//! The longest key at a place. Encoding looks for user-defined pieces in this way, and training for symbols.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Halt};
use crate::lazy::Lazy;
use crate::memory::probe;

/// sentencepiece has room for this many matches, the shortest ones first.
const MAX_MATCHES: usize = 64;
/// For every byte of the text, this many bytes may be read without finding a key.
const IN_VAIN_PER_BYTE: usize = 16;
/// This many may be read in any case.
const IN_VAIN_AT_LEAST: usize = 1 << 10;
/// For how many places `Backwards` is asked at a time.
const WINDOW: usize = 1 << 16;

/// Some keys: a tree, and an automaton for texts that make the tree slow.
pub struct Keys {
    trie: Trie,
    /// How many bytes the longest key has.
    longest_key: usize,
    /// How many bytes all keys have together.
    bytes: usize,
    /// How many bytes of texts were read without finding a key, in excess of what `IN_VAIN_PER_BYTE` allows.
    in_vain: AtomicUsize,
    /// The automaton. It is built once reading these bytes has taken as much time as building it does.
    backwards: Lazy<Option<Backwards>>,
}

impl Keys {
    /// No key may be empty. A key that begins with too many other keys is not found: sentencepiece does not find it,
    /// either.
    pub fn new(keys: &[Vec<u8>]) -> Result<Keys, Error> {
        Keys::with_limit(keys.iter().map(Vec::as_slice), MAX_MATCHES)
    }

    /// The same without that limit. The number of a key is its index in the given list.
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

    /// Whether there are no keys.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.longest_key == 0
    }

    /// How many bytes the longest key has, 0 if there are no keys.
    pub fn longest_key(&self) -> usize {
        self.longest_key
    }

    /// Whether a key begins with this byte.
    #[inline]
    pub fn begins(&self, byte: u8) -> bool {
        self.trie.begins(byte)
    }

    /// Call `take` with each key that can be found.
    pub fn each(&self, mut take: impl FnMut(&[u8])) {
        let (blob, ends) = self.trie.keys();
        let mut begin = 0;
        for end in ends {
            take(&blob[begin..end]);
            begin = end;
        }
    }

    /// For each byte with which keys begin, the bytes that may follow it.
    pub fn first_pairs(&self) -> impl Iterator<Item = (u8, u8)> + '_ {
        let firsts = (0..=u8::MAX).filter(|&first| self.begins(first));
        firsts.flat_map(|first| self.trie.second_bytes(first).into_iter().map(move |second| (first, second)))
    }

    /// Walk through a text.
    #[inline]
    pub fn walk<'a>(&'a self, text: &'a [u8]) -> Walk<'a> {
        Walk { keys: self, text, begin: 0, in_vain: 0, window: 0..0, lengths: Vec::new() }
    }

    /// Count this many more bytes that were read without finding a key. Returns the automaton once it is worth
    /// building.
    fn automaton_after(&self, in_vain: usize) -> Option<impl std::ops::Deref<Target = Option<Backwards>> + '_> {
        // (If two threads count at once, the count becomes inexact, which does no harm.)
        let before = self.in_vain.fetch_add(in_vain, Ordering::Relaxed);
        let enough = before.saturating_add(in_vain) > self.bytes;
        enough.then(|| {
            // If there is no memory for the automaton, texts only take longer.
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
/// every text. So no byte is read more than about `IN_VAIN_PER_BYTE` times.
pub struct Walk<'a> {
    keys: &'a Keys,
    text: &'a [u8],
    /// Where counting of bytes that are read without finding a key has begun.
    begin: usize,
    /// How many such bytes there have been since.
    in_vain: usize,
    /// The places for which `Backwards` has told the length of the longest key.
    window: Range<usize>,
    /// These lengths.
    lengths: Vec<u32>,
}

impl Walk<'_> {
    /// The length of the longest key at `at`, 0 if there is none. Places must be asked for from left to right.
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
        if self.in_vain > IN_VAIN_AT_LEAST + IN_VAIN_PER_BYTE * (at - self.begin) {
            self.look_backwards(at);
        }
        found.length
    }

    /// Find the longest keys at many places from `at` on.
    #[cold]
    fn look_backwards(&mut self, at: usize) {
        if let Some(made) = self.keys.automaton_after(self.in_vain) {
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

    /// The number of the key of this length that was found at `at`.
    pub fn key(&self, at: usize, length: usize) -> usize {
        self.keys.trie.longest(&self.text[at..at + length]).key as usize
    }
}

// --- The tree ------------------------------------------------------------------------------------
//
// A radix tree of keys. The longest key at a place is found by walking down from the root. Bytes at which no keys
// branch are compared together.
//
// Most of the time is spent waiting for memory, because a large tree does not fit into the nearest caches. So all data
// of a node are in one place, in most cases in one line of the cache. (When nodes, labels and children were stored
// separately, each step waited for three lines.) A node looks like this:
//
// ```text
// count: 2 bytes | length: 2 | key: 4 | label: length | what leads to the children
//     count = 0 ... FEW:      the byte that leads to each child, FEW bytes, and where each child is, 4 bytes each
//     otherwise:              the first of these bytes, how many there are from it to the last, minus 1,
//                             and for all bytes from the first to the last where the child is, or 0
// ```

/// Marks a node at which no key ends.
const NO_KEY: u32 = u32::MAX;
/// A node with more children than this has a table of them.
const FEW: usize = 8;
/// How many bytes come before a label.
const HEAD: usize = 8;
/// The longest label. Keys that have more bytes in common have a chain of nodes.
const MAX_LABEL: usize = u16::MAX as usize;
/// Labels of less than this many bytes are compared in one step.
const WORD: usize = 8;

/// Keys as a tree.
pub struct Trie {
    /// The nodes, followed by `WORD` bytes.
    nodes: Vec<u8>,
    /// For each byte, the node to which it leads from the root, or 0.
    roots: Box<[u32; 256]>,
}

/// What was found at a place.
pub struct LongestKey {
    /// The length of the longest key, 0 if there is none.
    pub length: usize,
    /// Its number.
    pub key: u32,
    /// How many bytes were read.
    pub looked: usize,
}

/// A node that is being read.
#[derive(Clone, Copy)]
struct Node<'a> {
    count: usize,
    length: usize,
    key: u32,
    /// The label, and everything after it.
    rest: &'a [u8],
}

/// The place in a node that says where a child is.
#[derive(Clone, Copy)]
enum Slot {
    Root(u8),
    Node(usize),
}

/// Keys that belong below a node that has not been written yet.
struct Waiting {
    slot: Slot,
    range: std::ops::Range<usize>,
    /// How many bytes lead to the node.
    depth: usize,
    /// How many keys end above it.
    above: usize,
}

impl Trie {
    /// The tree of some keys with their numbers. The keys are sorted, none is empty, and no two are equal. Nothing is
    /// stored below a key that begins with `limit - 1` others. `None` if there are more bytes than can be numbered.
    pub fn new(keys: &[(&[u8], u32)], limit: usize) -> Option<Trie> {
        let mut trie = Trie { nodes: vec![0; HEAD], roots: Box::new([0; 256]) };
        let mut waiting = Vec::new();
        for (head, range) in by_head(keys, 0..keys.len(), 0) {
            waiting.push(Waiting { slot: Slot::Root(head), range, depth: 1, above: 0 });
        }
        while let Some(Waiting { slot, mut range, depth, mut above }) = waiting.pop() {
            let at = trie.nodes.len();
            trie.note(slot, u32::try_from(at).ok()?);
            // 1. Its label. What the first and the last key have in common, all keys between them have, too.
            let (first, last) = (keys[range.start].0, keys[range.end - 1].0);
            let length = common_length(&first[depth..], &last[depth..]).min(MAX_LABEL);
            let end = depth + length;
            // 2. The key that ends here. It comes first in the order.
            let mut key = NO_KEY;
            if first.len() == end {
                key = keys[range.start].1;
                range.start += 1;
                above += 1;
                if above == limit {
                    range.start = range.end;
                }
            }
            // 3. A child for each byte that follows in some of the keys.
            let children = by_head(keys, range, end);
            trie.nodes.extend_from_slice(&(children.len() as u16).to_le_bytes());
            trie.nodes.extend_from_slice(&(length as u16).to_le_bytes());
            trie.nodes.extend_from_slice(&key.to_le_bytes());
            trie.nodes.extend_from_slice(&first[depth..end]);
            let base = trie.nodes.len();
            let (lowest, highest) = match &children[..] {
                [] => continue,
                [(lowest, _), .., (highest, _)] if children.len() > FEW => (*lowest, *highest),
                few => {
                    trie.nodes.resize(base + FEW + 4 * few.len(), 0);
                    for (i, (head, range)) in children.into_iter().enumerate() {
                        trie.nodes[base + i] = head;
                        let slot = Slot::Node(base + FEW + 4 * i);
                        waiting.push(Waiting { slot, range, depth: end + 1, above });
                    }
                    continue;
                }
            };
            trie.nodes.extend_from_slice(&[lowest, highest - lowest]);
            trie.nodes.resize(base + 2 + 4 * (usize::from(highest - lowest) + 1), 0);
            for (head, range) in children {
                let slot = Slot::Node(base + 2 + 4 * usize::from(head - lowest));
                waiting.push(Waiting { slot, range, depth: end + 1, above });
            }
        }
        trie.nodes.extend_from_slice(&[0; WORD]);
        Some(trie)
    }

    /// Store where a child is.
    fn note(&mut self, slot: Slot, at: u32) {
        match slot {
            Slot::Root(head) => self.roots[usize::from(head)] = at,
            Slot::Node(place) => self.nodes[place..place + 4].copy_from_slice(&at.to_le_bytes()),
        }
    }

    /// Whether a key begins with this byte.
    #[inline]
    pub fn begins(&self, byte: u8) -> bool {
        self.roots[usize::from(byte)] != 0
    }

    /// The bytes that may follow this first byte of keys: all bytes if it is a key by itself.
    pub fn second_bytes(&self, first: u8) -> Vec<u8> {
        let Some(node) = self.node(self.roots[usize::from(first)]) else { return Vec::new() };
        match node.label().first() {
            Some(&next) => vec![next],
            None if node.key != NO_KEY => (0..=u8::MAX).collect(),
            None => (0..=u8::MAX).filter(|&byte| node.child(byte) != 0).collect(),
        }
    }

    /// The node at a place, which is that of a node or 0.
    #[inline(always)]
    fn node(&self, at: u32) -> Option<Node<'_>> {
        let (head, rest) = self.nodes[at as usize..].split_first_chunk::<HEAD>()?;
        let head = u64::from_le_bytes(*head);
        let (count, length) = (head as u16 as usize, (head >> 16) as u16 as usize);
        (at != 0).then_some(Node { count, length, key: (head >> 32) as u32, rest })
    }

    /// The longest key that a text begins with.
    #[inline]
    pub fn longest(&self, text: &[u8]) -> LongestKey {
        let mut found = LongestKey { length: 0, key: NO_KEY, looked: 1 };
        let Some(&first) = text.first() else { return found };
        let mut at = self.roots[usize::from(first)];
        let mut depth = 1;
        while let Some(node) = self.node(at) {
            // 1. The label.
            let same = node.compare(&text[depth..]);
            depth += same;
            if same < node.length {
                break;
            }
            let is_key = node.key != NO_KEY;
            found.length = if is_key { depth } else { found.length };
            found.key = if is_key { node.key } else { found.key };
            // 2. The next byte.
            let Some(&byte) = text.get(depth) else { break };
            at = node.child(byte);
            depth += 1;
        }
        found.looked = depth;
        found
    }

    /// All keys that can be found, one after the other, and where each of them ends.
    pub fn keys(&self) -> (Vec<u8>, Vec<usize>) {
        let (mut blob, mut ends) = (Vec::new(), Vec::new());
        let mut path: Vec<u8> = Vec::new();
        // For each node that is left: the node, how many bytes lead to the node above it, and the byte that leads from
        // there.
        let roots = (0..=u8::MAX).map(|head| (self.roots[usize::from(head)], 0, head));
        let mut waiting: Vec<(u32, usize, u8)> = roots.collect();
        while let Some((at, depth, head)) = waiting.pop() {
            let Some(node) = self.node(at) else { continue };
            path.truncate(depth);
            path.push(head);
            path.extend_from_slice(node.label());
            if node.key != NO_KEY {
                blob.extend_from_slice(&path);
                ends.push(blob.len());
            }
            if node.count > 0 {
                waiting.extend(
                    (0..=u8::MAX).map(|head| (node.child(head), path.len(), head)).filter(|child| child.0 != 0),
                );
            }
        }
        (blob, ends)
    }
}

/// Divide sorted keys by their byte at `depth`, which all of them have.
fn by_head(
    keys: &[(&[u8], u32)],
    mut range: std::ops::Range<usize>,
    depth: usize,
) -> Vec<(u8, std::ops::Range<usize>)> {
    let mut groups = Vec::new();
    while !range.is_empty() {
        let head = keys[range.start].0[depth];
        let end = range.start + keys[range.clone()].partition_point(|(key, _)| key[depth] <= head);
        groups.push((head, range.start..end));
        range.start = end;
    }
    groups
}

impl<'a> Node<'a> {
    fn label(self) -> &'a [u8] {
        &self.rest[..self.length]
    }

    /// How many bytes of the label the text begins with.
    #[inline(always)]
    fn compare(self, text: &[u8]) -> usize {
        // Most labels are short, and many are empty. One comparison that suits all of them is faster than telling these
        // cases apart.
        if self.length < WORD {
            if let (Some(label), Some(text)) = (self.rest.first_chunk(), text.first_chunk()) {
                let differ = u64::from_le_bytes(*label) ^ u64::from_le_bytes(*text) | 1 << (8 * self.length);
                return differ.trailing_zeros() as usize / 8;
            }
        }
        common_length(self.label(), text)
    }

    /// The child to which a byte leads, 0 if there is none.
    #[inline(always)]
    fn child(self, byte: u8) -> u32 {
        let place = if self.count > FEW {
            let [lowest, others] = [self.rest[self.length], self.rest[self.length + 1]];
            let number = byte.wrapping_sub(lowest);
            if number > others {
                return 0;
            }
            self.length + 2 + 4 * usize::from(number)
        } else {
            // Compare all heads at once: after this, the lowest byte that is zero belongs to the child. (In a node
            // without children, what follows means nothing.)
            const EACH: u64 = 0x0101_0101_0101_0101;
            let Some(heads) = self.rest[self.length..].first_chunk() else { return 0 };
            let differ = u64::from_le_bytes(*heads) ^ (EACH * u64::from(byte));
            let zeros = differ.wrapping_sub(EACH) & !differ & (0x80 * EACH);
            let number = zeros.trailing_zeros() as usize / 8;
            if number >= self.count {
                return 0;
            }
            self.length + FEW + 4 * number
        };
        self.rest.get(place..place + 4).and_then(|child| child.try_into().ok()).map_or(0, u32::from_le_bytes)
    }
}

// --- The automaton -------------------------------------------------------------------------------
//
// The longest key at every place of a text, for texts in which searching each place by itself takes too long. If keys
// begin alike, and the text looks like their beginning everywhere, thousands of bytes are read at each place.
//
// An automaton (Aho and Corasick's) reads the text from its end to its beginning, and each key from its last byte to
// its first. Its state at a place is the longest part of the text from there on with which some key ends. So the
// longest key at the place is the longest key with which this part begins. That is known in advance for every state,
// and every byte of the text is read once.

/// No automaton is built if the keys need more states than this: 12 bytes for each, and as many again while it is
/// built. (16,000 keys of 20 bytes need 320,000 at most.)
const MAX_STATES: usize = 1 << 22;

/// The state in which nothing of the text is known.
const ROOT: u32 = 0;

/// A state. It stands for a part of the text with which some key ends.
#[derive(Clone, Copy, Default)]
struct State {
    /// The state to continue from if the next byte leads nowhere: that of the longest shorter part.
    shorter: u32,
    /// The length of the longest key with which the part begins.
    longest: u32,
    /// The byte that leads to this state.
    head: u8,
    /// Whether that byte leads here from the state before this one in the list.
    follows: bool,
    /// Whether more states can be reached from here, which are in `Backwards::others`.
    branches: bool,
}

/// The automaton. If a state leads to any others, one of them comes right after it in the list: most states have no
/// other.
pub struct Backwards {
    states: Vec<State>,
    /// To which other state a byte leads from a state.
    others: HashMap<(u32, u8), u32>,
}

impl Backwards {
    /// About how many bytes of memory it takes to build one for keys of this many bytes.
    pub fn memory(bytes: usize) -> usize {
        bytes.min(MAX_STATES) * 48 + bytes * 2
    }

    /// The automaton for keys that are stored one after the other. `None` if it would be too large.
    pub fn new(mut blob: Vec<u8>, ends: &[usize]) -> Option<Backwards> {
        // 1. Reverse all keys, and sort them.
        let mut keys: Vec<std::ops::Range<usize>> = Vec::with_capacity(ends.len());
        let mut begin = 0;
        for &end in ends {
            blob[begin..end].reverse();
            keys.push(begin..end);
            begin = end;
        }
        keys.sort_unstable_by(|a, b| blob[a.clone()].cmp(&blob[b.clone()]));
        let keys: Vec<&[u8]> = keys.into_iter().map(|key| &blob[key]).collect();
        let common = |i: usize| if i == 0 { 0 } else { crate::text::keys::common_length(keys[i - 1], keys[i]) };
        let count = 1 + (0..keys.len()).map(|i| keys[i].len() - common(i)).sum::<usize>();
        if count > MAX_STATES {
            return None;
        }
        // 2. Make a state for every beginning of a key, in the order of the keys.
        let mut states = Vec::with_capacity(count);
        states.push(State::default());
        let mut others = HashMap::new();
        let mut above = vec![ROOT]; // for each state, the one before it on its path
        let mut path = vec![ROOT];
        for (i, key) in keys.iter().enumerate() {
            let same = common(i);
            path.truncate(same + 1);
            for &head in &key[same..] {
                let (from, new) = (path[path.len() - 1], states.len() as u32);
                let follows = from + 1 == new;
                if !follows {
                    others.insert((from, head), new);
                    states[from as usize].branches = true;
                }
                states.push(State { head, follows, ..State::default() });
                above.push(from);
                path.push(new);
            }
            states[path[key.len()] as usize].longest = key.len() as u32;
        }
        let mut automaton = Backwards { states, others };
        automaton.link(&above);
        Some(automaton)
    }

    /// Find the longest shorter part for every state. States with shorter paths come first, because the search goes by
    /// way of the state above.
    fn link(&mut self, above: &[u32]) {
        let count = self.states.len();
        let mut depths = vec![0u32; count];
        for at in 1..count {
            depths[at] = depths[above[at] as usize] + 1;
        }
        let mut order: Vec<u32> = (1..count as u32).collect();
        order.sort_by_key(|&at| depths[at as usize]);
        for at in order {
            let State { head, longest, .. } = self.states[at as usize];
            let from = above[at as usize];
            let shorter = if from == ROOT { ROOT } else { self.next(self.states[from as usize].shorter, head) };
            self.states[at as usize].shorter = shorter;
            if longest == 0 {
                // If the shorter part begins with a key, so does the part, because both begin at the same place.
                self.states[at as usize].longest = self.states[shorter as usize].longest;
            }
        }
    }

    /// The state after one more byte, which comes before those already read.
    #[inline]
    fn next(&self, mut at: u32, byte: u8) -> u32 {
        loop {
            let state = &self.states[at as usize];
            if let Some(next) = self.states.get(at as usize + 1) {
                if next.head == byte && next.follows {
                    return at + 1;
                }
            }
            if state.branches {
                if let Some(&next) = self.others.get(&(at, byte)) {
                    return next;
                }
            }
            if at == ROOT {
                return ROOT;
            }
            at = state.shorter;
        }
    }

    /// The length of the longest key at each of the first `count` places of a text. After these places, the text goes
    /// on for at least as many bytes as the longest key has.
    pub fn longest(&self, text: &[u8], count: usize, lengths: &mut Vec<u32>) {
        lengths.clear();
        lengths.resize(count, 0);
        let mut at = ROOT;
        for place in (0..text.len()).rev() {
            at = self.next(at, text[place]);
            if let Some(length) = lengths.get_mut(place) {
                *length = self.states[at as usize].longest;
            }
        }
    }
}

// --- How far two texts agree ---------------------------------------------------------------------

/// How many bytes two texts have in common at their beginnings. (Eight are compared at a time, because words and keys
/// that begin alike may share hundreds of bytes.)
#[inline]
pub fn common_length(left: &[u8], right: &[u8]) -> usize {
    let mut same = 0;
    while let (Some(a), Some(b)) = (left[same..].first_chunk::<8>(), right[same..].first_chunk::<8>()) {
        let differ = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differ != 0 {
            return same + differ.trailing_zeros() as usize / 8;
        }
        same += 8;
    }
    same + left[same..].iter().zip(&right[same..]).take_while(|(a, b)| a == b).count()
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

    /// A pseudorandom number below `limit`.
    fn chance(state: &mut u64, limit: usize) -> usize {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) as usize % limit
    }

    /// The longest of the first `limit` matches, the shortest ones first.
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
            // 3. Find the keys place by place, with the automaton, and with a walk that changes from one method to the
            //    other.
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
        // Going place by place would take 200,000 * 8,000 steps.
        assert!(begin.elapsed().as_secs_f64() < 8.0, "{:?}", begin.elapsed());
        drop(walk);
        assert!(keys.backwards.get_or_make(|| Err(())).is_ok_and(|made| made.is_some()));
    }

    #[test]
    fn to_the_first_difference_or_the_end_of_one() {
        let text = [b'a'; 30];
        for length in 0..30 {
            assert_eq!(common_length(&text[..length], &text), length);
            assert_eq!(common_length(&text, &text[..length]), length);
            let mut other = text;
            other[length] = b'b';
            assert_eq!(common_length(&text, &other), length);
        }
    }
}
