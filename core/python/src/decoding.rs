//! From Python's ids to Python's text.

use pyo3::prelude::*;
use pyo3::types::PyList;

use cpbpe::memory::with_room;
use cpbpe::watch::Check;
use cpbpe::{DecodedTexts, Error};

use crate::engine::Engine;
use crate::errors::halted;
use crate::signals::run;
use crate::values::{ids_into, items_of, list, string, with_ids};

impl Engine {
    /// The text of ids, made a value, unless one is outside the vocabulary.
    #[inline]
    pub fn decoded<R>(
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

    /// The texts of many sequences of ids, unless an id is outside the vocabulary.
    pub fn decoded_all<'py>(
        &self,
        py: Python<'py>,
        batch: &Bound<'py, PyList>,
        threads: usize,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
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
}

/// What was decoded, or `None` if an id is outside the vocabulary, which Python explains.
pub fn if_known<T>(decoded: Result<T, Error>) -> Result<Option<T>, Error> {
    match decoded {
        Ok(text) => Ok(Some(text)),
        Err(Error::UnknownId(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
