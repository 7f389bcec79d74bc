"""Lets a fuzzer look for inputs that break what cpbpe promises about files, texts and models.

    pip install -c constraints.txt -e ".[fuzz]"       # atheris, which has libFuzzer in it
    python -m tests.fuzzing read_gguf -max_total_time=600 FOLDER

FOLDER is where the inputs are kept that were found; whatever else libFuzzer takes may follow the target, too.
(The core's own laws have targets in core/fuzz.)

A target takes bytes. It makes a file of them, or a model and a text, and fails with an error that cpbpe must
not raise. Most targets read the bytes as choices (`Chosen`): which right file to begin with, and what to
change in it. Tests run all targets without a fuzzer, on random bytes and on what it has found.
"""

from __future__ import annotations

import atexit
import bz2
import gzip
import json
import lzma
import os
import re
import sys
import time
import warnings
import zlib
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from io import BytesIO
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory, mkdtemp
from unittest import mock

if __name__ == "__main__":
    import atheris

    # It stays: what cpbpe imports only when it needs it shows the fuzzer its branches, too.
    atheris.instrument_imports(include=["cpbpe"]).__enter__()

import numpy as np

import cpbpe
from cpbpe import (
    ChatTemplateError,
    ModelSpec,
    NormalizerSpec,
    Piece,
    Pieces,
    PieceType,
    Tokenizer,
    WordCounts,
)
from cpbpe.corpus.documents import Documents
from cpbpe.corpus.find import MANIFEST
from cpbpe.lint.usage import read_embeddings
from cpbpe.model.formats import registry
from cpbpe.packing.formats import MAPPED
from cpbpe.packing.lines import FORMS, DocumentEncoder, LineDecoder
from cpbpe.text.charsmap_build import charsmap_from_tsv
from cpbpe.text.split_patterns import PATTERNS
from cpbpe.tokenizer.chat_templates import ChatTemplate
from cpbpe.tokenizer.marked_text import Origin, marked, runs_of
from cpbpe.tools.chat import chat_table
from tests.bytes import models as byte_models
from tests.bytes.test_tokenizer_json import PARTS, REPEATS
from tests.conftest import ENGINES, most_memory
from tests.formats import test_verdicts as verdicts
from tests.support import charsmaps, hostile, tokenizers
from tests.support.chats import STYLES
from tests.support.mutations import Chosen, mutated, other_values
from tests.support.parity import Pair
from tests.support.time_limit import time_limit
from tests.tools.test_chat import TEMPLATES, TOKENS, template_of

Files = dict[str, bytes]
CORPUS = Path(__file__).parents[1] / "core" / "fuzz" / "corpus"
MOST_SECONDS = 5.0
MOST_BYTES = 3e8
"""What an input may take, which has a few thousand bytes."""


@cache
def _kept() -> Path:
    folder = Path(mkdtemp())
    atexit.register(rmtree, folder, ignore_errors=True)
    return folder


def _folder(files: Files) -> Path:
    """A folder with these files, until the next call."""
    folder = _kept()
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    for name, data in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def _files_of(folder: Path) -> Files:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _changed(chance: Chosen, *seeds: bytes) -> bytes:
    """What is left of the input after a NUL, or one of the seeds with something wrong."""
    return chance.data[1:] if chance.data[:1] == b"\0" else mutated(chance, seeds)


@cache
def _tok(engine: str = ENGINES[0]) -> Tokenizer:
    """A small model for whatever needs one."""
    return tokenizers.make(Tokenizer.from_spec(hostile.model()).to_bytes(), engine, ("<|a|>",))


@contextmanager
def _refused(path: Path) -> Iterator[None]:
    """Take the errors that users expect of a bad file, which name it."""
    try:
        yield
    except (ValueError, OSError) as error:
        assert str(path) in str(error).replace(r"\\", "\\"), error


# --- Models ---------------------------------------------------------------------------------------


