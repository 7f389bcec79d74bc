"""cpbpe.compat.sentencepiece beside sentencepiece: loading, pickles, sampling, and random texts.

`test_compat_matrix` has the calls on a loaded processor.
"""

import collections
import copy
import os
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpbpe.compat.sentencepiece import SentencePieceProcessor
from cpbpe.model.formats import model_pb2
from tests.conftest import CORE
from tests.support import budget, processes, texts, tiers, zoo
from tests.support.compat_calls import OURS, THEIR_MODELS, THEIRS, Call, compare, outcome, pair, plain

BOTH = pytest.mark.parametrize("spm", [THEIRS, OURS], ids=["sentencepiece", "cpbpe"])
EXAMPLES = budget.examples(50)
LLAMA = zoo.model("llama")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.model").write_bytes(LLAMA)
    Path("empty.model").write_bytes(b"")
    Path("garbage.model").write_bytes(b"garbage")


# --- Loading ---------------------------------------------------------------------------------------


def made(**change: Any) -> bytes:
    """The test model with one thing wrong with it."""
    proto = zoo.parse(LLAMA)
    for name, value in change.items():
        setattr(proto.pieces[300], name, value)
    return proto.SerializeToString()


LOADING: dict[str, Callable[[Any], Any]] = {
    "file": lambda spm: spm.SentencePieceProcessor(model_file="m.model"),
    "file as bytes": lambda spm: spm.SentencePieceProcessor(model_file=b"m.model"),
    "first argument": lambda spm: spm.SentencePieceProcessor("m.model"),
    "from_file": lambda spm: spm.SentencePieceProcessor.from_file("m.model", out_type=str),
    "from_proto": lambda spm: spm.SentencePieceProcessor.from_proto(LLAMA, return_type=str, add_bos=True),
    "a message": lambda spm: spm.SentencePieceProcessor(
        model_proto=THEIR_MODELS.ModelProto.FromString(LLAMA)
    ),
    "our message": lambda spm: spm.SentencePieceProcessor(model_proto=model_pb2.ModelProto.FromString(LLAMA)),
    "both": lambda spm: spm.SentencePieceProcessor(model_file="m.model", model_proto=LLAMA),
    "path": lambda spm: spm.SentencePieceProcessor(model_file=Path("m.model")),
    "no file": lambda spm: spm.SentencePieceProcessor(model_file="none.model"),
    "a folder": lambda spm: spm.SentencePieceProcessor(model_file="."),
    "NUL in the name": lambda spm: spm.SentencePieceProcessor(model_file="a\0b"),
    "half a character in the name": lambda spm: spm.SentencePieceProcessor(model_file="a\ud800"),
    "no name": lambda spm: spm.SentencePieceProcessor.from_file(""),
    "None": lambda spm: spm.SentencePieceProcessor.from_file(None),
    "a number": lambda spm: spm.SentencePieceProcessor(model_file=5),
    "empty file": lambda spm: spm.SentencePieceProcessor(model_file="empty.model"),
    "garbage file": lambda spm: spm.SentencePieceProcessor(model_file="garbage.model"),
    "no bytes": lambda spm: spm.SentencePieceProcessor.from_proto(b""),
    "garbage": lambda spm: spm.SentencePieceProcessor(model_proto=b"garbage"),
    "cut off": lambda spm: spm.SentencePieceProcessor(model_proto=LLAMA[:-5]),
    "str": lambda spm: spm.SentencePieceProcessor(model_proto="garbage"),
    "bytearray": lambda spm: spm.SentencePieceProcessor(model_proto=bytearray(LLAMA)),
    "memoryview": lambda spm: spm.SentencePieceProcessor(model_proto=memoryview(LLAMA)),
    "object": lambda spm: spm.SentencePieceProcessor(model_proto=object()),
    "an empty piece": lambda spm: spm.SentencePieceProcessor(model_proto=made(piece=b"")),
    "a piece twice": lambda spm: spm.SentencePieceProcessor(model_proto=made(piece=b"<s>")),
    "a long piece": lambda spm: spm.SentencePieceProcessor(model_proto=made(piece=b"x" * 8000)),
    "two UNKNOWN": lambda spm: spm.SentencePieceProcessor(model_proto=made(type=2)),
    "bad byte": lambda spm: spm.SentencePieceProcessor(model_proto=made(type=6)),
    "model_file twice": lambda spm: spm.SentencePieceProcessor.from_file("m.model", model_file="m.model"),
    "another model": lambda spm: spm.SentencePieceProcessor.from_file("m.model", model_proto=LLAMA),
    "file for proto": lambda spm: spm.SentencePieceProcessor.from_proto(LLAMA, model_file="m.model"),
    "bad return type": lambda spm: spm.SentencePieceProcessor(return_type="ids"),
    "immutable": lambda spm: spm.SentencePieceProcessor(out_type="immutable_proto"),
    "two return types": lambda spm: spm.SentencePieceProcessor(return_type=int, out_type=str),
    "no such option": lambda spm: spm.SentencePieceProcessor(model="m.model"),
}


