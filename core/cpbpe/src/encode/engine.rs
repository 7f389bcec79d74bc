//! One model: its vocabulary, its normalizers, and the scratch memory that calls borrow.

use std::sync::{Arc, Mutex};

use crate::cut::last_cut::last_cut;
use crate::decode::Decoder;
use crate::encode::encoder::{encode_compact, encode_split, Buffers, Scratch};
use crate::encode::output::{Count, IdSink, Output};
use crate::encode::segment::{self, encode_normalized, segment, Segmentation, Token};
use crate::error::{Error, Halt};
use crate::memory::{probe, Grow};
use crate::merge::{Choices, Dropout};
use crate::text::normalize::{Normalizer, Source, Spaces};
use crate::text::utf8::{make_compact, REPLACEMENT};
use crate::text::Origins;
use crate::vocab::{Columns, Vocab};
use crate::watch::{Check, NO_CHECK};

/// How many scratches of concurrent calls are kept. Further calls make their own, and drop it afterwards.
const SPARE: usize = 8;
/// A buffer that is larger than this is not kept.
const MAX_KEPT: usize = 1 << 20;

/// A text, and whether it is known to be UTF-8.
pub type Input<'a> = (&'a [u8], bool);

/// All that is known about a model. Immutable, except for its caches.
pub struct Engine {
    /// The pieces.
    pub(crate) vocab: Arc<Vocab>,
    /// What else the model file says.
    file: Arc<File>,
    /// The normalizer of this variant.
    pub(crate) normalizer: Normalizer,
    /// Whether normalized text is always UTF-8, so that it can be written as compact text at once.
    pub(crate) direct: bool,
    /// The decoder of this variant.
    decoder: Decoder,
    spare: Arc<Spare>,
}

/// Scratches for later calls.
#[derive(Default)]
struct Spare {
    /// The scratch that is used as long as calls come one after the other.
    first: Mutex<Option<Scratch>>,
    /// The scratches of concurrent calls. They are boxed, because moving one takes as long as encoding a short text.
    #[allow(clippy::vec_box)]
    others: Mutex<Vec<Box<Scratch>>>,
}

/// What a model file says in addition to the pieces.
struct File {
    /// Special tokens that were added to the model, and their ids.
    added: Vec<(Vec<u8>, u32)>,
    /// Whether the file says more, which only Python reads.
    carries: bool,
    /// The names of unk, bos, eos and pad.
    special_pieces: [Vec<u8>; 4],
    /// The normalizer as it is in the file.
    normalizer: Normalizer,
}

/// A text with its tokens.
pub struct Aligned {
    /// The tokens, with spans in `text`.
    pub tokens: Vec<Token>,
    /// The normalized text.
    pub text: Vec<u8>,
    /// Whether it is compact.
    pub compact: bool,
    /// For each byte of it, and for its end, the place in the input that it came from.
    pub origins: Vec<usize>,
}

impl Engine {
    /// Read and check a model file.
    pub fn from_model(data: &[u8]) -> Result<Engine, Error> {
        // Ask for more memory than the columns, and what is built from them, will take. (They are allocated in many
        // small steps.)
        probe(data.len() * 8 + (1 << 22))?;
        Engine::from_columns(Columns::read(data)?)
    }

