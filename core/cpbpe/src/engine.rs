//! One model: its vocabulary, its normalizers, and the scratch memory that calls borrow.

use std::ops::Range;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::ScopedJoinHandle;

use crate::chunk;
use crate::decode::{self, Beginning, Texts};
use crate::encode::{self, Scratch};
use crate::lazy::Lazy;
use crate::model;
use crate::normalize::Normalizer;
use crate::tokens::{self, Token};
use crate::utf8;
use crate::vocab::Vocab;

/// How many scratches are kept for later calls. More calls at once make more, and drop them.
const SPARE: usize = 8;
/// A text shorter than this is not worth a thread.
const MIN_PART: usize = 1 << 16;
/// A result larger than this is not kept for the next call.
const MAX_KEPT: usize = 1 << 20;

/// Everything that is known of a model. Immutable, except for what it remembers.
pub struct Engine {
    /// The pieces.
    pub vocab: Arc<Vocab>,
    /// Special tokens that were added to the model, and their ids.
    pub added: Arc<Vec<(Vec<u8>, u32)>>,
    normalizer: Normalizer,
    denormalizer: Option<Arc<Normalizer>>,
    /// Whether decoding keeps a space at the beginning.
    keep_space: bool,
    texts: Arc<Lazy<Texts>>,
    spare: Arc<Mutex<Vec<Scratch>>>,
}

/// A text with its tokens.
pub struct Aligned {
    /// The tokens; their spans are of `text`.
    pub tokens: Vec<Token>,
    /// The normalized text.
    pub text: Vec<u8>,
    /// Whether it is compact.
    pub compact: bool,
    /// Where each byte of it, and its end, came from.
    pub origins: Vec<usize>,
}

/// Ids of a run of texts, one after the other.
pub struct Batch {
    /// Which text comes first.
    pub first: usize,
    /// The ids.
    pub ids: Vec<u32>,
    /// How many each text has.
    pub lengths: Vec<usize>,
}

/// Who gets the ids of `Engine::encode_batch`.
pub trait Consumer {
    /// Take some, and say whether to go on.
    fn take(&mut self, batch: Batch) -> bool;
    /// Called with work that takes time.
    fn meanwhile<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R;
}

/// Keeps all.
impl Consumer for Vec<Batch> {
    fn take(&mut self, batch: Batch) -> bool {
        self.push(batch);
        true
    }

    fn meanwhile<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        work()
    }
}

/// Runs of texts, so that a thread comes back for more a few dozen times.
fn runs(texts: &[(&[u8], bool)], threads: usize) -> Vec<Range<usize>> {
    let total: usize = texts.iter().map(|(text, _)| text.len() + 16).sum();
    let size = (total / (threads * 64)).max(1 << 12);
    let mut runs = Vec::new();
    let (mut begin, mut bytes) = (0, 0);
    for (i, (text, _)) in texts.iter().enumerate() {
        bytes += text.len() + 16;
        if bytes >= size {
            runs.push(begin..i + 1);
            (begin, bytes) = (i + 1, 0);
        }
    }
    if begin < texts.len() {
        runs.push(begin..texts.len());
    }
    runs
}

impl Engine {
    /// Read and check a model file; `None` if it is not a valid BPE model.
    pub fn from_model(data: &[u8]) -> Option<Engine> {
        let mut columns = model::read(data)?;
        let normalizer = Normalizer::new(columns.normalizer.clone())?;
        columns.normalizer.charsmap = Vec::new();
        let denormalizer = match columns.denormalizer.take() {
            Some(options) if !options.charsmap.is_empty() => Some(Arc::new(Normalizer::new(options)?)),
            _ => None,
        };
        let added = Arc::new(std::mem::take(&mut columns.added));
        let vocab = Arc::new(Vocab::new(columns)?);
        let (texts, spare) = Default::default();
        Some(Engine { vocab, added, normalizer, denormalizer, keep_space: false, texts, spare })
    }

    /// The same engine with other habits: with or without a dummy prefix, keeping a space at the beginning when decoding,
    /// taking text as normalized (`raw`). What is remembered is shared, because it does not depend on them.
    pub fn variant(&self, prefix: Option<bool>, keep_space: bool, raw: bool) -> Engine {
        Engine {
            vocab: self.vocab.clone(),
            added: self.added.clone(),
            normalizer: self.normalizer.variant(prefix, raw),
            denormalizer: self.denormalizer.clone(),
            keep_space,
            texts: self.texts.clone(),
            spare: self.spare.clone(),
        }
    }

