"""`ModelFacts`: one tokenizer's model, and the tables that are built from it when they are first needed.

A Tokenizer, its vocabulary and its streams share one. It never changes, and loading a model builds no table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cpbpe import checks
from cpbpe.lazy import importing, kept
from cpbpe.model.formats.registry import may_carry
from cpbpe.model.piece_type import KEEPS_SPACE, PieceType
from cpbpe.text.utf8 import SPACE, text_of
from cpbpe.tokenizer.options import KeptSpace
from cpbpe.tokenizer.special_tokens import SpecialTokens, special_ids

if TYPE_CHECKING:
    from cpbpe.engine.protocol import Engine
    from cpbpe.lint.reach import Witnesses
    from cpbpe.lint.sources import Sources
    from cpbpe.model.spec import Carried, ModelSpec, Settings
    from cpbpe.tokenizer.sequences import Sequences
    from cpbpe.tokenizer.stream_normalizer import Shape

StreamTexts = tuple[list[str | None], dict[int, int | bytes]]
"""See `ModelFacts.stream_texts`."""

_NO_TEXT = b"[%c%c%c]" % (PieceType.UNKNOWN, PieceType.CONTROL, PieceType.BYTE)
"""A pattern that finds, in `ModelFacts.types`, the pieces that do not decode to their own text."""

_NORMAL = int(PieceType.NORMAL)
_OF_TEXT = (PieceType.NORMAL, PieceType.USER_DEFINED, PieceType.UNUSED)
"""The types of pieces that text can be merged into."""

NO_END = 1 << 62
"""More bytes than any text has."""

_PROBE = range(0xF0000, 0xF0000 + 2100)
"""Characters that no real piece holds side by side. Together they are longer than any piece. If an engine
finds no cut between them, it finds none in any text, and texts cannot be encoded in parts."""
_WORDS = b"a a"
"""The same for byte-level models: every published pattern cuts this text before the space."""


class ModelFacts:
    """A model with its special tokens, ready for use."""

    def __init__(self, engine: Engine, special: SpecialTokens, source: bytes | ModelSpec):
        self.engine = engine
        """What does the work."""
        self.special = special
        """The special tokens, added ones included."""
        self.source = source
        """The bytes of the `.model` file; or, for a model from a file of another format, the model as a value
        without its pieces, which the engine has."""

    # --- The model --------------------------------------------------------------------------------

    @kept
    def file(self) -> bytes:
        """The bytes of the `.model` file, which are written when they are first needed."""
        if isinstance(self.source, bytes):
            return self.source
        with importing:
            from dataclasses import replace

            from cpbpe.engine.columns import spec_of
            from cpbpe.model.formats.sentencepiece import write
        return write(replace(self.source, pieces=spec_of(self.engine.columns()).pieces))

    @kept
    def spec(self) -> ModelSpec:
        """The model as a value, without what only its file says. It takes megabytes, so it is made lazily."""
        added = tuple((text.encode(), id) for text, id in self.special.added.items())
        with importing:
            from dataclasses import replace

            from cpbpe.engine.columns import spec_of
        file = self.source if isinstance(self.source, bytes) else None
        return replace(spec_of(self.engine.columns(), file), added=added)

    @property
    def settings(self) -> Settings:
        """What the file says about itself. It is a copy, so that changing it changes no tokenizer."""
        with importing:
            from copy import deepcopy
        return deepcopy(self._settings)

    @kept
    def _settings(self) -> Settings:
        with importing:
            from cpbpe.model.formats.sentencepiece import read_settings
        return read_settings(self.file)

    @kept
    def carried(self) -> Carried:
        """What the file says beside the model."""
        if not isinstance(self.source, bytes):
            return self.source.carried
        with importing:
            from cpbpe.model.formats.sentencepiece import read_carried
        return read_carried(self.file)

    def keeps_space(self, given: bool | KeptSpace | None) -> bool | KeptSpace:
        """The value of `keep_prefix_space`; None becomes what the format of the file does."""
        if given is None and self._keeps_space_after_special:
            return "after_special"
        return given or False

    @kept
    def _keeps_space_after_special(self) -> bool:
        # (`may_carry` only searches the file, so most files need not be parsed for this.)
        may_say = not isinstance(self.source, bytes) or may_carry(self.source)
        return may_say and bool(self.carried.options.get(KEEPS_SPACE))

    def shown_and_hidden(self, skip: bool | None) -> tuple[Mapping[int, str], Mapping[int, str]]:
        """The tokens that decoding shows, with the text that it shows, and those that it leaves out.

        The decoder in a tokenizer.json makes spaces of each U+2581, also of those in tokens (`▁<PRE>`). If
        its unknown token is a special one, that is shown only when all of them are.
        """
        shown, hidden = self.special.shown_and_hidden(skip)
        unknown = self.special_ids[0]
        if skip is False and unknown is not None and not self.spec.unk_surface:
            shown = {**shown, unknown: self.piece(unknown)}
        if self._keeps_space_after_special:
            shown = {id: text.replace("\u2581", " ") for id, text in shown.items()}
        return shown, hidden

    @kept
    def shown_by_default(self) -> Mapping[int, str]:
        """The tokens that decoding shows by default."""
        return self.shown_and_hidden(None)[0]

    @kept
    def drops_space(self) -> bool:
        """Whether decoding drops a space at the beginning of a text."""
        rules = self.spec.normalizer
        drops = rules.add_dummy_prefix or rules.remove_extra_whitespaces
        return drops and not self.is_byte_level  # byte-level models keep all spaces

    @kept
    def strips_tokens(self) -> bool:
        """Whether the decoder in a tokenizer.json drops such a space also from a special token.

        (If extra spaces are removed, it looks for U+2581, before that becomes a space.)
        """
        return self.drops_space and not self.spec.normalizer.remove_extra_whitespaces

    @kept
    def special_ids(self) -> list[int | None]:
        """The ids of unk, bos, eos and pad."""
        return special_ids(self.engine, self.special.added)

    @kept
    def types(self) -> bytes:
        """The type of every piece, one byte each."""
        return bytes(map(self.engine.kind, range(self.engine.size)))

    def of_type(self, type: PieceType) -> list[int]:
        """The ids of all pieces of a type."""
        return [id for id, kind in enumerate(self.types) if kind == type]

    # --- Ids from users ---------------------------------------------------------------------------

    def check_ids(self, ids: Any, method: str, of: str = "") -> list[int]:
        """Ids as a list of int, each in use. `of` says where they are."""
        special, size = self.special, self.engine.size
        checked = checks.check_ids(ids, special.size, method, of)
        if special.size > size + len(special.added):  # there are gaps
            for position, id in enumerate(checked):
                if id >= size and id not in special.texts:
                    raise IndexError(
                        f"id {id} at position {position}{of} is not in use: no added token has it"
                    )
        return checked

    def check_id(self, id: Any, method: str) -> int:
        """One id as an int, in use."""
        if not hasattr(id, "__index__"):
            hint = "; tok.vocab[piece] gives the id of a piece" if isinstance(id, (str, bytes)) else ""
            raise TypeError(f"{method}() takes one id (an integer), not {type(id).__name__}{hint}")
        number: int = id.__index__()
        if not 0 <= number < self.special.size:
            raise IndexError(f"id {number} is outside the vocabulary: {checks.bounds(self.special.size)}")
        if number >= self.engine.size and number not in self.special.texts:
            raise IndexError(
                f"id {number} is not in use: no added token has it; tok.vocab.added_tokens lists theirs"
            )
        return number

    def find(self, piece: bytes) -> int | None:
        """The id of a piece as sentencepiece finds it, or of an added token; None if there is none."""
        id, added = self.engine.find(piece), self.special.added
        if id is not None or not added:
            return id
        text = text_of(piece)
        return added.get(text) if text.encode() == piece else None  # (all added tokens are UTF-8)

    def piece(self, id: int) -> str:
        """The piece, or the added token, of an id that is in use."""
        return text_of(self.engine.piece(id)) if id < self.engine.size else self.special.texts[id]

    # --- What ids decode to -----------------------------------------------------------------------

    def bytes_of(self, id: int) -> bytes:
        """What an id that is in use adds in the middle of a text."""
        engine = self.engine
        shown = self.shown_by_default.get(id)
        if shown is not None:
            return shown.encode()
        return self._decoded(engine.kind(id), engine.piece(id))

    def _decoded(self, kind: int, piece: bytes) -> bytes:
        if kind == _NORMAL:
            return self._spelled(piece)
        if kind == PieceType.CONTROL:
            return b""
        if kind == PieceType.BYTE:
            return bytes((int(piece[3:5], 16),))
        if kind == PieceType.UNKNOWN:
            return self.spec.unk_surface
        return self._spelled(piece)

    def _spelled(self, piece: bytes) -> bytes:
        """What a piece of text adds. In models that are not byte-level, U+2581 stands for a space."""
        return piece if self.is_byte_level else piece.replace(SPACE, b" ")

    @kept
    def is_byte_level(self) -> bool:
        """Whether the model is byte-level. (Kept, because the engine takes a microsecond to make `head`.)"""
        return self.engine.head["byte_level"] is not None

    def token_bytes(self, text_only: bool = False) -> list[bytes]:
        """What each id adds in the middle of a text; b"" for an id that is not in use.

        With `text_only` also for special tokens, and for the UNKNOWN piece and UNUSED ones.
        """
        engine, special = self.engine, self.special
        pieces = list(map(engine.piece, range(engine.size)))
        table = list(map(self._spelled, pieces))
        for match in re.finditer(_NO_TEXT, self.types):
            id = match.start()
            table[id] = self._decoded(match[0][0], pieces[id])
        table += [b""] * (special.size - engine.size)
        for id, text in self.shown_by_default.items():
            table[id] = text.encode()
        if text_only:
            unused = self.of_type(PieceType.UNUSED)
            for id in (*special.ids.values(), *self.of_type(PieceType.UNKNOWN), *unused):
                table[id] = b""
        return table

    # --- For texts that are cut, or arrive in parts -------------------------------------------------

    @kept
    def byte_ids(self) -> frozenset[int]:
        """The ids of BYTE pieces."""
        return frozenset(self.of_type(PieceType.BYTE))

    @kept
    def by_text(self) -> tuple[list[bytes], list[int], int]:
        """The pieces that text can become, sorted, their ids, and how long the longest is in bytes."""
        types = self.types
        rows = sorted((text, id) for text, id in self.spec.ids.items() if types[id] in _OF_TEXT)
        longest = max((len(text) for text, _ in rows), default=0)
        return [text for text, _ in rows], [id for _, id in rows], longest

    @kept
    def letters_engine(self) -> Engine:
        """An engine that merges any bytes as this byte-level model merges those of a chunk.

        The bytes must be written as letters, because engines read bytes that are not UTF-8 as U+FFFD.
        """
        with importing:
            from cpbpe.engine.choice import make_engine
            from cpbpe.model.byte_level import in_letters
        return make_engine(in_letters(self.spec.pieces))

    @kept
    def witnesses(self) -> Witnesses:
        """Finds texts that yield given pieces, and caches them."""
        with importing:
            from cpbpe.engine.choice import make_engine
            from cpbpe.lint.reach import witnesses_of
        return witnesses_of(self.spec, self.engine, make_engine)

    @kept
    def sources(self) -> Sources:
        """Finds the texts that the normalizer turns into given ones."""
        with importing:
            from cpbpe.lint.sources import Sources
        return Sources(self.full_spec)

    @kept
    def tokens(self) -> frozenset[int]:
        """The ids that are not of text: CONTROL pieces and added tokens, and pieces that work like these."""
        return frozenset([*self.special.all_texts, *self.of_type(PieceType.CONTROL)])

    @kept
    def sequences(self) -> Sequences:
        """Which ids can follow others in what encoding gives."""
        with importing:
            from cpbpe.tokenizer.sequences import sequences_of
        special = self.special
        return sequences_of(
            self.spec, {text: special.flags[text] for text in special.plain} if special.flags else {}
        )

    @kept
    def lookahead(self) -> int:
        """How many bytes, from a place in a text on, can affect how the text at that place is rewritten."""
        spec = self.spec
        longest: int | None = 0
        if spec.normalizer.charsmap:
            with importing:
                from cpbpe.text.charsmap import Charsmap
                from cpbpe.tokenizer.stream_normalizer import MAX_KEY
            longest = Charsmap(spec.normalizer.charsmap, trusted=True).longest_key(MAX_KEY)
        keys = (len(spec.pieces.texts[id]) for id in self.of_type(PieceType.USER_DEFINED))
        return NO_END if longest is None else max(4, longest, *keys)

    @kept
    def stream_shape(self) -> Shape | None:
        """How text that arrives in parts is normalized; None if the whole text is needed."""
        engine = self.engine
        if not engine.cut("".join(map(chr, _PROBE)).encode() if not self.is_byte_level else _WORDS):
            return None
        with importing:
            from cpbpe.tokenizer.stream_normalizer import Shape
        pieces = map(engine.piece, self.of_type(PieceType.USER_DEFINED))
        rules = self.spec.normalizer
        rewrite = engine.variant(prefix=False).normalize if rules.unicode_form else None
        # (sentencepiece never finds the piece that is one NUL character.)
        shape = Shape(rules, [piece for piece in pieces if piece != b"\0"], rewrite)
        return shape if shape.has_parts else None

    @kept
    def stream_unk(self) -> int:
        """The id that a whole run of unknown characters gets; -1 if there is no such id."""
        return self.types.find(PieceType.UNKNOWN) if not self.engine.head["byte_fallback"] else -1

    @kept
    def _all_stream_texts(self) -> StreamTexts:
        """The result of `stream_texts` before the texts of special tokens that are pieces are taken out."""
        table = self.token_bytes()
        raw: dict[int, int | bytes] = {id: table[id][0] for id in self.byte_ids}
        plain: list[str | None] = []
        for id, data in enumerate(table):
            try:
                plain.append(None if id in raw else data.decode())
            except UnicodeDecodeError:
                raw[id] = data
                plain.append(None)
        size = self.engine.size
        plain[size:] = [None] * (len(plain) - size)
        return plain, raw

    @kept
    def _stream_texts(self) -> dict[bool | None, StreamTexts]:
        """The results of `stream_texts`, by `skip`."""
        return {}

    def stream_texts(self, skip: bool | None) -> StreamTexts:
        """What every id adds to a text that arrives id by id; `skip` is `skip_special_tokens`.

        The first value is a list with what each id adds in the middle of a text. It has None for special
        tokens that decoding shows or leaves out, and for the ids in the second value: the byte of each BYTE
        piece, and the bytes of each piece that is not UTF-8.
        """
        found = self._stream_texts.get(skip)
        if found is None:
            plain, raw = self._all_stream_texts
            own = [id for tokens in self.shown_and_hidden(skip) for id in tokens]
            if any(id < self.engine.size for id in own):
                plain = plain.copy()
                for id in own:
                    plain[id] = None
            found = self._stream_texts[skip] = plain, raw
        return found

    @kept
    def full_spec(self) -> ModelSpec:
        """The model as a value with all that its file says."""
        with importing:
            from cpbpe.model.formats.sentencepiece import read
        return read(self.file)

    def spec_for_users(self) -> ModelSpec:
        """The same with mappings that may be changed without changing a tokenizer."""
        with importing:
            from copy import copy, deepcopy
        spec = copy(self.full_spec)  # (with the ids, which take long to list)
        for name in ("settings", "carried"):
            object.__setattr__(spec, name, deepcopy(getattr(spec, name)))
        return spec


def token_variables(facts: ModelFacts) -> dict[str, str]:
    """The variables by which templates know tokens, such as `bos_token`."""
    ids = zip(("unk", "bos", "eos", "pad"), facts.special_ids, strict=True)
    tokens = {f"{role}_token": facts.piece(id) for role, id in ids if id is not None}
    tokens.update((f"{role}_token", text) for role, text in facts.carried.roles.items())
    return {name: text for name, text in tokens.items() if text}
