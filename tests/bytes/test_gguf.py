"""GGUF files of byte-level models: read, written, and what llama.cpp does with them."""

import json
from dataclasses import replace
from pathlib import Path

import gguf as theirs
import pytest
from tokenizers import Tokenizer as Theirs

import cpbpe
from cpbpe import ModelSpec, Piece, PieceType, Tokenizer
from cpbpe.model.formats import gguf, gpt2
from cpbpe.model.formats.gguf import differences, read, write
from cpbpe.model.formats.gguf.container import ARRAY, BOOL, INT32, STRING, UINT32
from cpbpe.model.formats.gguf.llamacpp import KNOWN, LlamaCppBytes, name_for
from cpbpe.model.spec import Carried, Pieces, SplitSpec
from cpbpe.text.split_patterns import PATTERNS
from cpbpe.text.utf8 import LETTERS
from tests.bytes.making import decoded
from tests.bytes.making import texts as any_texts
from tests.bytes.models import given_texts, made, model, spec_of
from tests.support.budget import SEED, examples
from tests.support.gguf_files import TEXTS, byte_level, file, tokenizer
from tests.support.llamacpp import byte_level_ids
from tests.support.wheels import content

TOKENS, MERGES = ["he", "ll", "hell", "hello", "Ġw"], ["h e", "l l", "he ll", "hell o", "Ġ w"]
BYTES = [bytes([byte]) for byte in range(256)]


def ranked(*pieces: str, pattern: str = "llama3", whole: bool = True) -> ModelSpec:
    """A model of bytes and of these pieces."""
    every = [*BYTES, *(piece.encode() for piece in pieces)]
    return spec_of({piece: rank for rank, piece in enumerate(every)}, PATTERNS[pattern], whole, pattern)


def some_texts(spec: ModelSpec) -> list[str]:
    pieces = decoded([piece.text for piece in spec.pieces])
    return [*given_texts(examples(60)), *any_texts(examples(60), pieces, SEED)]


# --- Written and read -----------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["gpt2", "llama3", "qwen2"])
def test_what_is_written_is_read_again(pattern: str) -> None:
    spec = made(pattern)
    written = write(spec)
    assert written.differences == ()
    again = read(written.data)
    assert again.assumptions == ()
    assert again.spec.pieces == spec.pieces
    assert (again.spec.splitter, again.spec.normalizer) == (spec.splitter, spec.normalizer)
    assert again.spec.eos_id == spec.eos_id
    assert write(again.spec).data == written.data


@pytest.mark.parametrize("name", ["m.gguf", "vocab.json", "tokenizer.json", "m.model"])
def test_special_tokens_are_added_to_a_model_that_has_some(name: str, tmp_path: Path) -> None:
    """A file may hold them as pieces of the type CONTROL: their texts, ids and effect are the same."""
    tok = cpbpe.Tokenizer.from_spec(made()).with_special_tokens(["<|x|>", "<|y|>"])
    tok.save(tmp_path / name)
    again = cpbpe.load(tmp_path / name)
    text = "the<|x|>cat<|end|> sat<|y|>"
    assert again.encode(text, allowed_special="all") == tok.encode(text, allowed_special="all")
    assert again.encode(text) == tok.encode(text)


@pytest.mark.parametrize(
    "name", ["dbrx", "deepseek-v3", "gpt-2", "llama-bpe", "qwen2", "qwen35", "starcoder"]
)
def test_llama_cpp_and_the_model_have_the_same_ids(name: str) -> None:
    pre = KNOWN[name]
    spec = cpbpe.ModelSpec(
        made("gpt2").pieces, made("gpt2").normalizer, alphabet="bytes", splitter=pre.splitter, whole=pre.whole
    )
    assert name_for(spec) == pre
    assert differences(spec) == []
    llamacpp, tok = LlamaCppBytes(spec, pre), Tokenizer.from_spec(spec)
    for text in some_texts(spec):
        if "ſ" not in text:
            assert byte_level_ids(llamacpp, text) == tok.encode(text), text


