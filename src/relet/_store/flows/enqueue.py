"""enqueue: drafts become rows. In a caller's transaction this inserts new rows and touches nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from typing import Any, TypeVar

from msgspec import Struct, structs

from ..._core.job import Draft, Job, utc
from ...errors import InvalidInput, JobNotFound, KeyTaken, ReletError, StoreBusy
from ..query import BEGIN, Conflict, Flow, Notify, as_json, read, repeated_by, write
from . import inspect, mapping, replace, unique_keys

Batch = Sequence[Draft[Any]]

Places = dict[str, mapping.Place]

MOST = 2000  # drafts, keys or ids sent in one statement
MOST_LINKS = 10_000
TRIES = 20
MOST_DOUBTS = 3

T = TypeVar("T")


def enqueue_again(drafts: Batch) -> Flow[list[Job[Any]]]:
    """Enqueue drafts that an earlier try may have stored: one with the id of a fresh draft is that draft's."""
    return _enqueue(drafts, frozenset(draft.id for draft in drafts if draft.fresh))


@repeated_by(enqueue_again)
def enqueue(drafts: Batch) -> Flow[list[Job[Any]]]:
    """Store the drafts; return their jobs in the same order, existing ones where an id or a key was known.

    A hundred thousand drafts are fine: what is kept of each is its job, and what is sent is sent in parts.
    """
    return _enqueue(drafts, frozenset())


@repeated_by(enqueue_again)
def enqueue_directly(drafts: Batch) -> Flow[list[Job[Any]]]:
    """The same on a connection of ours: new jobs that wait for nothing are one statement, which also notifies."""
    try:
        if len(drafts) == 1 and drafts[0].target is None and _is_plain(drafts[0]):
            return (yield from _insert_one(drafts[0]))
        if not all(map(_is_plain, drafts)) or len({draft.id for draft in drafts}) < len(drafts):
            return (yield from _enqueue(drafts, frozenset(), directly=True))
        return (yield from _insert_plain(drafts))
    except Exception as error:
        if _is_conflict(error):
            raise Conflict from error
        raise


def _is_plain(draft: Draft[Any]) -> bool:
    """Whether it is a new job without a key that waits for nothing but its target."""
    return draft.unique is None and _is_immediate(draft)


def _is_immediate(draft: Draft[Any]) -> bool:
    """Whether it is a new job that waits for nothing but its target. Its key, if any, is bound to its life alone."""
    return draft.fresh and draft.unique_for is None and not draft.after and draft.run_at is None and draft.delay is None


def _come_first(drafts: Batch) -> bool:
    """Whether such drafts come before all others of their batch, so that storing them first keeps the order."""
    immediate = [_is_immediate(draft) for draft in drafts]
    return immediate == sorted(immediate, reverse=True)


def _is_conflict(error: Exception) -> bool:
    """Whether a row has an id that is in the store already, as PostgreSQL or SQLite tells it."""
    name: str = getattr(error, "sqlite_errorname", "")
    return getattr(error, "sqlstate", None) == "23505" or name == "SQLITE_CONSTRAINT_PRIMARYKEY"


def _insert_one(draft: Draft[Any]) -> Flow[list[Job[Any]]]:
    policy = draft.policy
    ((created, notified),) = yield write(
        "enqueue/insert_one", id=draft.id, queue=draft.queue, task=draft.task, priority=draft.priority, key=draft.key,
        payload=draft.payload_json, max_attempts=policy.max_attempts, policy=mapping.policy_text(policy),
        lease=policy.lease, context=draft.context,
    )  # fmt: skip
    if notified:
        yield Notify("queued", sent=True)
    return [mapping.new_plain_job(draft, utc(created))]


Kind = tuple[str, str, int, int, str | None, float | None, bool]


def _insert_plain(drafts: Batch) -> Flow[list[Job[Any]]]:
    if len(drafts) > MOST:
        yield BEGIN
    jobs: list[Job[Any]] = []
    for _, some in _parts(drafts):
        jobs += yield from _insert_some_plain(some, ())
    return jobs


