"""CpbpeTokenizer against transformers' own Llama tokenizers, against sentencepiece, and by itself.

Before version 5 transformers had a Llama tokenizer that ran on sentencepiece. It is compared in full where it
is installed; what 4.40.2 gave stands in a table, too. Version 5's merges in another order, and is compared on
texts for which that makes no difference.
"""

import copy
import importlib.util
import json
import os
import pickle
import random
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import AddedToken, LlamaTokenizer, PreTrainedTokenizer, PreTrainedTokenizerBase

import cpbpe
from cpbpe.compat.transformers import CpbpeTokenizer
from tests.support import budget, corpus, processes, texts, tiers, zoo

pytestmark = pytest.mark.usefixtures("engine")

EXAMPLES = budget.examples(100)
LEGACY = pytest.mark.parametrize("legacy", [True, False])
V1 = zoo.REAL[0]
SLOW = issubclass(LlamaTokenizer, PreTrainedTokenizer)
"""Whether transformers' own runs on sentencepiece."""


@cache
def _loaded(name: str, engine: str | None) -> cpbpe.Tokenizer:
    return cpbpe.Tokenizer.from_bytes(zoo.model(name))


def load(name: str = V1) -> cpbpe.Tokenizer:
    return _loaded(name, os.environ.get("CPBPE_ENGINE"))


def ours(name: str = V1, **options: Any) -> Any:
    return CpbpeTokenizer(load(name), **options)


def theirs(folder: Path, name: str = V1, **options: Any) -> Any:
    (folder / "tokenizer.model").write_bytes(zoo.model(name))
    return LlamaTokenizer.from_pretrained(folder, **{"add_bos_token": True, "legacy": True, **options})


# --- The same ids ---------------------------------------------------------------------------------

# A text, the ids that LlamaTokenizer of transformers 4.40.2 gave for it with legacy=True, and those
# with legacy=False, where they differ.
SLOW_IDS: list[tuple[str, list[int], list[int] | None]] = [
    ("", [1], None),
    (" ", [1, 259], None),
    ("Hi", [1, 15359], None),
    (" Hi", [1, 28705, 15359], None),
    ("  Hi there", [1, 259, 15359, 736], None),
    ("Hi  there", [1, 15359, 28705, 736], None),
    ("Hi ", [1, 15359, 28705], None),
    ("▁Hi", [1, 28705, 15359], None),
    ("\nHi\n\n\tyou", [1, 28705, 13, 23809, 13, 13, 12, 7020], None),
    ("<s>Hi</s> you", [1, 1, 15359, 2, 28705, 368], [1, 1, 23809, 2, 368]),
    ("<s> Hi", [1, 1, 28705, 15359], [1, 1, 15359]),
    ("Hi</s><s>", [1, 15359, 2, 1], None),
    ("a<unk>b", [1, 264, 0, 287], [1, 264, 0, 28726]),
    ("</s>", [1, 2], None),
    ("🦙 llama", [1, 28705, 243, 162, 169, 156, 8814, 2786], None),
    ("日本語 text", [1, 28705, 29142, 29119, 30321, 2245], None),
    ("e\u0301\u200dx", [1, 317, 28949, 29274, 28744], None),
    ("<0x0A>", [1, 523, 28734, 28744, 28734, 28741, 28767], None),
    ("x\0y", [1, 1318, 3, 28724], None),
    ("[INST] Hi [/INST]", [1, 733, 16289, 28793, 15359, 733, 28748, 16289, 28793], None),
]


def test_ids_of_the_tokenizer_on_sentencepiece() -> None:
    older, newer = ours(legacy=True), ours(legacy=False)
    for text, ids, others in SLOW_IDS:
        assert older.encode(text) == ids
        assert newer.encode(text) == (others or ids)


EXTRA = ["<|x|>", "<|y|>", "[INST]"]
SPECIALS = ["<s>", "</s>", "<unk>", *EXTRA]
STRETCHES = re.compile("(" + "|".join(map(re.escape, SPECIALS)) + ")")


