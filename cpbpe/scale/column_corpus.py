"""The texts of columns as a corpus, so that counting need not make an object of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cpbpe.arrow import Column, plain, pyarrow, texts_of
from cpbpe.corpus.files import PART_BYTES
from cpbpe.corpus.records import as_a_line_each
from cpbpe.scale.rows import chunks_of
from cpbpe.training.corpus import Block, Corpus
from cpbpe.training.options import AnyOptions, ByteTrainOptions


class ColumnCorpus(Corpus):
    r"""Columns with texts, each of which is what an item of an iterable is; nulls are left out.

    >>> import pyarrow
    >>> from cpbpe.training.options import TrainOptions
    >>> columns = [pyarrow.array(["one", None, "two\n"]), pyarrow.array(["a\nb"])]
    >>> [block.lines or block.sentences for block in ColumnCorpus(columns, TrainOptions()).blocks()]
    [b'one\ntwo\n', [b'a\nb']]
    """

    def __init__(self, columns: Iterable[Column], options: AnyOptions):
        if isinstance(options, ByteTrainOptions):
            super().__init__(iter(()), documents=True, split_lines=options.split_lines)
        else:
            super().__init__(iter(()), keep_newlines=options.keep_newlines)
        self._columns = columns

    def _blocks_of_items(self) -> Iterator[Block]:
        first = 1
        for column in self._columns:
            for chunk in chunks_of(column):
                # Dictionaries are decoded in parts, because they grow. The others are made plain at once:
                # pyarrow before version 22 does not know the size of views.
                if not isinstance(chunk, pyarrow().DictionaryArray):
                    chunk = plain(chunk, "count")
                rows = max(PART_BYTES * len(chunk) // max(chunk.nbytes, 1), 1)
                for begin in range(0, len(chunk), rows):
                    part = plain(chunk.slice(begin, rows), "count")
                    self.nulls += part.null_count
                    part = part.drop_null()
                    yield self._block_of(part, first)
                    first += len(part)

    def _block_of(self, part: Column, first: int) -> Block:
        if not self._keep:
            lines = as_a_line_each(part.cast(pyarrow().large_binary()))
            if lines is not None:
                return Block("item", first, lines)
        texts = texts_of(part, "count")
        sentences = texts.as_bytes(texts.begins, texts.ends)
        return Block("item", first, None, [self._checked_text(sentence, first) for sentence in sentences])
