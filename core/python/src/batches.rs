//! Many texts at once as arrays of ids: texts in a list, or the lines of one text.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use cpbpe::{Ends, Lines};

use crate::arrays;
use crate::engine::Engine;
use crate::errors::halted;
use crate::values::{results, tuple};

type Columns<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

impl Engine {
    /// The ids of all texts, and where each text begins, and the end.
    pub fn ids_of_texts<'py>(
        &self,
        py: Python<'py>,
        texts: &[(&[u8], bool)],
        threads: usize,
        ends: Ends,
    ) -> PyResult<Columns<'py>> {
        let parts = results(py, |parts, check| self.engine.encode_batch(texts, threads, ends, check, parts))?;
        let ids: Vec<&[u32]> = parts.iter().map(|part| part.ids.as_slice()).collect();
        let lengths = parts.iter().flat_map(|part| part.lengths.iter().copied());
        let (ids, offsets) = (arrays::joined(py, &ids, threads)?, arrays::offsets(py, texts.len(), lengths)?);
        Ok((ids.into_any(), offsets.into_any()))
    }

    /// The same of the lines that are not empty; and the numbers of those that are.
    pub fn ids_of_lines<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyBytes>,
        threads: usize,
        ends: Ends,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let data = data.as_bytes();
        let lines = py.detach(|| Lines::of(data)).map_err(halted)?;
        let (ids, offsets) = self.ids_of_texts(py, &lines.texts, threads, ends)?;
        tuple(py, [ids, offsets, arrays::array(py, &lines.empty)?.into_any()])
    }
}
