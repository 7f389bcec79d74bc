"""The Tokenizer as a Python object: what it takes, what it refuses, how it copies, saves and compares."""

import copy
import gc
import importlib
import io
import os
import pickle
import signal
import sys
from array import array
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cpbpe
from cpbpe import Tokenizer, checks
from cpbpe.reference import encoding as reference
from cpbpe.text.utf8 import repair
from tests.conftest import ENGINES
from tests.support import corpus, processes, tiers, zoo
from tests.support.budget import MUCH

pytestmark = pytest.mark.usefixtures("engine")


@pytest.fixture
def tok(engine: str) -> Tokenizer:
    return Tokenizer.from_bytes(zoo.model("llama"))


engine_module = importlib.import_module("cpbpe.engine.choice")
TEXT = "Grüße, old lighthouse 🦙!"


# --- Loading and saving ---------------------------------------------------------------------------


class Trickle(io.BytesIO):
    """A file that gives little at a time, as a pipe does."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(size or 100, 100))


def test_every_way_to_load(tok: Tokenizer, tmp_path: Path) -> None:
    data = tok.to_bytes()
    path = tmp_path / "a.model"
    path.write_bytes(data)
    with path.open("rb") as file:
        loaded = [Tokenizer(file)]
    for source in (str(path), path, io.BytesIO(data)):
        loaded += [Tokenizer(source), cpbpe.load(path)]
    loaded += [Tokenizer(Trickle(data))]
    loaded += [
        Tokenizer.from_bytes(data),
        Tokenizer.from_bytes(bytearray(data)),
        Tokenizer.from_bytes(memoryview(data)),
    ]
    assert all(one == tok and one.to_bytes() == data for one in loaded)


def test_wrong_sources() -> None:
    with pytest.raises(FileNotFoundError):
        cpbpe.load("/no/such/file.model")
    with pytest.raises(FileNotFoundError, match=r"no tokenizer\.model and no tokenizer\.json; it holds "):
        cpbpe.load(Path(__file__).parent)
    with pytest.raises(TypeError, match="path or an open binary file, not int"):
        cpbpe.load(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"binary mode \('rb'\), its read\(\) returned str"):
        cpbpe.load(io.StringIO("x"))  # type: ignore[arg-type]
    with pytest.raises(
        TypeError, match=r"takes the bytes of a model, not str; to load a file, use Tokenizer\(path\)"
    ):
        Tokenizer.from_bytes("tokenizer.model")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="source"):
        Tokenizer()  # type: ignore[call-arg]


@pytest.mark.parametrize("name", ["a.model", "a.json", "a.gguf"])
def test_save_says_which_bound_options_are_in_no_file(tok: Tokenizer, tmp_path: Path, name: str) -> None:
    tok.using(add_bos=True).save(tmp_path / name)
    assert Tokenizer(tmp_path / name).file_options == {"add_bos": True}
    with pytest.warns(UserWarning, match=r"using\(\) has bound reverse and alpha, and no file asks for that"):
        tok.using(add_bos=True, reverse=True, alpha=0.1).save(tmp_path / name)
    assert Tokenizer(tmp_path / name).file_options == {"add_bos": True}


def test_save_replaces_at_once(tok: Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "out.model"
    tok.save(path)
    path.write_bytes(b"old")
    tok.save(str(path))
    assert path.read_bytes() == tok.to_bytes()
    link = tmp_path / "link.model"
    link.symlink_to(path)
    tok.save(link)
    assert link.is_symlink()
    assert sorted(tmp_path.iterdir()) == [link, path]
    with pytest.raises(FileNotFoundError):
        tok.save(tmp_path / "no" / "folder.model")
    tok.save(os.devnull)
    assert not Path(os.devnull).is_file()


# --- Being a value --------------------------------------------------------------------------------


def test_copies_are_equal_and_work(tok: Tokenizer) -> None:
    for same in (copy.copy(tok), copy.deepcopy(tok), pickle.loads(pickle.dumps(tok))):
        assert same == tok
        assert hash(same) == hash(tok)
        assert same.encode(TEXT) == tok.encode(TEXT)
    other = Tokenizer.from_bytes(zoo.model("defaults"))
    assert other != tok
    assert tok != "tok"
    assert len({tok, other, copy.copy(tok)}) == 2


def test_it_does_not_change(tok: Tokenizer) -> None:
    with pytest.raises(AttributeError):
        tok.vocab_size = 3  # type: ignore[misc]
    with pytest.raises(AttributeError):
        tok.something = 3  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        del tok.bos_id
    with pytest.raises(AttributeError):
        tok.align("a").ids = []  # type: ignore[misc]


def test_subclasses_stay_what_they_are(tok: Tokenizer) -> None:
    found = Mine.from_bytes(tok.to_bytes())
    assert type(found) is Mine
    assert type(pickle.loads(pickle.dumps(found))) is Mine


class Mine(Tokenizer):
    pass


def test_repr(tok: Tokenizer) -> None:
    assert repr(tok) == "<cpbpe.Tokenizer: 700 pieces, byte fallback, normalizer 'identity'>"
    other = Tokenizer.from_bytes(zoo.model("defaults"))
    bound = tok.using(add_bos=True, allowed_special={"</s>"})
    assert repr(bound) == f"{repr(tok)[:-1]}, using add_bos=True, allowed_special=('</s>',)>"
    assert repr(other) == "<cpbpe.Tokenizer: 600 pieces, no byte fallback, normalizer 'nmt_nfkc'>"


# --- Text in --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["encode", "encode_pieces", "align", "normalize"])
def test_text_is_str_or_bytes(tok: Tokenizer, method: str) -> None:
    call: Callable[[Any], Any] = getattr(tok, method)
    data = TEXT.encode()
    assert call(bytearray(data)) == call(memoryview(data)) == call(data)
    call(np.str_("numpy's str is a str"))
    for wrong, name in ((3, "int"), (None, "NoneType"), (["a"], "list"), (1.5, "float")):
        if method == "encode" and name == "list":
            continue  # parts of a text
        with pytest.raises(TypeError, match=rf"{method}\(\) takes str or bytes, not {name}"):
            call(wrong)
    with pytest.raises(UnicodeEncodeError, match="surrogates not allowed"):
        call("a\ud800b")


@tiers.models()
def test_empty_text(name: str) -> None:
    tok = Tokenizer.from_bytes(zoo.model(name))
    for empty in ("", b""):
        assert (tok.encode(empty), tok.encode_pieces(empty)) == ([], [])
        assert tok.align(empty).offsets == []
        assert tok.normalize(empty) == empty
    assert tok.decode([]) == tok.decode_pieces([]) == ""
    assert tok.decode_bytes([]) == b""


def test_nothing_but_ends(tok: Tokenizer) -> None:
    assert tok.encode("", add_bos=True, add_eos=True) == [1, 2]
    assert (tok.encode_batch([]), tok.decode_batch([])) == ([], [])


def test_offsets_with_ends(tok: Tokenizer) -> None:
    found = tok.align("né", add_bos=True, add_eos=True)
    assert found.pieces == ["<s>", "▁n", "é", "</s>"]
    assert found.offsets == [(0, 0), (0, 1), (1, 2), (2, 2)]
    assert found.surfaces == ["", "n", "é", ""]
    assert len(found) == 4
    in_bytes = tok.align("né", add_bos=True, add_eos=True, reverse=True, unit="byte")
    assert in_bytes.pieces == ["<s>", "é", "▁n", "</s>"]
    assert in_bytes.offsets == [(0, 0), (1, 3), (0, 1), (3, 3)]
    assert in_bytes.surfaces == [b"", "é".encode(), b"n", b""]
    with pytest.raises(ValueError, match="unit must be 'char' or 'byte', not 'bytes'"):
        tok.align("a", unit="bytes")  # type: ignore[arg-type]


def test_offsets_of_broken_bytes(tok: Tokenizer) -> None:
    found = tok.align(b"a\xff\xe2b")
    assert (found.unit, found.text) == ("byte", b"a\xff\xe2b")
    assert b"".join(s for s in found.surfaces if isinstance(s, bytes)) == b"a\xff\xe2b"
    by_character = tok.align(b"a\xff\xe2b", unit="char")
    assert by_character.offsets[-1] == (3, 4)
    assert "".join(map(str, by_character.surfaces)) == "a\ufffd\ufffdb"


def test_batches(tok: Tokenizer) -> None:
    texts: list[str | bytes] = ["one", b"two", "", "three"]
    assert tok.encode_batch(texts) == [tok.encode(text) for text in texts]
    assert tok.encode_batch(iter(texts), add_bos=True) == [tok.encode(text, add_bos=True) for text in texts]
    assert tok.decode_batch(tok.encode_batch(texts)) == ["one", "two", "", "three"]
    assert tok.decode_batch(np.array([[265, 266], [267, 268]])) == [
        tok.decode([265, 266]),
        tok.decode([267, 268]),
    ]
    for wrong in ("one text", b"bytes", 3, None):
        with pytest.raises(TypeError, match=r"encode_batch\(\) takes a list of texts, not"):
            tok.encode_batch(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="decode_batch"):
        tok.decode_batch("ids")  # type: ignore[arg-type]
    with pytest.raises(
        TypeError, match=r"for several texts use encode_batch\(\), and for one .* encode_parts"
    ):
        tok.encode(texts)  # type: ignore[arg-type]
    assert tok.encode_parts(texts) == [id for text in texts for id in tok.encode(text)]


def test_arrays(tok: Tokenizer) -> None:
    matrix: Any = [
        {},
        {"add_bos": True},
        {"add_eos": True, "reverse": True},
        {"add_bos": True, "add_eos": True},
    ]
    for options in matrix:
        ids = tok.encode(TEXT, **options)
        found = tok.encode_array(TEXT, **options)
        assert found.dtype == np.uint32
        assert found.tolist() == ids
        found += 1  # it is the caller's own
        texts: list[str | bytes] = [TEXT, b"two", "", "three"]
        ragged = tok.encode_arrays(texts, **options)
        assert ragged.ids.dtype == np.uint32
        assert ragged.offsets.dtype == np.int64
        assert ragged.tolist() == tok.encode_batch(texts, **options)
        assert tok.decode_batch(ragged) == [tok.decode(row) for row in ragged]
    assert tok.encode_array("").dtype == np.uint32
    assert tok.count(TEXT) == len(tok.encode(TEXT))
    assert tok.count("") == 0
    empty = tok.encode_arrays([])
    assert (len(empty), empty.tolist(), empty.padded(0).shape) == (0, [], (0, 0))


# The reference takes `threads` and ignores it, so one number is enough there.
THREADS = [("core", number) for number in (1, 2, 3, 8, 10**6) if "core" in ENGINES]


@pytest.mark.parametrize(
    ("engine", "threads"), [*THREADS, pytest.param("reference", 2, marks=tiers.slow)], indirect=["engine"]
)
def test_threads_give_the_same(tok: Tokenizer, threads: int) -> None:
    lines = corpus.lines(600)
    text = "\n".join(lines)
    long = 200_000 if (is_core := type(tok.facts.engine).__name__ == "Engine") or MUCH else 20_000
    for one in (text, text * 4, "☃" * long, "a" * long, text.encode(), text.encode() + b"\xff"):
        assert tok.encode_array(one, threads=threads).tolist() == tok.encode(one)
    expected = [tok.encode(line) for line in lines]
    assert tok.encode_batch(lines, threads=threads) == expected
    assert tok.encode_arrays(lines, threads=threads).tolist() == expected
    assert tok.decode_batch(expected, threads=threads) == [tok.decode(ids) for ids in expected]
    if is_core:  # the core shares out only what is worth a thread
        many = expected * (1 + (1 << 17) // sum(map(len, expected)))
        assert tok.decode_batch(many, threads=threads) == [tok.decode(ids) for ids in many]


def test_wrong_threads(tok: Tokenizer) -> None:
    calls: list[Any] = [tok.encode_array, tok.encode_batch, tok.encode_arrays]
    for call in calls:
        given: Any = "text" if call == tok.encode_array else ["text"]
        with pytest.raises(ValueError, match="threads must be at least 1, not 0"):
            call(given, threads=0)
        with pytest.raises(TypeError, match="threads must be an integer, not str"):
            call(given, threads="2")


# --- Ids in ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("processors", [1, 3])
def test_no_more_threads_than_processors(processors: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "cores", lambda: processors)
    assert [checks.checked_threads(number) for number in (1, 2, 16)] == [1, min(2, processors), processors]


def test_ids_of_every_kind(tok: Tokenizer) -> None:
    ids = tok.encode(TEXT)
    expected = tok.decode(ids)
    kinds: list[Any] = [
        tuple(ids),
        iter(ids),
        array("i", ids),
        memoryview(array("q", ids)),
        [np.int64(id) for id in ids],
        *(np.array(ids, dtype) for dtype in ("int16", "uint16", "int32", "uint32", "int64", "uint64")),
        np.array(ids)[::-1][::-1],
        np.array(ids, dtype=object),
    ]
    for kind in kinds:
        assert tok.decode(kind) == expected
    one = ids[0]
    for single in (one, np.int32(one), np.array(one)):
        assert tok.decode(single) == tok.decode([one])
        assert tok.decode_bytes(single) == tok.decode_bytes([one])
        assert tok.id_to_piece(single) == tok.id_to_piece(one)
    assert tok.decode(range(3, 6)) == tok.decode([3, 4, 5])


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ("13", r"decode\(\) takes ids \(integers\), not str; for pieces use decode_pieces"),
        (b"13", r"decode\(\) takes ids \(integers\), not bytes"),
        ([1, 2.0], "found float at position 1"),
        ([1, "a"], "found str at position 1"),
        ([None], "found NoneType at position 0"),
        (None, "found NoneType at position 0"),
        (1.5, "found float at position 0"),
        ([[1, 2], [3]], "found list at position 0; use decode_batch"),
        (np.array([[1, 2]]), "found list at position 0; use decode_batch"),
        (np.array([1.0]), "found float at position 0"),
    ],
)
def test_wrong_ids(tok: Tokenizer, ids: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        tok.decode(ids)


@pytest.mark.parametrize("bad", [700, -1, 1 << 31, 1 << 64, -(1 << 70)])
def test_ids_outside(tok: Tokenizer, bad: int) -> None:
    message = f"id {bad} at position 2 is outside the vocabulary: 700 pieces, 0 to 699"
    for call in (tok.decode, tok.decode_bytes):
        with pytest.raises(IndexError, match=f"^{message}$"):
            call([5, 6, bad, 7])
    for look in (tok.id_to_piece, tok.vocab.score, tok.vocab.piece_type):
        with pytest.raises(IndexError, match=f"^id {bad} is outside the vocabulary: 700 pieces, 0 to 699$"):
            look(bad)
    for array_of_ids in [np.array([5, 6, bad], np.int64)] if -(1 << 62) < bad < 1 << 62 else []:
        with pytest.raises(IndexError, match=f"^id {bad} at position 2"):
            tok.decode(array_of_ids)
        with pytest.raises(IndexError, match=f"^id {bad} at position 2"):
            tok.decode_batch([[1], array_of_ids])


def test_wrong_single_ids_and_pieces(tok: Tokenizer) -> None:
    for look in (tok.id_to_piece, tok.vocab.score, tok.vocab.piece_type):
        with pytest.raises(TypeError, match=rf"{look.__name__}\(\) takes one id \(an integer\), not list"):
            look([1])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"piece_to_id\(\) takes str or bytes, not int"):
        tok.piece_to_id(3)  # type: ignore[arg-type]
    for single in ("abc", b"abc", 3):
        with pytest.raises(TypeError, match=r"decode_pieces\(\) takes a list of pieces, not"):
            tok.decode_pieces(single)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"decode_pieces\(\) takes str or bytes, not int"):
        tok.decode_pieces([1])  # type: ignore[list-item]
    assert tok.piece_to_id(b"<0x41>") == tok.piece_to_id("<0x41>")
    assert tok.decode_pieces([b"<0xC3>", "<0xA9>"]) == "é"


def test_missing_ends_are_an_error() -> None:
    tok = Tokenizer.from_bytes(zoo.model("no-bos-empty-surface"))
    assert (tok.bos_id, tok.pad_id, tok.eos_id) == (None, None, 2)
    with pytest.raises(
        ValueError, match=r"add_bos=True, but this model defines no bos piece of type CONTROL"
    ):
        tok.encode("a", add_bos=True)


# --- Bytes out ------------------------------------------------------------------------------------


@tiers.models([name for name in zoo.NAMES if "broken-pieces" not in name])
def test_decode_bytes_is_decode_without_repair(name: str) -> None:
    """Where bytes make characters the two agree; where they do not, decode_bytes loses nothing."""
    tok = Tokenizer.from_bytes(zoo.model(name))
    for text in corpus.SENTENCES:
        ids = tok.encode(text)
        assert repair(tok.decode_bytes(ids)).decode() == tok.decode(ids)
    byte = tok.piece_to_id("<0xE2>")
    if byte is not None and "denormalizer" not in name:
        assert tok.decode_bytes([byte, byte]) == b"\xe2\xe2"
        assert tok.decode([byte, byte]) == "\ufffd\ufffd"


def test_decode_bytes_with_a_denormalizer() -> None:
    tok = Tokenizer.from_bytes(zoo.model("denormalizer-plain"))
    ids = [tok.piece_to_id(piece) for piece in ("▁", "a", "<0xE2>", "<0x61>")]
    assert tok.decode_bytes([id for id in ids if id is not None]) == b"A\xe2A"


# --- Sharing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_share_a_tokenizer(tok: Tokenizer, method: str) -> None:
    texts = corpus.SENTENCES[:4]
    tok.encode_batch(texts * 100, threads=2)  # used before the fork, by threads, too
    with ProcessPoolExecutor(2, mp_context=get_context(method)) as pool:
        assert list(pool.map(tok.encode, texts)) == [tok.encode(text) for text in texts]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no timers with signals")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_batch_can_be_interrupted(tok: Tokenizer, threads: int) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            tok.encode_batch(["a lighthouse keeper " * 50] * 100_000, threads=threads)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert tok.encode_batch([TEXT], threads=threads) == [tok.encode(TEXT)]


@pytest.mark.parametrize("enabled", [True, False])
def test_a_batch_leaves_the_garbage_collector_as_it_was(tok: Tokenizer, enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()
    try:
        tok.encode_batch([TEXT] * 100, threads=2)
        assert gc.isenabled() == enabled
    finally:
        gc.enable()


def test_memory_of_the_reference_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPBPE_ENGINE", "reference")
    monkeypatch.setattr(reference, "CACHED_CHUNKS", 5)
    tok = Tokenizer.from_bytes(zoo.model("llama"))
    expected = Tokenizer.from_bytes(zoo.model("llama")).encode(TEXT * 3)
    for _ in range(3):
        assert tok.encode(TEXT * 3) == expected
    assert len(tok.facts.engine._reference._cache) <= 5  # type: ignore[attr-defined]


# --- The package ----------------------------------------------------------------------------------


def test_engine_is_named(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cpbpe.engine_name() == engine
    monkeypatch.setenv("CPBPE_ENGINE", "fast")
    with pytest.raises(ValueError, match='CPBPE_ENGINE must be "core" or "reference", not \'fast\''):
        cpbpe.engine_name()
    monkeypatch.delenv("CPBPE_ENGINE")
    monkeypatch.setenv("CPBPE_MACHINE", "avx")
    with pytest.raises(ValueError, match="CPBPE_MACHINE must be plain, avx2, neon or avx512, not 'avx'"):
        cpbpe.load(zoo.real_path(zoo.REAL[0]))


def test_without_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """It works, and says so once; asking for the core is an error."""
    engine_module._say_once.cache_clear()
    monkeypatch.delenv("CPBPE_ENGINE")
    monkeypatch.setitem(sys.modules, "cpbpe._core", None)
    monkeypatch.delattr(cpbpe, "_core", raising=False)
    data = zoo.model("llama")
    with pytest.warns(RuntimeWarning, match="runs on its reference engine"):
        tok = Tokenizer.from_bytes(data)
    assert Tokenizer.from_bytes(data).encode("abra") == tok.encode("abra")
    assert cpbpe.engine_name() == "reference"
    monkeypatch.setenv("CPBPE_ENGINE", "core")
    with pytest.raises(ImportError, match=r"CPBPE_ENGINE=core, but the compiled core.* halted"):
        Tokenizer.from_bytes(data)


def test_import_is_light() -> None:
    """Importing cpbpe imports neither protobuf nor numpy; loading a model needs protobuf alone."""
    code = (
        "import sys, cpbpe\n"
        "assert not {'numpy', 'google.protobuf'} & sys.modules.keys(), 'import'\n"
        "cpbpe.load(sys.argv[1]).encode('Hello')\n"
        "assert 'numpy' not in sys.modules, 'load'\n"
    )
    processes.output("-W", "error", "-c", code, zoo.real_path(zoo.REAL[0]))


def test_public_names() -> None:
    assert sorted(cpbpe.__all__) == sorted(
        name for name in dir(cpbpe) if name[0].isupper() or name in cpbpe.__all__
    )
    assert all(getattr(cpbpe, name) is not None for name in cpbpe.__all__)
