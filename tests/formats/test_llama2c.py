"""llama2.c's tokenizer.bin: written as its exporter does, and encoded with as its program does."""

import io
import random
import struct
from dataclasses import replace
from pathlib import Path

import pytest

import cpbpe
from cpbpe import ModelSpec, Piece, Pieces, PieceType, Tokenizer
from cpbpe.model.formats import registry
from cpbpe.model.formats.llama2c import read, write
from cpbpe.model.spec import NormalizerSpec
from tests.support import budget, gguf_files, tiers, zoo
from tests.support.json_files import spec_of, texts_for

RULES = NormalizerSpec("identity", remove_extra_whitespaces=False)
EXACT = ["tokenizer.model.v1", "llama"]


def small(*rows: tuple[str, float, PieceType], rules: NormalizerSpec = RULES) -> ModelSpec:
    more = [Piece(text.encode(), score, type) for text, score, type in rows]
    return ModelSpec(Pieces.of([*gguf_files.ROWS, *more]), rules, byte_fallback=True)


def exported(spec: ModelSpec) -> bytes:
    """What llama2.c's exporter writes: bos and eos as lines, spaces for U+2581."""
    texts = []
    for id, piece in enumerate(spec.pieces):
        line = {spec.bos_id: b"\n<s>\n", spec.eos_id: b"\n</s>\n"}.get(id, piece.text)
        texts.append((line.replace("▁".encode(), b" "), piece.score))
    longest = max(len(text) for text, _ in texts)
    records = [struct.pack("<fI", score, len(text)) + text for text, score in texts]
    return struct.pack("<I", longest) + b"".join(records)


class Program:
    """What llama2.c does with a file, written anew from a description: not fast, but simple."""

    def __init__(self, data: bytes):
        self.texts, self.scores, at = [], [], 4
        while at < len(data):
            score, size = struct.unpack_from("<fI", data, at)
            self.texts.append(data[at + 8 : at + 8 + size])
            self.scores.append(score)
            at += 8 + size
        self.ids = {text: id for id, text in enumerate(self.texts)}

    def encode(self, text: str) -> list[int]:
        """A space in front, bytes for unknown characters; then the best pair is merged, again and again."""
        ids = [self.ids[b" "]] if text else []
        for character in text:
            raw = character.encode()
            ids += [self.ids[raw]] if raw in self.ids else [byte + 3 for byte in raw]
        while True:
            best, place, made = -1e10, -1, -1
            for at in range(len(ids) - 1):
                id = self.ids.get(self.texts[ids[at]] + self.texts[ids[at + 1]])
                if id is not None and self.scores[id] > best:
                    best, place, made = self.scores[id], at, id
            if place < 0:
                return ids
            ids[place : place + 2] = [made]


@pytest.mark.parametrize("name", tiers.some(EXACT, ["llama"]))
def test_models_that_are_exact(name: str) -> None:
    spec = spec_of(name)
    made = write(spec)
    assert made.data == exported(spec)
    assert made.differences == ()
    again = read(made.data).spec
    assert again.pieces == spec.pieces
    assert again.normalizer == replace(spec.normalizer, name="identity")
    assert (again.bos_id, again.eos_id, again.byte_fallback) == (1, 2, True)
    program, tok = Program(made.data), Tokenizer.from_bytes(made.data)
    for text in texts_for(spec, budget.examples(200), budget.SEED):
        if "▁" not in text and "\0" not in text:
            assert program.encode(text[:60]) == tok.encode(text[:60]), text


@pytest.mark.parametrize(
    "name", tiers.some([name for name in zoo.NAMES if name not in EXACT], ["special", "unused"])
)
def test_models_of_the_zoo(name: str) -> None:
    """Exact, or refused."""
    spec = spec_of(name)
    try:
        made = write(spec)
    except cpbpe.ConversionError:
        return
    program, tok = Program(made.data), Tokenizer.from_spec(spec)
    for text in texts_for(spec, budget.examples(100), budget.SEED):
        if "▁" not in text and "\0" not in text:
            assert program.encode(text[:60]) == tok.encode(text[:60]), text


def test_random_models() -> None:
    """What is written without differences gives the same ids, whatever the model."""
    chance = random.Random(budget.SEED)
    exact = 0
    for _ in range(budget.examples(60)):
        rows = {}
        for _ in range(chance.randrange(1, 12)):
            text = "".join(chance.choices("ab▁<s>", k=chance.randrange(1, 5)))
            type = chance.choice([PieceType.NORMAL] * 9 + [PieceType.UNUSED, PieceType.CONTROL])
            rows[text] = (text, -float(chance.randrange(9)), type)
        known = {row[0].decode() for row in gguf_files.ROWS}
        spec = small(*(row for text, row in rows.items() if text not in known))
        try:
            made = write(spec)
        except cpbpe.ConversionError:
            continue
        exact += 1
        program, tok = Program(made.data), Tokenizer.from_spec(spec)
        for _ in range(40):
            text = "".join(chance.choices("ab <s>é", k=chance.randrange(9)))
            assert program.encode(text) == tok.encode(text), (text, spec.pieces[259:])
    assert exact > 5


