"""Schedules: stored in the database, changed by any client, ticked by any worker that knows the task.

There is no leader. The first worker that finds a due schedule locks it. One row for each tick ensures that its job is
enqueued once, in the same transaction, even if the schedule is changed meanwhile. A transaction handles a hundred ticks
at most, in a handful of statements, however many were missed: an interrupted one loses little work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field, structs

from ..._core.job import Draft, Job, maybe_utc, utc
from ..._core.schedule import Definition, Due, ScheduleInfo, Tick
from ...errors import CodecError, InvalidInput, ScheduleNotFound
from ..query import BEGIN, Flow, Notify, Row, as_json, read, read_only, write
from . import enqueue

MAX_SCHEDULES = 50  # in one transaction
MAX_TICKS = 100  # of all schedules of one transaction together
MAX_WAITING = 10  # ticks of a schedule whose jobs wait for all earlier ones: each job has a dependency on each of them

_definitions = msgspec.json.Decoder(Definition)


class Ticked(Struct):
    """The result of a tick. `unreadable`: definitions that this release cannot read."""

    jobs: list[Job[Any]] = field(default_factory=list)
    locked: int = 0  # due schedules that no other worker had locked
    problems: dict[str, str] = field(default_factory=dict)  # by schedule
    unreadable: list[str] = field(default_factory=list)


def tick(
    tasks: Iterable[str],
    make_id: Callable[[], str],
    *,
    without: Iterable[str] = (),
    limit: int = MAX_SCHEDULES,
) -> Flow[Ticked]:
    """Enqueue jobs for due schedules of these tasks, up to `limit` schedules. Those of one transaction get the same
    maximum of ticks, so that none waits until another has caught up.

    A definition that this worker cannot read, because of an unknown time zone, say, is left for other workers. It is
    returned in `unreadable`; pass it as `without` the next time.
    """
    yield BEGIN
    done = Ticked()
    which = {"tasks": as_json(sorted(tasks)), "without": as_json(sorted(without))}
    found = yield write("schedules/lock_due", **which, limit=limit)
    done.locked = len(found)
    due: dict[str, tuple[Definition, Due]] = {}
    for name, text, next_at, moment, is_ahead in found:
        try:
            definition = _definitions.decode(text)
            share = max(MAX_TICKS // len(found), 1)
            share = min(share, MAX_WAITING) if definition.overlap == "wait" else share
            moved = Due([], definition.first(moment)) if is_ahead else definition.due(next_at, moment, share)
            due[name] = definition, moved
        except (InvalidInput, msgspec.DecodeError) as error:
            done.problems[name] = str(error)
            done.unreadable.append(text)
    drafts = yield from _add_ticks(due, make_id)
    if drafts:
        done.jobs = yield from enqueue.enqueue(drafts)
        yield Notify("jobs")
    return done


def declare(declared: Mapping[str, Definition], decode: Callable[[str], str] = str) -> Flow[None]:
    """Store the schedules that the code declares. A declaration that has not changed keeps what operators have set.

    `decode` returns a payload as plain JSON: each time that one is encoded, its text may be another.
    """
    yield BEGIN
    ((moment,),) = yield read("inspect/clock")
    for name, definition in sorted(declared.items()):
        found = yield write("schedules/lock", name=name)
        if found and _keeps_changes(found[0], definition, decode):
            continue
        row = _row(name, definition, moment, found)
        yield write("schedules/declare", **row, declared=as_json(_comparable(definition)))
    yield Notify("jobs")


def put(name: str, definition: Definition) -> Flow[ScheduleInfo]:
    """Add a schedule, or change one."""
    yield BEGIN
    ((moment,),) = yield read("inspect/clock")
    found = yield write("schedules/lock", name=name)
    yield write("schedules/put", **_row(name, definition, moment, found))
    yield Notify("jobs")
    return (yield from _one(name))


def pause(name: str) -> Flow[ScheduleInfo]:
    """Stop a schedule until it is resumed."""
    yield BEGIN
    yield write("schedules/pause", name=name)
    return (yield from _one(name))


def resume(name: str) -> Flow[ScheduleInfo]:
    """Resume a schedule with its next tick. Ticks during the pause do not count as missed."""
    yield BEGIN
    ((moment,),) = yield read("inspect/clock")
    definition = yield from _lock(name)
    yield write("schedules/resume", name=name, next_at=definition.first(moment))
    yield Notify("jobs")
    return (yield from _one(name))


def remove(name: str) -> Flow[None]:
    """Delete a schedule. Its jobs stay."""
    yield BEGIN
    yield write("schedules/lock", name=name)  # wait for a worker that ticks it: its new row must be deleted too
    if not (yield write("schedules/remove", name=name)):
        raise ScheduleNotFound(name)
    yield write("schedules/delete_ticks", name=name)


def run_now(name: str, job_id: str) -> Flow[Job[Any]]:
    """Enqueue a job of a schedule between its ticks. For the overlap of later ticks it counts as one of them."""
    yield BEGIN
    definition = yield from _lock(name)
    draft = structs.replace(definition.draft, id=job_id, fresh=True)
    if definition.overlap == "wait":
        draft = _after(draft, (yield from _live_chains([name])).get(name, []))
    (job,) = yield from enqueue.enqueue([draft])
    yield from _insert_ticks([{"name": name, "at": job.created_at.timestamp(), "job": job_id, "note": "run now"}], {})
    return job


@read_only
def schedules(name: str | None = None) -> Flow[list[ScheduleInfo]]:
    """All schedules, or the one of that name."""
    return [_info(row) for row in (yield read("schedules/list", name=name))]


@read_only
def ticks(name: str, *, limit: int) -> Flow[list[Tick]]:
    """The latest ticks of a schedule, the latest first."""
    return [Tick(utc(at), job, note) for at, job, note in (yield read("schedules/ticks", name=name, limit=limit))]


def _add_ticks(due: Mapping[str, tuple[Definition, Due]], make_id: Callable[[], str]) -> Flow[list[Draft[Any]]]:
    """Store the ticks of these locked schedules, and when they are due next. Returns the drafts to enqueue."""
    careful = {name: one.ticks for name, (definition, one) in due.items() if definition.overlap != "allow"}
    lives = yield from _live_chains([name for name, moments in careful.items() if moments])
    stored = yield from _stored_ticks({name: moments for name, moments in careful.items() if len(moments) > 1})
    drafts: list[Draft[Any]] = []
    rows: list[dict[str, Any]] = []
    for name, (definition, one) in due.items():
        live = lives.get(name, [])
        for at in one.ticks:
            if (name, at) in stored:
                continue
            draft = structs.replace(definition.draft, id=make_id(), run_at=at)
            if definition.overlap == "skip" and live:
                rows.append({"name": name, "at": at, "job": None, "note": "skipped: the one before was not over"})
                continue
            drafts.append(_after(draft, live) if definition.overlap == "wait" else draft)
            rows.append({"name": name, "at": at, "job": draft.id, "note": None})
            live.append(draft.id)  # the first of several missed ticks may overlap with the others
    added = yield from _insert_ticks(rows, {name: one.next_at for name, (_, one) in due.items()})
    return [draft for draft in drafts if draft.id in added]


def _insert_ticks(rows: Sequence[Mapping[str, Any]], next_at: Mapping[str, float | None]) -> Flow[set[str]]:
    """Insert ticks, and set when the schedules are due next. Returns the jobs of the ticks that are new."""
    moves = [{"name": name, "next_at": moment} for name, moment in next_at.items()]
    if not rows and not moves:
        return set()
    return {row[0] for row in (yield write("schedules/add_ticks", batch=as_json(rows), moves=as_json(moves)))}


def _stored_ticks(ticks: Mapping[str, Sequence[float]]) -> Flow[set[tuple[str, float]]]:
    """The ticks that are stored already, as when a schedule was changed and changed back.

    A single tick needs no check: its insert decides. Of several, the later ones depend on whether the earlier are new.
    """
    batch = [{"name": name, "at": at} for name, moments in ticks.items() for at in moments]
    rows = (yield read("schedules/existing_ticks", batch=as_json(batch))) if batch else []
    return {(name, at) for name, at in rows}


def _live_chains(names: Sequence[str]) -> Flow[dict[str, list[str]]]:
    """By schedule, the jobs of earlier ticks whose chains are neither over nor failed."""
    found: dict[str, list[str]] = {}
    for name, chain in (yield read("schedules/live_ticks", names=as_json(names))) if names else []:
        found.setdefault(name, []).append(chain)
    return found


def _after(draft: Draft[Any], chains: Sequence[str]) -> Draft[Any]:
    """A draft that waits for these chains to end, in whatever state."""
    policy = structs.replace(draft.policy, on_dependency_failure="run")
    return structs.replace(draft, depends_on=tuple(chains), policy=policy)


def _row(name: str, definition: Definition, moment: float, found: Sequence[Row]) -> dict[str, Any]:
    """The row to store for a definition. If its times have not changed, it keeps its start and next tick."""
    try:
        before = _definitions.decode(found[0][0]) if found else None
    except msgspec.DecodeError:
        before = None  # perhaps written by a later release
    if before is not None and _clock(before) == _clock(definition):
        definition, next_at = structs.replace(definition, start=before.start), found[0][1]
    else:
        start = None if definition.every is None else round(moment, 3)
        definition = structs.replace(definition, start=start)
        next_at = definition.first(moment)
    return {"name": name, "task": definition.draft.task, "definition": as_json(definition), "next_at": next_at}


def _clock(definition: Definition) -> tuple[str | None, float | None, str]:
    return definition.cron, definition.every, definition.timezone


def _comparable(definition: Definition, decode: Callable[[str], str] = str) -> Definition:
    """A definition without the fields that differ each time the code declares it."""
    draft = structs.replace(definition.draft, id="", payload_json=decode(definition.draft.payload_json))
    return structs.replace(definition, draft=draft, start=None)


def _keeps_changes(found: Row, definition: Definition, decode: Callable[[str], str]) -> bool:
    """Whether the declaration is the stored one, and operators have changed the schedule since.

    If they have not, an encoded one is stored again, so that it is encoded with the newest codec and key.
    """
    text, _, declared = found
    if declared is None:
        return False
    try:
        now, before = (_comparable(_definitions.decode(one), decode) for one in (text, declared))
        return before == _comparable(definition, decode) != now
    except (msgspec.DecodeError, CodecError):
        return False  # perhaps its key is gone


def _lock(name: str) -> Flow[Definition]:
    found = yield write("schedules/lock", name=name)
    if not found:
        raise ScheduleNotFound(name)
    try:
        return _definitions.decode(found[0][0])
    except msgspec.DecodeError as error:
        raise InvalidInput(f"schedule {name} {_UNREADABLE}: {error}; put it anew, or remove it") from None


_UNREADABLE = "is stored in a way that this release cannot read"


def _one(name: str) -> Flow[ScheduleInfo]:
    found = yield from schedules(name)
    if not found:
        raise ScheduleNotFound(name)
    return found[0]


def _info(row: Row) -> ScheduleInfo:
    """A schedule from its row. One that cannot be read is listed with a problem: it must not hide the others."""
    name, text, paused, next_at, declared, last_at, last_job, task = row
    now = (bool(paused), maybe_utc(None if paused else next_at), maybe_utc(last_at), last_job, bool(declared))
    try:
        definition = _definitions.decode(text)
    except msgspec.DecodeError as error:
        unknown = ("", "null", None, None, "UTC", "once", "allow")
        return ScheduleInfo(name, task, *unknown, *now, problem=f"it {_UNREADABLE}: {error}")  # type: ignore[arg-type]
    draft = definition.draft
    return ScheduleInfo(
        name, task, draft.queue, draft.payload_json, definition.cron, definition.every, definition.timezone,
        definition.missed, definition.overlap, *now,
    )  # fmt: skip
