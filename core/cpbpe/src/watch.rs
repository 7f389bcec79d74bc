//! Long work under supervision: it runs in a thread of its own, while the thread that started it wakes up now and then
//! to report progress, or to end the work. So the hot loops know nothing of signals, interpreters or progress bars;
//! they only record how much they have done and ask whether to go on.
//!
//! Starting a thread takes as long as encoding twenty thousand characters. So encoding, decoding and the like run in
//! the calling thread, and call a function now and then that says whether to go on (`Check`).

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicU8, Ordering};
use std::sync::mpsc::{sync_channel, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread::current;
use std::time::Duration;

use crate::error::Halt;
use crate::memory::probe;

/// Says whether to go on. Long work calls it after every few thousand steps; short work never does.
pub type Check<'a> = &'a (dyn Fn() -> Result<(), Halt> + Sync);

/// A check for work that is never stopped.
pub const NO_CHECK: Check<'static> = &|| Ok(());

/// Asks a check whether to go on, once in this many steps.
pub struct Checks<'a> {
    check: Check<'a>,
    every: usize,
    /// After how many steps to ask again.
    next: usize,
}

impl<'a> Checks<'a> {
    /// For work that has not begun yet.
    pub fn new(check: Check<'a>, every: usize) -> Checks<'a> {
        Checks { check, every, next: every }
    }

    /// Ask if it is time, when this many steps are done.
    #[inline]
    pub fn at(&mut self, done: usize) -> Result<(), Halt> {
        if done < self.next {
            return Ok(());
        }
        self.next = done + self.every;
        (self.check)()
    }
}

/// How many bytes must be available to start threads. A thread that gets no memory ends the process before it can
/// report that; its stack and the reserves of its allocator take up to 70 MiB of addresses.
const THREAD_ROOM: usize = 1 << 27;

/// Whether there is memory for threads. If not, the calling thread does their work.
pub fn may_start_threads() -> bool {
    probe(THREAD_ROOM).is_ok()
}

/// How often a thread that waits for others checks whether to go on.
pub const WAIT: Duration = Duration::from_millis(50);

/// Do the work for each item: for the first one here, for each other one in a thread of its own, or here if no thread
/// can be started. While this thread waits for the others, it calls `wake` again and again. The results are in the order
/// of the items. If the work panics, so does this function.
pub fn in_threads<I: Send, T: Send>(
    items: impl IntoIterator<Item = I>,
    mut wake: impl FnMut(),
    work: impl Fn(I) -> T + Sync,
) -> Vec<T> {
    let items: Vec<Mutex<Option<I>>> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
    let work = |item: &Mutex<Option<I>>| item.lock().unwrap_or_else(PoisonError::into_inner).take().map(&work);
    let Some((first, others)) = items.split_first() else { return Vec::new() };
    if others.is_empty() {
        return work(first).into_iter().collect(); // (nothing to wait for, and some machines cannot wait: WebAssembly)
    }
    let may_start = may_start_threads();
    let results = std::thread::scope(|scope| {
        // 1. Start the others. (Nothing is ever sent: the channel closes when all have ended.)
        let (alive, ended) = sync_channel::<()>(1);
        let work = &work;
        let start = |item| {
            let alive = alive.clone();
            let work = move || {
                let _alive = alive;
                work(item)
            };
            if may_start {
                std::thread::Builder::new().spawn_scoped(scope, work).ok()
            } else {
                None
            }
        };
        let threads: Vec<_> = others.iter().map(start).collect();
        drop(alive);
        // 2. Do the first item, and wait. Then do those for which there is no thread.
        let mut results = vec![work(first)];
        while ended.recv_timeout(WAIT) == Err(RecvTimeoutError::Timeout) {
            wake();
        }
        for (thread, item) in threads.into_iter().zip(others) {
            results.push(match thread {
                Some(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                None => work(item),
            });
        }
        results
    });
    results.into_iter().flatten().collect()
}

/// The same for work that may fail. Returns the first error, after which all threads stop. Only the work done here calls
/// the given check; if that says stop, all threads stop.
pub fn in_parts<I: Copy + Send + Sync, T: Send, E: From<Halt> + Send>(
    items: &[I],
    check: Check,
    work: impl Fn(I, Check) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let stopped = AtomicBool::new(false);
    let error = Mutex::new(None);
    let fail = |reason: E| {
        error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
        stopped.store(true, Ordering::Relaxed);
    };
    let others = || if stopped.load(Ordering::Relaxed) { Err(Halt::Stopped) } else { Ok(()) };
    let here = || others().and_then(|()| check());
    let own = current().id();
    let run = |item: I| work(item, if current().id() == own { &here } else { &others }).map_err(fail).ok();
    let wake = || here().unwrap_or_else(|halt| fail(halt.into()));
    let results = in_threads(items.iter().copied(), wake, run);
    match error.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(results.into_iter().flatten().collect()),
    }
}

/// The phases of learning merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LearnPhase {
    /// The characters of the words are counted.
    Characters,
    /// The text is written as symbols, and the pairs in it are counted.
    Pairs,
    /// Pairs are merged.
    Merges,
}

impl LearnPhase {
    const ALL: [LearnPhase; 3] = [LearnPhase::Characters, LearnPhase::Pairs, LearnPhase::Merges];

    /// The name that a progress function gets.
    pub fn name(self) -> &'static str {
        match self {
            LearnPhase::Characters => "characters",
            LearnPhase::Pairs => "pairs",
            LearnPhase::Merges => "merges",
        }
    }
}

