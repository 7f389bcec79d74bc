//! One sentence -> words with counts: the sentence is checked, normalized and cut where no piece can cross, and its
//! words are counted in a table. `counter.rs` does this with many sentences. A symbol is here a text of
//! `CountSpec::symbols`, such as `<s>` or that of a user-defined piece.

use memchr::memmem;

use crate::error::{Error, Halt};
use crate::memory::{with_room, Grow};
use crate::text::keys::Keys as Finder;
use crate::text::normalize::LineChanges;
use crate::text::normalize::{Normalizer, Source, Spaces};
use crate::text::utf8;
use crate::text::utf8::swap_spaces;
use crate::train::ascii::AsciiCuts;
use crate::train::groups::{are_cut_apart, Group, Groups};
use crate::train::limits::{CharClass, CharClasses, ALWAYS_ALONE, BOUNDARY, SCRIPTS_END};
use crate::train::recent::{RecentWord, SHORT};
use crate::train::tallies::{SkipReason, Tallies};
use crate::train::values::CountSpec;
use crate::train::word_table::{WordTable, PADDING};
use crate::watch::{Monitor, NO_CHECK};

/// U+2585: sentences that contain it are skipped.
const RESERVED: &[u8] = "\u{2585}".as_bytes();
/// The class of a byte that may begin a symbol, so that the character has to be looked at more closely. (No script has
/// so high a number.)
const MAYBE_SYMBOL: CharClass = SCRIPTS_END - 1;
/// The class of a byte that is part of a longer character.
const LONGER: CharClass = SCRIPTS_END - 2;
/// What is put after a text: at least as many bytes as may be read there.
const PADDED: [u8; PADDING] = [b' '; PADDING];
/// In a long sentence, the monitor is asked whether to go on once in this many bytes.
pub(super) const CHECK_BYTES: usize = 1 << 20;

/// The data that all threads read.
pub struct Cutter {
    /// The options. Those of the normalizer have been moved into it.
    pub(super) spec: CountSpec,
    /// Normalizes sentences.
    normalizer: Normalizer,
    /// Whether all that normalizing does to valid text is, at most, to put a space in front.
    plain: bool,
    /// Which lines normalizing changes; `None` if no line can be counted in place.
    pub(super) changes: Option<LineChanges>,
    /// Whether groups (see `groups.rs`) can be counted before they are cut.
    grouped: bool,
    /// The class of every character.
    classes: CharClasses,
    /// The class of each character of one byte; LONGER or MAYBE_SYMBOL for other bytes.
    byte_classes: [CharClass; 256],
    /// The class of the letters A to Z and a to z if all of them have the same one, and no symbol begins with one of
    /// them; otherwise ALWAYS_ALONE.
    letter_class: CharClass,
    /// Whether spaces are never cut apart, and no symbol begins with one.
    joins_spaces: bool,
    /// Cuts short texts of ASCII characters.
    ascii: AsciiCuts,
    /// Finds the symbols, in compact text.
    symbols: Finder,
    /// Finds the delimiter, in compact text; `None` if there is none, or if normalized text cannot contain it.
    delimiter: Option<memmem::Finder<'static>>,
}

/// The data that one thread writes.
#[derive(Default)]
pub struct Worker {
    /// The words that the thread has counted, except those in `groups`.
    pub table: WordTable,
    /// Groups that have been counted but not cut into words yet.
    pub(super) groups: Groups,
    /// The current sentence, normalized and compact,
    pub(super) compact: Vec<u8>,
    /// and the same with BOUNDARY in place of symbols and delimiters.
    replaced: Vec<u8>,
}

/// What is known about all sentences of a text together.
#[derive(Clone, Copy)]
pub struct TextFacts {
    /// They are UTF-8.
    pub(super) valid: bool,
    /// They are UTF-8 and contain no U+2581.
    pub(super) clean: bool,
    /// One of them may contain U+2585.
    pub(super) may_be_reserved: bool,
}

impl TextFacts {
    /// Examine a text.
    pub fn of(text: &[u8]) -> TextFacts {
        let valid = std::str::from_utf8(text).is_ok();
        TextFacts {
            valid,
            clean: valid && memmem::find(text, utf8::SPACE).is_none(),
            may_be_reserved: memmem::find(text, RESERVED).is_some(),
        }
    }
}

