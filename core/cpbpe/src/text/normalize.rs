//! Text -> normalized text, with a map from every byte back to the input. The same steps as
//! `Normalizer` in `cpbpe/reference/encoding.py`, which explains them.
//!
//! The reference looks at each character. Here, only those places are looked at where something may happen, as
//! `places.rs` finds them; what lies between is copied together. The result is exactly the same: at all other places of
//! valid text, no user-defined piece and no rule begins, so the character is copied, and no space follows another.
//! (Text that is not valid is treated as valid parts, with single bytes between them.)

use std::sync::Arc;

use crate::error::{Error, Halt};
use crate::lazy::Lazy;
use crate::memory::{boxed, Grow};
use crate::text::charsmap::Charsmap;
use crate::text::forms::Form;
use crate::text::keys::{Keys, Walk};
use crate::text::places::{marked_pairs, Places, BLOCK};
use crate::text::utf8::{self, is_continuation, REPLACEMENT, SPACE};
use crate::text::Origins;
use crate::watch::{Check, Checks, NO_CHECK};

/// Whether to go on is checked once in this many bytes of text, each of which may be replaced by a long text.
const CHECK_BYTES: usize = 1 << 12;

/// How spaces are written in normalized text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Spaces {
    /// As the options say: as U+2581, or as spaces.
    AsInModel,
    /// As spaces, and U+2581 as a space, too: this makes compact text.
    Compact,
}

/// A text to be normalized.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The text.
    pub text: &'a [u8],
    /// Whether it is known to be UTF-8.
    pub valid: bool,
    /// Whether bytes that belong to no character are kept; otherwise they become U+FFFD.
    pub keep_invalid: bool,
}

/// A normalizer: its options, its rules, and the user-defined pieces, which no rule may break up.
pub struct Normalizer {
    /// The switches.
    pub options: NormalizerOptions,
    pub(super) charsmap: Option<Arc<Charsmap>>,
    pub(super) user_defined: Option<Arc<Keys>>,
    places: Arc<Lazy<Places>>,
}

impl Normalizer {
    /// Check the rules, and move them out of the options.
    pub fn new(mut options: NormalizerOptions) -> Result<Normalizer, Error> {
        let blob = std::mem::take(&mut options.charsmap);
        let charsmap = if blob.is_empty() { None } else { Some(Arc::new(Charsmap::new(&blob)?)) };
        Ok(Normalizer { options, charsmap, user_defined: None, places: Arc::default() })
    }

    /// The same with user-defined pieces.
    pub fn with_user_defined(&self, keys: &Arc<Keys>) -> Normalizer {
        Normalizer {
            options: self.options.clone(),
            charsmap: self.charsmap.clone(),
            user_defined: Some(keys.clone()).filter(|keys| !keys.is_empty()),
            places: Arc::default(),
        }
    }

    /// The options as they were given, with the rules.
    pub fn options_with_rules(&self) -> NormalizerOptions {
        let charsmap = self.charsmap.as_ref().map(|charsmap| charsmap.blob()).unwrap_or_default();
        NormalizerOptions { charsmap, ..self.options.clone() }
    }

    /// The same with other options. `raw`: take text as normalized already.
    pub fn variant(&self, prefix: Option<bool>, raw: bool) -> Normalizer {
        let mut options = self.options.clone();
        options.add_dummy_prefix = prefix.unwrap_or(options.add_dummy_prefix) && !raw;
        options.remove_extra_whitespaces &= !raw;
        options.unicode_form = options.unicode_form.filter(|_| !raw);
        Normalizer {
            options,
            charsmap: self.charsmap.clone().filter(|_| !raw),
            user_defined: self.user_defined.clone(),
            places: if raw { Arc::default() } else { self.places.clone() },
        }
    }

    /// Whether all that is done to valid text is to write spaces as U+2581 and to add the dummy prefix in front.
    /// (User-defined pieces need not be searched for then, because copying them changes nothing.)
    pub fn is_plain(&self) -> bool {
        let options = &self.options;
        self.charsmap.is_none()
            && !options.remove_extra_whitespaces
            && options.escape_whitespaces
            && !(options.suffix && options.add_dummy_prefix)
    }

