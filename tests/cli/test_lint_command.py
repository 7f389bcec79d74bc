"""`cpbpe lint` as a user runs it."""

import json
from pathlib import Path

import numpy as np
import pytest

import cpbpe
from cpbpe.cli import main
from cpbpe.lint.usage import read_embeddings
from tests.lint.test_findings import base, changed
from tests.support import zoo
from tests.support.drawings import WholePage


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cpbpe.Tokenizer.from_spec(base()).save("good.model")
    cpbpe.Tokenizer.from_spec(changed("in", score=float("nan"))).save("bad.model")


def test_the_page_and_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "good.model"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("good.model\n")
    assert "note    unused-bytes" in page
    assert main(["lint", "good.model", "--fail-on", "note"]) == 1
    assert main(["lint", "good.model", "bad.model"]) == 1
    assert "error   odd-scores" in capsys.readouterr().out
    assert main(["lint", "bad.model", "--fail-on", "never"]) == 0
    assert main(["lint", "bad.model", "--ignore", "odd-scores"]) == 0
    assert max(map(len, page.splitlines())) <= 100


def test_json_and_a_file_that_is_no_model(capsys: pytest.CaptureFixture[str]) -> None:
    """One byte piece is missing: the file cannot be loaded, and the others are checked all the same."""
    proto = zoo.parse(Path("good.model").read_bytes())
    del proto.pieces[50]
    Path("missing.model").write_bytes(proto.SerializeToString())
    assert main(["lint", "missing.model", "good.model", "--json", "--out", "new/report.json"]) == 1
    missing, good = json.loads(Path("new/report.json").read_text(encoding="utf-8"))
    assert [finding["code"] for finding in missing["findings"]] == ["not-loaded"]
    assert "1 of the 256 BYTE pieces are missing" in missing["findings"][0]["message"]
    assert good == {"model": "good.model", **cpbpe.load("good.model").lint().to_dict()}
    assert capsys.readouterr().out == "written       new/report.json\n"
    assert main(["lint", "missing.model", "good.model", "--json", "--ignore", "not-loaded"]) == 0
    out, err = capsys.readouterr()
    assert [report["model"] for report in json.loads(out)] == ["good.model"]
    assert "cpbpe: missing.model: " in err
    assert err.endswith("; the model was left out\n")


def test_a_score_that_json_has_no_number_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "good.model", "bad.model", "--json", "--no-search"]) == 0
    (change,) = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)["pieces"]
    assert change["new"]["score"] == "nan"


