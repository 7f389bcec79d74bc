//! Reads the wire format of a model file, with every length checked.
//!
//! Python reads the same file with protobuf, and has all the error messages. This reader exists for speed, and knows
//! only as much of protobuf as model files need. What it accepts, protobuf accepts with the same values. Where it is
//! not certain of that, it gives up and leaves the decision to protobuf.

use std::ops::Range;

use crate::error::Error;
use crate::text::forms::Form;
use crate::text::normalize::NormalizerOptions;
use crate::vocab::byte_level::ByteLevelOptions;
use crate::vocab::pieces::piece_type::{BYTE, NORMAL, UNUSED};

/// The field of an added token; `proto/cpbpe_model.proto` has the same number.
const ADDED: u32 = 41700;
/// The field of what only Python reads: flags of tokens, options, chat templates.
const CARRIED: u32 = 41701;
/// The field that says whether text that begins with a space gets a dummy prefix.
const PREFIX_BEFORE_SPACE: u32 = 41702;

/// The field with what a byte-level model says about itself.
const BYTE_LEVEL: u32 = 41703;
/// The field of its Unicode normal form.
const UNICODE_FORM: u32 = 41704;

const BPE: u32 = 2;

/// The value of a field, by its wire type. `Other` has 8 bytes, as no value in a model has.
enum Value<'a> {
    Varint(u64),
    Fixed32(u32),
    Bytes(&'a [u8]),
    Other,
}

/// Walks through the fields of one message.
struct Fields<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    fn new(data: &'a [u8]) -> Self {
        Fields { data, at: 0 }
    }

    /// Read a number of at most this many bytes. Protobuf allows 10 for values and 5 for tags and lengths, padding
    /// included.
    fn varint(&mut self, most: usize) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..).step_by(7).take(most) {
            let byte = *self.data.get(self.at)?;
            self.at += 1;
            value |= u64::from(byte & 0x7F).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let end = self.at.checked_add(usize::try_from(length).ok()?)?;
        let bytes = self.data.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    /// The next field; `Some(None)` at the end, `None` if the bytes are not a message.
    #[allow(clippy::option_option)]
    fn next(&mut self) -> Option<Option<(u32, Value<'a>)>> {
        if self.at == self.data.len() {
            return Some(None);
        }
        let tag = u32::try_from(self.varint(5)?).ok()?;
        let number = tag >> 3;
        if number == 0 {
            return None;
        }
        let value = match tag & 7 {
            0 => Value::Varint(self.varint(10)?),
            1 => {
                self.take(8)?;
                Value::Other
            }
            2 => {
                let length = self.varint(5)?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Fixed32(u32::from_le_bytes(self.take(4)?.try_into().ok()?)),
            _ => return None, // groups: valid, but no model has them; leave it to protobuf
        };
        Some(Some((number, value)))
    }
}

impl Columns {
    /// Read a model file. All that is checked is that it is an ordinary BPE model.
    pub fn read(data: &[u8]) -> Result<Columns, Error> {
        let (mut columns, model_type) =
            read_fields(data).ok_or(Error::InvalidModel("its bytes are not those of the usual model file"))?;
        if model_type != BPE {
            return Err(Error::InvalidModel("its type is not BPE"));
        }
        if columns.ends.is_empty() {
            return Err(Error::InvalidModel("it holds no pieces"));
        }
        if columns.byte_fallback {
            columns.hide_nul();
        }
        Ok(columns)
    }

    /// Some converted models have a NUL piece besides <0x00>. It has no effect, so it becomes UNUSED.
    fn hide_nul(&mut self) {
        if memchr::memchr(0, &self.blob).is_none() {
            return;
        }
        for id in 0..self.ends.len() {
            if self.piece(id) == b"\0" {
                self.types[id] = UNUSED;
            }
        }
    }
}

/// The columns of a model file, and the number of its type.
fn read_fields(data: &[u8]) -> Option<(Columns, u32)> {
    let mut columns = Columns {
        blob: Vec::with_capacity(data.len() / 2),
        ends: Vec::new(),
        scores: Vec::new(),
        types: Vec::new(),
        byte_fallback: false,
        unk_surface: " \u{2047} ".into(),
        special_pieces: [b"<unk>".into(), b"<s>".into(), b"</s>".into(), b"<pad>".into()],
        normalizer: NormalizerOptions::default(),
        denormalizer: None,
        byte_level: None,
        added: Vec::new(),
        carries: false,
    };
    let mut model_type = 1;
    let (mut suffix, mut before_space, mut unicode_form) = (false, true, None);
    let mut fields = Fields::new(data);
    while let Some((number, value)) = fields.next()? {
        match (number, value) {
            (1, Value::Bytes(message)) => piece(message, &mut columns)?,
            (2, Value::Bytes(message)) => trainer(message, &mut columns, &mut model_type, &mut suffix)?,
            (3, Value::Bytes(message)) => normalizer(message, &mut columns.normalizer)?,
            (5, Value::Bytes(message)) => {
                normalizer(message, columns.denormalizer.get_or_insert_with(NormalizerOptions::default))?;
            }
            (4, Value::Bytes(_)) => {}
            (ADDED, Value::Bytes(message)) => columns.added.push(added(message)?),
            (CARRIED, _) => columns.carries = true,
            (PREFIX_BEFORE_SPACE, Value::Varint(value)) => before_space = value != 0,
            (BYTE_LEVEL, Value::Bytes(message)) => columns.byte_level = Some(byte_level(message)?),
            (UNICODE_FORM, Value::Bytes(b"")) => unicode_form = None,
            (UNICODE_FORM, Value::Bytes(name)) => unicode_form = Some(Form::of(std::str::from_utf8(name).ok()?)?),
            (1..=5 | ADDED | PREFIX_BEFORE_SPACE | BYTE_LEVEL | UNICODE_FORM, _) => return None,
            _ => {}
        }
    }
    for (name, default) in columns.special_pieces.iter_mut().zip(["<unk>", "<s>", "</s>", "<pad>"]) {
        if name.is_empty() {
            *name = default.into();
        }
    }
    columns.normalizer.suffix = suffix;
    columns.normalizer.prefix_before_space = before_space;
    columns.normalizer.unicode_form = unicode_form;
    Some((columns, model_type))
}

fn piece(message: &[u8], columns: &mut Columns) -> Option<()> {
    // 1. The usual message: a text of less than 128 bytes and a score. (Without this shortcut, reading a file takes
    //    twice as long.)
    if let [0x0A, length @ ..0x80, rest @ ..] = message {
        if let Some((text, &[0x15, a, b, c, d])) = rest.split_at_checked(usize::from(*length)) {
            return push(columns, text, f32::from_le_bytes([a, b, c, d]), NORMAL);
        }
    }
    // 2. Any other message.
    let mut text: &[u8] = b"";
    let mut score = 0.0;
    let mut kind = NORMAL;
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        match (number, value) {
            (1, Value::Bytes(bytes)) => text = bytes,
            (2, Value::Fixed32(bits)) => score = f32::from_bits(bits),
            (3, Value::Varint(value)) => {
                if let value @ 1..=6 = value as u32 {
                    kind = value as u8;
                }
            }
            (1..=3, _) => return None,
            _ => {}
        }
    }
    push(columns, text, score, kind)
}

