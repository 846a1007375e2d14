"""Which requests the replica may answer, and what their pages tell about it.

A user must not see the state from before a change of their own. Until the replica has replayed that change, the primary
answers them. A cookie carries the position of the change to the other processes that serve the dashboard.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from .._client.client import Client
from .._core.views import ReplicaStatus
from ..errors import ReletError

COOKIE = "relet_changed"
KEPT = 60  # seconds: longer than a replica may be behind and still serve reads
UNKNOWN = 2**63 - 1  # the position of a change that could not be read: no replica counts as having replayed it

FROM_PRIMARY = "Lists and figures come from the primary: "
NOT_REPLAYED = FROM_PRIMARY + "the replica does not have your last change yet."


class ReplicaReads:
    """The latest change of each user, as a position in the log of the primary."""

    def __init__(self) -> None:
        self._changes: dict[
            str, tuple[int, float]
        ] = {}  # by the name of a token: the position, and until when it counts

    def record(self, client: Client, who: str) -> int | None:
        """Record that this user has just changed something. Returns the position; None if there is no replica."""
        try:
            position = client._replica_position()
        except ReletError:
            position = UNKNOWN
        if position is not None:
            self._keep(who, position)
        return position

    def record_cookie(self, who: str, text: str | None) -> None:
        """Record a change that this user has made through another process."""
        if text and text.isascii() and text.isdecimal() and len(text) < 20:
            self._keep(who, int(text))

    def _keep(self, who: str, position: int) -> None:
        before, until = self._changes.get(who, (0, 0.0))
        now = time.monotonic()
        if position > before or now >= until:
            self._changes[who] = position, now + KEPT

    def choose(self, client: Client, who: str) -> tuple[Client, Callable[[], str]]:
        """The client to read with for this user, and a function that tells afterwards where the figures came from."""
        status = client._replica_status()
        if status is None:
            return client, str
        if status.problem is None and not self._has_replayed(client, who):
            return client, lambda: NOT_REPLAYED
        reading = client.replica()
        return reading, lambda: sentence(reading._replica_status())

    def _has_replayed(self, client: Client, who: str) -> bool:
        position, until = self._changes.get(who, (0, 0.0))
        if time.monotonic() >= until:
            self._changes.pop(who, None)
            return True
        return client._replica_has(position)


def sentence(status: ReplicaStatus | None) -> str:
    """Where lists and figures come from, for a page."""
    if status is None:
        return ""
    if status.problem is not None:
        return f"{FROM_PRIMARY}{status.problem}."
    return f"Lists and figures come from a replica, {behind(status)}."


def behind(status: ReplicaStatus) -> str:
    """How far a replica is behind, in words that do not change with every read."""
    lag = status.lag or 0.0
    return "less than a second behind" if lag < 1 else f"{round(lag)} s behind"
