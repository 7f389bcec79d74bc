"""Files are written completely or not at all. They keep their modes, and no temporary files remain."""

import linecache
import os
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

import cpbpe
from cpbpe.model import writing
from cpbpe.model.writing import NewFile, write_all, written
from tests.support import processes, zoo

POSIX = pytest.mark.skipif(os.name == "nt", reason="modes and locks are different there")
DATA = zoo.model("llama")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def tok() -> cpbpe.Tokenizer:
    return cpbpe.Tokenizer.from_bytes(DATA)


@POSIX
@pytest.mark.parametrize("before", [0o600, 0o640, 0o644, 0o666, 0o400])
def test_the_mode_stays(tok: cpbpe.Tokenizer, tmp_path: Path, before: int) -> None:
    path = tmp_path / "m.model"
    path.write_bytes(b"secret")
    path.chmod(before)
    tok.save(path)
    assert (mode(path), path.read_bytes()) == (before, DATA)
    assert os.listdir(tmp_path) == ["m.model"]


@POSIX
@pytest.mark.parametrize(("mask", "expected"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_follows_the_umask(tok: cpbpe.Tokenizer, tmp_path: Path, mask: int, expected: int) -> None:
    old = os.umask(mask)
    try:
        tok.save(tmp_path / "m.model")
    finally:
        os.umask(old)
    assert mode(tmp_path / "m.model") == expected


@POSIX
def test_nobody_reads_a_private_file_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_bytes(b"secret")
    path.chmod(0o600)
    seen: list[int] = []
    write_all({str(path): lambda file: seen.append(stat.S_IMODE(os.fstat(file.fileno()).st_mode))})
    assert seen == [0o600]


@POSIX
def test_every_writer(tok: cpbpe.Tokenizer, tmp_path: Path) -> None:
    """Models, vocabularies, word counts and reports."""
    result = cpbpe.train(["ab abc"] * 10, vocab_size=265)
    counts = cpbpe.WordCounts.build(["ab abc"])
    names = ["m.model", "m.vocab", "counts"]
    for name in names:
        (tmp_path / name).touch(0o600)
    result.save(tmp_path / "m")
    counts.save(tmp_path / "counts")
    assert [mode(tmp_path / name) for name in names] == [0o600] * 3
    assert sorted(os.listdir(tmp_path)) == sorted(names)
    for save in (tok.save, counts.save, result.save):
        with pytest.raises(FileNotFoundError, match=r"folder .*nodir' ?.*make it first"):
            save(tmp_path / "nodir" / "x")


@POSIX
def test_links(tok: cpbpe.Tokenizer, tmp_path: Path) -> None:
    """What a link points to is written, with its mode; the link stays."""
    (tmp_path / "real").mkdir()
    target = tmp_path / "real" / "m.model"
    target.touch(0o600)
    (tmp_path / "link").symlink_to(target)
    (tmp_path / "new").symlink_to(tmp_path / "real" / "new.model")
    tok.save(tmp_path / "link")
    tok.save(tmp_path / "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "new").is_symlink()
    assert (mode(target), target.read_bytes()) == (0o600, DATA)
    assert (tmp_path / "real" / "new.model").read_bytes() == DATA
    (tmp_path / "lost").symlink_to(tmp_path / "nodir" / "m.model")
    with pytest.raises(FileNotFoundError, match=r"there is no folder '.*nodir'; make it first: '.*lost'"):
        tok.save(tmp_path / "lost")


def test_a_long_name(tok: cpbpe.Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / ("é" * 120 + ".model")  # 246 bytes: no room for a temporary name that has all of it
    tok.save(path)
    assert path.read_bytes() == DATA
    assert len(os.listdir(tmp_path)) == 1


DROP_RIGHTS = """
# Before modules may be out of reach.
import os, secrets, sys, cpbpe, cpbpe.engine.columns, cpbpe.model.writing, cpbpe.tokenizer.converting
tok = cpbpe.load(sys.argv[1])
os.chdir(sys.argv[2])
os.setgroups([]), os.setgid(65534), os.setuid(65534)
try:
    tok.save("there.model")
except PermissionError as error:
    print(error)
"""


@POSIX
def test_a_folder_that_may_not_be_written_to() -> None:
    """The message names the file, and not the temporary one."""
    with tempfile.TemporaryDirectory() as name:  # that of pytest can be entered by its owner only
        folder = Path(name)
        (folder / "there.model").write_bytes(b"old")
        model = folder / "m.model"
        model.write_bytes(DATA)
        if os.geteuid() == 0:
            folder.chmod(0o755)
            said = processes.output("-c", DROP_RIGHTS, model, folder).strip()
        else:
            folder.chmod(0o555)
            with pytest.raises(PermissionError) as caught:
                cpbpe.load(model).save(folder / "there.model")
            folder.chmod(0o755)
            said = str(caught.value)
        assert "; a file is written under another name first, so its folder must allow new ones: '" in said
        assert said.endswith("there.model'")
        assert (folder / "there.model").read_bytes() == b"old"


# --- What was left behind ---------------------------------------------------------------------------

WRITE_SLOWLY = """
import sys, time
from cpbpe.model.writing import write_all
def write(file):
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    time.sleep(60)
write_all({sys.argv[1]: write})
"""


@POSIX
def test_what_a_killed_process_leaves_is_removed(tok: cpbpe.Tokenizer, tmp_path: Path) -> None:
    """By the next one that saves the same file; and not while it is being written."""
    path = tmp_path / "m.model"
    other = tmp_path / "m.model.0123456789abcdef.tmp"  # somebody else's
    other.touch()
    process = processes.start("-c", WRITE_SLOWLY, path, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"writing\n"
        tok.save(path)
        assert len(os.listdir(tmp_path)) == 3  # the process lives
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    assert path.read_bytes() == DATA
    (left,) = tmp_path.glob("*.cpbpe.tmp")
    tok.save(tmp_path / "m")  # the name is the beginning of the other
    assert left.exists()
    tok.save(path)
    assert sorted(os.listdir(tmp_path)) == ["m", "m.model", other.name]
    assert path.read_bytes() == DATA


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    def fail(file: object) -> None:
        raise OSError("no space")

    old = tmp_path / "a"
    old.write_bytes(b"old")
    with pytest.raises(OSError, match="no space"):
        write_all({str(old): b"new", str(tmp_path / "b"): fail})
    assert (os.listdir(tmp_path), old.read_bytes()) == (["a"], b"old")


@pytest.mark.parametrize("moment", ["made", "written", "moved"])
def test_ctrl_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """Nothing is left, and a command can say which files were written."""

    def interrupted(function: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            function(*arguments, **options)
            raise KeyboardInterrupt

        return call

    name = {"made": "open", "written": "chmod", "moved": "replace"}[moment]
    monkeypatch.setattr(os, name, interrupted(getattr(os, name)))
    (tmp_path / "a").write_bytes(b"old")
    files: list[NewFile] = []
    token = written.set(files)
    with pytest.raises(KeyboardInterrupt):
        write_all({str(tmp_path / "a"): b"new", str(tmp_path / "b"): b"new"})
    written.reset(token)
    assert os.listdir(tmp_path) == ["a"]
    is_moved = moment == "moved"
    assert (tmp_path / "a").read_bytes() == (b"new" if is_moved else b"old")
    assert [file.name for file in files if file.is_in_place] == ([str(tmp_path / "a")] if is_moved else [])


def test_ctrl_c_at_every_line(tmp_path: Path) -> None:
    """The same wherever it comes, also when all files are in their places."""
    last, number = -1, 0
    while number > last:
        last, lines = number, 0
        for name in os.listdir(tmp_path):
            os.unlink(tmp_path / name)
        (tmp_path / "a").write_bytes(b"old")

        def trace(frame: Any, event: str, argument: object, stop: int = number) -> Any:
            nonlocal lines
            if frame.f_code.co_filename != writing.__file__:
                return None
            # (A lock would be kept forever if this came where it is released. No signal does.)
            if event == "line" and "importing:" not in linecache.getline(writing.__file__, frame.f_lineno):
                lines += 1
                if lines == stop + 1:
                    raise KeyboardInterrupt
            return trace

        files: list[NewFile] = []
        token = written.set(files)
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            write_all({str(tmp_path / "a"): b"new", str(tmp_path / "b"): b"new"})
        except KeyboardInterrupt:
            number += 1
        finally:
            sys.settrace(before)
            written.reset(token)
        new = [str(path) for path in sorted(tmp_path.iterdir()) if path.read_bytes() == b"new"]
        assert [file.name for file in files if file.is_in_place] == new, lines
        assert {*os.listdir(tmp_path)} - {"b"} == {"a"}, lines
    assert number > 50


def test_many_at_once(tmp_path: Path) -> None:
    """Threads that save the same file: none takes the temporary file of another for an abandoned one."""
    path = str(tmp_path / "m")
    contents = [bytes([number]) * 5000 for number in range(8)]
    failures: list[BaseException] = []

    def save(content: bytes) -> None:
        try:
            for _ in range(20):
                write_all({path: content})
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=save, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert Path(path).read_bytes() in contents
    assert os.listdir(tmp_path) == ["m"]


@POSIX
def test_where_files_cannot_be_locked(
    tok: cpbpe.Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then nothing is removed: it could be in use."""
    left = tmp_path / "m.0123456789abcdef.cpbpe.tmp"
    left.touch()

    def refuse(file: object, operation: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(writing, "flock", refuse)
    tok.save(tmp_path / "m")
    assert sorted(os.listdir(tmp_path)) == ["m", left.name]
    monkeypatch.undo()
    tok.save(tmp_path / "m")
    assert os.listdir(tmp_path) == ["m"]


@POSIX
def test_a_pipe_is_written_to(tok: cpbpe.Tokenizer, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    tok.save(pipe)
    reader.join()
    assert read == [DATA]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
