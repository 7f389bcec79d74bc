"""Every call of tiktoken, made in both libraries: results, errors, and what an encoding is besides."""

import copy
import inspect
import pickle
from typing import Any

import numpy as np
import pytest
import tiktoken

import cpbpe
import cpbpe.compat.tiktoken as ours
from cpbpe.compat.tiktoken import registry
from cpbpe.text.split_patterns import PATTERNS
from tests.bytes.models import ranks
from tests.support.tiktoken_texts import both, outcome, same

BYTES = {bytes([byte]): byte for byte in range(256)}


@pytest.fixture(scope="module")
def pair() -> tuple[Any, Any]:
    return both("cl100k")


# --- Calls ----------------------------------------------------------------------------------------

CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    # Texts.
    *[
        ("encode", (text,), {})
        for text in ("", "hello world", "rer", "'rer", "today\n ", "today\n \n", " \x850")
    ],
    *[("encode", (c * 10_000,), {}) for c in ("^", "0", "a", "'s", " ", "\n")],
    ("encode", ("👍 \ud83d\udc4d \ud83d",), {}),
    ("encode", ("\ud83d<|endoftext|>",), {}),
    ("encode", ("\ud83d<|endoftext|>",), {"allowed_special": "all"}),
    ("encode_ordinary", ("\ud83d<|endoftext|>",), {}),
    ("encode_to_numpy", ("",), {}),
    ("encode_to_numpy", ("hello world",), {}),
    ("encode_to_numpy", ("a<|endoftext|>",), {"allowed_special": "all"}),
    ("encode_to_numpy", ("a<|endoftext|>",), {}),
    ("encode_to_numpy", ("\ud83d",), {}),
    ("encode_with_unstable", ("\ud83d",), {}),
    ("encode_with_unstable", ("",), {}),
    ("encode_with_unstable", ("a<|endoftext|>",), {"allowed_special": "all"}),
    # What is allowed and refused.
    ("encode", ("<|endoftext|> hello <|fim_prefix|>",), {}),
    ("encode", ("<|endoftext|> hello <|fim_prefix|>",), {"disallowed_special": {"<|fim_prefix|>"}}),
    ("encode", ("<|endoftext|> hello <|fim_prefix|>",), {"disallowed_special": ()}),
    (
        "encode",
        ("<|endoftext|> hello <|fim_prefix|>",),
        {"allowed_special": "all", "disallowed_special": "all"},
    ),
    ("encode", ("<|endoftext|> hello <|fim_prefix|>",), {"allowed_special": {"<|endoftext|>"}}),
    (
        "encode",
        ("<|endoftext|> hello <|fim_prefix|>",),
        {"allowed_special": frozenset(["<|fim_prefix|>"]), "disallowed_special": []},
    ),
    ("encode", ("a",), {"allowed_special": {"never heard of"}}),
    ("encode", ("abc",), {"disallowed_special": ["b"]}),
    ("encode", ("abc",), {"disallowed_special": "b"}),
    *(
        (call, ("a<|endoftext|>",), {"disallowed_special": none, **allowed})
        for call in ("encode", "encode_to_numpy")
        for none in (None, False, "", 0)
        for allowed in ({}, {"allowed_special": "all"}, {"allowed_special": None})
    ),
    ("encode", ("abc",), {"allowed_special": "none"}),
    ("encode", ("abc",), {"allowed_special": ()}),
    ("encode", ("a",), {"disallowed_special": "none"}),
    ("encode", ("none",), {"disallowed_special": "none"}),
    ("encode", ("abc",), {"disallowed_special": {""}}),
    ("encode", ("\ud83d\udc4d",), {"disallowed_special": {"👍", "\udc4d"}}),
    ("encode", ("abc",), {"disallowed_special": [b"b"]}),
    ("encode", ("abc",), {"allowed_special": "b"}),
    ("encode", ("abc",), {"allowed_special": ["b"]}),
    ("encode", ("abc",), {"allowed_special": ["b"], "disallowed_special": ()}),
    ("encode", ("abc",), {"allowed_special": {5}, "disallowed_special": ()}),
    # What is no text.
    ("encode", (b"abc",), {}),
    ("encode", (5,), {}),
    ("encode_ordinary", (None,), {}),
    ("encode_batch", (["a", 5],), {}),
    # Batches.
    ("encode_batch", ([],), {}),
    ("encode_batch", (["hello world", "", "goodbye\ud83d"],), {}),
    ("encode_batch", ("ab",), {}),
    ("encode_batch", (["a", "<|endoftext|>"],), {}),
    ("encode_batch", (["a", "<|endoftext|>"],), {"allowed_special": "all", "num_threads": 2}),
    ("encode_batch", (["a", "<|endoftext|>"],), {"disallowed_special": [], "num_threads": 1}),
    ("encode_batch", (["a"],), {"num_threads": 0}),
    ("encode_ordinary_batch", (["a", "<|endoftext|>", "\ud83d"],), {}),
    ("encode_ordinary_batch", (["a"],), {"num_threads": -1}),
    # One token.
    *[
        ("encode_single_token", (token,), {})
        for token in (
            "hello",
            b"hello",
            "<|endoftext|>",
            b"<|endoftext|>",
            "zzzzzz",
            b"\xff\xff",
            5,
            "\ud83d",
            "",
        )
    ],
    ("encode_single_token", (bytearray(b"a"),), {}),
    *[
        ("decode_single_token_bytes", (id,), {})
        for id in (5, 100256, 100257, 100276, 10**6, -1, 2**32, "a", 1.0)
    ],
    ("decode_single_token_bytes", (np.int64(5),), {}),
    *[("is_special_token", (id,), {}) for id in (5, 100257, 100256, True)],
    # Ids.
    *[
        (call, (ids,), {})
        for call in ("decode", "decode_bytes", "decode_tokens_bytes", "decode_with_offsets")
        for ids in (
            [],
            [15339, 1917],
            [9468, 239, 235],
            [222],
            [239, 15339],
            [15339, 100257, 100256],
            [100257],
        )
    ],
    ("decode", ([222] * 40,), {}),
    ("decode", ([100257, *[187] * 40],), {}),
    ("decode_batch", ([[100257, 187], [187] * 40],), {}),
    ("decode", ((15339, 1917),), {}),
    ("decode", (range(300, 310),), {}),
    ("decode", (np.array([15339, 1917]),), {}),
    ("decode", (np.array([[15339, 1917]]),), {}),
    ("decode", (b"ab",), {}),
    *[
        ("decode", (ids,), {})
        for ids in ("ab", {1, 2}, 5, None, [1.0], ["a"], [-1], [2**32], [True], [100256])
    ],
    ("decode", ([222],), {"errors": "strict"}),
    ("decode", ([222, 65],), {"errors": "ignore"}),
    ("decode", ([222],), {"errors": "nope"}),
    ("decode_bytes", (np.array([15339, 100257]),), {}),
    ("decode_batch", ([[15339], [], [222]],), {}),
    ("decode_batch", ([[15339], [222]],), {"errors": "strict"}),
    ("decode_batch", ([[15339], [100257]],), {"num_threads": 1}),
    ("decode_batch", ([[15339], [100256]],), {}),
    ("decode_batch", ([1],), {}),
    ("decode_batch", ([[1]],), {"num_threads": 0}),
    ("decode_bytes_batch", ([[15339], [222], [100257]],), {}),
    ("decode_bytes_batch", ([[1]],), {"num_threads": 0}),
    # What it is.
    ("token_byte_values", (), {}),
    ("__repr__", (), {}),
    # What is private.
    ("_encode_single_piece", ("helloqqqq",), {}),
    ("_encode_single_piece", (b"\xff\xfe",), {}),
    ("_encode_bytes", (b" \xec\x8b\xa4\xed",), {}),
    *[("_encode_bytes", (b"\x80" * count,), {}) for count in range(5)],
    ("_encode_bytes", ("a",), {}),
    ("_encode_only_native_bpe", ("hello  world, \n\n it's 1234567",), {}),
]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_calls(number: int, pair: tuple[Any, Any]) -> None:
    call, args, options = CALLS[number]
    if call == "__repr__":
        assert repr(pair[0]) == repr(pair[1])
        return
    same(pair, call, *args, **options)


