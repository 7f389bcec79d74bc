"""Files of other formats in the page: read as the package reads them, byte for byte, or refused."""

import random
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import cpbpe
from cpbpe import Tokenizer
from cpbpe.model.formats import registry
from cpbpe.model.formats.tokenizer_json.patterns import GPT2, to_theirs
from cpbpe.text.split_patterns import PATTERNS
from tests.bytes import test_rank_files as rank_files
from tests.bytes import test_tokenizer_json as byte_level
from tests.formats import test_tekken as tekken
from tests.formats import test_tokenizer_json_hostile as hostile
from tests.formats import test_tokenizer_json_mutations as mutations
from tests.formats import test_tokenizer_json_reading as reading
from tests.formats import test_tokenizer_json_real as real
from tests.support import budget, json_files, wheels, zoo
from tests.support import node as nodes
from tests.support.hostile import FORMS
from tests.support.json_files import dumped
from tests.support.mutations import mutated, other_values
from tests.support.node import Node
from tests.support.packages import file_of

pytestmark = pytest.mark.skipif(not nodes.RUNS, reason=f"not there: {', '.join(nodes.MISSING)}")

READ = """
  return files.map(([data, options]) => {
    try {
      const made = cpbpe.read('a file', file(data), options);
      new cpbpe.Model(made.file, 'a file').close();
      return { file: Buffer.from(made.file).toString('base64'), notes: made.notes };
    } catch (error) {
      return { error: error.message, patterns: error.patterns };
    }
  });
"""


def asked(node: Node, files: Iterable[bytes], **options: Any) -> list[dict[str, Any]]:
    """What the page makes of each file."""
    made: list[dict[str, Any]] = node.ask(READ, files=[(b64encode(data).decode(), options) for data in files])
    return made


def of_python(data: bytes, options: dict[str, Any]) -> bytes | None:
    """The .model that the package makes of a file; None if it refuses."""
    try:
        hints = registry.Hints(**options)
        return Tokenizer.from_spec(registry.format_of(data).read(data, hints=hints).spec).to_bytes()
    except ValueError:  # (also for a pattern that this kind of file does not take)
        return None


def compared(node: Node, files: dict[str, bytes], **options: Any) -> dict[str, str]:
    """Compare what both make of files, and return why the page refuses those that the package reads."""
    more: dict[str, str] = {}
    for (name, data), made in zip(files.items(), asked(node, files.values(), **options), strict=True):
        python = of_python(data, options)
        if "error" not in made:
            assert python is not None, (name, data, "is refused by the package")
            assert b64decode(made["file"]) == python, (name, data)
        elif python is not None:
            more[name] = made["error"]
    return more


# --- Published models ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cl100k", "p50k", "o200k", "llama3", "llama4", "qwen2"])
def test_published_ranks(node: Node, name: str) -> None:
    assert compared(node, {name: wheels.content(name)}) == {}


@pytest.mark.parametrize("name", ["tekken_240718.json", "tekken_240911.json", "tokenizer.model.v1"])
def test_files_of_mistral(node: Node, name: str) -> None:
    assert compared(node, {name: zoo.real_path(name).read_bytes()}) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["p50k", "llama3"] if budget.MUCH else ["p50k"])
def test_published_models_as_json(node: Node, name: str) -> None:
    spec = Tokenizer.from_bytes(wheels.content(name)).spec
    assert compared(node, {name: registry.JSON.write(spec).data}) == {}


@pytest.mark.slow
def test_published_json(node: Node) -> None:
    named = {"DeepSeek": byte_level.DEEPSEEK, "Claude": byte_level.CLAUDE, "Llama 2": real.LLAMA}
    assert compared(node, {name: file_of(*package) for name, package in named.items()}) == {}


@pytest.mark.slow
def test_what_transformers_makes(node: Node, tmp_path: Path) -> None:
    files = {str(case[1:]): real.by_transformers(tmp_path, *case) for case in real.CASES}
    assert compared(node, files) == {}


