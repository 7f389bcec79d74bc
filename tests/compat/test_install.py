"""cpbpe.compat.install() gives cpbpe the name sentencepiece, in a process of its own."""

from pathlib import Path

import pytest

from tests.support import processes, tiers, zoo

BEGIN = """
import sys
import cpbpe.compat
path = sys.argv[1]
"""
# As in an environment without sentencepiece: what is on the disk cannot be imported.
HIDDEN = """
import importlib.abc
class Hide(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] == "sentencepiece":
            raise ModuleNotFoundError("No module named 'sentencepiece'", name=name)
sys.meta_path.insert(0, Hide())
"""

SCRIPTS = {
    "imports": """
        cpbpe.compat.install()
        import sentencepiece, sentencepiece as spm
        from sentencepiece import SentencePieceProcessor, sentencepiece_model_pb2
        import sentencepiece.sentencepiece_model_pb2 as again
        from sentencepiece.sentencepiece_pb2 import SentencePieceText
        import cpbpe.compat.sentencepiece as ours
        assert spm is ours and again is sentencepiece_model_pb2
        sp = SentencePieceProcessor(model_file=path)
        assert sp.encode("Hello world") == [22557, 1526]
        assert type(sp.encode("Hello", return_type="proto")) is SentencePieceText
        proto = again.ModelProto.FromString(open(path, "rb").read())
        assert proto.pieces[1].piece == "<s>" and proto.trainer_spec.model_type == 2
        assert spm.__version__ == "0.2.3"
    """,
    "find_spec": """
        import importlib.util
        cpbpe.compat.install()
        assert importlib.util.find_spec("sentencepiece") is not None
    """,
    "twice, and undone": """
        before = {name for name in sys.modules if "sentencepiece" in name}
        cpbpe.compat.uninstall()
        cpbpe.compat.install()
        cpbpe.compat.install()
        cpbpe.compat.uninstall()
        assert not [name for name in sys.modules if name.startswith("sentencepiece")]
        cpbpe.compat.uninstall()
    """,
    "pickles of either name": """
        import pickle
        cpbpe.compat.install()
        import sentencepiece
        sp = sentencepiece.SentencePieceProcessor(path, add_bos=True)
        data = pickle.dumps(sp, protocol=2)  # (names are lines in it)
        assert pickle.loads(data).encode("Hello world") == [1, 22557, 1526]
        assert data.count(b"cpbpe.compat.sentencepiece\\n") == 1
        data = data.replace(b"cpbpe.compat.sentencepiece\\n", b"sentencepiece\\n")
        assert pickle.loads(data).encode("Hello world") == [1, 22557, 1526]
        cpbpe.compat.uninstall()
    """,
}
WITH_SENTENCEPIECE = {
    "refused when sentencepiece is there": """
        import sentencepiece
        try:
            cpbpe.compat.install()
        except RuntimeError as error:
            assert "before anything imports it, or install('sentencepiece', replace=True)" in str(error)
        else:
            raise AssertionError
        import sentencepiece as again
        assert again is sentencepiece and "cpbpe" not in sentencepiece.__name__
    """,
    "replaced, and put back": """
        import sentencepiece, sentencepiece.sentencepiece_model_pb2
        theirs = {name: module for name, module in sys.modules.items() if name.startswith("sentencepiece")}
        sp = sentencepiece.SentencePieceProcessor(path)
        cpbpe.compat.install(replace=True)
        import sentencepiece as ours
        assert ours.__name__ == "cpbpe.compat.sentencepiece" and ours is not sentencepiece
        assert "sentencepiece._sentencepiece" not in sys.modules
        assert ours.SentencePieceProcessor(path).encode("Hello") == sp.encode("Hello")
        cpbpe.compat.install()
        cpbpe.compat.uninstall()
        import sentencepiece as again
        assert again is sentencepiece
        now = {name: module for name, module in sys.modules.items() if name.startswith("sentencepiece")}
        assert now == theirs
        assert again.SentencePieceProcessor(path).encode("Hello") == sp.encode("Hello")
    """,
    "uninstalled, and then the real one": """
        cpbpe.compat.install()
        import sentencepiece as ours
        cpbpe.compat.uninstall()
        import sentencepiece as theirs
        assert theirs is not ours and hasattr(theirs, "_sentencepiece")
        loaded = [spm.SentencePieceProcessor(path) for spm in (theirs, ours)]
        assert loaded[0].encode("Hello") == loaded[1].encode("Hello")
    """,
    "a pickle of the real one": """
        import pickle, sentencepiece
        data = pickle.dumps(sentencepiece.SentencePieceProcessor(path, out_type=str, add_bos=True))
        cpbpe.compat.install(replace=True)
        sp = pickle.loads(data)
        assert type(sp).__module__ == "cpbpe.compat.sentencepiece"
        assert sp.encode("Hello world") == ["<s>", "▁Hello", "▁world"]
    """,
    "transformers converts with it": """
        cpbpe.compat.install()
        import transformers.convert_slow_tokenizer as convert
        model_pb2 = convert.import_protobuf()
        assert model_pb2.__name__.startswith("cpbpe.compat.sentencepiece")
        from sentencepiece import sentencepiece_model_pb2
        proto = model_pb2.ModelProto.FromString(open(path, "rb").read())
        assert proto.pieces[22557].piece == "▁Hello"
        try:
            from transformers.tokenization_utils_sentencepiece import SentencePieceBackend
        except ImportError:  # transformers 4
            sys.exit()
        tokenizer = SentencePieceBackend(vocab_file=path, unk_token="<unk>")
        assert type(tokenizer.sp_model).__module__ == "cpbpe.compat.sentencepiece"
        assert tokenizer.encode("Hello world", add_special_tokens=False) == [22557, 1526]
    """,
}


