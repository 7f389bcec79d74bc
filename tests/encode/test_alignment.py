"""Alignment: what `Encoding` says about characters, tokens and words, on every model and both engines."""

import dataclasses
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, seed
from hypothesis import strategies as st

import cpbpe
from cpbpe.text.utf8 import character_positions, is_inside, repair, valid_character
from cpbpe.tokenizer.encoding import Encoding
from tests.support import budget, tiers, zoo
from tests.support.budget import SEED
from tests.support.texts import broken, texts
from tests.support.tokenizers import pieces_of, tokenizer

quick = budget.quick(40, least=8)


def characters(data: bytes) -> list[bytes]:
    """The characters of a text as bytes; a byte that belongs to none is one."""
    found, at = [], 0
    while at < len(data):
        found.append(valid_character(data, at) or data[at : at + 1])
        at += len(found[-1])
    return found


def check(found: Encoding) -> None:
    """Everything that can be said without knowing how it is found."""
    data = found.text if isinstance(found.text, bytes) else found.text.encode()
    chars = characters(data)
    length = len(chars) if found.unit == "char" else len(data)

    for position in range(length):
        holders = [token for token, (begin, end) in enumerate(found.offsets) if begin <= position < end]
        assert len(holders) <= 1
        assert found.char_to_token(position) == next(iter(holders), None)
    for token, (begin, end) in enumerate(found.offsets):
        assert found.token_to_chars(token) == (None if begin == end else (begin, end))

    # Words: the pieces of the text that are not whitespace nor special, in order.
    text = repair(data).decode() if isinstance(found.text, bytes) else found.text
    owner: list[int | None] = []  # the word of each character
    marks = [False] * len(chars)
    places = range(len(chars) + 1) if found.unit == "char" else character_positions(data)
    for id, (begin, end) in zip(found.ids, found.offsets, strict=True):
        if id in found.special:
            marks[places[begin] : places[end]] = [True] * (places[end] - places[begin])
    words: list[list[int]] = []
    last = None
    for i, character in enumerate(text):
        if character.isspace() or marks[i]:
            owner.append(None)
        else:
            if last is None or not words:
                words.append([i, i])
            words[-1][1] = i + 1
            owner.append(len(words) - 1)
        last = owner[-1]
    if found.unit == "char":
        assert found.word_spans == [(begin, end) for begin, end in words]
    else:
        starts = [len(b"".join(chars[:i])) for i in range(len(chars) + 1)]
        assert found.word_spans == [(starts[begin], starts[end]) for begin, end in words]
    for token, (begin, end) in enumerate(found.offsets):
        expected = None
        if found.ids[token] not in found.special:
            last_place = max(end, begin + 1)
            inside = [owner[places[p]] for p in range(begin, min(last_place, length))]
            expected = next((word for word in inside if word is not None), None)
        assert found.word_ids[token] == expected


@tiers.engines
@tiers.models()
@quick
@seed(SEED)
@given(data=st.data())
def test_any_text(name: str, engine: str, data: st.DataObject) -> None:
    tok = tokenizer(name, engine)
    text = data.draw(st.one_of(texts(pieces_of(name)), broken(pieces_of(name))))
    options: Any = {
        "unit": data.draw(st.sampled_from([None, "char", "byte"])),
        "reverse": data.draw(st.booleans()),
        "allowed_special": data.draw(st.sampled_from([(), "all"])),
        "add_bos": tok.bos_id is not None and data.draw(st.booleans()),
    }
    found = tok.align(text, **options)
    check(found)
    check_truncated(found, data.draw(st.integers(0, len(found))))


def check_truncated(found: Encoding, limit: int) -> None:
    """Only whole characters are left, and no token more could have stayed."""
    sides: list[Literal["left", "right"]] = ["left", "right"]
    for side in sides:
        cut = found.truncate(limit, side)
        size = len(cut)
        kept = slice(size) if side == "right" else slice(len(found) - size, None)
        assert cut.ids == found.ids[kept]
        assert cut.pieces == found.pieces[kept]
        assert cut.offsets == found.offsets[kept]
        assert (cut.text, cut.unit) == (found.text, found.unit)
        assert size <= limit
        left = size if side == "right" else len(found) - size
        assert not splits(found, left)
        step = 1 if side == "right" else -1
        for more in range(1, min(limit, len(found)) - size + 1):
            assert splits(found, left + step * more)


def splits(found: Encoding, at: int) -> bool:
    """Whether a place between tokens is inside a character, or parts a token from one that it belongs to."""
    if not 0 < at < len(found) or {found.ids[at - 1], found.ids[at]} & found.special:
        return False
    before, after = sorted(found.offsets[at - 1 : at + 1])  # reversed or not
    if before[0] == before[1] == after[0]:
        return True
    if found.unit == "char":
        return False
    data = found.text if isinstance(found.text, bytes) else found.text.encode()
    starts = {0}
    for character in characters(data):
        starts.add(max(starts) + len(character))
    return after[0] not in starts


