"""Erasing: nothing of the jobs is left in any table."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import psycopg
import pytest

from relet import App, Attempt, Fail, InvalidInput
from relet._client import client
from relet._store.flows import erase
from relet._store.postgres import PostgresStore
from relet._store.sqlite import SQLiteStore
from relet.types import FailedJob
from tests.harness import harness_of
from tests.plugin.command_line import CommandLine
from tests.shops import CliShop
from tests.worker.working import until, working

MARK = "marker-7f3a"


def rows(app: App) -> dict[str, str]:
    """Every row of every table, as text."""
    store = app._store()
    if isinstance(store, PostgresStore):
        with psycopg.connect(store._url) as connection:
            tables = connection.execute(
                "select relname from pg_class where relnamespace = to_regnamespace(%s) and relkind in ('r', 'p')",
                (store.schema,),
            ).fetchall()
            found = {
                name: connection.execute(f"select t::text from {store.schema}.{name} t".encode()) for (name,) in tables
            }
            return {name: str(cursor.fetchall()) for name, cursor in found.items()}
    assert isinstance(store, SQLiteStore)
    with closing(sqlite3.connect(store._memory or f"file:{store.path}", uri=True)) as connection:
        tables = connection.execute("select name from sqlite_master where type = 'table'").fetchall()
        return {name: str(connection.execute(f"select * from {name}").fetchall()) for (name,) in tables}


def leaves(app: App) -> list[str]:
    """The tables that hold the marker, once a worker has taken the nudges about targets that are free."""
    harness_of(app).promote_all()
    return [name for name, text in rows(app).items() if MARK in text]


def plain() -> None: ...


def fill(app: App) -> None:
    """Jobs whose every value has the marker, in many states, and another job that depends on one of them."""

    @app.task
    def report(failure: FailedJob) -> None: ...

    @app.task(max_attempts=1, follow_up=report)
    def work(attempt: Attempt, text: str) -> str:
        attempt.step("first", lambda: text)
        if "fail" in text:
            raise Fail(text)
        return text

    @app.task
    def after(attempt: Attempt) -> None: ...

    app.client.migrate()
    client = app.client.acting_as("ann")
    mine = work.using(tags=[MARK], group=MARK, target=MARK, unique=MARK)
    done = mine.using(unique=f"{MARK}-done", unique_for=3600).enqueue(f"{MARK} done")
    failed = mine.using(unique=f"{MARK}-failed").enqueue(f"{MARK} fail")
    signalled = mine.using(delay=3600, unique=f"{MARK}-later").enqueue(MARK)
    app.client.limit_queue("default", max_running=5, group="*")
    app.client.limit_queue("default", rate=100, per=600, group="*")
    client.idempotent("once").signal(signalled, "go", MARK)
    client.bulk("pause", tag="nothing", group=MARK)
    after.using(depends_on=[done], delay=3600).enqueue()
    with working(app):
        until(lambda: app.client.get(failed).state == "failed")  # type: ignore[union-attr]
        until(lambda: app.client.count(task="report") == 1)
        until(lambda: app.client.dependencies(app.client.jobs(task="after").jobs[0].id)[0].state)
    mine.using(unique=None).enqueue(f"{MARK} runs")
    client.rerun(done)


@pytest.mark.long
@pytest.mark.parametrize("which", ["tag", "group", "target"])
@pytest.mark.every_store
def test_nothing_of_the_jobs_is_left_in_any_table(app: App, which: str) -> None:
    fill(app)
    assert {name.rpartition("relet_")[2] for name in leaves(app)} >= {"jobs", "finished", "steps", "signals", "tags"}
    if which == "tag":
        assert app.client.erase(tag=MARK) == 6
        assert leaves(app) in ([], ["relet_starts"], ["starts"]), "the group is another value"
        app.client.erase(group=MARK)
    elif which == "group":
        assert app.client.erase(group=MARK) == 5
        app.client.erase(tag=MARK)  # the follow-up has the tags of its job, not its group
    else:
        assert app.client.erase(target=MARK) == 5
        app.client.erase(tag=MARK)
        app.client.erase(group=MARK)
    assert leaves(app) == []
    assert app.client.count(task="after") == 1
    (entry, *_) = app.client.acting_as("eve").audit().entries
    assert entry.what != "erase" or MARK not in str(entry)


@pytest.mark.parametrize("which", ["tag", "group", "target"])
def test_it_works_in_steps_that_find_all_jobs(app: App, which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "ERASED_AT_ONCE", 2)
    monkeypatch.setattr(client, "SEARCHED_AT_ONCE", 3)
    monkeypatch.setattr(erase, "MAX_AUDITED", 2)
    app.task(plain)
    app.client.migrate()
    ann, task = app.client.acting_as("ann"), app.tasks["plain"]
    filters: dict[str, Any] = {which: MARK}
    mine = task.using(tags=[MARK]) if which == "tag" else task.using(**filters)
    for number in range(5):
        app.client.enqueue_many([mine.draft() for _ in range(2)] + [task.draft() for _ in range(4)])
        app.client.cancel(app.client.jobs(state=["queued", "paused"]).jobs[number])
        ann.bulk("pause", limit=1, task="plain", **filters)
    assert app.client.erase(**filters) == 10
    assert app.client.count() == 20
    assert leaves(app) == []


def test_a_running_job_loses_its_lease(app: App) -> None:
    app.task(plain)
    app.client.migrate()
    app.tasks["plain"].using(tags=[MARK]).enqueue()
    (held,) = harness_of(app).claim(5)
    assert app.client.erase(tag=MARK) == 1
    assert app.client.get(held.id) is None


def test_an_erasure_is_audited_without_the_value(app: App) -> None:
    app.client.migrate()
    app.client.acting_as("ann").erase(tag=MARK)
    (entry,) = app.client.audit().entries
    assert (entry.what, entry.subject, entry.detail) == ("erase", "tag", {"jobs": 0})


def test_something_must_be_named(app: App) -> None:
    with pytest.raises(InvalidInput, match="erase needs a tag, a group or a target"):
        app.client.erase()


@pytest.mark.long
def test_the_command_asks_before_it_erases(typed: CommandLine, any_shop: CliShop) -> None:
    shop: Any = any_shop
    shop.many(2, tags=["vip"])
    assert typed(shop.folder, "erase", "shop:app", "--tag", "vip")[0] == 1
    assert shop.client.count() == 2
    assert typed(shop.folder, "erase", "shop:app", "--tag", "vip", "--yes") == (0, "2 jobs erased\n")
    assert shop.client.count() == 0
    assert "erase needs --tag" in typed.refusal(shop.folder, "erase", "shop:app", codes=(2,))
