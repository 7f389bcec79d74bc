"""SentencePieceNormalizer, and the functions of the module, beside sentencepiece's."""

import io
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpbpe.compat.sentencepiece import normalizer as our_normalizer
from cpbpe.compat.sentencepiece import sentencepiece_model_pb2
from cpbpe.model.formats import model_pb2
from tests.support import budget, charsmaps, texts, tiers, zoo
from tests.support.compat_calls import OURS, THEIR_MODELS, THEIRS, Call, Fresh, calls, compare, outcome

EXAMPLES = budget.examples(100)
MODEL = zoo.model("tsv")
UNIGRAM = model_pb2.ModelProto(normalizer_spec=model_pb2.NormalizerSpec(add_dummy_prefix=False))


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.model").write_bytes(MODEL)
    Path("rules.tsv").write_text(zoo.TSV, encoding="utf-8")
    Path("bad.tsv").write_text("zz\n")
    Path("empty.tsv").write_text("")
    Path("twice.tsv").write_bytes(b"61\t61\n62\tD800\n61\t62\t# \xff\n62\t63\n")
    Path("same.tsv").write_text("61\t62\n61\t61\n")
    Path("garbage").write_bytes(b"garbage")


def spec(**fields: Any) -> bytes:
    return model_pb2.NormalizerSpec(**fields).SerializeToString()


N = "SentencePieceNormalizer"
USABLE = [
    Call(N, model_file="m.model"),
    Call(N, "m.model"),
    Call(N, model_file=b"m.model"),
    Call(N, model_proto=MODEL),
    Call(N, model_proto=model_pb2.ModelProto.FromString(MODEL)),
    Call(N, model_proto=THEIR_MODELS.ModelProto.FromString(MODEL)),
    Call(N, model_proto=zoo.model("suffix")),
    Call(N, model_proto=zoo.model("user-defined")),
    Call(N, model_proto=UNIGRAM.SerializeToString() + b"\xc2\x3e\x03abc"),
    Call(N, model_proto=THEIR_MODELS.ModelProto()),
    Call(N, model_file="m.model", model_proto=b"not looked at"),
    Call(N, model_proto=b"xx"),
    Call(N, normalizer_spec=spec(add_dummy_prefix=False, name=b"mine")),
    Call(N, normalizer_spec=model_pb2.NormalizerSpec(escape_whitespaces=False)),
    Call(N, normalizer_spec=spec(precompiled_charsmap=charsmaps.make(zoo.BROKEN))),
    Call(N, normalizer_spec=spec(precompiled_charsmap=charsmaps.make(zoo.SPACES))),
    Call(N, normalizer_spec=spec(precompiled_charsmap=charsmaps.make(zoo.LONG))),
    Call(N, normalizer_spec=spec(name=b"x") + b"\xc2\x3e\x03abc"),
    Call(N, rule_tsv="rules.tsv"),
    Call(N, rule_tsv=b"rules.tsv"),
    Call(N, rule_tsv="twice.tsv"),
    Call(N, rule_name="nfkc"),
    Call(N, rule_name=b"nmt_nfkc_cf", add_dummy_prefix=False),
    Call(N, rule_name="identity"),
    Call(N, norm_map=[("a", "b"), ("foo", "bar"), ("é", ""), ("🦙", "  ")]),
    Call(N, norm_map=(("ab", "x"), ["abc", "y"], "cd", (b"e", bytearray(b"f")))),
    Call(N, norm_map={("a", "b")}),
    Call(N, norm_map={"a": "b"}.items()),
    Call(N, norm_map=Fresh(lambda: (pair for pair in [("a", "b")]))),
    *(
        Call(N, model_file="m.model", **{name: value})
        for name in ("add_dummy_prefix", "escape_whitespaces", "remove_extra_whitespaces")
        for value in (True, False, 0, 1.0)
    ),
    Call(
        N, rule_name="nfkc", add_dummy_prefix=False, escape_whitespaces=True, remove_extra_whitespaces=False
    ),
]
REFUSED = [
    Call(N),
    Call(N, rule_tsv="same.tsv"),
    Call(N, rule_name="NFKC"),
    Call(N, rule_name="nfkc2"),
    Call(N, model_file="none"),
    Call(N, model_file="."),
    Call(N, model_file="garbage"),
    Call(N, model_file=Path("m.model")),
    Call(N, model_file=5),
    Call(N, model_proto=b"garbage"),
    Call(N, model_proto="garbage"),
    Call(N, model_proto=bytearray(MODEL)),
    Call(N, model_proto=b""),
    Call(N, normalizer_spec=b"garbage"),
    Call(N, normalizer_spec="garbage"),
    Call(N, normalizer_spec=spec(precompiled_charsmap=b"abcdefgh")),
    Call(N, rule_tsv="none.tsv"),
    Call(N, rule_tsv="bad.tsv"),
    Call(N, rule_tsv="empty.tsv"),
    Call(N, rule_tsv=Path("rules.tsv")),
    Call(N, rule_name="nfd"),
    Call(N, rule_name=5),
    Call(N, norm_map=[]),
    Call(N, norm_map=5),
    Call(N, norm_map="ab"),
    Call(N, norm_map={"a": "b"}),
    Call(N, norm_map=[("a", "b", "c")]),
    Call(N, norm_map=[("a",)]),
    Call(N, norm_map=[("a", 1)]),
    Call(N, norm_map=[None]),
    Call(N, norm_map=["abc"]),
    Call(N, norm_map=[("a", "b"), ("a", "c")]),
    Call(N, norm_map=[("", "b")]),
    Call(N, norm_map=[("a", "a")]),
    Call(N, norm_map=[(b"\xff", "b")]),
    Call(N, norm_map=[("a\ud800", "b")]),
    Call(N, norm_map=[("a" * n, "b") for n in range(1, 40)]),
    Call(N, norm_map=Fresh(lambda: (0 for _ in ()))),
    Call(N, norm_map=Fresh(lambda: iter([("a", "b")]))),
    Call(N, rule_name="identity", add_dummy_prefix="yes"),
    Call(N, rule_name="identity", escape_whitespaces=[]),
    Call(N, rule_name="identity", no_such_option=1),
]
INPUTS: list[Any] = [
    "",
    "   ",
    "Hello  foo abc abcd  ",
    "é🦙 ①ﬀ e\u0301",
    b"bytes \xff\xc3 a",
    b"",
    b"  ",
    ["a", b"b", ""],
    [],
    5,
    None,
    ("a",),
    [5],
    bytearray(b"a"),
    "half \ud800",
]


