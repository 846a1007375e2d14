"""replace: of the jobs that are enqueued under one unique key, the newest payload wins.

A job that waits under the key gets the draft's payload. A job that runs cannot: then the draft becomes a new job that
takes the key over, and waits until the running job has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import structs

from ..._core.job import Draft, Job, State
from ..._core.machine import TRANSITIONS
from ...errors import KeyTaken
from ..query import BEGIN, Flow, Notify, as_json, read, write

WAITING = TRANSITIONS["replace"].sources


def newest(drafts: Sequence[Draft[Any]]) -> Sequence[Draft[Any]]:
    """Of drafts of one batch that share a key, the first is stored, with the payload and time of the last."""
    last: dict[str | None, Draft[Any]] = {draft.unique: draft for draft in drafts if draft.unique and draft.replace}
    if not last:
        return drafts
    seen: set[str | None] = set()
    merged = []
    for draft in drafts:
        latest = last.get(draft.unique)
        if latest is not None and draft.unique not in seen and latest.id != draft.id and latest.task == draft.task:
            draft = structs.replace(draft, payload_json=latest.payload_json, run_at=latest.run_at, delay=latest.delay)
        seen.add(draft.unique)
        merged.append(draft)
    return merged


def firsts(drafts: Sequence[Draft[Any]]) -> tuple[list[Draft[Any]], dict[str, str]]:
    """The first draft of each key; and, for each draft that shares a key with an earlier one, the id of the first."""
    by_key: dict[str, Draft[Any]] = {}
    sharing: dict[str, str] = {}
    for draft in drafts:
        if draft.unique is None:
            continue
        first = by_key.setdefault(draft.unique, draft)
        if first is not draft:
            if draft.replace and draft.task != first.task:
                raise KeyTaken(draft.unique, first.id)
            sharing[draft.id] = first.id
    return list(by_key.values()), sharing


def replace(wanted: Mapping[str, Draft[Any]]) -> Flow[set[str]]:
    """Update waiting jobs from drafts (by the id of the job). Returns the jobs that were still waiting."""
    yield BEGIN
    batch = [{"id": id, "key": draft.unique} for id, draft in wanted.items()]
    locked = yield write("enqueue/lock_by_key", batch=as_json(batch))
    waiting = {id for id, state in locked if State(state) in WAITING}
    if waiting:
        yield write("enqueue/replace", batch=as_json([_row(id, wanted[id]) for id in sorted(waiting)]))
        yield Notify("jobs")
    return waiting


def replace_or_follow(
    drafts: Iterable[Draft[Any]], holders: Mapping[str, str], existing: Mapping[str, Job[Any]]
) -> Flow[tuple[dict[str, Draft[Any]], bool]]:
    """Replace the jobs that hold the drafts' keys, or follow them if they run.

    Returns the drafts to store as followers, by id, and whether to take the keys again: a holder changed meanwhile.
    """
    waits: dict[str, Draft[Any]] = {}
    follows: dict[str, Draft[Any]] = {}
    begun = yield from _begun(existing[holders[draft.id]] for draft in drafts)
    over = False  # a holder has ended meanwhile, and its key may be free
    for draft in drafts:
        holder = existing[holders[draft.id]]
        if holder.task != draft.task:
            raise KeyTaken(draft.unique or "", holder.id)
        if holder.state is State.RUNNING or holder.id in begun:
            follows[holder.id] = draft
        elif holder.state in WAITING:
            waits[holder.id] = draft
        else:
            over = True
    replaced = (yield from replace(waits)) if waits else set()
    batch = [{"key": draft.unique, "holder": holder, "job": draft.id} for holder, draft in sorted(follows.items())]
    rows = (yield write("enqueue/transfer_keys", batch=as_json(batch))) if batch else []
    taken = {row[0] for row in rows}
    followers = {draft.id: _after(holder, draft) for holder, draft in follows.items() if draft.unique in taken}
    return followers, over or len(replaced) < len(waits) or len(taken) < len(follows)


def _begun(jobs: Iterable[Job[Any]]) -> Flow[set[str]]:
    """Waiting jobs that have stored steps: those belong to the old payload, so they must not run with a new one."""
    ids = sorted(job.id for job in jobs if job.version > 0 and job.state in WAITING)
    return {row[0] for row in (yield read("enqueue/jobs_with_steps", ids=as_json(ids)))} if ids else set()


def _after(holder: str, draft: Draft[Any]) -> Draft[Any]:
    """The draft, to run once the holder has ended, in whatever state."""
    policy = structs.replace(draft.policy, on_dependency_failure="run")
    return structs.replace(draft, depends_on=(holder,), policy=policy)


def _row(id: str, draft: Draft[Any]) -> dict[str, Any]:
    timed = draft.replace is True and (draft.run_at is not None or draft.delay is not None)
    values = {"payload": draft.payload_json, "context": draft.context, "run_at": draft.run_at, "delay": draft.delay}
    return {"id": id, **values, "timed": timed}
