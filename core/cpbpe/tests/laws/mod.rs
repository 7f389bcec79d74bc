//! What holds for every model and every text. The tests try it on models and texts made at random, and the programs in
//! `core/fuzz` on those that a fuzzer looks for.
#![allow(dead_code, reason = "each test uses some of it")]

use cpbpe::watch::NO_CHECK;
use cpbpe::{AlignOptions, Columns, DecodedTexts, Dropout, EncodedTexts, Ends, Engine, Error, Scratch, Wanted, NO_ID};

use crate::chance::Chance;
use crate::file::encoded;

/// A text, and whether it is known to be UTF-8.
pub type Input<'a> = (&'a [u8], bool);

/// The results of runs in the order of texts.
pub fn in_order<R>(mut runs: Vec<(usize, R)>) -> impl Iterator<Item = R> {
    runs.sort_unstable_by_key(|&(first, _)| first);
    runs.into_iter().map(|(_, result)| result)
}

/// A file's columns must be those of its engine, and make the same engine. (A denormalizer without rules does nothing, and
/// an engine has none then. They are compared as texts, in which NaN is NaN.)
pub fn columns_come_back(engine: &Engine, file: &[u8]) {
    let mut read = Columns::read(file).unwrap();
    read.denormalizer = read.denormalizer.filter(|options| !options.charsmap.is_empty());
    let columns = engine.columns();
    assert_same_columns(columns, read);
    makes_itself(engine);
}

/// The columns of an engine must make the same engine.
pub fn makes_itself(engine: &Engine) {
    let columns = engine.columns();
    let again = Engine::from_columns(columns.clone()).unwrap().columns();
    assert_same_columns(again, columns);
}

/// The scores must have the same bits: a NaN is not equal to itself.
fn assert_same_columns(mut found: Columns, mut expected: Columns) {
    let bits = |columns: &mut Columns| columns.scores.drain(..).map(f32::to_bits).collect::<Vec<_>>();
    assert_eq!(bits(&mut found), bits(&mut expected));
    assert_eq!(found, expected);
}

