//! Which strings can become pieces, and so where text can be cut before anything is counted.
//!
//! The tests contain the simple definition, `is_valid`, which goes through a string character by character. The code
//! uses two faster forms: `PieceLimits::cuts` looks only at two neighbouring characters, and `PieceLimits::join` at the
//! profiles of two valid pieces. The tests compare both with `is_valid`, on every string over a small alphabet and for
//! every set of limits.
//!
//! All text here is compact: a space stands for U+2581, and U+2581 for a space (which normalized text never contains).

use crate::error::Halt;
use crate::memory::zeros;
use crate::train::scripts::SCRIPTS;

/// Stands for unknown characters, in compact text, too.
pub const UNKNOWN: char = '\u{2585}';
/// The character that replaces a symbol (`<s>`, a user-defined one ...).
pub const BOUNDARY: char = '\u{1f}';
/// U+2581 in compact text.
pub const COMPACT_SPACE: char = ' ';
/// A space in compact text.
const PLAIN_SPACE: char = '\u{2581}';

/// All that matters here about a character. Classes below `SCRIPTS_END` are numbers of scripts; 0 is Common.
pub type CharClass = u8;
/// A character that is never in one piece with another.
pub const ALWAYS_ALONE: CharClass = 255;
/// U+2581.
const SPACE: CharClass = 254;
/// A character that goes with any script. So does the character after it.
const ANY_SCRIPT: CharClass = 253;
/// A character that has the script of the one before it.
const INHERITED: CharClass = 252;
/// Classes below this one are scripts. Two neighbours of the same script are never cut apart.
pub const SCRIPTS_END: CharClass = 252;

/// Which strings can become pieces; `PieceLimits` in `training_values.py` has the same fields.
#[derive(Clone, Copy, Debug)]
pub struct PieceLimits {
    /// The longest piece, in code points.
    pub max_sentencepiece_length: usize,
    /// All characters of a piece belong to one script.
    pub split_by_unicode_script: bool,
    /// Digits keep their script, which is that of punctuation. If not set, they go with any script.
    pub split_by_number: bool,
    /// A digit is always a piece by itself.
    pub split_digits: bool,
    /// U+2581 occurs only at the start of a piece.
    pub split_by_whitespace: bool,
    /// What is said about U+2581 at the start of a piece applies to its end instead.
    pub treat_whitespace_as_suffix: bool,
    /// A piece can consist of several U+2581.
    pub allow_whitespace_only_pieces: bool,
}

/// The digits that `split_digits` and `split_by_number` refer to.
fn digits() -> impl Iterator<Item = char> {
    ('0'..='9').chain('\u{FF10}'..='\u{FF19}')
}

/// The class of every code point.
pub struct CharClasses(Box<[CharClass]>);

impl CharClasses {
    /// The class of a character.
    #[inline]
    pub fn of(&self, c: char) -> CharClass {
        self.0[c as usize]
    }
}

impl PieceLimits {
    /// The class of every code point under these limits.
    pub fn char_classes(&self) -> Result<CharClasses, Halt> {
        let mut classes: Vec<CharClass> = zeros(0x11_0000)?;
        if self.split_by_unicode_script {
            fill_scripts(&mut classes);
        } else {
            classes.fill(ANY_SCRIPT);
        }
        for digit in digits() {
            if self.split_digits {
                classes[digit as usize] = ALWAYS_ALONE;
            } else if !self.split_by_number {
                classes[digit as usize] = ANY_SCRIPT;
            }
        }
        classes[COMPACT_SPACE as usize] = SPACE;
        for c in [UNKNOWN, BOUNDARY, PLAIN_SPACE, '\0'] {
            classes[c as usize] = ALWAYS_ALONE;
        }
        if self.max_sentencepiece_length < 2 {
            classes.fill(ALWAYS_ALONE);
        }
        Ok(CharClasses(classes.into_boxed_slice()))
    }

