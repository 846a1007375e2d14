"""What is done to whole chains: delete one, and all that waits for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..._core.job import State
from ...errors import HasDependents, JobNotFound
from ..query import BEGIN, Flow, Notify, Row, as_json, pairs, read, write
from . import inspect, promote

PATIENCE = 2.0  # of people, in seconds


def delete_chain(job_id: str, *, dependents: bool = False) -> Flow[list[str]]:
    """Remove all jobs of the chain that a job belongs to, with their history; returns their ids.

    Refused while jobs of other chains wait for it, unless `dependents`: then their chains are removed as well, and
    those of all that wait for them. The promoter's lock comes first: nobody else decides meanwhile who waits for what.
    """
    yield BEGIN
    yield write("control/set_lock_timeout", seconds=PATIENCE)
    yield write("promote/lock")
    found = yield from inspect.chains_of([job_id])
    if not found:
        raise JobNotFound(job_id)
    root = found[job_id]
    held = yield from _hold([root])
    yield from promote.announce(root)  # if it is over, the jobs that waited for it get its result and wait no more
    chains = {root}
    while True:
        waiting = yield read("control/waiting_chains", chains=as_json([root]))
        if waiting and not dependents:
            raise HasDependents(root, tuple(dict.fromkeys(job for job, _, blocker in waiting if blocker == root)))
        wanted = {root, *(chain for _, chain, _ in waiting)}
        if wanted == chains:
            break  # nothing has changed since all of them were locked
        chains = wanted
        held = yield from _hold(chains)
    ids = [row[0] for row in (yield read("control/chain_ids", chains=_list(chains)))]
    yield from remove(ids)
    if any(state == State.RUNNING for _, state, *_ in held):
        yield Notify("request")
    yield Notify("jobs")
    yield Notify("done")
    return ids


def remove(ids: Sequence[str]) -> Flow[None]:
    """Delete jobs that are locked. A key that one has taken over from a job that runs is that job's again."""
    yield write("control/return_keys", ids=as_json(ids))
    yield write("control/delete_jobs", ids=as_json(ids))


def _hold(chains: Iterable[str]) -> Flow[list[Row]]:
    """Lock the live job of each chain. One that went on while we waited for it has another by now."""
    while True:
        locked = yield write("control/lock_chains", chains=_list(chains))
        ends = pairs((yield read("promote/chain_states", chains=_list(chains))))
        if {chain for *_, chain, _ in locked} >= {chain for chain, state in ends.items() if not State(state).over}:
            return locked


def _list(values: Iterable[str]) -> str:
    return as_json(sorted(values))
