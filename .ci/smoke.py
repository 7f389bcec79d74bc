"""Whether an installed cpbpe works: its engines train and encode alike, and as sentencepiece if it is there.

    python smoke.py [core | reference]      the engine that must be what cpbpe uses

It needs nothing but cpbpe, so every wheel is tried with it on every system.
"""

import os
import sys
import sysconfig
from importlib.resources import files
from importlib.util import find_spec

import cpbpe

TEXTS = [
    "Hello world",
    "  two  spaces ",
    "",
    "Ça va, 你好 🦙?\n",
    "читает слова",
    "e\u0301 ﬁ １２",
    "\0",
    "喜欢面包" * 500,
]


def results(corpus: list[bytes]) -> dict[str, object]:
    """What an engine makes of the corpus, and of the texts with the model that it has trained."""
    result = cpbpe.train(corpus, vocab_size=700, byte_fallback=True, progress=False)
    tok = result.tokenizer
    ids = [tok.encode(text) for text in TEXTS]
    return {
        "model": result.model_bytes,
        "ids": ids,
        "batch": tok.encode_batch(TEXTS),
        "arrays": tok.encode_arrays(TEXTS).ids.tolist(),
        "texts": [tok.decode(part) for part in ids],
        "offsets": [tok.align(text).offsets for text in TEXTS],
    }


def main() -> None:
    """Compare, and say what was compared."""
    if len(sys.argv) > 1 and cpbpe.engine_name() != sys.argv[1]:
        sys.exit(f"the engine of {cpbpe.__file__} is {cpbpe.engine_name()}, not {sys.argv[1]}")
    engine = cpbpe.engine_name()
    corpus = files("cpbpe.cli").joinpath("quickstart.txt").read_bytes().splitlines()
    ours = results(corpus)
    if engine == "core" and sysconfig.get_config_var("Py_GIL_DISABLED") and sys._is_gil_enabled():
        sys.exit("something that cpbpe imports has brought back the lock of this free-threaded Python")
    os.environ["CPBPE_ENGINE"] = "reference"
    reference = results(corpus)
    for name in ours:
        if ours[name] != reference[name]:
            sys.exit(f"{name}: {engine} has {ours[name]!r}, reference has {reference[name]!r}")
    others = ""
    if find_spec("sentencepiece"):
        import sentencepiece

        theirs = sentencepiece.SentencePieceProcessor(model_proto=ours["model"])
        for text, ids in zip(TEXTS, ours["ids"], strict=True):
            if theirs.encode(text) != ids:
                sys.exit(f"{text!r}: {ids}, sentencepiece {theirs.encode(text)}")
        others = f" and sentencepiece {sentencepiece.__version__}"
    python = ".".join(map(str, sys.version_info[:3]))
    print(f"cpbpe {cpbpe.__version__}, {engine}, Python {python}, {sys.platform}: as the reference{others}")


if __name__ == "__main__":
    main()
