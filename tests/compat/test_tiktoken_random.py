"""cpbpe.compat.tiktoken gives what tiktoken gives, on texts and ids of every kind, on published vocabularies.

A run with a million texts for each takes some minutes a vocabulary:

    CPBPE_EXAMPLES=1000000 CPBPE_TEXTS=FOLDER python -m pytest tests/compat/test_tiktoken_random.py -n0
"""

import random
from typing import Any

import pytest
import tiktoken

import cpbpe.compat.tiktoken as ours
from cpbpe.text.split_patterns import PATTERNS as PUBLISHED
from tests.bytes.making import known
from tests.bytes.models import OWN, ranks
from tests.split.patterns import KIMI
from tests.support import tiers
from tests.support.budget import SEED, examples
from tests.support.tiktoken_texts import SPECIAL, Maker, both, same, same_completions

published = pytest.mark.parametrize("name", tiers.some(list(SPECIAL), ["tekken", "p50k"]), scope="module")


def maker_of(theirs: Any, seed: int = SEED) -> Maker:
    return Maker(seed, theirs.token_byte_values(), list(theirs._special_tokens)[:4])


def check_text(pair: tuple[Any, Any], text: str) -> list[int]:
    """Ids and decoding."""
    ids: list[int] = same(pair, "encode_ordinary", text)
    same(pair, "decode", ids)
    return ids


@published
def test_many_texts(name: str) -> None:
    """Ids, and the texts that they are decoded to, in batches, which takes a tenth of the time."""
    mine, theirs = both(name)
    maker = maker_of(theirs, SEED + 1)
    for _ in range(max(1, examples(2000) // 1000)):
        texts = list(maker.texts(1000))
        batch = theirs.encode_ordinary_batch(texts, num_threads=1)
        ids = mine.encode_ordinary_batch(texts, num_threads=1)
        if ids != batch:
            number = next(number for number, row in enumerate(ids) if row != batch[number])
            assert ids[number] == batch[number], texts[number]
        assert mine.decode_batch(batch) == list(map(theirs.decode, batch))


@published
def test_texts(name: str) -> None:
    """Every text, with a choice of special tokens, and in batches; of some also offsets, which take long."""
    pair = mine, theirs = both(name)
    maker = maker_of(theirs)
    first = next(iter(theirs._special_tokens))
    choices: list[dict[str, Any]] = [
        {},
        {"allowed_special": "all"},
        {"allowed_special": {first}},
        {"allowed_special": {first, "unheard of"}, "disallowed_special": ()},
        {"disallowed_special": [first, "\n"]},
        {"disallowed_special": ()},
    ]
    align = mine.cpbpe.align
    batch: list[str] = []
    for number, text in enumerate(maker.texts(examples(150))):
        ids = check_text(pair, text)
        options = choices[number % len(choices)]
        same(pair, "encode", text, **options)
        if number % 4 == 0:
            same(pair, "encode_to_numpy", text, **options)
            begins = same(pair, "decode_with_offsets", ids)[1]
            if number % 8 == 0 and "\ud83d" not in text and "\udc4d" not in text:
                assert [begin for begin, _ in align(text).offsets] == begins, text
        batch.append(text)
        if len(batch) == 500:
            same(pair, "encode_ordinary_batch", batch, num_threads=1)
            same(pair, "encode_batch", batch, num_threads=2, allowed_special={first}, disallowed_special=())
            batch.clear()
    for _ in range(max(1, examples(150) // 5000)):
        same(pair, "decode_with_offsets", check_text(pair, maker.long(min(100_000, 100 * examples(150)))))


@published
def test_ids(name: str) -> None:
    """Ids at random, also of special tokens, and some that nothing has; bytes at random."""
    pair = _, theirs = both(name)
    maker = maker_of(theirs)
    special = list(theirs._special_tokens.values())[:4]
    batch = []
    for number in range(examples(150) // 4):
        ids = maker.ids(theirs.n_vocab + (number % 5 == 0))
        if number % 3 == 0:
            ids = [*ids, maker.rng.choice(special), *maker.ids(theirs.n_vocab)]
        for call in ("decode", "decode_tokens_bytes", "decode_with_offsets"):
            same(pair, call, ids)
        if isinstance(same(pair, "decode_bytes", ids), bytes):
            batch.append(ids)
        for errors in ("ignore", "strict"):
            same(pair, "decode", ids, errors)
        data = bytes(maker.rng.choices(range(256), k=maker.rng.randint(1, 5)))
        text = next(maker.texts(1)).encode(errors="replace")
        for given in (data, text + data, text[: len(text) // 2], text[1:]):
            same(pair, "_encode_bytes", given)
            if given:
                same(pair, "_encode_single_piece", given)
        if len(batch) == 100:
            same(pair, "decode_batch", batch, num_threads=1)
            same(pair, "decode_bytes_batch", batch, num_threads=1)
            batch.clear()


@published
def test_completions(name: str) -> None:
    """`encode_with_unstable`: the same stable ids, and the same set of what may come after them."""
    pair = _, theirs = both(name)
    for text in maker_of(theirs).texts(max(6, examples(150) // 500)):
        same_completions(pair, text[:10], disallowed_special=())
        same_completions(pair, text[:12], allowed_special="all")


PATTERNS = [
    OWN,
    r"[\s\S]+",
    r"'s|\p{L}+|\p{N}{2}",
    r"(?i:[a-m]+)|\s",
    r"[^\r\n]{1,5}",
    r"\p{L}+(?=\s)|\S",
    PUBLISHED["o200k"],
    KIMI,
    r"[^a-z&&[\p{L}\s]]+|[a-zA-Z&&[^st]]++|(?i:[a-z&&s-u]{1,2})",
]
"""Patterns of nobody, most of which leave something out, which tiktoken drops; and two published ones."""


def tables(seed: int) -> dict[bytes, int]:
    """Ranks with gaps: few, many, or so many that they are other numbers in the engine."""
    rng = random.Random(seed)
    step, rank = rng.choice((1, 2, 3, 1000)), 0
    table = {}
    for piece in ranks():
        table[piece] = rank
        rank += rng.choice((1, 1, step))
    return table


@pytest.mark.parametrize("pattern", PATTERNS)
def test_own_vocabularies(pattern: str, engine: str) -> None:
    """Any pattern, ranks with gaps, special tokens among the ranks."""
    for seed in range(4):
        table = tables(seed)
        taken = sorted(table.values())
        special = {"<end>": taken[-1] + 5, "the": taken[-1] + 9, "日": taken[300], "\n": 7}
        arguments: Any = {"pat_str": pattern, "mergeable_ranks": table, "special_tokens": special}
        pair = ours.Encoding("own", **arguments), tiktoken.Encoding("own", **arguments)
        maker = maker_of(pair[1], seed)
        for number, text in enumerate(maker.texts(min(examples(60), 20_000))):
            if engine == "reference" and text != known(text):
                continue  # (the package regex has tables of another version of Unicode)
            same(pair, "encode_ordinary", text)
            same(pair, "encode_to_numpy", text)
            ids = same(pair, "encode", text, allowed_special="all")
            ids = [*ids, *maker.ids(taken[-1] + 10)[:2]]
            for call in ("decode", "decode_bytes", "decode_tokens_bytes", "decode_with_offsets"):
                same(pair, call, ids)
            if number % 4 == 0:
                same_completions(pair, text[:12], disallowed_special=())
