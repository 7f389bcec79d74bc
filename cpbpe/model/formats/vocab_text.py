r"""SentencePiece's `.vocab`: one piece and its score in a line, with a tab between them (also as `.tsv`).

It is a list for people, not a model: types and settings are missing. If sentencepiece's trainer made the
file, names and scores show most types; where they do not, that is a difference. The settings are assumed to
be those of Llama: text is taken as it is, with a space in front.

Nothing is escaped. A tab in a piece does no harm, because the last tab in a line counts. Line feeds at the
beginning of a piece look like empty lines. Such lines have no score, so they are taken as part of the next
piece. A line feed anywhere else in a piece is an error.
"""

from __future__ import annotations

import re
from array import array
from typing import NoReturn

from cpbpe.errors import ConversionError, ModelError
from cpbpe.model import validity
from cpbpe.model.formats.values import TO_CONVERT, Difference, ReadModel, Written, refuse, unlike
from cpbpe.model.spec import ModelSpec, NormalizerSpec, Pieces, PieceType

_ALLOW_READ = (
    "To read it all the same, use cpbpe.convert with allow_differences=True, which lists them; better, load "
    "the .model file that belongs to it"
)
_NUMBER = rb"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|inf|nan)"
_RECORD = re.compile(rb"(\n*[^\n]*)\t(" + _NUMBER + rb")(?:\r?\n|\Z)")
_UNKNOWN = b"<unk>"
_CONTROL = (b"<s>", b"</s>", b"<pad>")
RULES = NormalizerSpec("identity", remove_extra_whitespaces=False)
"""Text as it is, with a space in front, as in Llama."""
_ASSUMED = (
    "a .vocab does not say how text is normalized; it is taken as it is, with a space in front, as Llama's "
    "tokenizer does. To change this, see docs/formats.md"
)


def read(data: bytes, *, allow_differences: bool = False) -> ReadModel:
    """Return the model in a `.vocab`; a ConversionError if its types or scores are not certain."""
    texts, numbers = _columns(data.removeprefix(b"\xef\xbb\xbf"))
    scores = array("f", map(float, numbers))
    if any(score != score for score in scores):
        _wrong("it has a score that is no number (nan)")
    # 1. The types that names show.
    types = bytearray([PieceType.NORMAL]) * len(texts)
    has_bytes = set(validity.BYTE_PIECES) <= set(texts)
    names = {_UNKNOWN: PieceType.UNKNOWN, **dict.fromkeys(_CONTROL, PieceType.CONTROL)}
    if has_bytes:
        names.update(dict.fromkeys(validity.BYTE_PIECES, PieceType.BYTE))
    for id, text in enumerate(texts):
        types[id] = names.get(text, PieceType.NORMAL)
    validity.hide_nul(texts, types, has_bytes)
    # 2. The types that scores show: the trainer gives 0 to special pieces, and -0 to the first other piece.
    special = [id for id, number in enumerate(numbers) if number == b"0" and types[id] == PieceType.NORMAL]
    differences = []
    if special and b"-0" in numbers:
        for id in special:
            types[id] = PieceType.CONTROL if looks_like_a_mark(texts[id]) else PieceType.USER_DEFINED
        shown = texts[special[0]].decode(errors="replace")
        kind = PieceType(types[special[0]]).name
        reason = f"it does not say whether {shown!r} is CONTROL or USER_DEFINED, and it is taken for {kind}"
        differences.append(Difference(reason, shown))
    normal = [score for score, type in zip(scores, types, strict=True) if type == PieceType.NORMAL]
    if not all(score == round(score) for score in normal if abs(score) < 1e9):
        reason = (
            "its scores are fractions, as those of a Unigram model are, and a BPE model's are usually not"
        )
        differences.append(Difference(reason))
    refuse(differences, allow_differences, "it is not certain which model this .vocab is of", _ALLOW_READ)
    spec = ModelSpec(Pieces.of_lists(texts, scores, types), RULES, byte_fallback=has_bytes)
    validity.check(spec)
    return ReadModel(spec, tuple(differences), assumptions=(_ASSUMED,))


