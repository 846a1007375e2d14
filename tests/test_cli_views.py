"""Queues, workers, targets, failures, statistics and the audit trail, as the command line shows and changes them."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from functools import partial
from typing import Any

import pytest

from relet._cli import output
from relet._cli.queues import count_note
from relet._core.worker import WorkerFacts
from relet._store import migrate
from relet._store.flows import inspect, stats, worker_reports
from relet._store.flows.stats import Count
from relet._tasks.task import new_id
from tests.clocks import at
from tests.harness import StoreHarness, harness_of
from tests.plugin.command_line import CommandLine
from tests.ptys import OnTerminal
from tests.shops import CliShop


def as_json(printed: str) -> Any:
    return json.loads(printed)


@pytest.mark.long
def test_queues_of_too_many_jobs_are_listed_with_the_age_of_their_numbers(
    typed: CommandLine, shop: CliShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect, "MAX_COUNTED", 2)
    shop.many(3)
    assert "no worker has counted them lately" in count_note(shop.client.queues())
    shop.app._store().run(stats.save_sample, shop.app._store().run(inspect.counted_queues))
    assert re.search(r"counted .* ago", count_note(shop.client.queues()))
    monkeypatch.undo()
    assert count_note(shop.client.queues()) == ""
    assert as_json(typed(shop.folder, "queues", "shop:app", "--json")[1])["queues"][0]["counted_at"] is None


@pytest.mark.long
def test_queues_are_listed_paused_and_limited(typed: CommandLine, any_shop: CliShop) -> None:
    shop = any_shop
    shop.many(3)
    heads, line = typed(shop.folder, "queues", "shop:app")[1].splitlines()
    assert heads.split()[:5] == ["QUEUE", "PAUSED", "PENDING", "QUEUED", "RUNNING"]
    assert line.split()[:4] == ["billing", "0", "3", "0"]
    assert typed(shop.folder, "queues", "shop:app", "pause", "billing", "mail")[0] == 0
    assert [(one.queue, one.paused) for one in shop.client.queues()] == [("billing", True), ("mail", True)]
    assert typed(shop.folder, "queues", "shop:app", "resume", "mail")[1].splitlines()[1].split()[:2] == ["mail", "0"]
    limits = ("--max-running", "4", "--rate", "100", "--per", "1m", "--group", "*", "--fair")
    code, printed = typed(shop.folder, "queues", "shop:app", "limit", "billing", *limits)
    assert code == 0
    assert printed.splitlines()[1].endswith("4 at once of each group, 100 in 60 s of each group, fair")
    assert typed(shop.folder, "queues", "shop:app", "limit", "billing", "--max-running", "none", "--no-fair")[0] == 0
    (billing, _) = as_json(typed(shop.folder, "queues", "shop:app", "--json")[1])["queues"]
    assert (billing["max_running"], billing["fair"], billing["rates"][0]["rate"]) == (None, False, 100)
    assert typed(shop.folder, "queues", "shop:app", "limit", "*", "--max-running", "9")[0] == 0
    assert "all queues" in typed(shop.folder, "queues", "shop:app")[1]


@pytest.mark.long
def test_who_did_it_is_in_the_audit_trail(typed: CommandLine, any_shop: CliShop) -> None:
    (job,) = any_shop.many(1)
    typed(any_shop.folder, "queues", "shop:app", "pause", "billing")
    typed(any_shop.folder, "jobs", "shop:app", "cancel", job.id)
    typed(any_shop.folder, "schedules", "shop:app", "put", "nightly", "sweep", "--cron", "0 3 * * *")
    code, printed = typed(any_shop.folder, "audit", "shop:app", "--limit", "2")
    assert code == 0
    heads, latest, before, more = printed.splitlines()
    assert heads.split() == ["AT", "(UTC)", "WHO", "WHAT", "SUBJECT", "DETAIL"]
    assert latest.split()[3:] == ["put_schedule", "nightly"]
    assert before.split()[3:] == ["cancel", job.id]
    assert before.split()[2].startswith("cli:")
    assert "@" in before.split()[2]
    _, printed = typed(any_shop.folder, "audit", "shop:app", *more.removeprefix("more: ").split(), "--json")
    assert [entry["what"] for entry in as_json(printed)["entries"]] == ["pause_queue"]


@pytest.mark.long
def test_workers_are_listed_and_printed_with_their_jobs(typed: CommandLine, shop: CliShop) -> None:
    facts = WorkerFacts("box:1:a", "box", 1, ("billing", "mail"), 4, ("charge",), 30.0, "0.1.0")
    shop.app._store().run(worker_reports.report, new_id(), facts, 1, False)
    gone = WorkerFacts("old:2:b", "old", 2, None, 8, (), 30.0, "0.1.0")
    with at(shop.app._store(), time.time() - 60):
        shop.app._store().run(worker_reports.report, new_id(), gone, 0, False)
    shop.many(1)
    (running,) = harness_of(shop.app).claim(1, queues=("billing",), worker="box:1:a")
    heads, *lines = typed(shop.folder, "workers", "shop:app")[1].splitlines()
    assert heads.split()[:4] == ["WORKER", "STATE", "RUNNING", "SLOTS"]
    assert [line.split()[:5] for line in lines] == [
        ["box:1:a", "running", "1", "4", "billing,"],
        ["old:2:b", "lost", "0", "8", "all"],
    ]
    code, printed = typed(shop.folder, "workers", "shop:app", "box:1:a")
    assert code == 0
    assert "1 of 4 in use" in printed
    assert printed.splitlines()[-1].startswith(running.id)
    document = as_json(typed(shop.folder, "workers", "shop:app", "box:1:a", "--json")[1])
    assert (document["worker"]["host"], [job["id"] for job in document["jobs"]]) == ("box", [running.id])
    assert "No such worker: nosuch. List workers: relet workers shop:app" in typed.refusal(
        shop.folder, "workers", "shop:app", "nosuch", codes=(1,)
    )
    assert typed(shop.folder, "jobs", "shop:app", "--worker", "box:1:a")[1].splitlines()[1].startswith(running.id)


@pytest.mark.long
def test_targets_are_listed_and_the_line_of_one_is_printed(typed: CommandLine, shop: CliShop) -> None:
    first, *others = shop.many(3, target="acct-7")
    shop.many(1, target="acct-8")
    harness_of(shop.app).promote_all()
    _, line, more = typed(shop.folder, "targets", "shop:app", "--limit", "1")[1].splitlines()
    assert line.split() == ["acct-7", first.id, "charge", "queued", "2"]
    _, line = typed(shop.folder, "targets", "shop:app", *more.removeprefix("more: ").split())[1].splitlines()
    assert line.startswith("acct-8")
    _, printed = typed(shop.folder, "targets", "shop:app", "acct-7")
    assert printed.splitlines()[1].split() == ["held", "by", first.id, "charge", "queued"]
    assert [row.split()[0] for row in printed.splitlines()[5:]] == [job.id for job in others]
    assert as_json(typed(shop.folder, "targets", "shop:app", "acct-7", "--json")[1])["waiting"] == 2


@pytest.mark.long
def test_failures_are_grouped_and_found(typed: CommandLine, any_shop: CliShop) -> None:
    any_shop.many(3)
    any_shop.failed(2, "ValueError: account 17 is empty\nand more")
    any_shop.failed(1, "KeyError: 'x'")
    _, *lines = typed(any_shop.folder, "failures", "shop:app")[1].splitlines()
    assert sorted(line.split()[0] for line in lines) == ["1", "2"]
    groups = as_json(typed(any_shop.folder, "failures", "shop:app", "--json")[1])["failures"]
    (group,) = (one for one in groups if one["number"] == 2)
    found = as_json(typed(any_shop.folder, "jobs", "shop:app", "--error", group["search"], "--json")[1])
    assert len(found["jobs"]) == 2
    assert group["example"] in {job["id"] for job in found["jobs"]}


def test_statistics_are_printed_over_time_and_in_all(typed: CommandLine, shop: CliShop) -> None:
    facts = WorkerFacts("box:1:a", "box", 1, None, 4, ("charge",), 30.0, "0.1.0")
    counts = [Count("billing", "succeeded", 7), Count("billing", "snoozed", 2), Count("billing", "runs", 9, 5)]
    shop.app._store().run(worker_reports.report, new_id(), facts, 0, False, counts)
    heads, line = typed(shop.folder, "stats", "shop:app")[1].splitlines()
    assert heads.split()[:7] == ["FROM", "(UTC)", "QUEUE", "SUCCEEDED", "FAILED", "RETRIED", "LOST"]
    assert line.split()[2:8] == ["billing", "7", "0", "0", "0", "2"]
    heads, line = typed(shop.folder, "stats", "shop:app", "--totals")[1].splitlines()
    assert line.split()[:2] == ["billing", "7"]
    assert "175ms" in line
    assert len(typed(shop.folder, "stats", "shop:app", "--queue", "mail", "--since", "3d")[1].splitlines()) == 1
    (point,) = as_json(typed(shop.folder, "stats", "shop:app", "--step", "10m", "--json")[1])["stats"]
    assert (point["step"], point["counts"]["succeeded"]) == (600, 7)


@pytest.mark.long
def test_jobs_are_found_by_all_filters(typed: CommandLine, shop: CliShop) -> None:
    one, two = shop.many(2, queue="mail", target="acct-7")
    other = shop.sweep.enqueue()

    def found(*filters: str) -> list[str]:
        return [job["id"] for job in as_json(typed(shop.folder, "jobs", "shop:app", *filters, "--json")[1])["jobs"]]

    newest_first = sorted([one.id, two.id], reverse=True)
    assert found("--queue", "mail") == newest_first
    assert found("--task", "sweep") == [other.id]
    assert found("--target", "acct-7", "--state", "pending", "--state", "queued") == newest_first
    assert found("--since", "1h", "--task", "sweep") == [other.id]
    assert found("--until", "1h") == []
    assert found("--since", "2020-01-01", "--until", "2020-02-01T00:00+02:00") == []


def test_it_is_explained_why_a_job_does_not_run(typed: CommandLine, shop: CliShop) -> None:
    (job,) = shop.many(1)
    shop.client.pause_queue("billing")
    code, printed = typed(shop.folder, "explain", "shop:app", job.id)
    assert code == 0
    assert "queue billing is paused" in printed
    assert as_json(typed(shop.folder, "explain", "shop:app", job.id, "--json")[1])["explain"] == printed.splitlines()
    assert typed(shop.folder, "jobs", "shop:app", "explain", job.id)[1] == printed


@pytest.mark.long
def test_jobs_that_ended_long_ago_are_pruned(typed: CommandLine, any_shop: CliShop) -> None:
    jobs = any_shop.many(3)
    for job in jobs[:2]:
        any_shop.client.cancel(job)
    assert typed(any_shop.folder, "prune", "shop:app")[1] == "Removed 0 finished and 0 failed jobs.\n"
    _, printed = typed(any_shop.folder, "prune", "shop:app", "--keep-finished", "0")
    assert printed.startswith("Removed 2 finished and 0 failed jobs")
    assert any_shop.client.count() == 1
    assert [one.what for one in any_shop.client.audit(limit=2).entries] == ["prune", "prune"]


def test_the_doctor_prints_its_findings_and_exits_by_them(typed: CommandLine, shop: CliShop) -> None:
    code, printed = typed(shop.folder, "doctor", "shop:app")
    assert code == 0, printed
    assert printed.split()[:3] == ["LEVEL", "CHECK", "FINDING"]
    assert re.search(rf"^ok +schema +version {migrate.newest('sqlite')}\b", printed, re.M)
    with closing(sqlite3.connect(shop.folder / "jobs.db")) as connection, connection:
        connection.execute("insert into relet_migrations (version, applied_at) values (999, 0)")
    code, printed = typed(shop.folder, "doctor", "shop:app")
    assert code == 1
    _, worst, advice, *_ = printed.splitlines()
    assert worst.split()[:2] == ["error", "schema"]
    assert advice.strip().startswith("-> ")
    code, printed = typed(shop.folder, "doctor", "shop:app", "--json")
    assert (code, {one["level"] for one in as_json(printed)["findings"]} >= {"error", "ok"}) == (1, True)


def test_schedules_are_put(typed: CommandLine, shop: CliShop) -> None:
    put = ("schedules", "shop:app", "put", "nightly", "charge")
    code, printed = typed(
        shop.folder, *put, "--cron", "30 3 * * *", "--timezone", "Europe/Berlin", "--arg", "account=a"
    )
    assert (code, "nightly" in printed) == (0, True)
    (one,) = shop.client.schedules.all()
    assert (one.cron, one.timezone, one.payload_json) == ("30 3 * * *", "Europe/Berlin", '{"account":"a"}')
    assert typed(shop.folder, *put, "--every", "15m", "--payload", '{"account": "b"}', "--missed", "skip")[0] == 0
    (one,) = shop.client.schedules.all()
    assert (one.every, one.missed, one.payload_json) == (900.0, "skip", '{"account":"b"}')


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (("queues", "shop:app", "frobnicate"), "Unknown verb 'frobnicate': use one of list, pause, resume, limit."),
        (("queues", "shop:app", "pause"), "pause needs a queue name. List queues: relet queues shop:app"),
        (("queues", "shop:app", "limit", "billing"), "limit needs --max-running, --rate with --per, or --fair"),
        (("queues", "shop:app", "limit", "billing", "--rate", "5"), "--rate needs --per, as in --rate 5 --per 60"),
        (("queues", "shop:app", "pause", "billing", "--fair"), "--fair works only with limit, not with pause."),
        (("queues", "shop:app", "pause", "two words"), "queue must be 1 to 128 letters"),
        (("schedules", "shop:app", "frobnicate"), "Unknown verb 'frobnicate': use one of list, show, put, pause"),
        (
            ("schedules", "shop:app", "put", "nightly"),
            "put needs a name and a task. List schedules: relet schedules shop:app",
        ),
        (("schedules", "shop:app", "pause", "a", "b"), "pause does not take these arguments: b"),
        (("schedules", "shop:app", "put", "nightly", "sweep", "--cron", "99 * * * *"), "99"),
        (("jobs", "shop:app", "--limit", "0"), "limit must be a whole number from 1 to 1000, not 0"),
        (("prune", "shop:app", "--keep-finished", "9999999999"), "keep_finished must be seconds"),
    ],
)
def test_verbs_that_a_state_refuses_are_explained(
    typed: CommandLine, still_shop: CliShop, words: tuple[str, ...], printed: str
) -> None:
    assert printed in typed.refusal(still_shop.folder, *words, codes=(2,))


@pytest.mark.long
def test_a_tenants_jobs_are_a_tenants(typed: CommandLine, shop: CliShop) -> None:
    assert typed(shop.folder, "migrate", "shop:app", "--tenant", "acme", "--json")[0] == 0
    code, printed = typed(shop.folder, "enqueue", "shop:app", "sweep", "--tenant", "acme")
    assert code == 0
    assert printed.strip() in typed(shop.folder, "jobs", "shop:app", "--tenant", "acme")[1]
    assert printed.strip() not in typed(shop.folder, "jobs", "shop:app")[1]
    done = [line.split()[3] for line in typed(shop.folder, "audit", "shop:app", "--tenant", "acme")[1].splitlines()[1:]]
    assert done == ["enqueue", "migrate"]


def test_all_tenants_are_migrated_and_those_that_failed_by_the_next_call(
    typed: CommandLine, any_shop: CliShop, request: pytest.FixtureRequest
) -> None:
    shop, names = any_shop, ["acme", "birch", "cedar"]
    stores = [StoreHarness(shop.client.tenant(name)._store) for name in names]
    assert shop.client.tenants() == []
    for store in stores:
        request.addfinalizer(partial(_drop_schema, store))
    for store in stores:
        store.store.migrate()
        _undo_the_newest_migration(store)
    assert shop.client.tenants() == names
    now = "now()" if stores[1].on_postgres else "0"
    stores[1].query(f"insert into {{s}}migrations (version, applied_at, oldest) values (999, {now}, 999)")
    code, printed = typed(shop.folder, "migrate", "shop:app", "--all-tenants")
    lines = [line for line in printed.splitlines() if line.startswith("tenant ")]
    assert code == 1
    assert [line.split()[1] for line in lines] == names
    assert [f"applied {NEWEST}" in line for line in lines] == [True, False, True]
    assert "upgrade relet" in lines[1]
    assert "1 of 4 stores were not migrated: repeat the command for them" in printed
    stores[1].query("delete from {s}migrations where version = 999")
    code, printed = typed(shop.folder, "migrate", "shop:app", "--all-tenants", "--json")
    assert code == 0
    applied = {
        one["tenant"]: one["applied"] for one in as_json(printed[printed.index("{") :])["stores"]
    }  # a warning may precede it
    assert applied == {None: [], "acme": [], "birch": [NEWEST], "cedar": []}
    assert "--sql" in typed.refusal(shop.folder, "migrate", "shop:app", "--all-tenants", "--sql", codes=(1, 2))


NEWEST = migrate.newest("postgres")


def _drop_schema(store: StoreHarness) -> None:
    if store.on_postgres:
        store.query(f"drop schema {store.store.quoted} cascade")


def _undo_the_newest_migration(store: StoreHarness) -> None:
    """As a release before this one left the schema."""
    for index in ("operations_subject", "audit_subject", "dependencies_copies"):
        store.query(f"drop index {{s}}{index}")
    store.query(f"delete from {{s}}migrations where version = {NEWEST}")


@pytest.mark.long
def test_a_reader_that_goes_away_is_no_error(shop: CliShop) -> None:
    reading, writing = os.pipe()
    os.close(reading)  # `relet jobs shop:app | head`, where head has had enough
    command = [sys.executable, "-m", "relet", "jobs", "shop:app"]
    ran = subprocess.run(command, cwd=shop.folder, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (128 + signal.SIGPIPE, "")


@pytest.mark.parametrize(
    ("seconds", "formatted"),
    [
        (None, ""), (0, "0s"), (0.25, "250ms"), (1.234, "1.2s"), (59.4, "59.4s"), (61, "1m1s"), (3599, "59m59s"),
        (3600, "1h"), (90061, "1d1h"), (-5, "-5s"),
    ],
)  # fmt: skip
def test_durations_can_be_taken_in_at_a_glance(seconds: float | None, formatted: str) -> None:
    assert output.seconds(seconds) == formatted


def test_tables_are_drawn_on_a_terminal_and_plain_elsewhere(typed: CommandLine, shop: CliShop) -> None:
    shop.many(1)
    plain = typed(shop.folder, "jobs", "shop:app")[1]
    assert "\x1b" not in plain
    with OnTerminal(shop.folder, "jobs", "shop:app", size=(120, 24)) as terminal:
        assert terminal.code() == 0
        assert "\x1b[34mqueued" in terminal.all_drawn
        assert "─" in terminal.page


#: As if rich were not installed.
WITHOUT_RICH = """
import sys
for name in ["rich", *sys.modules]:
    if name.partition(".")[0] == "rich":
        sys.modules[name] = None
from relet._cli import main
main(sys.argv[1:])
"""


@pytest.mark.long
def test_without_rich_everything_but_top_works_on_a_terminal(shop: CliShop) -> None:
    (job,) = shop.many(1)
    with OnTerminal(shop.folder, "jobs", "shop:app", program=("-c", WITHOUT_RICH)) as terminal:
        assert terminal.code() == 0
        assert job.id[-8:] in terminal.page
        assert "\x1b" not in terminal.all_drawn
    with OnTerminal(shop.folder, "jobs", "shop:app", "cancel", "--all", "-y", program=("-c", WITHOUT_RICH)) as terminal:
        assert terminal.code() == 0
        assert "cancel 1 job 1 of 1" in terminal.page
    with OnTerminal(shop.folder, "top", "shop:app", program=("-c", WITHOUT_RICH)) as terminal:
        assert terminal.code() == 1
        assert "pip install 'relet[cli]'" in terminal.page
