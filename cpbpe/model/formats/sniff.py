"""Says what a file is that was taken for a model.

Asked only about data that did not parse, or about the beginning of a file before all of it is read;
`cpbpe.model.formats.sentencepiece` does the parsing.
"""

from __future__ import annotations

import binascii
import math
import re
import struct

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"PK\x03\x04", "it is a zip archive (PyTorch weights, perhaps); look for tokenizer.model beside it"),
    (b"\x1f\x8b", "it is compressed with gzip; decompress it first"),
    (b"\x28\xb5\x2f\xfd", "it is compressed with zstd; decompress it first"),
    (b"\xfd7zXZ\x00", "it is compressed with xz; decompress it first"),
    (b"version https://git-lfs", "it is a Git LFS pointer, not the file itself; 'git lfs pull' fetches that"),
)


PAIRS = (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))
"""Two files that are one model, see `gpt2`. Their names may have another part in front: `my-vocab.json`."""

CARRIED_TAG = b"\xaa\xae\x14"
"""How the field begins that says what is beside a model (number 41701)."""

_HEAD = 4096
_LOOKED_AT = 32
"""So many pieces are looked at to tell what a file is."""
_LONGEST_PIECE = 8000
# (These are compiled when they are needed: most files are none of these formats.)
_IDS = rb'\{\s*"(?:[^"\\]|\\.)*"\s*:\s*-?[0-9]+\s*,\s*"'
_NUMBER = rb"[-+]?(\d+(\.\d*)?([eE][-+]?\d+)?|inf|nan)"


def describe(data: bytes, complete: bool = True) -> str | None:
    r"""What `data` is, as the end of a sentence, or None if it is not known.

    With `complete=False` it is only the head of a file, and only what no model can begin with is recognized.

    >>> describe(b"PK\x03\x04" + bytes(20))[:19]
    'it is a zip archive'
    >>> describe(bytes([10, 14, 10, 5])) is None
    True
    """
    for magic, meaning in _MAGIC:
        if data.startswith(magic):
            return meaning
    if not complete:
        return None
    if data[8:9] == b"{" and int.from_bytes(data[:8], "little") < 1 << 32:
        return "it is a safetensors file (weights); look for tokenizer.model beside it"
    start = data.removeprefix(b"\xef\xbb\xbf").lstrip()[:256]
    if start[:1] in (b"{", b"["):
        return _describe_json(data)
    if start[:14].lower() == b"<!doctype html" or start[:5].lower() == b"<html":
        return "it is an HTML page, such as a download site shows for an error or a login"
    lines = _first_lines(data)
    if lines and all(len(line.split(b" ")) == 2 for line in lines):
        return (
            "it is a text of merges (merges.txt), one half of a byte-level model; "
            "load vocab.json, with merges.txt beside it"
        )
    return None


def is_tokenizer_json(data: bytes) -> bool:
    """Whether data is meant to be a tokenizer.json. (It may still be broken.)

    >>> is_tokenizer_json(b'{"version": "1.0", "added_tokens": []}'), is_tokenizer_json(b'{"a": 0}')
    (True, False)
    """
    begins_so = data[:64].removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"
    return begins_so and (b'"added_tokens"' in data or b'"pre_tokenizer"' in data)


def is_ids(data: bytes) -> bool:
    r"""Whether data begins as a file of ids (vocab.json, encoder.json): an object of numbers by name.

    >>> is_ids(b'{"!": 0, "\"": 1}'), is_ids(b'{"version": "1.0"}'), is_ids(b'{"a": 1.5}')
    (True, False, False)
    """
    head = data[:_HEAD].removeprefix(b"\xef\xbb\xbf").lstrip()
    return head.startswith(b"{") and re.match(_IDS, head) is not None


def is_merges(data: bytes) -> bool:
    r"""Whether data begins as a file of merges (merges.txt, vocab.bpe), with its version.

    >>> is_merges(b"#version: 0.2\nt h\n"), is_merges(b"t h\n")
    (True, False)
    """
    return b"#version" in data[:64].partition(b"\n")[0]


def is_gpt2(data: bytes) -> bool:
    """Whether data is one of these two files, or both."""
    return is_ids(data) or is_merges(data)


def is_minbpe(data: bytes) -> bool:
    r"""Whether data is meant to be a `.model` file of minbpe.

    >>> is_minbpe(b"minbpe v1\n\n0\n"), is_minbpe(b"\n\x0eminbpe")
    (True, False)
    """
    return data.startswith(b"minbpe v")


