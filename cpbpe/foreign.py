"""Names that other libraries have and cpbpe does not, and what to use instead; for error messages.

The libraries are sentencepiece, tokenizers, transformers and tiktoken. There are tables for the methods of a
tokenizer and of streams, for the options of its methods, and for the names in the module; `advice` looks a
name up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import wraps
from typing import Any, NoReturn, TypeVar

from cpbpe.lazy import importing

F = TypeVar("F", bound=Callable[..., Any])


def by_name(table: Mapping[str, str]) -> dict[str, str]:
    """A table whose keys are several names each, separated by spaces, with a row for each name."""
    return {name: about for names, about in table.items() for name in names.split()}


METHODS = by_name(
    {
        "encode_as_ids encode_ordinary input_ids": "encode(text)",
        "encode_as_pieces tokens": "encode_pieces(text)",
        "encode_as_numpy encode_to_numpy": "encode_array(text)",
        "encode_as_proto encode_as_immutable_proto encode_as_serialized_proto encode_as_offset_mapping "
        "offsets decode_with_offsets encode_with_offsets": "align(text)",
        "encode_with_unstable": "completions(text)",
        "encode_ordinary_batch batch_encode": "encode_batch(texts)",
        "encode_single_token token_to_id convert_tokens_to_ids": "piece_to_id(piece)",
        "encode_plus": "encode(text), or align(text)",
        "encode_file": "encode(path.read_text(encoding='utf-8'))",
        "encode_files": "encode_batch(path.read_text(encoding='utf-8') for path in paths)",
        "encode_stream": "stream_encoder()",
        "batch_encode_plus": "encode_batch(texts), or encode_arrays(texts)",
        "sample_encode_as_ids": "encode(text, alpha=0.1)",
        "sample_encode_as_pieces": "encode_pieces(text, alpha=0.1)",
        "parallel_encode": "encode_array(text, threads=4)",
        "padded pad enable_padding": "encode_arrays(texts).padded()",
        "padding_side": "encode_arrays(texts).padded(side='left')",
        "enable_truncation": "truncate(text, max_tokens)",
        "chunk chunks": "split(text, max_tokens)",
        "count_tokens num_tokens n_tokens token_count": "count(text)",
        "decode_ids convert_ids_to_string": "decode(ids)",
        "detokenize": "decode(ids), or decode_pieces(pieces)",
        "decode_stream": "stream_decoder()",
        "stream": "stream_decoder(), or stream_encoder()",
        "batch_decode": "decode_batch(batch)",
        "decode_single_token_bytes decode_tokens_bytes id_to_bytes": "vocab.id_to_bytes(id)",
        "convert_tokens_to_string": "decode_pieces(pieces)",
        "token_byte_values token_bytes": "vocab.token_bytes(), or vocab.id_to_bytes(id) for one",
        "piece_size get_piece_size get_vocab_size n_vocab n_words size": "vocab_size",
        "vocabulary": "vocab",
        "pieces": "encode_pieces(text), or list(tok.vocab)",
        "merges": "vocab.score(id), which is higher for the pieces that are merged first",
        "id_to_token convert_ids_to_tokens": "id_to_piece(id)",
        "get_score score scores": "vocab.score(id)",
        "is_unknown is_control is_unused is_byte": "vocab.piece_type(id)",
        "is_special is_special_token": "id in tok.vocab.special_tokens.values()",
        "normalizer": "normalize(text), or spec.normalizer for its settings",
        "steps pre_tokenizer": "cpbpe.reference.steps(tok, text), which shows how a text is cut and merged",
        "backend_tokenizer post_processor": (
            "cpbpe.compat.tokenizers.Tokenizer(tok), which has the calls of that library"
        ),
        "unk_token_id": "unk_id",
        "bos_token_id": "bos_id",
        "eos_token_id eot_id eot_token": "eos_id",
        "pad_token_id": "pad_id",
        "bos_token": "id_to_piece(tok.bos_id)",
        "eos_token": "id_to_piece(tok.eos_id)",
        "pad_token": "id_to_piece(tok.pad_id)",
        "unk_token": "id_to_piece(tok.unk_id)",
        "special_tokens special_tokens_map all_special_tokens all_special_ids special_tokens_set": (
            "vocab.special_tokens"
        ),
        "add_special_tokens": "with_special_tokens(tokens), which gives a new tokenizer",
        "add_tokens": (
            "with_special_tokens(tokens), which gives a new tokenizer; they are special tokens, and "
            "allowed_special says which of them a text may yield"
        ),
        "get_added_vocab": "vocab.added_tokens",
        "from_pretrained": "cpbpe.load(path); nothing is downloaded",
        "from_file load load_from_file": "cpbpe.load(path)",
        "from_serialized_proto load_from_serialized_proto from_buffer": "from_bytes(data)",
        "serialized_model_proto to_str": "to_bytes()",
        "save_pretrained save_model save_vocabulary": "save(path)",
        "to_json": "save('tokenizer.json')",
        "train": "cpbpe.train(corpus)",
        "train_from_iterator": "cpbpe.train(texts)",
        "chat_template get_chat_template": "chat_templates['default']",
        "add_bos_token": "file_options, for what the file asks for; encode(text, add_bos=True) does it",
        "add_eos_token": "file_options, for what the file asks for; encode(text, add_eos=True) does it",
    }
)
"""What a Tokenizer has instead of a method or property. Each name also stands for its form in CamelCase."""

_OF_STREAMS = by_name(
    {
        "put add step feed append write send accept token decode encode": (
            "push(...), which takes what comes next and returns what is certain now"
        ),
        "finish end close done finalize": "flush()",
    }
)
DECODER_METHODS = {**_OF_STREAMS, "text": "the texts that push and flush return, joined"}
"""What a StreamDecoder has instead of a method or property."""
ENCODER_METHODS = {**_OF_STREAMS, "ids": "the lists that push and flush return, joined"}
"""What a StreamEncoder has instead of a method or property."""

_IN_CAMEL_CASE = ("encode", "decode", "normalize", "id_to_piece", "piece_to_id", "decode_pieces")
"""Names of a Tokenizer that sentencepiece has in CamelCase as well."""

OPTIONS = by_name(
    {
        "out_type return_type": (
            "encode gives ids, encode_pieces gives pieces, encode_array an array of numpy"
        ),
        "return_tensors": (
            "encode_array gives an array of numpy, and encode_arrays(texts).padded() one of many texts; "
            "torch.from_numpy makes tensors of them"
        ),
        "return_attention_mask": "encode_arrays(texts).padded(attention_mask=True) gives one",
        "return_offsets_mapping": "align(text) gives the spans of tokens",
        "add_special_tokens": "add_bos=True and add_eos=True put the special tokens around a text",
        "bos add_bos_token": "it is called add_bos",
        "eos add_eos_token": "it is called add_eos",
        "padding pad": "encode_arrays(texts).padded() fills up",
        "pad_to_multiple_of": "encode_arrays(texts).padded(multiple_of=8) fills up",
        "truncation": "truncate(text, max_tokens) cuts",
        "max_length": (
            "truncate(text, max_tokens) cuts, and encode_arrays(texts).padded(max_length=...) fills up"
        ),
        "max_tokens": "truncate(text, max_tokens) cuts, and split(text, max_tokens) keeps all parts",
        "chunk_size": "split(text, max_tokens) gives all parts of a text",
        "stride": "split(text, max_tokens, overlap=...) gives parts that share tokens",
        "dtype": "arrays of ids are uint32; .astype(dtype) makes others of them",
        "enable_sampling": "alpha above 0 samples",
        "dropout bpe_dropout": "it is called alpha",
        "nbest_size": "BPE has one best segmentation; alpha above 0 samples others",
        "emit_unk_piece": "unknown text has the id unk_id, and is copied into the pieces",
        "threads num_threads n_threads n_jobs num_proc num_workers workers": (
            "calls with several texts have threads, and encode_array has, for a long one"
        ),
        "batch_size": "encode_batch takes any number of texts at once; leave it out",
        "add_dummy_prefix add_prefix_space": "it is called prefix_space",
        "parse_special": "allowed_special='all' finds special tokens in a text",
        "is_split_into_words is_pretokenized": "encode_parts(parts) encodes a text in parts",
        "split_special_tokens": (
            "special tokens in a text are ordinary text, unless allowed_special names them"
        ),
        "text_pair": "encode_parts(parts) encodes several texts with tokens between them",
        "clean_up_tokenization_spaces spaces_between_special_tokens": (
            "decoding changes no spaces; leave it out"
        ),
        "stop stop_strings stop_sequences stop_words until": "stream_decoder(stop=...) ends at such a text",
        "errors": "decode writes U+FFFD for broken bytes, and decode_bytes keeps them",
    }
)
"""What to use instead of an option of encoding or decoding."""

MODULE = by_name(
    {
        "sentencepieceprocessor": "cpbpe.compat.sentencepiece has it; cpbpe.load(path) is the way without it",
        "sentencepiecetrainer": (
            "cpbpe.compat.sentencepiece has it; cpbpe.train(corpus) is the way without it"
        ),
        "autotokenizer": "cpbpe.load(path) loads a model; for transformers use cpbpe.compat.transformers",
        "getencoding encodingformodel fromfile open loadmodel encoder processor": (
            "cpbpe.load(path) loads a model"
        ),
        "frompretrained": "cpbpe.load(path) loads a model; nothing is downloaded",
        "bpe": "cpbpe.load(path) loads a model, and cpbpe.train(corpus) trains one",
        "frombytes": "cpbpe.Tokenizer.from_bytes(data) loads a model",
        "sentencepiece": "cpbpe.compat.sentencepiece has it; import that",
        "transformers": "cpbpe.compat.transformers has it; import that",
        "trainer bpetrainer learn fit": "cpbpe.train(corpus) trains",
        "trainfromiterator": "cpbpe.train(texts) trains",
        "referenceengine steps": "cpbpe.reference has it",
        "encode": "cpbpe.load(path).encode(text) encodes",
        "decode": "cpbpe.load(path).decode(ids) decodes",
        "tokenize": "cpbpe.load(path).encode_pieces(text) gives pieces",
        "count counttokens": "cpbpe.load(path).count(text) counts tokens",
        "show view": (
            "cpbpe.load(path).show(text) draws the tokens of a text; the command 'cpbpe view' opens a page "
            "in the browser, which cpbpe.view.static_page makes in Python"
        ),
    }
)
"""What to use instead of a name in the module `cpbpe`; the keys have no capitals and no underscores."""


def advice(name: str, foreign: Mapping[str, str], there: Iterable[str]) -> str:
    """The end of a message about a name that does not exist; "" if there is nothing to suggest.

    `foreign` is one of the tables; `there` are the names that do exist.

    >>> advice("bos", OPTIONS, ["add_bos"]), advice("skip_special", OPTIONS, ["skip_special_tokens"])
    ('; it is called add_bos', '; is it skip_special_tokens?')
    """
    for known in (name, name.replace("_", "").lower()):
        if known in foreign:
            return f"; {foreign[known]}"
    close = closest(name, there)
    return "" if close is None else f"; is it {close}?"


def closest(name: str, there: Iterable[str], likeness: float = 0.75) -> str | None:
    """The name that is most similar to a mistyped one; None if none is similar enough."""
    with importing:
        from difflib import get_close_matches  # takes longer to import than most modules of cpbpe
    return next(iter(get_close_matches(name, list(there), 1, likeness)), None)


# --- Methods of a Tokenizer and of streams --------------------------------------------------------


class Elsewhere:
    """A name that other libraries' tokenizers or streams have. Looking it up says what to use here.

    (A `__getattr__` could answer for every name. But it makes all attributes of an object slower to look up:
    a short call took up to 1.7 times as long.)
    """

    __slots__ = ("_name", "_use")

    def __init__(self, name: str, use: str):
        self._name = name
        self._use = use

    def __repr__(self) -> str:
        return f"<not here: use {self._use}>"

    def __get__(self, instance: object | None, owner: type) -> NoReturn:
        kind = "object" if instance is not None else "class"
        message = f"{owner.__name__!r} {kind} has no attribute {self._name!r}; use {self._use}"
        raise AttributeError(message, name=self._name, obj=owner if instance is None else instance)

    def __set__(self, instance: object, value: object) -> NoReturn:
        if not hasattr(instance, "with_special_tokens"):  # a stream
            self.__get__(instance, type(instance))
        raise AttributeError(
            f"a Tokenizer does not change, so {self._name!r} cannot be set; with_special_tokens(tokens) and "
            f"using(...) give new ones"
        )


def native_dir(thing: object) -> list[str]:
    """The names that an object has, for completion: without those of other libraries."""
    foreign = {
        name for kind in type(thing).__mro__ for name, at in vars(kind).items() if isinstance(at, Elsewhere)
    }
    return [name for name in object.__dir__(thing) if name not in foreign]


def elsewhere(of_streams: Mapping[str, str] | None = None) -> dict[str, Elsewhere]:
    """A descriptor for each foreign name of a Tokenizer and for its form in CamelCase, or of a stream."""
    if of_streams is not None:
        return {name: Elsewhere(name, use) for name, use in of_streams.items()}
    camel = {name.title().replace("_", ""): use for name, use in METHODS.items()}
    camel |= {name.title().replace("_", ""): name for name in _IN_CAMEL_CASE}
    return {name: Elsewhere(name, use) for name, use in {**METHODS, **camel}.items()}


# --- Options of loading ---------------------------------------------------------------------------


def takes_a_source(call: str, bindable: Collection[str], own: Collection[str] = ()) -> Callable[[F], F]:
    """A decorator for a call that loads a model, by `source` and options of its `own`.

    `bindable` are the options of `using`.
    """

    def guide(function: F) -> F:
        @wraps(function)
        def guided(*given: Any, **options: Any) -> Any:
            for name, value in options.items():
                if name != "source" and name not in own:
                    hint = loading_advice(name, value, call, bindable)
                    raise TypeError(f"{call}() has no option {name!r}; {hint}")
            return function(*given, **options)

        return guided  # type: ignore[return-value]

    return guide


def loading_advice(name: str, value: object, call: str, bindable: Collection[str]) -> str:
    """The end of a message about an option that loading does not have.

    >>> loading_advice("model_file", "my.model", "load", [])
    "give the path alone: load('my.model')"
    >>> loading_advice("add_bos", True, "load", ["add_bos"])
    'such options are bound afterwards: load(path).using(add_bos=True)'
    """
    if name in ("model_proto", "data"):
        return "for the bytes of a file use Tokenizer.from_bytes(data)"
    called = OPTIONS.get(name, name).removeprefix("it is called ")
    if called in bindable:
        return f"such options are bound afterwards: {call}(path).using({called}={value!r})"
    if name in ("vocab_size", "corpus", "texts", "files"):
        return "it loads a model that exists; cpbpe.train(corpus, vocab_size=...) makes one"
    shown = repr(value) if isinstance(value, str) else "path"
    return f"give the path alone: {call}({shown})"
