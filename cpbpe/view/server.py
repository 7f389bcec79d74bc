"""The server of the page: a Starlette application, and how uvicorn runs it on this machine only.

Nothing is stored. A request has everything that its answer needs: the text, the models by their numbers, and
the options. Encoding happens in threads, so a long text does not keep the next request waiting.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from cpbpe.tokenizer.tokenizer import Tokenizer
from cpbpe.view.answers import Model, compared, models_of, shown_text
from cpbpe.view.guard import Guard, TooLargeError
from cpbpe.view.options import PageOptions
from cpbpe.view.parts import PARTS, page, part

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

T = TypeVar("T")
LOOPBACK = "127.0.0.1"
MISSING = 'the page needs starlette and uvicorn; install them: pip install "cpbpe[page]"'
"""What to do if the extra is not there."""
_MAX_ID = 1 << 31
_AT_ONCE = 2
"""This many answers are made at once. Requests that the browser gave up are not even begun."""


class BadRequestError(ValueError):
    """The request is not one that the page makes."""


def app(tokenizers: Mapping[str, Tokenizer] | Iterable[Tokenizer] | Tokenizer, *, text: str = "") -> ASGIApp:
    """The page as an ASGI application, for a server that listens on this machine only.

    `tokenizers` are the models, by the names that the page shows; `text` is what it begins with.
    """
    try:
        from starlette.applications import Starlette
        from starlette.routing import Route
    except ImportError as error:
        raise ImportError(MISSING) from error
    answers = _Answers(models_of(tokenizers), shown_text(text))
    routes = [
        Route("/", answers.page, methods=["GET"]),
        *(Route(f"/{name}", answers.part, methods=["GET"]) for name in PARTS),
        Route("/api/models", answers.models, methods=["GET"]),
        Route("/api/tokens", answers.posted(answers.tokens), methods=["POST"]),
        Route("/api/steps", answers.posted(answers.steps), methods=["POST"]),
        Route("/api/samples", answers.posted(answers.samples), methods=["POST"]),
        Route("/api/tree", answers.posted(answers.tree), methods=["POST"]),
        Route("/api/search", answers.posted(answers.search), methods=["POST"]),
    ]
    return Guard(Starlette(routes=routes))


class _Answers:
    """The answers to all requests."""

    def __init__(self, models: list[Model], text: str):
        self._models = models
        self._text = text
        self._slots: Any = None

    async def page(self, request: Request) -> Response:
        from starlette.responses import HTMLResponse

        return HTMLResponse(page())

    async def part(self, request: Request) -> Response:
        from starlette.responses import Response

        name = request.url.path.removeprefix("/")
        return Response(part(name), media_type=PARTS[name])

    async def models(self, request: Request) -> Response:
        return _json({"models": [model.about() for model in self._models], "text": self._text})

    def posted(self, answer: Callable[[Mapping[str, Any]], Any]) -> Callable[[Request], Awaitable[Response]]:
        """The endpoint of an answer: reads the request, works in a thread, tells what was wrong."""

        async def endpoint(request: Request) -> Response:
            from anyio import CapacityLimiter
            from starlette.responses import Response

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
                    return await _in_thread(lambda: _json(answer(_read(body))))
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
    from starlette.responses import Response

    data = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    return Response(data, status, media_type="application/json")


async def _in_thread(work: Callable[[], T]) -> T:
    from starlette.concurrency import run_in_threadpool

    return await run_in_threadpool(work)


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
