"""`cpbpe.compat.tiktoken` against tiktoken: the same calls, in turn, on one thread.

    python -m benchmarks.compat_tiktoken RANKS.tiktoken [--pattern cl100k] [--text FILE]

For each call it prints how many times as fast the call of cpbpe is: the median of the ratios of rounds.
Results are compared before the clock starts.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cpbpe.compat.tiktoken as ours
from benchmarks.memory import STRING
from benchmarks.program import show_calls
from cpbpe.compat.tiktoken.load import load_tiktoken_bpe
from cpbpe.text.split_patterns import PATTERNS

TEXTS = 1_000
SIZES = (400, 4_000)
"""How many texts a batch has, and of how many characters they are."""
END = "<|endoftext|>"


def cases(text: str, encoding: Any) -> dict[str, Callable[[Any], Any]]:
    """What is called."""
    some, long = ([text[at * size : (at + 1) * size] for at in range(TEXTS)] for size in SIZES)
    short = [text[at * 60 : at * 60 + 32] for at in range(TEXTS)]
    ids = {name: encoding.encode_ordinary_batch(texts) for name, texts in (("short", short), ("long", long))}
    ended = [[*row, encoding.eot_token] for row in ids["long"]]
    made: dict[str, Callable[[Any], Any]] = {
        "encode('')": lambda e: [e.encode("") for _ in range(TEXTS)],
        "encode, 11 characters": lambda e: [e.encode("hello world") for _ in range(TEXTS)],
        "encode, 32 characters": lambda e: [e.encode(STRING) for _ in range(TEXTS)],
        "encode, 32 characters, all allowed": lambda e: [
            e.encode(one, allowed_special="all") for one in short
        ],
        "encode, 32 characters, none refused": lambda e: [
            e.encode(one, disallowed_special=()) for one in short
        ],
        "encode, with a special token": lambda e: [
            e.encode(one + END, allowed_special="all") for one in short
        ],
        "encode_ordinary, 32 characters": lambda e: [e.encode_ordinary(one) for one in short],
        f"encode, {SIZES[0]} characters": lambda e: [e.encode(one) for one in some],
        f"encode, {SIZES[1]} characters": lambda e: [e.encode(one) for one in long[:200]],
        "encode, 4,000,000 characters": lambda e: e.encode(text[: TEXTS * SIZES[1]]),
        "encode_to_numpy, 32 characters": lambda e: [e.encode_to_numpy(one).tolist() for one in short],
        f"encode_to_numpy, {SIZES[1]} characters": lambda e: [len(e.encode_to_numpy(one)) for one in long],
        "encode_batch, 32 characters": lambda e: e.encode_batch(short),
        f"encode_batch, {SIZES[0]} characters": lambda e: e.encode_batch(some),
        "encode_with_unstable, 'hello fanta'": lambda e: len(e.encode_with_unstable("hello fanta")[1]),
        "encode_single_token": lambda e: [e.encode_single_token("hello") for _ in range(TEXTS)],
        "decode_single_token_bytes": lambda e: [e.decode_single_token_bytes(300) for _ in range(TEXTS)],
        "decode, ids with a special token": lambda e: [e.decode(row) for row in ended],
    }
    for name, rows in ids.items():
        made |= {
            f"{call}, {name} lists": lambda e, call=call, rows=rows: [getattr(e, call)(row) for row in rows]  # type: ignore[misc]
            for call in ("decode", "decode_bytes", "decode_tokens_bytes", "decode_with_offsets")
        }
        made[f"decode_batch, {name} lists"] = lambda e, rows=rows: e.decode_batch(rows)  # type: ignore[misc]
    return made


def main() -> None:
    """Compare, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("ranks", help="a file of ranks")
    parser.add_argument("--pattern", default="cl100k", help="the name of its pattern")
    parser.add_argument("--text", type=Path, default=Path("LICENSE"), help="a text file (default: LICENSE)")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    import tiktoken

    text = options.text.read_text(encoding="utf-8")
    text *= TEXTS * SIZES[-1] // len(text) + 1
    ranks = load_tiktoken_bpe(options.ranks)
    arguments: dict[str, Any] = {
        "pat_str": PATTERNS[options.pattern],
        "mergeable_ranks": ranks,
        "special_tokens": {END: max(ranks.values()) + 1, "<|endofprompt|>": max(ranks.values()) + 20},
    }
    pair = ours.Encoding("ours", **arguments), tiktoken.Encoding("theirs", **arguments)
    show_calls(cases(text, pair[0]), pair, options.rounds)


if __name__ == "__main__":
    main()
