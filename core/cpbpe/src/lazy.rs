//! A value that is made when it is first needed, without any thread ever waiting for it.
//!
//! `OnceLock::get_or_init` makes other threads wait while one makes the value. If the process is forked at that moment,
//! the thread that makes it does not exist in the child, and the child waits forever.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::OnceLock;

/// See the top of this file.
pub struct Lazy<T> {
    value: OnceLock<T>,
    /// Some thread is storing the value, or has done so. No other thread may try to: it would wait for the first.
    taken: AtomicBool,
}

/// The value of a `Lazy`.
pub enum Made<'a, T> {
    Kept(&'a T),
    /// A value of the caller's own: another thread is about to store its value, and has not done so yet.
    Own(T),
}

impl<T> Lazy<T> {
    /// The value. Several threads at once may make one each; the first to be stored is kept.
    pub fn get_or_make<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<Made<'_, T>, E> {
        if let Some(kept) = self.value.get() {
            return Ok(Made::Kept(kept));
        }
        let value = make()?;
        if !self.taken.swap(true, Ordering::AcqRel) {
            return Ok(Made::Kept(self.value.get_or_init(|| value)));
        }
        Ok(match self.value.get() {
            Some(kept) => Made::Kept(kept),
            None => Made::Own(value),
        })
    }
}

impl<T> Deref for Made<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Made::Kept(value) => value,
            Made::Own(value) => value,
        }
    }
}

impl<T> Default for Lazy<T> {
    fn default() -> Self {
        Lazy { value: OnceLock::new(), taken: AtomicBool::new(false) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(lazy: &Lazy<i32>, make: impl FnOnce() -> i32) -> i32 {
        lazy.get_or_make(|| Ok::<_, ()>(make())).map_or(0, |made| *made)
    }

    #[test]
    fn made_once_and_never_waited_for() {
        let lazy = Lazy::default();
        assert_eq!(lazy.get_or_make(|| Err("none")).err(), Some("none"));
        let inner = made(&lazy, || {
            // While one value is being made, another one is made instead of waiting.
            assert_eq!(made(&lazy, || 1), 1);
            2
        });
        assert_eq!((inner, made(&lazy, || 3)), (1, 1));
    }

    #[test]
    fn in_the_child_of_a_fork_while_it_is_put_there() {
        let lazy = Lazy::default();
        lazy.taken.store(true, Ordering::Release);
        assert_eq!((made(&lazy, || 4), made(&lazy, || 5)), (4, 5));
    }
}
