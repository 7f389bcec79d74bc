//! A radix tree of keys. The longest key at a place is found by walking down from the root. Bytes at which no keys
//! branch are compared together.
//!
//! Most of the time is spent waiting for memory: a large tree does not fit into the nearest caches. So all data of a
//! node are in one place, mostly in one line of the cache. (With nodes, labels and children apart, each step waited for
//! three lines.) This is a node:
//!
//! ```text
//! count: 2 bytes | length: 2 | key: 4 | label: length | what leads to the children
//!     count = 0 ... FEW:      the byte that leads to each child, FEW bytes, and where each child is, 4 bytes each
//!     otherwise:              the first of these bytes, how many there are from it to the last, minus 1,
//!                             and for all bytes from the first to the last where the child is, or 0
//! ```

use crate::text::common::common_length;

/// No key ends at a node.
const NO_KEY: u32 = u32::MAX;
/// A node with more children than this has a table of them.
const FEW: usize = 8;
/// How many bytes come before a label.
const HEAD: usize = 8;
/// The longest label; keys that have more in common have a chain of nodes.
const MAX_LABEL: usize = u16::MAX as usize;
/// Labels of less than this many bytes are compared at once.
const WORD: usize = 8;

/// Keys as a tree.
pub struct Trie {
    /// The nodes, and `WORD` bytes.
    nodes: Vec<u8>,
    /// For each byte the node that it leads to from the root, or 0.
    roots: Box<[u32; 256]>,
}

/// What was found at a place.
pub struct Found {
    /// The length of the longest key, 0 if there is none.
    pub length: usize,
    /// Its number.
    pub key: u32,
    /// How many bytes were looked at.
    pub looked: usize,
}

/// A node as it is read.
#[derive(Clone, Copy)]
struct Node<'a> {
    count: usize,
    length: usize,
    key: u32,
    /// The label, and all that follows.
    rest: &'a [u8],
}

/// Where the place of a child is stored.
#[derive(Clone, Copy)]
enum Slot {
    Root(u8),
    Node(usize),
}

/// Keys below a node that does not exist yet.
struct Waiting {
    slot: Slot,
    range: std::ops::Range<usize>,
    /// How many bytes lead to it.
    depth: usize,
    /// How many keys end above it.
    above: usize,
}

impl Trie {
    /// The tree of some keys, none of which is empty, with their numbers. They are sorted, and no two are equal.
    /// Nothing is below a key that begins with `limit - 1` others. `None` if there are more bytes than can be numbered.
    pub fn new(keys: &[(&[u8], u32)], limit: usize) -> Option<Trie> {
        let mut trie = Trie { nodes: vec![0; HEAD], roots: Box::new([0; 256]) };
        let mut waiting = Vec::new();
        for (head, range) in by_head(keys, 0..keys.len(), 0) {
            waiting.push(Waiting { slot: Slot::Root(head), range, depth: 1, above: 0 });
        }
        while let Some(Waiting { slot, mut range, depth, mut above }) = waiting.pop() {
            let at = trie.nodes.len();
            trie.note(slot, u32::try_from(at).ok()?);
            // 1. Its label. What the first and the last key have in common, all have.
            let (first, last) = (keys[range.start].0, keys[range.end - 1].0);
            let length = common_length(&first[depth..], &last[depth..]).min(MAX_LABEL);
            let end = depth + length;
            // 2. The key that ends here: it comes first.
            let mut key = NO_KEY;
            if first.len() == end {
                key = keys[range.start].1;
                range.start += 1;
                above += 1;
                if above == limit {
                    range.start = range.end;
                }
            }
            // 3. A child for each byte that follows in some key.
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

    /// The bytes that follow the first byte of keys: any, if that is a key by itself.
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
    pub fn longest(&self, text: &[u8]) -> Found {
        let mut found = Found { length: 0, key: NO_KEY, looked: 1 };
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

    /// All keys that can be found, written one after the other, and where each ends.
    pub fn keys(&self) -> (Vec<u8>, Vec<usize>) {
        let (mut blob, mut ends) = (Vec::new(), Vec::new());
        let mut path: Vec<u8> = Vec::new();
        // Nodes, how many bytes lead to the node above each, and the byte that leads from there.
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

/// Sorted keys by their byte at `depth`, which all have.
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

    /// How many bytes of the label a text begins with.
    #[inline(always)]
    fn compare(self, text: &[u8]) -> usize {
        // Most labels are short, and many are empty. One comparison that suits all of these is faster than to tell them
        // apart.
        if self.length < WORD {
            if let (Some(label), Some(text)) = (self.rest.first_chunk(), text.first_chunk()) {
                let differ = u64::from_le_bytes(*label) ^ u64::from_le_bytes(*text) | 1 << (8 * self.length);
                return differ.trailing_zeros() as usize / 8;
            }
        }
        common_length(self.label(), text)
    }

    /// The child that a byte leads to, 0 if there is none.
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
            // All heads at once: the lowest byte that is zero after this is the one wanted. (What follows a node
            // without children means nothing.)
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
