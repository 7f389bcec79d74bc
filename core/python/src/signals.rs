//! Ctrl-C during long calls. The work, during which other threads may use the interpreter, asks now and then whether to
//! go on. Then signals are checked, and an exception of their handlers ends the call.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use cpbpe::watch::{Check, NO_CHECK};
use cpbpe::{Error, Halt};

use crate::errors::exception;

/// From this size on, the interpreter is released for other threads during the work. Below it, releasing the
/// interpreter costs more than they could gain.
pub const DETACH: usize = 1 << 12;
/// How often signals are checked. A check needs the interpreter, which another thread may keep for 5 milliseconds.
const INTERVAL: Duration = Duration::from_millis(50);

/// Checks for signals during one call.
pub struct Signals {
    begin: Instant,
    /// When signals were last checked, in nanoseconds from the beginning of the call.
    looked: AtomicU64,
    /// The exception that a signal handler raised.
    raised: Mutex<Option<PyErr>>,
}

impl Signals {
    pub fn new() -> Signals {
        Signals { begin: Instant::now(), looked: AtomicU64::new(0), raised: Mutex::new(None) }
    }

    /// Whether to go on.
    pub fn check(&self) -> Result<(), Halt> {
        let now = self.begin.elapsed();
        if now < INTERVAL + Duration::from_nanos(self.looked.load(Ordering::Relaxed)) {
            return Ok(());
        }
        let outcome = Python::attach(|py| py.check_signals());
        self.looked.store(self.begin.elapsed().as_nanos() as u64, Ordering::Relaxed);
        outcome.map_err(|raised| {
            *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(raised);
            Halt::Stopped
        })
    }

    /// The result of the work, or the exception that was raised.
    pub fn finish<T, E>(self, result: Result<T, E>) -> PyResult<T>
    where
        Error: From<E>,
    {
        match self.raised.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(raised) => Err(raised),
            None => result.map_err(|error| exception(error.into())),
        }
    }
}

/// Do work for this many bytes or ids. If there are many, release the interpreter, and stop on Ctrl-C.
pub fn run<T: Send, E: Send>(
    py: Python<'_>,
    size: usize,
    work: impl FnOnce(Check) -> Result<T, E> + Send,
) -> PyResult<T>
where
    Error: From<E>,
{
    if size < DETACH {
        return work(NO_CHECK).map_err(|error| exception(error.into()));
    }
    let signals = Signals::new();
    let result = py.detach(|| work(&|| signals.check()));
    signals.finish(result)
}
