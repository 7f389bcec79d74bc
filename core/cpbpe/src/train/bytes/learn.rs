//! Words -> merges of bytes. `learn` in the reference explains what is learned.

use crate::error::Error;
use crate::memory::{with_room, Grow};
use crate::train::bytes::tracked::BytePairs;
use crate::train::layout::by_count;
use crate::train::learner::{Learner, Pairs};
use crate::train::pairs::SymbolNumber;
use crate::train::text::TextPart;
use crate::train::threads::{in_threads, CHECK_INTERVAL};
use crate::train::values::{ByteLearnSpec, Merges, Ties, Tuning};
use crate::train::words::WordsRef;
use crate::watch::{LearnPhase, Monitor};

/// The symbol of the byte with the id 0.
const FIRST_BYTE: SymbolNumber = 1;

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
    // 1. Write the text as symbols. If the first of several pairs is merged, the words must be in the order of the
    //    text.
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
    let mut learned = Merges::default();
    learned.symbols.push(bytes_of(words)?);
    if spec.merges == 0 {
        return Ok(learned);
    }
    // Frequent words become pieces, so the last merge is about as frequent as the word of that rank.
    let last_frequency = match spec.ties {
        Ties::Ids => order.get(spec.merges / 4 * 3).map_or(0, |&at| words.count(at as usize) / 4 * 5),
        Ties::First => 0,
    };
    let parts = lay_out(words, &order, &spec.byte_order, parts, monitor)?;
    drop(order);

    // 2. Count all pairs, and track those that are frequent enough.
    let least = spec.min_frequency.max(1);
    let all = parts.iter().map(TextPart::size).sum::<usize>() < tuning.small;
    let mut learner = Learner::new((spec.merges, least), tuning, parts, BytePairs::new(spec), last_frequency, monitor);
    learner.count_and_track(all.then_some(least))?;
    monitor.enter(LearnPhase::Merges, spec.merges);
    while learned.pairs.len() < spec.merges {
        monitor.advance(learned.pairs.len())?;
        // 3. Take the best pair. If all tracked pairs have become too rare, track more pairs first.
        let Some(number) = learner.tracked.pop_best_in(&learner.parts)? else {
            if learner.tracked.threshold() <= least {
                break;
            }
            learner.count_and_track(Some(learner.next_threshold(learned.pairs.len(), spec.merges)))?;
            continue;
        };
        // 4. Merge it, unless its text is forbidden.
        let Some(piece) = learner.tracked.piece(number) else { continue };
        let pair = learner.tracked.get(number);
        let symbols = learned.symbols.last().copied().unwrap_or(0);
        learned.symbols.push(symbols - learner.merge(number)?);
        learned.pairs.push([pair.left - FIRST_BYTE, pair.right - FIRST_BYTE]);
        learned.pieces.push(piece);
        learned.frequencies.push(pair.frequency);
    }
    Ok(learned)
}

/// The words in the order in which they were first seen.
fn by_first(words: &WordsRef) -> Result<Vec<u32>, Error> {
    if !words.is_ordered() {
        return Err(Error::InvalidWords);
    }
    let mut order: Vec<u32> = with_room(words.len())?;
    order.extend(0..words.len() as u32);
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

/// Lay out the words in this many parts. Symbol 1 is the byte with the id 0, and so on.
fn lay_out(
    words: &WordsRef,
    order: &[u32],
    byte_order: &[u8; 256],
    parts: usize,
    monitor: &Monitor,
) -> Result<Vec<TextPart>, Error> {
    let mut symbol_of = [0; 256];
    for (symbol, &byte) in (FIRST_BYTE..).zip(byte_order) {
        symbol_of[usize::from(byte)] = symbol;
    }
    // Words that are neighbours in this order go to different parts, so that all parts are alike.
    let lay_out_part = |number: usize| -> Result<TextPart, Error> {
        let mut part = TextPart::new(byte_order.len());
        let mut symbols: Vec<SymbolNumber> = Vec::new();
        for (done, &at) in order.iter().skip(number).step_by(parts).enumerate() {
            if done % CHECK_INTERVAL == 0 {
                monitor.check()?;
            }
            let (word, count) = words.get(at as usize);
            if word.len() > 1 {
                symbols.clear();
                Grow::grow(&mut symbols, word.len())?;
                symbols.extend(word.bytes().map(|byte| symbol_of[usize::from(byte)]));
                part.push(&symbols, count)?;
            }
        }
        Ok::<_, Error>(part)
    };
    in_threads(0..parts, lay_out_part).into_iter().collect()
}
