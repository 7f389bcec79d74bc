"""From ids to text: the half of `Tokenizer` that decodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, SupportsIndex

from cpbpe.engine.choice import Engine
from cpbpe.text.utf8 import text_of
from cpbpe.tokenizer.checks import as_ids, check_ids, refuse_single, settled, threads_for, utf8
from cpbpe.tokenizer.options import DECODE, DecodeOptions, check_names
from cpbpe.tokenizer.ragged import Ragged
from cpbpe.tokenizer.special_text import Decoder
from cpbpe.tokenizer.streaming import StreamDecoder
from cpbpe.tokenizer.vocabulary import Vocabulary

if TYPE_CHECKING:
    from typing_extensions import Unpack

Ids = Iterable[SupportsIndex] | SupportsIndex


class Detokenizer(Vocabulary):
    """Turns ids into text. `Tokenizer` says what the options mean."""

    __slots__ = ()

    def decode(
        self,
        ids: Ids,
        **options: Unpack[DecodeOptions],
    ) -> str:
        """The text of ids: any sequence of integers, a numpy array, or one integer.

        CONTROL pieces are left out, unless asked for. Bytes that make no character read as U+FFFD, one
        for each.

        >>> tok = Tokenizer.from_file("tokenizer.model")
        >>> tok.decode([1, 15359, 28808, 2])
        'Hi!'
        >>> tok.decode([1, 15359, 28808, 2], skip_special_tokens=False)
        '<s>Hi!</s>'
        >>> tok.decode([32000])
        Traceback (most recent call last):
        ...
        IndexError: id 32000 at position 0 is outside the vocabulary: 32000 pieces, 0 to 31999
        """
        if type(ids) is not list:
            ids = settled(ids)
        if not options:
            text = self._engine.decode(ids if type(ids) is list else as_ids(ids, len(self), "decode"))
            if text is not None:
                return text
        checked = self._checked(ids, "decode")
        text = self._decoder("decode", options).decode(checked)
        assert text is not None
        return text

    def decode_bytes(
        self,
        ids: Ids,
        **options: Unpack[DecodeOptions],
    ) -> bytes:
        r"""The same text in UTF-8, except that bytes which make no character stay what they are.

        >>> tok = Tokenizer.from_file("tokenizer.model")
        >>> llama = tok.encode("🦙")
        >>> tok.decode_bytes(llama[:-1]), tok.decode(llama[:-1])
        (b'\xf0\x9f\xa6', '���')
        """
        if not options:
            ids = settled(ids)
            given = ids if type(ids) is list else as_ids(ids, len(self), "decode_bytes")
            text = self._engine.decode_bytes(given)
            if text is not None:
                return text
        checked = self._checked(ids, "decode_bytes")
        decoder = self._decoder("decode_bytes", options)
        text = decoder.decode_bytes(checked)
        assert text is not None
        return text

    def decode_pieces(self, pieces: Iterable[str | bytes]) -> str:
        """The text of pieces. One that the vocabulary does not hold stands for itself.

        >>> Tokenizer.from_file("tokenizer.model").decode_pieces(["▁Hi", "▁there", "🦙"])
        'Hi there🦙'
        """
        refuse_single(pieces, (str, bytes, bytearray, memoryview), "decode_pieces", "pieces")
        checked = [utf8(piece, "decode_pieces") for piece in pieces]
        if not self._special.added:
            return text_of(self._engine.decode_pieces(checked))
        texts, begin = [], 0
        for end, piece in enumerate([*checked, None]):
            name = None if piece is None else text_of(piece)
            if name is None or name in self._special.added:
                texts.append(text_of(self._engine.decode_pieces(checked[begin:end])))
                texts.append(name or "")
                begin = end + 1
        return "".join(texts)

    def decode_batch(
        self,
        batch: Iterable[Ids] | Ragged,
        *,
        threads: int | None = None,
        **options: Unpack[DecodeOptions],
    ) -> list[str]:
        """The texts of many sequences of ids: a list of such, a `Ragged`, or a two-dimensional array.

        >>> Tokenizer.from_file("tokenizer.model").decode_batch([[15359], [22557, 1526], []])
        ['Hi', 'Hello world', '']
        """
        refuse_single(batch, (str, bytes, bytearray), "decode_batch", "sequences of ids")
        listed = [settled(ids) for ids in batch]
        if not options:
            given = [ids if type(ids) is list else as_ids(ids, len(self), "decode_batch") for ids in listed]
            texts = self._engine.decode_batch(given, threads_for(given, threads))
            if texts is not None:
                return texts
        decoder = self._decoder("decode_batch", options)
        rows = [self._checked(ids, "decode_batch", f" of sequence {row}") for row, ids in enumerate(listed)]
        texts = decoder.decode_batch([*rows], threads_for(rows, threads))
        assert texts is not None
        return texts

    def stream_decoder(
        self,
        prompt_ids: Ids | None = None,
        *,
        skip_special_tokens: bool | None = None,
        keep_prefix_space: bool = False,
        prefix_after_special: bool = True,
    ) -> StreamDecoder:
        """A decoder for ids that arrive one by one. See `cpbpe.tokenizer.streaming`.

        >>> tok = Tokenizer.from_file("tokenizer.model")
        >>> stream = tok.stream_decoder()
        >>> [stream.push(id) for id in tok.encode("Hi 🦙!")], stream.flush()
        (['Hi', ' ', '', '', '', '🦙', '!'], '')
        """
        return StreamDecoder(
            self,
            [] if prompt_ids is None else prompt_ids,
            skip_special_tokens=skip_special_tokens,
            keep_prefix_space=keep_prefix_space,
            prefix_after_special=prefix_after_special,
        )

    def _decoder(self, method: str, options: DecodeOptions) -> Engine | Decoder:
        """The engine, or what does what these options ask for; for ids that have been checked."""
        check_names(options, method, DECODE)
        skip, keep_space = options.get("skip_special_tokens"), options.get("keep_prefix_space", False)
        prefix_after_special = options.get("prefix_after_special", True)
        special = self._special
        engine = self._engine.variant(keep_space=True) if keep_space else self._engine
        if not special.added and skip is not False:
            return engine
        later = engine if prefix_after_special else engine.variant(keep_space=True)
        shown = {} if skip else special.texts if skip is None else special.shown
        return Decoder(engine, later, shown, special.hidden if skip else frozenset())

    def _checked(self, ids: Ids, method: str, of: str = "") -> list[int]:
        """Ids as a list of int, each in use. `of` says more of where they are."""
        checked = check_ids(ids, len(self), method, of)
        size = self._engine.size
        if len(self) > size + len(self._special.added):  # there are gaps
            for position, id in enumerate(checked):
                if id >= size and id not in self._special.texts:
                    raise IndexError(
                        f"id {id} at position {position}{of} is not in use: no added token has it"
                    )
        return checked