def _columns(data: bytes) -> tuple[list[bytes], list[bytes]]:
    """Return the texts, and the scores as they are written."""
    texts, numbers, at = [], [], 0
    end = len(data.rstrip(b"\r\n"))
    while at < end:
        found = _RECORD.match(data, at)
        if found is None:
            line = data.count(b"\n", 0, at) + 1
            _wrong(f"line {line} has no score: a line is a piece, a tab and a number")
        texts.append(found[1])
        numbers.append(found[2])
        at = found.end()
    if not texts:
        _wrong("it is empty")
    if len(numbers) > 2 and numbers == [b"%d" % id for id in range(len(numbers))]:
        _wrong(
            "its numbers are ids, not scores, and without scores nobody knows what is merged first; load the "
            ".model file that belongs to it"
        )
    return texts, numbers


def looks_like_a_mark(text: bytes) -> bool:
    """Whether a text is spelled as special tokens often are: `<s>`, `[INST]`."""
    return len(text) > 2 and text[:1] in b"<[" and text[-1:] in b">]"


def write(spec: ModelSpec, *, allow_differences: bool = False) -> Written:
    r"""Return the `.vocab` of a model if reading it gives the same model; otherwise raise a ConversionError.

    >>> pieces = [(b"<unk>", 0, PieceType.UNKNOWN), ("▁".encode(), -0.0, PieceType.NORMAL)]
    >>> write(ModelSpec(Pieces.of(pieces), RULES)).data.decode()
    '<unk>\t0\n▁\t-0\n'
    """
    if spec.alphabet == "bytes":
        raise ConversionError(
            "a .vocab holds pieces of text, and this model is byte-level: its pieces are bytes"
        )
    lines = zip(spec.pieces.texts, spec.pieces.numbers(), strict=True)
    data = b"".join(b"%b\t%b\n" % (text, _score(score)) for text, score in lines)
    differences = [*_of_settings(spec), *_of_pieces(spec, data)]
    refuse(differences, allow_differences, "a .vocab cannot say what this model is", TO_CONVERT)
    return Written(data, tuple(differences), ("types, settings and special tokens are not stored",))


def _score(score: float) -> bytes:
    """Return a score as sentencepiece writes it, but with more digits if reading it again needs them."""
    short = b"%g" % score
    return short if array("f", [float(short)])[0] == score or score != score else b"%.9g" % score


def _of_settings(spec: ModelSpec) -> list[Difference]:
    found = []
    rules, usual = spec.normalizer, RULES
    for given, expected, reason in (
        (rules.charsmap, b"", f"the rules {rules.name or 'of the normalizer'!r}"),
        (rules.add_dummy_prefix, usual.add_dummy_prefix, "that there is no dummy prefix"),
        (rules.remove_extra_whitespaces, usual.remove_extra_whitespaces, "that spaces are removed"),
        (rules.escape_whitespaces, usual.escape_whitespaces, "that spaces are not escaped"),
        (rules.suffix, usual.suffix, "that the prefix is at the end"),
        (rules.prefix_before_space, True, "that only text without a space in front gets a prefix"),
        (spec.denormalizer, None, "that there is a denormalizer"),
        (spec.added, (), "which tokens were added"),
    ):
        if given != expected:
            found.append(
                Difference(f"it does not say {reason}" if reason[:4] == "that" else f"it lacks {reason}")
            )
    return found


def _of_pieces(spec: ModelSpec, data: bytes) -> list[Difference]:
    """Return what differs when the file is read again."""
    try:
        again = read(data, allow_differences=True)
    except ModelError as error:
        raise ConversionError(f"a .vocab with these pieces cannot be read again: {error}") from None
    found = list(again.differences)
    before, after = spec.pieces, again.spec.pieces
    if before.texts != after.texts or before.scores != after.scores:
        found.append(Difference("some pieces or scores are read in another way"))
    else:
        for id, (type, new) in enumerate(zip(before.types, after.types, strict=True)):
            if type != new:
                shown = before.texts[id].decode(errors="replace")
                reason = f"{shown!r} is {PieceType(type).name}, and would be read as {PieceType(new).name}"
                found.append(Difference(reason))
                break
    if spec.byte_fallback != again.spec.byte_fallback:
        found.append(Difference("it does not say whether the model has byte fallback"))
    return found


def _wrong(problem: str) -> NoReturn:
    raise ModelError(f"not a .vocab that cpbpe can read: {problem}")


def read_back(spec: ModelSpec, written: Written) -> str:
    """Return what is wrong with a written file; "" if nothing is."""
    again = read(written.data, allow_differences=True).spec
    return "" if written.differences else unlike(spec, again, "pieces", "scores", "settings")
