//! Numbers as numpy arrays.
//!
//! They are written into memory that numpy allocates. Handing over a vector instead (`PyArray::from_vec`) was not
//! faster for any length, and a vector into which ids are collected has room for several times as many.

use std::mem::MaybeUninit;
use std::panic::resume_unwind;
use std::slice::from_raw_parts_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

use numpy::npyffi::{self, npy_intp, NpyTypes, PY_ARRAY_API};
use numpy::{Element, PyArray1, PyArray2, PyArrayDescrMethods, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use cpbpe::join;
use cpbpe::memory::with_room;

use crate::errors::halted;

/// Make sure that arrays can be made without waiting for a lock. This must be called before the first array is made.
///
/// When the first array is made, the numpy crate looks up numpy's functions. There it panics if Ctrl-C comes: in Python,
/// signals are errors of the main thread. So another thread does it, in which they cannot come.
pub fn prepare(py: Python<'_>) -> PyResult<()> {
    static READY: AtomicBool = AtomicBool::new(false);
    if READY.load(Ordering::Acquire) {
        return Ok(());
    }
    py.import("numpy")?;
    match py.detach(|| Builder::new().spawn(|| Python::attach(look_up)).map(JoinHandle::join)) {
        Ok(Ok(done)) => done?,
        Ok(Err(panic)) => resume_unwind(panic),
        Err(_) => look_up(py)?, // no more threads are allowed
    }
    READY.store(true, Ordering::Release);
    Ok(())
}

/// Let the numpy crate look up numpy's functions.
///
/// Meanwhile it holds a lock (`PyOnceLock`), but may release the interpreter. If another thread forks the process at that
/// moment, the lock stays taken in the child, and the child hangs. Python's own import lock is safe, because a fork waits
/// for it. So this function holds the import lock. numpy itself has been imported, so nothing is imported here.
fn look_up(py: Python<'_>) -> PyResult<()> {
    struct Locked<'py>(Bound<'py, PyModule>);
    impl Drop for Locked<'_> {
        fn drop(&mut self) {
            // This cannot fail, because this thread holds the lock.
            let _ = self.0.call_method0("release_lock");
        }
    }
    let imp = py.import("_imp")?;
    imp.call_method0("acquire_lock")?;
    let _locked = Locked(imp);
    new::<u32>(py, &mut [0])?;
    Ok(())
}

/// A new array of one dimension, with numbers that are not initialized.
pub fn new_row<'py, T: Element>(py: Python<'py>, count: usize) -> PyResult<Bound<'py, PyArray1<T>>> {
    let array = new::<T>(py, &mut [length(count)?])?;
    // SAFETY: it was made with this type of numbers, and with one dimension. (Checking that again would take as long as
    // writing an id.)
    Ok(unsafe { array.cast_into_unchecked() })
}

/// A new array, with numbers that are not initialized.
fn new<'py, T: Element>(py: Python<'py>, dimensions: &mut [npy_intp]) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: numpy's function for a new array takes over the reference to the type of numbers, reads as many
    // dimensions as it is told there are, and returns a new reference, or null with an error set. (In case of an error,
    // `PyArray::new` of the numpy crate panics.)
    unsafe {
        let array = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            npyffi::get_type_object(py, NpyTypes::PyArray_Type),
            T::get_dtype(py).into_dtype_ptr(),
            dimensions.len() as _,
            dimensions.as_mut_ptr(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            0,
            std::ptr::null_mut(),
        );
        Bound::from_owned_ptr_or_err(py, array)
    }
}

/// A length as numpy takes it.
pub fn length(count: usize) -> PyResult<npy_intp> {
    npy_intp::try_from(count).map_err(|_| PyValueError::new_err("there are too many ids for an array"))
}

/// An array of these numbers.
pub fn array<'py, T: Element + Copy + Send + Sync>(
    py: Python<'py>,
    numbers: &[T],
) -> PyResult<Bound<'py, PyArray1<T>>> {
    let array = new_row::<T>(py, numbers.len())?;
    // SAFETY: the array is new, so nobody else looks at it, and has this many numbers.
    unsafe { std::ptr::copy_nonoverlapping(numbers.as_ptr(), array.data(), numbers.len()) };
    Ok(array)
}

/// An array with the numbers of all parts, one part after the other, copied by several threads.
pub fn joined<'py, T: Element + Copy + Send + Sync>(
    py: Python<'py>,
    parts: &[&[T]],
    threads: usize,
) -> PyResult<Bound<'py, PyArray1<T>>> {
    let count = parts.iter().map(|part| part.len()).sum();
    let array = new_row::<T>(py, count)?;
    // SAFETY: the array is new, so nobody else looks at it, and has this many numbers.
    let place = unsafe { from_raw_parts_mut(array.data().cast::<MaybeUninit<T>>(), count) };
    py.detach(|| join(parts, place, threads));
    Ok(array)
}

/// A new array with a row for each of `count` pairs, with numbers that are not initialized.
pub fn new_pairs(py: Python<'_>, count: usize) -> PyResult<Bound<'_, PyArray2<i64>>> {
    Ok(new::<i64>(py, &mut [length(count)?, 2])?.cast_into()?)
}

/// An array with a row for each pair of all parts, as `joined` makes it.
pub fn joined_pairs<'py>(
    py: Python<'py>,
    parts: &[&[[i64; 2]]],
    threads: usize,
) -> PyResult<Bound<'py, PyArray2<i64>>> {
    let count = parts.iter().map(|part| part.len()).sum();
    let array = new_pairs(py, count)?;
    // SAFETY: as in `joined`; the two numbers of a row are side by side.
    let place = unsafe { from_raw_parts_mut(array.data().cast::<MaybeUninit<[i64; 2]>>(), count) };
    py.detach(|| join(parts, place, threads));
    Ok(array)
}

/// Where each of many sequences begins, followed by the end of the last one.
pub fn offsets<'py>(
    py: Python<'py>,
    count: usize,
    lengths: impl Iterator<Item = usize>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let mut end = 0;
    let ends = lengths.map(|length| {
        end += length as i64;
        end
    });
    let mut offsets = with_room(count + 1).map_err(halted)?;
    offsets.extend(std::iter::once(0).chain(ends));
    array(py, &offsets)
}
