"""The events of a simulation, as `relet._torture.check` reads them."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from relet._torture.load import Event
from tests.simulation.kernel import Kernel


class Events:
    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.by_name: dict[str, list[Event]] = defaultdict(list)

    def write(self, event: str, *, at: float | None = None, **fields: Any) -> None:
        if self._kernel.is_over:  # threads are being ended
            return
        thread = self._kernel.current
        by = thread.name if thread is not None else "plan"
        pid = thread.process.pid if thread is not None else 0
        self.by_name[event].append(Event(self._kernel.now if at is None else at, by, pid, event, fields))
