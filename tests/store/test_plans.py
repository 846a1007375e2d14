"""Which plans PostgreSQL chooses among a million finished jobs: with statistics and without, for any parameters.

One test for each server, as the data takes a while to make: 1,000,000 finished jobs, 100,000 whose time is ahead,
50,000 that wait for targets, 50,000 that wait for other jobs, 1,800 queued, 100,000 more of one key in a queue that is
shared. Each flow runs on a connection that asks for the plan of each of its statements first, with the very parameters
that the flow sends, and is undone afterwards.
"""

from __future__ import annotations

import re
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest
from psycopg import sql

from relet._core.filters import Filter
from relet._core.job import Claimed, Draft, Progress, Raised, Released, State, Succeeded
from relet._store.flows import (
    chains,
    claim_one,
    control,
    enqueue,
    erase,
    lease,
    maintenance,
    promote,
    search,
    settle,
    targets,
)
from relet._store.flows import claim as claim_flows
from relet._store.flows import inspect as look
from relet._store.flows.claim_scope import Scope
from relet._store.postgres import PostgresStore, bound
from relet._store.query import Clock, Flow, Query, Row, texts, values
from relet._store.runner import drive
from relet._store.sqlite import SQLiteStore
from tests.plugin.selection import rounds
from tests.store.race_worker import draft
from tests.store.statement_files import statement_files

R = TypeVar("R")
DAY = 86400.0

#: The indexes that a statement may use to find live jobs, finished ones, and the rest: no others, and all of them.
INTENDED = {
    "claim/claim": {"jobs_claim"},
    "claim/claim_by_task": {"jobs_tasks"},
    "claim/claim_one": {"jobs_pkey"},
    "claim/queued_tasks": {"jobs_tasks"},
    "claim/queue_flags": {"jobs_suspect"},
    "lease/renew": {"jobs_pkey", "jobs_leased"},
    "settle/succeed": {"jobs_pkey"},
    "settle/lock_owned": {"jobs_pkey"},
    "settle/change": {"jobs_pkey"},
    "settle/finish": {"jobs_pkey"},
    "lease/lock_expired": {"jobs_leased"},
    "inspect/running_by_queue": {"jobs_leased"},
    "settle/find_settled": {"jobs_pkey", "finished_pkey"},
    "promote/lock_due": {"jobs_due"},
    "promote/next_due": {"jobs_due", "jobs_start_by"},
    "promote/target_heads": {"jobs_line", "jobs_holder"},
    "promote/lock_pending": {"jobs_pkey"},
    "promote/wait_for_target": {"jobs_pkey"},
    "promote/promote": {"jobs_pkey"},
    "promote/dependencies_of_jobs": {"dependencies_pkey"},
    "promote/dependencies_on_chains": {"dependencies_open"},
    "promote/watch_chains": {"jobs_pkey", "jobs_chain"},
    "promote/chain_states": {"jobs_pkey", "jobs_chain", "finished_pkey", "finished_chain"},
    "promote/lock_dependents": {"jobs_pkey"},
    "promote/decide_dependencies": {"dependencies_pkey", "jobs_pkey", "finished_pkey", "finished_chain"},
    "promote/unblock": {"jobs_pkey"},
    "control/lock_job": {"jobs_pkey"},
    "control/set_request": {"jobs_pkey"},
    "inspect/chains_of": {"jobs_pkey", "finished_pkey"},
    "inspect/chains_of_pruned": {"jobs_chain", "finished_chain"},
    "enqueue/nudge_dependents": {"dependencies_open"},
    "enqueue/delete_resurrected": {"jobs_pkey", "finished_pkey", "dependencies_pkey"},
    "inspect/get": {"jobs_pkey", "finished_pkey"},
    "inspect/jobs_live": {"jobs_pkey"},
    "inspect/jobs_over": {"finished_pkey"},
    "inspect/tagged_live": {"jobs_pkey"},
    "inspect/tagged_over": {"finished_pkey"},
    "inspect/targets": {"jobs_line", "jobs_holder"},
    "erase/traces": {"dependencies_copies"},
    "inspect/chain": {"jobs_pkey", "jobs_chain", "finished_pkey", "finished_chain"},
    "enqueue/insert": set[str](),
    "lease/requests": {"jobs_pkey"},
    "lease/progress": {"jobs_pkey"},
    "maintenance/work_ahead": {"jobs_claim", "jobs_leased", "jobs_due", "jobs_start_by"},
    "claim/queue_names": {"jobs_claim"},
    "control/lock_chains": {"jobs_pkey", "jobs_chain"},
    "control/waiting_chains": {"dependencies_open", "jobs_pkey"},
    "promote/awaited_chains": {"dependencies_open"},
    "enqueue/reachable_chains": {"jobs_pkey", "jobs_chain", "dependencies_pkey"},
    "control/chain_ids": {"jobs_pkey", "jobs_chain", "finished_pkey", "finished_chain"},
    "inspect/last_jobs": {"jobs_pkey", "jobs_chain", "finished_pkey", "finished_chain"},
    "control/delete_jobs": {"jobs_pkey", "finished_pkey", "dependencies_pkey"},
    "limits/next_groups": {"jobs_group", "jobs_claim"},
    "limits/claim_groups": {"jobs_group", "jobs_claim", "jobs_pkey"},
}
#: Either index will do.
EITHER = {"claim/queue_names": {"jobs_claim", "jobs_tasks"}}
BIG = re.compile(r"jobs|finished_\d+|dependencies")


