//! Many texts, encoded by several threads, in runs of texts.

use std::ops::Range;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use crate::encode::align::{AlignOptions, AlignedTexts};
use crate::encode::encoder::Scratch;
use crate::encode::ends::Ends;
use crate::encode::engine::Engine;
use crate::encode::texts::{size, Texts};
use crate::error::Halt;
use crate::memory::{with_room, Grow};
use crate::watch::{may_start_threads, Check, WAIT};

/// The ids of some texts, one after the other.
#[derive(Default)]
pub struct EncodedTexts {
    /// The ids.
    pub ids: Vec<u32>,
    /// How many each text has.
    pub lengths: Vec<usize>,
}

/// Receives the results of runs of texts.
pub trait Consumer<R> {
    /// Take the result of a run whose first text has this index, and say whether to go on.
    fn take(&mut self, first: usize, result: R) -> bool;
    /// Called with work that takes time.
    fn meanwhile<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        work()
    }
}

/// Keeps all results.
impl<R> Consumer<R> for Vec<(usize, R)> {
    fn take(&mut self, first: usize, result: R) -> bool {
        self.push((first, result));
        true
    }
}

/// Runs of texts. Each thread takes a few dozen runs.
fn runs(texts: &(impl Texts + ?Sized), threads: usize) -> Result<Vec<Range<usize>>, Halt> {
    let total = size(texts) + texts.count() * 16;
    let size = (total / (threads * 64)).clamp(1 << 12, 1 << 18);
    let mut runs = Vec::new();
    let (mut begin, mut bytes) = (0, 0);
    for i in 0..texts.count() {
        bytes += texts.at(i).0.len() + 16;
        if bytes >= size {
            runs.grow(2)?;
            runs.push(begin..i + 1);
            (begin, bytes) = (i + 1, 0);
        }
    }
    if begin < texts.count() {
        runs.push(begin..texts.count());
    }
    Ok(runs)
}

impl Engine {
    /// Give the ids of many texts to `consumer`, in runs of texts, and in any order.
    pub fn encode_batch(
        &self,
        texts: &(impl Texts + ?Sized),
        threads: usize,
        ends: Ends,
        check: Check,
        consumer: &mut impl Consumer<EncodedTexts>,
    ) -> Result<(), Halt> {
        let encode = |run: Range<usize>, check: Check, scratch: &mut Scratch| {
            let mut result = EncodedTexts { ids: Vec::new(), lengths: with_room(run.len())? };
            for (text, valid) in run.map(|index| texts.at(index)) {
                self.encode_between(text, valid, ends, check, scratch)?;
                result.lengths.push(scratch.ids.len());
                result.ids.grow(scratch.ids.len())?;
                result.ids.extend_from_slice(&scratch.ids);
            }
            Ok(result)
        };
        self.in_runs(texts, threads, check, encode, consumer)
    }

    /// The same with numbers of ids, one for each text.
    pub fn count_batch(
        &self,
        texts: &(impl Texts + ?Sized),
        threads: usize,
        check: Check,
        consumer: &mut impl Consumer<Vec<usize>>,
    ) -> Result<(), Halt> {
        let count = |run: Range<usize>, check: Check, scratch: &mut Scratch| {
            let mut counts = with_room(run.len())?;
            for (text, valid) in run.map(|index| texts.at(index)) {
                counts.push(self.count(text, valid, check, scratch)?);
            }
            Ok(counts)
        };
        self.in_runs(texts, threads, check, count, consumer)
    }

    /// The same with ids and spans.
    pub fn align_batch(
        &self,
        texts: &(impl Texts + ?Sized),
        threads: usize,
        options: AlignOptions,
        check: Check,
        consumer: &mut impl Consumer<AlignedTexts>,
    ) -> Result<(), Halt> {
        let align = |run: Range<usize>, check: Check, scratch: &mut Scratch| {
            let mut result = AlignedTexts { lengths: with_room(run.len())?, ..AlignedTexts::default() };
            for index in run {
                let before = result.ids.len();
                self.align_to(texts.at(index), index, options, check, scratch, &mut result)?;
                result.lengths.push(result.ids.len() - before);
            }
            Ok(result)
        };
        self.in_runs(texts, threads, check, align, consumer)
    }

    /// Do work for runs of texts, and give the results to `consumer`, in any order.
    ///
    /// Every other thread takes the next run that is left. This one hands the results to the consumer, and takes a run
    /// itself if there are none. Only this thread may make lists of ids; that costs no time while the others have work.
    /// Only this thread asks `check` whether to go on. The others stop when it does.
    pub(crate) fn in_runs<R: Send, C: Consumer<R>>(
        &self,
        texts: &(impl Texts + ?Sized),
        threads: usize,
        check: Check,
        work: impl Fn(Range<usize>, Check, &mut Scratch) -> Result<R, Halt> + Sync,
        consumer: &mut C,
    ) -> Result<(), Halt> {
        // 1. What threads share: the next run, the results that are done, and whether to stop.
        let runs = runs(texts, threads)?;
        let next = AtomicUsize::new(0);
        let take = || runs.get(next.fetch_add(1, Ordering::Relaxed));
        let done = Mutex::new(Vec::new());
        let more = Condvar::new();
        let stopped = AtomicBool::new(false);
        // A thread that panics must not leave this one waiting.
        let failed = AtomicBool::new(false);
        let lock = || done.lock().unwrap_or_else(PoisonError::into_inner);
        // 2. What the other threads do, until no run is left.
        let go_on = || if stopped.load(Ordering::Relaxed) { Err(Halt::Stopped) } else { Ok(()) };
        let encode = |run: &Range<usize>, check: Check| {
            let result = self.with_scratch(|scratch| work(run.clone(), check, scratch));
            (run.start, result.and_then(|result| result))
        };
        let worker = || {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                while let Some(run) = take() {
                    let result = encode(run, &go_on);
                    lock().push(result);
                    more.notify_one();
                }
            }));
            if let Err(panic) = outcome {
                let guard = lock(); // or the consumer might check, be notified, and only then begin to wait
                failed.store(true, Ordering::Release);
                drop(guard);
                more.notify_one();
                resume_unwind(panic);
            }
        };
        // 3. What this thread does: hand over what is done, or do a run, or wait.
        let wait = || {
            let mut done = lock();
            while done.is_empty() && !failed.load(Ordering::Acquire) {
                done = more.wait_timeout(done, WAIT).unwrap_or_else(PoisonError::into_inner).0;
                check()?;
            }
            Ok(done.pop())
        };
        let mut hand_over = || {
            let mut left = runs.len();
            while left > 0 {
                let mut results = std::mem::take(&mut *lock());
                if results.is_empty() {
                    results.extend(consumer.meanwhile(|| match take() {
                        Some(run) => Ok(Some(encode(run, check))),
                        None => wait(),
                    })?);
                    if results.is_empty() {
                        return Ok(()); // the scope passes the panic on
                    }
                }
                left -= results.len();
                for (first, result) in results {
                    if !consumer.take(first, result?) {
                        return Err(Halt::Stopped);
                    }
                }
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads = threads.min(runs.len());
            for _ in 1..if threads > 1 && may_start_threads() { threads } else { 1 } {
                // If no thread can be started, this one does everything.
                let _ = std::thread::Builder::new().spawn_scoped(scope, worker);
            }
            let outcome = hand_over();
            if outcome.is_err() {
                next.store(runs.len(), Ordering::Relaxed); // no more runs are begun
                stopped.store(true, Ordering::Relaxed);
            }
            outcome
        })
    }
}
