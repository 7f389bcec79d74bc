//! Text without a model: characters, rules, keys.

pub mod charsmap;
pub mod common;
pub mod compact;
pub mod finder;
pub mod forms;
pub mod lines;
pub mod normalize;
pub mod origins;
pub mod places;
pub mod utf8;
