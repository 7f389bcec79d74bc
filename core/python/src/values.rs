//! Converts between Python's values and Rust's: text, ids, lists, arrays.

use std::sync::atomic::{AtomicPtr, Ordering};

use numpy::{Element, PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString, PyTuple};

use cpbpe::memory::{collected, with_room, Grow};
use cpbpe::watch::Check;
use cpbpe::{Consumer, EncodedTexts, Halt, Texts};

use crate::errors::halted;
use crate::items::put;
use crate::signals::{run, Signals, DETACH};

/// Whether a value of this type can be stored in a Python object. The interpreter aligns objects to two words. A type
/// that needs more must be put into a box.
pub const fn is_aligned<T>() -> bool {
    align_of::<T>() <= 2 * size_of::<usize>()
}

/// A Python object for every id, made when it is first needed. Ids repeat, and adding a reference is less work than
/// making an object.
pub struct Objects(Box<[AtomicPtr<ffi::PyObject>]>);

impl Objects {
    pub fn new(count: usize) -> PyResult<Objects> {
        let none = (0..count).map(|_| AtomicPtr::new(std::ptr::null_mut()));
        Ok(Objects(collected(none).map_err(halted)?.into_boxed_slice()))
    }

    /// A list of the objects of ids. An id for which the table has no place belongs to an added token, and gets a new
    /// object.
    #[inline]
    pub fn list<'py, T>(
        &self,
        py: Python<'py>,
        ids: &[u32],
        make: impl Fn(u32) -> PyResult<Bound<'py, T>>,
    ) -> PyResult<Bound<'py, PyList>> {
        // SAFETY: the list is new and not used by anybody else. It has as many places as there are ids, and each place
        // gets one reference that this call owns. The table owns the references in it.
        unsafe {
            let list = Bound::from_owned_ptr_or_err(py, ffi::PyList_New(size(ids.len())?))?;
            // Take the objects that exist, again and again, up to an id that has none yet.
            let mut at = put(py, list.as_ptr(), 0, ids, &self.0);
            while let Some(&id) = ids.get(at) {
                let object = match self.0.get(id as usize) {
                    Some(_) => self.get(py, id, &make)?.into_ptr(),
                    None => make(id)?.into_ptr(),
                };
                ffi::PyList_SetItem(list.as_ptr(), size(at)?, object);
                at = put(py, list.as_ptr(), at + 1, ids, &self.0);
            }
            Ok(list.cast_into_unchecked())
        }
    }

    /// The object of one id.
    pub fn get<'py, T>(
        &self,
        py: Python<'py>,
        id: u32,
        make: impl Fn(u32) -> PyResult<Bound<'py, T>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let place = &self.0[id as usize];
        let mut object = place.load(Ordering::Acquire);
        if object.is_null() {
            object = Self::keep(place, make(id)?);
        }
        // SAFETY: the place owns a reference as long as the table exists.
        Ok(unsafe { Bound::from_borrowed_ptr(py, object) })
    }

    /// Whether the object of an id is equal to a str; false if the object has not been made. Both must be str.
    #[inline]
    pub fn is_str(&self, id: u32, text: &Bound<'_, PyAny>) -> bool {
        let (own, other) = (self.0[id as usize].load(Ordering::Acquire), text.as_ptr());
        // SAFETY: both are str, and the interpreter is attached. The result is a new reference to True or False. (The
        // safe interface asks for the type first, to find out how to compare.)
        own == other
            || !own.is_null()
                && unsafe {
                    let answer = ffi::PyUnicode_RichCompare(own, other, ffi::Py_EQ);
                    ffi::Py_DECREF(answer);
                    answer == ffi::Py_True()
                }
    }

    /// Store a new object, and return it; or return that of another thread, if it was first.
    #[cold]
    fn keep<T>(place: &AtomicPtr<ffi::PyObject>, object: Bound<'_, T>) -> *mut ffi::PyObject {
        let new = object.into_ptr();
        match place.compare_exchange(std::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => new,
            Err(other) => {
                // SAFETY: another thread was first. This call owns a reference to the new object, and gives it back.
                unsafe { ffi::Py_DECREF(new) };
                other
            }
        }
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        Python::attach(|_| {
            for place in &self.0 {
                let object = place.load(Ordering::Acquire);
                if !object.is_null() {
                    // SAFETY: the place owns one reference, and the interpreter is attached.
                    unsafe { ffi::Py_DECREF(object) };
                }
            }
        });
    }
}

