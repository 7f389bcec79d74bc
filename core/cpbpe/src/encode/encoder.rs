//! Compact text -> ids: cut into chunks, look each up in the cache, merge those that are new.
//!
//! Text is worked on in batches of bytes, each in simple steps over all its words (chunks of several bytes): cut, make
//! keys, look up, append ids. Memory that one step prefetches arrives while the next step works on the other batch.
//! Chunks of one byte need nothing of this: see `cut/words.rs`.

use crate::cache::{self, BatchLookup, Bytes, Cache, Found, Ids, Key, PackedIds, Source, MAX_CHUNK};
use crate::cache::{Singles, FEW, SOME};
use crate::cut::keys::{Part, Parts};
use crate::cut::words::is_cut;
use crate::cut::words::{Cutter, Words, BATCH};
use crate::encode::output::{IdSink, Output};
use crate::encode::split::SplitPending;
use crate::error::Halt;
#[cfg(target_arch = "x86_64")]
use crate::machine::Vector;
use crate::machine::{Machine, Plain, BLOCK};
use crate::memory::Grow;
use crate::merge::{merge_chunk, Choices};
use crate::text::utf8;
use crate::vocab::characters::SingleBytes;
use crate::vocab::{Joinable, KeyStarts, Unkeyed, Vocab};
use crate::watch::Check;

/// How many bytes after a text may be read: a block, and the bytes of a key that begins at its end.
const PAD: usize = BLOCK + 16;
/// As many ids may be written after the last one.
const _: () = assert!(PAD >= cache::SPARE);
/// Texts up to this length are copied to a buffer where they can be padded.
const SMALL: usize = 1024;
/// A batch has room for its words.
const _: () = assert!(BATCH <= cache::BATCH);
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
    pub cache: Cache,
    /// A padded text.
    padded: Vec<u8>,
    /// A compact text.
    pub compact: Vec<u8>,
    /// A normalized text.
    pub normalized: Vec<u8>,
    /// The ids of one new chunk, or of a text that cannot be cut.
    pub chunk: Vec<u32>,
    /// The words that wait to be looked up.
    pending: Box<Pending>,
    /// The same for a byte-level vocabulary.
    pub split_pending: Option<Box<SplitPending>>,
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
                batches: [WordBatch::new(), WordBatch::new()],
                lookup: BatchLookup::default(),
            }),
            split_pending: None,
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

/// The words of two batches: of one that is being cut, and of the one before, that is being looked up.
struct Pending {
    batches: [WordBatch; 2],
    /// The cache entries of the second.
    lookup: BatchLookup,
}

/// The words of a batch.
struct WordBatch {
    words: Words,
    /// The key of each.
    keys: [Key; cache::BATCH],
}

impl WordBatch {
    fn new() -> WordBatch {
        WordBatch { words: Words::new(), keys: [Key::default(); cache::BATCH] }
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
        #[cfg(target_arch = "x86_64")]
        if self.joinable.vector {
            // SAFETY: the machine has been asked.
            return unsafe { self.run_vector(padded, length, pending) };
        }
        self.run_on::<Plain>(padded, length, pending)
    }

    /// `run` on a machine with vector instructions.
    ///
    /// # Safety
    /// It must have them: see `has_vectors`.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt,lzcnt")]
    unsafe fn run_vector(&mut self, padded: &[u8], length: usize, pending: &mut Pending) -> Result<bool, Halt> {
        self.run_on::<Vector>(padded, length, pending)
    }

    #[inline(always)]
    fn run_on<M: Machine>(&mut self, padded: &[u8], length: usize, pending: &mut Pending) -> Result<bool, Halt> {
        debug_assert!(padded.len() >= length + PAD);
        self.out.reserve_ids(length * self.vocab.ids_per_byte + PAD)?;
        let Pending { batches: [now, before], lookup } = pending;
        let (mut now, mut before) = (now, before);
        let mut cutter = Cutter::new(self.vocab, self.joinable, padded, length);
        before.words.clear();
        // Up to where ids have been appended.
        let mut done = 0;
        while !cutter.is_done() {
            if cutter.base % (BATCH * CHECK_BATCHES) == BATCH * (CHECK_BATCHES - 1) {
                (self.check)()?;
            }
            // 1. Cut this batch, make keys, and prefetch their lines of the cache.
            if cutter.next::<M>(&mut now.words).is_none() {
                return Ok(false);
            }
            self.prepare(padded, now);
            // 2. Append the ids of the batch before, whose entries have arrived.
            done = self.look_up::<M>(padded, done, before, lookup)?;
            // 3. Read the entries of this one.
            self.cache.find::<M>(&now.keys[..now.words.count], lookup);
            std::mem::swap(&mut now, &mut before);
        }
        self.look_up::<M>(padded, done, before, lookup)?;
        Ok(true)
    }

    /// Make the keys of words, and prefetch their memory.
    #[inline(always)]
    fn prepare(&self, padded: &[u8], batch: &mut WordBatch) {
        if batch.words.by_character {
            self.prepare_from::<true>(padded, batch);
        } else {
            self.prepare_from::<false>(padded, batch);
        }
    }