@dataclass(repr=False)
class Plan:
    """The work of the server for one statement."""

    query: Query
    nodes: list[dict[str, Any]]

    @property
    def buffers_found(self) -> int:
        """How many buffers were looked at to find the rows."""
        return _buffers(self.nodes[0]) - self.buffers_written

    @property
    def buffers_written(self) -> int:
        """How many to write them, index entries included: what the nodes that modify have beyond what they are fed."""
        writers = [node for node in self.nodes if node["Node Type"] == "ModifyTable"]
        return sum(_buffers(node) - _buffers(_fed_by(node)) for node in writers)

    @property
    def partitions(self) -> set[str]:
        """Partitions that were looked into."""
        parts = [node for node in self.nodes if node.get("Relation Name", "").startswith("finished_")]
        return {node["Relation Name"] for node in parts if node["Actual Loops"] and _buffers(node)}

    @property
    def walked(self) -> set[str]:
        """Big tables that were read from end to end. Today's partition holds a few hundred rows and is none of them."""
        scans = [
            node for node in self.nodes if node["Node Type"] == "Seq Scan" and BIG.fullmatch(node["Relation Name"])
        ]
        return {node["Relation Name"] for node in scans if _rows_read(node) > 2000}

    @property
    def indexes(self) -> set[str]:
        """Indexes of the big tables; those of partitions by the name that their parent's has."""
        names = {re.sub(r"_\d{8}_", "_", n["Index Name"]) for n in self.nodes if "Index Name" in n}
        return {
            re.sub(r"_idx$", "", name) for name in names if name.startswith(("jobs_", "finished_", "dependencies_"))
        }

    def __str__(self) -> str:
        return "\n".join("  " + _shown(node) for node in self.nodes)


def _rows_read(node: dict[str, Any]) -> float:
    return float(node["Actual Loops"] * (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)))


def _buffers(node: dict[str, Any]) -> int:
    return int(node["Shared Hit Blocks"] + node["Shared Read Blocks"])


def _fed_by(node: dict[str, Any]) -> dict[str, Any]:
    child: dict[str, Any]
    (child,) = [child for child in node["Plans"] if child["Parent Relationship"] == "Outer"]
    return child


def _shown(node: dict[str, Any]) -> str:
    names = [node.get(key) for key in ("Node Type", "Relation Name", "Index Name", "Index Cond", "Filter")]
    return f"{' | '.join(str(n) for n in names if n)} rows={node.get('Actual Rows')} loops={node.get('Actual Loops')}"


