//! The types of pieces, by their numbers in a model file.

/// Learned from text.
pub const NORMAL: u8 = 1;
/// Stands for anything that the vocabulary does not contain.
pub const UNKNOWN: u8 = 2;
/// A mark that text never yields.
pub const CONTROL: u8 = 3;
/// Always one symbol, never merged or split.
pub const USER_DEFINED: u8 = 4;
/// Merges, but is split again afterwards.
pub const UNUSED: u8 = 5;
/// One byte of an unknown character.
pub const BYTE: u8 = 6;

/// Whether merging makes pieces of this type.
#[inline]
pub fn is_mergeable(kind: u8) -> bool {
    matches!(kind, NORMAL | USER_DEFINED | UNUSED)
}
