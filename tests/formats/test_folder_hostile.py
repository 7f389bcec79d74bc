"""Folders whose files were damaged: what is read is whole, and the rest is a ModelError with a file's name.

A run with CPBPE_EXAMPLES=1000000 takes some hours.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cpbpe
from cpbpe import ConversionError, ModelError, Tokenizer
from tests.support import budget, zoo

BYTES = [
    *(b"null", b"true", b"-1", b"1e999", b"[]", b"{}", b'""', b'"\\ud800"', b'"x"', b"99999999999"),
    *(b"700", b"\x00", b"\xff", b",", b"}", b"]", b'"', b":"),
]
VALUES: list[Any] = [
    *(None, True, False, -1, 0, 700, 2**40, 1.5, [], {}, "", "\0", "\ud800", "<s>", "x" * 400, "▁the", " "),
    *(["<s>"], [None], {"content": "<q>"}, {"content": None}, [{"name": "a"}], [{"id": 3, "content": "a"}]),
]
NAMES = ["mask_token", "legacy", "add_prefix_space", "7", "701", "content", "id", "extra_special_tokens"]


def other_bytes(data: bytes, chance: random.Random) -> bytes:
    """A file with bytes left out, put in, or cut off."""
    made = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(made) + 1)
        kind = chance.random()
        if kind < 0.3:
            del made[at : at + chance.randint(1, 30)]
        elif kind < 0.7:
            made[at : at + chance.randint(0, 4)] = chance.choice(BYTES)
        else:
            del made[at:]
    return bytes(made)


def other_values(data: bytes, chance: random.Random) -> bytes:
    """A file with members left out, or with other values."""

    def changed(value: Any) -> Any:
        if isinstance(value, dict) and value and chance.random() < 0.8:
            made = dict(value)
            key = chance.choice([*made])
            kind = chance.random()
            if kind < 0.2:
                del made[key]
            elif kind < 0.35:
                made[chance.choice(NAMES)] = chance.choice(VALUES)
            else:
                made[key] = changed(made[key])
            return made
        if isinstance(value, list) and value and chance.random() < 0.8:
            made_list = list(value)
            place = chance.randrange(len(made_list))
            made_list[place] = changed(made_list[place])
            return made_list
        return chance.choice(VALUES)

    content = json.loads(data)
    for _ in range(chance.randint(1, 3)):
        content = changed(content)
    return json.dumps(content).encode()


@pytest.mark.filterwarnings("ignore:.*the model is followed")
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
    ways: list[Callable[[bytes, random.Random], bytes]] = [other_bytes, other_values]
    usual = [tok.encode("Hi there"), tok.encode("Hi there", prefix_space=False)]
    read = 0
    for seed in range(budget.SEED, budget.SEED + budget.examples(400)):
        chance = random.Random(seed)
        path = chance.choice([*files])
        path.write_bytes(chance.choice(ways)(files[path], chance))
        try:
            loaded = cpbpe.load(tmp_path)
        except ModelError as error:
            assert str(error).startswith(str(tmp_path)), (seed, error)  # noqa: PT017
        else:
            read += 1
            loaded.using(**loaded.file_options).encode("Hi there")
            assert loaded.encode("Hi there") in usual, seed
            again = Tokenizer.from_bytes(loaded.to_bytes())
            assert (again, again.token_roles) == (loaded, loaded.token_roles), seed
            if seed % 20 == 0:
                _converted(tmp_path)
        path.write_bytes(files[path])
    assert read


def _converted(folder: Path) -> None:
    try:
        cpbpe.convert(folder, folder / "made.spm")
    except (ModelError, ConversionError) as error:
        assert str(error)  # noqa: PT017


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
