"""Loading a folder of transformers: its model, and what the files beside it say (see `folder_reading`).

Some of what they say changes the model itself: other names of CONTROL pieces, other bos, eos and pad pieces,
no dummy prefix. Such changes are made before the engine is built. A `.model` file is the exception: the core
reads one in a tenth of the time that Python takes, so its engine is built first, and again only if there are
such changes. Everything else (added tokens, their flags, options, templates) changes no engine. So a folder
loads about as fast as its model alone, and if its files say nothing new, the result is the same.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import NamedTuple

from cpbpe.engine.choice import calls_of_ours
from cpbpe.engine.protocol import Engine
from cpbpe.errors import ModelError
from cpbpe.lazy import importing
from cpbpe.model.files import in_folder, read_model_file
from cpbpe.model.formats.folder_reading import (
    CONFIG,
    NAMED,
    TOKENIZER,
    WITH_METASPACE,
    FolderSettings,
    json_head,
    read_settings,
)
from cpbpe.model.formats.registry import GPT2, JSON, MODEL, NO_HINTS, Format, Hints, format_of
from cpbpe.model.formats.values import Difference, ReadModel
from cpbpe.model.spec import PLAIN, Carried, ModelSpec, Pieces, PieceType
from cpbpe.text.split_patterns import PATTERNS
from cpbpe.text.utf8 import text_of
from cpbpe.tokenizer.facts import ModelFacts
from cpbpe.tokenizer.identity import facts_of, facts_of_read, facts_of_spec, facts_with, warn_of
from cpbpe.tokenizer.options import ENCODE_DEFAULTS
from cpbpe.tokenizer.special_tokens import SpecialTokens, checked_tokens, special_ids

_PLACES = {"unk": 0, "bos": 1, "eos": 2, "pad": 3}
"""The index of each special piece in what engines and specs list."""


@dataclass(frozen=True)
class ReadFolder:
    """A folder, read."""

    facts: ModelFacts
    """The model, with what the files beside it say."""
    differences: tuple[Difference, ...] = ()
    """Why some texts get other ids than in the library whose format the model has."""
    notes: tuple[str, ...] = ()
    """What could not be kept, what was changed in the model, and where the files contradict each other."""
    files: dict[str, bytes] = field(default_factory=dict)
    """The file of the model, by its format."""


def read_folder(
    folder: str, *, allow_differences: bool = False, closely: bool = False, hints: Hints = NO_HINTS
) -> ReadFolder:
    """The model in a folder. `hints` are what a user says about a model whose file does not say it.

    `closely`: whether to compare it with a tokenizer.json beside it, which is slow. There are no warnings
    then, because callers that ask for this show the notes.
    """
    # 1. The model, with the changes that the files beside it make.
    main = in_folder(folder)
    data = read_model_file(main)
    format = format_of(data)
    beside = read_settings(folder, os.path.basename(main))
    if format is MODEL and beside.tokenizer_class in _OTHER_IDS:
        raise ModelError(
            f"{main}: {beside.tokenizer_class} of transformers does not give the ids of this model, but "
            f"higher ones. For these, load a tokenizer.json (transformers writes one if it loads the folder "
            f"and saves it again). For the model's own, load this file instead of the folder"
        )
    if format is JSON and beside.fixes_pattern:
        data = _with_fixed_pattern(data)
    if format is JSON:
        data = _with_tokens(data, beside)
    notes, conflicts = list(beside.notes), list[str]()
    differences: tuple[Difference, ...] = ()
    if format is MODEL and not hints.name:
        facts = _changed(facts_of(data), beside, notes)
    else:
        read = _read(data, format, beside, hints, allow_differences)
        if format is JSON and _has_other_prefix(read.spec, beside):
            data = _with_prefix(data, bool(beside.prefix_space))
            read = _read(data, format, beside, hints, allow_differences)
        if format is JSON and _is_rebuilt(read.spec, beside):
            _note_rebuilt(folder, beside, warns=not closely)
        if not closely:
            warn_of(read, f"{folder}: ")
        differences = read.differences
        notes = [*format.notes_of(read), *beside.notes]
        facts = facts_of_read(_changed_spec(read.spec, format, beside, notes))
    # 2. Everything else that these files say.
    joined = _Joining(facts, beside, notes, conflicts, is_json=format is JSON).joined(folder)
    if conflicts and not closely:
        problem = f"{folder}: {'; '.join(conflicts)}; the model is followed"
        warnings.warn(problem, UserWarning, stacklevel=calls_of_ours())
    if closely and format is MODEL:
        notes += _compared(joined, beside, folder)
    files = {format.name: joined.file if format is MODEL else data}
    return ReadFolder(joined, differences, tuple(dict.fromkeys(notes)), files)


# --- What changes the model -----------------------------------------------------------------------


class _Class(NamedTuple):
    """What a class of transformers does that `vocab.json` and `merges.txt` do not say."""

    bos: str | None = None
    """The token that is bos, unless a file says something else; "" if there is none."""
    eos: str | None = None
    around: tuple[str, str] | None = None
    """The roles of the tokens that it puts in front of every text, and at its end; "" where it puts none."""
    pattern: str | None = None
    """The name of the pattern, if it is not GPT-2's."""
    form: str | None = None
    """The Unicode normal form that it brings texts into."""


