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
    "pad": "encode_arrays(texts).padded() fills up",
    "pad_to_multiple_of": "encode_arrays(texts).padded(multiple_of=8) fills up",
    "truncation": "truncate(text, max_tokens) cuts",
    "max_length": "truncate(text, max_tokens) cuts, and encode_arrays(texts).padded(max_length=...) fills up",
    "max_tokens": "truncate(text, max_tokens) cuts, and split(text, max_tokens) keeps all parts",
    "chunk_size": "split(text, max_tokens) gives all parts of a text",
    "stride": "split(text, max_tokens, overlap=...) gives parts that share tokens",
    "dtype": "arrays of ids are uint32; .astype(dtype) makes others of them",
    "enable_sampling": "alpha above 0 samples",
    "dropout": "it is called alpha",
    "bpe_dropout": "it is called alpha",
    "nbest_size": "BPE has one best segmentation; alpha above 0 samples others",
    "emit_unk_piece": "unknown text has the id unk_id, and is copied into the pieces",
    **dict.fromkeys(
        ("threads", "num_threads", "n_threads", "n_jobs", "num_proc", "num_workers", "workers"),
        "calls with several texts have threads, and encode_array has, for a long one",
    ),
    "batch_size": "encode_batch takes any number of texts at once; leave it out",
    "add_dummy_prefix": "it is called prefix_space",
    "add_prefix_space": "it is called prefix_space",
    "parse_special": "allowed_special='all' finds special tokens in a text",
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
    "loadmodel": "cpbpe.load(path) loads a model",
    "encoder": "cpbpe.load(path) loads a model",
    "processor": "cpbpe.load(path) loads a model",
    "bpe": "cpbpe.load(path) loads a model, and cpbpe.train(corpus) trains one",
    "frombytes": "cpbpe.Tokenizer.from_bytes(data) loads a model",
    "sentencepiece": "cpbpe.compat.sentencepiece has it; import that",
    "transformers": "cpbpe.compat.transformers has it; import that",
    "trainer": "cpbpe.train(corpus) trains",
    "bpetrainer": "cpbpe.train(corpus) trains",
    "trainfromiterator": "cpbpe.train(texts) trains",
    "learn": "cpbpe.train(corpus) trains",
    "fit": "cpbpe.train(corpus) trains",
    "referenceengine": "cpbpe.reference has it",
    "steps": "cpbpe.reference has it",
    "encode": "cpbpe.load(path).encode(text) encodes",
    "decode": "cpbpe.load(path).decode(ids) decodes",
    "tokenize": "cpbpe.load(path).encode_pieces(text) gives pieces",
    "count": "cpbpe.load(path).count(text) counts tokens",
    "counttokens": "cpbpe.load(path).count(text) counts tokens",
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
