//! Compact text -> ids: cut into chunks, look each up in the cache, merge those that are new.
//!
//! Text is worked on in batches of bytes, each in simple steps over all its chunks: cut, make keys, look up, append
//! ids. Memory that one step prefetches arrives while the next step works on the other batch.

use crate::cache::{self, BatchLookup, Cache, Key, PackedIds, MAX_CHUNK, MAX_LONG};
use crate::cut::chunks::{self, BLOCK};
use crate::cut::keys::KeyCuts;
use crate::encode::id_sink::IdSink;
use crate::encode::output::Output;
use crate::error::Halt;
use crate::memory::Grow;
use crate::merge::{merge_chunk, Choices};
use crate::text::utf8;
use crate::vocab::{piece_type, Joinable, Vocab};
use crate::watch::Check;

/// How many bytes after a text may be read: a block, and the bytes of a key that begins at its end.
const PAD: usize = BLOCK + 16;
/// Texts up to this length are copied to a buffer where they can be padded.
const SMALL: usize = 1024;
/// The chunks of this many bytes are looked up together: enough for memory to arrive meanwhile, and few enough to stay
/// in the processor's first cache. (128 is 5 % slower, 512 no faster.)
const BATCH: usize = 256;
/// Places are filled eight at a time.
const _: () = assert!(BATCH + 8 <= cache::BATCH);
/// Whether to go on is checked once in this many batches, which take a millisecond at most if nothing in them is known.
const CHECK_BATCHES: usize = 1 << 6;

/// What one running call needs: a cache and some buffers. Kept by the engine between calls.
pub struct Scratch {
    /// Everything but the result.
    pub buffers: Buffers,
    /// The result.
    pub ids: Vec<u32>,
}

/// A cache, and buffers for the forms of a text on its way to ids.
pub struct Buffers {
    cache: Cache,
    /// A padded text.
    padded: Vec<u8>,
    /// A compact text.
    pub compact: Vec<u8>,
    /// A normalized text.
    pub normalized: Vec<u8>,
    /// The ids of one new chunk, or of a text that cannot be cut.
    pub chunk: Vec<u32>,
    /// The chunks that wait to be looked up.
    pending: Box<Pending>,
    /// The choices of chunks that were sampled.
    pub choices: Choices,
}

impl Scratch {
    /// Empty, for a vocabulary of this many pieces.
    pub fn new(pieces: usize) -> Result<Self, Halt> {
        let buffers = Buffers {
            cache: Cache::new(pieces)?,
            padded: Vec::new(),
            compact: Vec::new(),
            normalized: Vec::new(),
            chunk: Vec::new(),
            pending: Box::new(Pending {
                batches: [ChunkBatch::new(), ChunkBatch::new()],
                lookup: BatchLookup::default(),
            }),
            choices: Choices::default(),
        };
        Ok(Scratch { buffers, ids: Vec::new() })
    }

    /// Give back the memory of buffers that one large text made large.
    pub fn trim(&mut self, limit: usize) {
        let Buffers { padded, compact, normalized, chunk, .. } = &mut self.buffers;
        for buffer in [padded, compact, normalized] {
            if buffer.capacity() > limit {
                *buffer = Vec::new();
            }
        }
        for buffer in [chunk, &mut self.ids] {
            if buffer.capacity() > limit {
                *buffer = Vec::new();
            }
        }
    }
}

/// The chunks of two batches: of one that is being cut, and of the one before, that is being looked up.
struct Pending {
    batches: [ChunkBatch; 2],
    /// The cache entries of the second.
    lookup: BatchLookup,
}

/// The chunks of a batch.
struct ChunkBatch {
    /// The key of each, and where it ends, counted from `first`.
    keys: [Key; cache::BATCH],
    count: usize,
    /// Where the bytes of the batch begin in the text, and where its first chunk begins, before them.
    first: usize,
    start: usize,
}

impl ChunkBatch {
    fn new() -> ChunkBatch {
        ChunkBatch { keys: [Key::default(); cache::BATCH], count: 0, first: 0, start: 0 }
    }

    fn keys(&self) -> &[Key] {
        &self.keys[..self.count]
    }

    /// Where in the text a chunk is.
    fn place(&self, i: usize) -> std::ops::Range<usize> {
        let begin = if i == 0 { self.start } else { self.first + self.keys[i - 1].end as usize };
        begin..self.first + self.keys[i].end as usize
    }
}

