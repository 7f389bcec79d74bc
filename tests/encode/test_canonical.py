"""Canonical ids, by brute force: all short sequences of small models against decoding and encoding again."""

import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import groupby, pairwise, product
from typing import Any

import numpy as np
import pytest

import cpbpe
from cpbpe.engine.cutting import make_cutter
from cpbpe.model.pair_ranks import by_text, merged
from cpbpe.model.spec import Carried, SplitSpec
from cpbpe.text.split_patterns import PATTERNS
from cpbpe.tokenizer.canonical import CanonicalStream
from cpbpe.tokenizer.cuts import DEAD, cuts_of
from cpbpe.tokenizer.neighbours import Neighbours
from tests.bytes.models import given_texts
from tests.support import budget, tiers, zoo

NORMAL, UNKNOWN, CONTROL, _, _, BYTE = map(cpbpe.PieceType, range(1, 7))
AS_IT_IS = cpbpe.NormalizerSpec("identity", b"", False, False)
WITH_PREFIX = replace(AS_IT_IS, add_dummy_prefix=True)
SQUEEZED = replace(AS_IT_IS, remove_extra_whitespaces=True)
BOTH = replace(SQUEEZED, add_dummy_prefix=True)
UNLESS_SPACE = replace(WITH_PREFIX, prefix_before_space=False)
BARE_UNLESS_SPACE = replace(AS_IT_IS, prefix_before_space=False)
OF_BYTES = replace(AS_IT_IS, escape_whitespaces=False)
TEXTS = ["ab", "bc", "abc", "▁a", "▁▁", "c▁", "bcab", "a", "b", "c", "▁"]


def of_characters(
    texts: list[str] = TEXTS,
    rules: cpbpe.NormalizerSpec = AS_IT_IS,
    bytes_too: bool = True,
    scores: Callable[[int], float] = lambda place: -float(place),
    **types: list[str],
) -> cpbpe.ModelSpec:
    """A model of these pieces, the best first; `types` lists those that are not NORMAL."""
    kinds = {text: cpbpe.PieceType[name] for name, some in types.items() for text in some}
    pieces = [cpbpe.Piece(b"<unk>", 0.0, UNKNOWN), cpbpe.Piece(b"<s>", 0.0, CONTROL)]
    pieces += [
        cpbpe.Piece(text.encode(), scores(place), kinds.get(text, NORMAL)) for place, text in enumerate(texts)
    ]
    if bytes_too:
        pieces += [cpbpe.Piece(b"<0x%02X>" % byte, 0.0, BYTE) for byte in range(256)]
    return cpbpe.ModelSpec(cpbpe.Pieces.of(pieces), rules, byte_fallback=bytes_too)


def of_bytes(
    texts: list[bytes],
    pattern: str | None,
    whole: bool = False,
    rules: cpbpe.NormalizerSpec = OF_BYTES,
    first: tuple[bytes, ...] = (),
) -> cpbpe.ModelSpec:
    """A byte-level model of these pieces, the best first; all bytes come before them."""
    every = [*first, *(bytes([byte]) for byte in range(256)), *texts]
    pieces = [cpbpe.Piece(text, -float(place)) for place, text in enumerate(every)]
    return cpbpe.ModelSpec(
        cpbpe.Pieces.of([*pieces, cpbpe.Piece(b"<s>", 0, CONTROL)]),
        rules,
        alphabet="bytes",
        splitter=None if pattern is None else SplitSpec(PATTERNS[pattern], pattern),
        whole=whole,
    )


def with_tokens(spec: cpbpe.ModelSpec, *tokens: str) -> cpbpe.ModelSpec:
    """The same model with tokens that every text is searched for."""
    added = tuple((token.encode(), len(spec.pieces) + number) for number, token in enumerate(tokens))
    return replace(spec, added=added, carried=Carried(tokens=dict.fromkeys(tokens, ("plain",))))


