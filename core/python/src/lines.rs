//! Ids as lines of text, and back.

use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use cpbpe::memory::{collected, copied, with_room};
use cpbpe::{decimal, ReadIds};

use crate::arrays;
use crate::errors::{exception, halted};
use crate::signals::{run, DETACH};
use crate::values::{bytes, bytes_of, int, items_of, texts_of, tuple};

/// Writes ids as lines of words.
#[pyclass(frozen, module = "cpbpe._core")]
pub struct LineWriter(cpbpe::LineWriter);

#[pymethods]
impl LineWriter {
    #[new]
    fn new(words: &Bound<'_, PyList>, between: &[u8], before: &[u8], after: &[u8]) -> PyResult<LineWriter> {
        let words = bytes_of(words)?;
        let words = collected(words.iter().map(|word| word.as_bytes())).map_err(halted)?;
        cpbpe::LineWriter::new(&words, between, before, after).map(LineWriter).map_err(exception)
    }

    /// Write a line for each text. `others` are words to be written instead of those of the ids at some positions.
    fn write<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyArray1<u32>>,
        offsets: &Bound<'py, PyArray1<i64>>,
        others: Vec<(usize, Bound<'py, PyBytes>)>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (ids, ends) = rows(ids, offsets)?;
        let others = collected(others.iter().map(|(place, word)| (*place, word.as_bytes()))).map_err(halted)?;
        let lines = run(py, DETACH, |check| self.0.write(&ids, &ends, &others, check))?;
        bytes(py, &lines)
    }
}

/// The ids in lines of decimal digits; where each line begins, followed by the end of the last one; and the place of
/// the first word that is no id, or None.
#[pyfunction]
pub fn read_ids<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyTuple>> {
    arrays::prepare(py)?;
    let read = run(py, data.len(), |check| cpbpe::read_ids(data, check, decimal))?;
    columns(py, &read)
}

/// The index of the first of these texts that is not UTF-8.
#[pyfunction]
pub fn first_not_utf8(py: Python<'_>, texts: &Bound<'_, PyList>) -> PyResult<Option<usize>> {
    let kept = items_of(texts)?;
    let texts = texts_of(&kept)?;
    Ok(py.detach(|| texts.iter().position(|text| std::str::from_utf8(text.0).is_err())))
}

/// The ids, and where each sequence of them ends. It is checked that these ends are within the ids.
pub fn rows(ids: &Bound<'_, PyArray1<u32>>, offsets: &Bound<'_, PyArray1<i64>>) -> PyResult<(Vec<u32>, Vec<usize>)> {
    // SAFETY: what follows only copies them. (The results of calls are not changed while others use them.) What is
    // checked below are the copies.
    let (all, offsets) = unsafe { (ids.as_slice()?, offsets.as_slice()?) };
    let (ids, offsets) = (copied(all).map_err(halted)?, copied(offsets).map_err(halted)?);
    let mut ends = with_room(offsets.len()).map_err(halted)?;
    let mut begin = 0;
    for &offset in offsets.iter().skip(1) {
        let end = usize::try_from(offset).ok().filter(|&end| begin <= end && end <= ids.len());
        begin = end.ok_or_else(|| PyValueError::new_err("offsets must ascend, and end within the ids"))?;
        ends.push(begin);
    }
    Ok((ids, ends))
}

pub fn columns<'py>(py: Python<'py>, read: &ReadIds) -> PyResult<Bound<'py, PyTuple>> {
    let mut begin = 0;
    let lengths = read.ends.iter().map(|&end| end - std::mem::replace(&mut begin, end));
    let ids = arrays::array(py, &read.ids)?.into_any();
    let offsets = arrays::offsets(py, read.ends.len(), lengths)?.into_any();
    let wrong = match read.wrong {
        Some(place) => int(py, place)?.into_any(),
        None => py.None().into_bound(py),
    };
    tuple(py, [ids, offsets, wrong])
}