    /// Whether a text gets a dummy prefix, for a normalizer that `is_plain`.
    #[inline]
    pub fn prefixes(&self, text: &[u8]) -> bool {
        self.options.add_dummy_prefix && (self.options.prefix_before_space || !self.begins_with_space(text))
    }

    /// Whether a text gets a dummy prefix in a byte-level model. If the model has a Unicode normal form, that form of
    /// the text counts.
    pub fn prefixes_bytes(&self, text: &[u8]) -> bool {
        let begins_with_space = || match self.options.unicode_form {
            Some(form) => utf8::valid_length(text, 0) > 0 && form.begins_with_space(text),
            None => text[0] == b' ',
        };
        self.options.add_dummy_prefix && !text.is_empty() && (self.options.prefix_before_space || !begins_with_space())
    }

    /// Whether a text begins with a space, or with the character that stands for one.
    fn begins_with_space(&self, text: &[u8]) -> bool {
        text.first() == Some(&b' ') || self.options.escape_whitespaces && text.starts_with(SPACE)
    }

    /// Whether all that is done to valid text, apart from a Unicode normal form, is to put a space in front.
    pub fn only_prefixes(&self) -> bool {
        let NormalizerOptions { suffix, remove_extra_whitespaces, escape_whitespaces, .. } = self.options;
        self.charsmap.is_none() && !suffix && !remove_extra_whitespaces && !escape_whitespaces
    }

    /// Whether normalized text is always UTF-8, provided that the user-defined pieces are.
    pub fn is_utf8(&self) -> bool {
        self.charsmap.as_ref().is_none_or(|charsmap| charsmap.is_utf8())
    }

    /// Append the normalized text to `out`, which must be empty, and its map to `origins`, with one more entry for the
    /// end.
    pub fn normalize<O: Origins>(
        &self,
        source: Source,
        spaces: Spaces,
        check: Check,
        out: &mut Vec<u8>,
        origins: &mut O,
    ) -> Result<(), Halt> {
        let (rules, keys) = (self.charsmap.as_deref(), self.user_defined.as_deref());
        let make = || Ok::<_, Halt>(Places::new(rules, keys, self.options.remove_extra_whitespaces));
        let places = self.places.get_or_make(make)?;
        self.normalize_at(&places, source, spaces, check, out, origins)
    }

    /// The same for UTF-8, for a normalizer that `is_plain`: no places have to be found then.
    pub fn escape(&self, text: &[u8], check: Check, out: &mut Vec<u8>) -> Result<(), Halt> {
        debug_assert!(self.is_plain());
        out.grow(text.len() + text.len() / 4 + BLOCK)?;
        if self.prefixes(text) && !text.is_empty() {
            out.extend_from_slice(SPACE);
        }
        for part in text.chunks(CHECK_BYTES) {
            escape_into(part, out)?;
            check()?;
        }
        Ok(())
    }

    /// The same, but every character is looked at. Tests compare with this.
    #[doc(hidden)]
    pub fn normalize_slowly(&self, text: &[u8]) -> Result<(Vec<u8>, Vec<usize>), Halt> {
        let (mut out, mut origins) = (Vec::new(), Vec::new());
        let source = Source { text, valid: false, keep_invalid: false };
        self.normalize_at(&Places::everywhere(), source, Spaces::AsInModel, NO_CHECK, &mut out, &mut origins)?;
        Ok((out, origins))
    }

