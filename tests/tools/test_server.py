"""The server of the page: who may ask it, how much, and its answers to requests that the page never makes."""

from typing import Any

import pytest
from starlette.testclient import TestClient

import cpbpe
from cpbpe.tools.answers import MAX_TEXT
from cpbpe.tools.page import PARTS
from cpbpe.tools.server import MAX_BODY, POLICY
from cpbpe.view import app
from tests.bytes.models import made
from tests.support import processes, zoo


@pytest.fixture(scope="module")
def client() -> TestClient:
    tok = cpbpe.Tokenizer.from_bytes(zoo.model("llama"))
    application = app({"/secret/folder/a.model": tok, "b": cpbpe.Tokenizer.from_spec(made())}, text="Hi")
    return TestClient(application, base_url="http://localhost", raise_server_exceptions=False)


def test_the_page_and_its_parts(client: TestClient) -> None:
    page = client.get("/")
    assert page.status_code == 200
    assert page.text.startswith("<!doctype html>")
    for name, kind in PARTS.items():
        answer = client.get(f"/{name}")
        assert answer.headers["content-type"].startswith(kind)
        assert page.text.count(name) == 1
    assert client.get("/api/models").json()["text"] == "Hi"


def test_nothing_comes_from_elsewhere_or_leaks(client: TestClient) -> None:
    """No address of another server in any file, no folder of this machine, and strict headers everywhere."""
    for path in ("/", *(f"/{name}" for name in PARTS), "/api/models", "/none", "/api/tokens"):
        answer = client.get(path)
        assert "://" not in answer.text
        assert "secret" not in answer.text
        assert "innerHTML" not in answer.text
        headers = answer.headers
        assert headers["content-security-policy"] == POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers
        assert "set-cookie" not in headers
        assert "access-control-allow-origin" not in headers


def ask(client: TestClient, kind: str, question: Any, **headers: str) -> Any:
    return client.post(f"/api/{kind}", json=question, headers=headers)


def test_answers(client: TestClient) -> None:
    tok = cpbpe.Tokenizer.from_bytes(zoo.model("llama"))
    answer = ask(client, "tokens", {"text": "Hi 🦙", "models": [0, 1], "options": {"bos": False}}).json()
    assert answer["models"][0]["ids"] == tok.encode("Hi 🦙")
    assert len(answer["models"]) == 2
    assert ask(client, "steps", {"model": 0, "text": "Hi"}).json()["ids"] == tok.encode("Hi")
    assert ask(client, "tree", {"model": 0, "id": 300}).json()["id"] == 300
    assert len(ask(client, "samples", {"model": 0, "text": "Hi", "alpha": 0.5}).json()["samples"]) == 8
    assert ask(client, "search", {"model": 1, "wanted": "a"}).json()["total"] > 0
    # What JavaScript can send, and UTF-8 has not.
    data = b'{"text": "a\\ud800", "models": [0]}'
    answer = client.post("/api/tokens", content=data, headers={"content-type": "application/json"})
    assert answer.json()["models"][0]["ids"] == tok.encode("a\ufffd")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "localhost"}, 200),
        ({"host": "127.0.0.1:80"}, 200),
        ({"host": "[::1]:80"}, 200),
        ({"host": "[::1]"}, 200),
        ({"host": "LOCALHOST:80"}, 200),
        ({"host": "localhost:81"}, 421),
        ({"host": "evil.example"}, 421),
        ({"host": "localhost.evil.example"}, 421),
        ({"host": "127.0.0.1.evil.example:80"}, 421),
        ({"host": "evil.example#localhost:80"}, 421),
        ({"host": "0.0.0.0"}, 421),
        ({"host": ""}, 421),
        ({"origin": "http://localhost"}, 200),
        ({"origin": "http://127.0.0.1"}, 403),
        ({"origin": "https://localhost"}, 403),
        ({"origin": "http://localhost:3000"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "none"}, 200),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
    ],
)
def test_who_may_ask(client: TestClient, headers: dict[str, str], status: int) -> None:
    answer = ask(client, "tokens", {"text": "Hi", "models": [0]}, **headers)
    assert answer.status_code == status, answer.text
    assert ("ids" in answer.text) == (status == 200)
    assert client.get("/api/models", headers=headers).status_code == status


def test_a_link_from_another_page_opens_the_page_and_nothing_else(client: TestClient) -> None:
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get("/", headers=headers).status_code == 200
    assert client.get("/api/models", headers=headers).status_code == 403


