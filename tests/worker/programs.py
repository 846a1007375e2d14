"""Worker programs: `python -m relet worker shop:app` in a separate directory, as a user starts it.

A `Shop` is that directory: a small app in `shop.py`, a file in which its handlers note what they do, and the programs
that were started there, each with its log. Whatever a test leaves running is killed when the test is over.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from relet import App, Client, Job
from relet._worker.signals import AT_ONCE
from tests import forks
from tests.conftest import LOCAL_PG_KINDS, SERVERS
from tests.servers import PrivateServer, Server
from tests.waiting import Pause

TIMEOUT = 20.0

APP = """
import asyncio, logging, os, time
from pathlib import Path
from relet import Aborted, App, Attempt, events

app = App({url!r}, schema={schema!r})
log = logging.getLogger("shop")
HERE = Path(__file__).parent
GO = HERE / "go"


def note(*words: object) -> None:
    file = os.open(HERE / "notes", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.write(file, (" ".join(map(str, (*words, os.getpid()))) + "\\n").encode())
    os.close(file)


for kind in (events.StoreDown, events.StoreUp, events.WorkerStarted, events.WorkerStopped):
    app.on(kind)(lambda event: note(type(event).__name__))
app.on(events.Undone)(lambda event: note("Undone", event.job_id, event.state))
app.on(events.LeaseLost)(lambda event: note("LeaseLost", event.job_id))


@app.task
async def quick(attempt: Attempt, seconds: float = 0.0) -> None:
    note("start", attempt.job.id)
    await asyncio.sleep(seconds)


@app.task
async def hold(attempt: Attempt) -> None:
    note("start", attempt.job.id)
    try:
        while not GO.exists():
            await asyncio.sleep(0.02)
    except BaseException as error:
        note("stopped", attempt.job.id, attempt.aborted, type(error).__name__)
        raise
    note("end", attempt.job.id)


@app.task
def hold_in_thread(attempt: Attempt) -> None:
    note("start", attempt.job.id)
    try:
        while not GO.exists():
            attempt.check()
            time.sleep(0.02)
    except BaseException as error:
        note("stopped", attempt.job.id, attempt.aborted, type(error).__name__)
        raise
    note("end", attempt.job.id)


@app.task(process=True)
def hold_in_process(attempt: Attempt) -> None:
    hold_in_thread(attempt)


@app.task
def hold_without_asking(attempt: Attempt) -> None:
    note("start", attempt.job.id)
    while not GO.exists():
        time.sleep(0.02)
    note("end", attempt.job.id)


@app.task(process=True)
def hold_in_process_without_asking(attempt: Attempt) -> None:
    hold_without_asking(attempt)


@app.task(on_shutdown="pause")
async def hold_or_pause(attempt: Attempt) -> None:
    await hold(attempt)


@app.task
def stuck(attempt: Attempt) -> None:
    note("start", attempt.job.id)
    time.sleep(600)


@app.task(process=True)
def stuck_in_process(attempt: Attempt) -> None:
    stuck(attempt)


@app.task(timeout=0.3, max_attempts=1)
def stuck_beyond_its_timeout(attempt: Attempt) -> None:
    stuck(attempt)


@app.task
async def block_the_loop(attempt: Attempt) -> None:
    stuck(attempt)


@app.task
async def deaf(attempt: Attempt) -> None:
    note("start", attempt.job.id)
    while True:
        try:
            await asyncio.sleep(0.02)
        except BaseException:
            pass


@app.task
def deaf_in_thread(attempt: Attempt) -> None:
    note("start", attempt.job.id)
    while True:
        try:
            time.sleep(0.02)
            attempt.check()
        except BaseException:
            pass


@app.task(process=True)
def deaf_in_process(attempt: Attempt) -> None:
    deaf_in_thread(attempt)


HOARD = []


@app.task
def hoard(attempt: Attempt, mib: int) -> None:
    note("start", attempt.job.id)
    HOARD.append(b"x" * (mib * 1024 * 1024))


@app.task
def log_text(attempt: Attempt, text: str) -> None:
    log.warning("heard: %s", text)


@app.task
async def log_text_on_loop(attempt: Attempt, text: str) -> None:
    log_text(attempt, text)


@app.task(process=True)
def log_text_in_process(attempt: Attempt, text: str) -> None:
    log_text(attempt, text)
"""


@dataclass
class Program:
    """One `relet ...`, started and perhaps over."""

    process: subprocess.Popen[bytes]
    output: Path
    sent: float = 0.0  # when the last signal was

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def log(self) -> str:
        return self.output.read_text()

    @property
    def lines(self) -> list[str]:
        return self.log.splitlines()

    @property
    def runs(self) -> bool:
        return self.process.poll() is None

    @property
    def children(self) -> list[int]:
        """The processes that a supervisor has started, in order."""
        return [int(pid) for pid in re.findall(r"Started worker process \d+ \(pid (\d+)\)", self.log)]

    def says(self, text: str, times: int = 1) -> Program:
        """Wait until its log has said so."""
        until(lambda: self.log.count(text) >= times, lambda: f"{text!r} x {times} in the log:\n{self.log}")
        return self

    def send(self, number: int, times: int = 1) -> Program:
        """Signals, each of them once the one before was heard, and not so soon that it would count as the same."""
        for _ in range(times):
            time.sleep(max(self.sent + AT_ONCE + 0.05 - time.monotonic(), 0))
            counted = self.log.count("SIG")
            self.process.send_signal(number)
            if times > 1:
                until(lambda counted=counted: self.log.count("SIG") > counted or not self.runs, lambda: self.log)  # type: ignore[misc]
            self.sent = time.monotonic()
        return self

    def code(self, within: float = TIMEOUT) -> int:
        """How it ended."""
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it has not ended within {within:g} s:\n{self.log}") from None

    def kill(self) -> None:
        for pid in [*self.children, self.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


@dataclass
class Shop:
    """A directory with an app, and its programs."""

    place: Path
    url: str
    schema: str = "relet"
    programs: list[Program] = field(default_factory=list)

    def __post_init__(self) -> None:
        text = APP.format(url=self.url, schema=self.schema)
        (self.place / "shop.py").write_text(text)
        module = ModuleType("shop")
        module.__file__ = str(self.place / "shop.py")
        exec(compile(text, module.__file__, "exec"), vars(module))
        self.app: App = vars(module)["app"]
        self.client: Client = self.app.client

    def start(self, *options: str, ready: bool = True) -> Program:
        """A worker; waits until it works, or its supervisor has started the first process."""
        program = self.run("worker", "shop:app", "--poll-interval", "0.1", *options)
        if ready:
            program.says("the worker processes" if "--processes" in options else " slots, ")
        return program

    def run(self, *arguments: str, url: str | None = None) -> Program:
        """`relet` with these arguments."""
        output = self.place / f"log{len(self.programs)}"
        if url is not None:
            (self.place / "shop.py").write_text(APP.format(url=url, schema=self.schema))
        with output.open("wb") as log:
            process = forks.Popen(
                [sys.executable, "-m", "relet", *arguments],
                cwd=self.place,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={name: value for name, value in os.environ.items() if name != "RELET_URL"},
            )
        self.programs.append(Program(process, output))
        return self.programs[-1]

    def enqueue(self, task: str, *args: Any, number: int = 1) -> list[Job[Any]]:
        return self.client.enqueue_many([self.app.tasks[task].draft(*args) for _ in range(number)])

    def one(self, task: str, *args: Any) -> Job[Any]:
        return self.enqueue(task, *args)[0]

    def job(self, job: Job[Any]) -> Job[Any]:
        found = self.client.get(job)
        assert found is not None
        return found

    def go(self) -> None:
        """Let all handlers that wait end."""
        (self.place / "go").touch()

    def notes(self, *words: object) -> list[list[str]]:
        """The notes that begin so; the last word is the id of the process."""
        file = self.place / "notes"
        lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
        given = [str(word) for word in words]
        return [line for line in lines if line[: len(given)] == given]

    def noted(self, *words: object, times: int = 1) -> list[list[str]]:
        """Wait until so many have noted this."""
        until(lambda: len(self.notes(*words)) >= times, lambda: f"{words} x {times} in {self.notes()}\n{self.logs}")
        return self.notes(*words)

    def started(self, *jobs: Job[Any]) -> None:
        """Wait until these jobs run."""
        for job in jobs:
            self.noted("start", job.id)

    def over(self, *states: str, within: float = TIMEOUT) -> None:
        """Wait until no job is in any other state than these."""
        until(lambda: not self._others(states), lambda: f"{self._others(states)}\n{self.logs}", within)

    def _others(self, states: tuple[str, ...]) -> list[tuple[str, str, str]]:
        return [(job.id, job.task, job.state) for job in self.client.jobs(limit=1000).jobs if job.state not in states]

    @property
    def logs(self) -> str:
        return "\n".join(program.log for program in self.programs)

    def close(self) -> None:
        for program in self.programs:
            program.kill()
        self.app.close()


@contextmanager
def a_shop(place: Path, url: str, schema: str = "relet") -> Iterator[Shop]:
    """A shop anywhere, with its schema made."""
    shop = Shop(place, url, schema)
    try:
        shop.client.migrate()
        yield shop
    finally:
        shop.close()


@pytest.fixture(scope="module", params=LOCAL_PG_KINDS)
def fragile_server(request: pytest.FixtureRequest) -> Iterator[PrivateServer]:
    """One PostgreSQL that the tests of a module may stop and kill, one after another."""
    with request.config.stash[SERVERS].private(request.param) as server:
        yield server


@pytest.fixture
def fragile_shop(fragile_server: PrivateServer, tmp_path: Path, schema: str) -> Iterator[Shop]:
    """A shop on a server that may be stopped; it is there again for the next test."""
    with ExitStack() as stack:
        stack.callback(fragile_server.start)
        yield stack.enter_context(a_shop(tmp_path, fragile_server.dsn, schema))


@pytest.fixture(params=LOCAL_PG_KINDS)
def pg_server(request: pytest.FixtureRequest) -> Server:
    """A PostgreSQL that others use as well."""
    return request.config.stash[SERVERS].get(request.param)


def until(holds: Callable[[], object], complaint: Callable[[], str], within: float = TIMEOUT) -> None:
    """Wait for something."""
    give_up, pause = time.monotonic() + within, Pause()
    while not holds():
        assert time.monotonic() < give_up, f"waited for {within:g} s: {complaint()}"
        pause()


def lives(pid: int) -> bool:
    """Whether a process is there. A zombie is not: it has ended, and its parent has not looked."""
    try:
        os.kill(pid, 0)
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


def gone(*pids: int, within: float = TIMEOUT) -> None:
    """Wait until these processes have ended."""
    until(lambda: not any(map(lives, pids)), lambda: f"{[pid for pid in pids if lives(pid)]} live", within)


def cpu_seconds(pid: int) -> float:
    """The processor time of a process until now; where the system does not tell, nothing."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
