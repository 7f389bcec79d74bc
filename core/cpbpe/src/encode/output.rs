//! Where ids go: into a vector, or nowhere, when they are only counted.

use crate::cache::{Cache, KnownWords, Singles, Source, STEP};
use crate::error::Halt;
use crate::memory::Grow;
use crate::merge::Sink;
use crate::text::utf8;
use crate::vocab::{Vocab, NONE};

/// Takes the ids of a text in their order.
pub trait Output {
    /// A state to which the output can be reset.
    type Mark;

    /// Make room for this many more ids, and for a few more that are written and overwritten again.
    fn reserve_ids(&mut self, count: usize) -> Result<(), Halt>;
    /// Take some ids.
    fn append(&mut self, ids: &[u32]) -> Result<(), Halt>;
    /// Take the ids of words and of the singles before each, up to the first word that is absent or must be compared.
    /// Returns how many words were taken.
    ///
    /// # Safety
    /// `reserve_ids` must have made room for all their ids, and for `ROOM + STEP` more. The text must be as `append_many` needs
    /// it.
    unsafe fn append_cached<S: Source>(&mut self, cache: &Cache, found: KnownWords<S>) -> usize;
    /// Take the ids of some singles.
    ///
    /// # Safety
    /// As for `Source::write`. `reserve_ids` must have made room for the singles, and for as many more ids as that
    /// needs.
    unsafe fn append_singles<S: Source>(&mut self, singles: Singles, source: S);
    /// Forget the last id.
    fn drop_last(&mut self);
    /// The last id that was taken, if it may be one that fuses with an equal neighbour (see `Cache::put`).
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
        self.try_extend(ids)
    }
    #[inline(always)]
    unsafe fn append_cached<S: Source>(&mut self, cache: &Cache, found: KnownWords<S>) -> usize {
        // SAFETY: as the caller says.
        unsafe { cache.append_many(found, self) }
    }
    #[inline(always)]
    unsafe fn append_singles<S: Source>(&mut self, singles: Singles, source: S) {
        debug_assert!(self.capacity() - self.len() >= singles.count() + STEP);
        let end = self.as_mut_ptr().wrapping_add(self.len());
        // SAFETY: as the caller says. This many have been written.
        unsafe {
            source.write(singles, end);
            self.set_len(self.len() + singles.count());
        }
    }
    fn drop_last(&mut self) {
        self.pop();
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
    unsafe fn append_cached<S: Source>(&mut self, cache: &Cache, found: KnownWords<S>) -> usize {
        let (words, ids) = cache.count_many(found);
        if words > 0 {
            (self.count, self.last) = (self.count + ids, None);
        }
        words
    }
    #[inline]
    unsafe fn append_singles<S: Source>(&mut self, singles: Singles, source: S) {
        if singles.count() > 0 {
            // (Only the last single can be the UNKNOWN piece.)
            (self.count, self.last) = (self.count + singles.count(), source.last(singles));
        }
    }
    fn drop_last(&mut self) {
        (self.count, self.last) = (self.count - 1, None);
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

// --- Symbols -> ids, also of symbols that are not pieces -----------------------------------------

/// Appends the ids of symbols. An unknown one becomes its bytes, or the UNKNOWN piece.
pub struct IdSink<'a> {
    /// The vocabulary.
    pub vocab: &'a Vocab,
    /// The text that the symbols are in.
    pub text: &'a [u8],
    /// Whether it is compact.
    pub compact: bool,
    /// Where the ids are appended.
    pub out: &'a mut Vec<u32>,
}

impl Sink for IdSink<'_> {
    #[inline]
    fn make_room(&mut self, bytes: usize) -> Result<(), Halt> {
        self.out.grow(bytes.saturating_mul(self.vocab.ids_per_byte))
    }
    #[inline]
    fn symbol(&mut self, id: u32, begin: usize, end: usize) {
        if id != NONE && Some(id) != self.vocab.unk {
            self.out.push(id);
        } else if let Some(byte_ids) = &self.vocab.byte_ids {
            for &byte in &self.text[begin..end] {
                if byte == b' ' && self.compact && self.vocab.swapped {
                    self.out.extend(utf8::SPACE.iter().map(|&byte| byte_ids[usize::from(byte)]));
                } else {
                    self.out.push(byte_ids[usize::from(byte)]);
                }
            }
        } else if let Some(unk) = self.vocab.unk {
            if self.out.last() != Some(&unk) {
                self.out.push(unk); // neighbouring unknown symbols are one
            }
        }
    }
}