def is_tekken(data: bytes) -> bool:
    """Whether data is meant to be a tekken.json. (It may still be broken.)

    >>> is_tekken(b'{"config": {}, "vocab": [{"token_bytes": "AA=="}]}'), is_tekken(b'{"vocab": {}}')
    (True, False)
    """
    begins_so = data[:64].removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"
    return begins_so and b'"config"' in data and b'"token_bytes"' in data


def is_gguf(data: bytes) -> bool:
    """Whether data is meant to be a GGUF file.

    >>> is_gguf(b"GGUF" + bytes(20)), is_gguf(b"ggml")
    (True, False)
    """
    return data.startswith(b"GGUF")


def is_llama2c(data: bytes) -> bool:
    r"""Whether data looks like a `tokenizer.bin`: nothing marks one, so its first pieces must make sense.

    >>> is_llama2c(struct.pack("<IfI", 5, 0, 5) + b"<unk>"), is_llama2c(b"\x0a\x0e\x0a\x05<unk>\x15")
    (True, False)
    """
    longest = int.from_bytes(data[:4], "little")
    if not 0 < longest < _LONGEST_PIECE:
        return False
    at = 4
    for number in range(_LOOKED_AT):
        if at + 8 > len(data):
            return number > 0  # the end, or cut off
        score, size = struct.unpack_from("<fI", data, at)
        # Other files that begin with a small number have more of them where the score is: tiny fractions.
        if not math.isfinite(score) or 0 < abs(score) < 1e-30 or not 0 < size <= longest:
            return False
        at += 8 + size
    return True


def may_carry(data: bytes) -> bool:
    """Whether a file may have that field. (It is at the end, and Python is faster at searching backwards.)"""
    return data.rfind(CARRIED_TAG) >= 0


def is_vocab(data: bytes) -> bool:
    r"""Whether data looks like a `.vocab`: the first lines are a text, a tab and a number. One may be wrong.

    >>> is_vocab("<unk>\t0\n▁t\t-0\nhe\t-1\n".encode()), is_vocab(b"IQ== 0\n")
    (True, False)
    """
    lines = data[:_HEAD].removeprefix(b"\xef\xbb\xbf").splitlines()
    if len(data) > _HEAD:
        lines = lines[:-1]
    given = [line for line in lines[:_LOOKED_AT] if line.strip()]
    right = list(map(_is_vocab_line, given))
    return bool(right) and right[0] and right.count(False) <= len(right) // 8


def _is_vocab_line(line: bytes) -> bool:
    _, tab, number = line.rpartition(b"\t")
    return tab != b"" and number[:1] in b"+-0123456789in" and re.fullmatch(_NUMBER, number) is not None


def is_ranks(data: bytes) -> bool:
    r"""Whether data is meant to be a file of ranks (.tiktoken). (It may still be broken.)

    >>> is_ranks(b"IQ== 0\nIg== 1\n"), is_ranks(b"t h\n")
    (True, False)
    """
    lines = _first_lines(data)
    return bool(lines) and all(map(_is_rank_line, lines))


def _first_lines(data: bytes) -> list[bytes]:
    """The first lines that are not empty; the last one, which may be cut off, only if it is the only one."""
    lines = data[:_HEAD].split(b"\n", 20)[:20]
    return [line.rstrip(b"\r") for line in (lines[:-1] if len(lines) > 1 else lines) if line.strip()]


def _describe_json(data: bytes) -> str | None:
    import json

    try:
        content = json.loads(data)
    except RecursionError:
        return "it begins like JSON, and is nested too deeply to be read"
    except ValueError:
        return None if b"\0" in data else "it begins like JSON, but is not valid JSON either"
    keys = content.keys() if isinstance(content, dict) else ()
    if "model" in keys and ("added_tokens" in keys or "pre_tokenizer" in keys):
        return "it is JSON, a tokenizer.json of the tokenizers library; cpbpe.load reads it"
    if "tokenizer_class" in keys:
        return "it is JSON, a tokenizer_config.json; look for tokenizer.model beside it"
    if "config" in keys and "vocab" in keys:
        return "it is JSON, perhaps a tekken.json (byte-level BPE), but one without pieces"
    return "it is JSON, and a model is not; look for tokenizer.model beside it"


def _is_rank_line(line: bytes) -> bool:
    import base64

    token, _, rank = line.partition(b" ")
    try:
        base64.b64decode(token, validate=True)
    except binascii.Error:
        return False
    return rank.isdigit()
