//! Counted words in the form that crosses the border to Python: sorted by their bytes, in columns. `Words` owns its
//! columns; `WordsRef` borrows columns that belong to somebody else, after checking them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::error::{Error, Halt};
use crate::memory::Grow;
use crate::train::threads::{in_threads, CHECK_INTERVAL};
use crate::watch::Monitor;

/// Checking fewer bytes than this is not worth a thread.
const PARALLEL: usize = 1 << 20;

/// Words sorted by their bytes, none of them twice. The columns are those of `Words` in `training_values.py`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// The words, one after another.
    pub blob: Vec<u8>,
    /// Where each word ends in `blob`, as u64 (little-endian).
    pub ends: Vec<u8>,
    /// How often each word was seen, as u64 (little-endian).
    pub counts: Vec<u8>,
    /// Where each word was first seen, as u64 (little-endian), if that was recorded; otherwise empty. Only the order of
    /// these numbers has a meaning.
    pub firsts: Vec<u8>,
}

impl Words {
    /// Append a word, which must come after all others in the order.
    pub fn push(&mut self, word: &[u8], count: u64) -> Result<(), Halt> {
        self.blob.grow(word.len())?;
        self.ends.grow(8)?;
        self.counts.grow(8)?;
        self.blob.extend_from_slice(word);
        self.end_word(count);
        Ok(())
    }

    /// The same with the place where the word was first seen, which is recorded for all words or for none.
    pub fn push_ordered(&mut self, word: &[u8], count: u64, first: u64) -> Result<(), Halt> {
        self.push(word, count)?;
        self.firsts.grow(8)?;
        self.firsts.extend_from_slice(&first.to_le_bytes());
        Ok(())
    }

    /// End the word whose text was appended to `blob`.
    pub fn end_word(&mut self, count: u64) {
        self.ends.extend_from_slice(&(self.blob.len() as u64).to_le_bytes());
        self.counts.extend_from_slice(&count.to_le_bytes());
    }

    /// The words of several lists, one list after another. Each word must come after all words before it in the order.
    /// The lists must not record where words were first seen.
    pub fn concatenated(lists: Vec<Words>) -> Result<Words, Error> {
        let (bytes, words) = lists.iter().fold((0, 0), |sum, list| (sum.0 + list.blob.len(), sum.1 + list.ends.len()));
        let mut lists = lists.into_iter();
        let mut all = lists.next().unwrap_or_default();
        all.blob.grow(bytes - all.blob.len())?;
        all.ends.grow(words - all.ends.len())?;
        all.counts.grow(words - all.counts.len())?;
        for list in lists {
            let begin = all.blob.len() as u64;
            let from = all.ends.len();
            all.ends.extend_from_slice(&list.ends);
            for end in all.ends[from..].chunks_exact_mut(8) {
                end.copy_from_slice(&(number(end, 0) + begin).to_le_bytes());
            }
            all.blob.extend_from_slice(&list.blob);
            all.counts.extend_from_slice(&list.counts);
        }
        Ok(all)
    }

    /// Return the same words, or an error if a count does not fit into a signed number. (Counts are added up without a
    /// check, and stay at the maximum of 64 bits when they reach it.)
    pub fn checked(self) -> Result<Words, Error> {
        let too_high = |count: &[u8]| count[7] >= 0x80;
        if self.counts.chunks_exact(8).any(too_high) {
            Err(Error::CountOverflow)
        } else {
            Ok(self)
        }
    }

    /// The words, for reading.
    #[cfg(test)]
    pub fn view(&self) -> WordsRef<'_> {
        WordsRef::new([&self.blob, &self.ends, &self.counts, &self.firsts], 1).unwrap()
    }
}

