"""What is imported when it is first needed, because it takes longer than all of cpbpe: numpy and protobuf.

Python has a lock for each module that is being imported. When another thread forks the process at that
moment, the lock stays taken in the child, whose own import waits forever. So nobody forks while one of these
imports runs: the fork waits for it.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from threading import RLock
from typing import Any

_IMPORTING = RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_IMPORTING.acquire, after_in_parent=_IMPORTING.release, after_in_child=_IMPORTING.release
    )


@cache
def numpy() -> Any:
    """The module numpy."""
    with _IMPORTING:
        return import_module("numpy")


@cache
def model_pb2() -> Any:
    """The messages of a model file, and with them protobuf."""
    with _IMPORTING:
        return import_module("cpbpe.model_pb2")


@cache
def decode_error() -> type[Exception]:
    """What protobuf raises for bytes that are no message."""
    with _IMPORTING:
        error: type[Exception] = import_module("google.protobuf.message").DecodeError
        return error
