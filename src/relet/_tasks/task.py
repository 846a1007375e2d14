"""Tasks: the functions that jobs run. This module turns a call into a draft.

`@app.task` turns a function into a `Task`. Calling it calls the function. `enqueue`, `aenqueue` and `draft` take the
same arguments, apart from the `Attempt`, and type checkers verify them. `using` sets options for one job and keeps the
types. All arguments and options are checked here, before anything is stored. The app's client stores the drafts; this
module knows it only by the protocols `Enqueues` and `EnqueuesAsync`.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import WRAPPER_ASSIGNMENTS, update_wrapper
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, Unpack, cast, final, overload

from .._attempts.attempt import Attempt
from .._core import payload
from .._core.codecs import PREFIX, Codec, Codecs, attach
from .._core.job import DEFAULT_POLICY, Draft, Job
from .._core.redact import KEYS, redactor
from .._core.validate import Seconds
from .._system import SYSTEM
from ..errors import InvalidInput, UnknownTask
from ..events import Event, Events
from .batch import BatchItem, BatchOptions, check_batch, one_by_one
from .codec import TaskCodec
from .options import (
    POLICY_OPTIONS,
    OnDoubt,
    OnShutdown,
    Options,
    RetryDelay,
    TaskOptions,
    check_job,
    check_task,
    policy_from,
)
from .resources import F, Resources
from .telemetry import Telemetry

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
V = TypeVar("V")
E = TypeVar("E", bound=Event)
M = TypeVar("M", bound=Iterator[None] | AsyncIterator[None])

_ROUTE = ("connection", "tenant")  # options for the client that stores a job; a draft has no field for them
_FOREIGN_METHODS = ("delay", "apply_async", "send", "send_with_options", "kiq", "defer", "defer_async", "enqueue_in")

new_id = SYSTEM.new_id


class Enqueues(Protocol):
    """The part of the app's client that tasks use."""

    def enqueue(self, draft: Draft[R], /, *, connection: Any = None, tenant: str | None = None) -> Job[R]:
        """Store the draft; the job, or the one that was there already."""
        ...


class EnqueuesAsync(Protocol):
    """The part of the app's async client that tasks use."""

    async def enqueue(self, draft: Draft[R], /, *, connection: Any = None, tenant: str | None = None) -> Job[R]:
        """Store the draft; the job, or the one that was there already."""
        ...


