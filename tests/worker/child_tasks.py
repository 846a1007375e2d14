"""Tasks for child processes, which find them, and their app, here. Tests register them with apps of their own."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from relet import Aborted, App, Attempt, Fail, Retry, Snooze

app = App("sqlite:///:memory:")
process = app.task(process=True)


@app.middleware
def note_in_environment(attempt: Attempt) -> Iterator[None]:
    os.environ["RELET_TEST_MIDDLEWARE"] = attempt.job.id
    try:
        yield
    finally:
        del os.environ["RELET_TEST_MIDDLEWARE"]


@process
def add(a: int, b: int) -> int:
    return a + b


@process
async def add_slowly(attempt: Attempt, a: int, b: int) -> list[Any]:
    await asyncio.sleep(0.01)
    return [a + b, attempt.version, attempt.job.attempt, attempt.tenant]


@process
def pid() -> int:
    return os.getpid()


@process
def middleware() -> str | None:
    return os.environ.get("RELET_TEST_MIDDLEWARE")


@process
def shout(text: str) -> str:
    """Writes to where a protocol might be."""
    print(text, flush=True)
    print(text, file=sys.stderr, flush=True)
    os.write(1, text.encode() + b"\n")
    subprocess.run(["echo", text], check=True)
    return sys.stdin.read()


@process
def end(how: str) -> Any:
    if how == "exit":
        os._exit(7)
    if how == "segfault":
        os.kill(os.getpid(), 11)
    if how == "system_exit":
        raise SystemExit(3)
    if how == "snooze":
        raise Snooze(600)
    if how == "retry":
        raise Retry("later", delay=600)
    if how == "fail":
        raise Fail("never")
    if how == "nan":
        return float("nan")
    raise ValueError("no")


@process
def wait_for_abort(attempt: Attempt, place: str) -> str:
    """Waits until it is told to stop, and notes why; if it was told so before, it returns at once."""
    if Path(f"{place}.why").exists():
        return "resumed"
    Path(place).write_text("started")
    try:
        while True:
            attempt.check()
            time.sleep(0.01)
    except Aborted as aborted:
        Path(f"{place}.why").write_text(aborted.reason)
        raise


@process
def sleep_through(place: str) -> None:
    """Blocks in one call, after it has started a process."""
    sleeper = subprocess.Popen(["sleep", "60"])
    Path(place).write_text(f"{os.getpid()} {sleeper.pid}")
    while True:
        try:
            sleeper.wait()
        except BaseException:  # noqa: S112 (that is what it is here for)
            continue


@process
def watch_deadline(attempt: Attempt, times: int) -> int:
    """Returns when its deadline has moved that often."""
    seen = {attempt.deadline}
    while len(seen) <= times:
        attempt.check()
        seen.add(attempt.deadline)
        time.sleep(0.01)
    return len(seen)


@process
def report_progress(attempt: Attempt, place: str) -> str:
    attempt.progress(1, 2, "half")
    while not Path(place).exists():
        time.sleep(0.01)
    return "done"


@app.task(process=True, fail_on=LookupError)
def refuse() -> None:
    raise KeyError("missing")


def register(other: App, **options: Any) -> None:
    """The same tasks, of another app."""
    for task in app.tasks.values():
        other.task(name=task.name, process=True, **options)(task.__wrapped__)
