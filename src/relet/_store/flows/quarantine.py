"""Quarantine: the right of a worker to finish its other jobs, in order to run one that must run alone.

One worker at a time has the right, so that slots never stay free in all workers at once. And while half of the workers
or more run such jobs, no other gets it: the rest serve all other jobs. One worker may in any case.
"""

from __future__ import annotations

from ..query import Flow, write
from .workers import LOST_AFTER

EXPIRES_AFTER = 3.0  # seconds: the right ends by itself if the worker dies


def enter(worker: str) -> Flow[bool]:
    """Ask for the right, or extend it. Returns whether the worker has it."""
    return bool((yield write("claim/enter_quarantine", worker=worker, seconds=EXPIRES_AFTER, lost=LOST_AFTER)))


def leave(worker: str) -> Flow[None]:
    """Give up the right: the worker runs nothing else by now, or goes on with other jobs."""
    yield write("claim/leave_quarantine", worker=worker)
