"""Steps of byte-level models end with the ids that `ByteLevel` gives, and print as they should."""

import random

from hypothesis import given

import cpbpe
from cpbpe import reference
from cpbpe.model.spec import ModelSpec, Piece, Pieces, PieceType, SplitSpec
from cpbpe.reference.byte_level import PATTERNS, ByteLevel, count_chunks, learn
from tests.bytes.making import any_text, decoded, known, texts
from tests.support import corpus, wheels
from tests.support.budget import examples, quick

LEARNED = learn(count_chunks(corpus.lines(400), PATTERNS["cl100k"]), 300)
TOK = ByteLevel(LEARNED.ranks(), PATTERNS["cl100k"], whole=False)


def replayed(model: ByteLevel | ModelSpec, text: str) -> list[int]:
    """The ids at the end of the steps, each of which begins where the one before it ends."""
    symbols: tuple[bytes, ...] | None = None
    step = None
    for step in reference.steps(model, text):
        assert symbols is None or step.symbols == symbols
        symbols = step.after
        assert b"".join(symbols) == text.encode()
        assert str(step)
    assert step is not None
    assert step.kind == "end"
    return list(step.ids)


def test_steps_lead_to_the_ids() -> None:
    for text in texts(examples(200), decoded(LEARNED.pieces)):
        assert replayed(TOK, text) == TOK.encode(text)


@quick(3, 30)
@given(any_text)
def test_steps_of_any_text_lead_to_its_ids(text: str) -> None:
    assert replayed(TOK, text) == TOK.encode(text)


def test_steps_of_tekken() -> None:
    ranks, pattern = wheels.tekken()
    tok = ByteLevel(ranks, pattern)
    lines = [known(line)[:80] for line in corpus.lines()]
    for line in random.Random(1).sample(lines, examples(40)):
        assert replayed(tok, line) == tok.encode(line)


def test_steps_of_a_model_as_a_value() -> None:
    """The ids of its pieces need not be their ranks, and it may have pieces of other types."""
    pieces = [(text, -rank) for text, rank in TOK.ranks.items()]
    random.Random(1).shuffle(pieces)
    control = Piece(b"<e>", 0, PieceType.CONTROL)
    spec = ModelSpec(
        Pieces.of([control, *(Piece(text, score) for text, score in pieces)]),
        normalizer=cpbpe.NormalizerSpec(
            add_dummy_prefix=False, remove_extra_whitespaces=False, escape_whitespaces=False
        ),
        alphabet="bytes",
        splitter=SplitSpec(PATTERNS["cl100k"], "cl100k"),
    )
    new = {TOK.ranks[text]: id for id, (text, _) in enumerate(pieces, 1)}
    for text in texts(examples(100), decoded(LEARNED.pieces)):
        assert replayed(spec, text) == [new[id] for id in TOK.encode(text)]


def test_printed_steps() -> None:
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"aa": 256, b"\xe4\xbd": 257, b"you": 258}
    tok = ByteLevel(ranks, PATTERNS["gpt2"])
    assert [str(step) for step in reference.steps(tok, "aaaa 你\n")] == [
        "begin    a a a a | ␣ ‹E4› ‹BD› ‹A0› | ⏎",
        "merge    [a a] a a | ␣ ‹E4› ‹BD› ‹A0› | ⏎ aa has the rank 256, the lowest, and is the leftmost; "
        "then aa 256, aa 256",
        "merge    aa [a a] | ␣ ‹E4› ‹BD› ‹A0› | ⏎ aa has the rank 256, and there is no other pair",
        "merge    aa aa | ␣ [‹E4› ‹BD›] ‹A0› | ⏎ ‹E4›‹BD› has the rank 257, and there is no other pair",
        "end      aa aa | ␣ ‹E4›‹BD› ‹A0› | ⏎ the ids are 256, 256, 32, 257, 160, 10",
    ]
    whole = list(reference.steps(tok, "you"))[1]
    assert whole.kind == "whole"
    assert str(whole) == "whole    [y o u]            you is a piece, so the chunk is taken whole"


def test_a_chunk_that_would_be_taken_whole_can_be_merged() -> None:
    tok = cpbpe.Tokenizer.from_bytes(wheels.content("cl100k"))
    assert [step.kind for step in reference.steps(tok, " egg")] == ["begin", "whole", "end"]
    merged = list(reference.steps(tok, " egg", whole=False))
    assert [step.kind for step in merged] == ["begin", "merge", "merge", "merge", "end"]
    assert list(merged[-1].ids) == tok.encode(" egg")