    fn normalize_at<O: Origins>(
        &self,
        places: &Places,
        source: Source,
        spaces: Spaces,
        check: Check,
        out: &mut Vec<u8>,
        origins: &mut O,
    ) -> Result<(), Halt> {
        let options = &self.options;
        let squeeze = options.remove_extra_whitespaces;
        let Source { text, valid, .. } = source;
        let mut rewriting = Rewriting {
            normalizer: self,
            places,
            source,
            walk: self.user_defined.as_ref().map(|keys| keys.walk(text)),
            compact: spaces == Spaces::Compact,
            space: if spaces == Spaces::AsInModel && options.escape_whitespaces { SPACE } else { b" " },
            drop_spaces: squeeze,
            at: 0,
            checks: Checks::new(check, CHECK_BYTES),
            out,
            origins,
        };
        // 1. Drop spaces at the beginning first: a text that has nothing else is empty, and gets no dummy prefix.
        while squeeze && rewriting.at < text.len() {
            if places.is_blank(text[rewriting.at]) {
                rewriting.at += 1;
                rewriting.checks.at(rewriting.at)?;
                continue;
            }
            let (rewritten, used) = rewriting.next();
            if rewritten != b" " {
                break;
            }
            rewriting.at += used;
            rewriting.checks.at(rewriting.at)?;
        }
        // 2. Add the dummy prefix. Whether the text begins with a space is decided by the first character that stays.
        let (begin, mut prefix) = (rewriting.at, options.add_dummy_prefix && !options.suffix);
        while prefix && !options.prefix_before_space && rewriting.at < text.len() {
            let (rewritten, used) = rewriting.next();
            let kept = if squeeze { without_spaces(rewritten) } else { rewritten };
            if !kept.is_empty() {
                prefix = !self.begins_with_space(kept);
                break;
            }
            rewriting.at += used;
            rewriting.checks.at(rewriting.at)?;
        }
        if rewriting.at == text.len() {
            return rewriting.origins.add(1, text.len());
        }
        rewriting.out.grow(text.len() + text.len() / 4 + BLOCK)?;
        if prefix {
            rewriting.add(b" ", begin)?;
        }
        // 3. Rewrite the text, one valid part after the other. Spaces are dropped after a space, and at the beginning.
        while rewriting.at < text.len() {
            let begin = rewriting.at;
            let (good, bad) = if valid { (text.len() - begin, 0) } else { valid_part(&text[begin..]) };
            rewriting.rewrite(begin + good)?;
            while rewriting.at < begin + good + bad {
                rewriting.step()?;
            }
        }
        // 4. Drop spaces at the end, and a dummy prefix that nothing follows.
        let Rewriting { at: mut end, space, .. } = rewriting;
        while squeeze && rewriting.out.ends_with(space) {
            rewriting.out.truncate(rewriting.out.len() - space.len());
            end = rewriting.origins.truncate(rewriting.out.len());
        }
        // 5. Add the dummy prefix of a model that has it at the end.
        if options.add_dummy_prefix && options.suffix {
            rewriting.add(b" ", end)?;
        }
        rewriting.origins.add(1, end)
    }
}

/// A text without the spaces at its beginning.
#[inline]
fn without_spaces(mut text: &[u8]) -> &[u8] {
    while let [b' ', rest @ ..] = text {
        text = rest;
    }
    text
}

/// Copy less than a block, followed by zeros.
#[cold]
fn padded(text: &[u8]) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[..text.len()].copy_from_slice(text);
    block
}

/// Append a text with U+2581 for each space.
fn escape_into(text: &[u8], out: &mut Vec<u8>) -> Result<(), Halt> {
    const ESCAPED: [u8; 4] = [SPACE[0], SPACE[1], SPACE[2], 0];
    for part in text.chunks(BLOCK) {
        let spaces = part.iter().filter(|&&byte| byte == b' ').count();
        let (mut to, length) = (out.len(), part.len() + spaces * (SPACE.len() - 1));
        let room = length + ESCAPED.len() - 1;
        out.grow(room)?;
        out.resize(to + room, 0);
        // Write four bytes for each byte; the next one overwrites what is too much. Without a branch for each space,
        // this is three times as fast.
        for &byte in part {
            let space = byte == b' ';
            let bytes = if space { ESCAPED } else { [byte, 0, 0, 0] };
            out[to..to + 4].copy_from_slice(&bytes);
            to += if space { SPACE.len() } else { 1 };
        }
        out.truncate(to);
    }
    Ok(())
}

/// How many bytes at the beginning are valid, and how many bytes after them belong to no character.
fn valid_part(text: &[u8]) -> (usize, usize) {
    match std::str::from_utf8(text) {
        Ok(_) => (text.len(), 0),
        Err(error) => {
            let valid = error.valid_up_to();
            (valid, error.error_len().unwrap_or(text.len() - valid))
        }
    }
}

/// A text that is being normalized.
struct Rewriting<'a, O> {
    normalizer: &'a Normalizer,
    places: &'a Places,
    source: Source<'a>,
    /// Searches for user-defined pieces.
    walk: Option<Walk<'a>>,
    /// Whether U+2581 is written as a space.
    compact: bool,
    /// How a space is written.
    space: &'static [u8],
    /// Whether a space at the current place is dropped.
    drop_spaces: bool,
    /// How much of the text has been rewritten.
    at: usize,
    checks: Checks<'a>,
    out: &'a mut Vec<u8>,
    origins: &'a mut O,
}

