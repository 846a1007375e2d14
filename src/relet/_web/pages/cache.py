"""A cache for charts and problems: many open pages cost little more than one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from .page import PageContext

T = TypeVar("T")

FRESH = 1 / 12  # of the step of a chart: a bar that is five seconds late is not noticed


@dataclass
class _Entry:
    lock: threading.Lock = field(default_factory=threading.Lock)
    until: float = 0.0
    value: Any = None


class Cache:
    """Recent values by store and key. The entries of a store are dropped with the store."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: WeakKeyDictionary[object, dict[object, _Entry]] = WeakKeyDictionary()

    def get(self, store: object, key: object, seconds: float, find: Callable[[], Any]) -> Any:
        """The cached value, if it is not older than `seconds`; else one caller computes it while the others wait."""
        with self._lock:
            entry = self._entries.setdefault(store, {}).setdefault(key, _Entry())
        with entry.lock:
            if time.monotonic() >= entry.until:
                entry.value = find()
                entry.until = time.monotonic() + seconds
            return entry.value

    def forget(self, store: object) -> None:
        """Drop all values of a store, because it was changed."""
        with self._lock:
            self._entries.pop(store, None)


_cache = Cache()


def shared(view: PageContext, key: object, step: float, find: Callable[[], T]) -> T:
    """Data of a chart with steps of this length, computed once for all users."""
    key = view.client._reads_replica, key  # the state on the primary must not be replaced by an older one
    found: T = _cache.get(view.client._store, key, step * FRESH, find)
    return found


def forget(view: PageContext) -> None:
    """Read all shared data again: an operator has changed something, and wants to see the effect."""
    _cache.forget(view.client._store)
