//! Words -> the text as symbols, in parts for threads.

use std::cmp::Reverse;

use crate::error::{Error, Halt};
use crate::memory::{collected, probe, zeros, Grow};
use crate::train::pairs::NO_SYMBOL;
use crate::train::text::TextPart;
use crate::train::threads::{in_threads, CHECK_INTERVAL};
use crate::train::words::WordsRef;
use crate::watch::Monitor;

/// The words in the order of their counts, highest first.
pub fn by_count(words: &WordsRef) -> Result<Vec<u32>, Halt> {
    let mut order = collected(0..words.len() as u32)?;
    probe(order.len() * size_of::<u32>())?; // sorting takes half of it
    order.sort_by_key(|&at| Reverse(words.count(at as usize)));
    Ok(order)
}

/// Lay out the words in this many parts. Symbol 1 is the first accepted character, and so on.
pub fn lay_out(
    words: &WordsRef,
    order: &[u32],
    accepted: &[(char, u64)],
    parts: usize,
    monitor: &Monitor,
) -> Result<Vec<TextPart>, Error> {
    let mut symbol_of: Vec<u32> = zeros(0x11_0000)?; // NO_SYMBOL
    for (symbol, (c, _)) in (1..).zip(accepted) {
        symbol_of[*c as usize] = symbol;
    }
    // Words next to each other in this order go to different parts, so that the parts are alike.
    let lay_out_part = |number: usize| -> Result<TextPart, Error> {
        let mut part = TextPart::new(accepted.len());
        let mut symbols: Vec<u32> = Vec::new();
        for (done, &at) in order.iter().skip(number).step_by(parts).enumerate() {
            if done % CHECK_INTERVAL == 0 {
                monitor.check()?;
            }
            let (word, count) = words.get(at as usize);
            symbols.clear();
            symbols.grow(word.len())?;
            symbols.extend(word.chars().map(|c| symbol_of[c as usize]));
            // A character that is not accepted divides a word, and a single symbol never merges.
            for run in symbols.split(|&symbol| symbol == NO_SYMBOL).filter(|run| run.len() > 1) {
                part.push(run, count)?;
            }
        }
        Ok(part)
    };
    in_threads(0..parts, lay_out_part).into_iter().collect()
}
