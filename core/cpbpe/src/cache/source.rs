//! Where the ids of singles come from, which are written between those of words.

use crate::cache::key::Singles;

/// The singles of a batch.
pub trait Source: Copy {
    /// Write the ids of the singles before a word. Returns where they end.
    ///
    /// # Safety
    /// The singles, and `STEP` more, must be in the source. There must be room for their ids, and for `STEP` more.
    unsafe fn write(self, singles: Singles, end: *mut u32) -> *mut u32;
    /// The id of the last of these, if it may be one that fuses with another one.
    fn last(self, singles: Singles) -> Option<u32>;
}

/// How many are written more than there are, at most, and how many at once.
pub const STEP: usize = 32;
/// How many bytes are written at first, which are enough for most words.
pub const FEW: usize = 8;
/// The same for characters, of which more are between two words: 1.01 to 1.04 times as fast as eight.
pub const SOME: usize = STEP;

/// Singles that are bytes of a text.
#[derive(Clone, Copy)]
pub struct Bytes<'a> {
    /// The text, from where the batch begins.
    pub text: &'a [u8],
    /// The id of each.
    pub ids: &'a [u32; 256],
}

impl Source for Bytes<'_> {
    #[inline(always)]
    unsafe fn write(self, singles: Singles, end: *mut u32) -> *mut u32 {
        let (at, count) = (singles.at(), singles.count());
        let mut i = 0;
        // Most words have none, a quarter one. Writing two anyway takes fewer steps than to find out.
        loop {
            debug_assert!(at + i + 2 <= self.text.len());
            // SAFETY: as the caller says.
            unsafe {
                let [a, b] = self.text.as_ptr().add(at + i).cast::<[u8; 2]>().read();
                let ids = [self.ids[usize::from(a)], self.ids[usize::from(b)]];
                end.wrapping_add(i).cast::<[u32; 2]>().write_unaligned(ids);
            }
            i += 2;
            if i >= count {
                return end.wrapping_add(count);
            }
        }
    }

    fn last(self, _: Singles) -> Option<u32> {
        None
    }
}

/// Singles of which the ids are known: characters, or bytes, if there are vector instructions, which make the ids of all
/// bytes of a batch together. (1.04 to 1.09 times as fast as `Bytes`, 1.2 times for hexadecimal numbers.) `FIRST` are
/// written at first.
#[derive(Clone, Copy)]
pub struct Ids<'a, const FIRST: usize>(pub &'a [u32]);

impl<const FIRST: usize> Source for Ids<'_, FIRST> {
    #[inline(always)]
    unsafe fn write(self, singles: Singles, end: *mut u32) -> *mut u32 {
        const { assert!(FIRST <= STEP) };
        let (at, count) = (singles.at(), singles.count());
        debug_assert!(at + count + STEP <= self.0.len());
        let (from, end_of_all) = (self.0.as_ptr().wrapping_add(at), end.wrapping_add(count));
        // SAFETY: as the caller says.
        unsafe {
            end.cast::<[u32; FIRST]>().write_unaligned(from.cast::<[u32; FIRST]>().read_unaligned());
            let mut i = FIRST;
            while i < count {
                let ids = from.add(i).cast::<[u32; STEP]>().read_unaligned();
                end.add(i).cast::<[u32; STEP]>().write_unaligned(ids);
                i += STEP;
            }
        }
        end_of_all
    }

    fn last(self, singles: Singles) -> Option<u32> {
        self.0[singles.at()..][..singles.count()].last().copied()
    }
}