/// Encodes compact text of one vocabulary that may be cut.
struct Encoder<'a, O> {
    vocab: &'a Vocab,
    joinable: &'a Joinable,
    /// Tells whether to go on.
    check: Check<'a>,
    cache: &'a mut Cache,
    chunk: &'a mut Vec<u32>,
    out: &'a mut O,
}

impl<O: Output> Encoder<'_, O> {
    /// Encode the first `length` bytes of a text, after which `PAD` more bytes can be read; false if it holds U+2581,
    /// so it is not compact.
    fn run(&mut self, padded: &[u8], length: usize, pending: &mut Pending) -> Result<bool, Halt> {
        debug_assert!(padded.len() >= length + PAD);
        self.out.reserve_ids(length * self.vocab.ids_per_byte + PAD)?;
        let Pending { batches: [now, before], lookup } = pending;
        let (mut now, mut before) = (now, before);
        let (mut start, mut base) = (0, 0);
        before.count = 0;
        let mut keys = KeyCuts::new(self.vocab, &padded[..length]);
        while base < length {
            if base % (BATCH * CHECK_BATCHES) == BATCH * (CHECK_BATCHES - 1) {
                (self.check)()?;
            }
            // 1. Cut this batch, make keys, and prefetch their lines of the cache.
            let Some(stop) = self.cut(padded, length, base, now, &mut keys) else { return Ok(false) };
            start = self.prepare(padded, start, now);
            // 2. Append the ids of the batch before, whose entries have arrived.
            self.look_up(padded, before, lookup)?;
            // 3. Read the entries of this one.
            self.cache.find(now.keys(), lookup);
            std::mem::swap(&mut now, &mut before);
            base = stop;
        }
        self.look_up(padded, before, lookup)?;
        Ok(true)
    }

    /// Find the ends of the chunks that end in the batch at `first`. Returns where the batch ends.
    #[inline]
    fn cut(
        &self,
        padded: &[u8],
        length: usize,
        first: usize,
        batch: &mut ChunkBatch,
        keys: &mut Option<KeyCuts>,
    ) -> Option<usize> {
        let mut count = 0;
        let mut base = first;
        let stop = (first + BATCH).min(length);
        while base < stop {
            let block = padded[base..].first_chunk::<BLOCK>()?;
            let mut mask = chunks::cuts(self.joinable, &padded[..length + 4], base, block, self.vocab.swapped)?;
            let left = length - base;
            if let Some(keys) = keys {
                mask = keys.add(mask, base, block, padded[base + BLOCK], left);
            }
            if base == 0 {
                mask &= !1;
            }
            if left < BLOCK {
                mask = mask & ((1 << left) - 1) | 1 << left;
            }
            let all = count + mask.count_ones() as usize;
            let offset = (base - first) as u32;
            while mask != 0 {
                // Eight at a time, even if some are unneeded: cheaper than a loop whose end the processor cannot
                // predict.
                for place in batch.keys.get_mut(count..count + 8)? {
                    place.end = offset + mask.trailing_zeros();
                    mask &= mask.wrapping_sub(1);
                }
                count += 8;
            }
            count = all;
            if left == BLOCK {
                batch.keys[count].end = (length - first) as u32;
                count += 1;
            }
            base += BLOCK;
        }
        (batch.count, batch.first) = (count, first);
        Some(base)
    }

    /// Make the keys of the chunks, the first of which begins at `start`, and prefetch their memory. Returns where the
    /// last one ends.
    #[inline(never)]
    fn prepare(&self, padded: &[u8], mut start: usize, batch: &mut ChunkBatch) -> usize {
        batch.start = start;
        for key in &mut batch.keys[..batch.count] {
            let end = batch.first + key.end as usize;
            let length = end - start;
            let new = match padded[start..].first_chunk() {
                Some(bytes) if length <= MAX_CHUNK => Key::new(bytes, length),
                _ if length <= MAX_LONG => Key::long(&padded[start..end]),
                _ => Key::too_long(),
            };
            self.cache.prefetch(new);
            *key = new.ending(key.end);
            start = end;
        }
        start
    }

    /// Append the ids of chunks.
    fn look_up(&mut self, padded: &[u8], batch: &ChunkBatch, lookup: &mut BatchLookup) -> Result<(), Halt> {
        let keys = batch.keys();
        if keys.is_empty() {
            return Ok(());
        }
        self.cache.find_rest(keys, lookup);
        let mut at = 0;
        while at < keys.len() {
            if self.vocab.fused.is_none() {
                // SAFETY: `run` reserved `ids_per_byte` ids for each byte of the text, and `PAD` more.
                at += unsafe { self.out.append_cached(self.cache, &lookup.entries[at..keys.len()]) };
                if at == keys.len() {
                    break;
                }
            }
            let era = self.cache.era;
            self.append_one(keys[at], &padded[batch.place(at)], lookup.entries[at])?;
            if self.cache.era != era {
                // The cache was emptied meanwhile, so these entries are out of date.
                lookup.entries = [PackedIds::ABSENT; cache::BATCH];
            }
            at += 1;
        }
        Ok(())
    }

    /// Append the ids of a chunk whose entry is absent or must be compared, or that may continue an unknown symbol.
    #[inline(never)]
    fn append_one(&mut self, key: Key, text: &[u8], entry: PackedIds) -> Result<(), Halt> {
        self.chunk.clear();
        // A chunk that was absent may have been added since.
        if !self.cache.append(entry, text, self.chunk) && !self.cache.append(self.cache.get(key), text, self.chunk) {
            self.append_new(key, text)?;
        }
        // Unknown symbols on both sides of a cut are one.
        let fused = self.vocab.fused;
        let again = fused.is_some() && self.out.last_id() == fused && self.chunk.first() == fused.as_ref();
        self.out.append(&self.chunk[usize::from(again)..])
    }

    /// Merge a chunk, remember it, and leave its ids in `chunk`.
    #[cold]
    fn append_new(&mut self, key: Key, text: &[u8]) -> Result<(), Halt> {
        self.chunk.clear();
        match self.user_defined(text) {
            Some(id) => self.chunk.push(id),
            None => {
                let mut sink = IdSink { vocab: self.vocab, text, compact: true, out: self.chunk };
                merge_chunk(self.vocab, text, self.check, &mut sink)?;
            }
        }
        if utf8::length_by_first(text[0]) < text.len() || !self.cache.once.is_new(key) {
            self.cache.put(key, text, self.chunk);
        }
        Ok(())
    }

    /// The user-defined piece that a chunk is; see `cut/keys.rs`.
    fn user_defined(&self, text: &[u8]) -> Option<u32> {
        self.vocab.key_starts.as_ref()?;
        self.vocab.find(text).filter(|&id| self.vocab.kind(id) == piece_type::USER_DEFINED)
    }
}

