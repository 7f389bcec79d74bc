"""What the page's scripts compute beside the core: steps and trees, compared with the reference in Python."""

from typing import Any

import pytest

import cpbpe
from cpbpe.model.spec import PieceType
from cpbpe.reference.step_by_step import MAX_SHOWN, Step, steps
from cpbpe.text.split_patterns import PATTERNS
from cpbpe.text.utf8 import text_of
from cpbpe.tools.built import built
from tests.bytes.models import OWN, model, spec_of
from tests.support import node as nodes
from tests.support import tiers, zoo
from tests.support.budget import MUCH
from tests.support.node import Node, sentence

pytestmark = pytest.mark.skipif(not nodes.RUNS, reason=f"not there: {', '.join(nodes.MISSING)}")

TEXTS = [
    *("Hello, the cat sat on the mat", "", " ", "🦙 don't\r\n\t", "x" * 30, "naïve  café שלום مرحبا क्षि"),
    *("1234567 abab aaaa abcabc", "\0\u202e𐀀 ½ ﬁ", "日本語 日本", "e\u0301 é <s> ▁ hello"),
]
BYTE_LEVEL = {
    "whole": model(),
    "merged": model(whole=False),
    "gpt2": model("gpt2"),
    "own pattern": model(OWN),
    "no pattern": model(None),
}
FEW = [
    *("tokenizer.model.v1", "llama", "defaults", "user-defined", "user-defined-llama", "unused"),
    *("unused-ambiguous", "unused-user-defined", "equal-scores", "shuffled-scores", "odd-scores", "orphans"),
    *("deep-unused", "nested-user-defined", "inner-spaces", "broken-pieces", "suffix", "nul", "renamed-unk"),
    *BYTE_LEVEL,
]
NAMES = [*zoo.NAMES, *BYTE_LEVEL] if MUCH else FEW
SOME = ["llama", "unused-user-defined", "odd-scores", "suffix", "whole", "own pattern"]


def tokenizer(name: str) -> cpbpe.Tokenizer:
    if name in BYTE_LEVEL:
        return cpbpe.Tokenizer.from_spec(BYTE_LEVEL[name])
    return cpbpe.Tokenizer.from_bytes(zoo.model(name))


def asked(node: Node, script: str, tok: cpbpe.Tokenizer, given: Any) -> Any:
    """What a script makes of a model and of `given`."""
    node.load(tok.to_bytes())
    return node.ask(f"const {{ model }} = models; {script}", given=given)


def number(value: float | None) -> float | str | None:
    """A number as `Node.ask` returns it."""
    if value is None or abs(value) < float("inf"):
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


# --- Steps ------------------------------------------------------------------------------------------


def in_python(step: Step) -> dict[str, Any]:
    """A step as the page has it."""
    found: dict[str, Any] = {
        "kind": step.kind,
        "begin": step.begin,
        "end": step.end,
        "old": [*step.symbols[step.begin : step.end]],
        "made": [*step.made],
    }
    if step.kind == "merge":
        others = [{"piece": pair.piece, "score": number(pair.score)} for pair in step.others[:MAX_SHOWN]]
        found |= {"score": number(step.score), "others": others, "count": len(step.others)}
    return found


@pytest.mark.parametrize("name", tiers.some(NAMES, SOME))
def test_steps(name: str, node: Node) -> None:
    tok = tokenizer(name)
    answers = asked(node, "return given.map((text) => cpbpe.steps(model, text))", tok, TEXTS)
    for text, answer in zip(TEXTS, answers, strict=True):
        begin, *middle, end = steps(tok, text)
        assert answer["begin"] == [*begin.symbols]
        assert answer["walls"] == list(begin.walls)
        assert answer["steps"] == [in_python(step) for step in middle]
        assert answer["ids"] == list(end.ids) == tok.encode(text)


@pytest.mark.parametrize("name", ["tokenizer.model.v1", "whole"])
def test_steps_follow_the_options(name: str, node: Node) -> None:
    tok = tokenizer(name).with_special_tokens(["<|x|>"])
    text = "the cat<|x|> sat<s>"
    has_bos = tok.bos_id is not None
    for choice, prefix in (("model", None), ("on", True), ("off", False)):
        options = {"prefix": choice, "bos": has_bos, "special": True}
        answer = asked(node, "return cpbpe.steps(model, given[0], given[1])", tok, [text, options])
        assert answer["ids"] == tok.encode(text, prefix_space=prefix, add_bos=has_bos, allowed_special="all")


