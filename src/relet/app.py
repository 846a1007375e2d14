"""The app: the store's URL, the tasks, and the clients."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from msgspec import UNSET

from ._client.async_client import AsyncClient
from ._client.client import Client
from ._client.limits import QueueLimits
from ._core import payload, validate
from ._core.codecs import Codec
from ._core.redact import KEYS
from ._core.schedule import Definition, Missed, Overlap, define
from ._core.validate import Seconds
from ._store.open import DEFAULT_URL, open_replica, open_store
from ._store.query import Clock
from ._store.store import Store
from ._tasks.options import Defaults, check_defaults
from ._tasks.task import ConfiguredTask, TaskRegistry
from .errors import InvalidInput

if TYPE_CHECKING:
    from ._worker.embedded import EmbeddedWorker, WorkerOptions

T = TypeVar("T", bound=ConfiguredTask[..., Any])


class App(TaskRegistry):
    """Where tasks are registered and jobs are enqueued.

    `url`: `sqlite:///path.db` or `postgresql://user:password@host/database`; by default RELET_URL from the
    environment, else the file relet.db in the working directory. `schema`: the schema of the tables; on SQLite a prefix
    of their names. `connections`: how many connections a process opens at most (PostgreSQL), and as many again for
    handlers' transactions. `payload_limit`: the maximum size of a payload or result, in bytes of JSON. `redact`: keys
    in payloads and results whose values the dashboard and the command line hide. `defaults`: options for all tasks that
    do not set them: `queue`, `max_attempts`, `backoff`, `timeout`, `lease` and `codec`. `codecs`: how values are
    encrypted or compressed in the store (`relet.codecs`): the first one encodes, and each decodes what it has encoded.
    `replica`: the URL of a streaming standby of the database, by default RELET_REPLICA_URL from the environment. The
    dashboard, the metrics and `client.replica()` read lists and figures from it (PostgreSQL).

    The app connects at first use. `with App(...) as app` closes its connections at the end.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        schema: str = "relet",
        connections: int = 10,
        payload_limit: int = payload.MAX_BYTES,
        redact: Iterable[str] = KEYS,
        defaults: Defaults | None = None,
        codecs: Iterable[Codec] = (),
        replica: str | None = None,
    ) -> None:
        limit = validate.integer("payload_limit", payload_limit, 64, 64 * 1024 * 1024)
        super().__init__(payload_limit=limit, defaults=check_defaults(defaults or {}), codecs=codecs, redact=redact)
        self._codec_of(self._defaults)  # raises now if the default codec does not exist, not at the first task
        self._url = url or os.environ.get("RELET_URL") or DEFAULT_URL
        self._replica_url = (os.environ.get("RELET_REPLICA_URL") if replica is None else replica) or None
        self._schema = validate.schema(schema)
        self._connections = validate.integer("connections", connections, 1, 1000)
        self._clock: Clock | None = None  # of the stores; None: the database's
        self._stores: dict[str | None, Store] = {None: self._open(None, None)}
        self._lock = threading.Lock()
        self.schedules: dict[str, Definition] = {}  # declared in code
        self.limits: dict[str, dict[str, Any]] = {}  # declared in code, by queue
        self._limited_tasks: dict[str, str] = {}  # by queue, the task that declares its limits
        self._client = Client(self, self._store)
        self._aclient = AsyncClient(self, self._store)

    @property
    def client(self) -> Client:
        """The client for synchronous code."""
        return self._client

    @property
    def aclient(self) -> AsyncClient:
        """The client for async code."""
        return self._aclient

    def schedule(
        self,
        cron: str | None = None,
        *,
        every: float | None = None,
        timezone: str = "UTC",
        name: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        missed: Missed = "once",
        overlap: Overlap = "allow",
    ) -> Callable[[T], T]:
        """Enqueue a task periodically: `@app.schedule("*/5 * * * *", timezone="Europe/Berlin")` above `@app.task`.

        Pass `cron`, an expression of five fields, or `every`, a number of seconds. `arguments`: the arguments of the
        task. `name`: by default the task's. `missed`: for ticks while no worker ran, enqueue one job for all of them
        (`once`), one for each (`all`), or none (`skip`). `overlap`: while the job of an earlier tick is not over,
        enqueue another (`allow`), none (`skip`), or one that waits for it (`wait`). Workers store the declared
        schedules when they start; `client.schedules` changes them while they run.
        """

        def add(task: T) -> T:
            if not isinstance(task, ConfiguredTask):
                raise InvalidInput(f"{task!r} is not a task: write @app.schedule(...) above @app.task")
            draft = task._untraced_draft((), arguments or {})
            title = validate.text("name", name or draft.task)
            if title in self.schedules:
                raise InvalidInput(f"two schedules are named {title}; give one of them another name=")
            self.schedules[title] = define(draft, cron, every, timezone, missed, overlap)
            return task

        return add

    def limit_queue(
        self,
        queue: str,
        /,
        *,
        max_running: int | None = None,
        rate: int | None = None,
        per: Seconds | None = None,
        group: str | None = None,
        fair: bool | None = None,
    ) -> None:
        """Declare limits of a queue in code; the arguments are those of `client.limit_queue`.

        Workers store declared limits when they start. `client.limit_queue` changes them while workers run, and what it
        has set stays until the declaration changes. A limit that the code no longer declares is removed.
        """
        limits = QueueLimits(
            queue=queue,
            max_running=UNSET if max_running is None else max_running,
            rate=UNSET if rate is None else rate,
            per=per,
            group=group,
            fair=fair,
        )
        name, declared = limits.declared()
        known = self.limits.setdefault(name, {})
        for limit, value in declared.items():
            if known.setdefault(limit, value) != value:
                raise InvalidInput(f"queue {name}: {limit.strip()} is declared twice, as {known[limit]} and as {value}")

    def limit(
        self,
        *,
        max_running: int | None = None,
        rate: int | None = None,
        per: Seconds | None = None,
        group: str | None = None,
        fair: bool | None = None,
    ) -> Callable[[T], T]:
        """Declare limits for a task's queue: `@app.limit(max_running=2)` above `@app.task(queue="reports")`.

        The limits apply to the queue, so the task needs one that no other task uses.
        """

        def add(task: T) -> T:
            if not isinstance(task, ConfiguredTask):
                raise InvalidInput(f"{task!r} is not a task: write @app.limit(...) above @app.task")
            self._limited_tasks[task._task.queue] = task._task.name
            self.limit_queue(task._task.queue, max_running=max_running, rate=rate, per=per, group=group, fair=fair)
            return task

        return add

    def _check_limits(self) -> None:
        """Raise InvalidInput if a task shares the queue that another task limits."""
        for task in self.tasks.values():
            limited = self._limited_tasks.get(task.queue, task.name)
            if limited != task.name:
                raise InvalidInput(
                    f"the limits of task {limited} apply to queue {task.queue}, which task {task.name} uses, too: give"
                    f" one of them another queue=, or declare them with app.limit_queue"
                )

    def _store(self, tenant: str | None = None) -> Store:
        """The store of the app, or of one of its tenants."""
        if tenant not in self._stores:
            store = self._open(validate.schema(tenant), self._stores[None])
            with self._lock:
                self._stores.setdefault(tenant, store)
        return self._stores[tenant]

    def _open(self, tenant: str | None, like: Store | None) -> Store:
        store = open_store(self._url, schema=self._schema, tenant=tenant, connections=self._connections, like=like)
        store.clock = self._clock
        self._attach_replica(store, tenant, like)
        return store

    def _attach_replica(self, store: Store, tenant: str | None, like: Store | None) -> None:
        if self._replica_url is not None:
            shared = None if like is None else like.replica
            store.replica = open_replica(
                self._replica_url, store, schema=self._schema, tenant=tenant, connections=self._connections, like=shared
            )

    def _use_replica(self, url: str) -> None:
        """Read lists and figures from this standby from now on. For the command line: no tenant was used yet."""
        self._replica_url = url
        self._attach_replica(self._stores[None], None, None)

    @contextmanager
    def _replaced_store(self, url: str, schema: str, clock: Clock) -> Iterator[dict[str | None, Store]]:
        """Within the block, the app and its clients use another store, for tests. Yields its stores by tenant."""
        before = self._url, self._schema, self._clock, self._stores, self._replica_url
        self._url, self._schema, self._clock, self._replica_url = url, schema, clock, None
        self._stores = {None: self._open(None, None)}
        try:
            self._bind_clients()
            yield self._stores
        finally:
            self.close()
            self._url, self._schema, self._clock, self._stores, self._replica_url = before
            self._bind_clients()

    def _bind_clients(self) -> None:
        for client in (self._client, self._aclient._plain):
            client._bind()

    def worker(self, *, stop_program: bool = True, **options: Unpack[WorkerOptions]) -> EmbeddedWorker:
        """A worker that runs while a block runs: `async with app.worker():` in a lifespan, or `with app.worker():`.

        The options are those of `Worker`. At the end of the block, running jobs have `shutdown_timeout` to end. If the
        worker ends by an error, the error is logged, an `async with` block is cancelled, and the error is raised at the
        end of the block. With `stop_program`, a program that handles SIGTERM, as servers do, is stopped by it, too; one
        that does not is interrupted as by Ctrl-C, if the worker runs in a thread. It installs no signal handlers.
        """
        from ._worker.embedded import EmbeddedWorker

        return EmbeddedWorker(self, options, stop_program)

    def close(self) -> None:
        """Close all connections. The app may be used again."""
        for store in list(self._stores.values()):
            if store.replica is not None:  # first: it may be asking the primary
                store.replica.close()
            store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"App({self._stores[None].where!r})"
