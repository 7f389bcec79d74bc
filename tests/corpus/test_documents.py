"""Documents from files of every format: each one once, exactly as it is, with its number."""

import csv
import gzip
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather, parquet

from cpbpe import CorpusError, WordCounts, edit, pack, train
from cpbpe.corpus import files, records
from cpbpe.corpus.documents import DocumentBlock, Documents
from tests.support.processes import environment
from tests.train.test_corpus import COMPRESS, sentences

LINES = "one\n\n  zwei\t \r\nдва 🦙".encode() + b"\ncaf\xe9\0\n"
TEXTS = ["one\ntwo", "", ' "quoted", and, more\r\n', "drei 🦙", "  four  "]


@pytest.fixture(autouse=True)
def in_new_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(params=[1, 3, 1 << 22])
def part_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    size: int = request.param
    monkeypatch.setattr(files, "PART_BYTES", size)
    return size


def write(name: str, data: bytes | str) -> str:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return name


def texts(documents: Documents) -> list[bytes]:
    return [text for block in documents.blocks() for text in block.texts]


def restored(blocks: list[DocumentBlock]) -> bytes:
    """A text file, from its blocks."""
    lines = ((b"\n".join(block.texts) + (b"\n" if block.ended else b"")) for block in blocks if block.texts)
    return b"".join(lines)


# --- Text -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("data", [b"", b"\n", b"\n\n", b"a", b"a\n\n", LINES, LINES[:-1], b"\xef\xbb\xbfa\n"])
def test_lines(part_bytes: int, suffix: str, data: bytes) -> None:
    write(f"a.txt{suffix}", COMPRESS[suffix](data))
    documents = Documents(f"a.txt{suffix}", format="text")
    blocks = list(documents.blocks())
    assert restored(blocks) == data
    assert [text for block in blocks for text in block.texts] == data.split(b"\n")[: data.count(b"\n")] + (
        [] if data.endswith(b"\n") or not data else data.split(b"\n")[-1:]
    )
    numbers = [block.first for block in blocks]
    assert numbers == [1 + sum(len(block.texts) for block in blocks[:index]) for index in range(len(blocks))]
    assert documents.read == documents.total == os.path.getsize(f"a.txt{suffix}")
    assert len(documents.marked) == data.startswith(b"\xef")


@given(st.binary(max_size=40))
def test_any_bytes_are_restored(data: bytes) -> None:
    data = b"a" + data  # what certainly is no text, going by its first bytes, is refused
    write("any", data)
    assert restored(list(Documents("any", format="text").blocks())) == data


@pytest.mark.parametrize("data", [b"", b"\n", LINES])
def test_whole_files(part_bytes: int, data: bytes) -> None:
    for name in ("a.txt", "b.md"):
        write(name, data)
    blocks = list(Documents(["a.txt", "b.md"], whole=True, format="text").blocks())
    assert [(block.file, block.name, block.texts) for block in blocks] == [
        (0, "a.txt", [data]),
        (1, "b.md", [data]),
    ]
    write("c.jsonl", "{}")
    with pytest.raises(CorpusError, match=r"^c.jsonl: whole makes .* this is jsonl, .* format='text'$"):
        Documents("c.jsonl", whole=True)


def test_a_line_longer_than_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "PART_BYTES", 100)
    data = b"a\n" + b"x" * 5000 + b"\nb\n"
    blocks = list(Documents(write("a.txt", data)).blocks())
    assert [block.where(0) for block in blocks] == ["a.txt:1", "a.txt:2"]
    assert restored(blocks) == data


def test_standard_input() -> None:
    code = "from cpbpe.corpus.documents import Documents; print([b.texts for b in Documents('-').blocks()])"
    done = subprocess.run(
        [sys.executable, "-c", code], input=b"a\n\nb", capture_output=True, check=True, env=environment()
    )
    assert done.stdout == b"[[b'a', b''], [b'b']]\n"
    assert Documents("-").total is None
    for format in ("parquet", "arrow"):
        with pytest.raises(CorpusError, match="cannot be read from the standard input"):
            Documents("-", format=format)
    with pytest.raises(CorpusError, match="only once"):
        Documents(["-", "-"])


def test_reading_after_the_standard_input() -> None:
    documents = Documents(["-", write("a.txt", "one")])
    assert [block.texts for block in documents.blocks(first_file=1)] == [[b"one"]]


