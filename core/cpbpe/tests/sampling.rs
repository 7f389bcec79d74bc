//! Chunks are remembered while texts are sampled. More of them than there is room for change nothing.

use cpbpe::watch::NO_CHECK;
use cpbpe::{Columns, Dropout, Engine, NormalizerOptions};

mod model;

const LETTERS: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
/// More words than are remembered, in four texts.
const WORDS: usize = 140_000;

/// A model with all pairs of letters, so that no word is cut, and a few longer pieces.
fn engine() -> Engine {
    let mut pieces: Vec<String> = vec!["<unk>".into(), "\u{2581}".into()];
    pieces.extend(LETTERS.map(String::from));
    pieces.extend((0..100).map(|pair| LETTERS[pair % 10].to_owned() + LETTERS[pair / 10]));
    pieces.extend(LETTERS.map(|letter| format!("\u{2581}{letter}")));
    pieces.extend(["abc", "cde", "efgh", "\u{2581}ab", "ijij", "hgf"].map(String::from));
    let rows: Vec<(String, u8)> = pieces.into_iter().zip([2].into_iter().chain(std::iter::repeat(1))).collect();
    let scores = (0..rows.len()).map(|id| -((id * 37 % 101) as f32)).collect();
    let normalizer = NormalizerOptions { add_dummy_prefix: false, ..NormalizerOptions::default() };
    Engine::from_columns(Columns { scores, normalizer, ..model::columns(&rows) }).unwrap()
}

/// A word of six letters for each number.
fn word(number: usize) -> String {
    (0..6).map(|place| LETTERS[number / 10usize.pow(place) % 10]).collect()
}

#[test]
fn more_chunks_than_are_remembered() {
    let engine = engine();
    let numbers: Vec<usize> = (0..WORDS).collect();
    let texts: Vec<String> =
        numbers.chunks(WORDS / 4).map(|part| part.iter().map(|&i| word(i) + " ").collect()).collect();
    // The first text comes again when its words have been forgotten, and when they have not.
    for (seed, i) in [0, 1, 2, 3, 0, 0].into_iter().enumerate() {
        let (text, dropout) = (texts[i].as_bytes(), Dropout { alpha: 0.2, seed: seed as u64 });
        let ids = engine.with_scratch(|scratch| {
            engine.sample((text, true), dropout, NO_CHECK, scratch).map(|()| scratch.ids.clone())
        });
        assert!(ids.unwrap().unwrap() == engine.sample_slowly(text, dropout).unwrap(), "text {i}");
    }
}
