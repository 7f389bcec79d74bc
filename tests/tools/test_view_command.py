"""`cpbpe view` as a user runs it: what it serves, its messages and its end, and the page as a file."""

import gzip
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import time
from base64 import b64decode, b64encode
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


def written(path: str) -> Any:
    return data_of(Path(path).read_text(encoding="utf-8"))


def models_of(data: Any) -> dict[str, bytes]:
    """The models of a page: their files by their names."""
    return {model["name"]: gzip.decompress(b64decode(model["file"])) for model in data["models"]}


@pytest.mark.parametrize("number", [1, 2, 5])
def test_the_file(number: int) -> None:
    """It has the models as files and the text, so everything in it can be changed."""
    names = ["a.model", "b.model", "c.model", "d.model", "folder/a.model"][:number]
    Path("folder").mkdir()
    for name in names[2:]:
        Path(name).write_bytes(Path("a.model").read_bytes())
    assert main(["view", *names, "--text", "text.txt", "--out", "new/tokens.html"]) == 0
    data = written("new/tokens.html")
    assert data["text"] == Path("text.txt").read_text(encoding="utf-8")
    shown = [*names[:4], "a.model (2)"][:number]
    expected = [cpbpe.load(name).to_bytes() for name in names]
    assert models_of(data) == dict(zip(shown, expected, strict=True))


def test_without_a_model() -> None:
    """The command begins with a small sample and a sentence, a program with nothing."""
    assert main(["view", "--out", "t.html"]) == 0
    data = written("t.html")
    ((name, file),) = models_of(data).items()
    tok = cpbpe.Tokenizer.from_bytes(file)
    assert (name, tok.vocab_size) == ("sample of 1,000 pieces", 1000)
    assert tok.decode(tok.encode(data["text"])) == data["text"] != ""
    assert main(["view", "--text", "text.txt", "--out", "t.html"]) == 0
    assert written("t.html")["text"] == Path("text.txt").read_text(encoding="utf-8")
    empty = data_of(static_page())
    assert (empty["models"], empty["text"]) == ([], "")


def test_nothing_runs_in_the_file_but_the_page() -> None:
    """The hashes of the policy are those of the scripts and of the style, and there are no others."""
    html = static_page({f"/home/me/{EVIL[:9]}": cpbpe.load("a.model"), EVIL: cpbpe.load("b.model")}, EVIL)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    assert "unsafe-inline" not in policy
    assert "'unsafe-eval'" not in policy
    assert policy.startswith("default-src 'none'; script-src 'wasm-unsafe-eval' 'sha256-")
    scripts = re.findall(r"<script data-name=\"[^\"]*\">(.*?)</script>", html, re.DOTALL)
    styles = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    hashes = [f"'sha256-{b64encode(sha256(part.encode()).digest()).decode()}'" for part in scripts + styles]
    assert sorted(hashes) == sorted(re.findall(r"'sha256-[^']*'", policy))
    data = data_of(html)
    assert (data["text"], EVIL in html) == (EVIL, False)
    # No address of another page, no folder of this machine, and nothing that makes markup of a text.
    code = "".join(scripts + styles)
    assert "://" not in code.replace("http://www.w3.org/", "")
    assert "/home/me" not in html
    assert "innerHTML" not in code


def test_a_byte_level_model_that_does_not_say_how_it_cuts() -> None:
    from cpbpe.model.formats import tiktoken

    Path("my.tiktoken").write_bytes(tiktoken.write_ranks(ranks()))
    arguments = ["view", "my.tiktoken", "--text", "text.txt", "-o", "t.html"]
    assert main(arguments) == 1
    assert main([*arguments, "--pattern", "cl100k"]) == 0
    (file,) = models_of(written("t.html")).values()
    assert cpbpe.Tokenizer.from_bytes(file).encode("a b") == cpbpe.load(
        "my.tiktoken", pattern="cl100k"
    ).encode("a b")


def test_text_that_is_not_utf_8(capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.txt").write_bytes(b"a\xffb\xef\xbf\xbd")
    assert main(["view", "a.model", "--text", "bad.txt", "-o", "t.html"]) == 0
    assert "bad.txt: 1 bytes or cut characters that are not UTF-8 are shown" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["a.model", "--text", "text.txt", "-o", "t.html", "--port", "1"], 2, "with --out nothing is served"),
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


def test_a_source_tree_without_the_compiled_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpbpe.tools.page.CORE", "none.wasm")
    with pytest.raises(FileNotFoundError, match=r"install a wheel, or run \.ci/wasm in the source tree"):
        static_page()


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


def asked(port: int, method: str, path: str, host: str) -> tuple[int, dict[str, str], bytes]:
    """The answer to a request: status, headers, content."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request(method, path, headers={"Host": host})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, content


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent in another way")
def test_the_server_and_its_end() -> None:
    server, port = start("a.model", "--text", "text.txt")
    try:
        status, headers, page = asked(port, "GET", "/", f"127.0.0.1:{port}")
        assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert list(models_of(data_of(page.decode()))) == ["a.model"]
        status, head, content = asked(port, "HEAD", "/?x", f"LOCALHOST:{port}")
        assert (status, head, content) == (200, headers, b"")
        assert int(headers["content-length"]) == len(page)
        # Every page in the browser can reach this server, and could read it under a name of its own.
        names = [
            f"evil.example:{port}",
            "localhost.evil.example",
            f"localhost:{port + 1}",
            "0.0.0.0",
            "",
            "null",
        ]
        for host in names:
            status, _, content = asked(port, "GET", "/", host)
            assert (status, content) == (421, b"421 Misdirected Request\n"), host
        assert asked(port, "GET", "/", f"[::1]:{port}")[0] == 200
        for method, path, expected in (
            ("GET", "/page.js", 404),
            ("GET", "/../../etc/passwd", 404),
            ("POST", "/", 501),
        ):
            status, other, _ = asked(port, method, path, f"localhost:{port}")
            assert (status, "server" in other) == (expected, False)
        assert {"server", "date", "access-control-allow-origin"}.isdisjoint(headers)
        # It listens on the loopback interface only.
        with socket.socket() as other_address:
            other_address.settimeout(2)
            assert other_address.connect_ex(("127.0.0.2", port)) != 0
        # A connection is open when it ends, and one was ended in the middle of the page.
        with socket.create_connection(("127.0.0.1", port)) as half:
            half.sendall(f"GET / HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            half.recv(10)
        with socket.create_connection(("127.0.0.1", port)):
            time.sleep(0.1)
            begun = time.monotonic()
            server.send_signal(signal.SIGINT)
            out, err = server.communicate(timeout=20)
            assert (server.returncode, out, err) == (0, b"", b"cpbpe: the page is closed\n")
            assert time.monotonic() - begun < 5
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

    def until_ctrl_c(server: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("webbrowser.open", open_it)
    monkeypatch.setattr("socketserver.BaseServer.serve_forever", until_ctrl_c)
    monkeypatch.setenv("BROWSER", "some")
    assert main(["view", "a.model", "--port", "0"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"The page is at {opened[0]}")
    assert ("no browser could be opened" in err) != works
    assert main(["view", "a.model", "--port", "0", "--no-open"]) == 0
    assert len(opened) == 1


def test_nothing_is_imported_before_it_is_needed() -> None:
    code = "import sys, cpbpe.cli; print({'cpbpe.view', 'http.server', 'jinja2'} & {*sys.modules})"
    assert processes.output("-c", code) == "set()\n"
