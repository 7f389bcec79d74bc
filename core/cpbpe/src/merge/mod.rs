//! Merges one chunk: its characters become symbols, until no two neighbours form a piece.
//!
//! Symbols are slices of the chunk, so the text of a pair is a slice, too, and one look-up in the vocabulary tells
//! whether it is a piece. The best pair is found by one of two methods. In chunks of up to `short::MAX` bytes all pairs
//! are searched again and again; that is quadratic, but faster than a queue for so few. Longer chunks have a queue of
//! pairs. With dropout there is a third method, for chunks of up to `choices::MAX` bytes.

mod choices;
mod long;
mod short;

pub use choices::Choices;
pub use long::merge_whole;

use crate::error::Halt;
use crate::memory::with_room;
use crate::vocab::{piece_type, ByteLevel, Vocab, NONE};
use crate::watch::{Check, NO_CHECK};

// What merging needs from its callers: pieces by their texts, and a receiver of the symbols.

/// Receives the symbols of a chunk from left to right. An unknown symbol has the id `NONE`.
pub trait Sink {
    /// Make room for the results of symbols of this many bytes. Called before `symbol`.
    fn make_room(&mut self, bytes: usize) -> Result<(), Halt>;
    /// The symbol `begin..end` of the chunk.
    fn symbol(&mut self, id: u32, begin: usize, end: usize);
}

/// Looks up the texts of symbols. They are compact or, in normalized text that is not UTF-8, as in the model file.
#[derive(Clone, Copy)]
pub struct Lookup<'a> {
    /// The vocabulary.
    pub vocab: &'a Vocab,
    /// Whether the texts are compact.
    pub compact: bool,
}

impl Lookup<'_> {
    /// The mergeable piece with this text.
    #[inline]
    fn mergeable(self, text: &[u8]) -> Option<u32> {
        if self.compact {
            self.vocab.find_mergeable(text)
        } else {
            self.any(text).filter(|&id| self.vocab.pieces.mergeable(id))
        }
    }

    /// The piece with this text, of any type.
    fn any(self, text: &[u8]) -> Option<u32> {
        if self.compact {
            self.vocab.find(text)
        } else {
            self.vocab.id_of(text)
        }
    }
}

// --- Chunks --------------------------------------------------------------------------------------
//
// Merging a chunk, short or long, and splitting its UNUSED pieces again.
//
// sentencepiece splits an UNUSED piece into the pair that was last seen to form it, anywhere in the text. But a piece
// has only one such pair, so a chunk can be merged by itself, and the piece by itself, too:
//
// A pair that forms the piece is seen when the text of the piece consists of two symbols. Until then no merge has
// crossed either end of this text: it would have made a symbol that reaches beyond it, and symbols only grow. So all
// merges inside were those that the text has by itself, in the same order: whether two neighbours form a piece, and
// which rank it has, depends only on their texts, and of two pairs inside, the better one or, if they are equal, the
// left one is merged first in any text. Each merge leaves one symbol fewer, so by itself the text consists of two
// symbols only once. (Merges that dropout skips depend on their places. Such texts are not cut.)

/// Give the symbols of a chunk to `sink`.
pub fn merge_chunk<S: Sink>(vocab: &Vocab, text: &[u8], check: Check, sink: &mut S) -> Result<(), Halt> {
    if vocab.splits_unused {
        let mut sink = UnusedSplitter { vocab, text, sink, outcome: Ok(()) };
        merge(vocab, text, check, &mut sink)?;
        return sink.outcome;
    }
    merge(vocab, text, check, sink)
}

/// Give the symbols of a chunk to `sink`: the whole chunk if it is a piece and the model wants it taken whole,
/// otherwise what merging makes of it.
pub fn merge_pattern_chunk<S: Sink>(
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

fn merge<S: Sink>(vocab: &Vocab, text: &[u8], check: Check, sink: &mut S) -> Result<(), Halt> {
    if !text.is_empty() && vocab.symbol_length(text, 0) == text.len() {
        sink.make_room(text.len())?;
        sink.symbol(vocab.find_mergeable(text).unwrap_or(NONE), 0, text.len()); // one symbol
        Ok(())
    } else if text.len() <= short::MAX {
        short::merge(vocab, text, |_, _, _| true, sink)
    } else {
        merge_long(vocab, text, |_, _, _| true, check, sink)
    }
}

/// Merge a long chunk. `keep` is asked before each merge, see `long::merge`.
fn merge_long<S: Sink>(
    vocab: &Vocab,
    text: &[u8],
    keep: impl Fn(usize, usize, usize) -> bool,
    check: Check,
    sink: &mut S,
) -> Result<(), Halt> {
    let visit = |begin: usize, end: usize| {
        sink.make_room(end - begin)?;
        sink.symbol(vocab.find_mergeable(&text[begin..end]).unwrap_or(NONE), begin, end);
        Ok(())
    };
    long::merge(Lookup { vocab, compact: true }, text, |_| 0, |_, _, _| Ok(()), keep, check, visit)
}

/// Splits UNUSED pieces on their way to another sink.
struct UnusedSplitter<'a, S> {
    vocab: &'a Vocab,
    text: &'a [u8],
    sink: &'a mut S,
    /// Whether there was enough memory.
    outcome: Result<(), Halt>,
}

