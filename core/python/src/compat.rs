//! What only the drop-in replacements in `cpbpe.compat` need of an engine, at the speed of the core. Without the core,
//! they do it in Python.

use pyo3::prelude::*;
use pyo3::types::{PyAny, PyBytes, PyList, PyString, PyTuple};

use cpbpe::memory::{collected, with_room};
use cpbpe::watch::Check;
use cpbpe::{DecodedSpans, Error};

use crate::engine::{dropout_of, if_known, Chance, Engine, Maybe};
use crate::errors::halted;
use crate::signals::run;
use crate::values::{bytes, ids_into, items_of, list, string, texts_of, tuple, utf8};

/// Signals are checked once in this many lists or texts.
const CHECK_LISTS: usize = 1 << 10;

/// A text with its tokens as sentencepiece's message.
#[pyfunction]
#[pyo3(signature = (engine, text, in_parallel = false, dropout = None))]
pub fn message<'py>(
    py: Python<'py>,
    engine: &Engine,
    text: &Bound<'py, PyAny>,
    in_parallel: bool,
    dropout: Option<Chance>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (input, dropout) = (utf8(text)?, dropout_of(dropout));
    let message = run(py, input.0.len(), |check| engine.engine.message(input, dropout, in_parallel, check))?;
    bytes(py, &message)
}

/// A normalized text, and for each of its characters and for its end, the character of the text that it came from. None
/// if the text is empty or not UTF-8.
#[pyfunction]
pub fn character_origins<'py>(py: Python<'py>, engine: &Engine, text: &Bound<'py, PyString>) -> Maybe<'py, PyTuple> {
    let text = text.to_str()?.as_bytes();
    let (normalized, origins) = run(py, text.len(), |check| engine.engine.character_origins(text, check))?;
    if normalized.is_empty() || std::str::from_utf8(&normalized).is_err() {
        return Ok(None);
    }
    let origins = engine.ints.numbers(py, origins.into_iter())?;
    tuple(py, [string(py, &normalized)?.into_any(), origins.into_any()]).map(Some)
}

/// Normalized texts. None if one of them is neither an exact str nor exact bytes; UnicodeDecodeError if a str is not
/// UTF-8.
#[pyfunction]
pub fn normalize_all<'py>(py: Python<'py>, engine: &Engine, texts: &Bound<'py, PyList>) -> Maybe<'py, PyList> {
    let texts = items_of(texts)?;
    let mut normalized = with_room(texts.len()).map_err(halted)?;
    for (number, text) in texts.iter().enumerate() {
        if number % CHECK_LISTS == CHECK_LISTS - 1 {
            py.check_signals()?;
        }
        normalized.push(if text.is_exact_instance_of::<PyString>() {
            engine.normalized(py, utf8(text)?, true)?.into_any()
        } else if text.is_exact_instance_of::<PyBytes>() {
            engine.normalize(py, text)?
        } else {
            return Ok(None);
        });
    }
    list(py, normalized.into_iter(), Ok).map(Some)
}

/// The texts of lists of pieces; None if a list has anything else.
#[pyfunction]
pub fn decode_pieces_all<'py>(py: Python<'py>, engine: &Engine, batch: &Bound<'py, PyList>) -> Maybe<'py, PyList> {
    let batch = items_of(batch)?;
    let mut texts = with_room(batch.len()).map_err(halted)?;
    for (number, pieces) in batch.iter().enumerate() {
        if number % CHECK_LISTS == CHECK_LISTS - 1 {
            py.check_signals()?;
        }
        let Ok(pieces) = pieces.cast_exact::<PyList>() else { return Ok(None) };
        let Some(text) = engine.joined(py, pieces, |text| string(py, text))? else { return Ok(None) };
        texts.push(text);
    }
    list(py, texts.into_iter(), Ok).map(Some)
}

