"""The added tokens of a tokenizer.json: CONTROL pieces, USER_DEFINED ones, or tokens with flags.

The other library looks for all of them in every text, before it does anything else. A *special* one is left
out of decoded text, if that is asked for. Here texts yield these only if that is allowed.

A token that is not special, and that is written in texts as in the normalized text, is a USER_DEFINED piece,
provided that there is no dummy prefix, which the library would put in front of what follows it. All others
keep their flags, see `Carried.tokens`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import Any

from cpbpe.model.formats.tokenizer_json.checked import member, shown, typed, wrong
from cpbpe.model.formats.tokenizer_json.spaces import Json
from cpbpe.model.formats.tokenizer_json.special import flags_of
from cpbpe.model.formats.tokenizer_json.steps import Steps
from cpbpe.model.formats.values import Difference
from cpbpe.model.piece_type import PLAIN


@dataclass
class Added:
    """The added tokens of a file."""

    control: set[str] = field(default_factory=set)
    """Those that are CONTROL pieces, or special tokens beyond the pieces."""
    user_defined: set[str] = field(default_factory=set)
    """Those that are USER_DEFINED pieces."""
    special: set[str] = field(default_factory=set)
    """Those that the file calls special."""
    flags: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The flags of those that are more, or less, than special: `Carried.tokens`."""
    pieces: list[str] = field(default_factory=list)
    """All tokens that are pieces, by id."""
    beyond: tuple[tuple[bytes, int], ...] = ()
    """The others, with their ids."""
    notes: list[str] = field(default_factory=list)

    def is_special(self, token: str | None) -> bool:
        """Whether the file calls a token special."""
        return token in self.special

    def pieces_of(self, vocab: dict[str, int]) -> Iterable[str]:
        """All tokens that are pieces, by id."""
        return self.pieces


def read_added(
    given: Any, vocab: dict[str, int], steps: Steps, unknown: str | None, made: Container[str]
) -> Added:
    """The added tokens, and which tokens are pieces. `made` are those that merges make."""
    # 1. The tokens of the file.
    found = Added()
    ids: dict[str, int] = {}
    free = len(vocab)
    kind: bool | None = None  # whether the USER_DEFINED ones are looked for in normalized text
    tokens_given = typed([] if given is None else given, list, "added_tokens")
    overlaps = _overlap(tokens_given)
    for place, token in enumerate(tokens_given):
        where = f"added_tokens[{place}]"
        text, id = checked_token(typed(token, dict, where), where)
        expected = vocab.get(text, ids.get(text))
        if expected is None:
            expected, free = free, free + 1
        if id != expected:
            wrong(f"{where}, {shown(text)}, has the id {id}, and tokenizers would give it {expected}")
        ids[text] = id
        is_special = member(token, "special", bool, where, False)
        if is_special:
            found.special.add(text)
        flags = flags_of(token, steps.normalizes, where)
        is_plain = not is_special and {*flags} <= {PLAIN, "late", "normalized"}
        if is_plain and not overlaps and _can_be_user_defined(text, steps):
            # Those that are to be normalized are looked for between the others, not side by side with them.
            normalized = member(token, "normalized", bool, where, False)
            kind = normalized if kind is None else kind
            if normalized == kind:
                found.user_defined.add(text)
                continue
        is_made = text in made or (len(text) == 1 and text in vocab)
        if not is_made:
            found.control.add(text)
        if flags or is_made:
            found.flags[text] = flags
    if kind is False and any(not {"late", "normalized"}.isdisjoint(flags) for flags in found.flags.values()):
        # What is found in normalized text comes after them, so that they need to be found by then.
        found.flags.update(dict.fromkeys(found.user_defined, (PLAIN,)))
    if unknown in found.control:
        found.control.discard(unknown)
        found.notes.append(f"tokenizers finds the unknown token {unknown} in every text that spells it out")
    # 2. Pieces are all up to the first gap, and then up to the last USER_DEFINED one.
    tokens = {id: text for text, id in {**vocab, **ids}.items()}
    size = next(id for id in range(len(tokens) + 1) if id not in tokens)
    own = {id for text, id in vocab.items() if text not in ids}
    needed = max([-1, *own, *(ids[text] for text in found.user_defined)]) + 1
    if needed > size:
        wrong(f"no token has the id {size}, and ids of pieces have no gaps")
    size = needed if size < len(tokens) else max(needed, len(vocab))
    found.pieces = [tokens[id] for id in range(size)]
    beyond = sorted(id for id in tokens if id >= size)
    found.beyond = tuple((tokens[id].encode(errors="replace"), id) for id in beyond)
    found.flags.pop(unknown or "", None)
    between = next((text for text, flags in found.flags.items() if "normalized" in flags), None)
    if between is not None and steps.in_two_steps:
        reason = f"text after {shown(between)} gets another prefix than text at the beginning (normalized)"
        steps.differences.append(Difference(reason, f"{between}a"))
    elif between is not None and steps.normalizer.remove_extra_whitespaces:
        reason = f"a text is normalized before {shown(between)} is looked for, and not again after it"
        steps.differences.append(Difference(reason, f"{between} a"))
    if (spaced := next((text for text in ids if "▁" in text), None)) is not None:
        found.notes.append(
            f"tokenizers decodes {shown(spaced)} with a space for ▁, and cpbpe as it is written"
        )
    if found.special:
        found.notes.append(
            "tokenizers finds special tokens in every text, and cpbpe only those that allowed_special allows"
        )
    return found


def _overlap(given: list[Any]) -> bool:
    """Whether tokens that are special, or have flags, may overlap others.

    Where two of them share characters of a text, or one takes spaces of the other, the library lets the one
    win that begins first. USER_DEFINED pieces are only looked for in what is left after others were found.
    """
    odd: set[str] = set()
    plain: set[str] = set()
    strips = False
    for token in given:
        if isinstance(token, dict) and isinstance(text := token.get("content"), str):
            flags = {name for name in ("special", "single_word", "lstrip", "rstrip") if token.get(name)}
            strips = strips or "lstrip" in flags or "rstrip" in flags
            (odd if flags else plain).add(text)
    if not odd or not plain:
        return False
    begins = {text[:size] for text in odd for size in range(1, len(text) + 1)}
    ends = {text[size:] for text in odd for size in range(1, len(text))}
    joined = "\0".join(odd)
    for text in plain:
        size = len(text)
        if (
            text in joined
            or any(text[at:] in begins or text[:at] in ends for at in range(1, size))
            or any(text[at:end] in odd for at in range(size) for end in range(at + 1, size + 1))
            or (strips and any(character.isspace() for character in text))
        ):
            return True
    return False


def checked_token(token: Json, where: str) -> tuple[str, int]:
    """The text and the id of an added token."""
    text, id = member(token, "content", str, where), member(token, "id", int, where)
    if not text:
        wrong(f"{where} is empty")
    try:
        text.encode()
    except UnicodeEncodeError:
        wrong(f"{where}, {shown(text)}, holds half of a surrogate pair, which is no text")
    return text, id


def _can_be_user_defined(text: str, steps: Steps) -> bool:
    """Whether a token is found in the same texts, and what is around it is encoded in the same way."""
    rules = steps.normalizer
    plain = not (rules.add_dummy_prefix or rules.remove_extra_whitespaces or rules.charsmap)
    return plain and steps.user_defined is None and not {" ", "▁"} & {*text}


def listed(texts: list[str]) -> str:
    """Some tokens in a message."""
    return ", ".join(map(repr, texts[:3])) + (f" and {len(texts) - 3} more" if len(texts) > 3 else "")
