//! Byte-level models: what is refused, and the fast way beside the slow one.

use cpbpe::watch::NO_CHECK;
use cpbpe::{Columns, Dropout, Engine, Error, NormalizerOptions};

mod chance;
mod model;

use chance::Chance;
use model::byte_level as columns;

const CONTROL: u8 = 3;
const UNUSED: u8 = 5;

const PIECES: &[&[u8]] =
    &[b"th", b"the", b" the", b"\xe6\x97", b"\xe6\x97\xa5", b"aa", b"aaaa", b" a", b"\0\0", b"xyz"];
const PATTERNS: [&str; 4] = ["", r"\w+", r" ?\w+|\W", r" [^ ]*|[^ ]+"];

#[test]
fn columns_come_back() {
    for pattern in PATTERNS {
        let given = columns(PIECES, pattern, true);
        let engine = Engine::from_columns(given.clone()).unwrap();
        assert_eq!(engine.columns(), given);
        assert_eq!(engine.head().byte_level, given.byte_level);
    }
}

#[test]
fn what_is_refused() {
    let good = || columns(PIECES, "", true);
    let types = |kind| {
        let mut types = good().types;
        types[256] = kind;
        types
    };
    let refused: [(Columns, &str); 5] = [
        (Columns { types: types(UNUSED), ..good() }, "neither NORMAL nor CONTROL"),
        (Columns { types: [vec![CONTROL], good().types[1..].to_vec()].concat(), ..good() }, "a byte is not a piece"),
        (Columns { normalizer: NormalizerOptions::default(), ..good() }, "more than put a space"),
        (columns(&[b"th", b"th"], "", true), "two pieces have the same text"),
        (columns(PIECES, "(", true), "not a valid pattern"),
    ];
    for (columns, reason) in refused {
        let error = Engine::from_columns(columns).err().unwrap();
        assert!(error.to_string().contains(reason), "{error} {reason}");
    }
}

#[test]
fn the_fast_way_is_the_slow_one() {
    let mut chance = Chance::new(3);
    let parts = ["the", " the", "日", "本", "aaaa", " ", "\0", "xyz", "a", "é", "\n"];
    for (pattern, whole) in PATTERNS.iter().flat_map(|pattern| [(pattern, true), (pattern, false)]) {
        let engine = Engine::from_columns(columns(PIECES, pattern, whole)).unwrap();
        for round in 0..200 {
            let count = if round % 20 == 0 { 3000 } else { chance.below(30) };
            let text: String = (0..count).map(|_| chance.pick(&parts)).collect();
            let encode = |text: &[u8], valid| {
                let encoded = engine.with_scratch(|scratch| {
                    engine.encode(text, valid, NO_CHECK, scratch)?;
                    Ok::<_, Error>((scratch.ids.clone(), engine.count(text, valid, NO_CHECK, scratch)?))
                });
                encoded.unwrap().unwrap()
            };
            let (ids, counted) = encode(text.as_bytes(), true);
            assert_eq!(ids, engine.encode_slowly(text.as_bytes()).unwrap());
            assert_eq!(counted, ids.len());
            assert_eq!(engine.decoder().decode(&ids, true, NO_CHECK).unwrap(), text.as_bytes());
            let no_dropout = Dropout { alpha: 0.0, seed: 1 };
            assert_eq!(engine.sample_slowly(text.as_bytes(), no_dropout).unwrap(), ids);
            for threads in [2, 3] {
                let parallel = engine.encode_parallel(text.as_bytes(), true, threads, NO_CHECK).unwrap();
                assert_eq!(parallel, ids);
            }
            // What is not UTF-8.
            let broken = [text.as_bytes(), b"\xff\xe6\x97"].concat();
            let repaired = format!("{text}\u{FFFD}\u{FFFD}\u{FFFD}");
            assert_eq!(encode(&broken, false), encode(repaired.as_bytes(), true));
        }
    }
}

/// Long chunks are cut into parts that the cache can hold. Pieces that begin or end inside of characters are what makes
/// that hard, so here most of them do.
#[test]
fn cutting_long_chunks_changes_nothing() {
    let mut chance = Chance::new(11);
    // With the same first bytes, the same last ones, and one beyond the tables.
    let letters =
        ["a", "b", "é", "ê", "ũ", "日", "旦", "本", "木", "旻", "の", "ね", "🦙", "🦊", "\u{1f599}", "\u{20999}"];
    let examples = std::env::var("CPBPE_EXAMPLES").ok().and_then(|number| number.parse().ok()).unwrap_or(60);
    for round in 0..examples {
        let some: Vec<&str> = (0..2 + chance.below(9)).map(|_| chance.pick(&letters)).collect();
        let text = |chance: &mut Chance, most: usize| -> String {
            (0..chance.below(most + 1)).map(|_| chance.pick(&some)).collect()
        };
        // Pieces of two pieces, as they are learned, and a few that no merges make.
        let mut pieces: Vec<Vec<u8>> = Vec::new();
        for _ in 0..2000 {
            let text = text(&mut chance, 6).into_bytes();
            let ends = [(); 3].map(|()| chance.below(text.len() + 1));
            let (from, to) = (*ends.iter().min().unwrap(), *ends.iter().max().unwrap());
            let middle = ends.iter().sum::<usize>() - from - to;
            let is_piece = |part: &[u8]| part.len() == 1 || pieces.iter().any(|piece| piece == part);
            let made = is_piece(&text[from..middle]) && is_piece(&text[middle..to]) || chance.below(50) == 0;
            if made && to - from > 1 && !is_piece(&text[from..to]) && pieces.len() < 5 + round % 60 {
                pieces.push(text[from..to].to_vec());
            }
        }
        let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        for (pattern, whole) in [("", true), ("", false), (r"\w+|\W+", true)] {
            let engine = Engine::from_columns(columns(&pieces, pattern, whole)).unwrap();
            for _ in 0..30 {
                let text = text(&mut chance, 40);
                let slowly = engine.encode_slowly(text.as_bytes()).unwrap();
                for _ in 0..2 {
                    let ids = engine.encode_parallel(text.as_bytes(), true, 1, NO_CHECK).unwrap();
                    assert_eq!(ids, slowly, "{text:?} {pieces:?}");
                }
            }
        }
    }
}
