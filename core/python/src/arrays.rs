//! Numbers as arrays of numpy.
//!
//! They are written into memory that numpy allocates. Handing over a vector instead (`PyArray::from_vec`) was not faster
//! for any length, and a vector that collected ids has room for several times as many.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

use numpy::npyffi::{self, npy_intp, NpyTypes, PyArray_Dims, NPY_ORDER, PY_ARRAY_API};
use numpy::{Element, PyArray1, PyArray2, PyArrayDescrMethods, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PySlice;

use cpbpe::memory::with_room;
use cpbpe::{join, Place};

use crate::errors::halted;

/// Arrays of this many bytes get memory of their own from the system. (The most for which glibc's allocator learns.)
const LARGE: usize = 1 << 25;

/// Make sure that arrays can be made without waiting for a lock. Called before the first array is made.
///
/// When the first array is made, the numpy crate looks up numpy's functions, under a lock (`PyOnceLock`) during which
/// it lets go of the interpreter. If another thread forks the process at that moment, the lock stays taken in the
/// child, and the child hangs. Python's own import lock is safe, because a fork waits for it; so we take that one
/// around it. numpy itself has been imported by our callers, so nothing is imported here.
pub fn prepare(py: Python<'_>) -> PyResult<()> {
    static READY: AtomicBool = AtomicBool::new(false);
    if READY.load(Ordering::Acquire) {
        return Ok(());
    }
    struct Locked<'py>(Bound<'py, PyModule>);
    impl Drop for Locked<'_> {
        fn drop(&mut self) {
            // This cannot fail: the lock is ours.
            let _ = self.0.call_method0("release_lock");
        }
    }
    py.import("numpy")?;
    let imp = py.import("_imp")?;
    imp.call_method0("acquire_lock")?;
    let locked = Locked(imp);
    new::<u32>(py, &mut [0])?;
    drop(locked);
    READY.store(true, Ordering::Release);
    Ok(())
}

/// A new array of one dimension. Its numbers are not initialized.
fn new_row<'py, T: Element>(py: Python<'py>, count: usize) -> PyResult<Bound<'py, PyArray1<T>>> {
    let array = new::<T>(py, &mut [length(count)?])?;
    // SAFETY: it was made with this type of numbers, and with one dimension. (To look again would take as long as an id.)
    Ok(unsafe { array.cast_into_unchecked() })
}

/// A new array. Its numbers are not initialized.
fn new<'py, T: Element>(py: Python<'py>, dimensions: &mut [npy_intp]) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: numpy's function for a new array: it takes over the reference to the type of numbers, reads as many
    // dimensions as it is told there are, and gives a new reference, or null with an error. (`PyArray::new` of the
    // crate panics then.)
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

fn length(count: usize) -> PyResult<npy_intp> {
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

/// An array of the numbers of all parts, one after the other.
pub fn joined<'py, T: Element + Copy + Send + Sync>(
    py: Python<'py>,
    parts: &[&[T]],
    threads: usize,
) -> PyResult<Bound<'py, PyArray1<T>>> {
    let count = parts.iter().map(|part| part.len()).sum();
    let array = new_row::<T>(py, count)?;
    // SAFETY: the array is new, so nobody else looks at it, and has this many numbers.
    let place = unsafe { std::slice::from_raw_parts_mut(array.data().cast::<MaybeUninit<T>>(), count) };
    py.detach(|| join(parts, place, threads));
    Ok(array)
}

/// A new array with room for this many ids, and this room; `None` if there is no memory for it.
pub fn room<'p>(py: Python<'_>, count: usize) -> Option<(Py<PyArray1<u32>>, Place<'p>)> {
    let array = new_row::<u32>(py, count).ok()?;
    // SAFETY: the array is new, so nobody else looks at it, and has this many numbers. The caller keeps it until the
    // place has been used.
    let place = unsafe { std::slice::from_raw_parts_mut(array.data().cast(), count) };
    Some((array.unbind(), place))
}

/// The first numbers of an array from `room`, which have been written.
pub fn first<'a>(array: &'a Bound<'_, PyArray1<u32>>, count: usize) -> &'a [u32] {
    assert!(count <= array.len(), "the array has room for them");
    // SAFETY: it has, and nobody else has seen it.
    unsafe { std::slice::from_raw_parts(array.data(), count) }
}

/// An array from `room` without the numbers after the first `count`. They stay where they are.
///
/// Memory for a large array comes from the system, page by page, and returning the unused pages costs nothing. That of
/// other arrays comes from what the process already has, if an array of the same size was freed before; the system's
/// allocator learns that size. So the result is a view, which keeps the rest of the room, a sixteenth: to return it took
/// a tenth of the time of the next calls, because no room of theirs fitted into what had been freed.
pub fn shortened<'py>(array: Bound<'py, PyArray1<u32>>, count: usize) -> PyResult<Bound<'py, PyArray1<u32>>> {
    assert!(count <= array.len(), "an array does not grow");
    let unused = array.len() - count;
    let mut dimension = length(count)?;
    if array.len() * size_of::<u32>() < LARGE && unused <= array.len() / 8 {
        let view = array.get_item(PySlice::new(array.py(), 0, dimension, 1))?;
        return Ok(view.cast_into()?);
    }
    let mut shape = PyArray_Dims { ptr: &mut dimension, len: 1 };
    // SAFETY: numpy's function for this reads the shape, and gives None, or null with an error. Nobody else has seen the
    // array, so it need not look for references to it.
    unsafe {
        let none =
            PY_ARRAY_API.PyArray_Resize(array.py(), array.as_array_ptr(), &mut shape, 0, NPY_ORDER::NPY_ANYORDER);
        Bound::from_owned_ptr_or_err(array.py(), none)?;
    }
    Ok(array)
}

/// An array with a row for each pair.
pub fn joined_pairs<'py>(
    py: Python<'py>,
    parts: &[&[[i64; 2]]],
    threads: usize,
) -> PyResult<Bound<'py, PyArray2<i64>>> {
    let count = parts.iter().map(|part| part.len()).sum();
    let array: Bound<'py, PyArray2<i64>> = new::<i64>(py, &mut [length(count)?, 2])?.cast_into()?;
    // SAFETY: as in `joined`; the two numbers of a row are side by side.
    let place = unsafe { std::slice::from_raw_parts_mut(array.data().cast::<MaybeUninit<[i64; 2]>>(), count) };
    py.detach(|| join(parts, place, threads));
    Ok(array)
}

/// Where each of many sequences begins, and the end.
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
