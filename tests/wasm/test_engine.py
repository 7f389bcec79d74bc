"""The core in WebAssembly, as the page uses it, answers as the package: on all models, in all options."""

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cpbpe
from cpbpe import PieceType, Tokenizer
from cpbpe.model.spec import Carried, SplitSpec
from cpbpe.reference.byte_level.patterns import cut
from cpbpe.text.split_patterns import PATTERNS
from cpbpe.text.utf8 import repair
from tests.bytes import models as byte_models
from tests.support import budget, corpus, tiers, zoo
from tests.support import node as nodes
from tests.support.node import Node, PageError
from tests.support.texts import TextMaker

pytestmark = pytest.mark.skipif(not nodes.RUNS, reason=f"not there: {', '.join(nodes.MISSING)}")

ASKED = """
  const model = models.model;
  return rows.map(([text, options, alpha, seed]) => {
    const { ids, begins, ends } = model.encode(text, options);
    return {
      ids, begins, ends,
      sampled: model.encode(text, { ...options, alpha, seed }).ids,
      count: model.count(text, options.prefix),
      normalized: hex(model.normalize(text, options.prefix)),
      decoded: hex(model.decode(ids)),
    };
  });
"""
PREFIX = {"model": None, "on": True, "off": False}


def compare(node: Node, tok: Tokenizer, texts: list[str], special: tuple[bool, ...] = (False, True)) -> None:
    """Everything that is made of these texts, each with other options; `node` has loaded the model."""
    rng = random.Random(budget.SEED)
    rows = []
    for text in texts:
        options: dict[str, Any] = {
            "prefix": rng.choice([*PREFIX]),
            "special": rng.choice(special),
            "bos": tok.bos_id is not None and rng.random() < 0.3,
            "eos": tok.eos_id is not None and rng.random() < 0.3,
        }
        rows.append((text, options, rng.choice([0.1, 0.5, 1.0]), str(rng.randrange(1 << 64))))
    for row, made in zip(rows, node.ask(ASKED, rows=rows), strict=True):
        text, options, alpha, seed = row
        calls: dict[str, Any] = {
            "prefix_space": PREFIX[options["prefix"]],
            "allowed_special": "all" if options["special"] else (),
            "add_bos": options["bos"],
            "add_eos": options["eos"],
        }
        aligned = tok.align(text, unit="char", **calls)
        expected = {
            "ids": aligned.ids,
            "begins": [begin for begin, _ in aligned.offsets],
            "ends": [end for _, end in aligned.offsets],
            "sampled": tok.encode(text, alpha=alpha, seed=int(seed), **calls),
            "count": tok.count(text, prefix_space=calls["prefix_space"]),
            "normalized": normalized(tok, text, calls["prefix_space"]).hex(),
            "decoded": tok.decode(aligned.ids).encode().hex(),
        }
        assert made == expected, row


def normalized(tok: Tokenizer, text: str, prefix: bool | None) -> bytes:
    engine = tok.facts.engine
    return (engine if prefix is None else engine.variant(prefix=prefix)).normalize(text.encode())


def compare_model(node: Node, tok: Tokenizer) -> None:
    """What is known about a model, and about each of its pieces."""
    facts, vocab = tok.facts, tok.vocab
    made = node.ask(
        """
        const model = models.model;
        const ids = [...Array(model.size).keys(), ...model.added.keys()];
        return {
          roles: [model.unk, model.bos, model.eos, model.pad],
          pieces: ids.map((id) => hex(model.bytesOf(id))),
          texts: ids.map((id) => model.textOf(id)),
          types: ids.map((id) => model.typeOf(id)),
          outputs: ids.map((id) => hex(model.outputOf(id))),
          found: ids.map((id) => model.find(model.bytesOf(id))),
          scores: Array.from(model.scores, (score) => (Object.is(score, -0) ? '-0' : `${score}`)),
          special: [...model.special].sort(),
        };
        """
    )
    engine, added = facts.engine, facts.special.texts
    pieces = [*map(engine.piece, range(engine.size)), *(text.encode() for text in added.values())]
    assert made["roles"] == facts.special_ids
    assert made["pieces"] == [piece.hex() for piece in pieces]
    assert made["texts"] == [repair(piece).decode() for piece in pieces]
    assert made["types"] == [
        *(PieceType(engine.kind(id)).name for id in range(engine.size)),
        *("ADDED" for _ in added),
    ]
    assert made["outputs"] == [facts.bytes_of(id).hex() for id in [*range(engine.size), *added]]
    assert made["found"] == [engine.find(piece) for piece in pieces]
    scores = np.array([vocab.score(id) for id in range(engine.size)], np.float32)
    theirs = np.array([float(score.replace("Infinity", "inf")) for score in made["scores"]], np.float32)
    np.testing.assert_array_equal(theirs, scores)
    np.testing.assert_array_equal(np.signbit(theirs[scores == 0]), np.signbit(scores[scores == 0]))
    assert dict(made["special"]) == facts.special.ids