def _insert_some_plain(drafts: Batch, awaited: Container[str]) -> Flow[list[Job[Any]]]:
    """Store as many as one statement carries. `awaited`: ids that others of their batch wait for."""
    kinds: dict[tuple[str, str, int, int, bool], int] = {}
    numbers = [
        kinds.setdefault(
            (draft.queue, draft.task, draft.priority, id(draft.policy), draft.id in awaited), len(kinds) + 1
        )
        for draft in drafts
    ]
    firsts = [_kind(drafts[numbers.index(number)], is_awaited) for (*_, is_awaited), number in kinds.items()]
    queues, tasks, priorities, attempts, policies, leases, watched = (
        list(column) for column in zip(*firsts, strict=True)
    )
    targets = _unless_none([draft.target for draft in drafts])
    ((created, notified),) = yield write(
        "enqueue/insert_plain", queues=queues, tasks=tasks, priorities=priorities, max_attempts=attempts,
        policies=policies, leases=leases, watched=watched, kinds=numbers,
        ids=[draft.id for draft in drafts], payloads=[draft.payload_json for draft in drafts],
        keys=_unless_none([draft.key for draft in drafts]), contexts=_unless_none([draft.context for draft in drafts]),
        uniques=_unless_none([draft.unique for draft in drafts]),
        targets=targets,
    )  # fmt: skip
    if notified:
        yield Notify("queued" if targets is None else "jobs", sent=True)
    moment = utc(created)
    return [mapping.new_plain_job(draft, moment) for draft in drafts]


def _kind(draft: Draft[Any], is_awaited: bool) -> Kind:
    policy = draft.policy
    text = mapping.policy_text(policy)
    return draft.queue, draft.task, draft.priority, policy.max_attempts, text, policy.lease, is_awaited


def _unless_none(column: list[str | None]) -> list[str | None] | None:
    return None if column.count(None) == len(column) else column


def _enqueue(drafts: Batch, tried: frozenset[str], *, directly: bool = False) -> Flow[list[Job[Any]]]:
    """`tried`: ids of fresh drafts that may be in the store already. `directly`: on a connection of ours, where an id
    that is in the store already may end the transaction: then the flow is repeated."""
    drafts = replace.newest(drafts)
    may_circle = _refuse_twins(drafts)
    doubtful = {draft.id for draft in drafts if not draft.fresh} | tried
    if doubtful or len(drafts) > MOST or any(draft.unique or draft.after for draft in drafts):
        yield BEGIN  # a plain enqueue is one statement
    found = yield from _load(doubtful)
    found |= {id: structs.replace(found[id], existing=False) for id in tried & found.keys()}
    todo = [draft for draft in drafts if draft.id not in found] if found else drafts
    if may_circle:
        _refuse_circles(todo)
    chains = yield from _chains_named(todo)
    # Somebody may still wait for a job of a known id that was deleted, and waits for the new one then.
    if chains and (yield from _awaited([draft.id for draft in todo if not draft.fresh])):
        links = {draft.id: {chains[id] for id in draft.after} for draft in todo if draft.after}
        if (yield from circles(links)):
            raise InvalidInput(_CIRCLE)
    holders, existing, heirs = yield from _take_keys(todo, directly)
    # Whoever waits for a draft whose key is taken waits for the job that has it.
    chains |= {id: existing[holder].chain if holder in existing else holder for id, holder in holders.items()}
    chains |= {heir.after[-1]: existing[heir.after[-1]].chain for heir in heirs.values()}
    jobs = [found.get(draft.id) for draft in drafts]
    certain = {draft.id for draft in drafts} - found.keys() - holders.keys() - doubtful
    splits = directly and not heirs and _come_first(drafts)
    for start, some in _parts(drafts):
        new = [heirs.get(draft.id, draft) for draft in some if draft.id not in found and draft.id not in holders]
        direct = [draft for draft in new if _is_immediate(draft)] if splits else []
        added = {job.id: job for job in (yield from _insert_some_plain(direct, chains))} if direct else {}
        added |= yield from _insert([draft for draft in new if draft.id not in added], chains, doubtful, certain)
        jobs[start : start + MOST] = [added.get(draft.id) or found.get(draft.id) for draft in some]
    others = yield from _load(holders.get(d.id, d.id) for d, job in zip(drafts, jobs, strict=True) if job is None)
    return [job or others[holders.get(d.id, d.id)] for d, job in zip(drafts, jobs, strict=True)]


class Successor(Struct, frozen=True):
    """A draft that goes on with a chain."""

    draft: Draft[Any]
    chain: str
    position: int
    watched: bool


