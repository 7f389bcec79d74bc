//! Many texts, encoded in runs of texts by several threads.

use std::ops::Range;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use crate::cut::words::is_cut;
use crate::encode::align::{AlignOptions, EncodedTexts};
use crate::encode::encoder::{encode_compact, Scratch};
use crate::encode::engine::{Ends, Engine, Input};
use crate::encode::segment::{encode_normalized, Segmentation};
use crate::error::Halt;
use crate::memory::{copied, with_room, Grow};
use crate::text::utf8;
use crate::watch::{in_parts, may_start_threads, Check, WAIT};

/// What is wanted of many texts.
#[derive(Clone, Copy)]
pub enum Wanted {
    /// The ids of each text, and those to put around them.
    Ids(Ends),
    /// The ids of each text, with a span for each id.
    Spans(AlignOptions),
}

/// Receives the results of runs of texts.
pub trait Consumer<R> {
    /// Take the result of a run whose first text has this index, and say whether to go on.
    fn take(&mut self, first: usize, result: R) -> bool;
    /// Do work that takes time. A consumer may release a lock meanwhile.
    fn meanwhile<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        work()
    }
}

/// Keeps all results.
impl<R> Consumer<R> for Vec<(usize, R)> {
    fn take(&mut self, first: usize, result: R) -> bool {
        self.push((first, result));
        true
    }
}

/// Divide texts into runs, a few dozen for each thread. (Each text counts as 16 bytes more than it has, because even an
/// empty one takes some time.)
fn runs(texts: &(impl Texts + ?Sized), threads: usize) -> Result<Vec<Range<usize>>, Halt> {
    let total = size(texts) + texts.count() * 16;
    let size = (total / (threads * 64)).clamp(1 << 12, 1 << 18);
    let mut runs = Vec::new();
    let (mut begin, mut bytes) = (0, 0);
    for i in 0..texts.count() {
        bytes += texts.at(i).0.len() + 16;
        if bytes >= size {
            runs.grow(2)?;
            runs.push(begin..i + 1);
            (begin, bytes) = (i + 1, 0);
        }
    }
    if begin < texts.count() {
        runs.push(begin..texts.count());
    }
    Ok(runs)
}

impl Engine {
    /// Give the ids of many texts to `consumer`, run by run, in any order.
    pub fn encode_batch(
        &self,
        texts: &(impl Texts + ?Sized),
        threads: usize,
        wanted: Wanted,
        check: Check,
        consumer: &mut impl Consumer<EncodedTexts>,
    ) -> Result<(), Halt> {
        let encode = |run: Range<usize>, check: Check, scratch: &mut Scratch| {
            // The ids are written to memory that was used before, and are copied once it is known how many there are:
            // for batches of lists this is 1.06 times as fast as memory that is new to the processor's caches.
            let mut all = EncodedTexts { ids: std::mem::take(&mut scratch.ids), ..EncodedTexts::default() };
            all.ids.clear();
            let done = self.append_run(texts, run, wanted, check, scratch, &mut all);
            scratch.ids = std::mem::take(&mut all.ids);
            done?;
            all.ids = copied(&scratch.ids)?;
            Ok(all)
        };
        self.in_runs(texts, threads, check, encode, consumer)
    }

    /// Append what is wanted of the texts of a run.
    pub(crate) fn append_run(
        &self,
        texts: &(impl Texts + ?Sized),
        run: Range<usize>,
        wanted: Wanted,
        check: Check,
        scratch: &mut Scratch,
        out: &mut EncodedTexts,
    ) -> Result<(), Halt> {
        out.lengths.grow(run.len())?;
        for index in run {
            let (input, before) = (texts.at(index), out.ids.len());
            match wanted {
                Wanted::Ids(ends) => self.append_between(input, ends, check, scratch, &mut out.ids)?,
                Wanted::Spans(options) => self.align_to(input, index, options, check, scratch, out)?,
            }
            out.lengths.push(out.ids.len() - before);
        }
        Ok(())
    }

