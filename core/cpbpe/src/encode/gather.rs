//! Many texts -> all their ids, one after the other, in one array (the *target*); and all spans in another, if they are
//! asked for.
//!
//! The ids of a *run*, some consecutive texts that one thread encodes at a time, are copied to the target as soon as it
//! is known where they begin there: when all runs before it are done. At that moment they are still in the processor's
//! nearest cache, and their buffer can be used for another run. (Joining all runs at the end has to read everything
//! from distant memory. That took a tenth of all time; with spans, each of which is four times as large as an id, it
//! took half of all time.)
//!
//! How many ids there will be is estimated once some texts are done. If the target turns out to be too small, the
//! remaining runs keep their own memory, and the caller joins everything.

use std::collections::BTreeMap;
use std::mem::{take, MaybeUninit};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::thread::{current, ThreadId};

use crate::encode::align::EncodedTexts;
use crate::encode::batch::{size, size_of, Consumer, Texts, Wanted};
use crate::encode::encoder::Scratch;
use crate::encode::engine::Engine;
use crate::error::Halt;
use crate::memory::{collected, with_room};
use crate::watch::{in_threads, Check};

/// The number of ids is estimated when one part in this many of the text is done.
const SAMPLE: usize = 8;
/// Texts with fewer bytes get no target: their ids are still in a near cache when they are joined, and keeping track
/// of many short runs takes up to a tenth of the time.
const FEW: usize = 1 << 18;

/// Memory for ids and their spans, not initialized.
pub struct Target<'p> {
    /// For the ids.
    pub ids: &'p mut [MaybeUninit<u32>],
    /// For as many spans, if they are asked for; otherwise empty.
    pub spans: &'p mut [MaybeUninit<[i64; 2]>],
}

impl<'p> Target<'p> {
    /// Split off the first part, which is as long as the result of a run; `None` if the target is too small.
    fn split(self, run: &EncodedTexts) -> Option<(Target<'p>, Target<'p>)> {
        if run.ids.len() > self.ids.len() || run.spans.len() > self.spans.len() {
            return None;
        }
        let (ids, more_ids) = self.ids.split_at_mut(run.ids.len());
        let (spans, more_spans) = self.spans.split_at_mut(run.spans.len());
        Some((Target { ids, spans }, Target { ids: more_ids, spans: more_spans }))
    }
}

/// The ids of some texts: those in the target, then those of the runs that did not fit there.
pub struct GatheredTexts {
    /// How many ids, and spans if they are asked for, are in the target.
    pub placed: usize,
    /// The runs that did not fit. Their lengths have been taken out.
    pub rest: Vec<EncodedTexts>,
    /// How many ids each text has.
    pub lengths: Vec<usize>,
}

/// The result of a run, and where to copy it.
type Task<'p> = (Target<'p>, EncodedTexts);

/// The runs of texts: which of them have a part of the target, and which wait for one.
#[derive(Default)]
struct Runs<'p> {
    /// What is left of the target, if there is one.
    target: Option<Target<'p>>,
    /// How many ids are before what is left.
    placed: usize,
    /// The first text of the next run for the target.
    next: usize,
    /// The runs that wait for earlier ones. The key is the number of a run's first text; the value is the number after
    /// its last text, the thread that made it, and its result.
    waiting: BTreeMap<usize, (usize, ThreadId, EncodedTexts)>,
    /// The runs whose part of the target is known. Each is copied by the thread that made it.
    ready: Vec<(ThreadId, Task<'p>)>,
    /// Buffers to use again.
    spare: Vec<EncodedTexts>,
}

impl<'p> Runs<'p> {
    /// Take the ids of a run.
    fn put(&mut self, texts: Range<usize>, run: EncodedTexts) {
        self.waiting.insert(texts.start, (texts.end, current().id(), run));
        self.advance();
    }