_OF_ROBERTA = ("RobertaTokenizer", "BartTokenizer", "LEDTokenizer", "LongformerTokenizer", "MvpTokenizer")
_CLASSES = {
    **dict.fromkeys(("", "PreTrainedTokenizer", "TokenizersBackend"), _Class()),
    **dict.fromkeys(("GPT2Tokenizer", "CodeGenTokenizer"), _Class("<|endoftext|>", "<|endoftext|>")),
    "Qwen2Tokenizer": _Class("", "<|endoftext|>", pattern="qwen2", form="NFC"),
    **dict.fromkeys(_OF_ROBERTA, _Class("<s>", "</s>", around=("cls", "sep"))),
    "DebertaTokenizer": _Class("[CLS]", "[SEP]", around=("cls", "sep")),
}
"""The classes whose models may consist of `vocab.json` and `merges.txt` alone."""
_AROUND = {**_CLASSES, "CodeLlamaTokenizer": _Class("<s>", around=("bos", ""))}
"""Those that put tokens around texts, whatever a tokenizer.json and add_bos_token say, and others."""


_OTHER_IDS = {
    *("NllbTokenizer", "SeamlessM4TTokenizer", "MBartTokenizer", "MBart50Tokenizer", "PLBartTokenizer"),
    *("XGLMTokenizer", "XLMRobertaTokenizer", "LayoutXLMTokenizer", "MLukeTokenizer", "CamembertTokenizer"),
    "BartphoTokenizer",
}
"""The classes that do not give the ids of their `.model`: in fairseq, special tokens come first."""


_FIXED = 100_000
"""Only a tokenizer.json with more tokens than this gets another pattern."""


def _with_fixed_pattern(data: bytes) -> bytes:
    """A tokenizer.json as transformers changes it if a file beside it says `fix_mistral_regex`."""
    with importing:
        from cpbpe.model.formats.tokenizer_json.added import listed
        from cpbpe.model.formats.tokenizer_json.steps import FILE
    content = FILE.parsed(data, unique=True)
    vocab = FILE.member(FILE.member(content, "model", dict, ""), "vocab", dict, "model")
    step = content.get("pre_tokenizer")
    tokens = {*vocab, *(text for _, _, text, _ in listed(content.get("added_tokens"), vocab))}
    if len(tokens) <= _FIXED or step is None:
        return data
    if not isinstance(step, dict) or step.get("type") != "Sequence" or not step.get("pretokenizers"):
        FILE.wrong(f"fix_mistral_regex in {CONFIG} is for a pre-tokenizer of several steps; remove it there")
    pattern = {"Regex": PATTERNS["tekken"]}
    split = {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}
    FILE.typed(step["pretokenizers"], list, "pre_tokenizer.pretokenizers")[0] = split
    return json.dumps(content).encode()


