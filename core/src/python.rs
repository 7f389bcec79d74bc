//! The border to Python, and the only file that knows it. What crosses is str, bytes, lists of int, and buffers
//! of u32 as bytes. Checking types, and what to say about wrong ones, is the business of `cpbpe/tokenizer.py`.

use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList, PyString};

use crate::engine;

/// From this size on the interpreter is free for others while we work. Below, giving it up costs more than
/// anyone could gain.
const DETACH: usize = 1 << 12;

/// Python's int for every id, made when first needed: ids repeat, and counting up a reference is less work
/// than making an int.
struct Ints(Box<[AtomicPtr<ffi::PyObject>]>);

impl Ints {
    fn new(count: usize) -> Ints {
        Ints((0..count).map(|_| AtomicPtr::new(std::ptr::null_mut())).collect())
    }

    /// A list of ids, all of which are below the count.
    fn list<'py>(&self, py: Python<'py>, ids: &[u32]) -> PyResult<Bound<'py, PyList>> {
        let length = ffi::Py_ssize_t::try_from(ids.len()).map_err(|_| PyValueError::new_err("too many ids"))?;
        // SAFETY: the list is new and ours; it has `length` places, each of which gets one reference that we own.
        // The safe interface asks and checks more for each id.
        unsafe {
            let list = Bound::from_owned_ptr_or_err(py, ffi::PyList_New(length))?;
            for (i, &id) in (0..).zip(ids) {
                let place = &self.0[id as usize];
                let mut int = place.load(Ordering::Acquire);
                if int.is_null() {
                    int = Self::make(py, place, id)?;
                }
                ffi::Py_INCREF(int);
                ffi::PyList_SetItem(list.as_ptr(), i, int);
            }
            Ok(list.cast_into_unchecked())
        }
    }

    #[cold]
    fn make(py: Python<'_>, place: &AtomicPtr<ffi::PyObject>, id: u32) -> PyResult<*mut ffi::PyObject> {
        let new = id.into_pyobject(py)?.into_any().unbind().into_ptr();
        match place.compare_exchange(std::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(new),
            Err(other) => {
                // SAFETY: another thread was first; the int we made is ours to give back.
                unsafe { ffi::Py_DECREF(new) };
                Ok(other)
            }
        }
    }
}

impl Drop for Ints {
    fn drop(&mut self) {
        Python::attach(|_| {
            for place in &self.0 {
                let int = place.load(Ordering::Acquire);
                if !int.is_null() {
                    // SAFETY: the place owns one reference, and the interpreter is attached.
                    unsafe { ffi::Py_DECREF(int) };
                }
            }
        });
    }
}

/// The bytes of a str or bytes, and whether they are known to be UTF-8.
fn utf8<'a>(text: &'a Bound<'_, PyAny>) -> PyResult<(&'a [u8], bool)> {
    if let Ok(text) = text.cast::<PyString>() {
        Ok((text.to_str()?.as_bytes(), true))
    } else if let Ok(data) = text.cast::<PyBytes>() {
        Ok((data.as_bytes(), false))
    } else {
        Err(PyTypeError::new_err("text must be str or bytes"))
    }
}

fn as_bytes(ids: &[u32]) -> Vec<u8> {
    ids.iter().flat_map(|id| id.to_ne_bytes()).collect()
}

/// Ids as a list of int, or as the bytes of u32. `None` if one is no id of any vocabulary.
fn ids_of(ids: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u32>>> {
    if let Ok(data) = ids.cast::<PyBytes>() {
        return Ok(Some(
            data.as_bytes().chunks_exact(4).map(|id| u32::from_ne_bytes([id[0], id[1], id[2], id[3]])).collect(),
        ));
    }
    let list = ids.cast::<PyList>()?;
    let length = list.len();
    let mut found = Vec::with_capacity(length);
    for i in 0..length {
        // SAFETY: `i` is below the length, which is checked again by the call (it answers with null); the
        // reference is borrowed only to read a number.
        let id = unsafe {
            let item = ffi::PyList_GetItem(list.as_ptr(), i as ffi::Py_ssize_t);
            if item.is_null() {
                return Err(PyErr::fetch(ids.py()));
            }
            ffi::PyLong_AsLong(item)
        };
        match u32::try_from(id) {
            Ok(id) => found.push(id),
            Err(_) => {
                let _ = PyErr::take(ids.py());
                return Ok(None);
            }
        }
    }
    Ok(Some(found))
}

/// Decoded text as str. It is UTF-8, unless the model has pieces or rules that are not.
fn string<'py>(py: Python<'py>, text: &[u8]) -> Bound<'py, PyString> {
    if let Ok(text) = std::str::from_utf8(text) {
        return PyString::new(py, text);
    }
    let mut repaired = Vec::new();
    crate::utf8::repair_into(text, &mut repaired);
    PyString::new(py, &String::from_utf8_lossy(&repaired))
}

