"""Ctrl-C ends a long call soon, and leaves the tokenizer as it was."""

import json
import signal
import sys

import pytest

from tests.conftest import CORE
from tests.support import processes, zoo

if not CORE:
    pytest.skip("the compiled core is not there", allow_module_level=True)
if sys.platform == "win32":
    pytest.skip("signals are sent as on Unix", allow_module_level=True)

SOON = 0.6
"""A tenth of a second is what it takes; the machine may be busy with other tests."""

SCRIPT = '''
import json, os, signal, sys, threading, time
import numpy
import cpbpe

tok = cpbpe.load(sys.argv[1])
small, right = "Hello world", tok.encode("Hello world")
ones = tok.encode("a" * 50)
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
    "normalize": lambda: tok.normalize(text),
    "decode": lambda: tok.decode(numpy.resize(numpy.array(ones), 40_000_000)),
    "decode list": lambda: tok.decode(ids),
}


def interrupt():
    time.sleep(0.3)
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)


for call in sys.argv[3:]:
    text = "a" * 16_000_000 if sys.argv[2] == "one" else "the quick brown \\u4e2d\\u56fd fox " * 1_500_000
    ids = ones * 2_000_000 if call == "decode list" else []
    sent = []
    sender = threading.Thread(target=interrupt)
    sender.start()
    outcome = "done"
    try:
        calls[call]()
        ended = time.monotonic()
        sender.join()
    except KeyboardInterrupt:
        ended, outcome = time.monotonic(), "interrupted"
    sender.join()
    assert tok.encode(small) == right
    print(json.dumps([call, outcome, ended - sent[0]]), flush=True)
'''


def check(model: str, text: str, *calls: str, may_be_done: bool = False) -> None:
    done = processes.run("-c", SCRIPT, zoo.real_path(model), text, *calls)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    found = [json.loads(line) for line in done.stdout.decode().splitlines()]
    assert [call for call, _, _ in found] == list(calls)
    for call, outcome, seconds in found:
        assert outcome == "interrupted" or may_be_done, (call, outcome)
        assert seconds < SOON, (call, outcome, seconds)


@pytest.mark.parametrize(
    "calls",
    [
        ("encode", "encode_array", "encode_pieces", "count"),
        ("encode bytes", "encode_array threads", "encode_batch", "encode_arrays", "count_batch"),
        ("align", "align_batch", "sample"),
    ],
    ids=" ".join,
)
def test_one_chunk_that_takes_seconds(calls: tuple[str, ...]) -> None:
    check(zoo.REAL[0], "one", *calls)
