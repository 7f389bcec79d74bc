"""Documents cut to a number of tokens: `truncate` and `split`, on every model and both engines.

The oracle encodes the whole text and tries one place after the other. The windows of
`cpbpe.tokenizer.splitting`, which keep it from encoding a whole document, are made small enough here that
short texts need several.
"""

import re
import time
from itertools import pairwise
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, seed
from hypothesis import strategies as st

import cpbpe
from cpbpe.text.utf8 import is_inside
from cpbpe.tokenizer import splitting
from cpbpe.tokenizer.plans import Plans
from tests.conftest import ENGINES
from tests.support import budget, charsmaps, corpus, tiers, zoo
from tests.support.budget import SEED
from tests.support.texts import TextMaker, broken, texts
from tests.support.tokenizers import pieces_of, tokenizer

EXAMPLES = budget.examples(300)
quick = budget.quick(60, least=5)


@pytest.fixture
def _small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splitting, "FIRST_WINDOW", 1)
    monkeypatch.setattr(splitting, "FIRST_MARGIN", 1)
    monkeypatch.setattr(splitting, "MANY", 1 << 40)  # believe only what is certain


# --- The oracle -----------------------------------------------------------------------------------


def truncated(tok: cpbpe.Tokenizer, text: Any, limit: int, prefix_space: bool | None) -> Any:
    """What truncate() promises, found in the simplest way."""
    if tok.count(text, prefix_space=prefix_space) <= limit:
        return text
    data = text.encode() if isinstance(text, str) else text
    spans = tok.align(data, prefix_space=prefix_space).offsets
    for number in range(limit, 0, -1):
        end = spans[number - 1][1]
        whole_character = spans[number - 1][0] < spans[number][0] and not is_inside(data, end)
        if whole_character and tok.count(data[:end], prefix_space=prefix_space) <= limit:
            return data[:end].decode() if isinstance(text, str) else data[:end]
    return text[:0]


def check_split(tok: cpbpe.Tokenizer, text: Any, limit: int, overlap: int, prefix_space: bool | None) -> None:
    def count(part: Any) -> int:
        return tok.count(part, prefix_space=prefix_space)

    try:
        parts = tok.split(text, limit, overlap=overlap, prefix_space=prefix_space)
    except ValueError as error:
        needed = re.search("no character is cut; max_tokens must be at least ([0-9]+)", str(error))
        assert needed is not None and int(needed[1]) > limit  # noqa: PT018
        assert any(count(character) > limit for character in characters(text))
        return
    assert all(type(part) is type(text) and part for part in parts)
    assert all(count(part) <= limit for part in parts)
    if not overlap:
        assert type(text)().join(parts) == text
        rest = text
        for part in parts:
            expected = truncated(tok, rest, limit, prefix_space)
            if expected:
                assert part == expected
            else:  # one character, and perhaps spaces in front that belong to no token
                last = characters(part)[-1]
                assert part.endswith(last)
                assert part == last or count(part[: -len(last)]) == 0
            rest = rest[len(part) :]
        return
    begin = end = 0
    for number, part in enumerate(parts):
        if number:
            before = parts[number - 1]
            # The first start, from `overlap` tokens before the end on, that gives a part that goes further.
            data = before.encode() if isinstance(text, str) else before
            spans = tok.align(data, prefix_space=prefix_space).offsets
            for token in range(max(len(spans) - overlap, 1), len(spans)):
                place = spans[token][0]
                if place > spans[token - 1][0] and not is_inside(data, place):
                    kept = len(data[:place].decode()) if isinstance(text, str) else place
                    new = truncated(tok, text[begin + kept :], limit, prefix_space)
                    if begin + kept + len(new) > end:
                        begin += kept
                        break
            else:
                begin = end
        assert text.startswith(part, begin)
        end = begin + len(part)
    assert end == len(text)