OTHERS = {
    "tiktoken": """
        cpbpe.compat.install("tiktoken")
        import tiktoken, tiktoken.load
        from tiktoken.core import Encoding
        from tiktoken.registry import get_encoding
        assert Encoding is tiktoken.Encoding and tiktoken.__name__ == "cpbpe.compat.tiktoken"
        from tiktoken import Encoding as again, encoding_for_model
        assert again is Encoding and tiktoken.__version__ == "0.14.0"
    """,
    "tokenizers": """
        cpbpe.compat.install("tokenizers")
        import tokenizers
        from tokenizers import AddedToken, Encoding, Tokenizer
        from tokenizers.decoders import DecodeStream
        from tokenizers.processors import TemplateProcessing
        tokenizer = Tokenizer.from_file(path)
        tokenizer.post_processor = TemplateProcessing("<s> $A", special_tokens=[("<s>", 1)])
        assert tokenizer.encode("Hello world").ids == [1, 22557, 1526]
        assert DecodeStream().step(tokenizer, 22557) == "Hello" and tokenizers.__version__ == "0.23.3"
        try:
            from tokenizers.models import BPE
        except ImportError as error:
            assert str(error).startswith("tokenizers.models is not here: cpbpe.compat.tokenizers loads")
        else:
            raise AssertionError
    """,
    "several, and one given back": """
        cpbpe.compat.install("sentencepiece", "tiktoken", replace=True)
        import sentencepiece, tiktoken
        cpbpe.compat.uninstall("tiktoken")
        import sentencepiece as again
        assert again is sentencepiece and "tiktoken" not in sys.modules
        cpbpe.compat.uninstall()
        assert "sentencepiece" not in sys.modules
    """,
    "names that there are not": """
        try:
            cpbpe.compat.install("sentencepiece", "protobuf")
        except ValueError as error:
            assert "tokenizers, transformers, and not for 'protobuf'" in str(error)
        else:
            raise AssertionError
        assert "sentencepiece" not in sys.modules
    """,
    "refused when it is there": """
        import tokenizers, tokenizers.models
        try:
            cpbpe.compat.install("tokenizers")
        except RuntimeError as error:
            assert "install('tokenizers', replace=True)" in str(error)
        else:
            raise AssertionError
        cpbpe.compat.install("tokenizers", replace=True)
        import tokenizers as ours
        assert ours is not tokenizers and "tokenizers.models" not in sys.modules
        cpbpe.compat.uninstall()
        import tokenizers as again
        assert again is tokenizers and sys.modules["tokenizers.models"] is tokenizers.models
    """,
}


def run(code: str) -> None:
    processes.output("-c", code, zoo.real_path(zoo.REAL[0]))


def dedented(script: str) -> str:
    return "\n".join(line.removeprefix("        ") for line in script.splitlines())


@pytest.mark.parametrize("name", SCRIPTS)
def test_without_sentencepiece(name: str) -> None:
    run(BEGIN + HIDDEN + dedented(SCRIPTS[name]))


@pytest.mark.parametrize("name", OTHERS)
def test_other_packages(name: str) -> None:
    run(BEGIN + dedented(OTHERS[name]))


@pytest.mark.parametrize("name", tiers.some([*SCRIPTS, *WITH_SENTENCEPIECE], list(WITH_SENTENCEPIECE)[:2]))
def test_with_sentencepiece(name: str) -> None:
    run(BEGIN + dedented({**SCRIPTS, **WITH_SENTENCEPIECE}[name]))


def test_importing_is_light() -> None:
    """No protobuf and no numpy before they are needed."""
    run(
        "import sys\nimport cpbpe.compat.sentencepiece\n"
        "heavy = {'numpy', 'google.protobuf', 'transformers', 'sentencepiece', 'contextvars',\n"
        " 'textwrap', 'cpbpe.spelling', 'cpbpe.model.writing', 'difflib'}\n"
        "heavy &= set(sys.modules)\n"
        "assert not heavy, heavy"
    )


def test_names_of_the_package() -> None:
    import cpbpe.compat
    import cpbpe.compat.sentencepiece as by_import
    from cpbpe.compat import sentencepiece as by_from

    assert by_import is by_from
    assert Path(by_from.__file__ or "").name == "__init__.py"
    assert "sentencepiece" not in by_from.__all__
    assert set(cpbpe.compat.__all__) == {"install", "uninstall"}
