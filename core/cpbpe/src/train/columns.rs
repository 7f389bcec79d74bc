//! Counted words as they cross the border: sorted by their bytes, in columns. Made of tables (`sorted`), of several
//! such columns (`merge_words`), and read again (`Words`).

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::atomic::AtomicBool;

use crate::text::compact::swap_spaces as expand;
use crate::text::utf8::SPACE;
use crate::train::count::Table;
use crate::train::part::{check, Stopped};

/// So many words are worked on before looking whether to stop.
const STRIDE: usize = 1 << 16;
/// Fewer words than this are not worth a thread.
const PARALLEL: usize = 1 << 15;
/// A location is a place in a table, and above these bits the table.
const PLACE_BITS: u32 = 40;
const PLACE: u64 = (1 << PLACE_BITS) - 1;

/// Words sorted by their bytes, none twice; `Words` in `cpbpe/train_engine.py`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// The words, one after the other.
    pub blob: Vec<u8>,
    /// Where each ends in `blob`, as u64.
    pub ends: Vec<u8>,
    /// How often each was seen, as u64.
    pub counts: Vec<u8>,
}

impl Columns {
    /// Append a word that comes after all others.
    pub fn push(&mut self, word: &[u8], count: u64) {
        self.blob.extend_from_slice(word);
        self.end(count);
    }

    /// End a word.
    fn end(&mut self, count: u64) {
        self.ends.extend_from_slice(&(self.blob.len() as u64).to_le_bytes());
        self.counts.extend_from_slice(&count.to_le_bytes());
    }

    /// Append columns whose words all come later.
    fn append(&mut self, other: &Columns) {
        let begin = self.blob.len() as u64;
        self.blob.extend_from_slice(&other.blob);
        let ends = other.ends.chunks_exact(8).map(|end| end.try_into().map_or(0, u64::from_le_bytes) + begin);
        self.ends.extend(ends.flat_map(u64::to_le_bytes));
        self.counts.extend_from_slice(&other.counts);
    }
}

/// What to sort a word by: its first 16 bytes as they are once expanded, and where it is (table, place).
type Key = (u128, u64);

/// The first bytes of the real text, zeros behind. No word holds U+0000 beside anything, so zeros tell the end.
#[inline]
fn key(word: &[u8], scratch: &mut Vec<u8>) -> u128 {
    let first = &word[..word.len().min(16)];
    let mut bytes = [0; 16];
    if first.iter().any(|&byte| byte == b' ' || byte == SPACE[0]) {
        scratch.clear();
        expand(&word[..word.len().min(18)], scratch);
        let length = scratch.len().min(16);
        bytes[..length].copy_from_slice(&scratch[..length]);
    } else {
        bytes[..first.len()].copy_from_slice(first);
    }
    u128::from_be_bytes(bytes)
}

/// How the real texts of two words compare.
fn compare(left: &[u8], right: &[u8]) -> Ordering {
    let same = left.iter().zip(right).take_while(|(a, b)| a == b).count();
    // Where they differ, a space counts as the three bytes that it stands for. If one of the two has a space there,
    // then in the other a character begins there.
    let head = |word: &[u8]| match word.first() {
        Some(b' ') => [SPACE[0], SPACE[1], SPACE[2]],
        _ => [0, 1, 2].map(|at| word.get(at).copied().unwrap_or(0)),
    };
    head(&left[same..]).cmp(&head(&right[same..]))
}

