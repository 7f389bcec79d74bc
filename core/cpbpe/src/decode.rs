//! Ids -> text. The same steps as `_join` in `cpbpe/reference/encoding.py`, which explains them.

use std::sync::Arc;

use crate::error::{Error, Halt};
use crate::lazy::{Lazy, Made};
use crate::memory::{copied, with_room, Grow};
use crate::text::normalize::{Normalizer, NormalizerOptions, Source, Spaces};
use crate::text::utf8::{self, swap_spaces, REPLACEMENT};
use crate::vocab::vocabulary::byte_of;
use crate::vocab::{piece_type, Vocab};
use crate::watch::{in_parts, Check, Checks};

/// Stands for a piece that the vocabulary does not have: no piece has this id.
pub const NO_ID: u32 = u32::MAX;
/// A copy of a short text writes this many bytes, even if the text has fewer.
const SLACK: usize = 16;
/// Room is made for this many short texts at once.
const GROUP: usize = 64;
/// Fewer ids than this are not worth a thread.
const MIN_PART: usize = 1 << 16;
/// Whether to go on is checked once in this many ids.
const CHECK_IDS: usize = 1 << 16;

/// Turns the ids and pieces of one model into text.
#[derive(Clone)]
pub struct Decoder {
    /// The pieces.
    pub(crate) vocab: Arc<Vocab>,
    /// What each id is decoded to. Variants of a model share it.
    texts: Arc<Lazy<PieceTexts>>,
    /// Rewrites the decoded text.
    denormalizer: Option<Arc<Normalizer>>,
    beginning: Beginning,
}

impl Decoder {
    /// A decoder for a model whose normalizer has these options. `keep_space`: a space at the beginning of the text
    /// stays.
    pub fn new(
        vocab: Arc<Vocab>,
        options: &NormalizerOptions,
        denormalizer: Option<Arc<Normalizer>>,
        keep_space: bool,
    ) -> Decoder {
        let beginning = Beginning::new(options, keep_space || vocab.byte_level.is_some());
        Decoder { vocab, texts: Arc::default(), denormalizer, beginning }
    }

    /// The same for other options of the normalizer.
    pub fn variant(&self, options: &NormalizerOptions, keep_space: bool) -> Decoder {
        Decoder { beginning: Beginning::new(options, keep_space || self.vocab.byte_level.is_some()), ..self.clone() }
    }

    /// The normalizer that rewrites what was decoded, if the model has one with rules.
    pub fn denormalizer(&self) -> Option<&Normalizer> {
        self.denormalizer.as_deref()
    }

    /// The text of ids.
    pub fn decode(&self, ids: &[u32], keep_invalid: bool, check: Check) -> Result<Vec<u8>, Error> {
        self.decode_with(ids, |position| Err(Error::UnknownId(position)), keep_invalid, check)
    }

    /// The texts of many sequences of ids, one after the other; `ends` says where each sequence ends. If there are
    /// several threads, each decodes some of the sequences.
    pub fn decode_batch(
        &self,
        ids: &[u32],
        ends: &[usize],
        threads: usize,
        check: Check,
    ) -> Result<Vec<DecodedTexts>, Error> {
        let decode_part = |(first, part): (usize, &[usize]), check: Check| {
            let table = self.texts()?;
            let mut texts = DecodedTexts { blob: Vec::new(), ends: with_room(part.len())? };
            let (mut begin, mut checks) = (first, Checks::new(check, CHECK_IDS));
            for &end in part {
                let (before, other) = (texts.blob.len(), |position| Err(Error::UnknownId(position)));
                self.append(&table, &ids[begin..end], other, false, check, &mut texts.blob)?;
                if self.denormalizer.is_some() {
                    // It rewrites each text by itself.
                    let text = self.denormalize(copied(&texts.blob[before..])?, false, check)?;
                    texts.blob.truncate(before);
                    texts.blob.try_extend(&text)?;
                }
                texts.ends.push(texts.blob.len());
                begin = end;
                checks.at(begin - first)?;
            }
            Ok::<_, Error>(texts)
        };
        if threads < 2 || ids.len() < MIN_PART {
            return Ok(vec![decode_part((0, ends), check)?]);
        }
        let size = ends.len().div_ceil(threads);
        let first = |part: usize| if part == 0 { 0 } else { ends[part * size - 1] };
        let parts: Vec<(usize, &[usize])> =
            ends.chunks(size).enumerate().map(|(number, part)| (first(number), part)).collect();
        in_parts(&parts, check, decode_part)
    }

