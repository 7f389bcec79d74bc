"""The checks of what is not in single pieces: special tokens, settings, sizes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from cpbpe.lint.checks import Check, Subject
from cpbpe.lint.values import Finding
from cpbpe.model.spec import PieceType
from cpbpe.spelling import advised, given

_NAMES = ("unk", "bos", "eos", "pad")
_TRAINED = {"unk": "UNKNOWN", "bos": "CONTROL", "eos": "CONTROL", "pad": "CONTROL"}


def special_ids(subject: Subject) -> Iterator[Finding]:
    """Whether the special ids that the file records are those of its special pieces."""
    spec, recorded = subject.spec, subject.recorded
    wrong, other_type, ids = [], [], set()
    for name, piece in zip(_NAMES, spec.special_pieces, strict=True):
        there = spec.ids.get(piece)
        said = recorded.get(f"{name}_id")
        text = piece.decode(errors="replace")
        kind = None if there is None else PieceType(spec.pieces.types[there]).name
        if isinstance(said, int) and said >= 0 and there is not None and said != there:
            wrong.append(f"{name}_id is {said} in the settings, but the piece {text!r} has the id {there}")
            ids.add(there)
        if isinstance(said, int) and said >= 0 and there is None and spec.alphabet == "characters":
            wrong.append(f"{name}_id is {said} in the settings, but there is no piece {text!r}")
        if kind is not None and kind != _TRAINED[name] and there is not None:
            other_type.append(f"{text!r} is {kind}, not {_TRAINED[name]}")
            ids.add(there)
    if wrong:
        yield subject.finding(
            "special-ids",
            "error",
            "the settings of the file and its pieces disagree about special ids",
            "correct the settings, or the order of the pieces; programs read one or the other",
            sorted(ids),
            tuple(wrong),
        )
    if other_type:
        yield subject.finding(
            "special-type",
            "warning",
            "special pieces have a type with which text can yield them, or that does not mean what it should",
            "give them the type CONTROL (unk: UNKNOWN); else texts from strangers can spell them",
            sorted(ids),
            tuple(other_type),
        )


def special_missing(subject: Subject) -> Iterator[Finding]:
    """Special pieces that models usually need."""
    specials = dict(zip(_NAMES, subject.engine.specials, strict=True))
    added = {text.strip("<|>[]/ ").lower() for text in subject.added}
    ends = {"endoftext", "end", "eos", "s", "end_of_text", "eot", "im_end"}
    if specials["eos"] is None and not ends & added and not subject.of_type(PieceType.CONTROL):
        yield subject.finding(
            "no-eos",
            "warning",
            "there is no piece that ends a text",
            "add one"
            + advised(": tok.with_special_tokens(['</s>'])", ", in Python with with_special_tokens"),
        )
    if specials["pad"] is None:
        yield subject.finding(
            "no-pad",
            "note",
            "there is no piece that fills batches",
            "add one, or mask what is filled; do not fill with unk or eos unless the model was trained so",
        )


def special_alike(subject: Subject) -> Iterator[Finding]:
    """Special tokens that begin like others, or are spelled like pieces."""
    control = [text for text in (subject.texts[id] for id in subject.of_type(PieceType.CONTROL)) if text]
    tokens = sorted({*subject.added, *control})
    prefixed = [(a, b) for a, b in pairwise(tokens) if b.startswith(a)]
    if prefixed:
        yield subject.finding(
            "special-prefix",
            "warning",
            f"{len(prefixed)} special tokens begin with another one: libraries differ in which is found",
            "spell them so that none begins another, as <|a|> and <|ab|> are",
            (),
            tuple(f"{b!r} begins with {a!r}" for a, b in prefixed[:5]),
        )
    used = {*subject.added.values()}
    gaps = [id for id in range(len(subject.spec.pieces), subject.size) if id not in used]
    if gaps:
        yield subject.finding(
            "gap",
            "note",
            f"{len(gaps):,} ids between the pieces and the added tokens are not in use",
            "nothing, if they are kept for later; a model may still predict them",
            (),
            (f"{gaps[0]} to {gaps[-1]}",),
        )


def losses(subject: Subject) -> Iterator[Finding]:
    """Texts that do not come back."""
    if subject.losses:
        yield subject.finding(
            "loses-text",
            "warning",
            "some texts do not come back from their ids",
            f"train with {given('preset', 'lossless')}, which loses nothing",
            (),
            tuple(map(str, subject.losses)),
        )
    if subject.losses is None:
        yield subject.finding(
            "loss-unknown",
            "note",
            "it could not be told whether every text comes back",
            advised("tok.is_lossless() says why", "'cpbpe inspect' says why"),
        )
    spec = subject.spec
    if spec.alphabet == "characters" and not spec.byte_fallback:
        yield subject.finding(
            "no-byte-fallback",
            "warning",
            "characters that are not in the vocabulary are all the same unknown piece",
            f"train with {given('byte_fallback', True)}",
        )


def sizes(subject: Subject) -> Iterator[Finding]:
    """Sizes that make matrices slow, or that are not what the file says."""
    size = subject.size
    if size % 64:
        up = -(-size // 64) * 64, -(-size // 128) * 128
        more = f"{up[0]:,}" if up[0] == up[1] else f"{up[0]:,} (a multiple of 64) or {up[1]:,} (of 128)"
        yield subject.finding(
            "odd-size",
            "note",
            f"there are {size:,} ids, which is no multiple of 64: GPUs multiply such matrices more slowly",
            f"make the embedding larger than the vocabulary: {more} rows",
        )
    said = subject.recorded.get("vocab_size")
    if isinstance(said, int) and said > 0 and said != len(subject.spec.pieces):
        yield subject.finding(
            "recorded-size",
            "note",
            f"the file records vocab_size = {said:,}, but has {len(subject.spec.pieces):,} pieces",
            "nothing: pieces were added or removed after training, and ids count",
        )


def spaces(subject: Subject) -> Iterator[Finding]:
    """Words that have one piece at the beginning of a text and another elsewhere."""
    rules = subject.spec.normalizer
    if subject.spec.alphabet == "bytes" or rules.add_dummy_prefix or not rules.escape_whitespaces:
        return
    begins = sum(text.startswith("▁") and len(text) > 2 for text in subject.texts)
    if begins * 4 > len(subject.texts):
        yield subject.finding(
            "no-dummy-prefix",
            "note",
            "a word at the beginning of a text has other ids than after a space: add_dummy_prefix is off",
            f"nothing, if the model was trained so; else encode with {given('prefix_space', True)}",
        )
    if rules.remove_extra_whitespaces:
        yield subject.finding(
            "squeezed-without-prefix",
            "note",
            "spaces at the beginning of texts are removed, so that parts of a text cannot be joined again",
            "switch remove_extra_whitespaces off, or add_dummy_prefix on",
        )


SETTINGS_CHECKS: tuple[Check, ...] = (special_ids, special_missing, special_alike, losses, sizes, spaces)
"""The checks of everything else."""
