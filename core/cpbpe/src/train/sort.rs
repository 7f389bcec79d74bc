//! Tables of words -> one sorted list of words. The words of a table are compact, but they are sorted by the bytes of
//! their real text, which has U+2581 in place of spaces.

use std::cmp::Ordering;

use crate::error::Error;
use crate::text::common::common_length;
use crate::text::compact::swap_spaces;
use crate::text::utf8::SPACE;
use crate::train::threads::{in_threads, CHECK_INTERVAL};
use crate::train::word_table::WordTable;
use crate::train::words::Words;
use crate::watch::Monitor;

/// Fewer words than this are not worth a thread.
const PARALLEL: usize = 1 << 15;
/// The low bits of a location are a place in a table; the bits above these are the number of the table.
const PLACE_BITS: u32 = 40;
const PLACE: u64 = (1 << PLACE_BITS) - 1;

/// A word that is being sorted: how it begins, and where it is.
#[derive(Clone, Copy)]
struct WordPrefix {
    /// The first 16 bytes of its real text, which decide nearly all comparisons.
    prefix: u128,
    /// The table, and the place in it.
    location: u64,
}

/// All words of several tables, sorted, with the counts added up. With `COMPACT` the words are compact; otherwise they are
/// what they are, any bytes.
pub fn sorted<const COMPACT: bool>(
    mut tables: Vec<WordTable>,
    threads: usize,
    monitor: &Monitor,
) -> Result<Words, Error> {
    for table in &mut tables {
        table.close();
    }
    let tables = &tables;
    let record_of = |location: u64| tables[(location >> PLACE_BITS) as usize].get((location & PLACE) as usize);
    // 1. Record the prefix of every word. Most words begin with a space. They form a list of their own, sorted by what
    //    comes after the space, so that the prefix says more about them.
    let mut prefixes: [Vec<WordPrefix>; 2] = Default::default();
    let mut scratch = Vec::new();
    for (number, table) in (0u64..).zip(tables) {
        for (done, (place, word, _)) in table.records().enumerate() {
            if done % CHECK_INTERVAL == 0 {
                monitor.check()?;
            }
            let spaced = usize::from(word[0] == b' ');
            let location = number << PLACE_BITS | place as u64;
            prefixes[spaced].push(WordPrefix { prefix: prefix::<COMPACT>(&word[spaced..], &mut scratch), location });
        }
    }
    // 2. Sort both lists.
    let order = |a: &WordPrefix, b: &WordPrefix| match a.prefix.cmp(&b.prefix) {
        Ordering::Equal => compare::<COMPACT>(record_of(a.location).0, record_of(b.location).0),
        unequal => unequal,
    };
    let [mut unspaced, mut spaced] = prefixes;
    sort(&mut unspaced, &order, threads, monitor);
    sort(&mut spaced, &order, threads, monitor);
    // 3. Write them. All words of the second list begin with U+2581 (or a space), and none of the first does. So the
    //    whole second list goes between two words of the first.
    let space = match COMPACT {
        true => u128::from(SPACE[0]) << 120 | u128::from(SPACE[1]) << 112 | u128::from(SPACE[2]) << 104,
        false => u128::from(b' ') << 120,
    };
    let middle = unspaced.partition_point(|word| word.prefix < space);
    let mut words = Words::default();
    for prefixes in [&unspaced[..middle], &spaced[..], &unspaced[middle..]] {
        for part in write::<COMPACT, _>(prefixes, &record_of, threads, monitor)? {
            words.append(&part);
        }
    }
    Ok(words)
}

