r"""The two files of GPT-2: `encoder.json` and `vocab.bpe`, which others call `vocab.json` and `merges.txt`.

The first is an object with the id of each piece. The second has a pair in each line, in the order of merging.
Both spell bytes as letters (see `cpbpe/text/utf8.py`). RoBERTa, Whisper and Qwen have the same two files.

Together they are one model. Where other formats have the bytes of one file, this one has those of both, the
first and then the second. They say neither by which pattern texts are cut nor which tokens are special.
GPT-2's pattern is assumed, unless another one is given, and tokens that no pair makes are special.

>>> tokens = [*LETTERS.values(), "Ġt", "<|end|>"]
>>> data = joined(json.dumps({token: id for id, token in enumerate(tokens)}).encode(), "Ġ t\n".encode())
>>> spec = read(data).spec
>>> spec.pieces[256], spec.pieces[257].type.name, spec.splitter.name
(Piece(text=b' t', score=-256.0, type=<PieceType.NORMAL: 1>), 'CONTROL', 'gpt2')
>>> write(spec).data == joined(json.dumps({token: id for id, token in enumerate(tokens)}).encode(),
...     "#version: 0.2\nĠ t\n".encode())
True
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from errno import ENOENT
from typing import Any

from cpbpe.errors import ConversionError, ModelError
from cpbpe.model.byte_level import (
    Listed,
    assembled,
    cut_pieces,
    differences_of,
    normal,
    pairs_of,
    said_again,
    scores_of,
    shown,
    special_tokens_of,
    spelled,
    splitter_of,
    text_that_differs,
    unsaid,
    wrong_pairs,
)
from cpbpe.model.formats.json_file import JsonFile
from cpbpe.model.formats.registry import NO_HINTS, PAIRS, Hints, is_ids
from cpbpe.model.formats.values import Difference, ReadModel, Written, refuse
from cpbpe.model.spec import ModelSpec
from cpbpe.spelling import given
from cpbpe.text.split_patterns import PATTERNS
from cpbpe.text.utf8 import LETTERS, all_from_letters, from_letters, is_spelled, to_letters

_short = JsonFile("").shown
_USUAL = "gpt2"
"""The pattern that is assumed."""
_END_OF_WORD = "</w>"
_END = "<|endoftext|>"
_VERSION = "#version"


# --- Two files ------------------------------------------------------------------------------------


def joined(ids: bytes, merges: bytes) -> bytes:
    """Return both files as the bytes of one."""
    return ids.rstrip() + b"\n" + merges


def files(path: str, data: bytes) -> dict[str, bytes]:
    r"""Return both files by path: `path` names one of them, or the folder for both.

    >>> list(files("my/vocab.bpe", b"{}\n")), list(files("my", b"{}\n"))
    (['my/encoder.json', 'my/vocab.bpe'], ['my/vocab.json', 'my/merges.txt'])
    """
    ids, _, merges = data.partition(b"\n")
    names = paths(path)
    if names is None and os.path.splitext(path)[1].lower() in (".json", ".txt", ".bpe"):
        raise ValueError(
            f"the two files of a model are called {' and '.join(PAIRS[0])} or {' and '.join(PAIRS[1])}, also "
            f"with a part in front (my-{PAIRS[0][0]}); {path!r} is neither; give one of these, or a folder"
        )
    names = names or (os.path.join(path, PAIRS[0][0]), os.path.join(path, PAIRS[0][1]))
    return dict(zip(names, (ids, merges), strict=True))


def paths(path: str) -> tuple[str, str] | None:
    """Return the paths of both files if a path has the name of one of them; None otherwise.

    >>> paths("a/my-merges.txt"), paths("tokenizer.json")
    (('a/my-vocab.json', 'a/my-merges.txt'), None)
    """
    folder, base = os.path.split(path)
    for pair in PAIRS:
        for name in pair:
            before = base[: -len(name)]  # (of the name itself: lower() can make it longer)
            if base[len(before) :].lower() == name and (not before or before[-1] in "-_."):
                stem = os.path.join(folder, before)
                return (path, f"{stem}{pair[1]}") if name == pair[0] else (f"{stem}{pair[0]}", path)
    return None


def with_partner(path: str, data: bytes) -> bytes:
    """Join one of the two files with the other one, which is beside it. A file of another name is returned
    as it is.
    """
    pair = paths(path)
    if pair is None or (path == pair[0] and not is_ids(data)):
        return data
    other = pair[path == pair[0]]
    try:
        with open(other, "rb") as file:
            partner = file.read()
    except FileNotFoundError:
        raise FileNotFoundError(
            ENOENT,
            f"it is one half of a byte-level model, and the other half, {os.path.basename(other)}, is not "
            f"beside it; put both into one folder",
            path,
        ) from None
    return joined(data, partner) if path == pair[0] else joined(partner, data)


def listed_names(place: int) -> str:
    """Return the names of the first or the second file, for a message."""
    return " or ".join(pair[place] for pair in PAIRS)


# --- Reading --------------------------------------------------------------------------------------


def read(data: bytes, *, allow_differences: bool = False, hints: Hints = NO_HINTS) -> ReadModel:
    """Return the model in both files, which follow one another in `data`."""
    # 1. What the files say.
    ids, merges = _halves(data)
    letters = set(LETTERS.values())
    missing = letters - ids.keys()
    if missing:
        names = ", ".join(sorted(missing)[:3]) + (", ..." if len(missing) > 3 else "")
        raise ModelError(
            f"the file of ids ({listed_names(0)}) has no id for {len(missing)} of the 256 letters that stand "
            f"for bytes: {names}"
        )
    pairs = _pairs(merges, ids)
    made = {left + right for left, right in pairs}
    # 2. Scores.
    spelled_ones = [token for token in ids if token in made or token in letters]
    pieces = dict(zip(spelled_ones, all_from_letters(spelled_ones), strict=True))
    scores, wrong = scores_of(
        {token: ids[token] for token in pieces}, {pair: place for place, pair in enumerate(pairs)}
    )
    differences = differences_of(wrong)
    refuse(
        differences,
        allow_differences,
        "these files cannot be read exactly",
        "To read them all the same, use cpbpe.convert with allow_differences=True, which lists them",
    )
    # 3. Everything else is a special token.
    special = {token: id for token, id in ids.items() if token not in pieces}
    for token, id in (hints.special_tokens or {}).items():
        if special.get(token, id) != id:
            raise ModelError(
                f"the special token {token!r} has the id {special[token]} in the file of ids, not {id}"
            )
        special[token] = id
    pattern = _USUAL if hints.pattern is None else hints.pattern
    splitter = splitter_of(pattern)
    rows = {ids[token]: (piece, scores[token]) for token, piece in pieces.items()}
    ends = ("", _END if _END in special else "")
    spec = assembled(rows, special, splitter=splitter, ends=ends, whole=False)
    # 4. What was assumed.
    notes, assumptions = _taken(hints, pieces.values())
    return ReadModel(spec, tuple(differences), notes, assumptions)


def _halves(data: bytes) -> tuple[dict[str, int], str]:
    """Return the ids of all tokens, and the text of the second file."""
    if not is_ids(data):
        raise ModelError(
            f"this is the file of merges ({listed_names(1)}), one half of a byte-level model; the other half "
            f"has the ids: give the path of either file, with both in one folder"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelError(f"byte {error.start} of the two files is not UTF-8") from None
    begin = len(text) - len(text.lstrip())
    try:
        content, end = json.JSONDecoder(object_pairs_hook=_unique).raw_decode(text, begin)
    except RecursionError:
        raise ModelError("the file of ids is nested too deeply to be read") from None
    except json.JSONDecodeError as error:
        raise ModelError(
            f"the file of ids is not valid JSON (line {error.lineno}, column {error.colno}: {error.msg})"
        ) from None
    except ModelError:
        raise
    except ValueError:  # newer versions of Python refuse to read such a number
        raise ModelError("the file of ids has a number of thousands of digits") from None
    merges = text[end:]
    if not merges.strip():
        raise ModelError(
            f"this is the file of ids ({listed_names(0)}), one half of a byte-level model; the other half "
            f"has the merges: give the path of either file, with both in one folder"
        )
    return _checked(content), merges.removeprefix("\n").removeprefix("\ufeff")


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) < len(members):
        [(twice, _)] = Counter(name for name, _ in members).most_common(1)
        raise ModelError(f"the file of ids has the token {_short(twice)} twice")
    return found


def _checked(content: Mapping[str, Any]) -> dict[str, int]:
    tokens: dict[int, str] = {}
    for token, id in content.items():
        if type(id) is not int or not 0 <= id < 1 << 31:
            raise ModelError(f"the id of {token!r} must be a number from 0, not {_short(id)}")
        if id in tokens:
            raise ModelError(f"the tokens {tokens[id]!r} and {token!r} have the same id, {id}")
        if not token:
            raise ModelError(f"the token with the id {id} is empty")
        if token.encode(errors="ignore").decode() != token:
            raise ModelError(f"the token {token!r} holds half of a surrogate pair, which is no text")
        tokens[id] = token
    return {token: id for id, token in tokens.items()}


def _pairs(merges: str, ids: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return the pairs in the second file. If a line is not a pair, the files are refused."""
    pairs: dict[tuple[str, str], int] = {}
    for number, line in enumerate(merges.split("\n"), 1):
        line = line.removesuffix("\r")
        if not line or line.startswith(_VERSION):  # (tokenizers skips such lines, wherever they are)
            continue
        left, _, right = line.partition(" ")
        pair = left, right
        if not left or not right or " " in right:
            raise _wrong(number, f"{_short(line)} is not two tokens with a space between them")
        if pair in pairs:
            raise _wrong(number, f"{left} and {right} are the pair of line {pairs[pair]}, too")
        for token in (left, right, left + right):
            if token not in ids:
                raise _wrong(number, f"{_short(token)} has no id in the other file")
        pairs[pair] = number
    if not is_spelled("".join(left + right for left, right in pairs)):
        pair = next(pair for pair in pairs if not is_spelled("".join(pair)))
        raise _wrong(pairs[pair], f"{_short(' '.join(pair))} has a character that stands for no byte")
    made = {left + right for left, right in pairs}
    for (left, right), number in pairs.items():
        if any(part.endswith(_END_OF_WORD) and part not in made for part in (left, right)):
            raise _wrong(
                number,
                f"{right!r} ends with {_END_OF_WORD}: this is the older form of BPE, in which words end so "
                f"(CLIP, GPT-1); it is not read here, but cpbpe.reference.byte_level.word_ends has it",
            )
    return list(pairs)


