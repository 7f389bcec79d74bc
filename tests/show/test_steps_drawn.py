"""Steps as they are printed and drawn, and the tree of their merges, for both families of models."""

from functools import cache

import pytest
from hypothesis import given

import cpbpe
from cpbpe import reference
from cpbpe.model.spec import ModelSpec, Piece, Pieces, PieceType
from cpbpe.reference.step_by_step import MAX_BYTES, MAX_STEPS, Node, roots_of
from tests.bytes.models import model
from tests.show.test_drawn import any_text
from tests.support import zoo
from tests.support.budget import quick
from tests.support.drawings import Page

MODELS = ["llama", "defaults", "unused-ambiguous", "broken-pieces", "bytes"]


@cache
def spec(name: str) -> ModelSpec:
    return model(whole=False) if name == "bytes" else cpbpe.Tokenizer.from_bytes(zoo.model(name)).spec


def leaves(node: Node) -> bytes:
    return b"".join(map(leaves, node.parts)) if node.parts else node.symbol


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_any_text(name: str) -> None:
    @quick(10, 15)
    @given(any_text)
    def found(text: str) -> None:
        text = text[:60]
        steps = reference.steps(spec(name), text)
        made = list(steps)
        assert made == list(steps)  # made again
        # 1. The tree ends in the symbols that are left, and each is made of its parts.
        roots = roots_of(made)
        assert tuple(root.symbol for root in roots) == made[-1].symbols
        merges = {step.begin: step for step in made if step.kind == "merge"}
        assert any(root.parts for root in roots) <= bool(merges)
        for root in roots:
            waiting = [root]
            while waiting:
                node = waiting.pop()
                if node.parts:
                    assert b"".join(part.symbol for part in node.parts) == node.symbol == leaves(node)
                    assert made[node.number].kind == "merge"
                    assert made[node.number].made == (node.symbol,)
                waiting += node.parts
        lines = steps.tree().split("\n") if roots else []
        assert [int(line.split()[-1]) for line in lines if line[0] not in "├└│ "] == [*made[-1].ids]
        # 2. What is drawn.
        page = Page(steps._repr_html_())
        assert [row[1].decode() for row in page.rows[1:] if row[1] != b"step"][-1] == "end"
        for step in made:
            row = Page(step._repr_html_()).rows[1]
            assert row[1].decode() == step.kind
            assert "\x1b" not in str(step)
            if len(step.symbols) <= 60 and name != "bytes":  # (which has a sign where chunks begin)
                drawn = row[2].replace(b" ", b"").replace("◌".encode(), b"")
                symbols = b"".join(step.symbols).replace(b" ", b"").replace("◌".encode(), b"")
                assert drawn == symbols

    found()


def test_the_tree_of_a_model_by_hand() -> None:
    texts = ["ab", "ra", "abra", "▁", "a", "b", "r", "c"]
    pieces = [Piece(text.encode(), -rank) for rank, text in enumerate(texts)]
    toy = ModelSpec(Pieces.of([Piece(b"<unk>", 0, PieceType.UNKNOWN), *pieces]))
    assert reference.steps(toy, "abrac!").tree() == (
        "▁        4\nabra     3\n├─ ab    merge 1\n│  ├─ a\n│  └─ b\n└─ ra    merge 2\n   ├─ r\n   └─ a\n"
        "c        8\n<unk>    0"
    )
    unused = ModelSpec(
        Pieces.of(
            [Piece(b"<unk>", 0, PieceType.UNKNOWN)]
            + [
                Piece(text.encode(), -rank, PieceType.UNUSED if text == "abra" else PieceType.NORMAL)
                for rank, text in enumerate(texts)
            ]
        )
    )
    assert [line for line in reference.steps(unused, "abra").tree().split("\n") if "─" not in line] == [
        "▁     4",
        "ab    1",
        "ra    2",
    ]


def test_a_chunk_taken_whole_has_no_parts() -> None:
    steps = reference.steps(model(), "the")
    assert [step.kind for step in steps] == ["begin", "whole", "end"]
    assert len(steps.tree().split("\n")) == 1


def test_printing_all_steps() -> None:
    steps = reference.steps(spec("llama"), "the cat")
    assert str(steps) == repr(steps) == "\n".join(map(str, steps))


def test_models_cannot_control_the_terminal() -> None:
    piece = "\x1b[2J\u202e<b>"
    made = ModelSpec(
        Pieces.of(
            [
                Piece(b"<unk>", 0, PieceType.UNKNOWN),
                Piece(piece.encode(), 0, PieceType.USER_DEFINED),
                Piece(b"a", -1),
                Piece("▁".encode(), -2),
            ]
        )
    )
    steps = reference.steps(made, f"a{piece}")
    assert "‹U+001B›[2J‹U+202E›<b>" in str(steps)
    assert not {"\x1b", "\u202e"} & set(str(steps) + steps.tree() + steps._repr_html_())
    Page(steps._repr_html_())


def test_long_texts() -> None:
    steps = reference.steps(spec("llama"), "a" * (MAX_BYTES + 1))
    for drawn in (str(steps), steps.tree(), Page(steps._repr_html_()).text):
        assert drawn.startswith(f"(a text of {MAX_BYTES + 1} bytes; those of up to {MAX_BYTES} are drawn")
    text = ("the cat and " * 40)[:MAX_BYTES]
    steps = reference.steps(spec("llama"), text)
    count = len(list(steps))
    assert count > MAX_STEPS
    lines = str(steps).split("\n")
    assert len(lines) == MAX_STEPS + 1
    assert lines[-2] == f"... {count - MAX_STEPS} more steps; `for step in steps: print(step)` prints all"
    assert lines[-1].startswith("end ")
    html = steps._repr_html_()
    assert lines[-2].replace("`", "") in Page(html).text.replace("`", "")
    assert len(html) < 1_000_000


def test_deep_trees() -> None:
    """A piece that grows by one character at a time."""
    pieces = [Piece(b"a" * size, -size) for size in range(1, 300)]
    deep = ModelSpec(Pieces.of([Piece(b"<unk>", 0, PieceType.UNKNOWN), *pieces, Piece("▁".encode(), -999)]))
    steps = reference.steps(deep, "a" * 299)
    assert len(steps.tree().split("\n")) > 300
    Page(steps._repr_html_())