def read_model(format: registry.Format, data: bytes) -> None:
    """A model's file: the input after a first NUL, or a right file, changed."""
    names = [name for name in hostile.SEEDS if name.partition(",")[0] == format.name]
    chance = Chosen(data)
    name, closely = names[chance.randrange(256) % len(names)], chance.randrange(4) == 0
    file = chance.data[1:] if chance.data[:1] == b"\0" else hostile.changed(chance, name)
    hostile.check(file, name, closely=closely)


@cache
def _folders() -> list[Files]:
    """Folders of transformers, with all files that are read in them."""
    tok = Tokenizer.from_spec(hostile.model()).with_special_tokens(["<|a|>", "<é>"]).using(add_bos=True)
    byte_level = Tokenizer.from_spec(byte_models.made(count=30))
    with TemporaryDirectory() as folder:
        tok.save(f"{folder}/")
        whole = _files_of(Path(folder))
        byte_level.save(f"{folder}/b/")
        of_bytes = _files_of(Path(folder, "b"))
    more = {
        "generation_config.json": b'{"eos_token_id": [2, 700], "top_p": 0.5}',
        "chat_template.json": b'{"chat_template": "x"}',
        "added_tokens.json": b'{"<|a|>": 264, "<new>": 300}',
        "special_tokens_map.json": b'{"bos_token": "<s>", "eos_token": {"content": "</s>"}}',
        "chat_template.jinja": b"{{ messages }}",
    }
    ids, _, merges = hostile.seeds_of("gpt2")[0].partition(b"\n")
    pairs = {"vocab.json": ids, "merges.txt": merges, "tokenizer_config.json": b'{"add_prefix_space": true}'}
    qwen = {**pairs, "tokenizer_config.json": b'{"tokenizer_class": "Qwen2Tokenizer", "bos_token": null}'}
    return [{**whole, **more}, {**of_bytes, **more}, {**pairs, **more}, qwen]


def read_folder(data: bytes) -> None:
    """A folder of which one to three files are changed, or missing."""
    chance = Chosen(data)
    files = dict(chance.choice(_folders()))
    for _ in range(chance.choice((1, 1, 2, 3))):
        name = chance.choice(sorted(files))
        kind = chance.randrange(8)
        if kind == 0:
            del files[name]
        elif kind < 5 and name.endswith(".json"):
            with suppress(ValueError):  # it is changed already
                files[name] = other_values(chance, files[name])
        else:
            files[name] = mutated(chance, [files[name] or b"x"])
    hostile.check_folder(_folder(files), closely=chance.randrange(4) == 0)


# --- What training and packing read ---------------------------------------------------------------


@cache
def _counts() -> list[bytes]:
    texts, made = ["né two three", "the cat the hat", "a1 b22"], []
    for options in ({}, {"preset": "gpt4", "vocab_size": 300}, {"preset": "sentencepiece"}):
        path = _folder({}) / "counts"
        WordCounts.build(texts, **options).save(path)
        made.append(path.read_bytes())
    return made


def read_words(data: bytes) -> None:
    """Counted words. The checksum is right, or hardly any change would come to anything."""
    chance = Chosen(data)
    whole = chance.choice(_counts())[:-4]
    if chance.random() < 0.5:
        size = int.from_bytes(whole[8:16], "little")
        header = other_values(chance, whole[16 : 16 + size])
        whole = whole[:8] + len(header).to_bytes(8, "little") + header + whole[16 + size :]
    if chance.random() < 0.5:
        whole = mutated(chance, [whole])
    path = _folder({"counts": whole + zlib.crc32(whole).to_bytes(4, "little")}) / "counts"
    with _refused(path):
        counts = WordCounts.load(path)
        counts.save(path)
        assert WordCounts.load(path) == counts
        assert sum(counts.characters().values()) >= len(dict(counts))
        with suppress(cpbpe.TrainingError):
            cpbpe.train(counts, vocab_size=300, hard_vocab_limit=False, threads=1)


@cache
def _packed() -> dict[str, Files]:
    """What is packed, by its format, in two shards."""
    texts = ["ab a b", "", "a" * 9, "b ab ☃"]
    made = {}
    for name in MAPPED:
        folder = _folder({})
        cpbpe.pack(_tok(), texts, folder / "p", to=name, add_eos=True, shard_size=20, threads=1)
        made[name] = _files_of(folder)
    return made


