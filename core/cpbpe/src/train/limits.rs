//! Which strings may become a piece, and so where text may be cut before anything is counted.
//!
//! `Rules::is_valid` says it plainly, character by character. The two others say the same faster: `Rules::cuts`
//! looks at two neighbours only, and `Rules::join` at two valid pieces through their `Shape`s. The tests hold
//! both to `is_valid` on every string of a small alphabet, under every set of rules.
//!
//! Text is compact here: a space stands for U+2581, and U+2581 for a space (of which normalized text has none).

use crate::train::scripts::SCRIPTS;

/// Stands for unknown characters, compact or not.
pub const UNKNOWN: char = '\u{2585}';
/// Stands where a symbol was.
pub const BOUNDARY: char = '\u{1f}';
/// U+2581 in compact text.
pub const WS: char = ' ';
/// A space in compact text.
const PLAIN_SPACE: char = '\u{2581}';

/// What counts about a character. Below `CLASSES` it is the number of a script, 0 for Common.
pub type Class = u8;
/// In no piece with anything else.
pub const ALONE: Class = 255;
/// U+2581.
pub const SPACE: Class = 254;
/// Goes with any script, and clears what script went before.
const FREE: Class = 253;
/// Takes the script of what goes before.
const INHERITED: Class = 252;
/// From here on, two equal classes side by side are no reason not to look closer.
pub const CLASSES: Class = 252;

/// Which strings may become a piece; see `PieceRules` in `cpbpe/train_engine.py`.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// In code points.
    pub max_length: usize,
    /// One script in a piece.
    pub split_by_unicode_script: bool,
    /// Digits have a script like others.
    pub split_by_number: bool,
    /// A digit is a piece of its own.
    pub split_digits: bool,
    /// U+2581 only at the start.
    pub split_by_whitespace: bool,
    /// The end instead of the start.
    pub suffix: bool,
    /// Several U+2581 and nothing else.
    pub whitespace_only: bool,
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit() || ('\u{FF10}'..='\u{FF19}').contains(&c)
}

/// The class of every code point.
pub struct Classes(Box<[Class]>);

impl Classes {
    /// Look a character up.
    #[inline]
    pub fn of(&self, c: char) -> Class {
        self.0[c as usize]
    }
}

impl Rules {
    /// The class of every code point under these rules.
    pub fn classes(&self) -> Classes {
        let mut classes = vec![0; 0x11_0000];
        let han = SCRIPTS.iter().position(|(name, _)| *name == "Han").map_or(0, |at| at + 1);
        for (number, (name, ranges)) in (1..).zip(&SCRIPTS) {
            let class = match *name {
                "Hiragana" | "Katakana" => han as Class,
                "Inherited" => INHERITED,
                _ => number,
            };
            for range in ranges.chunks_exact(2) {
                classes[range[0] as usize..=range[1] as usize].fill(class);
            }
        }
        classes[0x30FC] = han as Class;
        if !self.split_by_unicode_script {
            classes.fill(FREE);
        }
        for digit in (0u32..0x11_0000).filter_map(char::from_u32).filter(|&c| is_digit(c)) {
            if self.split_digits {
                classes[digit as usize] = ALONE;
            } else if !self.split_by_number {
                classes[digit as usize] = FREE;
            }
        }
        classes[WS as usize] = SPACE;
        for c in [UNKNOWN, BOUNDARY, PLAIN_SPACE, '\0'] {
            classes[c as usize] = ALONE;
        }
        if self.max_length < 2 {
            classes.fill(ALONE);
        }
        Classes(classes.into_boxed_slice())
    }

    /// Whether no valid piece holds a character of class `left` directly before one of class `right`.
    ///
    /// The proof, rule by rule, for a piece that holds the two, so has at least two characters:
    /// * ALONE is in no such piece by definition.
    /// * `right` is U+2581, `left` is not, and spaces belong to the start: this one is not at the start, nor does the
    ///   piece consist of U+2581 alone. If `left` is U+2581 as well, the piece has one that is not at the start,
    ///   and only the rule for whitespace-only pieces can save it. As a suffix: mirrored. Without
    ///   `split_by_whitespace`, U+2581 may be inside, and nothing is cut.
    /// * Both have a script, and not the same: U+2581 and Inherited apart, every character leaves its script behind
    ///   for the next, so `right` meets the script of `left` whatever else the piece holds.
    #[inline]
    pub fn cuts(&self, left: Class, right: Class) -> bool {
        if left == right && left < CLASSES {
            return false;
        }
        if left == ALONE || right == ALONE {
            return true;
        }
        if left == SPACE || right == SPACE {
            let inner = if self.suffix { left } else { right };
            return self.split_by_whitespace && inner == SPACE && !(self.whitespace_only && left == right);
        }
        left < CLASSES && right < CLASSES
    }

    /// The shape of one character.
    pub fn shape(&self, class: Class) -> Shape {
        let space = class == SPACE;
        let script = if class < CLASSES { class } else { INHERITED };
        Shape {
            length: if class == ALONE { u16::MAX } else { 1 },
            first: script,
            last: if class == FREE { FREE } else { script },
            has_space: space,
            late_space: false,
            early_space: false,
            first_space: space,
            last_space: space,
            only_space: space,
        }
    }

