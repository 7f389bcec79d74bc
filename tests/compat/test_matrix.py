"""Many calls of sentencepiece's methods: cpbpe.compat gives the same results, and the same types of error."""

import array
import collections
import decimal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.support import tiers
from tests.support.compat_calls import Call, Fresh, calls, compare, pair

MODELS = [
    "",  # nothing loaded
    "llama",
    "special",
    "user-defined",
    "user-defined-specials",
    "no-bos-empty-surface",
    "no-unk",
    "suffix",
    "nfkc",
    "no-prefix-squeeze",
    "denormalizer",
    "denormalizer-defaults",
    "nul",
    "nul-unused",
    "renamed-unk",
    "unused-ambiguous",
    "charsmap-broken",
    "broken-pieces",
    "tokenizer.model.v1",
]
DAILY = ["", "llama", "charsmap-broken"]


class Index:
    def __index__(self) -> int:
        return 300


class Integer:
    def __int__(self) -> int:
        return 300


class Undecided:
    def __bool__(self) -> bool:
        raise ValueError


class Text(str):
    """A str that is not to be asked what its hash is, or what it is equal to."""

    def __hash__(self) -> int:
        raise ValueError

    def __eq__(self, other: object) -> bool:
        raise ValueError


class Texts(list[str]):
    """A list that is not to be iterated."""

    def __iter__(self) -> Iterator[str]:
        raise ValueError


class Sequence:
    def __len__(self) -> int:
        return 2

    def __getitem__(self, at: int) -> int:
        return [300, 301][at]


KINDS = [..., int, str, bytes, "numpy", "offset_mapping", "proto", "serialized_proto"]
TEXTS: list[Any] = [
    "",
    " ",
    "Hello world",
    "  two  spaces ",
    "naïve 日本語 🦙🦙 <s> \0 ▁x",
    b"bytes \xff\xe2\x96 broken",
    b"abracadabra",
    [],
    ["one", "", "tw o"],
    [b"b", "s", bytearray(b"ba")],
]
BAD_TEXTS: list[Any] = [
    None,
    5,
    1.5,
    ("a", "b"),
    bytearray(b"a"),
    memoryview(b"a"),
    "half \ud800",
    ["half \ud800"],
    ["a", None],
    [["a"]],
    [5],
    [memoryview(b"a")],
    {"a": 1},
    Fresh(lambda: iter(["a"])),
    np.array(["a"]),
    np.str_("numpy"),
    np.bytes_(b"numpy"),
]
FLAGS: list[Any] = [1, 0, None, 0.0, np.True_, "yes", "", [], Undecided(), object(), decimal.Decimal(1)]
NUMBERS: list[Any] = [
    True,
    1.5,
    1.0,
    np.int64(7),
    np.float32(1.5),
    np.float64(1.0),
    decimal.Decimal("1.5"),
    "1",
    None,
    1 << 31,
    -(1 << 40),
    Index(),
    Integer(),
    [],
]

