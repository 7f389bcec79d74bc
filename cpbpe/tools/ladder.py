"""A ladder of exercises: a reader writes BPE function by function, and each rung has a hundred cases or more.

They come in the order of their size, as a rule. `climbing.py` tries them.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from numbers import Integral
from typing import Any

from cpbpe.model.spec import ModelSpec, NormalizerSpec, Piece, Pieces, PieceType
from cpbpe.reference.byte_level.patterns import PATTERNS, cut
from cpbpe.reference.encoding import BYTE_PIECES, ReferenceEngine
from cpbpe.reference.step_by_step import steps
from cpbpe.spelling import counted
from cpbpe.text.utf8 import text_of
from cpbpe.tokenizer.tokenizer import Tokenizer
from cpbpe.tools.climbing import Case, Rung

WORDS = "low lower lowest then the there in thing banana hello hen aaabdaaabac x² it's IT'S a.b a_b 3.14"
ODD = "| |\n|  a|a  |a\tb|a\nb|\n\n a|é|e\u0301|你好|🦙|Ⅷ½|▁|<s>|<unk>|<0x41>|a\xa0b|a\u3000b|a\r\nb"

Pair = tuple[int, int]


def _texts() -> list[str]:
    """Texts for all rungs, the shortest first."""
    rng, some = random.Random(2), [*WORDS.split(), *ODD.split("|")]
    made = [" ".join(rng.choices(some, k=1 + size // 4)) for size in range(80)]
    return sorted({*some, *made}, key=lambda text: (len(text), text))


# --- Bytes and merges -----------------------------------------------------------------------------


def _random_ids() -> Iterator[list[int]]:
    """Sequences of ids, the shortest first."""
    rng = random.Random(1)
    yield from ([], [1], [1, 1], [1, 2], [1, 1, 1], [1, 2, 1, 2], [1, 1, 1, 1])
    yield from ([rng.randrange(1, 2 + size // 8) for _ in range(size)] for size in range(3, 150))


def _counts(*chunks: Sequence[int]) -> dict[Pair, int]:
    return dict(Counter(pair for ids in chunks for pair in pairwise(ids)))


def _merged(ids: Sequence[int], pair: Pair, new: int) -> list[int]:
    made: list[int] = []
    at = 0
    while at < len(ids):
        found = tuple(ids[at : at + 2]) == pair
        made.append(new if found else ids[at])
        at += 1 + found
    return made


def _stats_cases(model: Tokenizer | None) -> Iterator[Case]:
    overlap = "Pairs that overlap are counted, too: (1, 1) twice in [1, 1, 1]."
    for ids in _random_ids():
        yield Case("get_stats", (ids,), _counts, lambda ids: overlap if len(ids) > 2 else "")


def _merge_cases(model: Tokenizer | None) -> Iterator[Case]:
    order = "From left to right: [1, 1, 1] becomes [99, 1]."
    for ids in _random_ids():
        for pair in [(1, 1), (1, 2), *list(_counts(ids))[:2]]:
            yield Case("merge", (ids, pair, 99), _merged, lambda ids, *_: order if len(ids) > 2 else "")


def _train_cases(model: Tokenizer | None) -> Iterator[Case]:
    yield from _training("train", lambda text: [text])


def _training(name: str, cut: Callable[[str], list[str]]) -> Iterator[Case]:
    def judge(text: str, vocab_size: int) -> Callable[[Any], str]:
        return _judge_of_training([list(chunk.encode()) for chunk in cut(text)], vocab_size - 256)

    def remark(text: str, vocab_size: int) -> str:
        ids = ", ".join(str(list(chunk.encode())) for chunk in cut(text))
        return ids and f"The bytes are {ids}. Of equally frequent pairs, any may be taken."

    for text in _texts():
        yield Case(name, (text, 257 + len(text) // 3), judge, remark)


def _are_ids(pair: Sequence[Any]) -> bool:
    return all(isinstance(id, Integral) for id in pair)  # (also numpy's)


def _judge_of_training(chunks: list[list[int]], count: int) -> Callable[[Any], str]:
    def wrong(answer: Any) -> str:
        now = chunks
        pairs = "a list of pairs, in the order in which they are merged"
        if not isinstance(answer, (list, tuple, type(None))):
            return f"{pairs}, not {type(answer).__name__}"
        if answer is None or not all(isinstance(pair, (list, tuple)) and _are_ids(pair) for pair in answer):
            return pairs if _counts(*now) else "[], because there is no pair: stop when none is left"
        for number, pair in enumerate(map(tuple, answer)):
            counts = _counts(*now)
            if number >= count or not counts:
                why = "no pair is left" if not counts else "the 256 bytes are pieces, too"
                return f"{counted(number, 'merge')}, not {len(answer)}: {why}"
            best, times = max(counts, key=lambda one: counts[one]), counts.get(pair, 0)
            if times < counts[best]:
                return f"merge {number + 1}: {pair} occurs {times} times, and {best} {counts[best]} times"
            now = [_merged(ids, pair, 256 + number) for ids in now]
        if len(answer) == count or not _counts(*now):
            return ""
        size = f"{256 + count} pieces are 256 bytes and {counted(count, 'merge')}"
        return f"more merges than {len(answer)}: {size}. Go on while a pair is left, even if it occurs once"

    return wrong


def _pieces(merges: Sequence[Pair]) -> dict[int, bytes]:
    pieces = {byte: bytes([byte]) for byte in range(256)}
    for id, (left, right) in enumerate(merges, 256):
        pieces[id] = pieces[left] + pieces[right]
    return pieces


def _encoded(text: str, merges: Sequence[Pair]) -> list[int]:
    _pieces(merges)  # (a KeyError if a merge is of ids that do not exist yet)
    ids = list(text.encode())
    for id, pair in enumerate(merges, 256):
        ids = _merged(ids, pair, id)
    return ids


def _decoded(ids: Sequence[int], merges: Sequence[Pair]) -> str:
    pieces = _pieces(merges)
    return b"".join(pieces[id] for id in ids).decode(errors="replace")


def _tables() -> list[tuple[str, list[Pair]]]:
    """Texts, each with merges, in which the order of merging matters."""
    rng = random.Random(4)
    made = [("abc", [(98, 99), (97, 98)])]
    for size in range(150):
        merges: list[Pair] = []
        while len(merges) < 2 + size // 30:
            ids = [*b"ab ", *range(256, 256 + len(merges))]
            pair = (rng.choice(ids), rng.choice(ids))
            merges += [] if pair in merges else [pair]
        made.append(("".join(rng.choices("ab ", k=3 + size // 10)), merges))
    return [*made, *((text, merges) for text in _texts())]


def _encode_cases(model: Tokenizer | None) -> Iterator[Case]:
    order = "The earliest merge first, every occurrence; not the longest piece, and not from left to right."
    begin = "Without merges, the ids are the bytes: list(text.encode())."
    back = "Ids from 256 on are two others, down to bytes. Bytes that are no text: decode(errors='replace')."
    for text, merges in _tables():
        yield Case("encode", (text, merges), _encoded, lambda _, merges: order if merges else begin)
    for text, merges in _tables():
        yield Case("decode", (_encoded(text, merges), merges), _decoded, lambda *_: back)
    yield Case("decode", ([240, 159], []), _decoded, lambda *_: back)


def _cut(text: str) -> list[str]:
    return cut(PATTERNS["gpt2"], text)


def _encoded_chunks(text: str, merges: Sequence[Pair]) -> list[int]:
    return [id for chunk in _cut(text) for id in _encoded(chunk, merges)]


def _cut_cases(model: Tokenizer | None) -> Iterator[Case]:
    more = [
        "I'd I'm don't we'll I've you're he's",
        "hello've world123 how's   it?!",
        "if x:\n    return y",
        "你好a🦙🦙",
        *("1234567", "²!", "\t#", "\n3", "how’s", "'the", "-----", "internationalization"),
    ]
    for text in [*_texts(), *more]:
        yield Case("cut", (text,), _cut, lambda _: "The chapter explains GPT-2's pattern part by part.")
    yield from _training("train_cut", _cut)
    for text, merges in _tables():
        yield Case("encode_cut", (text, merges), _encoded_chunks, lambda text, _: f"Chunks: {_cut(text)}.")


# --- SentencePiece --------------------------------------------------------------------------------

Row = tuple[str, float, str]
BYTES: list[Row] = [(piece.decode(), 0.0, "BYTE") for piece in BYTE_PIECES]
PIECES = "▁t en he in ▁a ▁the er an ▁in ll hell ing ▁an na nan ▁b ban <s nk <u <unk 41 <0 41> x41>"
"""The merges of a small model, the earliest first."""


def _spec(rows: Sequence[Row], add_dummy_prefix: bool) -> ModelSpec:
    pieces = Pieces.of(Piece(text.encode(), score, PieceType[type]) for text, score, type in rows)
    rules = NormalizerSpec(add_dummy_prefix=add_dummy_prefix, remove_extra_whitespaces=False)
    return ModelSpec(pieces, rules, byte_fallback=any(type == "BYTE" for _, _, type in rows))


def _rows(scores: Mapping[str, float]) -> list[Row]:
    return [("<unk>", 0.0, "UNKNOWN"), *BYTES, *((piece, score, "NORMAL") for piece, score in scores.items())]


def _ranked() -> dict[str, float]:
    characters = sorted({*PIECES} - {" "})
    return {piece: float(-rank) for rank, piece in enumerate([*PIECES.split(), *characters])}


def _normalized(text: str) -> str:
    return f"▁{text}".replace(" ", "▁") if text else ""


def _normalize_cases(model: Tokenizer | None) -> Iterator[Case]:
    remark = "Spaces become ▁ (U+2581), with one more in front. An empty text stays empty, all else as it is."
    for text in _texts():
        yield Case("normalize", (text,), _normalized, lambda _: remark)


def _merged_pieces(normalized: str, scores: Mapping[str, float]) -> list[str]:
    spec = _spec(_rows(scores), False)
    tokens = ReferenceEngine(spec).encode(normalized.encode())
    return [text_of(spec.pieces.texts[token.id]) for token in tokens]


def _piece_cases(model: Tokenizer | None) -> Iterator[Case]:
    def remark(normalized: str, scores: Mapping[str, float]) -> str:
        made = steps(_spec(_rows(scores), False), normalized)
        return "\n".join(str(step) for step in made if step.kind != "end")  # (the end has ids)

    rng = random.Random(5)
    for size in range(80):  # (scores drawn at random, which may be equal; parts need not be pieces)
        text = "".join(rng.choices("ab▁", k=3 + size // 10))
        pieces = {
            text[at : at + length] for at in range(len(text)) for length in (2, 3) if rng.random() < 0.7
        }
        pieces |= {character for character in "ab▁" if rng.random() < 0.8}
        scores = {piece: float(-rng.choice((0, 1, 2, 30000))) for piece in sorted(pieces)}
        yield Case("encode_pieces", (text, scores), _merged_pieces, remark)
    for text in _texts():
        yield Case("encode_pieces", (_normalized(text), _ranked()), _merged_pieces, remark)


def unfit(model: Tokenizer) -> str:
    """What makes the last rung impossible with a model; empty if nothing does."""
    spec = model.spec
    plain = NormalizerSpec(spec.normalizer.name, remove_extra_whitespaces=False)
    reasons = {
        "is byte-level": spec.alphabet == "bytes",
        "has no byte fallback": not spec.byte_fallback,
        "puts no ▁ in front of texts": not spec.normalizer.add_dummy_prefix,
        "changes texts (see cpbpe inspect)": (spec.normalizer, spec.denormalizer) != (plain, None),
        "has user-defined pieces": PieceType.USER_DEFINED in spec.pieces.types,
        "has unused pieces": PieceType.UNUSED in spec.pieces.types,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


VOCAB: list[Row] = [*_rows(_ranked()), ("<s>", 0.0, "CONTROL"), ("</s>", 0.0, "CONTROL")]
"""The vocab of the last rung's small model."""
BACK = """\
CONTROL pieces are left out, and a ▁ at the beginning. Every other ▁ of a piece becomes a space.
BYTE pieces become bytes, and these text: decode(errors='replace')."""


