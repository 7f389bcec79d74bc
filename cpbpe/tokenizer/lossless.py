"""Whether every text comes back from its ids, and if not, why: `Tokenizer.is_lossless`.

The question is whether `tok.decode(tok.encode(text)) == text` for every text without U+2581. (In pieces this
character stands for a space, so it is decoded as one.) Everything that can prevent it is visible in the
model's settings and in a few of its pieces, so no search is needed. Still, nothing is reported without proof:
each reason has an example that was encoded and decoded with the reference engine.
"""

from __future__ import annotations

import unicodedata
from codecs import utf_8_decode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice

from cpbpe.errors import ModelError
from cpbpe.model.spec import ModelSpec, NormalizerSpec, PieceType
from cpbpe.reference.encoding import ReferenceEngine
from cpbpe.text.charsmap import Charsmap
from cpbpe.text.unicode_forms import NOT_IN_FORM, normal_form
from cpbpe.text.utf8 import SPACE, character_length, repair, text_of
from cpbpe.tokenizer.facts import ModelFacts
from cpbpe.tokenizer.plans import Plans

_RARE = "\U0010fffd"
"""A character that hardly any vocabulary has."""
_OFTEN_UNKNOWN = "é€中日ж☃🦙" + _RARE
"""Characters that many vocabularies do not have; they make good examples."""
_OFTEN_REWRITTEN = ("ﬁ", "①", "Ａ", "A", "é", "\t", "\n", "…")
"""Texts that many normalization rules rewrite; they make good examples."""
_MAX_NODES = 1 << 20
"""A crafted charsmap may have endless rules, so at most this many of its nodes are visited. (The largest
named rules have 400,000.)"""
_MAX_EXAMPLES = 1 << 14
"""At most this many texts are tried for one reason."""
_FEW = 24
"""The keys and replacements of this many rules are tried side by side."""


@dataclass(frozen=True)
class Loss:
    """Something that does not come back."""

    reason: str
    """What is lost, in a sentence."""
    example: str
    """A text that does not come back."""
    becomes: str
    """What comes back instead."""

    @property
    def looks_alike(self) -> bool:
        """Whether the two texts spell the same letters differently, so that only escapes show it."""
        return unicodedata.normalize("NFC", self.example) == unicodedata.normalize("NFC", self.becomes)

    def __str__(self) -> str:
        if self.looks_alike:
            return f"{self.reason} {self.example!a} becomes {self.becomes!a}."
        return f"{self.reason} {self.example!r} becomes {self.becomes!r}."


@dataclass(frozen=True, repr=False)
class Losslessness:
    """The answer of `Tokenizer.is_lossless`: true if every text without U+2581 comes back, or false.

    >>> import cpbpe
    >>> answer = cpbpe.load("tokenizer.model").is_lossless()
    >>> bool(answer), answer.reasons
    (True, ())
    >>> answer
    <cpbpe.Losslessness: every text comes back>
    """

    reasons: tuple[Loss, ...] = ()
    """Why not; nothing if every text comes back."""

    def __bool__(self) -> bool:
        return not self.reasons

    def __str__(self) -> str:
        if not self.reasons:
            return "every text comes back"
        return "some texts do not come back\n" + "\n".join(f"- {reason}" for reason in self.reasons)

    def __repr__(self) -> str:
        count = len(self.reasons)
        more = f", for {count} {'reason' if count == 1 else 'reasons'}" if count else ""
        return f"<cpbpe.Losslessness: {str(self).splitlines()[0]}{more}>"


def losslessness_of(facts: ModelFacts) -> Losslessness:
    """The answer for a tokenizer, whose added tokens can lose text that the model alone does not.

    Every text is searched for those that are not special. If they lose anything, it is spaces beside them,
    and one of the texts that are tried here shows it. Otherwise a token is decoded to what it was found as,
    and the texts between tokens come back, because they are encoded and decoded as if they were alone.
    """
    found = losslessness(facts.spec)
    if not facts.special.plain:
        return found
    plans = Plans(facts)
    encoder, decoder = plans.encode({}, "encode").encoder, plans.decode({}, "decode")

    def losses(reason: str, *examples: str) -> Iterator[Loss]:
        for example in examples:
            becomes = decoder.decode(encoder.encode(example))
            if becomes is not None and becomes != example:
                yield Loss(reason, example, becomes)

    if lost := tuple(loss for known in found.reasons for loss in losses(known.reason, known.example)):
        return Losslessness(lost)
    for token in facts.special.plain:
        text = token if facts.is_byte_level else token.replace("▁", " ")
        examples = (f"a{text}b", f"a {text} b", f" \n {text}", f"\n{text}", f"{text} ", f"{text}\n", text)
        reason = f"The added token {token!r}, found in every text, changes the spaces beside it."
        for loss in losses(reason, *examples):
            return Losslessness((loss,))
    if not found:
        raise ModelError("it cannot be told whether every text comes back: added tokens take what is lost")
    return found


