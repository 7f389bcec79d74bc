//! Training: a text -> merges, in one call. Python's `cpbpe.training` says what each option means.

use cpbpe::train::bytes::{learn_bytes, ByteCounter};
use cpbpe::train::{
    learn, ByteLearnSpec, CountSpec, Counter, LearnSpec, Merges, PieceLimits, Tallies, Ties, Tuning, WordsRef,
};
use cpbpe::watch::Monitor;
use cpbpe::{Error, NormalizerOptions};

use crate::answer;
use crate::rivals::{remember, Rules};

/// Write numbers of eight bytes, the lower half of each first.
pub fn put(numbers: &mut Vec<u32>, wide: impl IntoIterator<Item = u64>) {
    numbers.extend(wide.into_iter().flat_map(|number| [number as u32, (number >> 32) as u32]));
}

/// Write how many texts there were, and how many bytes they have; then the same of those that were left out, for each
/// reason; and how many of the others are not UTF-8.
fn put_tallies(tallies: &Tallies, numbers: &mut Vec<u32>) {
    put(numbers, [tallies.sentences, tallies.bytes]);
    tallies.skipped.iter().for_each(|skipped| put(numbers, [skipped.sentences, skipped.bytes]));
    put(numbers, [tallies.broken]);
}

/// Write how many merges there are; where the text of each ends; its two symbols (the numbers of characters, or bytes,
/// come first, then those of merges); how often the pair occurred; and how many symbols the text had before the first
/// merge and after each.
fn put_merges(merges: &Merges, numbers: &mut Vec<u32>, text: &mut Vec<u8>) {
    numbers.push(merges.pieces.len() as u32);
    for piece in &merges.pieces {
        text.extend(piece);
        numbers.push(text.len() as u32);
    }
    numbers.extend(merges.pairs.iter().flatten());
    put(numbers, merges.frequencies.iter().copied());
    put(numbers, merges.symbols.iter().copied());
}

/// The two parts of what was given: some texts, and the text to train on. The size of the first part comes before it, in
/// four bytes; its texts have NUL between them.
fn divided(given: &[u8]) -> (Vec<Vec<u8>>, &[u8]) {
    let (length, rest) = given.split_at(4);
    let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]);
    let (head, corpus) = rest.split_at(length as usize);
    (head.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect(), corpus)
}

/// Train a model of the SentencePiece family; each line is a text. Given are the special pieces, and the text to train
/// on. The result: tallies, merges, the characters of the model (how many, their code points, their counts), in the same
/// way those that were left out, and how often U+0000 occurred.
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
        // 1. Count.
        let (symbols, corpus) = divided(given);
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
            add_dummy_prefix: flag(6),
            remove_extra_whitespaces: flag(7),
            suffix: flag(4),
            ..NormalizerOptions::default()
        };
        let monitor = Monitor::default();
        let mut counter = Counter::new(CountSpec {
            limits,
            normalizer,
            symbols,
            delimiter: Vec::new(),
            max_sentence_length: max_sentence,
            keep_newlines: false,
            skip_reserved: true,
        })?;
        counter.add_block(corpus, 1, &monitor)?;
        put_tallies(counter.tallies(), numbers);
        let words = counter.drain(&monitor)?.checked()?;
        let words = WordsRef::new([&words.blob, &words.ends, &words.counts, &words.firsts], 1)?;
        // 2. Learn.
        let spec = LearnSpec {
            vocab_size,
            meta_pieces,
            limits,
            character_coverage: coverage as f32,
            required_chars: Vec::new(),
            auto_character_coverage: false,
            begun: None,
        };
        let learned = learn(&words, &spec, &Tuning::DEFAULT, 1, &monitor)?;
        put_merges(&learned.merges, numbers, text);
        for characters in [&learned.characters.accepted, &learned.characters.dropped] {
            numbers.push(characters.len() as u32);
            numbers.extend(characters.iter().map(|&(character, _)| u32::from(character)));
            put(numbers, characters.iter().map(|&(_, count)| count));
        }
        put(numbers, [learned.characters.nuls]);
        // 3. Keep what `rivals` needs.
        remember(&words, Rules::pieces(limits, &learned.characters.accepted)?, learned.merges);
        Ok(0)
    })
}

/// Train a byte-level model on one text. Given are the pattern that cuts it, texts that must not become pieces, and the
/// text. The result: tallies and merges. The bytes have the ids of GPT-2. Of equally frequent pairs, the one that comes
/// first in the text is merged (`first`), or the one with the smaller ids.
#[no_mangle]
pub extern "C" fn train_bytes(merges: usize, max_length: u32, first: bool) -> i32 {
    answer(|given, numbers, text| {
        // 1. Count.
        let (mut forbidden, corpus) = divided(given);
        let pattern = String::from_utf8(forbidden.remove(0)).map_err(|_| Error::InvalidWords)?;
        let monitor = Monitor::default();
        let mut counter = ByteCounter::new((!pattern.is_empty()).then_some(&*pattern), first)?;
        counter.add([(corpus, 1)].into_iter(), 1, &monitor)?;
        put_tallies(counter.tallies(), numbers);
        let words = counter.drain(&monitor)?.checked()?;
        let words = WordsRef::new([&words.blob, &words.ends, &words.counts, &words.firsts], 1)?;
        // 2. Learn.
        let ties = if first { Ties::First } else { Ties::Ids };
        let byte_order = gpt2_order();
        let spec = ByteLearnSpec { merges, ties, byte_order, min_frequency: 0, max_length, forbidden, begun: None };
        let learned = learn_bytes(&words, &spec, &Tuning::DEFAULT, 1, &monitor)?;
        put_merges(&learned, numbers, text);
        // 3. Keep what `rivals` needs.
        remember(&words, Rules::bytes(spec), learned);
        Ok(0)
    })
}

/// The bytes in the order of their ids in GPT-2's vocabulary: those that are visible characters in Latin-1 come first.
fn gpt2_order() -> [u8; 256] {
    let is_visible = |byte: u8| matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..);
    let mut order: [u8; 256] = std::array::from_fn(|byte| byte as u8);
    order.sort_by_key(|&byte| !is_visible(byte));
    order
}
