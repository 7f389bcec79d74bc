"""The methods of `SentencePieceProcessor` that encode; the others are in `processor`.

They check and complete the arguments; `loaded` does the work. Names, parameters and defaults are those of
sentencepiece 0.2.3; a test compares them.
"""
# ruff: noqa: N802

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

from cpbpe.checks import checked_threads, threads_for
from cpbpe.compat.sentencepiece.loaded import Loaded, Options
from cpbpe.compat.sentencepiece.settings import ThreadPool
from cpbpe.compat.sentencepiece.values import (
    as_bool,
    as_float,
    as_int,
    as_text,
    as_texts,
    rounded,
    utf8,
)
from cpbpe.lazy import imported

ReturnType = Any
"""int, str, bytes, "numpy", "offset_mapping", "proto" or "serialized_proto"."""

RETURN_TYPES = (int, str, bytes, "proto", "serialized_proto", "numpy", "offset_mapping")
MESSAGES = ("proto", "serialized_proto", "offset_mapping")
_PLAIN = Options()
_OPTIONS = {flags: Options(*flags) for flags in product((False, True), repeat=4)}


class EncodeCalls:
    """Encoding with sentencepiece's calls."""

    _processor: Loaded
    _return_type: ReturnType
    _add_bos: bool
    _add_eos: bool
    _reverse: bool
    _emit_unk_piece: bool
    _enable_sampling: bool
    _nbest_size: int
    _alpha: float
    _num_threads: int

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
            and self._samples_nothing()
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
            try:
                ends = self._processor.ends_kept.get(flags)
            except TypeError:  # something other than truth values
                ends = None
            if ends is not None:
                return self._processor.encode_between(input, kind, ends)
        if (
            type(input) is str
            and return_bytes is add_bos is add_eos is reverse is num_threads is None
            and self._add_bos is self._add_eos is self._reverse is False
            and self._samples_nothing()
        ):
            if enable_sampling is nbest_size is alpha is None:
                if kind in MESSAGES and emit_unk_piece is None and self._emit_unk_piece is False:
                    return self._message(input, kind, _PLAIN, False)
            elif (
                (kind is int or (kind is str and emit_unk_piece is None and self._emit_unk_piece is False))
                and enable_sampling is True
                and type(nbest_size) is int
                and nbest_size == -1
                and type(alpha) is float
            ):
                if kind is int:
                    return self._processor.sampled_ids(input, rounded(alpha), -1)
                return self._processor.pieces(input, Options(alpha=rounded(alpha)))
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
        if kind in MESSAGES:
            _refuse_options(options)
            if return_bytes is None:
                return_bytes = isinstance(input, bytes)
            return self._message(as_text(input), kind, options, as_bool(return_bytes, "return_bytes"))
        return self._encode_one(model, as_text(input), kind, options)

    def _encode_one(self, model: Loaded, text: str | bytes, kind: ReturnType, options: Options) -> Any:
        if kind is int:
            return model.ids(text, options)
        if kind is str:
            return model.pieces(text, options)
        if kind is bytes:
            return model.byte_pieces(text, options)
        return model.array(text, options)

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
        if kind in MESSAGES:
            _refuse_options(options)
            if return_bytes is not None:
                return_bytes = as_bool(return_bytes, "return_bytes")
        elif kind in (str, bytes) and not input:
            return []
        texts = as_texts(input)
        threads = workers(texts, num_threads, thread_pool)
        try:
            if model.engine_or_none is None:
                _ = [utf8(text) for text in texts]
            if kind is int:
                return model.ids_of_all(texts, options, threads)
            if kind == "numpy":
                return model.arrays(texts, options, threads)
            if kind not in MESSAGES:
                return [self._encode_one(model, text, kind, options) for text in texts]
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

    def EncodeAsPieces(self, input: Any, **kwargs: Any) -> Any:
        """Encode to pieces."""
        if not kwargs:
            return self.Encode(input, return_type=str)
        return self.Encode(input=input, return_type=str, **kwargs)

    def EncodeAsIds(self, input: Any, **kwargs: Any) -> Any:
        """Encode to ids."""
        if not kwargs:
            return self.Encode(input, return_type=int)
        return self.Encode(input=input, return_type=int, **kwargs)

    def EncodeAsNumpy(self, input: Any, **kwargs: Any) -> Any:
        """Encode to numpy arrays of ids."""
        if not kwargs:
            return self.Encode(input, return_type="numpy")
        return self.Encode(input=input, return_type="numpy", **kwargs)

    def EncodeAsProto(self, input: Any, **kwargs: Any) -> Any:
        """Encode to SentencePieceText messages."""
        return self.Encode(input=input, return_type="proto", **kwargs)

    def EncodeAsOffsetMapping(self, input: Any, **kwargs: Any) -> Any:
        """Encode to dicts of ids, pieces and offsets."""
        return self.Encode(input=input, return_type="offset_mapping", **kwargs)

    def SampleEncodeAsPieces(
        self, input: Any, nbest_size: int | None = None, alpha: float | None = None, **kwargs: Any
    ) -> Any:
        """Sample a segmentation, as pieces."""
        return self._sample(input, nbest_size, alpha, str, kwargs)

    def SampleEncodeAsIds(
        self, input: Any, nbest_size: int | None = None, alpha: float | None = None, **kwargs: Any
    ) -> Any:
        """Sample a segmentation, as ids."""
        return self._sample(input, nbest_size, alpha, int, kwargs)

    def SampleEncodeAsNumpy(
        self, input: Any, nbest_size: int | None = None, alpha: float | None = None, **kwargs: Any
    ) -> Any:
        """Sample a segmentation, as a numpy array."""
        return self._sample(input, nbest_size, alpha, "numpy", kwargs)

    def SampleEncodeAsProto(
        self, input: Any, nbest_size: int | None = None, alpha: float | None = None, **kwargs: Any
    ) -> Any:
        """Sample a segmentation, as a message."""
        return self._sample(input, nbest_size, alpha, "proto", kwargs)

    def _sample(
        self, input: Any, nbest_size: Any, alpha: Any, kind: ReturnType, kwargs: dict[str, Any]
    ) -> Any:
        return self.Encode(
            input=input, nbest_size=nbest_size, alpha=alpha, return_type=kind, enable_sampling=True, **kwargs
        )

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
        flags = (add_bos, add_eos, reverse, emit_unk_piece)
        for text in input if isinstance(input, list) else [input]:
            self._refuse_nbest(text, kind, size, flags)
        return []  # for an empty list

    def _refuse_nbest(
        self, text: Any, kind: ReturnType, nbest_size: Any, flags: tuple[Any, Any, Any, Any]
    ) -> None:
        if kind == "offset_mapping":
            raise ValueError("n-best encoding has no return_type='offset_mapping'")
        size = as_int(nbest_size, "nbest_size")
        options = self._options(flags, kind)
        if kind in MESSAGES:
            _refuse_options(options)
        utf8(as_text(text))
        self._processor.refuse_nbest(size)

    def NBestEncodeAsPieces(self, input: Any, nbest_size: int | None = None, **kwargs: Any) -> Any:
        """Refuse, see `NBestEncode`."""
        return self.NBestEncode(input=input, nbest_size=nbest_size, return_type=str, **kwargs)

    def NBestEncodeAsIds(self, input: Any, nbest_size: int | None = None, **kwargs: Any) -> Any:
        """Refuse, see `NBestEncode`."""
        return self.NBestEncode(input=input, nbest_size=nbest_size, return_type=int, **kwargs)

    def NBestEncodeAsNumpy(self, input: Any, nbest_size: int | None = None, **kwargs: Any) -> Any:
        """Refuse, see `NBestEncode`."""
        return self.NBestEncode(input=input, nbest_size=nbest_size, return_type="numpy", **kwargs)

    def NBestEncodeAsProto(self, input: Any, nbest_size: int | None = None, **kwargs: Any) -> Any:
        """Refuse, see `NBestEncode`."""
        return self.NBestEncode(input=input, nbest_size=nbest_size, return_type="proto", **kwargs)

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

        `chunk_len` is checked but has no effect: texts are cut only where that changes nothing.
        """
        kind = self._kind(return_type, out_type)
        threads = self._threads(num_threads)
        if not isinstance(chunk_len, int) or chunk_len <= 0:
            raise ValueError(f"chunk_len must be an integer above 0, not {chunk_len!r}")
        flags = (add_bos, add_eos, reverse, emit_unk_piece)
        several = isinstance(input, list)
        results = [
            self._encode_in_parallel(text, kind, chunk_len, threads, thread_pool, flags)
            for text in (input if several else [input])
        ]
        return results if several else results[0]

    def _encode_in_parallel(
        self,
        input: Any,
        kind: ReturnType,
        chunk_len: int,
        num_threads: int,
        thread_pool: ThreadPool | None,
        flags: tuple[Any, Any, Any, Any],
    ) -> Any:
        if kind == "offset_mapping":
            raise ValueError("parallel encoding has no return_type='offset_mapping'")
        as_int(chunk_len, "chunk_len")
        as_int(num_threads, "num_threads")
        options = self._options(flags, kind)
        if kind in MESSAGES:
            _refuse_options(options)
        text = as_text(input)
        threads = workers([text], num_threads, thread_pool)
        model = self._processor
        if kind is int:
            return model.ids_in_parallel(text, options, threads)
        if kind == "numpy":
            return model.array(text, options, threads)
        if kind in MESSAGES:
            return message(model.message(text, options, in_parallel=True), kind)
        return self._encode_one(model, text, kind, options)

    def ParallelEncodeAsPieces(self, input: Any, **kwargs: Any) -> Any:
        """Encode a long text to pieces."""
        return self.ParallelEncode(input=input, return_type=str, **kwargs)

    def ParallelEncodeAsIds(self, input: Any, **kwargs: Any) -> Any:
        """Encode a long text to ids."""
        return self.ParallelEncode(input=input, return_type=int, **kwargs)

    def ParallelEncodeAsNumpy(self, input: Any, **kwargs: Any) -> Any:
        """Encode a long text to a numpy array."""
        return self.ParallelEncode(input=input, return_type="numpy", **kwargs)

    def ParallelEncodeAsProto(self, input: Any, **kwargs: Any) -> Any:
        """Encode a long text to a message."""
        return self.ParallelEncode(input=input, return_type="proto", **kwargs)

    # --- Completing the arguments -----------------------------------------------------------------

    def _kind(self, return_type: ReturnType, out_type: ReturnType) -> ReturnType:
        """The kind of result to return."""
        if return_type is None and out_type is None:
            return self._return_type
        return checked_return_type(return_type, out_type, self._return_type)

    def _samples_nothing(self) -> bool:
        """Whether the constructor's arguments ask for no samples, and need no checks."""
        return (
            self._enable_sampling is False
            and self._nbest_size == -1
            and type(self._alpha) is float
            and type(self._num_threads) is int
        )

    def _threads(self, num_threads: int | None) -> int:
        """How many threads were asked for."""
        threads = self._num_threads if num_threads is None else num_threads
        if not isinstance(threads, int):
            raise TypeError(f"num_threads must be an integer, not {type(threads).__name__}")
        return threads

    def _options(self, flags: tuple[Any, Any, Any, Any], kind: ReturnType) -> Options:
        """What to do with the ids or pieces: add_bos, add_eos, reverse, emit_unk_piece."""
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
            return _OPTIONS[add_bos, add_eos, reverse, emit_unk_piece]
        except (KeyError, TypeError):  # something other than a truth value
            pass
        return Options(
            as_bool(add_bos, "add_bos"),
            as_bool(add_eos, "add_eos"),
            as_bool(reverse, "reverse"),
            as_bool(emit_unk_piece, "emit_unk_piece"),
        )

    # --- Other names ------------------------------------------------------------------------------

    encode = Tokenize = tokenize = Encode
    encode_as_pieces = EncodeAsPieces
    encode_as_ids = EncodeAsIds
    encode_as_numpy = EncodeAsNumpy
    encode_as_proto = EncodeAsProto
    encode_as_offset_mapping = EncodeAsOffsetMapping
    sample_encode_as_pieces = SampleEncodeAsPieces
    sample_encode_as_ids = SampleEncodeAsIds
    sample_encode_as_numpy = SampleEncodeAsNumpy
    sample_encode_as_proto = SampleEncodeAsProto
    nbest_encode = NBestEncode
    nbest_encode_as_pieces = NBestEncodeAsPieces
    nbest_encode_as_ids = NBestEncodeAsIds
    nbest_encode_as_numpy = NBestEncodeAsNumpy
    nbest_encode_as_proto = NBestEncodeAsProto
    parallel_encode = ParallelEncode
    parallel_encode_as_pieces = ParallelEncodeAsPieces
    parallel_encode_as_ids = ParallelEncodeAsIds
    parallel_encode_as_numpy = ParallelEncodeAsNumpy
    parallel_encode_as_proto = ParallelEncodeAsProto


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
    """A message as it is returned: an object, or its bytes."""
    if kind == "serialized_proto":
        return data
    return _message_class().FromString(data)


