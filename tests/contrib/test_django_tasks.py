"""The backend of Django's task framework."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError, connection, transaction
from django.test import override_settings
from psycopg import IsolationLevel

from relet import Backoff, Job, Worker
from tests import djangos
from tests.conftest import PG_KINDS, SERVERS
from tests.schemas import schemas_of
from tests.waiting import Pause

djangos.configure()

from relet.contrib.django import ReletBackend, ReletTask, framework, get_app
from relet.contrib.django.transactions import begun
from tests.contrib import sample_tasks

pytestmark = pytest.mark.every_store
STATUS = framework.TaskResultStatus


@contextmanager
def backends(schema: str, **options: Any) -> Iterator[None]:
    """The default backend with these options, and another one for the same tables."""
    path = "relet.contrib.django.ReletBackend"
    queues = ["default", "mail"]
    found = {"BACKEND": path, "QUEUES": queues, "OPTIONS": {"schema": schema, **options}}
    with override_settings(TASKS={"default": found, "other": found}):
        yield


@contextmanager
def backend_on(url: str, schema: str, **options: Any) -> Iterator[Any]:
    """The default backend, on Django's default database, which has these options."""
    with djangos.known_as("default", djangos.database_settings(url, **options)), backends(schema):
        with transaction.atomic():
            app = get_app()
            app.client.migrate(connection=connection)
        try:
            yield framework.task_backends["default"]
        finally:
            app.close()
            connection.close()


@pytest.fixture(params=["sqlite", *PG_KINDS])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """The default backend, on Django's default database."""
    if request.param == "sqlite":
        with backend_on(f"sqlite:///{tmp_path / 'django.db'}", "relet") as found:
            yield found
    else:
        server = request.config.stash[SERVERS].get(request.param)
        with schemas_of(request.config).one_of(server) as schema, backend_on(server.dsn, schema.name) as found:
            yield found


@dataclass
class Heard:
    """The signals that were sent, in order."""

    signals: list[tuple[str, str, str]] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)

    def names(self, result: Any) -> list[str]:
        return [name for name, id, _ in self.signals if id == result.id]


@pytest.fixture
def heard() -> Iterator[Heard]:
    found = Heard()
    signals = {name: getattr(framework, f"task_{name}") for name in ("enqueued", "started", "finished")}

    def listen(name: str) -> Any:
        def receive(sender: Any, task_result: Any, **kwargs: Any) -> None:
            assert sender is ReletBackend
            found.signals.append((name, task_result.id, str(task_result.status)))
            found.results.append(task_result)

        return receive

    receivers = {name: listen(name) for name in signals}
    for name, signal in signals.items():
        signal.connect(receivers[name], weak=False)
    yield found
    for name, signal in signals.items():
        signal.disconnect(receivers[name])


def work(backend: Any) -> None:
    """Run jobs until none is left."""
    asyncio.run(Worker(backend.discover(), poll_interval=0.05).run(until_idle=True))


def job_of(result: Any) -> Job[Any]:
    job = get_app().client.get(result.id)
    assert job is not None
    return job


def done(backend: Any, task: Any, *args: Any, **kwargs: Any) -> Any:
    """The result of a task that a worker has run."""
    result = task.enqueue(*args, **kwargs)
    work(backend)
    result.refresh()
    return result


def test_a_task_is_stored_run_and_read(backend: Any) -> None:
    add: Any = sample_tasks.add
    result = add.enqueue(3, right=4)
    assert (result.status, result.args, result.kwargs, result.attempts) == (STATUS.READY, [3], {"right": 4}, 0)
    assert (result.started_at, result.finished_at, result.backend) == (None, None, "default")
    with pytest.raises(ValueError, match="not finished"):
        _ = result.return_value
    assert sample_tasks.add.get_result(result.id).status == STATUS.READY
    work(backend)
    result.refresh()
    assert (result.status, result.return_value, result.attempts) == (STATUS.SUCCESSFUL, 7, 1)
    assert result.is_finished
    assert result.errors == []
    assert len(result.worker_ids) == 1
    assert result.enqueued_at <= result.started_at <= result.finished_at
    assert result.last_attempted_at == result.started_at
    assert result.started_at.tzinfo is not None


def test_async_tasks_and_async_callers(backend: Any) -> None:
    async def call() -> Any:
        result = await sample_tasks.add_later.aenqueue(5)
        found = await sample_tasks.add_later.aget_result(result.id)
        await Worker(await sync_to_async(backend.discover)(), poll_interval=0.05).run(until_idle=True)
        await found.arefresh()
        await sync_to_async(djangos.forget)("default")  # the thread that all such calls share has a connection, too
        return found

    assert asyncio.run(call()).return_value == 6


