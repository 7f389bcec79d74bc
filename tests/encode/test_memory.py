"""When there is not enough memory, every call either raises MemoryError or is right; the process goes on.

So does every reader: models of each format, corpora of each kind, and what trains, packs and compares models.

The calls run in processes of their own, whose address space is limited again and again to a little more than
is in use.
"""

import gzip
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import cpbpe
from cpbpe.model.formats.registry import FORMATS
from tests.conftest import CORE
from tests.support import budget, corpus, processes, tiers, wheels, zoo

if not CORE:
    pytest.skip("the compiled core is not there", allow_module_level=True)
if sys.platform != "linux":
    pytest.skip("the address space is limited and measured as on Linux", allow_module_level=True)

SCRIPT = """
import json, os, resource, shutil, sys
from pathlib import Path
import numpy
import cpbpe
from cpbpe.corpus.documents import Documents
from cpbpe.view import static_page

TEXT, CALLS = sys.argv[2], sys.argv[3:]
tok = cpbpe.load(sys.argv[1])
model = tok.to_bytes()
unit = "the quick brown fox, \\u00e9t\\u00e9 \\u4e2d\\u56fd \\U0001f999 zzzz 1234\\n"
text = {
    "words": unit * 6000,
    "one": "a" * 600000,
    "unknown": "".join(map(chr, range(0x4E00, 0x9F00))) * 8,
    "bytes": b"\\xff\\xc0a" * 200000,
    "short": "a" * 400,
}[TEXT]
texts = [text[i:i + 5000] for i in range(0, len(text), 5000)]
ids = tok.encode(unit * 6000)
many = [ids[i:i + 1000] for i in range(0, len(ids), 1000)]
pieces = tok.encode_pieces(unit * 4000)
tokens = [f"<token {i}>" for i in range(30000)]
small = "Hello world \\u00e9"
right = tok.encode(small)


def counted(text):
    from cpbpe.engine.training import make_counter
    from cpbpe.reference.training_values import CountSpec
    counter = make_counter(CountSpec(max_sentence_length=0))
    letters = lambda i: chr(97 + i // 676 % 26) + chr(97 + i // 26 % 26) + chr(97 + i % 26)
    words = " ".join(f"{letters(i)}{letters(i // 17576)}" for i in range(150000))
    counter.add([words.encode()])
    return counter.drain()


def learned(text):
    from cpbpe.engine.training import learn
    from cpbpe.reference.training_values import LearnSpec
    return learn(words, LearnSpec(400, 3, character_coverage=1.0)).merges


def written(folder):
    contents = {str(path): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}
    shutil.rmtree(folder)
    return contents


def fresh():
    return cpbpe.Tokenizer.from_bytes(model)


def packed(text):
    shutil.rmtree("packed", ignore_errors=True)
    cpbpe.pack(fresh(), corpus, "packed", threads=2, shard_size=2000, shuffle_seed=1)
    return written("packed")


def converted(text):
    cpbpe.convert(sys.argv[1], "converted/", add_bos=True)
    return written("converted")


def edited(text):
    edit = cpbpe.edit(fresh()).add(["zebra"]).truncate(650).from_corpus(corpus, 5)
    return edit.tokenizer.to_bytes(), str(edit.report(corpus))


def saved_counts(text):
    cpbpe.WordCounts.build(corpus, threads=2).save("counts")
    return dict(cpbpe.WordCounts.load("counts"))


def loaded(path):
    hints = {"pattern": "gpt2", "special_tokens": {}} if path.endswith(("tiktoken", "gpt2")) else {}
    other = cpbpe.load(path, **hints)
    return other.vocab_size, other.encode(unit), other.get_vocab()


if "learn" in CALLS:
    words = counted(None)
corpus = [f"{unit} {number}" for number in range(200)]
calls = {
    "encode": tok.encode,
    "encode_array": tok.encode_array,
    "encode_array threads": lambda text: tok.encode_array(text, threads=2),
    "count": tok.count,
    "normalize": tok.normalize,
    "encode_pieces": tok.encode_pieces,
    "align": tok.align,
    "sample": lambda text: tok.encode(text, alpha=0.1, seed=1),
    "decode": lambda text: tok.decode(ids),
    "decode_bytes": lambda text: tok.decode_bytes(ids),
    "decode_array": lambda text: tok.decode(numpy.array(ids)),
    "decode_batch": lambda text: tok.decode_batch(many),
    "decode_pieces": lambda text: tok.decode_pieces(pieces),
    "encode_batch": lambda text: tok.encode_batch(texts, threads=2),
    "encode_arrays": lambda text: tok.encode_arrays(texts, threads=2),
    "count_batch": lambda text: tok.count_batch(texts),
    "align_batch": lambda text: tok.align_batch(texts, threads=2),
    "load": lambda text: cpbpe.Tokenizer.from_bytes(model).vocab_size,
    "many tokens": lambda text: tok.with_special_tokens(tokens).encode(tokens[-1], allowed_special="all"),
    "count words": counted,
    "learn": learned,
    "train": lambda text: cpbpe.train(corpus, vocab_size=320, threads=2).model_bytes,
    "train gpt4": lambda text: cpbpe.train(corpus, preset="gpt4", vocab_size=300, threads=2).model_bytes,
    "word counts": saved_counts,
    "pack": packed,
    "convert": converted,
    "edit": edited,
    "lint": lambda text: str(fresh().lint(corpus)),
    "inspect": lambda text: str(fresh().inspect()),
    "diff": lambda text: cpbpe.diff(fresh(), changed, corpus).to_json(),
    "compare": lambda text: str(cpbpe.compare({"a": fresh(), "b": changed}, {"c": corpus}, rounds=0)),
    "show": lambda text: fresh().show(unit).html(),
    "page": lambda text: static_page({"a": fresh()}, unit),
    "truncate": lambda text: fresh().truncate(unit * 100, 500),
    "split": lambda text: list(fresh().split(unit * 100, 50)),
    "stream": lambda text: [*fresh().stream_encoder().push(unit * 100)],
    "spec": lambda text: cpbpe.Tokenizer.from_spec(fresh().spec).to_bytes(),
    "pieces": lambda text: fresh().get_vocab(),
}
for call in CALLS:
    if call.startswith("load "):
        calls[call] = lambda text, path=call.removeprefix("load "): loaded(path)
    if call.startswith("read "):
        calls[call] = lambda text, path=call.removeprefix("read "): [*Documents(Path(path)).texts()]
if {"diff", "compare"} & {*CALLS}:
    changed = cpbpe.edit(tok).add(["zebra"]).tokenizer
nolimit = resource.RLIM_INFINITY


def in_use():
    return int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()


def same(a, b):
    if isinstance(a, numpy.ndarray):
        return a.dtype == b.dtype and numpy.array_equal(a, b)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    if hasattr(a, "ids") and hasattr(a, "__dataclass_fields__"):
        return all(same(getattr(a, name), getattr(b, name)) for name in a.__dataclass_fields__)
    return a == b


for call in CALLS:
    function, outcomes = calls[call], []
    expected = function(text)
    for more in LIMITS:
        limit = in_use() + int(more * (1 << 20))
        resource.setrlimit(resource.RLIMIT_AS, (limit, nolimit))
        result = None
        try:
            result = function(text)
        except MemoryError:
            pass
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (nolimit, nolimit))
        outcomes.append("MemoryError" if result is None else "right" if same(result, expected) else "wrong")
        result = None
        assert tok.encode(small) == right and tok.decode(right) == small
    print(json.dumps([call, outcomes]), flush=True)
"""


