//! One long text, encoded by several threads.

use crate::cut::chunks;
use crate::encode::encoder::{encode_compact, Scratch};
use crate::encode::engine::Engine;
use crate::encode::segment::{encode_normalized, Way};
use crate::encode::split::encode_split;
use crate::error::Halt;
use crate::memory::Grow;
use crate::text::utf8;
use crate::vocab::{ByteLevel, Joinable};
use crate::watch::{in_parts, Check};

/// A part shorter than this is not worth a thread.
const MIN_PART: usize = 1 << 16;

impl Engine {
    /// The ids of one long text, by several threads, each with a part that begins and ends where nothing can merge.
    pub fn encode_parallel(&self, text: &[u8], valid: bool, threads: usize, check: Check) -> Result<Vec<u32>, Halt> {
        if text.len() / MIN_PART >= 2 && threads >= 2 {
            if let Some(joinable) = &self.vocab.joinable {
                return self.encode_long(text, valid, joinable, threads, check);
            }
            if let Some(byte_level) = &self.vocab.byte_level {
                return self.encode_long_split(text, valid, byte_level, threads, check);
            }
        }
        self.with_scratch(|scratch| {
            self.encode(text, valid, check, scratch)?;
            Ok(std::mem::take(&mut scratch.ids))
        })?
    }

    fn encode_long(
        &self,
        text: &[u8],
        valid: bool,
        joinable: &Joinable,
        threads: usize,
        check: Check,
    ) -> Result<Vec<u32>, Halt> {
        // 1. The text, compact. Normalizing takes a tenth of the time, and is not shared among the threads.
        let vocab = &self.vocab;
        let mut normalized = Vec::new();
        let (compact, prefix) = if self.is_plain(text, valid) && memchr::memmem::find(text, utf8::SPACE).is_none() {
            (text, self.normalizer.prefixes(text))
        } else {
            let way = self.normalized((text, valid), check, &mut normalized, &mut ())?;
            if let Way::Whole { .. } = way {
                return self.with_scratch(|scratch| {
                    let Scratch { buffers, ids } = scratch;
                    encode_normalized(vocab, way, &normalized, check, buffers, ids)?;
                    Ok(std::mem::take(ids))
                })?;
            }
            (normalized.as_slice(), false)
        };
        // 2. Each part by a thread.
        let next_cut = |from: usize| (from..compact.len()).find(|&at| chunks::is_cut(joinable, compact, at));
        let parts = parts(compact, threads, next_cut);
        let parts: Vec<(usize, &[u8])> = parts.into_iter().enumerate().collect();
        let results = in_parts(&parts, check, |(number, part), check| {
            let prefix = prefix && number == 0;
            self.with_scratch(|scratch| {
                let Scratch { buffers, ids } = scratch;
                let compact = encode_compact(vocab, joinable, part, prefix, check, buffers, ids)?;
                debug_assert!(compact);
                Ok::<_, Halt>(std::mem::take(ids))
            })?
        })?;
        // 3. All ids.
        let mut ids: Vec<u32> = Vec::new();
        ids.grow(results.iter().map(Vec::len).sum())?;
        let fused = vocab.fused;
        for part in results {
            // Unknown symbols on both sides of a cut are one.
            let again = fused.is_some() && ids.last() == fused.as_ref() && part.first() == fused.as_ref();
            ids.extend_from_slice(&part[usize::from(again)..]);
        }
        Ok(ids)
    }

    fn encode_long_split(
        &self,
        text: &[u8],
        valid: bool,
        byte_level: &ByteLevel,
        threads: usize,
        check: Check,
    ) -> Result<Vec<u32>, Halt> {
        let mut normalized = Vec::new();
        let whole = if self.is_plain(text, valid) && !self.normalizer.options.add_dummy_prefix {
            text
        } else {
            self.normalized((text, valid), check, &mut normalized, &mut ())?;
            normalized.as_slice()
        };
        let valid = String::from_utf8_lossy(whole); // (it is, and nothing is copied)
        let next_cut = |from: usize| byte_level.splitter.as_ref()?.safe_cut(&valid, from, whole.len());
        let parts = parts(whole, threads, next_cut);
        let results = in_parts(&parts, check, |part, check| {
            self.with_scratch(|scratch| {
                let Scratch { buffers, ids } = scratch;
                encode_split(&self.vocab, byte_level, part, check, buffers, ids)?;
                Ok::<_, Halt>(std::mem::take(ids))
            })?
        })?;
        let mut ids: Vec<u32> = Vec::new();
        ids.grow(results.iter().map(Vec::len).sum())?;
        results.iter().for_each(|part| ids.extend_from_slice(part));
        Ok(ids)
    }
}

/// Cut a text into as many parts as there are threads, but none that is too short. `next_cut` finds a place from the
/// given one on.
fn parts(text: &[u8], threads: usize, next_cut: impl Fn(usize) -> Option<usize>) -> Vec<&[u8]> {
    let count = threads.min(text.len() / MIN_PART).max(1);
    let mut parts = Vec::with_capacity(count);
    let mut begin = 0;
    for i in 1..count {
        let from = (text.len() / count * i).max(begin + 1);
        if let Some(cut) = next_cut(from) {
            parts.push(&text[begin..cut]);
            begin = cut;
        }
    }
    parts.push(&text[begin..]);
    parts
}