impl<'a, O: Origins> Rewriting<'a, O> {
    /// The rewritten form of what comes next, and how many bytes of the text it replaces.
    #[inline]
    fn next(&mut self) -> (&'a [u8], usize) {
        let (Source { text, keep_invalid, .. }, at) = (self.source, self.at);
        if let Some(walk) = &mut self.walk {
            let length = walk.longest(at);
            if length > 0 {
                return (&text[at..at + length], length);
            }
        }
        if let Some(rule) = self.normalizer.charsmap.as_ref().and_then(|charsmap| charsmap.longest(text, at)) {
            return rule;
        }
        match utf8::valid_length(text, at) {
            0 if keep_invalid => (&text[at..=at], 1),
            0 => (REPLACEMENT, 1),
            length => (&text[at..at + length], length),
        }
    }

    /// Rewrite what comes next.
    fn step(&mut self) -> Result<(), Halt> {
        let (mut rewritten, used) = self.next();
        if self.drop_spaces {
            rewritten = without_spaces(rewritten);
        }
        if let Some(last) = rewritten.last() {
            self.drop_spaces = self.normalizer.options.remove_extra_whitespaces && *last == b' ';
            self.add(rewritten, self.at)?;
        }
        self.at += used;
        self.checks.at(self.at)
    }

    /// Append a text, all of which came from one place.
    #[inline]
    fn add(&mut self, part: &[u8], origin: usize) -> Result<(), Halt> {
        let before = self.out.len();
        if self.space.len() > 1 {
            escape_into(part, self.out)?;
        } else {
            self.out.grow(part.len())?;
            if self.compact && part.len() >= SPACE.len() {
                utf8::spaces_into(part, self.out);
            } else {
                self.out.extend_from_slice(part);
            }
        }
        self.origins.add(self.out.len() - before, origin)
    }

    /// Copy the text up to `end`, at most a block. In this part of the text nothing begins, and there is no U+2581.
    #[inline(always)]
    fn copy(&mut self, end: usize) -> Result<(), Halt> {
        if self.at >= end {
            return Ok(());
        }
        let rest = &self.source.text[self.at..];
        let length = end - self.at;
        // A whole block is copied, even if less is needed, because the compiler knows its length.
        let mut block = match rest.first_chunk::<BLOCK>() {
            Some(block) => *block,
            None => padded(rest),
        };
        self.places.fold(&mut block);
        let run = &block[..length];
        self.drop_spaces = self.normalizer.options.remove_extra_whitespaces && run[length - 1] == b' ';
        self.origins.add_run(run, self.at, self.space.len())?;
        self.at = end;
        if self.space.len() > 1 {
            return escape_into(run, self.out);
        }
        let before = self.out.len();
        self.out.grow(BLOCK)?;
        self.out.extend_from_slice(&block);
        self.out.truncate(before + length);
        Ok(())
    }

    /// Rewrite the text up to `end`, which is valid up to there. (A rule may match beyond `end`.)
    fn rewrite(&mut self, end: usize) -> Result<(), Halt> {
        let text = self.source.text;
        self.rewrite_by_context(end)?;
        #[cfg(target_arch = "x86_64")]
        self.rewrite_blocks(end)?;
        let mut base = self.at;
        while base < end {
            // 1. Find the places of a block. Its last character is not copied until the next one has been looked at,
            //    because a rule that is found by its second character may begin with it. If bytes follow that form no
            //    character, the last character before `end` is not copied, either: a rule may match it together with
            //    them.
            let (mut stop, mut count) = (end, end - base);
            let is_last = count <= BLOCK;
            if !is_last || end < text.len() {
                stop = base + count.min(BLOCK) - 1;
                while is_continuation(text[stop]) {
                    stop -= 1;
                }
                if !is_last {
                    count = stop + 1 - base;
                }
            }
            let mut places = self.places.of_block(text, base) & u64::MAX >> (BLOCK - count);
            // 2. Rewrite what is at these places, and copy what lies between.
            while places != 0 {
                let place = base + places.trailing_zeros() as usize;
                places &= places - 1;
                if place < self.at {
                    continue; // inside of what was rewritten
                }
                if self.places.is_blank(text[place]) {
                    self.copy(place + 1)?; // the first of several
                } else {
                    let Some(begin) = self.places.confirm(text, place, self.at) else { continue };
                    self.copy(begin)?;
                    while self.at <= place {
                        self.step()?;
                    }
                }
                self.rewrite_by_context(end)?;
            }
            self.copy(stop)?;
            while is_last && self.at < end {
                self.step()?;
            }
            base = self.at;
            self.checks.at(self.at)?;
        }
        Ok(())
    }