def test_ranks_need_a_pattern(node: Node) -> None:
    ranks = b"".join(b"%s %d\n" % (b64encode(bytes([byte])), byte) for byte in range(256)) + b"YWI= 256\n"
    (made,) = asked(node, [ranks])
    assert made["patterns"] == [*PATTERNS]
    assert "choose a pattern" in made["error"]
    for pattern in (*PATTERNS, "", r"\w+|\W+"):
        (made,) = asked(node, [ranks], pattern=pattern)
        assert b64decode(made["file"]) == of_python(ranks, {"pattern": pattern})
    for pattern in ("gpt9", "a)"):
        assert "error" in asked(node, [ranks], pattern=pattern)[0]


# --- The cases of the package's own tests -------------------------------------------------------


def cases() -> Iterator[tuple[str, bytes]]:
    """Every tokenizer.json that the tests of the package's reader have."""
    for module in (mutations, reading, hostile, byte_level):
        for table, rows in vars(module).items():
            if not table.isupper() or not isinstance(rows, dict):
                continue
            for name, row in rows.items():
                row = row[0] if isinstance(row, tuple) else row
                row = byte_level.file_with(*row) if isinstance(row, list) else row
                row = row() if callable(row) else row
                if isinstance(row, (dict, bytes)):
                    yield f"{table} {name}", row if isinstance(row, bytes) else dumped(row)


UNKNOWN = {"ours", "punctuated"}
UNKNOWN |= {"Bloom", "Kimi", "before", "after", "together", "before a text", "after a text", "texts together"}
UNKNOWN |= {"punctuation", "before punctuation", "after punctuation", "ends of lines", "marks"}
"""Files that only the package reads."""


def test_what_the_package_reads_or_refuses(node: Node) -> None:
    files = dict(cases())
    more = compared(node, files)
    assert len(files) > 100
    assert {*more} == {f"FORMS {name}" for name in UNKNOWN}, more
    assert all("cpbpe view FILE" in reason for reason in more.values()), more


@pytest.mark.slow
@pytest.mark.parametrize("name", zoo.NAMES)
def test_models_saved_as_json(node: Node, name: str) -> None:
    """Where the page reads what the package has written, it is the same model."""
    try:
        written = registry.JSON.write(Tokenizer.from_bytes(zoo.model(name)).spec)
    except cpbpe.ConversionError:
        return
    compared(node, {name: written.data})


@pytest.mark.parametrize("form", FORMS)
def test_changed_files(node: Node, form: str) -> None:
    chance = random.Random(f"{budget.SEED} {form} in the page")
    data = dumped(FORMS[form]())
    files = {f"value {number}": other_values(chance, data) for number in range(budget.examples(100))}
    for number in range(budget.examples(100)):
        at = chance.randrange(len(data))
        new = bytes(chance.choices(b'01259,:[]{}"\\ aebx\xe2\x96\x81u.', k=chance.choice([0, 1, 1, 1, 3])))
        files[f"byte {number}"] = data[:at] + new + data[at + chance.choice([0, 1, 1, 2, 20]) :]
    compared(node, files)


def test_changed_ranks(node: Node) -> None:
    chance = random.Random(f"{budget.SEED} ranks in the page")
    files = {str(number): mutated(chance, [rank_files.FILE[:6000]]) for number in range(budget.examples(200))}
    files |= {"whole": rank_files.FILE, "lines": rank_files.FILE.replace(b"\n", b"\r\n") + b"\n\n"}
    files["columns"] = b"\xef\xbb\xbf" + rank_files.FILE.replace(b" ", b" \t ")
    assert len(compared(node, files, pattern="cl100k")) < len(files) / 2


