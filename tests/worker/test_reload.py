"""`relet worker --reload`: a worker that runs the code as it is in the files now."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from relet import App
from relet._worker.source_files import SourceFiles

TIMEOUT = 60.0
SHOP = """
from relet import App

app = App("sqlite:///jobs.db")


@app.task
def answer() -> int:
    return {number}
"""


def write(path: Path, text: str) -> None:
    """Write a file so that its time differs from before by a second, in which Python measures that of compiled code."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(text)
    if path.stat().st_mtime_ns < before + 10**9:
        os.utime(path, ns=(before + 10**9, before + 10**9))


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    write(tmp_path / "shop.py", SHOP.format(number=1))
    command = [sys.executable, "-m", "relet", "worker", "shop:app", "--reload", "--poll-interval", "0.1"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=tmp_path, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def result(app: App) -> object:
    """The answer of the code in the files."""
    task = app.tasks["answer"]
    return app.client.result(task.enqueue(), timeout=TIMEOUT)


def test_a_changed_file_restarts_the_worker(tmp_path: Path, worker: subprocess.Popen[bytes]) -> None:
    namespace: dict[str, App] = {}
    exec(SHOP.format(number=0).replace("jobs.db", f"/{tmp_path}/jobs.db"), namespace)
    app = namespace["app"]
    assert result(app) == 1
    write(tmp_path / "shop.py", "this is no Python")
    until_logged(tmp_path, "Restarting, because files were changed: shop.py")
    until_logged(tmp_path, "SyntaxError")
    write(tmp_path / "shop.py", SHOP.format(number=2))
    assert result(app) == 2
    app.close()
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(TIMEOUT) == 0


def until_logged(folder: Path, text: str) -> None:
    give_up = time.monotonic() + TIMEOUT
    while text not in (log := (folder / "log").read_text()):
        assert time.monotonic() < give_up, log
        time.sleep(0.02)


def test_files_that_are_not_the_users_own_do_not_count(tmp_path: Path) -> None:
    for folder in (".venv", "__pycache__", "shop"):
        (tmp_path / folder).mkdir()
    files = SourceFiles(str(tmp_path))
    for path in (".venv/a.py", "__pycache__/b.py", "notes.txt"):
        write(tmp_path / path, "")
    assert files.changed() == []
    write(tmp_path / "shop" / "tasks.py", "")
    assert files.changed() == ["shop/tasks.py"]
    assert files.changed() == []
    (tmp_path / "shop" / "tasks.py").unlink()
    assert files.changed() == ["shop/tasks.py"]
