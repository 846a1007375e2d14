"""enqueue: drafts become rows. In a caller's transaction this inserts new rows and touches nothing else.

Here are the flows that others call, and the plain way: new jobs that wait for nothing, in one statement. Drafts with
unique keys, dependencies or ids that may exist already go through `enqueue_constrained`.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from ..._core.job import Draft, Job, is_immediate, utc
from ..query import BEGIN, Conflict, Flow, Notify, repeated_by, write
from . import enqueue_constrained, mapping
from .enqueue_constrained import MAX_BATCH, Batch, batches


def enqueue_again(drafts: Batch) -> Flow[list[Job[Any]]]:
    """Enqueue drafts that an earlier try may have stored: a job with the id of a fresh draft was made by that try."""
    return enqueue_constrained.enqueue(drafts, frozenset(draft.id for draft in drafts if draft.fresh))


@repeated_by(enqueue_again)
def enqueue(drafts: Batch) -> Flow[list[Job[Any]]]:
    """Store the drafts. Returns their jobs in the same order: the existing job where an id or a key was known.

    A hundred thousand drafts are fine: only their jobs are kept in memory, and each statement carries a part of them.
    """
    return enqueue_constrained.enqueue(drafts, frozenset())


@repeated_by(enqueue_again)
def enqueue_directly(drafts: Batch) -> Flow[list[Job[Any]]]:
    """The same on a connection of the store. New jobs that wait for nothing take one statement, which also notifies."""
    try:
        if len(drafts) == 1 and _is_plain(drafts[0]) and drafts[0].target is None and drafts[0].group is None:
            return (yield from _insert_one(drafts[0]))
        if not all(map(_is_plain, drafts)) or len({draft.id for draft in drafts}) < len(drafts):
            return (yield from enqueue_constrained.enqueue(drafts, frozenset(), _insert_immediate))
        return (yield from _insert_plain(drafts))
    except Exception as error:
        if _is_conflict(error):
            raise Conflict from error
        raise


def _is_plain(draft: Draft[Any]) -> bool:
    """Whether the draft is a new job without a unique key that waits for nothing but its target."""
    return draft.unique is None and is_immediate(draft)


def _is_conflict(error: Exception) -> bool:
    """Whether PostgreSQL or SQLite refused a row because its id exists already."""
    name: str = getattr(error, "sqlite_errorname", "")
    return getattr(error, "sqlstate", None) == "23505" or name == "SQLITE_CONSTRAINT_PRIMARYKEY"


def _insert_one(draft: Draft[Any]) -> Flow[list[Job[Any]]]:
    policy = draft.policy
    ((created, notified),) = yield write(
        "enqueue/insert_one", id=draft.id, queue=draft.queue, task=draft.task, priority=draft.priority,
        payload=draft.payload_json, max_attempts=policy.max_attempts, policy=mapping.policy_text(policy),
        lease=policy.lease, context=draft.context,
    )  # fmt: skip
    if notified:
        yield Notify("queued", sent=True)
    return [mapping.new_plain_job(draft, utc(created))]


def _insert_plain(drafts: Batch) -> Flow[list[Job[Any]]]:
    if len(drafts) > MAX_BATCH:
        yield BEGIN
    jobs: list[Job[Any]] = []
    for some in batches(drafts):
        jobs += yield from _insert_immediate(some, ())
    return jobs


def _insert_immediate(drafts: Batch, awaited: Container[str]) -> Flow[list[Job[Any]]]:
    """Store as many drafts as one statement carries. `awaited`: ids that other drafts of the batch wait for."""
    kinds, numbers = _kinds(drafts, awaited)
    targets = _unless_none([draft.target for draft in drafts])
    groups = _unless_none([draft.group for draft in drafts])
    contexts = _unless_none([draft.context for draft in drafts])
    uniques = _unless_none([draft.unique for draft in drafts])
    ids = [draft.id for draft in drafts]
    payloads = [draft.payload_json for draft in drafts]
    ((created, notified),) = yield write(
        "enqueue/insert_plain", **kinds, kinds=numbers, ids=ids, payloads=payloads, groups=groups, contexts=contexts,
        uniques=uniques, targets=targets,
    )  # fmt: skip
    if notified:
        yield Notify("queued" if targets is None else "jobs", sent=True)
    moment = utc(created)
    return [mapping.new_plain_job(draft, moment) for draft in drafts]


_COLUMNS = ("queues", "tasks", "priorities", "max_attempts", "policies", "leases", "watched")

_Kind = tuple[str, str, int, int, str | None, float | None, bool]  # one value for each of `_COLUMNS`


def _kinds(drafts: Batch, awaited: Container[str]) -> tuple[dict[str, list[Any]], list[int]]:
    """The values that many drafts share, each sent once: the columns of all kinds, and each draft's kind, from 1 on."""
    numbers: dict[tuple[str, str, int, int, bool], int] = {}
    kinds: list[_Kind] = []
    of_drafts: list[int] = []
    for draft in drafts:
        is_awaited = draft.id in awaited
        shared = (draft.queue, draft.task, draft.priority, id(draft.policy), is_awaited)
        number = numbers.setdefault(shared, len(numbers) + 1)
        if number > len(kinds):
            kinds.append(_kind(draft, is_awaited))
        of_drafts.append(number)
    columns = zip(*kinds, strict=True)
    return {name: list(column) for name, column in zip(_COLUMNS, columns, strict=True)}, of_drafts


def _kind(draft: Draft[Any], is_awaited: bool) -> _Kind:
    policy = draft.policy
    text = mapping.policy_text(policy)
    return draft.queue, draft.task, draft.priority, policy.max_attempts, text, policy.lease, is_awaited


def _unless_none(column: list[str | None]) -> list[str | None] | None:
    return None if column.count(None) == len(column) else column
