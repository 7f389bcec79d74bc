"""From texts to tokens: added tokens are found first, and the engine encodes the rest.

The engine's batch calls make all ids of a batch at once. Tokens, offsets and words are computed from the same
parts later, when they are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from cpbpe.checks import threads_for
from cpbpe.compat.tokenizers.added import AddedTokens, Found
from cpbpe.compat.tokenizers.encoding import Details, Source, Span
from cpbpe.engine.cutting import Cutter, make_cutter
from cpbpe.engine.protocol import Engine
from cpbpe.lazy import kept
from cpbpe.model.formats.tokenizer_json.steps import normalizer_of, pieces_of
from cpbpe.model.spec import NormalizerSpec, PieceType, SplitSpec
from cpbpe.text.unicode_forms import counted
from cpbpe.text.utf8 import character_length, character_positions

# --- Normalizing, with the span in the text for each character of the result ----------------------


class Normalizer:
    """Normalizes with the steps by which tokenizers expresses the options of a model, without a charsmap.

    It is needed because tokenizers and `cpbpe.Tokenizer.align`, which follows sentencepiece, give tokens
    different spans. Those of tokenizers follow from its steps:

    - What `Prepend` puts in front belongs to the first character.
    - If several spaces become one, it belongs to the last of them.
    - What is added at the end belongs to the last character.
    - No span is empty: all bytes of a character have the span of the character.
    """

    def __init__(self, rules: NormalizerSpec, has_user_defined: bool = False):
        made: Any = normalizer_of(rules)
        steps = [] if made is None else made.get("normalizers", [made])
        self._steps = [_step(step) for step in steps]
        self._form = rules.unicode_form
        self.is_simple = not (rules.remove_extra_whitespaces or rules.suffix or has_user_defined)
        """Whether the spans of `cpbpe.Tokenizer.align` need only be widened to one character."""

    def __call__(self, text: str) -> tuple[str, list[Span]]:
        """The normalized text, and the span of each of its characters.

        >>> Normalizer(NormalizerSpec())("a  b ")
        ('▁a▁b', [(0, 1), (0, 1), (2, 3), (3, 4)])
        """
        spans = [(at, at + 1) for at in range(len(text))]
        if self._form and not text.isascii():
            text, spans = _normal_form(self._form, text)
        for pattern, content in self._steps:
            if pattern is None:
                if text:
                    text, spans = content + text, [*spans[:1] * len(content), *spans]
                continue
            parts, kept, at = [], [], 0
            for found in pattern.finditer(text):
                begin, end = found.span()
                parts += [text[at:begin], content]
                kept += spans[at:begin] + [spans[max(end, 1) - 1]] * len(content)
                at = end
            text = "".join([*parts, text[at:]])
            spans = kept + spans[at:]
        return text, spans


def _normal_form(form: str, text: str) -> tuple[str, list[Span]]:
    """A text in a Unicode normal form, and the span of each of its characters.

    A character that is composed of several has the span of the first of them. If one becomes several, all but
    the first of these have the span of the character before it in the text.
    """
    characters, spans = [], []
    at = 0
    for character, begun in counted(form, text):
        place = at if begun else at - 1
        characters.append(character)
        spans.append((place, place + 1) if place >= 0 else (0, 0))
        at += begun
    return "".join(characters), spans


def _step(step: Any) -> tuple[re.Pattern[str] | None, str]:
    if step["type"] == "Prepend":
        return None, step["prepend"]
    return compiled(step["pattern"]), step["content"]


def compiled(pattern: dict[str, str]) -> re.Pattern[str]:
    """A pattern of a file, a text or a regular expression, as Python's own."""
    return re.compile(
        re.escape(pattern["String"]) if "String" in pattern else python_pattern(pattern["Regex"])
    )


def python_pattern(pattern: str) -> str:
    r"""A regular expression of a file as Python spells it.

    >>> python_pattern(r"\A\\z\z")
    '\\A\\\\z\\Z'
    """
    return re.sub(r"\\(.)", lambda found: r"\Z" if found[1] == "z" else found[0], pattern, flags=re.DOTALL)


# --- Words ----------------------------------------------------------------------------------------