    /// Rewrite what needs it because of what is before it: a space after a space, and the rest of a character in which
    /// a rule ended.
    #[inline]
    fn rewrite_by_context(&mut self, end: usize) -> Result<(), Halt> {
        while self.at < end {
            let byte = self.source.text[self.at];
            if self.drop_spaces && self.places.folded(byte) == b' ' {
                if self.places.is_blank(byte) {
                    self.at += 1;
                    self.checks.at(self.at)?;
                    continue;
                }
            } else if !is_continuation(byte) {
                break;
            }
            self.step()?;
        }
        Ok(())
    }
}

// --- Options -------------------------------------------------------------------------------------
//
// The switches of a normalizer, as a model has them.

/// How text is rewritten; see `NormalizerSpec` in `cpbpe/model/spec.py`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NormalizerOptions {
    /// The name that the model gives to its rules.
    pub name: Vec<u8>,
    /// The compiled rules; empty if there are none.
    pub charsmap: Vec<u8>,
    /// Put a space in front of the text.
    pub add_dummy_prefix: bool,
    /// Drop spaces at both ends, and turn runs of them into one.
    pub remove_extra_whitespaces: bool,
    /// Write a space as U+2581.
    pub escape_whitespaces: bool,
    /// `add_dummy_prefix` puts the space at the end.
    pub suffix: bool,
    /// Put a space in front even if the text begins with one.
    pub prefix_before_space: bool,
    /// The Unicode normal form, for byte-level models.
    pub unicode_form: Option<Form>,
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
            prefix_before_space: true,
            unicode_form: None,
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod blocks {
    //! Normalizing 64 bytes at once, on machines with vector instructions.
    //!
    //! Most often, one ASCII character becomes another (line ends become spaces, capitals become small letters), or a
    //! space after a space is dropped. Here, no single character has to be looked at for that: a table says what
    //! becomes of each, and one instruction moves those that stay next to each other. Only characters of several bytes,
    //! and those ASCII characters at which something may begin, are looked up one by one.
    //!
    //! Where something begins, it is rewritten as in `Rewriting::rewrite`, and the next block begins after it. The text
    //! after the last whole block is left to `rewrite`, too.

    use std::arch::x86_64::*;

    use super::*;
    use crate::machine::{Masks, Vector};
    use crate::text::places::{Rewritten, BEGINS};

    impl<O: Origins> Rewriting<'_, O> {
        /// Rewrite all whole blocks before `end`. The text is valid up to there. `rewrite_by_context` has been called
        /// before, and has been called again on return.
        #[inline]
        pub(super) fn rewrite_blocks(&mut self, end: usize) -> Result<(), Halt> {
            match self.places.rewritten() {
                // SAFETY: the machine has the instructions, because there is a `Vector`.
                Some((vector, table)) if !O::KEEPS && self.space.len() == 1 => unsafe {
                    self.rewrite_vector(*vector, table, end)
                },
                _ => Ok(()),
            }
        }

        /// The same with this table.
        #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt,lzcnt")]
        fn rewrite_vector(&mut self, vector: Vector, table: &Rewritten, end: usize) -> Result<(), Halt> {
            let text = self.source.text;
            let squeezed = if self.normalizer.options.remove_extra_whitespaces { u64::MAX } else { 0 };
            while let Some(block) = text.get(self.at..end).and_then(|rest| rest.first_chunk::<{ BLOCK + 1 }>()) {
                let Some((block, _)) = block.split_first_chunk() else { break };
                // 1. Look up what becomes of the bytes, and where characters begin. The last one waits for the next
                //    block, because a rule that is found by its second character may begin with it.
                let [others, starts] = vector.kinds(block);
                let last = (starts | 1).ilog2();
                let bytes = vector.load(block);
                let ascii = vector.in_table(table, bytes);
                let begins = _mm512_movepi8_mask(ascii) & !others;
                let ascii = _mm512_and_si512(ascii, _mm512_set1_epi8(!BEGINS as i8));
                let bytes = _mm512_mask_mov_epi8(ascii, others, bytes);
                // 2. Find the first place at which anything else happens.
                let mut waiting = (begins | starts & others) & u64::MAX >> (BLOCK as u32 - 1 - last);
                let (mut stop, mut place) = (self.at + last as usize, None);
                while waiting != 0 {
                    let at = self.at + waiting.trailing_zeros() as usize;
                    waiting &= waiting - 1;
                    if !self.places.is_place(text[at], text[at + 1]) {
                        continue;
                    }
                    if let Some(begin) = self.places.confirm(text, at, self.at) {
                        (stop, place) = (begin, Some(at));
                        break;
                    }
                }
                // 3. Write the bytes before it, without spaces that follow a space.
                let length = stop - self.at; // less than a block
                let spaces = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(b' ' as i8));
                let dropped = spaces & (spaces << 1 | u64::from(self.drop_spaces)) & squeezed;
                let kept = !dropped & ((1 << length) - 1);
                self.out.grow(BLOCK)?;
                let before = self.out.len();
                // SAFETY: there is room for a block, of which the first bytes are those that stay.
                unsafe {
                    let to = self.out.as_mut_ptr().add(before);
                    _mm512_storeu_si512(to.cast(), _mm512_maskz_compress_epi8(kept, bytes));
                    self.out.set_len(before + kept.count_ones() as usize);
                }
                if length > 0 {
                    self.drop_spaces = spaces & squeezed & 1 << (length - 1) != 0;
                }
                self.at = stop;
                // 4. Rewrite what is at this place.
                if let Some(place) = place {
                    while self.at <= place {
                        self.step()?;
                    }
                    self.rewrite_by_context(end)?;
                }
                self.checks.at(self.at)?;
            }
            self.rewrite_by_context(end)
        }
    }
}