impl<S: Sink> Sink for UnusedSplitter<'_, S> {
    fn make_room(&mut self, bytes: usize) -> Result<(), Halt> {
        self.sink.make_room(bytes)
    }

    fn symbol(&mut self, id: u32, begin: usize, end: usize) {
        if id == NONE || self.vocab.kind(id) != piece_type::UNUSED {
            return self.sink.symbol(id, begin, end);
        }
        let mut parts = Shifted { begin, sink: &mut *self.sink };
        let piece = &self.text[begin..end];
        // (A piece has less than 8,000 bytes, so there is no need to check whether to go on.)
        let outcome = merge_whole(
            Lookup { vocab: self.vocab, compact: true },
            piece,
            |_| 0,
            |_, _, _| true,
            NO_CHECK,
            &mut parts,
        );
        self.outcome = std::mem::replace(&mut self.outcome, Ok(())).and(outcome);
    }
}

/// Hands on the symbols of a part of a text as symbols of the whole text.
pub struct Shifted<'a, S> {
    /// Where the part begins.
    pub begin: usize,
    /// Where they go.
    pub sink: &'a mut S,
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

/// Like `merge_chunk`, with merges skipped at random. Of the symbols that the whole text starts as, `before` precede
/// the chunk. The vocabulary does not split UNUSED pieces: with such a one, `merge_whole` samples texts as a whole.
pub fn sample_chunk<S: Sink>(
    vocab: &Vocab,
    text: &[u8],
    before: u64,
    chances: &Chances,
    choices: &mut Choices,
    check: Check,
    sink: &mut S,
) -> Result<(), Halt> {
    if text.len() <= short::MAX {
        let keep = |begin, middle, end| chances.keep([begin, middle, end].map(|number| before + number as u64));
        if text.len() <= choices::MAX && choices.merge(vocab, text, keep, sink)? {
            return Ok(());
        }
        return short::merge(vocab, text, keep, sink);
    }
    // Random decisions depend on how many symbols are before a place; here symbols are found by the place itself.
    let mut numbers = with_room(text.len() + 1)?;
    let mut number = before;
    for &byte in text {
        number += u64::from(vocab.byte_level.is_some() || byte & 0xC0 != 0x80);
        numbers.push(number.wrapping_sub(1));
    }
    numbers.push(number);
    let keep = |begin: usize, middle: usize, end: usize| chances.keep([begin, middle, end].map(|at| numbers[at]));
    merge_long(vocab, text, keep, check, sink)
}

// --- Dropout -------------------------------------------------------------------------------------
//
// Random decisions for BPE-dropout, the same as in `cpbpe/reference/merging.py`, which explains them.

/// Which merges are skipped.
#[derive(Clone, Copy, Debug)]
pub struct Dropout {
    /// The chance that a merge is skipped.
    pub alpha: f64,
    /// The seed that decides which.
    pub seed: u64,
}

/// A number whose every bit depends on all bits of another one (SplitMix64).
#[inline]
pub fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

/// Decides about the merges of one text.
pub struct Chances {
    /// The seed, mixed.
    seed: u64,
    /// A merge is skipped if its number, of 53 bits, is below this one.
    limit: u64,
}

impl Chances {
    /// The decisions for a text that is sampled with this dropout.
    pub fn new(Dropout { alpha, seed }: Dropout) -> Chances {
        // The reference compares number / 2^53 with alpha. The quotient and the product with 2^53 are both exact, and a
        // whole number is below some other number if it is below that number rounded up.
        Chances { seed: mixed(seed), limit: (alpha * (1u64 << 53) as f64).ceil() as u64 }
    }

    /// Whether two symbols merge, given how many of the symbols that the text starts as are before their begin,
    /// middle and end.
    #[inline]
    pub fn keep(&self, [begin, middle, end]: [u64; 3]) -> bool {
        mixed(mixed(mixed(self.seed ^ begin) ^ middle) ^ end) >> 11 >= self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_are_spread() {
        for alpha in [0.0, 0.1, 0.5, 1.0] {
            let chances = Chances::new(Dropout { alpha, seed: 7 });
            let kept = (0..10_000).filter(|&i| chances.keep([i, i + 1, i + 2])).count();
            assert!((kept as f64 / 10_000.0 - (1.0 - alpha)).abs() < 0.02);
        }
        assert!((0..10_000).all(|i| Chances::new(Dropout { alpha: 1e-300, seed: i }).keep([0, 1, 2])));
    }

    /// The numbers are those of the reference (`chance` in cpbpe/reference/merging.py, times 2^53).
    #[test]
    fn chances_are_those_of_the_reference() {
        for (seed, places, number) in [
            (7, [0, 1, 2], 7_876_875_578_975_157u64),
            (7, [3, 4, 9], 417_264_742_343_141u64),
            (u64::MAX, [1000, 1001, 1005], 1_014_325_232_593_358u64),
        ] {
            for (more, is_kept) in [(0, true), (1, false)] {
                let alpha = (number + more) as f64 / (1u64 << 53) as f64;
                assert_eq!(Chances::new(Dropout { alpha, seed }).keep(places), is_kept, "{seed} {places:?}");
            }
        }
    }
}