    /// Lend a scratch. Nobody ever waits: when the spare ones cannot be reached, a new one is made; so a process
    /// that was forked while another thread held the lock does not hang.
    pub fn with_scratch<R>(&self, work: impl FnOnce(&mut Scratch) -> R) -> R {
        let spare = self.spare.try_lock().ok().and_then(|mut spare| spare.pop());
        let mut scratch = spare.unwrap_or_else(|| Scratch::new(self.vocab.len()));
        scratch.ids.clear();
        let result = work(&mut scratch);
        scratch.trim(MAX_KEPT);
        if let Ok(mut spare) = self.spare.try_lock() {
            if spare.len() < SPARE {
                spare.push(scratch);
            }
        }
        result
    }

    /// Append the ids of a text to `scratch.ids`. `valid` says that it is known to be UTF-8.
    pub fn encode(&self, text: &[u8], valid: bool, scratch: &mut Scratch) {
        if text.is_empty() {
            return;
        }
        let vocab = &self.vocab;
        let words = !vocab.user_defined.is_empty();
        match &vocab.joinable {
            Some(joinable) if self.normalizer.is_plain() && (valid || std::str::from_utf8(text).is_ok()) => {
                let prefix = self.normalizer.options.add_dummy_prefix;
                if !words && encode::encode_compact(vocab, joinable, text, prefix, scratch) {
                    return;
                }
                let mut compact = std::mem::take(&mut scratch.compact);
                compact.clear();
                compact.extend_from_slice(if prefix { b" " } else { b"" });
                compact.extend_from_slice(text);
                encode::compact(&mut compact, None);
                if words {
                    encode::encode_with_words(vocab, joinable, &compact, scratch);
                } else {
                    let done = encode::encode_compact(vocab, joinable, &compact, false, scratch);
                    debug_assert!(done);
                }
                scratch.compact = compact;
            }
            _ => self.encode_any(text, scratch),
        }
    }

    /// The way that always works: normalize, then segment.
    fn encode_any(&self, text: &[u8], scratch: &mut Scratch) {
        let vocab = &self.vocab;
        let mut normalized = std::mem::take(&mut scratch.normalized);
        normalized.clear();
        self.normalizer.normalize(text, self.words(), false, &mut normalized, &mut ());
        let valid = vocab.utf8 && std::str::from_utf8(&normalized).is_ok();
        if valid && vocab.swapped {
            encode::compact(&mut normalized, None);
        }
        match &vocab.joinable {
            Some(joinable) if valid && vocab.user_defined.is_empty() => {
                let done = encode::encode_compact(vocab, joinable, &normalized, false, scratch);
                debug_assert!(done);
            }
            Some(joinable) if valid => encode::encode_with_words(vocab, joinable, &normalized, scratch),
            _ => encode::encode_whole(vocab, &normalized, valid, &mut scratch.ids),
        }
        scratch.normalized = normalized;
    }

    fn words(&self) -> Option<&crate::words::Words> {
        Some(&self.vocab.user_defined).filter(|words| !words.is_empty())
    }

    /// The ids of one long text, by several threads, each with a part that begins and ends where nothing can merge.
    pub fn encode_parallel(&self, text: &[u8], valid: bool, threads: usize) -> Vec<u32> {
        let parts = self.parts(text, valid, threads);
        if parts.len() < 2 {
            return self.with_scratch(|scratch| {
                self.encode(text, valid, scratch);
                std::mem::take(&mut scratch.ids)
            });
        }
        let vocab = &self.vocab;
        let Some(joinable) = &vocab.joinable else { return Vec::new() };
        let prefix = self.normalizer.options.add_dummy_prefix;
        let encode = |part: &[u8], prefix: bool| {
            self.with_scratch(|scratch| {
                let compact = encode::encode_compact(vocab, joinable, part, prefix, scratch);
                debug_assert!(compact);
                std::mem::take(&mut scratch.ids)
            })
        };
        let results: Vec<Vec<u32>> = std::thread::scope(|scope| {
            let start = |part| {
                let work = move || encode(part, false);
                // Without another thread this one does it, later.
                std::thread::Builder::new().spawn_scoped(scope, work).map_err(|_| part)
            };
            let workers: Vec<_> = parts[1..].iter().copied().map(start).collect();
            let mut results = vec![encode(parts[0], prefix)];
            for worker in workers {
                results.push(match worker.map(ScopedJoinHandle::join) {
                    Ok(Ok(ids)) => ids,
                    Ok(Err(panic)) => resume_unwind(panic),
                    Err(part) => encode(part, false),
                });
            }
            results
        });
        let mut ids: Vec<u32> = Vec::with_capacity(results.iter().map(Vec::len).sum());
        let fuse = if vocab.byte_ids.is_none() { vocab.unk } else { None };
        for part in results {
            // Unknown symbols on both sides of a cut are one.
            let again = fuse.is_some() && ids.last() == fuse.as_ref() && part.first() == fuse.as_ref();
            ids.extend_from_slice(&part[usize::from(again)..]);
        }
        ids
    }

