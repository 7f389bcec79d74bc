//! Tables of words -> one sorted list of words. The words in a table are compact, but they are sorted by the bytes of
//! their real text, in which U+2581 takes the place of spaces.

use std::cmp::Ordering;
use std::ops::Range;

use crate::error::Error;
use crate::memory::{probe, Grow};
use crate::text::keys::common_length;
use crate::text::utf8::swap_spaces;
use crate::text::utf8::SPACE;
use crate::train::threads::{in_threads, CHECK_INTERVAL};
use crate::train::word_table::WordTable;
use crate::train::words::Words;
use crate::watch::Monitor;

/// Fewer words than this are not worth a thread.
const PARALLEL: usize = 1 << 15;
/// While words are written, the record of the word this many words ahead is prefetched.
const AHEAD: usize = 16;

/// A word of a table that is being sorted: the beginning of its text, and its place.
#[derive(Clone, Copy)]
struct WordPrefix {
    /// The first 16 bytes of its real text, which decide nearly all comparisons.
    prefix: u128,
    /// The place of its record in the table.
    place: usize,
}

/// The sorted words of a table. Most words begin with a space. These have a list of their own, in which they are sorted
/// by the text after the space, so that the prefix covers more of it.
struct SortedTable {
    table: WordTable,
    /// Words that do not begin with a space.
    unspaced: Vec<WordPrefix>,
    /// Words that begin with a space.
    spaced: Vec<WordPrefix>,
}

/// A part of the sorted words of each table.
type Slices<'a> = Vec<(&'a WordTable, &'a [WordPrefix])>;

/// All words of several tables, sorted, with their counts added up. With `COMPACT` the words are compact; otherwise
/// they can be any bytes.
///
/// Each thread sorts a table. Then the tables are merged: each thread merges a range of the words. (With one list of
/// all tables, of which only the sorting was divided among threads, two threads took 1.7 times as long for 20 MB of
/// text, and 2.3 times for 250 MB.)
pub fn sorted<const COMPACT: bool>(mut tables: Vec<WordTable>, monitor: &Monitor) -> Result<Words, Error> {
    // 1. Check that there is memory. A sorted list takes 24 bytes for each word while it is sorted. Then it is written
    //    twice, in parts and as a whole.
    let threads = tables.len();
    let (mut words, mut bytes) = (0, 0);
    for table in &mut tables {
        words += table.distinct();
        table.check()?;
        bytes += table.memory();
    }
    probe(words * 64 + bytes * 2)?;
    // 2. Sort each table.
    let sort_table = |table| SortedTable::of::<COMPACT>(table, monitor);
    let lists: Vec<SortedTable> = in_threads(tables, sort_table).into_iter().collect::<Result<_, _>>()?;
    // 3. All words of the second lists begin with U+2581 (or a space), and no words of the first lists do. So all of
    //    the second lists belong between two words of the first lists.
    let space = match COMPACT {
        true => u128::from(SPACE[0]) << 120 | u128::from(SPACE[1]) << 112 | u128::from(SPACE[2]) << 104,
        false => u128::from(b' ') << 120,
    };
    let (mut low, mut spaced, mut high): (Slices, Slices, Slices) = Default::default();
    for list in &lists {
        let (before, after) = list.unspaced.split_at(lower_bound(&list.unspaced, space));
        low.push((&list.table, before));
        spaced.push((&list.table, &list.spaced[..]));
        high.push((&list.table, after));
    }
    // 4. Write them.
    let mut parts = Vec::new();
    for slices in [low, spaced, high] {
        parts.append(&mut write::<COMPACT>(&slices, threads, monitor)?);
    }
    drop(lists);
    Words::concatenated(parts)
}

/// How many words of a sorted list have a lower prefix.
fn lower_bound(words: &[WordPrefix], prefix: u128) -> usize {
    words.partition_point(|word| word.prefix < prefix)
}

impl SortedTable {
    fn of<const COMPACT: bool>(mut table: WordTable, monitor: &Monitor) -> Result<SortedTable, Error> {
        table.close();
        let mut lists: [Vec<WordPrefix>; 2] = Default::default();
        let mut scratch = Vec::new();
        for (done, (place, word, _)) in table.records().enumerate() {
            if done % CHECK_INTERVAL == 0 {
                monitor.check()?;
            }
            let spaced = usize::from(word[0] == b' ');
            lists[spaced].push(WordPrefix { prefix: prefix::<COMPACT>(&word[spaced..], &mut scratch), place });
        }
        let order = |a: &WordPrefix, b: &WordPrefix| order::<COMPACT>((&table, a), (&table, b));
        lists.iter_mut().for_each(|list| sort(list, &order, monitor));
        let [unspaced, spaced] = lists;
        Ok(SortedTable { table, unspaced, spaced })
    }
}

