"""Erasing: jobs are deleted with everything that other tables hold of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.job import Job
from ..query import BEGIN, Flow, as_json, write
from . import control


def erase_jobs(jobs: Sequence[Job[Any]]) -> Flow[int]:
    """Delete jobs, whatever their state, with the copies of their results, their keys and what was recorded of them."""
    yield BEGIN
    done = 0
    for job in sorted(jobs, key=lambda job: job.id):
        done += yield from control.delete(job.id)
    ids = [job.id for job in jobs]
    chains = {job.chain for job in jobs}
    yield write("erase/traces", ids=as_json(ids), chains=as_json(sorted(chains)))
    return done


def erase_value(value: str) -> Flow[None]:
    """Remove a tag, group or target from the audit trail and from the records of limits."""
    yield BEGIN
    yield write("erase/audit", value=as_json(value))
    yield write("erase/group", group=value)
