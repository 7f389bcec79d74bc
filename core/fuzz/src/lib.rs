//! What the fuzzer tries: each function takes the bytes that it made up, makes something of them, and checks the laws that
//! the crate's own tests check (`core/cpbpe/tests`). A panic is a bug found.
//!
//! Models that are built anew for each input take most of the time, so there are targets for models, whose texts are short,
//! and targets for texts, which use the same few models all the time.

#[path = "../../cpbpe/tests/chance/mod.rs"]
mod chance;
#[path = "../../cpbpe/tests/file/mod.rs"]
mod file;
#[path = "../../cpbpe/tests/laws/mod.rs"]
mod laws;
#[path = "../../cpbpe/tests/literal/mod.rs"]
mod literal;
#[path = "../../cpbpe/tests/model/mod.rs"]
mod model;
#[path = "../../cpbpe/tests/rules/mod.rs"]
mod rules;
mod training;

use std::sync::OnceLock;

use cpbpe::watch::NO_CHECK;
use cpbpe::{
    decimal, read_ids, use_at_most, AlignOptions, Batch, Columns, Dropout, Engine, Finder, Form, Instructions,
    LineWriter, NormalizerOptions, Splitter,
};

use chance::Chance;
use laws::{
    aligned_as_one_by_one, columns_come_back, decoded_as_one_by_one, decoded_with_spans, encoded_as_it_arrives,
    encoded_in_every_way, makes_itself, normalized_in_every_way, sampled_as_a_whole,
};
use literal::Literal;

pub use training::{train, train_bytes};

/// The first part of the data, for choices, and the rest. Its first byte says how long the part is.
fn parts(data: &[u8]) -> (&[u8], &[u8]) {
    let Some((&length, rest)) = data.split_first() else { return (data, data) };
    rest.split_at(rest.len().min(usize::from(length)))
}

/// Everything that can be asked about a text.
fn ask(engine: &Engine, text: &[u8], chance: &mut Chance) {
    let literal = Literal::new(engine);
    for law in 0..LAWS {
        ask_one(engine, &literal, law, text, chance);
    }
}

const LAWS: usize = 7;

/// One thing that can be asked about a text.
fn ask_one(engine: &Engine, literal: &Literal, law: usize, text: &[u8], chance: &mut Chance) {
    match law {
        0 if text.len() <= 200 => assert_eq!(file::encoded(engine, text), literal.encoded(text)),
        0 | 1 => decoded_with_spans(engine, &encoded_in_every_way(engine, text)),
        2 | 3 => {
            sampled_as_a_whole(engine, text, Dropout { alpha: [0.1, 0.6, 0.0, 1.0][chance.below(4)], seed: 1 });
        }
        4 => {
            normalized_in_every_way(engine, text);
        }
        5 => {
            let normalized = engine.normalize((text, false), NO_CHECK).unwrap();
            encoded_as_it_arrives(engine, &normalized, chance.below(normalized.len() + 1));
        }
        _ => {
            let characters = [None, Some(false), Some(true)][chance.below(3)];
            let dropout = (chance.below(2) == 1).then_some(Dropout { alpha: 0.3, seed: 5 });
            let texts = [(text, false), (b"a", true), (text, false)];
            aligned_as_one_by_one(engine, &texts, AlignOptions { characters, dropout });
        }
    }
}

// --- Models ---------------------------------------------------------------------------------------------------------

/// Any bytes as a model file.
pub fn file(data: &[u8]) {
    let Ok(engine) = Engine::from_model(data) else { return };
    columns_come_back(&engine, data);
    for text in [&b" a  b<s>\xe2\x96\x81"[..], &data[data.len().saturating_sub(40)..]] {
        ask(&engine, text, &mut Chance::of(text));
    }
}

/// A vocabulary of random pieces, and a text.
pub fn vocabulary(data: &[u8]) {
    let (choices, text) = parts(data);
    let mut chance = Chance::of(choices);
    use_at_most(Instructions::ALL[chance.below(3)]);
    let file = file::random(&mut chance);
    let engine = Engine::from_model(&file).unwrap();
    columns_come_back(&engine, &file);
    ask(&engine, text, &mut chance);
}

