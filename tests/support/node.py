"""The page's scripts and its core in Node, for tests that compare them with the package.

Where Node or the compiled core is missing, these tests do not run; under CI it is an error.
"""

import json
import os
import shutil
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NODE = shutil.which("node") or shutil.which("nodejs")
BROWSER = Path(__file__).parents[2] / "cpbpe" / "tools" / "browser"
CORE = BROWSER / "engine.wasm"
SCRIPTS = (
    *("engine.js", "answers.js", "steps.js", "protobuf.js", "formats.js", "tokenizer_json.js"),
    *("chat.js", "train.js"),
)
"""The scripts that need no page."""
MISSING = [
    name for name, there in (("Node", NODE), ("engine.wasm (.ci/wasm makes it)", CORE.exists())) if not there
]
RUNS = not MISSING or bool(os.environ.get("CI"))
"""Whether the tests run. Under CI they do, and fail if something is missing."""


class PageError(Exception):
    """What a script threw."""


class Node:
    """A process of Node with the page's scripts."""

    def __init__(self, process: "subprocess.Popen[str]"):
        self._process = process

    def ask(self, body: str, **given: Any) -> Any:
        """What a function returns that has this body, and `given` as its arguments.

        The body can also use `cpbpe`, `models` (what is loaded), `file(base64)` and `hex(bytes)`.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"body": body, "given": given}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline(), object_hook=_with_bytes)
        if "error" in answer:
            raise PageError(answer["error"])
        return answer["result"]

    def load(self, data: bytes, name: str = "model") -> None:
        """Load a model, which is `models[name]` from then on."""
        self.ask(
            "models[name]?.close(); models[name] = new cpbpe.Model(file(data), name);",
            name=name,
            data=b64encode(data).decode(),
        )


@contextmanager
def started() -> Iterator[Node]:
    """A process that ends with the block."""
    assert NODE is not None, "Node is missing"
    paths = [CORE, *(BROWSER / name for name in SCRIPTS)]
    command = [NODE, str(Path(__file__).with_suffix(".js")), *map(str, paths)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        try:
            yield Node(process)
        finally:
            process.kill()


def _with_bytes(found: dict[str, Any]) -> Any:
    """A value of JSON, or the bytes that `node.js` has written as one."""
    return bytes.fromhex(found["bytes"]) if [*found] == ["bytes"] else found


def sentence(parts: list[str | bytes]) -> str:
    """A sentence of the page as one text, with its pieces in brackets."""
    return "".join(part if isinstance(part, str) else f"[{part.decode(errors='replace')}]" for part in parts)
