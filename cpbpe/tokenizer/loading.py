"""`cpbpe.load`, which most programs call first."""

from __future__ import annotations

from collections.abc import Mapping

from cpbpe.lazy import imported
from cpbpe.model.files import Source, read_model_file
from cpbpe.model.formats import table
from cpbpe.tokenizer.guided import takes_a_source
from cpbpe.tokenizer.options import DECODE, ENCODE
from cpbpe.tokenizer.tokenizer import Tokenizer


@takes_a_source("load", ENCODE | DECODE, own=("pattern", "special_tokens"))
def load(
    source: Source, *, pattern: str | None = None, special_tokens: Mapping[str, int] | None = None
) -> Tokenizer:
    """Load a model from a file of any format: its path, its folder, or the file opened in binary mode.

    Formats are `.model`, tokenizer.json, GGUF, llama2.c's tokenizer.bin, `.vocab` and `.tiktoken`, see
    docs/formats.md. Of a folder, what the other files say about tokens is read, too.

    A file of ranks (`.tiktoken`) does not say by which `pattern` texts are cut, nor which `special_tokens`
    there are, with their ids. Both are known of the well-known files, and given for others. The pattern is a
    regular expression or the name of a published one ("gpt2", "cl100k", "o200k", "llama3", "qwen2",
    "tekken"); "" leaves a text whole.

    >>> load("tokenizer.model").vocab_size
    32000
    """
    if pattern is None and special_tokens is None:
        return Tokenizer(source)
    given = "pattern" if pattern is not None else "special_tokens"
    if pattern is not None and not isinstance(pattern, str):
        raise TypeError(f"pattern must be a str, not {type(pattern).__name__}")
    if special_tokens is not None and not isinstance(special_tokens, Mapping):
        raise TypeError(
            f"special_tokens must be a dict from the text of each token to its id, not "
            f"{type(special_tokens).__name__}"
        )
    data = read_model_file(source)
    format = table.format_of(data)
    if format.name != "tiktoken":
        raise ValueError(
            f"{given} is for files of ranks (.tiktoken), and this one is not: a {format.name} file says by "
            f"itself what it needs"
            + ("; with_special_tokens() adds tokens" if given == "special_tokens" else "")
        )
    return Tokenizer.from_spec(imported(format.module).spec_of(data, pattern, special_tokens))
