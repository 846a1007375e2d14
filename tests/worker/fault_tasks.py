"""The app that the workers of the crash tests run: `python -m relet worker tests.worker.fault_tasks:app`.

Handlers note what happens to them in the file that TASKS_NOTES names, each line with one write, so that it survives a
kill -9. Tests import this module for the tasks alone: drafts can be enqueued by any client. TASKS_DIES makes a worker
kill itself at a stage of its work that no test could hit from outside; TASKS_GATE holds its heartbeat up.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from relet import Aborted, App, Attempt, Backoff, Retry, Snooze
from relet._store.postgres import PostgresStore
from relet._store.sqlite import SQLiteStore

BLINK = 0.02
LATER = 0.5
FOR_EVER = 600.0
SOON = Backoff(base=0.05, max=0.1)

app = App(schema=os.environ.get("TASKS_SCHEMA", "relet"))


def note(what: str, key: str, detail: Any = None) -> None:
    """Append one line, which a kill cannot tear."""
    file = os.open(os.environ["TASKS_NOTES"], os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    try:
        os.write(file, json.dumps([what, key, os.getpid(), detail, time.monotonic()]).encode() + b"\n")
    finally:
        os.close(file)


# Handlers that behave. What takes its time does so in the first attempt only: the next owner is done at once.


def _takes(attempt: Attempt, seconds: float) -> float:
    return seconds if attempt.job.attempt == 1 else 0.0


@app.task
def quick(key: str) -> int:
    note("start", key)
    return os.getpid()


@app.task
def work(attempt: Attempt, key: str, seconds: float) -> int:
    note("start", key)
    time.sleep(_takes(attempt, seconds))
    note("end", key)
    return os.getpid()


@app.task
async def nap(attempt: Attempt, key: str, seconds: float) -> int:
    note("start", key)
    try:
        await asyncio.sleep(_takes(attempt, seconds))
    except asyncio.CancelledError as error:
        note("cancelled", key, str(error))
        raise
    note("end", key)
    return os.getpid()


@app.task
def checking(attempt: Attempt, key: str, seconds: float) -> int:
    """Looks again and again whether it is still wanted; a doubt does not stop it."""
    note("start", key)
    end = time.monotonic() + _takes(attempt, seconds)
    while time.monotonic() < end:
        try:
            attempt.check()
        except Aborted as aborted:
            note("aborted", key, aborted.reason)
            if aborted.reason != "in_doubt":
                raise
        time.sleep(BLINK)
    note("end", key)
    return os.getpid()


@app.task
def second_time_lucky(attempt: Attempt, key: str) -> int:
    note("start", key)
    if attempt.job.attempt == 1:
        raise Retry(delay=LATER)
    return os.getpid()


@app.task
def snoozing(attempt: Attempt, key: str) -> int:
    note("start", key)
    if attempt.version == 1:
        raise Snooze(LATER)
    return os.getpid()


@app.task
def relay(attempt: Attempt, key: str) -> int:
    note("start", key)
    return attempt.continue_with(quick.draft(f"{key}, continued"))


# Handlers that go on where they were


def _step(key: str, number: int) -> int:
    note("step", key, number)
    return number


@app.task
def stepwise(attempt: Attempt, key: str) -> list[int]:
    """Kills its worker between two steps of its first attempt."""
    done = []
    for number in range(4):
        done.append(attempt.step(f"step {number}", _step, key, number))
        if attempt.version == 1 and number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
    return done


@app.task(backoff=SOON, process=True)
def caged_stepwise(attempt: Attempt, key: str) -> list[Any]:
    """Kills its own process, then sleeps, then waits for a word."""
    done: list[Any] = []
    for number in range(4):
        done.append(attempt.step(f"step {number}", _step, key, number))
        if attempt.version == 1 and number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
    attempt.sleep("nap", 0.05)
    return [*done, attempt.wait_for("word", str)]


# Handlers that do not


@app.task
async def block(key: str, seconds: float) -> int:
    """Blocks the event loop."""
    note("start", key)
    time.sleep(seconds)
    note("end", key)
    return os.getpid()


@app.task(max_attempts=1)
async def stubborn(key: str, until: str) -> str:
    """Catches everything, and goes on until there is a file of this name."""
    note("start", key)
    while not Path(until).exists():
        try:
            await asyncio.sleep(BLINK)
        except BaseException as error:
            note("caught", key, type(error).__name__)
    note("end", key)
    return "no longer wanted"


@app.task(max_attempts=1)
def deaf(key: str, until: str) -> str:
    """Never asks."""
    note("start", key)
    while not Path(until).exists():
        time.sleep(BLINK)
    note("end", key)
    return "no longer wanted"


def _die(manner: str) -> None:
    match manner:
        case "exit":
            os._exit(1)
        case "segfault":
            ctypes.string_at(0)
        case "oom":  # as the system does it to a process that takes too much
            os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(FOR_EVER)


@app.task(backoff=SOON)
def poison(key: str, manner: str) -> None:
    note("start", key)
    _die(manner)


@app.task(backoff=SOON, process=True)
def caged_poison(key: str, manner: str) -> None:
    note("start", key)
    _die(manner)


@app.task(process=True)
def parent(key: str) -> None:
    """Starts a child process."""
    child = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({FOR_EVER})"])
    note("start", key, child.pid)
    time.sleep(FOR_EVER)


@app.task(process=True)
def holding_the_gil(key: str) -> None:
    """No other thread of its process gets to run, as in a long call of C code."""
    note("start", key)
    ctypes.PyDLL(None).sleep(int(FOR_EVER))


# Failpoints


def _named(make: Callable[[], Any]) -> str:
    name = make.func.__name__ if isinstance(make, partial) else ""
    return {"settle_succeeded": "settle", "claim_plain": "claim"}.get(name, name)


def _kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    threading.Event().wait()


def _dying(stage: str, run_once: Callable[..., Any]) -> Callable[..., Any]:
    """Kills the process: once a claim that brought something is committed, or before or after the first settle."""

    def run_and_die(store: Any, make: Callable[[], Any], *how: Any) -> Any:
        flow = _named(make)
        if stage == f"before-{flow}":
            _kill_self()
        answer = run_once(store, make, *how)
        if stage == f"after-{flow}" and (flow != "claim" or answer[0].jobs):
            _kill_self()
        return answer

    return run_and_die


def _gated(gate: Path, run_once: Callable[..., Any]) -> Callable[..., Any]:
    """Holds renewals up while there is a file of this name."""

    def run_later(store: Any, make: Callable[[], Any], *how: Any) -> Any:
        while _named(make) in ("renew", "pending_requests") and gate.exists():
            time.sleep(BLINK)
        return run_once(store, make, *how)

    return run_later


def _install() -> None:
    for kind in (SQLiteStore, PostgresStore):
        if "TASKS_DIES" in os.environ:
            kind.run_once = _dying(os.environ["TASKS_DIES"], kind.run_once)  # type: ignore[method-assign]
        if "TASKS_GATE" in os.environ:
            kind.run_once = _gated(Path(os.environ["TASKS_GATE"]), kind.run_once)  # type: ignore[method-assign]


_install()
