"""What is put around texts, and which spaces offsets leave out: the post-processor of a tokenizer.json."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from cpbpe.compat.tokenizers.encoding import Encoding
from cpbpe.compat.tokenizers.runs import Run, Source, run
from cpbpe.errors import ModelError

Step = tuple[int | None, Run | None, int]
"""The number of a text, or what is put there; and the type of these tokens."""


@dataclass(frozen=True)
class Template:
    """What is put around one text, and around two."""

    single: list[Step]
    pair: list[Step]
    is_anew: bool = False
    """Whether what encodings say of special tokens and texts is forgotten, as BERT's and RoBERTa's do."""
    has_one_type: bool = False
    """Whether all tokens have the type 0, also those that overflow."""
    keeps_prefix: bool | None = None
    """If spaces are taken out of offsets: whether the first one of a text stays."""

    def count(self, is_pair: bool) -> int:
        """How many tokens are added."""
        return sum(run.length for _, run, _ in (self.pair if is_pair else self.single) if run is not None)

    def around(self, source: Source, add_special_tokens: bool) -> Encoding:
        """`apply` for the usual case, one text that is not cut, which takes half the time."""
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
        return Encoding.of(runs, ranges)

    def apply(self, encodings: list[Encoding], add_special_tokens: bool) -> Encoding:
        """One encoding of one or two, which become parts of it."""
        steps = self.pair if len(encodings) > 1 else self.single
        if self.is_anew and add_special_tokens:
            for number, encoding in enumerate(encodings):
                encoding.begin_anew(number)
        if self.keeps_prefix is not None:
            for encoding in encodings:
                encoding.trim(self.keeps_prefix)
        if any(encoding.has_overflow for encoding in encodings):
            return self._apply_to_all(steps, encodings, add_special_tokens)
        runs: list[Run] = []
        ranges = {}
        length = 0
        for place, added, type_id in steps:
            if place is not None:
                own = [part.typed(type_id) for part in encodings[place].runs]
                before, length = length, length + sum([part.length for part in own])
                for number, (begin, end) in encodings[place].ranges.items():
                    ranges[number] = before + begin, before + end
                ranges[place] = before, length
                runs += own
            elif added is not None and add_special_tokens:
                runs.append(added)
                length += added.length
        return Encoding.of(runs, ranges)

    def _apply_to_all(
        self, steps: list[Step], encodings: list[Encoding], add_special_tokens: bool
    ) -> Encoding:
        """The same for encodings that overflow: these parts are put together, too."""
        for number, encoding in enumerate(encodings):
            encoding.number(number, deep=True)
            if self.has_one_type and add_special_tokens:
                encoding.set_type(0, deep=True)
        merged = Encoding()
        for place, added, type_id in steps:
            if place is not None:
                encodings[place].set_type(type_id)
                merged.append(encodings[place], growing=False)
            elif added is not None and add_special_tokens:
                merged.append(Encoding.of([added]), growing=False)
        return merged


def without_template(encodings: list[Encoding]) -> Encoding:
    """The same if there is no template. A single encoding stays as it is: then padding counts as its text."""
    if len(encodings) == 1:
        return encodings[0]
    merged = Encoding()
    for number, encoding in enumerate(encodings):
        encoding.number(number)
        merged.append(encoding, growing=False)
    return merged


def template_of(post_processor: Any) -> Template | None:
    """The template of a file; None if it has none. ModelError if something else is done to texts."""
    if post_processor is None:
        return None
    template: Template | None = None
    trims: bool | None = None
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
            if made is not None and template is not None:
                raise ModelError("post_processor is a Sequence with two templates, and one is possible here")
            template = template or made
        return replace(template or _plain(), keeps_prefix=trims)
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


def _plain() -> Template:
    """Nothing is put anywhere."""
    return Template([(0, None, 0)], [(0, None, 0), (1, None, 1)])


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
    none: list[int | None] = [None] * len(ids)
    source = Source.of(ids, (names, [(0, 0)] * len(ids), none))
    return None, run(source, type_id=type_id, special=1), 0
