//! Pieces as Python's str and bytes. There is one object for every piece of a model, so a list of pieces only takes
//! references, and is made as fast as a list of ids. (Making new objects each time took ten times as long as the ids.)

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::OnceLock;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use cpbpe::memory::{collected, with_room, Grow};
use cpbpe::watch::Check;
use cpbpe::{Dropout, Ends, NO_ID};

use crate::engine::Engine;
use crate::errors::halted;
use crate::signals::run;
use crate::values::{bytes, list, string, texts_of, utf8, Objects};

/// Signals are checked once in this many pieces when they are looked up.
const CHECK_PIECES: usize = 1 << 18;

/// The objects of every piece. Each object is made when it is first needed, and so are the tables.
#[derive(Default)]
pub struct Pieces {
    /// As str, with U+FFFD for bytes that are not UTF-8.
    strings: OnceLock<Objects>,
    bytes: OnceLock<Objects>,
    /// From str to id.
    spellings: OnceLock<Spellings>,
}

/// The value in a place. It is made if it is not there yet.
///
/// (Nobody waits while it is made: threads may make it at the same time, and then all of them get the same one.)
fn once<T>(place: &OnceLock<T>, make: impl FnOnce() -> PyResult<T>) -> PyResult<&T> {
    match place.get() {
        Some(table) => Ok(table),
        None => {
            let table = make()?;
            Ok(place.get_or_init(|| table))
        }
    }
}

impl Engine {
    /// The table of the str of all pieces.
    fn strings(&self) -> PyResult<&Objects> {
        once(&self.pieces.strings, || Objects::new(self.engine.size()))
    }

