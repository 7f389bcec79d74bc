"""The core writes lists of ids itself; every list must be one like those that Python makes."""

import gc
import sys
from typing import Any

import numpy as np
import pytest

from cpbpe import Tokenizer
from tests.conftest import ENGINES
from tests.support import corpus, zoo
from tests.support.tokenizers import tokenizer, with_gaps

TEXT = "\n".join(corpus.lines()[:300])


@pytest.mark.slow
def test_references(engine: str) -> None:
    """Each item holds one reference to its int: none is lost, and none stays when the lists are gone."""
    tok = Tokenizer.from_bytes(zoo.model("llama"))
    ids = tok.encode(TEXT)
    number = max(ids)
    assert number > 256  # (From there on an int is an object of its own, not one of the interpreter's.)
    kept = next(id for id in ids if id == number)
    before = sys.getrefcount(kept)
    many = [tok.encode(TEXT) for _ in range(50)]
    same = sum(id is kept for some in many for id in some)
    assert sys.getrefcount(kept) == before + same
    del many
    assert sys.getrefcount(kept) == before


def test_lists_are_ordinary(engine: str) -> None:
    """They grow, shrink, are sorted and collected as any other."""
    tok = tokenizer("llama", engine)
    ids = tok.encode(TEXT)
    assert type(ids) is list
    assert gc.is_tracked(ids)
    assert ids == tok.encode_array(TEXT).tolist() == list(map(int, ids))
    assert sys.getsizeof(ids) <= sys.getsizeof([0] * len(ids)) + 16
    copied = list(ids)
    ids.extend(copied)
    del ids[: len(copied)]
    ids.sort()
    ids.append(-1)
    ids.insert(0, -2)
    assert ids == [-2, *sorted(copied), -1]
    assert tok.encode("") == []
    nested: list[Any] = [*tok.encode_batch(["", TEXT, ""])]
    nested.append(nested)
    assert nested[1] == copied
    del nested
    gc.collect()


def test_added_tokens_are_no_kept_objects(engine: str) -> None:
    """Their ids are above those of pieces. The core keeps the ints of pieces' ids, and none for these."""
    tok = with_gaps(zoo.model("llama"), engine)
    text = "<|a|>x<|c|>" * 50
    ids = tok.encode(text, allowed_special="all")
    assert ids == tok.encode_array(text, allowed_special="all").tolist()
    assert max(ids) == tok.vocab["<|c|>"]
    assert np.array(ids).dtype == np.int64


def test_engines_agree_on_lists() -> None:
    lists = [tokenizer("llama", engine).encode_batch(corpus.lines()[:100]) for engine in ENGINES]
    assert all(some == lists[0] for some in lists)
