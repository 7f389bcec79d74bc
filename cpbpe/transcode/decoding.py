"""Lines of ids, of pieces, or of JSON to texts: back to the file that `DocumentEncoder` has encoded."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from cpbpe.corpus.files import in_order, parts, shown_path, whole_lines
from cpbpe.engine.lines import read_ids
from cpbpe.errors import CorpusError
from cpbpe.lazy import numpy
from cpbpe.spelling import given
from cpbpe.tokenizer.plans import Plans
from cpbpe.tokenizer.special_text import SpecialDecoder
from cpbpe.tokenizer.tokenizer import Tokenizer
from cpbpe.transcode.encoding import Tally

if TYPE_CHECKING:
    from cpbpe.engine.protocol import Ids, Places

_OPEN = b'{"ids":['
"""How objects begin that hold only ids."""
_SHOWN = 40
"""This much of a wrong word is shown."""


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
        decoder = Plans(tokenizer.facts).decode(options, "decode")  # type: ignore[arg-type]
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
        self._ended = True
        for path in files:
            first, name, form = 1, shown_path(path), self._form or _form_of(path)
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

    def _tally(self, documents: int, text: bytes, tokens: int) -> Tally:
        """A part's share. The newlines between texts are none of their bytes."""
        return Tally(documents, len(text) - (0 if self._whole else documents), tokens)

    def _lines(self, ids: Ids, offsets: Places) -> bytes | None:
        """The texts, if the engine can decode them by itself."""
        if self._engine is None:
            return None
        if not self._whole:
            return self._engine.decode_lines(ids, offsets)
        texts = []
        for begin, end in pairwise(offsets):
            line = self._engine.decode_lines(ids[begin:end], numpy().array([0, end - begin], numpy().int64))
            if line is None:
                return None
            texts.append(line[:-1])
        return b"".join(texts)

    def _joined(self, texts: list[str]) -> bytes:
        return "".join(texts).encode() if self._whole else "".join(f"{text}\n" for text in texts).encode()

    # --- Ids ----------------------------------------------------------------------------------------

    def _ids(self, part: _Part) -> tuple[Ids, Places]:
        lines = part.lines
        ids, offsets, wrong = read_ids(lines)
        if wrong is not None and (b"\r" in lines or b"\t" in lines):  # from an editor, or from a spreadsheet
            lines = lines.replace(b"\r\n", b"\n").replace(b"\t", b" ").removesuffix(b"\r")
            ids, offsets, wrong = read_ids(lines)
        if wrong is not None:
            word = lines[wrong : wrong + 4 * _SHOWN].split()[0]
            shown = word.decode(errors="backslashreplace")[:_SHOWN]
            number = part.first + lines.count(b"\n", 0, wrong)
            if word.isdigit():
                raise CorpusError(self._no_id(part.name, number, shown))
            way_out = given("format", "jsonl" if word[:1] in (b"{", b"[") else "pieces")
            raise CorpusError(
                f"{part.name}:{number}: {shown!r} is not an id; ids are whole numbers with spaces between "
                f"them (for something else, give {way_out})"
            )
        return ids, offsets

    def _check(self, part: _Part, ids: Ids, offsets: Places) -> None:
        """Raise an error if an id is not in use."""
        facts = self._tokenizer.facts
        size = facts.engine.size
        if not len(ids) or int(ids.max()) < size:
            return
        np = numpy()
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

        A model without byte fallback leaves unknown text as it is, and so does decoding. With byte fallback
        there is no such text, so the piece is from somewhere else.
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
            if engine.byte_fallback or self._options:
                shown = pieces[ids.index(None)].decode(errors="backslashreplace")[:_SHOWN]
                raise CorpusError(
                    f"{part.name}:{number}: there is no piece {shown!r} in this model; were these made with "
                    f"another one? (for lines of ids, give {given('format', 'ids')})"
                )
            texts.append(tokenizer.decode_pieces(pieces))
        text = self._joined(texts)
        return text, self._tally(len(texts), text, count)


def _form_of(path: str) -> str:
    """What a file holds, by its name."""
    base = path.lower()
    for suffix in (".gz", ".xz", ".bz2", ".zst"):
        base = base.removesuffix(suffix)
    return "jsonl" if base.endswith((".jsonl", ".ndjson")) else "json" if base.endswith(".json") else "ids"


def _of_json(part: _Part) -> tuple[Ids, Places]:
    """The ids of objects, each with a list of ids; or of lists alone."""
    lines = part.lines
    if part.form == "jsonl" and lines.count(_OPEN) == lines.count(b"]}") == lines.count(b"{"):
        # As `DocumentEncoder` writes them. Ten times as fast as reading JSON; what is otherwise will not do.
        ids, offsets, wrong = read_ids(lines.replace(_OPEN, b"").replace(b"]}", b"").replace(b",", b" "))
        if wrong is None and len(offsets) - 1 == lines.count(_OPEN):
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
    np = numpy()
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return np.array([id for row in rows for id in row], np.uint32), offsets


def _row(where: str, record: Any) -> list[int]:
    ids = record.get("ids") if isinstance(record, dict) else record
    if not isinstance(ids, list):
        raise CorpusError(f'{where}: there is no list of ids: neither an object with "ids" nor a list')
    for id in ids:
        if type(id) is not int or not 0 <= id < 1 << 32:
            raise CorpusError(f"{where}: {str(id)[:_SHOWN]!r} is not an id")
    return ids
