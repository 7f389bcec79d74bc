"""Byte-level models and their files: makes models out of what files (and users) say, and files' contents
out of models.

Some files have ranks, others a list of pairs. `cpbpe.model.pair_ranks` proves when merging by scores and by
pairs are the same. It works on characters, so here each byte is written as one character, its letter (see
`cpbpe/text/utf8.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from cpbpe.errors import ModelError
from cpbpe.lazy import importing
from cpbpe.model.formats.values import Difference, Written, unlike
from cpbpe.model.pair_ranks import (
    Pair,
    by_pair,
    by_text,
    candidates,
    differences,
    merged,
    ordered,
    pairs_by_text,
    ranks_of,
    shortest_first,
)
from cpbpe.model.spec import ModelSpec, NormalizerSpec, Pieces, PieceType, SplitSpec
from cpbpe.model.validity import compiled
from cpbpe.spelling import advised, given
from cpbpe.text.split_patterns import PATTERNS, name_of, named_pattern
from cpbpe.text.unicode_forms import NOT_IN_FORM
from cpbpe.text.utf8 import BYTE_ORDER, LETTERS, from_letters, to_letters, valid_text

AS_IT_IS = NormalizerSpec(
    "identity", b"", add_dummy_prefix=False, remove_extra_whitespaces=False, escape_whitespaces=False
)
"""The normalizer of byte-level models."""
_MOST_EXACT = 1 << 24
"""Scores are float32, which can hold every id up to here exactly."""


def shown(piece: bytes) -> str:
    """Return a piece as messages show it."""
    return piece.decode(errors="backslashreplace")


def normal(spec: ModelSpec) -> Iterator[tuple[int, bytes]]:
    """Return the NORMAL pieces with their ids."""
    types = spec.pieces.types
    return ((id, piece) for id, piece in enumerate(spec.pieces.texts) if types[id] == PieceType.NORMAL)


def special_tokens_of(spec: ModelSpec) -> dict[int, bytes]:
    """Return the special tokens by their ids: CONTROL pieces and added tokens."""
    types = spec.pieces.types
    control = {id: text for id, text in enumerate(spec.pieces.texts) if types[id] == PieceType.CONTROL}
    return control | {id: text for text, id in spec.added}


def spelled(spec: ModelSpec) -> dict[int, str]:
    """Return the names by which GPT-2's files call all pieces and added tokens, by id."""
    rows = zip(spec.pieces.texts, spec.pieces.types, strict=True)
    names = {
        id: to_letters(text) if type == PieceType.NORMAL else text.decode(errors="replace")
        for id, (text, type) in enumerate(rows)
    }
    return names | {id: text.decode(errors="replace") for text, id in spec.added}


def in_letters(pieces: Pieces) -> ModelSpec:
    """Return a model that merges any bytes, written as letters, as these pieces merge the bytes of a chunk.

    (Engines would read bytes that are not UTF-8 as U+FFFD.) Its last piece is for letters that are no piece.
    """
    texts = [*(to_letters(text).encode() for text in pieces.texts), "\ue000".encode()]
    types = bytes(pieces.types) + bytes([PieceType.UNKNOWN])
    return ModelSpec(Pieces.of_lists(texts, [*pieces.numbers(), 0.0], types), AS_IT_IS)


# --- What files do not say ------------------------------------------------------------------------


def example() -> str:
    """Return an example of how a user gives a pattern and special tokens."""
    return advised(
        'cpbpe.load(path, pattern="cl100k", special_tokens={"<|endoftext|>": 100257})',
        "--pattern cl100k --special-token '<|endoftext|>=100257'",
    )


def known_patterns() -> str:
    """Return a sentence that says what a pattern can be."""
    return f"The pattern is a regular expression or the name of a published one: {', '.join(PATTERNS)}"


def said_again(splitter: SplitSpec | None, special: Mapping[str, int]) -> str:
    """Return what a user has to pass to load a file that says neither its pattern nor its special tokens.

    >>> said_again(None, {"<e>": 3})
    "pattern='' and special_tokens={'<e>': 3}"
    """
    pattern = "" if splitter is None else splitter.name or splitter.pattern
    more = f" and special_tokens={dict(special)!r}" if special else ""
    with importing:
        from shlex import quote
    flags = [f"--pattern {quote(pattern)}"]
    flags += [f"--special-token {quote(f'{token}={id}')}" for token, id in special.items()]
    return advised(f"pattern={pattern!r}{more}", " ".join(flags))


