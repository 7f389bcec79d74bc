"""`SentencePieceProcessor`: encoding and decoding with sentencepiece's calls.

The methods check and complete the arguments; `loaded` does the work. Names, parameters and defaults are those
of sentencepiece 0.2.3; a test compares them.
"""
# ruff: noqa: N802

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any, TypeVar

from cpbpe.checks import checked_threads, threads_for
from cpbpe.compat.sentencepiece.loaded import Loaded, Options
from cpbpe.compat.sentencepiece.values import (
    as_bool,
    as_float,
    as_ids,
    as_int,
    as_name,
    as_one_id,
    as_pieces,
    as_serialized,
    as_text,
    as_texts,
    is_message,
    not_utf8,
    read_file,
    rounded,
    utf8,
)
from cpbpe.errors import ModelError
from cpbpe.lazy import importing
from cpbpe.model.spec import PieceType

Self = TypeVar("Self", bound="SentencePieceProcessor")
T = TypeVar("T")
ReturnType = Any
"""int, str, bytes, "numpy", "offset_mapping", "proto" or "serialized_proto"."""

RETURN_TYPES = (int, str, bytes, "proto", "serialized_proto", "numpy", "offset_mapping")
DETAILED = ("proto", "serialized_proto", "offset_mapping")
"""The return types that say of each token where it came from: messages, and offset mappings."""
_PLAIN = Options()
_OPTIONS = {flags: Options(*flags) for flags in product((False, True), repeat=4)}


class ThreadPool:
    """A number of threads. No threads are kept, because every call starts those that it needs.

    >>> ThreadPool(4).num_threads()
    4
    """

    def __init__(self, num_threads: int) -> None:
        number = as_int(num_threads, "num_threads")
        if number < 0:
            number = os.cpu_count() or 1
        self._num_threads = max(1, min(number, 1024))

    def num_threads(self) -> int:
        """The number of threads, from 1 to 1024. (A negative number was replaced by that of all cores.)"""
        return self._num_threads


# --- Methods that differ in one value -------------------------------------------------------------------


def _named(method: Any, name: str, about: str) -> Any:
    """A method of the processor, with the name that sentencepiece gives it."""
    method.__name__ = name
    method.__qualname__ = f"SentencePieceProcessor.{name}"
    method.__doc__ = about
    return method


def _returning(method: Any, name: str, kind: ReturnType) -> Any:
    """A method that is another one with a fixed `return_type`."""
    shown = kind if isinstance(kind, str) else {int: "ids", str: "pieces"}[kind]
    about = f"`{name}` with `return_type` {kind if isinstance(kind, str) else kind.__name__}."
    return _named(method, f"{name}As{shown.title().replace('_M', 'M')}", about)


def _is(kind: PieceType) -> Callable[..., Any]:
    def find(self: SentencePieceProcessor, id: Any) -> Any:
        return self._look_up(id, lambda id: self._processor.engine.kind(id) == kind)

    about = f"Whether an id is a {kind.name} piece's; for a list of ids, a list."
    return _named(find, f"Is{kind.name.title()}", about)  # type: ignore[no-any-return]


def _encodes(kind: ReturnType, name: str = "Encode") -> Callable[..., Any]:
    def encode(self: SentencePieceProcessor, input: Any, **kwargs: Any) -> Any:
        if not kwargs:  # (a call without ** is faster)
            return getattr(self, name)(input, return_type=kind)
        return getattr(self, name)(input=input, return_type=kind, **kwargs)

    return _returning(encode, name, kind)  # type: ignore[no-any-return]


def _samples(kind: ReturnType) -> Callable[..., Any]:
    def sample(
        self: SentencePieceProcessor,
        input: Any,
        nbest_size: int | None = None,
        alpha: float | None = None,
        **kwargs: Any,
    ) -> Any:
        return self.Encode(
            input=input, nbest_size=nbest_size, alpha=alpha, return_type=kind, enable_sampling=True, **kwargs
        )

    return _returning(sample, "SampleEncode", kind)  # type: ignore[no-any-return]


