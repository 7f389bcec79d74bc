//! The classes `Finder` and `Splitter`, which find places in text without a model.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use cpbpe::memory::{collected, Grow};
use cpbpe::{Batch, Error};

use crate::arrays;
use crate::errors::{exception, halted};
use crate::signals::run;
use crate::values::{bytes, bytes_of, int, list, string, utf8};

/// Finds keys in text, such as special tokens: from left to right, the longest key at each place.
#[pyclass(frozen, module = "cpbpe._core")]
pub struct Finder(cpbpe::Finder);

#[pymethods]
impl Finder {
    #[new]
    fn new(py: Python<'_>, keys: &Bound<'_, PyList>) -> PyResult<Finder> {
        let keys = bytes_of(keys)?;
        let keys = collected(keys.iter().map(|key| key.as_bytes())).map_err(halted)?;
        let finder = py.detach(|| cpbpe::Finder::new(&keys));
        finder.map(Finder).map_err(exception)
    }

    /// The text before a key, the key's number, the text after it, and so on. None if the text contains no key.
    #[pyo3(signature = (text, /))]
    fn split<'py>(&self, py: Python<'py>, text: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyList>>> {
        let (data, valid) = utf8(text)?;
        let matches = run(py, data.len(), |check| self.0.find_all(data, check))?;
        if matches.is_empty() {
            return Ok(None);
        }
        let part = |part: &[u8]| Ok(if valid { string(py, part)?.into_any() } else { bytes(py, part)?.into_any() });
        let mut done = 0;
        let parts = list(py, 0..2 * matches.len() + 1, |number| match matches.get(number / 2) {
            None => part(&data[done..]),
            Some(matched) if number % 2 == 0 => part(&data[done..matched.begin]),
            Some(matched) => {
                done = matched.end;
                Ok(int(py, matched.key)?.into_any())
            }
        })?;
        Ok(Some(parts))
    }
}

/// Splits text by a pattern of byte-level BPE, and by further patterns, each of which cuts the chunks of the one before
/// it.
#[pyclass(frozen, module = "cpbpe._core")]
pub struct Splitter(cpbpe::Splitter);

#[pymethods]
impl Splitter {
    #[new]
    #[pyo3(signature = (pattern, /, *then))]
    fn new(pattern: &str, then: Vec<String>) -> PyResult<Splitter> {
        cpbpe::Splitter::of_all(pattern, &then).map(Splitter).map_err(exception)
    }

    /// Whether the pattern is one of those for which there is a fast scanner.
    #[getter]
    fn has_scanner(&self) -> bool {
        self.0.has_scanner()
    }

    /// Where each chunk begins and ends in the text as UTF-8: an array with a row for each chunk.
    #[pyo3(signature = (text, /))]
    fn spans<'py>(&self, py: Python<'py>, text: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        arrays::prepare(py)?;
        let text = text.to_str()?;
        let spans = run(py, text.len(), |check| {
            let (mut chunks, mut batch, mut spans) = (self.0.chunks(text), Batch::default(), Vec::<[i64; 2]>::new());
            while chunks.next(&mut batch)? {
                check()?;
                spans.grow(batch.ends().len())?;
                spans.extend(batch.spans().map(|span| span.map(|place| place as i64)));
            }
            Ok::<_, Error>(spans)
        })?;
        Ok(arrays::joined_pairs(py, &[&spans], 1)?.into_any())
    }
}
