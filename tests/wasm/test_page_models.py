"""What a page holds of a model, from a file of any format, has the ids of the tokenizer."""

import json
import re
import warnings
from base64 import b64decode
from collections.abc import Callable
from gzip import decompress
from pathlib import Path

import pytest

import cpbpe
from cpbpe import Tokenizer
from cpbpe.compat.minbpe import RegexTokenizer
from cpbpe.model.formats import gpt2, registry, tiktoken
from cpbpe.view import static_page
from tests.bytes import models as byte_models
from tests.formats import test_tekken as tekken
from tests.support import budget, corpus, json_files, zoo
from tests.support import node as nodes
from tests.support.node import Node
from tests.wasm.test_engine import compare, compare_model, made_texts

pytestmark = pytest.mark.skipif(not nodes.RUNS, reason=f"not there: {', '.join(nodes.MISSING)}")


def saved(name: str, folder: Path, tok: Tokenizer | None = None) -> Tokenizer:
    """A model from a file of this name."""
    tok = tok or Tokenizer.from_bytes(zoo.model("llama")).with_special_tokens(["<|user|>", " a "])
    tok.save(f"{folder}/{name}")
    return cpbpe.load(f"{folder}/{name}")


def from_json(content: json_files.Json) -> Callable[[Path], Tokenizer]:
    def load(folder: Path) -> Tokenizer:
        (folder / "tokenizer.json").write_bytes(json_files.dumped(content))
        return cpbpe.load(folder)

    return load


def from_minbpe(folder: Path) -> Tokenizer:
    lecture = RegexTokenizer()
    lecture.train("\n".join(corpus.lines(100)), 300)
    lecture.register_special_tokens({"<|endoftext|>": 300, "<|far|>": 400})
    lecture.save(folder / "lecture")
    return cpbpe.load(folder / "lecture.model")


def from_gpt2(folder: Path) -> Tokenizer:
    vocab, _, merges = gpt2.write(byte_models.made()).data.partition(b"\n")
    (folder / "vocab.json").write_bytes(vocab)
    (folder / "merges.txt").write_bytes(merges)
    return cpbpe.load(folder)


def from_ranks(folder: Path) -> Tokenizer:
    (folder / "my.tiktoken").write_bytes(tiktoken.write_ranks(byte_models.ranks()))
    tok = cpbpe.load(folder / "my.tiktoken", pattern="o200k", special_tokens={"<|end|>": 700, "<|x|>": 900})
    assert isinstance(tok, Tokenizer)
    return tok


def from_tekken(folder: Path) -> Tokenizer:
    (folder / "tekken.json").write_bytes(tekken.file())
    return cpbpe.load(folder / "tekken.json")


def bytes_as(name: str) -> Callable[[Path], Tokenizer]:
    tok = Tokenizer.from_spec(byte_models.model("llama3")).with_special_tokens(["<|x|>", "<s>"])
    return lambda folder: saved(name, folder, tok)


def flags() -> json_files.Json:
    """Llama's form, with a token of every flag that the page knows."""
    content = json_files.metaspace("first", False)
    content["added_tokens"] += [
        json_files.added(900, "<left>", True, lstrip=True),
        json_files.added(901, "<right>", False, rstrip=True, lstrip=True),
        json_files.added(902, "word", False, single_word=True),
        json_files.added(903, "ght>", True, normalized=True),
    ]
    return content


MODELS: dict[str, Callable[[Path], Tokenizer]] = {
    "model": lambda folder: saved("m.model", folder),
    "tokenizer.json": lambda folder: saved("tokenizer.json", folder),
    "gguf": lambda folder: saved("m.gguf", folder),
    "vocab": lambda folder: saved("m.vocab", folder, Tokenizer.from_bytes(zoo.model("llama"))),
    "tokenizer.bin": lambda folder: saved("tokenizer.bin", folder, Tokenizer.from_bytes(zoo.model("llama"))),
    "folder": lambda folder: saved("folder/", folder),
    "minbpe": from_minbpe,
    "gpt2": from_gpt2,
    "tiktoken": from_ranks,
    "tekken.json": from_tekken,
    "byte-level tokenizer.json": bytes_as("tokenizer.json"),
    "byte-level folder": bytes_as("folder/"),
    "gemma": from_json(json_files.gemma()),
    "phi3": from_json(json_files.phi3()),
    "flags": from_json(flags()),
    "no prefix before a space": from_json(json_files.metaspace("always", False)),
}


def test_all_formats_are_tried() -> None:
    assert registry.FORMATS.keys() <= MODELS.keys()


@pytest.mark.parametrize("name", MODELS)
def test_a_model_in_the_page(node: Node, name: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # (of what a file does not say)
        tok = MODELS[name](tmp_path)
    (data,) = re.findall(r'id="data">(.*?)</script>', static_page(tok))
    ((model,),) = [json.loads(data)["models"]]
    node.load(decompress(b64decode(model["file"])))
    compare_model(node, tok)
    compare(node, tok, made_texts(tok, budget.examples(60)))


def test_options_that_are_bound() -> None:
    tok = Tokenizer.from_bytes(zoo.model("llama")).using(add_bos=True)
    with pytest.raises(
        ValueError, match=r"model 1: the page has switches .* \(add_bos\); give the tokenizer"
    ):
        static_page(tok)
