"""SentencePiece's .vocab, as its trainer and cpbpe write it: read, or refused where it is not certain."""

from dataclasses import replace
from pathlib import Path

import pytest
import sentencepiece

import cpbpe
from cpbpe import ModelSpec, Pieces, PieceType, Tokenizer
from cpbpe.model.formats import registry
from cpbpe.model.formats.vocab_text import read, write
from cpbpe.model.spec import NormalizerSpec
from tests.support import corpus, gguf_files, tiers, zoo
from tests.support.json_files import spec_of
from tests.support.train_parity import their_vocab

RULES = NormalizerSpec("identity", remove_extra_whitespaces=False)
WARNING = r"a \.vocab does not say how text is normalized"


@pytest.mark.parametrize(
    "name", tiers.some(zoo.NAMES, ["llama", "special", "defaults", "user-defined-llama"])
)
def test_models_of_the_zoo(name: str) -> None:
    """Written exactly, or refused; and what is written is what sentencepiece writes."""
    spec = spec_of(name)
    try:
        made = write(spec)
    except cpbpe.ConversionError:
        assert name not in ("llama", *zoo.REAL[:1])
        return
    again = read(made.data).spec
    assert again.pieces == spec.pieces
    assert again.byte_fallback == spec.byte_fallback
    whole = all(score == int(score) for score in spec.pieces.numbers())
    assert not whole or made.data == their_vocab(zoo.model(name))


