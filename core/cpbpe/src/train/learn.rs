//! Words -> characters and merges. `learn` in the reference explains what is learned. This file and `learner.rs` do the
//! same, but fast.
//!
//! **Pairs that are no longer in the text** come last (see "Pairs stay candidates" in the reference). To know them,
//! every pair must have been tracked from the start. For small texts this is always done. For others these pairs are
//! rarely needed; if they are, learning starts again and tracks every pair.

use crate::error::Error;
use crate::memory::zeros;
use crate::train::characters::{accept_characters, count_characters};
use crate::train::layout::{by_count, last_frequency, lay_out};
use crate::train::learner::Learner;
use crate::train::text::TextPart;
use crate::train::tracked::TrackedPairs;
use crate::train::values::{Characters, LearnSpec, Learned, Merges, Tuning};
use crate::train::words::WordsRef;
use crate::watch::{LearnPhase, Monitor};

/// Learn merges from words.
///
/// ```
/// use cpbpe::train::{learn, LearnSpec, PieceLimits, Tuning, Words, WordsRef};
/// use cpbpe::watch::Monitor;
///
/// let mut words = Words::default();
/// for word in ["▁low", "▁lower", "▁lowest", "▁newer", "▁newest"] {
///     words.push(word.as_bytes(), 1)?;
/// }
/// let limits = PieceLimits {
///     max_sentencepiece_length: 16,
///     split_by_unicode_script: true,
///     split_by_number: true,
///     split_digits: false,
///     split_by_whitespace: true,
///     treat_whitespace_as_suffix: false,
///     allow_whitespace_only_pieces: false,
/// };
/// let spec = LearnSpec {
///     vocab_size: 17,
///     meta_pieces: 3,
///     limits,
///     character_coverage: 1.0,
///     required_chars: Vec::new(),
///     auto_character_coverage: false,
///     begun: None,
/// };
/// let words = WordsRef::new([&words.blob, &words.ends, &words.counts, &words.firsts], 1)?;
/// let learned = learn(&words, &spec, &Tuning::DEFAULT, 1, &Monitor::default())?;
/// let characters: String = learned.characters.accepted.iter().map(|(c, _)| c).collect();
/// assert_eq!(characters, "ew▁lonrst");
/// let pieces = ["we", "lo", "▁lo", "ne", "st"].map(|piece| piece.as_bytes().to_vec());
/// assert_eq!(learned.merges.pieces, pieces);
/// assert_eq!(learned.merges.frequencies, [4, 3, 3, 2, 2]);
/// # Ok::<(), cpbpe::Error>(())
/// ```
pub fn learn(
    words: &WordsRef,
    spec: &LearnSpec,
    tuning: &Tuning,
    threads: usize,
    monitor: &Monitor,
) -> Result<Learned, Error> {
    // 1. Accept characters, which are the first symbols; or begin with those of an older model.
    monitor.enter(LearnPhase::Characters, words.len());
    let (characters, total) = match &spec.begun {
        None => {
            let characters = accept_characters(&count_characters(words, threads, monitor)?, spec);
            let total = characters.total;
            (characters, total)
        }
        Some(begun) => (Characters::default(), begun.total(words)?),
    };
    let merges = Merges { symbols: vec![total], ..Merges::default() };
    let mut learned = Learned { characters, merges };
    let accepted = &learned.characters.accepted[..];
    let of_characters: Vec<Vec<u8>>;
    let texts = match &spec.begun {
        None => {
            of_characters = accepted.iter().map(|(c, _)| c.to_string().into_bytes()).collect();
            &of_characters
        }
        Some(begun) => &begun.texts,
    };

    // 2. Calculate how many merges are needed.
    let taken = if spec.auto_character_coverage { 0 } else { accepted.len() };
    let limit = spec.vocab_size.saturating_sub(spec.meta_pieces).saturating_sub(taken);
    if limit == 0 {
        return Ok(learned);
    }

    // 3. Write the text as symbols. With little text, merges are small, and having several parts would take a fifth
    //    more time. (Dividing it up to the first merge and then making one part of it took as long, and a twelfth more
    //    memory.)
    monitor.enter(LearnPhase::Pairs, words.len());
    if words.len() > u32::MAX as usize {
        return Err(Error::TextTooLong);
    }
    let parts = if words.len() < tuning.parts_from { 1 } else { threads.max(1) };
    let order = by_count(words)?;
    let last_frequency = last_frequency(words, &order, limit);
    let mut track_every_pair = false;
    loop {
        let mut symbol_of: Vec<u32> = zeros(0x11_0000)?; // NO_SYMBOL
        for (symbol, (c, _)) in (1..).zip(accepted) {
            symbol_of[*c as usize] = symbol;
        }
        let write = |at: usize, word: &str, symbols: &mut Vec<u32>| match &spec.begun {
            None => symbols.extend(word.chars().map(|c| symbol_of[c as usize])),
            Some(begun) => symbols.extend_from_slice(begun.word(at)),
        };
        let parts = lay_out(words, &order, texts.len(), parts, write, monitor)?;
        drop(symbol_of);
        track_every_pair |= parts.iter().map(TextPart::size).sum::<usize>() < tuning.small;

        // 4. Merge.
        let tracked = TrackedPairs::new(spec.limits, texts)?;
        let mut learner = Learner::new((spec.vocab_size, 1), tuning, parts, tracked, last_frequency, monitor);
        if learner.merge_all(limit, track_every_pair.then_some(0), &mut learned.merges)? {
            return Ok(learned);
        }

        // 5. Pairs are needed that are no longer in the text. Start again, and track every pair.
        track_every_pair = true;
        learned.merges = Merges { symbols: vec![total], ..Merges::default() };
    }
}
