"""Names of encodings and models, plugins, and files of ranks: as in tiktoken, but without downloads."""

import pickle
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha1, sha256
from pathlib import Path
from typing import Any

import pytest
import tiktoken
import tiktoken.load
import tiktoken.model
from tiktoken_ext import openai_public as their_public  # type: ignore[import-untyped]

import cpbpe.compat.tiktoken as ours
from cpbpe.compat.tiktoken import load, model, openai_public, registry
from tests.bytes.models import ranks
from tests.support import wheels
from tests.support.tiktoken_texts import both

BYTES = {bytes([byte]): byte for byte in range(256)}


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


def test_their_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Encodings by name, of a model, with more special tokens, and as an example in the package uses one."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    for name in ("cl100k", "o200k"):
        wheels.file(name, tmp_path)
    for package in (ours, tiktoken):
        enc = package.get_encoding("o200k_base")
        assert enc.decode(enc.encode("hello world")) == "hello world"
        assert package.encoding_for_model("gpt-4o") is enc
        base = package.get_encoding("cl100k_base")
        mine = package.Encoding(
            name="cl100k_im",
            pat_str=base._pat_str,
            mergeable_ranks=base._mergeable_ranks,
            special_tokens={**base._special_tokens, "<|im_start|>": 100264, "<|im_end|>": 100265},
        )
        assert mine.encode("<|im_start|>hello world<|im_end|>", allowed_special="all") == [
            100264,
            15339,
            1917,
            100265,
        ]
        harmony = package.encoding_for_model("gpt-oss-120b")
        assert harmony.decode([199998, 200006, 200018]) == "<|startoftext|><|start|><|endofprompt|>"
        for token in ("<|endofprompt|>", "<|reserved_200018|>"):
            assert harmony.encode(f"a{token}", allowed_special="all") == [64, 200018]
        again = pickle.loads(pickle.dumps(base))
        assert again.encode("hello world") == [15339, 1917]
        assert again._mergeable_ranks is base._mergeable_ranks


def test_the_files_of_gpt2(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
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
