"""Packing: documents to token files, by `cpbpe.pack` and by what it replaces.

    python -m benchmarks.pack [--model tokenizer.model] [--size 100] [--corpus en] [--rounds 5] [--memory]

The rival does what Megatron-LM's script `preprocess_data.py` does, around Hugging Face's tokenizers: it reads
JSON Lines, parses each, encodes them with all threads, a thousand documents at a time, and appends the ids to
a file. Both get the same file. Before the clock starts, the files that both have written are compared.

The other rows say what reading and writing cost: the speed of `pack` as a share of that of `encode_arrays` on
the same texts, which are in memory already and whose ids are not written. Everything takes turns. With
`--memory`, the peak of the resident set of fresh processes is measured, for this size and a tenth of it.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np

import cpbpe
from benchmarks.corpora import DATA, corpus_path, read_documents
from benchmarks.run import default_model
from benchmarks.tokenizer_json import convert

THREADS = 2
BATCH = 1000

# (What `getrusage` says begins with the peak of the process that started this one.)
_PEAK = """
import re, sys
from pathlib import Path
import cpbpe

def peak():
    return re.search(r"VmHWM:\\s+([0-9]+)", Path("/proc/self/status").read_text())[1]

tok = cpbpe.load(sys.argv[1])
before = peak()
more = {"shuffle_seed": 1, "validation": 0.01} if len(sys.argv) > 4 else {}
cpbpe.pack(tok, sys.argv[2], sys.argv[3], to="megatron", threads=2, progress=False, **more)
print(before, peak())
"""


def documents(data: Path, corpus: str, size: int) -> list[bytes]:
    """Documents of a corpus, again and again until there are `size` bytes."""
    given = [text.encode() for text in read_documents(corpus_path(data, corpus))]
    texts: list[bytes] = []
    total = 0
    while total < size:
        for text in given:
            texts.append(text)
            total += len(text)
            if total >= size:
                break
    return texts


def write_files(folder: Path, texts: list[bytes]) -> None:
    """The documents as JSON Lines, as lines of 4 KB or so, and their own lines."""
    with open(folder / "texts.jsonl", "w", encoding="utf-8") as file:
        for text in texts:
            file.write(json.dumps({"text": text.decode()}, ensure_ascii=False) + "\n")
    (folder / "documents.txt").write_bytes(b"".join(text.replace(b"\n", b" ") + b"\n" for text in texts))
    (folder / "lines.txt").write_bytes(b"".join(text.rstrip(b"\n") + b"\n" for text in texts))


def as_megatron_does(tokenizer: Any, eod: int, source: Path, out: Path) -> None:
    """Pack a file as `preprocess_data.py` does, in a few lines."""
    lengths: list[int] = []
    with open(source, encoding="utf-8") as lines, open(out / "theirs.bin", "wb") as file:

        def write(texts: list[str]) -> None:
            for encoding in tokenizer.encode_batch(texts, add_special_tokens=False):
                ids = [*encoding.ids, eod]
                lengths.append(len(ids))
                file.write(np.array(ids, dtype=np.uint16).tobytes())

        texts: list[str] = []
        for line in lines:
            texts.append(json.loads(line)["text"])
            if len(texts) == BATCH:
                write(texts)
                texts = []
        write(texts)
    np.save(out / "theirs.lengths.npy", np.array(lengths, np.int32))


def ours(tok: cpbpe.Tokenizer, source: Path, out: Path, eos: bool = False) -> cpbpe.PackReport:
    """The same with `cpbpe.pack`."""
    return cpbpe.pack(tok, source, out, to="megatron", threads=THREADS, add_eos=eos, progress=False)


def clocked(work: Callable[[], object], out: Path) -> tuple[float, float]:
    """Seconds, and seconds of all processors. What is in the folder `out` is removed first."""
    shutil.rmtree(out, ignore_errors=True)
    gc.collect()
    begin, begin_cpu = perf_counter(), process_time()
    result = work()
    times = perf_counter() - begin, process_time() - begin_cpu
    del result
    return times


def against_encode_arrays(tok: cpbpe.Tokenizer, folder: Path, rounds: int) -> None:
    """How much of the speed of `encode_arrays` is left."""
    for name in ("documents.txt", "lines.txt"):
        texts = [text for text in (folder / name).read_bytes().split(b"\n") if text]
        size = sum(map(len, texts))
        expected = tok.encode_arrays(texts, threads=THREADS)
        shutil.rmtree(folder / "out", ignore_errors=True)
        report = ours(tok, folder / name, folder / "out")
        packed = cpbpe.PackedTokens(folder / "out")
        assert report.tokens == len(expected.ids)
        assert np.array_equal(packed.ids(), expected.ids)
        del expected, packed
        ratios, cpu_ratios, speeds = [], [], []
        for _ in range(rounds):
            wall, cpu = clocked(partial(tok.encode_arrays, texts, threads=THREADS), folder / "out")
            own_wall, own_cpu = clocked(partial(ours, tok, folder / name, folder / "out"), folder / "out")
            ratios.append(wall / own_wall)
            cpu_ratios.append(cpu / own_cpu)
            speeds.append(size / own_wall / 1e6)
        print(
            f"{name:<14} pack {median(speeds):6.1f} MB/s; of the speed of encode_arrays: "
            f"{median(ratios):.0%} (best {max(ratios):.0%}), of its processor time {median(cpu_ratios):.0%}",
            flush=True,
        )


def against_megatron(tok: cpbpe.Tokenizer, model: bytes, folder: Path, rounds: int) -> None:
    """How many times as fast as the script it replaces."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        print("tokenizers is not installed, so there is nothing to compare with")
        return
    os.environ["TOKENIZERS_PARALLELISM"] = "true"
    os.environ["RAYON_NUM_THREADS"] = str(THREADS)
    theirs = Tokenizer.from_str(json.dumps(convert(model)))
    source, eos = folder / "texts.jsonl", tok.eos_id
    assert eos is not None
    shutil.rmtree(folder / "out", ignore_errors=True)
    report = ours(tok, source, folder / "out", eos=True)
    as_megatron_does(theirs, eos, source, folder)
    their_ids = np.fromfile(folder / "theirs.bin", np.uint16)
    own_ids = np.fromfile(folder / "out" / "train_text_document.bin", np.uint16)
    same = "equal" if np.array_equal(their_ids, own_ids) else "NOT equal"
    print(f"ids of both: {same} ({len(own_ids):,} of ours, {len(their_ids):,} of theirs)")
    ratios, speeds = [], []
    for _ in range(rounds):
        own = clocked(lambda: ours(tok, source, folder / "out", eos=True), folder / "out")[0]
        other = clocked(lambda: as_megatron_does(theirs, eos, source, folder), folder / "out")[0]
        ratios.append(other / own)
        speeds.append((report.text_bytes / own / 1e6, report.text_bytes / other / 1e6))
    print(
        f"texts.jsonl    pack {median(own for own, _ in speeds):6.1f} MB/s, Megatron's way with tokenizers "
        f"{median(other for _, other in speeds):.2f} MB/s: {median(ratios):.1f} times as fast",
        flush=True,
    )


