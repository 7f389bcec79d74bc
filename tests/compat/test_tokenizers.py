"""`cpbpe.compat.tokenizers` beside tokenizers, call by call: results, errors, files, differences."""

import asyncio
import json
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import tokenizers

import cpbpe
from cpbpe.compat import tokenizers as ours
from cpbpe.compat.tokenizers import AddedToken, Encoding, Tokenizer
from tests.bytes import models as byte_models
from tests.support import json_files, zoo
from tests.support.json_files import spec_of
from tests.support.json_tokenizers import both, columns, model, outcome, shown

# --- Results and errors ---------------------------------------------------------------------------

CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("encode", ("the abra",), {}),
    ("encode", ("",), {}),
    ("encode", ("", ""), {"add_special_tokens": False}),
    ("encode", ("the", "abra"), {}),
    ("encode", (["the", "", "🦙 a"],), {"is_pretokenized": True}),
    ("encode", (("the", "a"), ["b"], True), {}),
    ("encode", (np.array(["the", "a"], object), None, True), {}),
    ("encode", ([], None, True), {}),
    ("encode", (3,), {}),
    ("encode", (None,), {}),
    ("encode", (b"a",), {}),
    ("encode", (["a"],), {}),
    ("encode", ("a", 3), {}),
    ("encode", ("a b",), {"is_pretokenized": True}),
    ("encode", ([3],), {"is_pretokenized": True}),
    ("encode", ("\ud800",), {}),
    ("encode", ("a",), {"add_special_tokens": 1}),
    ("encode", (), {}),
    ("encode", ("a",), {"nonsense": 1}),
    ("encode_batch", ([],), {}),
    ("encode_batch", (["a", ("a", "b"), ["a", "b"]],), {}),
    ("encode_batch", (("a", "b"),), {}),
    ("encode_batch", ([["a", "b"], (["a"], ["b", "the"])],), {"is_pretokenized": True}),
    ("encode_batch", ([[]],), {"is_pretokenized": True}),
    ("encode_batch", ([["a"]], True, False), {}),
    ("encode_batch", ("ab",), {}),
    ("encode_batch", ([None],), {}),
    ("encode_batch", ([("a", "b", "c")],), {}),
    ("encode_batch", (iter(["a"]),), {}),
    ("encode_batch", (["a", "\ud800"],), {}),
    ("encode_batch_fast", (["a🦙", ("a", "b")],), {}),
    ("decode", ([1, 300, 2],), {}),
    ("decode", ((1, 300, 2), False), {}),
    ("decode", (np.array([1, 300, 2]),), {}),
    ("decode", (np.array([1, 300, 2], np.uint32),), {}),
    ("decode", ([],), {}),
    ("decode", ([99999, 300],), {}),
    ("decode", ([-1],), {}),
    ("decode", ([1 << 32],), {}),
    ("decode", ([1.0],), {}),
    ("decode", ([[1]],), {}),
    ("decode", ("a",), {}),
    ("decode", (3,), {}),
    ("decode_batch", ([[1, 300], []],), {"skip_special_tokens": False}),
    ("decode_batch", ([1],), {}),
    ("token_to_id", ("<s>",), {}),
    ("token_to_id", ("no such token",), {}),
    ("token_to_id", (3,), {}),
    ("id_to_token", (300,), {}),
    ("id_to_token", (99999,), {}),
    ("id_to_token", (-1,), {}),
    ("id_to_token", (1 << 32,), {}),
    ("id_to_token", ("a",), {}),
    ("get_vocab", (), {}),
    ("get_vocab", (False,), {}),
    ("get_vocab_size", (), {}),
    ("get_vocab_size", (), {"with_added_tokens": False}),
    ("get_added_tokens_decoder", (), {}),
    ("num_special_tokens_to_add", (False,), {}),
    ("num_special_tokens_to_add", (), {"is_pair": True}),
    ("num_special_tokens_to_add", (), {}),
    ("enable_padding", (), {"direction": "up"}),
    ("enable_padding", (), {"length": -1}),
    ("enable_padding", (), {"pad_id": "a"}),
    ("enable_padding", (), {"pad_id": -1}),
    ("enable_padding", (), {"pad_token": 3}),
    ("enable_padding", ("left",), {}),
    ("enable_truncation", (), {}),
    ("enable_truncation", (-1,), {}),
    ("enable_truncation", ("a",), {}),
    ("enable_truncation", (3, 1), {}),
    ("enable_truncation", (3,), {"strategy": "x"}),
    ("enable_truncation", (3,), {"direction": "x"}),
    ("enable_truncation", (3,), {"stride": 9}),
    ("enable_truncation", (3,), {"stride": None}),
    ("add_tokens", ("ab",), {}),
    ("add_tokens", ([3],), {}),
    ("add_tokens", ([],), {}),
    ("add_special_tokens", (["a", None],), {}),
    ("post_process", (3,), {}),
    ("from_str", ("{",), {}),
    ("from_str", (3,), {}),
    ("from_buffer", ("{}",), {}),
    ("from_buffer", (b"{",), {}),
]


