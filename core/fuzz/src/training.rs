//! What the fuzzer tries of training.

use std::collections::HashMap;

use cpbpe::train::bytes::learn_bytes;
use cpbpe::train::{learn, ByteLearnSpec, CountSpec, Counter, LearnSpec, PieceLimits, Ties, Tuning, Words, WordsRef};
use cpbpe::watch::Monitor;
use cpbpe::NormalizerOptions;

use crate::chance::Chance;
use crate::parts;

/// Values with which little text reaches all code.
const SMALL: Tuning = Tuning { small: 0, guess: 1, parts_from: 0 };

fn view(words: &Words) -> WordsRef<'_> {
    WordsRef::new([&words.blob, &words.ends, &words.counts, &words.firsts], 1).unwrap()
}

/// Words and merges must not depend on how the text is divided, nor on how learning is tuned.
pub fn train(data: &[u8]) {
    let (choices, text) = parts(data);
    let mut chance = Chance::of(choices);
    let mut flag = || chance.below(2) == 1;
    let limits = PieceLimits {
        max_sentencepiece_length: if flag() { 3 } else { 16 },
        split_by_unicode_script: flag(),
        split_by_number: flag(),
        split_digits: flag(),
        split_by_whitespace: !flag(),
        treat_whitespace_as_suffix: flag(),
        allow_whitespace_only_pieces: flag(),
    };
    let spec = CountSpec {
        limits,
        normalizer: NormalizerOptions {
            add_dummy_prefix: flag(),
            remove_extra_whitespaces: flag(),
            prefix_before_space: !flag(),
            ..NormalizerOptions::default()
        },
        symbols: if flag() { vec![b"ab".to_vec(), b"<s>".to_vec()] } else { Vec::new() },
        delimiter: if flag() { b"b".to_vec() } else { Vec::new() },
        max_sentence_length: if flag() { 8 } else { 0 },
        keep_newlines: flag(),
        skip_reserved: !flag(),
    };
    let required: Vec<char> = if flag() { vec!['z', 'a'] } else { Vec::new() };
    let all = flag();
    let monitor = Monitor::default();
    let counted = |threads| {
        let mut counter = Counter::new(spec.clone()).unwrap();
        counter.add_block(text, threads, &monitor).unwrap();
        (format!("{:?}", counter.tallies()), counter.drain(&monitor).unwrap())
    };
    let (tallies, words) = counted(1);
    assert!(
        (tallies, &words) == {
            let other = counted(2);
            (other.0, &other.1.clone())
        }
    );
    if !spec.keep_newlines {
        let mut counter = Counter::new(spec.clone()).unwrap();
        let whole = text.strip_suffix(b"\n").unwrap_or(text);
        for line in whole.split(|&byte| byte == b'\n').filter(|_| !text.is_empty()) {
            counter.add(line, 1, &monitor).unwrap();
        }
        assert!(counter.drain(&monitor).unwrap() == words);
    }
    let learning = LearnSpec {
        vocab_size: 3 + chance.below(60),
        meta_pieces: 3,
        limits: spec.limits,
        character_coverage: [1.0, 0.9, 0.5][chance.below(3)],
        required_chars: required,
        auto_character_coverage: all,
        begun: None,
    };
    let learned =
        |tuning: &Tuning, threads| format!("{:?}", learn(&view(&words), &learning, tuning, threads, &monitor));
    let expected = learned(&Tuning::DEFAULT, 1);
    assert_eq!(learned(&SMALL, 3), expected);
    assert_eq!(learned(&Tuning { guess: 1000, ..SMALL }, 1), expected);
}

