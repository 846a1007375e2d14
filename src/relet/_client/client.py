"""What a program says to its jobs. `AsyncClient` (in `_client/async_client.py`) has the same names and signatures.

Each method checks what it is given and runs one flow.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Literal, ParamSpec, TypeVar, Unpack, cast, overload
from uuid import UUID

from msgspec import structs

from .. import events
from .._core import payload, validate
from .._core.filters import Filter
from .._core.finding import Finding
from .._core.ids import parse_id
from .._core.job import Draft, Job, State
from .._core.verbs import BULK, VERBS, BulkVerb
from .._store.doctor import examine
from .._store.flows import chains, control, enqueue, maintenance, stats
from .._store.flows.maintenance import Pruned
from .._store.query import Flow
from .._store.store import Store
from .._tasks.codec import plain_value, refuse_what_no_annotation_restores
from .._tasks.drafts import check_drafts, storing
from .._tasks.task import TaskRegistry
from ..errors import InvalidInput, JobCancelled, JobFailed, JobNotFound, StoreRefused
from .audit import AuditAction, AuditedStore, BulkResult, IdempotencyKey, bulk
from .inspection import AnyJob, Inspection, Which, filter_of, id_of, ids_of
from .schedules import Schedules
from .wait import wait_for

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

DAY = 86400.0

log = logging.getLogger("relet.store")


class Client(Inspection):
    """The jobs of one store, for plain code. Safe to use from any thread, and after a fork."""

    def __init__(
        self,
        tasks: TaskRegistry,
        store: Callable[[str | None], Store],
        tenant: str | None = None,
        who: str | None = None,
        key: IdempotencyKey | None = None,
    ) -> None:
        self._tasks = tasks
        self._store_of = store
        self._tenant = tenant
        self._who = who
        self._key = key

    @property
    def _store(self) -> Store:  # type: ignore[override]
        return self._store_of(self._tenant)

    @property
    def where(self) -> str:
        """The URL of the database, without its password."""
        return self._store.where

    def tenant(self, name: str) -> Client:
        """The client of a tenant: a schema, or file, of its own."""
        return Client(self._tasks, self._store_of, name, self._who, self._key)

    def acting_as(self, who: str) -> Client:
        """A client that acts for somebody: whatever it changes is noted with that name (`audit`)."""
        return Client(self._tasks, self._store_of, self._tenant, validate.key("who", who), self._key)

    def idempotent(self, key: str, /, *, request: str | None = None) -> Client:
        """A client for one change: made again under the same key within a day, it has no further effect, and the
        answer is the first one's. With `request`, a key that was used for another request raises IdempotencyConflict.

        Every change is safe against a lost answer without this: a key is for callers that repeat it by themselves.
        """
        given = IdempotencyKey(validate.key("key", key), request)
        return Client(self._tasks, self._store_of, self._tenant, self._who, given)

    def enqueue(self, draft: Draft[R], /, *, connection: Any = None, tenant: str | None = None) -> Job[R]:
        """Store a draft as a job. With `connection`, in your transaction: it is there when you commit.

        What comes back may be a job that was there already, under the same id or unique key: then `existing` is true.
        """
        return self.enqueue_many([draft], connection=connection, tenant=tenant)[0]

    def enqueue_many(
        self, drafts: Iterable[Draft[R]], /, *, connection: Any = None, tenant: str | None = None
    ) -> list[Job[R]]:
        """Store drafts, all or none, and return their jobs in the same order. They may name each other in `after`.

        All of it is one transaction, sent in parts. In memory are the drafts and the jobs, about half a KiB for each
        beside its payload, and one part: a hundred thousand at once are fine.
        """
        store = self._store_of(self._tenant if tenant is None else tenant)
        with storing(self._tasks.telemetry, drafts) as batch:
            if connection is not None:
                jobs = _run_on(store, connection, enqueue.enqueue, batch.drafts)
            else:
                jobs = self._insert(store, batch.drafts) if batch.drafts else []
            batch.stored(jobs)
        if connection is None and self._tasks.events.wanted(events.Enqueued):
            for job in jobs:
                if not job.existing:
                    self._emit(events.Enqueued, job, tenant)
        return jobs

    def _insert(self, store: Store, drafts: list[Draft[R]]) -> list[Job[R]]:
        action = AuditAction("enqueue", drafts[0].id, {"task": drafts[0].task, "jobs": len(drafts)})
        audited = AuditedStore(store, self._who, self._key)
        run = audited.change if any(draft.replace for draft in drafts) else audited.insert
        return run(action, enqueue.enqueue_directly, drafts)

    def wait(self, job: AnyJob, /, *, timeout: float = 60.0) -> Job[Any]:
        """Wait until the job's chain is over, or has failed; returns the last job of the chain."""
        return self.wait_many([job], timeout=timeout)[0]

    def wait_many(self, jobs: Iterable[AnyJob], /, *, timeout: float = 60.0) -> list[Job[Any]]:
        """Wait until the chains of all these jobs are over, or have failed; the last job of each, in the same order.

        It asks for all of them at once: thousands cost little more than one.
        """
        return wait_for(self._store, ids_of(jobs), validate.seconds("timeout", timeout))

    @overload
    def result(self, job: Job[R], /, *, timeout: float = 60.0) -> R: ...
    @overload
    def result(self, job: str | UUID, /, *, timeout: float = 60.0) -> Any: ...
    def result(self, job: AnyJob, /, *, timeout: float = 60.0) -> Any:
        """Wait for the job's chain and return its result, or raise JobFailed, JobCancelled or WaitTimeout."""
        return self.results([id_of(job)], timeout=timeout)[0]

    @overload
    def results(
        self, jobs: Iterable[Job[R]], /, *, timeout: float = 60.0, return_exceptions: Literal[False] = False
    ) -> list[R]: ...
    @overload
    def results(
        self, jobs: Iterable[Job[R]], /, *, timeout: float = 60.0, return_exceptions: bool
    ) -> list[R | JobFailed | JobCancelled]: ...
    @overload
    def results(
        self, jobs: Iterable[AnyJob], /, *, timeout: float = 60.0, return_exceptions: bool = False
    ) -> list[Any]: ...
    def results(
        self, jobs: Iterable[AnyJob], /, *, timeout: float = 60.0, return_exceptions: bool = False
    ) -> list[Any]:
        """Wait for the chains of all these jobs and return their results, in the same order.

        If some did not succeed, the JobFailed or JobCancelled of the first of them is raised, or, with
        `return_exceptions`, each stands in the place of its result. WaitTimeout is raised either way.
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
        """End a job. A running one is asked to end: it is cancelled as soon as its attempt is over.

        With `chain`, that job of its chain which is not over yet. Returns the job that was meant.
        """
        return self._act("cancel", job, control.cancel, chain=chain)

    def pause(self, job: AnyJob, /) -> Job[Any]:
        """Hold a job back until it is resumed. A running one is asked to stop."""
        return self._act("pause", job, control.pause)

    def resume(self, job: AnyJob, /) -> Job[Any]:
        """Let a paused or failed job go on, with its attempts anew."""
        return self._act("resume", job, control.resume)

    def run_now(self, job: AnyJob, /) -> Job[Any]:
        """Make a job that waits for its time, or for a retry, due at once."""
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
        """Succeed a job from outside, with this result, or by going on with another job of its chain.

        With `chain`, that job of its chain which is not over yet. With `connection`, in your transaction: it has
        succeeded when you commit; not one that runs. Returns the job that was meant.
        """
        job_id, text, said = self._completion(job, result, continue_with, chain)
        if connection is not None:
            self._prepare_to_complete(job_id, chain)
            return _run_on(self._store, connection, control.complete, job_id, text, **said, theirs=True)
        return self._act("complete", job_id, control.complete, text, **said)

    def delete(self, job: AnyJob, /, *, chain: bool = False, dependents: bool = False) -> None:
        """Remove a job and its history, whatever its state.

        With `chain`, all jobs of its chain. While jobs of other chains wait for it this raises HasDependents; with
        `dependents` their chains are removed as well, and those of all that wait for them.
        """
        job_id = id_of(job)
        if dependents and not chain:
            raise InvalidInput("dependents wait for chains: say delete(job, chain=True, dependents=True)")
        if chain:
            gone = self._change("delete", chains.delete_chain, job_id, dependents=dependents)
        elif self._change("delete", control.delete, job_id):
            gone = [job_id]
        else:
            raise JobNotFound(job_id)
        for id in gone:
            self._tasks.events.tell(events.Deleted(job_id=id, state=None, tenant=self._tenant))

    def signal(self, job: AnyJob, name: str, value: Any = None, /, *, connection: Any = None) -> bool:
        """Tell a job something that its handler waits for, or will (`attempt.wait_for`). With `connection`, in your
        transaction. False: it was told something under this name before, and that stays.
        """
        told = signal_of(self._tasks, job, name, value)
        if connection is not None:
            return _run_on(self._store, connection, control.signal, *told)
        return self._hand.change(AuditAction("signal", told[0], {"name": name}), control.signal, *told)

    def bulk(
        self,
        verb: BulkVerb,
        /,
        *,
        most: int | None = None,
        seconds: float | None = None,
        before: str | None = None,
        on_step: Callable[[BulkResult], object] | None = None,
        **which: Unpack[Which],
    ) -> BulkResult:
        """Do something to all jobs that a filter lets through: cancel, pause, resume, run_now or delete.

        The filters are those of `jobs`, and at least one is needed; without `state` it is done to jobs in any state
        that allows it. In small steps, newest first, up to `most` jobs and `seconds`; `on_step` is told how far it has
        come. What cannot be done to a job any more is counted as refused. If it ended early, give `next` as `before`.
        """
        verb = cast(BulkVerb, validate.choice("verb", verb, tuple(BULK)))
        where = filter_of(**which)
        if where == Filter():
            raise InvalidInput("bulk needs a filter: say which jobs, by state, queue, task, target, worker or error")
        left = None if most is None else validate.whole("most", most, 0, 2**31 - 1)
        where = where if where.states else structs.replace(where, states=tuple(sorted(VERBS[verb].sources)))
        limit = None if seconds is None else validate.seconds("seconds", seconds)
        start = None if before is None else parse_id(before)
        return bulk(self._hand, verb, where, which, left, limit, start, on_step)

    @property
    def schedules(self) -> Schedules:
        """What is enqueued on a clock."""
        return Schedules(lambda: self._hand)

    def pause_queue(self, queue: str, /) -> None:
        """Let no worker claim from a queue; what runs goes on."""
        self._hand.change(
            AuditAction("pause_queue", str(queue)), control.set_queue, validate.name("queue", queue), paused=True
        )

    def resume_queue(self, queue: str, /) -> None:
        """Let workers claim from a queue again."""
        self._hand.change(
            AuditAction("resume_queue", str(queue)), control.set_queue, validate.name("queue", queue), paused=False
        )

    def limit_queue(
        self,
        queue: str | None,
        /,
        *,
        max_running: int | Literal["keep"] | None = "keep",
        rate: int | Literal["keep"] | None = "keep",
        per: float | None = None,
        key: str | None = None,
        fair: bool | None = None,
    ) -> None:
        """Limit a queue (None: all queues together). What is not given stays as it is; None lifts a limit.

        `max_running`: at most so many jobs run at once. `rate` and `per`: at most so many start within any `per`
        seconds; with `key`, of those that were enqueued with this key, and with `key="*"` of each key by itself.
        `fair`: keys are served in turn, whatever the order in which their jobs came.
        """
        limits = _limits(queue, max_running, rate, per, key, fair)
        given = {"max_running": max_running, "rate": rate, "per": per, "key": key, "fair": fair}
        lifted = {name: None for name in ("max_running", "rate") if given[name] is None}
        said = lifted | {name: value for name, value in given.items() if value is not None and value != "keep"}
        self._hand.change(AuditAction("limit_queue", limits["queue"], said), control.set_queue, **limits)
        if key is not None or fair:
            while self._store.run(control.name_keyless, limits["queue"]):
                pass  # in small steps: nobody waits for them

    def prune(
        self,
        *,
        keep_finished: float = 7 * DAY,
        keep_failed: float = 30 * DAY,
        on_step: Callable[[Pruned], object] | None = None,
    ) -> Pruned:
        """Remove jobs that have been over for longer than this, in small steps; `on_step` is told how far it is."""
        validate.seconds("keep_finished", keep_finished)
        validate.seconds("keep_failed", keep_failed)
        said = AuditAction("prune", "jobs", {"keep_finished": keep_finished, "keep_failed": keep_failed})
        return _prune(self._store, self._hand, said, keep_finished, keep_failed, on_step)

    def doctor(self) -> list[Finding]:
        """Look at the store for what may hurt: each finding says what was seen, and what to do.

        It changes nothing, takes no lock that anybody waits for, and does not raise because of what it finds: what
        cannot be checked is a finding too.
        """
        return examine(self._store)

    def migrate(self) -> list[int]:
        """Bring the store's schema up to date; returns the versions applied. Safe when many do it at once."""
        applied = self._store.migrate()
        if applied:
            self._hand.note(AuditAction("migrate", "schema", {"versions": applied}))
        return applied

    @property
    def _hand(self) -> AuditedStore:
        return AuditedStore(self._store, self._who, self._key)

    def _act(self, verb: str, job: AnyJob, flow: Callable[..., Flow[Job[Any]]], *args: Any, **options: Any) -> Job[Any]:
        """Apply a verb to one job, and emit its event."""
        changed = self._change(verb, flow, id_of(job), *args, **options)
        return self._emit(getattr(events, VERBS[verb].event), changed)

    def _change(self, verb: str, flow: Callable[..., Flow[T]], job_id: str, *args: Any, **options: Any) -> T:
        return self._hand.change(AuditAction(verb, job_id), flow, job_id, *args, **options)

    def _emit(self, kind: type[events.JobEvent], job: Job[Any], tenant: str | None = None) -> Job[Any]:
        """Tell those who listen what was committed, and pass the job on."""
        if self._tasks.events.wanted(kind):
            tenant = self._tenant if tenant is None else tenant
            self._tasks.events.tell(kind(job_id=job.id, state=job.state, task=job.task, queue=job.queue, tenant=tenant))
        return job

    def _completion(
        self, job: AnyJob, result: Any, continue_with: Draft[Any] | None, chain: bool
    ) -> tuple[str, str | None, dict[str, Any]]:
        """What `complete` was given, checked, as the flow wants it."""
        if continue_with is not None:
            check_drafts([continue_with])
        text, fits = self._encode(result)
        return id_of(job), text, {"continue_with": continue_with, "chain": chain, "fits": fits}

    def _prepare_to_complete(self, job_id: str, chain: bool) -> None:
        """See to it that a job which is old can end in a transaction that cannot be repeated."""
        with suppress(JobNotFound):  # of a transaction that is open, and then it is not old
            self._store.prepare_to_finish(self.chain(job_id).last.id if chain else job_id)

    def _encode(self, result: Any) -> tuple[str | None, Callable[[str], object] | None]:
        """A result as it is stored, nothing for None; and what refuses it where its task's annotation would later."""
        if result is None:
            return None, None
        text = payload.encode(result, path="result", limit=self._tasks.payload_limit, hook=plain_value)

        def fits(name: str) -> None:
            task = self._tasks.tasks.get(name)
            if task is not None:
                task.encode_result(result)

        return text, fits

    def _end(self, job: Job[Any]) -> Any:
        """What came of a job: its result by the annotation of its task, if this app knows it; or the error."""
        if job.state is State.FAILED:
            return JobFailed(job.id, job.error)
        if job.state is State.CANCELLED:
            return JobCancelled(job.id)
        if job.result_json is None:
            return None
        task = self._tasks.tasks.get(job.task)
        return payload.decode(job.result_json) if task is None else task.decode_result(job.result_json)