def test_many_files_and_folders() -> None:
    write("data/b.txt", "1\n2")
    write("data/a.jsonl", '{"text": "3"}\n')
    write("data/empty.txt", "")
    write("data/logo.png", b"\x89PNG\r\n\x1a\n\0\0")
    os.symlink("b.txt", "data/z.txt")
    documents = Documents("data")
    blocks = list(documents.blocks())
    shown = [(block.file, os.path.basename(block.name), block.texts, block.ended) for block in blocks]
    assert shown == [
        (0, "a.jsonl", [b"3"], True),
        (1, "b.txt", [b"1"], True),
        (1, "b.txt", [b"2"], False),
        (2, "empty.txt", [], True),
    ]
    assert documents.left_out == {"data/logo.png": "is not text"} or "image" in str(documents.left_out)
    assert documents.again == ["data/z.txt"]
    assert list(documents.blocks(first_file=1)) == blocks[1:]
    assert documents.read == documents.total
    with pytest.raises(FileNotFoundError, match="no such file"):
        Documents(["data/b.txt", "data/c.txt"])


# --- Records --------------------------------------------------------------------------------------


def as_json(texts: list[str | None], column: str) -> bytes:
    return "\n".join(json.dumps({"n": 1, column: text}) for text in texts).encode()


def as_csv(texts: list[str], column: str | None, **dialect: Any) -> bytes:
    file = io.StringIO(newline="")
    writer = csv.writer(file, **dialect)
    writer.writerows([["n", column]] if column is not None else [])
    writer.writerows([index, text] for index, text in enumerate(texts))
    return file.getvalue().encode()


def table(texts: list[str | None], column: str) -> Any:
    return pyarrow.table({"n": list(range(len(texts))), column: pyarrow.array(texts, pyarrow.string())})


def write_stream(rows: Any, path: str) -> None:
    with pyarrow.ipc.new_stream(path, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=2)


def write_file(rows: Any, path: str) -> None:
    with pyarrow.ipc.new_file(path, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=2)


COLUMNS: dict[str, Callable[[Any, str], None]] = {
    "a.parquet": lambda rows, path: parquet.write_table(rows, path, row_group_size=2),
    "a.feather": lambda rows, path: feather.write_feather(rows, path),
    "file.arrow": write_file,
    "stream.arrow": write_stream,
    "a.arrows": write_stream,
}


@pytest.mark.parametrize("write_to", [write_file, write_stream])
def test_an_arrow_file_that_is_cut_off_while_it_is_read(write_to: Callable[[Any, str], None]) -> None:
    """It is not mapped into memory: that would end the process."""
    write_to(table(["a" * 200_000] * 60, "text"), "a.arrow")
    reader = Documents("a.arrow").texts()
    next(reader)
    os.truncate("a.arrow", 100_000)
    with pytest.raises(CorpusError, match=r"^a\.arrow: "):
        list(reader)


def test_arrow_streams_that_were_put_together() -> None:
    """As gzip files can be; with the columns in another order."""
    write_stream(table(["a", "b", "c"], "text"), "a.arrow")
    write_stream(table(["d"], "text").select(["text", "n"]), "b.arrow")
    write("both.arrow", Path("a.arrow").read_bytes() + Path("b.arrow").read_bytes())
    assert texts(Documents("both.arrow")) == [b"a", b"b", b"c", b"d"]
    write("more.arrow", Path("a.arrow").read_bytes() + b"something else")
    with pytest.raises(CorpusError, match="cannot be read beyond row 3"):
        texts(Documents("more.arrow"))


def test_a_zst_file_that_needs_much_memory() -> None:
    """As of zstd --long=31. The file is whole, so copying it again would not help."""
    large = zstandard.ZstdCompressionParameters(window_log=28)
    stream = zstandard.ZstdCompressor(compression_params=large).compressobj()
    write("a.txt.zst", stream.compress(b"text\n") + stream.flush())
    with pytest.raises(CorpusError, match="more than 128 MB for looking back; decompress it with zstd"):
        texts(Documents("a.txt.zst"))


def test_a_column_whose_name_looks_like_a_place_in_another_one() -> None:
    rows = {"a": [{"b": "inner"}], "a.b": ["text"]}
    for names in (["a", "a.b"], ["a.b", "a"]):
        parquet.write_table(pyarrow.table({name: rows[name] for name in names}), "a.parquet")
        assert texts(Documents("a.parquet", column="a.b")) == [b"text"]


def test_json_lines(part_bytes: int) -> None:
    write("a.jsonl", as_json([*TEXTS, None], "body") + b"\n\n" + as_json(["x"], "body"))
    documents = Documents("a.jsonl", field="body")
    assert texts(documents) == [text.encode() for text in [*TEXTS, "", "", "x"]]
    assert (documents.nulls, documents.blank) == (1, 1)
    assert list(documents.texts()) == [text.encode() for text in [*TEXTS, "x"]]
    assert [block.first + index for block in documents.blocks() for index in block.absent] == [6, 7]
    write("a.jsonl", '{"text": "a"}\n{"text": 1}\n')
    with pytest.raises(CorpusError, match=r"^a.jsonl:2: the field 'text' is int"):
        texts(Documents("a.jsonl"))
    write("a.jsonl", f'{{"text": "a", "n": {"1" * 5000}}}\n')  # more digits than Python converts
    assert texts(Documents("a.jsonl")) == [b"a"]


