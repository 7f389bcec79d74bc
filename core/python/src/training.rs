//! The border to Python for training; `cpbpe/train_engine.py` says what each function is for. Policy, defaults and
//! messages about options are Python's business.
//!
//! Work that may take long is done in a thread of its own, while the thread that called waits, looks for signals,
//! and reports progress. So the hot loops know nothing of Python, and Ctrl-C is heard within a fraction of a second.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{sync_channel, RecvTimeoutError};
use std::sync::Mutex;
use std::time::Duration;

use pyo3::exceptions::{PyKeyboardInterrupt, PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use cpbpe::train::columns::{self, Columns, Words};
use cpbpe::train::corpus;
use cpbpe::train::learn::{self as train, Failure, Monitor, PHASES};
use cpbpe::train::part::Stopped;
use cpbpe::train::piece::Rules;
use cpbpe::train::tallies::RULES;
use cpbpe::NormalizerOptions;

/// How often signals are looked for.
const INTERVAL: Duration = Duration::from_millis(100);
/// Less work than this many bytes is done at once, without a thread.
const LITTLE: usize = 1 << 20;

const MANY: &str = "a word was counted 2**63 times or more";
const MALFORMED: &str = "these are no words: the columns do not fit together, or a word is not UTF-8";

/// Do the work in another thread; call `progress` and look for signals meanwhile. An exception of either ends it.
fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Monitor) -> T + Send,
) -> PyResult<T> {
    let monitor = Monitor::default();
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel(1);
        let receiver = Mutex::new(receiver); // only to be allowed to wait for it with the interpreter let go
        let worker = scope.spawn(|| {
            let found = work(&monitor);
            let _ = sender.send(());
            drop(sender);
            found
        });
        let mut raised = None;
        loop {
            match py.detach(|| receiver.lock().map_or(Ok(()), |receiver| receiver.recv_timeout(INTERVAL))) {
                Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if raised.is_some() {
                continue;
            }
            let report = || -> PyResult<()> {
                py.check_signals()?;
                if let Some(progress) = progress {
                    let phase = PHASES[usize::from(monitor.phase.load(Ordering::Relaxed))];
                    let done = monitor.done.load(Ordering::Relaxed);
                    progress.call1((phase, done, monitor.total.load(Ordering::Relaxed)))?;
                }
                Ok(())
            };
            if let Err(error) = report() {
                monitor.stop.store(true, Ordering::Relaxed);
                raised = Some(error);
            }
        }
        let found = py.detach(|| worker.join());
        match raised {
            Some(error) => Err(error),
            None => Ok(found.unwrap_or_else(|panic| std::panic::resume_unwind(panic))),
        }
    })
}

/// Only an exception stops the work, and `watched` has raised that; so this is not reached.
fn stopped<T>(found: Result<T, Stopped>) -> PyResult<T> {
    found.map_err(|_| PyKeyboardInterrupt::new_err(()))
}

type Three<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

fn three<'py>(py: Python<'py>, columns: Columns) -> PyResult<Three<'py>> {
    let columns = columns.checked().map_err(|_| PyOverflowError::new_err(MANY))?;
    Ok((PyBytes::new(py, &columns.blob), PyBytes::new(py, &columns.ends), PyBytes::new(py, &columns.counts)))
}

/// The sentences of a list of bytes, and their counts.
fn sentences<'a>(
    list: &'a [Bound<'_, PyBytes>],
    counts: Option<Vec<u64>>,
) -> PyResult<impl Iterator<Item = (&'a [u8], u64)> + Send> {
    if counts.as_ref().is_some_and(|counts| counts.len() != list.len()) {
        return Err(PyValueError::new_err("there must be one count for each sentence"));
    }
    let texts: Vec<&[u8]> = list.iter().map(|item| item.as_bytes()).collect();
    let counts = (0..texts.len()).map(move |at| counts.as_ref().map_or(1, |counts| counts[at]));
    Ok(texts.into_iter().zip(counts))
}

fn size(list: &[Bound<'_, PyBytes>]) -> usize {
    list.iter().map(|item| item.as_bytes().len()).sum()
}

/// What one rule kept out: sentences, bytes and examples.
type Skipped<'py> = (u64, u64, Vec<(u64, Bound<'py, PyBytes>)>);

/// Counts words.
#[pyclass(module = "cpbpe._core")]
pub struct Counter {
    counter: corpus::Counter,
}

