"""The Tokenizer, which users hold. What a call does has a file of its own, such as `plans` or `alignment`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from cpbpe.checks import Unit, checked_text, checked_texts, checked_threads, threads_for
from cpbpe.lazy import imported, numpy
from cpbpe.model.files import Source, folder_of, read_model_file
from cpbpe.tokenizer import alignment, calls, identity
from cpbpe.tokenizer.about import AboutModel
from cpbpe.tokenizer.bound import bind
from cpbpe.tokenizer.calls import Ids
from cpbpe.tokenizer.facts import ModelFacts
from cpbpe.tokenizer.guided import takes_a_source
from cpbpe.tokenizer.options import DECODE, ENCODE, DecodeOptions, EncodeOptions, described
from cpbpe.tokenizer.plans import Plans
from cpbpe.tokenizer.ragged import Ragged

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from cpbpe.engine.protocol import Engine
    from cpbpe.model.spec import ModelSpec
    from cpbpe.tokenizer.completions import Completions
    from cpbpe.tokenizer.encoding import Encoding
    from cpbpe.tokenizer.shown import Shown
    from cpbpe.tokenizer.special import Part
    from cpbpe.tokenizer.special_text import SpecialDecoder, SpecialEncoder
    from cpbpe.tokenizer.stream_decoder import StreamDecoder
    from cpbpe.tokenizer.stream_encoder import StreamEncoder

    class BoundOptions(EncodeOptions, DecodeOptions, total=False):
        """The options of encoding and of decoding."""


Text = str | bytes
AnyText = TypeVar("AnyText", bound=str | bytes)
_numpy: Any = None
"""The module, once an array was asked for."""
if TYPE_CHECKING:
    Self = TypeVar("Self", bound="Tokenizer")
else:
    Self = TypeVar("Self")  # (The name of a class would be compiled: see `options`.)


class Tokenizer(AboutModel):
    """A loaded model. It never changes, so it can be shared by threads, copied and pickled.

    >>> tok = Tokenizer("tokenizer.model")
    >>> tok
    <cpbpe.Tokenizer: 32000 pieces, byte fallback, normalizer 'identity'>
    >>> tok.encode("Grüße!")
    [1778, 28837, 9526, 28808]
    >>> tok.decode([1778, 28837, 9526, 28808])
    'Grüße!'
    >>> tok == tok.from_bytes(tok.to_bytes())
    True
    """

    __slots__ = ("__weakref__", "_decoder", "_encoder", "_engine", "_plans")

    _engine: Engine
    _encoder: Engine | SpecialEncoder
    """What encodes without options: the engine, unless every text is searched for tokens."""
    _decoder: Engine | SpecialDecoder
    """What decodes lists of ids without options."""
    _plans: Plans

    bound_options: Mapping[str, Any] = MappingProxyType({})
    """The options that `using` has bound to this tokenizer."""

    # --- Construction -----------------------------------------------------------------------------

    @takes_a_source("Tokenizer", ENCODE | DECODE)
    def __init__(self, source: Source):
        """Load a model from a file of any format: its path, its folder, or the file opened in binary mode."""
        folder = folder_of(source)
        if folder is not None:
            self._set(imported("cpbpe.tokenizer.folders").read_folder(folder).facts)
            return
        self._set(identity.facts_of(read_model_file(source)))

    def _set(self, facts: ModelFacts) -> None:
        self._facts = facts
        self._engine = facts.engine
        self._plans = Plans(facts)
        self._encoder = self._plans.encode({}, "encode").encoder
        self._decoder = self._plans.decode({}, "decode") if facts.special.flags else facts.engine

    @classmethod
    def _of(cls: type[Self], facts: ModelFacts) -> Self:
        self = object.__new__(cls)
        self._set(facts)
        return self

    def _like(self: Self, facts: ModelFacts) -> Self:
        """The same kind of tokenizer for other facts."""
        return self._of(facts)

    @classmethod
    def from_bytes(cls: type[Self], data: bytes | bytearray | memoryview) -> Self:
        """Load a model from the bytes of its file."""
        return cls._of(identity.facts_of(data))

    @classmethod
    def from_spec(cls: type[Self], spec: ModelSpec) -> Self:
        """A tokenizer for a model as a value, however it was made."""
        return cls._of(identity.facts_of_spec(spec))

    def with_special_tokens(self: Self, tokens: Mapping[str, int] | Iterable[str]) -> Self:
        """The same tokenizer with more special tokens, which are not pieces of the model.

        Without ids they get the next free ones, in the order given. Like a CONTROL piece, an added token is
        never found in text without permission (`allowed_special`). It is saved with the model, in a field of
        its own that other readers of the file skip.

        >>> tok = Tokenizer("tokenizer.model").with_special_tokens(["<|user|>", "<|end|>"])
        >>> tok.encode("<|user|>Hi<|end|>", allowed_special="all")
        [32000, 15359, 32001]
        """
        return self._like(identity.facts_with_added(self._facts, tokens))

    def using(self, **options: Unpack[BoundOptions]) -> Tokenizer:
        """The same tokenizer with other defaults: its calls use these options unless they are given others.

        >>> tok = Tokenizer("tokenizer.model").using(add_bos=True, allowed_special="all")
        >>> tok.encode("Hi</s>"), tok.count("Hi"), tok.encode("Hi", add_bos=False)
        ([1, 15359, 2], 2, [15359])
        """
        self._plans.check({**self.bound_options, **options})
        return bind(self, options)

    # --- Text to ids ------------------------------------------------------------------------------

    @described(ENCODE)
    def encode(self, text: Text, **options: Unpack[EncodeOptions]) -> list[int]:
        r"""The ids of a text.

        `text` may be bytes, and they need not be valid UTF-8: a byte that belongs to no character
        reads as U+FFFD. Special tokens that a text spells out stay ordinary text, unless they are allowed.

        >>> tok = Tokenizer("tokenizer.model")
        >>> tok.encode("Hi", add_bos=True, add_eos=True), tok.encode("<s>Hi", allowed_special={"<s>"})
        ([1, 15359, 2], [1, 15359])
        """
        if type(text) is not str:
            text = checked_text(text, "encode")
        if not options:
            return self._encoder.encode(text)
        return calls.encode(self._plans.encode(options, "encode"), text)

    @described(ENCODE)
    def encode_batch(
        self, texts: Iterable[Text], *, threads: int | None = None, **options: Unpack[EncodeOptions]
    ) -> list[list[int]]:
        """The ids of many texts, by several threads: by default all cores, if it is worth it.

        >>> Tokenizer("tokenizer.model").encode_batch(["Hi", "Hello world", ""])
        [[15359], [22557, 1526], []]
        """
        checked = checked_texts(texts, "encode_batch")
        plan = self._plans.encode(options, "encode_batch")
        return calls.encode_batch(plan, checked, threads_for(checked, threads))

    @described(ENCODE)
    def encode_array(
        self, text: Text, *, threads: int = 1, **options: Unpack[EncodeOptions]
    ) -> NDArray[np.uint32]:
        """The ids of a text as a numpy array.

        With `threads` above 1 a long text is cut where nothing can merge, and its parts are encoded at
        the same time; the result is the same.

        >>> Tokenizer("tokenizer.model").encode_array("Hello world", add_bos=True)
        array([    1, 22557,  1526], dtype=uint32)
        """
        if type(text) is str and threads == 1 and not options and _numpy is not None:
            return self._encoder.encode_array(text, threads)  # (The checks would take as long as four ids.)
        _import_numpy()
        text = checked_text(text, "encode_array")
        plan = self._plans.encode(options, "encode_array")
        return calls.encode_array(plan, text, checked_threads(threads))

    @described(ENCODE)
    def encode_arrays(
        self,
        texts: Iterable[Text],
        *,
        threads: int | None = None,
        spans: bool = False,
        unit: Unit | None = None,
        **options: Unpack[EncodeOptions],
    ) -> Ragged:
        """The ids of many texts in one numpy array, with the places where each begins. See `Ragged`.

        With `spans` also the span of each id: in characters for `str`, in bytes for `bytes`, or as `unit`
        ("char" or "byte") says.

        >>> rows = Tokenizer("tokenizer.model").encode_arrays(["Hi", "Hello world"], spans=True)
        >>> rows.ids, rows.spans.tolist()
        (array([15359, 22557,  1526], dtype=uint32), [[0, 2], [0, 5], [5, 11]])
        """
        checked = checked_texts(texts, "encode_arrays")
        plan = self._plans.encode(options, "encode_arrays")
        rows = calls.encode_arrays(plan, checked, threads_for(checked, threads), spans, unit)
        rows.pad_id = self._facts.pad_id
        return rows

    @described(ENCODE)
    def encode_parts(self, parts: Iterable[Part], **options: Unpack[EncodeOptions]) -> list[int]:
        """The ids of one text in parts: texts, each encoded by itself, `Special` tokens, and ids.

        >>> from cpbpe import Special
        >>> Tokenizer("tokenizer.model").encode_parts([Special("<s>"), "Hello", 13, "world"])
        [1, 22557, 13, 1526]
        """
        return calls.encode_parts(self._facts, self._plans.encode(options, "encode_parts"), parts)

    @described(ENCODE)
    def encode_pieces(self, text: Text, **options: Unpack[EncodeOptions]) -> list[str]:
        """The pieces of a text, also called `tokenize`. An unknown part is copied as it is.

        >>> Tokenizer("tokenizer.model").encode_pieces("Hi 你好 🦙")
        ['▁Hi', '▁', '你', '好', '▁', '<0xF0>', '<0x9F>', '<0xA6>', '<0x99>']
        """
        given = text if type(text) is str else checked_text(text, "encode_pieces")
        if not options:
            return self._encoder.encode_pieces(given)
        return calls.encode_pieces(self._facts, self._plans.encode(options, "encode_pieces"), given)

    tokenize = encode_pieces

    @described(ENCODE)
    def align(self, text: Text, *, unit: Unit | None = None, **options: Unpack[EncodeOptions]) -> Encoding:
        """Ids, pieces, and the span of the text that each came from.

        Spans count characters for `str` and bytes for `bytes`; `unit` ("char" or "byte") chooses.

        >>> encoding = Tokenizer("tokenizer.model").align("Hi 你好")
        >>> list(zip(encoding.pieces, encoding.offsets, encoding.surfaces))
        [('▁Hi', (0, 2), 'Hi'), ('▁', (2, 3), ' '), ('你', (3, 4), '你'), ('好', (4, 5), '好')]
        """
        return alignment.align(self._facts, self._plans.encode(options, "align"), text, "align", unit)

    @described(ENCODE)
    def align_batch(
        self,
        texts: Iterable[Text],
        *,
        threads: int | None = None,
        unit: Unit | None = None,
        **options: Unpack[EncodeOptions],
    ) -> list[Encoding]:
        """`align` of many texts, by several threads. (As arrays: `encode_arrays` with `spans=True`.)

        >>> [encoding.offsets for encoding in Tokenizer("tokenizer.model").align_batch(["Hi", "Hello world"])]
        [[(0, 2)], [(0, 5), (5, 11)]]
        """
        numpy()
        checked = checked_texts(texts, "align_batch")
        plan = self._plans.encode(options, "align_batch")
        return alignment.align_batch(self._facts, plan, checked, threads_for(checked, threads), unit)

    @described(ENCODE)
    def show(
        self,
        text: Text,
        *,
        limit: int | None = 300,
        unit: Unit | None = None,
        **options: Unpack[EncodeOptions],
    ) -> Shown:
        """The tokens of a text, drawn for a terminal and for a notebook: at most `limit` of them, None: all.

        >>> print(Tokenizer("tokenizer.model").show("Hello world"))
        ▁Hello│▁world
        22557 │1526
        """
        return calls.shown(self._facts, self._plans.encode(options, "show"), text, unit, limit)

    @described(ENCODE)
    def count(self, text: Text, **options: Unpack[EncodeOptions]) -> int:
        """How many ids a text has. They are counted without being built.

        >>> Tokenizer("tokenizer.model").count("Hello world", add_bos=True)
        3
        """
        given = text if type(text) is str else checked_text(text, "count")
        if not options:
            return self._encoder.count(given)
        return calls.count(self._plans.encode(options, "count"), given)

    @described(ENCODE)
    def count_batch(
        self, texts: Iterable[Text], *, threads: int | None = None, **options: Unpack[EncodeOptions]
    ) -> list[int]:
        """How many ids each of many texts has.

        >>> Tokenizer("tokenizer.model").count_batch(["Hi", "Hello world", ""])
        [1, 2, 0]
        """
        checked = checked_texts(texts, "count_batch")
        plan = self._plans.encode(options, "count_batch")
        return calls.count_batch(plan, checked, threads_for(checked, threads))

    def normalize(self, text: AnyText) -> AnyText:
        """The text as it is cut into pieces, `▁Hello▁world`: `str` for `str`, `bytes` for `bytes`."""
        if isinstance(text, str):
            return self._engine.normalize_str(text)  # type: ignore[return-value]
        return cast(AnyText, self._engine.normalize(checked_text(text, "normalize")))

    @described(ENCODE)
    def truncate(self, text: AnyText, max_tokens: int, **options: Unpack[EncodeOptions]) -> AnyText:
        """The beginning of a text, with at most `max_tokens` ids, that ends where a token ends.

        >>> Tokenizer("tokenizer.model").truncate("Hello world, hello", 3, add_bos=True)
        'Hello world'
        """
        return calls.truncate(self._facts, self._plans.encode(options, "truncate"), text, max_tokens)

    @described(ENCODE)
    def split(
        self, text: AnyText, max_tokens: int, *, overlap: int = 0, **options: Unpack[EncodeOptions]
    ) -> list[AnyText]:
        """A text in parts of at most `max_tokens` ids; each shares about `overlap` ids with the next.

        >>> Tokenizer("tokenizer.model").split("Hello world, and more", 2)
        ['Hello world', ', and', ' more']
        """
        return calls.split(self._facts, self._plans.encode(options, "split"), text, max_tokens, overlap)

    @described(ENCODE)
    def stream_encoder(self, **options: Unpack[EncodeOptions]) -> StreamEncoder:
        """An encoder for one text that arrives in parts.

        >>> stream = Tokenizer("tokenizer.model").stream_encoder()
        >>> stream.push("Hel") + stream.push("lo wor") + stream.push("ld") + stream.flush()
        [22557, 1526]
        """
        return calls.stream_encoder(self._facts, self._plans.encode(options, "stream_encoder"))

    @described(ENCODE)
    def completions(self, text: Text, **options: Unpack[EncodeOptions]) -> Completions:
        """Which last ids of a prompt could change with what follows, and what may come instead.

        This is for token healing: take the unstable ids back, and go on with one of `next_ids`.

        >>> end = Tokenizer("tokenizer.model").completions("The address is http:")
        >>> end.ids, end.unstable, end.rest, len(end.next_ids)
        ([415, 2962, 349, 3550], [28747], b':', 24)
        """
        return calls.completions(self._facts, self._plans.encode(options, "completions"), text)

    # --- Ids to text ------------------------------------------------------------------------------

    @described(DECODE)
    def decode(self, ids: Ids, **options: Unpack[DecodeOptions]) -> str:
        """The text of ids: any sequence of integers, a numpy array, or one integer.

        CONTROL pieces are left out, unless asked for. Each byte that belongs to no character reads as
        U+FFFD.

        >>> tok = Tokenizer("tokenizer.model")
        >>> tok.decode([1, 15359, 28808, 2]), tok.decode([1, 15359, 2], skip_special_tokens=False)
        ('Hi!', '<s>Hi</s>')
        """
        if not options and type(ids) is list:
            text = self._decoder.decode(ids)
            if text is not None:
                return text
        return calls.decode(self._facts, self._plans.decode(options, "decode"), ids)

    @described(DECODE)
    def decode_bytes(self, ids: Ids, **options: Unpack[DecodeOptions]) -> bytes:
        r"""The same text in UTF-8, except that bytes which belong to no character stay as they are.

        >>> tok = Tokenizer("tokenizer.model")
        >>> llama = tok.encode("🦙")
        >>> tok.decode_bytes(llama[:-1]), tok.decode(llama[:-1])
        (b'\xf0\x9f\xa6', '���')
        """
        if not options and type(ids) is list:
            text = self._decoder.decode_bytes(ids)
            if text is not None:
                return text
        return calls.decode_bytes(self._facts, self._plans.decode(options, "decode_bytes"), ids)

    @described(DECODE)
    def decode_pieces(self, pieces: Iterable[str | bytes], **options: Unpack[DecodeOptions]) -> str:
        """The text of pieces. One that the vocabulary does not hold is copied as it is.

        >>> Tokenizer("tokenizer.model").decode_pieces(["▁Hi", "▁there", "🦙"])
        'Hi there🦙'
        """
        return calls.decode_pieces(self._plans.decode(options, "decode_pieces"), pieces)

    @described(DECODE)
    def decode_batch(
        self, batch: Iterable[Ids] | Ragged, *, threads: int | None = None, **options: Unpack[DecodeOptions]
    ) -> list[str]:
        """The texts of many sequences of ids: a list of them, a `Ragged`, or a two-dimensional array.

        >>> Tokenizer("tokenizer.model").decode_batch([[15359], [22557, 1526], []])
        ['Hi', 'Hello world', '']
        """
        decoder = self._plans.decode(options, "decode_batch")
        return calls.decode_batch(self._facts, decoder, batch, threads)

    @described(DECODE)
    def stream_decoder(
        self, prompt_ids: Ids | None = None, **options: Unpack[DecodeOptions]
    ) -> StreamDecoder:
        """A decoder for ids that arrive one by one; the text of `prompt_ids` is not returned.

        >>> tok = Tokenizer("tokenizer.model")
        >>> stream = tok.stream_decoder()
        >>> [stream.push(id) for id in tok.encode("Hi 🦙!")], stream.flush()
        (['Hi', ' ', '', '', '', '🦙', '!'], '')
        """
        return calls.stream_decoder(self._facts, prompt_ids, options)

    # --- Being a value ----------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """The model file, byte for byte as it was loaded, followed by the tokens that were added."""
        return self._facts.file

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file, or what the end of the path means: `.json`, `.gguf`, ..., a slash: a folder.

        An existing file is replaced at once, never half written; its mode stays. The options bound by `using`
        are what the file asks for, see `file_options`.
        """
        imported("cpbpe.tokenizer.converting").save(self, path)

    @property
    def fingerprint(self) -> str:
        """A hash of the model and of how cpbpe reads it, the same everywhere: a key for caches."""
        return identity.fingerprint(self._facts.file, self.bound_options)

    def __repr__(self) -> str:
        return f"<cpbpe.Tokenizer: {identity.summary(self._facts)}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tokenizer):
            return NotImplemented
        return self.to_bytes() == other.to_bytes() and self.bound_options == other.bound_options

    def __hash__(self) -> int:
        return hash(self._facts.file)

    def __deepcopy__(self: Self, memo: object = None) -> Self:
        return self

    __copy__ = __deepcopy__

    def __reduce__(self) -> tuple[Any, ...]:
        return identity.restore, (type(self), self._facts.file, identity.BEHAVIOUR)


def _import_numpy() -> None:
    global _numpy
    _numpy = numpy()
