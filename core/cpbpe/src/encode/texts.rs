//! Many texts: a list of them, or slices of one piece of memory, as columns of tables have them.

use std::ops::Range;

use crate::encode::engine::Input;

/// Many texts that any thread may ask for.
///
/// (A list of what the slices of a column are takes 24 bytes for each, a third of what short texts themselves take.)
pub trait Texts: Sync {
    /// How many there are.
    fn count(&self) -> usize;
    /// The text with this index, and whether it is known to be UTF-8.
    fn at(&self, index: usize) -> Input<'_>;
}

impl Texts for [Input<'_>] {
    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn at(&self, index: usize) -> Input<'_> {
        self[index]
    }
}

impl Texts for Vec<Input<'_>> {
    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn at(&self, index: usize) -> Input<'_> {
        self[index]
    }
}

/// A place in memory: Arrow has them in 32 bits and in 64.
pub trait Offset: Copy + Sync {
    /// The same number; `None` if it is negative, or if there is no such place.
    fn place(self) -> Option<usize>;
}

impl Offset for i32 {
    fn place(self) -> Option<usize> {
        usize::try_from(self).ok()
    }
}

impl Offset for i64 {
    fn place(self) -> Option<usize> {
        usize::try_from(self).ok()
    }
}

/// Slices of one piece of memory. They are not known to be UTF-8.
pub struct Slices<'a, T> {
    data: &'a [u8],
    begins: &'a [T],
    ends: &'a [T],
}

impl<'a, T: Offset> Slices<'a, T> {
    /// Slices with these begins and ends; `None` if one of them is not within the memory.
    ///
    /// ```
    /// use cpbpe::{Slices, Texts};
    /// let slices = Slices::new(b"Hi you", &[0i32, 3, 3], &[2, 3, 6]).unwrap();
    /// assert_eq!((slices.count(), slices.at(0).0, slices.at(1).0, slices.at(2).0), (3, &b"Hi"[..], &b""[..], &b"you"[..]));
    /// assert!(Slices::new(b"Hi", &[0i64], &[3]).is_none() && Slices::new(b"Hi", &[2i64], &[1]).is_none());
    /// assert!(Slices::new(b"Hi", &[-1i64], &[1]).is_none() && Slices::new(b"Hi", &[0i64], &[]).is_none());
    /// ```
    pub fn new(data: &'a [u8], begins: &'a [T], ends: &'a [T]) -> Option<Slices<'a, T>> {
        let within = |(begin, end): (&T, &T)| {
            let (begin, end) = (begin.place(), end.place());
            begin.is_some() && begin <= end && end <= Some(data.len())
        };
        let all = begins.len() == ends.len() && begins.iter().zip(ends).all(within);
        all.then_some(Slices { data, begins, ends })
    }
}

impl<T: Offset> Texts for Slices<'_, T> {
    fn count(&self) -> usize {
        self.begins.len()
    }

    #[inline]
    fn at(&self, index: usize) -> Input<'_> {
        let place = |places: &[T]| places[index].place().unwrap_or(0);
        (&self.data[place(self.begins)..place(self.ends)], false)
    }
}

/// How many bytes texts have.
pub fn size(texts: &(impl Texts + ?Sized)) -> usize {
    size_of(texts, 0..texts.count())
}

/// How many bytes some of them have.
pub fn size_of(texts: &(impl Texts + ?Sized), some: Range<usize>) -> usize {
    some.map(|index| texts.at(index).0.len()).sum()
}
