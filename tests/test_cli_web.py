"""`relet web` as its user meets it: a real process, a real port, Ctrl-C."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests import forks

pytest.importorskip("uvicorn")

SHOP = """
from relet import App
app = App("sqlite:///{path}")

@app.task
def greet(name: str) -> str:
    return name
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(folder: Path, port: int, *options: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    (folder / "shop.py").write_text(SHOP.format(path=folder / "jobs.db"))
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RELET_")}
    command = [sys.executable, "-m", "relet", "web", "shop:app", "--port", str(port), *options]
    server = forks.Popen(
        command, cwd=folder, env=clean | environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield server
    finally:
        server.kill()
        server.communicate()


def line(server: subprocess.Popen[str]) -> str:
    """The next line that begins with relet; other lines are skipped."""
    assert server.stderr is not None
    for printed in server.stderr:
        if printed.startswith("relet"):
            return printed.strip()
    return ""


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_the_web_prints_its_address_and_a_token_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    port = free_port()
    with serving(tmp_path, port) as server:
        assert line(server) == f"relet web: http://127.0.0.1:{port}/"
        token = line(server).split()[-1]
        give_up = time.monotonic() + 20
        while not answers(port) and time.monotonic() < give_up:
            time.sleep(0.05)
        url = f"http://127.0.0.1:{port}"
        assert httpx.get(f"{url}/health").status_code == 401
        headers = {"authorization": f"Bearer {token}"}
        assert httpx.get(f"{url}/health", headers=headers).text == "ok\n"
        made = httpx.post(f"{url}/api/jobs", headers=headers, json={"task": "greet", "payload": {"name": "Ada"}})
        assert made.status_code == 201
        assert "greet" in httpx.get(f"{url}/jobs", headers=headers).text
        assert httpx.get(url, headers={**headers, "host": "evil.example"}).status_code == 421
        assert "server" not in httpx.get(url, headers=headers).headers
        server.send_signal(signal.SIGINT)
        assert server.wait(10) in (0, 130, -2)


def test_a_token_that_was_set_is_not_printed(tmp_path: Path) -> None:
    port = free_port()
    token = "canary-token-of-the-environment"
    with serving(tmp_path, port, "--open-health", RELET_WEB_TOKEN=token) as server:
        give_up = time.monotonic() + 20
        while not answers(port) and time.monotonic() < give_up:
            time.sleep(0.05)
        assert httpx.get(f"http://127.0.0.1:{port}/health").text == "ok\n"
        server.terminate()
        out, err = server.communicate(timeout=10)
        assert token not in out + err


def test_errors_are_printed_without_a_traceback(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with serving(tmp_path, taken.getsockname()[1]) as server:
            _, err = server.communicate(timeout=30)
            assert server.returncode == 1
            assert "Cannot listen on" in err
            assert "Traceback" not in err
    with serving(tmp_path, free_port(), RELET_WEB_TOKEN="short") as server:
        _, err = server.communicate(timeout=30)
        assert server.returncode == 2
        assert "too short" in err
        assert "Traceback" not in err
