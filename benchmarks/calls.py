"""Every common call, ours and the drop-in's, against sentencepiece: on strings of 40 and of 4,000 characters.

    python -m benchmarks.calls [--text FILE] [--only WORD]

The models are Mistral's, and one that is trained here with sentencepiece's defaults (nmt_nfkc, extra spaces
removed, no byte fallback). For each call the table says how many times as fast as sentencepiece it is: the
median of the ratios of rounds, in which the three take turns. Results are compared before the clock starts.
A batch has 25 strings, and one thread.

`--rivals` measures one string of 32 characters, and 1,000 different ones, in turn with the fastest libraries.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, NamedTuple

import sentencepiece

import cpbpe
from benchmarks import tokenizer_json
from benchmarks.cases import LIBRARIES, Files
from benchmarks.run import commit, default_model, machine
from cpbpe.compat import sentencepiece as drop_in

SIZES = {40: 400, 4_000: 10}
"""Characters of a string, and how many calls are made between two looks at the clock."""
BATCH = 25
STRINGS = 1_000
PIECES = 8_000
Call = Callable[[Any], Any]


class Subject(NamedTuple):
    """A model, loaded by all three."""

    tok: cpbpe.Tokenizer
    drop_in: Any
    theirs: Any


class Case(NamedTuple):
    """A call: what it is given, and how it is made from our tokenizer (None: we have none) and from theirs.

    The drop-in's is made in the same way as theirs.
    """

    given: str
    ours: Callable[[cpbpe.Tokenizer], Call] | None
    theirs: Callable[[Any], Call]


CASES = {
    "encode": Case("text", lambda tok: tok.encode, lambda sp: sp.encode),
    "encode to an array": Case(
        "text", lambda tok: tok.encode_array, lambda sp: lambda text: sp.encode(text, return_type="numpy")
    ),
    "encode, bos and eos": Case(
        "text",
        lambda tok: lambda text: tok.encode(text, add_bos=True, add_eos=True),
        lambda sp: lambda text: sp.encode(text, add_bos=True, add_eos=True),
    ),
    "to an array, bos and eos": Case(
        "text",
        lambda tok: lambda text: tok.encode_array(text, add_bos=True, add_eos=True),
        lambda sp: lambda text: sp.encode(text, add_bos=True, add_eos=True, return_type="numpy"),
    ),
    "encode, reversed": Case(
        "text",
        lambda tok: lambda text: tok.encode(text, reverse=True),
        lambda sp: lambda text: sp.encode(text, reverse=True),
    ),
    "encode to pieces": Case(
        "text", lambda tok: tok.encode_pieces, lambda sp: lambda text: sp.encode(text, out_type=str)
    ),
    "to pieces, bos and eos": Case(
        "text",
        lambda tok: lambda text: tok.encode_pieces(text, add_bos=True, add_eos=True),
        lambda sp: lambda text: sp.encode(text, out_type=str, add_bos=True, add_eos=True),
    ),
    "encode_as_pieces": Case("text", None, lambda sp: sp.encode_as_pieces),
    "count": Case("text", lambda tok: tok.count, lambda sp: lambda text: len(sp.encode(text))),
    "normalize": Case("text", lambda tok: tok.normalize, lambda sp: sp.normalize),
    "decode": Case("ids", lambda tok: tok.decode, lambda sp: sp.decode),
    "decode pieces": Case("pieces", lambda tok: tok.decode_pieces, lambda sp: sp.decode),
    "decode_pieces": Case("pieces", None, lambda sp: sp.decode_pieces),
    "batch": Case(
        "texts",
        lambda tok: lambda texts: tok.encode_batch(texts, threads=1),
        lambda sp: lambda texts: sp.encode(texts, num_threads=1),
    ),
    "batch, bos and eos": Case(
        "texts",
        lambda tok: lambda texts: tok.encode_batch(texts, threads=1, add_bos=True, add_eos=True),
        lambda sp: lambda texts: sp.encode(texts, num_threads=1, add_bos=True, add_eos=True),
    ),
    "batch to arrays": Case(
        "texts",
        lambda tok: lambda texts: tok.encode_arrays(texts, threads=1),
        lambda sp: lambda texts: sp.encode(texts, num_threads=1, return_type="numpy"),
    ),
    "to arrays, bos and eos": Case(
        "texts",
        lambda tok: lambda texts: tok.encode_arrays(texts, threads=1, add_bos=True, add_eos=True),
        lambda sp: (
            lambda texts: sp.encode(texts, num_threads=1, return_type="numpy", add_bos=True, add_eos=True)
        ),
    ),
    "batch to pieces": Case(
        "texts",
        lambda tok: lambda texts: [tok.encode_pieces(text) for text in texts],
        lambda sp: lambda texts: sp.encode(texts, num_threads=1, out_type=str),
    ),
    "batch of counts": Case(
        "texts",
        lambda tok: lambda texts: tok.count_batch(texts, threads=1),
        lambda sp: lambda texts: [len(ids) for ids in sp.encode(texts, num_threads=1)],
    ),
    "batch, normalized": Case(
        "texts", lambda tok: lambda texts: [tok.normalize(text) for text in texts], lambda sp: sp.normalize
    ),
    "batch, decoded": Case(
        "many ids",
        lambda tok: lambda batch: tok.decode_batch(batch, threads=1),
        lambda sp: lambda batch: sp.decode(batch, num_threads=1),
    ),
    "batch of pieces, decoded": Case(
        "many pieces",
        lambda tok: lambda batch: [tok.decode_pieces(pieces) for pieces in batch],
        lambda sp: lambda batch: sp.decode(batch, num_threads=1),
    ),
}


def plain(result: Any) -> Any:
    """A result without arrays."""
    if isinstance(result, cpbpe.Ragged) or hasattr(result, "dtype"):
        return result.tolist()
    return [plain(item) for item in result] if isinstance(result, list) else result


def inputs(theirs: Any, texts: list[str]) -> dict[str, Any]:
    """What the calls are given."""
    ids, pieces = theirs.encode(texts), theirs.encode(texts, out_type=str)
    return {
        "text": texts[0],
        "texts": texts,
        "ids": ids[0],
        "many ids": ids,
        "pieces": pieces[0],
        "many pieces": pieces,
    }


def seconds(call: Call, given: Any, times: int) -> float:
    """How long one call takes: the mean of some calls."""
    turns = range(times)
    begin = perf_counter()
    for _ in turns:
        call(given)
    return (perf_counter() - begin) / times


def measured(calls: dict[str, Call], given: Any, times: int, rounds: int) -> dict[str, list[float]]:
    """The seconds of each call in every round."""
    results: dict[str, list[float]] = {name: [] for name in calls}
    gc.collect()
    gc.disable()
    for _ in range(rounds):
        for name, call in calls.items():
            results[name].append(seconds(call, given, times))
    gc.enable()
    return results


def compared(subject: Subject, case: Case, given: Any, times: int, rounds: int) -> dict[str, float]:
    """How many times as fast as sentencepiece ours and the drop-in are; sentencepiece's seconds."""
    calls = {"sentencepiece": case.theirs(subject.theirs), "drop-in": case.theirs(subject.drop_in)}
    if case.ours is not None:
        calls["ours"] = case.ours(subject.tok)
    expected = plain(calls["sentencepiece"](given))
    for name, call in calls.items():
        assert plain(call(given)) == expected, name
    results = measured(calls, given, times, rounds)
    theirs = results.pop("sentencepiece")
    ratios = {name: median(b / a for a, b in zip(own, theirs, strict=True)) for name, own in results.items()}
    return {**ratios, "seconds": median(theirs)}


