//! The core's errors as Python exceptions. This is the only place that maps them.

use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyOverflowError, PyValueError};
use pyo3::PyErr;

use cpbpe::{Error, Halt};

/// The exception for an error of the core, with its message.
pub fn exception(error: Error) -> PyErr {
    match error {
        // Only an exception in the watching thread stops the work, and that exception is raised instead of this one.
        Error::Stopped => PyKeyboardInterrupt::new_err(()),
        Error::OutOfMemory => PyMemoryError::new_err(error.to_string()),
        Error::CountOverflow | Error::BytesOverflow | Error::TextTooLong => PyOverflowError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}

/// The same for work that was stopped.
pub fn halted(halt: Halt) -> PyErr {
    exception(halt.into())
}
