"""A base class that refuses what other tokenizers have and this one lacks, and names what to use here.

The other tokenizers are those of sentencepiece, tokenizers, transformers and tiktoken.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from cpbpe.lazy import imported

F = TypeVar("F", bound=Callable[..., Any])


ATTRIBUTES = {
    # Encoding.
    "encode_as_ids": "encode(text)",
    "encode_as_pieces": "encode_pieces(text)",
    "encode_as_numpy": "encode_array(text)",
    "encode_as_proto": "align(text)",
    "encode_as_immutable_proto": "align(text)",
    "encode_as_serialized_proto": "align(text)",
    "encode_as_offset_mapping": "align(text)",
    "encode_ordinary": "encode(text)",
    "encode_ordinary_batch": "encode_batch(texts)",
    "encode_to_numpy": "encode_array(text)",
    "encode_single_token": "piece_to_id(piece)",
    "encode_plus": "encode(text), or align(text)",
    "encode_file": "encode(path.read_text(encoding='utf-8'))",
    "encode_files": "encode_batch(path.read_text(encoding='utf-8') for path in paths)",
    "encode_stream": "stream_encoder()",
    "batch_encode": "encode_batch(texts)",
    "batch_encode_plus": "encode_batch(texts), or encode_arrays(texts)",
    "sample_encode_as_ids": "encode(text, alpha=0.1)",
    "sample_encode_as_pieces": "encode_pieces(text, alpha=0.1)",
    "parallel_encode": "encode_array(text, threads=4)",
    "padded": "encode_arrays(texts).padded()",
    "pad": "encode_arrays(texts).padded()",
    "enable_padding": "encode_arrays(texts).padded()",
    "padding_side": "encode_arrays(texts).padded(side='left')",
    "enable_truncation": "truncate(text, max_tokens)",
    "chunk": "split(text, max_tokens)",
    "chunks": "split(text, max_tokens)",
    "count_tokens": "count(text)",
    "num_tokens": "count(text)",
    "n_tokens": "count(text)",
    "token_count": "count(text)",
    "tokens": "encode_pieces(text)",
    "offsets": "align(text)",
    # Decoding.
    "decode_ids": "decode(ids)",
    "detokenize": "decode(ids), or decode_pieces(pieces)",
    "decode_stream": "stream_decoder()",
    "decode_with_offsets": "align(text)",
    "stream": "stream_decoder(), or stream_encoder()",
    "batch_decode": "decode_batch(batch)",
    "decode_single_token_bytes": "vocab.id_to_bytes(id)",
    "decode_tokens_bytes": "vocab.id_to_bytes(id)",
    "convert_ids_to_string": "decode(ids)",
    "convert_tokens_to_string": "decode_pieces(pieces)",
    "token_byte_values": "vocab.token_bytes()",
    # The vocabulary.
    "piece_size": "vocab_size",
    "get_piece_size": "vocab_size",
    "get_vocab_size": "vocab_size",
    "n_vocab": "vocab_size",
    "n_words": "vocab_size",
    "size": "vocab_size",
    "vocabulary": "vocab",
    "pieces": "encode_pieces(text), or list(tok.vocab)",
    "merges": "vocab.score(id), which is higher for the pieces that are merged first",
    "id_to_bytes": "vocab.id_to_bytes(id)",
    "id_to_token": "id_to_piece(id)",
    "convert_ids_to_tokens": "id_to_piece(id)",
    "token_to_id": "piece_to_id(piece)",
    "convert_tokens_to_ids": "piece_to_id(piece)",
    "get_score": "vocab.score(id)",
    "score": "vocab.score(id)",
    "scores": "vocab.score(id)",
    "is_unknown": "vocab.piece_type(id)",
    "is_control": "vocab.piece_type(id)",
    "is_unused": "vocab.piece_type(id)",
    "is_byte": "vocab.piece_type(id)",
    # Special tokens.
    "unk_token_id": "unk_id",
    "bos_token_id": "bos_id",
    "eos_token_id": "eos_id",
    "pad_token_id": "pad_id",
    "eot_id": "eos_id",
    "eot_token": "eos_id",
    "bos_token": "id_to_piece(tok.bos_id)",
    "eos_token": "id_to_piece(tok.eos_id)",
    "pad_token": "id_to_piece(tok.pad_id)",
    "unk_token": "id_to_piece(tok.unk_id)",
    "special_tokens": "vocab.special_tokens",
    "special_tokens_map": "vocab.special_tokens",
    "all_special_tokens": "vocab.special_tokens",
    "all_special_ids": "vocab.special_tokens",
    "special_tokens_set": "vocab.special_tokens",
    "add_tokens": "with_special_tokens(tokens), which gives a new tokenizer",
    "add_special_tokens": "with_special_tokens(tokens), which gives a new tokenizer",
    "get_added_vocab": "vocab.added_tokens",
    # Files.
    "from_pretrained": "cpbpe.load(path); nothing is downloaded",
    "from_file": "cpbpe.load(path)",
    "load": "cpbpe.load(path)",
    "load_from_file": "cpbpe.load(path)",
    "from_serialized_proto": "from_bytes(data)",
    "load_from_serialized_proto": "from_bytes(data)",
    "from_buffer": "from_bytes(data)",
    "serialized_model_proto": "to_bytes()",
    "save_pretrained": "save(path)",
    "save_model": "save(path)",
    "save_vocabulary": "save(path)",
    "to_str": "to_bytes()",
    "to_json": "save('tokenizer.json')",
    "train": "cpbpe.train(corpus)",
    "train_from_iterator": "cpbpe.train(texts)",
    "apply_chat_template": "encode_parts(parts) for tokens around texts; cpbpe.compat.transformers has it",
    "input_ids": "encode(text)",
    "chat_template": "chat_templates['default']",
    "get_chat_template": "chat_templates['default']",
    "add_bos_token": "file_options, for what the file asks for; encode(text, add_bos=True) does it",
    "add_eos_token": "file_options, for what the file asks for; encode(text, add_eos=True) does it",
}
"""What to use instead of names that a Tokenizer lacks. Each is also meant in CamelCase."""

IN_CAMEL_CASE = ("encode", "decode", "normalize", "id_to_piece", "piece_to_id", "decode_pieces")
"""Names of a Tokenizer that sentencepiece has in CamelCase as well."""


class Elsewhere:
    """A name that other libraries' tokenizers have. Looking it up says what to use here.

    (A `__getattr__` could answer every name. But Python takes a slower way to all attributes of an object
    that has one, and a short call took up to 1.7 times as long.)
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
        raise AttributeError(
            f"a Tokenizer does not change, so {self._name!r} cannot be set; with_special_tokens(tokens) and "
            f"using(...) give new ones"
        )


