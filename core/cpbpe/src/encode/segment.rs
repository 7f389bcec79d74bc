//! Normalized text -> symbols, or ids. How a text is segmented is chosen here, once for each text (`Segmentation`).
//! `segment` then works without the cache: for tokens with their spans, and when merges are skipped at random.

use crate::cut::by_pattern::each_chunk;
use crate::encode::encoder::{encode_compact, encode_split, Buffers};
use crate::encode::output::{IdSink, Output};
use crate::error::Halt;
use crate::memory::{filled, Grow};
use crate::merge::{
    merge_chunk, merge_pattern_chunk, merge_whole, sample_chunk, Chances, Choices, Dropout, Lookup, Shifted, Sink,
};
use crate::text::utf8::{self, character, swap_spaces};
use crate::vocab::characters::{code_point, AFTER, BEFORE, ID, ONE};
use crate::vocab::{piece_type, ByteLevel, Joinable, Vocab, NONE};
use crate::watch::{Check, Checks};

/// Whether to go on is checked once in this many steps.
const CHECK_STEPS: usize = 1 << 14;
/// This many chunks are found before the first of them is merged.
const WAITING: usize = 16;
/// What is known here about a character of one byte: bytes alone find its cuts, and its id is looked up.
const SHORT_ENTRY: u32 = BEFORE | AFTER;