@pytest.mark.parametrize(
    "call", CALLS, ids=lambda call: re.sub(" at 0x[0-9a-f]+", "", f"{call[0]}-{call[1]!r}-{call[2]!r}"[:60])
)
def test_calls(call: tuple[str, tuple[Any, ...], dict[str, Any]]) -> None:
    name, args, kwargs = call
    mine, other = both(model())
    again = [iter(["a"])] if args and hasattr(args[0], "__next__") else args
    expected = outcome(other, name, *args, **kwargs)
    found = outcome(mine, name, *again, **kwargs)
    if expected[0] == found[0] == "error" and issubclass(found[1], expected[1]):
        return
    assert found == expected


PROPERTIES = ("padding", "truncation", "encode_special_tokens")


def test_settings_are_reported_and_saved_alike() -> None:
    mine, other = both(model())
    for cut, fill in (
        ({"max_length": 5}, {}),
        ({"max_length": 13, "stride": 2, "strategy": "only_first", "direction": "left"}, {"length": 16}),
        (
            {"max_length": 13, "strategy": "only_second"},
            {
                "direction": "left",
                "pad_to_multiple_of": 4,
                "pad_id": 2,
                "pad_type_id": 1,
                "pad_token": "</s>",
            },
        ),
    ):
        for tokenizer in (mine, other):
            tokenizer.enable_truncation(**cut)
            tokenizer.enable_padding(**fill)
        assert [getattr(mine, name) for name in PROPERTIES] == [getattr(other, name) for name in PROPERTIES]
        assert json.loads(mine.to_str()) == json.loads(other.to_str())
        # A file with settings is read by both, and has them.
        again, theirs = Tokenizer.from_str(other.to_str()), tokenizers.Tokenizer.from_str(mine.to_str())
        assert (again.padding, again.truncation) == (theirs.padding, theirs.truncation)
        text = ("the the the the the the", "a the a the a the")
        assert columns(again.encode(*text)) == columns(theirs.encode(*text)) == columns(other.encode(*text))
    for name in ("padding", "truncation"):
        with pytest.raises(AttributeError):
            setattr(mine, name, None)
    for tokenizer in (mine, other):
        tokenizer.no_padding()
        tokenizer.no_truncation()
    assert mine.padding is None is mine.truncation
    assert mine.encode("the").ids == other.encode("the").ids
    with pytest.raises(TypeError):
        mine.encode_special_tokens = 3  # type: ignore[assignment]


def test_post_process() -> None:
    mine, other = both(model(bos=True, eos=True))
    cuts: list[Any] = [None, {"max_length": 8, "stride": 1}]
    for cut in cuts:
        for tokenizer in (mine, other):
            tokenizer.enable_padding(length=9)
            if cut is not None:
                tokenizer.enable_truncation(**cut)
        for adds in (False, True):
            results = []
            for tokenizer in (mine, other):
                first, second = (tokenizer.encode(text) for text in ("abra the cadabra", "a b"))
                results.append(
                    [
                        columns(tokenizer.post_process(first, None, adds)),
                        columns(tokenizer.post_process(first, second, add_special_tokens=adds)),
                        columns(first),
                    ]
                )
            assert results[0] == results[1]


