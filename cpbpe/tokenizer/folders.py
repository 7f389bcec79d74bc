"""Loading a folder of transformers: its model, and what the files beside it say, see `formats.folder`.

The model is not read again: what is said beside it is appended to the bytes of its file, as the fields that
`with_special_tokens` and conversions write. So a folder loads about as fast as the model alone, and a folder
whose files say nothing new is the same as its model.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from cpbpe.engine.choice import calls_of_ours
from cpbpe.engine.protocol import Engine
from cpbpe.errors import ModelError
from cpbpe.lazy import imported
from cpbpe.model.files import in_folder, read_model_file
from cpbpe.model.formats.folder_reading import NAMED, FolderSettings, read_settings
from cpbpe.model.formats.registry import GPT2, JSON, MODEL, NO_HINTS, Hints, format_of
from cpbpe.model.spec import PLAIN, Carried, Pieces, PieceType
from cpbpe.text.utf8 import text_of
from cpbpe.tokenizer.facts import ModelFacts
from cpbpe.tokenizer.identity import facts_of, facts_of_spec
from cpbpe.tokenizer.options import ENCODE_DEFAULTS
from cpbpe.tokenizer.special_tokens import SpecialTokens, checked_tokens, special_ids

_ENDS = ("bos", "eos", "pad")
"""The parts that a model itself gives to CONTROL pieces."""
_PLACES = {"unk": 0, "bos": 1, "eos": 2, "pad": 3}


@dataclass(frozen=True)
class ReadFolder:
    """A folder, read."""

    facts: ModelFacts
    """The model, with what is said beside it."""
    differences: tuple[Any, ...] = ()
    """Why some texts get other ids than in the library whose format the model has."""
    notes: tuple[str, ...] = ()
    """What could not be kept."""
    files: dict[str, bytes] = field(default_factory=dict)
    """The file of the model, by its format."""


def read_folder(
    folder: str, *, allow_differences: bool = False, closely: bool = False, hints: Hints = NO_HINTS
) -> ReadFolder:
    """The model in a folder. `closely`: also compare it with the tokenizer.json beside it, slowly.

    `hints` are what a user says about a model whose file does not say it.
    """
    # 1. The model by itself.
    main = in_folder(folder)
    data = read_model_file(main)
    format = format_of(data)
    beside = read_settings(folder, os.path.basename(main))
    differences: tuple[Any, ...] = ()
    notes: list[str] = []
    if format is MODEL and not hints.name:
        facts = facts_of(data)
    else:
        known = _CLASSES.get(beside.tokenizer_class.removesuffix("Fast")) if format is GPT2 else None
        if known is not None and hints.pattern is None:
            hints = hints._replace(pattern=known.pattern)
        read = format.read(data, allow_differences=allow_differences, hints=hints)
        if known is not None:
            rules = replace(read.spec.normalizer, unicode_form=known.unicode_form)
            for text in beside.tokens.values():  # the class normalizes a text before it does anything else
                beside.flags[text] = (*beside.flags.get(text, ()), "normalized")
            read = replace(read, spec=replace(read.spec, normalizer=rules))
        for assumption in () if closely else read.assumptions:
            warnings.warn(f"{folder}: {assumption}", stacklevel=calls_of_ours())
        facts, differences = facts_of_spec(read.spec), read.differences
        notes += format.notes_of(read)
    # 2. What is said beside it.
    notes += beside.notes
    if format is GPT2 and beside.prefix_space:
        rules = facts.spec.normalizer
        rules = replace(rules, add_dummy_prefix=True, prefix_before_space=False)
        facts = facts_of_spec(replace(facts.spec, normalizer=rules, file=None))
    elif format is not MODEL and beside.prefix_space is not None:
        if beside.prefix_space != facts.spec.normalizer.add_dummy_prefix:
            notes.append("add_prefix_space is ignored: the tokenizer.json says what is in front of a text")
        beside.prefix_space = None
    if format is JSON and beside.is_legacy_lost:
        if facts.spec.normalizer.add_dummy_prefix and "prefix_after_special" not in facts.carried.options:
            notes.append(
                "its tokenizer.json puts a prefix after special tokens, and the class LlamaTokenizer of "
                "transformers 5 does not, because the option legacy=True was not saved; file_options follow "
                "the class"
            )
        beside.options["prefix_after_special"] = False
    joining = _Joined(facts, beside, notes, folder, is_json=format is JSON)
    joined = joining.facts()
    if joining.conflicts and not closely:
        warnings.warn(
            f"{folder}: {'; '.join(joining.conflicts)}; the model is followed",
            UserWarning,
            stacklevel=calls_of_ours(),
        )
    if closely and format is MODEL:
        notes += _compared(joined, folder)
    files = {format.name: joined.file if format is MODEL else data}
    return ReadFolder(joined, differences, tuple(dict.fromkeys(notes)), files)


class _Known(NamedTuple):
    """What a class of transformers does besides what is in `vocab.json` and `merges.txt`."""

    pattern: str
    """The name of its pattern."""
    unicode_form: str
    """The Unicode normal form that it brings texts into."""


_CLASSES = {"Qwen2Tokenizer": _Known("qwen2", "NFC")}
"""The classes whose models may be these two files."""


class _Joined:
    """A model and what is said beside it."""

    def __init__(
        self, facts: ModelFacts, beside: FolderSettings, notes: list[str], folder: str, *, is_json: bool
    ):
        self._before = facts
        self._engine: Engine = facts.engine
        self._beside = beside
        self._notes = notes
        self._folder = folder
        self._is_json = is_json
        self.conflicts: list[str] = []
        """What the files beside the model say that cannot be, because the model says something else."""

    def _note(self, note: str) -> None:
        self._notes.append(note)

    def _conflict(self, note: str) -> None:
        self._note(note)
        self.conflicts.append(note)

    def facts(self) -> ModelFacts:
        """Both together."""
        # 1. What changes the model: what CONTROL pieces are called; which of them are bos, eos and pad; and
        #    the dummy prefix.
        facts = self._before = self._renamed(self._before)
        if changes := self._changes():
            facts = facts_of(facts.file + changes)
            self._engine = facts.engine
        # 2. What is added to it.
        new = self._new_tokens(facts.special.added)
        try:
            checked = checked_tokens(facts.engine, facts.special, new)
        except ValueError as error:
            raise ModelError(f"{self._folder}: its {error}") from None
        file = facts.file
        model_file: Any = imported("cpbpe.model.formats.sentencepiece")
        if checked:
            file += model_file.added_fields(checked)
        flags = {**facts.carried.tokens, **self._flags(facts.special, checked)}
        special = SpecialTokens(facts.engine, {**facts.special.added, **checked}, flags)
        carried = replace(self._carried(facts.carried, special), tokens=flags)
        if carried != facts.carried:
            file += model_file.carried_field(carried)
        return facts if file is facts.file else ModelFacts(facts.engine, special, file)

    def _renamed(self, facts: ModelFacts) -> ModelFacts:
        """The model with the names of CONTROL pieces that its files say. No text has their ids."""
        engine, new = facts.engine, {}
        for id, text in self._beside.tokens.items():
            name = text.encode()
            if id >= engine.size or engine.kind(id) != PieceType.CONTROL or engine.piece(id) == name:
                continue
            if engine.find(name) is None and text not in facts.special.added and "\0" not in text:
                new[id] = name
                was = text_of(engine.piece(id))
                self._note(f"piece {id}, {was!r} in the model, is called {text!r}, as in the files beside it")
        if not new or len({*new.values()}) < len(new):
            return facts
        spec = facts.full_spec
        rows = [piece._replace(text=new.get(id, piece.text)) for id, piece in enumerate(spec.pieces)]
        named = {spec.pieces.texts[id]: name for id, name in new.items()}
        unk, bos, eos, pad = (named.get(name, name) for name in spec.special_pieces)
        spec = replace(spec, pieces=Pieces.of(rows), special_pieces=(unk, bos, eos, pad), file=None)
        facts = facts_of_spec(spec)
        self._engine = facts.engine
        return facts

    def _changes(self) -> bytes:
        names = {}
        for role in _ENDS:
            text = self._beside.roles.get(role)
            id = None if text is None else self._engine.find(text.encode())
            if text is None or id is None or self._model_has(role, id):
                continue
            if self._engine.kind(id) == PieceType.CONTROL:
                names[role] = text
        prefix = self._beside.prefix_space
        prefix = prefix if prefix is False and self._before.spec.normalizer.add_dummy_prefix else None
        if not names and prefix is None:
            return b""
        fields: bytes = imported("cpbpe.model.formats.sentencepiece").changed_fields(names, prefix)
        return fields

    def _model_has(self, role: str, id: int | None) -> bool:
        """Whether a piece has this part already."""
        return id is not None and self._engine.specials[_PLACES[role]] == id

    def _new_tokens(self, added: Mapping[str, int]) -> dict[str, int]:
        """The tokens that are not in the model yet, with their ids."""
        engine, beside = self._engine, self._beside
        new: dict[str, int] = {}
        taken = {id: text for text, id in added.items()}
        for id, text in sorted(beside.tokens.items()):
            found = engine.find(text.encode())
            if id < engine.size:
                piece = text_of(engine.piece(id))
                if piece != text:
                    self._conflict(f"piece {id} is {piece!r} in the model, and {text!r} in files beside it")
            elif found is not None:
                self._conflict(f"files beside the model give {text!r} the id {id}, and it is piece {found}")
            elif text in new or added.get(text, id) != id or taken.get(id, text) != text:
                self._conflict(f"files beside the model give {text!r} the id {id}; one of the two is taken")
            elif text not in added:
                new[text] = id
        # transformers gives ids to the others in this order, after all that there are.
        named = [beside.roles[role] for role in NAMED if role in beside.roles]
        others = [text for role, text in beside.roles.items() if role not in NAMED]
        free = max([engine.size - 1, *added.values(), *new.values()]) + 1
        for text in (*named, *others, *beside.extra):
            if text not in new and text not in added and engine.find(text.encode()) is None:
                new[text] = free
                free += 1
        return new

    def _flags(self, known: SpecialTokens, new: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
        """The flags of tokens, where they say more than what the model says by itself.

        A tokenizer.json that is the model says everything about the tokens that it has, but those with a part
        in the class (bos, pad and so on) are special, whatever it says.
        """
        engine, found = self._engine, {}
        if self._is_json:
            carried = self._before.carried.tokens
            for text in self._beside.roles.values():
                id = engine.find(text.encode())
                if PLAIN in carried.get(text, ()):
                    found[text] = tuple(flag for flag in carried[text] if flag != PLAIN)
                elif id is not None and engine.kind(id) == PieceType.USER_DEFINED:
                    found[text] = ()
        for text, flags in self._beside.flags.items():
            id = new.get(text, known.added.get(text))
            if id is None:
                id = engine.find(text.encode())
                if id is None or engine.kind(id) == PieceType.UNKNOWN:
                    continue
                is_special = engine.kind(id) == PieceType.CONTROL
            else:
                is_special = True
            if (flags or not is_special) and not (self._is_json and text not in new):
                found[text] = flags
        return found

    def _carried(self, own: Carried, special: SpecialTokens) -> Carried:
        """What is said beside the model. What goes without saying is left out."""
        beside = self._beside
        roles = {**own.roles, **beside.roles}
        ids = special_ids(self._engine, special.added)
        eos = roles.get("eos") or self._text(ids[_PLACES["eos"]], special)
        stops = dict.fromkeys(self._text(id, special) for id in beside.stops)
        for number, stop in enumerate((text for text in stops if text is not None and text != eos), 1):
            roles["stop" if number == 1 else f"stop_{number}"] = stop
        roles = {role: text for role, text in roles.items() if not self._says_nothing(role, text)}
        options = {**own.options, **beside.options}
        for end in ("bos", "eos"):
            text = beside.roles.get(end)
            if options.get(f"add_{end}") and (
                ids[_PLACES[end]] is None
                or (text is not None and text != self._text(ids[_PLACES[end]], special))
            ):
                del options[f"add_{end}"]
                self._conflict(
                    f"transformers puts {text or end!r} around texts, which is no CONTROL piece; "
                    f"add_{end} cannot do that, encode_parts can"
                )
        options = {
            name: value for name, value in options.items() if value != ENCODE_DEFAULTS.get(name, False)
        }
        return replace(
            own, options=options, roles=roles, chat_templates=beside.chat_templates or own.chat_templates
        )

    def _says_nothing(self, role: str, text: str) -> bool:
        """Whether the model itself says which token has this part."""
        return role in _PLACES and self._model_has(role, self._engine.find(text.encode()))

    def _text(self, id: int | None, special: SpecialTokens) -> str | None:
        if id is None:
            return None
        return text_of(self._engine.piece(id)) if 0 <= id < self._engine.size else special.texts.get(id)


def _compared(facts: ModelFacts, folder: str) -> list[str]:
    """What is said of a tokenizer.json beside the model that has other pieces."""
    try:
        with open(os.path.join(folder, "tokenizer.json"), "rb") as file:
            content = imported("json").loads(file.read())
        vocab = content["model"]["vocab"]
        ids = {id: text for text, id in vocab.items()}
        added = _added_ids(content)
        if not all(type(id) is int for id in ids):
            raise TypeError
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ["the tokenizer.json beside the model is not one of a BPE model; the model is read"]
    for id in sorted({*range(facts.engine.size), *ids}):
        piece = (
            text_of(facts.engine.piece(id)) if 0 <= id < facts.engine.size else facts.special.texts.get(id)
        )
        other = ids.get(id)
        if other is not None and other.removeprefix("\0") != piece and other != piece:
            shown = "none" if piece is None else repr(piece)
            return [
                f"the tokenizer.json beside the model is another vocabulary: {id} is {other!r} there, and "
                f"{shown} in the model, which is read"
            ]
        if other is None and id not in added:
            return [f"the tokenizer.json beside the model has no {piece!r} ({id}); the model is read"]
    return []


def _added_ids(content: Any) -> set[int]:
    tokens = content.get("added_tokens")
    return {token["id"] for token in tokens if isinstance(token, dict) and "id" in token} if tokens else set()
