//! Normalized text -> ids: the way to segment a text is chosen here, once.

use crate::encode::encoder::{encode_compact, Buffers};
use crate::encode::id_sink::IdSink;
use crate::encode::output::Output;
use crate::error::Halt;
use crate::merge::{merge_whole, RawLookup, Sink};
use crate::text::finder::Keys;
use crate::vocab::{Joinable, Vocab};
use crate::watch::Check;

/// Whether to go on is checked once in this many bytes.
const CHECK_BYTES: usize = 1 << 14;

/// How a normalized text is segmented. It is decided once for each text, by `Way::of`.
#[derive(Clone, Copy)]
pub enum Way<'a> {
    /// Cut into chunks. The text is compact.
    Chunks(&'a Joinable),
    /// The same between user-defined pieces.
    ChunksBetweenKeys(&'a Joinable, &'a Keys),
    /// All at once: a text that is not UTF-8 (then it is not compact), or one of a vocabulary with UNUSED pieces.
    Whole {
        /// Whether the text is compact.
        compact: bool,
    },
}

impl<'a> Way<'a> {
    /// The way for a text of which it is known whether it is compact.
    pub fn of(vocab: &'a Vocab, compact: bool) -> Way<'a> {
        match &vocab.joinable {
            Some(joinable) if compact && vocab.user_defined.is_empty() => Way::Chunks(joinable),
            Some(joinable) if compact => Way::ChunksBetweenKeys(joinable, &vocab.user_defined_compact),
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
        Way::ChunksBetweenKeys(joinable, keys) => encode_between_keys(vocab, joinable, keys, text, check, buffers, out),
        Way::Whole { compact } => {
            let ids = &mut buffers.chunk;
            ids.clear();
            encode_whole(vocab, text, compact, check, ids)?;
            out.append(ids)
        }
    }
}

/// Encode a compact text that is valid UTF-8, with all its user-defined pieces.
fn encode_between_keys<O: Output>(
    vocab: &Vocab,
    joinable: &Joinable,
    keys: &Keys,
    text: &[u8],
    check: Check,
    buffers: &mut Buffers,
    out: &mut O,
) -> Result<(), Halt> {
    let (mut at, mut done) = (0, 0);
    let mut next_check = CHECK_BYTES;
    while at < text.len() {
        if at >= next_check {
            check()?;
            next_check = at + CHECK_BYTES;
        }
        let length = keys.longest(text, at);
        if length == 0 {
            at += 1; // a key begins with the first byte of a character, so no other place is ever taken for one
            continue;
        }
        let compact = encode_compact(vocab, joinable, &text[done..at], false, check, buffers, out)?;
        debug_assert!(compact);
        if let Some(id) = vocab.find(&text[at..at + length]) {
            out.append(&[id])?;
        }
        at += length;
        done = at;
    }
    if done < text.len() {
        let compact = encode_compact(vocab, joinable, &text[done..], false, check, buffers, out)?;
        debug_assert!(compact);
    }
    Ok(())
}

/// Encode a text that cannot be cut into `out`: one that is not UTF-8 (then not `compact`), or of a vocabulary
/// with UNUSED pieces.
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
    let keys = user_defined(vocab, compact);
    if compact {
        merge_whole(&vocab, text, |at| keys.longest(text, at), keep, check, sink)
    } else {
        merge_whole(&RawLookup(vocab), text, |at| keys.longest(text, at), keep, check, sink)
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