#[inline]
fn push(columns: &mut Columns, text: &[u8], score: f32, kind: u8) -> Option<()> {
    columns.blob.extend_from_slice(text);
    columns.ends.push(u32::try_from(columns.blob.len()).ok()?);
    columns.scores.push(score);
    columns.types.push(kind);
    Some(())
}

fn added(message: &[u8]) -> Option<(Vec<u8>, u32)> {
    let (mut text, mut id) = (Vec::new(), 0);
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        match (number, value) {
            (1, Value::Bytes(bytes)) => text = bytes.into(),
            (2, Value::Varint(value)) => id = value as u32,
            (1..=2, _) => return None,
            _ => {}
        }
    }
    Some((text, id))
}

fn byte_level(message: &[u8]) -> Option<ByteLevelOptions> {
    let mut options = ByteLevelOptions::default();
    let mut fields = Fields::new(message);
    let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(str::to_owned);
    while let Some((number, value)) = fields.next()? {
        match (number, value) {
            (1, Value::Bytes(bytes)) => options.pattern = text(bytes)?,
            (2, Value::Bytes(bytes)) => options.name = text(bytes)?,
            (3, Value::Varint(value)) => options.whole = value != 0,
            (4, Value::Bytes(bytes)) => options.then.push(text(bytes)?),
            (1..=4, _) => return None,
            _ => {}
        }
    }
    Some(options)
}

fn trainer(message: &[u8], columns: &mut Columns, model_type: &mut u32, suffix: &mut bool) -> Option<()> {
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        match (number, value) {
            (3, Value::Varint(value)) => {
                if let value @ 1..=4 = value as u32 {
                    *model_type = value;
                }
            }
            (24, Value::Varint(value)) => *suffix = value != 0,
            (35, Value::Varint(value)) => columns.byte_fallback = value != 0,
            (44, Value::Bytes(bytes)) => columns.unk_surface = bytes.into(),
            (45..=48, Value::Bytes(bytes)) => columns.special_pieces[number as usize - 45] = bytes.into(),
            (3 | 24 | 35 | 44..=48, _) => return None,
            _ => {}
        }
    }
    Some(())
}

