"""What the README of sentencepiece's Python package shows, called in both libraries, with a BPE model.

Left out is what a BPE model does not have there either (n-best), and building sentencepiece itself.
"""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import json_format, text_format

from tests.support import tiers, zoo
from tests.support.compat_calls import OURS, THEIR_MODELS, THEIRS, plain
from tests.support.corpus import lines

MODEL = zoo.REAL[0]
TEXT = "吾輩は猫である。 A cat 🐈"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("test.model").write_bytes(zoo.model(MODEL))
    Path("corpus.txt").write_text("\n".join(lines(300)))


def first_steps(spm: Any) -> Any:
    sp = spm.SentencePieceProcessor(model_file="test.model")
    text, texts = "This is a test", ["This is a test", "Hello world"]
    ids = sp.encode(text)
    pieces = sp.encode(text, return_type=str)
    message = sp.encode(text, return_type="proto")
    assert sp.encode_as_proto(text) == message
    return [
        ids,
        sp.encode(texts, return_type=int),
        sp.encode_as_ids(texts),
        pieces,
        sp.encode(texts, return_type=str),
        sp.encode_as_pieces(texts),
        sp.encode(text, return_type=bytes),
        sp.encode(text, return_type="numpy"),
        sp.encode(text, return_type="offset_mapping"),
        text_format.MessageToString(message),
        [type(sp.encode(text, return_type=str, enable_sampling=True, alpha=0.1, nbest_size=-1))],
        sp.decode(ids),
        sp.decode([ids, ids[:2]]),
        sp.decode(np.array(ids, dtype=np.int32)),
        sp.decode(np.array([ids, ids])),
        sp.decode(ids, return_type=bytes),
        sp.decode(ids, return_type="offset_mapping"),
        sp.decode(ids, return_type="proto").text,
        sp.decode(pieces),
        sp.decode([pieces, pieces[:1]]),
        [sp.get_piece_size(), sp.piece_to_id("<s>"), sp.piece_to_id(["</s>", "\r", "▁"])],
        [sp.id_to_piece(2), sp.id_to_piece([2, 3, 4]), len(sp), sp["</s>"]],
        [sp.bos_id(), sp.eos_id(), sp.unk_id(), sp.pad_id()],
        [sp.id_to_piece(id) for id in range(5)],
    ]


def offsets(spm: Any) -> Any:
    sp = spm.SentencePieceProcessor(model_file="test.model")
    data = TEXT.encode()
    by_character = sp.encode(TEXT, return_type="offset_mapping")
    by_byte = sp.encode(data, return_type="offset_mapping")
    assert "".join(TEXT[begin:end] for begin, end in by_character["offsets"]) == TEXT
    assert b"".join(data[begin:end] for begin, end in by_byte["offsets"]) == data
    decoded = sp.decode(by_character["ids"], return_type="offset_mapping")
    in_bytes = sp.decode(by_byte["ids"], return_type="offset_mapping", return_bytes=True)
    assert "".join(decoded["text"][begin:end] for begin, end in decoded["offsets"]) == TEXT
    assert b"".join(in_bytes["text"][begin:end] for begin, end in in_bytes["offsets"]) == data
    forced = [
        sp.encode(given, return_type="offset_mapping", return_bytes=flag)
        for given in (TEXT, data)
        for flag in (True, False)
    ]
    return [by_character, by_byte, decoded, in_bytes, forced]


def messages(spm: Any) -> Any:
    sp = spm.SentencePieceProcessor(model_file="test.model")
    message = sp.encode(TEXT, return_type="proto")
    data = TEXT.encode()
    for piece in message.pieces:
        assert data[piece.begin : piece.end].decode() == piece.surface
    return json_format.MessageToJson(message), message.SerializeToString()


def batches(spm: Any) -> Any:
    sp = spm.SentencePieceProcessor(model_file="test.model")
    sentences = ["This is a test sentence."] * 1000
    pool = spm.ThreadPool(4)
    found = [
        sp.encode(sentences, return_type=int),
        sp.encode(sentences, return_type=int, num_threads=4),
        *(sp.encode(sentences, return_type=int, thread_pool=pool) for _ in range(3)),
    ]
    assert all(each == found[0] for each in found)
    return found[0]


def one_long_text(spm: Any) -> Any:
    sp = spm.SentencePieceProcessor(model_file="test.model")
    text = Path("corpus.txt").read_text() * 5
    found = sp.parallel_encode(text, chunk_len=10_000, thread_pool=spm.ThreadPool(4), return_type=int)
    assert found == sp.encode(text)
    return found


def normalizing(spm: Any) -> Any:
    sp = spm.SentencePieceProcessor(model_file="test.model")
    rules = [("foo", "bar"), ("apple", "orange")]
    own = spm.SentencePieceNormalizer(norm_map=rules)
    return [
        sp.normalize("Hello  World."),
        sp.normalize("Hello  World.", with_offsets=True),
        spm.SentencePieceNormalizer(model_file="test.model").normalize("Hello  World."),
        spm.SentencePieceNormalizer(
            model_file="test.model",
            add_dummy_prefix=False,
            escape_whitespaces=False,
            remove_extra_whitespaces=False,
        ).normalize("Hello  World."),
        own.normalize("foo apple"),
        own.decompile(),
    ]


