//! Python's values and ours: text, ids, lists, arrays. `lib.rs` has the classes that use them.

use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use cpbpe::{Consumer, EncodedTexts};

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
    py: Python<'py>,
    ints: &'a Ints,
    /// The lists, as far as they are made.
    lists: Vec<Option<Bound<'py, PyList>>>,
    /// What stopped us.
    error: Option<PyErr>,
}

impl<'a, 'py> Lists<'a, 'py> {
    /// For this many texts.
    pub fn new(py: Python<'py>, ints: &'a Ints, count: usize) -> Self {
        Lists { py, ints, lists: (0..count).map(|_| None).collect(), error: None }
    }

    /// A list of all.
    pub fn finish(self) -> PyResult<Bound<'py, PyList>> {
        match self.error {
            Some(error) => Err(error),
            None => PyList::new(self.py, self.lists),
        }
    }

    fn add(&mut self, first: usize, texts: &EncodedTexts) -> PyResult<()> {
        let mut begin = 0;
        for (i, &length) in texts.lengths.iter().enumerate() {
            let list = self.ints.list(self.py, &texts.ids[begin..begin + length])?;
            self.lists[first + i] = Some(list);
            begin += length;
        }
        self.py.check_signals() // Ctrl-C
    }
}

impl Consumer<EncodedTexts> for Lists<'_, '_> {
    fn take(&mut self, first: usize, texts: EncodedTexts) -> bool {
        self.error = self.add(first, &texts).err();
        self.error.is_none()
    }

    fn meanwhile<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.py.detach(work)
    }
}

/// How often signals are looked for while results are kept.
const INTERVAL: Duration = Duration::from_millis(100);

/// Keeps the results of runs of texts, until Ctrl-C.
pub struct Results<R> {
    results: Vec<(usize, R)>,
    /// When signals were looked for.
    looked: Instant,
    error: Option<PyErr>,
}

impl<R: Send> Results<R> {
    /// Do work, with the interpreter free for others, that gives results; these in the order of texts.
    pub fn of(py: Python<'_>, work: impl FnOnce(&mut Results<R>) + Send) -> PyResult<Vec<R>> {
        let mut results = Results { results: Vec::new(), looked: Instant::now(), error: None };
        py.detach(|| work(&mut results));
        if let Some(error) = results.error {
            return Err(error);
        }
        results.results.sort_unstable_by_key(|&(first, _)| first);
        Ok(results.results.into_iter().map(|(_, result)| result).collect())
    }
}

impl<R: Send> Consumer<R> for Results<R> {
    fn take(&mut self, first: usize, result: R) -> bool {
        self.results.push((first, result));
        if self.looked.elapsed() > INTERVAL {
            self.error = Python::attach(|py| py.check_signals()).err();
            self.looked = Instant::now();
        }
        self.error.is_none()
    }
}

/// Ids as a list of int, or as the bytes of u32. `None` if one of them can be no id.
pub fn ids_of(ids: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u32>>> {
    if let Ok(data) = ids.cast::<PyBytes>() {
        return Ok(Some(
            data.as_bytes().chunks_exact(4).map(|id| u32::from_ne_bytes([id[0], id[1], id[2], id[3]])).collect(),
        ));
    }
    let list = ids.cast::<PyList>()?;
    let length = list.len();
    let mut numbers = Vec::with_capacity(length);
    for at in 0..length {
        let Some(number) = id_at(list, at)? else { return Ok(None) };
        numbers.push(number);
    }
    Ok(Some(numbers))
}

/// The id at a place in a list. `None` if it can be no id.
#[inline]
fn id_at(list: &Bound<'_, PyList>, at: usize) -> PyResult<Option<u32>> {
    let py = list.py();
    // SAFETY: this is a list, and the call checks the index (and returns null). The reference is borrowed from the list, and
    // is good until Python code runs that changes the list. None does: the number of an int is read without calling a
    // method, and everything else is refused.
    let number = unsafe {
        match ffi::PyList_GetItem(list.as_ptr(), at as ffi::Py_ssize_t) {
            item if item.is_null() => usize::MAX,
            item => ffi::PyLong_AsSize_t(item),
        }
    };
    if let Ok(id) = u32::try_from(number) {
        return Ok(Some(id));
    }
    let _ = PyErr::take(py);
    // `__index__` of anything else may run any code, which may take it out of the list; so this is a reference that we own.
    // (If the list became shorter by that, there is an IndexError.)
    Ok(list.get_item(at)?.extract().ok())
}

/// Decoded text as str. It is UTF-8, unless the model has pieces or rules that are not.
pub fn string<'py>(py: Python<'py>, text: &[u8]) -> Bound<'py, PyString> {
    // Python checks it; to check it here, too, as the safe interface wants, takes as long again.
    // SAFETY: this many bytes are there; what comes back is a new str, or null and an error that is taken away.
    unsafe {
        let string = ffi::PyUnicode_FromStringAndSize(text.as_ptr().cast(), text.len() as ffi::Py_ssize_t);
        if let Some(string) = Bound::from_owned_ptr_or_opt(py, string) {
            return string.cast_into_unchecked();
        }
    }
    let _ = PyErr::take(py);
    let mut repaired = Vec::new();
    cpbpe::repair_into(text, &mut repaired);
    PyString::new(py, &String::from_utf8_lossy(&repaired))
}
