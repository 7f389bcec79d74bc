//! The places of a text at which normalizing may do anything. Most of a text is only copied, and what lies between
//! these places is copied together.
//!
//! A place is where a rule or a user-defined piece may begin, and also the first of several spaces, if only one of them
//! stays. Whether something is a place depends on one or two characters:
//!
//! 1. Does a rule consist of this character alone, or does a user-defined piece begin with it? (`first`)
//! 2. Is this character the second one of any rule? (`second`) Then a rule may begin at the character before it. This
//!    is better than asking whether a rule begins with a character: many rules of NFKC begin with a vowel, but they go
//!    on with accents, which hardly any text has as characters of their own.
//!
//! The most common rules replace one ASCII character by another: line ends become spaces, and capitals become small
//! letters. If such rules can be written as a few `Fold`s, they are applied while copying, and make no places. (At
//! first each of these characters was a place, and took 20 ns. Where capitals are folded, that was half of the time.)
//!
//! A table of all pairs of bytes answers most questions without looking at characters. For two ASCII characters it says
//! whether anything begins at the first one. For the first two bytes of a longer character it says whether `first` or
//! `second` holds for any character that begins with them. All three tables are exact, or contain too much. A place too
//! many costs only time, because the normalizer looks at each place and copies what needs no rewriting.

use crate::machine::Vector;
use crate::memory::boxed;
use crate::text::charsmap::{Charsmap, Node};
use crate::text::keys::Keys;
use crate::text::utf8::{self, is_continuation};

/// How many bytes are looked at together.
pub const BLOCK: usize = 64;
/// How many folds there can be.
const MAX_FOLDS: usize = 4;
/// If a set of rules has more nodes than this among its first two characters (that of NFKC has 6,000), its tables
/// contain everything: no real set has so many, and it must not take long to load.
const MAX_NODES: usize = 1 << 15;

/// What becomes of each ASCII byte, plus `BEGINS` if it may be a place.
pub type Rewritten = [u8; 2 * BLOCK];
/// See `Rewritten`.
pub const BEGINS: u8 = 0x80;

/// See the top of this file.
pub struct Places {
    /// For the bytes `x y`, at `x | y << 8`: 1 for a place.
    pairs: Box<[u8; 1 << 16]>,
    /// A bit for each character of two or three bytes: the first question above.
    first: Box<[u64; 1 << 10]>,
    /// The same for the second question.
    second: Box<[u64; 1 << 10]>,
    /// The replacements that are made while copying,
    folds: Vec<Fold>,
    /// and what each byte becomes by them.
    folded: [u8; 256],
    /// See `is_blank`.
    blank: [bool; 256],
    /// See `rewritten`.
    rewritten: Option<(Vector, Rewritten)>,
    /// How many more nodes of the rules may be visited.
    nodes_left: usize,
}

/// What becomes of a range of bytes: all of them become one byte, or the same bits are changed in each.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Fold {
    /// The first byte of the range, and how many follow it.
    first: u8,
    more: u8,
    /// The bits that are kept, and then those that are inverted.
    keep: u8,
    change: u8,
}

impl Fold {
    #[inline(always)]
    fn of(self, byte: u8) -> u8 {
        byte & self.keep ^ self.change
    }

    #[inline(always)]
    fn covers(self, byte: u8) -> bool {
        byte.wrapping_sub(self.first) <= self.more
    }
}

/// A character of up to three bytes with which rules begin.
#[derive(Clone, Copy)]
struct Start<'a>(&'a [u8]);

impl Places {
    /// The places for a normalizer with these rules and user-defined pieces. `squeeze`: one of several spaces stays.
    pub fn new(rules: Option<&Charsmap>, keys: Option<&Keys>, squeeze: bool) -> Places {
        let mut places = Places { nodes_left: MAX_NODES, ..Places::with(0, 0) };
        places.add_first(Start(utf8::SPACE)); // it is written differently in compact text
        if let Some(rules) = rules {
            places.add_folds(rules);
        }
        places.add_blanks(rules, keys);
        if squeeze {
            let is_space = |byte: &u8| places.folded[usize::from(*byte)] == b' ';
            let spaces: Vec<u8> = (0..0x80).filter(is_space).collect();
            for (first, second) in spaces.iter().flat_map(|first| spaces.iter().map(move |second| (first, second))) {
                places.pairs[usize::from(*first) | usize::from(*second) << 8] = 1;
            }
        }
        if let Some(keys) = keys {
            for (first, second) in keys.first_pairs() {
                places.add_key(first, second);
            }
        }
        if let Some(rules) = rules {
            places.add_rules(rules);
        }
        if places.nodes_left == 0 {
            return Places::everywhere();
        }
        places.add_rewritten();
        places
    }

