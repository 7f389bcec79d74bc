//! A radix tree of keys. To find the longest key at a place, one walks down from the root; bytes that no two keys part at
//! are compared together.

use crate::text::common::common_length;

/// No key ends at a node.
const NO_KEY: u32 = u32::MAX;
/// A node with more children than this has a table of them.
const FEW: usize = 8;

/// A node. The byte that leads to it (its head) is in `Trie::heads`.
#[derive(Clone)]
struct Node {
    /// The bytes after its head that all keys below it have in common: where they begin in `Trie::labels`,
    label: usize,
    /// and how many they are.
    length: u32,
    /// Its children stand side by side; this is the first.
    first: u32,
    /// How many there are.
    count: u32,
    /// Which table tells them apart, if they are more than `FEW`.
    table: u32,
    /// The number of the key that ends after the label, or `NO_KEY`.
    key: u32,
}

/// Keys as a tree. It takes as much memory as the bytes in which the keys differ, and 33 bytes for each place where some
/// part or one ends.
pub struct Trie {
    /// The root is the first, and has no label.
    nodes: Vec<Node>,
    /// The head of each node, and `FEW` bytes.
    heads: Vec<u8>,
    labels: Vec<u8>,
    /// For each byte, which of a node's children it leads to, if it leads to any.
    tables: Vec<[u8; 256]>,
    /// For each byte the node that it leads to from the root, or 0.
    roots: Box<[u32; 256]>,
}

/// What was found at a place.
pub struct Found {
    /// The length of the longest key, 0 if there is none.
    pub length: usize,
    /// Its number.
    pub key: usize,
    /// How many bytes were looked at.
    pub looked: usize,
}

impl Trie {
    /// The tree of some keys, none of which is empty, with their numbers. They are sorted, and no two are equal. Below a
    /// key that has `limit - 1` others as beginnings there is nothing.
    pub fn new(keys: &[(&[u8], u32)], limit: usize) -> Trie {
        let empty = Node { label: 0, length: 0, first: 0, count: 0, table: 0, key: NO_KEY };
        let mut trie = Trie {
            nodes: vec![empty.clone()],
            heads: vec![0],
            labels: Vec::new(),
            tables: Vec::new(),
            roots: Box::new([0; 256]),
        };
        // Nodes that are not complete: the keys below each, how many bytes lead to it, how many keys end above it.
        let mut waiting = vec![(0, 0..keys.len(), 0, 0)];
        while let Some((at, mut range, depth, mut above)) = waiting.pop() {
            if range.is_empty() {
                continue;
            }
            // 1. Its label. What the first and the last key have in common, all have.
            let (first, last) = (keys[range.start].0, keys[range.end - 1].0);
            let length = if at == 0 { 0 } else { common_length(&first[depth..], &last[depth..]) };
            let end = depth + length;
            trie.nodes[at].label = trie.labels.len();
            trie.nodes[at].length = length as u32;
            trie.labels.extend_from_slice(&first[depth..end]);
            // 2. The key that ends here: it comes first.
            if first.len() == end {
                trie.nodes[at].key = keys[range.start].1;
                range.start += 1;
                above += 1;
                if above == limit {
                    continue;
                }
            }
            // 3. A child for each byte that follows in some key.
            let child = trie.nodes.len();
            trie.nodes[at].first = child as u32;
            while !range.is_empty() {
                let head = keys[range.start].0[end];
                let same = range.start + keys[range.clone()].partition_point(|(key, _)| key[end] <= head);
                waiting.push((trie.nodes.len(), range.start..same, end + 1, above));
                trie.nodes.push(empty.clone());
                trie.heads.push(head);
                range.start = same;
            }
            let heads = &trie.heads[child..];
            trie.nodes[at].count = heads.len() as u32;
            if heads.len() > FEW {
                let mut table = [0; 256];
                for (number, &head) in (0..=u8::MAX).zip(heads) {
                    table[usize::from(head)] = number;
                }
                trie.nodes[at].table = trie.tables.len() as u32;
                trie.tables.push(table);
            }
        }
        for child in 0..trie.nodes[0].count {
            trie.roots[usize::from(trie.heads[1 + child as usize])] = 1 + child;
        }
        trie.heads.extend_from_slice(&[0; FEW]);
        trie
    }

