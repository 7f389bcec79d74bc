"""`tok.inspect()`: what it counts, lists and says of settings, for models of every kind."""

import json
import time

import pytest

import cpbpe
from cpbpe.model.formats import model_pb2, sentencepiece
from cpbpe.model.spec import ModelSpec, Piece, Pieces, PieceType
from cpbpe.text.drawn import Lines, fitted, shown, width
from cpbpe.text.scripts import script
from cpbpe.tools.reports import draw_settings, meaning_of
from tests.bytes.models import model
from tests.support import zoo
from tests.support.tokenizers import make

MODELS = [
    *("tokenizer.model.v1", "llama", "defaults", "nmt_nfkc_cf", "tsv", "suffix-keep-spaces", "special"),
    *("no-unk", "denormalizer", "unused", "odd-scores", "many-pieces", "broken-pieces", "control-characters"),
    *("user-defined-specials", "charsmap-broken-user-defined"),
    *zoo.OTHERS,
]
TEXTS = (PieceType.NORMAL, PieceType.USER_DEFINED, PieceType.UNUSED)


def page(seen: cpbpe.Inspection, name: str, columns: int = 100, drawing: str = "") -> list[str]:
    on = Lines(columns)
    seen.draw(on, name, drawing=drawing.splitlines())
    return on.lines


def settings_lines(seen: cpbpe.Inspection, name: str, columns: int = 100) -> list[str]:
    on = Lines(columns)
    draw_settings(seen, on, name)
    return on.lines


def spec_of(*texts: str | bytes, type: PieceType = PieceType.NORMAL) -> ModelSpec:
    pieces = [Piece(b"<unk>", 0, PieceType.UNKNOWN)]
    pieces += [Piece(text if isinstance(text, bytes) else text.encode(), 0, type) for text in texts]
    return ModelSpec(Pieces.of(pieces))


@pytest.mark.parametrize("name", MODELS)
def test_counts(name: str) -> None:
    """What is counted in arrays, counted again one piece at a time."""
    tok = cpbpe.Tokenizer.from_bytes(zoo.model(name))
    seen = tok.inspect()
    lengths: dict[int, int] = {}
    scripts: dict[str, int] = {}
    types: dict[str, int] = {}
    for piece in tok.facts.spec.pieces:
        types[piece.type.name] = types.get(piece.type.name, 0) + 1
        if piece.type in TEXTS:
            text = piece.text.decode(errors="replace")
            lengths[len(text)] = lengths.get(len(text), 0) + 1
            found = {script(character) for character in text} - {"Common", "Inherited"}
            key = "several" if len(found) > 1 else "".join(found) or "Common"
            scripts[key] = scripts.get(key, 0) + 1
    assert seen.types == types
    assert seen.lengths == lengths
    assert seen.scripts == scripts
    assert sum(types.values()) == seen.pieces == tok.vocab.piece_count
    assert seen.longest[0] == max(
        ((id, piece) for id, piece in seen.longest), key=lambda item: (len(item[1]), -item[0])
    )
    assert len(seen.longest[0][1]) == max(lengths)
    assert seen.special_ids == {
        "unk": tok.unk_id,
        "bos": tok.bos_id,
        "eos": tok.eos_id,
        "pad": tok.pad_id,
    }
    assert seen.settings == tok.settings == tok.spec.settings
    assert list(seen.sample.ids) == tok.encode(seen.sample.text)
    assert seen.sample.decoded == tok.decode(list(seen.sample.ids))
    assert json.loads(seen.to_json()) == seen.to_dict()
    for columns in (40, 60, 100):
        drawing = tok.show(seen.sample.text).text(columns=columns - 2)
        lines = [
            *page(seen, "m.model", columns, drawing=drawing),
            *settings_lines(seen, "m.model", columns),
        ]
        assert all(width(line) <= columns for line in lines)
        assert all(line.replace("\u200d", "").isprintable() for line in lines)  # (which is within emojis)


def test_losses_and_added_tokens(engine: str) -> None:
    tok = make(zoo.model("defaults"), engine).with_special_tokens(["<|a|>"])
    seen = tok.inspect(sample="Ａ  b")
    assert seen.lossless is False
    assert [loss.reason for loss in seen.losses] == [loss.reason for loss in tok.is_lossless().reasons]
    assert seen.added_tokens == {"<|a|>": 600}
    assert (seen.pieces, seen.vocab_size) == (600, 601)
    assert seen.sample.decoded == "A b"
    text = "\n".join(page(seen, "m"))
    for part in (
        "no, some texts do not come back, in ",
        "; ids up to 600",
        "<|a|> 600",
        "decoded       A b",
    ):
        assert part in text
    assert seen.to_dict()["losses"][0]["example"] == seen.losses[0].example


