"""`tok.vocab`, a mapping both ways; `tok.settings` and `tok.spec`; and what makes tokenizers equal."""

import copy
import io
import os
import pickle
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sentencepiece

import cpbpe
from cpbpe import ModelError, NormalizerSpec, Piece, Pieces, PieceType, Tokenizer
from cpbpe.model.formats import sentencepiece as model_format
from tests.conftest import ENGINES
from tests.support import processes, tiers, zoo
from tests.support.budget import MUCH
from tests.support.tokenizers import make, tokenizer, with_gaps

WRITTEN_BY_OTHERS = [*zoo.REAL[1:], "orphans", "nul", "unescaped", "unescaped-squeeze", "many-pieces"]
WRITTEN_BY_OTHERS += ["inner-spaces", "broken-pieces", "broken-pieces-no-fallback"]
"""Models whose file sentencepiece's trainer did not write: in them NORMAL pieces state their type, which is
the default and left out by sentencepiece; and "nul" has a piece that is read as one of another type."""


# --- A mapping, both ways -------------------------------------------------------------------------


@tiers.engines
@tiers.models()
def test_a_mapping(name: str, engine: str) -> None:
    """What `collections.abc.Mapping` promises, with the pieces of the file as keys."""
    tok = with_gaps(zoo.model(name), engine)
    vocab: Any = tok.vocab  # typed as a mapping from str, which is half of it
    size = len(tok) - 5
    proto = zoo.parse(zoo.model(name))
    names = [piece.piece.decode(errors="surrogateescape") for piece in proto.pieces]
    added = {"<|a|>": size, "▁<é>": size + 3, "<|c|>": size + 4}
    expected = {**{piece: id for id, piece in enumerate(names)}, **added}
    assert isinstance(tok.vocab, Mapping)
    assert dict(vocab) == dict(vocab.items()) == tok.get_vocab() == expected
    assert list(vocab) == list(vocab.keys()) == [*names, *added]
    assert list(vocab.values()) == [*range(size), *added.values()]
    assert (len(vocab), vocab.size, vocab.piece_count) == (size + 3, size + 5, size)
    assert vocab == expected == dict(vocab)
    assert vocab == with_gaps(zoo.model(name), engine).vocab
    assert vocab != tokenizer(name, engine).vocab
    for piece, id in [*expected.items()][:: 1 if MUCH else 1 + size // 2000]:
        data = piece.encode(errors="surrogateescape")
        assert vocab[piece] == vocab[data] == vocab.get(piece) == vocab.get(data) == id
        assert vocab[id] == vocab.get(id) == piece
        assert piece in vocab
        assert data in vocab
        assert id in vocab
    assert [vocab[np.int64(size)], vocab.get(np.uint8(3))] == ["<|a|>", names[3]]
    assert np.int32(size) in vocab
    for gap in (size + 1, size + 2, size + 5, -1, 1 << 70):
        assert gap not in vocab
        assert vocab.get(gap) is None
        with pytest.raises(IndexError, match=r"not in use|outside the vocabulary"):
            vocab[gap]


@tiers.engines
@tiers.models()
def test_columns(name: str, engine: str) -> None:
    """Scores and types as arrays, and one by one, are those of the file."""
    tok = tokenizer(name, engine)
    pieces = zoo.parse(zoo.model(name)).pieces
    nul = {id for id, piece in enumerate(pieces) if piece.piece == b"\0"}  # which is read as UNUSED
    scores = np.array([piece.score for piece in pieces], np.float32)
    assert tok.vocab.scores.dtype == np.float32
    assert tok.vocab.scores.tobytes() == scores.tobytes()
    assert tok.vocab.types.dtype == np.uint8
    types = [PieceType.UNUSED if id in nul else piece.type for id, piece in enumerate(pieces)]
    assert tok.vocab.types.tolist() == types
    for id in range(0, len(pieces), 1 + len(pieces) // 500):
        assert np.float32(tok.vocab.score(id)).tobytes() == scores[id].tobytes()
        assert tok.vocab.piece_type(id) == types[id]
    for column in (tok.vocab.scores, tok.vocab.types):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1
    control = {p.piece.decode(): id for id, p in enumerate(pieces) if p.type == zoo.Piece.CONTROL}
    assert tok.vocab.special_tokens == control
    assert tok.vocab.added_tokens == {}


def test_pieces_that_are_not_text(engine: str) -> None:
    tok = make(zoo.model("broken-pieces"), engine, ["\ufffd"])
    vocab: Any = tok.vocab
    id = vocab[b"\xe2\x96"]
    assert vocab[id] == os.fsdecode(b"\xe2\x96") == "\udce2\udc96"
    assert vocab["\udce2\udc96"] == id
    # U+FFFD is what such bytes read as, and not what they are.
    assert vocab["\ufffd"] == tok.piece_to_id("\ufffd") == vocab.piece_count
    for other in (b"\xfe", b"\xe2"):
        assert other not in vocab
        assert (vocab.get(other), tok.piece_to_id(other)) == (None, None)
    # Surrogates that mean no byte, and other spellings of valid UTF-8, are not keys.
    for key in ("\ud800", "a\udfff", "\udce2\udc96\udc81"):
        assert key not in vocab
        assert vocab.get(key, 5) == 5
        with pytest.raises(KeyError):
            vocab[key]


def test_the_nul_piece(engine: str) -> None:
    """sentencepiece does not find it; it is in the vocabulary all the same."""
    for name in ("nul", "nul-unused"):
        tok = tokenizer(name, engine)
        id = len(tok) - 1
        assert tok.vocab["\0"] == tok.vocab[b"\0"] == id
        assert tok.vocab[id] == "\0"
        assert "\0" in tok.vocab
        assert tok.piece_to_id("\0") is None
        assert tok.get_vocab()["\0"] == id
    assert "\0" not in tokenizer("llama", engine).vocab


def test_what_is_no_key(engine: str) -> None:
    vocab = with_gaps(zoo.model("llama"), engine).vocab
    with pytest.raises(
        KeyError, match=r"'nope' is not in the vocabulary.* vocab\.get\(\) returns None .* tok\.encode\(\)"
    ):
        vocab["nope"]
    with pytest.raises(IndexError, match="id 705 is outside the vocabulary: 705 pieces, 0 to 704"):
        vocab[705]
    with pytest.raises(IndexError, match=r"id 701 is not in use: .*tok\.vocab\.added_tokens lists"):
        vocab[701]
    wrong: list[Any] = [None, 1.5, ["a"], ("a",), bytearray(b"a")]
    for key in wrong:
        assert key not in vocab
        assert vocab.get(key) is None
        kind = type(key).__name__
        with pytest.raises(TypeError, match=rf"takes a piece \(str or bytes\) or an id .*, not {kind}"):
            vocab[key]
    assert [vocab.get("nope", 7), vocab.get(705, "x"), vocab.get("<s>", 7)] == [7, "x", 1]
    with pytest.raises(TypeError, match="unhashable"):
        hash(vocab)
    assert repr(vocab) == "<cpbpe.Vocabulary: 700 pieces and 3 added tokens>"
    with pytest.raises(TypeError):
        vocab.special_tokens["<s>"] = 5  # type: ignore[index]
    with pytest.raises(TypeError):
        vocab.added_tokens["<|a|>"] = 5  # type: ignore[index]


# --- Settings and spec ----------------------------------------------------------------------------


def fields(message: Any) -> dict[str, Any]:
    """The fields that are set, as protobuf lists them."""
    made: dict[str, Any] = {}
    for field, value in message.ListFields():
        if field.enum_type is not None:
            value = field.enum_type.values_by_number[value].name.lower()
        elif isinstance(value, bytes) and field.name != "precompiled_charsmap":
            value = value.decode()
        elif not isinstance(value, (int, float, bytes)):
            value = [item.decode() for item in value]
        made[field.name] = value
    return made


def test_changing_settings_changes_no_tokenizer() -> None:
    tok = tokenizer("llama", "core")
    expected = [tok.settings, tok.spec, tok.file_options, tok.to_bytes()]
    for settings in (tok.settings, tok.spec.settings, tok.inspect().settings):
        settings.trainer["vocab_size"] = 5  # type: ignore[index]
        settings.trainer.setdefault("control_symbols", []).append("x")  # type: ignore[attr-defined]
        settings.normalizer["name"] = "x"  # type: ignore[index]
    tok.spec.carried.options["add_eos"] = True  # type: ignore[index]
    tok.spec.carried.roles["mask"] = "x"  # type: ignore[index]
    tok.file_options["add_eos"] = True
    assert [tok.settings, tok.spec, tok.file_options, tok.to_bytes()] == expected
    assert "mask" not in tok.token_roles


@tiers.engines
@tiers.models()
def test_settings_and_spec(name: str, engine: str) -> None:
    tok, proto = tokenizer(name, engine), zoo.parse(zoo.model(name))
    assert tok.settings == tok.spec.settings
    assert tok.settings.trainer == fields(proto.trainer_spec)
    assert tok.settings.normalizer == fields(proto.normalizer_spec)
    denormalizer = fields(proto.denormalizer_spec) if proto.HasField("denormalizer_spec") else None
    assert tok.settings.denormalizer == denormalizer

    spec, trainer, normalizer = tok.spec, proto.trainer_spec, proto.normalizer_spec
    assert list(spec.pieces.texts) == [piece.piece for piece in proto.pieces]
    assert spec.byte_fallback == trainer.byte_fallback
    assert spec.unk_surface == trainer.unk_surface
    assert spec.normalizer == NormalizerSpec(
        name=normalizer.name.decode(),
        charsmap=normalizer.precompiled_charsmap,
        add_dummy_prefix=normalizer.add_dummy_prefix,
        remove_extra_whitespaces=normalizer.remove_extra_whitespaces,
        escape_whitespaces=normalizer.escape_whitespaces,
        suffix=trainer.treat_whitespace_as_suffix,
    )
    assert (spec.denormalizer is None) == (denormalizer is None)
    assert [spec.unk_id, spec.bos_id, spec.eos_id, spec.pad_id] == [
        tok.unk_id,
        tok.bos_id,
        tok.eos_id,
        tok.pad_id,
    ]
    assert spec.file == tok.to_bytes() == zoo.model(name)
    assert spec == model_format.read(zoo.model(name))


TEXT = "The old  lighthouse keeper\tcounted é☃🦙 ﬁ <s> abracadabra 1,024 ▁x"


@tiers.engines
@tiers.models()
def test_a_spec_makes_the_same_tokenizer(name: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPBPE_ENGINE", engine)
    tok = with_gaps(zoo.model(name), engine)
    again = Tokenizer.from_spec(tok.spec)
    assert again == tok
    assert again.to_bytes() == tok.to_bytes()
    assert again.encode(TEXT, allowed_special="all") == tok.encode(TEXT, allowed_special="all")
    added = {text.decode(): id for text, id in tok.spec.added}
    assert again.vocab.added_tokens == tok.vocab.added_tokens == added
    new = Tokenizer.from_spec(replace(tok.spec, file=None))
    assert new.spec == tok.spec
    assert dict(new.vocab) == dict(tok.vocab)
    assert new.encode(TEXT) == tok.encode(TEXT)
    assert new.decode(new.encode(TEXT)) == tok.decode(tok.encode(TEXT))


@tiers.models()
def test_a_spec_is_written_as_sentencepiece_writes(name: str) -> None:
    """Byte for byte, where sentencepiece wrote the file; a file that means the same where others did."""
    data = zoo.model(name)
    spec = tokenizer(name, ENGINES[0]).spec
    written = model_format.write(replace(spec, file=None))
    assert (written == data) == (name not in WRITTEN_BY_OTHERS)
    assert model_format.read(written) == spec
    if name in WRITTEN_BY_OTHERS and name != "nul":
        # They differ in nothing but types that are the default, and stated.
        proto = zoo.parse(data)
        for piece in proto.pieces:
            if piece.type == zoo.Piece.NORMAL:
                piece.ClearField("type")
        assert proto.SerializeToString() == written
    theirs = sentencepiece.SentencePieceProcessor(model_proto=written)
    assert theirs.encode(TEXT) == sentencepiece.SentencePieceProcessor(model_proto=data).encode(TEXT)


def test_a_changed_spec_is_another_model(engine: str) -> None:
    """Also where the file that it was read from is still in it."""
    tok = Tokenizer.from_bytes(zoo.model("defaults"))
    pieces = Pieces.of([*tok.spec.pieces, Piece("▁lighthouse keeper".encode(), 0.0, PieceType.USER_DEFINED)])
    changed = {
        "unk_surface": b"?",
        "pieces": pieces,
        "normalizer": replace(tok.spec.normalizer, add_dummy_prefix=False),
        "added": ((b"<|x|>", 900),),
        "settings": cpbpe.Settings(trainer={"model_type": "bpe"}),
    }
    for field, value in changed.items():
        new = Tokenizer.from_spec(replace(tok.spec, **{field: value}))  # type: ignore[arg-type]
        assert getattr(new.spec, field) == value or field == "settings"
        assert new != tok
        assert new.fingerprint != tok.fingerprint
        for again in (pickle.loads(pickle.dumps(new)), Tokenizer.from_bytes(new.to_bytes())):
            assert again == new
            assert again.spec == new.spec
            assert dict(again.vocab) == dict(new.vocab)
            assert again.encode(TEXT) == new.encode(TEXT)
    assert Tokenizer.from_spec(replace(tok.spec)) == tok
    wrong: list[Any] = [None, tok, zoo.model("llama"), "model"]
    for other in wrong:
        with pytest.raises(TypeError, match=r"from_spec\(\) takes a ModelSpec, not"):
            Tokenizer.from_spec(other)
    with pytest.raises(ModelError, match="occurs twice"):
        Tokenizer.from_spec(replace(tok.spec, pieces=Pieces.of([*tok.spec.pieces, tok.spec.pieces[9]])))


def test_added_tokens_are_in_the_spec(engine: str) -> None:
    tok = Tokenizer.from_bytes(zoo.model("llama"))
    more = tok.with_special_tokens(["<|x|>"]).with_special_tokens({"<|y|>": 800})
    assert tok.spec.added == ()
    assert more.spec.added == ((b"<|x|>", 700), (b"<|y|>", 800))
    assert more.spec == model_format.read(more.to_bytes())
    fewer = Tokenizer.from_spec(replace(more.spec, added=()))
    assert fewer.vocab == tok.vocab
    assert fewer.to_bytes() == tok.to_bytes()


# --- Equality, hashes, pickles --------------------------------------------------------------------


class Mine(Tokenizer):
    """A subclass with a call of its own."""

    def encode(self, text: Any, **options: Any) -> list[int]:
        return [7, *super().encode(text, **options)]


def test_bound_tokenizers_are_values(engine: str) -> None:
    tok = Tokenizer.from_bytes(zoo.model("llama"))
    names = {"</s>", "<s>"}
    bound = tok.using(add_bos=True, allowed_special=names)
    equal = [
        tok.using(allowed_special=["<s>", "</s>"], add_bos=True),
        tok.using(add_bos=True).using(allowed_special={"<s>": 1, "</s>": 2}.keys()),
        tok.using(add_bos=False, allowed_special="all").using(add_bos=True, allowed_special=names),
        tok.using().using(add_bos=True, allowed_special=("</s>", "<s>", "<s>")),
        tok.using(add_bos=np.True_, allowed_special=names),  # type: ignore[arg-type]
        tok.using(add_bos=1, allowed_special=names),  # type: ignore[arg-type]
        pickle.loads(pickle.dumps(bound)),
        copy.copy(bound),
        copy.deepcopy(bound),
        bound.using(),
    ]
    for other in equal:
        assert other == bound
        assert hash(other) == hash(bound)
        assert other.fingerprint == bound.fingerprint
        assert other.encode("a</s>") == [1, *tok.encode("a"), 2]
        assert pickle.dumps(other) == pickle.dumps(pickle.loads(pickle.dumps(other)))
    names.clear()  # it is the caller's own
    assert bound.encode("a</s>") == [1, *tok.encode("a"), 2]
    different = [tok, tok.using(add_bos=True), bound.using(add_eos=True), tok.using(allowed_special="all")]
    for other in different:
        assert other != bound
        assert other.fingerprint != bound.fingerprint
    assert len({bound, *equal, *different}) == 5
    sampling = tok.using(alpha=1, seed=np.int64(3))  # type: ignore[arg-type]
    assert repr(dict(sampling.bound_options)) == "{'alpha': 1.0, 'seed': 3}"
    assert sampling == tok.using(alpha=np.float64(1), seed=3)
    assert sampling.fingerprint == tok.using(alpha=1.0, seed=3).fingerprint
    assert tok.using() == tok
    assert tok.using().fingerprint == tok.fingerprint
    assert dict(tok.bound_options) == {}
    with pytest.raises(TypeError):
        bound.bound_options["add_bos"] = False  # type: ignore[index]
    for maker in (bound, type(bound)):  # what is made anew has nothing bound
        for new in (maker.from_bytes(tok.to_bytes()), maker.from_spec(tok.spec)):
            assert new == tok
            assert new.encode("a") == tok.encode("a")
            assert pickle.loads(pickle.dumps(new.using(add_bos=True))) == tok.using(add_bos=True)
    more = bound.with_special_tokens(["<|x|>"])
    assert more.bound_options == bound.bound_options
    assert more.encode("a") == bound.encode("a")


def test_using_says_at_once_what_calls_would_say(engine: str) -> None:
    tok = Tokenizer.from_bytes(zoo.model("no-bos-empty-surface"))
    with pytest.raises(ValueError, match="add_bos=True, but this model defines no bos piece"):
        tok.using(add_bos=True)
    with pytest.raises(ValueError, match="'<nope>' is not a special token"):
        tok.using(allowed_special={"<nope>"})
    with pytest.raises(ValueError, match="choose one"):
        tok.using(allowed_special={"</s>"}).using(disallowed_special={"</s>"})


def test_subclasses(engine: str) -> None:
    """They stay what they are, and what is bound reaches the calls that they override."""
    plain = Tokenizer.from_bytes(zoo.model("llama"))
    mine = Mine.from_bytes(zoo.model("llama"))
    assert mine == plain
    assert hash(mine) == hash(plain)
    assert mine.fingerprint == plain.fingerprint
    ids = [7, 1, *plain.encode("a")]
    assert mine.encode("a", add_bos=True) == ids
    bound = mine.using(add_bos=True)
    for one in (
        bound,
        pickle.loads(pickle.dumps(bound)),
        mine.using(add_eos=True).using(add_bos=True, add_eos=False),
    ):
        assert isinstance(one, Mine)
        assert one.encode("a") == ids
        assert one.encode("a", add_bos=False) == [7, *plain.encode("a")]
        assert one.count("a") == len(ids) - 1
    assert type(pickle.loads(pickle.dumps(mine))) is Mine
    assert type(mine.with_special_tokens(["<|x|>"])) is Mine
    assert type(Mine.from_spec(plain.spec)) is Mine
    saved = io.BytesIO(mine.to_bytes())
    assert type(Mine(saved)) is Mine


def test_fingerprints_are_the_same_everywhere() -> None:
    """In other processes, too, where the hashes of str are others."""
    code = (
        "import sys, pickle, hashlib, cpbpe\n"
        "tok = cpbpe.load(sys.argv[1]).using(allowed_special={'<s>', '</s>', '[INST]'}, add_bos=True)\n"
        "print(tok.fingerprint, hashlib.sha256(pickle.dumps(tok)).hexdigest())"
    )
    path = zoo.real_path(zoo.REAL[1])
    found = {
        processes.output("-c", code, path, env=processes.environment(PYTHONHASHSEED=str(number)))
        for number in (1, 2, 3)
    }
    assert len(found) == 1