ENCODING = [
    *calls(["encode"], TEXTS, return_type=KINDS),
    *calls(["encode"], TEXTS[:5] + TEXTS[-1:], return_type=KINDS, add_bos=[True]),
    *calls(["encode"], TEXTS[4:6] + TEXTS[-1:], return_type=KINDS, add_eos=[True], reverse=[True]),
    *calls(["encode"], TEXTS[4:6] + TEXTS[-2:], return_type=KINDS, emit_unk_piece=[True], reverse=[True]),
    *calls(["encode"], TEXTS[3:7] + TEXTS[-2:], return_type=["offset_mapping"], return_bytes=[True, False]),
    *calls(["encode"], ["a b", ["a b"]], return_type=[int, str, "numpy"], num_threads=[-3, 0, 1, 2, 5000]),
    *calls(["encode"], ["a b", ["a b"]], enable_sampling=[True], alpha=[0, 1, 1.5], return_type=KINDS[1:]),
    *calls(
        ["EncodeAsIds", "encode_as_pieces", "EncodeAsNumpy", "encode_as_proto", "EncodeAsOffsetMapping"],
        ["a b", ["a b"]],
    ),
    *calls(["Tokenize", "tokenize", "Encode"], ["a b"], out_type=[int, str, bytes]),
    *calls(
        ["SampleEncodeAsIds", "sample_encode_as_pieces", "SampleEncodeAsProto", "sample_encode_as_numpy"],
        ["a b", ["a b"]],
        [-1],
        [0.0],
    ),
]
ENCODING_REFUSED = [
    *calls(["encode"], BAD_TEXTS, return_type=[int, "numpy", "serialized_proto", "offset_mapping", str]),
    *calls(["encode"], ["a", ["a"], []], add_bos=FLAGS),
    *calls(["encode"], ["a", ["a"]], emit_unk_piece=FLAGS, return_type=[int, str]),
    *calls(["encode"], ["a", ["a"], []], nbest_size=NUMBERS),
    *calls(["encode"], ["a", ["a"]], alpha=NUMBERS),
    *calls(["encode"], ["a", ["a"], []], num_threads=NUMBERS),
    *calls(["encode"], ["a", ["a"], [], 5], enable_sampling=[True], nbest_size=[0, 1, 512, 513], alpha=[0]),
    *calls(["encode"], ["a", ["a"], [], 5], enable_sampling=[True], alpha=[-1, float("nan"), 1e300, 1e39]),
    *calls(["encode"], ["a"], enable_sampling=[1, "x", np.True_], alpha=[0.0, "x"]),
    *calls(["encode"], ["a", ["a"], []], thread_pool=[5, "pool"], return_type=[int, str, "proto"]),
    *calls(["encode"], ["a"], return_type=["immutable_proto", "ids", float, [], 5, b"proto", np.int32]),
    *calls(["encode"], ["a"], return_type=[int], out_type=[int, "x"]),
    *calls(["encode"], ["a"], return_type=[int, "proto"], return_bytes=[True, False]),
    *calls(["encode"], ["a", ["a"]], return_type=["offset_mapping"], return_bytes=FLAGS),
    *calls(["encode"], ["a", [], 5], return_type=["proto", "offset_mapping"], add_eos=[True, "x"]),
    *calls(["encode", "EncodeAsIds"], ["a"], no_such_option=[1]),
    Call("encode"),
    Call("EncodeAsIds", "a", return_type=str),
]
NBEST = [
    *calls(["nbest_encode", "NBestEncode"], ["a", b"a", ["a"], []], return_type=KINDS),
    *calls(["nbest_encode"], BAD_TEXTS, return_type=[int, "proto"]),
    *calls(["nbest_encode"], ["a", []], nbest_size=[*NUMBERS, 0, 5, 513]),
    *calls(["nbest_encode"], ["a", 5], return_type=["proto", int], add_bos=[True, "x"]),
    *calls(
        [
            "NBestEncodeAsIds",
            "nbest_encode_as_pieces",
            "nbest_encode_as_proto",
            "NBestEncodeAsNumpy",
        ],
        ["a"],
        [3],
    ),
]
PARALLEL = [
    *calls(["parallel_encode"], TEXTS, return_type=KINDS, chunk_len=[1000]),
    *calls(["ParallelEncode"], ["a b c"], return_type=KINDS, chunk_len=[1, 3], num_threads=[2]),
    *calls(
        ["parallel_encode"], TEXTS[2:4], return_type=KINDS, chunk_len=[10], add_bos=[True], reverse=[True]
    ),
    *calls(["parallel_encode"], ["a", ["a"], []], chunk_len=[*NUMBERS, 0, -1]),
    *calls(["parallel_encode"], ["a", []], chunk_len=[3], num_threads=NUMBERS),
    *calls(["parallel_encode"], ["a", []], chunk_len=[3], thread_pool=[5]),
    *calls(["parallel_encode"], BAD_TEXTS, chunk_len=[3], return_type=[int, "proto"]),
    *calls(["parallel_encode"], ["a", 5], chunk_len=[3], return_type=["proto", int], add_bos=[True, "x"]),
    *calls(
        [
            "ParallelEncodeAsIds",
            "parallel_encode_as_pieces",
            "ParallelEncodeAsProto",
            "parallel_encode_as_numpy",
        ],
        ["a b"],
        chunk_len=[1, 5],
    ),
]

