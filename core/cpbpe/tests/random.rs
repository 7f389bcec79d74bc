//! Random vocabularies and random text: what the fast ways give must be what the slow way gives.
//!
//! The unsafe lines of the crate are all on the paths taken here, with debug assertions on. `CPBPE_SECONDS=3600 cargo
//! test --test random` goes on for an hour.

mod chance;
mod file;
mod laws;
mod literal;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cpbpe::watch::NO_CHECK;
use cpbpe::{AlignOptions, Dropout, EncodedTexts, Ends, Engine, Error, Halt, Wanted, NO_ID};

use chance::Chance;
use file::{bytes, piece, settings, LETTERS};
use laws::{
    aligned_as_one_by_one, columns_come_back, decoded_as_one_by_one, decoded_with_spans, encoded_as_it_arrives,
    encoded_in_every_way, in_order, sampled_as_a_whole, some_ends, Input,
};
use literal::Literal;

fn text(chance: &mut Chance) -> Vec<u8> {
    let length = [3, 30, 300, 3000, 30_000][chance.below(5)];
    let few = |chance: &mut Chance| (0..1 + chance.below(6)).map(|_| chance.pick(LETTERS)).collect::<Vec<_>>();
    let mut letters = few(chance);
    let mut text = String::new();
    while text.len() < length {
        if chance.below(150) == 0 {
            // Text is cut in one of two ways, from batch to batch: each should come after the other.
            letters = few(chance);
        }
        let letter = if chance.below(20) == 0 { chance.pick(LETTERS) } else { chance.pick(&letters) };
        text += &letter.repeat(if chance.below(30) == 0 { 1 + chance.below(200) } else { 1 });
    }
    let mut text = text.into_bytes();
    if chance.below(8) == 0 {
        let at = chance.below(text.len());
        text[at] = chance.below(256) as u8;
    }
    text
}

