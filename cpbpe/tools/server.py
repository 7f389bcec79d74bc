"""The server of the page: a Starlette application, which uvicorn runs for this machine only.

Nothing is stored. A request has everything that its answer needs: the text, the models by their numbers, and
the options. Encoding happens in threads, so a long text does not keep the next request waiting.

The server answers its own page and programs on this machine, but no other page in the browser. It has to
check, because every page that the browser has open can reach a server on 127.0.0.1. A page whose own host
name points to 127.0.0.1 (DNS rebinding) sends that name as Host; any other page sends its name as Origin.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

from anyio import CapacityLimiter
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cpbpe.errors import missing
from cpbpe.tools.answers import MAX_TEXT, Model, PageOptions, compared, shown_text
from cpbpe.tools.page import PARTS, SERVER, part

LOOPBACK = "127.0.0.1"
MAX_BODY = 3 * MAX_TEXT
"""A longer body, in bytes, is refused. (JSON writes some characters of one byte with six.)"""
NAMES = ("localhost", "127.0.0.1", "[::1]")
"""The names of this machine that a request may have as its host."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page may load, run and contact only what comes from this server."""
_HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
_TOO_LARGE = f"the text is too long: the page takes {MAX_TEXT:,} bytes; cpbpe encode has no limit"
_MAX_ID = 1 << 31
_MOST_ANSWERS = 2
"""This many answers are computed at once. Those that the browser no longer wants are not even started."""


class BadRequestError(ValueError):
    """The request is not one that the page would make."""


class TooLargeError(Exception):
    """While the body of a request was read, it turned out to be too large."""


class _Query:
    """The body of a request, a JSON object. Each value is checked when a method returns it."""

    def __init__(self, body: bytes, models: list[Model]):
        try:
            self._values = json.loads(body)
        except (ValueError, RecursionError):
            raise BadRequestError("the request is not JSON") from None
        if not isinstance(self._values, dict):
            raise BadRequestError("the request must be an object")
        self._models = models

    def text(self, name: str = "text") -> str:
        text = self._values.get(name)
        if not isinstance(text, str):
            raise BadRequestError(f"{name} must be a text")
        return shown_text(text)

    def number(self, name: str, default: int | None = None) -> int:
        number = self._values.get(name, default)
        if type(number) is not int or not 0 <= number < _MAX_ID:
            raise BadRequestError(f"{name} must be an integer from 0 to {_MAX_ID - 1}")
        return number

    def chance(self) -> float:
        alpha = self._values.get("alpha", 0.1)
        if type(alpha) not in (int, float) or not 0 <= alpha <= 1:
            raise BadRequestError("alpha must be a number from 0 to 1")
        return float(alpha)

    def options(self) -> PageOptions:
        try:
            return PageOptions.read(self._values.get("options"))
        except ValueError as error:
            raise BadRequestError(str(error)) from None

    def model(self) -> Model:
        return self._model(self.number("model"))

    def models(self) -> list[Model]:
        chosen = self._values.get("models")
        if not isinstance(chosen, list) or not 1 <= len(chosen) <= 2:
            raise BadRequestError("models must be a list of one or two numbers")
        return list(map(self._model, chosen))

    def _model(self, number: object) -> Model:
        if type(number) is not int or not 0 <= number < len(self._models):
            raise BadRequestError(
                f"there is no such model; they have the numbers 0 to {len(self._models) - 1}"
            )
        return self._models[number]


_ANSWERS: dict[str, Callable[[_Query], Any]] = {
    "tokens": lambda query: compared(query.models(), query.text(), query.options()),
    "steps": lambda query: query.model().steps(query.text(), query.options()),
    "samples": lambda query: query.model().samples(
        query.text(), query.options(), query.chance(), query.number("seed", 0)
    ),
    "tree": lambda query: query.model().tree(query.number("id")),
    "search": lambda query: query.model().search(query.text("wanted")),
}
"""What the page can ask, with the function that answers."""