def _wrong(line: int, reason: str) -> ModelError:
    return ModelError(f"line {line} of the file of merges: {reason}")


def _taken(hints: Hints, pieces: Collection[bytes]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what to say if no pattern was given: a note, or an assumption if GPT-2's must be wrong."""
    if hints.pattern is not None:
        return (), ()
    says = "the two files do not say by which pattern texts are cut; GPT-2's is taken"
    cut = next((piece for piece in cut_pieces(pieces, PATTERNS[_USUAL]) if piece not in _PARTS), None)
    if cut is None:
        return (says,), ()
    way_out = given("pattern", ...)
    return (), (f"{says}, but it cuts the piece {cut!r}, so the model has another one: give it, {way_out}",)


_PARTS = ("'l", "'v", "'r")
"""The beginnings of the endings 'll, 've and 're. If a model was trained with GPT-2's pattern, the pattern
cuts no other piece of it: all other chunks are of one kind of character, perhaps with a space in front."""


# --- Writing --------------------------------------------------------------------------------------


def write(spec: ModelSpec, *, allow_differences: bool = False) -> Written:
    """Return both files of a byte-level model, written like GPT-2's."""
    if spec.alphabet != "bytes":
        raise ConversionError(
            f"{' and '.join(PAIRS[0])} hold a byte-level model, and this one is made of characters; "
            f"a tokenizer.json can hold it"
        )
    pieces = {piece for _, piece in normal(spec)}
    if missing := sum(bytes([byte]) not in pieces for byte in range(256)):
        raise ConversionError(
            f"{' and '.join(PAIRS[0])} have an id for each of the 256 bytes, and {missing} are missing in "
            f"this model; a tokenizer.json can hold it"
        )
    # 1. The pairs, and what they do not say.
    listed = pairs_of(spec)
    differences = list(_differences(spec, listed))
    refuse(
        differences,
        allow_differences,
        "there are no two files that are exactly this model",
        "To write them all the same, use cpbpe.convert with allow_differences=True, which lists them",
    )
    # 2. The files.
    ids = {token: id for id, token in sorted(spelled(spec).items())}
    lines = [f"{left} {right}\n" for left, right in listed.pairs.values()]
    data = joined(json.dumps(ids).encode(), "".join([f"{_VERSION}: 0.2\n", *lines]).encode())
    notes = []
    if spec.splitter is None or spec.splitter.pattern != PATTERNS[_USUAL]:
        notes.append(
            f"the files do not say how texts are cut: they are loaded with {said_again(spec.splitter, {})}"
        )
    return Written(data, tuple(differences), tuple(notes))


def _differences(spec: ModelSpec, listed: Listed) -> Iterator[Difference]:
    """Yield what a program that reads the files does differently, and what they cannot say."""
    yield from unsaid(spec)
    yield from listed.differences("a list of pairs")
    if listed.unmade:
        reason = "there is a piece that no merges make, and the files would say that it is a special token"
        if spec.whole:
            reason = (
                "a chunk that is a piece is taken whole, and the files have merges only, which do not make it"
            )
        yield Difference(reason, shown(from_letters(listed.unmade[0])))
    if spec.splitter is None or spec.splitter.pattern != PATTERNS[_USUAL]:
        reason = "the files are read with GPT-2's pattern, and this model has another one"
        yield Difference(reason, text_that_differs(spec, PATTERNS[_USUAL]))
    pieces = {piece for _, piece in normal(spec)}
    taken = {*map(to_letters, pieces)}
    for token in (token.decode(errors="replace") for token in special_tokens_of(spec).values()):
        if token in taken or token.encode() in pieces or "\ufffd" in token:
            yield Difference(f"the special token {token!r} is also how a piece is spelled, or is no text")
            break
        taken.add(token)
    if left := next((left for left, _ in listed.pairs.values() if left.startswith(_VERSION)), None):
        yield Difference(f"a line that begins with {_VERSION} is passed over", shown(from_letters(left)))


def read_back(spec: ModelSpec, written: Written) -> str:
    """Return what is wrong with the written files; "" if nothing is."""
    return wrong_pairs(spec, written, read(written.data, allow_differences=True).spec)
