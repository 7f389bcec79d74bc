"""`Tokenizer`, with the calls of `tokenizers.Tokenizer`. Other files do the work."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, NoReturn, ParamSpec, TypeVar

from cpbpe.compat.tokenizers import arguments
from cpbpe.compat.tokenizers.added import FLAGS, AddedToken, AddedTokens
from cpbpe.compat.tokenizers.decoders import Decoder
from cpbpe.compat.tokenizers.encoding import (
    Encoding,
    Padding,
    Run,
    Source,
    Truncation,
    read,
    run,
)
from cpbpe.compat.tokenizers.files import ModelFile, read_folder
from cpbpe.compat.tokenizers.processors import PostProcessor, template_of, without_template
from cpbpe.compat.tokenizers.texts import Chunks, Normalizer, Texts, Words
from cpbpe.lazy import importing
from cpbpe.model.files import read_model_file
from cpbpe.model.spec import PieceType
from cpbpe.tokenizer.tokenizer import Tokenizer as Model

P = ParamSpec("P")
T = TypeVar("T")


class Fixed:
    """A property that can be neither read nor set; the error says what to do instead."""

    def __init__(self, instead: str):
        self._instead = instead
        self.__doc__ = f"Not here: {instead}."

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object | None, owner: type) -> Fixed:
        if instance is not None:
            self._refuse()
        return self

    def __set__(self, instance: object, value: Any) -> None:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise AttributeError(
            f"{self._name} is fixed by the model here, and is no object of tokenizers; {self._instead}"
        )


def _in_background(method: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """A method that calls another one in another thread."""

    @wraps(method)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(method, *args, **kwargs)

    call.__name__ = f"async_{method.__name__}"
    call.__qualname__ = f"Tokenizer.{call.__name__}"
    call.__doc__ = f"`{method.__name__}` in another thread."
    return call


class Tokenizer:
    """A tokenizer with the calls of `tokenizers.Tokenizer`, that runs on a `cpbpe.Tokenizer`.

    >>> import cpbpe
    >>> from cpbpe.compat.tokenizers import Tokenizer
    >>> tokenizer = Tokenizer(cpbpe.load("tokenizer.model").using(add_bos=True))
    >>> encoding = tokenizer.encode("Hello world")
    >>> encoding.ids, encoding.tokens
    ([1, 22557, 1526], ['<s>', '▁Hello', '▁world'])
    >>> tokenizer.decode(encoding.ids)
    'Hello world'
    """

    def __init__(self, model: Model):
        """`model` is a `cpbpe.Tokenizer`; `from_file` and similar methods read files."""
        if not isinstance(model, Model):
            raise TypeError(
                f"Tokenizer() takes a cpbpe.Tokenizer, not {type(model).__name__}; to read a file, use "
                f"Tokenizer.from_file(path)"
            )
        self._set(ModelFile.of(model))

    def _set(self, file: ModelFile) -> None:
        model = file.model
        spec = file.spec
        engine = model.facts.engine
        self._file = file
        has_user_defined = PieceType.USER_DEFINED in spec.pieces.types
        # In byte-level models, the pre-tokenizer adds the prefix space, not the normalizer.
        is_byte_level = spec.alphabet == "bytes"
        rules = replace(spec.normalizer, add_dummy_prefix=False) if is_byte_level else spec.normalizer
        normalizer = None if rules.charsmap else Normalizer(rules, has_user_defined)
        chunks = Chunks(spec.splitter) if is_byte_level else None
        self._added = AddedTokens(file.vocab, file.normalizer(engine))
        self._added.add(file.added_tokens())
        self._set_post_processor(file.part("post_processor"))
        later = spec.carried.options.get("prefix_after_special", True)
        self._texts = Texts(
            engine, self._added, normalizer, later, lambda: Words(file.part("pre_tokenizer"), engine), chunks
        )
        self._decoder = Decoder(engine, self._added, lambda: file.part("decoder"), file.has_usual_decoder)
        self._padding = read(Padding, file.part("padding"))
        self._truncation = read(Truncation, file.part("truncation"))

    # --- Files ------------------------------------------------------------------------------------

    @classmethod
    def _of(cls, file: ModelFile) -> Tokenizer:
        self = object.__new__(cls)
        self._set(file)
        return self

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Tokenizer:
        """Read a tokenizer.json, or any other file that `cpbpe.load` reads."""
        return cls._of(ModelFile.read(read_model_file(path)))

    @classmethod
    def from_str(cls, json: str) -> Tokenizer:
        """Read a tokenizer.json that is a str."""
        return cls._of(ModelFile.read(arguments.text(json, "json").encode()))

    @classmethod
    def from_buffer(cls, buffer: bytes) -> Tokenizer:
        """Read the bytes of a file."""
        if not isinstance(buffer, bytes):
            raise TypeError(f"buffer must be bytes, not {type(buffer).__name__}")
        return cls._of(ModelFile.read(buffer))

    @classmethod
    def from_pretrained(
        cls, identifier: str | os.PathLike[str], revision: str = "main", token: str | None = None
    ) -> Tokenizer:
        """Read the tokenizer.json in a folder on this machine. Nothing is downloaded."""
        if revision != "main" or token is not None:
            raise ValueError(
                "revision and token are for downloads, and cpbpe downloads nothing; leave them out"
            )
        return cls._of(read_folder(identifier))

    def to_str(self, pretty: bool = False) -> str:
        """The tokenizer.json, including everything that was added or set later."""
        content = self._file.content()
        added = self._added.by_id
        content["added_tokens"] = [{"id": id, **added[id].__getstate__()} for id in sorted(added)]
        content["truncation"] = self._truncation and self._truncation.in_file()
        content["padding"] = self._padding and self._padding.in_file()
        content["post_processor"] = self._post_processor
        if arguments.flag(pretty, "pretty"):
            return json.dumps(content, ensure_ascii=False, indent=2)
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"))

    def save(self, path: str | os.PathLike[str], pretty: bool = True) -> None:
        """Write the tokenizer.json. An existing file is replaced at once, never half written."""
        with importing:
            from cpbpe.model.writing import saving_path, write_all
        name = saving_path(path, "save", "to write to an open file, use file.write(tokenizer.to_str())")
        write_all({name: self.to_str(pretty).encode()})

    # --- Encoding ---------------------------------------------------------------------------------

    def encode(
        self, sequence: Any, pair: Any = None, is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> Encoding:
        """Encode a text, or a pair of texts; with `is_pretokenized`, lists of words.

        >>> import cpbpe
        >>> from cpbpe.compat.tokenizers import Tokenizer
        >>> tokenizer = Tokenizer(cpbpe.load("tokenizer.model"))
        >>> tokenizer.encode("Hi", "Hello there").type_ids
        [0, 1, 1]
        """
        if type(sequence) is str and pair is None and is_pretokenized is False:
            return self._encode_text(sequence, add_special_tokens)
        given = arguments.read_input(sequence, pair, arguments.flag(is_pretokenized, "is_pretokenized"))
        return self._encode([given], is_pretokenized, add_special_tokens, is_fast=False)[0]

    def encode_batch(
        self, input: Sequence[Any], is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> list[Encoding]:
        """Encode many texts or pairs of texts, by several threads.

        >>> import cpbpe
        >>> from cpbpe.compat.tokenizers import Tokenizer
        >>> tokenizer = Tokenizer(cpbpe.load("tokenizer.model"))
        >>> [encoding.ids for encoding in tokenizer.encode_batch(["Hi", ("Hi", "Hello")])]
        [[15359], [15359, 22557]]
        """
        given = arguments.read_batch(input, arguments.flag(is_pretokenized, "is_pretokenized"))
        return self._encode(given, is_pretokenized, add_special_tokens, is_fast=False)

    def encode_batch_fast(
        self, input: Sequence[Any], is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> list[Encoding]:
        """The same without tokens, offsets and words. (No faster: these are made only when needed.)"""
        given = arguments.read_batch(input, arguments.flag(is_pretokenized, "is_pretokenized"))
        return self._encode(given, is_pretokenized, add_special_tokens, is_fast=True)

    def _encode(
        self, given: list[arguments.Inputs], are_words: bool, add_special_tokens: bool, is_fast: bool
    ) -> list[Encoding]:
        arguments.flag(add_special_tokens, "add_special_tokens")
        texts = [text for inputs in given for words in inputs for text in words]
        sources = iter(self._texts.sources(texts, is_fast))
        finished = []
        template = self._template if self._truncation is None else None
        for inputs in given:
            if template is not None and len(inputs) == 1 and not are_words:
                finished.append(template.around(next(sources), add_special_tokens))
                continue
            encodings = []
            for place, words in enumerate(inputs):
                type_id = 0 if is_fast else place  # (a template may still set it)
                own = [next(sources) for _ in words]
                if are_words:
                    own = [_numbered(source, number, is_fast) for number, source in enumerate(own)]
                encodings.append(Encoding([run(source, type_id=type_id) for source in own if source.ids]))
            finished.append(self._finished(encodings, add_special_tokens))
        if self._padding is not None:
            self._padding.apply(finished)
        return finished

    def _encode_text(self, text: str, add_special_tokens: bool) -> Encoding:
        """The same for a single text, with a fifth of the overhead."""
        if add_special_tokens is not True:
            arguments.flag(add_special_tokens, "add_special_tokens")
        source = self._texts.source(text if text.isascii() else arguments.text(text, "sequence"))
        if self._truncation is None and self._template is not None:
            finished = self._template.around(source, add_special_tokens)
        else:
            runs = [Run(source, 0, len(source.ids))] if source.ids else []
            finished = self._finished([Encoding(runs)], add_special_tokens)
        if self._padding is not None:
            self._padding.apply([finished])
        return finished

    def _finished(self, encodings: list[Encoding], add_special_tokens: bool) -> Encoding:
        """Truncate one or two encodings, and join them with the tokens around them."""
        if self._truncation is not None:
            added = self.num_special_tokens_to_add(len(encodings) > 1) if add_special_tokens else 0
            self._truncation.apply(encodings, added)
        if self._template is None:
            return without_template(encodings)
        return self._template.apply(encodings, add_special_tokens)

    def post_process(
        self, encoding: Encoding, pair: Encoding | None = None, add_special_tokens: bool = True
    ) -> Encoding:
        """Truncate encodings, put tokens around them, and pad: the last steps of encoding."""
        encodings = [encoding] if pair is None else [encoding, pair]
        for given in encodings:
            if not isinstance(given, Encoding):
                raise TypeError(f"post_process() takes Encoding, not {type(given).__name__}")
        encodings = [given.copy() for given in encodings]
        finished = self._finished(encodings, arguments.flag(add_special_tokens, "add_special_tokens"))
        if self._padding is not None:
            self._padding.apply([finished])
        return finished

    def num_special_tokens_to_add(self, is_pair: bool) -> int:
        """How many tokens are put around a text, or a pair of texts."""
        is_pair = arguments.flag(is_pair, "is_pair")
        return 0 if self._template is None else self._template.count(is_pair)

    @property
    def post_processor(self) -> Any:
        """What goes around texts: a value of the module `processors`, or None."""
        content = self._post_processor
        return None if content is None else PostProcessor.of(content)

    @post_processor.setter
    def post_processor(self, value: Any) -> None:
        if value is not None and not isinstance(value, PostProcessor):
            raise TypeError(
                f"post_processor must be one of cpbpe.compat.tokenizers.processors, or None, not "
                f"{type(value).__name__}"
            )
        self._set_post_processor(None if value is None else value.content)

    def _set_post_processor(self, content: Any) -> None:
        self._template = template_of(content)
        self._post_processor = content

    @property
    def encode_special_tokens(self) -> bool:
        """Whether special tokens that a text spells out are plain text. By default they become their ids."""
        return self._texts.skips_special

    @encode_special_tokens.setter
    def encode_special_tokens(self, value: bool) -> None:
        self._texts.skips_special = arguments.flag(value, "encode_special_tokens")

    # --- Decoding ---------------------------------------------------------------------------------

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """The text of ids. Ids that are not in use have no text."""
        skip = arguments.flag(skip_special_tokens, "skip_special_tokens")
        return self._decoder.decode_batch([arguments.ids(ids, "ids")], skip)[0]

    def decode_batch(self, sequences: Sequence[Sequence[int]], skip_special_tokens: bool = True) -> list[str]:
        """The texts of many sequences of ids, by several threads."""
        skip = arguments.flag(skip_special_tokens, "skip_special_tokens")
        given = arguments.sequence(sequences, "sequences", "lists of ids")
        checked = [arguments.ids(ids, f"sequences[{place}]") for place, ids in enumerate(given)]
        return self._decoder.decode_batch(checked, skip)

    # --- In the background ------------------------------------------------------------------------

    async_encode = _in_background(encode)
    async_encode_batch = _in_background(encode_batch)
    async_encode_batch_fast = _in_background(encode_batch_fast)
    async_decode_batch = _in_background(decode_batch)

    # --- Padding and truncation -------------------------------------------------------------------

    def enable_padding(
        self,
        *,
        direction: str = "right",
        pad_id: int = 0,
        pad_type_id: int = 0,
        pad_token: str = "[PAD]",
        length: int | None = None,
        pad_to_multiple_of: int | None = None,
    ) -> None:
        """Pad encodings from now on: to a length, or to that of the longest of a batch."""
        self._padding = Padding(length, pad_to_multiple_of, pad_id, pad_token, pad_type_id, direction)

    def no_padding(self) -> None:
        """Stop padding encodings."""
        self._padding = None

    @property
    def padding(self) -> dict[str, Any] | None:
        """What `enable_padding` has set, or None."""
        return None if self._padding is None else dict(vars(self._padding))

    def enable_truncation(
        self, max_length: int, *, stride: int = 0, strategy: str = "longest_first", direction: str = "right"
    ) -> None:
        """Truncate encodings from now on; `Encoding.overflowing` has the rest."""
        wanted = Truncation(max_length, stride, strategy, direction)
        wanted.check(self.num_special_tokens_to_add(False))
        self._truncation = wanted

    def no_truncation(self) -> None:
        """Stop truncating encodings."""
        self._truncation = None

    @property
    def truncation(self) -> dict[str, Any] | None:
        """What `enable_truncation` has set, or None."""
        return None if self._truncation is None else dict(vars(self._truncation))

    # --- The vocabulary ---------------------------------------------------------------------------

    def token_to_id(self, token: str) -> int | None:
        """The id of a token, or None."""
        return self._added.id_of(arguments.text(token, "token"))

    def id_to_token(self, id: int) -> str | None:
        """The token of an id, or None."""
        return self._added.name(arguments.unsigned(id, "id", arguments.ID_MOST))

    def get_vocab(self, with_added_tokens: bool = True) -> dict[str, int]:
        """The ids of all tokens."""
        added = self._added.ids if arguments.flag(with_added_tokens, "with_added_tokens") else {}
        return {**self._added.vocab, **added}

    def get_vocab_size(self, with_added_tokens: bool = True) -> int:
        """How many tokens there are."""
        added = self._added
        new = arguments.flag(with_added_tokens, "with_added_tokens") and added.ids.keys() - added.vocab.keys()
        return added.size + len(new or ())

    def get_added_tokens_decoder(self) -> dict[int, AddedToken]:
        """The added tokens by their ids."""
        return {id: self._added.by_id[id].fixed() for id in sorted(self._added.by_id)}

    def add_tokens(self, tokens: Sequence[Any]) -> int:
        """Add tokens to search for in texts. Returns how many are new, or have other flags than before.

        >>> import cpbpe
        >>> from cpbpe.compat.tokenizers import Tokenizer
        >>> tokenizer = Tokenizer(cpbpe.load("tokenizer.model"))
        >>> tokenizer.add_special_tokens(["<sep>"]), tokenizer.encode("Hi<sep>").tokens
        (1, ['▁Hi', '<sep>'])
        """
        return self._added.add(_tokens(tokens, is_special=False))

    def add_special_tokens(self, tokens: Sequence[Any]) -> int:
        """The same for special tokens, which `decode` leaves out."""
        return self._added.add(_tokens(tokens, is_special=True))

    # --- What is different here -------------------------------------------------------------------

    model = Fixed("tokenizer.cpbpe is the cpbpe.Tokenizer that encodes")
    normalizer = Fixed("tokenizer.cpbpe.normalize(text) applies it")
    pre_tokenizer = Fixed("encode(words, is_pretokenized=True) takes texts that are cut into words")
    decoder = Fixed("decoders.DecodeStream decodes ids that arrive one by one")

    @property
    def cpbpe(self) -> Model:
        """The `cpbpe.Tokenizer` that encodes. It does not have the tokens that were added here."""
        return self._file.model

    def train(self, files: Any = None, trainer: Any = None) -> NoReturn:
        """Not possible here."""
        raise NotImplementedError(_TRAINING)

    def train_from_iterator(self, iterator: Any = None, trainer: Any = None, length: Any = None) -> NoReturn:
        """Not possible here."""
        raise NotImplementedError(_TRAINING)

    # --- Being an object --------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return {
            "file": self._file,
            "added": list(self._added.by_id.items()),
            "specials": sorted(self._added.specials),
            "normalized_names": self._added.normalized_names,
            "post_processor": self._post_processor,
            "padding": self._padding,
            "truncation": self._truncation,
            "encode_special_tokens": self.encode_special_tokens,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._set(state["file"])
        added = self._added
        added.add(token for _, token in state["added"])
        added.specials = set(state["specials"])
        added.normalized_names = dict(state["normalized_names"])
        self._set_post_processor(state["post_processor"])
        self._padding, self._truncation = state["padding"], state["truncation"]
        self.encode_special_tokens = state["encode_special_tokens"]

    def __repr__(self) -> str:
        return f"Tokenizer({self._file.model!r}, added_tokens={len(self._added.by_id)})"


_TRAINING = (
    "this class does not train; use cpbpe.train(texts, vocab_size=...), and Tokenizer(result.tokenizer)"
)


def _numbered(source: Source, number: int, is_fast: bool) -> Source:
    """The tokens of one word of a text that is pretokenized."""
    if is_fast:
        return source

    def details() -> Any:
        tokens, offsets, words = source.details
        return tokens, offsets, [number] * len(words)

    return Source(source.ids, details)


def _tokens(tokens: Any, is_special: bool) -> list[AddedToken]:
    """The tokens that a call adds, as our own `AddedToken`."""
    if not isinstance(tokens, list):
        hint = "; put it into a list" if isinstance(tokens, (str, AddedToken)) else ""
        raise TypeError(f"tokens must be a list of str or AddedToken, not {type(tokens).__name__}{hint}")
    found = []
    for token in tokens:
        if isinstance(token, str):
            found.append(AddedToken(token, special=is_special).fixed())
            continue
        if not all(
            hasattr(token, name) for name in ("content", *FLAGS)
        ):  # AddedTokens of the package tokenizers are accepted, too
            raise TypeError(f"tokens must be a list of str or AddedToken, and holds {type(token).__name__}")
        if is_special:
            token.special = True
        found.append(AddedToken(token.content, **{name: getattr(token, name) for name in FLAGS}))
    return found
