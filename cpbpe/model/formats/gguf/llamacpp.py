"""What llama.cpp does with a tokenizer, where that is not what sentencepiece does.

Like sentencepiece, it merges the two neighbours whose joined text has the highest score, of equals the
leftmost. What is different was measured with llama.cpp itself:

- It does not look at types: a text that becomes a CONTROL, UNKNOWN, BYTE or UNUSED piece by merging, or is
  one as a single character, gets its id.
- Bytes of unknown characters are BYTE pieces; without these it stops the whole program.
- It cuts USER_DEFINED pieces out of the text as it was given, the longest first, wherever they are, and
  treats what is between them like texts of their own, with a prefix for each. (A few that look like ends of
  turns are taken for CONTROL, and not cut out.)
- It applies no charsmap, removes no spaces, has no prefix at the end, and always escapes spaces.

Whether merging can make a piece is decided exactly: see `cpbpe.model.pair_ranks`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import accumulate

from cpbpe.lazy import kept
from cpbpe.model.formats.gguf import byte_level_llamacpp
from cpbpe.model.formats.tokenizer_json.names import MAX_USER_DEFINED_MATCHES, absent_character
from cpbpe.model.formats.values import Difference, described
from cpbpe.model.pair_ranks import Rank, by_text, merged, pairs_that_make
from cpbpe.model.spec import ModelSpec, PieceType
from cpbpe.text.finder import Finder

SPACE = "▁"
_ZEROS = (0, -(1 << 31))
"""The bits of the two zeros."""
_ENDS = frozenset([
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>",
    "<end_of_turn>", "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]",
    "<|end_of_text|>", "<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>", "<|fim_prefix|>",
    "<fim-prefix>", "<fim_prefix>", "<PRE>", "<|code_prefix|>", "<|prefix|>", "<|fim_suffix|>",
    "<fim-suffix>", "<fim_suffix>", "<SUF>", "<|code_suffix|>", "<|suffix|>", "<|fim_middle|>",
    "<fim-middle>", "<fim_middle>", "<MID>", "<|code_middle|>", "<|middle|>", "<|fim_pad|>",
    "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]", "<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>",
    "<reponame>", "<|file_sep|>",
])  # fmt: skip
"""Names that llama.cpp takes for CONTROL, whatever their type."""


def differences(spec: ModelSpec) -> list[Difference]:
    """Why llama.cpp gives other ids to some texts, each with a text; empty if it gives the same to all."""
    if spec.alphabet == "bytes":
        return byte_level_llamacpp.differences(spec)
    return [*LlamaCpp(spec).differences()]


def remarks(spec: ModelSpec) -> list[str]:
    """What a reader should know who has used a file with llama.cpp: where that gives other ids."""
    return [f"not as in llama.cpp: {described(difference)}" for difference in differences(spec)]


def types_that_show(spec: ModelSpec, program: str) -> list[Difference]:
    """What a program finds in texts that merges by scores whatever the types are, not so sentencepiece."""
    model = LlamaCpp(spec)
    return [*model.of_types(program), *model.of_scores(program)]


def with_unknown_characters(spec: ModelSpec) -> list[str]:
    """Pieces that merging makes although one of their characters is no piece, the shortest first."""
    model = LlamaCpp(spec)
    orphans = [text for text in model.ranks if not all(character in model.ids for character in text)]
    return sorted(pairs_that_make(orphans, model.rank), key=lambda text: (len(text), text))


class LlamaCpp:
    """A model as llama.cpp has it."""

    def __init__(self, spec: ModelSpec):
        self.spec = spec
        self.types = spec.pieces.types
        self.texts = [text.decode(errors="surrogateescape") for text in spec.pieces.texts]
        self.ids = {text: id for id, text in enumerate(self.texts) if text != "\0"}

    # --- Ids -------------------------------------------------------------------------------------

    def encode(self, text: str) -> list[int] | None:
        """The ids that llama.cpp gives to a text; None where it stops the program.

        >>> from cpbpe.model.spec import Pieces
        >>> names = ["<unk>", "a", "▁", "▁a"]
        >>> types = [PieceType.UNKNOWN] + [PieceType.NORMAL] * 3
        >>> spec = ModelSpec(Pieces.of_lists([name.encode() for name in names], [0, 0, 0, 0], types))
        >>> LlamaCpp(spec).encode("a a"), LlamaCpp(spec).encode("b")
        ([3, 3], None)
        """
        ids: list[int] = []
        after_special = True
        for part in self._cut(text):
            if isinstance(part, int):
                ids.append(part)
                after_special = True
                continue
            prefix = " " if after_special and self.spec.normalizer.add_dummy_prefix else ""
            after_special = False
            for symbol in merged((prefix + part).replace(" ", SPACE), by_text(self._all_ranks))[0]:
                found = self._ids_of(symbol)
                if found is None:
                    return None
                ids += found
        return ids

    def _ids_of(self, symbol: str) -> list[int] | None:
        if symbol in self._all_ranks:
            return [self.ids[symbol]]
        found = [self.ids.get(f"<0x{byte:02X}>", self.ids.get(chr(byte))) for byte in symbol.encode()]
        return None if None in found else [id for id in found if id is not None]

    def _cut(self, text: str) -> list[str | int]:
        """The text without USER_DEFINED pieces, and their ids."""
        parts: list[str | int] = [text] if text else []
        for form, id in self.cut_out:
            new: list[str | int] = []
            for part in parts:
                if isinstance(part, int) or form not in part:
                    new.append(part)
                    continue
                for place, rest in enumerate(part.split(form)):
                    new += [id] * (place > 0) + ([rest] if rest else [])
            parts = new
        return parts

    @kept
    def cut_out(self) -> list[tuple[str, int]]:
        """The USER_DEFINED pieces as they are in given text, the longest first, with their ids."""
        forms = [
            (text.replace(SPACE, " "), id)
            for id, text in enumerate(self.texts)
            if self.types[id] == PieceType.USER_DEFINED and text not in _ENDS and not _is_broken(text)
        ]
        return sorted(forms, key=lambda row: -_size(row[0]))

    @kept
    def _all_ranks(self) -> dict[str, float]:
        """The pieces that text may become, with the lowest rank for the highest score.

        USER_DEFINED pieces are in the file with spaces, which escaped text does not have.
        """
        scores = self.spec.pieces.numbers()
        return {
            text: -scores[id]
            for text, id in self.ids.items()
            if " " not in text
            and not _is_broken(text)
            and not (SPACE in text and self.types[id] == PieceType.USER_DEFINED)
        }

    @kept
    def ranks(self) -> dict[str, float]:
        """The same without what holds a USER_DEFINED piece, which is cut out before."""
        ranks = self._all_ranks
        if self.user_defined:
            ranks = {text: rank for text, rank in ranks.items() if not self.holds_user_defined(text)}
        return ranks

    @kept
    def rank(self) -> Rank:
        """The rank of two neighbours."""
        return by_text(self.ranks)

    def holds_user_defined(self, text: str) -> bool:
        """Whether a piece that is always kept whole is somewhere in a text."""
        return self._finder.split(text.encode()) is not None

    @kept
    def _finder(self) -> Finder:
        return Finder(text.encode(errors="surrogateescape") for text in self.user_defined)

    @kept
    def user_defined(self) -> list[str]:
        """The USER_DEFINED pieces."""
        return [
            text
            for id, text in enumerate(self.texts)
            if self.types[id] == PieceType.USER_DEFINED and not _is_broken(text)
        ]

    # --- Differences -----------------------------------------------------------------------------

    @kept
    def absent(self) -> str:
        """A character of no piece: nothing is merged across it."""
        return absent_character(self.texts)

    def differences(self) -> Iterator[Difference]:
        """Why some texts get other ids."""
        yield from self._of_normalizing()
        if not self.spec.byte_fallback:
            reason = "llama.cpp stops the program where a character is unknown, as there are no BYTE pieces"
            yield Difference(reason, self.absent)
        yield from self._of_user_defined()
        yield from self.of_types("llama.cpp")
        yield from self.of_scores("llama.cpp")

    def _of_normalizing(self) -> Iterator[Difference]:
        rules = self.spec.normalizer
        if rules.charsmap:
            yield Difference(f"llama.cpp does not apply the rules {rules.name or 'of the normalizer'!r}")
        if rules.remove_extra_whitespaces:
            yield Difference("llama.cpp keeps all spaces", " a  b ")
        if rules.add_dummy_prefix and rules.suffix:
            yield Difference("llama.cpp has no prefix at the end of a text", "a")
        if not rules.escape_whitespaces:
            yield Difference("llama.cpp always writes spaces as ▁", "a b")

    def _of_user_defined(self) -> Iterator[Difference]:
        types = zip(self.texts, self.types, strict=True)
        if any(type == PieceType.USER_DEFINED and _is_broken(text) for text, type in types):
            yield Difference(
                "llama.cpp does not find USER_DEFINED pieces that are not UTF-8 inside characters"
            )
        if not self.user_defined:
            return
        shortest = min(self.user_defined, key=len)
        if self.spec.normalizer.add_dummy_prefix:
            reason = (
                f"llama.cpp treats the texts before and after a USER_DEFINED piece such as {shortest!r} apart"
            )
            text = f"a{shortest.replace(SPACE, ' ')}a"
            yield Difference(f"{reason}, each with a prefix", text)
        if looks := [text for text in self.user_defined if text in _ENDS]:
            yield Difference(f"llama.cpp takes the USER_DEFINED piece {looks[0]!r} for CONTROL", looks[0])
        if spaces := [text for text in self.user_defined if SPACE in text]:
            reason = f"llama.cpp finds the USER_DEFINED piece {spaces[0]!r} only if it is written with spaces"
            yield Difference(reason, spaces[0])
        if " " in "".join(self.user_defined) or self._too_many():
            yield Difference("llama.cpp finds USER_DEFINED pieces that sentencepiece does not find")
        if overlap := self._overlap():
            left, right, both = overlap
            reason = "llama.cpp looks for the longest USER_DEFINED piece first"
            reason = f"{reason}, and {left!r} and {right!r} overlap"
            yield Difference(reason, None if _size(left) == _size(right) else both)

    def _too_many(self) -> bool:
        """Whether sentencepiece, which looks at a limited number, does not find a piece."""
        given = [text.encode(errors="surrogateescape") for text in self.user_defined]
        finder = Finder(given, MAX_USER_DEFINED_MATCHES)
        return any(finder.longest(text, 0) != len(text) for text in given)

    def _overlap(self) -> tuple[str, str, str] | None:
        """A piece that ends as another one begins that is not shorter, and a text of both.

        If there are none, the longest first is the same as from left to right. For let x be the first piece
        from the left, the longest that begins there. What is longer and touches it would begin inside it, and
        there is no such piece. So llama.cpp cuts x out, too, and the rest of the text is a shorter text. (In
        runs of one character, what is longer begins where x does.)
        """
        begins: dict[str, list[str]] = {}
        for text in self.user_defined:
            for part in accumulate(text[:-1]):
                begins.setdefault(part, []).append(text)
        for left in sorted(self.user_defined, key=_size):
            for at in range(1, len(left)):
                for right in begins.get(left[at:], ()):
                    if right != left and _size(left) <= _size(right) and len({*left, *right}) > 1:
                        return left, right, (left[:at] + right).replace(SPACE, " ")
        return None

    def of_types(self, program: str) -> Iterator[Difference]:
        """Pieces that are found in a text only by a program that does not look at types."""
        normal = (PieceType.NORMAL, PieceType.USER_DEFINED)
        others = [
            text for text, id in self.ids.items() if self.types[id] not in normal and text in self.ranks
        ]
        made = pairs_that_make([text for text in others if len(text) > 1], self.rank)
        found = [text for text in others if len(text) == 1 or text in made]
        if found:
            shortest = min(found, key=lambda text: (len(text), text))
            type = PieceType(self.types[self.ids[shortest]]).name
            reason = f"{program} finds the {type} piece {shortest!r} in text"
            yield Difference(reason, self.absent + shortest.replace(SPACE, " "))

    def of_scores(self, program: str) -> Iterator[Difference]:
        """Scores that are compared in another way."""
        if any(score != score for score in self.spec.pieces.numbers()):
            yield Difference(f"scores that are no numbers (NaN) have no order in {program}")
        elif self._both_zeros_merge():
            yield Difference(f"the scores 0 and -0 are equal in {program}, and not in sentencepiece")

    def _both_zeros_merge(self) -> bool:
        """Whether both kinds of zero are scores of pieces that can be made."""
        bits = array("i", self.spec.pieces.scores)
        zeros = [text for text in self.ranks if len(text) > 1 and bits[self.ids[text]] in _ZEROS]
        if len({bits[self.ids[text]] for text in zeros}) < 2:
            return False
        return len({bits[self.ids[text]] for text in pairs_that_make(zeros, self.rank)}) > 1


def _is_broken(text: str) -> bool:
    """Whether it stands for bytes that are not UTF-8, which no text holds."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _size(text: str) -> int:
    """The bytes of a USER_DEFINED piece as it is looked for, with spaces."""
    return len(text.replace(SPACE, " ").encode(errors="surrogateescape"))
