//! What a byte-level vocabulary has besides its pieces.
//!
//! Its symbols begin as single bytes, not as characters, and a pattern says where a text is cut. Everything else is the
//! same: the pair whose joined text has the lowest rank merges first, the leftmost if several have it.

use std::collections::HashMap;

use crate::error::{Error, Halt};
use crate::machine::Best;
use crate::memory::{zeros, Grow};
use crate::split::Splitter;
use crate::text::utf8::{self, decode};
use crate::vocab::pieces::Pieces;

/// What a model file says about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByteLevelOptions {
    /// The regular expression whose matches are the chunks; empty if a text is one chunk.
    pub pattern: String,
    /// Other regular expressions, each of which cuts the chunks of the one before.
    pub then: Vec<String>,
    /// The name of the pattern, for display.
    pub name: String,
    /// Whether a chunk that is a piece is taken whole, even if no merges lead to it.
    pub whole: bool,
}

/// The same, ready for use.
pub struct ByteLevel {
    /// The options as they were given.
    pub options: ByteLevelOptions,
    /// Cuts text into chunks; `None` if a text is one chunk.
    pub splitter: Option<Splitter>,
    /// The piece of each byte. Bytes that do not occur in UTF-8 may have none; they are never looked up.
    pub ids: Box<[u32; 256]>,
    /// Where long chunks are cut.
    pub cuts: ByteCuts,
    /// The machine.
    pub best: Best,
}

impl ByteLevel {
    /// For the pieces of a model, which must have every byte of UTF-8.
    pub fn new(options: ByteLevelOptions, pieces: &Pieces) -> Result<ByteLevel, Error> {
        let mut ids = Box::new([0; 256]);
        for byte in 0..=u8::MAX {
            match pieces.find(&[byte]).filter(|&id| pieces.mergeable(id)) {
                Some(id) => ids[usize::from(byte)] = id,
                None if matches!(byte, 0xC0 | 0xC1 | 0xF5..) => ids[usize::from(byte)] = u32::MAX,
                None => return Err(Error::InvalidModel("a byte is not a piece of this byte-level model")),
            }
        }
        let splitter =
            if options.pattern.is_empty() { None } else { Some(Splitter::of_all(&options.pattern, &options.then)?) };
        let cuts = ByteCuts::new(pieces).map_err(|_| Error::OutOfMemory)?;
        Ok(ByteLevel { options, splitter, ids, cuts, best: Best::detect(true) })
    }
}

// --- Where long chunks are cut -------------------------------------------------------------------
//
// Between which characters a chunk of a byte-level vocabulary can be cut, because nothing merges across.
//
// Where words are written without spaces, the chunks of a pattern are whole clauses. Hardly any of them occurs twice,
// so the cache is of no use, and merging a long chunk takes more time for each byte. But the pieces of such a language
// are short: in Japanese, no merge crosses four of five places between characters with cl100k_base, and three of five
// with o200k_base. If it is cut there, a text consists of a few thousand different parts, of five bytes on average.
//
// Symbols are bytes at first, so a place between two characters can be crossed by four kinds of pieces. They contain
// both characters; or the left one and the beginning of the right one; or the end of the left one and the right one; or
// an end and a beginning. The last three are called ragged. A trained vocabulary has a few hundred of them ("
// \xE3\x80", say), and together they could cross almost every place. But merging hardly ever makes one of them:
//
// A character is *sturdy* if its bytes alone merge into one symbol, and if every ragged piece that contains a part of
// it, but not all of it, has a higher rank than each of these merges. Then no merge in any text makes a symbol that
// contains a part of it and something outside. Suppose the first such merge makes the ragged piece P. Before it, all
// symbols that contain bytes of the character are inside of it, so the merges between them were those that its bytes
// alone have, in the same order. The character is not one symbol yet, so the next of these merges could be made now,
// and its rank is lower than that of P. So it was not the turn of the merge that made P, which is a contradiction.
//
// So a place can be cut unless some piece contains the characters on both sides, or some ragged piece fits there whose
// partial characters are not sturdy. If no merge crosses a place, the parts on both sides merge as they would alone.

