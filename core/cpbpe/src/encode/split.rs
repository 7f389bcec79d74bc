//! Text -> ids with a byte-level vocabulary: a pattern cuts the text, each chunk is looked up in the cache, and those
//! that are new are merged.
//!
//! This differs from `encoder.rs` only in where chunks come from. They are worked on in batches, too, in simple steps, so
//! that memory arrives while another batch is worked on; and chunks of one byte need neither a key nor the cache. Long
//! chunks are cut into parts where nothing merges (see `vocab/byte_level.rs`), and the parts are words as well.

use crate::cache::Singles;
use crate::cache::{self, BatchLookup, Bytes, Cache, Found, Key, PackedIds, MAX_CHUNK};
use crate::encode::encoder::Buffers;
use crate::encode::output::IdSink;
use crate::encode::output::Output;
use crate::error::{Error, Halt};
#[cfg(target_arch = "x86_64")]
use crate::machine::Vector;
use crate::machine::{Machine, Plain};
use crate::memory::Grow;
use crate::merge::{merge_chunk, Sink};
use crate::split::{Batch, Chunks};
use crate::vocab::byte_level::PARTS;
use crate::vocab::{ByteLevel, Vocab};
use crate::watch::Check;

/// How many words, chunks or parts of several bytes, are looked up together.
const BATCH: usize = 256;
const _: () = assert!(BATCH <= cache::BATCH);
/// A batch ends after this many bytes, because singles are found by 16 bits. (A chunk may go on for longer.)
const MAX_BYTES: u32 = 1 << 14;
/// Whether to go on is checked once in this many batches.
const CHECK_BATCHES: usize = 16;
/// How many bytes after a chunk may be read.
const PAD: usize = cache::STEP;
const _: () = assert!(PAD >= 16); // (keys need so many)

/// The words of a batch.
struct WordBatch {
    /// Where each begins and ends, counted from `first`.
    begins: [u32; BATCH + 1],
    ends: [u32; BATCH + 1],
    /// Which are parts of chunks, if that matters; and whether any is.
    parts: [bool; BATCH + 1],
    has_parts: bool,
    /// Where some parts of a long chunk end. (Here they need not be cleared: that took a thirtieth of the time.)
    part_ends: [usize; PARTS + 1],
    /// The key of each.
    keys: [Key; cache::BATCH],
    /// How many there are.
    count: usize,
    /// Where the batch begins in the text, and where it ends.
    first: usize,
    end: usize,
    /// The text of a batch that is near the end of all text, and `PAD` zeros.
    padded: Vec<u8>,
}

impl WordBatch {
    fn new() -> WordBatch {
        WordBatch {
            begins: [0; BATCH + 1],
            ends: [0; BATCH + 1],
            parts: [false; BATCH + 1],
            has_parts: false,
            part_ends: [0; PARTS + 1],
            keys: [Key::default(); cache::BATCH],
            count: 0,
            first: 0,
            end: 0,
            padded: Vec::new(),
        }
    }
}

/// What is needed for the batches of a text: the one that is being cut, and the one before, that is being looked up.
pub struct SplitPending {
    batches: [WordBatch; 2],
    /// The cache entries of the second.
    lookup: BatchLookup,
    /// The chunks of a part of the text.
    cut: Cut,
}

impl SplitPending {
    /// Empty.
    pub fn new() -> SplitPending {
        SplitPending { batches: [WordBatch::new(), WordBatch::new()], lookup: BatchLookup::default(), cut: Cut::new() }
    }
}

/// Encodes text of one byte-level vocabulary.
struct SplitEncoder<'a, O> {
    vocab: &'a Vocab,
    byte_level: &'a ByteLevel,
    /// Tells whether to go on.
    check: Check<'a>,
    cache: &'a mut Cache,
    chunk: &'a mut Vec<u32>,
    out: &'a mut O,
}

/// Encode a text, which is UTF-8.
pub fn encode_split<O: Output>(
    vocab: &Vocab,
    byte_level: &ByteLevel,
    text: &[u8],
    check: Check,
    buffers: &mut Buffers,
    out: &mut O,
) -> Result<(), Halt> {
    let Buffers { cache, chunk, split_pending, .. } = buffers;
    cache.keep_more();
    let pending = split_pending.get_or_insert_with(|| Box::new(SplitPending::new()));
    SplitEncoder { vocab, byte_level, check, cache, chunk, out }.run(text, pending)
}