/// A Python int for every id.
pub struct Ints(Objects);

impl Ints {
    pub fn new(count: usize) -> PyResult<Ints> {
        Objects::new(count).map(Ints)
    }

    /// A list of ids.
    pub fn list<'py>(&self, py: Python<'py>, ids: &[u32]) -> PyResult<Bound<'py, PyList>> {
        self.0.list(py, ids, |id| int(py, id as usize))
    }

    /// A list of pairs of numbers, each as a tuple.
    ///
    /// Numbers are taken from this table, too, if it has them, because most spans begin where another one ends.
    pub fn pairs<'py>(&self, py: Python<'py>, pairs: &[[i64; 2]]) -> PyResult<Bound<'py, PyList>> {
        list(py, pairs.iter(), |pair| {
            // SAFETY: the tuple is new and not used by anybody else; both of its places get a reference that this call
            // owns. It contains no more than two ints, so it is in no cycle, and the garbage collector need not track
            // it (when the collector looks at such a tuple, it stops tracking it by itself).
            unsafe {
                let tuple: Bound<'py, PyTuple> = owned(py, ffi::PyTuple_New(2))?;
                for (place, &number) in (0..).zip(pair) {
                    ffi::PyTuple_SetItem(tuple.as_ptr(), place, self.int(py, number as usize)?);
                }
                ffi::PyObject_GC_UnTrack(tuple.as_ptr().cast());
                Ok(tuple)
            }
        })
    }

    /// A list of numbers.
    pub fn numbers<'py>(
        &self,
        py: Python<'py>,
        numbers: impl ExactSizeIterator<Item = usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        // SAFETY: the pointer is a new reference to an int.
        list::<_, PyInt>(py, numbers, |number| unsafe { owned(py, self.int(py, number)?) })
    }

    /// A new reference to an int.
    #[inline]
    fn int(&self, py: Python<'_>, number: usize) -> PyResult<*mut ffi::PyObject> {
        let object = match u32::try_from(number) {
            Ok(id) if number < self.0 .0.len() => self.0.get(py, id, |id| int(py, id as usize))?,
            _ => int(py, number)?.into_any(),
        };
        Ok(object.into_ptr())
    }
}

/// A new object that a call of the interpreter has made, or the error that it has set instead.
///
/// # Safety
/// The pointer is null with an error set, or a new reference to an object of this type.
#[inline(always)]
unsafe fn owned<'py, T>(py: Python<'py>, object: *mut ffi::PyObject) -> PyResult<Bound<'py, T>> {
    // SAFETY: as the caller promises. (PyO3's own constructors panic if there is no memory for the object.)
    unsafe { Ok(Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked()) }
}

fn size(length: usize) -> PyResult<ffi::Py_ssize_t> {
    length.try_into().map_err(|_| PyValueError::new_err("there are too many items for a list"))
}

/// Data as bytes.
pub fn bytes<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    // SAFETY: this many bytes are there.
    unsafe { owned(py, ffi::PyBytes_FromStringAndSize(data.as_ptr().cast(), size(data.len())?)) }
}

/// An empty dict.
#[cold]
pub fn dict(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    // SAFETY: the call makes a dict.
    unsafe { owned(py, ffi::PyDict_New()) }
}

/// A list of pairs of bytes and a number.
#[cold]
pub fn numbered<'py, 'a>(
    py: Python<'py>,
    pairs: impl ExactSizeIterator<Item = (&'a [u8], usize)>,
) -> PyResult<Bound<'py, PyList>> {
    list(py, pairs, |(text, number)| tuple(py, [bytes(py, text)?.into_any(), int(py, number)?.into_any()]))
}