@dataclass
class Explainer:
    """A connection for flows, which notes how the server would run each statement before it runs it."""

    raw: psycopg.Connection[Any]
    schema: str
    generic: bool
    clock: Clock | None = None
    plans: list[Plan] = field(default_factory=list)

    def run(self, flow: Callable[..., Flow[R]], *args: Any, **kwargs: Any) -> R:
        return drive(flow(*args, **kwargs), self)[0]

    def begin(self) -> None:
        """One transaction for all flows: it is undone in the end."""

    def execute(self, query: Query) -> list[Row]:
        params = bound(values(query, self.clock))
        (text,) = texts(query.name, "postgres", "dollar", self.schema, self.clock is not None)
        literals = [sql.Literal(value) for value in text.numbered(params)]
        with self.raw.transaction(force_rollback=True):
            self.plans.append(self._explain(query, text.sql, literals))
        (text,) = texts(query.name, "postgres", "pyformat", self.schema, self.clock is not None)
        cursor = self.raw.execute(text.sql, params)
        return cursor.fetchall() if cursor.description else []

    def _explain(self, query: Query, text: str, values: list[sql.Literal]) -> Plan:
        """Prepared, with a plan made for any parameters or for these."""
        mode = "force_generic_plan" if self.generic else "force_custom_plan"
        self.raw.execute(f"set local plan_cache_mode = {mode}")
        name = f"s_{uuid.uuid4().hex}"
        self.raw.execute(f"prepare {name} as {text}".encode())
        arguments = sql.SQL("({})").format(sql.SQL(", ").join(values)) if values else sql.SQL("")
        asked = sql.SQL("explain (analyze, buffers, format json) execute {} {}").format(sql.Identifier(name), arguments)
        row = self.raw.execute(asked).fetchone()
        self.raw.execute(f"deallocate {name}")
        assert row is not None
        return Plan(query, list(_walk(row[0][0]["Plan"])))


