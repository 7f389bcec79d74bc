//! Texts -> words with counts, on several threads. A text is split by the pattern; its chunks are the words.

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Halt};
use crate::memory::Grow;
use crate::split::{Batch, Splitter};
use crate::train::bytes::ordered::OrderedTable;
use crate::train::bytes::portions::{last_cut, Part, Portions};
use crate::train::sort::sorted;
use crate::train::tallies::{SkipReason, Tallies};
use crate::train::threads::in_threads;
use crate::train::word_table::{WordTable, PADDING};
use crate::train::words::Words;
use crate::watch::Monitor;

/// Counts the chunks of texts. When its work is stopped, it has counted an unknown part of the text. After an
/// out-of-memory error it cannot be used again.
pub struct ByteCounter {
    /// Splits texts. `None`: each text is one chunk.
    splitter: Option<Splitter>,
    /// Whether to remember where each word was first seen.
    ordered: bool,
    /// One worker for each thread that has ever taken part.
    workers: Vec<Worker>,
    /// What was seen. A text here is what a sentence is in the other family. Only empty texts are skipped.
    tallies: Tallies,
    /// The bytes given to `add_part` that are not counted yet.
    rest: Vec<u8>,
    /// How much of them has been searched for a place to cut.
    searched: usize,
    /// The text that `add_part` has begun.
    open_text: Option<OpenText>,
}

/// A text that comes in parts.
#[derive(Default)]
struct OpenText {
    /// How many bytes have come.
    bytes: usize,
    /// Whether any of it is not UTF-8, as far as it is counted.
    is_broken: bool,
}

/// The data that one thread writes.
struct Worker {
    table: Table,
    batch: Batch,
}

enum Table {
    Counts(WordTable),
    Ordered(OrderedTable),
}

impl Table {
    fn new(ordered: bool) -> Table {
        if ordered {
            Table::Ordered(OrderedTable::default())
        } else {
            Table::Counts(WordTable::default())
        }
    }
}

impl ByteCounter {
    /// A counter that splits texts by a pattern. Fails if the pattern is not valid.
    pub fn new(pattern: Option<&str>, ordered: bool) -> Result<ByteCounter, Error> {
        let splitter = pattern.map(Splitter::of).transpose()?;
        let workers = vec![Worker { table: Table::new(ordered), batch: Batch::default() }];
        let tallies = Tallies::default();
        Ok(ByteCounter { splitter, ordered, workers, tallies, rest: Vec::new(), searched: 0, open_text: None })
    }

    /// Count texts, each as often as its count says.
    pub fn add<'a>(
        &mut self,
        texts: impl Iterator<Item = (&'a [u8], u64)>,
        threads: usize,
        monitor: &Monitor,
    ) -> Result<(), Error> {
        let mut portions = Portions::default();
        for (text, count) in texts {
            let (number, place) = (self.tallies.sentences, self.tallies.bytes);
            self.tallies.sentences += 1;
            self.tallies.bytes += text.len() as u64;
            if text.is_empty() {
                self.tallies.skipped[SkipReason::Empty as usize].sentences += 1;
            } else {
                portions.push(Part { text, count, number, place }, self.splitter.as_ref())?;
            }
        }
        let mut broken = self.count(portions, threads, monitor)?;
        broken.dedup();
        self.tallies.broken += broken.len() as u64;
        Ok(())
    }

    /// Count the lines of a text, each with the newline at its end.
    pub fn add_lines(&mut self, text: &[u8], threads: usize, monitor: &Monitor) -> Result<(), Error> {
        self.add(text.split_inclusive(|&byte| byte == b'\n').map(|line| (line, 1)), threads, monitor)
    }

    /// Count the next part of a text, of which more may come.
    pub fn add_part(&mut self, part: &[u8], threads: usize, monitor: &Monitor) -> Result<(), Error> {
        self.open_text.get_or_insert_with(OpenText::default).bytes += part.len();
        self.rest.try_extend(part)?;
        let cut = self.splitter.as_ref().and_then(|splitter| last_cut(splitter, &self.rest, self.searched));
        match cut {
            Some(cut) => self.count_rest(cut, threads, monitor),
            None => {
                // (A cut depends on the characters on both sides of it, each of which has up to four bytes.)
                self.searched = self.rest.len().saturating_sub(8);
                Ok(())
            }
        }
    }

    /// Count what is left of the text given to `add_part`, and end it.
    pub fn end_text(&mut self, threads: usize, monitor: &Monitor) -> Result<(), Error> {
        let length = self.rest.len();
        if length > 0 {
            self.count_rest(length, threads, monitor)?;
        }
        if let Some(text) = self.open_text.take() {
            self.tallies.sentences += 1;
            self.tallies.broken += u64::from(text.is_broken);
            self.tallies.skipped[SkipReason::Empty as usize].sentences += u64::from(text.bytes == 0);
        }
        Ok(())
    }

    /// Count the rest of a text, up to `cut`.
    fn count_rest(&mut self, cut: usize, threads: usize, monitor: &Monitor) -> Result<(), Error> {
        let rest = std::mem::take(&mut self.rest);
        let part = Part { text: &rest[..cut], count: 1, number: 0, place: self.tallies.bytes };
        let mut portions = Portions::default();
        portions.push(part, self.splitter.as_ref())?;
        self.tallies.bytes += cut as u64;
        let broken = !self.count(portions, threads, monitor)?.is_empty();
        self.open_text.get_or_insert_with(OpenText::default).is_broken |= broken;
        self.rest = rest;
        self.rest.drain(..cut);
        self.searched = 0;
        Ok(())
    }