    /// Tables with which every character is a place.
    pub fn everywhere() -> Places {
        Places::with(1, u64::MAX)
    }

    fn with(pair: u8, first: u64) -> Places {
        let folded = std::array::from_fn(|byte| byte as u8);
        Places {
            pairs: boxed(pair),
            first: boxed(first),
            second: boxed(0),
            folds: Vec::new(),
            folded,
            blank: [false; 256],
            rewritten: None,
            nodes_left: 0,
        }
    }

    /// Find the rules that replace one ASCII character by another, as far as they can be written as folds.
    fn add_folds(&mut self, rules: &Charsmap) {
        let mut folds: Vec<Fold> = Vec::new();
        // The byte with which the current range would go on. It passes over places, because these are never copied.
        let mut next = 0;
        // No rule for a byte; or one, and what it becomes if that is one ASCII character.
        let rule = |byte: u8| match rules.longest(&[byte], 0) {
            Some((&[new @ 0..0x80], 1)) => Some(Some(new)),
            other => other.map(|_| None),
        };
        for byte in 0..0x80 {
            let Some(new) = rule(byte) else { continue };
            let goes_on = next == byte;
            next = if goes_on || new.is_some() { byte + 1 } else { next };
            let Some(new) = new else { continue };
            let same = Fold { first: byte, more: 0, keep: 0, change: new };
            match folds.last_mut().filter(|_| goes_on) {
                Some(last) if last.more == 0 || last.keep == 0 && last.change == new => {
                    let (first, start) = (last.first, last.of(last.first));
                    if start == new {
                        *last = Fold { first, more: byte - first, keep: 0, change: new };
                    } else if first ^ start == byte ^ new {
                        *last = Fold { first, more: byte - first, keep: 0xFF, change: byte ^ new };
                    } else {
                        folds.push(same);
                    }
                }
                Some(last) if last.keep != 0 && last.change == byte ^ new => last.more = byte - last.first,
                _ => folds.push(same),
            }
        }
        // The rules for which there are no folds left make places like any other rule.
        folds.sort_by_key(|fold| std::cmp::Reverse(fold.more));
        folds.truncate(MAX_FOLDS);
        for fold in &folds {
            for byte in fold.first..=fold.first + fold.more {
                if let Some(Some(new)) = rule(byte) {
                    self.folded[usize::from(byte)] = new;
                }
            }
        }
        self.folds = folds;
    }

    /// Find the bytes that are spaces, or become spaces when they are copied, and can be nothing else.
    fn add_blanks(&mut self, rules: Option<&Charsmap>, keys: Option<&Keys>) {
        for byte in 0..0x80 {
            let is_fold = self.folded(byte) != byte;
            let has_others = |rules: &Charsmap| {
                let mut node = rules.children(rules.root(), byte..=byte);
                node.any(|(_, node)| !is_fold || rules.children(node, 0..=0xFF).next().is_some())
            };
            self.blank[usize::from(byte)] = self.folded(byte) == b' '
                && !rules.is_some_and(has_others)
                && !keys.is_some_and(|keys| keys.begins(byte));
        }
    }

    /// Make the table for normalizing in blocks, if this machine has instructions for it. It is not made if something
    /// may begin at many characters of an ordinary text, because these would have to be looked up.
    fn add_rewritten(&mut self) {
        let mut rewritten = std::array::from_fn(|byte| self.folded[byte]);
        for row in self.pairs.chunks_exact(256) {
            for (byte, (rewritten, pair)) in rewritten.iter_mut().zip(row).enumerate() {
                // (Spaces after a blank are dropped, without looking it up.)
                *rewritten |= if *pair != 0 && !self.blank[byte] { BEGINS } else { 0 };
            }
        }
        let is_common = |byte: &u8| byte.is_ascii_lowercase() || *byte == b' ';
        let is_slow = (0..0x80).filter(is_common).any(|byte| rewritten[usize::from(byte)] & BEGINS != 0);
        self.rewritten = Vector::detect().filter(|_| !is_slow).map(|vector| (vector, rewritten));
    }

    /// The table for normalizing in blocks; see `normalize.rs`.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    #[inline(always)]
    pub fn rewritten(&self) -> Option<&(Vector, Rewritten)> {
        self.rewritten.as_ref()
    }