def unsaid(spec: ModelSpec) -> Iterator[Difference]:
    """Yield what a file that has at most one pattern cannot say: how text is rewritten, further patterns."""
    form = spec.normalizer.unicode_form
    if form:
        reason = f"the model brings text into the Unicode normal form {form}, and the file does not say it"
        yield Difference(reason, NOT_IN_FORM[form])
    rest = replace(
        spec.normalizer, name="", unicode_form="", add_dummy_prefix=False, prefix_before_space=True
    )
    if rest != replace(AS_IT_IS, name=""):
        yield Difference("the model rewrites text before it is cut, and the file does not say it")
    if spec.normalizer.add_dummy_prefix:
        yield Difference("the model puts a space in front of texts, and the file does not say it", "a")
    own = spec.splitter
    if own is not None and replace(own, name="") != SplitSpec(own.pattern):
        yield Difference("the model cuts text by more than one pattern, and the file does not say it")


# --- From what a file says ------------------------------------------------------------------------


def splitter_of(pattern: str) -> SplitSpec | None:
    r"""Return the splitter for a pattern's name or a regular expression; None if it is empty.

    >>> splitter_of("GPT-4").name, splitter_of(r"\w+").name, splitter_of("")
    ('cl100k', '', None)
    """
    if not pattern:
        return None
    name = named_pattern(pattern)
    if name is not None:
        return SplitSpec(PATTERNS[name], name)
    if pattern.replace("_", "").replace("-", "").isalnum():
        raise ModelError(f"there is no published pattern {pattern!r}. {known_patterns()}")
    return tiktoken_splitter(pattern)


def tiktoken_splitter(pattern: str) -> SplitSpec:
    r"""Return the splitter for a regular expression of tiktoken, which may have `&&` in classes (Kimi K2).

    >>> tiktoken_splitter(r"[a-z&&[^b]]+").pattern
    '(?:(?=[a-z])[^b])+'
    """
    if "&&" in pattern:
        with importing:
            from cpbpe.model.formats.tokenizer_json.patterns import without_intersections
        pattern = without_intersections(pattern)
    return SplitSpec(pattern, name_of(pattern))


def assembled(
    scores: Mapping[int, tuple[bytes, float]],
    special: Mapping[str, int],
    *,
    splitter: SplitSpec | None,
    ends: tuple[str, str] = ("", ""),
    whole: bool,
    number: str = "id",
) -> ModelSpec:
    """Return the model of these pieces (texts and scores by id) and special tokens.

    Special tokens with ids between those of the pieces, or right after them, become CONTROL pieces. Others
    become added tokens, and so does one with the text of a piece. `ends` are the tokens that begin and end a
    text, "" for the usual names; `number` is what messages call an id.
    """
    # 1. The special tokens by id.
    by_id: dict[int, bytes] = {}
    for token, id in special.items():
        taken = scores[id][0] if id in scores else by_id.get(id, b"")
        if taken:
            raise ModelError(
                f"the special token {token!r} cannot have the id {id}, which is that of {shown(taken)!r}"
            )
        by_id[id] = token.encode()
    # 2. The ids below the first unused one are pieces; tokens above it are added tokens.
    texts = {text for text, _ in scores.values()}
    size = 0
    while size in scores or (size in by_id and by_id[size] not in texts):
        size += 1
    above = next((id for id in sorted(scores) if id >= size), None)
    if above is not None:
        way_out = given("special_tokens", {"<|endoftext|>": size})
        way_out = advised(way_out, f"--special-token '<|endoftext|>={size}'")
        raise ModelError(
            f"no piece has the {number} {size}, but others have higher ones ({above}). If it is the id of a "
            f"special token, give that, too: {way_out}",
        )
    rows = [
        (*scores[id], PieceType.NORMAL) if id in scores else (by_id[id], 0.0, PieceType.CONTROL)
        for id in range(size)
    ]
    begin, end = (name or usual for name, usual in zip(ends, ("<s>", "</s>"), strict=True))
    return ModelSpec(
        pieces=Pieces.of(rows),
        normalizer=AS_IT_IS,
        special_pieces=(b"<unk>", begin.encode(), end.encode(), b"<pad>"),
        alphabet="bytes",
        splitter=splitter,
        whole=whole,
        added=tuple((token, id) for id, token in sorted(by_id.items()) if id >= size),
    )


