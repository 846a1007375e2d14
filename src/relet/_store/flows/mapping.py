"""Conversion between database rows and the types of the core: jobs, drafts, policies, decisions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, TypeVar

import msgspec

from ..._core.backoff import Backoff
from ..._core.job import DEFAULT_POLICY, Claimed, Draft, FollowUp, Job, Lease, Policy, Progress, State, Wait, utc
from ..._core.machine import OUTCOMES, Change, Running
from ..fragments import job_fields
from ..query import Row

_DEFAULT = DEFAULT_POLICY


class _Stored(msgspec.Struct, omit_defaults=True):
    """The part of a policy that only Python applies. Columns hold the rest."""

    backoff: tuple[float, float, float, bool] | None = None
    timeout: float | None = None
    on_expired: str = "retry"
    on_failure: str = "hold"
    on_dependency_failure: str = "hold"
    follow_up: _StoredFollowUp | None = None


class _StoredFollowUp(msgspec.Struct, omit_defaults=True):
    task: str
    argument: str
    queue: str = "default"
    priority: int = 0
    max_attempts: int = 4
    lease: float | None = None
    policy: str | None = None


_progress = msgspec.json.Decoder(Progress)
_encoder = msgspec.json.Encoder()

S = TypeVar("S", bound=msgspec.Struct)


def lenient(kind: type[S], text: str) -> S:
    """Decode JSON that another release may have written. Unknown fields are ignored; fields that are missing or do not
    decode get their defaults."""
    try:
        decoder: msgspec.json.Decoder[S] = _decoder(kind)
        return decoder.decode(text)
    except msgspec.DecodeError:
        return _by_field(kind, text)


@cache
def _decoder(kind: type[S]) -> msgspec.json.Decoder[S]:
    return msgspec.json.Decoder(kind)


def _by_field(kind: type[S], text: str) -> S:
    try:
        values = msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError:
        values = {}
    known = {}
    for field in msgspec.structs.fields(kind):
        with suppress(KeyError, msgspec.ValidationError):
            known[field.name] = msgspec.convert(values[field.encode_name], field.type)
    return kind(**known)


def policy_text(policy: Policy) -> str | None:
    """The JSON text that is stored for a policy; None for the default."""
    return None if policy is _DEFAULT else _policy_text(policy)


@lru_cache(maxsize=1024)
def _policy_text(policy: Policy) -> str | None:
    backoff = policy.backoff
    stored = _Stored(
        None if backoff == _DEFAULT.backoff else (backoff.base, backoff.max, backoff.factor, backoff.jitter),
        policy.timeout,
        policy.on_expired,
        policy.on_failure,
        policy.on_dependency_failure,
        _stored_follow_up(policy.follow_up),
    )
    text = _encoder.encode(stored).decode()
    return None if text == "{}" else text


@lru_cache(maxsize=1024)
def policy(max_attempts: int, lease: float | None, text: str | None) -> Policy:
    """A policy from its columns."""
    if text is None:
        usual = max_attempts == _DEFAULT.max_attempts and lease is None
        return _DEFAULT if usual else Policy(max_attempts, lease=lease)
    stored = lenient(_Stored, text)
    backoff = Backoff(*stored.backoff) if stored.backoff else _DEFAULT.backoff
    options: Any = (stored.on_expired, stored.on_failure, stored.on_dependency_failure, _follow_up(stored.follow_up))
    return Policy(max_attempts, backoff, lease, stored.timeout, *options)


def _stored_follow_up(one: FollowUp | None) -> _StoredFollowUp | None:
    if one is None:
        return None
    policy = one.policy
    limits = (policy.max_attempts, policy.lease, policy_text(policy))
    return _StoredFollowUp(one.task, one.argument, one.queue, one.priority, *limits)


def _follow_up(one: _StoredFollowUp | None) -> FollowUp | None:
    if one is None:
        return None
    return FollowUp(one.task, one.argument, one.queue, one.priority, policy(one.max_attempts, one.lease, one.policy))


class DraftRow(msgspec.Struct, frozen=True):
    """A draft as the parameters of `enqueue/insert`."""

    id: str
    task: str
    queue: str
    priority: int
    payload: str
    run_at: float | None
    delay: float | None
    target: str | None
    group_key: str | None
    max_attempts: int
    policy: str | None
    lease: float | None
    unique_key: str | None
    windowed: bool
    chain: str
    position: int
    waits: int
    watched: bool
    context: str | None
    start_by: float | None


ChainPosition = tuple[str, int, bool]  # a chain, the position in it, and whether a job or caller waits for the chain


def draft_row(draft: Draft[Any], position: ChainPosition, waits: int) -> DraftRow:
    """Convert a draft. `waits`: for how many chains it waits."""
    policy = draft.policy
    chain, index, watched = position
    return DraftRow(
        draft.id, draft.task, draft.queue, draft.priority, draft.payload_json, draft.run_at, draft.delay, draft.target,
        draft.group, policy.max_attempts, policy_text(policy), policy.lease, draft.unique, draft.unique_for is not None,
        chain, index, waits, watched, draft.context, draft.start_by,
    )  # fmt: skip


def job(row: Row, *, existing: bool = False) -> Job[Any]:
    """A job from a row of a statement that returns `{job}`."""
    values: list[Any] = [*row, existing]
    for index, convert in _CONVERTED:
        value = values[index]
        if value is not None:
            values[index] = convert(value)
    return Job(*values)


def _progress_of(text: str) -> Progress | None:
    try:
        return _progress.decode(text)
    except msgspec.DecodeError:
        return None  # another release wrote it in another format


#: By the first word of a field's annotation, the function that converts its column.
_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "State": State,
    "Wait": Wait,
    "datetime": utc,
    "bool": bool,
    "Progress": _progress_of,
    "tuple[str,": lambda text: tuple(msgspec.json.decode(text)) if text != "[]" else (),
}


def _converters() -> list[tuple[int, Callable[[Any], Any]]]:
    """The index of each field that needs a conversion, and the function that converts it."""
    found: list[tuple[int, Callable[[Any], Any]]] = []
    for index, (name, kind) in enumerate(job_fields().items()):
        convert = _none_if_empty if name == "group" else _CONVERTERS.get(kind.partition(" ")[0])
        if convert is not None:
            found.append((index, convert))
    return found


def _none_if_empty(group: str) -> str | None:
    return group or None


_CONVERTED = _converters()


def new_job(draft: Draft[Any], position: ChainPosition, row: Row) -> Job[Any]:
    """A job just enqueued, from its draft and the row of `enqueue`."""
    chain, index, _ = position
    _, state, wait, created, run, _ = row
    return Job(
        id=draft.id,
        task=draft.task,
        queue=draft.queue,
        state=State.QUEUED if wait is None else State(state),
        priority=draft.priority,
        payload_json=draft.payload_json,
        attempt=0,
        max_attempts=draft.policy.max_attempts,
        losses=0,
        version=0,
        chain=chain,
        position=index,
        created_at=utc(created),
        run_at=utc(run),
        wait=None if wait is None else Wait(wait),
        target=draft.target,
        unique=draft.unique,
        group=draft.group,
        context=draft.context,
        start_by=None if draft.start_by is None else utc(draft.start_by),
        tags=draft.tags,
        rerun_of=draft.rerun_of,
    )


def new_plain_job(draft: Draft[Any], created: datetime) -> Job[Any]:
    """A job just enqueued that waits for nothing, or for its target."""
    state, wait = (State.QUEUED, None) if draft.target is None else (State.PENDING, Wait.TARGET)
    return Job(
        draft.id, draft.task, draft.queue, state, draft.priority, draft.payload_json, 0, draft.policy.max_attempts, 0,
        0, draft.id, 0, created, created, wait=wait, target=draft.target, unique=draft.unique, group=draft.group,
        context=draft.context,
    )  # fmt: skip


def claimed(rows: list[Row], token: str) -> list[Claimed]:
    """Jobs from the rows of a statement that returns `{claimed}`."""
    jobs = []
    for row in rows:
        id, version, task, queue, payload, attempt, max_attempts, stored, rank, seq, created, run, expires, rare = row
        target, losses, lease, chain, position, group, dependency_count, context = (
            (None, 0, None, id, 0, None, 0, None) if rare is None else _rare(rare)
        )
        job = Claimed(
            id, token, version, task, queue, payload, -rank, target, attempt, losses,
            policy(max_attempts, lease, stored), chain, position, (rank, seq), created, run, expires,
            group, dependency_count, context,
        )  # fmt: skip
        jobs.append(job)
    return jobs


def _rare(stored: str | list[str | None]) -> tuple[Any, ...]:
    """The values that few jobs have. Numbers come as text from PostgreSQL's array."""
    values: list[Any] = stored if isinstance(stored, list) else msgspec.json.decode(stored)
    target, losses, lease, chain, position, group, dependency_count, context = values
    seconds = None if lease is None else float(lease)
    return target, int(losses), seconds, chain, int(position), group or None, int(dependency_count), context


