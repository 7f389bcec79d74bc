"""`cpbpe diff` as a user runs it."""

import json
from pathlib import Path

import pytest

from cpbpe.cli import main
from tests.support.drawings import WholePage
from tests.tools.test_diff import small


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    small({"ab": -1}).save("old.model")
    small({"ab": -1, "bc": -2, "ca": -3}).save("new.model")
    Path("texts.txt").write_text("ab\nbc\n", encoding="utf-8")


def test_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "old.model", "new.model", "texts.txt", "--limit", "1"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("what is different\n  old           old.model\n  new           new.model\n")
    assert "  stored ids    are valid: every id of the old model means the same" in page
    assert "  texts         some have other tokens; the shortest one is 'bc'" in page
    assert "2 pieces added" in page
    assert "and 1 more, which --json lists" in page
    assert "1 of 2 have other tokens (50.00%), 1 have other ids" in page


def test_forms_by_the_name_of_the_file() -> None:
    given = ["diff", "old.model", "new.model", "texts.txt", "--no-search"]
    for ending, limit in (("html", ["--limit", "1"]), ("json", []), ("txt", [])):
        assert main([*given, "--out", f"diff.{ending}", *limit]) == 0
    page = WholePage(Path("diff.html").read_text(encoding="utf-8"))
    assert page.title == "what is different"
    assert "1 of 2 have other tokens" in page.text
    assert "and 1 more, which --json lists" in page.text
    assert len(json.loads(Path("diff.json").read_text(encoding="utf-8"))["pieces"]) == 2
    assert Path("diff.txt").read_text(encoding="utf-8").startswith("what is different\n")


def test_exit_codes_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "old.model", "new.model", "--exit-code", "--quiet"]) == 1
    assert main(["diff", "old.model", "old.model", "--exit-code", "--quiet"]) == 0
    assert main(["diff", "old.model", "none.model", "--exit-code", "--quiet"]) == 2
    printed = capsys.readouterr()
    assert "none.model" in printed.err
    assert printed.out == ""
    assert main(["diff", "old.model", "new.model", "--json", "--no-search", "--out", "new/diff.json"]) == 0
    found = json.loads(Path("new/diff.json").read_text(encoding="utf-8"))
    assert [change["piece"] for change in found["pieces"]] == ["bc", "ca"]
    assert (found["text"], found["corpus"]) == (None, None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["old.model"], "two models are needed"),
        (["old.model", "new.model", "--limit", "-1"], "--limit must be 0 or more"),
        (["old.model", "none.model"], "none.model"),
        (["old.model", "new.model", "none.txt"], "none.txt"),
    ],
    ids=["one", "limit", "model", "corpus"],
)
def test_mistakes(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", *arguments]) == 2  # (1 would mean that something differs)
    assert message in capsys.readouterr().err
