//! Counted words in the form that crosses the border to Python: sorted by their bytes, in three columns. `Words` owns
//! its columns; `WordsRef` reads columns that somebody else owns, after checking them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::error::{Error, Halt};
use crate::memory::Grow;
use crate::train::threads::CHECK_INTERVAL;
use crate::watch::Monitor;

/// Words sorted by their bytes, none of them twice. The columns are those of `Words` in `training_values.py`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// The words, one after another.
    pub blob: Vec<u8>,
    /// Where each word ends in `blob`, as u64 (little-endian).
    pub ends: Vec<u8>,
    /// How often each word was seen, as u64 (little-endian).
    pub counts: Vec<u8>,
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

    /// End the word whose text was appended to `blob`.
    pub fn end_word(&mut self, count: u64) {
        self.ends.extend_from_slice(&(self.blob.len() as u64).to_le_bytes());
        self.counts.extend_from_slice(&count.to_le_bytes());
    }

    /// Append words that all come later in the order.
    pub fn append(&mut self, later: &Words) {
        let begin = self.blob.len() as u64;
        self.blob.extend_from_slice(&later.blob);
        let ends = (0..later.ends.len() / 8).map(|at| number(&later.ends, at) + begin);
        self.ends.extend(ends.flat_map(u64::to_le_bytes));
        self.counts.extend_from_slice(&later.counts);
    }

    /// The same words, unless a count does not fit into a signed number. (Counts are added up without a check, and
    /// stay at the maximum of 64 bits when they reach it.)
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
        WordsRef::new(&self.blob, &self.ends, &self.counts).unwrap()
    }
}

/// The number at `at` in a column; 0 after its end.
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
    /// and as many counts.
    counts: &'a [u8],
}

impl<'a> WordsRef<'a> {
    /// Check columns: they must fit together, and every word must be UTF-8.
    pub fn new(blob: &'a [u8], ends: &'a [u8], counts: &'a [u8]) -> Result<WordsRef<'a>, Error> {
        let blob = std::str::from_utf8(blob).map_err(|_| Error::InvalidWords)?;
        let words = WordsRef { blob, ends, counts };
        if ends.len() != counts.len() || ends.len() % 8 != 0 {
            return Err(Error::InvalidWords);
        }
        let mut begin = 0;
        for at in 0..words.len() {
            let end = usize::try_from(number(ends, at)).map_err(|_| Error::InvalidWords)?;
            if end < begin || !blob.is_char_boundary(end) {
                return Err(Error::InvalidWords);
            }
            begin = end;
        }
        if begin == blob.len() {
            Ok(words)
        } else {
            Err(Error::InvalidWords)
        }
    }

    /// How many words there are.
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

/// Merge several lists of words, adding up the counts.
pub fn merge_words(lists: &[WordsRef], monitor: &Monitor) -> Result<Words, Error> {
    let mut merged = Words::default();
    // The next word of each list, the smallest on top: its text, its list, and its place there.
    let mut heads: BinaryHeap<Reverse<(&str, usize, usize)>> = (0..lists.len())
        .filter(|&list| !lists[list].is_empty())
        .map(|list| Reverse((lists[list].get(0).0, list, 0)))
        .collect();
    // The word that is not written yet, because the next one may be the same.
    let mut last: Option<(&str, u64)> = None;
    let mut steps = 0usize;
    while let Some(Reverse((word, list, at))) = heads.pop() {
        steps += 1;
        if steps % CHECK_INTERVAL == 0 {
            monitor.check()?;
        }
        let count = lists[list].count(at);
        match &mut last {
            Some((same, total)) if *same == word => *total = total.saturating_add(count),
            _ => {
                if let Some((word, total)) = last.replace((word, count)) {
                    merged.push(word.as_bytes(), total)?;
                }
            }
        }
        if at + 1 < lists[list].len() {
            heads.push(Reverse((lists[list].get(at + 1).0, list, at + 1)));
        }
    }
    if let Some((word, total)) = last {
        merged.push(word.as_bytes(), total)?;
    }
    Ok(merged)
}