@cache
def _message_class() -> Any:
    """The class of messages; importing protobuf takes a while, and few need it."""
    return imported("cpbpe.compat.sentencepiece.sentencepiece_pb2").SentencePieceText


def workers(items: list[Any], num_threads: int, thread_pool: ThreadPool | None) -> int:
    """How many threads to use for several texts or sequences of ids: those of the pool, if there is one."""
    if thread_pool is not None:
        if not isinstance(thread_pool, ThreadPool):
            raise RuntimeError(f"thread_pool must be a ThreadPool, not {type(thread_pool).__name__}")
        num_threads = thread_pool.num_threads()
    if num_threads < 0:
        return threads_for(items, None)
    return checked_threads(max(num_threads, 1))


def _sampled(options: Options, enable_sampling: Any, nbest_size: Any, alpha: Any) -> Options:
    """The options with those of sampling, if it is asked for."""
    enabled = as_bool(enable_sampling, "enable_sampling")
    size, chance = as_int(nbest_size, "nbest_size"), as_float(alpha, "alpha")
    return options._replace(alpha=chance, nbest_size=size) if enabled else options


def _refuse_options(options: Options) -> None:
    if options.add_bos or options.add_eos or options.reverse or options.emit_unk_piece:
        raise RuntimeError(
            "add_bos, add_eos, reverse and emit_unk_piece do not go with a return_type that is a message or "
            "an offset mapping; leave them out"
        )
