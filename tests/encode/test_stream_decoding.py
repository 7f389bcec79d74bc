"""A decoder gives text as early as it is certain; what it takes, what it refuses, and what it remembers."""

import random
from itertools import product
from typing import Any

import numpy as np
import pytest

import cpbpe
from cpbpe.text.utf8 import repair
from tests.conftest import ENGINES
from tests.support import budget, corpus, tiers
from tests.support.budget import SEED
from tests.support.streams import DECODABLE, NEXT, decoded, kinds_of_ids, load, pieces_of
from tests.support.texts import TextMaker
from tests.support.zoo import DENORMALIZERS

EXAMPLES = budget.examples(150)


@tiers.engines
@tiers.models(DECODABLE)
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


# --- Stop texts -----------------------------------------------------------------------------------


def first_stop(text: str, stops: list[str]) -> tuple[str, str | None, str]:
    """What comes before the first stop text, that text, and what comes after it, by trying every place."""
    for end in range(len(text) + 1):
        for stop in sorted(stops, key=len, reverse=True):
            if text[:end].endswith(stop):
                return text[: end - len(stop)], stop, text[end:]
    return text, None, ""


def without_begins(text: str, stops: list[str]) -> str:
    """A text without what may be the beginning of a stop text at its end, by trying every length."""
    held = [n for n in range(len(text) + 1) if any(s.startswith(text[len(text) - n :]) for s in stops)]
    return text[: len(text) - max(held)]


