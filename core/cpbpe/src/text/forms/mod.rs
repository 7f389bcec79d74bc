//! Unicode normal forms, as `cpbpe/text/unicode_forms.py` explains them, with the place that each byte came from.
//!
//! Hardly any text needs to be rewritten, so most of the work is finding what does. A *stable* character stays as it
//! is. Stable characters are passed over, many bytes at a time if possible, and copied together. What may have to be
//! rewritten is a *segment*: some characters that are not stable, and the stable one before them, which may be composed
//! with them.

use std::ops::Range;

use crate::error::Halt;
use crate::memory::Grow;
use crate::text::utf8::{character_at, is_continuation};
use crate::text::Origins;
use crate::watch::Check;

mod tables;

/// While stable text is copied, `check` is called once for this many bytes.
const CHECK_BYTES: usize = 1 << 16;

/// A Unicode normal form. Its number is also that of its bit in the tables.
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

    /// The name of the form.
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

    /// Whether a text, which is UTF-8, is in this form. (Also false if there is no memory to find out.)
    pub fn is_normal(self, text: &[u8]) -> bool {
        matches!(Rewrites::new(self, text).next(), Ok(None))
    }

    /// Whether the normal form of a text begins with a space. The text begins with a whole character, which is all that
    /// matters: marks may change places, but nothing moves in front of a space, and nothing is composed with it.
    pub fn begins_with_space(self, text: &[u8]) -> bool {
        let Some(first) = character_at(text, 0) else { return false };
        let decomposition = Properties::of(first).decomposition(self.replaces());
        first == ' ' || decomposition.is_some_and(|text| text.starts_with(' '))
    }

    /// The bit of this form in the tables.
    fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Append the normal form of a text, which is UTF-8, to `out`, and the origin of each of its bytes to `origins`.
    /// `origin` returns the origin of each place of the text and of its end.
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
                out.try_extend(&text[part.clone()])?;
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
    /// The text up to here has been looked at.
    done: usize,
    /// The last segment that was rewritten.
    segment: Segment,
}

