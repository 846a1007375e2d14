"""Sessions of the dashboard that were signed out. The store keeps them, so that all processes and restarts know."""

from __future__ import annotations

from .._store.flows import web_sessions
from .inspection import Inspection


class EndedSessions:
    """Sessions by their hash, which cannot be used to sign in."""

    def __init__(self, client: Inspection) -> None:
        self._client = client

    def add(self, mark: str, seconds: float) -> None:
        """Keep the hash of a session until the session would have expired."""
        self._client._store.run(web_sessions.end, mark, seconds)

    def has(self, mark: str) -> bool:
        return self._client._store.run(web_sessions.has_ended, mark)