def vocab_of(tok: Tokenizer) -> list[Row]:
    """The same of any model."""
    vocab = tok.vocab
    return [(vocab[id], vocab.score(id), vocab.piece_type(id).name) for id in range(len(vocab))]


def _model_cases(model: Tokenizer | None) -> Iterator[Case]:
    models = [(Tokenizer.from_spec(_spec(VOCAB, True)), VOCAB)]
    models += [(model, vocab_of(model))] if model else []
    made = [case for tok, vocab in models for case in _cases_of(tok, vocab)]
    yield from sorted(made, key=lambda case: case.name, reverse=True)


def _cases_of(tok: Tokenizer, rows: list[Row]) -> Iterator[Case]:
    """The last rung's cases for one model."""
    origin = "VOCAB" if rows is VOCAB else "vocab_of(cpbpe.load(MODEL))"

    def model(vocab: list[Row]) -> Tokenizer:
        if vocab is rows:
            return tok
        if not {"<unk>", "▁"} <= {piece for piece, _, _ in vocab}:  # (an error skips a smaller example)
            raise ValueError("without ▁, it can be unknown together with the next character, as one id")
        return Tokenizer.from_spec(_spec(vocab, True))  # (a printed example)

    def decoded(ids: list[int], vocab: list[Row]) -> str:
        if (text := model(vocab).decode(ids)).count("\ufffd") > 1:
            raise ValueError("several broken bytes, which programs show in different ways")
        return text

    def remark(given: Any, vocab: list[Row]) -> str:
        if isinstance(given, str):
            lines = [str(step) for step in steps(model(vocab), given)]
            lines += ["<s> is CONTROL: nothing merges into it."] if "<s>" in given else []
        else:
            lines = [", ".join(f"{id} is {vocab[id][0]}" for id in given), BACK]
        return "\n".join([*lines, *([f"vocab is {origin} of cpbpe.tools.ladder."] if vocab is rows else [])])

    few = [row for row in _rows({"ccc": 0, "cc": -1, "c": -2, "▁": -3}) if row[2] != "BYTE"]
    yield Case("tokenize", ("cccc", few), lambda text, vocab: model(vocab).encode(text), remark)
    for text in [*_texts(), "lll", "aaaaaaa", "$$$$$", "Hello world", "The llama 🦙 reads stories, 你好!"]:
        yield Case("tokenize", (text, rows), lambda text, vocab: model(vocab).encode(text), remark)
        yield Case("detokenize", (tok.encode(text, add_bos=True), rows), decoded, remark)
    ids = {piece: id for id, (piece, _, _) in enumerate(rows)}
    for pieces in ("<0xE2>", "in", "in ▁in", "▁ ▁ in", "in <0xF0>", "<0xE2> <0x96> <0x81>"):
        if all(piece in ids for piece in pieces.split()):  # (what no text gives, but a network may)
            yield Case("detokenize", ([ids[piece] for piece in pieces.split()], rows), decoded, remark)


