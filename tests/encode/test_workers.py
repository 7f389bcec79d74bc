"""Tokenizers in other processes, as data pipelines use them: multiprocessing, datasets, PyTorch's DataLoader.

PyTorch is large (gigabytes from the package index, which has no build for CPUs alone), so the tests do not
ask for it. What its DataLoader does is what multiprocessing does: it starts processes, by fork, spawn or
forkserver, with a dataset in them that holds a tokenizer. That is tested everywhere. The DataLoader itself is
tested where PyTorch is installed, and the head of the report says whether it is.
"""

import concurrent.futures
import importlib.util
import multiprocessing
import os
import pickle
import random
import signal
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import cpbpe
from cpbpe import lazy
from tests.conftest import CORE
from tests.support import corpus, processes, tiers, work, zoo

# Python 3.12 and newer warn of fork in a process with threads, as the one that runs tests may be. That it
# works with cpbpe is what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
BOTH = pytest.mark.usefixtures("engine")

TORCH = importlib.util.find_spec("torch") is not None
METHODS = multiprocessing.get_all_start_methods()
TEXTS = [*list(corpus.lines())[:60], "", "  <s>🦙 ▁\n", "x" * 5000]
PATIENCE = 100.0
"""Seconds after which processes count as stuck."""


def parts(texts: list[str]) -> list[list[str]]:
    return [texts[i : i + 10] for i in range(0, len(texts), 10)]


def used(name: str = "llama") -> cpbpe.Tokenizer:
    """A tokenizer that has caches, and has had threads."""
    tok = cpbpe.Tokenizer.from_bytes(zoo.model(name)).with_special_tokens(["<|x|>"])
    work.work_with(tok, TEXTS)
    tok.encode("<|x|>", allowed_special={"<|x|>"}, prefix_space=False)
    return tok


# --- Processes ------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("method", tiers.some(METHODS, METHODS[:1]))
def test_a_pool(method: str) -> None:
    """Each process gets the tokenizer once, and many tasks."""
    tok = used()
    with multiprocessing.get_context(method).Pool(2, work.start, (tok,)) as pool:
        found = pool.map_async(work.work, parts(TEXTS), chunksize=1).get(PATIENCE)
    assert found == [work.work_with(tok, part) for part in parts(TEXTS)]


@BOTH
@pytest.mark.parametrize("method", tiers.some(METHODS, METHODS[:1]))
def test_an_executor(method: str) -> None:
    """The tokenizer comes with every task."""
    tok = used()
    context = multiprocessing.get_context(method)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as executor:
        tasks = [executor.submit(work.work_with, tok, part) for part in parts(TEXTS)]
        found = [task.result(PATIENCE) for task in tasks]
    assert found == [work.work_with(tok, part) for part in parts(TEXTS)]


@tiers.slow_reference
@BOTH
@pytest.mark.skipif("fork" not in METHODS, reason="this system has no fork")
def test_a_fork_while_threads_encode() -> None:
    """What another thread holds at the moment of a fork (a lock, a cache) does not stop the child."""
    tok = used()
    expected = work.work_with(tok, TEXTS)
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            tok.encode_batch(TEXTS, threads=2)
            tok.encode("<|x|> and <s>", allowed_special="all")

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(8):
            reader, writer = multiprocessing.get_context("fork").Pipe(duplex=False)
            child = multiprocessing.get_context("fork").Process(target=_answer, args=(writer, tok))
            child.start()
            stuck = not reader.poll(PATIENCE)
            if stuck:
                child.kill()
            assert not stuck
            assert reader.recv() == expected
            child.join(PATIENCE)
            assert child.exitcode == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.skipif("fork" not in METHODS, reason="this system has no fork")
@pytest.mark.skipif(not CORE, reason="the reference engine holds the interpreter while it works")
@pytest.mark.parametrize("first", tiers.some(["decode", "long text", "special tokens"], ["decode"]))
def test_a_fork_during_the_first_use(first: str) -> None:
    """What a thread is just making, to keep it, when a process forks, the child makes for itself."""
    data = zoo.model(zoo.REAL[0])
    rng = random.Random(1)
    long = "".join(rng.choices("abcdefgh", k=60_000))
    uses: dict[str, Callable[[cpbpe.Tokenizer], object]] = {
        "decode": lambda tok: tok.decode_batch([[22557, 1526] * 50] * 20, threads=2),
        "long text": lambda tok: tok.encode_array(long),
        "special tokens": lambda tok: tok.encode_batch(["a</s>" * 50] * 20, allowed_special="all", threads=2),
    }
    use = uses[first]
    for _ in range(40):
        tok = cpbpe.Tokenizer.from_bytes(data)
        begun = threading.Event()
        thread = threading.Thread(target=lambda tok=tok, begun=begun: (begun.set(), use(tok)))
        thread.start()
        begun.wait()
        time.sleep(rng.random() * 0.004)
        child = os.fork()
        if child == 0:
            signal.alarm(10)  # ends the child if it is stuck
            failed = True
            try:
                use(tok)
                failed = False
            finally:
                os._exit(failed)
        thread.join()
        assert os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif("fork" not in METHODS, reason="this system has no fork")
