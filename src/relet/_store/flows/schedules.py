"""Schedules: kept in the store, changed by anyone, ticked by any worker that knows the task.

Nobody leads. A schedule whose time has come is locked by whoever looks first, and one row for each tick decides that
its job is enqueued once: in the same transaction, whatever becomes of the schedule meanwhile. However many ticks were
missed, a transaction deals with a hundred at most, in a handful of statements: one that is cut off costs no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field, structs

from ..._core.job import Draft, Job, maybe_utc, utc
from ..._core.schedule import Definition, Due, ScheduleInfo, Tick
from ...errors import InvalidInput, ScheduleNotFound
from ..query import BEGIN, Flow, Notify, Row, as_json, read, read_only, write
from . import enqueue

MOST = 50  # schedules dealt with at a time
MOST_TICKS = 100  # of all of them together
MOST_WAITING = 10  # of one whose jobs wait for all that came before: each of them has as many edges as there are jobs

_definitions = msgspec.json.Decoder(Definition)


class Ticked(Struct):
    """What came of looking at the clock. `unreadable`: definitions that cannot be understood here."""

    jobs: list[Job[Any]] = field(default_factory=list)
    locked: int = 0  # schedules whose time had come, and which no other worker deals with just now
    problems: dict[str, str] = field(default_factory=dict)  # by schedule
    unreadable: list[str] = field(default_factory=list)


def tick(
    tasks: Iterable[str],
    make_id: Callable[[], str],
    *,
    without: Iterable[str] = (),
    most: int = MOST,
) -> Flow[Ticked]:
    """Enqueue for schedules of these tasks whose time has come, `most` at a time. Those that share a transaction have
    the same number of ticks in it at most, so that none of them waits until another has caught up.

    One that cannot be understood here, for want of a time zone, say, is left as it is for those who can: its definition
    is among the unreadable, and to be given as `without` the next time.
    """
    yield BEGIN
    done = Ticked()
    which = {"tasks": as_json(sorted(tasks)), "without": as_json(sorted(without))}
    found = yield write("schedules/lock_due", **which, most=most)
    done.locked = len(found)
    due: dict[str, tuple[Definition, Due]] = {}
    for name, text, next_at, moment, is_ahead in found:
        try:
            definition = _definitions.decode(text)
            share = max(MOST_TICKS // len(found), 1)
            share = min(share, MOST_WAITING) if definition.overlap == "wait" else share
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


def declare(declared: Mapping[str, Definition]) -> Flow[None]:
    """What code says. It counts where code says something else than it did before; else what people have said stays."""
    yield BEGIN
    ((moment,),) = yield read("inspect/clock")
    for name, definition in sorted(declared.items()):
        said = as_json(_said(definition))
        row = yield from _row(name, definition, moment)
        yield write("schedules/declare", **row, declared=said)
    yield Notify("jobs")


def put(name: str, definition: Definition) -> Flow[ScheduleInfo]:
    """Add a schedule, or change one."""
    yield BEGIN
    ((moment,),) = yield read("inspect/clock")
    row = yield from _row(name, definition, moment)
    yield write("schedules/put", **row)
    yield Notify("jobs")
    return (yield from _one(name))


def pause(name: str) -> Flow[ScheduleInfo]:
    """No more ticks until it is resumed."""
    yield BEGIN
    yield write("schedules/pause", name=name)
    return (yield from _one(name))


def resume(name: str) -> Flow[ScheduleInfo]:
    """Go on with the next tick; those of the meantime were not missed, they were not wanted."""
    yield BEGIN
    ((moment,),) = yield read("inspect/clock")
    definition = yield from _lock(name)
    yield write("schedules/resume", name=name, next_at=definition.first(moment))
    yield Notify("jobs")
    return (yield from _one(name))


def remove(name: str) -> Flow[None]:
    """Forget a schedule. Its jobs stay."""
    yield BEGIN
    yield write("schedules/lock", name=name)  # whoever ticks just now has added a row that is to go as well
    if not (yield write("schedules/remove", name=name)):
        raise ScheduleNotFound(name)
    yield write("schedules/delete_ticks", name=name)


def run_now(name: str, job_id: str) -> Flow[Job[Any]]:
    """Enqueue what a schedule enqueues, between its ticks. Later ticks heed it as they heed each other."""
    yield BEGIN
    definition = yield from _lock(name)
    draft = structs.replace(definition.draft, id=job_id, fresh=True)
    if definition.overlap == "wait":
        draft = _after(draft, (yield from _lives([name])).get(name, []))
    (job,) = yield from enqueue.enqueue([draft])
    yield from _note_ticks([{"name": name, "at": job.created_at.timestamp(), "job": job_id, "note": "run now"}], {})
    return job


@read_only
def schedules(name: str | None = None) -> Flow[list[ScheduleInfo]]:
    """All schedules, or the one of that name."""
    return [_info(row) for row in (yield read("schedules/list", name=name))]


@read_only
def ticks(name: str, *, limit: int) -> Flow[list[Tick]]:
    """The latest ticks of a schedule, the latest first."""
    return [Tick(utc(at), job, note) for at, job, note in (yield read("schedules/ticks", name=name, most=limit))]


def _add_ticks(due: Mapping[str, tuple[Definition, Due]], make_id: Callable[[], str]) -> Flow[list[Draft[Any]]]:
    """Note the ticks of these schedules, which are locked, and when they are due next. Returns what to enqueue."""
    careful = {name: one.ticks for name, (definition, one) in due.items() if definition.overlap != "allow"}
    lives = yield from _lives([name for name, moments in careful.items() if moments])
    there = yield from _there({name: moments for name, moments in careful.items() if len(moments) > 1})
    drafts: list[Draft[Any]] = []
    rows: list[dict[str, Any]] = []
    for name, (definition, one) in due.items():
        live = lives.get(name, [])
        for at in one.ticks:
            if (name, at) in there:
                continue
            draft = structs.replace(definition.draft, id=make_id(), run_at=at)
            if definition.overlap == "skip" and live:
                rows.append({"name": name, "at": at, "job": None, "note": "skipped: the one before was not over"})
                continue
            drafts.append(_after(draft, live) if definition.overlap == "wait" else draft)
            rows.append({"name": name, "at": at, "job": draft.id, "note": None})
            live.append(draft.id)  # of several missed ticks the first may be what the others overlap with
    added = yield from _note_ticks(rows, {name: one.next_at for name, (_, one) in due.items()})
    return [draft for draft in drafts if draft.id in added]


def _note_ticks(rows: Sequence[Mapping[str, Any]], next_at: Mapping[str, float | None]) -> Flow[set[str]]:
    """Add these ticks, and put the schedules off until then. Returns the jobs of those that were not there before."""
    moves = [{"name": name, "next_at": moment} for name, moment in next_at.items()]
    if not rows and not moves:
        return set()
    return {row[0] for row in (yield write("schedules/add_ticks", batch=as_json(rows), moves=as_json(moves)))}


def _there(ticks: Mapping[str, Sequence[float]]) -> Flow[set[tuple[str, float]]]:
    """Those of several ticks that were dealt with before, as when a schedule was changed and changed back.

    Of a single one the row decides when it is added; but what follows upon another depends on whether that is new.
    """
    batch = [{"name": name, "at": at} for name, moments in ticks.items() for at in moments]
    return (
        {(name, at) for name, at in (yield read("schedules/existing_ticks", batch=as_json(batch)))} if batch else set()
    )


def _lives(names: Sequence[str]) -> Flow[dict[str, list[str]]]:
    """By schedule, the jobs of earlier ticks whose chains are neither over nor failed."""
    found: dict[str, list[str]] = {}
    for name, chain in (yield read("schedules/live_ticks", names=as_json(names))) if names else []:
        found.setdefault(name, []).append(chain)
    return found


def _after(draft: Draft[Any], chains: Sequence[str]) -> Draft[Any]:
    """A draft that waits for these to end, however they do."""
    return structs.replace(draft, after=tuple(chains), policy=structs.replace(draft.policy, on_blocker_failure="run"))


def _row(name: str, definition: Definition, moment: float) -> Flow[dict[str, Any]]:
    """A definition as it is stored. One that ticks as it did before goes on where it was."""
    found = yield write("schedules/lock", name=name)
    try:
        before = _definitions.decode(found[0][0]) if found else None
    except msgspec.DecodeError:
        before = None  # of a later version, perhaps
    if before is not None and _clock(before) == _clock(definition):
        definition, next_at = structs.replace(definition, start=before.start), found[0][1]
    else:
        start = None if definition.every is None else round(moment, 3)
        definition = structs.replace(definition, start=start)
        next_at = definition.first(moment)
    return {"name": name, "task": definition.draft.task, "definition": as_json(definition), "next_at": next_at}


def _clock(definition: Definition) -> tuple[str | None, float | None, str]:
    return definition.cron, definition.every, definition.timezone


def _said(definition: Definition) -> Definition:
    """A definition without what is new each time."""
    return structs.replace(definition, draft=structs.replace(definition.draft, id=""), start=None)


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
    """One that cannot be read is shown as that: it must not hide the others."""
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
