"""What is put around texts: the post-processor of a tokenizer.json, which for these models is a template."""

from __future__ import annotations

from dataclasses import dataclass
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
                    runs.append(Run(source, 0, size, type_id))
                before, length = length, length + size
                ranges[place] = before, length
            elif added is not None and add_special_tokens:
                runs.append(added)
                length += added.length
        return Encoding.of(runs, ranges)

    def apply(self, encodings: list[Encoding], add_special_tokens: bool) -> Encoding:
        """One encoding of one or two, which become parts of it."""
        steps = self.pair if len(encodings) > 1 else self.single
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
    """The template of a file; None if it has none."""
    if post_processor is None:
        return None
    try:
        if post_processor["type"] != "TemplateProcessing":
            raise ModelError(
                f"post_processor is {post_processor['type']}, and only TemplateProcessing is possible here"
            )
        tokens = post_processor["special_tokens"]
        return Template(*(_steps(post_processor[name], tokens) for name in ("single", "pair")))
    except (KeyError, TypeError, AttributeError, IndexError):
        raise ModelError("post_processor is no TemplateProcessing as tokenizers writes it") from None


def _steps(parts: Any, tokens: Any) -> list[Step]:
    steps: list[Step] = []
    for part in parts:
        ((kind, fields),) = part.items()
        if kind == "Sequence":
            steps.append(("AB".index(fields["id"]), None, fields["type_id"]))
            continue
        token = tokens[fields["id"]]
        ids, names = list(token["ids"]), list(token["tokens"])
        none: list[int | None] = [None] * len(ids)
        source = Source.of(ids, (names, [(0, 0)] * len(ids), none))
        steps.append((None, run(source, type_id=fields["type_id"], special=1), 0))
    return steps