def test_truncate_keeps_characters_whole(mistral: cpbpe.Tokenizer) -> None:
    """With valid text and a model of valid pieces, what is left decodes to whole characters."""
    text = "Ça 🦙🦙 va 你好☃"
    found = mistral.align(text)
    for limit in range(len(found) + 2):
        right, left = found.truncate(limit), found.truncate(limit, "left")
        assert text.startswith(mistral.decode(right.ids))
        assert f" {text}".endswith(mistral.decode(left.ids, keep_prefix_space=True))
        assert limit - 4 <= len(right) <= limit or limit >= len(found)
        assert limit - 4 < len(left) <= limit or limit >= len(found)
    assert found.truncate(10**30) is found
    assert mistral.align("").truncate(0).ids == []


def test_bytes_of_one_character(mistral: cpbpe.Tokenizer) -> None:
    found = mistral.align("a🦙", add_bos=True, add_eos=True)
    assert found.pieces == ["<s>", "▁a", "<0xF0>", "<0x9F>", "<0xA6>", "<0x99>", "</s>"]
    assert [found.char_to_token(position) for position in (0, 1)] == [1, 5]
    spans = [found.token_to_chars(token) for token in range(7)]
    assert spans == [None, (0, 1), None, None, None, (1, 2), None]
    assert found.word_ids == [None, 0, 0, 0, 0, 0, None]
    assert [len(found.truncate(limit)) for limit in range(8)] == [0, 1, 2, 2, 2, 2, 6, 7]
    assert [len(found.truncate(limit, "left")) for limit in range(8)] == [0, 1, 1, 1, 1, 5, 6, 7]
    turned = mistral.align("a🦙", reverse=True)
    assert [turned.char_to_token(position) for position in (0, 1)] == [4, 0]
    assert [len(turned.truncate(limit)) for limit in range(6)] == [0, 0, 0, 0, 4, 5]
    assert turned.word_ids == [0] * 5


def test_dummy_prefix_goes_with_what_follows(mistral: cpbpe.Tokenizer) -> None:
    found = mistral.align("Ça")
    assert found.pieces == ["▁", "Ç", "a"]
    assert [len(found.truncate(limit)) for limit in range(4)] == [0, 0, 2, 3]
    assert found.char_to_token(0) == 1
    assert found.word_ids == [0, 0, 0]
    assert mistral.align("  Ça").word_ids == [None, 0, 0]


def test_special_tokens_in_text(mistral: cpbpe.Tokenizer) -> None:
    text = "<s>Hi there</s>you<s>"
    found = mistral.align(text, allowed_special="all", add_eos=True)
    assert found.pieces == ["<s>", "▁Hi", "▁there", "</s>", "▁you", "<s>", "</s>"]
    assert found.special == {1, 2}
    assert found.char_to_token(1) == 0
    assert found.token_to_chars(3) == (11, 15)
    assert found.token_to_chars(6) is None
    assert found.word_spans == [(3, 5), (6, 11), (15, 18)]
    assert found.word_ids == [None, 0, 1, None, 2, None, None]
    plain = mistral.align(text)
    assert plain.special == frozenset()
    assert plain.word_spans == [(0, 5), (6, 21)]
    turned = mistral.align(text, allowed_special="all", reverse=True)
    assert turned.word_ids == [None, 2, None, 1, 0, None]


def test_added_tokens_that_are_not_special(engine: str) -> None:
    """They are words like others."""
    flags: Any = {"<t>": ("plain",), "<l>": ("lstrip",)}
    spec = tokenizer("llama", engine).with_special_tokens([*flags]).spec
    carried = dataclasses.replace(spec.carried, tokens=flags)
    tok = cpbpe.Tokenizer.from_spec(dataclasses.replace(spec, carried=carried, file=None))
    found = tok.align("a <t>x <l> b", allowed_special="all")
    check(found)
    assert found.special == {tok.piece_to_id("<l>")}
    assert found.word_spans == [(0, 1), (2, 6), (11, 12)]
    assert found.word_ids[found.pieces.index("<t>")] == 1
    assert tok.align("<t>").special == frozenset()


def test_words_of_tokens_that_span_several(engine: str) -> None:
    found = tokenizer("inner-spaces", engine).align("x in the y")
    assert found.pieces == ["▁x▁", "in▁the", "▁", "y"]
    assert found.surfaces == ["x ", "in the", " ", "y"]
    assert found.word_ids == [0, 1, None, 3]
    across = tokenizer("across-spaces", engine).align(" mark inside words")
    assert (across.pieces, across.word_ids) == (["▁mark▁inside▁words"], [0])


def test_arrays(mistral: cpbpe.Tokenizer) -> None:
    for text in ("", "Hi 🦙!"):
        found = mistral.align(text)
        ids, offsets = found.arrays()
        assert [ids.dtype.name, offsets.dtype.name] == ["uint32", "int64"]
        assert offsets.shape == (len(found), 2)
        assert ids.tolist() == found.ids
        assert [tuple(row) for row in offsets.tolist()] == found.offsets


