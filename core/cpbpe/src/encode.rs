//! Text -> ids: cut into chunks, look each up, merge those that are new.

use crate::cache::{self, Cache, Finding, MAX_LONG};
use crate::chunk::{self, BLOCK};
use crate::found::Found;
use crate::key::{Key, MAX_CHUNK};
use crate::merge::{self, Raw, Sink};
use crate::output::Output;
use crate::utf8;
use crate::vocab::{Joinable, Vocab, NONE};
use crate::words::Words;

/// Bytes behind a text that may be read: a block, and the words of a chunk that begins at its end.
const PAD: usize = BLOCK + 16;
/// Texts up to this long are copied to where they can be padded.
const SMALL: usize = 1024;
/// Bytes whose chunks are looked up together: enough for memory to arrive, and few enough to stay in the first cache
/// themselves. (128 is 5 % slower, 512 no faster.)
const BATCH: usize = 256;
/// Places are filled eight at a time.
const _: () = assert!(BATCH + 8 <= cache::BATCH);

/// What one running call needs: a cache and some buffers. Kept by the engine between calls.
pub struct Scratch {
    /// All but the result.
    pub buffers: Buffers,
    /// The result.
    pub ids: Vec<u32>,
}

/// A cache, and memory for what a text becomes on its way to ids.
pub struct Buffers {
    cache: Cache,
    /// A padded text.
    padded: Vec<u8>,
    /// A compact text.
    pub compact: Vec<u8>,
    /// A normalized text.
    pub normalized: Vec<u8>,
    /// The ids of one new chunk, or of a text that cannot be cut.
    chunk: Vec<u32>,
    /// The chunks that wait to be looked up.
    pending: Box<Pending>,
}

impl Scratch {
    /// Empty, for a vocabulary of this many pieces.
    pub fn new(pieces: usize) -> Self {
        let buffers = Buffers {
            cache: Cache::new(pieces),
            padded: Vec::new(),
            compact: Vec::new(),
            normalized: Vec::new(),
            chunk: Vec::new(),
            pending: Box::new(Pending { batches: [Batch::new(), Batch::new()], finding: Finding::default() }),
        };
        Scratch { buffers, ids: Vec::new() }
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
    batches: [Batch; 2],
    /// What was found of the latter.
    finding: Finding,
}

/// The chunks of a batch.
struct Batch {
    /// The key of each, and where it ends, counted from `first`.
    keys: [Key; cache::BATCH],
    count: usize,
    /// Where the bytes of the batch begin in the text, and where its first chunk does, before.
    first: usize,
    start: usize,
}

impl Batch {
    fn new() -> Batch {
        Batch { keys: [Key::default(); cache::BATCH], count: 0, first: 0, start: 0 }
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

/// Appends the ids of symbols: bytes or the UNKNOWN piece for unknown ones.
pub struct Ids<'a> {
    /// Whose pieces they are.
    pub vocab: &'a Vocab,
    /// The text that the symbols are in.
    pub text: &'a [u8],
    /// Whether it is compact.
    pub compact: bool,
    /// Where they go.
    pub out: &'a mut Vec<u32>,
}

impl Sink for Ids<'_> {
    #[inline]
    fn symbol(&mut self, id: u32, begin: usize, end: usize) {
        if id != NONE && Some(id) != self.vocab.unk {
            self.out.push(id);
        } else if let Some(byte_ids) = &self.vocab.byte_ids {
            for &byte in &self.text[begin..end] {
                if byte == b' ' && self.compact && self.vocab.swapped {
                    self.out.extend(utf8::SPACE.iter().map(|&byte| byte_ids[usize::from(byte)]));
                } else {
                    self.out.push(byte_ids[usize::from(byte)]);
                }
            }
        } else if let Some(unk) = self.vocab.unk {
            if self.out.last() != Some(&unk) {
                self.out.push(unk); // unknown symbols side by side are one
            }
        }
    }
}

/// Encodes compact text of one vocabulary that may be cut and has no user-defined pieces to find.
struct Encoder<'a, O> {
    vocab: &'a Vocab,
    joinable: &'a Joinable,
    cache: &'a mut Cache,
    chunk: &'a mut Vec<u32>,
    out: &'a mut O,
    /// The UNKNOWN piece, if unknown symbols become it: those side by side must be made one across chunks.
    fuse: Option<u32>,
    /// The most ids that a byte can become.
    ids_per_byte: usize,
}

