"""Lines of files, which end with a newline and nothing else; and how messages name the files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

SENTENCES = re.compile(rb"[^\n]*\n+|[^\n]+")
"""Each line with the newlines that follow it."""


def split_lines(lines: bytes, keep_newlines: bool) -> list[bytes]:
    r"""Lines as sentences; with `keep_newlines` each has the newlines that follow it.

    >>> split_lines(b"a\n\nb\n", False), split_lines(b"a\n\nb\n", True)
    ([b'a', b'', b'b'], [b'a\n\n', b'b\n'])
    """
    if keep_newlines:
        sentences: list[bytes] = SENTENCES.findall(lines)
        return sentences
    return (lines[:-1] if lines.endswith(b"\n") else lines).split(b"\n") if lines else []


def whole_lines(file_parts: Iterable[bytes], keep_newlines: bool = False) -> Iterator[bytes]:
    r"""Parts of a file, cut again so that each ends where a line ends (or where a run of newlines does).

    >>> list(whole_lines([b"a\nb", b"c\n", b"d"]))
    [b'a\n', b'bc\n', b'd']
    >>> list(whole_lines([b"a\n", b"\nb", b"c"], keep_newlines=True))
    [b'a\n\n', b'bc']
    """
    # The parts of a line that has not ended. They are joined when it ends, so long lines cost no more.
    unfinished: list[bytes] = []
    for part in file_parts:
        if keep_newlines:
            end = part.rfind(b"\n", 0, len(part.rstrip(b"\n"))) + 1
            if end == 0 and unfinished and unfinished[-1].endswith(b"\n") and not part.startswith(b"\n"):
                yield b"".join(unfinished)
                unfinished = []
        else:
            end = part.rfind(b"\n") + 1
        if end:
            yield b"".join([*unfinished, memoryview(part)[:end]]) if unfinished or end < len(part) else part
            unfinished = []
        if end < len(part):
            unfinished.append(part[end:])
    if unfinished:
        yield b"".join(unfinished)


def shown_path(path: str) -> str:
    r"""A path as it is shown in a report: bytes of a name that are not text are escaped.

    >>> shown_path("caf\udce9.txt"), shown_path("-")
    ('caf\\xe9.txt', 'stdin')
    """
    if path == "-":
        return "stdin"
    return path.encode(errors="surrogateescape").decode(errors="backslashreplace")
