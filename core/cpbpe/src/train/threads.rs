//! Threads for one call: none outlives it.

/// Loops ask their monitor whether to go on once in this many steps.
pub const CHECK_INTERVAL: usize = 1 << 16;

/// Do the work with each item, with the first one here and with each other in a thread of its own. The results are in
/// the order of the items. If the work panics, so does this.
pub fn in_threads<I: Send, T: Send>(items: impl IntoIterator<Item = I>, work: impl Fn(I) -> T + Sync) -> Vec<T> {
    let mut items = items.into_iter();
    let Some(first) = items.next() else { return Vec::new() };
    std::thread::scope(|scope| {
        let work = &work;
        let others: Vec<_> = items.map(|item| scope.spawn(move || work(item))).collect();
        let mut results = vec![work(first)];
        for thread in others {
            results.push(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        results
    })
}
