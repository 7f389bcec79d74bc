"""One loaded model, or none: what `SentencePieceProcessor` holds, without its many ways to be called.

The types of the arguments have already been checked (`values`). Errors are those that sentencepiece raises:
RuntimeError if there is no model or the model cannot do something, ValueError for a special piece that the
model lacks, IndexError for an id outside the vocabulary.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable
from itertools import pairwise
from math import isfinite
from typing import Any, NamedTuple, TypeVar

from cpbpe.checks import bounds
from cpbpe.compat.sentencepiece.data import (
    calls_of,
    is_utf8,
    normalized_text,
    normalized_texts,
    packed_ids,
    unchangeable,
)
from cpbpe.compat.sentencepiece.results import Analysis, Decoder, of_decoded
from cpbpe.compat.sentencepiece.values import as_ids, as_pieces, not_utf8, utf8
from cpbpe.engine.choice import load_engine
from cpbpe.engine.columns import spec_of
from cpbpe.engine.ends import Dropout, Ends, between
from cpbpe.engine.protocol import Aligned, Engine
from cpbpe.errors import ModelError
from cpbpe.lazy import kept, numpy
from cpbpe.model.formats import sentencepiece as model_file
from cpbpe.model.spec import ModelSpec, PieceType
from cpbpe.reference.encoding import Normalizer

MAX_NBEST_SIZE = 512
T = TypeVar("T")

_random = random.Random()
"""The source of seeds for samples. A forked process gets a new one, unless `set_seed` was called."""


def set_seed(seed: int) -> None:
    """Make sampling reproducible from now on."""
    global _random
    _random = random.Random(seed)


def _begin_anew(unseeded: random.Random = _random) -> None:
    unseeded.seed()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


class Options(NamedTuple):
    """The options of `encode`."""

    add_bos: bool = False
    """Put bos in front of the text."""
    add_eos: bool = False
    """Put eos after the text."""
    reverse: bool = False
    """Reverse the order, before bos and eos are put around it."""
    emit_unk_piece: bool = False
    """Write the name of the UNKNOWN piece for every unknown part (pieces only)."""
    alpha: float | None = None
    """The probability that a merge is skipped, if a segmentation is sampled."""
    nbest_size: int = -1
    """Has no effect, but must not be too large when sampling."""


class Loaded:
    """A model and what can be done with it; `Loaded()` is the state before anything was loaded."""

    def __init__(self, data: bytes = b"", engine: Engine | None = None):
        self.data = data
        self.engine_or_none = engine
        self.calls: Any = None if engine is None else calls_of(engine)
        """What the core has for this drop-in, or None."""
        self.size = 0 if engine is None else engine.size
        specials = [None] * 4 if engine is None else engine.specials
        self.unk_id, self.bos_id, self.eos_id, self.pad_id = (-1 if id is None else id for id in specials)
        self.ends_kept: dict[tuple[bool, bool, bool], Ends] = {}

    @classmethod
    def of(cls, data: bytes) -> Loaded:
        """Load a model. An invalid one raises ModelError."""
        engine = load_engine(data)
        if engine.head["byte_level"] is not None:
            raise ModelError("the model is byte-level, as none of sentencepiece's is; use cpbpe.load(path)")
        return cls(data, engine)

    @property
    def engine(self) -> Engine:
        """The engine, or an error if there is none."""
        if self.engine_or_none is None:
            raise RuntimeError("no model is loaded; give model_file or model_proto, or call load() first")
        return self.engine_or_none

    @kept
    def spec(self) -> ModelSpec:
        """The model as a value."""
        return spec_of(self.engine.columns())

    @kept
    def decoder(self) -> Decoder:
        """A decoder that also returns the position of every piece in the text."""
        assert self.engine_or_none is not None
        return Decoder(self.spec)

    @kept
    def all_pieces(self) -> list[bytes]:
        """All pieces, by their ids."""
        return list(map(self.engine.piece, range(self.size)))

    @kept
    def _texts(self) -> list[str] | None:
        """All pieces as str, or None if there is one that is not UTF-8."""
        try:
            return [piece.decode() for piece in self.all_pieces]
        except UnicodeDecodeError:
            return None

    @kept
    def _makes_text(self) -> bool:
        """Whether the pieces of every text are UTF-8."""
        charsmap = self.engine.head["normalizer"]["charsmap"]
        rules = charsmap[4 + int.from_bytes(charsmap[:4], "little") :]
        return self._texts is not None and is_utf8(rules)

    @kept
    def _all_utf8(self) -> bool:
        """Whether all text that this model decodes is valid UTF-8."""
        if self.engine_or_none is None:
            return False
        denormalizer = b"" if self.spec.denormalizer is None else self.spec.denormalizer.charsmap
        return self._texts is not None and not denormalizer and is_utf8(self.spec.unk_surface)

    # --- Encoding ---------------------------------------------------------------------------------

    def ids(self, text: str | bytes, options: Options) -> list[int]:
        """The ids of a text."""
        if options.alpha is not None:
            return self._finish_ids(self.sampled_ids(text, options.alpha, options.nbest_size), options)
        ids: list[int] = self.encode_between(text, int, self._ends_for(options, [text]))
        return ids

    def encode_between(self, text: str | bytes, kind: Any, ends: Ends) -> Any:
        """The ids of a text, as a list or an array, or (for `str`) its pieces, with what goes around them."""
        try:
            if kind is int:
                return self.engine.encode(text, ends)
            if kind == "numpy":
                numpy()
                return unchangeable(self.engine.encode_array(text, 1, ends))
            if self._makes_text:
                return self.engine.encode_pieces(text, ends)
        except UnicodeEncodeError as error:
            raise not_utf8(error) from error
        front, back, reverse = ends
        options = Options(front is not None, back is not None, reverse)
        return [piece.decode() for piece in self.byte_pieces(text, options)]

    def sampled_ids(self, text: str | bytes, alpha: float, nbest_size: int) -> list[int]:
        """The ids of a text with merges skipped at random."""
        dropout = self._dropout(alpha, nbest_size)
        return self._in_utf8(lambda: self.engine.encode(text, None, dropout))

    def ids_of_all(self, texts: list[str | bytes], options: Options, threads: int) -> list[list[int]]:
        """The ids of many texts."""
        if not texts:
            return []
        if options.alpha is not None:
            return [self.ids(text, options) for text in texts]
        ends = self._ends_for(options, texts)
        return self._in_utf8(lambda: self.engine.encode_batch(texts, threads, ends))

    def array(self, text: str | bytes, options: Options, threads: int = 1) -> Any:
        """The ids of a text as a numpy array of int32, which cannot be changed, as in sentencepiece."""
        np = numpy()
        if options.alpha is not None:
            return unchangeable(np.array(self.ids(text, options), np.int32))
        ends = self._ends_for(options, [text])
        return unchangeable(self._in_utf8(lambda: self.engine.encode_array(text, threads, ends)))

    def arrays(self, texts: list[str | bytes], options: Options, threads: int) -> list[Any]:
        """The same for many texts, with an array for each."""
        np = numpy()
        if not texts:
            return []
        if options.alpha is not None:
            return [unchangeable(np.array(self.ids(text, options), np.int32)) for text in texts]
        ends = self._ends_for(options, texts)
        ids, offsets = self._in_utf8(lambda: self.engine.encode_arrays(texts, threads, ends))
        return [unchangeable(ids[begin:end].copy()) for begin, end in pairwise(offsets.tolist())]

    def ids_in_parallel(self, text: str | bytes, options: Options, threads: int) -> list[int]:
        """The ids of one long text, encoded by several threads."""
        if threads == 1:
            return self.ids(text, options)
        numpy()
        ends = self._ends_for(options, [text])
        ids: list[int] = self._in_utf8(lambda: self.engine.encode_array(text, threads, ends)).tolist()
        return ids

    def pieces(self, text: str | bytes, options: Options) -> list[str]:
        """The pieces of a text."""
        if options.alpha is not None:
            return self._sampled_pieces(text, options)
        if not options.emit_unk_piece and self._makes_text:
            pieces: list[str] = self.encode_between(text, str, self._ends_for(options, [text]))
            return pieces
        return [piece.decode() for piece in self.byte_pieces(text, options)]

    def _sampled_pieces(self, text: str | bytes, options: Options) -> list[str]:
        """The pieces of a text with merges skipped at random."""
        if not (options.add_bos or options.add_eos or options.reverse or options.emit_unk_piece):
            dropout = self._dropout(options.alpha, options.nbest_size)
            if self._makes_text:
                return self._in_utf8(lambda: self.engine.encode_pieces(text, None, dropout))
            return [piece.decode() for piece in self._tokens(text, dropout)[1]]
        return [piece.decode() for piece in self.byte_pieces(text, options)]

    def byte_pieces(self, text: str | bytes, options: Options) -> list[bytes]:
        """The pieces of a text as bytes."""
        ids = self._ids_of_pieces(text, options)
        if ids is not None:
            return list(map(self.all_pieces.__getitem__, ids))
        pieces = self._tokens(text, self._dropout(options.alpha, options.nbest_size))[1]
        self._check_unk(options)
        if options.emit_unk_piece:
            unk = self.all_pieces[self.unk_id]
            pieces = [unk if self.id_of(piece) == self.unk_id else piece for piece in pieces]
        front, back = self._ends(options)
        if options.reverse:
            pieces.reverse()
        return [*map(self.engine.piece, front), *pieces, *map(self.engine.piece, back)]

    def _ids_of_pieces(self, text: str | bytes, options: Options) -> list[int] | None:
        """The ids of a text without unknown parts, from which its pieces follow: ids are faster to get."""
        if options.alpha is not None:
            return None
        ids = self._encode(text)
        if self.unknown_id in ids:
            return None
        self._check_unk(options)
        return self._finish_ids(ids, options)

    def analysis(self, text: str | bytes, options: Options) -> Analysis:
        """Everything about the pieces of a text. Only the options of sampling may be set."""
        data = utf8(text)
        return Analysis(data, self._tokens(data, self._dropout(options.alpha, options.nbest_size)))

    def mapping(self, text: str | bytes, options: Options, as_bytes: bool) -> dict[str, Any]:
        """The offset mapping of a text."""
        dropout = self._dropout(options.alpha, options.nbest_size)
        # (sentencepiece counts the characters of broken text in its own way.)
        if not (as_bytes or (type(text) is str and self._makes_text)):
            data = utf8(text)
            return Analysis(data, self._tokens(data, dropout)).mapping(as_bytes, with_text=False)
        aligned = self._in_utf8(lambda: self.engine.align(text, not as_bytes, as_bytes, dropout))
        ids, pieces, offsets = aligned
        return {"ids": ids, "pieces": pieces, "offsets": offsets}

    def mappings(self, texts: list[str | bytes], as_bytes: bool, threads: int) -> list[dict[str, Any]]:
        """The offset mappings of many texts."""
        if as_bytes or (self._makes_text and all(isinstance(text, str) for text in texts)):
            chars = not as_bytes
            found = self._in_utf8(lambda: self.engine.align_batch(texts, threads, chars, as_bytes))
            return [{"ids": ids, "pieces": pieces, "offsets": offsets} for ids, pieces, offsets in found]
        return [self.mapping(text, Options(), as_bytes) for text in texts]

    def message(self, text: str | bytes, options: Options, in_parallel: bool = False) -> bytes:
        """The message of a text, serialized."""
        dropout = self._dropout(options.alpha, options.nbest_size)
        calls = self.calls
        if calls is None:
            data = utf8(text)
            return Analysis(data, self._tokens(data, dropout)).serialized(in_parallel)
        message: bytes = self._in_utf8(lambda: calls.message(self.engine, text, in_parallel, dropout))
        return message

    def refuse_nbest(self, nbest_size: int) -> None:
        """Raise the error that says why there are no n-best segmentations."""
        _ = self.engine
        if nbest_size > MAX_NBEST_SIZE:
            raise RuntimeError(f"nbest_size must be at most {MAX_NBEST_SIZE}, not {nbest_size}")
        raise RuntimeError(
            "a BPE model has one segmentation of a text and no n-best; "
            "enable_sampling=True gives other segmentations (BPE-dropout)"
        )

    def _encode(self, text: str | bytes) -> list[int]:
        return self._in_utf8(lambda: self.engine.encode(text))

    def _dropout(self, alpha: float | None, nbest_size: int) -> Dropout | None:
        """The probability that a merge is skipped, and a seed; None if none is."""
        if alpha is None:
            return None
        _ = self.engine
        if not isfinite(alpha) or alpha < 0:
            raise RuntimeError(f"alpha must be a number from 0 to 1, not {alpha}")
        if nbest_size > MAX_NBEST_SIZE:
            raise RuntimeError(f"nbest_size must be at most {MAX_NBEST_SIZE}, not {nbest_size}")
        return (min(alpha, 1.0), _random.getrandbits(64)) if alpha else None

    def _tokens(self, text: str | bytes, dropout: Dropout | None) -> Aligned:
        """Ids, pieces and spans, in bytes."""
        return self._in_utf8(lambda: self.engine.align(text, False, True, dropout))

    def _in_utf8(self, encode: Callable[[], T]) -> T:
        try:
            return encode()
        except UnicodeEncodeError as error:
            raise not_utf8(error) from error

    def _finish_ids(self, ids: list[int], options: Options) -> list[int]:
        return between(ids, *self._ends_for(options, []))

    def _ends_for(self, options: Options, texts: list[str | bytes]) -> Ends:
        """What goes around ids, as engines take it. An error in a text comes before one in the options."""
        kept = self.ends_kept.get(options[:3])
        if kept is not None:
            return kept
        try:
            front, back = self._ends(options)
        except ValueError:
            for text in texts:
                self._encode(text)
            raise
        ends = (front[0] if front else None, back[0] if back else None, options.reverse)
        self.ends_kept[options[:3]] = ends
        return ends

    def _ends(self, options: Options) -> tuple[list[int], list[int]]:
        """The ids to put in front and at the end."""
        if options.add_bos and self.bos_id < 0:
            raise ValueError("add_bos=True, but this model has no bos piece of type CONTROL")
        if options.add_eos and self.eos_id < 0:
            raise ValueError("add_eos=True, but this model has no eos piece of type CONTROL")
        return [self.bos_id] if options.add_bos else [], [self.eos_id] if options.add_eos else []

    def _check_unk(self, options: Options) -> None:
        if options.emit_unk_piece and self.unk_id < 0:
            raise ValueError("emit_unk_piece=True, but this model has no unk piece of type UNKNOWN")

    # --- Decoding ---------------------------------------------------------------------------------

    def text(self, ids: Any) -> str:
        """The text of a sequence of integers."""
        packed = ids if type(ids) is list else packed_ids(ids)
        text = None if self.engine_or_none is None or packed is None else self.engine_or_none.decode(packed)
        if text is None:  # the ids have to be converted, or some are invalid
            text = self._decode(self.check_ids(as_ids(ids)))
        return self.decoded(ids).text.decode() if self._is_repaired(text) else text

    def text_bytes(self, ids: Any) -> bytes:
        """The same as bytes."""
        numbers = self.check_ids(as_ids(ids)) if self.engine_or_none is None or type(ids) is not list else ids
        try:
            return self.text(numbers).encode()
        except UnicodeDecodeError:
            return self.decoded(numbers).text

    def texts(self, batch: list[Any], threads: int) -> list[str]:
        """The texts of many sequences of integers."""
        if self.engine_or_none is not None and all(type(ids) is list for ids in batch):
            texts = self.engine_or_none.decode_batch(batch, threads)
            if texts is not None and not any(map(self._is_repaired, texts)):
                return texts
        return [self.text(ids) for ids in [as_ids(ids) for ids in batch]]

    def texts_bytes(self, batch: list[Any], threads: int) -> list[bytes]:
        """The same as bytes."""
        if self._all_utf8:
            return [text.encode() for text in self.texts(batch, threads)]
        return [self.text_bytes(ids) for ids in [as_ids(ids) for ids in batch]]

    def _decode(self, ids: list[int]) -> str:
        text = self.engine.decode(ids)
        assert text is not None
        return text

    def _is_repaired(self, text: str) -> bool:
        """Whether a U+FFFD in decoded text may stand for bytes that sentencepiece leaves as they are."""
        return "\ufffd" in text and not self._all_utf8

    def joined(self, pieces: Any) -> bytes:
        """The text of pieces as bytes."""
        pieces = as_pieces(pieces)
        text = self.engine.decode_pieces_bytes(pieces)
        assert text is not None
        return text

    def joined_text(self, pieces: Any) -> str:
        """The text of pieces. It must be UTF-8."""
        text = None
        if type(pieces) is list and self.engine_or_none is not None:
            try:
                text = self.engine_or_none.decode_pieces(pieces)
            except UnicodeEncodeError:
                text = None
        if text is None or "\ufffd" in text:  # perhaps for bytes that are not UTF-8, or something is wrong
            text = self.joined(pieces).decode()
        return text

    def joined_texts(self, rows: list[Any]) -> list[str] | None:
        """The texts of many lists of pieces; None if something is wrong, or may be: there is U+FFFD."""
        try:
            texts: list[str] | None = self.calls and self.calls.decode_pieces_all(self.engine, rows)
        except UnicodeEncodeError:
            return None
        return None if texts is None or any("\ufffd" in text for text in texts) else texts

    def decoded(self, ids: Any) -> Analysis:
        """Everything about a text that is decoded from ids."""
        numbers = self.check_ids(as_ids(ids))
        _ = self.engine
        return of_decoded(self.decoder, map(self.all_pieces.__getitem__, numbers))

    def decoded_mapping(self, tokens: Any, pieces: bool, as_bytes: bool) -> dict[str, Any]:
        """The offset mapping of a text that is decoded from ids or pieces."""
        found = None
        if type(tokens) is list and self.calls is not None:
            found = self.calls.decode_mapping(self.engine_or_none, tokens, as_bytes)
        if found is None:
            analysis = self.decoded_pieces(tokens) if pieces else self.decoded(tokens)
            return analysis.mapping(as_bytes, with_text=True)
        text, ids, shown, offsets = found
        return {"text": text, "ids": ids, "pieces": shown, "offsets": offsets}

    def decoded_message(self, tokens: Any, pieces: bool) -> bytes:
        """The message of a text that is decoded from ids or pieces, serialized."""
        found: bytes | None = None
        if type(tokens) is list and self.calls is not None:
            found = self.calls.decode_message(self.engine_or_none, tokens)
        if found is None:
            analysis = self.decoded_pieces(tokens) if pieces else self.decoded(tokens)
            return analysis.serialized()
        return found

    def decoded_pieces(self, pieces: Any) -> Analysis:
        """Everything about a text that is decoded from pieces."""
        pieces = as_pieces(pieces)
        _ = self.engine
        return of_decoded(self.decoder, pieces)

    def check_ids(self, ids: list[int]) -> list[int]:
        """The ids, if all are in the vocabulary."""
        if not ids or (min(ids) >= 0 and max(ids) < self.size):
            return ids
        for position, id in enumerate(ids):
            if not 0 <= id < self.size:
                reason = bounds(self.size) if self.size else "no model is loaded"
                raise IndexError(f"id {id} at position {position} is outside the vocabulary: {reason}")
        return ids

    # --- Normalizing ------------------------------------------------------------------------------

    def normalize(self, text: str | bytes) -> str | bytes:
        """The normalized text; empty without a model."""
        if self.engine_or_none is None:
            nothing = utf8(text)[:0]
            return nothing if isinstance(text, bytes) else nothing.decode()
        return normalized_text(self.engine_or_none, text)

    def normalize_all(self, texts: list[Any]) -> list[Any] | None:
        """The same of many; None without a model, or if one is neither str nor bytes."""
        return None if self.engine_or_none is None else normalized_texts(self.calls, self.engine, texts)

    @property
    def reference(self) -> Normalizer:
        """The normalizer in plain Python."""
        return self.decoder.normalizer

    # --- The vocabulary ---------------------------------------------------------------------------

    @kept
    def unknown_id(self) -> int:
        """The id of the piece of type UNKNOWN, whatever its text; -1 if there is none."""
        engine = self.engine
        if self.unk_id >= 0:
            return self.unk_id
        kinds: Iterable[int] = map(engine.kind, range(self.size))
        return next((id for id, kind in enumerate(kinds) if kind == PieceType.UNKNOWN), -1)

    def piece(self, id: int) -> str:
        """The piece of an id inside the vocabulary."""
        return self.all_pieces[id].decode() if self._texts is None else self._texts[id]

    def id_of(self, piece: bytes) -> int:
        """The id of a piece. If it does not exist, that of the UNKNOWN piece; without a model, 0."""
        if self.engine_or_none is None:
            return 0
        id = self.engine_or_none.find(piece)
        return self.unknown_id if id is None else id

    def serialized(self) -> bytes:
        """The model as sentencepiece would write it: nearly always, as it was read."""
        if not self.data:
            return b""
        proto = model_file.messages().ModelProto.FromString(self.data)
        if proto.trainer_spec.byte_fallback:
            for piece in proto.pieces:
                if piece.piece == b"\0":
                    piece.type = model_file.messages().ModelProto.SentencePiece.UNUSED
        data: bytes = proto.SerializeToString()
        return data