def made_texts(tok: Tokenizer, count: int) -> list[str]:
    """Texts of every awkward kind, a few of them with special tokens of this model."""
    engine = tok.facts.engine
    pieces = [engine.piece(id).decode(errors="replace") for id in range(engine.size)]
    maker = TextMaker(budget.SEED, [*(piece for piece in pieces if piece), " "], list(corpus.lines())[:200])
    tokens = [*tok.facts.special.ids, *tok.facts.special.plain, "", ""]
    texts = [maker.text() + maker.rng.choice(tokens) + maker.text() for _ in range(count)]
    return ["", *texts, *tokens]


@tiers.models()
def test_models(node: Node, name: str) -> None:
    tok = Tokenizer.from_bytes(zoo.model(name))
    node.load(zoo.model(name))
    compare_model(node, tok)
    compare(node, tok, made_texts(tok, budget.examples(40)))


BYTES: dict[str, cpbpe.ModelSpec] = {
    **{
        f"{pattern}-{whole}": byte_models.model(pattern, whole)
        for pattern in PATTERNS
        for whole in (True, False)
    },
    "own pattern": byte_models.model(byte_models.OWN),
    "no pattern": byte_models.model(None),
    "lacking": byte_models.lacking(),
    "two patterns": replace(
        byte_models.model("gpt2"), splitter=SplitSpec(PATTERNS["gpt2"], "", (r"\d|\D+",))
    ),
    "NFC": replace(
        byte_models.made(),
        normalizer=replace(byte_models.AS_IT_IS, unicode_form="NFC", add_dummy_prefix=True),
    ),
}


@pytest.mark.parametrize("name", tiers.some(BYTES, ["gpt2-False", "o200k-True", "two patterns", "NFC"]))
def test_byte_level_models(node: Node, name: str) -> None:
    """Also one whose end-of-text token is an added one."""
    for tok in (
        Tokenizer.from_spec(BYTES[name]),
        Tokenizer.from_spec(
            replace(BYTES[name], special_pieces=(b"<unk>", b"<s>", b"<|x|>", b"<pad>"))
        ).with_special_tokens({"<|x|>": 1000, "é🦙": 1003}),
    ):
        node.load(tok.to_bytes())
        compare_model(node, tok)
        texts = made_texts(tok, budget.examples(40)) + byte_models.given_texts(budget.examples(20))
        compare(node, tok, texts)
    splitter = BYTES[name].splitter
    if splitter is not None and name not in ("NFC", "own pattern"):
        texts = byte_models.given_texts(
            budget.examples(20)
        )  # (of characters that every version of Unicode knows)
        ends = node.ask("return texts.map((text) => models.model.chunks(text));", texts=texts)
        for text, found in zip(texts, ends, strict=True):
            chunks = [text]
            for pattern in splitter.patterns:
                chunks = [part for chunk in chunks for part in cut(pattern, chunk)]
            assert np.cumsum([len(chunk.encode()) for chunk in chunks]).tolist() == found, text


FLAGGED: list[Mapping[str, tuple[str, ...]]] = [
    {"table": ("lstrip",), "<x>": ("rstrip",), "é": ("lstrip", "rstrip")},
    {"table": ("single_word",), "<x>": ("lstrip", "rstrip", "single_word"), "é": ("single_word", "plain")},
    {"table": ("plain",), "<x>": ("plain", "lstrip"), " ": ("lstrip",), "é": ("late",)},
    {"table": ("late", "single_word"), "<x>": ("rstrip",), " \n": ("late",), "table<": ("plain", "late")},
    {"<s>": ("lstrip",), "</s>": ("plain",), "the": ("single_word",), "▁the": ("plain",), "▁-": ("plain",)},
]
PARTS = [
    *("table", "<x>", "<s>", "</s>", "the", " ", "  ", "\u3000", "\n", "\x85", "\x1f", "\ufeff", "a", "b "),
    *("é", "É", "_", "9", "\u0301", "Ⓐ", "🄰", "𝒜", "\u200d", "▁", "-", "🦙", "table<x>"),
]


def flagged(flags: Mapping[str, tuple[str, ...]], options: Mapping[str, bool]) -> Tokenizer:
    """A model with these tokens, added if they are no pieces."""
    tok = Tokenizer.from_bytes(zoo.model("llama"))
    new = [text for text in flags if tok.piece_to_id(text) is None]
    spec = tok.with_special_tokens(new).spec
    return Tokenizer.from_spec(replace(spec, carried=Carried(options, tokens=flags), file=None))


@pytest.mark.parametrize("flags", FLAGGED, ids=str)
@pytest.mark.parametrize("keeps", [False, True])
def test_tokens_with_flags(node: Node, flags: Mapping[str, tuple[str, ...]], keeps: bool) -> None:
    tok = flagged(flags, {"keep_space_after_special": keeps})
    node.load(tok.to_bytes())
    compare_model(node, tok)
    rng = random.Random(budget.SEED)
    texts = ["".join(rng.choices(PARTS, k=rng.randint(1, 9))) for _ in range(budget.examples(100))]
    compare(node, tok, texts)