def test_in_the_background() -> None:
    mine, other = both(model())

    async def ask(tokenizer: Any) -> list[Any]:
        return [
            await tokenizer.async_encode("the", "a"),
            await tokenizer.async_encode_batch(["the", ("a", "b")]),
            await tokenizer.async_encode_batch_fast(["the"]),
            await tokenizer.async_decode_batch([[300, 301], [1]]),
        ]

    assert shown(asyncio.run(ask(mine))) == shown(asyncio.run(ask(other)))


def test_added_tokens_are_the_same_values() -> None:
    for flags in ({}, {"special": True}, {"special": True, "normalized": True}, {"lstrip": True}):
        mine, other = AddedToken("<a>", **flags), tokenizers.AddedToken("<a>", **flags)
        for name in ("content", "single_word", "lstrip", "rstrip", "normalized", "special"):
            assert getattr(mine, name) == getattr(other, name)
        assert (repr(mine), str(mine), mine.__getstate__()) == (repr(other), str(other), other.__getstate__())
        assert pickle.loads(pickle.dumps(mine)) == mine
        mine.special = other.special = True
        mine.content = other.content = "<b>"
        assert repr(mine) == repr(other)
    assert AddedToken("a") == AddedToken("a") != AddedToken("a", lstrip=True)
    assert hash(AddedToken("a")) == hash(AddedToken("a", lstrip=True))
    assert AddedToken() == AddedToken("")
    assert AddedToken("a") != "a"
    assert repr(tokenizers.AddedToken()) == repr(AddedToken())
    wrongs: list[Any] = [{"content": 3}, {"lstrip": 3}]
    for wrong in wrongs:
        for kind in (AddedToken, tokenizers.AddedToken):
            with pytest.raises(TypeError):
                kind(**wrong)
    with pytest.raises(AttributeError):
        AddedToken("a").lstrip = True  # type: ignore[misc]


def test_encodings_are_asked_and_changed_alike() -> None:
    """What random tests do not try: wrong arguments, an encoding of nothing."""
    mine, other = both(model())
    assert columns(Encoding()) == columns(tokenizers.Encoding())
    assert columns(Encoding.merge([])) == columns(tokenizers.Encoding.merge([]))
    for name, args, kwargs in (
        ("char_to_token", (-1,), {}),
        ("char_to_token", ("a",), {}),
        ("char_to_token", (0, 5), {}),
        ("word_to_tokens", (0, 7), {}),
        ("token_to_chars", (99,), {}),
        ("pad", ("a",), {}),
        ("pad", (-1,), {}),
        ("pad", (3,), {"direction": "x"}),
        ("truncate", (1, 0, "x"), {}),
        ("truncate", (2, 2), {}),
        ("truncate", (-1,), {}),
        ("merge", ([3],), {}),
        ("merge", (3,), {}),
        ("set_sequence_id", (-1,), {}),
        ("__len__", (), {}),
        ("__repr__", (), {}),
    ):
        one, two = mine.encode("the abra", "a"), other.encode("the abra", "a")
        assert outcome(one, name, *args, **kwargs) == outcome(two, name, *args, **kwargs), name
    with pytest.raises(AttributeError):
        mine.encode("a").ids = [1]  # type: ignore[misc]
    with pytest.warns(DeprecationWarning, match="word_ids"):
        assert mine.encode("the").words == [None, 0]
    encoding = mine.encode("the")
    encoding.ids.append(7)  # a list of one's own, as in the other library
    assert encoding.ids == other.encode("the").ids
    assert encoding != mine.encode("the")  # so there, too: encodings are not compared by what they hold


# --- Files ----------------------------------------------------------------------------------------