/// An int.
pub fn int(py: Python<'_>, number: usize) -> PyResult<Bound<'_, PyInt>> {
    // SAFETY: the call makes an int.
    unsafe { owned(py, ffi::PyLong_FromSize_t(number)) }
}

/// A list whose items are made one by one.
pub fn list<'py, I, T>(
    py: Python<'py>,
    items: impl ExactSizeIterator<Item = I>,
    mut make: impl FnMut(I) -> PyResult<Bound<'py, T>>,
) -> PyResult<Bound<'py, PyList>> {
    let length = size(items.len())?;
    // SAFETY: the list is new and not used by anybody else. Each of its places gets one reference that this call owns,
    // at most once.
    unsafe {
        let list: Bound<'py, PyList> = owned(py, ffi::PyList_New(length))?;
        for (i, item) in (0..length).zip(items) {
            ffi::PyList_SetItem(list.as_ptr(), i, make(item)?.into_ptr());
        }
        Ok(list)
    }
}

/// A tuple of these objects.
pub fn tuple<'py, const N: usize>(py: Python<'py>, items: [Bound<'py, PyAny>; N]) -> PyResult<Bound<'py, PyTuple>> {
    let length = size(N)?;
    // SAFETY: as in `list`.
    unsafe {
        let tuple: Bound<'py, PyTuple> = owned(py, ffi::PyTuple_New(length))?;
        for (i, item) in (0..length).zip(items) {
            ffi::PyTuple_SetItem(tuple.as_ptr(), i, item.into_ptr());
        }
        Ok(tuple)
    }
}

/// The items of a list, with a reference to each, because the list may change.
pub fn items_of<'py>(list: &Bound<'py, PyList>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut items = with_room(list.len()).map_err(halted)?;
    items.extend(list.iter().take(items.capacity()));
    Ok(items)
}

/// The items of a list of bytes, with a reference to each, because the list may change.
pub fn bytes_of<'py>(list: &Bound<'py, PyList>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let mut items = with_room(list.len()).map_err(halted)?;
    for item in list.iter().take(items.capacity()) {
        items.push(item.cast_into()?);
    }
    Ok(items)
}

/// The bytes of each item; see `utf8`.
pub fn texts_of<'a>(items: &'a [Bound<'_, PyAny>]) -> PyResult<Vec<(&'a [u8], bool)>> {
    let mut texts = with_room(items.len()).map_err(halted)?;
    for item in items {
        texts.push(utf8(item)?);
    }
    Ok(texts)
}

/// Call `work` with texts that are given as a list, or as a tuple of an array of bytes and two arrays that say where
/// texts begin and end in it. (Arrow's columns have this second form. No Python object is made for a text then.)
pub fn with_texts<R>(texts: &Bound<'_, PyAny>, work: impl FnOnce(&dyn Texts) -> PyResult<R>) -> PyResult<R> {
    if let Ok(list) = texts.cast::<PyList>() {
        let kept = items_of(list)?;
        return work(&texts_of(&kept)?);
    }
    let slices = texts.cast::<PyTuple>()?;
    let (data, begins, ends) = (slices.get_item(0)?, slices.get_item(1)?, slices.get_item(2)?);
    let data = numbers::<u8>(&data)?.ok_or_else(|| PyTypeError::new_err("data must be an array of bytes"))?;
    let texts = if let (Some(begins), Some(ends)) = (numbers::<i32>(&begins)?, numbers::<i32>(&ends)?) {
        cpbpe::Slices::new(data, begins, ends).map(|texts| Box::new(texts) as Box<dyn Texts>)
    } else if let (Some(begins), Some(ends)) = (numbers::<i64>(&begins)?, numbers::<i64>(&ends)?) {
        cpbpe::Slices::new(data, begins, ends).map(|texts| Box::new(texts) as Box<dyn Texts>)
    } else {
        return Err(PyTypeError::new_err("begins and ends must be arrays of int32, or of int64"));
    };
    let texts = texts.ok_or_else(|| PyValueError::new_err("each text must begin and end within the data"))?;
    work(&*texts)
}

