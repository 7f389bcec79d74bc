//! Where a text can be cut: during encoding, and when more of it is still to come.

pub mod by_character;
#[cfg(target_arch = "x86_64")]
mod by_mask;
pub mod chunks;
pub mod keys;
pub mod last_cut;
pub mod words;