class Words:
    """The words of texts for one pre-tokenizer. Nothing merges across their ends, so tokens never cross them.

    With Llama's and Gemma's files, all of a text is one word.
    """

    def __init__(self, pre_tokenizer: Any, engine: Engine):
        self._engine = engine
        self._at_spaces = False
        self._isolated = False
        self._cut: re.Pattern[str] | None = None
        if pre_tokenizer is None:
            return
        steps = pre_tokenizer["pretokenizers"] if pre_tokenizer.get("type") == "Sequence" else [pre_tokenizer]
        if steps and steps[0].get("type") == "Metaspace":
            self._at_spaces = steps[0].get("split", True) is not False
            steps = steps[1:]
        if pieces_of(steps) is not None:
            self._isolated = True
            for step in steps[1:]:
                self._cut = compiled(step["pattern"])

    def starts(self, ids: list[int], pieces: list[str]) -> list[bool] | None:
        """Whether each token of a text begins a word; None if the text is one."""
        if not (self._at_spaces or self._isolated):
            return None
        if self._at_spaces:
            return [not at or piece.startswith("▁") for at, piece in enumerate(pieces)]
        starts = [not at for at in range(len(ids))]
        begin = 0
        for at, id in enumerate(ids):
            if self._engine.kind(id) == PieceType.USER_DEFINED:
                self._cut_at(starts, ids, pieces, begin, at)
                starts[at] = True
                if at + 1 < len(ids):
                    starts[at + 1] = True
                begin = at + 1
        self._cut_at(starts, ids, pieces, begin, len(ids))
        return starts

    def _cut_at(self, starts: list[bool], ids: list[int], pieces: list[str], begin: int, end: int) -> None:
        """Cut the tokens between user-defined pieces, if the file says so."""
        if self._cut is None or begin == end:
            return
        parts = [
            bytes([int(piece[3:5], 16)]) if self._engine.kind(id) == PieceType.BYTE else piece.encode()
            for id, piece in zip(ids[begin:end], pieces[begin:end], strict=True)
        ]
        found = self._cut.match(b"".join(parts).decode())
        if found is None:
            return
        length = len(found[0].encode())
        for at, part in enumerate(parts, begin):
            if length == 0:
                starts[at] = True
                return
            length -= len(part)


# --- The tokens of byte-level models --------------------------------------------------------------


class Chunks:
    """The chunks of one byte-level model.

    In such a model a token is a run of bytes, and may begin or end inside a character. In tokenizers, each
    byte is a letter with the span of its whole character, and each chunk is a word.
    """

    def __init__(self, splitter: SplitSpec | None):
        self._splitter = splitter

    @kept
    def _cutters(self) -> list[Cutter]:
        splitter = self._splitter
        return [] if splitter is None else list(map(make_cutter, (splitter.pattern, *splitter.then)))

    def _begins(self, data: bytes) -> set[int]:
        """Where chunks begin. Each pattern cuts the chunks of the one before as if they were texts."""
        begins = {0}
        for cutter in self._cutters:
            for begin, end in pairwise(sorted({*begins, len(data)})):
                for span in cutter.spans(data[begin:end].decode()):
                    begins.update(begin + place for place in span)
        return begins

    def places(self, pieces: list[bytes], spans: list[Span]) -> tuple[list[Span], list[bool]]:
        r"""The span of each token, and whether it begins a word. `spans`: those of the characters.

        >>> Chunks(None).places([b"a\xc3", b"\xa9"], [(0, 1), (1, 2)])
        ([(0, 2), (1, 2)], [True, False])
        """
        data = b"".join(pieces)
        text = data.decode()
        if len(text) > len(spans):
            spans = [spans[0], *spans]  # the prefix space belongs to the first character
        characters = range(len(data)) if text.isascii() else character_positions(data)
        ends = list(accumulate(map(len, pieces)))
        begins = [0, *ends[:-1]] if ends else []
        own = [
            (spans[characters[begin]][0], spans[characters[end - 1]][1])
            for begin, end in zip(begins, ends, strict=True)
        ]
        words = self._begins(data)
        return own, [begin in words for begin in begins]


# --- Texts ----------------------------------------------------------------------------------------