IDS: list[Any] = [
    None,
    "",
    b"",
    [],
    0,
    1,
    300,
    True,
    [0, 1, 2],
    [300, 5, 301, 0, 302],
    [4, 300],
    (300, 301),
    range(295, 305),
    range(260),
    [2, 1, 0, 2],
    np.int64(300),
    Index(),
    Integer(),
    decimal.Decimal(300),
    np.float32(300),
    Sequence(),
    collections.deque([300, 301]),
    bytearray(b"\x80\x81"),
    memoryview(b"\x80\x81"),
    array.array("i", [300, 301]),
    array.array("Q", [300, 301]),
    [np.int32(300), Index(), True, decimal.Decimal(300), np.float32(300)],
    np.array([300, 301], np.int32),
    np.array([300, 301], np.uint16),
    np.array([[300, 301], [302, 303]]),
    np.array([], np.int32),
    np.array([[], []], np.int32),
    np.zeros((0, 3), int),
    np.array([300, 5, 301, 5])[::2],
    [[300], [], [301, 302]],
    ((300,), [301]),
    [[], [300]],
    [[], []],
    [np.array([300]), [301]],
]
BAD_IDS: list[Any] = [
    1.0,
    [1.0],
    [None],
    [300, None],
    [300, "a"],
    [-1],
    -1,
    [1 << 20],
    1 << 20,
    [1 << 40],
    1 << 40,
    {300},
    frozenset([300]),
    {300: 1},
    {0: 300},
    {300: 1}.keys(),
    Fresh(lambda: (id for id in [300])),
    Fresh(lambda: map(int, [300])),
    Fresh(lambda: iter([300])),
    object(),
    np.float64(300),
    array.array("d", [300.0]),
    np.array([300.0]),
    np.array([]),
    np.array([True]),
    np.array([300, 301], object),
    np.array(["a"]),
    np.array(300),
    np.array([[[300]]]),
    np.array([-1]),
    np.array([1 << 63], np.uint64),
    [[300], 300],
    [300, [300]],
    [[[300]]],
    [[300], None],
    [[300], [1 << 20]],
    [[300], [None]],
    [[1 << 20], [None]],
    [[300], ["a"]],
    [["a"], [300]],
    [[1.5]],
]
PIECES: list[Any] = [
    "▁a",
    "▁a".encode(),
    ["▁a", "b", "no such piece", "▁▁x▁"],
    [b"a", "b"],
    ["a", b"b", bytearray(b"c")],
    ("<s>", "▁", "▁a"),
    ["▁", "▁", "a", "<unk>", "[UNK]", "<what>"],
    ["<0xE3>", "<0x81>", "a", "<0x82>", "<0xF0>", "\0"],
    collections.deque(["a", "▁b"]),
    [["a"], []],
    [[], [b"a"], ["b"]],
    [["▁a", "no such piece"], [], ["▁a", b"b"], [Text("▁")], ["\ufffd"]],
    [("▁a", "b"), ["c"]],
    [b"\xff"],
    ["a", b"\xff"],
    ["<unk>", b"\xe2\x96"],
    ["▁a", np.str_("▁a"), np.bytes_(b"b"), Text("▁"), Text("<unk>"), Text("no such piece")],
    [Text("a"), "▁a", "\ufffd", "▁a", ""],
]
BAD_PIECES: list[Any] = [
    ["a", None],
    ["a", 300],
    ["half \ud800"],
    ["▁a", "▁a", "half \ud800", 5],
    ["▁a", "▁a", 5, "half \ud800"],
    ["▁a", Text("half \ud800")],
    [["a"], "bc"],
    [["▁a"], ["a", "half \ud800"], [5]],
    [["▁a"], [5], ["a", "half \ud800"]],
    [["a"], [b"\xff"]],
    [["a"], None],
    [["a"], [5]],
    np.array(["a"], object),
    {0: "a"},
]
DECODE_KINDS = [..., str, bytes, "offset_mapping", "proto", "serialized_proto"]
DECODING = [
    *calls(["decode"], IDS + PIECES, return_type=DECODE_KINDS),
    *calls(
        ["decode"], IDS[8:12] + IDS[-5:] + PIECES, return_type=["offset_mapping"], return_bytes=[True, False]
    ),
    *calls(["decode"], [[300], [[300], [301]], [["a"]]], num_threads=[-3, 0, 1, 2, 5000]),
    *calls(["Decode", "Detokenize", "detokenize"], [[300, 301]], out_type=[str, bytes]),
    *calls(
        ["DecodeIds", "decode_pieces", "decode_ids_as_proto", "DecodePiecesAsProto"],
        [[300, 301], ["a", "b"], [[300], [301]], []],
    ),
    *calls(["decode_ids", "DecodePieces"], [[300], ["a"]], [bytes, "proto", int]),
]
DECODING_REFUSED = [
    *calls(["decode"], BAD_IDS + BAD_PIECES, return_type=DECODE_KINDS[1:]),
    *calls(["decode"], [300, [300], [[300]], ["a"], [["a"]], []], return_type=[int, "numpy", "ids", float]),
    *calls(["decode"], [[300], [[300]], []], num_threads=NUMBERS),
    *calls(["decode"], [[300], [[300]], [], [["a"]]], thread_pool=[5]),
    *calls(["decode"], [[300]], return_type=[str], return_bytes=[True, False]),
    *calls(["decode"], [[300], [[300]]], return_type=["offset_mapping"], return_bytes=FLAGS[:-3]),
    *calls(["decode"], [[300]], return_type=[str], out_type=[str]),
    Call("decode"),
]
LOOKING_UP = [
    *calls(["get_piece_size", "GetPieceSize", "piece_size", "vocab_size", "__len__"]),
    *calls(["unk_id", "bos_id", "eos_id", "pad_id", "serialized_model_proto"]),
    *calls(
        ["id_to_piece", "GetScore", "is_unknown", "IsControl", "is_unused", "is_byte"],
        [0, 1, 2, 3, 100, 300, 599, [0, 1, 300], (2,), range(5), [], True],
    ),
    *calls(["IdToPiece", "get_score", "IsUnknown"], IDS + BAD_IDS + ["a", b"a", -1, 1 << 31]),
    *calls(
        ["piece_to_id", "PieceToId", "__getitem__"],
        [
            "▁a",
            "▁the",
            "no such piece",
            "<s>",
            "<unk>",
            "",
            "\0",
            b"a",
            bytearray(b"a"),
            ["a", b"b", bytearray(b"c")],
            ("<s>",),
            [],
            range(0),
            collections.deque(["a"]),
            np.array(["a", "b"]),
            5,
            [5],
            None,
            {"a": 1},
            {"a"},
            memoryview(b"a"),
            "half \ud800",
            ["half \ud800"],
            [["a"]],
            Fresh(lambda: iter(["a"])),
        ],
    ),
]
NORMALIZING = [
    *calls(
        ["normalize", "Normalize"], [*TEXTS, " ▁ ", "①ﬀ  é\u0301", b"\x01", "\x01"], with_offsets=[..., True]
    ),
    *calls(
        ["normalize"],
        [
            ["①ﬀ  é\u0301", b"\xff a ", "", " ▁ ", b"", "\x01", "a  b" * 300],
            ["a b", np.str_("①"), Text("a  b"), np.bytes_(b"\xff")],
            Texts(["a  b", "c"]),
            ["a", "half \ud800", 5],
            ["a", 5, "half \ud800"],
            ["a", "\x01", 5],
        ],
        with_offsets=[..., False, True],
    ),
    *calls(["normalize"], BAD_TEXTS, with_offsets=[False, True, 1, "x"]),
]

