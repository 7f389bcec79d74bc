"""tokenizer.json files: models of the zoo as the `tokenizers` library has them, and files as it writes them.

The library is the oracle: whatever is written is read by it, and what is said to differ must differ there.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, processors, trainers

import cpbpe
from cpbpe import ModelSpec, Tokenizer
from cpbpe.model.formats.tokenizer_json import write
from cpbpe.model.formats.values import Written
from tests.support import corpus, zoo
from tests.support.texts import TextMaker

Json = dict[str, Any]
WITHOUT_RULES = " without rules"
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]

EXACT = {
    *zoo.REAL,
    *("llama", "identity-no-fallback", "no-prefix", "suffix-keep-spaces", "unsplit", "no-unk", "many-pieces"),
    *("fractional-scores", "odd-scores", "nul", "nul-unused", "unescaped", "deep-unused"),
    *("user-defined-llama", "nested-user-defined"),
}
"""The models of the zoo that have an exact tokenizer.json."""
ALSO_WITHOUT_RULES = {
    *("defaults", "nfkc", "keep-spaces", "no-prefix-squeeze", "suffix", "across-spaces", "user-defined"),
    *("user-defined-suffix", "special", "renamed-unk", "user-defined-specials", "no-bos-empty-surface"),
    *("inner-spaces", "shuffled-scores", "positive-scores", "unescaped-squeeze"),
}
"""Those that have one if they are given no charsmap."""
CASES = [*sorted(EXACT), *(f"{name}{WITHOUT_RULES}" for name in sorted(ALSO_WITHOUT_RULES))]


def spec_of(name: str) -> ModelSpec:
    """A model of the zoo as a value. "NAME without rules" is one without its charsmaps."""
    plain = name.removesuffix(WITHOUT_RULES)
    spec = Tokenizer.from_bytes(zoo.model(plain)).spec
    if plain == name:
        return spec
    return replace(spec, normalizer=replace(spec.normalizer, charsmap=b""), denormalizer=None, file=None)


def theirs(data: bytes) -> Any:
    """The tokenizer of a file. Like ours by default, it does not look for special tokens in texts."""
    made = tokenizers.Tokenizer.from_str(data.decode())
    made.encode_special_tokens = True
    return made


def ids_of(tokenizer: Any, text: str) -> list[int]:
    """The ids of a text alone."""
    ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
    return ids


def differing(tok: Tokenizer, other: Any, texts: Iterator[str]) -> list[str]:
    """The first texts whose ids, or what these decode to, are not the same in the two libraries."""
    found = []
    for text in texts:
        ids = tok.encode(text)
        if ids != ids_of(other, text) or tok.decode(ids) != other.decode(ids):
            found.append(text)
            if len(found) == 3:
                break
    return found


def texts_for(spec: ModelSpec, count: int, seed: int = 1) -> Iterator[str]:
    """Texts of every kind for a model: of its pieces, of parts of two of them, of its awkward ones."""
    pieces = [text.decode(errors="replace") for text in spec.pieces.texts]
    awkward = [piece for piece, type in zip(pieces, spec.pieces.types, strict=True) if type not in (1, 6)]
    maker = TextMaker(seed, pieces, corpus.lines())
    chance = random.Random(seed)
    for _ in range(count):
        kind = chance.random()
        if kind < 0.5:
            yield maker.text()
        elif kind < 0.7:  # what overlaps
            left, right = chance.choice(pieces), chance.choice(pieces)
            yield (left[-chance.randint(1, 8) :] + right[: chance.randint(1, 8)] + left).replace("▁", " ")
        else:
            parts = chance.choices(
                [*awkward, "▁", " ", "a", "<0x41>", "\0", "\ue000"], k=chance.randint(1, 6)
            )
            yield "".join(parts)


@cache
def written(name: str) -> Written | cpbpe.ConversionError:
    """A model as a tokenizer.json, or why it cannot be one."""
    try:
        return write(spec_of(name))
    except cpbpe.ConversionError as error:
        return error


# --- Files as others write them -------------------------------------------------------------------

PREFIX = {"type": "Prepend", "prepend": "▁"}
ESCAPE = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}


@cache
def _trained(fallback: bool) -> str:
    made = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=fallback))
    made.pre_tokenizer = pre_tokenizers.Metaspace("▁", "always")
    special = ["<unk>", "<s>", "</s>", *(BYTES if fallback else [])]
    trainer = trainers.BpeTrainer(vocab_size=900, special_tokens=special, show_progress=False)
    made.train_from_iterator(corpus.lines(), trainer)
    text: str = made.to_str()
    return text


def llama(fallback: bool = True) -> Json:
    """A file in the form of Llama's, trained by the library."""
    content: Json = json.loads(_trained(fallback))
    content["added_tokens"] = [
        token for token in content["added_tokens"] if token["content"] in ("<unk>", "<s>", "</s>")
    ]
    content["pre_tokenizer"] = None
    content["normalizer"] = {"type": "Sequence", "normalizers": [PREFIX, ESCAPE]}
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    content["decoder"] = json.loads(decoders.Sequence(steps).__getstate__())
    template = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    content["post_processor"] = json.loads(template.__getstate__())
    return content


def with_model(content: Json, **settings: Any) -> Json:
    """The file with other settings of its model."""
    return {**content, "model": {**content["model"], **settings}}


def added(id: int, text: str, special: bool, **flags: bool) -> Json:
    """An added token."""
    usual = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": id, "content": text, **usual, "special": special, **flags}


def metaspace(scheme: str, split: bool) -> Json:
    """A file in the form of Mistral's newer ones."""
    step = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split}
    return {**llama(), "normalizer": None, "pre_tokenizer": step}


def gemma() -> Json:
    """A file in the form of Gemma's: no prefix, and added tokens that are not special."""
    content = llama()
    content["normalizer"] = ESCAPE
    content["pre_tokenizer"] = {
        "type": "Split",
        "pattern": {"String": " "},
        "behavior": "MergedWithPrevious",
        "invert": False,
    }
    content["decoder"]["decoders"].pop()
    content["added_tokens"] += [added(900, "<table>", False), added(901, "<start_of_turn>", True)]
    return content


def phi3() -> Json:
    """A file in the form of Phi-3's: added tokens that take the spaces after them."""
    content = llama()
    content["added_tokens"][2].update(special=False, rstrip=True)
    content["added_tokens"] += [
        added(900, "<|end|>", True, rstrip=True),
        added(901, "<|user|>", True, rstrip=True),
    ]
    return content


def all_splits() -> Json:
    """Every way to make a token as a merge, as converters list them."""
    content = llama()
    ids: dict[str, int] = content["model"]["vocab"]
    tokens = sorted((token for token in ids if token[0] != "<"), key=ids.__getitem__)
    merges = [(token[:at], token[at:]) for token in tokens for at in range(1, len(token))]
    return with_model(content, merges=[pair for pair in merges if ids.keys() >= {*pair}])


def dumped(content: Json) -> bytes:
    """A file's bytes."""
    return json.dumps(content).encode()
