"""`cpbpe spm`: what sentencepiece's programs write, compared with the same library from Python.

The programs themselves are not in the package `sentencepiece`. They do nothing but read flags and lines and
call the library, so what they print follows from what it returns.
"""

import random
import time
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
import sentencepiece

import cpbpe
from cpbpe.cli import main
from cpbpe.cli.spm import PROGRAMS, train
from tests.support import corpus, processes, zoo
from tests.support.texts import TextMaker

MODELS = ["llama", "defaults", "user-defined", "suffix", "identity-no-fallback", "renamed-unk", "nfkc_cf"]


def run(*arguments: str) -> bytes:
    """The command in a process of its own, which must succeed."""
    done = processes.run("-m", "cpbpe", "spm", *arguments, cwd=Path.cwd())
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def lines_of(name: str) -> list[bytes]:
    """Lines of all kinds, broken ones included."""
    oracle = sentencepiece.SentencePieceProcessor(model_proto=zoo.model(name))
    pieces = [oracle.IdToPiece(id) for id in range(oracle.vocab_size())]
    maker = TextMaker(5, pieces, corpus.lines(40))
    made = [maker.text().encode() for _ in range(60)] + [maker.broken() for _ in range(40)]
    made += [b"", b" ", b"  two  spaces ", b"a\rb\r", b"nul\0nul", "Ａ①ﬁ 🦙🦙 x".encode()]
    return [line.replace(b"\n", b" ") for line in made]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", MODELS)
def test_encode(name: str, folder: Path) -> None:
    data = zoo.model(name)
    Path("m.model").write_bytes(data)
    lines = lines_of(name)
    Path("a.txt").write_bytes(b"\n".join(lines[:70]) + b"\n")
    Path("b.txt").write_bytes(b"\n".join(lines[70:]))
    oracle = sentencepiece.SentencePieceProcessor(model_proto=data)
    ids = [oracle.encode(line) for line in lines]
    pieces = [oracle.encode(line, return_type=bytes) for line in lines]
    bos, eos = oracle.bos_id(), oracle.eos_id()

    def written(rows: list[list[Any]]) -> bytes:
        texts = ([b"%d" % item if isinstance(item, int) else item for item in row] for row in rows)
        return b"".join(b" ".join(row) + b"\n" for row in texts)

    model = ["encode", "--model=m.model"]
    assert run(*model, "a.txt", "b.txt") == written(pieces)
    assert run(*model, "--output_format=id", "a.txt", "b.txt") == written(ids)
    assert main(["spm", *model, "--output_format", "id", "--output=o", "--input=a.txt"]) == 0
    assert Path("o").read_bytes() == written(ids[:70])
    # Each step changes what those before it have made.
    given = [*model, "--output_format=id", "--extra_options=reverse:bos:reverse:eos:reverse"]
    done = main(["spm", *given, "--output=o", "a.txt", "b.txt"])
    assert done == (0 if bos >= 0 <= eos else 1)
    if done == 0:
        assert Path("o").read_bytes() == written([[eos, bos, *row[::-1]] for row in ids])
    unknown = [oracle.encode(line, return_type=bytes, emit_unk_piece=True) for line in lines]
    if name != "renamed-unk":
        main(["spm", *model, "--extra_options=unk", "--output=o", "a.txt", "b.txt"])
        assert Path("o").read_bytes() == written(unknown)
    main(["spm", *model, "--output_format=sample_id", "--alpha=0", "--output=o", "a.txt", "b.txt"])
    assert Path("o").read_bytes() == written(ids)

    counts: dict[bytes, int] = {}
    for row in ids:
        for id in row:
            if not (oracle.is_unknown(id) or oracle.is_control(id)):
                piece = oracle.id_to_piece(id).encode()
                counts[piece] = counts.get(piece, 0) + 1
    vocabulary = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    main(["spm", *model, "--generate_vocabulary", "--output=o", "a.txt", "b.txt"])
    assert Path("o").read_bytes() == b"".join(b"%s\t%d\n" % item for item in vocabulary)