GROUPS = {
    "encoding": ENCODING,
    "encoding refused": ENCODING_REFUSED,
    "n-best": NBEST,
    "parallel": PARALLEL,
    "decoding": DECODING,
    "decoding refused": DECODING_REFUSED,
    "looking up": LOOKING_UP,
    "normalizing": NORMALIZING,
}


def test_the_matrix_is_large() -> None:
    assert len({repr(call) for group in GROUPS.values() for call in group}) > 1500


def error_of(call: Any, side: Any) -> type[Exception] | None:
    try:
        call.on(side)
    except Exception as error:
        return type(error)
    return None


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("name", tiers.some(MODELS, DAILY), ids=lambda name: name or "none")
def test_calls(engine: str, name: str, group: str) -> None:
    theirs, ours = pair(name, engine)
    results = 0
    for call in GROUPS[group]:
        try:
            found = compare(call, lambda call=call: call.on(theirs), lambda call=call: call.on(ours))  # type: ignore[misc]
        except AssertionError:
            # Without a model every sequence of a batch is an error, and theirs is that of the fastest thread.
            errors = [error_of(call, side) for side in (ours, *[theirs] * 200)]
            if name or None in errors or errors[0] not in errors[1:]:
                raise
            continue
        results += not isinstance(found, type)
    assert results > 0 or group in ("n-best",) or not name
