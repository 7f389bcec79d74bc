"""`cpbpe.diff`: what is different between two models, as a value and as lines for a terminal.

`differing_text.py` looks for a text whose tokens differ, `orders.py` decides whether merging is the same.
"""

from __future__ import annotations

import json
import os
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from cpbpe.corpus.documents import Documents, documents_at
from cpbpe.corpus.records import checked
from cpbpe.model.spec import ModelSpec, PieceType
from cpbpe.spelling import advised, counted, sized
from cpbpe.text.drawn import shown
from cpbpe.text.pages import Canvas, Drawn
from cpbpe.tokenizer.tokenizer import Tokenizer, load
from cpbpe.tools.compare import blocks
from cpbpe.tools.differing_text import TextDifference, TwoModels, shortest_difference
from cpbpe.tools.orders import compare_orders

Model: TypeAlias = "str | os.PathLike[str] | Tokenizer"
Texts: TypeAlias = "os.PathLike[str] | Documents | Iterable[str | bytes]"
Entries = dict[bytes, "PieceEntry"]

KINDS = ("added", "removed", "retyped", "moved", "rescored")
MOST_SHOWN = 8
"""This many changes of a kind are shown."""
_EXAMPLES = 5
"""This many documents that differ are shown."""
_AROUND = 20
"""Of each of them, this many characters before and after the first difference."""
_SPACE = "\u2581".encode()


class PieceEntry(NamedTuple):
    """A piece as one model has it."""

    id: int
    score: float | None
    """None in byte-level models, whose ids are their ranks."""
    type: str


@dataclass(frozen=True)
class PieceChange:
    """A piece that differs between the models."""

    piece: str
    """Bytes that are not UTF-8 are written as \\xFF."""
    old: PieceEntry | None
    """In the first model; None if it is not there."""
    new: PieceEntry | None
    """In the second."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """What happened: "added", "removed", or some of "moved", "rescored" and "retyped"."""
        if self.old is None:
            return ("added",)
        if self.new is None:
            return ("removed",)
        names = ("moved", "rescored", "retyped")
        pairs = zip(names, self.old, self.new, strict=True)
        return tuple(name for name, a, b in pairs if a != b and a is not None and b is not None)

    def to_dict(self) -> dict[str, Any]:
        """The change as values that JSON has."""
        old, new = (None if entry is None else entry._asdict() for entry in (self.old, self.new))
        return {"piece": self.piece, "old": old, "new": new}


@dataclass(frozen=True)
class SettingChange:
    """A setting that differs between the models."""

    name: str
    old: str
    new: str
    encodes: bool
    """Whether it can change the ids of a text."""


@dataclass(frozen=True)
class StoredIds:
    """What ids that were stored with the first model mean in the second."""

    ids: int
    """How many ids the first model has."""
    invalid: tuple[int, ...]
    """Those that are another token in the second model, or none."""
    example: int | None
    """One of these, of ordinary text if there is one; None if there are none."""
    old: str
    """The piece that it is in the first model."""
    new: str | None
    """The piece that it is in the second; None if it has no such id."""


@dataclass(frozen=True)
class CorpusDifference:
    """What is different on the user's documents."""

    documents: int
    different: int
    """How many documents have other tokens."""
    other_ids: int
    """How many documents have other ids: those, and the ones whose tokens have moved to other ids."""
    old_tokens: int
    new_tokens: int
    examples: tuple[str, ...]
    """Extracts from the first of these documents, around the first difference."""

    @property
    def share(self) -> float:
        """The share of documents that differ."""
        return self.different / self.documents if self.documents else 0.0