def losslessness(spec: ModelSpec) -> Losslessness:
    """Whether every text comes back, and if not, what is lost.

    Raise a ModelError if this cannot be decided: every text that was tried comes back, but the model has too
    many rules to try them all, or a denormalizer for which it cannot be shown that it undoes the rules.
    """
    if spec.alphabet == "bytes":
        return _of_bytes(spec.normalizer)
    engine: ReferenceEngine | None = None
    found = []
    too_many: ModelError | None = None
    for reason, examples in _suspects(spec):
        engine = engine or ReferenceEngine(spec)
        try:
            for number, example in enumerate(examples):
                if number == _MAX_EXAMPLES:
                    raise ModelError(f"{number} texts that rules apply to came back, and there are more")
                data = example.encode()
                becomes = text_of(engine.decode_ids([token.id for token in engine.encode(data)]))
                if becomes != example and "▁" not in example:
                    found.append(Loss(reason, example, becomes))
                    break
        except ModelError as error:
            too_many = error
    if too_many is None and not found and not _is_undone(spec):
        too_many = ModelError(
            "the denormalizer gives back what each rule rewrites, but perhaps not next to other characters"
        )
    if too_many is not None and not found:
        raise ModelError(f"it cannot be told whether every text comes back: {too_many}") from too_many
    return Losslessness(tuple(found))


def _of_bytes(rules: NormalizerSpec) -> Losslessness:
    """The answer for a byte-level model. All bytes are pieces, so joining gives the normalized text."""
    losses, front = [], " " if rules.add_dummy_prefix else ""
    if form := rules.unicode_form:
        example = NOT_IN_FORM[form]
        becomes = front + "".join(placed.character for placed in normal_form(form, example))
        losses.append(Loss(f"Text is brought into the Unicode normal form {form}.", example, becomes))
    if front:
        losses.append(Loss("A space is put in front of texts, and decoding keeps it.", "a", " a"))
    return Losslessness(tuple(losses))


