//! A few characters, brought into a normal form.

use crate::error::Halt;
use crate::memory::Grow;
use crate::text::forms::{tables, Form, Properties};
use crate::text::origins::Origins;

/// The first syllable of Hangul, and the first letter of each of its three parts (of the third, the one before).
const HANGUL: u32 = 0xAC00;
const L: u32 = 0x1100;
const V: u32 = 0x1161;
const T: u32 = 0x11A7;
/// How many there are.
const SYLLABLES: u32 = LETTERS_L * LETTERS_V * LETTERS_T;
const LETTERS_L: u32 = 19;
const LETTERS_V: u32 = 21;
const LETTERS_T: u32 = 28;

/// This many marks are sorted without memory.
const FEW: usize = 16;

/// A character on the way to a normal form.
#[derive(Clone, Copy)]
struct Part {
    character: char,
    /// Its combining class.
    class: u8,
    /// The first and the last character of the text that it came from, by where they begin.
    first: usize,
    last: usize,
}

/// Characters that are normalized together. Used again and again, for its memory.
pub struct Segment {
    form: Form,
    parts: Vec<Part>,
    /// Marks that are being ordered.
    spare: Vec<Part>,
    /// For each part, the first place that it or any later one came from.
    lowest: Vec<usize>,
}

impl Segment {
    /// An empty one.
    pub fn new(form: Form) -> Segment {
        Segment { form, parts: Vec::new(), spare: Vec::new(), lowest: Vec::new() }
    }

    /// Forget everything.
    pub fn clear(&mut self) {
        self.parts.clear();
    }

    /// Take a character apart, and keep the parts.
    pub fn add(&mut self, character: char, at: usize) -> Result<(), Halt> {
        let mut push = |character: char| {
            let class = Properties::of(character).class;
            self.parts.grow(1)?;
            self.parts.push(Part { character, class, first: at, last: at });
            Ok(())
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

    /// Bring what was added into the normal form.
    pub fn make(&mut self) -> Result<(), Halt> {
        // 1. Marks side by side get the order of their classes.
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

    /// Whether that is what was added: these characters, each from its own place.
    pub fn is_same(&self, mut characters: impl Iterator<Item = (usize, char)>) -> bool {
        let mut same = |part: &Part| part.first == part.last && characters.next() == Some((part.first, part.character));
        self.parts.iter().all(&mut same) && characters.next().is_none()
    }

    /// Append it to `out`. `end` is that of the text that it was made of; see `Form::normalize`.
    pub fn write<O: Origins>(
        &mut self,
        text: &[u8],
        end: usize,
        origin: impl Fn(usize) -> usize,
        out: &mut Vec<u8>,
        origins: &mut O,
    ) -> Result<(), Halt> {
        // (Between parts whose places are mixed nothing can be told apart.)
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
            out.grow(bytes.len())?;
            out.extend_from_slice(bytes);
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

    /// Compose each letter with the marks after it that nothing blocks.
    fn compose(&mut self) {
        // Where the last letter is among those that are made, and the class of the last mark after it.
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

/// Put marks into the order of their classes; those of one class keep theirs. The time is linear, however many there are.
fn order(marks: &mut [Part], spare: &mut Vec<Part>) -> Result<(), Halt> {
    if marks.len() <= FEW {
        marks.sort_by_key(|mark| mark.class);
        return Ok(());
    }
    spare.clear();
    spare.grow(marks.len())?;
    spare.extend_from_slice(marks);
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

/// The character that two are composed to, if there is one.
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