impl Cutter {
    /// Fails if the normalization rules are malformed.
    pub fn new(mut spec: CountSpec) -> Result<Cutter, Error> {
        let normalizer = Normalizer::new(std::mem::take(&mut spec.normalizer)).map_err(|_| Error::InvalidCharsmap)?;
        let plain = normalizer.is_plain();
        let classes = spec.limits.char_classes()?;
        // Normalized text contains no space, so a key with a space is never found in it.
        let compact_key = |key: &[u8]| {
            let mut compact = Vec::new();
            utf8::spaces_into(key, &mut compact);
            (!key.is_empty() && !key.contains(&b' ')).then_some(compact)
        };
        let symbols: Vec<_> = spec.symbols.iter().filter_map(|symbol| compact_key(symbol)).collect();
        let grouped = are_cut_apart(&spec.limits, symbols.iter().map(Vec::as_slice));
        let symbols = Finder::new(&symbols)?;
        let changes = normalizer.line_changes().filter(|_| grouped && spec.delimiter.is_empty() && !spec.keep_newlines);
        let delimiter = compact_key(&spec.delimiter).map(|key| memmem::Finder::new(&key).into_owned());
        let byte_classes = std::array::from_fn(|byte| match byte as u8 {
            byte if symbols.begins(byte) => MAYBE_SYMBOL,
            byte if byte.is_ascii() => classes.of(char::from(byte)),
            _ => LONGER,
        });
        let spaces = [' '; 2].map(|space| classes.of(space));
        let joins_spaces = !symbols.begins(b' ') && !spec.limits.cuts(spaces[0], spaces[1]);
        let mut alphabet = (b'A'..=b'Z').chain(b'a'..=b'z').map(|letter| byte_classes[usize::from(letter)]);
        let class_of_a = byte_classes[usize::from(b'a')];
        let letter_class = if alphabet.all(|class| class == class_of_a) { class_of_a } else { ALWAYS_ALONE };
        let is_known = |byte: u8| byte.is_ascii() && byte_classes[usize::from(byte)] != MAYBE_SYMBOL;
        let ascii = AsciiCuts::new(&spec.limits, &classes, is_known);
        Ok(Cutter {
            spec,
            normalizer,
            plain,
            changes,
            grouped,
            classes,
            byte_classes,
            letter_class,
            joins_spaces,
            ascii,
            symbols,
            delimiter,
        })
    }

    /// Count a sentence `count` times, or record why it is skipped.
    #[inline]
    pub fn count_sentence(
        &self,
        sentence: &[u8],
        count: u64,
        facts: TextFacts,
        worker: &mut Worker,
        tallies: &mut Tallies,
        monitor: &Monitor,
    ) -> Result<(), Halt> {
        // 1. Find out whether it is skipped before normalization.
        tallies.see(sentence);
        if let Some(reason) = self.skip_reason(sentence, facts.may_be_reserved) {
            tallies.skip(reason, sentence);
            return Ok(());
        }
        if !facts.valid && std::str::from_utf8(sentence).is_err() {
            tallies.broken += 1;
        }
        // 2. Normalize it, to compact text.
        let Worker { table, groups, compact, replaced } = worker;
        compact.clear();
        if self.plain && facts.clean {
            compact.grow(sentence.len() + 1 + PADDING)?;
            if self.normalizer.prefixes(sentence) {
                compact.push(b' ');
            }
            compact.extend_from_slice(sentence);
        } else {
            let source = Source { text: sentence, valid: facts.valid, keep_invalid: false };
            self.normalizer.normalize(source, Spaces::Compact, &|| monitor.check(), compact, &mut ())?;
            compact.grow(PADDING)?;
        }
        if compact.is_empty() {
            tallies.skip(SkipReason::Blank, sentence);
            return Ok(());
        }
        // 3. Cut it. Symbols are found on the way, unless there is a delimiter, which has to be searched for after
        //    them.
        if self.delimiter.is_some() {
            replaced.clear();
            self.replace_keys(compact, replaced)?;
            let end = pad(replaced);
            self.cut::<false>(replaced, end, count, table, monitor)
        } else if self.grouped {
            let end = pad(compact);
            self.count_groups(compact, end, count, groups, table, monitor)
        } else {
            let end = pad(compact);
            self.cut::<true>(compact, end, count, table, monitor)
        }
    }

    /// Complete the table of a worker.
    pub fn finish(&self, worker: &mut Worker, monitor: &Monitor) -> Result<(), Halt> {
        worker.groups.close();
        self.cut_groups(&mut worker.groups, &mut worker.table, monitor)?;
        worker.groups = Groups::default();
        Ok(())
    }