def _refuses(kind: ReturnType) -> Callable[..., Any]:
    def refuse(self: SentencePieceProcessor, input: Any, nbest_size: int | None = None, **kwargs: Any) -> Any:
        return self.NBestEncode(input=input, nbest_size=nbest_size, return_type=kind, **kwargs)

    return _returning(refuse, "NBestEncode", kind)  # type: ignore[no-any-return]


def _decodes_to_messages(name: str) -> Callable[..., Any]:
    def decode(self: SentencePieceProcessor, input: Any, **kwargs: Any) -> Any:
        return self.Decode(input=input, return_type="proto", **kwargs)

    return _returning(decode, name, "proto")  # type: ignore[no-any-return]


# --- The class ------------------------------------------------------------------------------------------


class SentencePieceProcessor:
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

    # --- Encoding ---------------------------------------------------------------------------------

    def Encode(
        self,
        input: Any,
        add_bos: bool | None = None,
        add_eos: bool | None = None,
        reverse: bool | None = None,
        emit_unk_piece: bool | None = None,
        enable_sampling: bool | None = None,
        nbest_size: int | None = None,
        alpha: float | None = None,
        num_threads: int | None = None,
        thread_pool: ThreadPool | None = None,
        return_type: ReturnType = None,
        out_type: ReturnType = None,
        return_bytes: bool | None = None,
    ) -> Any:
        """Encode one text, or a list of texts.

        Arguments that are None default to those of the constructor. `out_type` is the old name of
        `return_type`.
        """
        kind = self._kind(return_type, out_type)
        # 1. The usual calls, in a third of the time.
        if (
            type(input) is str
            and return_bytes is enable_sampling is nbest_size is alpha is num_threads is None
            and self._has_plain_defaults()
            and (
                kind is int
                or kind == "numpy"
                or (kind is str and emit_unk_piece is None and self._emit_unk_piece is False)
            )
        ):
            flags = (
                self._add_bos if add_bos is None else add_bos,
                self._add_eos if add_eos is None else add_eos,
                self._reverse if reverse is None else reverse,
            )
            model = self._processor
            if kind is not str or model.makes_text:
                try:
                    ends = model.ends_kept[flags]
                except (KeyError, TypeError):  # they are new, or one is not True or False itself
                    pass
                else:
                    return model.encode_between(input, kind, ends, None)
        if (
            type(input) is str
            and return_bytes is add_bos is add_eos is reverse is num_threads is None
            and self._add_bos is self._add_eos is self._reverse is False
            and self._has_plain_defaults()
        ):
            if enable_sampling is nbest_size is alpha is None:
                if kind in DETAILED and emit_unk_piece is None and self._emit_unk_piece is False:
                    return self._message(input, kind, _PLAIN, False)
            elif (
                (kind is int or (kind is str and emit_unk_piece is None and self._emit_unk_piece is False))
                and enable_sampling is True
                and type(nbest_size) is int
                and nbest_size == -1
                and type(alpha) is float
            ):
                return self._processor.encoded(input, kind, Options(alpha=rounded(alpha)))
        # 2. All arguments, checked and completed.
        if return_bytes is not None and kind != "offset_mapping":
            raise ValueError("return_bytes is for return_type='offset_mapping' only")
        if enable_sampling is None:
            enable_sampling = self._enable_sampling
        if nbest_size is None:
            nbest_size = self._nbest_size
        if alpha is None:
            alpha = self._alpha
        if enable_sampling is True and (nbest_size is None or nbest_size in (0, 1) or alpha is None):
            raise ValueError(
                "with enable_sampling=True, alpha must be a number, and nbest_size -1 or above 1"
            )
        threads = self._threads(num_threads)
        options = self._options((add_bos, add_eos, reverse, emit_unk_piece), kind)
        if enable_sampling is not False or nbest_size != -1 or type(alpha) is not float:
            options = _sampled(options, enable_sampling, nbest_size, alpha)
        # 3. Several texts, or one.
        model = self._processor
        if isinstance(input, list):
            return self._encode_all(model, input, kind, options, threads, thread_pool, return_bytes)
        if kind in DETAILED:
            if return_bytes is None:
                return_bytes = isinstance(input, bytes)
            return self._message(as_text(input), kind, options, as_bool(return_bytes, "return_bytes"))
        return model.encoded(as_text(input), kind, options)

    def _encode_all(
        self,
        model: Loaded,
        input: list[Any],
        kind: ReturnType,
        options: Options,
        num_threads: int,
        thread_pool: ThreadPool | None,
        return_bytes: bool | None,
    ) -> Any:
        as_int(num_threads, "num_threads")
        if kind in DETAILED:
            if return_bytes is not None:
                return_bytes = as_bool(return_bytes, "return_bytes")
        elif kind in (str, bytes) and not input:  # (as in sentencepiece: these do not need a model or a pool)
            return []
        texts = as_texts(input)
        threads = workers(texts, num_threads, thread_pool)
        try:
            if model.engine_or_none is None:  # (as in sentencepiece, the texts are checked before the model)
                _ = [utf8(text) for text in texts]
            if kind not in DETAILED:
                return model.encoded_all(texts, kind, options, threads)
            if return_bytes is None:
                return_bytes = bool(input) and isinstance(input[0], bytes)
            if kind == "offset_mapping" and options.alpha is None and texts:
                return model.mappings(texts, return_bytes, threads)
            return [self._message(text, kind, options, return_bytes) for text in texts]
        except RuntimeError as error:
            if isinstance(error.__cause__, UnicodeEncodeError):
                raise TypeError(f"in a list: {error}") from error.__cause__
            raise

    def _message(self, text: str | bytes, kind: ReturnType, options: Options, return_bytes: bool) -> Any:
        """The tokens of one text as a message or an offset mapping."""
        if kind == "offset_mapping":
            return self._processor.mapping(text, options, return_bytes)
        return message(self._processor.message(text, options), kind)

    EncodeAsPieces = encode_as_pieces = _encodes(str)
    EncodeAsIds = encode_as_ids = _encodes(int)
    EncodeAsNumpy = encode_as_numpy = _encodes("numpy")
    EncodeAsProto = encode_as_proto = _encodes("proto")
    EncodeAsOffsetMapping = encode_as_offset_mapping = _encodes("offset_mapping")
    SampleEncodeAsPieces = sample_encode_as_pieces = _samples(str)
    SampleEncodeAsIds = sample_encode_as_ids = _samples(int)
    SampleEncodeAsNumpy = sample_encode_as_numpy = _samples("numpy")
    SampleEncodeAsProto = sample_encode_as_proto = _samples("proto")

    def NBestEncode(
        self,
        input: Any,
        add_bos: bool | None = None,
        add_eos: bool | None = None,
        reverse: bool | None = None,
        emit_unk_piece: bool | None = None,
        nbest_size: int | None = None,
        return_type: ReturnType = None,
        out_type: ReturnType = None,
    ) -> Any:
        """Refuse: a BPE model has no n-best segmentations (RuntimeError)."""
        kind = self._kind(return_type, out_type)
        if nbest_size is None:
            nbest_size = self._nbest_size
        size: Any = 1 if nbest_size <= 0 else nbest_size
        texts = input if isinstance(input, list) else [input]
        if not texts:
            return []
        if kind == "offset_mapping":
            raise ValueError("n-best encoding has no return_type='offset_mapping'")
        size = as_int(size, "nbest_size")
        self._options((add_bos, add_eos, reverse, emit_unk_piece), kind)
        utf8(as_text(texts[0]))
        return self._processor.refuse_nbest(size)

    NBestEncodeAsPieces = nbest_encode_as_pieces = _refuses(str)
    NBestEncodeAsIds = nbest_encode_as_ids = _refuses(int)
    NBestEncodeAsNumpy = nbest_encode_as_numpy = _refuses("numpy")
    NBestEncodeAsProto = nbest_encode_as_proto = _refuses("proto")

    def ParallelEncode(
        self,
        input: Any,
        add_bos: bool | None = None,
        add_eos: bool | None = None,
        reverse: bool | None = None,
        emit_unk_piece: bool | None = None,
        chunk_len: int | None = None,
        num_threads: int | None = None,
        thread_pool: ThreadPool | None = None,
        return_type: ReturnType = None,
        out_type: ReturnType = None,
    ) -> Any:
        """Encode a long text with several threads; the result is that of `Encode`.

        `chunk_len` must be given, as an integer above 0, but has no effect: texts are cut only where that
        changes nothing.
        """
        kind = self._kind(return_type, out_type)
        threads = self._threads(num_threads)
        if not isinstance(chunk_len, int) or chunk_len <= 0:
            raise ValueError(f"chunk_len must be an integer above 0, not {chunk_len!r}")
        texts = input if isinstance(input, list) else [input]
        if not texts:
            return []
        if kind == "offset_mapping":
            raise ValueError("parallel encoding has no return_type='offset_mapping'")
        as_int(chunk_len, "chunk_len")
        as_int(threads, "num_threads")
        options = self._options((add_bos, add_eos, reverse, emit_unk_piece), kind)
        results = []
        for text in map(as_text, texts):
            workers_of_text = workers([text], threads, thread_pool)
            if kind in DETAILED:
                data = self._processor.message(text, options, in_parallel=True)
                results.append(message(data, kind))
            else:
                results.append(self._processor.encoded(text, kind, options, workers_of_text))
        return results if texts is input else results[0]

    ParallelEncodeAsPieces = parallel_encode_as_pieces = _encodes(str, "ParallelEncode")
    ParallelEncodeAsIds = parallel_encode_as_ids = _encodes(int, "ParallelEncode")
    ParallelEncodeAsNumpy = parallel_encode_as_numpy = _encodes("numpy", "ParallelEncode")
    ParallelEncodeAsProto = parallel_encode_as_proto = _encodes("proto", "ParallelEncode")

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
        # (No comprehension here uses a variable of this method: every access to such a variable is slower.
        # Six of them took a quarter of the time of a short call.)
        # 1. The usual calls.
        if (
            type(input) is list
            and return_type is out_type is num_threads is return_bytes is None
            and input
            and type(self._num_threads) is int
        ):
            if type(input[0]) is int:
                return self._processor.text(input)
            if type(input[0]) is str:
                return self._processor.joined_text(input)
        # 2. The arguments, and what the input holds.
        kind = checked_return_type(return_type, out_type, str)
        if return_bytes is not None and kind != "offset_mapping":
            raise ValueError("return_bytes is for return_type='offset_mapping' only")
        threads = self._threads(num_threads)
        if input is None or (isinstance(input, (str, bytes)) and not input):
            input = []
        elif not _is_several(input):
            input = [input]
        batch = input.ndim > 1 if hasattr(input, "ndim") else len(input) > 0 and _is_several(input[0])
        rows: list[Any] = list(input) if batch else [input]
        first: Any = next((row for row in rows if _is_several(row) and len(row)), ())
        pieces = _holds_pieces(first)
        in_bytes = pieces and isinstance(first[0], bytes)
        if kind is int or kind == "numpy":
            raise ValueError(f"decoding has no return_type={kind!r}")
        # 3. Each sequence. (sentencepiece checks more if there are several.)
        model = self._processor
        if batch:
            as_int(threads, "num_threads")
            if not pieces:
                rows = [row if type(row) is list or hasattr(row, "dtype") else as_ids(row) for row in rows]
            elif model.engine_or_none is None or kind in DETAILED:
                rows = [as_pieces(row) for row in rows]  # (otherwise they are checked as they are decoded)
            threads = workers(rows, threads, thread_pool)
        if kind in DETAILED:
            if batch and not pieces:
                rows = [as_ids(row) for row in rows]
                # All rows are checked before a text that is not UTF-8 raises, and then the model. (As in
                # sentencepiece, no model is needed if there is no row.)
                for row in rows:
                    model.check_ids(row)
                    _ = model.engine
            elif kind == "offset_mapping" and pieces and not isinstance(rows[0], (list, tuple)):
                raise TypeError(f"pieces must be a list or a tuple here, not {type(input).__name__}")
            texts = self._decoded(rows, kind, pieces, bool(return_bytes) or in_bytes)
        elif not pieces:
            if not batch:
                return model.text_bytes(input) if kind is bytes else model.text(input)
            texts = model.texts_bytes(rows, threads) if kind is bytes else model.texts(rows, threads)
        elif kind is bytes or in_bytes:
            texts = list(map(model.joined, rows))
        else:
            texts = model.joined_texts(rows)
        return texts if batch else texts[0]

    def _decoded(self, rows: list[Any], kind: ReturnType, pieces: bool, as_bytes: bool) -> list[Any]:
        """The texts of sequences of ids or pieces as messages or offset mappings."""
        model = self._processor
        if kind == "offset_mapping":
            return [model.decoded_mapping(row, pieces, as_bytes) for row in rows]
        return [message(model.decoded_message(row, pieces), kind) for row in rows]

    def DecodePieces(self, input: Any, return_type: ReturnType = None, **kwargs: Any) -> Any:
        """Decode pieces (or ids)."""
        return self.Decode(input, return_type, **kwargs) if kwargs else self.Decode(input, return_type)

    def DecodeIds(self, input: Any, return_type: ReturnType = None, **kwargs: Any) -> Any:
        """Decode ids (or pieces)."""
        return self.Decode(input, return_type, **kwargs) if kwargs else self.Decode(input, return_type)

    DecodePiecesAsProto = decode_pieces_as_proto = _decodes_to_messages("DecodePieces")
    DecodeIdsAsProto = decode_ids_as_proto = _decodes_to_messages("DecodeIds")

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
            if "\ufffd" not in text:  # U+FFFD may stand for bytes that are not UTF-8
                return text
        return self._processor.normalized(input, with_offsets)

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
        return list(map(model.id_of, as_pieces(piece)))

    def IdToPiece(self, id: Any) -> Any:
        """The piece of an id, or the pieces of a list of ids."""
        model = self._processor
        if type(id) is int and 0 <= id < model.size:
            return model.piece(id)
        return self._look_up(id, model.piece)

    def GetScore(self, id: Any) -> Any:
        """The score of an id, or the scores of a list of ids."""
        return self._look_up(id, lambda id: self._processor.engine.score(id))

    IsUnknown = is_unknown = _is(PieceType.UNKNOWN)
    IsControl = is_control = _is(PieceType.CONTROL)
    IsUnused = is_unused = _is(PieceType.UNUSED)
    IsByte = is_byte = _is(PieceType.BYTE)

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

    # --- Completing the arguments -----------------------------------------------------------------

    def _kind(self, return_type: ReturnType, out_type: ReturnType) -> ReturnType:
        """The kind of result to return."""
        if return_type is None and out_type is None:
            return self._return_type
        return checked_return_type(return_type, out_type, self._return_type)

    def _has_plain_defaults(self) -> bool:
        """Whether the constructor's sampling arguments and `num_threads` need no checks."""
        return (
            self._enable_sampling is False
            and self._nbest_size == -1
            and type(self._alpha) is float
            and type(self._num_threads) is int
        )

    def _threads(self, num_threads: int | None) -> int:
        """The number of threads to use: the argument, or that of the constructor."""
        threads = self._num_threads if num_threads is None else num_threads
        if not isinstance(threads, int):
            raise TypeError(f"num_threads must be an integer, not {type(threads).__name__}")
        return threads

    def _options(self, flags: tuple[Any, Any, Any, Any], kind: ReturnType) -> Options:
        """The options add_bos, add_eos, reverse and emit_unk_piece, completed from the constructor's."""
        add_bos, add_eos, reverse, emit_unk_piece = flags
        if add_bos is None:
            add_bos = self._add_bos
        if add_eos is None:
            add_eos = self._add_eos
        if reverse is None:
            reverse = self._reverse
        if kind is int or kind == "numpy":
            emit_unk_piece = False
        elif emit_unk_piece is None:
            emit_unk_piece = self._emit_unk_piece
        try:
            options = _OPTIONS[add_bos, add_eos, reverse, emit_unk_piece]
        except (KeyError, TypeError):  # one is not True or False itself
            options = Options(
                as_bool(add_bos, "add_bos"),
                as_bool(add_eos, "add_eos"),
                as_bool(reverse, "reverse"),
                as_bool(emit_unk_piece, "emit_unk_piece"),
            )
        if kind in DETAILED and True in options[:4]:
            raise RuntimeError(
                "add_bos, add_eos, reverse and emit_unk_piece do not go with a return_type that is a message "
                "or an offset mapping; leave them out"
            )
        return options

    # --- Other names ------------------------------------------------------------------------------

    encode = Tokenize = tokenize = Encode
    nbest_encode = NBestEncode
    parallel_encode = ParallelEncode
    decode = Detokenize = detokenize = Decode
    piece_size = vocab_size = GetPieceSize
    load = Load
    load_from_file = LoadFromFile
    load_from_serialized_proto = LoadFromSerializedProto
    decode_pieces = DecodePieces
    decode_ids = DecodeIds
    normalize = Normalize
    get_piece_size = GetPieceSize
    piece_to_id = PieceToId
    id_to_piece = IdToPiece
    get_score = GetScore


