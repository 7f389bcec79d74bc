//! Words -> merges of bytes. `learn` in `reference/byte_level/training.py` explains what is learned.

use crate::error::Error;
use crate::memory::collected;
use crate::train::bytes::tracked::BytePairs;
use crate::train::layout::{by_count, last_frequency, lay_out};
use crate::train::learner::Learner;
use crate::train::pairs::SymbolNumber;
use crate::train::text::TextPart;
use crate::train::values::{ByteLearnSpec, Merges, Ties, Tuning};
use crate::train::words::WordsRef;
use crate::watch::{LearnPhase, Monitor};

/// Learn merges from words. `Ties::First` needs words that record where each was first seen.
///
/// ```
/// use cpbpe::train::bytes::learn_bytes;
/// use cpbpe::train::{ByteLearnSpec, Ties, Tuning, Words, WordsRef};
/// use cpbpe::watch::Monitor;
///
/// let mut words = Words::default();
/// words.push_ordered(b"aaabdaaabac", 1, 0)?;
/// let words = WordsRef::new([&words.blob, &words.ends, &words.counts, &words.firsts], 1)?;
/// let spec = ByteLearnSpec {
///     merges: 3,
///     ties: Ties::First,
///     byte_order: std::array::from_fn(|byte| byte as u8),
///     min_frequency: 0,
///     max_length: 0,
///     forbidden: Vec::new(),
///     begun: None,
/// };
/// let learned = learn_bytes(&words, &spec, &Tuning::DEFAULT, 1, &Monitor::default())?;
/// assert_eq!(learned.pairs, [[97, 97], [256, 97], [257, 98]]);
/// assert_eq!(learned.frequencies, [4, 2, 2]);
/// assert_eq!(learned.symbols, [11, 9, 7, 5]);
/// # Ok::<(), cpbpe::Error>(())
/// ```
pub fn learn_bytes(
    words: &WordsRef,
    spec: &ByteLearnSpec,
    tuning: &Tuning,
    threads: usize,
    monitor: &Monitor,
) -> Result<Merges, Error> {
    // 1. Write the text as symbols. With `Ties::First`, places decide between equally frequent pairs, so the words must
    //    be in the order of the text.
    monitor.enter(LearnPhase::Pairs, words.len());
    if words.len() > u32::MAX as usize {
        return Err(Error::TextTooLong);
    }
    let order = match spec.ties {
        Ties::Ids => by_count(words)?,
        Ties::First => by_first(words)?,
    };
    let parts = match spec.ties {
        Ties::Ids if words.len() >= tuning.parts_from => threads.max(1),
        _ => 1,
    };
    let total = match &spec.begun {
        None => bytes_of(words)?,
        Some(begun) => begun.total(words)?,
    };
    let mut merges = Merges { symbols: vec![total], ..Merges::default() };
    if spec.merges == 0 {
        return Ok(merges);
    }
    // An estimate, for words in the order of their counts. Without that order all pairs are tracked (0).
    let last_frequency = match spec.ties {
        Ties::Ids => last_frequency(words, &order, spec.merges),
        Ties::First => 0,
    };
    // Symbol 1 is the byte with the id 0, and so on; or they are those of an older model.
    let bytes: Vec<Vec<u8>> = spec.byte_order.chunks(1).map(<[u8]>::to_vec).collect();
    let texts = spec.begun.as_ref().map_or(&bytes, |begun| &begun.texts);
    let mut symbol_of = [0; 256];
    for (symbol, &byte) in (1..).zip(&spec.byte_order) {
        symbol_of[usize::from(byte)] = symbol;
    }
    let write = |at: usize, word: &str, symbols: &mut Vec<SymbolNumber>| match &spec.begun {
        None => symbols.extend(word.bytes().map(|byte| symbol_of[usize::from(byte)])),
        Some(begun) => symbols.extend_from_slice(begun.word(at)),
    };
    let parts = lay_out(words, &order, texts.len(), parts, write, monitor)?;
    drop(order);

    // 2. Merge.
    let least = spec.min_frequency.max(1);
    let track_every_pair = parts.iter().map(TextPart::size).sum::<usize>() < tuning.small;
    let tracked = BytePairs::new(spec, texts)?;
    let mut learner = Learner::new((spec.merges, least), tuning, parts, tracked, last_frequency, monitor);
    learner.merge_all(spec.merges, track_every_pair.then_some(least), &mut merges)?;
    Ok(merges)
}

/// The words in the order in which they were first seen.
fn by_first(words: &WordsRef) -> Result<Vec<u32>, Error> {
    if !words.is_ordered() {
        return Err(Error::InvalidWords);
    }
    let mut order: Vec<u32> = collected(0..words.len() as u32)?;
    order.sort_unstable_by_key(|&at| words.first(at as usize));
    Ok(order)
}

/// How many bytes the text has, with all repetitions.
fn bytes_of(words: &WordsRef) -> Result<u64, Error> {
    let total = (0..words.len()).try_fold(0u64, |total, at| {
        let (word, count) = words.get(at);
        total.checked_add((word.len() as u64).checked_mul(count)?)
    });
    total.filter(|&total| total < 1 << 63).ok_or(Error::BytesOverflow)
}
