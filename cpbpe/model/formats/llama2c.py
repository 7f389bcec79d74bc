"""llama2.c's `tokenizer.bin`: the scores and texts of a model's pieces, for a program in C.

A file has the length of the longest text, and then for each piece its score (float32), the length of its text
and the text. All numbers have 32 bits, little-endian. Nothing marks the format, and the number of pieces is
not stored.

The text is what the program prints: spaces instead of U+2581, and line feeds around bos and eos. Types and
settings are not stored, because the program knows only one kind of model, Llama's: text as it is, with a
space in front, and byte fallback. The BYTE pieces have the ids from 3 on. (The first versions of the
program's exporter wrote these pieces as the characters U+0000 to U+00FF.)
"""

from __future__ import annotations

import re
import struct
from array import array
from collections import Counter
from dataclasses import replace
from typing import NoReturn

from cpbpe.errors import ConversionError, ModelError
from cpbpe.model import validity
from cpbpe.model.formats.gguf.llamacpp import LlamaCpp
from cpbpe.model.formats.values import TO_CONVERT, Difference, ReadModel, Written, refuse, unlike
from cpbpe.model.formats.vocab_text import RULES, looks_like_a_mark
from cpbpe.model.pair_ranks import pairs_that_make, shortest_first
from cpbpe.model.spec import Carried, ModelSpec, Pieces, PieceType
from cpbpe.text.utf8 import SPACE

_FIRST_BYTE = 3
"""The id of the first BYTE piece."""
_ENDS = {b"\n<s>\n": b"<s>", b"\n</s>\n": b"</s>"}
"""How bos and eos are stored, whatever their names in the model."""
_UNKNOWN = b"<unk>"
_NEVER_MERGED = -1e10
"""The program never merges to a piece with this score or a lower one."""
_RECORD = struct.Struct("<fI")
_BYTE = re.compile(rb"<0x[0-9A-F]{2}>")


def read(data: bytes, *, allow_differences: bool = False) -> ReadModel:
    """Return the model in a `tokenizer.bin`, as the program uses it."""
    texts, scores = _columns(data)
    notes = []
    # 1. The texts as they were before the exporter changed them for printing.
    first = _FIRST_BYTE
    if texts[first : first + 256] == [chr(byte).encode() for byte in range(256)]:
        texts[first : first + 256] = validity.BYTE_PIECES
    elif not set(validity.BYTE_PIECES) <= set(texts):
        _wrong(
            "its BYTE pieces, <0x00> to <0xFF>, are not all there, and the program cannot do without them; "
            "load the tokenizer.model that it was made from"
        )
    texts = [_ENDS.get(text, text.replace(b" ", SPACE)) for text in texts]
    # 2. The types.
    bytes_ = frozenset(validity.BYTE_PIECES)
    types = bytearray(PieceType.BYTE if text in bytes_ else PieceType.NORMAL for text in texts)
    for name, type in ((_UNKNOWN, PieceType.UNKNOWN), *((end, PieceType.CONTROL) for end in _ENDS.values())):
        if name in texts:
            types[texts.index(name)] = type
    validity.hide_nul(texts, types, byte_fallback=True)
    if others := [
        text for text, type in zip(texts, types, strict=True) if type == 1 and looks_like_a_mark(text)
    ]:
        shown = others[0].decode(errors="replace")
        notes.append(f"types are not stored: pieces such as {shown!r} are NORMAL, as for the program")
    options = {"add_bos": True} if b"<s>" in texts else {}
    if not options:
        notes.append("the program puts the piece 1 in front of texts, and cpbpe nothing: there is no <s>")
    spec = ModelSpec(
        Pieces.of_lists(texts, scores, types), RULES, byte_fallback=True, carried=Carried(options)
    )
    validity.check(spec)
    return ReadModel(spec, notes=tuple(notes))