def test_a_context_tells_the_attempt_and_has_the_handle_of_relet(backend: Any) -> None:
    result = done(backend, sample_tasks.describe, "half")
    assert result.return_value == {"attempt": 1, "id": result.id, "status": "RUNNING", "errors": 0}
    assert done(backend, sample_tasks.describe_later).return_value == 1


def test_an_error_has_its_class_and_its_traceback(backend: Any) -> None:
    result = done(backend, sample_tasks.fail, "broken\n\nwith blank lines")
    (error,) = result.errors
    assert result.status == STATUS.FAILED
    assert result.finished_at is not None
    assert error.exception_class is ValueError
    assert error.traceback.startswith("Traceback (most recent call last):\n")
    assert error.traceback.rstrip().endswith("ValueError: broken\n\nwith blank lines")
    with pytest.raises(ValueError, match="Task failed"):
        _ = result.return_value


def test_an_exit_and_a_value_that_is_not_json_fail_a_task(backend: Any) -> None:
    assert done(backend, sample_tasks.leave).errors[0].exception_class is SystemExit
    assert done(backend, sample_tasks.unstorable).errors[0].exception_class is TypeError


def test_a_timeout_fails_a_task(backend: Any) -> None:
    sample_tasks.go_on.clear()
    try:
        result = done(backend, sample_tasks.hang)
    finally:
        sample_tasks.go_on.set()
    assert [one.exception_class for one in result.errors] == [TimeoutError]


def test_a_task_is_attempted_once_unless_it_says_otherwise(backend: Any) -> None:
    assert done(backend, sample_tasks.fail).attempts == 1
    assert job_of(sample_tasks.fail_thrice.enqueue()).max_attempts == 3
    assert job_of(sample_tasks.fail.using(max_attempts=5).enqueue()).max_attempts == 5
    assert job_of(sample_tasks.plain.enqueue(1)).max_attempts == 2


def test_a_retry_keeps_the_errors_of_earlier_attempts(backend: Any, heard: Heard) -> None:
    result = sample_tasks.succeed_at.using(backoff=Backoff(base=0.01, max=0.01)).enqueue(3)
    pause = Pause()
    while not job_of(result).state.over:
        work(backend)
        pause()
    result.refresh()
    assert (result.status, result.return_value, result.attempts) == (STATUS.SUCCESSFUL, 3, 3)
    assert [one.traceback.splitlines()[-1] for one in result.errors] == [
        "LookupError: attempt 1",
        "LookupError: attempt 2",
    ]
    assert heard.names(result) == ["enqueued", "started", "started", "started", "finished"]
    assert len(heard.results[-1].errors) == 2
    assert heard.results[-1].attempts == 3


def test_options_of_relet(backend: Any) -> None:
    first = sample_tasks.add.using(unique="order-7", target="acct-1", group="eu", tags=["red"], timeout=9).enqueue(1)
    again = sample_tasks.add.using(unique="order-7").enqueue(2)
    job = job_of(first)
    assert (again.id, again.args) == (first.id, [1])
    assert (job.target, job.group, job.tags, job.unique) == ("acct-1", "eu", ("red",), "order-7")
    later = sample_tasks.add.using(depends_on=[first]).enqueue(2)
    assert job_of(later).wait == "jobs"


def test_priority_queue_and_time(backend: Any) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    using = sample_tasks.add.using(priority=7, queue_name="mail", run_after=tomorrow)
    result = using.enqueue(1)
    job = job_of(result)
    assert (job.priority, job.queue, job.run_at) == (7, "mail", tomorrow)
    found = sample_tasks.add.get_result(result.id)
    assert (found.task.priority, found.task.queue_name) == (7, "mail")
    work(backend)
    found.refresh()
    assert found.status == STATUS.READY


def test_invalid_options_are_refused(backend: Any) -> None:
    add: Any = sample_tasks.add
    task_class: Any = ReletTask
    for options in ({"max_attempts": 0}, {"timeout": -1}, {"queue_name": "unknown"}, {"replace": True}):
        with pytest.raises(framework.InvalidTask):
            add.using(**options)
    with pytest.raises(TypeError, match="has no option retries"):
        add.using(retries=3)
    with pytest.raises(framework.InvalidTask, match="cannot be atomic"):
        task_class(func=sample_tasks.add_later.func, atomic=True)
    with pytest.raises(TypeError):
        add.enqueue(object())
    assert get_app().client.count() == 0


def test_a_rollback_leaves_nothing_and_a_transaction_sees_its_jobs(backend: Any, heard: Heard) -> None:
    assert get_app().client.count() == 0  # another connection, which now need not wait for a lock
    with transaction.atomic():
        result = sample_tasks.add.enqueue(1)
        assert sample_tasks.add.get_result(result.id).status == STATUS.READY
        result.refresh()
        assert get_app().client.get(result.id) is None
        assert heard.signals == []
        transaction.set_rollback(True)
    with pytest.raises(framework.TaskResultDoesNotExist):
        sample_tasks.add.get_result(result.id)
    assert heard.signals == []
    with transaction.atomic():
        result = sample_tasks.add.enqueue(1)
    assert heard.signals == [("enqueued", result.id, "READY")]


