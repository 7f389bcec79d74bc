//! Text -> ids: cut into chunks, look each up in the cache, merge those that are new.
//!
//! Text is processed in batches, and each batch in simple steps over all its words (chunks of several bytes): cut, make
//! keys, look up, append ids. Memory that one step prefetches arrives while the next step works on the other batch.
//! Nearly all chunks of one byte need none of this. They are called singles: see `cut/words.rs`. (Some batches are cut
//! by characters; then a single is a chunk of one character.)
//!
//! Only the source of the words differs (`WordSource`): compact text is cut where nothing can merge; with a byte-level
//! vocabulary, a pattern cuts the text. Everything else is the same.

use crate::cache::{
    self, BatchLookup, Bytes, Cache, Ids, Key, KnownWords, PackedIds, Singles, Source, FEW, MAX_CHUNK, SOME,
};
use crate::cut::by_pattern::{PatternCutter, PatternWords};
use crate::cut::keys::{Part, Parts};
use crate::cut::words::{is_cut, Cutter, Words, FIRST};
use crate::cut::{by_pattern, words, WordBatch};
use crate::encode::output::{IdSink, Output};
use crate::error::Halt;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::machine::Half;
#[cfg(target_arch = "x86_64")]
use crate::machine::Vector;
use crate::machine::{Best, Machine, Plain, BLOCK};
use crate::memory::Grow;
use crate::merge::{merge_chunk, merge_pattern_chunk, Choices};
use crate::split;
use crate::text::utf8;
use crate::vocab::joinable::Unkeyed;
use crate::vocab::{ByteLevel, Joinable, Vocab};
use crate::watch::Check;

/// How many bytes after a compact text may be read: a block, and the bytes of a key that begins at the end of the text.
const PAD: usize = BLOCK + 16;
/// Texts up to this length are copied to a buffer that has room for the padding.
const SMALL: usize = 1024;
/// A lookup has room for the words of a batch.
const _: () = assert!(words::BATCH <= cache::BATCH && by_pattern::BATCH <= cache::BATCH);

/// What a running call needs: a cache and some buffers. The engine keeps it for later calls.
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
    /// For each byte of a normalized text, the byte that it came from.
    pub origins: Vec<usize>,
    /// The ids of one new chunk, or of a text that cannot be cut.
    pub chunk: Vec<u32>,
    /// The words of a compact text.
    pending: Option<Box<Pending<Words>>>,
    /// The words of a text that a pattern cuts, and the chunks that they are in.
    pending_by_pattern: Option<Box<(Pending<PatternWords>, split::Batch)>>,
    /// Chunks that were sampled, with their possible merges.
    pub choices: Choices,
}

impl Scratch {
    /// Empty buffers, for a vocabulary of this many pieces.
    pub fn new(pieces: usize) -> Result<Self, Halt> {
        let buffers = Buffers {
            cache: Cache::new(pieces)?,
            padded: Vec::new(),
            compact: Vec::new(),
            normalized: Vec::new(),
            origins: Vec::new(),
            chunk: Vec::new(),
            pending: None,
            pending_by_pattern: None,
            choices: Choices::default(),
        };
        Ok(Scratch { buffers, ids: Vec::new() })
    }

    /// Give back the memory of buffers to which one large text gave room for more than `limit` items.
    pub fn trim(&mut self, limit: usize) {
        let Buffers { padded, compact, normalized, origins, chunk, .. } = &mut self.buffers;
        for buffer in [padded, compact, normalized] {
            if buffer.capacity() > limit {
                *buffer = Vec::new();
            }
        }
        if origins.capacity() > limit {
            *origins = Vec::new();
        }
        for buffer in [chunk, &mut self.ids] {
            if buffer.capacity() > limit {
                *buffer = Vec::new();
            }
        }
    }
}

/// The words of two batches: the one that is being cut, and the one before it, which is being looked up.
#[derive(Default)]
struct Pending<W> {
    batches: [Batch<W>; 2],
    /// The cache entries of the batch that is being looked up.
    lookup: BatchLookup,
}

