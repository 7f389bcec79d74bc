"""Arguments of the command: spm_train's spelling, wrong guesses, help, and the spelling of all messages."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cpbpe import TrainOptions, train
from cpbpe.cli import main
from cpbpe.cli.parsing import flag
from cpbpe.cli.train import FLAGS, OPTIONS, THEIRS, parser
from cpbpe.training.byte_options import ONLY_BYTES
from cpbpe.training.options import GROUPS, MEANINGS, NAMES
from cpbpe.training.options_base import ARGUMENTS, FOREIGN, REFUSED
from tests.support import processes
from tests.support.corpus import lines

ROOT = Path(__file__).parents[2]
TEXTS = lines(200)
TRAIN = ["train", "corpus.txt", "--out", "my", "--vocab-size", "700"]

OF_PYTHON = re.compile(r"\w_\w|=(?:True|False|None)\b|\w+=\.\.\.|\btrain\(|\bsave\(|`")
"""What looks like Python in a message: names with underscores, values, calls; and backticks left in it."""
NO_OPTIONS = re.compile("nmt_nfkc_cf|nmt_nfkc|nfkc_cf|spm_train|_cf")
"""Names that have underscores everywhere."""
THEIRS_NAMES = {name.replace("-", "_") for name in THEIRS}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("corpus.txt").write_text("\n".join(TEXTS), newline="")
    Path("other.txt").write_text("\n".join(TEXTS[::2]), newline="")


# --- sentencepiece's spelling ---------------------------------------------------------------------


def test_a_command_of_spm_train(capsys: pytest.CaptureFixture[str]) -> None:
    theirs = "train --input=corpus.txt,other.txt --model_prefix=my --vocab_size=700 --model_type=bpe"
    theirs += " --normalization_rule_name=identity"  # building the other rules takes long
    more = "--character_coverage=0.99 --byte_fallback=true --split_digits=false --num_threads=2 --unk_id 3"
    assert main([*theirs.split(), *more.split(), "--input_format=text", "--preset", "sentencepiece"]) == 0
    expected = train(
        [Path("corpus.txt"), Path("other.txt")],
        vocab_size=700,
        preset="sentencepiece",
        normalization_rule_name="identity",
        character_coverage=0.99,
        byte_fallback=True,
        split_digits=False,
        unk_id=3,
    )
    assert Path("my.model").read_bytes() == expected.model_bytes
    assert capsys.readouterr().err == ""
    assert main([*theirs.split(), "--byte_fallback"]) == 0
    assert "have Llama 2's values; --preset sentencepiece gives" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["true", "T", "yes", "1", "false", "F", "no", "0"])
def test_switches_with_values(value: str) -> None:
    assert main([*TRAIN, "-q", f"--split_digits={value}"]) == 0
    split = value.lower() in ("true", "t", "yes", "1")
    assert (
        Path("my.model").read_bytes()
        == train(Path("corpus.txt"), vocab_size=700, split_digits=split).model_bytes
    )


def test_options_and_files_can_be_mixed() -> None:
    assert main(["train", "--out", "my", "corpus.txt", "--vocab-size", "700", "other.txt", "-q"]) == 0
    both = train([Path("corpus.txt"), Path("other.txt")], vocab_size=700)
    assert Path("my.model").read_bytes() == both.model_bytes


@pytest.mark.parametrize("where", ["-- {} -v -q", "other.txt --out c.counts -- {} -v -q", "{} -- -v -q"])
def test_names_that_begin_with_a_hyphen(where: str, capsys: pytest.CaptureFixture[str]) -> None:
    """After `--` all are names, wherever it stands."""
    for name in ("-v", "-q"):
        Path(name).write_text(f"{name}\n")
    given = where.format("corpus.txt").split()
    assert main(["count", *([] if "--out" in given else ["--out", "c.counts"]), *given]) == 0
    assert f"from {4 if 'other.txt' in given else 3} files" in capsys.readouterr().out
    assert main(["lint", "--", "-c.model", "--"]) == 2
    assert "-c.model: no such file" in capsys.readouterr().err


def test_names_that_are_no_options(capsys: pytest.CaptureFixture[str]) -> None:
    """The command answers in the spelling of the command line, and names only flags that exist."""
    known = {flag(option) for option in parser().flags()}
    for name in sorted(
        {*REFUSED, *FOREIGN}
        - {"input", "input_format", "model_type", "out", "verbose"}
        - {*THEIRS_NAMES}
        - ONLY_BYTES
    ):
        assert main([*TRAIN, f"--{name}=5"]) == 2
        message = capsys.readouterr().err.removesuffix("\nType 'cpbpe train --help' for help.\n")
        begin = f"cpbpe: there is no option {flag(name)}"
        assert message.startswith(begin), message
        rest = message.removeprefix(begin)
        assert OF_PYTHON.search(NO_OPTIONS.sub("", rest)) is None, message
        assert set(re.findall(r"--[a-z][\w-]*", rest)) <= known, message
        assert len(rest.split()) > 3, message


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ("--vocabsize=5", "did you mean --vocab-size?"),
        ("--no-vocab-size", "did you mean --vocab-size?"),
        ("-vocab_size=5", "did you mean --vocab-size?"),
        ("--n_vocab=5", "give --vocab-size"),
        ("--output=my", "the model is named with --out"),
        ("--lowercase", "nmt_nfkc_cf as --normalization-rule-name"),
        ("--shrinking_factor=0.75", "only the unigram model has it"),
        ("--random_seed=1", "the option is called --seed"),
        ("--model_type=unigram", "cpbpe trains bpe only, not 'unigram'"),
        ("--byte_fallback=maybe", "--byte-fallback is on or off"),
        ("--byte_fallback true", "there is no file 'true'; the value of a switch comes after a '='"),
        ("--control_symbols <a> <b>", "there is no file '<b>'; several symbols have commas between them"),
        ("--memory-limit=4", "cpbpe: --memory-limit must be a size"),
        ("--encoding=latin-1", "convert it first, for example with iconv"),
        ("--config=train.yaml", "each option is given by itself"),
        ("-i corpus.txt", "the corpus comes first, without a name"),
    ],
)
def test_what_was_meant(given: str, answer: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TRAIN, *given.split()]) == 2
    assert answer in capsys.readouterr().err
    assert not Path("my.model").exists()


def test_a_list_that_cannot_be_cut(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TRAIN, "--control-symbols", "<a>,b\rc,<d>"]) == 2
    assert "--control-symbols: '<a>,b\\rc,<d>' cannot be cut at its commas" in capsys.readouterr().err
    assert main([*TRAIN, "--control-symbols", '<a>,"b\rc",<d>', "--quiet"]) == 0


MEANINGLESS = [
    ("lint my.model --field a", "--field means nothing here: there is no --corpus; leave it out"),
    ("lint my.model my.model --corpus -", "read only once, and there are several models; give a file"),
    ("diff my.model my.model --column 1", "--column means nothing here: there is no corpus"),
    ("diff my.model my.model --quiet --out a", "--out means nothing here: --quiet writes nothing"),
    ("edit my.model a.model --truncate 600 --field a", "--field means nothing here: there is no --corpus"),
    ("edit my.model a.model --prune --learn 5 --corpus -", "--prune and --learn each read the corpus"),
    ("edit my.model a.model --prune --character-coverage 1", "nothing here: it is about --learn N"),
    ("edit my.model a.model --prune --multiple 64", "nothing here: it is about --weights FILE"),
    (
        "edit my.model a.model --prune --weights a --weights-out b --multiple 0",
        "--multiple must be 1 or more",
    ),
    ("edit my.model a.model --word a --kind control --unused", "--unused is about normal words and pieces"),
    ("encode my.model corpus.txt --unit byte", "--unit means nothing here: it is about --offsets"),
    ("encode my.model corpus.txt --field a", "--field means nothing here: no file is read as jsonl"),
    (
        "diff my.model my.model corpus.txt --column 1",
        "--column means nothing here: no file is read as a table",
    ),
    ("train corpus.txt --out a --column 1", "--column means nothing here: no file is read as a table"),
    ("encode my.model corpus.txt --seed 1", "--seed means nothing here: only --alpha samples"),
    ("tokens my.model corpus.txt -q --progress", "--quiet and --progress exclude each other"),
    ("train corpus.txt --out a --quiet -v", "--quiet and --verbose exclude each other"),
    ("show my.model text --whole", "--whole means nothing here: the text is given, and no file is read"),
    ("view --pattern gpt2 --out a.html", "--pattern means nothing here: there is no model"),
    ("count my.counts --out a --field a", "--field means nothing here: the files contain word counts"),
    ("compare sentencepiece:my.model corpus.txt --pattern gpt2", "nothing here: other libraries know it"),
    ("compare my.model a=- b=-", "the standard input ('-') can be read only once; give it once"),
    ("compare my.model corpus.txt --base corpus", "--base means nothing here: prices need several texts"),
    ("pack my.model corpus.txt --out a --validation-seed 1", "nothing here: it is about --validation SHARE"),
    ("encode my.model corpus.txt --no-prefix-after-special", "no special tokens without --allowed-special"),
    ("diff my.model my.model --json --limit 3", "--limit means nothing here: JSON has all pieces"),
    ("diff my.model my.model --out a.json --limit 3", "--limit means nothing here: JSON has all pieces"),
    ("diff my.model my.model --quiet --limit 3", "--limit means nothing here: --quiet writes nothing"),
    ("train corpus.txt --out a --seed 1", "--seed means nothing here: only --input-sentence-size N samples"),
    ("count corpus.txt --out a --seed 1", "--seed means nothing here: only --input-sentence-size N samples"),
    ("compare my.model corpus.txt --format json --out a.csv", "named as csv, and this would be json"),
]
"""Commands with an option that would have no effect, or with a text that could not be read again."""


def test_options_without_effect_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TRAIN, "--quiet"]) == main(["count", "corpus.txt", "--out", "my.counts", "--quiet"]) == 0
    before = sorted(Path().iterdir())
    for command, answer in MEANINGLESS:
        assert main(command.split()) == 2, command
        assert answer in capsys.readouterr().err
    assert sorted(Path().iterdir()) == before
    assert main(["train", "my.counts", "-", "--out", "a"]) == 1
    assert "the standard input (-) is taken for text; count that first" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ("--special-tokens=<a>", "give --control-symbols for pieces that only programs insert"),
        ("--min-frequency=2", "until there are --vocab-size pieces"),
        (
            "--ties=minbpe",
            "only byte-level models have it, such as those of --preset gpt4; for this one, leave it",
        ),
        (
            "--preset gpt4 --split-digits",
            "the --pattern says how a text is cut; leave it out",
        ),
        ("--preset gpt4 --control-symbols <a>", "byte-level models call them --special-tokens"),
        ("--preset gpt2 --ties=none", "--ties must be one of tokenizers, minbpe, not 'none'"),
    ],
)
def test_options_of_the_other_family(given: str, answer: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TRAIN, *given.split()]) == 1
    assert answer in capsys.readouterr().err
    assert not Path("my.model").exists()


# --- The spelling of messages ---------------------------------------------------------------------

BAD = {
    "vocab_size": ["0", "3", "99999999999", "many", "70000"],
    "character_coverage": ["0.5", "nan", "x"],
    "required_chars": ["a b", "▅"],
    "control_symbols": ["<a>,<a>", "<unk>", "a,,b", "\udc80", "x" * 8000],
    "user_defined_symbols": ["<0x0A>", "<unk>"],
    "unk_id": ["40000", "x"],
    "bos_id": ["0", "40000"],
    "eos_id": ["1"],
    "pad_id": ["2"],
    "unk_piece": ["", "a\0b"],
    "bos_piece": ["", "<unk>"],
    "eos_piece": ["<s>"],
    "pad_piece": [""],
    "unk_surface": ["\udc80"],
    "max_sentencepiece_length": ["0", "513"],
    "pretokenization_delimiter": ["\udc80"],
    "normalization_rule_name": ["nfd"],
    "normalization_rule_tsv": ["none.tsv", "bad.tsv"],
    "denormalization_rule_tsv": ["none.tsv", "bad.tsv"],
    "max_sentence_length": ["9", "-1"],
    "input_sentence_size": ["100", "-1"],
    "seed": ["x", "99999999999999999999"],
    "threads": ["0", "x"],
    "format": ["xls", "csv", "tsv", "jsonl", "parquet", "arrow"],
    "field": ["none"],
    "column": ["none"],
    "memory_limit": ["lots", "5", "1kB"],
    "preset": ["llama9"],
}
"""Values that are refused, alone or with what is given besides."""

TOGETHER = [
    ["--unk-id=-1", "--no-byte-fallback"],
    ["--auto-character-coverage", "--no-byte-fallback"],
    ["--auto-character-coverage", "--required-chars=a"],
    ["--required-chars=a", "--control-symbols=a"],
    ["--required-chars=abcdefgh", "--vocab-size=262"],
    ["--control-symbols=<a>", "--user-defined-symbols=<a>"],
    ["--pad-id=3", "--pad-piece=<s>"],
    ["--eos-id=30000", "--vocab-size=32000"],
    ["--vocab-size=400", "--character-coverage=1"],
    ["--vocab-size=30000"],
    ["--max-sentence-length=10"],
    ["--input=counts"],
]


@pytest.mark.parametrize(
    "given",
    [*([f"{FLAGS.name(name)}={value}"] for name, values in BAD.items() for value in values), *TOGETHER],
    ids=lambda given: " ".join(given)[:40].encode("ascii", "replace").decode(),
)
def test_refusals_are_spelled_as_flags(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.tsv").write_text("zz\t61\n")
    Path("a.jsonl").write_text('{"body": "a"}\n')
    corpus = "a.jsonl" if "field" in given[0] else "corpus.txt"
    if "column" in given[0]:
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table({"body": ["a"]}), "a.parquet")
        corpus = "a.parquet"
    if given == ["--input=counts"]:
        assert main(["count", "corpus.txt", "--out", "counts", "-q", "--no-split-digits"]) == 0
        corpus = "counts"
    assert main(["train", corpus, "--out", "my", "--vocab-size=700", *given]) in (1, 2)
    message = capsys.readouterr().err
    assert OF_PYTHON.search(NO_OPTIONS.sub("", message)) is None, message
    assert len(message.split()) > 4
    name = given[0].partition("=")[0]
    # Messages name the flag, except a few that name the file instead.
    if given not in TOGETHER and not name.endswith("tsv") and name != "--input-format":
        assert name in message


def test_every_option_with_a_bad_value_was_tried() -> None:
    kinds = {name: str(TrainOptions.__dataclass_fields__[name].type) for name in OPTIONS}
    switches = {name for name, kind in kinds.items() if kind == "bool"}
    assert {*OPTIONS, *ARGUMENTS, "preset"} - {"progress"} - switches == set(BAD)


def test_the_report_is_spelled_as_flags(capsys: pytest.CaptureFixture[str]) -> None:
    Path("long.txt").write_text("\n".join([*TEXTS, "x" * 100_000, "a ▅", "", "a\r\n" * 300]), newline="")
    assert main(["train", "long.txt", "--out", "my", "--vocab-size", "700", "--unk-id=-1"]) == 0
    out, _ = capsys.readouterr()
    assert "longer than --max-sentence-length" in out
    assert "give a larger --max-sentence-length" in out
    assert "--unk-id -1" in out
    assert OF_PYTHON.search(out) is None, out


# The same on the sources: a message that spells an option itself is found even if no test provokes it.

SPELLED = sorted(name for name in (*NAMES, *ARGUMENTS) if "_" in name)
LITERAL = re.compile(rf"(?<!`)\b(?:{'|'.join(SPELLED)}|(?:{'|'.join((*NAMES, *ARGUMENTS))})=)")


def messages(path: Path) -> Iterator[tuple[int, str]]:
    """The string constants of a module that contain a space, except docstrings and keys of dicts."""
    tree = ast.parse(path.read_text())
    others = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    others |= {id(key) for node in ast.walk(tree) if isinstance(node, ast.Dict) for key in node.keys}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in others and " " in str(node.value):
            yield node.lineno, str(node.value)


def test_no_message_spells_an_option_itself() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for room in ("training", "cli")
        for path in sorted((ROOT / "cpbpe" / room).glob("*.py"))
        for line, text in messages(path)
        if LITERAL.search(text)
    ]
    # Said to callers of Python only (about smaller models, and arguments of functions), or about spm_train.
    allowed = ("vocab_size is ", "vocab_size must be ", "progress=True or progress=False", "--model_prefix")
    assert [place for place in found if not any(text in place for text in allowed)] == []


# --- Help -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["train", "count"])
def test_help_has_the_meaning_of_every_option(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    page = re.sub(r"\s+", " ", re.sub(r"-\n +", "-", out))
    own = page.split("Flags of spm_train")[0]
    assert OF_PYTHON.search(NO_OPTIONS.sub("", own)) is None
    for name in OPTIONS:
        assert flag(name) in page
        assert MEANINGS[name].meaning.split("`")[0].strip() in page, name
    for title in GROUPS:
        assert f"{title}:" in page
    assert max(map(len, out.splitlines())) < 80


def test_the_overview(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert main(["--help"]) == 0
    assert capsys.readouterr() == (err, "")
    assert max(map(len, err.splitlines())) < 80
    for command in ("train", "count", "quickstart"):
        assert f"\n  {command} " in err


@pytest.mark.parametrize("command", [["--help"], ["train", "--help"]])
def test_help_is_there_at_once(command: list[str]) -> None:
    """Nothing is imported that takes long (and that help does not need)."""
    code = f"import sys; from cpbpe.cli import main; main({command!r}); print(*sys.modules)"
    imported = set(processes.output("-c", code).split())
    assert "cpbpe.cli" in imported
    assert not imported & {"numpy", "google.protobuf", "cpbpe.training.train", "cpbpe.training.word_counts"}
    assert "cpbpe.tokenizer.tokenizer" not in imported
