//! The border to Python for training, for both families of models. Python is responsible for policy, defaults and
//! messages about options. It also explains what each function is for, in `Counter`, `learn` and `merge_words` of its
//! training engine.

use std::time::Duration;

use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use cpbpe::memory::{collected, with_room};
use cpbpe::train::bytes::{learn_bytes, ByteCounter};
use cpbpe::train::{
    self, Begun, ByteLearnSpec, CountSpec, LearnSpec, PieceLimits, SkipReason, Ties, Tuning, Words, WordsRef,
};
use cpbpe::watch::{watch, Monitor};
use cpbpe::{Error, NormalizerOptions};

use crate::errors::{exception, halted};
use crate::values::{bytes, bytes_of, dict, list, string};

/// How often signals are checked.
const INTERVAL: Duration = Duration::from_millis(100);
/// Work on fewer bytes than this is done directly, without a thread of its own.
const LITTLE: usize = 1 << 20;

/// Do the work in another thread. Meanwhile, call `progress` and check for signals; an exception in either ends the
/// work.
fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Monitor) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let progress = progress.map(|progress| progress.clone().unbind());
    let wake = |monitor: &Monitor| -> PyResult<()> {
        Python::attach(|py| {
            py.check_signals()?;
            if let Some(progress) = &progress {
                let now = monitor.progress();
                progress.call1(py, (now.phase.name(), now.done, now.total))?;
            }
            Ok(())
        })
    };
    py.detach(|| watch(INTERVAL, work, wake))?.map_err(exception)
}

/// An attribute of a dataclass.
fn field<'py, T: FromPyObjectOwned<'py>>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<T> {
    object.getattr(name)?.extract().map_err(Into::into)
}

/// The core's form of Python's `PieceLimits`.
fn piece_limits(limits: &Bound<'_, PyAny>) -> PyResult<PieceLimits> {
    Ok(PieceLimits {
        max_sentencepiece_length: field(limits, "max_sentencepiece_length")?,
        split_by_unicode_script: field(limits, "split_by_unicode_script")?,
        split_by_number: field(limits, "split_by_number")?,
        split_digits: field(limits, "split_digits")?,
        split_by_whitespace: field(limits, "split_by_whitespace")?,
        treat_whitespace_as_suffix: field(limits, "treat_whitespace_as_suffix")?,
        allow_whitespace_only_pieces: field(limits, "allow_whitespace_only_pieces")?,
    })
}

/// The core's form of Python's `CountSpec`.
fn count_spec(spec: &Bound<'_, PyAny>) -> PyResult<CountSpec> {
    let limits = piece_limits(&spec.getattr("limits")?)?;
    Ok(CountSpec {
        limits,
        normalizer: NormalizerOptions {
            charsmap: field(spec, "charsmap")?,
            add_dummy_prefix: field(spec, "add_dummy_prefix")?,
            remove_extra_whitespaces: field(spec, "remove_extra_whitespaces")?,
            suffix: limits.treat_whitespace_as_suffix,
            ..NormalizerOptions::default()
        },
        symbols: field(spec, "symbols")?,
        delimiter: field(spec, "delimiter")?,
        max_sentence_length: field(spec, "max_sentence_length")?,
        keep_newlines: field(spec, "keep_newlines")?,
        skip_reserved: field(spec, "skip_reserved")?,
    })
}

/// The core's form of Python's `LearnSpec`.
fn learn_spec(spec: &Bound<'_, PyAny>) -> PyResult<LearnSpec> {
    let required_chars: String = field(spec, "required_chars")?;
    Ok(LearnSpec {
        vocab_size: field(spec, "vocab_size")?,
        meta_pieces: field(spec, "meta_pieces")?,
        limits: piece_limits(&spec.getattr("limits")?)?,
        character_coverage: field::<f64>(spec, "character_coverage")? as f32,
        required_chars: required_chars.chars().collect(),
        auto_character_coverage: field(spec, "auto_character_coverage")?,
        begun: begun(spec)?,
    })
}

