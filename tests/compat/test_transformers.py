"""CpbpeTokenizer encodes and decodes as transformers' own Llama tokenizers do, and as sentencepiece does."""

import importlib.util
import pickle
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import transformers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizer

import cpbpe
from cpbpe.compat.transformers import CpbpeTokenizer
from tests.support import budget, corpus, texts, tiers, zoo
from tests.support.llama_tokenizers import (
    LEGACY,
    ON_SENTENCEPIECE,
    SEGMENTS,
    SPECIALS,
    V1,
    load,
    ours,
    some_texts,
    spaced,
    theirs,
    with_extra,
)

pytestmark = pytest.mark.usefixtures("engine")

EXAMPLES = budget.examples(100)

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


@tiers.slow_reference
@LEGACY
@tiers.models([zoo.REAL[0], zoo.REAL[2]])
def test_against_their_llama_tokenizer(name: str, legacy: bool, tmp_path: Path) -> None:
    """Equal ids, equal tokens, and equal text, with special tokens and without."""
    their, our = theirs(tmp_path, name, legacy=legacy), ours(name, legacy=legacy)
    if not ON_SENTENCEPIECE:  # in version 5 CONTROL pieces are special from the beginning
        their.add_special_tokens({"additional_special_tokens": []})
        our.add_special_tokens({"additional_special_tokens": list(our.cpbpe.vocab.special_tokens)})
    with_extra(their), with_extra(our)
    assert len(our) == len(their)
    assert our.get_vocab() == their.get_vocab()
    compared = 0
    for text in some_texts(our.cpbpe, EXAMPLES * 2, len(name) + legacy):
        ids = our.encode(text)
        if ON_SENTENCEPIECE or not spaced(text):
            compared += 1
            assert ids == their.encode(text), text
            assert our.tokenize(text) == their.tokenize(text), text
            assert ids == our.convert_tokens_to_ids(["<s>", *our.tokenize(text)])
        if not ON_SENTENCEPIECE and not legacy:
            assert our.decode(ids) == their.decode(ids), text
        if not ON_SENTENCEPIECE or (not legacy and not SEGMENTS.search(text) and not spaced(text)):
            assert our.decode(ids, skip_special_tokens=True) == their.decode(ids, skip_special_tokens=True)
    assert compared > EXAMPLES


@LEGACY
def test_against_sentencepiece(legacy: bool) -> None:
    """Text between special tokens has sentencepiece's ids: with a dummy prefix, or without one."""
    model = zoo.parse(zoo.model(V1))
    first = sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())
    if not legacy:
        model.normalizer_spec.add_dummy_prefix = False
    later = sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())
    tokenizer = with_extra(ours(legacy=legacy))
    for text in some_texts(tokenizer.cpbpe, EXAMPLES * 3, 7):
        expected: list[int] = []
        for i, part in enumerate(SEGMENTS.split(text)):
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


@cache
def extended(engine: str, legacy: bool) -> Any:
    """A tokenizer with more special tokens, on the engine in use."""
    return with_extra(ours(legacy=legacy))


@tiers.slow_reference
@LEGACY
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_round_trip(engine: str, legacy: bool, data: st.DataObject) -> None:
    """Text comes back, with the special tokens that it spells out; only ▁ becomes a space."""
    tokenizer = extended(engine, legacy)
    text = "".join(data.draw(st.lists(st.one_of(texts.texts(["▁the", "ing"]), st.sampled_from(SPECIALS)))))
    ids = tokenizer.encode(text, add_special_tokens=False)
    assert tokenizer.decode(ids) == text.replace("▁", " ")
    assert tokenizer.convert_tokens_to_string(tokenizer.convert_ids_to_tokens(ids)) == text.replace("▁", " ")


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
    _laid_out, _layouts = CpbpeTokenizer._laid_out, CpbpeTokenizer._layouts
    _around = None
    add_bos_token, add_eos_token = True, True


