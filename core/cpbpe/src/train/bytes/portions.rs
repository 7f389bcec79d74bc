//! Texts -> portions for threads. A long text is cut where the pattern allows it: its parts have the chunks of the whole.

use crate::error::Halt;
use crate::memory::Grow;
use crate::split::Splitter;
use crate::text::utf8::is_continuation;

/// A thread takes about this many bytes at a time.
const PORTION: usize = 1 << 18;
/// A place to cut is searched for in this many bytes, then in the next ones.
const WINDOW: usize = 1 << 10;

/// A text, or a part of one that can be split by itself.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// Its bytes, which may be invalid UTF-8. If the whole text begins and ends between characters, so does each part.
    pub text: &'a [u8],
    /// How many times it counts.
    pub count: u64,
    /// The number of the text.
    pub number: u64,
    /// Where it begins in the corpus.
    pub place: u64,
}

impl Part<'_> {
    /// The number of a place in the part. The place is counted in the part after it was made valid UTF-8. (A replaced
    /// byte becomes three.)
    pub fn first(&self, place: usize) -> u64 {
        3 * self.place + place as u64
    }
}

/// Parts for threads: each portion is a range of them.
#[derive(Default)]
pub struct Portions<'a> {
    /// All parts, in the order of the corpus.
    pub parts: Vec<Part<'a>>,
    /// Where each portion ends among them.
    pub ends: Vec<usize>,
    /// How many bytes are in the last portion, which has not ended yet.
    open: usize,
}

impl<'a> Portions<'a> {
    /// Append a text, cut into parts if it is long.
    pub fn push(&mut self, part: Part<'a>, splitter: Option<&Splitter>) -> Result<(), Halt> {
        let Part { text, place, .. } = part;
        let mut begin = 0usize;
        loop {
            let cut =
                splitter.and_then(|splitter| first_cut(splitter, text, begin.saturating_add(PORTION), text.len()));
            let end = cut.unwrap_or(text.len());
            self.parts.try_push(Part { text: &text[begin..end], place: place + begin as u64, ..part })?;
            self.open += end - begin;
            if self.open >= PORTION {
                self.end()?;
            }
            begin = end;
            if begin == text.len() {
                return Ok(());
            }
        }
    }

    /// End the last portion.
    pub fn end(&mut self) -> Result<(), Halt> {
        if self.ends.last().copied().unwrap_or(0) < self.parts.len() {
            self.ends.try_push(self.parts.len())?;
        }
        self.open = 0;
        Ok(())
    }

    /// The parts of a portion; `None` after the last one.
    pub fn get(&self, number: usize) -> Option<&[Part<'a>]> {
        let end = *self.ends.get(number)?;
        let begin = if number == 0 { 0 } else { self.ends[number - 1] };
        Some(&self.parts[begin..end])
    }
}

/// The first place from `from` on at which the text, which may be invalid UTF-8, can be cut.
fn first_cut(splitter: &Splitter, text: &[u8], from: usize, to: usize) -> Option<usize> {
    let mut begin = from;
    while begin < to {
        begin += text[begin..to].iter().take_while(|&&byte| is_continuation(byte)).count();
        let end = to.min(begin + WINDOW);
        if let Some(cut) = cut_within(splitter, &text[begin..end]) {
            return Some(begin + cut);
        }
        // (The windows overlap by a character and more, because a cut depends on the characters before it.)
        begin = if end == to { to } else { end - 8 };
    }
    None
}

/// A place near the end of a text at which it can be cut, whatever follows; `None` if there is none after `from`.
pub fn last_cut(splitter: &Splitter, text: &[u8], from: usize) -> Option<usize> {
    let mut window = WINDOW;
    loop {
        let begin = from.max(text.len().saturating_sub(window));
        // (The last bytes may be an incomplete character.)
        let cut = first_cut(splitter, text, begin, text.len());
        if cut.is_some() || begin == from {
            return cut;
        }
        window = window.saturating_mul(8);
    }
}

/// A place at which the text can be cut, in that part of a window that is valid UTF-8.
fn cut_within(splitter: &Splitter, window: &[u8]) -> Option<usize> {
    let mut begin = 0;
    while begin < window.len() {
        let (valid, skip) = match std::str::from_utf8(&window[begin..]) {
            Ok(valid) => (valid, usize::MAX),
            Err(error) => {
                let valid = &window[begin..begin + error.valid_up_to()];
                (
                    std::str::from_utf8(valid).unwrap_or(""),
                    error.valid_up_to() + error.error_len().unwrap_or(usize::MAX / 2),
                )
            }
        };
        if let Some(cut) = splitter.safe_cut(valid, 0, valid.len()) {
            return Some(begin + cut);
        }
        begin = begin.saturating_add(skip);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATTERN: &str = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

    #[test]
    fn a_long_text_is_cut_and_nothing_is_lost() {
        let splitter = Splitter::of(PATTERN).unwrap();
        for unit in ["some words, ", "é日本語、", "x", "a\u{301}b \n", "it's 5\r\n "] {
            let text = unit.repeat(3 * PORTION / unit.len());
            for broken in [false, true] {
                let mut bytes = text.clone().into_bytes();
                if broken {
                    (0..bytes.len()).step_by(1000).for_each(|at| bytes[at] = 0xFF);
                }
                let mut portions = Portions::default();
                portions.push(Part { text: &bytes, count: 1, number: 0, place: 5 }, Some(&splitter)).unwrap();
                portions.end().unwrap();
                let joined: Vec<u8> = portions.parts.iter().flat_map(|part| part.text).copied().collect();
                assert!(joined == bytes);
                assert_eq!(portions.parts.len() > 1, unit != "x", "{unit}");
                assert!(portions.parts.iter().all(|part| !part.text.is_empty() && !is_continuation(part.text[0])));
                assert_eq!(last_cut(&splitter, &bytes, 0).is_some(), unit != "x");
            }
        }
    }
}