def shown(call: Call) -> str:
    text = str(call).removeprefix(N)
    return text if len(text) < 80 else f"{text[:40]} {len(text)}"


@tiers.slow_reference
@pytest.mark.parametrize(
    "call", tiers.some(USABLE, [call for call in USABLE if "rule_name" not in call.kwargs]), ids=shown
)
def test_usable(engine: str, call: Call) -> None:
    theirs, ours = call.on(THEIRS), call.on(OURS)
    for use in calls(["normalize", "Normalize"], INPUTS, [None, False, True]):
        compare((call, use), partial(use.on, theirs), partial(use.on, ours))
    methods = ["serialized_model_proto", "serialized_normalizer_spec", "__getstate__"]
    if len(ours.serialized_normalizer_spec()) < 100_000:  # the large ones have a test of their own
        methods += ["decompile", "Decompile"]
    for method in methods:
        compare((call, method), getattr(theirs, method), getattr(ours, method))
    other = pickle.loads(pickle.dumps(ours))
    compare(call, lambda: theirs.normalize("a  b"), lambda: other.normalize("a  b"))


@pytest.mark.parametrize("call", REFUSED, ids=shown)
def test_refused(call: Call) -> None:
    assert isinstance(compare(call, lambda: call.on(THEIRS), lambda: call.on(OURS)), type)


def test_nul_in_rules_is_refused() -> None:
    """sentencepiece takes it and cuts the rule off there."""
    with pytest.raises(ValueError, match=r"norm_map has U\+0000"):
        OURS.SentencePieceNormalizer(norm_map=[("a", "b\0c")])


@tiers.slow
@pytest.mark.parametrize("rule", ["nfkc", "nmt_nfkc_cf"])
def test_decompile_the_named_rules(rule: str) -> None:
    theirs, ours = (spm.SentencePieceNormalizer(rule_name=rule) for spm in (THEIRS, OURS))
    rules = ours.decompile()
    assert rules == theirs.decompile()
    if rule == "nfkc":  # and back again, with one more
        rules.append(("foo", "bar"))
        again = OURS.SentencePieceNormalizer(norm_map=rules)
        assert again.normalize("① foo") == "▁1▁bar"


def test_a_charsmap_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    normalizer = OURS.SentencePieceNormalizer(norm_map=[("a", "b"), ("c", "d")])
    monkeypatch.setattr(our_normalizer, "MAX_NODES", 1)
    with pytest.raises(RuntimeError, match="have no end"):
        normalizer.decompile()


