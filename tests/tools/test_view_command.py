"""`cpbpe view` as a user runs it: the server with its messages and its end, and the page as a file."""

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import time
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import cpbpe
from cpbpe.cli import main
from cpbpe.view import static_page
from tests.bytes.models import made, ranks
from tests.support import processes, zoo

EVIL = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> \u2028 ]]> & \" ' `"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.model").write_bytes(zoo.model("llama"))
    cpbpe.Tokenizer.from_spec(made()).save("b.model")
    Path("text.txt").write_text(f"Hello 🦙\n{EVIL}", encoding="utf-8")


# --- The file -------------------------------------------------------------------------------------


def data_of(html: str) -> Any:
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html)
    return json.loads(data)


def test_the_file() -> None:
    assert main(["view", "a.model", "b.model", "--text", "text.txt", "--out", "new/tokens.html"]) == 0
    html = Path("new/tokens.html").read_text(encoding="utf-8")
    text = Path("text.txt").read_text(encoding="utf-8")
    data = data_of(html)
    assert data["text"] == text
    for name, answer, trees in zip(("a", "b"), data["tokens"]["models"], data["trees"], strict=True):
        tok = cpbpe.load(f"{name}.model")
        assert answer["ids"] == tok.encode(text)
        assert set(trees) == set(answer["pieces"])
    assert [steps["ids"] for steps in data["steps"]] == [one["ids"] for one in data["tokens"]["models"]]
    assert [model["name"] for model in data["models"]] == ["a.model", "b.model"]
    assert str(Path.cwd()) not in html
    assert "://" not in html


def test_nothing_runs_in_the_file_but_the_page() -> None:
    """The hashes of the policy are those of the scripts and of the style, and there are no others."""
    html = static_page({EVIL: cpbpe.load("a.model")}, EVIL)
    assert EVIL not in html
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    styles = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    hashes = [f"'sha256-{b64encode(sha256(part.encode()).digest()).decode()}'" for part in scripts + styles]
    assert sorted(hashes) == sorted(re.findall(r"'sha256-[^']*'", policy))
    assert len(scripts) == 4
    assert len(re.findall("<script", html)) == 5
    data = data_of(html)
    assert data["text"] == EVIL


def test_a_byte_level_model_that_does_not_say_how_it_cuts() -> None:
    from cpbpe.model.formats import tiktoken

    Path("my.tiktoken").write_bytes(tiktoken.write_ranks(ranks()))
    arguments = ["view", "my.tiktoken", "--text", "text.txt", "-o", "t.html"]
    assert main(arguments) == 1
    assert main([*arguments, "--pattern", "cl100k"]) == 0
    assert data_of(Path("t.html").read_text(encoding="utf-8"))["models"][0]["bytes"]


def test_text_that_is_not_utf_8(capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.txt").write_bytes(b"a\xffb\xef\xbf\xbd")
    assert main(["view", "a.model", "--text", "bad.txt", "-o", "t.html"]) == 0
    assert "bad.txt: 1 bytes or cut characters that are not UTF-8 are shown" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "there is no model; name one: cpbpe view tokenizer.model"),
        (["a.model", "-o", "t.html"], 2, "--out writes the page of a text; give that, too: --text FILE"),
        (["a.model", "--text", "text.txt", "-o", "t.html", "--port", "1"], 2, "there is no server"),
        (["a.model", "b.model", "a.model", "--text", "text.txt", "-o", "t"], 2, "one or two models"),
        (["a.model", "--port", "70000"], 2, "there are ports up to 65535"),
        (["a.model", "--port", "x"], 2, "--port"),
        (["a.model", "--host", "0.0.0.0"], 2, "the page is for this machine only"),
        (["a.model", "--static"], 2, "there is no option --static; it is --out FILE"),
        (["a.model", "--text", "none.txt", "-o", "t.html"], 1, "none.txt: No such file"),
        (["a.model", "--text", "big.txt", "-o", "t.html"], 1, "has more than 2,000,000 bytes"),
        (["none.model", "--text", "text.txt", "-o", "t.html"], 1, "no such file or folder"),
        (["a.model", "--text", "text.txt", "-o", "text.txt"], 1, "text.txt"),
    ],
)
def test_mistakes(arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("big.txt").write_bytes(b"x" * 2_000_001)
    assert main(["view", *arguments]) == code
    assert message in capsys.readouterr().err
    assert not Path("t.html").exists()


# --- The server -----------------------------------------------------------------------------------


def start(*arguments: str) -> tuple[subprocess.Popen[bytes], int]:
    """The server in a process of its own, and its port."""
    server = processes.start(
        *("-m", "cpbpe", "view", *arguments, "--no-open", "--port", "0"),
        cwd=Path.cwd(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert server.stdout is not None
    line = server.stdout.readline().decode()
    found = re.fullmatch(r"The page is at http://127\.0\.0\.1:(\d+)/  \(Ctrl-C ends it\)\n", line)
    assert found is not None, (line, server.communicate())
    return server, int(found[1])


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent in another way")
def test_the_server_and_its_end() -> None:
    server, port = start("a.model", "--text", "text.txt")
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("GET", "/api/models")
        answer = connection.getresponse()
        assert answer.getheader("server") is None
        assert json.loads(answer.read())["models"][0]["name"] == "a.model"
        connection.request("GET", "/", headers={"Host": f"evil.example:{port}"})
        answer = connection.getresponse()
        assert (answer.status, b"no other name" in answer.read()) == (421, True)
        # It listens on the loopback interface only.
        with socket.socket() as other:
            other.settimeout(2)
            assert other.connect_ex(("127.0.0.2", port)) != 0
        # The connection is still open.
        begun = time.monotonic()
        server.send_signal(signal.SIGINT)
        out, err = server.communicate(timeout=20)
        assert (server.returncode, out, err) == (0, b"", b"cpbpe: the page is closed\n")
        assert time.monotonic() - begun < 10
        connection.close()
    finally:
        server.kill()
        server.wait()


def test_a_port_that_is_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["view", "a.model", "--no-open", "--port", str(port)]) == 1
    message = f"cpbpe: port {port} is in use; choose another with --port, or a free one with --port 0\n"
    assert capsys.readouterr().err == message


@pytest.mark.parametrize("works", [True, False])
def test_the_browser(
    works: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is opened when the server is ready; if there is none, that is said."""
    opened: list[str] = []

    def open_it(address: str) -> bool:
        opened.append(address)
        return works

    def serve(application: Any, on: socket.socket, started: Any) -> None:
        started()
        raise KeyboardInterrupt

    monkeypatch.setattr("webbrowser.open", open_it)
    monkeypatch.setattr("cpbpe.tools.server.serve", serve)
    monkeypatch.setenv("BROWSER", "some")
    assert main(["view", "a.model", "--port", "0"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"The page is at {opened[0]}")
    assert ("no browser could be opened" in err) != works
    assert main(["view", "a.model", "--port", "0", "--no-open"]) == 0
    assert len(opened) == 1
