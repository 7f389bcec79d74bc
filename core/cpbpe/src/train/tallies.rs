//! What a counter saw, and what it skipped: nothing is lost in silence.

/// How many skipped sentences are kept as examples for each rule, and how much of each.
const EXAMPLES: usize = 5;
const EXAMPLE_BYTES: usize = 200;

/// Why a sentence is skipped, in the order of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// There is nothing in it.
    Empty,
    /// It is longer than the limit.
    TooLong,
    /// It holds U+2585.
    Reserved,
    /// Nothing is left once it is normalized.
    Blank,
}

/// The names of the rules.
pub const RULES: [&str; 4] = ["empty", "too_long", "reserved", "blank"];

/// The sentences that one rule kept out.
#[derive(Clone, Debug, Default)]
pub struct Skipped {
    /// How many.
    pub sentences: u64,
    /// Their length together.
    pub bytes: u64,
    /// The first few: number and beginning.
    pub examples: Vec<(u64, Vec<u8>)>,
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct Tallies {
    /// All sentences.
    pub sentences: u64,
    /// The bytes in them.
    pub bytes: u64,
    /// For each rule.
    pub skipped: [Skipped; 4],
}

impl Tallies {
    /// Note that the last sentence was skipped.
    pub fn skip(&mut self, rule: Rule, sentence: &[u8]) {
        let number = self.sentences - 1;
        let skipped = &mut self.skipped[rule as usize];
        skipped.sentences += 1;
        skipped.bytes += sentence.len() as u64;
        if skipped.examples.len() < EXAMPLES {
            skipped.examples.push((number, sentence[..sentence.len().min(EXAMPLE_BYTES)].to_vec()));
        }
    }

    /// Add what was seen afterwards.
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
    }
}
