//! The vocabulary of one model, ready for merging: look-up by text, ranks, and which characters may join.

use std::hash::{BuildHasher, RandomState};

use crate::model::{self, Columns};
use crate::utf8;

/// No piece has this id.
pub const NONE: u32 = u32::MAX;

/// A finite map from text to id. Open addressing; a slot holds half of the hash and the id plus one.
struct Table {
    slots: Vec<u64>,
    seed: u64,
}

impl Table {
    /// Room for `count` pieces. The seed is random, so that no model can be made whose pieces collide.
    fn new(count: usize) -> Table {
        let slots = (count * 2).next_power_of_two().max(16);
        Table { slots: vec![0; slots], seed: RandomState::new().hash_one(count) }
    }

    #[inline]
    fn hash(&self, text: &[u8]) -> u64 {
        let (low, high) = if text.len() <= 16 { load(text) } else { (fold(text, self.seed), text.len() as u64) };
        let mixed =
            u128::from(low ^ self.seed) * u128::from((high ^ 0x9E37_79B9_7F4A_7C15).rotate_left(text.len() as u32) | 1);
        let folded = (mixed as u64) ^ ((mixed >> 64) as u64) ^ low.rotate_left(29);
        folded.wrapping_mul(0xD6E8_FEB8_6659_FD93)
    }
}

/// Up to 16 bytes as two words, the rest zero.
#[inline]
fn load(text: &[u8]) -> (u64, u64) {
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    let half = |bytes: &[u8]| u64::from(u32::from_le_bytes(bytes.try_into().unwrap_or_default()));
    let length = text.len();
    if length >= 8 {
        (word(&text[..8]), word(&text[length - 8..]))
    } else if length >= 4 {
        (half(&text[..4]) | half(&text[length - 4..]) << 32, 0)
    } else if length > 0 {
        (u64::from(text[0]) | u64::from(text[length / 2]) << 8 | u64::from(text[length - 1]) << 16, 0)
    } else {
        (0, 0)
    }
}

#[inline]
fn fold(text: &[u8], seed: u64) -> u64 {
    let mut state = seed;
    for block in text.chunks(16) {
        let (low, high) = load(block);
        let mixed = u128::from(low ^ state) * u128::from(high.rotate_left(block.len() as u32) ^ !seed | 1);
        state = (mixed as u64) ^ ((mixed >> 64) as u64) ^ state.rotate_left(17);
    }
    state
}

/// Two characters side by side, as one number.
#[inline]
fn pair_bit(left: u32, right: u32) -> usize {
    let mixed = (u64::from(left) << 32 | u64::from(right)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 47) as usize
}

/// The bytes of one character as a number; 0 beyond four.
#[inline]
pub fn character(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |value, &byte| value << 8 | u32::from(byte))
}

/// What may join, as two tables; see `chunk.rs`.
pub struct Joinable {
    /// For the bytes `x y`, at `x | y << 8`: 0 join, 1 cut, 2 ask `pairs`.
    pub bytes: Box<[u8; 1 << 16]>,
    /// A bit for each pair of characters that some piece holds side by side, at its hash. A wrong one
    /// of two pairs with the same hash only joins what could be cut, which is exact, too.
    pairs: Box<[u64; 1 << 11]>,
}

impl Joinable {
    fn new() -> Joinable {
        Joinable { bytes: boxed(1), pairs: boxed(0) }
    }

    /// Mark the characters `left` and `right` as joinable.
    fn add(&mut self, left: &[u8], right: &[u8]) {
        let (Some(&last), Some(&first)) = (left.last(), right.first()) else { return };
        let bit = pair_bit(character(left), character(right));
        self.pairs[bit >> 6] |= 1 << (bit & 63);
        let ascii = last < 0x80 && first < 0x80;
        self.bytes[usize::from(last) | usize::from(first) << 8] = if ascii { 0 } else { 2 };
    }

    /// Whether some piece may hold `left` and `right` side by side.
    #[inline]
    pub fn pair(&self, left: u32, right: u32) -> bool {
        let bit = pair_bit(left, right);
        self.pairs[bit >> 6] >> (bit & 63) & 1 != 0
    }
}

fn boxed<T: Copy, const N: usize>(value: T) -> Box<[T; N]> {
    // A Box of a large array would be built on the stack first.
    match vec![value; N].into_boxed_slice().try_into() {
        Ok(array) => array,
        Err(_) => unreachable!("the vector was made with N elements"),
    }
}

