//! The border to Python: the classes, each in a file of its own, and the allocator. Only str, bytes, lists
//! of int, numpy arrays, and models as columns cross it. Python checks what users pass, and reports their errors.
//!
//! Nothing here relies on the interpreter's lock (the GIL), which free-threaded Python does not have. What calls share,
//! such as tables of objects, is changed by single atomic steps. Objects are read while they are locked, if other
//! threads might change them meanwhile.
//!
//! `docs/unsafe.md` lists all `unsafe` code.

mod arrays;
mod columns;
mod compat;
mod engine;
mod errors;
mod finders;
mod items;
mod lines;
mod pieces;
mod room;
mod signals;
mod training;
mod values;

use pyo3::prelude::*;

use crate::engine::Engine;
use crate::finders::{Finder, Splitter};
use crate::lines::LineWriter;
use crate::training::Counter;
use crate::values::is_aligned;

/// If memory runs out, this still has a little left with which to report that.
#[global_allocator]
static ALLOCATOR: cpbpe::memory::Allocator = cpbpe::memory::Allocator::new();

const _: () =
    assert!(is_aligned::<Engine>() && is_aligned::<Finder>() && is_aligned::<Counter>() && is_aligned::<LineWriter>());
const _: () = assert!(is_aligned::<Splitter>());

#[pymodule(gil_used = false)]
mod _core {
    use pyo3::panic::PanicException;
    use pyo3::prelude::*;
    use pyo3::PyTypeInfo;

    #[pymodule_export]
    use crate::compat::{character_origins, decode_mapping, decode_message, decode_pieces_all, message, normalize_all};
    #[pymodule_export]
    use crate::engine::Engine;
    #[pymodule_export]
    use crate::finders::{Finder, Splitter};
    #[pymodule_export]
    use crate::lines::{first_not_utf8, read_ids, LineWriter};
    #[pymodule_export]
    use crate::training::{learn, merge_words, Counter};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // PyO3 makes this type when it first looks at an exception, under a lock that a fork might leave taken in the
        // child (see `arrays::prepare`). Here, no other thread uses the module yet.
        let _ = PanicException::type_object(module.py());
        Ok(())
    }
}