impl<'a> Rewrites<'a> {
    fn new(form: Form, text: &'a [u8]) -> Rewrites<'a> {
        Rewrites { form, text, done: 0, segment: Segment::new(form) }
    }

    /// Return where the next segment is that changes: its normal form is another text, or its characters come from
    /// other places. `segment` then holds the normal form.
    fn next(&mut self) -> Result<Option<Range<usize>>, Halt> {
        loop {
            // 1. Find the next character that is not stable, those after it, and the one before it.
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
            // 2. Marks stay as they are if they are in order and are never composed. This is the case in Thai and most
            //    of Arabic.
            if in_order {
                continue;
            }
            // 3. Whether anything else changes is only known after normalizing it.
            self.segment.parts.clear();
            for (at, character) in characters(&self.text[..end], begin) {
                self.segment.add(character, at)?;
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
    /// A bit for each form in which the character is not stable. Above these, a bit for each form in which it is a mark
    /// that never changes, except for its place among other marks.
    changes: u8,
    /// Where its canonical decomposition begins in `tables::TEXTS`, and its length in bytes, which is 0 if it has none.
    canonical: (u16, u8),
    /// The same for its compatibility decomposition.
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

    /// Whether it is a mark that never changes, except for its place among other marks.
    fn only_moves(self, form: Form) -> bool {
        self.changes & form.bit() << Form::ALL.len() != 0
    }

    /// The characters of which this one is composed, if any. `replaces`: whether variants are replaced, too.
    fn decomposition(self, replaces: bool) -> Option<&'static str> {
        let (begin, length) = if replaces { self.compatible } else { self.canonical };
        let begin = usize::from(begin);
        (length > 0).then(|| &tables::TEXTS[begin..begin + usize::from(length)])
    }
}

// --- Finding what may change ---------------------------------------------------------------------
//
// A text may change at its first character that is not stable.
//
// To find it, characters are looked up in the tables only where nothing faster helps. First, a block of bytes is
// compared with characters that are common and stable. All bytes of a block are compared together, without a branch,
// which is five to ten times as fast. Which characters are common depends on the script. A text seldom changes its
// script, so the comparison that succeeded last is tried first.

/// This many bytes are compared together.
const BLOCK: usize = 32;
/// A comparison also reads this many bytes after its block, because the last character of the block may end there.
const AHEAD: usize = 2;
/// A block and the bytes after it.
type Block = [u8; BLOCK + AHEAD];
/// If a block may change, this many bytes are looked up character by character before blocks are compared again. The
/// number doubles each time, up to `MOST`, because in some scripts all blocks may change.
const LOOKED_UP: usize = 2 * BLOCK;
/// The most bytes that are looked up before blocks are compared again.
const MOST: usize = 1 << 10;

/// The comparisons for NFC.
const SCRIPTS: [fn(&Block) -> bool; 3] = [
    |block| is_stable(block, changes_in_east_asia),
    |block| is_stable(block, changes_in_europe),
    |block| is_stable(block, changes_in_arabic),
];

impl Form {
    /// Return the first place from `at` on that may change, or the end of the text if there is none. Nothing changes
    /// before it.
    ///
    /// The character at this place is not stable. Some others before it may not be stable either: a mark that could
    /// only change its place among other marks is passed over if it is the only mark there. (The text is UTF-8. It is
    /// given as bytes, because checking it again would take longer than this.)
    pub(super) fn next_change(self, text: &[u8], mut at: usize) -> usize {
        // A character is stable if its first byte is lower than this. (Bytes inside of characters are always lower.
        // They do not matter, because the first byte of their character has been passed by then.)
        let first = match self {
            Form::Nfc => 0xCC,
            Form::Nfd => 0xC3,
            Form::Nfkc | Form::Nfkd => 0xC2,
        };
        let changes = &tables::CHANGES[self as usize];
        let (mut script, mut looked_up) = (0, LOOKED_UP);
        let mut mark = None; // the place of a mark right before `at` that can only move, if there is one
        loop {
            // 1. Pass over blocks in which nothing changes.
            while let Some(block) = text[at..].first_chunk() {
                if !is_low(block, first) {
                    if self != Form::Nfc {
                        break;
                    }
                    if !SCRIPTS[script](block) {
                        let Some(other) = SCRIPTS.iter().position(|is_stable| is_stable(block)) else { break };
                        script = other;
                    }
                }
                (at, mark, looked_up) = (at + BLOCK, None, LOOKED_UP);
            }
            // 2. Look up the characters of the next blocks, or of the rest of the text.
            let end = text.len().min(at + looked_up);
            looked_up = MOST.min(2 * looked_up);
            while at < end {
                if text[at] < first {
                    (at, mark) = (at + 1, None);
                    continue;
                }
                let Some((length, block, last)) = place(&text[at..]) else { return text.len() };
                let unstable = tables::INDEX.get(block).map_or(0, |&block| changes[usize::from(block)]);
                if unstable & 1 << (last & 0x3F) == 0 {
                    mark = None;
                } else if mark.is_some() || !character_at(text, at).is_some_and(|next| self.only_moves(next)) {
                    return mark.unwrap_or(at);
                } else {
                    mark = Some(at);
                }
                at += length;
            }
            if at >= text.len() {
                return text.len();
            }
        }
    }

    /// Whether a character is a mark that never changes, except for its place among other marks.
    fn only_moves(self, mark: char) -> bool {
        Properties::of(mark).only_moves(self)
    }
}

/// The length of the character of several bytes with which a text begins, its block in the tables, and its last byte.
#[inline(always)]
fn place(text: &[u8]) -> Option<(usize, usize, u8)> {
    match *text {
        [one @ ..0xE0, two, ..] => Some((2, usize::from(one & 0x1F), two)),
        [one @ ..0xF0, two, three, ..] => Some((3, usize::from(one & 0xF) << 6 | usize::from(two & 0x3F), three)),
        [one, two, three, four, ..] => {
            let high = usize::from(one & 7) << 6 | usize::from(two & 0x3F);
            Some((4, high << 6 | usize::from(three & 0x3F), four))
        }
        _ => None,
    }
}

/// Whether all bytes of a block are lower than `first`.
#[inline(always)]
fn is_low(block: &Block, first: u8) -> bool {
    !block[..BLOCK].iter().fold(false, |any, &byte| any | (byte >= first))
}

/// Whether no character that begins in a block may change. `changes` is called for each byte, with the two bytes after
/// it. It returns whether a character begins there that may change, so false for bytes inside of characters. (It has to
/// use `|` and `&`, because `||` and `&&` would be branches. A test checks each character.)
#[inline(always)]
fn is_stable(block: &Block, changes: impl Fn(u8, u8, u8) -> bool) -> bool {
    let mut any = false;
    for at in 0..BLOCK {
        any |= changes(block[at], block[at + 1], block[at + 2]);
    }
    !any
}

/// The comparison for Chinese, Japanese, Korean, Latin, quotation marks and dashes, and most emoji.
#[inline(always)]
fn changes_in_east_asia(one: u8, two: u8, three: u8) -> bool {
    let alphabets = one.wrapping_sub(0xCC) < 0x16;
    let marks = (one == 0xE3) & ((two == 0x80) & (three >= 0xAA) | (two == 0x82) & (three.wrapping_sub(0x99) < 2));
    let others = (one == 0xEA) & (two < 0xB0);
    let variants = (one == 0xEF) & ((two < 0xAE) | (two == 0xB8) & (three >= 0xA0));
    let four = (one == 0xF0) & (two != 0x9F);
    alphabets | is_other_sign(one, two, three) | marks | others | variants | four
}

/// The comparison for Latin (Vietnamese, too), Greek, Cyrillic, Armenian.
#[inline(always)]
fn changes_in_europe(one: u8, two: u8, three: u8) -> bool {
    let accents = one & 0xFE == 0xCC;
    let some = (one == 0xCE) & (two == 0x87) | (one == 0xD2) & (two < 0x88) | (one == 0xD6) & (two > 0x90);
    let others = (one >= 0xD7) & (one != 0xE2) & !((one == 0xE1) & (two & 0xFE == 0xBA));
    accents | some | others | is_other_sign(one, two, three)
}

/// The comparison for Arabic, Persian, Hebrew.
#[inline(always)]
fn changes_in_arabic(one: u8, two: u8, three: u8) -> bool {
    let others = (one.wrapping_sub(0xCC) < 0x0B) | (one >= 0xDC) & (one != 0xE2);
    let hebrew = (one == 0xD7) & (two < 0x88);
    let arabic = (one == 0xD8) & (two.wrapping_sub(0x90) < 0x0B)
        | (one == 0xD9) & ((two.wrapping_sub(0x8B) < 0x15) | (two == 0xB0))
        | (one == 0xDB) & (two.wrapping_sub(0x96) < 0x18);
    others | hebrew | arabic | is_other_sign(one, two, three)
}

/// Whether a character begins with 0xE2 and is none of the usual dashes and quotation marks.
#[inline(always)]
fn is_other_sign(one: u8, two: u8, three: u8) -> bool {
    (one == 0xE2) & ((two != 0x80) | (three < 0x82))
}

// --- Rewriting a segment -------------------------------------------------------------------------

/// The first syllable of Hangul.
const HANGUL: u32 = 0xAC00;
/// The first letter of each of the three parts of a syllable. (The third part may be missing. `T`, the code point
/// before its first letter, stands for that.)
const L: u32 = 0x1100;
const V: u32 = 0x1161;
const T: u32 = 0x11A7;
/// How many syllables there are.
const SYLLABLES: u32 = LETTERS_L * LETTERS_V * LETTERS_T;
/// How many choices there are for each part.
const LETTERS_L: u32 = 19;
const LETTERS_V: u32 = 21;
const LETTERS_T: u32 = 28;

/// Up to this many marks are sorted without allocating memory.
const FEW: usize = 16;

/// A character of a segment while that is normalized.
#[derive(Clone, Copy)]
struct Part {
    character: char,
    /// Its combining class.
    class: u8,
    /// The places of the first and the last character of the text that it came from.
    first: usize,
    last: usize,
}

/// Characters that are normalized together. One value is used for all segments of a text, to keep its memory.
pub struct Segment {
    form: Form,
    parts: Vec<Part>,
    /// A copy of the marks that are being ordered.
    spare: Vec<Part>,
    /// For each part, the first place that it or a later part came from.
    lowest: Vec<usize>,
}

impl Segment {
    /// An empty segment.
    pub fn new(form: Form) -> Segment {
        Segment { form, parts: Vec::new(), spare: Vec::new(), lowest: Vec::new() }
    }

    /// Decompose the character at a place, and keep its parts.
    pub fn add(&mut self, character: char, at: usize) -> Result<(), Halt> {
        let mut push = |character: char| {
            let class = Properties::of(character).class;
            self.parts.try_push(Part { character, class, first: at, last: at })
        };
        let number = (character as u32).wrapping_sub(HANGUL);
        if number < SYLLABLES {
            let (rest, last) = (number / LETTERS_T, number % LETTERS_T);
            let letters = [L + rest / LETTERS_V, V + rest % LETTERS_V, T + last];
            let count = if last == 0 { 2 } else { 3 };
            return letters[..count].iter().filter_map(|&code| char::from_u32(code)).try_for_each(push);
        }
        match Properties::of(character).decomposition(self.form.replaces()) {
            Some(text) => text.chars().try_for_each(push),
            None => push(character),
        }
    }

    /// Bring the characters that were added into the normal form.
    pub fn make(&mut self) -> Result<(), Halt> {
        // 1. Put neighbouring marks into the order of their classes.
        for marks in self.parts.split_mut(|part| part.class == 0) {
            if !marks.is_sorted_by_key(|mark| mark.class) {
                order(marks, &mut self.spare)?;
            }
        }
        // 2. Compose.
        if self.form.composes() {
            self.compose();
        }
        Ok(())
    }

    /// Whether the result is what was added: these characters, each from its own place.
    pub fn is_same(&self, mut characters: impl Iterator<Item = (usize, char)>) -> bool {
        let mut same = |part: &Part| part.first == part.last && characters.next() == Some((part.first, part.character));
        self.parts.iter().all(&mut same) && characters.next().is_none()
    }

    /// Append the result to `out`. `end` is the end of the text that it was made from; see `Form::normalize`.
    pub fn write<O: Origins>(
        &mut self,
        text: &[u8],
        end: usize,
        origin: impl Fn(usize) -> usize,
        out: &mut Vec<u8>,
        origins: &mut O,
    ) -> Result<(), Halt> {
        // Parts of one character are a group, and so are parts that have changed places. All parts of a group get the
        // place where it begins in the text. A group begins at a part if all parts before it came from earlier places
        // than this part and all that follow.
        if O::KEEPS {
            self.lowest.clear();
            self.lowest.grow(self.parts.len() + 1)?;
            self.lowest.resize(self.parts.len() + 1, end);
            for (number, part) in self.parts.iter().enumerate().rev() {
                self.lowest[number] = part.first.min(self.lowest[number + 1]);
            }
        }
        let (mut highest, mut begin) = (None, 0);
        for (number, part) in self.parts.iter().enumerate() {
            let mut bytes = [0; 4];
            let bytes = part.character.encode_utf8(&mut bytes).as_bytes();
            out.try_extend(bytes)?;
            if !O::KEEPS {
                continue;
            }
            let begins = highest < Some(self.lowest[number]);
            highest = highest.max(Some(part.last));
            let ends = highest < Some(self.lowest[number + 1]);
            if begins {
                begin = self.lowest[number];
            }
            if begins && ends && part.first == part.last && text[part.first..].starts_with(bytes) {
                (begin..begin + bytes.len()).try_for_each(|at| origins.add(1, origin(at)))?;
            } else {
                origins.add(bytes.len(), origin(begin))?;
            }
        }
        Ok(())
    }

    /// Compose each letter with the marks after it. (A mark is blocked by one before it of the same or a higher class.)
    fn compose(&mut self) {
        // Where the last letter is in the result, and the class of the last mark after it.
        let (mut letter, mut before) = (None, 0);
        let mut made = 0;
        for number in 0..self.parts.len() {
            let part = self.parts[number];
            if let Some(at) = letter.filter(|_| before == 0 || before < part.class) {
                let left: &mut Part = &mut self.parts[at];
                if let Some(character) = composed(left.character, part.character) {
                    left.character = character;
                    (left.first, left.last) = (left.first.min(part.first), left.last.max(part.last));
                    continue;
                }
            }
            self.parts[made] = part;
            if part.class == 0 {
                letter = Some(made);
            }
            before = part.class;
            made += 1;
        }
        self.parts.truncate(made);
    }
}

/// Put marks into the order of their classes. Marks of one class keep their order. The time is linear, however many
/// marks there are.
fn order(marks: &mut [Part], spare: &mut Vec<Part>) -> Result<(), Halt> {
    if marks.len() <= FEW {
        marks.sort_by_key(|mark| mark.class);
        return Ok(());
    }
    spare.clear();
    spare.try_extend(marks)?;
    let mut places = [0; 256];
    for mark in spare.iter() {
        places[usize::from(mark.class)] += 1;
    }
    let mut next = 0;
    for place in &mut places {
        (*place, next) = (next, next + *place);
    }
    for &mark in spare.iter() {
        let place = &mut places[usize::from(mark.class)];
        marks[*place] = mark;
        *place += 1;
    }
    Ok(())
}

/// The character that two characters are composed to, if there is one.
fn composed(left: char, right: char) -> Option<char> {
    let (left, right) = (left as u32, right as u32);
    let (first, middle, last) = (left.wrapping_sub(L), right.wrapping_sub(V), right.wrapping_sub(T));
    if first < LETTERS_L && middle < LETTERS_V {
        return char::from_u32(HANGUL + (first * LETTERS_V + middle) * LETTERS_T);
    }
    let number = left.wrapping_sub(HANGUL);
    if number < SYLLABLES && number % LETTERS_T == 0 && (1..LETTERS_T).contains(&last) {
        return char::from_u32(left + last);
    }
    let at = tables::PAIRS.binary_search_by_key(&(left, right), |&(left, right, _)| (left, right)).ok()?;
    char::from_u32(tables::PAIRS[at].2)
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
        // Marks that change places come from the same place.
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

    #[test]
    fn blocks_miss_no_character() {
        let mut stable = [0; SCRIPTS.len()];
        for character in '\0'..=char::MAX {
            let mut bytes = [0; 4];
            let bytes = character.encode_utf8(&mut bytes).as_bytes();
            for (number, is_stable) in SCRIPTS.iter().enumerate() {
                // At several places, one of them where the block ends within the character.
                let found = [0, BLOCK - bytes.len(), BLOCK - 1].map(|at| {
                    let mut block = [b'a'; BLOCK + AHEAD];
                    let length = bytes.len().min(block.len() - at);
                    block[at..at + length].copy_from_slice(&bytes[..length]);
                    is_stable(&block)
                });
                assert!(found == [found[0]; 3], "{character:?}");
                assert!(!found[0] || Properties::of(character).changes & Form::Nfc.bit() == 0, "{character:?}");
                stable[number] += usize::from(found[0]);
            }
        }
        assert!(stable.iter().all(|&stable| stable > 1000), "{stable:?}");
    }
}