@pytest.mark.parametrize("name", MODELS)
def test_decode(name: str, folder: Path) -> None:
    data = zoo.model(name)
    Path("m.model").write_bytes(data)
    oracle = sentencepiece.SentencePieceProcessor(model_proto=data)
    rng = random.Random(3)
    size = oracle.vocab_size()
    ids = [[rng.randrange(size) for _ in range(rng.randrange(1, 9))] for _ in range(50)]
    ids += [row for line in lines_of(name) if (row := oracle.encode(line))]
    Path("ids").write_text("".join(" ".join(map(str, row)) + "\n" for row in ids))
    expected = b"".join(oracle.decode(row, return_type=bytes) + b"\n" for row in ids)
    assert run("decode", "--model=m.model", "--input_format=id", "ids") == expected
    pieces = [[oracle.id_to_piece(id).encode() for id in row] for row in ids]
    pieces = [row for row in pieces if not any(b" " in piece or b"\n" in piece for piece in row)]
    pieces += [[b""], [b"", b"\xe2\x96\x81a", b""], [b"nix", b"<0xE3>"]]
    Path("pieces").write_bytes(b"".join(b" ".join(row) + b"\n" for row in pieces))
    expected = b"".join(oracle.decode(row, return_type=bytes) + b"\n" for row in pieces)
    assert run("decode", "--model=m.model", "pieces") == expected
    backwards = b"".join(oracle.decode(row[::-1], return_type=bytes) + b"\n" for row in pieces)
    assert main(["spm", "decode", "--model=m.model", "--extra_options=reverse", "--output=o", "pieces"]) == 0
    assert Path("o").read_bytes() == backwards


def test_ids_that_are_none(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Path("m.model").write_bytes(zoo.model("llama"))
    oracle = sentencepiece.SentencePieceProcessor(model_proto=zoo.model("llama"))
    Path("ids").write_bytes(b"300 x +301\t 0302  99999999999\n\n \n0x5 1_0 300\r")
    assert main(["spm", "decode", "--model=m.model", "--input_format=id", "ids"]) == 0
    out, err = capfd.readouterr()
    assert out == f"{oracle.decode([300, 301, 302])}\n\n\n{oracle.decode([300])}\n"
    assert "4 items of the input were no 32-bit integer, such as 'x', and left out" in err
    Path("ids").write_bytes(b"300\n301 -1\n")
    assert main(["spm", "decode", "--model=m.model", "--input_format=id", "ids"]) == 1
    assert "line 2 of the input: id -1 at position 1 is outside the vocabulary" in capfd.readouterr().err


@pytest.mark.parametrize("name", ["llama", "nfkc_cf", "tsv", "keep-spaces", "suffix"])
def test_normalize(name: str, folder: Path) -> None:
    data = zoo.model(name)
    Path("m.model").write_bytes(data)
    lines = [line for line in lines_of(name) if line.decode(errors="ignore").encode() == line]
    Path("a.txt").write_bytes(b"".join(line + b"\n" for line in lines))
    texts = [line.decode() for line in lines]
    rules: dict[str, Any] = {"add_dummy_prefix": False, "escape_whitespaces": False}
    for flags, options in (
        (["--use_internal_normalization"], {}),
        ([], {**rules, "remove_extra_whitespaces": True}),
        (["--noremove_extra_whitespaces"], {**rules, "remove_extra_whitespaces": False}),
    ):
        oracle = sentencepiece.SentencePieceNormalizer(model_proto=data, **options)
        expected = "".join(f"{oracle.normalize(text)}\n" for text in texts)
        assert main(["spm", "normalize", "--model=m.model", *flags, "--output=o", "a.txt"]) == 0
        assert Path("o").read_bytes() == expected.encode(), flags


@pytest.mark.slow
def test_rules(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("r.tsv").write_text(zoo.TSV)
    written = run("normalize", "--normalization_rule_tsv=r.tsv", "--decompile")
    assert written.startswith("61 62\t78\t# ab => x\n7E\t20 20\t# ~ =>   \nE9\t65\t# é => e\n".encode())
    Path("again.tsv").write_bytes(written)
    assert run("normalize", "--normalization_rule_tsv=again.tsv", "--decompile") == written
    oracle = sentencepiece.SentencePieceNormalizer(rule_name="nmt_nfkc_cf").decompile()
    rows = run("normalize", "--normalization_rule_name=nmt_nfkc_cf", "--decompile").decode().split("\n")
    assert len(rows) == len(oracle) + 1
    for row, (source, target) in zip(rows, oracle, strict=False):
        fields = row.split("\t")
        assert fields[:2] == [" ".join(f"{ord(c):X}" for c in text) for text in (source, target)]
    assert main(["spm", "normalize", "--normalization_rule_name=identity", "--decompile"]) == 1
    assert main(["spm", "normalize", "r.tsv"]) == 1
    assert "there are no rules; give --model" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["llama", "fractional-scores", "odd-scores", "broken-pieces"])
def test_export_vocab(name: str, folder: Path) -> None:
    data = zoo.model(name)
    Path("m.model").write_bytes(data)
    pieces = zoo.parse(data).pieces
    ids = b"".join(b"%s\t%d\n" % (piece.piece, id) for id, piece in enumerate(pieces))
    assert run("export_vocab", "--model=m.model", "--output_format=syms") == ids
    scores = [line.rpartition(b"\t")[2] for line in run("export_vocab", "--model=m.model").splitlines()]
    assert [float(score) for score in scores if b"nan" not in score] == pytest.approx(
        [piece.score for piece in pieces if piece.score == piece.score], rel=1e-5
    )


@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["--byte_fallback", "--vocab_size=700", "--nosplit_by_number", "--split_digits=1"],
        ["--normalization_rule_name=identity", "--remove_extra_whitespaces=f", "-noadd_dummy_prefix"],
        ["--control_symbols=<x>,<y>", "--user_defined_symbols=<z>", "--required_chars=xyzü"],
        ["--character_coverage", "0.98", "--hard_vocab_limit=false", "--vocab_size=99999"],
        ["--unk_id=3", "--bos_id=-1", "--eos_id=0", "--pad_id=1", "--pad_piece=[PAD]", "--unk_surface=?"],
        ["--denormalization_rule_tsv=r.tsv", "--num_threads=3", "--vocabulary_output_piece_score=false"],
    ],
)
def test_train(flags: list[str], folder: Path) -> None:
    lines = [line for text in corpus.lines(500) for line in text.split("\n")]
    Path("c.txt").write_text("".join(f"{line}\n" for line in lines))
    Path("r.tsv").write_text(zoo.DENORMALIZE)
    given = ["--input=c.txt", "--model_prefix=m", "--model_type=bpe", "--vocab_size=600", *flags]
    assert run("train", *given) == b""
    ours = Path("m.model").read_bytes(), Path("m.vocab").read_bytes()
    values = train.PROGRAM.parse(given)
    assert values is not None
    options = {
        name: value
        for name, value in values.flags.items()
        if name not in ("random_seed", "quiet", "minloglevel") and not name.endswith("symbols_file")
        if value is not None and name != "required_chars_file"
        if value or name not in ("denormalization_rule_tsv", "control_symbols", "user_defined_symbols")
    }
    with open("log", "w") as log:
        sentencepiece.SentencePieceTrainer.train(logstream=log, minloglevel=2, **options)
    assert ours == (Path("m.model").read_bytes(), Path("m.vocab").read_bytes())


