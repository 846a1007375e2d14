"""Samples of the memory of a place's first program, taken in a thread."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

from bench.cells import Figures
from bench.machine import resident_mib
from bench.places import Place
from bench.statistic import slope

WARM_UP = 0.1  # of the samples: pools fill, modules are imported


class Sampler:
    """Resident memory of the first program that the place starts, which is the worker."""

    def __init__(self, place: Place, every: float) -> None:
        self._place, self._every = place, every
        self._samples: list[tuple[float, float]] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def _sample(self) -> None:
        while not self._done.wait(self._every):
            if self._place.programs and self._place.programs[0].counts.calls:
                with suppress(OSError):
                    self._samples.append((time.monotonic(), resident_mib(self._place.programs[0].pid)))

    def memory(self) -> Figures:
        """The highest, the first after the warm-up, the last, and the growth between them by a fitted line."""
        warm = self._samples[int(len(self._samples) * WARM_UP) :]
        if len(warm) < 2:
            raise RuntimeError("too few samples of memory")
        growth = slope(warm) * (warm[-1][0] - warm[0][0])
        return {"mib": max(m for _, m in warm), "first_mib": warm[0][1], "last_mib": warm[-1][1], "growth": growth}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._done.set()
        self._thread.join()
