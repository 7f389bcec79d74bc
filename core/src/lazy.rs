//! A value that is made when it is first needed, without anybody ever waiting for it.
//!
//! `OnceLock` makes others wait while one thread makes the value. When the process is forked at that moment, the
//! thread does not exist in the child, and the child waits forever.

use std::sync::{Arc, RwLock};

/// See the top of this file.
pub struct Lazy<T>(RwLock<Option<Arc<T>>>);

impl<T> Lazy<T> {
    /// The value. Two threads at once may make one each; the later one is thrown away.
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> Arc<T> {
        // Nobody holds the lock for longer than it takes to look, or to put the value there. Where it cannot be had (in a
        // child of a fork at that very moment, never) the value is made again.
        if let Ok(Some(found)) = self.0.try_read().as_deref() {
            return found.clone();
        }
        let made = Arc::new(make());
        match self.0.try_write() {
            Ok(mut place) => place.get_or_insert(made).clone(),
            Err(_) => made,
        }
    }
}

impl<T> Default for Lazy<T> {
    fn default() -> Self {
        Lazy(RwLock::new(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_once_and_never_waited_for() {
        let lazy = Lazy::default();
        let inner = lazy.get_or_make(|| {
            // While one is being made another one is made, instead of waiting.
            assert_eq!(*lazy.get_or_make(|| 1), 1);
            2
        });
        assert_eq!((*inner, *lazy.get_or_make(|| 3)), (1, 1));
        let guard = lazy.0.write();
        assert_eq!(*lazy.get_or_make(|| 4), 4);
        drop(guard);
    }
}