class ConfiguredTask(Generic[P, R_co]):
    """A task with options for one job. `using` returns it."""

    def __init__(self, task: Task[P, R_co], options: Mapping[str, Any]) -> None:
        self._task = task
        self._options = dict(options)
        checked = check_job(task.name, options)
        self._id: str | None = checked.pop("id", None)
        self._route = {name: checked.pop(name) for name in _ROUTE if name in checked}
        self._fields = _draft_fields(task, checked, fresh=self._id is None)

    def using(self, **options: Unpack[Options]) -> ConfiguredTask[P, R_co]:
        """The same task with options for jobs that are enqueued through the returned object. Later options win.

        When: `run_at` (a datetime with a timezone) or `delay` (seconds); `start_by` (a job that has not started by then
        is cancelled). Order: `queue`, `priority`, `target` (jobs of one target run one at a time), `group` (for fair
        queues and limits), `depends_on` (jobs to wait for). Only once: `unique` (one live job per key), `unique_for`
        (seconds: one per window), `replace` (a waiting job with the key takes the new arguments), `id` (a UUIDv7, which
        makes enqueue repeatable). To find it: `tags`. Where: `connection` (in your transaction), `tenant`. Instead of
        the task's: `max_attempts`, `backoff`, `timeout`, `on_expired`, `on_failure`, `on_dependency_failure`,
        `follow_up`.
        """
        return ConfiguredTask(self._task, {**self._options, **options})

    def draft(self, *args: P.args, **kwargs: P.kwargs) -> Draft[R_co]:
        """A job that is checked but not stored: for `enqueue_many`, `continue_with`, or later."""
        draft = self._untraced_draft(args, kwargs)
        telemetry = self._task.app.telemetry
        if telemetry is not None:
            telemetry.created(draft)
        return draft

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R_co]:
        """Store a job that will call the function with these arguments."""
        return self._task.app.client.enqueue(self._draft(args, kwargs), **self._route)

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R_co]:
        """Store a job that will call the function with these arguments."""
        return await self._task.app.aclient.enqueue(self._draft(args, kwargs), **self._route)

    def _untraced_draft(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Draft[R_co]:
        """A draft without a trace context: schedules create jobs from it."""
        if self._route:
            names = " and ".join(self._route)
            raise InvalidInput(f"{self._task.name}: a draft has no {names}; pass {names} when you enqueue the draft")
        return self._draft(args, kwargs)

    def _draft(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Draft[R_co]:
        task = self._task
        text = task.signature.encode(args, kwargs, task.app.payload_limit)
        if task.codec is None:  # no payload looks like an encoded one: its keys are names of parameters
            return Draft(self._id or new_id(), task.name, text, **self._fields)
        draft: Draft[R_co] = Draft(self._id or new_id(), task.name, task.encode(text), **self._fields)
        attach(draft, task.app.codecs)
        return draft

    def __repr__(self) -> str:
        return f"{self._task!r}.using({', '.join(f'{name}={value!r}' for name, value in self._options.items())})"

    if not TYPE_CHECKING:  # without it, type checkers report these names themselves

        def __getattr__(self, name: str) -> Any:
            if name in _FOREIGN_METHODS:
                raise AttributeError(
                    f"a task has no .{name}(): use .enqueue(), and .using() for options", name=name, obj=self
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)


class Task(ConfiguredTask[P, R_co]):
    """A registered function and its policy. `@app.task` creates it."""

    __wrapped__: Callable[..., Any]
    __name__: str
    __qualname__: str

    def __init__(
        self, app: TaskRegistry, function: Callable[..., Any], signature: TaskCodec, checked: Mapping[str, Any]
    ) -> None:
        self.app = app
        self.name = signature.task
        self.signature = signature
        self.queue: str = checked.get("queue", "default")
        self.priority: int = checked.get("priority", 0)
        self.policy = policy_from(DEFAULT_POLICY, checked)
        self.process: bool = checked.get("process", False)
        self.codec = app._codec_of(checked)  # the name of the codec of its values; None: they are stored as they are
        self.retry_on: tuple[type[BaseException], ...] | None = checked.get("retry_on")
        self.fail_on: tuple[type[BaseException], ...] = checked.get("fail_on", ())
        self.retry_delay: RetryDelay | None = checked.get("retry_delay")
        self.on_doubt: OnDoubt = checked.get("on_doubt", "continue")
        self.on_shutdown: OnShutdown = checked.get("on_shutdown", "release")
        self.is_async = inspect.iscoroutinefunction(function)
        self.takes_attempt = signature.takes_attempt  # as the first argument of the function
        self.takes_resources = signature.takes_resources
        self.batch: BatchOptions | None = None  # set if its handler runs many jobs in one call
        super().__init__(self, {})
        # Without updated=(), names in the function's __dict__ could overwrite the attributes above.
        update_wrapper(cast("Callable[..., Any]", self), function, WRAPPER_ASSIGNMENTS, updated=())

    def arguments(self, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a stored payload, without the attempt and resources."""
        return self.signature.decode(self.decode(text, f"a payload of {self.name}"))

    def encode_result(self, value: object) -> str:
        """The text to store for the function's return value."""
        text = self.signature.encode_result(value, self.app.payload_limit)
        is_plain = self.codec is None and not text.startswith(PREFIX)  # the usual case, without a call
        return text if is_plain else self.encode(text)

    def decode_result(self, text: str) -> R_co:
        """A stored result, converted to the function's return annotation."""
        return cast(R_co, self.signature.decode_result(self.decode(text, f"a result of {self.name}")))

    def encode(self, text: str) -> str:
        """The text to store for the JSON text of a value, by the codec of the task."""
        return self.app.codecs.encode(text, self.codec)

    def decode(self, text: str, where: str) -> str:
        """The JSON text of a value as it was stored. `where` names it in errors."""
        return self.app.codecs.decode(text, where) if text.startswith(PREFIX) else text

    def __repr__(self) -> str:
        return f"<task {self.name}>"


# One class for each kind of function, so that type checkers know the type of a call. `async def` matters at run time,
# too: frameworks inspect `__call__` to decide whether to await it.


class PlainTask(Task[P, R_co]):
    """Of `def f(...)`."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function, here and now."""
        return cast(R_co, self.__wrapped__(*args, **kwargs))


class AsyncTask(Task[P, R_co]):
    """Of `async def f(...)`."""

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function, here and now."""
        return cast(R_co, await self.__wrapped__(*args, **kwargs))


class PlainAttemptTask(Task[P, R_co]):
    """Of `def f(attempt: Attempt, ...)`."""

    def __call__(self, attempt: Attempt, /, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function, here and now."""
        return cast(R_co, self.__wrapped__(attempt, *args, **kwargs))


class AsyncAttemptTask(Task[P, R_co]):
    """Of `async def f(attempt: Attempt, ...)`."""

    async def __call__(self, attempt: Attempt, /, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function, here and now."""
        return cast(R_co, await self.__wrapped__(attempt, *args, **kwargs))


@final
class _Unannotated:
    """Never instantiated. Only an unannotated first parameter accepts it: type checkers tell it from `Attempt`."""


class TaskDecorator:
    """The type of `app.task`. Called with options only, it returns a decorator with them, which can be reused."""

    def __init__(self, app: TaskRegistry, checked: Mapping[str, Any]) -> None:
        self._app = app
        self._options = checked

    # A coroutine function also matches the overloads for plain functions, so the order matters: the first match counts.
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[Concatenate[_Unannotated, P], Coroutine[Any, Any, R]], /
    ) -> AsyncTask[..., R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[_Unannotated, P], R], /) -> PlainTask[..., R]: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[Concatenate[Attempt, P], Coroutine[Any, Any, R]], /
    ) -> AsyncAttemptTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Attempt, P], R], /) -> PlainAttemptTask[P, R]: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> AsyncTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> PlainTask[P, R]: ...
    @overload
    def __call__(self, /, **options: Unpack[TaskOptions]) -> TaskDecorator: ...
    def __call__(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Register a function. With options only, return a decorator that registers with them."""
        checked = {**self._options, **check_task(options)}
        return TaskDecorator(self._app, checked) if function is None else self._app._register(function, checked)


class BatchDecorator:
    """The decorator that `app.batch_task` returns."""

    def __init__(self, app: TaskRegistry, size: int, wait: Seconds, checked: Mapping[str, Any]) -> None:
        if checked.get("process"):
            raise InvalidInput("@app.batch_task has no option process: handlers run in threads or on the event loop")
        self._app, self._size, self._wait, self._checked = app, size, wait, checked

    @overload
    def __call__(
        self, function: Callable[[list[BatchItem[V]]], Coroutine[Any, Any, None]], /
    ) -> AsyncAttemptTask[[V], Any]: ...
    @overload
    def __call__(self, function: Callable[[list[BatchItem[V]]], None], /) -> PlainAttemptTask[[V], Any]: ...
    def __call__(self, function: Callable[[list[BatchItem[Any]]], Any], /) -> Any:
        options = check_batch(function, self._size, self._wait)
        task = self._app._register(one_by_one(function), self._checked)
        task.batch = options
        return task


class Middleware:
    """A context manager around each attempt."""

    def __init__(self, function: Callable[[Attempt], Any]) -> None:
        self.is_async = inspect.isasyncgenfunction(function)
        if not (self.is_async or inspect.isgeneratorfunction(function)):
            raise InvalidInput(
                f"{_location(function)}: a middleware is a generator function that takes the attempt and yields once, "
                "where the handler runs"
            )
        self.around: Callable[[Attempt], Any] = (asynccontextmanager if self.is_async else contextmanager)(function)


class TaskRegistry(ABC):
    """The tasks of an app, by name, and the `@app.task` that adds to them; its middlewares and listeners."""

    def __init__(
        self,
        *,
        payload_limit: int = payload.MAX_BYTES,
        defaults: Mapping[str, Any] | None = None,
        codecs: Iterable[Codec] = (),
        redact: Iterable[str] = KEYS,
    ) -> None:
        self.payload_limit = payload_limit
        self.redact = redactor(redact)
        self.codecs = Codecs(codecs)
        self._defaults = dict(defaults or {})
        self._tasks: dict[str, Task[..., Any]] = {}
        self._aliases: dict[str, Task[..., Any]] = {}
        self.middlewares: list[Middleware] = []
        self._resources = Resources()
        self.events = Events()
        self.telemetry: Telemetry | None = None

    @property
    @abstractmethod
    def client(self) -> Enqueues:
        """The client that `enqueue` uses."""

    @property
    @abstractmethod
    def aclient(self) -> EnqueuesAsync:
        """The client that `aenqueue` uses."""

    @property
    def task(self) -> TaskDecorator:
        """Register a function as a task: `@app.task`, or with options `@app.task(queue="billing", max_attempts=5)`.

        Options: `name` (default: the function's), `aliases` (earlier names), `queue`, `priority`, `max_attempts`,
        `backoff`, `retry_on` and `fail_on` (exception classes), `retry_delay` (a function), `lease`, `timeout`,
        `process` (run in a child process), `codec` (the name of one of the app's), `on_expired`, `on_doubt`,
        `on_failure`, `on_shutdown`, `on_dependency_failure`.
        """
        return TaskDecorator(self, {})

    def batch_task(self, *, size: int, wait: Seconds = 0.0, **options: Unpack[TaskOptions]) -> BatchDecorator:
        """Register a function that runs many jobs in one call: `@app.batch_task(size=100, wait=0.5)`.

        The function takes one argument, `list[BatchItem[T]]`; each job is enqueued with one argument of type T. `size`:
        how many jobs a call gets at most; it never gets more than the worker has slots. `wait`: for how many seconds
        the first of them waits for others. Each job has its own lease, timeout and outcome. A job whose worker was lost
        runs singly. The other options are those of `task`, without `process`.
        """
        return BatchDecorator(self, size, wait, check_task(options))

    @property
    def tasks(self) -> Mapping[str, Task[..., Any]]:
        """All tasks by name. Read-only."""
        return MappingProxyType(self._tasks)

    @property
    def _tasks_by_any_name(self) -> dict[str, Task[..., Any]]:
        """All tasks by name, and by their earlier names."""
        return {**self._aliases, **self._tasks}

    def middleware(self, function: Callable[[Attempt], M]) -> Callable[[Attempt], M]:
        """Wrap every attempt: `@app.middleware` on a generator that yields once. The first one added is outermost.

        What the handler raises is raised at the `yield`. An async generator wraps async tasks only.
        """
        self.middlewares.append(Middleware(function))
        return function

    def resource(self, function: F) -> F:
        """Make a value once in each worker process: `@app.resource` on a function that returns it, or yields it once.

        Handlers receive it by a parameter with the same annotation and the default `injected`, other resources by one
        with the same annotation. The code after the `yield` runs when the worker stops. The function may be async. With
        the value None it is a hook, which runs when a worker starts and stops.
        """
        self._resources.add(function)
        return function

    def on(self, kind: type[E]) -> Callable[[Callable[[E], object]], Callable[[E], object]]:
        """Add a listener: `@app.on(events.Failed)` on a function that takes the event. See `relet.events`."""

        def add(listener: Callable[[E], object]) -> Callable[[E], object]:
            self.events.add(kind, listener)
            return listener

        return add

    def lookup(self, name: str) -> Task[..., Any]:
        """The task of that name, or of that earlier name; or UnknownTask."""
        try:
            return self._tasks.get(name) or self._aliases[name]
        except KeyError:
            from difflib import get_close_matches  # not at the top: the import takes a millisecond

            near = get_close_matches(name, self._tasks, n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(sorted(self._tasks)) or 'none'}"
            raise UnknownTask(f"no task is named {name!r}{hint}") from None

    def _codec_of(self, options: Mapping[str, Any]) -> str | None:
        """The codec of a task with these options."""
        return self.codecs.check(options.get("codec", self.codecs.default))

    def _encode(self, text: str, task: str) -> str:
        """The text to store for the JSON text of a value that belongs to a job of this task."""
        known = self._tasks_by_any_name.get(task)
        return self.codecs.encode(text, self._codec_of(self._defaults) if known is None else known.codec)

    def _is_encoded(self, task: str | None = None) -> bool:
        """Whether payloads of this task are encoded, so that the store cannot search them; None: of any task."""
        codecs = {name: one.codec for name, one in self._tasks_by_any_name.items()}
        if task is None:
            return any(codecs.values())
        return codecs.get(task, self._codec_of(self._defaults)) is not None

    def _register(self, function: Callable[..., Any], checked: Mapping[str, Any]) -> Task[..., Any]:
        if isinstance(function, ConfiguredTask):
            raise InvalidInput(f"{function!r} is a task already")
        signature = TaskCodec(checked.get("name"), function)
        name = signature.task
        aliases: tuple[str, ...] = checked.get("aliases", ())
        for one in (name, *aliases):
            taken = self._tasks.get(one) or self._aliases.get(one)
            if taken is not None:
                here, there = _location(function), _location(taken.__wrapped__)
                raise InvalidInput(f"two tasks are named {one}: {there} and {here}; give one of them another name=")
        kind = _KINDS[inspect.iscoroutinefunction(function), signature.takes_attempt]
        task = self._tasks[name] = kind(self, function, signature, self._defaults | dict(checked))
        self._aliases |= dict.fromkeys(aliases, task)
        return task


_KINDS: dict[tuple[bool, bool], type[Task[..., Any]]] = {
    # async, takes the attempt
    (False, False): PlainTask,
    (True, False): AsyncTask,
    (False, True): PlainAttemptTask,
    (True, True): AsyncAttemptTask,
}


def _draft_fields(task: Task[..., Any], checked: Mapping[str, Any], *, fresh: bool) -> dict[str, Any]:
    """The fields of a draft that do not depend on its arguments."""
    policy = policy_from(task.policy, checked)
    others = {name: value for name, value in checked.items() if name not in POLICY_OPTIONS}
    return {"queue": task.queue, "priority": task.priority, **others, "policy": policy, "fresh": fresh}


def _location(function: Callable[..., Any]) -> str:
    inner = inspect.unwrap(function)
    code = getattr(inner, "__code__", None)
    where = f" ({code.co_filename}:{code.co_firstlineno})" if code else ""
    return f"{inner.__module__}.{inner.__qualname__}{where}"