def checked_return_type(return_type: ReturnType, out_type: ReturnType, default: ReturnType) -> ReturnType:
    """`return_type`, or the value of its old name `out_type`, or the default."""
    if out_type is not None:
        if return_type is not None:
            raise ValueError("out_type is the old name of return_type; give only one of the two")
        return_type = out_type
    if return_type is None:
        return_type = default
    if return_type == "immutable_proto":
        raise ValueError("sentencepiece 0.2.3 has no return_type='immutable_proto' any more; use 'proto'")
    if return_type not in RETURN_TYPES:
        names = ", ".join(kind if isinstance(kind, str) else kind.__name__ for kind in RETURN_TYPES)
        raise ValueError(f"return_type must be one of {names}, not {return_type!r}")
    return return_type


def message(data: bytes, kind: ReturnType) -> Any:
    """A serialized message as the caller wants it: an object, or its bytes."""
    if kind == "serialized_proto":
        return data
    return _message_class().FromString(data)


@cache
def _message_class() -> Any:
    """The class of messages, imported when it is needed, because protobuf takes a while to import."""
    with importing:
        from cpbpe.compat.sentencepiece.sentencepiece_pb2 import SentencePieceText
    return SentencePieceText


def workers(items: list[Any], num_threads: int, thread_pool: ThreadPool | None) -> int:
    """How many threads to use for several texts or sequences of ids. A pool's number comes first."""
    if thread_pool is not None:
        if not isinstance(thread_pool, ThreadPool):
            raise RuntimeError(f"thread_pool must be a ThreadPool, not {type(thread_pool).__name__}")
        num_threads = thread_pool.num_threads()
    if num_threads < 0:
        return threads_for(items, None)
    return checked_threads(max(num_threads, 1))


def _sampled(options: Options, enable_sampling: Any, nbest_size: Any, alpha: Any) -> Options:
    """The options, with those of sampling if sampling is enabled."""
    enabled = as_bool(enable_sampling, "enable_sampling")
    size, chance = as_int(nbest_size, "nbest_size"), as_float(alpha, "alpha")
    return options._replace(alpha=chance, nbest_size=size) if enabled else options


def _is_several(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes))


def _holds_pieces(values: Any) -> bool:
    return len(values) > 0 and not hasattr(values, "dtype") and isinstance(values[0], (str, bytes))


def _refuse_model(kwargs: dict[str, Any]) -> None:
    for name in ("model_file", "model_proto"):
        if name in kwargs:
            raise ValueError(f"{name} is what this loads; use {name} with the class itself")
