"""Documents: their ids are always those of the whole text, whatever was changed, with little work."""

from __future__ import annotations

import copy
import pickle
import random
import tracemalloc
from typing import Any

import pytest

import cpbpe
from cpbpe import StreamEncoder, Tokenizer
from cpbpe.model.formats.tokenizer_json import read
from cpbpe.tokenizer import documents
from tests.bytes.models import made
from tests.conftest import CORE
from tests.support import budget, corpus, json_files, tiers
from tests.support.budget import SEED
from tests.support.streams import EDITED, NAMES, load, pieces_of
from tests.support.texts import TextMaker

EXAMPLES = budget.examples(40)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts so small that a short text has many of them."""
    monkeypatch.setattr(documents, "PART", 24)
    monkeypatch.setattr(documents, "SMALL", 5)


def changed(tok: Tokenizer, maker: TextMaker, rng: random.Random, **options: Any) -> None:
    """Change a document at random, and check its ids after each change. Older ones stay as they are."""
    text = maker.text()
    document = tok.document(text, **options)
    before: list[tuple[cpbpe.Document, str]] = []
    for _ in range(12):
        assert document.text == text
        assert len(document) == len(text)
        assert document.ids == tok.encode(text, **options), text
        before.append((document, text))
        begin = rng.randrange(len(text) + 1)
        end = min(len(text), begin + rng.choice((0, 0, 1, 5, 40, 400)))
        new = rng.choice(("", " ", maker.text()[: rng.choice((1, 8, 80))]))
        kind = rng.randrange(4)
        if kind == 0:
            document, text = document.append(new), text + new
            continue
        text = text[:begin] + new + text[end:]
        document = document.replace(begin, end, new) if kind < 3 else document.changed_to(text)
    for document, text in before:
        assert document.ids == tok.encode(text, **options), text
    (one, first), (other, second) = rng.choice(before), rng.choice(before)
    ids, others = tok.encode(first, **options), tok.encode(second, **options)
    same = next(
        (at for at, (left, right) in enumerate(zip(ids, others, strict=False)) if left != right),
        min(len(ids), len(others)),
    )
    assert one.common_ids(other) == same


@pytest.mark.usefixtures("small_parts")
@tiers.engines
@tiers.models(NAMES)
def test_changes(name: str, engine: str) -> None:
    tok, rng = load(name, engine), random.Random(SEED)
    maker = TextMaker(SEED, pieces_of(tok)[-10 if name in EDITED else 0 :], corpus.SENTENCES)
    for _ in range(EXAMPLES // 8):
        add_bos = rng.random() < 0.2 and tok.bos_id is not None
        changed(tok, maker, rng, prefix_space=rng.choice([None, True, False]), add_bos=add_bos)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("pattern", tiers.some(["gpt2", "cl100k", "llama3", "qwen2", "o200k"], ["llama3"]))
def test_changes_of_byte_level_models(pattern: str) -> None:
    tok, rng = Tokenizer.from_spec(made(pattern)), random.Random(SEED)
    maker = TextMaker(SEED, pieces_of(tok), corpus.SENTENCES)
    for _ in range(EXAMPLES // 4):
        changed(tok, maker, rng)


SPECIAL = ["<|end|>", "<|start|>", "<|"]


@pytest.mark.usefixtures("small_parts")
def test_special_tokens_that_changes_make_and_break(engine: str) -> None:
    tok = load("tokenizer.model.v1", engine).with_special_tokens(SPECIAL)
    rng, maker = random.Random(SEED), TextMaker(SEED, [*SPECIAL, "<", "|", "end", "|>"], corpus.SENTENCES)
    for _ in range(EXAMPLES // 4):
        changed(tok, maker, rng, allowed_special="all", prefix_after_special=rng.random() < 0.5)


@pytest.mark.usefixtures("small_parts")
def test_special_tokens_that_take_the_spaces_around_them() -> None:
    """Whether a text has them is known only when all of it is there."""
    content = json_files.llama()
    free = 900 + len([token for token in content["added_tokens"] if token["id"] >= 900])
    content["added_tokens"].append(json_files.added(free, "<x>", True, lstrip=True, rstrip=True))
    tok = Tokenizer.from_spec(read(json_files.dumped(content)).spec)
    with pytest.raises(ValueError, match="before all of it is there"):
        tok.stream_encoder(allowed_special="all")
    rng, maker = random.Random(SEED), TextMaker(SEED, ["<x>", " ", "<"], corpus.SENTENCES)
    for _ in range(EXAMPLES // 8):
        changed(tok, maker, rng, allowed_special="all")


def test_a_token_that_must_not_be_there(engine: str) -> None:
    """The error names the place in the whole text, and the document is as it was."""
    tok = load("tokenizer.model.v1", engine).with_special_tokens(SPECIAL)
    text = "some words " * 1000
    document = tok.document(text, disallowed_special="raise")
    with pytest.raises(ValueError, match=r"position 11001\b"):
        document.append(" <|end|>")
    with pytest.raises(ValueError, match=r"position 9000\b"):
        document.replace(9000, 9000, "<|end|>")
    with pytest.raises(ValueError, match=r"position 10979\b"):
        document.replace(0, 22, "").append(" <|end|>")
    assert document.text == text


def test_little_is_encoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change in a long text, or at its end, takes a small part of the time of encoding it."""
    tok = load("tokenizer.model.v1", "core" if CORE else "reference")
    text = " ".join(corpus.SENTENCES * 40)[: 200_000 if CORE else 20_000]
    document = tok.document(text)
    counted = [0]
    push = StreamEncoder.push

    def counting(stream: StreamEncoder, part: str | bytes) -> list[int]:
        counted[0] += len(part)
        return push(stream, part)

    monkeypatch.setattr(StreamEncoder, "push", counting)
    rng = random.Random(SEED)
    for _ in range(200):
        kind, begin = rng.randrange(3), rng.randrange(len(document) - 20)
        counted[0] = 0
        if kind == 0:
            document, most = document.append("few words"), 9
        elif kind == 1:
            document, most = document.replace(begin, begin + rng.randrange(20), "new"), 3 * documents.PART
        else:
            text = document.text
            document, most = document.changed_to(text[:begin] + "x" + text[begin:]), 3 * documents.PART
        assert counted[0] <= most
    assert document.ids == tok.encode(document.text)