def test_real_ranks_have_the_ids_of_tokenizers(tmp_path: object) -> None:
    """The first 3,256 tokens of GPT-2: its two files, GGUF, tokenizer.json, and the library."""
    merges = content("vocab.bpe").decode().splitlines()[1:3000]
    tokens = [*LETTERS.values(), *(merge.replace(" ", "") for merge in merges), "<|endoftext|>"]
    ids = json.dumps({token: id for id, token in enumerate(tokens)}).encode()
    spec = gpt2.read(gpt2.joined(ids, "\n".join([*merges, ""]).encode())).spec
    Tokenizer.from_spec(spec).save(f"{tmp_path}/m.gguf")
    tok = cpbpe.load(f"{tmp_path}/m.gguf")
    assert tok.spec.pieces == spec.pieces
    tok.save(f"{tmp_path}/m.json")
    other = Theirs.from_file(f"{tmp_path}/m.json")
    for text in some_texts(spec):
        assert tok.encode(text) == other.encode(text, add_special_tokens=False).ids or "<|end" in text


def test_their_reader_reads_it(tmp_path: object) -> None:
    template = Carried({"add_eos": True}, {"eot": "<|end|>"}, {"default": "{{ x }}"})
    spec = made("gpt2", 3)
    path = f"{tmp_path}/m.gguf"
    Tokenizer.from_spec(replace(spec, carried=template)).save(path)
    found = {key: field.contents() for key, field in theirs.GGUFReader(path).fields.items()}
    expected = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.eos_token_id": 259,
        "tokenizer.ggml.eot_token_id": 259,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.ggml.add_eos_token": True,
        "tokenizer.chat_template": "{{ x }}",
        "cpbpe.unicode_form": "",
    }
    assert {key: found[key] for key in expected} == expected
    assert len(found["tokenizer.ggml.tokens"]) == 260
    assert len(found["tokenizer.ggml.merges"]) == 3
    assert found["tokenizer.ggml.token_type"] == [1] * 259 + [3]
    again = cpbpe.load(path)
    assert again.file_options == {"add_eos": True}
    assert again.chat_templates == template.chat_templates
    assert again.token_roles == {"eos": "<|end|>", "eot": "<|end|>"}


def test_their_writer_is_read(tmp_path: object) -> None:
    path = f"{tmp_path}/m.gguf"
    values = byte_level(TOKENS, MERGES)
    writer = theirs.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("llama-bpe")
    writer.add_token_list(values["tokenizer.ggml.tokens"][1])
    writer.add_token_types(values["tokenizer.ggml.token_type"][1])
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(261)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    tok = cpbpe.load(path)
    assert tok.encode_pieces("hello wo") == ["hello", " w", "o"]
    assert (tok.spec.splitter.name if tok.spec.splitter else "", tok.spec.whole) == ("llama3", True)
    assert (tok.bos_id, tok.file_options) == (261, {"add_bos": True})  # which llama-bpe implies


def test_special_tokens_above_a_gap(tmp_path: object) -> None:
    tok = Tokenizer.from_spec(made("gpt2", 4)).with_special_tokens({"<|x|>": 270, "<|y|>": 264})
    tok.save(f"{tmp_path}/m.gguf")
    again = cpbpe.load(f"{tmp_path}/m.gguf")
    assert dict(again.vocab.added_tokens) == {"<|x|>": 270, "<|y|>": 264}
    text = "the <|x|> cat[PAD265]<|y|>"
    assert again.encode(text, allowed_special="all") == tok.encode(text, allowed_special="all")
    far = replace(made("gpt2", 4), added=((b"<|x|>", 1 << 30),))
    with pytest.raises(cpbpe.ConversionError, match="the highest id is 1,073,741,824"):
        write(far)


# --- What a file may say --------------------------------------------------------------------------


def test_kinds_of_tokens() -> None:
    """Padding is left out, and USER_DEFINED tokens are found in every text."""
    tokens = [*TOKENS, "[PAD261]", "<tool>", "ẞ", "", "[PAD265]"]
    types = (ARRAY, INT32), [*[1] * 261, 5, 4, 1, 1, 5, 3]
    found = read(file(byte_level(tokens, MERGES, token_type=types)))
    assert len(found.spec.pieces) == 261
    assert found.spec.added == ((b"<tool>", 262), ("ẞ".encode(), 263), (b"<|end|>", 266))
    notes = "; ".join(found.notes)
    assert "UNUSED tokens are left out (3)" in notes
    tok = Tokenizer.from_spec(found.spec)
    assert tok.encode("<tool><|end|>")[0] == 262
    assert tok.encode("<tool><|end|>", allowed_special="all") == [262, 266]
    assert tok.decode([262, 266], skip_special_tokens=True) == "<tool>"
    assert "'ẞ' has characters that stand for no byte" in notes
    assert "token 264 has no text" in notes