/// The core's form of Python's `Begun`, if a spec has one.
fn begun(spec: &Bound<'_, PyAny>) -> PyResult<Option<Begun>> {
    let begun = spec.getattr("begun")?;
    if begun.is_none() {
        return Ok(None);
    }
    let symbols: Vec<u8> = field(&begun, "symbols")?;
    let ends: Vec<u8> = field(&begun, "ends")?;
    Ok(Some(Begun {
        texts: field(&begun, "texts")?,
        symbols: collected(symbols.as_chunks().0.iter().map(|number| u32::from_ne_bytes(*number))).map_err(halted)?,
        ends: collected(ends.as_chunks().0.iter().map(|number| u64::from_ne_bytes(*number))).map_err(halted)?,
    }))
}

/// The core's form of Python's `ByteLearnSpec`.
fn byte_learn_spec(spec: &Bound<'_, PyAny>) -> PyResult<ByteLearnSpec> {
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
        begun: begun(spec)?,
    })
}

/// The columns of Python's `Words`: blob, ends, counts and firsts.
type WordColumns<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

fn word_columns(py: Python<'_>, words: Words) -> PyResult<WordColumns<'_>> {
    let words = words.checked().map_err(exception)?;
    Ok((bytes(py, &words.blob)?, bytes(py, &words.ends)?, bytes(py, &words.counts)?, bytes(py, &words.firsts)?))
}

fn slices_of<'a>((blob, ends, counts, firsts): &'a WordColumns<'_>) -> [&'a [u8]; 4] {
    [blob.as_bytes(), ends.as_bytes(), counts.as_bytes(), firsts.as_bytes()]
}

/// Let a counter do some work on text of this size.
fn counting<C: Send>(
    py: Python<'_>,
    counter: &mut C,
    size: usize,
    work: impl FnOnce(&mut C, &Monitor) -> Result<(), Error> + Send,
) -> PyResult<()> {
    if size < LITTLE {
        return work(counter, &Monitor::default()).map_err(exception);
    }
    watched(py, None, |monitor| work(counter, monitor))
}

/// Texts with their counts. If none are given, each count is 1.
fn counted<'a>(
    texts: &'a [Bound<'_, PyBytes>],
    counts: Option<Vec<u64>>,
) -> PyResult<impl Iterator<Item = (&'a [u8], u64)> + Send> {
    if counts.as_ref().is_some_and(|counts| counts.len() != texts.len()) {
        return Err(PyValueError::new_err("there must be one count for each text"));
    }
    let texts = collected(texts.iter().map(|text| text.as_bytes())).map_err(halted)?;
    let counts = (0..texts.len()).map(move |at| counts.as_ref().map_or(1, |counts| counts[at]));
    Ok(texts.into_iter().zip(counts))
}

/// The sentences that were skipped for one reason: how many, their bytes, and examples.
type SkippedFields<'py> = (u64, u64, Vec<(u64, Bound<'py, PyBytes>)>);

/// A counter of either family. (There is one for each Python object, so the difference in size does not matter.)
#[allow(clippy::large_enum_variant)]
enum Kind {
    Characters(train::Counter),
    Bytes(ByteCounter),
}

/// Counts words.
#[pyclass(module = "cpbpe._core")]
pub struct Counter {
    /// The counter is in a box, because the interpreter does not align objects as the counter requires (see `lib.rs`).
    kind: Box<Kind>,
}

impl Counter {
    /// The counter, which must be that of the SentencePiece family.
    fn of_characters(&mut self) -> PyResult<&mut train::Counter> {
        match &mut *self.kind {
            Kind::Characters(counter) => Ok(counter),
            Kind::Bytes(_) => Err(PyTypeError::new_err("texts of byte-level models are not prepared")),
        }
    }

    /// The counter, which must be that of byte-level models.
    fn of_bytes(&mut self) -> PyResult<&mut ByteCounter> {
        match &mut *self.kind {
            Kind::Bytes(counter) => Ok(counter),
            Kind::Characters(_) => Err(PyTypeError::new_err("only texts of byte-level models come in parts")),
        }
    }
}

