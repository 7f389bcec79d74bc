"""What `soak` compares cpbpe with: one class for each library, which does one numbered batch of work.

A batch depends on nothing but the seed, its number and the files that texts are taken from, so that each can
be done again alone, on any number of processes.
"""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np

from cpbpe.text.utf8 import repair
from tests.support import json_files, json_tokenizers, tiktoken_texts, train_cases, train_parity, zoo
from tests.support.parity import Pair
from tests.support.varied import Varied

BATCH = 1_000_000
"""Bytes of text in a batch: a fifth of a second for sentencepiece."""
BATCHES_FOR_A_MODEL = 64
"""In a row. A large vocabulary takes a second to load, and all of them together some GB."""
REAL_SHARE = 0.5
"""Of the batches for the models that people use."""
SHORT = 300
DECODED_EVERY = 8
"""Batches of which ids are also decoded, which takes a tenth of the time of encoding."""
IN_FULL = 4
"""Short texts of each batch for which everything is compared: pieces, offsets, the normalized text."""


@dataclass
class Done:
    """What one batch compared."""

    model: str
    texts: int = 0
    size: int = 0
    """In bytes."""
    seconds: float = 0
    """Of the processor, which is the same however many processes there are and whatever else runs."""
    decoded: int = 0
    """Of the texts, those whose ids were also decoded."""
    in_full: int = 0
    """Texts besides, of which everything was compared."""
    left_out: int = 0
    """Texts, or trainings, that the other library refuses. cpbpe refuses the same trainings."""
    differences: list[str] = field(default_factory=list)
    digest: bytes = b""
    """Of the texts and of what the other library made of them."""


def _outcome(call: Callable[[], Any]) -> Any:
    """What a call returns, or the error, which is different from all results."""
    try:
        return call()
    except BaseException as error:  # (a panic in Rust is no Exception)
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return error


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) < 400 else f"{shown[:400]}..."


def _digest(texts: Sequence[str] | Sequence[bytes], ids: Any) -> tuple[int, bytes]:
    """How many bytes texts have, and a hash of them and of their ids."""
    data = [text.encode() if isinstance(text, str) else text for text in texts]
    found = hashlib.blake2b(b"\xff".join(data), digest_size=16)
    found.update(ids.astype("<u4").tobytes())
    return sum(map(len, data)), found.digest()


def _columns(tokenizer: Any, text: str) -> Any:
    return json_tokenizers.columns(tokenizer.encode(text))


def _find(texts: Sequence[Any], expected: list[list[int]], encode: Callable[[Any], Any], done: Done) -> None:
    """Note the texts of a batch that have other ids than they should."""
    for text, ids in zip(texts, expected, strict=True):
        found = _outcome(partial(encode, text))
        if found != ids:
            done.differences.append(f"{_shown(text)}: {_shown(found)}, not {_shown(ids)}")
    if not done.differences:
        done.differences.append("a batch gives other ids than its texts one by one")


