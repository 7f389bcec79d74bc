//! Symbols -> ids, including the ids of symbols that are not pieces.

use crate::error::Halt;
use crate::memory::Grow;
use crate::merge::Sink;
use crate::text::utf8;
use crate::vocab::{Vocab, NONE};

/// Appends the ids of symbols. An unknown one becomes its bytes, or the UNKNOWN piece.
pub struct IdSink<'a> {
    /// The vocabulary.
    pub vocab: &'a Vocab,
    /// The text that the symbols are in.
    pub text: &'a [u8],
    /// Whether it is compact.
    pub compact: bool,
    /// Where they go.
    pub out: &'a mut Vec<u32>,
}

impl Sink for IdSink<'_> {
    #[inline]
    fn make_room(&mut self, bytes: usize) -> Result<(), Halt> {
        self.out.grow(bytes.saturating_mul(self.vocab.ids_per_byte))
    }
    #[inline]
    fn symbol(&mut self, id: u32, begin: usize, end: usize) {
        if id != NONE && Some(id) != self.vocab.unk {
            self.out.push(id);
        } else if let Some(byte_ids) = &self.vocab.byte_ids {
            for &byte in &self.text[begin..end] {
                if byte == b' ' && self.compact && self.vocab.swapped {
                    self.out.extend(utf8::SPACE.iter().map(|&byte| byte_ids[usize::from(byte)]));
                } else {
                    self.out.push(byte_ids[usize::from(byte)]);
                }
            }
        } else if let Some(unk) = self.vocab.unk {
            if self.out.last() != Some(&unk) {
                self.out.push(unk); // unknown symbols side by side are one
            }
        }
    }
}
