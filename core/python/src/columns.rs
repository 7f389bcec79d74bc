//! A model as columns: Python's values and ours.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use cpbpe::memory::collected;
use cpbpe::{ByteLevelOptions, Columns, Form, NormalizerOptions};

use crate::errors::halted;
use crate::values::{bytes, dict, numbered};

/// Name, charsmap, add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces, suffix, prefix_before_space, and the
/// name of the Unicode normal form, empty if there is none.
pub type NormalizerTuple = (Vec<u8>, Vec<u8>, bool, bool, bool, bool, bool, String);

/// The pattern of a byte-level model, empty if it has none; its name; whether chunks that are pieces are taken whole; the
/// patterns that cut its chunks.
pub type ByteLevelTuple = (String, String, bool, Vec<String>);

/// For Python.
pub fn byte_level_of(options: ByteLevelOptions) -> ByteLevelTuple {
    (options.pattern, options.name, options.whole, options.then)
}

/// A normalizer that came from Python.
pub fn normalizer_of(given: NormalizerTuple) -> PyResult<NormalizerOptions> {
    let (name, charsmap, add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces, suffix, before_space, form) =
        given;
    let unicode_form = Form::of(&form);
    if unicode_form.is_none() && !form.is_empty() {
        return Err(PyValueError::new_err(format!("{form:?} is no Unicode normal form")));
    }
    Ok(NormalizerOptions {
        name,
        charsmap,
        add_dummy_prefix,
        remove_extra_whitespaces,
        escape_whitespaces,
        suffix,
        prefix_before_space: before_space,
        unicode_form,
    })
}

/// Numbers of four bytes that came from Python.
pub fn numbers_of<T>(bytes: &[u8], number: impl Fn([u8; 4]) -> T) -> PyResult<Vec<T>> {
    if bytes.len() % 4 != 0 {
        return Err(PyValueError::new_err(format!(
            "a column of numbers has 4 bytes for each number, not {} in all",
            bytes.len()
        )));
    }
    collected(bytes.chunks_exact(4).map(|four| number([four[0], four[1], four[2], four[3]]))).map_err(halted)
}

/// A dict with the columns.
pub fn dict_of(py: Python<'_>, columns: Columns) -> PyResult<Bound<'_, PyDict>> {
    let bytes = |data: &[u8]| bytes(py, data);
    let normalizer = |options: NormalizerOptions| -> PyResult<_> {
        Ok((
            bytes(&options.name)?,
            bytes(&options.charsmap)?,
            options.add_dummy_prefix,
            options.remove_extra_whitespaces,
            options.escape_whitespaces,
            options.suffix,
            options.prefix_before_space,
            options.unicode_form.map_or("", Form::name),
        ))
    };
    let [unk, bos, eos, pad] = &columns.special_pieces;
    let ends = collected(columns.ends.iter().map(|end| end.to_ne_bytes())).map_err(halted)?;
    let scores = collected(columns.scores.iter().map(|score| score.to_ne_bytes())).map_err(halted)?;
    let dict = dict(py)?;
    dict.set_item("blob", bytes(&columns.blob)?)?;
    dict.set_item("ends", bytes(ends.as_flattened())?)?;
    dict.set_item("scores", bytes(scores.as_flattened())?)?;
    dict.set_item("types", bytes(&columns.types)?)?;
    dict.set_item("byte_fallback", columns.byte_fallback)?;
    dict.set_item("unk_surface", bytes(&columns.unk_surface)?)?;
    dict.set_item("special_pieces", (bytes(unk)?, bytes(bos)?, bytes(eos)?, bytes(pad)?))?;
    dict.set_item("normalizer", normalizer(columns.normalizer)?)?;
    dict.set_item("denormalizer", columns.denormalizer.map(normalizer).transpose()?)?;
    dict.set_item("byte_level", columns.byte_level.map(byte_level_of))?;
    dict.set_item("added", numbered(py, columns.added.iter().map(|(text, id)| (&text[..], *id as usize)))?)?;
    Ok(dict)
}
