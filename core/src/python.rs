//! The border to Python, and the only file that knows it. What crosses is str, bytes, lists of int, and buffers
//! of u32 as bytes. Checking types, and what to say about wrong ones, is the business of `cpbpe/tokenizer.py`.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList, PyString};

use crate::engine;
use crate::matcher;

/// From this size on the interpreter is free for others while we work. Below, giving it up costs more than
/// anyone could gain.
const DETACH: usize = 1 << 12;

/// From so many ids on a thread more is worth starting to copy them.
const MANY: i64 = 1 << 18;

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

fn bytes_of(ids: &[u32]) -> &[u8] {
    // SAFETY: four bytes for each id, and any u32 is four bytes.
    unsafe { std::slice::from_raw_parts(ids.as_ptr().cast(), size_of_val(ids)) }
}

/// The parts, one after the other, in a new bytearray.
fn join<'py>(py: Python<'py>, parts: &[&[u8]], threads: usize) -> PyResult<Bound<'py, PyByteArray>> {
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
struct PausedCollector<'py> {
    _py: Python<'py>,
    was_enabled: bool,
}

impl<'py> PausedCollector<'py> {
    fn new(py: Python<'py>) -> Self {
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
struct Lists<'a, 'py> {
    py: Python<'py>,
    ints: &'a Ints,
    lists: Vec<Option<Bound<'py, PyList>>>,
    error: Option<PyErr>,
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
fn string<'py>(py: Python<'py>, text: &[u8]) -> Bound<'py, PyString> {
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
    crate::utf8::repair_into(text, &mut repaired);
    PyString::new(py, &String::from_utf8_lossy(&repaired))
}

/// One model in compiled form.
#[pyclass(frozen, module = "cpbpe._core")]
struct Engine {
    engine: engine::Engine,
    ints: Arc<Ints>,
    /// Python's bytes for every piece, made when first needed.
    texts: Arc<[OnceLock<Py<PyBytes>>]>,
    /// Its variants, once they are made; see `variant`.
    variants: [OnceLock<Py<Engine>>; 12],
}

/// Ids, pieces, begins and ends.
type Tokens = (Vec<u32>, Vec<Py<PyBytes>>, Vec<usize>, Vec<usize>);

impl Engine {
    fn aligned<'py>(&self, py: Python<'py>, text: &Bound<'py, PyAny>, dropout: Option<(f64, u64)>) -> PyResult<Tokens> {
        let (text, _) = utf8(text)?;
        let aligned = py.detach(|| self.engine.tokens(text, dropout));
        let vocab = &self.engine.vocab;
        let mut piece = Vec::new();
        let mut found: Tokens = Default::default();
        for token in &aligned.tokens {
            found.0.push(token.id);
            found.1.push(if Some(token.id) == vocab.unk {
                piece.clear();
                crate::encode::piece_of(vocab, token, &aligned.text, aligned.compact, &mut piece);
                PyBytes::new(py, &piece).unbind()
            } else {
                self.texts[token.id as usize].get_or_init(|| self.piece(py, token.id).unbind()).clone_ref(py)
            });
            found.2.push(aligned.origins[token.begin]);
            found.3.push(aligned.origins[token.end]);
        }
        Ok(found)
    }

    /// Encode a text, and make something of the ids.
    fn encoded<R>(&self, py: Python<'_>, text: &Bound<'_, PyAny>, make: impl FnOnce(&[u32]) -> R) -> PyResult<R> {
        let (text, valid) = utf8(text)?;
        Ok(self.engine.with_scratch(|scratch| {
            if text.len() < DETACH {
                self.engine.encode(text, valid, scratch);
            } else {
                py.detach(|| self.engine.encode(text, valid, scratch));
            }
            make(&scratch.ids)
        }))
    }
}

#[pymethods]
impl Engine {
    /// Read a model file; None if it is not a valid BPE model.
    #[staticmethod]
    fn from_model(py: Python<'_>, data: &[u8]) -> Option<Engine> {
        let engine = py.detach(|| engine::Engine::from_model(data))?;
        let ints = Arc::new(Ints::new(engine.vocab.len()));
        let texts = (0..engine.vocab.len()).map(|_| OnceLock::new()).collect();
        Some(Engine { engine, ints, texts, variants: Default::default() })
    }

    /// The same engine with other habits, made once.
    #[pyo3(signature = (*, prefix = None, keep_space = false, raw = false))]
    fn variant(&self, py: Python<'_>, prefix: Option<bool>, keep_space: bool, raw: bool) -> PyResult<Py<Engine>> {
        let number = prefix.map_or(0, |prefix| 1 + usize::from(prefix)) * 4 + usize::from(keep_space) * 2;
        let place = &self.variants[number + usize::from(raw)];
        if let Some(made) = place.get() {
            return Ok(made.clone_ref(py));
        }
        let engine = self.engine.variant(prefix, keep_space, raw);
        let new = Py::new(
            py,
            Engine { engine, ints: self.ints.clone(), texts: self.texts.clone(), variants: Default::default() },
        )?;
        // Another thread may have been first; nobody waits for anybody, and either will do.
        let _ = place.set(new.clone_ref(py));
        Ok(new)
    }