    /// Count portions. Returns the numbers of the texts that are not UTF-8, in ascending order.
    fn count(&mut self, mut portions: Portions, threads: usize, monitor: &Monitor) -> Result<Vec<u64>, Error> {
        // Each thread takes the next portion, again and again.
        portions.end()?;
        let threads = threads.clamp(1, portions.ends.len().max(1));
        while self.workers.len() < threads {
            self.workers.push(Worker { table: Table::new(self.ordered), batch: Batch::default() });
        }
        let splitter = self.splitter.as_ref();
        let next = AtomicUsize::new(0);
        let count_portions = |worker: &mut Worker| -> Result<Vec<u64>, Error> {
            let mut broken = Vec::new();
            while let Some(parts) = portions.get(next.fetch_add(1, Ordering::Relaxed)) {
                monitor.check()?;
                for part in parts {
                    if worker.count(splitter, part, monitor)? && broken.last() != Some(&part.number) {
                        broken.try_push(part.number)?;
                    }
                }
                if let Table::Counts(table) = &worker.table {
                    table.check()?;
                }
            }
            Ok(broken)
        };
        let counted = in_threads(&mut self.workers[..threads], count_portions);
        let mut broken = counted.into_iter().collect::<Result<Vec<_>, Error>>()?.concat();
        broken.sort_unstable();
        Ok(broken)
    }

    /// What was seen.
    pub fn tallies(&self) -> &Tallies {
        &self.tallies
    }

    /// Move the words of all workers into the table of the first one.
    fn gather(&mut self) -> Result<&mut Table, Halt> {
        let (own, others) = self.workers.split_at_mut(1);
        for worker in others {
            match (&mut own[0].table, std::mem::replace(&mut worker.table, Table::new(self.ordered))) {
                (Table::Counts(all), Table::Counts(more)) => all.absorb(more),
                (Table::Ordered(all), Table::Ordered(more)) => all.absorb(more)?,
                _ => {} // all tables of a counter are of the same kind
            }
        }
        Ok(&mut own[0].table)
    }

    /// How many different words there are.
    pub fn distinct(&mut self) -> Result<usize, Halt> {
        Ok(match self.gather()? {
            Table::Counts(table) => table.distinct(),
            Table::Ordered(table) => table.distinct(),
        })
    }

    /// About how many bytes the words take.
    pub fn memory(&self) -> usize {
        let tables = self.workers.iter().map(|worker| match &worker.table {
            Table::Counts(table) => table.memory(),
            Table::Ordered(table) => table.memory(),
        });
        tables.sum()
    }

    /// Return all words and forget them. Only an ordered counter has recorded their first places.
    pub fn drain(&mut self, monitor: &Monitor) -> Result<Words, Error> {
        if self.ordered {
            return match std::mem::replace(self.gather()?, Table::new(true)) {
                Table::Ordered(table) => table.sorted(monitor),
                Table::Counts(_) => Ok(Words::default()),
            };
        }
        let tables = self.workers.iter_mut().filter_map(|worker| {
            match std::mem::replace(&mut worker.table, Table::new(false)) {
                Table::Counts(table) => Some(table),
                Table::Ordered(_) => None,
            }
        });
        sorted::<false>(tables.collect(), monitor)
    }
}

impl Worker {
    /// Count the chunks of a part. Returns whether it is not UTF-8. In that case, each incomplete character counts as
    /// U+FFFD, and so does each byte that begins no character.
    fn count(&mut self, splitter: Option<&Splitter>, part: &Part, monitor: &Monitor) -> Result<bool, Error> {
        let text = String::from_utf8_lossy(part.text);
        let broken = matches!(text, Cow::Owned(_));
        let Some(splitter) = splitter else {
            match &mut self.table {
                Table::Counts(table) => table.add(text.as_bytes(), part.count),
                Table::Ordered(table) => table.add(text.as_bytes(), part.count, part.first(0))?,
            }
            return Ok(broken);
        };
        // Text that a pattern does not match is a chunk, too, as when texts are encoded.
        let Worker { table, batch } = self;
        let bytes = text.as_bytes();
        let mut chunks = splitter.cover(&text);
        while chunks.next(batch)? {
            monitor.check()?;
            match table {
                Table::Counts(table) => count_batch(table, bytes, batch, part.count),
                Table::Ordered(table) => {
                    for [begin, end] in batch.spans() {
                        table.add(&bytes[begin..end], part.count, part.first(begin))?;
                    }
                }
            }
        }
        Ok(broken)
    }
}

/// Count the words of a batch, each of which begins where the one before ends.
#[inline]
fn count_batch(table: &mut WordTable, text: &[u8], batch: &Batch, count: u64) {
    let base = batch.base();
    let mut begin = base;
    for &end in batch.ends() {
        let end = base + end as usize;
        if end + PADDING <= text.len() {
            table.add_at(text, begin, end, count);
        } else {
            table.add(&text[begin..end], count);
        }
        begin = end;
    }
}
