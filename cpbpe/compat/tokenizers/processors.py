"""Post-processors, as in `tokenizers.processors`: they put tokens around texts, and trim offsets.

The first section applies them to encodings; the second has the classes that programs use.
"""

from __future__ import annotations

import json
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, replace
from typing import Any

from cpbpe.compat.tokenizers import arguments
from cpbpe.compat.tokenizers.encoding import Encoding, Run, Source, run
from cpbpe.errors import ModelError
from cpbpe.lazy import kept

# --- Applying them --------------------------------------------------------------------------------


Step = tuple[int | None, Run | None, int]
"""The number of a text, or a run of tokens to insert; and the type of the text's tokens."""


@dataclass(frozen=True)
class Template:
    """What is put around one text, and around two."""

    single: list[Step]
    pair: list[Step]
    is_anew: bool = False
    """Whether encodings first lose their marks of special tokens and texts, as with BERT's and RoBERTa's."""
    has_one_type: bool = False
    """Whether all tokens have the type 0, also those that overflow."""
    keeps_prefix: bool | None = None
    """Whether the first space of a text stays in offsets; None if no spaces are taken out of them."""
    renumbers: bool = False
    """Whether a ByteLevel comes after the template: it takes all that is there, also `<s>`, for texts."""

    def count(self, is_pair: bool) -> int:
        """How many tokens are added."""
        return sum(run.length for _, run, _ in (self.pair if is_pair else self.single) if run is not None)

    def around(self, source: Source, add_special_tokens: bool) -> Encoding:
        """`apply` for the usual case, a single text without truncation, in half the time."""
        if self.renumbers:
            return self.apply([Encoding([run(source)] if source.ids else [])], add_special_tokens)
        runs: list[Run] = []
        size = len(source.ids)
        ranges = {}
        length = 0
        for place, added, type_id in self.single:
            if place is not None:
                if size:
                    trims = () if self.keeps_prefix is None else ((self.keeps_prefix, 0),)
                    runs.append(Run(source, 0, size, type_id, trims=trims))
                before, length = length, length + size
                ranges[place] = before, length
            elif added is not None and add_special_tokens:
                runs.append(added)
                length += added.length
        return Encoding(runs, ranges)

    def apply(self, encodings: list[Encoding], add_special_tokens: bool) -> Encoding:
        """Join one or two encodings, and the tokens around them, into one encoding.

        Parts that were cut off are joined, too.
        """
        for number, encoding in enumerate(encodings):
            for one in encoding.each():
                if self.is_anew and add_special_tokens:
                    one.set([part._replace(special=0, attention=1) for part in one.runs])
                    one.ranges = {}
                one.ranges[number] = (0, len(one))
                if self.keeps_prefix is not None:
                    begins = [part.start if at == 0 else -1 for at, part in enumerate(one.runs)]
                    one.set(
                        [
                            part._replace(trims=(*part.trims, (self.keeps_prefix, begin)))
                            for part, begin in zip(one.runs, begins, strict=True)
                        ]
                    )
                if self.has_one_type and add_special_tokens:
                    one.set([part.typed(0) for part in one.runs])
        # BERT's and RoBERTa's tokens belong to the text that they are next to, so they have its number.
        parts: dict[int, Encoding] = {}
        for at, (place, added, type_id) in enumerate(self.pair if len(encodings) > 1 else self.single):
            if place is not None:
                encodings[place].set([one.typed(type_id) for one in encodings[place].runs])
                more = encodings[place]
            elif added is not None and add_special_tokens:
                more = Encoding([added])
            else:
                continue
            parts.setdefault(at // 3 if self.is_anew else at, Encoding()).append(more, growing=False)
        merged = Encoding()
        for number, part in enumerate(parts.values()):
            if self.renumbers:
                part.ranges[number] = (0, len(part))
            merged.append(part, growing=False)
        return merged


def without_template(encodings: list[Encoding]) -> Encoding:
    """`apply` without a template. A single encoding stays as it is, and its padding counts as its text."""
    if len(encodings) == 1:
        return encodings[0]
    merged = Encoding()
    for number, encoding in enumerate(encodings):
        encoding.ranges[number] = (0, len(encoding))
        merged.append(encoding, growing=False)
    return merged


def template_of(post_processor: Any) -> Template | None:
    """The template for a file's post-processor; None if it has none. ModelError if it does anything else."""
    if post_processor is None:
        return None
    template: Template | None = None
    trims: bool | None = None
    renumbers = False
    try:
        is_sequence = post_processor["type"] == "Sequence"
        for step in post_processor["processors"] if is_sequence else [post_processor]:
            made = _template(step)
            if step["type"] in ("ByteLevel", "RobertaProcessing") and step["trim_offsets"]:
                if trims is not None or template is not None:
                    raise ModelError(
                        "post_processor is a Sequence that takes spaces out of offsets twice, or when other "
                        "tokens are there already, and that is not possible here"
                    )
                trims = bool(step["add_prefix_space"])
            renumbers = renumbers or (step["type"] == "ByteLevel" and template is not None)
            if made is not None and template is not None:
                raise ModelError("post_processor is a Sequence with two templates, and one is possible here")
            template = template or made
        plain = Template([(0, None, 0)], [(0, None, 0), (1, None, 1)])
        return replace(template or plain, keeps_prefix=trims, renumbers=renumbers)
    except ModelError:
        raise
    except (KeyError, TypeError, AttributeError, IndexError, ValueError):
        raise ModelError("post_processor is not as tokenizers writes it") from None


def _template(step: Any) -> Template | None:
    """The template of one step; None if it adds nothing."""
    kind = step["type"]
    if kind == "TemplateProcessing":
        tokens = step["special_tokens"]
        template = Template(_steps(step["single"], tokens), _steps(step["pair"], tokens))
        if any(place == 1 for place, _, _ in template.single):
            raise ModelError("a template for a single text holds B, and there is only one text")
        return template
    if kind == "ByteLevel":
        return None
    if kind not in ("BertProcessing", "RobertaProcessing"):
        raise ModelError(
            f"post_processor is {kind}, and TemplateProcessing, ByteLevel, BertProcessing, RobertaProcessing "
            f"and Sequence are possible here"
        )
    # RoBERTa puts two tokens between a pair, and gives all tokens one type.
    second = int(kind == "BertProcessing")
    (front, front_id), (back, back_id) = step["cls"], step["sep"]
    first, last = _added([front_id], [front], 0), _added([back_id], [back], 0)
    between = [] if second else [last]
    end = _added([back_id], [back], second)
    single: list[Step] = [first, (0, None, 0), last]
    return Template(
        single, [*single, *between, (1, None, second), end], is_anew=True, has_one_type=not second
    )


def _steps(parts: Any, tokens: Any) -> list[Step]:
    steps: list[Step] = []
    for part in parts:
        ((kind, fields),) = part.items()
        if kind == "Sequence":
            steps.append(("AB".index(fields["id"]), None, fields["type_id"]))
            continue
        token = tokens[fields["id"]]
        steps.append(_added(list(token["ids"]), list(token["tokens"]), fields["type_id"]))
    return steps


def _added(ids: list[int], names: list[str], type_id: int) -> Step:
    return None, run(Source.blank(ids, names), type_id=type_id, special=1), 0


Layout = list[tuple[int | None, list[int], int]]
"""The parts of a row: one of the texts, 0 or 1, or ids around them; and the type of the tokens."""


def layouts_of(post_processor: Any) -> tuple[Layout, Layout]:
    """What a file's post-processor makes of one text, and of two; errors are those of `template_of`."""
    template = template_of(post_processor)
    if template is None:
        return [(0, [], 0)], [(0, [], 0), (1, [], 1)]
    single, pair = (
        [
            (place, [], type) if run is None else (None, run.source.ids, run.type_id)
            for place, run, type in row
        ]
        for row in (template.single, template.pair)
    )
    return single, pair


# --- The classes ----------------------------------------------------------------------------------


__all__ = [
    "BertProcessing",
    "ByteLevel",
    "PostProcessor",
    "RobertaProcessing",
    "Sequence",
    "TemplateProcessing",
]

Json = dict[str, Any]


class PostProcessor:
    """The base class: a post-processor as its part of a tokenizer.json."""

    content: Json
    """The part of the file."""

    @classmethod
    def of(cls, content: Json) -> PostProcessor:
        """The post-processor that a part of a file describes."""
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
        """`$A` and `$B` are the texts, and everything else is a token; `:1` after either sets its type.

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
        """With `add_prefix_space`, the first space of a text is a prefix, and stays in the offsets."""
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
    """Like `BertProcessing`, but with one type, two tokens between texts, and the offsets of `ByteLevel`."""

    def __init__(
        self,
        sep: tuple[str, int],
        cls: tuple[str, int],
        trim_offsets: bool = True,
        add_prefix_space: bool = True,
    ):
        """The tokens and their ids, and the options of `ByteLevel` for offsets."""
        self.content = {
            "type": "RobertaProcessing",
            "sep": _pair(sep, "sep"),
            "cls": _pair(cls, "cls"),
            "trim_offsets": arguments.flag(trim_offsets, "trim_offsets"),
            "add_prefix_space": arguments.flag(add_prefix_space, "add_prefix_space"),
        }


class Sequence(PostProcessor):
    """Several post-processors, one after the other."""

    def __init__(self, processors: SequenceOf[PostProcessor]):
        """The post-processors; at most one of them adds tokens."""
        for one in arguments.sequence(processors, "processors", "post-processors"):
            if not isinstance(one, PostProcessor):
                raise TypeError(f"processors must be post-processors, and hold {type(one).__name__}")
        self.content = {"type": "Sequence", "processors": [one.content for one in processors]}


# --- Parsing templates ------------------------------------------------------------------------------


def _parts(template: Any, name: str) -> list[Json]:
    """The parts of a template, as a file has them."""
    if isinstance(template, str):
        return [_part(word) for word in template.split(" ")]
    if not isinstance(template, (list, tuple)):
        raise TypeError(f"{name} must be a str or a list of str, not {type(template).__name__}")
    return [_part(arguments.text(word, f"an item of {name}")) for word in template]


def _part(word: str) -> Json:
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
    return found if found is None or found <= arguments.ID_MOST else None


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
    return [arguments.text(given[0], name), arguments.unsigned(given[1], name, arguments.ID_MOST)]
