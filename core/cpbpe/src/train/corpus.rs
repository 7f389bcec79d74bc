//! Text -> words with counts: sentences are checked, normalized, cut where no piece can span the cut, and counted.
//!
//! `cpbpe/train_engine.py` says what the options mean. Threads have tables of their own, because nothing is shared
//! then; what two tables hold twice is added up when the words are drained.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use memchr::memmem;

use crate::text::compact::swap_spaces as expand;
use crate::text::finder::Keys;
use crate::text::normalize::{Normalizer, NormalizerOptions};
use crate::text::utf8;
use crate::train::columns::{joined, sorted, Columns};
use crate::train::count::{Table, SLACK};
use crate::train::part::Stopped;
use crate::train::piece::{Class, Classes, Rules, ALONE, BOUNDARY, CLASSES};
use crate::train::tallies::{Rule, Tallies};

/// U+2585: sentences that hold it are skipped.
const RESERVED: &[u8] = "\u{2585}".as_bytes();
/// Threads take so many bytes of a block at a time.
const PORTION: usize = 1 << 18;
/// A byte with which a symbol begins; the character has to be looked at again.
const MAYBE_SYMBOL: Class = CLASSES - 1;

/// All that decides which words a text is counted as; `CountSpec` in `cpbpe/train_engine.py`.
pub struct Spec {
    /// What a piece may hold.
    pub rules: Rules,
    /// How text is rewritten.
    pub normalizer: NormalizerOptions,
    /// What BOUNDARY takes the place of.
    pub symbols: Vec<Vec<u8>>,
    /// So does it of this, afterwards; empty for nothing.
    pub delimiter: Vec<u8>,
    /// Longer sentences are skipped; 0 for no limit.
    pub max_sentence_length: usize,
    /// Sentences of a block end behind runs of newlines.
    pub keep_newlines: bool,
    /// Skip sentences that hold U+2585.
    pub skip_reserved: bool,
}

/// What all threads read.
struct Cutter {
    spec: Spec,
    normalizer: Normalizer,
    /// Whether normalizing valid text only puts a space in front, if anything.
    plain: bool,
    classes: Classes,
    /// The class of each character of one byte; of no meaning for others.
    bytes: [Class; 256],
    /// The class of the letters A to Z and a to z, if all have the same, and no symbol begins with one.
    letters: Class,
    symbols: Keys,
    /// In compact text; `None` if there is none, or none that normalized text could hold.
    delimiter: Option<memmem::Finder<'static>>,
}

/// A long sentence is worked on in pieces of so many bytes before looking whether to stop.
const STRIDE: usize = 1 << 20;

/// What one thread writes.
#[derive(Default)]
struct Worker {
    table: Table,
    scratch: Scratch,
}

/// Buffers.
#[derive(Default)]
struct Scratch {
    normalized: Vec<u8>,
    compact: Vec<u8>,
    replaced: Vec<u8>,
}

impl Cutter {
    fn new(mut spec: Spec) -> Option<Cutter> {
        let normalizer = Normalizer::new(std::mem::take(&mut spec.normalizer)).ok()?;
        let classes = spec.rules.classes();
        // What holds a space is never found in normalized text, because that has none.
        let findable = |text: &[u8]| {
            let mut found = Vec::new();
            utf8::spaces_into(text, &mut found);
            (!text.is_empty() && !text.contains(&b' ')).then_some(found)
        };
        let symbols = Keys::new(spec.symbols.iter().filter_map(|symbol| findable(symbol)).collect());
        let delimiter = findable(&spec.delimiter).map(|found| memmem::Finder::new(&found).into_owned());
        let mut bytes = [ALONE; 256];
        for (byte, class) in (0u8..).zip(&mut bytes) {
            if byte < 0x80 {
                *class = if symbols.begins(byte) { MAYBE_SYMBOL } else { classes.of(char::from(byte)) };
            }
        }
        let plain = normalizer.is_plain();
        let mut alphabet = (b'A'..=b'Z').chain(b'a'..=b'z').map(|letter| bytes[usize::from(letter)]);
        let letters = bytes[usize::from(b'a')];
        let letters = if alphabet.all(|class| class == letters) { letters } else { ALONE };
        Some(Cutter { spec, normalizer, plain, classes, bytes, letters, symbols, delimiter })
    }

