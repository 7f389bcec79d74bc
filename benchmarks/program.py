"""What a program does besides encoding: special tokens, offsets, sampling. (Streams: `benchmarks.streaming`.)

    python -m benchmarks.program --out program.json

- **tokens added**: `encode(..., allowed_special="all")` with 10,000 added tokens, in turn with plain
  `encode`, on documents of about 4 KB that hold none of them. The ratio is what looking for them costs. It
  depends on the bytes that the tokens begin with, so there are several sets.
- **offsets** and **sampling**, compared with sentencepiece.
- **spans in batches**: `encode_arrays(..., spans=True)`, in turn with `encode_arrays` of ids alone. The
  ratio is how much longer it takes.

Answers are compared first.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import sentencepiece

import cpbpe
from benchmarks.clock import timed
from benchmarks.corpora import corpus_path, read_documents
from benchmarks.run import commit, default_model, machine, versions

Call = Callable[[], object]


def in_turn(calls: dict[str, Call], rounds: int) -> dict[str, list[float]]:
    """Seconds of each call, round by round."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(timed(call))
    return times


def ratio(times: dict[str, list[float]], name: str, base: str) -> float:
    """The median of the rounds' ratios."""
    return median(a / b for a, b in zip(times[name], times[base], strict=True))


def show_calls(cases: dict[str, Callable[[Any], Any]], pair: tuple[Any, Any], rounds: int) -> None:
    """How many times as fast the first of the two answers each call, after their answers were compared."""
    ours, theirs = pair
    for name, call in cases.items():
        assert call(ours) == call(theirs), name
        times = in_turn({"ours": partial(call, ours), "theirs": partial(call, theirs)}, rounds)
        print(f"{name:<42} {ratio(times, 'theirs', 'ours'):6.1f} ×")


def sets(count: int) -> dict[str, list[str]]:
    """Tokens of several kinds, by what they begin with."""
    chance = random.Random(1)
    signs = "@#$%&*+=~^|\\_<[{(!?"
    letters = "abcdefghijklmnopqrstuvwxyz"
    return {
        "<|extra_7|>": [f"<|extra_{i}|>" for i in range(count)],
        "[unused7]": [f"[unused{i}]" for i in range(count)],
        "of 19 signs, @#tok7": ["".join(chance.choices(signs, k=2)) + f"tok{i}" for i in range(count)],
        "random letters": ["".join(chance.choices(letters, k=12)) for i in range(count)],
    }


def added(tok: cpbpe.Tokenizer, documents: list[str], count: int, rounds: int) -> dict[str, Any]:
    """What looking for added tokens costs: the time with them over the time without."""
    costs: dict[str, Any] = {}
    for name, tokens in sets(count).items():
        more = tok.with_special_tokens(tokens)
        texts = [text for text in documents if tok.encode(text) == more.encode(text, allowed_special="all")]
        assert len(texts) > len(documents) * 0.9, name  # hardly any holds one by chance
        for text in set(documents) - set(texts):
            assert any(token in text for token in tokens), text
        half = f"{tokens[0]}x{texts[0]}{tokens[1]}"
        ids = [tok.vocab_size, *tok.encode(f"x{texts[0]}"), tok.vocab_size + 1]
        assert more.encode(half, allowed_special="all") == ids, name
        times = in_turn(
            {
                "list": lambda texts=texts: [tok.encode(text) for text in texts],  # type: ignore[misc]
                "list, added": lambda texts=texts, more=more: [  # type: ignore[misc]
                    more.encode(text, allowed_special="all") for text in texts
                ],
                "array": lambda texts=texts: [tok.encode_array(text) for text in texts],  # type: ignore[misc]
                "array, added": lambda texts=texts, more=more: [  # type: ignore[misc]
                    more.encode_array(text, allowed_special="all") for text in texts
                ],
            },
            rounds,
        )
        costs[name] = {
            "list": ratio(times, "list, added", "list"),
            "array": ratio(times, "array, added", "array"),
            "seconds": times,
        }
    return costs


