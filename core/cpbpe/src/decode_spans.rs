//! Ids or pieces -> text, with the part of the text that each stands for. The same steps as `of_decoded` in
//! `cpbpe/compat/sentencepiece/results.py`; and those of `decode.rs`, which does not say where anything is.

use crate::decode::{Decoder, TextKind, NO_ID};
use crate::error::{Error, Halt};
use crate::memory::{with_room, Grow};
use crate::message::{Message, MessagePiece};
use crate::text::compact::swap_spaces;
use crate::text::utf8::{self, REPLACEMENT};
use crate::watch::Check;

/// Longer texts are no pieces: sentencepiece refuses a model with one.
const MAX_PIECE: usize = 8000;
/// Whether to go on is checked once in this many tokens.
const CHECK_TOKENS: usize = 1 << 14;

/// A decoded text, before a denormalizer rewrites it, and where its pieces are.
#[derive(Default)]
pub struct DecodedSpans {
    /// The text.
    pub text: Vec<u8>,
    /// The id of each piece; if the vocabulary does not have it, that of the UNKNOWN piece, or `NO_ID`.
    pub ids: Vec<u32>,
    /// Where the part of the text that it stands for begins and ends, in bytes; after `count_characters` in characters.
    pub spans: Vec<[i64; 2]>,
}

impl DecodedSpans {
    /// Append a piece that stands for these bytes.
    fn add(&mut self, id: u32, surface: &[u8]) -> Result<(), Halt> {
        self.text.grow(surface.len())?;
        self.ids.grow(1)?;
        self.spans.grow(1)?;
        let begin = self.text.len();
        self.text.extend_from_slice(surface);
        self.ids.push(id);
        self.spans.push([begin as i64, self.text.len() as i64]);
        Ok(())
    }

    /// Append BYTE pieces that wait for the end of their run. The last byte of a character stands for all of it, and a
    /// byte that belongs to no character for U+FFFD.
    fn end_run(&mut self, run: &mut Run) -> Result<(), Halt> {
        let mut at = 0;
        while at < run.bytes.len() {
            let length = utf8::valid_length(&run.bytes, at);
            for &id in &run.ids[at..at + length.max(1) - 1] {
                self.add(id, b"")?;
            }
            let end = at + length.max(1);
            self.add(run.ids[end - 1], if length == 0 { REPLACEMENT } else { &run.bytes[at..end] })?;
            at = end;
        }
        run.bytes.clear();
        run.ids.clear();
        Ok(())
    }

    /// Count characters instead of bytes; false if the text is not UTF-8, or a piece ends inside a character.
    pub fn count_characters(&mut self) -> bool {
        if self.text.is_ascii() {
            return true;
        }
        if std::str::from_utf8(&self.text).is_err() {
            return false;
        }
        let mut characters = 0;
        for span in &mut self.spans {
            let part = &self.text[span[0] as usize..span[1] as usize];
            if part.first().is_some_and(|&byte| byte & 0xC0 == 0x80) {
                return false;
            }
            let begin = characters;
            characters += utf8::count(part) as i64;
            *span = [begin, characters];
        }
        true
    }
}

/// BYTE pieces that wait for the end of their run.
#[derive(Default)]
struct Run {
    ids: Vec<u32>,
    bytes: Vec<u8>,
}

impl Run {
    fn add(&mut self, id: u32, byte: u8) -> Result<(), Halt> {
        self.ids.grow(1)?;
        self.bytes.grow(1)?;
        self.ids.push(id);
        self.bytes.push(byte);
        Ok(())
    }
}

impl Decoder {
    /// The text of ids, and where each is.
    pub fn decode_spans(&self, ids: &[u32], check: Check) -> Result<DecodedSpans, Error> {
        let vocab = self.vocab();
        if let Some(position) = ids.iter().position(|&id| id as usize >= vocab.len()) {
            return Err(Error::UnknownId(position));
        }
        // (A piece of one NUL is never found by its text, by which sentencepiece looks for it.)
        let is_nul = |id: u32| vocab.byte_level.is_none() && vocab.pieces.text(id) == b"\0";
        let tokens = ids.iter().map(|&id| if is_nul(id) { (None, &b"\0"[..]) } else { (Some(id), &b""[..]) });
        Ok(self.spans(tokens, check)?)
    }

