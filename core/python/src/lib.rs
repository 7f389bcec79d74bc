//! The border to Python: `Engine` and `Finder`, and in `training.rs` what training needs. What crosses is str, bytes, lists
//! of int, numpy arrays, and models as columns. What users get wrong is checked, and said, in Python.

use std::sync::{Arc, OnceLock};

use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use cpbpe::{AlignOptions, Columns, Dropout};

mod arrays;
mod columns;
mod errors;
mod training;
mod values;

use crate::columns::{dict_of, normalizer_of, numbers_of, NormalizerTuple};
use crate::errors::exception;
use crate::values::{ids_of, string, utf8, Ints, Lists, PausedCollector, Results};

/// From this size on the interpreter is free for other threads while we work. Below, releasing it costs more than
/// they could gain.
const DETACH: usize = 1 << 12;

/// One model in compiled form.
#[pyclass(frozen, module = "cpbpe._core")]
struct Engine {
    engine: cpbpe::Engine,
    ints: Arc<Ints>,
    /// Python's bytes for every piece, each made when first needed, as is the table.
    texts: Arc<OnceLock<Vec<OnceLock<Py<PyBytes>>>>>,
    /// Its variants, each kept once it is made; see `variant`.
    variants: [OnceLock<Py<Engine>>; 12],
}

/// Ids, pieces, begins and ends.
type TokenColumns = (Vec<u32>, Vec<Py<PyBytes>>, Vec<usize>, Vec<usize>);
/// Ids and offsets.
type EncodedArrays<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<i64>>);
/// Ids, offsets, spans, and unknown tokens with their texts.
type AlignedArrays<'py> = (
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray2<i64>>,
    Vec<(usize, Bound<'py, PyBytes>)>,
);

impl Engine {
    fn new(engine: cpbpe::Engine) -> Engine {
        let ints = Arc::new(Ints::new(engine.size()));
        Engine { engine, ints, texts: Arc::default(), variants: Default::default() }
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
        py.detach(|| cpbpe::Engine::from_model(data)).ok().map(Engine::new)
    }

