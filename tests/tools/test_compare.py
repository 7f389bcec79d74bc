"""What texts cost, against counts of a few lines; other libraries; the forms of the result."""

import csv
import io
import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import tokenizers

import cpbpe
from cpbpe.text.drawn import shown
from cpbpe.tools.compare import BLOCK_BYTES, CHECKED_BYTES, FIELDS, RECORDS, formats, probes, spaced
from tests.bytes.models import model as byte_level
from tests.support import corpus, zoo
from tests.support.drawings import SGR, WholePage, without_colours
from tests.support.tokenizers import tokenizer

TEXTS = {
    "en": corpus.lines()[:60],
    "mixed": ["Grüße, 日本語 🦙!", "\ud800", "", " \t\n", "1234567", "x" * 300],
    "empty": [],
}


@pytest.fixture
def models(tmp_path: Path) -> dict[str, Any]:
    path = tmp_path / "own.model"
    path.write_bytes(zoo.model("llama"))
    return {"file": path, "bytes": cpbpe.Tokenizer.from_spec(byte_level()), "sp": f"sentencepiece:{path}"}


def test_against_counts(models: dict[str, Any]) -> None:
    found = cpbpe.compare(models, TEXTS, base="en", rounds=0)
    assert [model.megabytes_per_second for model in found.models] == [None] * 3
    for name, tok in (("file", tokenizer("llama", "core")), ("bytes", models["bytes"])):
        for text, documents in TEXTS.items():
            given = [document.replace("\ud800", "\ufffd") for document in documents]
            ids = [id for document in given for id in tok.encode(document)]
            cell = found[name, text]
            assert (cell.tokens, cell.used) == (len(ids), len(set(ids)))
            assert cell.checked == len(documents)
            whole = found.text(text)
            assert whole.words == sum(len(document.split()) for document in given)
            assert whole.bytes == sum(len(document.encode()) for document in given)
            price = found.price(name, text)
            assert price == len(ids) / found[name, "en"].tokens
            counts = Counter(ids)
            if ids:
                power = sum((n / len(ids)) ** 2.5 for n in counts.values())
                entropy = math.log2(power) / (1 - 2.5) / math.log2(len(tok))
                assert cell.renyi_efficiency == pytest.approx(entropy)
            else:
                assert cell.renyi_efficiency is None
            lost = [document for document in given if tok.decode(tok.encode(document)) != document]
            assert cell.changed == len(lost)
            assert cell.example == (min(lost, key=len) if lost else None)
    for text in TEXTS:
        ours, theirs = found["file", text], found["sp", text]
        assert (ours.tokens, ours.byte_tokens, ours.unknown_tokens) == (
            theirs.tokens,
            theirs.byte_tokens,
            theirs.unknown_tokens,
        )
    mixed = tokenizer("llama", "core")
    byte_pieces = [
        piece
        for document in TEXTS["mixed"]
        for piece in mixed.encode_pieces(document.replace("\ud800", "\ufffd"))
    ]
    assert found["file", "mixed"].byte_tokens == sum(piece.startswith("<0x") for piece in byte_pieces)


def test_parts_of_characters_in_byte_level_models() -> None:
    tok = cpbpe.Tokenizer.from_spec(byte_level())
    cell = cpbpe.compare({"m": tok}, {"x": "日é"}, rounds=0, probe=False)["m", "x"]
    expected = 0
    for id in tok.encode("日é"):
        expected += "�" in tok.vocab.id_to_bytes(id).decode("utf-8", "replace")
    assert cell.byte_tokens == expected > 0


def test_unknown_characters() -> None:
    models = (tokenizer(name, "core") for name in zoo.NAMES)
    tok = next(tok for tok in models if tok.unk_id in tok.encode("🦙"))
    cell = cpbpe.compare({"m": tok}, {"x": "🦙 🦙"}, rounds=0)["m", "x"]
    assert cell.unknown_tokens > 0
    assert (cell.changed, cell.example) == (1, "🦙 🦙")


