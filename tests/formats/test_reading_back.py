"""Every file is read again before anyone gets it: a writer that says something else is found out."""

from dataclasses import replace
from typing import Any

import pytest

import cpbpe
from cpbpe import ModelSpec, Pieces, PieceType
from cpbpe.model.formats import registry
from cpbpe.model.formats.values import Written
from cpbpe.model.spec import Carried, NormalizerSpec, SplitSpec
from tests.bytes import models
from tests.support import gguf_files

RULES = NormalizerSpec("identity", remove_extra_whitespaces=False)
SPEC = ModelSpec(
    Pieces.of(gguf_files.ROWS),
    RULES,
    byte_fallback=True,
    carried=Carried({"add_bos": True}, {}, {"default": "x"}),
)


def written(format: str, spec: ModelSpec) -> Written:
    """A file as the format's own module writes it."""
    return registry.FORMATS[format].write(spec)


def check(format: str, made: Written, spec: ModelSpec) -> None:
    registry.FORMATS[format].check(spec, made)


OTHER: dict[str, ModelSpec] = {
    "another text": replace(
        SPEC, pieces=Pieces.of([*gguf_files.ROWS[:-1], (b"c", -4, gguf_files.ROWS[-1][2])])
    ),
    "another score": replace(
        SPEC, pieces=Pieces.of([*gguf_files.ROWS[:-1], (b"b", -5, gguf_files.ROWS[-1][2])])
    ),
    "one piece less": replace(SPEC, pieces=Pieces.of(gguf_files.ROWS[:-1])),
    "no prefix": replace(SPEC, normalizer=replace(RULES, add_dummy_prefix=False)),
    "no template": replace(SPEC, carried=Carried({"add_bos": True})),
    "no bos": replace(SPEC, carried=Carried({}, {}, {"default": "x"})),
}
CANNOT_SAY: dict[str, set[str]] = {
    "tokenizer.bin": {"no template", "no bos"},
    "vocab": {"no template", "no bos"},
    "tokenizer.json": {"another score", "no prefix", "no template", "no bos"},
}


OF_BYTES = ("tiktoken", "gpt2", "minbpe", "tekken.json")
OF_CHARACTERS = [name for name in registry.FORMATS if name not in OF_BYTES]


@pytest.mark.parametrize("format", registry.FORMATS.values())
def test_every_row_is_complete(format: registry.Format) -> None:
    module = format.imported()
    assert all(callable(getattr(module, name)) for name in ("read", "write", "read_back"))
    assert not format.has_files or callable(module.files)
    assert not format.has_remarks or callable(module.remarks)


@pytest.mark.parametrize("format", OF_CHARACTERS)
def test_what_was_meant(format: str) -> None:
    check(format, written(format, SPEC), SPEC)


@pytest.mark.parametrize("format", OF_CHARACTERS)
@pytest.mark.parametrize("other", OTHER)
def test_something_else(format: str, other: str) -> None:
    made = written(format, SPEC)
    if other in CANNOT_SAY.get(format, ()):
        check(format, made, OTHER[other])
        return
    with pytest.raises(cpbpe.ConversionError, match="nothing was written: the file was read again, and"):
        check(format, made, OTHER[other])


@pytest.mark.parametrize("format", ["gguf", "tokenizer.bin", "model"])
def test_a_file_that_cannot_be_read(format: str) -> None:
    made = written(format, SPEC)
    with pytest.raises(cpbpe.ConversionError, match="it cannot be read: "):
        check(format, replace(made, data=made.data[:50]), SPEC)


def test_a_file_that_no_difference_allows() -> None:
    """Without byte fallback there are differences, which one can allow, and a file that is no model."""
    spec = replace(SPEC, pieces=Pieces.of([row for row in gguf_files.ROWS if row[2] != PieceType.BYTE]))
    spec = replace(spec, byte_fallback=False, carried=Carried())
    with pytest.raises(cpbpe.ConversionError, match=r"BYTE pieces.*, are not all there.*made from$"):
        registry.FORMATS["tokenizer.bin"].write(spec, allow_differences=True)


def test_bytes_that_no_text_has() -> None:
    """Files of ranks need not have them; GPT-2's files have a letter for each."""
    with pytest.raises(cpbpe.ConversionError, match="an id for each of the 256 bytes, and 13 are missing"):
        registry.GPT2.write(replace(models.lacking(), whole=False), allow_differences=True)


def test_ranks() -> None:
    spec = models.model()
    made = written("tiktoken", spec)
    check("tiktoken", made, spec)
    pieces = [*spec.pieces]
    last = max(id for id, piece in enumerate(pieces) if piece.type == PieceType.NORMAL)
    fewer = replace(spec, pieces=Pieces.of([*pieces[:last], *pieces[last + 1 :]]))
    pieces[last] = pieces[last]._replace(text=b"zzzz")
    changed = replace(spec, pieces=Pieces.of(pieces))
    for other in (fewer, changed):
        with pytest.raises(cpbpe.ConversionError, match="its ranks are not the same"):
            check("tiktoken", made, other)


def test_pairs() -> None:
    spec = models.made()
    made = written("gpt2", spec)
    check("gpt2", made, spec)
    pieces = [*spec.pieces]
    pieces[-2] = pieces[-2]._replace(text=b"zzzz")
    for other in (replace(spec, pieces=Pieces.of(pieces)), replace(spec, pieces=Pieces.of(pieces[:-1]))):
        with pytest.raises(cpbpe.ConversionError, match="its pieces are not the same"):
            check("gpt2", made, other)
    with pytest.raises(cpbpe.ConversionError, match="its special tokens are not the same"):
        check("gpt2", made, replace(spec, added=((b"<|far|>", 900),)))


def test_tekken() -> None:
    pieces = [
        (b"<unk>", 0, PieceType.CONTROL),
        *((bytes([byte]), -byte, PieceType.NORMAL) for byte in range(256)),
        (b"ab", -256, PieceType.NORMAL),
    ]
    spec = replace(models.model(), pieces=Pieces.of(pieces), added=())
    made = written("tekken.json", spec)
    check("tekken.json", made, spec)
    with pytest.raises(cpbpe.ConversionError, match="its pieces are not the same"):
        check("tekken.json", made, replace(spec, pieces=Pieces.of(pieces[:-1])))
    with pytest.raises(cpbpe.ConversionError, match="its pattern is not the same"):
        check("tekken.json", made, replace(spec, splitter=SplitSpec(r"\s+")))


def test_nothing_is_written(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from cpbpe.model.formats import gguf

    right = gguf.write

    def wrong(spec: ModelSpec, *, allow_differences: bool = False) -> Written:
        return right(replace(spec, carried=Carried()), allow_differences=allow_differences)

    monkeypatch.setattr(gguf, "write", wrong)
    tok = cpbpe.Tokenizer.from_spec(SPEC)
    with pytest.raises(cpbpe.ConversionError, match="what it says beside the model is not the same"):
        tok.save(tmp_path / "m.gguf")
    assert [*tmp_path.iterdir()] == []
