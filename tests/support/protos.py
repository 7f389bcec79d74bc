"""What protoc makes of a file in proto/, and what the generated code of the package holds."""

import ast
import re
from pathlib import Path
from types import ModuleType

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from grpc_tools import protoc

FOLDER = Path(__file__).parents[2] / "proto"


def compiled(name: str, folder: Path) -> FileDescriptorProto:
    """The description of a file in proto/, compiled now. Generated code leaves out the names for JSON."""
    written = folder / "set"
    assert protoc.main(["", f"-I{FOLDER}", f"--descriptor_set_out={written}", name]) == 0
    file = FileDescriptorSet.FromString(written.read_bytes()).file[0]
    for extension in file.extension:
        extension.ClearField("json_name")
    messages = list(file.message_type)
    while messages:
        message = messages.pop()
        messages += message.nested_type
        for field in message.field:
            field.ClearField("json_name")
    return file


def generated(module: ModuleType) -> FileDescriptorProto:
    """The description in the source of a generated module."""
    source = Path(module.__file__ or "").read_text()
    literal = re.search(r"AddSerializedFile\((b'.*')\)\n", source)
    assert literal is not None
    return FileDescriptorProto.FromString(ast.literal_eval(literal[1]))
