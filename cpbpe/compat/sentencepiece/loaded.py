"""The model that a `SentencePieceProcessor` holds, or none, and the work behind its calls.

The types of the arguments have already been checked (`values`). Errors are those that sentencepiece raises:
RuntimeError if there is no model or the model cannot do something, ValueError for a special piece that the
model lacks, IndexError for an id outside the vocabulary.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from itertools import pairwise
from math import isfinite
from typing import Any, NamedTuple, NoReturn

from cpbpe.checks import bounds
from cpbpe.compat.sentencepiece.normalizer import Normalizing
from cpbpe.compat.sentencepiece.results import Analysis, of_decoded
from cpbpe.compat.sentencepiece.values import (
    as_ids,
    as_pieces,
    in_utf8,
    is_utf8,
    not_utf8,
    numpy,
    packed_ids,
    unchangeable,
    utf8,
)
from cpbpe.engine import Dropout, Ends, between
from cpbpe.engine.choice import load_engine
from cpbpe.engine.protocol import Aligned, Engine
from cpbpe.errors import ModelError
from cpbpe.lazy import importing, kept
from cpbpe.model.formats import sentencepiece as model_file
from cpbpe.model.spec import PieceType
from cpbpe.tokenizer.options import new_seed

MAX_NBEST_SIZE = 512

_seeds = new_seed
"""Where samples have their seeds from. A forked process gets others, unless `set_seed` was called."""


def set_seed(seed: int) -> None:
    """Make sampling reproducible from now on."""
    global _seeds
    _seeds = partial(random.Random(seed).getrandbits, 64)


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


def _mapping(aligned: Aligned) -> dict[str, Any]:
    ids, pieces, offsets = aligned
    return {"ids": ids, "pieces": pieces, "offsets": offsets}


class Loaded(Normalizing):
    """A model and its operations; `Loaded()` is the state before a model is loaded."""

    def __init__(self, data: bytes = b"", engine: Engine | None = None):
        super().__init__(engine)
        self.data = data
        self.size = 0 if engine is None else engine.size
        specials = [None] * 4 if engine is None else engine.specials
        self.unk_id, self.bos_id, self.eos_id, self.pad_id = (-1 if id is None else id for id in specials)
        self.ends_kept: dict[tuple[bool, bool, bool], Ends | None] = {}
        """What goes around a text by `add_bos`, `add_eos`, `reverse`, once it is known; None: nothing."""

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
    def makes_text(self) -> bool:
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

    def encoded(self, text: str | bytes, kind: Any, options: Options, threads: int = 1) -> Any:
        """A text encoded to ids (`kind` is int), an array of ids ("numpy"), or pieces (str, bytes)."""
        dropout = self._dropout(options)
        if kind is bytes or (kind is str and (options.emit_unk_piece or not self.makes_text)):
            pieces = self._byte_pieces(text, options, dropout)
            return pieces if kind is bytes else [piece.decode() for piece in pieces]
        return self.encode_between(text, kind, self._ends_for(options, [text]), dropout, threads)

    def encode_between(
        self, text: str | bytes, kind: Any, ends: Ends | None, dropout: Dropout | None, threads: int = 1
    ) -> Any:
        """`encoded` with checked options; not for pieces that may not be UTF-8."""
        try:
            if kind is str:
                return self.engine.encode_pieces(text, ends, dropout)
            if kind is int and (threads == 1 or dropout is not None):
                return self.engine.encode(text, ends, dropout)
            np = numpy()
            if dropout is not None:
                return unchangeable(np.array(self.engine.encode(text, ends, dropout), np.int32))
            ids = self.engine.encode_array(text, threads, ends)
        except UnicodeEncodeError as error:
            raise not_utf8(error) from error
        return ids.tolist() if kind is int else unchangeable(ids)

    def _byte_pieces(self, text: str | bytes, options: Options, dropout: Dropout | None) -> list[bytes]:
        """The pieces of a text as bytes."""
        ids = in_utf8(self.engine.encode, text, None, dropout)
        is_known = self.unknown_id not in ids
        # (Getting ids is faster than getting tokens, so tokens are only for unknown characters.)
        pieces = [self.all_pieces[id] for id in ids] if is_known else self._tokens(text, dropout)[1]
        if options.emit_unk_piece:
            if self.unk_id < 0:
                raise ValueError("emit_unk_piece=True, but this model has no unk piece of type UNKNOWN")
            if not is_known:
                unk = self.all_pieces[self.unk_id]
                pieces = [unk if self.id_of(piece) == self.unk_id else piece for piece in pieces]
        front, back, reverse = self._ends_for(options, []) or (None, None, False)
        first, last = (None if id is None else self.engine.piece(id) for id in (front, back))
        return between(pieces, first, last, reverse)

    def encoded_all(self, texts: list[str | bytes], kind: Any, options: Options, threads: int) -> list[Any]:
        """`encoded` for many texts."""
        if options.alpha is not None or not texts or kind not in (int, "numpy"):
            return [self.encoded(text, kind, options) for text in texts]
        ends = self._ends_for(options, texts)
        if kind is int:
            return in_utf8(self.engine.encode_batch, texts, threads, ends)
        with importing:
            import numpy  # noqa: F401
        ids, offsets = in_utf8(self.engine.encode_arrays, texts, threads, ends)
        return [unchangeable(ids[begin:end].copy()) for begin, end in pairwise(offsets.tolist())]

    def mapping(self, text: str | bytes, options: Options, as_bytes: bool) -> dict[str, Any]:
        """The offset mapping of a text."""
        dropout = self._dropout(options)
        # (sentencepiece counts the characters of broken text in its own way.)
        if not (as_bytes or (type(text) is str and self.makes_text)):
            data = utf8(text)
            return Analysis(data, self._tokens(data, dropout)).mapping(as_bytes, with_text=False)
        return _mapping(in_utf8(self.engine.align, text, not as_bytes, as_bytes, dropout))

    def mappings(self, texts: list[str | bytes], as_bytes: bool, threads: int) -> list[dict[str, Any]]:
        """The offset mappings of many texts."""
        if not as_bytes and self.makes_text and all(isinstance(text, str) for text in texts):
            return list(map(_mapping, in_utf8(self.engine.align_batch, texts, threads, True)))
        return [self.mapping(text, Options(), as_bytes) for text in texts]

    def message(self, text: str | bytes, options: Options, in_parallel: bool = False) -> bytes:
        """The message of a text, serialized."""
        dropout = self._dropout(options)
        engine = self.engine
        if self.calls is None:
            data = utf8(text)
            return Analysis(data, self._tokens(data, dropout)).serialized(in_parallel)
        message: bytes = in_utf8(self.calls.message, engine, text, in_parallel, dropout)
        return message

    def refuse_nbest(self, nbest_size: int) -> NoReturn:
        """Raise the error that says why there are no n-best segmentations."""
        _ = self.engine
        if nbest_size > MAX_NBEST_SIZE:
            raise RuntimeError(f"nbest_size must be at most {MAX_NBEST_SIZE}, not {nbest_size}")
        raise RuntimeError(
            "a BPE model has one segmentation of a text and no n-best; "
            "enable_sampling=True gives other segmentations (BPE-dropout)"
        )

    def _dropout(self, options: Options) -> Dropout | None:
        """The probability that a merge is skipped, and a seed; None if no merge is skipped."""
        alpha, nbest_size = options.alpha, options.nbest_size
        if alpha is None:
            return None
        _ = self.engine
        if not isfinite(alpha) or alpha < 0:
            raise RuntimeError(f"alpha must be a number from 0 to 1, not {alpha}")
        if nbest_size > MAX_NBEST_SIZE:
            raise RuntimeError(f"nbest_size must be at most {MAX_NBEST_SIZE}, not {nbest_size}")
        return (min(alpha, 1.0), _seeds()) if alpha else None

    def _tokens(self, text: str | bytes, dropout: Dropout | None) -> Aligned:
        """Ids, pieces and spans, in bytes."""
        return in_utf8(self.engine.align, text, False, True, dropout)

    def _ends_for(self, options: Options, texts: list[str | bytes]) -> Ends | None:
        """The ids around a text, as engines take them. (Errors in texts come before errors in options.)"""
        flags = options[:3]
        if flags in self.ends_kept:
            return self.ends_kept[flags]
        around: list[int | None] = []
        for name, wanted, id in (
            ("bos", options.add_bos, self.bos_id),
            ("eos", options.add_eos, self.eos_id),
        ):
            if wanted and id < 0:
                for text in texts:
                    in_utf8(self.engine.encode, text)
                raise ValueError(f"add_{name}=True, but this model has no {name} piece of type CONTROL")
            around.append(id if wanted else None)
        self.ends_kept[flags] = (around[0], around[1], options.reverse) if any(flags) else None
        return self.ends_kept[flags]

    # --- Decoding ---------------------------------------------------------------------------------

    def text(self, ids: Any) -> str:
        """The text of a sequence of integers."""
        packed = ids if type(ids) is list else packed_ids(ids)
        text = None if self.engine_or_none is None or packed is None else self.engine_or_none.decode(packed)
        if text is None:  # the ids have to be converted, or some are invalid
            numbers = self.check_ids(as_ids(ids))
            text = self.engine.decode(numbers)
            assert text is not None
        return self.joined(self._pieces(ids)).decode() if self._is_repaired(text) else text

    def text_bytes(self, ids: Any) -> bytes:
        """The same as bytes."""
        numbers = self.check_ids(as_ids(ids)) if self.engine_or_none is None or type(ids) is not list else ids
        try:
            return self.text(numbers).encode()
        except UnicodeDecodeError:
            return self.joined(self._pieces(numbers))

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

    def _pieces(self, ids: Any) -> list[bytes]:
        """The pieces of a sequence of integers."""
        numbers = self.check_ids(as_ids(ids))
        _ = self.engine
        return [self.all_pieces[id] for id in numbers]

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
        if text is None or "\ufffd" in text:  # U+FFFD may stand for bytes that are not UTF-8
            text = self.joined(pieces).decode()
        return text

    def joined_texts(self, rows: list[Any]) -> list[str]:
        """The texts of many lists of pieces."""
        texts: list[str] | None = None
        if self.calls is not None:
            with suppress(UnicodeEncodeError):
                texts = self.calls.decode_pieces_all(self.engine, rows)
        if texts is None or any("\ufffd" in text for text in texts):  # one is invalid, or may be
            texts = [self.joined_text(row) for row in rows]
        return texts

    def _decoded(self, tokens: Any, are_pieces: bool) -> Analysis:
        """Everything about a text that is decoded from ids or pieces."""
        pieces = as_pieces(tokens) if are_pieces else self._pieces(tokens)
        return of_decoded(self.spec, self.joined(pieces), pieces)

    def decoded_mapping(self, tokens: Any, are_pieces: bool, as_bytes: bool) -> dict[str, Any]:
        """The offset mapping of a text that is decoded from ids or pieces."""
        if type(tokens) is list and self.calls is not None:
            found = self.calls.decode_mapping(self.engine, tokens, as_bytes)
            if found is not None:
                return {"text": found[0], **_mapping(found[1:])}
        return self._decoded(tokens, are_pieces).mapping(as_bytes, with_text=True)

    def decoded_message(self, tokens: Any, are_pieces: bool) -> bytes:
        """The message of a text that is decoded from ids or pieces, serialized."""
        found: bytes | None = None
        if type(tokens) is list and self.calls is not None:
            found = self.calls.decode_message(self.engine, tokens)
        return self._decoded(tokens, are_pieces).serialized() if found is None else found

    def check_ids(self, ids: list[int]) -> list[int]:
        """The ids, if all are in the vocabulary."""
        if not ids or (min(ids) >= 0 and max(ids) < self.size):
            return ids
        for position, id in enumerate(ids):
            if not 0 <= id < self.size:
                reason = bounds(self.size) if self.size else "no model is loaded"
                raise IndexError(f"id {id} at position {position} is outside the vocabulary: {reason}")
        return ids

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
        """The model as sentencepiece would write it, which is nearly always as it was read."""
        if not self.data:
            return b""
        with importing:
            from cpbpe.compat.sentencepiece.sentencepiece_model_pb2 import ModelProto
        # In sentencepiece, field 4 is unknown, so it stays where it is, as often as it is there.
        proto = ModelProto.FromString(self.data)
        if proto.trainer_spec.byte_fallback:
            # (Only in these messages, pieces are bytes, and need not be UTF-8.)
            pieces = model_file.messages().ModelProto.FromString(self.data).pieces
            for id, piece in enumerate(pieces):
                if piece.piece == b"\0":
                    proto.pieces[id].type = ModelProto.SentencePiece.UNUSED
        data: bytes = proto.SerializeToString()
        return data
