//! The class `Engine`: one model, and every call that it answers. `cpbpe/engine/protocol.py` says what each call does.

use std::sync::{Arc, OnceLock};

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString, PyTuple};

use cpbpe::memory::with_room;
use cpbpe::watch::Check;
use cpbpe::{AlignOptions, DecodedTexts, Dropout, EncodedTexts, Ends, Error, Lines, Scratch, Texts, Wanted};

use crate::arrays;
use crate::columns::{columns_of, dict_of, head_of};
use crate::errors::{exception, halted};
use crate::lines::{columns, rows};
use crate::pieces::Pieces;
use crate::room::Room;
use crate::signals::{run, DETACH};
use crate::values::{
    bytes, escaped_string, ids_into, int, items_of, list, results, str_of, string, texts_of, tuple, utf8, with_ids,
    with_texts, Ints, Lists, PausedCollector,
};

/// An object, or None.
pub type Maybe<'py, T> = PyResult<Option<Bound<'py, T>>>;

/// Up to this length, ASCII is normalized by `escaped_string`, which is fast, but takes four times the memory.
const MAX_WIDE: usize = 1 << 16;

/// What to put around ids, as Python passes it: the id in front, the id at the end, and whether the ids between them
/// are reversed.
#[derive(FromPyObject)]
pub struct Around(Option<u32>, Option<u32>, bool);

fn ends_of(around: Option<Around>) -> Ends {
    around.map_or(Ends::default(), |Around(front, back, reverse)| Ends { front, back, reverse })
}

/// The chance that a merge is skipped, and a seed, as Python passes them.
#[derive(FromPyObject)]
pub struct Chance(f64, u64);

pub fn dropout_of(chance: Option<Chance>) -> Option<Dropout> {
    chance.map(|Chance(alpha, seed)| Dropout { alpha, seed })
}

/// One model in compiled form.
#[pyclass(frozen, module = "cpbpe._core")]
pub struct Engine {
    pub engine: cpbpe::Engine,
    pub ints: Arc<Ints>,
    /// Python's objects for the pieces.
    pub pieces: Arc<Pieces>,
    /// Its variants, each of which is kept once it is made. `variant` numbers the combinations of options.
    variants: [OnceLock<Py<Engine>>; 12],
}

impl Engine {
    fn new(engine: cpbpe::Engine) -> PyResult<Engine> {
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
        dropout: Option<Dropout>,
        make: impl FnOnce(&[u32]) -> PyResult<R>,
    ) -> PyResult<R> {
        let (text, valid) = utf8(text)?;
        let encode = |scratch: &mut Scratch| {
            run(py, text.len(), |check| self.engine.encode_between((text, valid), dropout, ends, check, scratch))?;
            make(&scratch.ids)
        };
        self.engine.with_scratch(encode).map_err(halted)?
    }

