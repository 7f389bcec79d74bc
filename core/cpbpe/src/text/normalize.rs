//! Text -> normalized text, with a map from every byte back to the input. The same steps as
//! `Normalizer` in `cpbpe/reference/encoding.py`, which explains them.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Halt};
use crate::memory::Grow;
use crate::text::charsmap::Charsmap;
use crate::text::finder::{Keys, Walk};
use crate::text::utf8::{self, REPLACEMENT, SPACE};
use crate::watch::Check;

/// Whether to go on is checked once in this many bytes of text, each of which may become a long replacement.
const CHECK_BYTES: usize = 1 << 12;

/// How text is rewritten; see `NormalizerSpec` in `cpbpe/model/spec.py`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NormalizerOptions {
    /// What the model calls its rules.
    pub name: Vec<u8>,
    /// The compiled rules, empty when there are none.
    pub charsmap: Vec<u8>,
    /// Put a space in front.
    pub add_dummy_prefix: bool,
    /// Drop spaces at both ends, make runs one.
    pub remove_extra_whitespaces: bool,
    /// Write a space as U+2581.
    pub escape_whitespaces: bool,
    /// `add_dummy_prefix` puts the space at the end.
    pub suffix: bool,
}

impl Default for NormalizerOptions {
    fn default() -> Self {
        NormalizerOptions {
            name: Vec::new(),
            charsmap: Vec::new(),
            add_dummy_prefix: true,
            remove_extra_whitespaces: true,
            escape_whitespaces: true,
            suffix: false,
        }
    }
}

/// Receives the map back to the input; `()` keeps nothing.
pub trait Origins {
    /// The next `count` bytes came from `origin`.
    fn add(&mut self, count: usize, origin: usize) -> Result<(), Halt>;
    /// The next bytes came from the same number of bytes, each from one.
    fn add_each(&mut self, origins: Range<usize>) -> Result<(), Halt>;
    /// Forget all but the first `length`. Returns where the first forgotten one came from.
    fn truncate(&mut self, length: usize) -> usize;
}

impl Origins for () {
    #[inline]
    fn add(&mut self, _: usize, _: usize) -> Result<(), Halt> {
        Ok(())
    }
    #[inline]
    fn add_each(&mut self, _: Range<usize>) -> Result<(), Halt> {
        Ok(())
    }
    #[inline]
    fn truncate(&mut self, _: usize) -> usize {
        0
    }
}

impl Origins for Vec<usize> {
    #[inline]
    fn add(&mut self, count: usize, origin: usize) -> Result<(), Halt> {
        self.grow(count)?;
        self.resize(self.len() + count, origin);
        Ok(())
    }
    #[inline]
    fn add_each(&mut self, origins: Range<usize>) -> Result<(), Halt> {
        self.grow(origins.len())?;
        self.extend(origins);
        Ok(())
    }
    #[inline]
    fn truncate(&mut self, length: usize) -> usize {
        let origin = self[length];
        self.truncate(length);
        origin
    }
}

/// The first space. The text is nearly always one character, for which a loop is faster than a call.
#[inline]
fn space_in(part: &[u8]) -> Option<usize> {
    if part.len() < 8 {
        part.iter().position(|&byte| byte == b' ')
    } else {
        memchr::memchr(b' ', part)
    }
}

/// One normalizer: its options and its rules.
pub struct Normalizer {
    /// The switches.
    pub options: NormalizerOptions,
    charsmap: Option<Arc<Charsmap>>,
}

impl Normalizer {
    /// Check the rules, and take them out of the options.
    pub fn new(mut options: NormalizerOptions) -> Result<Normalizer, Error> {
        let blob = std::mem::take(&mut options.charsmap);
        let charsmap = if blob.is_empty() { None } else { Some(Arc::new(Charsmap::new(&blob)?)) };
        Ok(Normalizer { options, charsmap })
    }

    /// The options as they were given, with the rules.
    pub fn options_with_rules(&self) -> NormalizerOptions {
        let charsmap = self.charsmap.as_ref().map(|charsmap| charsmap.blob()).unwrap_or_default();
        NormalizerOptions { charsmap, ..self.options.clone() }
    }

    /// The same with other options. `raw`: text is taken as normalized already.
    pub fn variant(&self, prefix: Option<bool>, raw: bool) -> Normalizer {
        let mut options = self.options.clone();
        options.add_dummy_prefix = prefix.unwrap_or(options.add_dummy_prefix) && !raw;
        options.remove_extra_whitespaces &= !raw;
        Normalizer { options, charsmap: self.charsmap.clone().filter(|_| !raw) }
    }

