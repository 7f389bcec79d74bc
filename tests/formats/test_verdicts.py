"""Whatever the bytes of a file are: cpbpe loads it if sentencepiece does, and then every call works.

There are two readers of model files, the core's and protobuf, and one verdict: a file that the first accepts
and the second refuses would fail later, in a call that needs its settings. Two differences from sentencepiece
are intended: models that are not BPE; and tokens that cpbpe added (field 41700) and that are damaged. For
sentencepiece there is no such field, so `cpbpe.compat.sentencepiece` passes over it. One more difference is
protobuf's own: it does not mind a field with the number 0 in an unknown group, a kind of field that no model
has. So no case here has one.
"""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import pytest
import sentencepiece

import cpbpe
from cpbpe.compat import sentencepiece as compat
from cpbpe.compat.sentencepiece.results import varint
from tests.conftest import ENGINES
from tests.support import budget, hostile, tokenizers, zoo
from tests.support.hostile import field

TEXT = "abra cadabra Ab b~é 🦙"
PARTS = 8


# --- Models ---------------------------------------------------------------------------------------


@cache
def models() -> list[bytes]:
    return [
        hostile.tiny(),
        hostile.with_fallback(),
        hostile.with_added_tokens(),
        zoo.model("tsv-keep-spaces"),
    ]


# --- Files that are not quite models ----------------------------------------------------------------


NUMBERS = (0, 1, 2, 3, 4, 5, 6, 24, 35, 44, 45, 300, 41700, 41700, 41700, (1 << 29) - 1)