def read_packed(data: bytes) -> None:
    """Packed tokens of which one file is damaged, or more."""
    chance = Chosen(data)
    files = dict(_packed()[chance.choice(sorted(MAPPED))])
    for _ in range(chance.choice((1, 1, 2))):
        name = chance.choice(sorted(files))
        if name.endswith(MANIFEST):
            files[name] = other_values(chance, files[name])
        else:  # (Another size would be noticed at once.)
            size = len(files[name])
            files[name] = mutated(chance, [files[name] or b"x"])[:size].ljust(size, b"\0")
    folder = _folder(files) / "p"
    with _refused(folder):
        packed = cpbpe.PackedTokens(folder)
        rows = [ids.tolist() for ids in packed]
        assert len(rows) == len(packed)
        _ = packed[:], packed[-1:], packed.ids(), [window.segments for window in packed.windows(5)]
        packed.check()
        assert sum(map(len, rows)) == packed.tokens


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": partial(gzip.compress, mtime=0),
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
}
LINES = {
    "text": b"ab a\n\nb\r\n\xff\n<s>",
    "tsv": b"text\tn\nab a\t2\n\tb\n",
    "csv": b'id,text\n1,"a ""b"",\nb"\n2,c\n',
    "jsonl": b'{"text": "ab"}\n\n{"text": null, "n": [1]}\n{"text": "\\u00e9"}\n',
}


def read_texts(data: bytes) -> None:
    """A file of texts as `cpbpe encode` takes it: plain, in records, compressed; then its ids, decoded."""
    chance = Chosen(data)
    format, suffix = chance.choice(sorted(LINES)), chance.choice(sorted(COMPRESS))
    text = _changed(chance, LINES[format])
    file = COMPRESS[suffix](text)
    if suffix and chance.random() < 0.5:
        file = mutated(chance, [file])
    path = _folder({f"a.{format}{suffix}": file}) / f"a.{format}{suffix}"
    form = chance.choice(("ids", "json", "jsonl"))
    with _refused(path):
        column = chance.choice(("text", None, 1, 2))
        documents = Documents(path, format=format, column=column if format in Documents.tables else None)
        texts = list(documents.texts())
        path.write_bytes(b"".join(DocumentEncoder(_tok(), form).encode(documents)))
        again = b"".join(LineDecoder(_tok(), form).decode([str(path)]))
        assert again.count(b"\n") >= len(texts) - 1


IDS = {
    "ids": b"259 260\n\n1 2 3\r\n",
    "pieces": "▁a ab\n<0x41> b".encode(),
    "json": b'[{"ids":[259,260]},\n[1]]',
    "jsonl": b'{"ids":[259,260]}\n{"ids":[]}\n',
}


def read_ids(data: bytes) -> None:
    """A file of ids or pieces as `cpbpe decode` takes it; both engines read it alike."""
    chance = Chosen(data)
    form = chance.choice(FORMS)
    path = _folder({"a": _changed(chance, IDS[form])}) / "a"
    made: list[object] = []
    for engine in ENGINES:
        made.append(None)
        with _refused(path):
            made[-1] = b"".join(LineDecoder(_tok(engine), form).decode([str(path)]))
    assert made[0] == made[-1]


def read_rules(data: bytes) -> None:
    """A file of rules of normalization, with which both engines normalize alike."""
    text = _changed(Chosen(data), b"61 62\t78\tab\nE9\t65\n1F642\n").decode(errors="replace")
    try:
        rules = NormalizerSpec("own", charsmap_from_tsv(text))
    except ValueError as error:
        assert str(error).startswith(("line ", "there are no rules")), error
        return
    spec = hostile.model()
    tok = Tokenizer.from_spec(ModelSpec(spec.pieces, rules, byte_fallback=True))
    hostile.agree(tok, ["ab ba é🙂", text[:40]])