@pytest.mark.parametrize("name", LOADING)
def test_loading(engine: str, name: str) -> None:
    def run(spm: Any) -> Any:
        sp = LOADING[name](spm)
        return sp.encode("Hello world"), sp.get_piece_size()

    compare(name, lambda: run(THEIRS), lambda: run(OURS))


@pytest.mark.parametrize("kind", ["UNIGRAM", "WORD", "CHAR"])
def test_other_models_are_refused(engine: str, kind: str) -> None:
    proto = zoo.parse(zoo.model("defaults"))
    proto.trainer_spec.model_type = getattr(model_pb2.TrainerSpec, kind)
    data = proto.SerializeToString()
    assert THEIRS.SentencePieceProcessor(model_proto=data).get_piece_size() == 600
    with pytest.raises(RuntimeError, match=f"the model is {kind}, and cpbpe reads BPE models only") as caught:
        OURS.SentencePieceProcessor(model_proto=data)
    assert type(caught.value) is RuntimeError


@BOTH
@pytest.mark.parametrize(
    ("load", "left"),
    [
        (lambda sp: sp.Load("none.model"), 700),
        (lambda sp: sp.load_from_serialized_proto(b"garbage"), 700),
        (lambda sp: sp.load(), 700),
        (lambda sp: sp.LoadFromSerializedProto(made(piece=b"")), 0),
        (lambda sp: sp.load_from_serialized_proto(b""), 0),
    ],
)
def test_what_a_failed_load_leaves(spm: Any, load: Callable[[Any], Any], left: int) -> None:
    sp = spm.SentencePieceProcessor(model_proto=LLAMA)
    with pytest.raises((RuntimeError, ValueError)):
        load(sp)
    assert len(sp) == left
    assert sp.load(model_file="m.model") is True
    assert len(sp) == 700


@tiers.models()
def test_the_model_comes_out_as_sentencepiece_writes_it(name: str) -> None:
    theirs, ours = pair(name, os.environ.get("CPBPE_ENGINE") or "core")
    assert ours.serialized_model_proto() == theirs.serialized_model_proto()
    unknown = b"\xc2\x3e\x03abc"
    data = unknown + zoo.model(name) + unknown
    written = [
        spm.SentencePieceProcessor(model_proto=data).serialized_model_proto() for spm in (OURS, THEIRS)
    ]
    assert written[0] == written[1]


@pytest.mark.parametrize("order", ["44", "45", "54", "454", "4545", "949", "94", "49"])
def test_fields_that_sentencepiece_does_not_know_stay_where_they_are(order: str) -> None:
    fields = {"4": b"\x22\x00", "5": b"\x2a\x02\x18\x00", "9": b"\x4a\x01x"}
    data = LLAMA + b"".join(fields[number] for number in order)
    ours, theirs = (
        spm.SentencePieceProcessor(model_proto=data).serialized_model_proto() for spm in (OURS, THEIRS)
    )
    assert ours == theirs


def test_attributes_and_defaults(engine: str) -> None:
    given: dict[str, Any] = {
        "add_bos": True,
        "add_eos": True,
        "reverse": True,
        "emit_unk_piece": True,
        "return_type": str,
        "num_threads": 1,
    }
    for data in (LLAMA, zoo.model("special")):
        theirs, ours = (spm.SentencePieceProcessor(model_proto=data, **given) for spm in (THEIRS, OURS))
        for text in ("Hello 🦙 w", ["Hello", "\U00038d58"]):
            for call in (
                Call("encode", text),
                Call("EncodeAsIds", text),
                Call("encode", text, add_bos=False),
                Call("encode_as_proto", text),
            ):
                compare(call, partial(call.on, theirs), partial(call.on, ours))
    changes: list[dict[str, Any]] = [
        {"alpha": None},
        {"nbest_size": None},
        {"num_threads": None},
        {"add_bos": "x"},
    ]
    for change in changes:
        theirs, ours = (spm.SentencePieceProcessor(model_proto=LLAMA, **change) for spm in (THEIRS, OURS))
        for call in (Call("encode", "a"), Call("decode", [300])):
            compare(change, partial(call.on, theirs), partial(call.on, ours))
    ours = OURS.SentencePieceProcessor(model_proto=LLAMA)
    ours._add_bos = True  # as old code does
    assert ours.encode("a") == [1, 259]