def test_a_model_without_an_unknown_piece() -> None:
    rows = [cpbpe.Piece(b"<0x%02X>" % byte, 0.0, cpbpe.PieceType.BYTE) for byte in range(256)]
    pieces = cpbpe.Pieces.of([*rows, cpbpe.Piece("▁a".encode(), 0.0), cpbpe.Piece(b"a", -1.0)])
    tok = cpbpe.Tokenizer.from_spec(cpbpe.ModelSpec(pieces, cpbpe.NormalizerSpec(), byte_fallback=True))
    cell = cpbpe.compare({"m": tok}, {"x": "aaé"}, rounds=0)["m", "x"]
    assert (cell.tokens, cell.byte_tokens, cell.unknown_tokens) == (4, 2, 0)


def test_bound_options_do_not_count() -> None:
    tok = tokenizer("llama", "core")
    bound = tok.using(add_bos=True, add_eos=True)
    found = cpbpe.compare({"m": tok, "bound": bound}, {"x": ["a b"] * 9}, rounds=0, probe=False)
    assert found["m", "x"].tokens == found["bound", "x"].tokens == 9 * len(tok.encode("a b"))


def test_what_is_not_unicode_is_counted() -> None:
    texts: list[str | bytes] = ["good", b"good", b"bad \xff", "\udfff", "\ufffd"]
    found = cpbpe.compare({"m": tokenizer("llama", "core")}, {"x": texts, "y": "good"}, rounds=0, probe=False)
    assert (found.text("x").replaced, found.text("y").replaced) == (2, 0)
    assert found.text("x").characters == 4 + 4 + 5 + 1 + 1
    assert re.search(r"^x +2 of 5$", str(found), re.MULTILINE)
    assert '<td dir="auto">2 of 5</td>' in found.html()


