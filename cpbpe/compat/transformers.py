"""A tokenizer for programs that use transformers: `CpbpeTokenizer`.

It is a `transformers.PreTrainedTokenizer`, written in Python. It inherits what transformers does with ids
(padding, truncation, tensors, chat templates, saving); `cpbpe.Tokenizer` does the work on text. It supports
transformers 4.57 and newer. `docs/transformers.md` compares it with transformers' own tokenizers.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from cpbpe.errors import missing

try:
    import transformers
    from transformers import AddedToken, BatchEncoding, PreTrainedTokenizer
except ImportError as error:
    raise missing(
        "cpbpe.compat.transformers needs the package transformers, 4.57 or newer", "transformers"
    ) from error

from cpbpe.checks import check_ids, threads_for
from cpbpe.compat.tokenizers.decoders import Step, steps_of_decoder
from cpbpe.compat.tokenizers.encoding import Encoding, Source, Truncation, run
from cpbpe.compat.tokenizers.processors import Layout, layouts_of
from cpbpe.engine.protocol import Engine
from cpbpe.errors import ModelError
from cpbpe.lazy import kept
from cpbpe.model.formats.folder_reading import is_legacy_lost, read_config
from cpbpe.model.formats.tokenizer_json.merging import Names
from cpbpe.model.formats.tokenizer_json.reading import decoder_note
from cpbpe.model.formats.tokenizer_json.steps import by_metaspace, steps_of
from cpbpe.model.spec import PLAIN, PieceType
from cpbpe.model.writing import write_all
from cpbpe.text.utf8 import text_of, to_letters
from cpbpe.tokenizer.special_text import SpecialDecoder, SpecialEncoder
from cpbpe.tokenizer.special_tokens import SpecialFinder, renamed
from cpbpe.tokenizer.tokenizer import Tokenizer

__all__ = ["CpbpeTokenizer"]

_BATCHES_APART = hasattr(PreTrainedTokenizer, "_batch_encode_plus")
"""Whether batches and single texts have separate methods, as in transformers before version 5."""

_ENDS_OPTIONS = ("add_bos_token", "add_eos_token")
"""The options that decide which tokens go around a text."""

_OF_CLASSES = ("padding_side", "truncation_side", "model_input_names")
"""What a class of transformers says about rows of ids, if a folder does not."""

_OF_ADDED_TOKENS = ("_layouts", "_finders", "_shown", "_renamed")
"""What is made of the added tokens when it is first needed, and again after they have changed."""

_MORE = ("return_overflowing_tokens", "return_special_tokens_mask", "return_length")
"""The options that ask for more of a row than its ids, apart from token types."""

_SPANS = "cpbpe_spans"
"""The option by which `apply_chat_template` asks for the spans of tokens."""

_RENUMBERS = "cpbpe_renumbers"
"""The option that says that the ids of tokens are those of a tokenizer.json, not `added_tokens_decoder`'s."""

_DEFAULTS = "cpbpe_defaults"
"""The option that holds other options, used where neither the caller nor a file of the folder gives them."""

_CLEANS_UP = "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output"

T = TypeVar("T")


class _Made(dict[str, Any]):
    """Values that can be made anew. Pickles leave them out, and so do the hashes that datasets makes.

    (datasets takes them from `__dict__`, and does not ask `__getstate__`.)
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _Made, ()


class made(kept[T]):  # noqa: N801 (used like property)
    """A property that is computed once, and kept in the `_Made` of a tokenizer."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        values = instance.__dict__.setdefault("_made", _Made())
        if self._name not in values:
            values[self._name] = self._make(instance)
        return values[self._name]


