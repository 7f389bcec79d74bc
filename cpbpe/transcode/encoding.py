r"""Documents to lines of ids, of pieces, or of JSON.

| form | a document becomes |
| --- | --- |
| ids | a line of ids: `22557 1526` |
| pieces | a line of pieces: `▁Hello ▁world` |
| jsonl | a line with an object: `{"ids":[22557,1526]}`, and `"offsets":[[0,5],[5,11]]` if asked for |
| json | the same object, in one array of all of them |
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

from cpbpe.checks import Unit
from cpbpe.corpus.documents import DocumentBlock, Documents
from cpbpe.corpus.files import in_order, shown_path
from cpbpe.engine.lines import LineWriter, Others, first_not_utf8, make_line_writer
from cpbpe.errors import CorpusError
from cpbpe.lazy import numpy
from cpbpe.spelling import advised
from cpbpe.tokenizer.ragged import Ragged
from cpbpe.tokenizer.tokenizer import Tokenizer
from cpbpe.transcode.offsets import OffsetWriter

FORMS = ("ids", "pieces", "json", "jsonl")
"""What documents can become."""

_LONG = 1 << 23
"""A document of more bytes than this is encoded by all threads together."""
_TABLE_AFTER_PIECES = 1 << 16
"""How many ids after those of the pieces have a word in the table."""


@dataclass
class Tally:
    """What was encoded or decoded."""

    documents: int = 0
    """How many documents, or lines."""
    bytes: int = 0
    """How many bytes of text."""
    tokens: int = 0
    """How many ids or pieces."""

    def add(self, other: Tally) -> None:
        """Add those of another part."""
        self.documents += other.documents
        self.bytes += other.bytes
        self.tokens += other.tokens


class _LineBlock:
    """Lines of a text file that nobody has taken apart: a `DocumentBlock` that makes its texts on demand."""

    def __init__(self, name: str, first: int, data: bytes):
        self.name = name
        self.first = first
        self.data = data
        self.ended = data.endswith(b"\n")
        self.count = data.count(b"\n") + (not self.ended)

    @property
    def texts(self) -> list[bytes]:
        """The lines."""
        return self.data.removesuffix(b"\n").split(b"\n")

    def where(self, index: int) -> str:
        """Where one of the lines is, for people."""
        return f"{self.name}:{self.first + index}"


_Block = DocumentBlock | _LineBlock


class DocumentEncoder:
    r"""Encodes documents as bytes for a file, a line for each document.

    >>> tok = Tokenizer("tokenizer.model")
    >>> encoder = DocumentEncoder(tok, "pieces")
    >>> b"".join(encoder.encode(Documents("corpus.txt"))).splitlines()[1].decode().split()[-2:]
    ['▁Apache', '▁License']
    >>> encoder.tally.documents
    202
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        form: str = "ids",
        *,
        offsets: bool = False,
        unit: Unit = "char",
        threads: int = 1,
        **options: Any,
    ):
        """`options` are those of `Tokenizer.encode`. The first document is sampled with `seed`, the second
        with the number after it, and so on. `offsets`: for JSON, the span of each id, in characters or bytes.
        """
        if form == "pieces" and tokenizer.facts.engine.byte_level is not None:
            way_out = advised("use format='ids'", "use --format ids")
            raise ValueError(
                "the pieces of a byte-level model hold spaces, newlines and parts of characters, which lines "
                f"of pieces cannot hold; {way_out}"
            )
        self._tokenizer = tokenizer
        self._form = form
        self._offsets = offsets
        self._unit: Unit = unit
        self._threads = threads
        self._sampled = bool(options.get("alpha"))
        seed = options.pop("seed", None)
        if self._sampled and seed is None:
            from secrets import randbits

            seed = randbits(64)
        self._seed: int | None = seed
        self._options = options
        self._takes_lines = not offsets and {**tokenizer.bound_options, **options}.keys() <= {"reverse"}
        tokenizer.encode_arrays([], threads=1, **self._options_at(0))  # errors come before the work
        self._writer = _writer(tokenizer, form)
        around = (b",\n", b"") if form == "json" else (b"", b"\n")
        self._objects = OffsetWriter(_table_size(tokenizer), *around)
        self._unk = tokenizer.unk_id
        self.tally = Tally()
        """What has been encoded."""
        self.broken: str | None = None
        """The place of the first document that is not UTF-8. Each byte that is wrong was read as U+FFFD."""

    def encode(self, documents: Documents) -> Generator[bytes | memoryview, None, None]:
        """The lines of all documents, in parts.

        If the last line of the last text file lacks its newline, then so does the last line of ids or pieces.
        """
        self.tally = Tally()
        self.broken = None
        numbered = self._numbered(documents)
        before = b"[" if self._form == "json" else b""
        for lines, tally, broken in in_order(numbered, self._lines, self._threads):
            self.tally.add(tally)
            self.broken = self.broken or broken
            yield before
            if self._form == "json":  # what is in front of an object begins with a comma
                yield memoryview(lines)[1:] if before else lines
                before = b""
            else:  # the last newline is held back until it is clear that something follows
                yield memoryview(lines)[:-1]
                before = b"\n"
        if self._form == "json":
            yield b"[]\n" if before else b"\n]\n"
        elif self._form == "jsonl" or self._ended:
            yield before

    def _numbered(self, documents: Documents) -> Iterator[tuple[_Block, int]]:
        """Blocks with the number of documents before them."""
        before = 0
        self._ended = True
        for block in self._blocks(documents):
            count = block.count if isinstance(block, _LineBlock) else len(block.texts)
            if count:
                yield block, before
                before += count
                self._ended = block.ended

    def _blocks(self, documents: Documents) -> Iterator[_Block]:
        """All blocks; those of lines in one piece, if the engine can take them so."""
        documents.begin()
        for number, path in enumerate(documents.files):
            lines = documents.lines_of(number) if self._takes_lines else None
            if lines is None:
                yield from documents.blocks_of(number)
                continue
            first = 1
            for data in lines:
                block = _LineBlock(shown_path(path), first, data)
                first += block.count
                if block.count > 1:
                    yield block
                else:  # it may be a long one, which is cut for several threads
                    yield DocumentBlock(number, block.name, block.first, block.texts, block.ended)

    def _options_at(self, number: int) -> dict[str, Any]:
        """The options for a block before which there are this many documents."""
        if not self._sampled or self._seed is None:
            return self._options if self._seed is None else {**self._options, "seed": self._seed}
        return {**self._options, "seed": self._seed + number}

    def _lines(self, part: tuple[_Block, int]) -> tuple[bytes, Tally, str | None]:
        """The lines for a block; what is in it; and where something is not UTF-8."""
        block, number = part
        options = self._options_at(number)
        if isinstance(block, _LineBlock):
            rows = self._of_lines(block)
            size = len(block.data) - block.count + (not block.ended)
        else:
            size = sum(map(len, block.texts))
            rows = self._rows(block, size, options)
        if self._offsets:
            lines = self._objects.write(rows)
        else:
            lines = self._writer.write(rows.ids, rows.offsets, self._others(rows, block, options))
        if self._form == "pieces" and lines.count(b"\n") > len(rows):
            raise CorpusError(
                f"{block.name}: there are pieces with newlines in them, which lines of pieces cannot hold; "
                f"write ids, or JSON"
            )
        broken = None
        if first_not_utf8([block.data] if isinstance(block, _LineBlock) else block.texts) is not None:
            broken = first_not_utf8(block.texts)
        tally = Tally(len(rows), size, len(rows.ids))
        return lines, tally, None if broken is None else block.where(broken)

    def _of_lines(self, block: _LineBlock) -> Ragged:
        """The ids of lines. The engine leaves out those that are empty, which have no ids."""
        np = numpy()
        reverse = bool({**self._tokenizer.bound_options, **self._options}.get("reverse"))
        threads = self._threads if len(block.data) > _LONG else 1
        engine = self._tokenizer.facts.engine
        ids, offsets, empty = engine.encode_lines(block.data, threads, reverse=reverse)
        if not len(empty):
            return Ragged(ids, offsets)
        lengths = np.zeros(len(offsets) - 1 + len(empty) + 1, np.int64)
        present = np.ones(len(lengths), bool)
        present[empty + 1] = present[0] = False
        lengths[present] = np.diff(offsets)
        return Ragged(ids, np.cumsum(lengths))

    def _rows(self, block: DocumentBlock, size: int, options: dict[str, Any]) -> Ragged:
        """The ids of documents."""
        texts = block.texts
        threads = self._threads if size > _LONG else 1
        if len(texts) == 1 and threads > 1 and not (self._offsets or self._sampled):
            return self._long(texts[0], threads, options)
        unit = self._unit if self._offsets else None
        try:
            return self._tokenizer.encode_arrays(
                texts, threads=threads, spans=self._offsets, unit=unit, **options
            )
        except ValueError as error:
            raise self._named(error, block, options) from error

    def _long(self, text: bytes, threads: int, options: dict[str, Any]) -> Ragged:
        """One long text, cut for several threads."""
        ids = self._tokenizer.encode_array(text, threads=threads, **options)
        return Ragged(ids, numpy().array([0, len(ids)], numpy().int64))

    def _others(self, rows: Ragged, block: _Block, options: dict[str, Any]) -> Others:
        """The words of ids that the table does not have: those of high ids, and unknown text."""
        np = numpy()
        words: dict[int, bytes] = {}
        if len(rows.ids) and int(rows.ids.max()) >= _table_size(self._tokenizer):
            for place in np.nonzero(rows.ids >= _table_size(self._tokenizer))[0].tolist():
                words[place] = _word(self._tokenizer, int(rows.ids[place]), self._form)
        if self._form == "pieces" and self._unk is not None and (rows.ids == self._unk).any():
            places = np.nonzero(rows.ids == self._unk)[0]
            texts = block.texts
            for row in np.unique(np.searchsorted(rows.offsets, places, "right") - 1).tolist():
                begin, end = rows.offsets[row : row + 2].tolist()
                own = {"seed": options["seed"] + row} if self._sampled else {}
                pieces = self._tokenizer.encode_pieces(texts[row], **{**options, **own})
                for place in range(begin, end):
                    if rows.ids[place] == self._unk:
                        words[place] = pieces[place - begin].encode()
        return sorted(words.items())

    def _named(self, error: ValueError, block: DocumentBlock, options: dict[str, Any]) -> ValueError:
        """The error of a block, with the place of the document that caused it."""
        for index, text in enumerate(block.texts):
            try:
                self._tokenizer.encode(text, **options)
            except ValueError as same:
                return ValueError(f"{block.where(index)}: {same}")
        return error


def _table_size(tokenizer: Tokenizer) -> int:
    return min(len(tokenizer), tokenizer.facts.engine.size + _TABLE_AFTER_PIECES)


def _writer(tokenizer: Tokenizer, form: str) -> LineWriter:
    words = [_word(tokenizer, id, form) for id in range(_table_size(tokenizer))]
    if form == "json":
        return make_line_writer(words, b",", b',\n{"ids":[', b"]}")
    if form == "jsonl":
        return make_line_writer(words, b",", b'{"ids":[', b"]}\n")
    return make_line_writer(words, b" ", b"", b"\n")


def _word(tokenizer: Tokenizer, id: int, form: str) -> bytes:
    if form != "pieces":
        return b"%d" % id
    facts = tokenizer.facts
    return facts.engine.piece(id) if id < facts.engine.size else facts.special.texts.get(id, "").encode()