    /// See `Counter::prepare`.
    pub fn prepare(&self, sentence: &[u8], tallies: &mut Tallies) -> Result<Option<Vec<u8>>, Halt> {
        tallies.see(sentence);
        if let Some(reason) = self.skip_reason(sentence, true) {
            tallies.skip(reason, sentence);
            return Ok(None);
        }
        tallies.broken += u64::from(std::str::from_utf8(sentence).is_err());
        let (mut compact, mut replaced, mut prepared) = Default::default();
        let source = Source { text: sentence, valid: false, keep_invalid: false };
        self.normalizer.normalize(source, Spaces::Compact, NO_CHECK, &mut compact, &mut ())?;
        self.replace_keys(&compact, &mut replaced)?;
        Grow::grow(&mut prepared, replaced.len() * utf8::SPACE.len())?;
        swap_spaces(&replaced, &mut prepared);
        if prepared.is_empty() {
            tallies.skip(SkipReason::Blank, sentence);
            return Ok(None);
        }
        Ok(Some(prepared))
    }

    /// Count a sentence that has been prepared and only needs to be cut.
    pub fn count_prepared(
        &self,
        sentence: &[u8],
        count: u64,
        worker: &mut Worker,
        monitor: &Monitor,
    ) -> Result<(), Halt> {
        let (mut valid, mut compact) = (Vec::new(), Vec::new());
        utf8::repair_into(sentence, &mut valid)?;
        compact.grow(valid.len() * utf8::SPACE.len() + PADDING)?;
        swap_spaces(&valid, &mut compact);
        let end = pad(&mut compact);
        self.cut::<false>(&compact, end, count, &mut worker.table, monitor)
    }

    /// Why a sentence is skipped, if that is known before it is normalized.
    #[inline]
    fn skip_reason(&self, sentence: &[u8], may_be_reserved: bool) -> Option<SkipReason> {
        if sentence.is_empty() {
            Some(SkipReason::Empty)
        } else if self.spec.max_sentence_length > 0 && sentence.len() > self.spec.max_sentence_length {
            Some(SkipReason::TooLong)
        } else if may_be_reserved && self.spec.skip_reserved && memmem::find(sentence, RESERVED).is_some() {
            Some(SkipReason::Reserved)
        } else {
            None
        }
    }

    /// Append compact text to `out`, with BOUNDARY in place of each symbol, and then of each delimiter.
    fn replace_keys(&self, text: &[u8], out: &mut Vec<u8>) -> Result<(), Halt> {
        // (No key is empty, so neither text becomes longer than the original.)
        let mut without_symbols = with_room(text.len())?;
        out.grow(text.len() + PADDING)?;
        let mut symbols = self.symbols.walk(text);
        let mut rest = 0;
        let mut at = 0;
        while at < text.len() {
            match symbols.longest(at) {
                0 => at += utf8::length_at(text, at),
                length => {
                    without_symbols.extend_from_slice(&text[rest..at]);
                    without_symbols.push(BOUNDARY as u8);
                    at += length;
                    rest = at;
                }
            }
        }
        without_symbols.extend_from_slice(&text[rest..]);
        let Some(delimiter) = &self.delimiter else {
            out.append(&mut without_symbols);
            return Ok(());
        };
        let mut rest = 0;
        for at in delimiter.find_iter(&without_symbols) {
            out.extend_from_slice(&without_symbols[rest..at]);
            out.push(BOUNDARY as u8);
            rest = at + delimiter.needle().len();
        }
        out.extend_from_slice(&without_symbols[rest..]);
        Ok(())
    }

    /// Count compact text group by group.
    fn count_groups(
        &self,
        text: &[u8],
        end: usize,
        count: u64,
        groups: &mut Groups,
        table: &mut WordTable,
        monitor: &Monitor,
    ) -> Result<(), Halt> {
        let mut at = 0;
        let mut next_check = CHECK_BYTES;
        while at < end {
            if at >= next_check {
                monitor.check()?;
                next_check = at + CHECK_BYTES;
            }
            at = match groups.add_at(text, at, end, count) {
                Group::Counted(next) => next,
                Group::PushedOut(next) => {
                    self.cut_groups(groups, table, monitor)?;
                    next
                }
                Group::Long(next) => {
                    self.cut::<true>(&text[at..], next - at, count, table, monitor)?;
                    next
                }
            };
        }
        Ok(())
    }

    /// Cut the groups that were pushed out into words and count them.
    pub(super) fn cut_groups(&self, groups: &mut Groups, table: &mut WordTable, monitor: &Monitor) -> Result<(), Halt> {
        for group in groups.pushed_out.drain(..) {
            let mut text = [0; SHORT + PADDING];
            text[..SHORT].copy_from_slice(&group.padded());
            if self.cut_ascii(&text, &group, table) {
                continue;
            }
            self.cut::<true>(&text, group.length as usize, group.count, table, monitor)?;
        }
        Ok(())
    }

