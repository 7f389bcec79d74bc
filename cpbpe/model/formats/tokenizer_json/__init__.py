"""`tokenizer.json`, the files of the `tokenizers` library: written from a `ModelSpec`, and read into one.

That library does not merge by scores but by a list of pairs, and rewrites text step by step. For most models
there is a file with which it encodes exactly as sentencepiece does, but it is hardly ever the obvious one.
`cpbpe.model.pair_ranks` has the theory of merges. Here, each file has one subject: `steps` (how text is
rewritten, and decoded), `merging` (what pieces are called, which pairs are listed, and on which texts these
give other ids), `added` (tokens that texts are searched for), `patterns` (how byte-level models cut text) and
`byte_level` (everything else about these models). `reading` and `writing` put them together.

If the result cannot be exact, a `ConversionError` says why. If differences are allowed, they are listed
instead.
"""

from cpbpe.model.formats.tokenizer_json.reading import read
from cpbpe.model.formats.tokenizer_json.writing import read_back, write

__all__ = ["read", "read_back", "write"]
