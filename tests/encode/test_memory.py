"""When there is not enough memory, every call either raises MemoryError or is right; the process goes on.

The calls run in processes of their own, whose address space is limited again and again to a little more than
is in use.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import CORE
from tests.support import budget, processes, wheels, zoo

if not CORE:
    pytest.skip("the compiled core is not there", allow_module_level=True)
if sys.platform != "linux":
    pytest.skip("the address space is limited and measured as on Linux", allow_module_level=True)

SCRIPT = """
import json, os, resource, sys
import numpy
import cpbpe

TEXT, CALLS = sys.argv[2], sys.argv[3:]
tok = cpbpe.load(sys.argv[1])
model = tok.to_bytes()
unit = "the quick brown fox, \\u00e9t\\u00e9 \\u4e2d\\u56fd \\U0001f999 zzzz 1234\\n"
text = {
    "words": unit * 6000,
    "one": "a" * 600000,
    "unknown": "".join(map(chr, range(0x4E00, 0x9F00))) * 8,
    "bytes": b"\\xff\\xc0a" * 200000,
    "short": "a" * 400,
}[TEXT]
texts = [text[i:i + 5000] for i in range(0, len(text), 5000)]
ids = tok.encode(unit * 6000)
many = [ids[i:i + 1000] for i in range(0, len(ids), 1000)]
pieces = tok.encode_pieces(unit * 4000)
tokens = [f"<token {i}>" for i in range(30000)]
small = "Hello world \\u00e9"
right = tok.encode(small)


def counted(text):
    from cpbpe.engine.training import make_counter
    from cpbpe.reference.training_values import CountSpec
    counter = make_counter(CountSpec(max_sentence_length=0))
    letters = lambda i: chr(97 + i // 676 % 26) + chr(97 + i // 26 % 26) + chr(97 + i % 26)
    words = " ".join(f"{letters(i)}{letters(i // 17576)}" for i in range(150000))
    counter.add([words.encode()])
    return counter.drain()


def learned(text):
    from cpbpe.engine.training import learn
    from cpbpe.reference.training_values import LearnSpec
    return learn(words, LearnSpec(400, 3, character_coverage=1.0)).merges


if "learn" in CALLS:
    words = counted(None)
calls = {
    "encode": tok.encode,
    "encode_array": tok.encode_array,
    "encode_array threads": lambda text: tok.encode_array(text, threads=2),
    "count": tok.count,
    "normalize": tok.normalize,
    "encode_pieces": tok.encode_pieces,
    "align": tok.align,
    "sample": lambda text: tok.encode(text, alpha=0.1, seed=1),
    "decode": lambda text: tok.decode(ids),
    "decode_bytes": lambda text: tok.decode_bytes(ids),
    "decode_array": lambda text: tok.decode(numpy.array(ids)),
    "decode_batch": lambda text: tok.decode_batch(many),
    "decode_pieces": lambda text: tok.decode_pieces(pieces),
    "encode_batch": lambda text: tok.encode_batch(texts, threads=2),
    "encode_arrays": lambda text: tok.encode_arrays(texts, threads=2),
    "count_batch": lambda text: tok.count_batch(texts),
    "align_batch": lambda text: tok.align_batch(texts, threads=2),
    "load": lambda text: cpbpe.Tokenizer.from_bytes(model).vocab_size,
    "many tokens": lambda text: tok.with_special_tokens(tokens).encode(tokens[-1], allowed_special="all"),
    "count words": counted,
    "learn": learned,
}
nolimit = resource.RLIM_INFINITY


def in_use():
    return int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()


def same(a, b):
    if isinstance(a, numpy.ndarray):
        return a.dtype == b.dtype and numpy.array_equal(a, b)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    if hasattr(a, "ids") and hasattr(a, "__dataclass_fields__"):
        return all(same(getattr(a, name), getattr(b, name)) for name in a.__dataclass_fields__)
    return a == b


for call in CALLS:
    function, outcomes = calls[call], []
    expected = function(text)
    for more in LIMITS:
        limit = in_use() + int(more * (1 << 20))
        resource.setrlimit(resource.RLIMIT_AS, (limit, nolimit))
        result = None
        try:
            result = function(text)
        except MemoryError:
            pass
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (nolimit, nolimit))
        outcomes.append("MemoryError" if result is None else "right" if same(result, expected) else "wrong")
        result = None
        assert tok.encode(small) == right and tok.decode(right) == small
    print(json.dumps([call, outcomes]), flush=True)