def test_time_and_large_texts() -> None:
    """Blocks do not change counts; only the beginning is decoded again; the time is there."""
    line = "the quick brown fox jumps over the lazy dog " * 20
    count = (CHECKED_BYTES + BLOCK_BYTES) // len(line) + 2000
    found = cpbpe.compare({"m": tokenizer("llama", "core")}, {"x": (line for _ in range(count))}, rounds=1)
    cell = found["m", "x"]
    assert cell.tokens == count * len(tokenizer("llama", "core").encode(line))
    assert cell.checked == -(-CHECKED_BYTES // len(line))
    assert (found.models[0].megabytes_per_second or 0) > 0.01


def small_json(tmp_path: Path) -> str:
    words = {"[UNK]": 0, "a": 1, "##b": 2, "b": 3}
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece(words, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.decoder = tokenizers.decoders.WordPiece()
    made.enable_truncation(2)
    made.save(str(tmp_path / "words.json"))
    return f"tokenizers:{tmp_path / 'words.json'}"


def test_other_libraries(tmp_path: Path) -> None:
    found = cpbpe.compare(small_json(tmp_path), {"x": "ab b c"}, rounds=0)
    (cell,) = found.cells
    assert (found.models[0].library, found.models[0].size) == ("tokenizers", 4)
    assert (cell.tokens, cell.unknown_tokens, cell.example) == (4, 1, "ab b c")
    byte_level_json = tmp_path / "tokenizer.json"
    cpbpe.Tokenizer.from_spec(byte_level()).save(byte_level_json)
    given: list[str | Path] = [byte_level_json, f"tokenizers:{byte_level_json}"]
    both = cpbpe.compare(given, {"x": "日é the"}, rounds=0)
    ours, theirs = both.cells
    assert (ours.tokens, ours.byte_tokens) == (theirs.tokens, theirs.byte_tokens)


@pytest.mark.parametrize(
    ("models", "texts", "options", "message"),
    [
        ([], {"x": "a"}, {}, "there is no model"),
        (None, {}, {}, "there is no text"),
        (None, [], {}, "there is no text"),
        (None, {"x": "a"}, {"base": "y"}, "base must be one of the texts"),
        (None, {"x": "a"}, {"rounds": -1}, "rounds must be a number"),
        (None, {"x": 5}, {}, "a text is a str, bytes, a Path"),
        (None, {"x": [5]}, {}, "a text is a str or bytes, not int"),
        (None, ["missing.txt"], {}, "missing.txt"),
        ([5], {"x": "a"}, {}, "a model is a path"),
        ("missing.model", {"x": "a"}, {}, "missing.model"),
        ("tiktoken:nothing", {"x": "a"}, {}, "tiktoken cannot make this encoding"),
        ("tokenizers:missing.json", {"x": "a"}, {}, "tokenizers cannot read it"),
        ("sentencepiece:missing.model", {"x": "a"}, {}, "sentencepiece cannot read it"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_mistakes(models: Any, texts: Any, options: dict[str, Any], message: str) -> None:
    given = tokenizer("llama", "core") if models is None else models
    with pytest.raises((ValueError, TypeError, OSError), match=message):
        cpbpe.compare(given, texts, **options)


def test_models_of_other_kinds(tmp_path: Path) -> None:
    """The error says which library reads it."""
    path = tmp_path / "words.json"
    tokenizers.Tokenizer(tokenizers.models.WordPiece({"a": 0}, unk_token="a")).save(str(path))
    with pytest.raises(ValueError, match=r"; tokenizers:.*words\.json compares it with the code of that"):
        cpbpe.compare(path, {"x": "a"})


def test_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are called by their names, or paths where these are not enough; tokenizers are numbered."""
    monkeypatch.chdir(tmp_path)
    for folder in ("a", "b"):
        Path(folder).mkdir()
        Path(folder, "tokenizer.model").write_bytes(zoo.model("llama"))
        Path(folder, "x.model").write_bytes(zoo.model("llama"))
        Path(folder, "text.txt").write_text("hello\nworld")
    Path("en.txt").write_text("hello")
    tok = tokenizer("llama", "core")
    given: list[str | cpbpe.Tokenizer] = [
        "a/tokenizer.model",
        "b/tokenizer.model",
        "a/x.model",
        "b/x.model",
        tok,
        tok,
    ]
    found = cpbpe.compare(given, ["a/text.txt", "b/text.txt", "en.txt"], rounds=0, probe=False)
    assert [model.name for model in found.models] == [
        "a/tokenizer.model",
        "b/tokenizer.model",
        "a/x.model",
        "b/x.model",
        "model",
        "model (2)",
    ]
    assert [text.name for text in found.texts] == ["a/text.txt", "b/text.txt", "en"]
    assert found.text("a/text.txt").documents == 2
    assert (found.base, found.probes) == (None, ())


def test_files_that_are_left_out(models: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("a text")
    (folder / "b.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    found = cpbpe.compare(models["file"], {"all": folder, "b": "b"}, rounds=0, probe=False)
    ((file, why),) = found.text("all").left_out.items()
    assert Path(file).name == "b.png"
    assert why
    assert found.text("b").left_out == {}
    assert found.text("all").documents == 1
    assert json.loads(found.to_json())["texts"][0]["left_out"] == {file: why}


def test_forms_of_the_result(models: dict[str, Any]) -> None:
    nasty = "<script>alert(1)</script>\u202e\"'&"
    found = cpbpe.compare({nasty: models["file"], "b": models["bytes"]}, {nasty: nasty, "en": "a"}, rounds=1)
    assert json.loads(found.to_json()) == found.to_dict()
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [row["tokens"] for row in rows[:4]] == [str(cell.tokens) for cell in found.cells]
    assert len(rows) == len(found.cells) + len(found.probes)
    speeds = {model.name: str(model.megabytes_per_second) for model in found.models}
    assert [row["megabytes_per_second"] for row in rows[:4]] == [speeds[cell.model] for cell in found.cells]
    page = WholePage(found.html())
    assert page.title == f"What texts cost with {shown(nasty)} and b"
    assert "<script>alert(1)</script>‹U+202E›" in page.text
    assert found._repr_html_() in found.html()
    text = str(found)
    assert "\u202e" not in text
    assert max(map(len, text.splitlines())) <= 100
    with pytest.raises(KeyError):
        found["b", "nothing"]
    with pytest.raises(KeyError):
        found.text("nothing")


def test_findings_and_marks(models: dict[str, Any]) -> None:
    """What was found comes first; the best and the worst are marked, with colours and without."""
    texts = {"en": ["the cat sat", "on the mat"], "ja": ["日本語です。"], "th": "สวัสดีครับ"}
    given = {"long": models["file"], "bytes": models["bytes"]}
    found = cpbpe.compare(given, texts, rounds=0, probe=False)
    tokens = {name: sum(found[name, text].tokens for text in texts) for name in given}
    (fewest, best), (most, worst) = sorted((count, name) for name, count in tokens.items())
    lines = found.lines()
    sentence = f"  - fewest tokens: {best}, {fewest:,} for all texts; most: {worst}, {most:,}, "
    assert (lines[0], lines[1].startswith(sentence)) == ("What texts cost with long and bytes", True)
    row = next(line for line in lines if line.startswith("en "))
    one, other = (found[name, "en"].tokens for name in given)
    first, second = ("▲", "▽") if one < other else ("▽", "▲")
    assert re.fullmatch(rf"en +{one} {first} +{other} {second}", row)
    coloured = found.lines(colours=True)
    assert [SGR.sub("", line) for line in coloured] == lines
    assert any(f"\x1b[32m{min(one, other)} ▲\x1b[0m" in line for line in coloured)
    marked = WholePage(found.html()).marked
    assert ("best", f"{min(one, other)} ▲") in marked
    assert ("worst", f"{max(one, other)} ▽") in marked
    assert "▲" not in str(cpbpe.compare({"m": models["file"]}, texts, rounds=0))
    assert without_colours("\n".join(coloured)) == "\n".join(lines)


def test_prices_need_a_base(models: dict[str, Any]) -> None:
    """Texts that may say different things are not compared, whatever they are called."""
    texts = {"en": "the cat sat", "de": "die Katze sitzt auf der Matte"}
    found = cpbpe.compare(models["file"], texts, rounds=0, probe=False)
    assert (found.base, found.price("own.model", "de")) == (None, None)
    assert [row["price"] for row in found.rows()] == [None, None]
    assert "×" not in str(found)
    priced = cpbpe.compare(models["file"], texts, base="en", rounds=0, probe=False)
    assert "most expensive: de, beside en " in str(priced)
    assert f"{priced.price('own.model', 'de'):.2f} ×" in str(priced)


UNSPACED = ["自由と平等", "人人生而自由", "มนุษย์ทั้งหลาย", "ມະນຸດທຸກຄົນ", "មនុស្សទាំងអស់", "လူတိုင်းသည်", "ABC 日本"]
SPACED = [
    "free and equal",
    "모든 인간은 자유",
    "mọi người sinh ra",
    "सभी मनुष्य",
    "все люди",
    "a 日 in a long text",
    "12",
    "",
]


@pytest.mark.parametrize("text", [*UNSPACED, *SPACED])
def test_words_need_spaces(text: str, models: dict[str, Any]) -> None:
    assert spaced([text]) is (text in SPACED)
    found = cpbpe.compare(models["file"], {"x": text}, rounds=0, probe=False)
    (row,) = found.rows()
    if text in UNSPACED:
        assert row["tokens_per_word"] is None
        assert re.search(r"A – stands for languages without.*\n +own.model\nx +–$", str(found), re.MULTILINE)
    elif text:
        assert row["tokens_per_word"] == row["tokens"] / len(text.split())
        assert "A – stands for" not in str(found)


def test_every_format_has_the_data() -> None:
    made = formats()
    assert json.loads(made["JSON"]) == json.loads(made["JSON, indented"]) == list(RECORDS)
    assert [json.loads(line) for line in made["JSON lines"].splitlines()] == list(RECORDS)
    for name, separator in (("CSV", ","), ("TSV", "\t")):
        rows = list(csv.reader(io.StringIO(made[name]), delimiter=separator))
        assert rows[0] == list(FIELDS)
        assert [row[5] for row in rows[1:]] == [record["note"] for record in RECORDS]
    for name in ("YAML", "XML", "Markdown"):
        for record in RECORDS:
            assert all(str(record[field]) in made[name] for field in ("id", "name", "city", "amount", "note"))


def test_indentation_and_digits() -> None:
    found = {(probe.group, probe.name): probe.texts for probe in probes()}
    four, none = found["indentation", "4 spaces"][0], found["indentation", "none"][0]
    compile(four, "four", "exec")
    compile(found["indentation", "tabs"][0], "tabs", "exec")
    assert "\n".join(line.strip() for line in four.splitlines()) + "\n" == none
    assert {len(number) for number in found["digits", "7"]} == {7}