    /// Like `encode_batch`, but `consumer` gets the number of ids of each text.
    pub fn count_batch(
        &self,
        texts: &(impl Texts + ?Sized),
        threads: usize,
        check: Check,
        consumer: &mut impl Consumer<Vec<usize>>,
    ) -> Result<(), Halt> {
        let count = |run: Range<usize>, check: Check, scratch: &mut Scratch| {
            let mut counts = with_room(run.len())?;
            for (text, valid) in run.map(|index| texts.at(index)) {
                counts.push(self.count(text, valid, check, scratch)?);
            }
            Ok(counts)
        };
        self.in_runs(texts, threads, check, count, consumer)
    }

    /// Do some work for each run of texts, and give the results to `consumer`, in any order.
    ///
    /// Each of the other threads takes the next run, again and again. This thread hands the results to the consumer
    /// and, when there are none, does a run itself. Only this thread may make Python's lists of ids, which costs no
    /// time as long as the other threads have work. Only this thread asks `check` whether to go on; the others stop
    /// when it does.
    pub(crate) fn in_runs<R: Send, C: Consumer<R>>(
        &self,
        texts: &(impl Texts + ?Sized),
        threads: usize,
        check: Check,
        work: impl Fn(Range<usize>, Check, &mut Scratch) -> Result<R, Halt> + Sync,
        consumer: &mut C,
    ) -> Result<(), Halt> {
        // 1. What threads share: the next run, the results that are done, and whether to stop.
        let runs = runs(texts, threads)?;
        let next = AtomicUsize::new(0);
        let take = || runs.get(next.fetch_add(1, Ordering::Relaxed));
        let done = Mutex::new(Vec::new());
        let more = Condvar::new();
        let stopped = AtomicBool::new(false);
        // A thread that panics must not leave this one waiting.
        let failed = AtomicBool::new(false);
        let lock = || done.lock().unwrap_or_else(PoisonError::into_inner);
        // 2. What the other threads do, until no run is left.
        let go_on = || if stopped.load(Ordering::Relaxed) { Err(Halt::Stopped) } else { Ok(()) };
        let encode = |run: &Range<usize>, check: Check| {
            let result = self.with_scratch(|scratch| work(run.clone(), check, scratch));
            (run.start, result.and_then(|result| result))
        };
        let worker = || {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                while let Some(run) = take() {
                    let result = encode(run, &go_on);
                    lock().push(result);
                    more.notify_one();
                }
            }));
            if let Err(panic) = outcome {
                let guard = lock(); // without this lock, the consumer might check, miss the notification, and wait
                failed.store(true, Ordering::Release);
                drop(guard);
                more.notify_one();
                resume_unwind(panic);
            }
        };
        // 3. What this thread does: hand over what is done, or do a run, or wait.
        let wait = || {
            let mut done = lock();
            while done.is_empty() && !failed.load(Ordering::Acquire) {
                done = more.wait_timeout(done, WAIT).unwrap_or_else(PoisonError::into_inner).0;
                check()?;
            }
            Ok(done.pop())
        };
        let mut hand_over = || {
            let mut left = runs.len();
            while left > 0 {
                let mut results = std::mem::take(&mut *lock());
                if results.is_empty() {
                    results.extend(consumer.meanwhile(|| match take() {
                        Some(run) => Ok(Some(encode(run, check))),
                        None => wait(),
                    })?);
                    if results.is_empty() {
                        return Ok(()); // the scope passes the panic on
                    }
                }
                left -= results.len();
                for (first, result) in results {
                    if !consumer.take(first, result?) {
                        return Err(Halt::Stopped);
                    }
                }
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads = threads.min(runs.len());
            for _ in 1..if threads > 1 && may_start_threads() { threads } else { 1 } {
                // If no thread can be started, this one does everything.
                let _ = std::thread::Builder::new().spawn_scoped(scope, worker);
            }
            let outcome = hand_over();
            if outcome.is_err() {
                next.store(runs.len(), Ordering::Relaxed); // no more runs are begun
                stopped.store(true, Ordering::Relaxed);
            }
            outcome
        })
    }
}

// --- Many texts ----------------------------------------------------------------------------------
//
// A list of texts, or slices of one piece of memory, as the columns of tables have them.

