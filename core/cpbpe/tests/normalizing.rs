//! Random rules, user-defined pieces and text: normalizing by places must give what looking at each character gives.
//! `CPBPE_SECONDS=3600 cargo test --test normalizing` goes on for an hour.

mod chance;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use cpbpe::train::{CountSpec, Counter, PieceLimits};
use cpbpe::watch::{Monitor, NO_CHECK};
use cpbpe::{use_vectors, Columns, Engine, NormalizerOptions, Scratch};

use chance::Chance;

/// What keys and texts are made of: characters of all lengths, some of which begin alike.
const LETTERS: &[&str] = &[
    "a", "b", "A", "-", "e", " ", " ", "\n", "\u{2581}", "\u{2582}", "é", "ж", "и", "\u{301}", "\u{306}", "中", "丮",
    "か", "\u{3099}", "，", "न", "\u{93c}", "🦙", "𝔸", "\0",
];
/// Bytes that are not UTF-8.
const BROKEN: &[&[u8]] = &[b"\xff", b"\xe2", b"\xe2\x96", b"\x81", b"\xa9", b"\xc3", b"\xf0\x9f", b"\xed\xa0\x80"];

type Rules = BTreeMap<Vec<u8>, Vec<u8>>;

/// Compile rules as sentencepiece stores them: a double array, made in the simplest way, and the replacements.
fn compiled(rules: &Rules) -> Vec<u8> {
    let mut replacements = Vec::new();
    let mut values = BTreeMap::new();
    for (key, replacement) in rules {
        values.insert(key.clone(), replacements.len() as u32);
        replacements.extend_from_slice(replacement);
        replacements.push(0);
    }
    let mut units = vec![0u32; 256];
    let (mut used, mut bases) = (BTreeSet::from([0usize]), BTreeSet::from([0usize]));
    let mut waiting = vec![(0usize, Vec::new())];
    while let Some((at, prefix)) = waiting.pop() {
        let next = |key: &Vec<u8>| (key.len() > prefix.len() && key.starts_with(&prefix)).then(|| key[prefix.len()]);
        let labels: BTreeSet<u8> = rules.keys().filter_map(next).collect();
        let leaf = values.get(&prefix);
        // The children of a node are at base ^ label, and its value at base.
        let free = |base: usize| {
            let mut spots = labels.iter().map(|&label| base ^ usize::from(label)).chain(leaf.map(|_| base));
            !bases.contains(&base) && spots.all(|spot| !used.contains(&spot))
        };
        let distance = (1..1 << 21).find(|distance| free(at ^ distance)).unwrap();
        let base = at ^ distance;
        bases.insert(base);
        units.resize(units.len().max((base | 0xFF) + 1), 0);
        units[at] |= (distance as u32) << 10 | u32::from(leaf.is_some()) << 8;
        if let Some(&value) = leaf {
            used.insert(base);
            units[base] = value | 1 << 31;
        }
        for label in labels {
            let spot = base ^ usize::from(label);
            used.insert(spot);
            units[spot] = u32::from(label);
            waiting.push((spot, [&prefix[..], &[label]].concat()));
        }
    }
    for (at, unit) in units.iter_mut().enumerate().filter(|(at, _)| !used.contains(at)) {
        // A label that no walk arrives with.
        *unit = (0..256).find(|&label| !bases.contains(&(at ^ label))).unwrap() as u32 | 1 << 10;
    }
    let mut blob = (4 * units.len() as u32).to_le_bytes().to_vec();
    blob.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
    blob.extend_from_slice(&replacements);
    blob
}

fn text(chance: &mut Chance, length: usize, broken: bool) -> Vec<u8> {
    let few: Vec<&str> = (0..1 + chance.below(8)).map(|_| chance.pick(LETTERS)).collect();
    let mut text = Vec::new();
    while text.len() < length {
        let letter = if chance.below(20) == 0 { chance.pick(LETTERS) } else { chance.pick(&few) };
        let count = if chance.below(30) == 0 { 1 + chance.below(200) } else { 1 };
        text.extend_from_slice(letter.repeat(count).as_bytes());
        if chance.below(16) == 0 {
            text.push(chance.below(0x80) as u8);
        }
        if broken && chance.below(20) == 0 {
            text.extend_from_slice(chance.pick(BROKEN));
        }
    }
    text
}