    /// Give a part of the target to each run that no longer has to wait.
    fn advance(&mut self) {
        while let Some(target) = self.target.take() {
            let Some((end, owner, run)) = self.waiting.remove(&self.next) else {
                self.target = Some(target);
                return;
            };
            let Some((here, more)) = target.split(&run) else {
                // The target is too small, and is given up.
                self.waiting.insert(self.next, (end, owner, run));
                return;
            };
            (self.target, self.next, self.placed) = (Some(more), end, self.placed + run.ids.len());
            self.ready.push((owner, (here, run)));
        }
    }

    /// What this thread should copy.
    fn own(&mut self) -> Vec<Task<'p>> {
        let me = current().id();
        self.ready.extract_if(.., |(owner, _)| *owner == me).map(|(_, copy)| copy).collect()
    }
}

/// Copy runs, and return their buffers.
fn copy(tasks: Vec<Task>) -> Vec<EncodedTexts> {
    fn fill<T: Copy>(target: &mut [MaybeUninit<T>], items: &mut Vec<T>) {
        for (here, item) in target.iter_mut().zip(&*items) {
            here.write(*item);
        }
        items.clear();
    }
    let copy = |(here, mut run): Task| {
        fill(here.ids, &mut run.ids);
        fill(here.spans, &mut run.spans);
        run
    };
    tasks.into_iter().map(copy).collect()
}

/// How many ids each of all texts has, from those of the runs, each with its first text.
fn joined_lengths(texts: usize, mut runs: Vec<(usize, Vec<usize>)>) -> Result<Vec<usize>, Halt> {
    runs.sort_unstable_by_key(|&(first, _)| first);
    let mut lengths = with_room(texts)?;
    lengths.extend(runs.into_iter().flat_map(|(_, some)| some));
    Ok(lengths)
}

/// Collects the lengths of the texts of runs, and makes the target.
struct Collector<'a, 'p, T: ?Sized, A> {
    texts: &'a T,
    runs: &'a Mutex<Runs<'p>>,
    /// Makes the target, at most once.
    allocate: Option<A>,
    /// How many bytes all texts have.
    all_bytes: usize,
    /// How many bytes the finished texts have.
    done_bytes: usize,
    /// How many ids the finished texts have.
    done_ids: usize,
    /// How many ids each text of a run has, with the number of the run's first text.
    lengths: Vec<(usize, Vec<usize>)>,
}

impl<'p, T, A> Consumer<Vec<usize>> for Collector<'_, 'p, T, A>
where
    T: Texts + ?Sized,
    A: FnOnce(usize) -> Option<Target<'p>>,
{
    fn take(&mut self, first: usize, lengths: Vec<usize>) -> bool {
        self.done_bytes += size_of(self.texts, first..first + lengths.len());
        self.done_ids += lengths.iter().sum::<usize>();
        self.lengths.push((first, lengths));
        let (all, done) = (self.all_bytes, self.done_bytes);
        if done >= all / SAMPLE {
            if let Some(allocate) = self.allocate.take() {
                // (A sixteenth more, because texts differ.)
                let more = (self.done_ids as f64 / done as f64 * (all - done) as f64 * (1.0 + 1.0 / 16.0)) as usize;
                let target = allocate(self.done_ids + more);
                let mut runs = lock(self.runs);
                runs.target = target;
                runs.advance();
            }
        }
        true
    }
}