def scores_of(ids: Mapping[str, int], pairs: Mapping[Pair, float]) -> tuple[dict[str, float], list[str]]:
    """Return scores by which the pieces merge as by a list of pairs, and the pieces for which they cannot.

    Pieces are spelled in letters, and given with their ids. Nearly always, the ids are in the order of the
    merges, and the scores are the negative ids. A piece that no merges make may then have any score: two
    neighbours never become it, because its text by itself never becomes two symbols (`pair_ranks` shows why).

    Otherwise the first pair gets the score -256. Single bytes, which no merge makes, get the scores above it,
    in GPT-2's order, and pieces that no merges make get the lowest score of all. If the text of such a piece
    by itself ends as two symbols, merging by scores would merge these two. Such pieces are returned, the
    shortest first.

    >>> scores_of({"a": 97, "b": 98, "ab": 256, "axb": 300}, {("a", "b"): 0})
    ({'a': -97.0, 'b': -98.0, 'ab': -256.0, 'axb': -300.0}, [])
    >>> scores_of({"ab": 0, "abc": 1, "bc": 2}, {("b", "c"): 0, ("ab", "c"): 1, ("a", "b"): 2})
    ({'ab': -258.0, 'abc': -259.0, 'bc': -256.0}, ['abc'])
    """
    made = ranks_of([piece for piece in ids if len(piece) > 1], pairs)
    unmade = [piece for piece in ids if len(piece) > 1 and piece not in made]
    wrong = [piece for piece in unmade if len(merged(piece, by_pair(pairs))) == 2]
    order = [ids[piece] for piece in sorted(made, key=made.__getitem__)]
    if not wrong and order == sorted(order) and max(ids.values(), default=0) < _MOST_EXACT:
        return {piece: float(-id) for piece, id in ids.items()}, []
    places = {LETTERS[byte]: float(-place) for place, byte in enumerate(BYTE_ORDER)}
    lowest = -256.0 - max(pairs.values(), default=-1) - 1
    scores = {piece: -256.0 - made[piece] if piece in made else places.get(piece, lowest) for piece in ids}
    return scores, sorted(wrong, key=shortest_first)


def differences_of(wrong: Iterable[str]) -> list[Difference]:
    """Return the pieces for which `scores_of` has no right score, as differences."""
    reason = (
        "there is a piece that no pair makes of what its text becomes, and here two neighbours merge if "
        "together they are a piece"
    )
    return [Difference(reason, shown(from_letters(piece))) for piece in wrong]


# --- From scores to pairs -------------------------------------------------------------------------


class Listed(NamedTuple):
    """The pairs of a model, in letters."""

    pairs: dict[str, Pair]
    """The pair that makes each piece, in the order of merging."""
    unmade: list[str]
    """The pieces of several bytes that no merges make."""
    differs: bool = False
    """Whether the pairs and the scores differ on some text."""
    text: str | None = None
    """The shortest text that was found to show it."""

    def differences(self, program: str) -> Iterator[Difference]:
        """Yield how a program that merges by these pairs differs."""
        if self.differs:
            yield Difference(f"of merges with equal scores, {program} chooses another one", self.text)


def pairs_of(spec: ModelSpec) -> Listed:
    """Return the pairs of a byte-level model.

    >>> rows = [(text, -place, PieceType.NORMAL) for place, text in enumerate([b"ab", b"abc", b"xyz"])]
    >>> pairs_of(ModelSpec(Pieces.of(rows), AS_IT_IS, alphabet="bytes"))
    Listed(pairs={'ab': ('a', 'b'), 'abc': ('ab', 'c')}, unmade=['xyz'], differs=False, text=None)
    """
    ranks = ranks_in_letters(spec)
    made = pairs_by_text(ranks)
    equal = candidates(made, ranks)
    order = ordered(made, ranks, equal)
    differs, text = False, None
    for letters in differences(made, ranks, order, equal):
        differs = True
        if (text := valid_text(from_letters(letters))) is not None:
            break
    unmade = [piece for piece in ranks if piece not in made]
    return Listed({piece: made[piece] for piece in order}, unmade, differs, text)


