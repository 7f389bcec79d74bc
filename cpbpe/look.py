"""Other names of modules of `cpbpe.tools`, so that `from cpbpe.look.built import built` works."""

import sys

from cpbpe.tools import built, embeddings, reports, vocabulary_file

_MOVED = {
    "built": built,
    "cutting": reports,
    "embeddings": embeddings,
    "meanings": reports,
    "vocabulary_file": vocabulary_file,
}
# Python looks here once more after it has imported the package of a module.
sys.modules.update({f"{__name__}.{name}": module for name, module in _MOVED.items()})
__path__: list[str] = []
