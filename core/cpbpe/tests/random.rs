//! Random vocabularies and random text: what the fast ways give must be what the slow way gives.
//!
//! The unsafe lines of the crate are all on the paths taken here, with debug assertions on. `CPBPE_SECONDS=3600 cargo
//! test --test random` goes on for an hour.

mod chance;
mod file;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cpbpe::watch::NO_CHECK;
use cpbpe::{
    AlignOptions, Columns, DecodedTexts, Dropout, EncodedTexts, Ends, Engine, Error, Halt, Scratch, Wanted, NO_ID,
};

use chance::Chance;
use file::{bytes, encoded, piece, settings};

/// A text, and whether it is known to be UTF-8.
type Input<'a> = (&'a [u8], bool);

const LETTERS: &[&str] = &[
    "a", "b", "c", "e", " ", " ", "7", "=", "\u{2581}", "\n", "\0", ".", "1", "é", "ж", "о", "中", "国", "。", "🦙",
    "\u{301}",
];

/// A model file with pieces that are made of letters and of each other.
fn model(chance: &mut Chance) -> Vec<u8> {
    let byte_fallback = chance.below(3) > 0;
    let count = [5, 40, 400][chance.below(3)];
    let mut texts: Vec<String> = Vec::new();
    for _ in 0..count {
        let text = match chance.below(4) {
            0 => chance.pick(LETTERS).replace(' ', "\u{2581}"),
            1 if !texts.is_empty() => texts[chance.below(texts.len())].repeat(2),
            _ => {
                let mut half = || if texts.is_empty() { "a".into() } else { texts[chance.below(texts.len())].clone() };
                half() + &half()
            }
        };
        if !text.contains('\0') && !text.is_empty() && text.len() < 60 && !texts.contains(&text) {
            texts.push(text);
        }
    }
    let mut file = Vec::new();
    // In most models id 0 is UNKNOWN, and a 0 where an id is missing means the same.
    let unknown_first = chance.below(3) > 0;
    if unknown_first {
        piece(&mut file, b"<unk>", 0.0, 2);
    }
    if byte_fallback {
        bytes(&mut file);
    }
    if chance.below(16) == 0 {
        // Ids of more than 15 bits are kept in another way.
        for i in 0..1 << 15 {
            piece(&mut file, char::from_u32(0x20000 + i).unwrap().to_string().as_bytes(), -1e6, 1);
        }
    }
    // None, some, or most: then there are characters that only user-defined pieces join.
    let user_defined = [0, 0, 1, 8][chance.below(4)];
    let unused = chance.below(4) == 0;
    // Characters that are in pieces, but are none themselves: UNKNOWN where they are not joined.
    let without_some = chance.below(3) == 0;
    for (i, text) in texts.iter().enumerate() {
        if without_some && text.chars().count() == 1 && chance.below(2) == 0 {
            continue;
        }
        let kind = match chance.below(12) {
            some if some < user_defined => 4,
            11 if unused => 5,
            _ => 1,
        };
        piece(&mut file, text.as_bytes(), -((i / (1 + chance.below(2))) as f32), kind);
    }
    if !unknown_first {
        piece(&mut file, b"<unk>", 0.0, 2);
    }
    settings(&mut file, byte_fallback, chance.below(2) == 0, chance.below(4) == 0);
    file
}

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

/// The results of runs in the order of texts.
fn in_order<R>(mut runs: Vec<(usize, R)>) -> impl Iterator<Item = R> {
    runs.sort_unstable_by_key(|&(first, _)| first);
    runs.into_iter().map(|(_, result)| result)
}

/// A file's columns must be those of its engine, and make the same engine.
fn columns_come_back(engine: &Engine, file: &[u8]) {
    let columns = engine.columns();
    assert_eq!(columns, Columns::read(file).unwrap());
    assert_eq!(Engine::from_columns(columns.clone()).unwrap().columns(), columns);
}