    #[inline(always)]
    fn prepare_from<const BY_CHARACTER: bool>(&self, padded: &[u8], batch: &mut WordBatch) {
        let WordBatch { words, keys } = batch;
        let homes = self.cache.homes();
        for (key, (begin, end, singles)) in keys.iter_mut().zip(words.places::<BY_CHARACTER>()) {
            let length = end - begin;
            let (low, high) = match padded[begin..].first_chunk() {
                Some(bytes) if length <= MAX_CHUNK => Key::short(bytes, length),
                _ => Key::long(&padded[begin..end]),
            };
            *key = Key { singles, ..Key::of_halves([low, high]) };
            homes.prefetch(key.hash);
        }
    }

    /// Append the ids of a batch: of words, and of the singles between them. `done`: up to where ids have been appended.
    /// Returns the new place.
    #[inline(always)]
    fn look_up<M: Machine>(
        &mut self,
        padded: &[u8],
        done: usize,
        batch: &WordBatch,
        lookup: &mut BatchLookup,
    ) -> Result<usize, Halt> {
        let words = &batch.words;
        if words.by_character {
            let ids = &words.characters.ids;
            // The first run of singles may begin with the character before the batch.
            let (mut from, to) = words.character_singles(0, done);
            let fused = self.vocab.fused;
            if from < to && fused.is_some() && Some(ids[from]) == fused && self.out.last_id() == fused {
                from += 1; // UNKNOWN characters side by side are one
            }
            // SAFETY: `run` made room.
            unsafe { self.out.append_singles(Singles::new(0, to - from), Ids::<SOME>(&ids[from..])) };
            return self.look_up_in(padded, batch, lookup, Ids::<SOME>(&ids[1..]));
        }
        if M::MASKS {
            let to = if words.count > 0 { words.begin(0) } else { words.singles_end };
            // (They begin in the batch, or with the byte before it. If there are none, `done` may be anywhere.)
            let first = Ids::<FEW>(&words.ids[(done + 1).saturating_sub(words.first)..]);
            // SAFETY: `run` made room.
            unsafe { self.out.append_singles(Singles::new(0, to - done), first) };
            return self.look_up_in(padded, batch, lookup, Ids::<FEW>(&words.ids[1..]));
        }
        let source = Bytes { text: &padded[words.first..], ids: &self.joinable.singles.ids };
        let to = if words.count > 0 { words.begin(0) } else { words.singles_end };
        // SAFETY: `run` made room.
        unsafe { self.out.append_singles(Singles::new(0, to - done), Bytes { text: &padded[done..], ..source }) };
        self.look_up_in(padded, batch, lookup, source)
    }

    /// The same after the singles before the first word.
    fn look_up_in<S: Source>(
        &mut self,
        padded: &[u8],
        batch: &WordBatch,
        lookup: &mut BatchLookup,
        source: S,
    ) -> Result<usize, Halt> {
        let words = &batch.words;
        let keys = &batch.keys[..words.count];
        if keys.is_empty() {
            return Ok(words.singles_end);
        }
        self.cache.find_rest(keys, lookup);
        let mut at = 0;
        loop {
            // 1. As many words as are known, with the singles before each. (The key of the first does not count any.)
            let found = Found { keys: &keys[at..], entries: &lookup.entries[at..], source };
            // SAFETY: `run` reserved `ids_per_byte` ids for each byte of the text, and `PAD` more.
            at += unsafe { self.out.append_cached(self.cache, found) };
            // 2. The singles before the next word, or after the last one.
            if at > 0 {
                // SAFETY: as above.
                unsafe { self.out.append_singles(words.singles(at), source) };
            }
            if at == keys.len() {
                return Ok(words.singles_end);
            }
            // 3. The next word.
            let era = self.cache.era;
            let text = &padded[words.begin(at)..words.end(at)];
            self.append_one(keys[at], text, lookup.entries[at])?;
            if self.cache.era != era {
                // The cache was emptied meanwhile, so these entries are out of date.
                lookup.entries = [PackedIds::ABSENT; cache::BATCH];
            }
            at += 1;
            let fused = self.vocab.fused;
            if fused.is_some() && words.is_after(at, fused) && self.out.last_id() == fused {
                self.out.drop_last(); // UNKNOWN characters side by side are one
            }
        }
    }

    /// Append the ids of a word whose entry is absent or must be compared; it may continue an unknown symbol.
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
        if let (Some(starts), Some(unkeyed)) = (&self.vocab.key_starts, &self.joinable.unkeyed) {
            let tables = Tables { starts, unkeyed, singles: &self.joinable.singles };
            append_parts(self.vocab, tables, self.cache, text, self.check, self.chunk)?;
        } else {
            let mut sink = IdSink { vocab: self.vocab, text, compact: true, out: self.chunk };
            merge_chunk(self.vocab, text, self.check, &mut sink)?;
        }
        if utf8::length_by_first(text[0]) < text.len() || !self.cache.once.is_new(key) {
            self.cache.put_chunk(key, text, self.chunk, self.vocab.fused);
        }
        Ok(())
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
    let last_cut = |from: usize, to: usize| (from..to).rev().find(|&at| is_cut(joinable, text, at));
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

// --- User-defined pieces -------------------------------------------------------------------------
//
// A new chunk -> ids, if the vocabulary has user-defined pieces: part by part.

/// What a vocabulary with user-defined pieces has.
pub struct Tables<'a> {
    /// Where they begin.
    pub starts: &'a KeyStarts,
    /// What the other pieces join.
    pub unkeyed: &'a Unkeyed,
    /// The ids of single bytes.
    pub singles: &'a SingleBytes,
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