    /// Whether a byte is a space, or becomes one when it is copied, and neither a longer rule nor a user-defined piece
    /// begins with it.
    #[inline(always)]
    pub fn is_blank(&self, byte: u8) -> bool {
        self.blank[usize::from(byte)]
    }

    /// What a byte becomes by copying.
    #[inline]
    pub fn folded(&self, byte: u8) -> u8 {
        self.folded[usize::from(byte)]
    }

    /// The same for many bytes. (Using the table takes three times as long.)
    #[inline(always)]
    pub fn fold(&self, bytes: &mut [u8; BLOCK]) {
        // (The result of one fold may be in the range of another, so all folds look at the original bytes.)
        let before = *bytes;
        for &fold in &self.folds {
            for (byte, &before) in bytes.iter_mut().zip(&before) {
                *byte = if fold.covers(before) { fold.of(before) } else { *byte };
            }
        }
    }

    /// Record that a user-defined piece begins with these bytes, or consists of the first alone.
    fn add_key(&mut self, first: u8, second: u8) {
        if is_continuation(first) {
            // No character begins with it, and nothing is searched for inside of one: see `rewrite_by_context`.
            return;
        }
        self.pairs[usize::from(first) | usize::from(second) << 8] = 1;
        match (first, second) {
            (0xC0..0xE0, 0x80..0xC0) => set(&mut self.first, code(&[first, second])),
            (0xE0..0xF0, 0x80..0xC0) => self.first[code(&[first, second, 0x80]) >> 6] = u64::MAX,
            _ => {}
        }
    }

    /// Record that something begins with this character, whatever follows it.
    fn add_first(&mut self, Start(character): Start) {
        match *character {
            [byte] => (0..256).for_each(|next| self.pairs[usize::from(byte) | next << 8] = 1),
            [one, other, ..] => {
                self.pairs[usize::from(one) | usize::from(other) << 8] = 1;
                set(&mut self.first, code(character));
            }
            [] => {}
        }
    }

    /// Count a visit to a node. Returns false if there were too many.
    fn visit(&mut self) -> bool {
        self.nodes_left = self.nodes_left.saturating_sub(1);
        self.nodes_left > 0
    }

    /// Record what follows from the first two characters of all rules.
    fn add_rules(&mut self, rules: &Charsmap) {
        let mut starts = vec![(rules.root(), Vec::new())];
        while let Some((node, bytes)) = starts.pop() {
            if !self.visit() {
                return;
            }
            // 1. Follow the bytes of the first character. Characters of four bytes are all places, by their first two
            //    bytes. (Bytes that begin no character are not: see `Normalizer::normalize` for text that is not
            //    valid.)
            let length = bytes.first().map_or(1, |&byte| utf8::length_by_first(byte));
            if bytes.len() < length {
                if node.leaf {
                    self.add_prefix(&bytes);
                }
                let range = if bytes.is_empty() { 0..=0xFF } else { 0x80..=0xBF };
                for (byte, child) in rules.children(node, range) {
                    match bytes.first() {
                        None if is_continuation(byte) => {}
                        Some(&first @ 0xF0..) => self.pairs[usize::from(first) | usize::from(byte) << 8] = 1,
                        _ => starts.push((child, [&bytes[..], &[byte]].concat())),
                    }
                }
                continue;
            }
            // 2. Record a rule for it, or rules that go on.
            let start = Start(&bytes);
            let is_fold = matches!(bytes[..], [byte] if self.folded(byte) != byte);
            if node.leaf && !is_fold || !self.add_seconds(rules, node, start) {
                self.add_first(start);
            }
        }
    }

    /// Record that a rule ends within a character that begins with these bytes.
    fn add_prefix(&mut self, bytes: &[u8]) {
        match *bytes {
            [first] => (0x80..0xC0).for_each(|second| self.add_key(first, second)),
            [first, second, ..] => self.add_key(first, second),
            [] => {}
        }
    }

