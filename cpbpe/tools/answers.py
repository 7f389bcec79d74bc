"""The answers to what the page asks about models, as values that JSON has; they need no server.

A text of 100 KB has tens of thousands of tokens. To stay small, an answer has columns with a number for each
token, and the facts about each piece only once, however often it occurs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import regex

from cpbpe.lazy import kept
from cpbpe.reference.step_by_step import steps
from cpbpe.tokenizer.encoding import Encoding
from cpbpe.tokenizer.facts import ModelFacts
from cpbpe.tokenizer.tokenizer import Tokenizer
from cpbpe.tools.built import Builder, json_number

MAX_TEXT = 2_000_000
"""A longer text, in bytes of UTF-8, is refused."""
MAX_REPLAYED = 400
"""The merges of a longer text, in characters, are not replayed: the time is quadratic."""
MAX_SAMPLED = 2_000
"""A longer text, in characters, is not sampled."""
SAMPLES = 8
"""How many samples there are."""
MAX_FOUND = 200
"""A search lists this many pieces."""
_ID = re.compile(r"#?([0-9]{1,9})")
_SURROGATE = re.compile("[\ud800-\udfff]")
_PREFIX = {"model": None, "on": True, "off": False}
# The parts of a text where a grapheme cluster can have several characters: around every character beyond
# ASCII, and \r\n. Two other ASCII characters are never in one cluster.
_NEAR_OTHERS = r"(?:\p{ASCII}?\P{ASCII}+)+(?:\r\n|\p{ASCII})?|\r\n"


@dataclass(frozen=True)
class PageOptions:
    """The options that the page sets for encoding."""

    special: bool = False
    """Whether special tokens that the text spells out become their ids."""
    prefix: bool | None = None
    """Whether there is a dummy prefix; None: as the model says."""
    bos: bool = False
    """Whether the bos id is put in front."""
    eos: bool = False
    """Whether the eos id is put at the end."""

    @classmethod
    def read(cls, given: object) -> PageOptions:
        """Read the options that the page sends; ValueError if there is an unknown one."""
        if given is None:
            return cls()
        if not isinstance(given, Mapping):
            raise ValueError("options must be an object")
        for name, value in given.items():
            if name == "prefix":
                if not isinstance(value, str) or value not in _PREFIX:
                    raise ValueError("the option prefix must be model, on or off")
            elif name not in ("special", "bos", "eos"):
                raise ValueError("there are the options special, prefix, bos and eos")
            elif not isinstance(value, bool):
                raise ValueError(f"the option {name} must be true or false")
        flags = {name: given.get(name, False) for name in ("special", "bos", "eos")}
        return cls(prefix=_PREFIX[given.get("prefix", "model")], **flags)

    def of_calls(self) -> dict[str, Any]:
        """The options as arguments of a tokenizer's methods."""
        return {
            "add_bos": self.bos,
            "add_eos": self.eos,
            "prefix_space": self.prefix,
            "allowed_special": "all" if self.special else (),
        }


