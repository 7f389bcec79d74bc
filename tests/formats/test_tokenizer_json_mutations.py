"""Small tokenizer.json files of every form, changed at random: what is read is what the library does.

A file that was changed is refused with one of two errors, or there is a tokenizer. If the library reads the
file, too, and nothing is said to differ, both give the same ids.
"""

import json
import random

import pytest

import cpbpe
from cpbpe import Tokenizer
from cpbpe.model.formats.tokenizer_json import read
from tests.support import budget
from tests.support.hostile import FORMS
from tests.support.json_files import dumped, ids_of, theirs
from tests.support.mutations import other_values

TEXTS = [
    "",
    "a",
    " a",
    "ab",
    "abab b",
    "  a  ab ▁b",
    "a\tb",
    "xaéab",
    "a<x>b",
    "bab<0x41>",
    "▁",
    " ",
    "abba aab",
]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_changed_values(form: str) -> None:
    chance = random.Random(f"{budget.SEED} {form}")
    data = dumped(FORMS[form]())
    outcomes = {"refused": 0, "exact": 0, "different": 0}
    for _ in range(budget.examples(40 if form == "punctuated" else 300)):
        outcomes[_tried(other_values(chance, data))] += 1
    assert outcomes["refused"] > 0 < outcomes["exact"], outcomes


@pytest.mark.parametrize("form", FORMS)
def test_changed_bytes(form: str) -> None:
    chance = random.Random(f"{budget.SEED} {form} bytes")
    data = dumped(FORMS[form]())
    for _ in range(budget.examples(200)):
        at = chance.randrange(len(data))
        end = at + chance.choice([0, 1, 1, 1, 2, 20])
        new = bytes(chance.choices(b'01259,:[]{}"\\ aebx\xe2\x96\x81u', k=chance.choice([0, 1, 1, 1, 3])))
        _tried(data[:at] + new + data[end:] if chance.random() < 0.95 else data[:at])


def _tried(data: bytes) -> str:
    """What became of a file. Where the two libraries differ without a word, this fails."""
    try:
        found = read(data)
    except cpbpe.ConversionError:
        return _tried_anyway(data)
    except cpbpe.ModelError:
        return "refused"
    tok = Tokenizer.from_spec(found.spec)
    try:
        other = theirs(data)
    except Exception:
        return "exact"  # the library refuses more than is needed to understand a file
    added_tokens = json.loads(data.decode("utf-8-sig")).get("added_tokens") or []
    spelled = [token["content"] for token in added_tokens]
    spelled = [token for token in spelled if token.encode() not in user_defined(tok)]
    for text in TEXTS:
        if not any(token in text for token in spelled):
            assert tok.encode(text) == ids_of(other, text), (text, data)
    return "exact"


def user_defined(tok: Tokenizer) -> set[bytes]:
    return {text for text, _, type in tok.spec.pieces if type == cpbpe.PieceType.USER_DEFINED}


def _tried_anyway(data: bytes) -> str:
    """Files that are not exact are read if one wants it; the texts in the error differ where both can say."""
    found = read(data, allow_differences=True)
    tok = Tokenizer.from_spec(found.spec)
    try:
        other = theirs(data)
    except Exception:
        return "different"
    for _, text in found.differences:
        if text is not None:
            assert tok.encode(text) != ids_of(other, text), (text, data)
    return "different"
