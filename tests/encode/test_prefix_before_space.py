"""A dummy prefix only where there is no space: `NormalizerSpec.prefix_before_space`, which Metaspace has off.

The rule is small: a text gets the prefix if its normalized text, without one, does not begin with a space.
Both engines are held to it in every call.
"""

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest

import cpbpe
from cpbpe import ModelSpec, Tokenizer
from cpbpe.engine.choice import make_engine
from cpbpe.engine.reference_engine import PythonEngine
from tests.support import budget, corpus, tiers, zoo
from tests.support.json_files import spec_of
from tests.support.texts import TextMaker

NAMES = [
    *("llama", "defaults", "identity-no-fallback", "user-defined", "user-defined-llama", "unused-ambiguous"),
    *("tsv", "tsv-keep-spaces", "charsmap-spaces", "charsmap-broken", "charsmap-broken-user-defined"),
    *("unescaped", "unescaped-squeeze", "suffix", "no-prefix", "broken-pieces", "across-spaces"),
]
names = pytest.mark.parametrize("name", tiers.some(NAMES, ["llama", "defaults", "charsmap-spaces"]))


@cache
def spec_without(name: str) -> ModelSpec:
    """A model of the zoo that puts no prefix before a space."""
    spec = spec_of(name)
    return replace(spec, normalizer=replace(spec.normalizer, prefix_before_space=False), file=None)


def tokenizer(name: str) -> Tokenizer:
    return Tokenizer.from_spec(spec_without(name))


def texts(name: str, count: int) -> Iterator[str]:
    """Texts that begin with spaces of all kinds, and with what rules make spaces of."""
    pieces = [text.decode(errors="replace") for text in spec_of(name).pieces.texts]
    chance = random.Random(f"{budget.SEED} {name}")
    maker = TextMaker(budget.SEED, pieces, corpus.lines())
    fronts = [
        "",
        " ",
        "  ",
        "▁",
        "▁▁",
        " ▁",
        "▁ ",
        "=",
        "-",
        "--",
        "= -",
        "~",
        "\n",
        "\t",
        "ab",
        "a b",
        "\0",
        "é",
    ]
    yield from fronts
    for _ in range(count):
        yield "".join(chance.choices(fronts, k=chance.choice([1, 1, 2]))) + maker.text()


@names
def test_the_rule(name: str, engine: str) -> None:
    """The prefix is there exactly where the rest of the normalized text does not begin with a space."""
    tok, spec = tokenizer(name), spec_of(name)
    rules = spec.normalizer
    always = Tokenizer.from_spec(replace(spec, file=None))
    never = Tokenizer.from_spec(replace(spec, normalizer=replace(rules, add_dummy_prefix=False), file=None))
    for text in texts(name, budget.examples(100)):
        bare = never.normalize(text)
        space = "▁" if rules.escape_whitespaces else " "
        plain = rules.suffix or not rules.add_dummy_prefix or (bare and not bare.startswith((space, " ")))
        expected = always if plain else never
        assert tok.normalize(text) == expected.normalize(text), text
        assert tok.encode(text) == expected.encode(text), text
        if not (bare and plain):
            continue
        aligned, theirs = tok.align(text), expected.align(text)
        assert (aligned.ids, aligned.offsets) == (theirs.ids, theirs.offsets), text


@names
def test_every_call_agrees(name: str, engine: str) -> None:
    tok = tokenizer(name).with_special_tokens(["<x>", "<y>"])
    some = list(texts(name, budget.examples(40)))
    ids = [tok.encode(text) for text in some]
    assert tok.encode_batch(some, threads=2) == ids
    assert tok.encode_arrays(some).ids.tolist() == [id for row in ids for id in row]
    assert [tok.count(text) for text in some] == [*map(len, ids)]
    assert [tok.encode(text.encode()) for text in some] == ids
    assert [tok.align(text).ids for text in some] == ids
    chance = random.Random(budget.SEED)
    for text, expected in zip(some, ids, strict=True):
        stream = tok.stream_encoder()
        found, at = [], 0
        while at < len(text):
            step = chance.randint(1, 4)
            found += stream.push(text[at : at + step])
            at += step
        assert found + stream.flush() == expected, text
        data, stream = text.encode(), tok.stream_encoder()
        assert [id for byte in data for id in stream.push(bytes([byte]))] + stream.flush() == expected, text
        glued = f"{text}<x>{text}<y> {text}"
        whole = tok.encode(glued, allowed_special="all")
        stream = tok.stream_encoder(allowed_special="all")
        assert [id for part in glued for id in stream.push(part)] + stream.flush() == whole, text


@names
def test_the_two_engines_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPBPE_ENGINE", "core")
    spec = spec_without(name)
    reference = PythonEngine(spec)
    core = make_engine(spec)
    for text in texts(name, budget.examples(60)):
        assert core.encode(text) == reference.encode(text), text
        assert core.origins(text) == reference.origins(text), text
        assert core.align(text, True) == reference.align(text, True), text
        broken = text.encode()[:-1] + b"\xe2"
        assert core.encode(broken) == reference.encode(broken), text
        for prefix in (True, False):
            ours, theirs = core.variant(prefix=prefix), reference.variant(prefix=prefix)
            assert ours.encode(text) == theirs.encode(text), text


@pytest.mark.slow
def test_a_long_text_on_several_threads(engine: str) -> None:
    tok = tokenizer("llama")
    text = "\n".join(corpus.lines()) * (40 if engine == "core" else 1)
    for front in ("", " ", "▁", "▁x"):
        assert tok.encode_array(front + text, threads=2).tolist() == tok.encode(front + text)


def test_a_model_file_keeps_it(engine: str) -> None:
    """In a field that sentencepiece passes over, and for which saving therefore asks first."""
    tok = tokenizer("llama")
    again = Tokenizer.from_bytes(tok.to_bytes())
    assert again == tok
    assert not again.spec.normalizer.prefix_before_space
    assert again.encode_pieces(" a") == ["▁a"] == again.encode_pieces("a")
    proto = zoo.parse(tok.to_bytes())
    assert proto.normalizer_spec.add_dummy_prefix


def test_what_does_not_come_back(engine: str) -> None:
    losses = tokenizer("llama").is_lossless().reasons
    assert [(loss.example, loss.becomes) for loss in losses] == [(" a", "a")]
    assert "begins with a space gets no dummy prefix" in str(losses[0])
    assert cpbpe.Tokenizer.from_spec(spec_without("no-prefix")).is_lossless()
