"""Sessions of the web that were signed out, kept in the store: it outlives a restart, and all processes share it."""

from __future__ import annotations

from collections.abc import Callable

from .._store.flows import web_sessions
from .._store.store import Store


class EndedSessions:
    """What is kept of them: a hash of each, which opens nothing."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store

    def add(self, mark: str, seconds: float) -> None:
        """This one has ended, which is to be known for so long."""
        self._store().run(web_sessions.end, mark, seconds)

    def has(self, mark: str) -> bool:
        """Whether this one was signed out."""
        return self._store().run(web_sessions.has_ended, mark)
