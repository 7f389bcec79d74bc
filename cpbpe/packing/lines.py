r"""Turning files of text, of any size, into lines of ids, of pieces or of JSON, and back, on several threads.

| form | a document becomes |
| --- | --- |
| ids | a line of ids: `22557 1526` |
| pieces | a line of pieces: `▁Hello ▁world` |
| jsonl | a line with an object: `{"ids":[22557,1526]}`, and `"offsets":[[0,5],[5,11]]` if asked for |
| json | the same object, in one array of all of them |
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cpbpe.checks import Unit
from cpbpe.corpus.documents import DocumentBlock, Documents
from cpbpe.corpus.files import in_order, parts, shown_path, whole_lines
from cpbpe.corpus.find import suffix_of
from cpbpe.engine.lines import LineWriter, Others, first_not_utf8, make_line_writer, read_ids
from cpbpe.errors import CorpusError
from cpbpe.lazy import kept
from cpbpe.spelling import advised, given
from cpbpe.tokenizer.options import new_seed
from cpbpe.tokenizer.ragged import Ragged
from cpbpe.tokenizer.special_text import SpecialDecoder
from cpbpe.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from cpbpe.engine.protocol import Ids, Places

FORMS = ("ids", "pieces", "json", "jsonl")
"""What documents can become."""
_FORMS_OF_FILES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json"}
"""What the lines of a file hold, by its name; others hold ids."""

_LONG = 1 << 23
"""A document of more bytes than this is encoded by all threads together."""
_TABLE_AFTER_PIECES = 1 << 16
"""How many ids above those of the pieces have a word in the table."""
_OPEN = b'{"ids":['
"""How an object that holds only ids begins."""
_SHOWN = 40
_BOM = b"\xef\xbb\xbf"
_WITHOUT_BOM = "the file begins with a byte order mark; save it without one"
"""How many characters of a wrong word messages show."""
_NUMBERS = 1 << 16
"""Offsets below this have words of their own. Longer texts are left to `json`."""


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
        """Add the numbers of another part."""
        self.documents += other.documents
        self.bytes += other.bytes
        self.tokens += other.tokens


def ids_of_lines(tokenizer: Tokenizer, lines: bytes, threads: int, reverse: bool = False) -> Ragged:
    """The ids of lines. The engine leaves out empty lines; here they are rows without ids."""
    ends = (None, None, reverse)  # no bos, no eos
    ids, offsets, empty = tokenizer.facts.engine.encode_lines(lines, threads, ends)
    if not len(empty):
        return Ragged(ids, offsets)
    lengths = np.zeros(len(offsets) + len(empty), np.int64)
    present = np.ones(len(lengths), bool)
    present[empty + 1] = present[0] = False
    lengths[present] = np.diff(offsets)
    return Ragged(ids, np.cumsum(lengths))


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
        if form == "pieces" and tokenizer.facts.is_byte_level:
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
            seed = new_seed()
        self._seed: int | None = seed
        self._options = options
        self._takes_lines = not offsets and {**tokenizer.bound_options, **options}.keys() <= {"reverse"}
        tokenizer.encode_arrays([], threads=1, **self._options_at(0))  # raises errors before any work
        self._table_size = min(len(tokenizer), tokenizer.facts.engine.size + _TABLE_AFTER_PIECES)
        words = [self._word(id) for id in range(self._table_size)]
        before, after = (b",\n", b"") if form == "json" else (b"", b"\n")
        if form in ("json", "jsonl"):
            self._writer = make_line_writer(words, b",", before + b'{"ids":[', b"]}" + after)
        else:
            self._writer = make_line_writer(words, b" ", before, after)
        self._objects = OffsetWriter(self._table_size, before, after)
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
            if self._form == "json":  # a comma precedes each object; the first one loses it
                yield memoryview(lines)[1:] if before else lines
                before = b""
            else:  # the last newline is held back until it is clear that something follows
                yield memoryview(lines)[:-1]
                before = b"\n"
        if self._form == "json":
            yield b"[]\n" if before else b"\n]\n"
        elif self._form == "jsonl" or self._ended:
            yield before

    def count(self, documents: Documents) -> Iterator[tuple[int, Tally]]:
        """Encode the documents only to count: yield the number of a file, and a tally of a part of it."""
        self.tally = Tally()
        self.broken = None

        def counted(part: tuple[DocumentBlock, int]) -> tuple[int, Tally, str | None]:
            block, number = part
            return block.file, *self._tally(block, self._rows(block, self._options_at(number)))

        for file, tally, broken in in_order(self._numbered(documents), counted, self._threads):
            self.tally.add(tally)
            self.broken = self.broken or broken
            yield file, tally

    def _numbered(self, documents: Documents) -> Iterator[tuple[DocumentBlock, int]]:
        """Yield blocks, and how many documents precede each."""
        before = 0
        self._ended = True  # (whether the last line ends with a newline)
        for block in documents.blocks():
            if block.count:
                yield block, before
                before += block.count
                self._ended = block.ended

    def _options_at(self, number: int) -> dict[str, Any]:
        """The options for a block that this many documents precede."""
        if self._seed is None:
            return self._options
        return {**self._options, "seed": self._seed + (number if self._sampled else 0)}

    def _lines(self, part: tuple[DocumentBlock, int]) -> tuple[bytes, Tally, str | None]:
        """The lines for a block, its tally, and the place of its first document that is not UTF-8."""
        block, number = part
        options = self._options_at(number)
        rows = self._rows(block, options)
        if self._offsets:
            lines = self._objects.write(rows)
        else:
            lines = self._writer(rows.ids, rows.offsets, self._others(rows, block, options))
        if self._form == "pieces" and lines.count(b"\n") > len(rows):
            raise CorpusError(
                f"{block.name}: there are pieces with newlines in them, which lines of pieces cannot hold; "
                f"write ids, or JSON"
            )
        return lines, *self._tally(block, rows)

    def _tally(self, block: DocumentBlock, rows: Ragged) -> tuple[Tally, str | None]:
        """The tally of a block, and the place of its first document that is not UTF-8."""
        broken = None
        if first_not_utf8(block.texts if block.lines is None else [block.lines]) is not None:
            broken = first_not_utf8(block.texts)
        tally = Tally(len(rows), block.text_bytes, len(rows.ids))
        return tally, None if broken is None else block.where(broken)

    def _rows(self, block: DocumentBlock, options: dict[str, Any]) -> Ragged:
        """The ids of the documents of a block."""
        threads = self._threads if block.text_bytes > _LONG else 1
        if block.count == 1 and threads > 1 and not (self._offsets or self._sampled):
            ids = self._tokenizer.encode_array(block.texts[0], threads=threads, **options)
            return Ragged(ids, np.array([0, len(ids)], np.int64))
        if self._takes_lines and block.lines is not None:
            reverse = bool({**self._tokenizer.bound_options, **options}.get("reverse"))
            return ids_of_lines(self._tokenizer, block.lines, threads, reverse)
        unit = self._unit if self._offsets else None
        try:
            return self._tokenizer.encode_arrays(
                block.texts, threads=threads, spans=self._offsets, unit=unit, **options
            )
        except ValueError as error:
            raise self._named(error, block, options) from error

    def _others(self, rows: Ragged, block: DocumentBlock, options: dict[str, Any]) -> Others:
        """The words that are not in the table, by the place of their id: of high ids, and of unknown text."""
        words: dict[int, bytes] = {}
        if len(rows.ids) and int(rows.ids.max()) >= self._table_size:
            for place in np.nonzero(rows.ids >= self._table_size)[0].tolist():
                words[place] = self._word(int(rows.ids[place]))
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

    def _word(self, id: int) -> bytes:
        if self._form != "pieces":
            return b"%d" % id
        facts = self._tokenizer.facts
        return facts.engine.piece(id) if id < facts.engine.size else facts.special.texts.get(id, "").encode()

    def _named(self, error: ValueError, block: DocumentBlock, options: dict[str, Any]) -> ValueError:
        """The error of a block, with the place of the document that caused it."""
        for index, text in enumerate(block.texts):
            try:
                self._tokenizer.encode(text, **options)
            except ValueError as same:
                return ValueError(f"{block.where(index)}: {same}")
        return error


class OffsetWriter:
    r"""Writes an object for each text, `before` and `after` included. `json` took ten times as long.

    A line writer puts the same separator between all words of a line, but here separators differ. So the
    separator is empty, and words begin with their punctuation. A line consists of the words of its ids, a
    word that ends them, and two words for each span.

    >>> import numpy
    >>> ids, spans = numpy.array([7, 8], numpy.uint32), numpy.array([[0, 1], [1, 3]])
    >>> rows = Ragged(ids, numpy.array([0, 2, 2]), spans)
    >>> OffsetWriter(10, b"", b"\n").write(rows)
    b'{"ids":[7,8],"offsets":[[0,1],[1,3]]}\n{"ids":[],"offsets":[]}\n'
    """

    def __init__(self, size: int, before: bytes, after: bytes):
        """`size`: rows with ids of at least this are left to `json`."""
        self._size = size
        self._before = before
        self._after = after

    @kept
    def _writer(self) -> LineWriter:
        ids = (word for id in range(self._size) for word in (b"%d" % id, b",%d" % id))
        numbers = range(_NUMBERS)
        spans = (word for number in numbers for word in (b"[%d" % number, b",[%d" % number, b",%d]" % number))
        words = [*ids, b'],"offsets":[', *spans]
        return make_line_writer(words, b"", self._before + b'{"ids":[', b"]}" + self._after)

    def write(self, rows: Ragged) -> bytes:
        """The objects of texts with spans."""
        assert rows.spans is not None
        high = len(rows.ids) and (rows.ids.max() >= self._size or rows.spans.max() >= _NUMBERS)
        if high:
            return self._by_json(rows)
        counts = np.diff(rows.offsets)
        # 1. Where each line begins, and the place of each id in its line.
        begins = 3 * rows.offsets[:-1] + np.arange(len(counts))
        local = np.arange(len(rows.ids)) - np.repeat(rows.offsets[:-1], counts)
        later = local > 0
        # 2. The words: two for each id, one that ends the ids, three for each number.
        words = np.empty(3 * len(rows.ids) + len(counts), np.uint32)
        words[np.repeat(begins, counts) + local] = 2 * rows.ids + later
        words[begins + counts] = 2 * self._size
        places = np.repeat(begins + counts + 1, counts) + 2 * local
        first = 2 * self._size + 1
        words[places] = first + 3 * rows.spans[:, 0] + later
        words[places + 1] = first + 3 * rows.spans[:, 1] + 2
        return self._writer(words, np.append(begins, len(words)), [])

    def _by_json(self, rows: Ragged) -> bytes:
        assert rows.spans is not None
        ids, listed, offsets = rows.ids.tolist(), rows.spans.tolist(), rows.offsets.tolist()
        texts = [
            json.dumps({"ids": ids[begin:end], "offsets": listed[begin:end]}, separators=(",", ":")).encode()
            for begin, end in pairwise(offsets)
        ]
        return b"".join(self._before + text + self._after for text in texts)


# --- Back to texts --------------------------------------------------------------------------------


class _Part(NamedTuple):
    """Whole lines of one file."""

    name: str
    """The file, for people."""
    first: int
    """The number of its first line, from 1."""
    lines: bytes
    form: str
    """What the lines hold."""


class LineDecoder:
    r"""Decodes lines as bytes for a file, a text for each line.

    >>> from pathlib import Path
    >>> _ = Path("a.ids").write_text("22557 1526\n\n15359")
    >>> decoder = LineDecoder(Tokenizer("tokenizer.model"))
    >>> b"".join(decoder.decode(["a.ids"]))
    b'Hello world\n\nHi'
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        form: str | None = None,
        *,
        whole: bool = False,
        threads: int = 1,
        **options: Any,
    ):
        """`form`: what the lines hold, one of FORMS; None: as the names of the files say, usually ids.

        `whole`: each line is the text of a whole file, so no newline comes after it. `options` are those of
        `Tokenizer.decode`.
        """
        self._tokenizer = tokenizer
        self._form = form
        self._whole = whole
        self._threads = threads
        self._options = options
        decoder = tokenizer.plans.decode(options, "decode")  # type: ignore[arg-type]
        self._engine = None if isinstance(decoder, SpecialDecoder) else decoder
        self.tally = Tally()
        """What has been decoded."""

    def decode(
        self, files: Iterable[str], advanced: Callable[[int], object] = lambda size: None
    ) -> Generator[bytes | memoryview, None, None]:
        """The texts of all files, in parts. `advanced` is called with the number of bytes read."""
        self.tally = Tally()
        before = b""
        for text, tally in in_order(self._parts(files, advanced), self._text, self._threads):
            self.tally.add(tally)
            if self._whole:
                yield text
                continue
            if not tally.documents:
                continue
            yield before
            yield memoryview(text)[:-1]
            before = b"\n"
        if self._ended:
            yield before

    def _parts(self, files: Iterable[str], advanced: Callable[[int], object]) -> Iterator[_Part]:
        self._ended = True  # (whether the last line ends with a newline)
        for path in files:
            form = self._form or _FORMS_OF_FILES.get(suffix_of(path), "ids")
            first, name = 1, shown_path(path)
            content = parts(path, advanced, any_text=True)
            if form == "json":
                yield _Part(name, 1, b"".join(content), form)
                self._ended = True
                continue
            for lines in whole_lines(content):
                yield _Part(name, first, lines, form)
                first += lines.count(b"\n")
                self._ended = lines.endswith(b"\n") or form == "jsonl"

    def _text(self, part: _Part) -> tuple[bytes, Tally]:
        """The texts of a part, a newline after each (unless they are whole files)."""
        if part.form == "pieces":
            ids, offsets, wrong = self._tokenizer.facts.engine.read_pieces(part.lines)
            if wrong is not None:
                return self._of_unknown(part)
        elif part.form == "ids":
            ids, offsets = self._ids(part)
        else:
            ids, offsets = _of_json(part)
        self._check(part, ids, offsets)
        text = self._lines(ids, offsets)
        if text is None:  # there are added tokens
            rows = [ids[begin:end] for begin, end in pairwise(offsets)]
            text = self._joined(self._tokenizer.decode_batch(rows, threads=1, **self._options))
        return text, self._tally(len(offsets) - 1, text, len(ids))

    def _lines(self, ids: Ids, offsets: Places) -> bytes | None:
        """The texts; None if the engine alone cannot decode them."""
        if self._engine is None:
            return None
        if not self._whole:
            return self._engine.decode_lines(ids, offsets)
        rows = pairwise(offsets)
        lines = [self._engine.decode_lines(ids[a:b], np.array([0, b - a], np.int64)) for a, b in rows]
        return None if None in lines else b"".join(line[:-1] for line in lines if line is not None)

    def _joined(self, texts: list[str]) -> bytes:
        return "".join(texts).encode() if self._whole else "".join(f"{text}\n" for text in texts).encode()

    def _tally(self, documents: int, text: bytes, tokens: int) -> Tally:
        """The tally of a part. Newlines between texts do not count as bytes of text."""
        return Tally(documents, len(text) - (0 if self._whole else documents), tokens)

    # --- Ids ----------------------------------------------------------------------------------------

    def _ids(self, part: _Part) -> tuple[Ids, Places]:
        lines = part.lines
        ids, offsets, wrong = read_ids(lines)
        if wrong is not None and (b"\r" in lines or b"\t" in lines):  # from an editor, or from a spreadsheet
            lines = lines.replace(b"\r\n", b"\n").replace(b"\t", b" ").removesuffix(b"\r")
            ids, offsets, wrong = read_ids(lines)
        if wrong is not None:
            word = lines[wrong : wrong + 4 * _SHOWN].partition(b"\n")[0].partition(b" ")[0]
            shown = word.decode(errors="backslashreplace")[:_SHOWN]
            number = part.first + lines.count(b"\n", 0, wrong)
            if word.isdigit():
                raise CorpusError(self._no_id(part.name, number, shown))
            form = given("format", "jsonl" if word[:1] in (b"{", b"[") else "pieces")
            way_out = _WITHOUT_BOM if word.startswith(_BOM) else f"for something else, give {form}"
            raise CorpusError(
                f"{part.name}:{number}: {shown!r} is not an id; ids are whole numbers with spaces between "
                f"them ({way_out})"
            )
        return ids, offsets

    def _check(self, part: _Part, ids: Ids, offsets: Places) -> None:
        """Raise an error if an id is not in use."""
        facts = self._tokenizer.facts
        size = facts.engine.size
        if not len(ids) or int(ids.max()) < size:
            return
        for place in np.nonzero(ids >= size)[0].tolist():
            if int(ids[place]) not in facts.special.texts:
                row = int(np.searchsorted(offsets, place, "right")) - 1
                raise CorpusError(self._no_id(part.name, part.first + row, str(ids[place])))

    def _no_id(self, name: str, number: int, id: str) -> str:
        size = len(self._tokenizer)
        return (
            f"{name}:{number}: there is no id {id}: the ids of this model are 0 to {size - 1}; were these "
            f"made with another model?"
        )

    # --- Pieces -------------------------------------------------------------------------------------

    def _of_unknown(self, part: _Part) -> tuple[bytes, Tally]:
        """Texts of pieces that are not all in the model: some are added tokens, or unknown text.

        Without byte fallback, the piece of unknown text is that text, and decoding gives it back. With byte
        fallback there is no unknown text, so such a piece comes from another model.
        """
        tokenizer, engine = self._tokenizer, self._tokenizer.facts.engine
        texts: list[str] = []
        count = 0
        for number, line in enumerate(part.lines.removesuffix(b"\n").split(b"\n"), part.first):
            pieces = [piece for piece in line.split(b" ") if piece]
            count += len(pieces)
            ids = [tokenizer.piece_to_id(piece) for piece in pieces]
            known = [id for id in ids if id is not None]
            if len(known) == len(ids):
                texts.append(tokenizer.decode(known, **self._options))
                continue
            if engine.head["byte_fallback"] or self._options:
                piece = pieces[ids.index(None)]
                shown = piece.decode(errors="backslashreplace")[:_SHOWN]
                why = f"were these made with another one? (for lines of ids, give {given('format', 'ids')})"
                raise CorpusError(
                    f"{part.name}:{number}: there is no piece {shown!r} in this model; "
                    + (_WITHOUT_BOM if piece.startswith(_BOM) else why)
                )
            texts.append(tokenizer.decode_pieces(pieces))
        text = self._joined(texts)
        return text, self._tally(len(texts), text, count)


