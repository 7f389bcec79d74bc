//! Text -> symbols when merges are skipped at random.
//!
//! Chunks are merged by themselves, as without dropout: a skipped merge joins nothing, so it does not join what a cut
//! keeps apart. A chunk of one symbol leaves no choice, and takes no chance. (Merging the whole text at once, with a
//! queue of its pairs, was five times slower.)

use crate::encode::segment::{segment_whole, user_defined, Way};
use crate::encode::split::each_chunk;
use crate::error::Halt;
use crate::memory::{filled, Grow};
use crate::merge::{merge_chunk, sample_chunk, Chances, Choices, Dropout, Sink};
use crate::text::utf8::{self, character};
use crate::vocab::characters::{code_point, AFTER, BEFORE, ID, ONE};
use crate::vocab::{ByteLevel, Joinable, Vocab, NONE};
use crate::watch::Check;

/// Whether to go on is checked once in this many steps.
const CHECK_STEPS: usize = 1 << 14;
/// So many chunks are found before the first of them is merged.
const WAITING: usize = 16;
/// What is known here about a character of one byte: bytes alone find its cuts, and its id is looked up.
const SHORT_ENTRY: u32 = BEFORE | AFTER;

/// Hands the symbols of a chunk on as symbols of the text.
struct Shifted<'a, S> {
    /// Where the chunk begins.
    begin: usize,
    sink: &'a mut S,
}

impl<S: Sink> Sink for Shifted<'_, S> {
    #[inline]
    fn make_room(&mut self, bytes: usize) -> Result<(), Halt> {
        self.sink.make_room(bytes)
    }
    #[inline]
    fn symbol(&mut self, id: u32, begin: usize, end: usize) {
        self.sink.symbol(id, self.begin + begin, self.begin + end);
    }
}

/// A chunk that is one symbol, or merges.
#[derive(Clone, Copy, Default)]
struct Chunk {
    begin: usize,
    end: usize,
    /// How many symbols of the text are before it. (Chances depend on numbers of symbols, because compact text has fewer
    /// bytes.)
    before: u64,
    is_symbol: bool,
    /// The id of a symbol, if it is known.
    id: u32,
}

/// Give the symbols of a segmented text to `sink`.
pub fn sample<S: Sink>(
    vocab: &Vocab,
    text: &[u8],
    way: Way,
    dropout: Dropout,
    choices: &mut Choices,
    check: Check,
    sink: &mut S,
) -> Result<(), Halt> {
    match way {
        // With skipped merges an UNUSED piece can be made in several ways, and the last one in the text counts.
        Way::Chunks(_) if vocab.splits_unused => sample_whole(vocab, text, true, dropout, check, sink),
        Way::Chunks(joinable) => sample_chunks(vocab, joinable, text, dropout, choices, check, sink),
        Way::Split(byte_level) => sample_split(vocab, byte_level, text, dropout, choices, check, sink),
        Way::Whole { compact } => sample_whole(vocab, text, compact, dropout, check, sink),
    }
}

/// Chunk by chunk.
fn sample_chunks<S: Sink>(
    vocab: &Vocab,
    joinable: &Joinable,
    text: &[u8],
    dropout: Dropout,
    choices: &mut Choices,
    check: Check,
    sink: &mut S,
) -> Result<(), Halt> {
    let chances = Chances::new(dropout);
    let mut sink = Shifted { begin: 0, sink };
    let mut one = |chunk: Chunk, choices: &mut Choices| {
        sink.begin = chunk.begin;
        let part = &text[chunk.begin..chunk.end];
        if chunk.is_symbol {
            let id = if chunk.id == NONE { single(vocab, joinable, part) } else { chunk.id };
            sink.make_room(part.len())?;
            sink.symbol(id, 0, part.len());
            return Ok(());
        }
        sample_chunk(vocab, part, chunk.before, &chances, choices, check, &mut sink)
    };
    // What is known about a chunk arrives while others are found: a chunk waits until there are some more.
    let mut waiting = [Chunk::default(); WAITING];
    let mut count_waiting = 0;
    let mut chunk = |begin: usize, end: usize, before: u64, is_symbol: bool, id: u32| {
        if !is_symbol {
            choices.prefetch(&text[begin..end]);
        }
        waiting[count_waiting] = Chunk { begin, end, before, is_symbol, id };
        count_waiting += 1;
        if count_waiting == WAITING || end == text.len() {
            let all = &waiting[..std::mem::take(&mut count_waiting)];
            return all.iter().try_for_each(|&chunk| one(chunk, choices));
        }
        Ok(())
    };
    let mut keys = (!vocab.user_defined_compact.is_empty()).then(|| vocab.user_defined_compact.walk(text));
    // Where the chunk begins, in bytes and in symbols; and the same of this symbol, and where the one before it begins and
    // what is known about it.
    let (mut begin, mut before) = (0, 0);
    let (mut at, mut count, mut last, mut last_entry) = (0, 0, 0, SHORT_ENTRY);
    let mut next_check = CHECK_STEPS;
    while at < text.len() {
        if at >= next_check {
            check()?;
            next_check = at + CHECK_STEPS;
        }
        let key = keys.as_mut().map_or(0, |keys| keys.longest(at));
        let entry = entry_at(joinable, text, at);
        if at > begin && (key > 0 || is_cut(joinable, text, [last, at], [last_entry, entry])) {
            chunk(begin, at, before, count - before == 1, id_in(last_entry))?;
            (begin, before) = (at, count);
        }
        (last, last_entry) = (at, entry);
        count += 1;
        if key > 0 {
            chunk(at, at + key, before, true, NONE)?;
            at += key;
            (begin, before) = (at, count);
        } else {
            at += utf8::length_at(text, at);
        }
    }
    if begin < at {
        chunk(begin, at, before, count - before == 1, id_in(last_entry))?;
    }
    Ok(())
}

