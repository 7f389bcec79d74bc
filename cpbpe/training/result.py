"""What training returns: `TrainingResult`, the same for both families of models."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NoReturn

from cpbpe.errors import TrainingError
from cpbpe.lazy import kept
from cpbpe.model.formats.registry import MODEL, format_for
from cpbpe.model.spec import ModelSpec
from cpbpe.model.writing import write_all
from cpbpe.reference.training_values import Learned
from cpbpe.spelling import counted
from cpbpe.tokenizer.tokenizer import Tokenizer
from cpbpe.training.families import Built, Family
from cpbpe.training.options_base import checked_integer
from cpbpe.training.report import Report


class TrainingResult:
    """A trained model with its report, and with every smaller model that the same training gives.

    >>> from cpbpe import train
    >>> result = train(["the cat sat on the mat, the bat sat on the hat"], vocab_size=290)
    >>> result.tokenizer.encode_pieces("the cat")
    ['▁the', '▁cat']
    >>> result.tokenizer_at(280).vocab_size
    280
    """

    def __init__(self, family: Family, learned: Learned, built: Built, report: Report):
        self._family = family
        self._learned = learned
        self._built = built
        self._report = report

    @property
    def options(self) -> Any:
        """The options of this training: `TrainOptions`, or `ByteTrainOptions` for a byte-level model."""
        return self._family.options

    @property
    def report(self) -> Report:
        """What was read, left out, learned and needed."""
        return self._report

    @property
    def model_bytes(self) -> bytes:
        """The model file. (With `record_paths`, the file that `save` writes also has the model's path.)"""
        return self._built.data

    @property
    def spec(self) -> ModelSpec:
        """The model as a value."""
        return self._built.spec

    @kept
    def tokenizer(self) -> Tokenizer:
        """The model, ready to be used."""
        return Tokenizer.from_bytes(self._built.data)

    def model_bytes_at(self, vocab_size: int) -> bytes:
        """The model file that training with a smaller `vocab_size` would have given, byte for byte."""
        least, most = self._family.least(self._learned), self._family.options.vocab_size
        vocab_size = checked_integer("vocab_size", vocab_size)
        if not least <= vocab_size <= most:
            raise TrainingError(
                f"vocab_size is {vocab_size}, and this training gives models of {least} to {most} pieces; "
                f"choose a size in this range, or train again for a larger one"
            )
        if vocab_size == most:
            return self._built.data
        return self._family.build(self._learned, vocab_size).data

    def tokenizer_at(self, vocab_size: int) -> Tokenizer:
        """The tokenizer that training with a smaller `vocab_size` would have given, exactly."""
        return Tokenizer.from_bytes(self.model_bytes_at(vocab_size))

    def save(self, prefix: str | os.PathLike[str]) -> tuple[str, ...]:
        """Write `prefix`.model and `prefix`.vocab, and return their paths. The folder must exist.

        Both are written under other names first and renamed when they are complete. With `record_paths` the
        model file records `prefix`, as sentencepiece records its model_prefix.

        A byte-level model is also saved in the formats of its family: `save("my.tiktoken")` writes that file.
        """
        name = os.fspath(prefix)
        if not isinstance(name, str):
            raise TypeError(f"save() takes a path as str or Path, not {name!r}")
        if self._built.spec.alphabet == "bytes" and format_for(name) is not MODEL:
            self.tokenizer.save(name)
            return (name,)
        name = name.removesuffix(".model")
        check_prefix(name)
        paths = f"{name}.model", f"{name}.vocab"
        write_all(dict(zip(paths, self._family.files(self._built, name), strict=True)))
        return paths

    def __repr__(self) -> str:
        pieces, tokens = self._report.vocab_size, self._report.tokens
        return f"<cpbpe.TrainingResult: {counted(pieces, 'piece')}, {counted(tokens, 'token')}>"

    if not TYPE_CHECKING:  # type checkers should still report missing attributes

        def __getattr__(self, name: str) -> NoReturn:
            """Raise an AttributeError that says where the methods of the tokenizer are."""
            there = not name.startswith("_") and hasattr(Tokenizer, name)
            hint = f"; use result.tokenizer.{name}" if there else ""
            message = f"{type(self).__name__!r} object has no attribute {name!r}{hint}"
            raise AttributeError(message, name=name, obj=self)


def check_prefix(prefix: str) -> None:
    """Raise an error if `prefix`.model and `prefix`.vocab cannot be written."""
    folder = os.path.dirname(os.path.abspath(prefix))
    if not os.path.basename(prefix):
        raise TrainingError(
            f"{prefix!r} is a folder; give a name in it, such as {os.path.join(prefix, 'my')!r}"
        )
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"the folder {folder!r} does not exist; make it first")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"the folder {folder!r} may not be written to; choose another")
    for path in (f"{prefix}.model", f"{prefix}.vocab"):
        if os.path.isdir(path):
            raise IsADirectoryError(f"{path!r} is a folder; choose another name")
