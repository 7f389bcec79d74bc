"""The page that shows what models do with a text: its files, and the whole page as one file without a server.

The page itself is in the folder `browser`, whose files are delivered as they are: there is no build step.
`answers.py` answers what they ask about models, and `server.py` serves them to a browser on the same machine.
"""

from __future__ import annotations

import importlib.resources
import json
from base64 import b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from cpbpe.tokenizer.tokenizer import Tokenizer
from cpbpe.tools.answers import MAX_REPLAYED, Model, PageOptions, compared, models_of, shown_text

PARTS = {
    "page.css": "text/css",
    "text.js": "text/javascript",
    "tokens.js": "text/javascript",
    "merges.js": "text/javascript",
    "page.js": "text/javascript",
}
"""The files that the page loads, in this order, with their media types."""
SERVER = ("the page needs starlette and uvicorn", "starlette", "uvicorn")
"""What the error says if the packages of the server are not installed."""
MAX_TREES = 5_000
"""The file has the trees of this many pieces. For any others, the page says that they are left out."""
MAX_SAMPLED_IN_FILE = 1_000
"""A longer text, in characters, has no samples in the file."""


def static_page(
    tokenizers: Mapping[str, Tokenizer] | Iterable[Tokenizer] | Tokenizer,
    text: str,
    options: PageOptions | None = None,
) -> str:
    """The page of one or two models and a text, as HTML.

    >>> import cpbpe
    >>> html = static_page({"my.model": cpbpe.load("tokenizer.model")}, "Hello world")
    >>> html.startswith("<!doctype html>"), html.count("<script src="), "▁Hello" in html
    (True, 0, True)
    """
    models = models_of(tokenizers)
    if len(models) > 2:
        raise ValueError(f"a file shows one or two models, not {len(models)}; the server shows any number")
    data = _data(models, shown_text(text), options or PageOptions())
    html, styles, scripts = part("page.html"), [], []
    for name, kind in PARTS.items():
        source = f"\n{part(name)}"
        allowed = f"'sha256-{b64encode(sha256(source.encode()).digest()).decode()}'"
        if kind == "text/css":
            styles.append(allowed)
            html = _replaced(html, f'<link rel="stylesheet" href="{name}">', f"<style>{source}</style>")
        else:
            scripts.append(allowed)
            html = _replaced(html, f'<script src="{name}" defer></script>', "")
            html = _replaced(html, "</body>", f"<script>{source}</script>\n</body>")
    policy = (
        f"default-src 'none'; script-src {' '.join(scripts)}; style-src {' '.join(styles)}; img-src data:; "
        f"base-uri 'none'; form-action 'none'"
    )
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    html = _replaced(html, "<!-- policy -->", meta)
    # Only `<` could end the element or begin a comment in it.
    json_text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    json_text = json_text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return _replaced(html, "<!-- data -->", f'<script type="application/json" id="data">{json_text}</script>')


def part(name: str) -> str:
    """One of the page's files."""
    return importlib.resources.files("cpbpe.tools").joinpath("browser", name).read_text(encoding="utf-8")


def _data(models: list[Model], text: str, options: PageOptions) -> dict[str, Any]:
    """Everything that the page would ask the server."""
    tokens = compared(models, text, options)
    steps: list[Any] = []
    trees: list[dict[str, Any]] = []
    for model, answer in zip(models, tokens["models"], strict=True):
        used = [int(id) for id in answer.get("pieces", ())]
        trees.append({str(id): model.tree(id) for id in used[:MAX_TREES]})
        if len(text) <= MAX_REPLAYED:
            steps.append(model.steps(text, options))
        else:
            steps.append(
                {"error": f"Merges are replayed for up to {MAX_REPLAYED} characters; this file has more."}
            )
    # Samples for the chances 0, 0.1, 0.2 and so on to 1, and the pieces in them.
    samples: list[Any] = []
    for model in models:
        if len(text) > MAX_SAMPLED_IN_FILE:
            most = f"{MAX_SAMPLED_IN_FILE:,}"
            samples.append({"error": f"A file has samples of up to {most} characters; this one has more."})
            continue
        chances = [model.samples(text, options, tenths / 10, 0) for tenths in range(11)]
        pieces = {id: piece for answer in chances for id, piece in answer["pieces"].items()}
        samples.append({"chances": [answer["samples"] for answer in chances], "pieces": pieces})
    shown = {"special": options.special, "bos": options.bos, "eos": options.eos}
    prefix = "model" if options.prefix is None else "on" if options.prefix else "off"
    return {
        "models": [model.about() for model in models],
        "text": text,
        "options": {**shown, "prefix": prefix},
        "tokens": tokens,
        "steps": steps,
        "samples": samples,
        "trees": trees,
    }


def _replaced(html: str, old: str, new: str) -> str:
    """The page with one place replaced. Texts are filled in last, so none is taken for such a place."""
    if html.count(old) != 1:
        raise RuntimeError(f"the page has {old!r} {html.count(old)} times, not once")
    return html.replace(old, new)