/// The first 16 bytes of the real text of a word, padded with zeros. (In compact words U+0000 is always a word by
/// itself, so a zero after the first byte is padding. Other words with equal prefixes are compared as a whole.)
#[inline]
fn prefix<const COMPACT: bool>(word: &[u8], scratch: &mut Vec<u8>) -> u128 {
    let first = &word[..word.len().min(16)];
    let mut bytes = [0; 16];
    if COMPACT && first.iter().any(|&byte| byte == b' ' || byte == SPACE[0]) {
        scratch.clear();
        // Two more bytes are needed, because U+2581 has three, and its first byte may be the last that counts.
        swap_spaces(&word[..word.len().min(18)], scratch);
        let length = scratch.len().min(16);
        bytes[..length].copy_from_slice(&scratch[..length]);
    } else {
        bytes[..first.len()].copy_from_slice(first);
    }
    u128::from_be_bytes(bytes)
}

/// How the real texts of two words compare.
fn compare<const COMPACT: bool>(left: &[u8], right: &[u8]) -> Ordering {
    if !COMPACT {
        return left.cmp(right);
    }
    let same = common_length(left, right);
    // At the first difference, a space counts as the three bytes that it stands for. If one word has a space there, a
    // character begins there in the other word, too.
    let head = |word: &[u8]| match word.first() {
        Some(b' ') => [SPACE[0], SPACE[1], SPACE[2]],
        _ => [0, 1, 2].map(|at| word.get(at).copied().unwrap_or(0)),
    };
    head(&left[same..]).cmp(&head(&right[same..]))
}

/// How two words of lists of the same kind compare, each given with its table.
#[inline]
fn order<const COMPACT: bool>(a: (&WordTable, &WordPrefix), b: (&WordTable, &WordPrefix)) -> Ordering {
    match a.1.prefix.cmp(&b.1.prefix) {
        Ordering::Equal => compare::<COMPACT>(a.0.get(a.1.place).0, b.0.get(b.1.place).0),
        unequal => unequal,
    }
}

/// Sort by halves. If the work is stopped, the list is only partly in order.
fn sort<F>(prefixes: &mut [WordPrefix], order: &F, monitor: &Monitor)
where
    F: Fn(&WordPrefix, &WordPrefix) -> Ordering,
{
    if monitor.is_stopped() {
        return;
    }
    if prefixes.len() < CHECK_INTERVAL * 4 {
        // Sort by the prefixes alone first, which needs no branches, and then sort those with equal prefixes. (In a
        // single sort, which needs a branch in every comparison, 10 MB of text took 181 million instructions; now it
        // takes 73.)
        prefixes.sort_unstable_by_key(|word| word.prefix);
        for equal in prefixes.chunk_by_mut(|a, b| a.prefix == b.prefix).filter(|equal| equal.len() > 1) {
            equal.sort_unstable_by(order);
        }
        return;
    }
    let middle = prefixes.len() / 2;
    prefixes.select_nth_unstable_by(middle, order);
    let (low, high) = prefixes.split_at_mut(middle);
    sort(low, order, monitor);
    sort(high, order, monitor);
}

/// Merge the sorted words of several tables into as many lists as there are threads.
fn write<const COMPACT: bool>(lists: &Slices, threads: usize, monitor: &Monitor) -> Result<Vec<Words>, Error> {
    let Some((_, longest)) = lists.iter().max_by_key(|(_, words)| words.len()) else { return Ok(Vec::new()) };
    let parts = if longest.len() < PARALLEL { 1 } else { threads.max(1) };
    // Divide the words by their prefixes, so that equal words stay together. All tables come from the same text, so
    // prefixes that divide the longest list into equal parts do nearly the same with the others.
    let cut = |number: usize| match number {
        0 => vec![0; lists.len()],
        number if number == parts => lists.iter().map(|(_, words)| words.len()).collect(),
        number => {
            let prefix = longest[longest.len() / parts * number].prefix;
            lists.iter().map(|(_, words)| lower_bound(words, prefix)).collect()
        }
    };
    let write_part = |number: usize| -> Result<Words, Error> {
        let ranges = cut(number).into_iter().zip(cut(number + 1));
        let mut merging: Vec<Merging> = lists
            .iter()
            .zip(ranges)
            .map(|(&(table, words), (begin, end))| Merging::new(table, words, begin..end))
            .collect();
        merge::<COMPACT>(&mut merging, monitor)
    };
    in_threads(0..parts, write_part).into_iter().collect()
}

/// The sorted words of a table, as far as they are not written yet.
struct Merging<'a> {
    table: &'a WordTable,
    /// All its sorted words,
    words: &'a [WordPrefix],
    /// and which of them are left.
    left: Range<usize>,
}

