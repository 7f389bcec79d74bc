//! Where a text can be cut: during encoding, and when more of it is still to come.

pub mod by_character;
pub mod by_pattern;
pub mod keys;
pub mod last_cut;
pub mod words;