class Model:
    """A model on the page: a tokenizer with the name that the page shows."""

    def __init__(self, name: str, tok: Tokenizer):
        self.name = name
        self.tok = tok

    def about(self) -> dict[str, Any]:
        """What the page says about the model, whatever the text."""
        facts = self.tok.facts
        unk, bos, eos, _ = facts.special_ids
        return {
            "name": self.name,
            "summary": str(self.tok).partition(": ")[2].rstrip(">"),
            "size": self.tok.vocab_size,
            "bytes": facts.is_byte_level,
            "bos": bos is not None,
            "eos": eos is not None,
            "unk": unk,
            "special": len(facts.special.ids),
        }

    # --- A text -----------------------------------------------------------------------------------

    def encoding(self, text: str, options: PageOptions) -> Encoding:
        """The tokens of a text. (Spans are in characters, because the page counts these.)"""
        return self.tok.align(text, unit="char", **options.of_calls())

    def tokens(self, encoding: Encoding) -> dict[str, Any]:
        """The tokens of a text as columns, with the facts about their pieces."""
        text = str(encoding.text)
        size = len(text.encode())
        return {
            "ids": encoding.ids,
            "begins": [begin for begin, _ in encoding.offsets],
            "ends": [end for _, end in encoding.offsets],
            "joined": joined(encoding, self.tok.facts),
            "pieces": {str(id): self.piece(id) for id in sorted(set(encoding.ids))},
            "special": sorted(encoding.special),
            "counts": {"tokens": len(encoding), "characters": len(text), "bytes": size},
        }

    def piece(self, id: int) -> list[Any]:
        """A piece: its text, its type, its score, and in hexadecimal the bytes that it stands for."""
        facts = self.tok.facts
        if id >= facts.engine.size:
            return [facts.special.texts[id], "ADDED", 0.0, facts.bytes_of(id).hex()]
        type = self.tok.vocab.piece_type(id).name
        return [facts.piece(id), type, json_number(self.tok.vocab.score(id)), facts.bytes_of(id).hex()]

    def steps(self, text: str, options: PageOptions) -> dict[str, Any]:
        """The merges of a text one by one, each with the reason; or why they are not replayed."""
        if len(text) > MAX_REPLAYED:
            return {
                "error": f"The text has {len(text):,} characters; merges are replayed for up to "
                f"{MAX_REPLAYED}. Select a part of the text, and replay again."
            }
        spec = self.tok.spec
        if options.prefix is not None:
            spec = replace(spec, normalizer=replace(spec.normalizer, add_dummy_prefix=options.prefix))
        found = []
        begin: list[str] = []
        walls: list[int] = []
        ids: tuple[int, ...] = ()
        for step in steps(spec, text):
            if step.kind == "begin":
                begin = [step.show(symbol) for symbol in step.symbols]
                walls = [place for place in range(1, len(begin)) if step.between(place) != " "]
            elif step.kind == "end":
                ids = step.ids
            else:
                found.append(
                    {
                        "kind": step.kind,
                        "begin": step.begin,
                        "end": step.end,
                        "made": [step.show(symbol) for symbol in step.made],
                        "score": json_number(step.score),
                        "why": step.explained(),
                    }
                )
        return {"begin": begin, "walls": walls, "steps": found, "ids": list(ids)}

    def samples(self, text: str, options: PageOptions, alpha: float, seed: int) -> dict[str, Any]:
        """Several encodings of a text, with merges skipped at random (BPE-dropout)."""
        if len(text) > MAX_SAMPLED:
            return {
                "error": f"The text has {len(text):,} characters; samples are drawn of up to {MAX_SAMPLED:,}."
                " Select a part of the text, and sample again."
            }
        calls = options.of_calls()
        rows: list[tuple[int, list[int]]] = []
        for number in range(seed, seed + SAMPLES):
            ids = self.tok.encode(text, alpha=alpha, seed=number, **calls)
            rows.append((number, ids))
        used = sorted({id for _, ids in rows for id in ids})
        return {"samples": rows, "pieces": {str(id): self.piece(id) for id in used}}

    # --- The vocabulary ---------------------------------------------------------------------------

    def tree(self, id: int) -> dict[str, Any]:
        """How a piece is built."""
        size = self.tok.facts.engine.size
        if id >= size and id in self.tok.facts.special.texts:
            note = "It was added to the model, and is not built from its text."
            return {"id": id, "piece": self.piece(id), "roots": [], "note": note, "reachable": False}
        if not 0 <= id < size:
            raise ValueError(f"there is no id {id}; ids are from 0 to {size - 1}")
        return {"id": id, "piece": self.piece(id), **self._builder.tree(id)}

    def search(self, wanted: str) -> dict[str, Any]:
        """The pieces that contain a text, ignoring case. If the text is an id, its piece comes first."""
        wanted = wanted[:200]
        if not wanted:
            return {"found": [], "total": 0}
        found: list[int] = []
        number = _ID.fullmatch(wanted.strip())
        if number is not None and self.tok.vocab.get(int(number[1])) is not None:
            found.append(int(number[1]))
        keys = {wanted.casefold()}
        if not self.tok.facts.is_byte_level:
            keys.add(wanted.replace(" ", "▁").casefold())
        if not wanted.startswith("#"):
            matches = [id for id, text in self._texts if any(key in text for key in keys)]
            # The shortest first: of thousands of pieces with an "e", the user probably means `e`.
            matches.sort(key=lambda id: len(self.tok.facts.piece(id)))
            found += [id for id in matches if id not in found[:1]]
        return {
            "found": [[id, self.piece(id)] for id in found[:MAX_FOUND]],
            "total": len(found),
        }

    @kept
    def _builder(self) -> Builder:
        return Builder(self.tok.spec)

    @kept
    def _texts(self) -> list[tuple[int, str]]:
        """All pieces in lower case."""
        facts = self.tok.facts
        ids = [*range(facts.engine.size), *(id for id in facts.special.texts if id >= facts.engine.size)]
        return [(id, facts.piece(id).casefold()) for id in ids]


def models_of(tokenizers: Mapping[str, Tokenizer] | Iterable[Tokenizer] | Tokenizer) -> list[Model]:
    """The models of a page, by their names."""
    if isinstance(tokenizers, Tokenizer):
        tokenizers = [tokenizers]
    if isinstance(tokenizers, Mapping):
        # (Only the last part of a path, of any system: the page should not reveal folders of the machine.)
        paths = ((str(path).rstrip("/\\"), tok) for path, tok in tokenizers.items())
        named = [(re.split(r"[/\\]", path)[-1] or "model", tok) for path, tok in paths]
    else:
        named = [(f"model {number}", tok) for number, tok in enumerate(tokenizers, 1)]
    for _, tok in named:
        if not isinstance(tok, Tokenizer):
            raise TypeError(f"a page shows tokenizers, not {type(tok).__name__}; cpbpe.load(path) loads one")
    if not named:
        raise ValueError("there is no model to show; give at least one")
    seen: dict[str, int] = {}
    models = []
    for name, tok in named:
        seen[name] = seen.get(name, 0) + 1
        models.append(Model(name if seen[name] == 1 else f"{name} ({seen[name]})", tok))
    return models


