"""Random texts, settings and added tokens: calls give what tokenizers gives, or an error where it does."""

import copy
import json
import pickle
import random
from typing import Any

import pytest

import cpbpe
from cpbpe.compat import tokenizers as ours
from tests.support import budget, json_files, tiers, zoo
from tests.support.json_files import CASES, texts_for
from tests.support.json_tokenizers import BYTE_LEVEL, both, columns, model, outcome, shown, spec, translated

DAILY = ["llama", "user-defined-llama", "suffix without rules"]
NAMES = [*(name for name in CASES if name not in zoo.REAL[1:]), *BYTE_LEVEL]
cases = pytest.mark.parametrize("name", tiers.some(NAMES, [*DAILY, *list(BYTE_LEVEL)[:3]]))
SOME = [
    *BYTE_LEVEL,
    "llama",
    "no-prefix",
    "user-defined-llama",
    "defaults without rules",
    "suffix without rules",
]
FEW = ("", " ", "a", "  a b ", "Hi</s> there", "<s><s> x", "the abra", "🦙 é", "a▁b", "\n")
ODD = (
    "é e\u0301 ﬁ",
    "\u0301a",
    "a\u0327\u0301b",
    "a\u0301\u0327",
    "각 \u1100\u1161\u11a8",
    "  x   y \n\n z ",
    "²'s 12345",
)
"""For byte-level models, with normal forms and spaces."""


def some_texts(name: str, count: int) -> list[str]:
    return [*FEW, *ODD, *texts_for(spec(name), count, budget.SEED)]


@cases
def test_every_column(name: str) -> None:
    """Tokens, offsets, words and all else, of a file and of a model that never was in such a file."""
    mine, other = both(model(name, bos=False))
    direct = ours.Tokenizer(cpbpe.Tokenizer.from_spec(spec(name)))
    # (What only changes offsets, a model does not know.)
    lost = {"offsets"} if name in BYTE_LEVEL else set()
    for text in some_texts(name, budget.examples(20)):
        for is_plain in (False, True):
            for tokenizer in (mine, direct, other):
                tokenizer.encode_special_tokens = is_plain
            expected = columns(other.encode(text))
            assert columns(mine.encode(text)) == expected, text
            found = columns(direct.encode(text))
            assert {**found, **{key: expected[key] for key in lost}} == expected, text
            for skips in (False, True):
                decoded = other.decode(expected["ids"], skip_special_tokens=skips)
                assert mine.decode(expected["ids"], skip_special_tokens=skips) == decoded, text


def an_input(chance: random.Random, texts: list[str], is_pretokenized: bool) -> Any:
    if not is_pretokenized:
        return chance.choice(texts)
    return [text[:12] for text in chance.choices(texts, k=chance.randint(0, 4))]


def set_up(chance: random.Random, *tokenizers: Any) -> str:
    """The same padding and truncation for several tokenizers; what it is."""
    cut = chance.choice(
        [
            None,
            {
                "max_length": chance.randint(0, 9),
                "stride": chance.choice([0, 0, 1, 2]),
                "strategy": chance.choice(["longest_first", "longest_first", "only_first", "only_second"]),
                "direction": chance.choice(["left", "right"]),
            },
        ]
    )
    fill = chance.choice(
        [
            None,
            {
                "length": chance.choice([None, None, 0, 5, 12]),
                "direction": chance.choice(["left", "right"]),
                "pad_to_multiple_of": chance.choice([None, 0, 4]),
                "pad_id": 3,
                "pad_type_id": chance.choice([0, 2]),
            },
        ]
    )
    plain = chance.random() < 0.3
    for tokenizer in tokenizers:
        tokenizer.no_padding()
        tokenizer.no_truncation()
        tokenizer.encode_special_tokens = plain
        if fill is not None:
            tokenizer.enable_padding(**fill)
    if cut is not None:
        done = [outcome(tokenizer, "enable_truncation", **cut) for tokenizer in tokenizers]
        assert done[0] == done[1]
    for name in ("padding", "truncation", "encode_special_tokens"):
        assert len({repr(getattr(tokenizer, name)) for tokenizer in tokenizers}) == 1
    return f"{cut} {fill}"


