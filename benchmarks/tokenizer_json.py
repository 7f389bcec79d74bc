"""Makes the `tokenizer.json` that tokenizers and fastokens read, from a Llama-style `.model`.

    python -m benchmarks.tokenizer_json tokenizer.model tokenizer.json

It is what Hugging Face has for Llama: BPE with byte fallback, no pre-tokenizer, and a normalizer that puts
one `▁` in front and in the place of each space. A `.model` holds no list of merges. So every way to split a
piece into two other pieces is listed as a merge, in the order of the pieces' scores.

There are no added tokens: a text that spells `<s>` is ordinary text here, as it is to sentencepiece. This
makes the rivals no slower, and their ids comparable.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from cpbpe.model.formats import model_pb2

Piece = model_pb2.ModelProto.SentencePiece


def merges(pieces: list[tuple[str, float]], ids: dict[str, int]) -> list[list[str]]:
    """All pairs that make a piece, those with the best scores first. Equal ones keep the order of ids."""
    pairs = []
    for piece, score in pieces:
        for middle in range(1, len(piece)):
            left, right = piece[:middle], piece[middle:]
            if left in ids and right in ids:
                pairs.append((-score, ids[piece], ids[left], ids[right], left, right))
    return [[left, right] for *_, left, right in sorted(pairs)]


def convert(data: bytes) -> dict[str, Any]:
    """The contents of a `tokenizer.json`, from those of a `.model`."""
    model = model_pb2.ModelProto.FromString(data)
    trainer, normalizer = model.trainer_spec, model.normalizer_spec
    like_llama = (
        trainer.byte_fallback and normalizer.add_dummy_prefix and not trainer.treat_whitespace_as_suffix
    )
    if not like_llama or normalizer.precompiled_charsmap or normalizer.remove_extra_whitespaces:
        raise ValueError("this model is not Llama-style; the benchmarks cannot make a tokenizer.json of it")
    normal = [(piece.piece.decode(), piece.score) for piece in model.pieces if piece.type == Piece.NORMAL]
    ids = {piece.piece.decode(): id for id, piece in enumerate(model.pieces)}
    mergeable = {piece: ids[piece] for piece, _ in normal}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Prepend", "prepend": "▁"},
                {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
            ],
        },
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": trainer.unk_piece.decode(),
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": True,
            "ignore_merges": False,
            "vocab": ids,
            "merges": merges(normal, mergeable),
        },
    }


def write(model: Path, target: Path) -> None:
    """Make a `tokenizer.json`. An existing `target` is replaced."""
    target.write_text(json.dumps(convert(model.read_bytes()), ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m benchmarks.tokenizer_json MODEL TARGET")
    write(Path(sys.argv[1]), Path(sys.argv[2]))
