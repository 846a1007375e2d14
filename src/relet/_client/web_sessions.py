"""Sessions of the dashboard that were signed out. The store keeps them, so that all processes and restarts know."""

from __future__ import annotations

from collections.abc import Callable

from .._store.flows import web_sessions
from .._store.store import Store


class EndedSessions:
    """Sessions by their hash, which cannot be used to sign in."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store

    def add(self, mark: str, seconds: float) -> None:
        """Keep the hash of a session until the session would have expired."""
        self._store().run(web_sessions.end, mark, seconds)

    def has(self, mark: str) -> bool:
        return self._store().run(web_sessions.has_ended, mark)