impl<W: Default> Pending<W> {
    /// Allocate empty batches. (In a function of its own, so that calls for which there are batches already need no
    /// room on the stack for new ones.)
    #[cold]
    #[inline(never)]
    fn new() -> Box<Pending<W>> {
        Box::default()
    }
}

/// The words of a batch.
struct Batch<W> {
    words: W,
    /// The key of each word.
    keys: [Key; cache::BATCH],
}

impl<W: Default> Default for Batch<W> {
    fn default() -> Batch<W> {
        Batch { words: W::default(), keys: [Key::default(); cache::BATCH] }
    }
}

/// Cuts a text into words, batch by batch.
trait WordSource: Sized {
    type Words: WordBatch;
    /// `check` is called once in this many batches. They take at most a millisecond, even if the cache has none of
    /// their words.
    const CHECK_BATCHES: usize;
    /// The machine that is used.
    fn best(&self) -> Best;
    /// How many bytes the text has.
    fn length(&self) -> usize;
    /// Find the words of the next batch; false if there are no more.
    fn next(&mut self, machine: impl Machine, words: &mut Self::Words) -> Result<bool, Halt>;
    /// Append the ids of a batch, by `Encoder::append_words`.
    fn append<O: Output>(
        encoder: &mut Encoder<Self, O>,
        machine: impl Machine,
        text: &[u8],
        batch: &Batch<Self::Words>,
        lookup: &mut BatchLookup,
    ) -> Result<(), Halt>;
    /// Merge a new chunk, and leave its ids in `encoder.chunk`. Returns true if the cache is to remember it now, false
    /// if only when it occurs for the second time.
    fn merge<O: Output>(encoder: &mut Encoder<Self, O>, key: Key, text: &[u8]) -> Result<bool, Halt>;
}

/// Encodes a text with one vocabulary.
struct Encoder<'a, S, O> {
    vocab: &'a Vocab,
    source: S,
    /// An error if the work is to end, as after Ctrl-C.
    check: Check<'a>,
    cache: &'a mut Cache,
    chunk: &'a mut Vec<u32>,
    out: &'a mut O,
}

