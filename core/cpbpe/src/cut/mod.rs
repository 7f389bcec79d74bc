//! Where a text can be cut: in the middle of encoding, and when more of it is still to come.

pub mod chunks;
pub mod keys;
pub mod last_cut;
