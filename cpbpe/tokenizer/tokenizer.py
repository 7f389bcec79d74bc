"""The Tokenizer: what users hold. It takes Python's many kinds of text and numbers, and checks them.

The work is done by an engine (`cpbpe.engine.choice`); files are read by `cpbpe.model.formats.sentencepiece`. What a Tokenizer can do
beside encoding is in `cpbpe.tokenizer.vocabulary` (pieces, the model as a value) and `cpbpe.tokenizer.detokenizer` (decoding).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from cpbpe.engine.choice import Engine
from cpbpe.model.formats import sentencepiece as model
from cpbpe.text.utf8 import text_of
from cpbpe.tokenizer import splitting as documents
from cpbpe.tokenizer.alignment import Encoding, Named, Unit, aligned, aligned_arrays
from cpbpe.tokenizer.checks import checked_text, checked_threads, numpy, refuse_single, threads_for
from cpbpe.tokenizer.detokenizer import Detokenizer
from cpbpe.tokenizer.options import (
    ENCODE,
    SAMPLE,
    STRETCH,
    EncodeOptions,
    SampleOptions,
    StretchOptions,
    check_names,
    random_of,
)
from cpbpe.tokenizer.ragged import Ragged
from cpbpe.tokenizer.special_text import Encoder, Part, checked_parts
from cpbpe.tokenizer.special_tokens import MAX_CHOICES
from cpbpe.tokenizer.streaming import StreamEncoder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Unpack

Text = str | bytes
AnyText = TypeVar("AnyText", bound=str | bytes)
_LASTING = (str, tuple, frozenset)


class Tokenizer(Detokenizer):
    """A loaded model. It never changes, so it can be shared by threads, copied and pickled.

    >>> tok = Tokenizer.from_file("tokenizer.model")
    >>> tok
    <cpbpe.Tokenizer: 32000 pieces, byte fallback, normalizer 'identity'>
    >>> tok.encode("Grüße!")
    [1778, 28837, 9526, 28808]
    >>> tok.decode([1778, 28837, 9526, 28808])
    'Grüße!'

    Two tokenizers are equal when their model files are.

    >>> tok == Tokenizer.from_bytes(tok.to_bytes())
    True

    Options that every way of encoding has:

    - `add_bos`, `add_eos`: put the bos id in front, the eos id behind.
    - `reverse`: turn the ids around, before that.
    - `prefix_space`: whether a dummy prefix is put in front of the text; None, as the model says.
    - `allowed_special`: the special tokens that become ids where the text spells them out, or "all".
      Without it a text never yields one. The longest wins. What stands between two is encoded as if it
      were a text by itself.
    - `disallowed_special`: special tokens that the text must not hold (ValueError), or "raise": any.
    - `prefix_after_special`: False leaves the dummy prefix away behind a special token.

    And every way of decoding:

    - `skip_special_tokens`: by default CONTROL pieces leave nothing, as in sentencepiece, and added
      tokens their text. True: both leave nothing; False: both leave their text.
    - `keep_prefix_space`: keep a space at the beginning that a dummy prefix may have put there.
    - `prefix_after_special`: False if the ids were encoded so. Then no space goes behind a token that is
      shown.
    """

    __slots__ = ()

    # --- Encoding ---------------------------------------------------------------------------------

    def encode(
        self,
        text: Text | Sequence[Part],
        **options: Unpack[SampleOptions],
    ) -> list[int]:
        r"""The ids of a text.

        `text` may be bytes, and they need not be valid UTF-8: a byte that belongs to no character
        reads as U+FFFD. It may also be a list of parts: texts, each encoded by itself, `Special` tokens,
        and ids. Special tokens that a text spells out stay ordinary text, unless they are allowed.

        `alpha` is the chance of every merge to be left out (BPE-dropout); the same `seed` gives the same
        ids, and none other ones every time.

        >>> tok = Tokenizer.from_file("tokenizer.model")
        >>> tok.encode("Hi", add_bos=True, add_eos=True)
        [1, 15359, 2]
        >>> tok.encode(b"Hi\xff") == tok.encode("Hi\ufffd")
        True
        >>> tok.encode("<s>Hi", allowed_special={"<s>"})
        [1, 15359]
        >>> tok.encode("Hello", alpha=0.5, seed=1) == tok.encode("Hello", alpha=0.5, seed=1)
        True
        """
        if options or type(text) is not str:
            ids = self._encode_any(text, options)
        else:
            ids = self._engine.encode(text)
        if options:
            front, back, reverse = self._around(options)
            return [*front, *(reversed(ids) if reverse else ids), *back]
        return ids

    def encode_array(
        self,
        text: Text,
        *,
        threads: int = 1,
        **options: Unpack[EncodeOptions],
    ) -> NDArray[np.uint32]:
        """The ids of a text as a numpy array.

        With `threads` above 1 a long text is cut where nothing can merge, and its parts are encoded at
        the same time; the result is the same.

        >>> Tokenizer.from_file("tokenizer.model").encode_array("Hello world", add_bos=True)
        array([    1, 22557,  1526], dtype=uint32)
        """
        lib = numpy()
        if type(text) is not str:
            text = checked_text(text, "encode_array")
        if threads != 1 or type(threads) is not int:
            threads = checked_threads(threads)
        encoder = self._encoder("encode_array", options, ENCODE) if options else self._engine
        found = encoder.encode_array(text, threads)
        ids: NDArray[np.uint32] = lib.frombuffer(found, lib.uint32)
        if options:
            front, back, reverse = self._around(options)
            ids = lib.concatenate([front, ids[::-1] if reverse else ids, back]).astype(lib.uint32)
        return ids

    def count(
        self,
        text: Text,
        **options: Unpack[StretchOptions],
    ) -> int:
        """How many ids a text has, which are counted and not built.

        >>> Tokenizer.from_file("tokenizer.model").count("Hello world")
        2
        """
        encoder = self._encoder("count", options, STRETCH)
        return encoder.count(checked_text(text, "count"))

    def encode_pieces(
        self,
        text: Text,
        **options: Unpack[SampleOptions],
    ) -> list[str]:
        """The pieces of a text. An unknown part stands for itself.

        >>> Tokenizer.from_file("tokenizer.model").encode_pieces("Hi 你好 🦙")
        ['▁Hi', '▁', '你', '好', '▁', '<0xF0>', '<0x9F>', '<0xA6>', '<0x99>']
        """
        front, back, reverse = self._around(options)
        encoder = self._encoder("encode_pieces", options, SAMPLE)
        random = random_of(options)
        given = checked_text(text, "encode_pieces")
        found = encoder.tokens(given) if random is None else encoder.sample(given, *random)
        pieces = [text_of(piece) for piece in found[1]]
        ends = [[self.id_to_piece(id) for id in ids] for ids in (front, back)]
        return [*ends[0], *(reversed(pieces) if reverse else pieces), *ends[1]]

    def encode_offsets(
        self,
        text: Text,
        *,
        unit: Unit | None = None,
        **options: Unpack[SampleOptions],
    ) -> Encoding:
        """Ids, pieces, and the span of the text that each came from.

        Spans count characters for `str` and bytes for `bytes`; `unit` ("char" or "byte") chooses.

        >>> tok = Tokenizer.from_file("tokenizer.model")
        >>> found = tok.encode_offsets("Hi 你好")
        >>> list(zip(found.pieces, found.offsets, found.surfaces))
        [('▁Hi', (0, 2), 'Hi'), ('▁', (2, 3), ' '), ('你', (3, 4), '你'), ('好', (4, 5), '好')]
        >>> tok.encode_offsets("你好", unit="byte").offsets
        [(0, 0), (0, 3), (3, 6)]
        """
        encoder = self._encoder("encode_offsets", options, SAMPLE)
        random = random_of(options)
        added = self._named(options.get("add_bos", False), options.get("add_eos", False))
        reverse = options.get("reverse", False)
        return aligned(encoder, text, "encode_offsets", added, reverse, unit, random)

    def encode_batch(
        self,
        texts: Iterable[Text],
        *,
        threads: int | None = None,
        **options: Unpack[SampleOptions],
    ) -> list[list[int]]:
        """The ids of many texts, by several threads: by default all cores, if it is worth it.

        With `alpha` they are sampled, by one thread: the first with `seed`, the next with the number after
        it, and so on.

        >>> Tokenizer.from_file("tokenizer.model").encode_batch(["Hi", "Hello world", ""])
        [[15359], [22557, 1526], []]
        """
        refuse_single(texts, (str, bytes, bytearray, memoryview), "encode_batch", "texts")
        checked = [checked_text(text, "encode_batch") for text in texts]
        encoder = self._encoder("encode_batch", options, SAMPLE)
        random = random_of(options)
        if random is not None:
            chance, first = random
            numbers = ((first + i) % (1 << 64) for i in range(len(checked)))
            found = [encoder.sample(text, chance, i)[0] for text, i in zip(checked, numbers, strict=True)]
        else:
            found = encoder.encode_batch(checked, threads_for(checked, threads))
        if options:
            front, back, reverse = self._around(options)
            return [[*front, *(reversed(ids) if reverse else ids), *back] for ids in found]
        return found

    def encode_batch_arrays(
        self,
        texts: Iterable[Text],
        *,
        threads: int | None = None,
        **options: Unpack[EncodeOptions],
    ) -> Ragged:
        """The ids of many texts in one numpy array, with the places where each begins. See `Ragged`.

        >>> Tokenizer.from_file("tokenizer.model").encode_batch_arrays(["Hi", "Hello world"]).ids
        array([15359, 22557,  1526], dtype=uint32)
        """
        np = numpy()
        refuse_single(texts, (str, bytes, bytearray, memoryview), "encode_batch_arrays", "texts")
        checked = [checked_text(text, "encode_batch_arrays") for text in texts]
        encoder = self._encoder("encode_batch_arrays", options, ENCODE)
        found = encoder.encode_batch_arrays(checked, threads_for(checked, threads))
        ids, offsets = np.frombuffer(found[0], np.uint32), np.frombuffer(found[1], np.int64)
        if options:
            front, back, reverse = self._around(options)
            rows = [
                np.concatenate([front, row[::-1] if reverse else row, back]) for row in Ragged(ids, offsets)
            ]
            ids = np.concatenate([np.zeros(0, np.uint32), *rows]).astype(np.uint32)
            offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        return Ragged(ids, offsets)

    def encode_batch_offsets(
        self,
        texts: Iterable[Text],
        *,
        add_bos: bool = False,
        add_eos: bool = False,
        unit: Unit | None = None,
        **options: Unpack[StretchOptions],
    ) -> list[Encoding]:
        """`encode_offsets` of many texts.

        >>> found = Tokenizer.from_file("tokenizer.model").encode_batch_offsets(["Hi", "Hello world"])
        >>> [encoding.offsets for encoding in found]
        [[(0, 2)], [(0, 5), (5, 11)]]
        """
        refuse_single(texts, (str, bytes, bytearray, memoryview), "encode_batch_offsets", "texts")
        encoder = self._encoder("encode_batch_offsets", options, STRETCH)
        added = self._named(add_bos, add_eos)
        return [aligned(encoder, text, "encode_batch_offsets", added, False, unit, None) for text in texts]

    def encode_batch_offsets_arrays(
        self,
        texts: Iterable[Text],
        *,
        add_bos: bool = False,
        add_eos: bool = False,
        unit: Unit | None = None,
        **options: Unpack[StretchOptions],
    ) -> tuple[Ragged, NDArray[np.int64]]:
        """Ids and offsets of many texts as arrays: the ids as a `Ragged`, and begin and end of each id.

        >>> tok = Tokenizer.from_file("tokenizer.model")
        >>> ids, spans = tok.encode_batch_offsets_arrays(["Hi", "Hello world"])
        >>> ids.tolist(), spans[ids.offsets[1] : ids.offsets[2]].tolist()
        ([[15359], [22557, 1526]], [[0, 5], [5, 11]])
        """
        method = "encode_batch_offsets_arrays"
        refuse_single(texts, (str, bytes, bytearray, memoryview), method, "texts")
        encoder = self._encoder("encode_batch_offsets_arrays", options, STRETCH)
        return aligned_arrays(encoder, texts, method, self._named(add_bos, add_eos), unit)

    def stream_encoder(self, *, prefix_space: bool | None = None) -> StreamEncoder:
        """An encoder for one text that arrives in parts. See `cpbpe.tokenizer.streaming`.

        >>> stream = Tokenizer.from_file("tokenizer.model").stream_encoder()
        >>> stream.push("Hel") + stream.push("lo wor") + stream.push("ld") + stream.flush()
        [22557, 1526]
        """
        return StreamEncoder(self, prefix_space=prefix_space)

    def normalize(self, text: Text) -> Any:
        """The text as it is segmented: `str` for `str`, `bytes` for `bytes`.

        >>> Tokenizer.from_file("tokenizer.model").normalize("Hello world")
        '▁Hello▁world'
        """
        normalized = self._engine.normalize(checked_text(text, "normalize"))
        return text_of(normalized) if isinstance(text, str) else normalized

    # --- Documents --------------------------------------------------------------------------------

    def truncate(self, text: AnyText, max_tokens: int, *, prefix_space: bool | None = None) -> AnyText:
        """The beginning of a text, with at most `max_tokens` ids, that ends where a token ends.

        >>> Tokenizer.from_file("tokenizer.model").truncate("Hello world, hello", 2)
        'Hello world'
        """
        return documents.truncate(self, text, max_tokens, prefix_space)

    def split(
        self, text: AnyText, max_tokens: int, *, overlap: int = 0, prefix_space: bool | None = None
    ) -> list[AnyText]:
        """A text in parts of at most `max_tokens` ids each, about `overlap` of which are in the next, too.

        >>> Tokenizer.from_file("tokenizer.model").split("Hello world, and more", 2)
        ['Hello world', ', and', ' more']
        """
        return documents.split(self, text, max_tokens, overlap, prefix_space)

    # --- How to encode ----------------------------------------------------------------------------

    def _encoder(self, method: str, options: StretchOptions, known: tuple[str, ...]) -> Engine | Encoder:
        """The engine, or one that does what these options ask for."""
        engine = self._engine
        if not options:
            return engine
        check_names(options, method, known)
        prefix_space = options.get("prefix_space")
        allowed, disallowed = options.get("allowed_special", ()), options.get("disallowed_special", ())
        if prefix_space is not None and prefix_space not in (True, False):
            raise TypeError(f"prefix_space is True, False or None, not {prefix_space!r}")
        if not (allowed or disallowed):
            return engine if prefix_space is None else engine.variant(prefix=bool(prefix_space))
        made = self._special.encoders
        prefix_after_special = options.get("prefix_after_special", True)
        key = (prefix_space, allowed, disallowed, prefix_after_special)
        lasting = type(allowed) in _LASTING and type(disallowed) in _LASTING  # others may change
        if lasting and key in made:
            found: Encoder = made[key]
            return found
        if prefix_space is not None:
            engine = engine.variant(prefix=bool(prefix_space))
        later = engine if prefix_after_special else engine.variant(prefix=False)
        encoder = Encoder(engine, later, self._special.scanner(allowed, disallowed))
        if lasting:
            if len(made) >= MAX_CHOICES:
                made.pop(next(iter(made)), None)
            made[key] = encoder
        return encoder

    def _encode_any(self, text: Text | Sequence[Part], options: SampleOptions) -> list[int]:
        """The ids of text, bytes, or parts."""
        encoder = self._encoder("encode", options, SAMPLE)
        random = random_of(options)
        if not isinstance(text, (list, tuple)):
            given = checked_text(text, "encode")
            return encoder.encode(given) if random is None else encoder.sample(given, *random)[0]
        if random is not None:
            raise TypeError("encode() takes no alpha for a list of parts; encode its texts one by one")
        parts = checked_parts(text, self._special, self._check_id)
        if not isinstance(encoder, Encoder):
            later = encoder if options.get("prefix_after_special", True) else encoder.variant(prefix=False)
            encoder = Encoder(encoder, later, None)
        return encoder.encode_parts(parts, self._special.shown)

    def _named(self, add_bos: bool, add_eos: bool) -> tuple[Named, Named]:
        """The ids to put in front and behind, with their pieces."""
        front, back = self._ends(add_bos, add_eos)
        return [(id, self._engine.piece(id)) for id in front], [(id, self._engine.piece(id)) for id in back]

    def _around(self, options: EncodeOptions) -> tuple[list[int], list[int], bool]:
        """The ids to put in front and behind, and whether to turn those between around."""
        front, back = self._ends(options.get("add_bos", False), options.get("add_eos", False))
        return front, back, options.get("reverse", False)

    def _ends(self, add_bos: bool, add_eos: bool) -> tuple[list[int], list[int]]:
        """The ids to put in front and behind."""
        bos, eos = self.bos_id, self.eos_id
        for wanted, option, id, name in ((add_bos, "add_bos", bos, "bos"), (add_eos, "add_eos", eos, "eos")):
            if wanted and id is None:
                raise ValueError(
                    f"{option}=True, but this model defines no {name} piece of type CONTROL; "
                    f"leave the option out, or add an id of your own to the list"
                )
        return [bos] if add_bos and bos is not None else [], [eos] if add_eos and eos is not None else []


def load(source: model.Source) -> Tokenizer:
    """Load a `.model` file, by its path or already opened in binary mode; the same as `Tokenizer.from_file`.

    >>> load("tokenizer.model").vocab_size
    32000
    """
    return Tokenizer.from_file(source)
