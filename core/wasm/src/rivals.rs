//! Which pairs a merge was chosen from: the most frequent pairs of the text at any step of the last training.
//!
//! Only the text after the last merge is kept. The text at an earlier step is the same, but with each symbol of a later
//! merge replaced by the two symbols that it was made of. So any step takes one pass over the text.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use cpbpe::train::{ByteLearnSpec, Merges, PieceLimits, PieceProfile, Ties, WordsRef};
use cpbpe::Halt;

use crate::answer;
use crate::train::put;

/// Stands between words, and for a character that is not in the model.
const WALL: u32 = u32::MAX;

/// The hash of a pair. (With the hasher of the standard library, a step took twice as long.)
#[derive(Default)]
struct PairHasher(u64);

impl Hasher for PairHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {}
    fn write_u64(&mut self, pair: u64) {
        let mixed = pair.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ mixed >> 32;
    }
}

type PairMap<T> = HashMap<u64, T, BuildHasherDefault<PairHasher>>;

fn pair_of(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

/// Which pairs may be merged, and which of two equally frequent ones comes first. `symbol_of` is the symbol of each
/// character or byte.
pub enum Rules {
    Pieces { limits: PieceLimits, profiles: Vec<PieceProfile>, symbol_of: HashMap<char, u32> },
    Bytes { spec: Box<ByteLearnSpec>, symbol_of: Vec<u32> },
}

impl Rules {
    /// The rules of the SentencePiece family, for these characters.
    pub fn pieces(limits: PieceLimits, accepted: &[(char, u64)]) -> Result<Rules, Halt> {
        let classes = limits.char_classes()?;
        let compact = |c: char| if c == '\u{2581}' { ' ' } else { c };
        let profiles = accepted.iter().map(|&(c, _)| PieceProfile::of_character(classes.of(compact(c)))).collect();
        let symbol_of = accepted.iter().map(|&(c, _)| c).zip(0..).collect();
        Ok(Rules::Pieces { limits, profiles, symbol_of })
    }

    /// The rules of byte-level models.
    pub fn bytes(spec: ByteLearnSpec) -> Rules {
        let mut symbol_of = vec![0; 256];
        (0..).zip(&spec.byte_order).for_each(|(symbol, &byte)| symbol_of[usize::from(byte)] = symbol);
        Rules::Bytes { spec: Box::new(spec), symbol_of }
    }

    /// The texts of the symbols that are not merges.
    fn singles(&self) -> Vec<Vec<u8>> {
        match self {
            Rules::Pieces { symbol_of, .. } => {
                let mut texts = vec![Vec::new(); symbol_of.len()];
                symbol_of.iter().for_each(|(c, &symbol)| texts[symbol as usize] = c.to_string().into_bytes());
                texts
            }
            Rules::Bytes { spec, .. } => spec.byte_order.iter().map(|&byte| vec![byte]).collect(),
        }
    }

    /// A word as symbols.
    fn write(&self, word: &str, symbols: &mut Vec<u32>) {
        match self {
            Rules::Pieces { symbol_of, .. } => {
                symbols.extend(word.chars().map(|c| symbol_of.get(&c).copied().unwrap_or(WALL)));
            }
            Rules::Bytes { symbol_of, .. } => symbols.extend(word.bytes().map(|byte| symbol_of[usize::from(byte)])),
        }
    }
}

/// The text of a training, after its last merge.
struct Text {
    /// The symbols of each word, with a wall after it.
    symbols: Vec<u32>,
    /// Where each word ends in `symbols`, and how often it was counted.
    words: Vec<(usize, u64)>,
    /// The texts of all symbols.
    texts: Vec<Vec<u8>>,
    /// The number of the first symbol that is a merge.
    first: u32,
    /// The two symbols of each merge.
    pairs: Vec<[u32; 2]>,
    rules: Rules,
}

thread_local! {
    static TEXT: RefCell<Option<Text>> = const { RefCell::new(None) };
}

/// Keep a text and what was learned from it.
pub fn remember(words: &WordsRef, mut rules: Rules, merges: Merges) {
    // 1. The symbols.
    let mut texts = rules.singles();
    let first = texts.len() as u32;
    texts.extend(merges.pieces);
    if let Rules::Pieces { profiles, .. } = &mut rules {
        for [left, right] in &merges.pairs {
            profiles.push(profiles[*left as usize].then(&profiles[*right as usize]));
        }
    }
    // (A pair that no longer occurred makes no symbol. Such pairs are the last.)
    let made = merges.frequencies.iter().take_while(|&&frequency| frequency > 0).count();
    let mut pairs = merges.pairs;
    pairs.truncate(made);
    let ranks: PairMap<u32> =
        (first..).zip(&pairs).map(|(symbol, &[left, right])| (pair_of(left, right), symbol)).collect();
    // 2. The words; in the order of the text if that decides between equally frequent pairs.
    let mut order: Vec<usize> = (0..words.len()).collect();
    if matches!(&rules, Rules::Bytes { spec, .. } if spec.ties == Ties::First) {
        order.sort_unstable_by_key(|&at| words.first(at));
    }
    let mut text = Text { symbols: Vec::new(), words: Vec::new(), texts, first, pairs, rules };
    let mut word = Vec::new();
    for at in order {
        let (written, count) = words.get(at);
        word.clear();
        text.rules.write(written, &mut word);
        merge(&mut word, &ranks);
        text.symbols.extend(&word);
        text.symbols.push(WALL);
        text.words.push((text.symbols.len(), count));
    }
    TEXT.set(Some(text));
}

/// Make all merges in a word. A symbol that is taken into the one before it becomes a `WALL`, and is linked past.
fn merge(word: &mut Vec<u32>, ranks: &PairMap<u32>) {
    let rank = |left: u32, right: u32| ranks.get(&pair_of(left, right)).copied();
    let mut before: Vec<usize> = (0..word.len()).map(|at| at.wrapping_sub(1)).collect();
    let mut after: Vec<usize> = (1..=word.len()).collect();
    let mut queue = BinaryHeap::new();
    for at in 1..word.len() {
        queue.extend(rank(word[at - 1], word[at]).map(|new| Reverse((new, at - 1))));
    }
    while let Some(Reverse((new, at))) = queue.pop() {
        let next = after[at];
        if word[at] == WALL || next >= word.len() || rank(word[at], word[next]) != Some(new) {
            continue; // another merge has changed this place meanwhile
        }
        word[at] = new;
        word[next] = WALL;
        after[at] = after[next];
        if let Some(following) = word.get(after[at]).copied() {
            before[after[at]] = at;
            queue.extend(rank(new, following).map(|new| Reverse((new, at))));
        }
        if let Some(previous) = word.get(before[at]).copied() {
            queue.extend(rank(previous, new).map(|new| Reverse((new, before[at]))));
        }
    }
    let mut at = 0;
    let mut merged = Vec::with_capacity(word.len());
    while at < word.len() {
        merged.push(word[at]);
        at = after[at];
    }
    *word = merged;
}

impl Text {
    /// Visit each symbol of the text at a step, together with how often its word was counted.
    fn at_step(&self, step: u32, mut visit: impl FnMut(u32, u64)) {
        let limit = self.first.saturating_add(step);
        let mut stack = Vec::new();
        let mut begin = 0;
        for &(end, count) in &self.words {
            for &symbol in &self.symbols[begin..end] {
                stack.push(symbol);
                while let Some(symbol) = stack.pop() {
                    if symbol < limit || symbol == WALL {
                        visit(symbol, count);
                    } else {
                        let [left, right] = self.pairs[(symbol - self.first) as usize];
                        stack.extend([right, left]);
                    }
                }
            }
            begin = end;
        }
    }

    /// The most frequent pairs of a step that may be merged, best first.
    fn best(&self, step: u32, most: usize) -> Vec<(u32, u32, u64)> {
        // 1. Count. Pairs are numbered in the order in which they are first seen in the text.
        let mut counts: PairMap<(u64, u32)> = PairMap::default();
        let mut previous = WALL;
        self.at_step(step, |symbol, count| {
            if previous != WALL && symbol != WALL {
                let number = counts.len() as u32;
                counts.entry(pair_of(previous, symbol)).or_insert((0, number)).0 += count;
            }
            previous = symbol;
        });
        // 2. Sort the most frequent ones, which are few. (Sorting needs the texts of pairs, and making them takes time.)
        let mut found: Vec<(u64, u32, u32, u32)> = Vec::new();
        for (pair, (count, number)) in counts {
            let (left, right) = ((pair >> 32) as u32, pair as u32);
            if self.may_merge(left, right) {
                found.push((count, left, right, number));
            }
        }
        let nth = most.min(found.len());
        if nth > 0 && nth < found.len() {
            found.select_nth_unstable_by_key(nth - 1, |&(count, ..)| Reverse(count));
            let least = found[..nth].iter().map(|&(count, ..)| count).min().unwrap_or(0);
            found.retain(|&(count, ..)| count >= least);
        }
        found.sort_by_cached_key(|&(count, left, right, number)| (Reverse(count), self.order(left, right, number)));
        found.truncate(most);
        found.into_iter().map(|(count, left, right, _)| (left, right, count)).collect()
    }

    /// The text of a pair.
    fn text(&self, left: u32, right: u32) -> Vec<u8> {
        [&self.texts[left as usize][..], &self.texts[right as usize]].concat()
    }

    fn may_merge(&self, left: u32, right: u32) -> bool {
        match &self.rules {
            Rules::Pieces { limits, profiles, .. } => {
                limits.join(&profiles[left as usize], &profiles[right as usize]).is_some()
            }
            Rules::Bytes { spec, .. } => {
                let text = self.text(left, right);
                text.len() <= spec.max_length.max(2) as usize && !spec.forbidden.contains(&text)
            }
        }
    }

    /// What decides between equally frequent pairs: numbers, then a text.
    fn order(&self, left: u32, right: u32, number: u32) -> (u32, u32, Vec<u8>) {
        match &self.rules {
            Rules::Pieces { profiles, .. } => {
                let length = profiles[left as usize].then(&profiles[right as usize]).length;
                (u32::from(length), 0, self.text(left, right))
            }
            Rules::Bytes { spec, .. } if spec.ties == Ties::First => (number, 0, Vec::new()),
            Rules::Bytes { .. } => (left, right, Vec::new()),
        }
    }
}

/// The most frequent pairs after this many merges, in the order in which training prefers them: for each, its two
/// symbols and how often it occurs. The first one is the next merge.
#[no_mangle]
pub extern "C" fn rivals(step: u32, most: usize) -> i32 {
    answer(|_, numbers, _| {
        TEXT.with_borrow(|text| {
            for (left, right, count) in text.iter().flat_map(|text| text.best(step, most)) {
                numbers.extend([left, right]);
                put(numbers, [count]);
            }
        });
        Ok(0)
    })
}