def lease_rows(leases: Sequence[Lease]) -> list[dict[str, str]]:
    """Leases as the parameters of statements that take a batch of them."""
    return [{"id": id, "token": token} for id, token in leases]


def running(row: Row, queue: str = "") -> Running:
    """The facts for a decision about a job that leaves `running`, from a row of `lock_owned` or `lock_expired`."""
    id, attempt, losses, alone, request, target, max_attempts, stored = row
    return Running(id, attempt, losses, bool(alone), request, target, policy(max_attempts, None, stored), queue)


def change_row(change: Change, keep_run_at: bool = False) -> dict[str, Any]:
    """A decision as the parameters of `settle/change`."""
    return {
        "id": change.id,
        "outcome": OUTCOMES.get(change.verb, change.verb),
        "state": change.state,
        "wait": change.wait,
        "delay": None if keep_run_at or change.wait is not Wait.TIME else change.delay,
        "attempt": change.attempt,
        "losses": change.losses,
        "holds": change.holds,
        "error": clean(change.error),
        "error_type": clean(change.error_type),
        "keeps_token": change.keeps_token,
        "awaits": change.awaits,
    }


def finish_row(change: Change, result: str | None = None, continued: bool = False) -> dict[str, Any]:
    """A decision as the parameters of `settle/finish`."""
    return {
        "id": change.id,
        "state": change.state,
        "result": result,
        "error": clean(change.error),
        "error_type": clean(change.error_type),
        "losses": change.losses,
        "continued": continued,
        "keeps_token": change.keeps_token,
    }


LONGEST_ERROR = 16_000


def clean(error: str | None) -> str | None:
    """The text of an error as both databases accept it: an attempt can be settled whatever its handler raises."""
    if error is None:
        return None
    if len(error) > LONGEST_ERROR:  # keep both ends: the exception comes first, the line that raised it last
        error = f"{error[:2000]}\n[...]\n{error[2000 - LONGEST_ERROR :]}"
    return error.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def names(text: str | None) -> frozenset[str]:
    """The names in a JSON list; none if the text is empty."""
    return frozenset(msgspec.json.decode(text)) if text else frozenset()
