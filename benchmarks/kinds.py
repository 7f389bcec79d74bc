"""Ten more kinds of text, because a tokenizer that was tuned on three may be slow on the fourth.

`benchmarks.corpora` builds them with its own three; each is about 8 MB. What each is made of:

| corpus      | texts                                                                                     |
| ----------- | ----------------------------------------------------------------------------------------- |
| `zh`, `ja`, `ko` | LibreOffice's help and Debian's reference and manuals, the lines that are not all ASCII |
| `scripts`   | Thai, Hindi and Arabic: LibreOffice's messages and help                                      |
| `source`    | C headers of Linux, JavaScript, and Python packages                                          |
| `minified`  | MathJax and jQuery UI, as they are sent to browsers                                          |
| `data`      | JSON of botocore, tables of Unicode, and a made-up log of a web server                       |
| `hex`       | a Debian package as hexadecimal digits and as base64, in lines                               |
| `markup`    | LaTeX, reStructuredText and HTML, as source                                                  |
| `spaces`    | JSON with an indent of 8, C with its tabs expanded, and columns of figures                   |
"""

from __future__ import annotations

import base64
import gettext
import json
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.corpora import DOCUMENT_BYTES, Groups, Reader, documents, files, html_text

KIND_BYTES = 8_000_000
ENOUGH = 12_000_000  # bytes of one part; what is beyond that would hardly be chosen
HEADERS = "linux-headers-6.1.0-55-common"
Folders = dict[str, Path]


@dataclass(frozen=True)
class Kind:
    """A corpus: the packages it is made of, and how."""

    packages: tuple[str, ...]
    groups: Callable[[Folders, Reader], Groups]


def enough(texts: Iterable[str]) -> Iterator[str]:
    """The first texts, until there is enough."""
    size = 0
    for text in texts:
        yield text
        size += len(text)
        if size > ENOUGH:
            return


def pieces_of(text: str) -> Iterator[str]:
    """Documents of a text that has no line ends to cut at, or few."""
    for begin in range(0, len(text), DOCUMENT_BYTES):
        yield text[begin : begin + DOCUMENT_BYTES]


def foreign(text: str) -> str:
    """The lines that are not all ASCII: what is left in English is not of this kind."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.isascii())


def helps(folder: Path, reader: Reader) -> Iterator[str]:
    """The pages of LibreOffice's help as one text, because they are short."""
    yield "".join(foreign(html_text(reader.read(path))) for path in files(folder, "*.html"))


def messages(folder: Path) -> Iterator[str]:
    """The messages of a program in another language."""
    for path in files(folder, "*.mo"):
        with path.open("rb") as file:
            catalog = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
        yield foreign("".join(f"{text}\n" for text in catalog.values()))


def one_language(code: str, others: tuple[str, ...]) -> Kind:
    """LibreOffice's help in a language, and pages of other packages."""
    book = f"libreoffice-help-{code}"

    def groups(folders: Folders, reader: Reader) -> Groups:
        found: Groups = {}
        for name in (book, *others):
            if name == book and name in folders:
                found[name] = documents(helps(folders[name], reader))
            elif name.startswith("manpages-") and name in folders:
                pages = files(folders[name] / "usr/share/man", "*.gz")
                found[name] = documents(foreign(reader.read(path)) for path in pages)
            elif name in folders:
                html = files(folders[name], "*.html")
                found[name] = documents(foreign(html_text(reader.read(path))) for path in html)
        return found

    return Kind((book, *others), groups)


def scripts(folders: Folders, reader: Reader) -> Groups:
    """Thai, Hindi and Arabic."""
    found: Groups = {}
    for name in ("libreoffice-l10n-th", "libreoffice-l10n-ar"):
        if name in folders:
            found[name] = documents(messages(folders[name]))
    if "libreoffice-help-hi" in folders:
        found["libreoffice-help-hi"] = documents(helps(folders["libreoffice-help-hi"], reader))
    return found


def read_all(folder: Path, patterns: str, reader: Reader) -> Iterator[str]:
    """The files that match any of the patterns."""
    paths = {path for pattern in patterns.split() for path in files(folder, pattern)}
    return enough(reader.read(path) for path in sorted(paths))


def source(folders: Folders, reader: Reader) -> Groups:
    """C, JavaScript and Python. Each is cut into documents at its line ends."""
    parts = {HEADERS: "*.h", "node-typescript": "*.js", "python3-django": "*.py", "python3-botocore": "*.py"}
    return {
        name: documents(read_all(folders[name], pattern, reader))
        for name, pattern in parts.items()
        if name in folders
    }


