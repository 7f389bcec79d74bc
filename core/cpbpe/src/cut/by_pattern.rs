//! From text to words with a byte-level vocabulary: a pattern cuts the text into chunks. A chunk of one byte is a
//! *single*, all others are words. Only a long chunk is cut further, where nothing merges (see `vocab/byte_level.rs`).
//! Then its parts are the words and singles.

use crate::cache::{self, Homes, Key, Singles, MAX_CHUNK, STEP};
use crate::cut::WordBatch;
use crate::error::{Error, Halt};
use crate::machine::Machine;
use crate::memory::Grow;
use crate::split::{Batch, Chunks};
use crate::vocab::byte_level::PARTS;
use crate::vocab::ByteLevel;
use crate::watch::Check;

/// How many words are looked up together.
pub const BATCH: usize = 256;
/// At this many bytes, a batch takes no more, because the places of singles have 16 bits. (What it takes last, up to
/// `machine::CHUNKS` short chunks, or a chunk or part of any length, may go on for longer.)
const MAX_BYTES: u32 = 1 << 14;
/// How many bytes after a chunk may be read.
const PAD: usize = STEP;
const _: () = assert!(PAD >= 16); // (making a key reads this many)

/// The words of a batch.
pub struct PatternWords {
    /// Where each word begins and ends, counted from `first`.
    begins: [u32; BATCH + 1],
    ends: [u32; BATCH + 1],
    /// Which words are parts of chunks, if that matters for what they become; and whether any word is.
    parts: [bool; BATCH + 1],
    has_parts: bool,
    /// Where some parts of a long chunk end. (The array is a field so that it need not be cleared each time, which took
    /// a thirtieth of the time.)
    part_ends: [usize; PARTS + 1],
    /// How many words there are.
    count: usize,
    /// Where the batch begins in the text, and where it ends.
    first: usize,
    end: usize,
    /// A copy of the text of a batch near the end of the whole text, followed by `PAD` zeros.
    padded: Vec<u8>,
}

impl Default for PatternWords {
    fn default() -> PatternWords {
        PatternWords {
            begins: [0; BATCH + 1],
            ends: [0; BATCH + 1],
            parts: [false; BATCH + 1],
            has_parts: false,
            part_ends: [0; PARTS + 1],
            count: 0,
            first: 0,
            end: 0,
            padded: Vec::new(),
        }
    }
}

impl PatternWords {
    /// Collect words from chunks until there are enough. The first chunk begins at `begin`; or, if `inside` says that
    /// an earlier batch has taken some parts of it, its other parts do. The chunks end at `ends`, counted from `base`.
    /// On return, `inside` says whether this batch has taken some parts of the chunk that comes next. Return how many
    /// chunks are complete.
    #[inline(always)]
    fn take(
        &mut self,
        machine: impl Machine,
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
        let first = (begin - base) as u32; // where the batch begins, counted from `base`
        let (mut from, mut taken) = (first, 0);
        while let (Some(&end), true) = (ends.get(taken), self.count < BATCH && from - first < MAX_BYTES) {
            // 1. If there are `machine::CHUNKS` more, and room for them, take them together, up to the first long one.
            let (begins, places) =
                (self.begins[self.count..].first_chunk_mut(), self.ends[self.count..].first_chunk_mut());
            if let (Some(chunks), Some(begins), Some(places), false) =
                (ends[taken..].first_chunk(), begins, places, *inside)
            {
                let [chunks, words] = machine.words(chunks, from, first, MAX_CHUNK as u32, [begins, places]);
                if chunks > 0 {
                    taken += chunks;
                    self.count += words;
                    from = ends[taken - 1];
                    continue;
                }
            }
            // 2. One chunk: a long one, or one of the last.
            if end - from > MAX_CHUNK as u32 || *inside {
                let places = [from, end].map(|place| place - first);
                let (done, unfinished) = self.take_parts(text, places, byte_level, *inside);
                (from, *inside) = (first + done, unfinished);
                if unfinished {
                    break;
                }
            } else {
                self.add(from - first, end - first);
                from = end;
            }
            taken += 1;
        }
        let size = (from - first) as usize;
        self.end = begin + size;
        // Near the end of the text, the batch is copied, so that `PAD` bytes after it can be read.
        if self.end + PAD > text.len() {
            self.padded.clear();
            self.padded.grow(size + PAD)?;
            self.padded.extend_from_slice(&text[begin..self.end]);
            self.padded.resize(size + PAD, 0);
        }
        Ok(taken)
    }

    /// Add a chunk or a part, unless it is a single.
    #[inline(always)]
    fn add(&mut self, from: u32, to: u32) {
        (self.begins[self.count], self.ends[self.count]) = (from, to);
        self.count += usize::from(to - from > 1);
    }