#[pymethods]
impl Counter {
    #[new]
    fn new(spec: &Bound<'_, PyAny>) -> PyResult<Counter> {
        let kind = if field(spec, "byte_level")? {
            let pattern: String = field(spec, "pattern")?;
            let pattern = (!pattern.is_empty()).then_some(pattern.as_str());
            Kind::Bytes(ByteCounter::new(pattern, field(spec, "ordered")?).map_err(exception)?)
        } else {
            Kind::Characters(train::Counter::new(count_spec(spec)?).map_err(exception)?)
        };
        Ok(Counter { kind: Box::new(kind) })
    }

    fn add(
        &mut self,
        py: Python<'_>,
        texts: &Bound<'_, PyList>,
        counts: Option<Vec<u64>>,
        threads: usize,
    ) -> PyResult<()> {
        let texts = bytes_of(texts)?;
        let size = texts.iter().map(|text| text.as_bytes().len()).sum();
        let mut texts = counted(&texts, counts)?;
        counting(py, &mut *self.kind, size, |kind, monitor| match kind {
            Kind::Characters(counter) => texts.try_for_each(|(text, count)| {
                monitor.check()?;
                Ok(counter.add(text, count, monitor)?)
            }),
            Kind::Bytes(counter) => counter.add(texts, threads, monitor),
        })
    }

    fn add_block(&mut self, py: Python<'_>, data: &[u8], threads: usize) -> PyResult<()> {
        counting(py, &mut *self.kind, data.len(), |kind, monitor| match kind {
            Kind::Characters(counter) => Ok(counter.add_block(data, threads, monitor)?),
            Kind::Bytes(counter) => counter.add_lines(data, threads, monitor),
        })
    }

    fn add_part(&mut self, py: Python<'_>, data: &[u8], threads: usize) -> PyResult<()> {
        counting(py, self.of_bytes()?, data.len(), |counter, monitor| counter.add_part(data, threads, monitor))
    }

    fn end_text(&mut self, py: Python<'_>, threads: usize) -> PyResult<()> {
        counting(py, self.of_bytes()?, LITTLE, |counter, monitor| counter.end_text(threads, monitor))
    }

    fn prepare<'py>(&mut self, py: Python<'py>, sentences: &Bound<'py, PyList>) -> PyResult<Bound<'py, PyList>> {
        let counter = self.of_characters()?;
        let sentences = bytes_of(sentences)?;
        list(py, sentences.iter(), |sentence| match counter.prepare(sentence.as_bytes()).map_err(halted)? {
            Some(text) => Ok(bytes(py, &text)?.into_any()),
            None => Ok(py.None().into_bound(py)),
        })
    }

    fn add_prepared(
        &mut self,
        py: Python<'_>,
        sentences: &Bound<'_, PyList>,
        counts: Option<Vec<u64>>,
    ) -> PyResult<()> {
        let counter = self.of_characters()?;
        let sentences = bytes_of(sentences)?;
        let mut sentences = counted(&sentences, counts)?;
        watched(py, None, |monitor| {
            sentences.try_for_each(|(sentence, count)| {
                monitor.check()?;
                Ok(counter.add_prepared(sentence, count, monitor)?)
            })
        })
    }

    /// How many texts there were, how many bytes, the skipped texts by reason, and how many texts are not UTF-8.
    fn tallies<'py>(&self, py: Python<'py>) -> PyResult<(u64, u64, Bound<'py, PyDict>, u64)> {
        let tallies = match &*self.kind {
            Kind::Characters(counter) => counter.tallies(),
            Kind::Bytes(counter) => counter.tallies(),
        };
        let reasons = dict(py)?;
        for (name, skipped) in SkipReason::NAMES.iter().zip(&tallies.skipped) {
            let examples = skipped.examples.iter().map(|(number, text)| Ok((*number, bytes(py, text)?)));
            let value: SkippedFields<'py> = (skipped.sentences, skipped.bytes, examples.collect::<PyResult<_>>()?);
            reasons.set_item(name, value)?;
        }
        Ok((tallies.sentences, tallies.bytes, reasons, tallies.broken))
    }

    fn distinct(&mut self, py: Python<'_>) -> PyResult<usize> {
        let distinct = py.detach(|| match &mut *self.kind {
            Kind::Characters(counter) => Ok(counter.distinct()),
            Kind::Bytes(counter) => counter.distinct(),
        });
        distinct.map_err(halted)
    }

    fn memory(&self) -> usize {
        match &*self.kind {
            Kind::Characters(counter) => counter.memory(),
            Kind::Bytes(counter) => counter.memory(),
        }
    }

    fn drain<'py>(&mut self, py: Python<'py>) -> PyResult<WordColumns<'py>> {
        let words = watched(py, None, |monitor| match &mut *self.kind {
            Kind::Characters(counter) => counter.drain(monitor),
            Kind::Bytes(counter) => counter.drain(monitor),
        })?;
        word_columns(py, words)
    }
}