def minified(folders: Folders, reader: Reader) -> Groups:
    """What is sent to browsers."""
    parts = {"libjs-mathjax": "*.js", "libjs-jquery-ui": "*.min.js *.min.css"}
    return {
        name: [part for text in read_all(folders[name], pattern, reader) for part in pieces_of(text)]
        for name, pattern in parts.items()
        if name in folders
    }


def log(lines: int) -> Iterator[str]:
    """Lines as a web server would log them, always the same."""
    chance = random.Random(1)
    paths = ["/", "/index.html", "/api/v1/items", "/static/app.css", "/images/logo.png", "/login"]
    agents = ["Mozilla/5.0 (X11; Linux x86_64)", "curl/7.88.1", "python-requests/2.31.0"]
    for number in range(lines):
        address = ".".join(str(chance.randrange(1, 255)) for _ in range(4))
        time = f"{number // 86400 % 28 + 1:02}/Jan/2025:{number // 3600 % 24:02}:{number // 60 % 60:02}"
        yield (
            f'{address} - - [{time}:{number % 60:02} +0000] "GET {chance.choice(paths)}?id='
            f'{chance.randrange(1 << 32):08x} HTTP/1.1" {chance.choice((200, 200, 200, 304, 404))} '
            f'{chance.randrange(100_000)} "-" "{chance.choice(agents)}"\n'
        )


def data(folders: Folders, reader: Reader) -> Groups:
    """JSON, tables and logs."""
    found = {"log": documents(["".join(log(30_000))])}
    if "python3-botocore" in folders:
        found["python3-botocore"] = documents(read_all(folders["python3-botocore"], "*.json", reader))
    if "unicode-data" in folders:
        found["unicode-data"] = documents(read_all(folders["unicode-data"], "*.txt", reader))
    return found


def encoded(folders: Folders, reader: Reader) -> Groups:
    """Bytes, written as letters and digits."""
    if HEADERS not in folders:
        return {}
    archive = next(iter(sorted(folders[HEADERS].parent.glob(f"{HEADERS}_*.deb")))).read_bytes()
    half = archive[: ENOUGH // 3]
    digits = half.hex()
    lines = "".join(f"{digits[at : at + 64]}\n" for at in range(0, len(digits), 64))
    return {"hexadecimal": documents([lines]), "base64": documents([base64.encodebytes(half).decode()])}


def markup(folders: Folders, reader: Reader) -> Groups:
    """Text with its markup."""
    found: Groups = {}
    for name in ("texlive-latex-base", "texlive-latex-recommended"):
        if name in folders:
            found[name] = documents(read_all(folders[name], "*.sty *.tex *.def *.ltx", reader))
    if "python3.11-doc" in folders:
        for pattern in ("*.rst.txt", "*.html"):
            found[pattern] = documents(read_all(folders["python3.11-doc"], pattern, reader))
    return found


def columns() -> Iterator[str]:
    """Figures in columns, always the same."""
    chance = random.Random(2)
    for _ in range(40_000):
        yield "".join(f"{chance.choice((1, 10, 1000)) * chance.random():14.3f}" for _ in range(7)) + "\n"


def spaces(folders: Folders, reader: Reader) -> Groups:
    """Text with long runs of spaces."""
    found = {"columns": documents(["".join(columns())])}
    if "python3-botocore" in folders:
        texts = read_all(folders["python3-botocore"], "*.json", reader)
        indented = (json.dumps(json.loads(text), indent=8, ensure_ascii=False) for text in texts)
        found["python3-botocore"] = documents(enough(indented))
    if HEADERS in folders:
        headers = read_all(folders[HEADERS], "*.h", reader)
        found[HEADERS] = documents(text.expandtabs(8) for text in headers)
    return found


KINDS = {
    "zh": one_language("zh-cn", ("debian-reference-zh-cn", "manpages-zh")),
    "ja": one_language("ja", ("debian-reference-ja", "manpages-ja")),
    "ko": one_language("ko", ("debian-faq-ko",)),
    "scripts": Kind(("libreoffice-l10n-th", "libreoffice-l10n-ar", "libreoffice-help-hi"), scripts),
    "source": Kind((HEADERS, "node-typescript", "python3-django", "python3-botocore"), source),
    "minified": Kind(("libjs-mathjax", "libjs-jquery-ui"), minified),
    "data": Kind(("python3-botocore", "unicode-data"), data),
    "hex": Kind((HEADERS,), encoded),
    "markup": Kind(("texlive-latex-base", "texlive-latex-recommended", "python3.11-doc"), markup),
    "spaces": Kind((HEADERS, "python3-botocore"), spaces),
}
