"""Byte-level models: both engines, and every call of a Tokenizer."""

import pickle
import random
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece

import cpbpe
from cpbpe.engine.choice import make_engine
from cpbpe.engine.reference_engine import PythonEngine
from cpbpe.model.formats import sentencepiece as model_file
from cpbpe.packing.lines import DocumentEncoder
from tests.bytes.models import AS_IT_IS, OWN, given_texts, lacking, model, ranks, spec_of
from tests.support.budget import examples

MODELS = [("cl100k", True), ("o200k", True), ("gpt2", False), (OWN, True), (None, False), (None, True)]
models = pytest.mark.parametrize(("pattern", "whole"), MODELS, ids=str)


@pytest.fixture(params=["core", "reference"])
def tok(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> cpbpe.Tokenizer:
    """A small model's tokenizer, with each engine."""
    monkeypatch.setenv("CPBPE_ENGINE", request.param)
    return cpbpe.Tokenizer.from_spec(model())


# --- The engines ----------------------------------------------------------------------------------


def inputs(text: str) -> list[Any]:
    """A text as str, as bytes, and as bytes that are not UTF-8."""
    return [text, text.encode(), text.encode()[1:] + b"\xff\xe2\x96"]


def same_arrays(ours: Any, theirs: Any) -> bool:
    return all(np.array_equal(one, other) for one, other in zip(ours[:3], theirs[:3], strict=True))


@pytest.mark.parametrize(
    "spec", [*(model(*row) for row in MODELS), lacking()], ids=[*map(str, MODELS), "lacking"]
)
def test_engines_agree(spec: cpbpe.ModelSpec) -> None:
    core, reference = make_engine(spec), PythonEngine(spec)
    assert core.columns() == reference.columns()
    assert core.head == reference.head
    rng = random.Random(5)
    for text in given_texts(examples(20)):
        for given in inputs(text):
            ids = core.encode(given)
            assert ids == reference.encode(given), given
            assert core.count(given) == len(ids)
            assert core.normalize(given) == reference.normalize(given)
            assert core.origins(given) == reference.origins(given)
            assert core.align(given, False, True) == reference.align(given, False, True)
            prefixed = [engine.variant(prefix=True).align(given, True) for engine in (core, reference)]
            assert prefixed[0] == prefixed[1]
            for characters in (True, False):
                assert same_arrays(
                    core.align_arrays([given, given], 1, characters),
                    reference.align_arrays([given, given], 1, characters),
                )
            for alpha in (0.0, 0.3, 1.0):
                chance = (alpha, 3)
                assert core.align(given, False, True, chance) == reference.align(given, False, True, chance)
                ends = (ids[0], ids[-1], True) if ids else None
                assert core.encode(given, ends, chance) == reference.encode(given, ends, chance)
                assert core.encode_pieces(given, ends, chance) == reference.encode_pieces(given, ends, chance)
            assert core.encode(given, None, (0.0, 3)) == ids
            rng.shuffle(ids)
            assert core.decode(ids) == reference.decode(ids) == core.decode_batch([ids], 1)[0]  # type: ignore[index]
            assert core.decode_bytes(ids) == reference.decode_bytes(ids)


def test_a_chunk_that_is_a_piece_is_taken_whole() -> None:
    plain = {bytes([byte]): byte for byte in range(256)}
    spec = {whole: spec_of({**plain, b"abc": 256}, None, whole) for whole in (True, False)}
    for make in (make_engine, PythonEngine):
        assert make(spec[True]).encode("abc") == [256]
        assert make(spec[True]).encode("abcabc") == list(b"abcabc")
        assert make(spec[False]).encode("abc") == list(b"abc")


def test_sampling_a_chunk_that_merges_do_not_make() -> None:
    plain = {bytes([byte]): byte for byte in range(256)}
    engine = make_engine(spec_of({**plain, b"ab": 256, b"abcd": 257}, None))
    seen = {tuple(engine.encode("abcd", None, (0.5, seed))) for seed in range(50)}
    assert seen == {(257,), tuple(b"abcd")}


def test_what_a_pattern_leaves_out_is_a_chunk() -> None:
    tok = cpbpe.Tokenizer.from_spec(spec_of(ranks(), OWN))
    for text in given_texts(50):
        assert tok.decode(tok.encode(text)) == text


# --- Calls ----------------------------------------------------------------------------------------


def test_round_trips(tok: cpbpe.Tokenizer) -> None:
    assert tok.is_lossless()
    pieces = tok.spec.pieces.texts
    vocab = tok.vocab
    for text in given_texts(30):
        ids = tok.encode(text)
        assert tok.decode(ids) == text
        assert tok.decode_bytes(ids) == text.encode()
        assert b"".join(vocab.id_to_bytes(id) for id in ids) == text.encode()
        assert tok.decode_pieces([pieces[id] for id in ids]) == text


def test_batches_arrays_and_threads(tok: cpbpe.Tokenizer) -> None:
    texts = [text for text in given_texts(60) if text]
    rows = [tok.encode(text) for text in texts]
    assert tok.encode_batch(texts, threads=3) == rows
    assert [row.tolist() for row in tok.encode_arrays(texts, threads=3)] == rows
    assert tok.count_batch(texts, threads=2) == [len(row) for row in rows]
    assert tok.decode_batch(rows, threads=2) == texts
    assert [encoding.ids for encoding in tok.align_batch(texts)] == rows


@pytest.mark.parametrize("pattern", ["cl100k", "gpt2", "o200k", "llama3", "qwen2", "tekken", OWN])
def test_a_long_text_by_several_threads(pattern: str) -> None:
    tok = cpbpe.Tokenizer.from_spec(model(pattern))
    rng = random.Random(2)
    parts = given_texts(200)
    long = "".join(rng.choices(parts, k=3000))[:400_000]
    ids = tok.encode(long)
    for threads in (2, 3, 5):
        assert tok.encode_array(long, threads=threads).tolist() == ids
        assert tok.encode_array(long.encode(), threads=threads, add_eos=True).tolist() == [*ids, tok.eos_id]


def test_spans(tok: cpbpe.Tokenizer) -> None:
    """In bytes they are the texts of the pieces; in characters, those that end there."""
    for text in given_texts(30):
        data = text.encode()
        encoding = tok.align(data)
        ends = list(accumulate(len(tok.vocab.id_to_bytes(id)) for id in encoding.ids))
        assert encoding.offsets == list(zip([0, *ends[:-1]], ends, strict=True)) if ends else not text
        characters = [len(data[:end].decode(errors="ignore")) for end in ends]
        spans = tok.align(text).offsets
        assert spans == list(zip([0, *characters[:-1]], characters, strict=True)) if ends else not text
        rows = tok.encode_arrays([text], spans=True).spans
        assert rows is not None
        assert rows.tolist() == [list(span) for span in spans]


def test_text_that_is_not_utf8_reads_as_replacement_characters(tok: cpbpe.Tokenizer) -> None:
    assert tok.encode(b"a\xff\xe2\x96b") == tok.encode("a\ufffd\ufffd\ufffdb")
    assert tok.align(b"\xffa").offsets[-1] == (1, 2)


def test_decoding_replaces_as_python_does(tok: cpbpe.Tokenizer) -> None:
    rng = random.Random(3)
    for _ in range(examples(150)):
        ids = rng.choices(range(700), k=rng.randint(0, 9))
        data = tok.decode_bytes(ids)
        assert tok.decode(ids) == data.decode(errors="replace")
        stream = tok.stream_decoder()
        assert "".join(stream.push(id) for id in ids) + stream.flush() == data.decode(errors="replace")
        stream = tok.stream_decoder()
        assert stream.push(ids) + stream.flush() == data.decode(errors="replace")


def test_special_tokens(tok: cpbpe.Tokenizer) -> None:
    text = "the<|end|>cat<|user|>"
    assert tok.decode(tok.encode(text)) == text
    more = tok.with_special_tokens({"<|user|>": 800})
    ids = more.encode(text, allowed_special="all", add_eos=True)
    assert ids == [*tok.encode("the"), 700, *tok.encode("cat"), 800, 700]
    assert tok.eos_id == 700
    assert more.decode(ids) == "thecat<|user|>"
    assert more.decode(ids, skip_special_tokens=True) == "thecat"
    assert more.decode(ids, skip_special_tokens=False) == text + "<|end|>"
    assert len(more) == 801
    with pytest.raises(ValueError, match=r"special token '<\|end\|>' at position 3"):
        tok.encode(text, disallowed_special="raise")
    assert more == pickle.loads(pickle.dumps(more)) == cpbpe.Tokenizer.from_bytes(more.to_bytes())


@pytest.mark.parametrize("pattern", ["cl100k", "o200k", OWN, None])
def test_streams_of_text(pattern: str | None, tok: cpbpe.Tokenizer) -> None:
    tok = cpbpe.Tokenizer.from_spec(model(pattern))
    rng = random.Random(4)
    for text in given_texts(20):
        for given in (text, text.encode()):
            stream, ids, at = tok.stream_encoder(), [], 0
            while at < len(given):
                step = rng.randint(1, 12)
                ids += stream.push(given[at : at + step])
                at += step
            assert ids + stream.flush() == tok.encode(text)


def test_a_stream_does_not_wait_for_its_end(tok: cpbpe.Tokenizer) -> None:
    stream = tok.stream_encoder()
    assert stream.push("the cat sat on the ") == tok.encode("the cat sat on the")


def test_truncating_and_splitting(tok: cpbpe.Tokenizer) -> None:
    for text in given_texts(10):
        for limit in (4, 9, 40):
            cut = tok.truncate(text, limit)
            assert text.startswith(cut)
            assert tok.count(cut) <= limit
            parts = tok.split(text, limit)
            assert "".join(parts) == text
            assert all(tok.count(part) <= limit for part in parts)


def test_prefix_space(tok: cpbpe.Tokenizer) -> None:
    assert tok.encode("cat", prefix_space=True) == tok.encode(" cat")
    assert tok.using(prefix_space=True).decode(tok.encode(" cat")) == " cat"


def test_how_it_is_shown(tok: cpbpe.Tokenizer) -> None:
    assert repr(tok) == "<cpbpe.Tokenizer: 701 pieces, byte-level, pattern cl100k>"
    assert repr(cpbpe.Tokenizer.from_spec(model(None))).endswith("byte-level, no pattern>")
    seen = tok.inspect()
    assert (seen.alphabet, seen.splitter, seen.lossless) == ("bytes", tok.spec.splitter, True)
    assert seen.sample.decoded == seen.sample.text
    assert cpbpe.Tokenizer.from_spec(tok.spec) == tok


def test_lines_of_pieces_are_refused() -> None:
    with pytest.raises(ValueError, match="lines of pieces cannot hold"):
        DocumentEncoder(cpbpe.Tokenizer.from_spec(model()), "pieces")


# --- Files ----------------------------------------------------------------------------------------


@models
def test_model_files(pattern: str | None, whole: bool, tmp_path: Path) -> None:
    tok = cpbpe.Tokenizer.from_spec(model(pattern, whole))
    tok.save(tmp_path / "my.model")
    again = cpbpe.load(tmp_path / "my.model")
    assert again == tok
    assert again.fingerprint == tok.fingerprint
    assert again.spec == model_file.read(tok.to_bytes())
    assert replace(again.spec, settings=cpbpe.Settings()) == model(pattern, whole)
    assert again.encode("the cat\0") == tok.encode("the cat\0")


def test_bytes_that_no_text_has_may_be_missing(tmp_path: Path) -> None:
    """As in some published vocabularies."""
    tok = cpbpe.Tokenizer.from_spec(lacking())
    assert tok.piece_to_id(b"\xf5") is None
    tok.save(tmp_path / "a.model")
    given: dict[str, Any] = {"pattern": "llama3", "special_tokens": {"<|end|>": tok.eos_id}}
    for name in ("a.model", "a.tiktoken", "tokenizer.json", "a.gguf"):
        if name != "a.model":
            cpbpe.convert(tmp_path / "a.model", tmp_path / name, allow_differences=name == "a.gguf")
        again = cpbpe.load(tmp_path / name, **given if name == "a.tiktoken" else {})
        assert list(again.vocab) == list(tok.vocab), name
        for text in given_texts(examples(20)):
            assert again.encode(text) == tok.encode(text)
            assert again.decode(tok.encode(text)) == text


def test_sentencepiece_refuses_them(tmp_path: Path) -> None:
    """It does not know the field that says what the model is, and must not take it for another one."""
    cpbpe.Tokenizer.from_spec(model()).save(tmp_path / "my.model")
    with pytest.raises((RuntimeError, OSError)):
        sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "my.model"))
    from cpbpe.compat import sentencepiece as compat

    with pytest.raises((RuntimeError, OSError, ValueError), match="byte-level"):
        compat.SentencePieceProcessor(model_file=str(tmp_path / "my.model"))


