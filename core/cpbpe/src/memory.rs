//! Memory whose size depends on the input. Rust's collections end the process if memory runs out; the functions here
//! return an error instead.
//!
//! A buffer whose size depends on a text grows by `grow`, which may fail, before anything is put into it; after that,
//! the code pushes as usual. (`try_push` and `try_extend` do both.) This costs a comparison, in most cases one for a
//! whole chunk or text. (Stable Rust cannot catch every failure in one place: an allocator must not unwind, and the hook
//! that is called before the process ends is unstable.)
//!
//! Small buffers, and those bounded by the vocabulary or the number of threads, are allocated as usual. `Allocator` has
//! a reserve for them. So a process that cannot get a large buffer still has the few hundred bytes it needs to say so.

use std::alloc::{alloc_zeroed, GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Halt;
use crate::watch::Check;

/// A vector that grows, or fails.
pub trait Grow<T> {
    /// Make room for this many more items, or fail. Repeated growth takes linear time.
    fn grow(&mut self, more: usize) -> Result<(), Halt>;
    /// Append an item, or fail.
    fn try_push(&mut self, item: T) -> Result<(), Halt>;
    /// Append copies of items, or fail.
    fn try_extend(&mut self, items: &[T]) -> Result<(), Halt>
    where
        T: Copy;
}

impl<T> Grow<T> for Vec<T> {
    #[inline]
    fn grow(&mut self, more: usize) -> Result<(), Halt> {
        if self.capacity() - self.len() >= more {
            return Ok(());
        }
        grow_vec(self, more)
    }

    #[inline]
    fn try_push(&mut self, item: T) -> Result<(), Halt> {
        self.grow(1)?;
        self.push(item);
        Ok(())
    }

    #[inline]
    fn try_extend(&mut self, items: &[T]) -> Result<(), Halt>
    where
        T: Copy,
    {
        self.grow(items.len())?;
        self.extend_from_slice(items);
        Ok(())
    }
}

#[cold]
fn grow_vec<T>(items: &mut Vec<T>, more: usize) -> Result<(), Halt> {
    items.try_reserve(more).map_err(|_| Halt::OutOfMemory)
}

/// Add an item to a heap, or fail.
#[inline]
pub fn push_to<T: Ord>(heap: &mut BinaryHeap<T>, item: T) -> Result<(), Halt> {
    heap.try_reserve(1).map_err(|_| Halt::OutOfMemory)?;
    heap.push(item);
    Ok(())
}

/// An empty vector with room for exactly this many items.
pub fn with_room<T>(count: usize) -> Result<Vec<T>, Halt> {
    let mut items = Vec::new();
    items.try_reserve_exact(count).map_err(|_| Halt::OutOfMemory)?;
    Ok(items)
}

/// This many copies of an item.
pub fn filled<T: Copy>(item: T, count: usize, check: Check) -> Result<Vec<T>, Halt> {
    const STEP: usize = 1 << 22;
    let mut items = with_room(count)?;
    while items.len() < count {
        items.resize(count.min(items.len() + STEP), item);
        check()?;
    }
    Ok(items)
}

/// The items of an iterator that knows how many there are.
pub fn collected<T>(items: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>, Halt> {
    let mut list = with_room(items.len())?;
    list.extend(items);
    Ok(list)
}

/// A copy of some items.
pub fn copied<T: Copy>(items: &[T]) -> Result<Vec<T>, Halt> {
    collected(items.iter().copied())
}

/// Unsigned numbers.
///
/// # Safety
/// A value whose bytes are all 0 must be valid, and the type must take at least one byte.
pub unsafe trait Number: Copy {}
// SAFETY: if all bytes are 0, this is the number 0.
unsafe impl Number for u8 {}
// SAFETY: as above.
unsafe impl Number for u16 {}
// SAFETY: as above.
unsafe impl Number for u32 {}
// SAFETY: as above.
unsafe impl Number for u64 {}

/// This many zeros. Those that are never written take no memory.
pub fn zeros<N: Number>(count: usize) -> Result<Vec<N>, Halt> {
    let layout = Layout::array::<N>(count).map_err(|_| Halt::OutOfMemory)?;
    if count == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the layout is not empty; the vector gets memory of the size and alignment that it would ask for itself,
    // from the allocator to which it returns it, and zeros are valid numbers.
    unsafe {
        let memory = alloc_zeroed(layout);
        if memory.is_null() {
            return Err(Halt::OutOfMemory);
        }
        Ok(Vec::from_raw_parts(memory.cast(), count, count))
    }
}

/// A large array of one value, of a size that does not depend on the input.
pub fn boxed<T: Copy, const N: usize>(value: T) -> Box<[T; N]> {
    // `Box::new` of a large array would build it on the stack first.
    match vec![value; N].into_boxed_slice().try_into() {
        Ok(array) => array,
        Err(_) => unreachable!("the vector was made with N elements"),
    }
}

/// Check that this many bytes are available now. Called before work that makes many small allocations, if their sum is
/// roughly known.
pub fn probe(bytes: usize) -> Result<(), Halt> {
    // (Compilers may remove an allocation that nobody uses, and assume that it would have succeeded.)
    with_room::<u8>(bytes).map(|memory| drop(std::hint::black_box(memory)))
}

/// How many bytes the reserve has.
const RESERVE: usize = 1 << 21;
/// The most of them that one request gets.
const PART: usize = 1 << 18;

/// The system's memory, and a reserve for small requests when the system has none left. The reserve allows a process
/// that runs out of memory to end its work in an orderly manner.
///
/// The reserve consists of pages that take no memory until they are used. Its parts are handed out one after the other.
/// When all of them have been returned, it starts from the beginning again.
pub struct Allocator {
    reserve: Reserve,
    /// In the upper half, how many parts are in use; in the lower half, where the free part begins.
    state: AtomicU64,
}

#[repr(align(64))]
struct Reserve(UnsafeCell<[u8; RESERVE]>);

// SAFETY: `state` hands out the parts of the reserve. It changes in one atomic step, so no part is handed out twice.
unsafe impl Sync for Allocator {}

const ONE: u64 = 1 << 32;

impl Allocator {
    /// An allocator with a full reserve.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Allocator {
        Allocator { reserve: Reserve(UnsafeCell::new([0; RESERVE])), state: AtomicU64::new(0) }
    }

    fn begin(&self) -> usize {
        self.reserve.0.get() as usize
    }

    /// Whether this memory is from the reserve.
    #[inline]
    fn owns(&self, memory: *mut u8) -> bool {
        (memory as usize).wrapping_sub(self.begin()) < RESERVE
    }

    /// A part of the reserve; null if it does not have enough left.
    #[cold]
    fn part(&self, layout: Layout) -> *mut u8 {
        if layout.size() > PART || layout.align() > 64 {
            return std::ptr::null_mut();
        }
        let mut at = 0;
        let taken = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
            at = (state % ONE).next_multiple_of(layout.align() as u64);
            let end = at + layout.size() as u64;
            (end <= RESERVE as u64).then_some((state / ONE + 1) * ONE + end)
        });
        match taken {
            Ok(_) => self.reserve.0.get().cast::<u8>().wrapping_add(at as usize),
            Err(_) => std::ptr::null_mut(),
        }
    }

    /// Return a part.
    #[cold]
    fn give_back(&self) {
        let _ = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
            let left = state - ONE;
            Some(if left < ONE { 0 } else { left })
        });
    }
}

