"""Structured output: what grammar engines allow that get the bytes of ids as docs/structured-output.md says.

What they should allow is found by trying the bytes of every id, one by one, with a regular expression.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Container, Iterable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
import regex

import cpbpe
from cpbpe import Tokenizer
from cpbpe.text.utf8 import is_valid_utf8, valid_text
from tests.bytes.models import made
from tests.conftest import ENGINES
from tests.support import budget, tiers, zoo
from tests.support.budget import SEED
from tests.support.tokenizers import make

WALKS = budget.examples(40) // 20
STEPS = 5

LONG = (
    rb"(?:[\xc2-\xdf]|\xe0[\xa0-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]|\xed[\x80-\x9f]|\xf0[\x90-\xbf][\x80-\xbf]"
    rb"|[\xf1-\xf3][\x80-\xbf]{2}|\xf4[\x80-\x8f][\x80-\xbf])[\x80-\xbf]"
)
"""A character of several bytes."""
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "boolean"}, "b": {"enum": ["x", "é", "🦙"]}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
OF_SCHEMA = r'\{"a":(?:true|false),"b":"(?:x|é|🦙)"\}'
PATTERNS = [
    r" ?[a-z]+ [0-9]{2,3}",
    r"é(?:日本|🦙)*x",
    r' ?\{"a": (?:true|false|-?[0-9]+)\}',
    r'"[^"]*"',
]
NAMES = ["tokenizer.model.v1", "byte-level"]
models = pytest.mark.parametrize("name", NAMES)
patterns = pytest.mark.parametrize("pattern", PATTERNS)
more_models = pytest.mark.parametrize("name", tiers.some([*NAMES, "tekken"], NAMES))


class Model(NamedTuple):
    """A tokenizer, the id that ends a text, and what the ids add."""

    tok: Tokenizer
    eos: int
    table: list[bytes]


@cache
def load(name: str) -> Model:
    if name == "byte-level":
        tok = Tokenizer.from_spec(made("llama3"))
    elif name == "tekken":
        tok = cpbpe.load(zoo.real_path("tekken_240911.json"))
    else:  # (with tokens that a pattern must not allow, although it allows their texts)
        tok = make(zoo.model(name), ENGINES[0], ("<|x|>", '{"a": true}', '"'))
    eos = tok.vocab.special_tokens["<|end|>"] if tok.eos_id is None else tok.eos_id
    return Model(tok, eos, tok.vocab.token_bytes(text_only=True))


def of_bytes(pattern: str) -> Any:
    """The pattern for UTF-8."""
    return regex.compile(pattern.encode().replace(b'[^"]', rb'(?:[^"\x80-\xff]|' + LONG + b")"))


@cache
def expected(name: str, pattern: str, text: bytes) -> frozenset[int]:
    """The ids that may follow a text, and the one that ends it if it may end."""
    _, eos, table = load(name)
    compiled = of_bytes(pattern)
    # (An id cannot follow if its first byte cannot, which is quicker to find out.)
    firsts = {byte for byte in range(256) if compiled.fullmatch(text + bytes([byte]), partial=True)}
    found = [id for id, data in enumerate(table) if data and data[0] in firsts]
    found = [id for id in found if compiled.fullmatch(text + table[id], partial=True)]
    return frozenset([*found, eos] if compiled.fullmatch(text) else found)


Allowed = Callable[[list[int]], Iterable[int]]
"""The ids that an engine allows after some ids. It is asked about one more each time, or begins anew."""


def walk(name: str, pattern: str, allowed: Allowed, known: Container[int] | None = None) -> None:
    """Choose ids at random, and compare at each step what is allowed; only `known` ones, if given."""
    rng = random.Random(SEED)
    for _ in range(WALKS):
        ids: list[int] = []
        while len(ids) < STEPS:
            text = b"".join(load(name).table[id] for id in ids)
            wanted = {id for id in expected(name, pattern, text) if known is None or id in known}
            assert {*allowed(ids)} == wanted, text
            ids.append(rng.choice(sorted(wanted)))
            if ids[-1] == load(name).eos:
                break


def bits(data: bytes) -> list[int]:
    found: list[int] = np.flatnonzero(
        np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
    ).tolist()
    return found


# --- The engines ----------------------------------------------------------------------------------


@cache
def for_guidance(name: str) -> Any:
    import llguidance

    tok, eos, table = load(name)
    names = {id: text.encode() for text, id in tok.vocab.special_tokens.items()}

    class ForGuidance:
        def __init__(self) -> None:
            self.tokens = [names.get(id, data) for id, data in enumerate(table)]
            self.special_token_ids = [*names]
            self.eos_token_id, self.bos_token_id = eos, tok.bos_id

        def __call__(self, text: str | bytes) -> list[int]:
            return tok.encode(text, prefix_space=False)

    return llguidance.LLTokenizer(llguidance.TokenizerWrapper(ForGuidance()))


def guided(name: str, grammar: str) -> Allowed:
    """llguidance. Where only one text can follow, the mask has its first id alone; others would do, too."""
    import llguidance

    def allowed(ids: list[int]) -> list[int]:
        matcher = llguidance.LLMatcher(for_guidance(name), grammar)
        assert matcher.consume_tokens(ids), matcher.get_error()
        found, forced = bits(matcher.compute_bitmask()), matcher.compute_ff_tokens()
        if forced:
            assert found == forced[:1]
            text = matcher.compute_ff_bytes()
            if is_valid_utf8(text):
                assert found == load(name).tok.encode(text, prefix_space=False)[:1]
            found = [id for id in range(len(load(name).table)) if matcher.validate_tokens([id])]
        return found

    return allowed


@models
@patterns
def test_llguidance(name: str, pattern: str) -> None:
    llguidance = pytest.importorskip("llguidance")
    walk(name, pattern, guided(name, llguidance.LLMatcher.grammar_from_regex(pattern)))


@more_models
def test_json_schema_of_llguidance(name: str) -> None:
    llguidance = pytest.importorskip("llguidance")
    options = {"whitespace_flexible": False}
    grammar = llguidance.LLMatcher.grammar_from_json_schema(SCHEMA, overrides=options)
    walk(name, OF_SCHEMA, guided(name, grammar))


@cache
def for_outlines(name: str) -> Any:
    core = pytest.importorskip("outlines_core")
    ids: dict[bytes, list[int]] = {}
    for id, data in enumerate(load(name).table):
        if data:
            ids.setdefault(data, []).append(id)
    return core.Vocabulary(load(name).eos, ids)


def outlined(name: str, pattern: str) -> Allowed:
    core = pytest.importorskip("outlines_core")
    index = core.Index(pattern, for_outlines(name))

    def allowed(ids: list[int]) -> list[int]:
        guide = core.Guide(index)
        for id in ids:
            guide.advance(id)
        found: list[int] = guide.get_tokens()
        return found

    return allowed


@models
@patterns
def test_outlines_core(name: str, pattern: str) -> None:
    walk(name, pattern, outlined(name, pattern))


@more_models
def test_json_schema_of_outlines_core(name: str) -> None:
    core = pytest.importorskip("outlines_core")
    pattern = core.json_schema.build_regex_from_schema(json.dumps(SCHEMA))
    walk(name, pattern, outlined(name, pattern))


@cache
def for_enforcer(name: str) -> tuple[Any, set[int]]:
    """What lm-format-enforcer takes, and the ids that it can allow.

    It knows characters only, and none with which no id begins.
    """
    enforcer = pytest.importorskip("lmformatenforcer")
    tok, eos, table = load(name)
    rows = [(id, text, True) for id, data in enumerate(table) if (text := valid_text(data))]
    alphabet = {text[0] for _, text, _ in rows}
    known = {eos, *(id for id, text, _ in rows if {*text} <= alphabet)}
    return enforcer.TokenEnforcerTokenizerData(rows, tok.decode, eos, False, len(table)), known


@patterns
def test_lm_format_enforcer(pattern: str) -> None:
    enforcer, name = pytest.importorskip("lmformatenforcer"), "tokenizer.model.v1"
    data, known = for_enforcer(name)
    engine = enforcer.TokenEnforcer(data, enforcer.RegexParser(pattern))
    walk(name, pattern, lambda ids: engine.get_allowed_tokens(ids).allowed_tokens, known)


@models
@patterns
def test_xgrammar(name: str, pattern: str) -> None:
    xgrammar = pytest.importorskip("xgrammar")
    model = load(name)
    info = xgrammar.TokenizerInfo(model.table, xgrammar.VocabType.RAW, stop_token_ids=[model.eos])
    compiled = xgrammar.GrammarCompiler(info).compile_regex(pattern)

    def allowed(ids: list[int]) -> list[int]:
        matcher = xgrammar.GrammarMatcher(compiled)
        assert all(matcher.accept_token(id) for id in ids)
        mask = np.zeros((1, -(-len(model.table) // 32)), np.int32)
        matcher.fill_next_token_bitmask(mask)
        return [id for id in bits(mask.tobytes()) if id < len(model.table)]  # (the last word is not full)

    walk(name, pattern, allowed)


# --- The first space ------------------------------------------------------------------------------


def test_an_optional_space_is_that_of_the_dummy_prefix() -> None:
    """Without it, what is written is what the rest of the pattern describes."""
    name, rest = "tokenizer.model.v1", r"[a-z]+ [0-9]{2,3}"
    tok, eos, table = load(name)
    allowed, compiled = outlined(name, " ?" + rest), of_bytes(rest)

    def written(ids: list[int]) -> bytes:
        return tok.decode_bytes(ids, keep_prefix_space=True).removeprefix(b" ")

    fits = {id for id, data in enumerate(table) if data and compiled.fullmatch(written([id]), partial=True)}
    assert {*allowed([])} == fits
    for ids in tok.encode("yes 42"), tok.encode("yes 42", prefix_space=False):
        assert written(ids) == b"yes 42"
        assert all(id in allowed(ids[:at]) for at, id in enumerate([*ids, eos]))
    assert tok.vocab["▁yes"] not in outlined(name, rest)([])
