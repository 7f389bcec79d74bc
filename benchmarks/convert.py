"""From a `.model` to a tokenizer.json, and back: cpbpe, and transformers' converter with the scores.

    python -m benchmarks.convert --model tokenizer.model

transformers lists every way to make a piece, ordered by the scores (`generate_merges`); tokenizers makes a
tokenizer of the list and writes it. cpbpe lists one pair for each piece, and decides whether that is exact.
Before the clock starts, 2,000 texts of pieces side by side are encoded with both files: how many get other
ids than sentencepiece gives them is part of the table.

Next to the model itself, one of 256,000 pieces is converted, which is trained for it on the corpora.
The two take turns. The table has the medians of the processor time, as both use one thread.
"""

from __future__ import annotations

import argparse
import gc
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from benchmarks.corpora import CORPORA, DATA, corpus_path
from benchmarks.table import grid
from cpbpe import train
from cpbpe.model.formats import sentencepiece as model_files
from cpbpe.model.formats import tokenizer_json

LARGE = 256_000
TEXTS = 2_000


def by_cpbpe(path: Path) -> str:
    """The tokenizer.json that cpbpe writes."""
    return tokenizer_json.write(model_files.read(path.read_bytes())).data.decode()


def by_transformers(path: Path) -> str:
    """The one that transformers' converter of Llama's models comes to."""
    from tokenizers import Tokenizer, models, normalizers
    from transformers.convert_slow_tokenizer import SentencePieceExtractor, generate_merges

    pieces = SentencePieceExtractor(str(path)).proto.pieces
    vocab = {piece.piece: id for id, piece in enumerate(pieces)}
    merges = generate_merges(vocab, {piece.piece: piece.score for piece in pieces})
    model = models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    made = Tokenizer(model)
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    text: str = made.to_str()
    return text


def wrong_ids(path: Path, content: str) -> int:
    """How many of the texts get other ids than with sentencepiece."""
    import sentencepiece
    import tokenizers

    theirs = sentencepiece.SentencePieceProcessor(model_file=str(path))
    made = tokenizers.Tokenizer.from_str(content)
    made.encode_special_tokens = True
    pieces = [theirs.id_to_piece(id).replace("▁", " ") for id in range(theirs.get_piece_size())]
    chance = random.Random(0)
    texts = ["".join(chance.choices(pieces, k=chance.randint(2, 8))) for _ in range(TEXTS)]
    return sum(theirs.encode(text) != made.encode(text, add_special_tokens=False).ids for text in texts)


def seconds(call: Callable[[Any], object], given: Any) -> float:
    """How much processor time a call takes."""
    gc.collect()
    begin = process_time()
    call(given)
    return process_time() - begin


def read_back(content: str) -> object:
    """The model in a tokenizer.json."""
    return tokenizer_json.read(content.encode())


def measured(path: Path, rounds: int) -> list[str]:
    """A row of the table."""
    ours, theirs = by_cpbpe(path), by_transformers(path)
    wrong = [wrong_ids(path, content) for content in (ours, theirs)]
    times: list[list[float]] = [[], [], []]
    for _ in range(rounds):
        times[0].append(seconds(by_cpbpe, path))
        times[1].append(seconds(by_transformers, path))
        times[2].append(seconds(read_back, ours))
    first, second, back = map(median, times)
    size = len(model_files.read(path.read_bytes()).pieces)
    return [
        f"{size:,}",
        f"{first:.2f} s",
        f"{second:.2f} s",
        f"{second / first:.1f} ×",
        f"{back:.2f} s",
        f"{wrong[0]} of {TEXTS:,}",
        f"{wrong[1]} of {TEXTS:,}",
    ]


def main(arguments: list[str] | None = None) -> None:
    """Convert the model and the large one, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", type=Path, required=True, help="a Llama-style .model")
    parser.add_argument("--data", type=Path, default=DATA, help="where the corpora are")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder, "large.model")
        paths = [corpus_path(given.data, name) for name in CORPORA]
        texts = (line for path in paths for line in path.read_text("utf-8").replace("\0", "\n").split("\n"))
        result = train(texts, vocab_size=LARGE)
        large.write_bytes(result.tokenizer.to_bytes())
        rows = [measured(path, given.rounds) for path in (given.model, large)]
    head = [
        "pieces",
        "cpbpe",
        "transformers",
        "ratio",
        "cpbpe, back again",
        "other ids, cpbpe",
        "transformers",
    ]
    print("\n".join(grid(head, rows)))


if __name__ == "__main__":
    main()
