"""What the tests of clusters count and encode, and a worker that dies once."""

import os
import signal
from pathlib import Path
from typing import Any

import cpbpe
from tests.support import corpus, zoo

TEXTS: list[str | None] = [None, "", *corpus.lines(600), None]
PARTS = 40
"""More than one merge of the tree takes."""
TRAIN: dict[str, Any] = {"vocab_size": 700}


def present() -> list[str]:
    return [text for text in TEXTS if text is not None]


def tokenizer() -> cpbpe.Tokenizer:
    return cpbpe.Tokenizer.from_bytes(zoo.model("llama"))


def ids_of(tok: cpbpe.Tokenizer, **options: Any) -> list[list[int] | None]:
    return [None if text is None else tok.encode(text, **options) for text in TEXTS]


def packed_files(folder: Path) -> dict[str, bytes]:
    """What a run has written, without what says where the texts came from."""
    return {
        path.name: path.read_bytes()
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name != "cpbpe-pack.json"
    }


class DiesOnce:
    """Passes tables on; but the first process that comes here kills itself, or an ancestor of it."""

    def __init__(self, flag: Path, ancestor: int = 0):
        self._flag = flag
        self._ancestor = ancestor

    def strike(self) -> None:
        try:
            os.close(os.open(self._flag, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        victim = os.getpid()
        for _ in range(self._ancestor):
            fields = Path(f"/proc/{victim}/stat").read_text().rpartition(")")[2].split()
            victim = int(fields[1])
        if self._ancestor:  # nothing but what was started for the test
            assert b"CoarseGrainedExecutorBackend" in Path(f"/proc/{victim}/cmdline").read_bytes()
        os.kill(victim, signal.SIGKILL)

    def __call__(self, table: Any) -> Any:
        self.strike()
        return table

    def batches(self, batches: Any) -> Any:
        for batch in batches:
            self.strike()
            yield batch
