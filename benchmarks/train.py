"""Times training, library by library, each run in a process of its own; keeps every time and peak of memory.

    python -m benchmarks.corpora --bytes 150000000                 # once: the texts, into benchmarks/data
    python -m benchmarks.train --size 20 --size 120 --out train.json
    python -m benchmarks.train --text my.txt --vocab 32000 --vocab 128000
    python -m benchmarks.train --rules nmt_nfkc --library cpbpe --library sentencepiece
    python -m benchmarks.train --library cpbpe --repeat --size 60 --size 500 --size 2000

A text is a file of lines. `--size N` makes one of N MB (10^6 bytes) from the corpora in `--data`, of
each (`--corpus en`) or of all together (`--corpus mix`, the default); `--text` takes a file as it is. All
libraries get Llama 2's settings, as far as they have them: identity normalization, byte fallback, one
digit a piece, 99.995 % of the characters. With `--rules` they get sentencepiece's own defaults instead, with
these normalization rules (cpbpe and sentencepiece only).

`--repeat` repeats the corpora until the text has its size, with words altered so that new ones keep coming.
It shows how time and memory grow with the text and with its distinct words.

The libraries take turns, round by round. A ratio is the median of the rounds' ratios. The clock runs from the
call to its return, model files included, imports not; the peak of memory is that of the whole process.

What cpbpe has trained is compared with what sentencepiece has: every piece, its score and its type. If they
differ, there are no ratios, and the results say so. tokenizers and gigatoken learn other
vocabularies (they cut text with a regular expression, or work on bytes), so theirs are not compared.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timezone
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from benchmarks.corpora import CORPORA, DATA, corpus_path, read_documents
from benchmarks.run import commit, machine, versions

VOCAB_SIZE = 32_000
COVERAGE = 0.99995
Report = dict[str, Any]
Work = Callable[[], Any]
"""What is timed. That of cpbpe returns the number of distinct words."""


# --- The libraries: (text, vocabulary size, threads, where to write, rules) ------------------------


def train_cpbpe(text: Path, vocab_size: int, threads: int, out: Path, rules: str | None) -> Work:
    """Preset "llama2" is the default."""
    import cpbpe
    from cpbpe.training import train  # noqa: F401  so that importing it is not timed

    options: dict[str, Any] = {"vocab_size": vocab_size, "threads": threads}
    if rules is not None:
        options.update(preset="sentencepiece", normalization_rule_name=rules)

    def run() -> int:
        result = cpbpe.train(text, **options)
        result.save(out)
        return result.report.distinct_words

    return run


def train_sentencepiece(text: Path, vocab_size: int, threads: int, out: Path, rules: str | None) -> Work:
    """The settings of Llama 2's model."""
    import sentencepiece

    if rules is not None:
        return lambda: sentencepiece.SentencePieceTrainer.train(
            input=str(text),
            model_prefix=str(out),
            model_type="bpe",
            vocab_size=vocab_size,
            num_threads=threads,
            normalization_rule_name=rules,
            minloglevel=2,
        )
    return lambda: sentencepiece.SentencePieceTrainer.train(
        input=str(text),
        model_prefix=str(out),
        model_type="bpe",
        vocab_size=vocab_size,
        num_threads=threads,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        byte_fallback=True,
        character_coverage=COVERAGE,
        split_digits=True,
        allow_whitespace_only_pieces=True,
        minloglevel=2,
    )


def train_tokenizers(text: Path, vocab_size: int, threads: int, out: Path, rules: str | None) -> Work:
    """Its nearest settings: words by Metaspace, single digits, byte fallback."""
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tok = Tokenizer(models.BPE(byte_fallback=True))
    cutters = [pre_tokenizers.Metaspace(), pre_tokenizers.Digits(individual_digits=True)]
    tok.pre_tokenizer = pre_tokenizers.Sequence(cutters)
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=special, max_token_length=16, show_progress=False
    )

    def train() -> None:
        tok.train([str(text)], trainer)
        tok.save(str(out.with_suffix(".json")))

    return train


