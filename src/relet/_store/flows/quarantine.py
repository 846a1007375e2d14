"""Quarantine: which worker may empty itself for a job that must run alone.

One at a time, so that free slots never stand idle in all workers at once. And where others run such jobs already, only
as long as they are fewer than half of the workers: the rest is there for all other jobs. One worker may in any case.
"""

from __future__ import annotations

from ..query import Flow, write
from .workers import LOST_AFTER

HELD_FOR = 3.0  # seconds that the right lasts: it ends by itself if its holder dies


def enter(worker: str) -> Flow[bool]:
    """Ask for the right. One who has it may ask again."""
    return bool((yield write("claim/enter_quarantine", worker=worker, seconds=HELD_FOR, lost=LOST_AFTER)))


def leave(worker: str) -> Flow[None]:
    """The worker is empty, or goes on: it is another's turn."""
    yield write("claim/leave_quarantine", worker=worker)
