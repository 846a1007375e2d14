"""Type checkers accept the code of users, and refuse each of these lines."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import relet

HERE = Path(__file__).parent
PACKAGES = Path(relet.__file__).parents[1]
CONSUMERS = ["consumer.py", "django_consumer.py"]

#: A line, and the codes of its error in mypy and pyright.
REFUSED = [
    ("greet.enqueue(5)", "arg-type", "reportArgumentType"),
    ("greet.enqueue()", "call-arg", "reportCallIssue"),
    ('greet.enqueue("Ada", "Bob")', "call-arg", "reportCallIssue"),
    ('greet.enqueue(nome="Ada")', "call-arg", "reportCallIssue"),
    ("greet.draft(5)", "arg-type", "reportArgumentType"),
    ("await greet.aenqueue(5)", "arg-type", "reportArgumentType"),
    ('charge.enqueue("acct-7", "500")', "arg-type", "reportArgumentType"),
    ('charge.enqueue(attempt, "acct-7", 500)', "call-arg", "reportCallIssue"),
    ('charge.draft(attempt, "acct-7")', "arg-type", "reportArgumentType"),
    ("tidy.enqueue(1)", "call-arg", "reportCallIssue"),
    ("collect.enqueue(1)", "arg-type", "reportArgumentType"),
    ('charge.using(priority=1).enqueue("acct-7", "500")', "arg-type", "reportArgumentType"),
    ("await charge.using(priority=1).using(delay=5).aenqueue(500)", "call-arg", "reportCallIssue"),
    ('charge.using(priority="high")', "arg-type", "reportArgumentType"),
    ("charge.using(run_at=60)", "arg-type", "reportArgumentType"),
    ('charge.using(on_expired="explode")', "arg-type", "reportArgumentType"),
    ("charge.using(depends_on=[5])", "list-item", "reportArgumentType"),
    ('charge.using(colour="red")', "call-arg", "reportCallIssue"),
    ('app.task(max_attempts="5")', "call-overload", "reportArgumentType"),
    ('app.task(on_doubt="explode")', "call-overload", "reportArgumentType"),
    ('app.task(colour="red")', "call-overload", "reportCallIssue"),
    ('charge("acct-7", 500)', "arg-type", "reportCallIssue"),
    ('await charge(attempt, "acct-7", 500)', "misc", "reportGeneralTypeIssues"),
    ('text: str = greet("Ada")', "assignment", "reportAssignmentType"),
    ('job: Job[int] = greet.enqueue("Ada")', "assignment", "reportAssignmentType"),
    ('number: int = app.client.result(greet.enqueue("Ada"))', "assignment", "reportAssignmentType"),
    ('app.client.result(greet.draft("Ada"))', "arg-type", "reportArgumentType"),
    ("app.client.enqueue_many([greet])", "arg-type", "reportArgumentType"),
    ("numbers: list[Job[int]] = app.client.enqueue_many([greet.draft('Ada')])", "list-item", "reportAssignmentType"),
    ("task: Task[[int], str] = greet", "assignment", "reportAssignmentType"),
    ("task2: Task[[str], int] = greet", "assignment", "reportAssignmentType"),
    ("attempt.continue_with(refund.draft('a')).upper()", "attr-defined", "reportAttributeAccessIssue"),
    ('attempt.step("count", counted, 5)', "arg-type", "reportArgumentType"),
    ('attempt.step("count", counted)', "call-arg", "reportCallIssue"),
    ('name: str = attempt.step("count", counted, "word")', "assignment", "reportAssignmentType"),
    ("word: str = attempt.dependency_result(refund)", "assignment", "reportAssignmentType"),
    ("attempt.wait_for('go', int).upper()", "attr-defined", "reportAttributeAccessIssue"),
    ('attempt.succeed("done")', "call-arg", "reportCallIssue"),
    ("post.enqueue(pool=Pool())", "call-arg", "reportCallIssue"),
    ("post.enqueue(5)", "arg-type", "reportArgumentType"),
    ('post.enqueue("ada", pool=5)', "arg-type", "reportArgumentType"),
    ("fetch.enqueue()", "call-arg", "reportCallIssue"),
    ('charge.using(replace="all")', "arg-type", "reportArgumentType"),
    ('greet.delay("Ada")', "attr-defined", "reportAttributeAccessIssue"),
    ('greet.using(priority=1).apply_async("Ada")', "attr-defined", "reportAttributeAccessIssue"),
    # tasks of Django
    ('add.enqueue("1")', "arg-type", "reportArgumentType"),
    ("await mail.aenqueue()", "call-arg", "reportCallIssue"),
    ('book.using(priority=1).enqueue(None, "acct-7")', "call-arg", "reportCallIssue"),
    ("add.using(retries=3)", "call-arg", "reportCallIssue"),
    ('add.using(run_after="now")', "arg-type", "reportArgumentType"),
]
HEADER = """\
from django_consumer import add, book, mail
from consumer import Pool, app, charge, collect, counted, fetch, greet, post, refund, tidy
from relet._attempts.attempt import Attempt
from relet._core.job import Job
from relet._tasks.task import Task

