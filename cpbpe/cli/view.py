"""``cpbpe view``: a page that shows what models do with a text, in the browser or as one file."""

from __future__ import annotations

import argparse
import errno
import os
import sys

from cpbpe.cli.arguments import HELP, add_given, incomplete, load
from cpbpe.cli.output import check_outputs, say, write_text
from cpbpe.cli.parsing import NotUnderstoodError, Parser, refuse
from cpbpe.lazy import importing

_DESCRIPTION = """\
Show in a browser what models do with a text: the tokens in colours while you
type, how each piece is built, the merges one by one, samples, and models side
by side. The page computes everything itself, and loads and sends nothing. More
models can be dropped on it; without a model it begins with a small sample. It
is served to this machine only, until Ctrl-C. With --out it is written as one
file, which needs nothing but a browser.
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
_NAMES = ("localhost", "127.0.0.1", "[::1]")
"""The hosts that a request may name, all of which are this machine."""
SAMPLE = "sample of 1,000 pieces"
"""How the page calls the model that it begins with if there is none."""


def parser() -> Parser:
    """The command's arguments."""
    parser = Parser(
        "cpbpe view [MODEL ...] [options]",
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
    parser.add("--out -o FILE", "write the page to this HTML file")
    add_given(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Serve the page, or write it."""
    if arguments.port is not None and not 0 <= arguments.port <= _MOST_PORT:
        raise NotUnderstoodError(f"--port: there are ports up to {_MOST_PORT}, and 0 for a free one")
    if arguments.out is not None and (arguments.port is not None or arguments.no_open):
        raise NotUnderstoodError("with --out nothing is served; leave out --port and --no-open")
    if not arguments.models:
        refuse(arguments, {"pattern": None, "special_token": None}, "there is no model")
    if arguments.out is not None:
        check_outputs([arguments.out], [*arguments.models, *filter(None, [arguments.text])])
    with importing:
        from cpbpe.view import static_page
    text = None if arguments.text is None else _text(arguments.text)
    needing = incomplete(arguments.models)
    models = {path: load(arguments, path, plain=path not in needing) for path in arguments.models}
    if not models:
        with importing:
            from cpbpe.cli.quickstart import TEXT, sample
        models = {SAMPLE: sample().tokenizer}
        text = TEXT if text is None else text
    html = static_page(models, text or "")
    if arguments.out is not None:
        write_text(arguments.out, [html])
        return 0
    return _serve(html.encode(), PORT if arguments.port is None else arguments.port, not arguments.no_open)


def _serve(page: bytes, port: int, opens: bool) -> int:
    """Serve the page, and nothing else, to this machine until Ctrl-C."""
    with importing:
        from contextlib import suppress
        from http.server import BaseHTTPRequestHandler
        from socketserver import ThreadingTCPServer

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """The page, for a browser that asks for this machine.

            A web site whose owner lets its name point to 127.0.0.1 (DNS rebinding) could read the answer, and
            with it the models and the text. Its requests have that name as their host.
            """
            status = 200 if self.path.partition("?")[0] in ("/", "/index.html") else 404
            if self.headers.get("Host", "").lower().removesuffix(f":{port}") not in _NAMES:
                status = 421
            content = page if status == 200 else f"{status} {self.responses[status][0]}\n".encode()
            self.send_response(status)
            self.send_header("Content-Type", f"text/{'html' if status == 200 else 'plain'}; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("Cross-Origin-Resource-Policy", "same-origin")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        do_HEAD = do_GET  # noqa: N815

        def send_response(self, code: int, message: str | None = None) -> None:
            """Without the versions of this server and of Python."""
            self.send_response_only(code, message)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing is logged: the page is all that is asked for."""

        def handle(self) -> None:
            """As usual, but silent if the browser goes away."""
            with suppress(ConnectionError):
                super().handle()

    # (The server of `http.server` would first look up the name of the machine, which can take seconds.)
    class Server(ThreadingTCPServer):
        daemon_threads = True  # an open connection does not keep the command from ending
        allow_reuse_address = sys.platform != "win32"

    try:
        server = Server(("127.0.0.1", port), Handler)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise OSError(
                f"port {port} is in use; choose another with --port, or a free one with --port 0"
            ) from None
        raise OSError(f"port {port} cannot be used ({error.strerror}); --port 0 takes a free one") from None
    port = server.server_address[1]
    with server:
        try:
            _started(f"http://127.0.0.1:{port}/", opens)
            server.serve_forever()
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


def _text(path: str) -> str:
    """The text of a file. What is not UTF-8 becomes U+FFFD, and a message counts it."""
    with importing:
        from cpbpe.tools.page import MAX_TEXT
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
