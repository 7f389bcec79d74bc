//! Model files for tests, and what they make of a text.

use cpbpe::watch::NO_CHECK;
use cpbpe::{Engine, Scratch};

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
