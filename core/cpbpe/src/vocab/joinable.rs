//! Which characters merging can join, and so between which characters a text can be cut.

use crate::machine::{Best, ClassTables, PairTable};
use crate::memory::boxed;
use crate::text::keys::Keys;
use crate::text::utf8::{self, character};
use crate::vocab::characters::{Characters, SingleBytes};
use crate::vocab::pieces::piece_type::USER_DEFINED;
use crate::vocab::pieces::Pieces;

/// The index of the bit for two characters side by side.
#[inline]
pub(super) fn pair_bit(left: u32, right: u32) -> usize {
    let mixed = (u64::from(left) << 32 | u64::from(right)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 47) as usize
}

/// Which characters some piece contains side by side, as two tables; see `cut/words.rs`.
pub struct Joinable {
    /// For the bytes `x y`, at `x | y << 8`: 0 join, 1 cut.
    pub bytes: Box<PairTable>,
    /// A bit for each pair of characters that some piece contains side by side, by its hash. If two pairs have the
    /// same hash, one may count as joinable by mistake. Then a possible cut is missed, and the result is the same.
    pairs: Box<[u64; 1 << 11]>,
    /// The first table, for ASCII characters only, in another form.
    pub classes: Classes,
    /// The machine. (Vectors have room for this many ids.)
    pub best: Best,
    /// The tables without user-defined pieces, if the model has any.
    pub unkeyed: Option<Unkeyed>,
    /// What a byte becomes that is cut off on both sides.
    pub singles: SingleBytes,
    /// What is known about each character.
    pub characters: Characters,
}

impl Joinable {
    /// The tables for the mergeable pieces, all of which are UTF-8.
    pub fn new(pieces: &Pieces, user_defined: &Keys, singles: SingleBytes, characters: Characters) -> Joinable {
        let mut joinable = Joinable {
            bytes: boxed(1),
            pairs: boxed(0),
            classes: Classes { tables: boxed([[0; 128]; 2]) },
            best: Best::detect(pieces.len() < 1 << 24),
            unkeyed: None,
            singles,
            characters,
        };
        for first in 0x80..0xC0usize {
            for last in 0..256usize {
                joinable.bytes[last | first << 8] = 0; // inside a character
            }
        }
        // How many pieces contain each ASCII character.
        let mut weights = [1u32; 128];
        let is_key = |id: &u32| pieces.kind(*id) == USER_DEFINED;
        let (keys, others): (Vec<u32>, Vec<u32>) =
            (0..pieces.len() as u32).filter(|&id| pieces.mergeable(id)).partition(is_key);
        others.into_iter().for_each(|id| joinable.add_piece(pieces.text(id), &mut weights));
        if !keys.is_empty() {
            joinable.unkeyed = Some(Unkeyed {
                starts: KeyStarts::new(user_defined),
                bytes: joinable.bytes.clone(),
                pairs: joinable.pairs.clone(),
            });
            keys.into_iter().for_each(|id| joinable.add_piece(pieces.text(id), &mut weights));
        }
        joinable.characters.join_ascii(&joinable.bytes);
        joinable.classes = Classes::new(&joinable.bytes, &weights);
        joinable
    }

    /// Mark the neighbours in a piece, and count its characters.
    fn add_piece(&mut self, text: &[u8], weights: &mut [u32; 128]) {
        let mut at = 0;
        let mut before: &[u8] = b"";
        while at < text.len() {
            let next = at + utf8::length_by_first(text[at]);
            self.add(before, &text[at..next]);
            if let Some(weight) = weights.get_mut(usize::from(text[at])) {
                *weight = weight.saturating_add(1);
            }
            before = &text[at..next];
            at = next;
        }
    }

    /// Mark the characters `left` and `right` as joinable.
    fn add(&mut self, left: &[u8], right: &[u8]) {
        let (Some(&last), Some(&first)) = (left.last(), right.first()) else { return };
        let bit = pair_bit(character(left), character(right));
        self.pairs[bit >> 6] |= 1 << (bit & 63);
        self.bytes[usize::from(last) | usize::from(first) << 8] = 0;
        if (last | first) >= 0x80 {
            self.characters.join(left, right);
        }
    }

