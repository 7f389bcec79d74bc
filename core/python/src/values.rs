//! Python's values and ours: text, ids, lists, arrays. `python.rs` has the classes that use them.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList, PyString};

use cpbpe::engine;

/// Python's int for every id, made when first needed: ids repeat, and counting up a reference is less work
/// than making an int.
pub struct Ints(Box<[AtomicPtr<ffi::PyObject>]>);

impl Ints {
    pub fn new(count: usize) -> Ints {
        Ints((0..count).map(|_| AtomicPtr::new(std::ptr::null_mut())).collect())
    }

    /// A list of ids, all of which are below the count.
    pub fn list<'py>(&self, py: Python<'py>, ids: &[u32]) -> PyResult<Bound<'py, PyList>> {
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
pub fn utf8<'a>(text: &'a Bound<'_, PyAny>) -> PyResult<(&'a [u8], bool)> {
    if let Ok(text) = text.cast::<PyString>() {
        Ok((text.to_str()?.as_bytes(), true))
    } else if let Ok(data) = text.cast::<PyBytes>() {
        Ok((data.as_bytes(), false))
    } else {
        Err(PyTypeError::new_err("text must be str or bytes"))
    }
}

pub fn bytes_of(ids: &[u32]) -> &[u8] {
    // SAFETY: four bytes for each id, and any u32 is four bytes.
    unsafe { std::slice::from_raw_parts(ids.as_ptr().cast(), size_of_val(ids)) }
}

/// The parts, one after the other, in a new bytearray.
pub fn join<'py>(py: Python<'py>, parts: &[&[u8]], threads: usize) -> PyResult<Bound<'py, PyByteArray>> {
    let total = parts.iter().map(|part| part.len()).sum();
    let length = ffi::Py_ssize_t::try_from(total).map_err(|_| PyValueError::new_err("too many ids"))?;
    // SAFETY: a new bytearray of so many bytes, which nobody has seen yet. They are not initialized, and only written
    // to, each once: the first touch of so much memory is what takes time, and is shared by the threads.
    let (array, mut rest) = unsafe {
        let array = Bound::from_owned_ptr_or_err(py, ffi::PyByteArray_FromStringAndSize(std::ptr::null(), length))?;
        let bytes = ffi::PyByteArray_AsString(array.as_ptr()).cast::<MaybeUninit<u8>>();
        (array.cast_into_unchecked(), std::slice::from_raw_parts_mut(bytes, total))
    };
    type Copy<'a> = (&'a mut [MaybeUninit<u8>], &'a [u8]);
    let mut shares: Vec<Vec<Copy>> = (0..threads).map(|_| Vec::new()).collect();
    let mut done = 0;
    for part in parts {
        let (place, more) = rest.split_at_mut(part.len());
        rest = more;
        shares[(done * threads / total.max(1)).min(threads - 1)].push((place, part));
        done += part.len();
    }
    let shares = Mutex::new(shares);
    let copy = || loop {
        let share = shares.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some(share) = share else { break };
        for (place, part) in share {
            for (place, byte) in place.iter_mut().zip(part) {
                place.write(*byte);
            }
        }
    };
    py.detach(|| {
        std::thread::scope(|scope| {
            for _ in 1..threads {
                // Without another thread this one does everything.
                let _ = std::thread::Builder::new().spawn_scoped(scope, copy);
            }
            copy();
        });
    });
    Ok(array)
}

/// While it lives, Python's garbage collector does not look for cycles. Many new lists make it look again and again
/// through all of them, in vain: lists of int hold none. It takes a third of the time.
pub struct PausedCollector<'py> {
    _py: Python<'py>,
    was_enabled: bool,
}

impl<'py> PausedCollector<'py> {
    pub fn new(py: Python<'py>) -> Self {
        // SAFETY: the interpreter is attached.
        PausedCollector { _py: py, was_enabled: unsafe { ffi::PyGC_Disable() } != 0 }
    }
}

impl Drop for PausedCollector<'_> {
    fn drop(&mut self) {
        if self.was_enabled {
            // SAFETY: the interpreter is attached.
            unsafe { ffi::PyGC_Enable() };
        }
    }
}

/// Makes lists of ids as they come.
pub struct Lists<'a, 'py> {
    /// The interpreter.
    pub py: Python<'py>,
    /// Its numbers.
    pub ints: &'a Ints,
    /// The lists, as far as they are made.
    pub lists: Vec<Option<Bound<'py, PyList>>>,
    /// What stopped us.
    pub error: Option<PyErr>,
}

impl Lists<'_, '_> {
    fn add(&mut self, batch: &engine::Batch) -> PyResult<()> {
        let mut begin = 0;
        for (i, &length) in batch.lengths.iter().enumerate() {
            let list = self.ints.list(self.py, &batch.ids[begin..begin + length])?;
            self.lists[batch.first + i] = Some(list);
            begin += length;
        }
        self.py.check_signals() // Ctrl-C
    }
}

impl engine::Consumer for Lists<'_, '_> {
    fn take(&mut self, batch: engine::Batch) -> bool {
        self.error = self.add(&batch).err();
        self.error.is_none()
    }

    fn meanwhile<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.py.detach(work)
    }
}

/// Ids as a list of int, or as the bytes of u32. `None` if one is no id of any vocabulary.
pub fn ids_of(ids: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u32>>> {
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
        let item = unsafe { ffi::PyList_GetItem(list.as_ptr(), i as ffi::Py_ssize_t) };
        if item.is_null() {
            return Err(PyErr::fetch(ids.py()));
        }
        // SAFETY: as before. This is the shortest way for an int.
        let mut id = unsafe { ffi::PyLong_AsSize_t(item) };
        if u32::try_from(id).is_err() {
            let _ = PyErr::take(ids.py());
            // SAFETY: as before. This one asks `__index__`, too.
            id = usize::try_from(unsafe { ffi::PyLong_AsLong(item) }).unwrap_or(usize::MAX);
        }
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
pub fn string<'py>(py: Python<'py>, text: &[u8]) -> Bound<'py, PyString> {
    // Python checks it; to check it here, too, as the safe interface wants, takes as long again.
    // SAFETY: so many bytes are there; what comes back is a new str, or null and an error that is taken away.
    unsafe {
        let string = ffi::PyUnicode_FromStringAndSize(text.as_ptr().cast(), text.len() as ffi::Py_ssize_t);
        if let Some(string) = Bound::from_owned_ptr_or_opt(py, string) {
            return string.cast_into_unchecked();
        }
    }
    let _ = PyErr::take(py);
    let mut repaired = Vec::new();
    cpbpe::utf8::repair_into(text, &mut repaired);
    PyString::new(py, &String::from_utf8_lossy(&repaired))
}