/// What is known about the character at `at`.
#[inline(always)]
fn entry_at(joinable: &Joinable, text: &[u8], at: usize) -> u32 {
    let rest = &text[at..];
    if rest[0] < 0x80 {
        return SHORT_ENTRY;
    }
    let four = rest.first_chunk().copied();
    // (At the end of the text there may be less than four bytes.)
    let four = four.unwrap_or_else(|| std::array::from_fn(|i| rest.get(i).copied().unwrap_or(0)));
    joinable.characters.entry(code_point(four))
}

/// The id of a character, which may be that of the UNKNOWN piece, if its entry tells it.
#[inline(always)]
fn id_in(entry: u32) -> u32 {
    if entry & ONE != 0 {
        entry & ID
    } else {
        NONE
    }
}

/// The id of a chunk of one symbol.
#[inline(always)]
fn single(vocab: &Vocab, joinable: &Joinable, text: &[u8]) -> u32 {
    match (text, &joinable.singles) {
        ([byte], singles) if singles.odd.is_none() => singles.ids[usize::from(*byte)],
        _ => vocab.find_mergeable(text).unwrap_or(NONE),
    }
}

/// Chunk by chunk, as a pattern cuts them. A chunk that is a piece, and is taken whole without merging, is so here, too, if
/// its symbols come out as they do when no merge is skipped.
fn sample_split<S: Sink>(
    vocab: &Vocab,
    byte_level: &ByteLevel,
    text: &[u8],
    dropout: Dropout,
    choices: &mut Choices,
    check: Check,
    sink: &mut S,
) -> Result<(), Halt> {
    let chances = Chances::new(dropout);
    let mut sink = Shifted { begin: 0, sink };
    each_chunk(byte_level, text, check, |begin, end| {
        sink.begin = begin;
        let part = &text[begin..end];
        if let [byte] = part {
            sink.make_room(1)?;
            sink.symbol(byte_level.ids[usize::from(*byte)], 0, 1);
            return Ok(());
        }
        let before = begin as u64;
        if let Some(whole) = vocab.find_mergeable(part).filter(|_| byte_level.options.whole) {
            let (mut merged, mut sampled) = (Symbols::default(), Symbols::default());
            merge_chunk(vocab, part, check, &mut merged)?;
            sample_chunk(vocab, part, before, &chances, choices, check, &mut sampled)?;
            sink.make_room(part.len())?;
            if merged.0 == sampled.0 {
                sink.symbol(whole, 0, part.len());
            } else {
                sampled.0.into_iter().for_each(|(id, begin, end)| sink.symbol(id, begin, end));
            }
            return Ok(());
        }
        sample_chunk(vocab, part, before, &chances, choices, check, &mut sink)
    })
}

/// Keeps the symbols of a chunk.
#[derive(Default)]
struct Symbols(Vec<(u32, usize, usize)>);

impl Sink for Symbols {
    fn make_room(&mut self, bytes: usize) -> Result<(), Halt> {
        self.0.grow(bytes)
    }
    fn symbol(&mut self, id: u32, begin: usize, end: usize) {
        self.0.push((id, begin, end));
    }
}

/// Whether nothing joins two characters, given where they begin and what is known about them; see `cut/chunks.rs`.
#[inline(always)]
fn is_cut(joinable: &Joinable, text: &[u8], [last, at]: [usize; 2], [last_entry, entry]: [u32; 2]) -> bool {
    if joinable.bytes[usize::from(text[at - 1]) | usize::from(text[at]) << 8] == 1 {
        return true;
    }
    if last_entry & BEFORE == 0 || entry & AFTER == 0 {
        return true;
    }
    if text[last].max(text[at]) < 0x80 {
        return false;
    }
    !joinable.pair(character(&text[last..at]), character(&text[at..at + utf8::length_at(text, at)]))
}

/// All at once: a text that is not UTF-8, or a vocabulary with UNUSED pieces.
fn sample_whole<S: Sink>(
    vocab: &Vocab,
    text: &[u8],
    compact: bool,
    dropout: Dropout,
    check: Check,
    sink: &mut S,
) -> Result<(), Halt> {
    // For each symbol, found by where it begins, how many are before it.
    let mut numbers = filled(0u64, text.len() + 1, check)?;
    let mut keys = user_defined(vocab, compact).walk(text);
    let (mut at, mut count) = (0, 0);
    while at < text.len() {
        let stop = text.len().min(at + CHECK_STEPS);
        while at < stop {
            numbers[at] = count;
            at += match keys.longest(at) {
                0 => utf8::length_at(text, at),
                length => length,
            };
            count += 1;
        }
        check()?;
    }
    numbers[text.len()] = count;
    let chances = Chances::new(dropout);
    let keep = |begin: usize, middle: usize, end: usize| chances.keep([begin, middle, end].map(|at| numbers[at]));
    segment_whole(vocab, text, compact, keep, check, sink)
}
