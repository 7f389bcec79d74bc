//! Text without a model: characters, rules, keys.

pub mod charsmap;
pub mod common;
pub mod compact;
pub mod finder;
pub mod forms;
pub mod line_changes;
pub mod lines;
pub mod normalize;
pub mod normalizer_options;
pub mod origins;
pub mod places;
pub mod utf8;
