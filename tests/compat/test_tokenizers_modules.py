"""`tokenizers.processors` and `tokenizers.decoders.DecodeStream`: ours do what theirs do."""

import copy
import pickle
import random
from typing import Any

import pytest
from tokenizers import decoders, processors

from cpbpe.compat.tokenizers import decoders as our_decoders
from cpbpe.compat.tokenizers import processors as our_processors
from tests.support import budget
from tests.support.json_tokenizers import BYTE_LEVEL, both, columns, model, outcome

TEXTS = ("", " a  b ", "the abra")
PAIRS: tuple[tuple[Any, ...], ...] = (("s", ("</s>", 2), ("<s>", 1)),)
TEMPLATES: list[dict[str, Any]] = [
    {"single": "<s> $A </s>", "special_tokens": [("<s>", 1), (2, "</s>")]},
    {"single": "$0 <s>:3", "pair": ["$A", "$B:1", "<s>"], "special_tokens": [("<s>", 1)]},
    {"pair": "$B:2 $a:4 $b", "special_tokens": []},
    {"single": "$ $7 $A:1"},
    {"single": "x $A", "special_tokens": [{"id": "x", "ids": [1, 2], "tokens": ["<s>", "</s>"]}]},
    {"single": "<s> $A"},
    {"pair": "$A $A"},
    {"single": "$A  $A"},
    {"single": "$C"},
    {"single": "$A:x"},
    {"single": "$A:1:2"},
    {"single": "$A:4294967296"},
    {"single": "x $A", "special_tokens": [{"id": "x", "ids": [1, 2], "tokens": ["<s>"]}]},
    {"single": 3},
    {"single": "$A", "special_tokens": [("<s>", -1)]},
    {"single": "$A", "special_tokens": [("<s>",)]},
    {},
]


def made(kind: str, *args: Any, **kwargs: Any) -> list[Any]:
    """The same post-processor in both libraries, or the errors."""
    found = []
    for module in (our_processors, processors):
        try:
            found.append(getattr(module, kind)(*args, **kwargs))
        except Exception as error:
            found.append(error)
    return found


def same_with(ours: Any, theirs: Any, name: str) -> None:
    """Two post-processors do the same: to texts and pairs, alone, and after pickling and copying."""
    mine, other = both(model(name))
    mine.post_processor, other.post_processor = ours, theirs
    for tokenizer in (mine, pickle.loads(pickle.dumps(mine)), type(mine).from_str(mine.to_str())):
        for text in TEXTS:
            for pair in (None, *TEXTS):
                for adds in (False, True):
                    expected = columns(other.encode(text, pair, add_special_tokens=adds))
                    assert columns(tokenizer.encode(text, pair, add_special_tokens=adds)) == expected
    one, two = mine.encode("a b"), other.encode("a b")
    assert columns(ours.process(one, one)) == columns(theirs.process(two, two))
    for is_pair in (False, True):
        assert ours.num_special_tokens_to_add(is_pair) == theirs.num_special_tokens_to_add(is_pair)
    assert mine.post_processor == ours
    assert pickle.loads(pickle.dumps(ours)) == ours == copy.copy(ours)


@pytest.mark.parametrize("given", TEMPLATES, ids=repr)
def test_templates(given: dict[str, Any]) -> None:
    ours, theirs = made("TemplateProcessing", **given)
    if isinstance(theirs, Exception):
        assert isinstance(ours, (ValueError, TypeError, OverflowError)), theirs
        return
    assert not isinstance(ours, Exception)
    same_with(ours, theirs, "llama")