def test_files(tmp_path: Path) -> None:
    data = model()
    path, folder = tmp_path / "tokenizer.json", tmp_path
    path.write_bytes(data)
    other = tokenizers.Tokenizer.from_file(str(path))
    read = [
        Tokenizer.from_file(str(path)),
        Tokenizer.from_file(path),
        Tokenizer.from_buffer(data),
        Tokenizer.from_str(data.decode()),
        Tokenizer.from_pretrained(str(folder)),
        Tokenizer(cpbpe.Tokenizer.from_spec(spec_of("llama")).using(add_bos=True)),
    ]
    for tokenizer in read:
        assert columns(tokenizer.encode("the abra")) == columns(other.encode("the abra"))
        assert json.loads(tokenizer.to_str()) == json.loads(data)
    read[0].add_special_tokens(["<x>"])
    for pretty in (False, True):
        read[0].save(tmp_path / "again.json", pretty)
        assert tokenizers.Tokenizer.from_file(str(tmp_path / "again.json")).token_to_id("<x>") == 700
        assert Tokenizer.from_file(tmp_path / "again.json").encode("<x>a").tokens == ["<s>", "<x>", "▁a"]
    assert "\n" in (tmp_path / "again.json").read_text()
    (tmp_path / "my.model").write_bytes(zoo.model("llama"))
    assert Tokenizer.from_file(tmp_path / "my.model").encode("the").ids == other.encode("the").ids[1:]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Tokenizer.from_file(tmp_path / "nothing.json")
    with pytest.raises(FileNotFoundError, match="downloads nothing; download the files first"):
        Tokenizer.from_pretrained("bert-base-uncased")
    with pytest.raises(ValueError, match="downloads nothing"):
        Tokenizer.from_pretrained(str(tmp_path), revision="v2")
    with pytest.raises(FileNotFoundError):
        Tokenizer.from_buffer(model()).save(tmp_path / "no" / "folder")
    content = json.loads(model())
    for wrong, message in (
        ({"post_processor": {"type": "BertProcessing"}}, "post_processor"),
        ({"truncation": {"max_length": "a"}}, "truncation in the file"),
        ({"padding": {"strategy": "x"}}, "padding in the file"),
        ({"padding": 3}, "padding in the file"),
        ({"model": {"type": "WordPiece"}}, "WordPiece"),
    ):
        with pytest.raises(cpbpe.ModelError, match=message):
            Tokenizer.from_str(json.dumps({**content, **wrong}))


def test_models_that_have_no_tokenizer_json() -> None:
    """They encode all the same, but cannot be saved as one."""
    tok = cpbpe.Tokenizer.from_bytes(zoo.model("defaults"))
    tokenizer = Tokenizer(tok)
    assert tokenizer.encode("Ⅳ  ﬁne").ids == tok.encode("Ⅳ  ﬁne")
    assert tokenizer.encode("Ⅳ").offsets[0] == (0, 1)
    assert tokenizer.decode(tok.encode("the abra")) == "the abra"
    tokenizer.add_tokens(["abra"])
    assert tokenizer.encode("the abra ﬁ").tokens[1] == "▁abra"
    with pytest.raises(cpbpe.ConversionError, match="normalizer 'nmt_nfkc'"):
        tokenizer.to_str()
    assert pickle.loads(pickle.dumps(tokenizer)).encode("abra").tokens == ["▁abra"]


@pytest.mark.parametrize("name", ["llama", "suffix", "gpt2"])
def test_bound_options(name: str) -> None:
    """They have the effect that they have in the tokenizer itself, or are refused."""
    tok = cpbpe.Tokenizer.from_spec(byte_models.made(name) if name == "gpt2" else spec_of(name))
    tok = tok.with_special_tokens(["<|x|>"]).using(allowed_special="all", prefix_space=None, alpha=0)
    for after in (True, False):
        bound = tok.using(prefix_after_special=after)
        mine = pickle.loads(pickle.dumps(Tokenizer(bound)))
        for text in ("the <|x|>the abra", "<|x|><|x|> a", "a<|x|>"):
            assert mine.encode(text).ids == bound.encode(text)
    for options in (
        {"prefix_space": False},
        {"reverse": True},
        {"alpha": 0.1, "seed": 1},
        {"allowed_special": ("<|x|>",)},
        {"disallowed_special": "raise", "allowed_special": ()},
        {"skip_special_tokens": False},
        {"keep_prefix_space": True},
    ):
        with pytest.raises(ValueError, match=f"no options like .*{next(iter(options))}=.* using"):
            Tokenizer(tok.using(**cast(Any, options)))