    /// Whether a key begins with this byte.
    #[inline]
    pub fn begins(&self, byte: u8) -> bool {
        self.roots[usize::from(byte)] != 0
    }

    /// The bytes that follow the first byte of keys: any, if that is a key by itself.
    pub fn second_bytes(&self, first: u8) -> impl Iterator<Item = u8> + '_ {
        let node = &self.nodes[self.roots[usize::from(first)] as usize];
        let any = node.length == 0 && node.key != NO_KEY;
        let children = &self.heads[node.first as usize..][..node.count as usize];
        let label = &self.labels[node.label..][..node.length as usize];
        (0..=u8::MAX).filter(move |byte| any || label.first().map_or(children.contains(byte), |next| next == byte))
    }

    /// The longest key that a text begins with.
    #[inline]
    pub fn longest(&self, text: &[u8]) -> Found {
        let mut found = Found { length: 0, key: 0, looked: 1 };
        let Some(&first) = text.first() else { return found };
        let mut at = self.roots[usize::from(first)];
        let mut depth = 1;
        while at != 0 {
            let node = &self.nodes[at as usize];
            // 1. The label.
            let length = node.length as usize;
            if length > 0 {
                let (label, rest) = (&self.labels[node.label..][..length], &text[depth..]);
                let same = if label.first() == rest.first() { common_length(label, rest) } else { 0 };
                depth += same;
                if same < length {
                    break;
                }
            }
            if node.key != NO_KEY {
                (found.length, found.key) = (depth, node.key as usize);
            }
            // 2. The next byte.
            let Some(&byte) = text.get(depth) else { break };
            at = self.child(node, byte);
            depth += 1;
        }
        found.looked = depth;
        found
    }

    /// The child of a node that a byte leads to, 0 if there is none.
    #[inline]
    fn child(&self, node: &Node, byte: u8) -> u32 {
        if node.count as usize > FEW {
            let child = node.first + u32::from(self.tables[node.table as usize][usize::from(byte)]);
            return if self.heads[child as usize] == byte { child } else { 0 };
        }
        // All heads at once: the lowest byte that is zero after this is the one that is looked for.
        const EACH: u64 = 0x0101_0101_0101_0101;
        let Some(heads) = self.heads[node.first as usize..].first_chunk() else { return 0 };
        let differ = u64::from_le_bytes(*heads) ^ EACH * u64::from(byte);
        let zeros = differ.wrapping_sub(EACH) & !differ & 0x80 * EACH;
        let number = zeros.trailing_zeros() / 8;
        if number < node.count {
            node.first + number
        } else {
            0
        }
    }

    /// All keys that can be found, written one after the other, and where each ends.
    pub fn keys(&self) -> (Vec<u8>, Vec<usize>) {
        let (mut blob, mut ends) = (Vec::new(), Vec::new());
        let mut path: Vec<u8> = Vec::new();
        let mut waiting = vec![(0, 0)]; // nodes, and how many bytes lead to the node above
        while let Some((at, depth)) = waiting.pop() {
            let node: &Node = &self.nodes[at];
            path.truncate(depth);
            if at > 0 {
                path.push(self.heads[at]);
            }
            path.extend_from_slice(&self.labels[node.label..][..node.length as usize]);
            if node.key != NO_KEY {
                blob.extend_from_slice(&path);
                ends.push(blob.len());
            }
            waiting.extend((node.first..node.first + node.count).map(|child| (child as usize, path.len())));
        }
        (blob, ends)
    }
}
