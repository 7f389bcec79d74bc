//! The places of a new list, to write objects to them directly.
//!
//! The stable interface of CPython has one way to fill a list: a call for each item, which asks whether the list is one and
//! has the place, and gives back what was there before. For a list of ids that takes longer than everything else about
//! the item. CPython's own code, and modules compiled for one version of it, write the items of a new list to its array
//! of pointers; where that array is has been the same in every version since 2.4. So we do it, too, in the versions that
//! this was checked with, and after a look at a real list. Everywhere else the stable interface is used.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

/// The beginning of a list: references, type, number of items, and the array of items.
#[repr(C)]
struct Layout {
    references: isize,
    class: *mut PyObject,
    length: isize,
    items: *mut *mut PyObject,
    allocated: isize,
}

/// The versions of which the layout is known.
const VERSIONS: std::ops::RangeInclusive<(u8, u8)> = (3, 10)..=(3, 14);

static KNOWN: AtomicBool = AtomicBool::new(false);

/// Look whether lists are as `Layout` says. Called once, when the module is imported.
///
/// A debug build uses the stable interface, so that its tests are tests of that.
pub fn prepare(py: Python<'_>) -> PyResult<()> {
    let version = py.version_info();
    let implementation: String = py.import("sys")?.getattr("implementation")?.getattr("name")?.extract()?;
    let known = !cfg!(debug_assertions)
        && implementation == "cpython"
        && VERSIONS.contains(&(version.major, version.minor))
        && py.get_type::<PyList>().getattr("__basicsize__")?.extract::<usize>()? == size_of::<Layout>()
        && is_as_described(py)?;
    KNOWN.store(known, Ordering::Relaxed);
    Ok(())
}

/// Whether a list of three different objects has them where they should be.
fn is_as_described(py: Python<'_>) -> PyResult<bool> {
    let objects = [PyString::new(py, "a").into_any(), PyTuple::empty(py).into_any(), py.None().into_bound(py)];
    let list = PyList::new(py, &objects)?;
    // SAFETY: an object of this type has the size of `Layout`. Only if its other fields are what they should be is the
    // pointer believed, too.
    unsafe {
        let layout = &*list.as_ptr().cast::<Layout>();
        let plausible = layout.class == list.get_type().as_ptr()
            && layout.length == 3
            && layout.allocated >= 3
            && !layout.items.is_null()
            && layout.items.is_aligned();
        Ok(plausible && (0..3).zip(&objects).all(|(i, object)| *layout.items.add(i) == object.as_ptr()))
    }
}

/// The places of a list, to be filled from the first to the last.
pub struct Places {
    list: *mut PyObject,
    items: Option<NonNull<*mut PyObject>>,
    length: isize,
    next: isize,
}

impl Places {
    /// Those of a new list.
    ///
    /// # Safety
    /// The list was made by `PyList_New(length)`, nobody else uses it, and it lives longer than the places.
    pub unsafe fn of(list: &Bound<'_, PyList>, length: isize) -> Places {
        let list = list.as_ptr();
        let items = match KNOWN.load(Ordering::Relaxed) {
            // SAFETY: so lists are.
            true => NonNull::new(unsafe { (*list.cast::<Layout>()).items }),
            false => None,
        };
        Places { list, items, length, next: 0 }
    }

    /// Put an object into the next place; the list gets the reference.
    ///
    /// # Safety
    /// The interpreter is attached, and the reference is ours to give.
    #[inline(always)]
    pub unsafe fn push(&mut self, object: *mut PyObject) {
        assert!(self.next < self.length, "the list has a place for it");
        // SAFETY: the place is there, and empty, because the list is new.
        unsafe {
            match self.items {
                Some(items) => items.offset(self.next).write(object),
                None => _ = ffi::PyList_SetItem(self.list, self.next, object),
            }
        }
        self.next += 1;
    }
}
