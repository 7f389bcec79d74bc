"""The Tokenizer, which users hold, and `load`, which most programs call first.

The methods only check arguments and pass them on; the work is done in other files, such as `calls` and
`plans`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex, TypeVar, cast

from cpbpe.checks import Ids, Text, Unit, checked_text, checked_texts, checked_threads, threads_for
from cpbpe.errors import naming
from cpbpe.foreign import elsewhere, native_dir, takes_a_source
from cpbpe.lazy import importing
from cpbpe.model.files import Source, folder_of, read_model_file
from cpbpe.model.formats.registry import NO_HINTS, Hints
from cpbpe.tokenizer import calls, identity
from cpbpe.tokenizer.facts import ModelFacts
from cpbpe.tokenizer.options import DECODE, ENCODE, DecodeOptions, EncodeOptions, FileOptions, described
from cpbpe.tokenizer.plans import Plans
from cpbpe.tokenizer.ragged import Ragged
from cpbpe.tokenizer.vocabulary import Vocabulary, piece_bytes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from cpbpe.engine.protocol import Engine
    from cpbpe.lint.findings import Lint
    from cpbpe.model.spec import ModelSpec, Settings
    from cpbpe.tokenizer.canonical import CanonicalStream, Divergence
    from cpbpe.tokenizer.chats import ChatEncoding
    from cpbpe.tokenizer.completions import Completions
    from cpbpe.tokenizer.documents import Document
    from cpbpe.tokenizer.encoding import Encoding, Part
    from cpbpe.tokenizer.inspection import Inspection
    from cpbpe.tokenizer.lossless import Losslessness
    from cpbpe.tokenizer.shown import Shown
    from cpbpe.tokenizer.special_text import SpecialDecoder, SpecialEncoder
    from cpbpe.tokenizer.streams import StreamDecoder, StreamEncoder

    class BoundOptions(EncodeOptions, DecodeOptions, total=False):
        """The options of encoding and of decoding."""


AnyText = TypeVar("AnyText", bound=str | bytes)
_has_numpy = False  # whether numpy has been imported, by a call that gives arrays
if TYPE_CHECKING:
    Self = TypeVar("Self", bound="Tokenizer")
else:
    Self = TypeVar("Self")  # (A bound given by name would be compiled, which takes time: see `options`.)


class Tokenizer:
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

    __slots__ = ("__weakref__", "_bound", "_decoder", "_encoder", "_engine", "_facts", "_plans")

    _facts: ModelFacts
    _engine: Engine
    _bound: Mapping[str, Any]
    _plans: Plans
    _encoder: Engine | SpecialEncoder | None
    """The encoder of calls without options: the engine, or a SpecialEncoder if every text is searched for
    tokens. None if options are bound."""
    _decoder: Engine | SpecialDecoder | None
    """The decoder of calls with a list of ids and no options. None if options are bound."""

    if not TYPE_CHECKING:  # so that type checkers still report wrong names
        # The names of methods in other libraries: using one raises an error that says what to use instead.
        # They are added all at once, before the class is made: one by one took four times as long.
        vars().update(elsewhere())

    # --- Construction -----------------------------------------------------------------------------

    @takes_a_source("Tokenizer", ENCODE | DECODE)
    def __init__(self, source: Source | ModelFacts):
        """Load a model from a file of any format: its path, its folder, or the file opened in binary mode."""
        self._set(source if isinstance(source, ModelFacts) else _read(source, NO_HINTS))

    def _set(self, facts: ModelFacts, bound: Mapping[str, Any] = MappingProxyType({})) -> None:
        self._facts = facts
        self._engine = facts.engine
        self._bound = bound
        self._plans = Plans(facts, bound)
        self._encoder = None if bound else self._plans.encode({}, "encode").encoder
        # (If no token has flags, the engine itself will do. It returns None for ids of added tokens, and then
        # `decode` makes a plan.)
        decoder = self._plans.decode({}, "decode") if facts.special.flags else facts.engine
        self._decoder = None if bound else decoder

    @classmethod
    def _of(cls: type[Self], facts: ModelFacts, bound: Mapping[str, Any] = MappingProxyType({})) -> Self:
        self = object.__new__(cls)
        self._set(facts, bound)
        return self

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
        return self._of(identity.facts_with_added(self._facts, tokens), self._bound)

    def using(self: Self, **options: Unpack[BoundOptions]) -> Self:
        """The same tokenizer with other defaults: its calls use these options unless they are given others.

        >>> tok = Tokenizer("tokenizer.model").using(add_bos=True, allowed_special="all")
        >>> tok.encode("Hi</s>"), tok.count("Hi"), tok.encode("Hi", add_bos=False)
        ([1, 15359, 2], 2, [15359])
        """
        bound = {**self._bound, **options}
        self._plans.check(bound)
        return self._of(self._facts, {name: identity.as_bound(name, value) for name, value in bound.items()})

    @property
    def bound_options(self) -> Mapping[str, Any]:
        """The options that `using` has bound to this tokenizer."""
        return MappingProxyType(dict(self._bound))

    # --- Text to ids ------------------------------------------------------------------------------

    @described(ENCODE)
    def encode(self, text: Text, **options: Unpack[EncodeOptions]) -> list[int]:
        r"""The ids of a text.

        `text` may be bytes, and they need not be valid UTF-8: a byte that belongs to no character
        is read as U+FFFD. Special tokens that a text spells out stay ordinary text, unless they are allowed.

        >>> tok = Tokenizer("tokenizer.model")
        >>> tok.encode("Hi", add_bos=True, add_eos=True), tok.encode("<s>Hi", allowed_special={"<s>"})
        ([1, 15359, 2], [1, 15359])
        """
        if type(text) is not str:
            text = checked_text(text, "encode")
        encoder = self._encoder
        if not options and encoder is not None:
            return encoder.encode(text)
        plan = self._plans.encode(options, "encode")
        return plan.encoder.encode(text, plan.ends, plan.dropout)

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
        encoder = self._encoder
        if type(text) is str and threads == 1 and not options and _has_numpy and encoder is not None:
            # (The checks below take as long as encoding four ids.)
            return encoder.encode_array(text, threads)
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
        rows.pad_id = self._facts.special_ids[3]
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
        encoder = self._encoder
        if not options and encoder is not None:
            return encoder.encode_pieces(given)
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
        return calls.align(self._facts, self._plans.encode(options, "align"), text, "align", unit)

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
        _import_numpy()
        checked = checked_texts(texts, "align_batch")
        plan = self._plans.encode(options, "align_batch")
        return calls.align_batch(self._facts, plan, checked, threads_for(checked, threads), unit)

    @described(ENCODE)
    def show(
        self,
        text: Text,
        *,
        limit: int | None = 300,
        unit: Unit | None = None,
        **options: Unpack[EncodeOptions],
    ) -> Shown:
        """The tokens of a text, drawn for a terminal and for a notebook: at most `limit` (None: all of them).

        >>> print(Tokenizer("tokenizer.model").show("Hello world"))
        ▁Hello│▁world
        22557 │1526
        """
        with importing:
            from cpbpe.tokenizer.shown import Shown
        plan = self._plans.encode(options, "show")
        return Shown(calls.align(self._facts, plan, text, "show", unit), limit)

    @described(ENCODE)
    def count(self, text: Text, **options: Unpack[EncodeOptions]) -> int:
        """How many ids a text has. They are counted without being built.

        >>> Tokenizer("tokenizer.model").count("Hello world", add_bos=True)
        3
        """
        given = text if type(text) is str else checked_text(text, "count")
        encoder = self._encoder
        if not options and encoder is not None:
            return encoder.count(given)
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
        """The text as it is before it is cut into pieces (`▁Hello▁world`): str for str, bytes for bytes."""
        given: Any = text if type(text) is str else checked_text(text, "normalize")
        return self._engine.normalize(given)  # type: ignore[no-any-return]

    @described(ENCODE)
    def truncate(self, text: AnyText, max_tokens: int, **options: Unpack[EncodeOptions]) -> AnyText:
        """The beginning of a text, with at most `max_tokens` ids, that ends where a token ends.

        >>> Tokenizer("tokenizer.model").truncate("Hello world, hello", 3, add_bos=True)
        'Hello world'
        """
        with importing:
            from cpbpe.tokenizer.splitting import truncate
        return truncate(self._facts, self._plans.encode(options, "truncate"), text, max_tokens)

    @described(ENCODE)
    def split(
        self, text: AnyText, max_tokens: int, *, overlap: int = 0, **options: Unpack[EncodeOptions]
    ) -> list[AnyText]:
        """A text in parts of at most `max_tokens` ids; each shares about `overlap` ids with the next.

        >>> Tokenizer("tokenizer.model").split("Hello world, and more", 2)
        ['Hello world', ', and', ' more']
        """
        with importing:
            from cpbpe.tokenizer.splitting import split
        return split(self._facts, self._plans.encode(options, "split"), text, max_tokens, overlap)

    @described(ENCODE)
    def stream_encoder(self, **options: Unpack[EncodeOptions]) -> StreamEncoder:
        """An encoder for one text that arrives in parts.

        >>> stream = Tokenizer("tokenizer.model").stream_encoder()
        >>> stream.push("Hel") + stream.push("lo wor") + stream.push("ld") + stream.flush()
        [22557, 1526]
        """
        with importing:
            from cpbpe.tokenizer.streams import StreamEncoder
        plan = self._plans.encode(options, "stream_encoder")
        return StreamEncoder(self._facts, plan, partial(self.stream_encoder, **options))

    @described(ENCODE)
    def document(self, text: str = "", **options: Unpack[EncodeOptions]) -> Document:
        """A text that will grow or change, with its ids, which are always those of the whole text.

        >>> prompt = Tokenizer("tokenizer.model").document("Hello wor")
        >>> prompt.ids, prompt.append("ld").ids
        ([22557, 1045], [22557, 1526])
        """
        with importing:
            from cpbpe.tokenizer.documents import Document, WholeText, waits_for_all
        plan = self._plans.encode(options, "document")
        stream = WholeText(plan) if waits_for_all(plan) else self.stream_encoder(**options)
        return Document(text, stream, partial(self.document, **options))

    @described(ENCODE)
    def completions(self, text: Text, **options: Unpack[EncodeOptions]) -> Completions:
        """Which last ids of a prompt could change with the text that follows, and what may replace them.

        This is for token healing: take back the unstable ids, and continue with one of `next_ids`.

        >>> end = Tokenizer("tokenizer.model").completions("The address is http:")
        >>> end.ids, end.unstable, end.rest, len(end.next_ids)
        ([415, 2962, 349, 3550], [28747], b':', 24)
        """
        with importing:
            from cpbpe.tokenizer.completions import completions
        return completions(self._facts, self._plans.encode(options, "completions"), text)

    def apply_chat_template(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        template: str | None = None,
        add_generation_prompt: bool = False,
        tools: Sequence[Mapping[str, Any]] | None = None,
        **variables: Any,
    ) -> ChatEncoding:
        """A conversation as ids, by the model's chat template. Only the template writes special tokens.

        What messages say is text, even if it spells one out. `template` is the name of one of
        `chat_templates`, or a template itself; `variables` are what it looks at besides. The package jinja2
        renders it. bos and eos are where the template writes them, and nowhere else. `ChatEncoding` and
        docs/chat.md have examples.
        """
        with importing:
            from cpbpe.tokenizer.chats import apply_chat_template, options_of
        facts = self._facts
        plan = self._plans.encode(options_of(facts, self._bound), "apply_chat_template")
        return apply_chat_template(facts, plan, messages, template, add_generation_prompt, tools, variables)

    # --- Ids that encoding gives ------------------------------------------------------------------

    @described(ENCODE)
    def is_canonical(self, ids: Ids, **options: Unpack[EncodeOptions]) -> bool:
        """Whether decoding and encoding again gives the same ids.

        Special ids stand for themselves, wherever they are, so `add_bos` and `add_eos` make no difference.
        The ids between two of them are a text of their own, as in `encode_parts`.

        >>> tok = Tokenizer("tokenizer.model")
        >>> tok.is_canonical([1, 15359, 2]), tok.decode([382, 28710]), tok.is_canonical([382, 28710])
        (True, 'Hi', False)
        """
        with importing:
            from cpbpe.tokenizer.canonical import divergence
        plan = self._plans.encode(options, "is_canonical")
        return divergence(self._facts, plan, ids, "is_canonical", self.decode_bytes) is None

    @described(ENCODE)
    def first_divergence(self, ids: Ids, **options: Unpack[EncodeOptions]) -> Divergence | None:
        """Where ids differ from those that encoding their text gives; None if they are canonical."""
        with importing:
            from cpbpe.tokenizer.canonical import divergence
        plan = self._plans.encode(options, "first_divergence")
        return divergence(self._facts, plan, ids, "first_divergence", self.decode_bytes)

    @described(ENCODE)
    def canonical_next(self, ids: Ids = (), **options: Unpack[EncodeOptions]) -> NDArray[np.bool_]:
        """For each id of the vocabulary, whether ids that go on with it can still become canonical.

        A ModelError if nobody knows that for this model (docs/canonical.md); a ValueError if no id can come.
        """
        return self._canonical(ids, options, "canonical_next").mask

    @described(ENCODE)
    def canonical_stream(self, ids: Ids = (), **options: Unpack[EncodeOptions]) -> CanonicalStream:
        """`canonical_next` for a sampler: a stream that takes ids one by one, and has the `mask` after each.

        >>> stream = Tokenizer("tokenizer.model").canonical_stream([382])
        >>> bool(stream.mask[28710]), bool(stream.mask[28711])
        (False, True)
        """
        return self._canonical(ids, options, "canonical_stream")

    def _canonical(self, ids: Ids, options: EncodeOptions, method: str) -> CanonicalStream:
        with importing:
            from cpbpe.tokenizer.canonical import CanonicalStream
        return CanonicalStream(self._facts, self._plans.encode(options, method), ids, method)

    # --- Ids to text ------------------------------------------------------------------------------

    @described(DECODE)
    def decode(self, ids: Ids, **options: Unpack[DecodeOptions]) -> str:
        """The text of ids: any sequence of integers, a numpy array, or one integer.

        CONTROL pieces are left out by default. Bytes that belong to no character become U+FFFD.

        >>> tok = Tokenizer("tokenizer.model")
        >>> tok.decode([1, 15359, 28808, 2]), tok.decode([1, 15359, 2], skip_special_tokens=False)
        ('Hi!', '<s>Hi</s>')
        """
        decoder = self._decoder
        if decoder is not None and not options and type(ids) is list:
            text = decoder.decode(ids)
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
        decoder = self._decoder
        if decoder is not None and not options and type(ids) is list:
            text = decoder.decode_bytes(ids)
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
        self,
        prompt_ids: Ids | None = None,
        *,
        stop: str | Iterable[str] | None = None,
        **options: Unpack[DecodeOptions],
    ) -> StreamDecoder:
        """A decoder for ids that arrive one by one; the text of `prompt_ids` is not returned.

        It ends at the first of the texts in `stop`: what may be the beginning of one is held back, and
        `stream.stopped` is the text that has come, or None.

        >>> tok = Tokenizer("tokenizer.model")
        >>> stream = tok.stream_decoder()
        >>> [stream.push(id) for id in tok.encode("Hi 🦙!")], stream.flush()
        (['Hi', ' ', '', '', '', '🦙', '!'], '')
        """
        with importing:
            from cpbpe.tokenizer.streams import StoppingDecoder, StreamDecoder, checked_stops
        checked = self._plans.decode_options(options, "stream_decoder")
        prompt = () if prompt_ids is None else prompt_ids
        stops = checked_stops(stop, self._facts, checked["skip_special_tokens"])
        if stops:
            return StoppingDecoder(stops, self._facts, prompt, **checked)
        return StreamDecoder(self._facts, prompt, **checked)

    # --- The model --------------------------------------------------------------------------------

    @property
    def vocab(self) -> Vocabulary:
        """The pieces and their ids, scores and types, and the special tokens."""
        return Vocabulary(self._facts)

    @property
    def settings(self) -> Settings:
        """What the model file says about itself: how it was trained, and how it normalizes.

        >>> Tokenizer("tokenizer.model").settings.trainer["byte_fallback"]
        True
        """
        return self._facts.settings

    @property
    def file_options(self) -> FileOptions:
        """The encoding options that the file asks for. Loading does not apply them; give them to `using`.

        >>> import cpbpe
        >>> cpbpe.load("tokenizer.model").using(add_bos=True).save("asks.model")
        >>> tok = cpbpe.load("asks.model")
        >>> tok.file_options, tok.encode("Hi"), tok.using(**tok.file_options).encode("Hi")
        ({'add_bos': True}, [15359], [1, 15359])
        """
        options = self._facts.carried.options
        known = {name: value for name, value in options.items() if name in FileOptions.__annotations__}
        return cast(FileOptions, known)

    @property
    def token_roles(self) -> Mapping[str, str]:
        """The tokens that the file names for roles ("mask", "eot", ...), besides those that the model has."""
        return MappingProxyType({role: text for role, text in self._facts.carried.roles.items() if text})

    @property
    def chat_templates(self) -> Mapping[str, str]:
        """The templates of conversations that the file carries, by name; the usual one is "default"."""
        return MappingProxyType(dict(self._facts.carried.chat_templates))

    @property
    def spec(self) -> ModelSpec:
        """The model as a value. A changed copy can become a tokenizer again with `from_spec`."""
        return self._facts.spec_for_users()

    @property
    def vocab_size(self) -> int:
        """The highest id plus one, which is how many rows an embedding needs; also `len(tok)`."""
        return self._facts.special.size

    def __len__(self) -> int:
        return self._facts.special.size

    @property
    def unk_id(self) -> int | None:
        """The id of the UNKNOWN piece, or None if the model has none."""
        return self._facts.special_ids[0]

    @property
    def bos_id(self) -> int | None:
        """The id of the piece that begins a text, or None if the model has none."""
        return self._facts.special_ids[1]

    @property
    def eos_id(self) -> int | None:
        """The id of the piece that ends a text, or None if the model has none."""
        return self._facts.special_ids[2]

    @property
    def pad_id(self) -> int | None:
        """The id of the piece that pads a batch, or None if the model has none."""
        return self._facts.special_ids[3]

    def inspect(self, *, sample: str | None = None) -> Inspection:
        """What the model is: types, scripts, lengths, settings, what it loses, and a `sample`, encoded."""
        with importing:
            from cpbpe.tokenizer.inspection import inspection
        return inspection(self._facts) if sample is None else inspection(self._facts, sample)

    def lint(self, texts: Iterable[str | bytes] | None = None, *, embeddings: Any = None) -> Lint:
        """What is wrong with the model: pieces that no text yields, doubtful settings, and more.

        `texts` is a corpus, whose pieces are counted; `embeddings` is a matrix with a row for each id.

        >>> import cpbpe
        >>> report = cpbpe.train(["low lower lowest"], vocab_size=270).tokenizer.lint()
        >>> [finding.code for finding in report.findings], report.worst
        (['ascii-missing', 'unused-unknown', 'unused-bytes', 'no-pad', 'odd-size'], 'warning')
        """
        with importing:
            from cpbpe.tokenizer.inspection import lint
        return lint(self._facts, texts, embeddings)

    def witness(self, piece: str | bytes | SupportsIndex) -> str | None:
        r"""A short text that yields a piece, given by its text or id; None if none does, or none was found.

        >>> import cpbpe
        >>> tok = cpbpe.load("tokenizer.model")
        >>> tok.witness("▁token"), tok.witness("able"), tok.witness("<0xF0>"), tok.witness("<s>")
        ('token', '\nable', '𐀀', None)
        """
        facts = self._facts
        id = self.vocab[piece] if isinstance(piece, (str, bytes)) else facts.check_id(piece, "witness")
        return facts.witnesses.shortest(id) if id < facts.engine.size else None

    def id_to_piece(self, id: SupportsIndex) -> str:
        """The piece of an id."""
        return self._facts.piece(self._facts.check_id(id, "id_to_piece"))

    def piece_to_id(self, piece: str | bytes) -> int | None:
        """The id of a piece, of any type, or of an added token; None if there is none."""
        return self._facts.find(piece_bytes(piece, "piece_to_id"))

    def get_vocab(self) -> dict[str, int]:
        """The id of every piece and added token; the same as `dict(tok.vocab)`."""
        return dict(self.vocab.items())

    def is_lossless(self) -> Losslessness:
        """Whether every text comes back from its ids: true, or false with reasons."""
        with importing:
            from cpbpe.tokenizer.lossless import losslessness_of
        return losslessness_of(self._facts)

    # --- Being a value ----------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """The model file, byte for byte as it was loaded, followed by the tokens that were added."""
        return self._facts.file

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file; if the path ends in .json, .gguf, ... or a slash (a folder), that format.

        An existing file is replaced in one step, so it is never half written; its mode stays. The file asks
        for bound `add_bos`, `add_eos` and `prefix_after_special` if its format can (see `file_options`).
        """
        with importing:
            from cpbpe.tokenizer.converting import save
        save(self._facts, self._bound, path)

    @property
    def fingerprint(self) -> str:
        """A hash of the model and of how cpbpe reads it, the same everywhere: a key for caches."""
        return identity.fingerprint(self._facts.file, self._bound)

    def __repr__(self) -> str:
        using = ", ".join(f"{name}={value!r}" for name, value in self._bound.items())
        return f"<cpbpe.Tokenizer: {identity.summary(self._facts)}{using and f', using {using}'}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tokenizer):
            return NotImplemented
        return self.to_bytes() == other.to_bytes() and self._bound == other._bound

    def __hash__(self) -> int:
        return hash(self._facts.file)

    def __deepcopy__(self: Self, memo: object = None) -> Self:
        return self

    __copy__ = __deepcopy__

    def __reduce__(self) -> tuple[Any, ...]:
        given: tuple[Any, ...] = (type(self), self._facts.file, identity.BEHAVIOUR)
        return identity.restore, (*given, dict(self._bound)) if self._bound else given

    # --- For other parts of cpbpe -----------------------------------------------------------------

    @property
    def facts(self) -> ModelFacts:
        """The engine and the tables built from the model."""
        return self._facts

    @property
    def plans(self) -> Plans:
        """The plans for the options of calls, including options that are bound."""
        return self._plans

    # --- What a Tokenizer refuses -----------------------------------------------------------------

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        """Refuse: users of transformers would expect a dict here, all others ids."""
        raise TypeError(
            "a Tokenizer is not called; tok.encode(text) gives ids, tok.encode_batch(texts) those of many; "
            "the dict of input_ids that transformers' tokenizers give comes from cpbpe.compat.transformers"
        )

    if not TYPE_CHECKING:
        __iter__ = None  # with __getitem__ alone, Python would try 0, 1, 2 ...

        def __getitem__(self, key: object) -> NoReturn:
            """Refuse: the vocabulary is an object of its own."""
            shown = repr(key) if isinstance(key, (str, bytes, int)) else "..."
            raise TypeError(
                f"a Tokenizer has no items; tok.vocab[{shown}] gives the id of a piece, or the piece of an id"
            )

        def __contains__(self, key: object) -> NoReturn:
            """Refuse, for the same reason."""
            raise TypeError("a Tokenizer has no items; write `in tok.vocab` to look for a piece")

        def __dir__(self) -> Iterable[str]:
            """The names that exist, for completion: without those of other libraries."""
            return native_dir(self)