def some_texts(tok: cpbpe.Tokenizer, count: int, seed: int) -> list[str]:
    pieces = [tok.id_to_piece(id) for id in range(3, len(tok))]
    pieces = [piece for piece in pieces if not piece.startswith("[control")]
    maker = texts.TextMaker(seed, pieces, list(corpus.lines())[:200])
    rng = random.Random(seed)
    maker.kinds += [lambda: rng.choice(SPECIALS), lambda: rng.choice(SPECIALS), lambda: " "]
    return [maker.text() for _ in range(count)]


def with_extra(tokenizer: Any) -> Any:
    tokenizer.add_special_tokens({"additional_special_tokens": EXTRA})
    return tokenizer


def spaced(text: str) -> bool:
    """Whether a stretch of text begins with a space, or has two in a row.

    transformers 5 puts no prefix before such a beginning, and merges spaces first, whose score is the lowest.
    """
    return bool(re.search("[ ▁]{2}", text)) or any(part[:1] in {" ", "▁"} for part in STRETCHES.split(text))


@tiers.slow_reference
@LEGACY
@tiers.models([zoo.REAL[0], zoo.REAL[2]])
def test_against_their_llama_tokenizer(name: str, legacy: bool, tmp_path: Path) -> None:
    """Equal ids, equal tokens, and equal text, with special tokens and without."""
    their, our = theirs(tmp_path, name, legacy=legacy), ours(name, legacy=legacy)
    if not SLOW:  # in version 5 CONTROL pieces are special from the beginning
        their.add_special_tokens({"additional_special_tokens": []})
        our.add_special_tokens({"additional_special_tokens": list(our.cpbpe.special_tokens)})
    with_extra(their), with_extra(our)
    assert len(our) == len(their)
    assert our.get_vocab() == their.get_vocab()
    compared = 0
    for text in some_texts(our.cpbpe, EXAMPLES * 2, len(name) + legacy):
        ids = our.encode(text)
        if SLOW or not spaced(text):
            compared += 1
            assert ids == their.encode(text), text
            assert our.tokenize(text) == their.tokenize(text), text
            assert ids == our.convert_tokens_to_ids(["<s>", *our.tokenize(text)])
        if not SLOW and not legacy:
            assert our.decode(ids) == their.decode(ids), text
        if not SLOW or (not legacy and not STRETCHES.search(text) and not spaced(text)):
            assert our.decode(ids, skip_special_tokens=True) == their.decode(ids, skip_special_tokens=True)
    assert compared > EXAMPLES


@LEGACY
def test_against_sentencepiece(legacy: bool) -> None:
    """What stands between special tokens has sentencepiece's ids: with a dummy prefix, or without one."""
    model = zoo.parse(zoo.model(V1))
    first = sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())
    if not legacy:
        model.normalizer_spec.add_dummy_prefix = False
    later = sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())
    tokenizer = with_extra(ours(legacy=legacy))
    for text in some_texts(tokenizer.cpbpe, EXAMPLES * 3, 7):
        expected: list[int] = []
        for i, part in enumerate(STRETCHES.split(text)):
            ids = (first if i == 0 else later).encode(part)
            expected += [tokenizer.convert_tokens_to_ids(part)] if i % 2 else ids
        assert tokenizer.encode(text, add_special_tokens=False) == expected, text
        plain = tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
        assert plain == first.encode(text), text


@tiers.models([name for name in zoo.NAMES if name not in zoo.REAL])
def test_every_model(name: str) -> None:
    """Encoding and decoding are cpbpe's, with whatever normalizer, prefix and special pieces."""
    tokenizer = ours(name)
    tok = tokenizer.cpbpe
    for role in ("unk", "bos", "eos", "pad"):
        assert getattr(tokenizer, f"{role}_token_id") == getattr(tok, f"{role}_id")
    assert len(tokenizer) == len(tok) == tokenizer.vocab_size
    maker = texts.TextMaker(3, [tok.id_to_piece(id) for id in range(len(tok))], list(corpus.lines())[:200])
    batch = [maker.text() for _ in range(20)]
    options = {"add_special_tokens": False, "split_special_tokens": True}
    found = tokenizer(batch, **options)["input_ids"]
    assert found == tok.encode_batch(batch)
    assert found == [tokenizer.encode(text, **options) for text in batch]
    assert [tokenizer.tokenize(text, split_special_tokens=True) for text in batch] == [
        tok.encode_pieces(text) for text in batch
    ]
    known = set(tokenizer.all_special_ids)
    for ids in found:
        if known.isdisjoint(ids):
            assert tokenizer.decode(ids) == tok.decode(ids)
        assert tokenizer.decode(ids, skip_special_tokens=True) == tok.decode(
            [i for i in ids if i not in known]
        )