    /// Whether some piece may contain `left` and `right` side by side.
    #[inline]
    pub fn pair(&self, left: u32, right: u32) -> bool {
        let bit = pair_bit(left, right);
        self.pairs[bit >> 6] >> (bit & 63) & 1 != 0
    }
}

// --- Classes of ASCII characters -----------------------------------------------------------------
//
// Which ASCII characters can be joined, in a form for vector instructions; see `machine.rs`.

/// How many classes of left characters there are. Each class is a bit of a byte, in one of a few pairs of tables.
const CLASSES: usize = 8 * GROUPS;
/// How many pairs of tables there are.
pub const GROUPS: usize = 4;

/// A superset of the joinable pairs of ASCII characters: two characters count as joinable if their bytes have a bit in
/// common in one of the pairs of tables.
///
/// Each left character belongs to one class. All characters of a class count as joinable with every character that any
/// of them can be joined with. So no joinable pair is missed, and the result is exact; a cut that is not made costs
/// only time. Before any classes are united there are less than a hundred, and those that are united contain rare
/// characters.
pub struct Classes {
    /// For each pair of tables: the class of each left character, and for each right character the classes of left
    /// characters with which it can be joined.
    pub tables: Box<ClassTables>,
}

/// Some left characters, and the right characters with which they can be joined.
type Class = (Vec<usize>, u128);