class CpbpeTokenizer(PreTrainedTokenizer):  # type: ignore[misc]
    """A `PreTrainedTokenizer` that runs on a model of cpbpe, of either family.

    >>> tokenizer = CpbpeTokenizer("tokenizer.model", pad_token="</s>")
    >>> batch = tokenizer(["Hello world", "Hi"], padding=True, return_tensors="np")
    >>> batch["input_ids"]
    array([[    1, 22557,  1526],
           [    1, 15359,     2]])
    >>> batch["attention_mask"]
    array([[1, 1, 1],
           [1, 1, 0]])
    >>> tokenizer.batch_decode(batch["input_ids"], skip_special_tokens=True)
    ['Hello world', 'Hi']

    - `vocab_file`: the path of a `.model` file, or a `cpbpe.Tokenizer`.
    - `tokenizer_file`: the path of a `tokenizer.json`, which is read if there is no `vocab_file`.
    - `unk_token`, `bos_token`, `eos_token`, `pad_token`: by default the pieces that the model names.
    - `add_bos_token`, `add_eos_token`: whether encoding puts them around a text. By default it adds bos, if
      the model has one. A tokenizer.json says itself what is around one text, or two, until either is given.
    - `legacy`: whether text after a special token gets a dummy prefix, like the beginning of a text. None
      means as a tokenizer.json says, and for other files yes.
    - `add_prefix_space`: whether there are dummy prefixes at all; None means as the model says.

    All other options are those of `PreTrainedTokenizer`.
    """

    vocab_files_names = {"vocab_file": "tokenizer.model"}  # noqa: RUF012, as in transformers
    model_input_names = ["input_ids", "attention_mask"]  # noqa: RUF012

    threads: int | None = None
    """How many threads encode a batch; None: up to all cores, if the batch is large enough."""

    def __init__(
        self,
        vocab_file: str | os.PathLike[str] | Tokenizer | None = None,
        *,
        tokenizer_file: str | os.PathLike[str] | None = None,
        add_bos_token: bool | None = None,
        add_eos_token: bool | None = None,
        legacy: bool | None = None,
        add_prefix_space: bool | None = None,
        **kwargs: Any,
    ):
        # 1. What a tokenizer.json says, and no other file does.
        self._json: bytes | None = None
        """The tokenizer.json that this was made of. Then the rules are those of fast tokenizers."""
        self._json_decoder: Any = None
        around: tuple[Layout, Layout] | None = None
        if vocab_file is None and tokenizer_file is not None:
            with warnings.catch_warnings():  # here, its decoder is followed, whatever it does
                warnings.filterwarnings("ignore", ".*decoding (may differ|differs)")
                vocab_file = Tokenizer(tokenizer_file)
            self._json = Path(tokenizer_file).read_bytes()
            content = json.loads(self._json)
            self._json_decoder = content.get("decoder")
            if add_bos_token is None and add_eos_token is None:
                around = layouts_of(content.get("post_processor"))
            padding = content.get("padding")
            if isinstance(padding, dict):
                kwargs.setdefault("pad_token", padding.get("pad_token"))
                kwargs.setdefault("pad_token_type_id", padding.get("pad_type_id", 0))
                kwargs.setdefault("padding_side", str(padding.get("direction", "Right")).lower())
        kwargs = {**kwargs.pop(_DEFAULTS, {}), **kwargs}
        # 2. What is refused.
        if vocab_file is None:
            raise ValueError(
                f"{type(self).__name__} needs the file of a model as vocab_file; in the folder "
                f"given to from_pretrained it has the name {self.vocab_files_names['vocab_file']!r}, or "
                f"it is a tokenizer.json"
            )
        if kwargs.get("sp_model_kwargs"):
            raise ValueError(
                f"sp_model_kwargs is {kwargs['sp_model_kwargs']!r}, but no sentencepiece runs here; "
                f"leave it out"
            )
        model = vocab_file if isinstance(vocab_file, Tokenizer) else Tokenizer(vocab_file)
        if model.bound_options:
            raise ValueError(
                f"{', '.join(model.bound_options)}: options that using() has bound have no effect here; "
                "give the tokenizer without them, and add_bos_token, add_eos_token, legacy, add_prefix_space"
            )
        # 3. The model and its options. (sentencepiece's models ask for none, and Llama's begin with bos.)
        self.cpbpe = model
        self._has_metaspace = by_metaspace(model.facts.spec.normalizer)
        asked = model.file_options
        bos = asked.get("add_bos", False) if asked or self._json else model.bos_id is not None
        self.add_bos_token = bos if add_bos_token is None else add_bos_token
        self.add_eos_token = bool(asked.get("add_eos") if add_eos_token is None else add_eos_token)
        self.legacy = (asked.get("prefix_after_special") if legacy is None else legacy) is not False
        self.add_prefix_space = add_prefix_space
        # 4. Its tokens.
        for name in ("unk", "bos", "eos", "pad"):
            id = getattr(model, f"{name}_id")
            kwargs.setdefault(f"{name}_token", None if id is None else model.id_to_piece(id))
        kwargs.setdefault("clean_up_tokenization_spaces", False)
        special = model.facts.special
        # (As in transformers: a tokenizer.json lists its CONTROL pieces as added tokens, a model does not.)
        ids = {**(special.ids if self._json else special.added), **special.plain}
        added = {id: _added_token(text, special.flags.get(text, ())) for text, id in ids.items()}
        given = kwargs.get("added_tokens_decoder", {})
        if kwargs.pop(_RENUMBERS, False):
            given = self._renumbered(given, dict(ids))
        given = kwargs["added_tokens_decoder"] = {**added, **given}
        super().__init__(
            add_bos_token=self.add_bos_token,
            add_eos_token=self.add_eos_token,
            legacy=self.legacy,
            add_prefix_space=add_prefix_space,
            **kwargs,
        )
        # (Given as `added_tokens_decoder` alone, they would not be among `all_special_tokens`.)
        self._add_tokens([given[id] for id, token in added.items() if token.special], special_tokens=True)
        self._around = around
        """What a tokenizer.json puts around texts; None if `add_bos_token` and `add_eos_token` decide it."""

    # --- The vocabulary ---------------------------------------------------------------------------

    @property
    def vocab_size(self) -> int:
        """How many pieces the model has, without added tokens."""
        return self.cpbpe.vocab.piece_count

    def __len__(self) -> int:
        """The highest id plus one: how many rows an embedding needs."""
        return max(self.vocab_size, max(self._added_tokens_decoder, default=-1) + 1)

    def get_vocab(self) -> dict[str, int]:
        """The id of every piece and of every added token."""
        return {**self._names.ids, **self.added_tokens_encoder}

    @made
    def _names(self) -> PieceNames:
        return PieceNames(self.cpbpe.facts.engine)

    def _add_tokens(self, new_tokens: Iterable[Any], special_tokens: bool = False) -> int:
        tokens = list(new_tokens or ())
        known = self.get_vocab()
        if len(known) == len(self):
            return int(super()._add_tokens(tokens, special_tokens=special_tokens))
        # The ids have gaps, so the next free id is not the number of tokens, as transformers assumes. Because
        # transformers keeps ids that tokens already have, they are assigned here.
        unknown = dict.fromkeys(str(token) for token in tokens if str(token) and str(token) not in known)
        for text in unknown:
            self._added_tokens_decoder[len(self)] = AddedToken(text)
        super()._add_tokens(tokens, special_tokens=special_tokens)
        return len(unknown)

    def _renumbered(self, given: dict[int, AddedToken], known: dict[str, int]) -> dict[int, AddedToken]:
        """Tokens with the ids that a tokenizer.json has for them; those that it does not have come last."""
        free = max([self.vocab_size - 1, *known.values()]) + 1
        made: dict[int, AddedToken] = {}
        for _, token in sorted(given.items()):
            id = known.setdefault(token.content, self._names.ids.get(token.content, free))
            made[id] = token
            free = max(free, id + 1)
        return made

    def _update_trie(self, *args: Any, **kwargs: Any) -> None:
        """Called by transformers after tokens were added."""
        super()._update_trie(*args, **kwargs)
        for name in _OF_ADDED_TOKENS:
            self.__dict__.get("_made", {}).pop(name, None)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in _ENDS_OPTIONS:
            self._around = None
        self.__dict__.get("_made", {}).pop("_layouts", None)  # they depend on tokens and options

    @property
    def added_tokens_decoder(self) -> dict[int, AddedToken]:
        """The added tokens by their ids."""
        tokens: dict[int, AddedToken] = super().added_tokens_decoder
        return tokens

    @added_tokens_decoder.setter
    def added_tokens_decoder(self, value: dict[int, AddedToken | str]) -> None:
        PreTrainedTokenizer.added_tokens_decoder.fset(self, value)
        self._update_trie()

    def _convert_token_to_id(self, token: str) -> int | None:
        names = self._names
        id = names.ids.get(token) if self.cpbpe.facts.is_byte_level else self.cpbpe.piece_to_id(token)
        return self.unk_token_id if id is None else id

    def _convert_id_to_token(self, index: int) -> str:
        return self._names(index) if index < self.vocab_size else self.cpbpe.id_to_piece(index)

    # --- From text to ids -------------------------------------------------------------------------

    # transformers splits texts into tokens, which are str, and looks up the id of each. Here, all texts of a
    # call are encoded first, and pass through transformers' methods as `_Known`, a str that has its ids.

    def _encode_plus(self, text: Any, text_pair: Any = None, *args: Any, **kwargs: Any) -> Any:
        if type(text) is _Known and (text_pair is None or type(text_pair) is _Known):  # a row of a batch
            if kwargs.get("sanitize_control_tokens"):  # transformers reads marks in the text
                return super()._encode_plus(text, text_pair, *args, **kwargs)
            return self._row(text.ids, None if text_pair is None else text_pair.ids, **kwargs)
        _check_options(kwargs)
        if isinstance(text, (list, tuple)) and not text and not _BATCHES_APART:
            return self._empty_batch(kwargs)
        # (Lists that come here are split into words, or, from version 5 on, batches.)
        text_pair = None if self._json and text_pair == "" else text_pair  # as in transformers
        depth = 0 if _BATCHES_APART and not kwargs.get("is_split_into_words") else 2
        with_spans = kwargs.pop(_SPANS, False)
        known, text_pair = self._encoded([text, text_pair], depth + 1, kwargs)
        batch = super()._encode_plus(known, text_pair, *args, **kwargs)
        return self._with_spans(batch, text, kwargs) if with_spans else batch

    def _batch_encode_plus(self, batch_text_or_text_pairs: Any, *args: Any, **kwargs: Any) -> Any:
        _check_options(kwargs)
        if not batch_text_or_text_pairs:
            return self._empty_batch(kwargs)
        depth = 3 if kwargs.get("is_split_into_words") else 2
        with_spans = kwargs.pop(_SPANS, False)
        known = self._encoded(batch_text_or_text_pairs, depth, kwargs)
        batch = super()._batch_encode_plus(known, *args, **kwargs)
        return self._with_spans(batch, batch_text_or_text_pairs, kwargs) if with_spans else batch

    def _row(
        self, ids: list[int], pair_ids: list[int] | None, truncation_strategy: Any, **options: Any
    ) -> Any:
        """What transformers would make of the ids of a row, before it pads the batch.

        `prepare_for_model` takes longer than encoding the text. So it is left to rows that are cut, or of
        which more than ids is wanted. For the others, the ids are all that it would return.
        """
        adds, limit = options["add_special_tokens"], options["max_length"]
        whole = self.build_inputs_with_special_tokens(ids, pair_ids) if adds else [*ids, *(pair_ids or ())]
        types = options["return_token_type_ids"]
        more = "token_type_ids" in self.model_input_names if types is None else types
        cuts = limit and len(whole) > limit and truncation_strategy.value != "do_not_truncate"
        if more or cuts or any(options[name] for name in _MORE):
            padding = options.pop("padding_strategy")
            return self.prepare_for_model(
                ids, pair_ids, padding=padding, truncation=truncation_strategy, **options
            )
        self._eventual_warn_about_too_long_sequence(whole, limit, options["verbose"])
        return {self.model_input_names[0]: whole}

    def truncate_sequences(
        self,
        ids: list[int],
        pair_ids: list[int] | None = None,
        num_tokens_to_remove: int = 0,
        truncation_strategy: Any = "longest_first",
        stride: int = 0,
    ) -> Any:
        """As in transformers; but for a tokenizer.json, texts are cut as the package tokenizers does it."""
        strategy = str(getattr(truncation_strategy, "value", truncation_strategy))
        given = (ids, pair_ids, num_tokens_to_remove, strategy, stride)
        if not self._json or strategy == "do_not_truncate" or num_tokens_to_remove <= 0:
            return super().truncate_sequences(*given)
        texts = [ids] if pair_ids is None else [ids, pair_ids]
        most = sum(map(len, texts)) - num_tokens_to_remove
        if most < 0:  # there is not even room for what is around them
            return ids, pair_ids, []
        first, *second = Truncation(most, 0, strategy, self.truncation_side).cut(texts)
        from_both = bool(second) and strategy == "longest_first"
        cut_off = [] if from_both else super().truncate_sequences(*given)[2]
        return first, second[0] if second else None, cut_off

    def _empty_batch(self, options: dict[str, Any]) -> BatchEncoding:
        """The result for an empty batch, for which transformers itself fails."""
        empty: dict[str, list[Any]] = {name: [] for name in self.model_input_names}
        return BatchEncoding(empty, tensor_type=options.get("return_tensors"))

    def _encoded(self, nested: Any, depth: int, options: dict[str, Any]) -> Any:
        """The same nested lists, with a `_Known` for every text down to this depth."""
        texts: list[str] = []
        _map_texts(nested, depth, texts.append)
        if not texts:  # lists of ids, or a row of words that are encoded already
            return nested
        encoder = self._encoder(bool(options.get("split_special_tokens", self.split_special_tokens)))
        known = iter(encoder.encode_batch(list(texts), threads_for(texts, self.threads)))
        return _map_texts(nested, depth, lambda text: _Known(text, next(known)))

    def apply_chat_template(self, conversation: Any, *args: Any, **kwargs: Any) -> Any:
        """A conversation as a text or as ids, by a template; see transformers."""
        if kwargs.get("return_assistant_tokens_mask"):  # transformers looks for the tokens of these texts
            kwargs["tokenizer_kwargs"] = {**(kwargs.get("tokenizer_kwargs") or {}), _SPANS: True}
        return super().apply_chat_template(conversation, *args, **kwargs)

    def _with_spans(self, batch: BatchEncoding, texts: str | list[str], options: dict[str, Any]) -> Any:
        """The same batch, which can also say where in the texts its tokens are. (Nothing is around them.)"""
        encoder = self._encoder(bool(options.get("split_special_tokens", self.split_special_tokens)))
        single = isinstance(texts, str)
        rows: list[str] = [texts] if isinstance(texts, str) else texts
        masks = batch.get("attention_mask")
        spans = []
        for number, text in enumerate(rows):
            flat = single and not options.get("return_tensors")
            size = len(batch["input_ids"] if flat else batch["input_ids"][number])
            *_, offsets = encoder.align(text, chars=True)
            offsets = _widened(offsets)
            kept = min(len(offsets), size)
            if masks is not None:  # it says which tokens are not padding
                kept = int(sum(masks if flat else masks[number]))
            offsets = offsets[:kept] if self.truncation_side == "right" else offsets[len(offsets) - kept :]
            padding = [(0, 0)] * (size - kept)
            side = options.get("padding_side") or self.padding_side
            offsets = padding + offsets if side == "left" else offsets + padding
            source = Source.of([0] * size, ([""] * size, offsets, [None] * size))
            spans.append(Encoding([run(source)], {0: (0, size)}))
        return BatchEncoding(batch.data, encoding=spans)

    def tokenize(self, text: str, **kwargs: Any) -> Any:
        """The pieces of a text, including the added tokens that it spells out.

        `split_special_tokens=True` treats these as plain text.

        >>> CpbpeTokenizer("tokenizer.model").tokenize("Hi</s>")
        ['▁Hi', '</s>']
        """
        if isinstance(text, _Known):
            return text.ids
        split = kwargs.pop("split_special_tokens", self.split_special_tokens)
        text, _ = self.prepare_for_tokenization(text, **kwargs)
        encoder = self._encoder(bool(split))
        if not self.cpbpe.facts.is_byte_level:
            return encoder.encode_pieces(text)
        ids, pieces, _ = encoder.align(text, chars=False)
        names, size = self._names, self.vocab_size
        return [names(id) if id < size else piece for id, piece in zip(ids, pieces, strict=True)]

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        """The id of a token, or a list of ids for a list of tokens."""
        if isinstance(tokens, list) and tokens and type(tokens[0]) is int:
            return tokens  # what `tokenize` returns for a `_Known`
        return super().convert_tokens_to_ids(tokens)

    def _engine(self) -> Engine:
        """The engine that encodes a text, or its first segment."""
        engine = self.cpbpe.facts.engine
        return engine if self.add_prefix_space is None else engine.variant(prefix=bool(self.add_prefix_space))

    def _encoder(self, split_special_tokens: bool) -> Engine | SpecialEncoder:
        engine = self._engine()
        finders = self._finders
        if split_special_tokens not in finders:
            tokens = list(self._added_tokens_decoder.items())
            if split_special_tokens:  # with a tokenizer.json, tokens that are not special are still found
                tokens = [(id, token) for id, token in tokens if self._json and not token.special]
            ids = {token.content: id for id, token in tokens}
            flags = {token.content: self._flags(token) for _, token in tokens}
            finders[split_special_tokens] = SpecialFinder(engine, ids, flags) if ids else None
        finder = finders[split_special_tokens]
        if finder is None:
            return engine
        later = engine if self.legacy else engine.variant(prefix=False)
        return SpecialEncoder(engine, later, finder)

    @made
    def _finders(self) -> dict[bool, SpecialFinder | None]:
        """The finders of added tokens, by `split_special_tokens`; None if there is nothing to find."""
        return {}

    def _flags(self, token: AddedToken) -> set[str]:
        """The flags of an added token, as `Carried.tokens` has them.

        `normalized` has a meaning only in transformers' classes that are built on a tokenizer.json. Where
        Metaspace writes spaces as ▁, that comes after the search, so such tokens are only "late".
        """
        flags = {name for name in ("lstrip", "rstrip", "single_word") if getattr(token, name)}
        if self._json and token.normalized:
            known = {"late", "normalized"}.intersection(self.cpbpe.facts.special.flags.get(token.content, ()))
            flags |= known or {"late" if self._has_metaspace else "normalized"}
        return flags

    # --- From ids to text -------------------------------------------------------------------------

    def _decode(
        self,
        token_ids: Any,
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool | None = None,
        **kwargs: Any,
    ) -> str:
        ids = token_ids if isinstance(token_ids, list) else [token_ids]
        hidden = dict.fromkeys(self._special_ids(), "") if skip_special_tokens else {}
        shown = {id: text for id, text in self._shown.items() if id not in hidden}
        first, later = self._decoders()
        decoder: Engine | SpecialDecoder = first
        if not (shown.keys().isdisjoint(ids) and hidden.keys().isdisjoint(ids)):
            strips = self._json is not None and self.cpbpe.facts.strips_tokens and first is not later
            decoder = SpecialDecoder(first, later, shown, hidden, strips)
        if self._steps is None:
            text = decoder.decode(ids)
        else:
            known = check_ids(ids, len(self), "decode")
            text = self._by_steps(self.convert_ids_to_tokens([id for id in known if id not in hidden]))
        if text is None:  # not all of them are int, or in the vocabulary
            text = decoder.decode(check_ids(ids, len(self), "decode"))
        if text is None:
            unused = next(id for id in ids if id >= self.vocab_size and id not in self._added_tokens_decoder)
            raise IndexError(f"id {unused} is not in use: it lies between the added tokens")
        cleans_up = clean_up_tokenization_spaces
        if cleans_up is None:
            cleans_up = self.clean_up_tokenization_spaces
        if clean_up_tokenization_spaces is None or self._json:
            # Version 5 ignores the setting for BPE models, for which it was not meant. Its fast tokenizers
            # ignore the argument, too.
            cleans_up = cleans_up and getattr(self, _CLEANS_UP, True)
        return str(self.clean_up_tokenization(text)) if cleans_up else text

    @made
    def _shown(self) -> dict[int, str]:
        """What added tokens are decoded to, except for those that are pieces of text."""
        names, engine = self._renamed, self.cpbpe.facts.engine
        texts = {id: token.content for id, token in self._added_tokens_decoder.items()}
        kinds = (PieceType.NORMAL, PieceType.USER_DEFINED, PieceType.UNUSED)  # they decode to their own text
        # The decoder of a tokenizer.json makes spaces of the marks in tokens, too.
        mark = "▁" if self._json and not self.cpbpe.facts.is_byte_level else " "
        return {
            id: names.get(text, text.replace(mark, " "))
            for id, text in texts.items()
            if text in names or id >= self.vocab_size or engine.kind(id) not in kinds
        }

    @made
    def _renamed(self) -> dict[str, str]:
        """What added tokens that are searched for in normalized text are decoded to."""
        flags = {token.content: self._flags(token) for token in self._added_tokens_decoder.values()}
        return renamed(self.cpbpe.facts.engine, flags)

    def _special_ids(self) -> list[int]:
        """The ids that decoding can leave out: those that a tokenizer.json marks special, and bos, pad ..."""
        if not self._json:
            return list(self.all_special_ids)
        said, names = self.cpbpe.facts.special, self._renamed
        texts = {id: token.content for id, token in self._added_tokens_decoder.items()}
        given = {token.content for token in self._added_tokens_decoder.values() if token.special}
        named = {str(token) for token in self.special_tokens_map.values() if not isinstance(token, list)}
        special = said.ids.keys() | (given - said.plain.keys()) | named
        # (tokenizers does not treat a token as special that is decoded to another text.)
        return [id for id, text in texts.items() if text in special and text not in names]

    def convert_tokens_to_string(self, tokens: Sequence[str]) -> str:
        """The text of pieces and added tokens; anything else is copied as it is."""
        if self._steps is not None:
            return self._by_steps(list(tokens))
        engine, later = self._decoders()
        parts: list[str] = []
        segment: list[bytes] = []
        for token in tokens:
            if token in self._added_tokens_encoder:
                text = self._shown.get(self._added_tokens_encoder[token], token)
                parts += [text_of(engine.decode_pieces_bytes(segment) or b""), text]
                segment = []
                engine = later
            else:
                segment.append(self._names.piece(token))
        return "".join([*parts, text_of(engine.decode_pieces_bytes(segment) or b"")])

    @made
    def _steps(self) -> list[Step] | None:
        """What the decoder of a tokenizer.json does to tokens, if the engine does something else."""
        facts, decoder = self.cpbpe.facts, self._json_decoder
        if self._json is None:
            return None
        if facts.is_byte_level:
            is_usual = [step["type"] for step in steps_of(decoder, "decoders", "decoder")] == ["ByteLevel"]
        else:
            is_usual = decoder_note({"decoder": decoder}, Names(facts.spec)) is None
        try:
            return None if is_usual else steps_of_decoder(decoder)
        except ModelError as error:
            raise NotImplementedError(f"{error}; to decode, use AutoTokenizer of transformers") from None

    def _by_steps(self, tokens: list[str]) -> str:
        mark = " " if self.cpbpe.facts.is_byte_level else "▁"
        names = {text: name.replace(" ", mark) for text, name in self._renamed.items()}
        tokens = [names.get(token, token) for token in tokens]
        for step in self._steps or ():
            tokens = step(tokens)
        return "".join(tokens)

    def _decoders(self) -> tuple[Engine, Engine]:
        """The engines that decode the first segment of a text, and the segments after special tokens."""
        keeps_space = self._engine().variant(keep_space=True)
        first = keeps_space if self.add_prefix_space is False else self._engine()
        # A tokenizer.json has one decoder for all tokens of a text, special ones included.
        return first, first if self.legacy and not self._json else keeps_space

    # --- Tokens around a text ---------------------------------------------------------------------

    def build_inputs_with_special_tokens(
        self, token_ids_0: list[int], token_ids_1: list[int] | None = None
    ) -> list[int]:
        """One or two sequences with the tokens around them.

        These are bos and eos, as `add_bos_token` and `add_eos_token` say, or those of the tokenizer.json.
        """
        whole: list[int] = []
        for _, part, _ in self._laid_out(token_ids_0, token_ids_1):
            whole += part
        return whole

    def get_special_tokens_mask(
        self,
        token_ids_0: list[int],
        token_ids_1: list[int] | None = None,
        already_has_special_tokens: bool = False,
    ) -> list[int]:
        """1 for each token that `build_inputs_with_special_tokens` adds, 0 for the others."""
        if already_has_special_tokens:
            mask: list[int] = super().get_special_tokens_mask(token_ids_0, token_ids_1, True)
            return mask
        parts = self._laid_out(token_ids_0, token_ids_1)
        return [int(place is None) for place, ids, _ in parts for _ in ids]

    def create_token_type_ids_from_sequences(
        self, token_ids_0: list[int], token_ids_1: list[int] | None = None
    ) -> list[int]:
        """The type of each token: 0 for all of the first sequence, 1 for all of the second one, unless the
        tokenizer.json has others.
        """
        return [type for _, ids, type in self._laid_out(token_ids_0, token_ids_1) for _ in ids]

    def _laid_out(self, first: list[int], second: list[int] | None) -> Layout:
        """The layout of a row, with the ids of the texts in it."""
        given = (first, second or [])
        layout = self._layouts[second is not None]
        return [(place, ids if place is None else given[place], type) for place, ids, type in layout]

    @made
    def _layouts(self) -> tuple[Layout, Layout]:
        """What is around one text, and around two."""
        if self._around is not None:
            return self._around
        ends: list[list[int]] = []
        for name in ("bos", "eos"):
            id = getattr(self, f"{name}_token_id")
            wanted = getattr(self, f"add_{name}_token")
            if wanted and id is None:
                raise ValueError(
                    f"add_{name}_token is set, but there is no {name}_token; set that, "
                    f"or add_{name}_token=False"
                )
            ends.append([id] if wanted else [])
        front, back = ends
        one, two = ([(None, front, place), (place, [], place), (None, back, place)] for place in (0, 1))
        return one, [*one, *two]

    # --- Files ------------------------------------------------------------------------------------

    def __copy__(self) -> CpbpeTokenizer:
        new = object.__new__(type(self))
        new.__dict__.update((name, value) for name, value in self.__dict__.items() if name != "_made")
        return new

    def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple[str]:
        """Write the model file or tokenizer.json, byte for byte as it was loaded, and return its path."""
        name = self.vocab_files_names["vocab_file"] if self._json is None else "tokenizer.json"
        path = os.path.join(save_directory, f"{filename_prefix}-{name}" if filename_prefix else name)
        if self._json is None:
            self.cpbpe.save(path)
        else:
            write_all({path: self._json})
        return (path,)

    # transformers 5 keeps add_bos_token and add_eos_token in the tokenizer.json of fast tokenizers only.

    def _save_pretrained(
        self,
        save_directory: str,
        file_names: tuple[str, ...],
        legacy_format: bool | None = None,
        filename_prefix: str | None = None,
    ) -> tuple[str, ...]:
        name = "tokenizer_config.json"
        path = os.path.join(save_directory, f"{filename_prefix}-{name}" if filename_prefix else name)
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
        config.update({name: None if self._around else getattr(self, name) for name in _ENDS_OPTIONS})
        written = json.dumps(config, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        write_all({path: written.encode()})
        files: tuple[str, ...] = super()._save_pretrained(
            save_directory, file_names, legacy_format, filename_prefix
        )
        return files

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *args: Any, **kwargs: Any) -> Any:
        """The tokenizer of a folder; see transformers."""
        folder = os.path.join(str(pretrained_model_name_or_path), kwargs.get("subfolder") or "")
        path = os.path.join(folder, "tokenizer_config.json")
        if os.path.isfile(path):
            read_config(path)  # or transformers, which reads it first, fails without saying what is wrong
        return super().from_pretrained(pretrained_model_name_or_path, *args, **kwargs)

    @classmethod
    def _from_pretrained(cls, resolved_vocab_files: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        path = resolved_vocab_files.get("tokenizer_config_file")
        config = {} if path is None else read_config(path)
        model, file = (resolved_vocab_files.get(name) for name in ("vocab_file", "tokenizer_file"))
        if model or config.get("tokenizer_class") == cls.__name__:
            said = {name: config[name] for name in _ENDS_OPTIONS if name in config}
        else:  # the tokenizer.json says what is in front and around, and has the ids of tokens
            said = dict.fromkeys(("add_prefix_space", "legacy", *_ENDS_OPTIONS))
            said.update({"legacy": False} if is_legacy_lost(config) else {}, **{_RENUMBERS: True})
        kwargs = {**said, _DEFAULTS: _of_class(config, file), **kwargs}
        return super()._from_pretrained(resolved_vocab_files, *args, **kwargs)


class PieceNames:
    """How transformers spells the pieces of a model as tokens: those of a byte-level one in GPT-2's letters.

    A byte-level piece may end within a character, so it need not be text. GPT-2 has a printable letter for
    each byte instead (`Ġ` for a space), and transformers spells the tokens of such models in these.
    """

    def __init__(self, engine: Engine):
        self._engine = engine
        self._is_byte_level = engine.head["byte_level"] is not None

    def __call__(self, id: int) -> str:
        """The name of a piece."""
        piece = self._engine.piece(id)
        if not self._is_byte_level or self._engine.kind(id) == PieceType.CONTROL:
            return text_of(piece)
        return to_letters(piece)

    @kept
    def ids(self) -> dict[str, int]:
        """The id of each name."""
        return {self(id): id for id in range(self._engine.size)}

    def piece(self, name: str) -> bytes:
        """The piece that has a name; the name itself, if none has it."""
        if not self._is_byte_level:
            return name.encode()
        id = self.ids.get(name)
        return name.encode() if id is None else self._engine.piece(id)


class _Known(str):
    """A text whose ids are known."""

    __slots__ = ("ids",)

    ids: list[int]

    def __new__(cls, text: str, ids: list[int]) -> _Known:
        self = super().__new__(cls, text)
        self.ids = ids
        return self


def _widened(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same spans, but every token that is a part of a character has the span of all of it, as in
    tokenizers. (Before, only the last of these tokens has it, and the others have none.)
    """
    made: list[tuple[int, int]] = []
    after = (0, 0)
    for begin, end in reversed(list(spans)):
        after = after if begin == end == after[0] else (begin, end)
        made.append(after)
    return made[::-1]


def _map_texts(nested: Any, depth: int, change: Any) -> Any:
    """Nested lists, with `change` applied to every text down to this depth that is not a `_Known` yet."""
    if isinstance(nested, str):
        return nested if isinstance(nested, _Known) else change(nested)
    if depth and isinstance(nested, (list, tuple)) and nested and not isinstance(nested[0], int):
        return type(nested)([_map_texts(item, depth - 1, change) for item in nested])
    return nested


def _of_class(config: dict[str, Any], tokenizer_file: str | None) -> dict[str, Any]:
    """What the class of transformers that a folder is for says about rows of ids, if the folder does not."""
    name = str(config.get("tokenizer_class")).removesuffix("Fast")
    if name == "LlamaTokenizer" and tokenizer_file and b'"ByteLevel"' in Path(tokenizer_file).read_bytes():
        return {}  # transformers 5 takes another class
    for known in (f"{name}Fast", name):
        made = getattr(transformers, known, None)
        if isinstance(made, type) and issubclass(made, transformers.PreTrainedTokenizerBase):
            return {option: getattr(made, option) for option in _OF_CLASSES if option not in config}
    return {}


def _check_options(options: dict[str, Any]) -> None:
    if options.get("return_offsets_mapping"):
        raise NotImplementedError(
            "return_offsets_mapping: transformers has it for its own fast tokenizers only; "
            "cpbpe.Tokenizer.align() gives the spans of a text's tokens"
        )


def _added_token(text: str, flags: Collection[str]) -> AddedToken:
    """A token of a model, with the flags that its file gives it."""
    return AddedToken(
        text,
        normalized="late" in flags or "normalized" in flags,
        special=PLAIN not in flags,
        **{name: name in flags for name in ("lstrip", "rstrip", "single_word")},
    )