/// Many texts that any thread may ask for.
///
/// (A list of the slices of a column would take 24 bytes for each text, a third of what short texts themselves take.)
pub trait Texts: Sync {
    /// How many there are.
    fn count(&self) -> usize;
    /// The text with this index, and whether it is known to be UTF-8.
    fn at(&self, index: usize) -> Input<'_>;
}

impl Texts for Vec<Input<'_>> {
    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn at(&self, index: usize) -> Input<'_> {
        self[index]
    }
}

/// Slices of one piece of memory, by places of 32 or 64 bits, as Arrow has them. They are not known to be UTF-8.
pub struct Slices<'a, T> {
    data: &'a [u8],
    begins: &'a [T],
    ends: &'a [T],
}

impl<'a, T: Copy + TryInto<usize>> Slices<'a, T> {
    /// Slices with these begins and ends; `None` if one of them is not within the memory.
    ///
    /// ```
    /// use cpbpe::{Slices, Texts};
    /// let slices = Slices::new(b"Hi you", &[0i32, 3, 3], &[2, 3, 6]).unwrap();
    /// assert_eq!((slices.count(), slices.at(0).0, slices.at(1).0, slices.at(2).0), (3, &b"Hi"[..], &b""[..], &b"you"[..]));
    /// assert!(Slices::new(b"Hi", &[0i64], &[3]).is_none() && Slices::new(b"Hi", &[2i64], &[1]).is_none());
    /// assert!(Slices::new(b"Hi", &[-1i64], &[1]).is_none() && Slices::new(b"Hi", &[0i64], &[]).is_none());
    /// ```
    pub fn new(data: &'a [u8], begins: &'a [T], ends: &'a [T]) -> Option<Slices<'a, T>> {
        let within = |(begin, end): (&T, &T)| {
            let [begin, end] = [begin, end].map(|&place| place.try_into().ok());
            begin.is_some() && begin <= end && end <= Some(data.len())
        };
        let all = begins.len() == ends.len() && begins.iter().zip(ends).all(within);
        all.then_some(Slices { data, begins, ends })
    }
}

impl<T: Copy + Sync + TryInto<usize>> Texts for Slices<'_, T> {
    fn count(&self) -> usize {
        self.begins.len()
    }

    #[inline]
    fn at(&self, index: usize) -> Input<'_> {
        let place = |places: &[T]| places[index].try_into().unwrap_or(0);
        (&self.data[place(self.begins)..place(self.ends)], false)
    }
}

/// How many bytes texts have in total.
pub fn size(texts: &(impl Texts + ?Sized)) -> usize {
    size_of(texts, 0..texts.count())
}

/// How many bytes some of them have.
pub fn size_of(texts: &(impl Texts + ?Sized), some: Range<usize>) -> usize {
    some.map(|index| texts.at(index).0.len()).sum()
}

// Many short texts in one piece of memory: its lines.

/// The lines of a text, without the empty ones.
pub struct Lines<'a> {
    /// The lines that are not empty, without their newlines. They are not known to be UTF-8.
    pub texts: Vec<(&'a [u8], bool)>,
    /// The numbers of the empty lines, from 0.
    pub empty: Vec<i64>,
}

impl<'a> Lines<'a> {
    /// Cut a text after each newline; the last line may lack its own.
    pub fn of(data: &'a [u8]) -> Result<Lines<'a>, Halt> {
        let (mut texts, mut empty) = (with_room(data.len() / 64)?, Vec::new());
        let (mut begin, mut number) = (0, 0);
        let mut add = |line: &'a [u8]| -> Result<(), Halt> {
            if line.is_empty() {
                empty.try_push(number)?;
            } else {
                texts.try_push((line, false))?;
            }
            number += 1;
            Ok(())
        };
        for end in memchr::memchr_iter(b'\n', data) {
            add(&data[begin..end])?;
            begin = end + 1;
        }
        if begin < data.len() {
            add(&data[begin..])?;
        }
        Ok(Lines { texts, empty })
    }
}

// --- One long text -------------------------------------------------------------------------------

/// A part shorter than this is not worth a thread.
const MIN_PART: usize = 1 << 16;

