"""Files of a corpus: which are read, each once; what they are if not text; and all kinds of damage."""

import gzip
import io
import json
import lzma
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import zstandard

import cpbpe
from cpbpe import TrainingError, WordCounts, train
from cpbpe.corpus import files as corpus_files
from cpbpe.training.corpus import Corpus
from tests.train.test_corpus import COMPRESS, sentences

COMPRESSED = [suffix for suffix in COMPRESS if suffix]


@pytest.fixture(autouse=True)
def in_new_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, data: bytes | str = "text\n") -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


# --- What is not text -----------------------------------------------------------------------------

RECORDS = json.dumps([{"text": "one"}, {"text": "two"}]).encode()
LINES = b'{"text": "one"}\n{"text": "two"}\n'
NOT_TEXT: list[tuple[str, bytes, str]] = [
    ("a.json", RECORDS, r"is JSON; give the texts in it, as in \[row\['text'\] .* name it \*\.jsonl"),
    ("a.json", json.dumps({"text": ["one"]}, indent=1).encode(), "is one object of JSON; write one object"),
    ("a.json", b"[" * 100_000, "is JSON; give the texts"),
    ("a.json", LINES, "is JSON Lines, so give format='jsonl'; .*field="),
    ("a.JSON.gz", gzip.compress(LINES, mtime=0), "is JSON, going by .*; if each line .* format='jsonl'"),
    ("a.csv", b"id,text\n1,one\n", "is CSV, and only you know which column .*; name it with column="),
    ("a.csv.xz", lzma.compress(b"id,text\n1,one\n"), "is CSV"),
    ("a.model", b"\n\x0e\n\x05<unk>", "is a model, going by its name"),
    ("a.tar", b"name".ljust(257, b"\0") + b"ustar", "is a tar archive; unpack it first"),
    ("a.tar.gz", gzip.compress(b"name", mtime=0), "is a tar archive; unpack it first"),
    ("a.tgz", gzip.compress(b"name", mtime=0), "is a tar archive; unpack it first"),
    ("a.txt", b"name".ljust(257, b"\0") + b"ustar", "is a tar archive; unpack it first"),
    ("a.txt", b"PK\x03\x04\x14\0", r"is a zip archive \(as \.docx"),
    ("a.counts", b"CPBPEWC1\x10\0\0\0\0\0\0\0{}", r"holds word counts; .*cpbpe\.WordCounts\.load"),
    ("a.txt", b"\x93NUMPY\1\0", "is a numpy array; .* numpy.load"),
    ("a.txt", b"\x89PNG\r\n\x1a\n\0\0", "is an image"),
    ("a.txt", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "is a PDF; extract its text first"),
    (
        "a.txt.gz",
        gzip.compress(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", mtime=0),
        "what is compressed in it is a PDF",
    ),
    ("a.txt", b"some\0text", "is not text, because it holds NUL bytes"),
    (
        "a.txt",
        "text".encode("utf-16"),
        "is UTF-16; .*'iconv -f utf-16 -t utf-8', or give open.path, encoding",
    ),
    ("a.txt", "text".encode("utf-16-le"), "looks like UTF-16 without .* -f utf-16le"),
    ("a.txt", "text".encode("utf-16-be"), "looks like UTF-16 without .* -f utf-16be"),
    ("a.txt", "text".encode("utf-32"), "is UTF-32; .*'iconv -f utf-32 -t utf-8'"),
    ("a.jsonl", LINES.decode().encode("utf-16"), "is UTF-16; convert it"),
]


@pytest.mark.parametrize(("name", "data", "message"), NOT_TEXT, ids=range(len(NOT_TEXT)))
def test_what_is_not_text_is_refused_with_a_way_out(name: str, data: bytes, message: str) -> None:
    path = write(name, data)
    for source in (path, [name], name[:-1] + "?"):
        with pytest.raises(TrainingError, match=rf"^{re.escape(name)}: .*{message}"):
            sentences(source)
    if "format='text'" in message:
        sentences(path, format="text")
    with path.open("rb") as file:  # this always works
        assert b"\n".join(sentences(file)) == data.removesuffix(b"\n")


@pytest.mark.parametrize("name", ["a.json", "a.csv", "a.model", "a.txt"])
def test_text_that_is_named_like_something_else(name: str) -> None:
    write(name, b"a\0b\nc\n")
    assert sentences(name, format="text") == [b"a\0b", b"c"]
    write("x.json", LINES)
    assert sentences("x.json", format="jsonl") == [b"one", b"two"]


@pytest.mark.parametrize(
    "text", ["%PDF- is a magic number", "GGUF and PAR1", "Rar! he said", '{"text": 1}', "7z", "é" * 5000]
)
def test_text_that_only_begins_like_something_else(text: str) -> None:
    assert sentences(write("a.txt", text)) == [text.encode()]


def test_a_directory_leaves_out_what_is_not_text() -> None:
    write("corpus/a.txt", "one\n")
    for name in ("corpus/b.json", "corpus/c.json"):
        write(name, RECORDS)
    write("corpus/d.txt", "text".encode("utf-16"))
    write("corpus/e.png", b"\x89PNG\r\n\x1a\n\0\0")
    os.symlink("nowhere", "corpus/link")
    if hasattr(os, "mkfifo"):
        os.mkfifo("corpus/pipe")  # to open it would wait for ever
    with pytest.warns(UserWarning, match="left out") as warned:
        result = train("corpus", vocab_size=263)
    reading = result.report.reading
    assert reading.files == 1
    names = {"b.json", "c.json", "d.txt", "e.png", "link", *(["pipe"] if hasattr(os, "mkfifo") else [])}
    assert {os.path.basename(name) for name in reading.files_left_out} == names
    # Files that may be text after all cause a warning, once for each reason.
    json_, utf_16, *pipe = sorted(str(warning.message) for warning in warned)
    assert re.match(r"corpus/b.json: was left out, and 1 more like it: it is JSON; ", json_)
    assert re.match(r"corpus/d.txt: was left out: it is UTF-16; convert it", utf_16)
    assert all("is a pipe, a socket or a device; give it by name" in text for text in pipe)
    assert len(Corpus("corpus", format="text").files) == 3
    write("only/c.json", RECORDS)
    with pytest.raises(
        TrainingError, match=r"no text file \(1 left out; the first, 'only/c.json', is JSON; give"
    ):
        Corpus("only")


def test_what_lies_beside_a_dataset_is_left_out() -> None:
    for name in ("README.md", "LICENSE", "data/NOTICE.txt", "data/notes.txt"):
        write(f"set/{name}", "about it\n")
    assert len(Corpus("set").files) == 4  # texts, as far as one can know
    write("set/data/a.jsonl", LINES)
    assert [os.path.basename(file) for file in Corpus("set").files] == ["a.jsonl", "notes.txt"]
    tok = train(["one two"], vocab_size=270).tokenizer
    for call in (
        lambda: cpbpe.diff(tok, tok, Path("set")),
        lambda: cpbpe.compare({"a": tok}, {"b": Path("set")}, rounds=0),
        lambda: train("set", vocab_size=270),
    ):
        with pytest.warns(UserWarning, match="left out, and 2 more like it: it is about the data beside"):
            call()
    (said,) = cpbpe.pack(tok, "set", "packed").warnings
    assert said.startswith(
        "3 files in the folders were left out; the first, 'set/LICENSE', is about the data"
    )
    assert len(Corpus("set", format="text").files) == 5
    assert len(Corpus(["set/README.md", "set/data/a.jsonl"]).files) == 2


# --- Damage ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", COMPRESSED)
@pytest.mark.parametrize("damage", [b"\0\0junk", b"#"])
def test_what_follows_a_stream_is_not_lost(suffix: str, damage: bytes) -> None:
    first, second = (COMPRESS[suffix](text * 20) for text in (b"one\n", b"two\n"))
    path = write(f"a{suffix}", first + second)
    assert len(sentences(path)) == 40
    at = len(first) + len(damage) - len(damage.lstrip(b"\0"))
    path = write(f"a{suffix}", first + damage + second[1:])
    message = rf"a{suffix}: what follows the first {at} bytes is not valid {suffix[1:]} data .*cut it off"
    with pytest.raises(TrainingError, match=message):
        sentences(path)
    # NUL bytes between streams and after them are padding.
    assert len(sentences(write(f"a{suffix}", first + bytes(8) + second + bytes(512)))) == 40


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_every_cut_is_noticed(suffix: str) -> None:
    """Cut anywhere except between streams, a file is an error, whatever was complete before."""
    first, second = (COMPRESS[suffix](text) for text in (b"one\n", b"two\n"))
    for end in range(len(first + second)):
        path = write(f"a{suffix}", (first + second)[:end])
        if end == len(first):
            assert sentences(path) == [b"one"]
        else:
            with pytest.raises(TrainingError, match=r"the compressed file is cut off|is not valid"):
                sentences(path)


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_every_part_size_reads_the_same(suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytes(range(32, 127)) * 3000 + b"\n" * 300_000
    path = write(f"a{suffix}", COMPRESS[suffix](data) + COMPRESS[suffix](b"") + COMPRESS[suffix](data))
    for size in (7001, 1 << 16, 1 << 24):
        monkeypatch.setattr(corpus_files, "PART_BYTES", size)
        assert b"".join(corpus_files.parts(str(path), lambda _: None)) == data + data


def test_a_file_that_becomes_shorter_while_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_files, "PART_BYTES", 100_000)
    path = write("a.txt", b"some text\n" * 100_000)
    blocks = Corpus(path).blocks()
    next(blocks)
    os.truncate(path, 500_000)
    with pytest.raises(
        TrainingError, match=r"a.txt: became shorter .*: 500,000 bytes, and it had 1,000,000; begin"
    ):
        list(blocks)


def test_a_file_that_vanishes() -> None:
    corpus = Corpus([write("a.txt"), write("b.txt")])
    os.remove("b.txt")
    with pytest.raises(FileNotFoundError, match=r"'b.txt' was there when the work began, but is gone now"):
        list(corpus.blocks())


def test_errors_of_reading_name_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError(5, "Input/output error")

        def fileno(self) -> int:
            return os.open(os.devnull, os.O_RDONLY)

    write("a.txt")
    monkeypatch.setattr(corpus_files, "_open", lambda path: Broken())
    with pytest.raises(OSError, match=r"Input/output error: 'a.txt'"):
        sentences("a.txt")


def parquet_of(columns: dict[str, Any], name: str = "a.parquet", **settings: Any) -> bytes:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(columns), name, **settings)
    return Path(name).read_bytes()


