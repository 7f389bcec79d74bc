"""Small files of every format, right ones; and what must be true of whatever is made of them.

The tests change them at random, and the fuzzer as it likes (`tests/fuzzing.py`).
"""

from __future__ import annotations

import json
import pickle
import random
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import cpbpe
from cpbpe import ModelSpec, Piece, Pieces, PieceType, Tokenizer
from cpbpe.compat.sentencepiece.results import varint
from cpbpe.model.formats import gguf, gpt2, llama2c, minbpe, registry, tekken, tiktoken, vocab_text
from cpbpe.model.formats.gguf.container import ARRAY, BOOL, INT32, STRING, UINT8, UINT16, UINT32
from cpbpe.model.formats.registry import MODEL, NO_HINTS, Format, Hints
from cpbpe.model.formats.tokenizer_json import read, write
from cpbpe.model.spec import NormalizerSpec
from cpbpe.text.utf8 import BYTE_ORDER, LETTERS
from tests.bytes.models import made
from tests.support import charsmaps, gguf_files, streams, tokenizers, zoo
from tests.support.json_files import BYTES, ESCAPE, PREFIX, Json, added, dumped
from tests.support.mutations import mutated, other_values

TEXT = "abra cadabra Hi <s> ▁ab a\0b~é☃ 🦙"


# --- .model ---------------------------------------------------------------------------------------


def field(number: int, kind: int, body: bytes = b"") -> bytes:
    """A field: its tag and what follows; with its length where the kind is 2."""
    return varint(number << 3 | kind) + (varint(len(body)) if kind == 2 else b"") + body


def tiny() -> bytes:
    """Every part that a file can have, in 3,000 bytes: so most bytes matter."""
    proto = zoo.Proto()
    proto.pieces.add(piece=b"<unk>", type=zoo.Piece.UNKNOWN)
    zoo.add(proto, ["<s>", "</s>", "<pad>"], zoo.Piece.CONTROL)
    zoo.add(proto, ["ab", "Ab"], zoo.Piece.USER_DEFINED)
    zoo.add(proto, ["ra", "cad"], zoo.Piece.UNUSED, -1.0)
    zoo.add(proto, ["br", "bra", "▁c", "▁", *"abcdr~"], score=-2.0)
    proto.trainer_spec.model_type = proto.trainer_spec.BPE
    proto.trainer_spec.unk_surface = b" ? "
    proto.normalizer_spec.name = b"own"
    proto.normalizer_spec.precompiled_charsmap = charsmaps.make({b"~": b" ", b"A": b"a", b"br": b"rb"})
    proto.denormalizer_spec.precompiled_charsmap = charsmaps.make({b"a": b"A"})
    proto.denormalizer_spec.add_dummy_prefix = False
    proto.self_test_data = field(1, 2, field(1, 2, b"ab") + field(2, 2, b"ab"))
    return proto.SerializeToString()


def with_added_tokens() -> bytes:
    """The same with added tokens."""
    return cpbpe.Tokenizer.from_bytes(tiny()).with_special_tokens(["<|user|>", "<|end|>"]).to_bytes()


def with_fallback() -> bytes:
    """Byte fallback, and no charsmap."""
    proto = zoo.parse(zoo.model("llama"))
    del proto.pieces[300:]
    proto.normalizer_spec.name = b""
    return proto.SerializeToString()


# --- GGUF, tokenizer.bin, .vocab ------------------------------------------------------------------


def model() -> ModelSpec:
    rows = [*gguf_files.ROWS, ("▁▁".encode(), 0, PieceType.NORMAL), (b"~", -9, PieceType.UNUSED)]
    rules = NormalizerSpec("identity", remove_extra_whitespaces=False)
    return ModelSpec(Pieces.of(rows), rules, byte_fallback=True)


