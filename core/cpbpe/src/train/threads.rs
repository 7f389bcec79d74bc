//! Threads for one call: all of them have ended when it returns.

use crate::watch;

/// Loops ask their monitor whether to go on once in this many steps.
pub const CHECK_INTERVAL: usize = 1 << 16;

/// Do the work for each item in a thread, as `watch::in_threads` does. Other threads report progress and stop the work.
pub fn in_threads<I: Send, T: Send>(items: impl IntoIterator<Item = I>, work: impl Fn(I) -> T + Sync) -> Vec<T> {
    watch::in_threads(items, || (), work)
}
