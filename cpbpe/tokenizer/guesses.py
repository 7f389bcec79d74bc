"""The options and modules of other libraries, for messages that name what to use here. (Names: `guided`.)

They are those of sentencepiece, tokenizers, transformers and tiktoken. Imported when a message needs them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

_OPTIONS = {
    "out_type": "encode gives ids, encode_pieces gives pieces, encode_array an array of numpy",
    "return_type": "encode gives ids, encode_pieces gives pieces, encode_array an array of numpy",
    "return_tensors": (
        "encode_array gives an array of numpy, and encode_arrays(texts).padded() one of many texts; "
        "torch.from_numpy makes tensors of them"
    ),
    "return_attention_mask": "encode_arrays(texts).padded(attention_mask=True) gives one",
    "return_offsets_mapping": "align(text) gives the spans of tokens",
    "add_special_tokens": "add_bos=True and add_eos=True put the special tokens around a text",
    "bos": "it is called add_bos",
    "eos": "it is called add_eos",
    "padding": "encode_arrays(texts).padded() fills up",
    "pad_to_multiple_of": "encode_arrays(texts).padded(multiple_of=8) fills up",
    "truncation": "truncate(text, max_tokens) cuts",
    "max_length": "truncate(text, max_tokens) cuts, and encode_arrays(texts).padded(max_length=...) fills up",
    "enable_sampling": "alpha above 0 samples",
    "nbest_size": "BPE has one best segmentation; alpha above 0 samples others",
    "emit_unk_piece": "unknown text has the id unk_id, and is copied into the pieces",
    "num_threads": "calls with several texts have threads",
    "is_split_into_words": "encode_parts(parts) encodes a text in parts",
    "is_pretokenized": "encode_parts(parts) encodes a text in parts",
    "split_special_tokens": "special tokens in a text are ordinary text, unless allowed_special names them",
    "text_pair": "encode_parts(parts) encodes several texts with tokens between them",
    "clean_up_tokenization_spaces": "decoding changes no spaces; leave it out",
    "spaces_between_special_tokens": "decoding changes no spaces; leave it out",
    "errors": "decode writes U+FFFD for broken bytes, and decode_bytes keeps them",
}

_MODULE = {
    "sentencepieceprocessor": "cpbpe.compat.sentencepiece has it; cpbpe.load(path) is the way without it",
    "sentencepiecetrainer": "cpbpe.compat.sentencepiece has it; cpbpe.train(corpus) is the way without it",
    "autotokenizer": "cpbpe.load(path) loads a model; for transformers use cpbpe.compat.transformers",
    "getencoding": "cpbpe.load(path) loads a model",
    "encodingformodel": "cpbpe.load(path) loads a model",
    "frompretrained": "cpbpe.load(path) loads a model; nothing is downloaded",
    "fromfile": "cpbpe.load(path) loads a model",
    "open": "cpbpe.load(path) loads a model",
    "trainer": "cpbpe.train(corpus) trains",
    "bpetrainer": "cpbpe.train(corpus) trains",
    "referenceengine": "cpbpe.reference has it",
    "steps": "cpbpe.reference has it",
    "encode": "cpbpe.load(path).encode(text) encodes",
    "decode": "cpbpe.load(path).decode(ids) decodes",
    "tokenize": "cpbpe.load(path).encode_pieces(text) gives pieces",
}


_TRAINING = ("vocab_size", "corpus", "texts", "files")


def option_hint(name: str, there: Iterable[str]) -> str:
    """The same for an option.

    >>> option_hint("bos", ["add_bos"]), option_hint("skip_special", ["skip_special_tokens"])
    ('; it is called add_bos', '; is it skip_special_tokens?')
    """
    return f"; {_OPTIONS[name]}" if name in _OPTIONS else _close(name, there)


def loading_hint(name: str, value: object, call: str, bindable: Collection[str]) -> str:
    """The same of an option that loading does not have; `bindable` are those that `using` takes.

    >>> loading_hint("model_file", "my.model", "load", [])
    "give the path alone: load('my.model')"
    >>> loading_hint("add_bos", True, "load", ["add_bos"])
    'such options are bound afterwards: load(path).using(add_bos=True)'
    """
    if name in ("model_proto", "data"):
        return "for the bytes of a file use Tokenizer.from_bytes(data)"
    if name in bindable:
        return f"such options are bound afterwards: {call}(path).using({name}={value!r})"
    if name in _TRAINING:
        return "it loads a model that exists; cpbpe.train(corpus, vocab_size=...) makes one"
    shown = repr(value) if isinstance(value, str) else "path"
    return f"give the path alone: {call}({shown})"


def module_hint(name: str, there: Iterable[str]) -> str:
    """The same for a name in the module `cpbpe`."""
    return f"; {_MODULE[_plain(name)]}" if _plain(name) in _MODULE else _close(name, there)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _close(name: str, there: Iterable[str]) -> str:
    from difflib import get_close_matches  # takes longer to import than most modules of cpbpe

    close = get_close_matches(name, list(there), 1, 0.75)
    return f"; is it {close[0]}?" if close else ""
