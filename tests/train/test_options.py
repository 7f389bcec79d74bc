"""What the options of training mean, and how users find it out: help(), the documentation, wrong names."""

import inspect
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

import cpbpe
from cpbpe import PRESETS, TrainingError, TrainOptions, WordCounts, train
from cpbpe.spelling import Spelling, counted, given, named, shown, spelled, spelled_as
from cpbpe.training.options import GROUPS, MEANINGS, NAMES
from cpbpe.training.options_base import default_of, sentence
from tests.support.corpus import lines

ROOT = Path(__file__).parents[2]
TEXTS = lines(300)

# --- Meanings -------------------------------------------------------------------------------------


def test_every_option_has_a_meaning() -> None:
    assert tuple(MEANINGS) == NAMES, "the table has the options of TrainOptions, in their order"
    for name, (meaning, change) in MEANINGS.items():
        assert re.fullmatch(r"[a-z].*[^.]", meaning), name
        assert re.fullmatch(r"[A-Z].*\.", change), name
        assert set(re.findall(r"`(\w+)`", meaning + change)) <= set(NAMES), name


def test_help_shows_them() -> None:
    page = re.sub(r"\s+", " ", inspect.getdoc(TrainOptions) or "")
    for name, (meaning, change) in MEANINGS.items():
        default = default_of(name, PRESETS)
        assert f"{name} (default: {default}) {spelled(sentence(meaning))} {spelled(change)}" in page
    signature = inspect.signature(TrainOptions)
    assert tuple(signature.parameters) == NAMES
    assert "help(cpbpe.TrainOptions)" in (train.__doc__ or "")


def page_of_options() -> str:
    """The tables of docs/training.md, as they should be."""
    lines: list[str] = []
    for title, group in GROUPS.items():
        lines += [f"**{sentence(title)[:-1]}**", "", "| option | default | meaning | when to change it |"]
        lines += ["| --- | --- | --- | --- |"]
        for name, (meaning, change) in group.items():
            default = re.sub(r"(?<=: )[^;]+|^[^;]+", lambda value: f"`{value[0]}`", default_of(name, PRESETS))
            cells = [f"`{name}`", default, sentence(meaning), change]
            lines.append(f"| {' | '.join(cells)} |".replace("<sep>", "`<sep>`"))
        lines.append("")
    return "\n".join(lines)


def test_the_documentation_has_them() -> None:
    page = (ROOT / "docs/training.md").read_text()
    assert page_of_options() in page, "put this into docs/training.md:\n" + page_of_options()


# --- Wrong names ----------------------------------------------------------------------------------

WRONG = {
    "special_tokens": "give control_symbols for pieces that only programs insert, or user_defined_symbols",
    "special_token": "give control_symbols",
    "n_vocab": "give vocab_size, which counts all pieces",
    "size": "give vocab_size",
    "vocabsize": "did you mean vocab_size?",
    "min_frequency": "training goes on until there are vocab_size pieces",
    "control_symbols_file": "read the file and give its lines as control_symbols",
    "unk_token": "it is called unk_piece here",
    "coverage": "it is called character_coverage here",
    "symbols": "did you mean control_symbols or user_defined_symbols?",
    "n_jobs": "it is called threads here",
    "model_writer": "the result of train() has model_bytes",
    "files": "the corpus comes first, without a name",
    "verbose": "give progress=True or progress=False",
    "zzz": "help(cpbpe.TrainOptions) shows all of them",
}
CALLS: dict[str, Callable[..., object]] = {
    "train": lambda **options: train(TEXTS, **options),
    "TrainOptions": TrainOptions,
    "replace": TrainOptions().replace,
    "build": lambda **options: WordCounts.build(TEXTS, **options),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", WRONG)
def test_wrong_names_are_answered_with_the_right_one(call: str, name: str) -> None:
    with pytest.raises((TypeError, TrainingError)) as error:
        CALLS[call](**{name: 5})
    assert WRONG[name] in str(error.value)
    assert name in str(error.value)


def test_arguments_of_train_are_no_options() -> None:
    with pytest.raises(TypeError, match=r"'threads' is an argument of train\(\)"):
        TrainOptions(threads=2)  # type: ignore[call-arg]


# --- Wrong values of arguments that are not options -----------------------------------------------

ARGUMENTS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"memory_limit": "lots"}, TrainingError, "memory_limit must be a size such as .* cannot be 'lots'"),
    ({"memory_limit": "10kB"}, TrainingError, "at least 1 MiB"),
    ({"memory_limit": 5}, TrainingError, "at least 1 MiB; it cannot be 5"),
    ({"memory_limit": -1}, TrainingError, "it cannot be -1"),
    ({"memory_limit": [5]}, TypeError, r"it cannot be \[5\]"),
    ({"threads": 0}, ValueError, "threads must be at least 1, not 0"),
    ({"threads": 1.5}, TypeError, "threads must be an integer, not float"),
    ({"field": None}, TypeError, "field must be a name"),
    ({"column": 1.5}, TypeError, "column must be a name"),
    ({"column": True}, TypeError, "column must be a name"),
    ({"progress": "yes"}, TypeError, "progress must be True, False, None or a function, not 'yes'"),
    ({"preset": None}, TypeError, "preset must be a name, TrainOptions or ByteTrainOptions, not None"),
    ({"preset": ["llama2"]}, TypeError, "preset must be a name, TrainOptions or ByteTrainOptions"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), ARGUMENTS)