def test_a_fork_while_a_kept_value_is_made() -> None:
    """The child makes it for itself: it does not wait for a thread that it does not have."""
    begun, go = threading.Event(), threading.Event()
    parent = os.getpid()

    class Thing:
        @lazy.kept
        def value(self) -> list[int]:
            if os.getpid() == parent:
                begun.set()
                assert go.wait(PATIENCE)
            return [1]

    thing = Thing()
    thread = threading.Thread(target=lambda: thing.value)
    thread.start()
    assert begun.wait(PATIENCE)
    child = os.fork()
    if child == 0:
        signal.alarm(10)  # ends the child if it is stuck
        try:
            os._exit(thing.value != [1])
        finally:
            os._exit(1)
    go.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    assert thing.value is thing.value == [1]


def _answer(writer: Any, tok: cpbpe.Tokenizer) -> None:
    writer.send(work.work_with(tok, TEXTS))
    writer.close()


@BOTH
def test_pickles() -> None:
    """They hold the model, whatever was done with it, and load with the other engine, too."""
    tok = used()
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        data = pickle.dumps(tok, protocol)
        assert pickle.loads(data) == tok
        assert data == pickle.dumps(cpbpe.Tokenizer.from_bytes(tok.to_bytes()), protocol)
    assert len(pickle.dumps(tok)) < len(tok.to_bytes()) + 200


# --- datasets -------------------------------------------------------------------------------------


@cache
def hasher() -> Any:
    from datasets.fingerprint import Hasher

    return Hasher.hash


@tiers.slow
@BOTH
def test_fingerprints_follow_the_model_alone(tmp_path: Path) -> None:
    """However a tokenizer was made, and whatever was done with it."""
    path = tmp_path / "some.model"
    path.write_bytes(zoo.model("llama"))
    fresh = cpbpe.load(path)
    first = hasher()(fresh)
    assert hasher()(cpbpe.Tokenizer.from_bytes(zoo.model("llama"))) == first
    work.work_with(fresh, TEXTS)
    fresh.encode("<s>", allowed_special="all", prefix_space=False)
    assert hasher()(fresh) == first
    assert hasher()(pickle.loads(pickle.dumps(fresh))) == first
    one = fresh.with_special_tokens(["<|x|>", "<|y|>"])
    assert hasher()(one) != first
    two = cpbpe.Tokenizer.from_bytes(one.to_bytes())
    assert hasher()(two) == hasher()(one)
    assert hasher()(fresh.with_special_tokens(["<|x|>"]).with_special_tokens(["<|y|>"])) == hasher()(one)
    assert hasher()(cpbpe.Tokenizer.from_bytes(zoo.model("nfkc"))) != first
    assert hasher()(fresh.encode_batch) == hasher()(cpbpe.load(path).encode_batch)


@BOTH
def test_pickled_by_name() -> None:
    """dill keeps functions that it does not find by name as code, and a hash of that would not last."""
    from datasets.utils._dill import dumps

    tok = cpbpe.Tokenizer.from_bytes(zoo.model("llama"))
    around = dumps(tok).replace(tok.to_bytes(), b"")
    assert len(around) < 200
    assert b"restore" in around


SESSION = """
import sys
import datasets
import cpbpe
from cpbpe.compat.transformers import CpbpeTokenizer

folder, way = sys.argv[1:]
datasets.disable_progress_bars()
if way == "file":
    tok = cpbpe.load(folder + "/tokenizer.model")
else:
    tok = cpbpe.Tokenizer.from_bytes(open(folder + "/tokenizer.model", "rb").read())
    tok.encode_batch(["used", "before"], threads=2)
if way == "more":
    tok = tok.with_special_tokens(["<|x|>"])
slow = CpbpeTokenizer(tok)
if way != "file":
    slow(["used", "before"])
calls = 0


def encode(batch):
    global calls
    calls += 1
    return {"ids": tok.encode_batch(batch["text"])}


def encode_slow(batch):
    return slow(batch["text"])


data = datasets.load_from_disk(folder + "/data")
found = data.map(encode, batched=True, batch_size=10)
print(calls, found._fingerprint, data.map(encode_slow, batched=True)._fingerprint, cpbpe.engine_name())
assert found["ids"][:] == [tok.encode(text) for text in data["text"]]
"""