class Sentencepiece:
    """Encoding, decoding and, for a few texts, everything else, with the models of the zoo."""

    package = "sentencepiece"

    def __init__(self, seed: int, sources: Sequence[Any], models: dict[str, bytes]):
        self.seed, self.sources, self.models = seed, sources, models
        self.pairs: dict[str, tuple[Pair, list[str]]] = {}

    @staticmethod
    def prepared(names: Sequence[str]) -> dict[str, bytes]:
        """What all processes need: the models, made once."""
        return {name: zoo.model(name) for name in names or zoo.NAMES}

    @staticmethod
    def files(models: dict[str, bytes]) -> dict[str, bytes]:
        """Each model's file."""
        return models

    def pair(self, name: str) -> tuple[Pair, list[str]]:
        """A model in both libraries, and its pieces as text has them."""
        if name not in self.pairs:
            pair = Pair(self.models[name], "core")
            usual = range(259, len(pair.ours)) if len(pair.ours) > 600 else range(len(pair.ours))
            self.pairs[name] = pair, [pair.ours.id_to_piece(id).replace("\u2581", " ") for id in usual]
        return self.pairs[name]

    def batch(self, number: int) -> Done:
        """Compare some texts with one model."""
        chance = random.Random(f"{self.seed}:{number}")
        real = [name for name in self.models if name in zoo.REAL]
        name = chance.choice(real if real and chance.random() < REAL_SHARE else list(self.models))
        pair, pieces = self.pair(name)
        maker = Varied(f"{self.seed}:{number}:texts", self.sources, pieces)
        texts: Any = maker.texts(BATCH)
        if chance.randrange(4) == 0:
            texts = maker.broken(texts)
        done = Done(name, len(texts))
        ids = self._encoded(pair, texts, chance.choice((1, 2)), done)
        done.size, done.digest = _digest(texts, np.concatenate(ids))
        if number % DECODED_EVERY == 0:
            self._decoded(pair, ids, done)
        for text in [text for text in texts if len(text) < SHORT][:IN_FULL]:
            done.in_full += 1
            found = _outcome(partial(pair.check_text, text))
            if found is not None:
                done.differences.append(f"{_shown(text)}: {found}")
        return done

    def _encoded(self, pair: Pair, texts: Any, threads: int, done: Done) -> list[Any]:
        """The ids that sentencepiece gives, compared with ours."""
        expected = pair.theirs.encode(texts, return_type="numpy", num_threads=1)
        rows = _outcome(lambda: pair.ours.encode_arrays(texts, threads=threads))
        ends = np.cumsum([0, *map(len, expected)])
        if not (
            hasattr(rows, "ids")
            and np.array_equal(rows.offsets, ends)
            and np.array_equal(rows.ids, np.concatenate(expected))
        ):
            _find(texts, [ids.tolist() for ids in expected], pair.ours.encode, done)
        return list(expected)

    def _decoded(self, pair: Pair, ids: list[Any], done: Done) -> None:
        """What the ids decode to."""
        lists = [row.tolist() for row in ids]
        done.decoded = len(lists)
        expected = pair.theirs.decode(lists, return_type=bytes, num_threads=1)
        found = _outcome(lambda: pair.ours.decode_batch(lists, threads=1))
        if found != [repair(text).decode() for text in expected]:
            done.differences.append(f"decoding gives another text: {_shown(found)}")