/// Merge several lists of words into one.
#[pyfunction]
pub fn merge_words<'py>(py: Python<'py>, parts: Vec<WordColumns<'py>>) -> PyResult<WordColumns<'py>> {
    let columns: Vec<[&[u8]; 4]> = parts.iter().map(slices_of).collect();
    let merged = watched(py, None, |monitor| {
        let lists = columns.iter().map(|columns| WordsRef::new(*columns, 1));
        train::merge_words(&lists.collect::<Result<Vec<_>, _>>()?, monitor)
    })?;
    word_columns(py, merged)
}

/// The tuning. Python names only the values that differ from the usual ones.
fn tuning_of(names: Option<&Bound<'_, PyDict>>) -> PyResult<Tuning> {
    let mut tuning = Tuning::DEFAULT;
    for (name, value) in names.into_iter().flatten() {
        match name.extract::<String>()?.as_str() {
            "small" => tuning.small = value.extract()?,
            "guess" => tuning.guess = value.extract()?,
            "parts_from" => tuning.parts_from = value.extract()?,
            _ => return Err(PyTypeError::new_err("the tuning has small, guess and parts_from")),
        }
    }
    Ok(tuning)
}

/// Learn merges from words.
#[pyfunction]
#[pyo3(signature = (words, spec, *, threads, progress, **tuning))]
pub fn learn<'py>(
    py: Python<'py>,
    words: WordColumns<'py>,
    spec: &Bound<'py, PyAny>,
    threads: usize,
    progress: Option<&Bound<'py, PyAny>>,
    tuning: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let words = WordsRef::new(slices_of(&words), threads).map_err(exception)?;
    let tuning = tuning_of(tuning)?;
    let fields = dict(py)?;
    let merges = if field(spec, "byte_level")? {
        let spec = byte_learn_spec(spec)?;
        let merges = watched(py, progress, |monitor| learn_bytes(&words, &spec, &tuning, threads, monitor))?;
        for (name, side) in [("lefts", 0), ("rights", 1)] {
            fields.set_item(name, column(py, merges.pairs.iter().map(|pair| u64::from(pair[side])))?)?;
        }
        merges
    } else {
        let spec = learn_spec(spec)?;
        let learned = watched(py, progress, |monitor| train::learn(&words, &spec, &tuning, threads, monitor))?;
        let all = learned.characters;
        for (name, counts_name, characters) in
            [("characters", "character_counts", &all.accepted), ("dropped_characters", "dropped_counts", &all.dropped)]
        {
            fields.set_item(name, list(py, characters.iter(), |(c, _)| string(py, c.to_string().as_bytes()))?)?;
            fields.set_item(counts_name, column(py, characters.iter().map(|(_, count)| *count))?)?;
        }
        fields.set_item("boundaries", all.boundaries)?;
        fields.set_item("nuls", all.nuls)?;
        learned.merges
    };
    fields.set_item("merges", list(py, merges.pieces.iter(), |piece| bytes(py, piece))?)?;
    fields.set_item("frequencies", column(py, merges.frequencies.into_iter())?)?;
    fields.set_item("symbols", column(py, merges.symbols.into_iter())?)?;
    Ok(fields)
}

/// Numbers as u64, in bytes.
fn column(py: Python<'_>, numbers: impl ExactSizeIterator<Item = u64>) -> PyResult<Bound<'_, PyBytes>> {
    let mut column = with_room(numbers.len() * size_of::<u64>()).map_err(halted)?;
    column.extend(numbers.flat_map(u64::to_ne_bytes));
    bytes(py, &column)
}
