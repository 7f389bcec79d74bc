"""`.tiktoken` files: the ranks of a byte-level vocabulary, one piece per line, as tiktoken has them.

    IQ== 0
    Ig== 1

Each line has the bytes of a piece in base64, a space, and its rank, which is its id. The file says neither by
which pattern texts are cut nor which special tokens there are; tiktoken has both in its code. Here,
well-known files are recognized by a hash. For other files, the user gives both:
`cpbpe.load(path, pattern="cl100k", special_tokens={...})`.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import re
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from operator import itemgetter
from typing import NamedTuple

from cpbpe.errors import ConversionError, ModelError
from cpbpe.model.byte_level import (
    assembled,
    example,
    known_patterns,
    normal,
    of_ranks,
    said_again,
    special_tokens_of,
    splitter_of,
)
from cpbpe.model.formats.registry import NO_HINTS, Hints
from cpbpe.model.formats.values import TO_WRITE, ReadModel, Written, refuse
from cpbpe.model.spec import ModelSpec
from cpbpe.spelling import advised

# --- Reading --------------------------------------------------------------------------------------


def read(data: bytes, *, allow_differences: bool = False, hints: Hints = NO_HINTS) -> ReadModel:
    """Return the model in a file. Without hints for a file that is not well-known, raise a ModelError."""
    if hints == NO_HINTS and known_ranks(data) is None:
        raise ModelError(
            "this is a file of ranks (.tiktoken), and none of the well-known ones. It says neither how texts "
            f"are cut nor which special tokens there are; load it with both, for example {example()}. "
            f"{known_patterns()}"
        )
    return ReadModel(spec_of(data, *hints))


def spec_of(
    data: bytes, pattern: str | None = None, special_tokens: Mapping[str, int] | None = None
) -> ModelSpec:
    r"""Return the model in a file of ranks. If the file is well-known, nothing else need be given.

    `pattern` is the name of a published one, or a regular expression; with "", a text is one chunk.

    >>> file = write_ranks({bytes([byte]): byte for byte in range(256)} | {b"ab": 256})
    >>> spec = spec_of(file, "gpt2", {"<|endoftext|>": 257})
    >>> spec.pieces[256], spec.pieces[257].type.name, spec.splitter.name
    (Piece(text=b'ab', score=-256.0, type=<PieceType.NORMAL: 1>), 'CONTROL', 'gpt2')
    """
    known = known_ranks(data)
    if pattern is None and known is None:
        raise ModelError(
            f"a file of ranks (.tiktoken) does not say how texts are cut; give a pattern, too: {example()}. "
            f"{known_patterns()}"
        )
    if pattern is None and known is not None:
        pattern = known.pattern
    if special_tokens is None:
        special_tokens = known.special_tokens if known else {}
    return assembled(
        {id: (piece, float(-id)) for piece, id in _ranks(data).items()},
        special_tokens,
        splitter=splitter_of(pattern or ""),
        ends=(known.begin, known.end) if known else ("", "<|endoftext|>"),
        whole=True,
        number="rank",
    )


def _ranks(data: bytes) -> dict[bytes, int]:
    """Return the rank of each piece. If a line has none, the file is refused."""
    # 1. All at once, which takes a fifth of the time. If anything is wrong, reading by lines finds out what.
    if _LINES.fullmatch(data):
        words = data.split()
        with suppress(binascii.Error):
            ranks = dict(zip(map(binascii.a2b_base64, words[::2]), map(int, words[1::2]), strict=True))
            if 2 * len(ranks) == len(words) and len(set(ranks.values())) == len(ranks) and b"" not in ranks:
                return ranks
    # 2. Line by line.
    return _ranks_by_line(data)


_LINES = re.compile(rb"(?:[A-Za-z0-9+/]+={0,2} [0-9]{1,9}\r?\n)*")


def _ranks_by_line(data: bytes) -> dict[bytes, int]:
    ranks: dict[bytes, int] = {}
    seen: dict[int, int] = {}
    for number, line in enumerate(data.removeprefix(codecs.BOM_UTF8).split(b"\n"), 1):
        line = line.rstrip(b"\r")
        if not line:
            continue
        words = line.split()  # (tiktoken takes tabs and several spaces, too)
        token, rank = words if len(words) == 2 else line.partition(b" ")[::2]
        try:
            # Padding alone is how Whisper's file spells an empty piece; not every Python decodes it.
            piece = base64.b64decode(token.strip(b"=") and token, validate=True)
        except binascii.Error as error:
            raise _wrong(number, f"{_shown(token)} is not base64: {error}") from None
        if not rank.isdigit() or len(rank) > 9:
            raise _wrong(number, f"a rank is a number from 0, not {_shown(rank)}")
        id = int(rank)
        if not piece:
            token_of = advised(f"special_tokens={{'<|empty|>': {id}}}", f"--special-token '<|empty|>={id}'")
            raise ModelError(
                f"line {number} of the file of ranks: the piece is empty, and no text has such a token. "
                f"Leave the line out, and give its id to a special token: {token_of}"
            )
        if piece in ranks:
            raise _wrong(number, f"the piece {piece!r} has a rank already: {ranks[piece]}")
        if id in seen:
            raise _wrong(number, f"the rank {id} is that of line {seen[id]}, too")
        ranks[piece] = id
        seen[id] = number
    return ranks


def _shown(part: bytes) -> str:
    text = part[:40].decode(errors="backslashreplace")
    return repr(text + "..." if len(part) > 40 else text)


def _wrong(line: int, reason: str) -> ModelError:
    return ModelError(
        f"line {line} of the file of ranks: {reason}; each line is a piece in base64, a space and a rank"
    )


# --- Writing --------------------------------------------------------------------------------------


def write_ranks(ranks: Mapping[bytes, int]) -> bytes:
    r"""Return the file that holds some ranks.

    >>> write_ranks({b"!": 0, b"ab": 1})
    b'IQ== 0\nYWI= 1\n'
    """
    rows = sorted(ranks.items(), key=itemgetter(1))
    return b"".join(b"%b %d\n" % (base64.b64encode(piece), rank) for piece, rank in rows)


def write(spec: ModelSpec, *, allow_differences: bool = False) -> Written:
    """Return the file of a byte-level model. Ids become ranks, so pieces must merge in the order of ids."""
    if spec.alphabet != "bytes":
        raise ConversionError(
            "a .tiktoken file holds the ranks of a byte-level model, and this one is made of characters"
        )
    differences = list(of_ranks(spec, 0, "tiktoken"))
    refuse(differences, allow_differences, "there is no file of ranks that is exactly this model", TO_WRITE)
    special = {token.decode(errors="replace"): id for id, token in special_tokens_of(spec).items()}
    note = (
        "the file says neither by which pattern texts are cut nor which special tokens there are: it is "
        f"loaded with {said_again(spec.splitter, special)}"
    )
    return Written(write_ranks(_normal_ranks(spec)), tuple(differences), (note,))


def _normal_ranks(spec: ModelSpec) -> dict[bytes, int]:
    return {piece: id for id, piece in normal(spec)}


def read_back(spec: ModelSpec, written: Written) -> str:
    """Return what is wrong with a written file; "" if nothing is. It has only ranks to compare."""
    return "" if _ranks(written.data) == _normal_ranks(spec) else "its ranks are not the same"


# --- Well-known files -----------------------------------------------------------------------------

_END = "<|endoftext|>"
_FILL = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")
_PROMPT_END = "<|endofprompt|>"


class Known(NamedTuple):
    """What is known about a file of ranks that it does not say itself."""

    pattern: str
    """The name of its pattern."""
    special_tokens: Mapping[str, int]
    """Its special tokens."""
    begin: str = ""
    """The special token that begins a text."""
    end: str = _END
    """The special token that ends a text."""


def _numbered(first: int, *tokens: str) -> dict[str, int]:
    return {token: first + place for place, token in enumerate(tokens)}


_LLAMA3 = (
    "<|begin_of_text|>",
    "<|end_of_text|>",
    "<|reserved_special_token_0|>",
    "<|reserved_special_token_1|>",
    "<|finetune_right_pad_id|>",
    "<|step_id|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eom_id|>",
    "<|eot_id|>",
    "<|python_tag|>",
    "<|image|>",
    *(f"<|reserved_special_token_{number}|>" for number in range(2, 246)),
)
_LLAMA4_KINDS = (
    "<|begin_of_text|>",
    "<|end_of_text|>",
    *_FILL,
    *("<|header_start|>", "<|header_end|>", "<|eom|>", "<|eot|>", "<|step|>"),
    *(f"<|text_post_train_reserved_special_token_{number}|>" for number in range(6)),
    *("<|python_start|>", "<|python_end|>", "<|finetune_right_pad|>"),
    *(f"<|text_post_train_reserved_special_token_{number}|>" for number in range(8, 69)),
    *("<|image_start|>", "<|image_end|>"),
    *(f"<|vision_reserved_special_token_{number}|>" for number in range(2)),
    *("<|tile_x_separator|>", "<|tile_y_separator|>"),
    *(f"<|vision_reserved_special_token_{number}|>" for number in range(2, 6)),
    *("<|image|>", "<|vision_reserved_special_token_6|>", "<|patch|>"),
    *(f"<|vision_reserved_special_token_{number}|>" for number in range(7, 1048)),
    *(f"<|reasoning_reserved_special_token_{number}|>" for number in range(8)),
    *("<|reasoning_thinking_start|>", "<|reasoning_thinking_end|>"),
)
_LLAMA4 = (*_LLAMA4_KINDS, *(f"<|reserved_special_token_{n}|>" for n in range(2048 - len(_LLAMA4_KINDS))))
_QWEN = (_END, "<|im_start|>", "<|im_end|>", *(f"<|extra_{number}|>" for number in range(205)))

_WELL_KNOWN: dict[str, Known] = {
    # r50k_base: GPT-3, with GPT-2's ranks.
    "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930": Known("gpt2", {_END: 50256}),
    # p50k_base: Codex. <|endoftext|> is in the middle of the ranks. (p50k_edit has three more.)
    "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069": Known("gpt2", {_END: 50256}),
    # cl100k_base: GPT-3.5 and GPT-4.
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7": Known(
        "cl100k", {**_numbered(100257, _END, *_FILL), _PROMPT_END: 100276}
    ),
    # o200k_base: GPT-4o. (o200k_harmony has more.)
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d": Known(
        "o200k", {_END: 199999, _PROMPT_END: 200018}
    ),
    # Llama 3: its tokenizer.model. The names are those of Llama 3.1 and 3.2.
    "82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55": Known(
        "llama3", _numbered(128000, *_LLAMA3), "<|begin_of_text|>", "<|end_of_text|>"
    ),
    # Llama 4: its tokenizer.model.
    "d0bdbaf59b0762c8c807617e2d8ea51420eb1b1de266df2495be755c8e0ed6ed": Known(
        "o200k", _numbered(200000, *_LLAMA4), "<|begin_of_text|>", "<|end_of_text|>"
    ),
    # qwen.tiktoken: Qwen, the first generation.
    "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186": Known(
        "qwen2", _numbered(151643, *_QWEN)
    ),
}
"""What is known about well-known files, by their SHA-256."""


def known_ranks(data: bytes) -> Known | None:
    """Return what is known about a file of ranks; None if it is not a well-known one."""
    return _WELL_KNOWN.get(sha256(data).hexdigest())
