"""Documents to lines and back: what sentencepiece's programs write, for all models; and exact round trips."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from cpbpe import CorpusError, Tokenizer
from cpbpe.corpus.documents import Documents
from cpbpe.packing.lines import FORMS, DocumentEncoder, LineDecoder
from cpbpe.text.utf8 import repair
from tests.support import zoo
from tests.support.budget import SEED, examples
from tests.support.tokenizers import tokenizer

TEXT = "Hello world\n\n  two  spaces \nÇa va? 你好 🦙 <s> </s> <unk>\ttab\r\n\u2581\u2581x\n" * 3 + "the end"
LOSSLESS = TEXT.replace("\u2581", "_")
"""Text that a lossless model brings back."""
EDITS = [bytes([letter]) for letter in b'0123 ,\n{}[]":is-\t'] + [b"", b'{"ids":[', b"]}"]


@pytest.fixture(autouse=True)
def in_new_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def encoded(tok: Tokenizer, name: str, form: str = "ids", whole: bool = False, **options: Any) -> bytes:
    documents = Documents(name, format="text", whole=whole)
    return b"".join(DocumentEncoder(tok, form, **options).encode(documents))


def decoded(tok: Tokenizer, data: bytes, form: str = "ids", **options: Any) -> bytes:
    Path("lines").write_bytes(data)
    return b"".join(LineDecoder(tok, form, **options).decode(["lines"]))


@pytest.fixture
def mistral(engine: str) -> Tokenizer:
    return tokenizer("tokenizer.model.v1", engine)


# --- As sentencepiece's programs --------------------------------------------------------------------


@pytest.mark.parametrize("name", zoo.NAMES)
def test_the_lines_of_spm_encode_and_spm_decode(name: str) -> None:
    """The programs call these methods for each line, and print the results with spaces between them."""
    tok = Tokenizer.from_bytes(zoo.model(name))
    theirs = sentencepiece.SentencePieceProcessor(model_proto=zoo.model(name))
    lines = TEXT.split("\n")
    Path("text").write_text("".join(f"{line}\n" for line in lines), newline="", encoding="utf-8")
    ids = [theirs.encode(line) for line in lines]
    ours = encoded(tok, "text")
    assert ours.decode() == "".join(f"{' '.join(map(str, row))}\n" for row in ids)
    pieces = [tok.facts.engine.align(line, False, True)[1] for line in lines]
    assert encoded(tok, "text", "pieces") == b"".join(b" ".join(row) + b"\n" for row in pieces)
    if "broken" not in name:  # whose pieces are not UTF-8, and so no str
        assert [[piece.decode() for piece in row] for row in pieces] == theirs.encode(lines, out_type=str)
    back = decoded(tok, ours)
    if "broken" not in name:
        assert back.decode() == "".join(f"{theirs.decode(row)}\n" for row in ids)
    assert repair(back).decode() == "".join(f"{tok.decode(row)}\n" for row in ids)
    if not any(b" " in piece or not piece for row in pieces for piece in row) and "broken" not in name:
        texts = [theirs.decode_pieces([piece.decode() for piece in row]) for row in pieces]
        lines_of_pieces = encoded(tok, "text", "pieces")
        assert decoded(tok, lines_of_pieces, "pieces").decode() == "".join(f"{text}\n" for text in texts)


# --- Round trips ------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("text", [LOSSLESS, f"{LOSSLESS}\n", "", "\n", "\n\n\n", "x", "\r\n\r\n", "a\0b\n"])
def test_files_come_back(mistral: Tokenizer, form: str, threads: int, text: str) -> None:
    Path("text").write_text(text, newline="")
    lines = encoded(mistral, "text", form, threads=threads)
    expected = text if form in ("ids", "pieces") or not text else f"{text.removesuffix(chr(10))}\n"
    assert decoded(mistral, lines, form, threads=threads).decode() == expected
    if form in ("ids", "pieces"):  # one line for a line
        assert lines.count(b"\n") == text.count("\n")


@pytest.mark.parametrize("form", ["ids", "pieces", "jsonl"])
def test_whole_files_come_back(mistral: Tokenizer, form: str) -> None:
    Path("text").write_text(LOSSLESS, newline="")
    lines = encoded(mistral, "text", form, whole=True)
    assert lines.count(b"\n") == 1
    assert decoded(mistral, lines, form, whole=True).decode() == LOSSLESS


def test_files_one_after_the_other(mistral: Tokenizer) -> None:
    """Every line stays one, also the last of a file without a newline; files without a line add nothing."""
    for name, text in {"a": "one\ntwo", "b": "", "c": "three\n", "d": "", "e": "four"}.items():
        Path(name).write_text(text)
    documents = Documents(["a", "b", "c", "d", "e"])
    lines = b"".join(DocumentEncoder(mistral).encode(documents))
    assert decoded(mistral, lines) == b"one\ntwo\nthree\nfour"
    Path("f").write_text("")
    documents = Documents(["c", "f"])
    assert b"".join(DocumentEncoder(mistral).encode(documents)).endswith(b"\n")


def test_many_blocks(mistral: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    from cpbpe.corpus import files

    Path("text").write_text(LOSSLESS, newline="")
    expected = {form: encoded(mistral, "text", form) for form in FORMS}
    for size in (1, 7, 50):
        monkeypatch.setattr(files, "PART_BYTES", size)
        for form in FORMS:
            lines = encoded(mistral, "text", form, threads=2)
            assert lines == expected[form]
            assert decoded(mistral, lines, form, threads=2).decode().rstrip("\n") == LOSSLESS


def test_a_long_text_is_cut_for_threads(mistral: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    from cpbpe.packing import lines

    Path("text").write_text(LOSSLESS, newline="")
    expected = encoded(mistral, "text", whole=True, add_bos=True)
    monkeypatch.setattr(lines, "_LONG", 10)
    assert encoded(mistral, "text", whole=True, threads=3, add_bos=True) == expected
    assert encoded(mistral, "text", threads=3) == encoded(mistral, "text")


# --- Forms and options --------------------------------------------------------------------------------


def test_json(mistral: Tokenizer) -> None:
    Path("text").write_text(LOSSLESS, newline="")
    expected = [{"ids": mistral.encode(line)} for line in LOSSLESS.split("\n")]
    assert json.loads(encoded(mistral, "text", "json")) == expected
    assert [json.loads(line) for line in encoded(mistral, "text", "jsonl").splitlines()] == expected
    Path("empty").write_text("")
    assert json.loads(encoded(mistral, "empty", "json")) == []
    assert encoded(mistral, "empty", "jsonl") == b""


@pytest.mark.parametrize("unit", ["char", "byte"])
def test_offsets(mistral: Tokenizer, unit: Any) -> None:
    Path("text").write_text(LOSSLESS, newline="")
    expected = []
    for line in LOSSLESS.split("\n"):
        aligned = mistral.align(line, unit=unit, add_bos=True)
        expected.append({"ids": aligned.ids, "offsets": [list(span) for span in aligned.offsets]})
    for form in ("json", "jsonl"):
        lines = encoded(mistral, "text", form, offsets=True, unit=unit, add_bos=True)
        found = json.loads(lines) if form == "json" else [json.loads(line) for line in lines.splitlines()]
        assert found == expected
        assert decoded(mistral, lines, form).decode().rstrip("\n") == LOSSLESS


@pytest.mark.parametrize("numbers", [0, 5, 1 << 16])
def test_offsets_of_long_texts(mistral: Tokenizer, monkeypatch: pytest.MonkeyPatch, numbers: int) -> None:
    """Those without words of their own are written in another way, and look the same."""
    from cpbpe.packing import lines as written

    Path("text").write_text(LOSSLESS, newline="")
    expected = {form: encoded(mistral, "text", form, offsets=True) for form in ("json", "jsonl")}
    monkeypatch.setattr(written, "_NUMBERS", numbers)
    for form in expected:
        assert encoded(mistral, "text", form, offsets=True) == expected[form]


OPTIONS: list[dict[str, Any]] = [
    {"add_bos": True, "add_eos": True},
    {"reverse": True, "add_eos": True},
    {"prefix_space": False},
    {"allowed_special": "all"},
    {"allowed_special": ("<s>",), "prefix_after_special": False},
    {"alpha": 0.3, "seed": 7},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", ["tokenizer.model.v1", "defaults", "identity-no-fallback"])
def test_options(engine: str, name: str, options: dict[str, Any]) -> None:
    tok = tokenizer(name, engine)
    Path("text").write_text(LOSSLESS, newline="")
    lines = LOSSLESS.split("\n")
    seeds = [
        {**options, "seed": options["seed"] + number} if "seed" in options else options
        for number in range(len(lines))
    ]
    ids = [tok.encode(line, **given) for line, given in zip(lines, seeds, strict=True)]
    pieces = [tok.encode_pieces(line, **given) for line, given in zip(lines, seeds, strict=True)]
    assert encoded(tok, "text", threads=2, **options).decode() == "\n".join(
        " ".join(map(str, row)) for row in ids
    )
    assert encoded(tok, "text", "pieces", **options).decode() == "\n".join(map(" ".join, pieces))


def test_sampling_without_a_seed_is_new_each_time(mistral: Tokenizer) -> None:
    Path("text").write_text(LOSSLESS, newline="")
    assert encoded(mistral, "text", alpha=0.5) != encoded(mistral, "text", alpha=0.5)


def test_added_tokens(mistral: Tokenizer) -> None:
    tok = mistral.with_special_tokens({"<|a|>": 32000, "<|far|>": 200_000})
    Path("text").write_text("x<|a|>y<|far|>\n<|far|>z\n")
    for form in FORMS:
        lines = encoded(tok, "text", form, allowed_special="all")
        assert decoded(tok, lines, form) == b"x<|a|>y<|far|>\n<|far|>z\n"
    assert encoded(tok, "text", "pieces", allowed_special="all").split(b"\n")[0].split(b" ")[1] == b"<|a|>"
    ids = encoded(tok, "text", allowed_special="all")
    assert b" 200000" in ids
    rows = [list(map(int, line.split())) for line in ids.splitlines()]
    texts = [tok.decode(row, skip_special_tokens=True) for row in rows]
    assert decoded(tok, ids, skip_special_tokens=True).decode() == "".join(f"{text}\n" for text in texts)


def test_what_is_forbidden_is_named_with_its_line(mistral: Tokenizer) -> None:
    Path("text").write_text("a\nb\nc </s>\n")
    with pytest.raises(ValueError, match=r"^text:3: .*</s>"):
        encoded(mistral, "text", disallowed_special="raise")


def test_what_is_not_utf_8_is_noticed(mistral: Tokenizer) -> None:
    Path("text").write_bytes(b"a\ncaf\xe9\nb\xff\n")
    encoder = DocumentEncoder(mistral)
    ids = b"".join(encoder.encode(Documents("text")))
    assert encoder.broken == "text:2"
    assert decoded(mistral, ids).decode() == "a\ncaf\ufffd\nb\ufffd\n"


def test_pieces_with_newlines(engine: str) -> None:
    tok = tokenizer("user-defined-llama", engine)
    Path("text").write_text("a\nb")
    with pytest.raises(CorpusError, match=r"^text: there are pieces with newlines in them, .* or JSON"):
        encoded(tok, "text", "pieces", whole=True)
    assert decoded(tok, encoded(tok, "text", whole=True), whole=True) == b"a\nb"
    assert encoded(tok, "text", "pieces").count(b"\n") == 1


# --- What cannot be decoded -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "form", "message"),
    [
        (b"1 2\n3 x\n", "ids", r"lines:2: 'x' is not an id; .* give format='pieces'"),
        (
            b"1 2\n\n3 99999\n",
            "ids",
            r"lines:3: there is no id 99999: .* are 0 to 31999; were these made with",
        ),
        (b"\xef\xbb\xbf1 2\n", "ids", r"lines:1: .* is not an id; .* byte order mark; save it without one"),
        (
            "\ufeff▁a\n".encode(),
            "pieces",
            r"lines:1: there is no piece .* byte order mark; save it without one",
        ),
        (b"1 2\n-1", "ids", r"lines:2: '-1' is not an id"),
        (b"1\n\v 2", "ids", r"lines:2: '\\x0b' is not an id"),
        (b"1 \f2 3\r", "ids", r"lines:1: '\\x0c2' is not an id"),
        (b"5000000000", "ids", r"lines:1: there is no id 5000000000"),
        (b'{"ids":[1]}\n', "ids", r"lines:1: '{\"ids\":\[1\]}' is not an id; .* give format='jsonl'"),
        ("▁a\n▁b nopiece\n".encode(), "pieces", r"lines:2: there is no piece 'nopiece' in this model"),
        (b'{"ids":[1]}\n[1,"a"]\n', "jsonl", r"lines:2: 'a' is not an id"),
        (b'{"ids":[1]}\n{"ids":[-1]}\n', "jsonl", r"lines:2: '-1' is not an id"),
        (b'{"ids":[1]}\n{"ids":[32000]}\n', "jsonl", r"lines:2: there is no id 32000"),
        (b'{"ids":[1]}\n\n', "jsonl", r"lines:2: not valid JSON"),
        (b'{"ids":[1]}\n{"tokens":[1]}\n', "jsonl", r"lines:2: there is no list of ids"),
        (b'{"ids":[1]', "json", r"lines: not valid JSON"),
        (b'[{"ids":[1]},{"ids":5}]', "json", r"lines: item 2: there is no list of ids"),
        (b'{"ids":[1]}', "json", r"lines: an array of objects is needed, not dict"),
    ],
)
def test_lines_that_cannot_be_decoded(mistral: Tokenizer, data: bytes, form: str, message: str) -> None:
    with pytest.raises(CorpusError, match=f"^{message}"):
        decoded(mistral, data, form)


def test_json_lines_that_somebody_has_changed() -> None:
    """Whatever becomes of a letter or two: what is read is what `json` reads, and else it is refused."""
    tok = tokenizer("tokenizer.model.v1", "core")
    decoder = LineDecoder(tok)
    made = random.Random(SEED)
    written = b'{"ids":[1,20]}\n{"ids":[]}\n{"ids":[0,300]}\n'
    edits = [(at, length, letter) for at in range(len(written)) for length in (0, 1) for letter in EDITS]
    for number in range(examples(400)):
        data = written
        for at, length, letter in made.sample(edits, number % 2 + 1):
            data = data[:at] + letter + data[at + length :]
        Path("lines.jsonl").write_bytes(data)
        try:
            rows = [json.loads(line) for line in data.removesuffix(b"\n").split(b"\n")]
            rows = [row["ids"] if isinstance(row, dict) else row for row in rows]
            expected = "".join(f"{tok.decode([*row])}\n" for row in rows).encode()
        except (LookupError, TypeError, ValueError):
            with pytest.raises(CorpusError):
                list(decoder.decode(["lines.jsonl"]))
            continue
        found = b"".join(decoder.decode(["lines.jsonl"]))
        assert found.removesuffix(b"\n") == expected.removesuffix(b"\n"), data


def test_lines_from_elsewhere(mistral: Tokenizer) -> None:
    """From an editor on Windows, from a spreadsheet, from other programs."""
    assert decoded(mistral, b"22557 1526\r\n15359\r\n") == b"Hello world\nHi\n"
    assert decoded(mistral, b"22557\t1526\n") == b"Hello world\n"
    assert decoded(mistral, b" 22557  1526 \n") == b"Hello world\n"
    assert decoded(mistral, b"[22557, 1526]\n[]\n", "jsonl") == b"Hello world\n\n"
    assert decoded(mistral, b'{"n": 1, "ids": [22557, 1526]}', "jsonl") == b"Hello world\n"
    assert decoded(mistral, b"[[22557, 1526], [15359]]", "json") == b"Hello world\nHi\n"
