"""`Tokenizer.inspect`: a model in numbers and lists. `Tokenizer.lint`: what is wrong with it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from cpbpe.checks import refuse_single
from cpbpe.errors import ModelError
from cpbpe.lint.checks import CHECKS, Subject
from cpbpe.lint.findings import SEVERITIES, Finding, Lint
from cpbpe.lint.usage import embedding_findings, usage_findings
from cpbpe.model.spec import KEEPS_SPACE, NormalizerSpec, PieceType, Settings, SplitSpec
from cpbpe.spelling import advised, counted, sized
from cpbpe.text.drawn import MORE, Lines, listed, quoted, shown
from cpbpe.text.pages import Canvas, Drawn
from cpbpe.text.scripts import COMMON, INHERITED, ranges
from cpbpe.tokenizer import identity
from cpbpe.tokenizer.facts import ModelFacts
from cpbpe.tokenizer.lossless import losslessness_of

SAMPLE = "The llama reads stories, читает слова и 喜欢面包 🙂!"
"""Three scripts and an emoji."""
SEVERAL = "several"
"""Counts pieces with characters of more than one script."""
_TEXT = re.compile(b"[%c%c%c]" % (PieceType.NORMAL, PieceType.USER_DEFINED, PieceType.UNUSED))
"""The types of pieces whose texts are counted by script and length."""
_LONGEST = 10
"""This many of the longest pieces are listed."""
_SPECIAL = ("unk", "bos", "eos", "pad")
_MOST_TOKENS = 8
"""How many special tokens are named, at most."""
_MOST_LOSSES = 2
"""How many of the reasons why texts do not come back are shown."""
_MOST_DRAWN = 4
"""How many lines of the drawing of the sample are on the page: two of tokens, with their ids."""
_LENGTHS = (0, 2, 4, 7, 11)
"""Where the ranges begin in which pieces are counted by length."""
_SCRIPTS = {"Common": "no letters", SEVERAL: "several scripts"}
_PREFIXES = {
    "front": "a space is put in front of a text",
    "end": "a space is put at the end of a text",
    "none": "no space is put in front of a text",
}


@dataclass(frozen=True)
class Sample:
    """A sentence, encoded and decoded."""

    text: str
    """The sentence."""
    ids: tuple[int, ...]
    """Its ids."""
    pieces: tuple[str, ...]
    """Its pieces."""
    decoded: str
    """What the ids are decoded to."""


@dataclass(frozen=True, repr=False)
class Inspection(Drawn):
    """What a model is.

    >>> import cpbpe
    >>> seen = cpbpe.load("tokenizer.model").inspect()
    >>> seen
    <cpbpe.Inspection: 32000 pieces, byte fallback, normalizer 'identity'>
    >>> seen.types["NORMAL"], seen.scripts["Cyrillic"], seen.lengths[16], seen.lossless
    (31741, 1731, 18, True)
    >>> seen.special_ids
    {'unk': 0, 'bos': 1, 'eos': 2, 'pad': None}
    """

    summary: str
    """The model in a few words."""
    fingerprint: str
    """The hash that tells models apart."""
    file_bytes: int
    """The size of the model as a file."""
    pieces: int
    """How many pieces there are."""
    vocab_size: int
    """The highest id plus one, added tokens included."""
    alphabet: str
    """What text is merged from: "characters", or "bytes" in a byte-level model."""
    splitter: SplitSpec | None
    """How a byte-level model cuts text into chunks, if it does."""
    whole: bool
    """Whether a chunk that is a piece becomes that in a byte-level model, even if no merges make it."""
    byte_fallback: bool
    """Whether characters without a piece become bytes."""
    byte_pieces: int
    """How many pieces stand for a byte."""
    special_ids: Mapping[str, int | None]
    """The ids of unk, bos, eos and pad."""
    special_tokens: Mapping[str, int]
    """The tokens that text yields only if allowed, and their ids: CONTROL pieces and added tokens."""
    added_tokens: Mapping[str, int]
    """Those of them that were added to the model."""
    types: Mapping[str, int]
    """How many pieces there are of each type."""
    scripts: Mapping[str, int]
    """How many pieces of text there are in each script. "Common" has no letters, "several" more scripts."""
    lengths: Mapping[int, int]
    """How many pieces of text there are with each number of characters."""
    longest: tuple[tuple[int, str], ...]
    """The ids and texts of the longest pieces."""
    normalizer: NormalizerSpec
    """How text is rewritten before it is cut into pieces."""
    denormalizer: NormalizerSpec | None
    """How text is rewritten after decoding, if it is."""
    lossless: bool | None
    """Whether every text comes back from its ids; None if that cannot be told."""
    losses: tuple[Any, ...]
    """What does not come back, as `Losslessness.reasons`."""
    undecided: str
    """Why it cannot be told."""
    sample: Sample
    """A sentence, encoded."""
    settings: Settings = field(default=Settings(), repr=False)
    """What the file records: how the model was trained, and how it normalizes."""
    file_options: Mapping[str, bool] = field(default_factory=dict)
    """The options of encoding that the file asks for."""
    token_roles: Mapping[str, str] = field(default_factory=dict)
    """The roles of tokens that the file names and the model does not, such as "mask"."""
    chat_templates: Mapping[str, str] = field(default_factory=dict)
    """The templates of conversations that the file carries, by name."""

    def to_dict(self) -> dict[str, Any]:
        """Everything as values that JSON has. Of rules only the size is given."""
        hidden = ("normalizer", "denormalizer")
        given = {name: _plain(value) for name, value in vars(self).items() if name not in hidden}
        last = ("file_options", "token_roles", "chat_templates", "settings", "sample")
        losses = [
            {"reason": loss.reason, "example": loss.example, "becomes": loss.becomes} for loss in self.losses
        ]
        return {
            "type": "BPE",
            **{name: value for name, value in given.items() if name not in last},
            "longest": [{"id": id, "piece": piece} for id, piece in self.longest],
            "losses": losses,
            "prefix": prefix_of(self.normalizer),
            "unicode_form": self.normalizer.unicode_form,
            **{name: given[name] for name in last},
        }

    def to_json(self, **options: Any) -> str:
        """The same as JSON; `options` are those of `json.dumps`."""
        return json.dumps(self.to_dict(), **options)

    def draw(
        self, on: Canvas, name: str = "a model", notes: Iterable[str] = (), drawing: Sequence[str] = ()
    ) -> None:
        """Draw what the model is; `name` is what it is called.

        `notes` are remarks that were made when it was read, and `drawing` are lines with the tokens of the
        sample, for a terminal. (Their settings are drawn in `cpbpe/tools/reports.py`.)
        """
        drawn = partial(shown, spaces=self.alphabet == "bytes")
        # 1. What it is.
        on.title(shown(name))
        _kind_rows(on, self)
        more = self.vocab_size - self.pieces
        types = ", ".join(f"{count:,} {type}" for type, count in self.types.items())
        ids = f"; ids up to {self.vocab_size - 1:,}" if more else ""
        on.row("pieces", f"{self.pieces:,}: {types}{ids}")
        recorded = sum(len(getattr(self.settings, section) or ()) for section in vars(self.settings))
        where_seen = advised("see .settings", "--settings shows them")
        on.row("file", f"{sized(self.file_bytes)}; {counted(recorded, 'setting')}, {where_seen}")
        on.row("fingerprint", self.fingerprint)
        if self.lossless is None:
            on.row("lossless", self.undecided)
        elif self.lossless:
            on.row("lossless", "every text comes back from its ids")
        else:
            ways = (
                "in these ways"
                if len(self.losses) <= _MOST_LOSSES
                else f"in {len(self.losses)} ways, such as"
            )
            on.row("lossless", f"no, some texts do not come back, {ways}:")
        for loss in self.losses[:_MOST_LOSSES]:
            example, becomes = (quoted(text, loss.looks_alike) for text in (loss.example, loss.becomes))
            on.text(f"{loss.reason} {example} becomes {becomes}.", "    - ", "      ", 2)
        # 2. Special and added tokens.
        ids = ", ".join(f"{kind} {'none' if id is None else id}" for kind, id in self.special_ids.items())
        on.row("special", f"{ids}; {_tokens(self.special_tokens)}", 2)
        if self.added_tokens:
            on.row("added", _tokens(self.added_tokens), 1)
        # 3. What goes around texts, and what else the file carries.
        where = prefix_of(self.normalizer)
        wish = where != "none" and self.file_options.get("prefix_after_special") is False
        on.row(
            "prefix", _PREFIXES[where] + (", but not after special tokens, as the file asks" if wish else "")
        )
        options = ", ".join(f"{option}={value}" for option, value in self.file_options.items())
        does = advised("tok.using(**tok.file_options) does it", "the option --file-options does it")
        if options:
            on.row("file asks for", f"{options}; {does}")
        if self.token_roles:
            on.row(
                "roles", ", ".join(f"{shown(role)} {shown(it)}" for role, it in self.token_roles.items()), 2
            )
        for title, template in self.chat_templates.items():
            on.row("chat template", f"{shown(title)}, {counted(len(template), 'character')}")
        for note in notes:
            on.row("note", shown(note))
        # 4. Counts.
        if self.scripts:
            on.title("by script")
            on.bars({_SCRIPTS.get(script, script): count for script, count in self.scripts.items()})
        if self.lengths:
            on.title("by length, in characters")
            on.bars(_ranges(self.lengths))
            on.row("longest", " ".join(drawn(piece) for _, piece in self.longest), 1)
        # 5. A sentence.
        on.title(f"sample: {shown(self.sample.text)}")
        if self.sample.decoded != self.sample.text:
            on.row("decoded", shown(self.sample.decoded), 1)
        if isinstance(on, Lines) and drawing:
            on.lines += [f"  {line}" for line in drawing[:_MOST_DRAWN]]
            if len(drawing) > _MOST_DRAWN:
                on.text(f"{MORE} {advised('tok.show(text)', 'cpbpe show')} draws all of it")
        else:
            on.row("pieces", " ".join(map(drawn, self.sample.pieces)), 2)
            on.row("ids", " ".join(map(str, self.sample.ids)), 2)

    def __repr__(self) -> str:
        return f"<cpbpe.Inspection: {self.summary}>"


def _kind_rows(on: Canvas, seen: Inspection) -> None:
    """Rows about the family of a model, and about how a byte-level model cuts text."""
    if seen.alphabet != "bytes":
        on.row("type", f"BPE, with{'' if seen.byte_fallback else 'out'} byte fallback")
        return
    on.row("type", "byte-level BPE")
    cut = seen.splitter and (seen.splitter.name or seen.splitter.pattern)
    on.row("text is cut", f"by the pattern {_short(shown(cut))}" if cut else "nowhere: it is one chunk")
    for pattern in seen.splitter.then if seen.splitter else ():
        on.row("then", f"by the pattern {_short(shown(pattern))}")
    if form := seen.normalizer.unicode_form:
        on.row("before that", f"it is brought into the Unicode normal form {form}")
    taken = "taken whole, even if no merges make it" if seen.whole else "merged like any other text"
    on.row("a chunk", f"that is a piece is {taken}")


def _ranges(lengths: Mapping[int, int]) -> dict[str, int]:
    """Counts by length, in a few ranges of lengths."""
    counts: dict[str, int] = {}
    for low, after in pairwise((*_LENGTHS, max(lengths) + 1)):
        if inside := [length for length in lengths if low <= length < after]:
            first, last = min(inside), max(inside)
            name = str(first) if first == last else f"{first}–{last}"
            counts[name] = sum(lengths[length] for length in inside)
    return counts


def _tokens(tokens: Mapping[str, int]) -> str:
    return listed([f"{shown(token)} {id}" for token, id in tokens.items()], _MOST_TOKENS) or "no tokens"


def _short(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:100]}{MORE}"


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if is_dataclass(value):
        value = vars(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, bytes):
        return {"bytes": len(value)}
    if isinstance(value, float) and not abs(value) < float("inf"):
        return str(value)  # JSON has no such numbers
    return list(map(_plain, value)) if isinstance(value, (list, tuple)) else value


def inspection(facts: ModelFacts, sample: str = SAMPLE) -> Inspection:
    """Look at a model."""
    spec = facts.spec
    engine, special = facts.engine, facts.special
    types = spec.pieces.types
    counts = Counter(types)
    ids_of_texts = [match.start() for match in _TEXT.finditer(types)]
    texts = [spec.pieces.texts[id].decode(errors="replace") for id in ids_of_texts]
    lengths, scripts, order = _counted(texts)
    lossless: bool | None = None
    losses: tuple[Any, ...] = ()
    undecided = ""
    try:
        losses = losslessness_of(facts).reasons
        lossless = not losses
    except ModelError as error:
        undecided = str(error)
    ids = engine.encode(sample)
    return Inspection(
        summary=identity.summary(facts),
        fingerprint=identity.fingerprint(facts.file, {}),
        file_bytes=len(facts.file),
        pieces=engine.size,
        vocab_size=special.size,
        alphabet=spec.alphabet,
        splitter=spec.splitter,
        whole=spec.whole,
        byte_fallback=spec.byte_fallback,
        byte_pieces=counts[PieceType.BYTE],
        special_ids=dict(zip(_SPECIAL, facts.special_ids, strict=True)),
        special_tokens=dict(special.ids),
        added_tokens=dict(special.added),
        types={type.name: counts[type] for type in PieceType if counts[type]},
        scripts=scripts,
        lengths=lengths,
        longest=tuple((ids_of_texts[place], texts[place]) for place in order),
        normalizer=spec.normalizer,
        denormalizer=spec.denormalizer,
        lossless=lossless,
        losses=losses,
        undecided=undecided,
        sample=Sample(sample, tuple(ids), tuple(map(facts.piece, ids)), engine.decode(ids) or ""),
        settings=facts.settings,
        file_options={name: on for name, on in facts.carried.options.items() if name != KEEPS_SPACE},
        token_roles={role: text for role, text in facts.carried.roles.items() if text},
        chat_templates=dict(facts.carried.chat_templates),
    )


def prefix_of(rules: NormalizerSpec) -> str:
    """Where the dummy prefix is put: "front", "end" or "none"."""
    return "none" if not rules.add_dummy_prefix else "end" if rules.suffix else "front"


def _counted(texts: list[str]) -> tuple[dict[int, int], dict[str, int], list[int]]:
    """How many texts have each length, how many are in each script, and the indexes of the longest.

    Everything is done in arrays, because there may be hundreds of thousands of texts.
    """
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    order = np.argsort(-lengths, kind="stable")[:_LONGEST].tolist()
    by_length = np.bincount(lengths) if texts else lengths
    found = {length: int(by_length[length]) for length in np.flatnonzero(by_length).tolist()}
    lengths = lengths[lengths > 0]
    if not len(lengths):
        return found, {}, order
    # The script of every character, as a number; -1 for characters that go with any script.
    names = sorted({*ranges()[2], COMMON} - {INHERITED})
    number = {name: place for place, name in enumerate(names)}
    table = np.full(0x110000, -1, np.int16)
    for first, last, name in zip(*ranges(), strict=True):
        if name not in (COMMON, INHERITED):
            table[first : last + 1] = number[name]
    script = table[np.frombuffer("".join(texts).encode("utf-32-le"), np.uint32)]
    begins = np.cumsum(lengths) - lengths
    high = np.maximum.reduceat(script, begins)
    low = np.minimum.reduceat(np.where(script < 0, len(names), script), begins)
    counts: Counter[str] = Counter()
    counts[SEVERAL] = int(((high >= 0) & (low < high)).sum())
    counts[COMMON] = int((high < 0).sum())
    for place, count in enumerate(np.bincount(high[low == high], minlength=1).tolist()):
        counts[names[place]] += count
    return found, {name: count for name, count in counts.most_common() if count}, order


def lint(facts: ModelFacts, texts: Iterable[str | bytes] | None = None, embeddings: Any = None) -> Lint:
    """Check a model, and what a corpus and an embedding matrix show about it."""
    if texts is not None:
        refuse_single(texts, (str, bytes), "lint", "texts, or an open file, whose lines are texts")
    spec, special = facts.spec, facts.special
    try:
        losses: tuple[Any, ...] | None = losslessness_of(facts).reasons
    except ModelError:
        losses = None
    reach = facts.witnesses.reach()
    recorded = facts.settings.trainer
    subject = Subject(spec, facts.engine, special.added, special.size, losses, recorded, reach)
    findings: list[Finding] = []
    for check in CHECKS:
        findings += check(subject)
    if texts is not None:
        findings += usage_findings(subject, texts)
    if embeddings is not None:
        findings += embedding_findings(subject, embeddings)
    findings.sort(key=lambda finding: -SEVERITIES.index(finding.severity))
    return Lint(tuple(findings), len(spec.pieces), len(reach.texts), reach)