@pytest.mark.parametrize("unit", [None, "char", "byte"])
def test_batches_of_arrays(mistral: cpbpe.Tokenizer, unit: Any) -> None:
    batch: list[str | bytes] = ["", "Hi 🦙!", b"\xff\xe2\x96\x81 \xc3\xa9", "plain", "é" * 300]
    for bos in (False, True):
        rows = mistral.encode_arrays(batch, spans=True, unit=unit, add_bos=bos, add_eos=bos)
        expected = [mistral.align(text, unit=unit, add_bos=bos, add_eos=bos) for text in batch]
        assert mistral.align_batch(batch, unit=unit, add_bos=bos, add_eos=bos) == expected
        assert rows.tolist() == [encoding.ids for encoding in expected]
        assert rows.spans is not None
        pairs = [tuple(row) for row in rows.spans.tolist()]
        assert pairs == [span for encoding in expected for span in encoding.offsets]
    rows = mistral.encode_arrays([], spans=True, unit=unit)
    assert rows.spans is not None
    assert len(rows) == 0
    assert rows.spans.shape == (0, 2)
    assert [rows.ids.dtype.name, rows.offsets.dtype.name, rows.spans.dtype.name] == [
        "uint32",
        "int64",
        "int64",
    ]


def test_batches_with_user_defined_pieces_that_hold_a_space(engine: str) -> None:
    tok = tokenizer("user-defined-llama", engine)  # its piece "a b" is copied, and only then escaped
    assert tok.align("xa b").offsets == [(0, 0), (0, 1), (1, 1), (1, 1), (1, 4)]
    assert tok.align_batch(["xa b"]) == [tok.align("xa b")]


@pytest.mark.parametrize("pieces", ["thq,▁t", "a b", "thq,▁▁", "▁t,▁▁t", "thq,q▁", "thq"])
@pytest.mark.usefixtures("engine")
def test_batches_with_user_defined_pieces_that_overlap(pieces: str) -> None:
    """What is copied as one when a text is normalized, but is not one token, has its spans from there."""
    proto = zoo.parse(zoo.model("llama"))
    zoo.add(proto, pieces.split(","), zoo.Piece.USER_DEFINED)
    tok = cpbpe.Tokenizer.from_bytes(proto.SerializeToString())
    texts = [
        f"{a}{b}{c}"
        for a in ("", "x", " ", "thq")
        for b in ("thq", " thq ", "a b", "  ")
        for c in ("", "q t", "t")
    ]
    assert tok.align_batch(texts) == [tok.align(text) for text in texts]
    rows = tok.encode_arrays(texts, spans=True)
    assert rows.spans is not None
    assert rows.spans.tolist() == [list(span) for text in texts for span in tok.align(text).offsets]


def test_wrong_arguments(mistral: cpbpe.Tokenizer) -> None:
    found = mistral.align("Hi 🦙")
    assert found.char_to_token(np.int64(0)) == 0
    for position in (-1, 4, 10**30):
        with pytest.raises(IndexError, match=f"no position {position} of a text with the length 4"):
            found.char_to_token(position)
    for token in (-1, len(found)):
        with pytest.raises(IndexError, match=f"no token {token} of an encoding with the length 6"):
            found.token_to_chars(token)
    with pytest.raises(TypeError, match="takes an integer, not str"):
        found.char_to_token("0")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_tokens must be at least 0, not -1"):
        found.truncate(-1)
    with pytest.raises(TypeError, match="max_tokens must be an integer, not float"):
        found.truncate(1.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="side must be 'left' or 'right', not 'top'"):
        found.truncate(1, "top")  # type: ignore[arg-type]
    with pytest.raises(IndexError, match="no position 0 of a text with the length 0"):
        mistral.align("").char_to_token(0)


@quick
@seed(SEED)
@given(st.one_of(broken(["▁the", "é"]), st.text().map(lambda text: text.encode(errors="ignore"))))
def test_positions_of_characters(data: bytes) -> None:
    expected: list[int] = []
    for number, character in enumerate(characters(data)):
        expected += [number] * len(character)
    expected.append(len(characters(data)))
    assert character_positions(data) == expected
    inside = [0 < at < len(data) and expected[at] == expected[at - 1] for at in range(len(data) + 1)]
    assert [is_inside(data, at) for at in range(len(data) + 1)] == inside


@tiers.slow_reference
def test_looking_up_does_not_slow_down(mistral: cpbpe.Tokenizer) -> None:
    """A long text is searched by halves: looking up every position is quick."""
    text = "the cat sat on a mat. " * 20_000
    found = mistral.align(text)
    assert all(found.char_to_token(position) is not None for position in range(0, len(text), 7))
    assert len(found.word_ids) == len(found)
