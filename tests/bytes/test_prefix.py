"""Byte-level models that put a space in front of texts (add_prefix_space), against tokenizers."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import cpbpe
from cpbpe import Tokenizer
from cpbpe.model.formats.tokenizer_json import read, write
from cpbpe.model.spec import ModelSpec
from cpbpe.reference.byte_level.encoding import ByteLevelEngine
from tests.bytes.models import given_texts, made, model
from tests.support.budget import SEED, examples
from tests.support.json_files import dumped, ids_of, theirs

STARTS = [
    "",
    " ",
    "  ",
    "\u00a0",
    "\u3000a",
    "\u00a8",
    "\u0301",
    "\u0301 a",
    "\n",
    "a",
    "\u2581",
    "\u1e9b\u0323",
]


def spec_of(pattern: str | None = "gpt2", form: str = "", *, before_space: bool = False) -> ModelSpec:
    spec = model(pattern)
    rules = replace(
        spec.normalizer, add_dummy_prefix=True, prefix_before_space=before_space, unicode_form=form
    )
    return replace(spec, normalizer=rules)


def some_texts() -> list[str]:
    return [*STARTS, *(start + text for start in STARTS for text in given_texts(examples(3), SEED)[:-5])]


@pytest.mark.parametrize("form", ["", "NFC", "NFD", "NFKC", "NFKD"])
@pytest.mark.parametrize("pattern", ["gpt2", None])
def test_a_prefix_is_that_of_tokenizers(pattern: str | None, form: str) -> None:
    spec = spec_of(pattern, form)
    data = write(spec).data
    assert json.loads(data)["pre_tokenizer"]["add_prefix_space"] is True
    again = read(data)
    assert again.differences == ()
    assert replace(again.spec, special_pieces=spec.special_pieces) == spec
    assert write(again.spec).data == data
    tok, other, slow = Tokenizer.from_spec(spec), theirs(data), ByteLevelEngine(spec)
    for text in some_texts():
        ids = ids_of(other, text)
        assert tok.encode(text) == tok.encode(text.encode()) == ids, text
        assert [token.id for token in slow.encode(text.encode())] == ids, text
        assert tok.decode(ids) == other.decode(ids)
        spans = tok.align(text, unit="byte").offsets
        assert spans == [(token.begin, token.end) for token in slow.encode(text.encode())], text
    other.encode_special_tokens = False
    for text in ["<|end|>", "a<|end|>b", " <|end|> b<|end|><|end|>", "<|end|>\u00a0c"]:
        assert tok.encode(text, allowed_special="all") == ids_of(other, text)


@pytest.mark.parametrize("engine", ["core", "reference"])
@pytest.mark.parametrize("form", ["", "NFKC"])
def test_other_calls(form: str, engine: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CPBPE_ENGINE", engine)
    tok = Tokenizer.from_spec(spec_of(form=form))
    texts = some_texts()[:60]
    expected = [tok.encode(text) for text in texts]
    assert tok.encode_batch(texts) == expected
    assert [ids.tolist() for ids in tok.encode_arrays(texts)] == expected
    assert tok.count_batch(texts) == [len(ids) for ids in expected]
    for text, ids in zip(texts, expected, strict=True):
        stream = tok.stream_encoder()
        assert [id for letter in text for id in stream.push(letter)] + stream.flush() == ids, text
        back = tok.stream_decoder()
        assert back.push(ids) + back.flush() == tok.decode(ids)
        assert tok.encode(tok.normalize(text), prefix_space=False) == ids
    assert tok.encode("the", prefix_space=True) == tok.encode(" the", prefix_space=False)
    assert not tok.is_lossless()
    assert "A space is put in front of texts" in str(tok.is_lossless())
    tok.save(str(tmp_path / "a.model"))
    again = cpbpe.load(str(tmp_path / "a.model"))
    assert again == tok
    assert again.encode_batch(texts) == expected


def test_refused_by_formats_that_cannot_say_it(tmp_path: Path) -> None:
    tok = Tokenizer.from_spec(spec_of())
    for name in ("a.tiktoken", "merges.txt"):
        with pytest.raises(cpbpe.ConversionError, match="the model puts a space in front of texts"):
            tok.save(str(tmp_path / name))
    with pytest.raises(
        cpbpe.ConversionError, match="no space in front of a text that begins with one"
    ) as caught:
        write(spec_of(before_space=True))
    [(_, text)] = caught.value.differences
    file = write(spec_of(before_space=True), allow_differences=True).data
    assert ids_of(theirs(file), text or "") != Tokenizer.from_spec(spec_of(before_space=True)).encode(
        text or ""
    )


def test_a_prefix_for_each_part_is_refused(tmp_path: Path) -> None:
    spec = spec_of("llama3")
    with pytest.raises(cpbpe.ConversionError, match="in front of each part of a text") as caught:
        write(spec)
    [(_, text)] = caught.value.differences
    file = write(spec, allow_differences=True).data
    assert ids_of(theirs(file), text or "") != Tokenizer.from_spec(spec).encode(text or "")
    with pytest.raises(cpbpe.ModelError, match="puts a space in front of each part that Split cuts"):
        read(file)


def test_two_files_in_a_folder(tmp_path: Path) -> None:
    """In a folder of RoBERTa's form the prefix is in tokenizer_config.json."""
    plain = Tokenizer.from_spec(made())
    plain.save(str(tmp_path / "vocab.json"))
    for prefix in (True, False):
        config = {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": prefix}
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
        tok = cpbpe.load(str(tmp_path))
        assert tok.spec.normalizer.add_dummy_prefix is prefix
        file = json.loads(write(plain.spec).data)
        file["pre_tokenizer"]["add_prefix_space"] = prefix
        for text in STARTS:
            assert tok.encode(text) == ids_of(theirs(dumped(file)), text)
    tok.save(str(tmp_path / "again") + "/")
    assert cpbpe.load(str(tmp_path / "again")).encode("the cat") == tok.encode("the cat")