# --- Pickles ---------------------------------------------------------------------------------------


def test_pickles(engine: str) -> None:
    for spm in (THEIRS, OURS):
        sp = spm.SentencePieceProcessor(model_proto=LLAMA, return_type=str, add_bos=True)
        sp.note = "kept"
        for other in (pickle.loads(pickle.dumps(sp)), copy.copy(sp), copy.deepcopy(sp)):
            assert other.encode("a b") == ["<s>", "▁a", "▁", "b"]
            assert other.note == "kept"
    assert pickle.dumps(sp).count(b"cpbpe.compat.sentencepiece") == 1


def test_states_are_those_of_sentencepiece(engine: str) -> None:
    given: dict[str, Any] = {"return_type": str, "add_bos": True, "alpha": 0.5, "num_threads": 3}
    theirs, ours = (spm.SentencePieceProcessor(model_proto=LLAMA, **given) for spm in (THEIRS, OURS))
    assert ours.__getstate__() == theirs.__getstate__()
    for state in (theirs.__getstate__(), LLAMA):  # old pickles are the model alone
        other = OURS.SentencePieceProcessor.__new__(OURS.SentencePieceProcessor)
        other.__setstate__(state)
        assert other.encode("a b", return_type=int) == [1] * isinstance(state, dict) + [259, 367, 380]
    with pytest.raises(RuntimeError):
        pickle.loads(pickle.dumps(OURS.SentencePieceProcessor()))
    with pytest.raises(RuntimeError):
        pickle.loads(pickle.dumps(THEIRS.SentencePieceProcessor()))