    /// Cut a group of ASCII characters into words and count them. Returns false if it has other characters, or may
    /// contain a symbol.
    #[inline]
    fn cut_ascii(&self, text: &[u8; SHORT + PADDING], group: &RecentWord, table: &mut WordTable) -> bool {
        let Some(mut ends) = self.ascii.ends(text, group.length as usize) else { return false };
        let mut begin = 0;
        while ends != 0 {
            let end = ends.trailing_zeros() as usize;
            table.add_at(text, begin, end, group.count);
            begin = end;
            ends &= ends - 1;
        }
        true
    }

    /// Cut compact text into words and count them. With `SYMBOLS`, BOUNDARY is counted as a word for each symbol,
    /// because `accept_characters` takes it for text. The text must be followed by PADDING bytes that are not letters.
    pub(super) fn cut<const SYMBOLS: bool>(
        &self,
        buffer: &[u8],
        end: usize,
        count: u64,
        table: &mut WordTable,
        monitor: &Monitor,
    ) -> Result<(), Halt> {
        let text = &buffer[..end];
        let mut symbols = self.symbols.walk(text);
        let mut begin = 0; // where the word at `at` begins
        let mut at = 0;
        let mut last = ALWAYS_ALONE; // the class of the character before `at`
        let mut next_check = CHECK_BYTES;
        while let Some(&byte) = text.get(at) {
            if at >= next_check {
                monitor.check()?;
                next_check = at + CHECK_BYTES;
            }
            // 1. In most cases, the next character has one byte and the same script.
            let mut class = self.byte_classes[usize::from(byte)];
            if class == last && class < LONGER {
                at += 1;
                if class == self.letter_class {
                    at += count_letters(buffer, at);
                }
                continue;
            }
            // 2. A symbol is a word of its own.
            let mut length = 1;
            if class == MAYBE_SYMBOL || class == LONGER {
                if SYMBOLS && class == MAYBE_SYMBOL {
                    let symbol = symbols.longest(at);
                    if symbol > 0 {
                        if begin < at {
                            table.add_at(buffer, begin, at, count);
                        }
                        table.add(&[BOUNDARY as u8], count);
                        at += symbol;
                        begin = at;
                        last = ALWAYS_ALONE;
                        continue;
                    }
                }
                let code;
                (code, length) = utf8::decode(text, at);
                class = self.classes.of(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            // 3. Cut before this character if no piece contains it directly after the character before it.
            if begin < at && (class != last || class >= SCRIPTS_END) && self.spec.limits.cuts(last, class) {
                table.add_at(buffer, begin, at, count);
                begin = at;
            }
            last = class;
            at += length;
            if byte == b' ' && self.joins_spaces {
                at += text[at..].iter().take_while(|&&byte| byte == b' ').count();
            }
        }
        // 4. The rest is the last word.
        if begin < end {
            table.add_at(buffer, begin, end, count);
        }
        table.check()
    }
}

/// Put PADDING after a text, beginning with a space. Returns where the text ends.
pub(super) fn pad(text: &mut Vec<u8>) -> usize {
    let end = text.len();
    text.extend_from_slice(&PADDED);
    end
}

/// How many ASCII letters follow one another at `at`, counted eight at a time. The text must be followed by PADDING
/// bytes that are not letters. Most text consists of ASCII letters; searching for the end of a run byte by byte took a
/// fifth of the time of counting.
#[inline]
fn count_letters(buffer: &[u8], at: usize) -> usize {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * EACH;
    let mut count = 0;
    while let Some(Ok(bytes)) = buffer.get(at + count..at + count + 8).map(<[u8; 8]>::try_from) {
        let bytes = u64::from_le_bytes(bytes);
        // Without its highest bit and in lower case, no byte of the sum carries into the next one.
        let lower = (bytes & !HIGH) | (0x20 * EACH);
        let from_a = lower + (0x80 - b'a' as u64) * EACH;
        let beyond_z = lower + (0x7F - b'z' as u64) * EACH;
        let others = !(from_a & !beyond_z & !bytes) & HIGH;
        if others != 0 {
            return count + others.trailing_zeros() as usize / 8;
        }
        count += 8;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_counted_to_their_end() {
        for end in 0..=255u8 {
            for length in 0..20 {
                let mut text: Vec<u8> = b"aZmAzbYqQx".iter().copied().cycle().take(length).collect();
                text.push(end);
                text.extend_from_slice(b"abc");
                text.extend_from_slice(&[0; PADDING]);
                let expected = if end.is_ascii_alphabetic() { length + 4 } else { length };
                assert_eq!(count_letters(&text, 0), expected, "{end} {length}");
            }
        }
    }
}
