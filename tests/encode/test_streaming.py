"""Streams give, joined, what the whole gives; and how they behave as Python objects.

`test_stream_decoding` and `test_stream_encoding` have what concerns one kind alone.
"""

import copy
import gc
import pickle
import random
import weakref
from typing import Any

import pytest
from hypothesis import given, seed
from hypothesis import strategies as st

import cpbpe
from tests.support import budget, corpus, tiers, zoo
from tests.support.budget import SEED
from tests.support.streams import DECODABLE, decoded, encoded, kinds_of_ids, load, pieces_of
from tests.support.texts import broken, texts


@tiers.engines
@tiers.models(DECODABLE)
@budget.quick(60, least=4)
@seed(SEED)
@given(data=st.data())
def test_hypothesis(name: str, engine: str, data: st.DataObject) -> None:
    tok = load(name, engine)
    rng = random.Random(data.draw(st.integers(0, 1000)))
    ids = data.draw(st.lists(st.sampled_from(data.draw(st.sampled_from(kinds_of_ids(tok)))), max_size=12))
    assert decoded(tok, rng, ids) == tok.decode(ids)
    text = data.draw(st.one_of(texts(pieces_of(tok)[-300:]), broken(pieces_of(tok)[-300:])))
    assert encoded(tok, rng, text) == tok.encode(text)


@tiers.slow_reference
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


# --- Objects --------------------------------------------------------------------------------------


def test_tables_are_made_when_needed_and_go_with_the_tokenizer() -> None:
    tok = cpbpe.Tokenizer.from_bytes(zoo.model("llama"))
    tok.decode(tok.encode("text"))
    held = {"engine", "special", "source"}
    assert vars(tok.facts).keys() == held
    tok.stream_decoder()
    tok.stream_decoder(skip_special_tokens=False)
    tok.stream_encoder()
    assert vars(tok.facts).keys() > held
    assert vars(tok.with_special_tokens(["<|a|>"]).facts).keys() == held  # its ids are others
    table = weakref.ref(tok.facts.stream_shape)
    del tok
    gc.collect()
    assert table() is None


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


@pytest.mark.parametrize("name", ["llama", "defaults", "user-defined-and-rules", "broken-pieces"])
def test_encoders_are_pickled_where_they_are(name: str, engine: str) -> None:
    """Another process goes on with the text, also within a special token or a character."""
    tok = load(name, engine).with_special_tokens(["<|end|>"])
    options: dict[str, Any] = {"allowed_special": "all", "add_bos": name == "llama"}
    text = "the cat  sat<|end|> 中国 🦙 \u0301 x<|en"
    both: tuple[str | bytes, ...] = (text, text.encode())
    for whole in both:
        for at in range(0, len(whole) + 1, 5):
            stream = tok.stream_encoder(**options)
            came = stream.push(whole[:at])
            again = pickle.loads(pickle.dumps(stream))
            assert repr(again) == repr(stream)
            assert came + again.push(whole[at:]) + again.flush() == tok.encode(whole, **options)


def test_decoders_are_not_pickled(engine: str) -> None:
    """A decoder holds tables of its tokenizer, which may be large; the message says what to do instead."""
    stream = load("llama", engine).stream_decoder()
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match=r"StreamDecoder.*stream_decoder\("):
            pickle.dumps(stream, protocol)
    copied, _ = copy.deepcopy((stream, 1))
    assert type(copied) is type(stream)