def characters(text: Any) -> list[Any]:
    """The characters of a text; of bytes, those that belong to none one by one."""
    if isinstance(text, str):
        return list(text)
    ends = [end for end in range(1, len(text) + 1) if not is_inside(text, end)]
    return [text[begin:end] for begin, end in pairwise([0, *ends])]


# --- Everything against it ------------------------------------------------------------------------


@pytest.mark.usefixtures("_small_windows")
@tiers.engines
@tiers.models()
@quick
@seed(SEED)
@given(data=st.data())
def test_any_text(name: str, engine: str, data: st.DataObject) -> None:
    tok = tokenizer(name, engine)
    text: Any = data.draw(st.one_of(texts(pieces_of(name)), broken(pieces_of(name))))
    limit = data.draw(st.integers(0, 12))
    prefix_space = data.draw(st.sampled_from([None, True, False]))
    found = tok.truncate(text, limit, prefix_space=prefix_space)
    assert found == truncated(tok, text, limit, prefix_space)
    assert type(found) is type(text)
    if limit:
        overlap = data.draw(st.integers(0, limit - 1))
        check_split(tok, text, limit, overlap, prefix_space)


@pytest.mark.usefixtures("_small_windows")
@tiers.engines
@tiers.models()
def test_longer_texts(name: str, engine: str) -> None:
    """Texts of which a window is a small part."""
    tok = tokenizer(name, engine)
    maker = TextMaker(SEED, pieces_of(name), corpus.SENTENCES)
    for number in range(max(2, EXAMPLES // (75 if engine == "core" else 150))):
        text: Any = "".join(maker.text() for _ in range(6 if engine == "core" else 3))
        if number % 3 == 2:
            text = maker.broken() + text.encode()
        limit = maker.rng.choice([0, 1, 3, 7, 20, 60])
        assert tok.truncate(text, limit) == truncated(tok, text, limit, None)
        if limit > 1:
            check_split(tok, text, limit, maker.rng.choice([0, 0, 1, limit // 2, limit - 1]), None)


# Texts in which much hangs on what follows: merges, rules and user-defined pieces that reach far.
REACHING = {
    "tokenizer.model.v1": "configuration disclaimer cancellation UnityEngine 🦙🦙   communications",
    "llama": "🦙 abracadabrabrac थे abracadabraing",
    "no-prefix": "lighthouse winter 1,024 ships the the keeper",
    "defaults": "ｱｲｳﾞ ﾊﾟﾊﾟ e\u0301e\u0302\u0323 ﷺ ...   the   keeper",
    "nfkc_cf": "ｱｲｳﾞ ﾊﾟﾊﾟ e\u0301e\u0302\u0323 ﷺ ẞ \u1100\u1161\u11a8",
    "tsv": "ab😀😀~a\u20ac ab😀 ~~ab",
    "charsmap-long": "x" * 45 + "ax" * 3 + "x" * 39 + "a",
    "charsmap-spaces": "a~b--=- ab\t\nab ~ ab",
    "user-defined": "abrabrac abra the the  a abrac▁▁▁▁<sep",
    "user-defined-llama": "<|im_start|<|im_start|>a b▁the▁🦙🦙🦙<0x41>x",
    "nested-user-defined": "=" * 95 + "a" + "=" * 101 + "ab=",
    "identity-no-fallback": "the ☃☃☃ keeper ☃ of☃the",
    "inner-spaces": "x in the in the a b c <▁> x x",
    "suffix": "the winter of 1987 was over",
}


@tiers.engines
@tiers.models(list(REACHING))
def test_any_window(name: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the first window ends, nothing is believed that the rest of the text changes."""
    monkeypatch.setattr(splitting, "MANY", 1 << 40)
    tok = tokenizer(name, engine)
    text = REACHING[name]
    for limit in (0, 1, 2, 3, 5, 8):
        expected = truncated(tok, text, limit, None)
        for window in range(1, len(text) + 1):
            cutter = splitting._Cutter(tok.facts, Plans(tok.facts).encode({}, "truncate"), limit)
            cutter._window = window
            assert text[: cutter.end(text, 0)] == expected, window


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("word", [b"zqzqzqzqzq", "jxjxjxjxjx"])
def test_rules_and_words_that_reach_far(word: str | bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule, or a user-defined piece that no rule touches, keeps what it begins with from being certain."""
    monkeypatch.setattr(splitting, "MANY", 1 << 40)
    proto = zoo.parse(zoo.model("llama"))
    rules = {b"j": b"of the winter"}
    if isinstance(word, str):
        zoo.add(proto, [word], zoo.Piece.USER_DEFINED)
    else:
        rules[word] = b"b"
    proto.normalizer_spec.precompiled_charsmap = charsmaps.make(rules)
    tok = cpbpe.Tokenizer.from_bytes(proto.SerializeToString())
    for text in ("zqzqzqzqzq klm", "jxjxjxjxjx klm"):
        for limit in (1, 2, 3):
            for window in range(1, len(text)):
                cutter = splitting._Cutter(tok.facts, Plans(tok.facts).encode({}, "truncate"), limit)
                cutter._window = window
                assert text[: cutter.end(text, 0)] == truncated(tok, text, limit, None)


@tiers.slow_reference
def test_windows_are_not_seen(engine: str) -> None:
    """Windows of the usual size give what small ones give, and what the whole text gives."""
    text = "\n".join(corpus.lines(120 if engine == "core" else 12))
    for name in ("tokenizer.model.v1", "defaults", "suffix", "user-defined"):
        tok = tokenizer(name, engine)
        for limit in (1, 10, 100, 500):
            assert tok.truncate(text, limit) == truncated(tok, text, limit, None)
        usual = [tok.split(text, 64), tok.split(text, 64, overlap=16)]
        with mock.patch.multiple(splitting, FIRST_WINDOW=1, FIRST_MARGIN=1):
            assert [tok.split(text, 64), tok.split(text, 64, overlap=16)] == usual


# --- Cases ----------------------------------------------------------------------------------------


def test_truncate(mistral: cpbpe.Tokenizer) -> None:
    text = "Ça 🦙 va?"
    assert mistral.encode_pieces(text) == [
        "▁",
        "Ç",
        "a",
        "▁",
        "<0xF0>",
        "<0x9F>",
        "<0xA6>",
        "<0x99>",
        "▁va",
        "?",
    ]
    found = [mistral.truncate(text, limit) for limit in range(12)]
    assert found == ["", "", "Ç", "Ça", *["Ça "] * 4, "Ça 🦙", "Ça 🦙 va", text, text]
    assert mistral.truncate(text.encode(), 4) == "Ça ".encode()
    assert mistral.truncate("", 0) == ""
    assert mistral.truncate(b"", 0) == b""
    for limit in (2**31, 2**32, 2**63, 10**30):  # too much for llama.cpp's int (GHSA-7rxv-5jhh-j6xx)
        assert mistral.truncate("Hi", limit) == "Hi"
    assert mistral.truncate(bytearray(b"Hello world"), 1) == b"Hello"  # type: ignore[type-var]
    assert mistral.truncate("Hello world", 1, prefix_space=False) == "Hello"


def test_split(mistral: cpbpe.Tokenizer) -> None:
    assert mistral.split("Hello world, this is it", 3) == ["Hello world,", " this is", " it"]
    assert mistral.split("", 3) == []
    assert mistral.split(b"", 3, overlap=1) == []
    assert mistral.split("Hi", 1) == ["Hi"]
    assert mistral.split("🦙🦙", 5) == ["🦙", "🦙"]
    with pytest.raises(
        ValueError, match=r"max_tokens is 4, but '🦙' at position 2 has 5 ids by itself.*at least 5"
    ):
        mistral.split("a 🦙", 4)
    assert mistral.split("a🦙", 4, prefix_space=False) == ["a", "🦙"]
    with pytest.raises(ValueError, match=r"max_tokens is 1, but b'\\xff' at position 3 has 2 ids by itself"):
        mistral.split(b"Hi!\xff", 1)


def test_overlap(mistral: cpbpe.Tokenizer) -> None:
    text = "one two three four five six seven"
    assert mistral.split(text, 4, overlap=1) == ["one two three four", " four five six", " six seven"]
    assert len(mistral.split("word " * 100, 10, overlap=9)) == 92


def test_spaces_that_go(engine: str) -> None:
    """A model that removes spaces still gives every part of the text back."""
    tok = tokenizer("defaults", engine)
    text = "   of   the   "
    assert tok.count(text) == 2
    assert tok.truncate(text, 2) == text
    assert tok.truncate(text, 1) == "   of"
    assert tok.truncate(text, 0) == ""
    assert tok.truncate("   ", 0) == "   "
    assert tok.split(text, 1) == ["   of", "   the   "]
    wide = " " * 10_000
    with pytest.raises(ValueError, match="max_tokens is 1, but '\U0001f999' at position 10000 has 2 ids"):
        tokenizer("nfkc", engine).split(f"{wide}🦙", 1)
    assert tok.split(f"{wide}of{wide}the{wide}", 1) == [f"{wide}of", f"{wide}the{wide}"]


def test_wrong_arguments(mistral: cpbpe.Tokenizer) -> None:
    with pytest.raises(ValueError, match="max_tokens must be at least 0, not -1"):
        mistral.truncate("Hi", -1)
    with pytest.raises(ValueError, match="max_tokens must be at least 1, not 0"):
        mistral.split("Hi", 0)
    with pytest.raises(ValueError, match="overlap is 3, and must be less than max_tokens, which is 3"):
        mistral.split("Hi", 3, overlap=3)
    with pytest.raises(ValueError, match="less than max_tokens, which is 2 without bos and eos"):
        mistral.split("Hi", 3, overlap=2, add_bos=True)
    with pytest.raises(ValueError, match="overlap must be at least 0, not -1"):
        mistral.split("Hi", 3, overlap=-1)
    with pytest.raises(TypeError, match="max_tokens must be an integer, not float"):
        mistral.truncate("Hi", 1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"split\(\) takes str or bytes, not list"):
        mistral.split(["Hi"], 3)  # type: ignore[type-var]
    with pytest.raises(UnicodeEncodeError):
        mistral.truncate("\ud800", 3)


# --- How long it takes ----------------------------------------------------------------------------


def test_only_the_beginning_is_encoded() -> None:
    tok = tokenizer("tokenizer.model.v1", ENGINES[0])
    text = "\n".join(corpus.lines(400)) * 40
    cutter = splitting._Cutter(tok.facts, Plans(tok.facts).encode({}, "truncate"), 10)
    cutter._encoder = engine = mock.Mock(wraps=tok.facts.engine)
    assert text[: cutter.end(text, 0)] == tok.truncate(text, 10)
    assert engine.align.called
    assert all(len(call.args[0]) < 1000 for call in engine.mock_calls)


@pytest.mark.parametrize("name", ["tokenizer.model.v1", "defaults", "unused", "suffix"])
@pytest.mark.parametrize("kind", ["words", "letters", "spaces", "characters"])
def test_time_is_linear(name: str, kind: str) -> None:
    """Eight times the text takes about eight times as long, not 64 times: no part looks at all the rest."""
    tok = tokenizer(name, ENGINES[0])
    unit = {"words": "of the old words. ", "letters": "a" * 18, "spaces": " " * 18, "characters": "未é" * 9}[
        kind
    ]
    length = 3_000 if ENGINES[0] == "core" else 300

    def seconds(times: int) -> float:
        best = 1e9
        for _ in range(2):
            begin = time.process_time()  # of this process, however busy the machine is
            tok.split(unit * (length // 18 * times), 100, overlap=10)
            best = min(best, time.process_time() - begin)
        return best

    assert seconds(8) < 24 * seconds(1) + 0.2
