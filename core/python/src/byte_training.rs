//! The border to Python for training byte-level BPE: `ByteCounter`, `learn_bytes` and `merge_ordered_words` of its engine.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use cpbpe::train::bytes::{self, ByteLearnSpec, OrderedWords, Ties};
use cpbpe::train::WordsRef;
use cpbpe::Error;

use crate::errors::{exception, halted};
use crate::training::{column, counted, counting, field, size_of_all, tuning_of, watched, word_columns, LITTLE};
use crate::values::{bytes as to_bytes, bytes_of, dict, list};

/// The columns of Python's `Words`: blob, ends, counts and firsts.
type OrderedColumns<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

fn ordered_columns(py: Python<'_>, words: OrderedWords) -> PyResult<OrderedColumns<'_>> {
    let (blob, ends, counts) = word_columns(py, words.words)?;
    Ok((blob, ends, counts, to_bytes(py, &words.firsts)?))
}

/// Counts the chunks of texts.
#[pyclass(module = "cpbpe._core")]
pub struct ByteCounter {
    /// In a box, because the interpreter does not align objects as it asks for (see `lib.rs`).
    counter: Box<bytes::ByteCounter>,
}

#[pymethods]
impl ByteCounter {
    #[new]
    fn new(pattern: Option<&str>, ordered: bool) -> PyResult<ByteCounter> {
        Ok(ByteCounter { counter: Box::new(bytes::ByteCounter::new(pattern, ordered).map_err(exception)?) })
    }

    fn add(
        &mut self,
        py: Python<'_>,
        texts: &Bound<'_, PyList>,
        counts: Option<Vec<u64>>,
        threads: usize,
    ) -> PyResult<()> {
        let texts = bytes_of(texts)?;
        let size = size_of_all(&texts);
        let texts = counted(&texts, counts)?;
        counting(py, &mut *self.counter, size, |counter, monitor| counter.add(texts, threads, monitor))
    }

    fn add_lines(&mut self, py: Python<'_>, data: &[u8], threads: usize) -> PyResult<()> {
        counting(py, &mut *self.counter, data.len(), |counter, monitor| counter.add_lines(data, threads, monitor))
    }

    fn add_part(&mut self, py: Python<'_>, data: &[u8], threads: usize) -> PyResult<()> {
        counting(py, &mut *self.counter, data.len(), |counter, monitor| counter.add_part(data, threads, monitor))
    }

    fn end_text(&mut self, py: Python<'_>, threads: usize) -> PyResult<()> {
        counting(py, &mut *self.counter, LITTLE, |counter, monitor| counter.end_text(threads, monitor))
    }

    /// Texts, bytes, empty texts, and texts that are not UTF-8.
    fn tallies(&self) -> (u64, u64, u64, u64) {
        let tallies = self.counter.tallies();
        (tallies.texts, tallies.bytes, tallies.empty, tallies.broken)
    }

    fn distinct(&mut self, py: Python<'_>) -> PyResult<usize> {
        py.detach(|| self.counter.distinct()).map_err(halted)
    }

    fn memory(&self) -> usize {
        self.counter.memory()
    }

    fn drain<'py>(&mut self, py: Python<'py>) -> PyResult<OrderedColumns<'py>> {
        ordered_columns(py, watched(py, None, |monitor| self.counter.drain(monitor))?)
    }
}

/// One list of words from several, each with the earliest place.
#[pyfunction]
pub fn merge_ordered_words<'py>(py: Python<'py>, parts: Vec<OrderedColumns<'py>>) -> PyResult<OrderedColumns<'py>> {
    let columns: Vec<[&[u8]; 4]> = parts
        .iter()
        .map(|(blob, ends, counts, firsts)| [blob.as_bytes(), ends.as_bytes(), counts.as_bytes(), firsts.as_bytes()])
        .collect();
    let merged = watched(py, None, |monitor| {
        let lists =
            columns.iter().map(|&[blob, ends, counts, firsts]| Ok((WordsRef::new(blob, ends, counts)?, firsts)));
        bytes::merge_ordered(&lists.collect::<Result<Vec<_>, Error>>()?, monitor)
    })?;
    ordered_columns(py, merged)
}

/// What Python's `ByteLearnSpec` says.
fn learn_spec(spec: &Bound<'_, PyAny>) -> PyResult<ByteLearnSpec> {
    let byte_order: Vec<u8> = field(spec, "byte_order")?;
    let ties: String = field(spec, "ties")?;
    Ok(ByteLearnSpec {
        merges: field(spec, "merges")?,
        ties: match ties.as_str() {
            "tokenizers" => Ties::Ids,
            "minbpe" => Ties::First,
            _ => return Err(PyValueError::new_err("ties must be tokenizers or minbpe")),
        },
        byte_order: byte_order.try_into().map_err(|_| PyValueError::new_err("byte_order must have 256 bytes"))?,
        min_frequency: field(spec, "min_frequency")?,
        max_length: field(spec, "max_length")?,
        forbidden: field(spec, "forbidden")?,
    })
}

/// Learn merges from words.
#[pyfunction]
#[pyo3(signature = (blob, ends, counts, firsts, spec, *, threads, progress, **tuning))]
#[allow(clippy::too_many_arguments)]
pub fn learn_bytes<'py>(
    py: Python<'py>,
    blob: &[u8],
    ends: &[u8],
    counts: &[u8],
    firsts: &[u8],
    spec: &Bound<'py, PyAny>,
    threads: usize,
    progress: Option<&Bound<'py, PyAny>>,
    tuning: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let words = WordsRef::new(blob, ends, counts).map_err(exception)?;
    let spec = learn_spec(spec)?;
    let tuning = tuning_of(tuning)?;
    let learned =
        watched(py, progress, |monitor| bytes::learn_bytes(&words, firsts, &spec, &tuning, threads, monitor))?;
    let fields = dict(py)?;
    fields.set_item("lefts", column(py, learned.pairs.iter().map(|pair| u64::from(pair[0])))?)?;
    fields.set_item("rights", column(py, learned.pairs.iter().map(|pair| u64::from(pair[1])))?)?;
    fields.set_item("pieces", list(py, learned.pieces.iter(), |piece| to_bytes(py, piece))?)?;
    fields.set_item("frequencies", column(py, learned.frequencies.into_iter())?)?;
    fields.set_item("symbols", column(py, learned.symbols.into_iter())?)?;
    Ok(fields)
}