def beside(tok: cpbpe.Tokenizer, model: Path, documents: list[str], rounds: int) -> dict[str, Any]:
    """Offsets and sampling: how many times as fast as sentencepiece."""
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(model))
    for text in documents[:50]:
        mapping = theirs.encode(text, return_type="offset_mapping")
        alignment = tok.align(text)
        assert (alignment.ids, alignment.offsets) == (mapping["ids"], mapping["offsets"])

    def sampled() -> None:
        for seed, text in enumerate(documents):
            tok.encode(text, alpha=0.1, seed=seed)

    def sampled_there() -> None:
        for text in documents:
            theirs.encode(text, enable_sampling=True, alpha=0.1, nbest_size=-1)

    def offsets() -> None:
        for text in documents:
            tok.align(text)

    def offsets_there() -> None:
        for text in documents:
            theirs.encode(text, return_type="offset_mapping")

    times = in_turn({"o": offsets, "o2": offsets_there, "s": sampled, "s2": sampled_there}, rounds)
    size = sum(len(text.encode()) for text in documents)
    return {
        "offsets": {"speed": size / median(times["o"]), "ratio": ratio(times, "o2", "o")},
        "sampling": {"speed": size / median(times["s"]), "ratio": ratio(times, "s2", "s")},
    }


def spans_in_batches(tok: cpbpe.Tokenizer, documents: list[str], rounds: int) -> dict[str, float]:
    """How many times as long ids with their spans take as ids alone, by the number of threads."""
    costs = {}
    for threads in (1, 2):
        rows = tok.encode_arrays(documents, threads=threads, spans=True)
        assert rows.spans is not None
        for index in range(0, len(documents), max(1, len(documents) // 50)):
            encoding, row = tok.align(documents[index]), rows[index : index + 1]
            assert row.spans is not None
            assert (row.ids.tolist(), row.spans.tolist()) == (encoding.ids, list(map(list, encoding.offsets)))
        del rows, row
        times = in_turn(
            {
                "ids": lambda threads=threads: tok.encode_arrays(documents, threads=threads),  # type: ignore[misc]
                "spans": lambda threads=threads: tok.encode_arrays(documents, threads=threads, spans=True),  # type: ignore[misc]
            },
            rounds,
        )
        costs[str(threads)] = ratio(times, "spans", "ids")
    return costs


def main(arguments: list[str] | None = None) -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("benchmarks/data"))
    parser.add_argument("--corpus", default="en", help="which of the texts (default: en)")
    parser.add_argument("--model", type=Path, default=None)
    parser.add_argument("--megabytes", type=float, default=4.0, help="how much of it (default: 4)")
    parser.add_argument("--tokens", type=int, default=10_000, help="how many are added (default: 10,000)")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    model = options.model or default_model()
    tok = cpbpe.load(model)
    documents, size = [], 0
    for text in read_documents(corpus_path(options.data, options.corpus)):
        documents.append(text)
        size += len(text)
        if size >= options.megabytes * 1e6:
            break
    report: dict[str, Any] = {
        "machine": machine(),
        "versions": versions(["sentencepiece"]),
        "commit": commit(),
        "corpus": options.corpus,
        "added": added(tok, documents, options.tokens, options.rounds),
        "beside sentencepiece": beside(tok, model, documents[: len(documents) // 8], options.rounds),
        "spans in batches": spans_in_batches(tok, documents, options.rounds),
    }
    for name, cost in report["added"].items():
        print(f"{options.tokens} added {name:<22} list {cost['list']:.3f}  array {cost['array']:.3f}")
    for name, result in report["beside sentencepiece"].items():
        print(f"{name}: {result['speed'] / 1e6:.1f} MB/s, {result['ratio']:.2f} times sentencepiece")
    for threads, cost in report["spans in batches"].items():
        print(f"ids with spans, {threads} threads: {cost:.2f} times as long as ids")
    if options.out:
        options.out.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