def signal_of(tasks: TaskRegistry, job: AnyJob, name: str, value: Any) -> tuple[str, str, str]:
    """A signal, checked, as it is stored."""
    name = validate.key("a signal's name", name)
    text = payload.encode(value, path=f"signal {name!r}", limit=tasks.payload_limit, hook=plain_value)
    refuse_what_no_annotation_restores(value, text, f"signal {name!r}")
    return id_of(job), name, text


def _limits(
    queue: str | None,
    max_running: int | Literal["keep"] | None,
    rate: int | Literal["keep"] | None,
    per: float | None,
    key: str | None,
    fair: bool | None,
) -> dict[str, Any]:
    """What `limit_queue` was given, checked, as `set_queue` wants it."""
    if max_running == "keep" and rate == "keep" and fair is None:
        raise InvalidInput("limit_queue needs something to set: max_running, rate with per, or fair")
    if (rate in ("keep", None) and per is not None) or (rate not in ("keep", None) and per is None):
        raise InvalidInput("a rate is so many jobs in so many seconds: give rate and per, as in rate=100, per=60")
    if rate == "keep" and key is not None:
        raise InvalidInput("a key is for a rate: give rate and per as well")
    if queue is None and (key is not None or fair is not None):
        raise InvalidInput("keys are a queue's own: name the queue")
    if fair is not None and not isinstance(fair, bool):
        raise InvalidInput(f"fair must be True or False, not {fair!r}")
    given: dict[str, Any] = {"queue": "*" if queue is None else validate.name("queue", queue), "fair": fair}
    if max_running != "keep":
        given["max_running"] = None if max_running is None else validate.whole("max_running", max_running, 0, 1_000_000)
    if rate != "keep":
        number = None if rate is None else validate.whole("rate", rate, 0, 1_000_000)
        seconds = 1.0 if per is None else validate.seconds("per", per, least=0.001)
        given["rate"] = ("" if key is None else validate.key("key", key), number, seconds)
    return given


