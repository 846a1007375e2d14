"""Attempts in child processes (`process=True`)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from relet import App, InvalidInput, Job, State
from relet._core.job import Progress
from relet._worker import Worker
from tests.worker import child_tasks
from tests.worker.working import error_of, over, until, working


@pytest.fixture
def child_app() -> Iterator[App]:
    app = App("sqlite:///:memory:")
    child_tasks.register(app)
    yield app
    app.close()


def enqueue(app: App, name: str, *args: Any, **options: Any) -> Job[Any]:
    return app.lookup(name).using(**options).enqueue(*args)


def result(app: App, name: str, *args: Any, **options: Any) -> Any:
    return app.client.result(enqueue(app, name, *args, **options), timeout=20)


def is_alive(pid: int) -> bool:
    try:
        return "zombie" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.mark.long
def test_results_of_functions_that_run_in_processes(app: App) -> None:
    child_tasks.register(app)
    with working(app, concurrency=1):
        assert result(app, "add", 1, 2) == 3
        assert result(app, "add_slowly", 1, 2) == [3, 1, 1, None]


def test_one_child_serves_many_jobs_one_at_a_time(child_app: App) -> None:
    with working(child_app, concurrency=1):
        pids = {result(child_app, "pid") for _ in range(10)}
    assert len(pids) == 1
    assert pids != {os.getpid()}
    until(lambda: not is_alive(*pids), "children end with their worker")


@pytest.mark.long
def test_there_are_no_more_children_than_slots(child_app: App) -> None:
    with working(child_app, concurrency=2):
        jobs = child_app.client.enqueue_many([child_app.lookup("pid").draft() for _ in range(20)])
        pids = {child_app.client.result(job, timeout=20) for job in jobs}
    assert 1 <= len(pids) <= 2


@pytest.mark.long
def test_every_way_to_end_is_the_same_as_in_a_thread(child_app: App) -> None:
    with working(child_app, concurrency=1):
        ends = {how: enqueue(child_app, "end", how) for how in ("fail", "nan", "snooze", "retry")}
        ends |= {how: enqueue(child_app, "end", how, max_attempts=1) for how in ("raise", "system_exit")}
        over(child_app, ends["fail"], ends["nan"], ends["raise"], ends["system_exit"])
        until(lambda: all(child_app.client.get(ends[how]).version for how in ("snooze", "retry")))  # type: ignore[union-attr]
        until(lambda: not child_app.client.count(state="running"))
    found = {how: child_app.client.get(job) for how, job in ends.items()}
    shown = {how: (job.state, job.attempt) for how, job in found.items() if job}
    assert shown == {
        "fail": (State.FAILED, 1),
        "nan": (State.FAILED, 1),
        "raise": (State.FAILED, 1),
        "system_exit": (State.FAILED, 1),
        "snooze": (State.PENDING, 0),
        "retry": (State.PENDING, 1),
    }
    error = found["raise"].error  # type: ignore[union-attr]
    assert error is not None
    assert error.startswith("ValueError: no\n")
    assert "in end" in error
    assert "relet/_worker" not in error
    assert "cannot be stored" in (found["nan"].error or "")  # type: ignore[union-attr]


@pytest.mark.parametrize(("how", "cause"), [("exit", "exited with code 7"), ("segfault", "was killed by SIGSEGV")])
def test_a_child_that_dies_is_replaced_and_costs_its_job_an_attempt(child_app: App, how: str, cause: str) -> None:
    with working(child_app, concurrency=1):
        before = result(child_app, "pid")
        job = enqueue(child_app, "end", how, max_attempts=1)
        assert error_of(child_app, job) == f"worker lost: its process {cause}"
        assert result(child_app, "pid") != before


@pytest.mark.long
def test_the_output_of_handlers_does_not_break_the_protocol(child_app: App, capfd: pytest.CaptureFixture[str]) -> None:
    with working(child_app, concurrency=1):
        for text in ("hello", '{"kind": "Succeeded", "outcome": {}}', "", "\0\n{"[:2]):
            assert result(child_app, "shout", text.replace("\0", "?")) == "", "and there is nothing to read"
    assert '{"kind": "Succeeded"' in capfd.readouterr().out


@pytest.mark.long
def test_middlewares_are_in_the_child_too(child_app: App) -> None:
    with working(child_app, concurrency=1):
        job = enqueue(child_app, "middleware")
        assert child_app.client.result(job, timeout=20) == job.id


@pytest.mark.long
def test_progress_and_renewals_pass_between_worker_and_child(memory_app: App, tmp_path: Path) -> None:
    app = memory_app
    child_tasks.register(app, lease=0.6)
    with working(app, concurrency=2):
        moved = enqueue(app, "watch_deadline", 3)
        job = enqueue(app, "report_progress", str(tmp_path / "go_on"))
        until(lambda: app.client.get(job).progress == Progress(1, 2, "half"))  # type: ignore[union-attr]
        (tmp_path / "go_on").touch()
        assert app.client.result(job, timeout=20) == "done"
        assert app.client.result(moved, timeout=20) == 4


def test_a_timeout_kills_the_child_with_all_that_it_started(child_app: App, tmp_path: Path) -> None:
    place = tmp_path / "pids"
    with working(child_app, concurrency=1):
        job = enqueue(child_app, "sleep_through", str(place), timeout=1.5, max_attempts=1)
        until(lambda: place.exists() and len(place.read_text().split()) == 2)
        pids = [int(pid) for pid in place.read_text().split()]
        assert error_of(child_app, job) == "timed out after 1.5 s"
        until(lambda: not any(is_alive(pid) for pid in pids))
        assert result(child_app, "add", 2, 2) == 4, "there is a new one"


def test_an_abort_is_raised_in_the_handler_before_it_is_killed(child_app: App, tmp_path: Path) -> None:
    place = tmp_path / "note"
    with working(child_app, concurrency=1, lease=30.0):
        job = enqueue(child_app, "wait_for_abort", str(place), timeout=1.0, max_attempts=1)
        assert error_of(child_app, job) == "timed out after 1 s"
        until(lambda: Path(f"{place}.why").exists())
    assert Path(f"{place}.why").read_text() == "timeout"


def test_a_worker_that_stops_takes_its_children_along(child_app: App, tmp_path: Path) -> None:
    place = tmp_path / "pids"
    with working(child_app, concurrency=1, shutdown_timeout=0.0):
        job = enqueue(child_app, "sleep_through", str(place))
        until(lambda: place.exists() and len(place.read_text().split()) == 2)
    pids = [int(pid) for pid in place.read_text().split()]
    until(lambda: not any(is_alive(pid) for pid in pids))
    found = child_app.client.get(job)
    assert found is not None
    assert (found.state, found.attempt) == (State.QUEUED, 0), "given back"


def test_a_task_that_a_child_could_not_import_is_refused(memory_app: App) -> None:
    @memory_app.task(process=True)
    def local() -> None: ...

    with pytest.raises(InvalidInput, match="top level of a module"):
        Worker(memory_app)


@pytest.mark.long
def test_a_task_that_the_child_does_not_find_fails_with_a_sentence(memory_app: App) -> None:
    memory_app.task(name="unheard_of", process=True, max_attempts=1)(nowhere)
    with working(memory_app, concurrency=1):
        error = error_of(memory_app, memory_app.lookup("unheard_of").enqueue())
    assert "has no app with a task named unheard_of" in error


def nowhere() -> None:
    """Of no app in this module."""
