"""`cpbpe.compare`: what texts cost with several models, and probes: built-in texts for one question each."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cpbpe.corpus.documents import Documents, documents_at
from cpbpe.text.scripts import ranges
from cpbpe.tokenizer.tokenizer import Tokenizer
from cpbpe.tools.compared_models import BYTE, UNKNOWN, LoadedModel, loaded_model, name_of
from cpbpe.tools.comparison import Cell, ComparedModel, ComparedText, Comparison, Probed

Model: TypeAlias = "str | os.PathLike[str] | Tokenizer"
Texts: TypeAlias = "str | os.PathLike[str] | Iterable[str | bytes]"

CHECKED_BYTES = 1_000_000
"""About this much of each text, from its beginning, is decoded again and timed."""
BLOCK_BYTES = 4_000_000
"""About this much text is encoded at once."""
_SURROGATE = re.compile("[\ud800-\udfff]")
EXAMPLE = 12
"""This many tokens of a probe are shown."""
ALPHA = 2.5
"""The order of the Rényi entropy. With this one, Zouhar et al., "Tokenization and the Noiseless Channel"
(2023), found a correlation with the quality of translations."""


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
    such as languages, to a text, to several texts, or to a `Path`. `base`: if the texts say the same in
    several languages, the one that prices are relative to; otherwise there are no prices. `rounds`: how often
    encoding is timed, 0 for not at all. `probe`: whether the same data in several formats, numbers and
    indented code are compared, too.

    >>> import cpbpe
    >>> found = cpbpe.compare(["tokenizer.model"], {"en": "one word", "ja": "日本語"}, rounds=0)
    >>> found["tokenizer.model", "ja"].tokens
    4
    """
    # 1. What was given.
    if isinstance(models, (str, os.PathLike, Tokenizer)):
        models = [models]
    by_name = dict(models) if isinstance(models, Mapping) else names_of(list(models))
    if not by_name:
        raise ValueError("there is no model to compare; give at least one")
    loaded = [loaded_model(str(name), model) for name, model in by_name.items()]
    named = _named(texts)
    if base is not None and base not in named:
        raise ValueError(f"base must be one of the texts ({', '.join(map(repr, named))}), not {base!r}")
    if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 0:
        raise ValueError(f"rounds must be a number, 0 or more, not {rounds!r}")
    # 2. Every text with every model.
    compared: list[ComparedText] = []
    cells: list[Cell] = []
    sample: list[str] = []
    for name, given in named.items():
        read = given.texts() if isinstance(given, Documents) else given
        text, of_text, beginning = _counted(name, read, loaded)
        if isinstance(given, Documents):
            text = replace(text, left_out=dict(given.left_out))
        compared.append(text)
        cells += of_text
        sample += beginning
    # 3. The time, and the probes.
    speeds = _speeds(loaded, sample, rounds)
    shown = tuple(ComparedModel(s.name, s.library, len(s.kinds), speeds[s.name]) for s in loaded)
    probed = tuple(_probed(loaded)) if probe else ()
    return Comparison(shown, tuple(compared), tuple(cells), probed, base)


def names_of(models: list[Any]) -> dict[str, Any]:
    """Models by name: the name of the file; its path if several have that name; then, a number is added."""
    short = [name_of(model) for model in models]
    by_name: dict[str, Any] = {}
    for model, name in zip(models, short, strict=True):
        if short.count(name) > 1 and not isinstance(model, Tokenizer):
            name = str(model)
        number, unique = 1, name
        while unique in by_name:
            number += 1
            unique = f"{name} ({number})"
        by_name[unique] = model
    return by_name


def _named(texts: Any) -> dict[str, Documents | Iterable[str | bytes]]:
    """Texts by name: that of the file, or the path if several files have the name."""
    if not isinstance(texts, Mapping):
        paths = [texts] if isinstance(texts, (str, os.PathLike)) else list(texts)
        names = [Path(path).name.partition(".")[0] or str(path) for path in paths]
        unique = (
            name if names.count(name) == 1 else str(path) for name, path in zip(names, paths, strict=True)
        )
        texts = dict(zip(unique, map(Path, paths), strict=True))
    by_name: dict[str, Documents | Iterable[str | bytes]] = {}
    for name, given in texts.items():
        if isinstance(given, os.PathLike):
            given = documents_at(given)
        elif isinstance(given, (str, bytes)):
            given = [given]
        if not isinstance(given, (Documents, Iterable)):
            kind = type(given).__name__
            raise TypeError(f"a text is a str, bytes, a Path or an iterable of texts, not {kind}")
        by_name[str(name)] = given
    if not by_name:
        raise ValueError(
            "there is no text to compare; give at least one file, or a mapping of names to texts"
        )
    return by_name