/// Columns in which anything may be wrong.
pub fn columns(data: &[u8]) {
    let (choices, text) = parts(data);
    let mut chance = Chance::of(choices);
    let mut columns = model::columns::<&str>(&[]);
    for _ in 0..chance.below(20) {
        let length = chance.below(9);
        columns.blob.extend((0..length).map(|_| b"ab \xe2\x96\x81\xc3\xa9\0<>"[chance.below(11)]));
        let wrong = chance.below(40) == 39;
        columns.ends.push(if wrong { chance.below(300) as u32 } else { columns.blob.len() as u32 });
        columns.scores.push([0.0, -1.0, -2.5, f32::NAN, f32::INFINITY, -0.0, 1e-40][chance.below(7)]);
        columns.types.push([1, 1, 1, 2, 3, 4, 5, 6, 7][chance.below(9)]);
    }
    if chance.below(2) == 1 {
        columns.scores.push(0.0);
    }
    columns.byte_fallback = chance.below(4) == 1;
    if chance.below(4) == 1 {
        let pattern = String::from_utf8_lossy(text).into_owned();
        columns = Columns { byte_level: model::byte_level(&[], &pattern, true).byte_level, ..columns };
    }
    if let Ok(engine) = Engine::from_columns(columns) {
        makes_itself(&engine);
        ask(&engine, text, &mut chance);
    }
}

/// Random rules for normalizing, and a text.
pub fn normalize(data: &[u8]) {
    let (choices, text) = parts(data);
    let mut chance = Chance::of(choices);
    use_at_most(Instructions::ALL[chance.below(3)]);
    let engine = rules::engine(&mut chance);
    ask(&engine, text, &mut chance);
}

/// Any bytes as compiled rules.
pub fn charsmap(data: &[u8]) {
    let Some((&[low, high, options], rest)) = data.split_first_chunk() else { return };
    let (charsmap, text) = rest.split_at(rest.len().min(usize::from(u16::from_le_bytes([low, high]))));
    let normalizer = NormalizerOptions {
        charsmap: charsmap.to_vec(),
        add_dummy_prefix: options & 1 > 0,
        remove_extra_whitespaces: options & 2 > 0,
        escape_whitespaces: options & 4 > 0,
        suffix: options & 8 > 0,
        prefix_before_space: options & 16 > 0,
        ..NormalizerOptions::default()
    };
    let pieces = [("<unk>", 2), ("a", 1), ("\u{2581}", 1), ("ab", 4), ("\u{2581}a", 1)];
    let Ok(engine) = Engine::from_columns(Columns { normalizer, ..model::columns(&pieces) }) else { return };
    makes_itself(&engine);
    ask(&engine, text, &mut Chance::of(text));
}

// --- Texts ----------------------------------------------------------------------------------------------------------

/// Models that are made once.
struct Made {
    engine: &'static Engine,
    literal: Literal<'static>,
}

fn made(engine: Engine) -> Made {
    let engine: &Engine = Box::leak(Box::new(engine));
    Made { engine, literal: Literal::new(engine) }
}

/// Random models of all kinds, always the same ones.
fn all_kinds() -> Vec<Made> {
    let mut all = Vec::new();
    for seed in 1..=12 {
        all.push(made(Engine::from_model(&file::random(&mut Chance::new(seed * 0x9E37_79B9))).unwrap()));
        all.push(made(rules::engine(&mut Chance::new(seed * 0x85EB_CA6B))));
    }
    for (number, pattern) in Splitter::published().chain(["", r"\w+|\W", r" [^ ]*|[^ ]+"]).enumerate() {
        let columns = model::byte_level(PIECES, pattern, number % 2 == 0);
        all.push(made(Engine::from_columns(columns).unwrap()));
    }
    all
}

const PIECES: &[&[u8]] = &[b"th", b"the", b" the", b"\xe6\x97", b"\xe6\x97\xa5", b"aa", b"aaaa", b" a", b"'s", b"\n\n"];

/// Do something with one of these models. The first byte says which.
fn with_model(data: &[u8], work: impl FnOnce(&Made, &[u8])) {
    static ALL: OnceLock<Vec<Made>> = OnceLock::new();
    let Some((&number, rest)) = data.split_first() else { return };
    let all = ALL.get_or_init(all_kinds);
    work(&all[usize::from(number) % all.len()], rest);
}

