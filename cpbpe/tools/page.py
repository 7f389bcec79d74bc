"""The page that shows what models do with a text, as one HTML file with everything in it.

The page is in the folder `browser`, whose files are put into it as they are: there is no build step. It
computes everything in the browser, with the core compiled to WebAssembly (`core/wasm`), and needs no server.
"""

from __future__ import annotations

import gzip
import importlib.resources
import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from cpbpe.lazy import importing
from cpbpe.tokenizer.tokenizer import Tokenizer
from cpbpe.training.byte_options import BYTE_PRESETS, AnyOptions
from cpbpe.training.families import untrained
from cpbpe.training.options import PRESETS

_PART = re.compile(r'<link rel="stylesheet" href="([\w.]+)">|<script src="([\w.]+)" defer></script>')
"""Where `page.html` names one of the page's other files."""
TRAINING: dict[str, AnyOptions] = {
    "sentencepiece": PRESETS["llama2"],
    "gpt2": BYTE_PRESETS["gpt2"],
    "gpt4": BYTE_PRESETS["gpt4"],
    "none": BYTE_PRESETS["gpt4"].replace(pattern=""),
}
"""What the page trains: a model of the SentencePiece family, or a byte-level one by its pattern. People may
change other options in the page."""
CORE = "engine.wasm"
"""The compiled core, which `.ci/wasm` makes."""
MAX_TEXT = 2_000_000
"""A longer text, in bytes of UTF-8, is refused."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def static_page(
    tokenizers: Mapping[str, Tokenizer] | Iterable[Tokenizer] | Tokenizer = (), text: str = ""
) -> str:
    """The page as HTML, with these models in it, and a text to begin with. More can be dropped on it.

    >>> import cpbpe
    >>> html = static_page({"my.model": cpbpe.load("tokenizer.model")}, "Hello world")
    >>> html.startswith("<!doctype html>"), html.count("<script src="), "my.model" in html
    (True, 0, True)
    """
    data = {
        "models": [_model(name, tok) for name, tok in _named(tokenizers)],
        "text": shown_text(text),
        "training": {name: _packed(untrained(options)) for name, options in TRAINING.items()},
    }
    html, styles, scripts = part("page.html"), [], []
    for found in _PART.finditer(html):
        name = found[1] or found[2]
        source = f"\n{part(name)}"
        allowed = f"'sha256-{b64encode(sha256(source.encode()).digest()).decode()}'"
        if found[1]:
            styles.append(allowed)
            html = _replaced(html, found[0], f"<style>{source}</style>")
        else:
            scripts.append(allowed)
            html = _replaced(html, found[0], "")
            html = _replaced(html, "</body>", f'<script data-name="{name}">{source}</script>\n</body>')
    policy = (
        f"default-src 'none'; script-src 'wasm-unsafe-eval' {' '.join(scripts)}; style-src "
        f"{' '.join(styles)}; img-src data:; worker-src blob:; base-uri 'none'; form-action 'none'"
    )
    html = _replaced(
        html, "<!-- policy -->", f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    )
    # Only `<` could end the element or begin a comment in it.
    json_text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    json_text = json_text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    stored = f'<script type="application/octet-stream" id="core">{_packed(_core())}</script>'
    stored += f'<script type="application/json" id="data">{json_text}</script>'
    return _replaced(html, "<!-- data -->", stored)


def part(name: str) -> str:
    """One of the page's files."""
    return importlib.resources.files("cpbpe.tools").joinpath("browser", name).read_text(encoding="utf-8")


def _core() -> bytes:
    file = importlib.resources.files("cpbpe.tools").joinpath("browser", CORE)
    if not file.is_file():
        raise FileNotFoundError(
            "the page needs the core compiled to WebAssembly, which wheels of cpbpe hold and a source tree "
            "does not: install a wheel, or run .ci/wasm in the source tree"
        )
    return file.read_bytes()


def _packed(data: bytes) -> str:
    """Bytes as the page unpacks them."""
    return b64encode(gzip.compress(data, mtime=0)).decode()


def _model(name: str, tok: Tokenizer) -> dict[str, Any]:
    if tok.bound_options:
        bound = ", ".join(tok.bound_options)
        raise ValueError(
            f"{name}: the page has switches for options of its own, and cannot show those that using() has "
            f"bound ({bound}); give the tokenizer without them"
        )
    model: dict[str, Any] = {"name": name, "file": _packed(tok.to_bytes())}
    if tok.chat_templates:
        with importing:
            from cpbpe.tools.chat import chats_of
        model["chats"] = chats_of(tok)
    return model


def _named(
    tokenizers: Mapping[str, Tokenizer] | Iterable[Tokenizer] | Tokenizer,
) -> list[tuple[str, Tokenizer]]:
    """The models of a page, each with a name of its own."""
    if isinstance(tokenizers, Tokenizer):
        tokenizers = [tokenizers]
    if isinstance(tokenizers, Mapping):
        # (Only the last part of a path, of any system: the page should not reveal folders of the machine.)
        paths = ((str(path).rstrip("/\\"), tok) for path, tok in tokenizers.items())
        named = [(re.split(r"[/\\]", path)[-1] or "model", tok) for path, tok in paths]
    else:
        named = [(f"model {number}", tok) for number, tok in enumerate(tokenizers, 1)]
    seen: dict[str, int] = {}
    models = []
    for name, tok in named:
        if not isinstance(tok, Tokenizer):
            raise TypeError(f"a page shows tokenizers, not {type(tok).__name__}; cpbpe.load(path) loads one")
        seen[name] = seen.get(name, 0) + 1
        models.append((name if seen[name] == 1 else f"{name} ({seen[name]})", tok))
    return models


def shown_text(text: str) -> str:
    """The text as the page shows it. Half a surrogate pair, which JavaScript allows, becomes U+FFFD."""
    text = _SURROGATE.sub("\ufffd", text)
    size = len(text.encode())
    if size > MAX_TEXT:
        raise ValueError(
            f"the text has {size:,} bytes, and the page takes {MAX_TEXT:,}; cpbpe encode has no limit"
        )
    return text


def _replaced(html: str, old: str, new: str) -> str:
    """The page with one place replaced. Texts of users are filled in last, so these are not searched."""
    if html.count(old) != 1:
        raise RuntimeError(f"the page has {old!r} {html.count(old)} times, not once")
    return html.replace(old, new)
