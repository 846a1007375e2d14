"""Races between real processes. Each process has its records, and the triggers of the database have theirs."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from relet._core.filters import Filter
from relet._core.job import Draft, State
from relet._store.flows import control, enqueue, search
from relet._store.postgres import PostgresStore
from relet.errors import StoreError
from tests.conftest import PG_KINDS, SERVERS
from tests.plugin.selection import rounds
from tests.store.race import PROCESSES, TIMEOUT, LeaseTable, Race, live, most_at_once, race_on
from tests.store.race_worker import Caller, Racer, draft

#: In tests of one process: the statement that marks jobs as suspects.
LOST = "update {schema}.jobs set losses = 1, suspect = 1 where id in (select id from {schema}.jobs order by seq"


@pytest.fixture(params=["sqlite", *PG_KINDS])
def race_url(request: pytest.FixtureRequest, tmp_path: Path, schema: str) -> Iterator[str]:
    """Stores that several processes can share."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'race.db'}"
    else:
        server = request.config.stash[SERVERS].get(request.param)
        yield server.dsn
        server.drop_schema(schema)


@pytest.fixture
def race(race_url: str, schema: str, tmp_path: Path) -> Iterator[Race]:
    with race_on(race_url, schema, tmp_path) as race:
        yield race


def test_each_job_is_claimed_and_settled_exactly_once(
    store_url: str, schema: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """In memory, on older servers and in the fast suite fewer of them."""
    few = any(kind in request.node.name for kind in ("memory", "pg15"))
    number = rounds(2_000, all=4_000 if few else 20_000)
    with race_on(store_url, schema, tmp_path) as race:
        ids = race.enqueue([draft() for _ in range(number)])
        if store_url == "sqlite:///:memory:":
            race.threads(batch=100)
        else:
            race.run("drain", batch=100)
        claimed = Counter(id for _, (id, _) in race.records("claimed"))
        settled = Counter((id, state) for _, (id, _, state) in race.records("settled"))
        assert claimed == Counter(ids)
        assert settled == Counter((id, State.SUCCEEDED) for id in ids)
        assert race.store.run(search.count, Filter(state=(State.SUCCEEDED,))) == number
        assert live(race.store) == 0
        assert race.query("select max(version), max(attempt) from {schema}.finished") == [(1, 1)]


def test_a_claim_of_sound_jobs_and_suspects_from_free_and_limited_queues_returns_each_job_once(
    store_url: str, schema: str, tmp_path: Path
) -> None:
    with race_on(store_url, schema, tmp_path) as race:
        race.store.run(control.set_queue, "narrow", max_running=8)
        ids = race.enqueue([draft(queue=queue) for queue in ("free", "narrow") for _ in range(4)])
        race.query(f"{LOST} desc limit 2)")
        race.query(f"{LOST} limit 2)")
        found = Racer(race.store, "racer", tmp_path / "0.records", tmp_path / "over").claim(20, ["free", "narrow"])
        assert sorted(job.id for job in found) == sorted(ids)


KILLED = 2  # so many of the processes are killed while they hold a claim
ENOUGH = 40  # jobs, so that no process is without any


def working(**options: Any) -> list[dict[str, Any]]:
    return [{**options, "dies_at": 10 + 5 * n if n < KILLED else None} for n in range(PROCESSES)]


def further_drafts(race: Race, make: Callable[[int], Draft[Any]], first: int) -> list[Draft[Any]]:
    """Enqueue more, until those that are to be killed have been: on a loaded machine they may get few claims."""
    drafts: list[Draft[Any]] = []
    give_up = time.monotonic() + TIMEOUT
    while race.deaths() < KILLED:
        assert time.monotonic() < give_up, f"{race.deaths()} of {KILLED} were killed"
        if live(race.store) < ENOUGH:
            more = [make(first + len(drafts) + n) for n in range(ENOUGH)]
            race.enqueue(more)
            drafts += more
        time.sleep(0.02)
    return drafts


def check_exits(exits: list[int]) -> None:
    assert exits == [-9] * KILLED + [0] * (PROCESSES - KILLED)


@pytest.mark.long("sqlite")
def test_limits_are_not_exceeded_at_any_commit_and_a_killed_worker_gives_its_place_back(race: Race) -> None:
    race.store.run(control.set_queue, "narrow", max_running=3)
    race.store.run(control.set_queue, "*", max_running=4)
    race.observe(
        "update",
        "new.state = 'running' and old.state <> 'running'",
        "select queue, count(*) from {schema}.jobs where state = 'running' group by queue"
        " union all select '*', count(*) from {schema}.jobs where state = 'running'",
    )

    def make(n: int) -> Draft[Any]:
        return draft(queue="narrow" if n % 3 else "wide")

    ids = race.enqueue([make(n) for n in range(rounds(250, all=1200))])
    with race.processes("work", working(batch=3, queues=["narrow", "wide"], hold=0.004, seconds=1.0)) as exits:
        ids += [one.id for one in further_drafts(race, make, len(ids))]
        race.say_that_all_is_enqueued()
    check_exits(exits)
    held = race.held()
    assert sorted(one.id for one in held) == sorted(ids)
    assert live(race.store) == 0
    narrow = {id for n, id in enumerate(ids) if n % 3}
    assert most_at_once([one for one in held if one.id in narrow]) <= 3
    assert most_at_once(held) <= 4
    # Reached, so that it is known that the observer sees.
    assert {what: number for what, number in race.most_observed().items() if what != "wide"} == {"narrow": 3, "*": 4}


@pytest.mark.long("sqlite")
def test_a_group_is_never_above_its_limit_at_any_commit_though_workers_die(race: Race) -> None:
    race.store.run(control.set_queue, "narrow", group_limit=("*", 2))
    race.store.run(control.set_queue, "narrow", group_limit=("group 0", 3))
    race.observe(
        "update",
        "new.state = 'running' and old.state <> 'running'",
        "select 'group', count(*) from {schema}.jobs where state = 'running' and group_key = new.group_key"
        " and group_key <> 'group 0' union all"
        " select 'group 0', count(*) from {schema}.jobs where state = 'running' and group_key = 'group 0'",
    )

    def make(n: int) -> Draft[Any]:
        return draft(queue="narrow", group=f"group {n % 5}")

    ids = race.enqueue([make(n) for n in range(rounds(250, all=1000))])
    with race.processes("work", working(batch=6, queues=["narrow"], hold=0.004, seconds=1.0)) as exits:
        ids += [one.id for one in further_drafts(race, make, len(ids))]
        race.say_that_all_is_enqueued()
    check_exits(exits)
    held = race.held()
    assert sorted(one.id for one in held) == sorted(ids)
    assert live(race.store) == 0
    assert most_at_once(held) <= 2 * 4 + 3
    assert race.most_observed() == {"group": 2, "group 0": 3}


@pytest.mark.long("sqlite")
def test_a_target_runs_one_job_at_a_time_in_order_and_nothing_is_stuck(race: Race) -> None:
    race.observe(
        "update",
        "new.state = 'running' and old.state <> 'running'",
        "select 'target', count(*) from {schema}.jobs where state = 'running' and target = new.target",
    )

    def make(n: int) -> Draft[Any]:
        return draft(target=f"target {n % 50}", queue=("one", "two")[n % 2])

    drafts = [make(n) for n in range(rounds(500, all=2000))]
    options = working(batch=10, queues=["one", "two"], hold=0.002, seconds=1.0)
    with race.processes("work", options) as exits:
        race.enqueue(drafts, batch=40)  # while they run: what settles meets what is being enqueued behind it
        drafts += further_drafts(race, make, len(drafts))
        race.say_that_all_is_enqueued()
    check_exits(exits)
    assert live(race.store) == 0
    by_target: dict[str | None, list[LeaseTable]] = defaultdict(list)
    target_of = {one.id: one.target for one in drafts}
    for one in sorted(race.held(), key=lambda one: one.begin):
        by_target[target_of[one.id]].append(one)
    for target, runs in by_target.items():
        assert [one.id for one in runs] == [one.id for one in drafts if one.target == target]
        assert all(before.end <= after.begin for before, after in pairwise(runs))
    assert len(by_target) == 50
    assert max(version for _, (_, version) in race.records("claimed")) > 1  # the killed ones' jobs ran again
    assert race.most_observed() == {"target": 1}
    assert race.query("select count(*) from {schema}.nudges where kind <> 'target'") == [(0,)]


@pytest.mark.read_committed
@pytest.mark.long("sqlite")
def test_one_key_is_taken_once_in_each_round_whichever_client_rolls_back(race: Race) -> None:
    race.run("compete", rounds=rounds(25, all=60))
    kept: dict[str, set[str]] = defaultdict(set)
    for _, (key, id, _) in race.records("kept"):
        kept[key].add(id)
    stored = race.query("select unique_key, cast(id as text) from {schema}.jobs order by 1, 2")
    # Each who committed was told of one and the same job, and that is the job that is there.
    assert stored == sorted((key, id) for key, (id,) in ((key, tuple(ids)) for key, ids in kept.items()))
    assert race.query("select key, cast(job as text) from {schema}.keys order by 1, 2") == stored
    assert len(race.records("dropped")) > 50


@pytest.mark.read_committed
@pytest.mark.long("sqlite")
def test_keys_that_are_freed_and_taken_by_all_have_one_live_job_at_every_commit(race: Race) -> None:
    measure = "select 'key', count(*) from {schema}.jobs where unique_key = new.unique_key"
    race.observe("insert", "new.unique_key is not null", measure)
    race.run("churn", rounds=rounds(40, all=60), keys=5, at_once=1)
    assert race.most_observed() == {"key": 1}
    jobs = set(race.query("select unique_key, cast(id as text) from {schema}.jobs"))
    assert set(race.query("select key, cast(job as text) from {schema}.keys")) == jobs
    settled = {id for _, (id, _, state) in race.records("settled") if state == State.SUCCEEDED}
    added = {id for _, (_, id, existing) in race.records("kept") if not existing}
    assert added == settled | {id for _, id in jobs}
    assert len(settled) > 100


@pytest.mark.read_committed
@pytest.mark.long("sqlite")
def test_batches_that_take_keys_and_settles_that_free_them_do_not_deadlock(race: Race) -> None:
    race.run("churn", rounds=rounds(15, all=40), keys=5, at_once=3)  # a deadlock ends the process that it hits
    assert set(race.query("select key, cast(job as text) from {schema}.keys")) == set(
        race.query("select unique_key, cast(id as text) from {schema}.jobs")
    )


def test_one_who_waits_for_a_key_gets_it_when_the_one_before_rolls_back(race: Race) -> None:
    first, second = Caller(race.store), draft(unique="key")
    found: list[Any] = []
    waiter = threading.Thread(target=lambda: found.extend(race.store.run(enqueue.enqueue, [second])))

    def let_the_other_wait() -> None:
        waiter.start()
        waiter.join(0.2)
        assert waiter.is_alive()  # it waits for the first to end

    first.enqueue([draft(unique="key")], keep=False, between=let_the_other_wait)
    waiter.join(TIMEOUT)
    first.close()
    assert [(job.id, job.existing) for job in found] == [(second.id, False)]
    assert race.query("select cast(job as text) from {schema}.keys") == [(second.id,)]


@pytest.mark.long
def test_a_settle_does_not_wait_for_a_transaction_that_found_the_key_taken(
    pg_url: str, schema: str, tmp_path: Path
) -> None:
    with race_on(pg_url, schema, tmp_path) as race:
        racer = Racer(race.store, "racer", tmp_path / "0.records", tmp_path / "over")
        (held,) = race.enqueue([draft(unique="key")])
        jobs = racer.claim(1)
        settling = threading.Thread(target=racer.settle, args=(jobs,))
        user = Caller(race.store)

        def settle_meanwhile() -> None:
            settling.start()
            settling.join(2)
            assert not settling.is_alive()

        (found,) = user.enqueue([draft(unique="key")], keep=True, between=settle_meanwhile)
        settling.join(TIMEOUT)
        user.close()
        assert (found.id, found.existing) == (held, True)


def test_a_claim_returns_only_jobs_that_it_holds_even_if_its_second_half_fails(
    store_url: str, schema: str, tmp_path: Path
) -> None:
    with race_on(store_url, schema, tmp_path) as race:
        race.store.run(control.set_queue, "default", max_running=8)
        race.enqueue([draft() for _ in range(4)])
        race.query(f"{LOST} limit 2)")
        if isinstance(race.store, PostgresStore):
            race.query("create function {schema}.no() returns trigger language plpgsql as $$ begin raise 'no'; end $$")
            race.query(
                "create trigger no before update on {schema}.jobs for each row"
                " when (new.state = 'running' and new.losses > 0) execute function {schema}.no()"
            )
        else:
            race.query(
                "create trigger no before update on {schema}.jobs"
                " when new.state = 'running' and new.losses > 0 begin select raise(abort, 'no'); end"
            )
        racer = Racer(race.store, "racer", tmp_path / "0.records", tmp_path / "over")
        try:
            found = {job.id for job in racer.claim(4)}
        except StoreError:
            found = set()
        running = race.query("select cast(id as text) from {schema}.jobs where state = 'running'")
        assert found == {id for (id,) in running}
