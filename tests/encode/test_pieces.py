"""Calls with pieces, and ids between bos and eos, against what follows from `align` and `decode_ids`."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpbpe import Tokenizer
from cpbpe.compat.sentencepiece import SentencePieceProcessor
from cpbpe.compat.sentencepiece.values import is_utf8
from cpbpe.text.utf8 import text_of
from tests.support import tiers
from tests.support.budget import quick
from tests.support.texts import broken, texts
from tests.support.tokenizers import pieces_of, tokenizer

MODELS = [
    "llama",
    "defaults",  # no byte fallback: unknown parts
    "unused-ambiguous",
    "user-defined-llama",
    "broken-pieces",  # pieces that are not UTF-8
    "nul",
    "unescaped",
    "inner-spaces",
    "charsmap-broken",
    "broken-pieces-no-fallback",
    "nested-user-defined",
    "denormalizer",
]
HARD: list[str | bytes] = [
    "",
    " ",
    "▁",
    "▁▁ ▁",
    "\0",
    "a\0b \0",
    "aaaa" * 300,
    "☃" * 70,
    "the ☃☃ old ☃",
    b"\xff",
    b"the \xe2\x96 \xf0\x9f old\xc3",
    "🦙 " * 1500,
    "the keeper of the old sea " * 400,
]
"""Empty, blank, NUL, runs of one character, unknown, not UTF-8, long."""


def check(tok: Tokenizer, text: str | bytes) -> None:
    """All calls with pieces, with and without options."""
    plain = tok.align(text)
    spelled = [text_of(piece) for piece in tok.facts.engine.align(text, False, True)[1]]
    assert tok.encode_pieces(text) == spelled == plain.pieces
    vocab = tok.vocab
    bos = [tok.id_to_piece(tok.bos_id)] if tok.bos_id is not None else []
    for add, reverse in [(False, True), (True, False), (True, True)]:
        options: dict[str, Any] = {"add_bos": add and bool(bos), "reverse": reverse}
        ids = plain.ids[::-1] if reverse else plain.ids
        pieces = spelled[::-1] if reverse else spelled
        front = [tok.bos_id] if options["add_bos"] else []
        assert tok.encode(text, **options) == [*front, *ids]
        assert tok.encode_array(text, **options).tolist() == [*front, *ids]
        assert tok.encode_arrays([text, "", text], **options).tolist() == [
            [*front, *ids],
            front,
            [*front, *ids],
        ]
        assert tok.encode_batch([text, "", text], **options)[1:] == [front, [*front, *ids]]
        assert tok.encode_pieces(text, **options) == [*(bos if front else []), *pieces]
        assert tok.count(text, **options) == len(ids) + len(front)
    normalized = tok.facts.engine.normalize(text.encode() if isinstance(text, str) else text)
    assert tok.normalize(text) == (text_of(normalized) if isinstance(text, str) else normalized)
    # Pieces that are UTF-8 decode as their ids do.
    known = [id for id in plain.ids if id != vocab.get("<unk>")]
    raw = [tok.facts.engine.piece(id) for id in known]
    if b"\0" not in raw and tok.unk_id not in known:
        assert tok.decode_pieces(raw) == tok.decode(known)
        assert tok.decode_batch([known, [], known]) == [tok.decode(known), "", tok.decode(known)]


@pytest.mark.parametrize("name", tiers.some(MODELS, MODELS[:3]))
def test_hard_texts(name: str, engine: str) -> None:
    for text in HARD:
        check(tokenizer(name, engine), text[:600] if engine == "reference" else text)


@pytest.mark.parametrize("name", tiers.some(MODELS, MODELS[:3]))
def test_generated_texts(name: str, engine: str) -> None:
    tok = tokenizer(name, engine)
    pieces = pieces_of(name)

    @quick(20, 10)
    @given(st.one_of(texts(pieces), broken(pieces)))
    def run(text: str | bytes) -> None:
        check(tok, text)

    run()


@pytest.mark.parametrize("name", tiers.some(MODELS, MODELS[:2]))
def test_pieces_may_be_str_or_bytes(name: str, engine: str) -> None:
    """Any mixture, in a list or not, is decoded as bytes are; others are refused as they were."""
    tok = tokenizer(name, engine)
    chance = random.Random(name)
    own = [text for text in pieces_of(name) if text]
    for _ in range(60):
        chosen = [chance.choice([*own, "no such piece", "▁", "▁▁", "", "\0", "☃", "▁☃"]) for _ in range(9)]
        expected = tok.decode_pieces(iter([piece.encode() for piece in chosen]))
        assert tok.decode_pieces(chosen) == expected
        mixed: list[str | bytes] = [piece.encode() if chance.random() < 0.5 else piece for piece in chosen]
        assert tok.decode_pieces(mixed) == tok.decode_pieces(tuple(mixed)) == expected
        odd: list[Any] = [bytearray(b"a"), *chosen]
        assert tok.decode_pieces(odd) == tok.decode_pieces(["a", *chosen])
    with pytest.raises(TypeError, match="takes str or bytes, not int"):
        tok.decode_pieces(["a", 5])  # type: ignore[list-item]
    with pytest.raises(UnicodeEncodeError):
        tok.decode_pieces(["a", "\ud800"])
    with pytest.raises(UnicodeEncodeError):
        tok.encode_pieces("\ud800")
    with pytest.raises(UnicodeEncodeError):
        tok.normalize("\ud800")


class Spelled(str):
    """A str that is not to be asked what its hash is, or what it is equal to."""

    def __hash__(self) -> int:
        raise AssertionError

    def __eq__(self, other: object) -> bool:
        raise AssertionError


@pytest.mark.parametrize("name", MODELS)
def test_a_piece_is_known_by_its_text(name: str, engine: str) -> None:
    """Whatever object has the text, and whether it was looked up before or not, it means what bytes do."""
    tok = Tokenizer.from_bytes(tokenizer(name, engine).to_bytes())
    chance = random.Random(name)
    spelled = [tok.id_to_piece(id) for id in range(len(tok))]  # with U+FFFD for what is not UTF-8
    own = tok.encode_pieces("the old sea ☃ \0") + spelled
    near = [
        change(piece) for piece in spelled for change in (lambda p: p + "x", lambda p: p[1:], str.swapcase)
    ]
    rows = [chance.choices(own + near, k=20) for _ in range(60)]
    for row in [[], [""], ["\ufffd"], *rows, *rows, spelled, near, spelled]:
        expected = tok.decode_pieces([piece.encode() for piece in row])
        assert tok.decode_pieces(row) == expected
        assert tok.decode_pieces([piece.encode().decode() for piece in row]) == expected
        assert tok.decode_pieces([Spelled(piece) for piece in row]) == expected
    for half in ("\ud800", spelled[-1] + "\udfff", Spelled("\ud800")):
        for _ in range(2):
            with pytest.raises(UnicodeEncodeError):
                tok.decode_pieces([*spelled, half, 5])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="takes str or bytes, not int"):
        tok.decode_pieces([*spelled, 5, "\ud800"])  # type: ignore[list-item]


@pytest.mark.parametrize("name", MODELS)
def test_many_lists_of_pieces_are_decoded_as_each(name: str, engine: str) -> None:
    """As the drop-in for sentencepiece does it."""
    rows: list[list[Any]] = [["▁the", "☃", "a"], [], ["▁"], ["", "\0"], ["▁the"]]
    sp = SentencePieceProcessor(model_proto=tokenizer(name, engine).to_bytes())
    assert sp.decode(rows) == [sp.decode(row) if row else "" for row in rows]
    if engine == "core":
        from cpbpe import _core

        own: Any = tokenizer(name, engine).facts.engine
        rows.append([b"\xff", "▁"])
        assert _core.decode_pieces_all(own, rows) == [own.decode_pieces(row) for row in rows]
        assert _core.decode_pieces_all(own, []) == []
        for other in (("a",), "a", None, 5, ["a", 5], [["a"]]):
            assert _core.decode_pieces_all(own, [*rows, other]) is None
        with pytest.raises(UnicodeEncodeError):
            _core.decode_pieces_all(own, [["a"], ["a", "\ud800"], None])


@pytest.mark.parametrize("name", MODELS)
def test_pieces_that_are_not_utf8(name: str, engine: str) -> None:
    """Pieces as str do not depend on which call was the first to ask for them."""
    calls: list[Callable[[Tokenizer, str | bytes], list[str]]] = [
        lambda tok, text: tok.encode_pieces(text),
        lambda tok, text: tok.align(text).pieces,
        lambda tok, text: tok.align_batch([text, text])[1].pieces,
    ]
    for text in ("the old sea \0", b"\xff\xe2 a \x96"):
        fresh = [Tokenizer.from_bytes(tokenizer(name, engine).to_bytes()) for _ in range(2)]
        first = [call(fresh[0], text) for call in calls]
        assert [call(fresh[1], text) for call in reversed(calls)] == first
        assert first[0] == first[1] == first[2]


@pytest.mark.parametrize("name", MODELS)
def test_many_texts_are_normalized_as_each(name: str, engine: str) -> None:
    """As the drop-in for sentencepiece does it: str for str, bytes for bytes, nothing for other types."""
    own: Any = tokenizer(name, engine).facts.engine
    texts = [
        *HARD,
        *(f"{begin}the  old{end}" for begin in ("", " ", "▁", "é") for end in ("", "  ", "▁", "é")),
    ]
    each = [own.normalize(text) for text in texts]
    for text, normalized in zip(texts, each, strict=True):
        if isinstance(text, str):
            assert normalized == text_of(own.normalize(text.encode()))
    if engine == "core":
        from cpbpe import _core

        def is_text(given: str | bytes) -> bool:
            return isinstance(given, bytes) or is_utf8(own.normalize(given.encode()))

        known = [(text, normalized) for text, normalized in zip(texts, each, strict=True) if is_text(text)]
        assert _core.normalize_all(own, [text for text, _ in known]) == [each for _, each in known]
        for text in texts:
            if not is_text(text):
                with pytest.raises(UnicodeDecodeError):
                    _core.normalize_all(own, ["a", text, None])
        assert _core.normalize_all(own, []) == []
        for other in (None, 5, bytearray(b"a"), Spelled("a"), ["a"]):
            assert _core.normalize_all(own, ["a", b"b", other]) is None
        with pytest.raises(UnicodeEncodeError):
            _core.normalize_all(own, ["a", "\ud800", None])


def test_normalized_text_must_be_utf8_if_that_is_wanted(engine: str) -> None:
    """The drop-in for sentencepiece wants it."""
    tok = tokenizer("charsmap-broken", engine)
    sp = SentencePieceProcessor(model_proto=tok.to_bytes())
    characters = [chr(code) for code in range(1, 200)]
    odd = [character for character in characters if not is_utf8(tok.normalize(character.encode()))]
    assert odd
    for character in characters:
        if character not in odd:
            assert sp.normalize(character) == tok.normalize(character)
            assert sp.normalize([character, "\ufffd"])[1] == tok.normalize("\ufffd")
            continue
        for wrong in (character, ["a", character]):
            with pytest.raises(UnicodeDecodeError):
                sp.normalize(wrong)