impl<S: WordSource, O: Output> Encoder<'_, S, O> {
    /// Encode the text of the source.
    fn run(&mut self, text: &[u8], pending: &mut Pending<S::Words>) -> Result<(), Halt> {
        match self.source.best() {
            // SAFETY: the machine has the instructions, because there is a `Vector` or a `Half`.
            #[cfg(target_arch = "x86_64")]
            Best::Vector(vector) => unsafe { self.run_vector(vector, text, pending) },
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            Best::Half(half) => unsafe { self.run_half(half, text, pending) },
            _ => self.run_on(Plain, text, pending),
        }
    }

    /// `run` on a machine with these instructions.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt"))]
    #[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon"))]
    fn run_half(&mut self, half: Half, text: &[u8], pending: &mut Pending<S::Words>) -> Result<(), Halt> {
        self.run_on(half, text, pending)
    }

    /// `run` on a machine with these instructions.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt,lzcnt")]
    fn run_vector(&mut self, vector: Vector, text: &[u8], pending: &mut Pending<S::Words>) -> Result<(), Halt> {
        self.run_on(vector, text, pending)
    }

    #[inline(always)]
    fn run_on(&mut self, machine: impl Machine, text: &[u8], pending: &mut Pending<S::Words>) -> Result<(), Halt> {
        self.out.reserve_ids(self.source.length() * self.vocab.ids_per_byte + cache::SPARE)?;
        let Pending { batches: [now, before], lookup } = pending;
        let (mut now, mut before) = (now, before);
        let mut batches = 0;
        // 1. Cut this batch, make its keys, and prefetch their lines of the cache.
        while self.source.next(machine, &mut now.words)? {
            batches += 1;
            if batches % S::CHECK_BATCHES == 0 {
                (self.check)()?;
            }
            now.words.make_keys(text, &mut now.keys, self.cache.homes());
            // 2. Append the ids of the batch before, whose entries have arrived.
            if batches > 1 {
                S::append(self, machine, text, before, lookup)?;
            }
            // 3. Read the entries of this one.
            self.cache.find(machine, &now.keys[..now.words.count()], lookup);
            std::mem::swap(&mut now, &mut before);
        }
        if batches > 0 {
            S::append(self, machine, text, before, lookup)?;
        }
        Ok(())
    }

    /// Append the ids of the words of a batch, and of the singles between them.
    ///
    /// # Safety
    /// `run_on` must have made room for them. The singles of the batch, and `cache::STEP` more, must be in
    /// `singles`.
    unsafe fn append_words(
        &mut self,
        text: &[u8],
        batch: &Batch<S::Words>,
        lookup: &mut BatchLookup,
        singles: impl Source,
    ) -> Result<(), Halt> {
        let words = &batch.words;
        let keys = &batch.keys[..words.count()];
        if keys.is_empty() {
            // Numbers, for example, with a piece for each digit. (SAFETY: as the caller says.)
            unsafe { self.out.append_singles(words.singles(0), singles) };
            return Ok(());
        }
        self.cache.find_rest(keys, lookup);
        let fused = self.vocab.fused_unknown;
        let mut at = 0;
        loop {
            // 1. Append as many words as are known, with the singles before each; then the singles before the next
            //    word, or those after the last one.
            let found = KnownWords { keys: &keys[at..], entries: &lookup.entries[at..], source: singles };
            // SAFETY: as the caller says.
            unsafe {
                at += self.out.append_cached(self.cache, found);
                self.out.append_singles(words.singles(at), singles);
            }
            if at == keys.len() {
                return Ok(());
            }
            // 2. The next word.
            let era = self.cache.era;
            self.append_one(keys[at], words.word(text, at), lookup.entries[at])?;
            if self.cache.era != era {
                // The cache has been emptied, so these entries are out of date.
                lookup.entries = [PackedIds::ABSENT; cache::BATCH];
            }
            at += 1;
            if fused.is_some() && words.singles_begin_with(at, fused) && self.out.last_id() == fused {
                self.out.drop_last(); // neighbouring UNKNOWN characters are one
            }
        }
    }

    /// Append the ids of a word whose entry is absent or must be compared. The word may continue an unknown symbol.
    #[inline(never)]
    fn append_one(&mut self, key: Key, text: &[u8], entry: PackedIds) -> Result<(), Halt> {
        self.chunk.clear();
        let fused = self.vocab.fused_unknown;
        // A chunk that was absent may have been added in the meantime.
        if !self.cache.append(entry, text, self.chunk) && !self.cache.append(self.cache.get(key), text, self.chunk) {
            self.chunk.clear();
            if S::merge(self, key, text)? || !self.cache.once.is_new(key) {
                self.cache.put(key, text, self.chunk, fused);
            }
        }
        // Unknown symbols on both sides of a cut are one.
        let again = fused.is_some() && self.out.last_id() == fused && self.chunk.first() == fused.as_ref();
        self.out.append(&self.chunk[usize::from(again)..])
    }
}

// --- Compact text --------------------------------------------------------------------------------

