"""tekken.json: read as mistral-common reads it, written so that it reads it, and refused with the place."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mistral_common.tokens.tokenizers.tekken import Tekkenizer

import cpbpe
from cpbpe.model.formats import tekken
from cpbpe.text.split_patterns import PATTERNS
from tests.bytes.making import CLASSES, texts
from tests.bytes.models import model, ranks
from tests.split.patterns import KIMI
from tests.support.budget import MUCH, examples
from tests.support.zoo import real_path

REAL = ("tekken_240718.json", "tekken_240911.json")


def content(**changes: Any) -> dict[str, Any]:
    """A small file."""
    multi = sorted((rank, piece) for piece, rank in ranks().items() if len(piece) > 1)
    pieces = [bytes([byte]) for byte in range(256)] + [piece for _, piece in multi[:150]]
    names = ["<unk>", "<s>", "</s>", "<pad>"]
    made: dict[str, Any] = {
        "config": {
            "pattern": PATTERNS["tekken"],
            "num_vocab_tokens": len(pieces),
            "default_vocab_size": 400,
            "default_num_special_tokens": 10,
            "version": "v13",
        },
        "vocab": tekken_rows(pieces),
        "special_tokens": [
            {"rank": id, "token_str": name, "is_control": True} for id, name in enumerate(names)
        ],
    }
    for place, value in changes.items():
        part, _, name = place.rpartition("__")
        (made[part] if part else made)[name] = value
    return made


def tekken_rows(pieces: list[bytes]) -> list[dict[str, Any]]:
    given = [*(cpbpe.Piece(bytes([byte]), -byte) for byte in range(256))]
    given += (cpbpe.Piece(piece, -rank) for rank, piece in enumerate(pieces[256:], 256))
    spec = replace(model("tekken"), pieces=cpbpe.Pieces.of(given))
    rows: list[dict[str, Any]] = json.loads(tekken.write(spec).data)["vocab"]
    return rows


def file(**changes: Any) -> bytes:
    return json.dumps(content(**changes)).encode()


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL if MUCH else REAL[-1:])
def test_real_files(name: str, tmp_path: Path) -> None:
    tok = cpbpe.load(real_path(name))
    assert (len(tok), tok.unk_id, tok.bos_id, tok.eos_id, tok.pad_id) == (131072, None, 1, 2, 11)
    theirs = Tekkenizer.from_file(real_path(name))
    for text in texts(examples(200), CLASSES):
        ids = theirs.encode(text, bos=True, eos=True)
        assert tok.encode(text, add_bos=True, add_eos=True) == ids
        assert tok.decode(ids) == theirs.decode(ids)
    for id in range(0, len(tok), 401):
        assert tok.decode([id]) == theirs.decode([id])
    tok.save(tmp_path / "tekken.json")
    again = cpbpe.load(tmp_path)
    assert again.spec.pieces == tok.spec.pieces
    assert again.encode("Hello [INST]", allowed_special="all") == tok.encode(
        "Hello [INST]", allowed_special="all"
    )
    written = Tekkenizer.from_file(tmp_path / "tekken.json")
    assert written.encode("Hello", bos=True, eos=True) == theirs.encode("Hello", bos=True, eos=True)
    assert written.get_special_token("[INST]") == 3


@pytest.mark.parametrize("pattern", [PATTERNS["tekken"], KIMI], ids=["tekken", "kimi"])
def test_a_small_file(pattern: str, tmp_path: Path) -> None:
    path = tmp_path / "tekken_small.json"
    path.write_bytes(file(config__pattern=pattern))
    tok, theirs = cpbpe.load(path), Tekkenizer.from_file(path)
    assert len(tok) == theirs.n_words == 400
    assert tok.vocab[9] == "<SPECIAL_9>"
    for text in texts(examples(200), CLASSES):
        assert tok.encode(text) == theirs.encode(text, bos=False, eos=False)
    tok.save(tmp_path / "my.model")
    assert cpbpe.load(tmp_path / "my.model") == tok


def test_notes() -> None:
    notes = " ".join(tekken.read(file(image={"a": 1})).notes)
    for part in ("v13", "the last 16 entries", "image is not kept"):
        assert part in notes
    assert "leaves out" not in notes
    shown = content()
    shown["special_tokens"][3]["is_control"] = False
    assert "'<pad>'" in " ".join(tekken.read(json.dumps(shown).encode()).notes)


def test_what_differs_from_mistral_common(tmp_path: Path) -> None:
    path = tmp_path / "tekken_small.json"
    path.write_bytes(file(config__pattern=r"\p{L}+|\s"))
    tok, theirs = cpbpe.load(path), Tekkenizer.from_file(path)
    assert tok.encode("a.") == [*theirs.encode("a.", bos=False, eos=False), 10 + ord(".")]
    assert tok.decode([10 + 0xC3, 1, 10 + 0xA9]) == "é"
    assert theirs.decode([10 + 0xC3, 1, 10 + 0xA9]) == "\ufffd\ufffd"
    for done in (cpbpe.convert(path, tmp_path / "a.model"), cpbpe.convert(path, tmp_path / "tekken.json")):
        assert "text that its pattern leaves out" in " ".join(done.notes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda made: made.update(own=1), "it has own, which no known version has"),
        (lambda made: made["config"].update(own=1), "it has config.own"),
        (lambda made: made["config"].update(version="v99"), 'its version is "v99", and those that are known'),
        (lambda made: made["config"].update(default_vocab_size=10**6), "its vocab must have 999990 entries"),
        (lambda made: made["config"].update(default_vocab_size=-1), "default_vocab_size must be a number"),
        (lambda made: made["config"].update(default_num_special_tokens=500), "of 400 ids 500 are special"),
        (lambda made: made["config"].update(pattern=""), "its pattern must be a regular expression"),
        (lambda made: made["config"].update(pattern="(a"), "a group is not closed"),
        (lambda made: made.pop("special_tokens"), "no special_tokens, which files of version v13 have"),
        (lambda made: made["special_tokens"].reverse(), r"rank of special_tokens\[0\] must be 0, not 3"),
        (lambda made: made["special_tokens"][1].update(token_str="<unk>"), "'<unk>' occurs twice"),
        (lambda made: made["special_tokens"][1].update(token_str="\ud800"), "half of a surrogate pair"),
        (lambda made: made["special_tokens"][1].update(token_str="a"), "occurs twice"),
        (lambda made: made["vocab"][300].update(rank=301), r"rank of vocab\[300\] must be 300"),
        (lambda made: made["vocab"][300].update(token_bytes="?"), r"vocab\[300\] are not base64"),
        (lambda made: made["vocab"][300].update(token_bytes=""), r"vocab\[300\] must be a piece"),
        (lambda made: made["vocab"][3].update(token_bytes="AA=="), r"vocab\[3\] must be the byte 3"),
        (lambda made: made["vocab"][300].update(token_str="no"), "is not what its bytes say"),
        (lambda made: made["vocab"][300].pop("rank"), r"vocab\[300\] must have rank, token_bytes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_refused(change: Callable[[Any], object], message: str) -> None:
    made = content()
    change(made)
    with pytest.raises(cpbpe.ModelError, match=message):
        cpbpe.Tokenizer.from_bytes(json.dumps(made).encode())


def test_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(cpbpe.ConversionError, match="come before the pieces"):
        tekken.write(model("tekken"))
    tok = cpbpe.Tokenizer.from_bytes(file())
    with pytest.raises(cpbpe.ConversionError, match="come before the pieces"):
        tok.with_special_tokens(["<|new|>"]).save(tmp_path / "tekken.json")
    pieces = list(tok.spec.pieces)
    pieces[-1], pieces[-2] = pieces[-2], pieces[-1]
    swapped = replace(tok.spec, pieces=cpbpe.Pieces.of(pieces), file=None)
    with pytest.raises(cpbpe.ConversionError, match="does not merge after those before it"):
        tekken.write(swapped)
    pieces[10], pieces[11] = pieces[11], pieces[10]
    with pytest.raises(cpbpe.ConversionError, match="bytes from 0 to 255"):
        tekken.write(replace(tok.spec, pieces=cpbpe.Pieces.of(pieces), file=None))
