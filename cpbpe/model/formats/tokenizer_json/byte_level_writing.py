"""Writing a tokenizer.json of a byte-level model.

Pieces are spelled in letters, one for each byte. They merge by rank here, and by a list of pairs there: each
piece that can be made has the only pair that ever makes it, and `cpbpe.model.pair_ranks` decides whether that
is the same on every text. With different scores it always is.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from cpbpe.errors import ConversionError
from cpbpe.model.formats.tokenizer_json import special
from cpbpe.model.formats.tokenizer_json.cutting import is_only_step, pre_tokenizer_of
from cpbpe.model.formats.tokenizer_json.spaces import Json
from cpbpe.model.formats.values import Difference
from cpbpe.model.pair_ranks import Pair, by_text, candidates, differences, ordered, pairs_that_make
from cpbpe.model.spec import ModelSpec, PieceType
from cpbpe.text.byte_letters import from_letters, to_letters

DECODER: Json = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
"""What every file of byte-level BPE decodes with; its options say nothing."""
_EQUAL = "of merges with equal scores, tokenizers chooses another one"


def content_of(spec: ModelSpec) -> tuple[Json, list[Difference], list[str]]:
    """The file of a byte-level model as JSON, what some texts get otherwise with it, and notes."""
    content = without_merges(spec)
    names = _names(spec)
    pairs, found = _pairs(spec, names)
    content["model"]["merges"] = pairs
    notes = _notes(spec, names, [token["content"] for token in content["added_tokens"]])
    return content, [*_prefix_differences(spec), *found], list(notes)


def without_merges(spec: ModelSpec) -> Json:
    """The file of a byte-level model but for its merges, which take the most time."""
    names = _names(spec)
    control = {id for id, type in enumerate(spec.pieces.types) if type == PieceType.CONTROL}
    beyond = [(text.decode(), id) for text, id in spec.added]
    searched = control.union(special.flagged_pieces(spec))
    tokens = sorted([*((names[id], id) for id in searched), *beyond], key=lambda token: token[1])
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": spec.whole,
        "vocab": _vocab(names, control, beyond),
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            special.added_token(name, id, spec.carried.tokens.get(name, ())) for name, id in tokens
        ],
        "normalizer": _normalizer(spec),
        "pre_tokenizer": pre_tokenizer_of(spec),
        "post_processor": special.post_processor(spec, _by_id(spec, names)),
        "decoder": DECODER,
        "model": model,
    }


def _names(spec: ModelSpec) -> list[str]:
    """What each piece is called in the file. A piece that cannot be called anything is a ConversionError."""
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


def _by_id(spec: ModelSpec, names: list[str]) -> dict[int, str]:
    """What everything is called, by its id: pieces and added tokens."""
    return {**dict(enumerate(names)), **{id: text.decode() for text, id in spec.added}}


def _vocab(names: list[str], control: set[int], beyond: list[tuple[str, int]]) -> dict[str, int]:
    """The vocabulary. Special tokens are only in it if their ids are not those that come next."""
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


def _pairs(spec: ModelSpec, names: list[str]) -> tuple[list[Pair], list[Difference]]:
    """The pairs to list, in their order, and texts that get other ids with them."""
    bits = array("i", spec.pieces.scores)
    ranks: dict[str, float] = {
        name: -(bits[id] if bits[id] >= 0 else -(bits[id] & 0x7FFFFFFF) - 1)
        for id, name in enumerate(names)
        if spec.pieces.types[id] == PieceType.NORMAL
    }
    made = pairs_that_make(ranks, by_text(ranks))
    equal = candidates(made, ranks)
    order = ordered(made, ranks, equal)
    found: list[Difference] = []
    for letters in differences(made, ranks, order, equal):
        try:
            text = from_letters(letters).decode()
        except UnicodeDecodeError:
            text = None
        found = [Difference(_EQUAL, text)]
        if text is not None:
            break
    return [made[piece] for piece in order], found


def _normalizer(spec: ModelSpec) -> Json | None:
    form = spec.normalizer.unicode_form
    return {"type": form} if form else None


def _prefix_differences(spec: ModelSpec) -> Iterator[Difference]:
    """A space in front is put by ByteLevel, for each part that steps before it have cut."""
    rules, splitter = spec.normalizer, spec.splitter
    if rules.add_dummy_prefix and rules.prefix_before_space:
        yield Difference("tokenizers puts no space in front of a text that begins with one", " a")
    if rules.add_dummy_prefix and not is_only_step(splitter):
        yield Difference(
            "tokenizers puts a space in front of each part of a text that the pattern has cut", "a."
        )


def _notes(spec: ModelSpec, names: list[str], tokens: list[str]) -> Iterator[str]:
    if tokens:
        shown = ", ".join(tokens[:3]) + (", ..." if len(tokens) > 3 else "")
        yield (
            f"tokenizers finds special tokens ({shown}) in every text, cpbpe only those that allowed_special "
            f"allows"
        )
    rows = zip(spec.pieces.texts, spec.pieces.types, strict=True)
    control = {text for text, type in rows if type == PieceType.CONTROL}
    guessed = special.guessed_names(control | {text for text, _ in spec.added})
    called = _by_id(spec, names)
    ids = {"bos": spec.bos_id, "eos": spec.eos_id, "pad": spec.pad_id}
    for (kind, id), name in zip(ids.items(), guessed, strict=True):
        ends = spec.carried.options.get(f"add_{kind}", False)
        if id is not None and called[id] != name.decode() and not ends:
            yield f"the file does not say that {called[id]} is {kind}"