    /// The ids of all texts, and where each text begins, followed by the end of the last one.
    fn ids_of<'py>(
        &self,
        py: Python<'py>,
        texts: &(impl Texts + ?Sized),
        threads: usize,
        ends: Ends,
    ) -> PyResult<[Bound<'py, PyAny>; 2]> {
        let mut room = Room::default();
        let make = |count| Python::attach(|py| room.make(py, count, false));
        let all = run(py, DETACH, |check| self.engine.gather_batch(texts, threads, Wanted::Ids(ends), check, make))?;
        let ids = room.ids(py, &all, threads)?;
        Ok([ids, arrays::offsets(py, texts.count(), all.lengths.into_iter())?.into_any()])
    }

    /// Ids, pieces and spans of one of several aligned texts, whose tokens begin and end at these indices.
    fn tokens<'py>(
        &self,
        py: Python<'py>,
        texts: &EncodedTexts,
        begin: usize,
        end: usize,
        unknown: &[(usize, Vec<u8>)],
        as_bytes: bool,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let (ids, spans) = (&texts.ids[begin..end], &texts.spans[begin..end]);
        let pieces = self.pieces_of_ids(py, ids, begin, unknown, as_bytes)?;
        tuple(py, [self.ints.list(py, ids)?, pieces, self.ints.pairs(py, spans)?].map(Bound::into_any))
    }

    /// The normalized text as str. `strict`: whether text that is not UTF-8 is an error.
    pub fn normalized<'py>(
        &self,
        py: Python<'py>,
        input: (&[u8], bool),
        strict: bool,
    ) -> PyResult<Bound<'py, PyString>> {
        let (text, _) = input;
        let ascii = Some(text).filter(|text| text.len() <= MAX_WIDE && text.is_ascii());
        if let Some(Ok(text)) = ascii.map(std::str::from_utf8) {
            let compact = run(py, text.len(), |check| self.engine.normalize_compact(text, check))?;
            if let Some(compact) = compact.filter(|compact| compact.is_ascii()) {
                return escaped_string(py, &compact);
            }
        }
        let normalized = run(py, text.len(), |check| self.engine.normalize(input, check))?;
        if strict {
            str_of(py, &normalized)
        } else {
            string(py, &normalized)
        }
    }

    /// The text of ids, turned into a value; `None` if an id is outside the vocabulary.
    #[inline]
    fn decoded<R>(
        &self,
        py: Python<'_>,
        ids: &Bound<'_, PyAny>,
        keep_invalid: bool,
        make: impl FnOnce(&[u8]) -> PyResult<R>,
    ) -> PyResult<Option<R>> {
        with_ids(ids, |ids| {
            let decode = |check: Check| if_known(self.engine.decoder().decode(ids, keep_invalid, check));
            run(py, ids.len(), decode)?.map(|text| make(&text)).transpose()
        })
    }
}

