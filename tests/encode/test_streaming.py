"""Streams give, joined, what the whole gives; as early as it is certain; and in bounded work for every part.

CPBPE_EXAMPLES sets how many texts and lists of ids each model is tried on, see `tests/encode/test_parity.py`.
"""

import copy
import gc
import os
import pickle
import random
import re
import threading
import weakref
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import cpbpe
from cpbpe import PieceType
from cpbpe.text.utf8 import certain, repair
from tests.conftest import ENGINES
from tests.support import corpus, zoo
from tests.support.texts import TextMaker, broken, texts

EXAMPLES = int(os.environ.get("CPBPE_EXAMPLES", "300"))
SEED = int(os.environ.get("CPBPE_SEED", "1"))
DENORMALIZERS = ["denormalizer", "denormalizer-plain", "denormalizer-defaults"]


def _words_and_rules(proto: zoo.Proto) -> None:
    """User-defined pieces that rules, or the removal of spaces, would change, were they not seen in time."""
    zoo.add(proto, ["\ufb01x", "a  b", "x \ufb01", "= =", "   ", "e\u0301e"], zoo.Piece.USER_DEFINED)


def _named_like_text(surface: str) -> Callable[[zoo.Proto], None]:
    """Pieces that are no text, and whose names begin with a space."""

    def edit(proto: zoo.Proto) -> None:
        proto.pieces[0].piece = "▁unk".encode()
        proto.trainer_spec.unk_piece = "▁unk".encode()
        proto.trainer_spec.unk_surface = surface.encode()
        zoo.add(proto, ["▁control"], zoo.Piece.CONTROL)

    return edit


EDITED: dict[str, tuple[str, Callable[[zoo.Proto], None]]] = {
    "words-and-rules": ("defaults", _words_and_rules),
    "words-and-rules-keep-spaces": ("tsv-keep-spaces", _words_and_rules),
    "named-like-text": ("llama", _named_like_text("surface")),
    "named-like-text-empty": ("llama", _named_like_text("")),
    "named-like-text-squeeze": ("nfkc", _named_like_text("")),
}
NAMES = [*zoo.NAMES, *EDITED]
DECODABLE = [name for name in NAMES if name not in DENORMALIZERS]