def test_damaged_parquet_is_an_error_that_names_the_file() -> None:
    data = parquet_of({"text": [f"text number {number}" for number in range(3000)]}, row_group_size=1000)
    foot = int.from_bytes(data[-8:-4], "little")
    seen = set()
    for at in [*range(4, 60, 3), *range(len(data) - foot - 8, len(data), 5)]:
        write("bad.parquet", data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
        try:
            sentences("bad.parquet")  # some damage cannot be seen
        except TrainingError as error:
            seen.add((str(error).partition(" ")[0], type(error.__cause__).__name__))
    assert {name for name, _ in seen} == {"bad.parquet:"}
    assert len(seen) > 2  # of many kinds


def test_parquet_of_text_that_is_not_utf8() -> None:
    import pyarrow

    raw = pyarrow.array([b"caf\xe9", b"ok"], pyarrow.binary())
    broken = pyarrow.Array.from_buffers(pyarrow.string(), 2, raw.buffers())
    parquet_of({"text": broken})
    with pytest.warns(
        UserWarning, match=r"^1 line of a.parquet is not valid UTF-8, the first at a.parquet:1"
    ):
        train("a.parquet", vocab_size=270, hard_vocab_limit=False)


def test_the_ends_of_arrow_files() -> None:
    """Old ones do not say that their stream ends; and an end may be missing."""
    import pyarrow

    table = pyarrow.table({"text": ["one", "two", "three"]})
    with pyarrow.ipc.new_file("a.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    data = Path("a.arrow").read_bytes()
    contents = len(data) - 10 - int.from_bytes(data[-10:-6], "little")
    assert data[contents - 8 : contents] == b"\xff\xff\xff\xff\0\0\0\0"
    write("old.arrow", data[: contents - 8] + data[contents:])
    assert sentences("old.arrow") == sentences("a.arrow") == [b"one", b"two", b"three"]
    for end in (1, 5, 10, len(data) - contents, len(data) - contents + 8, len(data) - 12):
        write("bad.arrow", data[:-end])
        with pytest.raises(TrainingError, match=r"^bad.arrow: is not a valid Arrow file: the end of"):
            sentences("bad.arrow")


def test_parquet_with_two_columns_of_one_name() -> None:
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.table([pyarrow.array(["a"]), pyarrow.array(["b"])], names=["text", "text"])
    parquet.write_table(table, "a.parquet")
    with pytest.raises(TrainingError, match=r"a.parquet: there are 2 columns 'text'; rename one"):
        sentences("a.parquet")


# --- Links and folders ----------------------------------------------------------------------------


def test_each_file_of_a_folder_is_read_once() -> None:
    write("corpus/b/x.txt", "one\n")
    write("corpus/z.txt", "two\n")
    write("outside/y.txt", "three\n")
    for link, target in [
        ("l0", "."),
        ("l1", "."),
        ("a", "b"),
        ("b/up", ".."),
        ("b/again.txt", "x.txt"),
        ("out", "../outside"),
        ("out2", "../outside"),
    ]:
        os.symlink(target, f"corpus/{link}")
    os.link("corpus/z.txt", "corpus/hard.txt")
    expected = ["corpus/b/x.txt", "corpus/hard.txt", "corpus/out/y.txt"]
    again = ["a", "b/again.txt", "b/up", "l0", "l1", "out2", "z.txt"]
    for source in ("corpus", "corpus/**", "corpus/**/*.txt"):
        corpus = Corpus(source)
        assert corpus.files == expected
        assert sorted(corpus.again) == [f"corpus/{name}" for name in again]
    report = train("corpus", vocab_size=270).report
    assert report.reading.sentences == 3
    assert len(report.reading.links_left_out) == len(again)
    assert "left out      7 links to what is read anyway: " in str(report)
    # What a user names twice is read twice, as by sentencepiece.
    assert sentences(["corpus/z.txt", "corpus/z.txt"]) == [b"two", b"two"]
    assert sentences([Path("corpus/z.txt"), "corpus/**/z.txt"]) == [b"two", b"two"]
    assert sentences("corpus/*/x.txt") == [b"one"]


def test_globs_find_what_the_library_finds() -> None:
    import glob

    for name in ("a.txt", "b/a.txt", "b/c/a.txt", "b/c/x[1].txt", ".h/a.txt", "b/.h.txt", "d/e/f/g.text"):
        write(name)
    os.mkdir("z")
    here = str(Path.cwd())
    for pattern in [
        "*.txt", "**", "**/*", "**/*.txt", "b/**", "b/*/a.txt", "*/*", "b/**/c/*.txt", "**/c/**", "?/a.*",
        ".*/*", "b/.*", "**/x[[]1].txt", "b/c/*[]]*", "**/**/a.txt", "./**/*.txt", "b//*.txt", "z/../*/*.txt",
        "d/**/g*", f"{here}/**/*.txt", f"{here}/b/*",
    ]:  # fmt: skip
        theirs = sorted({file for file in glob.glob(pattern, recursive=True) if os.path.isfile(file)})
        ours = Corpus(pattern).files
        assert sorted(map(os.path.normpath, ours)) == sorted(map(os.path.normpath, theirs)), pattern
    with pytest.raises(FileNotFoundError, match="no file matches"):
        Corpus("b*/")


@pytest.mark.parametrize("source", ["corpus", "corpus/**/*.txt", "corpus/*/a.txt", "corpus/shut/*"])
def test_folders_that_may_not_be_read(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write("corpus/a.txt")
    write("corpus/open/a.txt")
    write("corpus/shut/a.txt")
    scandir = os.scandir

    def guarded(path: Any) -> Any:  # root may read everything, so permissions are acted
        if str(path).endswith("shut"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    if source == "corpus/*/a.txt":  # nobody needs to look into it
        assert len(Corpus(source).files) == 2
        return
    with pytest.raises(
        PermissionError, match="the folder 'corpus/shut' may not be read; make it readable, or"
    ):
        Corpus(source)


@pytest.mark.parametrize("source", ["corpus", "corpus/*", "corpus/b.txt"])
def test_files_that_may_not_be_read(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write("corpus/a.txt")
    write("corpus/b.txt")
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("b.txt"))
    with pytest.raises(PermissionError, match=r"the file 'corpus/b.txt' may not be read"):
        Corpus(source)


@pytest.mark.filterwarnings("ignore:.* and was left out:UserWarning")
@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes on Linux only")
def test_names_that_are_not_utf8() -> None:
    os.mkdir(b"corpus")
    Path(os.fsdecode(b"corpus/caf\xe9.txt")).write_bytes(b"one\n" + b"x" * 9000 + b"\ncaf\xe9\n")
    Path(os.fsdecode(b"corpus/bin\xe9.txt")).write_bytes(b"\0\0")
    with pytest.warns(UserWarning, match=r"corpus/caf\\xe9.txt:3"):
        result = train("corpus", vocab_size=270, hard_vocab_limit=False)
    result.report.to_json().encode()
    str(result.report).encode()


def test_links_to_nothing_and_to_themselves() -> None:
    os.symlink("nowhere", "a.txt")
    os.symlink("b.txt", "b.txt")
    write("c.txt")
    with pytest.raises(FileNotFoundError, match=r"'a.txt' is a link to 'nowhere', which does not exist"):
        Corpus("a.txt")
    corpus = Corpus("*.txt")
    assert (corpus.files, sorted(corpus.left_out)) == (["c.txt"], ["a.txt", "b.txt"])


def test_the_standard_input_can_be_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    with write("a.txt", "one\ntwo\n").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert sentences("-") == [b"one", b"two"]


def test_the_standard_input_is_read_once() -> None:
    with pytest.raises(TrainingError, match=r"the standard input .* only once"):
        Corpus([Path("-"), "-"])
    with pytest.raises(TrainingError, match="Parquet cannot be read from the standard input"):
        Corpus("-", format="parquet")


def test_paths_from_an_iterator() -> None:
    write("a.txt")
    with pytest.raises(
        TypeError, match=r"item 1 is \w*Path; for files give a list of their paths: list\(paths\)"
    ):
        sentences(Path().glob("*.txt"))


# --- Memory ---------------------------------------------------------------------------------------

LONG_LINE = """
import re, sys
from pathlib import Path
from cpbpe import WordCounts
def most():  # not of the process that started this one, which ru_maxrss would include
    return int(re.search("VmHWM:(.*) kB", Path("/proc/self/status").read_text())[1])
WordCounts.build(["warm up"])
before = most()
counts = WordCounts.build(sys.argv[1], threads=1)
reading, skipped = counts.reading, counts.reading.left_out["too_long"]
print(most() - before)
print(reading.sentences, reading.bytes, skipped.sentences, skipped.bytes)
print(skipped.examples[0].where, len(counts))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured as Linux counts it")
@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_line_that_is_too_long_takes_little_memory(suffix: str) -> None:
    size = 150_000_000
    opened: Any = {".gz": gzip.open, ".zst": zstandard.open}[suffix]
    with opened(f"a.txt{suffix}", "wb") as file:
        for part in (b"one\n", *[b"x" * 1_000_000] * 150, b"\ntwo\n"):
            file.write(part)
    done = subprocess.run(
        [sys.executable, "-c", LONG_LINE, f"a.txt{suffix}"], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    used, *told = done.stdout.splitlines()
    assert int(used) < 90_000  # kilobytes; the line alone has 150,000
    assert told == [f"3 {size + 6} 1 {size}", f"a.txt{suffix}:2 2"]


@pytest.mark.parametrize("part_bytes", [1, 3, 10, 1000])
@pytest.mark.parametrize("options", [{}, {"keep_newlines": True}, {"input_sentence_size": 101}])
def test_lines_that_are_too_long_are_counted_as_before(
    part_bytes: int, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [b"short", b"x" * 25, b"", b"exactly 12..", b"y" * 13, b"", b"", b"end" * 9]
    for end in (b"", b"\n", b"\n\n"):
        path = write("a.txt", b"\n".join(lines) + end)
        whole = WordCounts.build(path, max_sentence_length=12, **options)
        with monkeypatch.context() as patch:
            patch.setattr(corpus_files, "PART_BYTES", part_bytes)
            parts = WordCounts.build(path, max_sentence_length=12, **options)
        assert parts == whole
        assert parts.reading.sentences == whole.reading.sentences
        assert parts.reading.bytes == whole.reading.bytes
        for reason, skipped in whole.reading.left_out.items():
            found = parts.reading.left_out[reason]
            assert (found.sentences, found.bytes) == (skipped.sentences, skipped.bytes)
            assert [example.where for example in found.examples] == [
                example.where for example in skipped.examples
            ]
