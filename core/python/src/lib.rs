//! The border to Python. Only this file and its two neighbours know it. What crosses is str, bytes, lists of int, and
//! buffers of u32 as bytes. Checking types, and what to say about wrong ones, is the business of `cpbpe/tokenizer.py`.

use std::sync::{Arc, OnceLock};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList, PyString};

use cpbpe::engine;
use cpbpe::matcher;
mod errors;
mod training;
mod values;
use crate::values::{bytes_of, ids_of, join, string, utf8, Ints, Lists, PausedCollector};

/// From this size on the interpreter is free for others while we work. Below, giving it up costs more than
/// anyone could gain.
const DETACH: usize = 1 << 12;

/// From so many ids on a thread more is worth starting to copy them.
const MANY: i64 = 1 << 18;

/// One model in compiled form.
#[pyclass(frozen, module = "cpbpe._core")]
struct Engine {
    engine: engine::Engine,
    ints: Arc<Ints>,
    /// Python's bytes for every piece, made when first needed, and so is the table.
    texts: Arc<OnceLock<Vec<OnceLock<Py<PyBytes>>>>>,
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
        // No lock of these is ever held while another thread runs: the interpreter is ours.
        let texts = self.texts.get_or_init(|| (0..vocab.len()).map(|_| OnceLock::new()).collect());
        let mut piece = Vec::new();
        let mut found: Tokens = Default::default();
        for token in &aligned.tokens {
            found.0.push(token.id);
            found.1.push(if Some(token.id) == vocab.unk {
                piece.clear();
                cpbpe::tokens::piece_of(vocab, token, &aligned.text, aligned.compact, &mut piece);
                PyBytes::new(py, &piece).unbind()
            } else {
                texts[token.id as usize].get_or_init(|| self.piece(py, token.id).unbind()).clone_ref(py)
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
        Some(Engine { engine, ints, texts: Arc::default(), variants: Default::default() })
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
        py.detach(|| cpbpe::settled::last_cut(&self.engine.vocab, text))
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
        let found = if data.len() < DETACH { self.0.find_all(data) } else { py.detach(|| self.0.find_all(data)) };
        if found.is_empty() {
            return Ok(None);
        }
        let part = |part: &[u8]| if valid { string(py, part).into_any() } else { PyBytes::new(py, part).into_any() };
        let parts = PyList::empty(py);
        let mut done = 0;
        for one in found {
            parts.append(part(&data[done..one.begin]))?;
            parts.append(one.word)?;
            done = one.end;
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
    use crate::training::{learn, merge_words, Counter};
}
