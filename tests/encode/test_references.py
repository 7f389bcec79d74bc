"""A list of ids or pieces holds one reference to each of its items, and gives it back.

The core counts references without asking the interpreter (`core/python/src/items.rs`). One too few would end
the process some day, and one too many would keep memory.
"""

import sys
from collections import Counter
from collections.abc import Callable

import pytest

import cpbpe
from tests.bytes.models import WORDS, model
from tests.support.tokenizers import tokenizer

TEXT = WORDS.decode() + "Hello world, the quick brown fox: été été 12345<|added|>\n" * 3
IMMORTAL = 3 << 30
"""An object with this many references lives forever, from Python 3.12 on, and these are not counted."""
ADDED = {"<|added|>": 1_000_000}
CALLS: dict[str, Callable[[cpbpe.Tokenizer], list[list[int]] | list[list[str]]]] = {
    "encode": lambda tok: [tok.encode(TEXT)],
    "encode_batch": lambda tok: tok.encode_batch([TEXT, "", TEXT[7:]]),
    "encode_pieces": lambda tok: [tok.encode_pieces(TEXT)],
    "added": lambda tok: [tok.with_special_tokens(ADDED).encode(TEXT, allowed_special="all")],
}


def is_ours(item: int | str) -> bool:
    """Whether the interpreter does not use an object for itself, too, so that its references come and go."""
    return sys.version_info >= (3, 12) or (item > 256 if isinstance(item, int) else len(item) > 1)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("family", ["sentencepiece", "bytes"])
def test_items_have_one_reference_for_each_place(name: str, family: str, engine: str) -> None:
    tok = cpbpe.Tokenizer.from_spec(model()) if family == "bytes" else tokenizer("tokenizer.model.v1", engine)
    first = CALLS[name](tok)
    items = [item for item in {id(item): item for row in first for item in row}.values() if is_ours(item)]
    assert len(items) > 20
    before = [sys.getrefcount(item) for item in items]
    second = CALLS[name](tok)
    after = [sys.getrefcount(item) for item in items]
    places = Counter(id(item) for row in second for item in row)
    more = [places[id(item)] for item in items]
    assert after == [was if was >= IMMORTAL else was + one for was, one in zip(before, more, strict=True)]
    assert second == first
    del second
    assert [sys.getrefcount(item) for item in items] == before
