"""Changes under an operation id: however often one is tried, it has one effect, and each try gets the same answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec import structs

from relet import App, State
from relet._store.flows import maintenance
from relet._store.query import read
from relet.errors import IdempotencyConflict, InvalidTransition
from tests.clocks import at
from tests.databases import Database


@pytest.fixture
def app(database: Database) -> Iterator[App]:
    app = database.app()

    @app.task
    def work(n: int = 0) -> int:
        return n

    app.client.migrate()
    yield app
    app.close()


Verb = Callable[[Any, Any], Any]
VERBS: dict[str, tuple[str, Verb]] = {
    "cancel": ("pending", lambda client, job: client.cancel(job)),
    "cancel chain": ("pending", lambda client, job: client.cancel(job, chain=True)),
    "pause": ("pending", lambda client, job: client.pause(job)),
    "resume": ("paused", lambda client, job: client.resume(job)),
    "run_now": ("pending", lambda client, job: client.run_now(job)),
    "complete": ("pending", lambda client, job: client.complete(job, 7)),
    "delete": ("pending", lambda client, job: client.delete(job)),
    "delete chain": ("pending", lambda client, job: client.delete(job, chain=True)),
    "signal": ("pending", lambda client, job: client.signal(job, "word", 1)),
}


def waiting(app: App, state: str = "pending") -> Any:
    job = app.tasks["work"].using(delay=3600).enqueue(1)
    return app.client.pause(job) if state == "paused" else job


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("rival", [None, "cancel", "delete"])
def test_a_change_made_again_under_its_key_has_no_effect_and_the_answer_of_the_first(
    app: App, verb: str, rival: str | None
) -> None:
    state, act = VERBS[verb]
    job = waiting(app, state)
    keyed = app.client.idempotent("a key")
    first = act(keyed, job)
    gone = verb.startswith("delete")
    if rival is not None and not gone and app.client.get(job).state not in (State.CANCELLED, State.SUCCEEDED):  # type: ignore[union-attr]
        getattr(app.client, rival)(job)
    before = app.client.get(job)
    second = act(app.client.idempotent("a key"), job)
    assert getattr(first, "state", first) == getattr(second, "state", second)
    assert getattr(first, "id", None) == getattr(second, "id", None)
    assert app.client.get(job) == before


def test_a_call_that_comes_after_a_rival_is_refused_and_not_taken_for_done(app: App) -> None:
    job = waiting(app)
    app.client.complete(job, 1)
    successor = app.tasks["work"].draft(2)
    with pytest.raises(InvalidTransition):
        app.client.complete(job, continue_with=successor)
    assert app.client.get(successor.id) is None
    with pytest.raises(InvalidTransition):
        app.client.complete(job, 2)


def test_an_answer_holds_neither_payload_nor_result(app: App) -> None:
    job = app.tasks["work"].using(delay=3600).enqueue(424242)
    app.client.complete(job, 313131)
    job = app.tasks["work"].using(delay=3600, unique="k").enqueue(424242)
    app.tasks["work"].using(unique="k", replace=True).enqueue(525252)
    app.client.schedules.put("s", app.tasks["work"].draft(424242), every=60)
    kept = outcomes(app)
    assert len(kept) == 3
    assert not any(secret in text for text in kept for secret in ("424242", "313131", "525252"))


def outcomes(app: App) -> list[str]:
    store = app._store()
    with store.begin() as opened:
        table = f"{store.quoted}_operations" if store.dialect == "sqlite" else f"{store.quoted}.operations"
        return [str(row[0]) for row in opened.raw.execute(f"select outcome from {table}").fetchall()]


def test_a_key_is_for_one_request(app: App) -> None:
    job, other = waiting(app), waiting(app)
    app.client.idempotent("k", request="pause the first").pause(job)
    with pytest.raises(IdempotencyConflict, match="different"):
        app.client.idempotent("k", request="pause the other").pause(other)
    with pytest.raises(IdempotencyConflict):
        app.client.idempotent("k", request="pause the first").cancel(job)
    assert app.client.get(other).state is State.PENDING  # type: ignore[union-attr]
    assert app.client.idempotent("k", request="pause the first").pause(job).state is State.PAUSED


def test_an_enqueue_under_a_key_stores_one_job(app: App) -> None:
    task = app.tasks["work"]
    first = app.client.idempotent("k").enqueue(task.draft(1))
    second = app.client.idempotent("k").enqueue(task.draft(1))
    assert (second.id, second.payload_json, second.existing) == (first.id, first.payload_json, False)
    assert len(app.client.jobs().jobs) == 1


@pytest.mark.long
def test_a_bulk_change_under_a_key_goes_on_where_it_ended(app: App) -> None:
    jobs = [waiting(app) for _ in range(250)]
    part = app.client.idempotent("k").bulk("cancel", task="work", limit=100)
    assert (part.done, part.refused) == (100, 0)
    whole = app.client.idempotent("k").bulk("cancel", task="work")
    assert (whole.done, whole.refused, whole.cursor) == (250, 0, None)
    assert app.client.idempotent("k").bulk("cancel", task="work") == whole
    assert all(app.client.get(job).state is State.CANCELLED for job in jobs)  # type: ignore[union-attr]


def test_schedules_and_queues_are_changed_once(app: App) -> None:
    client, draft = app.client, app.tasks["work"].draft(1)
    client.idempotent("put").schedules.put("s", draft, every=60)
    client.schedules.pause("s")
    assert not client.idempotent("put").schedules.put("s", draft, every=60).paused
    assert client.schedules.all()[0].paused
    job = client.idempotent("now").schedules.run_now("s")
    assert client.idempotent("now").schedules.run_now("s").id == job.id
    assert len(client.jobs().jobs) == 1
    client.idempotent("remove").schedules.remove("s")
    client.schedules.put("s", draft, every=60)
    client.idempotent("remove").schedules.remove("s")
    assert client.schedules.get("s") is not None
    client.idempotent("q").pause_queue("default")
    client.resume_queue("default")
    client.idempotent("q").pause_queue("default")
    assert not client.queues()[0].paused


def test_a_schedule_that_was_removed_since_is_shown_without_its_payload(app: App) -> None:
    client = app.client
    client.schedules.put("s", app.tasks["work"].draft(1), every=60)
    first = client.idempotent("k").schedules.pause("s")
    client.schedules.remove("s")
    assert client.idempotent("k").schedules.pause("s") == structs.replace(first, payload_json="null")


def test_an_audited_change_is_noted_once(app: App) -> None:
    job = waiting(app)
    for _ in range(2):
        app.client.acting_as("ada").idempotent("k").cancel(job)
    assert [(entry.who, entry.what) for entry in app.client.audit().entries] == [("ada", "cancel")]


def test_old_answers_are_pruned_and_recent_ones_are_not(app: App) -> None:
    store, job = app._store(), waiting(app)
    app.client.pause(job)
    keep: dict[str, Any] = {"keep_finished": 1e6, "keep_failed": 1e6}
    clock = store.run(clock_of)
    with at(store, clock + 3600):
        store.run(maintenance.prune, **keep)
    assert len(outcomes(app)) == 1
    with at(store, clock + 2 * 86400):
        store.run(maintenance.prune, **keep)
    assert outcomes(app) == []


def clock_of() -> Any:
    ((moment,),) = yield read("inspect/clock")
    return moment