    /// The same for pieces; an unknown one is copied.
    pub fn decode_pieces_spans(&self, pieces: &[&[u8]], check: Check) -> Result<DecodedSpans, Halt> {
        let vocab = self.vocab();
        let mut compact = Vec::new();
        let tokens = pieces.iter().map(|&piece| {
            compact.clear();
            if piece == b"\0" && vocab.byte_level.is_none() || piece.len() > MAX_PIECE {
                return (None, piece);
            }
            let text = if vocab.swapped {
                swap_spaces(piece, &mut compact);
                &compact
            } else {
                piece
            };
            (vocab.find(text), piece)
        });
        self.spans(tokens, check)
    }

    /// The text of tokens: ids, or text that is no piece.
    fn spans<'a>(
        &self,
        tokens: impl ExactSizeIterator<Item = (Option<u32>, &'a [u8])>,
        check: Check,
    ) -> Result<DecodedSpans, Halt> {
        let texts = self.texts()?;
        let vocab = self.vocab();
        let count = tokens.len();
        let mut decoded = DecodedSpans { text: Vec::new(), ids: with_room(count)?, spans: with_room(count)? };
        decoded.text.grow(count * 5)?;
        let mut run = Run::default();
        let (mut at_beginning, mut dropped) = (true, false);
        for (position, (id, unknown)) in tokens.enumerate() {
            if position % CHECK_TOKENS == CHECK_TOKENS - 1 {
                check()?;
            }
            let known = id.and_then(|id| texts.get(id).map(|(kind, text)| (id, kind, text)));
            if let Some((id, TextKind::Byte, byte)) = known {
                run.add(id, byte[0])?;
                continue;
            }
            if !run.ids.is_empty() {
                decoded.end_run(&mut run)?;
            }
            at_beginning = at_beginning && !dropped && decoded.text.is_empty();
            dropped = false;
            match known {
                None => decoded.add(vocab.unk.unwrap_or(NO_ID), unknown)?,
                Some((id, TextKind::Unknown | TextKind::UnknownSpaced, _)) => decoded.add(id, &vocab.unk_surface)?,
                Some((id, TextKind::Spaced, text)) if at_beginning && self.drops_space() => {
                    dropped = !self.drops_all();
                    decoded.add(id, &text[1..])?;
                }
                Some((id, _, text)) => decoded.add(id, text)?,
            }
        }
        decoded.end_run(&mut run)?;
        Ok(decoded)
    }

    /// The message for a decoded text; `piece` appends the text of a piece.
    pub fn message(
        &self,
        decoded: DecodedSpans,
        piece: impl Fn(usize, &mut Vec<u8>) -> Result<(), Halt>,
        check: Check,
    ) -> Result<Vec<u8>, Halt> {
        // A denormalizer rewrites the text, but the pieces stay where they were in the text before.
        let rewritten = match self.denormalizer() {
            Some(_) => Some(self.denormalize(decoded.text.clone(), false, check)?),
            None => None,
        };
        let mut message = Message::new(rewritten.as_ref().unwrap_or(&decoded.text), decoded.ids.len())?;
        let mut text = Vec::new();
        for (i, (&id, span)) in decoded.ids.iter().zip(&decoded.spans).enumerate() {
            let span = span.map(|at| at as usize);
            if i % CHECK_TOKENS == CHECK_TOKENS - 1 {
                check()?;
            }
            text.clear();
            piece(i, &mut text)?;
            message.add(MessagePiece { piece: &text, id, surface: Some(&decoded.text[span[0]..span[1]]), span })?;
        }
        Ok(message.finish())
    }

    /// The message for the text of ids.
    pub fn ids_message(&self, ids: &[u32], check: Check) -> Result<Vec<u8>, Error> {
        let vocab = self.vocab();
        let piece = |i: usize, out: &mut Vec<u8>| {
            vocab.text_of(ids[i], out);
            Ok(())
        };
        Ok(self.message(self.decode_spans(ids, check)?, piece, check)?)
    }

    /// The message for the text of pieces.
    pub fn pieces_message(&self, pieces: &[&[u8]], check: Check) -> Result<Vec<u8>, Error> {
        let piece = |i: usize, out: &mut Vec<u8>| {
            out.grow(pieces[i].len())?;
            out.extend_from_slice(pieces[i]);
            Ok(())
        };
        Ok(self.message(self.decode_pieces_spans(pieces, check)?, piece, check)?)
    }
}