@tiers.slow_reference
@LEGACY
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_round_trip(legacy: bool, data: st.DataObject) -> None:
    """Text comes back, with the special tokens that it spells out; only ▁ becomes a space."""
    tokenizer = TOKENIZERS[legacy] = TOKENIZERS.get(legacy) or with_extra(ours(legacy=legacy))
    text = "".join(data.draw(st.lists(st.one_of(texts.texts(["▁the", "ing"]), st.sampled_from(SPECIALS)))))
    ids = tokenizer.encode(text, add_special_tokens=False)
    assert tokenizer.decode(ids) == text.replace("▁", " ")
    assert tokenizer.convert_tokens_to_string(tokenizer.convert_ids_to_tokens(ids)) == text.replace("▁", " ")


TOKENIZERS: dict[bool, Any] = {}


# --- What may be encoded --------------------------------------------------------------------------

PAIR = ("Hello  world</s>", "<0x0A> 🦙")
CALLS: list[tuple[Any, dict[str, Any]]] = [
    ("", {}),
    ("Hi", {}),
    (["Hi", "", "Hello world"], {}),
    (["Hi", "Hello world"], {"text_pair": ["you", ""]}),
    ("Hi", {"text_pair": "you"}),
    ([PAIR, PAIR], {}),
    (["Hi", " you"], {"is_split_into_words": True}),
    ([["Hi", "you"], ["there"]], {"is_split_into_words": True}),
    (["a </s>", "b"], {"split_special_tokens": True}),
    (["one two three four five", "one"], {"padding": True}),
    (["one two three four five", "one"], {"padding": True, "padding_side": "left"}),
    (["one two three four five", "one"], {"padding": "max_length", "max_length": 9, "return_tensors": "np"}),
    (["one two three four five", "one"], {"truncation": True, "max_length": 3}),
    (["one two three"], {"truncation": True, "max_length": 3, "return_overflowing_tokens": True}),
    ([PAIR], {"truncation": "only_second", "max_length": 9, "stride": 1}),
    (["Hi", "Hello world"], {"return_length": True, "return_special_tokens_mask": True}),
    (["Hi", "Hello world"], {"padding": True, "pad_to_multiple_of": 8, "return_token_type_ids": True}),
    (["Hi"], {"add_special_tokens": False, "return_attention_mask": False}),
]


class Plain(PreTrainedTokenizer):  # type: ignore[misc]
    """A slow tokenizer that gives transformers tokens, one text at a time, as its documentation shows."""

    vocab_files_names = {"vocab_file": "tokenizer.model"}  # noqa: RUF012
    model_input_names = ["input_ids", "attention_mask"]  # noqa: RUF012

    def __init__(self, tok: cpbpe.Tokenizer, **options: Any):
        self.tok = tok
        super().__init__(unk_token="<unk>", bos_token="<s>", eos_token="</s>", **options)

    vocab_size = property(lambda self: len(self.tok))

    def get_vocab(self) -> dict[str, int]:
        return {**{self.tok.id_to_piece(id): id for id in range(len(self.tok))}, **self.added_tokens_encoder}

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        return self.tok.encode_pieces(text)

    def _convert_token_to_id(self, token: str) -> int | None:
        return self.tok.piece_to_id(token)

    def _convert_id_to_token(self, index: int) -> str:
        return self.tok.id_to_piece(index)

    build_inputs_with_special_tokens = CpbpeTokenizer.build_inputs_with_special_tokens
    get_special_tokens_mask = CpbpeTokenizer.get_special_tokens_mask
    create_token_type_ids_from_sequences = CpbpeTokenizer.create_token_type_ids_from_sequences
    _ends = CpbpeTokenizer._ends
    add_bos_token, add_eos_token = True, True