/// Ids, spans and unknown texts of a batch must be those of its texts.
pub fn aligned_as_one_by_one(engine: &Engine, inputs: &[Input], options: AlignOptions) {
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
pub fn sampled_as_a_whole(engine: &Engine, text: &[u8], dropout: Dropout) {
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
pub fn decoded_with_spans(engine: &Engine, ids: &[u32]) {
    let decoder = engine.decoder();
    let decoded = decoder.decode_spans(ids, NO_CHECK).unwrap();
    // (The pieces of a byte-level model are bytes, and their spans are places in bytes.)
    let keep_invalid = engine.is_byte_level();
    assert_eq!(decoded.text, decoder.decode(ids, keep_invalid, NO_CHECK).unwrap());
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
    let text = std::str::from_utf8(&same.text);
    let are_characters = text.is_ok_and(|text| same.spans.iter().all(|span| text.is_char_boundary(span[1] as usize)));
    assert_eq!(in_characters.count_characters(), are_characters);
    let positions = positions(&same.text);
    let in_positions = same.spans.iter().map(|span| span.map(|at| positions[at as usize]));
    assert!(!are_characters || in_characters.spans.iter().copied().eq(in_positions));
}

/// For each byte of a text, and its end, how many characters end before it.
pub fn positions(text: &[u8]) -> Vec<i64> {
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
pub fn some_ends(chance: &mut Chance) -> Ends {
    let mut one = || (chance.below(3) > 0).then_some(u32::MAX - 9);
    Ends { front: one(), back: one(), reverse: chance.below(2) == 0 }
}

/// Sequences of ids that are decoded together, by one thread or several, give what each gives by itself; and so do their
/// pieces.
pub fn decoded_as_one_by_one(engine: &Engine, rows: &[Vec<u32>], chance: &mut Chance) {
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
        let mut expected = decoder.decode_pieces_spans(&pieces, NO_CHECK).unwrap().text;
        if engine.is_byte_level() {
            expected = String::from_utf8_lossy(&expected).into_owned().into_bytes();
        }
        assert_eq!(decoder.decode_pieces(&ids, others, NO_CHECK), Ok(expected));
        assert!(ids.contains(&NO_ID) == decoder.decode_pieces(&ids, std::iter::empty(), NO_CHECK).is_err());
    }
    // Many enough for threads, now and then.
    let times = if chance.below(64) == 7 { 1 + (1 << 16) / (1 + rows.concat().len()) } else { 1 };
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

/// Every way of encoding a text must give what merging it as a whole gives. Returns its ids.
pub fn encoded_in_every_way(engine: &Engine, text: &[u8]) -> Vec<u32> {
    let expected = engine.encode_slowly(text).unwrap();
    let ids = encoded(engine, text);
    assert_eq!(ids, expected, "{:?}", String::from_utf8_lossy(text));
    assert_eq!(engine.encode_parallel(text, false, 3, NO_CHECK).as_ref(), Ok(&expected));
    assert_eq!(engine.with_scratch(|scratch| engine.count(text, false, NO_CHECK, scratch)), Ok(Ok(ids.len())));
    // Without chance nothing is left out, and the text is merged as a whole.
    let spans = |dropout| {
        let tokens = engine.tokens(text, dropout, NO_CHECK).unwrap().tokens;
        tokens.iter().map(|token| (token.id, token.begin, token.end)).collect::<Vec<_>>()
    };
    assert_eq!(spans(None), spans(Some(Dropout { alpha: 0.0, seed: 1 })));
    ids
}

/// A text must be normalized the same, and with the same map, by every way. Its normalized form is returned.
pub fn normalized_in_every_way(engine: &Engine, text: &[u8]) -> Vec<u8> {
    let slow = engine.origins_slowly(text).unwrap();
    let fast = engine.origins(text, NO_CHECK).unwrap();
    assert_same(&fast.0, &slow.0, text);
    if engine.is_byte_level() {
        // (Here each byte has an origin of its own.)
        assert!(fast.1.len() == fast.0.len() + 1 && fast.1.is_sorted() && fast.1.last() == Some(&text.len()));
        return slow.0;
    }
    assert_same(&fast.1, &slow.1, text);
    let valid = std::str::from_utf8(text).ok();
    if let Some(compact) = valid.and_then(|text| engine.normalize_compact(text, NO_CHECK).unwrap()) {
        let spaces = compact.iter().flat_map(|byte| match byte {
            b' ' => "\u{2581}".as_bytes(),
            other => std::slice::from_ref(other),
        });
        assert_same(&spaces.copied().collect::<Vec<u8>>(), &slow.0, text);
    }
    for valid in [false, valid.is_some()] {
        assert_same(&engine.normalize((text, valid), NO_CHECK).unwrap(), &slow.0, text);
    }
    // The same bytes, whether spaces have one byte or three. (Spans of all tokens come from the same map.)
    let aligned = engine.tokens(text, None, NO_CHECK).unwrap();
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
    slow.0
}

/// Two lists must be the same. A failure shows the neighbourhood of the first difference.
pub fn assert_same<T: PartialEq + std::fmt::Debug>(fast: &[T], slow: &[T], text: &[u8]) {
    if fast != slow {
        let at = fast.iter().zip(slow).take_while(|(fast, slow)| fast == slow).count();
        let near =
            |items: &[T]| format!("{:?}", &items[at.saturating_sub(9).min(items.len())..(at + 9).min(items.len())]);
        let text = String::from_utf8_lossy(&text[..text.len().min(200)]);
        panic!("{text:?} at {at}: {} instead of {}; {text:?} ...", near(fast), near(slow));
    }
}

/// What is encoded as it arrives, in parts, must have the ids of the whole. `normalized` is a normalized text, of which
/// the first `size` bytes have arrived.
pub fn encoded_as_it_arrives(engine: &Engine, normalized: &[u8], size: usize) {
    let raw = engine.variant(Some(false), false, true);
    let cut = raw.last_cut(&normalized[..size], NO_CHECK).unwrap();
    assert!(cut <= size);
    let (front, back) = normalized.split_at(cut);
    let mut ids = encoded(&raw, front);
    let rest = encoded(&raw, back);
    // (A run of unknown characters is one token.)
    let fuses = ids.last().is_some_and(|&last| Some(last) == raw.unknown()) && ids.last() == rest.first();
    ids.extend(&rest[usize::from(fuses)..]);
    assert_eq!(ids, encoded(&raw, normalized), "{:?} at {cut}", String::from_utf8_lossy(normalized));
}