@tiers.models(["nfkc", "tsv", "charsmap-broken", "charsmap-spaces", "no-prefix-squeeze", "llama"])
def test_random_texts(engine: str, name: str) -> None:
    pieces = [piece.piece.decode(errors="replace") for piece in zoo.parse(zoo.model(name)).pieces]
    pairs = [
        [spm.SentencePieceNormalizer(model_proto=zoo.model(name), **flags) for spm in (THEIRS, OURS)]
        for flags in ({}, {"remove_extra_whitespaces": True, "add_dummy_prefix": False})
    ]

    @settings(max_examples=max(EXAMPLES // 5, 2), deadline=None, database=None)
    @given(st.one_of(texts.texts(pieces), texts.broken(pieces), st.text("\0\1 ▁", max_size=4)), st.booleans())
    def run(text: str | bytes, flag: bool) -> None:
        for theirs, ours in pairs:
            call = Call("normalize", text, flag)
            compare(call, partial(call.on, theirs), partial(call.on, ours))

    run()


@settings(max_examples=max(EXAMPLES // 5, 2), deadline=None, database=None)
@given(st.dictionaries(st.text("abé", min_size=1, max_size=3), st.text("abcé ▁", max_size=3), min_size=1))
def test_random_rules(rules: dict[str, str]) -> None:
    call = Call(N, norm_map=list(rules.items()))
    expected = outcome(lambda: call.on(THEIRS))
    if isinstance(expected, type):
        assert outcome(lambda: call.on(OURS)) == expected
        return
    theirs, ours = call.on(THEIRS), call.on(OURS)
    assert ours.decompile() == theirs.decompile() == sorted(rules.items())
    assert ours.serialized_normalizer_spec() == theirs.serialized_normalizer_spec()


# --- The module ------------------------------------------------------------------------------------

FUNCTIONS = [
    *(
        Call(name, value)
        for name in ("SetRandomGeneratorSeed", "set_random_generator_seed")
        for value in (0, 7, (1 << 32) - 1, 1 << 32, -1, 1.0, "1", None, True)
    ),
    *(
        Call(name, value)
        for name in ("SetMinLogLevel", "set_min_log_level", "SetNBestTimeout", "set_nbest_timeout")
        for value in (2, 1.5, "x", None, 1 << 40)
    ),
    Call("SetDataDir", Path()),
    Call("set_data_dir", 5),
    Call("SetMinLogLevel"),
    Call("SetRandomGeneratorSeed", 1, 2),
    Call("ThreadPool"),
    Call("ThreadPool", "4"),
    Call("ThreadPool", 1.5),
    Call("ThreadPool", 1 << 40),
    Call("ConvertToFlatbuffer"),
    Call("ConvertToFlatbuffer", model_file="a", model_proto=b""),
    Call("convert_to_flatbuffer", model_file=""),
    Call("convert_to_flatbuffer", model_file="m.model", output_file=""),
    Call("convert_to_flatbuffer", model_file=5),
    Call("convert_to_flatbuffer", model_proto="text"),
    Call("convert_to_flatbuffer", serialized_model_proto=bytearray(b"a")),
]


@pytest.mark.parametrize("call", FUNCTIONS, ids=str)
def test_functions(call: Call) -> None:
    compare(call, lambda: call.on(THEIRS), lambda: call.on(OURS))


@pytest.mark.parametrize("number", [4, 0, -1, -5, 1, 1024, 5000, True])
def test_thread_pools(number: int) -> None:
    theirs, ours = THEIRS.ThreadPool(number), OURS.ThreadPool(number)
    assert ours.num_threads() == theirs.num_threads()
    assert OURS.ThreadPool(num_threads=number).num_threads() == theirs.num_threads()  # the README does so
    sp = OURS.SentencePieceProcessor(model_proto=MODEL)
    assert sp.encode(["a b"] * 3, thread_pool=ours) == [sp.encode("a b")] * 3
    assert sp.parallel_encode("a b", chunk_len=1, thread_pool=ours) == sp.encode("a b")
    assert sp.decode([[300]] * 2, thread_pool=ours) == [sp.decode([300])] * 2


def test_flatbuffers_are_refused() -> None:
    with pytest.raises(NotImplementedError, match=r"SentencePieceLite; sentencepiece itself does"):
        OURS.ConvertToFlatbuffer(model_file="m.model")
    assert issubclass(NotImplementedError, RuntimeError)


def test_the_version_is_the_one_that_is_followed() -> None:
    assert OURS.__version__ == THEIRS.__version__


def test_model_messages(engine: str) -> None:
    """What the README does with sentencepiece_model_pb2: read, edit, load, write."""
    files = []
    for spm, pb2 in ((THEIRS, THEIR_MODELS), (OURS, sentencepiece_model_pb2)):
        proto = pb2.ModelProto.FromString(Path("m.model").read_bytes())
        assert proto.pieces[1].piece == "<s>"
        piece = proto.pieces.add()
        piece.piece, piece.score = "<mine>", 0.0
        piece.type = pb2.ModelProto.SentencePiece.Type.CONTROL
        files.append(proto.SerializeToString())
        sp = spm.SentencePieceProcessor(model_proto=proto.SerializeToString())
        assert sp.id_to_piece(len(sp) - 1) == "<mine>"
        assert sp.is_control(len(sp) - 1)
    assert files[0] == files[1]


@tiers.slow
def test_training_with_a_normalizer() -> None:
    written = []
    for spm in (THEIRS, OURS):
        rules = [*spm.SentencePieceNormalizer(rule_name="nfkc").decompile()[:2000], ("foo", "bar")]
        out = io.BytesIO()
        spm.SentencePieceTrainer.train(
            sentence_iterator=iter(["the foo and the bar"] * 5),
            model_writer=out,
            model_type="bpe",
            vocab_size=24,
            normalizer=spm.SentencePieceNormalizer(norm_map=rules, add_dummy_prefix=False),
            minloglevel=2,
        )
        written.append(out.getvalue())
    assert written[0] == written[1]