# --- What is different ----------------------------------------------------------------------------


def test_parts_are_fixed() -> None:
    mine, _ = both(model())
    for name in ("model", "normalizer", "pre_tokenizer", "decoder"):
        with pytest.raises(AttributeError, match=f"{name} is fixed by the model here"):
            getattr(mine, name)
        with pytest.raises(AttributeError, match="fixed by the model"):
            setattr(mine, name, None)
    for call in ("train", "train_from_iterator"):
        with pytest.raises(NotImplementedError, match=r"use cpbpe\.train"):
            getattr(mine, call)([])
    with pytest.raises(TypeError, match=r"use Tokenizer\.from_file"):
        Tokenizer("tokenizer.json")  # type: ignore[arg-type]


def test_unknown_options_are_errors_instead_of_lines_on_the_terminal(capfd: Any) -> None:
    mine, other = both(model())
    other.enable_padding(max_lenght=3)
    assert "Ignored unknown kwarg" in capfd.readouterr().out
    for call in (
        lambda: mine.enable_padding(max_lenght=3),  # type: ignore[call-arg]
        lambda: mine.enable_truncation(3, strid=1),  # type: ignore[call-arg]
        lambda: mine.encode("a").pad(3, pad_idd=1),  # type: ignore[call-arg]
        lambda: AddedToken("a", strip=True),
    ):
        with pytest.raises(TypeError, match=r"max_lenght|strid|pad_idd|strip"):
            call()


def test_added_tokens_that_are_alike_when_normalized() -> None:
    """The other library chooses one of them by chance; here it is the one that was added first."""
    mine, other = both(model("defaults without rules", bos=False))
    for tokenizer in (mine, other):
        tokenizer.add_tokens(["zza", "zza▁"])
    assert mine.encode("zza").ids == [600]
    assert other.encode("zza").ids in ([600], [601])


def test_added_tokens_of_whitespace_that_another_one_has_taken() -> None:
    for flags, panics in (({"lstrip": True, "rstrip": True}, False), ({"lstrip": True}, True)):
        mine, other = both(model())
        for tokenizer, kind in ((mine, AddedToken), (other, tokenizers.AddedToken)):
            tokenizer.add_tokens([kind("x", rstrip=True, normalized=False)])
            tokenizer.add_tokens([kind("\n", normalized=False, **flags)])
        found, expected = (outcome(tokenizer, "encode", "x\n\n a") for tokenizer in (mine, other))
        assert found == expected or panics
        assert (expected == ("error", ValueError)) == panics
        assert found[1]["tokens"][:2] == ["<s>", "x\n\n "]


def test_the_setting_of_special_tokens_is_pickled() -> None:
    mine, other = both(model())
    for tokenizer, kept in ((mine, True), (other, False)):
        tokenizer.encode_special_tokens = True
        assert pickle.loads(pickle.dumps(tokenizer)).encode_special_tokens is kept


@pytest.mark.parametrize("name", ["llama", "GPT-2"])
def test_transformers_gets_the_same_from_it(name: str) -> None:
    from transformers import PreTrainedTokenizerFast

    mine, other = (PreTrainedTokenizerFast(tokenizer_object=one) for one in both(model(name)))
    for text in ("Hi  there", "", "é</s> a<s>b"):
        given = {"return_offsets_mapping": True, "return_special_tokens_mask": True}
        assert dict(mine(text, **given)) == dict(other(text, **given))
        assert dict(mine([text, "a"], ["b", text], padding=False)) == dict(other([text, "a"], ["b", text]))
        for skips in (False, True):
            ids = other(text)["input_ids"]
            assert mine.decode(ids, skip_special_tokens=skips) == other.decode(ids, skip_special_tokens=skips)


