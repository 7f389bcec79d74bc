"""What `lint` reports: the kinds of findings, the reasons why no text yields a piece, and the report."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cpbpe.spelling import advised, counted
from cpbpe.text.drawn import shown
from cpbpe.text.pages import Canvas, Drawn

SEVERITIES = ("note", "warning", "error")
"""How bad a finding is, from the least to the worst."""
MOST_EVIDENCE = 5
"""A finding has at most this many examples."""


class Kind(NamedTuple):
    """A kind of finding. docs/inspecting.md says what each finds."""

    severity: str
    """How bad it is, unless the check says that it is worse."""
    message: str
    """A sentence about the pieces. # stands for "1 piece" or "2 pieces", and "are|is" for "are" with several
    pieces (or a `count` above 1) and "is" with one. The check fills in what is in braces."""
    remedy: str
    """What can be done. The check fills in what is in braces."""


def sentence(message: str, number: int) -> str:
    """The message of a `Kind` about this many pieces.

    >>> sentence("# are|is in no text", 2), sentence("# are|is in no text", 1)
    ('2 pieces are in no text', '1 piece is in no text')
    """
    subject = "1 piece" if number == 1 else f"{number:,} pieces"
    chosen = re.sub("([a-z]+)[|]([a-z]+)", lambda match: match[2 if number == 1 else 1], message)
    return chosen.replace("#", subject)


_NEVER_LEARNED = (
    "if the corpus is like what the model was trained on, such tokens never learned anything: do not let "
    "users type them, or train a vocabulary on this corpus"
)

CODES = {
    # Pieces that no text yields.
    "blocked": Kind(
        "warning",
        "# can never be made: their|its parts merge with other symbols first",
        "such pieces waste rows of the embedding: remove them, or give them the scores that training would",
    ),
    "orphan": Kind(
        "warning",
        "# can never be made: no two symbols merge into that text",
        "add the parts to merge them from, make them USER_DEFINED, or remove them",
    ),
    "shadowed": Kind(
        "warning",
        "# contain|contains a user-defined piece, which is found first and never merges",
        "remove them, or make the user-defined piece one of the special tokens",
    ),
    "crowded": Kind(
        "warning",
        "# begin|begins with 64 shorter user-defined pieces, of which one is found instead",
        "sentencepiece looks at only 64 user-defined pieces that begin alike: use fewer of them",
    ),
    "normalized-away": Kind(
        "warning",
        "# never occur|occurs in normalized text",
        "spell them as the normalizer leaves them, or change its rules",
    ),
    "not-utf8": Kind(
        "note",
        "# consist|consists of bytes that never occur in UTF-8",
        "nothing: byte-level models have all 256 bytes",
    ),
    "hidden-nul": Kind("warning", "# is a NUL character, which is never found", "remove it"),
    "completed": Kind(
        "note",
        "# end|ends inside a character, and always merge|merges with the rest of it",
        "nothing, if they are needed on the way to longer pieces; their own ids never occur",
    ),
    "cut-apart": Kind(
        "warning",
        "# never fit|fits into one chunk: the pattern always cuts them|it",
        "train with the pattern that the model is used with; these ids never occur",
    ),
    "unused": Kind(
        "note",
        "# are|is UNUSED: always split up again, and never output",
        "nothing, if they are needed on the way to longer pieces; their ids are free for special tokens",
    ),
    "unused-unknown": Kind(
        "note",
        "# stand|stands for unknown characters, but there are none: they become bytes",
        "nothing: sentencepiece asks for this piece",
    ),
    "unused-bytes": Kind(
        "note",
        "# stand|stands for bytes that no text yields: each character with one is a piece, or there is none",
        "nothing: byte fallback needs all 256 pieces",
    ),
    "no-witness": Kind(
        "note",
        "# remain|remains undecided: no text was found that yields them|it, nor a proof that there is none",
        "check with a large corpus, to see whether they occur",
    ),
    "literal-space": Kind(
        "warning",
        "# occur|occurs only in texts that contain the character ▁ (U+2581) itself",
        "remove them, or switch remove_extra_whitespaces off",
    ),
    "whole-only": Kind(
        "note",
        "# occur|occurs only where a whole chunk is looked up: no merges make them|it",
        "programs that only merge, and do not look up whole chunks, never yield them",
    ),
    # Pieces.
    "equal-scores": Kind(
        "note",
        "# share|shares a score with others: which merges first depends on where they are in the text",
        "give every piece a score of its own, as training does, if it should not depend on that",
    ),
    "odd-scores": Kind(
        "error",
        "# have|has a score that is infinite or not a number",
        "give them finite scores; libraries sort such scores differently",
    ),
    "alike-after-normalizing": Kind(
        "warning",
        "# become|becomes the text of another piece by normalization",
        "remove them: the normalizer makes the other piece of their text",
    ),
    "alike-in-unicode": Kind(
        "note",
        "# look like others: Unicode has several spellings of the same text",
        "bring texts into one Unicode normal form before training, such as NFC",
    ),
    "looks-special": Kind(
        "warning",
        "# look|looks like a special token, but ordinary text yields it",
        "if they are special, give them the type CONTROL; if they are HTML or the like, nothing",
    ),
    "user-defined-looks-special": Kind(
        "warning",
        "# look|looks like a special token, but every text can spell it: the type is USER_DEFINED",
        "if only programs should insert them, give them the type CONTROL",
    ),
    "reserved": Kind(
        "note",
        "# look|looks like a special token, and no text yields it",
        "give them the type CONTROL, so that programs can insert them",
    ),
    "looks-like-byte": Kind(
        "error",
        "# are|is spelled as a byte, but of another type",
        "give them the type BYTE and switch byte_fallback on, or spell them <0x00> to <0xFF>",
    ),
    "control-looks-like-text": Kind(
        "warning",
        "# of the type CONTROL look|looks like text, which cannot become it",
        "give them the type NORMAL, or a spelling that text does not have, such as <sep>",
    ),
    "invisible": Kind(
        "note",
        "# of several characters have|has one that is invisible or controls a terminal",
        "remove such characters from the corpus before training",
    ),
    "replacement": Kind(
        "note",
        "# have|has the character U+FFFD, which stands for broken text",
        "the corpus was decoded wrongly somewhere; repair it before training",
    ),
    "character-missing": Kind(
        "warning",
        "{count} characters|character are|is in pieces, but no pieces|piece themselves|itself: on "
        "their|its own, they|it become|becomes bytes or unknown",
        "add a piece for each of them, with the lowest scores",
    ),
    "ascii-missing": Kind(
        "warning",
        "{count} visible ASCII characters|character, or the space, are|is no pieces|piece",
        "train with them as required_chars, so that ordinary text needs no bytes and loses nothing",
    ),
    "uneven-digits": Kind(
        "note",
        "some numbers are one piece and others of the same length are several: {lengths}",
        "train with split_digits, or with a pattern that cuts numbers evenly, if arithmetic matters",
    ),
    "long-runs": Kind(
        "note",
        "# repeat|repeats one character 32 times or more",
        "nothing, if lines of such characters matter; otherwise limit the length of pieces in training",
    ),
    # Everything else in a model.
    "not-loaded": Kind(
        "error",
        "this is not a valid model: {error}",
        "correct the file, or convert the model again; the message says what is wrong",
    ),
    "special-ids": Kind(
        "error",
        "the settings of the file and its pieces disagree about special ids",
        "correct the settings, or the order of the pieces; programs read one or the other",
    ),
    "special-type": Kind(
        "warning",
        "special pieces have the wrong type: text can yield them, or they mean something else",
        "give them the type CONTROL (unk: UNKNOWN); otherwise text from strangers can spell them out",
    ),
    "special-prefix": Kind(
        "warning",
        "{count} special tokens|token begin|begins with another one: libraries differ in which they find",
        "spell them so that none is the beginning of another, as with <|a|> and <|ab|>",
    ),
    "no-eos": Kind("warning", "there is no piece that ends a text", "add one{how}"),
    "no-pad": Kind(
        "note",
        "there is no padding piece",
        "add one, or mask the padding; do not pad with unk or eos unless the model was trained that way",
    ),
    "gap": Kind(
        "note",
        "{count:,} ids|id between the pieces and the added tokens are|is unused",
        "nothing, if they are kept for later; a model may still predict them",
    ),
    "loses-text": Kind(
        "warning",
        "some texts do not come back from their ids",
        "train with {preset}, which loses nothing",
    ),
    "loss-unknown": Kind("note", "it could not be told whether every text comes back", "{how}"),
    "no-byte-fallback": Kind(
        "warning",
        "characters that are not in the vocabulary are all the same unknown piece",
        "train with {option}",
    ),
    "odd-size": Kind(
        "note",
        "there are {size:,} ids, which is not a multiple of 64: GPUs multiply such matrices more slowly",
        "make the embedding larger than the vocabulary: {sizes} rows",
    ),
    "recorded-size": Kind(
        "note",
        "the file records vocab_size = {recorded:,}, but has {pieces:,} pieces",
        "nothing: pieces were added or removed after training, and the ids are what counts",
    ),
    "no-dummy-prefix": Kind(
        "note",
        "a word at the beginning of a text has other ids than after a space: add_dummy_prefix is off",
        "nothing, if the model was trained that way; otherwise encode with {option}",
    ),
    "squeezed-without-prefix": Kind(
        "note",
        "spaces at the beginning of texts are removed, so that parts of a text cannot be joined again",
        "switch remove_extra_whitespaces off, or add_dummy_prefix on",
    ),
    # With a corpus.
    "never-used": Kind(
        "note",
        "# of {reachable:,} that text can yield do|does not occur, {of_all}",
        _NEVER_LEARNED,
    ),
    "hardly-used": Kind("note", "# occur|occurs once or twice, {of_all}", _NEVER_LEARNED),
    "byte-share": Kind(
        "note",
        "{share:.3g} % are bytes of characters without a piece, {count:,} {of_all}",
        "train with {cure}",
    ),
    "unknown-share": Kind("note", "{share:.3g} % are unknown, {count:,} {of_all}", "train with {cure}"),
    "empty-corpus": Kind("warning", "the corpus has no text, so it shows nothing", "give another one"),
    # With an embedding.
    "undertrained": Kind(
        "warning",
        "# that text can yield have|has a row that looks as unused as most of the {unused:,} unused ones",
        "look at what the model does with them: they may be glitch tokens; train further, or refuse them",
    ),
    "too-few-rows": Kind(
        "error",
        "the embedding has {rows:,} rows, and ids go up to {last:,}",
        "it belongs to another model, or tokens were added without making it larger",
    ),
    "no-reference": Kind(
        "note",
        "undertrained rows cannot be recognized: all pieces are used, so there is nothing to compare with",
        "count the pieces of a corpus instead",
    ),
}
"""All kinds of findings by their codes, which never change because people's scripts have them."""


