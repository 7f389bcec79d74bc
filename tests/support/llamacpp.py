"""The ids that llama.cpp gives to a text, computed as `cpbpe.model.formats.gguf.llamacpp` describes it."""

from cpbpe.model.byte_level import symbols
from cpbpe.model.formats.gguf.llamacpp import ENDS, SPACE, LlamaCpp, LlamaCppBytes
from cpbpe.model.pair_ranks import by_text, merged
from cpbpe.model.spec import PieceType


def ids(model: LlamaCpp, text: str) -> list[int] | None:
    """The ids of a text in a model of characters, or None if it stops the program."""
    found: list[int] = []
    after_special = True
    for part in _cut(model, text):
        if isinstance(part, int):
            found.append(part)
            after_special = True
            continue
        prefix = " " if after_special and model.spec.normalizer.add_dummy_prefix else ""
        after_special = False
        for symbol in merged((prefix + part).replace(" ", SPACE), by_text(model.all_ranks)):
            if symbol in model.all_ranks:
                found.append(model.ids[symbol])
                continue
            for byte in symbol.encode():
                id = model.ids.get(f"<0x{byte:02X}>", model.ids.get(chr(byte)))
                if id is None:
                    return None
                found.append(id)
    return found


def _cut(model: LlamaCpp, text: str) -> list[str | int]:
    """The parts of the text between USER_DEFINED pieces, and the ids of these, in order."""
    forms = [
        (text.replace(SPACE, " "), id)
        for id, text in enumerate(model.texts)
        if model.types[id] == PieceType.USER_DEFINED and text in model.user_defined and text not in ENDS
    ]
    parts: list[str | int] = [text] if text else []
    for form, id in sorted(forms, key=lambda row: -len(row[0].encode())):
        new: list[str | int] = []
        for part in parts:
            if isinstance(part, int) or form not in part:
                new.append(part)
                continue
            for place, rest in enumerate(part.split(form)):
                new += [id] * (place > 0) + ([rest] if rest else [])
        parts = new
    return parts


def byte_level_ids(model: LlamaCppBytes, text: str) -> list[int]:
    """The ids of a text in a byte-level model if llama.cpp looks for no special tokens."""
    whole = model.names if model.pre.their_whole else {}
    return [model.names[symbol] for symbol in symbols(text, model.their_patterns, model.ranks, whole)]
