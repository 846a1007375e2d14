"""What goes wrong in telemetry is said once, and hurts nobody."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger("relet.telemetry")


class Quiet:
    """Remembers what it has complained of."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    @contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        """Go on, whatever is raised inside. Aborts of a handler are no `Exception`, and pass."""
        try:
            yield
        except Exception:
            if what not in self._said:
                self._said.add(what)
                log.exception("%s failed; jobs go on without it, and it is not said again", what)