def test_offsets_within_characters(pair: tuple[Any, Any]) -> None:
    for text in (
        "我非常渴望与人工智能一起工作",
        "நடிகர் சூர்யா",
        " Ġ除",
        "hello world<|endoftext|> green cow",
        "🦙a🦙",
    ):
        ids = pair[1].encode(text, allowed_special="all")
        assert same(pair, "decode_with_offsets", ids)[0] == text


def test_a_million_letters(pair: tuple[Any, Any]) -> None:
    """Texts with which tiktoken crashed, or took minutes (its issues #15, #195, #245, #327, #400)."""
    for text in (*(letter * 1_000_000 for letter in "x^0"), " " * 1_000_000 + "x"):
        assert pair[0].decode(pair[0].encode(text)) == text
    assert isinstance(outcome(pair[1], "encode", text), tuple)  # tiktoken still gives up here
    for pattern in PATTERNS.values():
        mine = ours.Encoding("x", pat_str=pattern, mergeable_ranks=ranks(), special_tokens={})
        assert mine.decode(mine.encode("^" * 1_000_000)) == "^" * 1_000_000


def test_a_token_that_begins_another_one() -> None:
    """The longest one is found. tiktoken finds whichever its hash table has first."""
    special = {"<s>": 300, "<s>x": 301}
    mine = ours.Encoding("x", pat_str=r"[\s\S]", mergeable_ranks=BYTES, special_tokens=special)
    assert mine.encode("<s>x<s>", allowed_special="all") == [301, 300]
    with pytest.raises(ValueError, match="disallowed special token '<s>x'"):
        mine.encode("a<s>x")