/// Any bytes as a text. (One law at a time: most of them take longer than the fuzzer does between two inputs.)
pub fn text(data: &[u8]) {
    with_model(data, |Made { engine, literal }, rest| {
        let Some((&choice, text)) = rest.split_first() else { return };
        use_at_most(Instructions::ALL[usize::from(data[0] % 3)]);
        let choice = usize::from(choice);
        ask_one(engine, literal, choice % LAWS, text, &mut Chance::of(&[(choice / LAWS) as u8]));
    });
}

/// Unicode normal forms: what follows from what they are, and that a model which asks for one encodes the text in it.
pub fn forms(data: &[u8]) {
    thread_local! {
        static MODELS: Vec<Engine> = ["", "NFC", "NFD", "NFKC", "NFKD"]
            .map(|name| {
                let mut columns = model::byte_level(PIECES, r"\w+|\W", false);
                columns.normalizer.unicode_form = Form::of(name);
                Engine::from_columns(columns).unwrap()
            })
            .into();
    }
    let text = String::from_utf8_lossy(data);
    MODELS.with(|models| {
        let [plain, nfc, nfd, nfkc, nfkd] = &models[..] else { unreachable!() };
        let form = |engine: &Engine, text: &[u8]| {
            let normal = engine.normalize((text, true), NO_CHECK).unwrap();
            let (same, origins) = engine.origins(text, NO_CHECK).unwrap();
            assert_eq!(same, normal);
            assert!(origins.len() == normal.len() + 1 && origins.is_sorted() && origins.last() == Some(&text.len()));
            normal
        };
        let text = text.as_bytes();
        let [c, d, kc, kd] = [nfc, nfd, nfkc, nfkd].map(|engine| form(engine, text));
        // Each form is the form of each form that says no less.
        for (engine, normal, of) in [
            (nfc, &c, vec![&c, &d]),
            (nfd, &d, vec![&c, &d]),
            (nfkc, &kc, vec![&c, &d, &kc, &kd]),
            (nfkd, &kd, vec![&c, &d, &kc, &kd]),
        ] {
            assert!(of.into_iter().all(|other| form(engine, other) == *normal));
            assert_eq!(file::encoded(engine, text), file::encoded(plain, normal));
        }
    });
}

/// Any bytes as ids.
pub fn ids(data: &[u8]) {
    with_model(data, |Made { engine, .. }, rest| {
        let size = engine.size();
        let ids: Vec<u32> =
            rest.chunks(2).map(|two| two.iter().fold(0, |id, &b| id << 8 | u32::from(b)) % size as u32).collect();
        decoded_with_spans(engine, &ids);
        let rows: Vec<Vec<u32>> = ids.chunks(1 + rest.len() % 7).map(<[u32]>::to_vec).collect();
        decoded_as_one_by_one(engine, &rows, &mut Chance::of(rest));
        // Bytes that are no text become U+FFFD.
        let [kept, text] = [true, false].map(|keep| engine.decoder().decode(&ids, keep, NO_CHECK).unwrap());
        assert!(!engine.is_byte_level() || text == String::from_utf8_lossy(&kept).as_bytes());
    });
}

// --- Patterns, keys, lines ------------------------------------------------------------------------------------------

/// The chunks of a text.
fn chunks(splitter: &Splitter, text: &str) -> Vec<[usize; 2]> {
    let (mut chunks, mut batch, mut all) = (splitter.cover(text), Batch::default(), Vec::new());
    while chunks.next(&mut batch).unwrap() {
        all.extend(batch.spans());
    }
    all
}