class Reason(NamedTuple):
    """Why no text yields a piece."""

    code: str
    """The reason in a word: the code of the finding that lists the piece."""
    detail: str
    """The same in a sentence, about this piece."""
    decided: bool = True
    """Whether it is certain that no text yields the piece; if not, no text was found that does."""


@dataclass(frozen=True)
class Reach:
    """Which pieces text can yield, and how."""

    texts: Mapping[int, str]
    """A text that yields the piece, for each id for which there is one."""
    reasons: Mapping[int, Reason]
    """The reason, for each other id. CONTROL pieces are in neither mapping, because no text yields them."""
    literal: frozenset[int] = frozenset()
    """The ids in `texts` whose text has to contain the character U+2581 itself; no other was found."""
    whole: frozenset[int] = frozenset()
    """The ids in `texts` that no merges make. Byte-level models take a chunk whole if it is a piece."""


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with a model, or good to know."""

    code: str
    """The code of its kind, which never changes."""
    severity: str
    """"error", "warning" or "note"."""
    message: str
    """What is wrong, in a sentence."""
    remedy: str
    """What can be done."""
    evidence: tuple[str, ...] = ()
    """Examples."""
    ids: tuple[int, ...] = ()
    """The ids of all pieces that it is about."""

    @classmethod
    def of(
        cls,
        code: str,
        ids: Iterable[int] = (),
        evidence: Iterable[str] = (),
        *,
        severity: str | None = None,
        **facts: Any,
    ) -> Finding:
        """A finding of a kind; `facts` fill in what its message and its remedy have in braces."""
        kind, every = CODES[code], tuple(ids)
        message = sentence(kind.message, facts.get("count", len(every))).format(**facts)
        remedy = kind.remedy.format(**facts)
        return cls(code, severity or kind.severity, message, remedy, tuple(evidence), every)

    def to_dict(self) -> dict[str, Any]:
        """The finding as values that JSON has."""
        return {**vars(self), "evidence": list(self.evidence), "ids": list(self.ids)}


@dataclass(frozen=True, repr=False)
class Lint(Drawn):
    """The report of `Tokenizer.lint`. `print` shows all of it, as `html()` and notebooks do.

    >>> import cpbpe
    >>> report = cpbpe.load("tokenizer.model").lint()
    >>> report
    <cpbpe.Lint: 0 errors, 0 warnings, 6 notes>
    >>> report["unused-bytes"].severity, len(report["unused-bytes"].ids), report.worst
    ('note', 140, 'note')
    """

    findings: tuple[Finding, ...]
    """What was found, the worst first."""
    pieces: int
    """How many pieces the model has."""
    reachable: int
    """How many of them some text yields."""
    reach: Reach = field(default=Reach({}, {}))
    """For each piece, a text that yields it or the reason why there is none."""

    @property
    def worst(self) -> str | None:
        """The worst severity; None if nothing was found."""
        return max((finding.severity for finding in self.findings), key=SEVERITIES.index, default=None)

    def fails(self, severity: str) -> bool:
        """Whether anything of this severity ("note", "warning" or "error") or a worse one was found."""
        if severity not in SEVERITIES:
            raise ValueError(f"severity is one of {', '.join(map(repr, SEVERITIES))}, not {severity!r}")
        least = SEVERITIES.index(severity)
        return any(SEVERITIES.index(finding.severity) >= least for finding in self.findings)

    def count(self, severity: str) -> int:
        """How many findings have a severity."""
        return sum(finding.severity == severity for finding in self.findings)

    def __getitem__(self, code: str) -> Finding:
        """The finding with a code; KeyError if there is none."""
        for finding in self.findings:
            if finding.code == code:
                return finding
        raise KeyError(f"nothing of the kind {code!r} was found")

    def __contains__(self, code: object) -> bool:
        return any(finding.code == code for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """The report as values that JSON has."""
        reach = self.reach
        return {
            "pieces": self.pieces,
            "reachable": self.reachable,
            "worst": self.worst,
            "findings": [finding.to_dict() for finding in self.findings],
            "unreachable": [
                {"id": id, "code": reason.code, "decided": reason.decided, "detail": reason.detail}
                for id, reason in sorted(reach.reasons.items())
            ],
        }

    def to_json(self, **options: Any) -> str:
        """The same as JSON; `options` are those of `json.dumps`."""
        return json.dumps(self.to_dict(), **options)

    def draw(self, on: Canvas, name: str = "what is wrong with the model") -> None:
        """Draw the report; `name` is what the model is called."""
        on.title(shown(name))
        for finding in self.findings:
            on.heading(finding.severity, finding.code)
            on.text(f"{shown(finding.message)}.", " " * 8, " " * 8)
            for text in finding.evidence:
                on.text(shown(text), "        - ", " " * 10)
            more = len(finding.ids) - len(finding.evidence)
            if more > 0 and len(finding.evidence) == MOST_EVIDENCE:
                where = advised("listed in the finding's ids", "which --json lists")
                on.text(f"and {more:,} more, {where}", "        - ", " " * 10)
            on.text(f"{shown(finding.remedy)}.", "        > ", " " * 10)
        on.title(self._counts())
        on.text(f"{self.pieces:,} pieces, of which text can yield {self.reachable:,}")

    def _counts(self) -> str:
        return ", ".join(counted(self.count(severity), severity) for severity in reversed(SEVERITIES))

    def __repr__(self) -> str:
        return f"<cpbpe.Lint: {self._counts()}>"