@tiers.slow
@pytest.mark.skipif(not CORE, reason="this compares both engines, and the core was not built")
def test_another_session_reuses_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes with equal tokenizers do the work once; one with another tokenizer does it again."""
    import datasets

    (tmp_path / "tokenizer.model").write_bytes(zoo.model("llama"))
    (tmp_path / "session.py").write_text(SESSION)
    datasets.Dataset.from_dict({"text": TEXTS}).save_to_disk(tmp_path / "data")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))

    def session(way: str, engine: str) -> list[str]:
        monkeypatch.setenv("CPBPE_ENGINE", engine)
        return processes.output(tmp_path / "session.py", tmp_path, way, timeout=PATIENCE).split()

    first, again, more = session("file", "core"), session("bytes", "reference"), session("more", "core")
    assert int(first[0]) == (len(TEXTS) + 9) // 10
    assert int(again[0]) == 0
    assert again[1:3] == first[1:3]
    assert int(more[0]) > 0
    assert not {*more[1:3]} & {*first[1:3]}


@BOTH
@pytest.mark.parametrize("processes", [None, 2])
def test_datasets_map(processes: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    datasets.disable_progress_bars()
    tok = used()
    data = datasets.Dataset.from_dict({"text": TEXTS})
    found = data.map(
        lambda batch: {"ids": tok.encode_batch(batch["text"], threads=2)},
        batched=True,
        batch_size=10,
        num_proc=processes,
    )
    assert found["ids"][:] == tok.encode_batch(TEXTS)


# --- PyTorch --------------------------------------------------------------------------------------

if TORCH:

    @BOTH
    @pytest.mark.parametrize("workers", [0, 2])
    @pytest.mark.parametrize("method", METHODS)
    def test_data_loader(method: str, workers: int) -> None:
        """The tokenizer in the dataset, and in the collate function; workers that stay for a second round."""
        from torch.utils.data import DataLoader

        tok = used()
        expected = tok.encode_batch(TEXTS)
        options: dict[str, Any] = {"num_workers": workers}
        if workers:
            options |= {"multiprocessing_context": method, "persistent_workers": True, "timeout": PATIENCE}
        loader = DataLoader(work.Texts(tok, TEXTS), batch_size=10, collate_fn=work.as_list, **options)
        for _ in range(2):
            assert [ids for batch in loader for ids in batch] == expected
        texts = DataLoader(TEXTS, batch_size=10, collate_fn=work.Collate(tok), **options)
        for _ in range(2):
            rows = [row for batch in texts for row in batch.tolist()]
            assert [row[: len(ids)] for row, ids in zip(rows, expected, strict=True)] == expected

    @BOTH
    def test_tensors() -> None:
        import torch

        tok = used()
        assert tok.decode(torch.tensor(tok.encode("Hello world"))) == "Hello world"
        assert tok.decode_batch(torch.tensor([tok.encode("the"), tok.encode("the")])) == ["the", "the"]


FIRST_USE = """
import os, signal, sys, threading, time
import cpbpe
tok = cpbpe.load(sys.argv[1])
uses = {
    "array": lambda: tok.encode_array("abc"),
    "stream": lambda: tok.stream_decoder().push(22557),
    "lossless": lambda: tok.is_lossless(),
    "split": lambda: tok.split("a b c", 2),
}
use, begun = uses[sys.argv[2]], threading.Event()
thread = threading.Thread(target=lambda: (begun.set(), use()))
thread.start()
begun.wait()
time.sleep(float(sys.argv[3]))
child = os.fork()
if child == 0:
    signal.alarm(20)  # ends the child if it is stuck
    use()
    os._exit(0)
thread.join()
sys.exit(os.waitpid(child, 0)[1] != 0)
"""


@pytest.mark.skipif("fork" not in METHODS, reason="this system has no fork")
@pytest.mark.parametrize("first", ["array", "stream", "lossless", "split"])
@pytest.mark.parametrize("milliseconds", tiers.some([0, 3, 10], [3]))
def test_a_fork_during_the_first_import(first: str, milliseconds: int) -> None:
    """What is imported when needed (numpy, protobuf) is not left half imported in a child: it would hang."""
    model = zoo.real_path(zoo.REAL[0])
    processes.output("-W", "ignore", "-c", FIRST_USE, model, first, str(milliseconds / 1000))
