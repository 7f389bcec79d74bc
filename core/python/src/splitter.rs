//! Patterns that split texts.

use pyo3::prelude::*;
use pyo3::types::PyString;

use cpbpe::memory::Grow;
use cpbpe::{Batch, Error};

use crate::arrays;
use crate::errors::exception;
use crate::signals::run;

/// Splits text by a pattern of byte-level BPE, and by others that cut the chunks of those before.
#[pyclass(frozen, module = "cpbpe._core")]
pub struct Splitter(cpbpe::Splitter);

#[pymethods]
impl Splitter {
    #[new]
    #[pyo3(signature = (pattern, /, *then))]
    fn new(pattern: &str, then: Vec<String>) -> PyResult<Splitter> {
        cpbpe::Splitter::of_all(pattern, &then).map(Splitter).map_err(exception)
    }

    /// Whether the pattern is one of those that are split fast.
    #[getter]
    fn has_scanner(&self) -> bool {
        self.0.has_scanner()
    }

    /// Where each chunk begins and ends in the text as UTF-8: an array with a row for each.
    #[pyo3(signature = (text, /))]
    fn spans<'py>(&self, py: Python<'py>, text: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        arrays::prepare(py)?;
        let text = text.to_str()?;
        let spans = run(py, text.len(), |check| {
            let (mut chunks, mut batch, mut spans) = (self.0.chunks(text), Batch::new(), Vec::<[i64; 2]>::new());
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