    /// Cut a text into as many parts as there are threads, if its parts can be encoded as they are.
    fn parts<'a>(&self, text: &'a [u8], valid: bool, threads: usize) -> Vec<&'a [u8]> {
        let Some(joinable) = &self.vocab.joinable else { return vec![text] };
        if text.len() / MIN_PART < 2
            || threads < 2
            || !self.normalizer.is_plain()
            || !self.vocab.user_defined.is_empty()
            || !(valid || std::str::from_utf8(text).is_ok())
            || memchr::memmem::find(text, utf8::SPACE).is_some()
        {
            return vec![text];
        }
        let count = threads.min(text.len() / MIN_PART);
        let mut parts = Vec::with_capacity(count);
        let mut begin = 0;
        for i in 1..count {
            let from = (text.len() / count * i).max(begin + 1);
            if let Some(cut) = (from..text.len()).find(|&at| chunk::is_cut(joinable, text, at)) {
                parts.push(&text[begin..cut]);
                begin = cut;
            }
        }
        parts.push(&text[begin..]);
        parts
    }

    /// Give the ids of many texts to `consumer`, in runs of texts, and in any order.
    ///
    /// Other threads take the next run that nobody has taken. This one gives out what is done, and when there is
    /// nothing to give out, it takes a run itself; so making lists of ids, which only this thread may do, costs
    /// no time as long as the others have something to do.
    pub fn encode_batch<C: Consumer>(&self, texts: &[(&[u8], bool)], threads: usize, consumer: &mut C) {
        let runs = runs(texts, threads);
        let encode = |run: &Range<usize>, scratch: &mut Scratch| {
            let mut batch = Batch { first: run.start, ids: Vec::new(), lengths: Vec::with_capacity(run.len()) };
            for &(text, valid) in &texts[run.clone()] {
                scratch.ids.clear();
                self.encode(text, valid, scratch);
                batch.lengths.push(scratch.ids.len());
                batch.ids.extend_from_slice(&scratch.ids);
            }
            batch
        };
        let next = AtomicUsize::new(0);
        let take = || runs.get(next.fetch_add(1, Ordering::Relaxed));
        let done = Mutex::new(Vec::new());
        let more = Condvar::new();
        // A thread that panics must not leave this one waiting.
        let failed = AtomicBool::new(false);
        let lock = || done.lock().unwrap_or_else(PoisonError::into_inner);
        let work = || {
            let result = catch_unwind(AssertUnwindSafe(|| {
                self.with_scratch(|scratch| {
                    while let Some(run) = take() {
                        let batch = encode(run, scratch);
                        lock().push(batch);
                        more.notify_one();
                    }
                });
            }));
            if let Err(panic) = result {
                failed.store(true, Ordering::Release);
                more.notify_one();
                resume_unwind(panic);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads.min(runs.len()) {
                // Without another thread this one does everything.
                let _ = std::thread::Builder::new().spawn_scoped(scope, work);
            }
            let mut left = runs.len();
            while left > 0 {
                let mut batches = std::mem::take(&mut *lock());
                if batches.is_empty() {
                    batches.extend(consumer.meanwhile(|| match take() {
                        Some(run) => Some(self.with_scratch(|scratch| encode(run, scratch))),
                        None => {
                            let mut done = lock();
                            while done.is_empty() && !failed.load(Ordering::Acquire) {
                                done = more.wait(done).unwrap_or_else(PoisonError::into_inner);
                            }
                            done.pop()
                        }
                    }));
                    if batches.is_empty() {
                        return; // the scope passes the panic on
                    }
                }
                left -= batches.len();
                for batch in batches {
                    if !consumer.take(batch) {
                        next.store(runs.len(), Ordering::Relaxed); // nothing more is begun
                        return;
                    }
                }
            }
        });
    }

    /// The tokens of a text with their spans. With `dropout` every merge is left out with a chance, by a seed.
    pub fn tokens(&self, text: &[u8], dropout: Option<(f64, u64)>) -> Aligned {
        let (mut normalized, mut origins) = self.origins(text);
        let compact = self.vocab.utf8 && std::str::from_utf8(&normalized).is_ok();
        if compact && self.vocab.swapped {
            encode::compact(&mut normalized, Some(&mut origins));
        }
        let tokens = match dropout {
            None => {
                self.spans(&normalized, compact).unwrap_or_else(|| tokens::tokens(&self.vocab, &normalized, compact))
            }
            Some((alpha, seed)) => tokens::sample(&self.vocab, &normalized, compact, alpha, seed),
        };
        Aligned { tokens, text: normalized, compact, origins }
    }

    /// The tokens of a segmented text by way of what is remembered of its chunks; `None` if that does not do.
    fn spans(&self, text: &[u8], compact: bool) -> Option<Vec<Token>> {
        let joinable = self.vocab.joinable.as_ref().filter(|_| compact)?;
        self.with_scratch(|scratch| {
            if self.vocab.user_defined.is_empty() {
                let done = encode::encode_compact(&self.vocab, joinable, text, false, scratch);
                debug_assert!(done);
            } else {
                encode::encode_with_words(&self.vocab, joinable, text, scratch);
            }
            tokens::spans(&self.vocab, text, &scratch.ids)
        })
    }

    /// The text as it is segmented, and for each of its bytes, and its end, the place that it came from.
    pub fn origins(&self, text: &[u8]) -> (Vec<u8>, Vec<usize>) {
        let (mut normalized, mut origins) = (Vec::new(), Vec::new());
        self.normalizer.normalize(text, self.words(), false, &mut normalized, &mut origins);
        (normalized, origins)
    }

    /// The text as it is segmented.
    pub fn normalize(&self, text: &[u8]) -> Vec<u8> {
        let mut normalized = Vec::new();
        self.normalizer.normalize(text, self.words(), false, &mut normalized, &mut ());
        normalized
    }

    fn beginning(&self) -> Beginning {
        let options = &self.normalizer.options;
        Beginning {
            drops_space: !self.keep_space && (options.add_dummy_prefix || options.remove_extra_whitespaces),
            drops_all: options.remove_extra_whitespaces,
        }
    }

    /// The text of ids, or the position of the first that is outside the vocabulary.
    pub fn decode(&self, ids: &[u32], keep_invalid: bool) -> Result<Vec<u8>, usize> {
        let texts = self.texts.get_or_make(|| Texts::new(&self.vocab));
        let mut text = Vec::new();
        texts.decode(&self.vocab, ids, self.beginning(), keep_invalid, &mut text)?;
        Ok(self.denormalize(text, keep_invalid))
    }

    /// The texts of many sequences of ids; `None` if some id is outside the vocabulary.
    pub fn decode_batch(&self, batch: &[Vec<u32>], threads: usize) -> Option<Vec<Vec<u8>>> {
        let one = |ids: &Vec<u32>| self.decode(ids, false).ok();
        let total: usize = batch.iter().map(Vec::len).sum();
        if threads < 2 || total < MIN_PART {
            return batch.iter().map(one).collect();
        }
        let size = batch.len().div_ceil(threads);
        let many = |part: &[Vec<u32>]| part.iter().map(one).collect::<Option<Vec<_>>>();
        std::thread::scope(|scope| {
            let start = |part| {
                let work = move || many(part);
                std::thread::Builder::new().spawn_scoped(scope, work).map_err(|_| part)
            };
            let (first, rest) = batch.split_at(size);
            let workers: Vec<_> = rest.chunks(size).map(start).collect();
            let mut texts = many(first)?;
            for worker in workers {
                texts.extend(match worker.map(ScopedJoinHandle::join) {
                    Ok(Ok(part)) => part?,
                    Ok(Err(panic)) => resume_unwind(panic),
                    Err(part) => many(part)?,
                });
            }
            Some(texts)
        })
    }

    /// The text of pieces.
    pub fn decode_pieces<'a>(&self, pieces: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
        let mut text = Vec::new();
        decode::decode_pieces(&self.vocab, pieces, self.beginning(), &mut text);
        self.denormalize(text, false)
    }

    fn denormalize(&self, text: Vec<u8>, keep_invalid: bool) -> Vec<u8> {
        let Some(denormalizer) = &self.denormalizer else { return text };
        let mut out = Vec::new();
        denormalizer.normalize(&text, None, keep_invalid, &mut out, &mut ());
        out
    }
}