WORDS = [
    b"in",
    b"'s",
    b" in",
    b"  ",
    b"\n\n",
    b"'r",
    b"'re",
    b"\xc3\xa9",
    b"\xe2\x98",
    b"s'",
    b"11",
    b" \n",
    b"a\xc3",
    b"\x98n",
    b"\x83i",
    b"\x98\x83i",
]
MODELS: dict[str, tuple[cpbpe.ModelSpec, list[str]]] = {
    "plain": (of_characters(bytes_too=False), []),
    "prefix": (of_characters(rules=WITH_PREFIX, bytes_too=False), []),
    "bytes": (
        of_characters([*TEXTS, "☃a", "b☄"]),
        ["<0xE2>", "<0x98>", "<0x83>", "<0x84>", "<0x41>", "<0x20>"],
    ),
    "bytes-prefix": (of_characters(rules=WITH_PREFIX), ["<0xC3>", "<0xA9>", "<0x41>", "<0xFF>"]),
    "unless-space": (of_characters(rules=UNLESS_SPACE), ["<0x41>"]),
    "bare-unless-space": (of_characters(rules=BARE_UNLESS_SPACE, bytes_too=False), []),
    "squeezed": (of_characters(rules=SQUEEZED), ["<0x41>", "<0x20>"]),
    "squeezed-prefix": (of_characters(rules=BOTH), ["<0x41>"]),
    "ties": (of_characters(scores=lambda place: -float(place // 3)), []),
    "all-equal": (of_characters(scores=lambda place: -1.0), []),
    "odd-order": (of_characters(["abc", "bcab", "ab", "bca", "bc", "ca", "a", "b", "c", "▁"]), []),
    "user-defined": (
        of_characters(
            [*TEXTS, "bca", "aa", "aaab", "▁c▁", "☃☃"], USER_DEFINED=["ab", "bca", "aa", "aaab", "▁c▁", "☃☃"]
        ),
        ["<0xE2>", "<0x98>", "<0x83>"],
    ),
    "unused": (
        of_characters([*TEXTS, "abcb", "☃a"], UNUSED=["ab", "bcab", "c", "☃a"]),
        ["<0x63>", "<0xE2>", "<0x98>", "<0x83>"],
    ),
    "unused-plain": (of_characters([*TEXTS, "abca"], bytes_too=False, UNUSED=["abc", "bcab", "▁▁", "b"]), []),
    "gpt2": (of_bytes(WORDS, "gpt2"), list("ins'r e1\n\t")),
    "cl100k": (of_bytes(WORDS, "cl100k"), list("in's 1\n.")),
    "o200k": (of_bytes([*WORDS, b"In", b"nI"], "o200k"), list("inI's /\n")),
    "llama3": (of_bytes([*WORDS, b"ni1", b"ssn", b" s\xc3\xa9"], "llama3", True), list("in's 1\n")),
    "tekken": (of_bytes([*WORDS, b"In"], "tekken"), list("inI's /\n")),
    "one-chunk": (of_bytes([*WORDS, b"nsn", b"\xc3\xa9\xc3"], None, True), list("ins ")),
    "odd-ranks": (of_bytes(WORDS, "qwen2", first=(b"ins", b"s's", b"sin")), list("ins' ")),
    "composed": (
        of_bytes(
            [b"a\xcc", b"\xcc\x81", b"\xcc\xa7", b"a\xcc\xa7", b"\xcc\x81e", b"\xc3\xa9"],
            "qwen2",
            rules=replace(OF_BYTES, unicode_form="NFC"),
        ),
        ["a", "e", " ", "\u0301", "\u0327", "\u0344"],
    ),
    "decomposed": (
        of_bytes(
            [b"\xcc\x81", b"e\xcc", b"\xc3\xa9"], "llama3", rules=replace(OF_BYTES, unicode_form="NFKD")
        ),
        ["a", "e", " ", "\u0327"],
    ),
    "searched": (with_tokens(of_bytes(WORDS, "gpt2"), "ns", "s'r"), list("ins'r")),
    "searched-characters": (
        with_tokens(
            of_characters([*TEXTS, "bca"], rules=WITH_PREFIX, USER_DEFINED=["bca"]), "cc", "ab", "cab"
        ),
        [],
    ),
    "searched-user-defined": (
        with_tokens(of_characters(["a", "aa", "▁", "b", "c"], USER_DEFINED=["a", "aa"]), "ab", "aac"),
        [],
    ),
    "last-character": (of_characters(["ab", "a", "b\U0010ffff", "b", "▁"], USER_DEFINED=["ab"]), []),
    "bytes-of-prefix": (
        of_bytes(WORDS, "gpt2", rules=replace(OF_BYTES, add_dummy_prefix=True, prefix_before_space=False)),
        list("ins "),
    ),
}


def alphabet(spec: cpbpe.ModelSpec, more: list[str]) -> list[int]:
    """The ids that sequences are made of."""
    added = [id for _, id in spec.added]
    if spec.alphabet == "characters":
        own = (
            id for id, piece in enumerate(spec.pieces) if piece.type != BYTE or piece.text.decode() in more
        )
        return [*own, *added]
    letters = [bytes([byte]) for text in more for byte in text.encode()]
    halves = [b"\xc3", b"\xa9", b"\xe2", b"\x98", b"\x83"]
    longer = [text for text in spec.pieces.texts if len(text) > 1]
    return [*map(spec.ids.__getitem__, dict.fromkeys([*letters, *halves, *longer])), *added]


SLOW = ("cl100k", "o200k", "tekken", "one-chunk", "decomposed", "bytes", "unused")
"""Those that take seconds."""


def completed(stream: CanonicalStream, depth: int = 4) -> list[int] | None:
    """Ids after which a sequence is canonical; None if none were found."""
    if stream.is_complete:
        return []
    found = []
    for id in np.flatnonzero(stream.mask).tolist():
        after = stream.copy()
        after.push(id)
        if after.is_complete:
            return [id]
        found.append((id, after))
    for id, after in found[:20] if depth else []:
        rest = completed(after, depth - 1)
        if rest is not None:
            return [id, *rest]
    return None


def check_all(tok: cpbpe.Tokenizer, ids: list[int], length: int, **options: Any) -> None:
    """All sequences of some ids: which are canonical, which can become so, and nothing else.

    What is complete must be canonical. What is not must have ids to follow after which it is, and what is not
    allowed must be the beginning of no canonical sequence of this length.
    """
    canonical = {
        row
        for size in range(length + 1)
        for row in product(ids, repeat=size)
        if tok.is_canonical(row, **options)
    }
    beginnings = {row[:end] for row in canonical for end in range(len(row) + 1)}
    waiting: list[tuple[tuple[int, ...], CanonicalStream]] = [((), tok.canonical_stream(**options))]
    alive = set()
    while waiting:
        row, stream = waiting.pop()
        alive.add(row)
        assert stream.is_complete == (row in canonical), row
        if row not in beginnings:
            rest = completed(stream)
            assert rest is not None, row
            assert tok.is_canonical([*row, *rest], **options), row
        if len(row) < length:
            mask = stream.mask
            for id in ids:
                after = stream.copy()
                if mask[id]:
                    after.push(id)
                    waiting.append(((*row, id), after))
                else:
                    with pytest.raises(ValueError, match="cannot follow"):
                        after.push(id)
    assert beginnings <= alive


@pytest.mark.parametrize("name", tiers.some(MODELS, MODELS.keys() - set(SLOW)))
def test_all_sequences(name: str) -> None:
    """With CPBPE_EXAMPLES=1000 and more, all sequences of four ids."""
    spec, more = MODELS[name]
    ids = alphabet(spec, more)
    length = 4 if budget.MUCH else 3 if len(ids) < 15 else 2
    check_all(cpbpe.Tokenizer.from_spec(spec), ids, length)


@pytest.mark.parametrize(
    "options", [{"prefix_space": True}, {"prefix_space": False}, {"prefix_after_special": False}]
)
@pytest.mark.parametrize(
    "name",
    [
        "plain",
        "prefix",
        "unless-space",
        "bare-unless-space",
        "squeezed",
        "squeezed-prefix",
        "bytes-of-prefix",
    ],
)
def test_prefixes(name: str, options: dict[str, Any]) -> None:
    """The dummy prefix, where options change it. (A text also begins after the special id.)"""
    spec, more = MODELS[name]
    check_all(cpbpe.Tokenizer.from_spec(spec), alphabet(spec, more), 2, **options)


def random_model(seed: int) -> tuple[cpbpe.ModelSpec, list[str]]:
    """A model of any kind, and what its alphabet has beside its longer pieces."""
    rng = random.Random(seed)

    def texts(letters: list[str] | list[bytes], count: int) -> list[Any]:
        empty = letters[0][:0]
        found = {empty.join(rng.choices(letters, k=rng.choice([2, 2, 2, 3, 3, 4]))) for _ in range(count)}  # type: ignore[arg-type]
        return rng.sample(sorted(found), len(found))

    if seed % 2:
        some = rng.sample(["i", "s", "'", " ", "\n", "1", "é", "☃", "A", "."], 5)
        halves = [bytes([byte]) for text in some for byte in text.encode()]
        longer = [text for text in texts(halves, 12) if len(text) > 1]
        rules = replace(OF_BYTES, unicode_form=rng.choice(["", "", "NFC"]))
        pattern = rng.choice([None, "gpt2", "llama3", "qwen2"])
        early = tuple(longer[: rng.choice([0, 0, 3])])
        spec = of_bytes(longer[len(early) :], pattern, rng.random() < 0.5, rules, early)
        tokens = [token for token in ("s'", "is", "1i") if rng.random() < 0.2]
        return with_tokens(spec, *tokens) if tokens else spec, some
    longer = texts(["a", "b", "▁", "☃"], 10)
    letters = [letter for letter in "ab☃" if rng.random() < 0.8]
    kinds = {"UNUSED": rng.sample(longer, rng.choice([0, 0, 2]))}
    kinds["USER_DEFINED"] = rng.sample([*longer, *letters, "▁"], rng.choice([0, 0, 2]))
    rules = replace(
        AS_IT_IS,
        add_dummy_prefix=rng.random() < 0.5,
        remove_extra_whitespaces=rng.random() < 0.3,
        prefix_before_space=rng.random() < 0.7,
    )
    flat = rng.choice([1, 1, 3])
    spec = of_characters([*longer, *letters, "▁"], rules, True, lambda place: -float(place // flat), **kinds)
    return spec, ["<0xE2>", "<0x98>", "<0x83>", "<0x61>"]


def test_random_models() -> None:
    for seed in range(budget.SEED, budget.SEED + budget.examples(12)):
        spec, more = random_model(seed)
        tok = cpbpe.Tokenizer.from_spec(spec)
        ids = random.Random(seed).sample(alphabet(spec, more), 12)
        try:
            check_all(tok, ids, 3 if budget.MUCH else 2)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error


def test_what_canonical_means() -> None:
    """Decoding and encoding again, run by run."""
    tok = cpbpe.Tokenizer.from_spec(MODELS["prefix"][0])
    rng = random.Random(budget.SEED)
    for _ in range(budget.examples(300)):
        ids = rng.choices(range(13), k=rng.randint(0, 6))
        parts = [list(run) for _, run in groupby(ids, lambda id: id == 1)]
        again = [id for run in parts for id in (run if run[0] == 1 else tok.encode(tok.decode(run)))]
        assert tok.is_canonical(ids) == (ids == again)
        found = tok.first_divergence(ids)
        if found is not None:
            assert [*ids[: found.position], *found.ids] == again
            assert ids[found.position : found.position + 1] != found.ids[:1]


def test_the_bytes_before_a_divergence() -> None:
    """They are those that decoding shows: also of added tokens, and none of control pieces."""
    tok = cpbpe.Tokenizer.from_bytes(zoo.model(zoo.REAL[0])).with_special_tokens(["<|a|>"])
    rng = random.Random(budget.SEED)
    for _ in range(budget.examples(100)):
        begin = rng.choices([1, 32_000, *tok.encode("Hello big world")], k=rng.randint(0, 5))
        ids = [*begin, 28769, 28710]
        found = tok.first_divergence(ids)
        assert found is not None
        assert found.begin == len(tok.decode_bytes(ids[: found.position])), ids


def odd_ranks(seed: int) -> dict[str, int]:
    """Ranks of some texts of few letters: in any order, equal ones, the shortest first, by length."""
    rng = random.Random(seed)
    letters = "abc"[: rng.randint(1, 3)]
    texts = sorted(
        {
            "".join(rng.choices(letters, k=rng.choice([2, 2, 3, 3, 4, 5, 6])))
            for _ in range(rng.randint(1, 14))
        }
    )
    rng.shuffle(texts)
    way = seed % 4
    if way == 2:
        texts.sort(key=len)
    return {
        text: rng.randint(0, 3) if way == 1 else len(text) if way == 3 else place
        for place, text in enumerate(texts)
    }


def test_neighbours() -> None:
    """All pairs of symbols against merging their text, and all sequences of three against the pair rule."""
    for seed in range(budget.SEED, budget.SEED + budget.examples(60)):
        ranks = odd_ranks(seed)
        rank, beside = by_text(ranks), Neighbours(ranks, "abc")
        for left in beside.texts:
            row = [merged(left + right, rank) == [left, right] for right in beside.texts]
            stable = [beside.is_stable(left, right) for right in beside.texts]
            assert stable == row, (ranks, left)
            assert beside.after(left).tolist() == row, (ranks, left)
            assert [beside.is_stable(left, right) for right in beside.texts] == row  # (now it is known)
        for _ in range(30):
            symbols = random.Random(seed).choices(beside.texts, k=3)
            is_stable = all(beside.is_stable(left, right) for left, right in pairwise(symbols))
            assert is_stable == (merged("".join(symbols), rank) == symbols)


@pytest.mark.parametrize("name", tiers.some(PATTERNS, ["gpt2", "llama3"]))
def test_cuts(name: str) -> None:
    """All texts of a few characters of all classes: one way to assume cuts comes true, and it is that of the
    pattern."""
    cuts = cuts_of(PATTERNS[name])
    spans = make_cutter(PATTERNS[name]).spans
    letters = [(letter, kind) for kind, letter in enumerate(cuts.letters)]

    def check(text: str, ways: list[tuple[int, tuple[int, ...]]], left: int) -> None:
        size = len(text.encode())
        found = [places for state, places in ways if cuts.accepts[state]]
        assert found == [tuple(sorted({place for span in spans(text) for place in span} - {0, size}))], text
        for letter, kind in letters if left else ():
            after = []
            for state, places in ways:
                without, with_cut = cuts.steps[state][kind]
                after += [(without, places)] if without != DEAD else []
                after += [(with_cut, (*places, size) if size else ())] if with_cut != DEAD else []
            check(text + letter, after, left - 1)

    check("", [(0, ())], 5 if budget.MUCH else 3)


@pytest.mark.parametrize("name", tiers.some(PATTERNS, ["gpt2"]))
def test_classes(name: str) -> None:
    """Characters of one class are cut alike, whatever is around them."""
    cuts = cuts_of(PATTERNS[name])
    spans = make_cutter(PATTERNS[name]).spans
    rng = random.Random(budget.SEED)
    for _ in range(budget.examples(2000)):
        code = rng.choice(
            [rng.randrange(0x3000), rng.randrange(0xE000, 0x110000), rng.randrange(0x3000, 0xD800)]
        )
        letter, same = chr(code), cuts.letters[cuts.classes[code]]
        texts = ["".join(rng.choices(cuts.letters, k=rng.randint(0, 3))) for _ in range(2)]
        # (In characters: the two may have another number of bytes.)
        found = [
            [len(chunk.decode()) for chunk in make_chunks(spans, texts[0] + one + texts[1])]
            for one in (letter, same)
        ]
        assert found[0] == found[1], (letter, same, texts)


def make_chunks(spans: Callable[[str], list[list[int]]], text: str) -> list[bytes]:
    data = text.encode()
    return [data[begin:end] for begin, end in spans(text)]


# --- Real models ----------------------------------------------------------------------------------


@cache
def loaded(name: str) -> cpbpe.Tokenizer:
    return cpbpe.Tokenizer.from_bytes(zoo.model(name))


def is_known(tok: cpbpe.Tokenizer) -> bool:
    """Whether it is known which ids can follow others."""
    try:
        return tok.canonical_stream().is_complete
    except cpbpe.ModelError:
        return False


@tiers.models()
def test_what_encoding_gives_is_allowed(name: str) -> None:
    """The ids of texts are canonical if they come back, and then the mask allows each of them."""
    tok = loaded(name)
    if not is_known(tok):
        return
    for text in given_texts(budget.examples(12)):
        ids = tok.encode(text)[:40]
        if tok.is_canonical(ids):
            stream = tok.canonical_stream()
            for id in ids:
                assert stream.mask[id]
                stream.push(id)
            assert stream.is_complete


@tiers.models()
def test_sampled_ids(name: str) -> None:
    """What is sampled from masks is canonical, and ids that a mask refuses lead to nothing canonical."""
    tok = loaded(name)
    if not is_known(tok):
        return
    stream = tok.canonical_stream()
    rng = np.random.default_rng(budget.SEED)
    ids: list[int] = []
    while len(ids) < budget.examples(60) or not stream.is_complete:
        mask = stream.mask
        if stream.is_complete:
            assert tok.is_canonical(ids)
            for id in rng.choice(np.flatnonzero(~mask), 5).tolist():
                assert not tok.is_canonical([*ids, id])
        id = int(rng.choice(np.flatnonzero(mask)))
        stream.push(id)
        ids.append(id)
    assert tok.is_canonical(ids)


def test_a_sampler() -> None:
    tok = loaded(zoo.REAL[0])
    assert np.array_equal(tok.canonical_next([1]), tok.canonical_stream([1]).mask)
    with pytest.raises(ValueError, match=r"id 28710 \('i'\) at position 2 cannot follow"):
        tok.canonical_next([1, 382, 28710])
    stream = tok.canonical_stream([1])
    other = stream.copy()
    stream.push(15359)
    other.push(2)
    assert stream.is_complete
    assert len(stream.mask) == tok.vocab_size


def test_refused_models() -> None:
    for name, why in (("nfkc", "rules"), ("suffix-keep-spaces", "dummy prefix"), ("broken-pieces", "UTF-8")):
        with pytest.raises(cpbpe.ModelError, match=why):
            cpbpe.Tokenizer.from_bytes(zoo.model(name)).canonical_next([])
    own = replace(MODELS["gpt2"][0], splitter=SplitSpec(r"\w+"))
    with pytest.raises(cpbpe.ModelError, match="published patterns"):
        cpbpe.Tokenizer.from_spec(own).canonical_next([])


def test_refused_pieces() -> None:
    """An unknown id whose space takes the place of a dropped one; spaces that a user-defined piece keeps."""
    unknown = replace(of_characters(rules=UNLESS_SPACE, bytes_too=False), unk_surface=" ⁇".encode())
    assert cpbpe.Tokenizer.from_spec(unknown).is_canonical([TEXTS.index("▁▁") + 2, 0])
    spaces = of_characters([*TEXTS, "a  b"], rules=SQUEEZED, USER_DEFINED=["a  b"])
    tok = cpbpe.Tokenizer.from_spec(spaces)
    assert tok.decode(tok.encode("a  b")) == "a  b"
    for spec, why in ((unknown, "unknown id"), (spaces, "user-defined")):
        with pytest.raises(cpbpe.ModelError, match=why):
            cpbpe.Tokenizer.from_spec(spec).canonical_next([])


def test_a_long_piece() -> None:
    spec = of_bytes([b"a" * 1500], "llama3", True)
    assert cpbpe.Tokenizer.from_spec(spec).canonical_next([])[256]