def test_what_steps_say(node: Node) -> None:
    def said(tok: cpbpe.Tokenizer, text: str) -> list[str]:
        script = "return cpbpe.steps(model, given).steps.map((step) => cpbpe.explained(model, step))"
        return [sentence(parts) for parts in asked(node, script, tok, text)]

    rows = [("<unk>", 0, 2), ("ab", 0, 1), ("ra", -1, 1), ("abra", -2, 1), ("▁", -3, 1), ("xa", -1, 5)]
    pieces = [cpbpe.Piece(text.encode(), score, PieceType(type)) for text, score, type in rows]
    pieces += [cpbpe.Piece(letter.encode(), -9) for letter in "abrx"]
    toy = cpbpe.Tokenizer.from_spec(cpbpe.ModelSpec(cpbpe.Pieces.of(pieces)))
    assert said(toy, "abra!") == [
        "[a] + [b] → [ab]: score 0, the highest. Next: [ra] -1.",
        "[r] + [a] → [ra]: score -1, and no other pair can merge.",
        "[ab] + [ra] → [abra]: score -2, and no other pair can merge.",
        "[!] is not a piece; it becomes [<unk>].",
    ]
    assert said(toy, "xaxa") == [
        "[x] + [a] → [xa]: score -1, the highest and leftmost. Next: [xa] -1.",
        "[x] + [a] → [xa]: score -1, and no other pair can merge.",
        "[xa] is UNUSED, and taken apart again: [x][a].",
        "[xa] is UNUSED, and taken apart again: [x][a].",
    ]
    learned = [b"he", b" h", b"ll", b"hell", b"llo!"]
    ranks = {piece: rank for rank, piece in enumerate([*(bytes([byte]) for byte in range(256)), *learned])}
    byte_level = cpbpe.Tokenizer.from_spec(spec_of(ranks, PATTERNS["gpt2"]))
    assert said(byte_level, "hell he")[:2] == [
        "The chunk [hell] is a piece, so it is taken whole.",
        "[h] + [e] → [he]: rank 256, the lowest. Next: [ h] 257.",
    ]


# --- Trees ------------------------------------------------------------------------------------------


def merges_of(roots: list[Any]) -> list[tuple[bytes, ...]]:
    """The merges of trees in their order: left, right, made."""
    found: dict[int, tuple[bytes, ...]] = {}
    waiting = list(roots)
    while waiting:
        one = waiting.pop()
        waiting += one["parts"]
        if one["step"]:
            found[one["step"]] = (*(part["symbol"] for part in one["parts"]), one["symbol"])
    assert sorted(found) == list(range(1, len(found) + 1))
    return [found[step] for step in sorted(found)]


