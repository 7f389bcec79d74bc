//! Models for tests.
#![allow(dead_code, reason = "each test uses some of it")]

use cpbpe::{ByteLevelOptions, Columns, NormalizerOptions};

/// Columns of these pieces, each with its type; the first ones merge first. There is no byte fallback.
pub fn columns<T: AsRef<str>>(pieces: &[(T, u8)]) -> Columns {
    let mut blob = Vec::new();
    let end = |piece: &(T, u8)| {
        blob.extend_from_slice(piece.0.as_ref().as_bytes());
        blob.len() as u32
    };
    Columns {
        ends: pieces.iter().map(end).collect(),
        blob,
        scores: (0..pieces.len()).map(|id| -(id as f32)).collect(),
        types: pieces.iter().map(|&(_, kind)| kind).collect(),
        byte_fallback: false,
        unk_surface: b" ? ".to_vec(),
        special_pieces: ["<unk>", "<s>", "</s>", "<pad>"].map(|name| name.as_bytes().to_vec()),
        normalizer: NormalizerOptions::default(),
        denormalizer: None,
        byte_level: None,
        added: Vec::new(),
        carries: false,
    }
}

/// A model of all bytes and these pieces.
pub fn byte_level(pieces: &[&[u8]], pattern: &str, whole: bool) -> Columns {
    let bytes: Vec<[u8; 1]> = (0..=255).map(|byte| [byte]).collect();
    let all: Vec<&[u8]> =
        bytes.iter().map(|byte| &byte[..]).chain(pieces.iter().copied()).chain([&b"<|end|>"[..]]).collect();
    let mut end = 0;
    let mut ends = Vec::new();
    for piece in &all {
        end += piece.len() as u32;
        ends.push(end);
    }
    let mut types = vec![1; all.len()];
    types[all.len() - 1] = 3;
    Columns {
        blob: all.concat(),
        ends,
        scores: (0..all.len()).map(|id| -(id as f32)).collect(),
        types,
        special_pieces: ["<unk>", "<s>", "<|end|>", "<pad>"].map(|name| name.as_bytes().to_vec()),
        normalizer: NormalizerOptions {
            add_dummy_prefix: false,
            remove_extra_whitespaces: false,
            escape_whitespaces: false,
            ..NormalizerOptions::default()
        },
        byte_level: Some(ByteLevelOptions { pattern: pattern.into(), then: Vec::new(), name: "mine".into(), whole }),
        ..columns::<&str>(&[])
    }
}
