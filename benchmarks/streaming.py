"""Streams: how many tokens and characters a second, by the length of the stream and by the size of a push.

    python -m benchmarks.streaming [--model tokenizer.model] [--text FILE]

Nothing is compared with other libraries; the point is that long streams are no slower than short ones. (The
time includes making the stream, which shows in the shortest.) Before a clock starts, what a stream gives is
compared with what decoding, or encoding, the whole gives.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import cpbpe
from benchmarks.run import default_model

SIZES = [10, 100, 1_000, 10_000, 100_000, 1_000_000]
PARTS = [1, 4, 64, 4096, 1 << 20]
ROUNDS = 5
AT_LEAST = 20_000
"""How many tokens are decoded, at the least, between two looks at the clock."""


def best(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Seconds of the fastest round."""
    times = []
    for _ in range(rounds):
        begin = perf_counter()
        work()
        times.append(perf_counter() - begin)
    return min(times)


def decoding(tok: cpbpe.Tokenizer, text: str) -> None:
    """Ids to text: one id in each push, and all ids in one push. Lengths are numbers of ids."""
    base = tok.encode(text)
    share = sum(tok.vocab.piece_type(id) == cpbpe.PieceType.BYTE for id in base) / len(base)
    print(f"\n{share:.0%} of the ids are bytes: millions of tokens a second, one in a push, all in a push")
    for size in SIZES:
        ids = (base * (size // len(base) + 1))[:size]
        times = max(1, AT_LEAST // size)

        def singly(ids: list[int] = ids, times: int = times) -> str:
            for _ in range(times):
                stream = tok.stream_decoder()
                push = stream.push
                parts = [push(id) for id in ids]
            return "".join(parts) + stream.flush()

        def together(ids: list[int] = ids, times: int = times) -> str:
            for _ in range(times):
                stream = tok.stream_decoder()
                text = stream.push(ids)
            return text + stream.flush()

        assert singly() == together() == tok.decode(ids)
        speeds = [size * times / best(work) / 1e6 for work in (singly, together)]
        print(f"{size:>9,}  {speeds[0]:6.2f}  {speeds[1]:6.2f}")


def encoding(tok: cpbpe.Tokenizer, text: str) -> None:
    """Text to ids, in pushes of several sizes."""
    whole = text * (200_000 // len(text) + 1)
    print("\ncharacters in a push: millions of characters a second, microseconds for a push")
    for size in PARTS:

        def work(size: int = size) -> list[int]:
            stream = tok.stream_encoder()
            ids = [id for at in range(0, len(whole), size) for id in stream.push(whole[at : at + size])]
            return ids + stream.flush()

        assert work() == tok.encode(whole)
        seconds = best(work)
        pushes = -(-len(whole) // size)
        print(f"{size:>9,}  {len(whole) / seconds / 1e6:6.2f}  {seconds / pushes * 1e6:10.2f}")


def main() -> None:
    """Run all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", type=Path, default=None, help="a .model file (default: Mistral's)")
    parser.add_argument("--text", type=Path, default=Path("LICENSE"), help="a text file (default: LICENSE)")
    options = parser.parse_args()
    tok = cpbpe.load(options.model or default_model())
    text = options.text.read_text(encoding="utf-8")
    for make in (tok.stream_decoder, tok.stream_encoder):
        print(f"the first {make.__name__}: {best(make, 1) * 1e3:.1f} ms")
    decoding(tok, text)
    decoding(tok, "🦙🦄🐪 ქართული " * 50)
    encoding(tok, text)


if __name__ == "__main__":
    main()
