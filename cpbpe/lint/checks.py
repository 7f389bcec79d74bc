"""The checks of a model: each looks at one thing and yields findings if something is wrong with it.

A check is a function from a `Subject` to findings. `CHECKS` lists all that need nothing but the model;
`findings.py` has the messages.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cpbpe.engine.protocol import Engine
from cpbpe.lazy import kept
from cpbpe.lint.findings import CODES, MOST_EVIDENCE, Finding, Reach
from cpbpe.model.spec import ModelSpec, PieceType
from cpbpe.spelling import advised, given
from cpbpe.text.drawn import quoted
from cpbpe.text.utf8 import text_of

_MARK = "\U0010fffd"
"""A character that stands around a text while it is normalized, so that spaces at its ends stay."""
_NAMES = {"unk": "UNKNOWN", "bos": "CONTROL", "eos": "CONTROL", "pad": "CONTROL"}
"""The special pieces, and the types that they should have."""
_LOOKS_SPECIAL = re.compile(r"▁?(<\|[^|\s]{1,40}\|>|</?[A-Za-z_][\w-]{0,30}>|\[[A-Z][A-Z_]{1,20}[0-9]*\])")
_LOOKS_LIKE_BYTE = re.compile(r"<0[xX][0-9A-Fa-f]{2}>")
_INVISIBLE = {
    *"\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff",
    *map(chr, (*range(9), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0))),
}


@dataclass(frozen=True)
class Subject:
    """A model to check, with everything that the checks need."""

    spec: ModelSpec
    """The model."""
    engine: Engine
    """Its engine."""
    added: Mapping[str, int]
    """The tokens that were added to it."""
    size: int
    """The highest id plus one."""
    losses: tuple[Any, ...] | None
    """Why some texts do not come back from their ids, with examples; None if that is not known."""
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
        return tuple(f"{id} {quoted(self.texts[id])}" for id in list(ids)[:MOST_EVIDENCE])

    def about(
        self, code: str, ids: Iterable[int], evidence: Iterable[str] | None = None, **facts: Any
    ) -> Iterator[Finding]:
        """Yield a finding about pieces, if there are any. Its evidence is `evidence`, or else the pieces."""
        if every := tuple(ids):
            shown = self.named(every) if evidence is None else evidence
            yield Finding.of(code, every, shown, **facts)

    def is_text_piece(self, text: str) -> bool:
        """Whether a text is a piece that text can become."""
        id = self.spec.ids.get(text.encode())
        return id is not None and self.spec.pieces.types[id] in (PieceType.NORMAL, PieceType.USER_DEFINED)


Check = Callable[[Subject], Iterator[Finding]]


# --- Pieces that no text yields, or only unusual texts --------------------------------------------


def unreachable(subject: Subject) -> Iterator[Finding]:
    """Pieces that no text yields: a finding for each reason."""
    by_code: dict[str, list[int]] = defaultdict(list)
    for id, reason in sorted(subject.reach.reasons.items()):
        by_code[reason.code].append(id)
    for code in (code for code in CODES if code in by_code):
        ids = by_code[code]
        details = (subject.reach.reasons[id].detail for id in ids[:MOST_EVIDENCE])
        yield Finding.of(code, ids, map("{}: {}".format, subject.named(ids), details))


def hard_to_reach(subject: Subject) -> Iterator[Finding]:
    """Pieces that only unusual texts yield."""
    yield from subject.about("literal-space", sorted(subject.reach.literal))
    yield from subject.about("whole-only", sorted(subject.reach.whole))


# --- Scores ---------------------------------------------------------------------------------------


def scores(subject: Subject) -> Iterator[Finding]:
    """Scores that are equal, infinite or not a number."""
    numbers, texts = subject.spec.pieces.numbers(), subject.texts
    groups: dict[float, list[int]] = defaultdict(list)
    for id in subject.of_type(PieceType.NORMAL):
        if len(texts[id]) > 1 and numbers[id] == numbers[id]:
            groups[numbers[id]].append(id)
    alike = sorted((ids for ids in groups.values() if len(ids) > 1), key=lambda ids: (-len(ids), ids))
    shown = (
        f"{numbers[ids[0]]:g}: {len(ids)} pieces, such as {quoted(texts[ids[0]])} and {quoted(texts[ids[1]])}"
        for ids in alike[:MOST_EVIDENCE]
    )
    yield from subject.about("equal-scores", sorted(id for ids in alike for id in ids), shown)
    yield from subject.about(
        "odd-scores", (id for id in subject.text_ids if not abs(numbers[id]) < float("inf"))
    )


# --- Spellings ------------------------------------------------------------------------------------


def alike(subject: Subject) -> Iterator[Finding]:
    """Pieces that become the same text by normalization, or differ only in how Unicode spells them."""
    texts, rules = subject.texts, subject.spec.normalizer
    # 1. By the rules of the model.
    if rules.charsmap:
        ids = subject.text_ids
        plain = [texts[id].replace("▁", " ") if rules.escape_whitespaces else texts[id] for id in ids]
        marked = [f"{_MARK}{text}{_MARK}" for text in plain]
        normalize = subject.engine.variant(prefix=False).normalize
        rewritten = [normalize(text) for text in marked]
        pairs = [
            (id, other)
            for id, text in zip(ids, (text.strip(_MARK) for text in rewritten), strict=False)
            if text != texts[id]
            and (other := subject.spec.ids.get(text.encode())) is not None
            and other != id
        ]
        yield from subject.about(
            "alike-after-normalizing",
            (id for id, _ in pairs),
            (f"{quoted(texts[a])} becomes {quoted(texts[b])}" for a, b in pairs[:MOST_EVIDENCE]),
        )
    # 2. By Unicode normal form NFC.
    by_form: dict[str, list[int]] = defaultdict(list)
    for id in subject.text_ids:
        if not texts[id].isascii() and "\ufffd" not in texts[id]:
            by_form[unicodedata.normalize("NFC", texts[id])].append(id)
    same = [ids for ids in by_form.values() if len(ids) > 1]
    yield from subject.about(
        "alike-in-unicode",
        sorted(id for ids in same for id in ids),
        (" and ".join(quoted(texts[id], codes=True) for id in ids) for ids in same[:MOST_EVIDENCE]),
    )


def special_looks(subject: Subject) -> Iterator[Finding]:
    """Ordinary pieces that look like special tokens, and special tokens that look like ordinary text."""
    texts, types = subject.texts, subject.spec.pieces.types
    looks, like_bytes = [], []
    for id in subject.text_ids:
        if len(texts[id]) > 2 and texts[id][-1] in ">]":
            if _LOOKS_LIKE_BYTE.fullmatch(texts[id]):
                like_bytes.append(id)
            elif _LOOKS_SPECIAL.fullmatch(texts[id]):
                looks.append(id)
    normal = [id for id in looks if types[id] == PieceType.NORMAL]
    yield from subject.about(
        "user-defined-looks-special", (id for id in looks if types[id] == PieceType.USER_DEFINED)
    )
    yield from subject.about("looks-special", (id for id in normal if id in subject.reach.texts))
    yield from subject.about("reserved", (id for id in normal if id not in subject.reach.texts))
    yield from subject.about("looks-like-byte", like_bytes)
    yield from subject.about(
        "control-looks-like-text",
        (
            id
            for id in subject.of_type(PieceType.CONTROL)
            if len(texts[id]) < 3 or texts[id].strip("▁").isalpha() or not texts[id].isprintable()
        ),
    )


def odd_characters(subject: Subject) -> Iterator[Finding]:
    """Pieces with invisible characters, and pieces with U+FFFD."""
    texts = subject.texts
    ids = [
        id
        for id in subject.text_ids
        if not texts[id].isprintable() and len(texts[id]) > 1 and _INVISIBLE.intersection(texts[id])
    ]
    yield from subject.about("invisible", ids, (f"{id} {quoted(texts[id])}" for id in ids[:MOST_EVIDENCE]))
    # (The bytes are searched, because `texts` has U+FFFD also for what is not UTF-8.)
    broken = "\ufffd".encode()
    pieces = subject.spec.pieces
    if broken in pieces.blob:
        yield from subject.about("replacement", (id for id in subject.text_ids if broken in pieces.texts[id]))


def missing_characters(subject: Subject) -> Iterator[Finding]:
    """Characters that are in pieces, or in ASCII, but are no pieces themselves."""
    if subject.spec.alphabet == "bytes":
        return
    texts = subject.texts
    first: dict[str, int] = {}
    for id in subject.of_type(PieceType.NORMAL):
        for character in texts[id] if len(texts[id]) > 1 else ():
            first.setdefault(character, id)
    missing = sorted((id, c) for c, id in first.items() if not subject.is_text_piece(c) and c != "\ufffd")
    yield from subject.about(
        "character-missing",
        sorted({id for id, _ in missing}),
        (f"{quoted(c)}, which is in {quoted(texts[id])}" for id, c in missing[:MOST_EVIDENCE]),
        count=len(missing),
    )
    space = "▁" if subject.spec.normalizer.escape_whitespaces else " "
    plain = subject.engine.variant(prefix=False).normalize
    ascii_missing = [
        c
        for c in (space, *map(chr, range(33, 127)))
        if not subject.is_text_piece(c) and (c == space or plain(c) == c)
    ]
    if ascii_missing:
        yield Finding.of("ascii-missing", (), map(quoted, ascii_missing[:20]), count=len(ascii_missing))


# --- Numbers and runs -----------------------------------------------------------------------------


def digits(subject: Subject) -> Iterator[Finding]:
    """Lengths of numbers of which some are one piece and others are several."""
    counts: Counter[int] = Counter()
    examples: dict[int, int] = {}
    for id in subject.text_ids:
        text = subject.texts[id].lstrip("▁ ")
        if text.isascii() and text.isdigit() and id in subject.reach.texts and len(text) > 1:
            counts[len(text)] += text == subject.texts[id]
            examples.setdefault(len(text), id)
    # (No model has all numbers of more than three digits. If none is one piece, they are cut evenly.)
    uneven = sorted(length for length in counts if 0 < counts[length] < 10**length)
    lengths = ", ".join(f"{counts[length]} of {length} digits" for length in uneven)
    yield from subject.about("uneven-digits", (examples[length] for length in uneven), lengths=lengths)


def repeats(subject: Subject) -> Iterator[Finding]:
    """Long runs of one character."""
    stripped = ((id, subject.texts[id].lstrip("▁ ")) for id in subject.text_ids)
    yield from subject.about(
        "long-runs", (id for id, text in stripped if len(text) >= 32 and len(set(text)) == 1)
    )


# --- Special tokens -------------------------------------------------------------------------------


def special_ids(subject: Subject) -> Iterator[Finding]:
    """Special ids that the file records wrongly, and special pieces of a type that they should not have."""
    spec = subject.spec
    wrong, other_type = dict[str, int](), dict[str, int]()
    for (name, usual), piece in zip(_NAMES.items(), spec.special_pieces, strict=True):
        there, said = spec.ids.get(piece), subject.recorded.get(f"{name}_id")
        text = piece.decode(errors="replace")
        is_said = isinstance(said, int) and said >= 0
        if there is None:
            if is_said and spec.alphabet == "characters":
                wrong[f"{name}_id is {said} in the settings, but there is no piece {quoted(text)}"] = -1
            continue
        if is_said and said != there:
            shown = quoted(text)
            wrong[f"{name}_id is {said} in the settings, but the piece {shown} has the id {there}"] = there
        kind = PieceType(spec.pieces.types[there]).name
        if kind != usual:
            other_type[f"{quoted(text)} is {kind}, not {usual}"] = there
    for name, found in (("special-ids", wrong), ("special-type", other_type)):
        if found:
            yield Finding.of(name, sorted({*found.values()} - {-1}), found)


def special_missing(subject: Subject) -> Iterator[Finding]:
    """Special pieces that models usually need."""
    specials = dict(zip(_NAMES, subject.engine.specials, strict=True))
    added = {text.strip("<|>[]/ ").lower() for text in subject.added}
    ends = {"endoftext", "end", "eos", "s", "end_of_text", "eot", "im_end"}
    if specials["eos"] is None and not ends & added and not subject.of_type(PieceType.CONTROL):
        how = advised(": tok.with_special_tokens(['</s>'])", ", in Python with with_special_tokens")
        yield Finding.of("no-eos", how=how)
    if specials["pad"] is None:
        yield Finding.of("no-pad")


def special_alike(subject: Subject) -> Iterator[Finding]:
    """Special tokens that begin like others, and ids without a token."""
    control = filter(None, (subject.texts[id] for id in subject.of_type(PieceType.CONTROL)))
    prefixed: list[tuple[str, str]] = []
    outer: list[str] = []
    for text in sorted({*subject.added, *control}):
        while outer and not text.startswith(outer[-1]):
            outer.pop()
        if outer:
            prefixed.append((outer[-1], text))
        outer.append(text)
    if prefixed:
        shown = (f"{quoted(b)} begins with {quoted(a)}" for a, b in prefixed[:MOST_EVIDENCE])
        yield Finding.of("special-prefix", (), shown, count=len(prefixed))
    used = set(subject.added.values())
    gaps = [id for id in range(len(subject.spec.pieces), subject.size) if id not in used]
    if gaps:
        yield Finding.of("gap", (), [f"{gaps[0]} to {gaps[-1]}"], count=len(gaps))


# --- Settings and sizes ---------------------------------------------------------------------------


def losses(subject: Subject) -> Iterator[Finding]:
    """Texts that do not come back."""
    if subject.losses:
        yield Finding.of("loses-text", (), map(str, subject.losses), preset=given("preset", "lossless"))
    if subject.losses is None:
        how = advised("tok.is_lossless() says why", "'cpbpe inspect' says why")
        yield Finding.of("loss-unknown", how=how)
    if subject.spec.alphabet == "characters" and not subject.spec.byte_fallback:
        yield Finding.of("no-byte-fallback", option=given("byte_fallback", True))


def sizes(subject: Subject) -> Iterator[Finding]:
    """Sizes that make matrices slow, or that are not what the file says."""
    size, pieces = subject.size, len(subject.spec.pieces)
    if size % 64:
        up = -(-size // 64) * 64, -(-size // 128) * 128
        more = f"{up[0]:,}" if up[0] == up[1] else f"{up[0]:,} (a multiple of 64) or {up[1]:,} (of 128)"
        yield Finding.of("odd-size", size=size, sizes=more)
    said = subject.recorded.get("vocab_size")
    if isinstance(said, int) and said > 0 and said != pieces:
        yield Finding.of("recorded-size", recorded=said, pieces=pieces)


def spaces(subject: Subject) -> Iterator[Finding]:
    """Words that have one piece at the beginning of a text and another elsewhere."""
    rules = subject.spec.normalizer
    if subject.spec.alphabet == "bytes" or rules.add_dummy_prefix or not rules.escape_whitespaces:
        return
    begins = sum(text.startswith("▁") and len(text) > 2 for text in subject.texts)
    if begins * 4 > len(subject.texts):
        yield Finding.of("no-dummy-prefix", option=given("prefix_space", True))
    if rules.remove_extra_whitespaces:
        yield Finding.of("squeezed-without-prefix")


CHECKS: tuple[Check, ...] = (
    *(unreachable, hard_to_reach, scores, alike, special_looks, odd_characters, missing_characters),
    *(digits, repeats, special_ids, special_missing, special_alike, losses, sizes, spaces),
)
"""All checks that need nothing but the model."""
