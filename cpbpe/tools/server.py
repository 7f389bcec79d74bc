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
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from anyio import CapacityLimiter
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
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


def application(models: list[Model], text: str) -> ASGIApp:
    """The page of some models; `text` is what it begins with."""
    answers = _Answers(models)
    about = {"models": [model.about() for model in models], "text": text}

    async def file(request: Request) -> Response:
        name = request.url.path.removeprefix("/")
        return Response(part(name), media_type=PARTS[name])

    async def page(request: Request) -> Response:
        return HTMLResponse(part("page.html"))

    async def begin(request: Request) -> Response:
        return _json(about)

    routes = [
        Route("/", page, methods=["GET"]),
        *(Route(f"/{name}", file, methods=["GET"]) for name in PARTS),
        Route("/api/models", begin, methods=["GET"]),
        *(
            Route(f"/api/{answer.__name__}", answers.posted(answer), methods=["POST"])
            for answer in (answers.tokens, answers.steps, answers.samples, answers.tree, answers.search)
        ),
    ]
    return Guard(Starlette(routes=routes))


class _Answers:
    """The answers to all requests."""

    def __init__(self, models: list[Model]):
        self._models = models
        self._slots: Any = None

    def posted(self, answer: Callable[[Mapping[str, Any]], Any]) -> Callable[[Request], Awaitable[Response]]:
        """The endpoint of an answer: reads the request, works in a thread, tells what was wrong."""

        async def endpoint(request: Request) -> Response:
            try:
                body = await request.body()
            except TooLargeError as error:
                return _json({"error": str(error)}, 413)
            if self._slots is None:
                self._slots = CapacityLimiter(_AT_ONCE)
            async with self._slots:
                if await request.is_disconnected():
                    return Response(status_code=499)
                try:
                    return await run_in_threadpool(lambda: _json(answer(_read(body))))
                except BadRequestError as error:
                    return _json({"error": str(error)}, 400)
                except ValueError as error:
                    return _json({"error": str(error)}, 422)

        return endpoint

    # --- The answers ------------------------------------------------------------------------------

    def tokens(self, asked: Mapping[str, Any]) -> Any:
        return compared(self._chosen(asked), _text(asked), _options(asked))

    def steps(self, asked: Mapping[str, Any]) -> Any:
        return self._one(asked).steps(_text(asked), _options(asked))

    def samples(self, asked: Mapping[str, Any]) -> Any:
        alpha, seed = asked.get("alpha", 0.1), _number(asked, "seed", 0)
        if type(alpha) not in (int, float) or not 0 <= alpha <= 1:
            raise BadRequestError("alpha must be a number from 0 to 1")
        return self._one(asked).samples(_text(asked), _options(asked), float(alpha), seed)

    def tree(self, asked: Mapping[str, Any]) -> Any:
        return self._one(asked).tree(_number(asked, "id"))

    def search(self, asked: Mapping[str, Any]) -> Any:
        return self._one(asked).search(_text(asked, "wanted"))

    def _one(self, asked: Mapping[str, Any]) -> Model:
        return self._model(_number(asked, "model"))

    def _chosen(self, asked: Mapping[str, Any]) -> list[Model]:
        chosen = asked.get("models")
        if not isinstance(chosen, list) or not 1 <= len(chosen) <= 2:
            raise BadRequestError("models must be a list of one or two numbers")
        return [self._model(number) for number in chosen]

    def _model(self, number: object) -> Model:
        if type(number) is not int or not 0 <= number < len(self._models):
            raise BadRequestError(
                f"there is no such model; they have the numbers 0 to {len(self._models) - 1}"
            )
        return self._models[number]


def _read(body: bytes) -> Mapping[str, Any]:
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        raise BadRequestError("the request is not JSON") from None
    if not isinstance(asked, dict):
        raise BadRequestError("the request must be an object")
    return asked


def _text(asked: Mapping[str, Any], name: str = "text") -> str:
    text = asked.get(name)
    if not isinstance(text, str):
        raise BadRequestError(f"{name} must be a text")
    return shown_text(text)


def _number(asked: Mapping[str, Any], name: str, default: int | None = None) -> int:
    number = asked.get(name, default)
    if type(number) is not int or not 0 <= number < _MAX_ID:
        raise BadRequestError(f"{name} must be an integer from 0 to {_MAX_ID - 1}")
    return number


def _options(asked: Mapping[str, Any]) -> PageOptions:
    try:
        return PageOptions.read(asked.get("options"))
    except ValueError as error:
        raise BadRequestError(str(error)) from None


def _json(value: Any, status: int = 200) -> Response:
    data = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    return Response(data, status, media_type="application/json")


class TooLargeError(Exception):
    """The body of a request turned out to be too large while it was read."""


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
            await _answer(sending, *refused)

    def _refused(self, scope: Scope) -> tuple[int, str] | None:
        """The status and the reason, if the request is refused."""
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        # 1. It is for this server, and comes from its own page or from a program.
        hosts = headers.get("host", [])
        if len(hosts) != 1 or not _is_ours(hosts[0], scope):
            return 421, "this server answers to localhost and 127.0.0.1, with its port, and to no other name"
        if any(origin != f"http://{hosts[0]}" for origin in headers.get("origin", [])):
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


def _is_ours(host: str, scope: Mapping[str, Any]) -> bool:
    """Whether a Host is a name of this machine with the port of this server."""
    name, _, port = host.rpartition(":") if not host.endswith("]") and ":" in host else (host, "", "80")
    server = scope.get("server")
    return name.lower() in NAMES and server is not None and port == str(server[1])


async def _answer(send: Send, status: int, message: str) -> None:
    body = json.dumps({"error": message}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


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
