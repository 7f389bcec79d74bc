//! The class `Engine`: one model, and every call that it answers. Most of them are a few lines here; the longer ones are
//! in the files that are named after what they do.

use std::sync::{Arc, OnceLock};

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString, PyTuple};

use cpbpe::memory::copied;
use cpbpe::watch::Check;
use cpbpe::{AlignOptions, ByteLevelOptions, Columns, Dropout, Ends, Error, Form, Scratch};

use crate::aligned::dropout_of;
use crate::arrays;
use crate::columns::{byte_level_of, dict_of, normalizer_of, numbers_of, ByteLevelTuple, NormalizerTuple};
use crate::errors::{exception, halted};
use crate::finder::Finder;
use crate::pieces::Pieces;
use crate::signals::run;
use crate::slices::Slices;
use crate::values::{bytes, int, items_of, list, numbered, results, string, texts_of, tuple, utf8, Ints, Lists};

/// An object, or None.
type Maybe<'py, T> = PyResult<Option<Bound<'py, T>>>;

/// One model in compiled form.
#[pyclass(frozen, module = "cpbpe._core")]
pub struct Engine {
    pub engine: cpbpe::Engine,
    pub ints: Arc<Ints>,
    /// Python's objects for the pieces.
    pub pieces: Arc<Pieces>,
    /// Its variants, which are kept once they are made; see `variant`.
    variants: [OnceLock<Py<Engine>>; 12],
}

impl Engine {
    pub fn new(engine: cpbpe::Engine) -> PyResult<Engine> {
        let ints = Arc::new(Ints::new(engine.size())?);
        Ok(Engine { engine, ints, pieces: Arc::default(), variants: Default::default() })
    }

    /// Encode a text, and turn the ids into a value.
    #[inline]
    pub fn encoded<R>(
        &self,
        py: Python<'_>,
        text: &Bound<'_, PyAny>,
        ends: Ends,
        make: impl FnOnce(&[u32]) -> PyResult<R>,
    ) -> PyResult<R> {
        let (text, valid) = utf8(text)?;
        let encode = |scratch: &mut Scratch| {
            run(py, text.len(), |check| self.engine.encode_between(text, valid, ends, check, scratch))?;
            make(&scratch.ids)
        };
        self.engine.with_scratch(encode).map_err(halted)?
    }
}

#[pymethods]
impl Engine {
    /// Read a model file; None if it is not a valid BPE model.
    #[staticmethod]
    fn from_model(py: Python<'_>, data: &[u8]) -> PyResult<Option<Engine>> {
        match py.detach(|| cpbpe::Engine::from_model(data)) {
            Ok(engine) => Engine::new(engine).map(Some),
            Err(error @ Error::OutOfMemory) => Err(exception(error)),
            Err(_) => Ok(None),
        }
    }