/// A text is not cut next to a character from this one on. (The last characters in common use are emoji, before it.)
const LAST: u32 = 0x2_0000;
/// A ragged piece that contains all of a character but its last byte fits before only this many characters.
const NARROW: u32 = 64;
/// The kinds of ragged pieces that fit at many more places have bits of their own. This is how many bits there are for
/// pieces that end with the beginning of a character, by the character before it; how many for pieces that begin with
/// the end of a character, by the character after it; and the bit for pieces that do both.
const BEGINNINGS: u8 = 4;
const ENDS: u8 = 3;
const BOTH: u8 = 1 << 7;
/// How many bits the table of pairs has for each pair.
const BITS_PER_PAIR: usize = 16;
/// How many parts of a chunk are found at once.
pub const PARTS: usize = 64;
/// No rank is higher than this.
const NEVER: u32 = u32::MAX;

/// Where chunks can be cut, as explained above.
pub struct ByteCuts {
    /// For each character, some kinds of ragged pieces: in the upper half those that fit at a place with the character
    /// on its left, in the lower half those that fit with it on its right.
    kinds: Vec<u16>,
    /// For each ASCII character, a bit for each other one that follows it in some piece.
    ascii: Box<[[u64; 2]; 128]>,
    /// By hash, a bit for each pair of other characters that some piece contains side by side, or that a narrow ragged
    /// piece crosses. If two pairs have the same hash, a possible cut may be missed, but the result is the same.
    pairs: Vec<u64>,
    /// How far the hash is shifted to the right, which leaves as many bits as count.
    shift: u32,
}

/// A piece, divided into three: the bytes of a character that began before it, its whole characters, and the bytes of a
/// character that goes on after it.
struct Taken<'a> {
    end: &'a [u8],
    characters: &'a str,
    beginning: &'a [u8],
}

impl Taken<'_> {
    /// Divide a piece; `None` if it cannot occur in any text.
    fn of(piece: &[u8]) -> Option<Taken<'_>> {
        let from = piece.iter().position(|&byte| !utf8::is_continuation(byte)).unwrap_or(piece.len());
        let (end, rest) = piece.split_at(from);
        let (characters, beginning) = match std::str::from_utf8(rest) {
            Ok(characters) => (characters, &b""[..]),
            Err(error) if error.error_len().is_none() => {
                let (characters, beginning) = rest.split_at(error.valid_up_to());
                (std::str::from_utf8(characters).ok()?, beginning)
            }
            Err(_) => return None,
        };
        (end.len() < 4).then_some(Taken { end, characters, beginning })
    }

    /// Whether it contains a part of a character, and something outside of that character.
    fn is_ragged(&self) -> bool {
        let partial = !self.end.is_empty() || !self.beginning.is_empty();
        partial && !self.characters.is_empty() || !self.end.is_empty() && !self.beginning.is_empty()
    }
}

/// For each part of a character that ragged pieces contain, the lowest rank of these pieces.
fn lowest_ranks<'a>(parts: impl Iterator<Item = (&'a [u8], u32)>) -> HashMap<&'a [u8], u32> {
    let mut lowest = HashMap::new();
    for (part, rank) in parts.filter(|(part, _)| !part.is_empty()) {
        lowest.entry(part).and_modify(|kept: &mut u32| *kept = rank.min(*kept)).or_insert(rank);
    }
    lowest
}