@dataclass(frozen=True, repr=False)
class ModelDiff(Drawn):
    """What is different between two models: the result of `cpbpe.diff`.

    >>> import cpbpe
    >>> found = cpbpe.diff("tokenizer.model", "tokenizer.model")
    >>> found, bool(found), found.same_tokens
    (<cpbpe.ModelDiff: no difference>, False, True)
    """

    pieces: tuple[PieceChange, ...]
    settings: tuple[SettingChange, ...]
    text: TextDifference | None
    """A text whose tokens differ; None if there is none, or none was found."""
    same_tokens: bool | None
    """Whether every text has the same tokens. True and False are certain; None: no difference was found."""
    same_ids: bool | None
    """The same for ids, which may differ although the tokens are the same."""
    stored: StoredIds
    """What ids that were stored with the first model mean in the second."""
    tried: int
    """How many texts were tried."""
    corpus: CorpusDifference | None
    """What is different on texts that were given."""

    def of_kind(self, kind: str) -> list[PieceChange]:
        """The pieces that were "added", "removed", "moved", "rescored" or "retyped"."""
        return [change for change in self.pieces if kind in change.kinds]

    def __bool__(self) -> bool:
        """Whether anything is different."""
        return bool(self.pieces or self.settings or self.text)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as values that JSON has."""
        corpus = None if self.corpus is None else {**asdict(self.corpus), "share": self.corpus.share}
        return {
            "same_tokens": self.same_tokens,
            "same_ids": self.same_ids,
            "stored_ids": {"valid": not self.stored.invalid, **asdict(self.stored)},
            "tried": self.tried,
            "pieces": [{"kinds": change.kinds, **change.to_dict()} for change in self.pieces],
            "settings": [asdict(change) for change in self.settings],
            "text": None if self.text is None else asdict(self.text),
            "corpus": corpus,
        }

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=1)

    def draw(self, on: Canvas, names: Sequence[str] = (), most: int = MOST_SHOWN) -> None:
        """Draw the report, with the names of the models and this many changes of each kind.

        It begins with what the difference means for ids that were stored, and for texts.
        """
        # 1. Stored ids, and the tokens of texts.
        on.title("what is different")
        for side, name in zip(("old", "new"), names, strict=False):
            on.row(side, shown(name))
        on.row("stored ids", _stored(self.stored))
        on.row("texts", _texts(self))
        if self.text is not None:
            for side, tokens, ids in (
                ("old", self.text.old_tokens, self.text.old_ids),
                ("new", self.text.new_tokens, self.text.new_ids),
            ):
                pieces = " | ".join(shown(token, spaces=True) for token in tokens)
                on.row(f"{side} tokens", f"{pieces}  {' '.join(map(str, ids))}")
        if self.corpus is not None:
            on.row("documents", _documents(self.corpus))
            for example in self.corpus.examples:
                on.text(shown(example), " " * 16 + "- ", " " * 18)
        # 2. Pieces and settings.
        for kind in KINDS:
            if changes := self.of_kind(kind):
                on.title(f"{counted(len(changes), 'piece')} {kind}")
                for change in changes[:most]:
                    on.text(f"'{shown(change.piece)}'  {_change(change, kind)}", "  ", "      ")
                if len(changes) > most:
                    where = advised("in of_kind()", "which --json lists")
                    on.text(f"and {len(changes) - most:,} more, {where}")
        if self.settings:
            on.title("settings")
        for setting in self.settings:
            on.text(f"{setting.name}: {shown(setting.old)} → {shown(setting.new)}", "  ", "      ")

    def __repr__(self) -> str:
        counts = Counter(kind for change in self.pieces for kind in change.kinds)
        parts = [f"{number:,} {kind}" for kind, number in counts.items()]
        parts += [f"{len(self.settings):,} settings"] if self.settings else []
        parts += ["other tokens for some texts"] if self.text else []
        return f"<cpbpe.ModelDiff: {', '.join(parts) or 'no difference'}>"


def diff(old: Model, new: Model, texts: Texts | None = None, *, search: bool = True) -> ModelDiff:
    """What is different between two models: pieces, settings, and the tokens of texts.

    `old`, `new`: paths of whatever `load` takes, or tokenizers, whose bound options count. `texts`: a `Path`
    of files that `train` would read, or an iterable of texts, on which differences are counted. `search`:
    whether to look for a short text whose tokens differ. Where nothing that decides about tokens is
    different, every text has the same, and nothing is searched.

    >>> import cpbpe
    >>> tok = cpbpe.load("tokenizer.model")
    >>> found = cpbpe.diff(tok, tok.with_special_tokens(["<|end|>"]))
    >>> found
    <cpbpe.ModelDiff: 1 added, 1 settings>
    >>> found.same_tokens, found.of_kind("added")[0].piece
    (True, '<|end|>')
    """
    # 1. What was given.
    first, second = loaded(old), loaded(new)
    documents = None if texts is None else texts_of(texts)
    # 2. What the models say.
    specs = first.spec, second.spec
    families = specs[0].alphabet != specs[1].alphabet
    changes = _piece_changes(*(_entries(spec, families) for spec in specs))
    settings = _setting_changes(first, second)
    # 3. The tokens of texts. Which pairs merge depends on the pieces, on their types, and on the order of
    #    their scores (`orders`), but not on the scores as numbers or on the ids. Names, trainer settings and
    #    decoding make no difference to the tokens, either.
    models, text, tried = TwoModels(first, second), None, 0
    orders = compare_orders(*specs)
    #    (Options that are bound may use what does not matter otherwise, such as bos or special tokens.)
    bound = {*first.bound_options, *second.bound_options} - _DECODING
    decides = any(bound or (change.encodes and change.name not in _NAMES_ONLY) for change in settings)
    same: bool | None = True if orders.same and not decides else None
    if same is None and search:
        # (Where a piece was inserted, all after it have moved: too many to try.)
        changed = (change.piece for change in changes if "moved" not in change.kinds)
        text, tried = shortest_difference(models, changed, orders.texts)
        same = False if text is not None else None
    corpus = None if documents is None else corpus_difference(models, documents)
    if corpus is not None and corpus.different:
        same = False
    moved = any(change.old and change.new and change.old.id != change.new.id for change in changes)
    same_ids = False if moved or (corpus is not None and corpus.other_ids) else same
    stored = _stored_ids(models)
    return ModelDiff(tuple(changes), tuple(settings), text, same, same_ids, stored, tried, corpus)


def texts_of(texts: Texts) -> Iterable[str | bytes]:
    """The texts that are given as such, or as the path of files."""
    if isinstance(texts, (str, bytes)):
        raise TypeError("texts is an iterable of texts, or a Path of files; for one text give a list with it")
    if isinstance(texts, os.PathLike):
        texts = documents_at(texts)
    return texts.texts() if isinstance(texts, Documents) else checked(texts)


def loaded(model: Model) -> Tokenizer:
    """A model that is given as a path or as a tokenizer."""
    if isinstance(model, Tokenizer):
        return model
    if not isinstance(model, (str, os.PathLike)):
        raise TypeError(f"a model is a path or a Tokenizer, not {type(model).__name__}")
    return load(model)


def _stored_ids(models: TwoModels) -> StoredIds:
    """What the ids of the first model mean in the second."""
    old, new = models.old, models.new
    invalid = models.other_meanings()
    if not invalid:
        return StoredIds(len(old.vocab), (), None, "", None)

    def ordinary(tok: Tokenizer, id: int) -> bool:
        types = tok.vocab.types
        return id < len(types) and bool(types[id] == PieceType.NORMAL)

    # The example is ordinary text in both models, if there is one.
    example = max(invalid, key=lambda id: (ordinary(old, id) + ordinary(new, id), -id))
    return StoredIds(len(old.vocab), tuple(invalid), example, old.vocab[example], new.vocab.get(example))


# --- Pieces ---------------------------------------------------------------------------------------


def _entries(spec: ModelSpec, as_text: bool) -> Entries:
    """Every piece and added token of a model.

    With `as_text`, pieces have spaces instead of U+2581, so that they can be compared with byte-level ones.
    """
    ranks = spec.alphabet == "bytes"
    found: Entries = {}
    for id, piece in enumerate(spec.pieces):
        text = piece.text.replace(_SPACE, b" ") if as_text and not ranks else piece.text
        found[text] = PieceEntry(id, None if ranks else piece.score, piece.type.name)
    for text, id in spec.added:
        found.setdefault(text, PieceEntry(id, None, "ADDED"))
    return found


def _piece_changes(old: Entries, new: Entries) -> list[PieceChange]:
    """Every piece that differs, in the order of the new ids; removed pieces come first."""
    texts = [*(text for text in old if text not in new), *new]
    changes = [
        PieceChange(text.decode("utf-8", "backslashreplace"), old.get(text), new.get(text)) for text in texts
    ]
    return [change for change in changes if not _equal(change.old, change.new)]


def _equal(one: PieceEntry | None, other: PieceEntry | None) -> bool:
    """Whether two entries are the same. (NaN as a score counts as equal to itself.)"""
    if one is None or other is None or (one.id, one.type) != (other.id, other.type):
        return False
    return one.score == other.score or (one.score != one.score and other.score != other.score)


# --- Settings -------------------------------------------------------------------------------------

_DECODING = frozenset({"skip_special_tokens", "keep_prefix_space"})
"""Options of decoding alone."""
_NO_ENCODING = (
    *("denormalizer", "unk_surface", "settings", "carried", "bos_id", "eos_id", "pad_id"),
    *(f"using.{name}" for name in _DECODING),
)
"""Settings whose names begin with these do not affect the ids of a text."""
_NAMES_ONLY = ("normalizer.name", "special_tokens", "unk_id")
"""Settings that cannot change tokens by themselves: the name of rules whose tables are compared, too,
tokens that occur only where the caller allows them, and the id of the unknown piece."""
_LONGEST = 120


def _setting_changes(old: Tokenizer, new: Tokenizer) -> list[SettingChange]:
    """Every setting that differs."""
    first, second = dict(_settings(old)), dict(_settings(new))
    return [
        SettingChange(
            name, _spelled(first.get(name)), _spelled(second.get(name)), not name.startswith(_NO_ENCODING)
        )
        for name in dict.fromkeys([*first, *second])
        if first.get(name) != second.get(name)
    ]


def _settings(tok: Tokenizer) -> Iterator[tuple[str, Any]]:
    spec = tok.spec
    yield "alphabet", spec.alphabet
    yield "byte_fallback", spec.byte_fallback
    yield "whole", spec.whole
    for name in (
        *("name", "charsmap", "add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces"),
        *("suffix", "prefix_before_space", "unicode_form"),
    ):
        yield f"normalizer.{name}", getattr(spec.normalizer, name)
    if spec.denormalizer is not None:
        yield "denormalizer.charsmap", spec.denormalizer.charsmap
    if spec.splitter is not None:
        yield "splitter.pattern", spec.splitter.pattern
        yield "splitter.then", spec.splitter.then
    for name, value in tok.bound_options.items():
        yield f"using.{name}", value
    yield "unk_surface", spec.unk_surface
    for name in ("unk_id", "bos_id", "eos_id", "pad_id"):
        yield name, getattr(tok, name)
    yield "special_tokens", dict(tok.vocab.special_tokens)
    for text, flags in spec.carried.tokens.items():
        yield f"flags of {text!r}", ", ".join(flags)
    for name, value in spec.settings.trainer.items():
        yield f"settings.trainer.{name}", value
    for part in ("options", "roles", "chat_templates"):
        for name, value in getattr(spec.carried, part).items():
            yield f"carried.{part}.{name}", value


def _spelled(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bytes) and len(value) > 40:
        return f"{sized(len(value))}, checksum {zlib.crc32(value):08x}"
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value) or "''"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


# --- Documents ------------------------------------------------------------------------------------


def corpus_difference(models: TwoModels, texts: Iterable[str | bytes]) -> CorpusDifference:
    """Count the documents, those that differ, and all tokens."""
    documents = different = other_ids = old = new = 0
    examples: list[str] = []
    for block, _ in blocks(texts):
        found, ids = models.compared(block)
        documents += len(block)
        different += int(found.sum())
        other_ids += int(ids.sum())
        old += sum(models.old.count_batch(block, threads=1))
        new += sum(models.new.count_batch(block, threads=1))
        for place in np.flatnonzero(found)[: _EXAMPLES - len(examples)]:
            examples.append(_extract(models, block[place]))
    return CorpusDifference(documents, different, other_ids, old, new, tuple(examples))


def _extract(models: TwoModels, text: str) -> str:
    """The text around the first token that differs."""
    one, other = models.old.align(text).offsets, models.new.align(text).offsets
    place = next((a[0] for a, b in zip(one, other, strict=False) if a != b), 0)
    begin, end = max(place - _AROUND, 0), place + _AROUND
    return f"{'…' if begin else ''}{text[begin:end]}{'…' if end < len(text) else ''}"


# --- In words -------------------------------------------------------------------------------------


def _stored(stored: StoredIds) -> str:
    """Whether stored ids can be used with the second model."""
    if stored.example is None:
        return "are valid: every id of the old model means the same in the new one"
    old = f"'{shown(stored.old, spaces=True)}'"
    new = "no token" if stored.new is None else f"'{shown(stored.new, spaces=True)}'"
    return (
        f"are invalid: {len(stored.invalid):,} of {counted(stored.ids, 'id')} no longer mean the same; "
        f"id {stored.example}, for example, was {old} and is {new} now"
    )


def _texts(result: ModelDiff) -> str:
    """Whether texts have other tokens, whatever their ids."""
    if result.text is not None:
        kind = "the shortest" if result.text.proved else "a short"
        return f"some have other tokens; {kind} one is '{shown(result.text.text)}'"
    if result.same_tokens:
        return "every text has the same tokens" + (
            " and the same ids" if result.same_ids else ", with other ids"
        )
    if result.same_tokens is False:
        return "some have other tokens"
    if not result.tried:
        return "whether some have other tokens was not looked for"
    return f"none was found that has other tokens, of {result.tried:,} that were tried"


def _documents(corpus: CorpusDifference) -> str:
    """What is different on the user's documents."""
    change = f" ({corpus.new_tokens / corpus.old_tokens - 1:+.2%})" if corpus.old_tokens else ""
    return (
        f"{corpus.different:,} of {corpus.documents:,} have other tokens ({corpus.share:.2%}), "
        f"{corpus.other_ids:,} have other ids; "
        f"{corpus.old_tokens:,} tokens → {corpus.new_tokens:,}{change}"
    )


def _change(change: PieceChange, kind: str) -> str:
    old, new = change.old, change.new
    if old and new and kind == "moved":
        return f"id {old.id} → {new.id}"
    if old and new and kind == "rescored":
        return f"score {_score(old)} → {_score(new)}"
    if old and new:
        return f"{old.type} → {new.type}"
    entry = old or new
    if entry is None:
        return ""
    score = "" if entry.score is None else f", score {_score(entry)}"
    return f"id {entry.id}{score}, {entry.type}"


def _score(entry: PieceEntry) -> str:
    return "–" if entry.score is None else f"{entry.score:g}"