def train_gigatoken(text: Path, vocab_size: int, threads: int, out: Path, rules: str | None) -> Work:
    """Byte-level. It has no argument for threads, so it is given that many processors."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    import gigatoken

    return lambda: gigatoken.train_bpe(gigatoken.TextFileSource([str(text)], separator="\n"), vocab_size, [])


LIBRARIES: dict[str, Callable[[Path, int, int, Path, str | None], Work]] = {
    "cpbpe": train_cpbpe,
    "sentencepiece": train_sentencepiece,
    "tokenizers": train_tokenizers,
    "gigatoken": train_gigatoken,
}


# --- One run ------------------------------------------------------------------------------------------


def peak_bytes() -> int:
    """The most memory that this process had at a time."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        # What a process had before it began to run this program counts here as well.
        size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return size if sys.platform == "darwin" else size * 1024


def run_here(name: str, text: Path, vocab_size: int, threads: int, out: Path, rules: str | None) -> None:
    """Train in this process, and print what it took."""
    train = LIBRARIES[name](text, vocab_size, threads, out, rules)
    begin, begin_cpu = perf_counter(), process_time()
    words = train()
    figures: Report = {"seconds": perf_counter() - begin, "cpu": process_time() - begin_cpu}
    figures["peak"] = peak_bytes()
    if isinstance(words, int):
        figures["words"] = words
    print(json.dumps(figures))


def run_apart(name: str, text: Path, vocab_size: int, threads: int, out: Path, rules: str | None) -> Report:
    """Train in a new process; return what it took or, if it failed, the last line of its error output."""
    command = [sys.executable, "-m", "benchmarks.train", "--run", name, "--text", str(text)]
    command += ["--vocab", str(vocab_size), "--threads", str(threads), "--model", str(out)]
    command += [] if rules is None else ["--rules", rules]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]}
    figures: Report = json.loads(done.stdout.splitlines()[-1])
    return figures


# --- Checking and comparing ---------------------------------------------------------------------------


def differences(ours: Path, theirs: Path) -> int:
    """In how many places two models differ in a piece, its score or its type."""
    from sentencepiece import SentencePieceProcessor

    def rows(path: Path) -> list[tuple[object, ...]]:
        model = SentencePieceProcessor(model_file=str(path.with_suffix(".model")))
        kinds = model.is_control, model.is_byte, model.is_unknown, model.is_unused
        ids = range(model.get_piece_size())
        return [(model.id_to_piece(i), model.get_score(i), *(kind(i) for kind in kinds)) for i in ids]

    left, right = rows(ours), rows(theirs)
    return sum(a != b for a, b in zip(left, right, strict=False)) + abs(len(left) - len(right))