def test_calls() -> None:
    """Whatever transformers takes and gives, it is as with any tokenizer written in Python."""
    made: dict[str, Any] = {"pad_token": "</s>"}
    our, plain = CpbpeTokenizer(load(), add_eos_token=True, **made), Plain(load(), **made)
    for text, wanted in CALLS:
        options = dict(wanted)
        for tokenizer in (our, plain):  # the option padding_side came after 4.40
            tokenizer.padding_side = wanted.get("padding_side", "right")
        options.pop("padding_side", None)
        found, expected = our(text, **options), plain(text, **options)
        assert found.keys() == expected.keys(), (text, options)
        for key, value in expected.items():
            np.testing.assert_equal(found[key], value, f"{text} {options}")
            assert type(found[key]) is type(value)


if importlib.util.find_spec("torch"):

    def test_tensors() -> None:
        tokenizer = ours(pad_token="</s>")
        batch = tokenizer(["Hello world", "Hi"], padding=True, return_tensors="pt")
        assert batch["input_ids"].tolist() == [[1, 22557, 1526], [1, 15359, 2]]
        assert tokenizer.decode(batch["input_ids"][0], skip_special_tokens=True) == "Hello world"
        assert tokenizer.batch_decode(batch["input_ids"], skip_special_tokens=True) == ["Hello world", "Hi"]


def test_no_texts() -> None:
    """An empty batch has no rows; transformers' own slow tokenizers fail on it."""
    assert dict(ours()([])) == {"input_ids": [], "attention_mask": []}


def test_tokens_instead_of_text() -> None:
    tokenizer = ours()
    assert tokenizer.encode([15359, 368]) == [1, 15359, 368]
    assert tokenizer.convert_tokens_to_ids("▁Hi") == 15359
    assert tokenizer.convert_tokens_to_ids(["▁Hi", "</s>", "no such piece"]) == [15359, 2, 0]
    assert tokenizer.convert_tokens_to_ids([]) == []
    assert tokenizer.convert_ids_to_tokens(15359) == "▁Hi"
    assert tokenizer.convert_ids_to_tokens([15359, 2], skip_special_tokens=True) == ["▁Hi"]


def test_known_texts_do_not_leak() -> None:
    """Texts on their way through transformers know their ids; nothing of that stays behind."""
    texts = ["Hi", "Hello world"]
    ours()(texts)
    assert [type(text) for text in texts] == [str, str]
    assert type(ours().tokenize("Hi")[0]) is str


def test_threads() -> None:
    tokenizer = ours()
    batch = list(corpus.lines())[:300]
    alone = tokenizer(batch)["input_ids"]
    tokenizer.threads = 2
    assert tokenizer(batch)["input_ids"] == alone


# --- Special tokens -------------------------------------------------------------------------------


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
        if name == "word" and SLOW:
            continue  # to these only a space, not "(" or "\n", is no part of a word
        for shape in [*shapes, "({})", "a.{}"]:
            text = shape.format(name, name)
            if SLOW or not spaced(re.sub(rf"{left}{name}{right}", "<s>", text)):
                assert our.encode(text) == their.encode(text), text


def test_added_tokens_of_the_model_file() -> None:
    """Tokens that cpbpe added are special here, too, and new ids go on behind them, gaps or not."""
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


# --- Decoding -------------------------------------------------------------------------------------


