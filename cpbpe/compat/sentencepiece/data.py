"""Files, messages and arrays of the drop-in in the forms that engines take and sentencepiece gives."""

from __future__ import annotations

from typing import Any

from cpbpe.compat.sentencepiece.values import INT_MAX, not_utf8
from cpbpe.engine.protocol import Engine
from cpbpe.lazy import imported, numpy
from cpbpe.model.formats import sentencepiece as model_file


def calls_of(engine: Engine) -> Any:
    """The calls that the core has for this drop-in; None for an engine that is not the core's."""
    return None if type(engine).__module__ != "cpbpe._core" else imported("cpbpe._core")


def normalized_text(engine: Engine, text: str | bytes) -> str | bytes:
    """The normalized text, str for str and bytes for bytes. A str must be UTF-8."""
    try:
        if isinstance(text, bytes):
            return engine.normalize(text)
        normalized = engine.normalize(text)
        # (U+FFFD may stand for what is not UTF-8, which is an error in sentencepiece.)
        return engine.normalize(text.encode()).decode() if "\ufffd" in normalized else normalized
    except UnicodeEncodeError as error:
        raise not_utf8(error) from error


def normalized_texts(calls: Any, engine: Engine, texts: list[Any]) -> list[Any] | None:
    """The same of many; None if one is of another type, or they are better done one by one."""
    try:
        found: list[Any] | None = None if calls is None else calls.normalize_all(engine, texts)
    except UnicodeEncodeError as error:
        raise not_utf8(error) from error
    return found


def read_file(name: str | bytes) -> bytes:
    """The contents of a file. Errors are RuntimeErrors, as in sentencepiece."""
    try:
        with open(name, "rb") as file:
            return file.read()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise RuntimeError(f"cannot read the file {name!r}: {error}") from error


def is_message(data: bytes) -> bool:
    """Whether data can be parsed as a model file, valid or not."""
    try:
        model_file.messages().ModelProto.FromString(data)
    except model_file.decode_error():
        return False
    return True


def packed_ids(ids: Any) -> bytes | None:
    """A numpy array of ids as an engine takes it; None for everything else."""
    dtype = getattr(ids, "dtype", None)
    if dtype is None or type(ids).__module__ != "numpy" or ids.ndim != 1 or dtype.kind not in "iu":
        return None
    if dtype.itemsize > 4 and len(ids) and not (ids.min() >= 0 and ids.max() <= INT_MAX):
        return None
    data: bytes = ids.astype(
        numpy().uint32
    ).tobytes()  # a negative number becomes one that is outside the vocabulary
    return data


def unchangeable(ids: Any) -> Any:
    """An array of ids as sentencepiece gives it: of int32, a view of memory that it does not own, if any."""
    np = numpy()
    view = ids.view(np.int32) if len(ids) else np.zeros(0, np.int32)
    view.setflags(write=False)
    return view


def is_utf8(data: bytes) -> bool:
    """Whether bytes are UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