def training(spm: Any) -> Any:
    spm.SentencePieceTrainer.train(
        input="corpus.txt",
        model_prefix="m",
        vocab_size=600,
        user_defined_symbols=["foo", "bar"],
        model_type="bpe",
        minloglevel=2,
    )
    return Path("m.model").read_bytes(), Path("m.vocab").read_text()


def training_with_a_normalizer(spm: Any) -> Any:
    rules = spm.SentencePieceNormalizer(norm_map=[("x", "y")]).decompile()
    rules += [("foo", "bar"), ("apple", "orange")]
    normalizer = spm.SentencePieceNormalizer(norm_map=rules, add_dummy_prefix=False, escape_whitespaces=True)
    given = {
        "input": "corpus.txt",
        "model_prefix": "n",
        "vocab_size": 600,
        "model_type": "bpe",
        "minloglevel": 2,
    }
    spm.SentencePieceTrainer.train(**given, normalizer=normalizer)
    with pytest.raises(ValueError, match="normalizer"):
        spm.SentencePieceTrainer.train(**given, normalizer=normalizer, add_dummy_prefix=False)
    return Path("n.model").read_bytes()


def without_files(spm: Any) -> Any:
    model = io.BytesIO()
    with open("corpus.txt", "rb") as response:
        spm.SentencePieceTrainer.train(
            sentence_iterator=response, model_writer=model, vocab_size=600, model_type="bpe", minloglevel=2
        )
    sp = spm.SentencePieceProcessor(model_proto=model.getvalue())
    return sp.encode("this is test"), model.getvalue()


def bytes_in_and_out(spm: Any) -> Any:
    sp = spm.SentencePieceProcessor(model_file="test.model")
    with open("corpus.txt", "rb") as file:
        given = [line for line in file.read().split(b"\n") if "▁".encode() not in line]
    ids = sp.encode(given, return_type=int)
    back = sp.decode(ids, return_type=bytes)
    assert back == given
    assert sp.encode(given[0], return_type=str) == [
        p.decode() for p in sp.encode(given[0], return_type=bytes)
    ]
    return ids


def changing_a_model(spm: Any) -> Any:
    if spm is THEIRS:
        model_pb2: Any = THEIR_MODELS
    else:
        from cpbpe.compat.sentencepiece import sentencepiece_model_pb2 as model_pb2
    proto = model_pb2.ModelProto()
    with open("test.model", "rb") as file:
        proto.ParseFromString(file.read())
    piece = proto.pieces.add()
    piece.piece, piece.score = "<my_special_token>", 0.0
    piece.type = model_pb2.ModelProto.SentencePiece.Type.CONTROL
    sp = spm.SentencePieceProcessor(model_proto=proto.SerializeToString())
    with open("new.model", "wb") as file:
        file.write(proto.SerializeToString())
    other = spm.SentencePieceProcessor(model_file="new.model")
    assert other.piece_to_id("<my_special_token>") == len(sp) - 1
    return json_format.MessageToJson(proto)[:2000], Path("new.model").read_bytes()


def migrating(spm: Any) -> Any:
    """The notes for code that was written for older versions."""
    found: list[Any] = []
    data = zoo.model("user-defined-specials")
    sp = spm.SentencePieceProcessor.from_proto(data, return_type=str)
    found.append((sp.bos_id(), sp.eos_id(), sp.encode("a b")))
    for flag in ("add_bos", "add_eos"):
        with pytest.raises(ValueError, match=r"CONTROL|control symbol"):
            sp.encode("a", **{flag: True})
    sp = spm.SentencePieceProcessor.from_file("test.model", return_type=str)
    found.append((sp.encode("a b"), sp.encode("a b", out_type=int)))
    with pytest.raises(ValueError, match="return_type"):
        sp.encode("a", out_type=int, return_type=int)
    with pytest.raises(ValueError, match="immutable_proto"):
        sp.encode("a", return_type="immutable_proto")
    assert not hasattr(sp, "EncodeAsImmutableProto")
    return found


EXAMPLES = [
    first_steps,
    offsets,
    messages,
    batches,
    one_long_text,
    normalizing,
    training,
    training_with_a_normalizer,
    without_files,
    bytes_in_and_out,
    changing_a_model,
    migrating,
]


@tiers.slow_reference
@pytest.mark.parametrize(
    "example",
    tiers.some(EXAMPLES, [first_steps, offsets, batches, normalizing, without_files]),
    ids=lambda example: example.__name__,
)
def test_example(engine: str, example: Any) -> None:
    assert plain(example(OURS)) == plain(example(THEIRS))
