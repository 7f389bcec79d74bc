"""Post-processors, of the module `tokenizers.processors`: what goes around texts, as values."""

from __future__ import annotations

import json
from collections.abc import Sequence as SequenceOf
from typing import Any

from cpbpe.compat.tokenizers import arguments
from cpbpe.compat.tokenizers.encoding import Encoding
from cpbpe.compat.tokenizers.template import Template, template_of
from cpbpe.lazy import kept

__all__ = [
    "BertProcessing",
    "ByteLevel",
    "PostProcessor",
    "RobertaProcessing",
    "Sequence",
    "TemplateProcessing",
]

Json = dict[str, Any]
Part = Json
_MOST = (1 << 32) - 1


class PostProcessor:
    """What all of them are: the part of a tokenizer.json, as a value."""

    content: Json
    """The part of the file."""

    @classmethod
    def of(cls, content: Json) -> PostProcessor:
        """The one that a file describes."""
        kinds: dict[str, type[PostProcessor]] = {kind.__name__: kind for kind in cls.__subclasses__()}
        made = object.__new__(kinds.get(content["type"], PostProcessor))
        made.content = content
        return made

    @kept
    def _template(self) -> Template | None:
        return template_of(self.content)

    def num_special_tokens_to_add(self, is_pair: bool) -> int:
        """How many tokens are put around a text, or a pair of texts."""
        template = self._template
        return 0 if template is None else template.count(arguments.flag(is_pair, "is_pair"))

    def process(
        self, encoding: Encoding, pair: Encoding | None = None, add_special_tokens: bool = True
    ) -> Encoding:
        """Put the tokens around one encoding, or two."""
        given = [encoding] if pair is None else [encoding, pair]
        template = self._template
        assert template is not None
        return template.apply(
            [one.copy() for one in given], arguments.flag(add_special_tokens, "add_special_tokens")
        )

    def __getstate__(self) -> bytes:
        return json.dumps(self.content, ensure_ascii=False, separators=(",", ":")).encode()

    def __setstate__(self, state: bytes) -> None:
        self.content = json.loads(state)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PostProcessor) and self.content == other.content

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self.content.items() if name != "type")
        return f"{type(self).__name__}({options})"


class TemplateProcessing(PostProcessor):
    """Tokens around texts.

    >>> import cpbpe
    >>> from cpbpe.compat.tokenizers import Tokenizer
    >>> from cpbpe.compat.tokenizers.processors import TemplateProcessing
    >>> tokenizer = Tokenizer(cpbpe.load("tokenizer.model"))
    >>> tokenizer.post_processor = TemplateProcessing(
    ...     single="<s> $A </s>", pair="<s> $A </s> $B:1 </s>:1", special_tokens=[("<s>", 1), ("</s>", 2)]
    ... )
    >>> tokenizer.encode("Hi").tokens
    ['<s>', '▁Hi', '</s>']
    """

    def __init__(
        self,
        single: str | SequenceOf[str] | None = None,
        pair: str | SequenceOf[str] | None = None,
        special_tokens: SequenceOf[Any] | None = None,
    ):
        """`$A` and `$B` are the texts, and everything else a token; `:1` behind it is its type.

        `special_tokens` has a token and its id for each name, or a dict with `id`, `ids` and `tokens`.
        """
        known = {
            token["id"]: token for token in map(_token, special_tokens if special_tokens is not None else ())
        }
        parts = {
            "single": _parts("$A" if single is None else single, "single"),
            "pair": _parts("$A:0 $B:1" if pair is None else pair, "pair"),
        }
        texts = {part["Sequence"]["id"] for part in parts["pair"] if "Sequence" in part}
        if texts != {"A", "B"}:
            raise ValueError("pair must use both texts, $A and $B")
        named = [
            part["SpecialToken"]["id"] for row in parts.values() for part in row if "SpecialToken" in part
        ]
        if missing := sorted({name for name in named if name not in known}):
            raise ValueError(f"special_tokens has no id for {', '.join(missing)}")
        self.content = {"type": "TemplateProcessing", **parts, "special_tokens": known}
        template_of(self.content)