def test_a_text_that_cannot_be_cut(engine: str) -> None:
    tok = load("llama", engine)
    text = "a" * (20_000 if engine == "core" else 3_000)
    document = tok.document(text).append("a" * 50).replace(7, 8, "")
    assert document.ids == tok.encode(text + "a" * 49)


def test_many_documents_share_what_they_have_in_common() -> None:
    tok = load("tokenizer.model.v1", "core" if CORE else "reference")
    document = tok.document((" ".join(corpus.SENTENCES * 100))[:200_000])
    tracemalloc.start()
    branches = [document.append(f" {number}") for number in range(50)]
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert taken < len(branches) * len(document) // 2
    assert document.common_ids(branches[0]) >= len(document.ids) - 2


def test_copies_and_pickles(engine: str) -> None:
    tok = load("tokenizer.model.v1", engine)
    document = tok.document("Hello wor", add_bos=True)
    assert copy.copy(document) is document is copy.deepcopy(document)
    again = pickle.loads(pickle.dumps(document))
    assert (again.text, again.ids) == (document.text, document.ids)
    assert again.append("ld").ids == tok.encode("Hello world", add_bos=True)


def test_where_a_refused_token_is(engine: str) -> None:
    """Also one that is certain only at the end, after the text before it has changed."""
    tok = load("llama", engine).with_special_tokens(["<a>", "<a>b"])
    options: Any = {"disallowed_special": {"<a>"}, "allowed_special": {"<a>b"}}
    document = tok.document("low lower " * 2000 + "<a>", **options)
    with pytest.raises(ValueError, match=r"'<a>' .* position 20000"):
        document.ids  # noqa: B018
    with pytest.raises(ValueError, match=r"'<a>' .* position 20005"):
        document.replace(0, 0, "wide ").ids  # noqa: B018


def test_what_is_refused(engine: str) -> None:
    document = load("llama", engine).document("abc")
    for begin, end in [(-1, 2), (2, 1), (0, 4), (4, 4)]:
        with pytest.raises(IndexError, match="within 0 to 3"):
            document.replace(begin, end, "")
    with pytest.raises(TypeError, match=r"append\(\) takes str"):
        document.append(b"x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"replace\(\) takes str"):
        document.replace(3, 3, b"x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="takes str"):
        document.changed_to(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="takes a Document"):
        document.common_ids([1])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="decode bytes first"):
        load("llama", engine).document(b"abc")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="reverse"):
        load("llama", engine).document("abc", reverse=True)
    assert document.replace(0, 3, "").ids == []
    assert repr(document) == "<cpbpe.Document of 3 characters: 'abc'>"