    fn new_string<'py>(&self, py: Python<'py>, id: u32) -> PyResult<Bound<'py, PyString>> {
        string(py, &self.engine.piece(id))
    }

    /// The pieces of ids as str (with U+FFFD for bytes that are not UTF-8) or bytes. `unknown` says where unknown
    /// pieces are, and `first` is the position of the first token.
    pub fn pieces_of_ids<'py>(
        &self,
        py: Python<'py>,
        ids: &[u32],
        first: usize,
        unknown: &[(usize, Vec<u8>)],
        as_bytes: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let table = if as_bytes { &self.pieces.bytes } else { &self.pieces.strings };
        let table = once(table, || Objects::new(self.engine.size()))?;
        let make = |text: &[u8]| -> PyResult<Bound<'py, PyAny>> {
            Ok(if as_bytes { bytes(py, text)?.into_any() } else { string(py, text)?.into_any() })
        };
        if unknown.is_empty() {
            return table.list(py, ids, |id| make(&self.engine.piece(id)));
        }
        let mut unknown = unknown.iter().peekable();
        list(py, ids.iter().enumerate(), |(at, &id)| match unknown.next_if(|(place, _)| *place == first + at) {
            Some((_, text)) => make(text),
            None => table.get(py, id, |id| make(&self.engine.piece(id))),
        })
    }

    /// The pieces of a text, between those at its ends.
    pub fn pieces_of_text<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        ends: Ends,
        dropout: Option<Dropout>,
    ) -> PyResult<Bound<'py, PyList>> {
        let table = self.strings()?;
        let make = |id: u32| self.new_string(py, id);
        // 1. Everything follows from the ids, unless a part of the text is unknown.
        let unknown = self.engine.unknown();
        let known = self.encoded(py, text, ends, dropout, |ids| match unknown {
            Some(unknown) if ids.contains(&unknown) => Ok(None),
            _ => table.list(py, ids, make).map(Some),
        })?;
        if let Some(pieces) = known {
            return Ok(pieces);
        }
        // 2. If one is, its spelling is in the text, and tokens say where.
        let (data, _) = utf8(text)?;
        let aligned = run(py, data.len(), |check| self.engine.tokens(data, dropout, check))?;
        let mut pieces: Vec<Bound<'py, PyAny>> = with_room(aligned.tokens.len() + 2).map_err(halted)?;
        let mut spelled = Vec::new();
        for token in &aligned.tokens {
            if Some(token.id) == unknown {
                spelled.clear();
                self.engine.piece_of(token, &aligned, &mut spelled).map_err(halted)?;
                pieces.push(string(py, &spelled)?.into_any());
            } else {
                pieces.push(table.get(py, token.id, make)?);
            }
        }
        // 3. Put the pieces of the ends around them.
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

    /// The text of pieces, turned into a value; `None` if a piece is neither str nor bytes.
    pub fn joined<'py, R>(
        &self,
        py: Python<'py>,
        pieces: &Bound<'py, PyList>,
        make: impl FnOnce(&[u8]) -> PyResult<R>,
    ) -> PyResult<Option<R>> {
        // 1. Find their ids, and collect the pieces that the vocabulary does not have.
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
                    others.try_push(piece).map_err(halted)?;
                }
                Err(error) if error.is_instance_of::<PyTypeError>(py) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        // 2. Join their texts.
        let others = texts_of(&others)?;
        let others = others.iter().map(|(text, _)| *text);
        make(&run(py, ids.len(), |check: Check| self.engine.decoder().decode_pieces(&ids, others, check))?).map(Some)
    }

    /// The id of a piece, str or bytes; `None` if the vocabulary does not have it.
    #[inline]
    fn id_of(&self, piece: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
        let py = piece.py();
        if !piece.is_exact_instance_of::<PyString>() {
            return Ok(self.engine.find(utf8(piece)?.0));
        }
        let spellings = once(&self.pieces.spellings, || Spellings::new(self.engine.size()))?;
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

// From pieces as Python's str to their ids. A str knows its hash once somebody has asked for it, and many pieces are
// the very objects that encoding returned. Without this table, each piece was written in UTF-8 and looked up in the
// vocabulary, which made decoding of pieces take nearly twice as long, whether their str were new or not. (And Python
// keeps the UTF-8 form of a str that is not ASCII, in memory of its own.)

/// The pieces that have been looked up so far, by the hash of their str. Threads may look up and add pieces at the same
/// time: a slot is filled once, in one step, and never changes after that.
struct Spellings {
    /// Open addressing, at most half full. The low `id_bits` of a slot are the id plus one; above them is as much of
    /// the hash as there is room for.
    slots: Box<[AtomicU32]>,
    id_bits: u32,
}

impl Spellings {
    /// A table for this many pieces.
    fn new(count: usize) -> PyResult<Spellings> {
        let none = (0..(count * 2).next_power_of_two()).map(|_| AtomicU32::new(0));
        let slots = collected(none).map_err(halted)?.into_boxed_slice();
        Ok(Spellings { slots, id_bits: usize::BITS - count.leading_zeros() })
    }

    /// The id of a piece, given as an exact str with its hash, if the piece was added. `strings` has the objects of
    /// added pieces.
    #[inline]
    fn find(&self, strings: &Objects, hash: isize, piece: &Bound<'_, PyAny>) -> Option<u32> {
        let ids = (1 << self.id_bits) - 1;
        let mark = self.mark(hash);
        let mut at = hash as usize;
        loop {
            let slot = self.slots[at & (self.slots.len() - 1)].load(Ordering::Relaxed);
            if slot == 0 {
                return None;
            }
            if slot & !ids == mark && strings.is_str((slot & ids) - 1, piece) {
                return Some((slot & ids) - 1);
            }
            at += 1;
        }
    }

    /// Add a piece whose str has this hash, unless another thread has just done so: a piece that had two slots would
    /// fill the table.
    fn add(&self, hash: isize, id: u32) {
        let entry = self.mark(hash) | (id + 1);
        let mut at = hash as usize;
        loop {
            let slot = &self.slots[at & (self.slots.len() - 1)];
            match slot.compare_exchange(0, entry, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) if other == entry => return,
                Err(_) => at += 1,
            }
        }
    }

    /// The part of the hash that is in a slot.
    #[inline]
    fn mark(&self, hash: isize) -> u32 {
        (hash as u64 >> 32) as u32 >> self.id_bits << self.id_bits
    }
}