/// Ids, spans and unknown texts of a batch must be those of its texts.
fn aligned_as_one_by_one(engine: &Engine, inputs: &[Input], options: AlignOptions) {
    // Texts that are known to be UTF-8 among the others.
    let inputs: Vec<Input> = inputs.iter().map(|&(text, _)| (text, std::str::from_utf8(text).is_ok())).collect();
    let mut runs: Vec<(usize, EncodedTexts)> = Vec::new();
    engine.encode_batch(&inputs, 2, Wanted::Spans(options), NO_CHECK, &mut runs).unwrap();
    let mut texts = inputs.iter().enumerate();
    for run in in_order(runs) {
        let mut begin = 0;
        let mut unknown = run.unknown.iter();
        for length in run.lengths {
            let (number, &(text, valid)) = texts.next().unwrap();
            let seed = |dropout: Dropout| Dropout { seed: dropout.seed.wrapping_add(number as u64), ..dropout };
            let one = engine.tokens(text, options.dropout.map(seed), NO_CHECK).unwrap();
            assert_eq!(one.tokens.len(), length);
            let characters = options.characters.unwrap_or(valid);
            let positions = if characters { positions(text) } else { (0..=text.len() as i64).collect() };
            for (i, token) in one.tokens.iter().enumerate() {
                let span = [token.begin, token.end].map(|at| positions[one.origins[at]]);
                assert_eq!((run.ids[begin + i], run.spans[begin + i]), (token.id, span));
                if Some(token.id) == engine.unknown() {
                    let mut piece = Vec::new();
                    engine.piece_of(token, &one, &mut piece).unwrap();
                    assert_eq!(unknown.next(), Some(&(begin + i, piece)));
                }
            }
            begin += length;
        }
        assert!(begin == run.ids.len() && begin == run.spans.len() && unknown.next().is_none());
    }
    assert!(texts.next().is_none());
}

/// Sampled ids must be those of the text merged as a whole, as ids and as tokens.
fn sampled_as_a_whole(engine: &Engine, text: &[u8], dropout: Dropout) {
    let expected = engine.sample_slowly(text, dropout).unwrap();
    for valid in [false, std::str::from_utf8(text).is_ok()] {
        let sample = |scratch: &mut Scratch| {
            engine.sample((text, valid), dropout, NO_CHECK, scratch).map(|()| scratch.ids.clone())
        };
        assert_eq!(engine.with_scratch(sample).unwrap().as_ref(), Ok(&expected), "{:?}", String::from_utf8_lossy(text));
    }
    let tokens = engine.tokens(text, Some(dropout), NO_CHECK).unwrap().tokens;
    assert!(tokens.iter().map(|token| token.id).eq(expected));
}

/// A text that is decoded with spans must be the text, and the spans must cover it, for ids as for their pieces.
fn decoded_with_spans(engine: &Engine, ids: &[u32]) {
    let decoder = engine.decoder();
    let decoded = decoder.decode_spans(ids, NO_CHECK).unwrap();
    assert_eq!(decoded.text, decoder.decode(ids, false, NO_CHECK).unwrap());
    let mut end = 0;
    for span in &decoded.spans {
        assert!(span[0] == end && span[1] >= end);
        end = span[1];
    }
    assert_eq!((decoded.spans.len(), end as usize), (ids.len(), decoded.text.len()));
    let pieces: Vec<Vec<u8>> = ids.iter().map(|&id| engine.piece(id)).collect();
    let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
    let same = decoder.decode_pieces_spans(&pieces, NO_CHECK).unwrap();
    assert_eq!((&same.text, &same.ids, &same.spans), (&decoded.text, &decoded.ids, &decoded.spans));
    let mut in_characters = decoded;
    let positions = positions(&in_characters.text);
    assert!(in_characters.count_characters());
    assert!(in_characters
        .spans
        .iter()
        .zip(&same.spans)
        .all(|(here, there)| *here == there.map(|at| positions[at as usize])));
}

/// For each byte of a text, and its end, how many characters end before it.
fn positions(text: &[u8]) -> Vec<i64> {
    let mut positions = Vec::new();
    let mut at = 0;
    let mut count = 0;
    while at < text.len() {
        let is_character =
            |length: &usize| text.get(at..at + length).is_some_and(|part| std::str::from_utf8(part).is_ok());
        let length = (1..=4).find(is_character).unwrap_or(1);
        positions.extend(std::iter::repeat_n(count, length));
        at += length;
        count += 1;
    }
    positions.push(count);
    positions
}

/// Ids that no text has, in front and at the end or not.
fn some_ends(chance: &mut Chance) -> Ends {
    let mut one = || (chance.below(3) > 0).then_some(u32::MAX - 9);
    Ends { front: one(), back: one(), reverse: chance.below(2) == 0 }
}