impl<O: Output> SplitEncoder<'_, O> {
    fn run(&mut self, text: &[u8], pending: &mut SplitPending) -> Result<(), Halt> {
        #[cfg(target_arch = "x86_64")]
        if self.byte_level.vector {
            // SAFETY: the machine has been asked.
            return unsafe { self.run_vector(text, pending) };
        }
        self.run_on::<Plain>(text, pending)
    }

    /// `run` on a machine with vector instructions.
    ///
    /// # Safety
    /// It must have them: see `has_vectors`.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt,lzcnt")]
    unsafe fn run_vector(&mut self, text: &[u8], pending: &mut SplitPending) -> Result<(), Halt> {
        self.run_on::<Vector>(text, pending)
    }

    #[inline(always)]
    fn run_on<M: Machine>(&mut self, text: &[u8], pending: &mut SplitPending) -> Result<(), Halt> {
        self.out.reserve_ids(text.len() + cache::SPARE)?;
        let SplitPending { batches: [now, before], lookup, cut } = pending;
        let (mut now, mut before) = (now, before);
        before.clear();
        let mut chunks = TextChunks::new(self.byte_level, text)?;
        let mut inside = false;
        while chunks.next(cut)? {
            let (mut begin, mut number, mut batches) = (cut.base, 0, 0usize);
            let ends = cut.ends();
            while number < ends.len() {
                // (A chunk may have many parts.)
                if batches % CHECK_BATCHES == 0 {
                    (self.check)()?;
                }
                batches += 1;
                // 1. Keep the words of this batch, make keys, and prefetch their lines of the cache.
                number += now.take::<M>(text, [begin, cut.base], &ends[number..], self.byte_level, &mut inside)?;
                begin = now.end;
                now.prepare(text, self.cache);
                // 2. Append the ids of the batch before, whose entries have arrived.
                self.look_up(text, before, lookup)?;
                // 3. Read the entries of this one.
                self.cache.find::<M>(&now.keys[..now.count], lookup);
                std::mem::swap(&mut now, &mut before);
            }
        }
        self.look_up(text, before, lookup)
    }

    /// Append the ids of a batch: of words, and of the singles between them.
    fn look_up(&mut self, text: &[u8], batch: &WordBatch, lookup: &mut BatchLookup) -> Result<(), Halt> {
        if batch.end == batch.first {
            return Ok(()); // before the first one
        }
        let part = batch.text(text);
        let source = Bytes { text: part, ids: &self.byte_level.ids };
        let keys = &batch.keys[..batch.count];
        self.cache.find_rest(keys, lookup);
        let mut at = 0;
        loop {
            // 1. As many words as are known, with the singles before each.
            let found = Found { keys: &keys[at..], entries: &lookup.entries[at..], source };
            // SAFETY: `run_on` reserved an id for each byte of the text, and `SPARE` more. `text` is padded.
            at += unsafe { self.out.append_cached(self.cache, found) };
            // 2. The singles before the next word, or after the last one.
            // SAFETY: as above.
            unsafe { self.out.append_singles(batch.singles(at), source) };
            if at == keys.len() {
                return Ok(());
            }
            // 3. The next word.
            let era = self.cache.era;
            self.append_one(keys[at], &part[batch.begins[at] as usize..batch.ends[at] as usize], lookup.entries[at])?;
            if self.cache.era != era {
                // The cache was emptied meanwhile, so these entries are out of date.
                lookup.entries = [PackedIds::ABSENT; cache::BATCH];
            }
            at += 1;
        }
    }

    /// Append the ids of a word whose entry is absent or must be compared.
    #[inline(never)]
    fn append_one(&mut self, key: Key, text: &[u8], entry: PackedIds) -> Result<(), Halt> {
        self.chunk.clear();
        // A chunk that was absent may have been added since.
        if !self.cache.append(entry, text, self.chunk) && !self.cache.append(self.cache.get(key), text, self.chunk) {
            self.chunk.clear();
            let mut sink = IdSink { vocab: self.vocab, text, compact: true, out: self.chunk };
            if key.is_part() {
                merge_chunk(self.vocab, text, self.check, &mut sink)?;
            } else {
                segment_chunk(self.vocab, self.byte_level, text, self.check, &mut sink)?;
            }
            // A long one is remembered when it comes for the second time: most never do, where they cannot be cut, and the
            // cache would be full of them.
            if text.len() <= MAX_CHUNK || !self.cache.once.is_new(key) {
                self.cache.put_chunk(key, text, self.chunk, None);
            }
        }
        self.out.append(self.chunk)
    }
}

impl WordBatch {
    /// Become a batch before the text.
    fn clear(&mut self) {
        (self.count, self.first, self.end) = (0, 0, 0);
    }

