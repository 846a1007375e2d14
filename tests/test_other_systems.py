"""Client and worker without what Windows lacks: modules, fork, process groups, signals and poll are removed.

Each program is a new process whose interpreter runs `LESS` before everything else. SIGTERM stands for the signals that
Windows has; what no Linux can show is that Ctrl-Break arrives there.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from relet import App, State
from tests.conftest import PG_KINDS, SERVERS
from tests.databases import Database
from tests.waiting import Pause

LESS = """
import os, select, signal, sys

for name in ("fcntl", "resource", "termios", "tty", "pty", "pwd", "grp"):
    sys.modules[name] = None
ABSENT = {
    os: "fork forkpty register_at_fork killpg getpgrp setsid getuid pread set_blocking openpty",
    select: "poll epoll",
    signal: "SIGKILL SIGCHLD SIGUSR1 SIGHUP SIGSTOP SIGCONT SIGWINCH SIGALRM pthread_kill pthread_sigmask setitimer",
}
for module, names in ABSENT.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
"""

SHOP = """
import os
import time
from relet import App, Attempt, Retry

app = App(os.environ["RELET_URL"], schema=os.environ["RELET_SCHEMA"])


@app.task
def plain(number: int) -> int:
    return number + 1


@app.task
async def on_loop(number: int) -> int:
    return number + 2


@app.task
def in_steps(attempt: Attempt) -> str:
    first = attempt.step("first", lambda: "once")
    if attempt.job.attempt == 1:
        raise Retry("again", delay=0)
    return first


@app.task
def slow() -> str:
    time.sleep(1)
    return "done"


if __name__ == "__main__":
    from relet import Worker

    app.client.migrate()
    job = plain.enqueue(0)
    Worker(app).run_sync(until_idle=True)
    jobs = [job, plain.enqueue(1), on_loop.enqueue(1), in_steps.enqueue()]
    with app.worker(poll_interval=0.1):
        print([app.client.result(job) for job in jobs])
"""


class System:
    """A folder with a program, and an interpreter that lacks what Windows lacks."""

    def __init__(self, folder: Path, database: Database) -> None:
        self.folder = folder
        (folder / "less").mkdir()
        (folder / "less" / "sitecustomize.py").write_text(LESS)
        (folder / "shop.py").write_text(SHOP)
        self._environment = {**os.environ, "PYTHONPATH": f"{folder}/less"}
        self._environment |= {"RELET_URL": database.url, "RELET_SCHEMA": database.schema}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, *arguments], cwd=self.folder, env=self._environment, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, *arguments: str) -> tuple[int, str]:
        """The exit code and the output."""
        with self.start(*arguments) as process:
            output, errors = process.communicate(timeout=60)
        return process.returncode, errors + output


@pytest.fixture(params=["sqlite", *PG_KINDS])
def database(request: pytest.FixtureRequest, tmp_path: Path, schema: str) -> Iterator[Database]:
    if request.param == "sqlite":
        yield Database("sqlite", f"sqlite:///{tmp_path}/jobs.db", "relet")
    else:
        server = request.config.stash[SERVERS].get(request.param)
        yield Database(request.param, server.dsn, schema)
        server.drop_schema(schema)


@pytest.fixture
def system(tmp_path: Path, database: Database) -> System:
    return System(tmp_path, database)


def test_the_interpreter_lacks_the_modules_that_windows_lacks(system: System) -> None:
    assert system.run("-c", "import fcntl")[0] == 1
    assert system.run("-c", "import os; os.fork()")[0] == 1


def test_a_program_enqueues_and_runs_jobs(system: System) -> None:
    code, output = system.run("shop.py")
    assert (code, output.splitlines()[-1:]) == (0, ["[1, 2, 3, 'once']"]), output


def test_a_worker_by_command_runs_jobs_and_ends_in_order_on_a_signal(system: System, database: Database) -> None:
    with database.app() as app:
        app.client.migrate()
        code, job = system.run("-m", "relet", "enqueue", "shop:app", "slow")
        assert code == 0, job
        with system.start("-m", "relet", "worker", "shop:app", "--poll-interval", "0.1") as worker:
            pause, give_up = Pause(), time.monotonic() + 60
            while state_of(app, job.strip()) is not State.RUNNING:
                assert time.monotonic() < give_up
                pause()
            worker.send_signal(signal.SIGTERM)
            _, errors = worker.communicate(timeout=60)
        assert worker.returncode == 0, errors
        assert state_of(app, job.strip()) is State.SUCCEEDED


def test_commands_that_look_and_steer_work(system: System) -> None:
    assert system.run("-m", "relet", "migrate", "shop:app")[0] == 0
    _, job = system.run("-m", "relet", "enqueue", "shop:app", "slow")
    for command in ("jobs", "queues", "workers", "doctor", "top"):
        code, output = system.run("-m", "relet", command, "shop:app")
        assert "Traceback" not in output
        assert code == 0, output
    assert system.run("-m", "relet", "jobs", "shop:app", "cancel", job.strip())[0] == 0


REFUSED = {
    "process": "app.task(process=True)(plain.__wrapped__); Worker(app)",
    "memory": "Worker(app, max_rss=100)",
}


@pytest.mark.parametrize(("what", "error"), [("process", "has process=True, which needs"), ("memory", "max_rss needs")])
def test_options_that_the_system_does_not_support_are_refused_by_the_worker(
    system: System, what: str, error: str
) -> None:
    imports = "from relet import Worker; from shop import app, plain"
    code, output = system.run("-c", f"{imports}; {REFUSED[what]}".replace("app.task(", "app.task(name='other', "))
    assert code == 1
    assert error in output
    assert "Linux or macOS" in output


@pytest.mark.parametrize(
    "arguments",
    [["worker", "shop:app", "--processes", "2"], ["worker", "shop:app", "--max-jobs", "5"],
     ["worker", "shop:app", "--reload"], ["torture"]],
    ids=lambda arguments: " ".join(arguments),
)  # fmt: skip
def test_options_that_the_system_does_not_support_are_refused_by_the_command(
    system: System, arguments: list[str]
) -> None:
    code, output = system.run("-m", "relet", *arguments)
    assert code in (1, 2)
    assert "need" in output
    assert "Linux or macOS" in output
    assert "Traceback" not in output


def state_of(app: App, job: str) -> State:
    found = app.client.get(job)
    assert found is not None
    return found.state
