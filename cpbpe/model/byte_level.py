"""Putting a byte-level model together from what its file says, and what a user says besides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from cpbpe.errors import ModelError
from cpbpe.lazy import imported
from cpbpe.model.formats.values import Difference
from cpbpe.model.spec import ModelSpec, NormalizerSpec, Pieces, PieceType, SplitSpec
from cpbpe.spelling import advised, given
from cpbpe.text.split_patterns import PATTERNS, name_of, named_pattern
from cpbpe.text.unicode_forms import NOT_IN_FORM

AS_IT_IS = NormalizerSpec(
    "identity", b"", add_dummy_prefix=False, remove_extra_whitespaces=False, escape_whitespaces=False
)
"""The normalizer of byte-level models."""


def example() -> str:
    """How a user says both things."""
    return advised(
        'cpbpe.load(path, pattern="cl100k", special_tokens={"<|endoftext|>": 100257})',
        "--pattern cl100k --special-token '<|endoftext|>=100257'",
    )


def known_patterns() -> str:
    """What a pattern can be, as a sentence."""
    return f"The pattern is a regular expression or the name of a published one: {', '.join(PATTERNS)}"


def said_again(splitter: SplitSpec | None, special: Mapping[str, int]) -> str:
    """What a user has to give to load a file that does not say this.

    >>> said_again(None, {"<e>": 3})
    "pattern='' and special_tokens={'<e>': 3}"
    """
    pattern = "" if splitter is None else splitter.name or splitter.pattern
    more = f" and special_tokens={dict(special)!r}" if special else ""
    quote = imported("shlex").quote
    flags = [f"--pattern {quote(pattern)}"]
    flags += [f"--special-token {quote(f'{token}={id}')}" for token, id in special.items()]
    return advised(f"pattern={pattern!r}{more}", " ".join(flags))


def unsaid(spec: ModelSpec) -> Iterator[Difference]:
    """What a file cannot say that has a pattern at most: text that is rewritten, or cut in several steps."""
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


def splitter_of(pattern: str) -> SplitSpec | None:
    r"""The splitter of a pattern, given by its name or as a regular expression; None for an empty one.

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
    """The model of these pieces, each with its score by its id, and of special tokens.

    Special tokens right after the pieces, or between them, are CONTROL pieces, others added tokens, and so is
    one with the text of a piece. `ends`
    are those that begin and end a text, "" for the usual names; `number` is what ids are called in messages.
    """
    # 1. The id of everything.
    by_id: dict[int, bytes] = {}
    for token, id in special.items():
        taken = scores[id][0] if id in scores else by_id.get(id, b"")
        if taken:
            raise ModelError(
                f"the special token {token!r} cannot have the id {id}, which is that of "
                f"{taken.decode(errors='backslashreplace')!r}"
            )
        by_id[id] = token.encode()
    # 2. Pieces are those before the first id that nothing has; tokens after it are added ones.
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
