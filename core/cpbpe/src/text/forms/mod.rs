//! Unicode normal forms, as `cpbpe/text/unicode_forms.py` explains them, with the place that each byte came from.
//!
//! Hardly any text needs to be rewritten. So characters that stay as they are (those that are *stable*) are only looked
//! for, and copied at once; ASCII without looking at each. What is rewritten is a *segment*: some characters that are not
//! stable, and the stable one before them, which may be composed with them.

mod scan;
mod segment;
mod tables;

use std::ops::Range;

use crate::error::Halt;
use crate::memory::Grow;
use crate::text::origins::Origins;
use crate::text::utf8::{character_at, is_continuation};
use crate::watch::Check;
use segment::Segment;

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

    /// Whether a text, which is UTF-8, is in this form. (It may be false if there is no memory to find out.)
    pub fn is_normal(self, text: &[u8]) -> bool {
        matches!(Rewrites::new(self, text).next(), Ok(None))
    }

    /// Whether the normal form of a text, which is not empty and begins with a character, begins with a space. (Marks may
    /// change places, but nothing gets in front of a space, and nothing is composed with it.)
    pub fn begins_with_space(self, text: &[u8]) -> bool {
        let Some(first) = character_at(text, 0) else { return false };
        let decomposition = Properties::of(first).decomposition(self.replaces());
        first == ' ' || decomposition.is_some_and(|text| text.starts_with(' '))
    }

    /// The bit of this form in the tables.
    fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Append the normal form of a text, which is UTF-8, to `out`. `origin` says where each place of the text came from, and its end.
    pub fn normalize<O: Origins>(
        self,
        text: &[u8],
        origin: impl Fn(usize) -> usize,
        check: Check,
        out: &mut Vec<u8>,
        origins: &mut O,
    ) -> Result<(), Halt> {
        out.grow(text.len())?;
        let mut rewrites = Rewrites::new(self, text);
        loop {
            let done = rewrites.done;
            let change = rewrites.next()?;
            let begin = change.as_ref().map_or(text.len(), |change| change.start);
            for from in (done..begin).step_by(CHECK_BYTES) {
                check()?;
                let part = from..begin.min(from + CHECK_BYTES);
                out.grow(part.len())?;
                out.extend_from_slice(&text[part.clone()]);
                if O::KEEPS {
                    part.into_iter().try_for_each(|at| origins.add(1, origin(at)))?;
                }
            }
            let Some(change) = change else { return Ok(()) };
            check()?;
            rewrites.segment.write(text, change.end, &origin, out, origins)?;
        }
    }
}

/// Finds the segments of a text that change.
struct Rewrites<'a> {
    form: Form,
    text: &'a [u8],
    /// How much of the text has been looked at.
    done: usize,
    /// The last segment that was rewritten.
    segment: Segment,
}

impl<'a> Rewrites<'a> {
    fn new(form: Form, text: &'a [u8]) -> Rewrites<'a> {
        Rewrites { form, text, done: 0, segment: Segment::new(form) }
    }

    /// The next segment whose normal form is another text, or comes from other places. `segment` has that form.
    fn next(&mut self) -> Result<Option<Range<usize>>, Halt> {
        loop {
            // 1. The next character that is not stable, those after it, and the one before it.
            let change = self.form.next_change(self.text, self.done);
            let (mut end, mut in_order, mut class) = (change, true, 0);
            while let Some(character) = character_at(self.text, end) {
                let properties = Properties::of(character);
                if properties.changes & self.form.bit() == 0 {
                    break;
                }
                in_order &= properties.only_moves(self.form) && class <= properties.class;
                class = properties.class;
                end += character.len_utf8();
            }
            let mut begin = change;
            while begin > self.done && (begin == change || is_continuation(self.text[begin])) {
                begin -= 1;
            }
            self.done = end;
            if end == change {
                return Ok(None);
            }
            // 2. Marks that are never composed, and are in order, stay as they are. So do Thai and most of Arabic.
            if in_order {
                continue;
            }
            // 3. Anything else is tried.
            self.segment.clear();
            let mut at = begin;
            while let Some(character) = character_at(&self.text[..end], at) {
                self.segment.add(character, at)?;
                at += character.len_utf8();
            }
            self.segment.make()?;
            if !self.segment.is_same(characters(&self.text[..end], begin)) {
                return Ok(Some(begin..end));
            }
        }
    }
}

/// The characters of a text, which is UTF-8, from `at` on, each with its place.
fn characters(text: &[u8], mut at: usize) -> impl Iterator<Item = (usize, char)> + '_ {
    std::iter::from_fn(move || {
        let character = character_at(text, at)?;
        at += character.len_utf8();
        Some((at - character.len_utf8(), character))
    })
}

/// What the tables say about a character.
#[derive(Clone, Copy)]
struct Properties {
    /// The combining class.
    class: u8,
    /// A bit for each form in which the character is not stable; and above these, one for each in which it is a mark that
    /// only changes its place, if anything.
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

    /// Whether it is a mark that changes at most its place among others.
    fn only_moves(self, form: Form) -> bool {
        self.changes & form.bit() << Form::ALL.len() != 0
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
        form.normalize(text.as_bytes(), |at| at, NO_CHECK, &mut out, &mut origins).unwrap();
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