class _Tally:
    """The tokens of a text with one model, counted block by block."""

    def __init__(self, model: LoadedModel):
        self.model = model
        self.counts: NDArray[np.int64] = np.zeros(len(model.kinds), np.int64)
        self.changed = 0
        """How many of the checked texts did not come back from decoding."""
        self.example: str | None = None
        """The shortest of these."""

    def add(self, texts: Sequence[str], check: bool) -> None:
        """Count the tokens of some texts; with `check`, also whether decoding gives the texts back."""
        encoded = self.model.encode(list(texts))
        ids = np.fromiter(chain.from_iterable(encoded), np.int64, sum(map(len, encoded)))
        self.counts += np.bincount(ids, minlength=len(self.counts))
        for text, one in zip(texts, encoded, strict=True) if check else ():
            if self.model.decode(one) != text:
                self.changed += 1
                if self.example is None or len(text) < len(self.example):
                    self.example = text

    def cell(self, text: str, checked: int) -> Cell:
        """The counts as the cell of the text with this name."""
        counts, kinds = self.counts, self.model.kinds
        return Cell(
            model=self.model.name,
            text=text,
            tokens=int(counts.sum()),
            used=int((counts > 0).sum()),
            byte_tokens=int(counts[kinds == BYTE].sum()),
            unknown_tokens=int(counts[kinds == UNKNOWN].sum()),
            renyi_efficiency=renyi_efficiency(counts, len(counts)),
            checked=checked,
            changed=self.changed,
            example=self.example,
        )


def renyi_efficiency(counts: NDArray[np.int64], size: int) -> float | None:
    """How evenly tokens are used: the Rényi entropy of their frequencies, divided by the highest possible.

    1 if all `size` ids are equally frequent, near 0 if a few make up the text; None if there is no choice.

    >>> import numpy as np
    >>> renyi_efficiency(np.array([5, 5, 5, 5]), 4), round(renyi_efficiency(np.array([97, 1, 1, 1]), 4), 3)
    (1.0, 0.037)
    """
    total = int(counts.sum())
    if total == 0 or size < 2:
        return None
    shares = counts[counts > 0] / total
    entropy = np.log2(np.sum(shares**ALPHA)) / (1 - ALPHA)
    return float(entropy / np.log2(size))


def _counted(
    name: str, texts: Iterable[str | bytes], loaded: list[LoadedModel]
) -> tuple[ComparedText, list[Cell], list[str]]:
    """A text with all models, in one pass: the text's own counts, its cells, and its beginning."""
    tallies = [_Tally(model) for model in loaded]
    documents = size = characters = words = replaced = 0
    sample: list[str] = []
    checked_size = 0
    for block, not_unicode in blocks(texts):
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
        words += sum(len(text.split()) for text in block)
    cells = [tally.cell(name, len(sample)) for tally in tallies]
    return ComparedText(name, documents, size, characters, words, spaced(sample), replaced), cells, sample


def spaced(texts: Iterable[str]) -> bool:
    """Whether there are spaces between the words of texts: a tenth of the letters may be of other scripts.

    >>> spaced(["two words"]), spaced(["こんにちは"]), spaced(["한국어 단어"])
    (True, False, True)
    """
    unspaced = letters = 0
    for text in texts:
        if not text.isascii():
            unspaced += sum(map(len, _unspaced().findall(text)))
        letters += sum(map(str.isalpha, text))
    return 10 * unspaced <= letters


@cache
def _unspaced() -> re.Pattern[str]:
    """Runs of characters of the scripts that write no spaces between words."""
    parts = (
        f"{re.escape(chr(first))}-{re.escape(chr(last))}"
        for first, last, name in zip(*ranges(), strict=True)
        if name in ("Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar")
    )
    return re.compile(f"[{''.join(parts)}]+")


def blocks(texts: Iterable[str | bytes]) -> Iterator[tuple[list[str], int]]:
    """Yield texts as str, in blocks, with the number of texts in each block that were not valid Unicode.

    What is invalid becomes U+FFFD. (That includes half a surrogate pair: it has no UTF-8, so no library
    encodes it.) The first block is smaller than the others, because it is also decoded.
    """
    block: list[str] = []
    size, most, replaced = 0, CHECKED_BYTES, 0
    for given in texts:
        if isinstance(given, bytes):
            text = given.decode("utf-8", "replace")
            replaced += text.encode() != given
        elif isinstance(given, str):
            text = given if given.isascii() else _SURROGATE.sub("\ufffd", given)
            replaced += text != given
        else:
            raise TypeError(f"a text is a str or bytes, not {type(given).__name__}")
        block.append(text)
        size += len(text)
        if size >= most:
            yield block, replaced
            block, size, most, replaced = [], 0, BLOCK_BYTES, 0
    if block:
        yield block, replaced


def _speeds(loaded: list[LoadedModel], sample: list[str], rounds: int) -> dict[str, float | None]:
    """Megabytes per second, by model: the median of the rounds, after one that is not timed.

    The models take turns, and every other round goes through them backwards.
    """
    size = sum(len(text.encode()) for text in sample)
    times: dict[str, list[float]] = {model.name: [] for model in loaded}
    if not size or not rounds:
        return dict.fromkeys(times)
    for number in range(rounds + 1):
        for model in loaded if number % 2 else reversed(loaded):
            begin = perf_counter()
            model.encode(sample)
            if number:
                times[model.name].append(perf_counter() - begin)
    return {name: size / 1e6 / median(taken) for name, taken in times.items()}