/// The first 16 bytes of the real text of a word, padded with zeros. (In compact words U+0000 is always a word of its
/// own, so a zero after the first byte is padding. Others with equal prefixes are compared as a whole.)
#[inline]
fn prefix<const COMPACT: bool>(word: &[u8], scratch: &mut Vec<u8>) -> u128 {
    let first = &word[..word.len().min(16)];
    let mut bytes = [0; 16];
    if COMPACT && first.iter().any(|&byte| byte == b' ' || byte == SPACE[0]) {
        scratch.clear();
        // Two more bytes, because U+2581 has three, and its first byte may be the last that counts.
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
    // Where they first differ, a space counts as the three bytes that it stands for. If one of them has a space
    // there, a character begins there in the other one, too.
    let head = |word: &[u8]| match word.first() {
        Some(b' ') => [SPACE[0], SPACE[1], SPACE[2]],
        _ => [0, 1, 2].map(|at| word.get(at).copied().unwrap_or(0)),
    };
    head(&left[same..]).cmp(&head(&right[same..]))
}

/// Sort by halves, on threads as long as there are more to use. If the work is stopped, the order is left unfinished.
fn sort<F>(prefixes: &mut [WordPrefix], order: &F, threads: usize, monitor: &Monitor)
where
    F: Fn(&WordPrefix, &WordPrefix) -> Ordering + Sync,
{
    if monitor.is_stopped() {
        return;
    }
    if prefixes.len() < if threads > 1 { PARALLEL } else { CHECK_INTERVAL * 4 } {
        // First by the prefixes alone, which needs no branches, then those that are equal. (In one go, with a branch in
        // every comparison, it took 181 million instructions for 10 MB of text; now 73.)
        prefixes.sort_unstable_by_key(|word| word.prefix);
        for equal in prefixes.chunk_by_mut(|a, b| a.prefix == b.prefix).filter(|equal| equal.len() > 1) {
            equal.sort_unstable_by(order);
        }
        return;
    }
    let (fewer, more) = (threads / 2, threads - threads / 2);
    let middle = if fewer > 0 { prefixes.len() / threads * fewer } else { prefixes.len() / 2 };
    prefixes.select_nth_unstable_by(middle, order);
    let (low, high) = prefixes.split_at_mut(middle);
    if fewer == 0 {
        sort(low, order, 1, monitor);
        sort(high, order, 1, monitor);
        return;
    }
    in_threads([(high, more), (low, fewer)], |(part, threads)| sort(part, order, threads, monitor));
}

/// The sorted words, in as many lists as there are threads.
fn write<'a, const COMPACT: bool, F>(
    prefixes: &[WordPrefix],
    record_of: &F,
    threads: usize,
    monitor: &Monitor,
) -> Result<Vec<Words>, Error>
where
    F: Fn(u64) -> (&'a [u8], u64) + Sync,
{
    let same =
        |a: &WordPrefix, b: &WordPrefix| a.prefix == b.prefix && record_of(a.location).0 == record_of(b.location).0;
    // 1. Divide the words; equal ones stay together.
    let parts = if prefixes.len() < PARALLEL { 1 } else { threads.max(1) };
    let mut rest = prefixes;
    let mut slices = Vec::new();
    for number in 0..parts {
        let mut end = rest.len() / (parts - number);
        while end > 0 && end < rest.len() && same(&rest[end - 1], &rest[end]) {
            end += 1;
        }
        let (slice, others) = rest.split_at(end);
        slices.push(slice);
        rest = others;
    }
    // 2. Write each part, adding up the counts of equal words.
    let write_part = |prefixes: &[WordPrefix]| {
        let mut words = Words::default();
        words.ends.reserve_exact(prefixes.len() * 8);
        words.counts.reserve_exact(prefixes.len() * 8);
        for (at, equal) in prefixes.chunk_by(same).enumerate() {
            if at % CHECK_INTERVAL == 0 {
                monitor.check()?;
            }
            let word = record_of(equal[0].location).0;
            if COMPACT {
                swap_spaces(word, &mut words.blob);
            } else {
                words.blob.extend_from_slice(word);
            }
            let counts = equal.iter().map(|word| record_of(word.location).1);
            words.end_word(counts.fold(0, u64::saturating_add));
        }
        Ok(words)
    };
    in_threads(slices, write_part).into_iter().collect()
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
        let words = sorted::<true>(tables, 2, &Monitor::default()).unwrap();
        assert_eq!(read(&words), expected.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn many_words_are_sorted_in_threads() {
        let monitor = Monitor::default();
        let tables = |count: usize| {
            let mut tables: Vec<WordTable> = (0..count).map(|_| WordTable::default()).collect();
            for number in 0..100_000u32 {
                let word = format!(" {:x}", number.wrapping_mul(2_654_435_761) % 70_000);
                tables[number as usize % count].add(word.as_bytes(), 1);
            }
            tables
        };
        let one = sorted::<true>(tables(1), 1, &monitor).unwrap();
        assert_eq!(sorted::<true>(tables(3), 3, &monitor).unwrap(), one);
        assert!(read(&one).windows(2).all(|pair| pair[0].0 < pair[1].0));
        let twice = merge_words(&[one.view(), one.view()], &monitor).unwrap();
        assert_eq!((&twice.blob, &twice.ends), (&one.blob, &one.ends));
        assert!(read(&twice).iter().zip(read(&one)).all(|(two, one)| two.1 == 2 * one.1));
        monitor.stop();
        assert_eq!(sorted::<true>(tables(2), 2, &monitor), Err(Error::Stopped));
    }
}
