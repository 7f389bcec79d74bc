//! Puts objects into a new list, many at a time.
//!
//! The stable ABI has a function that adds a reference to an object, and one that puts an object into a list. Calling
//! both for each id took a fifth of the time of `encode` with a large vocabulary; without them, lists are made 1.15 to
//! 1.3 times as fast. What they do takes three instructions, if it is known how the interpreter stores references and
//! lists. Every CPython so far stores them in the same way, and the C header of the stable ABI itself has the first of
//! the two functions as a macro. Still, this is checked: when the first list is made, `Storing::found` looks at objects to
//! which the two functions are applied. If anything is not as expected, the functions are called each time. In
//! free-threaded Python, where objects are larger and have two numbers of references, only the first one is.

use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;

/// How an item is put into a list.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Storing {
    /// It has not been checked yet.
    Unknown,
    /// By calling the interpreter.
    Calls,
    /// In place. An object begins with its number of references, which has 64 bits.
    InPlace,
    /// In place, but some objects are immortal: if bit 31 of the number is set, the number is not changed.
    InPlaceWithImmortals,
    /// In place, but the interpreter adds the reference. An object of free-threaded Python begins with 32 bytes of its
    /// own, and which number of references counts depends on the thread.
    ItemsInPlace,
}

/// The result of the check. (It is always the same, so threads may check at the same time.)
static WAY: AtomicU8 = AtomicU8::new(Storing::Unknown as u8);

/// The parts of a list that matter here, after what each object begins with.
#[repr(C)]
struct Layout {
    class: *mut ffi::PyTypeObject,
    length: isize,
    items: *mut *mut ffi::PyObject,
    capacity: isize,
}

/// How many bytes come before an object's class.
const HEAD: usize = 8;
const FREE_THREADED_HEAD: usize = 24;

impl Layout {
    /// # Safety
    /// The object must be a list, with this many bytes before its class.
    unsafe fn of<'a>(list: *mut ffi::PyObject, head: usize) -> &'a Layout {
        // SAFETY: as the caller promises.
        unsafe { &*list.byte_add(head).cast() }
    }
}

/// Put the objects of numbers into a new list, beginning at a place. Stops at a number that has no object. Returns the
/// place at which it stopped.
///
/// # Safety
/// `list` must be new and not used by anybody else, with as many places as there are numbers, and empty from `begin`
/// on. Each entry of the table must be null or a reference that the table owns.
#[inline]
pub unsafe fn put(
    _py: Python<'_>,
    list: *mut ffi::PyObject,
    begin: usize,
    numbers: &[u32],
    table: &[AtomicPtr<ffi::PyObject>],
) -> usize {
    // SAFETY: as the caller promises. That a list is like `Layout`, and how references are counted, has been checked.
    unsafe {
        match WAY.load(Ordering::Relaxed) {
            way if way == Storing::InPlace as u8 => {
                let items = Layout::of(list, HEAD).items;
                put_by(begin, numbers, table, |place, object| {
                    *object.cast::<u64>() += 1;
                    items.add(place).write(object);
                })
            }
            way if way == Storing::InPlaceWithImmortals as u8 => {
                let items = Layout::of(list, HEAD).items;
                put_by(begin, numbers, table, |place, object| {
                    let count = object.cast::<u32>();
                    *count += u32::from(*count >> 31 == 0);
                    items.add(place).write(object);
                })
            }
            way if way == Storing::ItemsInPlace as u8 => {
                let items = Layout::of(list, FREE_THREADED_HEAD).items;
                put_by(begin, numbers, table, |place, object| {
                    ffi::Py_INCREF(object);
                    items.add(place).write(object);
                })
            }
            way => {
                if way == Storing::Unknown as u8 {
                    WAY.store(Storing::found() as u8, Ordering::Relaxed);
                }
                put_by(begin, numbers, table, |place, object| {
                    ffi::Py_INCREF(object);
                    ffi::PyList_SetItem(list, place as isize, object);
                })
            }
        }
    }
}

