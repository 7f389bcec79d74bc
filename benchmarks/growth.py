"""Growth: the time for inputs that are made to be bad, of n, 2n and 4n, and its ratio to sentencepiece's.

    python -m benchmarks.growth --out bad.json

`pathological.py` has texts that are bad for the merges of an ordinary model. Here the models, rules, keys and
corpora are bad, too: user-defined pieces and words that begin alike, texts full of such pieces, pieces of
thousands of bytes, characters of which no two are the same. Times are those of the processor, in one thread,
the best of some runs in turn; each run has a fresh text, and a tokenizer that has seen one short text before.

"growth" is the time for 4n divided by that for n: 4 is linear, 16 quadratic.
"""

from __future__ import annotations

import argparse
import gc
import io
import json
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import sentencepiece

import cpbpe
from benchmarks.run import commit, default_model, machine, versions
from cpbpe.model.formats import model_pb2

Report = dict[str, Any]
Texts = Callable[[int, random.Random], str]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
RUNS = 5
FEW_SECONDS = 2.0
"""After a run that took longer than this, there is no other."""


@dataclass(frozen=True)
class Case:
    """Something to be timed on inputs of some sizes."""

    make: Callable[[int, random.Random], Any]
    """An input of about this many bytes."""
    ours: Callable[[Any], Any]
    theirs: Callable[[Any], Any] | None
    """None if sentencepiece has nothing of the kind."""
    size: int
    """The smallest of three sizes."""


# --- Models and texts -------------------------------------------------------------------------------


def letters(chance: random.Random, length: int) -> str:
    """Random letters."""
    return "".join(chance.choices(LETTERS, k=length))


def with_pieces(model: Path, user_defined: list[str], chain: str = "", **normalizer: Any) -> bytes:
    """A model with more user-defined pieces, and every beginning of `chain` as a piece."""
    proto = model_pb2.ModelProto.FromString(model.read_bytes())
    pieces = {piece.piece: piece for piece in proto.pieces}
    for key in {text.encode(): None for text in user_defined}:
        piece = pieces.get(key) or proto.pieces.add(piece=key, score=0.0)
        piece.type = model_pb2.ModelProto.SentencePiece.USER_DEFINED
    for length in range(2, len(chain) + 1):
        part = chain[:length].encode()
        if part not in pieces:
            proto.pieces.add(piece=part, score=float(-length))
    for name, value in normalizer.items():
        setattr(proto.normalizer_spec, name, value)
    return proto.SerializeToString()


def alike(count: int, step: int, letter: str = "a") -> list[str]:
    """Keys that begin alike: a…ab."""
    return [letter * (step * number + step) + "b" for number in range(count)]


def parts(choices: list[str], between: str = "") -> Texts:
    """Some of these, in any order."""

    def make(size: int, chance: random.Random) -> str:
        average = sum(map(len, choices)) / len(choices) + len(between)
        return between.join(chance.choices(choices, k=int(size / average) + 1))

    return make


