"""`cpbpe.train` as a whole: sentencepiece's files, every smaller model, the report, samples, progress."""

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

import cpbpe
from cpbpe import PRESETS, Report, TrainingError, TrainOptions, WordCounts, train
from cpbpe.training.progress import Step, _Line
from tests.support import processes, tiers
from tests.support.corpus import lines
from tests.support.drawings import WholePage

TEXTS = lines(500)
ROOT = Path(__file__).parents[2]


def theirs(options: TrainOptions, texts: list[str], **more: Any) -> bytes:
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=out,
        minloglevel=2,
        **options.sentencepiece_options(),
        **more,
    )
    return out.getvalue()


OPTIONS: list[dict[str, Any]] = [
    {},
    {"character_coverage": 0.99, "split_digits": True},
    {"byte_fallback": True, "auto_character_coverage": True, "vocab_size": 900},
    {"required_chars": "ªǅ"},
    {"control_symbols": ["<sep>", "</s>"], "user_defined_symbols": ["the", "<s>"]},
    {"unk_id": 5, "bos_id": -1, "eos_id": 0, "pad_id": 2, "pad_piece": "[P]", "unk_surface": "?"},
    {"max_sentencepiece_length": 3},
    {"split_by_whitespace": False},
    {"split_by_unicode_script": False, "split_by_number": False},
    {"treat_whitespace_as_suffix": True, "allow_whitespace_only_pieces": True},
    {"pretokenization_delimiter": "e"},
    {"normalization_rule_name": "nfkc_cf", "add_dummy_prefix": False},
    {"remove_extra_whitespaces": False, "max_sentence_length": 60},
    {"input_sentence_size": 200, "shuffle_input_sentence": False},
    {"hard_vocab_limit": False, "vocab_size": 30000},
    {"vocabulary_output_piece_score": False},
]


@pytest.mark.filterwarnings("ignore:.* and was left out:UserWarning")
def test_an_edit_goes_on_as_training_would() -> None:
    """It leaves out the same lines, cuts at the same delimiter, and learns what only a literal ▁ yields."""
    texts = [*["low|er ▁ new|er"] * 9, *["all too long " * 4] * 50, *["re▅served served"] * 50]
    options: dict[str, Any] = {"preset": "sentencepiece", "max_sentence_length": 40}
    options |= {"pretokenization_delimiter": "|", "allow_whitespace_only_pieces": True}
    options["normalization_rule_name"] = "nfkc"  # (which leaves ▁ as it is)
    short, long = (train(texts, vocab_size=size, **options).tokenizer for size in (11, 18))
    edit = cpbpe.edit(short).from_corpus(texts, 7)
    assert set(edit.tokenizer.get_vocab()) == set(long.get_vocab())
    assert "▁▁" in edit.report().made
    assert edit.steps[0].notes[1:] == (
        "50 texts longer than max_sentence_length left out, as in training",
        "50 texts with the reserved character U+2585 left out, as in training",
    )
    with pytest.raises(TrainingError, match="nothing to learn from: 1 text longer than max_sentence_length"):
        cpbpe.edit(short).from_corpus(texts[9:10], 1)


@tiers.slow_reference
@pytest.mark.filterwarnings("ignore:.* and was left out:UserWarning")
@pytest.mark.parametrize("preset", ["llama2", "sentencepiece"])
@pytest.mark.parametrize("options", tiers.some(OPTIONS, OPTIONS[::4]), ids=str)
def test_same_as_sentencepiece(engine: str, preset: str, options: dict[str, Any]) -> None:
    result = train(TEXTS, preset=preset, **{"vocab_size": 800, **options})
    assert result.model_bytes == theirs(result.options, TEXTS)
    assert result.options.sentencepiece_options()["vocab_size"] == result.options.vocab_size


def test_with_functions(engine: str) -> None:
    def cut(text: str) -> list[str]:
        return [text[:3], text[3:]]

    result = train(TEXTS, vocab_size=700, pretokenizer=cut)
    assert result.model_bytes == theirs(result.options, TEXTS, pretokenizer=cut)
    other = train(TEXTS, vocab_size=700)
    assert other.model_bytes != result.model_bytes
    # An iterator, which can be read only once, holds the same chunks.
    for once in (iter, tuple, lambda chunks: map(str, chunks), lambda chunks: (chunk for chunk in chunks)):
        again = train(TEXTS, vocab_size=700, pretokenizer=lambda text, once=once: once(cut(text)))
        assert again.model_bytes == result.model_bytes


