"""Growth: the time per byte for texts that are hard for tokenizers, from 10 KB to 10 MB.

    python -m benchmarks.pathological --out growth.json
    python -m benchmarks.pathological --byte-level

A good encoder takes as long for each byte of a long hard text as for each byte of a short one. The table
says how far a library is from that: the largest time per byte divided by the smallest, over all sizes.

Each random text is new to the tokenizer. But the tokenizer is not fresh: it has encoded one text of the
kind, 9 KB long, before the clock starts. Short sizes are measured on several texts.
A library that would take longer than `--limit` seconds for the next size, going by its time per byte for the
last, skips that size ("skipped" in the table). Ids are compared with sentencepiece's wherever it has them.
"""

from __future__ import annotations

import argparse
import base64
import gc
import hashlib
import json
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks import tokenizer_json
from benchmarks.byte_level import VOCABULARIES, Loaded
from benchmarks.cases import LIBRARIES, Files, Library
from benchmarks.corpora import DATA, corpus_path
from benchmarks.run import commit, default_model, machine, versions
from cpbpe.model.formats import model_pb2

SIZES = {10_000: 20, 100_000: 5, 1_000_000: 2, 10_000_000: 1}  # bytes -> how many texts
LIMIT = 20.0
Maker = Callable[[int, random.Random], str]
Report = dict[str, Any]


