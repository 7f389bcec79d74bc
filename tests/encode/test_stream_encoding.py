"""An encoder gives ids as early as they are certain, in bounded work; what it takes, and what it refuses."""

import random
from typing import Any

import pytest

from cpbpe import PieceType, Tokenizer
from tests.conftest import ENGINES
from tests.support import budget, charsmaps, corpus, tiers, zoo
from tests.support.budget import SEED
from tests.support.streams import DECODABLE, EDITED, NAMES, cut, encoded, load, pieces_of
from tests.support.texts import TextMaker
from tests.support.time_limit import time_limit

EXAMPLES = budget.examples(150)


@tiers.engines
@tiers.models(NAMES)
def test_encoding(name: str, engine: str) -> None:
    """Texts of every kind, as str and as bytes that are cut inside characters, valid or not."""
    tok, rng = load(name, engine), random.Random(SEED)
    maker = TextMaker(SEED, pieces_of(tok)[-10 if name in EDITED else 0 :], corpus.SENTENCES)
    for number in range(EXAMPLES // 8):
        text: str | bytes = (maker.text(), maker.text().encode(), maker.broken())[number % 3]
        prefix_space = rng.choice([None, True, False])
        expected = tok.encode(text, prefix_space=prefix_space)
        assert encoded(tok, rng, text, prefix_space) == expected, text


# --- As early as possible -------------------------------------------------------------------------


def test_ids_wait_for_the_end_of_a_word(engine: str) -> None:
    """In usual text all but the ids of the last word or two have come."""
    tok = load("tokenizer.model.v1", engine)
    text = " ".join(corpus.SENTENCES[:4])
    stream = tok.stream_encoder()
    came: list[int] = []
    for at, character in enumerate(text, 1):
        came += stream.push(character)
        waiting = len(tok.encode(text[: text.rfind(" ", 0, at) + 1].rstrip())) - len(came)
        assert waiting <= 3, text[:at]
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


@tiers.engines
@tiers.models(DECODABLE)
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


@tiers.slow_reference
@pytest.mark.parametrize(
    "name", ["llama", "user-defined-llama", "nested-user-defined", "user-defined-and-rules"]
)
@pytest.mark.parametrize("long", ["a" * 500, "🦙" * 301, "ba" * 300, "<|im_star" * 80, "z=" * 300])
def test_ids_come_as_early_after_a_long_chunk(name: str, long: str, engine: str) -> None:
    """A fruitless search for a cut in a long text does not delay the ids of the text after it."""
    tok = load(name, engine)
    front, rest = "x " + long, " cat" + " " * 9 + "<|im_end|> x"
    stream = tok.stream_encoder()
    came = [id for character in front for id in stream.push(character)]
    for at, character in enumerate(rest, 1):
        came += stream.push(character)
        assert came == tok.stream_encoder().push(front + rest[:at]), at


WAIT = ["broken-pieces", "charsmap-broken"]


@pytest.mark.parametrize("name", WAIT)
def test_models_that_wait(name: str, engine: str) -> None:
    tok = load(name, engine)
    stream = tok.stream_encoder()
    assert [stream.push("two words ") for _ in range(50)] == [[]] * 50
    assert stream.flush() == tok.encode("two words " * 50)


@tiers.engines
@pytest.mark.parametrize("name", ["llama", "defaults", "suffix", "unescaped", "unused"])
def test_spaces_may_be_written_as_spaces(name: str, engine: str) -> None:
    """`Engine.cut` finds the same place, and a raw variant the same ids: a stream relies on both."""
    tok = load(name, engine)
    raw = tok.facts.engine.variant(raw=True)
    space = "▁" if tok.spec.normalizer.escape_whitespaces else " "
    maker = TextMaker(SEED, pieces_of(tok), corpus.SENTENCES)
    found = set()
    for _ in range(EXAMPLES):
        text = maker.text()
        as_it_is, spelled = text.encode(), text.replace(" ", space).encode()
        place, expected = raw.cut(as_it_is), raw.cut(spelled)
        assert as_it_is[:place].replace(b" ", space.encode()) == spelled[:expected], text
        assert raw.encode(as_it_is) == raw.encode(spelled), text
        found.add(place > 0)
    assert found == {False, True}


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
    segment = stream._segment
    segment._engine = counting = Counting(segment._engine)
    found = [id for character in text for id in stream.push(character)] + stream.flush()
    assert found == tok.encode(text)
    kinds = [tok.vocab.piece_type(id) for id in range(len(tok) - 5)]
    user_defined = (id for id, kind in enumerate(kinds) if kind == PieceType.USER_DEFINED)
    ahead = max((len(tok.id_to_piece(id).encode()) for id in user_defined), default=0)
    assert counting.looked_at < len(text.encode()) * (ahead + 20)


# --- What can be pushed, and what is refused ------------------------------------------------------


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


@time_limit(20)
def test_rules_without_end() -> None:
    """Every place of a text could begin a rule that goes on to its end: nothing is certain before that."""
    empty = bytearray(charsmaps.cycle(b"\1"))
    empty[4 + 4 * 256 : 8 + 4 * 256] = bytes(4)  # the empty unit there is its own child for a NUL
    for charsmap in (charsmaps.cycle(b"a", b"b", b"c"), charsmaps.cycle(b"a", keys=False), bytes(empty)):
        proto = zoo.parse(zoo.model("llama"))
        proto.normalizer_spec.precompiled_charsmap = charsmap
        tok = Tokenizer.from_bytes(proto.SerializeToString())
        assert tok.facts.stream_shape is None
        stream = tok.stream_encoder()
        for text in ("a b", "abc" * 20 + " aaaa", "\0\0a"):
            assert stream.push(text[:3]) + stream.push(text[3:]) + stream.flush() == tok.encode(text)
            stream = tok.stream_encoder()