def test_unknown_results(backend: Any) -> None:
    for id in ("no id", "01930000-0000-7000-8000-000000000000", ""):
        with pytest.raises(framework.TaskResultDoesNotExist):
            backend.get_result(id)
    app = get_app()

    if "plain" not in app.tasks:

        @app.task(name="plain")
        def plain() -> None: ...

    with pytest.raises(framework.TaskResultDoesNotExist):
        backend.get_result(app.tasks["plain"].enqueue().id)


def test_signals_follow_the_commit(backend: Any, heard: Heard) -> None:
    good = done(backend, sample_tasks.add, 1)
    assert heard.signals == [
        ("enqueued", good.id, "READY"),
        ("started", good.id, "RUNNING"),
        ("finished", good.id, "SUCCESSFUL"),
    ]
    finished = heard.results[-1]
    assert finished.return_value == 2
    assert finished.finished_at is not None
    bad = done(backend, sample_tasks.fail)
    assert heard.names(bad) == ["enqueued", "started", "finished"]
    assert heard.results[-1].errors[0].exception_class is ValueError
    assert heard.results[-1].errors == bad.errors


def test_receivers_of_a_failure_get_the_exception(backend: Any, caplog: pytest.LogCaptureFixture) -> None:
    done(backend, sample_tasks.fail, "logged")
    (record,) = [one for one in caplog.records if one.levelname == "ERROR" and one.name.startswith("django")]
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "logged"


def test_a_receiver_sees_the_outcome_in_the_store(backend: Any) -> None:
    seen: list[str] = []

    def receive(task_result: Any, **kwargs: Any) -> None:
        seen.append(backend_of_thread().get_result(task_result.id).status)

    def backend_of_thread() -> Any:
        return framework.task_backends["default"]

    framework.task_finished.connect(receive, weak=False)
    try:
        done(backend, sample_tasks.add, 1)
    finally:
        framework.task_finished.disconnect(receive)
    assert seen == ["SUCCESSFUL"]


def test_a_cancelled_task_has_failed(backend: Any, heard: Heard) -> None:
    result = sample_tasks.add.enqueue(1)
    get_app().client.cancel(result.id)
    result.refresh()
    assert result.status == STATUS.FAILED
    assert result.errors[0].exception_class_path == "relet.errors.JobCancelled"
    assert heard.names(result) == ["enqueued", "finished"]


def test_an_atomic_task_commits_its_writes_with_its_completion(backend: Any, heard: Heard) -> None:
    with connection.cursor() as cursor:
        cursor.execute("drop table if exists bookings")
        cursor.execute("create table bookings (account text)")
    good = done(backend, sample_tasks.book, "ada")
    assert good.return_value == "ada"
    assert heard.results[-1].return_value == "ada"
    bad = done(backend, sample_tasks.book, "bob", refuse=True)
    assert bad.status == STATUS.FAILED
    with connection.cursor() as cursor:
        cursor.execute("select account from bookings")
        assert cursor.fetchall() == [("ada",)]
        cursor.execute("drop table bookings")


def test_transactions_that_relet_begins_are_at_read_committed(pg_url: str, schema: str) -> None:
    """Where others are serializable, which is as before afterwards."""
    with backend_on(pg_url, schema, isolation_level=IsolationLevel.SERIALIZABLE) as backend:
        assert done(backend, sample_tasks.isolation).return_value == "read committed"
        with begun("default"):
            assert sample_tasks.isolation_level() == "read committed"
        with transaction.atomic(), begun("default"):
            assert sample_tasks.isolation_level() == "serializable"


def test_a_connection_that_breaks_in_a_transaction_of_relet_raises_the_error_of_the_database(
    pg_url: str, schema: str
) -> None:
    with backend_on(pg_url, schema), connection.cursor() as cursor:
        with pytest.raises(OperationalError, match="terminat"), begun("default"):
            cursor.execute("select pg_terminate_backend(pg_backend_pid())")
        connection.close()
        sample_tasks.add.enqueue(1)


def test_a_backend_for_another_alias_reads_the_same_jobs(backend: Any) -> None:
    result = sample_tasks.add.using(backend="other").enqueue(1)
    assert result.backend == "other"
    assert sample_tasks.add.get_result(result.id).backend == "default"


def test_wrong_settings_are_found_by_checks(backend: Any, schema: str) -> None:
    assert backend.check() == []
    with backends(schema, pool=3):
        (found,) = framework.task_backends["default"].check()
        assert "has no option pool; there are database, schema" in found.msg
    with backends(schema, max_attempts=0):
        (found,) = framework.task_backends["default"].check()
        assert "max_attempts" in found.msg
