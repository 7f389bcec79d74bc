"""Reads files of ranks from where tiktoken keeps its downloads. cpbpe itself downloads nothing."""

from __future__ import annotations

import json
import os
import re
import tempfile
from base64 import b64decode
from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha1, sha256
from pathlib import Path

from cpbpe.lazy import importing
from cpbpe.text.utf8 import from_letters, to_letters

_BYTES = [bytes([byte]) for byte in range(256)]


def check_hash(data: bytes, expected_hash: str) -> bool:
    """Whether the data has this SHA-256."""
    return sha256(data).hexdigest() == expected_hash


def read_file(blobpath: str) -> bytes:
    """The bytes of a file on this machine."""
    if "://" in blobpath:
        raise FileNotFoundError(f"cpbpe downloads nothing; {_fetch(blobpath, Path(blobpath).name)}")
    return Path(blobpath).read_bytes()


def read_file_cached(blobpath: str, expected_hash: str | None = None) -> bytes:
    """The bytes of a file at a path, or of a URL's file in the folder where tiktoken keeps its downloads.

    The folder is what TIKTOKEN_CACHE_DIR or DATA_GYM_CACHE_DIR says, else `data-gym-cache` among the
    temporary files. In it, a file may be named by the SHA-1 of its URL, as tiktoken does, or by its own name.
    """
    if "://" not in blobpath:
        return _checked(Path(blobpath).read_bytes(), blobpath, expected_hash)
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if folder is None:
        folder = os.path.join(tempfile.gettempdir(), "data-gym-cache")
    if not folder:
        raise FileNotFoundError(
            f"TIKTOKEN_CACHE_DIR is empty, so there is no folder to find {blobpath} in, and cpbpe downloads "
            f"nothing: set it to the folder that holds {blobpath.rsplit('/', 1)[-1]}"
        )
    usual = Path(folder, sha1(blobpath.encode()).hexdigest())
    for path in (usual, Path(folder, blobpath.rsplit("/", 1)[-1])):
        with suppress(FileNotFoundError):
            return _checked(path.read_bytes(), str(path), expected_hash)
    raise FileNotFoundError(
        f"{blobpath} is not in {folder}, where tiktoken keeps its files, and cpbpe downloads nothing; "
        f"{_fetch(blobpath, str(usual))}. If you have the file elsewhere, copy it there, or set "
        f"TIKTOKEN_CACHE_DIR to its folder"
    )


def _fetch(url: str, path: str) -> str:
    return f'fetch it with: curl --create-dirs -o "{path}" {url}'


def _checked(data: bytes, path: str, expected_hash: str | None) -> bytes:
    if expected_hash and not check_hash(data, expected_hash):
        raise ValueError(
            f"{path} is damaged, or not the file that is meant: its SHA-256 is {sha256(data).hexdigest()}, "
            f"expected was {expected_hash}; delete it and fetch it again"
        )
    return data


_LINES = re.compile(rb"(?:[A-Za-z0-9+/]+={0,2} [0-9]+\r?\n)*")


def load_tiktoken_bpe(tiktoken_bpe_file: str, expected_hash: str | None = None) -> dict[bytes, int]:
    """The ranks in a `.tiktoken` file, from a path or a URL; see `read_file_cached`."""
    contents = read_file_cached(tiktoken_bpe_file, expected_hash)
    # 1. If all lines are well formed, all at once, which takes a third of the time.
    if _LINES.fullmatch(contents):
        words = contents.split()
        with suppress(Base64Error):
            return dict(zip(map(a2b_base64, words[::2]), map(int, words[1::2]), strict=True))
    # 2. Line by line, as tiktoken does it, with an error for the first line that is wrong.
    ranks = {}
    for line in contents.splitlines():
        if line:
            try:
                token, rank = line.split()
                ranks[b64decode(token)] = int(rank)
            except ValueError as error:
                raise ValueError(f"Error parsing line {line!r} in {tiktoken_bpe_file}") from error
    return ranks


def dump_tiktoken_bpe(bpe_ranks: Mapping[bytes, int], tiktoken_bpe_file: str) -> None:
    """Write ranks as a `.tiktoken` file."""
    with importing:
        from cpbpe.model.formats.tiktoken import write_ranks
        from cpbpe.model.writing import write_all
    write_all({os.fspath(tiktoken_bpe_file): write_ranks(bpe_ranks)})


def data_gym_to_mergeable_bpe_ranks(
    vocab_bpe_file: str,
    encoder_json_file: str,
    vocab_bpe_hash: str | None = None,
    encoder_json_hash: str | None = None,
    clobber_one_byte_tokens: bool = False,
) -> dict[bytes, int]:
    """The ranks in GPT-2's two files. The ids in encoder.json must be those that the merges have by order.

    With `clobber_one_byte_tokens` those of single bytes are taken from encoder.json instead.
    """
    # 1. The bytes, in the order of the letters that stand for them, and the pieces that merges make.
    ranks = {byte: rank for rank, byte in enumerate(sorted(_BYTES, key=to_letters))}
    lines = read_file_cached(vocab_bpe_file, vocab_bpe_hash).decode().split("\n")[1:-1]
    for rank, line in enumerate(lines, len(_BYTES)):
        first, second = line.split()
        ranks[from_letters(first) + from_letters(second)] = rank
    # 2. The ids.
    ids = json.loads(read_file_cached(encoder_json_file, encoder_json_hash))
    expected = {
        from_letters(piece): id
        for piece, id in ids.items()
        if piece not in ("<|endoftext|>", "<|startoftext|>")
    }
    if clobber_one_byte_tokens:
        ranks |= {piece: id for piece, id in expected.items() if len(piece) == 1}
    if ranks != expected:
        wrong = next(iter(ranks.items() ^ expected.items()))[0]
        raise AssertionError(
            f"{encoder_json_file} does not have the ids that follow from {vocab_bpe_file}, for example "
            f"that of {wrong!r}; the two files belong to different models"
        )
    return ranks
