"""Every model there is as a tokenizer.json, on as many texts as one likes; or why there is none, with a text.

    CPBPE_EXAMPLES=20000 CPBPE_CORPORA=corpora pytest tests/formats/test_tokenizer_json_long.py

is a million texts: for each model some lines of the corpora, generated texts, pieces side by side, and the
texts on which lists of pairs and scores can differ at all (see `cpbpe.model.pair_ranks`).
"""

import os
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path

import pytest

import cpbpe
from cpbpe import ModelSpec, Tokenizer
from cpbpe.model.formats.tokenizer_json import read, write
from cpbpe.model.formats.tokenizer_json.merging import Merging, Names
from tests.support import budget, corpus, tiers, zoo
from tests.support.json_files import WITHOUT_RULES, differing, spec_of, texts_for, theirs

RULES = [name for name in (*zoo.TRAINED, *zoo.EDITED) if not name.startswith(("charsmap", "denorm"))]
"""Models that are also tried without the rules of their normalizer."""
CASES = [
    *(name for name in zoo.NAMES if name not in zoo.SIMILAR),
    *(name + WITHOUT_RULES for name in RULES),
]
BATCH = 512


@cache
def lines() -> list[str]:
    """Lines of the corpora in CPBPE_CORPORA, or of the small one of the tests."""
    folder = os.environ.get("CPBPE_CORPORA")
    if folder is None:
        return list(corpus.lines())
    found = []
    for path in sorted(Path(folder).glob("*.txt")):
        with path.open(encoding="utf-8", errors="replace") as file:
            found += [line.rstrip("\n")[:2000] for line in islice(file, 0, 200_000, 10)]
    return found


def hard_texts(pairs: Sequence[tuple[str, str]], count: int, chance: random.Random) -> Iterator[str]:
    """Texts xyz of two listed pairs (x, y) and (y, z), and with a beginning and an end."""
    if not pairs:
        return
    begins = defaultdict(list)
    for x, y in pairs:
        begins[x].append(y)
    for _ in range(count):
        x, y = chance.choice(pairs)
        text = x + y
        for _ in range(chance.randint(1, 4)):
            if y not in begins:
                break
            y = chance.choice(begins[y])
            text += y
        yield text.replace("▁", " ") if chance.random() < 0.8 else text


def all_texts(spec: ModelSpec, pairs: Sequence[tuple[str, str]], count: int) -> Iterator[str]:
    """Texts of every kind. `pairs` are those that the file lists for the model."""
    chance = random.Random(budget.SEED)
    pieces = [text.decode(errors="replace") for text in spec.pieces.texts]
    yield from chance.choices(lines(), k=count // 4)
    yield from texts_for(spec, count // 4, budget.SEED)
    yield from hard_texts(pairs, count // 4, chance)
    for _ in range(count // 4):
        yield "".join(chance.choices(pieces, k=chance.randint(1, 6))).replace("▁", " ")


@pytest.mark.parametrize("name", tiers.some(CASES, ["llama", "unsplit", "defaults"]))
def test_the_same_ids_or_a_text_that_shows_it(name: str) -> None:
    spec = spec_of(name)
    tok = Tokenizer.from_spec(spec)
    try:
        data = write(spec).data
    except cpbpe.ConversionError as error:
        if "not UTF-8" in str(error) or name.startswith("charsmap-broken"):
            return  # there is no file at all, see test_tokenizer_json.py
        other = theirs(write(spec, allow_differences=True).data)
        for _, text in error.differences:
            assert text is None or differing(tok, other, iter([text])) == [text]
        return
    # 1. There and back: the pieces, the order of their scores, and the same file again.
    again = read(data)
    assert again.differences == ()
    assert again.spec.pieces.texts == spec.pieces.texts
    assert write(again.spec).data == data
    pairs = listed(spec)
    assert in_order(pairs) == in_order(listed(again.spec))
    # 2. Both libraries, and the model that was read again.
    other, back = theirs(data), Tokenizer.from_spec(again.spec)
    texts = all_texts(spec, pairs, budget.examples(30))
    while batch := list(islice(texts, BATCH)):
        ids = tok.encode_batch(batch, threads=1)
        found = [encoding.ids for encoding in other.encode_batch(batch, add_special_tokens=False)]
        wrong = [text for text, a, b in zip(batch, ids, found, strict=True) if a != b]
        assert wrong == []
        assert back.encode_batch(batch, threads=1) == ids
        assert tok.decode_batch(ids) == other.decode_batch(ids) == back.decode_batch(ids)


def listed(spec: ModelSpec) -> Sequence[tuple[str, str]]:
    """The pairs that make the pieces, the best score first; of equals, the one that has to be first."""
    return Merging(Names(spec)).pairs


def in_order(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """The pieces that can be made, in the order of their pairs."""
    return [x + y for x, y in pairs]
