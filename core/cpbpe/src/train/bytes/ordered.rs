//! Words with the place where each was first seen, for `Ties::First`, which needs it.
//!
//! Counting with this table takes three times as long as with `WordTable`, and more memory for each word.

use std::collections::HashMap;

use crate::error::{Error, Halt};
use crate::memory::{collected, copied};
use crate::train::threads::CHECK_INTERVAL;
use crate::train::words::Words;
use crate::watch::Monitor;

/// Counts words, and remembers where it saw each for the first time.
#[derive(Default)]
pub struct OrderedTable {
    /// The count of each word, and where it was first seen.
    words: HashMap<Box<[u8]>, (u64, u64)>,
    /// The bytes of the words.
    bytes: usize,
}

/// About how many bytes a word takes besides its own: its entry, a share of the empty entries, and what the allocator
/// adds.
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
        self.words.insert(copied(word)?.into_boxed_slice(), (count, first));
        self.bytes += word.len();
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
    pub fn sorted(self, monitor: &Monitor) -> Result<Words, Error> {
        let mut rows = collected(self.words.into_iter())?;
        rows.sort_unstable();
        let mut sorted = Words::default();
        for (at, (word, (count, first))) in rows.into_iter().enumerate() {
            if at % CHECK_INTERVAL == 0 {
                monitor.check()?;
            }
            sorted.push_ordered(&word, count, first)?;
        }
        Ok(sorted)
    }
}
