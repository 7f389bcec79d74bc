"""Every option in every call that decodes: see `test_option_matrix`."""

import random
import re
from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
import pytest

from cpbpe import Tokenizer
from cpbpe.text.utf8 import repair
from tests.encode.test_option_matrix import MODELS, TEXTS, Call, combined, said, tokenizer, ways
from tests.support import tiers, zoo
from tests.support.budget import MUCH, SEED

ROWS = 24 if MUCH else 9
DECODE_VALUES: dict[str, list[Any]] = {
    "skip_special_tokens": [None, True, False],
    "keep_prefix_space": [True],
    "prefix_after_special": [False],
}


def check_decode(call: Call, rows: list[list[int]], texts: list[str], tok: Tokenizer) -> None:
    for ids, text in zip(rows, texts, strict=True):
        for given in (ids, tuple(ids), iter(ids), np.array(ids, np.int64), np.array(ids, np.uint32)):
            assert call(given) == text


def check_decode_bytes(call: Call, rows: list[list[int]], texts: list[str], tok: Tokenizer) -> None:
    for ids, text in zip(rows, texts, strict=True):
        for given in (ids, iter(ids), np.array(ids, np.uint32)):
            assert repair(call(given)).decode() == text


def check_decode_batch(call: Call, rows: list[list[int]], texts: list[str], tok: Tokenizer) -> None:
    for threads in (None, 1, 3):
        for given in (rows, iter(rows), [np.array(ids, np.int64) for ids in rows]):
            assert call(given, threads=threads) == texts
        assert call([], threads=threads) == []


def check_decode_pieces(call: Call, rows: list[list[int]], texts: list[str], tok: Tokenizer) -> None:
    for ids, text in zip(rows, texts, strict=True):
        pieces = [tok.id_to_piece(id) for id in ids]
        assert call(pieces) == call([piece.encode() for piece in pieces]) == call(iter(pieces)) == text


def check_stream_decoder(call: Call, rows: list[list[int]], texts: list[str], tok: Tokenizer) -> None:
    for ids, text in zip(rows, texts, strict=True):
        stream = call()
        assert "".join(map(stream.push, ids)) + stream.flush() == text
        stream = call()
        assert stream.push(ids) + stream.flush() == text
        at = len(ids) // 2
        before, after = call(), call(ids[:at])
        shown = before.push(ids[:at])
        assert shown + after.push(ids[at:]) + after.flush() == text


DECODE_CHECKS: dict[str, Callable[[Call, list[list[int]], list[str], Tokenizer], None]] = {
    "decode": check_decode,
    "decode_bytes": check_decode_bytes,
    "decode_batch": check_decode_batch,
    "decode_pieces": check_decode_pieces,
    "stream_decoder": check_stream_decoder,
}


@tiers.engines
@tiers.models(MODELS)
def test_decoding(name: str, engine: str) -> None:
    tok = tokenizer(name, engine)
    special = list(tok.vocab.special_tokens.values())
    plain = [id for id in range(tok.vocab.piece_count) if id not in special]
    rng = random.Random(SEED)
    rows = [[], *(tok.encode(text, allowed_special="all") for text in TEXTS)]
    rows += [
        rng.choices(rng.choice([plain, plain[:300], special, plain[-99:] + special]), k=9)
        for _ in range(ROWS)
    ]
    for options in chain(combined(DECODE_VALUES, 1), combined(DECODE_VALUES, 2)):
        texts = [tok.decode(ids, **options) for ids in rows]
        for way in ways(tok, options, None):
            for call, check in DECODE_CHECKS.items():
                with said(f"{call}() with {options}"):
                    if call == "stream_decoder" and name in zoo.DENORMALIZERS:
                        with pytest.raises(ValueError, match="has a denormalizer"):
                            way(call)()
                    else:
                        check(way(call), rows, texts, tok)


def shown_by_hand(tok: Tokenizer, ids: list[int], skip: bool | None) -> list[str]:
    """The special tokens that decoding shows."""
    added = set(tok.vocab.added_tokens.values())
    names = {id: name for name, id in tok.vocab.special_tokens.items()}
    return [names[id] for id in ids if id in names and (skip is False or (skip is None and id in added))]


@tiers.engines
@pytest.mark.parametrize("name", ["llama", "defaults"])
def test_what_decoding_shows(name: str, engine: str) -> None:
    tok = tokenizer(name, engine)
    ids = [id for pair in zip(tok.vocab.special_tokens.values(), [300] * 99, strict=False) for id in pair]
    for skip in (None, True, False):
        found = tok.decode(ids, skip_special_tokens=skip)
        letter = tok.vocab.id_to_bytes(300).decode()
        shown = shown_by_hand(tok, ids, skip)
        assert [
            part
            for part in re.split("(" + "|".join(map(re.escape, tok.vocab.special_tokens)) + ")", found)
            if part in tok.vocab.special_tokens
        ] == shown
        assert found.count(letter.strip()) >= len(ids) // 2
