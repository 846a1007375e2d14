"""Deletion of whole chains, with the chains that wait for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..._core.job import State
from ...errors import HasDependents, JobNotFound
from ..query import BEGIN, Flow, Notify, Row, as_json, pairs, read, write
from . import inspect, promote

LOCK_TIMEOUT = 2.0  # seconds that an operator waits for a lock


def delete_chain(job_id: str, *, dependents: bool = False) -> Flow[list[str]]:
    """Delete all jobs of the chain that a job belongs to, with their history. Returns their ids.

    Refused while jobs of other chains wait for it, unless `dependents`: then their chains are deleted as well, and so
    on. Takes the promoter's lock first: no promoter decides dependencies meanwhile.
    """
    yield BEGIN
    yield write("control/set_lock_timeout", seconds=LOCK_TIMEOUT)
    yield write("promote/lock")
    found = yield from inspect.chains_of([job_id])
    if not found:
        raise JobNotFound(job_id)
    root = found[job_id]
    locked = yield from _lock_live_jobs([root])
    yield from promote.announce(root)  # if it is over, jobs that wait for it are decided while its result exists
    chains = {root}
    while True:
        waiting = yield read("control/waiting_chains", chains=as_json([root]))
        if waiting and not dependents:
            raise HasDependents(root, tuple(dict.fromkeys(job for job, _, depends_on in waiting if depends_on == root)))
        wanted = {root, *(chain for _, chain, _ in waiting)}
        if wanted == chains:
            break  # nothing has changed since all of them were locked
        chains = wanted
        locked = yield from _lock_live_jobs(chains)
    ids = [row[0] for row in (yield read("control/chain_ids", chains=_list(chains)))]
    yield from remove(ids)
    if any(state == State.RUNNING for _, state, *_ in locked):
        yield Notify("request")
    yield Notify("jobs")
    yield Notify("done")
    return ids


def remove(ids: Sequence[str]) -> Flow[None]:
    """Delete jobs that are locked. A unique key that one took over from a running job goes back to that job."""
    yield write("control/return_keys", ids=as_json(ids))
    yield write("control/remember_deleted", ids=as_json(ids))
    yield write("control/delete_jobs", ids=as_json(ids))


def _lock_live_jobs(chains: Iterable[str]) -> Flow[list[Row]]:
    """Lock the live job of each chain. Repeats if a chain was continued while this waited for the lock."""
    while True:
        locked = yield write("control/lock_chains", chains=_list(chains))
        states = pairs((yield read("promote/chain_states", chains=_list(chains))))
        live = {chain for chain, state in states.items() if not State(state).over}
        if live <= {chain for *_, chain, _ in locked}:
            return locked


def _list(values: Iterable[str]) -> str:
    return as_json(sorted(values))
