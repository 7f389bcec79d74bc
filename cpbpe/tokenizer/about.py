"""What a tokenizer tells about its model. `Tokenizer` adds what it does with texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, SupportsIndex, cast

from cpbpe.tokenizer import calls
from cpbpe.tokenizer.facts import ModelFacts
from cpbpe.tokenizer.guided import Guided
from cpbpe.tokenizer.identity import SpecialId
from cpbpe.tokenizer.options import FileOptions
from cpbpe.tokenizer.vocabulary import Vocabulary, find_piece

if TYPE_CHECKING:
    from cpbpe.lint.values import Lint
    from cpbpe.model.spec import ModelSpec, Settings
    from cpbpe.tokenizer.inspection import Inspection
    from cpbpe.tokenizer.lossless import Losslessness


class AboutModel(Guided):
    """A model and its tables, and everything that is known about them."""

    __slots__ = ("_facts",)

    _facts: ModelFacts

    @property
    def vocab(self) -> Vocabulary:
        """The pieces and their ids, scores and types, and the special tokens."""
        return Vocabulary(self._facts)

    @property
    def settings(self) -> Settings:
        """What the model file says about itself: how it was trained, and how it normalizes.

        >>> import cpbpe
        >>> cpbpe.load("tokenizer.model").settings.trainer["byte_fallback"]
        True
        """
        return self._facts.settings

    @property
    def file_options(self) -> FileOptions:
        """The options of encoding that the file asks for, for `using`; loading alone never applies them.

        >>> import cpbpe
        >>> cpbpe.load("tokenizer.model").using(add_bos=True).save("asks.model")
        >>> tok = cpbpe.load("asks.model")
        >>> tok.file_options, tok.encode("Hi"), tok.using(**tok.file_options).encode("Hi")
        ({'add_bos': True}, [15359], [1, 15359])
        """
        options = self._facts.carried.options
        known = {name: value for name, value in options.items() if name in FileOptions.__annotations__}
        return cast(FileOptions, known)

    @property
    def token_roles(self) -> Mapping[str, str]:
        """Which token has which part ("mask", "eot", ...), as far as the file says more than the model."""
        return MappingProxyType(dict(self._facts.carried.roles))

    @property
    def chat_templates(self) -> Mapping[str, str]:
        """The templates of conversations that the file carries, by name; the usual one is "default"."""
        return MappingProxyType(dict(self._facts.carried.chat_templates))

    @property
    def spec(self) -> ModelSpec:
        """The model as a value. A changed copy can become a tokenizer again with `from_spec`."""
        return self._facts.full_spec

    @property
    def facts(self) -> ModelFacts:
        """The engine and the tables built from the model, for other parts of cpbpe."""
        return self._facts

    @property
    def vocab_size(self) -> int:
        """The highest id plus one, which is how many rows an embedding needs; also `len(tok)`."""
        return self._facts.special.size

    def __len__(self) -> int:
        return self._facts.special.size

    unk_id = SpecialId(0, "The id of the UNKNOWN piece, or None if the model has none.")
    bos_id = SpecialId(1, "The id of the piece that begins a text, or None if the model has none.")
    eos_id = SpecialId(2, "The id of the piece that ends a text, or None if the model has none.")
    pad_id = SpecialId(3, "The id of the piece that fills a batch, or None if the model has none.")

    def inspect(self, *, sample: str | None = None) -> Inspection:
        """What the model is: its types, scripts, lengths, settings, losses and a `sample`, encoded."""
        return calls.inspection(self._facts, sample)

    def lint(self, texts: Iterable[str | bytes] | None = None, *, embeddings: Any = None) -> Lint:
        """What is wrong with the model: pieces that no text yields, doubtful settings, and more.

        `texts` is a corpus, of which the pieces are counted; `embeddings` a matrix with a row for each id.

        >>> import cpbpe
        >>> report = cpbpe.train(["low lower lowest"], vocab_size=270).tokenizer.lint()
        >>> [finding.code for finding in report.findings], report.worst
        (['ascii-missing', 'unused-unknown', 'unused-bytes', 'no-pad', 'odd-size'], 'warning')
        """
        return calls.lint(self._facts, texts, embeddings)

    def witness(self, piece: str | bytes | SupportsIndex) -> str | None:
        r"""A short text that yields a piece, given by its text or id; None if none does, or was found.

        >>> import cpbpe
        >>> tok = cpbpe.load("tokenizer.model")
        >>> tok.witness("▁token"), tok.witness("able"), tok.witness("<0xF0>"), tok.witness("<s>")
        ('token', '\nable', '𐀀', None)
        """
        if isinstance(piece, (str, bytes)):
            return calls.witness(self._facts, self.vocab[piece])
        return calls.witness(self._facts, self._facts.check_id(piece, "witness"))

    def id_to_piece(self, id: SupportsIndex) -> str:
        """The piece of an id."""
        return self._facts.piece(self._facts.check_id(id, "id_to_piece"))

    def piece_to_id(self, piece: str | bytes) -> int | None:
        """The id of a piece, of any type, or of an added token; None if there is none."""
        return find_piece(self._facts, piece)

    def get_vocab(self) -> dict[str, int]:
        """The id of every piece and added token; the same as `dict(tok.vocab)`."""
        return dict(self.vocab.items())

    def is_lossless(self) -> Losslessness:
        """Whether every text comes back from its ids: true, or false with reasons."""
        return calls.losslessness(self._facts)
