"""`cpbpe.compat.tokenizers` against tokenizers: the same calls, in turn, on one thread.

    python -m benchmarks.compat_tokenizers [--model tokenizer.model] [--text FILE]

For each call it prints how many times as fast the calls of cpbpe are: the median of the ratios of rounds.
Results are compared before the clock starts.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cpbpe
from benchmarks.memory import STRING
from benchmarks.program import show_calls
from benchmarks.run import default_model
from cpbpe.compat import tokenizers as ours

TEXTS = 1_000
SIZES = (400, 4_000)
"""How many texts a batch has, and of how many characters they are."""


def cases(text: str, tok: cpbpe.Tokenizer) -> dict[str, Callable[[Any], Any]]:
    """What is called."""
    short, long = ([text[at * size : (at + 1) * size] for at in range(TEXTS)] for size in SIZES)

    ids = tok.encode_batch(short, add_bos=True)

    def some(batch: list[str], *names: str) -> Callable[[Any], Any]:
        return lambda t: [[getattr(e, name) for name in names] for e in t.encode_batch(batch)]

    return {
        f"encode_batch, {SIZES[0]} characters: ids": some(short, "ids"),
        f"encode_batch, {SIZES[1]} characters: ids": some(long, "ids"),
        "the same and attention_mask": some(long, "ids", "attention_mask"),
        "the same, tokens and offsets": some(long, "ids", "attention_mask", "tokens", "offsets"),
        "encode, 32 characters: ids": lambda t: [t.encode(STRING).ids for _ in range(TEXTS)],
        "encode_batch, padded and cut to 128": lambda t: cut_to(t, 128, short),
        "decode_batch, 1,000 lists of ids": lambda t: t.decode_batch(ids),
    }


def cut_to(tokenizer: Any, length: int, batch: list[str]) -> Any:
    """Ids and masks of one length."""
    tokenizer.enable_truncation(length)
    tokenizer.enable_padding(length=length)
    found = [(encoding.ids, encoding.attention_mask) for encoding in tokenizer.encode_batch(batch)]
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return found


def main() -> None:
    """Compare, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", type=Path, default=None, help="a .model file (default: Mistral's)")
    parser.add_argument("--text", type=Path, default=Path("LICENSE"), help="a text file (default: LICENSE)")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    os.environ["RAYON_NUM_THREADS"] = "1"  # tokenizers reads this
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    import tokenizers

    text = options.text.read_text(encoding="utf-8")
    text *= TEXTS * SIZES[-1] // len(text) + 1
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/tokenizer.json"
        tok = cpbpe.load(options.model or default_model())
        tok.using(add_bos=True).save(path)
        pair = ours.Tokenizer.from_file(path), tokenizers.Tokenizer.from_file(path)
    show_calls(cases(text, tok), pair, options.rounds)


if __name__ == "__main__":
    main()
