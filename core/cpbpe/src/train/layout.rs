//! Words -> the text as symbols, in parts for threads.

use std::cmp::Reverse;

use crate::error::{Error, Halt};
use crate::memory::{probe, zeros, Grow};
use crate::train::pairs::{SymbolNumber, NO_SYMBOL};
use crate::train::text::TextPart;
use crate::train::threads::{in_threads, CHECK_INTERVAL};
use crate::train::words::WordsRef;
use crate::watch::Monitor;

/// Each count below this one has a bucket of its own in `by_count`.
const FEW: usize = 1 << 12;

/// The words in the order of their counts, highest first; words with equal counts keep their order.
///
/// Nearly all words are rare. So rare words are put into a bucket for each count, and only the others are sorted.
/// (Sorting all of them by comparison took at least 12 million instructions for 10 MB of text, 1.5 % of learning.)
pub fn by_count(words: &WordsRef) -> Result<Vec<u32>, Halt> {
    let bucket = |at: u32| usize::try_from(words.count(at as usize)).unwrap_or(usize::MAX);
    // 1. Sort the frequent words. For each lower count, find out how many words have it.
    let mut frequent = Vec::new();
    let mut begins = vec![0u32; FEW]; // first how many words have a count, then the begin of its bucket
    for at in 0..words.len() as u32 {
        match begins.get_mut(bucket(at)) {
            Some(size) => *size += 1,
            None => {
                frequent.try_push(at)?;
            }
        }
    }
    probe(frequent.len() * size_of::<u32>())?; // sorting takes half as much
    frequent.sort_by_key(|&at| Reverse(words.count(at as usize)));
    // 2. Place the buckets after them, the highest count first.
    let mut begin = frequent.len() as u32;
    for size in begins.iter_mut().rev() {
        let end = begin + *size;
        *size = begin;
        begin = end;
    }
    // 3. Put every other word into its bucket.
    let mut order: Vec<u32> = zeros(words.len())?;
    order[..frequent.len()].copy_from_slice(&frequent);
    for at in 0..words.len() as u32 {
        if let Some(place) = begins.get_mut(bucket(at)) {
            order[*place as usize] = at;
            *place += 1;
        }
    }
    Ok(order)
}

/// An estimate of how frequent the last of this many merges will be: rarer pairs need not be tracked. (Frequent words
/// become pieces, so it depends on the word of that rank. A wrong estimate costs only time.)
pub fn last_frequency(words: &WordsRef, by_count: &[u32], merges: usize) -> u64 {
    by_count.get(merges / 4 * 3).map_or(0, |&at| words.count(at as usize) / 4 * 5)
}

/// Lay out the words as text in `parts` parts. `write` is given a word and its place, and appends its symbols: numbers
/// from 1 to `symbols`.
pub fn lay_out(
    words: &WordsRef,
    order: &[u32],
    symbols: usize,
    parts: usize,
    write: impl Fn(usize, &str, &mut Vec<SymbolNumber>) + Sync,
    monitor: &Monitor,
) -> Result<Vec<TextPart>, Error> {
    // Words that are neighbours in this order go to different parts, so that all parts are alike.
    let lay_out_part = |number: usize| -> Result<TextPart, Error> {
        let mut part = TextPart::new(symbols);
        let mut written = Vec::new();
        for (done, &at) in order.iter().skip(number).step_by(parts).enumerate() {
            if done % CHECK_INTERVAL == 0 {
                monitor.check()?;
            }
            let (word, count) = words.get(at as usize);
            written.clear();
            written.grow(word.len())?;
            write(at as usize, word, &mut written);
            // A character that is not accepted divides a word. A symbol that is alone never merges.
            for run in written.split(|&symbol| symbol == NO_SYMBOL).filter(|run| run.len() > 1) {
                part.push(run, count)?;
            }
        }
        Ok(part)
    };
    in_threads(0..parts, lay_out_part).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::words::Words;

    #[test]
    fn words_come_by_their_counts_and_then_in_their_order() {
        let mut words = Words::default();
        let few = FEW as u64;
        let counts = [1, few, 2, few - 1, 1, i64::MAX as u64, few + 1, few, 0, 2, 1, few - 1, few];
        for (at, count) in ('a'..).zip(counts) {
            words.push(at.to_string().as_bytes(), count).unwrap();
        }
        let words = words.view();
        let mut expected: Vec<u32> = (0..counts.len() as u32).collect();
        expected.sort_by_key(|&at| Reverse(words.count(at as usize)));
        assert_eq!(by_count(&words).unwrap(), expected);
        assert_eq!(by_count(&Words::default().view()).unwrap(), []);
    }
}
