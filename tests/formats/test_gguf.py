"""GGUF files: written, read by the package `gguf` and by us; and what llama.cpp does with them."""

import gguf as theirs
import pytest

import cpbpe
from cpbpe import ModelSpec, Piece, Pieces, PieceType, Tokenizer
from cpbpe.model.formats.gguf import differences, read, write
from cpbpe.model.formats.gguf.llamacpp import LlamaCpp
from cpbpe.model.spec import Carried, NormalizerSpec
from tests.support import budget, gguf_files, tiers, zoo
from tests.support.json_files import spec_of, texts_for
from tests.support.llamacpp import ids

PLAIN = NormalizerSpec("identity", remove_extra_whitespaces=False)
EXACT = {*zoo.REAL, "llama", "deep-unused", "nul", "fractional-scores"}
CASES = tiers.some([*zoo.NAMES], ["llama", "special", "user-defined-llama", "unused", "no-unk"])


def with_rows(*rows: tuple[str, float, PieceType], prefix: bool = False) -> ModelSpec:
    """A model with byte fallback, and more pieces."""
    more = [Piece(text.encode(), score, type) for text, score, type in rows]
    rules = NormalizerSpec("identity", add_dummy_prefix=prefix, remove_extra_whitespaces=False)
    return ModelSpec(Pieces.of([*gguf_files.ROWS, *more]), rules, byte_fallback=True)


# --- Writing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_what_is_written_is_read_again(name: str) -> None:
    spec = spec_of(name)
    made = write(spec, allow_differences=True)
    again = read(made.data).spec
    for piece, found in zip(spec.pieces, again.pieces, strict=True):
        spaced = piece.type == PieceType.USER_DEFINED and b" " in piece.text
        expected = piece._replace(text=piece.text.replace(b" ", "▁".encode())) if spaced else piece
        assert str(found) == str(expected)  # scores may be NaN, which is not equal to itself
    assert again.byte_fallback == spec.byte_fallback
    assert again.normalizer.charsmap == spec.normalizer.charsmap
    assert again.normalizer.add_dummy_prefix == spec.normalizer.add_dummy_prefix
    assert spec.bos_id in (None, again.bos_id)
    assert spec.eos_id in (None, again.eos_id)
    data = write(again, allow_differences=True).data
    assert write(read(data).spec, allow_differences=True).data == data


def test_their_reader_reads_it(tmp_path: object) -> None:
    template = Carried({"add_bos": True}, {"eot": "</s>"}, {"default": "{{ x }}", "tool": "é"})
    spec = cpbpe.ModelSpec(Pieces.of(gguf_files.ROWS), PLAIN, byte_fallback=True, carried=template)
    path = f"{tmp_path}/m.gguf"
    Tokenizer.from_spec(spec).save(path)
    reader = theirs.GGUFReader(path)
    found = {key: field.contents() for key, field in reader.fields.items()}
    assert not reader.tensors
    assert found["tokenizer.ggml.tokens"] == [row[0].decode() for row in gguf_files.ROWS]
    assert found["tokenizer.ggml.scores"] == [row[1] for row in gguf_files.ROWS]
    assert found["tokenizer.ggml.token_type"] == [row[2] for row in gguf_files.ROWS]
    expected = {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.eot_token_id": 2,
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.add_eos_token": False,
        "tokenizer.ggml.add_space_prefix": True,
        "tokenizer.ggml.remove_extra_whitespaces": False,
        "tokenizer.chat_template": "{{ x }}",
        "tokenizer.chat_template.tool": "é",
        "tokenizer.chat_templates": ["tool"],
    }
    assert {key: found[key] for key in expected} == expected
    again = cpbpe.load(path).spec
    assert again.carried.chat_templates == template.chat_templates
    assert again.carried.options == {"add_bos": True}
    assert again.carried.roles == {"bos": "<s>", "eos": "</s>", "unk": "<unk>", "eot": "</s>"}