def test_changed_tekken(node: Node) -> None:
    chance = random.Random(f"{budget.SEED} tekken in the page")
    files = {"whole": tekken.file()}
    for number in range(budget.examples(150)):
        files[f"value {number}"] = other_values(chance, tekken.file())
        files[f"bytes {number}"] = mutated(chance, [tekken.file()])
    more = compared(node, files)
    assert "whole" not in more
    assert len(more) < len(files) / 10, more


def test_added_tokens_with_flags(node: Node) -> None:
    """Two of one text, and two that may be found in each other's: the page refuses what the package does."""
    step = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": False}
    forms = {"llama": json_files.llama(), "gemma": json_files.gemma()}
    forms["two prefixes"] = {**forms["llama"], "pre_tokenizer": step}
    flags: list[dict[str, bool]] = [{}, *({name: True} for name in ("rstrip", "single_word", "normalized"))]
    flags += [{"lstrip": True}, {"lstrip": True, "normalized": True}]
    files = {}
    for (name, form), one, two, special in product(forms.items(), flags, flags, (False, True)):
        free = 900 + len([token for token in form["added_tokens"] if token["id"] >= 900])
        for texts in (("<x>", "<x>"), ("qab", "bzz")):
            ids = (free, free + (texts[0] != texts[1]))
            tokens = [
                json_files.added(ids[0], texts[0], special, **one),
                json_files.added(ids[1], texts[1], False, **two),
            ]
            content = {**form, "added_tokens": [*form["added_tokens"], *tokens]}
            files[f"{name} {texts} {one} {two} {special}"] = dumped(content)
    more = compared(node, files)
    assert len(more) < len(files) / 2
    assert all("twice" in reason for name, reason in more.items() if "<x>" in name)


def test_added_tokens_that_chunks_may_be(node: Node) -> None:
    files = {}
    for whole, single_word, special in product((False, True), repeat=3):
        content = with_pattern(to_theirs(PATTERNS["gpt2"]))
        content["model"].update(ignore_merges=whole, vocab=content["model"]["vocab"] | {"lighthouse": 700})
        token = json_files.added(700, "lighthouse", special, single_word=single_word)
        files[f"{whole} {single_word} {special}"] = dumped({**content, "added_tokens": [token]})
    assert all(of_python(data, {}) for name, data in files.items() if name != "True True True")
    assert compared(node, files) == {}


# --- Patterns -----------------------------------------------------------------------------------


def test_the_published_patterns(node: Node) -> None:
    """Their forms in files, too, which stand for them."""
    assert node.ask("return cpbpe.PATTERNS") == dict(PATTERNS)
    forms = [GPT2, *map(to_theirs, PATTERNS.values())]
    files = {form: dumped(with_pattern(form)) for form in forms}
    assert compared(node, files) == {}


def test_patterns_that_are_accepted_mean_the_same(node: Node) -> None:
    chance = random.Random(f"{budget.SEED} patterns in the page")
    patterns = [
        "".join(chance.choice(byte_level.PARTS) + chance.choice(byte_level.REPEATS) for _ in range(many))
        + chance.choice(["", "", "|" + chance.choice(byte_level.PARTS)])
        for many in (chance.randint(1, 4) for _ in range(budget.examples(400)))
    ]
    more = compared(node, {pattern: dumped(with_pattern(pattern)) for pattern in patterns})
    assert len(more) < len(patterns) / 2
    assert all("cpbpe view FILE" in reason for reason in more.values()), more


def with_pattern(pattern: str) -> Any:
    return byte_level.file_with(byte_level.split(pattern), byte_level.BYTE_LEVEL)


# --- Files that are none ------------------------------------------------------------------------


def test_other_files(node: Node) -> None:
    unigram = zoo.model("llama").replace(b"\x18\x02", b"\x18\x01")
    files = [b"", b"{", b"{}", b"GGUF\x03", b'{"a": 0, "b": 1}', b"\0\1\2", zoo.model("llama")[:-3], unigram]
    for data, made in zip(files, asked(node, files), strict=True):
        assert made["error"].endswith("."), (data[:20], made)
    assert "Unigram" in made["error"]