// SAFETY: memory is the system's, or a part of the reserve that nobody else has, with the size and alignment of the
// layout.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises, here and below.
        let memory = unsafe { System.alloc(layout) };
        if memory.is_null() {
            return self.part(layout);
        }
        memory
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises; a part is as long as the layout.
        unsafe {
            let memory = System.alloc_zeroed(layout);
            if !memory.is_null() {
                return memory;
            }
            let part = self.part(layout);
            if !part.is_null() {
                part.write_bytes(0, layout.size());
            }
            part
        }
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if self.owns(memory) {
            self.give_back();
        } else {
            // SAFETY: it is the system's.
            unsafe { System.dealloc(memory, layout) };
        }
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises; both pieces of memory are at least as long as what is copied.
        unsafe {
            if !self.owns(memory) {
                let new = System.realloc(memory, layout, size);
                if !new.is_null() {
                    return new;
                }
            }
            let Ok(new_layout) = Layout::from_size_align(size, layout.align()) else { return std::ptr::null_mut() };
            let new = if self.owns(memory) { self.alloc(new_layout) } else { self.part(new_layout) };
            if !new.is_null() {
                new.copy_from_nonoverlapping(memory, size.min(layout.size()));
                self.dealloc(memory, layout);
            }
            new
        }
    }
}

