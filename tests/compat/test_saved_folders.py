"""Folders as transformers saves them today: ids, offsets, text and chats, for every flag of added tokens.

`tests/support/saved_folders.py` makes the folders and says what transformers gives for them. It runs with
the transformers that is installed here, and with those of the Pythons in CPBPE_OTHER_TRANSFORMERS, of which
CI has one with version 4.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import cpbpe
from cpbpe.compat.transformers import CpbpeTokenizer
from cpbpe.errors import ConversionError, ModelError
from tests.support import saved_folders

PYTHONS = [sys.executable, *filter(None, os.environ.get("CPBPE_OTHER_TRANSFORMERS", "").split(os.pathsep))]
SCRIPT = saved_folders.__file__
CORPUS = [
    "the cat sat on the mat and the hat of the cat was acute",
    "élan the fever of the cat",
    "a b c d e f 日本 日本",
    "user: assistant: the cat sat  the mat\nthe\tcat",
] * 8
RULES: dict[str, Any] = {
    "byte_fallback": True,
    "character_coverage": 1.0,
    "normalization_rule_name": "identity",
    "remove_extra_whitespaces": False,
}


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    (folder / "qwen").mkdir()
    cpbpe.train(CORPUS, vocab_size=350, **RULES).tokenizer.save(folder / "llama.model")
    gemma: dict[str, Any] = {"bos_id": 2, "bos_piece": "<bos>", "eos_id": 1, "eos_piece": "<eos>"}
    gemma |= {"pad_id": 0, "unk_id": 3, "add_dummy_prefix": False, "user_defined_symbols": ["<tool>", "▁▁"]}
    cpbpe.train(CORPUS, vocab_size=350, **gemma, **RULES).tokenizer.save(folder / "gemma.model")
    byte_level = cpbpe.train(CORPUS, preset="gpt4", pattern="gpt2", vocab_size=300)
    byte_level.tokenizer.save(folder / "qwen" / "vocab.json")
    for name in ("llama", "gemma"):
        cpbpe.load(folder / f"{name}.model").using(add_bos=True).save(f"{folder}/{name}json/")
    return folder


@pytest.fixture(scope="session", params=PYTHONS, ids=lambda python: f"{PYTHONS.index(python)}")
def saved(request: pytest.FixtureRequest, models: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    subprocess.run([request.param, SCRIPT, str(models), str(folder)], check=True, capture_output=True)
    return folder


def folders(saved: Path) -> Iterator[tuple[Path, Any]]:
    for folder in sorted(saved.iterdir()):
        yield folder, json.loads((folder / "expected.json").read_bytes())


def is_known(folder: Path, text: str) -> bool:
    """Whether a class that is written in Python does something else: docs/transformers.md lists it."""
    if folder.name.startswith(
        "LlamaTokenizerFast-legacy=False"
    ):  # that class saves null as add_prefix_space,
        return True  # which the other one takes for False
    if "-odd-" in folder.name:  # it takes the spaces of other tokens, too
        return True
    single = "single_word" in folder.name or "raw-all" in folder.name  # it wants spaces around the word
    begins = text.lstrip().startswith(saved_folders.TOKENS)
    return single or ("legacy=False" in folder.name and (begins or "▁" in text))


def is_renamed(folder: Path, expected: Any) -> bool:
    """Whether tokens that are looked for in normalized text are decoded as they are in older files.

    Since version 0.23, tokenizers decodes them to their normalized text, which may begin with the prefix.
    """
    content = json.loads((folder / "tokenizer.json").read_bytes())
    normalized = any(token["normalized"] for token in content["added_tokens"])
    return normalized and expected["tokenizers"] < "0.23"


def is_refused(folder: Path) -> bool:
    """Whether added tokens are looked for between two steps that put the prefix in front together."""
    content = json.loads(path.read_bytes()) if (path := folder / "tokenizer.json").exists() else {}
    doubled = {"type": "Replace", "pattern": {"Regex": r"\A▁"}, "content": "▁▁"}
    normalized = any(token["normalized"] for token in content.get("added_tokens", ()))
    return normalized and doubled in ((content["normalizer"] or {}).get("normalizers") or ())


def has_plain_ends(folder: Path) -> bool:
    """Whether the post-processor puts a token around texts that is not special, and so a piece."""
    content = json.loads(path.read_bytes()) if (path := folder / "tokenizer.json").exists() else {}
    plain = {token["content"] for token in content.get("added_tokens", ()) if not token["special"]}
    ends = (content.get("post_processor") or {}).get("special_tokens") or {}
    alone = not (folder / "tokenizer.model").exists() and not (folder / "merges.txt").exists()
    return alone and "<bos>" in plain.intersection(ends)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_ids_text_and_chats(saved: Path) -> None:
    counts: Counter[str] = Counter()
    for folder, expected in folders(saved):
        counts["folders"] += 1
        if is_refused(folder):
            with pytest.raises(ConversionError, match="another prefix than text at the beginning"):
                cpbpe.load(folder)
            with pytest.raises(ConversionError, match="another prefix than text at the beginning"):
                CpbpeTokenizer.from_pretrained(folder)
            counts["refused"] += 1
            continue
        if has_plain_ends(folder):
            with pytest.raises(ModelError, match="around texts, which is no CONTROL piece"):
                cpbpe.load(folder)
            counts["refused"] += 1
            continue
        tok = cpbpe.load(folder)
        ours = None if (folder / "merges.txt").exists() else CpbpeTokenizer.from_pretrained(folder)
        tok = tok.using(**tok.file_options)
        for row in expected["rows"]:
            text, ids, bare = row["text"], row["ids"], row["bare"]
            if expected["slow"] and is_known(folder, text):
                continue
            counts["texts"] += 1
            assert tok.encode(text, allowed_special="all") == ids, (folder.name, text)
            ends: dict[str, Any] = {"add_bos": False, "add_eos": False}
            assert tok.encode(text, allowed_special="all", **ends) == bare, (folder.name, text)
            if ours is not None:
                assert ours.encode(text) == ids, (folder.name, text)
                assert ours.encode(text, add_special_tokens=False) == bare, (folder.name, text)
            if not expected["slow"] and not is_renamed(folder, expected):
                check_text(folder, tok, ours, row)
        if ours is not None and not (expected["slow"] and is_known(folder, "<tool_call>")):
            chat = ours.apply_chat_template(
                saved_folders.CHAT, chat_template=saved_folders.TEMPLATE, tokenize=False
            )
            assert ours.encode(chat, add_special_tokens=False) == expected["chat"], folder.name
    assert counts["folders"] >= 140
    assert counts["texts"] >= 2000
    assert counts["refused"] <= 10


def check_text(folder: Path, tok: Any, ours: Any, row: Any) -> None:
    """Decoding and offsets are those of the classes that are built on tokenizers."""
    ids, where = row["ids"], (folder.name, row["text"])
    assert tok.decode(ids, skip_special_tokens=False) == row["decoded"], where
    assert tok.decode(ids, skip_special_tokens=True) == row["skipped"], where
    stream = tok.stream_decoder(skip_special_tokens=True)
    assert "".join([*map(stream.push, ids), stream.flush()]) == row["skipped"], where
    if ours is not None:
        assert ours.decode(ids) == row["decoded"], where
        assert ours.decode(ids, skip_special_tokens=True) == row["skipped"], where
    spans = row["offsets"]
    if any(stop > begin for (_, stop), (begin, _) in pairwise(spans)):
        return  # with tokens that take each other's spaces, theirs overlap
    found = tok.align(row["text"], allowed_special="all", add_bos=False, add_eos=False)
    # Of a character that became several tokens, and of a prefix, ours are those of sentencepiece.
    for (begin, end), (other, stop) in zip(found.offsets, spans, strict=True):
        if stop - other > 1:
            assert end == stop, where
            assert not row["text"][other:begin].strip(), where


@pytest.mark.slow
@pytest.mark.usefixtures("saved")  # which puts a folder beside the models
def test_the_reproducers(tmp_path: Path, models: Path) -> None:
    """What a reader of a folder saw before: a word gone, and tokens that were not found."""
    import transformers

    made = transformers.LlamaTokenizer.from_pretrained(models / "llama-folder")
    made.add_tokens(["myocarditis"])
    made.save_pretrained(tmp_path)
    tok = cpbpe.load(tmp_path)
    text = "acute myocarditis and fever"
    ids = tok.encode(text)
    assert tok.vocab["myocarditis"] in ids
    for other in (
        tok,
        tok.using(**tok.file_options),
        tok.using(add_eos=False),
        pickle.loads(pickle.dumps(tok)),
    ):
        assert other.encode(text) == other.encode_batch([text])[0] == other.encode_array(text).tolist() == ids
        assert other.count(text) == len(ids) == len(other.encode_pieces(text)) == len(other.align(text).ids)
        assert other.decode(ids) == other.decode_batch([ids])[0] == other.decode_bytes(ids).decode() == text
        assert other.encode_parts([text]) == other.encode_arrays([text]).tolist()[0] == ids
    assert ids == made.encode("acute myocarditis and fever", add_special_tokens=False)
    for skip in (True, False, None):
        assert tok.decode(ids, skip_special_tokens=skip) == "acute myocarditis and fever"
    assert "myocarditis" not in tok.vocab.special_tokens
    assert tok.encode("a</s>b") == tok.encode_parts(["a</s>b"])  # special ones are still never found
    assert tok.eos_id not in tok.encode("a</s>b")
