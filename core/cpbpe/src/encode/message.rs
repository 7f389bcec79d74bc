//! Tokens as a SentencePieceText, protobuf's message for a text with its pieces, byte by byte as sentencepiece writes
//! it.
//!
//! `Analysis.serialized` in `cpbpe/compat/sentencepiece/results.py` does the same in Python.

use crate::decode::{DecodedSpans, Decoder};
use crate::encode::align::AlignOptions;
use crate::encode::engine::{Engine, Input};
use crate::error::{Error, Halt};
use crate::memory::{with_room, Grow};
use crate::merge::Dropout;
use crate::text::utf8;
use crate::vocab::vocabulary::byte_of;
use crate::watch::{Check, Checks};

/// The most bytes that the numbers and lengths of one piece take: seven numbers, each with the tag of its field.
const NUMBERS: usize = 7 * 11;
/// About how many bytes a piece takes.
const PER_PIECE: usize = 24;

/// A message that is being written.
struct Message(Vec<u8>);

impl Message {
    /// A message for a text of about this many pieces.
    fn new(text: &[u8], pieces: usize) -> Result<Message, Halt> {
        // (The text is in it about three times: as a whole, in the pieces, and in their surfaces.)
        let mut message = Message(with_room(text.len() * 3 + pieces * PER_PIECE + NUMBERS)?);
        message.field(1, text);
        Ok(message)
    }

    /// Append a piece: its text; its id (`u32::MAX` stands for -1); its surface, which is the part of the text that it
    /// stands for, if the message says that; and where this part begins and ends.
    fn add(&mut self, piece: &[u8], id: u32, surface: Option<&[u8]>, [begin, end]: [usize; 2]) -> Result<(), Halt> {
        self.0.grow(piece.len() + surface.map_or(0, <[u8]>::len) + NUMBERS)?;
        let size = size_of_field(piece)
            + surface.map_or(0, size_of_field)
            + 3 // the tags of the three numbers
            + [id as usize, begin, end].map(size_of).iter().sum::<usize>();
        // A tag is the number of a field, shifted by 3, plus 2 if a length follows.
        self.0.push(2 << 3 | 2);
        self.number(size);
        self.field(1, piece);
        self.0.push(2 << 3);
        self.number(id as usize);
        if let Some(surface) = surface {
            self.field(3, surface);
        }
        self.0.push(4 << 3);
        self.number(begin);
        self.0.push(5 << 3);
        self.number(end);
        Ok(())
    }

    /// Append a field: its tag, its length and its content.
    fn field(&mut self, number: u8, bytes: &[u8]) {
        self.0.push(number << 3 | 2);
        self.number(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    /// Append a number: seven bits in each byte, the lowest first.
    #[inline]
    fn number(&mut self, mut number: usize) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }
}

/// How many bytes a number takes.
#[inline]
fn size_of(number: usize) -> usize {
    (usize::BITS - (number | 1).leading_zeros()).div_ceil(7) as usize
}

/// How many bytes a field of this content takes.
fn size_of_field(bytes: &[u8]) -> usize {
    1 + size_of(bytes.len()) + bytes.len()
}

// --- Messages of texts ---------------------------------------------------------------------------

/// `check` is called once for this many tokens.
const CHECK_TOKENS: usize = 1 << 14;

impl Engine {
    /// The message for a text. If a character is encoded as BYTE pieces, only the last of them has a surface. With
    /// `in_parallel`, the last one has none either if it would be empty, as in sentencepiece's `parallel_encode`.
    pub fn message(
        &self,
        input: Input,
        dropout: Option<Dropout>,
        in_parallel: bool,
        check: Check,
    ) -> Result<Vec<u8>, Halt> {
        let options = AlignOptions { characters: Some(false), dropout };
        let aligned = self.align(input, options, check)?;
        let (text, _) = input;
        let mut message = Message::new(text, aligned.ids.len())?;
        let mut unknown = aligned.unknown.iter().peekable();
        let mut left = 0; // how many BYTE pieces of the current character follow
        let (mut piece, mut checks) = (Vec::new(), Checks::new(check, CHECK_TOKENS));
        for (i, (&id, span)) in aligned.ids.iter().zip(&aligned.spans).enumerate() {
            checks.at(i)?;
            piece.clear();
            match unknown.next_if(|(at, _)| *at == i) {
                Some((_, text)) => {
                    piece.try_extend(text)?;
                }
                None => self.vocab.text_of(id, &mut piece),
            }
            let span = span.map(|at| at as usize);
            let mut surface = Some(text.get(span[0]..span[1]).unwrap_or_default());
            // (Any piece that is spelled like a BYTE piece counts as one, as in sentencepiece.)
            match byte_of(&piece) {
                None => left = 0,
                Some(byte) => {
                    // (One is subtracted in both cases.)
                    left = if left == 0 { utf8::length_by_first(byte) } else { left } - 1;
                    if span[0] == span[1] && (left > 0 || in_parallel) {
                        surface = None;
                    } else {
                        left = 0;
                    }
                }
            }
            message.add(&piece, id, surface, span)?;
        }
        Ok(message.0)
    }
}

impl Decoder {
    /// The message for a decoded text. `piece` appends the text of the piece with a given index.
    pub fn message(
        &self,
        decoded: DecodedSpans,
        piece: impl Fn(usize, &mut Vec<u8>) -> Result<(), Halt>,
        check: Check,
    ) -> Result<Vec<u8>, Halt> {
        // A denormalizer rewrites the text, but the places of the pieces remain those in the text before that.
        let rewritten = match self.denormalizer() {
            Some(_) => Some(self.denormalize(decoded.text.clone(), false, check)?),
            None => None,
        };
        let mut message = Message::new(rewritten.as_ref().unwrap_or(&decoded.text), decoded.ids.len())?;
        let (mut text, mut checks) = (Vec::new(), Checks::new(check, CHECK_TOKENS));
        for (i, (&id, span)) in decoded.ids.iter().zip(&decoded.spans).enumerate() {
            let span = span.map(|at| at as usize);
            checks.at(i)?;
            text.clear();
            piece(i, &mut text)?;
            message.add(&text, id, Some(&decoded.text[span[0]..span[1]]), span)?;
        }
        Ok(message.0)
    }

    /// The message for the text of ids.
    pub fn ids_message(&self, ids: &[u32], check: Check) -> Result<Vec<u8>, Error> {
        let piece = |i: usize, out: &mut Vec<u8>| {
            self.vocab.text_of(ids[i], out);
            Ok(())
        };
        Ok(self.message(self.decode_spans(ids, check)?, piece, check)?)
    }

    /// The message for the text of pieces.
    pub fn pieces_message(&self, pieces: &[&[u8]], check: Check) -> Result<Vec<u8>, Error> {
        let piece = |i: usize, out: &mut Vec<u8>| out.try_extend(pieces[i]);
        Ok(self.message(self.decode_pieces_spans(pieces, check)?, piece, check)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message() {
        let mut message = Message::new(b"a", 1).unwrap();
        message.add(b"a", 300, Some(b"a"), [0, 1]).unwrap();
        assert_eq!(message.0, b"\x0a\x01a\x12\x0d\x0a\x01a\x10\xac\x02\x1a\x01a\x20\x00\x28\x01");
    }

    #[test]
    fn sizes_of_numbers() {
        for number in (0..usize::BITS).flat_map(|bit| [1usize << bit, (1 << bit) - 1]) {
            let mut message = Message(Vec::new());
            message.number(number);
            assert_eq!(message.0.len(), size_of(number), "{number}");
        }
    }
}
