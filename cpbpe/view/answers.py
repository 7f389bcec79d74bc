"""What the page asks about a model, answered with values that JSON has. No server is needed for it.

A text of 100 KB has tens of thousands of tokens. So an answer has columns, with a number for each token, and
what is known about a piece is in it once, however often the piece occurs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from cpbpe.lazy import kept
from cpbpe.model.spec import ModelSpec
from cpbpe.tokenizer.encoding import Encoding
from cpbpe.tokenizer.tokenizer import Tokenizer
from cpbpe.view.clusters import joined
from cpbpe.view.options import PageOptions
from cpbpe.view.trees import Trees

MAX_TEXT = 2_000_000
"""A longer text, in bytes of UTF-8, is refused."""
MAX_REPLAYED = 400
"""The merges of a longer text, in characters, are not replayed: the time is quadratic."""
MAX_SAMPLED = 2_000
"""A longer text, in characters, is not sampled."""
SAMPLES = 8
"""How many samples there are."""
MAX_FOUND = 200
"""This many pieces are listed that a search finds."""
_ID = re.compile(r"#?([0-9]{1,9})")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Model:
    """A model of the page: a tokenizer with the name that the page shows."""

    def __init__(self, name: str, tok: Tokenizer):
        self.name = name
        self.tok = tok

    def about(self) -> dict[str, Any]:
        """What the page says about the model before there is a text."""
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
        """The tokens of a text. (The page counts characters, so it is aligned in characters.)"""
        return self.tok.align(text, unit="char", **options.of_calls())

    def tokens(self, encoding: Encoding) -> dict[str, Any]:
        """The tokens of a text as columns, and what is known about their pieces."""
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
        return [facts.piece(id), type, _number(self.tok.vocab.score(id)), facts.bytes_of(id).hex()]

    def steps(self, text: str, options: PageOptions) -> dict[str, Any]:
        """The merges of a text one by one, each with the reason; or why they are not replayed."""
        from cpbpe.reference.replay import steps

        if len(text) > MAX_REPLAYED:
            return {
                "error": f"The text has {len(text):,} characters; merges are replayed for up to "
                f"{MAX_REPLAYED}. Select a part of the text, and replay again."
            }
        spec = self._spec
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
                        "score": _number(step.score),
                        "why": step.explained(),
                    }
                )
        return {"begin": begin, "walls": walls, "steps": found, "ids": list(ids)}

    def samples(self, text: str, options: PageOptions, alpha: float, seed: int) -> dict[str, Any]:
        """Several ways to cut a text, with merges skipped at random (BPE-dropout)."""
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
        return {"id": id, "piece": self.piece(id), **self._trees.tree(id)}

    def search(self, wanted: str) -> dict[str, Any]:
        """The pieces that contain a text, whatever the case; or the piece with an id."""
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
            # The shortest first: of thousands of pieces with an "e", `e` is the one that was meant.
            matches.sort(key=lambda id: len(self.tok.facts.piece(id)))
            found += [id for id in matches if id not in found[:1]]
        return {
            "found": [[id, self.piece(id)] for id in found[:MAX_FOUND]],
            "total": len(found),
        }

    @kept
    def _spec(self) -> ModelSpec:
        return self.tok.spec

    @kept
    def _trees(self) -> Trees:
        return Trees(self._spec)

    @kept
    def _texts(self) -> list[tuple[int, str]]:
        """All pieces in lower case."""
        facts = self.tok.facts
        added = [(id, text.casefold()) for id, text in facts.special.texts.items() if id >= facts.engine.size]
        return [
            *((id, piece.casefold()) for id, piece in enumerate(facts.pieces[: facts.engine.size])),
            *added,
        ]


def models_of(tokenizers: Mapping[str, Tokenizer] | Iterable[Tokenizer] | Tokenizer) -> list[Model]:
    """The models of a page, by their names. Of a path only the last part is shown."""
    if isinstance(tokenizers, Tokenizer):
        tokenizers = [tokenizers]
    if isinstance(tokenizers, Mapping):
        named = [(_last(str(name)), tok) for name, tok in tokenizers.items()]
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


def _last(path: str) -> str:
    """The last part of a path of any system: where it is on the machine is nobody's business."""
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1] or "model"


def shown_text(text: str) -> str:
    """The text as the page shows it: half a character, which JavaScript can have, becomes U+FFFD."""
    text = _SURROGATE.sub("\ufffd", text)
    size = len(text.encode())
    if size > MAX_TEXT:
        raise ValueError(
            f"the text has {size:,} bytes, and the page takes {MAX_TEXT:,}; cpbpe encode has no limit"
        )
    return text


def compared(models: list[Model], text: str, options: PageOptions) -> dict[str, Any]:
    """What one or two models make of a text, and where they differ."""
    from cpbpe.view.differences import differing

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


def _number(score: float | None) -> float | str | None:
    """A score; as a text if JSON has no such number."""
    if score is None or abs(score) < float("inf"):
        return score
    return str(score)