    /// Why a sentence is skipped, as far as can be told before it is normalized.
    #[inline]
    fn rule(&self, sentence: &[u8], may_be_reserved: bool) -> Option<Rule> {
        if sentence.is_empty() {
            Some(Rule::Empty)
        } else if self.spec.max_sentence_length > 0 && sentence.len() > self.spec.max_sentence_length {
            Some(Rule::TooLong)
        } else if may_be_reserved && self.spec.skip_reserved && memmem::find(sentence, RESERVED).is_some() {
            Some(Rule::Reserved)
        } else {
            None
        }
    }

    /// Replace symbols and the delimiter in compact text by BOUNDARY.
    fn replace(&self, text: &[u8], out: &mut Vec<u8>) {
        let mut at = 0;
        let mut begin = 0;
        let mut found = Vec::new();
        while at < text.len() {
            match self.symbols.longest(text, at) {
                0 => at += utf8::length_at(text, at),
                length => {
                    found.extend_from_slice(&text[begin..at]);
                    found.push(BOUNDARY as u8);
                    at += length;
                    begin = at;
                }
            }
        }
        found.extend_from_slice(&text[begin..]);
        let Some(delimiter) = &self.delimiter else {
            out.append(&mut found);
            return;
        };
        let mut rest = 0;
        for at in delimiter.find_iter(&found) {
            out.extend_from_slice(&found[rest..at]);
            out.push(BOUNDARY as u8);
            rest = at + delimiter.needle().len();
        }
        out.extend_from_slice(&found[rest..]);
    }

    /// Count one sentence. `clean` promises that it is UTF-8 and holds no U+2581.
    #[inline]
    fn sentence(&self, text: &[u8], count: u64, clean: bool, worker: &mut Worker, stop: &AtomicBool) -> bool {
        let Worker { table, scratch } = worker;
        scratch.compact.clear();
        if self.plain && clean {
            if self.normalizer.options.add_dummy_prefix {
                scratch.compact.push(b' ');
            }
            scratch.compact.extend_from_slice(text);
        } else {
            scratch.normalized.clear();
            self.normalizer.normalize(text, None, false, &mut scratch.normalized, &mut ());
            utf8::spaces_into(&scratch.normalized, &mut scratch.compact);
        }
        if scratch.compact.is_empty() {
            return false;
        }
        if self.delimiter.is_some() {
            scratch.replaced.clear();
            self.replace(&scratch.compact, &mut scratch.replaced);
            self.cut::<false>(&mut scratch.replaced, count, table, stop);
        } else {
            self.cut::<true>(&mut scratch.compact, count, table, stop);
        }
        true
    }

    /// Cut compact text into words. With `SYMBOLS`, symbols are looked for.
    fn cut<const SYMBOLS: bool>(&self, buffer: &mut Vec<u8>, count: u64, table: &mut Table, stop: &AtomicBool) {
        let end = buffer.len();
        buffer.extend_from_slice(&[0; SLACK]);
        let text = &buffer[..end];
        let mut begin = 0;
        let mut at = 0;
        let mut last = ALONE;
        let mut pause = 0;
        while let Some(&byte) = text.get(at) {
            if at >= pause {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                pause = at + STRIDE;
            }
            let mut class = self.bytes[usize::from(byte)];
            if class == last && class < MAYBE_SYMBOL {
                at += 1;
                if class == self.letters {
                    at += letters(buffer, at);
                }
                continue;
            }
            let mut length = 1;
            if class >= MAYBE_SYMBOL {
                // A byte of a longer character has the class ALONE.
                if SYMBOLS && self.symbols.begins(byte) {
                    let found = self.symbols.longest(text, at);
                    if found > 0 {
                        if begin < at {
                            table.add_at(buffer, begin, at, count);
                        }
                        table.add(&[BOUNDARY as u8], count);
                        at += found;
                        begin = at;
                        last = ALONE;
                        continue;
                    }
                }
                let c = decode(text, at);
                class = self.classes.of(c);
                length = c.len_utf8();
            }
            if begin < at && (class != last || class >= CLASSES) && self.rules().cuts(last, class) {
                table.add_at(buffer, begin, at, count);
                begin = at;
            }
            last = class;
            at += length;
        }
        if begin < text.len() {
            table.add_at(buffer, begin, end, count);
        }
    }

