"""Everything that makes a model invalid is refused, by cpbpe with a message, by sentencepiece too."""

import io
import pickle
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import sentencepiece

import cpbpe
from tests.support import charsmaps, tiers, zoo
from tests.support.budget import MUCH
from tests.support.zoo import Piece, Proto

pytestmark = pytest.mark.usefixtures("engine")


def _append(piece: bytes, type: Piece.Type = Piece.NORMAL) -> Callable[[Proto], None]:
    return lambda proto: zoo.add(proto, [piece], type)


def _duplicate(proto: Proto) -> None:
    proto.pieces.add(piece=proto.pieces[300].piece, score=-1)


def _no_unknown(proto: Proto) -> None:
    proto.pieces[0].type = Piece.NORMAL


def _byte_without_fallback(proto: Proto) -> None:
    zoo.add(proto, ["<0x41>"], Piece.BYTE)


def _missing_bytes(proto: Proto) -> None:
    for piece in proto.pieces:
        if piece.piece in (b"<0x00>", b"<0x41>", b"<0xFF>", b"<0xFE>"):
            piece.type = Piece.NORMAL


def _charsmap(blob: bytes) -> Callable[[Proto], None]:
    def edit(proto: Proto) -> None:
        proto.normalizer_spec.precompiled_charsmap = blob

    return edit


def _unit(at: int, value: int) -> bytes:
    """A good charsmap with one unit of its trie overwritten."""
    blob = bytearray(charsmaps.make({b"a": b"b"}))
    struct.pack_into("<I", blob, 4 + 4 * at, value)
    return bytes(blob)


def _denormalizer(proto: Proto) -> None:
    proto.denormalizer_spec.precompiled_charsmap = b"short"


GOOD = charsmaps.make({b"a": b"b"})