@pytest.mark.parametrize("name", tiers.some(NAMES, SOME))
def test_trees(name: str, node: Node) -> None:
    """The merges are those of `cpbpe inspect --piece`."""
    tok = tokenizer(name)
    size = tok.vocab.piece_count
    ids = [*range(0, size, max(1, size // 100))]
    answers = asked(node, "return given.map((id) => cpbpe.tree(model, id))", tok, ids)
    for id, answer in zip(ids, answers, strict=True):
        expected = built(tok.spec, id)
        roots = [text_of(root["symbol"]) for root in answer["roots"]]
        made = [tuple(map(text_of, merge)) for merge in merges_of(answer["roots"])]
        assert made == [(merge.left, merge.right, merge.made) for merge in expected.merges]
        if expected.ends_as and expected.symbols:
            assert roots == list(expected.ends_as)
        assert bool(answer["note"]) == bool(expected.note)


def test_why_no_text_yields_a_piece(node: Node) -> None:
    texts = ["bc", "ab", "cd", "abcd", "xyz", *"abcdxyz"]
    pieces = [cpbpe.Piece(b"<unk>", 0, PieceType.UNKNOWN)]
    pieces += [cpbpe.Piece(text.encode(), -rank) for rank, text in enumerate(texts)]
    tok = cpbpe.Tokenizer.from_spec(cpbpe.ModelSpec(cpbpe.Pieces.of(pieces))).with_special_tokens(["<|x|>"])
    notes = asked(
        node, "return given.map((id) => cpbpe.tree(model, id).note)", tok, [4, 5, 0, tok.vocab_size - 1]
    )
    assert list(map(sentence, notes)) == [
        "No text yields it: [ab] + [cd] would make it, but [bc] merges first. It ends as [a][bc][d].",
        "No text yields it: merging never makes two parts that together are this text.",
        "It stands for whatever has no piece, and is not built from its text.",
        "It was added to the model, and is not built from its text.",
    ]


# --- Why two models differ --------------------------------------------------------------------------


def toy(*merges: str, letters: str = "abcdeh ▁", prefix: bool = False, **more: Any) -> cpbpe.Tokenizer:
    """A model with these pieces, the best first, and letters."""
    types = dict.fromkeys(more.pop("whole", ()), PieceType.USER_DEFINED)
    types |= dict.fromkeys(more.pop("unused", ()), PieceType.UNUSED)
    rows = [cpbpe.Piece(b"<unk>", 0, PieceType.UNKNOWN), cpbpe.Piece(b"<s>", 0, PieceType.CONTROL)]
    texts = [*merges, *(letter for letter in letters if letter not in merges)]
    rows += [
        cpbpe.Piece(text.encode(), -rank, types.get(text, PieceType.NORMAL))
        for rank, text in enumerate(texts)
    ]
    normalizer = cpbpe.NormalizerSpec("", more.pop("charsmap", b""), prefix, False, True)
    return cpbpe.Tokenizer.from_spec(cpbpe.ModelSpec(cpbpe.Pieces.of(rows), normalizer, **more))


def bytes_model(*merges: bytes, pattern: str = "gpt2", whole: bool = False) -> cpbpe.Tokenizer:
    texts = [*(bytes([byte]) for byte in range(256)), *merges]
    ranks = {text: rank for rank, text in enumerate(texts)}
    return cpbpe.Tokenizer.from_spec(spec_of(ranks, PATTERNS[pattern], whole=whole))


def why(node: Node, one: cpbpe.Tokenizer, other: cpbpe.Tokenizer, text: str, **options: Any) -> Any:
    node.load(one.to_bytes(), "A")
    node.load(other.to_bytes(), "B")
    script = "return cpbpe.why([models.A, models.B], text, 0, 1, options)"
    answer = node.ask(script, text=text, options=options)
    said = [
        [part["name"] if isinstance(part, dict) else part for part in parts] for parts in answer["sentences"]
    ]
    marks = [
        b"".join(side["steps"][step - 1]["made"][0] for step in side["marked"]) for side in answer["sides"]
    ]
    return " ".join(map(sentence, said)), *marks


NFC = zoo.parse(zoo.model("defaults")).normalizer_spec.precompiled_charsmap
CASES: dict[str, tuple[cpbpe.Tokenizer, cpbpe.Tokenizer, str, str, bytes, bytes]] = {
    "no piece": (
        *(toy("ab", "abc"), toy("ab"), "abc"),
        *("A merges [ab] + [c] (score -1); B has no piece [abc].", b"abc", b""),
    ),
    "another order": (
        *(toy("ab", "bc"), toy("bc", "ab"), "abc"),
        "A merges [a] + [b] (score 0) before [b] + [c] (score -1); B merges [b] + [c] (score 0) first.",
        *(b"ab", b"bc"),
    ),
    "a merge in between": (
        *(toy("ab", "de", "abde"), toy("bd", "ab", "de", "abde"), "abde"),
        *("B merges [b] + [d] (score 0) before [a] + [b] (score -1); A has no piece [bd].", b"ab", b"bd"),
    ),
    "pattern": (
        *(toy("12", letters="12"), bytes_model(b"12", pattern="qwen2"), "12"),
        *(
            "B cuts the text between [1] and [2] before merging: its pattern splits digits. A does not.",
            b"",
            b"",
        ),
    ),
    "whole": (
        *(toy("ab"), bytes_model(b"abe", whole=True), "abe"),
        *("B takes the chunk [abe] whole, because it is a piece; A has no such piece.", b"", b""),
    ),
    "user-defined": (
        *(toy("ab", "cd", whole=["ab"]), toy("bc"), "abcd"),
        *("A finds [ab] whole before anything merges, because it is user-defined; B does not.", b"", b""),
    ),
    "dummy prefix": (
        *(toy("▁a", "ab", prefix=True), toy("ab"), "ab"),
        "A puts a space in front of the text (a dummy prefix), and B does not."
        " Without it they would cut it alike.",
        *(b"", b""),
    ),
    "normalizers": (
        *(toy("e\u0301", letters="e\u0301"), toy("é", charsmap=NFC), "e\u0301"),
        *("Their normalizers differ: A sees [e\u0301] (U+0065 U+0301), and B sees [é] (U+00E9).", b"", b""),
    ),
    "unused": (
        *(toy("ab"), toy("ab", unused=["ab"]), "ab"),
        *("B makes [ab], too, but it is UNUSED, and taken apart again.", b"", b""),
    ),
    "bytes": (
        *(toy("é"), bytes_model(), "é"),
        *("A begins with characters; B begins with bytes, and does not merge all of [é].", b"", b""),
    ),
    "unknown": (
        *(toy("a"), toy("xy", letters="xyz"), "xz"),
        *("A has no piece for any of [x][z]: together they become [<unk>].", b"", b""),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_why_models_differ(name: str, node: Node) -> None:
    """Each reason has a sentence, and the steps that show it are marked, whichever model comes first."""
    one, other, text, said, first, second = CASES[name]
    assert why(node, one, other, text) == (said, first, second)
    swapped = why(node, other, one, text)
    assert swapped[1:] == (second, first)
    assert len(swapped[0]) == len(said)


def test_why_of_models_that_do_not_differ(node: Node) -> None:
    one = toy("ab")
    assert why(node, one, one, "abc") == ("", b"", b"")
    special = toy("bc").with_special_tokens(["ab"])
    said = "A takes [ab] as a special token; for B it is text."
    assert why(node, special, one, "abc", special=True)[0] == said


PAIRS = [
    ("tokenizer.model.v1", "whole"),
    ("llama", "user-defined-llama"),
    ("defaults", "unused"),
    ("suffix", "gpt2"),
]


@pytest.mark.parametrize("pair", tiers.some(PAIRS, PAIRS[:1]))
def test_why_always_has_an_answer(pair: tuple[str, str], node: Node) -> None:
    """Wherever two models differ, there is a sentence, and what is replayed are their tokens."""
    for name, model_name in zip("AB", pair, strict=True):
        node.load(tokenizer(model_name).to_bytes(), name)
    script = """
      const both = [models.A, models.B];
      const answers = both.map((model) => cpbpe.tokens(model, text, {}));
      return cpbpe.differing(both, answers, text).map(([begin, end]) => cpbpe.why(both, text, begin, end));
    """
    for text in [*TEXTS, "".join(TEXTS), " ".join(TEXTS)]:
        for answer in node.ask(script, text=text):
            (parts,) = answer["sentences"]
            assert parts
            assert all(len(side["roots"]) == len(side["ids"]) for side in answer["sides"])


# --- Why one model cuts two texts differently -------------------------------------------------------


def two_texts(node: Node, tok: cpbpe.Tokenizer, one: str, other: str) -> Any:
    return asked(node, "return cpbpe.whyTexts(model, given)", tok, [one, other])


def test_why_two_texts_are_cut_differently(node: Node) -> None:
    """What comes before can decide what is merged after it. The sentence names the first other step."""
    tok = toy("ab", "bc", "cd")
    answer = two_texts(node, tok, "abcd", "xbcd")
    assert not answer["isAlike"]
    assert answer["parts"] == [[0, 4], [0, 4]]
    assert (
        sentence(answer["sentence"])
        == "At once, in the first text [ab] comes about, and in the second text [bc] comes about."
    )
    assert [side["marked"] for side in answer["sides"]] == [[1], [1]]
    alike = two_texts(node, tok, "ab cd", "ab cd cd")
    assert alike["isAlike"]
    later = two_texts(node, toy("ee", "ab", "bc", "cd"), "abcdee", "xbcdee")
    assert sentence(later["sentence"]).startswith("At once, in the first text [ab]")
    # Steps in an end that both share are the same steps, however far it is from the beginning.
    longer = two_texts(node, toy("cd", "ab", "bcd"), "abcd", "bcd")
    assert (
        sentence(longer["sentence"])
        == "The first step is the same. Then in the first text [ab] comes about, and in the second text [bcd]"
        " comes about."
    )
    assert [side["marked"] for side in longer["sides"]] == [[2], [2]]
    # One text can do all that the other does, and more.
    more = two_texts(node, toy("cd", "bcd", "abcd"), "abcd", "bcd")
    assert sentence(more["sentence"]).endswith(
        "in the first text [abcd] comes about, and the second text has no step of its own."
    )
    assert [side["marked"] for side in more["sides"]] == [[3], []]


@pytest.mark.parametrize("name", tiers.some(NAMES, SOME))
def test_outside_of_the_parts_both_texts_are_cut_alike(node: Node, name: str) -> None:
    tok = tokenizer(name)
    for one, other in zip(TEXTS, [text.replace("a", "e", 1) + "s" for text in TEXTS], strict=True):
        answer = two_texts(node, tok, one, other)
        (begin, end), (same, last) = answer["parts"]
        assert begin == same
        assert one[:begin] == other[:begin]
        assert one[end:] == other[last:]
        # All steps before the first that only one of them has are the same.
        steps = [[step["made"] for step in side["steps"]] for side in answer["sides"]]
        firsts = [marked[0] - 1 for side in answer["sides"] if (marked := side["marked"])]
        same = min(firsts, default=0)
        assert steps[0][:same] == steps[1][:same]
        for text, side, (first, to) in zip((one, other), answer["sides"], answer["parts"], strict=True):
            tokens = tok.align(text)
            inside = [
                id
                for id, (at, until) in zip(tokens.ids, tokens.offsets, strict=True)
                if first <= at and until <= to
            ]
            assert side["ids"] == inside
        cuts = [{end for _, end in tok.align(text).offsets} for text in (one, other)]
        assert {place for place in cuts[0] if place < begin} == {place for place in cuts[1] if place < begin}