#[pymethods]
impl Counter {
    #[new]
    #[pyo3(signature = (*, charsmap, add_dummy_prefix, remove_extra_whitespaces, symbols, delimiter,
        max_sentence_length, keep_newlines, skip_reserved, max_sentencepiece_length, split_by_unicode_script,
        split_by_number, split_digits, split_by_whitespace, treat_whitespace_as_suffix,
        allow_whitespace_only_pieces))]
    #[allow(clippy::too_many_arguments, clippy::fn_params_excessive_bools)]
    fn new(
        charsmap: Vec<u8>,
        add_dummy_prefix: bool,
        remove_extra_whitespaces: bool,
        symbols: Vec<Vec<u8>>,
        delimiter: Vec<u8>,
        max_sentence_length: usize,
        keep_newlines: bool,
        skip_reserved: bool,
        max_sentencepiece_length: usize,
        split_by_unicode_script: bool,
        split_by_number: bool,
        split_digits: bool,
        split_by_whitespace: bool,
        treat_whitespace_as_suffix: bool,
        allow_whitespace_only_pieces: bool,
    ) -> PyResult<Counter> {
        let spec = corpus::Spec {
            rules: Rules {
                max_length: max_sentencepiece_length,
                split_by_unicode_script,
                split_by_number,
                split_digits,
                split_by_whitespace,
                suffix: treat_whitespace_as_suffix,
                whitespace_only: allow_whitespace_only_pieces,
            },
            normalizer: NormalizerOptions {
                name: Vec::new(),
                charsmap,
                add_dummy_prefix,
                remove_extra_whitespaces,
                escape_whitespaces: true,
                suffix: treat_whitespace_as_suffix,
            },
            symbols,
            delimiter,
            max_sentence_length,
            keep_newlines,
            skip_reserved,
        };
        match corpus::Counter::new(spec) {
            Some(counter) => Ok(Counter { counter }),
            None => Err(PyValueError::new_err("the normalization rules are malformed")),
        }
    }

    fn add(&mut self, py: Python<'_>, list: Vec<Bound<'_, PyBytes>>, counts: Option<Vec<u64>>) -> PyResult<()> {
        let size = size(&list);
        let given = sentences(&list, counts)?;
        let counter = &mut self.counter;
        if size < LITTLE {
            let stop = AtomicBool::new(false);
            given.for_each(|(sentence, count)| counter.add(sentence, count, &stop));
            return Ok(());
        }
        watched(py, None, |monitor| {
            for (sentence, count) in given {
                if monitor.stop.load(Ordering::Relaxed) {
                    break;
                }
                counter.add(sentence, count, &monitor.stop);
            }
        })
    }

    fn add_block(&mut self, py: Python<'_>, data: &[u8], threads: usize) -> PyResult<()> {
        let counter = &mut self.counter;
        if data.len() < LITTLE {
            counter.add_block(data, threads, &Monitor::default().stop);
            return Ok(());
        }
        watched(py, None, |monitor| counter.add_block(data, threads, &monitor.stop))
    }

    fn prepare<'py>(&mut self, py: Python<'py>, list: Vec<Bound<'py, PyBytes>>) -> Vec<Option<Bound<'py, PyBytes>>> {
        let found = list.iter().map(|sentence| self.counter.prepare(sentence.as_bytes()));
        found.map(|text| text.map(|text| PyBytes::new(py, &text))).collect()
    }

    fn add_prepared(
        &mut self,
        py: Python<'_>,
        list: Vec<Bound<'_, PyBytes>>,
        counts: Option<Vec<u64>>,
    ) -> PyResult<()> {
        let given = sentences(&list, counts)?;
        let counter = &mut self.counter;
        watched(py, None, |monitor| {
            given.for_each(|(sentence, count)| counter.add_prepared(sentence, count, &monitor.stop));
        })
    }

    fn add_words(&mut self, py: Python<'_>, blob: &[u8], ends: &[u8], counts: &[u8]) -> PyResult<()> {
        let words = Words::new(blob, ends, counts).ok_or_else(|| PyValueError::new_err(MALFORMED))?;
        let counter = &mut self.counter;
        watched(py, None, |monitor| {
            for at in 0..words.len() {
                if monitor.stop.load(Ordering::Relaxed) {
                    break;
                }
                let (word, count) = words.get(at);
                counter.add_word(word.as_bytes(), count);
            }
        })
    }

    /// Sentences, bytes, and for each rule what it kept out.
    fn tallies<'py>(&self, py: Python<'py>) -> PyResult<(u64, u64, Bound<'py, PyDict>)> {
        let tallies = self.counter.tallies();
        let rules = PyDict::new(py);
        for (name, skipped) in RULES.iter().zip(&tallies.skipped) {
            let examples = skipped.examples.iter().map(|(number, text)| (*number, PyBytes::new(py, text)));
            let value: Skipped<'py> = (skipped.sentences, skipped.bytes, examples.collect());
            rules.set_item(name, value)?;
        }
        Ok((tallies.sentences, tallies.bytes, rules))
    }

    fn distinct(&mut self, py: Python<'_>) -> usize {
        py.detach(|| self.counter.distinct())
    }

    fn memory(&self) -> usize {
        self.counter.memory()
    }

    fn drain<'py>(&mut self, py: Python<'py>) -> PyResult<Three<'py>> {
        let counter = &mut self.counter;
        three(py, stopped(watched(py, None, |monitor| counter.drain(&monitor.stop))?)?)
    }
}