@pytest.mark.slow
@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("ends", [(False, False), (True, False), (True, True)])
def test_pairs_words_truncation_and_padding(name: str, ends: tuple[bool, bool]) -> None:
    try:
        mine, other = both(model(name, *ends))
    except ValueError:
        pytest.fail(f"{name} has no such pieces")
    chance = random.Random(budget.SEED)
    texts = [text[:40] for text in some_texts(name, 40)]
    for _ in range(budget.examples(30)):
        settings = set_up(chance, mine, other)
        words = chance.random() < 0.4
        batch: list[Any] = []
        for _ in range(chance.randint(0, 3)):
            first, second = (an_input(chance, texts, words) for _ in range(2))
            batch.append((first, second) if chance.random() < 0.5 else first)
        adds = chance.random() < 0.7
        for call in ("encode_batch", "encode_batch_fast"):
            expected = outcome(other, call, batch, words, adds)
            assert outcome(mine, call, batch, words, adds) == expected, (
                settings,
                batch,
            )
        for item in batch:
            given = item if isinstance(item, tuple) else (item, None)
            expected = outcome(other, "encode", *given, words, adds)
            assert outcome(mine, "encode", *given, words, adds) == expected


CONTENTS = ("a", "the", "ab", "abra", "<x>", "<x>y", "x y", "▁a", " z", "é", "</s>", "zz", "\n", "w")


