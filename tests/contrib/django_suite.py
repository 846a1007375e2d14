"""Run Django's own tests of its task framework with Relet as the backend.

`python -m tests.contrib.django_suite SOURCE URL`: SOURCE is an unpacked source distribution of Django. Its tests are
not changed. Before they are imported, the two backends that they use are replaced: DummyBackend, which stores, by one
that stores in Relet, and ImmediateBackend, which runs a task within `enqueue`, by one that stores it, runs a worker
until it is idle, and reads the result. As jobs live in the database, the tests are TransactionTestCases. Prints a JSON
object: test by test, "passed", or the error.
"""

from __future__ import annotations

import asyncio
import json
import sys
import unittest
from pathlib import Path
from typing import Any

import django
from django.conf import settings
from psycopg.conninfo import conninfo_to_dict


def database(url: str) -> dict[str, Any]:
    if url.startswith("sqlite:///"):
        name = url.removeprefix("sqlite:///")
        options = {"transaction_mode": "IMMEDIATE"}
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": name, "OPTIONS": options, "TEST": {"NAME": f"{name}.t"}}
    parts: dict[str, Any] = conninfo_to_dict(url)
    return {"ENGINE": "django.db.backends.postgresql", "NAME": parts.pop("dbname"), "OPTIONS": parts}


def configure(url: str) -> None:
    settings.configure(
        DATABASES={"default": database(url)},
        INSTALLED_APPS=["relet.contrib.django"],
        TASKS={"default": {"BACKEND": "relet.contrib.django.ReletBackend"}},
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        USE_TZ=False,
    )
    django.setup()


def replace_backends() -> None:
    """Have `django.tasks.backends` and `django.test` give the tests others."""
    import django.test
    from django.db import connection
    from django.tasks.backends import dummy, immediate

    from relet import State, Worker
    from relet.contrib.django import ReletBackend
    from relet.contrib.django.results import result_of

    class StoringBackend(ReletBackend):
        """Has what tests use of DummyBackend. Async tests may not use Django's connection, on which no transaction is
        open then."""

        @property
        def results(self) -> list[Any]:
            client, own = self.app.client, connection if connection.in_atomic_block else None
            jobs = reversed(client.jobs(limit=50, connection=own).jobs)
            return [
                result_of(self._task_of(job), self.alias, job, client.attempts(job, connection=own)) for job in jobs
            ]

        def clear(self) -> None:
            self.app.client.bulk("delete", state=list(State))

    class RunningBackend(ReletBackend):
        """Runs tasks within `enqueue`, like ImmediateBackend, unless a transaction is open."""

        def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
            result = super().enqueue(task, args, kwargs)
            if not connection.in_atomic_block:
                asyncio.run(Worker(self.discover(), poll_interval=0.05).run(until_idle=True))
                result.refresh()
            return result

    django.test.SimpleTestCase = django.test.TransactionTestCase
    dummy.DummyBackend = StoringBackend
    immediate.ImmediateBackend = RunningBackend


class Recorder(unittest.TextTestResult):
    """Notes the end of each test."""

    found: dict[str, str] = {}  # noqa: RUF012

    def _note(self, test: unittest.TestCase, text: str) -> None:
        case = getattr(test, "test_case", test)  # of a subtest
        name = case.id().removeprefix("tasks.")
        if self.found.get(name, "passed") == "passed":
            self.found[name] = text

    def addSuccess(self, test: unittest.TestCase) -> None:
        super().addSuccess(test)
        self._note(test, "passed")

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        super().addError(test, err)
        self._note(test, f"{err[0].__name__}: {err[1]}")

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        super().addFailure(test, err)
        self._note(test, f"{err[0].__name__}: {err[1]}")

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._note(test, f"{err[0].__name__}: {err[1]}")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        super().addSkip(test, reason)
        self._note(test, f"skipped: {reason}")


def main(source: Path, url: str) -> None:
    configure(url)
    replace_backends()
    sys.path.insert(0, str(source / "tests"))
    from django.test.runner import DiscoverRunner

    class Runner(DiscoverRunner):  # type: ignore[misc]
        def get_resultclass(self) -> type[Recorder]:
            return Recorder

    Runner(verbosity=1, interactive=False).run_tests(["tasks"])
    print(json.dumps(Recorder.found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