/// One model in compiled form.
#[pyclass(frozen, module = "cpbpe._core")]
struct Engine {
    engine: engine::Engine,
    ints: Ints,
}

/// Ids, pieces, begins and ends.
type Tokens<'py> = (Vec<u32>, Vec<Bound<'py, PyBytes>>, Vec<usize>, Vec<usize>);

#[pymethods]
impl Engine {
    /// Read a model file; None if it is not a valid BPE model.
    #[staticmethod]
    fn from_model(py: Python<'_>, data: &[u8]) -> Option<Engine> {
        let engine = py.detach(|| engine::Engine::from_model(data))?;
        let ints = Ints::new(engine.vocab.len());
        Some(Engine { engine, ints })
    }

    #[getter]
    #[allow(clippy::unused_self)]
    fn name(&self) -> &'static str {
        "core"
    }

    #[getter]
    fn size(&self) -> usize {
        self.engine.vocab.len()
    }

    #[getter]
    fn byte_fallback(&self) -> bool {
        self.engine.vocab.columns.byte_fallback
    }

    #[getter]
    fn normalizer_name<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.engine.vocab.columns.normalizer.name)
    }

    /// The ids of unk, bos, eos and pad.
    #[getter]
    fn specials(&self) -> [Option<u32>; 4] {
        self.engine.vocab.specials
    }

    fn piece<'py>(&self, py: Python<'py>, id: u32) -> Bound<'py, PyBytes> {
        let mut text = Vec::new();
        self.engine.vocab.text_of(id, &mut text);
        PyBytes::new(py, &text)
    }

    fn find(&self, piece: &[u8]) -> Option<u32> {
        if piece == b"\0" {
            None
        } else {
            self.engine.vocab.id_of(piece)
        }
    }

    fn score(&self, id: u32) -> f32 {
        self.engine.vocab.columns.scores[id as usize]
    }

    fn kind(&self, id: u32) -> u8 {
        self.engine.vocab.kind(id)
    }

    fn normalize<'py>(&self, py: Python<'py>, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let (text, _) = utf8(text)?;
        Ok(PyBytes::new(py, &py.detach(|| self.engine.normalize(text))))
    }

    fn encode<'py>(&self, py: Python<'py>, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let (text, valid) = utf8(text)?;
        self.engine.with_scratch(|scratch| {
            if text.len() < DETACH {
                self.engine.encode(text, valid, scratch);
            } else {
                py.detach(|| self.engine.encode(text, valid, scratch));
            }
            self.ints.list(py, &scratch.ids)
        })
    }

    fn encode_array<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let (text, valid) = utf8(text)?;
        if threads > 1 {
            let ids = py.detach(|| self.engine.encode_parallel(text, valid, threads));
            return Ok(PyByteArray::new(py, &as_bytes(&ids)));
        }
        self.engine.with_scratch(|scratch| {
            if text.len() < DETACH {
                self.engine.encode(text, valid, scratch);
            } else {
                py.detach(|| self.engine.encode(text, valid, scratch));
            }
            let ids = &scratch.ids;
            // SAFETY: four bytes for each id, and any u32 is four bytes.
            let bytes = unsafe { std::slice::from_raw_parts(ids.as_ptr().cast::<u8>(), ids.len() * 4) };
            Ok(PyByteArray::new(py, bytes))
        })
    }

    fn count(&self, py: Python<'_>, text: &Bound<'_, PyAny>) -> PyResult<usize> {
        let (text, valid) = utf8(text)?;
        Ok(py.detach(|| {
            self.engine.with_scratch(|scratch| {
                self.engine.encode(text, valid, scratch);
                scratch.ids.len()
            })
        }))
    }

    fn encode_batch<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyList>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let kept: Vec<Bound<'py, PyAny>> = texts.iter().collect();
        let slices = kept.iter().map(utf8).collect::<PyResult<Vec<_>>>()?;
        let batches = py.detach(|| self.engine.encode_batch(&slices, threads));
        let lists = PyList::empty(py);
        for batch in batches {
            let mut begin = 0;
            for length in batch.lengths {
                lists.append(self.ints.list(py, &batch.ids[begin..begin + length])?)?;
                begin += length;
            }
        }
        Ok(lists)
    }

    /// The ids of all texts as bytes of u32, and where each text ends as bytes of i64.
    fn encode_batch_arrays<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyList>,
        threads: usize,
    ) -> PyResult<(Bound<'py, PyByteArray>, Bound<'py, PyByteArray>)> {
        let kept: Vec<Bound<'py, PyAny>> = texts.iter().collect();
        let slices = kept.iter().map(utf8).collect::<PyResult<Vec<_>>>()?;
        let batches = py.detach(|| self.engine.encode_batch(&slices, threads));
        let total: usize = batches.iter().map(|batch| batch.ids.len()).sum();
        let mut ends = vec![0i64];
        let mut end = 0;
        for length in batches.iter().flat_map(|batch| &batch.lengths) {
            end += *length as i64;
            ends.push(end);
        }
        let ids = PyByteArray::new_with(py, total * 4, |bytes| {
            for (place, id) in bytes.chunks_exact_mut(4).zip(batches.iter().flat_map(|batch| &batch.ids)) {
                place.copy_from_slice(&id.to_ne_bytes());
            }
            Ok(())
        })?;
        let ends: Vec<u8> = ends.iter().flat_map(|end| end.to_ne_bytes()).collect();
        Ok((ids, PyByteArray::new(py, &ends)))
    }

    fn tokens<'py>(&self, py: Python<'py>, text: &Bound<'py, PyAny>) -> PyResult<Tokens<'py>> {
        let (text, _) = utf8(text)?;
        let aligned = py.detach(|| self.engine.tokens(text));
        let mut piece = Vec::new();
        let mut found: Tokens = Default::default();
        for token in &aligned.tokens {
            piece.clear();
            crate::encode::piece_of(&self.engine.vocab, token, &aligned.text, aligned.compact, &mut piece);
            found.0.push(token.id);
            found.1.push(PyBytes::new(py, &piece));
            found.2.push(aligned.origins[token.begin]);
            found.3.push(aligned.origins[token.end]);
        }
        Ok(found)
    }

    /// The text of ids: a list of int, or the bytes of u32. None if one is outside the vocabulary.
    fn decode<'py>(&self, py: Python<'py>, ids: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyString>>> {
        let Some(ids) = ids_of(ids)? else { return Ok(None) };
        let text = if ids.len() < DETACH {
            self.engine.decode(&ids, false)
        } else {
            py.detach(|| self.engine.decode(&ids, false))
        };
        Ok(text.ok().map(|text| string(py, &text)))
    }

    fn decode_bytes<'py>(&self, py: Python<'py>, ids: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let Some(ids) = ids_of(ids)? else { return Ok(None) };
        let text = if ids.len() < DETACH {
            self.engine.decode(&ids, true)
        } else {
            py.detach(|| self.engine.decode(&ids, true))
        };
        Ok(text.ok().map(|text| PyBytes::new(py, &text)))
    }

    fn decode_batch<'py>(
        &self,
        py: Python<'py>,
        batch: &Bound<'py, PyList>,
        threads: usize,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        let Some(batch) = batch.iter().map(|ids| ids_of(&ids)).collect::<PyResult<Option<Vec<_>>>>()? else {
            return Ok(None);
        };
        let Some(texts) = py.detach(|| self.engine.decode_batch(&batch, threads)) else { return Ok(None) };
        let texts = texts.iter().map(|text| string(py, text));
        Ok(Some(PyList::new(py, texts.collect::<Vec<_>>())?))
    }

    fn decode_pieces<'py>(&self, py: Python<'py>, pieces: Vec<Bound<'py, PyBytes>>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.engine.decode_pieces(pieces.iter().map(|piece| piece.as_bytes())))
    }
}

#[pymodule(gil_used = true)]
mod _core {
    #[pymodule_export]
    use super::Engine;
    #[pymodule_export]
    use crate::python_train::{learn, merge_words, Counter};
}
