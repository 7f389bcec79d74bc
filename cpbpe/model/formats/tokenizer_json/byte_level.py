"""A tokenizer.json of byte-level BPE, read and written: GPT-2, Llama 3, Qwen, DeepSeek and others.

The file writes each byte of a token as a letter (see `cpbpe.text.utf8`), and has a list of pairs to merge.
`cpbpe.model.pair_ranks` proves that scores can always express a list of pairs, and decides whether a list of
pairs can express scores. `patterns` has how texts are cut before they are merged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from cpbpe.errors import ConversionError
from cpbpe.model import validity
from cpbpe.model.byte_level import AS_IT_IS, chunks, pairs_of, scores_of, spelled
from cpbpe.model.formats.json_file import Json
from cpbpe.model.formats.tokenizer_json.added import (
    added_token,
    ends_around,
    file_of,
    flagged_pieces,
    flags_of,
    listed,
    lost_roles,
    pair_notes,
    special_pieces,
)
from cpbpe.model.formats.tokenizer_json.merging import read_lengths
from cpbpe.model.formats.tokenizer_json.patterns import is_only_step, pre_tokenizer_of, splitter_of
from cpbpe.model.formats.tokenizer_json.steps import FILE, member, shown, steps_of, type_of, typed, wrong
from cpbpe.model.formats.values import TO_READ, Difference, ReadModel, refuse
from cpbpe.model.pair_ranks import Pair, by_pair, by_text, merged, shortest_first
from cpbpe.model.spec import PLAIN, Carried, ModelSpec, NormalizerSpec, Pieces, PieceType, SplitSpec
from cpbpe.text.unicode_forms import FORMS
from cpbpe.text.utf8 import all_from_letters, from_letters, is_spelled, to_letters, valid_text

_PLACES = (
    ("normalizer", "normalizers"),
    ("pre_tokenizer", "pretokenizers"),
    ("decoder", "decoders"),
    ("post_processor", "processors"),
)
DECODER: Json = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
"""The decoder of every file of byte-level BPE. Its options have no effect."""


# --- Reading --------------------------------------------------------------------------------------


def is_byte_level(content: Json) -> bool:
    """Whether a file is of byte-level BPE: "ByteLevel" may be in any of several places."""
    return any(
        type_of(step, name) == "ByteLevel"
        for name, inner in _PLACES
        for step in steps_of(content.get(name), inner, name)
    )


def read_byte_level(
    content: Json, vocab: dict[str, int], pairs: dict[Pair, float], *, allow_differences: bool
) -> ReadModel:
    """Return the model in a file. `vocab` and `pairs` have been checked. Errors are as in `reading.read`."""
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
    ends = ends_around(content.get("post_processor"), ids, _without_offsets)
    pieces = tokens.pieces()
    if missing := validity.missing_bytes(pieces):
        wrong(
            f"model.vocab lacks bytes that texts have, {missing}: tokenizers leaves them out, and byte-level "
            f"models of cpbpe lose nothing"
        )
    for end in ends:
        if end is not None and end not in tokens.special:
            wrong(f"its post-processor puts {shown(end)} around texts, which is no special token of the file")
    spec = ModelSpec(
        pieces,
        normalizer,
        special_pieces=special_pieces(b"<unk>", {*map(str.encode, tokens.special)}, ends),
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
    # 3. The differences.
    decoders = [type_of(step, "decoder") for step in steps_of(content.get("decoder"), "decoders", "decoder")]
    of_lengths, notes_of_lengths = read_lengths(content, spec)
    differences = [*tokens.differences, *of_lengths]
    differences += dropout_difference(model)
    refuse(differences, allow_differences, "no model of cpbpe is exactly this tokenizer.json", TO_READ)
    notes = [*tokens.notes, *notes_of_lengths, *pair_notes(content.get("post_processor"), ends)]
    usual = decoders == ["ByteLevel"]
    of_decoder = () if usual else (f"decoding differs: its decoder is {', '.join(decoders) or 'none'}",)
    return ReadModel(spec, tuple(differences), tuple(notes), of_decoder)


def _normalizer(content: Json) -> NormalizerSpec:  # noqa: RET503 (`wrong` raises an error)
    steps = steps_of(content.get("normalizer"), "normalizers", "normalizer")
    if not steps:
        return AS_IT_IS
    if len(steps) == 1 and steps[0]["type"] in FORMS:
        return replace(AS_IT_IS, unicode_form=steps[0]["type"])
    named = ", ".join(step["type"] for step in steps)
    wrong(f"its normalizer is {named}; that of a byte-level model can be {', '.join(FORMS)}, or none")


def _without_offsets(processor: object) -> object:
    """Return a post-processor without steps that only change offsets; BERT's, RoBERTa's become templates."""
    steps = steps_of(processor, "processors", "post_processor")
    found: list[Json] = []
    for step in steps:
        if step["type"] in ("RobertaProcessing", "BertProcessing"):
            step = _template(step)
        if step["type"] != "ByteLevel":
            found.append(step)
    return {"type": "Sequence", "processors": found}


def _template(step: Json) -> Json:
    """Return BERT's or RoBERTa's step, which puts a token in front and one at the end, as a template."""
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


class _Tokens:
    """The tokens of a file: pieces, special tokens and what merges make."""

    def __init__(
        self,
        content: Json,
        vocab: dict[str, int],
        pairs: dict[Pair, float],
        splitter: SplitSpec | None,
        whole: bool,
    ):
        self.vocab, self.pairs, self.splitter, self.whole = vocab, pairs, splitter, whole
        self.differences: list[Difference] = []
        self.notes: list[str] = []
        self.used = {*chain.from_iterable(pairs), *(left + right for left, right in pairs)}
        """The tokens that merges make, or use."""
        self.special: dict[str, int] = {}
        """The added tokens, which the library looks for in every text."""
        self.flags: dict[str, tuple[str, ...]] = {}
        """Their flags, as `Carried.tokens` has them."""
        normalizes = bool(steps_of(content.get("normalizer"), "normalizers", "normalizer"))
        for where, token, text, id in listed(content.get("added_tokens"), vocab):
            self.special[text] = id
            if flags := flags_of(token, normalizes, where):
                self.flags[text] = flags
        if any(PLAIN not in self.flags.get(text, ()) for text in self.special):
            self.notes.append(
                "tokenizers finds special tokens in every text, cpbpe only those that allowed_special allows"
            )
        self.texts = {id: text for text, id in {**vocab, **self.special}.items()}
        """All tokens by id."""
        free = next(id for id in range(len(self.texts) + 1) if id not in self.texts)
        # Some have the text of a piece. Texts are searched for them before the piece can be made.
        in_letters = {text: to_letters(text.encode()) for text in self.special}
        twins = [text for text, name in in_letters.items() if name != text and name in vocab]
        for text in twins:
            self.flags.setdefault(text, ())
        self.size = min([free, *(self.special[text] for text in twins)])
        """How many of the tokens are pieces: those with ids below the first unused one."""
        above = [id for text, id in vocab.items() if id >= self.size and text not in self.special]
        if above:
            wrong(f"no token has the id {self.size}, and ids of pieces have no gaps (there is {min(above)})")
        self.beyond = tuple((self.texts[id].encode(), id) for id in sorted(self.texts) if id >= self.size)

    def pieces(self) -> Pieces:
        """Return the pieces, with scores that merge as the pairs do."""
        tokens = [self.texts[id] for id in range(self.size)]
        # Nearly all are ordinary pieces, which are read together.
        usual = [token for token in tokens if token not in self.special]
        read = dict(zip(usual, all_from_letters(usual), strict=True)) if is_spelled("".join(usual)) else {}
        rows = [
            (token, read[token], PieceType.NORMAL) if token in read else (token, *self._row(token))
            for token in tokens
        ]
        ordinary = {token: id for id, (token, _, type) in enumerate(rows) if type == PieceType.NORMAL}
        scores, unlike = scores_of(ordinary, self.pairs)
        self._compare(ordinary, scores, unlike)
        return Pieces.of_lists(
            [text for _, text, _ in rows],
            [scores.get(token, 0.0) if type == PieceType.NORMAL else 0.0 for token, _, type in rows],
            [type for _, _, type in rows],
        )

    def _row(self, token: str) -> tuple[bytes, PieceType]:
        """Return the text and the type of a piece."""
        if token in self.special and not self._is_also_made(token):
            if len(token) == 1 and token in self.vocab and is_spelled(token):
                wrong(f"the added token {shown(token)} has the id of the byte 0x{from_letters(token)[0]:02X}")
            return token.encode(), PieceType.CONTROL
        if not is_spelled(token):
            self.notes.append(
                f"{shown(token)} has characters that stand for no byte, so no text becomes it; here it is a "
                f"special token"
            )
            return FILE.valid(token, f"the token {shown(token)}").encode(), PieceType.CONTROL
        return from_letters(token), PieceType.NORMAL

    def _is_also_made(self, token: str) -> bool:
        """Whether a token that texts are searched for is also an ordinary piece, which merges make or use, or
        which a chunk can be as a whole.
        """
        return (
            (token in self.used or len(token) == 1 or self.whole)
            and token in self.vocab
            and PLAIN in self.flags.get(token, ())
            and to_letters(token.encode()) == token
        )

    def _compare(self, ordinary: dict[str, int], scores: dict[str, float], unlike: list[str]) -> None:
        """Collect the tokens that merge in only one of the two libraries."""
        # A token that is special here, but that merges make or use.
        others = (self.special.keys() | self.vocab.keys()) - ordinary.keys()
        used = [x + y for x, y in self.pairs if {x, y, x + y} & others]
        if used:
            token = min(used, key=shortest_first)
            reason = f"merges make {token!r}, or use a part of it, which is an added token"
            self.differences.append(Difference(reason, self._shown(token, scores)))
        # Or a special token that is not found within a word, where a chunk can be this token as a whole.
        alone = [
            token
            for token in others & self.vocab.keys()
            if "single_word" in self.flags.get(token, ()) and to_letters(token.encode()) == token
        ]
        patterns = self.splitter.patterns if self.splitter is not None else ()
        for token in sorted(alone) if self.whole and patterns else ():
            texts = (text for letter in "1a_é日" for text in (token + letter, letter + token))
            text = next((text for text in texts if token in chunks(text, patterns)), None)
            if text is not None or chunks(token, patterns) == [token]:
                reason = f"a chunk that is {shown(token)} is taken whole where it is no word by itself"
                self.differences.append(Difference(reason, text))
                break
        # A token that no pair makes, but that cpbpe would make of two neighbouring symbols.
        if unlike:
            reason = f"no merges make the token {unlike[0]!r}, and cpbpe would merge its two parts"
            self.differences.append(Difference(reason, self._shown(unlike[0], scores)))

    def _shown(self, token: str, scores: dict[str, float]) -> str | None:
        """Return the text of a token if the two libraries merge it differently; None otherwise."""
        if not is_spelled(token) or self.whole or (text := valid_text(from_letters(token))) is None:
            return None
        ranks = {piece: -score for piece, score in scores.items() if len(piece) > 1}
        differs = merged(token, by_text(ranks)) != merged(token, by_pair(self.pairs))
        patterns = () if self.splitter is None else self.splitter.patterns
        return text if differs and len(chunks(text, patterns)) == 1 else None


def dropout_difference(model: Json) -> list[Difference]:
    """Return the difference if a file skips merges at random."""
    dropout = model.get("dropout")
    if dropout is None:
        return []
    if type(dropout) not in (int, float):
        wrong(f"model.dropout must be a number, and is {shown(dropout)}")
    if not 0 <= dropout <= 1:
        wrong(f"model.dropout must be from 0 to 1, and is {shown(dropout)}")
    return [Difference(f"it skips merges at random (dropout {dropout})")] if dropout else []


# --- Writing --------------------------------------------------------------------------------------


def content_of(spec: ModelSpec) -> tuple[Json, list[Difference], list[str]]:
    """Return the file of a byte-level model as JSON, the differences, and the notes."""
    content = without_merges(spec)
    pairs = pairs_of(spec)
    content["model"]["merges"] = list(pairs.pairs.values())
    notes = _notes(spec, [token["content"] for token in content["added_tokens"]])
    return content, [*_prefix_differences(spec), *pairs.differences("tokenizers")], list(notes)


def without_merges(spec: ModelSpec) -> Json:
    """Return the file of a byte-level model without its merges, which take the most time."""
    names = _names(spec)
    control = {id for id, type in enumerate(spec.pieces.types) if type == PieceType.CONTROL}
    beyond = [(text.decode(), id) for text, id in spec.added]
    searched = control.union(flagged_pieces(spec))
    tokens = sorted([*((names[id], id) for id in searched), *beyond], key=lambda token: token[1])
    return file_of(
        spec,
        spelled(spec),
        [added_token(name, id, spec.carried.tokens.get(name, ())) for name, id in tokens],
        normalizer={"type": form} if (form := spec.normalizer.unicode_form) else None,
        pre_tokenizer=pre_tokenizer_of(spec),
        decoder=DECODER,
        ignore_merges=spec.whole,
        vocab=_vocab(names, control, beyond),
    )


def _names(spec: ModelSpec) -> list[str]:
    """Return the name of each piece in the file, or raise a ConversionError if a piece cannot have one."""
    names: list[str] = []
    for id, (text, type) in enumerate(zip(spec.pieces.texts, spec.pieces.types, strict=True)):
        if type != PieceType.CONTROL:
            names.append(to_letters(text))
            continue
        try:
            names.append(text.decode())
        except UnicodeDecodeError:
            raise ConversionError(
                f"piece {id}, {text!r}, a special token, is not UTF-8, and a tokenizer.json can hold only "
                f"text. Give it another text first (tok.spec, cpbpe.Tokenizer.from_spec)"
            ) from None
    ids: dict[str, int] = {}
    for id, name in [*enumerate(names), *((id, text.decode()) for text, id in spec.added)]:
        other = ids.setdefault(name, id)
        if other != id:
            raise ConversionError(
                f"the special token {name!r} is spelled like a piece in a tokenizer.json, where each byte is "
                f"a letter: {other} and {id} would be one token. Give it another text first"
            )
    return names


def _vocab(names: list[str], control: set[int], beyond: list[tuple[str, int]]) -> dict[str, int]:
    """Return the vocabulary. Special tokens at the end are in it only if their ids have gaps."""
    size = len(names)
    while size - 1 in control:
        size -= 1
    vocab = {name: id for id, name in enumerate(names[:size])}
    after = [
        *((names[id], id) for id in range(size, len(names))),
        *sorted(beyond, key=lambda token: token[1]),
    ]
    if [id for _, id in after] != list(range(size, size + len(after))):
        vocab.update(after)
    return vocab


def _prefix_differences(spec: ModelSpec) -> Iterator[Difference]:
    """Yield what differs about a dummy prefix: ByteLevel puts it before each part that earlier steps cut."""
    rules, splitter = spec.normalizer, spec.splitter
    if rules.add_dummy_prefix and rules.prefix_before_space:
        yield Difference("tokenizers puts no space in front of a text that begins with one", " a")
    if rules.add_dummy_prefix and not is_only_step(splitter):
        yield Difference(
            "tokenizers puts a space in front of each part of a text that the pattern has cut", "a."
        )


def _notes(spec: ModelSpec, tokens: list[str]) -> Iterator[str]:
    if tokens:
        shown = ", ".join(tokens[:3]) + (", ..." if len(tokens) > 3 else "")
        yield (
            f"tokenizers finds special tokens ({shown}) in every text, cpbpe only those that allowed_special "
            f"allows"
        )
    rows = zip(spec.pieces.texts, spec.pieces.types, strict=True)
    control = {text for text, type in rows if type == PieceType.CONTROL}
    control.update(text for text, _ in spec.added)
    for role, token in lost_roles(spec, spelled(spec), control):
        if not spec.carried.options.get(f"add_{role}", False):
            yield f"the file does not say that {token} is {role}"
