//! Text -> words with counts, on several threads. Each thread has a table of its own, so that nothing is shared. Counts
//! of words that are in several tables are added up when the words are drained.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Halt};
use crate::memory::Grow;
use crate::train::cutter::{Cutter, TextFacts, Worker};
use crate::train::sort::sorted;
use crate::train::tallies::Tallies;
use crate::train::threads::in_threads;
use crate::train::values::CountSpec;
use crate::train::words::Words;
use crate::watch::Monitor;

/// A thread takes about this many bytes of a block at a time.
const PORTION: usize = 1 << 18;

/// Counts words. When its work is stopped, it has counted an unknown part of the text. After an out-of-memory error it
/// cannot be used again.
pub struct Counter {
    /// Cuts sentences into words.
    cutter: Cutter,
    /// One table for each thread that has ever taken part.
    workers: Vec<Worker>,
    /// What was seen, and what was skipped.
    tallies: Tallies,
}

impl Counter {
    /// Fails if the normalization rules are malformed.
    pub fn new(spec: CountSpec) -> Result<Counter, Error> {
        Ok(Counter { cutter: Cutter::new(spec)?, workers: vec![Worker::default()], tallies: Tallies::default() })
    }

    /// Count one sentence `count` times.
    pub fn add(&mut self, sentence: &[u8], count: u64, monitor: &Monitor) -> Result<(), Halt> {
        let facts = TextFacts::of(sentence);
        self.cutter.count_sentence(sentence, count, facts, &mut self.workers[0], &mut self.tallies, monitor)
    }

    /// Count the sentences of a block, which consists of whole lines, on up to `threads` threads.
    pub fn add_block(&mut self, text: &[u8], threads: usize, monitor: &Monitor) -> Result<(), Halt> {
        // 1. Divide the text into portions of whole sentences.
        let mut portions = Vec::new();
        let mut begin = 0;
        while begin < text.len() {
            let end = self.cutter.sentence_end(text, text.len().min(begin + PORTION));
            portions.try_push(&text[begin..end])?;
            begin = end;
        }
        // 2. Each thread takes the next portion, again and again.
        let threads = threads.clamp(1, portions.len().max(1));
        while self.workers.len() < threads {
            self.workers.push(Worker::default());
        }
        let cutter = &self.cutter;
        let next = AtomicUsize::new(0);
        let count_portions = |worker: &mut Worker| {
            let mut counted = Vec::new();
            while !monitor.is_stopped() {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(portion) = portions.get(number) else { break };
                counted.push((number, cutter.count_lines(portion, worker, monitor)?));
            }
            Ok(counted)
        };
        // 3. Add up the tallies in the order of the text.
        let counted: Result<Vec<Vec<(usize, Tallies)>>, Halt> =
            in_threads(&mut self.workers[..threads], count_portions).into_iter().collect();
        let mut counted = counted?.concat();
        counted.sort_unstable_by_key(|(number, _)| *number);
        for (_, tallies) in counted {
            self.tallies.append(tallies);
        }
        Ok(())
    }

    /// Normalize a sentence for a pretokenizer, whose parts go to `add_prepared`: with BOUNDARY in place of each
    /// user-defined or control symbol and each delimiter. `None` if the sentence is skipped.
    pub fn prepare(&mut self, sentence: &[u8]) -> Result<Option<Vec<u8>>, Halt> {
        self.cutter.prepare(sentence, &mut self.tallies)
    }

    /// Count a sentence that has been prepared and only needs to be cut.
    pub fn add_prepared(&mut self, sentence: &[u8], count: u64, monitor: &Monitor) -> Result<(), Halt> {
        self.cutter.count_prepared(sentence, count, &mut self.workers[0], monitor)
    }

    /// What was seen, and what was skipped.
    pub fn tallies(&self) -> &Tallies {
        &self.tallies
    }

    /// How many different words there are.
    pub fn distinct(&mut self) -> usize {
        for worker in &mut self.workers {
            // (If there is no memory, the table is empty, and the next call that can fail reports it.)
            let _ = self.cutter.finish(worker, &Monitor::default());
        }
        let (own, others) = self.workers.split_at_mut(1);
        for worker in others {
            own[0].table.absorb(std::mem::take(&mut worker.table));
        }
        own[0].table.distinct()
    }

    /// About how many bytes the words take, without those that a table has not written to its records yet.
    pub fn memory(&self) -> usize {
        self.workers.iter().map(|worker| worker.table.memory()).sum()
    }

    /// Return all words and forget them.
    pub fn drain(&mut self, monitor: &Monitor) -> Result<Words, Error> {
        let finished = in_threads(&mut self.workers, |worker| self.cutter.finish(worker, monitor));
        finished.into_iter().collect::<Result<(), Halt>>()?;
        sorted::<true>(self.workers.iter_mut().map(|worker| std::mem::take(&mut worker.table)).collect(), monitor)
    }
}
