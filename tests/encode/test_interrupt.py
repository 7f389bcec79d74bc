"""Ctrl-C ends a long call soon, and leaves the tokenizer as it was."""

import json
import sys
from pathlib import Path

import pytest

from tests.conftest import CORE
from tests.support import processes, zoo

if not CORE:
    pytest.skip("the compiled core is not there", allow_module_level=True)
if sys.platform == "win32":
    pytest.skip("signals are sent as on Unix", allow_module_level=True)

SOON = 0.6
"""A tenth of a second is what it takes; the machine may be busy with other tests."""

SCRIPT = """
import json, os, signal, sys, threading, time
import cpbpe

tok = cpbpe.load(sys.argv[1])
small, right = "Hello world", tok.encode("Hello world")
tok.encode_array(small)  # numpy, which runs Python code when it is first used, is imported
calls = {
    "encode": lambda: tok.encode(text),
    "encode bytes": lambda: tok.encode(text.encode() + b"\\xff"),
    "encode_array": lambda: tok.encode_array(text),
    "encode_array threads": lambda: tok.encode_array(text, threads=2),
    "encode_pieces": lambda: tok.encode_pieces(text),
    "encode_batch": lambda: tok.encode_batch([text, text], threads=2),
    "encode_arrays": lambda: tok.encode_arrays([text, text], threads=2),
    "count": lambda: tok.count(text),
    "count_batch": lambda: tok.count_batch([text]),
    "align": lambda: tok.align(text),
    "align_batch": lambda: tok.align_batch([text]),
    "sample": lambda: tok.encode(text, alpha=0.1, seed=1),
    "normalize": lambda: tok.normalize(b"\\xff" * 64_000_000),  # (of plain text this takes no time)
    "in a thread": lambda: in_a_thread(lambda: tok.encode(text)),
}


def in_a_thread(call):
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join()


def interrupt():
    time.sleep(0.3)
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)


for call in sys.argv[2:]:
    text = "a" * 16_000_000
    sent = []
    sender = threading.Thread(target=interrupt)
    sender.start()
    outcome = "interrupted"
    try:
        calls[call]()
        outcome = "done"  # before the signal came, or before it was heard
        sender.join()
    except KeyboardInterrupt:
        pass
    ended = time.monotonic()
    sender.join()
    assert tok.encode(small) == right
    print(json.dumps([call, outcome, ended - sent[0]]), flush=True)
os._exit(0)  # without waiting for a call that is still at work in another thread
"""


def check(model: str, *calls: str) -> None:
    done = processes.run("-c", SCRIPT, zoo.real_path(model), *calls)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    found = [json.loads(line) for line in done.stdout.decode().splitlines()]
    assert [call for call, _, _ in found] == list(calls)
    for call, outcome, seconds in found:
        assert (outcome, seconds < SOON) == ("interrupted", True), (call, outcome, seconds)


@pytest.mark.slow
@pytest.mark.parametrize(
    "calls",
    [
        ("encode", "encode_array", "encode_pieces", "count"),
        ("encode bytes", "encode_array threads", "encode_batch", "encode_arrays", "count_batch"),
        ("align", "align_batch", "sample", "normalize", "in a thread"),
    ],
    ids=" ".join,
)
def test_one_chunk_that_takes_seconds(calls: tuple[str, ...]) -> None:
    check(zoo.REAL[0], *calls)


FIRST_ARRAY = """
import signal, sys
import cpbpe, numpy.lib

class Interrupting(numpy.lib.NumpyVersion):
    def __init__(self, version):
        signal.raise_signal(signal.SIGINT)
        super().__init__(version)

numpy.lib.NumpyVersion = Interrupting
tok = cpbpe.load(sys.argv[1])
try:
    tok.encode_array("a b")
except KeyboardInterrupt:
    print("interrupted")
print(tok.encode_array("a b").tolist() == tok.encode("a b"))
"""


def test_while_the_first_array_is_made(tmp_path: Path) -> None:
    """The numpy crate asks Python for numpy's version then, and panics if that fails."""
    (tmp_path / "m.model").write_bytes(zoo.model("llama"))
    assert processes.output("-c", FIRST_ARRAY, tmp_path / "m.model") == "interrupted\nTrue\n"