impl ByteCuts {
    /// Find the cuts for the mergeable pieces. (This takes about 5 ms for 100,000 pieces.)
    pub fn new(pieces: &Pieces) -> Result<ByteCuts, Halt> {
        // 1. Mark pairs of ASCII characters, and collect all other pieces of several characters.
        let mut ascii = Box::new([[0u64; 2]; 128]);
        let mut others = Vec::new();
        let mut characters = Vec::new();
        for id in (0..pieces.len() as u32).filter(|&id| pieces.mergeable(id)) {
            let piece = pieces.text(id);
            if piece.is_ascii() {
                piece.windows(2).for_each(|pair| join(&mut ascii, pair[0].into(), pair[1].into()));
            } else if let Some(taken) = Taken::of(piece) {
                let mut rest = taken.characters.chars();
                match (rest.next(), rest.next(), taken.is_ragged()) {
                    (Some(one), None, false) => characters.push(one),
                    (_, Some(_), _) | (_, _, true) => others.push((taken, pieces.rank(id))),
                    _ => {}
                }
            }
        }
        // 2. For each part of a character, find the lowest rank of the ragged pieces with it; then find out which
        //    characters are sturdy.
        let ragged = || others.iter().filter(|(taken, _)| taken.is_ragged());
        let beginnings = lowest_ranks(ragged().map(|(taken, rank)| (taken.beginning, *rank)));
        let ends = lowest_ranks(ragged().map(|(taken, rank)| (taken.end, *rank)));
        let mut sturdy = zeros::<u64>(LAST as usize / 64)?;
        for one in characters.into_iter().filter(|&one| u32::from(one) < LAST) {
            let mut bytes = [0; 4];
            let bytes = one.encode_utf8(&mut bytes).as_bytes();
            let parts = (1..bytes.len()).flat_map(|at| [beginnings.get(&bytes[..at]), ends.get(&bytes[at..])]);
            if parts.flatten().min().is_none_or(|&ragged| highest_rank(pieces, bytes) < ragged) {
                sturdy[one as usize / 64] |= 1 << (one as usize % 64);
            }
        }
        let is_sturdy = |one: u32| one < 0x80 || sturdy[one as usize / 64] >> (one % 64) & 1 != 0;
        // 3. Collect pairs of other characters, including those that narrow pieces cross, and the kinds of the other
        //    ragged pieces.
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        let mut kinds = zeros::<u16>(LAST as usize)?;
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for (taken, _) in &others {
            let (first, last) = (taken.characters.chars().next(), taken.characters.chars().next_back());
            let (first, last) = (first.map(u32::from), last.map(u32::from));
            pairs.grow(taken.characters.len() + NARROW as usize)?;
            let follow = taken.characters.chars().zip(taken.characters.chars().skip(1));
            pairs.extend(follow.map(|(left, right)| (u32::from(left), u32::from(right))));
            if let (Some(last), Some(&lead)) = (last, taken.beginning.first()) {
                if taken.beginning.len() + 1 == utf8::length_by_first(lead) {
                    let (code, _) = decode(&[taken.beginning, &[0x80]].concat(), 0);
                    let fitting = (code..code + NARROW).filter(|&right| right < LAST && !is_sturdy(right));
                    pairs.extend(fitting.map(|right| (last, right)));
                } else {
                    let kind = 1 << (last % u32::from(BEGINNINGS));
                    mark(&mut kinds, last, kind, 0);
                    after.push((taken.beginning, kind));
                }
            }
            if let (Some(first), false) = (first, taken.end.is_empty()) {
                let kind = 1 << (u32::from(BEGINNINGS) + first % u32::from(ENDS));
                mark(&mut kinds, first, 0, kind);
                before.push((taken.end, kind));
            }
            if taken.characters.is_empty() {
                before.push((taken.end, BOTH));
                after.push((taken.beginning, BOTH));
            }
        }
        // 4. Find the characters of which these pieces may contain a part: a row of characters for a beginning, and
        //    characters at equal distances for an end.
        for (beginning, kind) in after {
            let missing = utf8::length_by_first(beginning[0]) - beginning.len();
            let (first, _) = decode(&[beginning, &[0x80; 3][..missing]].concat(), 0);
            let fitting = (first..LAST).take(1 << (6 * missing)).filter(|&one| !is_sturdy(one));
            fitting.for_each(|one| mark(&mut kinds, one, 0, kind));
        }
        for (end, kind) in before {
            let bits = end.iter().fold(0, |bits, &byte| bits << 6 | u32::from(byte & 0x3F));
            let fitting = (bits..LAST).step_by(1 << (6 * end.len())).filter(|&one| !is_sturdy(one));
            fitting.for_each(|one| mark(&mut kinds, one, kind, 0));
        }
        // 5. Make the table of pairs.
        let bits = (pairs.len() * BITS_PER_PAIR).next_power_of_two().clamp(64, 1 << 31);
        let mut cuts = ByteCuts { kinds, ascii, pairs: zeros(bits / 64)?, shift: 64 - bits.trailing_zeros() };
        for (left, right) in pairs {
            match (left, right) {
                (..0x80, ..0x80) => join(&mut cuts.ascii, left, right),
                _ => {
                    let bit = cuts.bit(left, right);
                    cuts.pairs[bit / 64] |= 1 << (bit % 64);
                }
            }
        }
        Ok(cuts)
    }