def test_decoding_is_sentencepieces() -> None:
    tokenizer = ours()
    llama = tokenizer.encode("🦙", add_special_tokens=False)[1:]
    assert tokenizer.decode([*llama[:-1], *llama]) == "���🦙"  # in transformers 5 all seven are lost
    assert tokenizer.decode(15359) == "Hi"
    assert tokenizer.decode(np.array([1, 15359]), skip_special_tokens=True) == "Hi"
    assert tokenizer.decode([]) == ""
    assert tokenizer.batch_decode([[15359], []]) == ["Hi", ""]
    assert tokenizer.decode([1, 15359, 2, 368]) == "<s>Hi</s>you"
    assert ours(legacy=False).decode([1, 15359, 2, 368]) == "<s> Hi</s> you"
    text = "I do n't ."
    assert tokenizer.decode(tokenizer.encode(text), skip_special_tokens=True) == text
    cleaned = tokenizer.decode(
        tokenizer.encode(text, add_special_tokens=False), clean_up_tokenization_spaces=True
    )
    assert cleaned == "I don't."
    with pytest.raises(IndexError, match="id 32000 at position 1 is outside"):
        tokenizer.decode([5, 32000])
    with pytest.raises(IndexError, match="id -1 at position 0 is outside"):
        tokenizer.decode([-1])


# --- Files, copies --------------------------------------------------------------------------------

MADE: list[dict[str, Any]] = [
    {},
    {
        "legacy": False,
        "add_bos_token": False,
        "add_eos_token": True,
        "pad_token": "<pad!>",
        "padding_side": "left",
    },
    {"add_prefix_space": False, "model_max_length": 77, "bos_token": None, "add_bos_token": False},
]


def same(a: Any, b: Any) -> None:
    for name in (
        "legacy",
        "add_bos_token",
        "add_eos_token",
        "add_prefix_space",
        "padding_side",
        "model_max_length",
    ):
        assert getattr(a, name) == getattr(b, name), name
    assert a.cpbpe == b.cpbpe
    assert a.get_vocab() == b.get_vocab()
    assert a.special_tokens_map == b.special_tokens_map
    assert list(map(str, a.added_tokens_decoder.items())) == list(map(str, b.added_tokens_decoder.items()))
    for text in ("Hi </s> you<pad!>", "x<|x|>foobar", ""):
        ids = a.encode(text)
        assert ids == b.encode(text)
        for skip in (False, True):
            assert a.decode(ids, skip_special_tokens=skip) == b.decode(ids, skip_special_tokens=skip)


@pytest.mark.parametrize("options", MADE)
def test_save_and_load(options: dict[str, Any], tmp_path: Path) -> None:
    tokenizer = with_extra(ours(**options))
    tokenizer.add_tokens(["foobar"])
    files = tokenizer.save_pretrained(tmp_path)
    assert (tmp_path / "tokenizer.model").read_bytes() == zoo.model(V1)
    assert str(tmp_path / "tokenizer.model") in files
    loaded = CpbpeTokenizer.from_pretrained(tmp_path)
    same(tokenizer, loaded)
    again = tmp_path / "again"
    loaded.save_pretrained(again)
    same(tokenizer, CpbpeTokenizer.from_pretrained(again))
    assert cpbpe.load(tmp_path / "tokenizer.model") == tokenizer.cpbpe
    tokenizer.save_pretrained(tmp_path, filename_prefix="other")
    assert (tmp_path / "other-tokenizer.model").read_bytes() == zoo.model(V1)


def test_save_and_load_with_the_models_own_added_tokens(tmp_path: Path) -> None:
    tok = load().with_special_tokens({"<|x|>": 32005})
    tokenizer = CpbpeTokenizer(tok)
    tokenizer.add_tokens(["foobar"])
    tokenizer.save_pretrained(tmp_path)
    loaded = CpbpeTokenizer.from_pretrained(tmp_path)
    same(tokenizer, loaded)
    assert loaded.convert_tokens_to_ids(["<|x|>", "foobar"]) == [32005, 32006]


@pytest.mark.parametrize("options", MADE)
def test_copies(options: dict[str, Any]) -> None:
    tokenizer = with_extra(ours(**options))
    tokenizer.encode("used before<s>")
    same(tokenizer, pickle.loads(pickle.dumps(tokenizer)))
    copied = copy.deepcopy(tokenizer)
    same(tokenizer, copied)
    copied.add_tokens(["<new>"])
    assert tokenizer.encode("<new>") != copied.encode("<new>")


