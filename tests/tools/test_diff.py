"""What is different between two models, against all texts of small alphabets, and setting by setting."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cpbpe
from cpbpe import ModelError, ModelSpec, NormalizerSpec, Piece, Pieces, PieceType, Tokenizer
from cpbpe.tools.diff import StoredIds
from cpbpe.tools.differing_text import TwoModels, shortest_difference
from tests.bytes.models import model as byte_level
from tests.support import json_files, tiers, zoo
from tests.support.budget import quick
from tests.support.drawings import WholePage
from tests.support.tokenizers import tokenizer

BASE = [
    Piece(b"<unk>", 0, PieceType.UNKNOWN),
    Piece("▁".encode(), -20),
    Piece(b"a", -21),
    Piece(b"b", -22),
    Piece(b"c", -23),
]
WORDS = ["".join(word) for size in (2, 3) for word in product("abc▁", repeat=size)]


def small(scores: dict[str, float], **changes: Any) -> Tokenizer:
    pieces = Pieces.of([*BASE, *(Piece(text.encode(), score) for text, score in scores.items())])
    return Tokenizer.from_spec(ModelSpec(pieces, NormalizerSpec("identity"), **changes))


def tokens(tok: Tokenizer, text: str) -> list[str]:
    return [tok.id_to_piece(id) for id in tok.encode(text)]


def brute(one: Tokenizer, other: Tokenizer, longest: int) -> str | None:
    for size in range(1, longest + 1):
        for characters in product("abc ▁x", repeat=size):
            text = "".join(characters)
            if tokens(one, text) != tokens(other, text):
                return text
    return None


models = st.dictionaries(st.sampled_from(WORDS), st.integers(-9, -1).map(float), max_size=8)


@quick(4, 60)
@given(models, models, st.booleans())
def test_the_shortest_text(first: dict[str, float], second: dict[str, float], alike: bool) -> None:
    """As short as all texts of the alphabet say; and the same for certain is never wrong."""
    if alike:  # (the same pieces with other scores)
        second = dict(zip(first, [*second.values(), *first.values()], strict=False))
    one, other = small(first), small(second)
    found = cpbpe.diff(one, other)
    expected = brute(one, other, 4)
    if expected is None:
        assert found.text is None or len(found.text.text) > 4
    else:
        assert found.text is not None
        assert len(found.text.text) == len(expected), (expected, found.text)
        assert found.text.proved
    if found.same_tokens:
        assert expected is None
    if found.text is not None:
        assert tokens(one, found.text.text) == list(found.text.old_tokens)
        assert tokens(other, found.text.text) == list(found.text.new_tokens)
        assert tokens(one, found.text.text) != tokens(other, found.text.text)


def test_scores_of_the_same_order() -> None:
    """Other numbers in the same order give the same tokens, for certain; a tie broken gives others."""
    one = small({"ab": -1, "bc": -2, "abc": -3})
    assert cpbpe.diff(one, small({"ab": -5, "bc": -6, "abc": -7})).same_tokens
    moved = cpbpe.diff(one, small({"bc": -2, "ab": -1, "abc": -3}))
    assert (moved.same_tokens, moved.same_ids, moved.text) == (True, False, None)
    assert [change.piece for change in moved.of_kind("moved")] == ["bc", "ab"]
    tie = cpbpe.diff(small({"ab": -1, "bc": -1}), small({"ab": -2, "bc": -1}))
    assert tie.text is not None
    assert (tie.text.text, tie.text.proved) == ("abc", True)


def changed(**changes: Any) -> Tokenizer:
    return small({"ab": -1}, **changes)


SETTINGS: dict[str, Callable[[], Tokenizer]] = {
    "normalizer.add_dummy_prefix": lambda: with_rules(add_dummy_prefix=False),
    "normalizer.remove_extra_whitespaces": lambda: with_rules(remove_extra_whitespaces=False),
    "normalizer.escape_whitespaces": lambda: with_rules(escape_whitespaces=False),
    "normalizer.suffix": lambda: with_rules(suffix=True),
    "normalizer.name": lambda: with_rules(name="own"),
    "unk_surface": lambda: changed(unk_surface=b"?"),
}


def with_rules(**changes: Any) -> Tokenizer:
    tok = changed()
    return Tokenizer.from_spec(
        replace(tok.spec, normalizer=replace(tok.spec.normalizer, **changes), file=None)
    )


@pytest.mark.parametrize("name", SETTINGS)
def test_settings(name: str) -> None:
    found = cpbpe.diff(changed(), SETTINGS[name]())
    assert name in [setting.name for setting in found.settings]
    assert bool(found)
    (setting,) = [setting for setting in found.settings if setting.name == name]
    assert setting.old != setting.new
    same = name in ("normalizer.name", "unk_surface")
    assert found.same_tokens is same


@pytest.mark.parametrize("changed_to", [{"special": True}, {"lstrip": True}])
def test_flags_of_added_tokens(changed_to: dict[str, bool]) -> None:
    """The pieces are the same, and texts have other tokens."""
    content = json_files.gemma()
    free = max(*content["model"]["vocab"].values(), *(token["id"] for token in content["added_tokens"])) + 1
    toks = []
    for flags in ({"special": False}, {"special": False, **changed_to}):
        token = json_files.added(free, "<x>", **flags)
        data = json_files.dumped({**content, "added_tokens": [*content["added_tokens"], token]})
        toks.append(Tokenizer.from_bytes(data))
    found = cpbpe.diff(toks[0], toks[1])
    assert found.text is not None
    assert found.same_tokens is False
    assert toks[0].encode(found.text.text) != toks[1].encode(found.text.text)


def test_pieces() -> None:
    one, other = small({"ab": -1, "bc": -2}), small({"ab": -1.5, "ca": -2})
    found = cpbpe.diff(one, other, search=False)
    assert [change.piece for change in found.of_kind("removed")] == ["bc"]
    assert [change.piece for change in found.of_kind("added")] == ["ca"]
    assert [change.piece for change in found.of_kind("rescored")] == ["ab"]
    assert (found.text, found.same_tokens, found.tried) == (None, None, 0)
    assert cpbpe.diff(one, one).pieces == ()


@tiers.models()
def test_round_trips_are_the_same(name: str) -> None:
    tok = tokenizer(name, "core")
    found = cpbpe.diff(tok, Tokenizer.from_bytes(tok.to_bytes()))
    assert (found.same_tokens, found.same_ids, bool(found), found.tried) == (True, True, False, 0)


def test_other_formats(tmp_path: Path) -> None:
    tok = tokenizer("llama", "core")
    tok.save(tmp_path / "tokenizer.json")
    found = cpbpe.diff(tok, tmp_path / "tokenizer.json")
    assert found.same_ids is not False
    assert found.text is None
    assert [c for c in found.pieces if c.kinds != ("rescored",)] == []


def test_two_families() -> None:
    found = cpbpe.diff(tokenizer("llama", "core"), Tokenizer.from_spec(byte_level()))
    assert found.same_tokens is False
    assert found.text is not None
    assert (len(found.text.text), found.text.proved) == (1, True)
    assert "alphabet" in [setting.name for setting in found.settings]
    assert not found.of_kind("rescored")


def test_rules_of_characters() -> None:
    """With rules, characters in no piece are not all alike; one that a rule changes is found all the same."""
    plain = small({"ab": -1})
    from tests.support import charsmaps

    rules = NormalizerSpec("own", charsmaps.make({"\u2460".encode(): b"a"}))
    ruled = Tokenizer.from_spec(replace(plain.spec, normalizer=rules, file=None))
    found = cpbpe.diff(plain, ruled)
    assert found.text is not None
    assert (found.text.text, found.text.proved) == ("\u2460", True)


def test_a_corpus() -> None:
    one, other = small({"ab": -1}), small({})
    texts: list[str | bytes] = ["ab ab", b"ba", "", "b" * 100 + "ab" + "c" * 100]
    found = cpbpe.diff(one, other, (text for text in texts)).corpus
    assert found is not None
    assert (found.documents, found.different, found.share) == (4, 2, 0.5)
    assert found.old_tokens == sum(len(one.encode(text)) for text in texts)
    assert found.new_tokens == sum(len(other.encode(text)) for text in texts)
    assert found.examples == ("ab ab", "…" + "b" * 20 + "ab" + "c" * 18 + "…")


def test_stored_ids_of_real_models() -> None:
    """Version 3 of Mistral's model cuts texts as version 1 does, and no stored id means the same."""
    v1, v2, v3 = (tokenizer(name, "core") for name in zoo.REAL[:3])
    texts = ["the cat", "", "日本 🦙"]
    found = cpbpe.diff(v1, v3, texts)
    assert found.corpus is not None
    assert (found.corpus.different, found.corpus.other_ids, found.corpus.share) == (0, 2, 0.0)
    same = sum(v1.vocab[id] == v3.vocab[id] for id in range(32000))
    assert len(found.stored.invalid) == 32000 - same == 31997
    example = found.stored.example
    assert example is not None
    assert (found.stored.old, found.stored.new) == (v1.vocab[example], v3.vocab[example])
    stored = str(found).splitlines()[1]
    assert stored.startswith("  stored ids    are invalid: 31,997 of 32,000 ids no longer mean the same; id ")
    assert re.search("^  texts +some have other tokens; a short one is", str(found), re.MULTILINE)
    assert re.search(r"^  documents +0 of 3 have other tokens \(0.00%\), 2 have other ids", str(found), re.M)
    assert found.to_dict()["stored_ids"]["valid"] is False
    assert "are invalid: 31,997 of 32,000 ids" in WholePage(found.html()).text
    # In version 3, some reserved tokens of version 2 have got a meaning.
    renamed = [id for id in range(len(v2)) if v2.vocab[id] != v3.vocab[id]]
    assert list(cpbpe.diff(v2, v3, search=False).stored.invalid) == renamed != []


