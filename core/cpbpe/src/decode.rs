//! Ids -> text. The same steps as `_join` in `cpbpe/reference/encoding.py`, which explains them.

use std::sync::Arc;

use crate::error::{Error, Halt};
use crate::lazy::Lazy;
use crate::memory::{with_room, Grow};
use crate::text::normalize::{Normalizer, NormalizerOptions, Source, Spaces};
use crate::text::utf8;
use crate::vocab::vocabulary::byte_of;
use crate::vocab::{piece_type, Vocab};
use crate::watch::{in_parts, Check};

/// How many bytes after the texts may be copied along with the last one.
const SLACK: usize = 16;
/// Fewer ids than this are not worth a thread.
const MIN_PART: usize = 1 << 16;
/// Whether to go on is checked once in this many ids.
const CHECK_IDS: usize = 1 << 16;

/// Turns the ids and pieces of one model into text.
pub struct Decoder {
    vocab: Arc<Vocab>,
    /// What each id is decoded to. Shared by the variants of a model.
    texts: Arc<Lazy<PieceTexts>>,
    /// Rewrites the decoded text.
    denormalizer: Option<Arc<Normalizer>>,
    beginning: Beginning,
}

impl Decoder {
    /// For a model whose normalizer has these options. `keep_space`: a space at the beginning stays.
    pub fn new(
        vocab: Arc<Vocab>,
        options: &NormalizerOptions,
        denormalizer: Option<Arc<Normalizer>>,
        keep_space: bool,
    ) -> Decoder {
        Decoder { vocab, texts: Arc::default(), denormalizer, beginning: Beginning::new(options, keep_space) }
    }

    /// The same for other options of the normalizer.
    pub fn variant(&self, options: &NormalizerOptions, keep_space: bool) -> Decoder {
        Decoder {
            vocab: self.vocab.clone(),
            texts: self.texts.clone(),
            denormalizer: self.denormalizer.clone(),
            beginning: Beginning::new(options, keep_space),
        }
    }

    /// The normalizer that rewrites what was decoded, if the model has one with rules.
    pub fn denormalizer(&self) -> Option<&Normalizer> {
        self.denormalizer.as_deref()
    }

    /// The text of ids.
    pub fn decode(&self, ids: &[u32], keep_invalid: bool, check: Check) -> Result<Vec<u8>, Error> {
        let texts = self.texts.get_or_make(|| PieceTexts::new(&self.vocab))?;
        let mut text = Vec::new();
        texts.decode(&self.vocab, ids, self.beginning, keep_invalid, check, &mut text)?;
        Ok(self.denormalize(text, keep_invalid, check)?)
    }

    /// The texts of many sequences of ids.
    pub fn decode_batch(&self, batch: &[Vec<u32>], threads: usize, check: Check) -> Result<Vec<Vec<u8>>, Error> {
        let decode_part = |part: &[Vec<u32>], check: Check| {
            let mut texts = with_room(part.len())?;
            let mut ids = 0;
            for sequence in part {
                texts.push(self.decode(sequence, false, check)?);
                ids += sequence.len() + 1;
                if ids > CHECK_IDS {
                    check()?;
                    ids = 0;
                }
            }
            Ok::<_, Error>(texts)
        };
        let total: usize = batch.iter().map(Vec::len).sum();
        if threads < 2 || total < MIN_PART {
            return decode_part(batch, check);
        }
        let parts: Vec<&[Vec<u32>]> = batch.chunks(batch.len().div_ceil(threads)).collect();
        let parts = in_parts(&parts, check, decode_part)?;
        let mut texts = with_room(batch.len())?;
        texts.extend(parts.into_iter().flatten());
        Ok(texts)
    }

    /// The text of pieces; an unknown one is copied.
    pub fn decode_pieces<'a>(&self, pieces: impl Iterator<Item = &'a [u8]>, check: Check) -> Result<Vec<u8>, Error> {
        let mut text = Vec::new();
        decode_pieces(&self.vocab, pieces, self.beginning, check, &mut text)?;
        Ok(self.denormalize(text, false, check)?)
    }

    fn denormalize(&self, text: Vec<u8>, keep_invalid: bool, check: Check) -> Result<Vec<u8>, Halt> {
        let Some(denormalizer) = &self.denormalizer else { return Ok(text) };
        let mut out = Vec::new();
        let source = Source { text: &text, valid: false, keep_invalid };
        denormalizer.normalize(source, Spaces::AsInModel, check, &mut out, &mut ())?;
        Ok(out)
    }
}