def test_their_writer_is_read(tmp_path: object) -> None:
    """A file from the package that llama.cpp's converter uses, with weights after the values."""
    import numpy as np

    path = f"{tmp_path}/m.gguf"
    writer = theirs.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([row[0] for row in gguf_files.ROWS])
    writer.add_token_scores([float(row[1]) for row in gguf_files.ROWS])
    writer.add_token_types([int(row[2]) for row in gguf_files.ROWS])
    writer.add_add_space_prefix(False)
    writer.add_add_bos_token(False)
    writer.add_chat_template([{"name": "default", "template": "x"}, {"name": "rag", "template": "y"}])
    writer.add_tensor("w", np.zeros((64, 64), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    tok = cpbpe.load(path)
    assert tok.spec.pieces == Pieces.of(gguf_files.ROWS)
    assert not tok.spec.normalizer.add_dummy_prefix
    roles = {"bos": "<s>", "eos": "</s>", "unk": "<unk>"}
    assert tok.spec.carried == Carried({}, roles, {"default": "x", "rag": "y"})
    assert tok.encode_pieces("ab☃") == ["ab", "<0xE2>", "<0x98>", "<0x83>"]


def test_added_tokens_become_pieces(tmp_path: object) -> None:
    tok = Tokenizer.from_spec(with_rows(prefix=True)).with_special_tokens({"<|x|>": 266, "<|y|>": 264})
    tok.save(f"{tmp_path}/m.gguf")
    again = cpbpe.load(f"{tmp_path}/m.gguf")
    assert [again.vocab[id] for id in (264, 265, 266)] == ["<|y|>", "[PAD265]", "<|x|>"]
    types = [again.vocab.piece_type(id).name for id in (264, 265, 266)]
    assert types == ["CONTROL", "UNUSED", "CONTROL"]
    text = "ab <|x|>[PAD265]"
    assert again.encode(text, allowed_special="all") == tok.encode(text, allowed_special="all")


def test_spaces_of_user_defined_pieces() -> None:
    """In the file they are spaces, as llama.cpp looks for them in given text; read, they are U+2581."""
    spec = with_rows(("▁▁", 0, PieceType.USER_DEFINED))
    made = write(spec, allow_differences=True)
    assert b"\x02\0\0\0\0\0\0\0  " in made.data
    assert read(made.data).spec.pieces == spec.pieces
    both = with_rows(("▁▁", 0, PieceType.USER_DEFINED), ("  ", 0, PieceType.NORMAL))
    with pytest.raises(cpbpe.ConversionError, match="there is a piece '  ' already"):
        write(both, allow_differences=True)


def test_bos_is_asked_for(tmp_path: object) -> None:
    source, target = f"{tmp_path}/m.model", f"{tmp_path}/m.gguf"
    Tokenizer.from_spec(with_rows(prefix=True)).save(source)
    plain = cpbpe.convert(source, target)
    assert plain.is_exact
    assert any("pass add_bos=True" in note for note in plain.notes)
    assert cpbpe.load(target).spec.carried.options == {}
    asked = cpbpe.convert(source, target, add_bos=True)
    assert not any("add_bos" in note for note in asked.notes)
    assert cpbpe.load(target).spec.carried.options == {"add_bos": True}


# --- What llama.cpp does --------------------------------------------------------------------------

U, C, D, N, X = (
    PieceType.UNUSED,
    PieceType.CONTROL,
    PieceType.USER_DEFINED,
    PieceType.NORMAL,
    PieceType.UNKNOWN,
)
DIFFERENT: dict[str, tuple[ModelSpec, str]] = {
    "a CONTROL piece that is merged": (with_rows(("bb", 0, C)), "finds the CONTROL piece 'bb'"),
    "a CONTROL character": (with_rows(("~", 0, C)), "finds the CONTROL piece '~'"),
    "a BYTE piece": (
        with_rows(*((text, -9, N) for text in ("<", "0", "x", "A", ">", "<0", "<0x", "0A", "0A>"))),
        "finds the BYTE piece '<0x0A>'",
    ),
    "an UNUSED piece": (with_rows(("aba", -9, U)), "finds the UNUSED piece 'aba'"),
    "an UNUSED character": (with_rows(("~", 0, U)), "finds the UNUSED piece '~'"),
    "user-defined with a prefix": (with_rows(("ba", 0, D), prefix=True), "each with a prefix"),
    "user-defined with a space": (with_rows(("b▁", 0, D)), "written with spaces"),
    "user-defined that overlap": (with_rows(("ab", 0, D), ("baa", 0, D)), "overlap"),
    "user-defined ends": (
        with_rows(("<|im_end|>", 0, D)),
        "takes the USER_DEFINED piece '<|im_end|>' for CONTROL",
    ),
}


@pytest.mark.parametrize("name", [name for name in DIFFERENT if name != "user-defined that overlap"])
def test_the_text_of_a_difference_differs(name: str) -> None:
    spec, reason = DIFFERENT[name]
    found = differences(spec)
    assert reason in found[0].reason
    assert found[0].text is not None
    assert ids(LlamaCpp(spec), found[0].text) != Tokenizer.from_spec(spec).encode(found[0].text)
    with pytest.raises(cpbpe.ConversionError, match=r"no GGUF file that llama\.cpp uses exactly"):
        write(spec)


def test_the_longest_first_is_not_always_from_left_to_right() -> None:
    rows = [row for row in gguf_files.ROWS if row[0] != b"ab"]
    more = [(b"ab", 0, D), (b"baa", 0, D)]
    spec = ModelSpec(
        Pieces.of([*rows, *more]),
        NormalizerSpec("", add_dummy_prefix=False, remove_extra_whitespaces=False),
        byte_fallback=True,
    )
    (found,) = differences(spec)
    assert found.text == "abaa"
    assert ids(LlamaCpp(spec), "abaa") != Tokenizer.from_spec(spec).encode("abaa")


SAME: dict[str, ModelSpec] = {
    "a CONTROL piece that is never merged": with_rows(("<|x|>", 0, C), ("x|", -5, N)),
    "UNUSED padding": with_rows(("[PAD264]", -10000, U), ("[PAD265]", -10000, U)),
    "runs": with_rows(*(("\n" * count, 0, D) for count in range(1, 9))),
    "user-defined, the left one longer": with_rows(("<x>y", 0, D), ("yz", 0, D)),
    "user-defined inside another": with_rows(("<tool>", 0, D), ("tool", 0, D)),
    "equal scores": with_rows(("ba", -1, N), ("aba", -1, N), ("bab", -1, N)),
}


@pytest.mark.parametrize("name", SAME)
def test_models_that_are_the_same(name: str) -> None:
    spec = SAME[name]
    assert differences(spec) == []
    theirs, tok = LlamaCpp(spec), Tokenizer.from_spec(spec)
    for text in texts_for(spec, budget.examples(300), budget.SEED):
        assert ids(theirs, text) == tok.encode(text), text


@pytest.mark.parametrize("name", CASES)
def test_models_of_the_zoo(name: str) -> None:
    spec = spec_of(name)
    found = differences(spec)
    theirs, tok = LlamaCpp(spec), Tokenizer.from_spec(spec)
    if not found:
        for text in texts_for(spec, budget.examples(200), budget.SEED):
            assert ids(theirs, text) == tok.encode(text), text
    for difference in found:
        if difference.text is not None and spec.byte_fallback:
            assert ids(theirs, difference.text) != tok.encode(difference.text), difference


def test_what_llama_cpp_does_is_named_when_a_file_is_converted(tmp_path: object) -> None:
    """Reading is never refused because of it."""
    spec = with_rows(("bb", 0, PieceType.CONTROL))
    path = f"{tmp_path}/m.gguf"
    with open(path, "wb") as file:
        file.write(write(spec, allow_differences=True).data)
    conversion = cpbpe.convert(path, f"{tmp_path}/m.model")
    assert conversion.is_exact
    assert any(
        note.startswith("not as in llama.cpp: llama.cpp finds the CONTROL") for note in conversion.notes
    )
