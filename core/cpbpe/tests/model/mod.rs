//! Models for tests.

use cpbpe::{Columns, NormalizerOptions};

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