def test_a_damaged_field_is_refused() -> None:
    data = cpbpe.Tokenizer.from_spec(model()).to_bytes()
    place = data.rindex(b"\xba\xae\x14")
    assert data[place + 3] > 0x7F  # the length has two bytes
    broken = data[: place + 5] + b"\xff" + data[place + 6 :]
    with pytest.raises(cpbpe.ModelError, match=r"\(41703\) is damaged"):
        cpbpe.Tokenizer.from_bytes(broken)


# --- What is refused ------------------------------------------------------------------------------


def changed(**changes: Any) -> cpbpe.ModelSpec:
    return replace(model(), **changes)


def with_piece(*piece: Any) -> cpbpe.Pieces:
    return cpbpe.Pieces.of([*model().pieces, cpbpe.Piece(*piece)])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            lambda: changed(pieces=cpbpe.Pieces.of(model().pieces[3:])),
            r"2 of the 243 \(0x42, 0xE9\) are missing",
        ),
        (lambda: changed(pieces=with_piece(b"x1", 0, cpbpe.PieceType.UNKNOWN)), "has the type UNKNOWN"),
        (
            lambda: changed(pieces=with_piece(b"x1", 0, cpbpe.PieceType.USER_DEFINED)),
            "has the type USER_DEFINED",
        ),
        (lambda: changed(pieces=with_piece(b"a")), "occurs twice"),
        (lambda: changed(byte_fallback=True), "no byte_fallback"),
        (lambda: changed(normalizer=cpbpe.NormalizerSpec()), "no normalizer"),
        (lambda: changed(denormalizer=AS_IT_IS), "no denormalizer"),
        (lambda: changed(alphabet="characters"), "are for byte-level models"),
        (lambda: changed(alphabet="runes"), '"characters" or "bytes"'),
        (lambda: spec_of(ranks(), "(a"), "a group is not closed"),
        (lambda: spec_of(ranks(), ""), "pattern of a splitter is empty"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_invalid_models(spec: Any, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for engine in ("core", "reference"):
        monkeypatch.setenv("CPBPE_ENGINE", engine)
        with pytest.raises(cpbpe.ModelError, match=message):
            cpbpe.Tokenizer.from_spec(spec())


def test_a_pattern_that_only_one_library_knows() -> None:
    """The core's patterns are those of the crate fancy-regex, of which `regex` knows more than it."""
    with pytest.raises(cpbpe.ModelError, match="pattern"):
        make_engine(spec_of(ranks(), r"(?r)a+"))


def test_a_pattern_that_needs_too_many_steps() -> None:
    engine = make_engine(spec_of(ranks(), r"(a|a)*(?=b)c"))
    with pytest.raises(ValueError, match="cannot split this text"):
        engine.encode("a" * 5000)
