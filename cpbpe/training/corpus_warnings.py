"""What may be wrong with a usable corpus, as sentences that name the file and say what to do."""

from __future__ import annotations

from dataclasses import dataclass

from cpbpe.corpus.files import shown_path
from cpbpe.spelling import advised
from cpbpe.text.utf8 import is_valid_utf8
from cpbpe.training.corpus import Block, Corpus

_MOST = 5
"""At most this many files are named for one reason."""


@dataclass
class _BrokenFile:
    sentences: int
    where: str
    text: bytes


class Broken:
    """The sentences that are not valid UTF-8. They are counted, with U+FFFD for every invalid byte."""

    def __init__(self) -> None:
        self._files: dict[str, _BrokenFile] = {}

    @property
    def sentences(self) -> int:
        """How many there are."""
        return sum(file.sentences for file in self._files.values())

    def add(self, block: Block, number: int, keep_newlines: bool) -> None:
        """Record that this many sentences of a block are broken."""
        known = self._files.get(block.name)
        if known is not None:
            known.sentences += number
            return
        for index, sentence in enumerate(block.as_sentences(keep_newlines)):
            if not is_valid_utf8(sentence):
                self._files[block.name] = _BrokenFile(number, block.where(index, keep_newlines), sentence)
                return

    def look(self, block: Block, sentences: list[bytes], keep_newlines: bool) -> None:
        """Find the broken sentences of a block that no counter sees as a whole."""
        if block.lines is not None and is_valid_utf8(block.lines):
            return
        number = sum(not is_valid_utf8(sentence) for sentence in sentences)
        if number:
            self.add(block, number, keep_newlines)

    def warnings(self) -> list[str]:
        """What to say about them."""
        found = [_about(name, file) for name, file in list(self._files.items())[:_MOST]]
        more = len(self._files) - _MOST
        if more > 0:
            found.append(
                f"{more:,} more file{'s hold' if more > 1 else ' holds'} text that is not valid UTF-8"
            )
        return found


def warnings_of_files(corpus: Corpus) -> list[str]:
    """What to say about the files of a corpus that was read."""
    without = advised(
        "save it without one, or give open(path, encoding='utf-8-sig')",
        "save it without one, for example with 'tail -c +4'",
    )
    found = [
        f"{name}: begins with a byte order mark (U+FEFF), which is trained on like any character, as in "
        f"sentencepiece; {without}"
        for name in corpus.marked[:_MOST]
    ]
    if len(corpus.marked) > _MOST:
        found.append(f"{len(corpus.marked) - _MOST:,} more files begin with a byte order mark (U+FEFF)")
    reasons: dict[str, list[str]] = {}
    for path, what in corpus.left_out.items():
        if ";" in what:  # the reason says what to do, so the file may hold text after all
            reasons.setdefault(what, []).append(path)
    for what, paths in list(reasons.items())[:_MOST]:
        more = f", and {len(paths) - 1:,} more like it" if len(paths) > 1 else ""
        found.append(f"{shown_path(paths[0])}: was left out{more}: it {what}")
    return found


def _about(name: str, file: _BrokenFile) -> str:
    begin = max(0, _first_bad(file.text) - 20)
    text = f"{file.text[begin : begin + 40]!r}"
    one = file.sentences == 1
    if name == "item":
        what = "text is" if one else "texts are"
        remedy = "if text is in another encoding, such as Latin-1, give text.decode('latin-1')"
    else:
        what = f"line of {name} is" if one else f"lines of {name} are"
        convert = "convert it (iconv -f latin1 -t utf-8)"
        convert = advised(f"{convert}, or give open(path, encoding='latin-1')", convert)
        remedy = f"if the file is in another encoding, such as Latin-1, {convert}"
    return (
        f"{file.sentences:,} {what} not valid UTF-8, the first at {file.where} ({text}); every byte that is "
        f"no character is trained on as U+FFFD; {remedy}"
    )


def _first_bad(text: bytes) -> int:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.start
    return 0