def application(models: list[Model], text: str) -> ASGIApp:
    """The application that serves the page for some models; `text` is the first text that it shows."""
    about = {"models": [model.about() for model in models], "text": text}
    slots: list[
        CapacityLimiter
    ] = []  # (Made for the first request, because it needs the running event loop.)

    async def file(request: Request) -> Response:
        name = request.url.path.removeprefix("/") or "page.html"
        return Response(part(name), media_type=PARTS.get(name, "text/html"))

    async def begin(request: Request) -> Response:
        return _json(about)

    async def answer(request: Request) -> Response:
        """Read the request and answer it in a thread; errors become JSON, too."""
        try:
            body = await request.body()
        except TooLargeError as error:
            return _json({"error": str(error)}, 413)
        if not slots:
            slots.append(CapacityLimiter(_MOST_ANSWERS))
        async with slots[0]:
            if await request.is_disconnected():
                return Response(status_code=499)
            make = _ANSWERS[request.url.path.removeprefix("/api/")]
            try:
                return await run_in_threadpool(lambda: _json(make(_Query(body, models))))
            except BadRequestError as error:
                return _json({"error": str(error)}, 400)
            except ValueError as error:
                return _json({"error": str(error)}, 422)

    routes = [Route(f"/{name}", file, methods=["GET"]) for name in ("", *PARTS)]
    routes.append(Route("/api/models", begin, methods=["GET"]))
    routes += [Route(f"/api/{name}", answer, methods=["POST"]) for name in _ANSWERS]
    return Guard(Starlette(routes=routes))


def _json(value: Any, status: int = 200) -> Response:
    data = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    return Response(data, status, media_type="application/json")


class Guard:
    """Refuses requests that do not come from the page or a program, and adds headers to all answers."""

    def __init__(self, app: ASGIApp):
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":  # the page has no other connections
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_HEADERS]
            await send(message)

        left = MAX_BODY

        async def receiving() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise TooLargeError(_TOO_LARGE)
            return message

        refused = self._refused(scope)
        if refused is None:
            await self._app(scope, receiving, sending)
        else:
            status, message = refused
            await _json({"error": message}, status)(scope, receiving, sending)

    def _refused(self, scope: Scope) -> tuple[int, str] | None:
        """The status and the reason if the request is refused; None if it is not."""
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        # 1. The request must be for this server, and come from its own page or from a program.
        hosts, server = headers.get("host", []), scope.get("server")
        host = hosts[0] if len(hosts) == 1 else ""
        has_port = ":" in host and not host.endswith("]")
        name, _, port = host.rpartition(":") if has_port else (host, "", "80")
        if name.lower() not in NAMES or server is None or port != str(server[1]):
            return 421, "this server answers to localhost and 127.0.0.1, with its port, and to no other name"
        if any(origin != f"http://{host}" for origin in headers.get("origin", [])):
            return 403, "another page asked; only the page of this server may"
        sites = headers.get("sec-fetch-site", [])
        navigates = scope["path"] == "/" and "navigate" in headers.get("sec-fetch-mode", [])
        if not navigates and any(site not in ("same-origin", "none") for site in sites):
            return 403, "another page asked; only the page of this server may"
        # 2. A POST must have JSON, which a form on another page cannot send, and not too much of it.
        if scope["method"] == "POST":
            kind = ",".join(headers.get("content-type", [])).partition(";")[0].strip().lower()
            if kind != "application/json":
                return 415, "send application/json"
        length = "".join(headers.get("content-length", [])) or "0"
        if not length.isdecimal() or len(length) > 18 or int(length) > MAX_BODY:
            return 413, _TOO_LARGE
        return None


# --- Running it -----------------------------------------------------------------------------------


def listening(port: int) -> socket.socket:
    """A socket that listens on a port of this machine, unreachable from others. Port 0 chooses a free one."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if hasattr(socket, "SO_EXCLUSIVEADDRUSE"):  # only on Windows can two programs share a port
            found.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((LOOPBACK, port))
        found.listen(64)
    except BaseException:
        found.close()
        raise
    return found


def serve(application: ASGIApp, on: socket.socket, started: Callable[[], None]) -> None:
    """Serve until Ctrl-C. `started` is called once the server accepts requests."""
    try:
        import uvicorn
    except ImportError as error:
        raise missing(*SERVER) from error

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            started()

    config = uvicorn.Config(
        application,
        log_level="error",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        proxy_headers=False,
        timeout_graceful_shutdown=1,
    )
    Server(config).run(sockets=[on])