    #[inline]
    fn rules(&self) -> &Rules {
        &self.spec.rules
    }

    /// Count the sentences of whole lines.
    fn lines(&self, text: &[u8], worker: &mut Worker, stop: &AtomicBool) -> Tallies {
        let mut tallies = Tallies::default();
        let clean = std::str::from_utf8(text).is_ok() && memmem::find(text, utf8::SPACE).is_none();
        let may_be_reserved = memmem::find(text, RESERVED).is_some();
        let mut at = 0;
        while at < text.len() {
            let line = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |found| at + found);
            let (end, next) = if self.spec.keep_newlines {
                let run = text[line..].iter().take_while(|&&byte| byte == b'\n').count();
                (line + run, line + run)
            } else {
                (line, line + 1)
            };
            self.one(&text[at..end], 1, clean, may_be_reserved, worker, &mut tallies, stop);
            at = next;
        }
        tallies
    }

    #[allow(clippy::too_many_arguments)]
    #[inline]
    fn one(
        &self,
        sentence: &[u8],
        count: u64,
        clean: bool,
        may_be_reserved: bool,
        worker: &mut Worker,
        tallies: &mut Tallies,
        stop: &AtomicBool,
    ) {
        tallies.sentences += 1;
        tallies.bytes += sentence.len() as u64;
        if let Some(rule) = self.rule(sentence, may_be_reserved) {
            tallies.skip(rule, sentence);
        } else if !self.sentence(sentence, count, clean, worker, stop) {
            tallies.skip(Rule::Blank, sentence);
        }
    }
}