def test_errors_say_what_to_do(pair: tuple[Any, Any]) -> None:
    mine = pair[0]
    with pytest.raises(ValueError, match=r"disallowed special token '<\|endoftext\|>'") as raised:
        mine.encode("<|endoftext|>")
    for advice in (
        "allowed_special={'<|endoftext|>', ...}",
        "disallowed_special=()",
        "enc.special_tokens_set - ",
    ):
        assert advice in str(raised.value)
    with pytest.raises(TypeError, match="text must be str, not list; encode_batch takes several texts"):
        mine.encode(["a"])
    for allowed, hint in (
        ("none", "not 'none'; for none leave it out"),
        (None, "not None; for none leave it out"),
        ((), "not tuple; for none leave it out"),
        ("<s>", r"not '<s>'; put it into a set: \{'<s>'\}"),
        (["<s>"], r"not list; set\(...\) makes one of a list"),
        (True, "not True; 'all' allows all"),
    ):
        with pytest.raises(TypeError, match=f'^allowed_special must be "all" or a set of str, {hint}$'):
            mine.encode("a", allowed_special=allowed)
    with pytest.raises(ValueError, match="'none' refuses each of its letters; to refuse a token"):
        mine.encode("Hello", disallowed_special="none")
    with pytest.raises(KeyError, match="Invalid token for decoding: 100256"):
        mine.decode([100256])


# --- Making one -----------------------------------------------------------------------------------


def make(package: Any, **changes: Any) -> Any:
    arguments = {"pat_str": r"[\s\S]+", "mergeable_ranks": BYTES, "special_tokens": {"<e>": 256}, **changes}
    return package.Encoding("own", **arguments)