def _probed(loaded: list[LoadedModel]) -> Iterator[Probed]:
    for probe in probes():
        for model in loaded:
            encoded = model.encode(list(probe.texts))
            mean = sum(map(len, encoded)) / len(encoded)
            example = model.pieces(probe.texts[0])[:EXAMPLE]
            yield Probed(probe.group, probe.name, model.name, mean, tuple(example))


# --- Probes ---------------------------------------------------------------------------------------

FIELDS = ("id", "name", "city", "amount", "active", "note")
RECORDS = tuple(
    dict(zip(FIELDS, row, strict=True))
    for row in [
        (1041, "Ada Fischer", "Vienna", 120.5, True, "asked for an invoice by mail"),
        (1042, "Jonas Lindqvist", "Uppsala", 89.0, True, "pays on the first of the month"),
        (1043, "Mariam Haddad", "Amman", 1430.25, False, "moved, the new address is missing"),
        (1044, "Tomás Herrera", "Valparaíso", 17.8, True, "two parcels, one was damaged"),
        (1045, "Yuki Tanabe", "Sapporo", 642.0, False, "call before the delivery"),
        (1046, "Chidi Okafor", "Enugu", 305.99, True, "a gift, no prices on the note"),
        (1047, "Elena Petrova", "Plovdiv", 58.4, True, "prefers the evening"),
        (1048, "Liam O'Rourke", "Galway", 2210.0, False, "see the contract of last year"),
        (1049, "Priya Nair", "Kochi", 76.35, True, "third order this week"),
        (1050, "Hanna Virtanen", "Oulu", 499.9, True, "wants to know the weight"),
    ]
)
"""The data that the probes of formats write in each format."""

NUMBERS = 100
MOST_DIGITS = 12
STYLES = {"2 spaces": "  ", "4 spaces": "    ", "8 spaces": " " * 8, "tabs": "\t"}

_CODE = """\
def merge_all(rows, limit):
>totals = {}
>for row in rows:
>>if row.active:
>>>for key, value in row.items():
>>>>if value > limit:
>>>>>totals[key] = totals.get(key, 0) + value
>>>>else:
>>>>>continue
>>else:
>>>log(row)
>return totals
"""
"""A function; each > is a level of indentation."""


class Probe(NamedTuple):
    """Some texts that show one property of a model."""

    group: str
    """"formats", "digits" or "indentation"."""
    name: str
    texts: tuple[str, ...]


def probes() -> list[Probe]:
    """All probes."""
    all_probes = [Probe("formats", name, (text,)) for name, text in formats().items()]
    chance = random.Random(1)
    for digits in range(1, MOST_DIGITS + 1):
        numbers = [str(chance.randrange(10 ** (digits - 1), 10**digits)) for _ in range(NUMBERS)]
        all_probes.append(Probe("digits", str(digits), tuple(numbers)))
    all_probes += [Probe("indentation", name, (indented(step),)) for name, step in STYLES.items()]
    return [*all_probes, Probe("indentation", "none", (indented(""),))]


def indented(step: str) -> str:
    r"""The function in `_CODE`, indented by `step` for each level.

    >>> indented("\t").splitlines()[2]
    '\tfor row in rows:'
    """
    # Each > at the beginning of a line becomes a NUL, and then a step. (`value > limit` has a > as well.)
    return _CODE.replace(">>", "\0\0").replace("\0>", "\0\0").replace("\n>", "\n\0").replace("\0", step)


def formats() -> dict[str, str]:
    """The records in each format."""
    rows = [[str(v).lower() if isinstance(v, bool) else str(v) for v in row.values()] for row in RECORDS]
    table = [FIELDS, *rows]

    def separated(by: str) -> str:
        return "".join(by.join(f'"{v}"' if by in v else v for v in row) + "\n" for row in table)

    fields = ["".join(f"    <{k}>{v}</{k}>\n" for k, v in zip(FIELDS, row, strict=True)) for row in rows]
    return {
        "JSON": json.dumps(RECORDS, ensure_ascii=False, separators=(",", ":")),
        "JSON, indented": json.dumps(RECORDS, ensure_ascii=False, indent=2),
        "JSON lines": "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in RECORDS),
        "YAML": "".join("- " + "\n  ".join(map("{}: {}".format, FIELDS, row)) + "\n" for row in rows),
        "XML": "<records>\n" + "".join(f"  <record>\n{xml}  </record>\n" for xml in fields) + "</records>\n",
        "CSV": separated(","),
        "TSV": separated("\t"),
        "Markdown": "".join(f"| {' | '.join(row)} |\n" for row in (FIELDS, ["---"] * len(FIELDS), *rows)),
    }
