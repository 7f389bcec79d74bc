"""GGUF, the files of llama.cpp: reads the tokenizer in one, and writes files that hold only a tokenizer.

`container` knows how values are stored, and `keys` what the values of a tokenizer are called. `reading` makes
a model of them, and `writing` makes them of a model. `llamacpp` says on which texts llama.cpp gives other ids
than the model.

Where the two differ, which of them is right? The pieces and scores come from sentencepiece, and so do the ids
that the weights were trained with. So reading returns the model that does what sentencepiece does, and never
refuses a file because llama.cpp does something else. As in all formats, writing is refused if the program
that will read the file, here llama.cpp, would give other ids to some text.
"""

from cpbpe.model.formats.gguf.container import head_of
from cpbpe.model.formats.gguf.llamacpp import differences, remarks
from cpbpe.model.formats.gguf.reading import read
from cpbpe.model.formats.gguf.writing import read_back, write

__all__ = ["differences", "head_of", "read", "read_back", "remarks", "write"]
