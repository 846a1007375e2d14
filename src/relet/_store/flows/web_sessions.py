"""Web sessions that were signed out before they expired. The store knows only the hash of a session."""

from __future__ import annotations

from ..query import Flow, read, read_only, write

MAX_PRUNED = 1000


def end(mark: str, seconds: float) -> Flow[None]:
    """Record for `seconds` that a session has ended, and delete records of sessions that have expired anyway."""
    yield write("web/prune_sessions", limit=MAX_PRUNED)
    yield write("web/end_session", id=mark, seconds=seconds)


@read_only
def has_ended(mark: str) -> Flow[bool]:
    """Whether a session was signed out."""
    return bool((yield read("web/ended_session", id=mark)))
