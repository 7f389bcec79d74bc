//! Many texts at once as arrays of ids: texts in a list, or the lines of one text.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use cpbpe::{Ends, Lines, Texts};

use crate::arrays;
use crate::engine::Engine;
use crate::errors::halted;
use crate::room::Room;
use crate::signals::{run, DETACH};
use crate::values::tuple;

type Columns<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

impl Engine {
    /// The ids of all texts, and where each text begins, and the end.
    pub fn ids_of_texts<'py>(
        &self,
        py: Python<'py>,
        texts: &(impl Texts + ?Sized),
        threads: usize,
        ends: Ends,
    ) -> PyResult<Columns<'py>> {
        let mut room = Room::default();
        let make = |count| Python::attach(|py| room.make(py, count, false));
        let all = run(py, DETACH, |check| self.engine.gather_batch(texts, threads, ends, check, make))?;
        let ids = room.ids(py, &all, threads)?;
        Ok((ids, arrays::offsets(py, texts.count(), all.lengths.into_iter())?.into_any()))
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
