"""The messages of cpbpe.compat.sentencepiece are current, and on the wire those of sentencepiece."""

from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2
from sentencepiece import sentencepiece_model_pb2 as their_model_pb2
from sentencepiece import sentencepiece_pb2 as their_pb2

from cpbpe.compat.sentencepiece import sentencepiece_model_pb2, sentencepiece_pb2
from tests.support import protos, zoo

ROOT = Path(__file__).parents[2]
FILES = {
    "cpbpe_compat_text.proto": (sentencepiece_pb2, their_pb2),
    "cpbpe_compat_model.proto": (sentencepiece_model_pb2, their_model_pb2),
}


def described(module: Any) -> descriptor_pb2.FileDescriptorProto:
    found = descriptor_pb2.FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(found)
    return found


@pytest.mark.parametrize("name", FILES)
def test_generated_code_is_current(name: str, tmp_path: Path) -> None:
    assert protos.generated(FILES[name][0]) == protos.compiled(name, tmp_path)


@pytest.mark.parametrize("name", FILES)
def test_wire_compatible_with_sentencepiece(name: str) -> None:
    """But for the package, the options of fields and the order, the two files are equal."""

    def plain(module: Any) -> dict[str, object]:
        file = described(module)
        found: dict[str, object] = {}
        waiting = [(message.name, message) for message in file.message_type]
        while waiting:
            path, message = waiting.pop()
            waiting += [(f"{path}.{nested.name}", nested) for nested in message.nested_type]
            for enum in message.enum_type:
                found[f"{path}.{enum.name}"] = sorted((value.name, value.number) for value in enum.value)
            found[path] = (
                sorted(
                    (
                        field.number,
                        field.name,
                        field.type,
                        field.label,
                        field.default_value,
                        field.type_name.removeprefix(f".{file.package}"),
                    )
                    for field in message.field
                ),
                sorted((reach.start, reach.end) for reach in message.extension_range),
            )
        return found

    ours, theirs = FILES[name]
    assert plain(ours) == plain(theirs)
    assert described(ours).package == "cpbpe.compat"


@pytest.mark.parametrize("name", ["llama", "special", "denormalizer", zoo.REAL[0]])
def test_models_read_the_same(name: str) -> None:
    data = zoo.model(name)
    ours = sentencepiece_model_pb2.ModelProto.FromString(data)
    theirs = their_model_pb2.ModelProto.FromString(data)  # type: ignore[attr-defined]
    assert str(ours) == str(theirs)
    assert ours.SerializeToString() == theirs.SerializeToString()