def _columns(data: bytes) -> tuple[list[bytes], array[float]]:
    if len(data) < 4:
        _wrong(f"it has {len(data)} bytes, and even its header has 4")
    longest = int.from_bytes(data[:4], "little")
    texts: list[bytes] = []
    at, scores = 4, array("f")
    while at < len(data):
        left = len(data) - at - _RECORD.size
        score, size = _RECORD.unpack_from(data, at) if left >= 0 else (0.0, 1)
        if left >= 0 and size > longest:
            _wrong(f"piece {len(texts)} has {size:,} bytes, and the longest should have {longest:,}")
        if left < size:
            _wrong(
                f"it is truncated: piece {len(texts)}, at byte {at:,}, is cut off; copy or download it again"
            )
        if score != score:
            _wrong(f"the score of piece {len(texts)} is no number (NaN)")
        at += _RECORD.size
        texts.append(data[at : at + size])
        scores.append(score)
        at += size
    if not texts:
        _wrong("it has no pieces")
    return texts, scores


def write(spec: ModelSpec, *, allow_differences: bool = False) -> Written:
    """Return the `tokenizer.bin` with which the program gives the ids of sentencepiece, or raise an error."""
    if spec.alphabet == "bytes":
        raise ConversionError(
            "a tokenizer.bin holds pieces of text, and this model is byte-level: its pieces are bytes"
        )
    texts, differences, notes = _printed(spec)
    differences += [*_of_settings(spec), *_of_pieces(spec, texts)]
    refuse(
        differences,
        allow_differences,
        "there is no tokenizer.bin that llama2.c uses exactly as this model",
        TO_CONVERT,
    )
    parts = [struct.pack("<I", max(map(len, texts)))]
    for text, score in zip(texts, spec.pieces.numbers(), strict=True):
        parts += [_RECORD.pack(score, len(text)), text]
    if spec.carried.options.get("add_eos"):
        notes.append("the program puts no eos at the end of texts")
    notes += [
        "U+2581 in a text is unknown to llama2.c, and a space to sentencepiece; a NUL ends the text",
        "types, settings, and the settings of the training are not stored",
    ]
    return Written(b"".join(parts), tuple(differences), tuple(notes))


def _printed(spec: ModelSpec) -> tuple[list[bytes], list[Difference], list[str]]:
    """Return the texts as they are stored, with differences and notes."""
    differences, notes = [], []
    texts = [text.replace(SPACE, b" ") for text in spec.pieces.texts]
    # The program takes the pieces 1 and 2 for bos and eos. (If one piece is both, `ends` has only one entry.)
    ends = {spec.bos_id: b"\n<s>\n", spec.eos_id: b"\n</s>\n"}
    for id, (text, wanted) in zip(ends, ((b"<s>", 1), (b"</s>", 2)), strict=False):
        if id is None or id != wanted:
            notes.append(f"the program puts piece {wanted} around texts, and the model has {id}")
        if id is not None:
            texts[id] = ends[id]
            if spec.pieces.texts[id] != text:
                notes.append(f"the name of {spec.pieces.texts[id].decode(errors='replace')!r} is not stored")
    if len(set(texts)) < len(texts):
        [(twice, _)] = Counter(texts).most_common(1)
        raise ConversionError(
            f"two pieces would be the same text in a tokenizer.bin, {twice.decode(errors='replace')!r}: a "
            f"space and U+2581 are one there. Give one of them another text first (tok.spec, "
            f"cpbpe.Tokenizer.from_spec)"
        )
    spaced = [text for text in spec.pieces.texts if b" " in text]
    if spaced:
        shown = spaced[0].decode(errors="replace")
        differences.append(Difference(f"the piece {shown!r} has a space, which becomes U+2581", shown))
    if spec.added:
        differences.append(Difference("added tokens cannot be stored"))
    return texts, differences, notes


