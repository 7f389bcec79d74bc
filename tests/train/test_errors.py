"""What is refused, and what is said: options, corpora, and the two together. Tables."""

import bz2
import gzip
import io
import json
import lzma
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cpbpe import PRESETS, TrainingError, TrainOptions, WordCounts, train
from cpbpe.spelling import spelled
from cpbpe.training.options_base import REFUSED

TEXTS = ["the cat sat on the mat"] * 3

# Options that are wrong whatever the corpus is, and what the message says.
BAD: list[tuple[dict[str, Any], str]] = [
    ({"vocab_size": 0}, "vocab_size must be at least 1, not 0"),
    ({"vocab_size": -5}, "vocab_size must be at least 1, not -5"),
    ({"vocab_size": 1 << 31}, "vocab_size does not fit into 32 bits"),
    ({"vocab_size": 3}, "ids end at|special pieces"),
    ({"vocab_size": 258}, "vocab_size is 258, but 3 special pieces and 256 bytes alone need 259"),
    ({"vocab_size": 260, "required_chars": "abc"}, "bytes and 3 required characters alone need 262"),
    ({"character_coverage": 0.97}, "character_coverage must be 0.98 to 1.0, not 0.97"),
    ({"character_coverage": 1.01}, "character_coverage must be 0.98 to 1.0"),
    ({"character_coverage": float("nan")}, "character_coverage must be 0.98 to 1.0, not nan"),
    ({"character_coverage": 1e300}, "character_coverage must be 0.98 to 1.0"),
    ({"max_sentencepiece_length": 0}, "max_sentencepiece_length must be 1 to 512, not 0"),
    ({"max_sentencepiece_length": 513}, "max_sentencepiece_length must be 1 to 512, not 513"),
    ({"max_sentence_length": 9}, "max_sentence_length must be 10 to 1073741824 bytes, or 0 for .*, not 9"),
    ({"max_sentence_length": -1}, "max_sentence_length must be 10 to"),
    ({"input_sentence_size": 100}, "input_sentence_size must be more than 100, or 0 for all, not 100"),
    ({"input_sentence_size": -1}, "input_sentence_size must be more than 100"),
    ({"unk_piece": ""}, "unk_piece holds an empty piece"),
    ({"bos_piece": ""}, "bos_piece holds an empty piece"),
    ({"eos_piece": ""}, "eos_piece holds an empty piece"),
    ({"pad_piece": ""}, "pad_piece holds an empty piece"),
    ({"control_symbols": [""]}, "control_symbols holds an empty piece"),
    ({"control_symbols": ["a\0b"]}, "contains a NUL character"),
    ({"control_symbols": ["a" * 8000]}, "longer than 7999 bytes"),
    ({"user_defined_symbols": ["\ud800"]}, "not valid Unicode"),
    ({"unk_surface": "\udcff"}, "unk_surface: .* not valid Unicode"),
    ({"control_symbols": ["<a>", "<a>"]}, "'<a>' is already in control_symbols"),
    ({"control_symbols": ["<a>"], "user_defined_symbols": ["<a>"]}, "'<a>' is already in control_symbols"),
    ({"user_defined_symbols": ["<0x0A>"]}, "byte_fallback: '<0x0A>' is already in user_defined_symbols"),
    ({"control_symbols": ["<unk>"]}, "'<unk>' is the unknown piece"),
    ({"user_defined_symbols": ["[U]"], "unk_piece": "[U]"}, "'\\[U\\]' is the unknown piece"),
    ({"unk_id": -1, "byte_fallback": False}, "unk_id is -1, .*needs byte_fallback=True"),
    ({"unk_id": 40000}, "unk_id is 40000, and with 32000 pieces ids end at 31999"),
    ({"bos_id": 0}, "bos_id is 0, which is already the id of '<unk>'"),
    ({"pad_id": 2}, "pad_id is 2, which is already the id of '</s>'"),
    ({"pad_id": 3, "pad_piece": "<s>"}, "pad_piece is '<s>', which is already the piece of id 1"),
    ({"bos_piece": "<unk>"}, "bos_piece is '<unk>', which is already the piece of id 0"),
    ({"required_chars": "a b"}, "required_chars holds a space"),
    ({"required_chars": "▅"}, "required_chars holds U\\+2585"),
    ({"required_chars": "ab", "control_symbols": ["a"]}, "required_chars: 'a' is already a special piece"),
    ({"auto_character_coverage": True, "byte_fallback": False}, "needs byte_fallback"),
    ({"auto_character_coverage": True, "required_chars": "a"}, "exclude each other"),
    ({"pretokenizer": str.split, "pretokenization_delimiter": "|"}, "exclude each other"),
    ({"allow_inconsistent_pretokenization": True}, "means nothing without a pretokenizer"),
    ({"normalization_rule_name": "nfd"}, "normalization_rule_name must be one of identity, .*, not 'nfd'"),
    ({"normalization_rule_tsv": "a.tsv", "normalization_rules": {"a": "b"}}, "exclude each other"),
    ({"denormalization_rule_tsv": "a.tsv", "denormalization_rules": {"a": "b"}}, "exclude each other"),
    ({"normalization_rules": [("", "b")]}, r"the left side of the rule \('', 'b'\) is empty"),
    ({"normalization_rules": [("a", "b"), ("a", "c")]}, "two rules for 'a', 'b' and 'c'"),
    ({"normalization_rules": [("a\0", "b")]}, "NUL"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        TrainOptions(**options)
    with pytest.raises(TrainingError, match=message):  # before anything is read
        train("there is no such corpus", **options)


def test_a_name_of_rules_beside_rules() -> None:
    """A name would be ignored; that of a preset gives way to rules, and "identity" has no rules to lose."""
    rules: dict[str, Any] = {"normalization_rules": {"a": "b"}, "vocab_size": 300, "hard_vocab_limit": False}
    with pytest.raises(TrainingError, match="normalization_rule_name and normalization_rules exclude"):
        train("there is no such corpus", normalization_rule_name="nfkc", **rules)
    presets: list[dict[str, Any]] = [{"preset": "sentencepiece"}, {"normalization_rule_name": "identity"}]
    for named in presets:
        tok = train(TEXTS, **named, **rules).tokenizer
        assert tok.normalize("aＡ").strip("▁") == "bＡ"


WRONG_TYPES: list[tuple[dict[str, Any], str]] = [
    ({"vocab_size": "1000"}, "vocab_size must be an integer, not '1000'"),
    ({"vocab_size": 1000.0}, "vocab_size must be an integer"),
    ({"unk_id": True}, "unk_id must be an integer"),
    ({"split_digits": 1}, "split_digits must be True or False, not 1"),
    ({"split_digits": None}, "split_digits must be True or False"),
    ({"character_coverage": "1"}, "character_coverage must be a number"),
    ({"unk_piece": b"<unk>"}, "unk_piece must be text"),
    ({"control_symbols": "<sep>"}, "control_symbols must be a list of str, not '<sep>'"),
    ({"control_symbols": [b"<sep>"]}, "control_symbols must be a list of str, but it contains b'<sep>'"),
    ({"user_defined_symbols": 5}, "user_defined_symbols must be a list of str"),
    ({"pretokenizer": "whitespace"}, "pretokenizer must be a function"),
    ({"normalization_rules": "ab"}, "normalization_rules must be a list of pairs"),
    ({"normalization_rules": ["ab"]}, "normalization_rules must be a list of pairs"),
    ({"normalization_rules": [(1, 2)]}, "normalization_rules must be a list of pairs"),
    ({"normalization_rule_tsv": 5}, "normalization_rule_tsv must be a path"),
    ({"vocabsize": 5}, "no option 'vocabsize'; did you mean vocab_size"),
    ({"encoding": "latin-1"}, r"open it yourself, as in train\(open\(path, encoding='latin-1'\)\)"),
    ({"options": TrainOptions()}, "no option 'options'; a TrainOptions is given as preset"),
    ({"zzz": 5}, "no option 'zzz'; help\\(cpbpe.TrainOptions\\) shows all"),
]


@pytest.mark.parametrize(("options", "message"), WRONG_TYPES)
def test_wrong_types(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        train(TEXTS, **options)


@pytest.mark.parametrize("call", [train, WordCounts.build])
def test_the_corpus_under_another_name(call: Callable[..., Any]) -> None:
    """Python would say that `source` is missing, and nothing about the name that was given."""
    with pytest.raises(FileNotFoundError, match=r"corpus\.txt"):  # (sentencepiece's name is understood)
        call(
            input="corpus.txt",
            preset="llama2",
            num_threads=2,
            **({"vocab_size": 300} if call is train else {}),
        )
    with pytest.raises(
        TypeError, match=r"^there is no option 'files'; the corpus comes first, without a name$"
    ):
        call(files=["corpus.txt"])
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'source'"):
        call(vocab_size=300, threads=2)
    assert call(source=["ab"], **({"vocab_size": 262} if call is train else {}))


@pytest.mark.parametrize("name", ["normalization_rules", "denormalization_rules"])
def test_wrong_rules_name_their_option(name: str) -> None:
    options: dict[str, Any] = {name: [("a", "a")]}
    with pytest.raises(TrainingError, match=f"^{name}: a rule that changes nothing"):
        train(TEXTS, **options)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_options_say_why(name: str) -> None:
    with pytest.raises(TrainingError) as error:
        TrainOptions().replace(**{name: 1})
    assert str(error.value) == f"{name}: {spelled(REFUSED[name])}"
    assert "`" not in str(error.value)
    assert len(REFUSED[name].split()) >= 5


def test_every_option_of_sentencepiece_is_taken_or_refused() -> None:
    from cpbpe.model.formats import model_pb2
    from cpbpe.training.options import NAMES

    theirs = {field.name for field in model_pb2.TrainerSpec.DESCRIPTOR.fields}
    theirs |= {field.name for field in model_pb2.NormalizerSpec.DESCRIPTOR.fields}
    assert theirs - set(NAMES) - set(REFUSED) == set()
    assert set(NAMES) & set(REFUSED) == set()


def test_presets() -> None:
    with pytest.raises(
        TrainingError, match="no preset 'llama9'; there are llama2, sentencepiece and lossless, and"
    ):
        train(TEXTS, preset="llama9")
    assert PRESETS["llama2"] == TrainOptions()
    with pytest.raises(AttributeError):
        PRESETS["llama2"].vocab_size = 5  # type: ignore[misc]


# Sizes of the vocabulary that this corpus cannot give: the range that it can is named, and is right.
def test_impossible_sizes_name_the_range(engine: str) -> None:
    with pytest.raises(
        TrainingError, match=r"gives (\d+) to (\d+) pieces; choose a size in this range"
    ) as error:
        train(TEXTS, vocab_size=5000)
    numbers = [int(word) for word in str(error.value).split() if word.isdigit()]
    least, most = numbers[0], numbers[1]
    assert train(TEXTS, vocab_size=most).tokenizer.vocab_size == most
    assert train(TEXTS, vocab_size=least).tokenizer.vocab_size == least
    with pytest.raises(TrainingError, match=f"gives {least} to {most} pieces"):
        train(TEXTS, vocab_size=most + 1)
    with pytest.raises(
        TrainingError,
        match=f"vocab_size is {least - 1}, .*needs at least {least}, for 3 special pieces, 256 bytes and",
    ):
        train(TEXTS, vocab_size=least - 1)
    soft = train(TEXTS, vocab_size=5000, hard_vocab_limit=False)
    assert soft.tokenizer.vocab_size == soft.report.vocab_size == most


def test_special_ids_beyond_what_the_corpus_gives(engine: str) -> None:
    with pytest.raises(TrainingError, match="'</s>' has the id 4000"):
        train(TEXTS, vocab_size=5000, eos_id=4000)


@pytest.mark.parametrize("vocab_size", [0, 258, 265, 301, 5000])
def test_sizes_that_a_training_does_not_know(vocab_size: int) -> None:
    result = train(TEXTS, vocab_size=280)
    with pytest.raises(
        TrainingError, match=f"vocab_size is {vocab_size}, and this training gives models of 269 to 280"
    ):
        result.tokenizer_at(vocab_size)
    with pytest.raises(TypeError, match="vocab_size must be an integer"):
        result.tokenizer_at("280")  # type: ignore[arg-type]


NOTHING: list[tuple[Any, dict[str, Any], str]] = [
    ([], {}, "the corpus contains no text"),
    (iter([]), {}, "the corpus contains no text"),
    ("", {}, "no such file or directory: ''"),
    (["", "\n", "\r\n"], {}, r"3 of 3 texts were left out \(3 empty\)"),
    (["x" * 5000], {}, r"\(1 too long\); give a larger max_sentence_length, or 0"),
    (["a ▅ b"], {}, r"\(1 reserved\)"),
    (["   ", "\u3000"], {"preset": "sentencepiece"}, r"\(2 blank\)"),
    (
        ["\0\0"],
        {"preset": "sentencepiece", "normalization_rule_name": "identity"},
        "special pieces|nothing|pieces",
    ),
]


@pytest.mark.parametrize(("source", "options", "message"), NOTHING)
def test_nothing_to_train_on(engine: str, source: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises((TrainingError, FileNotFoundError), match=message):
        train(source, vocab_size=300, **options)


def failing_iterator() -> Any:
    yield "one"
    raise ZeroDivisionError("in the iterator")


GZ = gzip.compress(random.Random(1).randbytes(5000), mtime=0)
SOURCES: list[tuple[Callable[[], Any], dict[str, Any], type[Exception], str]] = [
    (lambda: "no such file", {}, FileNotFoundError, "no such file or directory: 'no such file'"),
    (lambda: "A text, which someone took for a corpus. " * 9, {}, FileNotFoundError, "give a list of texts"),
    (
        lambda: "Is this a text, or [not]? " * 99,
        {},
        FileNotFoundError,
        r"^no file matches '.{200}\.\.\.'; .* give a list",
    ),
    (lambda: "https://example.com/a.txt", {}, FileNotFoundError, "; cpbpe downloads nothing, give a file$"),
    (
        lambda: "here.txt, here.txt",
        {},
        FileNotFoundError,
        r"; for several files give a list: \['here.txt', 'here.txt'\]$",
    ),
    (lambda: "~/here.txt", {}, FileNotFoundError, r"; is it '.*here.txt'\?$"),
    (lambda: Path("none.txt"), {}, FileNotFoundError, "none.txt"),
    (lambda: ["none.txt", "neither.txt"], {}, FileNotFoundError, "no such file: 'none.txt'; .* give iter"),
    (lambda: "none*.txt", {}, FileNotFoundError, "no file matches 'none\\*.txt'"),
    (lambda: "a\0b", {}, FileNotFoundError, "no such file"),
    (lambda: ["here.txt", "here.txt", "text"], {}, TrainingError, "could be paths or texts"),
    (lambda: [Path("here.txt"), 5], {}, TypeError, "list of paths, and item 1 is int"),
    (lambda: "empty", {}, TrainingError, "the directory 'empty' holds no text file"),
    (lambda: b"text", {}, TypeError, "source is bytes; for one text, give a list with it"),
    (lambda: 5, {}, TypeError, "source must be a path, .* not int"),
    (lambda: None, {}, TypeError, "not NoneType"),
    (lambda: ["one", 2], {}, TypeError, "item 2 is int"),
    (lambda: iter([None]), {}, TypeError, r"item 1 is NoneType; is a value missing\?$"),
    (lambda: ["one", float("nan")], {}, TypeError, r"item 2 is float; is a value missing\?$"),
    (lambda: [["one", "two"]], {}, TypeError, r"item 1 is list; join its words: ' '\.join\(words\)$"),
    (
        lambda: {"text": ["one"]},
        {},
        TypeError,
        r"not list; a mapping is from texts to counts, .* source\['text'\]$",
    ),
    (lambda: [{"text": "a"}], {}, TypeError, r"item 1 is dict; give what is in it"),
    (lambda: ["one", "\ud800"], {}, TrainingError, "item 2 is not valid Unicode"),
    (lambda: {"one": 0}, {}, TrainingError, "item 1: the count must be 1 to 2\\*\\*63 - 1, not 0"),
    (lambda: {"one": 1.5}, {}, TypeError, "item 1: the count must be an integer, not float"),
    (lambda: {"one": 1 << 63}, {}, TrainingError, "item 1: the count must be .*, not 9223372036854775808"),
    (lambda: {"one": 10**5000}, {}, TrainingError, "item 1: the count must be .*, not a number of 16,610"),
    (
        lambda: gzip.GzipFile(fileobj=io.BytesIO(GZ + b"xx")),
        {},
        TrainingError,
        "cannot be read to its end: Not a gzipped",
    ),
    (
        lambda: gzip.GzipFile(fileobj=io.BytesIO(GZ[:-9])),
        {},
        TrainingError,
        "cannot be read to its end: Compressed file",
    ),
    (failing_iterator, {}, ZeroDivisionError, "in the iterator"),
    (
        lambda: TEXTS,
        {"format": "xls"},
        TrainingError,
        "format must be one of text, tsv, csv, jsonl, parquet, arrow, not 'xls'",
    ),
    (lambda: TEXTS, {"format": "jsonl"}, TrainingError, "format='jsonl' is for files"),
    (lambda: TEXTS, {"threads": 0}, ValueError, "threads must be at least 1"),
    (lambda: TEXTS, {"threads": "2"}, TypeError, "threads must be an integer"),
    (lambda: ["one\tx"], {"format": "tsv"}, TrainingError, "item 1: the count must be an integer"),
    (lambda: io.BytesIO(b"a\t1\nb"), {"format": "tsv"}, TrainingError, "file:2: a line of tsv .* has 0 tabs"),
    (lambda: "here.txt", {"normalization_rule_tsv": "none.tsv"}, FileNotFoundError, "none.tsv"),
]


@pytest.mark.parametrize(("source", "settings", "error", "message"), SOURCES)
def test_bad_sources(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: Callable[[], Any],
    settings: dict[str, Any],
    error: type[Exception],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    Path("here.txt").write_text("some text")
    Path("empty").mkdir()
    with pytest.raises(error, match=message):
        train(source(), vocab_size=300, **settings)


XZ = lzma.compress(random.Random(1).randbytes(5000))
RECORD = json.dumps({"body": "text"}).encode()
FILES: list[tuple[str, bytes, dict[str, Any], str]] = [
    (
        "a.tsv",
        b"one\t1\ntwo\n",
        {},
        r"a.tsv:2: a line of tsv is text, one tab and a count, and this has 0 tabs",
    ),
    ("a.tsv", b"one\t1\ntwo\t2\t3\n", {}, r"a.tsv:2: .* has 2 tabs"),
    ("a.tsv", b"one\t0\n", {}, r"a.tsv:1: the count must be an integer from 1 to 2\*\*63 - 1, not '0'"),
    ("a.tsv", b"one\t-1\n", {}, r"a.tsv:1: the count"),
    ("a.tsv", b"one\t1_000\n", {}, r"a.tsv:1: the count"),
    ("a.tsv", b"one\t9223372036854775808\n", {}, r"a.tsv:1: the count"),
    ("a.tsv", b"one\t1.5\n", {}, r"a.tsv:1: the count .* not '1.5'"),
    ("a.tsv", b"one\t1\ntwo\t" + b"9" * 5000, {}, r"a.tsv:2: the count .* not '9{40}'"),
    (
        "a.jsonl",
        b'{"text": "a"}\n{"text": \n',
        {},
        r"a.jsonl:2: not valid JSON: .*; each line holds one JSON",
    ),
    ("a.jsonl", RECORD, {}, r"a.jsonl:1: there is no field 'text' \(there is 'body'\); name it with field="),
    ("a.jsonl", b"[1]", {}, r"a.jsonl:1: there is no field 'text' \(there is no object\)"),
    ("a.jsonl", b'{"text": 5}', {}, r"a.jsonl:1: the field 'text' is int, not text"),
    ("a.jsonl", b"\xff", {}, r"a.jsonl:1: not valid JSON"),
    ("a.jsonl", b"[" * 100_000, {}, r"a.jsonl:1: (the JSON is nested too deeply|not valid JSON)"),
    ("a.gz", b"plain text", {}, r"a.gz: is not a valid gz file"),
    ("a.gz", GZ[:-20], {}, r"a.gz: the compressed file is cut off"),
    ("a.gz", GZ[:2000] + b"\0" * 50 + GZ[2050:], {}, r"a.gz: is not a valid gz file"),
    ("a.xz", b"plain text", {}, r"a.xz: is not a valid xz file"),
    ("a.xz", XZ[:-40], {}, r"a.xz: the compressed file is cut off"),
    ("a.bz2", b"plain text", {}, r"a.bz2: is not a valid bz2 file"),
    ("a.zst", b"plain text", {}, r"a.zst: is not a valid zst file"),
    ("a.txt", GZ, {}, r"a.txt: the file is gzip data; name it \*.gz"),
    ("a.txt", XZ, {}, r"a.txt: the file is xz data"),
    ("a.txt", "text".encode("utf-16"), {}, r"a.txt: the file is UTF-16; convert it to UTF-8"),
    ("a.txt", b"PAR1\0\0", {}, r"a.txt: the file is Parquet"),
    ("a.txt", bz2.compress(b"text" * 99), {}, r"a.txt: the file is bzip2 data"),
    ("a.txt", b"version https://git-lfs.github.com/spec/v1\n", {}, r"a.txt: the file is a Git LFS pointer"),
    ("a.parquet", b"plain text", {}, r"a.parquet: is not a valid Parquet file"),
]


@pytest.mark.parametrize(("name", "data", "settings", "message"), FILES)
def test_bad_files(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    data: bytes,
    settings: dict[str, Any],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(data)
    with pytest.raises(TrainingError, match=message):
        train(name, vocab_size=300, **settings)


def test_cut_off_zstandard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.train.test_corpus import zst

    monkeypatch.chdir(tmp_path)
    Path("a.zst").write_bytes(zst(os.urandom(5000))[:-100])
    with pytest.raises(TrainingError, match=r"a\.zst: the compressed file is cut off"):
        train("a.zst", vocab_size=300)


def test_bad_parquet_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow
    from pyarrow import parquet

    monkeypatch.chdir(tmp_path)
    parquet.write_table(pyarrow.table({"id": [1], "body": ["text"]}), "a.parquet")
    with pytest.raises(
        TrainingError, match=r"there is no column 'text' \(there is 'id', 'body'\); name it with"
    ):
        train("a.parquet")
    with pytest.raises(TrainingError, match="the column 'id' is int64, not text"):
        train("a.parquet", column="id")


RULES: list[tuple[bytes, str]] = [
    (b"61\t62\n\xff\t61\n", r"rule_tsv: a.tsv: line 2: '\ufffd' is no hexadecimal code point$"),
    (b"zz\t61\n", "a.tsv: line 1"),
    (b"D800\t61\n", "a.tsv: line 1: 'D800\\\\t61' has a surrogate"),
    (b"100000000\t61\n", "a.tsv: line 1: '100000000' is no character"),
    (b"0 61\t61\n", "a.tsv: line 1: .* begins with U\\+0000"),
    (b"\xef\xbb\xbf61\t62\n", "byte order mark, so save it without one"),
    ("61\t62\n".encode("utf-16"), "looks like UTF-16, so convert it"),
]


@pytest.mark.parametrize(("data", "message"), RULES)
def test_bad_rules_in_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.tsv").write_bytes(data)
    for kind in ("normalization", "denormalization"):
        with pytest.raises(TrainingError, match=message):
            train(failing_iterator(), vocab_size=300, **{f"{kind}_rule_tsv": "a.tsv"})  # type: ignore[arg-type]


def test_bad_pretokenizers(engine: str) -> None:
    def run(function: Any, **more: Any) -> None:
        train(["one two"], vocab_size=290, hard_vocab_limit=False, pretokenizer=function, **more)

    with pytest.raises(TrainingError, match=r"do not join to the text for item 1: .*allow_inconsistent"):
        run(lambda text: [text[1:]])
    with pytest.raises(TypeError, match="the pretokenizer must return a list of str"):
        run(lambda text: text)
    for wrong in ([5], (part for part in ["one", 5]), b"one", None, 5, [None], [b"one"]):
        with pytest.raises(TypeError, match=r"must return a list of str; it returned .* for item 1"):
            run(lambda text, wrong=wrong: wrong)
    with pytest.raises(TrainingError, match="the pretokenizer returned for item 1 is not valid Unicode"):
        run(lambda text: ["\ud800"], allow_inconsistent_pretokenization=True)
    with pytest.raises(TrainingError, match="the pretokenizer returned a space"):
        run(lambda text: [" "], allow_inconsistent_pretokenization=True)
    with pytest.raises(TrainingError, match=r"the pretokenizer returned U\+2585 for item 1"):
        run(lambda text: [text, "\u2585"], allow_inconsistent_pretokenization=True)
    with pytest.raises(TrainingError, match="the pretokenizer returned nothing for any text"):
        run(lambda text: [], allow_inconsistent_pretokenization=True)
    with pytest.raises(ZeroDivisionError):
        run(lambda text: 1 // 0)


def test_saving_where_nothing_can_be(tmp_path: Path) -> None:
    result = train(TEXTS, vocab_size=280)
    with pytest.raises(FileNotFoundError, match=r"the folder .* does not exist; make it first"):
        result.save(tmp_path / "none" / "my")
    with pytest.raises(TrainingError, match="is a folder; give a name in it"):
        result.save(f"{tmp_path}/")
    with pytest.raises(TypeError, match="a path as str or Path"):
        result.save(b"my")  # type: ignore[arg-type]