def _with_tokens(data: bytes, beside: FolderSettings) -> bytes:
    """A tokenizer.json with the tokens that the files beside it list by id: from now on, it says it all."""
    with importing:
        from cpbpe.model.formats.tokenizer_json.added import with_entries
        from cpbpe.model.formats.tokenizer_json.steps import FILE
    listed = dict(beside.tokens)
    beside.tokens.clear()
    if not listed:
        return data
    try:
        own = json_head(BytesIO(data)).get("added_tokens") or []
        by_id = {token["id"]: token for token in own if isinstance(token["content"], str)}
    except (ValueError, TypeError, KeyError):
        return data  # the reader says what is wrong
    if not all(type(id) is int for id in by_id) or len(by_id) < len(own):
        return data
    special = {*beside.roles.values(), *beside.extra}
    entries = {
        id: {"content": token, "special": token in special} if isinstance(token, str) else token
        for id, token in beside.entries.items()
    }
    if not beside.has_decoder:  # then transformers adds the file's own tokens to the list
        entries |= by_id
    tokens = with_entries(own, entries)
    if tokens == own:
        return data
    content = FILE.parsed(data, unique=True)
    vocab = FILE.member(FILE.member(content, "model", dict, ""), "vocab", dict, "model")
    free = max(len(vocab) - 1, *by_id, -1) + 1
    has_gaps = free > len({*vocab, *(token["content"] for token in own)})
    for token in tokens:
        if token["id"] < 0:
            token["id"] = vocab.get(token["content"], free)
            if token["id"] == free and has_gaps:  # then all tokens are in the vocabulary, see `in_gaps`
                vocab[token["content"]] = free
            free += token["id"] == free
    ids = {token["content"]: token["id"] for token in tokens}
    for id, text in listed.items():
        if ids.get(text, id) != id:
            beside.notes.append(
                f"the files beside it give {text!r} the id {id}, and transformers {ids[text]}"
            )
    content["added_tokens"] = tokens
    return json.dumps(content).encode()


_WITH_PREFIX = ("BlenderbotTokenizer",)
_OF_GPT2 = ("GPT2Tokenizer", "CodeGenTokenizer", "DebertaTokenizer", *_OF_ROBERTA, *_WITH_PREFIX)
_PARTS = {
    **dict.fromkeys(_OF_GPT2, "gpt-2"),
    "GPTNeoXTokenizer": "olmo",
    "Qwen2Tokenizer": "qwen2",
    "Qwen3_5Tokenizer": "qwen35",
    "CohereTokenizer": "command-r",
}
"""The byte-level classes of transformers 5 that make the normalizer and the pre-tokenizer themselves, and
follow `add_prefix_space`, whatever a tokenizer.json says. The names are those in `llamacpp.KNOWN`. If no file
says `add_prefix_space`, it is false, except in `_WITH_PREFIX`."""
_WITHOUT_PREFIX = ("GemmaTokenizer", "Siglip2Tokenizer")
"""The classes for character-level models that put nothing in front of texts."""
_OF_THEIR_OWN = {
    *_OTHER_IDS,
    *("BertTokenizer", "ByT5Tokenizer", "CLIPTokenizer", "CanineTokenizer", "ConvBertTokenizer"),
    *("DPRContextEncoderTokenizer", "DPRQuestionEncoderTokenizer", "DPRReaderTokenizer", "DiaTokenizer"),
    *("DistilBertTokenizer", "EsmcTokenizer", "FNetTokenizer", "FunnelTokenizer", "HerbertTokenizer"),
    *("LayoutLMv2Tokenizer", "LayoutLMv3Tokenizer", "LukeTokenizer", "LxmertTokenizer", "MPNetTokenizer"),
    *("MobileBertTokenizer", "NougatTokenizer", "OpenAIGPTTokenizer", "ParakeetTokenizer"),
    *("PerceiverTokenizer", "RagTokenizer", "ReformerTokenizer", "SplinterTokenizer"),
    *("SqueezeBertTokenizer", "Tipsv2Tokenizer", "WhisperTokenizer"),
}
"""Other classes that load a tokenizer.json and make something of their own of it."""