quick = settings(
    max_examples=max(4, min(EXAMPLES // 60, 2000)),
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)


def shared(texts: list[str]) -> str:
    """The longest beginning that all texts have."""
    first, last = min(texts), max(texts)
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[:same]


@cache
def load(name: str, engine: str) -> cpbpe.Tokenizer:
    """A model with three added tokens, and ids between them that are not in use."""
    if name in EDITED:
        base, edit = EDITED[name]
        proto = zoo.parse(zoo.model(base))
        edit(proto)
        data = proto.SerializeToString()
    else:
        data = zoo.model(name)
    with mock.patch.dict(os.environ, {"CPBPE_ENGINE": engine}):
        tok = cpbpe.Tokenizer.from_bytes(data)
    return tok.with_special_tokens({"<|a|>": len(tok), "▁<é>": len(tok) + 3, "<|c|>": len(tok) + 4})


@cache
def pieces_of(tok: cpbpe.Tokenizer) -> list[str]:
    return [tok.id_to_piece(id) for id in range(len(tok) - 5)]


@cache
def kinds_of_ids(tok: cpbpe.Tokenizer) -> list[list[int]]:
    """All ids; those of the first pieces, which are the special ones; odd ones; odd ones that meet often."""
    size = len(tok) - 5
    added = [size, size + 3, size + 4]
    low = list(range(min(size, 300)))
    types = (PieceType.BYTE, PieceType.CONTROL, PieceType.UNKNOWN)
    odd = [id for id in range(size) if tok.piece_type(id) in types]
    # Bytes that make characters, often; and what may stand between them.
    table = tok.token_bytes()
    few = [id for id in odd if tok.piece_type(id) != PieceType.BYTE or table[id] in FEW]
    broken = [id for id, data in enumerate(table) if repair(data) != data and len(data) > 1]
    spaced = [id for id, data in enumerate(table) if data.startswith(b" ")][:4]
    return [[*range(size), *added * 20], low + added * 5, odd + added, few + broken + spaced + added]


def cut(rng: random.Random, whole: Any) -> Iterator[Any]:
    """The whole in parts of random size, some of them empty."""
    at = 0
    while at < len(whole):
        size = rng.choice([0, 1, 1, 1, 2, 3, 8, 40])
        yield whole[at : at + size]
        at += size


def decoded(tok: cpbpe.Tokenizer, rng: random.Random, ids: list[int], **options: Any) -> str:
    """What a stream gives for ids, pushed one at a time or some at a time."""
    stream = tok.stream_decoder(**options)
    parts = [stream.push(part[0] if len(part) == 1 else part) for part in cut(rng, ids)]
    return "".join(parts) + stream.flush()


def encoded(
    tok: cpbpe.Tokenizer, rng: random.Random, text: str | bytes, prefix_space: bool | None = None
) -> list[int]:
    stream = tok.stream_encoder(prefix_space=prefix_space)
    return [id for part in cut(rng, text) for id in stream.push(part)] + stream.flush()


FEW = [bytes([byte]) for byte in (0xC3, 0xE2, 0x96, 0x81, 0x81, 0xA9)]


# --- The laws -------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", DECODABLE)
def test_decoding(name: str, engine: str) -> None:
    """Ids of every kind, with every option."""
    tok, rng = load(name, engine), random.Random(SEED)
    maker, kinds = TextMaker(SEED, pieces_of(tok), corpus.SENTENCES), kinds_of_ids(tok)
    for number in range(EXAMPLES // 8):
        ids = rng.choices(rng.choice(kinds), k=rng.choice([0, 1, 2, 3, 8, 20]))
        if number % 3 == 0:
            ids = tok.encode(maker.broken()) + ids
        options: dict[str, Any] = {
            "skip_special_tokens": rng.choice([None, True, False]),
            "keep_prefix_space": rng.random() < 0.3,
            "prefix_after_special": rng.random() < 0.6,
        }
        expected = tok.decode(ids, **options)
        assert decoded(tok, rng, ids, **options) == expected, (ids, options)

        prompt, rest = ids[: len(ids) // 2], ids[len(ids) // 2 :]
        given = tok.stream_decoder(**options).push(prompt)
        assert given + decoded(tok, rng, rest, prompt_ids=prompt, **options) == expected, (ids, options)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", NAMES)
def test_encoding(name: str, engine: str) -> None:
    """Texts of every kind, as str and as bytes that are cut inside characters, valid or not."""
    tok, rng = load(name, engine), random.Random(SEED)
    maker = TextMaker(SEED, pieces_of(tok)[-10 if name in EDITED else 0 :], corpus.SENTENCES)
    for number in range(EXAMPLES // 8):
        text: str | bytes = (maker.text(), maker.text().encode(), maker.broken())[number % 3]
        prefix_space = rng.choice([None, True, False])
        expected = tok.encode(text, prefix_space=prefix_space)
        assert encoded(tok, rng, text, prefix_space) == expected, text


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", DECODABLE)
@quick
@seed(SEED)
@given(data=st.data())
def test_hypothesis(name: str, engine: str, data: st.DataObject) -> None:
    tok = load(name, engine)
    rng = random.Random(data.draw(st.integers(0, 1000)))
    ids = data.draw(st.lists(st.sampled_from(data.draw(st.sampled_from(kinds_of_ids(tok)))), max_size=12))
    assert decoded(tok, rng, ids) == tok.decode(ids)
    text = data.draw(st.one_of(texts(pieces_of(tok)[-300:]), broken(pieces_of(tok)[-300:])))
    assert encoded(tok, rng, text) == tok.encode(text)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["llama", "nmt_nfkc_cf", "user-defined", "identity-no-fallback"])
def test_long_texts(name: str, engine: str) -> None:
    tok, rng = load(name, engine), random.Random(SEED)
    for text in [
        "\n".join(corpus.lines(100)),
        "a" * 3000,
        " " * 3000,
        "▁" * 1000,
        "ab" * 1500,
        "☃" * 1000,
        "abra" * 1000,
        "x" + " " * 2000,
    ]:
        ids = tok.encode(text)
        assert encoded(tok, rng, text) == ids
        assert encoded(tok, rng, text.encode()) == ids
        assert decoded(tok, rng, ids) == tok.decode(ids)


# --- As early as possible -------------------------------------------------------------------------

FIRST = [0x41, 0x80, 0x90, 0xA0, 0xBF, 0xC0, 0xC2, 0xDF, 0xE0, 0xE2, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF]
NEXT = [[], *([a, *rest] for a in (0x80, 0x90, 0x9F, 0xA0, 0xBE) for rest in ([], [0x80], [0x80, 0x80]))]


def test_bytes_wait_only_for_what_can_change_them() -> None:
    """What came out is the longest beginning that all texts share which could come of the ids."""
    tok = load("llama", ENGINES[0])
    byte = [tok.piece_to_id(f"<0x{i:02X}>") or 0 for i in range(256)]
    others = [tok.piece_to_id("a") or 0, tok.piece_to_id("<s>") or 0, byte[0xE2]]
    behind = [[byte[b] for b in some] for some in NEXT] + [[id] for id in others]
    front = tok.encode("x")
    for length in (1, 2, 3):
        for some in product(FIRST, repeat=length):
            ids = [*front, *(byte[b] for b in some)]
            stream = tok.stream_decoder()
            assert stream.push(ids) == shared([tok.decode(ids + more) for more in behind]), some


@pytest.mark.parametrize("name", ["llama", "defaults", "no-prefix", "broken-pieces", "special", "suffix"])
def test_text_waits_only_for_what_can_change_it(name: str, engine: str) -> None:
    tok, rng = load(name, engine), random.Random(SEED)
    kinds = kinds_of_ids(tok)
    bad = [id for id, piece in enumerate(tok.token_bytes()) if piece != repair(piece)]
    behind = [[id] for id in rng.sample(kinds[0], 40) + bad] + [rng.choices(kinds[1], k=3) for _ in range(20)]
    behind += [[], *([a, b] for a in bad[-8:] for b in bad)]
    if tok.piece_to_id("<0x80>"):
        behind += [[tok.piece_to_id(f"<0x{byte:02X}>") or 0 for byte in some] for some in NEXT]
    for _ in range(60):
        ids = rng.choices(rng.choice([*kinds, bad or kinds[2]]), k=rng.choice([0, 1, 2, 3]))
        skip = rng.choice([None, True, False])
        texts = [tok.decode(ids + more, skip_special_tokens=skip) for more in behind]
        came = tok.stream_decoder(skip_special_tokens=skip).push(ids)
        assert all(text.startswith(came) for text in texts)
        if name != "broken-pieces":  # there half a character waits, even if no piece has the other half
            assert len(shared(texts)) <= len(came), (ids, skip, came)


def test_ids_wait_for_the_end_of_a_word(engine: str) -> None:
    """In usual text all but the ids of the last word or two have come."""
    tok = load("tokenizer.model.v1", engine)
    text = " ".join(corpus.SENTENCES[:4])
    stream = tok.stream_encoder()
    came: list[int] = []
    for at, character in enumerate(text, 1):
        came += stream.push(character)
        behind = len(tok.encode(text[: text.rfind(" ", 0, at) + 1].rstrip())) - len(came)
        assert behind <= 3, text[:at]
    assert came + stream.flush() == tok.encode(text)


@pytest.mark.parametrize(
    ("name", "parts", "ids"),
    [
        # Nothing joins a letter and ▁, nor 𓀀 and anything; it has four bytes.
        ("tokenizer.model.v1", ["Hel", "lo", " wor", "ld", "𓀀", "!"], [0, 0, 1, 0, 1, 4]),
        # Spaces may be the last; a letter may get an accent, which a rule would join to it.
        ("defaults", ["  ", "the", "  ", " c", "at"], [0, 0, 0, 0, 1]),
    ],
)
def test_what_comes_when(name: str, parts: list[str], ids: list[int], engine: str) -> None:
    stream = load(name, engine).stream_encoder()
    assert [len(stream.push(part)) for part in parts] == ids


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", [name for name in NAMES if name not in DENORMALIZERS])
def test_ids_come_as_early_however_text_is_cut(name: str, engine: str) -> None:
    """A character at a time, or all at once: the same ids have come."""
    tok, rng = load(name, engine), random.Random(SEED)
    maker = TextMaker(SEED, pieces_of(tok)[-10:], corpus.SENTENCES)
    for number in range(EXAMPLES // 40):
        text: str | bytes = (maker.text(), maker.broken())[number % 2][:200]
        stream = tok.stream_encoder()
        came: list[int] = []
        at = 0
        for part in cut(rng, text):
            came += stream.push(part)
            at += len(part)
            assert came == tok.stream_encoder().push(text[:at]), text[:at]


@pytest.mark.parametrize("name", ["llama", "user-defined-llama", "nested-user-defined", "words-and-rules"])
@pytest.mark.parametrize("long", ["a" * 500, "🦙" * 301, "ba" * 300, "<|im_star" * 80, "z=" * 300])
def test_ids_come_as_early_behind_a_long_word(name: str, long: str, engine: str) -> None:
    """What the search for a place remembers of a text without one does not make it late."""
    tok = load(name, engine)
    front, behind = "x " + long, " cat" + " " * 9 + "<|im_end|> x"
    stream = tok.stream_encoder()
    came = [id for character in front for id in stream.push(character)]
    for at, character in enumerate(behind, 1):
        came += stream.push(character)
        assert came == tok.stream_encoder().push(front + behind[:at]), at


WAIT = ["unused", "broken-pieces", "charsmap-broken"]


@pytest.mark.parametrize("name", WAIT)
def test_models_that_wait(name: str, engine: str) -> None:
    tok = load(name, engine)
    stream = tok.stream_encoder()
    assert [stream.push("two words ") for _ in range(50)] == [[]] * 50
    assert stream.flush() == tok.encode("two words " * 50)


# --- Bounded work ---------------------------------------------------------------------------------


class Counting:
    """An engine that counts how much text it is asked to look at."""

    def __init__(self, engine: Any):
        self._engine = engine
        self.looked_at = 0

    def cut(self, text: bytes) -> int:
        self.looked_at += len(text)
        found: int = self._engine.cut(text)
        return found

    def encode(self, text: bytes) -> list[int]:
        self.looked_at += len(text)
        found: list[int] = self._engine.encode(text)
        return found


@pytest.mark.parametrize("name", ["llama", "user-defined-llama", "defaults", "tsv", "nested-user-defined"])
@pytest.mark.parametrize("text", ["a" * 6000, "▁" * 6000, " " * 6000, "the cat sat " * 500, "未" * 2000])
def test_every_part_of_a_text_is_looked_at_a_few_times(name: str, text: str) -> None:
    """Not once for every part that follows: that would be the length squared, 18 million here."""
    tok = load(name, ENGINES[0])
    stream: Any = tok.stream_encoder()
    stream._engine = counting = Counting(stream._engine)
    found = [id for character in text for id in stream.push(character)] + stream.flush()
    assert found == tok.encode(text)
    kinds = [tok.piece_type(id) for id in range(len(tok) - 5)]
    words = (id for id, kind in enumerate(kinds) if kind == PieceType.USER_DEFINED)
    ahead = max((len(tok.id_to_piece(id).encode()) for id in words), default=0)
    assert counting.looked_at < len(text.encode()) * (ahead + 20)


def test_a_decoder_remembers_no_text() -> None:
    tok = load("llama", ENGINES[0])
    stream = tok.stream_decoder()
    for _ in range(50):
        stream.push(kinds_of_ids(tok)[2] * 20)
        assert len(stream._held) < 4


def test_tables_are_made_late_and_go_with_the_tokenizer() -> None:
    tok = cpbpe.Tokenizer.from_bytes(zoo.model("llama"))
    tok.decode(tok.encode("text"))
    assert not tok._special.tables
    tok.stream_decoder()
    tok.stream_decoder(skip_special_tokens=False)
    tok.stream_encoder()
    assert tok._special.tables
    assert not tok.with_special_tokens(["<|a|>"])._special.tables  # its ids are others
    table = weakref.ref(tok._special.tables["plan"].shape)
    del tok
    gc.collect()
    assert table() is None


def test_threads_make_streams_at_the_same_time() -> None:
    tok = cpbpe.Tokenizer.from_bytes(zoo.model("tokenizer.model.v1"))
    ids = tok.encode(corpus.SENTENCES[0])
    results: list[str] = []

    def work() -> None:
        results.append(tok.stream_decoder().push(ids))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [corpus.SENTENCES[0]] * 8


# --- Decoding: what can be pushed, and what is refused --------------------------------------------


def test_ids_of_every_kind(engine: str) -> None:
    tok = load("llama", engine)
    ids = tok.encode("the cat")
    kinds: list[Any] = [ids, tuple(ids), iter(ids), np.array(ids), np.array(ids, ">u2")]
    for some in kinds:
        assert tok.stream_decoder().push(some) == "the cat"
    stream = tok.stream_decoder(np.array(ids[:1]))
    assert [stream.push(id) for id in np.array(ids[1:])] == _rest(tok, ids)
    assert tok.stream_decoder().push([]) == ""
    assert tok.stream_decoder(ids[0]).push(ids[1:]) == "".join(_rest(tok, ids))


def _rest(tok: cpbpe.Tokenizer, ids: list[int]) -> list[str]:
    stream = tok.stream_decoder(ids[:1])
    return [stream.push(id) for id in ids[1:]]


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (705, IndexError, "id 705 at position 0 is outside the vocabulary: 705 pieces, 0 to 704"),
        (-1, IndexError, "id -1 at position 0 is outside"),
        ([300, 1 << 40], IndexError, f"id {1 << 40} at position 1"),
        ([300, 701], IndexError, "id 701 .*not in use"),
        (702, IndexError, "id 702 .*not in use"),
        ("text", TypeError, r"push\(\) takes ids \(integers\), not str"),
        (b"text", TypeError, "not bytes"),
        ([300, "text"], TypeError, "found str at position 1"),
        ([None], TypeError, "NoneType"),
        (1.0, TypeError, "float"),
    ],
)
@pytest.mark.parametrize("begun", [False, True])
def test_wrong_ids_change_nothing(
    wrong: Any, error: type[Exception], message: str, begun: bool, engine: str
) -> None:
    tok = load("llama", engine)
    llama = tok.encode("𓀀", prefix_space=False)
    stream = tok.stream_decoder()
    if begun:
        stream.push([*tok.encode("x"), *llama[:-1]])
    with pytest.raises(error, match=message):
        stream.push(wrong)
    assert stream.push(llama[-1:] if begun else llama) == "𓀀"
    with pytest.raises(error):
        tok.stream_decoder(wrong)


def test_denormalizers_are_refused(engine: str) -> None:
    for name in DENORMALIZERS:
        with pytest.raises(ValueError, match=r"denormalizer.*call decode\(\) with all of them"):
            load(name, engine).stream_decoder()


def test_after_flush(engine: str) -> None:
    tok = load("llama", engine)
    stream = tok.stream_decoder(tok.encode("𓀀")[:-2])
    assert stream.flush() == "��"
    assert stream.flush() == ""
    for more in (300, [300], [], 10**9):
        with pytest.raises(ValueError, match=r"ended with flush\(\); make a new one"):
            stream.push(more)
    assert tok.stream_decoder().flush() == ""


def test_a_prompt_that_ends_inside_a_character(engine: str) -> None:
    tok = load("llama", engine)
    ids = tok.encode("a 𓀀")
    assert tok.stream_decoder(ids[:-1]).push(ids[-1]) == "𓀀"
    assert tok.stream_decoder(ids[:-1]).flush() == "���"
    assert tok.stream_decoder(ids).push(tok.encode("b")) == " b"
    assert tok.stream_decoder([]).push(tok.encode("b")) == "b"


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, lambda stream: stream.copy()])
def test_copies_go_their_own_ways(make: Any, engine: str) -> None:
    tok = load("llama", engine)
    ids = tok.encode("a 𓀀")
    one = tok.stream_decoder(skip_special_tokens=False)
    one.push(ids[:-1])
    two = make(one)
    assert one.push(ids[-1]) == "𓀀"
    assert two.flush() == "���"
    assert one.push(ids[-1]) == "�"

    three = tok.stream_encoder()
    came = three.push("the cat sat, and th")
    four = make(three)
    assert came + three.push("ere was") + three.flush() == tok.encode("the cat sat, and there was")
    assert came + four.push("em") + four.flush() == tok.encode("the cat sat, and them")


def test_streams_are_not_pickled(engine: str) -> None:
    """A stream holds tables of its tokenizer, maybe large; what to do instead is said."""
    tok = load("llama", engine)
    pairs = [(tok.stream_decoder(), "stream_decoder"), (tok.stream_encoder(), "stream_encoder")]
    for stream, method in pairs:
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with pytest.raises(TypeError, match=rf"{type(stream).__name__}.*{method}\("):
                pickle.dumps(stream, protocol)
        copied, _ = copy.deepcopy((stream, 1))
        assert type(copied) is type(stream)


def test_special_tokens(engine: str) -> None:
    """The same options as decode; a new stretch begins behind a token that is shown."""
    tok = load("llama", engine)
    the = tok.encode("the")
    a = tok.special_tokens["<|a|>"]
    ids = [1, *the, a, *the, 2]
    for skip, after, parts in [
        (None, True, ["", "the", "<|a|>", "the", ""]),
        (None, False, ["", "the", "<|a|>", " the", ""]),
        (True, True, ["", "the", "", " the", ""]),
        (False, True, ["<s>", "the", "<|a|>", "the", "</s>"]),
        (False, False, ["<s>", " the", "<|a|>", " the", "</s>"]),
    ]:
        options: Any = {"skip_special_tokens": skip, "prefix_after_special": after}
        stream = tok.stream_decoder(**options)
        assert [stream.push(id) for id in ids] == parts
        assert tok.decode(ids, **options) == "".join(parts)


# --- Encoding: what can be pushed, and what is refused --------------------------------------------


def test_kinds_of_text(engine: str) -> None:
    tok = load("llama", engine)
    expected = tok.encode("Grüße")
    kinds: list[Any] = [bytes, bytearray, memoryview]
    for kind in kinds:
        stream = tok.stream_encoder()
        parts = [stream.push(kind(bytes([byte]))) for byte in "Grüße".encode()]
        assert [id for part in parts for id in part] + stream.flush() == expected
    stream = tok.stream_encoder()
    stream.push("a")
    with pytest.raises(TypeError, match=r"push\(\) takes str, as the parts before, not bytes"):
        stream.push(b"b")
    for wrong in (5, None, ["a"]):
        with pytest.raises(TypeError, match=r"push\(\) takes str or bytes, not"):
            stream.push(wrong)  # type: ignore[arg-type]
    with pytest.raises(UnicodeEncodeError):
        stream.push("b\ud800")
    assert stream.flush() == tok.encode("a")


def test_encoder_after_flush(engine: str) -> None:
    for name in ("llama", "unused", "suffix"):
        tok = load(name, engine)
        stream = tok.stream_encoder()
        stream.push("a")
        assert stream.flush() == tok.encode("a")
        assert stream.flush() == []
        with pytest.raises(ValueError, match=r"ended with flush\(\); make a new one"):
            stream.push("b")
        assert tok.stream_encoder().flush() == []


def test_unknown_characters_become_one_piece(engine: str) -> None:
    """However they arrive, without byte fallback."""
    tok = load("identity-no-fallback", engine)
    assert tok.unk_id is not None
    stream = tok.stream_encoder(prefix_space=False)
    found = [stream.push(part) for part in ["a", "☃", "☃☃", "☃", "a", "☃"]]
    assert found.count([tok.unk_id]) == 1
    assert [id for part in found for id in part] + stream.flush() == tok.encode("a☃☃☃☃a☃", prefix_space=False)


# --- Parts ----------------------------------------------------------------------------------------


def test_certain_is_repair() -> None:
    """One U+FFFD for every byte that belongs to no character, and nothing held that cannot become one."""
    some_bytes = [0x41, 0x80, 0x9F, 0xA0, 0xBF, 0xC1, 0xC3, 0xE0, 0xED, 0xF0, 0xF4, 0xFE]
    for length in range(5):
        for some in product(some_bytes, repeat=length):
            data = bytes(some)
            assert certain(data, final=True) == (repair(data).decode(), length)
            text, used = certain(data)
            assert repair(data[:used]).decode() == text
            rest = data[used:]
            assert len(rest) < 4
            if rest:  # then some end makes it one character
                ends = product([0x80, 0x90, 0xA0], repeat=3)
                assert any(re.fullmatch(r"[^\ufffd].*", repair(rest + bytes(end)).decode()) for end in ends)