/// A checked model.
pub struct Vocab {
    /// The model as it was read, but with the texts of the pieces swapped (see `swap`).
    pub columns: Columns,
    table: Table,
    /// For each piece the order of merging, the lowest first; `u32::MAX` and `mergeable` off for those that do not.
    ranks: Vec<u32>,
    /// The piece of each byte, if `byte_fallback`.
    pub byte_ids: Option<Box<[u32; 256]>>,
    /// The piece of type UNKNOWN.
    pub unk: Option<u32>,
    /// The ids to report for unk, bos, eos and pad.
    pub specials: [Option<u32>; 4],
    /// Which characters may join; `None` if cutting could change a result.
    pub joinable: Option<Joinable>,
    /// Whether there are UNUSED pieces.
    pub has_unused: bool,
    /// Whether every mergeable piece is UTF-8. If not, user-defined pieces may break characters, and text cannot be
    /// made compact.
    pub utf8: bool,
    /// Whether pieces and text have U+2581 and space swapped.
    pub swapped: bool,
    /// The USER_DEFINED pieces in the text they have in input, and swapped.
    pub user_defined: Words,
    /// The same, swapped.
    pub user_defined_compact: Words,
}

/// Exchange U+2581 and the space in a text. It undoes itself, and it is how compact text is defined:
/// a normalized text (which holds no space, each having become U+2581) shrinks, a piece keeps its identity.
pub fn swap(text: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while at < text.len() {
        if text[at] == b' ' {
            out.extend_from_slice(utf8::SPACE);
            at += 1;
        } else if text[at..].starts_with(utf8::SPACE) {
            out.push(b' ');
            at += utf8::SPACE.len();
        } else {
            out.push(text[at]);
            at += 1;
        }
    }
}

impl Vocab {
    /// Check a model as sentencepiece does; `None` if it is invalid, and Python will say why.
    pub fn new(mut columns: Columns) -> Option<Vocab> {
        let count = columns.ends.len();
        let byte_fallback = columns.byte_fallback;
        let swapped = columns.normalizer.escape_whitespaces;
        let mut blob = Vec::with_capacity(columns.blob.len());
        let mut table = Table::new(count);
        let mut ends = Vec::with_capacity(count);
        let mut ranks = Vec::with_capacity(count);
        let mut byte_ids = [NONE; 256];
        let mut unk = None;
        let mut words = Vec::new();
        let mut has_unused = false;
        for id in 0..count {
            let piece = columns.piece(id);
            if piece.is_empty() || piece.len() >= 8000 {
                return None;
            }
            let nul = piece == b"\0";
            let kind = if nul && byte_fallback { model::UNUSED } else { columns.types[id] };
            if !(nul && kind == model::UNUSED) && memchr::memchr(0, piece).is_some() {
                return None;
            }
            match kind {
                model::UNKNOWN if unk.replace(id as u32).is_some() => return None,
                model::BYTE => *byte_ids.get_mut(byte_of(piece)?)? = id as u32,
                model::USER_DEFINED => words.push(piece.to_vec()),
                model::UNUSED if !nul => has_unused = true,
                _ => {}
            }
            let begin = blob.len();
            if swapped {
                swap(piece, &mut blob);
            } else {
                blob.extend_from_slice(piece);
            }
            ends.push(u32::try_from(blob.len()).ok()?);
            let key = columns.scores[id].to_bits();
            // The order of the float as a signed magnitude, turned around: the highest score gets the lowest rank.
            let rank = if key >> 31 == 0 { !(key | 1 << 31) } else { key };
            ranks.push(rank);
            columns.types[id] = kind;
            if nul {
                continue;
            }
            insert(&mut table, &blob, &ends, begin, id)?;
        }
        if byte_ids.iter().all(|&id| id != NONE) != byte_fallback
            || byte_ids.iter().any(|&id| id != NONE) != byte_fallback
            || (unk.is_none() && !byte_fallback)
        {
            return None;
        }
        columns.blob = blob;
        columns.ends = ends;
        let mut compact = Vec::new();
        for word in &words {
            let mut text = Vec::new();
            if swapped {
                swap(word, &mut text);
            } else {
                text.clone_from(word);
            }
            compact.push(text);
        }
        let mut vocab = Vocab {
            table,
            ranks,
            byte_ids: byte_fallback.then(|| Box::new(byte_ids)),
            unk,
            specials: [None; 4],
            joinable: None,
            has_unused,
            utf8: true,
            swapped,
            user_defined: Words::new(words),
            user_defined_compact: Words::new(compact),
            columns,
        };
        vocab.specials = vocab.find_specials();
        vocab.utf8 = (0..count)
            .filter(|&id| vocab.mergeable(id as u32))
            .all(|id| std::str::from_utf8(vocab.columns.piece(id)).is_ok());
        vocab.joinable = vocab.find_joinable();
        Some(vocab)
    }

    fn find_specials(&self) -> [Option<u32>; 4] {
        let kinds = [model::UNKNOWN, model::CONTROL, model::CONTROL, model::CONTROL];
        let mut found = [None; 4];
        for ((found, name), kind) in found.iter_mut().zip(&self.columns.special_names).zip(kinds) {
            // When no piece has the name, sentencepiece's look-up answers with the UNKNOWN piece.
            let id = self.id_of(name).or(self.unk);
            *found = id.filter(|&id| self.kind(id) == kind);
        }
        found
    }