/// Encode a compact text that is valid UTF-8, with a space in front if `prefix`. If it is not compact, do nothing and
/// return false.
pub fn encode_compact<O: Output>(
    vocab: &Vocab,
    joinable: &Joinable,
    text: &[u8],
    prefix: bool,
    check: Check,
    buffers: &mut Buffers,
    out: &mut O,
) -> Result<bool, Halt> {
    let Buffers { cache, padded, chunk, pending, .. } = buffers;
    let before = out.mark();
    let mut encoder = Encoder { vocab, joinable, check, cache, chunk, out };
    let mut copy = |encoder: &mut Encoder<O>, pending: &mut Pending, prefix: bool, text: &[u8]| {
        padded.clear();
        padded.grow(text.len() + 1 + PAD)?;
        if prefix {
            padded.push(b' ');
        }
        padded.extend_from_slice(text);
        let length = padded.len();
        padded.resize(length + PAD, 0);
        encoder.run(padded, length, pending)
    };
    // The head, with its prefix, and the tail, with its padding, are copied; the text between them is used in place.
    let last_cut = |from: usize, to: usize| (from..to).rev().find(|&at| chunks::is_cut(joinable, text, at));
    let (head, tail) = if text.len() <= SMALL {
        (None, None)
    } else {
        (if prefix { last_cut(1, SMALL) } else { Some(0) }, last_cut(text.len() - SMALL + 1, text.len() - PAD + 1))
    };
    let done = match (head, tail) {
        (Some(head), Some(tail)) if head <= tail => {
            (!prefix || copy(&mut encoder, pending, true, &text[..head])?)
                && encoder.run(&text[head..], tail - head, pending)?
                && copy(&mut encoder, pending, false, &text[tail..])?
        }
        _ => copy(&mut encoder, pending, prefix, text)?,
    };
    if !done {
        out.reset(before);
    }
    Ok(done)
}