def test_stored_ids() -> None:
    """Added pieces leave ids valid; ids that have gone, and the unknown piece under another name."""
    one, other = small({"ab": -1}), small({"ab": -1, "bc": -2})
    assert cpbpe.diff(one, other).stored == StoredIds(6, (), None, "", None)
    assert "stored ids    are valid" in str(cpbpe.diff(one, other))
    shorter = cpbpe.diff(other, one).stored
    assert (shorter.invalid, shorter.old, shorter.new) == ((6,), "bc", None)
    assert "id 6, for example, was 'bc' and is no token now" in " ".join(str(cpbpe.diff(other, one)).split())
    pieces = [Piece(b"[UNK]", 0, PieceType.UNKNOWN), *BASE[1:]]
    renamed = Tokenizer.from_spec(ModelSpec(Pieces.of(pieces), NormalizerSpec("identity")))
    assert cpbpe.diff(small({}), renamed).stored.invalid == ()


def test_bound_options_count() -> None:
    tok = small({"ab": -1, "▁a": -2})
    assert cpbpe.diff(tok, tok.using(skip_special_tokens=True)).same_tokens
    assert cpbpe.diff(tok.using(reverse=True), tok.using(reverse=True)).same_tokens
    found = cpbpe.diff(tok, tok.using(prefix_space=False))
    assert (found.same_tokens, found.settings[0].name) == (False, "using.prefix_space")
    # Special tokens, which make no difference otherwise.
    one, more = (t.using(allowed_special="all") for t in (tok, tok.with_special_tokens(["<x>"])))
    assert cpbpe.diff(one, more, search=False).same_tokens is None
    assert cpbpe.diff(one, more, ["<x>"], search=False).same_tokens is False