    /// The text of pieces, given by their ids. An id outside the vocabulary, such as `NO_ID`, stands for a piece that the
    /// vocabulary does not have: the next one of `others`, which is copied.
    pub fn decode_pieces<'a>(
        &self,
        ids: &[u32],
        mut others: impl Iterator<Item = &'a [u8]>,
        check: Check,
    ) -> Result<Vec<u8>, Error> {
        self.decode_with(ids, |position| others.next().ok_or(Error::UnknownId(position)), false, check)
    }

    /// The text of ids. For an id outside the vocabulary, `other` is called with its position, and returns the text or
    /// an error.
    fn decode_with<'a>(
        &self,
        ids: &[u32],
        other: impl FnMut(usize) -> Result<&'a [u8], Error>,
        keep_invalid: bool,
        check: Check,
    ) -> Result<Vec<u8>, Error> {
        let mut text = Vec::new();
        self.append(&*self.texts()?, ids, other, keep_invalid, check, &mut text)?;
        Ok(self.denormalize(text, keep_invalid, check)?)
    }

    /// The same, appended to `out`, without a denormalizer.
    fn append<'a>(
        &self,
        texts: &PieceTexts,
        ids: &[u32],
        mut other: impl FnMut(usize) -> Result<&'a [u8], Error>,
        keep_invalid: bool,
        check: Check,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        // Reserve a little more room than most texts need: moving a short text takes as long as decoding ten ids.
        out.grow(ids.len() * 5 + ids.len().min(GROUP) * SLACK)?;
        let begin = out.len();
        let mut text = Text { decoder: self, keep_invalid, run: Vec::new(), at_beginning: true, out, begin };
        let mut position = 0;
        let mut next_check = CHECK_IDS;
        while position < ids.len() {
            if position >= next_check {
                check()?;
                next_check = position + CHECK_IDS;
            }
            // In the middle of a text this is the usual case.
            if text.is_plain() {
                let stop = ids.len().min(next_check);
                position += texts.copy_texts(&ids[position..stop], text.out)?;
                if position == stop {
                    continue;
                }
            }
            match texts.get(ids[position]) {
                Some((kind, piece)) => text.add(kind, piece)?,
                None => text.add_unknown(other(position)?)?,
            }
            position += 1;
        }
        text.end_run()?;
        if self.vocab.byte_level.is_some() && !keep_invalid {
            utf8::repair_like_python(out, begin)?;
        }
        Ok(())
    }

    /// What each id is decoded to.
    fn texts(&self) -> Result<Made<'_, PieceTexts>, Halt> {
        self.texts.get_or_make(|| PieceTexts::new(&self.vocab))
    }

    pub(crate) fn denormalize(&self, text: Vec<u8>, keep_invalid: bool, check: Check) -> Result<Vec<u8>, Halt> {
        let Some(denormalizer) = &self.denormalizer else { return Ok(text) };
        let mut out = Vec::new();
        let source = Source { text: &text, valid: false, keep_invalid };
        denormalizer.normalize(source, Spaces::AsInModel, check, &mut out, &mut ())?;
        Ok(out)
    }
}