def shown_text(text: str) -> str:
    """The text as the page shows it. Half a surrogate pair, which JavaScript allows, becomes U+FFFD."""
    text = _SURROGATE.sub("\ufffd", text)
    size = len(text.encode())
    if size > MAX_TEXT:
        raise ValueError(
            f"the text has {size:,} bytes, and the page takes {MAX_TEXT:,}; cpbpe encode has no limit"
        )
    return text


def compared(models: list[Model], text: str, options: PageOptions) -> dict[str, Any]:
    """What one or two models make of a text, and where they differ."""
    answers: list[dict[str, Any]] = []
    encodings = []
    for model in models:
        try:
            encoding = model.encoding(text, options)
        except ValueError as error:  # an option that this model cannot serve, for example bos
            answers.append({"error": str(error)})
            continue
        encodings.append(encoding)
        answers.append(model.tokens(encoding))
    spans = differing(*encodings) if len(encodings) == 2 else []
    return {"models": answers, "differing": spans}


# --- Tokens that are shown together ---------------------------------------------------------------


def joined(encoding: Encoding, facts: ModelFacts) -> list[int]:
    """The indices of tokens that are shown together with the token before, because both share a character.

    "Character" here means what readers see as one. A browser cannot colour half of 🦙, and it draws an accent
    away from its letter if a border separates them.

    >>> import cpbpe
    >>> tok = cpbpe.load("tokenizer.model")
    >>> joined(tok.align("Hi 🦙!"), tok.facts)
    [3, 4, 5]
    """
    text = str(encoding.text)
    inside = _inside(text)
    continues: dict[int, bool] = {}
    found = []
    for at in range(1, len(encoding.ids)):
        id, before = encoding.ids[at], encoding.ids[at - 1]
        if id in encoding.special or before in encoding.special:
            continue
        if id not in continues:
            first = facts.bytes_of(id)[:1]
            continues[id] = b"\x80" <= first < b"\xc0"
        begin = encoding.offsets[at][0]
        last_begin, last_end = encoding.offsets[at - 1]
        if continues[id] or begin in inside:
            found.append(at)
        elif last_begin == last_end == begin < len(text) and encoding.pieces[at - 1] not in ("▁", ""):
            found.append(at)  # the normalizer made several tokens of one character
    return found


def _inside(text: str) -> frozenset[int]:
    """The places inside characters as readers see them (grapheme clusters)."""
    if text.isascii() and "\r" not in text:
        return frozenset()
    cluster = regex.compile(r"\X")
    spans = (
        match.span()
        for part in regex.finditer(_NEAR_OTHERS, text)
        for match in cluster.finditer(text, part.start(), part.end())
    )
    return frozenset(place for begin, end in spans if end - begin > 1 for place in range(begin + 1, end))


# --- Where two models cut a text differently ------------------------------------------------------


def differing(one: Encoding, other: Encoding) -> list[tuple[int, int]]:
    """The spans of the text that two models cut differently. Both models cut at the ends of each span.

    Tokens around the text (bos, eos) and a dummy prefix are no difference.

    >>> import cpbpe
    >>> tok = cpbpe.load("tokenizer.model")
    >>> differing(tok.align("hello there"), tok.align("hello there", alpha=0.2, seed=0))
    [(0, 5)]
    """
    text = str(one.text)
    begins = [_begins(one), _begins(other)]
    cuts = [_cuts(one), _cuts(other)]
    common = sorted((cuts[0] & cuts[1]) | {0, len(text)})
    either = sorted(cuts[0] ^ cuts[1])
    # Between each common cut and the next: how many cuts only one model has, and how many tokens begin.
    alone, here, there = (np.diff(np.searchsorted(places, common)) for places in (either, *begins))
    found: list[tuple[int, int]] = []
    for at in np.flatnonzero((alone > 0) | (here != there)).tolist():
        begin, end = common[at : at + 2]
        if found and found[-1][1] == begin:
            found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
    return found


def _cuts(encoding: Encoding) -> set[int]:
    """Where tokens begin and end."""
    return {place for span in encoding.offsets for place in span}


def _begins(encoding: Encoding) -> list[int]:
    """The place where each token of the text begins."""
    tokens = zip(encoding.ids, encoding.pieces, encoding.offsets, strict=True)
    return sorted(
        begin
        for id, piece, (begin, end) in tokens
        if begin < end or (id not in encoding.special and piece != "▁")
    )