def test_a_token_of_spaces_that_is_found_in_every_text() -> None:
    types = (ARRAY, INT32), [*[1] * 261, 4, 3]
    data = file(byte_level([*TOKENS, "  "], MERGES, token_type=types))
    tok = Tokenizer.from_spec(read(data).spec)
    assert tok.encode("   ") == [261, tok.vocab[" "]]
    again = read(write(tok.spec).data).spec
    assert (again.added, again.carried.tokens) == (tok.spec.added, {"  ": ("plain",)})


@pytest.mark.parametrize(
    ("names", "message", "text"),
    [
        (["<tool>", "<other>"], None, None),
        (["<tool>", "<|fim_prefix|>"], "takes the USER_DEFINED piece .* for CONTROL", "<|fim_prefix|>"),
        (["abc", "cdef"], "the longest USER_DEFINED piece first, and 'abc' and 'cdef' overlap", "abcdef"),
    ],
)
def test_tokens_that_are_found_in_every_text(names: list[str], message: str | None, text: str | None) -> None:
    spec = read(file(byte_level(TOKENS, MERGES))).spec
    added = tuple((name.encode(), len(spec.pieces) + at) for at, name in enumerate(names))
    carried = replace(spec.carried, tokens=dict.fromkeys(names, ("plain",)))
    changed = replace(spec, added=added, carried=carried)
    if message is None:
        assert not write(changed).differences
        return
    with pytest.raises(cpbpe.ConversionError, match=message) as caught:
        write(changed)
    assert caught.value.differences[0][1] == text


def test_without_types() -> None:
    found = read(file(byte_level(TOKENS, MERGES, token_type=None)))
    assert found.spec.pieces == read(file(byte_level(TOKENS, MERGES))).spec.pieces
    assert found.assumptions[0].endswith("for CONTROL, except the letters that stand for bytes")


def test_old_converters_gave_every_token_one_type() -> None:
    types = (ARRAY, INT32), [1] * 262
    found = read(file(byte_level(TOKENS, MERGES, token_type=types)))
    assert found.spec.eos_id == 261
    assert "'<|end|>', which no merges make, is a special token: it has a role" in found.notes


def test_merges_that_are_not_in_the_order_of_ids() -> None:
    found = read(file(byte_level(TOKENS, ["Ġ w", "l l", "h e", "he ll", "hell o"]))).spec
    assert found.pieces[260] == Piece(b" w", -256.0)
    assert Tokenizer.from_spec(found).encode_pieces("hello w") == ["hello", " w"]


@pytest.mark.parametrize("name", KNOWN)
def test_every_name_is_read(name: str) -> None:
    pre = KNOWN[name]
    found = read(file(byte_level(TOKENS, MERGES, pre=(STRING, name.encode()), bos_token_id=(UINT32, 261))))
    spec = found.spec
    assert (spec.splitter, spec.whole, spec.normalizer.unicode_form) == (pre.splitter, pre.whole, pre.form)
    assert spec.carried.options == ({"add_bos": True} if pre.adds_bos else {})
    tok = Tokenizer.from_spec(spec)
    assert tok.decode(tok.encode("hello world 123")) == "hello world 123"


def test_a_name_that_is_not_known() -> None:
    data = file(byte_level(TOKENS, MERGES, pre=(STRING, b"falcon")))
    with pytest.raises(
        cpbpe.ModelError, match="pre is 'falcon', and cpbpe does not know for certain"
    ) as caught:
        read(data)
    assert "say it: pattern='gpt2'" in str(caught.value)
    with pytest.raises(cpbpe.ModelError, match=r"there is no tokenizer\.ggml\.pre, so"):
        read(file(byte_level(TOKENS, MERGES, pre=None)))