def test_a_piece_that_is_a_byte_in_the_other_model() -> None:
    """Its bytes are the same, and its id is not."""
    rows = [*BASE, *(Piece(b"<0x%02X>" % byte, 0, PieceType.BYTE) for byte in range(256))]
    one, other = (
        Tokenizer.from_spec(ModelSpec(Pieces.of(pieces), NormalizerSpec("identity"), byte_fallback=True))
        for pieces in (rows, [*rows, Piece(b"x", -30)])
    )
    found = cpbpe.diff(one, other, ["x"], search=False)
    assert (found.same_tokens, found.same_ids) == (None, False)


def test_forms() -> None:
    found = cpbpe.diff(small({"ab": -1, "bc\u202e": -2}), small({}), ["ab"])
    assert json.loads(found.to_json()) == json.loads(json.dumps(found.to_dict()))
    assert "\u202e" not in str(found)
    assert "2 removed" in repr(found)
    assert "1 of 1 have other tokens (100.00%), 1 have other ids" in str(found)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cpbpe.diff(5, small({})), "a model is a path"),  # type: ignore[arg-type]
        (lambda: cpbpe.diff(small({}), small({}), "text"), "give a list with it"),
        (lambda: cpbpe.diff(small({}), small({}), [5]), "a text is a str or bytes"),  # type: ignore[list-item]
    ],
    ids=["model", "text", "number"],
)
def test_mistakes(call: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


def test_nothing_to_find() -> None:
    """A piece that is made in another way may make a difference; if none is found, that is said."""
    one, other = small({"ab": -1, "bc": -2, "abc": -3}), small({"ab": -2, "bc": -1, "abc": -3})
    found = cpbpe.diff(one, other)
    assert (found.same_tokens, found.text) == (None, None)
    assert found.tried > 100_000
    assert "none was found that has other tokens" in str(found)
    assert shortest_difference(TwoModels(one, other), [])[0] is None


def test_half_of_a_surrogate_pair_is_no_text() -> None:
    """It is refused with the place or the text, wherever `encode` would refuse it."""
    tok, half = tokenizer("llama", "core"), "a\ud83e"
    calls: list[Callable[[], object]] = [
        lambda: cpbpe.diff(tok, tok, ["é", half]),
        lambda: tok.lint(["é", half]),
        lambda: cpbpe.edit(tok).prune(["é", half]),
        lambda: cpbpe.edit(tok).report(["é", half]),
        lambda: cpbpe.edit(tok).from_corpus(["é", half], 1),
    ]
    for of_texts in calls:
        with pytest.raises(cpbpe.CorpusError, match=r"^(text|item) 2 is not valid Unicode: .*; correct it"):
            of_texts()
    names: list[Callable[[], object]] = [
        lambda: cpbpe.edit(tok).rename({"<s>": half}),
        lambda: cpbpe.edit(tok).add([half]),
        lambda: cpbpe.edit(tok).add(pieces=[half], kind="control"),
    ]
    for of_names in names:
        with pytest.raises(ModelError, match=r"^'a\\ud83e' holds half of a surrogate pair"):
            of_names()