def test_what_their_trainer_writes(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("\n".join(corpus.lines(200)), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.Train(
        input=str(text),
        model_prefix=str(tmp_path / "m"),
        model_type="bpe",
        vocab_size=700,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    with pytest.warns(UserWarning, match=WARNING) as warned:
        tok = cpbpe.load(tmp_path / "m.vocab")
    assert warned[0].filename == __file__
    model = cpbpe.load(tmp_path / "m.model")
    assert tok.spec.pieces == model.spec.pieces
    assert tok.encode("ab  cab é") == model.encode("ab  cab é")


def test_other_settings() -> None:
    """As docs/formats.md shows: a spec with another normalizer."""
    data = "<unk>\t0\n<s>\t0\n</s>\t0\n▁a\t-0\n▁\t-1\na\t-2\n".encode()
    spec = read(data).spec
    assert spec.normalizer == RULES
    assert [PieceType(type).name for type in spec.pieces.types][:4] == [
        "UNKNOWN",
        "CONTROL",
        "CONTROL",
        "NORMAL",
    ]
    tok = Tokenizer.from_spec(replace(spec, normalizer=NormalizerSpec(remove_extra_whitespaces=True)))
    assert tok.encode_pieces(" a  a ") == ["▁a", "▁a"]


def test_lines() -> None:
    """Tabs, line feeds at the beginning of a piece, other line ends, a mark in front, no last line feed."""
    rows = [
        (b"<unk>", 0, PieceType.UNKNOWN),
        (b"\t", -0.0, PieceType.NORMAL),
        (b"a\t0", -1, PieceType.NORMAL),
    ]
    rows += [(b"\n", -2, PieceType.NORMAL), (b"\n\n", -3, PieceType.NORMAL), (b"\r", -4, PieceType.NORMAL)]
    spec = ModelSpec(Pieces.of(rows), RULES)
    made = write(spec)
    assert made.data == b"<unk>\t0\n\t\t-0\na\t0\t-1\n\n\t-2\n\n\n\t-3\n\r\t-4\n"
    assert read(made.data).spec.pieces == spec.pieces
    lines = b"\xef\xbb\xbf<unk>\t0\r\na\t-0\r\nb\t-1e+06\r\n\r\n"
    assert read(lines).spec.pieces.texts == (b"<unk>", b"a", b"b")
    assert read(lines.rstrip()).spec.pieces.numbers()[2] == -1e6
    with pytest.raises(cpbpe.ConversionError, match="cannot be read again"):
        write(replace(spec, pieces=Pieces.of([*rows, (b"a\nb", -9, PieceType.NORMAL)])))


def test_scores_keep_their_value() -> None:
    scores = [-1234567.0, -1e-7, -3.5e30, -16777215.0]
    rows = [(b"<unk>", 0.0, PieceType.UNKNOWN)]
    rows += [(b"%c" % (97 + at), score, PieceType.NORMAL) for at, score in enumerate(scores)]
    spec = ModelSpec(Pieces.of(rows), RULES)
    made = write(spec, allow_differences=True)
    assert read(made.data, allow_differences=True).spec.pieces == spec.pieces
    assert b"-1.234567e+06" in made.data or b"-1234567" in made.data


UNCERTAIN = {
    "a special piece": (
        b"<unk>\t0\n<x>\t0\na\t-0\n",
        "does not say whether '<x>' is CONTROL or USER_DEFINED",
    ),
    "fractions": (
        b"<unk>\t0\na\t-1.25\nb\t-3.5\n",
        "its scores are fractions, as those of a Unigram model are",
    ),
}


@pytest.mark.parametrize("name", UNCERTAIN)
def test_what_is_not_certain_is_refused(name: str, tmp_path: Path) -> None:
    data, reason = UNCERTAIN[name]
    path = tmp_path / "m.vocab"
    path.write_bytes(data)
    with pytest.raises(cpbpe.ConversionError, match=r"not certain which model this \.vocab is of") as caught:
        cpbpe.load(path)
    assert reason in str(caught.value)
    conversion = cpbpe.convert(path, tmp_path / "m.model", allow_differences=True)
    assert reason in conversion.differences[0][0]
    assert any("does not say how text" in note for note in conversion.notes)


BROKEN = {
    "no score": (b"<unk>\t0\na\nb\t-1\n", "line 2 has no score"),
    "no number": (b"<unk>\t0\na\tb\n", "line 2 has no score"),
    "ids": (b"<unk>\t0\na\t1\nb\t2\nc\t3\n", "its numbers are ids, not scores"),
    "not a number": (b"<unk>\t0\na\tnan\n", "a score that is no number"),
    "a piece twice": (b"<unk>\t0\na\t-0\na\t-1\n", "piece 2, 'a', occurs twice"),
    "nothing unknown": (b"a\t-0\nb\t-1\n", "no piece has the type UNKNOWN"),
    "empty": (b"\n\n", "it is empty"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files(name: str) -> None:
    data, message = BROKEN[name]
    with pytest.raises(cpbpe.ModelError) as caught:
        read(data)
    assert message in str(caught.value)


def test_it_is_recognized(tmp_path: Path) -> None:
    tok = Tokenizer.from_spec(ModelSpec(Pieces.of(gguf_files.ROWS), RULES, byte_fallback=True))
    for name in ("m.vocab", "m.tsv"):
        tok.save(tmp_path / name)
        with pytest.warns(UserWarning, match=WARNING):
            assert cpbpe.load(tmp_path / name).spec.pieces == tok.spec.pieces
    for other in (b"", b"IQ== 0\n", b"a b\nc d\n", b"one\ttwo\n", zoo.model("llama"), b"\t0\n"):
        assert not registry.is_vocab(other) or other == b"\t0\n"


def test_what_it_cannot_say() -> None:
    rows = [*gguf_files.ROWS, (b"<x>", 0.0, PieceType.NORMAL)]
    for spec in (
        ModelSpec(Pieces.of(rows), RULES, byte_fallback=True),
        ModelSpec(Pieces.of(gguf_files.ROWS), NormalizerSpec(), byte_fallback=True),
        ModelSpec(Pieces.of(gguf_files.ROWS), replace(RULES, add_dummy_prefix=False), byte_fallback=True),
        ModelSpec(Pieces.of(gguf_files.ROWS), RULES, byte_fallback=True, added=((b"<y>", 264),)),
    ):
        with pytest.raises(cpbpe.ConversionError, match=r"a \.vocab cannot say what this model is"):
            write(spec)
        assert write(spec, allow_differences=True).differences
