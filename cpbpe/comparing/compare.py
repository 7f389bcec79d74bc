"""`cpbpe.compare`: every text with every model."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, TypeAlias

from cpbpe.comparing.comparison import Comparison
from cpbpe.comparing.measures import Tally, renyi_efficiency, words_in
from cpbpe.comparing.probes import probes
from cpbpe.comparing.subjects import Subject, name_of, subject_of
from cpbpe.comparing.values import Cell, ComparedModel, ComparedText, Probed
from cpbpe.corpus.documents import Documents
from cpbpe.tokenizer.tokenizer import Tokenizer

Model: TypeAlias = "str | os.PathLike[str] | Tokenizer"
Texts: TypeAlias = "str | os.PathLike[str] | Iterable[str | bytes]"

CHECKED_BYTES = 1_000_000
"""So much of each text is decoded again, and timed."""
BLOCK_BYTES = 4_000_000
ENGLISH = ("en", "eng", "english", "en_US", "en-US")
"""Names of texts that prices are relative to, if nobody has said it."""
_SURROGATE = re.compile("[\ud800-\udfff]")
EXAMPLE = 12
"""So many tokens of a probe are shown."""


def compare(
    models: Model | Sequence[Model] | Mapping[str, Model],
    texts: Texts | Sequence[str | os.PathLike[str]] | Mapping[str, Texts],
    *,
    base: str | None = None,
    rounds: int = 3,
    probe: bool = True,
) -> Comparison:
    """What texts cost with several models: tokens, shares of bytes, speed.

    `models`: paths of whatever `load` takes, tokenizers, and encodings of other libraries, such as
    "tiktoken:cl100k_base", "tokenizers:tokenizer.json" or "sentencepiece:unigram.model"; a mapping gives
    them names. `texts`: paths of files and folders, of the kinds that `train` takes; or a mapping of names,
    such as languages, to a text, to several texts, or to a `Path`. If the texts say the same in several
    languages, prices are relative to the text `base`; by default to the one called "en". `rounds`: how often
    encoding is timed, 0 for not at all. `probe`: whether the same data in several formats, numbers and
    indented code are compared, too.

    >>> import cpbpe
    >>> found = cpbpe.compare(["tokenizer.model"], {"en": "one word", "ja": "日本語"}, rounds=0)
    >>> found["tokenizer.model", "ja"].tokens
    4
    """
    subjects = _subjects(models)
    named = _named(texts)
    if base is not None and base not in named:
        raise ValueError(f"base must be one of the texts ({', '.join(map(repr, named))}), not {base!r}")
    if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 0:
        raise ValueError(f"rounds must be a number, 0 or more, not {rounds!r}")
    if base is None:
        base = next((name for name in ENGLISH if name in named), None)
    compared: list[ComparedText] = []
    cells: list[Cell] = []
    sample: list[str] = []
    for name, given in named.items():
        read = present(given) if isinstance(given, Documents) else given
        text, of_text, beginning = _counted(name, read, subjects)
        if isinstance(given, Documents):
            text = replace(text, left_out=dict(given.left_out))
        compared.append(text)
        cells += of_text
        sample += beginning
    speeds = _speeds(subjects, sample, rounds)
    shown = tuple(ComparedModel(s.name, s.library, s.size, speeds[s.name]) for s in subjects)
    probed = tuple(_probed(subjects)) if probe else ()
    return Comparison(shown, tuple(compared), tuple(cells), probed, base)


def _subjects(models: Any) -> list[Subject]:
    if isinstance(models, (str, os.PathLike, Tokenizer)):
        models = [models]
    given = dict(models) if isinstance(models, Mapping) else names_of(list(models))
    if not given:
        raise ValueError("there is no model to compare; give at least one")
    return [subject_of(str(name), model) for name, model in given.items()]


def names_of(models: list[Any]) -> dict[str, Any]:
    """Models by name: that of the file; the path if it occurs twice, and a number if that does not help."""
    short = [name_of(model) for model in models]
    found: dict[str, Any] = {}
    for model, name in zip(models, short, strict=True):
        if short.count(name) > 1 and not isinstance(model, Tokenizer):
            name = str(model)
        number, unique = 1, name
        while unique in found:
            number += 1
            unique = f"{name} ({number})"
        found[unique] = model
    return found


def _named(texts: Any) -> dict[str, Documents | Iterable[str | bytes]]:
    if isinstance(texts, Mapping):
        found = {str(name): _texts_of(given) for name, given in texts.items()}
    else:
        paths = [texts] if isinstance(texts, (str, os.PathLike)) else list(texts)
        names = [Path(path).name.partition(".")[0] or str(path) for path in paths]
        found = {
            name if names.count(name) == 1 else str(path): _texts_of(Path(path))
            for name, path in zip(names, paths, strict=True)
        }
    if not found:
        raise ValueError(
            "there is no text to compare; give at least one file, or a mapping of names to texts"
        )
    return found


def _texts_of(given: Any) -> Documents | Iterable[str | bytes]:
    if isinstance(given, (str, bytes)):
        return [given]
    if isinstance(given, os.PathLike):
        return Documents(given)
    if isinstance(given, Documents):
        return given
    if isinstance(given, Iterable):
        return given
    raise TypeError(f"a text is a str, bytes, a Path or an iterable of texts, not {type(given).__name__}")


def present(documents: Documents) -> Iterator[bytes]:
    """The documents of files that are not null."""
    return documents.texts()


def _counted(
    name: str, texts: Iterable[str | bytes], subjects: list[Subject]
) -> tuple[ComparedText, list[Cell], list[str]]:
    """One text with all models, in one pass; and its beginning."""
    tallies = [Tally(subject) for subject in subjects]
    documents = size = characters = words = replaced = 0
    sample: list[str] = []
    checked_size = 0
    for block, not_unicode in _blocks(texts):
        replaced += not_unicode
        check = checked_size < CHECKED_BYTES
        for tally in tallies:
            tally.add(block, check)
        block_size = sum(len(text.encode()) for text in block)
        if check:
            sample += block
            checked_size += block_size
        documents += len(block)
        size += block_size
        characters += sum(map(len, block))
        words += sum(map(words_in, block))
    cells = [
        Cell(
            tally.subject.name,
            name,
            tally.tokens,
            int((tally.counts > 0).sum()),
            tally.bytes,
            tally.unknown,
            renyi_efficiency(tally.counts, tally.subject.size),
            len(sample),
            tally.changed,
            tally.example,
        )
        for tally in tallies
    ]
    return ComparedText(name, documents, size, characters, words, replaced), cells, sample


def _blocks(texts: Iterable[str | bytes]) -> Iterator[tuple[list[str], int]]:
    """Texts as str, some at a time, and how many of these were not valid Unicode.

    The first block is small, because it is decoded again.
    """
    block: list[str] = []
    size, most, replaced = 0, CHECKED_BYTES, 0
    for given in texts:
        if not isinstance(given, (str, bytes)):
            raise TypeError(f"a text is a str or bytes, not {type(given).__name__}")
        text, is_valid = _as_text(given)
        replaced += not is_valid
        block.append(text)
        size += len(text)
        if size >= most:
            yield block, replaced
            block, size, most, replaced = [], 0, BLOCK_BYTES, 0
    if block:
        yield block, replaced


def _as_text(given: str | bytes) -> tuple[str, bool]:
    """A text with U+FFFD in the place of what is wrong, and whether nothing was.

    Half of a surrogate pair has no UTF-8. No library encodes it.
    """
    if isinstance(given, bytes):
        try:
            return given.decode(), True
        except UnicodeDecodeError:
            return given.decode("utf-8", "replace"), False
    valid = given if given.isascii() else _SURROGATE.sub("\ufffd", given)
    return valid, valid == given


def _speeds(subjects: list[Subject], sample: list[str], rounds: int) -> dict[str, float | None]:
    """Megabytes a second: the models in turn, forth and back, after a round without the clock."""
    size = sum(len(text.encode()) for text in sample)
    times: dict[str, list[float]] = {subject.name: [] for subject in subjects}
    if not size or not rounds:
        return dict.fromkeys(times)
    for number in range(rounds + 1):
        for subject in subjects if number % 2 else reversed(subjects):
            begin = perf_counter()
            subject.encode(sample)
            if number:
                times[subject.name].append(perf_counter() - begin)
    return {name: size / 1e6 / median(taken) for name, taken in times.items()}


def _probed(subjects: list[Subject]) -> Iterator[Probed]:
    for probe in probes():
        for subject in subjects:
            encoded = subject.encode(list(probe.texts))
            mean = sum(map(len, encoded)) / len(encoded)
            example = subject.pieces(probe.texts[0])[:EXAMPLE]
            yield Probed(probe.group, probe.name, subject.name, mean, tuple(example))
