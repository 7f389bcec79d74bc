"""A ladder of exercises: a reader writes BPE function by function, and each is tried on hundreds of cases.

The cases of a rung come in the order of their size, so the first one that fails is a small one. It is shown
with what was expected, and where merges are involved, with their steps.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from cpbpe.model.spec import ModelSpec, NormalizerSpec, Piece, Pieces, PieceType
from cpbpe.reference.byte_level.patterns import PATTERNS, cut
from cpbpe.reference.encoding import BYTE_PIECES, ReferenceEngine
from cpbpe.reference.step_by_step import steps
from cpbpe.text.utf8 import text_of
from cpbpe.tokenizer.tokenizer import Tokenizer

WORDS = "low lower lowest new newer newest wide wider widest the there then banana aaabdaaabac"
ODD = [
    "",
    " ",
    "a",
    "  a",
    "a  ",
    "é",
    "e\u0301",
    "你好",
    "🦙",
    "1234",
    "it's",
    "IT'S",
    "\n\n a",
    "\ta",
    "a.b",
    "▁",
]
PIECES = [
    "▁t",
    "he",
    "in",
    "▁a",
    "▁the",
    "er",
    "an",
    "▁in",
    "ll",
    "hell",
    "ing",
    "▁an",
    "na",
    "nan",
    "▁b",
    "ban",
]
"""The merges of the small model of a rung, the earliest first. Its characters are those of these pieces."""

Pair = tuple[int, int]
Case = tuple[str, tuple[Any, ...], Any, "str | Iterable[object]"]
"""The function to call, its arguments, what it should give (or a function that says what is wrong with an
answer), and a remark: a text, or the steps of a merge."""


@dataclass(frozen=True)
class Rung:
    """An exercise."""

    functions: str
    """The signatures of the functions to write, a line for each."""
    task: str
    """What they do, in a few sentences."""
    chapter: str
    """Where the course explains it."""
    cases: Callable[[Tokenizer | None], Iterator[Case]]
    """The cases that are tried; some need a model."""
    needs_model: bool = False
    """Whether they do."""


@dataclass(frozen=True)
class Failure:
    """The smallest case that failed."""

    call: str
    """The call, as Python writes it."""
    given: str
    """What it gave or raised."""
    expected: str
    """What was expected."""
    remark: str
    """More about it, perhaps in several lines; or an empty text."""


def climb(rung: Rung, functions: Mapping[str, Any], model: Tokenizer | None = None) -> int | Failure:
    """Try the functions: how many cases hold, or the first that does not."""
    count = 0
    for name, arguments, expected, remark in rung.cases(model):
        call = f"{name}({', '.join(map(_short, arguments))})"
        function = functions.get(name)
        if not callable(function):
            return Failure(call, f"there is no function {name}", f"def {name}(...)", rung.functions)
        try:
            # (Copies, because a function that changes its arguments would change those of the next call.)
            answer = function(*map(_copy, arguments))
        except Exception as error:
            answer = error
            given = f"{type(error).__name__}: {error}"
        else:
            given = _short(answer)
        if callable(expected):
            wrong = None if isinstance(answer, Exception) else expected(answer)
            if isinstance(answer, Exception) or wrong:
                return Failure(call, given, wrong or "an answer", str(remark))
        elif isinstance(answer, Exception) or answer != expected:
            return Failure(call, given, _short(expected), str(remark))
        count += 1
    return count


def _copy(value: Any) -> Any:
    return type(value)(value) if isinstance(value, (list, dict)) else value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}... ({len(text):,} characters)"


# --- Bytes and merges -----------------------------------------------------------------------------


def _random_ids() -> Iterator[list[int]]:
    """Sequences of ids, the shortest first."""
    rng = random.Random(1)
    yield from ([], [1], [1, 1], [1, 2], [1, 1, 1], [1, 2, 1, 2], [1, 1, 1, 1])
    yield from ([rng.randrange(1, 2 + size // 8) for _ in range(size)] for size in range(3, 150))


def _counts(ids: Sequence[int]) -> Counter[Pair]:
    return Counter(pairwise(ids))


def _merged(ids: Sequence[int], pair: Pair, new: int) -> list[int]:
    made: list[int] = []
    at = 0
    while at < len(ids):
        found = tuple(ids[at : at + 2]) == pair
        made.append(new if found else ids[at])
        at += 1 + found
    return made


def _stats_cases(model: Tokenizer | None) -> Iterator[Case]:
    for ids in _random_ids():
        yield (
            "get_stats",
            (ids,),
            dict(_counts(ids)),
            "Pairs that overlap are counted, too: (1, 1) twice in [1, 1, 1].",
        )


def _merge_cases(model: Tokenizer | None) -> Iterator[Case]:
    for ids in _random_ids():
        for pair in [(1, 1), (1, 2), *list(_counts(ids))[:2]]:
            yield (
                "merge",
                (ids, pair, 99),
                _merged(ids, pair, 99),
                "From left to right: [1, 1, 1] becomes [99, 1].",
            )


def _texts() -> list[str]:
    rng = random.Random(2)
    words = WORDS.split()
    made = [" ".join(rng.choices([*words, *ODD], k=size // 4 + 1)) for size in range(40)]
    return sorted([*ODD, *words, *made], key=len)


def _train_cases(model: Tokenizer | None) -> Iterator[Case]:
    for text in filter(None, _texts()):
        ids, count = list(text.encode()), 1 + len(text) // 3
        yield (
            "train",
            (text, 256 + count),
            _judge_of_training(ids, count),
            "Which of equal pairs is taken is free.",
        )


def _judge_of_training(ids: list[int], count: int) -> Callable[[Any], str]:
    def wrong(answer: Any) -> str:
        now = ids
        if not isinstance(answer, (list, tuple)):
            return "a list of pairs, in the order in which they were merged"
        for number, pair in enumerate([tuple(pair) for pair in answer]):
            counts = _counts(now)
            most = max(counts.values(), default=0)
            if number >= count:
                return f"{count} merges, not {len(answer)}: besides the 256 bytes, each merge makes one piece"
            if counts.get(pair, 0) < most or not most:
                best = max(counts, key=lambda one: counts[one]) if counts else None
                times = counts.get(pair, 0)
                return f"merge {number + 1}: {pair} occurs {times} times there, and {best} {most} times"
            now = _merged(now, pair, 256 + number)
        return "" if len(answer) == count or len(now) < 2 else f"{count} merges, not {len(answer)}"

    return wrong


def _learned(text: str, count: int) -> list[Pair]:
    ids, merges = list(text.encode()), []
    for number in range(count):
        counts = _counts(ids)
        if not counts:
            break
        merges.append(max(counts, key=lambda pair: counts[pair]))
        ids = _merged(ids, merges[-1], 256 + number)
    return merges


def _encode_cases(model: Tokenizer | None) -> Iterator[Case]:
    merges = _learned(WORDS, 30)
    remark = "The earliest merge first, wherever it is; not the longest piece, and not from left to right."
    for text in _texts():
        ids = list(text.encode())
        for number, pair in enumerate(merges):
            ids = _merged(ids, pair, 256 + number)
        yield "encode", (text, merges), ids, remark
        yield "decode", (ids, merges), text, "Each merge is two others, down to bytes; then UTF-8."
    yield (
        "decode",
        ([240, 159], merges),
        "\ufffd",
        "Bytes that are no text become U+FFFD: decode(errors='replace').",
    )


def _cut_cases(model: Tokenizer | None) -> Iterator[Case]:
    more = ["Hello've world123 how's   it going?!", "if x:\n    return y", "3.14 and 1,000", "naïve你好 🦙🦙"]
    for text in sorted([*_texts(), *more], key=len):
        yield "cut", (text,), cut(PATTERNS["gpt2"], text), f"GPT-2's pattern is {PATTERNS['gpt2']}"


# --- SentencePiece --------------------------------------------------------------------------------


def _toy() -> ModelSpec:
    """A small model with bytes."""
    characters = sorted({character for piece in PIECES for character in piece})
    pieces = [
        Piece(b"<unk>", 0, PieceType.UNKNOWN),
        *(Piece(byte, 0, PieceType.BYTE) for byte in BYTE_PIECES),
    ]
    texts = [*PIECES, *characters]
    pieces += [Piece(text.encode(), -rank) for rank, text in enumerate(texts)]
    return ModelSpec(Pieces.of(pieces), NormalizerSpec(remove_extra_whitespaces=False), byte_fallback=True)


def _plain_texts() -> list[str]:
    rng = random.Random(3)
    words = ["the", "then", "in", "banana", "thing", "a", "an", "hello", "lll", "你", "🦙", "x", "ing"]
    made = [" ".join(rng.choices(words, k=size // 3 + 1)) for size in range(60)]
    return sorted([*words, *made, "", " ", "  the", "a  b"], key=len)


def _normalize_cases(model: Tokenizer | None) -> Iterator[Case]:
    for text in _plain_texts():
        expected = f"▁{text}".replace(" ", "▁") if text else ""
        yield (
            "normalize",
            (text,),
            expected,
            "Each space becomes ▁ (U+2581), and one more is put in front of a text.",
        )


def _piece_cases(model: Tokenizer | None) -> Iterator[Case]:
    spec = _toy()
    engine = ReferenceEngine(spec)
    normal = [piece for piece in spec.pieces if piece.type == PieceType.NORMAL]
    scores = {piece.text.decode(): piece.score for piece in normal}
    for text in _plain_texts():
        data = f"▁{text}".replace(" ", "▁") if text else ""
        expected = [text_of(spec.pieces.texts[token.id]) for token in engine.encode(text.encode())]
        yield "encode_pieces", (data, scores), expected, steps(spec, text)


def _model_cases(model: Tokenizer | None) -> Iterator[Case]:
    assert model is not None
    vocab = [
        (model.vocab[id], model.vocab.score(id), model.vocab.piece_type(id).name)
        for id in range(len(model.vocab))
    ]
    texts = {*_plain_texts(), *_texts(), "Hello world", "unbelievable", "The llama 🦙 reads stories, 你好!"}
    for text in sorted(texts, key=lambda text: (len(text), text)):
        yield "tokenize", (text, vocab), model.encode(text), steps(model, text)


# --- The ladder -----------------------------------------------------------------------------------

RUNGS = (
    Rung(
        "get_stats(ids) -> dict",
        "Count how often each pair of neighbours occurs in a list of numbers.",
        "4-bpe-by-hand",
        _stats_cases,
    ),
    Rung(
        "merge(ids, pair, new) -> list",
        "Replace each occurrence of a pair by a new number, from left to right.",
        "4-bpe-by-hand",
        _merge_cases,
    ),
    Rung(
        "train(text, vocab_size) -> list of pairs",
        "Learn merges from the UTF-8 bytes of a text: merge the most frequent pair, again and again. The\n"
        "first merge makes the id 256.",
        "4-bpe-by-hand",
        _train_cases,
    ),
    Rung(
        "encode(text, merges) -> list\ndecode(ids, merges) -> str",
        "Turn text into ids with merges that were learned, and back.",
        "4-bpe-by-hand",
        _encode_cases,
    ),
    Rung(
        "cut(text) -> list",
        "Cut a text as GPT-2 does, before anything is merged. (pip install regex.)",
        "5-patterns",
        _cut_cases,
    ),
    Rung(
        "normalize(text) -> str",
        "Now SentencePiece: write spaces as U+2581, with one more in front.",
        "7-sentencepiece",
        _normalize_cases,
    ),
    Rung(
        "encode_pieces(normalized, scores) -> list",
        "Merge characters: of all neighbours whose joined text is a piece, the pair with the highest score,\n"
        "the leftmost of equals. At the end, a character without a piece becomes bytes such as '<0xF0>'.",
        "7-sentencepiece",
        _piece_cases,
    ),
    Rung(
        "tokenize(text, vocab) -> list of ids",
        "A real model: vocab is a list of (piece, score, type), and an id is a place in it. The types are\n"
        "NORMAL, UNKNOWN, CONTROL and BYTE. Match it on any text, and you have written Llama's tokenizer.",
        "7-sentencepiece",
        _model_cases,
        needs_model=True,
    ),
)
"""The exercises, in their order."""
