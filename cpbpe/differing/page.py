"""A difference as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from cpbpe.differing.parts import Parts
from cpbpe.differing.values import PieceChange, PieceEntry
from cpbpe.look.shown import fitted, shown
from cpbpe.spelling import counted

KINDS = ("added", "removed", "retyped", "moved", "rescored")
EXAMPLES = 8
"""So many changes of a kind are shown."""


def lines(found: Parts, columns: int = 100, most: int = EXAMPLES) -> list[str]:
    """The whole report."""
    return [fitted(line, columns) for line in _lines(found, most)]


def _lines(found: Parts, most: int) -> Iterator[str]:
    yield from _verdict(found)
    for kind in KINDS:
        changes = found.of_kind(kind)
        if changes:
            yield from ["", f"{counted(len(changes), 'piece')} {kind}"]
            yield from (f"  {_change(change, kind)}" for change in changes[:most])
            if len(changes) > most:
                yield f"  and {len(changes) - most:,} more, which --json lists"
    if found.settings:
        yield from ["", "settings"]
    for setting in found.settings:
        yield f"  {setting.name}: {shown(setting.old)} → {shown(setting.new)}"
    if found.corpus is not None:
        yield from ["", _corpus(found)]
        yield from (f"  {shown(example)}" for example in found.corpus.examples)


def _verdict(found: Parts) -> Iterator[str]:
    if found.text is not None:
        kind = "the shortest" if found.text.proved else "a short"
        yield f"{kind} text whose tokens differ: '{shown(found.text.text)}'"
        yield f"  old  {_tokens(found.text.old_tokens)}  {list(found.text.old_ids)}"
        yield f"  new  {_tokens(found.text.new_tokens)}  {list(found.text.new_ids)}"
    elif found.same_tokens:
        ids = "the same ids" if found.same_ids else "the same tokens, some with other ids"
        yield f"every text has {ids}"
    else:
        yield f"no text was found whose tokens differ, of {found.tried:,} that were tried"


def _tokens(tokens: tuple[str, ...]) -> str:
    return " | ".join(shown(token).replace(" ", "␣") for token in tokens)


def _change(change: PieceChange, kind: str) -> str:
    name = f"'{shown(change.piece)}'"
    old, new = change.old, change.new
    if old is None or new is None:
        return f"{name}  {_entry(old or new)}"
    if kind == "moved":
        return f"{name}  id {old.id} → {new.id}"
    if kind == "rescored":
        return f"{name}  score {_score(old)} → {_score(new)}"
    return f"{name}  {old.type} → {new.type}"


def _entry(entry: PieceEntry | None) -> str:
    if entry is None:
        return ""
    score = "" if entry.score is None else f", score {_score(entry)}"
    return f"id {entry.id}{score}, {entry.type}"


def _score(entry: PieceEntry) -> str:
    return "–" if entry.score is None else f"{entry.score:g}"


def _corpus(found: Parts) -> str:
    corpus = found.corpus
    assert corpus is not None
    change = f" ({corpus.new_tokens / corpus.old_tokens - 1:+.2%})" if corpus.old_tokens else ""
    return (
        f"{corpus.different:,} of {counted(corpus.documents, 'document')} differ ({corpus.share:.2%}); "
        f"{corpus.old_tokens:,} tokens → {corpus.new_tokens:,}{change}"
    )
