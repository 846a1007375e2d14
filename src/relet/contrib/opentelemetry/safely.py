"""Errors in telemetry are logged once, and do not reach jobs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger("relet.telemetry")


class Safely:
    """Context managers that log an exception instead of raising it: once for each step."""

    def __init__(self) -> None:
        self._logged: set[str] = set()

    @contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        """Suppress exceptions. An abort of a handler is not an `Exception`, and is raised."""
        try:
            yield
        except Exception:
            if step not in self._logged:
                self._logged.add(step)
                log.exception("Telemetry failed while %s. Jobs are not affected; this is logged once.", step)