def test_a_folder_from_a_hub(tmp_path: Path) -> None:
    """The folder of a Llama model, as they are published."""
    token = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
    config = {
        "add_bos_token": True,
        "add_eos_token": True,
        "added_tokens_decoder": {
            str(id): {"content": t, **token} for id, t in enumerate(["<unk>", "<s>", "</s>"])
        },
        "additional_special_tokens": [],
        "bos_token": {"__type": "AddedToken", "content": "<s>", **token},
        "clean_up_tokenization_spaces": False,
        "eos_token": "</s>",
        "legacy": False,
        "model_max_length": 4096,
        "pad_token": None,
        "padding_side": "right",
        "sp_model_kwargs": {},
        "spaces_between_special_tokens": False,
        "tokenizer_class": "LlamaTokenizer",
        "unk_token": "<unk>",
        "use_default_system_prompt": False,
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    (tmp_path / "tokenizer.model").write_bytes(zoo.model(V1))
    (tmp_path / "tokenizer.json").write_text(json.dumps({"added_tokens": []}))
    tokenizer = CpbpeTokenizer.from_pretrained(tmp_path)
    assert tokenizer.encode("<s>Hi") == [1, 1, 23809, 2]
    assert (tokenizer.model_max_length, tokenizer.pad_token) == (4096, None)
    assert CpbpeTokenizer.from_pretrained(tmp_path, add_eos_token=False, legacy=True).encode("<s>Hi") == [
        1,
        1,
        15359,
    ]


def test_paths(tmp_path: Path) -> None:
    path = tmp_path / "some.model"
    path.write_bytes(zoo.model(V1))
    assert CpbpeTokenizer(path).encode("Hi") == CpbpeTokenizer(str(path)).encode("Hi") == [1, 15359]
    with pytest.raises(ValueError, match=r"needs the file of a SentencePiece model .* 'tokenizer.model'"):
        CpbpeTokenizer()
    with pytest.raises(FileNotFoundError):
        CpbpeTokenizer(tmp_path / "none")


def test_chat_template() -> None:
    tokenizer = ours("mistral_instruct_tokenizer_240323.model.v3", legacy=False)
    tokenizer.add_special_tokens({"additional_special_tokens": ["[INST]", "[/INST]"]})
    tokenizer.chat_template = (
        "{{ bos_token }}{% for m in messages %}[INST] {{ m.content }}[/INST]{% endfor %}"
    )
    chat = [{"role": "user", "content": "Hi"}]
    text = tokenizer.apply_chat_template(chat, tokenize=False)
    assert text == "<s>[INST] Hi[/INST]"
    ids = tokenizer.apply_chat_template(chat, tokenize=True)
    ids = ids if isinstance(ids, list) else ids["input_ids"]
    assert tokenizer.convert_ids_to_tokens(ids) == ["<s>", "[INST]", "▁Hi", "[/INST]"]


# --- What is refused ------------------------------------------------------------------------------


def test_refused() -> None:
    tokenizer = ours()
    with pytest.raises(NotImplementedError, match="encode_offsets"):
        tokenizer("Hi", return_offsets_mapping=True)
    with pytest.raises(NotImplementedError, match="encode_offsets"):
        tokenizer(["Hi"], return_offsets_mapping=True)
    with pytest.raises(ValueError, match="no sentencepiece runs here"):
        ours(sp_model_kwargs={"enable_sampling": True})
    with pytest.raises(UnicodeEncodeError):
        tokenizer("\ud800")
    with pytest.raises(ValueError, match=r"(?i)input"):
        tokenizer(5)
    with pytest.raises(ValueError, match="pad"):
        tokenizer(["Hi"], padding=True)


def test_it_is_one_of_theirs() -> None:
    tokenizer = ours()
    assert isinstance(tokenizer, PreTrainedTokenizer)
    assert isinstance(tokenizer, PreTrainedTokenizerBase)
    assert not tokenizer.is_fast
    assert "CpbpeTokenizer(" in repr(tokenizer)


def test_without_transformers() -> None:
    """The error says what is missing, and how to get it."""
    code = """
import sys
sys.modules["transformers"] = None
try:
    import cpbpe.compat.transformers
except ImportError as error:
    print(error)
"""
    assert "pip install 'cpbpe[transformers]'" in processes.output("-c", code)