impl WordSource for Cutter<'_> {
    type Words = Words;
    const CHECK_BATCHES: usize = 1 << 6;

    fn best(&self) -> Best {
        self.joinable.best
    }

    fn length(&self) -> usize {
        self.length
    }

    #[inline(always)]
    fn next(&mut self, machine: impl Machine, words: &mut Words) -> Result<bool, Halt> {
        Ok(Cutter::next(self, machine, words))
    }

    #[inline(always)]
    fn append<O: Output>(
        encoder: &mut Encoder<Self, O>,
        machine: impl Machine,
        text: &[u8],
        batch: &Batch<Words>,
        lookup: &mut BatchLookup,
    ) -> Result<(), Halt> {
        let words = &batch.words;
        let to = if words.count > 0 { words.begin(0) } else { words.singles_end };
        // The key of a word counts the singles between it and the word before. No word of the batch is before the
        // first, so its singles are appended here.
        // SAFETY: `run_on` made room. The text is padded, and so are the ids of a batch.
        unsafe {
            if words.by_character {
                let ids = &words.characters.ids;
                // (The last character of a batch is left to the next one, because what follows decides whether it is a
                // single. So these singles may begin with the character before the batch.)
                let (mut from, to) = words.character_singles(0);
                let fused = encoder.vocab.fused_unknown;
                if from < to && fused.is_some() && Some(ids[from]) == fused && encoder.out.last_id() == fused {
                    from += 1; // neighbouring UNKNOWN characters are one
                }
                encoder.out.append_singles(Singles::new(0, to - from), Ids::<SOME>(&ids[from..]));
                encoder.append_words(text, batch, lookup, Ids::<SOME>(&ids[1..]))
            } else if machine.vector().is_some() {
                // (They begin in the batch, or with the byte before it. If there are none, `singles_begin` is where the
                // first word begins, which may be long before the batch.)
                let first = Ids::<FEW>(&words.ids[(words.singles_begin + FIRST).saturating_sub(words.first)..]);
                encoder.out.append_singles(Singles::new(0, to - words.singles_begin), first);
                encoder.append_words(text, batch, lookup, Ids::<FEW>(&words.ids[FIRST..]))
            } else {
                let source = Bytes { text: &text[words.first..], ids: &encoder.source.joinable.singles.ids };
                let first = Bytes { text: &text[words.singles_begin..], ..source };
                encoder.out.append_singles(Singles::new(0, to - words.singles_begin), first);
                encoder.append_words(text, batch, lookup, source)
            }
        }
    }

    /// A chunk of one character is remembered only when it occurs for the second time, because in some texts nearly
    /// every such character is a new one.
    #[cold]
    fn merge<O: Output>(encoder: &mut Encoder<Self, O>, _: Key, text: &[u8]) -> Result<bool, Halt> {
        let Encoder { vocab, check, chunk, .. } = encoder;
        let joinable = encoder.source.joinable;
        if let Some(unkeyed) = &joinable.unkeyed {
            append_parts(vocab, joinable, unkeyed, encoder.cache, text, *check, chunk)?;
        } else {
            merge_chunk(vocab, text, *check, &mut IdSink { vocab, text, compact: true, out: chunk })?;
        }
        Ok(utf8::length_by_first(text[0]) < text.len())
    }
}

/// Encode a compact text that is valid UTF-8, with a space in front of it if `prefix`. If the text turns out not to be
/// compact, do nothing and return false.
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
    let pending = pending.get_or_insert_with(Pending::new);
    let before = out.mark();
    // 1. The head of the text, with its prefix, and the tail, with its padding, are copied. The text between them is
    //    used in place. A short text is all head.
    let last_cut = |from: usize, to: usize| (from..to).rev().find(|&at| is_cut(joinable, text, at));
    let (mut head, mut tail) = (text.len(), text.len());
    if text.len() > SMALL {
        let first = if prefix { last_cut(1, SMALL) } else { Some(0) };
        let last = last_cut(text.len() - SMALL + 1, text.len() - PAD + 1);
        if let (Some(first), Some(last)) = (first, last) {
            (head, tail) = if first <= last { (first, last) } else { (head, tail) };
        }
    }
    // 2. Encode the parts. (If a closure did this, the encoder would be built from variables in memory: that took a
    //    fifth of the time of a short text.)
    let mut at = 0;
    while at < text.len() {
        let begin = at;
        let (padded, length) = if head <= begin && begin < tail {
            at = tail;
            (&text[begin..], tail - begin)
        } else {
            at = if begin < head { head } else { text.len() };
            let length = copy_padded(padded, prefix && begin == 0, &text[begin..at])?;
            (&padded[..], length)
        };
        debug_assert!(padded.len() >= length + PAD);
        let source = Cutter::new(vocab, joinable, padded, length);
        let mut encoder = Encoder { vocab, source, check, cache: &mut *cache, chunk: &mut *chunk, out: &mut *out };
        encoder.run(padded, pending)?;
        if !encoder.source.is_compact {
            out.reset(before);
            return Ok(false);
        }
    }
    Ok(true)
}

/// Copy a text, with a space in front of it if `prefix`, and pad it. Returns its length without the padding.
fn copy_padded(padded: &mut Vec<u8>, prefix: bool, text: &[u8]) -> Result<usize, Halt> {
    padded.clear();
    padded.grow(text.len() + 1 + PAD)?;
    padded.extend_from_slice(if prefix { b" " } else { b"" });
    padded.extend_from_slice(text);
    let length = padded.len();
    padded.resize(length + PAD, 0);
    Ok(length)
}