    /// An engine for a model that is given as columns; ValueError if it is not a valid BPE model.
    #[staticmethod]
    #[pyo3(signature = (
        *, blob, ends, scores, types, byte_fallback, unk_surface, special_pieces, normalizer, denormalizer, added
    ))]
    #[allow(clippy::too_many_arguments)]
    fn from_columns(
        py: Python<'_>,
        blob: &[u8],
        ends: &[u8],
        scores: &[u8],
        types: &[u8],
        byte_fallback: bool,
        unk_surface: Vec<u8>,
        special_pieces: (Vec<u8>, Vec<u8>, Vec<u8>, Vec<u8>),
        normalizer: NormalizerTuple,
        denormalizer: Option<NormalizerTuple>,
        added: Vec<(Vec<u8>, u32)>,
    ) -> PyResult<Engine> {
        let (unk, bos, eos, pad) = special_pieces;
        let columns = Columns {
            blob: blob.to_vec(),
            ends: numbers_of(ends, u32::from_ne_bytes)?,
            scores: numbers_of(scores, f32::from_ne_bytes)?,
            types: types.to_vec(),
            byte_fallback,
            unk_surface,
            special_pieces: [unk, bos, eos, pad],
            normalizer: normalizer_of(normalizer),
            denormalizer: denormalizer.map(normalizer_of),
            added,
        };
        let engine = py.detach(|| cpbpe::Engine::from_columns(columns));
        engine.map(Engine::new).map_err(exception)
    }

    /// The same model as columns.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        dict_of(py, py.detach(|| self.engine.columns()))
    }

    /// The same engine with other options, made once.
    #[pyo3(signature = (*, prefix = None, keep_space = false, raw = false))]
    fn variant(&self, py: Python<'_>, prefix: Option<bool>, keep_space: bool, raw: bool) -> PyResult<Py<Engine>> {
        let number = prefix.map_or(0, |prefix| 1 + usize::from(prefix)) * 4 + usize::from(keep_space) * 2;
        let place = &self.variants[number + usize::from(raw)];
        if let Some(variant) = place.get() {
            return Ok(variant.clone_ref(py));
        }
        let engine = self.engine.variant(prefix, keep_space, raw);
        let new = Py::new(
            py,
            Engine { engine, ints: self.ints.clone(), texts: self.texts.clone(), variants: Default::default() },
        )?;
        // (Another thread may have been first. Nobody waits, and either variant will do.)
        let _ = place.set(new.clone_ref(py));
        Ok(new)
    }

    /// Special tokens that the file says were added to the model.
    #[getter]
    fn added<'py>(&self, py: Python<'py>) -> Vec<(Bound<'py, PyBytes>, u32)> {
        self.engine.added().iter().map(|(text, id)| (PyBytes::new(py, text), *id)).collect()
    }

    #[getter]
    fn size(&self) -> usize {
        self.engine.size()
    }

    #[getter]
    fn byte_fallback(&self) -> bool {
        self.engine.byte_fallback()
    }

    #[getter]
    fn normalizer_name<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.engine.normalizer_name())
    }

    /// The ids of unk, bos, eos and pad.
    #[getter]
    fn specials(&self) -> [Option<u32>; 4] {
        self.engine.specials()
    }

    fn piece<'py>(&self, py: Python<'py>, id: u32) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.engine.piece(id))
    }

    fn find(&self, piece: &[u8]) -> Option<u32> {
        self.engine.find(piece)
    }

    fn score(&self, id: u32) -> f32 {
        self.engine.score(id)
    }

    fn kind(&self, id: u32) -> u8 {
        self.engine.kind(id)
    }

    fn normalize<'py>(&self, py: Python<'py>, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let (text, _) = utf8(text)?;
        Ok(PyBytes::new(py, &py.detach(|| self.engine.normalize(text))))
    }

    fn origins<'py>(&self, py: Python<'py>, text: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyBytes>, Vec<usize>)> {
        let (text, _) = utf8(text)?;
        let (normalized, origins) = py.detach(|| self.engine.origins(text));
        Ok((PyBytes::new(py, &normalized), origins))
    }

    fn encode<'py>(&self, py: Python<'py>, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        self.encoded(py, text, |ids| self.ints.list(py, ids))?
    }

    fn encode_array<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        arrays::prepare(py)?;
        if threads == 1 {
            return self.encoded(py, text, |ids| arrays::array(py, ids))?;
        }
        let (text, valid) = utf8(text)?;
        let ids = py.detach(|| self.engine.encode_parallel(text, valid, threads));
        arrays::joined(py, &[&ids], threads)
    }

    fn count(&self, py: Python<'_>, text: &Bound<'_, PyAny>) -> PyResult<usize> {
        let (text, valid) = utf8(text)?;
        let count = || self.engine.with_scratch(|scratch| self.engine.count(text, valid, scratch));
        Ok(if text.len() < DETACH { count() } else { py.detach(count) })
    }

    fn encode_batch<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyList>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let kept: Vec<Bound<'py, PyAny>> = texts.iter().collect();
        let slices = kept.iter().map(utf8).collect::<PyResult<Vec<_>>>()?;
        let mut lists = Lists::new(py, &self.ints, slices.len());
        let paused = PausedCollector::new(py);
        self.engine.encode_batch(&slices, threads, &mut lists);
        drop(paused);
        lists.finish()
    }

    fn count_batch(&self, py: Python<'_>, texts: &Bound<'_, PyList>, threads: usize) -> PyResult<Vec<usize>> {
        let kept: Vec<Bound<'_, PyAny>> = texts.iter().collect();
        let slices = kept.iter().map(utf8).collect::<PyResult<Vec<_>>>()?;
        let counts = Results::of(py, |results| self.engine.count_batch(&slices, threads, results))?;
        Ok(counts.concat())
    }

    /// The ids of all texts, and where each text begins, and the end.
    fn encode_arrays<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyList>,
        threads: usize,
    ) -> PyResult<EncodedArrays<'py>> {
        arrays::prepare(py)?;
        let kept: Vec<Bound<'py, PyAny>> = texts.iter().collect();
        let slices = kept.iter().map(utf8).collect::<PyResult<Vec<_>>>()?;
        let parts = Results::of(py, |results| self.engine.encode_batch(&slices, threads, results))?;
        let ids: Vec<&[u32]> = parts.iter().map(|part| part.ids.as_slice()).collect();
        let lengths = parts.iter().flat_map(|part| part.lengths.iter().copied());
        Ok((arrays::joined(py, &ids, threads)?, arrays::offsets(py, lengths)?))
    }

    /// Ids, pieces, begins and ends. With `alpha` every merge is left out with this chance, by a seed.
    #[pyo3(signature = (text, alpha = None, seed = 0))]
    fn align<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        alpha: Option<f64>,
        seed: u64,
    ) -> PyResult<TokenColumns> {
        let (text, _) = utf8(text)?;
        let dropout = alpha.map(|alpha| Dropout { alpha, seed });
        let aligned = py.detach(|| self.engine.tokens(text, dropout));
        // (Nothing below releases the interpreter, so no other thread ever waits for one of these locks, nor forks.)
        let texts = self.texts.get_or_init(|| (0..self.engine.size()).map(|_| OnceLock::new()).collect());
        let mut piece = Vec::new();
        let (mut ids, mut pieces, mut begins, mut ends): TokenColumns = Default::default();
        for token in &aligned.tokens {
            ids.push(token.id);
            pieces.push(if Some(token.id) == self.engine.unknown() {
                piece.clear();
                self.engine.piece_of(token, &aligned, &mut piece);
                PyBytes::new(py, &piece).unbind()
            } else {
                texts[token.id as usize].get_or_init(|| self.piece(py, token.id).unbind()).clone_ref(py)
            });
            begins.push(aligned.origins[token.begin]);
            ends.push(aligned.origins[token.end]);
        }
        Ok((ids, pieces, begins, ends))
    }

    /// The ids of all texts, where each text begins, and the end; the begin and end of every token in its text; and each
    /// token of the UNKNOWN piece with the text that is unknown.
    #[pyo3(signature = (texts, threads, chars, alpha = None, seed = 0))]
    fn align_arrays<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyList>,
        threads: usize,
        chars: Option<bool>,
        alpha: Option<f64>,
        seed: u64,
    ) -> PyResult<AlignedArrays<'py>> {
        arrays::prepare(py)?;
        let kept: Vec<Bound<'py, PyAny>> = texts.iter().collect();
        let slices = kept.iter().map(utf8).collect::<PyResult<Vec<_>>>()?;
        let options = AlignOptions { characters: chars, dropout: alpha.map(|alpha| Dropout { alpha, seed }) };
        let parts = Results::of(py, |results| self.engine.align_batch(&slices, threads, options, results))?;
        let ids: Vec<&[u32]> = parts.iter().map(|part| part.ids.as_slice()).collect();
        let spans: Vec<&[[i64; 2]]> = parts.iter().map(|part| part.spans.as_slice()).collect();
        let lengths = parts.iter().flat_map(|part| part.lengths.iter().copied());
        let mut unknown = Vec::new();
        let mut before = 0;
        for part in &parts {
            unknown.extend(part.unknown.iter().map(|(at, text)| (before + at, PyBytes::new(py, text))));
            before += part.ids.len();
        }
        Ok((
            arrays::joined(py, &ids, threads)?,
            arrays::offsets(py, lengths)?,
            arrays::joined_pairs(py, &spans, threads)?,
            unknown,
        ))
    }

    /// What finds these keys in text; nothing of the model is needed for it.
    #[allow(clippy::unused_self)]
    fn finder(&self, py: Python<'_>, keys: Vec<Bound<'_, PyBytes>>) -> PyResult<Finder> {
        Finder::new(py, keys)
    }

    fn cut(&self, py: Python<'_>, text: &[u8]) -> usize {
        py.detach(|| self.engine.last_cut(text))
    }

    /// The text of ids: a list of int, or the bytes of u32. None if one is outside the vocabulary.
    fn decode<'py>(&self, py: Python<'py>, ids: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyString>>> {
        let Some(ids) = ids_of(ids)? else { return Ok(None) };
        let text = if ids.len() < DETACH {
            self.engine.decoder().decode(&ids, false)
        } else {
            py.detach(|| self.engine.decoder().decode(&ids, false))
        };
        Ok(text.ok().map(|text| string(py, &text)))
    }

    fn decode_bytes<'py>(&self, py: Python<'py>, ids: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let Some(ids) = ids_of(ids)? else { return Ok(None) };
        let text = if ids.len() < DETACH {
            self.engine.decoder().decode(&ids, true)
        } else {
            py.detach(|| self.engine.decoder().decode(&ids, true))
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
        let Some(texts) = py.detach(|| self.engine.decoder().decode_batch(&batch, threads)) else { return Ok(None) };
        let texts = texts.iter().map(|text| string(py, text));
        Ok(Some(PyList::new(py, texts.collect::<Vec<_>>())?))
    }

    fn decode_pieces<'py>(&self, py: Python<'py>, pieces: Vec<Bound<'py, PyBytes>>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.engine.decoder().decode_pieces(pieces.iter().map(|piece| piece.as_bytes())))
    }
}