def test_a_pattern_that_is_given(tmp_path: object) -> None:
    path = f"{tmp_path}/m.gguf"
    with open(path, "wb") as target:
        target.write(file(byte_level(TOKENS, MERGES, pre=None)))
    with pytest.warns(UserWarning, match="it is made without merging. To change this, set whole=False"):
        tok = cpbpe.load(path, pattern="llama3")
    assert (tok.spec.splitter, tok.spec.whole) == (SplitSpec(PATTERNS["llama3"], "llama3"), True)
    with pytest.warns(UserWarning, match="it is merged like any other"):
        tok = cpbpe.load(path, pattern=r"\w+")
    assert tok.spec.splitter == SplitSpec(r"\w+")
    assert not cpbpe.load(path, pattern="qwen2").spec.whole  # as in all models with this pattern
    with open(path, "wb") as target:
        target.write(file(byte_level(TOKENS, MERGES, pre=(STRING, b"qwen2"))))
    assert cpbpe.load(path).spec.normalizer.unicode_form == "NFC"
    assert cpbpe.load(path, pattern="qwen2").spec.normalizer.unicode_form == ""
    with pytest.raises(ValueError, match="special_tokens is for files that do not say which there are"):
        cpbpe.load(path, special_tokens={"a": 5})


def test_a_pattern_for_sentencepiece_is_refused(tmp_path: object) -> None:
    path = f"{tmp_path}/m.gguf"
    with open(path, "wb") as target:
        target.write(file(tokenizer()))
    with pytest.raises(ValueError, match="pattern is for files of byte-level models, and this GGUF file"):
        cpbpe.load(path, pattern="gpt2")