/// The texts of some sequences of ids.
pub struct DecodedTexts {
    /// One after the other.
    blob: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl DecodedTexts {
    /// Each text.
    pub fn texts(&self) -> impl Iterator<Item = &[u8]> {
        let begins = std::iter::once(&0).chain(&self.ends);
        begins.zip(&self.ends).map(|(&begin, &end)| &self.blob[begin..end])
    }
}

/// What each id is decoded to, ready to copy.
struct PieceTexts {
    /// For each id, its text or where it is.
    pieces: Vec<PieceText>,
    /// The long texts, one after the other.
    long: Vec<u8>,
}

/// What one id is decoded to: a record of `SLACK` bytes, so that a short text is found and copied in one step.
#[derive(Clone, Copy)]
#[repr(C)]
struct PieceText {
    /// A short text; or where a long one begins in `long`, and how many bytes it has.
    bytes: [u8; SLACK - 1],
    /// The length of a short text, the kind, and a bit for a long one.
    tag: u8,
}

/// The bits of a tag.
const LENGTH: u8 = 0x0F;
const KIND: u32 = 4;
const LONG: u8 = 0x80;

#[derive(Clone, Copy, PartialEq, Eq)]
enum TextKind {
    /// Text that always stays whole. An ASCII character is one, even if it is a BYTE piece: no byte can be part of the
    /// same character.
    Plain,
    /// Text whose first space may be the dummy prefix.
    Spaced,
    /// Nothing.
    Control,
    /// One byte of a character.
    Byte,
    /// The UNKNOWN piece, whose text is the surface.
    Unknown,
    /// The same, but the name of the piece begins with U+2581, which counts as a dropped space, although the surface
    /// does not have it.
    UnknownSpaced,
}

impl TextKind {
    const ALL: [TextKind; 6] = [
        TextKind::Plain,
        TextKind::Spaced,
        TextKind::Control,
        TextKind::Byte,
        TextKind::Unknown,
        TextKind::UnknownSpaced,
    ];
}

/// How the beginning of a text is treated.
#[derive(Clone, Copy)]
struct Beginning {
    /// Drop a space in front: the model adds one, or removes those that are there. (Byte-level models keep what their
    /// pieces have, as tokenizers does.)
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
        let mut texts = PieceTexts { pieces: with_room(vocab.len())?, long: Vec::new() };
        let (mut name, mut text) = (Vec::new(), Vec::new());
        for id in 0..vocab.len() as u32 {
            name.clear();
            text.clear();
            vocab.text_of(id, &mut name);
            text.grow(name.len())?;
            let spaced = vocab.byte_level.is_none() && name.starts_with(utf8::SPACE);
            let kind = match vocab.kind(id) {
                piece_type::CONTROL => TextKind::Control,
                piece_type::UNKNOWN if spaced => TextKind::UnknownSpaced,
                piece_type::UNKNOWN => TextKind::Unknown,
                piece_type::BYTE => {
                    text.push(byte_of(&name).unwrap_or_default());
                    if text.is_ascii() {
                        TextKind::Plain
                    } else {
                        TextKind::Byte
                    }
                }
                _ => {
                    match vocab.byte_level {
                        Some(_) => text.extend_from_slice(&name),
                        None => utf8::spaces_into(&name, &mut text),
                    }
                    if spaced {
                        TextKind::Spaced
                    } else {
                        TextKind::Plain
                    }
                }
            };
            let surface = matches!(kind, TextKind::Unknown | TextKind::UnknownSpaced);
            texts.add(kind, if surface { &vocab.unk_surface } else { &text })?;
        }
        Ok(texts)
    }

    /// Append the text of the next id.
    fn add(&mut self, kind: TextKind, text: &[u8]) -> Result<(), Halt> {
        let mut piece = PieceText { bytes: [0; SLACK - 1], tag: (kind as u8) << KIND };
        match piece.bytes.get_mut(..text.len()) {
            Some(place) => {
                place.copy_from_slice(text);
                piece.tag |= text.len() as u8;
            }
            None => {
                piece.tag |= LONG;
                for (place, number) in piece.bytes.chunks_exact_mut(4).zip([self.long.len(), text.len()]) {
                    place.copy_from_slice(&(number as u32).to_le_bytes());
                }
                self.long.try_extend(text)?;
            }
        }
        self.pieces.push(piece);
        Ok(())
    }

