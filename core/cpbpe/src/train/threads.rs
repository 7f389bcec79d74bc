//! Threads for one call: all of them have ended when it returns.

use std::sync::{Mutex, PoisonError};

use crate::watch::may_start_threads;

/// Loops ask their monitor whether to go on once in this many steps.
pub const CHECK_INTERVAL: usize = 1 << 16;

/// Do the work for each item: for the first one here, for each other one in a thread of its own, or here if no thread
/// can be started. The results are in the order of the items. If the work panics, so does this function.
pub fn in_threads<I: Send, T: Send>(items: impl IntoIterator<Item = I>, work: impl Fn(I) -> T + Sync) -> Vec<T> {
    let items: Vec<Mutex<Option<I>>> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
    let work = |item: &Mutex<Option<I>>| item.lock().unwrap_or_else(PoisonError::into_inner).take().map(&work);
    let Some((first, others)) = items.split_first() else { return Vec::new() };
    let may_start = !others.is_empty() && may_start_threads();
    let results = std::thread::scope(|scope| {
        let work = &work;
        let start = |item| {
            let thread = std::thread::Builder::new();
            if may_start {
                thread.spawn_scoped(scope, move || work(item)).ok()
            } else {
                None
            }
        };
        let threads: Vec<_> = others.iter().map(start).collect();
        let mut results = vec![work(first)];
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
