"""Pauses between looks at something that a test waits for."""

from __future__ import annotations

import time


class Pause:
    """Each pause is longer than the one before: a look may be a query, and hundreds in a second keep a core busy."""

    def __init__(self, first: float = 0.005, longest: float = 0.04) -> None:
        self._next, self._longest = first, longest

    def __call__(self) -> None:
        time.sleep(self._next)
        self._next = min(self._next * 1.3, self._longest)