def test_symbols_in_files(folder: Path) -> None:
    Path("c.txt").write_text("the cat sat on the mat\n" * 5)
    Path("symbols").write_text('<a>\n<b,c>\n"q"\n')
    flags = ["--input=c.txt", "--model_type=bpe", "--vocab_size=40", "--hard_vocab_limit=false", "--quiet"]
    files = ["--user_defined_symbols=<z>", "--user_defined_symbols_file=symbols"]
    assert main(["spm", "train", *flags, "--model_prefix=a", *files]) == 0
    pieces = Path("a.vocab").read_text().split("\n")
    assert [line.split("\t")[0] for line in pieces[3:7]] == ["<z>", "<a>", "<b,c>", '"q"']


def test_samples(folder: Path) -> None:
    """With a seed they are the same in every run, and they are other segmentations of the same text."""
    Path("m.model").write_bytes(zoo.model("llama"))
    Path("a.txt").write_text("\n".join(corpus.lines(300)) + "\n")
    given = ["encode", "--model=m.model", "--alpha=0.3", "a.txt"]
    ids = ["--output_format=sample_id", "--random_seed"]
    first = run(*given, *ids, "7")
    assert run(*given, *ids, "7") == first
    assert run(*given, *ids, "8") != first
    assert run(*given, "--output_format=id") != first
    Path("ids").write_bytes(first)
    decoded = run("decode", "--model=m.model", "--input_format=id", "ids")
    assert decoded.decode() == Path("a.txt").read_text().replace("▁", " ")
    pieces = run(*given, "--output_format=sample_piece", "--random_seed=7").split(b"\n")
    tok = cpbpe.load("m.model")
    assert [[tok.vocab[piece] for piece in line.split(b" ") if piece] for line in pieces] == [
        list(map(int, line.split())) for line in first.split(b"\n")
    ]
    # Unknown characters are shown as in `piece`, too.
    Path("m.model").write_bytes(zoo.model("identity-no-fallback"))
    Path("b.txt").write_text("the \u2603 cat\n")
    options = ["encode", "--model=m.model", "--extra_options=unk", "--alpha=0.3", "b.txt"]
    for form in ("piece", "sample_piece"):
        assert b"<unk>" in run(*options, f"--output_format={form}")


