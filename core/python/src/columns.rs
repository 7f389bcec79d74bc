//! A model as columns: from Python's dicts to the core's values, and back. `cpbpe/engine/columns.py` names the fields.

use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use cpbpe::memory::{collected, copied};
use cpbpe::{ByteLevelOptions, Columns, Form, NormalizerOptions};

use crate::errors::halted;
use crate::values::{bytes, dict, numbered};

/// A field of a dict.
fn field<'py>(dict: &Bound<'py, PyDict>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    dict.get_item(name)?.ok_or_else(|| PyKeyError::new_err(name.to_owned()))
}

/// The same, converted to a value of Rust.
fn value<'py, T: FromPyObjectOwned<'py>>(dict: &Bound<'py, PyDict>, name: &str) -> PyResult<T> {
    field(dict, name)?.extract().map_err(Into::into)
}

/// The same as a dict; `None` if it is None.
fn inner<'py>(columns: &Bound<'py, PyDict>, name: &str) -> PyResult<Option<Bound<'py, PyDict>>> {
    let found = field(columns, name)?;
    Ok(if found.is_none() { None } else { Some(found.cast_into()?) })
}

/// A column of numbers of four bytes.
fn numbers<T>(columns: &Bound<'_, PyDict>, name: &str, number: impl Fn([u8; 4]) -> T) -> PyResult<Vec<T>> {
    let column = field(columns, name)?;
    let bytes = column.cast::<PyBytes>()?.as_bytes();
    if bytes.len() % 4 != 0 {
        return Err(PyValueError::new_err(format!(
            "a column of numbers has 4 bytes for each number, not {} in all",
            bytes.len()
        )));
    }
    collected(bytes.chunks_exact(4).map(|four| number([four[0], four[1], four[2], four[3]]))).map_err(halted)
}

fn normalizer_of(dict: &Bound<'_, PyDict>) -> PyResult<NormalizerOptions> {
    let form: String = value(dict, "unicode_form")?;
    let unicode_form = Form::of(&form);
    if unicode_form.is_none() && !form.is_empty() {
        return Err(PyValueError::new_err(format!("{form:?} is no Unicode normal form")));
    }
    Ok(NormalizerOptions {
        name: value(dict, "name")?,
        charsmap: value(dict, "charsmap")?,
        add_dummy_prefix: value(dict, "add_dummy_prefix")?,
        remove_extra_whitespaces: value(dict, "remove_extra_whitespaces")?,
        escape_whitespaces: value(dict, "escape_whitespaces")?,
        suffix: value(dict, "suffix")?,
        prefix_before_space: value(dict, "prefix_before_space")?,
        unicode_form,
    })
}

fn byte_level_of(dict: &Bound<'_, PyDict>) -> PyResult<ByteLevelOptions> {
    Ok(ByteLevelOptions {
        pattern: value(dict, "pattern")?,
        name: value(dict, "name")?,
        whole: value(dict, "whole")?,
        then: value(dict, "then")?,
    })
}

/// The model that Python gives as columns.
pub fn columns_of(columns: &Bound<'_, PyDict>) -> PyResult<Columns> {
    let (unk, bos, eos, pad) = value(columns, "special_pieces")?;
    Ok(Columns {
        blob: copied(field(columns, "blob")?.cast::<PyBytes>()?.as_bytes()).map_err(halted)?,
        ends: numbers(columns, "ends", u32::from_ne_bytes)?,
        scores: numbers(columns, "scores", f32::from_ne_bytes)?,
        types: value(columns, "types")?,
        byte_fallback: value(columns, "byte_fallback")?,
        unk_surface: value(columns, "unk_surface")?,
        special_pieces: [unk, bos, eos, pad],
        normalizer: normalizer_of(field(columns, "normalizer")?.cast()?)?,
        denormalizer: inner(columns, "denormalizer")?.as_ref().map(normalizer_of).transpose()?,
        byte_level: inner(columns, "byte_level")?.as_ref().map(byte_level_of).transpose()?,
        added: value(columns, "added")?,
        carries: value(columns, "carries")?,
    })
}

fn normalizer_dict(py: Python<'_>, options: NormalizerOptions) -> PyResult<Bound<'_, PyDict>> {
    let dict = dict(py)?;
    dict.set_item("name", bytes(py, &options.name)?)?;
    dict.set_item("charsmap", bytes(py, &options.charsmap)?)?;
    dict.set_item("add_dummy_prefix", options.add_dummy_prefix)?;
    dict.set_item("remove_extra_whitespaces", options.remove_extra_whitespaces)?;
    dict.set_item("escape_whitespaces", options.escape_whitespaces)?;
    dict.set_item("suffix", options.suffix)?;
    dict.set_item("prefix_before_space", options.prefix_before_space)?;
    dict.set_item("unicode_form", options.unicode_form.map_or("", Form::name))?;
    Ok(dict)
}

fn byte_level_dict(py: Python<'_>, options: ByteLevelOptions) -> PyResult<Bound<'_, PyDict>> {
    let dict = dict(py)?;
    dict.set_item("pattern", options.pattern)?;
    dict.set_item("name", options.name)?;
    dict.set_item("whole", options.whole)?;
    dict.set_item("then", options.then)?;
    Ok(dict)
}

/// The columns without the pieces, for Python.
pub fn head_of(py: Python<'_>, columns: Columns) -> PyResult<Bound<'_, PyDict>> {
    let [unk, bos, eos, pad] = columns.special_pieces.each_ref().map(|name| bytes(py, name));
    let dict = dict(py)?;
    dict.set_item("byte_fallback", columns.byte_fallback)?;
    dict.set_item("unk_surface", bytes(py, &columns.unk_surface)?)?;
    dict.set_item("special_pieces", (unk?, bos?, eos?, pad?))?;
    dict.set_item("normalizer", normalizer_dict(py, columns.normalizer)?)?;
    dict.set_item("denormalizer", columns.denormalizer.map(|options| normalizer_dict(py, options)).transpose()?)?;
    dict.set_item("byte_level", columns.byte_level.map(|options| byte_level_dict(py, options)).transpose()?)?;
    dict.set_item("added", numbered(py, columns.added.iter().map(|(text, id)| (&text[..], *id as usize)))?)?;
    dict.set_item("carries", columns.carries)?;
    Ok(dict)
}

/// All columns, for Python.
pub fn dict_of(py: Python<'_>, columns: Columns) -> PyResult<Bound<'_, PyDict>> {
    let ends = collected(columns.ends.iter().map(|end| end.to_ne_bytes())).map_err(halted)?;
    let scores = collected(columns.scores.iter().map(|score| score.to_ne_bytes())).map_err(halted)?;
    let pieces = [bytes(py, &columns.blob), bytes(py, ends.as_flattened()), bytes(py, scores.as_flattened())];
    let types = bytes(py, &columns.types)?;
    let dict = head_of(py, columns)?;
    for (name, column) in ["blob", "ends", "scores"].into_iter().zip(pieces) {
        dict.set_item(name, column?)?;
    }
    dict.set_item("types", types)?;
    Ok(dict)
}
