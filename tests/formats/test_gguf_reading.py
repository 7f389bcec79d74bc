"""GGUF files of all kinds, right, broken and hostile: a model, or an error that says what is wrong."""

import io
import os
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO, cast

import pytest

import cpbpe
from cpbpe import Pieces, PieceType, Tokenizer
from cpbpe.model.formats.gguf import container, read
from cpbpe.model.formats.gguf.container import (
    ARRAY,
    BOOL,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    STRING,
    UINT8,
    UINT32,
)
from tests.support import zoo
from tests.support.gguf_files import ROWS, TEXTS, file, text, tokenizer

SIZE = len(ROWS)


def spec_of(**more: Any) -> cpbpe.ModelSpec:
    return read(file(tokenizer(**more))).spec


# --- What is read ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "order"), [(1, "<"), (2, "<"), (3, "<"), (3, ">"), (2, ">")])
def test_versions_and_orders_of_bytes(version: int, order: str) -> None:
    data = file(tokenizer(), version=version, order=order)
    assert read(data).spec.pieces == Pieces.of(ROWS)
    assert cpbpe.load(io.BytesIO(data + bytes(100))).encode("ab a") == [259, 263, 259]


def test_what_is_taken_if_the_file_does_not_say() -> None:
    """The same as in llama.cpp: a prefix, no spaces removed, bos but no eos around texts."""
    spec = spec_of(bos_token_id=None, eos_token_id=None, add_bos_token=None)
    assert (spec.normalizer.add_dummy_prefix, spec.normalizer.remove_extra_whitespaces) == (True, False)
    assert spec.carried.options == {"add_bos": True}
    assert spec.carried.roles == {"bos": "<s>", "eos": "</s>", "unk": "<unk>"}
    assert (spec.bos_id, spec.eos_id, spec.unk_id, spec.pad_id) == (1, 2, 0, None)
    assert spec.byte_fallback


def test_settings() -> None:
    spec = spec_of(
        add_space_prefix=(BOOL, 0),
        remove_extra_whitespaces=(BOOL, 1),
        add_bos_token=(BOOL, 0),
        add_eos_token=(BOOL, 1),
        padding_token_id=(INT32, 1),
        mask_token_id=(UINT32, 0xFFFFFFFF),
        middle_token_id=(INT64, 2),
        **{
            "tokenizer.chat_template": (STRING, b"a"),
            "tokenizer.chat_template.tool_use": (STRING, "é".encode()),
        },
    )
    assert (spec.normalizer.add_dummy_prefix, spec.normalizer.remove_extra_whitespaces) == (False, True)
    assert spec.carried.options == {"add_eos": True}
    assert spec.carried.roles == {
        "bos": "<s>",
        "eos": "</s>",
        "unk": "<unk>",
        "pad": "<s>",
        "fim_mid": "</s>",
    }
    assert spec.carried.chat_templates == {"default": "a", "tool_use": "é"}


def test_a_charsmap() -> None:
    from tests.support import charsmaps

    rules = charsmaps.make({b"~": b"a"})
    for type, content in (
        (UINT8, list(rules)),
        (container.INT8, list(struct.unpack(f"{len(rules)}b", rules))),
    ):
        spec = spec_of(precompiled_charsmap=((ARRAY, type), content))
        assert spec.normalizer.charsmap == rules
        assert cpbpe.Tokenizer.from_spec(spec).encode_pieces("~b") == ["▁a", "b"]


def test_what_converters_write() -> None:
    """Padding, tokens without a text, types that are missing or undefined."""
    rows = [
        *ROWS,
        (b"[PAD264]", -10000.0, PieceType.UNUSED),
        (b"", 0.0, PieceType.NORMAL),
        (b"", 0.0, PieceType.NORMAL),
    ]
    found = read(file(tokenizer(rows)))
    assert found.spec.pieces.texts[SIZE:] == (b"[PAD264]", b"[EMPTY_265]", b"[EMPTY_266]")
    assert "piece 265 has no text" in found.notes[0]
    undefined = [(row[0], row[1], row[2] if row[2] != 1 else 0) for row in ROWS]
    found = read(file(tokenizer(undefined)))
    assert found.spec.pieces == Pieces.of(ROWS)
    assert "5 pieces have no type" in found.notes[0]
    spaces = [*ROWS, (b"  ", 0.0, PieceType.USER_DEFINED)]
    found = read(file(tokenizer(spaces)))
    assert found.spec.pieces.texts[SIZE] == "▁▁".encode()
    assert "the spaces of the USER_DEFINED piece" in found.notes[0]