def refuse_successors(given: dict[str, tuple[Draft[Any], str]]) -> Flow[dict[str, ReletError]]:
    """What stands against drafts continuing a job, by the job's id: (draft, chain) in, an error out. Takes their keys.

    An insert that came to nothing would end the chain in silence.
    """
    known = yield from _load(draft.id for draft, _ in given.values())
    named = yield from _find({id for draft, _ in given.values() for id in draft.after})
    errors: dict[str, ReletError] = {}
    made: set[str] = set()  # by others of the batch
    for job, (draft, _) in given.items():
        unknown = [id for id in draft.after if id not in named]
        if draft.id in known or draft.id in made:
            errors[job] = InvalidInput(f"job {draft.id} exists already")
        elif unknown:
            errors[job] = JobNotFound(*unknown)
        else:
            made.add(draft.id)
    waiting = {
        chain: {named[id] for id in d.after} for job, (d, chain) in given.items() if d.after and job not in errors
    }
    circling = yield from circles(waiting)
    errors |= {job: InvalidInput(_CIRCLE) for job, (_, chain) in given.items() if chain in circling}
    heirs = {draft.id: job for job, (draft, _) in given.items() if job not in errors}
    taken = yield from unique_keys.take([draft for draft, _ in given.values() if draft.id in heirs], heirs)
    return errors | {heirs[id]: KeyTaken(*holder) for id, holder in taken.items()}


_CIRCLE = "the draft waits for its own chain, or for one that waits for it: they would wait for ever"


def circles(waiting: dict[str, set[str]]) -> Flow[set[str]]:
    """Which chains would wait for themselves, in however many steps, if they were to wait for these. Of several of one
    batch that close a circle only together, the last."""
    reached: dict[str, set[str]] = {}
    circling: set[str] = set()
    sought = as_json(sorted(waiting))
    for chain, blockers in waiting.items():
        # A chain that nobody waits for is in no circle, unless one of this batch is to wait for it.
        if len(waiting) == 1 and chain not in blockers and not (yield from _awaited([chain])):
            continue
        ahead = [
            row[0] for row in (yield read("enqueue/reachable_chains", chains=as_json(sorted(blockers)), sought=sought))
        ]
        seen: set[str] = set()
        while ahead:
            one = ahead.pop()
            if one not in seen:
                seen.add(one)
                ahead += reached.get(one, ())
        if chain in seen:
            circling.add(chain)
        else:
            reached[chain] = seen
    return circling


def _awaited(chains: Sequence[str]) -> Flow[bool]:
    """Whether anybody waits for one of these."""
    for _, some in _parts(chains):
        if (yield read("promote/dependencies_on_chains", batch=as_json([{"key": chain} for chain in some]), most=1)):
            return True
    return False


def add_successors(given: Sequence[Successor]) -> Flow[None]:
    """Store drafts that continue chains, once nothing stands against them."""
    chains = yield from _find({id for one in given for id in one.draft.after})
    places = {one.draft.id: (one.chain, one.position, one.watched) for one in given}
    for _, some in _parts(given):
        added = yield from _insert([one.draft for one in some], chains, set(), set(), places)
        missing = [one for one in some if one.draft.id not in added]
        for one in missing:
            raise InvalidInput(f"continue_with: job {one.draft.id} exists already")


def _parts(items: Sequence[T]) -> Iterator[tuple[int, Sequence[T]]]:
    """What one statement carries of many, and where that begins."""
    return ((start, items[start : start + MOST]) for start in range(0, len(items), MOST))


def _refuse_twins(drafts: Batch) -> bool:
    """Whether a draft waits for one that comes after it in the batch: else they cannot wait in a circle."""
    seen: set[str] = set()
    ahead: set[str] = set()
    for draft in drafts:
        ahead.update(id for id in draft.after if id not in seen)
        seen.add(draft.id)
    if len(seen) < len(drafts):
        raise InvalidInput("one batch holds two drafts with the same id")
    return not ahead.isdisjoint(seen)


def _load(ids: Iterable[str]) -> Flow[dict[str, Job[Any]]]:
    found: dict[str, Job[Any]] = {}
    for _, some in _parts(sorted(set(ids))):
        for row in (yield read("inspect/get", ids=as_json(some))):
            found[row[0]] = mapping.job(row, existing=True)
    return found


def _find(ids: set[str]) -> Flow[dict[str, str]]:
    """The chains of those jobs that exist. Those that are over stay until this transaction ends."""
    found: dict[str, str] = {}
    for _, some in _parts(sorted(ids)):
        yield write("enqueue/lock_finished", ids=as_json(some))  # before it is looked: what is found then cannot vanish
        found |= yield from inspect.chains_of(some)
    return found


def _chains_named(drafts: Batch) -> Flow[dict[str, str]]:
    """The chain of each job named in `after`. Drafts of this batch are their own chains; unknown ids are refused."""
    named = {id for draft in drafts for id in draft.after}
    if not named:
        return {}
    chains = {draft.id: draft.id for draft in drafts if draft.id in named}
    chains |= yield from _find(named - chains.keys())
    unknown = sorted(named - chains.keys())
    if unknown:
        raise JobNotFound(*unknown)
    return chains