fn rules(chance: &mut Chance) -> Rules {
    let mut rules = Rules::new();
    for _ in 0..chance.below(12) {
        let length = [1, 1, 2, 3, 6][chance.below(5)];
        let odd = chance.below(12) == 0;
        let mut key = text(chance, length, odd);
        if chance.below(12) == 0 {
            key.pop();
        }
        let length = [0, 0, 1, 1, 4][chance.below(5)];
        let odd = chance.below(40) == 0;
        let replacement = if chance.below(4) == 0 { b" ".to_vec() } else { text(chance, length, odd) };
        if !key.is_empty() && !key.contains(&0) && !replacement.contains(&0) {
            rules.insert(key, replacement);
        }
    }
    // Ranges of ASCII that become one character or change in one bit, with gaps and with other rules between them.
    for _ in 0..[0, 0, 1, 3, 8][chance.below(5)] {
        let (first, length, kind) = (1 + chance.below(0x7F) as u8, chance.below(30) as u8, chance.below(3));
        for byte in first..(first + length).min(0x7F) {
            let replacement = match kind {
                0 => vec![byte ^ 0x20],
                1 => b" ".to_vec(),
                _ => vec![b'a' + first % 9],
            };
            let replacement = if chance.below(20) == 0 { Vec::new() } else { replacement };
            if chance.below(20) > 0 && !replacement.contains(&0) {
                rules.insert(vec![byte], replacement);
            }
        }
    }
    rules
}

/// Whether a rule or a piece begins with a character that most text is full of. Then blocks are not normalized at once.
fn is_common(key: &[u8]) -> bool {
    key.first().is_some_and(|&byte| byte.is_ascii_lowercase() || byte == b' ')
}

fn engine(chance: &mut Chance) -> Engine {
    let mut rules = rules(chance);
    if chance.below(2) == 0 {
        rules.retain(|key, _| !is_common(key));
    }
    engine_with(&rules, chance)
}

fn engine_with(rules: &Rules, chance: &mut Chance) -> Engine {
    let mut pieces: Vec<(Vec<u8>, u8)> = vec![(b"<unk>".to_vec(), 2)];
    for byte in 0..=255 {
        pieces.push((format!("<0x{byte:02X}>").into_bytes(), 6));
    }
    let (rare, count) = (chance.below(2) == 0, chance.below(30));
    for number in 0..count {
        let length = [1, 2, 6][chance.below(3)];
        let odd = chance.below(12) == 0;
        let piece = if odd { chance.pick(BROKEN).to_vec() } else { text(chance, length, false) };
        let kind = if number % 4 == 0 && chance.below(2) == 0 { 4 } else { 1 };
        let piece = String::from_utf8(piece.clone()).map_or(piece, |piece| piece.replace(' ', "\u{2581}").into_bytes());
        let kind = if rare && (is_common(&piece) || piece.starts_with("\u{2581}".as_bytes())) { 1 } else { kind };
        if !piece.contains(&0) && piece.len() < 100 && pieces.iter().all(|(other, _)| *other != piece) {
            pieces.push((piece, kind));
        }
    }
    // One that begins with a common character, and one that goes on with a character of several bytes.
    for piece in ["a b", "-é"].iter().filter(|piece| !rare || !is_common(piece.as_bytes())) {
        if chance.below(4) == 0 && pieces.iter().all(|(other, _)| other != piece.as_bytes()) {
            pieces.push((piece.as_bytes().to_vec(), 4));
        }
    }
    let mut end = 0;
    let columns = Columns {
        blob: pieces.iter().flat_map(|(piece, _)| piece.clone()).collect(),
        ends: pieces
            .iter()
            .map(|(piece, _)| {
                end += piece.len() as u32;
                end
            })
            .collect(),
        scores: (0..pieces.len()).map(|id| -(id as f32)).collect(),
        types: pieces.iter().map(|&(_, kind)| kind).collect(),
        byte_fallback: true,
        unk_surface: b"?".to_vec(),
        special_pieces: ["<unk>", "<s>", "</s>", "<pad>"].map(|name| name.as_bytes().to_vec()),
        normalizer: NormalizerOptions {
            name: b"random".to_vec(),
            charsmap: if rules.is_empty() { Vec::new() } else { compiled(rules) },
            add_dummy_prefix: chance.below(2) == 0,
            remove_extra_whitespaces: chance.below(2) == 0,
            escape_whitespaces: chance.below(5) > 0,
            suffix: chance.below(4) == 0,
            prefix_before_space: chance.below(3) > 0,
            unicode_form: None,
        },
        denormalizer: None,
        byte_level: None,
        added: Vec::new(),
        carries: false,
    };
    Engine::from_columns(columns).unwrap()
}

/// Fail with the neighbourhood of the first difference.
fn assert_same<T: PartialEq + std::fmt::Debug>(fast: &[T], slow: &[T], text: &[u8], round: usize) {
    if fast != slow {
        let at = fast.iter().zip(slow).take_while(|(fast, slow)| fast == slow).count();
        let near =
            |items: &[T]| format!("{:?}", &items[at.saturating_sub(9).min(items.len())..(at + 9).min(items.len())]);
        let text = String::from_utf8_lossy(&text[..text.len().min(200)]);
        panic!("round {round}, {text:?} at {at}: {} instead of {}; {text:?} ...", near(fast), near(slow));
    }
}

