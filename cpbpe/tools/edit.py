"""`cpbpe.edit`: a vocabulary that grows, shrinks, is merged with another or continued.

An `Edit` never changes. Each method that edits returns a new one, whose `tokenizer` is a complete model, so
edits can be chained, tried and thrown away. An edit also knows where every id came from, which is what an
embedding needs to follow (`embeddings`), and what it promises about texts (`report`).

>>> import cpbpe
>>> tok = cpbpe.load("tokenizer.model")
>>> edit = cpbpe.edit(tok).add(["myocarditis"])
>>> tok.encode_pieces("acute myocarditis"), edit.tokenizer.encode_pieces("acute myocarditis")
(['▁ac', 'ute', '▁my', 'oc', 'ard', 'itis'], ['▁ac', 'ute', '▁myocarditis'])
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Literal, SupportsIndex, TypeAlias

import numpy as np

from cpbpe.checks import checked_limit
from cpbpe.errors import ModelError
from cpbpe.lazy import importing
from cpbpe.lint.halves import completions
from cpbpe.model.byte_level import chunks
from cpbpe.model.spec import MAX_SPLIT_DEPTH, ModelSpec, PieceType
from cpbpe.model.validity import MAX_PIECE_BYTES
from cpbpe.reference.encoding import MERGEABLE
from cpbpe.spelling import advised, counted, given, named
from cpbpe.text.drawn import quoted
from cpbpe.text.scripts import ranges, script
from cpbpe.text.utf8 import SPACE, character_length, is_valid_utf8, text_of
from cpbpe.tokenizer.tokenizer import Tokenizer
from cpbpe.tools.compare import blocks
from cpbpe.tools.diff import Texts, loaded, texts_of
from cpbpe.tools.edit_report import (
    ALL_KEPT,
    FOUND_FIRST,
    HOLDS,
    LOWEST,
    NOT_MADE,
    NOT_TEXT,
    OTHER_NAMES,
    RENAMED,
    RENUMBERED,
    REWRITTEN,
    ROLES,
    SPLIT_UP,
    TIED,
    EditReport,
    Promise,
    Step,
    new_ids,
    report,
)
from cpbpe.tools.edit_rows import Resizing, Rule
from cpbpe.tools.rows import Places, Rows, Ways, never_found, never_occurs
from cpbpe.training.arguments import ReadingOptions
from cpbpe.training.corpus import Source
from cpbpe.training.progress import Display, ProgressOption

Kind: TypeAlias = Literal["normal", "user_defined", "control"]
_KINDS = {
    "normal": PieceType.NORMAL,
    "user_defined": PieceType.USER_DEFINED,
    "control": PieceType.CONTROL,
    "unused": PieceType.UNUSED,
}
_PRUNABLE = (PieceType.NORMAL, PieceType.USER_DEFINED)
"""The types of pieces that `prune` removes if a corpus does not use them. (UNUSED pieces stay: without them,
others would merge.)"""
_WITHOUT_SPACES = frozenset({"Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan"})
"""Scripts whose words do not begin with a space."""
_MOST_SAID = 5
"""At most this many of the things that were left out are named."""


class Edit:
    """An edited tokenizer, and what was done. Immutable; `cpbpe.edit` gives one without changes."""

    __slots__ = ("_origins", "old", "steps", "tokenizer")

    old: Tokenizer
    """The tokenizer before all changes."""
    tokenizer: Tokenizer
    """The tokenizer with the changes."""
    steps: tuple[Step, ...]
    """What was done, in order."""
    _origins: Places

    def __init__(
        self, old: Tokenizer, tokenizer: Tokenizer | None = None, origins: Any = None, steps: Any = ()
    ):
        if origins is None:
            in_use = [old.vocab.get(id) is not None for id in range(len(old))]
            origins = np.where(in_use, np.arange(len(old)), -1)
        values = {"old": old, "tokenizer": tokenizer or old, "_origins": origins, "steps": tuple(steps)}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"an Edit does not change; its methods return new ones, so {name} cannot be set")

    def _next(
        self, name: str, rows: Rows, promise: Promise, notes: Iterable[str] = (), bound: Any = None
    ) -> Edit:
        """A new edit with one more step, which leads to the vocabulary `rows` and keeps `promise`."""
        spec, places = rows.spec(), rows.origins()
        tokenizer = Tokenizer.from_spec(spec).using(**(bound or self.tokenizer.bound_options))
        origins = np.where(places >= 0, self._origins[places], -1)
        step = Step(name, promise.about(spec), tuple(notes), promise.keeps_reach)
        return Edit(self.old, tokenizer, origins, (*self.steps, step))

    def __reduce__(self) -> tuple[Any, ...]:
        return Edit, (self.old, self.tokenizer, self._origins, self.steps)

    @property
    def _spec(self) -> ModelSpec:
        return self.tokenizer.facts.full_spec

    # --- Growing ------------------------------------------------------------------------------------

    def add(
        self,
        words: Iterable[str] = (),
        *,
        pieces: Iterable[str | bytes] = (),
        kind: Kind = "normal",
        between: Literal["normal", "unused"] = "normal",
        skip: bool = False,
    ) -> Edit:
        """Add words, each with the space before it; or pieces, which are taken as they are.

        New pieces get the next free ids and scores below all others. A word whose text becomes several tokens
        today needs pieces in between, by which it is merged; they are added, too. With `between="unused"`
        these are split up again wherever the word is not complete, so that only texts with the words change;
        byte-level models do not have this type.

        A "user_defined" piece is found in every text before anything is merged, also inside of words. A
        "control" piece is for programs: no text yields it. What this model can never make a token of is an
        error, or left out and noted with `skip`; what no model could hold is always an error.

        >>> import cpbpe
        >>> edit = cpbpe.edit("tokenizer.model").add(["ferritin"], pieces=["emia"])
        >>> edit.report().made
        ('▁ferr', '▁ferrit', '▁ferritin', 'emia')
        """
        type = _KINDS.get(kind)
        if type is None or type == PieceType.UNUSED:
            raise ValueError(f'kind must be "normal", "user_defined" or "control", not {kind!r}')
        if between not in ("normal", "unused"):
            raise ValueError(f'between must be "normal" or "unused", not {between!r}')
        if between == "unused" and kind != "normal":
            raise ValueError(f"no piece leads to a {kind} one; leave out {advised('between=', '--unused')}")
        words, pieces = _several("words", words), _several("pieces", pieces)
        if kind != "normal":  # a name, which has no space before it
            words, pieces = [], [*words, *pieces]
        wanted, notes = self._wanted([word for word in words if str(word).strip()] if skip else words, pieces)
        spec, rows = self._spec, Rows(self._spec)
        byte_level = spec.alphabet == "bytes"
        if byte_level and (kind == "user_defined" or between == "unused"):
            raise ModelError(
                f"a byte-level model has no pieces of the type "
                f"{(between if between == 'unused' else kind).upper()}; with_special_tokens() adds tokens "
                f"that are found in texts"
            )
        if kind == "normal":
            refused = self._add_normal(rows, wanted, _KINDS[between], notes)
        else:
            refused = []
            for text in wanted:
                if kind == "control" and rows.adopt(text):
                    continue
                if (id := spec.ids.get(text)) is not None:
                    refused.append(f"{quoted(text_of(text))} is already piece {id}")
                elif text in rows.added.values():
                    refused.append(f"{quoted(text_of(text))} is already an added token")
                elif kind == "user_defined" and (reason := never_found(self._spec, text)):
                    refused.append(reason)
                else:
                    rows.append(text, 0.0, type)
        if refused and not skip:
            others = counted(len(refused) - 1, "other")
            more = f"; {others} cannot be added either" if len(refused) > 1 else ""
            raise ModelError(f"{refused[0]}{more}; {given('skip', True)} leaves out what cannot be added")
        notes += [f"left out: {reason}" for reason in refused[:_MOST_SAID]]
        if len(refused) > _MOST_SAID:
            notes.append(f"left out: {len(refused) - _MOST_SAID:,} more")
        if len(rows.added) < len(spec.added):
            number = counted(len(spec.added) - len(rows.added), "added token")
            notes.append(f"{number} became pieces of type CONTROL, with the ids that they had")
        promise = {"normal": HOLDS, "user_defined": FOUND_FIRST, "control": NOT_TEXT}[kind]
        return self._next("add", rows, promise, notes)

    def _add_normal(self, rows: Rows, wanted: list[bytes], between: PieceType, notes: list[str]) -> list[str]:
        """Add NORMAL pieces, each with those that lead to it. Return why others cannot be added."""
        spec, ways, below = self._spec, Ways(self._spec), rows.scores_below()
        # Pieces that nothing makes today. If UNUSED ones made one, texts without the new words would change.
        dead = ways.unmade() if between == PieceType.UNUSED else []
        added: dict[bytes, int] = {}
        already: list[str] = []
        woken: list[str] = []
        refused: list[str] = []
        for text in wanted:
            try:
                self._check_normal(text, ways)
                if (id := added.get(text, spec.ids.get(text))) is not None:
                    if text not in added:  # (otherwise it was added on the way to another one)
                        was_unused = rows.types[id] == PieceType.UNUSED
                        (woken if was_unused else already).append(text_of(text))
                    rows.types[id] = PieceType.NORMAL
                    continue
                new = ways.extend(text) or [text]
                if between == PieceType.UNUSED and len(new) > MAX_SPLIT_DEPTH:
                    raise ModelError(
                        f"{quoted(text_of(text))} needs too many UNUSED pieces to be split up again"
                    )
            except ModelError as error:
                refused.append(str(error))
                continue
            for piece in new:
                rows.append(piece, next(below), PieceType.NORMAL if piece == text else between)
                added[piece] = len(rows.texts) - 1
        if already:
            notes.append(f"{counted(len(already), 'piece')} existed already: {', '.join(already[:5])}")
        notes += _woken(woken)
        if alive := next((piece for piece in dead if len(ways.symbols(piece)) == 1), None):
            way_out = advised("prune() first, or leave out between=", "--prune first, or leave out --unused")
            raise ModelError(
                f"nothing makes the piece {quoted(text_of(alive))} today, and UNUSED pieces would: texts "
                f"without the new words would change; {way_out}"
            )
        return refused

    def _wanted(self, words: list[Any], pieces: list[Any]) -> tuple[list[bytes], list[str]]:
        """The pieces to add, and what there is to say about them."""
        engine = self.tokenizer.facts.engine.variant(prefix=False)
        rules = self._spec.normalizer
        byte_level = self._spec.alphabet == "bytes"
        wanted: dict[bytes, None] = {}
        without: list[str] = []
        for word in words:
            if not isinstance(word, str):
                raise TypeError(f"a word is a str, not {type(word).__name__}; pieces may be bytes")
            _utf8(word)
            text = engine.normalize(word.strip()).encode()
            if not text:
                raise ValueError(f"the word {word!r} is empty, or nothing is left of it by normalization")
            if script(word.strip()[0]) in _WITHOUT_SPACES:
                without.append(word)
            space = b" " if byte_level or not rules.escape_whitespaces else SPACE
            wanted[text + space if rules.suffix else space + text] = None
        for piece in pieces:
            if not isinstance(piece, (str, bytes)):
                raise TypeError(f"a piece is str or bytes, not {type(piece).__name__}")
            wanted[_utf8(piece) if isinstance(piece, str) else piece] = None
        notes = []
        if without:
            notes.append(
                f"{counted(len(without), 'word')} of scripts that are written without spaces "
                f"({', '.join(without[:3])}) got one in front; if they should be found inside of texts, give "
                f"them as pieces"
            )
        for text in wanted:
            if not text or b"\0" in text or len(text) >= MAX_PIECE_BYTES:
                raise ModelError(
                    f"{quoted(text_of(text[:40]))} cannot be a piece: it is empty, has a NUL character, or "
                    f"{MAX_PIECE_BYTES} bytes or more"
                )
        return list(wanted), notes

    def _check_normal(self, text: bytes, ways: Ways) -> None:
        """Raise an error if merging can never make a piece of this text, whatever is added."""
        spec, name = self._spec, quoted(text_of(text))
        if reason := never_occurs(self.tokenizer.facts, text):
            raise ModelError(reason)
        rules = spec.normalizer
        if rules.remove_extra_whitespaces and rules.escape_whitespaces and SPACE * 2 in text:
            raise ModelError(f"the piece {name} never occurs: the model makes one space of several first")
        known = ways.taken.get(text)
        if known is not None and known >= len(spec.pieces):
            raise ModelError(f"{name} is an added token; choose another text")
        if known is not None and spec.pieces.types[known] not in (PieceType.NORMAL, PieceType.UNUSED):
            kind = PieceType(spec.pieces.types[known]).name
            raise ModelError(f"{name} is already piece {known}, of type {kind}; choose another text")
        if spec.alphabet == "bytes":
            if is_valid_utf8(text):
                parts = chunks(text.decode(), spec.patterns)
                if len(parts) > 1:
                    raise ModelError(
                        f"{name} can never be one token: the pattern cuts it into "
                        f"{', '.join(map(quoted, parts))}, and nothing merges across a cut; "
                        f"with_special_tokens() can add it as a special token"
                    )
            elif cut := self.tokenizer.facts.witnesses.why_not_in_a_chunk(text):
                raise ModelError(f"{name} can never be one token: {cut.detail}")
        elif not is_valid_utf8(text):
            raise ModelError(f"{name} is not UTF-8, so its bytes never merge in this model")
        elif (inside := ways.found_first(text)) is not None:
            found = quoted(text_of(inside))
            raise ModelError(f"{name} cannot be made: {found} in it is found before anything merges")

    def from_corpus(
        self,
        source: Source,
        number: int,
        *,
        character_coverage: float = 0.9995,
        threads: int | None = None,
        format: str | None = None,
        field: str = "text",
        column: str | int | None = None,
        memory_limit: int | str | None = None,
        progress: ProgressOption = None,
        **limits: Any,
    ) -> Edit:
        """Add `number` pieces: characters that have none yet, and the merges that training would learn next.

        `source` and the arguments after `character_coverage` are those of `cpbpe.train`. Characters get a
        piece until they cover this much of the corpus. No old piece goes. Which strings can become pieces is
        as the model file says; `limits` change that, such as ``split_by_whitespace=False``.

        A model that was trained on this corpus goes on as if training had never stopped:

        >>> import cpbpe
        >>> texts = ["low lower lowest newer newest wider widest"] * 9
        >>> short, long = (cpbpe.train(texts, vocab_size=size).tokenizer for size in (275, 280))
        >>> edited = cpbpe.edit(short).from_corpus(texts, 5).tokenizer
        >>> edited.encode_pieces("wider newest") == long.encode_pieces("wider newest")
        True
        """
        if isinstance(number, bool) or not isinstance(number, SupportsIndex) or int(number) < 1:
            name = advised("number", "--learn")
            raise ValueError(f"{name} must be how many pieces to add, 1 or more, not {number!r}")
        if not 0 < character_coverage <= 1:
            name = named("character_coverage")
            raise ValueError(f"{name} must be above 0 and at most 1, not {character_coverage!r}")
        with importing:
            from cpbpe.tools.continuing import continued, limits_of
        reading = ReadingOptions.checked(threads, format, field, column, memory_limit, progress)
        spec, rows = self._spec, Rows(self._spec)
        with Display(progress) as display:
            learned = continued(
                spec,
                source,
                int(number),
                character_coverage=character_coverage,
                limits=limits_of(spec, limits),
                reading=reading,
                display=display,
            )
        below = rows.scores_below()
        new = [*learned.merges, *learned.characters]
        never = {piece for piece in new if never_occurs(self.tokenizer.facts, piece)}
        for piece in new:
            if piece not in never:
                rows.append(piece, next(below))
        merges = counted(len(learned.merges), "merge")
        characters = counted(len(learned.characters), "character")
        saved = counted(learned.saved, "token")
        notes = [f"{merges} and {characters}; the merges save {saved} of the corpus", *learned.notes]
        if never:
            notes.append(f"left out: {counted(len(never), 'piece')} of these, which the model rewrites first")
        return self._next("from_corpus", rows, HOLDS, notes)

    def merge(
        self,
        model: str | os.PathLike[str] | Tokenizer,
        *,
        only: Literal["new_characters"] | str | Callable[[str], bool] | None = None,
    ) -> Edit:
        """Add the pieces of another model below all that there are, in its order.

        Each gets the merges that it needs, made of this model's tokens. One that is UNUSED here becomes a
        token. `only` chooses among the pieces: those that have a character without a piece in this model
        ("new_characters"), those that have a character of a script ("Han", "Devanagari"), or those for which
        a function returns true. The pieces that are made on the way are of the same kind, so a text without
        such characters keeps its tokens.

        >>> import cpbpe
        >>> other = cpbpe.train(["机器学习 and machine learning"] * 9, vocab_size=290).tokenizer
        >>> cpbpe.edit("tokenizer.model").merge(other, only="Han").report().made
        ('▁机', '器学', '器学习')
        """
        other = loaded(model)
        spec, theirs = self._spec, other.facts.full_spec
        if spec.alphabet != theirs.alphabet:
            raise ModelError("a byte-level model and one of characters cannot be merged")
        wanted, meaning = self._chosen(only)
        rows, ways = Rows(spec), Ways(spec)
        below = rows.scores_below()
        # Those that merge first come first; of equal ones, the lower id.
        ranks = theirs.pieces.ranks()
        order = [id for id, type in enumerate(theirs.pieces.types) if type == PieceType.NORMAL]
        order.sort(key=lambda id: (ranks[id], id))
        seen, refused = set(spec.pieces.texts), 0
        woken: list[str] = []
        for id in order:
            text = theirs.pieces.texts[id]
            if not wanted(text):
                continue
            if text in seen:
                if (here := spec.ids.get(text)) is not None and rows.types[here] == PieceType.UNUSED:
                    rows.types[here] = PieceType.NORMAL
                    woken.append(text_of(text))
                continue
            try:
                self._check_normal(text, ways)
                new = ways.extend(text, wanted) or [text]
            except ModelError:
                new = []
            refused += not new
            for piece in new:
                seen.add(piece)
                rows.append(piece, next(below))
        promise = HOLDS
        if only is not None:
            so = f"; so a text that holds none of the pieces {meaning} keeps its tokens"
            promise = HOLDS._replace(text=HOLDS.text + so)
        notes = [f"{counted(refused, 'piece')} of the other model cannot be made here"] if refused else []
        notes += _woken(woken)
        if others := sum(type == PieceType.USER_DEFINED for type in theirs.pieces.types):
            notes.append(f"{counted(others, 'user-defined piece')} of the other model did not come along")
        return self._next("merge", rows, promise, notes)

    def _chosen(self, only: Any) -> tuple[Callable[[bytes], bool], str]:
        """Whether a piece of another model is wanted, and what such a piece is, in words."""
        if only is None:
            return lambda piece: True, ""
        test: Callable[[str], bool] = only
        meaning = "that were chosen"
        if only == "new_characters":
            if self._spec.alphabet == "bytes":
                raise ModelError("a byte-level model has no new characters; choose by a script or a function")
            known = {text_of(text) for text in self._spec.pieces.texts}
            test, meaning = (
                lambda piece: not all(c in known for c in piece),
                "with a character that had no piece",
            )
        elif only in ranges()[2]:
            test, meaning = (
                lambda piece: any(script(c) == only for c in piece),
                f"with a character of the script {only}",
            )
        elif not callable(only):
            raise ValueError(
                f'only must be "new_characters", a script such as "Han", or a function, not {only!r}'
            )

        def wanted(piece: bytes) -> bool:
            """One that begins or ends inside a character is wanted if it would be with every completion."""
            texts = [piece.decode()] if is_valid_utf8(piece) else completions(piece)
            found = [bool(test(text)) for text in texts]
            return bool(found) and all(found)

        return cache(wanted), meaning

    # --- Shrinking ----------------------------------------------------------------------------------

    def remove(
        self,
        pieces: Iterable[str | bytes | SupportsIndex],
        *,
        leave: Literal["nothing", "unused"] = "nothing",
    ) -> Edit:
        """Remove pieces, given by their texts or ids, and those that are made from them.

        Ids after them become lower. With `leave="unused"` no id changes: the pieces become UNUSED, which are
        still merged but split up again in the end, so pieces that are made from them stay.
        """
        spec, rows = self._spec, Rows(self._spec)
        ids = {self._id_of(piece) for piece in _several("pieces", pieces)}
        for id in ids:
            self._check_removable(id)
        if leave == "unused":
            if spec.alphabet == "bytes":
                option = advised("leave=", "--unused")
                raise ModelError(f"a byte-level model has no UNUSED pieces; leave out {option}")
            for id in ids:
                text = spec.pieces.texts[id]
                if len(text) == character_length(text, 0):
                    raise ModelError(
                        f"{quoted(text_of(text))} is one character, so it cannot be split up; leave it"
                    )
                rows.types[id] = PieceType.UNUSED
            return self._next("remove", rows, SPLIT_UP)
        if leave != "nothing":
            raise ValueError(f'leave must be "nothing" or "unused", not {leave!r}')
        gone = {spec.pieces.texts[id] for id in ids}
        kept = self._without(gone)
        rows.keep(kept)
        more = kept.count(False) - len(ids)
        notes = [f"{counted(more, 'piece')} more went, which were made from these"] if more else []
        return self._next("remove", rows, ALL_KEPT, notes)

    def _without(self, gone: set[bytes]) -> list[bool]:
        """Which pieces can stay if some go: those that are not made from these."""
        ways, spec = Ways(self._spec), self._spec
        lost = set(map(ways.spelled, gone))
        for piece in sorted(ways.pairs, key=len):
            if not lost.isdisjoint(ways.pairs[piece]):
                lost.add(piece)
        gone = gone | set(map(ways.bytes_of, lost))
        types = spec.pieces.types
        return [text not in gone or types[id] not in MERGEABLE for id, text in enumerate(spec.pieces.texts)]

    def _id_of(self, piece: str | bytes | SupportsIndex) -> int:
        if not isinstance(piece, (str, bytes)):
            return self.tokenizer.facts.check_id(piece, "remove")
        id = self.tokenizer.vocab.get(piece)
        if id is None:
            raise ModelError(f"{piece!r} is not a piece of this model")
        return id

    def _check_removable(self, id: int) -> None:
        spec = self._spec
        name = f"piece {id}, {quoted(self.tokenizer.id_to_piece(id))},"
        if id >= len(spec.pieces):
            raise ModelError(f"{name} is an added token; an edit removes pieces of the model")
        if spec.pieces.types[id] not in MERGEABLE:
            kind = PieceType(spec.pieces.types[id]).name
            way = "" if kind == "BYTE" else "; rename() gives it another name"
            raise ModelError(f"{name} has the type {kind}; pieces of this type stay{way}")
        if spec.pieces.types[id] == PieceType.UNUSED:
            raise ModelError(f"{name} is UNUSED: no text yields it, but without it other pieces would merge")
        if self._is_needed(id):
            raise ModelError(f"{name} is a single symbol, and without it some text would be lost")

    def _is_needed(self, id: int) -> bool:
        """Whether text would be lost without a piece: a byte, or a character that cannot become bytes.

        (The bytes of ▁ are decoded to ▁, and not to a space.)
        """
        text, spec = self._spec.pieces.texts[id], self._spec
        if spec.alphabet == "bytes":
            return len(text) == 1
        is_space = text == SPACE and spec.normalizer.escape_whitespaces
        return is_space or (not spec.byte_fallback and len(text) == character_length(text, 0))

    def prune(
        self,
        texts: Texts | None = None,
        *,
        size: int | None = None,
        keep: Iterable[str | bytes] = (),
    ) -> Edit:
        """Remove pieces that no text can yield; and with a corpus, those that it does not use.

        Without `texts`, no token of any text changes: `tok.lint()` has proved that nothing yields what goes.
        With `texts`, what stays are the tokens of these texts and all that is made on the way to them; `size`
        says how many pieces stay, the most frequent first. Bytes, special and UNUSED pieces always stay, and
        so do the pieces in `keep`.
        """
        spec = self._spec
        ways = Ways(spec)
        if texts is None:
            if size is not None or [*keep]:
                raise ValueError(
                    "which pieces to keep is decided by a corpus: give texts with size or keep, or use "
                    "truncate()"
                )
            return self._prune_dead(ways)
        texts = texts_of(texts)
        size = None if size is None else checked_limit(size, "size")
        # 1. What always stays, and how often the corpus uses the others.
        types = spec.pieces.types
        always = {id for id, type in enumerate(types) if type not in _PRUNABLE or self._is_needed(id)}
        always |= {id for piece in _several("keep", keep) if (id := self._id_of(piece)) < len(types)}
        counts = np.zeros(len(self.tokenizer), np.int64)
        for block, _ in blocks(texts):
            ids = self.tokenizer.encode_arrays(block).ids
            counts += np.bincount(ids, minlength=len(counts))
        if not counts.any():
            raise ValueError("the corpus has no tokens, so everything would go; give texts")
        used = [int(id) for id in np.argsort(-counts, kind="stable") if counts[id] and id < len(spec.pieces)]
        # 2. Keep the most frequent, each with what is made on the way to it.
        kept = {spec.pieces.texts[id] for id in always}
        kept |= ways.needed(kept) & spec.ids.keys()
        least = len(kept)
        if size is not None and size < least:
            stay = advised("bytes, special and UNUSED pieces, `keep`", "bytes, special and UNUSED pieces")
            raise ValueError(f"{named('size')} is {size}, and {least} pieces always stay: {stay}")
        for id in used:
            more = (ways.needed([spec.pieces.texts[id]]) & spec.ids.keys()) - kept
            if size is None or len(kept) + len(more) <= size:
                kept |= more
        rows = Rows(spec)
        rows.keep([text in kept for text in spec.pieces.texts])
        dropped = sum(int(counts[id]) for id in used if spec.pieces.texts[id] not in kept)
        note = f"{counted(dropped, 'token')} of {int(counts.sum()):,} in the corpus were of pieces that went"
        return self._next("prune", rows, ALL_KEPT, [note])

    def _prune_dead(self, ways: Ways) -> Edit:
        spec = self._spec
        reach = self.tokenizer.facts.witnesses.reach()
        texts, types = spec.pieces.texts, spec.pieces.types
        dead = {
            id for id, reason in reach.reasons.items() if reason.decided and types[id] == PieceType.NORMAL
        }
        # (What lint could not decide stays, and so does what is made on the way to a piece that stays.)
        needed = ways.needed(text for id, text in enumerate(texts) if id not in dead)
        rows = Rows(spec)
        rows.keep([id not in dead or text in needed for id, text in enumerate(texts)])
        return self._next("prune", rows, NOT_MADE)

    def truncate(self, size: int) -> Edit:
        """Remove the pieces that merge last until `size` are left: the model of a shorter training."""
        spec, rows = self._spec, Rows(self._spec)
        ranks = spec.pieces.ranks()
        characters = spec.alphabet != "bytes"
        merges = [
            id
            for id, text in enumerate(spec.pieces.texts)
            if spec.pieces.types[id] in (PieceType.NORMAL, PieceType.UNUSED)
            and len(text) > (character_length(text, 0) if characters else 1)
        ]
        least = len(spec.pieces) - len(merges)
        if (
            isinstance(size, bool)
            or not isinstance(size, SupportsIndex)
            or not least <= int(size) <= len(spec.pieces)
        ):
            raise ValueError(
                f"{advised('size', '--truncate')} must be {least} (no merges) to {len(spec.pieces)} (all "
                f"pieces), not {size!r}"
            )
        merges.sort(key=lambda id: (ranks[id], id))
        stay, gone = merges[: int(size) - least], set(merges[int(size) - least :])
        rows.keep([id not in gone for id in range(len(spec.pieces))])
        tied = stay and gone and ranks[stay[-1]] == ranks[merges[len(stay)]]
        return self._next("truncate", rows, TIED if tied else LOWEST)

    # --- Ids, names and settings --------------------------------------------------------------------

    def reorder(self, ids: Sequence[int]) -> Edit:
        """Give the pieces other ids: the piece that has the id ``ids[0]`` now gets the id 0, and so on."""
        order = [self.tokenizer.facts.check_id(id, "reorder") for id in ids]
        if sorted(order) != list(range(len(self._spec.pieces))):
            raise ValueError(f"ids must be all ids of pieces, 0 to {len(self._spec.pieces) - 1}, each once")
        rows = Rows(self._spec)
        scores = dict(zip(rows.texts, rows.scores, strict=True))
        rows.order(order)
        rows.scores = [scores[text] for text in rows.texts]  # which merges first stays as it is
        return self._next("reorder", rows, RENUMBERED)

    def rename(self, names: Mapping[str, str]) -> Edit:
        """Give special pieces other texts: those of the types CONTROL and UNKNOWN, and user-defined ones."""
        spec, rows, promise = self._spec, Rows(self._spec), RENAMED
        places = {self._id_of(before): after for before, after in names.items()}
        for id, after in places.items():
            if not isinstance(after, str):
                raise TypeError(f"a new name is a str, not {type(after).__name__}")
            kind = spec.pieces.types[id] if id < len(spec.pieces) else None
            name = quoted(self.tokenizer.id_to_piece(id))
            if kind is None:
                raise ModelError(f"{name} is an added token; only pieces can be renamed")
            if kind not in (PieceType.CONTROL, PieceType.UNKNOWN, PieceType.USER_DEFINED):
                raise ModelError(f"{name} is text, and its name is its text; only special pieces have names")
            if kind == PieceType.USER_DEFINED:
                promise = OTHER_NAMES
                if reason := never_found(spec, _utf8(after)):
                    raise ModelError(reason)
            rows.texts[id] = _utf8(after)
        rows.rename(names)
        bound = {
            option: [names.get(name, name) for name in value] if isinstance(value, tuple) else value
            for option, value in self.tokenizer.bound_options.items()
        }
        return self._next("rename", rows, promise, bound=bound)

    def set_special(
        self,
        *,
        unk: str | None = None,
        bos: str | None = None,
        eos: str | None = None,
        pad: str | None = None,
    ) -> Edit:
        """Say which pieces are unk, bos, eos and pad, by their names."""
        spec, rows = self._spec, Rows(self._spec)
        for role, name in (("unk", unk), ("bos", bos), ("eos", eos), ("pad", pad)):
            if name is None:
                continue
            id, types = self._id_of(name), spec.pieces.types
            wanted = PieceType.UNKNOWN if role == "unk" else PieceType.CONTROL
            if id >= len(types) and spec.alphabet == "characters":
                raise ModelError(f"{name!r} is an added token; add([{name!r}], kind='control') makes a piece")
            if id < len(types) and types[id] != wanted:
                kind = PieceType(types[id]).name
                raise ModelError(f"{name!r} is a piece of type {kind}; it must be {wanted.name}")
            rows.set_role(role, name)
        return self._next("set_special", rows, ROLES)

    def set_normalizer(self, rules: str | None = None, **settings: bool) -> Edit:
        """Change how text is rewritten: `rules` by name, such as "nfkc"; `add_dummy_prefix` and others.

        The settings are `add_dummy_prefix`, `remove_extra_whitespaces`, `escape_whitespaces` and
        `prefix_before_space`, as in `NormalizerSpec`.
        """
        if self._spec.alphabet == "bytes" and (rules is not None or settings.keys() - {"add_dummy_prefix"}):
            raise ModelError(
                "of a byte-level model only add_dummy_prefix can be changed: whether a space comes in front"
            )
        normalizer, changes = self._spec.normalizer, dict[str, Any](settings)
        names = ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces", "prefix_before_space")
        for name, value in settings.items():
            if name not in names or not isinstance(value, bool):
                raise TypeError(
                    f"set_normalizer() takes True or False for {', '.join(names)}, not {name}={value!r}"
                )
        if rules is not None:
            with importing:
                from cpbpe.text.charsmap import rule_charsmap
            charsmap = b"" if rules == "identity" else rule_charsmap(rules)
            normalizer = replace(normalizer, name=rules, charsmap=charsmap)
        rows = Rows(self._spec)
        rows.normalizer = replace(normalizer, **changes)
        return self._next("set_normalizer", rows, REWRITTEN)

    # --- What changed -------------------------------------------------------------------------------

    @property
    def ids(self) -> Places:
        """For each old id the new one; -1 for one that is gone or never was in use."""
        return new_ids(self.old, self._origins)

    @property
    def origins(self) -> Places:
        """For each new id the old one; -1 for a new piece, and for an id that is not in use."""
        return self._origins.copy()

    def report(self, texts: Texts | None = None) -> EditReport:
        """What changed: pieces, ids, what is promised about texts; and what changed in `texts`."""
        given = None if texts is None else texts_of(texts)
        return report(self.old, self.tokenizer, self._origins, self.steps, given)

    def embeddings(self, matrix: Any, rule: Rule = "mean", *, multiple: int = 1) -> Any:
        """The matrix with a row for each new id. `matrix` has one for each old id, or more.

        Rows of pieces that were there are copied. A new piece gets the mean of the rows of the old tokens of
        its text; `rule` may also be "zeros", or a function of these rows. The number of rows becomes a
        multiple of `multiple`, with zeros at the end. A torch tensor gives a torch tensor of the same type.
        """
        return Resizing(self.old, self.tokenizer, self._origins, rule, multiple).table(matrix)

    def resize(
        self,
        source: str | os.PathLike[str],
        target: str | os.PathLike[str],
        rule: Rule = "mean",
        *,
        multiple: int = 1,
        tensors: Collection[str] = (),
    ) -> tuple[str, ...]:
        """Copy a .safetensors file with the rows of its tables as in `embeddings`, and return their names.

        Tables are the tensors in `tensors`, or those with the usual names of embeddings and output layers.
        A model in several files is resized file by file. Set `vocab_size` in its config.json, too.
        """
        return Resizing(self.old, self.tokenizer, self._origins, rule, multiple).file(source, target, tensors)

    def __repr__(self) -> str:
        names = ", ".join(step.name for step in self.steps) or "no changes"
        return f"<cpbpe.Edit: {names}; {len(self.old)} ids → {len(self.tokenizer)}>"


def edit(model: str | os.PathLike[str] | Tokenizer) -> Edit:
    """A model, given as a path or a tokenizer, to be edited: pieces added, learned, removed and more.

    >>> import cpbpe
    >>> edit = cpbpe.edit("tokenizer.model").add(["tokenizer"])
    >>> edit.tokenizer.encode_pieces("a tokenizer"), edit
    (['▁a', '▁tokenizer'], <cpbpe.Edit: add; 32000 ids → 32001>)
    """
    return Edit(loaded(model))


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ModelError(f"{text!r} holds half of a surrogate pair, which is no text") from None


def _woken(names: list[str]) -> list[str]:
    return [f"UNUSED before, tokens now: {', '.join(names[:5])}"] if names else []


def _several(name: str, given: Iterable[Any]) -> list[Any]:
    if isinstance(given, (str, bytes)):
        raise TypeError(f"{name} is a list of texts; for one write [{given!r}]")
    return list(given)
