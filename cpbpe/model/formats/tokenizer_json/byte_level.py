"""Reading a tokenizer.json of byte-level BPE: GPT-2, Llama 3, Qwen, DeepSeek and others.

In the file every byte of a token is a letter (`cpbpe.text.byte_letters` has them), and a list of pairs
says what merges. `cpbpe.model.pair_ranks` proves that scores can say the same, always. `cutting` reads how
texts are cut before that.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain

from cpbpe.model import validity
from cpbpe.model.byte_level import AS_IT_IS
from cpbpe.model.formats.tokenizer_json import special
from cpbpe.model.formats.tokenizer_json.added import checked_token
from cpbpe.model.formats.tokenizer_json.checked import member, shown, steps_of, type_of, typed, wrong
from cpbpe.model.formats.tokenizer_json.cutting import is_one_chunk, splitter_of
from cpbpe.model.formats.tokenizer_json.lengths import read_lengths
from cpbpe.model.formats.tokenizer_json.settings import dropout_difference
from cpbpe.model.formats.tokenizer_json.spaces import Json
from cpbpe.model.formats.values import Difference, ReadModel, refuse
from cpbpe.model.pair_ranks import Pair, by_pair, by_text, merged, pairs_that_make, ranks_of
from cpbpe.model.spec import PLAIN, Carried, ModelSpec, NormalizerSpec, Pieces, PieceType, SplitSpec
from cpbpe.text.byte_letters import from_letters, is_spelled, to_letters
from cpbpe.text.unicode_forms import FORMS

_PLACES = (
    ("normalizer", "normalizers"),
    ("pre_tokenizer", "pretokenizers"),
    ("decoder", "decoders"),
    ("post_processor", "processors"),
)
_ALLOW = "To read it all the same, use cpbpe.convert with allow_differences=True, which lists them"
_MOST_EXACT = 1 << 24
"""Ids up to here are numbers that a score can be."""


def is_byte_level(content: Json) -> bool:
    """Whether a file is of byte-level BPE, which has its name in several places."""
    return any(
        type_of(step, name) == "ByteLevel"
        for name, inner in _PLACES
        for step in steps_of(content.get(name), inner, name)
    )


def read_byte_level(
    content: Json, vocab: dict[str, int], pairs: dict[Pair, float], *, allow_differences: bool
) -> ReadModel:
    """The model in a file; `vocab` and `pairs` have been checked. Errors are those of `reading.read`."""
    model = content["model"]
    # 1. How texts are cut.
    steps = steps_of(content.get("pre_tokenizer"), "pretokenizers", "pre_tokenizer")
    if not steps or steps[-1]["type"] != "ByteLevel":
        named = ", ".join(step["type"] for step in steps) or "none"
        wrong(f"it is byte-level BPE, and its pre-tokenizer does not end with ByteLevel, but is {named}")
    splitter, normalizer = splitter_of(steps), _normalizer(content)
    if member(steps[-1], "add_prefix_space", bool, "pre_tokenizer", False):
        if len(steps) > 1:
            wrong(
                f"its pre-tokenizer puts a space in front of each part that {steps[0]['type']} cuts "
                f"(add_prefix_space of ByteLevel), and byte-level models have one only in front of a text"
            )
        normalizer = replace(normalizer, add_dummy_prefix=True, prefix_before_space=False)
    # 2. The pieces.
    whole = member(model, "ignore_merges", bool, "model", False)
    tokens = _Tokens(content, vocab, pairs, splitter, whole)
    ids = {text: id for id, text in tokens.texts.items()}
    ends = special.ends_of(_without_offsets(content.get("post_processor")), ids)
    if ends is None:
        wrong(
            f"its post-processor is {type_of(content['post_processor'], 'post_processor')}, and does more "
            f"than to put one token in front and one at the end"
        )
    pieces = tokens.pieces()
    _refuse_missing(pieces)
    spec = ModelSpec(
        pieces,
        normalizer,
        special_pieces=_special_pieces(tokens, ends),
        alphabet="bytes",
        splitter=splitter,
        whole=whole,
        added=tokens.beyond,
        carried=Carried(
            {name: True for name, end in zip(("add_bos", "add_eos"), ends, strict=True) if end},
            tokens=tokens.flags,
        ),
    )
    validity.check(spec)
    # 3. What is not the same.
    decoders = [type_of(step, "decoder") for step in steps_of(content.get("decoder"), "decoders", "decoder")]
    lengths = read_lengths(content, spec)
    differences = [*tokens.differences, *lengths.differences]
    differences += dropout_difference(model)
    if not allow_differences:
        refuse(differences, "no model of cpbpe is exactly this tokenizer.json", _ALLOW)
    notes = [*tokens.notes, *lengths.notes]
    if decoders != ["ByteLevel"]:
        notes.append(f"decoding differs: its decoder is {', '.join(decoders) or 'none'}")
    return ReadModel(spec, tuple(differences), tuple(notes))


def _refuse_missing(pieces: Pieces) -> None:
    """Raise a ModelError if a byte of UTF-8 is no token, so that some text has no ids."""
    known = {text for text, type in zip(pieces.texts, pieces.types, strict=True) if type == PieceType.NORMAL}
    missing = validity.missing_bytes(known)
    if missing:
        wrong(
            f"model.vocab lacks bytes that texts have, {missing}: tokenizers leaves them out, and byte-level "
            f"models of cpbpe lose nothing"
        )


def _normalizer(content: Json) -> NormalizerSpec:  # noqa: RET503 (`wrong` raises an error)
    steps = steps_of(content.get("normalizer"), "normalizers", "normalizer")
    if not steps:
        return AS_IT_IS
    if len(steps) == 1 and steps[0]["type"] in FORMS:
        return replace(AS_IT_IS, unicode_form=steps[0]["type"])
    named = ", ".join(step["type"] for step in steps)
    wrong(f"its normalizer is {named}; that of a byte-level model can be {', '.join(FORMS)}, or none")


def _without_offsets(processor: object) -> object:
    """A post-processor without what only changes offsets; those of BERT and RoBERTa as templates."""
    steps = steps_of(processor, "processors", "post_processor")
    found: list[Json] = []
    for step in steps:
        if step["type"] in ("RobertaProcessing", "BertProcessing"):
            step = _template(step)
        if step["type"] != "ByteLevel":
            found.append(step)
    return {"type": "Sequence", "processors": found}


def _template(step: Json) -> Json:
    """What puts one token in front and one at the end, as a template."""
    names: list[str] = []
    tokens: Json = {}
    for key in ("cls", "sep"):
        pair = member(step, key, list, "post_processor")
        if len(pair) != 2:
            wrong(f"post_processor.{key} must be a token and its id, and is {shown(pair)}")
        name = typed(pair[0], str, f"post_processor.{key}[0]")
        names.append(name)
        tokens[name] = {"id": name, "ids": [pair[1]], "tokens": [name]}
    front, end = ({"SpecialToken": {"id": name, "type_id": 0}} for name in names)
    single = [front, {"Sequence": {"id": "A", "type_id": 0}}, end]
    return {"type": "TemplateProcessing", "single": single, "special_tokens": tokens}


def _special_pieces(
    tokens: _Tokens, ends: tuple[str | None, str | None]
) -> tuple[bytes, bytes, bytes, bytes]:
    for end in ends:
        if end is not None and end not in tokens.special:
            wrong(f"its post-processor puts {shown(end)} around texts, which is no special token of the file")
    bos, eos, pad = special.guessed_names({text.encode() for text in tokens.special})
    first, last = (end.encode() if end else None for end in ends)
    return b"<unk>", first or bos, last or eos, pad


@dataclass
class _Tokens:
    """The tokens of a file: pieces, special tokens and what merges make."""

    content: Json
    vocab: dict[str, int]
    pairs: dict[Pair, float]
    splitter: SplitSpec | None
    whole: bool
    special: dict[str, int] = field(init=False, default_factory=dict)
    """The added tokens, which the library looks for in every text."""
    flags: dict[str, tuple[str, ...]] = field(init=False, default_factory=dict)
    """Their flags, as `Carried.tokens` has them."""
    used: set[str] = field(init=False)
    """The tokens that merges make, or use."""
    twins: set[str] = field(init=False, default_factory=set)
    """Added tokens with the text of a piece: texts are searched for them before the piece can be made."""
    texts: dict[int, str] = field(init=False)
    """All tokens by id."""
    size: int = field(init=False)
    """How many of them are pieces: those before the first id that nothing has."""
    differences: list[Difference] = field(init=False, default_factory=list)
    notes: list[str] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.used = {*chain.from_iterable(self.pairs), *(left + right for left, right in self.pairs)}
        self._read_added()
        self.texts = {id: text for text, id in {**self.vocab, **self.special}.items()}
        self._find_twins()
        free = next(id for id in range(len(self.texts) + 1) if id not in self.texts)
        self.size = min([free, *(self.special[text] for text in self.twins)])
        above = [id for text, id in self.vocab.items() if id >= self.size and text not in self.special]
        if above:
            wrong(f"no token has the id {self.size}, and ids of pieces have no gaps (there is {min(above)})")
        self.beyond = tuple((self.texts[id].encode(), id) for id in sorted(self.texts) if id >= self.size)

    def _read_added(self) -> None:
        """The added tokens: their ids are those of the vocabulary, or come after all others."""
        tokens = self.content.get("added_tokens")
        free = len(self.vocab)
        for place, token in enumerate(typed([] if tokens is None else tokens, list, "added_tokens")):
            where = f"added_tokens[{place}]"
            text, id = checked_token(typed(token, dict, where), where)
            expected = self.vocab.get(text, self.special.get(text))
            if expected is None:
                expected, free = free, free + 1
            if id != expected:
                wrong(f"{where}, {shown(text)}, has the id {id}, and tokenizers would give it {expected}")
            self.special[text] = id
            if flags := special.flags_of(token, _rewrites(self.content), where):
                self.flags[text] = flags
        if any(PLAIN not in self.flags.get(text, ()) for text in self.special):
            self.notes.append(
                "tokenizers finds special tokens in every text, cpbpe only those that allowed_special allows"
            )

    def _find_twins(self) -> None:
        for text in self.special:
            spelled = to_letters(text.encode())
            if spelled != text and spelled in self.vocab:
                self.twins.add(text)
                self.flags.setdefault(text, ())

    def pieces(self) -> Pieces:
        """The pieces: with scores that merge as the pairs do."""
        # 1. What each token stands for, and which are made by merges.
        rows = [(self.texts[id], *self._row(self.texts[id])) for id in range(self.size)]
        ordinary = {token: id for id, (token, _, type) in enumerate(rows) if type == PieceType.NORMAL}
        ranks = ranks_of(ordinary, self.pairs)
        made = sorted(ranks, key=ranks.__getitem__)
        self._compare(ordinary, ranks)
        # 2. Scores: ids, if they are in the order of the merges (as nearly always), otherwise that order.
        in_order = [ordinary[token] for token in made]
        if in_order == sorted(in_order) and self.size < _MOST_EXACT:
            scores = [float(-id) if type == PieceType.NORMAL else 0.0 for id, (_, _, type) in enumerate(rows)]
        else:
            places = {token: place for place, token in enumerate(made)}
            rest = len(made)
            scores = []
            for token, _, type in rows:
                place = places.get(token)
                if type == PieceType.NORMAL and place is None:
                    place, rest = rest, rest + 1
                scores.append(float(-(place or 0)) if type == PieceType.NORMAL else 0.0)
        texts, types = [text for _, text, _ in rows], [type for _, _, type in rows]
        return Pieces.of_lists(texts, scores, types)

    def _row(self, token: str) -> tuple[bytes, PieceType]:
        """The text and the type of a piece."""
        if token in self.special and not self._is_also_made(token):
            if len(token) == 1 and token in self.vocab and is_spelled(token):
                wrong(f"the added token {shown(token)} has the id of the byte 0x{from_letters(token)[0]:02X}")
            return token.encode(), PieceType.CONTROL
        if not is_spelled(token):
            self.notes.append(
                f"{shown(token)} has characters that stand for no byte, so no text becomes it; here it is a "
                f"special token"
            )
            try:
                return token.encode(), PieceType.CONTROL
            except UnicodeEncodeError:
                wrong(f"the token {shown(token)} holds half of a surrogate pair, which is no text")
        return from_letters(token), PieceType.NORMAL

    def _is_also_made(self, token: str) -> bool:
        """Whether a token that texts are searched for is an ordinary piece, too, of which merges know."""
        return (
            (token in self.used or len(token) == 1)
            and token in self.vocab
            and PLAIN in self.flags.get(token, ())
            and to_letters(token.encode()) == token
        )

    def _compare(self, ordinary: dict[str, int], ranks: dict[str, float]) -> None:
        """Find what merges in one of the two libraries only."""
        # A token that is special here, but is made by merges, or used by them.
        others = (self.special.keys() | self.vocab.keys()) - ordinary.keys()
        used = [x + y for x, y in self.pairs if {x, y, x + y} & others]
        if used:
            token = min(used, key=lambda text: (len(text), text))
            reason = f"merges make {token!r}, or use a part of it, which is an added token"
            self.differences.append(Difference(reason, self._shown(token, ranks)))
        # A token that no pair makes, and that two symbols side by side would become here.
        after = float(max(ranks.values(), default=0) + 1)
        rest = {token: after for token in ordinary if len(token) > 1 and token not in ranks}
        wrongly = pairs_that_make(rest, by_text({**ranks, **rest})) if rest else {}
        if wrongly:
            token = min(wrongly, key=lambda text: (len(text), text))
            reason = f"no merges make the token {token!r}, and cpbpe would merge its two parts"
            self.differences.append(Difference(reason, self._shown(token, {**ranks, **rest})))

    def _shown(self, token: str, ranks: dict[str, float]) -> str | None:
        """The text of a token, if it is one that shows a difference of merges."""
        if not is_spelled(token) or self.whole:
            return None
        try:
            text = from_letters(token).decode()
        except UnicodeDecodeError:
            return None
        differs = merged(token, by_text(ranks))[0] != merged(token, by_pair(self.pairs))[0]
        return text if differs and is_one_chunk(self.splitter, text) else None


def _rewrites(content: Json) -> bool:
    return bool(steps_of(content.get("normalizer"), "normalizers", "normalizer"))
