"""Folders of `transformers`: a model with the files beside it, which say what is done around it.

`beside` reads these files, `json_head` what a tokenizer.json says before its vocabulary, and `writing` makes
all files of a folder. `cpbpe.tokenizer.folders` puts the model and what is said beside it together, because
that needs to know which tokens are pieces.
"""

from cpbpe.model.formats.folder.beside import Beside, read_beside
from cpbpe.model.formats.folder.writing import WrittenFolder, left_behind, write

__all__ = ["Beside", "WrittenFolder", "left_behind", "read_beside", "write"]