def distinct(size: int, chance: random.Random) -> str:
    """Characters of which no two are the same."""
    some = [chr(code) for code in range(0x20000, 0x30000)] + [chr(code) for code in range(0xF0000, 0x10FFFF)]
    chance.shuffle(some)
    return "".join(some)[: size // 4]


def mixed(*makers: Texts) -> Texts:
    """A bit of each in turn."""
    return lambda size, chance: " ".join(chance.choice(makers)(100, chance) for _ in range(size // 100))


def encode_cases(model: Path) -> dict[str, Case]:
    """Encoding texts that are bad for the model."""
    cases: dict[str, Case] = {}

    def add(name: str, data: bytes, make: Texts, size: int) -> None:
        ours = cpbpe.Tokenizer.from_bytes(data)
        theirs = sentencepiece.SentencePieceProcessor(model_proto=data)
        for text in (make(2000, random.Random(1)), make(300, random.Random(2))):
            assert ours.encode(text) == theirs.encode(text), name
        cases[name] = Case(make, ours.encode, theirs.encode, size)

    chance = random.Random(1)
    plain = model.read_bytes()
    words = list({letters(chance, chance.randint(2, 9)) for _ in range(16_000)})
    spaced = [f"▁{word}" for word in words]
    tags = [f"<unused{number}>" for number in range(4000)]
    only = parts(words)
    text = parts([word + " " for word in words[:5000]])
    dummy: dict[str, Any] = {"add_dummy_prefix": False}

    begin_alike = with_pieces(model, alike(990, 8), **dummy)
    add("keys a…ab, one letter", begin_alike, lambda size, _: "a" * size, 25_000)
    add("keys a…ab, found", begin_alike, parts(["a" * 8000 + "b", "a" * 4000 + "b", "ab"]), 100_000)
    add("keys a…ab and a", with_pieces(model, ["a", *alike(990, 8)]), lambda size, _: "a" * size, 25_000)
    add("keys a…ab, short", with_pieces(model, alike(12, 1)), lambda size, _: "a" * size, 100_000)
    front = letters(chance, 300)
    fronted = [front + letters(chance, 6) for _ in range(5000)]
    add("keys alike, 300 bytes", with_pieces(model, fronted, **dummy), parts(fronted), 250_000)
    add("keys like the text", with_pieces(model, words), only, 250_000)
    add("keys, interleaved", with_pieces(model, words[::2]), parts(words, " "), 250_000)
    add("keys with ▁", with_pieces(model, spaced), text, 250_000)
    add("keys, rare", with_pieces(model, tags), text, 250_000)
    add("keys, their beginnings", with_pieces(model, tags), parts(["<unused", "<un", "<"]), 250_000)
    add("keys, adjacent tags", with_pieces(model, tags), parts(tags), 250_000)
    add("keys of one letter", with_pieces(model, list(LETTERS)), parts(list(LETTERS)), 250_000)
    add(
        "keys, squeezed spaces",
        with_pieces(model, spaced + tags, remove_extra_whitespaces=True),
        mixed(text, parts(tags), only),
        250_000,
    )
    reader = sentencepiece.SentencePieceProcessor(model_proto=plain)
    cases["distinct characters"] = Case(  # by a tokenizer that has not seen them
        lambda size, chance: (cpbpe.Tokenizer.from_bytes(plain), distinct(size, chance)),
        lambda fresh: fresh[0].encode(fresh[1]),
        lambda fresh: reader.encode(fresh[1]),
        100_000,
    )
    long = letters(chance, 7999)
    add("pieces in a chain", with_pieces(model, [], long, **dummy), parts([long]), 8_000)
    add("one letter in a chain", with_pieces(model, [], "q" * 7999, **dummy), parts(["q" * 7000]), 8_000)
    return cases


def rule_cases(model: Path) -> dict[str, Case]:
    """Normalizing with rules whose keys are long and begin alike."""
    cases = {}
    keys = ["a" * length + "b" for length in range(1, 200)]
    for name, text in {"rules a…ab": "a", "rules, applied": "a" * 150 + "b"}.items():
        blob = charsmap(dict.fromkeys(keys, "x"))
        proto = model_pb2.ModelProto.FromString(model.read_bytes())
        proto.normalizer_spec.precompiled_charsmap = blob
        data = proto.SerializeToString()
        ours = cpbpe.Tokenizer.from_bytes(data)
        theirs = sentencepiece.SentencePieceProcessor(model_proto=data)
        make = parts([text])
        assert ours.normalize(make(1000, random.Random(1))) == theirs.normalize(make(1000, random.Random(1)))
        cases[name] = Case(make, ours.normalize, theirs.normalize, 50_000)
    return cases


def charsmap(rules: dict[str, str]) -> bytes:
    """Rules as a charsmap."""
    lines = ["\t".join(" ".join(f"{ord(c):X}" for c in side) for side in rule) for rule in rules.items()]
    model = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as table:
        table.write("\n".join(lines) + "\n")
        table.flush()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["x y z"]),
            model_writer=model,
            vocab_size=8,
            hard_vocab_limit=False,
            model_type="bpe",
            normalization_rule_tsv=table.name,
            minloglevel=2,
        )
    return model_pb2.ModelProto.FromString(model.getvalue()).normalizer_spec.precompiled_charsmap


def decode_cases(model: Path) -> dict[str, Case]:
    """Decoding ids that no encoder would give."""
    data = with_pieces(model, [letters(random.Random(1), 7000)])
    ours = cpbpe.Tokenizer.from_bytes(data)
    theirs = sentencepiece.SentencePieceProcessor(model_proto=data)
    bytes_ = [theirs.piece_to_id(f"<0x{byte:02X}>") for byte in range(256)]
    makers: dict[str, Callable[[int, random.Random], list[int]]] = {
        "ids: bytes, invalid": lambda size, chance: chance.choices(bytes_[0x80:], k=size),
        "ids: bytes, characters": lambda size, chance: [
            bytes_[byte] for byte in "é漢🦙".encode() * (size // 9)
        ],
        "ids: any": lambda size, chance: chance.choices(range(len(ours)), k=size // 4),
        "ids: control": lambda size, chance: chance.choices([1, 2], k=size),
        "ids: space": lambda size, chance: [theirs.piece_to_id("▁")] * size,
        "ids: long": lambda size, chance: [len(ours) - 1] * (size // 7000),
    }
    for name, make in makers.items():
        ids = make(20_000, random.Random(1))
        assert ours.decode(ids) == theirs.decode(ids), name
    return {name: Case(make, ours.decode, theirs.decode, 100_000) for name, make in makers.items()}


def special_cases(model: Path) -> dict[str, Case]:
    """Finding special tokens. (sentencepiece has none.)"""
    cases: dict[str, Case] = {}
    tok = cpbpe.load(model)

    def add(name: str, keys: list[str], make: Texts) -> None:
        with_tokens = tok.with_special_tokens(keys)
        cases[name] = Case(make, lambda text: with_tokens.count(text, allowed_special="all"), None, 50_000)

    letter = "\u0600"
    add("special: a…ab", alike(31, 4, letter), lambda size, _: letter * (size // 2))
    add("special: a…ab and a", [letter, *alike(31, 4, letter)], lambda size, _: letter * (size // 2))
    add(
        "special: a…a",
        [letter * length for length in range(9, 128)],
        lambda size, _: (letter * 127 + "z") * (size // 255),
    )
    add(
        "special: tags",
        [f"<|tag{number}|>" for number in range(5000)],
        parts([f"<|tag{n}|>" for n in range(5000)], " a "),
    )
    return cases


def train_cases() -> dict[str, Case]:
    """Training on bad words, and with bad symbols."""

    def theirs(options: dict[str, Any]) -> Callable[[list[str]], bytes]:
        def train(sentences: list[str]) -> bytes:
            model = io.BytesIO()
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(sentences), model_writer=model, minloglevel=2, num_threads=1, **options
            )
            return model.getvalue()

        return train

    def ours(options: dict[str, Any]) -> Callable[[list[str]], Any]:
        return lambda sentences: cpbpe.train(sentences, threads=1, **options)

    def case(make: Callable[[int, random.Random], list[str]], size: int, **options: Any) -> Case:
        options = {"vocab_size": 300, "hard_vocab_limit": False, "max_sentence_length": 100_000, **options}
        return Case(make, ours(options), theirs({"model_type": "bpe", **options}), size)

    def prefixed(length: int) -> Callable[[int, random.Random], list[str]]:
        def make(size: int, chance: random.Random) -> list[str]:
            front = letters(chance, length)
            return [front + letters(chance, 6) for _ in range(size // (length + 6))]

        return make

    def ladder(size: int, _: random.Random) -> list[str]:
        return ["a" * length for length in range(1, int((2 * size) ** 0.5))]

    def characters(size: int, chance: random.Random) -> list[str]:
        return list(distinct(size, chance))

    symbols = alike(1900, 4)
    return {
        "train: symbols a…ab": case(
            lambda size, _: ["a" * 4000] * (size // 4000),
            40_000,
            user_defined_symbols=symbols,
            vocab_size=2500,
        ),
        "train: symbols a…ab, found": case(
            lambda size, _: ["a" * 4000 + "b"] * (size // 4000),
            400_000,
            user_defined_symbols=symbols,
            vocab_size=2500,
        ),
        "train: words alike, 300": case(prefixed(300), 1_500_000),
        "train: words alike, 16": case(prefixed(16), 500_000),
        "train: words alike, 3000": case(prefixed(3000), 3_000_000),
        "train: one letter": case(lambda size, _: ["a" * 4000] * (size // 4000), 1_000_000),
        "train: a to the n": case(
            lambda size, _: ["a" * n for n in range(1, int((2 * size) ** 0.5))], 500_000
        ),
        "train: distinct": case(
            lambda size, chance: list(distinct(size, chance)), 100_000, vocab_size=120_000
        ),
    }


# --- Measuring --------------------------------------------------------------------------------------


def seconds(call: Callable[[Any], Any], value: Any) -> float:
    """The processor's time for one call."""
    gc.collect()
    gc.disable()
    begin = process_time()
    result = call(value)
    taken = process_time() - begin
    gc.enable()
    del result
    return taken


def measure(case: Case) -> Report:
    """The best times for three sizes, of both, in turn."""
    report: Report = {"ours": [], "theirs": [], "sizes": []}
    for size in (case.size, 2 * case.size, 4 * case.size):
        best = {"ours": float("inf"), "theirs": float("inf")}
        for run in range(RUNS):
            value = case.make(size, random.Random(size + run))
            for name, call in (("ours", case.ours), ("theirs", case.theirs)):
                if call is not None and (run == 0 or best[name] < FEW_SECONDS):
                    best[name] = min(best[name], seconds(call, value))
        report["sizes"].append(size)
        for name, time in best.items():
            report[name].append(time)
    return report


def line(name: str, report: Report) -> str:
    """One case: nanoseconds for each byte of the largest input, growth, and the worst ratio."""
    size = report["sizes"][-1]
    cells = [f"{name:28}"]
    for who in ("ours", "theirs"):
        times = report[who]
        if times[0] == float("inf"):
            return " ".join(cells)
        cells.append(f"{times[-1] / size * 1e9:10.2f} {times[-1] / max(times[0], 1e-9):7.1f}")
    ratios = [ours / theirs for ours, theirs in zip(report["ours"], report["theirs"], strict=True)]
    cells.append(f"{max(ratios):8.2f}")
    return " ".join(cells)


def main(arguments: list[str] | None = None) -> None:
    """Measure all cases."""
    parser = argparse.ArgumentParser(description="How the time for bad inputs grows, beside sentencepiece's.")
    parser.add_argument("--case", action="append", help="only cases whose names hold this (may be repeated)")
    parser.add_argument("--model", type=Path, help="a Llama-style .model (default: mistral-common's)")
    parser.add_argument("--out", type=Path, help="the JSON file to write")
    options = parser.parse_args(arguments)
    model = options.model or default_model()
    outcome: Report = {
        "facts": {"machine": machine(), "commit": commit(), "versions": versions(["cpbpe", "sentencepiece"])}
    }
    outcome["cases"] = {}
    print(f"{'ns for each byte, growth':28} {'cpbpe':>10} {'':7} {'theirs':>10} {'':7} {'ratio':>8}")
    cases = (
        encode_cases(model) | rule_cases(model) | decode_cases(model) | special_cases(model) | train_cases()
    )
    for name, case in cases.items():
        if options.case and not any(part in name for part in options.case):
            continue
        outcome["cases"][name] = measure(case)
        print(line(name, outcome["cases"][name]), flush=True)
        if options.out:
            options.out.write_text(json.dumps(outcome, indent=1) + "\n")


if __name__ == "__main__":
    main()
