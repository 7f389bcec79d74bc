//! What can go wrong in this crate. The binding turns each into one Python exception.

use std::fmt;

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The model breaks a rule of the format.
    InvalidModel(&'static str),
    /// A list of keys for a finder holds an empty one, or too many.
    InvalidKeys,
    /// Whoever watches the work asked for its end.
    Stopped,
    /// A count reached 2**63.
    CountOverflow,
    /// The text does not fit into memory in the form in which it is merged.
    TextTooLong,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::InvalidModel(reason) => write!(f, "not a valid BPE model: {reason}"),
            Error::InvalidKeys => f.write_str("a key of a finder is empty, or there are more keys than it can hold"),
            Error::Stopped => f.write_str("stopped on request"),
            Error::CountOverflow => f.write_str("a count reached 2**63"),
            Error::TextTooLong => f.write_str("the text is too long to be merged in memory"),
        }
    }
}

impl std::error::Error for Error {}