def _is_rebuilt(spec: ModelSpec, beside: FolderSettings) -> bool:
    """Whether the class makes other parts of a tokenizer.json in transformers 5 than the file has."""
    name, rules = beside.class_used, spec.normalizer
    if name in _PARTS:
        with importing:
            from cpbpe.model.formats.gguf.llamacpp import KNOWN
        known = KNOWN[_PARTS[name]]
        is_other = spec.patterns != known.splitter.patterns or rules.unicode_form != known.form
        return is_other or spec.alphabet != "bytes"
    if name in WITH_METASPACE or name in _WITHOUT_PREFIX:
        # There is no space in front of a text that begins with one, if Metaspace puts it there.
        prefix = name in WITH_METASPACE and beside.prefix_space is not False
        is_other = rules.add_dummy_prefix != prefix or (prefix and rules.prefix_before_space)
        # (If a file names Llama's class, it is not used for a byte-level tokenizer.json.)
        return is_other if spec.alphabet == "characters" else beside.is_of_kind or name != "LlamaTokenizer"
    return name in _OF_THEIR_OWN


def _rebuilt(beside: FolderSettings) -> str:
    others = "perhaps other ones" if beside.class_used in _OF_THEIR_OWN else "other ones"
    return (
        f"the class {beside.class_used} of transformers 5 makes the normalizer and the pre-tokenizer anew, "
        f"and {others} than those in this file, so ids can differ"
    )


def _note_rebuilt(folder: str, beside: FolderSettings, *, warns: bool) -> None:
    """Say that the class makes other parts."""
    note = (
        f"tokenizer.json is followed, but {_rebuilt(beside)}. To follow the file there, too, set "
        f"tokenizer_class to PreTrainedTokenizerFast in {CONFIG}. To follow the class here, load the folder "
        f"with transformers and save it again"
    )
    beside.notes.append(note)
    if warns:
        warnings.warn(f"{folder}: {note}", UserWarning, stacklevel=calls_of_ours())


def _has_other_prefix(spec: ModelSpec, beside: FolderSettings) -> bool:
    """Whether the class and the tokenizer.json do not agree on a space in front of texts."""
    if spec.alphabet != "bytes" or beside.class_used not in _PARTS:
        return False
    if beside.prefix_space is None:
        beside.prefix_space = beside.class_used in _WITH_PREFIX
    return spec.normalizer.add_dummy_prefix != beside.prefix_space


def _with_prefix(data: bytes, prefix: bool) -> bytes:
    """A byte-level tokenizer.json with a space in front of texts, or without one."""
    with importing:
        from cpbpe.model.formats.tokenizer_json.steps import FILE, steps_of
    content = FILE.parsed(data)
    for step in steps_of(content.get("pre_tokenizer"), "pretokenizers", "pre_tokenizer"):
        if step.get("type") == "ByteLevel":
            step["add_prefix_space"] = prefix
    return json.dumps(content).encode()


def _read(
    data: bytes, format: Format, beside: FolderSettings, hints: Hints, allow_differences: bool
) -> ReadModel:
    """The model in a file that is no `.model`."""
    known = _known(beside, hints) if format is GPT2 else None
    if known is not None and hints.pattern is None:
        hints = hints._replace(pattern=known.pattern)
    read = format.read(data, allow_differences=allow_differences, hints=hints)
    if format is JSON:
        asked = read.spec.carried.options
        _, bos, eos, _ = map(text_of, read.spec.special_pieces)
        first, last = bos if asked.get("add_bos") else None, eos if asked.get("add_eos") else None
        beside.follow_tokenizer_json(first, last)
        if (of_class := _AROUND.get(beside.class_used)) and of_class.around:
            _put_around(beside, of_class)
            if [first, last] != [beside.around.get(end) for end in ("bos", "eos")]:
                beside.notes.append(
                    f"file_options put around texts what the class {beside.class_used} of transformers 5 "
                    f"does, and not what tokenizer.json says"
                )
    if known is None or known.form is None:
        return read
    for text in beside.tokens.values():  # the class normalizes a text before it does anything else
        beside.flags[text] = (*beside.flags.get(text, ()), "normalized")
    rules = replace(read.spec.normalizer, unicode_form=known.form)
    return replace(read, spec=replace(read.spec, normalizer=rules))


