//! The finder of keys, such as special tokens.

use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::errors::exception;
use crate::signals::run;
use crate::values::{bytes, bytes_of, int, list, string, utf8};

/// Finds keys in text: the longest at each place, from left to right.
#[pyclass(frozen, module = "cpbpe._core")]
pub struct Finder(cpbpe::Finder);

#[pymethods]
impl Finder {
    #[new]
    pub fn new(py: Python<'_>, keys: &Bound<'_, PyList>) -> PyResult<Finder> {
        let keys = bytes_of(keys)?;
        let keys: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes()).collect();
        let finder = py.detach(|| cpbpe::Finder::new(&keys));
        finder.map(Finder).map_err(exception)
    }

    /// The text before a key, the key's number, the text after it, and so on; None if the text holds no key.
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