def test_a_page_has_35_lines() -> None:
    toks = [cpbpe.Tokenizer.from_bytes(zoo.model(name)) for name in (*zoo.REAL, "llama", "defaults", "tsv")]
    toks.append(cpbpe.Tokenizer.from_spec(model()))
    for tok in toks:
        seen = tok.inspect()
        lines = page(seen, "m", 80, drawing=tok.show(seen.sample.text).text(columns=78))
        assert len(lines) <= 35, "\n".join(lines)
        counts = [line for line in lines if "%" in line]
        assert len(counts) == len(set(counts)) <= 10
        share = max(float(line.split("%")[0].split()[-1]) for line in counts)
        assert all(len(line.split()[-1]) == 30 for line in counts if f" {share}%" in line)


@pytest.mark.parametrize(
    ("whole", "row"),
    [(True, "taken whole, even if no merges make it"), (False, "merged like any other text")],
)
def test_what_is_a_piece_by_itself(whole: bool, row: str) -> None:
    seen = cpbpe.Tokenizer.from_spec(model(whole=whole)).inspect()
    assert f"  a chunk       that is a piece is {row}" in page(seen, "a model")


def test_bars() -> None:
    made = Lines(40)
    made.bars({"one": 600, "two": 300, "three": 1, "four": 0, "five": 90, "six": 9})
    assert made.lines == [
        "  one             600   60.0%  ███████",
        "  two             300   30.0%  ███▌",
        "  three             1    0.1%",
        "  four              0    0.0%",
        "  2 others         99    9.9%  █▏",
    ]


def test_models_with_nothing() -> None:
    seen = cpbpe.Tokenizer.from_spec(ModelSpec(Pieces.of([Piece(b"<unk>", 0, PieceType.UNKNOWN)]))).inspect()
    assert (seen.lengths, seen.scripts, seen.longest) == ({}, {}, ())
    assert page(seen, "m")[0] == "m"
    seen = cpbpe.Tokenizer.from_spec(spec_of("a", b"\xe2\x96", "\u0301", "aя", "1")).inspect()
    assert seen.scripts == {"Common": 3, "several": 1, "Latin": 1}
    assert seen.lengths == {1: 4, 2: 1}


def test_hostile_texts_are_shown_safely() -> None:
    evil = "\x1b[2J\r\u202e\u2066\x01\x85\u2028\ue000"
    spec = spec_of(evil, "x" * 5000, type=PieceType.USER_DEFINED)
    settings = cpbpe.Settings(
        trainer={"model_prefix": evil, "input": [evil] * 1000, "unk_surface": "y" * 10**6}
    )
    data = sentencepiece.write(ModelSpec(spec.pieces, settings=settings))
    seen = cpbpe.Tokenizer.from_bytes(data).inspect(sample=evil)
    lines = page(seen, evil, 60) + settings_lines(seen, evil, 60)
    assert all(line.isprintable() and width(line) <= 60 for line in lines)
    assert len(lines) < 500
    assert any("‹U+001B›[2J␍‹U+202E›‹U+2066›" in line for line in lines)
    assert shown("\u0301a") == "◌\u0301a"
    assert fitted("日本語日本語", 6) == "日本…"


def test_every_setting_has_a_meaning() -> None:
    for section, message in (
        ("trainer", model_pb2.TrainerSpec),
        ("normalizer", model_pb2.NormalizerSpec),
        ("denormalizer", model_pb2.NormalizerSpec),
    ):
        for field in message.DESCRIPTOR.fields:
            assert meaning_of(section, field.name), field.name
    assert meaning_of("trainer", "no such field") == ""


def test_a_large_model_is_quick() -> None:
    letters = "abcdefghijklmnopqrst"
    texts = [a + b + c + d for a in letters for b in letters for c in letters for d in letters]
    tok = cpbpe.Tokenizer.from_spec(spec_of(*letters, *texts))
    begun = time.process_time()
    seen = tok.inspect()
    assert seen.lengths == {1: 20, 4: 160000}
    assert time.process_time() - begun < 5  # it takes half a second on an idle machine