// --- Text that a pattern cuts --------------------------------------------------------------------

impl WordSource for PatternCutter<'_> {
    type Words = PatternWords;
    const CHECK_BATCHES: usize = 1 << 4;

    fn best(&self) -> Best {
        self.byte_level.best
    }

    fn length(&self) -> usize {
        self.text.len()
    }

    #[inline(always)]
    fn next(&mut self, machine: impl Machine, words: &mut PatternWords) -> Result<bool, Halt> {
        PatternCutter::next(self, machine, words)
    }

    fn append<O: Output>(
        encoder: &mut Encoder<Self, O>,
        _: impl Machine,
        text: &[u8],
        batch: &Batch<PatternWords>,
        lookup: &mut BatchLookup,
    ) -> Result<(), Halt> {
        let singles = Bytes { text: batch.words.text(text), ids: &encoder.source.byte_level.ids };
        // SAFETY: `run_on` made room. The text of a batch is padded.
        unsafe { encoder.append_words(text, batch, lookup, singles) }
    }

    /// A long chunk is remembered only when it occurs for the second time. Where long chunks cannot be cut, most never
    /// do, and the cache would be full of them.
    fn merge<O: Output>(encoder: &mut Encoder<Self, O>, key: Key, text: &[u8]) -> Result<bool, Halt> {
        let Encoder { vocab, check, chunk, .. } = encoder;
        let sink = &mut IdSink { vocab, text, compact: true, out: chunk };
        if key.is_part() {
            merge_chunk(vocab, text, *check, sink)?;
        } else {
            merge_pattern_chunk(vocab, encoder.source.byte_level, text, *check, sink)?;
        }
        Ok(text.len() <= MAX_CHUNK)
    }
}

/// Encode a text, which is UTF-8, with a byte-level vocabulary.
pub fn encode_split<O: Output>(
    vocab: &Vocab,
    byte_level: &ByteLevel,
    text: &[u8],
    check: Check,
    buffers: &mut Buffers,
    out: &mut O,
) -> Result<(), Halt> {
    let Buffers { cache, chunk, pending_by_pattern, .. } = buffers;
    cache.keep_more();
    check()?;
    let (pending, batch) = &mut **pending_by_pattern.get_or_insert_with(Box::default);
    let source = PatternCutter::new(byte_level, text, batch)?;
    Encoder { vocab, source, check, cache, chunk, out }.run(text, pending)
}

// --- User-defined pieces -------------------------------------------------------------------------
//
// From a new chunk to ids, part by part, if the vocabulary has user-defined pieces.

/// Append the ids of a chunk to `out`, which is empty. Its parts are looked up, too, and the parts of long chunks are
/// remembered. (A short chunk is remembered as a whole, so its parts are not.)
fn append_parts(
    vocab: &Vocab,
    joinable: &Joinable,
    unkeyed: &Unkeyed,
    cache: &mut Cache,
    text: &[u8],
    check: Check,
    out: &mut Vec<u32>,
) -> Result<(), Halt> {
    let (fused, singles) = (vocab.fused_unknown, &joinable.singles);
    for part in Parts::new(unkeyed, vocab.user_defined_compact.walk(text), text, check) {
        let Part { begin, end, is_key } = part?;
        let part = &text[begin..end];
        // 1. If every ASCII byte becomes exactly one id (`looked_up` is `None`), a table has these ids. A user-defined
        //    piece is never merged.
        if let (&[byte], None) = (part, &singles.looked_up) {
            out.try_push(singles.ids[usize::from(byte)])?;
            continue;
        }
        if is_key {
            out.grow(1)?;
            out.extend(vocab.find(part));
            continue;
        }
        // 2. Look up any other part. Unknown symbols on both sides of a cut are one.
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
        // 3. Merge it if it is new.
        merge_chunk(vocab, part, check, &mut IdSink { vocab, text: part, compact: true, out })?;
        if looked_up && text.len() > MAX_CHUNK && !continues {
            cache.put(key, part, &out[before..], fused);
        }
    }
    Ok(())
}
