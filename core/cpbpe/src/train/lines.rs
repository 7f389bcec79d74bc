//! Lines -> groups. Most lines are counted in place: if all that normalizing does to a line is put a space in front,
//! the newline before the line is taken for that space. So nothing has to be copied, and there is no separate step for
//! each line; the beginnings of groups are found for 64 bytes together.

use memchr::{memchr, memrchr};

use crate::error::Halt;
use crate::memory::Grow;
use crate::text::normalize::LineChanges;
use crate::train::cutter::{pad, Cutter, TextFacts, Worker, CHECK_BYTES};
use crate::train::groups::{equal_bytes, Groups};
use crate::train::recent::SHORT;
use crate::train::tallies::{SkipReason, Tallies};
use crate::train::word_table::PADDING;
use crate::watch::Monitor;

/// How many bytes are looked at together.
const BLOCK: usize = 64;

impl Cutter {
    /// Count all sentences of whole lines. When it is stopped, only some of them have been counted.
    pub fn count_lines(&self, text: &[u8], worker: &mut Worker, monitor: &Monitor) -> Result<Tallies, Halt> {
        let mut tallies = Tallies::default();
        let facts = TextFacts::of(text);
        let mut at = 0;
        // 1. Nearly all lines, if they can be counted in place.
        if let Some((changes, first, last)) = self.lines_in_place(text, facts) {
            self.count_sentence(&text[..first], 1, facts, worker, &mut tallies, monitor)?;
            at = first + 1;
            while at <= last {
                // Lines that stay as they are, followed by one that may change.
                let changed = changes.next(text, at - 1, last);
                let begin =
                    changed.map_or(last + 1, |place| memrchr(b'\n', &text[at..place]).map_or(at, |n| at + n + 1));
                if begin > at {
                    self.count_in_place(text, at - 1, begin - 1, worker, &mut tallies, monitor)?;
                }
                at = begin;
                if changed.is_some() {
                    let end = memchr(b'\n', &text[at..]).map_or(last, |length| at + length);
                    self.count_sentence(&text[at..end], 1, facts, worker, &mut tallies, monitor)?;
                    at = end + 1;
                }
            }
        }
        // 2. The others.
        while at < text.len() {
            let line_end = memchr(b'\n', &text[at..]).map_or(text.len(), |length| at + length);
            let (end, next) = if self.spec.keep_newlines {
                let newlines = text[line_end..].iter().take_while(|&&byte| byte == b'\n').count();
                (line_end + newlines, line_end + newlines)
            } else {
                (line_end, line_end + 1)
            };
            self.count_sentence(&text[at..end], 1, facts, worker, &mut tallies, monitor)?;
            at = next;
        }
        Ok(tallies)
    }

    /// Where the last sentence ends that begins before `end`, which is not 0.
    pub fn sentence_end(&self, text: &[u8], end: usize) -> usize {
        let mut end = memchr(b'\n', &text[end - 1..]).map_or(text.len(), |length| end + length);
        while self.spec.keep_newlines && text.get(end) == Some(&b'\n') {
            end += 1;
        }
        end
    }

    /// The first and the last newline between which lines can be counted in place, if there are any, and which of these
    /// lines normalizing changes.
    fn lines_in_place(&self, text: &[u8], facts: TextFacts) -> Option<(&LineChanges, usize, usize)> {
        let changes = self.changes.as_ref()?;
        if !facts.clean || facts.may_be_reserved && self.spec.skip_reserved {
            return None;
        }
        // (A block may be read at any place before the last newline, and so may the PADDING bytes after a word.)
        let end = text.len().checked_sub(BLOCK + PADDING)?;
        let (first, last) = (memchr(b'\n', text)?, memrchr(b'\n', &text[..end])?);
        (first < last && !self.has_long_line(&text[..last])).then_some((changes, first, last))
    }

    /// Whether a line is longer than sentences may be.
    fn has_long_line(&self, mut text: &[u8]) -> bool {
        let longest = self.spec.max_sentence_length;
        // A line may have `longest` bytes. The last newline in one more byte than that ends all lines that begin before
        // it.
        while longest > 0 && text.len() > longest {
            match memrchr(b'\n', &text[..=longest]) {
                Some(newline) => text = &text[newline + 1..],
                None => return true,
            }
        }
        false
    }

    /// Count the lines between two newlines.
    fn count_in_place(
        &self,
        text: &[u8],
        first: usize,
        last: usize,
        worker: &mut Worker,
        tallies: &mut Tallies,
        monitor: &Monitor,
    ) -> Result<(), Halt> {
        let (mut begin, mut in_blank) = (first, 0);
        let mut next_check = first + CHECK_BYTES;
        let sentences = tallies.sentences;
        for base in (first..last).step_by(BLOCK) {
            if base >= next_check {
                monitor.check()?;
                next_check = base + CHECK_BYTES;
            }
            // 1. A group begins with a newline, or with a space after something else.
            let Some(block) = text[base..].first_chunk::<BLOCK>() else { break };
            let [spaces, newlines] = spaces_and_newlines(block);
            let blank = spaces | newlines;
            let mut begins = newlines | spaces & !(blank << 1 | in_blank);
            in_blank = blank >> (BLOCK - 1);
            if last - base < BLOCK {
                begins &= (1 << (last - base)) - 1;
            }
            if base == first {
                begins &= !1; // `begin` is known already
            }
            // 2. It ends where the next one begins.
            while begins != 0 {
                let end = base + begins.trailing_zeros() as usize;
                begins &= begins - 1;
                self.count_group(text, begin, end, worker, tallies, monitor)?;
                begin = end;
            }
        }
        self.count_group(text, begin, last, worker, tallies, monitor)?;
        tallies.bytes += (last - first) as u64 - (tallies.sentences - sentences);
        Ok(())
    }

