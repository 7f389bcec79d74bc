//! Models with random rules for normalizing, and random texts in which the rules apply.

use std::collections::{BTreeMap, BTreeSet};

use cpbpe::{Columns, Engine, NormalizerOptions};

use crate::chance::Chance;

/// What keys and texts are made of: characters of all lengths, some of which begin alike.
pub const LETTERS: &[&str] = &[
    "a", "b", "A", "-", "e", " ", " ", "\n", "\u{2581}", "\u{2582}", "é", "ж", "и", "\u{301}", "\u{306}", "中", "丮",
    "か", "\u{3099}", "，", "न", "\u{93c}", "🦙", "𝔸", "\0",
];

/// Bytes that are not UTF-8.
pub const BROKEN: &[&[u8]] = &[b"\xff", b"\xe2", b"\xe2\x96", b"\x81", b"\xa9", b"\xc3", b"\xf0\x9f", b"\xed\xa0\x80"];

pub type Rules = BTreeMap<Vec<u8>, Vec<u8>>;

/// Compile rules as sentencepiece stores them: a double array, made in the simplest way, and the replacements.
pub fn compiled(rules: &Rules) -> Vec<u8> {
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

pub fn text(chance: &mut Chance, length: usize, broken: bool) -> Vec<u8> {
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

pub fn rules(chance: &mut Chance) -> Rules {
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
pub fn is_common(key: &[u8]) -> bool {
    key.first().is_some_and(|&byte| byte.is_ascii_lowercase() || byte == b' ')
}

pub fn engine(chance: &mut Chance) -> Engine {
    let mut rules = rules(chance);
    if chance.below(2) == 0 {
        rules.retain(|key, _| !is_common(key));
    }
    engine_with(&rules, chance)
}

pub fn engine_with(rules: &Rules, chance: &mut Chance) -> Engine {
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
