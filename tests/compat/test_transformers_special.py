"""Special and added tokens in CpbpeTokenizer, the ids around a text, and the dummy prefix."""

import re
from pathlib import Path

import pytest
from transformers import AddedToken, PreTrainedTokenizerFast

from cpbpe.compat.transformers import CpbpeTokenizer
from tests.support import json_files, tiers
from tests.support.llama_tokenizers import LEGACY, ON_SENTENCEPIECE, load, ours, spaced, theirs

pytestmark = pytest.mark.usefixtures("engine")


def test_control_pieces_are_text_until_they_are_added() -> None:
    tokenizer = ours("mistral_instruct_tokenizer_240323.model.v3")
    tok = tokenizer.cpbpe
    inst = tok.piece_to_id("[INST]")
    assert inst not in tokenizer.encode("[INST] Hi")
    assert tokenizer.add_special_tokens({"additional_special_tokens": ["[INST]"]}) == 0
    assert tokenizer.encode("[INST] Hi") == tok.encode("[INST] Hi", add_bos=True, allowed_special={"[INST]"})
    assert inst not in tokenizer.encode("[INST] Hi", split_special_tokens=True)
    assert tokenizer.decode([inst]) == "[INST]"
    assert tokenizer.decode([inst], skip_special_tokens=True) == ""


def test_added_tokens() -> None:
    tokenizer = ours()
    assert tokenizer.add_tokens(["foobar", "▁Hi", "foobar"]) == 1
    assert tokenizer.add_special_tokens({"pad_token": "[PAD]"}) == 1
    assert len(tokenizer) == 32002
    assert tokenizer.vocab_size == 32000
    assert tokenizer.pad_token_id == 32001
    assert tokenizer.tokenize("foobarx[PAD]") == ["foobar", "▁x", "[PAD]"]
    assert tokenizer.encode("foobarx[PAD]", add_special_tokens=False) == [32000, 1318, 32001]
    assert tokenizer.decode([32000, 1318, 32001]) == "foobarx[PAD]"
    assert tokenizer.decode([32000, 1318, 32001], skip_special_tokens=True) == "foobarx"
    batch = tokenizer(["Hi", "foobarx"], padding=True)
    assert batch["input_ids"] == [[1, 15359, 32001], [1, 32000, 1318]]
    assert batch["attention_mask"] == [[1, 1, 0], [1, 1, 1]]
    tokenizer.added_tokens_decoder = {32002: AddedToken("late")}
    assert tokenizer.encode("late", add_special_tokens=False) == [32002]


def test_ten_thousand_added_tokens() -> None:
    tokenizer = ours()
    assert tokenizer.add_tokens([f"<extra_{i}>" for i in range(10_000)]) == 10_000
    assert tokenizer.encode("<extra_9999><extra_0>", add_special_tokens=False) == [41999, 32000]


FLAGS: dict[str, dict[str, bool]] = {
    "lefty": {"lstrip": True},
    "righty": {"rstrip": True},
    "both": {"lstrip": True, "rstrip": True},
    "word": {"single_word": True},
}


@tiers.slow_reference
@LEGACY
def test_tokens_that_take_spaces_or_must_be_words(legacy: bool, tmp_path: Path) -> None:
    their, our = theirs(tmp_path, legacy=legacy), ours(legacy=legacy)
    for tokenizer in (their, our):
        tokenizer.add_tokens(
            [AddedToken(text, normalized=False, special=True, **flags) for text, flags in FLAGS.items()]
        )
    shapes = ["{}", "a {} b", "a {}", "{}\tb", "a{}", "{}b", "a {}{} b", "a\n{}\n\nb", "a</s>{}", "{}</s>"]
    for name, flags in FLAGS.items():
        left, right = (r"\s*" if flags.get(side) else "" for side in ("lstrip", "rstrip"))
        if name == "word" and ON_SENTENCEPIECE:
            continue  # to these only a space, not "(" or "\n", is no part of a word
        for shape in [*shapes, "({})", "a.{}"]:
            text = shape.format(name, name)
            if ON_SENTENCEPIECE or not spaced(re.sub(rf"{left}{name}{right}", "<s>", text)):
                assert our.encode(text) == their.encode(text), text