def _of_settings(spec: ModelSpec) -> list[Difference]:
    """Return the differences between the model's settings and those that llama2.c has."""
    rules = spec.normalizer
    found = []
    if rules.charsmap:
        found.append(Difference(f"llama2.c does not apply the rules {rules.name or 'of the normalizer'!r}"))
    if rules.remove_extra_whitespaces:
        found.append(Difference("llama2.c keeps all spaces", " a  b "))
    if not rules.add_dummy_prefix or rules.suffix:
        found.append(Difference("llama2.c always puts a space in front", "a"))
    elif not rules.prefix_before_space:
        found.append(Difference("llama2.c puts a space also in front of text that begins with one", " a"))
    if not rules.escape_whitespaces:
        found.append(Difference("llama2.c has no pieces with another space than U+2581", "a b"))
    if spec.denormalizer is not None:
        found.append(Difference("llama2.c has no denormalizer, so that it decodes to other text"))
    return found


def _of_pieces(spec: ModelSpec, texts: list[bytes]) -> list[Difference]:
    """Return the differences in the pieces that llama2.c and sentencepiece find in texts."""
    found = []
    if spec.pieces.texts[_FIRST_BYTE : _FIRST_BYTE + 256] != validity.BYTE_PIECES or not spec.byte_fallback:
        found.append(Difference("llama2.c takes the pieces 3 to 258 for the bytes of unknown characters"))
    if PieceType.USER_DEFINED in spec.pieces.types:
        found.append(Difference("llama2.c does not keep USER_DEFINED pieces whole"))
    if SPACE not in spec.ids:
        found.append(Difference("the model has no piece ▁, and llama2.c cannot do without one", "a"))
    bytes_ = frozenset(validity.BYTE_PIECES)
    if inside := [text for text in texts if b"<0x" in text and text not in bytes_ and _BYTE.search(text)]:
        shown = inside[0].decode(errors="replace")
        found.append(Difference(f"llama2.c merges the bytes of unknown characters to {shown!r}"))
    merging = (PieceType.NORMAL, PieceType.UNUSED)
    low = [
        text
        for text, score, type in zip(spec.pieces.texts, spec.pieces.numbers(), spec.pieces.types, strict=True)
        if type in merging and not score > _NEVER_MERGED
    ]
    if low:
        shown = low[0].decode(errors="replace")
        found.append(
            Difference(f"llama2.c never merges to {shown!r}, whose score is {_NEVER_MERGED:g} or less", shown)
        )
    stored = [text.replace(b" ", SPACE) for text in texts]
    as_stored = replace(
        spec, pieces=Pieces.of_lists(stored, spec.pieces.numbers(), spec.pieces.types), added=(), file=None
    )
    # sentencepiece merges characters that are no pieces, too. llama2.c cannot: it has only their bytes.
    model = LlamaCpp(spec)
    with_unknown = [text for text in model.ranks if not all(character in model.ids for character in text)]
    if made := pairs_that_make(with_unknown, model.rank):
        part = min(made, key=shortest_first)
        reason = f"llama2.c does not merge characters that are no pieces, as in {part!r}"
        found.append(Difference(reason, part.replace("▁", " ")))
    model = LlamaCpp(as_stored)
    return [*found, *model.of_types("llama2.c"), *model.of_scores("llama2.c")]


def read_back(spec: ModelSpec, written: Written) -> str:
    """Return what is wrong with a written file; "" if nothing is.

    (The names of CONTROL pieces and of the UNKNOWN piece are not compared, because they may be lost.)
    """
    again = read(written.data, allow_differences=True).spec
    if written.differences:
        return ""
    types, old, new = spec.pieces.types, spec.pieces.texts, again.pieces.texts
    kept = (id for id, type in enumerate(types) if type not in (PieceType.CONTROL, PieceType.UNKNOWN))
    if len(old) != len(new) or any(old[id] != new[id] for id in kept):
        return "its pieces are not the same"
    return unlike(spec, again, "scores", "settings")


def _wrong(problem: str) -> NoReturn:
    raise ModelError(f"not a tokenizer.bin (llama2.c) that cpbpe can read: {problem}")
