"""Reading a tokenizer.json."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from operator import add
from typing import Any

from cpbpe.model import validity
from cpbpe.model.formats.json_file import Json
from cpbpe.model.formats.tokenizer_json.added import ends_around, pair_notes, read_added, special_pieces
from cpbpe.model.formats.tokenizer_json.byte_level import dropout_difference, is_byte_level, read_byte_level
from cpbpe.model.formats.tokenizer_json.merging import (
    Comparison,
    Names,
    Suspect,
    absent_character,
    read_lengths,
)
from cpbpe.model.formats.tokenizer_json.steps import (
    FILE,
    HIDDEN,
    SPACE,
    UNESCAPE,
    Steps,
    drops_space,
    member,
    read_steps,
    shown,
    steps_of,
    type_of,
    typed,
    unknown_surface,
    wrong,
)
from cpbpe.model.formats.tokenizer_json.writing import isolating
from cpbpe.model.formats.values import TO_READ, Difference, ReadModel, refuse
from cpbpe.model.pair_ranks import Pair, by_text, pairs_that_make, ranks_of, shortest_first
from cpbpe.model.spec import Carried, ModelSpec, Pieces, PieceType

_UNKNOWN = "<unk>"
_TRIED = 100
"""How many texts are tried at most to show a difference."""
_OTHERS = {
    "Unigram": "it is a Unigram model",
    "WordPiece": "it is a WordPiece model (as in BERT)",
    "WordLevel": "it is a WordLevel model (whole words)",
}
_AFFIXES = ("continuing_subword_prefix", "end_of_word_suffix")
_KINDS: dict[str, type] = {
    "type": str,
    **dict.fromkeys(_AFFIXES, str),
    "unk_token": str,
    **dict.fromkeys(("fuse_unk", "byte_fallback", "ignore_merges"), bool),
    "dropout": float,
    "vocab": dict,
    "merges": list,
}
"""The members of a BPE model, with their types."""
_BYTES = frozenset(piece.decode() for piece in validity.BYTE_PIECES)


def read(data: bytes, *, allow_differences: bool = False) -> ReadModel:
    """Return the model in a tokenizer.json, which gives the ids that `tokenizers` does.

    A ModelError says what SentencePiece BPE cannot do at all, or what is wrong with the file. If some text
    would get other ids, a ConversionError says why; with `allow_differences`, the result lists it instead.
    A difference only in decoding, or only in texts that spell out an added token, becomes a note.
    """
    # 1. The parts of the file.
    content = FILE.parsed(data, unique=True)
    model = member(content, "model", dict, "")
    _refuse_others(model)
    if is_byte_level(content):
        vocab = _checked_vocab(member(model, "vocab", dict, "model"))
        pairs = _checked_merges(member(model, "merges", list, "model"), vocab, splits=False)
        return read_byte_level(content, vocab, pairs, allow_differences=allow_differences)
    steps = read_steps(content)
    vocabulary = _Vocabulary(model, steps, content.get("added_tokens"))
    # 2. The pieces, and from these the model.
    pieces = vocabulary.pieces()
    added = vocabulary.added
    ids = {**{text: id for id, text in enumerate(added.pieces)}, **{t.decode(): id for t, id in added.beyond}}
    ends = ends_around(content.get("post_processor"), ids)
    control = {text.encode() for text, type in vocabulary.rows if type == PieceType.CONTROL}
    for end in ends:
        if end is not None and vocabulary.text_of(end).encode() not in control:
            wrong(
                f"its post-processor puts {shown(end)} around texts, which is no CONTROL piece, and add_bos "
                f"and add_eos put only these there; take it out of the post-processor, and use encode_parts"
            )
    first, last = (vocabulary.text_of(end) if end else None for end in ends)
    unknown = vocabulary.text_of(vocabulary.unknown or _UNKNOWN).encode()
    spec = ModelSpec(
        pieces,
        steps.normalizer,
        byte_fallback=vocabulary.byte_fallback,
        unk_surface=unknown_surface(
            content, vocabulary.unknown, vocabulary.unknown in added.special, vocabulary.byte_fallback
        ),
        special_pieces=special_pieces(unknown, control, (first, last)),
        added=added.beyond,
        carried=Carried(
            {name: True for name, end in zip(("add_bos", "add_eos"), ends, strict=True) if end}
            | steps.options,
            tokens=added.flags,
        ),
    )
    validity.check(spec)
    # 3. The differences.
    of_lengths, notes_of_lengths = read_lengths(content, spec)
    differences = [*steps.differences, *vocabulary.differences, *of_lengths]
    if vocabulary.suspects:
        ignores = member(model, "ignore_merges", bool, "model", False)
        comparison = Comparison(
            spec, vocabulary.vocab, vocabulary.pairs, vocabulary.unknown, ignores, steps.splits
        )
        differences += filter(None, map(comparison.difference, vocabulary.suspects))
    if steps.user_defined is not None and isolating(Names(spec)) != steps.isolating:
        differences.append(Difference("its pre-tokenizer splits at other places than user-defined pieces"))
    refuse(differences, allow_differences, "no SentencePiece model is exactly this tokenizer.json", TO_READ)
    of_pairs = pair_notes(content.get("post_processor"), ends)
    notes = [*steps.notes, *added.notes, *notes_of_lengths, *of_pairs]
    of_decoder = filter(None, [decoder_note(content, Names(spec))])
    return ReadModel(spec, tuple(differences), tuple(notes), tuple(of_decoder))


def decoder_note(content: Json, names: Names) -> str | None:
    """Return a note that decoding may differ; None if it does not."""
    steps = steps_of(content.get("decoder"), "decoders", "decoder")
    if steps == names.decoder()["decoders"]:
        return None
    # The usual decoder does the same if no spaces are removed, no token is hidden, and nothing is unknown.
    rules = names.spec.normalizer
    if not rules.remove_extra_whitespaces and not names.has_hidden and names.spec.byte_fallback:
        strip: list[Json] = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}]
        usual = [UNESCAPE, {"type": "ByteFallback"}, {"type": "Fuse"}]
        if steps == usual + (strip if drops_space(rules) else []):
            return None
    named = ", ".join(type_of(step, "decoder") for step in steps) or "none"
    return f"decoding may differ in spaces at the beginning and in unknown characters: its decoder is {named}"


class _Vocabulary:
    """The tokens, their types and the merges."""

    def __init__(self, model: Json, steps: Steps, added_tokens: Any):
        self.model, self.steps = model, steps
        self.differences: list[Difference] = []
        """Certain differences."""
        self.suspects: list[Suspect] = []
        """Possible differences, which are to be tried on texts."""
        self.byte_fallback = member(model, "byte_fallback", bool, "model", False)
        self.unknown = member(model, "unk_token", str, "model", "") or None
        self.vocab = vocab = _checked_vocab(member(model, "vocab", dict, "model"))
        if self.unknown is None and self.byte_fallback and _UNKNOWN in vocab:
            self.unknown = _UNKNOWN  # transformers omits unk_token if byte fallback makes it unnecessary
        self.pairs = _checked_merges(member(model, "merges", list, "model"), vocab, steps.splits)
        made = {left + right for left, right in self.pairs}
        self.added = read_added(added_tokens, vocab, steps, self.unknown, made)
        if self.unknown is not None and self.unknown not in vocab:
            wrong(f"model.unk_token is {shown(self.unknown)}, which is no token")
        if self.unknown is None and not self.byte_fallback:
            wrong(
                "model.unk_token is missing: tokenizers leaves out unknown characters, and SentencePiece "
                "never does"
            )
        # (Only ASCII matters here, because other bytes are not characters by themselves.)
        missing = {chr(int(byte[3:5], 16)): byte for byte in _BYTES - vocab.keys() if byte < "<0x80>"}
        self.bytes = missing if missing.keys() <= vocab.keys() else {}
        """The names of BYTE pieces that the vocabulary lacks, by the one-character tokens that stand for
        them."""
        self.rows = [self._row(token, id) for id, token in enumerate(self.added.pieces)]
        """The text and the type of each piece, before the merges are considered."""
        # What the settings of the model do that SentencePiece does not.
        self.differences += dropout_difference(model)
        if not self.byte_fallback:
            absent = absent_character(text for text, _ in self.rows)
            if not member(model, "fuse_unk", bool, "model", False):
                self.differences.append(
                    Difference("several unknown characters are several tokens (fuse_unk is off)", absent * 2)
                )
            elif self.steps.splits and all(text != SPACE for text, _ in self.rows):
                self.differences.append(
                    Difference(
                        "unknown characters are cut at spaces, which are unknown", f"{absent} {absent}"
                    )
                )
        if self.unknown is not None and len(self.unknown) == 1:
            reason = "its unknown token is a character, which texts may hold"
            self.suspects.append(Suspect(reason, (self.unknown,)))

    def text_of(self, token: str) -> str:
        """Return the text of a token: its name without the NUL that hides it from texts."""
        return token[1:] if len(token) > 1 and token[0] == HIDDEN else token

    def _row(self, token: str, id: int) -> tuple[str, PieceType]:
        text = self.text_of(token)
        if "\0" in text and text != "\0":
            wrong(f"token {id}, {shown(token)}, contains a NUL character (U+0000), and no piece can")
        try:
            text.encode()
        except UnicodeEncodeError:
            wrong(f"token {id}, {shown(token)}, holds half of a surrogate pair, which is no text")
        if token == self.unknown:
            return text, PieceType.UNKNOWN
        if token in self.added.control:
            return text, PieceType.CONTROL
        if token in self.added.user_defined or token in (self.steps.user_defined or ()):
            return text, PieceType.USER_DEFINED
        if self.byte_fallback and (token in _BYTES or token in self.bytes):
            return self.bytes.get(token, text), PieceType.BYTE
        if text == "\0" and token == text:
            self.differences.append(Difference("SentencePiece never finds a piece that is one NUL", "\0"))
        hidden = token[0] == HIDDEN or (text == "\0" and self.byte_fallback)
        return text, PieceType.UNUSED if hidden else PieceType.NORMAL

    def pieces(self) -> Pieces:
        """Return the pieces, with scores that merge as the pairs do."""
        # 1. The pieces that the pairs make, in the order of the pairs. A token that no pair makes, but that
        #    sentencepiece would make, becomes UNUSED and gets one of the lowest scores. So it is made only
        #    when nothing else can be merged, and is split again.
        rows = self.rows
        ranks = ranks_of((text for text, _ in rows), self.pairs)
        normal = {text for text, type in rows if type == PieceType.NORMAL}
        self._note_other_merges(ranks)
        order = sorted((text for text in ranks if text in normal), key=ranks.__getitem__)
        places = {text: place for place, text in enumerate(order)}
        rest = {text: len(order) for text in normal if text not in places and len(text) > 1}
        made_by_scores = pairs_that_make(rest, by_text({**places, **rest}))
        # 2. Scores and types.
        last = len(order)
        scores, types = [], []
        for text, type in rows:
            if text in places and type == PieceType.NORMAL:
                score = places[text]
            elif type in (PieceType.NORMAL, PieceType.UNUSED):
                score, last = last, last + 1
            else:
                score = 0
            scores.append(-float(score))
            types.append(PieceType.UNUSED if type == PieceType.NORMAL and text in made_by_scores else type)
        return Pieces.of_lists([text.encode() for text, _ in rows], scores, types)

    def _note_other_merges(self, ranks: dict[str, float]) -> None:
        """Collect, as differences and suspects, the tokens that only `tokenizers` makes or takes whole."""
        unmergeable = {text for text, type in self.rows if type in (PieceType.UNKNOWN, PieceType.BYTE)}
        made = [text for text in unmergeable if text in ranks]
        made += [x + y for x, y in self.pairs if x in unmergeable or y in unmergeable]
        if made:
            made = sorted({*made}, key=shortest_first)
            self.suspects.append(Suspect(f"merges make {made[0]!r}, or use it", tuple(made[:_TRIED])))
        ignores = member(self.model, "ignore_merges", bool, "model", False)
        whole = self.steps.user_defined
        if whole is not None and not ignores:
            apart = sorted(text for text in whole if len(text) > 1 and text not in ranks)
            if apart:
                reason = f"{apart[0]!r} is isolated, but not taken whole (ignore_merges is off)"
                self.differences.append(Difference(reason, apart[0]))
        elif ignores and whole is None:
            texts = [
                text
                for text, type in self.rows
                if len(text) > 1
                and type not in (PieceType.CONTROL, PieceType.USER_DEFINED)
                and (text not in ranks or text in unmergeable)
            ]
            reason = "a text that is a token is not merged (ignore_merges)"
            self.suspects.append(Suspect(reason, tuple(texts), is_certain=False))


def _checked_vocab(vocab: Json) -> dict[str, int]:
    """Raise a ModelError if a token or an id is not as it must be."""
    # All at once first: most files are right. Otherwise look for what is wrong.
    found = vocab.values()
    if "" not in vocab and {*map(type, found)} == {int} and min(found) >= 0 and len({*found}) == len(vocab):
        return vocab
    ids: dict[int, str] = {}
    for token, id in vocab.items():
        typed(id, int, f"the id of {shown(token)} in model.vocab")
        if not token:
            wrong(f"token {id} is empty")
        if id < 0:
            wrong(f"the id of {shown(token)} is {id}, below 0")
        if ids.setdefault(id, token) != token:
            wrong(f"{shown(ids[id])} and {shown(token)} have the same id, {id}")
    if not ids:
        wrong("model.vocab is empty")
    return vocab


def _checked_merges(merges: list[Any], vocab: dict[str, int], splits: bool) -> dict[Pair, float]:
    """Return the ranks of pairs. A pair that is listed twice has the rank of the last, as in the library.

    `splits`: whether texts are cut before spaces, so that a pair with a space on the right never merges.
    """
    kinds = {*map(type, merges)}
    pairs = [merge.split(" ") for merge in merges] if kinds == {str} else merges if kinds == {list} else []
    if not _are_merges(pairs, vocab):
        _refuse_merge(merges, vocab)
        return {}
    listed: Iterator[Pair] = map(tuple, pairs)
    ranks: dict[Pair, float] = dict(zip(listed, range(len(pairs)), strict=True))
    return {pair: rank for pair, rank in ranks.items() if pair[1][0] != SPACE} if splits else ranks


def _are_merges(pairs: list[Any], vocab: dict[str, int]) -> bool:
    """Whether each of these lists has two tokens, which are one when joined. (There may be 280,000.)"""
    if {*map(len, pairs)} != {2}:
        return False
    left, right = zip(*pairs, strict=True)
    if {*map(type, chain(left, right))} != {str}:
        return False
    return all(map(vocab.__contains__, chain(left, right, map(add, left, right))))


def _refuse_merge(merges: list[Any], vocab: dict[str, int]) -> None:
    """Raise a ModelError that says which merge is wrong, if there are any."""
    for place, merge in enumerate(merges):
        if type(merge) is not type(merges[0]):
            wrong(
                f"model.merges[{place}] is {shown(merge)}, and model.merges[0] is {shown(merges[0])}: all "
                f"of them must be texts, or all of them lists"
            )
        pair = merge.split(" ") if isinstance(merge, str) else merge
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
            wrong(f"model.merges[{place}] must be two tokens, and is {shown(merge)}")
        left, right = pair
        for token in (left, right, left + right):
            if token not in vocab:
                wrong(f"model.merges[{place}] is {shown(merge)}, and {shown(token)} is no token")


def _refuse_others(model: Json) -> None:
    """Raise a ModelError that names the kind of a model that is not BPE, or a value that has a wrong type.

    A file without model.type is a BPE model only if every value fits one. If a single value does not, the
    library takes the file for a list of words, without an error.
    """
    kind = model.get("type")
    if kind is None and "vocab" not in model:
        wrong("model.type and model.vocab are missing")
    if kind is None:
        listed = isinstance(model.get("vocab"), list)
        words = "WordPiece" if "max_input_chars_per_word" in model else "WordLevel"
        kind = "BPE" if "merges" in model else "Unigram" if listed else words
        others = sorted(model.keys() - _KINDS.keys())
        if kind == "BPE" and others:
            wrong(f"model.type is missing, and model has {shown(others[0])}, which no BPE model has")
    if isinstance(kind, str) and kind in _OTHERS:
        wrong(f"{_OTHERS[kind]}, and cpbpe reads BPE models only", "tokenizers")
    if kind != "BPE":
        wrong(f"model.type is {shown(kind)}, and cpbpe reads BPE models only")
    for name, expected in _KINDS.items():
        if expected is not float and model.get(name) is not None:
            typed(model[name], expected, f"model.{name}")
    for name in _AFFIXES:
        if model.get(name):
            wrong(f"model.{name} is {shown(model[name])}, and pieces of cpbpe have none")
