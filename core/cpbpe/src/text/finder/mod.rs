//! Finding keys in text, the longest at each place. Two finders, because what is asked of them differs:
//!
//! * `Keys` tells the longest key *at one place*, for callers that walk through the text anyway: the normalizer, and
//!   segmenting, for user-defined pieces; training, for its symbols. It has sentencepiece's limit of 64 matches.
//! * `Finder` finds the next key *from a place on*, without a limit, in lists of thousands: special tokens. It passes over
//!   most of the text without looking at each place. (With a `Finder` for user-defined pieces the text would be searched
//!   a second time, and its answers would differ from sentencepiece's where that limit matters.)

mod filter;
mod keys;
mod search;

pub use keys::Keys;
pub use search::Finder;
