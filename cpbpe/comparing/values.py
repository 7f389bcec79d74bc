"""The numbers of a comparison: models, texts, every text with every model, and probes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class ComparedModel:
    """One of the models."""

    name: str
    library: str
    """Whose code encoded: "cpbpe", "tiktoken", "tokenizers" or "sentencepiece"."""
    size: int
    """The number of ids."""
    megabytes_per_second: float | None
    """How much text it encoded to lists in a second, on one thread, warm: the median of the rounds."""


@dataclass(frozen=True)
class ComparedText:
    """One of the texts."""

    name: str
    documents: int
    bytes: int
    characters: int
    words: int
    """Runs of characters that are not white space. In scripts without spaces they say nothing."""
    replaced: int = 0
    """Documents that were not valid Unicode. They were read with U+FFFD in the place of what is wrong."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Files of folders that were not read, and why."""


@dataclass(frozen=True)
class Cell:
    """One text with one model."""

    model: str
    text: str
    tokens: int
    used: int
    """How many different ids occur."""
    byte_tokens: int
    """Tokens that are single bytes, or parts of characters."""
    unknown_tokens: int
    renyi_efficiency: float | None
    """How evenly ids are used, from 0 to 1: the Rényi entropy (of order 2.5) of the most that is possible."""
    checked: int
    """How many documents were decoded again."""
    changed: int
    """How many of them did not come back as they were."""
    example: str | None
    """One of these."""


@dataclass(frozen=True)
class Probed:
    """What a probe costs with one model."""

    group: str
    """"formats", "digits" or "indentation"."""
    name: str
    model: str
    tokens: float
    """Tokens; of several texts the mean."""
    example: tuple[str, ...]
    """The tokens of a number, or the first ones of another text."""


@dataclass(frozen=True, repr=False)
class Costs:
    """The numbers of a comparison."""

    models: tuple[ComparedModel, ...]
    texts: tuple[ComparedText, ...]
    cells: tuple[Cell, ...]
    """Every text with every model, text by text."""
    probes: tuple[Probed, ...]
    base: str | None
    """The text that prices are relative to."""

    def __getitem__(self, key: tuple[str, str]) -> Cell:
        """The cell of a model and a text, by their names."""
        for cell in self.cells:
            if (cell.model, cell.text) == tuple(key):
                return cell
        raise KeyError(f"there is no model and text {key!r}")

    def text(self, name: str) -> ComparedText:
        """A text, by its name."""
        for text in self.texts:
            if text.name == name:
                return text
        raise KeyError(f"there is no text {name!r}")

    def price(self, model: str, text: str) -> float | None:
        """How many tokens a text has for each of the base. None without a base, or if that is empty."""
        base = self[model, self.base].tokens if self.base is not None else 0
        return self[model, text].tokens / base if base else None

    def rows(self) -> Iterator[dict[str, Any]]:
        """A row for each cell, with everything that is derived from it, and the model's speed."""
        speeds = {model.name: model.megabytes_per_second for model in self.models}
        for cell in self.cells:
            text = self.text(cell.text)
            row: dict[str, Any] = {**asdict(cell)}
            for name in ("bytes", "characters", "words"):
                whole: int = getattr(text, name)
                row[name] = whole
                row[f"tokens_per_{name[:-1]}"] = cell.tokens / whole if whole else None
            row["byte_share"] = cell.byte_tokens / cell.tokens if cell.tokens else None
            row["price"] = self.price(cell.model, cell.text)
            row["megabytes_per_second"] = speeds[cell.model]
            yield row

    def to_dict(self) -> dict[str, Any]:
        """Everything, as values that JSON has."""
        return {
            "base": self.base,
            "models": [asdict(model) for model in self.models],
            "texts": [asdict(text) for text in self.texts],
            "rows": list(self.rows()),
            "probes": [{**asdict(probe), "example": list(probe.example)} for probe in self.probes],
        }

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=1)

    def to_csv(self) -> str:
        """The rows as CSV, with a line of names; then the probes, with their group as the text."""
        import csv
        import io

        out = io.StringIO()
        rows = list(self.rows())
        names = [name for name in _COLUMNS if name != "example"]
        writer = csv.DictWriter(out, names, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        for probe in self.probes:
            writer.writerow(
                {"model": probe.model, "text": f"{probe.group}: {probe.name}", "tokens": f"{probe.tokens:g}"}
            )
        return out.getvalue()


_COLUMNS = (
    "model",
    "text",
    "tokens",
    "bytes",
    "characters",
    "words",
    "tokens_per_byte",
    "tokens_per_character",
    "tokens_per_word",
    "price",
    "byte_tokens",
    "byte_share",
    "unknown_tokens",
    "used",
    "renyi_efficiency",
    "megabytes_per_second",
    "checked",
    "changed",
    "example",
)