    /// Keep the words among the chunks that begin at `begin` and have these ends, counted from `base`, until there are
    /// enough. `inside`: in front of the first chunk, a part of it is missing; on return, that is so for the next one.
    /// Returns how many chunks have come to their end.
    #[inline(always)]
    fn take<M: Machine>(
        &mut self,
        text: &[u8],
        [begin, base]: [usize; 2],
        ends: &[u32],
        byte_level: &ByteLevel,
        inside: &mut bool,
    ) -> Result<usize, Halt> {
        (self.first, self.count) = (begin, 0);
        if std::mem::take(&mut self.has_parts) {
            self.parts = [false; BATCH + 1];
        }
        let before = (begin - base) as u32; // the batch begins here, counted from `base`
        let (mut from, mut taken) = (before, 0);
        while let (Some(&end), true) = (ends.get(taken), self.count < BATCH && from - before < MAX_BYTES) {
            // 1. Many chunks that are not long.
            let (begins, places) =
                (self.begins[self.count..].first_chunk_mut(), self.ends[self.count..].first_chunk_mut());
            if let (Some(chunks), Some(begins), Some(places), false) =
                (ends[taken..].first_chunk(), begins, places, *inside)
            {
                let [chunks, words] = M::words(chunks, from, before, MAX_CHUNK as u32, [begins, places]);
                if chunks > 0 {
                    taken += chunks;
                    self.count += words;
                    from = ends[taken - 1];
                    continue;
                }
            }
            // 2. One that is, or one near the end of the text.
            if end - from > MAX_CHUNK as u32 || *inside {
                from = before + self.take_parts(text, [from, end].map(|place| place - before), byte_level, inside);
                if *inside {
                    break;
                }
            } else {
                self.add(from - before, end - before);
                from = end;
            }
            taken += 1;
        }
        let size = (from - before) as usize;
        self.end = begin + size;
        // Near its end the text is copied, so that bytes after it may be read.
        if self.end + PAD > text.len() {
            self.padded.clear();
            self.padded.grow(size + PAD)?;
            self.padded.extend_from_slice(&text[begin..self.end]);
            self.padded.resize(size + PAD, 0);
        }
        Ok(taken)
    }

    /// Keep a word, or leave out a single.
    #[inline(always)]
    fn add(&mut self, from: u32, to: u32) {
        (self.begins[self.count], self.ends[self.count]) = (from, to);
        self.count += usize::from(to - from > 1);
    }

    /// Keep the parts of a long chunk until there are enough. Returns where the last one ends.
    #[inline(never)]
    fn take_parts(&mut self, text: &[u8], [mut from, to]: [u32; 2], byte_level: &ByteLevel, inside: &mut bool) -> u32 {
        let matters = byte_level.options.whole;
        while from < to && from < MAX_BYTES {
            let [first, last] = [from, to].map(|place| self.first + place as usize);
            let count = byte_level.cuts.parts(text, first, last, &mut self.part_ends);
            *inside |= self.part_ends[0] < last;
            self.has_parts |= *inside && matters;
            for i in 0..count {
                let end = self.part_ends[i];
                if self.count == BATCH || from >= MAX_BYTES {
                    *inside = true;
                    return from;
                }
                let end = (end - self.first) as u32;
                self.parts[self.count] = *inside && matters && end - from > 1;
                self.add(from, end);
                from = end;
            }
        }
        *inside = from < to;
        from
    }

    /// The text of the batch, after which `PAD` bytes can be read.
    #[inline(always)]
    fn text<'a>(&'a self, text: &'a [u8]) -> &'a [u8] {
        if self.end + PAD > text.len() {
            &self.padded
        } else {
            &text[self.first..self.end + PAD]
        }
    }

    /// Make the keys of words, and prefetch their memory.
    #[inline(always)]
    fn prepare(&mut self, text: &[u8], cache: &Cache) {
        let part = if self.end + PAD > text.len() { &self.padded } else { &text[self.first..self.end + PAD] };
        let homes = cache.homes();
        let mut done = 0;
        let places = self.begins.iter().zip(&self.ends).zip(&self.parts[..self.count]);
        for (key, ((&begin, &end), &is_part)) in self.keys.iter_mut().zip(places) {
            let (begin, end) = (begin as usize, end as usize);
            let length = end - begin;
            let (low, high) = match part[begin..].first_chunk() {
                Some(bytes) if length <= MAX_CHUNK => Key::short(bytes, length),
                _ => Key::long(&part[begin..end]),
            };
            *key = Key { singles: Singles::new(done, begin - done), ..Key::of_part([low, high], is_part) };
            homes.prefetch(key.hash);
            done = end;
        }
    }