class ByteLevel(PostProcessor):
    """Offsets without the spaces at the ends of tokens, for byte-level models."""

    def __init__(
        self,
        add_prefix_space: bool | None = None,
        trim_offsets: bool | None = None,
        use_regex: bool | None = None,
    ):
        """`add_prefix_space`: the first space of a text was put there, and stays."""
        given = {"add_prefix_space": add_prefix_space, "trim_offsets": trim_offsets, "use_regex": use_regex}
        options = {
            name: True if value is None else arguments.flag(value, name) for name, value in given.items()
        }
        self.content = {"type": "ByteLevel", **options}


class BertProcessing(PostProcessor):
    """A token in front, and one at the end of each text."""

    def __init__(self, sep: tuple[str, int], cls: tuple[str, int]):
        """The tokens and their ids."""
        self.content = {"type": "BertProcessing", "sep": _pair(sep, "sep"), "cls": _pair(cls, "cls")}


class RobertaProcessing(PostProcessor):
    """The same with one type, two tokens between a pair of texts, and the offsets of `ByteLevel`."""

    def __init__(
        self,
        sep: tuple[str, int],
        cls: tuple[str, int],
        trim_offsets: bool = True,
        add_prefix_space: bool = True,
    ):
        """The tokens and their ids; how offsets are."""
        self.content = {
            "type": "RobertaProcessing",
            "sep": _pair(sep, "sep"),
            "cls": _pair(cls, "cls"),
            "trim_offsets": arguments.flag(trim_offsets, "trim_offsets"),
            "add_prefix_space": arguments.flag(add_prefix_space, "add_prefix_space"),
        }


class Sequence(PostProcessor):
    """Several, one after the other."""

    def __init__(self, processors: SequenceOf[PostProcessor]):
        """The post-processors; at most one of them adds tokens."""
        for one in processors:
            if not isinstance(one, PostProcessor):
                raise TypeError(f"processors must be post-processors, and hold {type(one).__name__}")
        self.content = {"type": "Sequence", "processors": [one.content for one in processors]}


# --- What templates consist of ----------------------------------------------------------------------


def _parts(template: Any, name: str) -> list[Part]:
    """The parts of a template, as a file has them."""
    if isinstance(template, str):
        return [_part(word) for word in template.split(" ")]
    if not isinstance(template, (list, tuple)):
        raise TypeError(f"{name} must be a str or a list of str, not {type(template).__name__}")
    return [_part(arguments.text(word, f"an item of {name}")) for word in template]


def _part(word: str) -> Part:
    name, colon, said = word.partition(":")
    wrong = ValueError(f"{word!r} is no part of a template: that is $A, $B, a token, or these with :1 behind")
    type_id = _number(said) if colon else None
    if colon and type_id is None:
        raise wrong
    if not name.startswith("$"):
        return {"SpecialToken": {"id": name, "type_id": type_id or 0}}
    text = {"": "A", "a": "A", "b": "B"}.get(name[1:].lower())
    if text is None:  # $1 is the first text with the type 1
        number = _number(name[1:])
        if number is None:
            raise wrong
        text, type_id = "A", number if type_id is None else type_id
    return {"Sequence": {"id": text, "type_id": type_id or 0}}


def _number(text: str) -> int | None:
    digits = text.removeprefix("+")
    found = int(digits) if digits.isascii() and digits.isdigit() else None
    return found if found is None or found <= _MOST else None


def _token(given: Any) -> Json:
    """A token of a template, with its ids."""
    if isinstance(given, dict):
        ids = arguments.ids(given["ids"], "ids")
        tokens = [arguments.text(token, "tokens") for token in given["tokens"]]
        if len(ids) != len(tokens):
            raise ValueError(f"special_tokens: {len(ids)} ids and {len(tokens)} tokens do not match")
        return {"id": arguments.text(given["id"], "id"), "ids": ids, "tokens": tokens}
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise TypeError(f"special_tokens must hold pairs of a token and its id, or dicts, not {given!r}")
    token, id = given if isinstance(given[0], str) else reversed(given)
    token, id = _pair((token, id), "special_tokens")
    return {"id": token, "ids": [id], "tokens": [token]}


def _pair(given: Any, name: str) -> list[Any]:
    """A token and its id."""
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise TypeError(f"{name} must be a token and its id, not {given!r}")
    return [arguments.text(given[0], name), arguments.unsigned(given[1], name, _MOST)]
