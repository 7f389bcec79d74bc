//! Model files for tests, and what they make of a text.
#![allow(dead_code, reason = "each test uses some of it")]

use cpbpe::watch::NO_CHECK;
use cpbpe::{Engine, Scratch};

use crate::chance::Chance;

/// What random pieces and texts are made of.
pub const LETTERS: &[&str] = &[
    "a", "b", "c", "e", " ", " ", "7", "=", "\u{2581}", "\n", "\0", ".", "1", "é", "ж", "о", "中", "国", "。", "🦙",
    "\u{301}",
];

/// A field of a message.
fn field(out: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    out.push(number << 3 | 2);
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(bytes);
}

/// A piece.
pub fn piece(file: &mut Vec<u8>, text: &[u8], score: f32, kind: u8) {
    let mut message = Vec::new();
    field(&mut message, 1, text);
    message.push(2 << 3 | 5);
    message.extend_from_slice(&score.to_le_bytes());
    if kind != 1 || text.len() % 2 == 0 {
        message.extend_from_slice(&[3 << 3, kind]); // may be left out for NORMAL pieces
    }
    field(file, 1, &message);
}

/// The pieces of the 256 bytes.
pub fn bytes(file: &mut Vec<u8>) {
    for byte in 0..256 {
        piece(file, format!("<0x{byte:02X}>").as_bytes(), 0.0, 6);
    }
}

/// Everything but the pieces.
pub fn settings(file: &mut Vec<u8>, byte_fallback: bool, prefix: bool, remove_extra_spaces: bool) {
    let mut trainer = vec![3 << 3, 2];
    trainer.extend_from_slice(&[35 << 3 & 0x7F | 0x80, 2, u8::from(byte_fallback)]);
    field(file, 2, &trainer);
    field(file, 3, &[3 << 3, u8::from(prefix), 4 << 3, u8::from(remove_extra_spaces), 5 << 3, 1]);
}

/// The ids of a text.
pub fn encoded(engine: &Engine, text: &[u8]) -> Vec<u32> {
    let encode = |scratch: &mut Scratch| engine.encode(text, false, NO_CHECK, scratch).map(|()| scratch.ids.clone());
    engine.with_scratch(encode).unwrap().unwrap()
}

/// A model file with pieces that are made of letters and of each other.
pub fn random(chance: &mut Chance) -> Vec<u8> {
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
    if chance.below(16) == 15 {
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
