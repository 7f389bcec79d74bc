"""What the page asks about models: tokens, steps, trees, samples, search, and where two models differ."""

import json
from itertools import pairwise
from typing import Any

import pytest

import cpbpe
from cpbpe.reference import steps
from cpbpe.tools.answers import (
    MAX_FOUND,
    MAX_REPLAYED,
    MAX_SAMPLED,
    MAX_TEXT,
    Model,
    PageOptions,
    compared,
    differing,
    models_of,
    shown_text,
)
from cpbpe.view import app
from tests.bytes.models import made
from tests.support import tiers, zoo

TEXTS = ["Hello world", "", "🦙 e\u0301 क्षि\r\n\t<s>", "naïve  café שלום مرحبا", "\0\u202e\ud7ff𐀀 ½ ﬁ"]
BYTES = "byte-level"


def model(name: str) -> Model:
    if name == BYTES:
        return Model(name, cpbpe.Tokenizer.from_spec(made()))
    return Model(name, cpbpe.Tokenizer.from_bytes(zoo.model(name)))


NAMES = ["tokenizer.model.v1", "defaults", "user-defined-llama", "unused-ambiguous", BYTES]


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", tiers.some(NAMES, [NAMES[0], BYTES]))
def test_tokens(name: str) -> None:
    one = model(name)
    for text in TEXTS:
        encoding = one.encoding(text, PageOptions())
        answer = json.loads(json.dumps(one.tokens(encoding), allow_nan=False))
        assert answer["ids"] == one.tok.encode(text)
        spans = list(zip(answer["begins"], answer["ends"], strict=True))
        assert spans == one.tok.align(text).offsets
        assert set(answer["pieces"]) == {str(id) for id in answer["ids"]}
        assert answer["counts"] == {
            "tokens": len(answer["ids"]),
            "characters": len(text),
            "bytes": len(text.encode()),
        }
        # Where tokens are not shown together, what is shown of them makes up the text.
        groups = [at for at in range(len(spans)) if at not in answer["joined"]]
        ends = [spans[after - 1][1] for after in [*groups[1:], len(spans)]] if spans else []
        begins = [spans[first][0] for first in groups]
        assert all(end <= begin for end, begin in zip(ends, begins[1:], strict=False))


def test_characters_are_not_cut() -> None:
    """Of a cluster, and of a character of several tokens, all but the first belong to the token before."""
    one = model(BYTES)
    for text in ("a🦙b", "e\u0301x", "क्षि", "👨‍👩‍👧", "\r\n"):
        encoding = one.encoding(text, PageOptions())
        joined = set(one.tokens(encoding)["joined"])
        groups: list[bytes] = []
        for at, id in enumerate(encoding.ids):
            part = one.tok.facts.bytes_of(id)
            if at in joined:
                groups[-1] += part
            else:
                groups.append(part)
        assert b"".join(groups) == text.encode()
        for group in groups:
            group.decode()
        if text not in ("a🦙b", "e\u0301x"):
            assert len(groups) == 1


def test_a_dummy_prefix_of_its_own_is_not_a_part_of_a_character() -> None:
    one = model("tokenizer.model.v1")
    encoding = one.encoding("日本", PageOptions())
    assert encoding.pieces[0] == "▁"
    assert one.tokens(encoding)["joined"] == []


def test_options() -> None:
    one = model("tokenizer.model.v1")
    options = PageOptions.read({"special": True, "bos": True, "eos": True, "prefix": "off"})
    answer = one.tokens(one.encoding("<s>Hi", options))
    assert answer["ids"] == one.tok.encode(
        "<s>Hi", add_bos=True, add_eos=True, prefix_space=False, allowed_special="all"
    )
    assert answer["special"] == [1, 2]
    assert PageOptions.read(None) == PageOptions.read({}) == PageOptions()
    odd: list[object] = [[], {"bos": 1}, {"prefix": True}, {"prefix": "no"}, {"alpha": 1}, {"prefix": []}]
    for bad in odd:
        with pytest.raises(ValueError, match="option"):
            PageOptions.read(bad)


def test_an_option_that_one_model_cannot_serve() -> None:
    """The other model's tokens are there all the same."""
    answer = compared([model("tokenizer.model.v1"), model(BYTES)], "Hi", PageOptions(bos=True))
    assert answer["models"][0]["ids"] == [1, 15359]
    assert "bos" in answer["models"][1]["error"]
    assert answer["differing"] == []


