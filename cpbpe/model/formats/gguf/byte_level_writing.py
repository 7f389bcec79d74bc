"""Writing the GGUF file of a byte-level model, which holds the tokenizer and nothing else."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping

from cpbpe.errors import ConversionError
from cpbpe.model.formats.gguf import keys
from cpbpe.model.formats.gguf.byte_level_llamacpp import LlamaCppBytes
from cpbpe.model.formats.gguf.container import BOOL, INT32
from cpbpe.model.formats.gguf.pre_names import KNOWN, PreName, name_for, nearest
from cpbpe.model.formats.gguf.storing import ValuesFile
from cpbpe.model.formats.values import Written, refuse
from cpbpe.model.spec import PLAIN, ModelSpec, PieceType
from cpbpe.text.byte_letters import to_letters

_ALLOW = "To convert it all the same, pass allow_differences=True, which lists them"
_MOST_FILLED = 1 << 20
"""So many ids that nothing has are filled; more are a mistake."""
_THEIR_DEFAULT = 11
"""What llama.cpp takes for bos and eos if the file does not say."""


def write(spec: ModelSpec, *, allow_differences: bool) -> tuple[ValuesFile, Written]:
    """The values of the file, to which others are added, and what is to be said about it."""
    # 1. What llama.cpp does with it.
    pre = name_for(spec) or nearest(spec)
    if pre is None:
        raise ConversionError(_nameless(spec))
    model = LlamaCppBytes(spec, pre)
    found = list(model.differences())
    if not allow_differences:
        refuse(found, "there is no GGUF file that llama.cpp uses exactly as this model", _ALLOW)
    # 2. The columns.
    texts, types = _tokens(spec)
    merges = [
        f"{to_letters(left)} {to_letters(right)}".encode() for left, right in model.listed.pairs.values()
    ]
    values = ValuesFile()
    values.text(keys.ARCHITECTURE, "llama")
    values.text("general.type", "model")
    values.text(keys.MODEL, keys.BYTE_LEVEL)
    values.text(keys.PRE, pre.name)
    values.texts(keys.TOKENS, texts)
    values.numbers(keys.TYPES, INT32, array("i", types))
    values.texts(keys.MERGES, merges)
    values.text(keys.FORM, spec.normalizer.unicode_form)
    if spec.normalizer.add_dummy_prefix:
        values.number(keys.PREFIX, BOOL, True)
    return values, Written(b"", tuple(found), tuple(_notes(spec, pre, texts)))


def _nameless(spec: ModelSpec) -> str:
    if spec.splitter is None:
        return (
            "a GGUF file names the pattern by which texts are cut, and this model cuts none: llama.cpp has "
            "no name for that. A tokenizer.json can hold it"
        )
    shown = " and then ".join((spec.splitter.name or spec.splitter.pattern, *spec.splitter.then))
    return (
        f"a GGUF file names the pattern by which texts are cut, and llama.cpp has no name for this one: "
        f"{shown}. It has names for the patterns of {', '.join(KNOWN)}. A tokenizer.json can hold any"
    )


def _tokens(spec: ModelSpec) -> tuple[list[bytes], list[int]]:
    """The tokens as the file spells them, and their types. Ids that nothing has are filled."""
    texts, types = list(spec.pieces.texts), list(spec.pieces.types)
    texts = [
        to_letters(text).encode() if type == PieceType.NORMAL else text
        for text, type in zip(texts, types, strict=True)
    ]
    added: Mapping[int, bytes] = {id: text for text, id in spec.added}
    if added and min(added) < len(texts):
        raise ConversionError("an added token has the id of a piece, which no GGUF file can say")
    size = max([len(texts), *(id + 1 for id in added)])
    if size - len(texts) - len(added) > _MOST_FILLED:
        raise ConversionError(
            f"the highest id is {size - 1:,}, and a GGUF file has a token for every id; nothing has "
            f"{size - len(texts) - len(added):,} of these"
        )
    for id in range(len(texts), size):
        texts.append(added.get(id, b"[PAD%d]" % id))
        types.append(PieceType.CONTROL if id in added else PieceType.UNUSED)
    for id, text in enumerate(texts):  # llama.cpp finds USER_DEFINED tokens in every text
        if types[id] == PieceType.CONTROL and PLAIN in spec.carried.tokens.get(
            text.decode(errors="replace"), ()
        ):
            types[id] = PieceType.USER_DEFINED
    seen: dict[bytes, int] = {}
    for id, text in enumerate(texts):
        if text.decode(errors="replace").encode() != text:
            raise ConversionError(
                f"the special token {id}, {text!r}, is not UTF-8, and a GGUF file holds text. Give it "
                f"another text first (tok.spec, cpbpe.Tokenizer.from_spec)"
            )
        other = seen.setdefault(text, id)
        if other != id:
            raise ConversionError(
                f"the token {text.decode()!r} is spelled like a piece in a GGUF file, where each byte is a "
                f"letter: {other} and {id} would be one token. Give it another text first"
            )
    return texts, types


def _notes(spec: ModelSpec, pre: PreName, texts: list[bytes]) -> Iterator[str]:
    yield (
        "llama.cpp finds special tokens in texts if it is told to, the longest first; cpbpe those that "
        "allowed_special allows"
    )
    if spec.bos_id is None and len(texts) > _THEIR_DEFAULT:
        name = texts[_THEIR_DEFAULT].decode()
        yield f"the model has no bos, and llama.cpp takes the token {_THEIR_DEFAULT}, {name!r}, for it"
    if pre.adds_bos and not spec.carried.options.get("add_bos"):
        yield f"the file asks for no bos around texts; models of {pre.name} need it: pass add_bos=True"
    if len(texts) > len(spec.pieces) + len(spec.added):
        yield "ids that nothing has are filled with UNUSED tokens"
    yield "scores become the order of merges, and the settings of the training are not stored"