def test_the_first_form_of_the_file() -> None:
    """BYTE pieces were the bytes themselves at first, as characters."""
    spec = small()
    old = exported(spec)
    for byte in range(256):
        raw = chr(byte).encode()
        old = old.replace(b"\6\0\0\0<0x%02X>" % byte, struct.pack("<I", len(raw)) + raw)
    assert old != exported(spec)
    assert read(old).spec.pieces == spec.pieces


def test_it_is_recognized(tmp_path: object) -> None:
    tok = Tokenizer.from_spec(small())
    tok.save(f"{tmp_path}/tokenizer.bin")
    again = cpbpe.load(f"{tmp_path}/tokenizer.bin")
    assert again.encode("ab  a☃") == tok.encode("ab  a☃")
    assert again.spec.carried.options == {"add_bos": True}
    for other in (
        b"",
        b"\5\0\0\0",
        zoo.model("llama"),
        struct.pack("<7i", 288, 768, 6, 6, 6, 32000, 256) * 50,
        bytes(100),
    ):
        assert not registry.is_llama2c(other)
    assert registry.format_of(exported(small())).name == "tokenizer.bin"


DIFFERENT = {
    "user-defined": (small(("ba", 0, PieceType.USER_DEFINED)), "does not keep USER_DEFINED pieces whole"),
    "control": (small(("bb", 0, PieceType.CONTROL)), "finds the CONTROL piece 'bb'"),
    "unused": (small(("aba", -1, PieceType.UNUSED)), "finds the UNUSED piece 'aba'"),
    "no prefix": (small(rules=replace(RULES, add_dummy_prefix=False)), "always puts a space in front"),
    "spaces removed": (small(rules=NormalizerSpec("identity")), "keeps all spaces"),
    "a space": (small(("a b", -5, PieceType.NORMAL)), "has a space, which becomes U+2581"),
    "a low score": (small(("ba", -1e11, PieceType.NORMAL)), "never merges to 'ba'"),
    "a byte inside": (
        small(("<0x41>b", -1, PieceType.NORMAL)),
        "merges the bytes of unknown characters to '<0x41>b'",
    ),
    "an orphan": (
        small(("ca", -1, PieceType.NORMAL)),
        "does not merge characters that are no pieces, as in 'ca'",
    ),
    "other bytes": (
        ModelSpec(Pieces.of([*gguf_files.ROWS[3:], *gguf_files.ROWS[:3]]), RULES, byte_fallback=True),
        "takes the pieces 3 to 258 for the bytes",
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_is_refused(name: str) -> None:
    spec, reason = DIFFERENT[name]
    with pytest.raises(
        cpbpe.ConversionError, match=r"no tokenizer\.bin that llama2\.c uses exactly"
    ) as caught:
        write(spec)
    assert any(reason in difference for difference, _ in caught.value.differences)
    assert write(spec, allow_differences=True).differences


def test_two_pieces_of_one_text() -> None:
    spec = small((" a", -5, PieceType.NORMAL))
    with pytest.raises(
        cpbpe.ConversionError, match=r"two pieces would be the same text in a tokenizer\.bin, ' a'"
    ):
        write(spec, allow_differences=True)


def test_no_bos(tmp_path: Path) -> None:
    """There is nothing to put in front of texts, and a note says so; other formats can be written."""
    data = exported(small()).replace(b"\n<s>\n", b"\n<x>\n")
    (tmp_path / "tokenizer.bin").write_bytes(data)
    assert read(data).spec.carried.options == {}
    done = cpbpe.convert(tmp_path / "tokenizer.bin", tmp_path / "tokenizer.json", allow_differences=True)
    assert "there is no <s>" in "; ".join(done.notes)


GOOD = exported(small())
BROKEN = {
    "cut off": (GOOD[:-3], "it is truncated: piece 263, at byte"),
    "cut off in a number": (GOOD[:9], "it is truncated: piece 0, at byte 4"),
    "a piece that is too long": (
        struct.pack("<I", 5) + GOOD[4:],
        "piece 1 has 5 bytes, and the longest should have",
    ),
    "no bytes": (
        struct.pack("<IfI", 5, 0, 5) + b"<unk>",
        "its BYTE pieces, <0x00> to <0xFF>, are not all there",
    ),
    "not a number": (
        GOOD[:4] + struct.pack("<f", float("nan")) + GOOD[8:],
        "the score of piece 0 is no number",
    ),
    "a piece twice": (GOOD + GOOD[-9:], "occurs twice"),
    "empty": (b"", "it has 0 bytes"),
    "only a header": (GOOD[:4], "it has no pieces"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files(name: str) -> None:
    data, message = BROKEN[name]
    if name == "a piece that is too long":
        data, message = struct.pack("<I", 4) + GOOD[4:], "piece 0 has 5 bytes, and the longest should have 4"
    with pytest.raises(cpbpe.ModelError) as caught:
        read(data)
    assert message in str(caught.value)
    if name in ("cut off", "no bytes", "a piece twice"):
        with pytest.raises(cpbpe.ModelError, match=r"tokenizer\.bin|occurs twice"):
            cpbpe.load(io.BytesIO(data))
