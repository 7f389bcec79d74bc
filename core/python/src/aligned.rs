//! Tokens with their pieces and spans as Python's values: what the methods of `Engine` that say where tokens are do.

use pyo3::prelude::*;
use pyo3::types::{PyAny, PyBytes, PyList, PyString, PyTuple};

use cpbpe::memory::with_room;
use cpbpe::watch::Check;
use cpbpe::{AlignOptions, AlignedTexts, DecodedSpans, Dropout, Error, Scratch, Texts};

use crate::arrays;
use crate::decoding::if_known;
use crate::engine::Engine;
use crate::errors::halted;
use crate::room::Room;
use crate::signals::{run, DETACH};
use crate::values::{bytes, ids_into, int, items_of, list, results, string, texts_of, tuple, utf8, PausedCollector};

/// The options of sampling, if there is a chance.
pub fn dropout_of(alpha: Option<f64>, seed: u64) -> Option<Dropout> {
    alpha.map(|alpha| Dropout { alpha, seed })
}

/// Text as str, if it is UTF-8.
fn str_if_valid<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Option<Bound<'py, PyString>>> {
    std::str::from_utf8(text).ok().map(|_| string(py, text)).transpose()
}

/// What is decoded.
enum Given<'py> {
    Ids(Vec<u32>),
    /// Pieces, which are all str or bytes.
    Pieces(Vec<Bound<'py, PyAny>>),
}

impl<'py> Given<'py> {
    /// Ids, or pieces in a list that begins with one. `None` if there is anything else.
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
}