/// The text of ids or pieces, the ids (2^32 - 1 for an unknown piece), the pieces, and where in the text each of them
/// is: either all in bytes, or in str and characters. None if an id is outside the vocabulary, if something that should
/// be str is not UTF-8, or if a denormalizer rewrites the text.
#[pyfunction]
pub fn decode_mapping<'py>(
    py: Python<'py>,
    engine: &Engine,
    tokens: &Bound<'py, PyAny>,
    as_bytes: bool,
) -> Maybe<'py, PyTuple> {
    let decoder = engine.engine.decoder();
    let Some(given) = Given::of(tokens)?.filter(|_| decoder.denormalizer().is_none()) else { return Ok(None) };
    let in_unit = |mut decoded: DecodedSpans| (as_bytes || decoded.count_characters()).then_some(decoded);
    let decoded = given.decoded(
        py,
        |ids, check| Ok(in_unit(decoder.decode_spans(ids, check)?)),
        |pieces, check| Ok(in_unit(decoder.decode_pieces_spans(pieces, check)?)),
    )?;
    let Some(DecodedSpans { text, ids, spans }) = decoded.flatten() else { return Ok(None) };
    let pieces = match &given {
        Given::Ids(ids) if as_bytes || ids.iter().all(|&id| engine.engine.is_utf8(id)) => {
            engine.pieces_of_ids(py, ids, 0, &[], as_bytes)?
        }
        Given::Ids(_) => return Ok(None),
        Given::Pieces(pieces) => match shown(py, pieces, as_bytes)? {
            Some(pieces) => pieces,
            None => return Ok(None),
        },
    };
    let text = if as_bytes { bytes(py, &text)?.into_any() } else { string(py, &text)?.into_any() };
    let ids = engine.ints.numbers(py, ids.iter().map(|&id| id as usize))?;
    let spans = engine.ints.pairs(py, &spans)?;
    tuple(py, [text, ids.into_any(), pieces.into_any(), spans.into_any()]).map(Some)
}

/// The same as sentencepiece's message.
#[pyfunction]
pub fn decode_message<'py>(py: Python<'py>, engine: &Engine, tokens: &Bound<'py, PyAny>) -> Maybe<'py, PyBytes> {
    let decoder = engine.engine.decoder();
    let Some(given) = Given::of(tokens)? else { return Ok(None) };
    let message = given.decoded(
        py,
        |ids, check| decoder.ids_message(ids, check),
        |pieces, check| decoder.pieces_message(pieces, check),
    )?;
    message.map(|message| bytes(py, &message)).transpose()
}

/// What is to be decoded.
enum Given<'py> {
    Ids(Vec<u32>),
    /// Pieces, all of which are str or bytes.
    Pieces(Vec<Bound<'py, PyAny>>),
}

impl<'py> Given<'py> {
    /// Ids, or pieces in a list that begins with one. `None` if the list has anything else.
    fn of(tokens: &Bound<'py, PyAny>) -> PyResult<Option<Given<'py>>> {
        let is_text =
            |item: &Bound<'py, PyAny>| item.is_exact_instance_of::<PyString>() || item.is_instance_of::<PyBytes>();
        if let Ok(pieces) = tokens.cast::<PyList>() {
            if pieces.get_item(0).is_ok_and(|first| is_text(&first)) {
                let pieces = items_of(pieces)?;
                return Ok(pieces.iter().all(is_text).then_some(Given::Pieces(pieces)));
            }
        }
        let mut ids = Vec::new();
        Ok(ids_into(tokens, &mut ids)?.then_some(Given::Ids(ids)))
    }

    /// What the decoder returns; `None` if an id is unknown or a piece is not text.
    fn decoded<T: Send>(
        &self,
        py: Python<'py>,
        of_ids: impl FnOnce(&[u32], Check) -> Result<T, Error> + Send,
        of_pieces: impl FnOnce(&[&[u8]], Check) -> Result<T, Error> + Send,
    ) -> PyResult<Option<T>> {
        match self {
            Given::Ids(ids) => run(py, ids.len(), |check| if_known(of_ids(ids, check))),
            Given::Pieces(pieces) => {
                let Ok(pieces) = texts_of(pieces) else { return Ok(None) }; // it has half of a surrogate pair
                let texts = collected(pieces.iter().map(|(text, _)| *text)).map_err(halted)?;
                run(py, texts.len(), |check| of_pieces(&texts, check)).map(Some)
            }
        }
    }
}

/// Pieces as str or bytes; `None` if one that should be str is not UTF-8.
fn shown<'py>(py: Python<'py>, pieces: &[Bound<'py, PyAny>], as_bytes: bool) -> PyResult<Option<Bound<'py, PyList>>> {
    let mut valid = true;
    let pieces = list(py, pieces.iter(), |piece| {
        if piece.is_instance_of::<PyBytes>() == as_bytes {
            return Ok(piece.clone());
        }
        let (text, _) = utf8(piece)?;
        valid = valid && (as_bytes || std::str::from_utf8(text).is_ok());
        Ok(if as_bytes { bytes(py, text)?.into_any() } else { string(py, text)?.into_any() })
    })?;
    Ok(valid.then_some(pieces))
}
