"""The checks of a model: each looks at one thing and makes a finding of it, or none.

A check is a function from a `Subject` to findings. Its findings have codes that never change, because people
write them into scripts. `CHECKS` lists all that need nothing but the model.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cpbpe.engine.protocol import Engine
from cpbpe.lazy import kept
from cpbpe.lint.values import Finding, Reach
from cpbpe.model.spec import ModelSpec, PieceType
from cpbpe.text.utf8 import text_of

_MARK = "\U0010fffd"
MOST_EVIDENCE = 5
"""A finding shows this many examples."""


@dataclass(frozen=True)
class Subject:
    """What is checked."""

    spec: ModelSpec
    """The model."""
    engine: Engine
    """What encodes with it."""
    added: Mapping[str, int]
    """The tokens that were added to it."""
    size: int
    """The highest id plus one."""
    losses: tuple[Any, ...] | None
    """What does not come back from ids: reasons with examples; None if that is not known."""
    recorded: Mapping[str, Any]
    """What the file records about its training."""
    reach: Reach
    """Which pieces text can yield."""

    @kept
    def texts(self) -> list[str]:
        """The pieces as text."""
        return list(map(text_of, self.spec.pieces.texts))

    def of_type(self, *types: PieceType) -> list[int]:
        """The ids of all pieces of some types."""
        return [id for id, kind in enumerate(self.spec.pieces.types) if kind in types]

    @kept
    def text_ids(self) -> list[int]:
        """The ids of the pieces that text can become."""
        return self.of_type(PieceType.NORMAL, PieceType.USER_DEFINED)

    def named(self, ids: Iterable[int]) -> tuple[str, ...]:
        """A few pieces with their ids, as evidence."""
        return tuple(f"{id} {self.texts[id]!r}" for id in list(ids)[:MOST_EVIDENCE])

    def finding(
        self,
        code: str,
        severity: str,
        message: str,
        remedy: str,
        ids: Iterable[int] = (),
        evidence: tuple[str, ...] | None = None,
    ) -> Finding:
        """A finding; its evidence are the pieces, if there is nothing better."""
        every = tuple(ids)
        return Finding(
            code, severity, message, remedy, self.named(every) if evidence is None else evidence, every
        )


Check = Callable[[Subject], Iterator[Finding]]


def these(number: int, what: str) -> str:
    """A sentence about so many pieces; where it has "are|is", the first is for several, the other for one.

    >>> these(2, "are|is in no text"), these(1, "are|is in no text")
    ('2 pieces are in no text', '1 piece is in no text')
    """
    subject = "1 piece" if number == 1 else f"{number:,} pieces"
    return f"{subject} {re.sub(r'([a-z]+)[|]([a-z]+)', lambda m: m[2 if number == 1 else 1], what)}"


# --- Pieces that no text yields -------------------------------------------------------------------

_UNREACHABLE = {
    "blocked": (
        "warning",
        "never come|comes about: the parts merge with others first",
        "such pieces waste rows of the embedding; remove them, or give them the scores that training gives",
    ),
    "orphan": (
        "warning",
        "never come|comes about: no two symbols merge into that text",
        "add the parts that they are to be merged from, make them USER_DEFINED, or remove them",
    ),
    "shadowed": (
        "warning",
        "contain|contains a user-defined piece, which is found first and never merges",
        "remove them, or make the user-defined piece one of the special tokens",
    ),
    "crowded": (
        "warning",
        "begin|begins like 64 shorter user-defined pieces, of which one is found instead",
        "sentencepiece looks at 64 user-defined pieces that begin alike; have fewer of them",
    ),
    "normalized-away": (
        "warning",
        "are|is in no normalized text",
        "spell them as the normalizer leaves them, or change its rules",
    ),
    "not-utf8": (
        "note",
        "are|is made of bytes that no UTF-8 has",
        "nothing: byte-level models have all 256 bytes",
    ),
    "hidden-nul": ("warning", "is a NUL character, which is never found", "remove it"),
    "completed": (
        "note",
        "end|ends inside a character, and merge|merges with whatever goes on with it",
        "nothing, if they are needed on the way to longer pieces; their own ids never occur",
    ),
    "cut-apart": (
        "warning",
        "are|is never in one chunk: the pattern always cuts",
        "train with the pattern that the model is used with; these ids never occur",
    ),
    "unused": (
        "note",
        "are|is UNUSED: taken apart again, and never shown",
        "nothing, if they are needed on the way to longer pieces; their ids are free for special tokens",
    ),
    "unused-unknown": (
        "note",
        "stand|stands for unknown characters, and there are none: they become bytes",
        "nothing: sentencepiece asks for this piece",
    ),
    "unused-bytes": (
        "note",
        "stand|stands for bytes that no text yields: each character with one is a piece, or there is none",
        "nothing: byte fallback needs all 256 pieces",
    ),
    "no-witness": (
        "note",
        "could not be decided: no text was found that yields it, and no proof that there is none",
        "give a large corpus, to see whether they occur",
    ),
}


def unreachable(subject: Subject) -> Iterator[Finding]:
    """Pieces that no text yields, by the reason."""
    by_code: dict[str, list[int]] = defaultdict(list)
    for id, reason in sorted(subject.reach.reasons.items()):
        by_code[reason.code].append(id)
    for code, (severity, what, remedy) in _UNREACHABLE.items():
        ids = by_code.get(code)
        if ids:
            told = [
                f"{id} {subject.texts[id]!r}: {subject.reach.reasons[id].detail}"
                for id in ids[:MOST_EVIDENCE]
            ]
            yield subject.finding(code, severity, these(len(ids), what), remedy, ids, tuple(told))


def hard_to_reach(subject: Subject) -> Iterator[Finding]:
    """Pieces that only odd texts yield."""
    if literal := sorted(subject.reach.literal):
        yield subject.finding(
            "literal-space",
            "warning",
            these(len(literal), "come|comes about only in texts that have the character ▁ (U+2581) itself"),
            "remove them, or switch remove_extra_whitespaces off",
            literal,
        )
    if whole := sorted(subject.reach.whole):
        yield subject.finding(
            "whole-only",
            "note",
            these(
                len(whole),
                "come|comes about only where a chunk is the piece and taken whole: no merges lead there",
            ),
            "programs that have merges only, without the look-up of whole chunks, never yield them",
            whole,
        )


# --- Scores ---------------------------------------------------------------------------------------


def scores(subject: Subject) -> Iterator[Finding]:
    """Scores that are equal, or no numbers."""
    numbers, texts = subject.spec.pieces.numbers(), subject.texts
    normal = subject.of_type(PieceType.NORMAL)
    made = [id for id in normal if len(texts[id]) > 1 and numbers[id] == numbers[id]]
    groups: dict[float, list[int]] = defaultdict(list)
    for id in made:
        groups[numbers[id]].append(id)
    alike = sorted((ids for ids in groups.values() if len(ids) > 1), key=lambda ids: (-len(ids), ids))
    if alike:
        every = sorted(id for ids in alike for id in ids)
        shown = tuple(
            f"{numbers[ids[0]]:g}: {len(ids)} pieces, such as {texts[ids[0]]!r} and {texts[ids[1]]!r}"
            for ids in alike[:MOST_EVIDENCE]
        )
        yield subject.finding(
            "equal-scores",
            "note",
            these(
                len(every),
                "share|shares a score with others: which merges first depends on places in the text",
            ),
            "give every piece a score of its own, as training does, if it should not depend on that",
            every,
            shown,
        )
    odd = [id for id in subject.text_ids if abs(numbers[id]) == float("inf") or numbers[id] != numbers[id]]
    if odd:
        yield subject.finding(
            "odd-scores",
            "error",
            these(len(odd), "have|has a score that is infinite or no number"),
            "give them finite scores; libraries order such scores in different ways",
            odd,
        )


# --- Spellings ------------------------------------------------------------------------------------


def alike(subject: Subject) -> Iterator[Finding]:
    """Pieces that are one text after normalization, or in another spelling of Unicode."""
    import unicodedata

    texts = subject.texts
    if subject.spec.normalizer.charsmap:
        ids = [id for id in subject.text_ids if not texts[id].isascii() or texts[id].lower() != texts[id]]
        escaped = subject.spec.normalizer.escape_whitespaces
        plain = [texts[id].replace("▁", " ") if escaped else texts[id] for id in ids]
        # (A mark at both ends keeps the spaces there.)
        marked = [f"{_MARK}{text}{_MARK}" for text in plain]
        rewritten = subject.engine.variant(prefix=False).normalize_batch(marked, False)
        normal = [text.strip(_MARK) for text in rewritten or ()]
        known = subject.spec.ids
        pairs = [
            (id, other)
            for id, text in zip(ids, normal, strict=False)
            if text != texts[id] and (other := known.get(text.encode())) is not None and other != id
        ]
        if pairs:
            yield subject.finding(
                "alike-after-normalizing",
                "warning",
                these(len(pairs), "become|becomes the text of another piece by normalization"),
                "remove them: the normalizer makes the other piece of their text",
                [id for id, _ in pairs],
                tuple(f"{texts[a]!r} becomes {texts[b]!r}" for a, b in pairs[:MOST_EVIDENCE]),
            )
    by_form: dict[str, list[int]] = defaultdict(list)
    for id in subject.text_ids:
        if not texts[id].isascii() and "\ufffd" not in texts[id]:
            by_form[unicodedata.normalize("NFC", texts[id])].append(id)
    same = [ids for ids in by_form.values() if len(ids) > 1]
    if same:
        yield subject.finding(
            "alike-in-unicode",
            "note",
            these(sum(map(len, same)), "look like others: Unicode has several spellings of the same text"),
            "bring texts into one Unicode normal form before training, such as NFC",
            sorted(id for ids in same for id in ids),
            tuple(" and ".join(ascii(texts[id]) for id in ids) for ids in same[:MOST_EVIDENCE]),
        )


def special_looks(subject: Subject) -> Iterator[Finding]:
    """Ordinary pieces that look like special tokens, and special tokens that look like ordinary text."""
    special = re.compile(r"▁?(<\|[^|\s]{1,40}\|>|</?[A-Za-z_][\w-]{0,30}>|\[[A-Z][A-Z_]{1,20}[0-9]*\])")
    byte = re.compile(r"<0[xX][0-9A-Fa-f]{2}>")
    # 1. The pieces, by their looks.
    texts, types = subject.texts, subject.spec.pieces.types
    found: dict[int, list[int]] = {PieceType.NORMAL: [], PieceType.USER_DEFINED: []}
    bytes_like = []
    for id in subject.text_ids:
        text = texts[id]
        if len(text) > 2 and text[-1] in ">]":
            if special.fullmatch(text) and not byte.fullmatch(text):
                found[types[id]].append(id)
            elif byte.fullmatch(text) and types[id] != PieceType.BYTE:
                bytes_like.append(id)
    # 2. What to say of them.
    if ids := found[PieceType.USER_DEFINED]:
        yield subject.finding(
            "user-defined-looks-special",
            "warning",
            these(
                len(ids),
                "look|looks like a special token, but every text can spell it: the type is USER_DEFINED",
            ),
            "if only programs should insert them, give them the type CONTROL",
            ids,
        )
    reachable = [id for id in found[PieceType.NORMAL] if id in subject.reach.texts]
    if reachable:
        yield subject.finding(
            "looks-special",
            "warning",
            these(len(reachable), "look|looks like a special token, but ordinary text yields it"),
            "if they are special, give them the type CONTROL; if they are HTML or the like, nothing",
            reachable,
        )
    reserved = [id for id in found[PieceType.NORMAL] if id not in subject.reach.texts]
    if reserved:
        yield subject.finding(
            "reserved",
            "note",
            these(len(reserved), "look|looks like a special token, and no text yields it"),
            "give them the type CONTROL, so that programs can insert them",
            reserved,
        )
    if bytes_like:
        yield subject.finding(
            "looks-like-byte",
            "error",
            these(len(bytes_like), "are|is spelled as a byte, but of another type"),
            "give them the type BYTE and switch byte_fallback on, or spell them <0x00> to <0xFF>",
            bytes_like,
        )
    plain = [
        id
        for id in subject.of_type(PieceType.CONTROL)
        if len(texts[id]) < 3 or texts[id].strip("▁").isalpha() or not texts[id].isprintable()
    ]
    if plain:
        yield subject.finding(
            "control-looks-like-text",
            "warning",
            these(len(plain), "of the type CONTROL look|looks like text, which cannot become it"),
            "give them the type NORMAL, or a spelling that text does not have, such as <sep>",
            plain,
        )


def odd_characters(subject: Subject) -> Iterator[Finding]:
    """Pieces with characters that nobody sees."""
    texts = subject.texts
    invisible = set("\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff")
    invisible |= {chr(code) for code in (*range(9), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0))}
    ids = [
        id
        for id in subject.text_ids
        if not texts[id].isprintable() and len(texts[id]) > 1 and invisible.intersection(texts[id])
    ]
    if ids:
        yield subject.finding(
            "invisible",
            "note",
            these(len(ids), "of several characters have|has one that is invisible or controls a terminal"),
            "remove such characters from the corpus before training",
            ids,
            tuple(f"{id} {texts[id]!a}" for id in ids[:MOST_EVIDENCE]),
        )
    joined = "".join(texts[id] for id in subject.text_ids)
    bad = [id for id in subject.text_ids if "\ufffd" in texts[id]] if "\ufffd" in joined else []
    literal = [id for id in bad if b"\xef\xbf\xbd" in subject.spec.pieces.texts[id]]
    if literal:
        yield subject.finding(
            "replacement",
            "note",
            these(len(literal), "have|has the character U+FFFD, which stands for broken text"),
            "the corpus was decoded wrongly somewhere; repair it before training",
            literal,
        )


def missing_characters(subject: Subject) -> Iterator[Finding]:
    """Characters that are in pieces, or in ASCII, but are no pieces themselves."""
    if subject.spec.alphabet == "bytes":
        return
    texts, known = subject.texts, subject.spec.ids
    types = subject.spec.pieces.types
    normal = subject.of_type(PieceType.NORMAL)
    first: dict[str, int] = {}
    for id in normal:
        for character in texts[id] if len(texts[id]) > 1 else ():
            first.setdefault(character, id)

    def is_piece(character: str) -> bool:
        id = known.get(character.encode())
        return id is not None and types[id] in (PieceType.NORMAL, PieceType.USER_DEFINED)

    missing = sorted((id, c) for c, id in first.items() if not is_piece(c) and c != "\ufffd")
    if missing:
        yield subject.finding(
            "character-missing",
            "warning",
            f"{len(missing)} characters are in pieces, but are no pieces themselves: alone, they fall to "
            f"bytes or become unknown",
            "add a piece for each of them, with the lowest scores",
            sorted({id for id, _ in missing}),
            tuple(f"{c!r}, which is in {texts[id]!r}" for id, c in missing[:MOST_EVIDENCE]),
        )
    space = "▁" if subject.spec.normalizer.escape_whitespaces else " "
    plain = subject.engine.variant(prefix=False).normalize_str
    ascii_missing = [
        c for c in (space, *map(chr, range(33, 127))) if not is_piece(c) and (c == space or plain(c) == c)
    ]
    if ascii_missing:
        yield subject.finding(
            "ascii-missing",
            "warning",
            f"{len(ascii_missing)} visible ASCII characters, or the space, are no pieces",
            "train with them as required_chars, so that ordinary text needs no bytes and loses nothing",
            (),
            tuple(map(repr, ascii_missing[:20])),
        )


# --- Numbers --------------------------------------------------------------------------------------


def digits(subject: Subject) -> Iterator[Finding]:
    """Whether numbers are cut in one way."""
    counts: Counter[int] = Counter()
    examples: dict[int, int] = {}
    for id in subject.text_ids:
        text = subject.texts[id].lstrip("▁ ")
        if text.isascii() and text.isdigit() and id in subject.reach.texts and len(text) > 1:
            counts[len(text)] += text == subject.texts[id]
            examples.setdefault(len(text), id)
    uneven = [length for length in counts if length <= 3 and 0 < counts[length] < 10**length] + [
        length for length in counts if length > 3
    ]
    if uneven:
        yield subject.finding(
            "uneven-digits",
            "note",
            "some numbers are one piece and others of the same length are several: "
            + ", ".join(f"{counts[n]} of {n} digits" for n in sorted(uneven)),
            "train with split_digits, or with a pattern that cuts numbers evenly, if arithmetic matters",
            [examples[length] for length in sorted(uneven)],
        )


def repeats(subject: Subject) -> Iterator[Finding]:
    """Long runs of one character."""
    ids = [
        id
        for id in subject.text_ids
        if len(text := subject.texts[id].lstrip("▁ ")) >= 32 and len(set(text)) == 1
    ]
    if ids:
        yield subject.finding(
            "long-runs",
            "note",
            these(len(ids), "are|is one character 32 times or more"),
            "nothing, if lines of such characters matter; else limit the length of pieces in training",
            ids,
        )


CHECKS: tuple[Check, ...] = (
    unreachable,
    hard_to_reach,
    scores,
    alike,
    special_looks,
    odd_characters,
    missing_characters,
    digits,
    repeats,
)
"""The checks of the pieces."""
