"""`cpbpe.load`, which most programs call first."""

from __future__ import annotations

from collections.abc import Mapping

from cpbpe.foreign import takes_a_source
from cpbpe.lazy import importing
from cpbpe.model.files import Source, folder_of, read_model_file
from cpbpe.model.formats.registry import Hints
from cpbpe.tokenizer.identity import facts_of
from cpbpe.tokenizer.options import DECODE, ENCODE
from cpbpe.tokenizer.tokenizer import Tokenizer


@takes_a_source("load", ENCODE | DECODE, own=("pattern", "special_tokens"))
def load(
    source: Source, *, pattern: str | None = None, special_tokens: Mapping[str, int] | None = None
) -> Tokenizer:
    """Load a model from a file of any format: its path, its folder, or the file opened in binary mode.

    Formats are `.model`, tokenizer.json, GGUF, llama2.c's tokenizer.bin, `.vocab`, `.tiktoken`, GPT-2's
    vocab.json with merges.txt, and minbpe's `.model`, see docs/formats.md. Of a folder, what the other files
    say about tokens is read, too.

    A file of ranks (`.tiktoken`) does not say by which `pattern` texts are cut, nor which `special_tokens`
    there are, with their ids. Both are known of the well-known files, and given for others. The pattern is a
    regular expression or the name of a published one ("gpt2", "cl100k", "o200k", "llama3", "qwen2",
    "tekken"); "" leaves a text whole. For vocab.json with merges.txt it is GPT-2's, unless it is given. A
    GGUF file of a byte-level model names it; it can be given for names that are not known.

    >>> load("tokenizer.model").vocab_size
    32000
    """
    hints = Hints.checked(pattern, special_tokens)
    if not hints.name:
        return Tokenizer(source)
    folder = folder_of(source)
    if folder is None:
        return Tokenizer(facts_of(read_model_file(source), hints))
    with importing:
        from cpbpe.tokenizer.folders import read_folder
    return Tokenizer(read_folder(folder, hints=hints).facts)