@pytest.mark.parametrize("call", [train, WordCounts.build])
def test_bad_arguments(
    call: Callable[..., object], arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call(iter([]), **arguments)


@pytest.mark.parametrize("limit", ["500MB", "500 mb", "0.5 GiB", "2m", 1 << 20, 4e9])
def test_memory_limits_as_people_write_them(limit: Any) -> None:
    assert len(WordCounts.build(["a b"], memory_limit=limit)) == 2
    assert train(TEXTS, vocab_size=900, memory_limit=limit).report.vocab_size == 900


# --- What is shown --------------------------------------------------------------------------------


def test_everything_is_shown_in_a_few_words(tmp_path: Path) -> None:
    rules = tmp_path / "rules.tsv"
    rules.write_text("".join(f"{0x4E00 + n:X}\t{0x5E00 + n:X}\n" for n in range(3000)))
    counts = WordCounts.build(TEXTS, normalization_rule_tsv=rules)
    result = train(counts, vocab_size=1500, normalization_rule_tsv=rules)
    report = result.report
    for value in (result, report, report.reading, report.curve, result.options, counts, counts.words):
        assert len(repr(value)) < 300, repr(value)[:500]
    for large in (counts.setup, result.spec, result.spec.settings, result.tokenizer.settings):
        assert len(repr(large)) < 4000, repr(large)[:500]
    assert repr(report).startswith("<cpbpe.Report: 1,500 pieces, ")
    assert len(str(report).splitlines()) > 5
    assert eval(repr(result.options)) == result.options
    assert repr(TrainOptions()) == "TrainOptions()"


def test_one_is_not_many() -> None:
    page = str(train(["a"], vocab_size=261).report)
    assert page.startswith("read          1 text, 1 byte\n"), page
    assert re.search(r"(?<![.,])\b1 \w+s\b", page) is None, page
    assert "3 special (<unk>, <s>, </s>), 256 bytes, 0 merges, 2 characters" in page
    assert repr(WordCounts.build(["a"])) == "<cpbpe.WordCounts: 1 distinct word from 1 text>"


def test_lines_are_lines_and_texts_are_texts(tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text("one two\n\nthree\n")
    options: dict[str, Any] = {"vocab_size": 290, "hard_vocab_limit": False}
    assert str(train(path, **options).report).startswith(
        "read          3 lines, 12 bytes from 1 file\nleft out      1 empty line\n"
    )
    with path.open("rb") as file:
        assert "3 lines, 12 bytes from 1 file" in str(train(file, **options).report)
    assert "read          3 texts, 12 bytes\n" in str(train(["one two", "", "three"], **options).report)


def test_spelling() -> None:
    class Loud(Spelling):
        def name(self, option: str) -> str:
            return option.upper()

    assert (named("field"), given("field", ...), given("n", 5), shown(True)) == (
        "field",
        "field=...",
        "n=5",
        "True",
    )
    with spelled_as(Loud()):
        assert (named("field"), spelled("a `field` and `<s>`")) == ("FIELD", "a FIELD and `<s>`")
    assert named("field") == "field"
    assert counted(1, "line") == "1 line"


# --- Recorded paths -------------------------------------------------------------------------------

RECORDED: list[tuple[list[str], dict[str, Any]]] = [
    (["a.txt"], {}),
    (["a.txt", "b.txt"], {"preset": "sentencepiece", "normalization_rule_name": "identity"}),
    (["a.tsv"], {"byte_fallback": False, "character_coverage": 0.99}),
    (["a,b.txt"], {"hard_vocab_limit": False, "vocab_size": 20_000}),
]


@pytest.mark.parametrize(("paths", "options"), RECORDED, ids=str)
def test_recorded_paths_are_those_of_sentencepiece(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paths: list[str], options: dict[str, Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "b.txt", "a,b.txt"):
        Path(name).write_text("\n".join(TEXTS), newline="")
    counts = (text.replace("\t", " ").replace("\n", " ") for text in TEXTS)
    Path("a.tsv").write_text("\n".join(f"{text}\t3" for text in counts), newline="")
    options = {"vocab_size": 900, **options}
    result = train([Path(path) for path in paths], record_paths=True, **options)
    result.save("my")
    ours = Path("my.model").read_bytes()

    call = {"input": paths, "minloglevel": 2, **result.options.sentencepiece_options()}
    if paths == ["a.tsv"]:
        call["input_format"] = "tsv"
    sentencepiece.SentencePieceTrainer.train(model_prefix="my", **call)
    assert ours == Path("my.model").read_bytes()
    writer = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(model_writer=writer, **call)
    assert result.model_bytes == writer.getvalue()
    assert cpbpe.load("my.model").settings.trainer["input"] == paths
    assert "input" not in train([Path(path) for path in paths], **options).tokenizer.settings.trainer


def test_paths_that_cannot_be_recorded(tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text("one two")
    with pytest.raises(TrainingError, match="record_paths needs a corpus of files"):
        train(["one two"], record_paths=True)
    with path.open("rb") as file, pytest.raises(TrainingError, match="record_paths needs a corpus of files"):
        train(file, record_paths=True)
    with pytest.raises(TrainingError, match="word counts do not record the files"):
        train(WordCounts.build(path), record_paths=True)


def test_presets_are_shown() -> None:
    assert repr(PRESETS["lossless"]).startswith("TrainOptions(add_dummy_prefix=False, ")