// --- Prefetching ---------------------------------------------------------------------------------

/// Tell the processor that this memory will be read soon. The program cannot see any effect of this.
#[inline(always)]
pub fn prefetch<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no effect that the program can see, and does nothing if the address is bad.
    unsafe {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        _mm_prefetch::<_MM_HINT_T0>(place.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;
    use crate::watch::NO_CHECK;

    #[test]
    fn what_cannot_be_had_is_an_error() {
        let many = isize::MAX as usize / 8 - 1;
        // (With 32 bits, `many` items are only half of the address space, so the other half is taken first.)
        let mut held: Vec<u8> = Vec::new();
        let _ = held.try_reserve_exact(if cfg!(target_pointer_width = "32") { isize::MAX as usize } else { 0 });
        let mut items: Vec<u64> = vec![1];
        assert_eq!(items.grow(many), Err(Halt::OutOfMemory));
        assert_eq!(items.grow(usize::MAX), Err(Halt::OutOfMemory));
        // (`black_box` is needed because release builds do not allocate memory that nobody uses.)
        assert_eq!(black_box(zeros::<u64>(many)).err(), Some(Halt::OutOfMemory));
        assert_eq!(black_box(zeros::<u64>(usize::MAX)).err(), Some(Halt::OutOfMemory));
        assert_eq!(probe(isize::MAX as usize - 100), Err(Halt::OutOfMemory));
        assert_eq!(black_box(filled(0u64, many, NO_CHECK)).err(), Some(Halt::OutOfMemory));
        assert_eq!((items.grow(5), items.as_slice()), (Ok(()), &[1][..]));
        assert_eq!(zeros(3), Ok(vec![0u64; 3]));
        assert_eq!(zeros(5), Ok(vec![0u8; 5]));
        assert_eq!(filled(7u8, 3, NO_CHECK), Ok(vec![7; 3]));
        assert_eq!(filled(7u8, 3, &|| Err(Halt::Stopped)), Err(Halt::Stopped));
        black_box(held);
    }

    #[test]
    fn the_reserve_begins_anew_when_all_is_given_back() {
        static ALLOCATOR: Allocator = Allocator::new();
        let allocator = &ALLOCATOR;
        let layout = |size| Layout::from_size_align(size, 16).unwrap();
        // SAFETY: memory is returned with the layout that it was requested with.
        unsafe {
            for _ in 0..3 {
                let mut parts = Vec::new();
                while let Some(part) = Some(allocator.part(layout(PART - 1))).filter(|part| !part.is_null()) {
                    assert!(part as usize % 16 == 0 && allocator.owns(part));
                    part.write_bytes(parts.len() as u8, PART - 1);
                    parts.push(part);
                }
                assert_eq!(parts.len(), RESERVE / PART);
                assert!((0..).zip(&parts).all(|(i, part)| *part.add(PART - 2) == i));
                parts.into_iter().for_each(|part| allocator.dealloc(part, layout(PART - 1)));
            }
            assert!(allocator.part(layout(PART + 1)).is_null());
            // The content of a part moves to the system's memory when it grows.
            let part = allocator.part(layout(100));
            part.write_bytes(9, 100);
            let moved = allocator.realloc(part, layout(100), 300);
            assert!(!allocator.owns(moved) && *moved.add(99) == 9);
            assert_eq!(allocator.state.load(Ordering::Relaxed), 0);
            let again = allocator.realloc(moved, layout(300), 50);
            allocator.dealloc(again, layout(50));
        }
    }
}