fn normalizer(message: &[u8], options: &mut NormalizerOptions) -> Option<()> {
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        match (number, value) {
            (1, Value::Bytes(bytes)) => options.name = bytes.into(),
            (2, Value::Bytes(bytes)) => options.charsmap = bytes.into(),
            (3, Value::Varint(value)) => options.add_dummy_prefix = value != 0,
            (4, Value::Varint(value)) => options.remove_extra_whitespaces = value != 0,
            (5, Value::Varint(value)) => options.escape_whitespaces = value != 0,
            (1..=5, _) => return None,
            _ => {}
        }
    }
    Some(())
}

// --- Columns -------------------------------------------------------------------------------------
//
// A model as plain columns. Every way of reading a model returns columns, and a vocabulary is made from them.

/// A model as columns, not checked yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    /// The texts of all pieces, one after another.
    pub blob: Vec<u8>,
    /// Where each piece ends in `blob`.
    pub ends: Vec<u32>,
    /// The score of each piece.
    pub scores: Vec<f32>,
    /// The type of each piece, by its number in the file.
    pub types: Vec<u8>,
    /// Whether unknown characters become BYTE pieces.
    pub byte_fallback: bool,
    /// The text that the UNKNOWN piece is decoded to.
    pub unk_surface: Vec<u8>,
    /// The names of unk, bos, eos and pad.
    pub special_pieces: [Vec<u8>; 4],
    /// The normalizer, applied before encoding.
    pub normalizer: NormalizerOptions,
    /// The denormalizer, applied after decoding.
    pub denormalizer: Option<NormalizerOptions>,
    /// What a byte-level model says about itself; `None` if symbols begin as characters.
    pub byte_level: Option<ByteLevelOptions>,
    /// Special tokens that were added to the model, and their ids.
    pub added: Vec<(Vec<u8>, u32)>,
    /// Whether the file says more about the model, which only Python reads.
    pub carries: bool,
}

impl Columns {
    /// Check that the columns fit together.
    pub fn check(&self) -> Result<(), Error> {
        let count = self.ends.len();
        let fits = self.scores.len() == count
            && self.types.len() == count
            && self.ends.is_sorted()
            && self.ends.last().map_or(0, |&end| end as usize) == self.blob.len()
            && self.types.iter().all(|kind| (NORMAL..=BYTE).contains(kind));
        if fits {
            Ok(())
        } else {
            Err(Error::InvalidModel("its columns do not fit together"))
        }
    }

    /// Where piece `id` is in `blob`.
    #[inline]
    pub fn range(&self, id: usize) -> Range<usize> {
        let begin = if id == 0 { 0 } else { self.ends[id - 1] as usize };
        begin..self.ends[id] as usize
    }

    /// The text of piece `id`.
    #[inline]
    pub fn piece(&self, id: usize) -> &[u8] {
        &self.blob[self.range(id)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::pieces::piece_type::UNKNOWN;

    #[test]
    fn reads_a_model_and_refuses_anything_else() {
        // pieces: "<unk>" (UNKNOWN), "a" with score -1.5; trainer_spec: BPE, byte_fallback off
        let mut data = vec![0x0A, 9, 0x0A, 5];
        data.extend_from_slice(b"<unk>");
        data.extend_from_slice(&[0x18, 2]);
        data.extend_from_slice(&[0x0A, 8, 0x0A, 1, b'a', 0x15]);
        data.extend_from_slice(&(-1.5f32).to_le_bytes());
        data.extend_from_slice(&[0x12, 2, 0x18, 2]);
        let columns = Columns::read(&data).unwrap();
        assert_eq!((columns.piece(0), columns.piece(1)), (&b"<unk>"[..], &b"a"[..]));
        assert_eq!((columns.scores[1], columns.types[0], columns.types[1]), (-1.5, UNKNOWN, NORMAL));
        for length in 0..data.len() {
            assert!(Columns::read(&data[..length]).is_err(), "{length}");
        }

        // After the model: a field that is passed over, then fields that only protobuf may judge.
        let with = |end: &[u8]| Columns::read(&[&data[..], end].concat());
        assert!(with(b"\x22\x02\x0a\x05").is_ok()); // self_test_data is not looked into
        assert!(with(b"\xa2\x80\x80\x80\x00\x00").is_ok()); // a tag of 5 bytes
        assert!(with(b"\xa2\x80\x80\x80\x80\x00\x00").is_err()); // of 6
        assert!(with(b"\x22\x80\x80\x80\x80\x80\x00").is_err()); // a length of 6
        assert!(with(b"\xa2\xae\x14\x02\x0a\x05").is_err()); // an added token that is cut off
    }
}