class Tiktoken:
    """Encoding and decoding with the published vocabularies."""

    package = "tiktoken"

    def __init__(self, seed: int, sources: Sequence[Any], names: list[str]):
        self.seed, self.sources, self.names = seed, sources, names

    @staticmethod
    def prepared(names: Sequence[str]) -> list[str]:
        """The names of the vocabularies. They are read when they are first needed."""
        return list(names or tiktoken_texts.SPECIAL)

    @staticmethod
    def files(names: list[str]) -> dict[str, bytes]:
        """The ranks of each in one form, whatever the form of the published file."""
        rows = {name: sorted(tiktoken_texts.ranks_of(name).items(), key=lambda row: row[1]) for name in names}
        return {
            name: b"".join(b"%s %d\n" % (piece.hex().encode(), rank) for piece, rank in ranks)
            for name, ranks in rows.items()
        }

    def batch(self, number: int) -> Done:
        """Compare some texts with one vocabulary."""
        chance = random.Random(f"{self.seed}:{number}")
        shift = random.Random(str(self.seed)).randrange(len(self.names))
        name = self.names[(shift + number // BATCHES_FOR_A_MODEL) % len(self.names)]
        pair, pieces = published(name)
        texts = Varied(f"{self.seed}:{number}:texts", self.sources, pieces).texts(BATCH)
        options: Any = {"disallowed_special": ()}
        if chance.randrange(4) == 0:
            options["allowed_special"] = "all"
        done = Done(name)
        kept, ids = [], []
        for text in texts:
            found, expected = (_outcome(partial(one.encode_to_numpy, text, **options)) for one in pair)
            if isinstance(expected, BaseException):
                done.left_out += 1
                continue
            kept.append(text)
            ids.append(expected)
            if not (hasattr(found, "dtype") and np.array_equal(found, expected)):
                done.differences.append(f"{_shown(text)}: {found}, not {expected}")
        done.texts = len(kept)
        done.size, done.digest = _digest(kept, np.concatenate([np.zeros(0, np.uint32), *ids]))
        if number % DECODED_EVERY == 0:
            lists = [row.tolist() for row in ids]
            done.decoded = len(lists)
            if _outcome(lambda: pair[0].decode_batch(lists)) != [pair[1].decode(row) for row in lists]:
                done.differences.append("decoding gives another text")
        return done


@lru_cache(2)
def published(name: str) -> tuple[tuple[Any, Any], list[str]]:
    """A vocabulary in both libraries, and its pieces, special tokens among them."""
    pair = tiktoken_texts.both(name)
    pieces = [piece.decode(errors="replace") for piece in pair[1].token_byte_values()]
    return pair, [*pieces, *list(tiktoken_texts.SPECIAL[name])[:9] * (len(pieces) // 500)]


class Tokenizers:
    """Encoding and decoding with tokenizer.json files, of models of the zoo and of small byte-level ones."""

    package = "tokenizers"

    def __init__(self, seed: int, sources: Sequence[Any], files: dict[str, bytes]):
        os.environ["TOKENIZERS_PARALLELISM"] = "false"  # (there may be other processes)
        self.seed, self.sources, self.models = seed, sources, files
        self.pairs: dict[str, tuple[tuple[Any, Any], list[str]]] = {}

    @staticmethod
    def prepared(names: Sequence[str]) -> dict[str, bytes]:
        """The files, made once."""
        usual = [*json_files.CASES, *json_tokenizers.BYTE_LEVEL]
        return {name: json_tokenizers.model(name, bos=False) for name in names or usual}

    @staticmethod
    def files(models: dict[str, bytes]) -> dict[str, bytes]:
        """Each model's file."""
        return models

    def pair(self, name: str) -> tuple[tuple[Any, Any], list[str]]:
        """A file in both libraries, and its pieces as text has them."""
        if name not in self.pairs:
            pair = json_tokenizers.both(self.models[name])
            ids = range(pair[1].get_vocab_size())
            self.pairs[name] = pair, [pair[1].decode([id], skip_special_tokens=False) for id in ids]
        return self.pairs[name]

    def batch(self, number: int) -> Done:
        """Compare some texts with one file. Special tokens in texts are found, or are plain text."""
        chance = random.Random(f"{self.seed}:{number}")
        name = chance.choice(list(self.models))
        pair, pieces = self.pair(name)
        texts = Varied(f"{self.seed}:{number}:texts", self.sources, pieces).texts(BATCH)
        is_plain = chance.randrange(2) == 0
        for tokenizer in pair:
            tokenizer.encode_special_tokens = is_plain
        expected = [encoding.ids for encoding in pair[1].encode_batch_fast(texts)]
        done = Done(name, len(texts))
        done.size, done.digest = _digest(texts, np.array([id for ids in expected for id in ids]))
        found = _outcome(lambda: [encoding.ids for encoding in pair[0].encode_batch_fast(texts)])
        if found != expected:
            _find(texts, expected, lambda text: pair[0].encode(text).ids, done)
        if number % DECODED_EVERY == 0:
            done.decoded = len(texts)
            if _outcome(lambda: pair[0].decode_batch(expected)) != pair[1].decode_batch(expected):
                done.differences.append("decoding gives another text")
        for text in [text for text in texts if len(text) < SHORT][:IN_FULL]:
            done.in_full += 1
            columns = [_outcome(partial(_columns, one, text)) for one in pair]
            if columns[0] != columns[1]:
                done.differences.append(f"{_shown(text)}: {columns[0]}, not {columns[1]}")
        return done


class Training:
    """Training with any options on parts of the sources, or on invented words: the files, byte for byte."""

    package = "sentencepiece"

    def __init__(self, seed: int, sources: Sequence[Any], _: None):
        self.seed, self.sources = seed, sources

    @staticmethod
    def prepared(names: Sequence[str]) -> None:
        """Nothing: a training needs no model."""
        assert not names, "trainings have no models to choose from"

    @staticmethod
    def files(_: None) -> dict[str, bytes]:
        """None: each training makes a model of its own."""
        return {}

    def batch(self, number: int) -> Done:
        """One training."""
        chance = random.Random(f"{self.seed}:{number}")
        options = train_cases.random_options(chance)
        maker = Varied(f"{self.seed}:{number}:texts", self.sources, train_cases.invented())
        sentences = train_cases.random_sentences(chance, maker)
        done = Done("", 1, sum(map(len, sentences)))
        trained = _outcome(lambda: train_parity.check(options, sentences))
        if isinstance(trained, BaseException):
            done.differences.append(f"{options}: {trained}")
        done.left_out = int(trained is None)
        file = trained.built.data if isinstance(trained, train_parity.Trained) else b""
        done.digest = hashlib.blake2b(b"\n".join([*sentences, file]), digest_size=16).digest()
        return done


RIVALS: dict[str, Any] = {
    "sentencepiece": Sentencepiece,
    "tiktoken": Tiktoken,
    "tokenizers": Tokenizers,
    "training": Training,
}
"""By the names that `soak` gives them."""
