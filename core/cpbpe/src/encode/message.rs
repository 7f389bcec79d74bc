//! A text as a message with its tokens; see `message.rs` of the crate.

use crate::encode::align::AlignOptions;
use crate::encode::engine::{Engine, Input};
use crate::error::Halt;
use crate::memory::Grow;
use crate::merge::Dropout;
use crate::message::{Message, MessagePiece};
use crate::text::utf8;
use crate::vocab::vocabulary::byte_of;
use crate::watch::Check;

/// Whether to go on is checked once in this many tokens.
const CHECK_TOKENS: usize = 1 << 14;

impl Engine {
    /// The message for a text. Of the bytes of a character without a piece only the last has a surface; with
    /// `in_parallel` none that is empty has.
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
        let mut piece = Vec::new();
        for (i, (&id, span)) in aligned.ids.iter().zip(&aligned.spans).enumerate() {
            if i % CHECK_TOKENS == CHECK_TOKENS - 1 {
                check()?;
            }
            piece.clear();
            match unknown.next_if(|(at, _)| *at == i) {
                Some((_, text)) => {
                    piece.grow(text.len())?;
                    piece.extend_from_slice(text);
                }
                None => self.vocab.text_of(id, &mut piece),
            }
            let span = span.map(|at| at as usize);
            let mut surface = Some(text.get(span[0]..span[1]).unwrap_or_default());
            // (Anything spelled like the piece of a byte counts as one, as in sentencepiece.)
            match byte_of(&piece) {
                None => left = 0,
                Some(byte) => {
                    left = if left == 0 { utf8::length_by_first(byte) } else { left } - 1;
                    if span[0] == span[1] && (left > 0 || in_parallel) {
                        surface = None;
                    } else {
                        left = 0;
                    }
                }
            }
            message.add(MessagePiece { piece: &piece, id, surface, span })?;
        }
        Ok(message.finish())
    }
}