def _known(beside: FolderSettings, hints: Hints) -> _Class | None:
    """The class of a folder with two files, whose bos and eos become known. None if it is not among
    `_CLASSES`, and a user says the pattern.
    """
    name = beside.tokenizer_class
    known = _CLASSES.get(name)
    if known is None:
        if hints.pattern is not None:
            return None
        with importing:
            from cpbpe.spelling import named
        raise ModelError(
            f"the folder is for the class {name} of transformers, which may do more with vocab.json and "
            f"merges.txt than GPT-2's does (other cuts, a normal form, tokens around texts). Load the folder "
            f"with transformers and save it again, which writes a tokenizer.json. Or give "
            f"{named('pattern')}, to read the files as byte-level BPE with this pattern and nothing more"
        )
    if known.pattern and beside.prefix_space:
        raise ModelError(
            f"add_prefix_space in {CONFIG} makes {name} put a space in front of each part of a text that its "
            f"pattern cuts, and byte-level models have one only in front of a text; remove it there"
        )
    for end, text in (("bos", known.bos), ("eos", known.eos)):
        if text is not None:
            beside.roles.setdefault(end, text)
            if not known.around and not beside.roles[end]:
                beside.options.pop(f"add_{end}", None)
    if known.around:
        _put_around(beside, known)
    return known


def _put_around(beside: FolderSettings, known: _Class) -> None:
    """Put the tokens around texts that a class puts there."""
    for end, text, role in zip(("bos", "eos"), (known.bos, known.eos), known.around or (), strict=False):
        beside.options[f"add_{end}"] = bool(role)
        beside.around.pop(end, None)
        if role:
            beside.around[end] = beside.roles.get(role) or text or ""


def _changed_spec(spec: ModelSpec, format: Format, beside: FolderSettings, notes: list[str]) -> ModelSpec:
    """A model with the changes that the files beside it make."""
    rules = spec.normalizer
    if format is GPT2 and beside.prefix_space:
        rules = replace(rules, add_dummy_prefix=True, prefix_before_space=False)
    elif beside.prefix_space not in (None, rules.add_dummy_prefix):
        notes.append("add_prefix_space is ignored: the file of the model says what is in front of a text")
    if format is JSON and "prefix_after_special" in beside.options:
        _follow_after_special(spec, beside, notes)
    if names := _other_names(_SpecPieces(spec), beside, {text_of(text) for text, _ in spec.added}, notes):
        spec = _renamed(spec, names)
    unk, *pieces = spec.special_pieces
    roles = _other_roles(_SpecPieces(spec), beside)
    bos, eos, pad = (roles.get(role, name) for role, name in zip(("bos", "eos", "pad"), pieces, strict=True))
    return replace(spec, normalizer=rules, special_pieces=(unk, bos, eos, pad))


def _follow_after_special(spec: ModelSpec, beside: FolderSettings, notes: list[str]) -> None:
    """Whether text after a special token gets a prefix is what the class says, and not the tokenizer.json."""
    own = spec.carried.options.get("prefix_after_special", True)
    wanted = beside.options["prefix_after_special"]
    if spec.alphabet == "bytes":  # then transformers takes another class
        del beside.options["prefix_after_special"]
    elif spec.normalizer.add_dummy_prefix and own != wanted:
        notes.append(
            f"its tokenizer.json puts {'a' if own else 'no'} prefix after special tokens, and the class "
            f"{beside.class_used} of transformers 5 {'does' if wanted else 'does not'}, because legacy=True "
            f"{'is' if wanted else 'was not'} saved; file_options follow the class"
        )


def _changed(facts: ModelFacts, beside: FolderSettings, notes: list[str]) -> ModelFacts:
    """The same for the model of a `.model` file."""
    if names := _other_names(facts.engine, beside, facts.special.added, notes):
        facts = facts_of_spec(_renamed(facts.full_spec, names))
    roles = _other_roles(facts.engine, beside)
    loses_prefix = beside.prefix_space is False and facts.spec.normalizer.add_dummy_prefix
    if not roles and not loses_prefix:
        return facts
    with importing:
        from cpbpe.model.formats.sentencepiece import changed_fields
    return facts_of(facts.file + changed_fields(roles, False if loses_prefix else None))


class _SpecPieces:
    """The pieces of a spec, as engines show those of a model."""

    def __init__(self, spec: ModelSpec):
        self.size = len(spec.pieces)
        self.kind = spec.pieces.types.__getitem__
        self.piece = spec.pieces.texts.__getitem__
        self.find = spec.ids.get
        self.specials = [spec.unk_id, spec.bos_id, spec.eos_id, spec.pad_id]