class Part(NamedTuple):
    """A part of a text: an added token, or text that an engine encodes."""

    text: str
    """What to encode; or the added token, as the text has it."""
    begin: int
    """Where it begins in the text."""
    id: int | None = None
    """The id of an added token."""
    kind: int = 0
    """Which engine encodes it, see `Texts.engines`."""
    spans: list[Span] | None = None
    """The spans of its characters, counted from `begin`, if it is a part of normalized text."""


FIRST, LATER, RAW = range(3)


class Texts:
    """Encodes texts for one tokenizer."""

    def __init__(
        self,
        engine: Engine,
        added: AddedTokens,
        normalizer: Normalizer | None,
        prefix_after_special: bool,
        words: Callable[[], Words],
        chunks: Chunks | None,
    ):
        """If `normalizer` is None, spans are those of `cpbpe.Tokenizer.align`.

        `chunks` is None if the model is not byte-level.
        """
        self._added = added
        self._normalizer = normalizer
        self._make_words = words
        later = engine if prefix_after_special else engine.variant(prefix=False)
        self._chunks = chunks
        # (A byte-level model puts a prefix space in front of each part, even of one already normalized.)
        self.engines = (engine, later, engine.variant(raw=True) if chunks is None else engine)
        self._normalizing = self.engines if chunks is None else (engine.variant(prefix=False),) * 3
        """The normalizing engines; as in `engines`, by the kind of a part: FIRST, LATER or RAW."""
        self.skips_special = False
        """Whether special tokens are plain text."""

    @kept
    def _words(self) -> Words:
        return self._make_words()

    # --- Ids --------------------------------------------------------------------------------------

    def source(self, text: str) -> Source:
        """The tokens of one text."""
        if self._row(text) is not None:
            return self.sources([text], is_fast=False)[0]
        return Source(self.engines[FIRST].encode(text), lambda: self._details([Part(text, 0)]))

    def sources(self, texts: list[str], is_fast: bool) -> list[Source]:
        """The tokens of texts. With `is_fast`, they have no token texts, offsets and words."""
        rows = [self._row(text) for text in texts]
        jobs: tuple[list[str | bytes], ...] = ([], [], [])
        for text, row in zip(texts, rows, strict=True):
            if row is None:
                jobs[FIRST].append(text)
                continue
            for part in row:
                if part.id is None:
                    jobs[part.kind].append(part.text)
        encoded = []
        for engine, job in zip(self.engines, jobs, strict=True):
            if len(job) == 1:
                encoded.append(iter([engine.encode(job[0])]))
            else:
                encoded.append(iter(engine.encode_batch(job, threads_for(job, None)) if job else []))
        sources = []
        for text, row in zip(texts, rows, strict=True):
            ids: list[int] = []
            if row is None:
                ids = next(encoded[FIRST])
            for part in row or ():
                if part.id is None:
                    ids += next(encoded[part.kind])
                else:
                    ids.append(part.id)
            if is_fast:
                sources.append(Source.blank(ids))
            else:
                parts = [Part(text, 0)] if row is None else row
                sources.append(Source(ids, partial(self._details, parts)))
        return sources

    # --- Parts ------------------------------------------------------------------------------------

    def _row(self, text: str) -> list[Part] | None:
        """The parts of a text; None if it is one part."""
        plain, later = self._added.searches
        found = plain.find(text, self._is_skipped)
        if not found and not later.tokens:
            return None
        row: list[Part] = []
        for part in _cut(Part(text, 0), found):
            if part.id is not None or not later.tokens:
                row.append(part)
            elif self._added.is_normalizing:
                row += self._normalized_parts(part)
            else:
                row += _cut(part, later.find(part.text, self._is_skipped))
        return row

    def _is_skipped(self, content: str) -> bool:
        return self.skips_special and content in self._added.specials

    def _normalized_parts(self, segment: Part) -> list[Part]:
        """The parts of a segment, cut around the tokens that are searched for in normalized text."""
        normalized = self._normalizing[segment.kind].normalize(segment.text)
        found = self._added.searches[1].find(normalized, self._is_skipped)
        if not found:
            return [segment]
        spans = self._spans_of(segment, normalized)
        row: list[Part] = []
        at = 0
        for token in [*found, Found(-1, len(normalized), len(normalized))]:
            for begin, end, id in ((at, token.begin, None), (token.begin, token.end, token.id)):
                if begin < end:
                    row.append(Part(normalized[begin:end], segment.begin, id, RAW, spans[begin:end]))
            at = token.end
        return row

    def _spans_of(self, segment: Part, normalized: str) -> list[Span]:
        """The spans of the characters of a normalized segment."""
        if self._normalizer is not None:
            own, spans = self._normalizer(segment.text)
            if own == normalized:
                return spans
            if normalized == own[1:]:  # without the dummy prefix
                return spans[1:]
        data = segment.text.encode()
        encoded, origins = self.engines[segment.kind].origins(segment.text)
        positions = character_positions(data)
        places = [positions[at] for at in origins]
        begins = [at for at, byte in enumerate(encoded) if byte & 0xC0 != 0x80]
        return [
            _widened(places[begin], places[end], len(segment.text))
            for begin, end in pairwise([*begins, len(encoded)])
        ]

    # --- Tokens, offsets, words -------------------------------------------------------------------

    def _details(self, row: list[Part]) -> Details:
        tokens: list[str] = []
        offsets: list[Span] = []
        words: list[int | None] = []
        word = -1
        for part in row:
            starts: list[bool] | None = None
            if part.id is not None:
                spans = part.spans
                names = [part.text]
                own = [(spans[0][0], spans[-1][1])] if spans else [(0, len(part.text))]
            else:
                names, own, starts = self._tokens(part)
            tokens += names
            by = part.begin
            offsets += [(begin + by, end + by) for begin, end in own] if by else own
            if starts is None:
                word += bool(names)
                words += [word] * len(names)
            else:
                for starts_word in starts:
                    word += starts_word
                    words.append(word)
        return tokens, offsets, words

    def _tokens(self, part: Part) -> tuple[list[str], list[Span], list[bool] | None]:
        """The tokens of a part, their spans, and which of them begin a word."""
        engine = self.engines[part.kind]
        if self._chunks is not None and self._normalizer is not None:
            ids, texts, _ = engine.align(part.text, True, True)
            spans = self._normalizer(part.text)[1] if part.spans is None else part.spans
            return [self._added.names[id] for id in ids], *self._chunks.places(texts, spans)
        ids, pieces, spans = engine.align(part.text, True)
        names = list(map(self._added.names.__getitem__, ids))
        starts = self._words.starts(ids, pieces)
        if part.spans is None and (self._normalizer is None or self._normalizer.is_simple):
            length = len(part.text)
            widened = [span if span[0] < span[1] else _widened(*span, length) for span in spans]
            return names, widened, starts
        of_characters = part.spans
        if of_characters is None:
            of_characters = self._spans_of(part, engine.normalize(part.text))
        return names, _spans_of_tokens(engine, ids, pieces, of_characters), starts