/// Sequences of ids that are decoded together, by one thread or several, give what each gives by itself; and so do their
/// pieces.
fn decoded_as_one_by_one(engine: &Engine, rows: &[Vec<u32>], chance: &mut Chance) {
    let decoder = engine.decoder();
    let mut rows = rows.to_vec();
    rows.extend((0..4).map(|_| (0..chance.below(20)).map(|_| chance.below(engine.size()) as u32).collect()));
    let strange = ["", "\0", "\u{2581}", "\u{2581}\u{2581}?", " ?", "a b", "\u{2582}"];
    for row in &rows {
        // Some of the pieces, and others.
        let mut pieces: Vec<Vec<u8>> = row.iter().map(|&id| engine.piece(id)).collect();
        for _ in 0..chance.below(3) {
            pieces.insert(chance.below(pieces.len() + 1), chance.pick(&strange).as_bytes().to_vec());
        }
        let found: Vec<Option<u32>> = pieces.iter().map(|piece| engine.find(piece)).collect();
        let ids: Vec<u32> = found.iter().map(|id| id.unwrap_or(NO_ID)).collect();
        let others = pieces.iter().zip(&found).filter(|(_, id)| id.is_none()).map(|(piece, _)| &piece[..]);
        let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        let expected = decoder.decode_pieces_spans(&pieces, NO_CHECK).unwrap().text;
        assert_eq!(decoder.decode_pieces(&ids, others, NO_CHECK), Ok(expected));
        assert!(ids.contains(&NO_ID) == decoder.decode_pieces(&ids, std::iter::empty(), NO_CHECK).is_err());
    }
    // Many enough for threads, now and then.
    let times = if chance.below(8) == 0 { 1 + (1 << 16) / (1 + rows.concat().len()) } else { 1 };
    let (mut ids, mut ends, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..times {
        for row in &rows {
            ids.extend_from_slice(row);
            ends.push(ids.len());
            expected.push(decoder.decode(row, false, NO_CHECK).unwrap());
        }
    }
    for threads in [1, 3] {
        let parts = decoder.decode_batch(&ids, &ends, threads, NO_CHECK).unwrap();
        assert!(parts.iter().flat_map(DecodedTexts::texts).eq(expected.iter().map(Vec::as_slice)));
    }
    if let Some(id) = ids.last_mut() {
        *id = u32::MAX;
        let refused = decoder.decode_batch(&ids, &ends, 3, NO_CHECK).map(|_| ());
        assert!(matches!(refused, Err(Error::UnknownId(_))));
    }
}

#[test]
fn fast_is_slow() {
    let seconds = std::env::var("CPBPE_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(8);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut chance = Chance(0x1234_5678_9ABC_DEF1 ^ seconds);
    let mut rounds = 0u64;
    while Instant::now() < end {
        let file = model(&mut chance);
        // With the machine's own instructions, and without them.
        cpbpe::use_vectors(rounds % 2 == 0);
        let Ok(engine) = Engine::from_model(&file) else { panic!("round {rounds}: not a model") };
        columns_come_back(&engine, &file);
        let texts: Vec<Vec<u8>> = (0..12).map(|_| text(&mut chance)).collect();
        let expected: Vec<Vec<u32>> = texts.iter().map(|text| engine.encode_slowly(text).unwrap()).collect();
        for (text, expected) in texts.iter().chain(&texts).zip(expected.iter().chain(&expected)) {
            let ids = encoded(&engine, text);
            assert_eq!(&ids, expected, "round {rounds}: {:?}", String::from_utf8_lossy(text));
            assert_eq!(engine.encode_parallel(text, false, 3, NO_CHECK).as_ref(), Ok(expected));
            // Without chance nothing is left out, and the text is merged as a whole.
            let spans = |dropout| {
                let tokens = engine.tokens(text, dropout, NO_CHECK).unwrap().tokens;
                tokens.iter().map(|token| (token.id, token.begin, token.end)).collect::<Vec<_>>()
            };
            assert_eq!(spans(None), spans(Some(Dropout { alpha: 0.0, seed: 1 })));
            for alpha in [0.0, 0.1, 0.6, 1.0] {
                sampled_as_a_whole(&engine, text, Dropout { alpha, seed: rounds });
            }
            decoded_with_spans(&engine, &ids);
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
        }
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
