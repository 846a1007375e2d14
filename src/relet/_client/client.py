"""The client: a program's access to its jobs. `AsyncClient` has the same names and signatures.

Each method checks its arguments and runs one flow.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Literal, ParamSpec, TypeVar, Unpack, cast, get_args, overload
from uuid import UUID

from msgspec import UNSET, UnsetType, structs

from .. import events
from .._core import payload, validate
from .._core.codecs import NO_CODECS
from .._core.decoding import decodable
from .._core.filters import FILTERS, Filter, Which
from .._core.finding import Finding
from .._core.job import Draft, Job, State
from .._core.validate import Seconds
from .._core.variants import Variant
from .._core.verbs import BULK, VERBS, BulkVerb
from .._store.doctor import examine
from .._store.flows import chains, control, enqueue, erase, inspect, maintenance, search
from .._store.flows.maintenance import Pruned
from .._store.migrate import script as migration_script
from .._store.pruning import PruneRound
from .._store.query import Flow
from .._store.store import Store
from .._tasks.codec import check_round_trip_by_type, plain_value
from .._tasks.drafts import check_drafts, storing
from .._tasks.task import TaskRegistry
from ..errors import InvalidInput, JobCancelled, JobFailed, JobNotFound, StoreRefused
from .audit import AuditAction, AuditedStore, IdempotencyKey
from .bulk import Bulk, BulkResult
from .inspection import AnyJob, Inspection, id_cursor, id_of, ids_of, run_on
from .limits import QueueLimits
from .rerun import rerun_draft
from .schedules import Schedules
from .wait import wait_for

P = ParamSpec("P")
R = TypeVar("R")

ERASED_AT_ONCE = 25  # jobs that one transaction deletes
SEARCHED_AT_ONCE = 10_000  # jobs that one search for them reads
T = TypeVar("T")

DAY = 86400.0

log = logging.getLogger("relet.store")


class Client(Inspection):
    """The jobs of one store, for synchronous code. Safe to use from any thread, and after a fork."""

    def __init__(
        self,
        tasks: TaskRegistry,
        store: Callable[[str | None], Store],
        tenant: str | None = None,
        who: str | None = None,
        key: IdempotencyKey | None = None,
    ) -> None:
        self._tasks = tasks
        self._actor = who
        self._key = key
        self._is_anonymous = who is None and key is None
        self._codecs = tasks.codecs or None
        super().__init__(store, tenant)

    def _bind(self) -> None:
        super()._bind()
        self._audited = AuditedStore(self._store, self._actor, self._key)

    @property
    def where(self) -> str:
        """The URL of the database, without its password."""
        return self._store.where

    def tenant(self, name: str) -> Client:
        """The client of a tenant, which has its own schema or SQLite file."""
        return self._like_this(Client(self._tasks, self._store_of, name, self._actor, self._key))

    def tenants(self) -> list[str]:
        """The names of the tenants that have been migrated. None for a store in memory.

        On PostgreSQL these are the schemas that begin with that of the app and an underscore.
        """
        return self._store_of(None).tenants()

    def acting_as(self, who: str) -> Client:
        """A client that acts for an operator: `audit` lists its changes under that name."""
        who = validate.text("who", who)
        return self._like_this(Client(self._tasks, self._store_of, self._tenant, who, self._key))

    def idempotent(self, key: str, /, *, request: str | None = None) -> Client:
        """A client for one change. Repeated under the same key within a day, the change has no further effect, and
        returns what the first call returned. With `request`, a key that was used for another request raises
        IdempotencyConflict.

        A change is safe against a lost reply without this. A key is for callers that repeat the call themselves.
        """
        checked = IdempotencyKey(validate.text("key", key), request)
        return self._like_this(Client(self._tasks, self._store_of, self._tenant, self._actor, checked))

    def replica(self) -> Client:
        """A client that reads lists and figures from the replica of the app (`App(replica=...)`), which may be a little
        behind: `jobs`, `count`, `queues`, `targets`, `target`, `workers`, `failures`, `stats`, `totals` and `audit`.

        All else it does on the primary, and these, too, while the replica is away or too far behind, or if the app has
        none.
        """
        client = self._like_this(Client(self._tasks, self._store_of, self._tenant, self._actor, self._key))
        client._reads_replica = True
        return client

    def _without_codecs(self) -> Client:
        """The same client for operators: it encodes the values that it stores, and decodes none that it returns."""
        client = Client(self._tasks, self._store_of, self._tenant, self._actor, self._key)
        self._like_this(client)._codecs = NO_CODECS
        return client

    def _like_this(self, client: Client) -> Client:
        client._codecs, client._reads_replica = self._codecs, self._reads_replica
        return client

    def enqueue(self, draft: Draft[R], /, *, connection: Any = None, tenant: str | None = None) -> Job[R]:
        """Store a draft as a job. With `connection`, in your transaction: the job exists once you commit.

        If a job with the same id or unique key exists, that job is returned, with `existing` set.
        """
        return self.enqueue_many([draft], connection=connection, tenant=tenant)[0]

    def enqueue_many(
        self, drafts: Iterable[Draft[R]], /, *, connection: Any = None, tenant: str | None = None
    ) -> list[Job[R]]:
        """Store drafts, all or none, and return their jobs in the same order. They may name each other in `depends_on`.

        All of them are one transaction, sent in parts. A job takes about half a KiB of memory beside its payload, so a
        hundred thousand at once are fine.
        """
        client = self if tenant is None or tenant == self._tenant else self.tenant(tenant)
        with storing(self._tasks.telemetry, drafts) as batch:
            if connection is not None:
                batch.jobs = run_on(client._store, connection, enqueue.enqueue, batch.drafts)
            elif batch.drafts:
                batch.jobs = client._insert(batch.drafts)
        if connection is None and self._tasks.events.wanted(events.Enqueued):
            for job in batch.jobs:
                if not job.existing:
                    client._emit(events.Enqueued, job)
        return decodable(batch.jobs, self._codecs)

    def _insert(self, drafts: list[Draft[R]]) -> list[Job[R]]:
        replaces = any(draft.replace for draft in drafts)
        if self._is_anonymous and not replaces:  # the drafts have ids, so a repeated try needs no other
            return self._store.run(enqueue.enqueue_directly, drafts)
        action = AuditAction("enqueue", drafts[0].id, {"task": drafts[0].task, "jobs": len(drafts)})
        run = self._audited.change if replaces else self._audited.insert
        return run(action, enqueue.enqueue_directly, drafts)

    def rerun(self, job: AnyJob, /, *, arguments: Mapping[str, Any] | None = None) -> Job[Any]:
        """Enqueue a new job with the arguments of this one, in any state; the job itself stays as it is.

        `arguments` replaces some of the arguments. The new job has the queue, priority, target, group and tags of the
        old one, and its id as `rerun_of`. It waits for nothing but its target, and has no unique key.
        """
        found = self._store.run(inspect.get, id_of(job))
        if found is None:
            raise JobNotFound(id_of(job))
        draft = rerun_draft(self._tasks, found, arguments)
        action = AuditAction("rerun", found.id, {"job": draft.id, "edited": sorted(arguments or ())})
        (new,) = self._audited.change(action, enqueue.enqueue_directly, [draft])
        self._emit(events.Enqueued, new)
        return decodable(new, self._codecs)

    def wait(self, job: AnyJob, /, *, timeout: Seconds = 60.0) -> Job[Any]:
        """Wait until the job's chain has ended or failed. Returns the last job of the chain."""
        return self.wait_many([job], timeout=timeout)[0]

    def wait_many(self, jobs: Iterable[AnyJob], /, *, timeout: Seconds = 60.0) -> list[Job[Any]]:
        """Wait until the chains of all these jobs have ended or failed. Returns the last job of each, in order.

        One statement reads all of them, so thousands cost little more than one.
        """
        return decodable(wait_for(self._store, ids_of(jobs), validate.seconds("timeout", timeout)), self._codecs)

    @overload
    def result(self, job: Job[R], /, *, timeout: Seconds = 60.0) -> R: ...
    @overload
    def result(self, job: str | UUID, /, *, timeout: Seconds = 60.0) -> Any: ...
    def result(self, job: AnyJob, /, *, timeout: Seconds = 60.0) -> Any:
        """Wait for the job's chain and return its result, or raise JobFailed, JobCancelled or WaitTimeout."""
        return self.results([id_of(job)], timeout=timeout)[0]

    @overload
    def results(
        self, jobs: Iterable[Job[R]], /, *, timeout: Seconds = 60.0, return_exceptions: Literal[False] = False
    ) -> list[R]: ...
    @overload
    def results(
        self, jobs: Iterable[Job[R]], /, *, timeout: Seconds = 60.0, return_exceptions: bool
    ) -> list[R | JobFailed | JobCancelled]: ...
    @overload
    def results(
        self, jobs: Iterable[AnyJob], /, *, timeout: Seconds = 60.0, return_exceptions: bool = False
    ) -> list[Any]: ...
    def results(
        self, jobs: Iterable[AnyJob], /, *, timeout: Seconds = 60.0, return_exceptions: bool = False
    ) -> list[Any]:
        """Wait for the chains of all these jobs and return their results, in the same order.

        If some did not succeed, the JobFailed or JobCancelled of the first of them is raised. With `return_exceptions`,
        each exception is returned in place of the result. WaitTimeout is raised either way.
        """
        return self._ends(self.wait_many(jobs, timeout=timeout), return_exceptions)

    def _ends(self, lasts: list[Job[Any]], return_exceptions: bool) -> list[Any]:
        ends = [self._end(last) for last in lasts]
        if not return_exceptions:
            for end in ends:
                if isinstance(end, JobFailed | JobCancelled):
                    raise end
        return ends

    def cancel(self, job: AnyJob, /, *, chain: bool = False) -> Job[Any]:
        """Cancel a job. A running handler is asked to stop: the job is cancelled as soon as its attempt ends.

        With `chain`, the job of its chain that has not ended. Returns the job that was changed.
        """
        return self._act("cancel", job, control.cancel, chain=chain)

    def pause(self, job: AnyJob, /) -> Job[Any]:
        """Pause a job until it is resumed. A running handler is asked to stop."""
        return self._act("pause", job, control.pause)

    def resume(self, job: AnyJob, /) -> Job[Any]:
        """Run a paused or failed job again, with all its attempts restored."""
        return self._act("resume", job, control.resume)

    def run_now(self, job: AnyJob, /) -> Job[Any]:
        """Make a job that waits for its time, or for a retry, due now."""
        return self._act("run_now", job, control.run_now)

    def complete(
        self,
        job: AnyJob,
        result: Any = None,
        /,
        *,
        continue_with: Draft[Any] | None = None,
        chain: bool = False,
        connection: Any = None,
    ) -> Job[Any]:
        """Complete a job with this result without running it, or continue its chain with another job.

        With `chain`, the job of its chain that has not ended. With `connection`, in your transaction: the job has
        succeeded once you commit. A running job cannot be completed that way. Returns the job that was changed.
        """
        job_id, text, options = self._completion(job, result, continue_with, chain)
        if connection is not None:
            self._prepare_to_complete(job_id, chain)
            done = run_on(self._store, connection, control.complete, job_id, text, **options, theirs=True)
            return decodable(done, self._codecs)
        return self._act("complete", job_id, control.complete, text, **options)

    def delete(self, job: AnyJob, /, *, chain: bool = False, dependents: bool = False) -> None:
        """Delete a job and its history, whatever its state.

        With `chain`, all jobs of its chain; HasDependents is raised while jobs of other chains depend on it. With
        `dependents`, their chains are deleted as well, and those that depend on them.
        """
        job_id = id_of(job)
        if dependents and not chain:
            raise InvalidInput("dependents wait for chains: call delete(job, chain=True, dependents=True)")
        if chain:
            gone = self._change("delete", chains.delete_chain, job_id, dependents=dependents)
        elif self._change("delete", control.delete, job_id):
            gone = [job_id]
        else:
            raise JobNotFound(job_id)
        for id in gone:
            self._tasks.events.emit(events.Deleted(job_id=id, state=None, tenant=self._tenant))

    def signal(self, job: AnyJob, name: str, value: Any = None, /, *, connection: Any = None) -> bool:
        """Send a job a signal that its handler waits for, or will wait for (`attempt.wait_for`). With `connection`, in
        your transaction. False: a signal of this name was sent before, and its value is kept.
        """
        signal = signal_of(self._tasks, job, name, value)
        if connection is not None:
            return run_on(self._store, connection, control.signal, *signal)
        return self._audited.change(AuditAction("signal", signal[0], {"name": name}), control.signal, *signal)

    def bulk(
        self,
        verb: BulkVerb,
        /,
        *,
        limit: int | None = None,
        seconds: Seconds | None = None,
        cursor: str | None = None,
        on_step: Callable[[BulkResult], object] | None = None,
        **which: Unpack[Which],
    ) -> BulkResult:
        """Apply a verb (`BulkVerb`) to all jobs that match.

        The filters are those of `jobs`, and at least one is needed. Without `state`, all states that allow the verb
        match. It works in small transactions, newest job first, up to `limit` jobs and `seconds`, and calls `on_step`
        after each. Jobs that no longer allow the verb count as refused. If it stopped early, pass its
        `cursor` to continue.
        """
        verb = cast(BulkVerb, validate.one_of("verb", verb, tuple(BULK)))
        where = self._filter(which)
        if where == Filter():
            raise InvalidInput(f"bulk needs at least one filter; there are {', '.join(FILTERS)}")
        left = None if limit is None else validate.integer("limit", limit, 0, 2**31 - 1)
        where = where if where.state else structs.replace(where, state=tuple(sorted(VERBS[verb].sources)))
        time_limit = None if seconds is None else validate.seconds("seconds", seconds)
        return Bulk(verb, where, which, left, time_limit, on_step).run(self._audited, id_cursor(cursor))

    def erase(self, *, tag: str | None = None, group: str | None = None, target: str | None = None) -> int:
        """Delete all jobs with this tag, group or target, in any state, and what other tables hold of them.

        Workers lose the leases of those that run. Copies of their results, unique keys, stored answers and the details
        of audited actions go, too. Returns how many jobs were deleted. Repeat the call if it raises: it goes on.
        """
        which: Which = {"tag": tag, "group": group, "target": target}
        where = self._filter(which)
        if where == Filter():
            raise InvalidInput("erase needs a tag, a group or a target")
        values = {name: value for name, value in which.items() if isinstance(value, str)}
        since = self._store.run(inspect.clock)
        total = self._erase(where, next(iter(values)))
        total += self._erase(structs.replace(where, created_from=since - 1.0), next(iter(values)))  # enqueued meanwhile
        for value in values.values():
            self._erase_value(value)
        self._audited.note(AuditAction("erase", " and ".join(values), {"jobs": total}))
        return total

    def _erase(self, where: Filter, subject: str) -> int:
        """Delete jobs in small transactions: each search reads so many jobs, and each deletion deletes so many."""
        cursor, total = None, 0
        while True:
            page = self._store.run(search.jobs, where, limit=ERASED_AT_ONCE, cursor=cursor, scan=SEARCHED_AT_ONCE)
            if page.jobs:  # then search the same range again: none may be left in it
                total += self._audited.step(AuditAction("erase", subject), erase.erase_jobs, page.jobs)
            elif page.cursor is None:
                return total
            else:
                cursor = page.cursor

    def _erase_value(self, value: str) -> None:
        self._store.run(erase.erase_group, value)
        beyond: int | None = 0
        while beyond is not None:
            beyond = self._store.run(erase.erase_audited, value, beyond)

    @property
    def schedules(self) -> Schedules:
        """The schedules of this store."""
        return Schedules(self._audited, self._codecs)

    def pause_queue(self, queue: str, /) -> None:
        """Stop claims from a queue. Running jobs go on."""
        self._audited.change(
            AuditAction("pause_queue", str(queue)), control.set_queue, validate.name("queue", queue), paused=True
        )

    def resume_queue(self, queue: str, /) -> None:
        """Allow claims from a queue again."""
        self._audited.change(
            AuditAction("resume_queue", str(queue)), control.set_queue, validate.name("queue", queue), paused=False
        )

    def limit_queue(
        self,
        queue: str | None,
        /,
        *,
        max_running: int | UnsetType | None = UNSET,
        rate: int | UnsetType | None = UNSET,
        per: Seconds | None = None,
        group: str | None = None,
        fair: bool | None = None,
    ) -> None:
        """Limit a queue (None: all queues together). Limits that are not passed stay as they are; None removes one.

        `max_running`: how many jobs may run at once. `rate` and `per`: how many jobs may start within any `per`
        seconds. With `group` they limit the jobs enqueued with this group, with `group="*"` those of each group
        separately.
        `fair`: groups take turns, whatever the order in which their jobs were enqueued.
        """
        limits = QueueLimits(queue=queue, max_running=max_running, rate=rate, per=per, group=group, fair=fair)
        arguments = limits.checked()
        action = AuditAction("limit_queue", arguments["queue"], limits.details())
        self._audited.change(action, control.set_queue, **arguments)
        if group is not None or fair:
            while self._store.run(control.backfill_group, arguments["queue"]):
                pass  # in small transactions, for which no claim waits

    def prune(
        self,
        *,
        keep_finished: Seconds = 7 * DAY,
        keep_failed: Seconds = 30 * DAY,
        keep_payloads: Seconds | None = None,
        on_step: Callable[[Pruned], object] | None = None,
    ) -> Pruned:
        """Delete jobs that ended longer ago than this, in small transactions. `on_step` is called after each.

        `keep_payloads`: jobs that succeeded or were cancelled longer ago lose their payloads, results, errors, steps
        and signals, while their history stays.
        """
        keep_finished = validate.seconds("keep_finished", keep_finished)
        keep_failed = validate.seconds("keep_failed", keep_failed)
        keep_payloads = None if keep_payloads is None else validate.seconds("keep_payloads", keep_payloads)
        ages = {"keep_finished": keep_finished, "keep_failed": keep_failed}
        action = AuditAction(
            "prune", "jobs", ages if keep_payloads is None else ages | {"keep_payloads": keep_payloads}
        )
        self._audited.note(action)  # before: pruning takes many transactions, and may be interrupted between two
        self._make_partitions()
        run = partial(self._audited.step, action)
        prune = PruneRound(self._store, run, keep_finished, keep_failed, keep_payloads=keep_payloads)
        for so_far in prune.steps():
            if on_step is not None:
                on_step(so_far)
        return prune.total

    def _make_partitions(self) -> None:
        try:
            self._store.run(maintenance.make_partitions)
        except StoreRefused as error:  # pruning needs fewer permissions
            log.warning("No permission to make partitions for the days ahead: %s", error)

    def doctor(self) -> list[Finding]:
        """Check the store for problems. Each finding says what was found and what to do.

        It changes nothing, takes no lock that others wait for, and does not raise for a problem: a check that fails is
        a finding too.
        """
        return examine(self._store)

    def migrate(self, *, connection: Any = None, variant: Variant | None = None) -> list[int]:
        """Bring the schema up to date. Returns the versions applied. Safe when several processes call it at once.

        With `connection`, in your transaction: the tables exist once you commit. `variant`: of a new schema in
        PostgreSQL, `postgres` or `rows`; None: by what the server can do.
        """
        self._want(variant)
        if connection is not None:
            from .._store.adapters.drivers import migrate_on

            return migrate_on(self._store, connection)
        applied = self._store.migrate()
        if applied:
            self._audited.note(AuditAction("migrate", "schema", {"versions": applied}))
        return applied

    def migration_sql(self, *, since: int = 0, variant: Variant | None = None) -> str:
        """The migrations after version `since` as SQL, in one transaction, for programs that run SQL."""
        self._want(variant)
        dialect = variant or self._store.dialect
        return migration_script(dialect, self._store.quoted, validate.integer("since", since, 0, 9999))

    def _want(self, variant: Variant | None) -> None:
        if variant is not None:
            validate.one_of("variant", variant, get_args(Variant))
            if self._store.dialect == "sqlite":
                raise InvalidInput("variant is for PostgreSQL: a SQLite file has one kind of schema")
            self._store.wanted_variant = variant

    def _act(self, verb: str, job: AnyJob, flow: Callable[..., Flow[Job[Any]]], *args: Any, **options: Any) -> Job[Any]:
        """Apply a verb to one job, and emit its event."""
        changed = decodable(self._change(verb, flow, id_of(job), *args, **options), self._codecs)
        return self._emit(getattr(events, VERBS[verb].event), changed)

    def _change(self, verb: str, flow: Callable[..., Flow[T]], job_id: str, *args: Any, **options: Any) -> T:
        return self._audited.change(AuditAction(verb, job_id), flow, job_id, *args, **options)

    def _emit(self, kind: type[events.JobEvent], job: Job[Any]) -> Job[Any]:
        """Emit an event about a change that was committed. Returns the job."""
        if self._tasks.events.wanted(kind):
            event = kind(job_id=job.id, state=job.state, task=job.task, queue=job.queue, tenant=self._tenant)
            self._tasks.events.emit(event)
        return job

    def _completion(
        self, job: AnyJob, result: Any, continue_with: Draft[Any] | None, chain: bool
    ) -> tuple[str, str | None, dict[str, Any]]:
        """The arguments of `complete`, checked: id, result and the options of the flow."""
        if continue_with is not None:
            check_drafts([continue_with])
        text, encode = self._encode(result)
        return id_of(job), text, {"continue_with": continue_with, "chain": chain, "encode": encode}

    def _prepare_to_complete(self, job_id: str, chain: bool) -> None:
        """Make sure that an old job can end in a transaction that cannot be repeated."""
        with suppress(JobNotFound):  # it is in a transaction that is still open, so it is not old
            self._store.prepare_to_finish(self.chain(job_id).last.id if chain else job_id)

    def _encode(self, result: Any) -> tuple[str | None, Callable[[str], str] | None]:
        """A result as JSON, nothing for None; and a function that checks and encodes it for the task of the job."""
        if result is None:
            return None, None
        text = payload.encode(result, path="result", limit=self._tasks.payload_limit, hook=plain_value)

        def encode(name: str) -> str:
            task = self._tasks._tasks_by_any_name.get(name)
            return self._tasks._encode(text, name) if task is None else task.encode_result(result)

        return text, encode

    def _end(self, job: Job[Any]) -> Any:
        """The result of a job, converted by the annotation of its task if this app has the task; or its error."""
        if job.state is State.FAILED:
            return JobFailed(job.id, job.error)
        if job.state is State.CANCELLED:
            return JobCancelled(job.id)
        if job.result_json is None:
            return None
        task = self._tasks._tasks_by_any_name.get(job.task)
        if task is None:
            return payload.decode(self._tasks.codecs.decode(job.result_json, f"the result of job {job.id}"))
        return task.decode_result(job.result_json)


def signal_of(tasks: TaskRegistry, job: AnyJob, name: str, value: Any) -> tuple[str, str, str, Callable[[str], str]]:
    """A signal, checked: job, name, value, and a function that encodes the value for the task of the job."""
    name = validate.text("a signal's name", name)
    text = payload.encode(value, path=f"signal {name!r}", limit=tasks.payload_limit, hook=plain_value)
    check_round_trip_by_type(value, text, f"signal {name!r}")
    return id_of(job), name, text, partial(tasks._encode, text)
