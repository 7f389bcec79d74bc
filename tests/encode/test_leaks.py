"""No call keeps memory: after many of the same calls there is as much in use as before.

With `CPBPE_EXAMPLES=20000` a million calls are made in all.
"""

import ctypes
import gc
import json
import pickle
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import islice, repeat
from pathlib import Path

import pytest

import cpbpe
from tests.conftest import CORE
from tests.encode.test_growth import CALLS, model
from tests.support import budget, tiers, zoo

if not CORE:
    pytest.skip("the compiled core is not there", allow_module_level=True)

TEXT = "The cat sat, 中文 <|im_start|>\u2581 é\n\n🙂 42  'll <s><s>"
Call = Callable[[], object]


FIELDS = ("arena", "ordblks", "smblks", "hblks", "mapped", "usmblks", "fsmblks", "used", "free", "keepcost")


class InUse(ctypes.Structure):
    """What the library of C says about its memory (`mallinfo2`)."""

    _fields_ = [(name, ctypes.c_size_t) for name in FIELDS]


def in_use() -> tuple[int, int]:
    """The memory blocks of Python, and the bytes of everything else, if the library can say it."""
    gc.collect()
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    if library is None or not hasattr(library, "mallinfo2"):
        return sys.getallocatedblocks(), 0
    library.mallinfo2.restype = InUse
    found = library.mallinfo2()
    return sys.getallocatedblocks(), found.used + found.mapped


def failing(call: Call) -> Call:
    def fails() -> None:
        with suppress(ValueError, TypeError, KeyError, IndexError):
            call()
            raise AssertionError(call)

    return fails


def calls(family: str, folder: Path) -> dict[str, Call]:
    """All calls on a text, those that raise errors, and those that make tokenizers."""
    tok, small = model(family), zoo.model("llama")
    found: dict[str, Call] = {name: partial(call, tok, TEXT) for name, call in CALLS.items()}
    found |= {
        "encode, refused": failing(partial(CALLS["encode, refused"], tok, TEXT)),
        "str": lambda: str(tok),
        "vocab": lambda: list(islice(tok.vocab, 50)),
        "wrong: type": failing(lambda: tok.encode(5)),  # type: ignore[arg-type]
        "wrong: id": failing(lambda: tok.decode([1 << 30])),
        "wrong: ids": failing(lambda: tok.decode_batch([[1], [-1]])),
        "wrong: piece": failing(lambda: tok.id_to_piece(1 << 30)),
        "wrong: text in a batch": failing(lambda: tok.encode_batch([TEXT, None])),  # type: ignore[list-item]
    }
    if family == "characters":
        (folder / "m.json").write_text(json.dumps({"version": "1.0", "model": {"type": "BPE"}}))
        found |= {
            "load": lambda: cpbpe.Tokenizer.from_bytes(small).encode(TEXT),
            "load, wrong": failing(lambda: cpbpe.Tokenizer.from_bytes(small[:-9])),
            "load, wrong file": failing(lambda: cpbpe.load(folder / "m.json")),
            "pickle": lambda: pickle.loads(pickle.dumps(tok)).encode("a"),
            "added tokens": lambda: tok.with_special_tokens(["<x>"]).encode("a<x>", allowed_special="all"),
            "train": lambda: cpbpe.train([TEXT], vocab_size=290, byte_fallback=True),
            "train, bytes": lambda: cpbpe.train([TEXT], vocab_size=270, preset="gpt4"),
            "count": lambda: cpbpe.WordCounts.build([TEXT]),
        }
    return found


@tiers.slow
@pytest.mark.parametrize("family", ["characters", "bytes"])
def test_nothing_is_kept(family: str, tmp_path: Path) -> None:
    """For each call, less than a block of Python or four bytes each time.

    Python's caches grow at first: by a thousand blocks during the first thousand calls that count words.
    """
    most, kept = budget.examples(700), []
    for name, call in calls(family, tmp_path).items():
        count = max(most // (20 if name in SLOW else 1), 20)
        for _ in repeat(None, max(count // 2, 20)):
            call()
        before = in_use()
        for _ in repeat(None, count):
            call()
        blocks, size = (after - amount for after, amount in zip(in_use(), before, strict=True))
        if blocks > 400 + count // 4 or size > 4096 + 4 * count:
            kept.append((name, count, blocks, size))
    assert not kept


SLOW = ("load", "pickle", "added tokens", "train", "train, bytes", "count")
"""Calls that take milliseconds."""
