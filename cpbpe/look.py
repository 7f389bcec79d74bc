"""Former names of modules, so that `from cpbpe.look.built import built` still works."""

import sys

from cpbpe.lint import usage
from cpbpe.tools import built, reports, vocabulary_file

_MOVED = {
    "built": built,
    "cutting": reports,
    "embeddings": usage,
    "meanings": reports,
    "vocabulary_file": vocabulary_file,
}
# To import `cpbpe.look.built`, Python imports `cpbpe.look`, and then looks in `sys.modules` once more.
sys.modules.update({f"{__name__}.{name}": module for name, module in _MOVED.items()})
__path__: list[str] = []