    /// Whether the only thing done to valid text is to write spaces as U+2581 and to add the dummy prefix in
    /// front. (User-defined pieces need not be looked for then: copying them through changes nothing.)
    pub fn is_plain(&self) -> bool {
        let options = &self.options;
        self.charsmap.is_none()
            && !options.remove_extra_whitespaces
            && options.escape_whitespaces
            && !(options.suffix && options.add_dummy_prefix)
    }

    /// Whether a byte is a character that no rule and no user-defined piece begins with, and not a space.
    #[inline]
    fn is_copied(&self, byte: u8, user_defined: Option<&Keys>) -> bool {
        byte.is_ascii_graphic()
            && self.charsmap.as_ref().is_none_or(|charsmap| !charsmap.begins(byte))
            && user_defined.is_none_or(|keys| !keys.begins(byte))
    }

    /// The rewritten form of the text at `at`, and how many bytes it replaces.
    #[inline]
    fn next<'a>(
        &'a self,
        text: &'a [u8],
        at: usize,
        user_defined: &mut Option<Walk>,
        keep_invalid: bool,
    ) -> (&'a [u8], usize) {
        if let Some(walk) = user_defined {
            let length = walk.longest(at);
            if length > 0 {
                return (&text[at..at + length], length);
            }
        }
        if let Some(rule) = self.charsmap.as_ref().and_then(|charsmap| charsmap.longest(text, at)) {
            return rule;
        }
        match utf8::valid_length(text, at) {
            0 if keep_invalid => (&text[at..=at], 1),
            0 => (REPLACEMENT, 1),
            length => (&text[at..at + length], length),
        }
    }

    /// Append the normalized text to `out` (which must be empty) and its map to `origins`, with one entry
    /// more for the end.
    pub fn normalize<O: Origins>(
        &self,
        text: &[u8],
        user_defined: Option<&Keys>,
        keep_invalid: bool,
        check: Check,
        out: &mut Vec<u8>,
        origins: &mut O,
    ) -> Result<(), Halt> {
        let options = &self.options;
        let squeeze = options.remove_extra_whitespaces;
        let space: &[u8] = if options.escape_whitespaces { SPACE } else { b" " };
        let mut walk = user_defined.map(|keys| keys.walk(text));
        // 1. Spaces at the beginning go first: a text of nothing else is empty, and gets no dummy prefix.
        let mut at = 0;
        let mut next_check = CHECK_BYTES;
        while squeeze && at < text.len() {
            let (rewritten, used) = self.next(text, at, &mut walk, keep_invalid);
            if rewritten != b" " {
                break;
            }
            at += used;
            if at >= next_check {
                check()?;
                next_check = at + CHECK_BYTES;
            }
        }
        if at == text.len() {
            return origins.add(1, at);
        }
        // 2. The dummy prefix.
        out.grow(text.len() + text.len() / 4 + SPACE.len())?;
        let add = |out: &mut Vec<u8>, origins: &mut O, mut part: &[u8], origin: usize| {
            out.grow(part.len() * space.len())?; // more than it can take
            while let Some(length) = space_in(part) {
                out.extend_from_slice(&part[..length]);
                out.extend_from_slice(space);
                origins.add(length + space.len(), origin)?;
                part = &part[length + 1..];
            }
            out.extend_from_slice(part);
            origins.add(part.len(), origin)
        };
        if options.add_dummy_prefix && !options.suffix {
            add(out, origins, b" ", at)?;
        }
        // 3. The text, rewritten. Spaces are dropped after a space, and at the beginning.
        let mut drop_spaces = squeeze;
        while at < text.len() {
            let stop = text.len().min(at + CHECK_BYTES);
            while at < stop {
                // (Most text is visible ASCII that nothing rewrites. Copying a run of it at once is eight times as
                // fast.)
                let begin = at;
                while at < stop && self.is_copied(text[at], user_defined) {
                    at += 1;
                }
                if at > begin {
                    out.grow(at - begin)?;
                    out.extend_from_slice(&text[begin..at]);
                    origins.add_each(begin..at)?;
                    drop_spaces = false;
                    continue;
                }
                let (mut rewritten, used) = self.next(text, at, &mut walk, keep_invalid);
                while drop_spaces && rewritten.first() == Some(&b' ') {
                    rewritten = &rewritten[1..];
                }
                if let Some(last) = rewritten.last() {
                    drop_spaces = squeeze && *last == b' ';
                    add(out, origins, rewritten, at)?;
                }
                at += used;
            }
            if at < text.len() {
                check()?;
            }
        }
        // 4. Spaces at the end go, and so does a dummy prefix that nothing follows.
        let mut end = at;
        while squeeze && out.ends_with(space) {
            out.truncate(out.len() - space.len());
            end = origins.truncate(out.len());
        }
        // 5. The dummy prefix of a model that has it at the end.
        if options.add_dummy_prefix && options.suffix {
            add(out, origins, b" ", end)?;
        }
        origins.add(1, end)
    }
}
