"""Builds the texts that the benchmarks run on: English, many languages, and source code.

    python -m benchmarks.corpora                      # from Debian packages, to benchmarks/data
    python -m benchmarks.corpora --kinds              # these and more kinds of text: `benchmarks.kinds`
    python -m benchmarks.corpora --folder ~/texts     # from a folder of your own, as the corpus "own"

Each corpus is about 20 MB of UTF-8 (the other kinds: 8 MB) in documents of about 4 KB, cut at line ends. The
same packages give the same bytes; `corpora.json` beside the texts holds their checksums and what they were
made from.

A corpus is one file, `en.txt` for example: its documents, with a NUL between each two. Read one with
`read_documents`.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import random
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DATA = HERE / "data"
CORPORA = ("en", "multi", "code")
CORPUS_BYTES = 20_000_000
DOCUMENT_BYTES = 4096  # a document ends at the first line end after this many bytes
SHORTEST_BYTES = 1024  # what is left of a file after the last cut, and shorter than this, is dropped
SEED = 20250101

REFERENCES = [f"debian-reference-{code}" for code in ("ja", "zh-cn", "fr", "de", "es", "pt")]
MANPAGES = [f"manpages-{code}" for code in ("ru", "ja", "de", "fr", "zh", "pl", "tr")]
OTHERS = ["debian-faq-ko", "debian-faq-ru", "fortunes-ru", "fortunes-cs"]
HANDBOOK = "debian-handbook"
ENGLISH = ["linux-doc-6.1", "python3.11-doc", HANDBOOK]
PACKAGES = [*ENGLISH, *REFERENCES, *MANPAGES, *OTHERS]

Groups = dict[str, list[str]]  # what is to be balanced (a language, a package) -> its documents


class PageText(HTMLParser):
    """The text of an HTML page: of its main part, if it says which that is, and without navigation."""

    BLOCKS = frozenset(
        ["p", "div", "section", "li", "ul", "ol", "dl", "dt", "dd", "tr", "table", "pre", "br", "blockquote"]
        + [f"h{level}" for level in range(1, 7)]
    )
    DROPPED = frozenset(["script", "style", "head", "nav", "svg"])
    DROPPED_CLASSES = frozenset(["headerlink", "navheader", "navfooter", "docnav", "toc"])

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.pre = 0
        self.inside: tuple[str, int] | None = None  # the element that is dropped now: tag, open ones
        self.main: tuple[str, int] | None = None  # the main part: tag, open ones; 0 when it is over

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Begin a line, or the main part, or one to drop."""
        if self.inside:
            if tag == self.inside[0]:
                self.inside = (tag, self.inside[1] + 1)
            return
        values = dict(attributes)
        if self.main is None and values.get("role") == "main":
            self.main = (tag, 1)
            self.parts.clear()
        elif self.main and tag == self.main[0]:
            self.main = (tag, self.main[1] + 1)
        classes = (values.get("class") or "").split()
        if tag in self.DROPPED or not self.DROPPED_CLASSES.isdisjoint(classes):
            self.inside = (tag, 1)
            return
        self.pre += tag == "pre"
        if tag in self.BLOCKS:
            self.parts.append("\n")

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Begin a line."""
        if tag in self.BLOCKS and not self.inside:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        """End a line, or the main part, or one to drop."""
        if self.inside:
            if tag == self.inside[0]:
                self.inside = (tag, self.inside[1] - 1) if self.inside[1] > 1 else None
                if self.main and tag == self.main[0] and self.inside is not None:
                    return
            return
        if self.main and tag == self.main[0]:
            self.main = (tag, self.main[1] - 1)
        self.pre -= tag == "pre" and self.pre > 0
        if tag in self.BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        """Keep the text; outside `<pre>`, white space is one space."""
        if not self.inside and (self.main is None or self.main[1] > 0):
            self.parts.append(data if self.pre else re.sub(r"\s+", " ", data))

    def text(self) -> str:
        """What was kept, without long runs of empty lines."""
        lines = [line.rstrip() for line in "".join(self.parts).split("\n")]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def html_text(page: str) -> str:
    """The text of an HTML page, without its tags."""
    parser = PageText()
    parser.feed(page)
    parser.close()
    return parser.text()


def cut(text: str) -> Iterator[str]:
    """Documents of about `DOCUMENT_BYTES`, each with its last line end."""
    lines: list[str] = []
    size = 0
    for line in text.replace("\0", "").splitlines(keepends=True):
        lines.append(line)
        size += len(line.encode())
        if size >= DOCUMENT_BYTES:
            yield "".join(lines)
            lines, size = [], 0
    if size >= SHORTEST_BYTES:
        yield "".join(lines)


class Reader:
    """Reads files as text, and counts those that are not UTF-8 instead of hiding them."""

    def __init__(self) -> None:
        self.refused: list[str] = []

    def read(self, path: Path) -> str:
        """The text of a file, compressed or not; nothing if it is not UTF-8."""
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        try:
            return data.decode()
        except UnicodeDecodeError:
            self.refused.append(path.name)
            return ""


def files(folder: Path, pattern: str = "*") -> list[Path]:
    """The files in a folder and its folders, sorted; links are left out."""
    return sorted(path for path in folder.rglob(pattern) if path.is_file() and not path.is_symlink())


# --- From Debian packages -----------------------------------------------------------------------------


def unpack(packages: list[str], folder: Path) -> tuple[dict[str, Path], dict[str, str]]:
    """Download and unpack packages, unless done before. Gives their folders and versions."""
    folder.mkdir(parents=True, exist_ok=True)
    unpacked, versions, missing = {}, {}, []
    for name in packages:
        archive = next(iter(sorted(folder.glob(f"{name}_*.deb"))), None)
        if archive is None:
            done = subprocess.run(["apt-get", "download", name], cwd=folder, capture_output=True, text=True)
            archive = next(iter(sorted(folder.glob(f"{name}_*.deb"))), None)
            if archive is None:
                missing.append(f"{name}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
                continue
        target = folder / name
        if not target.exists():
            subprocess.run(["dpkg", "-x", archive, target], check=True)
        unpacked[name], versions[name] = target, archive.stem
    for line in missing:
        print(f"MISSING {line}", file=sys.stderr)
    if missing:
        print("MISSING packages are left out of the corpora; try 'apt-get update' first", file=sys.stderr)
    return unpacked, versions


def pages(folder: Path, reader: Reader) -> Iterator[str]:
    """The texts of the HTML pages in a folder, without indexes of words."""
    for path in files(folder, "*.html"):
        if not re.match(r"(search|genindex|py-modindex)", path.name):
            yield html_text(reader.read(path))


def documents(texts: Iterable[str]) -> list[str]:
    """The documents of all the texts."""
    return [document for text in texts for document in cut(text)]


def english(folders: dict[str, Path], reader: Reader) -> Groups:
    """Documents by package."""
    parts = {"linux-doc-6.1": "", "python3.11-doc": "usr/share/doc", HANDBOOK: "**/en-US"}
    groups: Groups = {}
    for name, part in parts.items():
        if name in folders:
            places = sorted(folders[name].glob(part)) if part else [folders[name]]
            groups[name] = documents(text for place in places for text in pages(place, reader))
    return groups


def languages(folders: dict[str, Path], reader: Reader) -> Groups:
    """Documents by language, in a few kinds of text each."""
    groups: Groups = {}

    def add(language: str, texts: Iterable[str]) -> None:
        groups.setdefault(language.replace("_", "-").lower(), []).extend(documents(texts))

    for name, folder in sorted(folders.items()):
        code = name.rpartition("-")[2]
        if name in REFERENCES:
            add("zh-cn" if code == "cn" else code, pages(folder, reader))
        elif name in MANPAGES:
            for place in sorted(folder.glob("usr/share/man/*")):
                add("zh-cn" if place.name == "zh" else place.name, map(reader.read, files(place, "*.gz")))
        elif name.startswith("debian-faq-"):
            add(code, pages(folder, reader))
        elif name.startswith("fortunes-"):
            place = folder / "usr/share/games/fortunes"
            add(code, [reader.read(path) for path in files(place) if path.suffix not in (".dat", ".u8")])
        elif name == HANDBOOK:
            books = sorted(folder.glob("usr/share/doc/debian-handbook/html/*"))
            originals = {
                line.strip()
                for book in books
                for text in (pages(book, reader) if book.name == "en-US" else ())
                for line in text.splitlines()
            } - {""}
            for book in books:
                if book.name != "en-US":
                    language = book.name.lower() if book.name.startswith("zh") else book.name[:2]
                    add(language, (translated(text, originals) for text in pages(book, reader)))
    return groups


def translated(text: str, originals: set[str]) -> str:
    """A text without the lines that the English book has too: they are not translated yet."""
    lines = [line for line in text.splitlines(keepends=True) if line.strip() not in originals]
    return re.sub(r"\n{3,}", "\n\n", "".join(lines))


def source_code(reader: Reader) -> Groups:
    """The sources of Python's standard library, its tests included."""
    library = Path(sysconfig.get_paths()["stdlib"])
    sources = [path for path in files(library, "*.py") if "site-packages" not in path.parts]
    return {"stdlib": documents(map(reader.read, sources))}