#[test]
fn fast_is_slow() {
    let seconds = std::env::var("CPBPE_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(8);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut chance = Chance::new(0x1234_5678_9ABC_DEF1 ^ seconds);
    let mut rounds = 0u64;
    while Instant::now() < end {
        let file = file::random(&mut chance);
        // With the machine's own instructions, and without them.
        cpbpe::use_at_most(cpbpe::Instructions::ALL[(rounds % 3) as usize]);
        let Ok(engine) = Engine::from_model(&file) else { panic!("round {rounds}: not a model") };
        columns_come_back(&engine, &file);
        let texts: Vec<Vec<u8>> = (0..12).map(|_| text(&mut chance)).collect();
        let literal = Literal::new(&engine);
        let mut expected = Vec::new();
        for text in texts.iter().chain(&texts) {
            let ids = encoded_in_every_way(&engine, text);
            for alpha in [0.0, 0.1, 0.6, 1.0] {
                sampled_as_a_whole(&engine, text, Dropout { alpha, seed: rounds });
            }
            decoded_with_spans(&engine, &ids);
            if text.len() < 400 {
                assert_eq!(ids, literal.encoded(text), "round {rounds}: {:?}", String::from_utf8_lossy(text));
                let normalized = engine.origins_slowly(text).unwrap().0;
                encoded_as_it_arrives(&engine, &normalized, chance.below(normalized.len() + 1));
            }
            let any: Vec<u32> = (0..ids.len().min(50)).map(|_| chance.below(engine.size()) as u32).collect();
            decoded_with_spans(&engine, &any);
            assert_eq!(engine.decoder().decode(&[1, u32::MAX], false, NO_CHECK), Err(Error::UnknownId(1)));
            let all = engine.decoder().decode(&ids, true, NO_CHECK).unwrap();
            let (front, back) = ids.split_at(ids.len() / 2);
            if front.len() > 8 {
                let front = engine.decoder().decode(front, true, NO_CHECK).unwrap();
                assert!(all.starts_with(&front));
            }
            assert!(engine.decoder().decode(back, true, NO_CHECK).is_ok());
            expected.push(ids);
        }
        expected.truncate(texts.len());
        decoded_as_one_by_one(&engine, &expected, &mut chance);
        let inputs: Vec<Input> = texts.iter().map(|text| (text.as_slice(), false)).collect();
        for ends in [Ends::default(), some_ends(&mut chance)] {
            let between = |ids: &Vec<u32>| {
                let mut ids = ids.clone();
                if ends.reverse {
                    ids.reverse();
                }
                ends.front.into_iter().chain(ids).chain(ends.back).collect::<Vec<u32>>()
            };
            let mut runs: Vec<(usize, EncodedTexts)> = Vec::new();
            engine.encode_batch(&inputs, 2, Wanted::Ids(ends), NO_CHECK, &mut runs).unwrap();
            let ids: Vec<u32> = in_order(runs).flat_map(|run| run.ids).collect();
            assert_eq!(ids, expected.iter().flat_map(between).collect::<Vec<u32>>());
        }
        let mut counts: Vec<(usize, Vec<usize>)> = Vec::new();
        engine.count_batch(&inputs, 2, NO_CHECK, &mut counts).unwrap();
        assert!(in_order(counts).flatten().eq(expected.iter().map(Vec::len)));
        for characters in [None, Some(false), Some(true)] {
            for dropout in [None, Some(Dropout { alpha: 0.3, seed: u64::MAX - 1 })] {
                aligned_as_one_by_one(&engine, &inputs, AlignOptions { characters, dropout });
            }
        }
        rounds += 1;
    }
    println!("{rounds} vocabularies");
    assert!(rounds > 0);
}

/// Whatever is asked of a long text ends when the check says so, with one thread and with several.
#[test]
fn long_work_ends_when_it_is_asked_to() {
    let mut file = Vec::new();
    piece(&mut file, b"<unk>", 0.0, 2);
    bytes(&mut file);
    for length in 1..30 {
        piece(&mut file, &b"a".repeat(length), -(length as f32), 1);
    }
    settings(&mut file, true, true, true);
    let Ok(engine) = Engine::from_model(&file) else { panic!("not a model") };
    let text = b"a".repeat(300_000);
    let inputs = vec![(&text[..], true), (&b"a"[..], true)];
    let ids = vec![engine.find(b"a").unwrap(); 300_000];
    let stop = &|| Err(Halt::Stopped);
    assert_eq!(engine.with_scratch(|scratch| engine.encode(&text, true, stop, scratch)), Ok(Err(Halt::Stopped)));
    assert_eq!(engine.with_scratch(|scratch| engine.count(&text, true, stop, scratch)), Ok(Err(Halt::Stopped)));
    assert_eq!(engine.normalize((&text, false), stop), Err(Halt::Stopped));
    assert_eq!(engine.tokens(&text, None, stop).err(), Some(Halt::Stopped));
    assert_eq!(engine.tokens(&text, Some(Dropout { alpha: 0.1, seed: 1 }), stop).err(), Some(Halt::Stopped));
    let input = (&text[..], true);
    let dropout = Dropout { alpha: 0.1, seed: 1 };
    assert_eq!(engine.with_scratch(|s| engine.sample(input, dropout, stop, s)), Ok(Err(Halt::Stopped)));
    assert_eq!(engine.message(input, None, false, stop), Err(Halt::Stopped));
    assert_eq!(engine.character_origins(&text, stop), Err(Halt::Stopped));
    assert_eq!(engine.align(input, AlignOptions::default(), stop).err(), Some(Halt::Stopped));
    assert_eq!(engine.decoder().decode_spans(&ids, stop).err(), Some(Error::Stopped));
    assert_eq!(engine.decoder().ids_message(&ids, stop), Err(Error::Stopped));
    assert_eq!(engine.decoder().decode(&ids, false, stop), Err(Error::Stopped));
    let others = std::iter::repeat(&b"a"[..]);
    assert_eq!(engine.decoder().decode_pieces(&[NO_ID; 300_000], others, stop), Err(Error::Stopped));
    for threads in [1, 3] {
        assert_eq!(engine.encode_parallel(&text, true, threads, stop), Err(Halt::Stopped));
        let mut runs: Vec<(usize, EncodedTexts)> = Vec::new();
        assert_eq!(
            engine.encode_batch(&inputs, threads, Wanted::Ids(Ends::default()), stop, &mut runs),
            Err(Halt::Stopped)
        );
        let (batch, ends) = (ids.repeat(3), [ids.len(), 2 * ids.len(), 3 * ids.len()]);
        let decoded = engine.decoder().decode_batch(&batch, &ends, threads, stop);
        assert_eq!(decoded.map(|_| ()), Err(Error::Stopped));
        // After that everything works as before.
        assert_eq!(engine.encode_parallel(&text, true, threads, NO_CHECK), engine.encode_slowly(&text));
    }
}

/// A long chunk is asked about user-defined pieces, whether it has any or not, and this can be stopped, too.
#[test]
fn a_search_for_user_defined_pieces_asks_whether_to_go_on() {
    let mut file = Vec::new();
    piece(&mut file, b"<unk>", 0.0, 2);
    bytes(&mut file);
    for key in [&b"ab"[..], b"bac", b"bbbc"] {
        piece(&mut file, key, 0.0, 4);
    }
    settings(&mut file, true, false, false);
    let Ok(engine) = Engine::from_model(&file) else { panic!("not a model") };
    for text in [b"ab".repeat(1 << 19), b"b".repeat(1 << 20)] {
        let asked = AtomicUsize::new(0);
        let check = &|| {
            asked.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        assert_eq!(engine.with_scratch(|scratch| engine.encode(&text, true, check, scratch)), Ok(Ok(())));
        assert!(asked.into_inner() > 100); // a megabyte is cut with 64 questions
    }
}