def repeated(unit: str) -> Maker:
    """The same characters again and again."""
    return lambda size, chance: (unit * (size // len(unit.encode()) + 1))[
        : size // len(unit.encode()) * len(unit)
    ]


def from_letters(letters: str) -> Maker:
    """Random letters of these, all of which must be as many bytes long as the first."""
    width = len(letters[0].encode())
    return lambda size, chance: "".join(chance.choices(letters, k=size // width))


def base64_text(size: int, chance: random.Random) -> str:
    """Random bytes in base64, without line ends."""
    return base64.b64encode(chance.randbytes(size * 3 // 4)).decode()


class Vocabulary:
    """What can be made of a model's pieces to give its merges much to do."""

    def __init__(self, model: Path) -> None:
        parsed = model_pb2.ModelProto.FromString(model.read_bytes())
        normal = model_pb2.ModelProto.SentencePiece.NORMAL
        self.scores = {piece.piece.decode(): piece.score for piece in parsed.pieces if piece.type == normal}

    def word(self) -> Maker:
        """One word: pieces of letters, one after another, without a space."""
        pieces = sorted(piece for piece in self.scores if piece.isascii() and piece.isalpha())

        def make(size: int, chance: random.Random) -> str:
            return "".join(chance.choices(pieces, k=size // 2))[:size]

        return make

    def ideographs(self) -> Maker:
        """Chinese characters, without spaces: most of those in the vocabulary, some that are not."""
        known = sorted(piece for piece in self.scores if len(piece) == 1 and "\u4e00" <= piece <= "\u9fff")
        return from_letters("".join(known * 4) + "".join(map(chr, range(0x4E00, 0x9000, 8))))

    def ladder(self) -> Maker:
        """The longest run in which each pair of neighbours merges before the pair to its left.

        The best pair is the last, and when it is merged the one before must wait for another partner: the
        work goes from right to left, and every merge undoes the plans of its neighbours. The last character
        can merge with the first, so that runs joined end to end cannot be cut anywhere.
        """
        best: dict[str, str] = {}  # a character -> the longest run that ends with it
        pairs = sorted((score, piece) for piece, score in self.scores.items() if len(piece) == 2)
        closed = ""
        for _, piece in pairs:
            run = best.get(piece[0], piece[0]) + piece[1]
            if len(run) > len(best.get(piece[1], "")):
                best[piece[1]] = run
                if len(run) > len(closed) and run[-1] + run[0] in self.scores and "▁" not in run:
                    closed = run
        return repeated(closed)

    def overlaps(self) -> Maker:
        """Pieces one after another that could also merge across their border."""
        pieces = sorted(
            piece for piece in self.scores if piece.isascii() and piece.isalpha() and len(piece) > 2
        )
        by_start: dict[str, list[str]] = {}
        for piece in pieces:
            by_start.setdefault(piece[0], []).append(piece)
        follow = {
            last: [first for first in sorted(by_start) if last + first in self.scores]
            for last in sorted({piece[-1] for piece in pieces})
        }

        def make(size: int, chance: random.Random) -> str:
            parts, total, piece = [], 0, "the"
            while total < size:
                parts.append(piece)
                total += len(piece)
                starts = follow[piece[-1]] or sorted(by_start)
                piece = chance.choice(by_start[chance.choice(starts)])
            return "".join(parts)[:size]

        return make


def inputs(model: Path) -> dict[str, Maker]:
    """The hard texts: name -> what makes one."""
    vocabulary = Vocabulary(model)
    return {
        "one word": vocabulary.word(),
        "spaces": repeated(" "),
        "base64": base64_text,
        "Chinese, no spaces": vocabulary.ideographs(),
        "merges from right to left": vocabulary.ladder(),
        "pieces that could merge with their neighbours": vocabulary.overlaps(),
        "the letter a": repeated("a"),
        "the letter é": repeated("é"),
        "a and b in turn": repeated("ab"),
        "unknown characters": from_letters("".join(map(chr, range(0xF0000, 0xF1000)))),
        "random letters": from_letters("abcdefghijklmnopqrstuvwxyz"),
    }


class Runner:
    """A library with the model loaded, and the call that is timed: its ids as an array, or else as a list."""

    def __init__(self, library: Library, files: Files) -> None:
        self.library = library
        tok = library.load(files)
        for name in ("array", "list"):
            try:
                self.call = library.calls[name](tok)
            except (AttributeError, KeyError):
                continue
            self.form = name
            return
        raise AttributeError(f"{library.name} has neither encode to array nor to list")

    def seconds_per_byte(self, texts: list[str]) -> tuple[float, list[str]]:
        """The median over the texts, and the checksums of their ids."""
        times, sums = [], []
        for text in texts:
            size = len(text.encode())
            gc.collect()
            gc.disable()
            begin = perf_counter()
            result = self.call(text)
            seconds = perf_counter() - begin
            gc.enable()
            times.append(seconds / size)
            sums.append(checksum(result))
        return median(times), sums


def checksum(ids: Any) -> str:
    """The checksum of ids in an array or in a list."""
    import numpy as np

    return hashlib.sha256(np.asarray(ids, dtype=np.uint32).tobytes()).hexdigest()


def next_seconds(times: dict[int, float], size: int) -> float:
    """What a size would take at least: as much time per byte as the size before it."""
    return times[max(times)] * size if times else 0.0


def measure(make: Maker, libraries: list[Library], files: Files, limit: float, largest: int) -> Report:
    """One kind of text, all sizes, libraries in turn at each size."""
    runners = {library.name: Runner(library, files) for library in libraries}
    report: Report = {name: {"ns_per_byte": {}, "let_off": {}, "differ": 0} for name in runners}
    times: dict[str, dict[int, float]] = {name: {} for name in runners}
    warm = make(9_000, random.Random(0))
    for runner in runners.values():
        runner.call(warm)
    for size, count in SIZES.items():
        if size > largest:
            break
        texts = [make(size, random.Random(size + number)) for number in range(count)]
        sums: dict[str, list[str]] = {}
        for name, runner in runners.items():
            expected = next_seconds(times[name], size) * count
            if report[name]["let_off"] or expected > limit:
                report[name]["let_off"][size] = expected
                continue
            times[name][size], sums[name] = runner.seconds_per_byte(texts)
            report[name]["ns_per_byte"][size] = times[name][size] * 1e9
        for name in sums:
            pairs = zip(sums[name], sums.get("sentencepiece", sums[name]), strict=True)
            report[name]["differ"] += sum(a != b for a, b in pairs)
    for name, by_size in times.items():
        report[name]["growth"] = max(by_size.values()) / min(by_size.values())
    return report


def table(kind: str, report: Report) -> None:
    """One kind of text, a line for each library."""
    for name, figures in report.items():
        cells = []
        for size in SIZES:
            if size in figures["ns_per_byte"]:
                cells.append(f"{figures['ns_per_byte'][size]:9.1f}")
            else:
                cells.append(f"{'skipped' if size in figures['let_off'] else '':>9}")
        notes = f"  DIFFERS in {figures['differ']} texts" if figures["differ"] else ""
        if figures["let_off"]:
            estimate = next(iter(figures["let_off"].values()))
            notes += f"  (skipped: the next size would take {estimate:.0f} s or more)"
        print(f"{kind:26} {name:14} {' '.join(cells)} {figures['growth']:7.2f}{notes}", flush=True)


# --- Byte-level models --------------------------------------------------------------------------------

BYTE_LEVEL_SIZE = 1_000_000
BYTE_LEVEL_LIMIT = 20.0  # times as long as English
UNITS = {
    "the letter a": "a",
    "spaces": " ",
    "newlines": "\n",
    "newlines and spaces": "\n ",
    "apostrophes": "'",
    "digits": "7",
    "one Chinese character": "漢",
    "capital letters": "A",
    "a combining mark": "\u0301",
}


def streamed(tok: Any, text: str) -> int:
    """How many ids come out of a stream that is given 4 KB at a time."""
    stream = tok.stream_encoder()
    count = sum(len(stream.push(text[at : at + 4096])) for at in range(0, len(text), 4096))
    return count + len(stream.flush())


BYTE_LEVEL_CALLS: dict[str, Callable[[Any, str], Any]] = {
    "encode": lambda tok, text: tok.encode(text),
    "array": lambda tok, text: tok.encode_array(text),
    "spans": lambda tok, text: tok.encode_arrays([text], spans=True),
    "count": lambda tok, text: tok.count(text),
    "stream": streamed,
}


def byte_level(data: Path) -> Report:
    """For each published vocabulary, call and text: the time, as a multiple of that of English."""
    report: Report = {}
    english = corpus_path(data, "en").read_text(encoding="utf-8")[:BYTE_LEVEL_SIZE]
    calls = " ".join(f"{name:>8}" for name in BYTE_LEVEL_CALLS)
    print(f"{'time, as a multiple of English':41} {calls}")
    with tempfile.TemporaryDirectory() as folder:
        for name, vocabulary in VOCABULARIES.items():
            tok = Loaded(vocabulary, Path(folder)).cpbpe()
            base = {call: best_time(make, tok, english) for call, make in BYTE_LEVEL_CALLS.items()}
            for kind, unit in UNITS.items():
                text = unit * (BYTE_LEVEL_SIZE // len(unit.encode()))
                times = {call: best_time(make, tok, text) for call, make in BYTE_LEVEL_CALLS.items()}
                found = {call: times[call] / base[call] for call in times}
                report.setdefault(name, {})[kind] = found
                cells = " ".join(f"{value:8.2f}" for value in found.values())
                note = "  TOO LONG" if max(found.values()) > BYTE_LEVEL_LIMIT else ""
                print(f"{name:12} {kind:28} {cells}{note}", flush=True)
    return report


def best_time(call: Callable[[Any, str], Any], tok: Any, text: str) -> float:
    """The shortest of three, the first of which may fill caches."""
    times = []
    for _ in range(3):
        begin = perf_counter()
        call(tok, text)
        times.append(perf_counter() - begin)
    return min(times)


def main(arguments: list[str] | None = None) -> None:
    """Measure all kinds of hard text."""
    parser = argparse.ArgumentParser(description="How the time for bad texts grows with their length.")
    parser.add_argument("--library", action="append", choices=[library.name for library in LIBRARIES])
    parser.add_argument("--input", action="append", help="only this kind of text (may be repeated)")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for all the texts of a size")
    parser.add_argument("--largest", type=int, default=max(SIZES), help="bytes of the longest text")
    parser.add_argument("--model", type=Path, help="a Llama-style .model (default: mistral-common's)")
    parser.add_argument("--out", type=Path, help="the JSON file to write")
    parser.add_argument("--byte-level", action="store_true", help="byte-level models instead")
    parser.add_argument("--data", type=Path, default=DATA, help="where the corpora are, for --byte-level")
    options = parser.parse_args(arguments)
    if options.byte_level:
        rows = byte_level(options.data)
        if options.out:
            options.out.write_text(json.dumps({"machine": machine(), "byte_level": rows}, indent=1) + "\n")
        return
    wanted = options.library or ["cpbpe", "sentencepiece"]
    libraries = [library for library in LIBRARIES if library.name in wanted]
    model = options.model or default_model()
    outcome: Report = {"facts": {"machine": machine(), "commit": commit(), "versions": versions(wanted)}}
    outcome["inputs"] = {}
    with tempfile.TemporaryDirectory() as folder:
        files = Files(model, Path(folder) / "tokenizer.json")
        tokenizer_json.write(files.model, files.json)
        heads = " ".join(f"{size // 1000:6} KB" for size in SIZES)
        print(f"{'nanoseconds for each byte':26} {'':14} {heads}  growth")
        for kind, make in inputs(model).items():
            if options.input and kind not in options.input:
                continue
            report = measure(make, libraries, files, options.limit, options.largest)
            table(kind, report)
            outcome["inputs"][kind] = report
            if options.out:
                options.out.write_text(json.dumps(outcome, indent=1) + "\n")


if __name__ == "__main__":
    main()
