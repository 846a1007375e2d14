"""`relet jobs` and `relet schedules`: their output for people and for programs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from relet import App
from relet._core.job import Progress
from relet._store.flows import lease
from tests.harness import harness_of
from tests.plugin.command_line import CommandLine

SHOP = """
from relet import App
app = App("sqlite:///jobs.db")


@app.schedule("30 3 * * *", timezone="Europe/Berlin", name="nightly", overlap="skip")
@app.task
def sweep(day: str = "mon") -> None: ...
"""


@contextmanager
def app_at(folder: Path) -> Iterator[tuple[App, Any]]:
    """The app of the program, from here."""
    here = os.getcwd()
    os.chdir(folder)
    namespace: dict[str, Any] = {}
    try:
        exec(SHOP, namespace)
        yield namespace["app"], namespace["sweep"]
    finally:
        namespace["app"].close()
        os.chdir(here)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP)
    return tmp_path


@pytest.mark.long
def test_jobs_are_listed_with_their_progress(typed: CommandLine, shop: Path) -> None:
    with app_at(shop) as (app, sweep):
        first, second = sweep.enqueue("mon"), sweep.using(delay=60).enqueue("tue")
        (running,) = harness_of(app).claim(1)
        app._store().run(lease.progress, {running.lease: Progress(4, 10, "rows")})
    code, printed = typed(shop, "jobs", "shop:app")
    lines = printed.splitlines()
    assert code == 0
    assert lines[0].split() == ["ID", "TASK", "QUEUE", "STATE", "ATTEMPT", "CREATED", "(UTC)", "PROGRESS"]
    assert lines[1].startswith(second.id)
    assert "pending (time)" in lines[1]
    assert lines[2].startswith(first.id)
    assert lines[2].endswith("40% (4/10) rows")
    code, printed = typed(shop, "jobs", "shop:app", "--state", "running", "--json")
    (job,) = json.loads(printed)["jobs"]
    assert (job["id"], job["progress"]) == (first.id, {"done": 4, "total": 10, "note": "rows"})


def test_a_long_list_says_how_to_go_on(typed: CommandLine, shop: Path) -> None:
    with app_at(shop) as (app, sweep):
        app.client.enqueue_many(sweep.draft(str(n)) for n in range(3))
    _, printed = typed(shop, "jobs", "shop:app", "--limit", "2")
    *_, more = printed.splitlines()
    assert more.startswith("more: --cursor ")
    _, printed = typed(shop, "jobs", "shop:app", *more.removeprefix("more: ").split())
    assert len(printed.splitlines()) == 2


def test_one_job_is_printed_in_detail_and_moves_no_cursor(typed: CommandLine, shop: Path) -> None:
    with app_at(shop) as (app, sweep):
        job = sweep.enqueue("\x1b[2Jgone")
        (running,) = harness_of(app).claim(1)
        harness_of(app).fail(running, "ValueError: \x1b[31mred\x1b[0m\nsecond line")
    code, printed = typed(shop, "jobs", "shop:app", job.id)
    assert code == 0
    assert "\x1b" not in printed
    assert "it has failed after 1 of 4 attempts: ValueError: \ufffd[31mred" in printed
    assert printed.splitlines()[-2:] == ["ValueError: \ufffd[31mred\ufffd[0m", "second line"], (
        "all of the error, at last"
    )
    _, printed = typed(shop, "jobs", "shop:app", job.id, "--json")
    document = json.loads(printed)
    assert document["job"]["id"] == job.id
    assert [one["outcome"] for one in document["attempts"]] == ["failed"]


def test_a_job_that_does_not_exist_is_reported(typed: CommandLine, shop: Path) -> None:
    unknown = "0192f3a0-7c1e-7b3a-9d1f-2f6f5a1c0de1"
    assert f"no such job: {unknown}" in typed.refusal(shop, "jobs", "shop:app", unknown)
    assert "nonsense" in typed.refusal(shop, "jobs", "shop:app", "nonsense")
    assert typed(shop, "jobs", "shop:app", "--state", "over")[0] == 2


@pytest.mark.long
def test_schedules_are_listed_and_steered(typed: CommandLine, shop: Path) -> None:
    with app_at(shop) as (app, sweep):
        app.client.schedules.put("hourly", sweep.draft("tue"), every=3600, missed="all")
        app.client.schedules.put("nightly", sweep.draft(), "30 3 * * *", timezone="Europe/Berlin", overlap="skip")
    code, printed = typed(shop, "schedules", "shop:app")
    assert code == 0
    heads, hourly, nightly = printed.splitlines()
    assert heads.split()[:4] == ["NAME", "WHEN", "ZONE", "TASK"]
    assert hourly.startswith("hourly   every 3600 s")
    assert nightly.split()[:2] == ["nightly", "30"]
    assert typed(shop, "schedules", "shop:app", "pause", "nightly")[1].strip().endswith("paused>")
    assert "paused" in typed(shop, "schedules", "shop:app")[1].splitlines()[2]
    assert typed(shop, "schedules", "shop:app", "run", "nightly")[1].startswith("<job ")
    assert "paused" not in typed(shop, "schedules", "shop:app", "resume", "nightly")[1]
    assert typed(shop, "schedules", "shop:app", "remove", "hourly") == (0, "Removed schedule hourly.\n")
    (left,) = json.loads(typed(shop, "schedules", "shop:app", "--json")[1])["schedules"]
    assert (left["name"], left["timezone"]) == ("nightly", "Europe/Berlin")
    assert typed(shop, "schedules", "shop:app", "show", "nightly")[1].splitlines()[0].split() == ["name", "nightly"]


def test_verbs_that_a_schedule_refuses_are_reported(typed: CommandLine, shop: Path) -> None:
    assert "no such schedule: daily" in typed.refusal(shop, "schedules", "shop:app", "pause", "daily")
    assert "no such schedule: daily" in typed.refusal(shop, "schedules", "shop:app", "show", "daily")
    assert "pause needs a schedule name. List schedules: relet schedules shop:app" in typed.refusal(
        shop, "schedules", "shop:app", "pause"
    )