def gguf_seeds() -> list[bytes]:
    """Every kind of value, in every version; and a model without byte fallback, which is small."""
    rules = list(charsmaps.make({b"~": b"a"}))
    every = {
        "own.nested": ((ARRAY, (ARRAY, STRING)), [[b"a", b""], []]),
        "split.no": (UINT16, 0),
        "tokenizer.chat_template": (STRING, b"{{ x }}"),
        **gguf_files.tokenizer(precompiled_charsmap=((ARRAY, UINT8), rules), add_space_prefix=(BOOL, 0)),
    }
    small = [row for row in gguf_files.ROWS if row[2] != PieceType.BYTE]
    tiny = gguf_files.tokenizer([*small, (b" x", 0, PieceType.USER_DEFINED)], eot_token_id=(UINT32, 2))
    return [
        gguf_files.file(every),
        gguf_files.file(every, version=1),
        gguf_files.file(every, order=">"),
        *[gguf_files.file(tiny, version=version) for version in (1, 2, 3)],
        gguf.write(model(), allow_differences=True).data,
    ]


def llama2c_seeds() -> list[bytes]:
    written = llama2c.write(model(), allow_differences=True).data
    old = written
    for byte in range(256):
        old = old.replace(
            b"\6\0\0\0<0x%02X>" % byte, len(chr(byte).encode()).to_bytes(4, "little") + chr(byte).encode()
        )
    return [written, old]


def vocab_seeds() -> list[bytes]:
    written = vocab_text.write(model(), allow_differences=True).data
    return [written, written.replace(b"\n", b"\r\n"), b"<unk>\t0\n<s>\t0\n<x>\t0\na\t-0\nb\t-1.5\n\n\t-2\n"]


def byte_level_seeds() -> list[bytes]:
    """Every kind of token, in both forms; and what is written."""
    tokens, merges = ["he", "ll", "hell", "Ġx", "[PAD260]", "<|b|>"], ["h e", "l l", "he ll", "Ġ x"]
    types = (ARRAY, INT32), [*[1] * 260, 5, 4, 3]
    plain = gguf_files.byte_level(tokens, merges, token_type=types, bos_token_id=(UINT32, 261))
    more = {**plain, "tokenizer.ggml.pre": (STRING, b"qwen2"), "cpbpe.unicode_form": (STRING, b"NFD")}
    return [
        gguf_files.file(plain),
        gguf_files.file(more, version=1),
        gguf_files.file(more, order=">"),
        gguf.write(made("gpt2", 20)).data,
    ]


def pair_seeds() -> list[bytes]:
    data = gpt2.write(made(count=30)).data
    return [data, data.replace(b"{", b'{"<mask>": 600, ', 1), data.replace(b"\n", b"\r\n")]


def rank_seeds() -> list[bytes]:
    return [tiktoken.write(made(count=30), allow_differences=True).data]


def minbpe_seeds() -> list[bytes]:
    return [minbpe.write(made(count=30)).data, b"minbpe v1\n\n1\n<e> 258\n97 98\n256 99\n"]


def tekken_seeds() -> list[bytes]:
    rows = [Piece(name, 0, PieceType.CONTROL) for name in (b"<unk>", b"<s>", b"</s>", b"<pad>")]
    rows += [Piece(bytes([byte]), -byte) for byte in range(256)]
    rows += [Piece(text, -256 - place) for place, text in enumerate((b"ab", b" a", b"aba"))]
    return [tekken.write(replace(made("tekken"), pieces=Pieces.of(rows), whole=True)).data]


# --- tokenizer.json -------------------------------------------------------------------------------


def plain(fallback: bool = False) -> Json:
    """A file of a few tokens, without byte fallback (as that has 256 tokens more)."""
    tokens = [
        "<unk>",
        *(BYTES if fallback else []),
        *"ab▁.",
        "ab",
        "▁a",
        "aba",
        "ba",
        "▁ab",
        "bb",
        "b.",
        "▁▁",
    ]
    merges = [
        ["a", "b"],
        ["▁", "a"],
        ["ab", "a"],
        ["b", "a"],
        ["▁", "ab"],
        ["▁a", "b"],
        ["b", "b"],
        ["▁", "▁"],
    ]
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": "<unk>",
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": True,
        "byte_fallback": fallback,
        "ignore_merges": False,
        "vocab": {token: id for id, token in enumerate(tokens)},
        "merges": merges,
    }
    steps = [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "Fuse"}]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [added(0, "<unk>", True), added(len(tokens), "<x>", True, lstrip=True)],
        "normalizer": {"type": "Sequence", "normalizers": [PREFIX, ESCAPE]},
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": steps},
        "model": model,
    }


