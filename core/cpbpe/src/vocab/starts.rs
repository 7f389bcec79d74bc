//! Where user-defined pieces may begin.

use crate::memory::boxed;
use crate::text::finder::Keys;

/// Which two bytes a user-defined piece may begin with, as `cut/keys.rs` needs it.
pub struct KeyStarts {
    /// For the bytes `x y`, at `x | y << 8`: 1 if one may begin with them, or consists of `x` alone.
    pub pairs: Box<[u8; 1 << 16]>,
}

impl KeyStarts {
    /// `None` if there are no user-defined pieces.
    pub fn new(user_defined: &Keys) -> Option<KeyStarts> {
        if user_defined.is_empty() {
            return None;
        }
        let mut starts = KeyStarts { pairs: boxed(0) };
        for (first, second) in user_defined.first_pairs() {
            starts.pairs[usize::from(first) | usize::from(second) << 8] = 1;
        }
        Some(starts)
    }
}