/// What each id is decoded to, ready to copy.
struct PieceTexts {
    /// The decoded pieces, one after the other, and `SLACK` bytes.
    blob: Vec<u8>,
    /// For each id which of them is its text.
    pieces: Vec<PieceText>,
}

/// What one id is decoded to.
#[derive(Clone, Copy)]
struct PieceText {
    /// Where its text begins in `blob`.
    begin: u32,
    /// How many bytes it has there.
    length: u16,
    /// How it is decoded.
    kind: TextKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum TextKind {
    /// Text that does not begin with a space.
    Plain,
    /// Text whose first space may be the dummy prefix.
    Spaced,
    /// Nothing.
    Control,
    /// One byte of a character.
    Byte,
    /// The UNKNOWN piece, whose text is the surface.
    Unknown,
    /// The same, with a name that begins with U+2581: it ends the beginning even if the surface is empty.
    UnknownSpaced,
}

/// How the beginning of a text is treated.
#[derive(Clone, Copy)]
struct Beginning {
    /// Drop a space in front: the model adds one, or removes those that are there.
    drops_space: bool,
    /// Drop the space of every piece until there is text.
    drops_all: bool,
}

impl Beginning {
    fn new(options: &NormalizerOptions, keep_space: bool) -> Beginning {
        Beginning {
            drops_space: !keep_space && (options.add_dummy_prefix || options.remove_extra_whitespaces),
            drops_all: options.remove_extra_whitespaces,
        }
    }
}

impl PieceTexts {
    /// Decode every piece once.
    fn new(vocab: &Vocab) -> Result<PieceTexts, Halt> {
        let mut blob: Vec<u8> = Vec::new();
        let mut pieces = with_room(vocab.len())?;
        let mut text = Vec::new();
        for id in 0..vocab.len() as u32 {
            let begin = blob.len() as u32;
            text.clear();
            vocab.text_of(id, &mut text);
            blob.grow(text.len().max(vocab.unk_surface.len()) + SLACK)?;
            let spaced = text.starts_with(utf8::SPACE);
            let kind = match vocab.kind(id) {
                piece_type::CONTROL => TextKind::Control,
                piece_type::UNKNOWN if spaced => TextKind::UnknownSpaced,
                piece_type::UNKNOWN => TextKind::Unknown,
                piece_type::BYTE => TextKind::Byte,
                _ if spaced => TextKind::Spaced,
                _ => TextKind::Plain,
            };
            match kind {
                TextKind::Control => {}
                TextKind::Byte => blob.push(byte_of(&text).unwrap_or_default()),
                TextKind::Unknown | TextKind::UnknownSpaced => blob.extend_from_slice(&vocab.unk_surface),
                TextKind::Plain | TextKind::Spaced => utf8::spaces_into(&text, &mut blob),
            }
            // A surface may be longer than any piece; what does not fit is looked up again.
            let length = u16::try_from(blob.len() - begin as usize).unwrap_or(u16::MAX);
            pieces.push(PieceText { begin, length, kind });
        }
        blob.resize(blob.len() + SLACK, 0);
        Ok(PieceTexts { blob, pieces })
    }

