"""`cpbpe completion`: scripts that shells accept, and that complete what there is."""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

from cpbpe.cli import COMMANDS, main
from cpbpe.cli.completion import verbs
from tests.support import processes


@pytest.fixture
def script(request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["completion", request.param]) == 0
    path = tmp_path / "script"
    path.write_text(capsys.readouterr().out)
    return path


def in_bash(script: Path, *words: str) -> list[str]:
    """What bash offers for the last word, after it has loaded the script."""
    command = f"source {script}; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; "
    if words[-1] == "''":
        command = command.replace(" ''", ' ""')
    command += "_cpbpe; printf '%s\\n' \"${COMPREPLY[@]}\""
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, check=False, cwd=script.parent, timeout=60
    )
    assert done.stderr == b""
    return done.stdout.decode().split("\n")[:-1]


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize("script", ["bash"], indirect=True)
def test_bash(script: Path) -> None:
    (script.parent / "corpus.txt").write_text("")
    assert {*COMMANDS, "help"} <= set(in_bash(script, "cpbpe", "''"))
    assert in_bash(script, "cpbpe", "enc") == ["encode"]
    assert in_bash(script, "cpbpe", "encode", "--add-b") == ["--add-bos"]
    assert "--vocab-size" in in_bash(script, "cpbpe", "train", "--vo")
    assert in_bash(script, "cpbpe", "encode", "--format", "j") == ["json", "jsonl"]
    assert in_bash(script, "cpbpe", "encode", "--format", "=", "p") == ["pieces"]
    assert in_bash(script, "cpbpe", "encode", "--format", "=") == ["ids", "pieces", "json", "jsonl"]
    assert in_bash(script, "cpbpe", "train", "--preset", "ll") == ["llama2", "llama3"]
    assert in_bash(script, "cpbpe", "train", "cor") == ["corpus.txt"]
    assert in_bash(script, "cpbpe", "help", "tr") == ["train"]
    assert in_bash(script, "cpbpe", "completion", "z") == ["zsh"]
    assert in_bash(script, "cpbpe", "nonsense", "--a") in ([], [""])


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh")
@pytest.mark.parametrize("script", ["zsh"], indirect=True)
def test_zsh(script: Path) -> None:
    load = f"autoload -U compinit; compinit -D; source {script}; whence -w _cpbpe"
    done = subprocess.run(["zsh", "-f", "-c", load], capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"_cpbpe: function\n", b"")


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish")
@pytest.mark.parametrize("script", ["fish"], indirect=True)
def test_fish(script: Path) -> None:
    done = subprocess.run(
        ["fish", "-c", f"source {script}; complete -C 'cpbpe encode --format j'"],
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, [b"json", b"jsonl"], b"")


@pytest.mark.parametrize("script", ["bash", "zsh", "fish"], indirect=True)
def test_every_command_and_option_is_there(script: Path) -> None:
    text = script.read_text()
    for name, verb in verbs().items():
        assert name in text
        for flag in verb.flags:
            assert flag.removeprefix("--") in text
    assert text.isascii()


def test_an_unknown_shell(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "csh"]) == 2
    assert "'csh' is not one of bash, zsh, fish" in capsys.readouterr().err
    assert main(["completion"]) == 2


@cache
def bytecode() -> str:
    """A folder for compiled modules."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def seconds(*arguments: str) -> float:
    """How long Python takes: by the processor, not the clock, because other tests run as well.

    As for users, modules are compiled once: the first run of several does it.
    """
    import resource

    variables = processes.environment(PYTHONDONTWRITEBYTECODE="", PYTHONPYCACHEPREFIX=bytecode())
    best = 9.0
    for _ in range(4):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        processes.output(*arguments, env=variables)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


@pytest.mark.skipif(sys.platform == "win32", reason="tells no times of other processes")
@pytest.mark.parametrize("name", COMMANDS)
def test_help_comes_fast(name: str) -> None:
    """Within 150 ms on an idle machine; here, within seven times what Python itself takes."""
    assert seconds("-m", "cpbpe", name, "--help") < max(0.15, 7 * seconds("-c", "pass"))


def test_help_reads_well(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for name in COMMANDS:
        assert main(["help", name]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        assert out.startswith(f"usage: cpbpe {name}")
        assert max(map(len, out.splitlines())) <= 80
        assert os.path.abspath(".") not in out