# --- Where two models differ ----------------------------------------------------------------------


def by_hand(one: cpbpe.Encoding, other: cpbpe.Encoding) -> set[int]:
    """The characters in spans between common cuts that not both models leave uncut."""
    cuts = [{place for span in encoding.offsets for place in span} for encoding in (one, other)]
    common = sorted((cuts[0] & cuts[1]) | {0, len(one.text)})
    found: set[int] = set()
    for begin, end in pairwise(common):
        if any(begin < place < end for place in cuts[0] | cuts[1]):
            found |= set(range(begin, end))
    return found


@pytest.mark.parametrize("text", ["hello there", "the cat sat on the mat, naïve", "日本 don't", ""])
def test_differences(text: str) -> None:
    encodings = [model(name).encoding(text, PageOptions()) for name in ("tokenizer.model.v1", BYTES)]
    found = differing(encodings[0], encodings[1])
    assert found == sorted(found)
    assert all(before[1] < after[0] for before, after in pairwise(found))
    characters = {place for begin, end in found for place in range(begin, end)}
    assert by_hand(*encodings) <= characters
    # What is beyond: one character, of which the models make different numbers of tokens.
    more = "".join(text[place] for place in sorted(characters - by_hand(*encodings)))
    assert not more or not more.isascii()
    assert differing(encodings[0], encodings[0]) == []


def test_bos_is_no_difference() -> None:
    one = model("tokenizer.model.v1")
    plain, around = (one.encoding("Hi you", PageOptions(bos=bos, eos=bos)) for bos in (False, True))
    assert differing(plain, around) == []


# --- Steps ------------------------------------------------------------------------------------------


def replayed(answer: dict[str, Any]) -> list[str]:
    """The symbols at the end, as the page finds them."""
    symbols = list(answer["begin"])
    for step in answer["steps"]:
        symbols[step["begin"] : step["end"]] = step["made"]
    return symbols


@pytest.mark.parametrize("name", NAMES)
def test_steps(name: str) -> None:
    one = model(name)
    for text in ["Hello, the cat sat", "", "🦙 don't", "x" * 30]:
        answer = json.loads(json.dumps(one.steps(text, PageOptions()), allow_nan=False))
        assert answer["ids"] == one.tok.encode(text)
        assert len(replayed(answer)) == len(answer["ids"])
        kinds = [step.kind for step in steps(one.tok, text)]
        assert [step["kind"] for step in answer["steps"]] == kinds[1:-1]
        assert all(step["why"] for step in answer["steps"])


def test_steps_follow_the_dummy_prefix() -> None:
    one = model("tokenizer.model.v1")
    for prefix in (None, True, False):
        answer = one.steps("Hi", PageOptions(prefix=prefix))
        assert answer["ids"] == one.tok.encode("Hi", prefix_space=prefix)


def test_long_texts_are_neither_replayed_nor_sampled() -> None:
    one = model("llama")
    assert "ids" in one.steps("x" * MAX_REPLAYED, PageOptions())
    assert f"up to {MAX_REPLAYED}" in one.steps("x" * (MAX_REPLAYED + 1), PageOptions())["error"]
    assert "samples" in one.samples("x" * MAX_SAMPLED, PageOptions(), 0.1, 0)
    assert f"up to {MAX_SAMPLED:,}" in one.samples("x" * (MAX_SAMPLED + 1), PageOptions(), 0.1, 0)["error"]


def test_samples() -> None:
    one = model("tokenizer.model.v1")
    answer = one.samples("the weather", PageOptions(bos=True), 0.4, 5)
    assert [seed for seed, _ in answer["samples"]] == list(range(5, 13))
    for seed, ids in answer["samples"]:
        assert ids == one.tok.encode("the weather", add_bos=True, alpha=0.4, seed=seed)
        assert {str(id) for id in ids} <= set(answer["pieces"])
    assert len({tuple(ids) for _, ids in answer["samples"]}) > 3


# --- Trees ------------------------------------------------------------------------------------------


def leaves(node: list[Any]) -> str:
    text, _, _, children, _ = node
    assert "".join(child[0] for child in children) in ("", text)
    return "".join(map(leaves, children)) or text