    /// Append the text of `ids` to `out`.
    fn decode(
        &self,
        vocab: &Vocab,
        ids: &[u32],
        beginning: Beginning,
        keep_invalid: bool,
        check: Check,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        debug_assert!(out.is_empty());
        let mut run = Vec::new();
        let mut at_beginning = true;
        let mut position = 0;
        let mut next_check = CHECK_IDS;
        out.grow(ids.len() * 5 + SLACK)?;
        while position < ids.len() {
            if position >= next_check {
                check()?;
                next_check = position + CHECK_IDS;
            }
            // 1. The usual case in the middle of a text.
            if !at_beginning && run.is_empty() {
                let stop = ids.len().min(next_check);
                position += self.copy_texts(&ids[position..stop], out)?;
                if position == stop {
                    continue;
                }
            }
            let piece = *self.pieces.get(ids[position] as usize).ok_or(Error::UnknownId(position))?;
            // 2. Bytes wait for the end of their run, and then make characters.
            if piece.kind == TextKind::Byte {
                run.grow(1)?;
                run.push(self.blob[piece.begin as usize]);
                position += 1;
                continue;
            }
            end_run(&mut run, keep_invalid, out)?;
            at_beginning = at_beginning && out.is_empty();
            position += 1;
            if piece.kind == TextKind::Control {
                continue;
            }
            // 3. A text, perhaps without its first space: that may be the dummy prefix.
            let spaced = matches!(piece.kind, TextKind::Spaced | TextKind::UnknownSpaced);
            let drop = at_beginning && beginning.drops_space && spaced;
            let begin = piece.begin as usize;
            let text = match piece.kind {
                TextKind::Unknown | TextKind::UnknownSpaced => &vocab.unk_surface[..],
                _ => &self.blob[begin + usize::from(drop)..begin + usize::from(piece.length)],
            };
            out.grow(text.len())?;
            out.extend_from_slice(text);
            if drop && !beginning.drops_all {
                at_beginning = false;
            }
            at_beginning = at_beginning && out.is_empty();
        }
        Ok(end_run(&mut run, keep_invalid, out)?)
    }

    /// Append texts up to the first id that is anything else. Returns how many there were.
    #[inline(never)]
    fn copy_texts(&self, ids: &[u32], out: &mut Vec<u8>) -> Result<usize, Halt> {
        for (count, &id) in ids.iter().enumerate() {
            let Some(piece) = self.pieces.get(id as usize) else { return Ok(count) };
            if !matches!(piece.kind, TextKind::Plain | TextKind::Spaced) {
                return Ok(count);
            }
            let (begin, length) = (piece.begin as usize, usize::from(piece.length));
            match self.blob.get(begin..begin + SLACK) {
                Some(bytes) if length <= SLACK => {
                    let end = out.len();
                    if out.capacity() - end < SLACK {
                        out.grow(out.capacity() + SLACK)?;
                    }
                    // SAFETY: there is room for SLACK bytes, of which `length` are the text. Copying a few too many
                    // takes one step, and saves a call.
                    unsafe {
                        std::ptr::copy_nonoverlapping(bytes.as_ptr(), out.as_mut_ptr().add(end), SLACK);
                        out.set_len(end + length);
                    }
                }
                _ => {
                    out.grow(length)?;
                    out.extend_from_slice(&self.blob[begin..begin + length]);
                }
            }
        }
        Ok(ids.len())
    }
}

fn end_run(run: &mut Vec<u8>, keep_invalid: bool, out: &mut Vec<u8>) -> Result<(), Halt> {
    if run.is_empty() {
        return Ok(());
    }
    if keep_invalid {
        out.grow(run.len())?;
        out.extend_from_slice(run);
    } else {
        utf8::repair_into(run, out)?;
    }
    run.clear();
    Ok(())
}

/// The text of pieces; an unknown one is copied.
fn decode_pieces<'a>(
    vocab: &Vocab,
    pieces: impl Iterator<Item = &'a [u8]>,
    beginning: Beginning,
    check: Check,
    out: &mut Vec<u8>,
) -> Result<(), Halt> {
    let mut run = Vec::new();
    let mut at_beginning = true;
    for (position, piece) in pieces.enumerate() {
        if position % CHECK_IDS == CHECK_IDS - 1 {
            check()?;
        }
        let id = if piece == b"\0" { None } else { vocab.id_of(piece) };
        let kind = id.map_or(piece_type::UNKNOWN, |id| vocab.kind(id));
        if kind == piece_type::BYTE {
            run.grow(1)?;
            run.push(byte_of(piece).unwrap_or_default());
            continue;
        }
        end_run(&mut run, false, out)?;
        at_beginning = at_beginning && out.is_empty();
        if kind == piece_type::CONTROL {
            continue;
        }
        let drop = at_beginning && beginning.drops_space && piece.starts_with(utf8::SPACE);
        out.grow(piece.len().max(vocab.unk_surface.len()))?;
        if kind != piece_type::UNKNOWN {
            utf8::spaces_into(&piece[if drop { utf8::SPACE.len() } else { 0 }..], out);
        } else if id.is_some() {
            out.extend_from_slice(&vocab.unk_surface);
        } else {
            out.extend_from_slice(piece);
        }
        if drop && !beginning.drops_all {
            at_beginning = false;
        }
    }
    end_run(&mut run, false, out)
}