    /// The shape of two valid pieces joined; `None` if that is no valid piece.
    #[inline]
    pub fn join(&self, left: &Shape, right: &Shape) -> Option<Shape> {
        if left.last < CLASSES && right.first < CLASSES && left.last != right.first {
            return None;
        }
        let joined = left.then(right);
        if usize::from(joined.length) > self.max_length || joined.length == u16::MAX {
            return None;
        }
        if joined.has_space && !(self.whitespace_only && joined.only_space) {
            let wrong = match (self.suffix, self.split_by_whitespace) {
                (false, true) => joined.late_space,
                (false, false) => joined.last_space,
                (true, true) => joined.early_space,
                (true, false) => joined.first_space,
            };
            if wrong {
                return None;
            }
        }
        Some(joined)
    }

    /// Whether a string may become a piece.
    #[cfg(test)]
    fn is_valid(&self, classes: &Classes, piece: &[char]) -> bool {
        let only_space = piece.iter().all(|&c| c == WS);
        let last = piece.len() - 1;
        let mut script = FREE;
        for (at, &c) in piece.iter().enumerate() {
            let class = classes.of(c);
            match class {
                ALONE if piece.len() > 1 || !is_digit(c) => return false,
                SPACE if self.whitespace_only && only_space => {}
                SPACE => {
                    let wrong = match (self.suffix, self.split_by_whitespace) {
                        (false, true) => at > 0,
                        (false, false) => at > 0 && at == last,
                        (true, true) => at < last,
                        (true, false) => at < last && at == 0,
                    };
                    if wrong {
                        return false;
                    }
                }
                INHERITED => {}
                _ => {
                    if class != FREE && script != FREE && class != script {
                        return false;
                    }
                    script = class;
                }
            }
        }
        piece.len() <= self.max_length
    }
}

/// All that has to be known of a valid piece to tell what it may be joined with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// In code points; `u16::MAX` for a character that joins nothing.
    pub length: u16,
    /// The script that must have gone before; INHERITED if any will do.
    first: Class,
    /// The script left behind: FREE if that was cleared, INHERITED if it is still what went before.
    last: Class,
    /// U+2581 anywhere,
    has_space: bool,
    /// not at the start,
    late_space: bool,
    /// not at the end,
    early_space: bool,
    /// at the start,
    first_space: bool,
    /// at the end,
    last_space: bool,
    /// everywhere.
    only_space: bool,
}

impl Shape {
    /// Two shapes joined, whether or not that is valid.
    #[inline]
    fn then(&self, right: &Shape) -> Shape {
        Shape {
            length: self.length.saturating_add(right.length),
            first: if self.last == INHERITED { right.first } else { self.first },
            last: if right.last == INHERITED { self.last } else { right.last },
            has_space: self.has_space || right.has_space,
            late_space: self.late_space || right.has_space,
            early_space: self.has_space || right.early_space,
            first_space: self.first_space,
            last_space: right.last_space,
            only_space: self.only_space && right.only_space,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every set of rules.
    fn all_rules() -> impl Iterator<Item = Rules> {
        (0..128).map(|bits| {
            let bit = |number: u32| bits >> number & 1 != 0;
            Rules {
                max_length: if bit(6) { 3 } else { 16 },
                split_by_unicode_script: bit(0),
                split_by_number: bit(1),
                split_digits: bit(2),
                split_by_whitespace: bit(3),
                suffix: bit(4),
                whitespace_only: bit(5),
            }
        })
    }

    /// Every string of up to so many characters.
    fn all_strings(longest: usize) -> Vec<Vec<char>> {
        let alphabet = ['a', 'я', '1', WS, '\u{301}', 'ー', '漢', BOUNDARY];
        let mut strings: Vec<Vec<char>> = vec![vec![]];
        let mut begin = 0;
        for _ in 0..longest {
            let end = strings.len();
            for at in begin..end {
                for c in alphabet {
                    let mut longer = strings[at].clone();
                    longer.push(c);
                    strings.push(longer);
                }
            }
            begin = end;
        }
        strings.remove(0);
        strings
    }

    #[test]
    fn no_valid_piece_crosses_a_cut_and_every_join_is_judged_alike() {
        let strings = all_strings(4);
        for rules in all_rules() {
            let classes = rules.classes();
            let shape_of = |piece: &[char]| {
                let mut shapes = piece.iter().map(|&c| rules.shape(classes.of(c)));
                let first = shapes.next().unwrap();
                shapes.fold(first, |left, right| left.then(&right))
            };
            for string in &strings {
                let valid = rules.is_valid(&classes, string);
                let cut = string.windows(2).any(|pair| rules.cuts(classes.of(pair[0]), classes.of(pair[1])));
                assert!(!(valid && cut), "{rules:?} {string:?}");
                for at in 1..string.len() {
                    let (left, right) = string.split_at(at);
                    if rules.is_valid(&classes, left) && rules.is_valid(&classes, right) {
                        let joined = rules.join(&shape_of(left), &shape_of(right));
                        assert_eq!(joined.is_some(), valid, "{rules:?} {string:?} {at}");
                    }
                }
            }
        }
    }
}
