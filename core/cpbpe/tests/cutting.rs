//! Texts that are cut in one way and then in another, and what must be remembered, forgotten or made room for meanwhile.

mod chance;
mod file;

use cpbpe::watch::NO_CHECK;
use cpbpe::{Engine, Instructions};

use chance::Chance;
use file::{bytes, encoded, piece, settings};

/// Text is cut by bytes or by characters, batch by batch: each way must go on where the other one stopped, in a word,
/// after it, in an unknown character, or after one.
#[test]
fn one_way_of_cutting_follows_the_other() {
    let mut chance = Chance::new(7);
    for round in 0..60 {
        cpbpe::use_at_most(Instructions::ALL[round % 3]);
        let mut file = Vec::new();
        piece(&mut file, b"<unk>", 0.0, 2);
        let byte_fallback = round % 8 > 5;
        if byte_fallback {
            bytes(&mut file);
        }
        // Every ASCII character is a piece, or every one but one: the bytes then tell which way is taken. (Merging joins
        // a with what is after it, b only with what is before.)
        let missing = [0, b'~', b'a', b'b', b' '][round / 2 % 5];
        for byte in (1..0x80).filter(|&byte| byte != missing) {
            let text = if byte == b' ' { "\u{2581}".to_string() } else { char::from(byte).to_string() };
            piece(&mut file, text.as_bytes(), -9.0, if byte == b'#' { 5 } else { 1 });
        }
        piece(&mut file, "ü".as_bytes(), -9.0, 5);
        for (i, text) in ["ab", "国", "中国", "a国", "国a", "国国", "éa", "aé", "😀a"].into_iter().enumerate()
        {
            piece(&mut file, text.as_bytes(), -(i as f32), 1);
        }
        settings(&mut file, byte_fallback, false, false);
        let engine = Engine::from_model(&file).unwrap();
        for _ in 0..80 {
            let mut text = String::new();
            while text.len() < 900 {
                let letters = chance
                    .pick(&["a", "b", "ab ", "中", "国", "中国", "ж", "é", "éa", "😀", "😀a", "~", "#", "ü", "aé国"]);
                let most = [3, 90][chance.below(2)];
                text += &letters.repeat(1 + chance.below(most));
            }
            let text = text.as_bytes();
            assert_eq!(
                encoded(&engine, text),
                engine.encode_slowly(text).unwrap(),
                "{:?}",
                String::from_utf8_lossy(text)
            );
            let count = engine.with_scratch(|scratch| engine.count(text, false, NO_CHECK, scratch)).unwrap();
            assert_eq!(count, Ok(encoded(&engine, text).len()));
        }
    }
    cpbpe::use_at_most(Instructions::Vector);
}

/// What is kept aside has its limit, and then all is forgotten, perhaps while a batch of chunks is being looked up
/// of which some were in the cache.
#[test]
fn what_is_forgotten_is_not_used() {
    let mut file = Vec::new();
    piece(&mut file, b"<unk>", 0.0, 2);
    bytes(&mut file);
    for pair in 0..9 {
        piece(&mut file, &[b'a' + pair / 3, b'a' + pair % 3], -f32::from(pair), 1);
    }
    settings(&mut file, true, false, false);
    let Ok(engine) = Engine::from_model(&file) else { panic!("not a model") };
    // Both become too many ids for one cell of the cache, and the known one is the first that is kept aside.
    let new = |i: u32| (0..15).map(|k| b'a' + (i / 3u32.pow(k) % 3) as u8).collect::<Vec<_>>();
    let known = b"cabcabbacab";
    let (mut text, mut expected) = (Vec::new(), Vec::new());
    for i in 0..100_000 {
        for part in [&known[..], b" ", &new(i), b" "] {
            text.extend_from_slice(part);
            expected.extend(engine.encode_slowly(part).unwrap());
        }
    }
    assert!(encoded(&engine, &text) == expected);
}

/// There must be room for the three bytes of each space, if the piece of a space is UNUSED.
#[test]
fn an_unused_space_becomes_three_bytes() {
    let mut file = Vec::new();
    piece(&mut file, b"<unk>", 0.0, 2);
    bytes(&mut file);
    piece(&mut file, "\u{2581}".as_bytes(), 0.0, 5);
    settings(&mut file, true, false, false);
    let Ok(engine) = Engine::from_model(&file) else { panic!("not a model") };
    let text = b"1 ".repeat(100_000);
    assert!(encoded(&engine, &text) == engine.encode_slowly(&text).unwrap());
}