#[test]
fn by_places_as_by_characters() {
    let seconds = std::env::var("CPBPE_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(8);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut chance = Chance(0x0F1E_2D3C_4B5A_6978 ^ seconds);
    let mut round = 0;
    while Instant::now() < end {
        use_vectors(chance.below(4) > 0);
        let engine = engine(&mut chance);
        for number in 0..12 {
            let long = round % 16 == 0 && number == 0; // enough for several threads
            let length = if long { 150_000 } else { [0, 3, 30, 62, 65, 130, 1000, 9000][chance.below(8)] };
            let broken = chance.below(3) == 0;
            let text = text(&mut chance, length, broken);
            let slow = engine.origins_slowly(&text).unwrap();
            let fast = engine.origins(&text, NO_CHECK).unwrap();
            assert_same(&fast.0, &slow.0, &text, round);
            assert_same(&fast.1, &slow.1, &text, round);
            let is_valid = std::str::from_utf8(&text).is_ok();
            if let Some(compact) = engine.normalize_compact(&text, NO_CHECK).unwrap().filter(|_| is_valid) {
                let spaces = compact.iter().flat_map(|byte| match byte {
                    b' ' => "\u{2581}".as_bytes(),
                    other => std::slice::from_ref(other),
                });
                assert_same(&spaces.copied().collect::<Vec<u8>>(), &slow.0, &text, round);
            }
            let expected = engine.encode_slowly(&text).unwrap();
            for valid in [false, is_valid] {
                assert_same(&engine.normalize((&text, valid), NO_CHECK).unwrap(), &slow.0, &text, round);
                let encode = |scratch: &mut Scratch| {
                    engine.encode(&text, valid, NO_CHECK, scratch).map(|()| scratch.ids.clone())
                };
                assert_same(&engine.with_scratch(encode).unwrap().unwrap(), &expected, &text, round);
            }
            let parallel = engine.encode_parallel(&text, false, 3, NO_CHECK).unwrap();
            assert_same(&parallel, &expected, &text, round);
            // The same bytes, whether spaces have one byte or three. (Spans of all tokens come from the same map.)
            let aligned = engine.tokens(&text, None, NO_CHECK).unwrap();
            assert_eq!(aligned.origins.len(), aligned.text.len() + 1);
            assert_eq!(aligned.origins.last(), slow.1.last());
            if aligned.compact && aligned.text.len() < slow.0.len() {
                let mut at = 0;
                for (&byte, &origin) in aligned.text.iter().zip(&aligned.origins) {
                    assert_eq!(slow.1[at], origin);
                    at += if byte == b' ' { 3 } else { 1 };
                }
                assert_eq!(at, slow.0.len());
            }
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
    let mut chance = Chance(1);
    for length in 0..200 {
        let engine = engine_with(&rules, &mut chance);
        let text = ["a".repeat(length).as_bytes(), b" \xed\xa0\x80b "].concat();
        let (fast, slow) = (engine.origins(&text, NO_CHECK).unwrap(), engine.origins_slowly(&text).unwrap());
        assert_same(&fast.0, &slow.0, &text, length);
        assert_same(&fast.1, &slow.1, &text, length);
    }
}

/// The first character of a rule is in one block and the second in the next, wherever that begins.
#[test]
fn a_rule_across_the_end_of_a_block() {
    let rules = [("-\u{301}", "x"), ("é\u{301}", " y"), ("中\u{301}", ""), ("-+", "z"), ("\n", " "), ("A", "a")];
    let rules = rules.into_iter().map(|(key, value)| (key.as_bytes().to_vec(), value.as_bytes().to_vec())).collect();
    let mut chance = Chance(2);
    for (length, first) in (0..200).flat_map(|length| ["-", "é", "中", "\n"].map(|first| (length, first))) {
        let engine = engine_with(&rules, &mut chance);
        for (filler, second) in [("a", "\u{301}"), ("ж", "\u{301}"), ("A ", "+"), (" \n", "\n ")] {
            let text = [&filler.repeat(length), first, second, &"b".repeat(length % 140)].concat();
            let slow = engine.origins_slowly(text.as_bytes()).unwrap();
            let fast = engine.normalize((text.as_bytes(), true), NO_CHECK).unwrap();
            assert_same(&fast, &slow.0, text.as_bytes(), length);
            let expected = engine.encode_slowly(text.as_bytes()).unwrap();
            let encode = |scratch: &mut Scratch| {
                engine.encode(text.as_bytes(), true, NO_CHECK, scratch).map(|()| scratch.ids.clone())
            };
            assert_same(&engine.with_scratch(encode).unwrap().unwrap(), &expected, text.as_bytes(), length);
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
    let mut chance = Chance(0x1E2D_3C4B_5A69_780F ^ seconds);
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
