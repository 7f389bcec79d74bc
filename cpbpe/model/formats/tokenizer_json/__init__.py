"""`tokenizer.json`, the files of the `tokenizers` library: written from a `ModelSpec`, and read into one.

That library does not merge by scores but by a list of pairs, and rewrites text step by step. A file that it
encodes with exactly as sentencepiece does is possible for most models, and nearly never the obvious one.
`cpbpe.model.pair_ranks` has the theory about merges. Here, each file has one subject: `spaces`,
`user_defined`, `merging` (which pairs are listed, and on which texts that is not enough), `charsmaps`,
`added` and `special` (tokens that are no text), `lengths` (truncation and padding), `both` (whether a
difference shows, and in which text); and `writing` and `reading` put them together.

What cannot be exact is a `ConversionError` that says why, unless differences are allowed; then they are
listed.
"""

from cpbpe.model.formats.tokenizer_json.reading import read
from cpbpe.model.formats.tokenizer_json.writing import write
from cpbpe.model.formats.values import Difference, ReadModel, Written

__all__ = ["Difference", "ReadModel", "Written", "read", "write"]
