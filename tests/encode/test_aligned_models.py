"""Two tokenizers at once: parts of texts, and pieces, that both have, compared with brute force."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from functools import cache
from itertools import accumulate, pairwise
from typing import Any
from unittest import mock

import numpy as np
import pytest

import cpbpe
from cpbpe import PieceType, Tokenizer, align_models
from cpbpe.checks import Unit
from cpbpe.model.formats.tokenizer_json import read
from cpbpe.reference.encoding import Normalizer
from cpbpe.text.finder import Finder
from cpbpe.text.utf8 import SPACE, character_positions
from tests.bytes.models import made, model
from tests.conftest import ENGINES
from tests.support import budget, corpus, json_files, tiers, zoo
from tests.support.budget import SEED
from tests.support.texts import TextMaker
from tests.support.tokenizers import make, pieces_of, tokenizer, with_gaps

EXAMPLES = budget.examples(40)
UNITS: tuple[Unit, ...] = ("char", "byte")


# --- Parts of texts -------------------------------------------------------------------------------


@cache
def normalizer_of(tok: Tokenizer) -> Normalizer:
    user_defined = [piece.text for piece in tok.spec.pieces if piece.type == PieceType.USER_DEFINED]
    return Normalizer(tok.spec.normalizer, Finder(user_defined, 64))


def units(tok: Tokenizer, text: bytes) -> list[tuple[int, int]]:
    """Where each part of a text begins that is rewritten by itself, and how many bytes are made of it.

    For models that remove no spaces and know no normal form.
    """
    if tok.spec.alphabet == "bytes":  # (a byte that belongs to no character becomes the three of U+FFFD)
        chars = character_positions(text)
        return [
            (at, 3 if byte >= 0x80 and chars.count(chars[at]) == 1 else 1) for at, byte in enumerate(text)
        ]
    found, at = [], 0
    while at < len(text):
        rewritten, used = normalizer_of(tok).rewrite(text, at, keep_invalid=False)
        found.append((at, len(rewritten.replace(b" ", SPACE))))
        at += used
    return found


def begins(tok: Tokenizer, text: bytes) -> dict[int, int]:
    """The places at which a token begins, tried one by one, and how many tokens are before each."""
    ids, pieces, _ = tok.facts.engine.align(text, False, True)
    sizes = [
        1 if tok.vocab.piece_type(id) == PieceType.BYTE else len(piece)
        for id, piece in zip(ids, pieces, strict=True)
    ]
    ends = {end: number for number, end in enumerate(accumulate(sizes, initial=0))}
    rules = tok.spec.normalizer
    done = len(SPACE) if rules.add_dummy_prefix and not rules.suffix else 0
    found: dict[int, int] = {}
    for begin, size in units(tok, text):
        if size and done in ends:
            found[begin] = ends[done]
        done += size
    return found


def parts(a: Tokenizer, b: Tokenizer, text: bytes, unit: Unit) -> list[tuple[Any, ...]]:
    """What `align` should find."""
    in_a, in_b = begins(a, text), begins(b, text)
    chars = character_positions(text)
    places = chars if unit == "char" else range(len(text) + 1)
    common = [place for place in in_a.keys() & in_b.keys() if place and places[place - 1] < places[place]]
    rows = [(place, in_a[place], in_b[place]) for place in sorted(common)]
    last = len(text), len(a.encode(text)), len(b.encode(text))
    return [
        (places[begin], places[end], slice(first_a, last_a), slice(first_b, last_b))
        for (begin, first_a, first_b), (end, last_a, last_b) in pairwise([(0, 0, 0), *rows, last])
        if text
    ]


KEEP_SPACES = [
    *("tokenizer.model.v1", "llama", "no-prefix", "keep-spaces", "tsv-keep-spaces", "suffix-keep-spaces"),
    *("user-defined-llama", "unused-ambiguous", "charsmap-broken", "charsmap-long", "nul", "no-unk"),
]
OTHERS = ["byte-level", "tsv-keep-spaces", "unsplit", "keep-spaces"]


def load(name: str, engine: str) -> Tokenizer:
    return Tokenizer.from_spec(made("llama3")) if name == "byte-level" else tokenizer(name, engine)


def some_texts(pieces: list[str], count: int) -> list[str | bytes]:
    maker = TextMaker(SEED, pieces, corpus.SENTENCES)
    return [maker.broken() if number % 4 == 3 else maker.text() for number in range(count)]


@pytest.mark.parametrize("second", tiers.some(OTHERS, OTHERS[:2]))
@tiers.models(KEEP_SPACES)
@tiers.engines
def test_parts_are_those_of_brute_force(name: str, second: str, engine: str) -> None:
    a, b = tokenizer(name, engine), load(second, engine)
    models = align_models(a, b)
    for text in some_texts(pieces_of(name), EXAMPLES // 4):
        data = text if isinstance(text, bytes) else text.encode()
        for unit in UNITS:
            found = models.align(text, unit=unit).spans
            assert list(map(tuple, found)) == parts(a, b, data, unit), text


def check(a: Tokenizer, b: Tokenizer, text: str | bytes, is_broken: bool = False) -> None:
    """What holds for all models and options.

    `is_broken`: rules make bytes that are half a character, which `align` does not tell from the other half.
    """
    found = align_models(a, b).align(text, unit="byte")
    spans, size = found.spans, len(text.encode() if isinstance(text, str) else text)
    assert bool(spans) == bool(size)
    assert [0, *(span.end for span in spans)] == [*(span.begin for span in spans), size]
    for tok, ids, slices in ((a, found.a_ids, [s.a for s in spans]), (b, found.b_ids, [s.b for s in spans])):
        assert ids == tok.encode(text)
        offsets = tok.align(text, unit="byte").offsets
        around = [bool(tok.bound_options.get(option)) for option in ("add_bos", "add_eos")]
        inner = range(len(ids))[around[0] : len(ids) - around[1]]
        assert [place for own in slices for place in range(len(ids))[own]] == [*inner] * bool(spans)
        assert len(spans) < 2 or all(own.start < own.stop for own in slices)
        for span, own in zip(spans, slices, strict=True):
            assert all(end <= span.begin for _, end in offsets[: own.start])
            assert is_broken or all(begin >= span.begin for begin, _ in offsets[own])


@cache
def others(engine: str) -> list[Tokenizer]:
    """With special tokens of their own, rules, a normal form, and tokens that take the spaces around them."""
    content = json_files.llama()
    free = 900 + len([token for token in content["added_tokens"] if token["id"] >= 900])
    content["added_tokens"].append(json_files.added(free, "<|a|>", True, lstrip=True, rstrip=True))
    spec = model("llama3")
    with mock.patch.dict(os.environ, {"CPBPE_ENGINE": engine}):
        return [
            make(zoo.model("defaults"), engine, ("<|a|>", "<s>")),
            Tokenizer.from_spec(replace(spec, normalizer=replace(spec.normalizer, unicode_form="NFKD"))),
            Tokenizer.from_spec(read(json_files.dumped(content)).spec),
        ]


@tiers.models()
@tiers.engines
def test_laws_on_all_models(name: str, engine: str) -> None:
    rng = random.Random(SEED)
    first = with_gaps(zoo.model(name), engine)
    for text in some_texts([*pieces_of(name)[-30:], "<|a|>", "<|a|> ", "▁<é>", "e\u0301"], EXAMPLES // 4):
        options: dict[str, Any] = {
            "add_bos": first.bos_id is not None and rng.random() < 0.5,
            "allowed_special": rng.choice([(), "all"]),
            "prefix_after_special": rng.random() < 0.5,
            "prefix_space": rng.choice([None, True, False]),
            **({"alpha": 0.2, "seed": 3} if rng.random() < 0.2 else {}),
        }
        other = rng.choice(others(engine))
        ends = other.eos_id is not None
        check(
            first.using(**options), other.using(add_eos=ends, allowed_special="all"), text, "broken" in name
        )
        check(other, first, text, "broken" in name)


def test_a_token_with_half_of_what_a_rule_made(engine: str) -> None:
    """The span of `af` ends before the `ﬁ`, and still no part can end there."""
    texts = ["af af af af if"] * 50
    rules = cpbpe.train(texts, vocab_size=265, preset="llama2", normalization_rule_name="nfkc").tokenizer
    plain = cpbpe.train(texts, vocab_size=265, preset="llama2").tokenizer
    assert rules.align("aﬁ").offsets == [(0, 1), (1, 2)]
    assert len(align_models(rules, plain).align("aﬁ").spans) == 1
    assert len(align_models(rules, plain).align("af ﬁ").spans) == 3


def test_removed_spaces_go_with_what_is_next_to_them(mistral: Tokenizer, engine: str) -> None:
    models = align_models(tokenizer("defaults", engine), mistral)
    text = "  the  end  "
    assert [text[span.begin : span.end] for span in models.align(text).spans] == ["  the", "  end  "]
    [span] = models.align("   ").spans
    assert (span.begin, span.end, span.a) == (0, 3, slice(0, 0))
    assert models.align("").spans == []


def test_within_characters_only_in_bytes(engine: str) -> None:
    a, b = Tokenizer.from_spec(made("gpt2")), Tokenizer.from_spec(model("gpt2"))
    models = align_models(a, b)
    assert all(span.end - span.begin for span in models.align("日本語🦙").spans)
    assert len(models.align("日本語🦙", unit="byte").spans) > len(models.align("日本語🦙").spans)


def test_wrong_arguments(mistral: Tokenizer) -> None:
    with pytest.raises(TypeError, match="takes two tokenizers of cpbpe, not str"):
        align_models(mistral, "gpt2")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="reverse=False"):
        align_models(mistral, mistral.using(reverse=True)).align("Hi")
    with pytest.raises(TypeError, match="takes str or bytes"):
        align_models(mistral, mistral).align(5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unit"):
        align_models(mistral, mistral).align("Hi", unit="word")  # type: ignore[arg-type]


# --- Pieces that are the same ---------------------------------------------------------------------


def rank(tok: Tokenizer, id: int) -> int | None:
    """0 for pieces of text, 1 for BYTE pieces, None for what stands for no text."""
    piece = tok.vocab.get(id)
    if piece is None or piece in tok.vocab.special_tokens:
        return None
    kind = tok.vocab.piece_type(id)
    is_text = kind in (PieceType.NORMAL, PieceType.USER_DEFINED) or piece in tok.vocab.added_tokens
    return 0 if is_text else 1 if kind == PieceType.BYTE else None


def counterpart(a: Tokenizer, id: int, rows: list[tuple[int, bytes, int]]) -> int:
    """The id that stands for an id of `a`, found by looking at all of them."""
    own = rank(a, id)
    if own is None:
        return -1
    data = a.vocab.id_to_bytes(id)
    return min(((kind != own, other) for kind, text, other in rows if text == data), default=(0, -1))[1]


@pytest.mark.parametrize(
    "first", ["llama", "special", "unused", "user-defined", "inner-spaces", "byte-level"]
)
def test_same_ids_are_those_of_brute_force(first: str) -> None:
    engine = ENGINES[0]
    a = load(first, engine)
    names = ("byte-level", "unused-no-fallback", "llama")
    for b in (*(load(name, engine) for name in names), with_gaps(zoo.model("llama"), engine)):
        same = align_models(a, b).same_ids
        assert (same.dtype.name, len(same)) == ("int64", len(a))
        ids = [(rank(b, id), id) for id in range(len(b))]
        rows = [(kind, b.vocab.id_to_bytes(id), id) for kind, id in ids if kind is not None]
        assert same.tolist() == [counterpart(a, id, rows) for id in range(len(a))]


def test_same_ids_of_one_model_are_its_own(mistral: Tokenizer) -> None:
    same = align_models(mistral, mistral).same_ids
    assert np.flatnonzero(same != np.arange(len(mistral))).tolist() == [0, 1, 2]
    assert same[:3].tolist() == [-1, -1, -1]


# --- While ids arrive -----------------------------------------------------------------------------


@tiers.models(["tokenizer.model.v1", "llama", "defaults", "charsmap-broken"])
@tiers.engines
def test_ids_of_the_other_while_ids_arrive(name: str, engine: str) -> None:
    """What docs/two-models.md does: a stream decoder of one, and a stream encoder of the other."""
    a, b = tokenizer(name, engine), Tokenizer.from_spec(made("llama3"))
    for text in some_texts(pieces_of(name), EXAMPLES // 4):
        for one, other in ((a, b), (b, a)):
            ids = one.encode(text)
            decoder, encoder = one.stream_decoder(), other.stream_encoder()
            certain: list[int] = []
            so_far = ""
            for id in ids:
                new = decoder.push(id)
                so_far += new
                certain += encoder.push(new)
                assert certain + encoder.copy().flush() == other.encode(so_far)
            certain += encoder.push(decoder.flush())
            assert certain + encoder.flush() == other.encode(one.decode(ids))