def test_a_model_that_needs_a_pattern_beside_one_that_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    files = ["ranks.tiktoken", "good.model"]
    cpbpe.train(["some words"] * 9, preset="gpt4", vocab_size=262).tokenizer.save(files[0])
    assert main(["lint", *files, "--pattern", "cl100k", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2
    assert main(["diff", *files, "--pattern", "cl100k", "--no-search", "--quiet"]) == 0
    assert main(["view", *files, "--pattern", "cl100k", "--out", "page.html"]) == 0


def test_forms_by_the_name_of_the_file() -> None:
    for ending in ("html", "json", "txt", "txt"):  # (the last one is replaced)
        assert main(["lint", "good.model", "bad.model", "--out", f"report.{ending}"]) == 1
    page = WholePage(Path("report.html").read_text(encoding="utf-8"))
    assert page.title == "good.model"
    assert "bad.model" in page.text
    assert {("note", "note"), ("error", "error")} <= set(page.marked)
    reports = json.loads(Path("report.json").read_text(encoding="utf-8"))
    assert [report["model"] for report in reports] == ["good.model", "bad.model"]
    assert Path("report.txt").read_text(encoding="utf-8").startswith("good.model\n")


def safetensors(path: str, dtype: str, rows: "np.ndarray[tuple[int, ...], np.dtype[np.uint16]]") -> None:
    head = {"__metadata__": {"format": "pt"}, "model.embed_tokens.weight": {"dtype": dtype}}
    head["model.embed_tokens.weight"] |= {"shape": list(rows.shape), "data_offsets": [0, rows.nbytes]}  # type: ignore[dict-item]
    data = json.dumps(head).encode()
    Path(path).write_bytes(len(data).to_bytes(8, "little") + data + rows.tobytes())


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_embedding_of_numpy(order: str) -> None:
    rows = np.random.default_rng(1).normal(size=(500, 8)).astype("float32", order=order)  # type: ignore[call-overload]
    np.save("rows.npy", rows)
    read = read_embeddings("rows.npy")
    assert read.shape == (500, 8)
    assert np.array_equal(read[3:9], rows[3:9])


def test_an_embedding_that_is_cut_off_while_it_is_read() -> None:
    """It is not mapped into memory: that would end the process."""
    rows = np.zeros((500, 8), np.float32)
    np.save("rows.npy", rows)
    safetensors("rows.safetensors", "F32", rows)  # type: ignore[arg-type]
    for path in (Path("rows.npy"), Path("rows.safetensors")):
        read = read_embeddings(path)
        data = path.read_bytes()
        path.write_bytes(data[:1000])
        with pytest.raises(ValueError, match=rf"{path.name}: was changed or cut off while it was read"):
            read[100:200]


def test_a_corpus_and_an_embedding(capsys: pytest.CaptureFixture[str]) -> None:
    Path("texts.jsonl").write_text('{"text": "the in the"}\n{"text": "on"}\n', encoding="utf-8")
    rows = np.random.default_rng(1).normal(size=(500, 8)).astype(np.float32)
    safetensors("rows.safetensors", "BF16", (rows.view(np.uint32) >> 16).astype(np.uint16))
    assert np.allclose(read_embeddings("rows.safetensors")[:9], rows[:9], rtol=0.01)
    assert np.allclose(
        read_embeddings("rows.safetensors")[np.array([9, 3, 4, 5])], rows[[9, 3, 4, 5]], rtol=0.01
    )
    more = ["--corpus", "texts.jsonl", "--embeddings", "rows.safetensors", "--json"]
    assert main(["lint", "good.model", *more]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    codes = {finding["code"] for finding in report["findings"]}
    assert {"never-used", "hardly-used", "undertrained"} <= codes


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ('{"a": {"dtype": {}, "shape": [1, 1], "data_offsets": [0, 4]}}', "the head .* is damaged"),
        ('{"a": {"dtype": "F32", "shape": [1, {}], "data_offsets": [0, 4]}}', "the head .* is damaged"),
        ('{"a": {"dtype": "F32", "shape": [1, -1], "data_offsets": [0, 4]}}', "the head .* is damaged"),
        ('{"a": {"dtype": "F32", "shape": [1, 1], "data_offsets": ["0", "4"]}}', "the head .* is damaged"),
        ('{"a": {"dtype": "F32", "shape": [1, 1], "data_offsets": [0]}}', "the head .* is damaged"),
        ("[" * 100_000, "the head .* is damaged"),
        ("[1]", "the head .* is damaged"),
        ("{'descr': '<f4', 'shape': (1, 1)", "numpy cannot read it"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (9, 9)}", "it has no 324 bytes .* is cut off"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 9)}", "it has no -36 bytes .* is cut off"),
    ],
    ids=lambda value: value[:60],
)
def test_damaged_embeddings(head: str, message: str) -> None:
    begin = len(head).to_bytes(8, "little")
    if "descr" in head:
        begin = b"\x93NUMPY\1\0" + begin[:2]
    Path("rows").write_bytes(begin + head.encode() + bytes(4))
    with pytest.raises(ValueError, match=f"^rows: {message}"):
        read_embeddings("rows")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "there is no model; name one: cpbpe lint tokenizer.model"),
        (["good.model", "--ignore", "no-pads"], "there is no code 'no-pads'; did you mean no-pad?"),
        (["good.model", "--tensor", "x"], "--tensor names a matrix in the file of --embeddings"),
        (["good.model", "bad.model", "--embeddings", "e.npy"], "--embeddings is the matrix of one model"),
        (["good.model", "--strict"], "there is no option --strict; it is --fail-on warning"),
        (["good.model", "--embeddings", "good.model"], "neither a .npy file nor a .safetensors file"),
        (["good.model", "--embeddings", "cut.safetensors"], "the file is cut off"),
        (["good.model", "--embeddings", "r.safetensors", "--tensor", "x"], "there is no matrix 'x'"),
        (["good.model", "--embeddings", "e.npy", "--tensor", "x"], "one matrix, which has no name"),
        (["good.model", "--embeddings", "e.npy", "--out", "e.npy"], "would be replaced"),
        (["none.model"], "no such file or folder"),
        ([""], "no such file or folder"),
    ],
)
def test_mistakes(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    safetensors("r.safetensors", "BF16", np.zeros((4, 4), np.uint16))
    np.save("e.npy", np.zeros((4, 4)))
    Path("cut.safetensors").write_bytes(Path("r.safetensors").read_bytes()[:-1])
    assert main(["lint", *arguments]) == 2  # (1 would mean that something was found)
    assert message in capsys.readouterr().err