@pytest.mark.parametrize("name", ["GPT-2", "RoBERTa"])
def test_others(name: str) -> None:
    for kind, *args in (
        ("ByteLevel",),
        ("ByteLevel", False),
        ("ByteLevel", True, False),
        ("RobertaProcessing", ("</s>", 2), ("<s>", 1)),
        ("RobertaProcessing", ("</s>", 2), ("<s>", 1), False),
        ("RobertaProcessing", ("</s>", 2), ("<s>", 1), True, False),
        ("BertProcessing", ("</s>", 2), ("<s>", 1)),
    ):
        ours, theirs = made(kind, *args)
        same_with(ours, theirs, name)
    first, second = made("ByteLevel", False), made("TemplateProcessing", **TEMPLATES[0])
    same_with(
        our_processors.Sequence([first[0], second[0]]), processors.Sequence([first[1], second[1]]), name
    )
    # A ByteLevel that comes after other tokens takes each of them for a text, which has a number.
    last = made("ByteLevel", False, False)
    for before in (
        *(made("TemplateProcessing", **TEMPLATES[number]) for number in (0, 1, 4)),
        made("BertProcessing", ("</s>", 2), ("<s>", 1)),
        made("RobertaProcessing", ("</s>", 2), ("<s>", 1), False),
    ):
        ours, theirs = (
            module.Sequence([one, after])
            for module, one, after in zip((our_processors, processors), before, last, strict=True)
        )
        same_with(ours, theirs, name)


def test_what_is_refused() -> None:
    mine, _ = both(model("llama"))
    with pytest.raises(TypeError, match="must be one of"):
        mine.post_processor = processors.ByteLevel()
    template = our_processors.TemplateProcessing(**TEMPLATES[0])
    with pytest.raises(ValueError, match="one text"):  # tokenizers panics when it encodes
        our_processors.TemplateProcessing(single="$A $B")
    with pytest.raises(ValueError, match="two templates"):
        mine.post_processor = our_processors.Sequence([template, template])
    for made in (our_processors.Sequence, processors.Sequence):
        with pytest.raises(TypeError, match="list"):  # (an iterator that was used up would be none)
            made(iter([]))  # type: ignore[arg-type]
    mine.post_processor = None
    assert mine.post_processor is None
    assert mine.encode("a").ids == mine.cpbpe.encode("a")


IMPORTS = [
    "from cpbpe.compat.tokenizers import Tokenizer, models, pre_tokenizers, decoders, trainers, processors",
    "from cpbpe.compat.tokenizers.models import BPE",
    "import cpbpe.compat.tokenizers.models",
    "from cpbpe.compat.tokenizers.pre_tokenizers import Whitespace",
    "from cpbpe.compat.tokenizers.trainers import BpeTrainer",
    "from cpbpe.compat.tokenizers.normalizers import NFKC",
    "from cpbpe.compat.tokenizers import ByteLevelBPETokenizer",
    "from cpbpe.compat.tokenizers.implementations import CharBPETokenizer",
    "from cpbpe.compat.tokenizers import Regex",
    "from cpbpe.compat.tokenizers.decoders import ByteLevel",
]


@pytest.mark.parametrize("line", IMPORTS)
def test_what_is_not_here_says_what_is(line: str) -> None:
    """These are the first lines of the scripts in tokenizers' README."""
    with pytest.raises(ImportError, match=r"is not here: .* loads models.* cpbpe\.train\(corpus") as error:
        exec(line)
    assert str(error.value).startswith(str(error.value.name))


def test_names_of_nobody() -> None:
    import cpbpe.compat.tokenizers as package

    assert not hasattr(package, "Tokeniser")
    with pytest.raises(ImportError, match="cannot import name 'Tokeniser'"):
        exec("from cpbpe.compat.tokenizers import Tokeniser")


@pytest.mark.parametrize("name", [*BYTE_LEVEL, "llama", "user-defined-llama", "no-prefix"])
def test_decode_stream(name: str) -> None:
    mine, other = both(model(name))
    size = mine.get_vocab_size()
    chance = random.Random(budget.SEED)
    # Mostly ids of bytes: pieces like <0x0A>, which have six characters, or low ids in byte-level models.
    bytes = [id for id in range(size) if len(str(mine.id_to_token(id))) == 6 or id < 200]
    for _ in range(budget.examples(60)):
        before = chance.choice([None, chance.choices(range(size), k=2)])
        skips = chance.random() < 0.5
        one = our_decoders.DecodeStream(before, skips)
        two = decoders.DecodeStream(before, skips)
        for _ in range(12):
            ids = chance.choices(
                chance.choice([range(size), bytes, range(size + 3)]), k=chance.choice([1, 1, 2, 3])
            )
            given = ids if len(ids) > 1 or chance.random() < 0.3 else ids[0]
            expected = outcome(two, "step", other, given)
            one = copy.copy(one)
            assert outcome(one, "step", mine, given) == expected
            if expected[0] == "error":
                break