    /// Whether no valid piece contains a character of class `left` directly before one of class `right`.
    ///
    /// The proof, case by case, for a piece that contains both and so has at least two characters:
    /// * ALWAYS_ALONE is in no such piece by definition.
    /// * `right` is U+2581, `left` is not, and U+2581 belongs at the start: this one is not at the start, and the
    ///   piece does not consist of U+2581 alone. If `left` is U+2581, too, the piece has a U+2581 that is not at
    ///   the start, so only `allow_whitespace_only_pieces` can make it valid. With `treat_whitespace_as_suffix`, the
    ///   mirror image holds. Without `split_by_whitespace`, U+2581 can be inside a piece, and nothing is cut.
    /// * Both have a script, but not the same one. Every character except U+2581 and INHERITED ones passes its script
    ///   on to the next, so `right` meets the script of `left`, whatever else the piece contains.
    #[inline]
    pub fn cuts(&self, left: CharClass, right: CharClass) -> bool {
        if left == right && left < SCRIPTS_END {
            return false;
        }
        if left == ALWAYS_ALONE || right == ALWAYS_ALONE {
            return true;
        }
        if left == SPACE || right == SPACE {
            let inner = if self.treat_whitespace_as_suffix { left } else { right };
            let both_allowed = self.allow_whitespace_only_pieces && left == right;
            return self.split_by_whitespace && inner == SPACE && !both_allowed;
        }
        left < SCRIPTS_END && right < SCRIPTS_END
    }

    /// The profile of two valid pieces joined; `None` if that is not a valid piece.
    #[inline]
    pub fn join(&self, left: &PieceProfile, right: &PieceProfile) -> Option<PieceProfile> {
        let (before, after) = (left.script_after, right.script_before);
        if before < SCRIPTS_END && after < SCRIPTS_END && before != after {
            return None;
        }
        let joined = left.then(right);
        if usize::from(joined.length) > self.max_sentencepiece_length || joined.length == u16::MAX {
            return None;
        }
        if joined.has_space && !(self.allow_whitespace_only_pieces && joined.only_spaces) {
            let misplaced = match (self.treat_whitespace_as_suffix, self.split_by_whitespace) {
                (false, true) => joined.space_after_first,
                (false, false) => joined.last_is_space,
                (true, true) => joined.space_before_last,
                (true, false) => joined.first_is_space,
            };
            if misplaced {
                return None;
            }
        }
        Some(joined)
    }
}

/// Record the script of every code point. Japanese mixes three scripts in one word, so they count as one. The long
/// vowel mark U+30FC has no script in Unicode and counts as Japanese.
fn fill_scripts(classes: &mut [CharClass]) {
    let han = (1..).zip(&SCRIPTS).find(|(_, (name, _))| *name == "Han").map_or(0, |(number, _)| number);
    for (number, (name, ranges)) in (1..).zip(&SCRIPTS) {
        let class = match *name {
            "Hiragana" | "Katakana" => han,
            "Inherited" => INHERITED,
            _ => number,
        };
        for range in ranges.chunks_exact(2) {
            classes[range[0] as usize..=range[1] as usize].fill(class);
        }
    }
    classes[0x30FC] = han;
}

/// Everything about a valid piece that decides what it can be joined with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceProfile {
    /// The length in code points; `u16::MAX` for a character that joins nothing.
    pub length: u16,
    /// The script that a piece before this one has to pass on; INHERITED if it may be any.
    script_before: CharClass,
    /// The script that this piece passes on. ANY_SCRIPT if the next piece may have any; INHERITED if this piece passes
    /// on the script that was passed to it.
    script_after: CharClass,
    /// Some character is U+2581.
    has_space: bool,
    /// A character other than the first is U+2581.
    space_after_first: bool,
    /// A character other than the last is U+2581.
    space_before_last: bool,
    /// The first character is U+2581.
    first_is_space: bool,
    /// The last character is U+2581.
    last_is_space: bool,
    /// Every character is U+2581.
    only_spaces: bool,
}