/// The number at `at` in a column; 0 after the end of the column.
#[inline]
fn number(column: &[u8], at: usize) -> u64 {
    column.get(at * 8..at * 8 + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// Words in columns that have been checked.
#[derive(Clone, Copy, Debug)]
pub struct WordsRef<'a> {
    /// As in `Words`,
    blob: &'a str,
    /// with ends that ascend and lie between characters,
    ends: &'a [u8],
    /// as many counts,
    counts: &'a [u8],
    /// and as many first places, or none.
    firsts: &'a [u8],
}

impl<'a> WordsRef<'a> {
    /// Check the columns blob, ends, counts and firsts on up to two threads. They must fit together, and every word
    /// must be UTF-8.
    pub fn new(columns: [&'a [u8]; 4], threads: usize) -> Result<WordsRef<'a>, Error> {
        let [blob, ends, counts, firsts] = columns;
        // 1. If the text is UTF-8, every end must be at the beginning of a character or at the end of the text.
        let fit = || {
            let mut begin = 0;
            let fit = ends.chunks_exact(8).all(|end| {
                let end = number(end, 0);
                let ascends = end >= begin;
                begin = end;
                ascends && usize::try_from(end).is_ok_and(|end| blob.get(end).is_none_or(|byte| byte & 0xC0 != 0x80))
            });
            fit && begin == blob.len() as u64
                && ends.len() == counts.len()
                && ends.len() % 8 == 0
                && (firsts.is_empty() || firsts.len() == ends.len())
        };
        // 2. The text must be UTF-8.
        let (fit, blob) = if threads > 1 && blob.len() >= PARALLEL {
            let checks = [true, false];
            let mut results = in_threads(checks, |first| match first {
                true => (fit(), None),
                false => (true, Some(std::str::from_utf8(blob))),
            });
            (results[0].0, results.pop().and_then(|result| result.1).unwrap_or_else(|| std::str::from_utf8(blob)))
        } else {
            (fit(), std::str::from_utf8(blob))
        };
        match blob {
            Ok(blob) if fit => Ok(WordsRef { blob, ends, counts, firsts }),
            _ => Err(Error::InvalidWords),
        }
    }

    /// How many words there are.
    pub fn len(&self) -> usize {
        self.ends.len() / 8
    }

    /// Whether there are no words.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The count of word `at`.
    #[inline]
    pub fn count(&self, at: usize) -> u64 {
        number(self.counts, at)
    }

    /// Whether it is known where each word was first seen. (True if there are no words.)
    pub fn is_ordered(&self) -> bool {
        self.firsts.len() == self.ends.len()
    }

    /// Where word `at` was first seen; 0 if that is not known.
    #[inline]
    pub fn first(&self, at: usize) -> u64 {
        number(self.firsts, at)
    }

    /// Word `at` and its count.
    #[inline]
    pub fn get(&self, at: usize) -> (&'a str, u64) {
        let begin = if at == 0 { 0 } else { number(self.ends, at - 1) };
        (&self.blob[begin as usize..number(self.ends, at) as usize], number(self.counts, at))
    }
}

/// Merge several lists of words, adding up the counts. If it is known where words were first seen, the result has the
/// earliest place of each word.
pub fn merge_words(lists: &[WordsRef], monitor: &Monitor) -> Result<Words, Error> {
    let ordered = lists.iter().any(|words| !words.firsts.is_empty());
    if ordered && !lists.iter().all(WordsRef::is_ordered) {
        return Err(Error::InvalidWords);
    }
    let mut merged = Words::default();
    let mut write = |(word, count, first): (&str, u64, u64)| match ordered {
        true => merged.push_ordered(word.as_bytes(), count, first),
        false => merged.push(word.as_bytes(), count),
    };
    // The next word of each list, with the smallest on top: its text, its list, and its place there.
    let mut heads: BinaryHeap<Reverse<(&str, usize, usize)>> = (0..lists.len())
        .filter(|&list| !lists[list].is_empty())
        .map(|list| Reverse((lists[list].get(0).0, list, 0)))
        .collect();
    // The word that has not been written yet, because the next one may be the same.
    let mut last: Option<(&str, u64, u64)> = None;
    let mut steps = 0usize;
    while let Some(Reverse((word, list, at))) = heads.pop() {
        steps += 1;
        if steps % CHECK_INTERVAL == 0 {
            monitor.check()?;
        }
        let (count, first) = (lists[list].count(at), lists[list].first(at));
        match &mut last {
            Some((same, total, earliest)) if *same == word => {
                *total = total.saturating_add(count);
                *earliest = first.min(*earliest);
            }
            _ => last.replace((word, count, first)).map_or(Ok(()), &mut write)?,
        }
        if at + 1 < lists[list].len() {
            heads.push(Reverse((lists[list].get(at + 1).0, list, at + 1)));
        }
    }
    last.map_or(Ok(()), write)?;
    Ok(merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check columns on one thread and on two.
    fn is_valid(blob: &[u8], ends: &[u8], counts: &[u8]) -> bool {
        let [one, two] = [1, 2].map(|threads| WordsRef::new([blob, ends, counts, b""], threads).is_ok());
        assert_eq!(one, two);
        one
    }

    #[test]
    fn columns_that_do_not_fit_are_refused_on_any_number_of_threads() {
        for repeated in [1, PARALLEL] {
            let blob = "aé漢".repeat(repeated).into_bytes();
            let last = blob.len() as u64;
            let column = |numbers: &[u64]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
            let valid = |ends: &[u64]| is_valid(&blob, &column(ends), &column(&vec![1; ends.len()]));
            assert!(valid(&[1, 3, last]) && valid(&[0, 1, 1, last]) && valid(&[last]));
            let outside = [[2, last], [3, last - 1], [3, 1], [3, last + 1], [last + 1, last], [last, u64::MAX]];
            assert!(outside.iter().all(|ends| !valid(ends)) && !valid(&[]));
            // Fewer counts than ends, and an incomplete end.
            assert!(!is_valid(&blob, &column(&[1, last]), &column(&[1])));
            assert!(!is_valid(&blob, &column(&[last])[..7], &column(&[1])[..7]));
            // Text that is not UTF-8.
            let mut broken = blob.clone();
            broken[blob.len() / 6 * 6 - 1] = b'a';
            assert!(!is_valid(&broken, &column(&[last]), &column(&[1])));
        }
        assert!(is_valid(b"", b"", b""));
    }

    #[test]
    fn lists_become_one() {
        let list = |words: &[&str]| {
            let mut list = Words::default();
            words.iter().for_each(|word| list.push(word.as_bytes(), word.len() as u64).unwrap());
            list
        };
        let lists = [&["a", "ab"][..], &[], &["b", "漢"], &["字"]].map(list);
        assert_eq!(Words::concatenated(lists.to_vec()).unwrap(), list(&["a", "ab", "b", "漢", "字"]));
        assert_eq!(Words::concatenated(Vec::new()).unwrap(), Words::default());
    }
}