    /// An engine for a model that is given as columns; ValueError if it is not a valid BPE model.
    #[staticmethod]
    #[pyo3(signature = (
        *, blob, ends, scores, types, byte_fallback, unk_surface, special_pieces, normalizer, denormalizer, added,
        byte_level = None,
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
        byte_level: Option<ByteLevelTuple>,
    ) -> PyResult<Engine> {
        let (unk, bos, eos, pad) = special_pieces;
        let columns = Columns {
            blob: copied(blob).map_err(halted)?,
            ends: numbers_of(ends, u32::from_ne_bytes)?,
            scores: numbers_of(scores, f32::from_ne_bytes)?,
            types: types.to_vec(),
            byte_fallback,
            unk_surface,
            special_pieces: [unk, bos, eos, pad],
            normalizer: normalizer_of(normalizer)?,
            denormalizer: denormalizer.map(normalizer_of).transpose()?,
            byte_level: byte_level.map(|(pattern, name, whole, then)| ByteLevelOptions { pattern, then, name, whole }),
            added,
        };
        let engine = py.detach(|| cpbpe::Engine::from_columns(columns));
        Engine::new(engine.map_err(exception)?)
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
        let (ints, pieces) = (self.ints.clone(), self.pieces.clone());
        let new = Py::new(py, Engine { engine, ints, pieces, variants: Default::default() })?;
        // (Another thread may have been first. Nobody waits, and either variant will do.)
        let _ = place.set(new.clone_ref(py));
        Ok(new)
    }

    /// Special tokens that the file says were added to the model.
    #[getter]
    fn added<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        numbered(py, self.engine.added().iter().map(|(text, id)| (&text[..], *id as usize)))
    }

    #[getter]
    fn size(&self) -> usize {
        self.engine.size()
    }

    #[getter]
    fn byte_fallback(&self) -> bool {
        self.engine.byte_fallback()
    }

    /// The pattern of a byte-level model, its name, whether chunks that are pieces are taken whole, and more patterns.
    #[getter]
    fn byte_level(&self) -> Option<ByteLevelTuple> {
        self.engine.byte_level().cloned().map(byte_level_of)
    }

    /// The Unicode normal form of a byte-level model, empty if it has none.
    #[getter]
    fn unicode_form(&self) -> &'static str {
        self.engine.unicode_form().map_or("", Form::name)
    }

    #[getter]
    fn normalizer_name<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        bytes(py, self.engine.normalizer_name())
    }

    /// The ids of unk, bos, eos and pad.
    #[getter]
    fn specials(&self) -> [Option<u32>; 4] {
        self.engine.specials()
    }

    fn piece<'py>(&self, py: Python<'py>, id: u32) -> PyResult<Bound<'py, PyBytes>> {
        bytes(py, &self.engine.piece(id))
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
        self.normalized_bytes(py, text)
    }

    #[pyo3(signature = (text, strict = false))]
    fn normalize_str<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        strict: bool,
    ) -> PyResult<Bound<'py, PyString>> {
        self.normalized(py, text, strict)
    }

    fn normalize_batch<'py>(&self, py: Python<'py>, texts: &Bound<'py, PyList>, strict: bool) -> Maybe<'py, PyList> {
        self.normalized_all(py, texts, strict)
    }

    fn origins<'py>(&self, py: Python<'py>, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
        self.normalized_with_origins(py, text)
    }

    #[pyo3(signature = (text, front = None, back = None, reverse = false))]
    fn encode<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        front: Option<u32>,
        back: Option<u32>,
        reverse: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        self.encoded(py, text, Ends { front, back, reverse }, |ids| self.ints.list(py, ids))
    }

    #[pyo3(signature = (text, threads, front = None, back = None, reverse = false))]
    fn encode_array<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        threads: usize,
        front: Option<u32>,
        back: Option<u32>,
        reverse: bool,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        arrays::prepare(py)?;
        let ends = Ends { front, back, reverse };
        if threads == 1 {
            return self.encoded(py, text, ends, |ids| arrays::array(py, ids));
        }
        let (text, valid) = utf8(text)?;
        let mut ids = run(py, text.len(), |check| self.engine.encode_parallel(text, valid, threads, check))?;
        if reverse {
            ids.reverse();
        }
        arrays::joined(py, &[front.as_slice(), &ids, back.as_slice()], threads)
    }

    #[pyo3(signature = (text, front = None, back = None, reverse = false, strict = false))]
    fn encode_pieces<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        front: Option<u32>,
        back: Option<u32>,
        reverse: bool,
        strict: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        self.pieces_of(py, text, Ends { front, back, reverse }, strict)
    }

    fn count<'py>(&self, py: Python<'py>, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyInt>> {
        let (text, valid) = utf8(text)?;
        let count = |check: Check| self.engine.with_scratch(|own| self.engine.count(text, valid, check, own))?;
        int(py, run(py, text.len(), count)?)
    }

    #[pyo3(signature = (texts, threads, front = None, back = None, reverse = false))]
    fn encode_batch<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyList>,
        threads: usize,
        front: Option<u32>,
        back: Option<u32>,
        reverse: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let kept = items_of(texts)?;
        let texts = texts_of(&kept)?;
        let ends = Ends { front, back, reverse };
        let encode = |lists: &mut Lists, check: Check| self.engine.encode_batch(&texts, threads, ends, check, lists);
        Lists::of(py, &self.ints, texts.len(), encode)
    }

    fn count_batch<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyList>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let kept = items_of(texts)?;
        let texts = texts_of(&kept)?;
        let parts = results(py, |parts, check| self.engine.count_batch(&texts, threads, check, parts))?;
        let mut counts = parts.iter().flatten();
        list(py, 0..texts.len(), |_| int(py, counts.next().copied().unwrap_or(0)))
    }

    /// The ids of all texts, and where each text begins, and the end.
    #[pyo3(signature = (texts, threads, front = None, back = None, reverse = false))]
    fn encode_arrays<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyList>,
        threads: usize,
        front: Option<u32>,
        back: Option<u32>,
        reverse: bool,
    ) -> PyResult<Bound<'py, PyTuple>> {
        arrays::prepare(py)?;
        let kept = items_of(texts)?;
        let (ids, offsets) = self.ids_of_texts(py, &texts_of(&kept)?, threads, Ends { front, back, reverse })?;
        tuple(py, [ids, offsets])
    }

    /// The same of lines, except those that are empty; and the numbers of these, from 0.
    #[pyo3(signature = (data, threads, front = None, back = None, reverse = false))]
    fn encode_lines<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyBytes>,
        threads: usize,
        front: Option<u32>,
        back: Option<u32>,
        reverse: bool,
    ) -> PyResult<Bound<'py, PyTuple>> {
        arrays::prepare(py)?;
        self.ids_of_lines(py, data, threads, Ends { front, back, reverse })
    }

    /// The ids with merges skipped at random.
    fn sample<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        alpha: f64,
        seed: u64,
    ) -> PyResult<Bound<'py, PyList>> {
        self.sampled(py, text, Dropout { alpha, seed })
    }

    /// Ids, pieces, begins and ends. With `alpha` every merge is skipped with this chance, by a seed.
    #[pyo3(signature = (text, alpha = None, seed = 0))]
    fn align<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        alpha: Option<f64>,
        seed: u64,
    ) -> PyResult<Bound<'py, PyTuple>> {
        self.aligned(py, text, dropout_of(alpha, seed))
    }

    /// Ids, pieces and spans; None if a piece is not UTF-8 that should be str.
    #[pyo3(signature = (text, chars, as_bytes = false, alpha = None, seed = 0))]
    fn mapping<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        chars: bool,
        as_bytes: bool,
        alpha: Option<f64>,
        seed: u64,
    ) -> Maybe<'py, PyTuple> {
        self.mapped(py, text, AlignOptions { characters: Some(chars), dropout: dropout_of(alpha, seed) }, as_bytes)
    }

    /// The same of all texts.
    #[pyo3(signature = (texts, threads, chars, as_bytes = false, alpha = None, seed = 0))]
    #[allow(clippy::too_many_arguments)]
    fn mapping_batch<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyList>,
        threads: usize,
        chars: Option<bool>,
        as_bytes: bool,
        alpha: Option<f64>,
        seed: u64,
    ) -> Maybe<'py, PyList> {
        let options = AlignOptions { characters: chars, dropout: dropout_of(alpha, seed) };
        self.mapped_batch(py, texts, threads, options, as_bytes)
    }

    /// The message of a text with its tokens.
    #[pyo3(signature = (text, in_parallel = false, alpha = None, seed = 0))]
    fn message<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        in_parallel: bool,
        alpha: Option<f64>,
        seed: u64,
    ) -> Maybe<'py, PyBytes> {
        let input = utf8(text)?;
        let dropout = dropout_of(alpha, seed);
        let message = run(py, input.0.len(), |check| self.engine.message(input, dropout, in_parallel, check))?;
        bytes(py, &message).map(Some)
    }

    /// The ids of all texts, where each text begins, and the end; the begin and end of every token in its text; and
    /// each token of the UNKNOWN piece with the text that is unknown.
    #[pyo3(signature = (texts, threads, chars, alpha = None, seed = 0))]
    fn align_arrays<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyList>,
        threads: usize,
        chars: Option<bool>,
        alpha: Option<f64>,
        seed: u64,
    ) -> PyResult<Bound<'py, PyTuple>> {
        arrays::prepare(py)?;
        let kept = items_of(texts)?;
        let options = AlignOptions { characters: chars, dropout: dropout_of(alpha, seed) };
        self.aligned_arrays(py, &texts_of(&kept)?, threads, options)
    }

    /// The normalized text, and the place in the text that each of its characters came from; None if it is empty.
    fn character_origins<'py>(&self, py: Python<'py>, text: &Bound<'py, PyString>) -> Maybe<'py, PyTuple> {
        self.origins_of_characters(py, text)
    }

    /// Texts that begin and end at these places of an array of bytes.
    fn slices<'py>(
        slf: &Bound<'py, Self>,
        py: Python<'py>,
        data: Bound<'py, PyArray1<u8>>,
        begins: Bound<'py, PyAny>,
        ends: Bound<'py, PyAny>,
    ) -> PyResult<Slices> {
        arrays::prepare(py)?;
        Slices::new(slf.clone().unbind(), data, [begins, ends])
    }

    /// A finder of these keys in text. It does not use the model.
    #[allow(clippy::unused_self)]
    fn finder(&self, py: Python<'_>, keys: &Bound<'_, PyList>) -> PyResult<Finder> {
        Finder::new(py, keys)
    }

    fn cut(&self, py: Python<'_>, text: &[u8]) -> PyResult<usize> {
        run(py, text.len(), |check| self.engine.last_cut(text, check))
    }

    /// The text of ids: a list of int, or the bytes of u32. None if one is outside the vocabulary.
    fn decode<'py>(&self, py: Python<'py>, ids: &Bound<'py, PyAny>) -> Maybe<'py, PyString> {
        self.decoded(py, ids, false, |text| string(py, text))
    }

    fn decode_bytes<'py>(&self, py: Python<'py>, ids: &Bound<'py, PyAny>) -> Maybe<'py, PyBytes> {
        self.decoded(py, ids, true, |text| bytes(py, text))
    }

    fn decode_batch<'py>(&self, py: Python<'py>, batch: &Bound<'py, PyList>, threads: usize) -> Maybe<'py, PyList> {
        self.decoded_all(py, batch, threads)
    }

    /// The texts of many sequences of ids as lines; None if an id is outside the vocabulary.
    fn decode_lines<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyArray1<u32>>,
        offsets: &Bound<'py, PyArray1<i64>>,
    ) -> Maybe<'py, PyBytes> {
        self.decoded_lines(py, ids, offsets)
    }

    /// The ids in lines of pieces, where each line begins, and the end; and the place of an unknown piece, or None.
    fn read_pieces<'py>(&self, py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyTuple>> {
        self.ids_of_pieces(py, data)
    }

    /// The text of ids or pieces, the ids, the pieces and their spans; None if this is not as simple as usual.
    fn decode_mapping<'py>(&self, py: Python<'py>, tokens: &Bound<'py, PyAny>, as_bytes: bool) -> Maybe<'py, PyTuple> {
        self.decoded_mapping(py, tokens, as_bytes)
    }

    /// The message of the text of ids or pieces; None likewise.
    fn decode_message<'py>(&self, py: Python<'py>, tokens: &Bound<'py, PyAny>) -> Maybe<'py, PyBytes> {
        self.decoded_message(py, tokens)
    }

    /// The text of pieces, str or bytes. None if one is neither.
    fn decode_pieces<'py>(&self, py: Python<'py>, pieces: &Bound<'py, PyList>) -> Maybe<'py, PyString> {
        self.joined(py, pieces, |text| string(py, text))
    }

    /// The texts of lists of pieces. None if there is anything else.
    fn decode_pieces_batch<'py>(&self, py: Python<'py>, batch: &Bound<'py, PyList>) -> Maybe<'py, PyList> {
        self.joined_all(py, batch)
    }

    fn decode_pieces_bytes<'py>(&self, py: Python<'py>, pieces: &Bound<'py, PyList>) -> Maybe<'py, PyBytes> {
        self.joined(py, pieces, |text| bytes(py, text))
    }
}
