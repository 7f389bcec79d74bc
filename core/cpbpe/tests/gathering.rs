//! The ids of many texts in one place are those of the texts one by one, whether the place is large enough or not.

use std::mem::MaybeUninit;

use cpbpe::watch::NO_CHECK;
use cpbpe::{Columns, EncodedTexts, Ends, Engine, GatheredTexts, Halt, NormalizerOptions};

mod model;

/// A model of these pieces. Characters that are none of them are the UNKNOWN piece, or bytes.
fn engine(byte_fallback: bool) -> Engine {
    let mut pieces: Vec<(String, u8)> = vec![("<unk>".into(), 2)];
    if byte_fallback {
        pieces.extend((0..256).map(|byte| (format!("<0x{byte:02X}>"), 6)));
    }
    pieces.extend(["\u{2581}", "a", "b", "ab", "abab", "\u{2581}a"].map(|text| (text.into(), 1)));
    let normalizer = NormalizerOptions { add_dummy_prefix: false, ..NormalizerOptions::default() };
    Engine::from_columns(Columns { byte_fallback, normalizer, ..model::columns(&pieces) }).unwrap()
}

/// Texts that begin and end with unknown characters, so that those of neighbours could become one; from sparse to dense,
/// so that the estimate is too small, or the other way round.
fn texts(size: usize, dense_last: bool) -> Vec<Vec<u8>> {
    let words = ["xx", "abab", "ab a", "yabz", "z", "b b b", "", "xaé"];
    let mut texts = Vec::new();
    let mut bytes = 0;
    while bytes < size {
        let i = texts.len();
        let word = if (2 * bytes < size) == dense_last { "abab" } else { words[i % 8] };
        texts.push(["x", &word.repeat(i * 7 % 300), ["x", ""][i % 2]].concat().into_bytes());
        bytes += texts[i].len();
    }
    texts
}

/// Gather in a place with this share of the estimated room; none if it is 0.
fn gathered(engine: &Engine, texts: &[Vec<u8>], threads: usize, ends: Ends, share: f64) -> (Vec<u32>, GatheredTexts) {
    let inputs: Vec<(&[u8], bool)> = texts.iter().map(|text| (text.as_slice(), true)).collect();
    let mut room: Vec<MaybeUninit<u32>> = vec![MaybeUninit::uninit(); 4 << 20];
    let place = room.as_mut_slice();
    let allocate = move |count: usize| (share > 0.0).then(move || &mut place[..(count as f64 * share) as usize]);
    let found = engine.gather_batch(&inputs, threads, ends, NO_CHECK, allocate).unwrap();
    // SAFETY: this many have been written.
    let mut ids: Vec<u32> = room[..found.placed].iter().map(|id| unsafe { id.assume_init() }).collect();
    found.rest.iter().for_each(|more| ids.extend(more));
    (ids, found)
}

#[test]
fn the_ids_are_those_of_the_texts() {
    for byte_fallback in [false, true] {
        let engine = engine(byte_fallback);
        for (size, dense_last) in [(0, false), (1000, true), (3 << 17, false), (3 << 17, true)] {
            let texts = texts(size, dense_last);
            let inputs: Vec<(&[u8], bool)> = texts.iter().map(|text| (text.as_slice(), true)).collect();
            for ends in [Ends::default(), Ends { front: Some(1), back: Some(2), reverse: true }] {
                let mut runs: Vec<(usize, EncodedTexts)> = Vec::new();
                engine.encode_batch(&inputs, 1, ends, NO_CHECK, &mut runs).unwrap();
                runs.sort_by_key(|&(first, _)| first);
                let ids: Vec<u32> = runs.iter().flat_map(|(_, run)| run.ids.iter().copied()).collect();
                let lengths: Vec<usize> = runs.iter().flat_map(|(_, run)| run.lengths.iter().copied()).collect();
                for (threads, share) in [(1, 1.0), (3, 1.0), (1, 0.3), (3, 0.5), (3, 0.0), (2, 4.0)] {
                    let (found, GatheredTexts { placed, rest, lengths: some }) =
                        gathered(&engine, &texts, threads, ends, share);
                    assert_eq!(some, lengths);
                    assert!(found == ids, "{byte_fallback} {size} {dense_last} {threads} {share}");
                    if size > 1000 {
                        // The ways that are to be tried are the ways that were tried.
                        assert_eq!(placed > 0, share > 0.0);
                        assert!(share != 4.0 || rest.is_empty());
                        assert!(share != 0.3 || !rest.is_empty());
                    }
                }
            }
        }
    }
}

#[test]
fn it_stops_when_it_is_told_to() {
    let (engine, texts) = (engine(true), texts(1 << 19, true));
    let inputs: Vec<(&[u8], bool)> = texts.iter().map(|text| (text.as_slice(), true)).collect();
    let mut room = vec![MaybeUninit::new(0); 1 << 22];
    let place = room.as_mut_slice();
    let long = "ab".repeat(1 << 20).into_bytes();
    let inputs = [&inputs[..], &[(&long, true)]].concat();
    let stop = &|| Err(Halt::Stopped);
    let outcome = engine.gather_batch(&inputs[..], 2, Ends::default(), stop, move |count| Some(&mut place[..count]));
    assert_eq!(outcome.err(), Some(Halt::Stopped));
}