impl Classes {
    /// The classes for a table that has, for `x y` at `x | y << 8`, 0 if they are joinable. `weights`: about how often
    /// each character occurs.
    pub fn new(cuts: &[u8; 1 << 16], weights: &[u32; 128]) -> Classes {
        // 1. Make a class for each left character that can be joined with any other.
        let row = |x: usize| (0..128).fold(0, |row, y| row | u128::from(cuts[x | y << 8] == 0) << y);
        let mut classes: Vec<Class> = (0..128).map(|x| (vec![x], row(x))).filter(|&(_, row)| row != 0).collect();
        // 2. Unite those two classes that add the fewest pairs, until there are few enough. (The costs are kept:
        //    computing all of them again for every two classes took 60 ms.)
        let weight = |mut of: u128| {
            let mut sum = 0;
            while of != 0 {
                sum += u64::from(weights[of.trailing_zeros() as usize]);
                of &= of - 1;
            }
            sum
        };
        let left = |xs: &[usize]| xs.iter().map(|&x| u64::from(weights[x])).sum::<u64>();
        let cost = |(xs, row): &Class, (others, other): &Class| {
            left(xs) * weight(other & !row) + left(others) * weight(row & !other)
        };
        let mut costs: Vec<Vec<u64>> =
            classes.iter().map(|class| classes.iter().map(|other| cost(class, other)).collect()).collect();
        while classes.len() > CLASSES {
            let pairs = (0..classes.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
            let Some((gone, kept)) = pairs.min_by_key(|&(i, j)| costs[i][j]) else { break };
            let (xs, row) = classes.swap_remove(gone);
            costs.swap_remove(gone);
            for row in &mut costs {
                row.swap_remove(gone);
            }
            classes[kept].0.extend(xs);
            classes[kept].1 |= row;
            for other in 0..classes.len() {
                costs[kept][other] = cost(&classes[kept], &classes[other]);
                costs[other][kept] = costs[kept][other];
            }
        }
        // 3. Write the tables.
        let mut tables = boxed([[0; 128]; 2]);
        for (class, (xs, row)) in classes.iter().enumerate() {
            let [left, right] = &mut tables[class / 8];
            let bit = 1 << (class % 8);
            xs.iter().for_each(|&x| left[x] |= bit);
            right.iter_mut().enumerate().filter(|(y, _)| row >> y & 1 != 0).for_each(|(_, byte)| *byte |= bit);
        }
        Classes { tables }
    }
}

// --- Without user-defined pieces -----------------------------------------------------------------
//
// Which characters are joined by pieces other than user-defined ones. See `cut/keys.rs`.

/// Characters whose first byte is this or higher (three bytes and more) are looked up in pairs. For shorter characters,
/// bytes alone find enough cuts.
const LONG_CHARACTER: u8 = 0xE0;

/// The two tables of `Joinable`, without user-defined pieces.
pub struct Unkeyed {
    /// Where user-defined pieces may begin.
    pub starts: KeyStarts,
    /// For the bytes `x y`, at `x | y << 8`: 0 join, 1 cut.
    pub bytes: Box<[u8; 1 << 16]>,
    /// A bit for each pair of characters.
    pub pairs: Box<[u64; 1 << 11]>,
}

impl Unkeyed {
    /// Whether none of these pieces can contain the character at `last` directly before the one at `at`.
    #[inline]
    pub fn is_cut(&self, text: &[u8], last: usize, at: usize) -> bool {
        if self.bytes[usize::from(text[at - 1]) | usize::from(text[at]) << 8] == 1 {
            return true;
        }
        if text[last] < LONG_CHARACTER && text[at] < LONG_CHARACTER {
            return false;
        }
        let next = &text[at..at + utf8::length_at(text, at)];
        let bit = pair_bit(character(&text[last..at]), character(next));
        self.pairs[bit >> 6] >> (bit & 63) & 1 == 0
    }
}

// --- Where user-defined pieces begin -------------------------------------------------------------

/// If a text has, at some place, two bytes with which a user-defined piece begins, its first four bytes there are
/// looked up, too. (With 16,000 words as user-defined pieces, half of all places pass the first test, and an eighth
/// pass the second.)
const LONG: usize = 4;
/// How many bits a filter has, as a power of two: 16 KiB.
const BITS: u32 = 17;

/// The beginnings of user-defined pieces, as `cut/keys.rs` needs them.
pub struct KeyStarts {
    /// A bit for the bytes `x y`, at `x | y << 8`: whether a piece begins with them, or consists of `x` alone.
    pairs: Box<[u64; 1 << 10]>,
    /// The same for pieces of less than `LONG` bytes.
    short_pairs: Box<[u64; 1 << 10]>,
    /// A bit for the first `LONG` bytes of the others, by their hash.
    long: Box<[u64; 1 << (BITS - 6)]>,
}

#[inline]
fn bit(table: &[u64; 1 << 10], first: u8, second: u8) -> bool {
    table[usize::from(second) << 2 | usize::from(first) >> 6] >> (first & 63) & 1 != 0
}

fn hash(bytes: [u8; LONG]) -> usize {
    (u32::from_le_bytes(bytes).wrapping_mul(0x9E37_79B1) >> (32 - BITS)) as usize
}

impl KeyStarts {
    /// The beginnings of these pieces.
    pub fn new(user_defined: &Keys) -> KeyStarts {
        let mut starts = KeyStarts {
            pairs: Box::new([0; 1 << 10]),
            short_pairs: Box::new([0; 1 << 10]),
            long: Box::new([0; 1 << (BITS - 6)]),
        };
        user_defined.each(|key| starts.add(key));
        starts
    }

    fn add(&mut self, key: &[u8]) {
        let (&first, seconds) = match key {
            [] => return,
            [first] => (first, 0..=u8::MAX),
            [first, second, ..] => (first, *second..=*second),
        };
        let long = key.first_chunk().copied().map(hash);
        for second in seconds {
            let (place, bit) = (usize::from(second) << 2 | usize::from(first) >> 6, 1 << (first & 63));
            self.pairs[place] |= bit;
            self.short_pairs[place] |= if long.is_none() { bit } else { 0 };
        }
        if let Some(long) = long {
            self.long[long >> 6] |= 1 << (long & 63);
        }
    }

