//! The ids of a text between others, such as bos and eos.

use crate::encode::encoder::Scratch;
use crate::encode::engine::Engine;
use crate::error::Halt;
use crate::memory::Grow;
use crate::watch::Check;

/// What is put around the ids of a text. To put it there while the ids are still in a vector costs nothing; to make a
/// second list of them took longer than to encode a short text.
#[derive(Clone, Copy, Default)]
pub struct Ends {
    /// The id in front. Not the UNKNOWN piece's: unknown text after it would be part of the same token.
    pub front: Option<u32>,
    /// The id at the end.
    pub back: Option<u32>,
    /// Whether the order of the ids between these is reversed.
    pub reverse: bool,
}

impl Engine {
    /// Append the ids of a text to `ids`, with what goes around them. Uses `scratch`, and what it is done with is empty.
    #[inline]
    pub(crate) fn append_between(
        &self,
        text: &[u8],
        valid: bool,
        ends: Ends,
        check: Check,
        scratch: &mut Scratch,
        ids: &mut Vec<u32>,
    ) -> Result<(), Halt> {
        if self.vocab.fused.is_some() {
            // An unknown symbol must not become one with that of the text before.
            self.encode_between(text, valid, ends, check, scratch)?;
            ids.grow(scratch.ids.len())?;
            ids.extend_from_slice(&scratch.ids);
            return Ok(());
        }
        let begin = ids.len() + usize::from(ends.front.is_some());
        ids.grow(2)?;
        ids.extend(ends.front);
        self.encode_to(text, valid, check, &mut scratch.buffers, ids)?;
        if ends.reverse {
            ids[begin..].reverse();
        }
        if let Some(back) = ends.back {
            ids.grow(1)?;
            ids.push(back);
        }
        Ok(())
    }

    /// Leave the ids of a text in `scratch.ids`, with what goes around them.
    #[inline]
    pub fn encode_between(
        &self,
        text: &[u8],
        valid: bool,
        ends: Ends,
        check: Check,
        scratch: &mut Scratch,
    ) -> Result<(), Halt> {
        scratch.ids.clear();
        scratch.ids.extend(ends.front);
        self.encode(text, valid, check, scratch)?;
        if ends.reverse {
            scratch.ids[usize::from(ends.front.is_some())..].reverse();
        }
        if let Some(back) = ends.back {
            scratch.ids.grow(1)?;
            scratch.ids.push(back);
        }
        Ok(())
    }
}
