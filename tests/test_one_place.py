"""A fact is added in its homes alone (CONTRIBUTING.md, "Where a fact is written"): the rest of a copy of the package is
left as it is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import relet
from tests.homes import Home

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
from tests.homes import claim, fail, promote_all, settle, succeed
from tests.store.test_migrate import sql
from tests.web.asking import OPERATE, Asking

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
"""


def add_and_run(folder: Path, additions: Additions, program: str, url: str, schema: str) -> None:
    """Add to a copy of the package, and run a program that uses it."""
    source = Path(relet.__file__).parent
    shutil.copytree(source, folder / "relet", ignore=shutil.ignore_patterns("__pycache__"))
    for name, texts in additions.items():
        file = folder / "relet" / name
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
        "FILTERS = {\n": '    "group": FilterField("group_key", "equals", "of group", "jobs of this group"),\n',
        "    state: AnyState | Sequence[AnyState] | None\n": "    group: str | None\n",
        "    created_to: float | None = None\n": "    group: str | None = None\n",
    }
}

USE_OF_FILTER = """
import msgspec
from relet._web.api import requests
from relet._web.pages import filters

wanted = work.using(group="a").enqueue()
other = work.using(group="b").enqueue()
assert [job.id for job in app.client.jobs(group="a").jobs] == [wanted.id]
assert app.client.count(group="b") == 1

listed = command("jobs", "adding:app", "list", "--group", "a")
assert wanted.id in listed and other.id not in listed, listed

query = msgspec.convert({"group": "a"}, requests.JobsQuery)
assert query.group == "a"
assert filters.arguments(filters.from_query({"group": "a"})) == {"group": "a"}
assert filters.in_words({"group": "a"}) == "jobs of group a"

assert app.client.bulk("cancel", group="a").done == 1
"""


def test_a_filter_is_added_in_one_module(tmp_path: Path, home: Home) -> None:
    add_and_run(tmp_path, FILTER, USE_OF_FILTER, home.url, home.schema)


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
fail(app, *claim(app))
check(job, "failed")
assert app.client.resume(job).origin == "import"
promote_all(app)
(claimed,) = claim(app)
check(job, "running")
succeed(app, claimed)
check(job, "succeeded")

continued = make()
settle(app, *claim(app), Succeeded("null", work.draft()))
check(continued, "succeeded")
app.client.cancel(app.client.chain(continued).last)

cancelled = make()
app.client.cancel(cancelled)
check(cancelled, "cancelled")

origins = {job.id: "import", continued.id: "import", cancelled.id: "import"}
listed = app.client.jobs(state=["succeeded", "cancelled"]).jobs
assert {job.id: job.origin for job in listed if job.origin} == origins

with asyncio.Runner() as runner:
    ask = Asking(runner, create_app(app, operate={"ann": OPERATE}))
    assert ask("GET", f"/jobs/{job.id}")["origin"] == "import"
    assert {one["id"]: one["origin"] for one in ask("GET", "/jobs")["jobs"] if one["origin"]} == origins
    assert "origin" in ask("GET", "/openapi.json")["components"]["schemas"]["JobOut"]["required"]

found = json.loads(command("jobs", "adding:app", "list", "--json"))["jobs"]
assert {one["id"]: one["origin"] for one in found if one["origin"]} == origins
assert json.loads(command("jobs", "adding:app", "show", job.id, "--json"))["job"]["origin"] == "import"
"""


def test_a_column_of_a_job_is_added_in_the_migration_and_in_job(tmp_path: Path, store_url: str, schema: str) -> None:
    add_and_run(tmp_path, COLUMN, USE_OF_COLUMN, store_url, schema)
