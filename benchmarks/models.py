"""Encoding with every kind of model, because a tokenizer can be fast for one kind only.

    python -m benchmarks.models --out models.json
    python -m benchmarks.models --model some.model     # this one instead (may be repeated)

Trains one small model of each kind on the first of the texts, and measures `encode_array` on the last of
them in turn with sentencepiece's `encode(..., return_type="numpy")`. All ids are compared first, which is
also the untimed pass.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import sentencepiece

import cpbpe
from benchmarks.corpora import DATA, corpus_path, read_documents
from benchmarks.program import in_turn
from benchmarks.run import commit, machine, versions
from cpbpe import PieceType
from cpbpe.model.formats import sentencepiece as file_format

CORPORA = ("en", "multi")
TRAINED_ON = 4_000_000
PIECES = 16_000
RULES = ("nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf")
LLAMA: dict[str, Any] = {"preset": "llama2", "vocab_size": PIECES}
DEFAULTS: dict[str, Any] = {"vocab_size": PIECES}


def taken(documents: list[str], size: float) -> list[str]:
    """The first documents that have this many bytes."""
    found, total = [], 0
    for text in documents:
        if total >= size:
            break
        found.append(text)
        total += len(text.encode())
    return found


def words(documents: list[str], count: int) -> list[str]:
    """The commonest words, to be user-defined pieces."""
    counts: dict[str, int] = {}
    for text in documents:
        for word in text.split():
            if 3 < len(word) < 20:
                counts[word] = counts.get(word, 0) + 1
    return sorted(counts, key=lambda word: (-counts[word], word))[:count]


def with_unused(data: bytes) -> bytes:
    """The same model with every tenth longer piece UNUSED, as a vocabulary that was cut down."""
    spec = file_format.read(data)
    types = [
        PieceType.UNUSED
        if id % 10 == 0 and piece.type == PieceType.NORMAL and len(piece.text) > 4
        else piece.type
        for id, piece in enumerate(spec.pieces)
    ]
    pieces = [piece._replace(type=type) for piece, type in zip(spec.pieces, types, strict=True)]
    return file_format.write(replace(spec, pieces=type(spec.pieces).of(pieces)))


def kinds(documents: list[str]) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """The kinds of model, and what makes each."""

    def train(**options: Any) -> Callable[[], bytes]:
        return lambda: cpbpe.train(documents, **options).tokenizer.to_bytes()

    frequent = words(documents, 16_000)
    yield "as Llama 2's", train(**LLAMA)
    yield "128,000 pieces", train(**LLAMA | {"vocab_size": 128_000})
    yield "spaces removed", train(**LLAMA, remove_extra_whitespaces=True)
    for rule in RULES:
        yield rule, train(**DEFAULTS, normalization_rule_name=rule)
    yield "nmt_nfkc, no byte fallback", train(vocab_size=PIECES, byte_fallback=False)
    yield "spaces at the end of words", train(**LLAMA, treat_whitespace_as_suffix=True)
    yield "100 user-defined pieces", train(**LLAMA, user_defined_symbols=frequent[:1000:10])
    yield "1,000 user-defined pieces", train(**LLAMA, user_defined_symbols=frequent[:10_000:10])
    yield (
        "8,000 user-defined pieces",
        train(**LLAMA | {"vocab_size": 2 * PIECES}, user_defined_symbols=frequent[::2]),
    )
    yield (
        "16,000 user-defined pieces",
        train(**LLAMA | {"vocab_size": 3 * PIECES}, user_defined_symbols=frequent),
    )
    yield "nmt_nfkc, 100 user-defined", train(**DEFAULTS, user_defined_symbols=frequent[:1000:10])
    yield (
        "nmt_nfkc, 16,000 user-defined",
        train(**DEFAULTS | {"vocab_size": 3 * PIECES}, user_defined_symbols=frequent),
    )
    letters = [re.sub(r"[^a-z]+", " ", text.lower()) for text in documents]
    yield "51 pieces", lambda: cpbpe.train(letters, vocab_size=51, byte_fallback=False).tokenizer.to_bytes()
    yield "UNUSED pieces", lambda: with_unused(train(**LLAMA)())


def measured(data: bytes, documents: list[str], rounds: int) -> dict[str, Any]:
    """How fast a model is, beside sentencepiece."""
    ours, theirs = cpbpe.Tokenizer.from_bytes(data), sentencepiece.SentencePieceProcessor(model_proto=data)
    for text in documents:
        assert np.array_equal(ours.encode_array(text), theirs.encode(text, return_type="numpy")), text

    def all_ours() -> None:
        for text in documents:
            ours.encode_array(text)

    def all_theirs() -> None:
        for text in documents:
            theirs.encode(text, return_type="numpy")

    times = in_turn({"ours": all_ours, "theirs": all_theirs}, rounds)
    size = sum(len(text.encode()) for text in documents)
    return {
        "MB/s": size / 1e6 / median(times["ours"]),
        "ratio": median(b / a for a, b in zip(times["ours"], times["theirs"], strict=True)),
        "seconds": times,
    }


def main() -> None:
    """Train, measure, print and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="where the corpora are")
    parser.add_argument(
        "--model", type=Path, action="append", help="a model to measure instead (may be repeated)"
    )
    parser.add_argument("--kind", action="append", help="only this kind of model (may be repeated)")
    parser.add_argument(
        "--megabytes", type=float, default=2.0, help="how much text of each corpus (default: 2)"
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, help="the JSON file to write")
    options = parser.parse_args()
    texts = {name: read_documents(corpus_path(options.data, name)) for name in CORPORA}
    late = {name: taken(texts[name][::-1], options.megabytes * 1e6) for name in CORPORA}
    models: list[tuple[str, Callable[[], bytes]]]
    if options.model:
        models = [(path.name, path.read_bytes) for path in options.model]
    else:
        models = list(kinds([text for name in CORPORA for text in taken(texts[name], TRAINED_ON)]))
    outcome: dict[str, Any] = {
        "facts": {
            "machine": machine(),
            "versions": versions(["cpbpe", "sentencepiece"]),
            "commit": commit(),
            "settings": {"rounds": options.rounds, "megabytes": options.megabytes},
        },
        "results": {},
    }
    for name, make in models:
        if options.kind and name not in options.kind:
            continue
        data = make()
        results = {corpus: measured(data, late[corpus], options.rounds) for corpus in CORPORA}
        outcome["results"][name] = results
        cells = (
            f"{corpus} {found['MB/s']:6.0f} MB/s {found['ratio']:6.1f} x" for corpus, found in results.items()
        )
        print(f"{name:<29}", *cells, sep="  ", flush=True)
        if options.out:
            options.out.write_text(json.dumps(outcome, indent=1) + "\n")


if __name__ == "__main__":
    main()
