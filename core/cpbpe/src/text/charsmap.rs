//! Compiled rules: finds the longest key at a place, and what replaces it. `cpbpe/text/charsmap.py` explains the
//! format.

use std::ops::RangeInclusive;

use crate::error::Error;
use crate::text::utf8::is_continuation;

/// sentencepiece has room for this many matches, the shortest ones first, so it does not find longer keys.
const MAX_MATCHES: usize = 32;
/// The bit of a unit that is a leaf. Its other bits are the place of a replacement.
const LEAF: u32 = 1 << 31;

/// The rules of one charsmap.
pub struct Charsmap {
    /// The double array.
    units: Vec<u32>,
    /// Replacements, each ending in NUL.
    replacements: Vec<u8>,
    /// For each byte, whether the key of any rule begins with it. Most bytes of most texts begin none.
    begins: [bool; 256],
}

/// A node of the double array: a text with which some keys begin.
#[derive(Clone, Copy)]
pub struct Node {
    /// Where in the double array its children are.
    place: usize,
    /// Whether it is a key itself.
    pub leaf: bool,
}

/// The distance from a unit to its children, to be combined with its place by `^`.
fn offset(unit: u32) -> usize {
    ((unit >> 10) << ((unit & 0x200) >> 6)) as usize
}

/// Whether a unit is the end of a key. If so, its first child is a leaf.
fn has_leaf(unit: u32) -> bool {
    unit & 0x100 != 0
}

/// The byte that leads to a unit. It is more than 0xFF for a leaf.
fn label(unit: u32) -> u32 {
    unit & (LEAF | 0xFF)
}

impl Charsmap {
    /// Check the bytes of a charsmap as sentencepiece does.
    pub fn new(blob: &[u8]) -> Result<Charsmap, Error> {
        Charsmap::read(blob).ok_or(Error::InvalidModel("its charsmap is malformed"))
    }

    fn read(blob: &[u8]) -> Option<Charsmap> {
        let size = u32::from_le_bytes(blob.get(..4)?.try_into().ok()?) as usize;
        if blob.len() <= 4 || size >= blob.len() - 4 || size < 1024 || size % 1024 != 0 {
            return None;
        }
        let units: Vec<u32> = blob[4..4 + size]
            .chunks_exact(4)
            .map(|unit| u32::from_le_bytes([unit[0], unit[1], unit[2], unit[3]]))
            .collect();
        let replacements = blob[4 + size..].to_vec();
        if replacements.last() != Some(&0) {
            return None;
        }
        if label(units[0]) != 0 || has_leaf(units[0]) || offset(units[0]) == 0 {
            return None;
        }
        for (i, &unit) in units.iter().enumerate() {
            if label(unit) > 0xFF {
                if (unit & !LEAF) as usize >= replacements.len() {
                    return None;
                }
                continue;
            }
            // Whatever byte leads to a child, the child has to be in the array.
            let child = i ^ offset(unit);
            if child | 0xFF >= units.len() || (has_leaf(unit) && label(units[child]) <= 0xFF) {
                return None;
            }
        }
        let root = offset(units[0]);
        let mut begins = [false; 256];
        for (byte, begins) in begins.iter_mut().enumerate() {
            *begins = units.get(root ^ byte).is_some_and(|&unit| label(unit) == byte as u32);
        }
        Some(Charsmap { units, replacements, begins })
    }

    /// The bytes from which this was read.
    pub fn blob(&self) -> Vec<u8> {
        let size = self.units.len() as u32 * 4;
        let units = self.units.iter().flat_map(|unit| unit.to_le_bytes());
        size.to_le_bytes().into_iter().chain(units).chain(self.replacements.iter().copied()).collect()
    }

    /// Whether every rule turns valid UTF-8 into valid UTF-8.
    pub fn is_utf8(&self) -> bool {
        // Each replacement ends in NUL, so it is valid UTF-8 if all replacements together are, and if it begins with a
        // whole character.
        let begins = |unit: u32| !is_continuation(self.replacements[(unit & !LEAF) as usize]);
        std::str::from_utf8(&self.replacements).is_ok()
            && self.units.iter().all(|&unit| label(unit) <= 0xFF || begins(unit))
    }

    /// The node at which all keys begin.
    pub fn root(&self) -> Node {
        Node { place: offset(self.units[0]), leaf: false }
    }

    /// The children of a node for these bytes, each with the byte that leads to it.
    pub fn children(&self, node: Node, bytes: RangeInclusive<u8>) -> impl Iterator<Item = (u8, Node)> + '_ {
        bytes.filter_map(move |byte| {
            let place = node.place ^ usize::from(byte);
            let unit = *self.units.get(place)?;
            (label(unit) == u32::from(byte)).then(|| (byte, Node { place: place ^ offset(unit), leaf: has_leaf(unit) }))
        })
    }

    /// Whether some key goes on with another character after a node.
    pub fn has_further_character(&self, node: Node) -> bool {
        self.children(node, 0..=0x7F).chain(self.children(node, 0xC0..=0xFF)).next().is_some()
    }

    /// The replacement for the longest key in `text` at `start`, and the length of the key.
    #[inline]
    pub fn longest(&self, text: &[u8], start: usize) -> Option<(&[u8], usize)> {
        if !self.begins[usize::from(text[start])] {
            return None;
        }
        let mut node = offset(self.units[0]);
        let mut leaf_and_length = None;
        let mut matches = 0;
        for (length, &byte) in (1..).zip(&text[start..]) {
            node ^= usize::from(byte);
            let Some(&unit) = self.units.get(node) else { break };
            if label(unit) != u32::from(byte) {
                break;
            }
            node ^= offset(unit);
            if has_leaf(unit) {
                leaf_and_length = self.units.get(node).map(|leaf| ((leaf & !LEAF) as usize, length));
                matches += 1;
                if matches == MAX_MATCHES {
                    break;
                }
            }
        }
        let (value, length) = leaf_and_length?;
        let tail = self.replacements.get(value..)?;
        let end = memchr::memchr(0, tail)?;
        Some((&tail[..end], length))
    }
}
