"""A fact is added where it is written, and nowhere else (CONTRIBUTING.md, "Where a fact is written"): the rest of a
copy of the package is left as it is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.databases import Database
from tests.packages import copy_package

ROOT = Path(__file__).parents[1]

#: By file, texts of the package, and what a developer would write after each of them.
Additions = Mapping[str, Mapping[str, str]]

START = """
import asyncio, io, json, sys
from contextlib import redirect_stdout, suppress

from relet import App
from relet._cli.main import main
from relet._core.job import Succeeded
from relet._web import create_app
from tests.harness import harness_of
from tests.store.test_migrate import sql
from tests.web.api_client import OPERATE, ApiClient

app = App(sys.argv[1], schema=sys.argv[2])
app.client.migrate()
sys.modules["adding"] = sys.modules["__main__"]  # the command line finds the app as adding:app

def command(*words):
    out = io.StringIO()
    with redirect_stdout(out), suppress(SystemExit):
        main(list(words))
    return out.getvalue()

@app.task
def work() -> None: ...

harness = harness_of(app)
"""


def add_and_run(folder: Path, additions: Additions, program: str, url: str, schema: str) -> None:
    """Add to a copy of the package, and run a program that uses it."""
    package = copy_package(folder, additions)
    for name, texts in additions.items():
        file = package / name
        file.write_text(_with_additions(file.read_text(), texts))
    (folder / "adding.py").write_text(f"{START}{program}\nprint('done')\n")
    command = [sys.executable, "adding.py", url, schema]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert ran.stdout == "done\n", ran.stdout + ran.stderr


def _with_additions(text: str, additions: Mapping[str, str]) -> str:
    for before, added in additions.items():
        assert text.count(before) == 1, before
        text = text.replace(before, before + added)
    return text


FILTER: Additions = {
    "_core/filters.py": {
        "FILTERS = {\n": '    "context": FilterField("context", "equals", "of context", "jobs of this context"),\n',
        "    state: AnyState | Sequence[AnyState] | None\n": "    context: str | None\n",
        "    created_to: float | None = None\n": "    context: str | None = None\n",
    }
}

USE_OF_FILTER = """
import msgspec
from relet._web.api import requests
from relet._web.pages import filters
from tests.web.conftest import ask as page_of

wanted, other = [app.client.enqueue(msgspec.structs.replace(work.draft(), context=one)) for one in "ab"]
assert [job.id for job in app.client.jobs(context="a").jobs] == [wanted.id]
assert app.client.count(context="b") == 1

listed = command("jobs", "adding:app", "list", "--context", "a")
assert wanted.id in listed and other.id not in listed, listed

query = msgspec.convert({"context": "a"}, requests.JobsQuery)
assert query.context == "a"
assert filters.arguments(filters.from_query({"context": "a"})) == {"context": "a"}
assert filters.in_words({"context": "a"}) == "jobs of context a"
_, html = page_of(app, "/jobs", "/jobs?context=a")
assert '<label>context<input type="search" name="context" value="a"' in html and other.id not in html, html

assert app.client.bulk("cancel", context="a").done == 1
"""


@pytest.mark.long("memory")
def test_a_filter_is_added_in_one_module(tmp_path: Path, database: Database) -> None:
    add_and_run(tmp_path, FILTER, USE_OF_FILTER, database.url, database.schema)


COLUMN: Additions = {
    "_store/migrations/0001.postgres.sql": {
        "    context           text,  -- context that the producer attached, as JSON\n": "    origin text,\n",
        "    context       text": ",\n    origin text",
        "worker, target, group_key, unique_key, context": ", origin",
    },
    "_store/migrations/0001.sqlite.sql": {
        "    context           text,  -- context that the producer attached, as JSON\n": "    origin text,\n",
        "    context       text,\n": "    origin text,\n",
        "worker, target, group_key, unique_key, context": ", origin",
    },
    "_store/migrations/0002.postgres.sql": {"worker, target, group_key, unique_key, context": ", origin"},
    "_store/migrations/0002.sqlite.sql": {"worker, target, group_key, unique_key, context": ", origin"},
    "_store/migrations/0004.postgres.sql": {"worker, target, group_key, unique_key, context": ", origin"},
    "_store/migrations/0004.sqlite.sql": {"worker, target, group_key, unique_key, context": ", origin"},
    "_core/job.py": {
        "    context: str | None = None  # trace context from the producer, as JSON text\n": (
            "    origin: str | None = None\n"
        ),
    },
}

USE_OF_COLUMN = """
def make():
    job = work.enqueue()
    assert job.origin is None
    sql(app, f"update {{schema}}jobs set origin = 'import' where id = '{job.id}'")
    return job

def check(job, state):
    found = app.client.get(job)
    assert (found.state, found.origin) == (state, "import"), found

