//! The result for a chunk, in one cell of the cache: up to four ids, or the place where they are kept aside.
//!
//! The ids are laid out so that two operations turn them into the four numbers of a result:
//!
//! ```text
//! bit   63 62    61 .......... 32   31 30   29 ........... 0
//!       count-1  the second ids     kind    the first ids          ids of 15 bits: 1st and 3rd, 2nd and 4th
//!                                           where they are kept    when there are more, or larger ones
//! ```
//!
//! Ids of 20 bits use the same places; a third one is split between the two halves. There is no fourth.

/// The bits of an id in a small vocabulary, and in others.
const SMALL: u32 = 15;
const LARGE: u32 = 20;
/// The most pieces of a small vocabulary.
pub const SMALL_VOCABULARY: usize = 1 << SMALL;
/// How many ids there is room for, and how many numbers `PackedIds::ids` returns.
pub const ROOM: usize = 4;
/// The lowest bits of both halves of a cell.
const BOTH: u64 = 1 << 32 | 1;
/// The bits of a half that ids can use.
const HALF: u32 = 30;
const KIND: u64 = 3 << HALF;
const ASIDE: u64 = 1 << HALF;
const COMPARE: u64 = 2 << HALF;
const COUNT: u32 = 62;

/// Such a cell.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PackedIds(pub u64);

/// The meaning of a cell that holds no ids.
pub enum NotPacked {
    /// The ids are kept aside at this place.
    Aside(usize),
    /// It may be another chunk with the same hash: its text and its ids are kept aside at this place.
    Compare(usize),
    /// The chunk is not in the cache.
    Absent,
}

impl PackedIds {
    /// The chunk is not in the cache.
    pub const ABSENT: PackedIds = PackedIds(u64::MAX);

    /// These ids, if they fit.
    pub fn of_ids(ids: &[u32], small: bool) -> Option<PackedIds> {
        let (bits, room) = if small { (SMALL, ROOM) } else { (LARGE, ROOM - 1) };
        if ids.is_empty() || ids.len() > room || ids.iter().any(|&id| id >> bits != 0) {
            return None;
        }
        let id = |i: usize| u64::from(ids.get(i).copied().unwrap_or(0));
        let rest = if small {
            (id(2) | id(3) << 32) << SMALL
        } else {
            let low = HALF - LARGE;
            (id(2) & ((1 << low) - 1) | (id(2) >> low) << 32) << LARGE
        };
        Some(PackedIds((ids.len() as u64 - 1) << COUNT | id(0) | id(1) << 32 | rest))
    }

    /// A result that is kept aside at `place`, a number of at most 30 bits, and perhaps has to be compared.
    pub fn aside(place: usize, compare: bool) -> PackedIds {
        PackedIds(place as u64 | if compare { COMPARE } else { ASIDE })
    }

    /// Whether the ids are in this cell.
    #[inline(always)]
    pub fn is_ids(self) -> bool {
        self.0 & KIND == 0
    }

    /// The meaning of the cell if they are not.
    pub fn not_packed(self) -> NotPacked {
        let place = (self.0 & (ASIDE - 1)) as usize;
        match self.0 & KIND {
            ASIDE => NotPacked::Aside(place),
            COMPARE => NotPacked::Compare(place),
            _ => NotPacked::Absent,
        }
    }

    /// How many ids there are.
    #[inline(always)]
    pub fn count(self) -> usize {
        (self.0 >> COUNT) as usize + 1
    }

    /// The ids, followed by meaningless numbers.
    #[inline(always)]
    pub fn ids<const SMALL_IDS: bool>(self) -> [u32; ROOM] {
        let bits = if SMALL_IDS { SMALL } else { LARGE };
        let mask = ((1 << bits) - 1) * BOTH;
        let first = self.0 & mask;
        if SMALL_IDS {
            let second = self.0 >> bits & mask;
            [first as u32, (first >> 32) as u32, second as u32, (second >> 32) as u32]
        } else {
            let low = HALF - LARGE;
            let mask = ((1 << low) - 1) * BOTH;
            let rest = self.0 >> LARGE & mask;
            [first as u32, (first >> 32) as u32, (rest | rest >> (32 - low)) as u32, 0]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back() {
        for small in [true, false] {
            let bits = if small { SMALL } else { LARGE };
            for i in 0..100_000u64 {
                let mix = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                let ids: Vec<u32> =
                    (0..i % 6).map(|k| (mix.rotate_left(13 * k as u32) as u32) >> (32 - bits)).collect();
                let Some(packed) = PackedIds::of_ids(&ids, small) else {
                    assert!(ids.is_empty() || ids.len() > if small { 4 } else { 3 });
                    continue;
                };
                assert!(packed.is_ids() && packed.count() == ids.len());
                let all = if small { packed.ids::<true>() } else { packed.ids::<false>() };
                assert_eq!(all[..ids.len()], ids);
            }
            assert!(PackedIds::of_ids(&[1 << bits], small).is_none());
            assert!(PackedIds::of_ids(&[(1 << bits) - 1; 3], small).is_some_and(PackedIds::is_ids));
        }
    }

    #[test]
    fn cells_without_ids_are_told_apart() {
        assert!(!PackedIds::ABSENT.is_ids() && matches!(PackedIds::ABSENT.not_packed(), NotPacked::Absent));
        assert!(matches!(PackedIds::aside(0, false).not_packed(), NotPacked::Aside(0)));
        assert!(matches!(PackedIds::aside((1 << 30) - 1, true).not_packed(), NotPacked::Compare(0x3FFF_FFFF)));
    }
}