/// How a normalized text is segmented, as `Segmentation::of` decides once for each text.
#[derive(Clone, Copy)]
pub enum Segmentation<'a> {
    /// Cut into chunks, some of which are user-defined pieces. The text is compact.
    Chunks(&'a Joinable),
    /// Cut by the pattern of a byte-level vocabulary.
    Split(&'a ByteLevel),
    /// Merged as a whole. For text that is not UTF-8 (and so not compact), and for vocabularies with pieces that are
    /// not.
    Whole {
        /// Whether the text is compact.
        compact: bool,
    },
}

impl<'a> Segmentation<'a> {
    /// How to segment a text that is compact or not.
    pub fn of(vocab: &'a Vocab, compact: bool) -> Segmentation<'a> {
        match (&vocab.joinable, &vocab.byte_level) {
            (_, Some(byte_level)) => Segmentation::Split(byte_level),
            (Some(joinable), None) if compact => Segmentation::Chunks(joinable),
            _ => Segmentation::Whole { compact },
        }
    }

    /// Whether the text is compact.
    pub fn is_compact(self) -> bool {
        !matches!(self, Segmentation::Whole { compact: false })
    }
}

/// Encode a normalized text.
pub fn encode_normalized<O: Output>(
    vocab: &Vocab,
    segmentation: Segmentation,
    text: &[u8],
    check: Check,
    buffers: &mut Buffers,
    out: &mut O,
) -> Result<(), Halt> {
    match segmentation {
        Segmentation::Chunks(joinable) => {
            let compact = encode_compact(vocab, joinable, text, false, check, buffers, out)?;
            debug_assert!(compact);
            Ok(())
        }
        Segmentation::Split(byte_level) => encode_split(vocab, byte_level, text, check, buffers, out),
        Segmentation::Whole { compact } => {
            let ids = &mut buffers.chunk;
            ids.clear();
            let mut sink = IdSink { vocab, text, compact, out: ids };
            segment(vocab, text, segmentation, None, &mut buffers.choices, check, &mut sink)?;
            out.append(ids)
        }
    }
}

// --- Without the cache ---------------------------------------------------------------------------

/// Give the symbols of a segmented text to `sink`. With `dropout`, merges are skipped at random.
///
/// With dropout, too, each chunk is merged by itself: a skipped merge joins nothing, so it cannot join what a cut
/// separates. A chunk of one symbol leaves no choice, and no random number is drawn for it. (Merging the whole text at
/// once, with a queue of its pairs, was five times slower.)
pub fn segment<S: Sink>(
    vocab: &Vocab,
    text: &[u8],
    segmentation: Segmentation,
    dropout: Option<Dropout>,
    choices: &mut Choices,
    check: Check,
    sink: &mut S,
) -> Result<(), Halt> {
    let chances = dropout.map(Chances::new);
    match (segmentation, &chances) {
        // With skipped merges, an UNUSED piece can be made of several pairs, and the one that is last in the text
        // counts.
        (Segmentation::Chunks(_), Some(chances)) if vocab.splits_unused => {
            sample_whole(vocab, text, true, chances, check, sink)
        }
        (Segmentation::Chunks(joinable), _) => {
            segment_chunks(vocab, joinable, text, chances.as_ref(), choices, check, sink)
        }
        (Segmentation::Split(byte_level), Some(chances)) => {
            sample_split(vocab, byte_level, text, chances, choices, check, sink)
        }
        (Segmentation::Split(byte_level), None) => each_chunk(byte_level, text, check, |begin, end| {
            merge_pattern_chunk(vocab, byte_level, &text[begin..end], check, &mut Shifted { begin, sink })
        }),
        (Segmentation::Whole { compact }, Some(chances)) => sample_whole(vocab, text, compact, chances, check, sink),
        (Segmentation::Whole { compact }, None) => segment_whole(vocab, text, compact, |_, _, _| true, check, sink),
    }
}

/// A chunk. It is one symbol, or is merged.
#[derive(Clone, Copy, Default)]
struct Chunk {
    begin: usize,
    end: usize,
    /// How many symbols of the text are before it. (Random decisions depend on numbers of symbols, not of bytes,
    /// because compact text has fewer bytes.)
    before: u64,
    is_symbol: bool,
    /// The id of a symbol, if it is known.
    id: u32,
}

/// Segment a text chunk by chunk.
fn segment_chunks<S: Sink>(
    vocab: &Vocab,
    joinable: &Joinable,
    text: &[u8],
    chances: Option<&Chances>,
    choices: &mut Choices,
    check: Check,
    sink: &mut S,
) -> Result<(), Halt> {
    let mut one = |chunk: Chunk, choices: &mut Choices| {
        let mut sink = Shifted { begin: chunk.begin, sink };
        let part = &text[chunk.begin..chunk.end];
        if chunk.is_symbol {
            let id = if chunk.id == NONE { single(vocab, joinable, part) } else { chunk.id };
            sink.make_room(part.len())?;
            sink.symbol(id, 0, part.len());
            return Ok(());
        }
        match chances {
            Some(chances) => sample_chunk(vocab, part, chunk.before, chances, choices, check, &mut sink),
            None => merge_chunk(vocab, part, check, &mut sink),
        }
    };
    // (An UNUSED piece of one character does not stay a symbol.)
    let is_symbol = |count: u64| count == 1 && !vocab.splits_unused;
    // A chunk waits until some more have been found, so that what is known about it can arrive from memory.
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
    // Where the current chunk begins, in bytes and in symbols; the same for the current symbol; and where the symbol
    // before it begins, and what is known about that.
    let (mut begin, mut before) = (0, 0);
    let (mut at, mut count, mut last, mut last_entry) = (0, 0, 0, SHORT_ENTRY);
    let mut checks = Checks::new(check, CHECK_STEPS);
    while at < text.len() {
        checks.at(at)?;
        let key = keys.as_mut().map_or(0, |keys| keys.longest(at));
        let entry = entry_at(joinable, text, at);
        if at > begin && (key > 0 || is_cut(joinable, text, [last, at], [last_entry, entry])) {
            chunk(begin, at, before, is_symbol(count - before), id_in(last_entry))?;
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
        chunk(begin, at, before, is_symbol(count - before), id_in(last_entry))?;
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

/// The id of a character, possibly that of the UNKNOWN piece, if its entry says so.
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
        ([byte], singles) if singles.looked_up.is_none() => singles.ids[usize::from(*byte)],
        _ => vocab.find_mergeable(text).unwrap_or(NONE),
    }
}

/// Segment a text chunk by chunk, as a pattern cuts it. Without dropout, a chunk that is a piece may be taken whole,
/// instead of being merged. Here such a chunk is merged first, and taken whole if the skips have made no difference.
fn sample_split<S: Sink>(
    vocab: &Vocab,
    byte_level: &ByteLevel,
    text: &[u8],
    chances: &Chances,
    choices: &mut Choices,
    check: Check,
    sink: &mut S,
) -> Result<(), Halt> {
    each_chunk(byte_level, text, check, |begin, end| {
        let mut sink = Shifted { begin, sink };
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
            sample_chunk(vocab, part, before, chances, choices, check, &mut sampled)?;
            sink.make_room(part.len())?;
            if merged.0 == sampled.0 {
                sink.symbol(whole, 0, part.len());
            } else {
                sampled.0.into_iter().for_each(|(id, begin, end)| sink.symbol(id, begin, end));
            }
            return Ok(());
        }
        sample_chunk(vocab, part, before, chances, choices, check, &mut sink)
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

/// Whether nothing joins two characters, given where each begins and what is known about it; see `cut/words.rs`.
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

/// Segment a text that is not cut: one that is not UTF-8, any text of a vocabulary with pieces that are not UTF-8, and,
/// when merges are skipped, of one with UNUSED pieces. `keep` is asked before each merge, see `merge_whole`.
fn segment_whole<S: Sink>(
    vocab: &Vocab,
    text: &[u8],
    compact: bool,
    keep: impl Fn(usize, usize, usize) -> bool,
    check: Check,
    sink: &mut S,
) -> Result<(), Halt> {
    let mut keys = vocab.user_defined_in(compact).walk(text);
    merge_whole(Lookup { vocab, compact }, text, |at| keys.longest(at), keep, check, sink)
}

/// The same, with merges skipped at random.
fn sample_whole<S: Sink>(
    vocab: &Vocab,
    text: &[u8],
    compact: bool,
    chances: &Chances,
    check: Check,
    sink: &mut S,
) -> Result<(), Halt> {
    // For each place where a symbol begins, how many symbols are before it.
    let mut numbers = filled(0u64, text.len() + 1, check)?;
    let mut keys = vocab.user_defined_in(compact).walk(text);
    let (mut at, mut count) = (0, 0);
    let mut checks = Checks::new(check, CHECK_STEPS);
    while at < text.len() {
        checks.at(at)?;
        numbers[at] = count;
        at += match keys.longest(at) {
            0 => utf8::length_at(text, at),
            length => length,
        };
        count += 1;
    }
    numbers[text.len()] = count;
    let keep = |begin: usize, middle: usize, end: usize| chances.keep([begin, middle, end].map(|at| numbers[at]));
    segment_whole(vocab, text, compact, keep, check, sink)
}

// --- Tokens --------------------------------------------------------------------------------------

/// One token with its span in the segmented text.
pub struct Token {
    /// Its id.
    pub id: u32,
    /// Where its part of the text begins. The part is empty for all but the last byte of a character.
    pub begin: usize,
    /// Where it ends.
    pub end: usize,
}

/// Turns symbols into tokens.
struct TokenSink<'a> {
    vocab: &'a Vocab,
    text: &'a [u8],
    compact: bool,
    out: Vec<Token>,
}

impl Sink for TokenSink<'_> {
    fn make_room(&mut self, bytes: usize) -> Result<(), Halt> {
        self.out.grow(bytes.saturating_mul(self.vocab.ids_per_byte))
    }

    fn symbol(&mut self, id: u32, begin: usize, end: usize) {
        if id != NONE && Some(id) != self.vocab.unk {
            self.out.push(Token { id, begin, end });
            return;
        }
        if self.vocab.byte_ids.is_some() {
            let mut ids = Vec::new(); // few ids: the symbol is one character
            IdSink { vocab: self.vocab, text: self.text, compact: self.compact, out: &mut ids }
                .symbol(NONE, begin, end);
            self.out.extend(ids.into_iter().map(|id| Token { id, begin, end: begin }));
            if let Some(last) = self.out.last_mut() {
                last.end = end;
            }
        } else if let Some(unk) = self.vocab.unk {
            match self.out.last_mut() {
                Some(last) if last.id == unk => last.end = end,
                _ => self.out.push(Token { id: unk, begin, end }),
            }
        }
    }
}

/// The tokens of a segmented text, without the cache. With `dropout`, merges are skipped at random.
pub fn tokens(
    vocab: &Vocab,
    text: &[u8],
    segmentation: Segmentation,
    dropout: Option<Dropout>,
    choices: &mut Choices,
    check: Check,
) -> Result<Vec<Token>, Halt> {
    let mut sink = TokenSink { vocab, text, compact: segmentation.is_compact(), out: Vec::new() };
    segment(vocab, text, segmentation, dropout, choices, check, &mut sink)?;
    Ok(sink.out)
}

/// A place in a text, counted in bytes and in characters.
#[derive(Clone, Copy)]
pub struct Place {
    /// How many bytes are before it.
    pub bytes: usize,
    /// How many characters are before it.
    pub characters: usize,
}

/// Walk through a compact text by its ids, and report where each token ends, which is where the next one begins. Every
/// piece occurs unchanged in the text. A character without a piece has an id for each of its bytes, all but the last
/// with an empty span. `byte_at` reads a byte of the text. Returns false if a part of the text is unknown, because the
/// id does not tell how long that part is.
#[inline]
pub fn walk(
    vocab: &Vocab,
    ids: &[u32],
    byte_at: impl Fn(usize) -> u8,
    check: Check,
    mut end: impl FnMut(Place),
) -> Result<bool, Halt> {
    let lengths = &*vocab.lengths()?;
    let mut place = Place { bytes: 0, characters: 0 };
    let mut i = 0;
    while i < ids.len() {
        if i > 0 {
            check()?;
        }
        let stop = ids.len().min(i + CHECK_STEPS);
        while i < stop {
            let id = ids[i];
            let length = lengths[id as usize];
            if length.bytes > 0 {
                place.bytes += usize::from(length.bytes);
                place.characters += usize::from(length.characters);
                end(place);
                i += 1;
                continue;
            }
            if Some(id) == vocab.unk {
                return Ok(false);
            }
            let first = byte_at(place.bytes);
            let bytes = utf8::length_by_first(first);
            let tokens = if first == b' ' && vocab.swapped { utf8::SPACE.len() } else { bytes };
            for _ in 1..tokens {
                end(place);
            }
            place.bytes += bytes;
            place.characters += 1;
            end(place);
            i += tokens;
        }
    }
    Ok(true)
}

/// Append the text of a token, spelled as in the model file; for an unknown token, the unknown text.
pub fn piece_of(vocab: &Vocab, token: &Token, text: &[u8], compact: bool, out: &mut Vec<u8>) -> Result<(), Halt> {
    out.grow((token.end - token.begin) * utf8::SPACE.len())?; // if the text is unknown, this is more than it can take
    if Some(token.id) != vocab.unk && vocab.kind(token.id) == piece_type::BYTE {
        vocab.text_of(token.id, out);
    } else if compact && vocab.swapped {
        swap_spaces(&text[token.begin..token.end], out);
    } else {
        out.extend_from_slice(&text[token.begin..token.end]);
    }
    Ok(())
}