/// Merges of bytes must be those that counting all pairs again for each merge finds.
pub fn train_bytes(data: &[u8]) {
    let (choices, text) = parts(data);
    let mut chance = Chance::of(choices);
    let ties = [Ties::Ids, Ties::First][chance.below(2)];
    let mut order: [u8; 256] = std::array::from_fn(|byte| byte as u8);
    if chance.below(2) == 1 {
        order.reverse();
    }
    let spec = ByteLearnSpec {
        merges: chance.below(40),
        ties,
        byte_order: order,
        min_frequency: [0, 2, 3][chance.below(3)],
        max_length: [0, 1, 3, 6][chance.below(4)],
        forbidden: [vec![], vec![b"ab".to_vec()], vec![b"aaa".to_vec(), b" a".to_vec()]][chance.below(3)].clone(),
        begun: None,
    };
    // Words in the order of their bytes, with the places where they were first seen, and counts.
    let text = String::from_utf8_lossy(text);
    let mut found: HashMap<&str, (u64, u64)> = HashMap::new();
    for (place, word) in text.split_inclusive(' ').enumerate() {
        found.entry(word).or_insert((0, place as u64)).0 += 1 + chance.below(2) as u64;
    }
    let mut sorted: Vec<(&str, u64, u64)> =
        found.into_iter().map(|(word, (count, first))| (word, count, first)).collect();
    sorted.sort_unstable();
    let mut words = Words::default();
    for &(word, count, first) in &sorted {
        words.push_ordered(word.as_bytes(), count, first).unwrap();
    }
    let expected = literally(&sorted, &spec);
    for (tuning, threads) in [(Tuning::DEFAULT, 1), (SMALL, 2), (Tuning { guess: 1000, ..SMALL }, 1)] {
        let learned = learn_bytes(&view(&words), &spec, &tuning, threads, &Monitor::default()).unwrap();
        let all: Vec<_> = learned.pairs.iter().copied().zip(learned.frequencies.iter().copied()).collect();
        assert_eq!(all, expected, "{text:?} {spec:?} {tuning:?}");
    }
}

/// The pairs that are merged, each with its frequency.
fn literally(sorted: &[(&str, u64, u64)], spec: &ByteLearnSpec) -> Vec<([u32; 2], u64)> {
    let id_of = |byte: u8| spec.byte_order.iter().position(|&one| one == byte).unwrap() as u32;
    let mut in_order = sorted.to_vec();
    in_order.sort_unstable_by_key(|&(_, _, first)| first);
    let mut rows: Vec<(Vec<u32>, u64)> =
        in_order.iter().map(|(word, count, _)| (word.bytes().map(id_of).collect(), *count)).collect();
    let mut texts: Vec<Vec<u8>> = spec.byte_order.iter().map(|&byte| vec![byte]).collect();
    let mut merges = Vec::new();
    while merges.len() < spec.merges {
        // How often each pair occurs, and the place where it does first.
        let mut counts: HashMap<[u32; 2], (u64, usize)> = HashMap::new();
        let mut place = 0;
        for (row, count) in &rows {
            for pair in row.windows(2) {
                counts.entry([pair[0], pair[1]]).or_insert((0, place)).0 += count;
                place += 1;
            }
        }
        let may_be = |pair: &[u32; 2]| {
            let text = [&texts[pair[0] as usize][..], &texts[pair[1] as usize]].concat();
            let short = spec.max_length == 0 || text.len() == 2 || text.len() <= spec.max_length as usize;
            short && !spec.forbidden.contains(&text)
        };
        let candidates = counts.iter().filter(|(pair, (count, _))| *count >= spec.min_frequency.max(1) && may_be(pair));
        let best = candidates.min_by_key(|&(&pair, &(count, place))| {
            let tie = if spec.ties == Ties::First { (place, [0; 2]) } else { (0, pair) };
            (std::cmp::Reverse(count), tie)
        });
        let Some((&pair, &(count, _))) = best else { break };
        let new = texts.len() as u32;
        texts.push([&texts[pair[0] as usize][..], &texts[pair[1] as usize]].concat());
        for (row, _) in &mut rows {
            let mut at = 0;
            while at + 1 < row.len() {
                if row[at..at + 2] == pair {
                    row[at] = new;
                    row.remove(at + 1);
                }
                at += 1;
            }
        }
        merges.push((pair, count));
    }
    merges
}