@cache
def _rows() -> list[bytes]:
    """Embeddings as numpy and safetensors save them."""
    rows, file = np.arange(12, dtype="<f4").reshape(4, 3), BytesIO()
    np.save(file, rows)
    head = json.dumps({"wte.weight": {"dtype": "F32", "shape": [4, 3], "data_offsets": [0, 48]}}).encode()
    return [file.getvalue(), len(head).to_bytes(8, "little") + head + rows.tobytes()]


def read_rows(data: bytes) -> None:
    """An embedding, a .npy or a .safetensors file."""
    chance = Chosen(data)
    file = _changed(chance, *_rows())
    if chance.random() < 0.3:
        head = other_values(chance, _rows()[1][8:-48])
        file = len(head).to_bytes(8, "little") + head + bytes(48)
    path = _folder({"rows": file}) / "rows"
    with _refused(path):
        rows = read_embeddings(path)
        assert np.asarray(rows[: len(rows)]).shape == rows.shape


# --- Chat templates -------------------------------------------------------------------------------


def chat(data: bytes) -> None:
    """A chat template: who has written what; and its table, or why there is none."""
    seeds = [template_of(name).encode() for name in TEMPLATES]
    seeds += [style.template.encode() for style in STYLES.values()]
    text = _changed(Chosen(data), *seeds).decode(errors="replace")
    if re.search(r"\d{4}|\*|\|[^}]*(center|indent|format)|range", text):
        return  # a template takes the time and the memory that it wants
    with time_limit(MOST_SECONDS):
        table = chat_table(text, TOKENS)
    assert json.loads(json.dumps(table)).keys() == table.keys()
    assert table.get("problem", ".").endswith("."), table
    said = "①②③ ④\n⑤⑥"  # (which no template has)
    messages = [{"role": role, "content": f" {said}</think>{said} "} for role in ("user", "assistant")]
    with suppress(ChatTemplateError):
        given = {"messages": messages, "tools": [said], "bos_token": "<s>", "add_generation_prompt": True}
        given = {name: marked(value, Origin("said", 0)) for name, value in given.items()}
        rendered = ChatTemplate(text).render(given, marks=True)
        origins = (run.origin.kind for run in runs_of(rendered) for _ in range(run.size))
        kinds = {kind for kind, letter in zip(origins, rendered, strict=True) if letter in "①②③④⑤⑥"}
        assert "written" not in kinds, text


# --- Models that are made up ----------------------------------------------------------------------

TEXTS = [*"abcé▁ ☃\0", "ab", " a", "▁a", "a▁b", "<s>", "\ufffd"]
HALVES = [b"\xc3", b"\x98\x83", b"\xff"]


def _characters(chance: Chosen) -> ModelSpec:
    """A model of characters: any pieces, scores, types, rules and settings."""
    rows: dict[bytes, Piece] = {b"<unk>": Piece(b"<unk>", 0, PieceType.UNKNOWN)}
    fallback = chance.random() < 0.5
    if fallback:
        rows |= {text: Piece(text, 0, PieceType.BYTE) for text in (b"<0x%02X>" % byte for byte in range(256))}
    parts = [text.encode() for text in TEXTS] + HALVES
    types = [PieceType.NORMAL] * 5 + [PieceType.USER_DEFINED, PieceType.UNUSED, PieceType.CONTROL]
    scores = [-1.0, -2.0, -3.0, 0.0, 1.5, -0.0, float("inf"), float("nan"), 1e-45]
    for _ in range(chance.randrange(40)):
        text = b"".join(chance.choice(parts) for _ in range(chance.choice((1, 1, 2, 2, 3, 4))))
        if text not in rows:
            rows[text] = Piece(text, chance.choice(scores), chance.choice(types))
    rules = {chance.choice(parts): chance.choice(parts) for _ in range(chance.choice((0, 0, 1, 3)))}
    normalizer = NormalizerSpec(
        charsmap=charsmaps.make(rules) if rules else b"",
        add_dummy_prefix=chance.random() < 0.5,
        remove_extra_whitespaces=chance.random() < 0.5,
        escape_whitespaces=chance.random() < 0.5,
        suffix=chance.random() < 0.5,
    )
    return ModelSpec(Pieces.of(rows.values()), normalizer, byte_fallback=fallback)