/// The numbers of an array; `None` if they have another type.
fn numbers<'a, T: Element>(array: &'a Bound<'_, PyAny>) -> PyResult<Option<&'a [T]>> {
    let Ok(array) = array.cast::<PyArray1<T>>() else { return Ok(None) };
    // SAFETY: Arrow's buffers do not change; everything that uses them relies on that. Their content is checked where
    // it is used: slices that are not within the memory, and bytes that are not UTF-8.
    Ok(Some(unsafe { array.as_slice()? }))
}

/// The bytes of a str or bytes, and whether they are known to be UTF-8.
pub fn utf8<'a>(text: &'a Bound<'_, PyAny>) -> PyResult<(&'a [u8], bool)> {
    if let Ok(text) = text.cast_exact::<PyString>().or_else(|_| text.cast()) {
        Ok((text.to_str()?.as_bytes(), true))
    } else if let Ok(data) = text.cast::<PyBytes>() {
        Ok((data.as_bytes(), false))
    } else {
        Err(PyTypeError::new_err("text must be str or bytes"))
    }
}

/// As long as this exists, Python's garbage collector does not look for cycles. While many new lists are made, it would
/// search all of them again and again, although lists of int are in no cycles. That took a third of the time.
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

/// Makes lists of ids from results as they arrive.
pub struct Lists<'a, 'py> {
    py: Python<'py>,
    ints: &'a Ints,
    /// The lists made so far.
    lists: Vec<Option<Bound<'py, PyList>>>,
    /// The error that ended the work.
    error: Option<PyErr>,
}

impl<'a, 'py> Lists<'a, 'py> {
    /// The lists of the ids of `count` texts, whose results `work` gives to this.
    pub fn of(
        py: Python<'py>,
        ints: &'a Ints,
        count: usize,
        work: impl FnOnce(&mut Self, Check) -> Result<(), Halt>,
    ) -> PyResult<Bound<'py, PyList>> {
        let mut lists = Lists { py, ints, lists: with_room(count).map_err(halted)?, error: None };
        lists.lists.resize_with(count, || None);
        let signals = Signals::new();
        let paused = PausedCollector::new(py);
        let outcome = work(&mut lists, &|| signals.check());
        drop(paused);
        match lists.error {
            Some(error) => return Err(error),
            None => signals.finish(outcome)?,
        }
        let missing = || PyValueError::new_err("a text was not encoded");
        list(py, lists.lists.into_iter(), |list| list.ok_or_else(missing))
    }

    /// Make the lists of a run of texts, the first of which has this index.
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

