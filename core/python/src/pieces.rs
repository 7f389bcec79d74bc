//! Pieces as Python's str, one for every piece of a model: a list of pieces takes references to them, and is made as
//! fast as a list of ids. (Made anew each time, they took ten times as long as the ids.)

use std::sync::OnceLock;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use cpbpe::memory::with_room;
use cpbpe::watch::Check;
use cpbpe::Ends;

use crate::errors::halted;
use crate::signals::run;
use crate::values::{items_of, list, str_of, string, utf8, Objects};
use crate::Engine;

/// The str of every piece. Each is made when first needed, and so is the table.
#[derive(Default)]
pub struct Pieces(OnceLock<Objects>);

impl Pieces {
    fn table(&self, count: usize) -> PyResult<&Objects> {
        match self.0.get() {
            Some(table) => Ok(table),
            None => {
                let table = Objects::new(count)?;
                // (Nothing here releases the interpreter, so no other thread ever waits for the lock, nor forks.)
                Ok(self.0.get_or_init(|| table))
            }
        }
    }
}

impl Engine {
    /// The pieces of a text between those at its ends. `strict`: an unknown part that is not UTF-8 is an error.
    pub fn pieces_of<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        ends: Ends,
        strict: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let table = self.pieces.table(self.engine.size())?;
        let make = |id: u32| string(py, &self.engine.piece(id));
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
        let kept = items_of(pieces)?;
        let mut texts: Vec<&[u8]> = with_room(kept.len()).map_err(halted)?;
        for piece in &kept {
            match utf8(piece) {
                Ok((text, _)) => texts.push(text),
                Err(error) if error.is_instance_of::<PyTypeError>(py) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        let size = texts.iter().map(|text| text.len()).sum();
        let decode = |check: Check| self.engine.decoder().decode_pieces(texts.iter().copied(), check);
        make(&run(py, size, decode)?).map(Some)
    }

    /// The normalized text as str.
    pub fn normalized<'py>(&self, py: Python<'py>, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
        let (text, _) = utf8(text)?;
        string(py, &run(py, text.len(), |check| self.engine.normalize(text, check))?)
    }
}
