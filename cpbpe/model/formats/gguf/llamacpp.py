r"""The differences between what llama.cpp does with a tokenizer and what the model itself does.

**Models of characters.** Like sentencepiece, llama.cpp merges the two neighbours whose joined text has the
highest score, and of equals the leftmost. The differences were measured with llama.cpp itself:

- It does not look at types. If merging makes a CONTROL, UNKNOWN, BYTE or UNUSED piece, or if a single
  character is such a piece, the text gets the id of that piece.
- The bytes of unknown characters become BYTE pieces. If the model has none, the whole program stops.
- It cuts USER_DEFINED pieces out of the original text, the longest first, wherever they are. It treats the
  parts between them as separate texts, each with a prefix. (A few pieces whose names look like the end of a
  turn count as CONTROL, and are not cut out.)
- It applies no charsmap, removes no spaces, has no prefix at the end, and always escapes spaces.

Whether merging can make a piece is decided exactly: see `cpbpe.model.pair_ranks`.

**Byte-level models.** llama.cpp merges by the list of pairs, like the library `tokenizers`. The differences:

- It cuts texts by the patterns that the name in the file stands for (see `KNOWN`), and never brings them into
  a Unicode normal form.
- It makes a token of a chunk without merging only if the name says so, but then of every chunk that is a
  token, even a special one that is spelled like a word.
- It finds a few special tokens of gpt-oss in every text, whatever their types.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from types import MappingProxyType
from typing import NamedTuple

from cpbpe.lazy import kept
from cpbpe.model.byte_level import Listed, chunks, cut_pieces, normal, pairs_of, shown, spelled, symbols
from cpbpe.model.formats.tokenizer_json.merging import absent_character
from cpbpe.model.formats.values import Difference, described
from cpbpe.model.pair_ranks import Rank, by_text, pairs_that_make, shortest_first
from cpbpe.model.spec import MAX_USER_DEFINED_MATCHES, PLAIN, ModelSpec, PieceType, SplitSpec
from cpbpe.text.finder import Finder
from cpbpe.text.split_patterns import PATTERNS
from cpbpe.text.unicode_forms import NOT_IN_FORM
from cpbpe.text.utf8 import from_letters, is_spelled, is_valid_utf8, to_letters, valid_text

SPACE = "▁"
_ZEROS = (0, -(1 << 31))
"""The bits of the two zeros."""
ENDS = frozenset([
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>",
    "<end_of_turn>", "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]",
    "<|end_of_text|>", "<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>", "<|fim_prefix|>",
    "<fim-prefix>", "<fim_prefix>", "<PRE>", "<|code_prefix|>", "<|prefix|>", "<|fim_suffix|>",
    "<fim-suffix>", "<fim_suffix>", "<SUF>", "<|code_suffix|>", "<|suffix|>", "<|fim_middle|>",
    "<fim-middle>", "<fim_middle>", "<MID>", "<|code_middle|>", "<|middle|>", "<|fim_pad|>",
    "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]", "<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>",
    "<reponame>", "<|file_sep|>",
])  # fmt: skip
"""The names of tokens that llama.cpp treats as CONTROL, whatever their type."""


def differences(spec: ModelSpec) -> list[Difference]:
    """Return the reasons why llama.cpp gives other ids to some texts; empty if all texts get the same ids."""
    if spec.alphabet == "bytes":
        pre = name_for(spec)
        return [] if pre is None else [*LlamaCppBytes(spec, pre).differences()]
    return [*LlamaCpp(spec).differences()]


def remarks(spec: ModelSpec) -> list[str]:
    """Return, for someone who has used a file with llama.cpp, where llama.cpp gives other ids."""
    return [f"not as in llama.cpp: {described(difference)}" for difference in differences(spec)]


class LlamaCpp:
    """A model of characters, as llama.cpp uses it."""

    def __init__(self, spec: ModelSpec):
        self.spec = spec
        self.types = spec.pieces.types
        self.texts = [text.decode(errors="surrogateescape") for text in spec.pieces.texts]
        self.broken = {
            text for text, data in zip(self.texts, spec.pieces.texts, strict=True) if not is_valid_utf8(data)
        }
        """Texts that stand for bytes that are not UTF-8, which no original text contains."""
        self.ids = {text: id for id, text in enumerate(self.texts) if text != "\0"}

    @kept
    def all_ranks(self) -> dict[str, float]:
        """The ranks of the pieces that text may become. The highest score has the lowest rank.

        USER_DEFINED pieces with a space are left out: the file has them unescaped, so escaped text, which has
        no spaces, cannot become one.
        """
        scores = self.spec.pieces.numbers()
        return {
            text: -scores[id]
            for text, id in self.ids.items()
            if " " not in text
            and text not in self.broken
            and not (SPACE in text and self.types[id] == PieceType.USER_DEFINED)
        }

    @kept
    def ranks(self) -> dict[str, float]:
        """The same without pieces that contain a USER_DEFINED one, because that is cut out before."""
        if not self.user_defined:
            return self.all_ranks
        finder = Finder(text.encode() for text in self.user_defined)
        return {text: rank for text, rank in self.all_ranks.items() if finder.split(text.encode()) is None}

    @kept
    def rank(self) -> Rank:
        """The rank of two neighbours."""
        return by_text(self.ranks)

    @kept
    def user_defined(self) -> list[str]:
        """The USER_DEFINED pieces."""
        return [
            text
            for id, text in enumerate(self.texts)
            if self.types[id] == PieceType.USER_DEFINED and text not in self.broken
        ]

    # --- Differences -----------------------------------------------------------------------------

    @kept
    def absent(self) -> str:
        """A character that no piece contains: nothing is merged across it."""
        return absent_character(self.texts)

    def differences(self) -> Iterator[Difference]:
        """Yield the reasons why some texts get other ids."""
        rules = self.spec.normalizer
        if rules.charsmap:
            yield Difference(f"llama.cpp does not apply the rules {rules.name or 'of the normalizer'!r}")
        if rules.remove_extra_whitespaces:
            yield Difference("llama.cpp keeps all spaces", " a  b ")
        if rules.add_dummy_prefix and rules.suffix:
            yield Difference("llama.cpp has no prefix at the end of a text", "a")
        if rules.add_dummy_prefix and not rules.prefix_before_space:
            yield Difference("llama.cpp puts a space also in front of text that begins with one", " a")
        if not rules.escape_whitespaces:
            yield Difference("llama.cpp always writes spaces as ▁", "a b")
        if not self.spec.byte_fallback:
            reason = "llama.cpp stops the program where a character is unknown, as there are no BYTE pieces"
            yield Difference(reason, self.absent)
        yield from self._of_user_defined()
        yield from self.of_types("llama.cpp")
        yield from self.of_scores("llama.cpp")

    def _of_user_defined(self) -> Iterator[Difference]:
        types = zip(self.texts, self.types, strict=True)
        if any(text in self.broken for text, type in types if type == PieceType.USER_DEFINED):
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
        if spaces := [text for text in self.user_defined if SPACE in text]:
            reason = f"llama.cpp finds the USER_DEFINED piece {spaces[0]!r} only if it is written with spaces"
            yield Difference(reason, spaces[0])
        keys = [text.encode() for text in self.user_defined]
        finder = Finder(keys, MAX_USER_DEFINED_MATCHES)  # sentencepiece looks at a limited number
        if " " in "".join(self.user_defined) or any(finder.longest(key, 0) != len(key) for key in keys):
            yield Difference("llama.cpp finds USER_DEFINED pieces that sentencepiece does not find")
        yield from _of_user_defined(self.user_defined)

    def of_types(self, program: str) -> Iterator[Difference]:
        """Yield a difference if a program that ignores types finds other pieces than sentencepiece."""
        normal = (PieceType.NORMAL, PieceType.USER_DEFINED)
        others = [
            text for text, id in self.ids.items() if self.types[id] not in normal and text in self.ranks
        ]
        made = pairs_that_make([text for text in others if len(text) > 1], self.rank)
        found = [text for text in others if len(text) == 1 or text in made]
        if found:
            shortest = min(found, key=shortest_first)
            type = PieceType(self.types[self.ids[shortest]]).name
            reason = f"{program} finds the {type} piece {shortest!r} in text"
            yield Difference(reason, self.absent + shortest.replace(SPACE, " "))

    def of_scores(self, program: str) -> Iterator[Difference]:
        """Yield a difference if a program compares some scores in another way."""
        if any(score != score for score in self.spec.pieces.numbers()):
            yield Difference(f"scores that are no numbers (NaN) have no order in {program}")
            return
        # Merging can make pieces with both kinds of zero.
        bits = array("i", self.spec.pieces.scores)
        zeros = {text for text in self.ranks if len(text) > 1 and bits[self.ids[text]] in _ZEROS}
        if len({bits[self.ids[text]] for text in zeros}) == 2:
            zeros &= pairs_that_make(zeros, self.rank).keys()
        if len({bits[self.ids[text]] for text in zeros}) == 2:
            yield Difference(f"the scores 0 and -0 are equal in {program}, and not in sentencepiece")


# --- How byte-level models cut texts --------------------------------------------------------------
#
# A name stands for the tokenizer of one or a few models. llama.cpp cuts texts as these do, or nearly: it has
# no engine for regular expressions that knows Unicode. The names listed here are those of models whose own
# tokenizers are known for certain, from their files or from the code of libraries. There are more names.
#
# - GPT-2's pattern and DeepSeek's do the same in llama.cpp.
# - In patterns with endings such as `(?i:'s)`, llama.cpp misses only the letter ſ (U+017F), which is an s if
#   case is ignored.
# - In patterns that tell capitals from small letters, llama.cpp knows the case of A to Z only, and takes
#   marks such as accents for signs.

_ENDINGS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_THEIR_ENDINGS = "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
_NUMBERS = r"[\p{N}𑷠-𑷩𖿴-𖿶]"
"""One number, as the pre-tokenizer Digits of `tokenizers` has it (see `tokenizer_json.patterns`)."""


class PreName(NamedTuple):
    """A name under `tokenizer.ggml.pre`, and what it stands for."""

    name: str
    splitter: SplitSpec
    """How the models cut texts."""
    theirs: tuple[str, ...] = ()
    """The patterns by which llama.cpp cuts texts, if they are others."""
    whole: bool = False
    """Whether the models make a piece of a chunk that is one, without merging."""
    their_whole: bool = False
    """Whether llama.cpp does this."""
    form: str = ""
    """The Unicode normal form that the models bring texts into. (llama.cpp never does.)"""
    adds_bos: bool = False
    """Whether llama.cpp puts bos in front of texts if the file does not say."""


def _named(name: str) -> SplitSpec:
    return SplitSpec(PATTERNS[name], name)


def _without_long_s(pattern: str) -> tuple[str]:
    return (pattern.replace(_ENDINGS, _THEIR_ENDINGS),)


def _by_ascii_case(pattern: str) -> tuple[str]:
    """Return a pattern that tells capitals from small letters as llama.cpp spells it."""
    upper, lower = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
    pattern = pattern.replace(upper, r"(?:(?=\p{L})[^a-z])").replace(lower, r"(?:(?=\p{L})[^A-Z])")
    return _without_long_s(pattern)


_GPT2 = _named("gpt2")
_LLAMA3 = _named("llama3")
_QWEN2 = _named("qwen2")
_QWEN35 = SplitSpec(
    rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_O200K = _named("o200k")
_TEKKEN = _named("tekken")
_DEEPSEEK_V3 = SplitSpec(
    r"\p{N}{1,3}",
    then=(
        "[一-龥\u3040-ゟ゠-ヿ]+",
        "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
        "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
    ),
)
_DIGITS = SplitSpec(_NUMBERS, then=(_GPT2.pattern,))
_THEIR_DIGITS = (r"\p{N}", _GPT2.pattern)


def _of_llama3(name: str, whole: bool) -> PreName:
    theirs = _without_long_s(_LLAMA3.pattern)
    return PreName(name, _LLAMA3, theirs, whole=whole, their_whole=whole, adds_bos=whole)


def _of_o200k(name: str) -> PreName:
    return PreName(name, _O200K, _by_ascii_case(_O200K.pattern), whole=True)


_KNOWN = (
    # GPT-2; the same pattern in Phi-2 (CodeGen's tokenizer) and RoBERTa.
    PreName("gpt-2", _GPT2),
    PreName("phi-2", _GPT2),
    PreName("roberta-bpe", _GPT2),
    # GPT-NeoX's tokenizer.
    PreName("olmo", _GPT2, form="NFC"),
    PreName("mpt", _GPT2, form="NFC"),
    # Llama 3, and what has its pattern, but does not take chunks whole.
    *(_of_llama3(name, whole=True) for name in ("llama-bpe", "llama-v3", "llama3")),
    *(_of_llama3(name, whole=False) for name in ("dbrx", "smaug-bpe")),
    PreName("qwen2", _QWEN2, _without_long_s(_QWEN2.pattern), form="NFC"),
    PreName("qwen35", _QWEN35, _without_long_s(_QWEN35.pattern), form="NFC"),
    PreName("deepseek-v3", _DEEPSEEK_V3),
    *(_of_o200k(name) for name in ("gpt-4o", "llama4")),
    PreName(
        "tekken",
        _TEKKEN,
        _by_ascii_case(_TEKKEN.pattern),
        whole=True,
        their_whole=True,
        adds_bos=True,
    ),
    # Each digit by itself, and then GPT-2's pattern.
    PreName("starcoder", _DIGITS, _THEIR_DIGITS),
    PreName("smollm", _DIGITS, _THEIR_DIGITS),
    PreName("command-r", _DIGITS, _THEIR_DIGITS, form="NFC"),
)
KNOWN = MappingProxyType({row.name: row for row in _KNOWN})
"""The names that are read, with what they stand for."""

_NEAREST = {PATTERNS["cl100k"]: "llama-bpe"}
"""For patterns without a name, the name of a pattern that cuts the same way, except in texts where few models
show the difference."""


def name_for(spec: ModelSpec) -> PreName | None:
    """Return the name for how a model cuts texts, or for nearly the same patterns; None if there is none.

    If there are several, names whose `their_whole` is that of the model come first.
    """
    rows = [row for row in _KNOWN if row.splitter.patterns == spec.patterns]
    same = [row for row in rows if row.their_whole == spec.whole]
    near = [KNOWN[name] for pattern, name in _NEAREST.items() if spec.patterns == (pattern,)]
    return next(iter([*same, *rows, *near]), None)


# --- Byte-level models ----------------------------------------------------------------------------

_LONG_S = "ſ"
_JOINED = re.compile(rb"[\r\n](?=[ \t\x0b\x0c\xc2\xe1-\xe3])[^\r\n]*\Z")
"""The last line break of a piece, if the character after it may be a space (judged by its first byte)."""
_ALWAYS_FOUND = ("<|channel|>", "<|message|>", "<|start|>", "<|constrain|>")
_FOUND_TOGETHER = ({"<|end|>", "<|return|>", "<|call|>"}, {"<|end|>", "<|flush|>", "<|calls|>"})
"""If a model has all tokens of one of these sets, the first one is found in every text, too."""
_SAMPLES = (
    *("aÉb", "éÉb", "Éa", "e\u0301", "e\u0301a", "a\u0301b\u0301", "ÀÈ", "ЖЖж", "жЖ", "ไทยคำ", "हिन्दी", "'ſ"),
    *("\n ", "a\n ", "a \n  ", "it'ſ a", "x'ſt", "12345", "a1b", "\r\n\n \t"),
)
"""Texts that the patterns cut differently."""
_TRIED = 300


def _of_user_defined(texts: Sequence[str]) -> Iterator[Difference]:
    """Yield what llama.cpp does differently about USER_DEFINED pieces.

    It takes some for CONTROL, by their names. And it cuts out the longest first, which matters if a piece
    ends as another piece of at least its length begins.

    If there are no such pieces, cutting out the longest first is the same as going from left to right. To see
    this, let x be the first piece from the left, and the longest that begins there. A longer piece that
    overlaps x would have to begin inside x, and there is no such piece. So llama.cpp cuts x out, too, and the
    rest of the text is a shorter text, to which the same applies. (In runs of one character, a longer piece
    begins where x does.)
    """
    if looks := [text for text in texts if text in ENDS]:
        yield Difference(f"llama.cpp takes the USER_DEFINED piece {looks[0]!r} for CONTROL", looks[0])
    # llama.cpp looks for the pieces with their spaces unescaped.
    sizes = {text: len(text.replace(SPACE, " ").encode()) for text in texts}
    begins: dict[str, list[str]] = {}  # without runs of one character, of which there may be many
    runs: dict[str, list[str]] = {}
    for text in texts:
        for part in accumulate(text[:-1]):
            (begins if len({*text}) > 1 else runs).setdefault(part, []).append(text)
    for left in sorted(sizes, key=sizes.__getitem__):
        is_run = len({*left}) == 1
        for at in range(1, len(left)):
            rest = left[at:]
            for right in chain(begins.get(rest, ()), () if is_run else runs.get(rest, ())):
                if right != left and sizes[left] <= sizes[right]:
                    both = (left[:at] + right).replace(SPACE, " ")
                    reason = "llama.cpp looks for the longest USER_DEFINED piece first"
                    reason = f"{reason}, and {left!r} and {right!r} overlap"
                    yield Difference(reason, None if sizes[left] == sizes[right] else both)
                    return


class LlamaCppBytes:
    """A byte-level model, as llama.cpp uses it."""

    def __init__(self, spec: ModelSpec, pre: PreName):
        self.spec = spec
        self.pre = pre
        self.patterns = spec.patterns
        self.their_patterns = pre.theirs or pre.splitter.patterns

    @kept
    def ranks(self) -> dict[str, float]:
        """The rank of each piece of several bytes, spelled in letters."""
        pairs = self.listed.pairs
        unmade = dict.fromkeys(self.listed.unmade, float(len(pairs)))
        return {piece: float(rank) for rank, piece in enumerate(pairs)} | unmade

    @kept
    def listed(self) -> Listed:
        """The pairs of the model."""
        return pairs_of(self.spec)

    @kept
    def names(self) -> dict[str, int]:
        """The ids of all tokens, by their spelling in the file."""
        return {name: id for id, name in spelled(self.spec).items()}

    # --- Differences -----------------------------------------------------------------------------

    def differences(self) -> Iterator[Difference]:
        """Yield what llama.cpp does differently."""
        form = self.spec.normalizer.unicode_form
        if form:
            reason = f"llama.cpp does not bring texts into the Unicode normal form {form}"
            yield Difference(reason, NOT_IN_FORM[form])
        if self.spec.normalizer.add_dummy_prefix:
            yield Difference("llama.cpp puts no space in front of texts of byte-level models", "a")
        yield from self._of_cuts()
        yield from self._of_whole()
        yield from self.listed.differences("llama.cpp")
        yield from self._of_names()
        # (Added tokens that are not special are USER_DEFINED in a GGUF file.)
        flags = self.spec.carried.tokens
        yield from _of_user_defined([text for text in flags if PLAIN in flags[text]])

    def _of_cuts(self) -> Iterator[Difference]:
        if self.their_patterns == self.patterns:
            return
        if self.pre.splitter.patterns != self.patterns and self._joins_lines():
            reason = f"llama.cpp cuts the spaces at the end of a text as {self.pre.name}, after a line break"
            yield Difference(reason, self._text_that_differs())
        if r"[^a-z]" in self.their_patterns[0]:
            reason = "llama.cpp knows capitals only from A to Z, and takes marks such as accents for signs"
            yield Difference(reason, self._text_that_differs())
        elif self._sees_long_s():
            reason = "llama.cpp does not take ſ for an s in endings such as 's"
            yield Difference(reason, self._text_that_differs())

    def _joins_lines(self) -> bool:
        """Whether it may matter that llama.cpp has no name for cl100k's pattern, and cuts by llama3's.

        At the end of a text, cl100k's leaves all spaces together, and llama3's cuts after the last line
        break. Everywhere else they are the same. So it cannot matter if no piece ends with a line break
        followed by other spaces.
        """
        return any(_JOINED.search(piece) for _, piece in normal(self.spec))

    def _sees_long_s(self) -> bool:
        """Whether it may matter that llama.cpp does not cut "'ſ" off from the letters after it.

        It cannot matter if no piece reaches from that ſ into the next character, and if "'ſ", in case it is a
        piece, is what merges make of it.
        """
        first, last = _LONG_S.encode()
        for _, piece in normal(self.spec):
            if piece == b"'" + _LONG_S.encode() and to_letters(piece) in self.listed.unmade:
                return True
            for at, byte in enumerate(piece[:-1]):
                before = piece[at - 1] if at else first
                if byte == last and before == first and piece[at + 1] & 0xC0 != 0x80:
                    return True
        return False

    def _text_that_differs(self) -> str | None:
        """Return a text that gets other ids; None if none is found."""
        pieces = [piece for _, piece in normal(self.spec)]
        tried = [*_SAMPLES]
        for pattern in (self.their_patterns[0], *self.patterns[:1]):
            tried += [text for text, _ in zip(cut_pieces(pieces, pattern), range(_TRIED), strict=False)]
        long_s = (piece.decode(errors="replace") for piece in pieces if _LONG_S.encode() in piece)
        tried += [f"'{text[text.index(_LONG_S) :]}" for text in long_s]
        rows = normal(self.spec) if self.spec.whole else ()
        whole = {to_letters(piece) for _, piece in rows}

        def differs(text: str) -> bool:
            ours, theirs = (
                symbols(text, patterns, self.ranks, whole)
                for patterns in (self.patterns, self.their_patterns)
            )
            return ours != theirs

        return min(filter(differs, tried), key=shortest_first, default=None)

    def _of_whole(self) -> Iterator[Difference]:
        if self.spec.whole == self.pre.their_whole:
            return
        for piece in self.listed.unmade:
            text = valid_text(from_letters(piece))
            if text is None:
                continue  # no chunk is a part of a character
            reason = (
                f"with {self.pre.name} llama.cpp takes a chunk that is a piece whole, and here it is merged"
            )
            if self.spec.whole:
                reason = "a chunk that is a piece is taken whole, and llama.cpp merges it"
            yield Difference(reason, text if len(chunks(text, self.patterns)) == 1 else None)
            break

    def _of_names(self) -> Iterator[Difference]:
        normal_ids = {id for id, _ in normal(self.spec)}
        special = {name for name, id in self.names.items() if id not in normal_ids}
        always = [name for name in _ALWAYS_FOUND if name in self.names]
        always += [sorted(names)[1] for names in _FOUND_TOGETHER if names <= self.names.keys()]
        if always:
            yield Difference("llama.cpp finds this token in every text, whatever its type", always[0])
        if self.pre.their_whole:
            for name in sorted(special, key=shortest_first):
                if not is_spelled(name):
                    continue
                text = shown(from_letters(name))
                if len(chunks(text, self.their_patterns)) == 1:
                    yield Difference("llama.cpp finds a special token that is a chunk of a text", text)
                    break