@tiers.engines
@tiers.models(DECODABLE)
def test_stop_texts(name: str, engine: str) -> None:
    """Any ids in any pushes end where the whole text does, and after each push nothing waits too long."""
    tok, rng = load(name, engine), random.Random(SEED)
    kinds = kinds_of_ids(tok)
    for number in range(EXAMPLES // 8):
        ids = rng.choices(rng.choice(kinds), k=rng.choice([3, 8, 20]))
        ids = tok.encode("abababcabcab") + ids if number % 3 == 0 else ids
        whole = tok.decode(ids)
        stops = ["abc", "babca", "ca"][: rng.randint(0, 3)]
        for _ in range(rng.randint(1, 3)):
            begin = rng.randint(0, len(whole))
            stops.append(whole[begin : begin + rng.choice([1, 2, 5])] + rng.choice(["", "", "x"]) or "\ufffd")
        before, stopped, rest = first_stop(whole, stops)
        stream, plain = tok.stream_decoder(stop=iter(stops)), tok.stream_decoder()
        given = certain = ""
        while ids:
            count = rng.choice([1, 1, 2, 30])
            given += stream.push(ids[:count] if count > 1 else np.int64(ids[0]))
            certain += plain.push(ids[:count])
            ids = ids[count:]
            so_far, stop, after = first_stop(certain, stops)
            assert given == (without_begins(so_far, stops) if stop is None else so_far), (whole, stops)
            assert (stream.stopped, stream.rest) == (stop, after), (whole, stops)
        given += stream.flush()
        assert (given, stream.stopped, stream.rest) == (before, stopped, rest), (whole, stops)
        assert stream.flush() == ""
        assert before + (stopped or "") + rest == whole


def test_stop_texts_with_prompts_tokens_copies_and_errors(engine: str) -> None:
    tok = load("llama", engine).with_special_tokens(["<end>"])
    b, c, end = (tok.vocab[piece] for piece in ("b", "c", "<end>"))
    # The prompt is not searched, and what comes after the stop text is kept.
    stream = tok.stream_decoder(tok.encode("ab"), stop="bc")
    assert [stream.push(id) for id in (c, b, b, c, c)] == ["c", "", "b", "", ""]
    assert (stream.stopped, stream.rest, stream.push(b), stream.flush()) == ("bc", "c", "", "")
    assert stream.rest == "cb"
    assert repr(stream) == "<cpbpe.StreamDecoder: stopped at 'bc'>"
    # Tokens that are shown can be stop texts; without any, all is as usual.
    shown = tok.stream_decoder(stop=["<end>"])
    assert (shown.push([b, end, c]), shown.stopped, shown.rest) == ("b", "<end>", "c")
    shown = tok.stream_decoder(stop={"</s>"}, skip_special_tokens=False)
    assert (shown.push([b, 2]), shown.stopped) == ("b", "</s>")
    none: list[list[str] | None] = [None, []]
    for stop in none:
        usual = tok.stream_decoder(stop=stop)
        assert type(usual) is cpbpe.StreamDecoder
        assert (usual.push([b, c]), usual.stopped, usual.rest) == ("bc", None, "")
    # Long stop texts take little memory.
    long = tok.stream_decoder(stop="bc" * 500_000)
    assert (long.push([b, c, b]), long.push([b]), long.push([c, c]), long.flush()) == ("", "bcb", "bcc", "")
    # A copy has what was held back; an error changes nothing.
    one = tok.stream_decoder(stop=["bcc", "bcb"])
    assert one.push([c, b]) == "c"
    two = one.copy()
    with pytest.raises(IndexError, match="outside the vocabulary"):
        one.push([c, 10**6])
    assert (one.push([c, c]), one.stopped) == ("", "bcc")
    assert (two.push(c), two.stopped, two.flush(), two.rest) == ("", None, "bc", "")
    with pytest.raises(ValueError, match="has ended"):
        two.push(c)


def test_repr(engine: str) -> None:
    tok = load("llama", engine)
    stream = tok.stream_decoder()
    assert repr(stream) == "<cpbpe.StreamDecoder>"
    stream.push(tok.vocab["<0xF0>"])
    assert repr(stream) == "<cpbpe.StreamDecoder: holds b'\\xf0'>"
    stream.flush()
    assert repr(stream) == "<cpbpe.StreamDecoder: ended>"
    stream = tok.stream_decoder(stop=["b!"])
    stream.push(tok.vocab["b"])
    assert repr(stream) == "<cpbpe.StreamDecoder: holds 'b'>"
    stream = tok.stream_decoder(stop=["b" * 50])
    stream.push([tok.vocab["b"]] * 45)
    assert repr(stream) == f"<cpbpe.StreamDecoder: holds '{'b' * 40}'...>"
    encoder = tok.stream_encoder(allowed_special="all")
    assert repr(encoder) == "<cpbpe.StreamEncoder>"
    encoder.push("a</")
    assert repr(encoder) == r"<cpbpe.StreamEncoder: holds b'\xe2\x96\x81a</'>"
    encoder.flush()
    assert repr(encoder) == "<cpbpe.StreamEncoder: ended>"


# --- As early as possible -------------------------------------------------------------------------


FIRST = [0x41, 0x80, 0x90, 0xA0, 0xBF, 0xC0, 0xC2, 0xDF, 0xE0, 0xE2, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF]


def shared(texts: list[str]) -> str:
    """The longest beginning that all texts have."""
    first, last = min(texts), max(texts)
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[:same]


def test_bytes_wait_only_for_what_can_change_them() -> None:
    """What came is the longest beginning shared by all texts that the ids could still become."""
    tok = load("llama", ENGINES[0])
    byte = [tok.piece_to_id(f"<0x{i:02X}>") or 0 for i in range(256)]
    others = [tok.piece_to_id("a") or 0, tok.piece_to_id("<s>") or 0, byte[0xE2]]
    after = [[byte[b] for b in some] for some in NEXT] + [[id] for id in others]
    front = tok.encode("x")
    for length in (1, 2, 3):
        for some in product(FIRST, repeat=length):
            ids = [*front, *(byte[b] for b in some)]
            stream = tok.stream_decoder()
            assert stream.push(ids) == shared([tok.decode(ids + more) for more in after]), some


@tiers.slow_reference
@pytest.mark.parametrize("name", ["llama", "defaults", "no-prefix", "broken-pieces", "special", "suffix"])
def test_text_waits_only_for_what_can_change_it(name: str, engine: str) -> None:
    tok, rng = load(name, engine), random.Random(SEED)
    kinds = kinds_of_ids(tok)
    bad = [id for id, piece in enumerate(tok.vocab.token_bytes()) if piece != repair(piece)]
    after = [[id] for id in rng.sample(kinds[0], 40) + bad] + [rng.choices(kinds[1], k=3) for _ in range(20)]
    after += [[], *([a, b] for a in bad[-8:] for b in bad)]
    if tok.piece_to_id("<0x80>"):
        after += [[tok.piece_to_id(f"<0x{byte:02X}>") or 0 for byte in some] for some in NEXT]
    for _ in range(60):
        ids = rng.choices(rng.choice([*kinds, bad or kinds[2]]), k=rng.choice([0, 1, 2, 3]))
        skip = rng.choice([None, True, False])
        texts = [tok.decode(ids + more, skip_special_tokens=skip) for more in after]
        came = tok.stream_decoder(skip_special_tokens=skip).push(ids)
        assert all(text.startswith(came) for text in texts)
        if name != "broken-pieces":  # there half a character waits, even if no piece has the other half
            assert len(shared(texts)) <= len(came), (ids, skip, came)


def test_a_decoder_remembers_no_text() -> None:
    tok = load("llama", ENGINES[0])
    stream = tok.stream_decoder()
    for _ in range(50):
        stream.push(kinds_of_ids(tok)[2] * 20)
        assert len(stream._held) < 4


# --- What can be pushed, and what is refused ------------------------------------------------------


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


def test_special_tokens(engine: str) -> None:
    """The same options as decode; a new segment begins after a token that is shown."""
    tok = load("llama", engine)
    the = tok.encode("the")
    a = tok.vocab.special_tokens["<|a|>"]
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