    /// Whether a user-defined piece may begin at `at`.
    #[inline]
    pub fn may_begin(&self, text: &[u8], at: usize) -> bool {
        let [first, second, ..] = text[at..] else { return true };
        bit(&self.pairs, first, second)
            && (bit(&self.short_pairs, first, second)
                || text[at..].first_chunk().is_some_and(|&bytes| {
                    let long = hash(bytes);
                    self.long[long >> 6] >> (long & 63) & 1 != 0
                }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::pieces::piece_type::NORMAL;

    #[test]
    fn every_pair_of_characters_in_a_piece_is_joinable() {
        let texts = ["ab", "aba", "éa", "aé", "日本", "本a日", "a日", "xy", "xyxy", "\u{1f999}b", "b\u{1f999}", "q"];
        let mut pieces = Pieces::new(texts.len(), 100);
        for text in texts {
            pieces.push(|blob| blob.extend_from_slice(text.as_bytes()), NORMAL, 0.0).unwrap();
        }
        pieces.finish(|_| false).unwrap();
        let joinable = Joinable::new(
            &pieces,
            &Keys::new(&[]).unwrap(),
            SingleBytes { ids: Box::new([0; 256]), planes: Box::new([[0; 128]; 3]), looked_up: None },
            Characters::all(0).unwrap(),
        );
        let code = |c: char| character(c.encode_utf8(&mut [0; 4]).as_bytes());
        let inside: Vec<(char, char)> = texts.iter().flat_map(|text| text.chars().zip(text.chars().skip(1))).collect();
        for &(left, right) in &inside {
            let (last, first) = (left.to_string().into_bytes(), right.to_string().into_bytes());
            assert!(joinable.pair(code(left), code(right)), "{left}{right}");
            assert_eq!(joinable.bytes[usize::from(*last.last().unwrap()) | usize::from(first[0]) << 8], 0);
        }
        for pair in [('b', 'b'), ('y', 'a'), ('日', '日'), ('a', '本'), ('q', 'a')] {
            assert!(!inside.contains(&pair) && !joinable.pair(code(pair.0), code(pair.1)), "{pair:?}");
        }
        assert_eq!(joinable.bytes[usize::from(b'b') | usize::from(b'b') << 8], 1);
    }

    #[test]
    fn no_joinable_pair_is_missed() {
        for seed in 1..20u64 {
            let mut cuts = boxed(1u8);
            let mut state = seed;
            for pair in cuts.iter_mut() {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                *pair = u8::from((state >> 33) % 20 < seed);
            }
            let classes = Classes::new(&cuts, &[1; 128]);
            let mut exact = 0;
            for x in 0..128 {
                for y in 0..128 {
                    let joinable = classes.tables.iter().any(|[left, right]| left[x] & right[y] != 0);
                    assert!(joinable || cuts[x | y << 8] != 0);
                    exact += usize::from(joinable == (cuts[x | y << 8] == 0));
                }
            }
            assert!(exact > 0);
        }
    }

    #[test]
    fn no_key_is_passed_over() {
        let mut state = 3u64;
        let mut chance = |limit: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % limit
        };
        for round in 0..50 {
            let key = |chance: &mut dyn FnMut(usize) -> usize| {
                (0..1 + chance([1, 2, 3, 4, 5, 20][round % 6])).map(|_| chance(256) as u8).collect::<Vec<u8>>()
            };
            let keys: Vec<Vec<u8>> = (0..1 + chance(200)).map(|_| key(&mut chance)).collect();
            let starts = KeyStarts::new(&Keys::new(&keys).unwrap());
            for key in &keys {
                for more in [&b""[..], b"a", b"\xff\xff\xff"] {
                    assert!(starts.may_begin(&[key, more].concat(), 0));
                }
            }
        }
    }

    #[test]
    fn the_first_four_bytes_count() {
        let starts = KeyStarts::new(&Keys::new(&[b"abcde".to_vec(), b"xyz".to_vec()]).unwrap());
        let may_begin = |text: &[u8]| starts.may_begin(text, 0);
        assert!(may_begin(b"abcd") && may_begin(b"xy__") && may_begin(b"a"));
        assert!(!may_begin(b"ab__") && !may_begin(b"abc_") && !may_begin(b"abc") && !may_begin(b"xz__"));
    }
}