def outcomes(
    model: Path, text: str, *calls: str, limits: list[float], **options: Any
) -> Iterator[tuple[str, list[str]]]:
    """For each call what came of it under each limit."""
    script = SCRIPT.replace("LIMITS", repr(limits))
    options = {"env": ENVIRONMENT, "timeout": 100 + 5 * len(limits), **options}
    done = processes.run("-c", script, model, text, *calls, **options)
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 0, (lines, done.stderr.decode()[-2000:])
    for line in lines:
        call, found = json.loads(line)
        budget.tried("too little memory", len(found))
        yield call, found


CALLS = [
    ("encode", "count", "normalize"),
    ("encode_array", "encode_array threads", "encode_pieces"),
    ("align", "sample"),
    ("decode", "decode_bytes", "decode_array", "decode_pieces", "decode_batch"),
    ("encode_batch", "encode_arrays", "count_batch", "align_batch"),
]
LIMITS = [0.0, 0.3, 1.1, 2.7, 6.0, 14.0, 60.0]

# With these, freed memory goes back to the system, and the next call has to ask for it again.
ENVIRONMENT = processes.environment(
    MALLOC_MMAP_THRESHOLD_="65536", MALLOC_TRIM_THRESHOLD_="65536", MALLOC_ARENA_MAX="1"
)


WORK = [
    ("train", "train gpt4", "word counts", "pack"),
    ("convert", "edit", "diff", "compare"),
    ("lint", "inspect", "show", "page"),
    ("truncate", "split", "stream", "spec", "pieces"),
]

KINDS = ("characters", "gpt2", "minbpe")
"""Models of three kinds, so that each format can hold at least one: of characters, and of two presets."""

NEEDS_MUCH = {"normalize", "encode_array", "align", "decode_bytes", "decode_pieces"}
"""Calls whose buffers are not kept for the next one."""