    /// Special tokens that the file says were added to the model.
    #[getter]
    fn added<'py>(&self, py: Python<'py>) -> Vec<(Bound<'py, PyBytes>, u32)> {
        self.engine.added.iter().map(|(text, id)| (PyBytes::new(py, text), *id)).collect()
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
        self.engine.vocab.byte_ids.is_some()
    }

    #[getter]
    fn normalizer_name<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.engine.vocab.normalizer_name)
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
        self.engine.vocab.pieces.score(id)
    }

    fn kind(&self, id: u32) -> u8 {
        self.engine.vocab.kind(id)
    }

    fn normalize<'py>(&self, py: Python<'py>, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let (text, _) = utf8(text)?;
        Ok(PyBytes::new(py, &py.detach(|| self.engine.normalize(text))))
    }

    fn encode<'py>(&self, py: Python<'py>, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        self.encoded(py, text, |ids| self.ints.list(py, ids))?
    }

    fn encode_array<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        if threads == 1 {
            return self.encoded(py, text, |ids| PyByteArray::new(py, bytes_of(ids)));
        }
        let (text, valid) = utf8(text)?;
        let ids = py.detach(|| self.engine.encode_parallel(text, valid, threads));
        Ok(PyByteArray::new(py, bytes_of(&ids)))
    }

    fn count(&self, py: Python<'_>, text: &Bound<'_, PyAny>) -> PyResult<usize> {
        self.encoded(py, text, <[u32]>::len)
    }

    fn encode_batch<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyList>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let kept: Vec<Bound<'py, PyAny>> = texts.iter().collect();
        let slices = kept.iter().map(utf8).collect::<PyResult<Vec<_>>>()?;
        let lists = (0..slices.len()).map(|_| None).collect();
        let mut lists = Lists { py, ints: &self.ints, lists, error: None };
        let paused = PausedCollector::new(py);
        self.engine.encode_batch(&slices, threads, &mut lists);
        drop(paused);
        match lists.error {
            Some(error) => Err(error),
            None => PyList::new(py, lists.lists),
        }
    }

    /// The ids of all texts as bytes of u32, and where each text begins, and the end, as bytes of i64.
    fn encode_batch_arrays<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyList>,
        threads: usize,
    ) -> PyResult<(Bound<'py, PyByteArray>, Bound<'py, PyByteArray>)> {
        let kept: Vec<Bound<'py, PyAny>> = texts.iter().collect();
        let slices = kept.iter().map(utf8).collect::<PyResult<Vec<_>>>()?;
        let batches = py.detach(|| {
            let mut batches = Vec::new();
            self.engine.encode_batch(&slices, threads, &mut batches);
            batches.sort_unstable_by_key(|batch: &engine::Batch| batch.first);
            batches
        });
        let mut ends = Vec::with_capacity((slices.len() + 1) * 8);
        let mut end = 0i64;
        ends.extend_from_slice(&end.to_ne_bytes());
        for length in batches.iter().flat_map(|batch| &batch.lengths) {
            end += *length as i64;
            ends.extend_from_slice(&end.to_ne_bytes());
        }
        let parts: Vec<&[u8]> = batches.iter().map(|batch| bytes_of(&batch.ids)).collect();
        let threads = if end < MANY { 1 } else { threads };
        Ok((join(py, &parts, threads)?, PyByteArray::new(py, &ends)))
    }

    fn tokens<'py>(&self, py: Python<'py>, text: &Bound<'py, PyAny>) -> PyResult<Tokens> {
        self.aligned(py, text, None)
    }

    fn sample<'py>(&self, py: Python<'py>, text: &Bound<'py, PyAny>, alpha: f64, seed: u64) -> PyResult<Tokens> {
        self.aligned(py, text, Some((alpha, seed)))
    }

    fn cut(&self, py: Python<'_>, text: &[u8]) -> usize {
        py.detach(|| crate::settled::last_cut(&self.engine.vocab, text))
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

/// Words that are found in text.
#[pyclass(frozen, module = "cpbpe._core")]
struct Matcher(matcher::Matcher);

#[pymethods]
impl Matcher {
    #[new]
    fn new(py: Python<'_>, words: Vec<Bound<'_, PyBytes>>) -> PyResult<Matcher> {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let made = py.detach(|| matcher::Matcher::new(&words));
        made.map(Matcher).ok_or_else(|| PyValueError::new_err("too many words, or an empty one"))
    }

    /// The text before a word, the word's number, the text behind it, and so on; None without words.
    #[pyo3(signature = (text, /))]
    fn split<'py>(&self, py: Python<'py>, text: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyList>>> {
        let (data, valid) = utf8(text)?;
        let find = |at| if data.len() < DETACH { self.0.find(data, at) } else { py.detach(|| self.0.find(data, at)) };
        let Some(mut found) = find(0) else { return Ok(None) };
        let part = |part: &[u8]| if valid { string(py, part).into_any() } else { PyBytes::new(py, part).into_any() };
        let parts = PyList::empty(py);
        let mut done = 0;
        loop {
            parts.append(part(&data[done..found.begin]))?;
            parts.append(found.word)?;
            done = found.end;
            match self.0.find(data, done) {
                Some(next) => found = next,
                None => break,
            }
        }
        parts.append(part(&data[done..]))?;
        Ok(Some(parts))
    }
}

#[pymodule(gil_used = true)]
mod _core {
    #[pymodule_export]
    use super::{Engine, Matcher};
    #[pymodule_export]
    use crate::python_train::{learn, merge_words, Counter};
}
