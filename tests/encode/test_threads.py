"""Threads that share tokenizers, as servers do.

A tokenizer makes many things when they are first needed. So in every round the threads begin with a new
tokenizer, each with another call, and compare all results with those of a thread that was alone. On
free-threaded Python they run at the same time; elsewhere they take turns as often as Python can.
"""

import pickle
import random
import sys
import sysconfig
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

import cpbpe
from cpbpe import Tokenizer
from tests.bytes.models import lacking, model
from tests.support import corpus, processes, tiers, wheels, zoo
from tests.support.budget import MUCH, SEED, examples
from tests.support.tokenizers import tokenizer

THREADS = 6
TEXTS: list[Any] = [
    *corpus.SENTENCES[:6],
    "Hello wörld 🦙🧿\r\n  don't\t日本語 e\u0301 12345</s><|end|> ▁x",
    "",
    b"a\xff\xe2\x96",
    "a" * 300,
    " ".join(corpus.SENTENCES * 3),
]
STRINGS = [text for text in TEXTS if isinstance(text, str)]
MODELS: dict[str, Callable[[], bytes]] = {
    **{
        name: partial(zoo.model, name)
        for name in ("llama", "defaults", "denormalizer", "user-defined-llama", zoo.REAL[0])
    },
    "bytes": lambda: Tokenizer.from_spec(model()).to_bytes(),
    "bytes without some": lambda: Tokenizer.from_spec(lacking()).to_bytes(),
    **({"cl100k": lambda: wheels.content("cl100k")} if MUCH else {}),
}


def streamed(tok: Tokenizer) -> list[Any]:
    stream, text = tok.stream_encoder(), STRINGS[0]
    ids = [*stream.push(text[:7]), *stream.copy().push(text[7:]), *stream.push(text[7:]), *stream.flush()]
    decoder = tok.stream_decoder()
    return [ids, decoder.push(tok.encode(text)) + decoder.flush()]


def document(tok: Tokenizer) -> list[Any]:
    prompt = tok.document(STRINGS[0])
    longer = prompt.append(STRINGS[1])
    return [prompt.ids, longer.ids, longer.replace(3, 9, "x").ids, prompt.append("!").ids]


def pieces(tok: Tokenizer) -> list[Any]:
    made = [tok.encode_pieces(text) for text in TEXTS]
    return [
        made,
        [tok.decode_pieces([*piece]) for piece in made],
        tok.decode_pieces([str(p)[:1] * 2 for p in made[0]]),
    ]


def special(tok: Tokenizer) -> list[Any]:
    names = sorted(tok.vocab.special_tokens)[:3]
    text = "a" + "b ".join(names) + "c"
    choices = [tok.encode(text, allowed_special=frozenset(names[:count])) for count in range(len(names) + 1)]
    more = tok.with_special_tokens(["<|new|>"])
    return [choices, more.encode("a<|new|>", allowed_special="all"), tok.using(reverse=True).encode(text)]


CALLS: dict[str, Callable[[Tokenizer], Any]] = {
    "encode": lambda tok: [tok.encode(text) for text in TEXTS],
    "encode_batch": lambda tok: tok.encode_batch(TEXTS, threads=2),
    "encode_array": lambda tok: [tok.encode_array(text, threads=2).tolist() for text in TEXTS],
    "encode_arrays": lambda tok: [
        [row.tolist() for row in tok.encode_arrays(TEXTS, threads=threads)] for threads in (1, 2)
    ],
    "spans": lambda tok: tok.encode_arrays(TEXTS, spans=True).spans.tolist(),  # type: ignore[union-attr]
    "align": lambda tok: (
        [tok.align(text).offsets for text in TEXTS] + [tok.align(TEXTS[-1], unit="byte").surfaces]
    ),
    "sampled": lambda tok: [tok.encode(text, alpha=0.3, seed=seed) for text in TEXTS[:7] for seed in (1, 2)],
    "prefix": lambda tok: [
        tok.encode(text, prefix_space=prefix) for text in TEXTS for prefix in (True, False)
    ],
    "pieces": pieces,
    "special": special,
    "streams": streamed,
    "document": document,
    "decode": lambda tok: [tok.decode(tok.encode(text)) for text in TEXTS],
    "decode_batch": lambda tok: tok.decode_batch([tok.encode(text) for text in TEXTS], threads=2),
    "decode_bytes": lambda tok: [tok.decode_bytes(tok.encode(text)) for text in TEXTS],
    "normalize": lambda tok: [tok.normalize(text) for text in TEXTS],
    "count": lambda tok: [tok.count(TEXTS[0]), tok.count_batch(TEXTS)],
    "split": lambda tok: [tok.split(STRINGS[-1], 50), tok.truncate(STRINGS[-1], 20)],
    "show": lambda tok: str(tok.show(TEXTS[0])),
    "vocab": lambda tok: [
        tok.get_vocab(),
        tok.vocab.id_to_bytes(5),
        tok.piece_to_id("a"),
        tok.vocab_size,
    ],
    "value": lambda tok: [tok.fingerprint, pickle.loads(pickle.dumps(tok)).encode(TEXTS[0]), tok.to_bytes()],
    "is_lossless": lambda tok: bool(tok.is_lossless),
    "completions": lambda tok: [
        tok.completions("the lig").unstable,
        sorted(tok.completions("the lig").next_ids),
    ],
    "canonical": lambda tok: [tok.is_canonical(tok.encode(STRINGS[0])), tok.first_divergence([5, 6, 7])],
}