    /// Add the parts of a long chunk until there are enough words. `begun`: whether an earlier batch has some of them.
    /// Return where the last one ends, counted from the beginning of the batch, and whether more are left.
    #[inline(never)]
    fn take_parts(
        &mut self,
        text: &[u8],
        [mut from, to]: [u32; 2],
        byte_level: &ByteLevel,
        begun: bool,
    ) -> (u32, bool) {
        // With `whole`, a chunk that is a piece becomes this piece without merging. A part does not, even if it is
        // spelled like a piece, so parts are marked.
        let matters = byte_level.options.whole;
        let mut has_several = begun;
        while from < to && from < MAX_BYTES {
            let [first, last] = [from, to].map(|place| self.first + place as usize);
            let count = byte_level.cuts.parts(text, first, last, &mut self.part_ends);
            has_several |= self.part_ends[0] < last;
            self.has_parts |= has_several && matters;
            for i in 0..count {
                let end = self.part_ends[i];
                if self.count == BATCH || from >= MAX_BYTES {
                    return (from, true);
                }
                let end = (end - self.first) as u32;
                self.parts[self.count] = has_several && matters && end - from > 1;
                self.add(from, end);
                from = end;
            }
        }
        (from, from < to)
    }

    /// The text of the batch, after which `PAD` bytes can be read.
    #[inline(always)]
    pub fn text<'a>(&'a self, text: &'a [u8]) -> &'a [u8] {
        if self.end + PAD > text.len() {
            &self.padded
        } else {
            &text[self.first..self.end + PAD]
        }
    }
}

impl WordBatch for PatternWords {
    #[inline(always)]
    fn count(&self) -> usize {
        self.count
    }

    #[inline(always)]
    fn make_keys(&self, text: &[u8], keys: &mut [Key; cache::BATCH], homes: Homes) {
        let (text, mut done) = (self.text(text), 0);
        let places = self.begins.iter().zip(&self.ends).zip(&self.parts[..self.count]);
        for (key, ((&begin, &end), &is_part)) in keys.iter_mut().zip(places) {
            let (begin, end) = (begin as usize, end as usize);
            let singles = Singles::new(done, begin - done);
            *key = Key { singles, ..Key::of_part(Key::halves(text, begin, end), is_part) };
            homes.prefetch(key.hash);
            done = end;
        }
    }

    fn word<'a>(&'a self, text: &'a [u8], i: usize) -> &'a [u8] {
        &self.text(text)[self.begins[i] as usize..self.ends[i] as usize]
    }

    #[inline(always)]
    fn singles(&self, i: usize) -> Singles {
        let from = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        let to = if i == self.count { self.end - self.first } else { self.begins[i] as usize };
        // (If a word is too long for the numbers of `Singles`, it is the last of its batch, and no singles follow it.)
        if from == to {
            Singles::default()
        } else {
            Singles::new(from, to - from)
        }
    }

    #[inline(always)]
    fn singles_begin_with(&self, _: usize, _: Option<u32>) -> bool {
        false // (this is for the UNKNOWN piece, and no byte is unknown)
    }
}

/// Cuts a text into words, batch by batch.
pub struct PatternCutter<'a> {
    pub byte_level: &'a ByteLevel,
    pub text: &'a [u8],
    chunks: Chunks<'a>,
    /// The chunks of a part of the text, and how many of them are complete.
    batch: &'a mut Batch,
    taken: usize,
    /// Where the next batch begins.
    begin: usize,
    /// Whether an earlier batch has some parts of the next chunk.
    inside: bool,
}

impl<'a> PatternCutter<'a> {
    pub fn new(byte_level: &'a ByteLevel, text: &'a [u8], batch: &'a mut Batch) -> Result<PatternCutter<'a>, Halt> {
        batch.restart(0);
        let chunks = chunks_of(byte_level, text)?;
        Ok(PatternCutter { byte_level, text, chunks, batch, taken: 0, begin: 0, inside: false })
    }

    /// Find the words of the next batch; false if there is none.
    #[inline(always)]
    pub fn next(&mut self, machine: impl Machine, words: &mut PatternWords) -> Result<bool, Halt> {
        if self.taken == self.batch.ends().len() {
            if !self.chunks.next(self.batch).map_err(halt)? {
                return Ok(false);
            }
            (self.taken, self.begin) = (0, self.batch.base());
        }
        let begins = [self.begin, self.batch.base()];
        let ends = &self.batch.ends()[self.taken..];
        self.taken += words.take(machine, self.text, begins, ends, self.byte_level, &mut self.inside)?;
        self.begin = words.end;
        Ok(true)
    }
}

/// Call `each` for every chunk of a text, which is UTF-8.
pub fn each_chunk(
    byte_level: &ByteLevel,
    text: &[u8],
    check: Check,
    mut each: impl FnMut(usize, usize) -> Result<(), Halt>,
) -> Result<(), Halt> {
    let (mut chunks, mut batch) = (chunks_of(byte_level, text)?, Batch::default());
    while chunks.next(&mut batch).map_err(halt)? {
        check()?;
        batch.spans().try_for_each(|[begin, end]| each(begin, end))?;
    }
    Ok(())
}

/// The chunks of a text, each of which begins where the one before ends.
fn chunks_of<'a>(byte_level: &'a ByteLevel, text: &'a [u8]) -> Result<Chunks<'a>, Halt> {
    match &byte_level.splitter {
        Some(splitter) => splitter.cover_bytes(text).map_err(halt),
        None => Ok(Chunks::Whole(Some(text.len()).filter(|&length| length > 0))),
    }
}

/// Why a text cannot be split. (A splitter has no errors but these three.)
fn halt(error: Error) -> Halt {
    match error {
        Error::SplitFailed(_) => Halt::SplitFailed,
        Error::ChunkTooLong => Halt::ChunkTooLong,
        _ => Halt::OutOfMemory,
    }
}