def test_subclasses(engine: str) -> None:
    class Shouting(SentencePieceProcessor):
        def Encode(self, input: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N802
            return super().Encode(input.upper(), *args, **kwargs)

    sp = Shouting.from_file("m.model")
    assert type(sp) is Shouting
    assert sp.EncodeAsPieces("ab") == OURS.SentencePieceProcessor("m.model").encode("AB", out_type=str)


# --- Sampling --------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_samples_have_the_same_distribution(alpha: float) -> None:
    """Of every segmentation with a share of more than 1 %: shares within five standard deviations."""
    number = 4000
    shares = []
    for sp in pair("llama", "core" if os.environ.get("CPBPE_ENGINE") != "reference" else "reference"):
        found = sp.encode(["the world"] * number, enable_sampling=True, alpha=alpha, return_type=str)
        shares.append(collections.Counter(map(tuple, found)))
    for pieces in set(shares[0]) | set(shares[1]):
        share = (shares[0][pieces] + shares[1][pieces]) / (2 * number)
        if share > 0.01:
            deviation = (2 * share * (1 - share) / number) ** 0.5
            assert abs(shares[0][pieces] - shares[1][pieces]) / number < 5 * deviation, pieces


def test_a_seed_makes_samples_reproducible(engine: str) -> None:
    sp = pair("llama", engine)[1]

    def sample() -> list[Any]:
        texts = ["some longer text"] * 5
        return [
            sp.encode(texts, enable_sampling=True, alpha=0.3, num_threads=2),
            sp.SampleEncodeAsPieces("some longer text", -1, 0.3),
            plain(sp.sample_encode_as_proto("some longer text", alpha=0.3)),
            sp.encode("some longer text", enable_sampling=True, alpha=0.3, return_type="numpy").tolist(),
        ]

    OURS.set_random_generator_seed(7)
    first, second = sample(), sample()
    OURS.SetRandomGeneratorSeed(7)
    assert sample() == first
    assert second != first
    assert len({tuple(ids) for ids in first[0]}) > 1
    OURS.SetRandomGeneratorSeed((1 << 32) - 1)  # means no seed, and changes nothing
    assert sample() == second


def test_samples_hold_together(engine: str) -> None:
    """Ids, pieces, offsets and text of one sample belong together."""
    sp = pair("user-defined", engine)[1]
    for _ in range(20):
        found = sp.encode("abra the 日本 🦙 x", return_type="proto", enable_sampling=True, alpha=0.5)
        assert "".join(piece.piece for piece in found.pieces) == sp.normalize(found.text)
        assert [p.id for p in found.pieces] == [sp.piece_to_id(p.piece) for p in found.pieces]
        data = found.text.encode()
        assert [p.surface.encode() for p in found.pieces] == [data[p.begin : p.end] for p in found.pieces]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("which", ["sp", "tok"])
def test_forked_processes_sample_differently(which: str, tmp_path: Path) -> None:
    code = """if True:
        import os, sys
        import cpbpe
        from cpbpe.compat import sentencepiece as spm
        sp, tok = spm.SentencePieceProcessor("m.model"), cpbpe.load("m.model")
        text = "some rather long text " * 5
        samples = {
            "sp": lambda: sp.encode(text, enable_sampling=True, alpha=0.5),
            "tok": lambda: tok.encode(text, alpha=0.5),
        }
        sample = samples[sys.argv[1]]
        sample()
        read, write = os.pipe()
        if os.fork() == 0:
            os.write(write, repr(sample()).encode())
            os._exit(0)
        os.wait()
        print(os.read(read, 65536).decode() == repr(sample()))
    """
    assert processes.output("-c", code, which, cwd=tmp_path).strip() == "False"


# --- Random texts ----------------------------------------------------------------------------------

FUZZED = [
    "llama",
    "nfkc",
    "tsv-keep-spaces",
    "special",
    "user-defined",
    "user-defined-suffix",
    "no-prefix-squeeze",
    "no-unk",
    "denormalizer",
    "denormalizer-plain",
    "unused-ambiguous",
    "inner-spaces",
    "charsmap-broken",
    "charsmap-spaces",
    "broken-pieces",
    "broken-pieces-no-fallback",
]
KINDS = (int, str, bytes, "numpy", "offset_mapping", "serialized_proto", "proto")


@pytest.mark.skipif(not CORE, reason="compares the core with the reference")
@tiers.models(FUZZED)
def test_engines_sample_alike(name: str) -> None:
    """With the same seed a sample is the same in every form, from both engines."""
    (_, core), (_, reference) = pair(name, "core"), pair(name, "reference")
    pieces = [piece.piece.decode(errors="replace") for piece in zoo.parse(zoo.model(name)).pieces]

    @settings(max_examples=max(EXAMPLES // 7, 2), deadline=None, database=None)
    @given(st.one_of(texts.texts(pieces), texts.broken(pieces)), st.sampled_from([0.1, 0.5, 0.9]))
    def run(text: str | bytes, alpha: float) -> None:
        for kind in KINDS:
            call = Call("encode", text, return_type=kind, enable_sampling=True, alpha=alpha)
            OURS.set_random_generator_seed(3)
            expected = outcome(lambda call=call: call.on(reference))  # type: ignore[misc]
            OURS.set_random_generator_seed(3)
            assert outcome(lambda call=call: call.on(core)) == expected, call  # type: ignore[misc]

    run()


@tiers.models(FUZZED)
def test_random_texts(engine: str, name: str) -> None:
    theirs, ours = pair(name, engine)
    proto = zoo.parse(zoo.model(name))
    pieces = [piece.piece.decode(errors="replace") for piece in proto.pieces]
    has_fallback = proto.trainer_spec.byte_fallback and "unused" not in name

    def check(method: str, *args: Any, **kwargs: Any) -> None:
        call = Call(method, *args, **kwargs)
        compare((name, call), lambda: call.on(theirs), lambda: call.on(ours))

    @settings(max_examples=max(EXAMPLES // 7, 2), deadline=None, database=None)
    @given(st.one_of(texts.texts(pieces), texts.broken(pieces)), st.data())
    def run(text: str | bytes, data: st.DataObject) -> None:
        flags = st.fixed_dictionaries({}, optional={"add_eos": st.booleans(), "reverse": st.booleans()})
        options = data.draw(flags)
        for kind in KINDS:
            check("encode", text, return_type=kind)
            if kind in KINDS[:4]:
                check("encode", text, return_type=kind, **options)
            if has_fallback and kind != "offset_mapping":
                chunk_len = data.draw(st.integers(1, 20))
                check("parallel_encode", text, chunk_len=chunk_len, return_type=kind, num_threads=1)
        for flag in (True, False):
            check("encode", text, return_type="offset_mapping", return_bytes=flag)
            check("normalize", text, with_offsets=flag)
        ids = data.draw(st.lists(st.integers(0, len(pieces) - 1), max_size=8)) + theirs.encode(text)
        named = data.draw(st.lists(st.sampled_from(pieces), max_size=4))
        named += [piece.decode(errors="replace") for piece in theirs.encode(text, return_type=bytes)]
        for values in (ids, named, [ids, [], ids[:3]], [named, named[1:]]):
            for kind in (str, bytes, "offset_mapping", "serialized_proto"):
                check("decode", values, return_type=kind)
        check("decode", ids, return_type="offset_mapping", return_bytes=True)

    run()
