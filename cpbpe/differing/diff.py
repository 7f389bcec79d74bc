"""`cpbpe.diff`: two models side by side."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeAlias

from cpbpe.corpus.documents import Documents
from cpbpe.differing.corpus import corpus_difference
from cpbpe.differing.model_diff import ModelDiff
from cpbpe.differing.orders import compare_orders
from cpbpe.differing.pieces import entries, piece_changes
from cpbpe.differing.same import surely_same
from cpbpe.differing.search import Pair, shortest_difference
from cpbpe.differing.settings import setting_changes
from cpbpe.tokenizer.loading import load
from cpbpe.tokenizer.tokenizer import Tokenizer

Model: TypeAlias = "str | os.PathLike[str] | Tokenizer"
Texts: TypeAlias = "os.PathLike[str] | Documents | Iterable[str | bytes]"


def diff(old: Model, new: Model, texts: Texts | None = None, *, search: bool = True) -> ModelDiff:
    """What is different between two models: pieces, settings, and the tokens of texts.

    `old`, `new`: paths of whatever `load` takes, or tokenizers. `texts`: a `Path` of files that `train` would
    read, or an iterable of texts, on which differences are counted. `search`: whether to look for a short
    text whose tokens differ. Where nothing that decides about tokens is different, every text has the same,
    and nothing is searched.

    >>> import cpbpe
    >>> tok = cpbpe.load("tokenizer.model")
    >>> found = cpbpe.diff(tok, tok.with_special_tokens(["<|end|>"]))
    >>> found
    <cpbpe.ModelDiff: 1 added, 1 settings>
    >>> found.same_tokens, found.of_kind("added")[0].piece
    (True, '<|end|>')
    """
    first, second = _loaded(old), _loaded(new)
    if isinstance(texts, (str, bytes)):
        raise TypeError("texts is an iterable of texts, or a Path of files; for one text give a list with it")
    if isinstance(texts, os.PathLike):
        texts = Documents(texts)
    if isinstance(texts, Documents):
        texts = texts.texts()
    specs = first.spec, second.spec
    families = specs[0].alphabet != specs[1].alphabet
    before, after = (entries(spec, families) for spec in specs)
    changes = piece_changes(before, after)
    settings = setting_changes(first, second)
    pair = Pair(first, second)
    text, tried = None, 0
    orders = compare_orders(*specs)
    same: bool | None = surely_same(orders, settings) or None
    if same is None and search:
        changed = (c.piece for c in changes if "moved" not in c.kinds)
        text, tried = shortest_difference(pair, changed, orders.texts)
        same = False if text is not None else None
    corpus = None if texts is None else corpus_difference(pair, texts)
    if corpus is not None and corpus.different:
        same = False
    moved = any(change.old and change.new and change.old.id != change.new.id for change in changes)
    return ModelDiff(tuple(changes), tuple(settings), text, same, False if moved else same, tried, corpus)


def _loaded(model: Model) -> Tokenizer:
    if isinstance(model, Tokenizer):
        return model
    if not isinstance(model, (str, os.PathLike)):
        raise TypeError(f"a model is a path or a Tokenizer, not {type(model).__name__}")
    return load(model)
