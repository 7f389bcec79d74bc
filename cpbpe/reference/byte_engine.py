r"""The reference engine for byte-level models: what `ReferenceEngine` does, with the ideas of `byte_level/`.

`cpbpe/reference/byte_level/` explains them. Here they get what every model has in cpbpe: tokens with the part
of the text that each came from, merges skipped at random, text that is not UTF-8.

>>> from cpbpe.model.spec import Piece, Pieces, SplitSpec
>>> texts = [bytes([byte]) for byte in range(256)] + [b"ab", b"ra", b"abra", b" c"]
>>> toy = ByteLevelEngine(ModelSpec(
...     Pieces.of([Piece(text, -rank) for rank, text in enumerate(texts)]),
...     NormalizerSpec("", b"", False, False, False),
...     alphabet="bytes",
...     splitter=SplitSpec(r" ?\p{L}+| "),
... ))
>>> [(token.piece, token.begin, token.end) for token in toy.encode("abra cé".encode())]
[(b'abra', 0, 4), (b' c', 4, 6), (b'\xc3', 6, 7), (b'\xa9', 7, 8)]
>>> toy.decode_ids([258, 259, 195, 169])
b'abra c\xc3\xa9'
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

from cpbpe.model.spec import ModelSpec, NormalizerSpec, PieceType
from cpbpe.reference.byte_level.patterns import compiled, parts
from cpbpe.reference.encoding import Dropout, Normalizer, ReferenceEngine
from cpbpe.text.finder import Finder
from cpbpe.text.split_patterns import PATTERNS
from cpbpe.text.unicode_forms import normal_form
from cpbpe.text.utf8 import REPLACEMENT, is_valid_utf8, valid_character


class ByteNormalizer(Normalizer):
    r"""Leaves text as it is, but for its Unicode normal form, for a space in front if the model has that (or
    a call asks for it), and for bytes that are no character.

    Each byte came from its own place. (Elsewhere all bytes of a character came from where it begins; but a
    byte-level piece may end within one.) What a normal form has changed came from where that begins.

    >>> from dataclasses import replace
    >>> rules = NormalizerSpec("", b"", False, False, False)
    >>> ByteNormalizer(rules).normalize("é".encode() + b"\xff")
    (b'\xc3\xa9\xef\xbf\xbd', [0, 1, 2, 2, 2, 3])
    >>> ByteNormalizer(replace(rules, unicode_form="NFD")).normalize("é".encode() + b"\xff")
    (b'e\xcc\x81\xef\xbf\xbd', [0, 0, 0, 2, 2, 2, 3])
    """

    def __init__(self, spec: NormalizerSpec):
        super().__init__(spec, Finder([]))

    def normalize(self, text: bytes, keep_invalid: bool = False) -> tuple[bytes, list[int]]:
        """The text, and for each byte of it (and its end) the position that it came from."""
        result, origins = bytearray(), []
        at = 0
        while at < len(text):
            character = valid_character(text, at)
            if character is None:
                character = text[at : at + 1] if keep_invalid else REPLACEMENT
                origins += [at] * len(character)
                at += 1
            else:
                origins += range(at, at + len(character))
                at += len(character)
            result += character
        origins.append(len(text))
        form = self.spec.unicode_form
        made, origins = _normal_form(form, result.decode(), origins) if form else (bytes(result), origins)
        prefix = made and (self.spec.prefix_before_space or not made.startswith(b" "))
        return (b" " + made, [0, *origins]) if prefix and self.spec.add_dummy_prefix else (made, origins)


def _normal_form(form: str, text: str, origins: list[int]) -> tuple[bytes, list[int]]:
    """A text in a normal form, and where each byte came from; `origins` says it for the text as it was."""
    begins = [0, *accumulate(len(character.encode()) for character in text)]
    result = bytearray()
    places: list[int] = []
    for character, origin, is_own in normal_form(form, text):
        data = character.encode()
        result += data
        begin = begins[origin]
        places += origins[begin : begin + len(data)] if is_own else [origins[begin]] * len(data)
    return bytes(result), [*places, origins[-1]]


class ByteLevelEngine(ReferenceEngine):
    """Encodes and decodes for one byte-level model."""

    def __init__(self, spec: ModelSpec, keep_space: bool = False):
        super().__init__(spec, keep_space)
        self.normalizer = ByteNormalizer(spec.normalizer)

    def _joinable_pairs(self) -> None:
        """Nothing: text is cut by a pattern."""

    def chunks(self, text: bytes) -> Iterator[bytes]:
        """The parts of a text, which is UTF-8, that are merged by themselves.

        They are the matches of the pattern that are not empty. The published patterns match every text from
        its beginning to its end. What another one leaves out between two matches is a chunk as well, so that
        nothing is lost. (tiktoken drops it.) A model may have several patterns, each of which cuts the chunks
        of the one before, as if they were texts.
        """
        splitter = self.spec.splitter
        chunks = [text.decode()] if text else []
        for pattern in () if splitter is None else (splitter.pattern, *splitter.then):
            chunks = [part for chunk in chunks for part in parts(pattern, chunk)]
        yield from (chunk.encode() for chunk in chunks)

    def last_cut(self, text: bytes) -> int:
        """The last place in a text before which chunks are final, whatever text follows; 0 if none is known.

        In all published patterns a word or a number ends where whitespace begins, and nothing that follows
        changes that.
        """
        splitter = self.spec.splitter
        known = splitter is not None and not splitter.then and splitter.pattern in PATTERNS.values()
        if not known or not is_valid_utf8(text):
            return 0
        last = 0
        for place in compiled(r"[\p{L}\p{N}](?=\s)").finditer(decoded := text.decode()):
            last = place.end()
        return len(decoded[:last].encode())

    def _segment(self, text: bytes, dropout: Dropout | None = None) -> Iterator[tuple[bytes, int]]:
        """Yield the final symbols of a text with their ids."""
        begin = 0
        for chunk in self.chunks(text):
            yield from self._segment_bytes(chunk, begin, dropout)
            begin += len(chunk)

    def _segment_bytes(self, chunk: bytes, begin: int, dropout: Dropout | None) -> list[tuple[bytes, int]]:
        """The same for a chunk.

        With `dropout`, a chunk that would be taken whole still is if its symbols come out as they do when no
        merge is skipped.
        """
        symbols = [bytes([byte]) for byte in chunk]
        whole = [(chunk, self._ids[chunk])] if self.spec.whole and chunk in self._rank else None
        if dropout is None:
            return whole or self._segment_chunk(symbols, set(), begin, None)
        sampled = self._merge(symbols, set(), begin, dropout)
        if whole and sampled == self._merge(symbols, set()):
            return whole
        return sampled

    def _join(self, pieces: Iterable[tuple[bytes, int]], keep_invalid: bool) -> bytes:
        """Join the pieces. CONTROL pieces leave no text.

        Unless they are kept, bytes that make no character become U+FFFD, one for the longest beginning of a
        character and one for a byte that begins none: so do tiktoken and tokenizers, and Python's "replace".
        """
        joined = b"".join(piece for piece, id in pieces if id < 0 or self._types[id] != PieceType.CONTROL)
        return joined if keep_invalid else joined.decode(errors="replace").encode()