    /// Count a group that begins with a space, or with the newline that stands for one.
    #[inline(always)]
    fn count_group(
        &self,
        text: &[u8],
        begin: usize,
        end: usize,
        worker: &mut Worker,
        tallies: &mut Tallies,
        monitor: &Monitor,
    ) -> Result<(), Halt> {
        let Worker { table, groups, compact, .. } = worker;
        let length = end - begin;
        let is_line = text[begin] == b'\n';
        tallies.sentences += u64::from(is_line);
        if length > SHORT {
            if !is_line {
                // (No letter follows it.)
                return self.cut::<true>(&text[begin..], length, 1, table, monitor);
            }
            compact.clear();
            compact.grow(length + PADDING)?;
            compact.push(b' ');
            compact.extend_from_slice(&text[begin + 1..end]);
            let end = pad(compact);
            return self.cut::<true>(compact, end, 1, table, monitor);
        }
        if is_line && length == 1 {
            tallies.skip(SkipReason::Empty, b"");
            return Ok(());
        }
        let newline = u64::from(is_line) * u64::from(b'\n' ^ b' ');
        if groups.add(Groups::bytes_at(text, begin, length, newline), length, 1) {
            self.cut_groups(groups, table, monitor)?;
        }
        Ok(())
    }
}

/// Which bytes of a block are spaces, and which are newlines, as bits.
#[inline(always)]
fn spaces_and_newlines(block: &[u8; BLOCK]) -> [u64; 2] {
    let mut bits = [0; 2];
    for (at, part) in block.chunks_exact(8).enumerate() {
        let part = u64::from_le_bytes(part.try_into().unwrap_or_default());
        for (bits, byte) in bits.iter_mut().zip([b' ', b'\n']) {
            *bits |= u64::from(equal_bytes(part, byte)) << (8 * at);
        }
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::normalize::NormalizerOptions;
    use crate::train::limits::PieceLimits;
    use crate::train::values::CountSpec;
    use std::collections::BTreeMap;

    fn cutter(max_sentence_length: usize) -> Cutter {
        let limits = PieceLimits {
            max_sentencepiece_length: 16,
            split_by_unicode_script: true,
            split_by_number: true,
            split_digits: true,
            split_by_whitespace: true,
            treat_whitespace_as_suffix: false,
            allow_whitespace_only_pieces: true,
        };
        let normalizer = NormalizerOptions { remove_extra_whitespaces: false, ..NormalizerOptions::default() };
        Cutter::new(CountSpec {
            limits,
            normalizer,
            symbols: vec![b"<s>".to_vec()],
            delimiter: Vec::new(),
            max_sentence_length,
            keep_newlines: false,
            skip_reserved: true,
        })
        .unwrap()
    }

    /// The words with their counts.
    fn words(cutter: &Cutter, mut worker: Worker) -> BTreeMap<Vec<u8>, u64> {
        cutter.finish(&mut worker, &Monitor::default()).unwrap();
        worker.table.close();
        worker.table.records().map(|(_, word, count)| (word.to_vec(), count)).collect()
    }

    #[test]
    fn lines_in_place_count_like_sentences() {
        let monitor = Monitor::default();
        let mut state = 1u64;
        let mut chance = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let parts =
            ["\n", "\n\n", " ", "  ", "a", "word", "é", "<s>", "12", "a long word, of more than 16 bytes", "\r\n"];
        let parts = parts.into_iter().chain(["averyveryverylongword", "\0", "漢字", "\u{2585}", "\u{2581}"]);
        let parts: Vec<&str> = parts.collect();
        let mut in_place = 0;
        let cutters = [0, 0, 30, 200].map(cutter);
        for round in 0..400 {
            let cutter = &cutters[round % 4];
            let kinds = if round % 3 == 0 { parts.len() } else { parts.len() - 2 };
            let text: String = (0..chance(200)).map(|_| parts[chance(kinds)]).collect();
            let text = text.as_bytes();
            in_place += usize::from(cutter.lines_in_place(text, TextFacts::of(text)).is_some());
            // 1. As lines.
            let mut worker = Worker::default();
            let tallies = cutter.count_lines(text, &mut worker, &monitor).unwrap();
            // 2. One by one.
            let (mut other, mut expected) = (Worker::default(), Tallies::default());
            let whole = text.strip_suffix(b"\n").unwrap_or(text);
            for line in whole.split(|&byte| byte == b'\n').filter(|_| !text.is_empty()) {
                let facts = TextFacts::of(line);
                cutter.count_sentence(line, 1, facts, &mut other, &mut expected, &monitor).unwrap();
            }
            assert_eq!(format!("{tallies:?}"), format!("{expected:?}"), "{round}");
            assert_eq!(words(cutter, worker), words(cutter, other), "{round}");
        }
        assert!(in_place > 100, "{in_place}");
    }

    #[test]
    fn a_line_of_the_longest_length_is_not_too_long() {
        let cutter = cutter(10);
        for (text, expected) in [
            ("0123456789\n0123456789\n0123456789", false),
            ("0123456789\n01234567890\n0123456789", true),
            ("01234567890\n", true),
            ("a\nb\n\n\n0123456789\n", false),
            ("a\nb\n\n\n0123456789x", true),
        ] {
            assert_eq!(cutter.has_long_line(text.as_bytes()), expected, "{text}");
        }
    }
}