async def lines(attempt: Attempt) -> None:
"""

Found = dict[str, dict[int, set[str]]]  # by file and line


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that uses Relet, with a file that is right and a file that is not."""
    folder = tmp_path_factory.mktemp("project")
    for name in CONSUMERS:
        shutil.copy(HERE / name, folder)
    (folder / "refused.py").write_text(HEADER + "".join(f"    {line}\n" for line, _, _ in REFUSED))
    settings = {"typeCheckingMode": "strict", "pythonVersion": "3.11", "extraPaths": [str(PACKAGES)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    return folder


@pytest.fixture(scope="module")
def mypy(project: Path) -> Found:
    installed = "site-packages" in PACKAGES.parts  # there mypy looks anyway, and wants not to be told
    environment = os.environ | {"MYPYPATH": "" if installed else str(PACKAGES)}
    options = ["--strict", "--config-file=", "--cache-dir=cache", "--output=json"]
    lines = run(["mypy", *options, *CONSUMERS, "refused.py"], project, environment).splitlines()
    reports = [json.loads(line) for line in lines]
    return collected((r["file"], r["line"], r["code"] or "") for r in reports if r["severity"] == "error")


@pytest.fixture(scope="module")
def pyright(project: Path) -> Found:
    report = json.loads(run(["pyright", "--outputjson", "--pythonpath", sys.executable], project))
    return collected(
        (Path(r["file"]).name, r["range"]["start"]["line"] + 1, r.get("rule", "")) for r in report["generalDiagnostics"]
    )


def run(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> str:
    """The output of a checker. It exits with 1 when it finds something, with more when it could not look."""
    ended = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1, ended.stdout + ended.stderr
    return ended.stdout


def collected(reports: Any) -> Found:
    found: Found = defaultdict(lambda: defaultdict(set))
    for file, line, code in reports:
        found[file][line].add(code)
    return found


def refused_lines(column: int) -> dict[int, str]:
    first = HEADER.count("\n") + 1
    return {first + number: row[column] for number, row in enumerate(REFUSED)}


def test_mypy_accepts_the_code_of_users(mypy: Found) -> None:
    assert {name: mypy[name] for name in CONSUMERS} == {name: {} for name in CONSUMERS}


@pytest.mark.long
def test_pyright_accepts_the_code_of_users(pyright: Found) -> None:
    assert {name: pyright[name] for name in CONSUMERS} == {name: {} for name in CONSUMERS}


def test_mypy_refuses_each_wrong_line_for_the_right_reason(mypy: Found) -> None:
    expected = refused_lines(1)
    assert {line: codes & {expected.get(line, "")} for line, codes in mypy["refused.py"].items()} == {
        line: {code} for line, code in expected.items()
    }


@pytest.mark.long
def test_pyright_refuses_each_wrong_line_for_the_right_reason(pyright: Found) -> None:
    expected = refused_lines(2)
    assert {line: codes & {expected.get(line, "")} for line, codes in pyright["refused.py"].items()} == {
        line: {code} for line, code in expected.items()
    }


def test_the_consumer_also_runs() -> None:
    from tests.typing import consumer

    assert set(consumer.app.tasks) >= {"greet", "charge", "ship", "tidy-up", "bill", "collect", "refund"}
    assert (
        consumer.charge.using(target="acct-7").draft("acct-7", 500).payload_json == '{"account":"acct-7","cents":500}'
    )


def test_the_samples_of_web_frameworks_also_run() -> None:
    from tests.typing import frameworks

    job = frameworks.flask.test_client().post("/greetings/Ada").text
    found = frameworks.queue.client.get(job)
    assert found is not None
    assert found.payload == {"name": "Ada"}
    frameworks.queue.close()
