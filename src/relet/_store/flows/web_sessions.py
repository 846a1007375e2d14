"""Sessions of the web that were signed out before they were over. A session is known here by its hash only."""

from __future__ import annotations

from ..query import Flow, read, read_only, write

MOST_PRUNED = 1000


def end(mark: str, seconds: float) -> Flow[None]:
    """Keep for so long that a session has ended, and forget those that are over in any case."""
    yield write("web/prune_sessions", most=MOST_PRUNED)
    yield write("web/end_session", id=mark, seconds=seconds)


@read_only
def has_ended(mark: str) -> Flow[bool]:
    """Whether a session was signed out."""
    return bool((yield read("web/ended_session", id=mark)))
