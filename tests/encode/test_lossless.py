"""Round trips: what `is_lossless` says is true, and the laws of docs/decoding.md hold."""

import itertools
import random
from functools import cache
from typing import Any

import pytest
from hypothesis import assume, given, seed
from hypothesis import strategies as st

import cpbpe
from cpbpe.model.formats import sentencepiece as model
from cpbpe.model.spec import ModelSpec, NormalizerSpec, Piece, Pieces, PieceType
from cpbpe.tokenizer.lossless import Losslessness, losslessness
from tests.conftest import ENGINES
from tests.support import budget, charsmaps, corpus, tiers, zoo
from tests.support.budget import SEED
from tests.support.texts import TextMaker, texts
from tests.support.time_limit import time_limit
from tests.support.tokenizers import pieces_of, tokenizer

EXAMPLES = budget.examples(150)
quick = budget.quick(50, least=5)

SPECIAL = ("<|user|>", "<|end|>", "<|", "a b", " ", "é", "<s")


@cache
def is_lossless(name: str) -> bool:
    return bool(tokenizer(name, ENGINES[0]).is_lossless())


LOSSLESS = [
    *zoo.REAL,
    "llama",
    "no-prefix",
    "unsplit",
    "user-defined-llama",
    "no-unk",
    "unused",
    "unused-ambiguous",
    "unused-user-defined",
    "equal-scores",
    "fractional-scores",
    "odd-scores",
    "orphans",
    "nul",
    "many-pieces",
    "nested-user-defined",
    "deep-unused",
]


lossless_models = tiers.models([name for name in zoo.NAMES if name in LOSSLESS or name in zoo.OTHERS])
"""The argument `name`: models of which every text comes back, and those of one's own, which may be such."""


def plain(name: str) -> st.SearchStrategy[str]:
    """Texts without U+2581."""
    return texts(pieces_of(name)).map(lambda text: text.replace("▁", " "))


# --- What is_lossless says ------------------------------------------------------------------------


@tiers.models([name for name in zoo.NAMES if name not in zoo.OTHERS])
def test_which_models_are_lossless(name: str) -> None:
    assert is_lossless(name) == (name in LOSSLESS)


@tiers.engines
@tiers.models()
def test_examples_do_not_come_back(name: str, engine: str) -> None:
    tok = tokenizer(name, engine)
    for loss in tok.is_lossless().reasons:
        assert "▁" not in loss.example
        assert tok.decode(tok.encode(loss.example)) == loss.becomes != loss.example


def edit(base: str, **flags: Any) -> zoo.Proto:
    """A model with other settings."""
    proto = zoo.parse(zoo.model(base))
    spec, trainer = proto.normalizer_spec, proto.trainer_spec
    spec.add_dummy_prefix = flags.get("prefix", True)
    spec.remove_extra_whitespaces = flags.get("squeeze", False)
    spec.escape_whitespaces = flags.get("escape", True)
    trainer.treat_whitespace_as_suffix = flags.get("suffix", False)
    if flags.get("rules"):
        spec.precompiled_charsmap = charsmaps.make(flags["rules"])
    space = flags.get("space", zoo.Piece.NORMAL)
    for piece in list(proto.pieces):
        if piece.piece == "▁".encode():
            proto.pieces.remove(piece) if space is None else setattr(piece, "type", space)
    zoo.add(proto, flags.get("user_defined", []), zoo.Piece.USER_DEFINED)
    zoo.add(proto, flags.get("pieces", []))
    if flags.get("denormalizer"):
        proto.denormalizer_spec.precompiled_charsmap = charsmaps.make(flags["denormalizer"])
        for flag in ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces"):
            setattr(proto.denormalizer_spec, flag, flags.get(f"denormalizer_{flag}", False))
    return proto


P = zoo.Piece
HARMLESS_RULES = {b"a": b"a", b"bc": b"bc", b" ": "▁".encode(), b"a b": "a▁b".encode()}
CHOICES: dict[str, list[Any]] = {
    "prefix": [True, False],
    "squeeze": [False, True],
    "escape": [True, False],
    "suffix": [False, True],
    "space": [P.NORMAL, None, P.UNUSED, P.CONTROL, P.USER_DEFINED],
    "rules": [None, HARMLESS_RULES, {b"x": b"y"}, {b"ab": b"x"}, {b"\xc3": b"\xc3"}, {b"~": b" "}],
    "user_defined": [[], ["ab", "x"], [b"\xf0\x9f"], [b"\xa9"], ["▁▁", " a", "▁b▁"]],
    "pieces": [[], [b"\xe2\x96", b"a\xc3"], [" ", " a", "a "]],
    "denormalizer": [
        None,
        {b"a": b"a"},
        {b"abc": b"x"},
        {b"x": b"x", b"\xc3\xa9": b"e"},
        {"▁".encode(): b" "},
    ],
}


