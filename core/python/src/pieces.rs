//! Pieces as Python's str and bytes, one object for every piece of a model: a list of pieces takes references to them,
//! and is made as fast as a list of ids. (Made anew each time, they took ten times as long as the ids.)

use std::sync::OnceLock;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use cpbpe::memory::{with_room, Grow};
use cpbpe::watch::Check;
use cpbpe::{Ends, NO_ID};

use crate::engine::Engine;
use crate::errors::halted;
use crate::signals::run;
use crate::spellings::Spellings;
use crate::values::{bytes, items_of, list, str_of, string, texts_of, utf8, Objects};

/// Signals are checked once in this many pieces that are looked up.
const CHECK_PIECES: usize = 1 << 18;
/// The same for short lists of them.
const CHECK_LISTS: usize = 1 << 10;

/// The objects of every piece. Each is made when first needed, and so are the tables.
#[derive(Default)]
pub struct Pieces {
    /// As str, with U+FFFD for bytes that are not UTF-8.
    strings: OnceLock<Objects>,
    bytes: OnceLock<Objects>,
    /// The way back.
    spellings: OnceLock<Spellings>,
}

/// A table, made if it is not there yet.
///
/// (Nothing that makes it releases the interpreter, so no other thread ever waits for the lock, nor forks.)
fn table<T>(place: &OnceLock<T>, make: impl FnOnce() -> PyResult<T>) -> PyResult<&T> {
    match place.get() {
        Some(table) => Ok(table),
        None => {
            let table = make()?;
            Ok(place.get_or_init(|| table))
        }
    }
}

impl Engine {
    /// The str of all pieces, and what makes one.
    fn strings(&self) -> PyResult<&Objects> {
        table(&self.pieces.strings, || Objects::new(self.engine.size()))
    }

    fn new_string<'py>(&self, py: Python<'py>, id: u32) -> PyResult<Bound<'py, PyString>> {
        string(py, &self.engine.piece(id))
    }

    /// The piece of an id as str, if it is UTF-8.
    pub fn piece_str<'py>(&self, py: Python<'py>, id: u32) -> PyResult<Option<Bound<'py, PyAny>>> {
        if !self.engine.is_utf8(id) {
            return Ok(None);
        }
        self.strings()?.get(py, id, |id| self.new_string(py, id)).map(Some)
    }

    /// The piece of an id as bytes.
    pub fn piece_bytes<'py>(&self, py: Python<'py>, id: u32) -> PyResult<Bound<'py, PyAny>> {
        let table = table(&self.pieces.bytes, || Objects::new(self.engine.size()))?;
        table.get(py, id, |id| bytes(py, &self.engine.piece(id)))
    }

    /// The pieces of a text between those at its ends. `strict`: an unknown part that is not UTF-8 is an error.
    pub fn pieces_of<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        ends: Ends,
        strict: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let table = self.strings()?;
        let make = |id: u32| self.new_string(py, id);
        // 1. All follows from the ids, unless a part is unknown.
        let unknown = self.engine.unknown();
        let known = self.encoded(py, text, ends, |ids| match unknown {
            Some(unknown) if ids.contains(&unknown) => Ok(None),
            _ => table.list(py, ids, make).map(Some),
        })?;
        if let Some(pieces) = known {
            return Ok(pieces);
        }
        // 2. Its spelling is in the text, and tokens say where.
        let (data, _) = utf8(text)?;
        let aligned = run(py, data.len(), |check| self.engine.tokens(data, None, check))?;
        let mut pieces: Vec<Bound<'py, PyAny>> = with_room(aligned.tokens.len() + 2).map_err(halted)?;
        let mut spelled = Vec::new();
        for token in &aligned.tokens {
            if Some(token.id) == unknown {
                spelled.clear();
                self.engine.piece_of(token, &aligned, &mut spelled).map_err(halted)?;
                let piece = if strict { str_of(py, &spelled)? } else { string(py, &spelled)? };
                pieces.push(piece.into_any());
            } else {
                pieces.push(table.get(py, token.id, make)?);
            }
        }
        // 3. What goes around them.
        if ends.reverse {
            pieces.reverse();
        }
        if let Some(front) = ends.front {
            pieces.insert(0, table.get(py, front, make)?);
        }
        if let Some(back) = ends.back {
            pieces.push(table.get(py, back, make)?);
        }
        list(py, pieces.into_iter(), Ok)
    }

    /// The text of pieces, made a value; `None` if one is neither str nor bytes.
    pub fn joined<'py, R>(
        &self,
        py: Python<'py>,
        pieces: &Bound<'py, PyList>,
        make: impl FnOnce(&[u8]) -> PyResult<R>,
    ) -> PyResult<Option<R>> {
        // 1. Their ids, and those that the vocabulary does not have.
        let mut ids = with_room(pieces.len()).map_err(halted)?;
        let mut others = Vec::new();
        for at in 0..ids.capacity() {
            if at % CHECK_PIECES == CHECK_PIECES - 1 {
                py.check_signals()?;
            }
            let piece = pieces.get_item(at)?;
            match self.id_of(&piece) {
                Ok(Some(id)) => ids.push(id),
                Ok(None) => {
                    ids.push(NO_ID);
                    others.grow(1).map_err(halted)?;
                    others.push(piece);
                }
                Err(error) if error.is_instance_of::<PyTypeError>(py) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        // 2. Their texts.
        let others = texts_of(&others)?;
        let others = others.iter().map(|(text, _)| *text);
        make(&run(py, ids.len(), |check: Check| self.engine.decoder().decode_pieces(&ids, others, check))?).map(Some)
    }

    /// The texts of lists of pieces; `None` if there is anything else.
    pub fn joined_all<'py>(&self, py: Python<'py>, batch: &Bound<'py, PyList>) -> PyResult<Option<Bound<'py, PyList>>> {
        let batch = items_of(batch)?;
        let mut texts = with_room(batch.len()).map_err(halted)?;
        for (number, pieces) in batch.iter().enumerate() {
            if number % CHECK_LISTS == CHECK_LISTS - 1 {
                py.check_signals()?;
            }
            let Ok(pieces) = pieces.cast_exact::<PyList>() else { return Ok(None) };
            let Some(text) = self.joined(py, pieces, |text| string(py, text))? else { return Ok(None) };
            texts.push(text);
        }
        list(py, texts.into_iter(), Ok).map(Some)
    }

    /// The id of a piece, str or bytes; `None` if the vocabulary does not have it.
    #[inline]
    fn id_of(&self, piece: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
        let py = piece.py();
        if !piece.is_exact_instance_of::<PyString>() {
            return Ok(self.engine.find(utf8(piece)?.0));
        }
        let spellings = table(&self.pieces.spellings, || Spellings::new(self.engine.size()))?;
        let strings = self.strings()?;
        let hash = piece.hash()?;
        if let Some(id) = spellings.find(strings, hash, piece) {
            return Ok(Some(id));
        }
        let Some(id) = self.engine.find(utf8(piece)?.0) else { return Ok(None) };
        strings.get(py, id, |id| self.new_string(py, id))?;
        spellings.add(hash, id);
        Ok(Some(id))
    }
}