def metaspace() -> Json:
    step = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}
    return {**plain(), "normalizer": None, "pre_tokenizer": step}


def gemma() -> Json:
    split = {
        "type": "Split",
        "pattern": {"String": " "},
        "behavior": "MergedWithPrevious",
        "invert": False,
    }
    content = {**plain(), "normalizer": ESCAPE, "pre_tokenizer": split}
    content["added_tokens"] = [added(5, "ab", False), added(13, "a.", False), added(14, "x", False)]
    return content


def ours() -> Json:
    """A file of ours with user-defined pieces, and with spaces removed."""
    found: Json = json.loads(write(read(dumped(gemma())).spec).data)
    rules: list[Json] = [{"type": "Replace", "pattern": {"Regex": r"\A +"}, "content": ""}]
    rules += [{"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}, PREFIX, ESCAPE]
    rules += [{"type": "Replace", "pattern": {"Regex": r"▁+\z"}, "content": ""}]
    return {**found, "normalizer": {"type": "Sequence", "normalizers": rules}}


def byte_level() -> Json:
    """A file in the form of GPT-2's, with one more pattern."""
    tokens = [LETTERS[byte] for byte in BYTE_ORDER]
    merges = [["a", "b"], ["Ġ", "a"], ["ab", "a"], ["b", "a"], ["Ġ", "ab"], ["b", "b"], ["Ã", "©"]]
    tokens += ["".join(pair) for pair in merges] + ["1xy", "<x>"]
    content = plain()
    split = {"type": "Split", "pattern": {"Regex": "b(?=a)|1+"}, "behavior": "Isolated", "invert": False}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    content["normalizer"] = None
    content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, byte_level]}
    content["decoder"] = byte_level
    content["added_tokens"] = [added(264, "<x>", True), added(265, "<y>", True)]
    vocab = {token: id for id, token in enumerate(tokens)}
    content["model"].update(unk_token=None, fuse_unk=False, ignore_merges=True, vocab=vocab, merges=merges)
    return content


def prefixed() -> Json:
    """The same with a space in front of texts, and in a normal form."""
    step = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    return {**byte_level(), "normalizer": {"type": "NFC"}, "pre_tokenizer": step}