def test_without_types_they_are_told_by_names() -> None:
    data = file(tokenizer(token_type=None))
    found = read(data)
    assert found.spec.pieces == Pieces.of(ROWS)
    assert found.assumptions[0].startswith("the file has no tokenizer.ggml.token_type")
    with pytest.warns(UserWarning, match="no tokenizer.ggml.token_type") as warned:
        cpbpe.Tokenizer.from_bytes(data)
    assert warned[0].filename == __file__


def test_an_unknown_token_without_the_type() -> None:
    rows = [(b"<unk>", 0.0, 1), *ROWS[1:]]
    found = read(file(tokenizer(rows, unknown_token_id=(UINT32, 0))))
    assert found.spec.pieces == Pieces.of(ROWS)
    assert "'<unk>' gets it" in found.notes[0]
    assert read(file(tokenizer(rows))).spec.unknown_id is None


def test_several_unknown_pieces_none_of_which_is_named() -> None:
    """The first of them is the one; it was an error that there is none."""
    rows = [(b"<s>", 0.0, 3), (b"</s>", 0.0, 3), (b"<u>", 0.0, 2), (b"<v>", 0.0, 2), *ROWS[3:]]
    found = read(file(tokenizer(rows)))
    assert found.spec.unknown_id == 2
    assert found.spec.pieces.types[3] == PieceType.CONTROL
    assert "1 piece with the type UNKNOWN became CONTROL here, for example '<v>'" in found.notes[0]
    # One that is named is it, whatever types the others have.
    rows[0] = (b"<unk>", 0.0, 1)
    named = read(file(tokenizer(rows, unknown_token_id=(UINT32, 0))))
    assert named.spec.unknown_id == 0
    assert named.spec.pieces.types[2:4] == bytes([PieceType.CONTROL] * 2)


def test_an_id_that_is_none() -> None:
    found = read(file(tokenizer(eot_token_id=(UINT32, 999))))
    assert found.notes == (
        "tokenizer.ggml.eot_token_id is 999, which is the id of no piece; it is passed over",
    )


# --- Only the beginning is read ---------------------------------------------------------------------


class Counted(io.BytesIO):
    """A file that counts what is read."""

    count = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.count += len(data)
        return data


def test_weights_are_not_read(tmp_path: Path) -> None:
    """A file of 40 GB, of which only the first kilobytes exist, loads as fast as a small one."""
    path = tmp_path / "big.gguf"
    data = file(tokenizer())
    path.write_bytes(data)
    with path.open("r+b") as big:
        big.truncate(40 << 30)
    began = time.perf_counter()
    tok = cpbpe.load(path)
    assert time.perf_counter() - began < 2
    assert tok.encode("ab") == [259, 263]
    stream = Counted(data + bytes(50 << 20))
    assert cpbpe.load(stream).encode("ab") == [259, 263]
    assert stream.count < 3 << 20


def test_a_pipe() -> None:
    class Pipe(io.RawIOBase):
        data = file(tokenizer())

        def read(self, size: int = -1, /) -> bytes:
            part, self.data = self.data[:7], self.data[7:]
            return part

    assert cpbpe.load(cast(BinaryIO, Pipe())).encode("ab") == [259, 263]