@takes_a_source("load", ENCODE | DECODE, own=("pattern", "special_tokens"))
def load(
    source: Source, *, pattern: str | None = None, special_tokens: Mapping[str, int] | None = None
) -> Tokenizer:
    """Load a model from a file of any format: its path, its folder, or the file opened in binary mode.

    Formats are `.model`, tokenizer.json, tekken.json, GGUF, llama2.c's tokenizer.bin, `.vocab`, `.tiktoken`,
    GPT-2's vocab.json with merges.txt, and minbpe's `.model`, see docs/formats.md. In a folder, what the
    other files say about tokens is read, too.

    A file of ranks (`.tiktoken`) does not say by which `pattern` texts are cut, nor which `special_tokens`
    there are, with their ids. For well-known files cpbpe knows both; for others, give them here. The pattern
    is a regular expression or the name of a published one ("gpt2", "cl100k", "o200k", "llama3", "qwen2",
    "tekken"); "" leaves a text whole. For vocab.json with merges.txt it is GPT-2's, unless another is given.
    A GGUF file of a byte-level model names its pattern; give the pattern if cpbpe does not know the name.

    >>> load("tokenizer.model").vocab_size
    32000
    """
    return Tokenizer(_read(source, Hints.checked(pattern, special_tokens)))


def _read(source: Source, hints: Hints) -> ModelFacts:
    with naming(source):
        if (folder := folder_of(source)) is None:
            return identity.facts_of(read_model_file(source), hints)
        with importing:
            from cpbpe.tokenizer.folders import read_folder
        return read_folder(folder, hints=hints).facts


def _import_numpy() -> None:
    global _has_numpy
    if not _has_numpy:  # (Importing it again would take as long as encoding four ids.)
        with importing:
            import numpy as np  # noqa: F401
        _has_numpy = True