    fn find_joinable(&self) -> Option<Joinable> {
        if self.has_unused || !self.utf8 {
            return None; // an UNUSED piece is split as it was last seen in the whole text
        }
        let mut joinable = Joinable::new();
        for id in 0..self.columns.ends.len() {
            if !self.mergeable(id as u32) {
                continue;
            }
            let text = self.columns.piece(id);
            let mut at = 0;
            let mut before: &[u8] = b"";
            while at < text.len() {
                let next = at + utf8::length_by_first(text[at]);
                joinable.add(before, &text[at..next]);
                before = &text[at..next];
                at = next;
            }
        }
        for first in 0x80..0xC0usize {
            for last in 0..256usize {
                joinable.bytes[last | first << 8] = 0; // inside a character
            }
        }
        Some(joinable)
    }

    /// How many pieces there are.
    pub fn len(&self) -> usize {
        self.columns.ends.len()
    }

    /// Never true: a model has pieces.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The type of a piece.
    #[inline]
    pub fn kind(&self, id: u32) -> u8 {
        self.columns.types[id as usize]
    }

    /// Whether merging may make this piece.
    #[inline]
    pub fn mergeable(&self, id: u32) -> bool {
        matches!(self.kind(id), model::NORMAL | model::USER_DEFINED | model::UNUSED)
    }

    /// The order in which a mergeable piece is made, the lowest first.
    #[inline]
    pub fn rank(&self, id: u32) -> u32 {
        self.ranks[id as usize]
    }

    /// The id of the piece with this (swapped) text, of any type.
    #[inline]
    pub fn find(&self, text: &[u8]) -> Option<u32> {
        let hash = self.table.hash(text);
        let mask = self.table.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.table.slots[at];
            if slot == 0 {
                return None;
            }
            if slot >> 32 == hash >> 32 {
                let id = slot as u32 - 1;
                if self.columns.piece(id as usize) == text {
                    return Some(id);
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// The id of the piece that merging may make with this (swapped) text.
    #[inline]
    pub fn find_mergeable(&self, text: &[u8]) -> Option<u32> {
        self.find(text).filter(|&id| self.mergeable(id))
    }

    /// The id of a piece, by its text in the model file.
    pub fn id_of(&self, text: &[u8]) -> Option<u32> {
        if !self.swapped {
            return self.find(text);
        }
        let mut swapped = Vec::with_capacity(text.len());
        swap(text, &mut swapped);
        self.find(&swapped)
    }

    /// The text of a piece in the model file.
    pub fn text_of(&self, id: u32, out: &mut Vec<u8>) {
        let piece = self.columns.piece(id as usize);
        if self.swapped {
            swap(piece, out);
        } else {
            out.extend_from_slice(piece);
        }
    }
}

fn insert(table: &mut Table, blob: &[u8], ends: &[u32], begin: usize, id: usize) -> Option<()> {
    let text = &blob[begin..];
    let hash = table.hash(text);
    let mask = table.slots.len() - 1;
    let mut at = hash as usize & mask;
    while table.slots[at] != 0 {
        let slot = table.slots[at];
        if slot >> 32 == hash >> 32 {
            let other = (slot as u32 - 1) as usize;
            let start = if other == 0 { 0 } else { ends[other - 1] as usize };
            if &blob[start..ends[other] as usize] == text {
                return None; // two equal pieces
            }
        }
        at = (at + 1) & mask;
    }
    table.slots[at] = (hash >> 32) << 32 | (id as u64 + 1);
    Some(())
}

/// The byte of a piece `<0x41>`.
pub fn byte_of(piece: &[u8]) -> Option<usize> {
    let digits = piece.strip_prefix(b"<0x")?.strip_suffix(b">")?;
    let digits = std::str::from_utf8(digits).ok()?;
    if digits.len() != 2 || digits.bytes().any(|digit| digit.is_ascii_lowercase() || digit == b'+') {
        return None;
    }
    usize::from_str_radix(digits, 16).ok()
}

/// A sorted list of words: finds the longest at a place by narrowing a range, byte by byte.
pub struct Words {
    words: Vec<Vec<u8>>,
    /// For each first byte the range of words.
    ranges: Box<[(u32, u32); 256]>,
}

/// As many matches as sentencepiece has room for, shortest first.
const MAX_WORD_MATCHES: usize = 64;

impl Words {
    fn new(mut words: Vec<Vec<u8>>) -> Words {
        words.sort_unstable();
        let mut ranges = boxed((0u32, 0u32));
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

    #[test]
    fn swapping_undoes_itself() {
        let text = "a b\u{2581}\u{2582} ".as_bytes();
        let (mut once, mut twice) = (Vec::new(), Vec::new());
        swap(text, &mut once);
        swap(&once, &mut twice);
        assert_eq!(once, "a\u{2581}b \u{2582}\u{2581}".as_bytes());
        assert_eq!(twice, text);
    }

    #[test]
    fn bytes_of_pieces() {
        assert_eq!(byte_of(b"<0x41>"), Some(0x41));
        for wrong in ["<0x4>", "<0xff>", "<0x041>", "0x41", "<0x+4>", "<0xG0>", "<0x41"] {
            assert_eq!(byte_of(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
