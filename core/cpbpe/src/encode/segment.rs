//! Normalized text -> ids: the way to segment a text is chosen here, once.

use crate::encode::encoder::{encode_compact, Buffers};
use crate::encode::id_sink::IdSink;
use crate::encode::output::Output;
use crate::encode::split::encode_split;
use crate::error::Halt;
use crate::merge::{merge_whole, RawLookup, Sink};
use crate::text::finder::Keys;
use crate::vocab::{ByteLevel, Joinable, Vocab};
use crate::watch::Check;

/// How a normalized text is segmented. It is decided once for each text, by `Way::of`.
#[derive(Clone, Copy)]
pub enum Way<'a> {
    /// Cut into chunks, some of which are user-defined pieces. The text is compact.
    Chunks(&'a Joinable),
    /// Cut by the pattern of a byte-level vocabulary.
    Split(&'a ByteLevel),
    /// All at once: a text that is not UTF-8 (then it is not compact), or one of a vocabulary with pieces that are not.
    Whole {
        /// Whether the text is compact.
        compact: bool,
    },
}

impl<'a> Way<'a> {
    /// The way for a text that is compact or not.
    pub fn of(vocab: &'a Vocab, compact: bool) -> Way<'a> {
        match (&vocab.joinable, &vocab.byte_level) {
            (_, Some(byte_level)) => Way::Split(byte_level),
            (Some(joinable), None) if compact => Way::Chunks(joinable),
            _ => Way::Whole { compact },
        }
    }

    /// Whether the text is compact.
    pub fn is_compact(self) -> bool {
        !matches!(self, Way::Whole { compact: false })
    }
}

/// Encode a normalized text.
pub fn encode_normalized<O: Output>(
    vocab: &Vocab,
    way: Way,
    text: &[u8],
    check: Check,
    buffers: &mut Buffers,
    out: &mut O,
) -> Result<(), Halt> {
    match way {
        Way::Chunks(joinable) => {
            let compact = encode_compact(vocab, joinable, text, false, check, buffers, out)?;
            debug_assert!(compact);
            Ok(())
        }
        Way::Split(byte_level) => encode_split(vocab, byte_level, text, check, buffers, out),
        Way::Whole { compact } => {
            let ids = &mut buffers.chunk;
            ids.clear();
            encode_whole(vocab, text, compact, check, ids)?;
            out.append(ids)
        }
    }
}

/// Encode a text without cutting it, and append its ids to `out`.
pub fn encode_whole(vocab: &Vocab, text: &[u8], compact: bool, check: Check, out: &mut Vec<u32>) -> Result<(), Halt> {
    let mut sink = IdSink { vocab, text, compact, out };
    segment_whole(vocab, text, compact, |_, _, _| true, check, &mut sink)
}

/// Merge a text that cannot be cut. `keep` is asked before each merge, see `merge_whole`.
pub fn segment_whole<S: Sink>(
    vocab: &Vocab,
    text: &[u8],
    compact: bool,
    keep: impl Fn(usize, usize, usize) -> bool,
    check: Check,
    sink: &mut S,
) -> Result<(), Halt> {
    let mut keys = user_defined(vocab, compact).walk(text);
    if compact {
        merge_whole(&vocab, text, |at| keys.longest(at), keep, check, sink)
    } else {
        merge_whole(&RawLookup(vocab), text, |at| keys.longest(at), keep, check, sink)
    }
}

/// The user-defined pieces as they are spelled in a text.
pub fn user_defined(vocab: &Vocab, compact: bool) -> &Keys {
    if compact {
        &vocab.user_defined_compact
    } else {
        &vocab.user_defined
    }
}
