"""Texts of our own, made to ask one question each: what data costs in each format, numbers, indentation."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass

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
"""The data of which every format says the same."""

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


@dataclass(frozen=True)
class Probe:
    """Some texts that ask for one thing."""

    group: str
    """"formats", "digits" or "indentation"."""
    name: str
    texts: tuple[str, ...]


def probes() -> list[Probe]:
    """All of them."""
    found = [Probe("formats", name, (text,)) for name, text in formats().items()]
    chance = random.Random(1)
    for digits in range(1, MOST_DIGITS + 1):
        numbers = [str(chance.randrange(10 ** (digits - 1), 10**digits)) for _ in range(NUMBERS)]
        found.append(Probe("digits", str(digits), tuple(numbers)))
    found += [Probe("indentation", name, (indented(step),)) for name, step in STYLES.items()]
    return [*found, Probe("indentation", "none", (indented(""),))]


def indented(step: str) -> str:
    r"""The function, with this for each level.

    >>> indented("\t").splitlines()[2]
    '\tfor row in rows:'
    """
    return _CODE.replace(">>", "\0\0").replace("\0>", "\0\0").replace("\n>", "\n\0").replace("\0", step)


def formats() -> dict[str, str]:
    """The records in each format."""
    return {
        "JSON": json.dumps(RECORDS, ensure_ascii=False, separators=(",", ":")),
        "JSON, indented": json.dumps(RECORDS, ensure_ascii=False, indent=2),
        "JSON lines": "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in RECORDS),
        "YAML": "".join(_yaml(record) for record in RECORDS),
        "XML": f"<records>\n{''.join(map(_xml, RECORDS))}</records>\n",
        "CSV": _lines(",", [FIELDS, *(record.values() for record in RECORDS)]),
        "TSV": _lines("\t", [FIELDS, *(record.values() for record in RECORDS)]),
        "Markdown": _markdown(),
    }


def _yaml(record: dict[str, object]) -> str:
    lines = [f"{key}: {_plain(value)}" for key, value in record.items()]
    return "- " + "\n  ".join(lines) + "\n"


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _xml(record: dict[str, object]) -> str:
    return (
        "  <record>\n" + "".join(f"    <{k}>{_plain(v)}</{k}>\n" for k, v in record.items()) + "  </record>\n"
    )


def _lines(separator: str, rows: list[object]) -> str:
    quoted = [[f'"{v}"' if separator in _plain(v) else _plain(v) for v in row] for row in rows]  # type: ignore[attr-defined]
    return "".join(separator.join(row) + "\n" for row in quoted)


def _markdown() -> str:
    rows = [FIELDS, ["---"] * len(FIELDS), *(map(_plain, record.values()) for record in RECORDS)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