job = make()
check(job, "queued")
harness.fail(*harness.claim(1))
check(job, "failed")
assert app.client.resume(job).origin == "import"
harness.promote_all()
(claimed,) = harness.claim(1)
check(job, "running")
harness.succeed(claimed)
check(job, "succeeded")

continued = make()
harness.end(*harness.claim(1), Succeeded("null", work.draft()))
check(continued, "succeeded")
app.client.cancel(app.client.chain(continued).last)

cancelled = make()
app.client.cancel(cancelled)
check(cancelled, "cancelled")

origins = {job.id: "import", continued.id: "import", cancelled.id: "import"}
listed = app.client.jobs(state=["succeeded", "cancelled"]).jobs
assert {job.id: job.origin for job in listed if job.origin} == origins

with asyncio.Runner() as runner:
    ask = ApiClient(runner, create_app(app, operate={"ann": OPERATE}))
    assert ask("GET", f"/jobs/{job.id}")["origin"] == "import"
    assert {one["id"]: one["origin"] for one in ask("GET", "/jobs")["jobs"] if one["origin"]} == origins
    assert "origin" in ask("GET", "/openapi.json")["components"]["schemas"]["JobOut"]["required"]

found = json.loads(command("jobs", "adding:app", "list", "--json"))["jobs"]
assert {one["id"]: one["origin"] for one in found if one["origin"]} == origins
assert json.loads(command("jobs", "adding:app", "show", job.id, "--json"))["job"]["origin"] == "import"
"""


@pytest.mark.long("sqlite")
@pytest.mark.every_store
def test_a_column_of_a_job_is_added_in_the_migration_and_in_job(tmp_path: Path, store_url: str, schema: str) -> None:
    add_and_run(tmp_path, COLUMN, USE_OF_COLUMN, store_url, schema)


VERB: Additions = {
    "_core/machine.py": {
        "    # verb: from, to, who may use it, a remark\n": (
            '    "requeue_later": _verb({PENDING, QUEUED}, {PENDING}, "anyone", "its time is an hour from now"),\n'
        ),
    },
    "_core/verbs.py": {
        "BulkVerb = Literal[": '"requeue_later", ',
        "    for verb in (\n": """
        Verb(
            name="requeue_later",
            label="Requeue later",
            summary="make a job wait for an hour",
            done="requeued",
            note="Waiting jobs are due in an hour.",
            event="Requeued",
        ),
""",
    },
    "events.py": {
        '    "Renewed",\n': '    "Requeued",\n',
        '    """The job was deleted."""\n': '\n\nclass Requeued(JobEvent, frozen=True):\n    """It was requeued."""\n',
    },
    "_store/flows/control.py": {
        "LOCK_TIMEOUT = chains.LOCK_TIMEOUT\n": """

def requeue_later(job_id: str) -> Flow[Job[Any]]:
    job = yield from _lock(job_id, "requeue_later")
    state, wait = State.PENDING, Wait.TIME
    yield from _change(Change(job.id, "requeue_later", state, job.attempt, job.losses, wait, 3600.0, job.holds))
    return (yield from _reload(job_id))
""",
    },
    "_client/client.py": {
        "for synchronous code. Safe to use from any thread, and after a fork.": """\"""

    def requeue_later(self, job: AnyJob, /) -> Job[Any]:
        \"""Make a job wait for an hour.\"""
        return self._act("requeue_later", job, control.requeue_later)

    ""\"""",
    },
    "_client/async_client.py": {
        "for async code. Safe to use from any event loop, and after a fork.": """\"""

    async def requeue_later(self, job: AnyJob, /) -> Job[Any]:
        return await write_in_thread(self._plain.requeue_later, job)

    ""\"""",
    },
}