def test_tokens_in_normalized_text(node: Node) -> None:
    """They are refused, and only where they may occur; they are decoded."""
    tok = flagged({"<x>": ("normalized",), "<Y>": ("normalized", "plain")}, {})
    node.load(tok.to_bytes())
    compare_model(node, tok)
    compare(node, tok, ["", "a <z> b", "<x", "<s>"])
    compare(node, tok, ["a <x> b"], special=(False,))
    with pytest.raises(PageError, match=r"may hold the token <x>, .* cpbpe encode can"):
        node.ask("return models.model.encode('a<x>b', { special: true });")
    with pytest.raises(PageError, match="may hold the token <Y>"):
        node.ask("return models.model.encode('a <Y>');")


def test_halves_of_surrogate_pairs(node: Node) -> None:
    """JavaScript's strings may have them. Each is one U+FFFD, as in the page's text."""
    tok = Tokenizer.from_bytes(zoo.model("llama")).with_special_tokens(["\ufffd!", "🦙!"])
    node.load(tok.to_bytes())
    for text in ("\ud83e", "a\udd99b", "\udd99\ud83e", "🦙!\ud83e\udd99!x\ud83e\ud83e\udd99!", "\ud83e!<s>"):
        whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        for special in (False, True):
            made = node.ask(
                "return models.model.encode(text, { special, eos: true });", text=text, special=special
            )
            encoding = tok.align(whole, allowed_special="all" if special else (), add_eos=True)
            assert made["ids"] == encoding.ids
            assert list(zip(made["begins"], made["ends"], strict=True)) == encoding.offsets


def test_ids_that_are_not_in_use(node: Node) -> None:
    node.load(Tokenizer.from_bytes(zoo.model("llama")).with_special_tokens({"<|x|>": 800}).to_bytes())
    for id in (-1, 700, 799, 801, 1 << 32, 0.5, "1"):
        with pytest.raises(PageError, match=f"There is no id {id}"):
            node.ask("return models.model.decode([5, id]);", id=id)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 1.5}, "from 0 to 1, not 1.5"),
        ({"alpha": "x"}, "from 0 to 1, not x"),
        ({"prefix": "none"}, "The prefix is model, off, on, not none"),
        ({"bos": True}, "This model has no bos"),
    ],
)
def test_options_that_are_wrong(node: Node, options: dict[str, Any], message: str) -> None:
    node.load(zoo.model("no-bos-empty-surface"))
    with pytest.raises(PageError, match=message):
        node.ask("return models.model.encode('a', options);", options=options)


def test_files_that_are_wrong(node: Node) -> None:
    """A sentence, and the models that are there stay."""
    node.load(zoo.model("llama"), "good")
    llama = zoo.model("llama")
    token = cpbpe.Tokenizer.from_bytes(llama).with_special_tokens(["<x>"]).to_bytes()[len(llama) :]
    for data, message in (
        (b"", "it holds no pieces|type is not BPE"),
        (b"\xff" * 100, "not those of the usual model file"),
        (llama[:-5], "not those of the usual model file"),
        (llama + token + token, "damaged"),
        (llama + token.replace(b"<x>", b"\xff!!"), "damaged"),
        (llama + token.replace(b"<x>", b"<s>"), "damaged"),
    ):
        with pytest.raises(PageError, match=message):
            node.load(data, "bad")
    assert node.ask("return models.good.count('Hello world');") > 0


def test_long_texts(node: Node) -> None:
    """A megabyte, also of one word. (Of two, Python's lists took 400 MB.)"""
    tok = Tokenizer.from_bytes(zoo.model(zoo.REAL[0]))
    node.load(zoo.model(zoo.REAL[0]))
    for text in (" ".join(corpus.lines()) * 15, "ab" * 500_000, "🦙" * 100_000):
        asked = "const { ids, ends } = models.model.encode(text, { special: true }); return { ids, ends };"
        made = node.ask(asked, text=text[:1_000_000])
        encoding = tok.align(text[:1_000_000], unit="char", allowed_special="all")
        assert made["ids"] == encoding.ids
        assert made["ends"] == [end for _, end in encoding.offsets]
        del made, encoding  # (before the next ones are made)


def test_a_core_that_gives_up(node: Node) -> None:
    """A panic takes the core with it. The page says so, starts another one, and its models work as before."""
    node.load(zoo.model("llama"), "one")
    node.load(zoo.model("suffix"), "other")
    ask = "return [models.one, models.other].map((model) => model.encode('Hello world').ids);"
    before = node.ask(ask)
    with pytest.raises(PageError, match=r"The core gave up on this .* Everything else still works"):
        node.ask("cpbpe.call('count', new Uint8Array(), 1e6, 0);")
    assert node.ask(ask) == before
    assert node.ask("return models.one.textOf(5);") == Tokenizer.from_bytes(zoo.model("llama")).id_to_piece(5)