def test_lines_are_answered_as_they_arrive(folder: Path) -> None:
    """As in sentencepiece: a program can send a line and wait for its pieces."""
    Path("m.model").write_bytes(zoo.model("llama"))
    with processes.start(
        "-m", "cpbpe", "spm", "encode", "--model=m.model", cwd=folder, stdin=PIPE, stdout=PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        oracle = sentencepiece.SentencePieceProcessor(model_proto=zoo.model("llama"))
        for text in ("first line", "the second"):
            process.stdin.write(f"{text}\n".encode())
            process.stdin.flush()
            time.sleep(0.05)
            assert process.stdout.readline().decode().split() == oracle.encode(text, out_type=str)
        process.stdin.write(b"no end")
        process.stdin.close()
        assert process.stdout.read().decode().split() == oracle.encode("no end", out_type=str)
        assert process.wait() == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "name a program: train, encode, decode, normalize, export_vocab"),
        (["enocde"], 2, "there is no program 'enocde'; did you mean encode?"),
        (["encode", "c.txt"], 1, "there is no model; give one: cpbpe spm encode --model=my.model"),
        (["encode", "--model=no"], 1, "no: no such file or folder"),
        (["encode", "--model=m.model", "nofile"], 1, "nofile: No such file or directory"),
        (["encode", "--model=m.model", "."], 1, ".: Is a directory"),
        (["encode", "--modle=m.model"], 2, "spm_encode has no flag --modle; did you mean --model?"),
        (["encode", "--model"], 2, "--model needs a value, as in --model=..."),
        (["encode", "--nbest_size=x"], 2, "--nbest_size: 'x' is not a whole number"),
        (["encode", "--random_seed=-1"], 2, "--random_seed must be from 0 to 4294967295, not -1"),
        (["encode", "--generate_vocabulary=maybe"], 2, "is on or off, not 'maybe'; give true or false"),
        (["encode", "--nomodel=x"], 2, "--nomodel is no switch; it needs a value: --model=..."),
        (["encode", "--model=m.model", "--output_format=nbest_id"], 1, "one segmentation of a text"),
        (["encode", "--model=m.model", "--output_format=proto"], 1, "there is no 'proto'; there are piece,"),
        (["encode", "--model=m.model", "--extra_options=bos,eos"], 1, "there is no 'bos,eos'; there are bos"),
        (["encode", "--model=m.model", "--input=c.txt", "c.txt"], 1, "give all files as arguments, without"),
        (["encode", "--model=m.model", "--output=c.txt", "c.txt"], 1, "--output would replace 'c.txt'"),
        (["encode", "--model=m.model", "--output_format=sample_id", "--alpha=-1"], 1, "--alpha must be"),
        (["encode", "--flagfile=again"], 2, "does again name itself?"),
        (["decode", "--model=m.model", "--output_format=x"], 1, "--output_format: there is no 'x'"),
        (["export_vocab", "--model=m.model", "--output_format=x"], 1, "give vocab or syms"),
        (["train", "--model_prefix=m"], 1, "--input is needed, as in --input=corpus.txt"),
        (["train", "--input=c.txt", "--model_prefix=m"], 1, "cpbpe trains BPE models only; give"),
        (["train", "--input=c.txt", "--model_prefix=m", "d.txt"], 1, "'d.txt' is one argument too many"),
    ],
)
def test_errors(
    arguments: list[str], code: int, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("m.model").write_bytes(zoo.model("llama"))
    Path("c.txt").write_text("a text\n")
    Path("again").write_text("--flagfile=again\n")
    assert main(["spm", *arguments]) == code
    assert message in capsys.readouterr().err
    assert Path("c.txt").read_text() == "a text\n"


def test_flags(folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    Path("m.model").write_bytes(zoo.model("llama"))
    Path("c.txt").write_text("a text\n")
    Path("flags").write_text("# a comment\n\n  --output-format=id\n")
    assert main(["spm", "encode", "--model=m.model", "--output_format=id", "c.txt"]) == 0
    ids = capfd.readouterr().out
    for given in (
        ["-model", "m.model", "-output_format", "id", "c.txt"],
        ["c.txt", "--model=m.model", "--output-format=id"],
        ["--model=m.model", "--flagfile=flags", "--", "c.txt"],
        ["--model=m.model", "--output_format=piece", "--output_format=id", "c.txt"],
        [
            "--model=m.model",
            "--nogenerate_vocabulary",
            "--nix=1",
            "--undefok=nix",
            "--flagfile",
            "flags",
            "c.txt",
        ],
        ["--fromenv=model", "--tryfromenv=output", "--nbest_size=0x10", "--output_format=id", "c.txt"],
    ):
        monkeypatch.setenv("FLAGS_model", "m.model")
        assert main(["spm", "encode", *given]) == 0
        assert capfd.readouterr() == (ids, "")
    assert main(["spm", "encode", "--model=m.model", "--vocabulary=v", "--output_format=id", "c.txt"]) == 0
    out, err = capfd.readouterr()
    assert (out, err) == (ids, "cpbpe: --vocabulary has no effect: sentencepiece 0.2.3 ignores it, too\n")
    assert main(["spm", "encode", "--only_check_args"]) == 0
    assert main(["spm", "train", "--version"]) == 0
    assert capfd.readouterr().out.endswith("as sentencepiece 0.2.3\n")
    for name in PROGRAMS:
        assert main(["spm", name, "--help"]) == 0
        assert max(map(len, capfd.readouterr().out.split("\n"))) <= 90
