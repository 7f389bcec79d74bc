"""`SentencePieceProcessor`: encoding and decoding with sentencepiece's calls.

This file has the methods that do not encode; those that do are in `encode_calls`. They check and complete the
arguments; `loaded` does the work. Names, parameters and defaults are those of sentencepiece 0.2.3; a test
compares them.
"""
# ruff: noqa: N802

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from cpbpe.compat.sentencepiece.data import is_message, read_file
from cpbpe.compat.sentencepiece.encode_calls import (
    MESSAGES,
    EncodeCalls,
    ReturnType,
    checked_return_type,
    message,
    workers,
)
from cpbpe.compat.sentencepiece.loaded import Loaded
from cpbpe.compat.sentencepiece.normalizer import normalized
from cpbpe.compat.sentencepiece.settings import ThreadPool
from cpbpe.compat.sentencepiece.values import (
    as_ids,
    as_int,
    as_name,
    as_one_id,
    as_pieces,
    as_serialized,
    not_utf8,
)
from cpbpe.errors import ModelError
from cpbpe.model.spec import PieceType

Self = TypeVar("Self", bound="SentencePieceProcessor")
T = TypeVar("T")


class SentencePieceProcessor(EncodeCalls):
    """Encodes and decodes with a BPE model; its methods are those of sentencepiece's class of this name.

    >>> sp = SentencePieceProcessor(model_file="tokenizer.model")
    >>> sp.encode("Hello world"), sp.encode(["Hi", "Hello"], out_type=str)
    ([22557, 1526], [['▁Hi'], ['▁Hello']])
    >>> sp.decode([22557, 1526]), sp.piece_to_id("▁Hello"), sp.bos_id()
    ('Hello world', 22557, 1)
    """

    def __init__(
        self,
        model_file: str | bytes | None = None,
        model_proto: Any = None,
        out_type: ReturnType = None,
        add_bos: bool = False,
        add_eos: bool = False,
        reverse: bool = False,
        emit_unk_piece: bool = False,
        enable_sampling: bool = False,
        nbest_size: int = -1,
        alpha: float = 0.1,
        num_threads: int = -1,
        return_type: ReturnType = None,
    ) -> None:
        self._processor = Loaded()
        self._return_type = checked_return_type(return_type, out_type, int)
        self._add_bos = add_bos
        self._add_eos = add_eos
        self._reverse = reverse
        self._emit_unk_piece = emit_unk_piece
        self._enable_sampling = enable_sampling
        self._nbest_size = nbest_size
        self._alpha = alpha
        self._num_threads = num_threads
        if model_file or model_proto:
            self.Load(model_file=model_file, model_proto=model_proto)

    # --- Loading ----------------------------------------------------------------------------------

    @classmethod
    def from_file(cls: type[Self], model_file: str | bytes, **kwargs: Any) -> Self:
        """Load a model from its file. The other arguments are those of the constructor."""
        _refuse_model(kwargs)
        self = cls(**kwargs)
        self.LoadFromFile(model_file)
        return self

    @classmethod
    def from_proto(cls: type[Self], model_proto: Any, **kwargs: Any) -> Self:
        """Load a model from the bytes of its file, or from a ModelProto; otherwise as `from_file`."""
        _refuse_model(kwargs)
        self = cls(**kwargs)
        self.LoadFromSerializedProto(model_proto)
        return self

    def Load(self, model_file: str | bytes | None = None, model_proto: Any = None) -> bool:
        """Load another model."""
        if model_file and model_proto:
            raise ValueError("model_file and model_proto exclude each other; give one of them")
        if model_proto:
            return self.LoadFromSerializedProto(model_proto)
        if model_file:
            return self.LoadFromFile(model_file)
        raise ValueError("give model_file or model_proto")

    def LoadFromFile(self, filename: str | bytes) -> bool:
        """Load another model from its file."""
        return self._load(read_file(as_name(filename, "model_file")))

    def LoadFromSerializedProto(self, serialized: Any) -> bool:
        """Load another model from the bytes of its file, or from a ModelProto."""
        return self._load(as_serialized(serialized, "model_proto"))

    def _load(self, data: bytes) -> bool:
        try:
            self._processor = Loaded.of(data)
        except ModelError as error:
            if is_message(data):  # in this case sentencepiece drops the previous model
                self._processor = Loaded(data)
            raise RuntimeError(str(error)) from error
        return True

    # --- Decoding ---------------------------------------------------------------------------------

    def Decode(
        self,
        input: Any,
        return_type: ReturnType = None,
        out_type: ReturnType = None,
        num_threads: int | None = None,
        thread_pool: ThreadPool | None = None,
        return_bytes: bool | None = None,
    ) -> Any:
        """Decode ids or pieces: one, a sequence, or a sequence of sequences.

        Pieces that are bytes are decoded to bytes. The first item of `input`, or of the first sequence in it
        that is not empty, decides what it holds.
        """
        if (
            type(input) is list
            and return_type is out_type is num_threads is return_bytes is None
            and input
            and type(self._num_threads) is int
        ):  # the usual calls
            if type(input[0]) is int:
                return self._processor.text(input)
            if type(input[0]) is str:
                return self._processor.joined_text(input)
        kind = checked_return_type(return_type, out_type, str)
        if return_bytes is not None and kind != "offset_mapping":
            raise ValueError("return_bytes is for return_type='offset_mapping' only")
        threads = self._threads(num_threads)
        if input is None or (isinstance(input, (str, bytes)) and not input):
            input = []
        elif not _is_several(input):
            input = [input]
        batch = input.ndim > 1 if hasattr(input, "ndim") else len(input) > 0 and _is_several(input[0])
        first = next((row for row in input if _is_several(row) and len(row)), ()) if batch else input
        pieces = _holds_pieces(first)
        if kind is int or kind == "numpy":
            raise ValueError(f"decoding has no return_type={kind!r}")
        model = self._processor
        if batch:
            return self._decode_all(model, input, kind, pieces, threads, thread_pool, bool(return_bytes))
        if kind in MESSAGES:
            if kind == "offset_mapping" and pieces and not isinstance(input, (list, tuple)):
                raise TypeError(f"pieces must be a list or a tuple here, not {type(input).__name__}")
            in_bytes = bool(return_bytes) or (pieces and isinstance(input[0], bytes))
            return self._decoded(model, input, kind, pieces, in_bytes)
        if pieces:
            in_bytes = kind is bytes or isinstance(input[0], bytes)
            return model.joined(input) if in_bytes else model.joined_text(input)
        return model.text_bytes(input) if kind is bytes else model.text(input)

    def _decode_all(
        self,
        model: Loaded,
        input: Any,
        kind: ReturnType,
        pieces: bool,
        num_threads: int,
        thread_pool: ThreadPool | None,
        return_bytes: bool,
    ) -> Any:
        as_int(num_threads, "num_threads")
        rows: list[Any] = list(input)
        if pieces:
            if model.engine_or_none is None or kind in MESSAGES:
                rows = [as_pieces(row) for row in rows]  # (otherwise they are checked as they are decoded)
            first = next(row for row in input if len(row))
            in_bytes = isinstance(first[0], bytes)
        else:
            rows = [row if type(row) is list or hasattr(row, "dtype") else as_ids(row) for row in rows]
        threads = workers(rows, num_threads, thread_pool)
        if kind in MESSAGES:
            return_bytes = return_bytes or (pieces and in_bytes)
            if not pieces:
                rows = [as_ids(row) for row in rows]
                for row in rows:  # one that is wrong comes before any that cannot be shown
                    model.check_ids(row)
                    _ = model.engine
            return [self._decoded(model, row, kind, pieces, return_bytes) for row in rows]
        if pieces:
            if kind is bytes or in_bytes:
                return [model.joined(row) for row in rows]
            texts = model.joined_texts(rows)
            return [model.joined_text(row) for row in rows] if texts is None else texts
        return model.texts_bytes(rows, threads) if kind is bytes else model.texts(rows, threads)

    def _decoded(self, model: Loaded, row: Any, kind: ReturnType, pieces: bool, as_bytes: bool) -> Any:
        """What ids or pieces are decoded to as a message or an offset mapping."""
        if kind == "offset_mapping":
            return model.decoded_mapping(row, pieces, as_bytes)
        return message(model.decoded_message(row, pieces), kind)

    def DecodePieces(self, input: Any, return_type: ReturnType = None, **kwargs: Any) -> Any:
        """Decode pieces (or ids)."""
        return self.Decode(input, return_type, **kwargs) if kwargs else self.Decode(input, return_type)

    def DecodeIds(self, input: Any, return_type: ReturnType = None, **kwargs: Any) -> Any:
        """Decode ids (or pieces)."""
        return self.Decode(input, return_type, **kwargs) if kwargs else self.Decode(input, return_type)

    def DecodePiecesAsProto(self, input: Any, **kwargs: Any) -> Any:
        """Decode pieces to SentencePieceText messages."""
        return self.Decode(input=input, return_type="proto", **kwargs)

    def DecodeIdsAsProto(self, input: Any, **kwargs: Any) -> Any:
        """Decode ids to SentencePieceText messages."""
        return self.Decode(input=input, return_type="proto", **kwargs)

    # --- Normalizing ------------------------------------------------------------------------------

    def Normalize(self, input: Any, with_offsets: bool | None = None) -> Any:
        """The normalized text or texts.

        With offsets: a tuple of the text and, for each of its characters (bytes, for bytes) and for its end,
        the position in the input that it came from.
        """
        engine = self._processor.engine_or_none
        if engine is not None and type(input) is str and not with_offsets:  # the usual call
            try:
                text = engine.normalize(input)
            except UnicodeEncodeError as error:
                raise not_utf8(error) from error
            if "\ufffd" not in text:  # which may stand for what is not UTF-8
                return text
        return normalized(self._processor, input, with_offsets)

    # --- The vocabulary ---------------------------------------------------------------------------

    def GetPieceSize(self) -> int:
        """How many pieces there are; 0 without a model."""
        return self._processor.size

    def PieceToId(self, piece: Any) -> Any:
        """The id of a piece, or the ids of a list of pieces; the id of unk if there is no such piece."""
        model = self._processor
        if isinstance(piece, (str, bytes, bytearray)):
            try:
                return model.id_of(piece.encode() if isinstance(piece, str) else bytes(piece))
            except UnicodeEncodeError as error:
                raise TypeError(f"the piece: {error}") from None
        return [model.id_of(piece) for piece in as_pieces(piece)]

    def IdToPiece(self, id: Any) -> Any:
        """The piece of an id, or the pieces of a list of ids."""
        model = self._processor
        if type(id) is int and 0 <= id < model.size:
            return model.piece(id)
        return self._look_up(id, model.piece)

    def GetScore(self, id: Any) -> Any:
        """The score of an id, or the scores of a list of ids."""
        return self._look_up(id, lambda id: self._processor.engine.score(id))

    def IsUnknown(self, id: Any) -> Any:
        """Whether an id is the UNKNOWN piece's; a list for a list, here and below."""
        return self._is(id, PieceType.UNKNOWN)

    def IsControl(self, id: Any) -> Any:
        """Whether an id is a CONTROL piece's."""
        return self._is(id, PieceType.CONTROL)

    def IsUnused(self, id: Any) -> Any:
        """Whether an id is an UNUSED piece's."""
        return self._is(id, PieceType.UNUSED)

    def IsByte(self, id: Any) -> Any:
        """Whether an id is a BYTE piece's."""
        return self._is(id, PieceType.BYTE)

    def _is(self, id: Any, type: PieceType) -> Any:
        return self._look_up(id, lambda id: self._processor.engine.kind(id) == type)

    def _look_up(self, id: Any, find: Callable[[int], T]) -> T | list[T]:
        single = as_one_id(id)
        check = self._processor.check_ids
        if single is not None:
            return find(check([single])[0])
        return [find(id) for id in check(as_ids(id))]

    def unk_id(self) -> int:
        """The id of the piece that has unk's name, if it is UNKNOWN; else -1."""
        return self._processor.unk_id

    def bos_id(self) -> int:
        """The id of the piece that has bos's name, if it is CONTROL; else -1."""
        return self._processor.bos_id

    def eos_id(self) -> int:
        """The id of the piece that has eos's name, if it is CONTROL; else -1."""
        return self._processor.eos_id

    def pad_id(self) -> int:
        """The id of the piece that has pad's name, if it is CONTROL; else -1."""
        return self._processor.pad_id

    def __len__(self) -> int:
        return self.GetPieceSize()

    def __getitem__(self, piece: Any) -> Any:
        return self.PieceToId(piece)

    # --- The model --------------------------------------------------------------------------------

    def serialized_model_proto(self) -> bytes:
        """The model file."""
        return self._processor.serialized()

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state.pop("_processor", None)
        state["model_proto"] = self.serialized_model_proto()
        return state

    def __setstate__(self, state: Any) -> None:
        # Older pickles of sentencepiece hold only the model.
        attributes = dict(state) if isinstance(state, dict) else {"model_proto": state}
        SentencePieceProcessor.__init__(self)
        self.LoadFromSerializedProto(attributes.pop("model_proto"))
        self.__dict__.update(attributes)

    # --- Other names ------------------------------------------------------------------------------

    decode = Detokenize = detokenize = Decode
    piece_size = vocab_size = GetPieceSize
    load = Load
    load_from_file = LoadFromFile
    load_from_serialized_proto = LoadFromSerializedProto
    decode_pieces = DecodePieces
    decode_ids = DecodeIds
    decode_pieces_as_proto = DecodePiecesAsProto
    decode_ids_as_proto = DecodeIdsAsProto
    normalize = Normalize
    get_piece_size = GetPieceSize
    piece_to_id = PieceToId
    id_to_piece = IdToPiece
    get_score = GetScore
    is_unknown = IsUnknown
    is_control = IsControl
    is_unused = IsUnused
    is_byte = IsByte


def _is_several(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes))


def _holds_pieces(values: Any) -> bool:
    return len(values) > 0 and not hasattr(values, "dtype") and isinstance(values[0], (str, bytes))


def _refuse_model(kwargs: dict[str, Any]) -> None:
    for name in ("model_file", "model_proto"):
        if name in kwargs:
            raise ValueError(f"{name} is what this loads; use {name} with the class itself")