def test_numbers_of_numpy() -> None:
    integer: Any = np.int64  # (types say Python's own, which is what they become)
    coverage = np.float32(0.99)
    expected = train(dict.fromkeys(TEXTS, 2), vocab_size=700, character_coverage=float(coverage))
    counts = dict(zip(TEXTS, np.full(len(TEXTS), 2), strict=True))
    made = train(counts, vocab_size=integer(700), character_coverage=coverage)
    assert made.model_bytes == expected.model_bytes
    assert type(made.options.vocab_size) is int
    assert made.model_bytes_at(integer(690)) == expected.model_bytes_at(690)
    byte_level = train(TEXTS, preset="gpt4", vocab_size=integer(300))
    assert byte_level.model_bytes == train(TEXTS, preset="gpt4", vocab_size=300).model_bytes
    for wrong in (True, np.True_, 700.0, np.float64(700)):
        with pytest.raises(TypeError, match="vocab_size must be an integer"):
            train(TEXTS, vocab_size=wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="vocab_size must be an integer"):
            made.model_bytes_at(wrong)  # type: ignore[arg-type]


def test_files_are_what_sentencepiece_writes(engine: str, tmp_path: Path) -> None:
    for scores in (True, False):
        result = train(TEXTS, vocab_size=1200, vocabulary_output_piece_score=scores)
        assert result.save(tmp_path / "my") == (f"{tmp_path}/my.model", f"{tmp_path}/my.vocab")
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(TEXTS),
            model_prefix=str(tmp_path / "their"),
            minloglevel=2,
            **result.options.sentencepiece_options(),
        )
        assert (tmp_path / "my.vocab").read_bytes() == (tmp_path / "their.vocab").read_bytes()
    assert cpbpe.load(tmp_path / "my.model") == result.tokenizer
    assert result.save(f"{tmp_path}/my.model") == (f"{tmp_path}/my.model", f"{tmp_path}/my.vocab")
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "my.model"))
    assert theirs.encode(TEXTS) == result.tokenizer.encode_batch(TEXTS)


@tiers.slow_reference
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"preset": "sentencepiece"},
        {"preset": "lossless"},
        {"auto_character_coverage": True},
        {"hard_vocab_limit": False, "vocab_size": 20000},
    ],
    ids=str,
)
def test_every_smaller_model(engine: str, options: dict[str, Any]) -> None:
    whole = train(TEXTS, **{"vocab_size": 1000, **options})
    with pytest.raises(TrainingError, match="gives models of") as error:
        whole.model_bytes_at(0)
    least = int(str(error.value).split("gives models of ")[1].split()[0])
    most = whole.options.vocab_size
    for size in sorted({least, least + 1, 700, 701, 750, 800, 850, 900, 990, most - 1, most}):
        alone = train(TEXTS, **{**options, "vocab_size": size})
        assert whole.model_bytes_at(size) == alone.model_bytes, size
        assert whole.tokenizer_at(size) == alone.tokenizer
        if whole.report.curve is not None and size < 1000:
            place = size - whole.report.curve.first
            assert whole.report.curve.tokens[place] == alone.report.tokens