# (what it is called, the model it starts from, what is done to it, the message; a number is that of a public
# report about sentencepiece, which crashed. CVE-2026-1260 does not say what was wrong with its model.)
INVALID: list[tuple[str, str, Callable[[Proto], None], str]] = [
    ("empty piece", "llama", _append(b""), "piece 700, '', is empty"),
    ("long piece", "llama", _append(b"x" * 8000), f"piece 700, '{'x' * 40}...', is 8000 bytes long; a piece has fewer than 8000"),
    ("very long piece (sentencepiece #1263)", "llama", _append(b"x" * 500_000), f"piece 700, '{'x' * 40}...', is 500000 bytes long; a piece has fewer than 8000"),
    ("NUL inside", "llama", _append(b"a\0b"), "piece 700, 'a\\x00b', contains a NUL character (U+0000)"),
    ("NUL alone, no fallback", "defaults", _append(b"\0"), "piece 600, '\\x00', contains a NUL character (U+0000)"),
    ("two equal pieces", "llama", _duplicate, "piece 700, 'ab', occurs twice: it is also piece 300"),
    ("two unknowns", "llama", _append(b"<u>", Piece.UNKNOWN), "piece 700, '<u>', has the type UNKNOWN, and so has piece 0; only one piece can have it"),
    ("no unknown", "defaults", _no_unknown, "no piece has the type UNKNOWN and byte_fallback is off; one of the two is needed"),
    ("BYTE without fallback", "defaults", _byte_without_fallback, "piece 600, '<0x41>', has the type BYTE, but the model's byte_fallback is off"),
    ("BYTE with a wrong name", "llama", _append(b"<0xff>", Piece.BYTE), "piece 700, '<0xff>', has the type BYTE, but is not one of <0x00> to <0xFF>"),
    ("BYTEs missing", "llama", _missing_bytes, "byte_fallback is on, but 4 of the 256 BYTE pieces are missing: <0x00>, <0x41>, <0xFE>, ..."),
    ("charsmap too short", "llama", _charsmap(b"1234"), "normalizer_spec.precompiled_charsmap is malformed: 4 bytes are too few for a trie"),
    ("charsmap larger than itself", "llama", _charsmap(GOOD[:1028]), "normalizer_spec.precompiled_charsmap is malformed: a trie of 1024 bytes in a blob of 1028"),
    ("charsmap of an odd size", "llama", _charsmap(struct.pack("<I", 1028) + bytes(2000)), "normalizer_spec.precompiled_charsmap is malformed: the trie's size, 1028, is not a multiple of 1024"),
    ("charsmap of size 0", "llama", _charsmap(bytes(2000)), "normalizer_spec.precompiled_charsmap is malformed: the trie's size, 0, is not a multiple of 1024"),
    ("charsmap without a last NUL", "llama", _charsmap(GOOD + b"x"), "normalizer_spec.precompiled_charsmap is malformed: the last replacement does not end in NUL"),
    ("charsmap whose root is a leaf (sentencepiece #1272)", "llama", _charsmap(_unit(0, 1 << 31)), "normalizer_spec.precompiled_charsmap is malformed: unit 0 of the trie is not valid"),
    ("charsmap whose root has no children", "llama", _charsmap(_unit(0, 0)), "normalizer_spec.precompiled_charsmap is malformed: unit 0 of the trie is not valid"),
    ("charsmap that points outside", "llama", _charsmap(_unit(96, 97 | 1 << 20)), "normalizer_spec.precompiled_charsmap is malformed: unit 96 of the trie is not valid"),
    ("charsmap that points far outside (sentencepiece #1269)", "llama", _charsmap(_unit(0, 0xFFFFFE00)), "normalizer_spec.precompiled_charsmap is malformed: unit 0 of the trie is not valid"),
    ("charsmap value outside (sentencepiece #1265)", "llama", _charsmap(_unit(200, 1 << 31 | 2)), "normalizer_spec.precompiled_charsmap is malformed: unit 200 of the trie is not valid"),
    ("charsmap leaf that is no leaf", "llama", _charsmap(_unit(5, 1 << 10 | 1 << 8 | 7)), "normalizer_spec.precompiled_charsmap is malformed: unit 5 of the trie is not valid"),
    ("denormalizer's charsmap", "llama", _denormalizer, "denormalizer_spec.precompiled_charsmap is malformed: a trie of 1919903859 bytes in a blob of 5"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("base", "edit", "message"), [row[1:] for row in INVALID], ids=[row[0] for row in INVALID]
)
def test_invalid_models(base: str, edit: Callable[[Proto], None], message: str) -> None:
    proto = zoo.parse(zoo.model(base))
    edit(proto)
    data = proto.SerializeToString()
    with pytest.raises(cpbpe.ModelError) as caught:
        cpbpe.Tokenizer.from_bytes(data)
    assert str(caught.value) == message
    with pytest.raises(RuntimeError):
        sentencepiece.SentencePieceProcessor(model_proto=data)


def test_the_error_names_the_piece() -> None:
    proto = zoo.parse(zoo.model("llama"))
    zoo.add(proto, [b"a\0b"])
    with pytest.raises(cpbpe.ModelError) as caught:
        cpbpe.Tokenizer.from_bytes(proto.SerializeToString())
    copy = pickle.loads(pickle.dumps(caught.value))
    for error in (caught.value, copy):
        assert (error.piece, error.id) == (b"a\0b", 700)


@pytest.mark.parametrize("kind", ["UNIGRAM", "WORD", "CHAR"])
def test_other_model_types_are_refused_by_name(kind: str) -> None:
    proto = zoo.parse(zoo.model("llama"))
    proto.trainer_spec.model_type = type(proto.trainer_spec).ModelType.Value(kind)  # type: ignore[assignment]
    with pytest.raises(cpbpe.ModelError, match=f"^the model is {kind}, and cpbpe reads BPE models only"):
        cpbpe.Tokenizer.from_bytes(proto.SerializeToString())


def test_no_model_type_means_unigram() -> None:
    proto = zoo.parse(zoo.model("llama"))
    proto.trainer_spec.ClearField("model_type")
    with pytest.raises(cpbpe.ModelError, match=r"states no type, which makes it UNIGRAM, .*bpe\)$"):
        cpbpe.Tokenizer.from_bytes(proto.SerializeToString())
    proto.ClearField("trainer_spec")
    with pytest.raises(cpbpe.ModelError, match=r"no trainer_spec, is it cut off\?$"):
        cpbpe.Tokenizer.from_bytes(proto.SerializeToString())


HTML = b"\n<!DOCTYPE html>\n<html><head><title>Sign in</title>"
NOT_MODELS: list[tuple[str, bytes, str]] = [
    ("empty", b"", "the data is empty"),
    ("git lfs pointer", b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 493443\n", "a Git LFS pointer"),
    ("tokenizer_config.json", b'{\n "tokenizer_class": "LlamaTokenizer"}', "a tokenizer_config.json"),
    ("tekken.json", b'{"config": {}, "vocab": []}', "a tekken.json"),
    ("other json", b"[1, 2]", "it is JSON"),
    ("json with a mark", b'\xef\xbb\xbf{"a": 1}', "it is JSON"),
    ("broken json", b'{"a": ', "begins like JSON"),
    ("html", HTML, "an HTML page"),
    ("html in capitals", b"<HTML><BODY>", "an HTML page"),
    ("merges", "Ġ t\nh e\n".encode(), "a text of merges"),
    ("zip", b"PK\x03\x04" + bytes(50), "a zip archive"),
    ("gzip", b"\x1f\x8b\x08" + bytes(50), "compressed with gzip"),
    ("zstd", b"\x28\xb5\x2f\xfd" + bytes(50), "compressed with zstd"),
    ("xz", b"\xfd7zXZ\x00" + bytes(50), "compressed with xz"),
    ("safetensors", struct.pack("<Q", 40) + b'{"__metadata__":{}}', "a safetensors file"),
    ("a message without pieces", b"\x12\x02\x18\x02", "holds no pieces"),
    ("noise", b"\xff\xfe\xfd" * 20, "not a protobuf message"),
    ("prose", b"Once upon a time there was a tokenizer.", "it is text; give the path of a model, such as"),
    ("two words", b"Hello world\n", "it is text; give the path"),
    ("lines of two words", b"the cat\nsat on\n", "it is text; give the path"),
    ("a corpus of records", b'{"text": "a"}\n{"text": "b"}\n', "it is text; give the path"),
    ("prose in Latin-1", "Il était une fois un modèle.".encode("latin-1"), "not a protobuf message"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "message"), [row[1:] for row in NOT_MODELS], ids=[row[0] for row in NOT_MODELS]
)
def test_what_is_no_model_is_named(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.model"
    for content in (data, data + b"\n" * 5000 if data else data):
        path.write_bytes(content)
        with pytest.raises(cpbpe.ModelError, match=r": not a SentencePiece model: ") as caught:
            cpbpe.load(path)
        if content == data:
            assert message in str(caught.value)
        with pytest.raises(cpbpe.ModelError):
            cpbpe.load(io.BytesIO(content))


def test_errors_name_the_file(tmp_path: Path) -> None:
    broken = tmp_path / "broken.model"
    broken.write_bytes(zoo.model("llama")[:1000])
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "tokenizer.model").write_bytes(broken.read_bytes())
    for path, name in ((broken, "broken.model"), (tmp_path / "folder", "folder")):
        for call in (cpbpe.load, cpbpe.Tokenizer, cpbpe.edit, lambda path: cpbpe.convert(path, "a.json")):
            with pytest.raises(cpbpe.ModelError, match=f"{name}: "):
                call(path)
    with pytest.raises(cpbpe.ModelError, match=r"^not a Sent"), broken.open("rb") as file:
        cpbpe.load(file)


def test_truncation_is_named_wherever_it_happens() -> None:
    """Cut at every byte of the beginning and the end, and here and there between."""
    data = zoo.model("llama")
    for length in [*range(1, 400), *range(400, len(data) - 400, 97), *range(len(data) - 400, len(data))]:
        try:
            cpbpe.Tokenizer.from_bytes(data[:length])
        except cpbpe.ModelError as error:
            message = str(error)
            assert "truncated" in message or "cut off" in message
        else:
            # Cut exactly before the denormalizer or an optional field at the end: still a model.
            sentencepiece.SentencePieceProcessor(model_proto=data[:length])


SHARES = range(32)


@pytest.mark.parametrize("share", tiers.some(SHARES, SHARES[:1]))
def test_no_bytes_crash(share: int) -> None:
    """Any byte of a model may be wrong: the result is a tokenizer or a ModelError, never anything else."""
    data = bytearray(zoo.model("nfkc"))
    step = 1 if MUCH else 4
    for at in [*range(0, 600, step), *range(600, len(data), 601 * step)][share :: len(SHARES)]:
        for value in (0, 0x80, 0xFF, data[at] ^ 1)[at // step % step :: step]:
            changed = bytes(data[:at]) + bytes([value]) + bytes(data[at + 1 :])
            try:
                tok = cpbpe.Tokenizer.from_bytes(changed)
            except cpbpe.ModelError:
                continue
            tok.decode(tok.encode("Ｈello ① wörld"))
