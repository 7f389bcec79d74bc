//! Training: a text -> merges, in one call. Python's `cpbpe.training` says what each option means.

use cpbpe::train::bytes::{learn_bytes, ByteCounter};
use cpbpe::train::{learn, ByteLearnSpec, CountSpec, Counter, LearnSpec, Merges, PieceLimits, Ties, Tuning, WordsRef};
use cpbpe::watch::Monitor;
use cpbpe::NormalizerOptions;

use crate::answer;

/// Numbers of eight bytes, the lower half of each first.
fn put(numbers: &mut Vec<u32>, wide: impl Iterator<Item = u64>) {
    numbers.extend(wide.flat_map(|number| [number as u32, (number >> 32) as u32]));
}

/// The merges: how many; where the text of each piece ends; how often each pair occurred; how many symbols the text had
/// before the first merge and after each.
fn put_merges(merges: Merges, numbers: &mut Vec<u32>, text: &mut Vec<u8>) {
    numbers.push(merges.pieces.len() as u32);
    for piece in &merges.pieces {
        text.extend(piece);
        numbers.push(text.len() as u32);
    }
    put(numbers, merges.frequencies.into_iter());
    put(numbers, merges.symbols.into_iter());
}

/// What was given: a short text whose length comes first, and the text to train on.
fn divided(given: &[u8]) -> (&[u8], &[u8]) {
    let (length, rest) = given.split_at(4);
    rest.split_at(u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize)
}

/// Train a model of the SentencePiece family; each line is a text. Given are compiled rules of normalization and the
/// text. After the merges come the characters of the model (how many, their code points, their counts), and those that
/// were left out.
///
/// The bits of `flags`, from the lowest: split_by_unicode_script, split_by_number, split_digits, split_by_whitespace,
/// treat_whitespace_as_suffix, allow_whitespace_only_pieces, add_dummy_prefix, remove_extra_whitespaces.
#[no_mangle]
pub extern "C" fn train(
    flags: u32,
    vocab_size: usize,
    meta_pieces: usize,
    coverage: f64,
    max_piece: usize,
    max_sentence: usize,
) -> i32 {
    answer(|given, numbers, text| {
        let (charsmap, corpus) = divided(given);
        let flag = |bit: u32| flags >> bit & 1 == 1;
        let limits = PieceLimits {
            max_sentencepiece_length: max_piece,
            split_by_unicode_script: flag(0),
            split_by_number: flag(1),
            split_digits: flag(2),
            split_by_whitespace: flag(3),
            treat_whitespace_as_suffix: flag(4),
            allow_whitespace_only_pieces: flag(5),
        };
        let normalizer = NormalizerOptions {
            charsmap: charsmap.to_vec(),
            add_dummy_prefix: flag(6),
            remove_extra_whitespaces: flag(7),
            suffix: flag(4),
            ..NormalizerOptions::default()
        };
        let (monitor, tuning) = (Monitor::default(), Tuning::DEFAULT);
        let mut counter = Counter::new(CountSpec {
            limits,
            normalizer,
            symbols: Vec::new(),
            delimiter: Vec::new(),
            max_sentence_length: max_sentence,
            keep_newlines: false,
            skip_reserved: true,
        })?;
        counter.add_block(corpus, 1, &monitor)?;
        let words = counter.drain(&monitor)?.checked()?;
        let spec = LearnSpec {
            vocab_size,
            meta_pieces,
            limits,
            character_coverage: coverage as f32,
            required_chars: Vec::new(),
            auto_character_coverage: false,
        };
        let words = WordsRef::new([&words.blob, &words.ends, &words.counts, &words.firsts], 1)?;
        let learned = learn(&words, &spec, &tuning, 1, &monitor)?;
        put_merges(learned.merges, numbers, text);
        for characters in [learned.characters.accepted, learned.characters.dropped] {
            numbers.push(characters.len() as u32);
            numbers.extend(characters.iter().map(|&(character, _)| u32::from(character)));
            put(numbers, characters.iter().map(|&(_, count)| count));
        }
        Ok(0)
    })
}

/// Train a byte-level model. Given are the pattern that cuts text, and one text. After the merges come the two symbols
/// of each.
#[no_mangle]
pub extern "C" fn train_bytes(merges: usize) -> i32 {
    answer(|given, numbers, text| {
        let (pattern, corpus) = divided(given);
        let pattern = String::from_utf8_lossy(pattern);
        let monitor = Monitor::default();
        let mut counter = ByteCounter::new((!pattern.is_empty()).then_some(&*pattern), false)?;
        counter.add([(corpus, 1)].into_iter(), 1, &monitor)?;
        let words = counter.drain(&monitor)?.checked()?;
        let spec = ByteLearnSpec {
            merges,
            ties: Ties::Ids,
            byte_order: std::array::from_fn(|byte| byte as u8),
            min_frequency: 0,
            max_length: 0,
            forbidden: Vec::new(),
        };
        let words = WordsRef::new([&words.blob, &words.ends, &words.counts, &words.firsts], 1)?;
        let learned = learn_bytes(&words, &spec, &Tuning::DEFAULT, 1, &monitor)?;
        let pairs: Vec<u32> = learned.pairs.iter().flatten().copied().collect();
        put_merges(learned, numbers, text);
        numbers.extend(pairs);
        Ok(0)
    })
}