def _walk(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _walk(child)


@contextmanager
def explaining(store: PostgresStore, *, generic: bool) -> Iterator[Explainer]:
    with psycopg.connect(store._url) as raw:
        yield Explainer(raw, store.quoted, generic)
        raw.rollback()


LOAD = """
-- A UUIDv7 of a moment. The counter keeps ids of one moment apart and the rest of it as random as need be.
create function {schema}.test_id(moment timestamptz, counter bigint) returns uuid language sql immutable as $$
    select (lpad(to_hex((extract(epoch from moment) * 1000)::bigint), 12, '0') || '7000' || '8'
            || lpad(to_hex(counter), 15, '0'))::uuid
$$;
select {schema}.make_partitions((now() at time zone 'UTC')::date - 8, (now() at time zone 'UTC')::date);

-- Twelve queues of a hundred, so that each of twelve claims finds one as it was made, and one for everything else.
insert into {schema}.jobs (id, state, queue, task, priority, rank, payload, run_at, max_attempts, chain, created_at)
select id, 'queued', case when n <= 1200 then 'fresh ' || n % 12 else 'default' end, 'race', n % 3, -(n % 3), '{}',
       now(), 4, id, now()
from (select {schema}.test_id(now(), n) as id, n from generate_series(1, 1800) as n) as made;

-- A queue that is shared: a hundred thousand of one key, and behind them thirty others with ten each.
insert into {schema}.jobs (id, state, queue, task, priority, rank, group_key, payload, run_at, max_attempts, chain,
                           created_at)
select id, 'queued', 'shared', 'race', 0, 0, case when n <= 100000 then 'big' else 'small ' || n % 30 end, '{}', now(),
       4, id, now()
from (select {schema}.test_id(now(), 4000000 + n) as id, n from generate_series(1, 100300) as n) as made;

-- Up to the last midnight, so that the partitions are as full at any time of the day. (offset 0: else the id would be
-- made again for each column that has it.)
insert into {schema}.finished (id, state, queue, task, priority, payload, attempt, max_attempts, losses, version,
                               worker, token, chain, position, created_at, run_at, started_at, finished_at)
select id, 'succeeded', 'default', 'race', 0, '{}', 1, 4, 0, 1, 'w', id, id, 0, moment, moment, moment, moment
from (select {schema}.test_id(moment, n) as id, moment
      from (select date_trunc('day', now(), 'UTC') - n * interval '0.6 seconds' as moment, n
            from generate_series(1000000, 1, -1) as n offset 0) as moments offset 0) as made;

insert into {schema}.jobs (id, state, wait, queue, task, priority, rank, target, payload, run_at, max_attempts, chain,
                           created_at)
select id, 'pending', 'time', 'default', 'race', 0, 0, case n % 10 when 0 then 'target ' || n % 100 end, '{}',
       now() + n * interval '10 seconds', 4, id, now()
from (select {schema}.test_id(now(), 1000000 + n) as id, n from generate_series(1, 100000) as n) as made;

insert into {schema}.jobs (id, state, wait, queue, task, priority, rank, target, payload, run_at, max_attempts, chain,
                           created_at)
select id, 'pending', 'target', 'default', 'race', 0, 0, 'target ' || n % 10, '{}', now(), 4, id, now()
from (select {schema}.test_id(now(), 2000000 + n) as id, n from generate_series(1, 50000) as n) as made;

-- Half of what they wait for is finished, half of it has its time ahead.
insert into {schema}.jobs (id, state, wait, waits, queue, task, priority, rank, payload, run_at, max_attempts, chain,
                           created_at)
select id, 'pending', 'jobs', 1, 'default', 'race', 0, 0, '{}', now(), 4, id, now()
from (select {schema}.test_id(now(), 3000000 + n) as id from generate_series(1, 50000) as n) as made;
insert into {schema}.dependencies (job, depends_on, position)
select {schema}.test_id(now(), 3000000 + n), case n % 2
       when 0 then {schema}.test_id(now(), 1000000 + n)
       else {schema}.test_id(date_trunc('day', now(), 'UTC') - n * interval '0.6 seconds', n) end, 0
from generate_series(1, 50000) as n;
"""


def _is_newest(raw: psycopg.Connection[Any]) -> bool:
    return raw.info.server_version >= 180000


def _has_a_million(url: str) -> bool:
    with psycopg.connect(url) as raw:
        return _is_newest(raw)


def load(store: PostgresStore) -> None:
    """In one transaction, so that now() is one moment, and before autovacuum can look at any of it."""
    with psycopg.connect(store._url) as raw:
        for table in ("jobs", "dependencies"):
            raw.execute(f"alter table {store.quoted}.{table} set (autovacuum_enabled = false)".encode())
        # In the fast suite and on older servers a fifth of that, in a fifth of the time.
        million = _is_newest(raw) and rounds(200_000, all=1_000_000) == 1_000_000
        scaled = LOAD if million else LOAD.replace("(1000000, 1, -1)", "(200000, 1, -1)").replace("'0.6 sec", "'3 sec")
        raw.execute(scaled.replace("{schema}", store.quoted).encode())
        find = "select inhrelid::regclass::text from pg_inherits where inhparent = %s::regclass"
        for (part,) in raw.execute(find, [f"{store.quoted}.finished"]).fetchall():
            raw.execute(f"alter table {part} set (autovacuum_enabled = false)".encode())


def claim(on: Explainer, want: int, *scopes: Scope, check_flags: bool = True) -> list[Claimed]:
    token = str(uuid.uuid4())
    return on.run(
        claim_flows.claim,
        "w",
        token,
        scopes,
        ["race"],
        want=want,
        lease=30.0,
        random=lambda: 0.5,
        check_flags=check_flags,
    ).jobs


def everything(on: Explainer, now: float) -> None:
    """Every verb of a worker, of upkeep and of a producer, and the commonest questions."""
    jobs = claim(on, 100, Scope("default", 100))
    (rank, seq) = jobs[-1].rank_and_seq
    ranges = ((-101, 0, rank, 0), (rank, seq, 101, 0))
    jobs += claim(on, 100, Scope("default", 100, ranges), Scope("empty", 100))
    on.run(control.set_queue, "default", max_running=300)
    jobs += claim(on, 40, Scope("default", 40))
    jobs += claim(on, 10, Scope("default", 10, by_task=True))
    assert len(jobs) == 250
    assert on.run(look.queued_tasks, ["default", "empty"]) == {"default": {"race"}}
    assert len(on.run(lease.renew, "w", [job.lease for job in jobs], lease=30.0).renewed) == 250
    assert len(on.run(lease.pending_requests, [job.lease for job in jobs]).locked) == 250
    on.run(lease.progress, {job.lease: Progress(1) for job in jobs[:10]})
    _settle(on, jobs[:200])
    on.clock = lambda: now + 100
    on.run(maintenance.record_pulse, grace=0.0)
    assert len(on.run(lease.reap, lambda: 0.5)) == 50
    on.clock = None
    _promote(on, now)
    _enqueue(on)
    _chains(on, [job.id for job in jobs[:100]])
    _look(on, jobs[0].id)
    _share(on)


def _settle(on: Explainer, jobs: list[Claimed]) -> None:
    for job in jobs[150:155]:
        on.run(control.cancel, job.id)
    done = [(job.lease, Succeeded("1")) for job in jobs[:100]]
    rest = [(job.lease, Raised("boom")) for job in jobs[100:150]] + [(job.lease, Released()) for job in jobs[150:]]
    states = [one.state for one in on.run(settle.settle, [*done, *rest], lambda: 0.5)]
    assert states == [State.SUCCEEDED] * 100 + [State.PENDING] * 50 + [State.CANCELLED] * 5 + [State.QUEUED] * 45
    on.run(settle.settle, done[:10], lambda: 0.5)  # repeated: looked up


def _promote(on: Explainer, now: float) -> None:
    nudges = (
        f"(select 'job', job::text from {on.schema}.dependencies limit 500) union all "
        f"(select 'chain', depends_on::text from {on.schema}.dependencies offset 1000 limit 10) union all "
        "select 'target', 'target ' || n from generate_series(0, 9) as n"
    )
    on.raw.execute(f"insert into {on.schema}.nudges (kind, key) {nudges}".encode())
    on.clock = lambda: now + 3600
    assert len(on.run(promote.promote).promoted) > 100
    on.clock = None


def _enqueue(on: Explainer) -> None:
    (blocker,) = on.run(enqueue.enqueue, [draft()])
    on.run(enqueue.enqueue, [draft() for _ in range(100)])
    named: Draft[Any] = Draft(draft().id, "race", "{}", depends_on=(blocker.id,), unique="key", fresh=False)
    on.run(enqueue.enqueue, [named])
    later: Draft[Any] = Draft(draft().id, "race", "{}", depends_on=(blocker.id,), delay=3600.0)
    on.run(enqueue.enqueue, [later])
    on.run(control.complete, blocker.id, "null", None)
    on.run(promote.promote)


def _chains(on: Explainer, finished: list[str]) -> None:
    blocker, other = on.run(enqueue.enqueue, [draft(), draft()])
    on.run(enqueue.enqueue, [Draft(draft().id, "race", "{}", depends_on=(blocker.id,))])
    following: Draft[Any] = Draft(draft().id, "race", "{}", depends_on=(other.id,))
    on.run(control.complete, blocker.id, None, following, chain=True)
    on.run(promote.promote)
    assert len(on.run(chains.delete_chain, blocker.id, dependents=True)) == 3
    assert len(on.run(look.ends, finished).ended) == len(finished)
    assert on.run(look.chains_of, [draft().id]) == {}


def _look(on: Explainer, finished: str) -> None:
    on.run(maintenance.work_ahead, queued=True)
    assert "default" in on.run(look.queue_names)
    seen = len(on.plans)
    assert "default" in {info.queue for info in on.run(look.queues)}
    for plan in on.plans[seen:]:
        assert plan.buffers_found < 6000, f"{plan.buffers_found} buffers to look at queues:\n{plan}"
    page = on.run(search.jobs, Filter(), limit=50)
    on.run(search.jobs, Filter(), limit=50, cursor=page.cursor)
    seen = len(on.plans)
    on.run(search.jobs, Filter(task="rare"), limit=50, cursor=page.cursor, scan=10_000)
    for plan in on.plans[seen:]:
        assert plan.buffers_found < 30_000, f"{plan.buffers_found} buffers to look at 10,000 jobs:\n{plan}"
    (tagged,) = on.run(enqueue.enqueue, [Draft(draft().id, "race", "{}", tags=("rare",))])
    assert [job.id for job in on.run(search.jobs, Filter(tag="rare"), limit=50).jobs] == [tagged.id]
    assert on.run(erase.erase_jobs, [tagged]) == 1
    assert on.run(targets.targets, limit=50).targets
    assert on.run(look.get, page.jobs[0].id)
    found = on.run(look.get, finished)
    assert found is not None
    assert found.state is State.SUCCEEDED
    on.run(look.chain, finished)
    (queued,) = on.run(enqueue.enqueue, [draft()])
    on.run(look.explain, queued.id)
    on.run(claim_one.claim_one, "w", str(uuid.uuid4()), queued.id, {"race": None}, lease=30.0, random=lambda: 0.5)


def _share(on: Explainer) -> None:
    """One key has a backlog, and may start one job: those of the others are found as if it had none."""
    on.run(control.set_queue, "shared", fair=True, rate=("big", 1, 60.0))
    for _ in range(2):
        seen = len(on.plans)
        assert len(claim(on, 10, Scope("shared", 10))) == 10
        plans = {plan.query.name: plan for plan in on.plans[seen:]}
        shares = plans["limits/claim_groups"]
        assert shares.buffers_found < 300, f"{shares.buffers_found} buffers to find the jobs:\n{shares}"
        keys = plans["limits/next_groups"]
        assert keys.buffers_found < 4000, f"{keys.buffers_found} buffers to find the keys:\n{keys}"


def problems(plans: list[Plan]) -> list[str]:
    found = []
    for plan in plans:
        name = plan.query.name
        if plan.walked and name in INTENDED:
            found.append(f"{name} reads all of {sorted(plan.walked)}\n{plan}")
        elif name in INTENDED and plan.indexes != INTENDED[name] and not plan.indexes <= EITHER.get(name, set()):
            found.append(f"{name} uses {sorted(plan.indexes)}, not {sorted(INTENDED[name])}\n{plan}")
    found += [f"{name} was not seen" for name in INTENDED.keys() - {plan.query.name for plan in plans}]
    return found


def check_claim(store: PostgresStore, queues: list[str], *, generic: bool) -> None:
    """100 jobs. To find them costs little. To write them costs what it must: for each a new version of the row (two or
    three buffers), and its entries in `jobs_pkey`, which is three levels deep here, and in `jobs_leased`.

    The cheapest of a few claims counts, each on its own connection and queue. A server also counts the buffers of its
    catalogs, which a connection reads again when other sessions changed tables: 800 more, once in twenty claims.
    """
    plans = [_plan_of_claim(store, queue, generic=generic) for queue in queues]
    plan = min(plans, key=lambda plan: plan.buffers_found + plan.buffers_written)
    found, written = plan.buffers_found, plan.buffers_written
    assert found < 500, f"{found} buffers to find the jobs:\n{plan}"
    assert written < 1000, f"{written} buffers to write them:\n{plan}"


def _plan_of_claim(store: PostgresStore, queue: str, *, generic: bool) -> Plan:
    with explaining(store, generic=generic) as on:
        assert len(claim(on, 100, Scope(queue, 100), check_flags=False)) == 100
    (plan,) = on.plans
    return plan


def check_get(on: Explainer) -> None:
    """The id tells the partition."""
    row = on.raw.execute(f"select id::text from {on.schema}.finished limit 1".encode()).fetchone()
    assert row is not None
    assert on.run(look.get, row[0])
    (plan,) = on.plans
    partitions = plan.partitions
    assert len(partitions) == 1, f"get looks into {sorted(partitions)}\n{plan}"


def check_functions(on: Explainer) -> None:
    """EXPLAIN does not look into functions; the counters of the transaction do."""

    def walks() -> int:
        query = f"""select coalesce(sum(seq_scan), 0)::integer from pg_stat_xact_user_tables
            where schemaname = '{on.schema.strip('"')}' and relname ~ '^(jobs|finished.*|dependencies)$'"""
        row = on.raw.execute(query.encode()).fetchone()
        assert row is not None
        return int(row[0])

    on.run(control.set_queue, "default", max_running=1000)
    jobs = claim(on, 20, Scope("default", 20), check_flags=False)
    before = walks()
    on.raw.execute(f"select * from {on.schema}.lock_limits('{{default}}')".encode())
    on.run(settle.settle_succeeded, sorted(job.lease for job in jobs), ["null"] * len(jobs))
    assert walks() == before, "a function reads a whole table"


def analyse(store: PostgresStore) -> None:
    with psycopg.connect(store._url, autocommit=True) as raw:
        for table in ("jobs", "finished", "dependencies"):
            raw.execute(f"analyze {store.quoted}.{table}".encode())


@pytest.mark.partitioned
@pytest.mark.timeout(300)  # half a minute of work for one core, which others may want as well
def test_every_statement_uses_its_indexes_among_many_jobs(
    pg_url: str, schema: str, subtests: pytest.Subtests, pytestconfig: pytest.Config
) -> None:
    store = PostgresStore(pg_url, schema=schema)
    store.migrate()
    load(store)
    states = [(False, False), (False, True), (True, False), (True, True)]
    # In the fast suite and on older servers those two in which the planner knows the least and the most.
    all_states = pytestconfig.getoption("--all") and _has_a_million(pg_url)
    for number, (analysed, generic) in enumerate(states if all_states else states[1:3]):
        if analysed and not generic:
            analyse(store)
        state = {"analysed": analysed, "generic": generic}
        with subtests.test("claim", **state):
            check_claim(store, [f"fresh {number + 4 * n}" for n in range(3)], generic=generic)
        with subtests.test("get", **state), explaining(store, generic=generic) as on:
            check_get(on)
        with subtests.test("functions", **state), explaining(store, generic=generic) as on:
            check_functions(on)
        with subtests.test("all statements", **state), explaining(store, generic=generic) as on:
            everything(on, time.time())
            found = problems(on.plans)
            assert not found, "\n".join(found)
    store.close()


#: Statements about all live jobs, or about everything, which therefore read all of them.
READS_ALL = {
    "control/live_queues", "inspect/count_live", "inspect/count_over", "inspect/count_queues",
    "limits/refresh_queue_flags",
    "erase/traces",  # copies of results, once a hundred jobs are erased
}  # fmt: skip


def test_on_sqlite_no_statement_reads_a_whole_table_unless_it_is_asked_to(tmp_path: Path) -> None:
    store = SQLiteStore(str(tmp_path / "relet.db"))
    store.migrate()
    names = {name.removesuffix(".sqlite.sql") for name in statement_files() if name.endswith(".sqlite.sql")}
    whole = re.compile(r"SCAN (relet_)?(jobs|finished|dependencies|attempts|steps|signals|j|f|d)$")
    found: dict[str, list[str]] = {}
    with closing(sqlite3.connect(tmp_path / "relet.db")) as raw:
        for name in sorted(names - READS_ALL):
            for text in texts(name, "sqlite", "named", store.quoted):
                if text.sql.startswith("create table if not exists temp."):
                    raw.execute(text.sql)
                plan = [
                    step for *_, step in raw.execute(f"explain query plan {text.sql}", dict.fromkeys(text.names, "[]"))
                ]
                if "where false" not in text.sql and any(whole.fullmatch(step) for step in plan):
                    found[name] = plan
    store.close()
    assert found == {}
