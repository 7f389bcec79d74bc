r"""The two files of minbpe, the code of Andrej Karpathy's lecture "Let's build the GPT Tokenizer".

minbpe's `load` reads the `.model`: the line `minbpe v1`, the pattern, the number of special tokens, each of
them with its id, and the pairs that were merged. The merges have the ids 256, 257, ..., which are not
written; the ids below are the bytes.

The `.vocab` is for people: each piece in brackets with its id, after the two pieces that it was made of.

>>> print("\n".join(vocab_lines({97: b"a", 256: b"aa"}, {(97, 97): 256})))
[a] 97
[a][a] -> [aa] 256

>>> spec = read(b"minbpe v1\n\n0\n97 98\n").spec
>>> spec.pieces[256]
Piece(text=b'ab', score=-256.0, type=<PieceType.NORMAL: 1>)
>>> write(spec).data
b'minbpe v1\n\n0\n97 98\n'
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from cpbpe.errors import ConversionError, ModelError
from cpbpe.model.byte_level import (
    Listed,
    assembled,
    differences_of,
    normal,
    pairs_of,
    scores_of,
    shown,
    special_tokens_of,
    unsaid,
    wrong_pairs,
)
from cpbpe.model.formats.values import TO_READ, TO_WRITE, Difference, ReadModel, Written, refuse, unlike
from cpbpe.model.spec import ModelSpec, SplitSpec
from cpbpe.model.validity import MAX_PIECE_BYTES
from cpbpe.text.split_patterns import name_of
from cpbpe.text.utf8 import from_letters, to_letters

Pair = tuple[int, int]
BYTES = 256
VERSION = "minbpe v1"
_END = "<|endoftext|>"


class Model(NamedTuple):
    """What a `.model` file holds."""

    pattern: str
    """The pattern that cuts texts; with an empty one, a text is one chunk."""
    special_tokens: dict[str, int]
    """The ids of special tokens."""
    merges: dict[Pair, int]
    """The pairs that were merged, in order, each with the id of the result."""


# --- The lines ------------------------------------------------------------------------------------


def parsed(text: str, name: str = "the file") -> Model:
    """Parse the text of a `.model` file; a ModelError names a wrong line. `name` is the file in messages."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[0].strip() != VERSION:
        raise ModelError(f"{name} does not begin with the line {VERSION!r}, but with {lines[0][:40]!r}")
    if lines[-1] == "":
        lines.pop()
    at = 1

    def fields(count: int, expected: str) -> list[str]:
        """Return the fields of the next line, the last of which must be a number."""
        nonlocal at
        at += 1
        found = lines[at].split() if at < len(lines) else []
        if len(found) != count or not _is_number(found[-1]):
            raise wrong(expected)
        return found

    def wrong(expected: str) -> ModelError:
        seen = repr(lines[at][:60]) if at < len(lines) else "the end of the file"
        return ModelError(f"line {at + 1} of {name} should be {expected}, but is {seen}")

    model = Model(lines[1].strip() if len(lines) > 1 else "", {}, {})
    for _ in range(int(fields(1, "the number of special tokens")[0])):
        token, id = fields(2, "a special token and its id")
        model.special_tokens[token] = int(id)
    while at < len(lines) - 1:
        idx = BYTES + len(model.merges)
        expected = f"a new pair of ids below {idx}"
        left, right = fields(2, expected)
        pair = int(left) if _is_number(left) else idx, int(right)
        if max(pair) >= idx or pair in model.merges:
            raise wrong(expected)
        model.merges[pair] = idx
    return model


def _is_number(text: str) -> bool:
    """Whether a text is a number that is not too large for an id."""
    return text.isdecimal() and len(text) < 10


