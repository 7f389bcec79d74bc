"""GGUF, the files of llama.cpp: reading the tokenizer in one, and writing files of a tokenizer alone.

`container` knows how values are stored, `keys` what those of a tokenizer are called. `reading` and `writing`
go between these and a model. `llamacpp` says on which texts llama.cpp gives other ids than the model.

Which of the two is right? The pieces and scores come from sentencepiece, and so do the ids that the weights
were trained with. So reading gives the model that does what sentencepiece does, and never refuses a file
because llama.cpp does not. Writing is refused, as in all formats, if the one who reads the file, llama.cpp,
would give other ids to some text.
"""

from cpbpe.model.formats.gguf.container import head_of
from cpbpe.model.formats.gguf.llamacpp import differences, remarks
from cpbpe.model.formats.gguf.reading import read
from cpbpe.model.formats.gguf.writing import read_back, write

__all__ = ["differences", "head_of", "read", "read_back", "remarks", "write"]
