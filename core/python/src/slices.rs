//! Texts that are slices of one piece of memory, as Arrow's columns have them: no object of Python for any of them.

use numpy::{Element, PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use cpbpe::memory::with_room;
use cpbpe::{AlignOptions, Ends, Texts};

use crate::aligned::dropout_of;
use crate::arrays;
use crate::engine::Engine;
use crate::errors::halted;
use crate::values::{results, tuple};

/// Slices of an array of bytes, to be encoded by an engine.
#[pyclass(frozen, module = "cpbpe._core")]
pub struct Slices {
    engine: Py<Engine>,
    /// The bytes of all texts.
    data: Py<PyArray1<u8>>,
    /// Where each text begins, and where it ends: arrays of int32, or of int64.
    places: [Py<PyAny>; 2],
}

/// The numbers of an array; `None` if it has others.
fn numbers<'a, T: Element>(array: &'a Bound<'_, PyAny>) -> PyResult<Option<&'a [T]>> {
    let Ok(array) = array.cast::<PyArray1<T>>() else { return Ok(None) };
    // SAFETY: Arrow's buffers do not change, and everything that is given one relies on it. What is read of these is
    // checked where it is used: a slice that is not within the memory, and bytes that are not UTF-8.
    Ok(Some(unsafe { array.as_slice()? }))
}

impl Slices {
    pub fn new(engine: Py<Engine>, data: Bound<'_, PyArray1<u8>>, places: [Bound<'_, PyAny>; 2]) -> PyResult<Slices> {
        let made = Slices { engine, data: data.clone().unbind(), places: places.map(Bound::unbind) };
        made.with_texts(data.py(), |_| Ok(()))?;
        Ok(made)
    }

    /// Do something with the texts.
    fn with_texts<R>(&self, py: Python<'_>, work: impl FnOnce(&dyn Texts) -> PyResult<R>) -> PyResult<R> {
        let data = self.data.bind(py).as_any();
        let data = numbers::<u8>(data)?.unwrap_or_default();
        let [begins, ends] = self.places.each_ref().map(|places| places.bind(py));
        let texts = if let (Some(begins), Some(ends)) = (numbers::<i32>(begins)?, numbers::<i32>(ends)?) {
            cpbpe::Slices::new(data, begins, ends).map(|texts| Box::new(texts) as Box<dyn Texts>)
        } else if let (Some(begins), Some(ends)) = (numbers::<i64>(begins)?, numbers::<i64>(ends)?) {
            cpbpe::Slices::new(data, begins, ends).map(|texts| Box::new(texts) as Box<dyn Texts>)
        } else {
            return Err(PyTypeError::new_err("begins and ends must be arrays of int32, or of int64"));
        };
        work(&*texts.ok_or_else(|| PyValueError::new_err("each text must begin and end within the data"))?)
    }
}

#[pymethods]
impl Slices {
    /// `Engine.encode_arrays` of them.
    #[pyo3(signature = (threads, front = None, back = None, reverse = false))]
    fn encode<'py>(
        &self,
        py: Python<'py>,
        threads: usize,
        front: Option<u32>,
        back: Option<u32>,
        reverse: bool,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let ends = Ends { front, back, reverse };
        let (ids, offsets) = self.with_texts(py, |texts| self.engine.get().ids_of_texts(py, texts, threads, ends))?;
        tuple(py, [ids, offsets])
    }

    /// `Engine.count_batch` of them, as an array.
    fn count<'py>(&self, py: Python<'py>, threads: usize) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let engine = &self.engine.get().engine;
        let count = |texts: &dyn Texts| results(py, |parts, check| engine.count_batch(texts, threads, check, parts));
        let parts = self.with_texts(py, count)?;
        let mut counts = with_room(parts.iter().map(Vec::len).sum()).map_err(halted)?;
        counts.extend(parts.iter().flatten().map(|&count| count as i64));
        arrays::array(py, &counts)
    }

    /// `Engine.align_arrays` of them.
    #[pyo3(signature = (threads, chars, alpha = None, seed = 0))]
    fn align<'py>(
        &self,
        py: Python<'py>,
        threads: usize,
        chars: Option<bool>,
        alpha: Option<f64>,
        seed: u64,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let options = AlignOptions { characters: chars, dropout: dropout_of(alpha, seed) };
        self.with_texts(py, |texts| self.engine.get().aligned_arrays(py, texts, threads, options))
    }
}