def model_lines(model: Model) -> list[str]:
    """Return the lines of a `.model` file; a ValueError says what it cannot hold.

    >>> model_lines(Model("", {"<e>": 257}, {(97, 97): 256}))
    ['minbpe v1', '', '1', '<e> 257', '97 97']
    """
    pattern, special_tokens, merges = model
    if pattern != pattern.strip() or len(pattern.splitlines()) > 1:
        raise ValueError(
            f"the pattern {pattern!r} cannot be saved: a .model file has it on one line, without spaces "
            f"around it; write \\n for a line break and [ ] for a space"
        )
    for token in special_tokens:
        if token.split() != [token]:
            raise ValueError(
                f"the special token {token!r} cannot be saved: in a .model file a token ends at the first "
                f"space; choose a name without spaces"
            )
    for expected, idx in enumerate(merges.values(), BYTES):
        if idx != expected:
            raise ValueError(
                f"the merge with the id {idx} cannot be saved: a .model file does not hold the ids of "
                f"merges, but counts from 256 on, and would give it {expected}"
            )
    lines = [VERSION, pattern, str(len(special_tokens))]
    lines += [f"{token} {idx}" for token, idx in special_tokens.items()]
    return lines + [f"{left} {right}" for left, right in merges]


def vocab_lines(vocab: Mapping[int, bytes], merges: Mapping[Pair, int]) -> list[str]:
    """Return the lines of a `.vocab` file."""
    halves = {idx: pair for pair, idx in merges.items()}
    lines = []
    for idx, piece in vocab.items():
        made = "".join(f"[{render_token(vocab[half])}]" for half in halves.get(idx, ()))
        lines.append(f"{made}{' -> ' if made else ''}[{render_token(piece)}] {idx}")
    return lines


def vocab_of(merges: Mapping[Pair, int], special_tokens: Mapping[str, int] | None = None) -> dict[int, bytes]:
    """Return the bytes of each id: of single bytes, merges and special tokens."""
    vocab = {idx: bytes([idx]) for idx in range(BYTES)}
    for (left, right), idx in merges.items():
        vocab[idx] = vocab[left] + vocab[right]
    for token, idx in (special_tokens or {}).items():
        vocab[idx] = token.encode()
    return vocab


def replace_control_characters(s: str) -> str:
    r"""Return the text with escapes for characters that cannot be printed: controls, and unassigned ones.

    >>> replace_control_characters("a\tb")
    'a\\u0009b'
    """
    return "".join([f"\\u{ord(c):04x}" if unicodedata.category(c)[0] == "C" else c for c in s])


def render_token(t: bytes) -> str:
    r"""Return a piece as `.vocab` files show it; bytes that belong to no character are U+FFFD.

    >>> render_token(b"a\n\xc3")
    'a\\u000a\ufffd'
    """
    return replace_control_characters(t.decode(errors="replace"))


# --- Reading --------------------------------------------------------------------------------------


def read(data: bytes, *, allow_differences: bool = False) -> ReadModel:
    """Return the model in a `.model` file of minbpe."""
    try:
        model = parsed(data.decode(), "minbpe's file")
    except UnicodeDecodeError as error:
        raise ModelError(f"byte {error.start} of minbpe's file is not UTF-8") from None
    spec, differences = spec_of(model)
    refuse(differences, allow_differences, "this file cannot be read exactly", TO_READ)
    return ReadModel(spec, tuple(differences), _notes(spec))


def spec_of(model: Model) -> tuple[ModelSpec, list[Difference]]:
    """Return a model as a value, and the differences; a ModelError says what cannot be a model here."""
    pattern, special_tokens, merges = model
    _check_sizes(merges)
    # 1. The pieces. In minbpe, two pairs may make the same bytes, which then have two ids.
    vocab = vocab_of(merges)
    ids: dict[bytes, int] = {}
    for id, piece in vocab.items():
        if ids.setdefault(piece, id) != id:
            raise ModelError(
                f"the ids {ids[piece]} and {id} are both {shown(piece)!r}, made of different pairs, which is "
                f"possible only in cpbpe.compat.minbpe: here every piece has one id"
            )
    # 2. Their scores, and the rest.
    letters = {id: to_letters(piece) for id, piece in vocab.items()}
    scores, wrong = scores_of(
        {letters[id]: id for id in vocab},
        {(letters[left], letters[right]): place for place, (left, right) in enumerate(merges)},
    )
    spec = assembled(
        {id: (piece, scores[letters[id]]) for id, piece in vocab.items()},
        special_tokens,
        splitter=SplitSpec(pattern, name_of(pattern)) if pattern else None,
        ends=("", _END if _END in special_tokens else ""),
        whole=False,
    )
    return spec, differences_of(wrong)