def _refuse_circles(drafts: Batch) -> None:
    """Drafts of one batch may wait for each other, but not in a circle: they would wait for ever."""
    here = {draft.id for draft in drafts}
    try:
        TopologicalSorter({draft.id: here.intersection(draft.after) for draft in drafts if draft.after}).prepare()
    except CycleError as error:
        raise InvalidInput(f"drafts wait for each other in a circle: {' -> '.join(error.args[1])}") from None


def _take_keys(
    drafts: Batch, directly: bool
) -> Flow[tuple[dict[str, str], dict[str, Job[Any]], dict[str, Draft[Any]]]]:
    """For each draft whose key another job holds, that job's id; those jobs; and drafts that follow a job that runs."""
    firsts, twins = replace.firsts(drafts)
    existing: dict[str, Job[Any]] = {}
    heirs: dict[str, Draft[Any]] = {}
    # What has its key after all that, though it runs or is over, or has not let it go in some tries, has a window.
    doubts: Counter[tuple[str, str]] = Counter()
    for _ in range(TRIES):
        holders, found = yield from _try_to_take_keys(firsts, directly)
        existing |= found
        wanted = [draft for draft in firsts if draft.replace and holders.get(draft.id) in found]
        wanted = [draft for draft in wanted if doubts[draft.id, holders[draft.id]] < MOST_DOUBTS]
        again = False
        if wanted:
            more, again = yield from replace.replace_or_follow(wanted, holders, found)
            for draft in wanted:
                waits = found[holders[draft.id]].state in replace.WAITING
                doubts[draft.id, holders[draft.id]] += 1 if waits else MOST_DOUBTS
            heirs |= more
            holders = {id: holder for id, holder in holders.items() if id not in more}
        if not again:
            holders |= {id: holders.get(first, first) for id, first in twins.items()}
            return holders, existing, heirs
    raise StoreBusy("unique keys change hands too often")


def _try_to_take_keys(drafts: Batch, directly: bool) -> Flow[tuple[dict[str, str], dict[str, Job[Any]]]]:
    """For each draft whose key another job holds, that job's id; and those jobs. An error if only a window is left."""
    lost = yield from (unique_keys.take_directly if directly else unique_keys.take)(drafts)
    ids = {draft.id for draft in drafts} if lost else set[str]()
    existing = yield from _load(holder for _, holder in lost.values() if holder not in ids)
    for key, holder in lost.values():
        if holder not in existing and holder not in ids:
            yield from unique_keys.give_back(drafts)
            raise KeyTaken(key, holder)
    return {id: holder for id, (_, holder) in lost.items()}, existing


def _insert(
    drafts: Batch,
    chains: dict[str, str],
    doubtful: set[str],
    certain: set[str],
    places: Places | None = None,
) -> Flow[dict[str, Job[Any]]]:
    """Store drafts that one statement can carry, and what they wait for.

    `certain`: ids of the batch that become new jobs in this transaction. One that is waited for is watched from the
    start, so its end is announced: who waits for such jobs alone needs no nudge.
    """
    if not drafts:
        return {}
    # A draft that others of its batch wait for is watched from the start: promote need not see to it.
    places = places or {draft.id: (draft.id, 0, draft.id in chains) for draft in drafts}
    blockers = {draft.id: list(dict.fromkeys(chains[id] for id in draft.after)) for draft in drafts if draft.after}
    batch = [mapping.draft_row(draft, places[draft.id], len(blockers.get(draft.id, ()))) for draft in drafts]
    added = {row[0]: row for row in (yield write("enqueue/insert", batch=as_json(batch)))}
    links = ((id, blocker, n) for id in blockers.keys() & added.keys() for n, blocker in enumerate(blockers[id]))
    while some := list(islice(links, MOST_LINKS)):
        yield write(
            "enqueue/insert_dependencies",
            batch=as_json([{"job": id, "blocker": b, "position": n} for id, b, n in some]),
        )
    to_decide = [id for id, chain in blockers.items() if id in added and not certain.issuperset(chain)]
    if to_decide:
        yield write(
            "promote/insert_nudges", batch=as_json([{"kind": "after", "key": id, "beyond": None} for id in to_decide])
        )
    if doubtful & added.keys():
        again = as_json(sorted(doubtful & added.keys()))
        yield write("enqueue/nudge_dependents", ids=again)
        for (id,) in (yield write("enqueue/delete_resurrected", ids=again)):
            del added[id]
    if any(row[5] for row in added.values()):
        yield Notify("jobs", sent=True)
    return {d.id: mapping.new_job(d, places[d.id], added[d.id]) for d in drafts if d.id in added}