@pytest.mark.parametrize("dialect", [{}, {"lineterminator": "\n"}, {"quoting": csv.QUOTE_ALL}])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_csv(part_bytes: int, dialect: dict[str, Any], bom: bytes) -> None:
    expected = [text.encode() for text in TEXTS]
    write("a.csv", bom + as_csv(TEXTS, "body", **dialect))
    assert texts(Documents("a.csv", column="body")) == expected
    assert sentences("a.csv", column="body") == [s for text in expected for s in lines_of(text)]
    write("b", bom + as_csv(TEXTS, "text", **dialect))
    assert texts(Documents("b", format="csv")) == expected
    write("c.csv", bom + as_csv(TEXTS, None, **dialect))
    assert texts(Documents("c.csv", column=2)) == texts(Documents("c.csv", column="2")) == expected
    write("d.csv.gz", gzip.compress(as_csv(TEXTS, "text") + b"\r\n" + as_csv(["x"], None)))
    documents = Documents("d.csv.gz", column="text")
    assert texts(documents) == [*expected, b"", b"x"]
    assert (documents.blank, documents.nulls) == (1, 0)


def lines_of(text: bytes) -> list[bytes]:
    """A document as training takes it: each line by itself."""
    return text.removesuffix(b"\n").split(b"\n") if text else []


@given(
    st.lists(
        st.lists(
            st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=2, max_size=2
        )
    ),
    st.integers(1, 50),
)
def test_any_table_in_quotes(rows: list[list[str]], batch: int) -> None:
    file = io.StringIO(newline="")
    csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)
    data = file.getvalue().encode()
    found = list(records.read_table("a", [data[:batch], data[batch:]], "csv", 2))
    assert [text for texts, _ in found for text in texts] == [row[1].encode() for row in rows]


def test_tables_with_tabs(part_bytes: int) -> None:
    write("a.tsv", b'n\ttext\r\n1\t"one" \r\n\r\n2\tcaf\xe9\r\n')
    documents = Documents("a.tsv")
    assert texts(documents) == [b'"one" ', b"", b"caf\xe9"]
    assert documents.blank == 1
    write("b.tsv", "one\t5\ntwo\t6")
    assert texts(Documents("b.tsv", column=1)) == [b"one", b"two"]


def test_a_text_of_any_length_in_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_BATCH_BYTES", 1000)
    long = "x" * 300_000
    write("a.csv", as_csv([long, "b"], "text"))
    assert [len(block.texts) for block in Documents("a.csv", column="text").blocks()] == [1, 1]


@pytest.mark.parametrize(
    ("name", "data", "column", "message"),
    [
        ("a.csv", "a,b\n", None, r"is CSV, and only you know which column .* name it with column="),
        ("a.csv", "a,b\n1,2\n", "text", r"no column 'text' in its first line \(there is 'a', 'b'\); name it"),
        ("a.csv", "a;text\n1;2\n", "text", r"\(there is 'a;text'\); its columns seem to be separated by"),
        ("a.csv", "text,text\n1,2\n", "text", r"there are 2 columns 'text'"),
        ("a.csv", "a,text\n1,2\n3\n", "text", r"a.csv:3: there is no column 2 in this row, which has 1"),
        ("a.csv", "a,text\n1,2\n3,4,5\n", "text", r"a.csv:3: this row has 3 columns, and the first line 2"),
        ("a.csv", "text,a\n1,2\n3,4,,5\n", "text", r"a.csv:3: this row has 4 .* commas into quotes"),
        ("a.tsv", "a\ttext\n1\t2\t\n3\t4\t5\n", "text", r"a.tsv:3: this row has 3 .* take tabs out of"),
        ("a.csv", "a,text\n1,2\n3\n", 0, r"numbered from 1, so there is no column 0"),
        ("a.csv", 'text\n"a\nb"\n"c', "text", r"a.csv:4: not valid CSV: unexpected end of data"),
        ("a.csv", 'text\n"a" b\n', "text", r"a.csv:2: not valid CSV: .* must be doubled"),
        ("a.csv", "text\ra\r", "text", r"a.csv:1: not valid CSV: .*; lines must end with LF or CRLF"),
        ("a.tsv", "one\t1\n", None, r"no column 'text' .*, or give its number, from 1"),
        ("a.arrow", b"ARROW1\0\0", None, r"^a.arrow: is not a valid Arrow file: .*; copy or download"),
        ("a.arrow", b"text", None, r"^a.arrow: is not a valid Arrow file"),
        ("a.feather", b"FEA1", None, r"^a.feather: is not a valid Arrow file"),
        ("a.txt", b"ARROW1\0\0\0\0", None, r"^a.txt: .* name it \*\.arrow, or give format='arrow'"),
    ],
)
def test_tables_that_cannot_be_read(name: str, data: str, column: Any, message: str) -> None:
    write(name, data)
    with pytest.raises(CorpusError, match=message):
        texts(Documents(name, column=column))


