"""The generated protobuf code is current, wire-compatible, and shares a process with its relatives."""

from functools import cache
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from sentencepiece import sentencepiece_model_pb2 as their_pb2

from cpbpe import Tokenizer
from cpbpe.model.formats import model_pb2, sentencepiece
from cpbpe.model.formats.sentencepiece import piece_messages
from cpbpe.model.spec import Pieces, PieceType
from tests.support import processes, protos, tiers, zoo
from tests.support.budget import MUCH

pytestmark = pytest.mark.usefixtures("engine")
ROOT = Path(__file__).parents[2]


def test_generated_code_is_current(tmp_path: Path) -> None:
    assert protos.generated(model_pb2) == protos.compiled("cpbpe_model.proto", tmp_path)


def _wire(descriptor: Any) -> dict[int, tuple[object, ...]]:
    """What of a message shows on the wire: numbers, names, kinds, repetition, defaults, enums."""

    def kind(field: Any) -> object:
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            return _wire(field.message_type)
        if field.type == FieldDescriptor.TYPE_ENUM:
            return {value.name: value.number for value in field.enum_type.values}
        return (
            "text" if field.type in (FieldDescriptor.TYPE_BYTES, FieldDescriptor.TYPE_STRING) else field.type
        )

    def default(field: Any) -> object:
        value = field.default_value
        return value.encode() if isinstance(value, str) else value

    return {
        field.number: (field.name, kind(field), field.is_repeated, default(field))
        for field in descriptor.fields
    }


def test_wire_compatible_with_sentencepiece() -> None:
    ours = _wire(model_pb2.ModelProto.DESCRIPTOR)
    theirs = _wire(their_pb2.DESCRIPTOR.message_types_by_name["ModelProto"])
    assert ours.pop(4)[0] == "self_test_data"  # gone from theirs, kept in ours
    theirs.pop(4, None)
    assert ours == theirs


@tiers.models()
def test_unknown_fields_survive(name: str) -> None:
    """Fields from the future, at every level, come out of save as they went in."""
    unknown = b"\xc2\x3e\x03abc"  # field 1000, three bytes
    piece = b"\x0a\x05qzqzq\x15\0\0\0\0" + unknown
    data = unknown + zoo.model(name) + b"\x0a" + bytes([len(piece)]) + piece + unknown
    assert Tokenizer.from_bytes(data).to_bytes() == data


IMPORTS = [
    "import cpbpe.model.formats.model_pb2",
    "import sentencepiece, sentencepiece.sentencepiece_model_pb2",
    "import transformers.utils.sentencepiece_model_pb2_new",
]
LOAD = "import cpbpe, sys; cpbpe.load(sys.argv[1]).encode('Hello')"


ORDERS = [*(permutations(IMPORTS, 2) if MUCH else ()), *permutations(IMPORTS, 3)]


@pytest.mark.parametrize("order", tiers.some(ORDERS, ORDERS[:1]), ids=str)
def test_neighbours_in_one_process(order: tuple[str, ...]) -> None:
    """In every order; but for pairs that clash with each other without us."""
    if _clash(tuple(line for line in order if "cpbpe" not in line)):
        order = tuple(line for line in order if "transformers" not in line)
    processes.output("-c", "\n".join([*order, LOAD]), zoo.real_path(zoo.REAL[0]))


@cache
def _clash(lines: tuple[str, ...]) -> bool:
    return processes.run("-c", "\n".join(lines)).returncode != 0


def test_pieces_are_written_as_protobuf_writes_them() -> None:
    random = Random(1)
    lengths = [0, 1, 3, 99, 100, 101, 118, 119, 120, 121, 127, 128, 300, 20_000]
    scores = [0.0, -0.0, -1.0, 1.5, float("inf"), -1e30]
    for count in (0, 1, 2, 50, 500):
        texts = [random.randbytes(random.choice(lengths)) for _ in range(count)]
        kinds = [random.choice(list(PieceType)) for _ in texts]
        pieces = Pieces.of_lists(texts, random.choices(scores, k=count), kinds)
        message = sentencepiece.messages().ModelProto()
        for text, score, kind in pieces:
            more = {} if kind == PieceType.NORMAL else {"type": kind}
            message.pieces.add(piece=text, score=score, **more)
        assert piece_messages(pieces) == message.SerializeToString()