/// The loop of `put`.
#[inline(always)]
fn put_by(
    begin: usize,
    numbers: &[u32],
    table: &[AtomicPtr<ffi::PyObject>],
    put: impl Fn(usize, *mut ffi::PyObject),
) -> usize {
    for (place, &number) in numbers.iter().enumerate().skip(begin) {
        let object = table.get(number as usize).map(|object| object.load(Ordering::Acquire));
        match object {
            Some(object) if !object.is_null() => put(place, object),
            _ => return place,
        }
    }
    numbers.len()
}

impl Storing {
    /// Check how objects and lists are stored. If the check fails with a Python error, the error is cleared.
    fn found() -> Storing {
        Storing::seen().unwrap_or(Storing::Calls)
    }

    /// How they are stored; `None` if anything is not as expected.
    fn seen() -> Option<Storing> {
        if size_of::<usize>() != size_of::<u64>() || cfg!(target_endian = "big") {
            return None;
        }
        Python::attach(|py| {
            // 1. An interpreter that counts all references, for debugging, counts them inside the functions.
            let class = py.get_type::<pyo3::types::PyList>();
            if py.import("sys").ok()?.hasattr("gettotalrefcount").ok()? {
                return None;
            }
            // 2. Check that a list takes as many bytes as expected.
            let size: usize = class.getattr("__basicsize__").ok()?.extract().ok()?;
            let head = size.checked_sub(size_of::<Layout>())?;
            if head != HEAD && head != FREE_THREADED_HEAD {
                return None;
            }
            // SAFETY: all objects are alive while they are looked at. Each begins with at least 16 bytes, and a list
            // has as many bytes as was just found. If the other parts of a list are as expected, its `items` points to
            // its items.
            unsafe {
                // 3. Check that a new object has one reference, and that a new reference adds 1. (PyO3's own function
                //    for a new int panics if there is no memory for it.)
                let number = |number| Bound::from_owned_ptr_or_err(py, ffi::PyLong_FromSize_t(number)).ok();
                let (first, second, third) = (number(1 << 28)?, number(1 << 29)?, number(1 << 30)?);
                let (_, plain) = counts(first.as_ptr());
                if head == HEAD && (counts(first.as_ptr()).0 != 1 || plain != 2) {
                    return None;
                }
                // 4. Check whether None has bit 31 set and does not count its references, or does count them.
                let none = py.None();
                let way = match counts(none.as_ptr()) {
                    _ if head == FREE_THREADED_HEAD => Storing::ItemsInPlace,
                    (before, after) if before == after && before >> 31 & 1 == 1 => Storing::InPlaceWithImmortals,
                    (before, after) if before + 1 == after && before >> 31 == 0 => Storing::InPlace,
                    _ => return None,
                };
                // 5. Check that a list has its length, its items and its capacity at the expected places.
                let list = Bound::from_owned_ptr_or_err(py, ffi::PyList_New(3)).ok()?;
                let objects = [first.as_ptr(), second.as_ptr(), third.as_ptr()];
                for (place, object) in (0..).zip(objects) {
                    ffi::Py_INCREF(object);
                    ffi::PyList_SetItem(list.as_ptr(), place, object);
                }
                let layout = Layout::of(list.as_ptr(), head);
                let is_list = layout.class.cast() == class.as_ptr()
                    && layout.length == 3
                    && layout.capacity >= 3
                    && !layout.items.is_null()
                    && layout.items.is_aligned();
                (is_list && *layout.items.cast::<[*mut ffi::PyObject; 3]>() == objects).then_some(way)
            }
        })
    }
}

/// The first 64 bits of an object: as they are, and while it has one more reference.
///
/// # Safety
/// It must be an object of at least this many bits.
unsafe fn counts(object: *mut ffi::PyObject) -> (u64, u64) {
    // SAFETY: as the caller promises. (The functions belong to the interpreter, so nothing is kept in registers over
    // their calls.)
    unsafe {
        let count = object.cast::<u64>();
        let before = count.read_volatile();
        ffi::Py_INCREF(object);
        let after = count.read_volatile();
        ffi::Py_DECREF(object);
        (before, after)
    }
}