impl<'a> Merging<'a> {
    fn new(table: &'a WordTable, words: &'a [WordPrefix], left: Range<usize>) -> Merging<'a> {
        words[left.clone()].iter().take(AHEAD).for_each(|word| table.prefetch(word.place));
        Merging { table, words, left }
    }

    /// The next word.
    #[inline]
    fn first(&self) -> Option<&'a WordPrefix> {
        self.words.get(self.left.start).filter(|_| !self.left.is_empty())
    }

    /// Take the next word. Returns how often it was counted.
    #[inline]
    fn take(&mut self) -> u64 {
        if let Some(later) = self.words.get(self.left.start + AHEAD) {
            self.table.prefetch(later.place);
        }
        let word = &self.words[self.left.start];
        self.left.start += 1;
        self.table.get(word.place).1
    }
}

/// Merge the remaining words of several tables, adding up the counts of equal words. (For every word that is written,
/// as many tables are looked at as there are threads, but that adds up to no more than all words for each thread.)
fn merge<const COMPACT: bool>(merging: &mut [Merging], monitor: &Monitor) -> Result<Words, Error> {
    let most: usize = merging.iter().map(|table| table.left.len()).sum();
    let mut words = Words::default();
    for column in [&mut words.ends, &mut words.counts] {
        column.grow(most * 8)?;
    }
    for step in 0.. {
        if step % CHECK_INTERVAL == 0 {
            monitor.check()?;
        }
        // 1. Find the smallest of the first words.
        let firsts = merging.iter().filter_map(|list| Some((list.table, list.first()?)));
        let Some((table, &word)) = firsts.min_by(|&a, &b| order::<COMPACT>(a, b)) else { break };
        // 2. Write it.
        let text = table.get(word.place).0;
        words.blob.grow(text.len() * SPACE.len())?;
        if COMPACT {
            swap_spaces(text, &mut words.blob);
        } else {
            words.blob.extend_from_slice(text);
        }
        // 3. Remove it from all tables that have it.
        let mut count = 0u64;
        for list in merging.iter_mut() {
            let is_same = |first: &WordPrefix| first.prefix == word.prefix && list.table.get(first.place).0 == text;
            if list.first().is_some_and(is_same) {
                count = count.saturating_add(list.take());
            }
        }
        words.end_word(count);
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::words::merge_words;
    use std::collections::BTreeMap;

    fn read(words: &Words) -> Vec<(String, u64)> {
        let words = words.view();
        (0..words.len()).map(|at| words.get(at)).map(|(word, count)| (word.to_string(), count)).collect()
    }

    #[test]
    fn words_come_in_the_order_of_their_real_bytes() {
        let words = [
            "a",
            "b",
            " ",
            "  ",
            " a",
            " ab",
            "a b",
            "a c",
            "ab",
            "“",
            "a“",
            "a”b",
            "▂",
            "▀x",
            "\u{2581}",
            "я",
            " я",
            "  я",
            "a \u{2580}",
            "a \u{2582}",
            "a a\u{2582}",
            "aaaaaaaaaaaaaaaaaaaa",
            "aaaaaaaaaaaaaaaaaaaa b",
            "aaaaaaaaaaaaaaaaaaaa“",
            " aaaaaaaaaaaaaaaaaaaa",
            " aaaaaaaaaaaaaaaa",
            " aaaaaaaaaaaaaaa",
            "aaaaaaaaaaaaaaa ",
            "漢字",
            " 漢字",
            "\u{10348}",
        ];
        let mut tables = vec![WordTable::default(), WordTable::default()];
        let mut expected: BTreeMap<String, u64> = BTreeMap::new();
        for (at, word) in words.iter().chain(&words[..9]).enumerate() {
            tables[at % 2].add(word.as_bytes(), at as u64 + 1);
            let real = word.chars().map(|c| match c {
                ' ' => '\u{2581}',
                '\u{2581}' => ' ',
                other => other,
            });
            *expected.entry(real.collect()).or_default() += at as u64 + 1;
        }
        let words = sorted::<true>(tables, &Monitor::default()).unwrap();
        assert_eq!(read(&words), expected.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn many_words_are_sorted_in_threads() {
        let monitor = Monitor::default();
        let tables = |count: usize| {
            let mut tables: Vec<WordTable> = (0..count).map(|_| WordTable::default()).collect();
            for number in 0..120_000u32 {
                let word = format!(" {:x}", number.wrapping_mul(2_654_435_761) % 70_000);
                tables[number as usize % count].add(word.as_bytes(), 1);
            }
            tables
        };
        let one = sorted::<true>(tables(1), &monitor).unwrap();
        assert_eq!(sorted::<true>(tables(3), &monitor).unwrap(), one);
        assert!(read(&one).windows(2).all(|pair| pair[0].0 < pair[1].0));
        let twice = merge_words(&[one.view(), one.view()], &monitor).unwrap();
        assert_eq!((&twice.blob, &twice.ends), (&one.blob, &one.ends));
        assert!(read(&twice).iter().zip(read(&one)).all(|(two, one)| two.1 == 2 * one.1));
        monitor.stop();
        assert_eq!(sorted::<true>(tables(2), &monitor), Err(Error::Stopped));
    }
}