/// How much of the work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgressReport {
    /// What is being done.
    pub phase: LearnPhase,
    /// How much of it is done, at most `total`.
    pub done: u64,
    /// How much there is to do in this phase.
    pub total: u64,
}

/// What the working threads and the watching one share: how much is done, and whether to end the work.
#[derive(Default)]
pub struct Monitor {
    /// Whether to end the work.
    stop: AtomicBool,
    /// What is being done: an index into `LearnPhase::ALL`.
    phase: AtomicU8,
    /// How much of it is done.
    done: AtomicU64,
    /// How much there is.
    total: AtomicU64,
}

impl Monitor {
    /// Ask the work to end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the work was asked to end.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Return `Halt::Stopped` if the work was asked to end. This is cheap, but not free: loops call it every few
    /// thousand steps.
    #[inline]
    pub fn check(&self) -> Result<(), Halt> {
        if self.is_stopped() {
            Err(Halt::Stopped)
        } else {
            Ok(())
        }
    }

    /// Begin a phase with `total` things to do.
    pub fn enter(&self, phase: LearnPhase, total: usize) {
        self.phase.store(phase as u8, Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total as u64, Ordering::Relaxed);
    }

    /// Record how many things of this phase are done, and check whether to go on.
    #[inline]
    pub fn advance(&self, done: usize) -> Result<(), Halt> {
        self.done.store(done as u64, Ordering::Relaxed);
        self.check()
    }

    /// How much of the work is done.
    pub fn progress(&self) -> ProgressReport {
        let phase = LearnPhase::ALL[usize::from(self.phase.load(Ordering::Relaxed))];
        let done = self.done.load(Ordering::Relaxed);
        let total = self.total.load(Ordering::Relaxed);
        // The three are read one after the other, so a new phase may begin in between.
        ProgressReport { phase, done: done.min(total), total }
    }
}

/// Do the work in another thread, and call `wake` here whenever another `interval` has passed. If `wake` returns an
/// error, the work is stopped, its result dropped, and the error returned. The work has to ask its monitor whether to
/// go on; this function waits until the work has ended. If the work panics, so does this function. If there is no
/// memory for a thread, the work is done here, without calling `wake`.
///
/// ```
/// use std::time::Duration;
/// use cpbpe::watch::watch;
///
/// let sum: Result<u64, ()> = watch(Duration::from_millis(100), |_| (1..=100).sum(), |_| Ok(()));
/// assert_eq!(sum, Ok(5050));
/// ```
pub fn watch<T: Send, E>(
    interval: Duration,
    work: impl FnOnce(&Monitor) -> T + Send,
    mut wake: impl FnMut(&Monitor) -> Result<(), E>,
) -> Result<T, E> {
    let monitor = &Monitor::default();
    if !may_start_threads() {
        return Ok(work(monitor));
    }
    std::thread::scope(|scope| {
        // Nothing is ever sent: the channel closes when the work has ended, however it ends.
        let (alive, ended) = sync_channel::<()>(1);
        let worker = scope.spawn(move || {
            let _alive = alive;
            work(monitor)
        });
        while ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
            if let Err(error) = wake(monitor) {
                monitor.stop();
                let _ = worker.join();
                return Err(error);
            }
        }
        Ok(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    const SOON: Duration = Duration::from_millis(1);

    /// Work that ends only when it is stopped.
    fn until_stopped(monitor: &Monitor) -> Halt {
        monitor.enter(LearnPhase::Merges, 9);
        loop {
            if let Err(error) = monitor.advance(5) {
                return error;
            }
            std::thread::yield_now();
        }
    }

    /// All threads end when the check says so, whether it is the work done here that takes long, or that of another
    /// thread.
    #[test]
    fn parts_end_when_they_should() {
        for long in [0, 1] {
            let begin = Instant::now();
            let work = |item: usize, check: Check| {
                while item == long && begin.elapsed() < SOON * 10_000 {
                    check()?;
                    std::thread::sleep(SOON);
                }
                Ok::<_, Halt>(item)
            };
            let check = || if begin.elapsed() < SOON * 20 { Ok(()) } else { Err(Halt::Stopped) };
            assert_eq!(in_parts(&[0, 1], &check, work), Err(Halt::Stopped), "{long}");
            assert!(begin.elapsed() < SOON * 5_000);
        }
    }

    #[test]
    fn the_watcher_sees_progress_and_may_end_the_work() {
        let mut seen = Vec::new();
        let outcome = watch(SOON, until_stopped, |monitor| {
            seen.push(monitor.progress());
            if seen.last().is_some_and(|progress| progress.done == 5) {
                Err("enough")
            } else {
                Ok(())
            }
        });
        assert_eq!(outcome, Err("enough"));
        assert_eq!(seen.last(), Some(&ProgressReport { phase: LearnPhase::Merges, done: 5, total: 9 }));
        assert_eq!(LearnPhase::ALL.map(|phase| phase as usize), [0, 1, 2]);
    }

    #[test]
    fn results_come_back_however_often_the_watcher_wakes() {
        let slow = |_: &Monitor| {
            std::thread::sleep(SOON * 20);
            7
        };
        let mut times = 0;
        let wake = |_: &Monitor| -> Result<(), ()> {
            times += 1;
            Ok(())
        };
        assert_eq!(watch(SOON, slow, wake), Ok(7));
        assert!(times > 0);
        assert_eq!(watch(Duration::from_secs(100), |_| 8, |_| Err(())), Ok(8));
    }

    #[test]
    #[should_panic(expected = "inside")]
    fn a_panic_of_the_work_is_passed_on() {
        let _ = watch(SOON, |_| panic!("inside"), |_| Ok::<(), ()>(()));
    }
}