/// How many ASCII letters stand at `at`, counted eight at a time. SLACK bytes that are no letters must follow the text.
/// Most text is such letters; byte by byte, finding their end took a fifth of the time of counting.
#[inline]
fn letters(buffer: &[u8], at: usize) -> usize {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * EACH;
    let mut count = 0;
    while let Some(Ok(bytes)) = buffer.get(at + count..at + count + 8).map(<[u8; 8]>::try_from) {
        let bytes = u64::from_le_bytes(bytes);
        // Without their highest bits, and in lower case, no byte of a sum carries into the next.
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

/// The character at `at` of what is known to be UTF-8. (If it were not, U+FFFD, which is as long as it says.)
#[inline]
fn decode(text: &[u8], at: usize) -> char {
    let tail = |n: usize| text.get(at + n).map_or(0, |byte| u32::from(byte & 0x3F));
    let first = u32::from(text[at]);
    let code = match first {
        0..0x80 => first,
        0x80..0xE0 => (first & 0x1F) << 6 | tail(1),
        0xE0..0xF0 => (first & 0x0F) << 12 | tail(1) << 6 | tail(2),
        _ => (first & 0x07) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3),
    };
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Counts words; `Counter` in `cpbpe/train_engine.py`.
pub struct Counter {
    cutter: Cutter,
    /// One for each thread that ever took part.
    workers: Vec<Worker>,
    tallies: Tallies,
}

impl Counter {
    /// `None` if the normalization rules are malformed.
    pub fn new(spec: Spec) -> Option<Counter> {
        Some(Counter { cutter: Cutter::new(spec)?, workers: vec![Worker::default()], tallies: Tallies::default() })
    }

    /// Count one sentence `count` times.
    pub fn add(&mut self, sentence: &[u8], count: u64, stop: &AtomicBool) {
        let clean = std::str::from_utf8(sentence).is_ok() && memmem::find(sentence, utf8::SPACE).is_none();
        self.cutter.one(sentence, count, clean, true, &mut self.workers[0], &mut self.tallies, stop);
    }

    /// Count whole lines. If it is stopped, only some of them are counted.
    pub fn add_block(&mut self, text: &[u8], threads: usize, stop: &AtomicBool) {
        let mut portions = Vec::new();
        let mut begin = 0;
        while begin < text.len() {
            let mut end = text.len().min(begin + PORTION);
            // On to where a sentence ends: behind a newline, or a run of them.
            end = memchr::memchr(b'\n', &text[end - 1..]).map_or(text.len(), |found| end + found);
            while self.cutter.spec.keep_newlines && text.get(end) == Some(&b'\n') {
                end += 1;
            }
            portions.push(&text[begin..end]);
            begin = end;
        }
        let threads = threads.clamp(1, portions.len().max(1));
        while self.workers.len() < threads {
            self.workers.push(Default::default());
        }
        let cutter = &self.cutter;
        let next = AtomicUsize::new(0);
        let work = |worker: &mut Worker| {
            let mut done = Vec::new();
            while let Some((number, portion)) = {
                let number = next.fetch_add(1, Ordering::Relaxed);
                portions.get(number).filter(|_| !stop.load(Ordering::Relaxed)).map(|portion| (number, portion))
            } {
                done.push((number, cutter.lines(portion, worker, stop)));
            }
            done
        };
        let mut found = std::thread::scope(|scope| {
            let (own, others) = self.workers[..threads].split_at_mut(1);
            let others: Vec<_> = others.iter_mut().map(|worker| scope.spawn(|| work(worker))).collect();
            let mut found = work(&mut own[0]);
            found.extend(others.into_iter().flat_map(joined));
            found
        });
        found.sort_unstable_by_key(|(number, _)| *number);
        for (_, tallies) in found {
            self.tallies.append(tallies);
        }
    }

    /// A sentence normalized, with BOUNDARY for each symbol; `None` if it is skipped.
    pub fn prepare(&mut self, sentence: &[u8]) -> Option<Vec<u8>> {
        self.tallies.sentences += 1;
        self.tallies.bytes += sentence.len() as u64;
        if let Some(rule) = self.cutter.rule(sentence, true) {
            self.tallies.skip(rule, sentence);
            return None;
        }
        let (mut normalized, mut short, mut replaced, mut found) = Default::default();
        self.cutter.normalizer.normalize(sentence, None, false, &mut normalized, &mut ());
        utf8::spaces_into(&normalized, &mut short);
        self.cutter.replace(&short, &mut replaced);
        expand(&replaced, &mut found);
        if found.is_empty() {
            self.tallies.skip(Rule::Blank, sentence);
            return None;
        }
        Some(found)
    }

    /// Count a sentence that needs only to be cut.
    pub fn add_prepared(&mut self, sentence: &[u8], count: u64, stop: &AtomicBool) {
        let (mut valid, mut short) = (Vec::new(), Vec::new());
        utf8::repair_into(sentence, &mut valid);
        swapped(&valid, &mut short);
        self.cutter.cut::<false>(&mut short, count, &mut self.workers[0].table, stop);
    }

    /// Count a word that was cut before.
    pub fn add_word(&mut self, word: &[u8], count: u64) {
        let mut short = Vec::new();
        swapped(word, &mut short);
        self.workers[0].table.add(&short, count);
    }

    /// What was seen.
    pub fn tallies(&self) -> &Tallies {
        &self.tallies
    }

    /// How many different words there are.
    pub fn distinct(&mut self) -> usize {
        let (own, others) = self.workers.split_at_mut(1);
        for worker in others {
            own[0].table.absorb(std::mem::take(&mut worker.table));
        }
        own[0].table.distinct()
    }

    /// About how many bytes the words take.
    pub fn memory(&self) -> usize {
        self.workers.iter().map(|worker| worker.table.memory()).sum()
    }

    /// Give out all words and forget them.
    pub fn drain(&mut self, stop: &AtomicBool) -> Result<Columns, Stopped> {
        let tables: Vec<Table> = self.workers.iter_mut().map(|worker| std::mem::take(&mut worker.table)).collect();
        let threads = tables.len();
        sorted(tables, threads, stop)
    }
}

/// Text with U+2581 and space swapped.
fn swapped(text: &[u8], out: &mut Vec<u8>) {
    expand(text, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_end_where_they_end() {
        for end in 0..=255u8 {
            for length in 0..20 {
                let mut text: Vec<u8> = b"aZmAzbYqQx".iter().copied().cycle().take(length).collect();
                text.push(end);
                text.extend_from_slice(b"abc");
                text.extend_from_slice(&[0; SLACK]);
                let expected = if end.is_ascii_alphabetic() { length + 4 } else { length };
                assert_eq!(letters(&text, 0), expected, "{end} {length}");
            }
        }
    }
}
