//! Words with the place where each was first seen, for the rule of ties that asks for it.
//!
//! This takes three times as long as the table that only counts, and more memory for each word.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::error::{Error, Halt};
use crate::memory::{with_room, Grow};
use crate::train::threads::CHECK_INTERVAL;
use crate::train::words::{Words, WordsRef};
use crate::watch::Monitor;

/// Words, sorted, and a column more: where each was first seen, as u64 (little-endian).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderedWords {
    /// The words.
    pub words: Words,
    /// Where each was first seen. Only the order of these numbers means something.
    pub firsts: Vec<u8>,
}

impl OrderedWords {
    fn push(&mut self, word: &[u8], count: u64, first: u64) -> Result<(), Halt> {
        self.words.push(word, count)?;
        self.firsts.grow(8)?;
        self.firsts.extend_from_slice(&first.to_le_bytes());
        Ok(())
    }
}

/// Counts words, and remembers where it saw each for the first time.
#[derive(Default)]
pub struct OrderedTable {
    /// The count of each word, and where it was first seen.
    words: HashMap<Box<[u8]>, (u64, u64)>,
    /// The bytes of the words.
    bytes: usize,
}

/// What a word takes beside its bytes, roughly: its entry, some of them empty, and what the allocator adds.
const WORD_BYTES: usize = 64;

impl OrderedTable {
    /// Count a word that was seen at this place.
    pub fn add(&mut self, word: &[u8], count: u64, first: u64) -> Result<(), Halt> {
        if let Some((total, earliest)) = self.words.get_mut(word) {
            *total = total.saturating_add(count);
            *earliest = first.min(*earliest);
            return Ok(());
        }
        self.words.try_reserve(1).map_err(|_| Halt::OutOfMemory)?;
        let mut own = Vec::new();
        own.grow(word.len())?;
        own.extend_from_slice(word);
        self.bytes += word.len();
        self.words.insert(own.into_boxed_slice(), (count, first));
        Ok(())
    }

    /// Add all words of another table.
    pub fn absorb(&mut self, other: OrderedTable) -> Result<(), Halt> {
        other.words.into_iter().try_for_each(|(word, (count, first))| self.add(&word, count, first))
    }

    /// How many words there are.
    pub fn distinct(&self) -> usize {
        self.words.len()
    }

    /// About how many bytes the table takes.
    pub fn memory(&self) -> usize {
        self.words.capacity() * WORD_BYTES + self.bytes
    }

    /// The words, sorted.
    pub fn sorted(self, monitor: &Monitor) -> Result<OrderedWords, Error> {
        let mut rows = with_room(self.words.len())?;
        rows.extend(self.words);
        rows.sort_unstable();
        let mut sorted = OrderedWords::default();
        for (at, (word, (count, first))) in rows.into_iter().enumerate() {
            if at % CHECK_INTERVAL == 0 {
                monitor.check()?;
            }
            sorted.push(&word, count, first)?;
        }
        Ok(sorted)
    }
}

/// The number at `at` in a column; 0 after its end.
pub fn first_of(firsts: &[u8], at: usize) -> u64 {
    firsts.get(at * 8..at * 8 + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// Merge several lists of words: counts are added up, and the earliest place stays.
pub fn merge_ordered(lists: &[(WordsRef, &[u8])], monitor: &Monitor) -> Result<OrderedWords, Error> {
    if lists.iter().any(|(words, firsts)| firsts.len() != words.len() * 8) {
        return Err(Error::InvalidWords);
    }
    let mut merged = OrderedWords::default();
    // The next word of each list, the smallest on top: its text, its list, and its place there.
    let mut heads: BinaryHeap<Reverse<(&str, usize, usize)>> = (0..lists.len())
        .filter(|&list| !lists[list].0.is_empty())
        .map(|list| Reverse((lists[list].0.get(0).0, list, 0)))
        .collect();
    // The word that is not written yet, because the next one may be the same.
    let mut last: Option<(&str, u64, u64)> = None;
    let mut steps = 0usize;
    while let Some(Reverse((word, list, at))) = heads.pop() {
        steps += 1;
        if steps % CHECK_INTERVAL == 0 {
            monitor.check()?;
        }
        let (words, firsts) = &lists[list];
        let (count, first) = (words.count(at), first_of(firsts, at));
        match &mut last {
            Some((same, total, earliest)) if *same == word => {
                *total = total.saturating_add(count);
                *earliest = first.min(*earliest);
            }
            _ => {
                if let Some((word, total, earliest)) = last.replace((word, count, first)) {
                    merged.push(word.as_bytes(), total, earliest)?;
                }
            }
        }
        if at + 1 < words.len() {
            heads.push(Reverse((words.get(at + 1).0, list, at + 1)));
        }
    }
    if let Some((word, total, earliest)) = last {
        merged.push(word.as_bytes(), total, earliest)?;
    }
    Ok(merged)
}