@tiers.slow
@pytest.mark.usefixtures("engine")
def test_every_setting(engine: str) -> None:
    """Settings in pairs, and more at once: where all texts come back, and only there, nothing is found."""
    rng = random.Random(SEED)
    tried = []
    for first, second in itertools.combinations(CHOICES, 2):
        for one, other in itertools.product(CHOICES[first], CHOICES[second]):
            tried.append({first: one, second: other})
    for _ in range(EXAMPLES // 3):
        changed = rng.sample(sorted(CHOICES), rng.choice([3, 3, 4, 5]))
        tried.append({name: rng.choice(CHOICES[name]) for name in changed})
    if engine == "reference":
        tried = rng.sample(tried, len(tried) // 4)
    maker = TextMaker(SEED, pieces_of("llama"), corpus.SENTENCES)
    samples = [maker.text().replace("▁", " ") for _ in range(40)]
    samples += ["a", "x", "ab", " a", "a b", "  ", "a  b ", "~", "é", "©", "🦙", "abc", "b c", " b a ", "\0"]
    answers = set()
    for flags in tried:
        tok = cpbpe.Tokenizer.from_bytes(edit("llama", **flags).SerializeToString())
        answer = tok.is_lossless()
        answers.add(bool(answer))
        for loss in answer.reasons:
            assert tok.decode(tok.encode(loss.example)) == loss.becomes != loss.example
        lost = [text for text in samples if tok.decode(tok.encode(text)) != text]
        assert not (answer and lost), (flags, lost)
    assert answers == {True, False}


@pytest.mark.parametrize(
    ("flags", "reason", "example"),
    [
        ({"squeeze": True}, "remove_extra_whitespaces", "a  b"),
        ({"rules": {b"x": b"y"}}, "normalization rules", "x"),
        ({"rules": {b"\xc3": b"y"}}, "normalization rules", "é"),
        ({"suffix": True}, "treat_whitespace_as_suffix", "a"),
        ({"escape": False}, "escape_whitespaces", "a"),
        ({"space": None}, "text cannot yield the piece '▁'", "a b"),
        ({"space": P.UNUSED}, "text cannot yield the piece '▁'", "a b"),
        ({"user_defined": [b"\xf0\x9f"]}, "end inside a character", "🀀"),
        ({"denormalizer": {b"x": b"y"}}, "denormalizer", "x"),
    ],
)
def test_reasons(flags: dict[str, Any], reason: str, example: str) -> None:
    answer = losslessness(model.read(edit("llama", **flags).SerializeToString()))
    assert [reason in loss.reason for loss in answer.reasons] == [True]
    assert answer.reasons[0].example == example


@pytest.mark.parametrize(
    "flags",
    [
        {},
        {"prefix": False},
        {"prefix": False, "suffix": True},
        {"prefix": False, "escape": False},
        {"prefix": False, "escape": False, "space": None},
        {"rules": HARMLESS_RULES},
        {"rules": {b"zqx": b"x"}, "user_defined": ["zq"]},  # the piece comes first, always
        {"space": P.USER_DEFINED},
        {"pieces": [b"\xe2\x96", b"a\xc3"]},
        {"user_defined": [b"\xa9"]},
        {"denormalizer": {b"a": b"a"}},
        # Undone by the denormalizer: without the piece ▁ its bytes come back.
        {"prefix": False, "space": None, "denormalizer": {"▁".encode(): b" "}},
        # An escape: `<` begins every replacement, and is nowhere else, because it is replaced itself.
        {"rules": {b"\n": b"<n", b"<": b"<<"}, "denormalizer": {b"<n": b"\n", b"<<": b"<"}},
    ],
)
def test_what_does_no_harm(flags: dict[str, Any]) -> None:
    assert losslessness(model.read(edit("llama", **flags).SerializeToString())) == Losslessness(())


@pytest.mark.parametrize(
    ("rules", "back", "example"),
    [
        ({b"X": b"Y1", b"Y1": b"YY1"}, {b"YY1": b"Y1", b"Y1": b"X"}, "YX"),
        ({b"X": b"<", b"<": b"<<"}, {b"<": b"X", b"<<": b"<"}, "XX"),
        ({b"X": b"YZ"}, {b"YZ": b"X"}, "YZ"),
        ({b"\n": b"<n", b"<": b"<<", b"b<": b"b<"}, {b"<n": b"\n", b"<<": b"<"}, "b<n"),
    ],
)
def test_rules_that_come_back_only_by_themselves(
    rules: dict[bytes, bytes], back: dict[bytes, bytes], example: str
) -> None:
    (loss, *_) = losslessness(
        model.read(edit("llama", rules=rules, denormalizer=back).SerializeToString())
    ).reasons
    tok = cpbpe.Tokenizer.from_bytes(edit("llama", rules=rules, denormalizer=back).SerializeToString())
    assert tok.decode(tok.encode(loss.example)) == loss.becomes != loss.example
    assert tok.decode(tok.encode(example)) != example


def test_when_it_cannot_be_told() -> None:
    """Every text that was tried comes back, but a piece keeps the character that marks replacements."""
    rules, back = {b"\n": b"<n", b"<": b"<<"}, {b"<n": b"\n", b"<<": b"<"}
    proto = edit("llama", rules=rules, denormalizer=back, user_defined=["a<"])
    with pytest.raises(
        cpbpe.ModelError, match=r"^it cannot be told whether every .* the denormalizer gives back"
    ):
        losslessness(model.read(proto.SerializeToString()))


def test_without_byte_fallback() -> None:
    """There is always a character that the vocabulary lacks, however many it has."""
    characters = [chr(code) for code in (*map(ord, "é€中日ж☃🦙\U0010fffd"), *range(0x100000, 0x100100))]
    known = [Piece(character.encode()) for character in ["▁", *characters]]
    pieces = Pieces.of([Piece(b"<unk>", 0.0, PieceType.UNKNOWN), *known])
    spec = ModelSpec(pieces, NormalizerSpec(remove_extra_whitespaces=False))
    (loss,) = losslessness(spec).reasons
    assert loss.example == chr(0x100100)


def test_as_text() -> None:
    good = tokenizer("llama", ENGINES[0]).is_lossless()
    assert (str(good), repr(good)) == ("every text comes back", "<cpbpe.Losslessness: every text comes back>")
    bad = tokenizer("suffix-keep-spaces", ENGINES[0]).is_lossless()
    assert repr(bad) == "<cpbpe.Losslessness: some texts do not come back, for 1 reason>"
    assert str(bad) == (
        "some texts do not come back\n"
        "- A space is added after the text, and decoding keeps it: treat_whitespace_as_suffix is on. "
        "'a' becomes 'a '."
    )
    assert bad == tokenizer("suffix-keep-spaces", ENGINES[0]).is_lossless() != good
    assert len({bad, good}) == 2


# --- The laws -------------------------------------------------------------------------------------


@tiers.engines
@lossless_models
@quick
@seed(SEED)
@given(data=st.data())
def test_round_trips(name: str, engine: str, data: st.DataObject) -> None:
    assume(is_lossless(name))
    tok = tokenizer(name, engine)
    text = data.draw(plain(name))
    adds_prefix = prefix(name)
    assert tok.decode(tok.encode(text)) == text
    if tok.bos_id is not None and tok.eos_id is not None:
        assert tok.decode(tok.encode(text, add_bos=True, add_eos=True)) == text
    assert tok.decode(tok.encode(text, prefix_space=False), keep_prefix_space=True) == text
    assert tok.decode_bytes(tok.encode(text)) == text.encode()

    with_space = f" {text}" if text else ""
    given_prefix = tok.encode(text, prefix_space=True)
    assert tok.decode(given_prefix, keep_prefix_space=True) == with_space
    assert tok.decode(given_prefix) == (text if adds_prefix else with_space)
    without = tok.decode(tok.encode(text, prefix_space=False))
    assert without == (text.removeprefix(" ") if adds_prefix else text)
    kept = tok.decode(tok.encode(text), keep_prefix_space=True)
    assert kept == (with_space if adds_prefix else text)

    # U+2581 reads as a space.
    marked = data.draw(texts(pieces_of(name)))
    assert tok.decode(tok.encode(marked)) == marked.replace("▁", " ")
    # Bytes that make no character read as U+FFFD, one for each.
    broken = text.encode() + b"\xe2\x96" + text.encode()
    assert tok.decode(tok.encode(broken)) == f"{text}\ufffd\ufffd{text}"


@cache
def prefix(name: str) -> bool:
    return model.read(zoo.model(name)).normalizer.add_dummy_prefix


@tiers.engines
@lossless_models
@quick
@seed(SEED)
@given(data=st.data())
def test_round_trips_with_special_tokens(name: str, engine: str, data: st.DataObject) -> None:
    assume(is_lossless(name))
    tok = tokenizer(name, engine, SPECIAL)
    special = st.sampled_from(sorted(tok.vocab.special_tokens))
    text = "".join(data.draw(st.lists(st.one_of(special, plain(name), st.just(" ")), max_size=6)))
    after = data.draw(st.booleans())
    for allowed in ("all", {token for token in tok.vocab.special_tokens if data.draw(st.booleans())}):
        ids = tok.encode(text, allowed_special=allowed, prefix_after_special=after)
        assert tok.decode(ids, skip_special_tokens=False, prefix_after_special=after) == text
        ids = tok.encode(text, allowed_special=allowed, prefix_after_special=after, prefix_space=False)
        found = tok.decode(ids, skip_special_tokens=False, prefix_after_special=after, keep_prefix_space=True)
        assert found == text


@pytest.mark.usefixtures("engine")
def test_suffix_without_a_dummy_prefix_of_its_own() -> None:
    """A lossless model may put the space that prefix_space=True asks for after the text."""
    tok = cpbpe.Tokenizer.from_bytes(edit("llama", prefix=False, suffix=True).SerializeToString())
    assert tok.is_lossless()
    assert tok.decode(tok.encode(" a b", prefix_space=True)) == " a b "
    assert tok.decode(tok.encode(" a b", prefix_space=False)) == " a b"


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("flags", [{"suffix": True}, {"escape": False}])
def test_without_the_dummy_prefix_that_loses(flags: dict[str, Any]) -> None:
    """Where only the dummy prefix is in the way, texts come back without it."""
    tok = cpbpe.Tokenizer.from_bytes(edit("llama", **flags).SerializeToString())
    assert not tok.is_lossless()
    for text in ["", " ", "a", " a  b ", "é🦙 "]:
        assert tok.decode(tok.encode(text, prefix_space=False), keep_prefix_space=True) == text


def test_lone_surrogates_are_no_text() -> None:
    with pytest.raises(UnicodeEncodeError):
        tokenizer("llama", ENGINES[0]).encode("\ud800")


@pytest.mark.parametrize(
    ("preset", "lossless"), [("llama2", True), ("lossless", True), ("sentencepiece", False)]
)
def test_presets_of_training(preset: str, lossless: bool) -> None:
    trained = cpbpe.train(corpus.lines(200), vocab_size=600, preset=preset, progress=False)
    assert bool(trained.tokenizer.is_lossless()) == lossless


@time_limit(20)
def test_rules_without_end() -> None:
    """The trie of a crafted charsmap has a cycle: an example decides, or a sentence says that none does."""
    proto = zoo.parse(zoo.model("llama"))
    proto.denormalizer_spec.add_dummy_prefix = False
    proto.denormalizer_spec.remove_extra_whitespaces = False
    proto.denormalizer_spec.escape_whitespaces = False
    for spec in (proto.normalizer_spec, proto.denormalizer_spec):
        spec.precompiled_charsmap = charsmaps.cycle(b"a", b"b", b"c")
        answer = cpbpe.Tokenizer.from_bytes(proto.SerializeToString()).is_lossless()
        assert [(reason.example, reason.becomes) for reason in answer.reasons] == [("a", "x")]
        spec.precompiled_charsmap = charsmaps.cycle(b"a", b"b", b"c", keys=False)
        tok = cpbpe.Tokenizer.from_bytes(proto.SerializeToString())
        with pytest.raises(cpbpe.ModelError, match=r"^it cannot be told whether every text comes .* no end"):
            tok.is_lossless()
        spec.ClearField("precompiled_charsmap")


def test_rules_that_are_too_many_to_be_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of them was seen to do harm, but not all of them were tried."""
    # User-defined pieces are not rewritten, so no rule applies.
    letters = [chr(code) for code in range(0x100, 0x180)]
    pieces = [Piece("▁".encode()), *(Piece(c.encode(), 0, PieceType.USER_DEFINED) for c in letters)]
    pieces += [Piece(b"<0x%02X>" % byte, 0, PieceType.BYTE) for byte in range(256)]
    charsmap = charsmaps.make({letter.encode(): b"x" for letter in letters})
    spec = ModelSpec(Pieces.of(pieces), NormalizerSpec("", charsmap, False, False), byte_fallback=True)
    assert losslessness(spec)
    monkeypatch.setattr("cpbpe.tokenizer.lossless._MAX_EXAMPLES", 100)
    with pytest.raises(cpbpe.ModelError, match="100 texts that rules apply to came back, and there are more"):
        losslessness(spec)