impl Engine {
    /// The ids of one long text, by several threads, each with a part that begins and ends where nothing can merge.
    pub fn encode_parallel(&self, text: &[u8], valid: bool, threads: usize, check: Check) -> Result<Vec<u32>, Halt> {
        let vocab = &self.vocab;
        let (joinable, byte_level) = (vocab.joinable.is_some(), vocab.byte_level.is_some());
        if text.len() / MIN_PART < 2 || threads < 2 || !(joinable || byte_level) {
            return self.with_scratch(|scratch| {
                self.encode(text, valid, check, scratch)?;
                Ok(std::mem::take(&mut scratch.ids))
            })?;
        }
        // 1. Bring the text into the form in which it is segmented. A plain text is in that form already, unless it
        //    needs a dummy prefix (in byte-level models) or has a U+2581 (in others). Normalizing takes a tenth of the
        //    time, and is not divided among the threads.
        let mut normalized = Vec::new();
        let as_it_is = if byte_level {
            !self.normalizer.options.add_dummy_prefix
        } else {
            memchr::memmem::find(text, utf8::SPACE).is_none()
        };
        let (whole, segmentation, prefix) = if as_it_is && self.is_plain(text, valid) {
            (text, Segmentation::of(vocab, true), joinable && self.normalizer.prefixes(text))
        } else {
            let segmentation = self.normalized((text, valid), check, &mut normalized, &mut ())?;
            (normalized.as_slice(), segmentation, false)
        };
        // 2. Let each thread encode a part.
        let parts = match segmentation {
            Segmentation::Chunks(joinable) => {
                parts(whole, threads, |from| (from..whole.len()).find(|&at| is_cut(joinable, whole, at)))
            }
            Segmentation::Split(byte_level) => {
                let valid = String::from_utf8_lossy(whole); // (it is, and nothing is copied)
                parts(whole, threads, |from| byte_level.splitter.as_ref()?.safe_cut(&valid, from, whole.len()))
            }
            Segmentation::Whole { .. } => vec![whole],
        };
        let parts: Vec<(usize, &[u8])> = parts.into_iter().enumerate().collect();
        let results = in_parts(&parts, check, |(number, part), check| {
            self.with_scratch(|scratch| {
                let Scratch { buffers, ids } = scratch;
                match segmentation {
                    Segmentation::Chunks(joinable) if prefix && number == 0 => {
                        let compact = encode_compact(vocab, joinable, part, true, check, buffers, ids)?;
                        debug_assert!(compact);
                    }
                    _ => encode_normalized(vocab, segmentation, part, check, buffers, ids)?,
                }
                Ok::<_, Halt>(std::mem::take(ids))
            })?
        })?;
        // 3. Join all ids.
        let mut ids: Vec<u32> = Vec::new();
        ids.grow(results.iter().map(Vec::len).sum())?;
        let fused = vocab.fused_unknown;
        for part in results {
            // Unknown symbols on both sides of a cut are one token.
            let again = fused.is_some() && ids.last() == fused.as_ref() && part.first() == fused.as_ref();
            ids.extend_from_slice(&part[usize::from(again)..]);
        }
        Ok(ids)
    }
}

/// Cut a text into as many parts as there are threads, or fewer, so that none is too short. `next_cut` finds the first
/// cut from a given place on.
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

#[cfg(test)]
mod tests {
    use super::Lines;

    fn lines(data: &[u8]) -> (Vec<&[u8]>, Vec<i64>) {
        let found = Lines::of(data).unwrap();
        (found.texts.into_iter().map(|(text, _)| text).collect(), found.empty)
    }

    #[test]
    fn a_text_has_lines() {
        assert_eq!(lines(b""), (vec![], vec![]));
        assert_eq!(lines(b"\n"), (vec![], vec![0]));
        assert_eq!(lines(b"a"), (vec![&b"a"[..]], vec![]));
        assert_eq!(lines(b"a\n\nb\r\n\n"), (vec![&b"a"[..], &b"b\r"[..]], vec![1, 3]));
        assert_eq!(lines(b"\n\na"), (vec![&b"a"[..]], vec![0, 1]));
    }
}
