//! How many sentences a counter was given, which of them it skipped, and why. Nothing is dropped silently.

/// How many skipped sentences are kept as examples for each reason.
const EXAMPLES: usize = 5;
/// How much of an example is kept.
const EXAMPLE_BYTES: usize = 200;

/// Why a sentence is skipped, in the order of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// The sentence is empty.
    Empty,
    /// The sentence is longer than the limit.
    TooLong,
    /// The sentence contains U+2585.
    Reserved,
    /// Nothing is left of the sentence after normalization.
    Blank,
}

impl SkipReason {
    /// The names of all reasons, in their order.
    pub const NAMES: [&'static str; 4] = ["empty", "too_long", "reserved", "blank"];
}

/// The sentences that were skipped for one reason.
#[derive(Clone, Debug, Default)]
pub struct Skipped {
    /// How many there were.
    pub sentences: u64,
    /// Their total bytes.
    pub bytes: u64,
    /// The first few of them: the index of each, and how it begins.
    pub examples: Vec<(u64, Vec<u8>)>,
}

/// The sentences that a counter was given.
#[derive(Clone, Debug, Default)]
pub struct Tallies {
    /// How many sentences there were, including skipped ones.
    pub sentences: u64,
    /// How many bytes they have.
    pub bytes: u64,
    /// The skipped sentences, for each `SkipReason`.
    pub skipped: [Skipped; 4],
    /// How many sentences are not UTF-8, not including skipped ones.
    pub broken: u64,
}

impl Tallies {
    /// Record a sentence.
    #[inline]
    pub fn see(&mut self, sentence: &[u8]) {
        self.sentences += 1;
        self.bytes += sentence.len() as u64;
    }

    /// Record that the last sentence is skipped.
    pub fn skip(&mut self, reason: SkipReason, sentence: &[u8]) {
        let number = self.sentences - 1;
        let skipped = &mut self.skipped[reason as usize];
        skipped.sentences += 1;
        skipped.bytes += sentence.len() as u64;
        if skipped.examples.len() < EXAMPLES {
            skipped.examples.push((number, sentence[..sentence.len().min(EXAMPLE_BYTES)].to_vec()));
        }
    }

    /// Add the tallies of sentences that came after these.
    pub fn append(&mut self, later: Tallies) {
        for (skipped, more) in self.skipped.iter_mut().zip(later.skipped) {
            skipped.sentences += more.sentences;
            skipped.bytes += more.bytes;
            let room = EXAMPLES - skipped.examples.len();
            let examples = more.examples.into_iter().map(|(number, text)| (number + self.sentences, text));
            skipped.examples.extend(examples.take(room));
        }
        self.sentences += later.sentences;
        self.bytes += later.bytes;
        self.broken += later.broken;
    }
}
