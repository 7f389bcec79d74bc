"""Reading and writing minbpe's two files as its tokenizers do; see `cpbpe/model/formats/minbpe.py`."""

from __future__ import annotations

from collections.abc import Iterable

from cpbpe.model.formats.minbpe import VERSION, Model, parsed


class LectureError(AssertionError, ValueError):
    """A wrong argument or file, for which minbpe raises AssertionError."""


def write(path: str, lines: Iterable[str]) -> None:
    """Write lines in UTF-8."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def read(path: str) -> Model:
    """What a `.model` file holds; or an error that names the line."""
    if not path.endswith(".model"):
        raise LectureError(f"load() reads the file that ends in .model, and {path!r} does not")
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except UnicodeDecodeError as error:
        raise LectureError(
            f"{path!r} is not a file that minbpe has saved: it is not UTF-8 ({error})"
        ) from None
    first = text.partition("\n")[0]
    if first.strip() != VERSION:
        raise LectureError(f"{path!r} does not begin with the line {VERSION!r}, but with {first[:40]!r}")
    return parsed(text, repr(path))