def _elsewhere() -> dict[str, Elsewhere]:
    """What answers to each name, and to its form in CamelCase."""
    uses = dict(ATTRIBUTES)
    for name, use in [*ATTRIBUTES.items(), *((name, name) for name in IN_CAMEL_CASE)]:
        uses[name.title().replace("_", "")] = use
    return {name: Elsewhere(name, use) for name, use in uses.items()}


class Guided:
    """Calls, indices and names that a Tokenizer lacks but other libraries' tokenizers have."""

    __slots__ = ()

    if not TYPE_CHECKING:
        # All at once, before the class is made: adding them to it one by one took four times as long.
        vars().update(_elsewhere())

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        """Refuse: transformers' users expect something else here than everybody else."""
        raise TypeError(
            "a Tokenizer is not called; tok.encode(text) gives ids, tok.encode_batch(texts) those of many; "
            "the dict of input_ids that transformers' tokenizers give comes from cpbpe.compat.transformers"
        )

    if not TYPE_CHECKING:  # type checkers should go on reporting what is missing
        __iter__ = None  # with __getitem__ alone, Python would try 0, 1, 2 ...

        def __getitem__(self, key: object) -> NoReturn:
            """Refuse: the vocabulary is an object of its own."""
            shown = repr(key) if isinstance(key, (str, bytes, int)) else "..."
            raise TypeError(
                f"a Tokenizer has no items; tok.vocab[{shown}] gives the id of a piece, or the piece of an id"
            )

        def __contains__(self, key: object) -> NoReturn:
            """Refuse, for the same reason."""
            raise TypeError("a Tokenizer has no items; write `in tok.vocab` to look for a piece")

        def __dir__(self) -> Iterable[str]:
            """The names that there are, for completion."""
            return [
                name for name in object.__dir__(self) if not isinstance(vars(Guided).get(name), Elsewhere)
            ]


def takes_a_source(call: str, bindable: Collection[str], own: Collection[str] = ()) -> Callable[[F], F]:
    """A decorator for a call that loads a model, by `source` and options of its `own`.

    `bindable` are the options of `using`.
    """

    def guide(function: F) -> F:
        @wraps(function)
        def guided(*given: Any, **options: Any) -> Any:
            for name in options:
                if name != "source" and name not in own:
                    hint = imported("cpbpe.tokenizer.guesses").loading_hint(
                        name, options[name], call, bindable
                    )
                    raise TypeError(f"{call}() has no option {name!r}; {hint}")
            return function(*given, **options)

        return guided  # type: ignore[return-value]

    return guide