def fields(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Where the fields of a file lie, which all have a length: that of the length, the body and its end."""
    at = 0
    while at < len(data):
        begin = at
        while data[begin] >= 0x80:
            begin += 1
        begin += 1
        sizes = begin
        size = shift = 0
        while True:
            size |= (data[begin] & 0x7F) << shift
            begin += 1
            shift += 7
            if data[begin - 1] < 0x80:
                break
        yield sizes, begin, begin + size
        at = begin + size


def random_field(rng: random.Random, numbers: Sequence[int] = NUMBERS) -> bytes:
    """A field that may be known, or not, or be no field."""
    number = rng.choice(numbers)
    kind = rng.choice([0, 0, 1, 2, 2, 2, 2, 3, 4, 5, 6, 7])
    tag = varint(number << 3 | kind)
    if rng.random() < 0.1:  # a longer form of the same number
        tag = tag[:-1] + bytes([tag[-1] | 0x80]) + b"\x80" * rng.randrange(5) + b"\0"
    if kind == 0:
        return tag + rng.choice([b"\0", b"\1", b"\2", b"\xff" * 9 + b"\1", b"\xff" * 10 + b"\1", b"\x80"])
    if kind == 1:
        return tag + b"abcdefgh"[: rng.choice([8, 8, 8, 3])]
    if kind == 5:
        return tag + b"abcd"[: rng.choice([4, 4, 4, 3])]
    if kind == 3:
        inside = random_field(rng, NUMBERS[1:]) if rng.random() < 0.5 else b""
        return tag + inside + varint((number if rng.random() < 0.8 else 7) << 3 | 4)
    if kind == 2:
        body = rng.choice(
            [b"", b"\x0a\x05", b"\xff\xff", b"\0", b"\x0c", b"\x0b\x0c", random_field(rng), b"\x0a\x01q"]
        )
        size = varint(len(body) + rng.choice([0] * 8 + [1]))
        if rng.random() < 0.1:
            size = bytes([size[-1] | 0x80]) + b"\x80" * rng.randrange(5) + b"\0"
        return tag + size + body
    return tag


def with_field(data: bytes, rng: random.Random) -> bytes:
    """A field put between others: of the file, or of a message in it, the length of which is adjusted."""
    new = random_field(rng)
    try:
        places = [*fields(data)]
    except IndexError:  # after another change
        return data + new
    sizes, begin, end = rng.choice([*places[-8:], rng.choice(places)])
    if rng.random() < 0.4:
        return rng.choice([data + new, new + data, data[:end] + new + data[end:]])
    body = rng.choice([new + data[begin:end], data[begin:end] + new])
    return data[:sizes] + varint(len(body)) + body + data[end:]


def mutated(data: bytes, rng: random.Random) -> bytes:
    """A file with one thing wrong with it, or two."""
    changed = bytearray(data)
    way = rng.randrange(8)
    at = rng.randrange(1, len(changed))  # sentencepiece takes no empty file as an argument
    if way == 0:
        return data[:at]
    if way == 1:
        changed[at] ^= 1 << rng.randrange(8)
    elif way == 2:
        changed[at] = rng.choice([0, 1, 2, 0x0A, 0x12, 0x7F, 0x80, 0xFF])
    elif way == 3:
        changed[at:at] = rng.randbytes(rng.randrange(1, 4))
    elif way == 4:
        del changed[at : at + rng.randrange(1, 4)]
    elif way == 5:
        other = rng.randrange(len(changed))
        changed[other:other] = changed[at : at + rng.randrange(1, 30)]
    else:
        return with_field(with_field(data, rng) if way == 6 else data, rng)
    return bytes(changed)


# --- The verdict ----------------------------------------------------------------------------------


def loaded(load: Callable[[], Any]) -> Any:
    """What was loaded; None if it was refused."""
    try:
        return load()
    except (RuntimeError, ValueError):  # also UnicodeDecodeError, where a message of theirs is not UTF-8
        return None


def check(data: bytes, engine: str) -> str:
    """Hold the verdict on a file to sentencepiece's: "refused", "loads", or the reason of a difference."""
    theirs = loaded(lambda: sentencepiece.SentencePieceProcessor(model_proto=data))
    drop_in = loaded(lambda: compat.SentencePieceProcessor(model_proto=data))
    try:
        tok = tokenizers.make(data, engine)
    except cpbpe.ModelError as error:
        if theirs is None:
            assert drop_in is None
            return "refused"
        message = str(error)
        if message.startswith("the file's added token"):
            assert drop_in is not None, message
            check_drop_in(drop_in, theirs)
            return "added tokens"
        assert re.match("the model .* cpbpe reads BPE models only", message), message
        assert drop_in is None
        return "not BPE"
    assert theirs is not None, "sentencepiece refuses this"
    assert drop_in is not None
    assert tok.encode(TEXT) == theirs.encode(TEXT)
    check_drop_in(drop_in, theirs)
    hostile.use(tok, TEXT)
    return "loads"


def check_drop_in(drop_in: Any, theirs: Any) -> None:
    assert drop_in.encode(TEXT) == theirs.encode(TEXT)
    for options in (
        {"return_type": "offset_mapping", "return_bytes": True},
        {"return_type": "serialized_proto"},
    ):
        assert drop_in.encode(TEXT, **options) == theirs.encode(TEXT, **options)


# --- Tests ----------------------------------------------------------------------------------------

# What is put at the end of a model, and what comes of it.
ENDS: list[tuple[str, bytes, str]] = [
    ("self_test_data that is cut off", b'"\x02\x0a\x05', "loads"),
    ("self_test_data with a sample that is cut off", b'"\x04\x0a\x02\x0a\x05', "loads"),
    ("self_test_data that is a number", b"\x20\x01", "loads"),
    ("self_test_data that ends after the file", b'"\x05\x0a', "refused"),
    ("an unknown group", field(300, 3) + field(300, 4), "loads"),
    ("an unknown group without an end", field(300, 3), "refused"),
    ("a tag of six bytes", b"\xa2\xb6\xa8\x80\x80\0\0", "refused"),
    ("a tag of five bytes", b"\xa2\xb6\xa8\x80\0\0", "loads"),
    ("a length of six bytes", field(300, 2)[:-1] + b"\x80\x80\x80\x80\x80\0", "refused"),
    ("a number of eleven bytes", field(300, 0, b"\xff" * 10 + b"\1"), "refused"),
    ("41700 as a number", field(41700, 0, b"\1"), "loads"),
    ("41700 as four bytes", field(41700, 5, b"abcd"), "loads"),
    ("41700 as a group", field(41700, 3) + field(41700, 4), "loads"),
    ("41700 in a piece", field(1, 2, field(1, 2, b"qqq") + field(41700, 2, b"\x0a\5")), "loads"),
    ("41700 in trainer_spec", field(2, 2, field(41700, 2, b"\x0a\5")), "loads"),
    ("an added token that is empty", field(41700, 2), "added tokens"),
    ("an added token that is cut off", field(41700, 2, b"\x0a\x05"), "added tokens"),
    ("an added token with a tag 0", field(41700, 2, b"\0"), "added tokens"),
    ("an added token of noise", field(41700, 2, b"\xff\xff\xff"), "added tokens"),
    ("an added token with the end of a group", field(41700, 2, b"\x0c"), "added tokens"),
    ("an added token with a group without an end", field(41700, 2, b"\x0b"), "added tokens"),
    ("an added token whose text is a number", field(41700, 2, b"\x08\5"), "added tokens"),
    ("an added token whose id is text", field(41700, 2, b"\x12\0"), "added tokens"),
    ("a second trainer_spec of another type", field(2, 2, b"\x18\1"), "not BPE"),
    ("a denormalizer with a bad charsmap", field(5, 2, field(2, 2, b"short")), "refused"),
]


@pytest.mark.parametrize(("end", "expected"), [row[1:] for row in ENDS], ids=[row[0] for row in ENDS])
def test_what_follows_a_model(engine: str, end: bytes, expected: str) -> None:
    for data in models()[:2]:
        assert check(data + end, engine) == expected


@pytest.mark.parametrize("part", range(PARTS))
def test_one_verdict(part: int) -> None:
    """Random files. (The number of the case tells which one it is: the seed is its own.)"""
    count = budget.examples(240)
    verdicts: dict[str, int] = {}
    for number in range(part, count, PARTS):
        rng = random.Random(f"{budget.SEED} {number}")
        data = mutated(rng.choice(models()), rng)
        engine = ENGINES[0] if number % 7 else ENGINES[-1]
        try:
            verdict = check(data, engine)
        except Exception as error:
            raise AssertionError(f"case {number} on {engine}: {error}") from error
        verdicts[verdict] = verdicts.get(verdict, 0) + 1
    print(verdicts)
    assert verdicts["loads"] > count // PARTS // 8
    assert verdicts["refused"] > count // PARTS // 20