BROKEN: dict[str, tuple[dict[str, object], str]] = {
    "no merges": ({"merges": None}, "it has no merges (tokenizer.ggml.merges)"),
    "merges as numbers": ({"merges": ((ARRAY, INT32), [1])}, "merges must be an array of string"),
    "one token": ({"merges": (TEXTS, [b"he"])}, "merges[0] is 'he', and must be two tokens with a space"),
    "three tokens": ({"merges": (TEXTS, [b"h e l"])}, "merges[0] is 'h e l', and must be two tokens"),
    "a merge twice": ({"merges": (TEXTS, [b"h e", b"h e"])}, "merges has 'h e' twice, as 0 and as 1"),
    "no such token": ({"merges": (TEXTS, [b"h x"])}, "merges[0] is 'h x', and 'hx' is no token of the type"),
    "not UTF-8": ({"merges": (TEXTS, [b"h e", b"\xff"])}, "merges[1] is b'\\xff', which is not UTF-8"),
    "a form": ({"cpbpe.unicode_form": (STRING, b"NFX")}, "cpbpe.unicode_form is 'NFX', which is none of NFC"),
    "BYTE": ({"token_type": ((ARRAY, INT32), [6] + [1] * 261)}, "token 0, '!', has the type BYTE"),
    "a letter that is special": (
        {"token_type": ((ARRAY, INT32), [3] + [1] * 261)},
        "1 of the 243 (0x21) are missing",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_the_error_says_what_is_wrong(name: str) -> None:
    more, message = BROKEN[name]
    with pytest.raises(cpbpe.ModelError) as caught:
        read(file(byte_level(TOKENS, MERGES, **more)))
    assert message in str(caught.value)


@pytest.mark.parametrize("special", [False, True])
def test_tokens_of_one_text(special: bool) -> None:
    """One is looked for in texts, and the other made by merges."""
    types = (ARRAY, INT32), [*[1] * 261, 3 if special else 4, 3]
    tok = Tokenizer.from_spec(read(file(byte_level([*TOKENS, " w"], MERGES, token_type=types))).spec)
    assert tok.encode("a w", allowed_special="all") == [tok.vocab["a"], 261]
    assert (260 in tok.encode("a w")) == special
    texts = [*TOKENS[:-2], " w", *TOKENS[-2:]]
    types = (ARRAY, INT32), [*[1] * 259, 3, 1, 1, 3]
    with pytest.raises(cpbpe.ModelError, match="have the same text, ' w': one is made of letters"):
        read(file(byte_level(texts, MERGES, token_type=types)))
    with pytest.raises(cpbpe.ModelError, match="'Ġw' twice, as 260 and as 261"):
        read(file(byte_level([*TOKENS, "Ġw"], MERGES, token_type=((ARRAY, INT32), [*[1] * 261, 3, 3]))))


# --- What llama.cpp does --------------------------------------------------------------------------

DIFFERENT: dict[str, tuple[ModelSpec, str, str]] = {
    "capitals": (ranked("É", "aÉ", pattern="tekken"), "knows capitals only from A to Z", "aÉ"),
    "marks": (
        ranked("\u0301", "e\u0301", pattern="o200k"),
        "takes marks such as accents for signs",
        "e\u0301",
    ),
    "long s": (ranked("ſ", "ſt"), "does not take ſ for an s", "'ſt"),
    "cl100k": (
        ranked("\n ", pattern="cl100k"),
        "spaces at the end of a text as llama-bpe",
        "\n ",
    ),
    "whole": (ranked("xyz", pattern="gpt2"), "is taken whole, and llama.cpp merges it", "xyz"),
    "not whole": (ranked("xyz", pattern="tekken", whole=False), "takes a chunk that is a piece whole", "xyz"),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_the_text_of_a_difference_differs(name: str) -> None:
    spec, reason, text = DIFFERENT[name]
    with pytest.raises(cpbpe.ConversionError, match=r"no GGUF file that llama\.cpp uses exactly") as caught:
        write(spec)
    texts = [given for why, given in caught.value.differences if reason in why]
    assert texts == [text]
    pre = name_for(spec) or KNOWN["llama-bpe"]
    assert byte_level_ids(LlamaCppBytes(spec, pre), text) != Tokenizer.from_spec(spec).encode(text)
    assert write(spec, allow_differences=True).differences == tuple(caught.value.differences)


def test_special_tokens_that_llama_cpp_finds_in_every_text() -> None:
    for names, shown in (
        (["<|start|>"], "<|start|>"),
        (["<|end|>", "<|return|>", "<|call|>"], "<|end|>"),
        (["word"], "word"),
    ):
        every = [*BYTES, *(name.encode() for name in names)]
        types = [PieceType.NORMAL] * 256 + [PieceType.CONTROL] * len(names)
        spec = cpbpe.ModelSpec(
            Pieces.of_lists(every, [float(-id) for id in range(len(every))], types),
            made("gpt2").normalizer,
            alphabet="bytes",
            splitter=SplitSpec(PATTERNS["llama3"], "llama3"),
            whole=True,
        )
        (found,) = differences(spec)
        assert found.text == shown


def test_a_space_in_front_is_refused() -> None:
    spec = made("gpt2")
    rules = replace(spec.normalizer, add_dummy_prefix=True, prefix_before_space=False)
    spec = replace(spec, normalizer=rules)
    with pytest.raises(cpbpe.ConversionError, match=r"llama\.cpp puts no space in front"):
        write(spec)
    assert read(write(spec, allow_differences=True).data).spec.normalizer == rules


def test_a_normal_form_is_refused() -> None:
    spec = made("qwen2")
    form = cpbpe.NormalizerSpec("identity", b"", False, False, False, unicode_form="NFC")
    spec = replace(spec, normalizer=form)
    with pytest.raises(cpbpe.ConversionError, match="does not bring texts into the Unicode normal form NFC"):
        write(spec)
    assert read(write(spec, allow_differences=True).data).spec.normalizer == form


@pytest.mark.parametrize("pattern", [r"\w+", None])
def test_a_pattern_without_a_name_is_refused(pattern: str | None) -> None:
    """Also if differences are allowed: it would be another model."""
    with pytest.raises(cpbpe.ConversionError, match=r"A tokenizer\.json can hold"):
        write(model(pattern), allow_differences=True)
    assert gguf.remarks(model(pattern)) == []


def test_tokens_that_would_be_one() -> None:
    every = [*BYTES, "Ġ".encode()]
    types = [PieceType.NORMAL] * 256 + [PieceType.CONTROL]
    spec = cpbpe.ModelSpec(
        Pieces.of_lists(every, [0.0] * 257, types),
        made("gpt2").normalizer,
        alphabet="bytes",
        splitter=SplitSpec(PATTERNS["gpt2"], "gpt2"),
    )
    with pytest.raises(cpbpe.ConversionError, match="'Ġ' is spelled like a piece in a GGUF file"):
        write(spec)


def test_bool() -> None:
    found = read(file(byte_level(TOKENS, MERGES, add_eos_token=(BOOL, 1), add_space_prefix=(BOOL, 1))))
    assert found.spec.carried.options == {"add_eos": True}
    assert any("a space in front of texts" in note for note in found.notes)
