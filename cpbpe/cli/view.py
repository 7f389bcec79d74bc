"""``cpbpe view``: a page that shows what models do with a text, in the browser or as one file."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from typing import TYPE_CHECKING

from cpbpe.cli.arguments import HELP, add_given, load
from cpbpe.cli.output import check_outputs, say, write_text
from cpbpe.cli.parsing import NotUnderstoodError, Parser
from cpbpe.lazy import importing

if TYPE_CHECKING:
    from cpbpe.tokenizer.tokenizer import Tokenizer

_DESCRIPTION = """\
Show in a browser what models do with a text: the tokens in colours while you
type, how each piece is built, the merges one by one, samples, and two models
side by side. The page is for this machine only, and loads nothing from the
internet. Ctrl-C ends it. With --out the same is written as one file.

It needs two packages: pip install starlette uvicorn (not for --out).
"""

_EXAMPLES = """\
examples:
  cpbpe view tokenizer.model
  cpbpe view old.model new.model --text sentence.txt
  cpbpe view tokenizer.model --no-open --port 0
  cpbpe view old.model new.model --text sentence.txt --out tokens.html
"""

PORT = 8642
"""The port if none is given, so that a link to the page works again another time."""
_MOST_PORT = 65_535


def parser() -> Parser:
    """The command's arguments."""
    parser = Parser(
        "cpbpe view MODEL [MODEL ...] [options]",
        _DESCRIPTION,
        _EXAMPLES,
        {
            "model": "the models come first, without a name",
            "host": "the page is for this machine only; ssh -L brings it to another",
            "browser": "the browser opens unless there is --no-open",
            **dict.fromkeys(("input", "file"), "it is --text FILE"),
            **dict.fromkeys(("static", "html", "output", "save"), "it is --out FILE"),
        },
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help=HELP)
    parser.section("how")
    parser.add("--port N", f"the port of the page (default: {PORT}); 0 takes a free one")
    parser.add("--no-open", "do not open the browser; the link is printed")
    parser.add("--text FILE", "begin with the text of this file, in UTF-8")
    parser.add("--out -o FILE", "write the page of one or two models and --text to this HTML file")
    add_given(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Serve the page, or write it."""
    if not arguments.models:
        raise NotUnderstoodError("there is no model; name one: cpbpe view tokenizer.model")
    if arguments.port is not None and arguments.port > _MOST_PORT:
        raise NotUnderstoodError(f"--port: there are ports up to {_MOST_PORT}, and 0 for a free one")
    if arguments.out is None:
        return _serve(arguments)
    if arguments.text is None:
        raise NotUnderstoodError("--out writes the page of a text; give that, too: --text FILE")
    if arguments.port is not None or arguments.no_open:
        raise NotUnderstoodError("with --out there is no server; leave out --port and --no-open")
    if len(arguments.models) > 2:
        raise NotUnderstoodError("a file shows one or two models; without --out there can be more")
    check_outputs([arguments.out], [*arguments.models, arguments.text])
    with importing:
        from cpbpe.view import static_page
    html = static_page(_models(arguments), _text(arguments.text))
    write_text(arguments.out, [html])
    return 0


def _serve(arguments: argparse.Namespace) -> int:
    with importing:
        from cpbpe.view import app
    text = "" if arguments.text is None else _text(arguments.text)
    application = app(_models(arguments), text=text)
    with importing:
        from cpbpe.tools.server import listening, serve
    port = PORT if arguments.port is None else arguments.port
    try:
        on = listening(port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise OSError(
                f"port {port} is in use; choose another with --port, or a free one with --port 0"
            ) from None
        raise OSError(f"port {port} cannot be used ({error.strerror}); --port 0 takes a free one") from None
    address = f"http://127.0.0.1:{on.getsockname()[1]}/"
    with on:
        try:
            serve(application, on, lambda: _started(address, not arguments.no_open))
        except KeyboardInterrupt:  # this is how users end it
            say("the page is closed")
    return 0


def _started(address: str, opens: bool) -> None:
    print(f"The page is at {address}  (Ctrl-C ends it)", flush=True)
    if opens and not _opened(address):
        say("no browser could be opened; type the address into one")


def _opened(address: str) -> bool:
    """Whether a browser was opened. Browsers that run in the terminal are not: they would take it over."""
    with importing:
        import webbrowser
    screen = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
    if not screen and sys.platform not in ("win32", "darwin"):
        return False
    try:
        return webbrowser.open(address)
    except (webbrowser.Error, OSError):
        return False


def _models(arguments: argparse.Namespace) -> dict[str, Tokenizer]:
    """The models by the paths that were given, of which the page shows the last part."""
    return {path: load(arguments, path) for path in arguments.models}


def _text(path: str) -> str:
    """The text of a file. What is not UTF-8 becomes U+FFFD, and a message counts it."""
    with importing:
        from cpbpe.tools.answers import MAX_TEXT
    if path == "-":
        if sys.stdin is None:
            raise OSError("the standard input is closed; name a file")
        data = sys.stdin.buffer.read(MAX_TEXT + 1)
    else:
        with open(path, "rb") as file:
            data = file.read(MAX_TEXT + 1)
    if len(data) > MAX_TEXT:
        raise ValueError(f"{path}: has more than {MAX_TEXT:,} bytes, which the page takes; cut it")
    text = data.decode(errors="replace")
    bad = text.count("\ufffd") - data.count("\ufffd".encode())
    if bad:
        say(f"{path}: {bad} bytes or cut characters that are not UTF-8 are shown as U+FFFD")
    return text