def _cut(segment: Part, found: list[Found]) -> list[Part]:
    """The parts of a segment that is not normalized: the tokens found in it, and the text between them."""
    text, begin = segment.text, segment.begin
    row: list[Part] = []
    at = 0
    for token in [*found, Found(-1, len(text), len(text))]:
        if at < token.begin:
            row.append(Part(text[at : token.begin], begin + at, kind=LATER if begin + at else FIRST))
        if token.begin < token.end:  # (the token before may have taken all of it, if it is whitespace)
            row.append(Part(text[token.begin : token.end], begin + token.begin, token.id))
        at = token.end
    return row


def _widened(begin: int, end: int, length: int) -> Span:
    """A span, widened to at least one character of the text, which must not be empty.

    So all bytes of a character have its span, a prefix that of the first character, and a suffix that of the
    last.
    """
    if begin < end:
        return begin, end
    begin = min(begin, length - 1)
    return begin, begin + 1


def _spans_of_tokens(engine: Engine, ids: list[int], pieces: list[str], spans: list[Span]) -> list[Span]:
    """The spans of tokens, from the spans of their characters."""
    found: list[Span] = []
    at = 0
    left = 0
    for id, piece in zip(ids, pieces, strict=True):
        if engine.kind(id) == PieceType.BYTE:
            if left == 0:
                left = character_length(bytes([int(piece[3:5], 16)]), 0)
            found.append(spans[at])
            left -= 1
            at += left == 0
        else:
            found.append((spans[at][0], spans[at + len(piece) - 1][1]))
            at += len(piece)
    return found