"""


def outcomes(model: Path, text: str, *calls: str, limits: list[float]) -> Iterator[tuple[str, list[str]]]:
    """For each call what came of it under each limit."""
    done = processes.run("-c", SCRIPT.replace("LIMITS", repr(limits)), model, text, *calls, env=ENVIRONMENT)
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 0, (lines, done.stderr.decode()[-2000:])
    for line in lines:
        call, found = json.loads(line)
        yield call, found


CALLS = [
    ("encode", "count", "normalize"),
    ("encode_array", "encode_array threads", "encode_pieces"),
    ("align", "sample"),
    ("decode", "decode_bytes", "decode_array", "decode_pieces", "decode_batch"),
    ("encode_batch", "encode_arrays", "count_batch", "align_batch"),
]
LIMITS = [0.0, 0.3, 1.1, 2.7, 6.0, 14.0, 60.0]

# So that memory that was given back is not there for the next call.
ENVIRONMENT = processes.environment(
    MALLOC_MMAP_THRESHOLD_="65536", MALLOC_TRIM_THRESHOLD_="65536", MALLOC_ARENA_MAX="1"
)


NEEDS_MUCH = {"normalize", "encode_array", "align", "decode_bytes", "decode_pieces"}
"""Calls whose buffers are not kept for the next one."""


@pytest.mark.slow
@pytest.mark.parametrize("calls", CALLS, ids=" ".join)
def test_memory_error_or_a_right_answer(calls: tuple[str, ...]) -> None:
    for call, found in outcomes(zoo.real_path(zoo.REAL[0]), "words", *calls, limits=LIMITS):
        assert set(found) <= {"MemoryError", "right"}, (call, found)
        assert "MemoryError" in found or call not in NEEDS_MUCH, (call, found)
        assert "right" in found, (call, found)


@pytest.mark.slow
def test_many_special_tokens(tmp_path: Path) -> None:
    """Of which each is an object of Python's: making one must not fail in any other way."""
    file, count = wheels.file("cl100k", tmp_path), budget.examples(20)
    limits = [60 * number / count for number in range(count)]
    ((_, found),) = outcomes(file, "short", "many tokens", limits=limits)
    assert set(found) == {"MemoryError", "right"}


def test_training() -> None:
    limits = [0.0, 0.7, 2.0, 5.0, 12.0, 40.0]
    for call, found in outcomes(
        zoo.real_path(zoo.REAL[0]), "short", "load", "count words", "learn", limits=limits
    ):
        assert set(found) == {"MemoryError", "right"}, (call, found)


RULES = """
import dataclasses, resource, sys
import numpy  # which cannot be imported without memory
import cpbpe
from cpbpe.text.charsmap_build import charsmap_from_rules

spec = cpbpe.load(sys.argv[1]).spec
normalizer = dataclasses.replace(spec.normalizer, charsmap=charsmap_from_rules([("a", "b " * 500_000)]))
tok = cpbpe.Tokenizer.from_spec(dataclasses.replace(spec, normalizer=normalizer))
in_use = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (in_use + (60 << 20), resource.RLIM_INFINITY))
for call in (tok.encode, tok.encode_array, tok.count, tok.normalize, tok.align, tok.encode_pieces):
    try:
        call("a" * 1000)
    except MemoryError as error:
        print(call.__name__, error)
    assert tok.normalize("xyz") == "\u2581xyz"
"""


def test_a_rule_that_makes_a_character_a_million() -> None:
    done = processes.run("-c", RULES, zoo.real_path(zoo.REAL[0]))
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    assert done.stdout.decode().count("there is not enough memory for this much text at once") == 6