    /// Make an engine of a model that is given as columns, after checking it.
    ///
    /// ```
    /// use cpbpe::watch::NO_CHECK;
    /// use cpbpe::{Columns, Engine, NormalizerOptions};
    ///
    /// let pieces = ["<unk>", "\u{2581}", "a", "b", "ab"];
    /// let engine = Engine::from_columns(Columns {
    ///     blob: pieces.concat().into_bytes(),
    ///     ends: vec![5, 8, 9, 10, 12],
    ///     scores: vec![0.0, -2.0, -3.0, -4.0, -1.0],
    ///     types: vec![2, 1, 1, 1, 1],
    ///     byte_fallback: false,
    ///     unk_surface: b"?".to_vec(),
    ///     special_pieces: ["<unk>", "<s>", "</s>", "<pad>"].map(|name| name.as_bytes().to_vec()),
    ///     normalizer: NormalizerOptions::default(),
    ///     denormalizer: None,
    ///     byte_level: None,
    ///     added: Vec::new(),
    ///     carries: false,
    /// })?;
    /// let ids = engine.with_scratch(|scratch| {
    ///     engine.encode(b"abba", true, NO_CHECK, scratch)?;
    ///     Ok::<_, cpbpe::Error>(scratch.ids.clone())
    /// })??;
    /// assert_eq!(ids, [1, 4, 3, 2]);
    /// assert_eq!(engine.decoder().decode(&ids, false, NO_CHECK)?, b"abba");
    /// # Ok::<(), cpbpe::Error>(())
    /// ```
    pub fn from_columns(mut columns: Columns) -> Result<Engine, Error> {
        probe(columns.blob.len() * 4 + columns.ends.len() * 64 + (1 << 21))?;
        columns.check()?;
        let as_in_file = Normalizer::new(std::mem::take(&mut columns.normalizer))?;
        let denormalizer = match columns.denormalizer.take() {
            Some(options) if !options.charsmap.is_empty() => Some(Arc::new(Normalizer::new(options)?)),
            _ => None,
        };
        if columns.byte_level.is_some() && (denormalizer.is_some() || !as_in_file.only_prefixes()) {
            return Err(Error::InvalidModel(
                "a byte-level model has a normalizer that does more than put a space in front",
            ));
        }
        if columns.byte_level.is_none() && as_in_file.options.unicode_form.is_some() {
            return Err(Error::InvalidModel("a model that is not byte-level has a Unicode normal form"));
        }
        let (added, carries) = (std::mem::take(&mut columns.added), columns.carries);
        let special_pieces = columns.special_pieces.clone();
        let vocab = Arc::new(Vocab::new(columns, as_in_file.options.escape_whitespaces)?);
        let normalizer = as_in_file.with_user_defined(&vocab.user_defined);
        let direct = vocab.utf8 && normalizer.is_utf8();
        let decoder = Decoder::new(vocab.clone(), &normalizer.options, denormalizer, false);
        let file = Arc::new(File { added, carries, special_pieces, normalizer: as_in_file });
        Ok(Engine { vocab, file, normalizer, direct, decoder, spare: Arc::default() })
    }

    /// The same model as columns. They are built on request, and not kept.
    pub fn columns(&self) -> Columns {
        let pieces = 0..self.vocab.len() as u32;
        let mut blob = Vec::new();
        let end = |id| {
            self.vocab.text_of(id, &mut blob);
            blob.len() as u32
        };
        let ends = pieces.clone().map(end).collect();
        let scores = pieces.clone().map(|id| self.vocab.pieces.score(id)).collect();
        Columns { blob, ends, scores, types: pieces.map(|id| self.vocab.kind(id)).collect(), ..self.head() }
    }

    /// The same columns without the pieces.
    pub fn head(&self) -> Columns {
        Columns {
            blob: Vec::new(),
            ends: Vec::new(),
            scores: Vec::new(),
            types: Vec::new(),
            byte_fallback: self.vocab.byte_ids.is_some(),
            unk_surface: self.vocab.unk_surface.clone(),
            special_pieces: self.file.special_pieces.clone(),
            normalizer: self.file.normalizer.options_with_rules(),
            denormalizer: self.decoder.denormalizer().map(Normalizer::options_with_rules),
            byte_level: self.vocab.byte_level.as_ref().map(|byte_level| byte_level.options.clone()),
            added: self.file.added.clone(),
            carries: self.file.carries,
        }
    }

    /// The same engine with other options: with or without a dummy prefix; keeping a space at the beginning when
    /// decoding; taking text as already normalized (`raw`). The caches are shared, because they do not depend on
    /// options.
    pub fn variant(&self, prefix: Option<bool>, keep_space: bool, raw: bool) -> Engine {
        let normalizer = self.normalizer.variant(prefix, raw);
        let decoder = self.decoder.variant(&normalizer.options, keep_space);
        Engine {
            vocab: self.vocab.clone(),
            file: self.file.clone(),
            normalizer,
            direct: self.direct,
            decoder,
            spare: self.spare.clone(),
        }
    }

    /// What turns ids into text.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// Whether pieces are bytes, which merge inside the chunks of a pattern.
    #[doc(hidden)]
    pub fn is_byte_level(&self) -> bool {
        self.vocab.byte_level.is_some()
    }

    /// How many pieces there are.
    pub fn size(&self) -> usize {
        self.vocab.len()
    }

    /// The ids of unk, bos, eos and pad.
    pub fn specials(&self) -> [Option<u32>; 4] {
        self.vocab.specials
    }

    /// The piece of the type UNKNOWN.
    pub fn unknown(&self) -> Option<u32> {
        self.vocab.unk
    }

