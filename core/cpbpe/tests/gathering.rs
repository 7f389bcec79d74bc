//! The ids of many texts in one array are those of the texts one by one, and so are their spans, whether the target is
//! large enough or not.

use std::mem::MaybeUninit;

use cpbpe::watch::NO_CHECK;
use cpbpe::{
    AlignOptions, Columns, Dropout, EncodedTexts, Ends, Engine, GatheredTexts, Halt, NormalizerOptions, Target, Wanted,
};

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

/// Memory for a target.
struct Room {
    ids: Vec<MaybeUninit<u32>>,
    spans: Vec<MaybeUninit<[i64; 2]>>,
}

impl Room {
    fn new(with_spans: bool) -> Room {
        let count = 4 << 20;
        Room {
            ids: vec![MaybeUninit::uninit(); count],
            spans: vec![MaybeUninit::uninit(); if with_spans { count } else { 0 }],
        }
    }

    /// Makes a target with this share of the estimated room; none if it is 0.
    fn share<'p>(&'p mut self, share: f64) -> impl FnOnce(usize) -> Option<Target<'p>> {
        move |count| {
            let count = (count as f64 * share) as usize;
            let spans = count.min(self.spans.len());
            (share > 0.0).then_some(Target { ids: &mut self.ids[..count], spans: &mut self.spans[..spans] })
        }
    }

    /// All that was gathered: from the target, and the rest.
    fn all(&self, found: &GatheredTexts) -> (Vec<u32>, Vec<[i64; 2]>) {
        let placed = ..found.placed;
        // SAFETY: this many have been written.
        let mut ids: Vec<u32> = self.ids[placed].iter().map(|id| unsafe { id.assume_init() }).collect();
        found.rest.iter().for_each(|run| ids.extend(&run.ids));
        let spans = if self.spans.is_empty() { &[] } else { &self.spans[placed] };
        // SAFETY: likewise.
        let mut spans: Vec<[i64; 2]> = spans.iter().map(|span| unsafe { span.assume_init() }).collect();
        found.rest.iter().for_each(|run| spans.extend(&run.spans));
        (ids, spans)
    }
}

/// How many threads gather in a target with which share of the estimated room.
const WAYS: [(usize, f64); 6] = [(1, 1.0), (3, 1.0), (1, 0.3), (3, 0.5), (3, 0.0), (2, 4.0)];

/// The ways that are to be tried must be the ways that were tried.
fn assert_tried(share: f64, found: &GatheredTexts) {
    assert_eq!(found.placed > 0, share > 0.0);
    assert!(share != 4.0 || found.rest.is_empty());
    assert!(share != 0.3 || !found.rest.is_empty());
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
                engine.encode_batch(&inputs, 1, Wanted::Ids(ends), NO_CHECK, &mut runs).unwrap();
                runs.sort_by_key(|&(first, _)| first);
                let ids: Vec<u32> = runs.iter().flat_map(|(_, run)| run.ids.iter().copied()).collect();
                let lengths: Vec<usize> = runs.iter().flat_map(|(_, run)| run.lengths.iter().copied()).collect();
                for (threads, share) in WAYS {
                    let mut room = Room::new(false);
                    let found =
                        engine.gather_batch(&inputs, threads, Wanted::Ids(ends), NO_CHECK, room.share(share)).unwrap();
                    assert_eq!(found.lengths, lengths);
                    assert!(room.all(&found).0 == ids, "{byte_fallback} {size} {dense_last} {threads} {share}");
                    if size > 1000 {
                        assert_tried(share, &found);
                    }
                }
            }
        }
    }
}

#[test]
fn the_spans_are_those_of_the_texts() {
    for byte_fallback in [false, true] {
        let engine = engine(byte_fallback);
        for (size, dense_last) in [(0, false), (1000, true), (3 << 17, false), (3 << 17, true)] {
            let texts = texts(size, dense_last);
            let inputs: Vec<(&[u8], bool)> = texts.iter().map(|text| (text.as_slice(), true)).collect();
            for dropout in [None, Some(Dropout { alpha: 0.3, seed: 7 })] {
                let options = AlignOptions { characters: None, dropout };
                let (mut ids, mut spans, mut lengths, mut unknown) = (Vec::new(), Vec::new(), Vec::new(), 0);
                for (i, &input) in inputs.iter().enumerate() {
                    let dropout = dropout.map(|dropout| Dropout { seed: dropout.seed + i as u64, ..dropout });
                    let one = engine.align(input, AlignOptions { dropout, ..options }, NO_CHECK).unwrap();
                    unknown += one.unknown.len();
                    lengths.push(one.ids.len());
                    ids.extend(one.ids);
                    spans.extend(one.spans);
                }
                assert_eq!(unknown == 0, byte_fallback || size == 0);
                for (threads, share) in WAYS {
                    let mut room = Room::new(true);
                    let found = engine
                        .gather_batch(&inputs, threads, Wanted::Spans(options), NO_CHECK, room.share(share))
                        .unwrap();
                    assert_eq!(found.lengths, lengths);
                    let (some_ids, some_spans) = room.all(&found);
                    assert!(some_ids == ids && some_spans == spans, "{byte_fallback} {size} {threads} {share}");
                    if size > 1000 {
                        assert_tried(share, &found);
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
    let (mut room, mut more) = (Room::new(false), Room::new(true));
    let long = "ab".repeat(1 << 20).into_bytes();
    let inputs = [&inputs[..], &[(&long, true)]].concat();
    let stop = &|| Err(Halt::Stopped);
    let outcome = engine.gather_batch(&inputs, 2, Wanted::Ids(Ends::default()), stop, room.share(1.0));
    assert_eq!(outcome.err(), Some(Halt::Stopped));
    let outcome = engine.gather_batch(&inputs, 2, Wanted::Spans(AlignOptions::default()), stop, more.share(1.0));
    assert_eq!(outcome.err(), Some(Halt::Stopped));
}