/// All words of some tables in columns, counts added up.
pub fn sorted(mut tables: Vec<Table>, threads: usize, stop: &AtomicBool) -> Result<Columns, Stopped> {
    for table in &mut tables {
        table.close();
    }
    let tables = &tables;
    let record_of = |location: u64| tables[(location >> PLACE_BITS) as usize].get((location & PLACE) as usize);
    // Most words begin with a space. They are sorted apart, by what comes behind it, which tells more of them.
    let mut keys: [Vec<Key>; 2] = Default::default();
    let mut scratch = Vec::new();
    for (number, table) in (0u64..).zip(tables) {
        for (done, (place, word, _)) in table.records().enumerate() {
            if done % STRIDE == 0 {
                check(stop)?;
            }
            let spaced = word[0] == b' ';
            let location = number << PLACE_BITS | place as u64;
            keys[usize::from(spaced)].push((key(&word[usize::from(spaced)..], &mut scratch), location));
        }
    }
    let order = |a: &Key, b: &Key| match a.0.cmp(&b.0) {
        Ordering::Equal => compare(record_of(a.1).0, record_of(b.1).0),
        unequal => unequal,
    };
    let mut found = Columns::default();
    let [mut plain, mut spaced] = keys;
    sort(&mut plain, &order, threads, stop);
    sort(&mut spaced, &order, threads, stop);
    // No word of the first list begins with U+2581, so the second list has its place at one point.
    let space = u128::from(SPACE[0]) << 120 | u128::from(SPACE[1]) << 112 | u128::from(SPACE[2]) << 104;
    let middle = plain.partition_point(|key| key.0 < space);
    for keys in [&plain[..middle], &spaced[..], &plain[middle..]] {
        for part in written(keys, &record_of, threads, stop)? {
            found.append(&part);
        }
    }
    Ok(found)
}

/// What a thread has found. If it panicked, so do we.
pub fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Sort by halves, in threads while there are several, and look whether to stop before each part.
fn sort(keys: &mut [Key], order: &(impl Fn(&Key, &Key) -> Ordering + Sync), threads: usize, stop: &AtomicBool) {
    if check(stop).is_err() {
        return;
    }
    if keys.len() < if threads > 1 { PARALLEL } else { STRIDE * 4 } {
        keys.sort_unstable_by(order);
        return;
    }
    let (few, many) = (threads / 2, threads - threads / 2);
    let middle = if few > 0 { keys.len() / threads * few } else { keys.len() / 2 };
    keys.select_nth_unstable_by(middle, order);
    let (low, high) = keys.split_at_mut(middle);
    if few == 0 {
        sort(low, order, 1, stop);
        sort(high, order, 1, stop);
        return;
    }
    std::thread::scope(|scope| {
        scope.spawn(|| sort(low, order, few, stop));
        sort(high, order, many, stop);
    });
}

/// Columns of sorted keys, in as many parts as there are threads.
fn written<'a>(
    keys: &[Key],
    record_of: &(impl Fn(u64) -> (&'a [u8], u64) + Sync),
    threads: usize,
    stop: &AtomicBool,
) -> Result<Vec<Columns>, Stopped> {
    let same = |a: &Key, b: &Key| a.0 == b.0 && record_of(a.1).0 == record_of(b.1).0;
    let write = |keys: &[Key]| {
        let mut part = Columns::default();
        part.ends.reserve_exact(keys.len() * 8);
        part.counts.reserve_exact(keys.len() * 8);
        let mut at = 0;
        let mut pause = 0;
        while at < keys.len() {
            if at >= pause {
                check(stop)?;
                pause = at + STRIDE;
            }
            let (word, mut count) = record_of(keys[at].1);
            expand(word, &mut part.blob);
            at += 1;
            while at < keys.len() && same(&keys[at - 1], &keys[at]) {
                count = count.saturating_add(record_of(keys[at].1).1);
                at += 1;
            }
            part.end(count);
        }
        Ok(part)
    };
    let parts = if keys.len() < PARALLEL { 1 } else { threads.max(1) };
    let mut rest = keys;
    let mut slices = Vec::new();
    for number in 0..parts {
        let mut end = rest.len() / (parts - number);
        while end > 0 && end < rest.len() && same(&rest[end - 1], &rest[end]) {
            end += 1;
        }
        let (part, others) = rest.split_at(end);
        slices.push(part);
        rest = others;
    }
    std::thread::scope(|scope| {
        let workers: Vec<_> = slices[1..].iter().map(|slice| scope.spawn(move || write(slice))).collect();
        let mut done = vec![write(slices[0])];
        done.extend(workers.into_iter().map(joined));
        done.into_iter().collect()
    })
}

/// A word was counted 2**63 times or more.
#[derive(Debug, PartialEq, Eq)]
pub struct TooMany;

impl Columns {
    /// Counts are to fit into a signed number.
    pub fn checked(self) -> Result<Columns, TooMany> {
        let too_many = |count: &[u8]| count[7] >= 0x80;
        if self.counts.chunks_exact(8).any(too_many) {
            Err(TooMany)
        } else {
            Ok(self)
        }
    }
}

/// Words in columns, checked.
#[derive(Clone, Copy)]
pub struct Words<'a> {
    blob: &'a str,
    ends: &'a [u8],
    counts: &'a [u8],
}