def compare(
    names: list[str], text: Path, vocab_size: int, threads: int, rounds: int, rules: str | None
) -> Report:
    """One table: a text and a vocabulary size, all libraries."""
    runs: dict[str, list[Report]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        models = {name: Path(folder) / name for name in names}
        for _ in range(rounds):
            for name in names:
                if not runs[name] or "error" not in runs[name][-1]:
                    runs[name].append(run_apart(name, text, vocab_size, threads, models[name], rules))
        failed = {name: own_runs[-1]["error"] for name, own_runs in runs.items() if "error" in own_runs[-1]}
        differ = None
        if {"cpbpe", "sentencepiece"} <= set(names) - set(failed):
            differ = differences(models["cpbpe"], models["sentencepiece"])
    ratios = {}
    for name in [name for name in names if name not in failed and name != "cpbpe"]:
        if "cpbpe" in names and "cpbpe" not in failed and not differ:
            pairs = list(zip(runs[name], runs["cpbpe"], strict=True))
            ratios[name] = {
                "faster": median(theirs["seconds"] / ours["seconds"] for theirs, ours in pairs),
                "memory": median(ours["peak"] / theirs["peak"] for theirs, ours in pairs),
            }
    return {"vocab_size": vocab_size, "differ": differ, "runs": runs, "ratios": ratios, "failed": failed}


def show(title: str, table: Report) -> None:
    """Print one table."""
    verdicts = {None: "not compared with sentencepiece", 0: "the same model as sentencepiece's"}
    verdict = verdicts.get(table["differ"], f"{table['differ']} DIFFERENCES FROM SENTENCEPIECE'S MODEL")
    print(f"\n{title}, {table['vocab_size']:,} pieces: {verdict}")
    for name, runs in table["runs"].items():
        if name in table["failed"]:
            print(f"  {name:14} failed: {table['failed'][name]}")
            continue
        seconds = median(run["seconds"] for run in runs)
        peak = median(run["peak"] for run in runs)
        line = f"  {name:14} {seconds:8.2f} s {peak / 1e6:8.0f} MB"
        if "words" in runs[0]:
            words, cpu = runs[0]["words"], median(run["cpu"] for run in runs)
            line += f"   {words:,} words: {cpu / words * 1e6:.2f} µs and {peak / words:.0f} bytes for each;"
            line += f" {cpu / table['bytes'] * 1e9:.1f} ns a byte of text"
        if name in table["ratios"]:
            ratio = table["ratios"][name]
            line += f"   cpbpe: {ratio['faster']:.1f} times as fast, {ratio['memory']:.2f} of the memory"
        print(line, flush=True)


# --- Texts --------------------------------------------------------------------------------------------


ALPHABETS: tuple[tuple[int, int], ...] = (
    (0x61, 26),
    (0x3B1, 25),
    (0x430, 32),
    (0x5D0, 27),
    (0x904, 54),
    (0xE01, 46),
    (0x3041, 86),
)
ALPHABETS += ((0x30A1, 90), (0x4E00, 20_992), (0xAC00, 11_172))
"""The first letter of some alphabets, and how many letters follow one another from there."""


def altered(lines: list[str], number: int) -> Iterator[str]:
    """The same lines for the nth time, with new words in an eighth of them, another eighth each time.

    In these lines, all letters are moved on in their alphabets.
    """
    table = {
        begin + at: begin + (at + number % 25 + 1) % length
        for begin, length in ALPHABETS
        for at in range(length)
    }
    for at, line in enumerate(lines):
        yield line.translate(table) if at % 8 == number % 8 else line


def make_repeated_text(data: Path, size: int, out: Path) -> Path | None:
    """A file of about `size` bytes from all corpora, in which words not seen before keep coming."""
    path = make_text(
        data, "mix", min(size, sum(corpus_path(data, name).stat().st_size for name in CORPORA)), out
    )
    if path is None:
        return None
    lines = path.read_bytes().decode().splitlines(keepends=True)
    path = path.rename(out / f"repeated-{size}.txt")
    number, written = 0, path.stat().st_size
    with path.open("a", encoding="utf-8", newline="\n") as file:
        while written < size:
            number += 1
            for line in altered(lines, number):
                written += len(line.encode())
                file.write(line)
                if written >= size:
                    break
    return path


def make_text(data: Path, corpus: str, size: int, out: Path) -> Path | None:
    """A file of about `size` bytes from one corpus, or from all in equal parts as far as there is text."""
    names = CORPORA if corpus == "mix" else (corpus,)
    missing = [name for name in names if not corpus_path(data, name).exists()]
    if missing:
        print(f"MISSING corpora {', '.join(missing)}: python -m benchmarks.corpora", file=sys.stderr)
        return None
    left = {name: corpus_path(data, name).stat().st_size for name in names}
    path = out / f"{corpus}-{size}.txt"
    written = 0
    with path.open("wb") as file:
        for number, name in enumerate(sorted(names, key=lambda name: left[name])):
            share = (size - written) // (len(names) - number)
            for document in read_documents(corpus_path(data, name)):
                if share <= 0:
                    break
                share -= file.write(lines := document.encode().rstrip(b"\n") + b"\n")
                written += len(lines)
    if written < size * 0.98:
        print(
            f"MISSING text: {corpus} has {written} bytes, not {size}; see benchmarks.corpora --bytes",
            file=sys.stderr,
        )
    return path


def describe(path: Path) -> Report:
    """The checksum and the size of a text."""
    digest, size, lines = hashlib.sha256(), 0, 0
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
            size += len(block)
            lines += block.count(b"\n")
    return {"sha256": digest.hexdigest(), "bytes": size, "lines": lines}


def add_what(parser: argparse.ArgumentParser, libraries: Iterable[str]) -> None:
    """The arguments about what is trained, which the benchmarks of both families of models share."""
    parser.add_argument(
        "--library", action="append", choices=list(libraries), help="only this one (repeatable)"
    )
    parser.add_argument(
        "--corpus", action="append", choices=[*CORPORA, "mix"], help="of what text (default: mix)"
    )
    parser.add_argument("--size", action="append", type=int, help="MB of text (repeatable; default: 20)")
    parser.add_argument("--text", action="append", type=Path, help="a file of lines, instead (repeatable)")
    parser.add_argument(
        "--vocab", action="append", type=int, help=f"pieces (repeatable; default: {VOCAB_SIZE})"
    )
    parser.add_argument("--repeat", action="store_true", help="repeat the corpora, with words altered")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", type=Path, default=DATA, help="where the corpora are")
    parser.add_argument("--out", type=Path, help="the JSON file to write")
    parser.add_argument("--run", choices=list(libraries), help=argparse.SUPPRESS)


def texts_of(options: argparse.Namespace, folder: Path) -> Iterator[Path]:
    """The texts that these arguments ask for. Those that have to be made are put into `folder`."""
    texts = options.text or [
        make_repeated_text(options.data, size * 1_000_000, folder)
        if options.repeat
        else make_text(options.data, corpus, size * 1_000_000, folder)
        for size in options.size or [20]
        for corpus in options.corpus or ["mix"]
    ]
    return filter(None, texts)


def main(arguments: list[str] | None = None) -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description="Time training, each run in a process of its own.")
    add_what(parser, LIBRARIES)
    parser.add_argument("--rules", help="sentencepiece's defaults with these normalization rules")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--model", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    vocab_sizes = options.vocab or [VOCAB_SIZE]
    if options.run:
        run_here(options.run, options.text[0], vocab_sizes[0], options.threads, options.model, options.rules)
        return
    installed = versions(list(LIBRARIES))
    names = [name for name in options.library or LIBRARIES if find_spec(name) is not None]
    for name in options.library or LIBRARIES:
        if name not in names:
            print(f"MISSING {name} is not installed", file=sys.stderr)
    if options.rules is not None:
        names = [name for name in names if name in ("cpbpe", "sentencepiece")]  # the others have no rules
    outcome: Report = {
        "facts": {
            "when": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "machine": machine(),
            "commit": commit(),
            "versions": installed,
            "threads": options.threads,
            "load": os.getloadavg() if hasattr(os, "getloadavg") else None,
        },
        "tables": [],
    }
    with tempfile.TemporaryDirectory() as folder:
        for text in texts_of(options, Path(folder)):
            for vocab_size in vocab_sizes:
                table = {"text": text.name, "rules": options.rules, **describe(text)}
                table |= compare(names, text, vocab_size, options.threads, options.rounds, options.rules)
                show(f"{text.name} ({table['bytes'] / 1e6:.0f} MB)", table)
                outcome["tables"].append(table)
                if options.out:
                    options.out.write_text(json.dumps(outcome, indent=1) + "\n")


if __name__ == "__main__":
    main()
