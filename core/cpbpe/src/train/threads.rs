//! Threads for one call: all of them have ended when it returns.

use crate::watch;

/// Once in this many steps, loops ask their monitor whether to go on.
pub const CHECK_INTERVAL: usize = 1 << 16;

/// Do the work for each item in a thread, as `watch::in_threads` does. Nobody has to be woken up: the thread that
/// started the training reports progress and stops the work (see `watch.rs`).
pub fn in_threads<I: Send, T: Send>(items: impl IntoIterator<Item = I>, work: impl Fn(I) -> T + Sync) -> Vec<T> {
    watch::in_threads(items, || (), work)
}