@pytest.mark.parametrize("name", tiers.some(NAMES, NAMES))
def test_every_tree(name: str) -> None:
    """The leaves of a piece's tree are the piece, and the merges are those of `cpbpe inspect --piece`."""
    from cpbpe.tools.built import Builder

    one = model(name)
    builder = Builder(one.tok.spec)
    texts = one.tok.spec.pieces.texts
    size = one.tok.vocab.piece_count
    for id in range(0, size, max(1, size // 400)):
        answer = one.tree(id)
        json.dumps(answer, allow_nan=False)
        built = builder.merged(id)[0]
        assert answer["reachable"] == built.reachable
        if built.merges:
            if one.tok.facts.is_byte_level and not texts[id].isascii():
                assert len(answer["roots"]) <= len(texts[id])
            else:
                assert "".join(map(leaves, answer["roots"])) == texts[id].decode()
            numbers: list[int] = []
            waiting = list(answer["roots"])
            while waiting:
                node = waiting.pop()
                waiting += node[3]
                numbers += [node[4]] if node[3] else []
            assert sorted(numbers) == list(range(1, len(built.merges) + 1))


def test_a_tree_by_hand() -> None:
    answer = model("tokenizer.model.v1").tree(22557)
    (root,) = answer["roots"]
    assert (root[0], root[4]) == ("▁Hello", 5)
    assert [child[0] for child in root[3]] == ["▁H", "ello"]
    assert answer["reachable"]


def test_trees_of_what_is_not_merged() -> None:
    tok = cpbpe.Tokenizer.from_bytes(zoo.model("llama")).with_special_tokens(["<|end|>"])
    one = Model("m", tok)
    assert "added" in one.tree(tok.vocab_size - 1)["note"]
    assert "program inserts" in one.tree(1)["note"]
    for id in (-1, tok.vocab_size):
        with pytest.raises(ValueError, match=f"there is no id {id}"):
            one.tree(id)


# --- The search, and the page's models ------------------------------------------------------------


def test_search() -> None:
    one = model("tokenizer.model.v1")
    answer = one.search(" HELLO")
    assert [22557, one.piece(22557)] in answer["found"]
    assert answer["total"] == len(answer["found"])
    assert one.search("22557")["found"][0][0] == one.search("#22557")["found"][0][0] == 22557
    assert one.search("e")["total"] > len(one.search("e")["found"]) == MAX_FOUND
    assert one.search("e")["found"][0][1][0] == "e"
    assert one.search("")["total"] == one.search("(.*)+$")["total"] == 0
    assert all(" t" in piece[0].lower() for _, piece in model(BYTES).search(" t")["found"])
    added = Model("m", one.tok.with_special_tokens(["<|end|>"]))
    assert [piece[0] for _, piece in added.search("|END")["found"]] == ["<|end|>"]


def test_scores_that_json_has_not() -> None:
    spec = cpbpe.ModelSpec(
        cpbpe.Pieces.of(
            [
                cpbpe.Piece(b"<unk>", 0, cpbpe.PieceType.UNKNOWN),
                cpbpe.Piece(b"ab", float("inf")),
                cpbpe.Piece(b"a", float("nan")),
                cpbpe.Piece(b"b", float("-inf")),
            ]
        )
    )
    one = Model("odd", cpbpe.Tokenizer.from_spec(spec))
    answer = [one.tokens(one.encoding("ab a b", PageOptions())), one.tree(1), one.steps("ab", PageOptions())]
    assert '"inf"' in json.dumps(answer, allow_nan=False)


def test_names() -> None:
    tok = cpbpe.Tokenizer.from_bytes(zoo.model("llama"))
    found = models_of({"/home/someone/a.model": tok, "b/a.model": tok, "C:\\x\\c\\": tok, "/": tok})
    assert [one.name for one in found] == ["a.model", "a.model (2)", "c", "model"]
    assert [one.name for one in models_of([tok, tok])] == ["model 1", "model 2"]
    assert [one.name for one in models_of(tok)] == ["model 1"]
    with pytest.raises(ValueError, match="no model"):
        app([])
    with pytest.raises(TypeError, match=r"not str; cpbpe\.load"):
        app(["a.model"])  # type: ignore[list-item]


def test_texts() -> None:
    assert shown_text("a\ud800b\U0001f999") == "a\ufffdb\U0001f999"
    with pytest.raises(ValueError, match="2,000,001 bytes, and the page takes 2,000,000"):
        shown_text("x" * (MAX_TEXT + 1))
