"""A cpbpe-pack.json that somebody has changed: an ordinary error says what is wrong with it, and where."""

import copy
import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import cpbpe
from cpbpe.corpus.find import MANIFEST
from cpbpe.packing import work
from tests.support import budget, zoo
from tests.support.corpus import lines

TOK = cpbpe.Tokenizer.from_bytes(zoo.model("llama"))
TEXTS = lines(120)
WRONG = [None, True, -1, 7, 1.5, 10**30, "x", [], {}, ["x"], {"x": 1}]


class _Killed(BaseException):
    """Like a kill: nothing may handle it."""


@pytest.fixture
def complete(tmp_path: Path) -> Path:
    cpbpe.pack(TOK, TEXTS, tmp_path / "out", shard_size=2000)
    return tmp_path / "out"


def changes(value: Any, where: str = "") -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Every place in a value from JSON, and what removes it there, or puts a wrong value there."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        place = f"{where}[{key}]" if isinstance(value, list) else f"{where}.{key}"
        yield place, lambda holder, key=key: holder.pop(key)  # type: ignore[misc]
        for wrong in WRONG:
            yield place, lambda holder, key=key, wrong=wrong: holder.__setitem__(key, wrong)  # type: ignore[misc]
        for name, change in changes(inner, place):
            yield name, lambda holder, key=key, change=change: change(holder[key])  # type: ignore[misc]


def survives(folder: Path, use: Callable[[Path], object], tmp_path: Path, many: int) -> None:
    """Change a manifest in many ways: using it succeeds, or it is an ordinary error."""
    content = json.loads((folder / MANIFEST).read_text())
    found = list(changes(content))
    for number, (where, change) in enumerate(random.Random(1).sample(found, min(many, len(found)))):
        changed = copy.deepcopy(content)
        change(changed)
        again = tmp_path / f"copy{number}"
        shutil.copytree(folder, again)
        (again / MANIFEST).write_text(json.dumps(changed))
        error = None
        try:
            use(again)
        except Exception as raised:
            error = raised
        is_named = isinstance(error, (ValueError, OSError)) and str(again) in str(error)
        assert error is None or is_named or isinstance(error, cpbpe.CorpusError), f"{where}: {error!r}"
        shutil.rmtree(again)


def test_it_is_read(complete: Path, tmp_path: Path) -> None:
    def use(folder: Path) -> None:
        packed = cpbpe.PackedTokens(folder)
        packed.check()
        assert sum(map(len, packed)) == packed.tokens
        cpbpe.pack(TOK, TEXTS, folder, shard_size=2000)

    survives(complete, use, tmp_path, budget.examples(300))


@pytest.mark.parametrize("size", [None, "7", 7.5])
def test_the_size_of_a_source(size: object, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("one\n")
    cpbpe.pack(TOK, tmp_path / "texts.txt", tmp_path / "out")
    content = json.loads((tmp_path / "out" / MANIFEST).read_text())
    del content["sources"][0]["size"]
    content["sources"][0] |= {} if size is None else {"size": size}
    (tmp_path / "out" / MANIFEST).write_text(json.dumps(content))
    with pytest.raises(cpbpe.CorpusError, match=r"texts\.txt' was changed in the meantime"):
        cpbpe.pack(TOK, tmp_path / "texts.txt", tmp_path / "out")


@pytest.mark.parametrize("options", [{"to": "mds"}, {"shuffle_seed": 1, "validation": 0.3}], ids=str)
def test_a_run_goes_on(options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "SECONDS_BETWEEN_STATES", 0.0)
    monkeypatch.setattr("cpbpe.packing.read._ITEMS", 10)
    monkeypatch.setattr("cpbpe.packing.read.BATCH_BYTES", 1)
    monkeypatch.setattr("cpbpe.packing.shuffle._USUAL_BITS", 2)
    options = {"shard_size": 300, **options}

    def finish_two(writer: work.Writer, split: Any) -> None:
        if len(writer._job.manifest.shards) == 2:
            raise _Killed
        finish(writer, split)

    finish = work.Writer._finish_shard
    with monkeypatch.context() as patched:
        patched.setattr(work.Writer, "_finish_shard", finish_two)
        with pytest.raises(_Killed):
            cpbpe.pack(TOK, TEXTS, tmp_path / "out", **options)
    assert json.loads((tmp_path / "out" / MANIFEST).read_text())["state"]["version"] == 2
    survives(
        tmp_path / "out",
        lambda folder: cpbpe.pack(TOK, TEXTS, folder, **options),
        tmp_path,
        budget.examples(100),
    )


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda made: made["shards"][0].pop("tokens"), r"shards\[0\]\.tokens is missing"),
        (lambda made: made.pop("sources"), "sources is missing"),
        (lambda made: made.update(shards={}), r"shards must be a list, and is \{\}"),
        (lambda made: made.update(shard=1), "shard is nothing that a manifest has"),
        (
            lambda made: made["shards"][1]["files"][0].update(size="9"),
            r'shards\[1\]\.files\[0\]\.size must be an integer from 0 to 2\*\*53, and is "9"',
        ),
        (
            lambda made: made["options"].update(dtype="float64"),
            r'options\.dtype must be int32 or uint16 or uint32, and is "float64"',
        ),
        (
            lambda made: made["shards"][0].update(sequence=[1]),
            r"shards\[0\]\.sequence must have 2 items, and has 1",
        ),
        (
            lambda made: made["shards"][0]["files"].pop(),
            r"shard 0 of train cannot have .* in files of",
        ),
        (
            lambda made: made["shards"][0].update(tokens=1),
            "shard 0 of train cannot have .* with 1 token in",
        ),
    ],
)
def test_what_is_wrong_is_said(change: Callable[[Any], object], problem: str, complete: Path) -> None:
    path = complete / MANIFEST
    made = json.loads(path.read_text())
    change(made)
    path.write_text(json.dumps(made))
    with pytest.raises(
        cpbpe.CorpusError, match=rf"cpbpe-pack\.json: is damaged: {problem}.*; pack the texts"
    ):
        cpbpe.PackedTokens(complete)


def test_a_state_that_is_not_one_is_not_used(tmp_path: Path) -> None:
    """The file with the latest progress may be lost in a crash; the run goes on without it."""
    out = tmp_path / "out"
    cpbpe.pack(TOK, TEXTS, out)
    made = json.loads((out / MANIFEST).read_text())
    (out / MANIFEST).write_text(json.dumps({**made, "shards": [], "summary": None}))
    expected = (out / "train.npy").read_bytes()
    for content in (
        "{}",
        "[]",
        "null",
        '{"shards": 0, "state": {"version": 2}}',
        '{"shards": "0"',
        "[" * 9999,
    ):
        (out / ".cpbpe-pack").mkdir()
        (out / ".cpbpe-pack" / "state.json").write_text(content)
        cpbpe.pack(TOK, TEXTS, out)
        assert (out / "train.npy").read_bytes() == expected
        (out / MANIFEST).write_text(json.dumps({**made, "shards": [], "summary": None}))