/// What was decoded. `None` if an id is outside the vocabulary; Python then explains the error.
pub fn if_known<T>(decoded: Result<T, Error>) -> Result<Option<T>, Error> {
    match decoded {
        Ok(text) => Ok(Some(text)),
        Err(Error::UnknownId(_)) => Ok(None),
        Err(error) => Err(error),
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
    fn from_columns(py: Python<'_>, columns: &Bound<'_, PyDict>) -> PyResult<Engine> {
        let columns = columns_of(columns)?;
        Engine::new(py.detach(|| cpbpe::Engine::from_columns(columns)).map_err(exception)?)
    }

    // --- The model ---

    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        dict_of(py, py.detach(|| self.engine.columns()))
    }

    #[getter]
    fn head<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        head_of(py, self.engine.head())
    }

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
        // (Another thread may have stored its variant first. Nobody waits, and either variant will do.)
        let _ = place.set(new.clone_ref(py));
        Ok(new)
    }

    #[getter]
    fn size(&self) -> usize {
        self.engine.size()
    }

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

    // --- Text to ids ---

    pub fn normalize<'py>(&self, py: Python<'py>, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(text) = text.cast::<PyString>() {
            return Ok(self.normalized(py, (text.to_str()?.as_bytes(), true), false)?.into_any());
        }
        let input = utf8(text)?;
        let normalized = run(py, input.0.len(), |check| self.engine.normalize(input, check))?;
        Ok(bytes(py, &normalized)?.into_any())
    }

    fn origins<'py>(&self, py: Python<'py>, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
        let (text, _) = utf8(text)?;
        let (normalized, origins) = run(py, text.len(), |check| self.engine.origins(text, check))?;
        let origins = list(py, origins.into_iter(), |origin| int(py, origin))?;
        tuple(py, [bytes(py, &normalized)?.into_any(), origins.into_any()])
    }

    fn cut(&self, py: Python<'_>, text: &[u8]) -> PyResult<usize> {
        run(py, text.len(), |check| self.engine.last_cut(text, check))
    }

    #[pyo3(signature = (text, ends = None, dropout = None))]
    fn encode<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        ends: Option<Around>,
        dropout: Option<Chance>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.encoded(py, text, ends_of(ends), dropout_of(dropout), |ids| self.ints.list(py, ids))
    }

    #[pyo3(signature = (text, threads, ends = None))]
    fn encode_array<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        threads: usize,
        ends: Option<Around>,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        arrays::prepare(py)?;
        let ends = ends_of(ends);
        if threads == 1 {
            return self.encoded(py, text, ends, None, |ids| arrays::array(py, ids));
        }
        let (text, valid) = utf8(text)?;
        let mut ids = run(py, text.len(), |check| self.engine.encode_parallel(text, valid, threads, check))?;
        if ends.reverse {
            ids.reverse();
        }
        arrays::joined(py, &[ends.front.as_slice(), &ids, ends.back.as_slice()], threads)
    }

    #[pyo3(signature = (texts, threads, ends = None))]
    fn encode_batch<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyList>,
        threads: usize,
        ends: Option<Around>,
    ) -> PyResult<Bound<'py, PyList>> {
        let kept = items_of(texts)?;
        let (texts, ends) = (texts_of(&kept)?, ends_of(ends));
        let encode = |lists: &mut Lists, check: Check| {
            self.engine.encode_batch(&texts, threads, Wanted::Ids(ends), check, lists)
        };
        Lists::of(py, &self.ints, texts.len(), encode)
    }

    #[pyo3(signature = (texts, threads, ends = None))]
    fn encode_arrays<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        threads: usize,
        ends: Option<Around>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        arrays::prepare(py)?;
        with_texts(texts, |texts| tuple(py, self.ids_of(py, texts, threads, ends_of(ends))?))
    }

    #[pyo3(signature = (data, threads, ends = None))]
    fn encode_lines<'py>(
        &self,
        py: Python<'py>,
        data: &[u8],
        threads: usize,
        ends: Option<Around>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        arrays::prepare(py)?;
        let lines = py.detach(|| Lines::of(data)).map_err(halted)?;
        let [ids, offsets] = self.ids_of(py, &lines.texts, threads, ends_of(ends))?;
        tuple(py, [ids, offsets, arrays::array(py, &lines.empty)?.into_any()])
    }

    #[pyo3(signature = (text, ends = None, dropout = None))]
    fn encode_pieces<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        ends: Option<Around>,
        dropout: Option<Chance>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.pieces_of_text(py, text, ends_of(ends), dropout_of(dropout))
    }

    fn count<'py>(&self, py: Python<'py>, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyInt>> {
        let (text, valid) = utf8(text)?;
        let count = |check: Check| self.engine.with_scratch(|own| self.engine.count(text, valid, check, own))?;
        int(py, run(py, text.len(), count)?)
    }

    fn count_batch<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let count = |texts: &dyn Texts| -> PyResult<Vec<Vec<usize>>> {
            results(py, |parts, check| self.engine.count_batch(texts, threads, check, parts))
        };
        let parts = with_texts(texts, count)?;
        let mut counts = with_room(parts.iter().map(Vec::len).sum()).map_err(halted)?;
        counts.extend(parts.iter().flatten().map(|&count| count as i64));
        if texts.is_instance_of::<PyList>() {
            return Ok(list(py, counts.into_iter(), |count| int(py, count as usize))?.into_any());
        }
        arrays::prepare(py)?;
        Ok(arrays::array(py, &counts)?.into_any())
    }

    #[pyo3(signature = (text, chars, as_bytes = false, dropout = None))]
    fn align<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        chars: bool,
        as_bytes: bool,
        dropout: Option<Chance>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let input = utf8(text)?;
        let options = AlignOptions { characters: Some(chars), dropout: dropout_of(dropout) };
        let aligned = run(py, input.0.len(), |check| self.engine.align(input, options, check))?;
        self.tokens(py, &aligned, 0, aligned.ids.len(), &aligned.unknown, as_bytes)
    }

    #[pyo3(signature = (texts, threads, chars, dropout = None))]
    fn align_batch<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyList>,
        threads: usize,
        chars: Option<bool>,
        dropout: Option<Chance>,
    ) -> PyResult<Bound<'py, PyList>> {
        let kept = items_of(texts)?;
        let texts = texts_of(&kept)?;
        let options = AlignOptions { characters: chars, dropout: dropout_of(dropout) };
        let parts = results(py, |parts, check| {
            self.engine.encode_batch(&texts, threads, Wanted::Spans(options), check, parts)
        })?;
        let _paused = PausedCollector::new(py);
        let mut aligned = with_room(texts.len()).map_err(halted)?;
        for part in parts {
            py.check_signals()?; // Ctrl-C
            let (mut begin, mut unknown) = (0, &part.unknown[..]);
            for length in &part.lengths {
                let end = begin + length;
                aligned.push(self.tokens(py, &part, begin, end, unknown, false)?);
                unknown = &unknown[unknown.iter().take_while(|(place, _)| *place < end).count()..];
                begin = end;
            }
        }
        list(py, aligned.into_iter(), Ok)
    }

    #[pyo3(signature = (texts, threads, chars, dropout = None))]
    fn align_arrays<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        threads: usize,
        chars: Option<bool>,
        dropout: Option<Chance>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        arrays::prepare(py)?;
        let options = AlignOptions { characters: chars, dropout: dropout_of(dropout) };
        with_texts(texts, |texts| {
            let mut room = Room::default();
            let make = |count| Python::attach(|py| room.make(py, count, true));
            let all =
                run(py, DETACH, |check| self.engine.gather_batch(texts, threads, Wanted::Spans(options), check, make))?;
            let (ids, spans) = (room.ids(py, &all, threads)?, room.spans(py, &all, threads)?);
            let offsets = arrays::offsets(py, texts.count(), all.lengths.into_iter())?;
            tuple(py, [ids, offsets.into_any(), spans])
        })
    }

    // --- Ids to text ---

    fn decode<'py>(&self, py: Python<'py>, ids: &Bound<'py, PyAny>) -> Maybe<'py, PyString> {
        self.decoded(py, ids, false, |text| string(py, text))
    }

    fn decode_bytes<'py>(&self, py: Python<'py>, ids: &Bound<'py, PyAny>) -> Maybe<'py, PyBytes> {
        self.decoded(py, ids, true, |text| bytes(py, text))
    }

    fn decode_batch<'py>(&self, py: Python<'py>, batch: &Bound<'py, PyList>, threads: usize) -> Maybe<'py, PyList> {
        let kept = items_of(batch)?;
        let mut ids = Vec::new();
        let mut ends = with_room(kept.len()).map_err(halted)?;
        for sequence in &kept {
            if !ids_into(sequence, &mut ids)? {
                return Ok(None);
            }
            ends.push(ids.len());
        }
        let decode = |check: Check| if_known(self.engine.decoder().decode_batch(&ids, &ends, threads, check));
        let Some(parts) = run(py, ids.len(), decode)? else { return Ok(None) };
        let mut texts = parts.iter().flat_map(DecodedTexts::texts);
        list(py, 0..kept.len(), |_| string(py, texts.next().unwrap_or_default())).map(Some)
    }

    fn decode_lines<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyArray1<u32>>,
        offsets: &Bound<'py, PyArray1<i64>>,
    ) -> Maybe<'py, PyBytes> {
        let (ids, ends) = rows(ids, offsets)?;
        let decode = |check: Check| {
            let Some(parts) = if_known(self.engine.decoder().decode_batch(&ids, &ends, 1, check))? else {
                return Ok::<_, Error>(None);
            };
            let size: usize = parts.iter().flat_map(DecodedTexts::texts).map(|text| text.len() + 1).sum();
            let mut lines = with_room(size)?;
            for text in parts.iter().flat_map(DecodedTexts::texts) {
                lines.extend_from_slice(text);
                lines.push(b'\n');
            }
            Ok(Some(lines))
        };
        run(py, DETACH, decode)?.map(|lines| bytes(py, &lines)).transpose()
    }

    fn decode_pieces<'py>(&self, py: Python<'py>, pieces: &Bound<'py, PyList>) -> Maybe<'py, PyString> {
        self.joined(py, pieces, |text| string(py, text))
    }

    fn decode_pieces_bytes<'py>(&self, py: Python<'py>, pieces: &Bound<'py, PyList>) -> Maybe<'py, PyBytes> {
        self.joined(py, pieces, |text| bytes(py, text))
    }

    fn read_pieces<'py>(&self, py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyTuple>> {
        arrays::prepare(py)?;
        let read = run(py, data.len(), |check| cpbpe::read_ids(data, check, |piece| self.engine.find(piece)))?;
        columns(py, &read)
    }
}
