//! Tokens as a SentencePieceText, protobuf's message for a text with its pieces, byte by byte as sentencepiece writes
//! it.
//!
//! `Analysis.serialized` in `cpbpe/compat/sentencepiece/results.py` does the same in Python.

use crate::error::Halt;
use crate::memory::{with_room, Grow};

/// The most bytes that the numbers and lengths of one piece take: seven of them, with the byte that names each.
const NUMBERS: usize = 7 * 11;
/// About how many bytes a piece takes.
const PER_PIECE: usize = 24;

/// A message that is being written.
pub struct Message(Vec<u8>);

/// One piece in a message.
pub struct MessagePiece<'a> {
    /// Its text.
    pub piece: &'a [u8],
    /// Its id; `u32::MAX` stands for -1.
    pub id: u32,
    /// The part of the text that it stands for, if the message says that.
    pub surface: Option<&'a [u8]>,
    /// Where this part begins and ends.
    pub span: [usize; 2],
}

impl Message {
    /// For a text of about this many pieces.
    pub fn new(text: &[u8], pieces: usize) -> Result<Message, Halt> {
        let mut message = Message(with_room(text.len() * 3 + pieces * PER_PIECE + NUMBERS)?);
        message.field(1, text);
        Ok(message)
    }

    /// Append a piece.
    pub fn add(&mut self, MessagePiece { piece, id, surface, span: [begin, end] }: MessagePiece) -> Result<(), Halt> {
        self.0.grow(piece.len() + surface.map_or(0, <[u8]>::len) + NUMBERS)?;
        let size = size_of_field(piece)
            + surface.map_or(0, size_of_field)
            + 3
            + [id as usize, begin, end].map(size_of).iter().sum::<usize>();
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

    /// The message.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }

    fn field(&mut self, number: u8, bytes: &[u8]) {
        self.0.push(number << 3 | 2);
        self.number(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    /// A number, seven bits in each byte, the lowest first.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message() {
        let mut message = Message::new(b"a", 1).unwrap();
        message.add(MessagePiece { piece: b"a", id: 300, surface: Some(b"a"), span: [0, 1] }).unwrap();
        assert_eq!(message.finish(), b"\x0a\x01a\x12\x0d\x0a\x01a\x10\xac\x02\x1a\x01a\x20\x00\x28\x01");
    }

    #[test]
    fn sizes_of_numbers() {
        for number in (0..64).flat_map(|bit| [1usize << bit, (1 << bit) - 1]) {
            let mut message = Message(Vec::new());
            message.number(number);
            assert_eq!(message.0.len(), size_of(number), "{number}");
        }
    }
}
