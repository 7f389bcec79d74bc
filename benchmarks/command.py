"""The command: `cpbpe encode` and `cpbpe decode` beside sentencepiece's programs, from file to file.

    python -m benchmarks.command [--text FILE] [--size 1000] [--their-size 30] [--programs FOLDER]

On Debian the programs are in the package `sentencepiece`. (`apt-get download sentencepiece
libsentencepiece0` and `dpkg -x` put them into a folder without installing them, which `--programs` takes.)

The text is repeated until it has `--size` MB. sentencepiece's programs get the first `--their-size` MB of it,
or they would take most of an hour. Before a clock starts, the outputs for that part are compared. Then all
programs take turns; the results are medians, of MB of text per second and of the rounds' ratios. Times of the
processor are given besides those of the clock, which tell little on a machine that does other work.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.run import default_model


@dataclass(frozen=True)
class Case:
    """One thing to do."""

    title: str
    ours: tuple[str, ...]
    """The arguments of `cpbpe`; MODEL stands for the model."""
    theirs: tuple[str, ...]
    """sentencepiece's program and its arguments."""
    source: str
    """What is read: the text, or the result of a case before."""


CASES = {
    "ids": Case(
        "encode to ids",
        ("encode", "MODEL"),
        ("spm_encode", "--model=MODEL", "--output_format=id"),
        "text",
    ),
    "pieces": Case(
        "encode to pieces",
        ("encode", "MODEL", "--format", "pieces"),
        ("spm_encode", "--model=MODEL", "--output_format=piece"),
        "text",
    ),
    "from_ids": Case(
        "decode ids",
        ("decode", "MODEL"),
        ("spm_decode", "--model=MODEL", "--input_format=id"),
        "ids",
    ),
    "from_pieces": Case(
        "decode pieces",
        ("decode", "MODEL", "--format", "pieces"),
        ("spm_decode", "--model=MODEL", "--input_format=piece"),
        "pieces",
    ),
}


class Bench:
    """The programs, and a folder with what they read and write."""

    def __init__(self, options: argparse.Namespace, folder: Path):
        self._folder = folder
        self._model = str(options.model or default_model())
        self._env = dict(os.environ)
        self._programs = Path()
        if options.programs is not None:
            self._programs = next(options.programs.rglob("spm_encode")).parent
            libraries = {str(path.parent) for path in options.programs.rglob("libsentencepiece.so*")}
            self._env["LD_LIBRARY_PATH"] = os.pathsep.join(libraries)
        elif (found := shutil.which("spm_encode")) is not None:
            self._programs = Path(found).parent
        else:
            sys.exit("there is no spm_encode: install Debian's package sentencepiece, or give --programs")
        text = options.text.read_bytes().replace(b"\0", b"")
        text = text if text.endswith(b"\n") else text + b"\n"
        self.sizes = {
            "ours": self._fill("ours.text", text, options.size),
            "theirs": self._fill("theirs.text", text, options.their_size),
        }

    def _fill(self, name: str, text: bytes, megabytes: float) -> float:
        """A file with whole lines of the text, repeated. Returns its size in MB."""
        left = int(megabytes * 1e6)
        with open(self._folder / name, "wb") as file:
            while left > 0:
                part = text if left >= len(text) else text[: text.rfind(b"\n", 0, max(left, 1)) + 1] or text
                left -= file.write(part)
                if len(part) < len(text):
                    break
            return file.tell() / 1e6

    def ours(self, name: str, size: str) -> tuple[float, float]:
        """Seconds of the clock and of the processor that cpbpe takes."""
        case = CASES[name]
        command = [sys.executable, "-m", "cpbpe", *case.ours, str(self._folder / f"{size}.{case.source}")]
        return self._run(command, self._folder / f"{size}.{name}" if size == "theirs" else None, name)

    def theirs(self, name: str) -> tuple[float, float]:
        """The same for sentencepiece."""
        case = CASES[name]
        program, *arguments = case.theirs
        command = [str(self._programs / program), *arguments, str(self._folder / f"theirs.{case.source}")]
        return self._run(command, self._folder / f"spm.{name}", name)

    def _run(self, command: list[str], out: Path | None, name: str) -> tuple[float, float]:
        command = [part.replace("MODEL", self._model) for part in command]
        out = out or self._folder / f"ours.{name}"
        with open(out, "wb") as file:
            before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
            subprocess.run(command, stdout=file, check=True, env=self._env)
            seconds, after = perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
        return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def check(self, name: str) -> bool:
        """Whether both programs write the same for the same text."""
        self.ours(name, "theirs")
        self.theirs(name)
        return filecmp.cmp(self._folder / f"theirs.{name}", self._folder / f"spm.{name}", shallow=False)


def main() -> None:
    """Run all cases."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", type=Path, default=None, help="a .model file (default: Mistral's)")
    parser.add_argument("--text", type=Path, default=Path("benchmarks/data/en.txt"), help="a text file")
    parser.add_argument("--size", type=float, default=1000, help="MB of text for cpbpe (default: 1000)")
    parser.add_argument("--their-size", type=float, default=30, help="MB for sentencepiece (default: 30)")
    parser.add_argument(
        "--programs", type=Path, default=None, help="the folder with sentencepiece's programs"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--case", nargs="*", choices=list(CASES), default=list(CASES))
    parser.add_argument("--out", type=Path, default=None, help="write all times to this file, as JSON")
    options = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", ".")) as folder:
        bench = Bench(options, Path(folder))
        mine, other = bench.sizes["ours"], bench.sizes["theirs"]
        print(
            f"{mine:,.0f} MB for cpbpe, {other:,.0f} MB for sentencepiece; MB/s by the clock (the processor)"
        )
        needed = [
            name for name in CASES if name in options.case or name in {CASES[c].source for c in options.case}
        ]
        for name in needed:
            same = bench.check(name)
            times = [(bench.ours(name, "ours"), bench.theirs(name)) for _ in range(options.rounds)]
            ratios = [
                median(mine / ours[kind] / (other / theirs[kind]) for ours, theirs in times)
                for kind in (0, 1)
            ]
            speeds = [
                [median(size / took[who][kind] for took in times) for kind in (0, 1)]
                for who, size in ((0, mine), (1, other))
            ]
            results[name] = {"same": same, "times": times, "ratios": ratios, "speeds": speeds}
            print(
                f"{CASES[name].title:<18} cpbpe {speeds[0][0]:6.1f} ({speeds[0][1]:6.1f})   "
                f"sentencepiece {speeds[1][0]:5.2f} ({speeds[1][1]:5.2f})   "
                f"{ratios[0]:5.1f} x ({ratios[1]:5.1f} x)   {'same' if same else 'DIFFERENT'} output",
                flush=True,
            )
    if options.out is not None:
        facts = {"sizes": bench.sizes, "rounds": options.rounds, "text": str(options.text)}
        options.out.write_text(json.dumps({"facts": facts, "results": results}, indent=1))


if __name__ == "__main__":
    main()
