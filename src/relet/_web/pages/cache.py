"""Charts are made once for all who look: many open pages cost little more than one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from .context import View

T = TypeVar("T")

FRESH = 1 / 12  # of the step of a chart: a bar that is five seconds late is not seen


@dataclass
class _Kept:
    lock: threading.Lock = field(default_factory=threading.Lock)
    until: float = 0.0
    value: Any = None


class Memory:
    """What was found out of late, for each store by itself; forgotten with the store."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: WeakKeyDictionary[object, dict[object, _Kept]] = WeakKeyDictionary()

    def get(self, store: object, key: object, seconds: float, find: Callable[[], Any]) -> Any:
        """What is known and not older than that; else it is found out, by one caller for all."""
        with self._lock:
            kept = self._kept.setdefault(store, {}).setdefault(key, _Kept())
        with kept.lock:
            if time.monotonic() >= kept.until:
                kept.value = find()
                kept.until = time.monotonic() + seconds
            return kept.value


_memory = Memory()


def shared(view: View, key: object, step: float, find: Callable[[], T]) -> T:
    """What charts with steps of that length are made of: found out for one, and shown to all who look."""
    found: T = _memory.get(view.client._store, key, step * FRESH, find)
    return found