def outcome(call: str, tok: Tokenizer) -> Any:
    try:
        return CALLS[call](tok)
    except ValueError as error:  # not every model can do everything
        return str(error)


@cache
def expected(name: str, engine: str) -> dict[str, Any]:
    """What each call gives if no other thread uses the tokenizer."""
    tok = Tokenizer.from_bytes(MODELS[name]())
    return {call: outcome(call, tok) for call in CALLS}


@pytest.fixture
def often() -> Iterator[None]:
    """Threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def together(work: Callable[[int], Any]) -> list[Any]:
    """The results of threads that begin at the same moment."""
    barrier = Barrier(THREADS)

    def begin(number: int) -> Any:
        barrier.wait()
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(begin, range(THREADS)))


@pytest.mark.usefixtures("often")
@tiers.slow_reference
@pytest.mark.parametrize("name", tiers.some(MODELS, ["llama", zoo.REAL[0], "bytes"]))
def test_all_calls_of_a_new_tokenizer(name: str, engine: str) -> None:
    alone, data, names = expected(name, engine), MODELS[name](), list(CALLS)
    for round in range(examples(3) if engine == "core" else 1):
        tok = Tokenizer.from_bytes(data)

        def work(number: int, tok: Tokenizer = tok, round: int = round) -> list[str]:
            order = random.Random(SEED * 1_000_003 + round * THREADS + number).sample(names, len(names))
            return [call for call in order if outcome(call, tok) != alone[call]]

        assert together(work) == [[]] * THREADS


@pytest.mark.usefixtures("often")
def test_one_call_at_the_same_moment(engine: str) -> None:
    """The first call of all threads is the same one, so they make the same things."""
    alone, data = expected("llama", engine), MODELS["llama"]()
    for call in CALLS:
        for _ in range(examples(2)):
            tok = Tokenizer.from_bytes(data)

            def work(_: int, tok: Tokenizer = tok, call: str = call) -> Any:
                return outcome(call, tok)

            assert together(work) == [alone[call]] * THREADS, call


@pytest.mark.usefixtures("often")
def test_lists_that_other_threads_change(engine: str) -> None:
    """A call takes what it finds in a list, or says what is wrong with it; it never reads what is gone."""
    tok = tokenizer(zoo.REAL[0], engine)
    ids = tok.encode(STRINGS[-1])[:2000]
    shared: list[Any] = list(ids)
    texts: list[Any] = list(STRINGS[:4]) * 20

    def work(number: int) -> None:
        rng = random.Random(number)
        for _ in range(examples(60)):
            if number % 2:
                shared[rng.randrange(len(ids)) :] = [10**9 + rng.randrange(2) - 10**9 for _ in range(3)]
                shared.extend(ids[len(shared) :])
                texts[rng.randrange(20) :] = [str(rng.random())]
                texts.extend(STRINGS[:3])
                continue
            for call in (tok.decode, tok.decode_bytes, tok.is_canonical):
                try:
                    call(shared)
                except (ValueError, IndexError):
                    continue
            assert tok.encode_batch(texts, threads=2)

    together(work)


@pytest.mark.usefixtures("often")
def test_training_and_packing_at_the_same_time(engine: str, tmp_path: Path) -> None:
    lines = corpus.lines(200)
    alone = cpbpe.train(lines, vocab_size=700, byte_fallback=True, progress=False).model_bytes
    tok = Tokenizer.from_bytes(alone)

    def work(number: int) -> Any:
        if number % 2:
            return cpbpe.pack(tok, lines, tmp_path / str(number), progress=False).tokens
        return cpbpe.train(lines, vocab_size=700, byte_fallback=True, progress=False).model_bytes

    total = sum(map(tok.count, lines))
    assert together(work) == [alone, total] * (THREADS // 2)


@pytest.mark.usefixtures("often")
def test_drop_ins(tmp_path: Path) -> None:
    """The classes of other libraries share their tables between threads, too."""
    from cpbpe.compat import sentencepiece, tiktoken, tokenizers

    data = MODELS["llama"]()
    processor = sentencepiece.SentencePieceProcessor(model_proto=data)
    encoding = tiktoken.Encoding(
        "own",
        pat_str=r"\w+|\W+",
        mergeable_ranks={bytes([b]): b for b in range(256)},
        special_tokens={"<|e|>": 256},
    )
    Tokenizer.from_bytes(data).save(tmp_path / "tokenizer.json")
    fast = tokenizers.Tokenizer.from_file(tmp_path / "tokenizer.json")

    def work(_: int) -> Any:
        return [
            [processor.encode(text) for text in STRINGS[:7]],
            [processor.encode(text, return_type="proto").SerializeToString() for text in STRINGS[:4]],
            processor.decode([processor.encode(text) for text in STRINGS[:7]]),
            [encoding.encode(text, disallowed_special=()) for text in STRINGS[:7]],
            [encoding.decode(encoding.encode(text, allowed_special="all")) for text in STRINGS[:7]],
            [(one.ids, one.tokens, one.offsets, one.word_ids) for one in fast.encode_batch(STRINGS[:7])],
        ]

    alone = work(0)
    assert together(work) == [alone] * THREADS


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python always has the lock")
def test_nothing_takes_the_lock_back() -> None:
    """Where Python has no lock for all threads, no import of cpbpe's brings it back."""
    code = "import cpbpe, sys; cpbpe.train(['a b'], vocab_size=264).tokenizer; print(sys._is_gil_enabled())"
    assert processes.output("-W", "error", "-c", code).strip() == "False"