@pytest.mark.parametrize(
    "changes",
    [
        {"explicit_n_vocab": 257},
        {"explicit_n_vocab": 300},
        {"explicit_n_vocab": 256, "special_tokens": {}},
        {"pat_str": "("},
        {"mergeable_ranks": {}},
        {"mergeable_ranks": {**BYTES, b"ab": -1}},
        {"mergeable_ranks": {**BYTES, b"ab": 2**32}},
        {"mergeable_ranks": {"a": 1}},
        {"special_tokens": {}},
        {"special_tokens": {"<e>": 7, "f": 2**31}},
        {"mergeable_ranks": {b"a": 0, b"b": 7, b"ab": 2**31}},
        {"mergeable_ranks": {**{piece: id + 10 for piece, id in BYTES.items()}, b"": 3}},
    ],
    ids=repr,
)
def test_making(changes: dict[str, Any]) -> None:
    made = []
    for package in (ours, tiktoken):
        try:
            made.append(make(package, **changes))
        except (AssertionError, ValueError, TypeError, OverflowError) as error:
            made.append(AssertionError if isinstance(error, AssertionError) else type(error))
    if isinstance(made[1], type):
        assert issubclass(made[0], made[1])
        return
    pair = (made[0], made[1])
    for text in ("abab<e>a", "", "ba"):
        same(pair, "encode", text, allowed_special="all")
    for id in (0, 3, 7, 256, 2**31):
        same(pair, "decode", [id])
    assert made[0].n_vocab == made[1].n_vocab
    assert made[0].special_tokens_set == made[1].special_tokens_set


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mergeable_ranks": {**BYTES, b"ab": 7}}, r"two pieces have the rank 7: b'\\x07' and b'ab'"),
        ({"special_tokens": {"": 300}}, "a special token is empty"),
        ({"pat_str": ""}, "pat_str is empty"),
    ],
)
def test_what_tiktoken_panics_at_is_an_error(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(ours, **changes)


def test_a_byte_without_a_rank() -> None:
    mine = make(ours, mergeable_ranks={b"a": 0, b"b": 1, b"ab": 2}, special_tokens={})
    assert mine.encode("abba") == [2, 1, 0]
    assert mine._encode_single_piece("abb") == [2, 1]
    for call in ("encode", "_encode_single_piece"):
        with pytest.raises(ValueError, match=r"byte .*has no rank in mergeable_ranks"):
            getattr(mine, call)("abc")


def test_attributes(pair: tuple[Any, Any]) -> None:
    mine, theirs = pair
    for name in ("name", "_pat_str", "_mergeable_ranks", "_special_tokens", "_special_token_values"):
        assert getattr(mine, name) == getattr(theirs, name)
    for name in ("max_token_value", "n_vocab", "eot_token", "special_tokens_set"):
        assert getattr(mine, name) == getattr(theirs, name)
    public = {name for name in dir(theirs) if not name.startswith("_")}
    assert public <= {name for name in dir(mine) if not name.startswith("_")}
    with pytest.raises(KeyError):
        _ = make(ours).eot_token


def test_signatures() -> None:
    for name in dir(tiktoken.Encoding):
        function = getattr(tiktoken.Encoding, name)
        if inspect.isfunction(function) and (not name.startswith("_") or name == "__init__"):
            theirs, mine = (
                list(inspect.signature(f).parameters.values())
                for f in (function, getattr(ours.Encoding, name))
            )
            assert [(p.name, p.kind) for p in mine] == [(p.name, p.kind) for p in theirs], name
            kept = [
                (p.default, q.default)
                for p, q in zip(mine, theirs, strict=True)
                if p.name != "allowed_special"
            ]
            assert all(one == other for one, other in kept), name


# --- Copies ---------------------------------------------------------------------------------------


def test_pickles_and_copies(pair: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    mine = make(ours, mergeable_ranks=ranks(), special_tokens={"<|pickle|>": 100_000})
    for again in (pickle.loads(pickle.dumps(mine)), copy.copy(mine), copy.deepcopy(mine)):
        assert again.encode("the cat<|pickle|>", allowed_special="all") == [*mine.encode("the cat"), 100_000]
        assert again is not mine
        # (In neither library is a copy equal to the original.)
        assert (again == mine) is (copy.copy(pair[1]) == pair[1]) is False
    # An encoding of the registry is pickled as its name.
    monkeypatch.setitem(registry.ENCODINGS, "own", mine)
    assert len(pickle.dumps(mine)) < 200
    assert pickle.loads(pickle.dumps(mine)).encode("the") == mine.encode("the")


def test_tables_that_are_changed_later() -> None:
    both = []
    for library in (ours, tiktoken):
        table, special = {**BYTES, b"ab": 256, b"cd": 257}, {"<e>": 300}
        made = make(library, mergeable_ranks=table, special_tokens=special)
        table[b"abcd"], special["<f>"] = 258, 301
        calls = (lambda enc: enc.encode("abcd"), lambda enc: enc._encode_single_piece("abcd"))
        found: list[Any] = [call(made) for call in calls]  # type: ignore[no-untyped-call]
        for name in ("abcd", "<f>"):
            with pytest.raises(KeyError):
                made.encode_single_token(name)
        both.append([*found, made.encode_with_unstable("ab")[0], made.special_tokens_set])
    assert both[0] == both[1]


def test_the_tokenizer_inside(pair: tuple[Any, Any]) -> None:
    tok = pair[0].cpbpe
    assert isinstance(tok, cpbpe.Tokenizer)
    assert tok.encode("hello<|endoftext|>", allowed_special="all") == [15339, 100257]
    with pytest.raises(cpbpe.ModelError, match="no piece has the rank"):
        _ = make(ours, mergeable_ranks={**BYTES, b"ab": 1000}).cpbpe


def test_choices_and_ids_that_can_be_read_only_once() -> None:
    """What is refused is the same again, and ids may be any iterable."""
    given = {
        "pat_str": r"\w+|\W+",
        "mergeable_ranks": {**BYTES, b"ab": 256},
        "special_tokens": {"<end>": 300},
    }
    made: list[Any] = [library.Encoding("x", **given) for library in (tiktoken, ours)]
    for encoding in made:
        for refused in (iter(["<end>"]), ["<end>"], iter(["<end>"])):
            with pytest.raises(ValueError, match="disallowed special token"):
                encoding.encode("a<end>", disallowed_special=refused)
    for ids in ([256, 99], (256, 99), b"ab"):
        for once in (list, tuple, iter):
            assert made[0].decode_tokens_bytes(once(ids)) == made[1].decode_tokens_bytes(once(ids))
            assert made[0].decode_with_offsets(once(ids)) == made[1].decode_with_offsets(once(ids))
        assert made[0].decode_tokens_bytes(ids) == made[1].decode_tokens_bytes(ids)