def ranks_in_letters(spec: ModelSpec) -> dict[str, float]:
    """Return the rank of each NORMAL piece of several bytes, by its letters."""
    ranks = spec.pieces.ranks()
    return {to_letters(piece): ranks[id] for id, piece in normal(spec) if len(piece) > 1}


def wrong_pairs(spec: ModelSpec, written: Written, again: ModelSpec) -> str:
    """Return what is wrong with a written file that lists pairs, after reading it again; "" if nothing is.

    (The merges are not compared: they are proved to be the same.)
    """
    size = len(spec.pieces)
    if written.differences:
        return ""
    if (again.pieces.texts[:size], again.pieces.types[:size]) != (spec.pieces.texts, spec.pieces.types):
        return "its pieces are not the same"
    return unlike(spec, again, "special tokens")


def of_ranks(spec: ModelSpec, first: int, program: str) -> Iterator[Difference]:
    """Yield how a program differs that uses the ids of pieces, minus `first`, as their ranks."""
    yield from unsaid(spec)
    scores = spec.pieces.numbers()
    several = [(id, piece) for id, piece in normal(spec) if len(piece) > 1]
    for (id, _), (next_id, piece) in pairwise(several):
        if not scores[id] > scores[next_id]:
            reason = f"the piece {next_id}, {shown(piece)!r}, does not merge after those before it"
            yield Difference(f"{reason}, and ranks are ids")
            break
    if not spec.whole:
        ranks = {to_letters(piece): float(id - first) for id, piece in several}
        made = pairs_by_text(ranks)
        if unmade := next((piece for _, piece in several if to_letters(piece) not in made), None):
            reason = f"{program} takes a chunk that is a piece whole, and here no merges make it"
            yield Difference(reason, shown(unmade))


# --- What patterns do -----------------------------------------------------------------------------

_SAMPLES = ("I'M 12345", "(self)", "a\n\n  b", "it's", "HTMLParser", "  x", "1a", "\t\tif", "://", "a_b")
"""Texts that the published patterns cut differently."""


def chunks(text: str, patterns: Iterable[str]) -> list[str]:
    """Return the chunks of a text. Each pattern cuts those of the one before, also between its matches.

    >>> chunks("a1b", ["[0-9]"])
    ['a', '1', 'b']
    """
    parts = [text]
    for pattern in patterns:
        cut: list[str] = []
        for part in parts:
            at = 0
            for match in compiled(pattern).finditer(part):
                cut += [part[at : match.start()], match.group()]
                at = match.end()
            cut.append(part[at:])
        parts = cut
    return [part for part in parts if part]


def symbols(
    text: str, patterns: Iterable[str], ranks: Mapping[str, float], whole: Container[str] = ()
) -> list[str]:
    """Return the symbols of a text, in letters. A chunk that is in `whole` is one symbol."""
    rank, result = by_text(ranks), []
    for chunk in chunks(text, patterns):
        letters = to_letters(chunk.encode())
        result += [letters] if letters in whole else merged(letters, rank)
    return result


def cut_pieces(pieces: Collection[bytes], pattern: str) -> Iterator[str]:
    """Yield the pieces that a pattern cuts. A model that was trained with this pattern has none."""
    match = compiled(pattern).match
    for piece in pieces:
        text = valid_text(piece)
        if text is None:
            continue  # the piece begins or ends within a character
        first = match(text)
        if first is None or first.end() < len(text):
            yield text


def text_that_differs(spec: ModelSpec, pattern: str) -> str | None:
    """Return a text that gets other ids if another pattern cuts it; None if none is found."""
    own = spec.patterns
    if own == (pattern,):
        return None
    ranks = ranks_in_letters(spec)
    cut = cut_pieces([piece for _, piece in normal(spec)], pattern)
    tried = [*_SAMPLES, *(text for text, _ in zip(cut, range(100), strict=False))]
    return min(
        (text for text in tried if symbols(text, own, ranks) != symbols(text, (pattern,), ranks)),
        key=shortest_first,
        default=None,
    )