/// The results of runs of texts, in the order of the texts. `work` collects them in any order, each with the index of
/// its first text. Meanwhile, the interpreter is released for other threads. Ctrl-C ends the work.
pub fn results<R: Send>(
    py: Python<'_>,
    work: impl FnOnce(&mut Vec<(usize, R)>, Check) -> Result<(), Halt> + Send,
) -> PyResult<Vec<R>> {
    let mut results = Vec::new();
    run(py, DETACH, |check| work(&mut results, check))?;
    results.sort_unstable_by_key(|&(first, _)| first);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

/// Signals are checked once for this many ids of a list.
const CHECK_IDS: usize = 1 << 20;
/// Up to this many ids of a list are stored without allocating memory.
const FEW: usize = 64;

/// Call `work` with ids that are given as a list of int or as the bytes of u32. `None` if one of them cannot be an id.
///
/// A few ids are stored on the stack: allocating and releasing memory took a tenth of the time of decoding ten.
#[inline]
pub fn with_ids<R>(ids: &Bound<'_, PyAny>, work: impl FnOnce(&[u32]) -> PyResult<Option<R>>) -> PyResult<Option<R>> {
    if let Ok(list) = ids.cast::<PyList>() {
        let length = list.len();
        if length <= FEW {
            let mut few = [0; FEW];
            return match ids_at(list, 0, &mut few[..length])? {
                true => work(&few[..length]),
                false => Ok(None),
            };
        }
    }
    let mut numbers = Vec::new();
    if !ids_into(ids, &mut numbers)? {
        return Ok(None);
    }
    work(&numbers)
}

/// Append ids that are given as a list of int or as the bytes of u32. Return false if one of them cannot be an id.
pub fn ids_into(ids: &Bound<'_, PyAny>, numbers: &mut Vec<u32>) -> PyResult<bool> {
    if let Ok(data) = ids.cast::<PyBytes>() {
        let ids = data.as_bytes().chunks_exact(4).map(|id| u32::from_ne_bytes([id[0], id[1], id[2], id[3]]));
        numbers.grow(ids.len()).map_err(halted)?;
        numbers.extend(ids);
        return Ok(true);
    }
    let list = ids.cast::<PyList>()?;
    let length = list.len();
    numbers.grow(length).map_err(halted)?;
    for begin in (0..length).step_by(CHECK_IDS) {
        if begin > 0 {
            ids.py().check_signals()?;
        }
        let at = numbers.len();
        numbers.resize(at + CHECK_IDS.min(length - begin), 0);
        if !ids_at(list, begin, &mut numbers[at..])? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Read the ids of a list, beginning at a place. Return false if one of them cannot be an id.
///
/// The list is locked meanwhile, if the interpreter lets other threads run.
#[inline(always)]
fn ids_at(list: &Bound<'_, PyList>, begin: usize, ids: &mut [u32]) -> PyResult<bool> {
    with_critical_section(list, || {
        for (at, place) in (begin..).zip(ids) {
            let Some(id) = id_at(list, at)? else { return Ok(false) };
            *place = id;
        }
        Ok(true)
    })
}

/// The id at a place in a list, which is locked. `None` if it cannot be an id.
#[inline(always)]
fn id_at(list: &Bound<'_, PyList>, at: usize) -> PyResult<Option<u32>> {
    // SAFETY: this is a list, and the call checks the index (and returns null if it is out of range). The reference is
    // borrowed from the list, and is valid until Python code runs that changes the list. No such code runs: the list is
    // locked, the number of an int is read without calling a method, and everything else is refused.
    let number = unsafe {
        match ffi::PyList_GetItem(list.as_ptr(), at as ffi::Py_ssize_t) {
            item if item.is_null() => usize::MAX,
            item => ffi::PyLong_AsSize_t(item),
        }
    };
    match u32::try_from(number) {
        Ok(id) => Ok(Some(id)),
        Err(_) => other_id_at(list, at),
    }
}

/// The same for an item that is not an int, is too large, or is no longer in the list.
#[cold]
fn other_id_at(list: &Bound<'_, PyList>, at: usize) -> PyResult<Option<u32>> {
    let _ = PyErr::take(list.py());
    // `__index__` of any other object may run any code, which may take the object out of the list, so this needs an
    // owned reference. (If the list has become shorter, there is an IndexError.)
    Ok(list.get_item(at)?.extract().ok())
}

/// Decoded text as str. It is UTF-8, unless the model has pieces or rules that are not.
pub fn string<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyString>> {
    // Python checks that it is UTF-8. Checking it here first, as the safe interface requires, would take the same time
    // once more.
    match str_of(py, text) {
        Err(error) if !error.is_instance_of::<PyMemoryError>(py) => {
            let mut repaired = Vec::new();
            cpbpe::repair_into(text, &mut repaired).map_err(halted)?;
            str_of(py, &repaired)
        }
        result => result,
    }
}

/// Text as str, or UnicodeDecodeError.
pub fn str_of<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyString>> {
    // SAFETY: this many bytes are there.
    unsafe { owned(py, ffi::PyUnicode_FromStringAndSize(text.as_ptr().cast(), size(text.len())?)) }
}

/// ASCII as str, with U+2581 for each space.
///
/// Python makes a str of wide characters in half the time that it takes to decode UTF-8.
pub fn escaped_string<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyString>> {
    let wide = collected(text.iter().map(|&byte| if byte == b' ' { 0x2581 } else { byte.into() })).map_err(halted)?;
    // SAFETY: this many characters are there.
    unsafe { owned(py, ffi::PyUnicode_FromWideChar(wide.as_ptr(), size(wide.len())?)) }
}