    /// How an id is decoded, and its text.
    #[inline]
    fn get(&self, id: u32) -> Option<(TextKind, &[u8])> {
        let piece = self.pieces.get(id as usize)?;
        let kind = TextKind::ALL[usize::from((piece.tag & !LONG) >> KIND)];
        if piece.tag & LONG == 0 {
            return Some((kind, &piece.bytes[..usize::from(piece.tag & LENGTH)]));
        }
        let number = |at: usize| piece.bytes[at..].first_chunk().map_or(0, |&bytes| u32::from_le_bytes(bytes) as usize);
        Some((kind, &self.long[number(0)..][..number(4)]))
    }

    /// Append plain texts, up to the first id that is decoded in any other way. Returns how many there were.
    #[inline(never)]
    fn copy_texts(&self, ids: &[u32], out: &mut Vec<u8>) -> Result<usize, Halt> {
        let mut count = 0;
        while count < ids.len() {
            // 1. Short texts. There is room for a group of them, so that nothing need be asked about each.
            let stop = ids.len().min(count + GROUP);
            out.grow((stop - count) * SLACK)?;
            let mut end = out.len();
            for &id in &ids[count..stop] {
                let Some(piece) = self.pieces.get(id as usize) else { break };
                if piece.tag > (TextKind::Spaced as u8) << KIND | LENGTH {
                    break;
                }
                // SAFETY: a record has SLACK bytes, for each id of the group there was room for as many, and no text is
                // longer. Copying a few bytes too many takes one step, and saves a call.
                unsafe {
                    let to = out.as_mut_ptr().add(end);
                    std::ptr::copy_nonoverlapping(std::ptr::from_ref(piece).cast(), to, SLACK);
                }
                end += usize::from(piece.tag & LENGTH);
                count += 1;
            }
            // SAFETY: all bytes up to here have been written.
            unsafe { out.set_len(end) };
            if count == stop {
                continue;
            }
            // 2. A long one, or the end.
            match self.get(ids[count]) {
                Some((TextKind::Plain | TextKind::Spaced, text)) => out.try_extend(text)?,
                _ => return Ok(count),
            }
            count += 1;
        }
        Ok(count)
    }
}

/// A text that is being decoded.
struct Text<'a> {
    decoder: &'a Decoder,
    /// Whether bytes that form no character stay.
    keep_invalid: bool,
    /// The bytes of a run of BYTE pieces that has not ended.
    run: Vec<u8>,
    /// Whether nothing that counts has been decoded yet.
    at_beginning: bool,
    /// Where the text is appended, and where it begins there.
    out: &'a mut Vec<u8>,
    begin: usize,
}

impl Text<'_> {
    /// Whether a plain text can be appended as it is.
    #[inline]
    fn is_plain(&self) -> bool {
        !self.at_beginning && self.run.is_empty()
    }

    fn still_at_beginning(&self) -> bool {
        self.at_beginning && self.out.len() == self.begin
    }

    /// Append a piece.
    #[inline]
    fn add(&mut self, kind: TextKind, text: &[u8]) -> Result<(), Halt> {
        // 1. Bytes wait for the end of their run, and then make characters.
        if kind == TextKind::Byte {
            return self.run.try_extend(text);
        }
        self.end_run()?;
        self.at_beginning = self.still_at_beginning();
        if kind == TextKind::Control {
            return Ok(());
        }
        // 2. A text, perhaps without its first space: that may be the dummy prefix.
        let drop = self.drops(matches!(kind, TextKind::Spaced | TextKind::UnknownSpaced));
        self.append(&text[usize::from(drop && kind == TextKind::Spaced)..], drop)
    }

    /// Append a piece that the vocabulary does not have.
    fn add_unknown(&mut self, piece: &[u8]) -> Result<(), Halt> {
        self.end_run()?;
        self.at_beginning = self.still_at_beginning();
        let drop = self.drops(piece.starts_with(utf8::SPACE));
        self.append(piece, drop)
    }

    /// Whether the first space of a text is dropped.
    fn drops(&self, spaced: bool) -> bool {
        self.at_beginning && self.decoder.beginning.drops_space && spaced
    }

    #[inline]
    fn append(&mut self, text: &[u8], dropped: bool) -> Result<(), Halt> {
        self.out.try_extend(text)?;
        self.at_beginning = (!dropped || self.decoder.beginning.drops_all) && self.still_at_beginning();
        Ok(())
    }

    #[inline]
    fn end_run(&mut self) -> Result<(), Halt> {
        if self.run.is_empty() {
            return Ok(());
        }
        if self.keep_invalid {
            self.out.try_extend(&self.run)?;
        } else {
            utf8::repair_into(&self.run, self.out)?;
        }
        self.run.clear();
        Ok(())
    }
}