def test_arrays_of_str_are_texts() -> None:
    """The other library reads their characters as bytes, with NUL characters between."""
    mine, other = both(model())
    array = np.array(["the", "a"])
    assert mine.encode(array, is_pretokenized=True).ids == other.encode(["the", "a"], None, True).ids
    assert "<0x00>" in other.encode(array, is_pretokenized=True).tokens


def test_the_library_is_not_imported() -> None:
    code = (
        "import sys, cpbpe.compat.tokenizers as t; "
        "assert not {'tokenizers', 'transformers', 'numpy'} & {*sys.modules}, sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_added_tokens_of_the_library_are_taken() -> None:
    mine, other = both(model())
    for tokenizer in (mine, other):
        token = tokenizers.AddedToken("<x>", rstrip=True)
        assert tokenizer.add_special_tokens([token]) == 1
        assert token.special
    assert columns(mine.encode("<x>  a")) == columns(other.encode("<x>  a"))
    assert repr(mine.get_added_tokens_decoder()) == repr(other.get_added_tokens_decoder())


def test_errors_say_what_to_type_instead() -> None:
    mine, _ = both(model())
    mine.enable_truncation(4, stride=2)
    for call, message in (
        (lambda: mine.encode(["a"]), "for words, pass is_pretokenized=True"),
        (lambda: mine.encode("a", None, True), "leave out is_pretokenized=True"),
        (lambda: mine.encode_batch([["a", 3]], True), r"input\[0\]\[1\] must be a str, not int"),
        (lambda: mine.encode_batch([("a", "b", "c")]), r"input\[0\] must be a text or a pair .* has 3 parts"),
        (lambda: mine.encode(b"a"), "not bytes; decode it first"),
        (lambda: mine.add_tokens("a"), "put it into a list"),
        (lambda: mine.encode("the the the the", "a a a a"), "stride is 2, and must be less than .* here 1"),
        (lambda: mine.enable_truncation(3, stride=9), "leaves for a text: 2 besides the 1"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            call()
    mine.enable_truncation(4, strategy="only_second")
    for pair, message in ((("the the the the",), "no second text"), (("the the the the", "a"), "too short")):
        with pytest.raises(ValueError, match=message):
            mine.encode(*pair)


# --- Both engines ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", ["llama", "user-defined-llama", "defaults without rules"])
def test_both_engines(name: str) -> None:
    mine, other = both(model(name))
    for tokenizer in (mine, other):
        tokenizer.enable_truncation(9, stride=1)
        tokenizer.enable_padding(pad_to_multiple_of=4)
    mine.add_tokens(["abra", AddedToken("<x>", rstrip=True, normalized=False)])
    other.add_tokens(["abra", tokenizers.AddedToken("<x>", rstrip=True, normalized=False)])
    batch = ["the abra", "a<x>  🦙 b", ("é</s>", "  \n"), "", "a b<|im_end|>the  abra c"]
    expected = [columns(encoding) for encoding in other.encode_batch(batch)]
    assert [columns(encoding) for encoding in mine.encode_batch(batch)] == expected
    ids = [encoding["ids"] for encoding in expected]
    assert mine.decode_batch(ids) == other.decode_batch(ids)


def test_a_large_batch_on_several_threads() -> None:
    mine, other = both(model())
    texts = [f"{number} abra cadabra</s> the " * 60 for number in range(300)]
    assert sum(map(len, texts)) > 300_000
    expected = [encoding.ids for encoding in other.encode_batch(texts)]
    assert [encoding.ids for encoding in mine.encode_batch(texts)] == expected
    assert mine.decode_batch(expected) == other.decode_batch(expected)
    assert ours.Tokenizer is Tokenizer
    assert json_files.BYTES[0] in mine.get_vocab()


def test_the_marks_of_a_first_token() -> None:
    """Metaspace's decoder drops all of them, not only the prefix."""
    data = json.loads(model("llama"))
    data["decoder"] = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": False}
    mine, theirs = both(data)
    named = {name: id for name, id in theirs.get_vocab().items() if "▁" in name}
    assert any("▁" in name[1:] for name in named)
    for name, id in named.items():
        for ids in ([id], [id, id]):
            assert mine.decode(ids) == theirs.decode(ids), name