    /// The text of a piece. The id is in the vocabulary, here and below.
    pub fn piece(&self, id: u32) -> Vec<u8> {
        let mut text = Vec::new();
        self.vocab.text_of(id, &mut text);
        text
    }

    /// Whether the text of a piece is UTF-8.
    pub fn is_utf8(&self, id: u32) -> bool {
        self.vocab.all_utf8 || std::str::from_utf8(self.vocab.pieces.text(id)).is_ok()
    }

    /// The id of a piece.
    pub fn find(&self, piece: &[u8]) -> Option<u32> {
        if piece == b"\0" && self.vocab.byte_level.is_none() {
            None // sentencepiece never finds it
        } else {
            self.vocab.id_of(piece)
        }
    }

    /// The score of a piece.
    pub fn score(&self, id: u32) -> f32 {
        self.vocab.pieces.score(id)
    }

    /// The type of a piece, as the model file numbers it.
    pub fn kind(&self, id: u32) -> u8 {
        self.vocab.kind(id)
    }

    /// The last place in a normalized text after which nothing can change the ids of the text before it; 0 if there is
    /// none.
    pub fn last_cut(&self, text: &[u8], check: Check) -> Result<usize, Halt> {
        last_cut(&self.vocab, text, check)
    }

    /// Lend a scratch. Nobody ever waits: if the spare scratches are locked, a new one is made. So a process does not
    /// hang if it was forked while another thread held the lock.
    #[inline]
    pub fn with_scratch<R>(&self, work: impl FnOnce(&mut Scratch) -> R) -> Result<R, Halt> {
        // (The lock is held while the scratch is used, because taking the scratch out and putting it back would need
        // two locks. After a panic the lock is poisoned, so nobody sees what is left of that scratch.)
        let Ok(mut first) = self.spare.first.try_lock() else { return self.with_other_scratch(work) };
        let scratch = match &mut *first {
            Some(scratch) => scratch,
            none => none.insert(Scratch::new(self.vocab.len())?),
        };
        scratch.ids.clear();
        let result = work(scratch);
        scratch.trim(MAX_KEPT);
        Ok(result)
    }

    #[cold]
    fn with_other_scratch<R>(&self, work: impl FnOnce(&mut Scratch) -> R) -> Result<R, Halt> {
        let spare = self.spare.others.try_lock().ok().and_then(|mut spare| spare.pop());
        let mut scratch = match spare {
            Some(scratch) => scratch,
            None => Box::new(Scratch::new(self.vocab.len())?),
        };
        scratch.ids.clear();
        let result = work(&mut scratch);
        scratch.trim(MAX_KEPT);
        if let Ok(mut spare) = self.spare.others.try_lock() {
            if spare.len() < SPARE {
                spare.push(scratch);
            }
        }
        Ok(result)
    }

    /// Append the ids of a text to `scratch.ids`. `valid` says that it is known to be UTF-8.
    pub fn encode(&self, text: &[u8], valid: bool, check: Check, scratch: &mut Scratch) -> Result<(), Halt> {
        self.encode_to(text, valid, check, &mut scratch.buffers, &mut scratch.ids)
    }

    /// How many ids a text has.
    pub fn count(&self, text: &[u8], valid: bool, check: Check, scratch: &mut Scratch) -> Result<usize, Halt> {
        let mut count = Count::default();
        self.encode_to(text, valid, check, &mut scratch.buffers, &mut count)?;
        Ok(count.count)
    }

    pub(crate) fn encode_to<O: Output>(
        &self,
        text: &[u8],
        valid: bool,
        check: Check,
        buffers: &mut Buffers,
        out: &mut O,
    ) -> Result<(), Halt> {
        if text.is_empty() {
            return Ok(());
        }
        if !self.is_plain(text, valid) {
            return self.encode_any((text, valid), check, buffers, out);
        }
        let vocab = &self.vocab;
        let segmentation = Segmentation::of(vocab, true);
        let prefix = self.normalizer.prefixes(text);
        if let (Segmentation::Split(byte_level), false) = (segmentation, prefix) {
            return encode_split(vocab, byte_level, text, check, buffers, out);
        }
        if let Segmentation::Chunks(joinable) = segmentation {
            if encode_compact(vocab, joinable, text, prefix, check, buffers, out)? {
                return Ok(());
            }
        }
        let mut compact = std::mem::take(&mut buffers.compact);
        self.compact(text, &mut compact)?;
        encode_normalized(vocab, segmentation, &compact, check, buffers, out)?;
        buffers.compact = compact;
        Ok(())
    }

