//! Any pattern, by the crate `fancy-regex`, as in tiktoken.

use fancy_regex::{Matches, Regex};

use crate::error::Error;

/// Compile a pattern.
pub fn compile(pattern: &str) -> Result<Regex, Error> {
    Regex::new(pattern).map_err(|error| Error::InvalidPattern(error.to_string().into()))
}

/// Where the next match begins and ends. Text between matches is in no chunk, as in tiktoken; and empty matches, which
/// have no tokens, are left out.
pub fn next_match(matches: &mut Matches<'_, '_, str>) -> Result<Option<[usize; 2]>, Error> {
    for found in matches {
        // A pattern may need more steps than are allowed.
        let found = found.map_err(|error| Error::SplitFailed(error.to_string().into()))?;
        if !found.range().is_empty() {
            return Ok(Some([found.start(), found.end()]));
        }
    }
    Ok(None)
}
