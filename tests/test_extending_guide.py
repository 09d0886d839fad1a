"""The packages of docs/extending.md work as printed there: installed, generated, run, reported."""

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import gcd
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, install

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^`([\w.]+)`:\n\n```(?:python|toml)\n(.*?)^```", re.M | re.S)


class Acme(BaseHTTPRequestHandler):
    """The API of the guide: the true answer to every question, if the key is right."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        a, b = map(int, re.findall(r"\d+", body["messages"][-1]["content"]))
        reply = {"text": json.dumps({"answer": gcd(a, b)}), "usage": {"input": 9, "output": 4}}
        valid = self.path == "/chat" and self.headers["Authorization"] == "Bearer secret"
        self.send_response(200 if valid and body["thinking"] else 401)
        self.end_headers()
        self.wfile.write(json.dumps(reply).encode())

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def acme() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Acme)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def write_package(folder: Path) -> None:
    """Write the packages of the guide as one: their modules, and one pyproject.toml."""
    folder.mkdir()
    blocks = BLOCK.findall((ROOT / "docs" / "extending.md").read_text(encoding="utf-8"))
    modules = {name: code for name, code in blocks if name.endswith(".py")}
    assert sorted(modules) == ["numbench_acme.py", "numbench_gcd.py"]
    project, other = (code for name, code in blocks if name == "pyproject.toml")
    project += other[other.index("[project.entry-points") :]
    build = "\n[tool.hatch.build.targets.wheel]\ninclude = ['*.py']\n"
    (folder / "pyproject.toml").write_text(project + build)
    assert len(modules["numbench_gcd.py"].splitlines()) <= 25
    for name, code in modules.items():
        (folder / name).write_text(code)


def test_the_packages_of_the_guide_work(tmp_path: Path, acme: str) -> None:
    write_package(tmp_path / "source")
    numbench = CommandLine(tmp_path, install(tmp_path / "source", tmp_path / "packages"))
    generated = numbench("generate", "--name", "gcd", "--tasks", "gcd", "--size", "3")
    assert "next: numbench audit gcd\n" in generated
    assert "GCD" in numbench("audit", "gcd")
    arguments = ("--model", "acme/giant-1", "--reasoning", "high", "--dataset", "gcd")
    assert "ACME_API_KEY" in numbench("run", *arguments, code=2)
    key = {"ACME_API_KEY": "secret"}
    assert "3 answered" in numbench("run", *arguments, "--base-url", acme, environment=key)
    numbench("report")
    report = tmp_path / "results" / "report"
    (run,) = json.loads((report / "report.json").read_text())["runs"]
    assert run["tasks"]["gcd"]["score"]["value"] == 100
