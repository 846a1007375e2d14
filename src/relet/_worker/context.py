"""The context that the parts of a worker share at one store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from .._core.codecs import Codecs
from .._core.schedule import Definition
from .._store.store import Store
from .._system import System
from .._tasks.task import Task
from ..events import Events
from .lease_table import LeaseTable
from .loop_threads import LoopThreads
from .meter import Meter
from .reconnect import ReapGuard
from .timers import Timers

Queues = Sequence[str] | Mapping[str, int | None]


class Settings(Struct, frozen=True, kw_only=True):
    """The options of `Worker`, after validation."""

    lease: float
    poll_interval: float
    rest: float
    keep_finished: float
    keep_payloads: float | None
    keep_failed: float
    queues: Queues | None


class WorkerContext(Struct, frozen=True, kw_only=True):
    """Identity, settings and services of a worker.

    The three stores are the same database with separate connections. The threads of the worker use `store`, so that
    handlers cannot take their connections. Only the heartbeat uses `heartbeat_store`. Handlers use `handler_store`,
    the store of the app, through their attempts. A simulation replaces `system`. The loops of tenants share threads:
    `threads`, and `heartbeat_threads`, which renew leases and do nothing else.
    """

    worker: str
    tenant: str | None
    settings: Settings
    tasks: Mapping[str, Task[..., Any]]
    schedules: Mapping[str, Definition]
    limits: Mapping[str, Mapping[str, Any]]  # declared in code, by queue
    codecs: Codecs
    events: Events
    store: Store
    heartbeat_store: Store
    handler_store: Store
    leases: LeaseTable
    meter: Meter
    guard: ReapGuard
    timers: Timers
    system: System
    resources: Mapping[Any, Any]  # values by type, made before the first claim
    threads: LoopThreads | None = None
    heartbeat_threads: LoopThreads | None = None