/// Each published pattern: its scanner must find the chunks that the regular expression finds.
pub fn pattern(data: &[u8]) {
    thread_local! {
        static SPLITTERS: Vec<[Splitter; 2]> = Splitter::published()
            // (In brackets it is not recognized as a published one.)
            .map(|pattern| [Splitter::of(pattern).unwrap(), Splitter::of(&format!("(?:{pattern})")).unwrap()])
            .collect();
    }
    let Some((&first, text)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(text);
    use_at_most(Instructions::ALL[usize::from(first % 3)]);
    SPLITTERS.with(|splitters| {
        let [scanner, regex] = &splitters[usize::from(first) % splitters.len()];
        let found = chunks(scanner, &text);
        assert_eq!(found, chunks(regex, &text), "{text:?}");
        if let Some(cut) = scanner.safe_cut(&text, 0, text.len()) {
            let (front, back) = text.split_at(cut);
            let after = chunks(scanner, back).into_iter().map(|span| span.map(|at| at + cut));
            assert_eq!(found, chunks(scanner, front).into_iter().chain(after).collect::<Vec<_>>(), "{text:?} at {cut}");
        }
    });
}

/// Any text as a pattern: its chunks must cover every text, or it says why not.
pub fn regex(data: &[u8]) {
    let (pattern, text) = parts(data);
    let (pattern, text) = (String::from_utf8_lossy(pattern), String::from_utf8_lossy(text));
    let Ok(splitter) = Splitter::of(&pattern) else { return };
    let (mut chunks, mut batch, mut at) = (splitter.cover(&text), Batch::default(), 0);
    loop {
        match chunks.next(&mut batch) {
            Err(_) => return,
            Ok(false) => break,
            Ok(true) => {
                for [begin, end] in batch.spans() {
                    assert!(begin == at && end >= begin && text.is_char_boundary(end), "{pattern:?} {text:?}");
                    at = end;
                }
            }
        }
    }
    assert_eq!(at, text.len(), "{pattern:?} {text:?}");
}

/// Keys must be found as if each place was asked for all of them.
pub fn finder(data: &[u8]) {
    let (choices, text) = parts(data);
    let mut chance = Chance::of(choices);
    let long = chance.below(4) == 3;
    let keys: Vec<Vec<u8>> = (0..1 + chance.below(6))
        .map(|_| {
            let length = 1 + chance.below(if long { 90 } else { 6 });
            (0..length).map(|_| b"ab<>|\xe2"[chance.below(6)]).collect()
        })
        .collect();
    let slices: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let mut expected = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let longest = keys.iter().filter(|key| text[at..].starts_with(key)).max_by_key(|key| key.len());
        if let Some(key) = longest {
            expected.push((key.as_slice(), at));
        }
        at += longest.map_or(1, Vec::len);
    }
    let found = Finder::new(&slices).unwrap().find_all(text, NO_CHECK).unwrap();
    assert!(found.iter().all(|one| one.end == one.begin + keys[one.key].len()));
    assert_eq!(found.iter().map(|one| (slices[one.key], one.begin)).collect::<Vec<_>>(), expected);
}

/// Lines of ids: read as splitting reads them, and written as they were read.
pub fn lines(data: &[u8]) {
    let read = read_ids(data, NO_CHECK, decimal).unwrap();
    let (mut ids, mut ends, mut wrong, mut at) = (Vec::new(), Vec::new(), false, 0);
    'lines: for line in data.split_inclusive(|&byte| byte == b'\n') {
        let words = line.strip_suffix(b"\n").unwrap_or(line);
        for word in words.split(|&byte| byte == b' ').filter(|word| !word.is_empty()) {
            let text = std::str::from_utf8(word).unwrap_or("");
            let is_number = word.len() <= 10 && word.iter().all(u8::is_ascii_digit);
            match text.parse::<u32>().ok().filter(|_| is_number) {
                Some(id) => ids.push(id),
                None => {
                    wrong = true;
                    at = word.as_ptr() as usize - data.as_ptr() as usize;
                    break 'lines;
                }
            }
        }
        ends.push(ids.len());
    }
    assert_eq!((&read.ids, &read.ends, read.wrong), (&ids, &ends, wrong.then_some(at)));
    // Small ids are written with words of all lengths.
    let words: Vec<Vec<u8>> = (0..40).map(|length| vec![b'x'; length]).collect();
    let slices: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let writer = LineWriter::new(&slices, b" ", b"[", b"]\n").unwrap();
    let small: Vec<u32> = ids.iter().map(|id| id % 40).collect();
    let mut expected = Vec::new();
    let mut begin = 0;
    for &end in &ends {
        let line: Vec<&[u8]> = small[begin..end].iter().map(|&id| slices[id as usize]).collect();
        expected.extend([b"[", &line.join(&b' ')[..], b"]\n"].concat());
        begin = end;
    }
    assert_eq!(writer.write(&small[..begin], &ends, &[], NO_CHECK).unwrap(), expected);
}
