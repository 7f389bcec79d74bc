//! Where ids go: into a vector, or nowhere, when they are only counted.

use crate::cache::{Cache, PackedIds};
use crate::error::Halt;
use crate::memory::Grow;

/// Takes the ids of a text in their order.
pub trait Output {
    /// A state that can be returned to.
    type Mark;

    /// Make room for this many ids more, and for a few that are written and then overwritten.
    fn reserve_ids(&mut self, count: usize) -> Result<(), Halt>;
    /// Take some ids.
    fn append(&mut self, ids: &[u32]) -> Result<(), Halt>;
    /// Take the ids of chunks, up to the first that is absent or must be compared. Returns how many chunks were taken.
    ///
    /// # Safety
    /// `reserve_ids` must have made room for all their ids.
    unsafe fn append_cached(&mut self, cache: &Cache, entries: &[PackedIds]) -> usize;
    /// The id that was taken by the last `append`, if `append_cached` was not called since.
    fn last_id(&self) -> Option<u32>;
    /// The state at this moment.
    fn mark(&self) -> Self::Mark;
    /// Forget what was taken since.
    fn reset(&mut self, mark: Self::Mark);
}

impl Output for Vec<u32> {
    type Mark = usize;

    #[inline]
    fn reserve_ids(&mut self, count: usize) -> Result<(), Halt> {
        self.grow(count)
    }
    #[inline]
    fn append(&mut self, ids: &[u32]) -> Result<(), Halt> {
        self.grow(ids.len())?;
        self.extend_from_slice(ids);
        Ok(())
    }
    #[inline(always)]
    unsafe fn append_cached(&mut self, cache: &Cache, entries: &[PackedIds]) -> usize {
        // SAFETY: as the caller says.
        unsafe { cache.append_many(entries, self) }
    }
    #[inline]
    fn last_id(&self) -> Option<u32> {
        self.last().copied()
    }
    #[inline]
    fn mark(&self) -> usize {
        self.len()
    }
    #[inline]
    fn reset(&mut self, mark: usize) {
        self.truncate(mark);
    }
}

/// Counts ids without keeping them, which takes no memory and less time.
#[derive(Clone, Copy, Default)]
pub struct Count {
    /// How many ids there were.
    pub count: usize,
    last: Option<u32>,
}

impl Output for Count {
    type Mark = Count;

    #[inline]
    fn reserve_ids(&mut self, _: usize) -> Result<(), Halt> {
        Ok(())
    }
    #[inline]
    fn append(&mut self, ids: &[u32]) -> Result<(), Halt> {
        self.count += ids.len();
        self.last = ids.last().copied().or(self.last);
        Ok(())
    }
    #[inline(always)]
    unsafe fn append_cached(&mut self, cache: &Cache, entries: &[PackedIds]) -> usize {
        let (chunks, ids) = cache.count_many(entries);
        self.count += ids;
        chunks
    }
    #[inline]
    fn last_id(&self) -> Option<u32> {
        self.last
    }
    #[inline]
    fn mark(&self) -> Count {
        *self
    }
    #[inline]
    fn reset(&mut self, mark: Count) {
        *self = mark;
    }
}