impl Engine {
    /// The pieces of tokens as str or bytes; `None` if one that should be str is not UTF-8. `unknown` has the places of
    /// unknown ones, and `first` is that of the first token.
    fn pieces<'py>(
        &self,
        py: Python<'py>,
        ids: &[u32],
        first: usize,
        unknown: &[(usize, Vec<u8>)],
        as_bytes: bool,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        let mut unknown = unknown.iter().peekable();
        let mut valid = true;
        let pieces = list(py, ids.iter().enumerate(), |(at, &id)| {
            let unknown = unknown.next_if(|(place, _)| *place == first + at);
            if as_bytes || !valid {
                return Ok(match unknown {
                    Some((_, text)) => bytes(py, text)?.into_any(),
                    None => self.piece_bytes(py, id)?,
                });
            }
            let piece = match unknown {
                Some((_, text)) => str_if_valid(py, text)?.map(Bound::into_any),
                None => self.piece_str(py, id)?,
            };
            valid = piece.is_some();
            Ok(piece.unwrap_or_else(|| py.None().into_bound(py)))
        })?;
        Ok(valid.then_some(pieces))
    }

    /// The ids of a text with merges skipped at random.
    pub fn sampled<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        dropout: Dropout,
    ) -> PyResult<Bound<'py, PyList>> {
        let input = utf8(text)?;
        let sample = |scratch: &mut Scratch| {
            run(py, input.0.len(), |check| self.engine.sample(input, dropout, check, scratch))?;
            self.ints.list(py, &scratch.ids)
        };
        self.engine.with_scratch(sample).map_err(halted)?
    }

    /// The ids of a text, the unknown ones of them, and spans.
    fn tokens(&self, py: Python<'_>, text: &Bound<'_, PyAny>, options: AlignOptions) -> PyResult<AlignedTexts> {
        let input = utf8(text)?;
        run(py, input.0.len(), |check| self.engine.align(input, options, check))
    }

    /// Ids, pieces, begins and ends in bytes.
    pub fn aligned<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        dropout: Option<Dropout>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let AlignedTexts { ids, spans, unknown, .. } =
            self.tokens(py, text, AlignOptions { characters: Some(false), dropout })?;
        let pieces = self.pieces(py, &ids, 0, &unknown, true)?.unwrap_or_else(|| PyList::empty(py));
        let [begins, ends] = [0, 1].map(|i| self.ints.numbers(py, spans.iter().map(move |span| span[i] as usize)));
        tuple(py, [self.ints.list(py, &ids)?, pieces, begins?, ends?].map(Bound::into_any))
    }

    /// Ids, pieces and spans; `None` if a piece should be str and is not UTF-8.
    pub fn mapped<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        options: AlignOptions,
        as_bytes: bool,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let AlignedTexts { ids, spans, unknown, .. } = self.tokens(py, text, options)?;
        let Some(pieces) = self.pieces(py, &ids, 0, &unknown, as_bytes)? else { return Ok(None) };
        let (ids, spans) = (self.ints.list(py, &ids)?, self.ints.pairs(py, &spans)?);
        tuple(py, [ids, pieces, spans].map(Bound::into_any)).map(Some)
    }

    /// Ids, pieces and spans of all texts; `None` likewise.
    pub fn mapped_batch<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyList>,
        threads: usize,
        options: AlignOptions,
        as_bytes: bool,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        let kept = items_of(texts)?;
        let texts = texts_of(&kept)?;
        let parts = results(py, |parts, check| self.engine.align_batch(&texts, threads, options, check, parts))?;
        let _paused = PausedCollector::new(py);
        let mut rows = with_room(texts.len()).map_err(halted)?;
        for AlignedTexts { ids, lengths, spans, unknown } in parts {
            py.check_signals()?; // Ctrl-C
            let (mut begin, mut unknown) = (0, &unknown[..]);
            for length in lengths {
                let end = begin + length;
                let Some(pieces) = self.pieces(py, &ids[begin..end], begin, unknown, as_bytes)? else {
                    return Ok(None);
                };
                let columns = [self.ints.list(py, &ids[begin..end])?, pieces, self.ints.pairs(py, &spans[begin..end])?];
                rows.push(tuple(py, columns.map(Bound::into_any))?);
                unknown = &unknown[unknown.iter().take_while(|(place, _)| *place < end).count()..];
                begin = end;
            }
        }
        list(py, rows.into_iter(), Ok).map(Some)
    }

    /// The ids of all texts, where each begins, their spans, and the unknown ones with what is unknown.
    pub fn aligned_arrays<'py>(
        &self,
        py: Python<'py>,
        texts: &(impl Texts + ?Sized),
        threads: usize,
        options: AlignOptions,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let mut room = Room::default();
        let make = |count| Python::attach(|py| room.make(py, count, true));
        let all = run(py, DETACH, |check| self.engine.gather_aligned(texts, threads, options, check, make))?;
        let (ids, spans) = (room.ids(py, &all, threads)?, room.spans(py, &all, threads)?);
        let offsets = arrays::offsets(py, texts.count(), all.lengths.into_iter())?;
        let unknown = list(py, all.unknown.into_iter(), |(at, text)| {
            tuple(py, [int(py, at)?.into_any(), bytes(py, &text)?.into_any()])
        })?;
        tuple(py, [ids, offsets.into_any(), spans, unknown.into_any()])
    }

    /// A normalized text, and for each of its characters and for its end, the character of the text that it came from;
    /// `None` if it is empty or not UTF-8.
    pub fn origins_of_characters<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyString>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let text = text.to_str()?.as_bytes();
        let (normalized, origins) = run(py, text.len(), |check| self.engine.character_origins(text, check))?;
        if normalized.is_empty() || std::str::from_utf8(&normalized).is_err() {
            return Ok(None);
        }
        let origins = self.ints.numbers(py, origins.into_iter())?;
        tuple(py, [string(py, &normalized)?.into_any(), origins.into_any()]).map(Some)
    }

    /// What the decoder makes of ids or pieces; `None` if an id is unknown or a piece is not text.
    fn given<'py, T: Send>(
        py: Python<'py>,
        given: &Given<'py>,
        of_ids: impl FnOnce(&[u32], Check) -> Result<T, Error> + Send,
        of_pieces: impl FnOnce(&[&[u8]], Check) -> Result<T, Error> + Send,
    ) -> PyResult<Option<T>> {
        match given {
            Given::Ids(ids) => run(py, ids.len(), |check| if_known(of_ids(ids, check))),
            Given::Pieces(pieces) => {
                let Ok(pieces) = texts_of(pieces) else { return Ok(None) }; // half of a character
                let mut texts = with_room(pieces.len()).map_err(halted)?;
                texts.extend(pieces.iter().map(|(text, _)| *text));
                run(py, texts.len(), |check| of_pieces(&texts, check)).map(Some)
            }
        }
    }

    /// The text of ids or pieces, the ids, the pieces and their spans. `None` if an id is unknown, if something that
    /// should be str is not UTF-8, or if a denormalizer rewrites the text.
    pub fn decoded_mapping<'py>(
        &self,
        py: Python<'py>,
        tokens: &Bound<'py, PyAny>,
        as_bytes: bool,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let decoder = self.engine.decoder();
        let Some(given) = Given::of(tokens)?.filter(|_| decoder.denormalizer().is_none()) else { return Ok(None) };
        let in_unit = |mut decoded: DecodedSpans| (as_bytes || decoded.count_characters()).then_some(decoded);
        let decoded = Self::given(
            py,
            &given,
            |ids, check| Ok(in_unit(decoder.decode_spans(ids, check)?)),
            |pieces, check| Ok(in_unit(decoder.decode_pieces_spans(pieces, check)?)),
        )?;
        let Some(DecodedSpans { text, ids, spans }) = decoded.flatten() else { return Ok(None) };
        let pieces = match &given {
            Given::Ids(ids) => self.pieces(py, ids, 0, &[], as_bytes)?,
            Given::Pieces(pieces) => shown(py, pieces, as_bytes)?,
        };
        let Some(pieces) = pieces else { return Ok(None) };
        let text = if as_bytes { bytes(py, &text)?.into_any() } else { string(py, &text)?.into_any() };
        let ids = self.ints.numbers(py, ids.iter().map(|&id| id as usize))?;
        let spans = self.ints.pairs(py, &spans)?;
        tuple(py, [text, ids.into_any(), pieces.into_any(), spans.into_any()]).map(Some)
    }

    /// The message of the text of ids or pieces; `None` if an id is unknown.
    pub fn decoded_message<'py>(
        &self,
        py: Python<'py>,
        tokens: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let decoder = self.engine.decoder();
        let Some(given) = Given::of(tokens)? else { return Ok(None) };
        let message = Self::given(
            py,
            &given,
            |ids, check| decoder.ids_message(ids, check),
            |pieces, check| decoder.pieces_message(pieces, check),
        )?;
        message.map(|message| bytes(py, &message)).transpose()
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
        if as_bytes {
            return Ok(bytes(py, text)?.into_any());
        }
        let text = str_if_valid(py, text)?;
        valid = valid && text.is_some();
        Ok(text.map_or_else(|| py.None().into_bound(py), Bound::into_any))
    })?;
    Ok(valid.then_some(pieces))
}
