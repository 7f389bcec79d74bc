"""Whatever the bytes of a file are: a model that works, or one of the two errors, with a message."""

import random
import warnings
from collections.abc import Callable

import pytest

import cpbpe
from cpbpe import ModelSpec, Pieces, PieceType, Tokenizer
from cpbpe.model.formats import gguf, llama2c, registry, vocab_text
from cpbpe.model.formats.gguf.container import ARRAY, BOOL, INT32, STRING, UINT8, UINT16, UINT32
from cpbpe.model.spec import NormalizerSpec
from tests.bytes.models import made
from tests.support import budget, charsmaps, gguf_files
from tests.support.mutations import mutated

TEXT = "Hi <s> ▁ab a\0b☃"


def model() -> ModelSpec:
    rows = [*gguf_files.ROWS, ("▁▁".encode(), 0, PieceType.NORMAL), (b"~", -9, PieceType.UNUSED)]
    rules = NormalizerSpec("identity", remove_extra_whitespaces=False)
    return ModelSpec(Pieces.of(rows), rules, byte_fallback=True)


def gguf_seeds() -> list[bytes]:
    """Every kind of value, in every version; and a model without byte fallback, which is small."""
    rules = list(charsmaps.make({b"~": b"a"}))
    every = {
        "own.nested": ((ARRAY, (ARRAY, STRING)), [[b"a", b""], []]),
        "split.no": (UINT16, 0),
        "tokenizer.chat_template": (STRING, b"{{ x }}"),
        **gguf_files.tokenizer(precompiled_charsmap=((ARRAY, UINT8), rules), add_space_prefix=(BOOL, 0)),
    }
    small = [row for row in gguf_files.ROWS if row[2] != PieceType.BYTE]
    tiny = gguf_files.tokenizer([*small, (b" x", 0, PieceType.USER_DEFINED)], eot_token_id=(UINT32, 2))
    return [
        gguf_files.file(every),
        gguf_files.file(every, version=1),
        gguf_files.file(every, order=">"),
        *[gguf_files.file(tiny, version=version) for version in (1, 2, 3)],
        gguf.write(model(), allow_differences=True).data,
    ]


def llama2c_seeds() -> list[bytes]:
    written = llama2c.write(model(), allow_differences=True).data
    old = written
    for byte in range(256):
        old = old.replace(
            b"\6\0\0\0<0x%02X>" % byte, len(chr(byte).encode()).to_bytes(4, "little") + chr(byte).encode()
        )
    return [written, old]


def vocab_seeds() -> list[bytes]:
    written = vocab_text.write(model(), allow_differences=True).data
    return [written, written.replace(b"\n", b"\r\n"), b"<unk>\t0\n<s>\t0\n<x>\t0\na\t-0\nb\t-1.5\n\n\t-2\n"]


def byte_level_seeds() -> list[bytes]:
    """Every kind of token, in both forms; and what is written."""
    tokens, merges = ["he", "ll", "hell", "Ġx", "[PAD260]", "<|b|>"], ["h e", "l l", "he ll", "Ġ x"]
    types = (ARRAY, INT32), [*[1] * 260, 5, 4, 3]
    plain = gguf_files.byte_level(tokens, merges, token_type=types, bos_token_id=(UINT32, 261))
    more = {**plain, "tokenizer.ggml.pre": (STRING, b"qwen2"), "cpbpe.unicode_form": (STRING, b"NFD")}
    return [
        gguf_files.file(plain),
        gguf_files.file(more, version=1),
        gguf_files.file(more, order=">"),
        gguf.write(made("gpt2", 20)).data,
    ]


SEEDS: dict[str, Callable[[], list[bytes]]] = {
    "gguf": gguf_seeds,
    "gguf, byte-level": byte_level_seeds,
    "tokenizer.bin": llama2c_seeds,
    "vocab": vocab_seeds,
}


@pytest.mark.parametrize("name", SEEDS)
def test_the_seeds_are_right(name: str) -> None:
    for data in SEEDS[name]():
        assert registry.format_of(data).name == name.partition(",")[0]
        assert check(data, name)


@pytest.mark.parametrize("name", SEEDS)
def test_anything_may_be_wrong(name: str) -> None:
    chance, seeds = random.Random(f"{budget.SEED} {name}"), SEEDS[name]()
    for _ in range(budget.examples(600)):
        check(mutated(chance, seeds), name)


def check(data: bytes, name: str) -> bool:
    """Whether data is a model. It is read as this format, and now and then as what it looks like."""
    message = refusal(
        lambda: Tokenizer.from_spec(
            registry.FORMATS[name.partition(",")[0]].read(data, allow_differences=True).spec
        )
    )
    assert message is None or 10 < len(message) < 700
    if len(data) % 10 == 0:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            refusal(lambda: Tokenizer.from_bytes(data))
    return message is None


def refusal(load: Callable[[], Tokenizer]) -> str | None:
    """The message of one of the two errors; None if there is a tokenizer, and it works."""
    try:
        tok = load()
    except (cpbpe.ModelError, cpbpe.ConversionError) as error:
        return str(error)
    tok.decode(tok.encode(TEXT))
    return None