    /// Whether a text can be encoded as it is: it can be cut, and all that normalizing does is put a dummy prefix in
    /// front and write spaces as U+2581.
    pub(crate) fn is_plain(&self, text: &[u8], valid: bool) -> bool {
        let plain = match (&self.vocab.byte_level, self.normalizer.options.unicode_form) {
            (Some(_), None) => true, // `from_columns` allows no rules
            (Some(_), Some(form)) => {
                return (valid || std::str::from_utf8(text).is_ok()) && form.is_normal(text);
            }
            (None, _) => self.vocab.joinable.is_some() && self.normalizer.is_plain(),
        };
        plain && (valid || std::str::from_utf8(text).is_ok())
    }

    /// The steps that work for any text: normalize, then segment.
    fn encode_any<O: Output>(
        &self,
        (text, valid): Input,
        check: Check,
        buffers: &mut Buffers,
        out: &mut O,
    ) -> Result<(), Halt> {
        let mut normalized = std::mem::take(&mut buffers.normalized);
        normalized.clear();
        let segmentation = self.normalized((text, valid), check, &mut normalized, &mut ())?;
        encode_normalized(&self.vocab, segmentation, &normalized, check, buffers, out)?;
        buffers.normalized = normalized;
        Ok(())
    }

    /// Normalize a text into the form in which it is segmented, compact if possible, and choose how to segment it.
    pub(crate) fn normalized<O: Origins>(
        &self,
        (text, valid): Input,
        check: Check,
        normalized: &mut Vec<u8>,
        origins: &mut O,
    ) -> Result<Segmentation<'_>, Halt> {
        if self.vocab.byte_level.is_some() {
            self.normalize_bytes((text, valid), check, normalized, origins)?;
            return Ok(Segmentation::of(&self.vocab, false));
        }
        let spaces = if self.direct && self.vocab.swapped { Spaces::Compact } else { Spaces::AsInModel };
        let source = Source { text, valid, keep_invalid: false };
        self.normalizer.normalize(source, spaces, check, normalized, origins)?;
        let compact = self.direct || self.vocab.utf8 && !self.vocab.swapped && std::str::from_utf8(normalized).is_ok();
        Ok(Segmentation::of(&self.vocab, compact))
    }

    /// The tokens of a text, with their spans. With `dropout`, merges are skipped at random.
    pub fn tokens(&self, text: &[u8], dropout: Option<Dropout>, check: Check) -> Result<Aligned, Halt> {
        let (mut normalized, mut origins) = (Vec::new(), Vec::new());
        let segmentation = self.normalized((text, false), check, &mut normalized, &mut origins)?;
        let tokens = self.with_scratch(|scratch| {
            segment::tokens(&self.vocab, &normalized, segmentation, dropout, &mut scratch.buffers.choices, check)
        })??;
        Ok(Aligned { tokens, text: normalized, compact: segmentation.is_compact(), origins })
    }

    /// Append the text of a token, as pieces are spelled in the model file; for an unknown one, the unknown text.
    pub fn piece_of(&self, token: &Token, aligned: &Aligned, out: &mut Vec<u8>) -> Result<(), Halt> {
        segment::piece_of(&self.vocab, token, &aligned.text, aligned.compact, out)
    }

    /// Append the ids of a text to `scratch.ids`, with merges skipped at random.
    #[inline(never)] // so that a call without it needs no memory for its variables
    pub fn sample(
        &self,
        (text, valid): Input,
        dropout: Dropout,
        check: Check,
        scratch: &mut Scratch,
    ) -> Result<(), Halt> {
        if text.is_empty() {
            return Ok(());
        }
        let Scratch { buffers: Buffers { normalized, choices, .. }, ids } = scratch;
        let segmentation = if self.is_plain(text, valid) {
            self.compact(text, normalized)?;
            Segmentation::of(&self.vocab, true)
        } else {
            normalized.clear();
            self.normalized((text, valid), check, normalized, &mut ())?
        };
        let mut sink = IdSink { vocab: &self.vocab, text: normalized, compact: segmentation.is_compact(), out: ids };
        segment(&self.vocab, normalized, segmentation, Some(dropout), choices, check, &mut sink)
    }

    /// Put the compact form of a plain text (see `is_plain`) into `out`.
    pub(crate) fn compact(&self, text: &[u8], out: &mut Vec<u8>) -> Result<(), Halt> {
        out.clear();
        out.grow(text.len() + 1)?;
        out.extend_from_slice(if self.normalizer.prefixes(text) { b" " } else { b"" });
        out.extend_from_slice(text);
        if self.vocab.byte_level.is_none() {
            make_compact(out);
        }
        Ok(())
    }

    /// The ids of a text, found the slow way: it is normalized, then merged as a whole (with a byte-level vocabulary,
    /// chunk by chunk), without further cuts and without the cache. Tests compare with this.
    #[doc(hidden)]
    pub fn encode_slowly(&self, text: &[u8]) -> Result<Vec<u32>, Halt> {
        self.segment_slowly(&self.origins_slowly(text)?.0, None)
    }

    /// The same, with merges skipped at random.
    #[doc(hidden)]
    pub fn sample_slowly(&self, text: &[u8], dropout: Dropout) -> Result<Vec<u32>, Halt> {
        self.segment_slowly(&self.normalize((text, false), NO_CHECK)?, Some(dropout))
    }

    fn segment_slowly(&self, text: &[u8], dropout: Option<Dropout>) -> Result<Vec<u32>, Halt> {
        let mut ids = Vec::new();
        let mut sink = IdSink { vocab: &self.vocab, text, compact: false, out: &mut ids };
        let segmentation = match &self.vocab.byte_level {
            Some(byte_level) => Segmentation::Split(byte_level),
            None => Segmentation::Whole { compact: false },
        };
        segment(&self.vocab, text, segmentation, dropout, &mut Choices::default(), NO_CHECK, &mut sink)?;
        Ok(ids)
    }

    /// The same as `origins`, but character by character, without shortcuts. Tests compare with this.
    #[doc(hidden)]
    pub fn origins_slowly(&self, text: &[u8]) -> Result<(Vec<u8>, Vec<usize>), Halt> {
        self.normalizer.normalize_slowly(text)
    }
}