    /// The singles before a word, or after the last one.
    #[inline(always)]
    fn singles(&self, i: usize) -> Singles {
        let from = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        let to = if i == self.count { self.end - self.first } else { self.begins[i] as usize };
        // (After a chunk that is too long for the numbers of a batch there are none in it.)
        if from == to {
            Singles::default()
        } else {
            Singles::new(from, to - from)
        }
    }
}

/// Give the symbols of a chunk to `sink`: the whole chunk, if it is a piece and the model says so, otherwise what merging
/// makes of it.
pub fn segment_chunk<S: Sink>(
    vocab: &Vocab,
    byte_level: &ByteLevel,
    text: &[u8],
    check: Check,
    sink: &mut S,
) -> Result<(), Halt> {
    if byte_level.options.whole {
        if let Some(id) = vocab.find_mergeable(text) {
            sink.make_room(text.len())?;
            sink.symbol(id, 0, text.len());
            return Ok(());
        }
    }
    merge_chunk(vocab, text, check, sink)
}

/// Call `each` for every chunk of a text, which is UTF-8.
pub fn each_chunk(
    byte_level: &ByteLevel,
    text: &[u8],
    check: Check,
    mut each: impl FnMut(usize, usize) -> Result<(), Halt>,
) -> Result<(), Halt> {
    let mut chunks = TextChunks::new(byte_level, text)?;
    let mut cut = Cut::new();
    while chunks.next(&mut cut)? {
        check()?;
        let mut begin = cut.base;
        for &end in cut.ends() {
            let end = cut.base + end as usize;
            each(begin, end)?;
            begin = end;
        }
    }
    Ok(())
}

/// The chunks of a part of a text, each of which begins where the one before ends.
struct Cut {
    batch: Batch,
    /// Where the first chunk begins in the text.
    base: usize,
    /// Where each ends, counted from `base`, if the batch does not say it.
    filled: Option<Vec<u32>>,
}

impl Cut {
    fn new() -> Cut {
        Cut { batch: Batch::new(), base: 0, filled: None }
    }

    #[inline(always)]
    fn ends(&self) -> &[u32] {
        self.filled.as_deref().unwrap_or_else(|| self.batch.ends())
    }
}

/// The chunks of a text: the matches of the pattern, and what it does not match between them, so that nothing is lost.
/// (The published patterns match everything.)
struct TextChunks<'a> {
    /// `None` if the text is one chunk.
    chunks: Option<Chunks<'a>>,
    /// How long the text is, and how much of it is in chunks that have been handed out.
    length: usize,
    done: usize,
}

impl<'a> TextChunks<'a> {
    fn new(byte_level: &'a ByteLevel, text: &'a [u8]) -> Result<TextChunks<'a>, Halt> {
        let chunks = byte_level.splitter.as_ref().map(|splitter| splitter.chunks_of(text)).transpose().map_err(halt)?;
        Ok(TextChunks { chunks, length: text.len(), done: 0 })
    }

    /// Put the next chunks into `cut`. Returns false if there are none.
    fn next(&mut self, cut: &mut Cut) -> Result<bool, Halt> {
        let more = match &mut self.chunks {
            Some(chunks) => chunks.next(&mut cut.batch).map_err(halt)?,
            None => false,
        };
        if more && cut.batch.begins().is_none() {
            (cut.base, cut.filled) = (cut.batch.base(), None);
            self.done = self.length; // all of the text is in some chunk
            return Ok(true);
        }
        cut.base = self.done;
        let filled = cut.filled.get_or_insert_default();
        filled.clear();
        let mut add = |end: usize| {
            filled.grow(1)?;
            filled.push(u32::try_from(end - cut.base).map_err(|_| Halt::ChunkTooLong)?);
            Ok(())
        };
        if more {
            for [begin, end] in cut.batch.spans() {
                if begin > self.done {
                    add(begin)?;
                }
                add(end)?;
                self.done = end;
            }
        } else if self.done < self.length {
            add(self.length)?;
            self.done = self.length;
        }
        Ok(!filled.is_empty())
    }
}

/// Why a text cannot be split.
fn halt(error: Error) -> Halt {
    match error {
        Error::SplitFailed(_) => Halt::SplitFailed,
        Error::ChunkTooLong => Halt::ChunkTooLong,
        _ => Halt::OutOfMemory,
    }
}
