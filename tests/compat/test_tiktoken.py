"""Every call of tiktoken, made in both libraries: results, errors, and what an encoding is besides."""

import copy
import inspect
import pickle
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha1, sha256
from typing import Any

import numpy as np
import pytest
import tiktoken
import tiktoken.load
import tiktoken.model
import tiktoken.registry
from tiktoken_ext import openai_public as their_public  # type: ignore[import-untyped]

import cpbpe
import cpbpe.compat.tiktoken as ours
from cpbpe.compat.tiktoken import load, model, openai_public, registry
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
    text = "x" * 1_000_000
    assert pair[0].decode(pair[0].encode(text)) == text
    # tiktoken gives up here.
    assert isinstance(outcome(pair[1], "encode", " " * 1_000_000 + "x"), tuple)
    assert pair[0].decode(pair[0].encode(" " * 1_000_000 + "x")) == " " * 1_000_000 + "x"


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
        assert (again == mine) is (copy.copy(pair[1]) == pair[1]) is False
    # One of the registry is its name.
    monkeypatch.setitem(registry.ENCODINGS, "own", mine)
    assert len(pickle.dumps(mine)) < 200
    assert pickle.loads(pickle.dumps(mine)).encode("the") == mine.encode("the")


def test_the_tokenizer_inside(pair: tuple[Any, Any]) -> None:
    tok = pair[0].cpbpe
    assert isinstance(tok, cpbpe.Tokenizer)
    assert tok.encode("hello<|endoftext|>", allowed_special="all") == [15339, 100257]
    with pytest.raises(cpbpe.ModelError, match="no piece has the rank"):
        _ = make(ours, mergeable_ranks={**BYTES, b"ab": 1000}).cpbpe


# --- Names ----------------------------------------------------------------------------------------


def test_names(monkeypatch: pytest.MonkeyPatch) -> None:
    assert model.MODEL_TO_ENCODING == tiktoken.model.MODEL_TO_ENCODING
    assert model.MODEL_PREFIX_TO_ENCODING == tiktoken.model.MODEL_PREFIX_TO_ENCODING
    for name in (
        *model.MODEL_TO_ENCODING,
        *model.MODEL_PREFIX_TO_ENCODING,
        "gpt-3.5-turbo-0301",
        "ft:gpt-4o:me",
    ):
        assert ours.encoding_name_for_model(name) == tiktoken.encoding_name_for_model(name)
    with pytest.raises(KeyError, match="Could not automatically map bert"):
        ours.encoding_for_model("bert")
    with pytest.raises(ValueError, match="Unknown encoding bert; known are gpt2, r50k_base"):
        ours.get_encoding("bert")
    with pytest.raises(ValueError, match="Expected a string"):
        ours.get_encoding(5)  # type: ignore[arg-type]
    assert ours.list_encoding_names() == tiktoken.list_encoding_names()
    assert ours.__version__ == tiktoken.__version__


def test_the_public_encodings(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the ranks replaced, which other tests compare: everything else is tiktoken's."""
    seen: list[Any] = []
    few = {bytes([byte]): byte for byte in range(256)}

    def loaded(*args: Any, **options: Any) -> dict[bytes, int]:
        seen.append((args, options))
        return few

    for module in (openai_public, their_public):
        monkeypatch.setattr(module, "load_tiktoken_bpe", loaded)
        monkeypatch.setattr(module, "data_gym_to_mergeable_bpe_ranks", loaded)
    names = list(their_public.ENCODING_CONSTRUCTORS)
    assert list(openai_public.ENCODING_CONSTRUCTORS) == names
    for name in names:
        expected = their_public.ENCODING_CONSTRUCTORS[name]()
        assert openai_public.ENCODING_CONSTRUCTORS[name]() == expected
        assert seen.pop() == seen.pop()


@pytest.fixture
def plugins(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A plugin's module, which is written to the file that this yields."""
    folder = tmp_path / "tiktoken_ext"
    folder.mkdir()
    monkeypatch.setattr(sys.modules["tiktoken_ext"], "__path__", [str(folder)])
    monkeypatch.setattr(registry, "ENCODING_CONSTRUCTORS", None)
    yield folder / "mine.py"
    sys.modules.pop("tiktoken_ext.mine", None)
    registry.ENCODINGS.pop("from_plugin", None)


def test_plugins(plugins: Any) -> None:
    plugins.write_text(
        "def make():\n"
        "    return dict(name='from_plugin', pat_str='[a-z]+', special_tokens={},\n"
        "                mergeable_ranks={bytes([byte]): byte for byte in range(256)})\n"
        "ENCODING_CONSTRUCTORS = {'from_plugin': make}\n"
    )
    made = ours.get_encoding("from_plugin")
    assert made.encode("a b") == [97, 98]
    assert ours.get_encoding("from_plugin") is made
    assert ours.list_encoding_names()[-1] == "from_plugin"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "plugin tiktoken_ext.mine does not define ENCODING_CONSTRUCTORS"),
        ("ENCODING_CONSTRUCTORS = {'gpt2': dict}", "Duplicate encoding name gpt2"),
    ],
)
def test_broken_plugins(plugins: Any, text: str, message: str) -> None:
    plugins.write_text(text)
    for _ in range(2):
        with pytest.raises(ValueError, match=message):
            ours.list_encoding_names()