def table(subject: Subject, text: str, options: argparse.Namespace) -> dict[str, Any]:
    """Measure all calls with one model."""
    results: dict[str, Any] = {}
    for size, times in SIZES.items():
        chance = random.Random(size)
        begins = [chance.randrange(len(text) - size) for _ in range(BATCH)]
        given = inputs(subject.theirs, [text[begin : begin + size] for begin in begins])
        for name, case in CASES.items():
            if options.only not in name:
                continue
            several = isinstance(given[case.given], list) and isinstance(given[case.given][0], (list, str))
            calls = max(1, times // BATCH) if several and case.given != "pieces" else times
            result = compared(subject, case, given[case.given], calls, options.rounds)
            results[f"{name}, {size}"] = result
            ours = f"{result['ours']:8.2f}" if "ours" in result else "        "
            print(f"{name:<28}{size:>6}{ours}{result['drop-in']:10.2f}{result['seconds'] * 1e6:12.1f}")
    return results


def called(call: Call, texts: list[str]) -> None:
    """One call after the other."""
    for text in texts:
        call(text)


def rivals(model: Path, text: str, rounds: int) -> None:
    """Short strings, in turn with the fastest rivals. (A ratio is how many times as long a rival takes.)"""
    tok = cpbpe.load(model)
    there: dict[str, dict[str, Call]] = {"array": {"cpbpe": tok.encode_array}, "list": {"cpbpe": tok.encode}}
    for library in LIBRARIES:
        if library.name in ("gigatoken", "fastokens", "sentencepiece"):
            with TemporaryDirectory() as folder:
                files = Files(model, Path(folder) / "tokenizer.json")
                tokenizer_json.write(model, files.json)
                try:
                    loaded = library.load(files)
                except Exception as error:  # it is not installed, or does not read this
                    print(f"{library.name}: {error}")
                    continue
            for name, calls in there.items():
                if name in library.calls:
                    calls[library.name] = library.calls[name](loaded)
    strings = [text[begin : begin + 32] for begin in range(0, 32 * STRINGS, 32)]
    for count in (1, STRINGS):
        for name, calls in there.items():
            for who, call in calls.items():
                assert [plain(call(text)) for text in strings] == plain(tok.encode_batch(strings)), who
            each: dict[str, Call] = {who: partial(called, call) for who, call in calls.items()}
            results = measured(each, strings[:count], STRINGS // count, rounds)
            base = results["cpbpe"]
            print(f"{count:>6} of 32 characters to {name}: {min(base) / count * 1e6:.3f} µs", end="")
            for who, times in results.items():
                if who != "cpbpe":
                    print(
                        f", {who} {median(b / a for a, b in zip(base, times, strict=True)):.2f} times", end=""
                    )
            print()


def main() -> None:
    """Compare, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", type=Path, default=None, help="a .model file (default: Mistral's)")
    parser.add_argument("--text", type=Path, default=Path("LICENSE"), help="a text file (default: LICENSE)")
    parser.add_argument("--only", default="", help="calls with this in their names")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--rivals", action="store_true", help="short strings, and other rivals")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    text = options.text.read_text(encoding="utf-8")
    model = options.model or default_model()
    if options.rivals:
        rivals(model, text * (32 * STRINGS // len(text) + 1), options.rounds)
        return
    trained = cpbpe.train(
        text.splitlines(), preset="sentencepiece", vocab_size=PIECES, hard_vocab_limit=False
    )
    report: dict[str, Any] = {"machine": machine(), "commit": commit()}
    for name, data in (("Llama-style", model.read_bytes()), ("default-style", trained.tokenizer.to_bytes())):
        subject = Subject(
            cpbpe.Tokenizer.from_bytes(data),
            drop_in.SentencePieceProcessor(model_proto=data),
            sentencepiece.SentencePieceProcessor(model_proto=data),
        )
        print(f"{name + ', characters':<34}    ours   drop-in  theirs, µs")
        report[name] = table(subject, text, options)
    if options.out:
        options.out.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