def _other_names(
    pieces: Engine | _SpecPieces, beside: FolderSettings, added: Container[str], notes: list[str]
) -> dict[int, bytes]:
    """The names of CONTROL pieces, by id, that differ in the files from those in the model."""
    new, said = dict[int, bytes](), []
    for id, text in beside.tokens.items():
        name = text.encode()
        if id >= pieces.size or pieces.kind(id) != PieceType.CONTROL or pieces.piece(id) == name:
            continue
        if pieces.find(name) is None and text not in added and "\0" not in text:
            new[id] = name
            was = text_of(pieces.piece(id))
            said.append(f"piece {id}, {was!r} in the model, is called {text!r}, as in the files beside it")
    if len({*new.values()}) < len(new):  # two of them would be the same
        return {}
    notes += said
    return new


def _renamed(spec: ModelSpec, names: Mapping[int, bytes]) -> ModelSpec:
    """The model with these names of CONTROL pieces. No ids change, because no text yields these pieces."""
    rows = [piece._replace(text=names.get(id, piece.text)) for id, piece in enumerate(spec.pieces)]
    named = {spec.pieces.texts[id]: name for id, name in names.items()}
    unk, bos, eos, pad = (named.get(name, name) for name in spec.special_pieces)
    return replace(spec, pieces=Pieces.of(rows), special_pieces=(unk, bos, eos, pad), file=None)


def _other_roles(pieces: Engine | _SpecPieces, beside: FolderSettings) -> dict[str, bytes]:
    """The CONTROL pieces that are bos, eos and pad in the files, where the model says something else."""
    roles = {role: beside.roles[role].encode() for role in ("bos", "eos", "pad") if role in beside.roles}
    ids = {role: pieces.find(name) for role, name in roles.items()}
    return {
        role: roles[role]
        for role, id in ids.items()
        if id is not None and pieces.specials[_PLACES[role]] != id and pieces.kind(id) == PieceType.CONTROL
    }


# --- What else the files say ----------------------------------------------------------------------


