//! From Python's text to Python's normalized text.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

use cpbpe::memory::with_room;

use crate::engine::Engine;
use crate::errors::halted;
use crate::signals::run;
use crate::values::{bytes, escaped_string, int, items_of, list, str_of, string, tuple, utf8};

/// A longer text is not written in wide characters, which take four times the memory.
const MAX_WIDE: usize = 1 << 16;
/// Signals are checked once in this many texts.
const CHECK_TEXTS: usize = 1 << 10;

impl Engine {
    /// The normalized text as bytes.
    pub fn normalized_bytes<'py>(&self, py: Python<'py>, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let input = utf8(text)?;
        bytes(py, &run(py, input.0.len(), |check| self.engine.normalize(input, check))?)
    }

    /// The same, and where each of its bytes and its end came from.
    pub fn normalized_with_origins<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let (text, _) = utf8(text)?;
        let (normalized, origins) = run(py, text.len(), |check| self.engine.origins(text, check))?;
        let origins = list(py, origins.into_iter(), |origin| int(py, origin))?;
        tuple(py, [bytes(py, &normalized)?.into_any(), origins.into_any()])
    }

    /// The normalized text as str. `strict`: one that is not UTF-8 is an error.
    pub fn normalized<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        strict: bool,
    ) -> PyResult<Bound<'py, PyString>> {
        let (text, valid) = utf8(text)?;
        if text.len() <= MAX_WIDE && text.is_ascii() {
            let compact = run(py, text.len(), |check| self.engine.normalize_compact(text, check))?;
            if let Some(compact) = compact.filter(|compact| compact.is_ascii()) {
                return escaped_string(py, &compact);
            }
        }
        let normalized = run(py, text.len(), |check| self.engine.normalize((text, valid), check))?;
        if strict {
            str_of(py, &normalized)
        } else {
            string(py, &normalized)
        }
    }

    /// The normalized texts, each of the type it was given as; `None` if one is neither an exact str nor exact bytes.
    pub fn normalized_all<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyList>,
        strict: bool,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        let texts = items_of(texts)?;
        let mut normalized = with_room(texts.len()).map_err(halted)?;
        for (number, text) in texts.iter().enumerate() {
            if number % CHECK_TEXTS == CHECK_TEXTS - 1 {
                py.check_signals()?;
            }
            normalized.push(if text.is_exact_instance_of::<PyString>() {
                self.normalized(py, text, strict)?.into_any()
            } else if text.is_exact_instance_of::<PyBytes>() {
                self.normalized_bytes(py, text)?.into_any()
            } else {
                return Ok(None);
            });
        }
        list(py, normalized.into_iter(), Ok).map(Some)
    }
}
