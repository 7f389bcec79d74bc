//! The types of pieces, by their numbers in a model file.

/// Learned from text.
pub const NORMAL: u8 = 1;
/// Stands for what the vocabulary does not hold.
pub const UNKNOWN: u8 = 2;
/// A mark that is never taken from text.
pub const CONTROL: u8 = 3;
/// Always kept whole.
pub const USER_DEFINED: u8 = 4;
/// Merges, but is split again.
pub const UNUSED: u8 = 5;
/// One byte of an unknown character.
pub const BYTE: u8 = 6;

/// Whether pieces of this type are made by merging.
#[inline]
pub fn is_mergeable(kind: u8) -> bool {
    matches!(kind, NORMAL | USER_DEFINED | UNUSED)
}