def test_added_tokens_of_the_model_file() -> None:
    """Tokens that cpbpe added are special here too, and new ids follow theirs, gaps or not."""
    tok = load().with_special_tokens({"<|a|>": 32000, "<|b|>": 32010})
    tokenizer = CpbpeTokenizer(tok)
    assert tokenizer.encode("x<|b|>y") == tok.encode("x<|b|>y", add_bos=True, allowed_special="all")
    assert {"<|a|>", "<|b|>"} <= set(tokenizer.all_special_tokens)
    assert (len(tokenizer), tokenizer.vocab_size) == (32011, 32000)
    assert tokenizer.add_tokens(["foobar", "<|a|>", "", "foobar"]) == 1
    assert tokenizer.add_tokens([AddedToken("foobaz", lstrip=True)], special_tokens=True) == 1
    assert tokenizer.convert_tokens_to_ids(["foobar", "foobaz"]) == [32011, 32012]
    assert "foobaz" in tokenizer.all_special_tokens
    assert tokenizer.added_tokens_decoder[32012].lstrip
    assert tokenizer.decode([32000, 32012]) == "<|a|>foobaz"
    with pytest.raises(IndexError, match="id 32005 is not in use"):
        tokenizer.decode([1, 32005])


def test_around() -> None:
    tokenizer = ours(add_eos_token=True)
    assert tokenizer.build_inputs_with_special_tokens([5], [6, 7]) == [1, 5, 2, 1, 6, 7, 2]
    assert tokenizer.get_special_tokens_mask([5], [6, 7]) == [1, 0, 1, 1, 0, 0, 1]
    assert tokenizer.create_token_type_ids_from_sequences([5], [6, 7]) == [0, 0, 0, 1, 1, 1, 1]
    mask = tokenizer.get_special_tokens_mask([1, 5, 2], already_has_special_tokens=True)
    assert mask == [1, 0, 1]
    assert tokenizer.num_special_tokens_to_add(pair=True) == 4
    tokenizer.add_bos_token = False
    assert tokenizer.encode("Hi") == [15359, 2]


def test_no_bos() -> None:
    assert ours("no-bos-empty-surface").encode("") == []
    with pytest.raises(ValueError, match="add_bos_token is set, but there is no bos_token"):
        ours("no-bos-empty-surface", add_bos_token=True).encode("Hi")


@pytest.mark.parametrize("prefix", [None, True, False])
def test_prefix(prefix: bool | None) -> None:
    tokenizer = ours(add_prefix_space=prefix)
    ids = tokenizer.encode("Hi</s>Hi", add_special_tokens=False)
    assert tokenizer.convert_ids_to_tokens(ids) == (
        ["Hi", "</s>", "Hi"] if prefix is False else ["▁Hi", "</s>", "▁Hi"]
    )
    for text in ("Hi", " Hi", "Hi</s>Hi", " </s> Hi"):
        assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False)) == text


@pytest.mark.parametrize("name", ["no-prefix", "llama"])
@pytest.mark.parametrize("prefix", [None, True, False])
@LEGACY
def test_prefix_round_trip(name: str, prefix: bool | None, legacy: bool) -> None:
    tokenizer = ours(name, add_prefix_space=prefix, legacy=legacy)
    for text in ("the", " the", "  the ", "", " ", "the</s>the", " </s> the</s>"):
        assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False)) == text


def test_marks_in_added_tokens_of_a_tokenizer_json(tmp_path: Path) -> None:
    """The decoder makes spaces of them, as in Code Llama's ▁<PRE>."""
    content = json_files.llama()
    content["added_tokens"] += [json_files.added(900, "▁<PRE>", True), json_files.added(901, "▁a▁b", False)]
    (tmp_path / "tokenizer.json").write_bytes(json_files.dumped(content))
    mine = CpbpeTokenizer.from_pretrained(tmp_path)
    other = PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    first = mine.encode("the", add_special_tokens=False)
    for ids in ([900, *first], [901], [*first, 900, 901, *first]):
        for skip in (True, False):
            assert mine.decode(ids, skip_special_tokens=skip) == other.decode(ids, skip_special_tokens=skip)
        tokens = [*first, *ids]
        assert mine.convert_tokens_to_string(
            mine.convert_ids_to_tokens(tokens)
        ) == other.convert_tokens_to_string(other.convert_ids_to_tokens(tokens))
