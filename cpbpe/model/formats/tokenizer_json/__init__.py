"""`tokenizer.json`, the files of the `tokenizers` library: written from a `ModelSpec`, and read into one.

That library does not merge by scores but by a list of pairs, and rewrites text step by step. A file that it
encodes with exactly as sentencepiece does is possible for most models, and nearly never the obvious one.
`cpbpe.model.pair_ranks` has the theory about merges. Here, each file has one subject: `steps` (how text is
rewritten, and decoded), `merging` (what pieces are called, which pairs are listed, and on which texts that is
not enough), `added` (tokens that texts are searched for), `patterns` (how byte-level models cut text) and
`byte_level`; `reading` and `writing` put them together.

What cannot be exact is a `ConversionError` that says why, unless differences are allowed; then they are
listed.
"""

from cpbpe.model.formats.tokenizer_json.reading import read
from cpbpe.model.formats.tokenizer_json.writing import read_back, write

__all__ = ["read", "read_back", "write"]