// --- With spans ----------------------------------------------------------------------------------
//
// Ids or pieces -> text, with the part of the text that each stands for. These are the same steps as those of
// `of_decoded` in `cpbpe/compat/sentencepiece/results.py`, and those of the decoder above, which does not record
// places.

/// A longer text cannot be a piece, because sentencepiece refuses a model with one.
const MAX_PIECE: usize = 8000;
/// Whether to go on is checked once in this many tokens.
const CHECK_TOKENS: usize = 1 << 14;

/// A decoded text before a denormalizer rewrites it, and where its pieces are.
#[derive(Default)]
pub struct DecodedSpans {
    /// The text.
    pub text: Vec<u8>,
    /// The id of each piece. If the vocabulary does not have the piece, this is the id of the UNKNOWN piece, or
    /// `NO_ID`.
    pub ids: Vec<u32>,
    /// Where the part of the text that each piece stands for begins and ends: in bytes or, after `count_characters`, in
    /// characters.
    pub spans: Vec<[i64; 2]>,
}

impl DecodedSpans {
    /// Append a piece that stands for these bytes.
    fn add(&mut self, id: u32, surface: &[u8]) -> Result<(), Halt> {
        let begin = self.text.len();
        self.text.try_extend(surface)?;
        self.ids.try_push(id)?;
        self.spans.try_push([begin as i64, self.text.len() as i64])
    }

    /// Append the BYTE pieces that wait for the end of their run. The last byte of a character stands for all of it,
    /// and a byte that belongs to no character stands for U+FFFD.
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

    /// Turn places in bytes into places in characters. Returns false if the text is not UTF-8, or if a piece ends
    /// inside a character.
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
        self.ids.try_push(id)?;
        self.bytes.try_push(byte)
    }
}

impl Decoder {
    /// The text of ids, with the part of it that each id stands for.
    pub fn decode_spans(&self, ids: &[u32], check: Check) -> Result<DecodedSpans, Error> {
        let vocab = &self.vocab;
        if let Some(position) = ids.iter().position(|&id| id as usize >= vocab.len()) {
            return Err(Error::UnknownId(position));
        }
        // (sentencepiece looks the piece up by its text, and never finds a piece that is a single NUL.)
        let is_nul = |id: u32| vocab.byte_level.is_none() && vocab.pieces.text(id) == b"\0";
        let tokens = ids.iter().map(|&id| if is_nul(id) { (None, &b"\0"[..]) } else { (Some(id), &b""[..]) });
        Ok(self.spans(tokens, check)?)
    }

    /// The same for pieces. One that the vocabulary does not have is copied.
    pub fn decode_pieces_spans(&self, pieces: &[&[u8]], check: Check) -> Result<DecodedSpans, Halt> {
        let vocab = &self.vocab;
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
        let vocab = &self.vocab;
        let count = tokens.len();
        let mut decoded = DecodedSpans { text: Vec::new(), ids: with_room(count)?, spans: with_room(count)? };
        decoded.text.grow(count * 5)?;
        let mut run = Run::default();
        let (mut at_beginning, mut dropped) = (true, false);
        let mut checks = Checks::new(check, CHECK_TOKENS);
        for (position, (id, unknown)) in tokens.enumerate() {
            checks.at(position)?;
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
                Some((id, TextKind::Spaced, text)) if at_beginning && self.beginning.drops_space => {
                    dropped = !self.beginning.drops_all;
                    decoded.add(id, &text[1..])?;
                }
                Some((id, _, text)) => decoded.add(id, text)?,
            }
        }
        decoded.end_run(&mut run)?;
        Ok(decoded)
    }
}