# --- The ladder -----------------------------------------------------------------------------------

RUNGS = (
    Rung(
        "get_stats(ids) -> dict",
        "Count how often each pair of neighbours occurs in a list of numbers.",
        "get_stats([7, 7, 7, 8]) == {(7, 7): 2, (7, 8): 1}",
        "4-bpe-by-hand",
        _stats_cases,
    ),
    Rung(
        "merge(ids, pair, new) -> list",
        "Replace each occurrence of a pair by a new number, from left to right. Give a new list.",
        "merge([7, 7, 7, 8], (7, 7), 99) == [99, 7, 8]",
        "4-bpe-by-hand",
        _merge_cases,
    ),
    Rung(
        "train(text, vocab_size) -> list of pairs",
        "Learn merges from the UTF-8 bytes of a text: merge the most frequent pair, again and again, until\n"
        "there are vocab_size pieces (256 are bytes) or no pair is left. The first merge makes the id 256.",
        "train('ababc', 258) == [(97, 98), (256, 256)]",
        "4-bpe-by-hand",
        _train_cases,
    ),
    Rung(
        "encode(text, merges) -> list of ids\ndecode(ids, merges) -> str",
        "Turn text into ids with merges that were learned, a list as train gives it, and back.",
        "encode('ababc', [(97, 98), (256, 256)]) == [257, 99]\n"
        "decode([257, 99], [(97, 98), (256, 256)]) == 'ababc'",
        "4-bpe-by-hand",
        _encode_cases,
    ),
    Rung(
        "cut(text) -> list of str\n"
        "train_cut(text, vocab_size) -> list of pairs\n"
        "encode_cut(text, merges) -> list of ids",
        "Cut a text as GPT-2 does (pip install regex). Then train and encode as before, but across a cut\n"
        "nothing is counted or merged.",
        "cut('the end') == ['the', ' end']\n"
        "train_cut('e e e', 257) == [(32, 101)]\n"
        "encode_cut('e e', [(101, 32)]) == [101, 32, 101]",
        "5-patterns",
        _cut_cases,
    ),
    Rung(
        "normalize(text) -> str",
        "Now SentencePiece: write spaces as U+2581, with one more in front.",
        "normalize('Hello world') == '▁Hello▁world'",
        "7-sentencepiece",
        _normalize_cases,
    ),
    Rung(
        "encode_pieces(normalized, scores) -> list of str",
        "Merge characters: of all neighbours whose joined text is a piece, the pair with the highest score,\n"
        "the leftmost of equals. scores is a dict from piece to score. At the end, a character without a\n"
        "piece becomes bytes such as '<0xF0>'.",
        "encode_pieces('abcé', {'bc': 0, 'ab': -1, 'a': -2}) == ['a', 'bc', '<0xC3>', '<0xA9>']",
        "7-sentencepiece",
        _piece_cases,
    ),
    Rung(
        "tokenize(text, vocab) -> list of ids\ndetokenize(ids, vocab) -> str",
        "A real model: vocab is a list of (piece, score, type), and an id is a place in it. The types are\n"
        "'NORMAL', 'UNKNOWN' (for what has no piece, if there are no bytes), 'CONTROL' and 'BYTE'. You may\n"
        "call your functions of rungs 6 and 7. Match it on any text, and you have written Llama's tokenizer.",
        "tokenize('a', [('<unk>', 0, 'UNKNOWN'), ('▁a', 0, 'NORMAL'), ('▁', -1, 'NORMAL')]) == [1]\n"
        "tokenize('b', [('<unk>', 0, 'UNKNOWN'), ('▁a', 0, 'NORMAL'), ('▁', -1, 'NORMAL')]) == [2, 0]\n"
        "detokenize([1], [('<unk>', 0, 'UNKNOWN'), ('▁a', 0, 'NORMAL'), ('▁', -1, 'NORMAL')]) == 'a'",
        "7-sentencepiece",
        _model_cases,
        needs_model=True,
    ),
)
"""The exercises, in their order."""
