"""Text of a corpus in other encodings than UTF-8, and bytes that are not text."""

import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from cpbpe import TrainingError, WordCounts, train
from tests.train.test_corpus import sentences
from tests.train.test_corpus_files import LINES, in_new_folder, write

__all__ = ["in_new_folder"]  # a fixture, which every test uses


def test_latin_1_names_the_file_the_line_and_the_remedy(engine: str) -> None:
    write("good.txt", "été\n" * 5)
    write("latin.txt", b"plain\n" * 3 + "l'\xe9t\xe9\n".encode("latin-1") * 4 + b"plain\n")
    expected = (
        r"^4 lines of latin.txt are not valid UTF-8, the first at latin.txt:4 \(b\"l'\\xe9t\\xe9\"\); "
        r".*U\+FFFD; if the file is in another encoding, such as Latin-1, .*iconv .* encoding='latin-1'"
    )
    for options in ({}, {"input_sentence_size": 101}, {"pretokenizer": list}, {"threads": 2}):
        with pytest.warns(UserWarning, match=expected):
            result = train(["good.txt", "latin.txt"], vocab_size=280, hard_vocab_limit=False, **options)
        assert result.report.reading.not_utf8 == 4
        assert len(result.report.warnings) == 1
    with pytest.warns(UserWarning, match=expected):
        counts = WordCounts.build("latin.txt")
    counts.save("saved")
    assert WordCounts.load("saved").reading == counts.reading
    assert counts.merge(counts).reading.warnings == counts.reading.warnings
    with pytest.raises(
        TrainingError, match=r"to accept a smaller one\. \(4 lines of latin\.txt are not valid UTF-8"
    ):
        train("latin.txt")
    # The remedy works.
    with open("latin.txt", encoding="latin-1") as file:
        assert train(file, vocab_size=270).report.warnings == ()


def test_texts_that_are_not_utf8(engine: str) -> None:
    with pytest.warns(
        UserWarning, match=r"^2 texts are not valid UTF-8, the first at item 2 .*text.decode\("
    ):
        train([b"good", b"caf\xe9", b"\xff"], vocab_size=275, hard_vocab_limit=False)
    # A character that was lost before it came here is nobody's fault here.
    report = train(["lost: \ufffd"], vocab_size=275, hard_vocab_limit=False).report
    assert ["U+FFFD 1 time:" in warning for warning in report.warnings] == [True]


def test_a_file_with_the_name_of_something_else(engine: str) -> None:
    write("sample", b"good\nbad \xff x\n" * 9)
    for size in (0, 1000):
        with pytest.warns(UserWarning, match=r"^9 lines of sample are not .*, the first at sample:2 \("):
            report = train(
                ["sample"], vocab_size=270, input_sentence_size=size, hard_vocab_limit=False
            ).report
        assert len(report.warnings) == 1


def test_only_lines_that_are_used_are_warned_of(engine: str) -> None:
    """Neither those that are too long nor those after the end of a sample are trained on."""
    write("a.txt", b"good line here\n" * 200 + b"\xff" * 101 + b"\nbad \xff line" * 5)
    for size in (0, 3000):
        with pytest.warns(UserWarning, match=r"^5 lines of a.txt are not .*, the first at a.txt:202 \("):
            counts = WordCounts.build(["a.txt"], max_sentence_length=100, input_sentence_size=size)
        assert counts.reading.not_utf8 == 5
    first = WordCounts.build(["a.txt"], input_sentence_size=101, shuffle_input_sentence=False)
    assert first.reading.warnings == ()


def test_many_files_that_are_not_utf8() -> None:
    for number in range(8):
        write(f"{number}.txt", b"caf\xe9\n")
    with pytest.warns(UserWarning, match="not valid UTF-8") as warned:
        train("*.txt", vocab_size=270, hard_vocab_limit=False)
    assert len(warned) == 6
    assert str(warned[-1].message) == "3 more files hold text that is not valid UTF-8"


def test_a_byte_order_mark_is_kept_and_warned_of(engine: str) -> None:
    for name in ("a.txt", "a.tsv", "a.jsonl"):
        write(name, b"\xef\xbb\xbf" + {"a.txt": b"one\n", "a.tsv": b"one\t2\n", "a.jsonl": LINES}[name])
    for name in ("a.txt", "a.tsv"):
        with pytest.warns(
            UserWarning, match=rf"^{name}: begins with a byte order mark .*encoding='utf-8-sig'"
        ):
            counts = WordCounts.build(name)
        assert "\ufeff" in counts.characters()
    assert "\ufeff" not in WordCounts.build("a.jsonl").characters()  # in JSON it is not part of the text
    with open("a.txt", encoding="utf-8-sig") as file:
        assert "\ufeff" not in WordCounts.build(file).characters()


HALF = "half: \ud83d"


@pytest.mark.parametrize(
    ("source", "where"),
    [
        (lambda: [HALF], "item 1"),
        (lambda: {"ok": 1, HALF: 2}, "item 2"),
        (
            lambda: write("a.jsonl", LINES + json.dumps({"text": HALF}).encode()),
            "a.jsonl:3: the field 'text'",
        ),
        (lambda: io.StringIO("one\n" + HALF), "file: the text after line 0"),
    ],
)
def test_half_a_surrogate_pair_is_refused_wherever_it_is(source: Callable[[], Any], where: str) -> None:
    with pytest.raises(
        TrainingError, match=rf"^{where} is not valid Unicode: .*; correct it, or give the texts as"
    ):
        sentences(source())


def test_an_open_file_in_another_encoding() -> None:
    write("latin.txt", b"one\ncaf\xe9\n")
    with (
        open("latin.txt", encoding="utf-8") as file,
        pytest.raises(TrainingError, match=r"latin.txt: is not utf-8 .*; open it with another encoding="),
    ):
        sentences(file)
