//! Which lines of a text normalizing may change, other than by a space in front. Most lines of most texts it does not.

use crate::memory::boxed;
use crate::text::normalize::Normalizer;
use crate::text::normalizer_options::NormalizerOptions;
use crate::text::places::{marked_pairs, Places, BLOCK};

/// For one normalizer that puts a space in front of each text, and has no user-defined pieces.
pub struct LineChanges {
    /// Where it does anything, and a table that also marks what it does while copying and at both ends of a line. `None` if
    /// it does nothing else.
    places: Option<(Places, Box<[u8; 1 << 16]>)>,
}

impl Normalizer {
    /// Which lines it changes in another way than by a space in front; `None` if no line gets one, or nothing is known.
    pub fn line_changes(&self) -> Option<LineChanges> {
        let options = &self.options;
        let in_front = options.add_dummy_prefix && !options.suffix && options.prefix_before_space;
        if !in_front || !options.escape_whitespaces || self.user_defined.is_some() {
            return None;
        }
        if self.is_plain() {
            return Some(LineChanges::none());
        }
        let places = Places::new(self.charsmap.as_deref(), None, options.remove_extra_whitespaces);
        Some(LineChanges::new(places, options))
    }
}

impl LineChanges {
    /// Nothing is ever changed.
    fn none() -> LineChanges {
        LineChanges { places: None }
    }

    /// For these places. Newlines are between lines, so rules for them do not count.
    fn new(places: Places, options: &NormalizerOptions) -> LineChanges {
        let mut pairs = boxed(0);
        for (pair, mark) in (0..=u16::MAX).zip(pairs.iter_mut()) {
            let [first, second] = pair.to_le_bytes();
            let removed = options.remove_extra_whitespaces && [[b'\n', b' '], [b' ', b'\n']].contains(&[first, second]);
            let changed = || places.pairs()[usize::from(pair)] != 0 || places.folded(first) != first;
            *mark = u8::from(removed || first != b'\n' && changed());
        }
        LineChanges { places: Some((places, pairs)) }
    }

    /// Where the first line after the newline at `newline` begins, or any byte of it, that may be changed; `None` if
    /// there is none before the newline at `end`. The text must be UTF-8 and have more than a block after that.
    pub fn next(&self, text: &[u8], newline: usize, end: usize) -> Option<usize> {
        let (places, pairs) = self.places.as_ref()?;
        // Indented lines come one after the other, and need no search.
        if text[newline + 1] == b' ' && pairs[usize::from(u16::from_le_bytes([b'\n', b' ']))] != 0 {
            return Some(newline + 1);
        }
        for base in (newline..end).step_by(BLOCK) {
            let mut marked = marked_pairs(pairs, text[base..].first_chunk()?);
            if end - base < BLOCK {
                marked &= (1 << (end - base)) - 1;
            }
            while marked != 0 {
                let place = base + marked.trailing_zeros() as usize;
                marked &= marked - 1;
                if text[place] == b'\n' {
                    return Some(place + 1);
                }
                if places.confirm(text, place, newline).is_some() {
                    return Some(place);
                }
            }
        }
        None
    }
}
