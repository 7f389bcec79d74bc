//! The options and results of training byte-level BPE.

/// Which of several most frequent pairs is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// The one whose left symbol has the smallest id, then whose right symbol has.
    Ids,
    /// The one that comes first in the text as it is at that moment.
    First,
}

/// Everything that decides which merges are learned from words.
#[derive(Clone, Debug)]
pub struct ByteLearnSpec {
    /// How many merges are wanted.
    pub merges: usize,
    /// Which of several most frequent pairs is merged.
    pub ties: Ties,
    /// The bytes in the order of their ids.
    pub byte_order: [u8; 256],
    /// A pair that is rarer than this is not merged; 0 is like 1.
    pub min_frequency: u64,
    /// The most bytes that a piece of more than two can have; 0 for no limit.
    pub max_length: u32,
    /// Texts that are never pieces.
    pub forbidden: Vec<Vec<u8>>,
}

/// Merges in the order in which they were made.
#[derive(Debug, Default)]
pub struct ByteMerges {
    /// The ids that each joins. Those of the bytes are 0 to 255, that of the first merge is 256.
    pub pairs: Vec<[u32; 2]>,
    /// The pieces that they made.
    pub pieces: Vec<Vec<u8>>,
    /// How often each pair occurred in the text when it was merged.
    pub frequencies: Vec<u64>,
    /// How many symbols the text had before the first merge and after each one.
    pub symbols: Vec<u64>,
}