@pytest.mark.slow
@pytest.mark.parametrize("calls", CALLS, ids=" ".join)
def test_memory_error_or_a_right_answer(calls: tuple[str, ...]) -> None:
    for call, found in outcomes(zoo.real_path(zoo.REAL[0]), "words", *calls, limits=LIMITS):
        assert set(found) <= {"MemoryError", "right"}, (call, found)
        assert "MemoryError" in found or call not in NEEDS_MUCH, (call, found)
        assert "right" in found, (call, found)


@pytest.mark.slow
def test_many_special_tokens(tmp_path: Path) -> None:
    """Each of them is a Python object. If there is no memory to make one, that is a MemoryError, too."""
    file, count = wheels.file("cl100k", tmp_path), budget.examples(20)
    limits = [60 * number / count for number in range(count)]
    ((_, found),) = outcomes(file, "short", "many tokens", limits=limits)
    assert set(found) == {"MemoryError", "right"}


def test_training() -> None:
    limits = [0.0, 0.7, 2.0, 5.0, 12.0, 40.0]
    for call, found in outcomes(
        zoo.real_path(zoo.REAL[0]), "short", "load", "count words", "learn", limits=limits
    ):
        assert set(found) == {"MemoryError", "right"}, (call, found)


RULES = """
import dataclasses, resource, sys
import numpy  # which cannot be imported without memory
import cpbpe
from cpbpe.text.charsmap_build import charsmap_from_rules

spec = cpbpe.load(sys.argv[1]).spec
normalizer = dataclasses.replace(spec.normalizer, charsmap=charsmap_from_rules([("a", "b " * 500_000)]))
tok = cpbpe.Tokenizer.from_spec(dataclasses.replace(spec, normalizer=normalizer))
in_use = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (in_use + (60 << 20), resource.RLIM_INFINITY))
for call in (tok.encode, tok.encode_array, tok.count, tok.normalize, tok.align, tok.encode_pieces):
    try:
        call("a" * 1000)
    except MemoryError as error:
        print(call.__name__, error)
    assert tok.normalize("xyz") == "\u2581xyz"
"""


def test_a_rule_that_makes_a_character_a_million() -> None:
    done = processes.run("-c", RULES, zoo.real_path(zoo.REAL[0]))
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    assert done.stdout.decode().count("there is not enough memory for this much text at once") == 6


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model in each format, and a corpus of each kind."""
    folder = tmp_path_factory.mktemp("files")
    texts = corpus.lines(400)
    models = {preset: cpbpe.train(texts, preset=preset, vocab_size=600).tokenizer for preset in KINDS[1:]}
    models["characters"] = cpbpe.Tokenizer.from_bytes(zoo.model("llama"))
    for kind, tok in models.items():
        (folder / kind).mkdir()
        source = folder / kind / "model"
        tok.save(source)
        for name in FORMATS.keys() - {"model"}:  # (it is there)
            target = {"minbpe": "minbpe.model", "gpt2": "gpt2/"}.get(name, name)
            with suppress(cpbpe.ConversionError):  # it is for models of another kind
                cpbpe.convert(source, f"{folder}/{kind}/{target}", to=name)
        cpbpe.convert(source, f"{folder}/{kind}/folder/")
    (folder / "corpora").mkdir()
    write_corpora(texts * 20, folder / "corpora")
    return folder


def write_corpora(texts: list[str], folder: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    records = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (folder / "a.txt").write_text("\n".join(texts))
    (folder / "a.jsonl").write_text(records)
    (folder / "a.jsonl.gz").write_bytes(gzip.compress(records.encode()))
    table = pyarrow.table({"text": texts})
    pyarrow.parquet.write_table(table, folder / "a.parquet")
    with pyarrow.ipc.new_stream(folder / "a.arrow", table.schema) as stream:
        stream.write_table(table, max_chunksize=100)


def few(most: float) -> list[float]:
    """Limits in MiB above what is in use, from 0 up to nearly `most`; the small ones are closer together."""
    count = budget.examples(8)
    return [most * (number / count) ** 2 for number in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_models_of_every_format(files: Path, kind: str) -> None:
    models = sorted(
        set((files / kind).iterdir()) - {files / kind / "minbpe.vocab"}
    )  # (which only people read)
    check(files, kind, [f"load {path}" for path in models])


@pytest.mark.slow
def test_corpora(files: Path) -> None:
    check(files, "characters", [f"read {path}" for path in sorted((files / "corpora").iterdir())])


@pytest.mark.parametrize("calls", tiers.some(WORK, WORK[:1]), ids=" ".join)
def test_work(calls: tuple[str, ...], files: Path) -> None:
    check(files, "characters", list(calls))


def check(files: Path, kind: str, calls: list[str]) -> None:
    for call, found in outcomes(files / kind / "model", "short", *calls, limits=few(16), cwd=files):
        assert set(found) <= {"MemoryError", "right"}, (call, found)