def test_forms_of_other_pages_are_not_understood(client: TestClient) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        answer = client.post(
            "/api/tokens", content=b'{"text":"a","models":[0]}', headers={"content-type": kind}
        )
        assert (answer.status_code, answer.json()) == (415, {"error": "send application/json"})
    assert client.get("/api/tokens").status_code == 405
    assert client.put("/api/tokens", json={}).status_code == 405


def test_bodies_are_limited(client: TestClient) -> None:
    answer = ask(client, "tokens", {"text": "x" * (MAX_TEXT + 1), "models": [0]})
    assert (answer.status_code, "2,000,001 bytes" in answer.json()["error"]) == (422, True)
    headers = {"content-type": "application/json"}
    answer = client.post("/api/tokens", content=b" " * (MAX_BODY + 1), headers=headers)
    assert (answer.status_code, "too long" in answer.json()["error"]) == (413, True)
    parts = iter([b" " * 1_000_000] * 7)  # without a length
    assert client.post("/api/tokens", content=parts, headers=headers).status_code == 413
    for length in ("-1", "1e9", "9" * 30):
        answer = client.post("/api/tokens", content=b"{}", headers={**headers, "content-length": length})
        assert answer.status_code == 413


@pytest.mark.parametrize(
    ("kind", "question", "message"),
    [
        ("tokens", [], "must be an object"),
        ("tokens", {"models": [0]}, "text must be a text"),
        ("tokens", {"text": 1, "models": [0]}, "text must be a text"),
        ("tokens", {"text": "a"}, "models must be a list of one or two numbers"),
        ("tokens", {"text": "a", "models": [0, 1, 0]}, "models must be a list"),
        ("tokens", {"text": "a", "models": [2]}, "there is no such model; they have the numbers 0 to 1"),
        ("tokens", {"text": "a", "models": [True]}, "there is no such model"),
        ("tokens", {"text": "a", "models": [-1]}, "there is no such model"),
        ("tokens", {"text": "a", "models": [0], "options": {"x": 1}}, "there are the options special"),
        ("tokens", {"text": "a", "models": [0], "options": [1]}, "options must be an object"),
        ("steps", {"text": "a"}, "model must be an integer"),
        ("samples", {"text": "a", "model": 0, "alpha": 2}, "alpha must be a number from 0 to 1"),
        ("samples", {"text": "a", "model": 0, "alpha": "1"}, "alpha must be a number"),
        ("samples", {"text": "a", "model": 0, "seed": -1}, "seed must be an integer from 0"),
        ("tree", {"model": 0, "id": 1 << 40}, "id must be an integer"),
        ("tree", {"model": 0, "id": 5000}, "there is no id 5000"),
        ("search", {"model": 0}, "wanted must be a text"),
    ],
)
def test_odd_requests(client: TestClient, kind: str, question: Any, message: str) -> None:
    answer = ask(client, kind, question)
    assert answer.status_code in (400, 422)
    assert message in answer.json()["error"]


def test_no_json(client: TestClient) -> None:
    for data in (b"", b"{", b"\xff", b"[" * 200_000, b'{"text": NaN, "models": [0]}'):
        answer = client.post("/api/tokens", content=data, headers={"content-type": "application/json"})
        assert answer.status_code == 400, data[:20]
        assert list(answer.json()) == ["error"]


def test_only_the_files_of_the_page_are_served(client: TestClient) -> None:
    for path in ("/view.py", "/server.py", "/../answers.py", "/%2e%2e/answers.py", "/page.html", "/static"):
        assert client.get(path).status_code == 404, path


def test_without_the_extra() -> None:
    """The message names its packages; importing the room needs nothing."""
    code = """
import sys
sys.modules["starlette"] = sys.modules["starlette.applications"] = None
import cpbpe
from cpbpe.view import app, static_page
unknown = cpbpe.Piece(b"<unk>", 0, cpbpe.PieceType.UNKNOWN)
tok = cpbpe.Tokenizer.from_spec(cpbpe.ModelSpec(cpbpe.Pieces.of([unknown])))
print(len(static_page(tok, "a")) > 1000)
app(tok)
"""
    done = processes.run("-c", code)
    assert done.stdout.split() == [b"True"], done.stderr
    assert (
        b"ImportError: the page needs starlette and uvicorn: pip install starlette uvicorn\n" in done.stderr
    )


def test_the_room_is_not_imported_before_it_is_needed() -> None:
    code = "import sys, cpbpe.cli; print({'cpbpe.view', 'starlette', 'uvicorn'} & {*sys.modules})"
    assert processes.output("-c", code) == "set()\n"