impl PieceProfile {
    /// The profile of a piece of one character.
    pub fn of_character(class: CharClass) -> PieceProfile {
        let space = class == SPACE;
        let script = if class < SCRIPTS_END { class } else { INHERITED };
        PieceProfile {
            length: if class == ALWAYS_ALONE { u16::MAX } else { 1 },
            script_before: script,
            script_after: if class == ANY_SCRIPT { ANY_SCRIPT } else { script },
            has_space: space,
            space_after_first: false,
            space_before_last: false,
            first_is_space: space,
            last_is_space: space,
            only_spaces: space,
        }
    }

    /// The profile of two pieces joined, whether or not that is valid.
    #[inline]
    pub fn then(&self, right: &PieceProfile) -> PieceProfile {
        PieceProfile {
            length: self.length.saturating_add(right.length),
            script_before: if self.script_after == INHERITED { right.script_before } else { self.script_before },
            script_after: if right.script_after == INHERITED { self.script_after } else { right.script_after },
            has_space: self.has_space || right.has_space,
            space_after_first: self.space_after_first || right.has_space,
            space_before_last: self.has_space || right.space_before_last,
            first_is_space: self.first_is_space,
            last_is_space: right.last_is_space,
            only_spaces: self.only_spaces && right.only_spaces,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a string can become a piece: the simple definition, with which `cuts` and `join` are compared.
    fn is_valid(limits: &PieceLimits, classes: &CharClasses, piece: &[char]) -> bool {
        let only_spaces = piece.iter().all(|&c| c == COMPACT_SPACE);
        let last = piece.len() - 1;
        let mut script = ANY_SCRIPT;
        for (at, &c) in piece.iter().enumerate() {
            let class = classes.of(c);
            match class {
                ALWAYS_ALONE if piece.len() > 1 || digits().all(|digit| digit != c) => return false,
                SPACE if limits.allow_whitespace_only_pieces && only_spaces => {}
                SPACE => {
                    let misplaced = match (limits.treat_whitespace_as_suffix, limits.split_by_whitespace) {
                        (false, true) => at > 0,
                        (false, false) => at > 0 && at == last,
                        (true, true) => at < last,
                        (true, false) => at < last && at == 0,
                    };
                    if misplaced {
                        return false;
                    }
                }
                INHERITED => {}
                _ => {
                    if class != ANY_SCRIPT && script != ANY_SCRIPT && class != script {
                        return false;
                    }
                    script = class;
                }
            }
        }
        piece.len() <= limits.max_sentencepiece_length
    }

    /// Every set of limits.
    fn all_limits() -> impl Iterator<Item = PieceLimits> {
        (0..128).map(|bits| {
            let bit = |number: u32| bits >> number & 1 != 0;
            PieceLimits {
                max_sentencepiece_length: if bit(6) { 3 } else { 16 },
                split_by_unicode_script: bit(0),
                split_by_number: bit(1),
                split_digits: bit(2),
                split_by_whitespace: bit(3),
                treat_whitespace_as_suffix: bit(4),
                allow_whitespace_only_pieces: bit(5),
            }
        })
    }

    /// Every string of up to `longest` characters.
    fn all_strings(longest: usize) -> Vec<Vec<char>> {
        let alphabet = ['a', 'я', '1', COMPACT_SPACE, '\u{301}', 'ー', '漢', BOUNDARY];
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
        for limits in all_limits() {
            let classes = limits.char_classes().unwrap();
            let profile_of = |piece: &[char]| {
                let mut profiles = piece.iter().map(|&c| PieceProfile::of_character(classes.of(c)));
                let first = profiles.next().unwrap();
                profiles.fold(first, |left, right| left.then(&right))
            };
            for string in &strings {
                let valid = is_valid(&limits, &classes, string);
                let cut = string.windows(2).any(|pair| limits.cuts(classes.of(pair[0]), classes.of(pair[1])));
                assert!(!(valid && cut), "{limits:?} {string:?}");
                for at in 1..string.len() {
                    let (left, right) = string.split_at(at);
                    if is_valid(&limits, &classes, left) && is_valid(&limits, &classes, right) {
                        let joined = limits.join(&profile_of(left), &profile_of(right));
                        assert_eq!(joined.is_some(), valid, "{limits:?} {string:?} {at}");
                    }
                }
            }
        }
    }
}