def memory(model: Path, folder: Path) -> None:
    """The peak of fresh processes."""
    whole = folder / "lines.txt"
    tenth = folder / "tenth.txt"
    with open(whole, "rb") as file:
        tenth.write_bytes(file.read(whole.stat().st_size // 10))
    for source, *more in ((tenth,), (whole,), (tenth, "shuffled"), (whole, "shuffled")):
        shutil.rmtree(folder / "out", ignore_errors=True)
        command = [sys.executable, "-c", _PEAK, *map(str, (model, source, folder / "out", *more))]
        before, peak = map(int, subprocess.run(command, check=True, capture_output=True).stdout.split())
        what = f"{source.stat().st_size / 1e6:.0f} MB {' '.join(map(str, more))}"
        print(f"{what:<20} peak {peak / 1000:.0f} MB, {before / 1000:.0f} MB before packing", flush=True)


def main() -> None:
    """Run all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", type=Path, default=None, help="a .model file (default: Mistral's)")
    parser.add_argument("--size", type=int, default=100, help="how many megabytes of text (default: 100)")
    parser.add_argument("--corpus", default="en", help="one of benchmarks/data (default: en)")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the corpora")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is timed (default: 5)")
    parser.add_argument("--memory", action="store_true", help="measure only the memory")
    parser.add_argument("--no-rival", action="store_true", help="leave out Megatron's way, which takes long")
    options = parser.parse_args()
    path = options.model or default_model()
    tok = cpbpe.load(path)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as name:
        folder = Path(name)
        write_files(folder, documents(options.data, options.corpus, options.size * 1_000_000))
        if options.memory:
            memory(Path(path), folder)
            return
        gc.disable()
        against_encode_arrays(tok, folder, options.rounds)
        if not options.no_rival:
            against_megatron(tok, Path(path).read_bytes(), folder, max(1, options.rounds // 2))


if __name__ == "__main__":
    main()
