"""The drop-in replacement, `cpbpe.compat.sentencepiece`, against sentencepiece: the same calls, in turn.

    python -m benchmarks.compat [--model tokenizer.model] [--text FILE]

For each call it prints the time that the drop-in takes as a share of sentencepiece's. The last line says how
much time the drop-in adds to `cpbpe.Tokenizer.encode`. Results are compared before the clock starts (except
for samples, which are different every time).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import sentencepiece

import cpbpe
from benchmarks.memory import STRING
from benchmarks.program import Call, in_turn, ratio
from benchmarks.run import default_model
from cpbpe.compat import sentencepiece as drop_in

SHORT, DOCUMENT, LONG = 32, 4_000, 250_000
"""Characters of the texts."""
REPEATS = {SHORT: 2_000, DOCUMENT: 20, LONG: 1}
"""How often a call is made between two looks at the clock."""
SAMPLED = "sampled"
"""What is different every time, and not compared."""


def repeated(call: Call, times: int) -> Call:
    """The call, made several times."""

    def all_of_them() -> None:
        for _ in range(times):
            call()

    return all_of_them


def cases(text: str, ids: list[int]) -> dict[str, tuple[int, Callable[[Any], Any]]]:
    """What is called, on a text of which length."""
    short, document, long = STRING, text[:DOCUMENT], text[:LONG]
    return {
        "32 characters to ids": (SHORT, lambda sp: sp.encode(short)),
        "32 characters to pieces": (SHORT, lambda sp: sp.encode(short, out_type=str)),
        "4 KB to ids": (DOCUMENT, lambda sp: sp.encode(document)),
        "250 KB to ids": (LONG, lambda sp: sp.encode(long)),
        "4 KB from ids": (DOCUMENT, lambda sp: sp.decode(ids)),
        "32 characters to an offset mapping": (
            SHORT,
            lambda sp: sp.encode(short, return_type="offset_mapping"),
        ),
        "4 KB to an offset mapping": (DOCUMENT, lambda sp: sp.encode(document, return_type="offset_mapping")),
        "4 KB to a message": (DOCUMENT, lambda sp: sp.encode(document, return_type="serialized_proto")),
        "4 KB from ids, offset mapping": (DOCUMENT, lambda sp: sp.decode(ids, return_type="offset_mapping")),
        "4 KB from ids, message": (DOCUMENT, lambda sp: sp.decode(ids, return_type="serialized_proto")),
        "4 KB normalized, with offsets": (DOCUMENT, lambda sp: sp.normalize(document, with_offsets=True)),
        f"32 characters, {SAMPLED}": (SHORT, lambda sp: sample(sp, short)),
        f"4 KB, {SAMPLED}": (DOCUMENT, lambda sp: sample(sp, document)),
    }


def sample(sp: Any, text: str) -> Any:
    """Encode with merges skipped at random."""
    return sp.encode(text, enable_sampling=True, alpha=0.1, nbest_size=-1)


def main() -> None:
    """Compare, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", type=Path, default=None, help="a .model file (default: Mistral's)")
    parser.add_argument("--text", type=Path, default=Path("LICENSE"), help="a text file (default: LICENSE)")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    model = str(options.model or default_model())
    text = options.text.read_text(encoding="utf-8")
    text *= LONG // len(text) + 1
    theirs = sentencepiece.SentencePieceProcessor(model_file=model)
    ours = drop_in.SentencePieceProcessor(model_file=model)
    tok = cpbpe.load(model)
    for name, (size, call) in cases(text, theirs.encode(text[:DOCUMENT])).items():
        assert name.endswith(SAMPLED) or call(ours) == call(theirs), name
        calls = {
            "ours": repeated(lambda call=call: call(ours), REPEATS[size]),  # type: ignore[misc]
            "theirs": repeated(lambda call=call: call(theirs), REPEATS[size]),  # type: ignore[misc]
        }
        print(f"{name:<36} {ratio(in_turn(calls, options.rounds), 'ours', 'theirs'):6.3f}")
    calls = {
        "drop-in": repeated(lambda: ours.encode(STRING), REPEATS[SHORT]),
        "Tokenizer": repeated(lambda: tok.encode(STRING), REPEATS[SHORT]),
    }
    times = in_turn(calls, options.rounds)
    more = median(a - b for a, b in zip(times["drop-in"], times["Tokenizer"], strict=True))
    print(f"\nthe drop-in adds {more / REPEATS[SHORT] * 1e6:.2f} µs to a call of encode")


if __name__ == "__main__":
    main()