# --- Files ----------------------------------------------------------------------------------------


def test_files_of_ranks(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "my.tiktoken")
    load.dump_tiktoken_bpe(ranks(), path)
    monkeypatch.setenv(
        "TIKTOKEN_CACHE_DIR", ""
    )  # (with a cache, tiktoken reads a file once, even a local one)
    assert load.load_tiktoken_bpe(path) == ranks() == tiktoken.load.load_tiktoken_bpe(path)
    digest = sha256((tmp_path / "my.tiktoken").read_bytes()).hexdigest()
    assert load.load_tiktoken_bpe(path, digest) == ranks()
    with pytest.raises(ValueError, match=r"my.tiktoken is damaged, or not the file that is meant"):
        load.load_tiktoken_bpe(path, "0" * 64)
    for text in (
        b"\nIQ== 0\n\nYWI=  7\n",
        b"IQ==\t0\n",
        b"I Q==",
        b"I 0\n",
        b"IQ== x",
        b"IQ== 0 1",
        b"IQ= 3\n",
        b"= 5",
    ):
        (tmp_path / "my.tiktoken").write_bytes(text)
        found = []
        for package in (load, tiktoken.load):
            try:
                found.append(package.load_tiktoken_bpe(path))
            except ValueError as error:
                found.append(str(error).replace(path, ""))
        assert found[0] == found[1], text


def test_where_files_are(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "https://somewhere.test/encodings/my.tiktoken"
    load.dump_tiktoken_bpe(BYTES, str(tmp_path / "my.tiktoken"))
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    monkeypatch.setenv("DATA_GYM_CACHE_DIR", str(tmp_path))
    assert load.load_tiktoken_bpe(url) == BYTES
    # tiktoken's own name for it.
    (tmp_path / "my.tiktoken").rename(tmp_path / sha1(url.encode()).hexdigest())
    assert load.load_tiktoken_bpe(url) == BYTES == tiktoken.load.load_tiktoken_bpe(url)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "other"))
    with pytest.raises(
        FileNotFoundError, match=r"cpbpe downloads nothing; fetch it with: curl --create-dirs -o"
    ):
        load.load_tiktoken_bpe(url)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    with pytest.raises(FileNotFoundError, match="TIKTOKEN_CACHE_DIR is empty"):
        load.load_tiktoken_bpe(url)
    with pytest.raises(FileNotFoundError, match="cpbpe downloads nothing"):
        load.read_file(url)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "other"))
    with pytest.raises(FileNotFoundError, match=r"cl100k_base.tiktoken is not in .*other"):
        registry.get_encoding("cl100k_base" if "cl100k_base" not in registry.ENCODINGS else "r50k_base")


def test_the_files_of_gpt2(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.support import wheels

    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    for name in ("vocab.bpe", "encoder.json"):
        wheels.file(name, tmp_path)
    made = openai_public.gpt2()
    assert made["mergeable_ranks"] == both("gpt2")[1]._mergeable_ranks
    paths = str(tmp_path / "vocab.bpe"), str(tmp_path / "encoder.json")
    assert (
        load.data_gym_to_mergeable_bpe_ranks(*paths, clobber_one_byte_tokens=True) == made["mergeable_ranks"]
    )
    (tmp_path / "encoder.json").write_text('{"!": 5}')
    with pytest.raises(AssertionError, match="the two files belong to different models"):
        load.data_gym_to_mergeable_bpe_ranks(*paths)


def test_tiktoken_itself_is_not_imported() -> None:
    program = (
        "import sys, cpbpe\n"
        "assert not any('tiktoken' in name for name in sys.modules)\n"
        "import cpbpe.compat.tiktoken\n"
        "assert not {'tiktoken', 'tiktoken_ext', 'requests', 'numpy', 'regex'} & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
