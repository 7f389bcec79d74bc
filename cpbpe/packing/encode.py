"""Encoding batches of documents, in whichever form they are."""

from __future__ import annotations

from typing import Any

from cpbpe.checks import checked_threads, cores
from cpbpe.packing.read import Batch
from cpbpe.packing.rows import Encoded
from cpbpe.tokenizer.tokenizer import Tokenizer

_SIMPLE = {"add_bos", "add_eos", "reverse"}
"""The options that engines take as they are."""


class Encoder:
    """A tokenizer with options."""

    def __init__(self, tokenizer: Tokenizer, threads: int | None, options: dict[str, Any]):
        """`options` have been checked."""
        self._tokenizer = tokenizer
        self.threads = cores() if threads is None else checked_threads(threads)
        """How many batches are encoded at the same time: each by one thread, which waits for no other."""
        self._options = options
        bound = {**tokenizer.bound_options, **options}
        self.takes_lines = _SIMPLE.issuperset(bound)
        """Whether batches may have lines."""
        _, bos, eos, _ = tokenizer.facts.special_ids
        self._ends = (
            bos if bound.get("add_bos") else None,
            eos if bound.get("add_eos") else None,
            bool(bound.get("reverse")),
        )

    def encode(self, batch: Batch, number: int) -> Encoded:
        """The ids of a batch; `number` is that of its first document."""
        if batch.encoded is not None:
            return batch.encoded
        if batch.lines is not None:
            return Encoded(*self._tokenizer.facts.engine.encode_lines(batch.lines, 1, *self._ends))
        options = self._options
        if "seed" in options:  # sampling goes on with the number of the document
            options = {**options, "seed": (options["seed"] + number) % (1 << 64)}
        rows = self._tokenizer.encode_arrays(batch.texts, threads=1, **options)
        return Encoded(rows.ids, rows.offsets, None)
