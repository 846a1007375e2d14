"""Erasing: jobs are deleted with everything that other tables hold of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.job import Job
from ..query import BEGIN, LONG, Flow, as_json, bounded, write
from . import control

MAX_AUDITED = 5000  # actions that one transaction reads


def erase_jobs(jobs: Sequence[Job[Any]]) -> Flow[int]:
    """Delete jobs, whatever their state, with the copies of their results, their keys and their records."""
    yield BEGIN
    done = 0
    for job in sorted(jobs, key=lambda job: job.id):
        done += yield from control.delete(job.id)
    ids = [job.id for job in jobs]
    chains = {job.chain for job in jobs}
    keys = {job.unique for job in jobs if job.unique is not None}
    yield write("erase/traces", ids=as_json(ids), chains=as_json(sorted(chains)), keys=as_json(sorted(keys)))
    return done


def erase_group(group: str) -> Flow[None]:
    """Remove a group from the records of limits."""
    yield BEGIN
    yield write("erase/group", group=group)


@bounded(LONG)
def erase_audited(value: str, beyond: int = 0) -> Flow[int | None]:
    """Remove a tag, group or target from the audit trail: from some of the actions after `beyond`. Returns where to
    continue if there may be more."""
    yield BEGIN
    ((last, number),) = yield write("erase/audit", value=as_json(value), beyond=beyond, limit=MAX_AUDITED)
    return int(last) if number == MAX_AUDITED else None