// --- Ids around those of a text ------------------------------------------------------------------
//
// The ids of a text between others, such as bos and eos.

/// What is put around the ids of a text. Doing that while the ids are still in a vector costs nothing; making a second
/// list of them took longer than encoding a short text.
#[derive(Clone, Copy, Default)]
pub struct Ends {
    /// The id in front. It must not be that of the UNKNOWN piece: an unknown symbol at the beginning of the text would
    /// be fused with it.
    pub front: Option<u32>,
    /// The id at the end.
    pub back: Option<u32>,
    /// Whether the order of the ids between these two is reversed.
    pub reverse: bool,
}

impl Engine {
    /// Append the ids of a text to `ids`, with what goes around them. `scratch` lends its buffers, and what it holds
    /// afterwards has no meaning.
    #[inline]
    pub(crate) fn append_between(
        &self,
        (text, valid): Input,
        ends: Ends,
        check: Check,
        scratch: &mut Scratch,
        ids: &mut Vec<u32>,
    ) -> Result<(), Halt> {
        if self.vocab.fused_unknown.is_some() {
            // Encode into a list of its own. At the end of `ids`, an unknown symbol at the beginning of this text would
            // be fused with one at the end of the text before.
            self.encode_between((text, valid), None, ends, check, scratch)?;
            ids.try_extend(&scratch.ids)?;
            return Ok(());
        }
        let begin = ids.len() + usize::from(ends.front.is_some());
        ids.grow(2)?;
        ids.extend(ends.front);
        self.encode_to(text, valid, check, &mut scratch.buffers, ids)?;
        if ends.reverse {
            ids[begin..].reverse();
        }
        if let Some(back) = ends.back {
            ids.try_push(back)?;
        }
        Ok(())
    }

    /// Leave the ids of a text in `scratch.ids`, with what goes around them. With `dropout`, merges are skipped at
    /// random.
    #[inline]
    pub fn encode_between(
        &self,
        (text, valid): Input,
        dropout: Option<Dropout>,
        ends: Ends,
        check: Check,
        scratch: &mut Scratch,
    ) -> Result<(), Halt> {
        scratch.ids.clear();
        scratch.ids.extend(ends.front);
        match dropout {
            None => self.encode(text, valid, check, scratch)?,
            Some(dropout) => self.sample((text, valid), dropout, check, scratch)?,
        }
        if ends.reverse {
            scratch.ids[usize::from(ends.front.is_some())..].reverse();
        }
        if let Some(back) = ends.back {
            scratch.ids.try_push(back)?;
        }
        Ok(())
    }
}

