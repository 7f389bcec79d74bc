"""The folders and files that results go to: checked before the work, which may take hours, made after it."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from cpbpe.lazy import importing
from cpbpe.model.writing import is_stream, write_all
from cpbpe.spelling import counted

if TYPE_CHECKING:
    from cpbpe.corpus.documents import Files
    from cpbpe.corpus.find import Found
    from cpbpe.text.pages import Canvas


_OF_MODELS = re.compile(
    r".+\.(model|tiktoken|gguf|jinja)|merges\.txt|(.+_)?config\.json"
    r"|(tokenizer|tekken.*|vocab|special_tokens_map|added_tokens)\.json"
)
"""The names of files that are read with a model that is given as a folder."""


def check_outputs(outputs: Sequence[str | None], corpus: Iterable[str]) -> None:
    """Raise an error if one of the files cannot be written, or would replace one of the files in `corpus`.

    (None stands for the standard output. A folder in `corpus` is that of a model; for others see `files_of`.)
    """
    paths = [path for path in outputs if path is not None]
    for place, path in enumerate(paths):
        if path == "-":
            raise ValueError("'-' would be a file: for the standard output, leave it out, or else give './-'")
        if not os.path.basename(path):
            raise IsADirectoryError(
                f"{path!r} is a folder; give a name in it, such as {os.path.join(path, 'my')!r}"
            )
        if os.path.isdir(path):
            raise IsADirectoryError(f"{path!r} is a folder; choose another name")
        if not is_stream(path):
            _check_folder(os.path.dirname(os.path.abspath(path)))
        if os.path.abspath(path) in map(os.path.abspath, paths[:place]):
            raise ValueError(f"{path!r} would be written twice; choose different names")
    replaced = [path for path in paths if os.path.exists(path)]
    for source in files_read(corpus) if replaced else ():
        for path in replaced:
            if os.path.samefile(source, path):
                raise ValueError(
                    f"{path!r} is read here, and would be replaced; choose another name for the result"
                )


def files_read(paths: Iterable[str]) -> Iterator[str]:
    """The files among these paths, and those of a model in the folders among them."""
    for path in paths:
        if os.path.isfile(path):
            yield path
        elif os.path.isdir(path):
            yield from (os.path.join(path, name) for name in os.listdir(path) if _OF_MODELS.fullmatch(name))


def say(message: str) -> None:
    """Write to the error output. If it is closed, go on without it."""
    if sys.stderr is not None:
        try:
            print(f"cpbpe: {message}", file=sys.stderr)
        except OSError:  # Python would flush the rest at exit, fail again, and exit with code 120
            with suppress(OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, sys.stderr.fileno())
                os.close(nowhere)


def show_files(found: Files | Found, verbose: bool = False, quiet: bool = False) -> None:
    """Name the files that are read, if `verbose`, and those of a folder that are not, unless `quiet`."""
    for file in found.files if verbose else ():
        say(f"reading {'the standard input' if file == '-' else file}")
    for file in found.again if verbose else ():
        say(f"{file}: is a link to a file that is read under another name")
    for file, what in found.left_out.items() if not quiet else ():
        say(f"{file}: was left out: it {what}")


def _check_folder(folder: str) -> None:
    """Check that a folder can be written to, or created in the nearest folder that exists."""
    with importing:
        import tempfile
    while not os.path.lexists(folder) and folder != os.path.dirname(folder):  # (a drive may be missing)
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        raise NotADirectoryError(
            f"{folder!r} is not a folder, so nothing can be written there; choose another"
        )
    try:
        with tempfile.TemporaryFile(dir=folder):  # checking permissions is not enough: the disk can be full
            pass
    except OSError as error:
        raise PermissionError(
            f"nothing can be written to the folder {folder!r} ({error.strerror}); choose another"
        ) from None


def make_folder(path: str) -> None:
    """Make the folder of a file, if it does not exist."""
    if os.path.dirname(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)


def write_parts(path: str | None, parts: Callable[[], Generator[bytes | memoryview, None, None]]) -> None:
    """Write parts as they are made: to a file, which appears once it is complete; or to standard output."""
    with importing:
        from contextlib import closing

    def write(file: BinaryIO, at_once: bool = False) -> None:
        made = parts()
        with closing(made):
            for part in made:
                file.write(part)
                if at_once:
                    file.flush()

    if path is None:
        out = _stdout()
        out.flush()
        write(out.buffer, bool(out.line_buffering))
        out.buffer.flush()
        return
    make_folder(path)
    write_all({path: write})


def _stdout() -> TextIO:
    if sys.stdout is None:
        raise OSError("the standard output is closed; nothing can be written there")
    return sys.stdout


def write_text(path: str | None, parts: Iterable[str]) -> None:
    """Write text: to a file, in UTF-8, and say so; or to the standard output as it comes."""
    if path is None:
        out = _stdout()
        for part in parts:
            out.write(part)
        return
    text = "".join(parts).encode()
    replaced = existing([path])
    make_folder(path)
    write_all({path: text})
    print_report([f"written       {path}{replaced}"])


FORMS = {".html": "html", ".htm": "html", ".json": "json", ".csv": "csv", ".tsv": "tsv"}
"""The forms of reports, by how names of files end."""


def form_of(out: str | None, asked: str | None = None, forms: Collection[str] = ("html", "json")) -> str:
    """The form of a report: what was asked for, or what the name of its file says; otherwise "table".

    A name that says another form than was asked for, or none of the `forms` that there are, is refused.
    """
    named = FORMS.get(os.path.splitext(out or "")[1].lower())
    if named not in (None, asked) and (asked or named not in forms):
        with importing:
            from cpbpe.cli.parsing import NotUnderstoodError
        raise NotUnderstoodError(
            f"{out!r} is named as {named}, and this would be {asked or 'plain text'}; choose another name"
        )
    return asked or named or "table"


def canvas(out: str | None, form: str) -> Canvas:
    """What a report is drawn on, in this form and for this file."""
    with importing:
        from cpbpe.text.drawn import Lines
        from cpbpe.text.pages import Page
    return Page() if form == "html" else Lines(*terminal(out))


def print_report(report: Iterable[str]) -> None:
    """Print lines that begin with labels. On a terminal, long ones continue below the text, not the label."""
    if on_terminal(None):
        with importing:
            from cpbpe.text.drawn import Lines
        made = Lines(terminal(None)[0])
        made.labelled(report)
        report = made.lines
    print("\n".join(report))


def as_json(value: Any) -> str:
    """A value as JSON of several lines, in which characters that are not visible are escaped.

    A score that JSON has no number for is a text: "nan", "inf" or "-inf".
    """
    with importing:
        from cpbpe.tools.vocabulary_file import visible
    texts = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}
    value = json.loads(json.dumps(value), parse_constant=texts.get)
    return visible(json.dumps(value, ensure_ascii=False, indent=1))


def on_terminal(out: str | None) -> bool:
    """Whether what is written to `out` is shown on a terminal, so neither in a file nor in a program."""
    return out is None and sys.stdout is not None and sys.stdout.isatty()


def terminal(out: str | None) -> tuple[int, bool]:
    """How many columns lines have, and whether there are colours in what is written to `out`."""
    return get_terminal_size((100, 24)).columns, on_terminal(out) and "NO_COLOR" not in os.environ


def existing(paths: Sequence[str]) -> str:
    """A note about files that are going to be replaced; empty if there are none."""
    number = sum(map(os.path.isfile, paths))
    return f" (replacing {counted(number, 'file')})" if number else ""