    /// Record the second characters of rules that begin with `start` and go on at `node`. Returns false if these are
    /// not enough to find the rules.
    fn add_seconds(&mut self, rules: &Charsmap, node: Node, Start(start): Start) -> bool {
        for (byte, child) in rules.children(node, 0..=0xFF) {
            match (byte, start) {
                (..0x80, &[start]) => self.pairs[usize::from(start) | usize::from(byte) << 8] = 1,
                (0xC2..0xE0, _) => {
                    for (other, _) in rules.children(child, 0x80..=0xBF) {
                        self.add_second(&[byte, other]);
                    }
                    if !self.visit() || child.leaf || rules.has_further_character(child) {
                        return false;
                    }
                }
                (0xE0..0xF0, _) => {
                    for (other, child) in rules.children(child, 0x80..=0xBF) {
                        for (third, _) in rules.children(child, 0x80..=0xBF) {
                            self.add_second(&[byte, other, third]);
                        }
                        if !self.visit() || child.leaf || rules.has_further_character(child) {
                            return false;
                        }
                    }
                    if !self.visit() || child.leaf || rules.has_further_character(child) {
                        return false;
                    }
                }
                // An ASCII character after a longer one, a character of four bytes, or a byte that begins no character.
                _ => return false,
            }
        }
        true
    }

    fn add_second(&mut self, character: &[u8]) {
        self.pairs[usize::from(character[0]) | usize::from(character[1]) << 8] = 1;
        set(&mut self.second, code(character));
    }

    /// The places in the block at `base`, as bits; `confirm` says more about each. Bits after the end of the text mean
    /// nothing.
    #[inline(always)]
    pub fn of_block(&self, text: &[u8], base: usize) -> u64 {
        match text[base..].first_chunk() {
            Some(block) => self.of_bytes(block),
            None => self.of_end(text, base),
        }
    }

    #[cold]
    fn of_end(&self, text: &[u8], base: usize) -> u64 {
        let mut block = [0; BLOCK + 1];
        let rest = &text[base..];
        block[..rest.len()].copy_from_slice(rest);
        self.of_bytes(&block)
    }

    #[inline(always)]
    fn of_bytes(&self, block: &[u8; BLOCK + 1]) -> u64 {
        marked_pairs(&self.pairs, block)
    }

    /// Whether the first of two bytes is a place; `confirm` says more about it.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    #[inline(always)]
    pub fn is_place(&self, first: u8, second: u8) -> bool {
        self.pairs[usize::from(first) | usize::from(second) << 8] != 0
    }

    /// The table of pairs; see the top of this file.
    pub fn pairs(&self) -> &[u8; 1 << 16] {
        &self.pairs
    }

    /// The place at which something may begin, according to one of the places of a block: the place itself, or the
    /// character before it, if that is not before `from`. `None` if nothing begins at either.
    #[inline(always)]
    pub fn confirm(&self, text: &[u8], place: usize, from: usize) -> Option<usize> {
        let code = match text[place..] {
            [0xE0..0xF0, _, _, ..] => code(&text[place..place + 3]),
            [0xC0..0xE0, _, ..] => code(&text[place..place + 2]),
            _ => return Some(place),
        };
        let (index, bit) = (code >> 6, code & 63);
        if self.second[index] >> bit & 1 != 0 && place > from {
            let mut before = place - 1;
            while before > from && is_continuation(text[before]) {
                before -= 1;
            }
            return Some(before);
        }
        (self.first[index] >> bit & 1 != 0).then_some(place)
    }
}

/// Which bytes of a block, each together with the byte after it, have a 1 in a table, as bits.
#[inline(always)]
pub fn marked_pairs(pairs: &[u8; 1 << 16], block: &[u8; BLOCK + 1]) -> u64 {
    let mut marked = 0;
    // (As in `machine.rs`: no branches, and no step waits for the one before it.)
    for begin in (0..BLOCK).step_by(16) {
        let mut bits = 0u64;
        for i in (begin..begin + 16).rev() {
            // SAFETY: both bytes are in the block. (If the two bytes are indexed, the compiler does not combine them
            // into one load.)
            let pair = unsafe { block.as_ptr().add(i).cast::<u16>().read_unaligned() };
            bits = bits * 2 + u64::from(pairs[usize::from(u16::from_le(pair))]);
        }
        marked |= bits << begin;
    }
    marked
}

/// The code point of a character of two or three bytes.
#[inline(always)]
fn code(character: &[u8]) -> usize {
    let part = |i: usize| usize::from(character[i] & 0x3F);
    match character.len() {
        2 => usize::from(character[0] & 0x1F) << 6 | part(1),
        _ => usize::from(character[0] & 0x0F) << 12 | part(1) << 6 | part(2),
    }
}

fn set(bits: &mut [u64; 1 << 10], code: usize) {
    bits[code >> 6] |= 1 << (code & 63);
}