@pytest.mark.parametrize("preset", PRESETS)
def test_the_report_agrees_with_encoding(engine: str, preset: str) -> None:
    texts = [text for text in TEXTS if "▅" not in text]
    result = train(texts, vocab_size=900, preset=preset, character_coverage=0.995)
    report = result.report
    if (
        preset != "sentencepiece"
    ):  # without byte fallback, unknown characters that are neighbours are one token
        assert report.tokens == sum(map(len, result.tokenizer.encode_batch(texts)))
    normal = [result.tokenizer.normalize(text) for text in texts]
    assert report.text_bytes == sum(len(text.replace("▁", " ").encode()) for text in normal)
    assert report.text_characters == sum(map(len, normal))
    known = {result.tokenizer.id_to_piece(id) for id in range(result.tokenizer.vocab_size)}
    rare = {c for text in normal for c in text if c not in known}
    assert {character for character, _ in report.rare_characters} == rare
    for character, count in report.rare_characters:
        assert count == sum(text.count(character) for text in normal)
    assert 0 <= 1 - report.coverage < 0.005 + 1e-9
    assert report.special_pieces + report.merges + report.characters == report.vocab_size == 900
    assert report.bytes_per_token == report.text_bytes / report.tokens
    curve = report.curve
    assert curve is not None
    assert list(curve)[-1] == (900, report.tokens)
    assert all(a >= b for a, b in zip(curve.tokens, curve.tokens[1:], strict=False))
    half = curve.tokens_per_byte(curve.first + len(curve) // 2)
    found = curve.smallest(half)
    assert found is not None
    assert curve.tokens_per_byte(found) <= half < curve.tokens_per_byte(found - 1)
    assert curve.smallest(0) is None
    for size, _ in curve:  # every size is found by what it gives, however that is rounded
        assert curve.tokens_per_byte(curve.smallest(curve.tokens_per_byte(size)) or -1) == (
            curve.tokens_per_byte(size)
        )
    with pytest.raises(ValueError, match="the curve is known from"):
        curve.tokens_per_byte(901)
    knee = curve.knee
    assert knee is not None
    assert f"the knee is at {knee:,}" in report.html()
    assert f"The curve bends at {knee:,} pieces" in WholePage(report._repr_html_()).text


LECTURE: dict[str, Any] = {
    "input_format": "text",
    "model_prefix": "tok400",
    "model_type": "bpe",
    "vocab_size": 700,
    "normalization_rule_name": "identity",
    "remove_extra_whitespaces": False,
    "input_sentence_size": 200_000_000,
    "max_sentence_length": 4192,
    "seed_sentencepiece_size": 1_000_000,
    "shuffle_input_sentence": True,
    "character_coverage": 0.99995,
    "byte_fallback": True,
    "split_digits": True,
    "allow_whitespace_only_pieces": True,
    "num_threads": 2,
}


@pytest.mark.parametrize("by_name", [True, False])
def test_a_call_written_for_sentencepiece(
    by_name: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("toy.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        **{**LECTURE, "input": "toy.txt", "model_prefix": "theirs", "minloglevel": 2}
    )
    with pytest.warns(UserWarning, match="^seed_sentencepiece_size: no effect on a BPE model, as in sent"):
        result = train(input="toy.txt", **LECTURE) if by_name else train("toy.txt", **LECTURE)
    assert Path("tok400.vocab").read_bytes() == Path("theirs.vocab").read_bytes()
    assert cpbpe.load("tok400.model") == result.tokenizer
    with pytest.raises(TrainingError, match=r"^model_type: cpbpe trains BPE models only"):
        train("toy.txt", model_type="unigram")
    with pytest.raises(TypeError, match="source"):
        train("toy.txt", input="toy.txt")
    with pytest.raises(TypeError, match="num_threads and threads are two names of one argument"):
        train("toy.txt", num_threads=1, threads=2)
    with pytest.raises(FileNotFoundError, match="make it first"):  # and not after hours of work
        train("no corpus", model_prefix="no folder/my")
    with pytest.raises(TrainingError, match="is a folder"):
        train("no corpus", model_prefix="")


def test_all_or_nearly_all_is_left_out() -> None:
    with pytest.warns(UserWarning, match="^99% of the corpus is in"):
        train(["ab"] * 9 + ["x" * 100_000], vocab_size=262, preset="sentencepiece", byte_fallback=True)
    with pytest.raises(TrainingError, match="1 of 1 text was left out"):
        train(["x" * 100_000], vocab_size=262)


def test_nothing_is_lost_in_silence(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    many = ["good line"] * 20
    path.write_text("\n".join([*many, "x" * 5000, "", "bad ▅ one", "  ", "y" * 6000, *many]), newline="")
    with pytest.warns(UserWarning, match="97% of the corpus is in lines of more than 4192 bytes"):
        report = train(path, vocab_size=300, preset="sentencepiece", hard_vocab_limit=False).report
    found = report.reading.left_out
    assert {rule: out.sentences for rule, out in found.items()} == {
        "empty": 1,
        "too_long": 2,
        "reserved": 1,
        "blank": 1,
    }
    assert found["too_long"].bytes == 11000
    assert [example.where for example in found["too_long"].examples] == [f"{path}:21", f"{path}:25"]
    assert [example.where for example in found["reserved"].examples] == [f"{path}:23"]
    assert [example.where for example in found["blank"].examples] == [f"{path}:24"]
    assert found["reserved"].examples[0].text == "bad ▅ one"
    assert (report.reading.sentences, report.reading.sentences_left_out) == (45, 5)
    page = str(report)
    assert "2 lines longer than max_sentence_length, 11.0 kB" in page
    assert f"{path}:23: 'bad ▅ one'" in page
    assert "97% of the corpus is in lines of more than 4192 bytes and was left out" in page
    values = json.loads(report.to_json())
    assert values["reading"]["left_out"]["too_long"]["sentences"] == 2
    assert values["tokens"] == report.tokens
    lossless = train(path, vocab_size=300, preset="lossless", hard_vocab_limit=False).report
    assert lossless.reading.left_out == {}


def test_warnings(engine: str) -> None:
    def warnings(texts: Any, **options: Any) -> str:
        result = train(texts, vocab_size=2000, hard_vocab_limit=False, **options)
        return "\n".join(result.report.warnings)

    assert warnings(TEXTS[:20]) == ""
    assert "carriage returns" in warnings(io.BytesIO(b"one\r\ntwo\r\n"))
    assert "U+FFFD 1 time:" in warnings(["\ufffd", b"ab"])
    assert "unk_id=-1" in warnings(TEXTS, unk_id=-1)
    assert "white space" in warnings(TEXTS, control_symbols=["a b"])


@pytest.mark.parametrize("seed", [0, 1])
def test_a_sample(engine: str, seed: int) -> None:
    def run(**options: Any) -> Any:
        return train(
            TEXTS, vocab_size=800, character_coverage=0.98, input_sentence_size=150, seed=seed, **options
        )

    one = run()
    assert one.model_bytes == run(threads=1).model_bytes
    assert (one.report.reading.sampled, one.report.reading.sampled_from) == (150, len(TEXTS))
    assert one.model_bytes != train(TEXTS, vocab_size=800, character_coverage=0.98).model_bytes
    other = train(
        TEXTS, vocab_size=800, character_coverage=0.98, input_sentence_size=150, seed=seed + 1
    ).model_bytes
    assert one.model_bytes != other
    everything = train(TEXTS, vocab_size=700, input_sentence_size=100_000)
    assert everything.model_bytes == theirs(everything.options, TEXTS)


@given(text=st.text())
@settings(max_examples=300, deadline=None)
def test_lossless(text: str) -> None:
    tokenizer = lossless_tokenizer()
    text = text.replace("▁", "")
    assert tokenizer.decode(tokenizer.encode(text)) == text


def lossless_tokenizer(made: list[cpbpe.Tokenizer] = []) -> cpbpe.Tokenizer:  # noqa: B006
    if not made:
        code = Path(__file__).read_text()
        made.append(train(io.StringIO(code), vocab_size=800, preset="lossless").tokenizer)
    return made[0]


def test_lossless_learns_newlines(engine: str) -> None:
    code = io.StringIO("def f():\n    return 1\n\n\n" * 50)
    tokenizer = train(code, vocab_size=290, preset="lossless", hard_vocab_limit=False).tokenizer
    assert tokenizer.piece_to_id("\n\n\n") is not None
    assert tokenizer.encode_pieces("1\n\n\n    return") == ["1", "\n\n\n", "▁▁▁▁", "return"]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_neither_threads_nor_parts_matter(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(TEXTS), newline="")
    one = train(path, vocab_size=700)
    monkeypatch.setattr("cpbpe.corpus.files.PART_BYTES", 1000 * threads)
    two = train(path, vocab_size=700, threads=threads)
    assert one.model_bytes == two.model_bytes
    assert one.report.reading == two.report.reading


# --- Progress --------------------------------------------------------------------------------------


def test_progress_is_told(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(TEXTS), newline="")
    steps: list[Step] = []
    train(path, vocab_size=700, progress=steps.append)
    assert steps[0] == Step("reading", path.stat().st_size, path.stat().st_size, steps[0].seconds)
    assert {step.phase for step in steps} >= {"reading", "merges"}
    assert all(step.total is None or 0 <= step.done <= step.total for step in steps)


def test_a_callback_can_stop_it(engine: str) -> None:
    def stop(step: Step) -> None:
        if step.phase == "merges":
            raise InterruptedError

    with pytest.raises(InterruptedError):
        train(TEXTS, vocab_size=700, progress=stop)


def test_silence_and_bars(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    train(TEXTS, vocab_size=700)  # no terminal
    assert capsys.readouterr() == ("", "")
    train(TEXTS, vocab_size=700, progress=True)  # which takes less than half a second
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr("cpbpe.training.progress.BEFORE_BAR", 0)
    monkeypatch.setattr("cpbpe.training.progress._make_bar", _Line)
    train(TEXTS, vocab_size=700, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "\rreading" in err
    assert "\rmerges     [##############################] 100%" in err
    assert err.endswith("\r")
    for hidden in (["rich"], ["rich", "tqdm"], []):
        with monkeypatch.context() as context:
            context.undo()
        for name in hidden:
            monkeypatch.setitem(sys.modules, f"{name}.progress" if name == "rich" else name, None)
        train(TEXTS, vocab_size=700, progress=True)


# --- Files and names -----------------------------------------------------------------------------


def test_a_failing_write_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = train(TEXTS, vocab_size=700)
    (tmp_path / "my.model").write_bytes(b"old")
    calls = []
    real = os.replace

    def replace(source: str, target: str) -> None:
        calls.append(target)
        if len(calls) == 1:
            raise OSError("disk")
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(OSError, match="disk"):
        result.save(tmp_path / "my")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"my.model": b"old"}


def test_public_names() -> None:
    for name in cpbpe.__all__:
        assert getattr(cpbpe, name) is not None
        assert name in dir(cpbpe)
    assert cpbpe.Report is Report
    assert cpbpe.WordCounts is WordCounts
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        cpbpe.trian  # noqa: B018
    code = "import sys, cpbpe; sys.exit('cpbpe.training.train' in sys.modules)"
    processes.output("-c", code)