/// Finds keys in text: the longest at each place, from left to right.
#[pyclass(frozen, module = "cpbpe._core")]
struct Finder(cpbpe::Finder);

#[pymethods]
impl Finder {
    #[new]
    fn new(py: Python<'_>, keys: Vec<Bound<'_, PyBytes>>) -> PyResult<Finder> {
        let keys: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes()).collect();
        let finder = py.detach(|| cpbpe::Finder::new(&keys));
        finder.map(Finder).map_err(exception)
    }

    /// The text before a key, the key's number, the text after it, and so on; None if the text holds no key.
    #[pyo3(signature = (text, /))]
    fn split<'py>(&self, py: Python<'py>, text: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyList>>> {
        let (data, valid) = utf8(text)?;
        let matches = if data.len() < DETACH { self.0.find_all(data) } else { py.detach(|| self.0.find_all(data)) };
        if matches.is_empty() {
            return Ok(None);
        }
        let part = |part: &[u8]| if valid { string(py, part).into_any() } else { PyBytes::new(py, part).into_any() };
        let parts = PyList::empty(py);
        let mut done = 0;
        for matched in matches {
            parts.append(part(&data[done..matched.begin]))?;
            parts.append(matched.key)?;
            done = matched.end;
        }
        parts.append(part(&data[done..]))?;
        Ok(Some(parts))
    }
}

#[pymodule(gil_used = true)]
mod _core {
    use pyo3::panic::PanicException;
    use pyo3::prelude::*;
    use pyo3::PyTypeInfo;

    #[pymodule_export]
    use super::{Engine, Finder};
    #[pymodule_export]
    use crate::training::{learn, merge_words, Counter};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // PyO3 makes this type when it first looks at an exception, under a lock that a fork might leave taken in the
        // child (see `arrays::prepare`); here no other thread uses us yet.
        let _ = PanicException::type_object(module.py());
        Ok(())
    }
}