def _byte_level(chance: Chosen) -> ModelSpec:
    """A byte-level model: any merges, and a pattern that has a name, or is put together."""
    pieces = dict.fromkeys(bytes([byte]) for byte in range(256))
    for _ in range(chance.randrange(30)):
        known = [*pieces][256:]
        letters = [letter.encode()[:1] for letter in "ab 1é\n"]
        pieces[chance.choice([*letters, *known]) + chance.choice([*letters, *known])] = None
    pattern: str | None = chance.choice([*PATTERNS.values()])
    if chance.random() < 0.5:
        many = chance.randrange(5)
        pattern = "|".join(chance.choice(PARTS) + chance.choice(REPEATS) for _ in range(many)) or None
    ranks = {piece: rank for rank, piece in enumerate(pieces)}
    return byte_models.spec_of(ranks, pattern, chance.random() < 0.5)


def _made_up(data: bytes, make: Callable[[Chosen], ModelSpec]) -> tuple[Tokenizer | None, bytes]:
    """A model of the first part of the input, or None, and the rest. The first byte says where it begins.

    Both engines must take the model, or both refuse it.
    """
    split = 1 + (data[0] if data else 0)
    spec, found = make(Chosen(data[1:split])), []
    for engine in ENGINES:
        with mock.patch.dict(os.environ, {"CPBPE_ENGINE": engine}):
            found.append(hostile.loaded(lambda: Tokenizer.from_spec(spec)))
    assert (found[0] is None) == (found[-1] is None)
    return found[0], data[split:]


def agree(data: bytes) -> None:
    """The compiled core and the reference in plain Python."""
    choice = data[0] if data else 0
    tok, rest = _made_up(data[1:], _byte_level if choice >= 128 else _characters)
    if tok is not None:
        hostile.agree(tok, [rest if choice % 2 else rest.decode(errors="replace")])


def sentencepiece(data: bytes) -> None:
    """sentencepiece and both engines; with a file that may be damaged, whether it is read."""
    choice = data[0] if data else 0
    if choice >= 192:
        chance = Chosen(data[1:])
        file = verdicts.mutated(chance.choice(verdicts.models()), chance)
        verdicts.check(file or b"x", ENGINES[0])
        return
    tok, rest = _made_up(data[1:], _characters)
    if tok is not None:
        for engine in ENGINES:
            Pair(tok.to_bytes(), engine).check_text(rest if choice % 2 else rest.decode(errors="replace"))


# --- All of them ----------------------------------------------------------------------------------

TARGETS: dict[str, Callable[[bytes], None]] = {
    **{f"read_{format.module}": partial(read_model, format) for format in registry.FORMATS.values()},
    **{target.__name__: target for target in (read_folder, read_words, read_packed, read_texts, read_ids)},
    **{target.__name__: target for target in (read_rules, read_rows, chat, agree, sentencepiece)},
}


def inputs(target: str) -> Iterable[bytes]:
    """What the fuzzer has found for a target, as far as it is kept."""
    path = CORPUS / f"{target}.txt"
    return map(b64decode, path.read_text().split()) if path.exists() else ()


def run(target: str, data: bytes) -> None:
    """Give an input to a target, and look at the time and the memory that it takes."""
    begun, before = time.process_time(), most_memory()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        TARGETS[target](data)
    seconds, more = time.process_time() - begun, most_memory() - before
    assert seconds < MOST_SECONDS, f"it took {seconds:.1f} seconds"
    assert more < MOST_BYTES, f"it took {more:,.0f} bytes"


def main() -> None:
    """The command."""
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.exit(f"usage: python -m tests.fuzzing TARGET [FLAG ...] [FOLDER]\ntargets: {', '.join(TARGETS)}")
    target = sys.argv[1]
    for data in (b"", b"\1"):  # imports, and what is made once
        TARGETS[target](data)
    # (libFuzzer starts the first of these words again when it merges.)
    itself = f"{sys.executable} -m tests.fuzzing {target}"
    atheris.Setup([itself, "-len_control=0", "-max_len=1000", *sys.argv[2:]], partial(run, target))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
