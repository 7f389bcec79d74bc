"""What loading a model imports: not what takes longer to import than the model takes to be loaded."""

import inspect

from cpbpe import Tokenizer
from tests.support import processes, zoo

SLOW = {
    *("dataclasses", "inspect", "numpy", "google.protobuf", "regex"),
    *("cpbpe.engine.protocol", "cpbpe.model.spec"),
}
LOAD = """
import builtins, sys, typing
before = set(sys.modules)
real = builtins.compile
def compile(source, *more, **options):
    assert not isinstance(source, str), source  # (Bytes are those of a module that was not compiled before.)
    return real(source, *more, **options)
builtins.compile = compile
import cpbpe
tok = cpbpe.load(sys.argv[1])
assert tok.decode(tok.encode("Hello", add_bos=True)) == "Hello"
print(*sorted(sys.modules.keys() - before))
"""
"""Prints the modules. Annotations must not be compiled, as those of a NamedTuple often are; see `options`."""


def test_loading_imports_little() -> None:
    loaded = processes.output("-c", LOAD, zoo.real_path(zoo.REAL[0])).split()
    assert "cpbpe.tokenizer.tokenizer" in loaded
    assert not SLOW & set(loaded)


def test_help_knows_all_options() -> None:
    """Though `inspect` is not there when they are described: it finds a function that has them all."""
    for name in ("encode", "decode", "encode_arrays", "align", "truncate"):
        call = getattr(Tokenizer, name)
        shown = inspect.signature(call)
        assert "prefix_after_special" in shown.parameters
        assert "options" not in shown.parameters
        assert next(iter(shown.parameters)) == "self"
        assert shown.return_annotation == call.__annotations__["return"]
        assert f"def {name}(" in inspect.getsource(call)
        assert inspect.getdoc(call).startswith(call.__doc__.split("\n")[0])  # type: ignore[union-attr]