def _suspects(spec: ModelSpec) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield everything that could lose text, with texts that would show it.

    If there is nothing, every text comes back, for this reason. Without rules and without
    remove_extra_whitespaces, the normalized text is the text itself, with spaces written as `▁`, and with a
    dummy prefix. With byte_fallback each of its symbols becomes a piece that spells it, or, if it is a single
    character, its bytes. Decoding joins these again. It turns `▁` into a space in pieces, but not in bytes,
    and drops as many `▁` at the beginning as were added.
    """
    normalizer = spec.normalizer
    # (This reads columns, because making an object of each of 250,000 pieces would take most of a second.)
    types = dict(zip(spec.pieces.texts, spec.pieces.types, strict=True))
    rules = Charsmap(normalizer.charsmap) if normalizer.charsmap else None

    if not spec.byte_fallback:
        # (These are more characters than there are pieces, so at least one of them is no piece.)
        every = chain(_OFTEN_UNKNOWN, map(chr, range(0x100000, 0x100001 + len(spec.pieces))))
        yield (
            "Characters that are not in the vocabulary are lost: there is no byte fallback.",
            (c for c in every if not _has_piece(types, c) and not (rules and rules.longest(c.encode(), 0))),
        )
    if normalizer.remove_extra_whitespaces:
        yield (
            "Spaces at both ends are removed, and all but one of several: remove_extra_whitespaces is on.",
            ["a  b", " ", "  "],
        )
    if rules:
        name = f", {normalizer.name!r}," if normalizer.name else ""
        yield f"The normalization rules{name} rewrite some characters.", _rewritten(spec, rules)
    if normalizer.add_dummy_prefix and normalizer.suffix:
        yield (
            "A space is added after the text, and decoding keeps it: treat_whitespace_as_suffix is on.",
            ["a"],
        )
    elif normalizer.add_dummy_prefix and not normalizer.escape_whitespaces:
        yield (
            "The dummy prefix is a plain space, and decoding keeps it: escape_whitespaces is off.",
            ["a"],
        )
    if normalizer.add_dummy_prefix and not (normalizer.suffix or normalizer.prefix_before_space):
        yield (
            "Text that begins with a space gets no dummy prefix, and decoding drops its first space.",
            [" a", " "],
        )
    if not _has_piece(types, "▁"):
        yield (
            "A space that merges with nothing does not come back: text cannot yield the piece '▁'.",
            chain(["a b", " "], (f"{rare} {rare}" for rare in map(chr, range(0x10FFFD, 0x10F000, -1)))),
        )
    broken = [piece for piece, type in types.items() if type == PieceType.USER_DEFINED and _is_broken(piece)]
    if broken:
        yield (
            "Some user-defined pieces end inside a character, and take it apart.",
            chain.from_iterable(map(_completed, broken)),
        )
    if spec.denormalizer is not None and spec.denormalizer.charsmap:
        back = Charsmap(spec.denormalizer.charsmap, "denormalizer_spec")
        keys = (key for key, _ in _rules(back))
        alone = chain.from_iterable(map(_completed, keys))
        yield (
            "The denormalizer rewrites what was decoded.",
            chain(["a", "a b", "a  b"], alone, _side_by_side(rules, back)),
        )


def _has_piece(types: Mapping[bytes, int], character: str) -> bool:
    """Whether text can yield a character as a piece. (UNUSED pieces are split again.)"""
    return types.get(character.encode()) in (PieceType.NORMAL, PieceType.USER_DEFINED)


def _is_broken(piece: bytes) -> bool:
    return repair(piece) != piece


def _completed(data: bytes) -> Iterator[str]:
    """Yield some bytes as a text. If they end inside a character, yield texts that complete it."""
    try:
        text, used = utf_8_decode(data, "strict", False)
    except UnicodeDecodeError:
        return  # they are broken at another place, where nothing can complete them
    if used == len(data):
        yield text
        return
    for count in range(1, 4):
        for last in range(0x80, 0xC0):
            completed = data + bytes([last]) * count
            if not _is_broken(completed):
                yield completed.decode()


# --- Rules ----------------------------------------------------------------------------------------


def _rewritten(spec: ModelSpec, rules: Charsmap) -> Iterator[str]:
    """Yield texts that the normalization rules may rewrite, first some that make good examples."""
    for text in _OFTEN_REWRITTEN:
        if rules.longest(text.encode(), 0):
            yield text
    for key, value in _rules(rules):
        # A rule whose key is not a whole character takes one apart, even if it changes nothing.
        if _changes(spec, key, value) or _is_broken(key):
            yield from _completed(key)


def _changes(spec: ModelSpec, key: bytes, value: bytes) -> bool:
    """Whether a rule changes anything. It may turn a space into `▁`, which would happen later anyway."""
    return value != key and not (spec.normalizer.escape_whitespaces and value.replace(SPACE, b" ") == key)


def _side_by_side(rules: Charsmap | None, back: Charsmap) -> Iterator[str]:
    """Yield a few keys and replacements, each before and after the beginnings of all of them."""
    pairs = chain(_rules(rules) if rules else (), _rules(back))
    few = sorted({text_of(part) for pair in islice(pairs, _FEW) for part in pair} - {""})
    parts = sorted({text[:end] for text in few for end in range(1, len(text))} | set(few))
    for middle in few:
        for part in parts:
            yield part + middle
            yield middle + part


def _is_undone(spec: ModelSpec) -> bool:
    """Whether it can be shown that the denormalizer gives every text back. (Each rule has been tried by now.)

    It does so if it maps each replacement to its key again, and finds exactly the replacements in the
    normalized text. For that, two conditions are enough:

    - Each replacement begins with a character that occurs nowhere else in normalized text. This is the case
      if there is a rule whose key is that character, because then none is left over from the text
      itself, and if nothing that the normalizer copies contains it.
    - No replacement is the beginning of another one.

    It also gives every text back if no rule changes anything, and if all it rewrites is `▁`, which is what a
    model without this piece decodes a space to.
    """
    normalizer, denormalizer = spec.normalizer, spec.denormalizer
    if denormalizer is None or not denormalizer.charsmap:
        return True
    if denormalizer.add_dummy_prefix or denormalizer.remove_extra_whitespaces:
        return False
    every = dict(_rules(Charsmap(normalizer.charsmap))) if normalizer.charsmap else {}
    back = {key: value for key, value in _rules(Charsmap(denormalizer.charsmap)) if key != value}
    changing = {key: value for key, value in every.items() if _changes(spec, key, value)}
    if not changing and set(back) <= {SPACE}:
        return True
    firsts = {value[: character_length(value, 0)] for value in changing.values() if value}
    copied = [  # the normalizer copies these into the normalized text
        *(key for key in every if key not in changing),
        *(
            text
            for text, type in zip(spec.pieces.texts, spec.pieces.types, strict=True)
            if type == PieceType.USER_DEFINED
        ),
    ]
    spaces = (b" ", SPACE)
    return (
        len(changing) == len(set(changing.values()))
        and back == {value: key for key, value in changing.items()}
        and firsts <= set(changing)
        and not any(first in text for first in firsts for text in copied)
        and not any(space in text for space in spaces for pair in changing.items() for text in pair)
        and not any(_is_broken(text) for pair in changing.items() for text in pair)
        and not any(one != other and other.startswith(one) for one in back for other in back)
    )


def _rules(charsmap: Charsmap) -> Iterator[tuple[bytes, bytes]]:
    """The rules of a charsmap as pairs of key and replacement. Raise a ModelError if there are too many."""
    return charsmap.rules(_MAX_NODES, shortest_first=True)