// --- Lines ---------------------------------------------------------------------------------------
//
// Finding the lines of a text that normalizing may change, other than by a space in front. Most lines of most texts
// stay as they are.

/// The lines that a normalizer changes. It puts a space in front of each text, and has no user-defined pieces.
pub struct LineChanges {
    /// Where the normalizer does anything, and a table that also marks what it does while copying and at both ends of a
    /// line. `None` if it does nothing else.
    places: Option<(Places, Box<[u8; 1 << 16]>)>,
}

impl Normalizer {
    /// The lines that this normalizer changes in another way than by a space in front. `None` if no line gets a space
    /// in front, or if nothing is known.
    pub fn line_changes(&self) -> Option<LineChanges> {
        let options = &self.options;
        let in_front = options.add_dummy_prefix && !options.suffix && options.prefix_before_space;
        if !in_front || !options.escape_whitespaces || self.user_defined.is_some() {
            return None;
        }
        if self.is_plain() {
            return Some(LineChanges { places: None });
        }
        // (Newlines are between lines, so rules for them do not count.)
        let places = Places::new(self.charsmap.as_deref(), None, options.remove_extra_whitespaces);
        let mut pairs = boxed(0);
        for (pair, mark) in (0..=u16::MAX).zip(pairs.iter_mut()) {
            let [first, second] = pair.to_le_bytes();
            let removed = options.remove_extra_whitespaces && [[b'\n', b' '], [b' ', b'\n']].contains(&[first, second]);
            let changed = || places.pairs()[usize::from(pair)] != 0 || places.folded(first) != first;
            *mark = u8::from(removed || first != b'\n' && changed());
        }
        Some(LineChanges { places: Some((places, pairs)) })
    }
}

impl LineChanges {
    /// The beginning of the first line after the newline at `newline` that may be changed, or any place in it; `None`
    /// if there is none before the newline at `end`. The text must be UTF-8 and go on for more than a block after
    /// `end`.
    pub fn next(&self, text: &[u8], newline: usize, end: usize) -> Option<usize> {
        let (places, pairs) = self.places.as_ref()?;
        // Indented lines often come one after the other, and need no search.
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
