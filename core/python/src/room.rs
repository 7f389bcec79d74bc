//! Arrays whose numbers are written to their final place while it is not known yet how many there will be.

use std::slice::from_raw_parts_mut;

use numpy::ndarray::Dimension;
use numpy::npyffi::{PyArray_Dims, NPY_ORDER, PY_ARRAY_API};
use numpy::{Element, PyArray, PyArray1, PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PySlice;

use cpbpe::{GatheredTexts, Target};

use crate::arrays::{joined, joined_pairs, length, new_pairs, new_row};

/// Arrays of at least this many bytes get memory of their own from the system. (glibc's allocator does not raise its
/// threshold beyond this size.)
const LARGE: usize = 1 << 25;

/// Room for the ids of many texts, and for their spans if these are asked for. It is empty until `make` is called.
#[derive(Default)]
pub struct Room {
    ids: Option<Py<PyArray1<u32>>>,
    spans: Option<Py<PyArray2<i64>>>,
}

impl Room {
    /// Make room for this many ids; `None` if there is no memory for it.
    pub fn make<'p>(&mut self, py: Python<'_>, count: usize, with_spans: bool) -> Option<Target<'p>> {
        let ids = new_row::<u32>(py, count).ok()?;
        let spans = if with_spans { Some(new_pairs(py, count).ok()?) } else { None };
        // SAFETY: the arrays are new, so nobody else looks at them, and have this many numbers. The caller keeps the
        // room until the target has been used. (The two numbers of a row are side by side.)
        let target = unsafe {
            let pairs = spans.as_ref().map_or(&mut [][..], |spans| from_raw_parts_mut(spans.data().cast(), count));
            Target { ids: from_raw_parts_mut(ids.data().cast(), count), spans: pairs }
        };
        *self = Room { ids: Some(ids.unbind()), spans: spans.map(Bound::unbind) };
        Some(target)
    }

    /// All ids: those that were written to the room, and the rest.
    pub fn ids<'py>(&self, py: Python<'py>, all: &GatheredTexts, threads: usize) -> PyResult<Bound<'py, PyAny>> {
        let array = self.ids.as_ref().map(|ids| ids.bind(py));
        let rest = all.rest.iter().map(|run| &run.ids[..]);
        whole(array, all.placed, rest, |parts| Ok(joined(py, parts, threads)?.into_any()))
    }

    /// All spans, a row for each.
    pub fn spans<'py>(&self, py: Python<'py>, all: &GatheredTexts, threads: usize) -> PyResult<Bound<'py, PyAny>> {
        let array = self.spans.as_ref().map(|spans| spans.bind(py));
        let rest = all.rest.iter().map(|run| &run.spans[..]);
        whole(array, all.placed, rest, |parts| Ok(joined_pairs(py, parts, threads)?.into_any()))
    }
}

/// The rows that have been written to an array, if there is one, followed by the rest.
fn whole<'a, 'py, R: 'a, T: Element, D: Dimension>(
    array: Option<&'a Bound<'py, PyArray<T, D>>>,
    written: usize,
    rest: impl ExactSizeIterator<Item = &'a [R]>,
    join: impl FnOnce(&[&[R]]) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    match array {
        Some(array) if rest.len() == 0 => shortened(array, written),
        Some(array) => join(&std::iter::once(first(array, written)).chain(rest).collect::<Vec<_>>()),
        None => join(&rest.collect::<Vec<_>>()),
    }
}

/// The first rows of an array, which have been written.
fn first<'a, R, T: Element, D: Dimension>(array: &'a Bound<'_, PyArray<T, D>>, count: usize) -> &'a [R] {
    assert!(count * size_of::<R>() <= array.len() * size_of::<T>(), "the array has room for them");
    // SAFETY: they have been written, and nobody else has seen the array.
    unsafe { std::slice::from_raw_parts(array.data().cast(), count) }
}

/// An array without the rows after the first `count`. The rows stay where they are.
///
/// Memory for a large array comes from the system, page by page, and returning the unused pages costs nothing. Memory
/// for other arrays comes from what the process already has, if an array of the same size was freed before: the
/// system's allocator learns that size. So for these the result is a view, which keeps the rest of the room, a
/// sixteenth. Returning that rest took a tenth of the time of the next calls, because their room did not fit into what
/// had been freed.
fn shortened<'py, T: Element, D: Dimension>(
    array: &Bound<'py, PyArray<T, D>>,
    count: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let rows = array.shape()[0];
    assert!(count <= rows, "an array does not grow");
    let mut dimensions = [length(count)?, 2];
    if array.len() * size_of::<T>() < LARGE && rows - count <= rows / 8 {
        return array.as_any().get_item(PySlice::new(array.py(), 0, dimensions[0], 1));
    }
    let mut shape = PyArray_Dims { ptr: dimensions.as_mut_ptr(), len: array.ndim() as _ };
    // SAFETY: numpy's function for this reads the shape, and returns None, or null with an error set. Nobody else has
    // seen the array, so numpy need not look for references to it.
    unsafe {
        let none =
            PY_ARRAY_API.PyArray_Resize(array.py(), array.as_array_ptr(), &mut shape, 0, NPY_ORDER::NPY_ANYORDER);
        Bound::from_owned_ptr_or_err(array.py(), none)?;
    }
    Ok(array.clone().into_any())
}