def test_a_folder_leaves_out_csv_unless_its_column_is_named() -> None:
    write("data/a.csv", "id,body\n1,one\n")
    write("data/b.txt", "two\n")
    assert list(Documents("data").left_out) == ["data/a.csv"]
    assert texts(Documents("data", column="body")) == [b"one", b"two"]


@pytest.mark.parametrize("name", COLUMNS)
def test_columns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_ROWS", 3)
    values = [*TEXTS, None, "x"]
    COLUMNS[name](table(values, "body"), name)
    expected = [(text or "").encode() for text in values]
    for column in ("body", 2):
        documents = Documents(name, column=column)
        assert texts(documents) == expected
        assert documents.nulls == 1
        assert documents.read == documents.total == os.path.getsize(name)
    assert [block.absent for block in Documents(name, column=2).blocks() if block.absent]
    assert sentences(name, column="body") == [s for text in expected for s in lines_of(text)]
    with pytest.raises(CorpusError, match=rf"^{name}: there is no column 'text' \(there is 'n', 'body'\)"):
        texts(Documents(name))
    with pytest.raises(CorpusError, match="the column 'n' is int64, not text"):
        texts(Documents(name, column="n"))
    with pytest.raises(CorpusError, match="no column 3: it has 2, numbered from 1"):
        texts(Documents(name, column=3))
    whole = Path(name).read_bytes()
    Path(name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CorpusError, match=rf"^{name}: (is not a valid|cannot be read beyond row)"):
        texts(Documents(name, column="body"))


def test_training_reads_the_same_tables() -> None:
    write("a.csv", as_csv(["the cat"], "body"))
    write_file(table(["the cat"], "body"), "a.arrow")
    write("a.txt", "the cat\n")
    expected = WordCounts.build("a.txt")
    assert WordCounts.build("a.csv", column="body") == expected
    assert WordCounts.build(["a.arrow"], column=2) == expected
    with open("a.csv") as file:
        assert WordCounts.build(file, format="csv", column="body") == expected
    with pytest.raises(TypeError, match=r"column must be a name \(str\) or a number, not 1.5"):
        WordCounts.build("a.csv", column=1.5)  # type: ignore[arg-type]


def test_fields_and_columns_where_there_are_none() -> None:
    """They would be ignored, and what is read may be another text than was meant."""
    write("a.txt", "one\n")
    write("a.jsonl", '{"body": "one"}\n')
    write("a.tsv", "one\t2\n")
    tok = train(["one"], vocab_size=270, hard_vocab_limit=False).tokenizer
    calls: list[Callable[..., Any]] = [
        lambda source, **reading: train(source, vocab_size=270, hard_vocab_limit=False, **reading),
        WordCounts.build,
        lambda source, **reading: pack(tok, source, "out", **reading),
        lambda source, **reading: edit(tok).from_corpus(source, 1, **reading),
    ]
    for call in calls:
        for source in ("a.txt", ["one"], iter(["one"])):
            with pytest.raises(CorpusError, match=r"^field means nothing here: .*; leave it out"):
                call(source, field="body")
            with pytest.raises(CorpusError, match=r"^column means nothing here: .*; leave it out"):
                call(source, column="body")
    with open("a.txt") as file, pytest.raises(CorpusError, match=r"^field means nothing here"):
        train(file, field="body")
    with pytest.raises(CorpusError, match=r"^field means nothing here: no file is read as jsonl"):
        train("a.tsv", field="body")
    with pytest.raises(CorpusError, match=r"^column means nothing here"):  # (a text and its count)
        train("a.tsv", column=1)
    with pytest.raises(CorpusError, match=r"^whole means nothing here: it is about files"):
        pack(tok, ["one"], "out", whole=True)
    with pytest.raises(CorpusError, match=r"^format means nothing here: it is about files"):
        pack(tok, ["one"], "out", format="jsonl")
    # One file with fields is enough.
    assert WordCounts.build([Path("a.txt"), Path("a.jsonl")], field="body") == WordCounts.build(["one"] * 2)


def test_an_unknown_format() -> None:
    with pytest.raises(CorpusError, match=r"^format must be one of text, .*, not 'xml'$"):
        Documents("a", format="xml")
