//! Long work asks again and again whether to go on, and ends as soon as the answer is no. The times that this takes
//! depend on the machine, so it is counted how often each call asks.

use std::sync::atomic::{AtomicUsize, Ordering};

use cpbpe::watch::Check;
use cpbpe::{AlignOptions, Columns, Dropout, Engine, Error, Finder, Halt, NormalizerOptions, Wanted, NO_ID};

mod model;

const NORMAL: u8 = 1;
const UNKNOWN: u8 = 2;
const USER_DEFINED: u8 = 4;

/// How many bytes, ids or pieces each call is given.
const MANY: usize = (1 << 16) + 8;
/// The same for calls that need little time for each.
const MORE: usize = 1 << 19;

fn engine(user_defined: Option<&str>, squeeze: bool) -> Engine {
    let mut pieces = vec![("<unk>", UNKNOWN), ("a", NORMAL), ("aa", NORMAL), ("aaaa", NORMAL), ("\u{2581}", NORMAL)];
    pieces.extend(user_defined.map(|text| (text, USER_DEFINED)));
    let normalizer = NormalizerOptions { remove_extra_whitespaces: squeeze, ..NormalizerOptions::default() };
    Engine::from_columns(Columns { normalizer, ..model::columns(&pieces) }).unwrap()
}

/// How often a call asks whether to go on. Told no at any time, it asks no more and says that it was stopped.
fn asks<T, E: Into<Error>>(name: &str, call: impl Fn(Check) -> Result<T, E>) -> usize {
    let asked_until = |stop: usize| {
        let asked = AtomicUsize::new(0);
        let check = || if asked.fetch_add(1, Ordering::Relaxed) < stop { Ok(()) } else { Err(Halt::Stopped) };
        let outcome = call(&check).map(drop).map_err(Into::into);
        (asked.load(Ordering::Relaxed), outcome)
    };
    let (all, outcome) = asked_until(usize::MAX);
    assert!(outcome.is_ok() && all > 0, "{name}");
    for stop in [0, all - 1] {
        let (asked, outcome) = asked_until(stop);
        assert!(asked == stop + 1 && matches!(outcome, Err(Error::Stopped)), "{name}: {asked} {stop} {outcome:?}");
    }
    all
}

/// Each pass over a text or ids asks at its own intervals (`CHECK_STEPS` and the like), so a pass that does not ask makes
/// a number smaller. Where an interval becomes longer on purpose, these numbers become smaller, too.
#[test]
fn every_call_asks_all_the_time() {
    let plain = engine(None, false);
    let squeezing = engine(None, true);
    let keyed = engine(Some("b"), false);
    let long_keyed = engine(Some("ab"), false);
    let text = vec![b'a'; MANY];
    let as_str = std::str::from_utf8(&text).unwrap();
    let unknown = vec![b'c'; MANY];
    let spaces = vec![b' '; MANY];
    let more = vec![b'a'; MORE];
    let ids = vec![1u32; MORE];
    let dropout = Some(Dropout { alpha: 0.1, seed: 1 });
    let encode = |engine: &Engine, text: &[u8]| {
        asks("encode", |check| engine.with_scratch(|scratch| engine.encode(text, true, check, scratch))?)
    };
    let align = |options: AlignOptions| {
        asks("align_batch", |check| {
            plain.encode_batch(&vec![(&text[..], true)], 1, Wanted::Spans(options), check, &mut Vec::new())
        })
    };
    let find = |key: &[u8], text: &[u8]| asks("find", |check| Finder::new(&[key]).unwrap().find_all(text, check));
    let found = [
        ("encode", 77, encode(&plain, &text)),
        ("encode with pieces", 80, encode(&keyed, &text)),
        ("encode parallel", 77, asks("p", |check| plain.encode_parallel(&text, true, 2, check))),
        ("count", 77, asks("count", |check| plain.with_scratch(|s| plain.count(&text, true, check, s))?)),
        ("tokens", 92, asks("tokens", |check| plain.tokens(&text, None, check))),
        ("tokens with pieces", 92, asks("tokens", |check| long_keyed.tokens(&text, None, check))),
        ("tokens unknown", 19, asks("tokens", |check| keyed.tokens(&unknown, None, check))),
        ("sample", 89, asks("sample", |check| plain.tokens(&text, dropout, check))),
        ("align", 78, align(AlignOptions { characters: None, dropout: None })),
        ("sample batch", 75, align(AlignOptions { characters: None, dropout })),
        ("normalize", 15, asks("normalize", |check| plain.normalize((&text, true), check))),
        ("normalize compact", 15, asks("normalize", |check| squeezing.normalize_compact(as_str, check))),
        ("normalize spaces", 16, asks("normalize", |check| squeezing.normalize((&spaces, true), check))),
        ("origins", 15, asks("origins", |check| plain.origins(&text, check))),
        ("last cut", 31, asks("cut", |check| plain.last_cut(&more, check))),
        ("last cut with pieces", 31, asks("cut", |check| keyed.last_cut(&more, check))),
        ("decode", 7, asks("decode", |check| plain.decoder().decode(&ids, false, check))),
        (
            "decode batch",
            8,
            asks("decode", |check| plain.decoder().decode_batch(&[1; MORE], &(1..=MORE).collect::<Vec<_>>(), 1, check)),
        ),
        (
            "decode pieces",
            7,
            asks("decode", |check| plain.decoder().decode_pieces(&[NO_ID; MORE], std::iter::repeat(&b"a"[..]), check)),
        ),
        ("find short", 16, find(b"a", &text)),
        ("find long", 8, find(&[b'a'; 65], &more)),
        ("find none", 7, find(&[[b'a'; 65], [b'b'; 65]].concat(), &more)),
    ];
    let too_few: Vec<_> = found.iter().filter(|(_, least, asked)| asked < least).collect();
    assert!(too_few.is_empty(), "name, least, asked: {too_few:?}");
}