def punctuated() -> Json:
    """The same with other steps that cut."""
    split = {
        "type": "Split",
        "pattern": {"String": "ab"},
        "behavior": "MergedWithPrevious",
        "invert": False,
    }
    marks = {"type": "Punctuation", "behavior": "Contiguous"}
    step = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    steps = [split, marks, {"type": "Digits", "individual_digits": True}, step]
    return {**byte_level(), "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps}}


FORMS: dict[str, Callable[[], Json]] = {
    "plain": plain,
    "metaspace": metaspace,
    "gemma": gemma,
    "ours": ours,
    "byte fallback": lambda: plain(fallback=True),
    "byte level": byte_level,
    "prefixed": prefixed,
    "punctuated": punctuated,
}


# --- All formats ----------------------------------------------------------------------------------

SEEDS: dict[str, Callable[[], list[bytes]]] = {
    "model": lambda: [tiny(), with_fallback(), with_added_tokens()],
    "minbpe": minbpe_seeds,
    "gguf": gguf_seeds,
    "gguf, byte-level": byte_level_seeds,
    "gpt2": pair_seeds,
    "tekken.json": tekken_seeds,
    "tokenizer.json": lambda: [dumped(form()) for form in FORMS.values()],
    "tiktoken": rank_seeds,
    "tokenizer.bin": llama2c_seeds,
    "vocab": vocab_seeds,
}
"""Right files, by the name of their format, and what they are if a format has several."""
JSON = ("tekken.json", "tokenizer.json")
OF_NO_PATTERN = ("gpt2", "tiktoken")
"""Formats whose files do not say how texts are cut."""


@cache
def seeds_of(name: str) -> list[bytes]:
    return SEEDS[name]()


def changed(chance: random.Random, name: str) -> bytes:
    """One of the seeds with something wrong."""
    seeds = seeds_of(name)
    if name in JSON and chance.random() < 0.5:
        return other_values(chance, chance.choice(seeds))
    return mutated(chance, seeds)


def check(data: bytes, name: str, *, closely: bool = False) -> bool:
    """Whether data is a model of a format. If so, every call works, and it can be written and read again.

    It is also read as what it looks like. `closely`: compare the engines, and write every format.
    """
    format = registry.FORMATS[name.partition(",")[0]]
    pattern = "gpt2" if format.name in OF_NO_PATTERN else None
    tok = loaded(lambda: read_as(format, data, pattern))
    looks = loaded(lambda: Tokenizer.from_bytes(data))
    if format is MODEL:
        assert tok == looks
    elif tok is None and looks is not None and registry.format_of(data) is format:
        raise AssertionError("it is read only where differences are not allowed")
    if tok is None:
        return False
    try:
        use(tok)
        if closely:
            agree(tok, (TEXT, data[-40:]))
    except ValueError as error:
        assert tok.spec.splitter is not None
        assert "steps" in str(error) or "depth" in str(error), error
        return True
    for other in registry.FORMATS.values() if closely else {format.name: format, MODEL.name: MODEL}.values():
        check_written(tok, other)
    return True


def read_as(format: Format, data: bytes, pattern: str | None) -> Tokenizer:
    hints = NO_HINTS if pattern is None else Hints(pattern)
    return Tokenizer.from_spec(format.read(data, allow_differences=True, hints=hints).spec)


def loaded(load: Callable[[], Tokenizer], name: str = "") -> Tokenizer | None:
    """What was loaded; None if it was one of the two errors, with a message that begins with a name."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return load()
    except (cpbpe.ModelError, cpbpe.ConversionError) as error:
        assert 10 < len(str(error)) - len(name) < 700, error
        assert str(error).startswith(name), error
        return None


def use(tok: Tokenizer, text: str = TEXT) -> None:
    """Every kind of call; none of them may fail."""
    ids = tok.encode(text)
    assert tok.encode_array(text).tolist() == tok.encode_batch([text])[0] == ids
    assert tok.align(text).ids == tok.encode_arrays([text], spans=True).ids.tolist() == ids
    assert tok.count(text) == len(ids)
    try:
        stream = tok.stream_encoder()
        assert stream.push(text[:7]) + stream.push(text[7:]) + stream.flush() == ids
    except ValueError as error:  # a token may take spaces around it
        assert "encode it whole with encode()" in str(error), error
    with suppress(ValueError):  # a character may have more tokens than that
        assert "".join(tok.split(text, 9)) == text
    assert text.startswith(tok.truncate(text, 9))
    tok.encode(text, alpha=0.5, seed=1, prefix_space=False)
    tok.normalize(text)
    decoded = tok.decode(ids)
    assert tok.decode_batch([ids]) == [decoded]
    tok.decode_bytes(ids), tok.decode_pieces(tok.encode_pieces(text)), tok.decode(ids, keep_prefix_space=True)
    with suppress(ValueError):  # a denormalizer does not go with streams
        decoder = tok.stream_decoder()
        assert decoder.push(ids) + decoder.flush() == decoded
    with suppress(cpbpe.ModelError):  # this cannot be decided for a charsmap with cycles
        tok.is_lossless()
    assert len(tok.vocab.token_bytes()) == tok.vocab_size
    assert len(tok.vocab) == len(tok.vocab.scores) + len(tok.vocab.added_tokens)
    names, added = tok.get_vocab(), tok.vocab.added_tokens
    # (Two pieces that are not UTF-8 may look alike, and an added token may look like a piece.)
    alike = any("\ufffd" in name for name in names) or any(names[text] != added[text] for text in added)
    assert alike or len(names) == len(tok.vocab)
    assert repr(tok), tok.fingerprint
    assert tok.settings == tok.spec.settings
    again = Tokenizer.from_spec(tok.spec)
    assert again == tok == pickle.loads(pickle.dumps(tok))
    assert again.encode(text) == ids
    assert tok.with_special_tokens(["<|new|>"]).encode("<|new|>", allowed_special="all")[-1] == tok.vocab_size


CALLS: dict[str, Callable[[Tokenizer, Any], object]] = {
    "encode": lambda tok, text: tok.encode(text),
    "encode, special tokens": lambda tok, text: tok.encode(text, allowed_special="all"),
    "encode, sampled": lambda tok, text: tok.encode(text, alpha=0.4, seed=5),
    "encode_pieces": lambda tok, text: tok.encode_pieces(text),
    "encode_lines": lambda tok, text: tok.encode_batch([text, text[1:], text[:-1]]),
    "align": lambda tok, text: [*zip(tok.align(text).pieces, tok.align(text).offsets, strict=True)],
    "align, bytes": lambda tok, text: tok.align(text, unit="byte").offsets,
    "normalize": lambda tok, text: tok.normalize(text),
    "count": lambda tok, text: tok.count(text),
    "decode": lambda tok, text: tok.decode_bytes(tok.encode(text)),
    "decode, anything": lambda tok, text: tok.decode([byte % len(tok.vocab.scores) for byte in _bytes(text)]),
    "truncate": lambda tok, text: tok.truncate(text, 3),
    "stream": lambda tok, text: streams.encoded(tok, random.Random(3), text),
}
"""Calls whose results do not depend on the engine."""


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


def agree(tok: Tokenizer, texts: Iterable[str | bytes]) -> None:
    """The engines give the same."""
    other = tokenizers.make(tok.to_bytes(), "reference")
    for text in texts:
        for name, call in CALLS.items():
            ours = call(tok, text)
            assert call(other, text) == ours, (name, text)


def check_written(tok: Tokenizer, format: Format) -> None:
    """A model written in a format is the same model when it is read again, or it cannot be written."""
    spec = tok.spec
    try:
        written = format.write(spec, allow_differences=True)
    except cpbpe.ConversionError as error:
        assert "please report" not in str(error), error
        return
    pattern = spec.splitter.pattern if spec.splitter is not None else ""
    pattern = f"(?:{pattern})" if pattern.isalnum() else pattern  # (otherwise it is a name)
    hints = Hints(pattern, tok.vocab.special_tokens) if format.name in OF_NO_PATTERN else NO_HINTS
    again = format.read(written.data, allow_differences=True, hints=hints)
    if not written.differences and not again.differences:
        assert Tokenizer.from_spec(again.spec).encode(TEXT) == tok.encode(TEXT), format.name
    if format is MODEL:
        assert Tokenizer.from_bytes(written.data) == tok


def check_folder(folder: Path, name: str = "", *, closely: bool = False) -> Tokenizer | None:
    """What a folder of transformers holds; None if it is refused, with a message that begins with a name."""
    try:
        tok = loaded(lambda: cpbpe.load(folder), name)
    except FileNotFoundError as error:
        assert str(folder) in str(error), error
        return None
    if tok is not None:
        tok.using(**tok.file_options).encode(TEXT)
        again = Tokenizer.from_bytes(tok.to_bytes())
        assert (again, again.token_roles) == (tok, tok.token_roles)
        if closely:
            use(tok)
            with suppress(cpbpe.ModelError, cpbpe.ConversionError):
                cpbpe.convert(folder, folder / "made.spm")
    return tok
