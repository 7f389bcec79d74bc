//! Models that are given as columns: what is refused, with which reason, and that valid ones come back.

use cpbpe::{Columns, Engine, Error, NormalizerOptions};

mod model;

const NORMAL: u8 = 1;
const UNKNOWN: u8 = 2;
const BYTE: u8 = 6;

/// Columns of these pieces, with all that may be beside them.
fn columns(pieces: &[(&str, u8)]) -> Columns {
    Columns {
        normalizer: NormalizerOptions { name: b"mine".to_vec(), ..NormalizerOptions::default() },
        added: vec![(b"<|end|>".to_vec(), 7)],
        carries: false,
        ..model::columns(pieces)
    }
}

fn toy() -> Columns {
    columns(&[("<unk>", UNKNOWN), ("\u{2581}", NORMAL), ("a b", NORMAL), ("a", NORMAL)])
}

#[test]
fn columns_come_back() {
    let mut given = toy();
    given.scores[1] = -0.0;
    given.scores[2] = f32::INFINITY;
    let engine = Engine::from_columns(given.clone()).unwrap();
    assert_eq!(engine.columns(), given);
    assert_eq!(engine.columns().scores[1].to_bits(), (-0.0f32).to_bits());
    // A variant has other options, but is the same model.
    assert_eq!(engine.variant(Some(false), true, true).columns(), given);
}

#[test]
fn what_is_refused() {
    let long = "x".repeat(8000);
    let refused: [(Columns, &str); 12] = [
        (Columns { scores: vec![0.0], ..toy() }, "columns do not fit together"),
        (Columns { ends: vec![5, 4, 11, 12], ..toy() }, "columns do not fit together"),
        (Columns { types: vec![2, 1, 1, 9], ..toy() }, "columns do not fit together"),
        (columns(&[("<unk>", UNKNOWN), ("", NORMAL)]), "a piece is empty"),
        (columns(&[("<unk>", UNKNOWN), (&long, NORMAL)]), "8000 bytes"),
        (columns(&[("<unk>", UNKNOWN), ("a\0", NORMAL)]), "NUL"),
        (columns(&[("<unk>", UNKNOWN), ("a", NORMAL), ("a", NORMAL)]), "two pieces have the same text"),
        (columns(&[("<unk>", UNKNOWN), ("?", UNKNOWN)]), "two pieces have the type UNKNOWN"),
        (columns(&[("a", NORMAL)]), "no piece has the type UNKNOWN"),
        (columns(&[("<unk>", UNKNOWN), ("<0x41>", BYTE)]), "byte_fallback is off"),
        (Columns { byte_fallback: true, ..toy() }, "BYTE pieces are missing"),
        (
            Columns { normalizer: NormalizerOptions { charsmap: b"x".to_vec(), ..toy().normalizer }, ..toy() },
            "charsmap is malformed",
        ),
    ];
    for (columns, reason) in refused {
        let Err(error) = Engine::from_columns(columns) else { panic!("not refused: {reason}") };
        assert!(matches!(error, Error::InvalidModel(_)) && error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn what_is_no_model_file() {
    for data in [&b""[..], b"x", b"\x0a\xff"] {
        assert!(matches!(Columns::read(data), Err(Error::InvalidModel(_))));
    }
}