class _Joining:
    """Joins a model with what the files beside it say."""

    def __init__(
        self,
        facts: ModelFacts,
        beside: FolderSettings,
        notes: list[str],
        conflicts: list[str],
        *,
        is_json: bool,
    ):
        """`conflicts` is extended by what the files say that contradicts the model."""
        self._facts = facts
        self._engine = facts.engine
        self._beside = beside
        self._notes = notes
        self._conflicts = conflicts
        self._is_json = is_json

    def _conflict(self, note: str) -> None:
        self._notes.append(note)
        self._conflicts.append(note)

    def joined(self, folder: str) -> ModelFacts:
        """The model with what the files beside it say."""
        facts = self._facts
        try:
            new = checked_tokens(facts.engine, facts.special, self._new_tokens(facts.special.added))
        except ValueError as error:
            raise ModelError(f"{folder}: its {error}") from None
        flags = {**facts.carried.tokens, **self._flags(facts.special, new)}
        special = SpecialTokens(facts.engine, {**facts.special.added, **new}, flags)
        carried = replace(self._carried(facts.carried, special), tokens=flags)
        if not new and carried == facts.carried:
            return facts
        return facts_with(facts, new, None if carried == facts.carried else carried)

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
        # transformers gives the next free ids to the tokens without one, in this order.
        named = [beside.roles.get(role, "") for role in NAMED]
        others = [text for role, text in beside.roles.items() if role not in NAMED]
        free = max([engine.size - 1, *added.values(), *new.values()]) + 1
        for text in (*named, *others, *beside.extra):
            if text and text not in new and text not in added and engine.find(text.encode()) is None:
                new[text] = free
                free += 1
        return new

    def _flags(self, known: SpecialTokens, new: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
        """The flags of tokens, where they say more than the model.

        If the model is a tokenizer.json, it says everything about the tokens that it has, with one exception:
        tokens with a role in the class (bos, pad and so on) are special, whatever it says.
        """
        engine, found = self._engine, {}
        if self._is_json:
            carried = self._facts.carried.tokens
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
        """What the files beside the model say, without defaults and what the model says itself."""
        beside = self._beside
        roles = {**own.roles, **beside.roles}
        ids = special_ids(self._engine, special.added)
        eos = roles.get("eos") or _name(self._engine, special, ids[_PLACES["eos"]])
        stops = dict.fromkeys(_name(self._engine, special, id) for id in beside.stops)
        for number, stop in enumerate((text for text in stops if text is not None and text != eos), 1):
            roles["stop" if number == 1 else f"stop_{number}"] = stop
        own_ids = self._engine.specials  # what the model itself says is left out
        ids_of = {role: self._engine.find(text.encode()) for role, text in roles.items() if role in _PLACES}
        for role, id in ids_of.items():
            if id is not None and own_ids[_PLACES[role]] == id:
                del roles[role]
        filled = {role for role, id in zip(_PLACES, ids, strict=True) if id is not None}
        roles = {role: text for role, text in roles.items() if text or role in filled}
        options = {**own.options, **beside.options}
        for end, place in (("bos", "in front"), ("eos", "at the end")):
            name = _name(self._engine, special, ids[_PLACES[end]])
            wanted = beside.around.get(end) or beside.roles.get(end) or name
            if options.get(f"add_{end}") and (name is None or name != wanted):
                del options[f"add_{end}"]
                is_role = name is not None and end in beside.around
                why = f"{end} is {name!r}" if is_role else "that is no CONTROL piece"
                self._conflict(
                    f"transformers puts {wanted or end!r} {place} of texts, and {why}; add_{end} cannot do "
                    f"that, encode_parts can"
                )
        options = {
            name: value for name, value in options.items() if value != ENCODE_DEFAULTS.get(name, False)
        }
        return replace(
            own, options=options, roles=roles, chat_templates=beside.chat_templates or own.chat_templates
        )


def _name(engine: Engine, special: SpecialTokens, id: int | None) -> str | None:
    """The piece or added token of an id; None if the id is not in use."""
    if id is None:
        return None
    return text_of(engine.piece(id)) if 0 <= id < engine.size else special.texts.get(id)


def _compared(facts: ModelFacts, beside: FolderSettings, folder: str) -> list[str]:
    """Notes if a tokenizer.json beside the model has other pieces, or gives texts other ids."""
    try:
        with open(os.path.join(folder, TOKENIZER), "rb") as file:
            data = file.read()
        content = json.loads(data)
        vocab = content["model"]["vocab"]
        ids = {id: text for text, id in vocab.items()}
        tokens = content.get("added_tokens") or ()
        added = {token["id"] for token in tokens if isinstance(token, dict) and "id" in token}
        if not all(type(id) is int for id in ids):
            raise TypeError
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ["the tokenizer.json beside the model is not one of a BPE model; the model is read"]
    for id in sorted({*range(facts.engine.size), *ids}):
        piece = _name(facts.engine, facts.special, id)
        other = ids.get(id)
        # (NUL is in front of the names of tokens that must not be found in texts, see HIDDEN in steps.py.)
        if other is not None and other.removeprefix("\0") != piece and other != piece:
            shown = "none" if piece is None else repr(piece)
            return [
                f"the tokenizer.json beside the model is another vocabulary: {id} is {other!r} there, and "
                f"{shown} in the model, which is read"
            ]
        if other is None and id not in added:
            return [f"the tokenizer.json beside the model has no {piece!r} ({id}); the model is read"]
    with importing:
        from cpbpe.tokenizer.verifying import first_difference
    try:
        spec = JSON.read(data, allow_differences=True, hints=NO_HINTS).spec
    except ModelError as error:
        return [f"the tokenizer.json beside the model was not compared with it: {error}"]
    notes = []
    if (text := first_difference(facts, facts_of_read(spec))) is not None:
        notes.append(
            f"the tokenizer.json beside the model, which AutoTokenizer of transformers takes, gives {text!r} "
            f"other ids than the model, which is read. To read that file, give its path"
        )
    if _is_rebuilt(spec, beside):
        notes.append(f"the model is read, and not the tokenizer.json beside it; {_rebuilt(beside)}")
    return notes
