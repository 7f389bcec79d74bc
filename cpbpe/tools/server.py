"""The server of the page: a Starlette application, and how uvicorn runs it on this machine only.

Nothing is stored. A request has everything that its answer needs: the text, the models by their numbers, and
the options. Encoding happens in threads, so a long text does not keep the next request waiting.

Programs of this machine may ask, and no other page of the browser. A server on 127.0.0.1 can be reached by
every page that the browser has open. A page that lets its own name point to 127.0.0.1 (DNS rebinding) sends
that name as Host; any other page sends its name as Origin.
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

from cpbpe.tools.answers import MAX_TEXT, Model, PageOptions, compared, shown_text
from cpbpe.tools.page import MISSING, PARTS, part

LOOPBACK = "127.0.0.1"
MAX_BODY = 3 * MAX_TEXT
"""A longer body, in bytes, is refused. (JSON writes some characters of one byte with six.)"""
NAMES = ("localhost", "127.0.0.1", "[::1]")
"""What this machine is called."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Nothing comes from elsewhere, and nothing in the page can run or be sent but what the server gave."""
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
_AT_ONCE = 2
"""This many answers are made at once. Requests that the browser gave up are not even begun."""


class BadRequestError(ValueError):
    """The request is not one that the page makes."""


class TooLargeError(Exception):
    """The body of a request turned out to be too large while it was read."""


class _Asked:
    """The body of a request: an object of JSON, whose values are checked when they are taken."""

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


_ANSWERS: dict[str, Callable[[_Asked], Any]] = {
    "tokens": lambda asked: compared(asked.models(), asked.text(), asked.options()),
    "steps": lambda asked: asked.model().steps(asked.text(), asked.options()),
    "samples": lambda asked: asked.model().samples(
        asked.text(), asked.options(), asked.chance(), asked.number("seed", 0)
    ),
    "tree": lambda asked: asked.model().tree(asked.number("id")),
    "search": lambda asked: asked.model().search(asked.text("wanted")),
}
"""What the page asks."""


def application(models: list[Model], text: str) -> ASGIApp:
    """The page of some models; `text` is what it begins with."""
    about = {"models": [model.about() for model in models], "text": text}
    slots: list[CapacityLimiter] = []  # (It belongs to the loop, which runs when the first request comes.)

    async def file(request: Request) -> Response:
        name = request.url.path.removeprefix("/") or "page.html"
        return Response(part(name), media_type=PARTS.get(name, "text/html"))

    async def begin(request: Request) -> Response:
        return _json(about)

    async def answer(request: Request) -> Response:
        """Read the request, work in a thread, tell what was wrong."""
        try:
            body = await request.body()
        except TooLargeError as error:
            return _json({"error": str(error)}, 413)
        if not slots:
            slots.append(CapacityLimiter(_AT_ONCE))
        async with slots[0]:
            if await request.is_disconnected():
                return Response(status_code=499)
            make = _ANSWERS[request.url.path.removeprefix("/api/")]
            try:
                return await run_in_threadpool(lambda: _json(make(_Asked(body, models))))
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
    """Refuses requests, and puts headers on all answers."""

    def __init__(self, app: ASGIApp):
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
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
        """The status and the reason, if the request is refused."""
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        # 1. It is for this server, and comes from its own page or from a program.
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
        # 2. What is posted is JSON, which a form of another page cannot send, and not too much.
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
    """A socket on a port of this machine that nobody else can reach; 0 is a free one."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if hasattr(socket, "SO_EXCLUSIVEADDRUSE"):  # elsewhere than on Windows, ports are not shared anyway
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
    """Serve until Ctrl-C. `started` is called when the first request can come."""
    try:
        import uvicorn
    except ImportError as error:
        raise ImportError(MISSING) from error

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