METASPACE = ("never", "first", "always")
"""Files without a normalizer, in which tokens with `normalized` are looked for in texts as they are."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["llama", "no-prefix", "defaults without rules", "suffix without rules", *BYTE_LEVEL, *METASPACE]
)
def test_added_tokens(name: str) -> None:
    """With all combinations of flags, added again with others, special or not."""
    data = json_files.dumped(json_files.metaspace(name, False)) if name in METASPACE else model(name)
    chance = random.Random(budget.SEED)
    parts = (*CONTENTS, *CONTENTS, " ", "  ", "b", "\u3000", "\x1c", "▁", "-", "٣", "²", "\u0301", "🄰")
    for _ in range(budget.examples(15)):
        mine, other = both(data)
        for _ in range(chance.randint(1, 3)):
            new: list[Any] = []
            for content in chance.choices(CONTENTS, k=chance.randint(1, 4)):
                flags = {
                    flag: chance.random() < 0.5
                    for flag in ("lstrip", "rstrip", "single_word", "normalized", "special")
                    if chance.random() < 0.5
                }
                new.append(chance.choice([content, ours.AddedToken(content, **flags)]))
            call = chance.choice(["add_tokens", "add_special_tokens"])
            counted = outcome(other, call, translated(new))
            assert outcome(mine, call, new) == counted
        assert shown(mine.get_added_tokens_decoder()) == shown(other.get_added_tokens_decoder())
        assert mine.get_vocab() == other.get_vocab()
        size = other.get_vocab_size()
        assert mine.get_vocab_size() == size
        assert [mine.id_to_token(id) for id in range(size + 2)] == [
            other.id_to_token(id) for id in range(size + 2)
        ]
        assert json.loads(mine.to_str()) == json.loads(other.to_str())
        again = pickle.loads(pickle.dumps(mine))
        mine.encode_special_tokens = again.encode_special_tokens = chance.random() < 0.3
        other.encode_special_tokens = mine.encode_special_tokens
        for _ in range(12):
            text = "".join(chance.choices(parts, k=chance.randint(1, 7)))
            expected = columns(other.encode(text))
            assert columns(mine.encode(text)) == expected, (text, other.get_added_tokens_decoder())
            assert columns(again.encode(text)) == expected
            for skips in (False, True):
                decoded = other.decode(expected["ids"], skip_special_tokens=skips)
                assert mine.decode(expected["ids"], skip_special_tokens=skips) == decoded


@pytest.mark.parametrize("name", SOME)
def test_ids_that_no_text_has_are_decoded_alike(name: str) -> None:
    mine, other = both(model(name))
    chance = random.Random(budget.SEED)
    size = mine.get_vocab_size()
    awkward = [id for id in range(size) if len(str(mine.id_to_token(id))) == 6 or id < 4]
    batch = [
        chance.choices([*awkward, size, size + 7], k=chance.randint(0, 3))
        + chance.choices(range(size), k=chance.randint(0, 3))
        + chance.choices(awkward, k=chance.randint(0, 2))
        for _ in range(budget.examples(200))
    ]
    for skips in (False, True):
        assert mine.decode_batch(batch, skips) == other.decode_batch(batch, skip_special_tokens=skips)
        assert [mine.decode(ids, skips) for ids in batch] == mine.decode_batch(batch, skips)


def a_change(chance: random.Random) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    """A call that changes an encoding."""
    kind = chance.choice(["pad", "truncate", "set_sequence_id"])
    if kind == "pad":
        direction = chance.choice(["left", "right"])
        return kind, (chance.randint(0, 12),), {"direction": direction, "pad_id": 5, "pad_token": "P"}
    if kind == "truncate":
        direction = chance.choice(["left", "right"])
        return kind, (chance.randint(0, 8), chance.choice([0, 0, 1, 2]), direction), {}
    return kind, (0,), {}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["llama", "user-defined-llama", "Llama 3", "RoBERTa"])
def test_changing_encodings(name: str) -> None:
    """Encodings that are padded, cut, merged and copied, and everything that they are asked after that."""
    mine, other = both(model(name))
    chance = random.Random(budget.SEED)
    texts = [text[:25] for text in some_texts(name, 40)]
    for _ in range(budget.examples(20)):
        given = [(chance.choice(texts), chance.choice([None, *texts])) for _ in range(chance.randint(1, 3))]
        left, right = ([library.encode(*pair) for pair in given] for library in (mine, other))
        for one, two in zip(left, right, strict=True):
            for call, args, kwargs in (a_change(chance) for _ in range(chance.randint(0, 3))):
                if call == "set_sequence_id" and one.n_sequences > 1:
                    continue  # a token of two sequences: the other library chooses one by chance
                done = [outcome(e, call, *args, **kwargs) for e in (one, two)]
                assert done[0] == done[1]
            assert columns(one) == columns(two)
        grows = chance.random() < 0.5
        one, two = type(left[0]).merge(left, grows), type(right[0]).merge(right, growing_offsets=grows)
        for number, again in enumerate(
            (one, copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one)))
        ):
            assert columns(again) == columns(two), number
        assert [shown(again) for again in one.overflowing] == [shown(again) for again in two.overflowing]
        for call in ("token_to_sequence", "token_to_chars", "token_to_word", "char_to_token", "char_to_word"):
            for place in range(len(one) + 2):
                assert getattr(one, call)(place) == getattr(two, call)(place), (call, place)
        for sequence in range(3):
            for call in ("char_to_token", "char_to_word", "word_to_tokens", "word_to_chars"):
                for place in range(6):
                    expected = getattr(two, call)(place, sequence)
                    assert getattr(one, call)(place, sequence) == expected, (call, place, sequence)


def test_the_files_of_others() -> None:
    """Forms that converters elsewhere write."""
    forms = [json_files.llama(), json_files.llama(False), json_files.gemma(), json_files.phi3()]
    forms += [
        json_files.metaspace(scheme, split)
        for scheme in ("never", "always", "first")
        for split in (False, True)
    ]
    for content in forms:
        mine, other = both(content)
        for text in (*FEW, "a<table>b <table>", "<start_of_turn>Hi", "Hi<|end|>\n <|user|> x", "☃☃ ☃"):
            expected = columns(other.encode(text, "the"))
            assert columns(mine.encode(text, "the")) == expected, text
            for skips in (False, True):
                decoded = other.decode(expected["ids"], skip_special_tokens=skips)
                assert mine.decode(expected["ids"], skips) == decoded, text
        assert json.loads(mine.to_str()) == json.loads(other.to_str())