# --- Putting a corpus together ------------------------------------------------------------------------


def size_of(texts: Iterable[str]) -> int:
    """Bytes of UTF-8."""
    return sum(len(text.encode()) for text in texts)


def shares(sizes: dict[str, int], total: int) -> dict[str, int]:
    """Bytes to take of each group: equal shares, but all of a group that is smaller than its share."""
    taken: dict[str, int] = {}
    for number, name in enumerate(sorted(sizes, key=lambda name: (sizes[name], name))):
        taken[name] = min(sizes[name], (total - sum(taken.values())) // (len(sizes) - number))
    return taken


def compose(groups: Groups, total: int) -> tuple[list[str], dict[str, int]]:
    """Documents of all groups, balanced, none twice, in a random order that is always the same."""
    chance = random.Random(SEED)
    unique: Groups = {}
    seen: set[str] = set()
    for name in sorted(groups):
        unique[name] = []
        for document in groups[name]:
            if document not in seen:
                seen.add(document)
                unique[name].append(document)
        chance.shuffle(unique[name])
    wanted = shares({name: size_of(texts) for name, texts in unique.items()}, total)
    chosen: list[str] = []
    amounts: dict[str, int] = {}
    for name, texts in unique.items():
        amounts[name] = 0
        for document in texts:
            if amounts[name] >= wanted[name]:
                break
            amounts[name] += len(document.encode())
            chosen.append(document)
    chance.shuffle(chosen)
    return chosen, amounts


def corpus_path(out: Path, name: str) -> Path:
    """The file of a corpus."""
    return out / f"{name}.txt"


def read_documents(path: Path) -> list[str]:
    """The documents of a corpus."""
    return path.read_bytes().decode().split("\0")


def write_corpus(out: Path, name: str, groups: Groups, total: int, extra: dict[str, object]) -> None:
    """Write a corpus, and its description into `corpora.json`."""
    texts, amounts = compose(groups, total)
    if not texts:
        print(f"MISSING corpus {name}: nothing to make it of", file=sys.stderr)
        return
    data = "\0".join(texts).encode()
    out.mkdir(parents=True, exist_ok=True)
    corpus_path(out, name).write_bytes(data)
    manifest = read_manifest(out)
    manifest[name] = {
        "sha256": hashlib.sha256(data).hexdigest(),
        "bytes": size_of(texts),
        "documents": len(texts),
        "groups": amounts,
        **extra,
    }
    (out / "corpora.json").write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n")
    print(f"{name}: {len(texts)} documents, {size_of(texts)} bytes, sha256 {manifest[name]['sha256']}")
    for group, amount in sorted(amounts.items(), key=lambda item: -item[1]):
        print(f"  {group}: {amount}")


def read_manifest(out: Path) -> dict[str, dict[str, Any]]:
    """What the corpora in a folder are: checksum, size, and what each was made of."""
    path = out / "corpora.json"
    return dict(json.loads(path.read_text())) if path.exists() else {}


def main(arguments: list[str] | None = None) -> None:
    """Build what is asked for."""
    parser = argparse.ArgumentParser(description="Build the texts that the benchmarks run on.")
    parser.add_argument("--out", type=Path, default=DATA, help="where to write (default: benchmarks/data)")
    parser.add_argument("--folder", type=Path, help="make one corpus of the UTF-8 files in this folder")
    parser.add_argument("--name", default="own", help="the name of the corpus made with --folder")
    parser.add_argument("--corpus", action="append", help="only this one (may be repeated)")
    parser.add_argument("--kinds", action="store_true", help="the other kinds of text, too")
    parser.add_argument(
        "--bytes", type=int, help="the size of each corpus (default: 20 MB; other kinds 8 MB)"
    )
    options = parser.parse_args(arguments)
    from benchmarks.kinds import KIND_BYTES, KINDS

    reader = Reader()
    size = options.bytes or CORPUS_BYTES
    if options.folder:
        groups = {"folder": documents(map(reader.read, files(options.folder)))}
        write_corpus(options.out, options.name, groups, size, {})
    else:
        wanted = options.corpus or [*CORPORA, *(KINDS if options.kinds else ())]
        for name in wanted:
            if name not in KINDS and name not in CORPORA:
                parser.error(f"no corpus {name!r}; there are: {', '.join([*CORPORA, *KINDS])}")
        packages = [name for name in PACKAGES
                    if ("en" in wanted and name in ENGLISH)
                    or ("multi" in wanted and (name not in ENGLISH or name == HANDBOOK))]  # fmt: skip
        packages += [package for name in wanted if name in KINDS for package in KINDS[name].packages]
        folders, versions = unpack(list(dict.fromkeys(packages)), options.out / "packages")
        for name in wanted:
            size = options.bytes or (KIND_BYTES if name in KINDS else CORPUS_BYTES)
            if name in KINDS:
                own = {p: folders[p] for p in KINDS[name].packages if p in folders}
                groups, made_of = KINDS[name].groups(own, reader), {p: versions[p] for p in own}
            elif name == "code":
                groups, made_of = source_code(reader), {"python": sys.version.split()[0]}
            elif name == "en":
                groups, made_of = english(folders, reader), {p: versions[p] for p in ENGLISH if p in versions}
            else:
                own = {
                    p: folders[p] for p in PACKAGES if p in folders and (p not in ENGLISH or p == HANDBOOK)
                }
                groups, made_of = languages(own, reader), {p: versions[p] for p in own}
            write_corpus(options.out, name, groups, size, {"made_of": made_of})
    if reader.refused:
        print(f"left out, not UTF-8: {len(reader.refused)} files, such as {reader.refused[:5]}")


if __name__ == "__main__":
    main()