def test_the_memory_that_a_hostile_file_needs(tmp_path: Path) -> None:
    """In a process that may have 1.5 GB: no number in a file makes anything large."""
    if sys.platform != "linux":
        return
    huge = [1 << 14, (1 << 32) - 1, (1 << 64) - 1]
    names: list[Path] = []
    for size in huge:
        bodies = [struct.pack("<IQ", STRING, size)]
        bodies += [struct.pack("<IIQ", ARRAY, type, size) for type in (STRING, FLOAT32, ARRAY)]
        for body in bodies:
            names.append(tmp_path / f"{len(names)}.gguf")
            names[-1].write_bytes(
                b"GGUF" + struct.pack("<IQQ", 3, 0, 2) + text(b"tokenizer.ggml.tokens") + body
            )
            os.truncate(names[-1], 10 << 30)
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (1536 << 20,) * 2)\n"
        "import cpbpe\n"
        "for name in sys.argv[1:]:\n"
        "    try: cpbpe.load(name)\n"
        "    except cpbpe.ModelError: continue\n"
        "    raise SystemExit(name)\n"
    )
    command = [sys.executable, "-c", code, *map(str, names)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


# --- Errors ---------------------------------------------------------------------------------------

V = tokenizer()
BROKEN: dict[str, tuple[bytes, str]] = {
    "cut in the header": (b"GGUF\x03\0\0", "it is truncated: the header needs the bytes up to 8, and the file ends after 7"),
    "cut in the counts": (file(V)[:20], "it is truncated: the header"),
    "cut in a key": (file(V)[:30], "it is truncated: the key of value 1 of 9"),
    "cut in a value": (file(V)[:3000], "it is truncated: the value of 'tokenizer.ggml.tokens'"),
    "version 4": (file(V, version=4), "its version is 4, and cpbpe knows the versions 1, 2 and 3"),
    "version 0": (b"GGUF" + bytes(60), "its version is 0"),
    "too many values": (file(V, count=1 << 60), "it should hold 1,152,921,504,606,846,976 values"),
    "a key that is not UTF-8": (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text(b"\xff"), "is b'\\xff', which is not UTF-8"),
    "a key twice": (file({"a": (BOOL, 1)}, count=2) + file({"a": (BOOL, 1)})[24:], "the key 'a' occurs twice"),
    "an unknown type": (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text(b"a") + struct.pack("<I", 13), "the value of 'a' has the type 13, which GGUF does not have (0 to 12)"),
    "an array of an unknown type": (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text(b"a") + struct.pack("<IIQ", 9, 77, 1), "has the type 77"),
    "a bool of 2": (file(tokenizer(add_bos_token=(BOOL, 2))), "is a bool with the number 2"),
    "nested arrays": (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text(b"a") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 50, "the value of 'a' is nested too deeply"),
    "no tokenizer": (file({"general.architecture": (STRING, b"clip")}), "it holds no tokenizer (its architecture is 'clip'): there is no tokenizer.ggml.model"),
    "a long name": (file({"general.architecture": (STRING, b"clip" * 999)}), "(its architecture is 'clipclip"),
    "nothing at all": (file({}), "it holds no tokenizer: there is no"),
    "the second part": (file({"split.no": (container.UINT16, 1), "split.count": (container.UINT16, 5)}), "it is part 2 of a model in 5 files, and the tokenizer is in the first"),
    "bert": (file(tokenizer(model=(STRING, b"bert"))), "WordPiece"),
    "t5": (file(tokenizer(model=(STRING, b"t5"))), "Unigram"),
    "rwkv": (file(tokenizer(model=(STRING, b"rwkv"))), "RWKV"),
    "something new": (file(tokenizer(model=(STRING, b"new"))), "tokenizer.ggml.model is 'new'; cpbpe reads SentencePiece BPE, which is 'llama' there, and byte-level BPE, which is 'gpt2'"),
    "no_vocab": (file(tokenizer(model=(STRING, b"no_vocab"))), "it holds no tokenizer: tokenizer.ggml.model is 'no_vocab'"),
    "a model that is a number": (file(tokenizer(model=(UINT32, 5))), "tokenizer.ggml.model must be a string, and is uint32"),
    "no tokens": (file(tokenizer(tokens=None)), "there is no tokenizer.ggml.tokens"),
    "empty tokens": (file(tokenizer([])), "tokenizer.ggml.tokens is empty"),
    "tokens as numbers": (file(tokenizer(tokens=((ARRAY, INT32), [1]))), "tokenizer.ggml.tokens must be an array of string, and is array of int32"),
    "no scores": (file(tokenizer(scores=None)), "it has no scores (tokenizer.ggml.scores), which say what is merged first"),
    "too few scores": (file(tokenizer(scores=((ARRAY, FLOAT32), [1.0]))), f"tokenizer.ggml.scores has 1 values, and there are {SIZE} pieces"),
    "too few types": (file(tokenizer(token_type=((ARRAY, INT32), [1]))), "tokenizer.ggml.token_type has 1 values"),
    "a type of 7": (file(tokenizer([*ROWS, (b"x", 0, 7)])), f"tokenizer.ggml.token_type[{SIZE}] is 7, and types are 1 to 6"),
    "types as fractions": (file(tokenizer(token_type=((ARRAY, FLOAT64), [1.0]))), "must be an array of int8, and is array of float64"),
    "a flag as a number": (file(tokenizer(add_space_prefix=(UINT32, 1))), "tokenizer.ggml.add_space_prefix must be a bool, and is uint32"),
    "an id as text": (file(tokenizer(eos_token_id=(STRING, b"2"))), "tokenizer.ggml.eos_token_id must be an integer, and is string"),
    "a piece twice": (file(tokenizer([*ROWS, ROWS[-1]])), "piece 264, 'b', occurs twice: it is also piece 263"),
    "missing bytes": (file(tokenizer([row for row in ROWS if row[0] != b"<0x41>"])), "1 of the 256 BYTE pieces are missing: <0x41>"),
    "a charsmap that is none": (file(tokenizer(precompiled_charsmap=((ARRAY, UINT8), [1, 2, 3]))), "normalizer_spec"),
    "arrays of arrays": (file(tokenizer(tokens=((ARRAY, (ARRAY, UINT8)), [[1, 2], []]))), "must be an array of string, and is array of array"),
    "arrays of texts": (file(tokenizer(scores=((ARRAY, TEXTS), [[b"a"], []]))), "tokenizer.ggml.scores must be an array of float32, and is array of array"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_the_error_says_what_is_wrong(name: str, tmp_path: Path) -> None:
    data, message = BROKEN[name]
    with pytest.raises(cpbpe.ModelError) as caught:
        cpbpe.Tokenizer.from_bytes(data)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 400
    path = tmp_path / "m.gguf"
    path.write_bytes(data)
    with pytest.raises(cpbpe.ModelError) as again:
        cpbpe.load(path)
    assert str(again.value) == f"{path}: {caught.value}"


def test_nested_arrays_are_passed_over() -> None:
    nested = {"own.nested": ((ARRAY, (ARRAY, (ARRAY, STRING))), [[[b"a", b""], []], []]), **tokenizer()}
    assert read(file(nested)).spec.pieces == Pieces.of(ROWS)


def test_cut_anywhere() -> None:
    data = file(tokenizer())
    for end in [*range(200), *range(200, len(data) - 60, 37), *range(len(data) - 60, len(data))]:
        with pytest.raises(cpbpe.ModelError):
            read(data[:end])


def test_a_folder_of_weights(tmp_path: Path) -> None:
    tok = Tokenizer.from_bytes(zoo.model("llama"))
    tok.save(tmp_path / "small.gguf")
    (tmp_path / "README.md").write_text("a model")
    assert cpbpe.load(tmp_path).encode("abra cadabra") == tok.encode("abra cadabra")
    assert cpbpe.convert(tmp_path, tmp_path / "again.json").is_exact
    (tmp_path / "again.json").unlink()
    tok.save(tmp_path / "large.gguf")
    with pytest.raises(FileNotFoundError, match=r"several GGUF files: large.gguf, small.gguf; give the path"):
        cpbpe.load(tmp_path)
    tok.save(tmp_path / "tokenizer.model")
    assert cpbpe.load(tmp_path) == tok
