"""Where the files of a run are: in a folder, or beside others with a prefix in front of their names."""

from __future__ import annotations

import os

from cpbpe.spelling import named

MANIFEST = "cpbpe-pack.json"
"""What was written, and from what."""
_SCRATCH = ".cpbpe-pack"
"""A folder with what is not whole yet. It is gone when the run has ended."""


class Place:
    """The paths of a run. What users give is a folder, or a prefix if it ends with "-" or "_".

    >>> Place("tokens").path("train.bin"), Place("data/wiki_").path("train.bin")
    ('tokens/train.bin', 'data/wiki_train.bin')
    """

    def __init__(self, out: str | os.PathLike[str]):
        self.out = os.fspath(out)
        """What users give."""
        if not isinstance(self.out, str) or not self.out or "\0" in self.out:
            raise TypeError(f"{named('out')} must be the path of a folder, not {out!r}")
        if self.out == "-":
            raise ValueError(f"{named('out')} is a folder; several files cannot be written to '-'")
        self._base = self.out if self.out.endswith(("-", "_")) else os.path.join(self.out, "")

    @property
    def folder(self) -> str:
        """The folder of all files."""
        return os.path.dirname(self._base) or os.curdir

    @property
    def manifest(self) -> str:
        """The path of the manifest."""
        return self.path(MANIFEST)

    def path(self, name: str) -> str:
        """The path of a file; `name` may have a folder in it."""
        return self._base + name

    def scratch(self, name: str = "") -> str:
        """The path of a file that is not whole yet."""
        return os.path.join(self._base + _SCRATCH, name)

    def exists(self) -> bool:
        """Whether a run has begun here."""
        return os.path.isfile(self.manifest)
