//! What can go wrong in this crate. The binding turns each error into one Python exception.

use std::fmt;

/// Why an operation failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The model is not valid.
    InvalidModel(&'static str),
    /// A list of keys for a finder contains an empty key, or too many keys.
    InvalidKeys,
    /// The monitor of the work asked to stop.
    Stopped,
    /// A word was counted 2**63 times or more.
    CountOverflow,
    /// All words together, with their repetitions, have 2**63 bytes or more.
    BytesOverflow,
    /// The different words hold more characters than training can number.
    TextTooLong,
    /// Columns of words do not fit together, or are not UTF-8.
    InvalidWords,
    /// Compiled normalization rules are malformed.
    InvalidCharsmap,
    /// The id at this position is outside the vocabulary.
    UnknownId(usize),
    /// A pattern that splits texts is not valid, for this reason.
    InvalidPattern(Box<str>),
    /// A pattern could not split a text, for this reason.
    SplitFailed(Box<str>),
    /// A chunk that a pattern makes has 4 GiB or more.
    ChunkTooLong,
    /// There is not enough memory.
    OutOfMemory,
}

/// Why valid work was stopped. Hot loops return this because it takes one byte; an `Error` takes three words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halt {
    /// The work was asked to stop.
    Stopped,
    /// There is not enough memory for the work.
    OutOfMemory,
    /// A pattern could not split a text.
    SplitFailed,
    /// A chunk that a pattern makes has 4 GiB or more.
    ChunkTooLong,
}

impl From<Halt> for Error {
    fn from(halt: Halt) -> Error {
        match halt {
            Halt::Stopped => Error::Stopped,
            Halt::OutOfMemory => Error::OutOfMemory,
            Halt::SplitFailed => Error::SplitFailed("it takes too many steps".into()),
            Halt::ChunkTooLong => Error::ChunkTooLong,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::InvalidModel(reason) => write!(f, "not a valid BPE model: {reason}"),
            Error::InvalidKeys => f.write_str("a key of a finder is empty, or there are more keys than it can hold"),
            Error::Stopped => f.write_str("stopped on request"),
            Error::CountOverflow => f.write_str("a word was counted 2**63 times or more"),
            Error::BytesOverflow => f.write_str("the bytes of text, repetitions included, are 2**63 or more"),
            Error::TextTooLong => f.write_str(
                "the different words hold more than 2**32 characters for each thread; use more threads, or less text",
            ),
            Error::InvalidWords => {
                f.write_str("these are not words: the columns do not fit together, or a word is not UTF-8")
            }
            Error::InvalidCharsmap => f.write_str("the normalization rules are malformed"),
            Error::UnknownId(position) => write!(f, "the id at position {position} is outside the vocabulary"),
            Error::InvalidPattern(reason) => write!(f, "not a valid pattern to split text with: {reason}"),
            Error::SplitFailed(reason) => write!(
                f,
                "the pattern cannot split this text ({reason}); a pattern with possessive quantifiers, such as \\s++, \
                 needs fewer steps"
            ),
            Error::ChunkTooLong => {
                f.write_str("the pattern makes a chunk of 4 GiB or more of this text; give the text in smaller parts")
            }
            Error::OutOfMemory => {
                f.write_str("there is not enough memory for this much text at once; give it in smaller parts")
            }
        }
    }
}

impl std::error::Error for Error {}
