//! What training is asked, and what it answers. `CountSpec`, `LearnSpec` and `Learned` are the values of the same names
//! in `cpbpe/reference/training_values.py`, where every field is explained in full.

use crate::text::normalize::NormalizerOptions;
use crate::train::limits::PieceLimits;

/// All that decides which words a text is counted as.
#[derive(Clone, Debug)]
pub struct CountSpec {
    /// Between two characters that no piece may hold side by side, text is cut.
    pub limits: PieceLimits,
    /// How sentences are normalized.
    pub normalizer: NormalizerOptions,
    /// Texts that BOUNDARY takes the place of, once a sentence is normalized.
    pub symbols: Vec<Vec<u8>>,
    /// BOUNDARY takes the place of this text too, after the symbols; empty for none.
    pub delimiter: Vec<u8>,
    /// Longer sentences, in bytes, are skipped; 0 for no limit.
    pub max_sentence_length: usize,
    /// In a block of lines, a sentence ends after a run of newlines, which belongs to it.
    pub keep_newlines: bool,
    /// Sentences that hold U+2585 are skipped.
    pub skip_reserved: bool,
}

/// All that decides which merges are learned from words.
#[derive(Clone, Debug)]
pub struct LearnSpec {
    /// How many pieces the model shall have.
    pub vocab_size: usize,
    /// How many of these are neither characters nor merges.
    pub meta_pieces: usize,
    /// What a piece may hold.
    pub limits: PieceLimits,
    /// How much of the text the accepted characters cover, from 0 to 1.
    pub character_coverage: f32,
    /// Characters to accept first.
    pub required_chars: Vec<char>,
    /// Accept every character.
    pub auto_character_coverage: bool,
}

/// How to learn. These change the time and memory that it takes, never what is learned; tests set them to reach all
/// code with little text.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// In a text of fewer symbols than this, every pair is tracked from the start.
    pub small: usize,
    /// The first threshold is the number of pairs in the text over the number of merges wanted, over this.
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
    /// The others of the text, with theirs; BOUNDARY and U+0000 are in neither list.
    pub dropped: Vec<(char, u64)>,
    /// How often BOUNDARY stands in the text.
    pub boundaries: u64,
    /// How often U+0000 stands in the text.
    pub nuls: u64,
    /// How many characters the text has in all, these two included.
    pub total: u64,
}

/// Merges in the order in which they were made.
#[derive(Debug, Default)]
pub struct Merges {
    /// The pieces that they made.
    pub pieces: Vec<Vec<u8>>,
    /// How often each pair stood in the text when it was merged.
    pub frequencies: Vec<u64>,
    /// How many symbols the text had before the first merge, and after each.
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