// --- Normalizing ---------------------------------------------------------------------------------
//
// The normalized form of texts, for callers that ask for it.

/// `check` is called once in this many bytes.
const CHECK_BYTES: usize = 1 << 16;

impl Engine {
    /// The same as `ByteNormalizer` in `cpbpe/reference/byte_level/encoding.py`, for a byte-level model: text stays as
    /// it is, except for a space in front, U+FFFD for each byte that belongs to no character, and the model's Unicode
    /// normal form.
    pub(crate) fn normalize_bytes<O: Origins>(
        &self,
        (text, valid): Input,
        check: Check,
        normalized: &mut Vec<u8>,
        origins: &mut O,
    ) -> Result<(), Halt> {
        normalized.grow(text.len() + 1)?;
        if self.normalizer.prefixes_bytes(text) {
            normalized.push(b' ');
            origins.add(1, 0)?;
        }
        match self.normalizer.options.unicode_form {
            None => repair_bytes(text, check, normalized, origins)?,
            Some(form) if valid || std::str::from_utf8(text).is_ok() => {
                form.normalize(text, |at| at, check, normalized, origins)?;
            }
            Some(form) => {
                let (mut repaired, mut places) = (Vec::new(), Vec::new());
                repair_bytes(text, check, &mut repaired, &mut places)?;
                form.normalize(&repaired, |at| places[at], check, normalized, origins)?;
            }
        }
        origins.add(1, text.len())
    }

    /// The normalized text, and for each of its bytes and for its end, the place in the input that it came from.
    pub fn origins(&self, text: &[u8], check: Check) -> Result<(Vec<u8>, Vec<usize>), Halt> {
        let (mut normalized, mut origins) = (Vec::new(), Vec::new());
        if self.vocab.byte_level.is_some() {
            self.normalize_bytes((text, false), check, &mut normalized, &mut origins)?;
        } else {
            let source = Source { text, valid: false, keep_invalid: false };
            self.normalizer.normalize(source, Spaces::AsInModel, check, &mut normalized, &mut origins)?;
        }
        Ok((normalized, origins))
    }

    /// The normalized text. `valid`: the given text is known to be UTF-8.
    pub fn normalize(&self, (text, valid): Input, check: Check) -> Result<Vec<u8>, Halt> {
        let mut normalized = Vec::new();
        if self.vocab.byte_level.is_some() {
            self.normalize_bytes((text, valid), check, &mut normalized, &mut ())?;
        } else if self.is_plain(text, valid) {
            self.normalizer.escape(text, check, &mut normalized)?;
        } else {
            let source = Source { text, valid, keep_invalid: false };
            self.normalizer.normalize(source, Spaces::AsInModel, check, &mut normalized, &mut ())?;
        }
        Ok(normalized)
    }

    /// The same with a space for each U+2581. `None` if a space could then stand for either of the two.
    pub fn normalize_compact(&self, text: &str, check: Check) -> Result<Option<Vec<u8>>, Halt> {
        if !self.direct || !self.vocab.swapped {
            return Ok(None);
        }
        let (text, mut compact) = (text.as_bytes(), Vec::new());
        if text.is_empty() {
        } else if self.is_plain(text, true) {
            self.compact(text, &mut compact)?;
        } else {
            let source = Source { text, valid: true, keep_invalid: false };
            self.normalizer.normalize(source, Spaces::Compact, check, &mut compact, &mut ())?;
        }
        Ok(Some(compact))
    }
}

/// Append a text, with U+FFFD for each byte that belongs to no character. Each byte came from a place of its own.
fn repair_bytes<O: Origins>(text: &[u8], check: Check, out: &mut Vec<u8>, origins: &mut O) -> Result<(), Halt> {
    let mut at = 0;
    for part in text.utf8_chunks() {
        let (valid, invalid) = (part.valid().as_bytes(), part.invalid());
        out.grow(valid.len() + invalid.len() * REPLACEMENT.len())?;
        for some in valid.chunks(CHECK_BYTES) {
            check()?;
            out.extend_from_slice(some);
            for place in at..at + some.len() {
                origins.add(1, place)?;
            }
            at += some.len();
        }
        for _ in invalid {
            out.extend_from_slice(REPLACEMENT);
            origins.add(REPLACEMENT.len(), at)?;
            at += 1;
        }
    }
    Ok(())
}