def _of_json(part: _Part) -> tuple[Ids, Places]:
    """The ids of objects, each with a list of ids; or of lists alone."""
    lines = part.lines
    if part.form == "jsonl" and lines.startswith(_OPEN) and b" " not in lines:
        # Read lines as `DocumentEncoder` writes them, ten times as fast as `json`. Others are left to it.
        ids, offsets, wrong = read_ids(lines.replace(_OPEN, b"").replace(b"]}", b"").replace(b",", b" "))
        if wrong is None and _are_as_written(lines, ids, offsets):
            return ids, offsets
    if part.form == "json":
        try:
            records = json.loads(lines)
        except (ValueError, RecursionError) as error:
            raise CorpusError(f"{part.name}: not valid JSON: {error}") from None
        if not isinstance(records, list):
            raise CorpusError(f"{part.name}: an array of objects is needed, not {type(records).__name__}")
        rows = [_row(f"{part.name}: item {number}", item) for number, item in enumerate(records, 1)]
    else:
        rows = []
        for number, line in enumerate(lines.removesuffix(b"\n").split(b"\n"), part.first):
            where = f"{part.name}:{number}"
            try:
                rows.append(_row(where, json.loads(line)))
            except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
                raise CorpusError(f"{where}: not valid JSON: {error}") from None
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return np.array([id for row in rows for id in row], np.uint32), offsets


def _are_as_written(lines: bytes, ids: Ids, offsets: Places) -> bool:
    """Whether lines without a space, in which these ids were found, are those that are written for them."""
    rows = len(offsets) - 1
    begun, ended = lines.count(b"\n" + _OPEN) + 1, lines.count(b"]}\n") + lines.endswith(b"]}")
    digits = len(ids) + sum(int(np.count_nonzero(ids >= 10**power)) for power in range(1, 10))
    commas = len(ids) - int(np.count_nonzero(np.diff(offsets)))
    # They cannot be shorter, so if they are not longer, there is nothing else in them.
    shortest = rows * len(_OPEN + b"]}") + digits + commas + lines.count(b"\n")
    return begun == ended == rows and len(lines) == shortest


def _row(where: str, record: Any) -> list[int]:
    ids = record.get("ids") if isinstance(record, dict) else record
    if not isinstance(ids, list):
        raise CorpusError(f'{where}: there is no list of ids: neither an object with "ids" nor a list')
    for id in ids:
        if type(id) is not int or not 0 <= id < 1 << 32:
            raise CorpusError(f"{where}: {str(id)[:_SHOWN]!r} is not an id")
    return ids