/// One list of words from several.
#[pyfunction]
pub fn merge_words<'py>(
    py: Python<'py>,
    parts: Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>)>,
) -> PyResult<Three<'py>> {
    let columns: Vec<[&[u8]; 3]> =
        parts.iter().map(|(blob, ends, counts)| [blob.as_bytes(), ends.as_bytes(), counts.as_bytes()]).collect();
    let merged = watched(py, None, |monitor| {
        let words: Option<Vec<Words<'_>>> =
            columns.iter().map(|[blob, ends, counts]| Words::new(blob, ends, counts)).collect();
        words.map(|words| columns::merge_words(&words, &monitor.stop))
    })?;
    three(py, stopped(merged.ok_or_else(|| PyValueError::new_err(MALFORMED))?)?)
}

fn numbers<'py>(py: Python<'py>, column: impl Iterator<Item = u64>) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &column.flat_map(u64::to_ne_bytes).collect::<Vec<u8>>())
}

/// Learn merges from words.
#[pyfunction]
#[pyo3(signature = (blob, ends, counts, *, threads, progress, vocab_size, meta_pieces, character_coverage,
    required_chars, auto_character_coverage, max_sentencepiece_length, split_by_unicode_script, split_by_number,
    split_digits, split_by_whitespace, treat_whitespace_as_suffix, allow_whitespace_only_pieces,
    small = 1 << 17, guess = 64, parts_from = 1 << 19))]
#[allow(clippy::too_many_arguments, clippy::fn_params_excessive_bools)]
pub fn learn<'py>(
    py: Python<'py>,
    blob: &[u8],
    ends: &[u8],
    counts: &[u8],
    threads: usize,
    progress: Option<&Bound<'py, PyAny>>,
    vocab_size: usize,
    meta_pieces: usize,
    character_coverage: f64,
    required_chars: &str,
    auto_character_coverage: bool,
    max_sentencepiece_length: usize,
    split_by_unicode_script: bool,
    split_by_number: bool,
    split_digits: bool,
    split_by_whitespace: bool,
    treat_whitespace_as_suffix: bool,
    allow_whitespace_only_pieces: bool,
    small: usize,
    guess: u64,
    parts_from: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let words = Words::new(blob, ends, counts).ok_or_else(|| PyValueError::new_err(MALFORMED))?;
    let spec = train::Spec {
        vocab_size,
        meta_pieces,
        rules: Rules {
            max_length: max_sentencepiece_length,
            split_by_unicode_script,
            split_by_number,
            split_digits,
            split_by_whitespace,
            suffix: treat_whitespace_as_suffix,
            whitespace_only: allow_whitespace_only_pieces,
        },
        coverage: character_coverage as f32,
        required: required_chars.chars().collect(),
        auto_coverage: auto_character_coverage,
        small,
        guess,
        parts_from,
    };
    let found = watched(py, progress, |monitor| train::learn(&words, &spec, threads, monitor))?;
    let found = found.map_err(|failure| match failure {
        Failure::TooMany => PyOverflowError::new_err("the bytes of text, repetitions included, are 2**63 or more"),
        Failure::TooLong => PyOverflowError::new_err(
            "the different words hold more than 2**32 characters for each thread; use more threads, or less text",
        ),
        Failure::Stopped => PyKeyboardInterrupt::new_err(()),
    })?;
    let characters = |list: &[(char, u64)]| PyList::new(py, list.iter().map(|(c, _)| c.to_string()));
    let answer = PyDict::new(py);
    answer.set_item("characters", characters(&found.characters)?)?;
    answer.set_item("character_counts", numbers(py, found.characters.iter().map(|(_, count)| *count)))?;
    answer.set_item("dropped_characters", characters(&found.dropped)?)?;
    answer.set_item("dropped_counts", numbers(py, found.dropped.iter().map(|(_, count)| *count)))?;
    answer.set_item("boundaries", found.boundaries)?;
    answer.set_item("nuls", found.nuls)?;
    answer.set_item("merges", PyList::new(py, found.merges.iter().map(|piece| PyBytes::new(py, piece)))?)?;
    answer.set_item("frequencies", numbers(py, found.frequencies.into_iter()))?;
    answer.set_item("symbols", numbers(py, found.symbols.into_iter()))?;
    Ok(answer)
}