USE_OF_VERB = """
import os, runpy
from relet import events
from relet.errors import InvalidTransition
from relet._web.pages import act
from tests.web.conftest import ask as page_of, view_of

received = []
app.on(events.Requeued)(received.append)

def waits(*jobs):
    return all(app.client.get(job).wait == "time" for job in jobs)

first = work.enqueue()
assert app.client.acting_as("ann").requeue_later(first).state == "pending"
assert [event.job_id for event in received] == [first.id]
assert waits(first)
assert [(one.who, one.what, one.subject) for one in app.client.audit().entries] == [("ann", "requeue_later", first.id)]

job = work.enqueue()
assert asyncio.run(app.aclient.requeue_later(job)).wait == "time"

running = work.enqueue()
harness.claim(1)
with suppress(InvalidTransition):
    app.client.requeue_later(running)
    raise AssertionError("a running job was requeued")

jobs = [work.enqueue() for _ in range(3)]
assert app.client.bulk("requeue_later", state="queued").done == 3
assert waits(*jobs)

first, *others = [work.enqueue() for _ in range(3)]
assert first.id in command("jobs", "adding:app", "requeue-later", first.id)
said = command("jobs", "adding:app", "requeue-later", "--state", "queued", "--yes")
assert said == "requeue-later: 2 done, 0 refused\\n", said
assert waits(first, *others)
help = command("jobs", "--help")
assert "requeue-later ID ...     make a job wait for an hour" in help, help
assert "Without IDs, requeue-later, resume" in help, help

first, second = work.enqueue(), work.enqueue()
with asyncio.Runner() as runner:
    ask = ApiClient(runner, create_app(app, operate={"ann": OPERATE}))
    assert ask("POST", f"/jobs/{first.id}/requeue-later")["wait"] == "time"
    assert ask("POST", "/jobs/bulk", {"action": "requeue_later", "filter": {"state": ["queued"]}})["done"] == 1
    about = ask("GET", "/openapi.json")["paths"]["/jobs/{id}/requeue-later"]["post"]
    assert (about["operationId"], about["summary"]) == ("requeue_later_job", "Make a job wait for an hour")
assert waits(first, second)

job = work.enqueue()
_, html = page_of(app, "/jobs/{id}", f"/jobs/{job.id}", {"id": job.id})
assert "/confirm/requeue-later?" in html and ">Requeue later</a>" in html, html
_, html = page_of(app, "/confirm/{action}", f"/confirm/requeue-later?job={job.id}", {"action": "requeue-later"})
assert "Requeue later: work" in html and "It is queued." in html and "Waiting jobs are due in an hour." in html, html
outcome = act(view_of(app), "requeue-later", {"job": [job.id]})
assert outcome.message == f"work {job.id[-8:]} is requeued.", outcome
assert waits(job)
_, html = page_of(app, "/jobs", "/jobs?state=pending")
assert 'name="action" value="requeue_later">Requeue later</button>' in html, html
address = "/confirm/bulk?action=requeue_later&state=pending"
_, html = page_of(app, "/confirm/{action}", address, {"action": "bulk"})
assert "Waiting jobs are due in an hour." in html, html
_, html = page_of(app, "/audit")
assert "<td>requeue later</td>" in html and f'href="/jobs/{job.id}"' in html, html

concepts = runpy.run_path(os.path.join(os.environ["PYTHONPATH"], "docs", "make_concepts.py"))
row = "| requeue_later | `pending`, `queued` | `pending` | anyone | its time is an hour from now |"
assert row in concepts["table"]().splitlines()
assert "queued --> pending: requeue_later" in concepts["diagram"]()
"""


@pytest.mark.long("memory")
def test_a_verb_is_added_in_its_tables_its_flow_and_the_clients(tmp_path: Path, database: Database) -> None:
    add_and_run(tmp_path, VERB, USE_OF_VERB, database.url, database.schema)


OUTCOME: Additions = {
    "_core/job.py": {
        '    LOST = "lost"\n': '    TIMED_OUT = "timed_out"\n',
        "return self in (self.SUCCEEDED, ": "self.TIMED_OUT, ",
    },
    "_core/machine.py": {'    "fail": AttemptOutcome.FAILED,\n': '    "fail": AttemptOutcome.TIMED_OUT,\n'},
}

USE_OF_OUTCOME = """
from dataclasses import replace
from relet._cli.top import poller, screen
from relet._store.flows import stats
from tests.web.conftest import ask as page_of

job = work.enqueue()
harness.fail(*harness.claim(1))
assert [one.outcome for one in app.client.attempts(job)] == ["timed_out"]
app._store().run(stats.add, [stats.Count("default", "timed_out", 3)])

with asyncio.Runner() as runner:
    ask = ApiClient(runner, create_app(app, operate={"ann": OPERATE}))
    assert [one["outcome"] for one in ask("GET", f"/jobs/{job.id}")["attempts"]] == ["timed_out"]
    metrics = ask.request("GET", "/metrics").text
assert 'relet_attempts_total{outcome="timed_out",queue="default"} 3.0\\n' in metrics, metrics

for path, address, parameters in (("/jobs/{id}", f"/jobs/{job.id}", {"id": job.id}), ("/", "/", {})):
    _, html = page_of(app, path, address, parameters)
    assert "timed_out" in html, html
assert "TIMED_OUT" in command("stats", "adding:app")
snapshot = replace(poller.SnapshotReader(app.client).read(), rates={"timed_out": 2.0})
assert "2.0/s timed_out" in str(screen._rates(snapshot))
"""


@pytest.mark.long("memory")
def test_an_outcome_of_an_attempt_is_added_in_job_and_machine(tmp_path: Path, database: Database) -> None:
    add_and_run(tmp_path, OUTCOME, USE_OF_OUTCOME, database.url, database.schema)