fn number(column: &[u8], at: usize) -> u64 {
    column.get(at * 8..at * 8 + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

impl<'a> Words<'a> {
    /// `None` if the columns do not fit together, or a word is no UTF-8.
    pub fn new(blob: &'a [u8], ends: &'a [u8], counts: &'a [u8]) -> Option<Words<'a>> {
        let words = Words { blob: std::str::from_utf8(blob).ok()?, ends, counts };
        if ends.len() != counts.len() || ends.len() % 8 != 0 {
            return None;
        }
        let mut last = 0;
        for at in 0..words.len() {
            let end = number(ends, at);
            if end < last || !words.blob.is_char_boundary(usize::try_from(end).ok()?) {
                return None;
            }
            last = end;
        }
        (last == blob.len() as u64).then_some(words)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len() / 8
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The count of word `at`.
    #[inline]
    pub fn count(&self, at: usize) -> u64 {
        number(self.counts, at)
    }

    /// Word `at` and its count.
    #[inline]
    pub fn get(&self, at: usize) -> (&'a str, u64) {
        let begin = if at == 0 { 0 } else { number(self.ends, at - 1) };
        (&self.blob[begin as usize..number(self.ends, at) as usize], number(self.counts, at))
    }
}

/// One list of words from several: the smallest of what comes next in each, again and again.
pub fn merge_words(parts: &[Words], stop: &AtomicBool) -> Result<Columns, Stopped> {
    let mut merged = Columns::default();
    let mut heads: BinaryHeap<Reverse<(&str, usize, usize)>> = (0..parts.len())
        .filter(|&part| !parts[part].is_empty())
        .map(|part| Reverse((parts[part].get(0).0, part, 0)))
        .collect();
    let mut last: Option<(&str, u64)> = None;
    let mut done = 0usize;
    while let Some(Reverse((word, part, at))) = heads.pop() {
        let (_, count) = parts[part].get(at);
        done += 1;
        if done % (1 << 16) == 0 {
            check(stop)?;
        }
        match &mut last {
            Some((same, total)) if *same == word => *total = total.saturating_add(count),
            _ => {
                if let Some((word, total)) = last {
                    merged.push(word.as_bytes(), total);
                }
                last = Some((word, count));
            }
        }
        if at + 1 < parts[part].len() {
            heads.push(Reverse((parts[part].get(at + 1).0, part, at + 1)));
        }
    }
    if let Some((word, total)) = last {
        merged.push(word.as_bytes(), total);
    }
    Ok(merged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn read(columns: &Columns) -> Vec<(String, u64)> {
        let words = Words::new(&columns.blob, &columns.ends, &columns.counts).unwrap();
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
        let mut tables = vec![Table::default(), Table::default()];
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
        let columns = sorted(tables, 2, &AtomicBool::new(false)).unwrap();
        assert_eq!(read(&columns), expected.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn many_words_are_sorted_in_threads() {
        let stop = AtomicBool::new(false);
        let tables = |count: usize| {
            let mut tables: Vec<Table> = (0..count).map(|_| Table::default()).collect();
            for number in 0..100_000u32 {
                let word = format!(" {:x}", number.wrapping_mul(2_654_435_761) % 70_000);
                tables[number as usize % count].add(word.as_bytes(), 1);
            }
            tables
        };
        let one = sorted(tables(1), 1, &stop).unwrap();
        assert_eq!(sorted(tables(3), 3, &stop).unwrap(), one);
        assert!(read(&one).windows(2).all(|pair| pair[0].0 < pair[1].0));
        let words = Words::new(&one.blob, &one.ends, &one.counts).unwrap();
        let twice = merge_words(&[words, words], &stop).unwrap();
        assert_eq!((&twice.blob, &twice.ends), (&one.blob, &one.ends));
        assert!(read(&twice).iter().zip(read(&one)).all(|(two, one)| two.1 == 2 * one.1));
        assert!(sorted(tables(2), 2, &AtomicBool::new(true)).is_err());
    }
}
