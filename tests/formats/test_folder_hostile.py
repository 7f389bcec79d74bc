"""Folders whose files were damaged: what is read is whole, and the rest is a ModelError with a file's name.

A run with CPBPE_EXAMPLES=1000000 takes some hours.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import cpbpe
from cpbpe import ModelError, Tokenizer
from tests.support import budget, hostile, zoo
from tests.support.mutations import mutated, other_values


def test_damaged_files(tmp_path: Path) -> None:
    tok = Tokenizer.from_bytes(zoo.model("llama")).with_special_tokens(["<|a|>", "<é>"])
    tok.using(add_bos=True).save(f"{tmp_path}/")
    config = json.loads((tmp_path / "tokenizer_config.json").read_bytes())
    config["chat_template"] = [{"name": "a", "template": "b"}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [2, 700], "top_p": 0.5}')
    (tmp_path / "chat_template.json").write_text('{"chat_template": "x"}')
    files = {path: path.read_bytes() for path in sorted(tmp_path.glob("*.json"))}
    assert len(files) == 6
    usual = [tok.encode("Hi there"), tok.encode("Hi there", prefix_space=False)]
    read = 0
    for seed in range(budget.SEED, budget.SEED + budget.examples(400)):
        chance = random.Random(seed)
        path = chance.choice([*files])
        by_value = chance.random() < 0.5
        path.write_bytes(other_values(chance, files[path]) if by_value else mutated(chance, [files[path]]))
        loaded = hostile.check_folder(tmp_path, str(tmp_path), closely=seed % 20 == 0)
        if loaded is not None:
            read += 1
            assert loaded.encode("Hi there") in usual, seed
        path.write_bytes(files[path])
    assert read


def test_a_broken_post_processor(tmp_path: Path) -> None:
    Tokenizer.from_bytes(zoo.model("llama")).save(f"{tmp_path}/")
    path = tmp_path / "tokenizer.json"
    content = json.loads(path.read_bytes())
    path.write_text(json.dumps({**content, "post_processor": {"type": 7}}))
    with pytest.raises(ModelError) as caught:
        cpbpe.load(tmp_path)
    assert str(caught.value) == f"{path}: post_processor.type must be a text, and is an integer, 7"


@pytest.mark.parametrize(
    "config",
    ['{"chat_template": "\\ud800"}', '{"chat_template": {"\\ud800": "x"}}', '{"\\ud800_token": "<a>"}'],
)
def test_half_of_a_surrogate_pair(tmp_path: Path, config: str) -> None:
    Tokenizer.from_bytes(zoo.model("llama")).save(f"{tmp_path}/")
    path = tmp_path / "tokenizer_config.json"
    path.write_text(config)
    with pytest.raises(ModelError, match="holds half of a surrogate pair, which is no text") as caught:
        cpbpe.load(tmp_path)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize("id", ["7", 1 << 50, -1, None])
def test_odd_ids_beside_a_model(tmp_path: Path, id: object) -> None:
    Tokenizer.from_bytes(zoo.model("llama")).save(f"{tmp_path}/")
    path = tmp_path / "tokenizer.json"
    content = json.loads(path.read_bytes())
    content["model"]["vocab"]["odd"] = id
    path.write_text(json.dumps(content))
    notes = cpbpe.convert(tmp_path, tmp_path / "a.gguf").notes
    assert any("the tokenizer.json beside the model is" in note for note in notes)
