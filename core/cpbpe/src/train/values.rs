//! The options and results of training. `CountSpec`, `LearnSpec`, `ByteLearnSpec` and `Learned` are the values of the same names in
//! `cpbpe/reference/training_values.py`, which explains every field in full.

use crate::error::Error;
use crate::text::normalize::NormalizerOptions;
use crate::train::limits::PieceLimits;
use crate::train::words::WordsRef;

/// Everything that decides which words are counted in a text.
#[derive(Clone, Debug)]
pub struct CountSpec {
    /// Text is cut between two characters that no piece can contain side by side.
    pub limits: PieceLimits,
    /// How sentences are normalized.
    pub normalizer: NormalizerOptions,
    /// Texts that BOUNDARY replaces in a normalized sentence.
    pub symbols: Vec<Vec<u8>>,
    /// BOUNDARY replaces this text, too, after the symbols; empty if there is none.
    pub delimiter: Vec<u8>,
    /// Sentences with more bytes than this are skipped; 0 for no limit.
    pub max_sentence_length: usize,
    /// In a block of lines, a sentence ends after a run of newlines, which belongs to it.
    pub keep_newlines: bool,
    /// Sentences that contain U+2585 are skipped.
    pub skip_reserved: bool,
}

/// Everything that decides which merges are learned from words.
#[derive(Clone, Debug)]
pub struct LearnSpec {
    /// How many pieces the model should have.
    pub vocab_size: usize,
    /// How many of these are neither characters nor merges.
    pub meta_pieces: usize,
    /// Which strings can become pieces.
    pub limits: PieceLimits,
    /// How much of the text the accepted characters cover, from 0 to 1.
    pub character_coverage: f32,
    /// Characters to accept first.
    pub required_chars: Vec<char>,
    /// Accept every character.
    pub auto_character_coverage: bool,
    /// The words as an older model leaves them, if learning goes on from there. No characters are accepted then.
    pub begun: Option<Begun>,
}

/// Which of several equally frequent pairs is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// The one whose left symbol has the smallest id; among several, the one whose right symbol has the smallest id.
    Ids,
    /// The one that comes first in the text as it is at that moment.
    First,
}

/// Everything that decides which merges of bytes are learned from words.
#[derive(Clone, Debug)]
pub struct ByteLearnSpec {
    /// How many merges are wanted.
    pub merges: usize,
    /// Which of several equally frequent pairs is merged.
    pub ties: Ties,
    /// The bytes in the order of their ids.
    pub byte_order: [u8; 256],
    /// A pair that is rarer than this is not merged; 0 means the same as 1.
    pub min_frequency: u64,
    /// The most bytes that a piece may have, 0 for no limit. Pieces of two bytes are always allowed.
    pub max_length: u32,
    /// Texts that are never pieces.
    pub forbidden: Vec<Vec<u8>>,
    /// The words as an older model leaves them, if learning goes on from there.
    pub begun: Option<Begun>,
}

/// Words as the merges of an older model leave them: what learning begins with instead of characters or bytes.
#[derive(Clone, Debug, Default)]
pub struct Begun {
    /// The texts of the symbols, in the order of their numbers, which begin with 1.
    pub texts: Vec<Vec<u8>>,
    /// The symbols of all words, one word after another; 0 stands for what no merge crosses.
    pub symbols: Vec<u32>,
    /// Where the symbols of each word end.
    pub ends: Vec<u64>,
}

impl Begun {
    /// How many symbols the words have, repetitions included. An error if these are not the symbols of these words.
    pub fn total(&self, words: &WordsRef) -> Result<u64, Error> {
        let last = self.ends.last().copied().unwrap_or(0);
        let fits = self.ends.len() == words.len()
            && self.ends.is_sorted()
            && last == self.symbols.len() as u64
            && self.symbols.iter().all(|&symbol| symbol as usize <= self.texts.len());
        let total = (0..words.len())
            .try_fold(0u64, |total, at| total.checked_add((self.word(at).len() as u64).checked_mul(words.count(at))?));
        if !fits {
            return Err(Error::InvalidWords);
        }
        total.filter(|&total| total < 1 << 63).ok_or(Error::BytesOverflow)
    }

    /// The symbols of a word.
    pub fn word(&self, at: usize) -> &[u32] {
        let begin = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let end = self.ends.get(at).copied().unwrap_or(begin);
        self.symbols.get(begin as usize..end as usize).unwrap_or_default()
    }
}

/// How to learn. These values change the time and memory that learning takes, never its result. Tests choose them so
/// that little text reaches all code.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// In a text with fewer symbols than this, every pair is tracked from the start.
    pub small: usize,
    /// The first threshold is the number of pairs in the text, divided by the number of merges wanted and by this.
    pub guess: u64,
    /// With fewer different words than this, the text is not divided among threads.
    pub parts_from: usize,
}

impl Tuning {
    /// The values that were fastest.
    pub const DEFAULT: Tuning = Tuning { small: 1 << 17, guess: 64, parts_from: 1 << 19 };
}

/// The characters of a text, in the order of the model: by count, highest first, then by code point.
#[derive(Debug, Default)]
pub struct Characters {
    /// Accepted characters with their counts.
    pub accepted: Vec<(char, u64)>,
    /// The other characters of the text, with their counts; BOUNDARY and U+0000 are in neither list.
    pub dropped: Vec<(char, u64)>,
    /// How often BOUNDARY occurs in the text.
    pub boundaries: u64,
    /// How often U+0000 occurs in the text.
    pub nuls: u64,
    /// How many characters the text has in total, including these two.
    pub total: u64,
}

/// Merges in the order in which they were made.
#[derive(Debug, Default)]
pub struct Merges {
    /// The symbols that each merge joins, counted from 0. In byte-level models these are ids: bytes have the ids 0 to
    /// 255, and the first merge has the id 256.
    pub pairs: Vec<[u32; 2]>,
    /// The pieces that the merges made.
    pub pieces: Vec<Vec<u8>>,
    /// How often each pair occurred in the text when it was merged.
    pub frequencies: Vec<u64>,
    /// How many symbols the text had before the first merge and after each one.
    pub symbols: Vec<u64>,
}

/// What was learned.
#[derive(Debug, Default)]
pub struct Learned {
    /// The characters of the text.
    pub characters: Characters,
    /// The merges.
    pub merges: Merges,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::words::Words;

    #[test]
    fn symbols_that_are_not_those_of_the_words_are_refused() {
        let mut words = Words::default();
        words.push(b"ab", 2).unwrap();
        words.push(b"abc", 3).unwrap();
        let begun = |symbols: &[u32], ends: &[u64]| Begun {
            texts: vec![b"a".to_vec(), b"bc".to_vec()],
            symbols: symbols.to_vec(),
            ends: ends.to_vec(),
        };
        let right = begun(&[1, 0, 1, 2], &[2, 4]);
        assert_eq!((right.total(&words.view()).unwrap(), right.word(0), right.word(1)), (10, &[1, 0][..], &[1, 2][..]));
        for wrong in [
            begun(&[1, 0, 1, 3], &[2, 4]),
            begun(&[1, 0, 1], &[2, 4]),
            begun(&[1, 0, 1, 2], &[4]),
            begun(&[1, 0, 1, 2], &[5, 4]),
            begun(&[1, 0, 1, 2], &[2, u64::MAX]),
        ] {
            assert!(matches!(wrong.total(&words.view()), Err(Error::InvalidWords)));
            wrong.word(1);
        }
    }
}
