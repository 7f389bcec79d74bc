//! Random rules, user-defined pieces and text: normalizing by places must give what looking at each character gives.
//! `CPBPE_SECONDS=3600 cargo test --test normalizing` goes on for an hour.

mod chance;
mod file;
mod laws;
mod rules;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use cpbpe::train::{CountSpec, Counter, PieceLimits};
use cpbpe::watch::{Monitor, NO_CHECK};
use cpbpe::{use_at_most, Instructions, NormalizerOptions, Scratch};

use chance::Chance;
use laws::{assert_same, normalized_in_every_way};
use rules::{compiled, engine, engine_with, rules, text};

#[test]
fn by_places_as_by_characters() {
    let seconds = std::env::var("CPBPE_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(8);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut chance = Chance::new(0x0F1E_2D3C_4B5A_6978 ^ seconds);
    let mut round = 0;
    while Instant::now() < end {
        use_at_most(Instructions::ALL[chance.below(3)]);
        let engine = engine(&mut chance);
        for number in 0..12 {
            let long = round % 16 == 0 && number == 0; // enough for several threads
            let length = if long { 150_000 } else { [0, 3, 30, 62, 65, 130, 1000, 9000][chance.below(8)] };
            let broken = chance.below(3) == 0;
            let text = text(&mut chance, length, broken);
            normalized_in_every_way(&engine, &text);
            let expected = engine.encode_slowly(&text).unwrap();
            for valid in [false, std::str::from_utf8(&text).is_ok()] {
                let encode = |scratch: &mut Scratch| {
                    engine.encode(&text, valid, NO_CHECK, scratch).map(|()| scratch.ids.clone())
                };
                assert_same(&engine.with_scratch(encode).unwrap().unwrap(), &expected, &text);
            }
            let parallel = engine.encode_parallel(&text, false, 3, NO_CHECK).unwrap();
            assert_same(&parallel, &expected, &text);
        }
        round += 1;
    }
    println!("{round} models");
    assert!(round > 0);
}

/// Check that a block is counted as each of its lines by itself.
fn assert_counts_as_sentences(spec: &CountSpec, block: &[u8]) {
    let monitor = Monitor::default();
    let counted = |count: &mut dyn FnMut(&mut Counter)| {
        let mut counter = Counter::new(spec.clone()).unwrap();
        count(&mut counter);
        (format!("{:?}", counter.tallies()), counter.drain(&monitor).unwrap())
    };
    let lines = counted(&mut |counter| counter.add_block(block, 1, &monitor).unwrap());
    let sentences = counted(&mut |counter| {
        let whole = block.strip_suffix(b"\n").unwrap_or(block);
        for line in whole.split(|&byte| byte == b'\n').filter(|_| !block.is_empty()) {
            counter.add(line, 1, &monitor).unwrap();
        }
    });
    assert!(lines == sentences, "{spec:?} {:?}", String::from_utf8_lossy(block));
}

/// The first character of a rule is the last of a valid part, and bytes that are no character are the rest of it.
#[test]
fn a_rule_that_goes_on_with_bytes_that_are_no_character() {
    let rules = [(b" \xed\xa0\x80".to_vec(), b"x".to_vec()), (b" ".to_vec(), b"e".to_vec())].into_iter().collect();
    let mut chance = Chance::new(1);
    for length in 0..200 {
        let engine = engine_with(&rules, &mut chance);
        let text = ["a".repeat(length).as_bytes(), b" \xed\xa0\x80b "].concat();
        let (fast, slow) = (engine.origins(&text, NO_CHECK).unwrap(), engine.origins_slowly(&text).unwrap());
        assert_same(&fast.0, &slow.0, &text);
        assert_same(&fast.1, &slow.1, &text);
    }
}

/// The first character of a rule is in one block and the second in the next, wherever that begins.
#[test]
fn a_rule_across_the_end_of_a_block() {
    let rules = [("-\u{301}", "x"), ("é\u{301}", " y"), ("中\u{301}", ""), ("-+", "z"), ("\n", " "), ("A", "a")];
    let rules = rules.into_iter().map(|(key, value)| (key.as_bytes().to_vec(), value.as_bytes().to_vec())).collect();
    let mut chance = Chance::new(2);
    for (length, first) in (0..200).flat_map(|length| ["-", "é", "中", "\n"].map(|first| (length, first))) {
        let engine = engine_with(&rules, &mut chance);
        for (filler, second) in [("a", "\u{301}"), ("ж", "\u{301}"), ("A ", "+"), (" \n", "\n ")] {
            let text = [&filler.repeat(length), first, second, &"b".repeat(length % 140)].concat();
            let slow = engine.origins_slowly(text.as_bytes()).unwrap();
            let fast = engine.normalize((text.as_bytes(), true), NO_CHECK).unwrap();
            assert_same(&fast, &slow.0, text.as_bytes());
            let expected = engine.encode_slowly(text.as_bytes()).unwrap();
            let encode = |scratch: &mut Scratch| {
                engine.encode(text.as_bytes(), true, NO_CHECK, scratch).map(|()| scratch.ids.clone())
            };
            assert_same(&engine.with_scratch(encode).unwrap().unwrap(), &expected, text.as_bytes());
        }
    }
}

/// A rule may change a space that ends a line, also where spaces at the ends of lines stay.
#[test]
fn a_rule_for_the_last_space_of_a_line() {
    let spec = CountSpec {
        limits: PieceLimits {
            max_sentencepiece_length: 16,
            split_by_unicode_script: true,
            split_by_number: true,
            split_digits: false,
            split_by_whitespace: true,
            treat_whitespace_as_suffix: false,
            allow_whitespace_only_pieces: true,
        },
        normalizer: NormalizerOptions {
            charsmap: compiled(&BTreeMap::from([(b" ".to_vec(), b"e".to_vec())])),
            add_dummy_prefix: true,
            remove_extra_whitespaces: false,
            ..NormalizerOptions::default()
        },
        symbols: Vec::new(),
        delimiter: Vec::new(),
        max_sentence_length: 4000,
        keep_newlines: false,
        skip_reserved: true,
    };
    let block = ["\n \n", &"中".repeat(30), ", a b \n"].concat();
    assert_counts_as_sentences(&spec, block.as_bytes());
}

/// Training counts most lines where they are, without normalizing them, if that would change nothing.
#[test]
fn lines_of_a_block_as_sentences() {
    let seconds = std::env::var("CPBPE_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(3);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut chance = Chance::new(0x1E2D_3C4B_5A69_780F ^ seconds);
    while Instant::now() < end {
        let mut rules = rules(&mut chance);
        rules.retain(|_, replacement| std::str::from_utf8(replacement).is_ok());
        let spec = CountSpec {
            limits: PieceLimits {
                max_sentencepiece_length: 16,
                split_by_unicode_script: true,
                split_by_number: true,
                split_digits: chance.below(2) == 0,
                split_by_whitespace: chance.below(9) > 0,
                treat_whitespace_as_suffix: chance.below(9) == 0,
                allow_whitespace_only_pieces: chance.below(2) == 0,
            },
            normalizer: NormalizerOptions {
                charsmap: if rules.is_empty() { Vec::new() } else { compiled(&rules) },
                add_dummy_prefix: chance.below(9) > 0,
                remove_extra_whitespaces: chance.below(2) == 0,
                prefix_before_space: chance.below(9) > 0,
                ..NormalizerOptions::default()
            },
            symbols: [&b"<s>"[..], b"ab", b"e "][..chance.below(4)].iter().map(|symbol| symbol.to_vec()).collect(),
            delimiter: if chance.below(9) == 0 { b"a".to_vec() } else { Vec::new() },
            max_sentence_length: [0, 0, 50, 4000][chance.below(4)],
            keep_newlines: false,
            skip_reserved: chance.below(9) > 0,
        };
        for _ in 0..8 {
            // Some words that rules change, and many that they do not.
            let mut block = Vec::new();
            for _ in 0..chance.below(400) {
                let length = if chance.below(12) == 0 { 1 + chance.below(9) } else { 0 };
                let broken = length == 7 && chance.below(9) == 0;
                block.extend_from_slice(&text(&mut chance, length, broken));
                block.extend_from_slice(chance.pick(&[
                    &b"word "[..],
                    b"w ",
                    b"wo\n",
                    b"<s>",
                    b"  ",
                    b"\n",
                    b"ord 12, ",
                    "ж ".as_bytes(),
                    b" \n ",
                ]));
            }
            assert_counts_as_sentences(&spec, &block);
        }
    }
}
