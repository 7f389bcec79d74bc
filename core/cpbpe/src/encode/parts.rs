//! A new chunk -> ids, if the vocabulary has user-defined pieces: part by part.

use crate::cache::{Cache, Key, MAX_CHUNK};
use crate::cut::keys::{Part, Parts};
use crate::encode::id_sink::IdSink;
use crate::error::Halt;
use crate::memory::Grow;
use crate::merge::merge_chunk;
use crate::text::utf8;
use crate::vocab::singles::Singles;
use crate::vocab::{KeyStarts, Unkeyed, Vocab};
use crate::watch::Check;

/// What a vocabulary with user-defined pieces has.
pub struct Tables<'a> {
    /// Where they begin.
    pub starts: &'a KeyStarts,
    /// What the other pieces join.
    pub unkeyed: &'a Unkeyed,
    /// The ids of single bytes.
    pub singles: &'a Singles,
}

/// Append the ids of a chunk to `out`, which is empty. Its parts are looked up, too, and those of long chunks are
/// remembered. (Short chunks come again themselves.)
pub fn append_parts(
    vocab: &Vocab,
    Tables { starts, unkeyed, singles }: Tables,
    cache: &mut Cache,
    text: &[u8],
    check: Check,
    out: &mut Vec<u32>,
) -> Result<(), Halt> {
    let fused = vocab.fused;
    for part in Parts::new(starts, unkeyed, vocab.user_defined_compact.walk(text), text, check) {
        let Part { begin, end, is_key } = part?;
        let part = &text[begin..end];
        if let (&[byte], None) = (part, &singles.odd) {
            out.grow(1)?;
            out.push(singles.ids[usize::from(byte)]);
            continue;
        }
        if is_key {
            out.grow(1)?;
            out.extend(vocab.find(part));
            continue;
        }
        // 1. Look it up. Unknown symbols on both sides of a cut are one.
        let before = out.len();
        let continues = fused.is_some() && out.last().copied() == fused;
        let looked_up = part.len() < text.len() && part.len() > utf8::length_by_first(part[0]);
        let key = if looked_up { Key::of(part) } else { Key::default() };
        if looked_up {
            out.grow(part.len() * vocab.ids_per_byte)?;
            if cache.append(cache.get(key), part, out) {
                if continues && out.get(before).copied() == fused {
                    out.remove(before);
                }
                continue;
            }
        }
        // 2. It is new.
        merge_chunk(vocab, part, check, &mut IdSink { vocab, text: part, compact: true, out })?;
        if looked_up && text.len() > MAX_CHUNK && !continues {
            cache.put_chunk(key, part, &out[before..], fused);
        }
    }
    Ok(())
}