def _check_sizes(merges: Mapping[Pair, int]) -> None:
    """Refuse pieces that are too long before they are made. (In a few lines, a file can double a piece again
    and again.)
    """
    sizes = dict.fromkeys(range(BYTES), 1)
    for (left, right), idx in merges.items():
        sizes[idx] = sizes[left] + sizes[right]
        if sizes[idx] >= MAX_PIECE_BYTES:
            raise ModelError(
                f"the piece {idx} is {sizes[idx]} bytes long; a piece has fewer than {MAX_PIECE_BYTES}"
            )


# --- Writing --------------------------------------------------------------------------------------


def write(spec: ModelSpec, *, allow_differences: bool = False) -> Written:
    """Return the `.model` file of a byte-level model. (`files` makes the `.vocab`.)"""
    if spec.alphabet != "bytes":
        raise ConversionError(
            "a file of minbpe holds a byte-level model, and this one is made of characters; sentencepiece's "
            ".model can hold it"
        )
    # 1. The ids: bytes, then merges in their order.
    texts = spec.pieces.texts
    wrong = next((id for id in range(BYTES) if texts[id : id + 1] != (bytes([id]),)), None)
    if wrong is not None:
        raise ConversionError(
            f"in a file of minbpe the bytes have the ids 0 to 255 in their order, and here the id {wrong} is "
            f"{shown(texts[wrong]) if wrong < len(texts) else 'none'!r}"
        )
    listed = pairs_of(spec)
    ids = {to_letters(piece): id for id, piece in normal(spec)}
    for expected, piece in enumerate(listed.pairs, BYTES):
        if ids[piece] != expected:
            raise ConversionError(
                f"in a file of minbpe merges have the ids 256, 257, ... in their order, and here the merge "
                f"number {expected - BYTES + 1} makes {shown(texts[ids[piece]])!r} with the id {ids[piece]}"
            )
        late = max(ids[part] for part in listed.pairs[piece])
        if late >= expected:
            raise ConversionError(
                f"in a file of minbpe a merge joins tokens with lower ids than its own, and here the id "
                f"{expected} is made of the id {late}"
            )
    # 2. Everything else.
    differences = list(_differences(spec, listed))
    refuse(differences, allow_differences, "there is no file of minbpe that is exactly this model", TO_WRITE)
    merges = {(ids[left], ids[right]): ids[piece] for piece, (left, right) in listed.pairs.items()}
    special = {shown(token): id for id, token in special_tokens_of(spec).items()}
    pattern = "" if spec.splitter is None else spec.splitter.pattern
    try:
        lines = model_lines(Model(pattern, special, merges))
    except ValueError as error:
        raise ConversionError(str(error)) from None
    return Written(_bytes(lines), tuple(differences), _notes(spec))


def _notes(spec: ModelSpec) -> tuple[str, ...]:
    """What differs with a pattern that may leave out parts of a text. (The published ones never do.)"""
    if spec.splitter is None or name_of(spec.splitter.pattern):
        return ()
    return ("minbpe drops what the pattern leaves out of a text; here it is a chunk of its own",)


def _differences(spec: ModelSpec, listed: Listed) -> Iterator[Difference]:
    yield from unsaid(spec)
    yield from listed.differences("minbpe")
    if listed.unmade:
        reason = "there is a piece that no merges make, and minbpe has none"
        if spec.whole:
            reason = "a chunk that is a piece is taken whole, which minbpe does not do"
        yield Difference(reason, shown(from_letters(listed.unmade[0])))


def read_back(spec: ModelSpec, written: Written) -> str:
    """Return what is wrong with a written file; "" if nothing is."""
    again = read(written.data, allow_differences=True).spec
    wrong = wrong_pairs(spec, written, again)
    return wrong or ("" if written.differences else unlike(spec, again, "pattern"))


def _bytes(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def files(path: str, data: bytes) -> dict[str, bytes]:
    r"""Return both files by path: the `.model`, and the `.vocab` beside it.

    >>> list(files("my.model", b"minbpe v1\n\n0\n"))
    ['my.model', 'my.vocab']
    """
    if not path.endswith(".model"):
        raise ValueError(
            f"minbpe loads files whose names end in .model; {path!r} does not: call it {path}.model"
        )
    model = parsed(data.decode())
    vocab = vocab_of(model.merges, model.special_tokens)
    return {path: data, f"{path.removesuffix('.model')}.vocab": _bytes(vocab_lines(vocab, model.merges))}