impl<O: Output> Encoder<'_, O> {
    /// Encode `text`, behind which `PAD` more bytes may be read; false if it holds U+2581, so that it is not compact.
    fn run(&mut self, padded: &[u8], length: usize, pending: &mut Pending) -> bool {
        debug_assert!(padded.len() >= length + PAD);
        self.out.reserve_ids(length * self.ids_per_byte + PAD);
        let Pending { batches: [now, before], finding } = pending;
        let (mut now, mut before) = (now, before);
        let (mut start, mut base) = (0, 0);
        before.count = 0;
        while base < length {
            // Simple loops, each over a batch. What one asks memory for is on its way while the next one works on the
            // other batch.
            let Some(stop) = self.cut(padded, length, base, now) else { return false };
            start = self.prepare(padded, start, now);
            self.look_up(padded, before, finding);
            self.cache.find(now.keys(), finding);
            std::mem::swap(&mut now, &mut before);
            base = stop;
        }
        self.look_up(padded, before, finding);
        true
    }

    /// Find where the chunks end that end in the batch at `first`; where the batch ends.
    #[inline]
    fn cut(&self, padded: &[u8], length: usize, first: usize, batch: &mut Batch) -> Option<usize> {
        let mut count = 0;
        let mut base = first;
        let stop = (first + BATCH).min(length);
        while base < stop {
            let block = padded[base..].first_chunk::<BLOCK>()?;
            let mut mask = chunk::cuts(self.joinable, &padded[..length + 4], base, block, self.vocab.swapped)?;
            if base == 0 {
                mask &= !1;
            }
            let left = length - base;
            if left < BLOCK {
                mask = mask & ((1 << left) - 1) | 1 << left;
            }
            let all = count + mask.count_ones() as usize;
            let offset = (base - first) as u32;
            while mask != 0 {
                // Eight at a time, some of them for nothing: cheaper than a loop whose end cannot be foreseen.
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

    /// Make the keys of the chunks, of which the first begins at `start`, and ask for their memory; where the last one ends.
    #[inline(never)]
    fn prepare(&self, padded: &[u8], mut start: usize, batch: &mut Batch) -> usize {
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
    fn look_up(&mut self, padded: &[u8], batch: &Batch, finding: &mut Finding) {
        let keys = batch.keys();
        if keys.is_empty() {
            return;
        }
        self.cache.find_rest(keys, finding);
        let mut at = 0;
        while at < keys.len() {
            if self.fuse.is_none() {
                // SAFETY: `run` reserved `ids_per_byte` ids for each byte of the text, and a block more.
                at += unsafe { self.out.append_cached(self.cache, &finding.found[at..keys.len()]) };
                if at == keys.len() {
                    break;
                }
            }
            let era = self.cache.era;
            self.append_rare(keys[at], &padded[batch.place(at)], finding.found[at]);
            if self.cache.era != era {
                finding.found = [Found::ABSENT; cache::BATCH];
            }
            at += 1;
        }
    }

    #[inline(never)]
    fn append_rare(&mut self, key: Key, text: &[u8], found: Found) {
        self.chunk.clear();
        // What was absent may have come in the meantime.
        if !self.cache.append(found, text, self.chunk) && !self.cache.append(self.cache.get(key), text, self.chunk) {
            self.append_new(key, text);
        }
        // Unknown symbols on both sides of a cut are one.
        let again = self.fuse.is_some() && self.out.last_id() == self.fuse && self.chunk.first() == self.fuse.as_ref();
        self.out.append(&self.chunk[usize::from(again)..]);
    }

    /// Merge a chunk, remember it, and leave its ids in `chunk`.
    #[cold]
    fn append_new(&mut self, key: Key, text: &[u8]) {
        self.chunk.clear();
        let mut sink = Ids { vocab: self.vocab, text, compact: true, out: self.chunk };
        merge::merge(self.vocab, text, &mut sink);
        self.cache.put(key, text, self.chunk);
    }
}

/// How a normalized text is segmented. It is decided once for each text, by `Way::of`.
#[derive(Clone, Copy)]
pub enum Way<'a> {
    /// Cut into chunks. The text is compact.
    Chunks(&'a Joinable),
    /// The same between user-defined pieces.
    ChunksBetweenKeys(&'a Joinable, &'a Words),
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
}

/// Encode a normalized text.
pub fn encode_normalized<O: Output>(vocab: &Vocab, way: Way, text: &[u8], buffers: &mut Buffers, out: &mut O) {
    match way {
        Way::Chunks(joinable) => {
            let compact = encode_compact(vocab, joinable, text, false, buffers, out);
            debug_assert!(compact);
        }
        Way::ChunksBetweenKeys(joinable, keys) => encode_between_keys(vocab, joinable, keys, text, buffers, out),
        Way::Whole { compact } => {
            let ids = &mut buffers.chunk;
            ids.clear();
            encode_whole(vocab, text, compact, ids);
            out.append(ids);
        }
    }
}

/// Encode a compact text that is valid UTF-8, with a space in front if `prefix`; false, and nothing done, if it is not
/// compact.
pub fn encode_compact<O: Output>(
    vocab: &Vocab,
    joinable: &Joinable,
    text: &[u8],
    prefix: bool,
    buffers: &mut Buffers,
    out: &mut O,
) -> bool {
    let fuse = if vocab.byte_ids.is_none() { vocab.unk } else { None };
    // A space that is no piece becomes the three bytes of U+2581.
    let ids_per_byte = if vocab.find_mergeable(b" ").is_some() || vocab.byte_ids.is_none() { 1 } else { 3 };
    let Buffers { cache, padded, chunk, pending, .. } = buffers;
    let before = out.mark();
    let mut encoder = Encoder { vocab, joinable, cache, chunk, out, fuse, ids_per_byte };
    let mut copy = |encoder: &mut Encoder<O>, pending: &mut Pending, prefix: bool, text: &[u8]| {
        padded.clear();
        if prefix {
            padded.push(b' ');
        }
        padded.extend_from_slice(text);
        let length = padded.len();
        padded.resize(length + PAD, 0);
        encoder.run(padded, length, pending)
    };
    // The head, with its prefix, and the tail, with its padding, are copied; what lies between is used as it is.
    let last_cut = |from: usize, to: usize| (from..to).rev().find(|&at| chunk::is_cut(joinable, text, at));
    let (head, tail) = if text.len() <= SMALL {
        (None, None)
    } else {
        (if prefix { last_cut(1, SMALL) } else { Some(0) }, last_cut(text.len() - SMALL + 1, text.len() - PAD + 1))
    };
    let done = match (head, tail) {
        (Some(head), Some(tail)) if head <= tail => {
            (!prefix || copy(&mut encoder, pending, true, &text[..head]))
                && encoder.run(&text[head..], tail - head, pending)
                && copy(&mut encoder, pending, false, &text[tail..])
        }
        _ => copy(&mut encoder, pending, prefix, text),
    };
    if !done {
        out.reset(before);
    }
    done
}

/// Encode a compact text that is valid UTF-8, with all its user-defined pieces.
fn encode_between_keys<O: Output>(
    vocab: &Vocab,
    joinable: &Joinable,
    keys: &Words,
    text: &[u8],
    buffers: &mut Buffers,
    out: &mut O,
) {
    let (mut at, mut done) = (0, 0);
    while at < text.len() {
        let length = keys.longest(text, at);
        if length == 0 {
            at += 1; // a key begins with the first byte of a character, so no other place is ever taken for one
            continue;
        }
        let compact = encode_compact(vocab, joinable, &text[done..at], false, buffers, out);
        debug_assert!(compact);
        if let Some(id) = vocab.find(&text[at..at + length]) {
            out.append(&[id]);
        }
        at += length;
        done = at;
    }
    if done < text.len() {
        let compact = encode_compact(vocab, joinable, &text[done..], false, buffers, out);
        debug_assert!(compact);
    }
}

/// Encode a text that cannot be cut into `out`: one that is not UTF-8 (then not `compact`), or of a vocabulary
/// with UNUSED pieces.
pub fn encode_whole(vocab: &Vocab, text: &[u8], compact: bool, out: &mut Vec<u32>) {
    let mut sink = Ids { vocab, text, compact, out };
    segment_whole(vocab, text, compact, |_, _, _| true, &mut sink);
}

/// Merge a text that cannot be cut. `keep` is asked before a merge, see `long::merge`.
pub fn segment_whole<S: Sink>(
    vocab: &Vocab,
    text: &[u8],
    compact: bool,
    keep: impl Fn(usize, usize, usize) -> bool,
    sink: &mut S,
) {
    if compact {
        let words = &vocab.user_defined_compact;
        merge::merge_whole(&vocab, text, |at| words.longest(text, at), keep, sink);
    } else {
        let words = &vocab.user_defined;
        merge::merge_whole(&Raw(vocab), text, |at| words.longest(text, at), keep, sink);
    }
}

/// Make a normalized text compact: U+2581 becomes a space. `origins`, if kept, shrink with it.
pub fn compact(text: &mut Vec<u8>, mut origins: Option<&mut Vec<usize>>) {
    let Some(first) = memchr::memmem::find(text, utf8::SPACE) else { return };
    let (mut from, mut to) = (first, first);
    while from < text.len() {
        let space = text[from..].starts_with(utf8::SPACE);
        text[to] = if space { b' ' } else { text[from] };
        if let Some(origins) = origins.as_mut() {
            origins[to] = origins[from];
        }
        to += 1;
        from += if space { utf8::SPACE.len() } else { 1 };
    }
    text.truncate(to);
    if let Some(origins) = origins {
        origins[to] = origins[from];
        origins.truncate(to + 1);
    }
}