    /// Where the bit of two characters is.
    #[inline(always)]
    fn bit(&self, left: u32, right: u32) -> usize {
        ((u64::from(left) << 32 | u64::from(right)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    /// Whether no merge crosses the place between two characters, at least one of which is not ASCII. (There is no
    /// branch, because the result is unpredictable.)
    #[inline(always)]
    fn is_cut(&self, left: u32, right: u32) -> bool {
        let bit = self.bit(left, right);
        let kinds = |one: u32| self.kinds[one.min(LAST - 1) as usize];
        (left.max(right) < LAST)
            & (kinds(left) >> 8 & kinds(right) & 0xFF == 0)
            & (self.pairs[bit / 64] >> (bit % 64) & 1 == 0)
    }

    /// The same for two ASCII characters.
    #[inline(always)]
    fn is_ascii_cut(&self, left: u8, right: u8) -> bool {
        self.ascii[usize::from(left & 127)][usize::from(right >> 6 & 1)] >> (right & 63) & 1 == 0
    }

    /// Find the first parts of a chunk that begins at `from`, where a character does, and ends at `to`, and write where
    /// they end. Returns how many there are.
    #[inline(always)]
    pub fn parts(&self, text: &[u8], from: usize, to: usize, ends: &mut [usize; PARTS + 1]) -> usize {
        let (mut at, mut count) = (from, 0);
        // 1. While it is ASCII: source code has long runs of spaces without cuts, and this loop passes over them
        //    quickly.
        for pair in text[from..to].windows(2) {
            if (pair[0] | pair[1]) >= 0x80 || count == PARTS {
                break;
            }
            at += 1;
            ends[count] = at;
            count += usize::from(self.is_ascii_cut(pair[0], pair[1]));
        }
        // 2. Go from character to character.
        let (mut left, length) = decode(text, at);
        at += length;
        while at < to && count < PARTS {
            let (right, length) = decode(text, at);
            ends[count] = at;
            count += usize::from(if left.max(right) < 0x80 {
                self.is_ascii_cut(left as u8, right as u8)
            } else {
                self.is_cut(left, right)
            });
            left = right;
            at += length;
        }
        // 3. Add the last part.
        if count < PARTS {
            ends[count] = to;
            count += 1;
        }
        count
    }
}

/// Mark two ASCII characters that some piece has side by side.
fn join(ascii: &mut [[u64; 2]; 128], left: u32, right: u32) {
    ascii[left as usize & 127][right as usize >> 6 & 1] |= 1 << (right & 63);
}

/// Add kinds of ragged pieces to a character.
fn mark(kinds: &mut [u16], one: u32, left: u8, right: u8) {
    if let Some(kinds) = kinds.get_mut(one as usize) {
        *kinds |= u16::from(left) << 8 | u16::from(right);
    }
}

/// The highest rank of the merges that make one symbol of a few bytes; `NEVER` if merging does not make one.
fn highest_rank(pieces: &Pieces, bytes: &[u8]) -> u32 {
    let mut ends: Vec<usize> = (0..=bytes.len()).collect();
    let mut highest = 0;
    while ends.len() > 2 {
        let rank = |i: usize| {
            let id = pieces.find(&bytes[ends[i]..ends[i + 2]]).filter(|&id| pieces.mergeable(id))?;
            Some((pieces.rank(id), i))
        };
        let Some((rank, i)) = (0..ends.len() - 2).filter_map(rank).min() else { return NEVER };
        highest = highest.max(rank);
        ends.remove(i + 1);
    }
    highest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::pieces::piece_type::{CONTROL, NORMAL};

    /// The cuts of a text in a vocabulary of all bytes and these pieces, whose order is that of their ranks.
    fn cut(pieces: &[&str], text: &str) -> String {
        let is_hex = |part: &str| part.len() == 2 && !part.bytes().any(|byte| byte.is_ascii_lowercase());
        let bytes = |part: &str| match u8::from_str_radix(part, 16) {
            Ok(byte) if is_hex(part) => vec![byte],
            _ => part.as_bytes().to_vec(),
        };
        let hex = |piece: &&str| -> Vec<u8> { piece.split(' ').flat_map(bytes).collect() };
        let all: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).chain(pieces.iter().map(hex)).collect();
        let mut made = Pieces::new(all.len() + 1, 0);
        for (rank, piece) in all.iter().enumerate() {
            made.push(|blob| blob.extend_from_slice(piece), NORMAL, -(rank as f32)).unwrap();
        }
        made.push(|blob| blob.extend_from_slice("日本本日".as_bytes()), CONTROL, 0.0).unwrap();
        made.finish(|_| false).unwrap();
        let (cuts, mut at, mut parts) = (ByteCuts::new(&made).unwrap(), 0, Vec::new());
        while at < text.len() {
            let mut ends = [0; PARTS + 1];
            let count = cuts.parts(text.as_bytes(), at, text.len(), &mut ends);
            for next in &ends[..count] {
                parts.push(&text[at..*next]);
                at = *next;
            }
        }
        parts.join("|")
    }

    #[test]
    fn places_that_no_piece_crosses() {
        assert_eq!(cut(&[], "ab日本"), "a|b|日|本");
        assert_eq!(cut(&["ab", "日本"], "abab日本日"), "ab|ab|日本|日");
        assert_eq!(cut(&["b日"], "ab日本日b"), "a|b日|本|日|b");
        let long = "日ab".repeat(100);
        assert_eq!(cut(&["ab"], &long), "日|ab|".repeat(100).trim_end_matches('|'));
        // Nothing is cut next to characters beyond the table.
        assert_eq!(cut(&[], "a\u{20000}b🦙c"), "a\u{20000}b|🦙|c");
    }

    #[test]
    fn ragged_pieces_cross_next_to_characters_that_are_not_sturdy() {
        // 日 is E6 97 A5, 旦 is E6 97 A6, 本 is E6 9C AC.
        assert_eq!(cut(&["E6 97", "a E6 97"], "a日a旦a本日a"), "a日|a旦|a|本|日|a");
        assert_eq!(cut(&["E6 97", "E6 97 A5", "a E6 97"], "a日a旦日"), "a|日|a旦|日");
        assert_eq!(cut(&["E6 97", "a E6 97", "E6 97 A5"], "a日a旦日"), "a日|a旦|日");
        assert_eq!(cut(&["97 A5", "E6 97 A5", "a E6"], "a日a旦日"), "a|日|a旦|日");
        assert_eq!(cut(&["E6 97", "E6 97 A5", "A5 a"], "日a旦a日日"), "日|a|旦|a|日|日");
        assert_eq!(cut(&["A5 a", "E6 97", "E6 97 A5"], "日a旦a日日"), "日a|旦|a|日|日");
        assert_eq!(cut(&["A5 E6"], "日a旦日日本"), "日|a|旦|日日本");
        // 🦙 is F0 9F A6 99: all but one byte of it, and less.
        assert_eq!(cut(&["a F0 9F A6"], "a🦙a🦚a日"), "a🦙|a🦚|a|日");
        assert_eq!(cut(&["a F0 9F"], "a🦙a日"), "a🦙|a|日");
    }
}
