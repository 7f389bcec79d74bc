//! Unicode normal forms, as `cpbpe/text/unicode_forms.py` explains them, with the place that each byte came from.
//!
//! Hardly any text needs to be rewritten. So characters that stay as they are (those that are *stable*) are only looked
//! for, and copied at once; ASCII without looking at each. What is rewritten is a *segment*: some characters that are not
//! stable, and the stable one before them, which may be composed with them.

mod segment;
mod tables;

use crate::error::Halt;
use crate::memory::Grow;
use crate::text::origins::Origins;
use crate::watch::Check;
use segment::Segment;

/// After this many bytes of ASCII it is worth to look at `BLOCK` of them at once.
const FEW: usize = 4;
/// This many bytes are compared together.
const BLOCK: usize = 32;
/// Whether to go on is checked once in this many bytes.
const CHECK_BYTES: usize = 1 << 16;

/// A Unicode normal form. The numbers are those of the bits in the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
}

impl Form {
    const ALL: [(&'static str, Form); 4] =
        [("NFC", Form::Nfc), ("NFD", Form::Nfd), ("NFKC", Form::Nfkc), ("NFKD", Form::Nfkd)];

    /// The form of this name.
    pub fn of(name: &str) -> Option<Form> {
        Form::ALL.iter().find(|(known, _)| *known == name).map(|&(_, form)| form)
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        Form::ALL[self as usize].0
    }

    /// Whether marks are composed with letters.
    fn composes(self) -> bool {
        matches!(self, Form::Nfc | Form::Nfkc)
    }

    /// Whether variants are replaced.
    fn replaces(self) -> bool {
        matches!(self, Form::Nfkc | Form::Nfkd)
    }

    /// Whether nothing in a text needs to be rewritten. (It may be false although nothing changes.)
    pub fn is_stable(self, text: &str) -> bool {
        self.next_change(text, 0) == text.len()
    }

    /// The next place from `at` on with a character that is not stable; the end if there is none.
    fn next_change(self, text: &str, mut at: usize) -> usize {
        // A character of two bytes is stable if the first of them is lower than this. (And bytes inside of characters are
        // only looked at if the first byte is lower: then they are lower, too, or the characters before have been passed.)
        let first = match self {
            Form::Nfc => 0xCC,
            Form::Nfd => 0xC3,
            Form::Nfkc | Form::Nfkd => 0xC2,
        };
        let bytes = text.as_bytes();
        let mut low = 0; // how many such bytes came one after the other
        while at < bytes.len() {
            if bytes[at] < first {
                (at, low) = (at + 1, low + 1);
                if low == FEW {
                    at += lower(&bytes[at..], first);
                    low = 0;
                }
                continue;
            }
            low = 0;
            // The first bytes of a character tell its block, in which often nothing changes in any character.
            let (length, block) = match bytes[at..] {
                [one @ ..0xE0, _, ..] => (2, usize::from(one & 0x1F)),
                [one @ ..0xF0, two, _, ..] => (3, usize::from(one & 0xF) << 6 | usize::from(two & 0x3F)),
                [one, two, three, ..] => {
                    let high = usize::from(one & 7) << 6 | usize::from(two & 0x3F);
                    (4, high << 6 | usize::from(three & 0x3F))
                }
                _ => break,
            };
            if tables::CHANGES.get(block).is_some_and(|changes| changes & 1 << self as u8 != 0)
                && text[at..].chars().next().is_some_and(|character| self.changes(character))
            {
                return at;
            }
            at += length;
        }
        bytes.len()
    }

    /// Whether a character is not stable.
    #[inline(always)]
    fn changes(self, character: char) -> bool {
        Properties::of(character).changes & 1 << self as u8 != 0
    }

    /// Append the normal form of a text to `out`. `origin` says where each place of the text came from, and its end.
    pub fn normalize<O: Origins>(
        self,
        text: &str,
        origin: impl Fn(usize) -> usize,
        check: Check,
        out: &mut Vec<u8>,
        origins: &mut O,
    ) -> Result<(), Halt> {
        out.grow(text.len())?;
        let mut segment = Segment::new(self);
        let mut done = 0;
        loop {
            // 1. Copy what is stable, but for the last character before one that is not.
            let change = self.next_change(text, done);
            let before = text[done..change].chars().next_back().filter(|_| change < text.len());
            let begin = change - before.map_or(0, char::len_utf8);
            for from in (done..begin).step_by(CHECK_BYTES) {
                check()?;
                let part = from..begin.min(from + CHECK_BYTES);
                out.grow(part.len())?;
                out.extend_from_slice(&text.as_bytes()[part.clone()]);
                part.into_iter().try_for_each(|at| origins.add(1, origin(at)))?;
            }
            if change == text.len() {
                return Ok(());
            }
            // 2. Rewrite the segment, up to the next character that is stable.
            segment.clear();
            let mut end = begin;
            for character in text[begin..].chars() {
                if end > change && !self.changes(character) {
                    break;
                }
                segment.add(character, end)?;
                end += character.len_utf8();
            }
            check()?;
            segment.finish(text, end, &origin, out, origins)?;
            done = end;
        }
    }
}

/// How many bytes at the beginning of a text are lower than `first`.
fn lower(text: &[u8], first: u8) -> usize {
    let mut at = 0;
    for block in text.chunks_exact(BLOCK) {
        // (Without a branch for each byte, so that the compiler compares all of them at once.)
        if block.iter().fold(false, |any, &byte| any | (byte >= first)) {
            break;
        }
        at += BLOCK;
    }
    at + text[at..].iter().take_while(|&&byte| byte < first).count()
}

/// What the tables say about a character.
#[derive(Clone, Copy)]
struct Properties {
    /// The combining class.
    class: u8,
    /// A bit for each form in which the character is not stable.
    changes: u8,
    /// Where in the texts its canonical decomposition is, and the compatible one; empty if it has none.
    canonical: (u16, u8),
    compatible: (u16, u8),
}

impl Properties {
    #[inline(always)]
    fn of(character: char) -> Properties {
        let code = character as usize;
        let (class, changes, canonical, canonical_length, compatible, compatible_length) =
            match tables::INDEX.get(code / tables::BLOCKS[0].len()) {
                Some(&block) => {
                    let number = tables::BLOCKS[usize::from(block)][code % tables::BLOCKS[0].len()];
                    tables::PROPERTIES[usize::from(number)]
                }
                None => tables::PROPERTIES[0],
            };
        Properties {
            class,
            changes,
            canonical: (canonical, canonical_length),
            compatible: (compatible, compatible_length),
        }
    }

    /// What the character is composed of.
    fn decomposition(self, replaces: bool) -> Option<&'static str> {
        let (begin, length) = if replaces { self.compatible } else { self.canonical };
        let begin = usize::from(begin);
        (length > 0).then(|| &tables::TEXTS[begin..begin + usize::from(length)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::NO_CHECK;

    fn normalized(form: Form, text: &str) -> (String, Vec<usize>) {
        let (mut out, mut origins) = (Vec::new(), Vec::new());
        form.normalize(text, |at| at, NO_CHECK, &mut out, &mut origins).unwrap();
        (String::from_utf8(out).unwrap(), origins)
    }

    #[test]
    fn composes_and_decomposes() {
        let all = |text| Form::ALL.map(|(_, form)| normalized(form, text).0);
        assert_eq!(all("e\u{301}"), ["\u{e9}", "e\u{301}", "\u{e9}", "e\u{301}"]);
        assert_eq!(all("\u{fb01}\u{b2}"), ["\u{fb01}\u{b2}", "\u{fb01}\u{b2}", "fi2", "fi2"]);
        assert_eq!(all("\u{ac01}"), ["\u{ac01}", "\u{1100}\u{1161}\u{11a8}", "\u{ac01}", "\u{1100}\u{1161}\u{11a8}"]);
        assert_eq!(all("\u{1100}\u{1161}\u{11a8}")[0], "\u{ac01}");
        assert_eq!(all("\u{301}\u{340}"), ["\u{301}\u{300}"; 4]); // marks without a letter; a singleton
        assert_eq!(all("\u{958}"), ["\u{915}\u{93c}"; 4]); // never composed again
        assert_eq!(all("a\u{315}\u{300}\u{5ae}")[0], "\u{e0}\u{5ae}\u{315}");
        assert_eq!(all("\u{32ff}"), ["\u{32ff}"; 4]); // newer than Unicode 9
    }

    #[test]
    fn places() {
        assert_eq!(normalized(Form::Nfc, "xe\u{301}\u{e9}y").1, [0, 1, 1, 4, 5, 6]);
        // What changes places is together.
        assert_eq!(normalized(Form::Nfd, "a\u{301}\u{327}b").1, [0, 1, 1, 1, 1, 5]);
        assert_eq!(normalized(Form::Nfc, "q\u{323}\u{307}").1, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn long_runs_of_marks() {
        let text = "\u{301}\u{327}\u{334}".repeat(200_000);
        let sorted = ["\u{334}", "\u{327}", "\u{301}"].map(|mark| mark.repeat(200_000)).concat();
        for (_, form) in Form::ALL {
            assert!(normalized(form, &text).0 == sorted);
        }
    }
}