def test_calls() -> None:
    """Whatever transformers takes and gives, it is as with any tokenizer written in Python."""
    made: dict[str, Any] = {"pad_token": "</s>"}
    our, plain = CpbpeTokenizer(load(), add_eos_token=True, **made), Plain(load(), **made)
    for text, wanted in CALLS:
        options = dict(wanted)
        if "split_special_tokens" in options and transformers.__version__.startswith("4."):
            text = text[0]  # version 4 forgets this option if there are several texts
        found, expected = our(text, **options), plain(text, **options)
        assert found.keys() == expected.keys(), (text, options)
        for key, value in expected.items():
            np.testing.assert_equal(found[key], value, f"{text} {options}")
            assert type(found[key]) is type(value)


@pytest.mark.skipif(transformers.__version__.startswith("4."), reason="version 4 makes its rows itself")
def test_rows_of_a_batch_are_made_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    """transformers takes longer to prepare a row than its text takes to encode."""
    rows: list[object] = []
    prepare = CpbpeTokenizer.prepare_for_model

    def counted(*args: Any, **options: Any) -> Any:
        rows.append(args)
        return prepare(*args, **options)

    monkeypatch.setattr(CpbpeTokenizer, "prepare_for_model", counted)
    tokenizer = ours(pad_token="</s>")
    batch = ["Hello world", ("Hi", ""), "Hi there you"]
    plain = {"input_ids": [[1, 22557, 1526], [1, 15359, 1], [1, 15359, 736, 368]]}
    assert tokenizer(batch, return_attention_mask=False) == plain
    assert tokenizer(batch, padding=True)["input_ids"][0] == [1, 22557, 1526, 2]
    assert rows == []
    assert tokenizer(batch, truncation=True, max_length=3)["input_ids"][2] == [1, 15359, 736]
    assert len(rows) == 1
    assert tokenizer(batch, return_special_tokens_mask=True)["special_tokens_mask"][1] == [1, 0, 1]


def test_what_is_put_around_texts_follows_what_is_set() -> None:
    """It is kept between texts, because transformers asks for it three times for each."""
    tokenizer = ours()
    assert tokenizer.encode("Hi") == [1, 15359]
    tokenizer.add_eos_token = True
    assert tokenizer.encode("Hi") == [1, 15359, 2]
    tokenizer.add_tokens(["<a>"], special_tokens=True)
    tokenizer.eos_token = "<a>"
    assert tokenizer.encode("Hi") == [1, 15359, 32000]
    tokenizer.add_special_tokens({"bos_token": "<b>"})
    assert (
        tokenizer.encode("Hi") == pickle.loads(pickle.dumps(tokenizer)).encode("Hi") == [32001, 15359, 32000]
    )


@pytest.mark.parametrize("side", ["left", "right"])
def test_assistant_masks(side: str) -> None:
    """The tokens that an assistant said are found, wherever the ids are cut and filled up."""
    tokenizer = ours(pad_token="</s>", legacy=False, padding_side=side, truncation_side=side)
    tokenizer.chat_template = (
        "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}</s>"
        "{% endgeneration %}{% else %}[{{ m.content }}]{% endif %}{% endfor %}"
    )
    chats = [
        [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": said}]
        for said in ("Hello there", "\U0001f999", "")
    ]

    def said(chat: Any, **options: Any) -> Any:
        given = tokenizer.apply_chat_template(
            chat, return_assistant_tokens_mask=True, return_dict=True, **options
        )
        rows = zip(*(np.atleast_2d(given[name]) for name in ("input_ids", "assistant_masks")), strict=True)
        return [tokenizer.convert_ids_to_tokens(ids[mask == 1].tolist()) for ids, mask in rows]

    llama = ["<0xF0>", "<0x9F>", "<0xA6>", "<0x99>", "</s>"]
    assert said(chats[0]) == [["Hello", "▁there", "</s>"]]
    assert said(chats, padding=True) == [["Hello", "▁there", "</s>"], llama, ["</s>"]]
    assert said(chats, padding=True, return_tensors="np")[1] == llama
    cut = said(chats[:2], truncation=True, max_length=5, padding="max_length")
    assert cut == (
        [["Hello", "▁there", "</s>"], llama] if side == "left" else [["Hello", "▁there"], llama[:2]]
    )
    with pytest.raises(ValueError, match="return_dict"):
        tokenizer.apply_chat_template(chats[0], return_assistant_tokens_mask=True, return_dict=False)


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
    """Texts carry their ids on the way through transformers; callers never see that."""
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