fn lock<'a, 'p>(runs: &'a Mutex<Runs<'p>>) -> std::sync::MutexGuard<'a, Runs<'p>> {
    runs.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Engine {
    /// Put the ids of many texts, and their spans if they are wanted, into a target. `allocate` makes the target, given
    /// about how many ids there will be; it is called in this thread, at most once.
    pub fn gather_batch<'p>(
        &self,
        texts: &(impl Texts + ?Sized),
        threads: usize,
        wanted: Wanted,
        check: Check,
        allocate: impl FnOnce(usize) -> Option<Target<'p>>,
    ) -> Result<GatheredTexts, Halt> {
        if size(texts) < FEW {
            let mut runs = Vec::new();
            self.encode_batch(texts, threads, wanted, check, &mut runs)?;
            return without_target(texts.count(), runs);
        }
        let (runs, all) = (Mutex::new(Runs::default()), texts);
        let encode = |texts: Range<usize>, check: Check, scratch: &mut Scratch| {
            let mut run = lock(&runs).spare.pop().unwrap_or_default();
            self.append_run(all, texts.clone(), wanted, check, scratch, &mut run)?;
            let lengths = take(&mut run.lengths);
            run.unknown = Vec::new(); // (no caller asks for the texts of unknown tokens)
            let tasks = {
                let mut runs = lock(&runs);
                runs.put(texts, run);
                runs.own()
            };
            let spare = copy(tasks);
            lock(&runs).spare.extend(spare);
            Ok(lengths)
        };
        let mut collector = Collector {
            texts,
            runs: &runs,
            allocate: Some(allocate),
            all_bytes: size(texts),
            done_bytes: 0,
            done_ids: 0,
            lengths: Vec::new(),
        };
        self.in_runs(texts, threads, check, encode, &mut collector)?;
        let lengths = joined_lengths(texts.count(), collector.lengths)?;
        let Runs { placed, waiting, ready, .. } = runs.into_inner().unwrap_or_else(PoisonError::into_inner);
        // (A run is left here if its turn came after its thread had done its last run.)
        copy(ready.into_iter().map(|(_, copy)| copy).collect());
        let rest = waiting.into_values().map(|(_, _, run)| run).collect();
        Ok(GatheredTexts { placed, rest, lengths })
    }
}

/// The runs of texts that are too few for a target.
fn without_target(texts: usize, mut runs: Vec<(usize, EncodedTexts)>) -> Result<GatheredTexts, Halt> {
    runs.sort_unstable_by_key(|&(first, _)| first);
    let parts = runs.iter_mut().map(|(first, run)| (*first, take(&mut run.lengths)));
    let lengths = joined_lengths(texts, collected(parts)?)?;
    Ok(GatheredTexts { placed: 0, rest: runs.into_iter().map(|(_, run)| run).collect(), lengths })
}

// --- Joining -------------------------------------------------------------------------------------
//
// Copies many parts to one target.

/// Fewer items than this are copied by one thread, because starting another takes longer.
const MANY: usize = 1 << 18;

/// Copy parts, one after the other, to `target`, which is as long as all of them.
///
/// If the target is new memory, touching it for the first time takes most of the time, and the threads share that work.
pub fn join<T: Copy + Send + Sync>(parts: &[&[T]], target: &mut [MaybeUninit<T>], threads: usize) {
    let total: usize = parts.iter().map(|part| part.len()).sum();
    assert_eq!(total, target.len(), "the target is as long as the parts");
    let threads = if total < MANY { 1 } else { threads.max(1) };
    type Copy<'a, T> = (&'a mut [MaybeUninit<T>], &'a [T]);
    let mut shares: Vec<Vec<Copy<T>>> = (0..threads).map(|_| Vec::new()).collect();
    let mut rest = target;
    let mut done = 0;
    for part in parts {
        let (here, more) = rest.split_at_mut(part.len());
        rest = more;
        shares[(done * threads / total.max(1)).min(threads - 1)].push((here, part));
        done += part.len();
    }
    in_threads(
        shares,
        || (),
        |share| {
            for (here, part) in share {
                here.iter_mut().zip(part).for_each(|(here, item)| {
                    here.write(*item);
                });
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_one_after_the_other() {
        let numbers: Vec<u32> = (0..2 * MANY as u32).collect();
        for (length, threads) in [(0, 3), (1000, 3), (numbers.len(), 1), (numbers.len(), 3)] {
            let parts: Vec<&[u32]> = numbers[..length].chunks(777).collect();
            let mut target = vec![MaybeUninit::new(0); length];
            join(&parts, &mut target, threads);
            // SAFETY: all of it was initialized when it was made.
            assert!(target.iter().zip(&numbers).all(|(item, number)| unsafe { item.assume_init() } == *number));
        }
    }
}