def _prune(
    store: Store,
    hand: AuditedStore,
    said: AuditAction,
    keep_finished: float,
    keep_failed: float,
    on_step: Callable[[Pruned], object] | None,
) -> Pruned:
    finished = failed = keys = 0
    hand.note(said)  # before anything is gone: it takes many transactions, and may be ended between two of them
    try:
        store.run(maintenance.make_partitions)
    except StoreRefused as error:  # pruning needs fewer rights
        log.warning("partitions for the days to come cannot be made here: %s", error)
    store.run(stats.roll_up)
    dropped = store.drop_old(keep_finished)
    beyond: str | None = ""
    while beyond is not None:
        stale, beyond = hand.step(said, maintenance.prune_stale_keys, beyond, most=store.prune_at_once)
        keys += stale
    ages = {"keep_finished": keep_finished, "keep_failed": keep_failed}
    while True:
        *removed, more = hand.step(said, maintenance.prune_counted, **ages, most=store.prune_at_once)
        finished, failed, keys = finished + removed[0], failed + removed[1], keys + removed[2]
        so_far = Pruned(finished, failed, keys, tuple(dropped), more)
        if on_step is not None:
            on_step(so_far)
        if not more:
            return so_far


def _run_on(store: Store, connection: Any, flow: Callable[..., Flow[R]], *args: Any, **kwargs: Any) -> R:
    """Run a flow in the caller's transaction. What that takes is imported with its first use."""
    from .._store.adapters.drivers import run_on

    return run_on(store, connection, flow, *args, **kwargs)
